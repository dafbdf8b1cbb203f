"""Candidates fitted beside each other."""

from __future__ import annotations

from upturn._experiment import Experiment
from upturn._nuisance import PropensitySpec, Shelf
from upturn.base import UpliftEstimator
from upturn.meta import TLearner, XLearner
from upturn.meta._base import WithPropensity


def fit_inside(model: UpliftEstimator, data: Experiment, shelf: Shelf) -> None:
    """Fit a candidate to rows that others are fitted to as well: what several of them need is on the shelf.

    Propensities that a candidate leaves to "auto", or asks for by the stack's own word, are those of the stack: one choice, whose models are shared.
    """
    if type(model) is TLearner:  # what is made of one may fit in its own way
        model._fit_beside(data, shelf)
        return
    if not isinstance(model, WithPropensity) or type(model)._fit is not WithPropensity._fit:
        model._fit(data)
        return
    chosen = shelf.choice if _same_choice(model.propensity, shelf.choice.spec) else model._choose(data)
    if type(model) is XLearner:
        model._fit_beside(data, chosen, shelf)
    else:
        model._fit_chosen(data, chosen)


def _same_choice(own: PropensitySpec, given: PropensitySpec) -> bool:
    """Whether a candidate leaves its propensities to the stack, or names what was ``given`` to the stack."""
    return isinstance(own, str) and (own == "auto" or (isinstance(given, str) and own == given))
