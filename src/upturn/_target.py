"""The gate for outcomes, treatments and weights: the only place that looks at raw ``y`` and ``treatment``.

Raw columns of any library go in; a :class:`Target` of plain arrays comes out. Everything behind this gate may rely
on it: float64 outcomes and weights without NaN, arms as small integers with control first, all C-contiguous.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Arms, Bools, Floats, Indices, Ints
from upturn._columns import (
    as_column,
    as_floats,
    check_finite,
    check_magnitude,
    check_same_length,
    is_missing,
    power_of_two,
    read_outcome,
    read_weight,
    to_numpy,
)
from upturn._parameters import LABEL, check
from upturn._rows import by_label, check_order, warn_if_swapped

Label = bool | int | float | str
Outcome = Literal["any", "binary"]

_CONTROL_WORDS = {
    "control", "ctrl", "placebo", "none", "no", "holdout", "untreated", "baseline", "0", "0.0", "false",
}  # fmt: skip
_MOST_LABELS = 255  # arm codes are uint8
_APART = 1e60  # how many times the weight of one arm another one may have, for squares of both to be numbers
_ORDINARY = 30  # weights up to 2^30, and from 2^-30, are taken as they are
_SHOWN = 12  # labels in an error


@dataclass(frozen=True)
class Target:
    """An experiment's outcome, arms and weights, encoded.

    ``arm`` is 0 for control and 1 … K for ``arms[0]`` … ``arms[K - 1]``; a ``weight`` of None means 1 everywhere. A weight of 1
    stands for ``unit`` of what the user gave.
    """

    y: Floats
    arm: Arms
    weight: Floats | None
    control: Label
    arms: list[Label]
    unit: float = 1.0

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n_arms(self) -> int:
        """Number of treatment arms, control not counted."""
        return len(self.arms)

    @property
    def labels(self) -> list[Label]:
        """All labels, control first: ``labels[arm]`` undoes the encoding."""
        return [self.control, *self.arms]

    @property
    def weights(self) -> Floats:
        """The weights, ones when there are none."""
        return np.ones(len(self.y)) if self.weight is None else self.weight

    @property
    def sizes(self) -> Ints:
        """Number of rows of control and of every arm."""
        return np.bincount(self.arm, minlength=self.n_arms + 1)

    @property
    def totals(self) -> Floats:
        """Weight of control and of every arm."""
        return np.asarray(np.bincount(self.arm, weights=self.weight, minlength=self.n_arms + 1), dtype=np.float64)

    def pair(self, k: int) -> Indices:
        """Row numbers of control and arm ``k`` (1 … K)."""
        return np.flatnonzero((self.arm == 0) | (self.arm == k))

    def take(self, rows: NDArray[Any]) -> Target:
        """The target of some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, y=self.y[rows], arm=self.arm[rows], weight=weight)

    def name_of(self, code: int) -> str:
        """What to call an arm in a message."""
        return f"the {'treatment' if code else 'control'} arm {self.labels[code]!r}"


