"""What all pictures share: colours, line styles, axes."""

from __future__ import annotations

from typing import Any

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
STYLES = ["-", (0, (6, 3)), "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2))]
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


def band(ax: Any, x: Any, low: Any, high: Any, j: int) -> None:
    """The band of line number j, edged in the style of its line, so that it is told from others in grey too."""
    from matplotlib.colors import to_rgba

    colour, style = COLOURS[j % len(COLOURS)], STYLES[j % len(STYLES)]
    ax.fill_between(x, low, high, facecolor=to_rgba(colour, 0.13), linewidth=0)
    for side in (low, high):
        ax.plot(x, side, color=to_rgba(colour, 0.45), linestyle=style, linewidth=0.6, label="_band")


def tidy(ax: Any) -> None:
    """Take away what is not data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)


def legend(ax: Any) -> None:
    """A legend without a box."""
    ax.legend(frameon=False, handlelength=2.8)
