"""Models of trees learnt from rows in several places."""

from __future__ import annotations

from typing import Any

import numpy as np

from upturn._seeds import make_seed
from upturn.engines._centred import centre, restore
from upturn.engines._gather import Roles
from upturn.engines._grow import grow_trees
from upturn.engines._parts import Far, prepare, read_parts
from upturn.engines._places import Places
from upturn.trees import UpliftForest, UpliftTree
from upturn.trees._base import Scale, TreeModel
from upturn.trees._nodes import Nodes
from upturn.trees._samples import Sampling


def check_spread(model: Any) -> None:
    """Refuse what needs more of the rows than sums."""
    name = type(model).__name__
    if not isinstance(model, TreeModel):
        raise TypeError(
            f"{name} does not run on a cluster: use UpliftForest, CTSForest, UCTSForest or UpliftTree; write the table to Parquet files, "
            "on which engines.fit takes it if it is made of trees; or fit it to engines.sample(table, n)"
        )
    asked = []
    if isinstance(model, UpliftTree):
        asked = ["prune=True"] if model.prune else []
    elif isinstance(model, UpliftForest):
        asked = [f"{name}=True" for name in ("inference", "oob") if getattr(model, name, False)]
        kind = model.propensity
        asked += [] if isinstance(kind, str) and kind in ("auto", "shares") else [f"propensity={kind!r}"]
    if asked:
        raise ValueError(
            f"{name}({', '.join(asked)}) needs a number for every row, and does not run on a cluster: leave that out, or write the table to "
            "Parquet files, on which engines.fit takes it, or fit it to engines.sample(table, n)"
        )


def learn(model: Any, places: Places, roles: Roles, row_id: str | None, library: str) -> None:
    """Fit a model to places of raw frames."""
    whole = read_parts(places, roles, model.control, row_id)
    model._check_outcome(whole.scale, varies=whole.varies)
    centred = isinstance(model, UpliftForest) and model._centres(whole.scale.binary)
    far = prepare(whole, model.max_bins, weighted=roles.sample_weight is not None, outcomes=centred)
    _grow(model, far, whole.scale, make_seed(model.random_state))
    model._library, model._rate = library, whole.rate
    model._remember(whole.labels[0], whole.labels[1:], whole.schema)


def _grow(model: Any, far: Far, scale: Scale, seed: np.uint64) -> None:
    """What the model's own ``_fit`` does with a soil."""
    single = isinstance(model, UpliftTree)
    if single:
        plan, n_trees = Sampling(rho=model.rho if model.honest else None), 1
    else:
        model._check_groups()
        plan, n_trees = model._sampling(), int(model.n_estimators)
    centred, verbose = not single and model._centres(scale.binary), getattr(model, "verbose", 0)
    rules = model._rules(far, scale.binary and not centred, plan.share, scale.span)
    if centred:
        sown = centre(far, seed, model.n_jobs)
        trees = grow_trees(sown.far, rules, plan, seed, n_trees, model.n_jobs, verbose)
        restore(trees, sown, plan, seed)
    else:
        trees = grow_trees(far, rules, plan, seed, n_trees, model.n_jobs, verbose)
    model._keep(far, trees[0] if single else Nodes.join(trees), scale)
    if not single:
        model.centered_, model.propensity_kind_, model._pooled = centred, "shares", None
    model._tell_constant(far, rules, plan.share)
