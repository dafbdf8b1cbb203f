"""The gate for outcomes, treatments and weights: the only place that looks at raw ``y`` and ``treatment``.

Raw columns of any library go in; a :class:`Target` of plain arrays comes out. Everything behind this gate may rely
on it: float64 outcomes and weights without NaN, arms as small integers with control first, all C-contiguous.
"""

from __future__ import annotations

import reprlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

Label = bool | int | float | str
Outcome = Literal["any", "binary"]

_CONTROL_WORDS = {"control", "0", "0.0", "false"}
_MOST_LABELS = 255  # arm codes are uint8


@dataclass(frozen=True)
class Target:
    """An experiment's outcome, arms and weights, encoded.

    ``arm`` is 0 for control and 1 … K for ``arms[0]`` … ``arms[K - 1]``.
    """

    y: NDArray[np.float64]
    arm: NDArray[np.uint8]
    weight: NDArray[np.float64] | None
    control: Label
    arms: list[Label]

    @property
    def n_arms(self) -> int:
        """Number of treatment arms, control not counted."""
        return len(self.arms)

    @property
    def labels(self) -> list[Label]:
        """All labels, control first: ``labels[arm]`` undoes the encoding."""
        return [self.control, *self.arms]


def pack(y: Any, treatment: Any, sample_weight: Any = None) -> NDArray[np.void]:
    """Put outcome, treatment and weight into one array, which every scikit-learn tool takes as ``y``.

    Parameters
    ----------
    y : array-like of shape (n,)
        The outcome.
    treatment : array-like of shape (n,)
        The label of the arm each row was in.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    structured array of shape (n,)
        Fields ``y``, ``treatment`` and, when weights were given, ``weight``.

    Examples
    --------
    >>> import upturn as up
    >>> up.pack([1, 0, 1], ["mail", "control", "mail"])["y"]
    array([1., 0., 1.])
    """
    if is_packed(y):
        raise ValueError("y is packed already: pass the plain outcome to pack, or use the packed y as it is")
    outcome, labels = _read_outcome(y), _read_labels(treatment)
    columns = {"y": outcome, "treatment": labels}
    if sample_weight is not None:
        columns["weight"] = _read_weight(sample_weight)
    _same_length({"sample_weight" if name == "weight" else name: column for name, column in columns.items()})
    packed = np.empty(len(outcome), dtype=[(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        packed[name] = column
    return packed


def unpack(packed: NDArray[np.void]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Take a packed target apart again: ``(y, treatment, sample_weight)``.

    Examples
    --------
    >>> import upturn as up
    >>> y, treatment, weight = up.unpack(up.pack([1, 0], [1, 0]))
    >>> treatment, weight is None
    (array([1, 0]), True)
    """
    if not is_packed(packed):
        raise ValueError("this is not a packed target: make one with upturn.pack(y, treatment)")
    weight = packed["weight"] if "weight" in (packed.dtype.names or ()) else None
    return packed["y"], packed["treatment"], weight


def is_packed(y: Any) -> bool:
    """Whether ``y`` was made by :func:`pack`."""
    names = getattr(getattr(y, "dtype", None), "names", None)
    return names is not None and set(names) >= {"y", "treatment"}


def read_target(
    y: Any,
    treatment: Any = None,
    sample_weight: Any = None,
    *,
    control: Label | None = None,
    known: tuple[Label, Sequence[Label]] | None = None,
    outcome: Outcome = "any",
    any_control: bool = False,
) -> Target:
    """Check and encode an outcome with its treatment and weights.

    Parameters
    ----------
    y, treatment, sample_weight : array-like
        As in ``fit``. ``treatment`` is left out when ``y`` is packed.
    control : label, optional
        The control arm; found by its name when not given.
    known : (control, arms), optional
        The arms of a fitted model, which the labels must be, all of them.
    outcome : {"any", "binary"}
        Binary turns the two values of y into 0 and 1, the larger being success, and refuses any other number of values.
    any_control : bool
        For callers that only tell arms apart: where no label is clearly control, the first one stands in for it.
    """
    if is_packed(y):
        if treatment is not None:
            raise ValueError("treatment was given twice, in the packed y and as an argument: leave one out")
        y, treatment, weight = unpack(y)
        if weight is not None and sample_weight is not None:
            raise ValueError("sample_weight was given twice, in the packed y and as an argument: leave one out")
        sample_weight = weight if sample_weight is None else sample_weight
    if y is None:
        raise ValueError("an uplift model requires y to be passed, but the target y is None")
    if treatment is None:
        raise ValueError(
            "treatment is missing: pass fit(X, y, treatment), or pack it with the outcome as y=upturn.pack(y, treatment); "
            "inside GridSearchCV and other scikit-learn tools use the packed form, or turn metadata routing on "
            "with sklearn.set_config(enable_metadata_routing=True)"
        )
    values, labels = _read_outcome(y), _read_labels(treatment)
    weight = None if sample_weight is None else _read_weight(sample_weight)
    columns = {"y": values, "treatment": labels}
    _same_length(columns if weight is None else {**columns, "sample_weight": weight})
    arm, control, arms = _encode_arms(labels, control, known, any_control)
    if weight is not None:
        _check_arm_weights(weight, arm, [control, *arms])
    if outcome == "binary":
        values = _as_binary(values)
    return Target(values, arm, weight, control, arms)


def read_score(score: Any, n: int, n_arms: int) -> NDArray[np.float64]:
    """Check uplift scores and return them as a matrix with one column per treatment arm."""
    values = _as_floats(_to_numpy(score, "score"), "score")
    _all_finite(values, "score", "every row needs a finite score; look at the model that made it")
    matrix = values[:, None] if values.ndim == 1 else values
    if matrix.ndim != 2:
        raise ValueError(f"score has shape {values.shape}: expected ({n},) or ({n}, {n_arms})")
    if matrix.shape[0] != n:
        raise ValueError(f"score has {matrix.shape[0]} rows and y has {n}: they must describe the same rows")
    if matrix.shape[1] != n_arms:
        raise ValueError(
            f"score has {matrix.shape[1]} column(s) and treatment has {n_arms} arm(s) besides control: expected one column "
            "per arm, in the sorted order of the labels; to judge one arm, keep only its rows and control's"
        )
    return matrix


def sort_labels(labels: Sequence[Label]) -> list[Label]:
    """Numbers first, then text, each in their own order: values of different kinds are never compared."""
    return sorted(labels, key=lambda label: (isinstance(label, str), label))


def decode(labels: Sequence[Label], codes: NDArray[Any]) -> NDArray[Any]:
    """The labels behind the codes, as an array of their common type, or of objects when they are of several kinds."""
    kinds = {str if isinstance(label, str) else type(label) for label in labels}
    table = np.array(labels) if len(kinds) == 1 else np.array(labels, dtype=object)
    chosen: NDArray[Any] = table[codes]
    return chosen


# --------------------------------------------------------------------------------------------- raw columns


def _to_numpy(values: Any, name: str) -> NDArray[Any]:
    series = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(series, nw.Series):
        if series.dtype in (nw.Categorical, nw.Enum):  # pyarrow would lose the nulls of a dictionary
            return _as_objects(series.to_list())
        return np.asarray(series.to_numpy())
    if isinstance(series, nw.DataFrame):
        return np.asarray(series.to_numpy())
    if isinstance(series, nw.LazyFrame):
        raise TypeError(f"{name} is a lazy frame: collect it first, as in frame.collect(), and pass its column")
    if hasattr(values, "toarray"):
        raise TypeError(f"{name} is a sparse matrix: expected a dense one-dimensional array")
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be lost: fill it, or drop the masked rows, first")
    array = np.asarray(values)
    if array.dtype.kind == "U" and array.ndim == 1 and not all(isinstance(value, str) for value in values):
        return _as_objects(values)  # numpy made text of a 0 or a NaN that stood beside text in a list
    return array


def _as_objects(values: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _as_floats(values: NDArray[Any], name: str) -> NDArray[np.float64]:
    if values.dtype.names:
        raise ValueError(f"{name} is a structured array with fields {values.dtype.names}: make it with upturn.pack")
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} holds complex numbers")
    if values.dtype.kind in "mM":
        raise TypeError(f"{name} holds dates or durations: convert them to numbers first")
    if values.dtype.kind in "biuf":
        return np.ascontiguousarray(values, dtype=np.float64)
    numbers = np.empty(values.size)
    for i, value in enumerate(values.ravel().tolist()):
        try:
            numbers[i] = np.nan if is_missing(value) else as_number(value)
        except OverflowError:
            raise ValueError(f"{name} holds a number too large for float64") from None
        except (TypeError, ValueError):
            raise ValueError(
                f"{name} holds {reprlib.repr(value)} at row {i // (values.size // len(values))}, which is not a number: expected numbers; for "
                "text such as 'yes' and 'no', map it first, as in (column == 'yes').astype(int)"
            ) from None
    return numbers.reshape(values.shape)


def as_number(value: Any) -> float:
    """One cell as a float; text is never read as a number."""
    if isinstance(value, str | bytes):
        raise TypeError("text")
    return float(value)


def _flat(values: NDArray[Any], name: str) -> NDArray[Any]:
    if values.ndim == 2 and values.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            f"A column-vector {name} was passed when a 1d array was expected: its one column is used",
            DataConversionWarning,
            stacklevel=5,
        )
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{name} should be a 1d array, got an array of shape {values.shape} instead")
    if len(values) == 0:
        raise ValueError(f"{name} is empty: expected one value per row")
    return values


def _all_finite(values: NDArray[np.float64], name: str, advice: str) -> None:
    finite = np.isfinite(values)
    if finite.all():
        return
    missing, rows = np.isnan(values[~finite]), np.flatnonzero(~finite.reshape(len(values), -1).all(axis=1))
    kind = "NaN (missing)" if missing.all() else "NaN or infinite" if missing.any() else "infinite"
    raise ValueError(f"{name} holds {np.sum(~finite)} {kind} value(s), the first at row {rows[0]}: {advice}")


def _read_outcome(y: Any) -> NDArray[np.float64]:
    raw = _flat(_to_numpy(y, "y"), "y")
    values = _as_floats(raw, "y")
    if raw.dtype.kind not in "biu":  # integers are finite
        _all_finite(values, "y", "remove those rows, or decide what their outcome is, before fitting or scoring")
    return values


def _read_weight(sample_weight: Any) -> NDArray[np.float64]:
    values = _as_floats(_flat(_to_numpy(sample_weight, "sample_weight"), "sample_weight"), "sample_weight")
    _all_finite(values, "sample_weight", "every weight must be a finite number; 0 leaves a row out")
    if (values < 0).any():
        row = int(np.argmax(values < 0))
        raise ValueError(
            f"sample_weight holds {np.sum(values < 0)} negative value(s), the first {values[row]:g} at row {row}: "
            "weights must be 0 or larger"
        )
    return values


def _same_length(columns: dict[str, NDArray[Any]]) -> None:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {found}; each row needs one of each"
        )


# --------------------------------------------------------------------------------------------- arms


def is_missing(value: Any) -> bool:
    """Whether one value is None, NaN or another library's missing value."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth value, nor has an array, which is no missing value
        return type(value).__name__ == "NAType"


def _read_labels(treatment: Any) -> NDArray[Any]:
    if is_packed(treatment):
        raise ValueError("treatment is a packed target: pass the treatment labels, or the packed array as y")
    labels = _flat(_to_numpy(treatment, "treatment"), "treatment")
    if labels.dtype.kind not in "biufUO":
        raise TypeError(f"treatment is of type {labels.dtype}: expected numbers, booleans or text as arm labels")
    return np.ascontiguousarray(labels)


def _factorize(labels: NDArray[Any]) -> tuple[list[Any], NDArray[np.uint8]]:
    """Distinct labels and, per row, the position of its label among them."""
    if labels.dtype.kind in "biu":
        labels = labels.view(np.uint8) if labels.dtype.kind == "b" and labels.dtype.itemsize == 1 else labels
        low, high = int(labels.min()), int(labels.max())
        if high - low == 1 and high < 2**63:  # the usual case, without a table to look codes up in
            second = np.empty(len(labels), dtype=np.uint8)
            np.subtract(labels, low, out=second, dtype=np.intp, casting="unsafe")
            return [low, high], second
        if high - low < 4096 and high < 2**63:
            shifted = np.subtract(labels, low, dtype=np.intp, casting="unsafe")
            present = np.flatnonzero(np.bincount(shifted))
            _not_too_many(len(present), labels)
            lookup = np.zeros(high - low + 1, dtype=np.uint8)
            lookup[present] = np.arange(len(present))
            return (present + low).tolist(), lookup[shifted]
    if labels.dtype.kind == "O":
        positions: dict[Any, int] = {}
        try:
            codes = np.fromiter((positions.setdefault(v, len(positions)) for v in labels), np.intp, len(labels))
        except TypeError:
            raise TypeError(
                "treatment holds values that cannot be labels: expected numbers, booleans or text"
            ) from None
        found = list(positions)
    else:
        distinct = np.unique(labels)
        codes, found = np.searchsorted(distinct, labels), distinct.tolist()
    missing = {j for j, label in enumerate(found) if is_missing(label)}
    if missing:
        rows = np.flatnonzero(np.isin(codes, list(missing)) | (codes >= len(found)))
        raise ValueError(
            f"treatment is missing in {len(rows)} row(s), the first at row {rows[0]}: "
            "remove rows whose arm is unknown, they cannot tell anything about an effect"
        )
    _not_too_many(len(found), labels)
    return found, codes.astype(np.uint8)


def _not_too_many(count: int, labels: NDArray[Any]) -> None:
    if count > _MOST_LABELS:
        raise ValueError(
            f"treatment has {count:,} distinct values in {len(labels):,} rows (such as {labels[0]!r}): expected the labels of "
            f"at most {_MOST_LABELS} arms; is a feature, an id or the outcome in its place?"
        )


def plain_label(label: Any) -> Label:
    """A label as a plain Python value, or an error if it is of a kind that cannot be one."""
    value = label.item() if isinstance(label, np.generic) else label
    if not isinstance(value, bool | int | float | str):
        raise TypeError(f"treatment holds {value!r} of type {type(value).__name__}: expected numbers, booleans or text")
    return value


def _encode_arms(
    raw: NDArray[Any], control: Label | None, known: tuple[Label, Sequence[Label]] | None, any_control: bool
) -> tuple[NDArray[np.uint8], Label, list[Label]]:
    found, codes = _factorize(raw)
    labels = [bool(label) if raw.dtype.kind == "b" else plain_label(label) for label in found]
    if known is None:
        control = _find_control(labels, control, any_control)
        arms = sort_labels([label for label in labels if label != control])
        if not arms:
            raise ValueError(
                f"treatment holds one arm only, {labels[0]!r} (n_samples={len(raw)}): an uplift model compares at least two arms"
            )
    else:
        control, arms = known[0], list(known[1])
        _check_known(labels, control, arms)
    order = [control, *arms]
    if labels == order:
        return codes, control, arms
    lookup = np.array([order.index(label) for label in labels], dtype=np.uint8)
    return lookup[codes], control, arms


def _find_control(labels: list[Label], control: Label | None, any_control: bool) -> Label:
    listed = ", ".join(repr(label) for label in sort_labels(labels))
    if control is not None:
        if control not in labels:
            raise ValueError(f"control={control!r} is not among the labels of treatment: {listed}")
        return labels[labels.index(control)]
    if len(labels) == 1:
        return labels[0]
    matches = [label for label in labels if str(label).strip().casefold() in _CONTROL_WORDS]
    if len(matches) == 1:
        return matches[0]
    if any_control:
        return sort_labels(labels)[0]
    found = "none of the labels looks like a control arm" if not matches else f"{matches!r} all look like control arms"
    raise ValueError(f"{found} (labels found: {listed}): say which it is, as in control={sort_labels(labels)[0]!r}")


def _check_known(labels: list[Label], control: Label, arms: list[Label]) -> None:
    expected = [control, *arms]
    strange = [label for label in labels if label not in expected]
    if strange:
        raise ValueError(
            f"treatment holds {strange!r}, which the model has not seen (control {control!r}, arms {arms!r}): "
            "score only rows of arms it was fitted on"
        )
    absent = [label for label in expected if label not in labels]
    if absent:
        raise ValueError(
            f"arm(s) {absent!r} have no row in this sample ({len(labels)} of {len(expected)} arms are there), so their effect "
            "cannot be judged; in cross-validation pass cv=UpliftKFold(), which keeps every arm in every fold"
        )


def _check_arm_weights(weight: NDArray[np.float64], arm: NDArray[np.uint8], labels: list[Label]) -> None:
    totals = np.bincount(arm, weights=weight, minlength=len(labels))
    empty = [labels[j] for j in np.flatnonzero(totals <= 0)]
    if empty:
        raise ValueError(
            f"sample_weight is zero for every row of arm(s) {empty!r}: each arm needs some positive weight"
        )


def _as_binary(values: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = values.min(), values.max()
    success: NDArray[np.bool_] = values == high
    if low == high:
        raise ValueError(f"y has one value only, {low:g} (1 class): this model learns from two, such as 0 and 1")
    if not (success | (values == low)).all():
        raise ValueError(
            f"y has {len(np.unique(values)):,} distinct values (from {low:g} to {high:g}) and this model needs exactly two: "
            "choose a threshold yourself, as in y = (spend > 0), or use a model for real-valued outcomes such as UpliftForest; "
            "upturn never turns an outcome into two classes by itself"
        )
    return success.astype(np.float64)
