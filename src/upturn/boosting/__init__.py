"""Ensembles of uplift models: boosting in three variants, and bagging."""

from upturn.boosting._bagging import UpliftBagging
from upturn.boosting._boosting import UpliftBoosting

__all__ = ["UpliftBagging", "UpliftBoosting"]
