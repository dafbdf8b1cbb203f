"""Centring where rows lie in several places: the outcome that regression trees predict is taken off it, part by part (see ``trees._center``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from uuid import uuid4

import numpy as np

from upturn._arrays import Ints
from upturn.engines._grow import draw_samples, grow_trees
from upturn.engines._parts import Far, Part, grid_of_parts, sums_of_parts
from upturn.kernels import sampling
from upturn.kernels.forest import twin_codes
from upturn.kernels.histogram import Layout
from upturn.kernels.sampling import ESTIMATE, GROW, OUTCOME
from upturn.trees._bins import Codes
from upturn.trees._center import SEEN, TREES, leaf_sums, outcome_rules, pooled_arms, predict_unseen, put_back
from upturn.trees._growth import arm_means, layout_with, rows_of
from upturn.trees._nodes import Nodes
from upturn.trees._outcome import Grid, make_words
from upturn.trees._samples import Answers, Sampling

_TREES = 16  # whose samples are drawn at a time


class Centred(NamedTuple):
    """Rows whose outcome is centred, and how the words of what was taken off are read."""

    far: Far
    layout: Layout


def centre(far: Far, seed: np.uint64, n_jobs: int | None) -> Centred:
    """Take off every row's outcome what trees that did not see it predict."""
    rows, size, mean = pooled_arms(far.rows, far.size, far.mean)
    alone = replace(far, places=far.places.change(_one_arm), rows=rows, size=size, mean=mean, token=uuid4().hex)
    own_seed = np.uint64(sampling.purpose_key(seed, OUTCOME, np.uint64(0)))
    trees = grow_trees(alone, outcome_rules(far.bins.n_features), SEEN, own_seed, TREES, n_jobs)
    draws = draw_samples(alone, SEEN, own_seed, range(TREES))
    pooled = float(mean[0])
    levels = far.places.change(partial(_take_off, trees, list(draws.values()), pooled))
    level_grid, grid = grid_of_parts(levels, "level"), grid_of_parts(levels, "y")
    places = levels.change(partial(_to_words, grid, level_grid))
    size, mean = arm_means(sums_of_parts(places, len(far.rows), grid.layout), grid.layout)
    centred = replace(far, places=places, size=size, mean=mean, layout=grid.layout, token=uuid4().hex)
    return Centred(centred, level_grid.layout)


def restore(trees: list[Nodes], centred: Centred, plan: Sampling, seed: np.uint64) -> None:
    """Put the mean of what was taken off a node's rows back on all its arms."""
    own = layout_with(centred.layout, plan.bootstrap)
    for first in range(0, len(trees), _TREES):
        some = trees[first : first + _TREES]
        draws = draw_samples(centred.far, plan, seed, range(first, first + len(some)))
        question = partial(_level_sums, some, list(draws.values()), centred.layout)
        for nodes, sums in zip(some, centred.far.places.ask(question, _add), strict=True):
            put_back(nodes, sums, own)


def _twins(codes: Codes) -> Codes:
    """Codes for prediction; a part may have no rows."""
    twins: Codes = twin_codes(codes) if codes.size else np.empty((0, 2 * len(codes)), np.uint8)
    return twins


def _one_arm(part: Part) -> Part:
    return replace(part, lot=part.lot._replace(arm=np.zeros_like(part.lot.arm)), kept={})


def _take_off(trees: Sequence[Nodes], draws: Sequence[Answers], pooled: float, part: Part) -> Part:
    alone = part.lot._replace(arm=np.zeros_like(part.lot.arm))
    roles = (one.roles(alone)[0] for one in draws)
    level = predict_unseen(trees, roles, _twins(part.codes), pooled)
    return replace(part, y=part.y - level, level=level, kept={})


def _to_words(grid: Grid, level_grid: Grid, part: Part) -> Part:
    words, levels = make_words(part.y, part.weight, grid), make_words(part.level, part.weight, level_grid)
    return replace(part, words=words, level_words=levels, kept={})


def _level_sums(trees: Sequence[Nodes], draws: Sequence[Answers], layout: Layout, part: Part) -> list[Ints]:
    codes, out = _twins(part.codes), []
    for nodes, one in zip(trees, draws, strict=True):
        role, copies = one.roles(part.lot)
        value_role = GROW if one.plan.rho is None else ESTIMATE
        rows = rows_of(role, copies, value_role, part.level_words, part.lot.arm, layout)
        out.append(leaf_sums(nodes, codes[np.asarray(rows.index)], rows, layout_with(layout, one.plan.bootstrap)))
    return out


def _add(parts: Sequence[list[Ints]]) -> list[Ints]:
    return [np.sum(sums, axis=0) for sums in zip(*parts, strict=True)]
