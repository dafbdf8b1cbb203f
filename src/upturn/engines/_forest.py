"""Forests learnt from rows in several places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from upturn._arrays import Floats
from upturn._seeds import make_seed
from upturn.engines._balance import balance_of_parts
from upturn.engines._centred import Sown, estimated, left_by, restore, sow
from upturn.engines._gather import Roles
from upturn.engines._grow import draw_samples, grow_trees
from upturn.engines._inference import correct_parts, rehearse_parts
from upturn.engines._numbers import Whole
from upturn.engines._parts import Far, prepare, with_bins
from upturn.engines._places import Places
from upturn.engines._unseen import out_of_bag
from upturn.kernels.criteria import Rules
from upturn.trees import UpliftForest
from upturn.trees._base import Scale
from upturn.trees._nodes import Nodes
from upturn.trees._overlap import chance_columns, kind_of, known_chances
from upturn.trees._samples import Answers, Sampling


@dataclass(frozen=True)
class _Chances:
    """Chances of the arms: their kind, and those that are known."""

    kind: str
    known: Floats | None


@dataclass(frozen=True)
class _Grown:
    """What is known of a forest's trees besides themselves."""

    rules: Rules
    plan: Sampling
    draws: Mapping[int, Answers]  # if they were wanted


def learn_forest(model: UpliftForest, whole: Whole, raws: Places, roles: Roles) -> None:
    """Fit a forest to places of numbers, which are made of places of raw frames: what ``UpliftForest._fit`` does."""
    weighted = roles.sample_weight is not None
    whole = looked(model, whole, weighted=weighted)
    suited = suited_to(model, whole)
    tested: list[float] = []

    def balance() -> float:
        tested.append(balance_of_parts(raws, roles, whole.schema, whole.labels))
        return tested[0]

    asked = model if model.inference else suited  # inference asks the balance of all rows first
    kind = kind_of(asked.propensity, balance if model.inference else None, whole.look)
    columns = chance_columns(model.propensity, whole.schema, len(whole.labels) - 1) if kind == "columns" else []
    known = known_chances(model.propensity, whole.labels, int(whole.rows.sum())) if kind == "known" else None
    chances, scale, seed = _Chances(kind, known), whole.scale, make_seed(model.random_state)
    outcomes = model.inference or suited._centres(scale.binary) or kind != "shares"
    far = prepare(whole, model.max_bins, weighted=weighted, outcomes=outcomes, columns=columns)
    chosen, pvalue = model._chosen(far.size), None if whole.look is None else whole.look.pvalue
    grown = _grow_forest(chosen, far, scale, seed, chances, tested[0] if tested else pvalue)
    chosen._tell_constant(far, grown.rules, grown.plan.share)
    if chosen._pooled is not None:
        settled = _Chances(chosen.propensity_kind_, known)

        def grow(forest: UpliftForest, ground: Far, own: Scale, own_seed: np.uint64) -> None:
            _grow_forest(forest, ground, own, own_seed, settled)

        reach = rehearse_parts(chosen, far, dict(grown.draws), scale, seed, grow)
        chosen._pooled = chosen._pooled._replace(reach=reach)
    if chosen.oob:
        chosen._keep_out_of_bag(out_of_bag(chosen, far, grown.plan, seed, raws, roles, whole.schema))
    model._take_over(chosen)


def looked(model: Any, whole: Whole, *, weighted: bool) -> Whole:
    """The rows of a forest with its bins and the look at their arms, which share a pass; those of any other model are as they are."""
    if not isinstance(model, UpliftForest):
        return whole
    return with_bins(whole, model.max_bins, weighted=weighted, looks=model._looks())


def suited_to(model: Any, whole: Whole) -> Any:
    """The forest for arms that are as unlike as those that were looked at (see ``UpliftForest._suited``); any other model is as it is."""
    if not isinstance(model, UpliftForest):
        return model
    model._look = whole.look
    return model._suited()


def _grow_forest(
    model: UpliftForest, far: Far, scale: Scale, seed: np.uint64, chances: _Chances, pvalue: float | None = None
) -> _Grown:
    """What ``UpliftForest._weighing`` and ``_fit_forest`` do with a soil, but for what comes after its trees."""
    model._check_groups()
    ground = estimated(far, seed, model.n_jobs) if chances.kind == "trees" else far
    model._settle(chances.kind, pvalue, left_by(ground) if chances.kind == "trees" else None)
    plan, centred, weighed = model._sampling(), model._centres(scale.binary), model.propensity_kind_ != "shares"
    rules = model._rules(far, scale.binary and not centred, plan.share, scale.span)
    ground = ground if weighed else far
    sown = Sown(far, None)
    if centred or weighed:
        sown = sow(ground, seed, model.n_jobs, centred=centred, weighed=weighed, chances=chances.known)
    del ground  # parts keep what somebody may still ask for
    n_trees = int(model.n_estimators)
    trees = grow_trees(sown.far, rules, plan, seed, n_trees, model.n_jobs, model.verbose)
    if centred:
        restore(trees, sown, plan, seed)
    draws: dict[int, Answers] = {}
    if model.inference:
        draws = draw_samples(sown.far, plan, seed, range(n_trees))
        nodes, pooled = correct_parts(trees, sown, draws)
    else:
        nodes, pooled = Nodes.join(trees), None
    model._keep(far, nodes, scale)
    model.centered_, model._pooled = centred, pooled
    return _Grown(rules, plan, draws)
