"""What all pictures share: colours, line styles, axes."""

from __future__ import annotations

from typing import Any

from upturn._parameters import Rule, check

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
STYLES = ["-", (0, (6, 3)), "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2))]
MARKERS = "os^Dv"
HATCHES = ["", "//", "..", "xx", "\\\\", "++", "oo"]
GREY = "#666666"
MOST_BARS = 10_000  # more bars than any picture has room for


def new_axes(ax: Any, figsize: tuple[float, float] = (6, 4)) -> Any:
    """The axes given, or new ones."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'upturn[plot]'") from None
    from matplotlib.axes import Axes

    if ax is not None:
        check("ax", ax, Rule("None, or axes of matplotlib", lambda given: isinstance(given, Axes)))
        return ax
    return plt.subplots(figsize=figsize, layout="constrained")[1]


def line_style(j: int) -> dict[str, Any]:
    """Colour and dashes of line number j. Both change from one to the next, and the pair repeats only after 49 lines."""
    return {"color": COLOURS[j % len(COLOURS)], "linestyle": STYLES[(j + j // len(COLOURS)) % len(STYLES)]}


def band(ax: Any, x: Any, low: Any, high: Any, j: int) -> None:
    """The band of line number j, edged in the style of its line, so that it is told from others in grey too."""
    from matplotlib.colors import to_rgba

    colour, style = line_style(j).values()
    ax.fill_between(x, low, high, facecolor=to_rgba(colour, 0.13), linewidth=0)
    for side in (low, high):
        ax.plot(x, side, color=to_rgba(colour, 0.45), linestyle=style, linewidth=0.6, label="_band")


def diverging(value: float) -> tuple[float, ...]:
    """A light colour for a number from -1 to 1: orange, white, blue. Black letters can be read on each of them."""
    from matplotlib.colors import to_rgb

    share = 0.65 * min(abs(value), 1.0)
    return tuple(1.0 - share * (1.0 - part) for part in to_rgb(COLOURS[0] if value >= 0 else COLOURS[1]))


def plain_numbers(*axes: Any) -> None:
    """Write numbers along axes in full, unless somebody chose otherwise."""
    from matplotlib.ticker import ScalarFormatter

    from upturn.plot._ticks import Plain

    for axis in axes:
        if type(axis.get_major_formatter()) is ScalarFormatter:
            axis.set_major_formatter(Plain())


def tidy(ax: Any) -> None:
    """Take away what is not data."""
    plain_numbers(ax.xaxis, ax.yaxis)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)


def legend(ax: Any, beside: bool = False) -> None:
    """A legend without a box, where it hides least, or beside the picture."""
    place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if beside else {}
    ax.legend(frameon=False, handlelength=2.8, **place)
