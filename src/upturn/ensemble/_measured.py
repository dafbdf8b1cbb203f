"""What a search predicts for rows that no candidate has seen, and what that gains."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from upturn._arrays import Floats, Indices
from upturn._results import plural
from upturn.ensemble._combine import mean_and_error
from upturn.ensemble._search import Found, Search

Scored = Mapping[
    int, tuple[Indices, Floats, Floats]
]  # of a fold held out: its rows, their effects, the average effects


def predict_held_out(
    search: Search, found: Found, outers: list[int], only: int | None
) -> dict[int, tuple[Indices, Floats, Floats]]:
    """For every fold held out: its rows, their effects by what was found without them, and the average effects found.

    Where one effect for everybody was found, that is what is measured, and no search without a fold is run.
    """
    unseen, scored = search.unseen, dict[int, tuple[Indices, Floats, Floats]]()
    if found.constant:
        step = search.n_steps if only is not None else found.step
        averages = np.array([one.average for one in found.combined])
        places = {outer: unseen.rows(step, [outer]) for outer in outers}
        return {outer: (at, np.tile(averages, (len(at), 1)), averages) for outer, at in places.items()}
    for done, outer in enumerate(outers):
        if done and not unseen.clock.affords(unseen.work(search.jobs(found.step, found.alive, outer)), 0.5):
            unseen.clock.cuts.append(f"{plural(done, 'fold')} of {len(outers)} measured")
            break
        mine = found if outer == only else search.run(outer, f"held out {done + 1} of {len(outers)}: ")
        step = search.n_steps if only is not None else mine.step
        used = [j for place, j in enumerate(mine.alive) if any(one.weights[place] for one in mine.combined)]
        jobs = [(step, j, (outer,)) for j in used]
        if only is not None and not unseen.clock.affords(unseen.work(jobs), 0.4):
            step, jobs = mine.step, [(mine.step, j, (outer,)) for j in used]
            unseen.clock.cuts.append(f"measured is what {plural(unseen.steps[step].learnt, 'row')} taught")
        unseen.make(jobs, f"held out {done + 1} of {len(outers)}: {plural(len(used), 'model')}")
        if any(j in unseen.failed for j in used):
            continue
        at = unseen.rows(step, [outer])
        averages = np.array([one.average for one in mine.combined])
        total = np.tile(averages, (len(at), 1))
        for j in used:
            place = mine.alive.index(j)
            weights = np.array([one.weights[place] for one in mine.combined])
            means = np.array([one.means[place] for one in mine.combined])
            total += weights * (unseen.take(step, j, (outer,), [outer]) - means)
        scored[outer] = (at, total, averages)
    return scored


def honest_gain(search: Search, scored: Scored) -> Floats:
    """How much less the loss of held-out rows is than that of the average effects found without them; mean of the arms."""
    n_arms, found = len(search.problems), []
    effects = np.full((2, len(search.rows), n_arms), np.nan)
    inside = np.zeros(len(search.rows), np.bool_)
    for at, total, averages in scored.values():
        common = np.isin(at, search.rows)
        where = np.searchsorted(search.rows, at[common])
        effects[0, where], effects[1, where], inside[where] = total[common], averages, True
    for k, problem in enumerate(search.problems):
        part = problem.part(inside)
        left = [part.response - part.slope * one[part.rows, k] for one in effects]
        b = float(np.average(left[1], weights=part.weight))  # of the loss without effects that differ
        found.append(mean_and_error((left[1] - b) ** 2 - (left[0] - b) ** 2, part.weight))
    gains = np.array(found)
    return np.array([gains[:, 0].mean(), np.sqrt((gains[:, 1] ** 2).sum()) / n_arms])


def around_mean(effects: Floats) -> Floats:
    """Effects without their mean; exactly 0 where all are the same."""
    return np.where(np.ptp(effects, axis=0) > 0, effects - effects.mean(axis=0), 0.0)
