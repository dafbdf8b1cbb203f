"""`upturn.check`: is this experiment sound?"""

from upturn._check._examine import check
from upturn._check._report import CheckReport, Finding

__all__ = ["CheckReport", "Finding", "check"]
