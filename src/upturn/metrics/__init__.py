"""Metrics: curves and areas that judge a ranking by uplift, with intervals."""

from upturn.metrics._areas import auuc
from upturn.metrics._curves import Curve, uplift_curve
from upturn.metrics._estimate import Estimate

__all__ = ["Curve", "Estimate", "auuc", "uplift_curve"]
