"""Reading a model: nothing in the file is trusted, and whatever is wrong ends in a :class:`ModelFileError`."""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import os
import re
import reprlib
import zipfile
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import upturn
from upturn._columns import read_path
from upturn._parameters import JOBS, check, check_parameters
from upturn.persist import _foreign
from upturn.persist._format import DTYPES, FORMAT, LARGEST_MANIFEST, MEMBER, REGISTRY, ModelFileError, check_sizes
from upturn.persist._steps import STEPS, check_inside, check_step

# The start of a .npy member as numpy writes it: version 1.0, C order, at most four dimensions. It is matched, not parsed.
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([|<][a-z]\d)', 'fortran_order': False, "
    rb"'shape': \(((?:\d{1,18},? ?){0,4})\), \} *\n",
    re.DOTALL,
)


def _read_trusted(trusted: Any) -> tuple[str, ...]:
    # An array without dimensions cannot be walked.
    several = isinstance(trusted, Iterable) and getattr(trusted, "ndim", None) != 0
    types = (trusted,) if isinstance(trusted, str) else tuple(trusted) if several else (None,)
    if not all(isinstance(name, str) for name in types):
        raise TypeError(
            f"trusted={reprlib.repr(trusted)}: expected a list of names of types, as an error of load gives them"
        )
    return types


