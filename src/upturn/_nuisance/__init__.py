"""Models inside models: outcome models, propensities and cross-fitting, shared by meta-learners and policies.

===================  ==============================================================================================
``_boosted``         the default base: gradient boosting of trees
``_flat_trees``      trees as a flat table of nodes, which is what is kept of them
``_logistic``        logistic regression on an encoded table, kept as coefficients
``_member``          one fitted model of a number, whatever estimator it comes from
``_propensity``      the probability of every arm: known, read from a column, or estimated; clipping
``_choice``          which of these, where the rows are to decide
``_crossfit``        folds that keep every arm, and predictions for rows a model has not seen
``_shelf``           what several learners of the same rows share
===================  ==============================================================================================
"""

from upturn._nuisance._choice import area, choose_propensity
from upturn._nuisance._crossfit import crossfit, crossfit_responses, make_folds, rows_that_count, seed_of
from upturn._nuisance._logistic import Logistic
from upturn._nuisance._member import Member, check_classifier, fit_effect, fit_response
from upturn._nuisance._propensity import (
    CLIP,
    KINDS,
    Choice,
    Kind,
    Propensity,
    PropensitySpec,
    clip_chances,
    clip_propensity,
    clips_told_once,
    crossfit_propensity,
    fit_propensity,
)
from upturn._nuisance._shelf import Shelf, fit_arms

__all__ = [
    "CLIP",
    "KINDS",
    "Choice",
    "Kind",
    "Logistic",
    "Member",
    "Propensity",
    "PropensitySpec",
    "Shelf",
    "area",
    "check_classifier",
    "choose_propensity",
    "clip_chances",
    "clip_propensity",
    "clips_told_once",
    "crossfit",
    "crossfit_propensity",
    "crossfit_responses",
    "fit_arms",
    "fit_effect",
    "fit_propensity",
    "fit_response",
    "make_folds",
    "rows_that_count",
    "seed_of",
]