def pack(y: Any, treatment: Any, sample_weight: Any = None, *, control: Label | None = None) -> NDArray[np.void]:
    """Put outcome, treatment and weight into one array, which every scikit-learn tool takes as ``y``.

    Parameters
    ----------
    y : array-like of shape (n,)
        The outcome.
    treatment : array-like of shape (n,)
        The label of the arm each row was in.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    control : label, optional
        Which label is control, when its name does not tell: said once, it holds wherever the packed target goes, as every row
        carries it.

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
    check_order(y=y, treatment=treatment, sample_weight=sample_weight)
    outcome, labels = read_outcome(y), read_labels(treatment)
    found, _ = find_labels(labels)  # for its complaints
    columns = {"y": outcome, "treatment": labels}
    if sample_weight is not None:
        columns["weight"] = read_weight(sample_weight)
    if control is not None:
        label = _find_control(found, control, any_control=False)
        columns["control"] = np.full(len(labels), label, dtype=labels.dtype)
    check_same_length({"sample_weight" if name == "weight" else name: column for name, column in columns.items()})
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


def packed_control(packed: Any) -> Label | None:
    """The control arm that a packed target names, if it does."""
    if "control" not in (packed.dtype.names or ()) or len(packed) == 0:
        return None
    labels, _ = find_labels(np.ascontiguousarray(packed["control"]))
    if len(labels) > 1:
        raise ValueError(
            f"y is packed with several control arms, {sort_labels(labels)!r}: put targets together only where control is the same"
        )
    return labels[0]


def open_packed(
    y: Any, treatment: Any, sample_weight: Any, control: Label | None
) -> tuple[Any, Any, Any, Label | None]:
    """Outcome, treatment, weight and control, out of a packed target if y is one; nothing may be said twice."""
    if not is_packed(y):
        return y, treatment, sample_weight, control
    if treatment is not None:
        raise ValueError("treatment was given twice, in the packed y and as an argument: leave one out")
    named = packed_control(y)
    if named is not None and control is not None and named != control:
        raise ValueError(f"control={control!r}, and y is packed with control={named!r}: leave one out")
    y, treatment, weight = unpack(y)
    if weight is not None and sample_weight is not None:
        raise ValueError("sample_weight was given twice, in the packed y and as an argument: leave one out")
    return y, treatment, weight if sample_weight is None else sample_weight, named if control is None else control


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
    y, treatment, sample_weight, control = open_packed(y, treatment, sample_weight, control)
    check_order(y=y, treatment=treatment, sample_weight=sample_weight)
    warn_if_swapped(y)
    if y is None:
        raise ValueError("an uplift model requires y to be passed, but the target y is None")
    if treatment is None:
        raise ValueError(
            "treatment is missing: pass fit(X, y, treatment), or pack it with the outcome as y=upturn.pack(y, treatment); "
            "inside GridSearchCV and other scikit-learn tools use the packed form, or turn metadata routing on "
            "with sklearn.set_config(enable_metadata_routing=True)"
        )
    values, labels = read_outcome(y), read_labels(treatment)
    weight = None if sample_weight is None else read_weight(sample_weight)
    columns = {"y": values, "treatment": labels}
    check_same_length(columns if weight is None else {**columns, "sample_weight": weight})
    arm, control, arms = _encode_arms(labels, control, known, any_control)
    if weight is not None:
        _check_arm_weights(weight, arm, [control, *arms])
    if outcome == "binary":
        values = _as_binary(values)
    return Target(values, arm, weight, control, arms)


def read_measured(
    y: Any, treatment: Any = None, sample_weight: Any = None, *, control: Label | None = None, known: Any = None
) -> Target:
    """An experiment that something is measured in: sums of weighted outcomes, and their squares, are numbers.

    Outcomes whose squares are not are refused. Weights of absurd size change nothing but the unit of counts, so they are divided by
    a power of two, which is exact; ordinary ones keep their bits.
    """
    return in_units(read_target(y, treatment, sample_weight, control=control, known=known))


def in_units(target: Target) -> Target:
    """The same experiment with weights of a size that can be squared and summed."""
    check_magnitude(target.y, "y")
    weight, unit = scale_weight(target.weight)
    if weight is None:
        return target
    check_totals(np.bincount(target.arm, weights=weight, minlength=target.n_arms + 1), target)
    return target if unit == 1.0 else replace(target, weight=weight, unit=unit)


def check_totals(totals: NDArray[Any], target: Target) -> None:
    """Refuse arms whose weights are too far apart."""
    few = int(totals.argmin())
    if totals[few] < totals.max() / _APART:
        raise ValueError(
            f"sample_weight gives {target.name_of(few)} less than 1/{_APART:g} of the weight of another arm: such arms cannot be compared in floats"
        )


def scale_weight(weight: Floats | None) -> tuple[Floats | None, float]:
    """Weights divided by a power of two where the largest lies outside 2^±30, and that power; as they are otherwise."""
    if weight is None:
        return None, 1.0
    unit = weight_unit(float(weight.max()))
    return (weight, 1.0) if unit == 1.0 else (weight / unit, unit)


def weight_unit(largest: float) -> float:
    """What weights are divided by, given the largest: 1 for ordinary ones."""
    if not largest or 2.0**-_ORDINARY <= largest <= 2.0**_ORDINARY:
        return 1.0
    return power_of_two(largest)


def read_score(score: Any, target: Target) -> Floats:
    """Check uplift scores and return them as a matrix with one column per treatment arm.

    The columns of a frame are put into the order of the arms by their names; see :func:`upturn._rows.by_label`.
    """
    return read_ranking(by_label(score, target.arms, "score", target.control), len(target), target.n_arms)


def read_ranking(score: Any, n: int, n_arms: int = 1) -> Floats:
    """Scores of people of so many arms, which columns are of by their place."""
    raw = to_numpy(score, "score")
    shape = raw.shape
    if not shape or raw.size == 0:
        raise ValueError(f"score has shape {shape}: expected ({n},) or ({n}, {n_arms}), a number for every row")
    values = as_floats(raw, "score")
    check_finite(values, "score", "every row needs a finite score; look at the model that made it")
    matrix = values[:, None] if values.ndim == 1 else values
    if matrix.ndim != 2:
        raise ValueError(f"score has shape {shape}: expected ({n},) or ({n}, {n_arms})")
    if matrix.shape[0] != n:
        raise ValueError(f"score has {matrix.shape[0]} rows and y has {n}: they must describe the same rows")
    if matrix.shape[1] != n_arms:
        raise ValueError(
            f"score has {matrix.shape[1]} column(s) and treatment has {n_arms} arm(s) besides control: expected one column "
            "per arm, in the sorted order of the labels, or of a frame under their names; to judge one arm, keep only its rows and control's"
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


# --------------------------------------------------------------------------------------------- arms


@dataclass(frozen=True)
class Coded:
    """Labels of arms, told once, and the position of every row's among them."""

    labels: list[Label]
    codes: NDArray[Any]

    def __len__(self) -> int:
        return len(self.codes)


