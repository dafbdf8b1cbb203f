"""The search of UpliftAuto: many candidates on few rows, the better half of them on more, and a stack of those that are left.

In ``Search.run(outer)`` no candidate is fitted to a row of the fold ``outer`` nor compared on one: each predicts the rows of every other fold from what is
left. A fit without two folds serves the searches without either, so that a search for every fold costs little more than twice one search. The loss
is made once, for all searches: its models of outcomes and arms are cross-fitted over all folds, so what is taken off a row's outcome was learnt from
other folds, ``outer`` among them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from upturn._arrays import Floats, Indices
from upturn._results import plural
from upturn.ensemble._combine import Combined, combine
from upturn.ensemble._evidence import Evidence, weigh_evidence
from upturn.ensemble._losses import Problem
from upturn.ensemble._unseen import Job, Unseen

_LEAST = 4  # candidates that are left, at least


@dataclass(frozen=True)
class Found:
    """What a search found: the candidates left, and an arm's stack and evidence each; ``shown`` is the last step of every candidate
    with its gain there and the standard error of that."""

    alive: list[int]
    step: int
    combined: list[Combined]
    evidence: list[Evidence]
    shown: dict[int, tuple[int, float, float]]

    @property
    def constant(self) -> bool:
        """Whether all arms are predicted their average effect."""
        return not any(one.weights.any() for one in self.combined)


@dataclass(frozen=True)
class Search:
    """Candidates' predictions, the rows they are compared on, and the loss of every arm there."""

    unseen: Unseen
    rows: Indices
    problems: list[Problem]
    features: Floats  # of the rows, as the test of whether effects differ looks at them
    n_folds: int
    n_steps: int  # those of the halving; one more is a fit to all rows

    def run(self, outer: int | None, description: str) -> Found:
        """Halve the candidates step by step and stack those that are left, by rows outside the fold ``outer`` alone."""
        unseen, alive = self.unseen, list(range(len(self.unseen.models)))
        shown: dict[int, tuple[int, float, float]] = {}
        last = 0
        for step in range(self.n_steps):
            jobs = self.jobs(step, alive, outer)
            if step and not unseen.clock.affords(unseen.work(jobs), 0.4):
                rows = unseen.steps[step - 1].learnt
                unseen.clock.cuts.append(f"candidates were compared on {plural(rows, 'row')} only")
                break
            unseen.make(jobs, f"{description}{plural(len(alive), 'model')}, {plural(unseen.steps[step].learnt, 'row')}")
            alive = [j for j in alive if j not in unseen.failed]
            if not alive:
                raise next(iter(unseen.failed.values()))
            effects, problems = self._effects(step, alive, outer), self._problems(step, outer)
            for place, j in enumerate(alive):
                shown[j] = (step, *self._gain(problems, effects[:, place : place + 1]))
            last = step
            if step < self.n_steps - 1:
                best = sorted(alive, key=lambda j: -shown[j][1])
                alive = sorted(best[: max(_LEAST, -(-len(best) // 2))])
        alive = [j for j in range(len(unseen.models)) if shown.get(j, (-1,))[0] == last and j not in unseen.failed]
        effects, problems = self._effects(last, alive, outer), self._problems(last, outer)
        combined, evidence = [], []
        for k, problem in enumerate(problems):
            seen = weigh_evidence(problem, effects[:, :, k], self.features, self.n_folds, len(problems))
            one = combine(problem, effects[:, :, k], self.n_folds, "auto", "exponential")
            combined.append(one if seen.enough else replace(one, weights=np.zeros(len(alive))))
            evidence.append(seen)
        return Found(alive, last, combined, evidence, shown)

    def jobs(self, step: int, alive: list[int], outer: int | None) -> list[Job]:
        """The fits of a step: every candidate without every fold, and without ``outer``."""
        return [(step, j, _without(fold, outer)) for fold in self._inner(outer) for j in alive]

    def _inner(self, outer: int | None) -> list[int]:
        return [fold for fold in range(self.n_folds) if fold != outer]

    def _problems(self, step: int, outer: int | None) -> list[Problem]:
        asked = self.unseen.place[self.rows] < self.unseen.steps[step].asked
        if outer is not None:
            asked &= self.unseen.fold[self.rows] != outer
        return [problem.part(asked) for problem in self.problems]

    def _effects(self, step: int, alive: list[int], outer: int | None) -> Floats:
        """Effects of the rows, shape (rows, candidates, arms); NaN for rows that the step does not ask about."""
        found = np.full((len(self.rows), len(alive), len(self.problems)), np.nan)
        for fold in self._inner(outer):
            at = np.searchsorted(self.rows, self.unseen.rows(step, [fold]))
            for place, j in enumerate(alive):
                found[at, place] = self.unseen.take(step, j, _without(fold, outer), [fold])
        return found

    def _gain(self, problems: list[Problem], effects: Floats) -> tuple[float, float]:
        """What one candidate gains over the average effect, with the best weight it can have; mean of the arms."""
        found = [
            combine(problem, effects[:, :, k], self.n_folds, 0.0, "least-squares").losses[1]
            for k, problem in enumerate(problems)
        ]
        gains, errors = np.array(found)[:, 1], np.array(found)[:, 2]
        return float(gains.mean()), float(np.sqrt((errors**2).sum()) / len(errors))


def _without(fold: int, outer: int | None) -> tuple[int, ...]:
    return (fold,) if outer is None else tuple(sorted((fold, outer)))
