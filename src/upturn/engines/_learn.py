"""Models of trees learnt from rows in several places."""

from __future__ import annotations

from typing import Any

import numpy as np

from upturn._arrays import Floats
from upturn._seeds import make_seed
from upturn.boosting import UpliftBagging
from upturn.engines._centred import Sown, restore, sow
from upturn.engines._ensembles import is_ensemble, learn_ensemble
from upturn.engines._gather import Roles
from upturn.engines._grow import grow_trees
from upturn.engines._ids import check_ids
from upturn.engines._numbers import Whole, read_parts
from upturn.engines._pairs import learn_pairs
from upturn.engines._parts import Far, prepare
from upturn.engines._places import Places
from upturn.engines._svm import check_machine, is_machine, learn_machine
from upturn.engines._unseen import fit_tree, out_of_bag
from upturn.meta import OneVsControl
from upturn.meta._base import MetaLearner
from upturn.trees import UpliftForest, UpliftTree
from upturn.trees._base import Scale, TreeModel
from upturn.trees._nodes import Nodes
from upturn.trees._overlap import chance_columns, kind_of, known_chances
from upturn.trees._samples import Sampling


def reasons(model: Any) -> list[str]:
    """What about a model needs more of the rows than sums, if anything; the model itself if it is none of trees."""
    if is_machine(model) or is_ensemble(model):
        return []
    if not isinstance(model, TreeModel):
        return [type(model).__name__]
    return ["inference=True"] if getattr(model, "inference", False) else []


def check_spread(model: Any) -> None:
    """Refuse what does not run where rows lie in several places."""
    if isinstance(model, OneVsControl):
        model = model._base()
    name, asked = type(model).__name__, reasons(model)
    if is_machine(model):
        check_machine(model)
        return
    if not isinstance(model, TreeModel) and not is_ensemble(model):
        raise TypeError(
            f"{name} does not run on a cluster{_why(model)}: use UpliftForest, CTSForest, UCTSForest, UpliftTree, UpliftBoosting or UpliftBagging over trees, "
            "a linear UpliftSVM, or OneVsControl over one of them; or fit it to engines.sample(table, n)"
        )
    if asked:
        raise ValueError(
            f"{name}({', '.join(asked)}) needs a number for every row, and does not run on a cluster: leave that out, or write the table to "
            "Parquet files, on which engines.fit takes it, or fit it to engines.sample(table, n)"
        )


def _why(model: Any) -> str:
    """Why a model does not run on a cluster, if that is known."""
    base = getattr(model, "estimator", None)
    inside = "gradient boosting of scikit-learn" if base is None else type(base).__name__
    return f", as {inside} inside it needs all rows in one place" if isinstance(model, MetaLearner) else ""


def learn(model: Any, places: Places, roles: Roles, row_id: str | None, library: str) -> None:
    """Fit a model to places of raw frames."""
    base = model._base() if isinstance(model, OneVsControl) else model
    if row_id is not None and isinstance(base, UpliftBagging):
        raise ValueError(
            "UpliftBagging draws rows by their place in their arm, and has no use for row_id=: leave it out"
        )
    if isinstance(model, OneVsControl):
        learn_pairs(model, places, roles, row_id, library, learn_whole)
        return
    whole = read_parts(places, roles, model.control, row_id)
    if row_id is not None:
        check_ids(whole.places, int(whole.rows.sum()), row_id)
    learn_whole(model, whole, places, roles, library)


def learn_whole(model: Any, whole: Whole, raws: Places, roles: Roles, library: str) -> None:
    """Fit a model to places of numbers, which are made of places of raw frames."""
    if is_machine(model):
        learn_machine(model, whole, library)
        return
    if is_ensemble(model):
        learn_ensemble(model, whole, library, weighted=roles.sample_weight is not None)
        return
    model._check_outcome(whole.scale, varies=whole.varies)
    single, n_arms = isinstance(model, UpliftTree), len(whole.labels) - 1
    centred = not single and model._centres(whole.scale.binary)
    kind = "shares" if single else kind_of(model.propensity, None, choose=False)
    columns = chance_columns(model.propensity, whole.schema, n_arms) if kind == "columns" else []
    chances = known_chances(model.propensity, whole.labels, int(whole.rows.sum())) if kind == "known" else None
    outcomes = centred or kind != "shares"
    far = prepare(whole, model.max_bins, weighted=roles.sample_weight is not None, outcomes=outcomes, columns=columns)
    whole = whole._replace(places=None)  # which may forget the numbers now
    if single:
        model._tell_constant(far, *fit_tree(model, far, whole.scale))
    else:
        seed = make_seed(model.random_state)
        plan = _grow_forest(model, far, whole.scale, seed, centred, kind, chances)
        if model.oob:
            model._keep_out_of_bag(out_of_bag(model, far, plan, seed, raws, roles, whole.schema))
    model._library, model._rate = library, whole.rate
    model._remember(whole.labels[0], whole.labels[1:], whole.schema)


def _grow_forest(
    model: UpliftForest, far: Far, scale: Scale, seed: np.uint64, centred: bool, kind: str, chances: Floats | None
) -> Sampling:
    """What ``UpliftForest._fit`` does with a soil; returns which rows its trees saw."""
    model._check_groups()
    plan = model._sampling()
    rules = model._rules(far, scale.binary and not centred, plan.share, scale.span)
    sown = Sown(far, None)
    if centred or kind != "shares":
        sown = sow(far, seed, model.n_jobs, centred=centred, kind=kind, chances=chances)
    trees = grow_trees(sown.far, rules, plan, seed, int(model.n_estimators), model.n_jobs, model.verbose)
    if centred:
        restore(trees, sown, plan, seed)
    model._keep(far, Nodes.join(trees), scale)
    model.centered_, model.propensity_kind_, model._pooled = centred, kind, None
    model._tell_constant(far, rules, plan.share)
    return plan