def read_labels(labels: Any, name: str = "treatment") -> Any:
    """Labels of arms as a column; ``name`` is what an error calls it."""
    if isinstance(labels, Coded):
        _not_too_many(len(labels.labels), len(labels), labels.labels[0])
        return labels
    if is_packed(labels):
        raise ValueError(f"{name} is a packed target: pass the {name} labels, or the packed array as y")
    labels = as_column(to_numpy(labels, name), name)
    if labels.dtype.kind not in "biufUO":
        raise TypeError(f"{name} is of type {labels.dtype}: expected numbers, booleans or text as arm labels")
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
            _not_too_many(len(present), len(labels), labels[0])
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
            "remove rows whose arm is unknown, they cannot tell anything about an effect; where a label is the text 'None', read the table so "
            "that it stays text, as in pandas.read_csv(path, keep_default_na=False)"
        )
    _not_too_many(len(found), len(labels), found[0])
    if any(isinstance(label, float) and math.isinf(label) for label in found):
        raise ValueError(
            "treatment holds an infinite number, which is no label of an arm: remove those rows, or name the arm"
        )
    return found, codes.astype(np.uint8)


def _not_too_many(count: int, n: int, example: Any) -> None:
    if count > _MOST_LABELS:
        shown = example.item() if isinstance(example, np.generic) else example
        raise ValueError(
            f"treatment has {count:,} distinct values in {n:,} rows (such as {shown!r}): expected the labels of "
            f"at most {_MOST_LABELS} arms; is a feature, an id or the outcome in its place?"
        )


