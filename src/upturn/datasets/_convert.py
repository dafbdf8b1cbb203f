"""Turning other data into experiments: survival times into success, an attribute into a treatment."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import ArrayLike

from upturn._arrays import Bools, Ints

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
    times = np.asarray(time, dtype=np.float64)
    if times.ndim != 1:
        raise ValueError(f"time has {times.ndim} dimensions; expected one time per row.")
    if times.size == 0:
        raise ValueError("time is empty: there is no median, and nobody to judge.")
    if not np.isfinite(times).all():
        raise ValueError(f"time holds {int((~np.isfinite(times)).sum())} missing or infinite values; drop those rows.")
    if event is not None:
        events = np.asarray(event)
        if events.shape != times.shape:
            raise ValueError(f"event has shape {events.shape}, time has {times.shape}; they describe the same rows.")
        if not np.isin(events, (0, 1)).all():
            raise ValueError("event must be 1 where the event was seen and 0 where the time is censored.")
    if isinstance(threshold, str):
        if threshold != "median":
            raise ValueError(f"threshold is {threshold!r}; expected 'median' or a time.")
        threshold = float(np.median(times))
    return (times >= threshold).astype(np.int64)


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
    if sign != "in" and sign not in _OPERATORS:
        raise ValueError(f"{sign!r} is no comparison; expected one of {[*_OPERATORS, 'in']}.")
    known = ~_missing(column)
    values = np.asarray(column.to_numpy())[known]
    met = np.full(len(known), sign == "!=")
    met[known] = np.isin(values, list(value)) if sign == "in" else _OPERATORS[sign](values, value)
    return met


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
    codes = np.unique(column.cast(nw.String).to_numpy()[known].astype(str), return_inverse=True)[1]
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
    frame = nw.from_native(X, eager_only=True)
    column, sign, value = condition
    if column not in frame.columns:
        raise ValueError(f"the condition names the column {column!r}, but X has {list(frame.columns)}.")
    treated = _meets(frame[column], sign, value)
    if treated.all() or not treated.any():
        group = "treatment" if treated.all() else "control"
        raise ValueError(f"every row is {group}: {column} {sign} {value!r} does not split these {len(treated)} rows.")
    differences = {name: _dependence(frame[name], treated) for name in frame.columns}
    removed = {name: size for name, size in differences.items() if size > threshold or name == column}
    return AttributeSplit(frame.drop(list(removed)).to_native(), treated.astype(np.int64), removed)
