"""The saved form of a model: a zip of one JSON manifest and plain ``.npy`` arrays. No pickle, nothing is executed.

::

    manifest.json       format, upturn's version, the model as a tree of values, and a SHA-256 of every other member
    array-00000.npy …   the arrays the tree points to
    foreign-00000.skops …   estimators of other libraries, which need the extra [skops]

Members are stored, not compressed, so no file can unpack to more than its own size. A file is written under a temporary
name and renamed when it is complete. Reading trusts nothing: names, sizes, checksums, dtypes, classes, parameters and
the state itself are checked, and whatever is wrong ends in a :class:`ModelFileError`.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import importlib
import io
import json
import math
import os
import re
import secrets
import time
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import upturn
from upturn._parameters import JOBS, check, check_parameters

FORMAT = 1  # raised when the layout changes; every older format stays readable

# Every class that can be saved, by where it lives.
_HOMES = {
    "upturn.boosting": ("UpliftBagging", "UpliftBoosting"),
    "upturn.features": ("FilterSelector", "UMODLDiscretizer", "UMODLSelector"),
    "upturn.meta": ("ClassTransformation", "DRLearner", "RLearner", "SLearner", "TLearner", "TreatedOnly", "XLearner"),
    "upturn.policy": ("UpliftCalibrator",),
    "upturn.svm": ("DifferentialSVM", "StandardSVM", "SubgroupSVM", "TwoCostSVM", "UpliftSVM", "UpliftSVMCV"),
    "upturn.trees": ("CTSForest", "UCTSForest", "UpliftForest", "UpliftTree"),
}
REGISTRY = {name: home for home, names in _HOMES.items() for name in names}

# Types of other libraries that a file may rebuild without being trusted: plain values and arrays, and estimators that predict
# by numpy alone. Whatever hands arrays of the file to compiled code that trusts them, such as trees, neighbours and support
# vectors, is not here.
_LINEAR = {
    "_base": ("LinearRegression",),
    "_bayes": ("ARDRegression", "BayesianRidge"),
    "_coordinate_descent": ("ElasticNet", "ElasticNetCV", "Lasso", "LassoCV"),
    "_huber": ("HuberRegressor",),
    "_least_angle": ("Lars", "LarsCV", "LassoLars", "LassoLarsCV", "LassoLarsIC"),
    "_logistic": ("LogisticRegression", "LogisticRegressionCV"),
    "_quantile": ("QuantileRegressor",),
    "_ridge": ("Ridge", "RidgeCV", "RidgeClassifier", "RidgeClassifierCV"),
}
_HARMLESS = {
    *(f"builtins.{name}" for name in ("bool", "dict", "float", "int", "list", "slice", "str", "tuple")),
    *(f"numpy.{name}" for name in ("bool_", "dtype", "float32", "float64", "int32", "int64", "ndarray")),
    *(f"sklearn.linear_model.{module}.{name}" for module, names in _LINEAR.items() for name in names),
    *(
        f"sklearn.preprocessing._data.{name}"
        for name in ("MaxAbsScaler", "MinMaxScaler", "RobustScaler", "StandardScaler")
    ),
    *(f"sklearn.dummy.{name}" for name in ("DummyClassifier", "DummyRegressor")),
    *(f"sklearn.svm._classes.{name}" for name in ("LinearSVC", "LinearSVR")),
    "sklearn.impute._base.SimpleImputer",
    "sklearn.naive_bayes.GaussianNB",
    "sklearn.pipeline.Pipeline",
}

_DTYPES = {"|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8"}
_MEMBER = re.compile(r"manifest\.json|array-\d{5}\.npy|foreign-\d{5}\.skops")
_MOST_MEMBERS = 20_000
_LARGEST_MANIFEST = 64 * 2**20
_LONG_AGO = 3600.0  # seconds after which a temporary file of a dead process is rubbish
# The start of a .npy member as numpy writes it: version 1.0, C order, at most four dimensions. It is matched, not parsed.
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([|<][a-z]\d)', 'fortran_order': False, "
    rb"'shape': \(((?:\d{1,18},? ?){0,4})\), \} *\n",
    re.DOTALL,
)


class ModelFileError(ValueError):
    """A file is not a model that this version of upturn can read."""


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to ``path``; an existing file there is replaced only once the new one is complete."""
    writer = _Writer()
    tree = writer.encode(model)
    manifest = {"format": FORMAT, "upturn": upturn.__version__, "model": tree, "members": writer.digests()}
    members = {"manifest.json": json.dumps(manifest, allow_nan=False).encode(), **writer.members}
    path = Path(path).resolve()  # through a link, the file it points to is replaced
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot save to {path}: there is no folder {path.parent}; make it first")
    _sweep(path)
    # Made with the permissions of any new file, to which the system applies the umask, or with those of the file it replaces.
    mode = path.stat().st_mode & 0o777 if path.exists() else None
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    handle = os.open(temporary, flags, 0o666 if mode is None else mode)
    try:
        with os.fdopen(handle, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                for name, content in members.items():
                    archive.writestr(zipfile.ZipInfo(name), content)  # a fixed date: the same model, the same bytes
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _sweep(path: Path) -> None:
    """Remove what saves to this path left behind when they were killed: their process is gone, and it was long ago."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*-*.tmp"):
        process = left.name.removeprefix(f".{path.name}.").partition("-")[0]
        with contextlib.suppress(OSError):  # another save may be sweeping too
            if process.isdecimal() and time.time() - left.stat().st_mtime > _LONG_AGO and not _alive(int(process)):
                left.unlink()


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)  # asks whether it is there, and sends nothing
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def load(path: str | os.PathLike[str], *, trusted: Iterable[str] = (), n_jobs: int | None = None) -> Any:
    """Read a model written by ``model.save(path)``.

    Parameters
    ----------
    path : path
        The file.
    trusted : iterable of str
        Types of other libraries that the file may rebuild, such as the base estimator of a meta-learner. A file that
        needs a type which is neither known to be harmless nor listed here is refused, and the error names all of them.
    n_jobs : int, optional
        Threads of the model. What the file says of threads and of progress bars is passed over: they are the reader's.

    Returns
    -------
    The fitted model.

    Raises
    ------
    ModelFileError
        If the file is damaged, hostile, of an unknown class, or written by a newer format.
    """
    check("n_jobs", n_jobs, JOBS)
    name, types = os.fspath(path), (trusted,) if isinstance(trusted, str) else tuple(trusted)
    with open(name, "rb") as file:  # a file that is not there, or may not be read, is the system's own error
        try:
            with zipfile.ZipFile(file) as archive:
                members = _read_members(archive, os.fstat(file.fileno()).st_size)
        except ModelFileError as error:
            raise ModelFileError(f"{name}: {error}") from None
        except Exception as error:  # damage can make zipfile raise nearly anything
            raise ModelFileError(f"{name} is not a model file, or it is damaged: {error}") from error
    try:
        return _Reader(members, types, n_jobs).model()
    except ModelFileError as error:
        raise ModelFileError(f"{name}: {error}") from error.__cause__
    except ImportError:  # skops is not installed
        raise
    except Exception as error:
        detail = f"{type(error).__name__}: {str(error)[:300]}"
        raise ModelFileError(f"{name} does not hold a sound model ({detail})") from error


# --------------------------------------------------------------------------------------------- writing


class _Writer:
    """Turns a tree of values into JSON, setting arrays and foreign estimators aside as members of the file."""

    def __init__(self) -> None:
        self.members: dict[str, bytes] = {}

    def digests(self) -> dict[str, str]:
        return {name: hashlib.sha256(content).hexdigest() for name, content in self.members.items()}

    def encode(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int | np.integer):
            return int(value)
        if isinstance(value, float | np.floating):
            return float(value) if math.isfinite(value) else {"$float": str(float(value))}
        if isinstance(value, np.bool_):
            return bool(value)
        if isinstance(value, np.ndarray):
            return {"$array": self._array(value)}
        if isinstance(value, dict):
            if not all(isinstance(key, str) and not key.startswith("$") for key in value):
                raise TypeError("the keys of saved state must be text that does not start with a dollar sign")
            return {key: self.encode(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.encode(item) for item in value]
        if isinstance(value, tuple):
            return {"$tuple": [self.encode(item) for item in value]}
        if hasattr(value, "_dump"):
            _registered(value)
            check_parameters(value)  # what could not be loaded is not saved
            params = {name: self._param(name, item) for name, item in value.get_params(deep=False).items()}
            return {"$model": type(value).__name__, "params": params, "state": self.encode(value._dump())}
        if hasattr(value, "get_params"):
            return {"$foreign": self._foreign(value)}
        raise TypeError(
            f"{value!r} of type {type(value).__name__} cannot be saved: only numbers, text, arrays and estimators can"
        )

    def _param(self, name: str, value: Any) -> Any:
        if isinstance(value, np.random.RandomState | np.random.Generator):
            return None  # a generator is only used up by fit, and this model is fitted
        try:
            return self.encode(value)
        except TypeError as error:
            raise TypeError(f"parameter {name}: {error}") from error

    def _add(self, pattern: str, content: bytes) -> str:
        name = pattern.format(len(self.members))
        self.members[name] = content
        return name

    def _array(self, array: NDArray[Any]) -> str:
        plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        if plain.dtype.str not in _DTYPES:
            raise TypeError(f"an array of type {array.dtype} cannot be saved")
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, plain.reshape(array.shape), allow_pickle=False)
        return self._add("array-{:05d}.npy", buffer.getvalue())

    def _foreign(self, estimator: Any) -> str:
        return self._add("foreign-{:05d}.skops", _skops(estimator).dumps(estimator))


def _registered(model: Any) -> None:
    name = type(model).__name__
    if name not in REGISTRY or getattr(importlib.import_module(REGISTRY[name]), name) is not type(model):
        raise TypeError(
            f"{type(model).__module__}.{name} cannot be saved: only upturn's own classes can, no subclasses"
        )


def _skops(what: Any) -> Any:
    try:
        return importlib.import_module("skops.io")
    except ImportError:
        raise ImportError(
            f"saving or loading a model built on {what if isinstance(what, str) else type(what).__name__} needs the package "
            "skops: pip install 'upturn[skops]'"
        ) from None


# --------------------------------------------------------------------------------------------- reading


def _read_members(archive: zipfile.ZipFile, size: int) -> dict[str, bytes]:
    infos = archive.infolist()
    names = [info.filename for info in infos]
    for name in names:
        if not _MEMBER.fullmatch(name):
            raise ModelFileError(f"unexpected member {name[:80]!r}")
    _check_sizes(infos, size)
    if "manifest.json" not in names:
        raise ModelFileError("not an upturn model: it has no manifest")
    if archive.getinfo("manifest.json").file_size > _LARGEST_MANIFEST:
        raise ModelFileError("the manifest is too large")
    return {name: archive.read(name) for name in names}


def _check_sizes(infos: list[zipfile.ZipInfo], size: int) -> None:
    """Make sure that no member is compressed and that all of them together fit in the file."""
    names = {info.filename for info in infos}
    if len(infos) > _MOST_MEMBERS or len(names) < len(infos):
        raise ModelFileError("too many members, or a member twice")
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size or info.flag_bits & 1:
            raise ModelFileError(f"member {info.filename!r} is compressed or encrypted")
        if info.file_size > size:
            raise ModelFileError(f"member {info.filename!r} claims {info.file_size:,} bytes in a file of {size:,}")
    if sum(info.file_size for info in infos) > size:
        raise ModelFileError("the members claim more bytes than the file has")


class _Reader:
    """Turns the members of a file back into the tree of values they were made from."""

    def __init__(self, members: dict[str, bytes], trusted: tuple[str, ...], n_jobs: int | None = None) -> None:
        self._members, self._trusted, self._n_jobs = members, trusted, n_jobs

    def model(self) -> Any:
        manifest = json.loads(self._members.pop("manifest.json"), parse_constant=_no_constant)
        if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
            raise ModelFileError("the manifest does not say which format it is in")
        if not 1 <= manifest["format"] <= FORMAT:
            raise ModelFileError(
                f"it is in format {manifest['format']}, written by upturn {str(manifest.get('upturn'))[:20]}, and this is upturn "
                f"{upturn.__version__}, which reads formats up to {FORMAT}: upgrade upturn"
            )
        digests = manifest["members"]
        found = {name: hashlib.sha256(content).hexdigest() for name, content in self._members.items()}
        if digests != found:
            wrong = sorted(name for name in {*digests, *found} if digests.get(name) != found.get(name))
            raise ModelFileError(f"damaged or exchanged members: {', '.join(map(repr, wrong[:5]))}")
        if not isinstance(manifest["model"], dict) or "$model" not in manifest["model"]:
            raise ModelFileError("the manifest holds no model")
        self._refuse_untrusted()
        model = self.decode(manifest["model"])
        if self._members:
            raise ModelFileError(f"{len(self._members)} member(s) belong to nothing")
        return model

    def _take(self, name: Any) -> bytes:
        """A member, which may be asked for once: a small manifest cannot make many copies of a large array."""
        if name not in self._members:
            raise ModelFileError(f"{str(name)[:80]!r} is not there, or is used twice")
        return self._members.pop(name)

    def decode(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        special = next((key for key in value if key.startswith("$")), None)
        if special is None:
            return {key: self.decode(item) for key, item in value.items()}
        decoders: dict[str, Callable[[Any], Any]] = {
            "$float": float,
            "$tuple": lambda items: tuple(self.decode(items)),
            "$array": self._array,
            "$foreign": self._foreign,
            "$model": lambda _: self._model(value),
        }
        if special not in decoders or (len(value) > 1 and special != "$model"):
            raise ModelFileError(f"unknown kind of value {special[:40]!r}")
        return decoders[special](value[special])

    def _model(self, node: dict[str, Any]) -> Any:
        name = node["$model"]
        if name not in REGISTRY:
            raise ModelFileError(
                f"unknown class {str(name)[:80]!r}: this version of upturn knows {', '.join(sorted(REGISTRY))}"
            )
        cls = getattr(importlib.import_module(REGISTRY[name]), name)
        params = self.decode(node["params"])
        if not isinstance(params, dict) or set(params) - set(cls._get_param_names()):
            raise ModelFileError(f"{name} does not take these parameters")
        ours = {"n_jobs": self._n_jobs, "verbose": 0}
        model = cls(**{key: ours.get(key, value) for key, value in params.items()})
        check_parameters(model)
        model._restore(self.decode(node["state"]))
        return model

    def _array(self, name: str) -> NDArray[Any]:
        content = self._take(name)
        head = _HEADER.match(content)
        if (
            head is None
            or 10 + int.from_bytes(content[8:10], "little") != head.end()
            or head[1].decode() not in _DTYPES
        ):
            raise ModelFileError(f"{name} is not a .npy array of a kind that models have")
        dtype, shape = np.dtype(head[1].decode()), tuple(int(size) for size in head[2].split(b",") if size.strip())
        if math.prod(shape) * dtype.itemsize != len(content) - head.end():
            raise ModelFileError(f"{name} claims shape {shape} and has {len(content) - head.end():,} bytes")
        if dtype.kind == "b" and content[head.end() :].translate(None, b"\0\1"):
            raise ModelFileError(f"{name} holds truth values that are neither 0 nor 1")
        array = np.frombuffer(content, dtype=dtype, offset=head.end()) if math.prod(shape) else np.empty(0, dtype)
        return array.reshape(shape).astype(dtype.newbyteorder("="))

    def _refuse_untrusted(self) -> None:
        """Name all types of other libraries that are neither harmless nor trusted, before any of them is rebuilt."""
        refused: set[str] = set()
        for name in self._members:
            if name.startswith("foreign-"):
                refused |= _foreign_types(self._members[name]) - _HARMLESS - set(self._trusted)
        if refused:
            raise ModelFileError(
                f"it wants to rebuild types that are not known to be harmless: {', '.join(sorted(refused))}; if you trust whoever "
                f"made the file, pass upturn.load(path, trusted={sorted(refused)!r})"
            )

    def _foreign(self, name: str) -> Any:
        content, skops = self._take(name), _skops("an estimator of another library")
        return _rebuilding(lambda: skops.loads(content, trusted=sorted(skops.get_untrusted_types(data=content))))


def _rebuilding(step: Callable[[], Any]) -> Any:
    """Whatever goes wrong while a file of skops is read is the file's fault."""
    try:
        return step()
    except ModelFileError:
        raise
    except Exception as error:
        detail = f"{type(error).__name__}: {str(error)[:300]}"
        raise ModelFileError(f"the estimator of another library in it cannot be rebuilt ({detail})") from error


def _foreign_types(content: bytes) -> set[str]:
    """Every type that a file of skops would rebuild, and those that skops itself does not know."""
    skops = _skops("an estimator of another library")

    def look() -> set[str]:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_sizes(archive.infolist(), len(content))
            schema = json.loads(archive.read("schema.json"))
        return _types_in(schema) | set(skops.get_untrusted_types(data=content))

    found: set[str] = _rebuilding(look)
    return found


def _types_in(schema: Any) -> set[str]:
    """Every type a skops file would rebuild."""
    if isinstance(schema, list):
        return set().union(*map(_types_in, schema))
    if not isinstance(schema, dict):
        return set()
    own = {f"{schema.get('__module__')}.{schema['__class__']}"} if "__class__" in schema else set()
    return own.union(*map(_types_in, schema.values()))


def _no_constant(text: str) -> Any:
    raise ModelFileError(f"the manifest holds {text}, which is not JSON")
