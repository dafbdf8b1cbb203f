"""What all pictures share: colours, line styles, axes."""

from __future__ import annotations

from typing import Any

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
STYLES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2))]
GREY = "#666666"


def new_axes(ax: Any) -> Any:
    """The axes given, or new ones."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'upturn[plot]'") from None
    if ax is not None:
        return ax
    return plt.subplots(figsize=(6, 4), layout="constrained")[1]


def tidy(ax: Any) -> None:
    """Take away what is not data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)


def legend(ax: Any) -> None:
    """A legend without a box."""
    ax.legend(frameon=False, handlelength=2.8)
