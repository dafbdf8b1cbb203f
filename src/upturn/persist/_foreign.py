"""Estimators of other libraries inside a model: a file of skops, read only if its types are harmless or trusted.

skops rebuilds objects by type and attributes. Before it sees a file, its schema is walked: types that need trust are named,
and what would cost more than the file is worth is refused (arrays that claim more than they hold, one array many times,
values that contain each other twice over).
"""

from __future__ import annotations

import importlib
import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from upturn.persist._format import ModelFileError, check_sizes

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
HARMLESS = {
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
    "sklearn.preprocessing._label.LabelBinarizer",  # inside the classifiers of Ridge
}
# Types a step of a pipeline may be, or hold, besides: they are looked at before anybody asks them (``_steps``).
IN_STEPS = {
    *(f"sklearn.preprocessing._encoders.{name}" for name in ("OneHotEncoder", "OrdinalEncoder")),
    "sklearn.preprocessing._function_transformer.FunctionTransformer",
    "sklearn.compose._column_transformer.ColumnTransformer",
    "sklearn.compose._column_transformer._RemainderColsList",  # of older versions: a list of columns
    "sklearn.decomposition._pca.PCA",
    "sklearn.feature_selection._variance_threshold.VarianceThreshold",
}
# How skops rebuilds what it calls by these names; estimators are objects, and whatever else a file says of them, or of these, skops did
# not write: it would be another thing under a harmless name.
_ARRAY = {"NdArrayNode", "TypeNode"}
_REBUILT_BY = {
    "builtins.dict": {"DictNode", "TypeNode"},
    "builtins.list": {"ListNode", "TypeNode"},
    "builtins.slice": {"SliceNode", "TypeNode"},
    "builtins.tuple": {"TupleNode", "TypeNode"},
    **{f"builtins.{name}": {"JsonNode", "TypeNode"} for name in ("bool", "float", "int", "str")},
    "numpy.dtype": {"DTypeNode", "TypeNode"},
    **{f"numpy.{name}": _ARRAY for name in ("bool_", "float32", "float64", "int32", "int64", "ndarray")},
}
_OBJECT = {"ObjectNode"}
_OF_TYPES = ("dtype", "key_types")  # where skops writes a type: a parameter of that name, and beside the keys of a dict
_REPEATS = 4  # how often, on average, a value of an estimator may be reached


def import_skops(what: Any) -> Any:
    """The package skops, or an error that says how to install it."""
    try:
        return importlib.import_module("skops.io")
    except ImportError:
        raise ImportError(
            f"saving or loading a model built on {what if isinstance(what, str) else type(what).__name__} needs the package "
            "skops: pip install 'upturn[skops]'"
        ) from None


def types_in(content: bytes) -> set[str]:
    """Every type that a file of skops would rebuild, and those that skops itself does not know."""
    skops = import_skops("an estimator of another library")

    def look() -> set[str]:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_sizes(archive.infolist(), len(content))
            schema = json.loads(archive.read("schema.json"))
            _check_loaders(schema)
            _check_arrays(schema, archive)
        if _count(schema, {}) > _REPEATS * _count(schema, None):
            raise ModelFileError(
                "the estimator of another library in it has values that contain each other many times over"
            )
        return _named(schema) | set(skops.get_untrusted_types(data=content))

    found: set[str] = _rebuilding(look)
    return found


def rebuild(content: bytes, n_jobs: int | None = None) -> Any:
    """The estimator in a file of skops whose types have been looked at.

    Threads, progress bars, the folder in which a pipeline keeps pickles and the table are the reader's, not the file's.
    """
    skops = import_skops("an estimator of another library")

    def own(name: str, value: Any) -> dict[str, Any]:
        last = name.split("__")[-1]
        if last in ("copy", "copy_X"):  # otherwise it would write into the reader's table
            return {name: True} if isinstance(value, bool | np.bool_) else {}
        if last == "verbose":
            return {name: type(value)()} if value else {}
        return {name: n_jobs if last == "n_jobs" else None} if last in ("n_jobs", "memory") else {}

    def step() -> Any:
        estimator = skops.loads(content, trusted=sorted(skops.get_untrusted_types(data=content)))
        if hasattr(estimator, "get_params"):
            for name, value in estimator.get_params().items():
                estimator.set_params(**own(name, value))
        return estimator

    return _rebuilding(step)


