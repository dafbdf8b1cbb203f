"""The effect at the top of a ranking: the statistic behind ``uplift_at``."""

from __future__ import annotations

import numpy as np

from upturn._arrays import Floats
from upturn._parameters import check, number
from upturn._target import Target
from upturn.kernels.ranking import S0, S1, W0, W1
from upturn.metrics._formulas import rates_or_nan, ratio
from upturn.metrics._statistic import Statistic


def top_of_each_arm(target: Target, k: float) -> Statistic:
    """The rate difference between the top k of the arm and the top k of control."""
    return _separate(target, k, whole_rows=False)


def whole_rows_of_each_arm(target: Target, k: float) -> Statistic:
    """The same, k rounded down to whole rows."""
    return _separate(target, k, whole_rows=True)


def top_of_everybody(target: Target, k: float) -> Statistic:
    """The rate difference among the top k of both arms together."""
    return _joint(target, k, whole_rows=False)


def whole_rows_of_everybody(target: Target, k: float) -> Statistic:
    """The same, k rounded down to whole rows."""
    return _joint(target, k, whole_rows=True)


def top_of_effects(target: Target, k: float) -> Statistic:
    """The mean effect score among the top k of all rows."""
    _check_arms(target, k, whole_rows=False)

    def finish(sums: Floats, totals: Floats) -> Floats:
        return np.asarray(ratio(sums[..., 0, S1], sums[..., 0, W1]))

    share = _share(k, float(target.totals.sum()) * target.unit, whole_rows=False)
    return Statistic(finish, shares=np.array([share]), top=f"the top k={k!r}")


def _separate(target: Target, k: float, whole_rows: bool) -> Statistic:
    _check_arms(target, k, whole_rows)
    sizes = (
        target.totals * target.unit if target.n_arms == 1 else np.zeros(2)
    )  # of several arms only shares are asked for
    shares, place = np.unique([_share(k, float(size), whole_rows) for size in sizes], return_inverse=True)

    def finish(sums: Floats, totals: Floats) -> Floats:
        control, arm = sums[..., place[0], :], sums[..., place[1], :]
        return np.asarray(ratio(arm[..., S1], arm[..., W1]) - ratio(control[..., S0], control[..., W0]))

    return Statistic(finish, shares=shares, by_arm=True, top=f"the top k={k!r}")


def _joint(target: Target, k: float, whole_rows: bool) -> Statistic:
    _check_arms(target, k, whole_rows)
    return Statistic(
        lambda sums, totals: rates_or_nan(sums)[..., 0],
        shares=np.array([_share(k, float(target.totals.sum()) * target.unit, whole_rows)]),
        undefined=f"the best-scored k={k!r} of everybody are all of one arm; take a larger k, or ranking='separate'",
        top=f"the top k={k!r}",
    )


def _check_arms(target: Target, k: float, whole_rows: bool) -> None:
    if target.n_arms > 1 and (whole_rows or not isinstance(k, float)):
        raise ValueError("with several arms k must be a share such as 0.3: the arms differ in size")


def _share(k: float, size: float, whole_rows: bool) -> float:
    check("k", k, number().named("a share such as 0.3, or a number of rows as an int"))
    if isinstance(k, int | np.integer):
        if not 1 <= k <= size:
            raise ValueError(
                f"k={k}: as a number of rows it must be from 1 to {size:g}; a share is a float such as 0.3"
            )
        return float(k / size)
    if not 0 < k <= 1:
        raise ValueError(f"k={k!r}: as a share it must be above 0 and at most 1")
    if not whole_rows:
        return float(k)
    rows = int(size * k)
    if rows < 1:
        raise ValueError(f"k={k!r} of {size:g} rows is less than one row")
    return rows / size
