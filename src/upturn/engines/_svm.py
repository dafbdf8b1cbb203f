"""Linear machines learnt from rows in several places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from upturn._arrays import Floats
from upturn._encode import ColumnLayout, LinearEncoder, Moments, check_sizes, tell_dwarfed
from upturn._experiment import Experiment
from upturn._table import MOST_LEVELS, Schema, place_levels
from upturn._target import Label, Target, check_totals, weight_unit
from upturn.engines._margins import FarData, Margins, add
from upturn.engines._numbers import Numbers, Whole, check_classes
from upturn.engines._places import Places
from upturn.svm import StandardSVM, SubgroupSVM, TwoCostSVM, UpliftSVM, UpliftSVMCV
from upturn.svm import _interior as interior
from upturn.svm import _newton as newton
from upturn.svm._base import Machine
from upturn.svm._problem import MarginProblem, MarginSolution
from upturn.svm._solve import Prepared, Start, far_from_0, one_thread
from upturn.svm._uplift import UpliftTask, between, labels_of

_LOOKED_AT = 5000  # rows, evenly spread, that tell whether a few values make a column's spread


def is_machine(model: Any) -> bool:
    """Whether a model is a machine that can be fitted in parts."""
    kinds = UpliftSVM, StandardSVM, TwoCostSVM, SubgroupSVM
    return isinstance(model, kinds) and not isinstance(model, UpliftSVMCV)


def check_machine(model: Any) -> None:
    """Refuse what a machine cannot do in parts."""
    name, advice = type(model).__name__, "fit it to engines.sample(table, n)"
    if model.kernel != "linear":
        raise ValueError(
            f"{name}(kernel={model.kernel!r}) compares rows with each other, and cannot be fitted in parts: take kernel='linear', or {advice}"
        )
    if getattr(model, "balance", 0.0) > 0.0:
        raise ValueError(
            f"{name}(balance={model.balance!r}) compares the scores of all rows, and cannot be fitted in parts: take balance=0, or {advice}"
        )
    if getattr(model, "solver", "auto") != "auto":
        raise ValueError(
            f"{name}(solver={model.solver!r}) goes from row to row, and cannot be fitted in parts: take solver='auto', or {advice}"
        )


def learn_machine(model: Any, whole: Whole, library: str) -> None:
    """Fit a machine to places of numbers."""
    control, arms = whole.labels[0], whole.labels[1:]
    model._refuse_arms(control, arms)
    check_classes(whole)
    if isinstance(model, UpliftSVM):
        model._check_together()
    reader = _Reader(model, whole.schema, control, arms, weight_unit(whole.heaviest))
    totals = whole.places.ask(reader.totals, add)
    nobody = np.empty(0)
    check_totals(totals, Target(nobody, nobody.astype(np.uint8), None, control, arms))
    encoder = _learn_encoder(whole.places, reader, model.standardize)
    divisors = totals if getattr(model, "group_average", False) else np.ones(2)
    places = whole.places.change(partial(reader.margins, encoder, None, divisors))
    found: Moments = places.ask(_moments, _merge)
    mean = found.mean if far_from_0(found) else None
    if mean is not None:
        del places  # there may be no room for both
        places = whole.places.change(partial(reader.margins, encoder, mean, divisors))
    model.encoder_, model.kernel_map_ = encoder, None
    rows, prepared = int(found.total), _FarPrepared(model._problem(), places, int(found.total), mean)
    prepared.n_columns = encoder.layout.width
    scored = _FarScores(places, mean)
    if isinstance(model, UpliftSVM):
        solution, ranking = model._solve(_FarTask(model, prepared, scored, rows))
    else:
        solution, ranking = model._solve(prepared, np.full((1, 2), float(model.C)), scored)
    model.support_ = np.empty(0, np.intp)
    model._keep(solution, ranking, whole.schema, lambda: bool((encoder.spread > 0.0).any()))
    model._library, model._rate = library, True  # classes are 0 and 1
    model._remember(control, arms, whole.schema)
    step = max(int(whole.rows.sum()) // _LOOKED_AT, 1)
    some = np.concatenate(whole.places.ask(partial(_every, step)))
    tell_dwarfed(type(model).__name__, encoder, some, whole.schema)


def _learn_encoder(places: Places, reader: _Reader, standardize: bool) -> LinearEncoder:
    """The encoder of all rows, from moments of parts."""
    schema, pools = reader.schema, {}
    many = [j for j, levels in enumerate(schema.levels) if levels is not None and len(levels) > MOST_LEVELS]
    if many:
        counts, masses, n = places.ask(partial(reader.levels, many), _add_levels)
        for j, count, mass in zip(many, counts, masses, strict=True):
            place = place_levels(count, n, mass)
            assert place is not None
            pools[j] = place
    layout = ColumnLayout.of(schema, pools)
    moments: Moments = places.ask(partial(reader.moments, layout), _merge)
    check_sizes(moments, layout, schema, standardize)
    return LinearEncoder.from_moments(moments, layout, standardize=standardize)


# ------------------------------------------------------------------------------------------- what a part answers


@dataclass(frozen=True)
class _Reader:
    """How a part's numbers become the experiment that a machine would see, and what is asked of it."""

    model: Machine
    schema: Schema
    control: Label
    arms: list[Label]
    unit: float

    def experiment(self, part: Numbers) -> Experiment:
        weight = part.weight if part.weight is None or self.unit == 1.0 else part.weight / self.unit
        return Experiment(part.X, self.schema, Target(part.y, part.arm, weight, self.control, self.arms, self.unit))

    def kept(self, part: Numbers) -> tuple[Experiment, Floats, Floats]:
        """The rows that have a price, their labels and prices."""
        data = self.experiment(part)
        if isinstance(self.model, UpliftSVM):
            return data, labels_of(data), data.weights
        kept, _, z, price = self.model._margins(data)
        return kept, z, price

    def totals(self, part: Numbers) -> Floats:
        """The weight of each arm."""
        weight = part.weight if part.weight is None or self.unit == 1.0 else part.weight / self.unit
        return np.asarray(np.bincount(part.arm, weights=weight, minlength=2), dtype=np.float64)

    def levels(self, columns: Sequence[int], part: Numbers) -> tuple[list[Any], list[Any], int]:
        """Rows of every level of some columns, their weight, and the number of rows."""
        data, _, _ = self.kept(part)
        counts, masses = [], []
        for j in columns:
            known, n_levels = ~np.isnan(data.X[:, j]), len(self.schema.levels[j] or ())
            codes = data.X[known, j].astype(np.int64)
            counts.append(np.bincount(codes, minlength=n_levels))
            masses.append(np.bincount(codes, data.weights[known], n_levels))
        return counts, masses, len(data)

    def moments(self, layout: ColumnLayout, part: Numbers) -> Moments:
        """Moments of the columns under their weights."""
        data, _, _ = self.kept(part)
        with np.errstate(over="ignore", invalid="ignore"):  # looked at later
            return Moments.of(data.X, data.weight, layout)

    def margins(self, encoder: LinearEncoder, mean: Floats | None, divisors: Floats, part: Numbers) -> Margins:
        """The rows as solvers need them; prices are divided by a number for each arm."""
        data, z, price = self.kept(part)
        X = encoder.transform(data.X)
        if mean is not None:
            X -= mean
        return Margins(X, z, price / divisors[data.arm], data.weights)


