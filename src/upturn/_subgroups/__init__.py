"""`upturn.subgroups`: effects by group, with the statistics of a trial."""

from upturn._subgroups._factorial import Factorial, factorial
from upturn._subgroups._measure import subgroups
from upturn._subgroups._result import Subgroups

__all__ = ["Factorial", "Subgroups", "factorial", "subgroups"]
