"""What every budget would gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from upturn._arrays import Floats, Ints
from upturn._target import Label
from upturn.metrics import Table
from upturn.metrics._estimate import check_level
from upturn.policy._gate import read_costs, read_uplift, read_value
from upturn.policy._path import Path, make_path, measure
from upturn.policy._target import _prices, _read_experiment


@dataclass(frozen=True, repr=False)
class GainCurve:
    """What every budget gains, measured in an experiment. Made by :func:`gain_curve`.

    Attributes
    ----------
    budget : array
        Money spent when there are costs, else people treated; from 0 to the end of the path.
    treated : array
        Share of people treated.
    gain, low, high : arrays
        Measured gain per 1,000 people, and its pointwise interval.
    predicted : array
        The gain per 1,000 people by the model.
    random : array
        The gain per 1,000 people of spending as much on people at random, in the same mixture of arms. Where people differ
        in what they cost, that may be fewer or more people.
    profit, profit_low, profit_high, random_profit : arrays or None
        value·gain - cost per 1,000 people; None without a value.
    level : float
        Confidence level of the intervals.
    """

    budget: Floats
    treated: Floats
    gain: Floats
    low: Floats
    high: Floats
    predicted: Floats
    random: Floats
    profit: Floats | None
    profit_low: Floats | None
    profit_high: Floats | None
    random_profit: Floats | None
    level: float

    @property
    def best(self) -> int:
        """Where the measured profit (without a value, the gain) is largest. The maximum of a noisy curve is optimistic."""
        return int(np.argmax(self.gain if self.profit is None else self.profit))

    def to_frame(self) -> Any:
        """The curve as a pandas data frame."""
        return self._table().to_frame()

    def _table(self) -> Table:
        names = (
            "budget",
            "treated",
            "gain",
            "low",
            "high",
            "predicted",
            "random",
            "profit",
            "profit_low",
            "profit_high",
            "random_profit",
        )
        return Table({name: getattr(self, name) for name in names if getattr(self, name) is not None})

    def __repr__(self) -> str:
        at = self.best
        return (
            f"GainCurve({len(self.budget)} points up to a budget of {self.budget[-1]:,.6g}; best at {self.budget[at]:,.6g}: "
            f"{self.gain[at]:.4g} per 1,000 people, {self.level:.0%} interval {self.low[at]:.4g} to {self.high[at]:.4g})"
        )


def gain_curve(
    uplift: Any,
    y: Any,
    treatment: Any = None,
    *,
    cost: Any = None,
    value: Any = None,
    sample_weight: Any = None,
    control: Label | None = None,
    points: int = 101,
    interval: float = 0.95,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> GainCurve:
    """What every budget would gain, measured in an experiment the model was not fitted on.

    The budget is spent as :func:`target` spends it, to the last upgrade, the harmful ones at the end included.

    Parameters
    ----------
    uplift : array of shape (n,) or (n, K)
        Predicted uplift of the rows of the experiment, a column per treatment arm.
    y, treatment, sample_weight : arrays of shape (n,)
        The experiment; no treatment when ``y`` is packed.
    cost, value : optional
        As in :func:`target`.
    control : label, optional
        Which label is control, when its name does not tell.
    points : int
        Number of budgets, evenly spaced along the path.
    interval, n_bootstrap, random_state, n_jobs
        As in :func:`target`.

    Returns
    -------
    GainCurve

    Examples
    --------
    >>> from upturn.policy import gain_curve
    >>> curve = gain_curve([4, 3, 2, 1], [1, 0, 0, 1], [1, 0, 1, 0], points=3)
    >>> curve.budget, curve.gain
    (array([0., 2., 4.]), array([  0., 500.,   0.]))
    """
    matrix = read_uplift(uplift)
    n, level = len(matrix), check_level(interval)
    experiment = _read_experiment(y, treatment, sample_weight, control, matrix)
    if experiment is None:
        raise ValueError("y is None: a gain curve is measured in an experiment, so it needs y and treatment")
    if isinstance(points, bool) or not isinstance(points, int | np.integer) or points < 2:
        raise ValueError(f"points={points!r}: a curve needs at least 2 points, 101 is usual")
    costs, worth = read_costs(cost, n, experiment.labels), read_value(value, n)
    price, benefit, _ = _prices(matrix, costs, worth, costs is None)
    path = make_path(price, benefit, -np.inf, random_state)
    stops = np.unique(np.linspace(0, len(path), points).round().astype(np.int64))
    settings: dict[str, Any] = {"n_bootstrap": n_bootstrap, "random_state": random_state, "n_jobs": n_jobs}
    measured = measure(path, stops, experiment, experiment.y, **settings)
    spent = _so_far(path.cost, stops)
    z = float(ndtri(0.5 + level / 2))
    margin = z * 1000 * measured.gain_samples.std(axis=0, ddof=1)
    weight = np.ones(n) if experiment.weight is None else experiment.weight
    weight = weight / weight.sum()
    mixture = _mixture(path, stops, weight, matrix.shape[1])
    paid, average, random = np.zeros(len(stops)), np.zeros(matrix.shape[1]), mixture
    if costs is not None:  # as much money buys another number of people than of those who were chosen
        paid, average = _so_far(weight[path.row] * path.cost, stops), weight @ costs
        usual = mixture @ average
        random = mixture * np.divide(paid, usual, out=np.ones(len(paid)), where=usual > 0)[:, None]
        random = random / np.maximum(random.sum(axis=1), 1.0)[:, None]  # everybody is as many as there are
    profit = profit_margin = random_profit = None
    if worth is not None:
        money = (
            measured if isinstance(worth, float) else measure(path, stops, experiment, experiment.y * worth, **settings)
        )
        scale = worth if isinstance(worth, float) else 1.0
        profit = 1000 * (scale * money.gains - paid)
        random_profit = 1000 * random @ (scale * money.effects - average)
        profit_margin = z * 1000 * scale * money.gain_samples.std(axis=0, ddof=1)
    uplift_of = matrix[path.row, path.after.astype(np.intp) - 1]
    uplift_of = uplift_of - np.where(
        path.before > 0, matrix[path.row, np.maximum(path.before, 1).astype(np.intp) - 1], 0.0
    )
    return GainCurve(
        budget=spent,
        treated=mixture.sum(axis=1),
        gain=1000 * measured.gains,
        low=1000 * measured.gains - margin,
        high=1000 * measured.gains + margin,
        predicted=1000 * _so_far(weight[path.row] * uplift_of, stops),
        random=1000 * random @ measured.effects,
        profit=profit,
        profit_low=None if profit is None or profit_margin is None else profit - profit_margin,
        profit_high=None if profit is None or profit_margin is None else profit + profit_margin,
        random_profit=random_profit,
        level=level,
    )


def _so_far(change: Floats, stops: Ints) -> Floats:
    """The sum of the changes up to every stop."""
    return np.concatenate(([0.0], np.cumsum(change)))[stops]


def _mixture(path: Path, stops: Ints, weight: Floats, n_arms: int) -> Floats:
    """The share of people who have each arm at every stop, a column per arm."""
    mine = weight[path.row]
    changes = [mine * (path.after == k) - mine * (path.before == k) for k in range(1, n_arms + 1)]
    return np.column_stack([_so_far(change, stops) for change in changes])
