"""Single trees, and rows that a tree did not see, where rows lie in several places: those it is pruned by, and responses out of bag."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import narwhals.stable.v1 as nw
import numpy as np

from upturn._arrays import Bools, Floats, Ints
from upturn._columns import read_weight
from upturn._seeds import make_seed
from upturn._table import Schema, encode_columns
from upturn.engines._gather import Roles
from upturn.engines._grow import draw_samples, grow_trees
from upturn.engines._numbers import Raw, columns_of, series_of
from upturn.engines._parts import Far, Part, add, twins
from upturn.engines._places import Places
from upturn.kernels.criteria import Rules
from upturn.kernels.histogram import Layout
from upturn.trees import UpliftForest, UpliftTree
from upturn.trees._base import Scale
from upturn.trees._center import leaf_sums, respond_unseen
from upturn.trees._growth import rows_of
from upturn.trees._nodes import Nodes
from upturn.trees._prune import prune
from upturn.trees._samples import VALIDATION, Answers, Sampling


def fit_tree(model: UpliftTree, far: Far, scale: Scale) -> tuple[Rules, float]:
    """What ``UpliftTree._fit_soil`` does with a soil."""
    seed, plan = make_seed(model.random_state), model._sampling(far.rows)
    rules = model._rules(far, scale.binary, plan.share, scale.span)
    nodes = grow_trees(far, rules, plan, seed, 1, model.n_jobs)[0]
    model._keep(far, _pruned(nodes, far, plan, seed) if model.prune else nodes, scale)
    return rules, plan.share


def _pruned(nodes: Nodes, far: Far, plan: Sampling, seed: np.uint64) -> Nodes:
    """A tree, pruned by the rows that its plan keeps apart."""
    draws = draw_samples(far, plan, seed, [0])[0]
    sums: Ints = far.places.ask(partial(_judge, nodes, draws, len(far.rows), far.layout), add)
    return prune(nodes, sums, far.layout)


def out_of_bag(
    model: UpliftForest, far: Far, plan: Sampling, seed: np.uint64, raws: Places, roles: Roles, schema: Schema
) -> Floats:
    """Responses of every row, in the order of the table, by the trees of a fitted forest that did not see it."""
    draws = draw_samples(far, plan, seed, range(model.nodes_.n_trees))
    found = np.concatenate(far.places.ask(partial(_respond, model.nodes_, list(draws.values()))))
    weighed, X = find_unweighed(raws, roles, schema)
    return found if X is None else model._with_unweighed(found, weighed, X)


def find_unweighed(raws: Places, roles: Roles, schema: Schema) -> tuple[Bools, Floats | None]:
    """Which rows of the table have a weight above 0, and the features of those that do not, if there are any."""
    if roles.sample_weight is None:
        return np.ones(0, bool), None
    parts: list[tuple[Bools, Floats]] = raws.ask(partial(_unweighed, roles, schema))
    weighed, X = (np.concatenate(column) for column in zip(*parts, strict=True))
    return weighed, X if len(X) else None


# ------------------------------------------------------------------------------------------- what a part answers


def _judge(nodes: Nodes, draws: Answers, n_arms: int, layout: Layout, part: Part) -> Ints:
    """Sums by leaf and arm of the rows that a tree is pruned by."""
    role, copies = draws.roles(part.lot)
    rows = rows_of(role, copies, VALIDATION, part.words, part.lot.arm, layout)
    return leaf_sums(nodes, twins(part.codes[:, np.asarray(rows.index)]), rows, layout, n_arms)


def _respond(nodes: Nodes, draws: Sequence[Answers], part: Part) -> Floats:
    return respond_unseen(nodes, (one.roles(part.lot)[0] for one in draws), twins(part.codes))


def _unweighed(roles: Roles, schema: Schema, raw: Raw) -> tuple[Bools, Floats]:
    """Which rows have a weight above 0, and the features of those that do not."""
    if not len(nw.from_native(raw.frame, eager_only=True)):
        return np.empty(0, bool), np.empty((0, len(roles.features)), np.float32)
    assert roles.sample_weight is not None
    weighed: Bools = read_weight(series_of(raw, roles.sample_weight)) > 0.0
    return weighed, encode_columns(columns_of(raw, roles.features), schema, True)[~weighed]
