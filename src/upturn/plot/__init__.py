"""Pictures: one function each. They draw on the axes you pass, or make some, and return them.

matplotlib is needed (the extra ``[plot]``) and is imported when a picture is drawn. Colours are those of Okabe and Ito,
which people with any colour vision tell apart; lines differ in style too, so the pictures survive a grey printer.
"""

from upturn.plot._importances import importances
from upturn.plot._parts import parts
from upturn.plot._policy import calibration, gain, overlap
from upturn.plot._ranking import (
    curves,
    deciles,
    lift_curves,
    modified_uplift_curves,
    qini_curves,
    score_distributions,
    toc_curves,
    uplift_curves,
)
from upturn.plot._subgroups import subgroups
from upturn.plot._tree import tree

__all__ = [
    "calibration",
    "curves",
    "deciles",
    "gain",
    "importances",
    "lift_curves",
    "modified_uplift_curves",
    "overlap",
    "parts",
    "qini_curves",
    "score_distributions",
    "subgroups",
    "toc_curves",
    "tree",
    "uplift_curves",
]
