"""Discretisation and selection of features for uplift."""

from upturn.features._discretizer import UMODLDiscretizer
from upturn.features._filters import FilterSelector
from upturn.features._selectors import UMODLSelector

__all__ = ["FilterSelector", "UMODLDiscretizer", "UMODLSelector"]
