"""What scores of held-out rows are worth: areas and paired differences, curves with bands, bins, the plan, every budget."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from upturn import metrics, policy
from upturn._arrays import Floats
from upturn._report._held_out import Experiment, HeldOut
from upturn._results import Table
from upturn.metrics import Curve, Estimate

POINTS = 101  # of a curve, and stops of the slider
_STOPS = 401  # of a slider of money, which ends where nobody else pays: usually long before the path does


@dataclass(frozen=True)
class Options:
    """How things are measured."""

    interval: float
    n_bootstrap: int
    seed: int
    n_jobs: int | None

    def keywords(self, data: Experiment) -> dict[str, Any]:
        """Of everything that is measured."""
        return {
            "sample_weight": data.target.weight,
            "control": data.target.control,
            "groups": data.groups,
            "interval": self.interval,
            "n_bootstrap": self.n_bootstrap,
            "random_state": self.seed,
            "n_jobs": self.n_jobs,
        }


@dataclass(frozen=True)
class Money:
    """What treating costs, what an outcome is worth, and what is to be spent; as in :func:`upturn.policy.target`."""

    cost: Any = None
    value: Any = None
    budget: float | None = None
    fraction: float | None = None

    @property
    def by_person(self) -> bool:
        """Whether everybody costs the same, so that the order of people does not depend on money at all."""
        return (self.cost is None or np.ndim(self.cost) == 0) and not isinstance(self.cost, dict) and self.one_value

    @property
    def one_value(self) -> bool:
        """Whether an outcome is worth the same for everybody."""
        return self.value is None or np.ndim(self.value) == 0


@dataclass(frozen=True)
class Measured:
    """Everything measured on held-out rows.

    ``areas[model]`` is an Estimate of the AUUC per person, ``better[model]`` by how much the model of the page is better
    than that one; ``curves[kind][arm][model]`` are curves per person, and ``bins`` is the table of predicted and observed
    effects of the model of the page.
    """

    main: str
    areas: dict[str, Estimate]
    better: dict[str, tuple[float, float, float]]
    curves: dict[str, dict[Any, dict[str, Curve]]]
    gains: dict[str, policy.GainCurve]
    bins: Table
    plan: policy.Targeting
    budgets: policy.GainCurve
    by_person: bool


def measure(main: str, held: HeldOut, data: Experiment, money: Money, options: Options) -> Measured:
    """Measure the models on the rows they have not seen."""
    y, labels, common = data.target.y, data.labels, options.keywords(data)
    score = held.scores[main]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", metrics.RankingWarning)  # the page says it in its own words
        areas = metrics.evaluate(y, held.scores, labels, metrics=["auuc"], **common)
        paired = metrics.compare(y, held.scores, labels, baseline=main, **common)
    better = {
        name: (-float(d), -float(high), -float(low))
        for name, d, low, high in zip(*(paired[key] for key in ("model", "difference", "low", "high")), strict=True)
    }
    spending = {"cost": money.cost, "value": money.value, "y": y, "treatment": labels}
    plan = policy.target(score, budget=money.budget, fraction=money.fraction, **spending, **common)
    return Measured(
        main=main,
        areas={name: areas[name]["auuc"] for name in held.scores},
        better=better,
        curves=_curves(held, data, options),
        gains={
            name: policy.gain_curve(y, scores, labels, points=POINTS, **common) for name, scores in held.scores.items()
        },
        bins=metrics.calibration_table(y, score, labels, **common),
        plan=plan,
        budgets=_budgets(score, data, money, common),
        by_person=money.by_person,
    )


def _curves(held: HeldOut, data: Experiment, options: Options) -> dict[str, dict[Any, dict[str, Curve]]]:
    """Uplift and Qini curves of every arm against control."""
    makers: dict[str, Any] = {"uplift": metrics.uplift_curve, "qini": metrics.qini_curve}
    found: dict[str, dict[Any, dict[str, Curve]]] = {kind: {} for kind in makers}
    for k, arm in enumerate(data.target.arms):
        rows = data.target.pair(k + 1)
        part = data.take(rows)
        keywords = options.keywords(part)
        for kind, make in makers.items():
            found[kind][arm] = {
                name: on_grid(make(part.target.y, scores[rows, k], part.labels, **keywords))
                for name, scores in held.scores.items()
            }
    return found


def on_grid(curve: Curve) -> Curve:
    """A curve at every hundredth of the people."""
    x = np.linspace(0, 1, POINTS)
    low, high = (None if side is None else np.interp(x, curve.x, side) for side in (curve.low, curve.high))
    return Curve(x, curve(x), low, high, curve.interval, curve.random)


def _budgets(score: Floats, data: Experiment, money: Money, common: dict[str, Any]) -> policy.GainCurve:
    """What every stop of the slider gains.

    Where everybody costs the same, people come in the order of their scores whatever the money, the gain is measured once,
    and the page multiplies and subtracts. Where not, the order is one for these costs and this value.
    """
    spending: dict[str, Any] = {"points": POINTS}
    if not money.by_person:
        spending = {"cost": money.cost, "value": money.value, "points": _STOPS}
    return policy.gain_curve(data.target.y, score, data.labels, **spending, **common)
