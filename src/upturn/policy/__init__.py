"""From effects to decisions: whom to treat for a budget, what that gains, and whether to believe it.

======================  ==================================================================================
``target``              whom to treat, and with what: a share of people, a budget, or whoever pays
``gain_curve``          what every budget would gain, with intervals
``UpliftCalibrator``    turns any score into an effect, so that ``recommend`` works for every model
``four_groups``         persuadables, sure things, lost causes and sleeping dogs, and what can be known
``iptw_weights``        weights that undo a biased assignment
``overlap``             how far the arms of a study can be compared at all
======================  ==================================================================================
"""

from upturn.policy._calibration import UpliftCalibrator
from upturn.policy._curve import GainCurve, gain_curve
from upturn.policy._groups import FourGroups, four_groups
from upturn.policy._rule import TargetingRule
from upturn.policy._target import Targeting, target
from upturn.policy._weights import Overlap, iptw_weights, overlap

__all__ = [
    "FourGroups",
    "GainCurve",
    "Overlap",
    "Targeting",
    "TargetingRule",
    "UpliftCalibrator",
    "four_groups",
    "gain_curve",
    "iptw_weights",
    "overlap",
    "target",
]
