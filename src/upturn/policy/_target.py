"""Whom to treat: the best people, or person and arm, for a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Arms, Floats
from upturn._columns import as_column, to_numpy, warn_user
from upturn._html import paragraphs
from upturn._results import Table, library_of, new_frame, number_text
from upturn._rows import check_index, same_rows
from upturn._seeds import make_seed
from upturn._target import Label, decode
from upturn._units import is_rate, unit_scale, unit_text
from upturn.metrics import Estimate
from upturn.metrics._replicates import Replicates
from upturn.policy._gate import read_limit, read_plan
from upturn.policy._measure import PlanValue, read_effects
from upturn.policy._path import Assignment, make_path
from upturn.policy._rule import TargetingRule, break_even, prices


@dataclass(frozen=True, repr=False)
class Targeting:
    """Whom to treat, at what cost, and what that is expected to gain. Made by :func:`target`.

    Gains are against treating nobody, in units of the outcome and summed over the people on the list; ``per_1000`` is
    the same per 1,000 people of the list, treated or not. What was *measured* comes from an experiment on the same people
    and has an interval; what was *predicted* comes from the scores that were passed, and is only as good as the model. Where
    the experiment has weights, people count with them in everything measured: gains, shares and the costs in a net profit.

    Attributes
    ----------
    recommended : array of shape (n,)
        The label everybody should get.
    arm : array of shape (n,)
        The same as a number, control being 0.
    order : int array
        The rows to treat, the most rewarding first.
    n, n_treated : int
        People on the list, and how many of them are treated.
    rule : TargetingRule
        What the plan goes by, and :meth:`apply` uses on other people.
    cost : float
        What the plan costs; 0 when no costs were given.
    left : float
        What is left of the budget; NaN without one.
    filled : int
        Upgrades beyond the cut, made because they fitted into what the first one that was too dear left over.
    measured : bool
        Whether there was an experiment to measure the gain in.
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
    score : array of shape (n, K)
        The predictions the plan was made from.
    rate : bool
        Whether the outcome is yes or no (without an experiment: no prediction is larger than 1), so that gains are printed per
        1,000 people; others are printed per person.
    index : pandas index or None
        What the table of the scores calls everybody; row numbers where it does not.
    comparison : Table
        This plan beside treating nobody, as many people at random, and everybody with either arm: gains, costs and net
        profits per person with their intervals, and by how much this plan is better, a paired difference (in net
        profit when there is a value). Gains in rates are printed per 1,000 people.
    """

    arm: Arms
    order: NDArray[np.uint32]
    rule: TargetingRule
    cost: float
    left: float
    filled: int
    measured: bool
    gain: float
    profit: float | None
    predicted_gain: float
    predicted_profit: float | None
    marginal_gain: float
    marginal_measured: float | None
    comparison: Table
    score: Floats
    rate: bool = False
    index: Any = field(default=None, compare=False)

    @property
    def n(self) -> int:
        """People on the list."""
        return len(self.arm)

    @property
    def n_treated(self) -> int:
        """People to treat."""
        return int((self.arm > 0).sum())

    @property
    def recommended(self) -> NDArray[Any]:
        """The label everybody should get."""
        return decode(self.rule.labels, self.arm)

    @property
    def per_1000(self) -> float:
        """The gain per 1,000 people."""
        return _scaled(self.gain, 1000 / self.n)

    @property
    def profit_per_1000(self) -> float | None:
        """The profit per 1,000 people."""
        return None if self.profit is None else _scaled(self.profit, 1000 / self.n)

    def apply(self, score: Any, cost: Any = None, value: Any = None) -> NDArray[Any]:
        """Use the same cut on other people: everybody whose upgrade is at least as rewarding as the last one made here.

        A plan that treats nobody has no such upgrade, and treats none of the others either. Whoever was only treated
        because he fitted into the rest of a budget (``filled``) does not move the cut. Where people tie at the cut, the plan
        chose among them at random; all of the others who tie with them are treated, and a warning says so.

        Parameters
        ----------
        score : array of shape (n,) or (n, K)
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
        people = self.rule.read(score, cost, value)
        if self.rule.tied:
            warn_user(
                "people tie at the cut of this plan, which chose among them at random; everybody who ties with them is treated here, "
                "so that many more than in the plan may be",
                UserWarning,
            )
        return decode(self.rule.labels, self.rule.assign(people))

    def __repr__(self) -> str:
        share = self.n_treated / self.n
        lines = [
            f"Treat {self.n_treated:,} of {self.n:,} {'person' if self.n == 1 else 'people'} ({share:.1%})"
            + self._arm_counts()
        ]
        if self.cost > 0:
            lines[0] += f" at a cost of {_money(self.cost)}"
        if self.left > 0:
            lines[0] += f", {_money(self.left)} of the budget left"
        word = "Measured" if self.measured else "Predicted"
        unit, scale = unit_text(self.rate), unit_scale(self.rate) / self.n
        lines.append(f"{word} gain {unit}: {_text(_scaled(self.gain, scale))}")
        if self.measured:
            lines.append(f"Predicted gain {unit}: {number_text(scale * self.predicted_gain)}")
        if self.profit is not None:
            lines.append(f"{word} net profit: {_text(self.profit)}, {number_text(self.profit / self.n)} per person")
        if np.isfinite(self.marginal_gain):
            many = self.rate and not self.rule.with_value  # in money it is what one of them brings
            unit, scale = ("person" if self.rule.by_person else "unit of cost"), unit_scale(many)
            if many:
                unit = "1,000 people" if self.rule.by_person else "1,000 units of cost"
            lines.append(f"Marginal gain at the cut, per {unit}: {number_text(scale * self.marginal_gain)} predicted")
            if self.marginal_measured is not None:
                lines[-1] += f", {_text(_scaled(self.marginal_measured, scale))} measured just above it"
        else:
            lines.append("Nobody is left whom it would pay to treat.")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return paragraphs(repr(self).splitlines()) + self.comparison._repr_html_()

    def to_frame(self, ids: Any = None) -> Any:
        """The list to hand on: a row per person who is treated, the most rewarding first, in the library of the scores.

        Parameters
        ----------
        ids : array-like of shape (n,), optional
            What to call everybody, such as customer numbers; by default the index of the scores, where they came with one, and row
            numbers otherwise.

        Returns
        -------
        frame
            Columns ``id``, ``arm`` (the label everybody should get), ``rank`` (1 is the most rewarding) and ``score`` (the
            predicted uplift of that arm).
        """
        if ids is None:
            ids = np.arange(self.n) if self.index is None else self.index
        else:
            check_index(self.index, "score", ids, "ids")
        names = as_column(to_numpy(ids, "ids"), "ids")
        if len(names) != self.n:
            raise ValueError(
                f"ids has {len(names):,} values and the plan is for {self.n:,} people: expected one for each"
            )
        rows = self.order.astype(np.intp)
        columns = {
            "id": names[rows],
            "arm": decode(self.rule.labels, self.arm[rows]),
            "rank": np.arange(1, len(rows) + 1),
            "score": self.score[rows, self.arm[rows].astype(np.intp) - 1],
        }
        return new_frame(columns, library_of(ids) or self.comparison.library)

    def _arm_counts(self) -> str:
        labels = self.rule.labels
        if len(labels) == 2:
            return ""
        counts = np.bincount(self.arm, minlength=len(labels))[1:]
        return ": " + ", ".join(f"{label!r} {count:,}" for label, count in zip(labels[1:], counts, strict=True))


