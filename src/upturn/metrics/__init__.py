"""Metrics: curves and areas that judge a ranking by uplift, with intervals, and comparisons between models."""

from upturn._results import Table
from upturn.metrics._areas import auu, auuc, lift_area
from upturn.metrics._at import uplift_at
from upturn.metrics._bins import calibration_table
from upturn.metrics._compare import RankingWarning, compare, evaluate
from upturn.metrics._curves import Curve, average_curves, lift_curve, uplift_curve
from upturn.metrics._effects import effect_scores, expected_response, modified_uplift_curve, policy_value
from upturn.metrics._estimate import Estimate, SmallSampleWarning
from upturn.metrics._rate import autoc, qini, rate
from upturn.metrics._rate_curves import qini_curve, toc_curve

__all__ = [
    "Curve",
    "Estimate",
    "RankingWarning",
    "SmallSampleWarning",
    "Table",
    "autoc",
    "auu",
    "auuc",
    "average_curves",
    "calibration_table",
    "compare",
    "effect_scores",
    "evaluate",
    "expected_response",
    "lift_area",
    "lift_curve",
    "modified_uplift_curve",
    "policy_value",
    "qini",
    "qini_curve",
    "rate",
    "toc_curve",
    "uplift_at",
    "uplift_curve",
]
