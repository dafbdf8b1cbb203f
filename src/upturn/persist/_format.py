"""What a file of a model looks like: its members, the classes it may name, and the error for anything else."""

from __future__ import annotations

import re
import zipfile

FORMAT = 1  # raised when the layout changes; every older format stays readable

# Every class that can be saved, by where it lives.
_HOMES = {
    "upturn.boosting": ("UpliftBagging", "UpliftBoosting"),
    "upturn.ensemble": ("UpliftAuto", "UpliftStacking"),
    "upturn.features": ("FilterSelector", "UMODLDiscretizer", "UMODLSelector"),
    "upturn.meta": (
        "ClassTransformation",
        "DRLearner",
        "OneVsControl",
        "RLearner",
        "SLearner",
        "TLearner",
        "TreatedOnly",
        "XLearner",
    ),
    "upturn.policy": ("UpliftCalibrator",),
    "upturn.svm": ("DifferentialSVM", "StandardSVM", "SubgroupSVM", "TwoCostSVM", "UpliftSVM", "UpliftSVMCV"),
    "upturn.trees": ("CTSForest", "UCTSForest", "UpliftForest", "UpliftTree"),
}
REGISTRY = {name: home for home, names in _HOMES.items() for name in names}

DTYPES = {"|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8"}
MEMBER = re.compile(r"manifest\.json|array-\d{5}\.npy|(?:foreign|step)-\d{5}\.skops")
MOST_MEMBERS = 20_000
LARGEST_MANIFEST = 64 * 2**20


class ModelFileError(ValueError):
    """A file is not a model that this version of upturn can read."""


def check_sizes(infos: list[zipfile.ZipInfo], size: int) -> None:
    """Make sure that no member is compressed and that all of them together fit in the file."""
    names = {info.filename for info in infos}
    if len(infos) > MOST_MEMBERS or len(names) < len(infos):
        raise ModelFileError("too many members, or a member twice")
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size or info.flag_bits & 1:
            raise ModelFileError(f"member {info.filename!r} is compressed or encrypted")
        if info.file_size > size:
            raise ModelFileError(f"member {info.filename!r} claims {info.file_size:,} bytes in a file of {size:,}")
    if sum(info.file_size for info in infos) > size:
        raise ModelFileError("the members claim more bytes than the file has")
