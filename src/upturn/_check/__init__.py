"""`upturn.check`: is this experiment sound?"""

from ._examine import check
from ._report import CheckReport, Finding

__all__ = ["CheckReport", "Finding", "check"]
