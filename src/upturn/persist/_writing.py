"""Writing a model: a tree of values as JSON, arrays and foreign estimators aside, and a file that is complete or not there."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import importlib
import io
import json
import math
import os
import reprlib
import secrets
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import upturn
from upturn._columns import file_to_write, warn_user
from upturn._parameters import check_parameters
from upturn.persist._foreign import HARMLESS, import_skops, types_in
from upturn.persist._format import DTYPES, FORMAT, REGISTRY
from upturn.persist._steps import STEPS

_LONG_AGO = 3600.0  # seconds after which a temporary file of a dead process is rubbish


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model, or a pipeline that ends in one, to a file that :func:`upturn.load` reads; no pickle is involved.

    A pipeline of scikit-learn may have transformers of ours and of scikit-learn before the model. These are rebuilt without trust:
    ``StandardScaler``, ``MinMaxScaler``, ``MaxAbsScaler``, ``RobustScaler``, ``SimpleImputer``, ``OneHotEncoder``, ``OrdinalEncoder``, ``PCA``,
    ``VarianceThreshold``, and ``ColumnTransformer`` and ``Pipeline`` of these. Of others, ``upturn.load`` asks for your word: a warning
    names all their types at once. What could not be loaded is not saved, and so are classes of the running script (``__main__``),
    which no other program knows.

    Parameters
    ----------
    estimator : fitted model or pipeline
    path : path
        An existing file there is replaced only once the new one is complete.

    Examples
    --------
    >>> import numpy as np, upturn as up
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from upturn.trees import UpliftTree
    >>> X, y, treatment = np.arange(400.0).reshape(200, 2) % 7, np.arange(200) % 3 > 0, np.arange(200) % 2
    >>> pipeline = make_pipeline(StandardScaler(), UpliftTree(random_state=0)).fit(X, up.pack(y, treatment))
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "pipeline.upturn")
    >>> up.save(pipeline, path)
    >>> bool((up.load(path).predict(X) == pipeline.predict(X)).all())
    True
    """
    write_model(estimator, path)


def write_model(estimator: Any, path: str | os.PathLike[str], about: dict[str, Any] | None = None) -> None:
    """:func:`save`, with a few words ``about`` the data as JSON values, for people only: no reader of models looks at them."""
    writer = Writer()
    if isinstance(estimator, type) or not (hasattr(estimator, "_dump") or _is_pipeline(estimator)):
        kind = estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__
        raise TypeError(
            f"{reprlib.repr(estimator)} of type {kind} cannot be saved: expected a fitted model of upturn, or a pipeline that ends in one"
        )
    if not _is_pipeline(estimator):
        check_is_fitted(estimator)
    tree = writer.pipeline(estimator) if _is_pipeline(estimator) else writer.encode(estimator)
    manifest = {"format": FORMAT, "upturn": upturn.__version__, "model": tree, "members": writer.digests()}
    manifest |= {} if about is None else {"about": about}
    members = {"manifest.json": json.dumps(manifest, allow_nan=False).encode(), **writer.members}
    wanted = _try_out(estimator, dict(members)) if any(name.endswith(".skops") for name in members) else []
    path = file_to_write(path)
    _sweep(path)
    # Made with the permissions of any new file, to which the system applies the umask, or with those of the file it replaces.
    mode = path.stat().st_mode & 0o777 if path.exists() else None
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    try:  # from here on: Ctrl-C can come while the file is being made
        with os.fdopen(os.open(temporary, flags, 0o666 if mode is None else mode), "wb") as file:
            archive = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
            try:
                for name, content in members.items():
                    archive.writestr(zipfile.ZipInfo(name), content)  # a fixed date: the same model, the same bytes
                archive.close()
            except BaseException:
                archive.fp = None  # to close what is thrown away would raise something else in place of Ctrl-C
                raise
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if wanted:
        warn_user(
            f"{path.name} holds types of other libraries that are rebuilt only on your word: load it with upturn.load(path, trusted={wanted!r})",
            UserWarning,
        )


def _try_out(model: Any, members: dict[str, bytes]) -> list[str]:
    """Refuse to save estimators of other libraries that could not be loaded, even by who trusts them.

    Returns the types that ``upturn.load`` will want trust in.
    """
    from upturn.persist._reading import Reader

    try:
        files = {file: types_in(content) for file, content in members.items() if file.endswith(".skops")}
        Reader(members, tuple(set().union(*files.values()))).model()
    except Exception as error:
        raise TypeError(
            f"this {type(model).__name__} cannot be saved, because it could not be loaded: {str(error)[:500]}"
        ) from error
    wanted = set().union(*(found - (STEPS if file.startswith("step-") else HARMLESS) for file, found in files.items()))
    here = sorted(name for name in wanted if name.startswith("__main__."))
    if here:
        raise TypeError(
            f"this {type(model).__name__} holds {', '.join(here)}, which only the running script or notebook knows, so that no other program "
            "could load it: move the class to a module of its own, import it from there, and fit again"
        )
    return sorted(wanted)


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


class Writer:
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

    def pipeline(self, value: Any) -> Any:
        """A pipeline step by step: those of ours as models, others aside."""
        last = value.steps[-1][1]
        inner = _is_pipeline(last)
        if not inner and not hasattr(last, "_dump"):
            raise TypeError(
                f"the pipeline ends in {type(last).__name__}, and not in a model of upturn: save it with the tools of its library, such as skops"
            )
        if not inner:
            check_is_fitted(last)
        return {"$pipeline": [[name, self._step(step)] for name, step in value.steps]}

    def _step(self, step: Any) -> Any:
        if step is None or isinstance(step, str):
            return step
        if hasattr(step, "_dump"):
            return self.encode(step)
        if _is_pipeline(step) and hasattr(step.steps[-1][1], "_dump"):
            return self.pipeline(step)
        return {"$step": self._add("step-{:05d}.skops", _dumped(step))}

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
        if plain.dtype.str not in DTYPES:
            raise TypeError(f"an array of type {array.dtype} cannot be saved")
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, plain.reshape(array.shape), allow_pickle=False)
        return self._add("array-{:05d}.npy", buffer.getvalue())

    def _foreign(self, estimator: Any) -> str:
        return self._add("foreign-{:05d}.skops", _dumped(estimator))


def _is_pipeline(value: Any) -> bool:
    """Whether this is scikit-learn's own pipeline; those of other libraries are not known."""
    return type(value).__module__ == "sklearn.pipeline" and type(value).__name__ == "Pipeline"


def _dumped(estimator: Any) -> bytes:
    skops = import_skops(estimator)
    try:
        content: bytes = skops.dumps(estimator)
    except Exception as error:  # whatever skops cannot write
        raise TypeError(f"{type(estimator).__name__} cannot be saved: {str(error)[:300]}") from error
    return content


def _registered(model: Any) -> None:
    name = type(model).__name__
    if name not in REGISTRY or getattr(importlib.import_module(REGISTRY[name]), name) is not type(model):
        raise TypeError(
            f"{type(model).__module__}.{name} cannot be saved: only upturn's own classes can, no subclasses"
        )
