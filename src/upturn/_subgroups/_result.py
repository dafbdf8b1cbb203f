"""The table of subgroups: effects, errors, intervals and p-values, and what they are worth together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools
from upturn._results import NOT_AVAILABLE, Table, level_text
from upturn._subgroups._multiple import Interaction
from upturn._units import unit_scale

OVERALL = "all rows"
_SE = {"ratio": "se of the logarithm", "odds_ratio": "se of the logarithm", "nnt": "se of the difference"}


class Subgroups(Table):
    """Effects by group. Made by :func:`upturn.subgroups`.

    A table of a row per group and treatment arm, and one per arm for everybody at the end, where ``group`` is
    "all rows". Rates, and their differences, are printed and drawn per 1,000 people. ``table["effect"]`` is a column in plain units, ``table.to_frame()`` a frame of the library the data came in, and
    :func:`upturn.plot.subgroups` its picture. Columns:

    =============================  =======================================================================================
    ``group``, ``arm``             name of the group, label of the arm
    ``n_control``, ``n_treated``   rows of control and of the arm
    ``mean_control``,              (weighted) mean outcomes
    ``mean_treated``
    ``effect``                     on the scale asked for
    ``se``                         standard error of the effect; of its logarithm for ratios, of the difference for ``nnt``
    ``low``, ``high``              interval of this group alone
    ``p_value``                    of no effect in this group
    ``p_holm``                     adjusted for the number of groups and arms, by Holm's rule
    ``low_all``, ``high_all``      intervals that hold in all groups at once (Šidák)
    ``in words``,                  for ``nnt``, both intervals in words: one through infinity reads
    ``all in words``               "benefit 12 to infinity to harm 30"
    =============================  =======================================================================================

    Attributes
    ----------
    interaction : list of Interaction
        Do the groups differ? Wald's test per arm and, of several, of all arms together.
    scale : str
    interval : float
        Confidence level.
    group : array of shape (n,) or None
        The number of every measured row's group, -1 for none; None where groups overlap.
    rows : array or None
        Numbers of the rows that were measured, where a model was fitted to the others.
    estimator : model or None
        The model that made the groups.
    """

    def __init__(
        self,
        columns: Mapping[str, Sequence[Any]],
        *,
        interaction: list[Interaction],
        scale: str,
        interval: float,
        group: NDArray[Any] | None,
        rows: NDArray[Any] | None,
        estimator: Any,
        rate: bool,
        title: str,
        notes: Sequence[str],
        library: str | None,
    ) -> None:
        formats: dict[str, Any] = dict.fromkeys(("p_value", "p_holm"), probability)
        if len(set(map(str, columns["arm"]))) == 1:
            formats["arm"] = None  # the title says it
        heads = {"se": _SE[scale]} if scale in _SE else {}
        if scale == "nnt":  # ends of an interval through infinity are no ends: they are told in words
            formats |= dict.fromkeys(("low", "high", "low_all", "high_all"))
            heads |= {"in words": f"{level_text(interval)} interval", "all in words": "of all at once"}
        scaled = ["mean_control", "mean_treated"]
        scaled += ["effect", "se", "low", "high", "low_all", "high_all"] if scale == "difference" else []
        scaled += ["se"] if scale == "nnt" else []
        scales = dict.fromkeys(scaled, unit_scale(rate))
        super().__init__(
            columns, title=title, notes=notes, formats=formats, heads=heads, scales=scales, library=library
        )
        self.interaction, self.scale, self.interval = interaction, scale, interval
        self.group, self.rows, self.estimator = group, rows, estimator

    @property
    def is_overall(self) -> Bools:
        """Which rows of the table are about everybody."""
        n_arms = len(set(map(str, self["arm"].tolist())))
        return np.arange(len(self)) >= len(self) - n_arms


def probability(p: float, sign: str = "") -> str:
    """A p-value as tables print it; in a sentence with its ``sign``."""
    if np.isnan(p):
        return NOT_AVAILABLE
    return f"<{' ' if sign else ''}0.0001" if p < 0.0001 else f"{sign}{p:.4f}"