def is_harmless(estimator: Any) -> bool:
    """Whether an estimator is of types that files may rebuild without being trusted."""
    steps = [step for _, step in getattr(estimator, "steps", ())] if hasattr(estimator, "steps") else []
    kind = f"{type(estimator).__module__}.{type(estimator).__qualname__}"
    return kind in HARMLESS and all(is_harmless(step) for step in steps)


def _rebuilding(step: Callable[[], Any]) -> Any:
    """Whatever goes wrong while a file of skops is read is the file's fault."""
    try:
        return step()
    except ModelFileError:
        raise
    except Exception as error:
        detail = f"{type(error).__name__}: {str(error)[:300]}"
        raise ModelFileError(f"the estimator of another library in it cannot be rebuilt ({detail})") from error


def _parts(schema: Any) -> list[Any]:
    return schema if isinstance(schema, list) else list(schema.values()) if isinstance(schema, dict) else []


def _named(schema: Any) -> set[str]:
    """Every type a schema names."""
    own = set()
    if isinstance(schema, dict) and "__class__" in schema:
        own = {f"{schema.get('__module__')}.{schema['__class__']}"}
    return own.union(*map(_named, _parts(schema)))


def _check_loaders(schema: Any, place: str = "") -> None:
    """What is called by a harmless name is rebuilt as that, and as nothing else; as the type itself only where one belongs."""
    if isinstance(schema, dict) and "__loader__" in schema:
        name, loader = f"{schema.get('__module__')}.{schema.get('__class__')}", schema["__loader__"]
        expected = _REBUILT_BY.get(name, _OBJECT if name in HARMLESS | IN_STEPS else None)
        misplaced = loader == "TypeNode" and place not in _OF_TYPES
        if expected is not None and (loader not in expected or misplaced):
            raise ModelFileError(
                f"the estimator of another library in it has a {name} that is rebuilt as {str(loader)[:40]!r}"
            )
        if loader in ("ListNode", "TupleNode") and place in _OF_TYPES:  # several types where one belongs
            for part in _parts(schema.get("content")):
                _check_loaders(part, place)
            return
    for key, part in schema.items() if isinstance(schema, dict) else enumerate(_parts(schema)):
        _check_loaders(part, str(key))


def _count(schema: Any, known: dict[str, int] | None) -> int:
    """Values of a schema; with ``known``, one that is named again (by ``__id__``) is counted again with all it holds."""
    if known is None or not isinstance(schema, dict) or schema.get("__id__") is None:
        return 1 + sum(_count(part, known) for part in _parts(schema))
    name = str(schema["__id__"])
    if name in known:
        return known[name]
    known[name] = 1 + sum(_count(part, known) for part in _parts(schema))
    return known[name]


def _check_arrays(schema: Any, archive: zipfile.ZipFile) -> None:
    """Every array is as large as it says, and read once."""
    used: dict[str, Any] = {}
    looked: set[str] = set()
    size = sum(info.file_size for info in archive.infolist())

    def look(node: Any) -> None:
        if isinstance(node, dict) and "file" in node:
            name, owner = str(node["file"]), node.get("__id__")
            if name in used and (owner is None or used[name] != owner):
                raise ModelFileError(f"{name[:80]!r} is used by several values of the estimator of another library")
            used[name] = owner
            if name not in looked and node.get("__loader__") == "NdArrayNode":  # whatever named it before
                looked.add(name)
                _check_array(name, archive.read(name), size)
        for part in _parts(node):
            look(part)

    look(schema)


def _check_array(name: str, content: bytes, size_of_all: int) -> None:
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ModelFileError(f"{name[:80]!r} is a .npy array of an unknown version")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    claimed = dtype.itemsize
    for size in shape:
        claimed *= size
    if (
        dtype.hasobject
        or dtype.itemsize == 0
        or claimed != len(content) - file.tell()
        or max(shape, default=0) > size_of_all
    ):
        raise ModelFileError(f"{name[:80]!r} claims shape {shape} and has {len(content) - file.tell():,} bytes")
