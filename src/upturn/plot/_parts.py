"""A picture of a feature's parts: the rates of the arms in each."""

from __future__ import annotations

from typing import Any

import numpy as np

from upturn._parameters import INTERVAL, NONE, check
from upturn._units import unit_scale, unit_text
from upturn.metrics._estimate import reach_of
from upturn.plot._style import COLOURS, MARKERS, STYLES, legend, new_axes, tidy


def parts(model: Any, feature: str | int, *, interval: float | None = 0.95, ax: Any = None) -> Any:
    """Draw the rate (or mean outcome) of every arm in every part that UMODL found in a feature.

    Grey are the parts in which the arms do not differ (W = 0).

    Parameters
    ----------
    model : UMODLDiscretizer or UMODLSelector
        A fitted model.
    feature : str or int
        Name or position of the feature.
    interval : float, optional
        Confidence level of the intervals around rates; None draws none.
    ax : matplotlib axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from upturn import plot
    >>> from upturn.datasets import simulate_pattern
    >>> from upturn.features import UMODLDiscretizer
    >>> data = simulate_pattern("scissors", n=5000, random_state=0)
    >>> umodl = UMODLDiscretizer().fit(data.X, data.y, data.treatment)
    >>> ax = plot.parts(umodl, 0)  # doctest: +SKIP
    """
    check("interval", interval, INTERVAL | NONE)
    fitted = getattr(model, "discretizer_", model)  # a selector has one inside
    if not hasattr(fitted, "partition_of"):
        raise TypeError(f"plot.parts got {type(model).__name__}: expected a fitted UMODLDiscretizer or UMODLSelector")
    name, part, labels = fitted.partition_of(feature)
    classes, place = fitted.classes_, np.arange(part.n_parts)
    rate = list(classes) == [0, 1]
    scale = unit_scale(rate)
    ax = new_axes(ax)
    for i in place[~part.separate]:
        ax.axvspan(i - 0.5, i + 0.5, color="#ebebeb", zorder=0, linewidth=0)
    means, errors = part.responses(classes), part.standard_errors(classes)
    half = None if interval is None else reach_of(interval) * errors
    for a, label in enumerate([fitted.control_, *fitted.arms_]):
        shift = 0.12 * (a - (means.shape[1] - 1) / 2)
        ax.errorbar(
            place + shift,
            scale * means[:, a],
            yerr=None if half is None else scale * half[:, a],
            color=COLOURS[a % len(COLOURS)],
            marker=MARKERS[a % len(MARKERS)],
            linestyle=STYLES[a % len(STYLES)],
            linewidth=1,
            capsize=3,
            label=str(label),
        )
    ax.set_xticks(place, labels, rotation=30, ha="right")
    ax.set_xlim(-0.5, part.n_parts - 0.5)
    ax.set(xlabel=name, ylabel=f"outcome {unit_text(rate)}", title="Outcome of the arms by part")
    legend(ax, beside=True)
    tidy(ax)
    return ax
