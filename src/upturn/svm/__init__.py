"""Support vector machines for uplift: two hyperplanes, pairwise ranking, and the classifiers they are compared with."""

from upturn.svm._uplift import UpliftSVM

__all__ = ["UpliftSVM"]