def _moments(part: Margins) -> Moments:
    """Moments of encoded columns, where all rows count alike."""
    return Moments.of(part.X)


def _merge(parts: Sequence[Moments]) -> Moments:
    with np.errstate(over="ignore", invalid="ignore"):  # looked at later
        return reduce(Moments.merge, parts)


def _add_levels(parts: Sequence[Any]) -> Any:
    counts, masses, n = zip(*parts, strict=True)
    return [sum(one) for one in zip(*counts, strict=True)], [sum(one) for one in zip(*masses, strict=True)], sum(n)


def _every(step: int, part: Numbers) -> Floats:
    """Rows whose numbers are multiples of ``step``."""
    return part.X[-part.first % step :: step]


def _moments_of_scores(w: Floats, part: Margins) -> Moments:
    return Moments.of((part.X @ w)[:, None], part.weight)


def _ends_of_scores(w: Floats, part: Margins) -> tuple[float, float]:
    scores = part.X @ w
    return float(scores.min(initial=np.inf)), float(scores.max(initial=-np.inf))


def _between(w: Floats, b: Floats, part: Margins) -> tuple[float, float]:
    """The weight of the rows between the hyperplanes, and of all."""
    return float(between(part.X @ w, b) @ part.weight), float(part.weight.sum())


def _widest(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return min(low for low, _ in parts), max(high for _, high in parts)


# ------------------------------------------------------------------------------------------- what machines see


@dataclass(frozen=True)
class _FarScores:
    """See ``svm._vanishing.Scored``."""

    places: Places
    mean: Floats | None

    def moments(self, w: Floats) -> tuple[float, float]:
        found: Moments = self.places.ask(partial(_moments_of_scores, w), _merge)
        shift = 0.0 if self.mean is None else float(self.mean @ w)
        return float(found.mean[0]) + shift, float(found.norm[0] / np.sqrt(found.total))

    def range(self, w: Floats) -> float:
        low, high = self.places.ask(partial(_ends_of_scores, w), _widest)
        return float(high - low)


class _FarPrepared(Prepared):
    """Rows in the form that solvers work on, wherever they lie; costs are prices of the labels -1 and +1 at each hyperplane."""

    def __init__(self, problem: MarginProblem, places: Places, n_rows: int, mean: Floats | None) -> None:
        self.problem, self.places, self._mean, self.n_rows, self.n_columns = problem, places, mean, n_rows, 0
        self._energy = self._live = self._rotation = self._among_rows = None

    def solve(self, cost: Floats, start: Start | None = None) -> MarginSolution:
        """Solve the problem for these prices."""
        data: Any = FarData(self.places, self.n_rows, self.n_columns, cost)
        with one_thread():
            if self.problem.power == 1.0:
                found = interior.solve(self.problem, data)
            else:
                found = newton.solve(self.problem, data, self._start(start))
        return self._outside(replace(found, alpha=np.empty((len(cost), 0))), cost)


class _FarTask(UpliftTask):
    """The margin problems of an experiment whose rows lie in several places."""

    def __init__(self, machine: UpliftSVM, prepared: _FarPrepared, scored: _FarScores, n: int) -> None:
        self._prepared, self._scored, self.n = prepared, scored, n
        self._solver, self._at_zero = machine.solver, machine.at_zero

    def cost(self, C: float, ratio: float) -> Floats:
        """C at the row's own hyperplane, ratio·C at the other: prices of the labels -1 and +1."""
        return np.array([[ratio * C, C], [C, ratio * C]])

    def neutral_share(self, solution: MarginSolution) -> float:
        """The share of the rows between the hyperplanes."""
        places, mean = self._scored.places, self._scored.mean  # type: ignore[attr-defined]
        b = solution.intercepts if mean is None else solution.intercepts - float(mean @ solution.coef)
        inside, total = places.ask(partial(_between, solution.coef, b), add)
        return float(inside / total)
