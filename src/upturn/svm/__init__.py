"""Support vector machines for uplift: two hyperplanes, pairwise ranking, and the classifiers they are compared with."""

from upturn.svm._classic import StandardSVM, SubgroupSVM, TwoCostSVM
from upturn.svm._cv import UpliftSVMCV
from upturn.svm._diagnostics import ScoreBalance, energy_distance, score_balance, sign_shares
from upturn.svm._differential import DifferentialSVM
from upturn.svm._uplift import UpliftSVM
from upturn.svm._vanishing import VanishingWarning

__all__ = [
    "DifferentialSVM",
    "ScoreBalance",
    "StandardSVM",
    "SubgroupSVM",
    "TwoCostSVM",
    "UpliftSVM",
    "UpliftSVMCV",
    "VanishingWarning",
    "energy_distance",
    "score_balance",
    "sign_shares",
]
