"""Candidates fitted beside each other."""

from __future__ import annotations

from upturn._experiment import Experiment
from upturn._nuisance import Shelf
from upturn.base import UpliftEstimator
from upturn.meta import TLearner, XLearner
from upturn.meta._base import WithPropensity


def fit_inside(model: UpliftEstimator, data: Experiment, shelf: Shelf) -> None:
    """Fit a candidate to rows that others are fitted to as well: what several of them need is on the shelf.

    Propensities that a candidate leaves to "auto" are those that its stack has chosen.
    """
    if type(model) is TLearner:  # what is made of one may fit in its own way
        model._fit_beside(data, shelf)
        return
    if not isinstance(model, WithPropensity) or type(model)._fit is not WithPropensity._fit:
        model._fit(data)
        return
    left_open = isinstance(model.propensity, str) and model.propensity == "auto"
    chosen = shelf.choice if left_open else model._choose(data)
    if type(model) is XLearner:
        model._fit_beside(data, chosen, shelf)
    else:
        model._fit_chosen(data, chosen)
