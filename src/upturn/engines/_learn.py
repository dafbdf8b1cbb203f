"""Models of trees learnt from rows in several places."""

from __future__ import annotations

from functools import partial
from typing import Any

from upturn.boosting import UpliftBagging
from upturn.engines._ensembles import is_ensemble, learn_ensemble
from upturn.engines._forest import learn_forest
from upturn.engines._gather import Roles
from upturn.engines._ids import check_ids
from upturn.engines._meta import LEARNERS, check_learner, learn_meta
from upturn.engines._numbers import Whole, describe, read_parts, understand
from upturn.engines._pairs import FarPairs, learn_pairs
from upturn.engines._parts import prepare
from upturn.engines._places import Places
from upturn.engines._svm import check_machine, is_machine, learn_machine
from upturn.engines._unseen import fit_tree
from upturn.meta import OneVsControl
from upturn.trees import UpliftTree
from upturn.trees._base import TreeModel


def check_spread(model: Any, engine: str) -> None:
    """Refuse what does not run where rows lie in several places, on an engine of a name."""
    if isinstance(model, LEARNERS):
        check_learner(model, engine)
        return
    if isinstance(model, OneVsControl):
        model = model._base()
    if is_machine(model):
        check_machine(model)
        return
    if not isinstance(model, TreeModel) and not is_ensemble(model):
        raise TypeError(
            f"{type(model).__name__} does not run on a cluster: use UpliftForest, CTSForest, UCTSForest, UpliftTree, UpliftBoosting or UpliftBagging over trees, "
            "a linear UpliftSVM, OneVsControl over one of them, or TLearner over models of LightGBM or XGBoost that learn there; or fit it to engines.sample(table, n)"
        )


def check_use_of_ids(model: Any, row_id: str | None) -> None:
    """Refuse ids for a model that draws rows by their place."""
    base = model._base() if isinstance(model, OneVsControl) else model
    if row_id is not None and isinstance(base, UpliftBagging):
        raise ValueError(
            "UpliftBagging draws rows by their place in their arm, and has no use for row_id=: leave it out"
        )


def learn(model: Any, places: Places, roles: Roles, row_id: str | None, library: str) -> None:
    """Fit a model to places of raw frames."""
    check_use_of_ids(model, row_id)
    if isinstance(model, LEARNERS):
        learn_meta(model, places, roles, row_id, library)
        return
    if isinstance(model, OneVsControl):
        whole = understand(places.ask(partial(describe, roles)), roles, model.control)
        learn_pairs(model, whole, FarPairs(model, whole, places, roles, row_id), roles, library, learn_whole)
        model._tell_arms()
        return
    whole = read_parts(places, roles, model.control, row_id)
    if row_id is not None:
        check_ids(whole.places, int(whole.rows.sum()), row_id)
    # Rows of weight 0 have responses out of bag, too: the frames are asked for their features at the end.
    asked_again = roles.sample_weight is not None and (isinstance(model, UpliftBagging) or getattr(model, "oob", False))
    passing = (whole.places,) if asked_again else (places, whole.places)
    learn_whole(model, whole._replace(passing=passing), places, roles, library)
    model._tell_arms()


def learn_whole(model: Any, whole: Whole, raws: Places, roles: Roles, library: str) -> None:
    """Fit a model to places of numbers, which are made of places of raw frames."""
    if is_machine(model):
        learn_machine(model, whole, library)
        return
    if is_ensemble(model):
        learn_ensemble(model, whole, raws, roles, library)
        return
    model._check_outcome(whole.scale, varies=whole.varies)
    if isinstance(model, UpliftTree):
        far = prepare(whole, model.max_bins, weighted=roles.sample_weight is not None, outcomes=False, columns=[])
        model._tell_constant(far, *fit_tree(model, far, whole.scale))
    else:
        learn_forest(model, whole, raws, roles)
    model._library, model._rate = library, whole.rate
    model._remember(whole.labels[0], whole.labels[1:], whole.schema)
