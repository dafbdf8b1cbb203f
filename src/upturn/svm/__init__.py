"""Support vector machines for uplift: two hyperplanes, pairwise ranking, and the classifiers they are compared with."""

from upturn.svm._classic import StandardSVM, SubgroupSVM, TwoCostSVM
from upturn.svm._differential import DifferentialSVM
from upturn.svm._uplift import UpliftSVM

__all__ = ["DifferentialSVM", "StandardSVM", "SubgroupSVM", "TwoCostSVM", "UpliftSVM"]