@same_rows
def target(
    score: Any,
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
    propensity: Any = None,
    response: Any = None,
    groups: Any = None,
    interval: float | None = 0.95,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Targeting:
    r"""Choose whom to treat, and with what.

    With benefits b = value · score and costs c, it solves

    .. math:: \max_x \sum_{ik} b_{ik} x_{ik} \quad \text{such that} \quad \sum_{ik} c_{ik} x_{ik} \le B, \; \sum_k x_{ik} \le 1

    by walking down the slopes of every person's concave hull of (cost, benefit), which is exact up to the one person who
    no longer fits; what he would have cost goes to the next best who do.

    ====================  =========================================================================================
    ``fraction=0.2``      the best 20% by score (by value · score - cost, given both), whatever its sign
    ``budget=500``        with costs: what gains most for that money; without: at most 500 people, all with score > 0
    neither               everybody it pays to treat
    ====================  =========================================================================================

    Given both ``cost`` and ``value``, nobody is treated at a loss: an upgrade must bring in more than it costs. Otherwise
    nobody is treated whose predicted uplift is not positive, except with ``fraction``, which also takes scores that only
    rank. A budget that is larger than needed is left over, and the plan says how much.

    Parameters
    ----------
    score : array or frame of shape (n,) or (n, K)
        Predicted uplift of the people on the list, a column per treatment arm. Columns of a frame that are named as the arms are taken
        by their names, in any order; where there is no experiment, the names are the arms'. The index of pandas is kept for
        ``to_frame``.
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
        Labels of control and of the columns of ``score``, where there is no experiment to take them from. With one, the
        columns are its arms in sorted order, and other ``arms`` are an error.
    propensity, response : optional
        Chances of the arms, and outcomes expected of everybody in the experiment under control and each arm, (n, 1 + K), from a
        model that has not seen them: gains are then means of doubly robust effect scores
        (:func:`upturn.metrics.effect_scores`), with less error, and the plan says by how much. By default the arms' shares and
        mean outcomes.
    groups : array of shape (n,), optional
        The cluster of everybody in the experiment, such as a household or a shop: replicates are drawn of whole clusters, as in
        :func:`upturn.metrics.auuc`. The plan itself treats people.
    interval : float or None
        Confidence level of the intervals; None measures without them.
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
    seed = make_seed(random_state)
    replicates = Replicates.read(interval, n_bootstrap, seed, n_jobs, groups)
    people, experiment = read_plan(
        score, cost=cost, value=value, y=y, treatment=treatment, sample_weight=sample_weight, control=control, arms=arms
    )
    n, by_person = len(people), people.cost is None or fraction is not None
    limit = read_limit(fraction, budget, n, by_person)
    floor = break_even(people, by_person) if fraction is None else -np.inf
    path = make_path(*prices(people, by_person), floor, seed)
    made, cut = (path, len(path)) if limit is None else path.spend(limit, n)
    plan = Assignment(made.assignment(n, len(made)))
    if experiment is None:
        if propensity is not None or response is not None:
            raise ValueError(
                "propensity and response are of an experiment: pass its y and treatment too, to measure what the plan gains"
            )
        found = PlanValue.predicted(people, plan)
    else:
        effects = read_effects(experiment, propensity, response)
        without = None if response is None else read_effects(experiment, propensity, None)
        found = PlanValue.measured(people, plan, made, cut, experiment, effects, replicates)
        if response is not None:
            found = found.adjusted_from(PlanValue.measured(people, plan, made, cut, experiment, without, replicates))
    rate = bool(np.abs(people.uplift).max() <= 1) if experiment is None else is_rate(experiment)
    spent = 0.0 if people.cost is None else plan.total(people.cost)
    predicted_gain = plan.total(people.uplift)
    predicted_profit = None if people.value is None else plan.total(people.worth) - spent
    return Targeting(
        arm=plan.arm,
        order=made.first_visits(),
        rule=TargetingRule.of(people, path, cut, floor, by_person),
        cost=spent,
        left=max(0.0, limit - float(made.cost.sum())) if limit is not None and fraction is None else np.nan,
        filled=len(made) - cut,
        measured=experiment is not None,
        gain=predicted_gain if experiment is None else found.gain(n),
        profit=predicted_profit if experiment is None else found.profit(n),
        predicted_gain=predicted_gain,
        predicted_profit=predicted_profit,
        marginal_gain=float(path.slope[cut]) if cut < len(path) else -np.inf,
        marginal_measured=found.marginal(),
        comparison=found.comparison(library_of(score, y, treatment), rate),
        score=people.uplift,
        rate=rate,
        index=people.index,
    )


def _scaled(value: float, scale: float) -> float:
    """A number, with its interval if it has one, in other units."""
    return value.times(scale) if isinstance(value, Estimate) else scale * value


def _text(value: float) -> str:
    return repr(value) if isinstance(value, Estimate) else number_text(value)


def _money(value: float) -> str:
    """An amount that is counted, not estimated: whole, and below 100 to the cent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:,.2f}".rstrip("0").rstrip(".")
