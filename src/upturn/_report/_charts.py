"""The numbers behind the charts and the slider, as JSON has them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from upturn._arrays import Indices
from upturn._report._answer import plan_share, row_of
from upturn._report._found import Found

_PROFIT = ("profit", "profit_low", "profit_high")


def stops_of(found: Found) -> dict[str, Any]:
    """What every stop of the slider says, the plan's own among them; gains, profits and what was ``paid`` per 1,000 people.

    Where costs differ, ``marginal`` is what the last upgrade before a stop is predicted to gain per unit of cost: it pays if
    that is worth more than 1. Upgrades that gain nothing have no stop. ``worth`` is the gain in money, where values differ.
    """
    curve, plan, money = found.measured.budgets, found.measured.plan, found.money
    columns: dict[str, Any] = {
        "share": curve.treated,
        **{name: 1000 * np.asarray(getattr(curve, name)) for name in ("gain", "low", "high", "random")},
    }
    if found.measured.by_person:
        columns["treated"] = curve.budget
        columns["spent"] = curve.budget * float(money.cost or 0.0)
        if plan.profit is not None:
            paid = 1000 * float(money.cost or 0.0) * curve.treated
            value = float(money.value)
            columns |= {
                "profit": value * columns["gain"] - paid,
                "profit_low": value * columns["low"] - paid,
                "profit_high": value * columns["high"] - paid,
            }
    else:
        columns["treated"], columns["spent"] = curve.n_treated, curve.budget
        columns["paid"] = 1000 * np.asarray(curve.spent)
        columns["marginal"] = np.asarray(curve.marginal) / _unit(found)
        if curve.profit is not None:
            columns |= {n: 1000 * np.asarray(getattr(curve, n)) for n in _PROFIT}
    columns = {name: np.asarray(values, dtype=np.float64) for name, values in columns.items()}
    if not found.measured.by_person:
        keep = columns["marginal"] > 0
        columns = {name: values[keep] for name, values in columns.items()}
    columns = _with_plan(columns, found)
    if not money.one_value:
        columns |= {name.replace("profit", "worth"): columns[name] + columns["paid"] for name in _PROFIT}
    return columns


def paying(stops: dict[str, Any], found: Found) -> Indices:
    """The numbers of the stops up to which all pays, at the costs and the value of the page; the plan is among them."""
    if "marginal" not in stops:
        return np.arange(len(stops["share"]))
    pays = stops["marginal"] > 0
    if "profit" in stops:
        pays = stops["marginal"] * _unit(found) > 1
    return np.flatnonzero(pays | (np.arange(len(pays)) == stops["plan"]))


def _unit(found: Found) -> float:
    """What a unit of the outcome is worth, where that is one number."""
    value = found.money.value
    return float(value) if value is not None and found.money.one_value and float(value) > 0 else 1.0


def _with_plan(columns: dict[str, Any], found: Found) -> dict[str, Any]:
    """The stops and, in its place among them, the plan."""
    plan: Any = found.measured.plan
    row = row_of(found.measured, "as many at random")
    random = next(1000 * float(row[name]) for name in row if name.endswith("gain"))
    own = {
        "share": plan_share(found.measured),
        "treated": plan.n_treated,
        "spent": plan.cost,
        "gain": float(plan.per_1000), "low": plan.per_1000.low, "high": plan.per_1000.high,
    }  # fmt: skip
    if "paid" in columns:  # beside as much money at random, which buys another number of people
        paid, usual = float(row_of(found.measured, "this plan")["cost"]), float(row["cost"])
        if usual > 0:
            random *= min(paid / usual, 1 / max(float(row["treated"]), 1e-300))
        own |= {"paid": 1000 * paid, "marginal": np.inf if plan.rule.by_person else plan.rule.slope / _unit(found)}
    own["random"] = random
    if "profit" in columns:
        profit = plan.profit_per_1000
        own |= {"profit": float(profit), "profit_low": profit.low, "profit_high": profit.high}
    key = "treated" if found.measured.by_person else "spent"
    at = int(np.searchsorted(columns[key], own[key]))
    there = at < len(columns[key]) and abs(columns[key][at] - own[key]) <= 1e-9 * max(1.0, abs(own[key]))
    if not there:
        columns = {name: np.insert(values, at, own[name]) for name, values in columns.items()}
    return {**columns, "plan": at}


def numbers_of(found: Found) -> dict[str, Any]:
    """What the charts and the slider read."""
    measured, words = found.measured, found.words
    curves: dict[str, Any] = {
        kind: {str(arm): {name: _lines(curve) for name, curve in models.items()} for arm, models in arms.items()}
        for kind, arms in measured.curves.items()
    }
    x = np.linspace(0, 1, 101)
    all_arms = {}
    for name, gain in measured.gains.items():
        sides = {key: np.interp(x, gain.treated, getattr(gain, key)) for key in ("gain", "low", "high", "random")}
        all_arms[name] = {
            "y": _short(sides["gain"]),
            "low": _short(sides["low"]),
            "high": _short(sides["high"]),
            "random": _short(sides["random"]),
        }
    curves["gain"] = {"": all_arms}
    bins = measured.bins
    binned = {}
    for arm in found.data.target.arms:
        mine = bins["arm"] == arm
        binned[str(arm)] = {key: _short(1000 * bins[key][mine]) for key in ("predicted", "observed", "low", "high")}
    stops = stops_of(found)
    budget = {
        "n": measured.plan.n,
        "mode": "people" if measured.by_person else "money",
        "cost": None if not measured.by_person or found.money.cost is None else float(found.money.cost),
        "value": float(found.money.value) if found.money.value is not None and found.money.one_value else None,
        **{name: values if name == "plan" else _finite(values) for name, values in stops.items()},
    }
    return {
        "people": words.people,
        "outcome": words.outcome,
        "main": measured.main,
        "models": list(measured.areas),
        "arms": [str(arm) for arm in found.data.target.arms],
        "flat": [str(arm) for arm in found.flat_arms],
        "curves": curves,
        "bins": binned,
        "budget": budget if found.shows_plan else None,
    }


def _lines(curve: Any) -> dict[str, Any]:
    ends = curve.random if curve.random is not None else (curve.y[0], curve.y[-1])
    random = np.linspace(float(ends[0]), float(ends[1]), len(curve.x))
    return {
        key: _short(1000 * np.asarray(values))
        for key, values in (("y", curve.y), ("low", curve.low), ("high", curve.high), ("random", random))
    }


def _finite(values: Any) -> list[float | None]:
    """What is infinite is none."""
    return [value if math.isfinite(value) else None for value in values.tolist()]


def _short(values: Any) -> list[float | None]:
    """Six digits are more than a chart shows; what is not a number is none."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in np.asarray(values, dtype=np.float64)]
