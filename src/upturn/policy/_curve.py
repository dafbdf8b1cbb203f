"""What every budget would gain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from upturn._arrays import Floats, Ints
from upturn._parameters import check, whole
from upturn._results import level_text, library_of, new_frame, number_text
from upturn._rows import same_rows
from upturn._seeds import make_seed
from upturn._target import Label
from upturn._units import is_rate, unit_scale, unit_text
from upturn.metrics._replicates import Replicates
from upturn.policy._gate import read_plan
from upturn.policy._measure import PathGains, measure, measure_effects, measure_money, read_effects
from upturn.policy._path import Path, make_path
from upturn.policy._rule import prices

_COLUMNS = (
    "budget", "treated", "gain", "low", "high", "predicted", "random", "profit", "profit_low", "profit_high", "random_profit",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class GainCurve:
    """What every budget gains, measured in an experiment. Made by :func:`gain_curve`.

    Attributes
    ----------
    budget : array
        Money spent when there are costs, else people treated; from 0 to the end of the path.
    treated : array
        Share of people treated, by their weights where they have some.
    gain, low, high : arrays
        Measured gain per person, treated or not, and its pointwise interval; ``low`` and ``high`` are None without one.
    predicted : array
        The gain per person by the model.
    random : array
        The gain per person of spending as much on people at random, in the same mixture of arms. Where people differ
        in what they cost, that may be fewer or more people.
    profit, profit_low, profit_high, random_profit : arrays or None
        value·gain - spent; None without a value.
    interval : float or None
        Confidence level of the intervals.
    library : str or None
        Name of the library the data came in, which ``to_frame`` makes a frame of.
    rate : bool
        Whether the outcome is yes or no, so that gains are printed and drawn per 1,000 people.
    n_treated : int array or None
        Number of people treated.
    spent : array or None
        Money spent per person, treated or not; where people have weights, they count with them. None without costs.
    marginal : array or None
        Predicted gain (in money, given a value) per unit of cost, or per person without costs, of the last upgrade that every
        budget pays for; infinite where it pays for none.
    """

    budget: Floats
    treated: Floats
    gain: Floats
    low: Floats | None
    high: Floats | None
    predicted: Floats
    random: Floats
    profit: Floats | None
    profit_low: Floats | None
    profit_high: Floats | None
    random_profit: Floats | None
    interval: float | None
    library: str | None = field(default=None, compare=False)
    rate: bool = False
    n_treated: Ints | None = None
    spent: Floats | None = None
    marginal: Floats | None = None

    @property
    def best(self) -> int:
        """Where the measured profit (without a value, the gain) is largest. The maximum of a noisy curve is optimistic."""
        return int(np.argmax(self.gain if self.profit is None else self.profit))

    def to_frame(self) -> Any:
        """The curve as a frame of the library the data came in."""
        columns = {name: getattr(self, name) for name in _COLUMNS}
        return new_frame({name: column for name, column in columns.items() if column is not None}, self.library)

    def __repr__(self) -> str:
        at, interval, money = self.best, "", self.profit is not None
        what, low, high = (
            (self.profit, self.profit_low, self.profit_high) if money else (self.gain, self.low, self.high)
        )
        rate = self.rate and not money
        scale, unit = unit_scale(rate), unit_text(rate)
        assert what is not None
        if low is not None and high is not None and self.interval is not None:
            interval = f", {level_text(self.interval)} interval {number_text(scale * low[at])} to {number_text(scale * high[at])}"
        return (
            f"GainCurve({len(self.budget)} points up to a budget of {number_text(self.budget[-1])}; best at {number_text(self.budget[at])}: "
            f"{'a net profit of ' if money else ''}{number_text(scale * what[at])} {unit}{interval})"
        )


@same_rows
def gain_curve(
    y: Any,
    score: Any,
    treatment: Any = None,
    *,
    cost: Any = None,
    value: Any = None,
    sample_weight: Any = None,
    control: Label | None = None,
    points: int = 101,
    propensity: Any = None,
    response: Any = None,
    groups: Any = None,
    interval: float | None = 0.95,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> GainCurve:
    """What every budget would gain, measured in an experiment the model was not fitted on.

    The budget is spent as :func:`target` spends it, to the last upgrade, the harmful ones at the end included.

    Parameters
    ----------
    y : array of shape (n,)
        Outcome; or a packed target, and then no treatment.
    score : array of shape (n,) or (n, K)
        Predicted uplift of the rows of the experiment, a column per treatment arm.
    treatment, sample_weight : arrays of shape (n,)
        Arm labels and weights of the experiment.
    cost, value : optional
        As in :func:`target`.
    control : label, optional
        Which label is control, when its name does not tell.
    points : int
        Number of budgets, evenly spaced along the path.
    propensity, response, groups, interval, n_bootstrap, random_state, n_jobs
        As in :func:`target`.

    Returns
    -------
    GainCurve

    Examples
    --------
    >>> from upturn.policy import gain_curve
    >>> curve = gain_curve([1, 0, 0, 1], [4, 3, 2, 1], [1, 0, 1, 0], points=3)
    >>> curve.budget, curve.gain
    (array([0., 2., 4.]), array([0. , 0.5, 0. ]))
    """
    check("points", points, whole(least=2).named("a whole number of at least 2 points; 101 is usual"))
    seed = make_seed(random_state)
    replicates = Replicates.read(interval, n_bootstrap, seed, n_jobs, groups)
    people, experiment = read_plan(
        score, cost=cost, value=value, y=y, treatment=treatment, sample_weight=sample_weight, control=control
    )
    if experiment is None:
        raise ValueError("y is None: a gain curve is measured in an experiment, so it needs y and treatment")
    path = make_path(*prices(people, people.cost is None), -np.inf, seed)
    stops = np.unique(np.linspace(0, len(path), points).round().astype(np.int64))
    effects = read_effects(experiment, propensity, response)
    if effects is None:
        units = measure(path, stops, experiment, experiment.y, replicates)
    else:
        units = measure_effects(path, stops, experiment, effects, replicates)
    money = measure_money(units, path, stops, people, experiment, effects, replicates)
    weight = experiment.weights / experiment.weights.sum()
    mixture = random = _mixture(path, stops, weight, people.n_arms)
    paid, average = np.zeros(len(stops)), np.zeros(people.n_arms)
    if people.cost is not None:  # as much money buys another number of people than of those who were chosen
        paid, average = _so_far(weight[path.row] * path.cost, stops), weight @ people.cost
        usual = mixture @ average
        random = mixture * np.divide(paid, usual, out=np.ones(len(paid)), where=usual > 0)[:, None]
        random = random / np.maximum(random.sum(axis=1), 1.0)[:, None]  # everybody is as many as there are
    profit = None if money is None else money.gains - paid
    low, high = _band(units, units.gains, replicates)
    profit_low, profit_high = (None, None) if money is None else _band(money, profit, replicates)
    return GainCurve(
        budget=_so_far(path.cost, stops),
        treated=mixture.sum(axis=1),
        gain=units.gains,
        low=low,
        high=high,
        predicted=_so_far(weight[path.row] * _extra_uplift(path, people.uplift), stops),
        random=random @ units.effects,
        profit=profit,
        profit_low=profit_low,
        profit_high=profit_high,
        random_profit=None if money is None else random @ (money.effects - average),
        interval=None if replicates is None else replicates.interval,
        library=library_of(score, y, treatment),
        rate=is_rate(experiment),
        n_treated=_so_far((path.before == 0).astype(np.int64), stops).astype(np.int64),
        spent=None if people.cost is None else paid,
        marginal=np.concatenate(([np.inf], path.slope))[stops],
    )


def _band(
    gains: PathGains, middle: Floats | None, replicates: Replicates | None
) -> tuple[Floats | None, Floats | None]:
    """Pointwise intervals around a curve."""
    if middle is None or replicates is None:
        return None, None
    margin = replicates.z * replicates.spread(gains.gain_samples)
    return middle - margin, middle + margin


def _extra_uplift(path: Path, uplift: Floats) -> Floats:
    """What every upgrade adds to the predicted uplift."""
    after, before = path.after.astype(np.intp) - 1, np.maximum(path.before, 1).astype(np.intp) - 1
    return np.asarray(uplift[path.row, after] - np.where(path.before > 0, uplift[path.row, before], 0.0))


def _so_far(change: Floats, stops: Ints) -> Floats:
    """The sum of the changes up to every stop."""
    return np.concatenate(([0.0], np.cumsum(change)))[stops]


def _mixture(path: Path, stops: Ints, weight: Floats, n_arms: int) -> Floats:
    """The share of people who have each arm at every stop, a column per arm."""
    mine = weight[path.row]
    changes = [mine * (path.after == k) - mine * (path.before == k) for k in range(1, n_arms + 1)]
    return np.column_stack([_so_far(change, stops) for change in changes])