def load(path: str | os.PathLike[str], *, trusted: Iterable[str] = (), n_jobs: int | None = None) -> Any:
    """Read a model written by ``model.save(path)``, or a pipeline written by :func:`upturn.save`.

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
    name, types = str(read_path(path, "path")), _read_trusted(trusted)
    if (
        os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name)
    ):  # to open a pipe would wait for ever
        raise ModelFileError(f"{name} is a device or a pipe: expected the file of a model")
    with open(name, "rb") as file:  # a file that is not there, or may not be read, is the system's own error
        try:
            with zipfile.ZipFile(file) as archive:
                members = _read_members(archive, os.fstat(file.fileno()).st_size)
        except ModelFileError as error:
            raise ModelFileError(f"{name}: {error}") from None
        except Exception as error:  # damage can make zipfile raise nearly anything
            raise ModelFileError(f"{name} is not a model file, or it is damaged: {error}") from error
    try:
        return Reader(members, types, n_jobs).model()
    except ModelFileError as error:
        raise ModelFileError(f"{name}: {error}") from error.__cause__
    except ImportError:  # skops is not installed
        raise
    except Exception as error:
        detail = f"{type(error).__name__}: {str(error)[:300]}"
        raise ModelFileError(f"{name} does not hold a sound model ({detail})") from error


def _read_members(archive: zipfile.ZipFile, size: int) -> dict[str, bytes]:
    infos = archive.infolist()
    names = [info.filename for info in infos]
    for name in names:
        if not MEMBER.fullmatch(name):
            raise ModelFileError(f"unexpected member {name[:80]!r}")
    check_sizes(infos, size)
    if "manifest.json" not in names:
        raise ModelFileError("not an upturn model: it has no manifest")
    if archive.getinfo("manifest.json").file_size > LARGEST_MANIFEST:
        raise ModelFileError("the manifest is too large")
    return {name: archive.read(name) for name in names}


class Reader:
    """Turns the members of a file back into the tree of values they were made from."""

    def __init__(self, members: dict[str, bytes], trusted: tuple[str, ...], n_jobs: int | None = None) -> None:
        self._members, self._trusted, self._n_jobs = members, trusted, n_jobs
        self._size = sum(map(len, members.values()))

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
        tree = manifest["model"]
        if not isinstance(tree, dict) or not {"$model", "$pipeline"} & set(tree):
            raise ModelFileError("the manifest holds no model")
        self._refuse_untrusted()
        model = self._pipeline(tree) if "$pipeline" in tree else self.decode(tree)
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

    def _pipeline(self, node: dict[str, Any]) -> Any:
        """A pipeline whose last step is a model of ours."""
        from sklearn.pipeline import Pipeline

        steps = node["$pipeline"]
        good = isinstance(steps, list) and steps and all(isinstance(pair, list) and len(pair) == 2 for pair in steps)
        if (
            len(node) > 1
            or not good
            or not all(isinstance(name, str) and name and "__" not in name for name, _ in steps)
        ):
            raise ModelFileError("the pipeline is not well formed")
        names, made = [name for name, _ in steps], [self._step(step) for _, step in steps]
        if len(set(names)) < len(names):
            raise ModelFileError("two steps of the pipeline have the same name")
        before = [step for step in made[:-1] if step is not None and step != "passthrough"]
        if not all(hasattr(step, "fit") and hasattr(step, "transform") for step in before):
            raise ModelFileError("a step before the last of the pipeline does not transform")
        last = made[-1]
        while isinstance(last, Pipeline):
            last = last.steps[-1][1]
        if not hasattr(last, "_dump") or not last.__sklearn_is_fitted__():
            raise ModelFileError("the pipeline does not end in a fitted model of upturn")
        return Pipeline(list(zip(names, made, strict=True)))

    def _step(self, node: Any) -> Any:
        if node is None or node == "passthrough":
            return node
        if not isinstance(node, dict):
            raise ModelFileError("a step of the pipeline is not well formed")
        if "$pipeline" in node:
            return self._pipeline(node)
        if "$step" not in node or len(node) > 1:
            if "$model" not in node:
                raise ModelFileError("a step of the pipeline is not well formed")
            return self.decode(node)
        name = node["$step"]
        if not isinstance(name, str) or not name.startswith("step-"):
            raise ModelFileError(f"{str(name)[:80]!r} is no step of a pipeline")
        step = _foreign.rebuild(self._take(name), self._n_jobs)
        check_step(step, self._n_jobs)
        return step

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
        ours = {"n_jobs": self._n_jobs, "verbose": 0, "resume": None}  # a file says not where a later fit writes
        model = cls(**{key: ours.get(key, value) for key, value in params.items()})
        check_parameters(model)
        model._restore(self.decode(node["state"]))
        return model

    def _array(self, name: str) -> NDArray[Any]:
        content = self._take(name)
        head = _HEADER.match(content)
        if head is None or 10 + int.from_bytes(content[8:10], "little") != head.end() or head[1].decode() not in DTYPES:
            raise ModelFileError(f"{name} is not a .npy array of a kind that models have")
        dtype, shape = np.dtype(head[1].decode()), tuple(int(size) for size in head[2].split(b",") if size.strip())
        if math.prod(shape) * dtype.itemsize != len(content) - head.end():
            raise ModelFileError(f"{name} claims shape {shape} and has {len(content) - head.end():,} bytes")
        if max(shape, default=0) > self._size:  # of nothing, but something of that length may be made for it
            raise ModelFileError(f"{name} claims shape {shape} in a file of {self._size:,} bytes")
        if dtype.kind == "b" and content[head.end() :].translate(None, b"\0\1"):
            raise ModelFileError(f"{name} holds truth values that are neither 0 nor 1")
        array = np.frombuffer(content, dtype=dtype, offset=head.end()) if math.prod(shape) else np.empty(0, dtype)
        return array.reshape(shape).astype(dtype.newbyteorder("="))

    def _refuse_untrusted(self) -> None:
        """Name all types of other libraries that are neither harmless nor trusted, before any of them is rebuilt."""
        refused: set[str] = set()
        for name, content in self._members.items():
            if name.endswith(".skops"):
                known = STEPS if name.startswith("step-") else _foreign.HARMLESS
                refused |= _foreign.types_in(content) - known - set(self._trusted)
        if refused:
            raise ModelFileError(
                f"it wants to rebuild types that are not known to be harmless: {', '.join(sorted(refused))}; if you trust whoever "
                f"made the file, pass upturn.load(path, trusted={sorted(refused)!r})"
            )

    def _foreign(self, name: str) -> Any:
        if not str(name).startswith("foreign-"):
            raise ModelFileError(f"{str(name)[:80]!r} is no estimator of another library")
        estimator = _foreign.rebuild(self._take(name), self._n_jobs)
        check_inside(estimator)
        return estimator


def _no_constant(text: str) -> Any:
    raise ModelFileError(f"the manifest holds {text}, which is not JSON")
