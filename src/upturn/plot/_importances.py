"""A picture of what a model goes by."""

from __future__ import annotations

from typing import Any

import numpy as np

from upturn._parameters import check, whole
from upturn.plot._style import COLOURS, new_axes, tidy


def importances(model: Any, *, n_features: int = 15, ax: Any = None) -> Any:
    """Draw the importance of a fitted model's features by name, the largest on top.

    Parameters
    ----------
    model : fitted model
        Any with ``feature_importances_``; their scale is the model's own, so that only those of one model compare.
    n_features : int
        How many are drawn at most; the others are put together in one bar.
    ax : matplotlib axes, optional
        Where to draw; a new figure otherwise, as high as there are features.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from upturn import plot
    >>> from upturn.datasets import simulate_campaign
    >>> from upturn.trees import UpliftForest
    >>> data = simulate_campaign(n=2000, random_state=0)
    >>> forest = UpliftForest(n_estimators=10, random_state=0).fit(data.X, data.y, data.treatment)
    >>> ax = plot.importances(forest)  # doctest: +SKIP
    """
    check("n_features", n_features, whole(least=1, most=100))
    if not hasattr(model, "feature_importances_"):
        raise TypeError(
            f"{type(model).__name__} has no feature_importances_: expected a fitted model that has them; foreign bases and kernels may not"
        )
    values = np.asarray(model.feature_importances_, dtype=np.float64)
    names = [str(name) for name in getattr(model, "feature_names_in_", [f"x{j}" for j in range(len(values))])]
    order = np.argsort(-values, kind="stable")
    shown, rest = order[:n_features], order[n_features:]
    heights, labels = values[shown].tolist(), [names[j] for j in shown]
    if len(rest):
        heights.append(float(values[rest].sum()))
        labels.append(f"{len(rest)} others, together" if len(rest) > 1 else "1 other")
    ax = new_axes(ax, (6, 1.0 + 0.28 * len(labels)))
    place = np.arange(len(labels))
    colours = [COLOURS[0]] * len(shown) + ["#bbbbbb"] * (len(labels) - len(shown))
    ax.barh(place, heights, color=colours, height=0.7)
    ax.set_yticks(place, [label if len(label) <= 32 else f"{label[:31]}…" for label in labels], parse_math=False)
    ax.invert_yaxis()
    ax.set(
        xlabel="importance, in the model's own units", ylabel="feature", title=f"What {type(model).__name__} goes by"
    )
    tidy(ax)
    ax.grid(visible=False, axis="y")
    return ax
