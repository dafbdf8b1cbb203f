"""Uplift trees and forests: one histogram engine for every criterion, any number of arms, any outcome."""

from upturn.trees._forest import UpliftForest
from upturn.trees._presets import CTSForest, UCTSForest
from upturn.trees._tree import UpliftTree

__all__ = ["CTSForest", "UCTSForest", "UpliftForest", "UpliftTree"]
