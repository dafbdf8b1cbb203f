"""Whom to treat: the best people, or person and arm, for a budget."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats
from upturn._target import Label, Target, decode, read_target
from upturn.metrics import Estimate, Table
from upturn.metrics._estimate import check_level
from upturn.policy._gate import check_arms, read_costs, read_labels, read_uplift, read_value
from upturn.policy._measure import Ruler, predicted_comparison
from upturn.policy._path import make_path


@dataclass(frozen=True, repr=False)
class Targeting:
    """Whom to treat, at what cost, and what that is expected to gain. Made by :func:`target`.

    Gains are against treating nobody, in units of the outcome and summed over the people on the list; ``per_1000`` is
    the same per 1,000 people of the list, treated or not. What was *measured* comes from an experiment on the same people
    and has an interval; what was *predicted* comes from the uplift that was passed, and is only as good as the model. Where
    the experiment has weights, people count with them in everything measured: gains, shares and the costs in a net profit.

    Attributes
    ----------
    recommended : array of shape (n,)
        The label everybody should get.
    order : int array
        The rows to treat, the most rewarding first.
    n, n_treated : int
        People on the list, and how many of them are treated.
    cost : float
        What the plan costs; 0 when no costs were given.
    left : float
        What is left of the budget; NaN without one.
    filled : int
        Upgrades beyond the cut, made because they fitted into what the first one that was too dear left over.
    gain, per_1000 : Estimate or float
        Measured gain, and the same per 1,000 people; predicted where there was no experiment.
    profit, profit_per_1000 : Estimate, float or None
        value·gain - cost, likewise; None without a value.
    predicted_gain, predicted_profit : float
        By the model. ``predicted_profit`` is None without a value.
    marginal_gain : float
        Predicted gain per unit of cost (per person, without costs) of the next upgrade that was not made: what a larger
        budget would bring. Minus infinity when there is none left.
    marginal_measured : Estimate or None
        Measured gain per unit of cost among the last tenth of the upgrades down to the cut.
    comparison : Table
        This plan beside treating nobody, as many people at random, and everybody with either arm: gains, costs and net
        profits per 1,000 people with their intervals, and by how much this plan is better, a paired difference (in net
        profit when there is a value).
    """

    recommended: NDArray[Any]
    arm: NDArray[np.uint8]
    order: NDArray[np.uint32]
    labels: list[Label]
    cost: float
    left: float
    filled: int
    gain: float
    per_1000: float
    profit: float | None
    profit_per_1000: float | None
    predicted_gain: float
    predicted_profit: float | None
    marginal_gain: float
    marginal_measured: Estimate | None
    comparison: Table
    _cut: float
    _by_person: bool
    _value: float | None
    _has_costs: bool
    _has_value: bool
    _floor: float

    @property
    def n(self) -> int:
        """People on the list."""
        return len(self.arm)

    @property
    def n_treated(self) -> int:
        """People to treat."""
        return int((self.arm > 0).sum())

    def apply(self, uplift: Any, cost: Any = None, value: Any = None) -> NDArray[Any]:
        """Use the same cut on other people: everybody whose upgrade is at least as rewarding as the last one made here.

        A plan that treats nobody has no such upgrade, and treats none of the others either. Whoever was only treated
        because he fitted into the rest of a budget (``filled``) does not move the cut. Where people tie at the cut, the plan
        chose among them at random; all of the others who tie with them are treated, and a warning says so.

        Parameters
        ----------
        uplift : array of shape (n,) or (n, K)
            Their predicted uplift.
        cost : as in :func:`target`
            Their costs, if the plan was made with costs.
        value : number or array of shape (n,), optional
            What a unit of their outcome is worth: needed if the plan was made with a value per person; a single value is
            remembered.

        Returns
        -------
        array of shape (n,)
            Labels.
        """
        matrix = read_uplift(uplift)
        if matrix.shape[1] != len(self.labels) - 1:
            raise ValueError(f"uplift has {matrix.shape[1]} column(s) and the plan {len(self.labels) - 1} arm(s)")
        costs, worth = self._read_money(cost, value, len(matrix))
        if self._cut == np.inf:
            return decode(self.labels, np.zeros(len(matrix), dtype=np.uint8))
        if self._cut == self.marginal_gain:
            warnings.warn(
                "people tie at the cut of this plan, which chose among them at random; everybody who ties with them is treated here, "
                "so that many more than in the plan may be",
                UserWarning,
                stacklevel=2,
            )
        price, benefit, _ = _prices(matrix, costs, worth, self._by_person)
        path = make_path(price, benefit, max(self._floor, np.nextafter(self._cut, -np.inf)), 0)
        return decode(self.labels, path.assignment(len(matrix), len(path)))

    def _read_money(self, cost: Any, value: Any, n: int) -> tuple[Floats | None, float | Floats | None]:
        """Costs and values of other people, which must be of the kind the plan was made with."""
        if cost is not None and not self._has_costs:
            raise ValueError(
                "cost was given and the plan was made without costs: leave it out, or pass it to target too"
            )
        if value is not None and not self._has_value:
            raise ValueError(
                "value was given and the plan was made without one: leave it out, or pass it to target too"
            )
        if cost is None and self._has_costs and (self._has_value or not self._by_person):
            raise ValueError(
                "the plan was made with costs: pass what these people cost, as in plan.apply(uplift, cost=2.0)"
            )
        if value is None and self._has_value and self._value is None:
            raise ValueError(
                "the plan was made with a value per person: pass that of these people, as in plan.apply(uplift, value=values)"
            )
        return read_costs(cost, n, self.labels), self._value if value is None else read_value(value, n)

    def __repr__(self) -> str:
        share = self.n_treated / self.n
        lines = [f"Treat {self.n_treated:,} of {self.n:,} people ({share:.1%})" + self._arm_counts()]
        if self.cost > 0:
            lines[0] += f" at a cost of {self.cost:,.6g}"
        if self.left > 0:
            lines[0] += f", {self.left:,.6g} of the budget left"
        measured = isinstance(self.gain, Estimate)
        lines.append(f"{'Measured' if measured else 'Predicted'} gain per 1,000 people: {_text(self.per_1000)}")
        if measured:
            lines.append(f"Predicted gain per 1,000 people: {1000 * self.predicted_gain / self.n:.4g}")
        if self.profit is not None:
            lines.append(f"{'Measured' if measured else 'Predicted'} net profit: {_text(self.profit)}")
            lines[-1] += f", {self.profit_per_1000:,.4g} per 1,000 people"
        unit = "person" if self._by_person else "unit of cost"
        if np.isfinite(self.marginal_gain):
            lines.append(f"Marginal gain at the cut, per {unit}: {self.marginal_gain:.4g} predicted")
            if self.marginal_measured is not None:
                lines[-1] += f", {_text(self.marginal_measured)} measured just above it"
        else:
            lines.append("Nobody is left whom it would pay to treat.")
        return "\n".join(lines)

    def _arm_counts(self) -> str:
        if len(self.labels) == 2:
            return ""
        counts = np.bincount(self.arm, minlength=len(self.labels))[1:]
        return ": " + ", ".join(f"{label!r} {count:,}" for label, count in zip(self.labels[1:], counts, strict=True))


def target(
    uplift: Any,
    *,
    fraction: float | None = None,
    budget: float | None = None,
    cost: Any = None,
    value: Any = None,
    y: Any = None,
    treatment: Any = None,
    sample_weight: Any = None,
    control: Label | None = None,
    arms: Sequence[Label] | None = None,
    interval: float = 0.95,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Targeting:
    r"""Choose whom to treat, and with what.

    With benefits b = value · uplift and costs c, it solves

    .. math:: \max_x \sum_{ik} b_{ik} x_{ik} \quad \text{such that} \quad \sum_{ik} c_{ik} x_{ik} \le B, \; \sum_k x_{ik} \le 1

    by walking down the slopes of every person's concave hull of (cost, benefit), which is exact up to the one person who
    no longer fits; what he would have cost goes to the next best who do.

    ====================  =========================================================================================
    ``fraction=0.2``      the best 20% by uplift (by value · uplift - cost, given both), whatever its sign
    ``budget=500``        with costs: what gains most for that money; without: at most 500 people, all with uplift > 0
    neither               everybody it pays to treat
    ====================  =========================================================================================

    Given both ``cost`` and ``value``, nobody is treated at a loss: an upgrade must bring in more than it costs. Otherwise
    nobody is treated whose predicted uplift is not positive, except with ``fraction``, which also takes scores that only
    rank. A budget that is larger than needed is left over, and the plan says how much.

    Parameters
    ----------
    uplift : array of shape (n,) or (n, K)
        Predicted uplift of the people on the list, a column per treatment arm.
    fraction : float, optional
        Share of people to treat.
    budget : float, optional
        Money to spend when there are costs, else people to treat.
    cost : number, list, dict or array, optional
        What treatment costs: the same for all, per arm, per person, or per person and arm.
    value : number or array of shape (n,), optional
        What a unit of the outcome is worth, in the money of the costs.
    y, treatment, sample_weight : arrays of shape (n,), optional
        An experiment on the same people, not used to fit the model: then gains are measured, with intervals.
    control, arms : label, list of labels, optional
        Labels of control and of the columns of ``uplift``, where there is no experiment to take them from. With one, the
        columns are its arms in sorted order, and other ``arms`` are an error.
    interval : float
        Confidence level of the intervals.
    n_bootstrap : int
        Replicates for the intervals, drawn with replacement within each arm. The plan stays as it is.
    random_state : int, RandomState, Generator or None
        Seed of the replicates, and of the order in which people with equal predictions are chosen.
    n_jobs : int, optional
        Threads for the replicates; the result does not depend on it.

    Returns
    -------
    Targeting

    Examples
    --------
    >>> from upturn.policy import target
    >>> plan = target([0.05, -0.01, 0.20, 0.02], fraction=0.5)
    >>> plan.recommended, plan.order
    (array([1, 0, 1, 0]), array([2, 0], dtype=uint32))

    A call costs 2 and a mail 0.5; an order is worth 30, and there are 3 to spend:

    >>> uplift = [[0.02, 0.10], [0.05, 0.06], [0.01, 0.00]]
    >>> plan = target(uplift, budget=3, cost={"mail": 0.5, "call": 2}, value=30, arms=["mail", "call"])
    >>> plan.recommended.tolist(), plan.cost, plan.left
    (['call', 'mail', 'control'], 2.5, 0.5)
    """
    matrix = read_uplift(uplift)
    n, level = len(matrix), check_level(interval)
    experiment = _read_experiment(y, treatment, sample_weight, control, matrix)
    if experiment is None:
        labels = read_labels(control, arms, matrix.shape[1])
    else:
        check_arms(arms, experiment.arms)
        labels = experiment.labels
    costs, worth = read_costs(cost, n, labels), read_value(value, n)
    by_person = costs is None or fraction is not None
    price, benefit, floor = _prices(matrix, costs, worth, by_person)
    if fraction is not None:
        floor = -np.inf
    path = make_path(price, benefit, floor, random_state)
    limit = _limit(fraction, budget, n, by_person)
    made, cut = (path, len(path)) if limit is None else path.spend(limit, n)
    arm = made.assignment(n, len(made))
    chosen, codes = np.flatnonzero(arm), arm[arm > 0].astype(np.intp) - 1
    spent = 0.0 if costs is None else float(costs[chosen, codes].sum())
    predicted = matrix[chosen, codes]
    predicted_money = None if worth is None else float((predicted * _at(worth, chosen)).sum()) - spent
    used = float(made.cost.sum())
    left = np.nan if limit is None or fraction is not None else max(0.0, limit - used)
    gain, profit, marginal = float(predicted.sum()), predicted_money, None
    per_1000, profit_per_1000 = 1000 * gain / n, None if profit is None else 1000 * profit / n
    if experiment is None:
        comparison = predicted_comparison(matrix, arm, costs, worth, labels)
    else:
        ruler = Ruler(made, cut, experiment, worth, level, n_bootstrap, random_state, n_jobs)
        gain, per_1000 = ruler.gain(n), ruler.gain(1000)
        cost_per_person = ruler.cost_per_person(arm, costs)
        profit, profit_per_1000 = (ruler.profit(people, people * cost_per_person) for people in (n, 1000))
        marginal = ruler.marginal()
        comparison = ruler.comparison(arm, costs, labels)
    return Targeting(
        recommended=decode(labels, arm),
        arm=arm,
        order=_first_visits(made.row),
        labels=list(labels),
        cost=spent,
        left=float(left),
        filled=len(made) - cut,
        gain=gain,
        per_1000=per_1000,
        profit=profit,
        profit_per_1000=profit_per_1000,
        predicted_gain=float(predicted.sum()),
        predicted_profit=predicted_money,
        marginal_gain=float(path.slope[cut]) if cut < len(path) else -np.inf,
        marginal_measured=marginal,
        comparison=comparison,
        _cut=float(path.slope[cut - 1]) if cut else np.inf,
        _by_person=by_person,
        _value=worth if isinstance(worth, float) else None,
        _has_costs=costs is not None,
        _has_value=worth is not None,
        _floor=float(floor),
    )


def _read_experiment(
    y: Any, treatment: Any, sample_weight: Any, control: Label | None, matrix: Floats
) -> Target | None:
    if y is None:
        if treatment is not None:
            raise ValueError("treatment was given without y: an experiment needs both, to measure what the plan gains")
        return None
    experiment = read_target(y, treatment, sample_weight, control=control)
    if len(experiment.y) != len(matrix):
        raise ValueError(
            f"uplift has {len(matrix):,} rows and y has {len(experiment.y):,}: the experiment must be on the same people; for others, "
            "make the plan on the experiment and pass their uplift to plan.apply"
        )
    if experiment.n_arms != matrix.shape[1]:
        raise ValueError(
            f"uplift has {matrix.shape[1]} column(s) and treatment {experiment.n_arms} arm(s) {experiment.arms!r} besides control: "
            "expected one column per arm, in this order"
        )
    return experiment


def _prices(
    uplift: Floats,
    costs: Floats | None,
    worth: float | Floats | None,
    by_person: bool,
) -> tuple[Floats, Floats, float]:
    """What an upgrade uses up, what it brings, and the slope below which it does not pay."""
    benefit = uplift if worth is None else uplift * np.reshape(worth, (-1, 1))
    if not by_person:
        assert costs is not None
        return costs, benefit, 0.0 if worth is None else 1.0
    if costs is not None and worth is not None:
        benefit = benefit - costs
    return np.ones_like(uplift), np.ascontiguousarray(benefit), 0.0


def _limit(fraction: float | None, budget: float | None, n: int, by_person: bool) -> float | None:
    if fraction is not None and budget is not None:
        raise ValueError(
            f"fraction={fraction!r} and budget={budget!r} both limit the plan: pass one of them, a share of people or a budget"
        )
    if fraction is not None:
        if not _is_number(fraction) or not 0 <= fraction <= 1:
            raise ValueError(f"fraction={fraction!r}: expected a share of people from 0 to 1, such as 0.2")
        return float(np.floor(fraction * n + 1e-9))
    if budget is None:
        return None
    if not _is_number(budget) or not np.isfinite(budget) or budget < 0:
        what = "a number of people" if by_person else "an amount of money"
        raise ValueError(f"budget={budget!r}: expected {what}, 0 or more; leave it out for no limit")
    return float(budget)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | np.number) and not isinstance(value, bool)


def _first_visits(rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The rows in the order in which they first appear."""
    _, first = np.unique(rows, return_index=True)
    return rows[np.sort(first)]


def _at(worth: float | Floats, rows: NDArray[Any]) -> float | Floats:
    return worth if isinstance(worth, float) else worth[rows]


def _text(value: float) -> str:
    return repr(value) if isinstance(value, Estimate) else f"{value:,.4g}"