def plain_label(label: Any) -> Label:
    """A label as a plain Python value, or an error if it is of a kind that cannot be one."""
    value = label.item() if isinstance(label, np.generic) else label
    if not isinstance(value, bool | int | float | str):
        raise TypeError(f"treatment holds {value!r} of type {type(value).__name__}: expected numbers, booleans or text")
    return value


def find_labels(raw: Any) -> tuple[list[Label], NDArray[np.uint8]]:
    """Distinct labels as plain values and, per row, the position of its label among them."""
    if isinstance(raw, Coded):
        return raw.labels, raw.codes.astype(np.uint8)
    found, codes = _factorize(raw)
    return [bool(label) if raw.dtype.kind == "b" else plain_label(label) for label in found], codes


def name_arms(
    labels: list[Label], control: Label | None, n: int, any_control: bool = False
) -> tuple[Label, list[Label]]:
    """Control and the treatment arms in their order, of the labels that were found in ``n`` rows."""
    control = _find_control(labels, control, any_control)
    arms = sort_labels([label for label in labels if label != control])
    if not arms:
        raise ValueError(
            f"treatment holds one arm only, {labels[0]!r} (n_samples={n}): an uplift model compares at least two arms"
        )
    return control, arms


def _encode_arms(
    raw: Any, control: Label | None, known: tuple[Label, Sequence[Label]] | None, any_control: bool
) -> tuple[NDArray[np.uint8], Label, list[Label]]:
    labels, codes = find_labels(raw)
    if known is None:
        control, arms = name_arms(labels, control, len(raw), any_control)
    else:
        control, arms = known[0], list(known[1])
        _check_known(labels, control, arms)
    order = [control, *arms]
    if labels == order:
        return codes, control, arms
    lookup = np.array([order.index(label) for label in labels], dtype=np.uint8)
    return lookup[codes], control, arms


def _find_control(labels: list[Label], control: Label | None, any_control: bool) -> Label:
    check("control", control, LABEL)
    listed = ", ".join(repr(label) for label in sort_labels(labels)[:_SHOWN])
    listed += f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
    if control is not None:
        if control not in labels:
            raise ValueError(f"control={control!r} is not among the labels of treatment: {listed}")
        return labels[labels.index(control)]
    if len(labels) == 1:
        return labels[0]
    matches = [label for label in labels if _sounds_like_control(label)]
    if len(matches) == 1:
        return matches[0]
    if any_control:
        return sort_labels(labels)[0]
    found = "none of the labels looks like a control arm" if not matches else f"{matches!r} all look like control arms"
    raise ValueError(f"{found} (labels found: {listed}): say which of them it is, with control=LABEL")


def _sounds_like_control(label: Label) -> bool:
    """Whether a label is one of the usual words for control, or begins with "no "."""
    word = str(label).strip().casefold()
    return word in _CONTROL_WORDS or word.startswith("no ")


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


def _check_arm_weights(weight: Floats, arm: NDArray[np.uint8], labels: list[Label]) -> None:
    totals = np.bincount(arm, weights=weight, minlength=len(labels))
    empty = [labels[j] for j in np.flatnonzero(totals <= 0)]
    if empty:
        raise ValueError(
            f"sample_weight is zero for every row of arm(s) {empty!r}: each arm needs some positive weight"
        )


def _as_binary(values: Floats) -> Floats:
    low, high = values.min(), values.max()
    success: Bools = values == high
    if low == high:
        raise ValueError(f"y has one value only, {low:g} (1 class): this model learns from two, such as 0 and 1")
    if not (success | (values == low)).all():
        raise ValueError(
            f"y has {len(np.unique(values)):,} distinct values (from {low:g} to {high:g}) and this model needs exactly two: "
            "choose a threshold yourself, as in y = (spend > 0), or use a model for real-valued outcomes such as UpliftForest; "
            "upturn never turns an outcome into two classes by itself"
        )
    return success.astype(np.float64)
