"""Turning other data into experiments: survival times into success, an attribute into a treatment."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Callable
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import ArrayLike

from upturn._arrays import Bools, Ints
from upturn._columns import as_column, as_floats, check_finite, check_same_length, check_sums, to_numpy
from upturn._parameters import check, is_number, number, one_of
from upturn._table import read_frame, read_table

__all__ = ["AttributeSplit", "split_by_attribute", "survival_to_uplift"]


def survival_to_uplift(time: ArrayLike, event: ArrayLike | None = None, threshold: float | str = "median") -> Ints:
    """Success is to be observed for at least ``threshold``: ``y = 1 if time >= threshold else 0``.

    .. warning::

       **The event indicator is ignored**, as in the papers whose benchmarks this reproduces: a time counts as observed
       whether it ended in the event or not, so people who left the study early in good health count as failures. When
       censoring does not depend on the treatment, a model trained on such outcomes still makes the right decisions, but
       its effects are not effects on survival [1]_; when it does, they are biased. For effects on survival use
       :func:`survival_outcome`.

    The threshold is the median of all observed times, both arms together.

    Parameters
    ----------
    time : array of shape (n,)
        Observed times, censored or not.
    event : array of shape (n,), optional
        Whether the event was seen (1) or the time is censored (0). Checked, and **not used**: see above.
    threshold : float or "median"
        The time that counts as a success.

    Returns
    -------
    y : int64 array of shape (n,), 0 or 1

    See Also
    --------
    survival_outcome : Survival or restricted mean survival time at a horizon, with censoring taken into account.

    References
    ----------
    .. [1] M. Jaśkowski and S. Jaroszewicz, "Uplift modeling for clinical trial data", ICML Workshop on Clinical Data
       Analysis, 2012.

    Examples
    --------
    >>> from upturn.datasets import survival_to_uplift
    >>> survival_to_uplift([3.0, 8.0, 5.0, 1.0], event=[1, 0, 1, 1]).tolist()
    [0, 1, 1, 0]
    """
    times = as_floats(as_column(to_numpy(time, "time"), "time"), "time")
    check_finite(times, "time", "drop those rows")
    check_sums(times, "time", 1.0)  # the median is the middle of two
    if event is not None:
        events = as_floats(as_column(to_numpy(event, "event"), "event"), "event")
        check_same_length({"time": times, "event": events})
        if not np.isin(events, (0, 1)).all():
            raise ValueError("event must be 1 where the event was seen and 0 where the time is censored.")
    check("threshold", threshold, one_of("median") | number().named("a time"))
    cut = float(np.median(times)) if isinstance(threshold, str) else threshold
    return (times >= cut).astype(np.int64)


class AttributeSplit(NamedTuple):
    """What `split_by_attribute` returns: the features left, the treatment (0/1), and what was removed and why."""

    X: Any
    treatment: Ints
    removed: dict[str, float]


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _meets(column: nw.Series[Any], sign: str, value: Any) -> Bools:
    """Return where the condition holds; a missing value meets ``!=`` and nothing else."""
    if not isinstance(sign, str) or (sign != "in" and sign not in _OPERATORS):
        raise ValueError(f"{sign!r} is no comparison; expected one of {[*_OPERATORS, 'in']}.")
    wanted = value if sign == "in" and isinstance(value, list | tuple | set | frozenset | range) else [value]
    if (sign == "in" and wanted is not value) or not all(_is_cell(one) for one in wanted):
        several = "a list of numbers or words" if sign == "in" else "a number or a word"
        raise ValueError(f"{column.name} {sign} {reprlib.repr(value)}: expected {several} to compare the column with")
    known = ~_missing(column)
    values = np.asarray(column.to_numpy())[known]
    met = np.full(len(known), sign == "!=")
    try:
        met[known] = np.isin(values, list(wanted)) if sign == "in" else _OPERATORS[sign](values, value)
    except TypeError:
        raise ValueError(
            f"{column.name} {sign} {value!r}: the column holds {column.dtype} values, which cannot be compared with that"
        ) from None
    return met


def _is_cell(value: Any) -> bool:
    """Whether a cell of a table may hold a value, missing ones left aside."""
    return isinstance(value, str | bool | np.bool_) or is_number(value)


def _missing(column: nw.Series[Any]) -> Bools:
    gone = column.is_null().to_numpy()
    if column.dtype.is_float():
        gone = gone | np.isnan(column.to_numpy().astype(np.float64))
    return np.asarray(gone, dtype=bool)


def _dependence(column: nw.Series[Any], treated: Bools) -> float:
    """Return how far the two groups differ in a column: relative difference of means, or largest of probabilities."""
    known = ~_missing(column)
    in_treatment, in_control = known & treated, known & ~treated
    if not in_treatment.any() or not in_control.any():
        return 0.0
    if column.dtype.is_numeric():
        values = column.to_numpy().astype(np.float64)
        mean_t, mean_c = values[in_treatment].mean(), values[in_control].mean()
        larger = max(abs(mean_t), abs(mean_c))
        return float(abs(mean_t - mean_c) / larger) if larger > 0 else 0.0
    words = np.array([str(value) for value in column.to_list()], dtype=object)  # also what no encoding knows
    codes = np.unique(words[known], return_inverse=True)[1]
    arm = treated[known]
    levels = int(codes.max()) + 1
    share_t = np.bincount(codes[arm], minlength=levels) / arm.sum()
    share_c = np.bincount(codes[~arm], minlength=levels) / (~arm).sum()
    return float(np.abs(share_t - share_c).max())


def split_by_attribute(X: Any, condition: tuple[str, str, Any], threshold: float = 0.25) -> AttributeSplit:
    """Make an experiment of a plain table: rows that meet a condition are the treatment group.

    The attribute of the condition is removed, and with it every attribute that depends on the split:

    - a numeric one when the means m_T, m_C of the groups differ by more than a quarter,
      ``|m_T - m_C| > threshold * max(|m_T|, |m_C|)``;
    - a categorical one when the probability of any of its values differs by more than ``threshold``.

    Missing values are left out of means and probabilities. A row whose split attribute is missing goes to control,
    except for ``!=``, which it meets. What is left is *not* a randomised experiment: weak dependence remains.

    Parameters
    ----------
    X : pandas, polars or pyarrow table
        Columns of numbers are numeric attributes, all others categorical.
    condition : (column, comparison, value)
        With a comparison of ``==, !=, <, <=, >, >=, in``.
    threshold : float
        The largest difference an attribute may have and stay.

    Returns
    -------
    AttributeSplit
        ``X`` without the removed columns, in the library it came in; ``treatment``, 1 where the condition holds;
        ``removed``, the difference measured for each removed column.

    References
    ----------
    P. Rzepakowski and S. Jaroszewicz, "Decision trees for uplift modeling with single and multiple treatments",
    Knowledge and Information Systems 32, 2012. Ł. Zaniewicz, *Support Vector Machines for Uplift Modeling*, 2018,
    section 6.2.

    Examples
    --------
    >>> import pandas as pd
    >>> from upturn.datasets import split_by_attribute
    >>> X = pd.DataFrame({"sex": ["m", "f", "m", "f"], "height": [1.9, 1.1, 2.0, 1.2], "age": [30, 31, 32, 33]})
    >>> split = split_by_attribute(X, ("sex", "==", "m"))
    >>> split.treatment.tolist(), list(split.X.columns), sorted(split.removed)
    ([1, 0, 1, 0], ['age'], ['height', 'sex'])
    """
    check("threshold", threshold, number(least=0))
    frame = read_frame(X)
    if frame is None:
        raise TypeError(
            f"X is a {type(X).__name__}: the condition names a column, so X must have names; make it a pandas, polars or pyarrow table"
        )
    read_table(X, quiet=True)  # for its complaints about what the columns hold
    if not isinstance(condition, list | tuple) or len(condition) != 3:
        raise ValueError(
            f"condition={condition!r}: expected a column, a comparison and a value, as in ('age', '>', 60)"
        )
    column, sign, value = condition
    if not isinstance(column, str) or column not in frame.columns:
        raise ValueError(f"the condition names the column {column!r}, but X has {list(frame.columns)}.")
    treated = _meets(frame[column], sign, value)
    if treated.all() or not treated.any():
        group = "treatment" if treated.all() else "control"
        raise ValueError(f"every row is {group}: {column} {sign} {value!r} does not split these {len(treated)} rows.")
    differences = {name: _dependence(frame[name], treated) for name in frame.columns}
    removed = {name: size for name, size in differences.items() if size > threshold or name == column}
    return AttributeSplit(frame.drop(list(removed)).to_native(), treated.astype(np.int64), removed)
