"""A picture of a tree: boxes from left to right with each arm's response and rows, coloured by effect."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from upturn._parameters import NONE, check, whole
from upturn._units import unit_text
from upturn.plot._style import GREY, diverging, new_axes
from upturn.trees._export import DIGITS, condition, effect_words, response_words

_MOST_LEVELS = 5  # named in a box
_MOST_LETTERS = 28  # of a line: a longer test is broken
_FONT = 8.0  # size of letters in points, where there is room
_LINE = 1.35 * _FONT / 72  # height of a line in inches
_GAP = 0.2  # between two boxes, their rims included
_WIDE = 2.15  # from one level to the next
_TITLE = 0.35  # height of the title

Node = dict[str, Any]


def tree(model: Any, index: int | None = None, *, max_depth: int | None = 3, digits: int = 3, ax: Any = None) -> Any:
    """Draw a tree: the root on the left, and from every test "yes" upwards and "no" downwards.

    A box has the estimated effect (with several arms: that of the best), and every arm's response and number of rows: rates per
    1,000 people, other outcomes per person.
    Blue boxes are people whom the treatment helps, orange ones people whom it harms; the deeper the colour, the larger
    the effect. The thicker a line, the more rows follow it. Boxes at the last level drawn say how many leaves are below.

    Parameters
    ----------
    model : UpliftTree or UpliftForest
        A fitted model: a single tree, or one of the forests of :mod:`upturn.trees`.
    index : int, optional
        Which tree of a forest, counted from 0.
    max_depth : int, optional
        Deepest level drawn. 3, the default, fits on a page; None draws everything.
    digits : int
        Significant digits of effects, responses and thresholds.
    ax : matplotlib axes, optional
        Where to draw, in letters as small as needed; a new figure as large as needed otherwise.

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
    >>> ax = plot.tree(forest, 3, max_depth=2)  # doctest: +SKIP
    """
    check("max_depth", max_depth, whole(least=0) | NONE)
    check("digits", digits, DIGITS)
    described = _described(model, index)
    layout, arms = _Layout(described["root"], max_depth), described["arms"]
    texts = {number: _lines(node, described, digits, number in layout.cut_off) for number, node in layout.nodes.items()}
    against = f"effect of {arms[1]} against {arms[0]}" if len(arms) == 2 else f"largest effect against {arms[0]}"
    ax, size = _room(ax, layout, texts, f"{against}, {unit_text(described['rate'])}: blue gains, orange loses")
    largest = max(abs(effect) for node in layout.nodes.values() for effect in node["effect"]) or 1.0
    all_rows = sum(described["root"]["weight"])
    middle = {"ha": "center", "va": "center", "fontsize": size}
    for number, node in layout.nodes.items():
        x, y = layout.place[number]
        for side, word in (("left", "yes"), ("right", "no")) if number in layout.inner else ():
            to_x, to_y = layout.place[node[side]["node"]]
            width = (0.8 + 5.0 * sum(node[side]["weight"]) / all_rows) * size / _FONT
            ax.plot([x, to_x], [y, to_y], color="#cccccc", linewidth=width, zorder=1)
            blank = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
            ax.text((x + to_x) / 2, (y + to_y) / 2, word, color=GREY, bbox=blank, zorder=2, **middle)
        colour = diverging(max(node["effect"]) / largest)
        box = {"boxstyle": "round,pad=0.35", "facecolor": colour, "edgecolor": GREY, "linewidth": 0.7}
        ax.text(x, y, "\n".join(texts[number]), linespacing=1.2, parse_math=False, bbox=box, zorder=3, **middle)
    return ax


def _described(model: Any, index: int | None) -> dict[str, Any]:
    """The tree as ``export_json`` has it."""
    if not hasattr(model, "export_json"):
        raise TypeError(
            f"plot.tree got {type(model).__name__}: expected a fitted UpliftTree, or a forest of upturn.trees and the number of "
            "one of its trees"
        )
    if not hasattr(model, "n_estimators"):
        if index is not None:
            raise ValueError(f"index={index!r}, and {type(model).__name__} is a single tree: leave it out")
        described: dict[str, Any] = model.export_json()
        return described
    if index is None:
        raise ValueError(f"{type(model).__name__} has several trees: say which, as in plot.tree(model, 0)")
    described = model.export_json(index)
    return described


class _Layout:
    """Which nodes are drawn, and where: each that has no child in the picture in a row of its own, parents in between.

    Attributes
    ----------
    nodes : dict from number to node
        What is drawn, parents first.
    inner, cut_off : sets of numbers
        Nodes whose children are drawn, and nodes with children that are not.
    place : dict from number to (x, y)
        Level, and minus the row.
    n_levels, n_rows : int
    """

    def __init__(self, root: Node, max_depth: int | None) -> None:
        self.nodes: dict[int, Node] = {}
        self.inner: set[int] = set()
        self.cut_off: set[int] = set()
        self.place: dict[int, tuple[float, float]] = {}
        self.n_levels, self.n_rows = 0, 0
        self._visit(root, 0, max_depth)

    def _visit(self, node: Node, level: int, most: int | None) -> float:
        number, split = node["node"], "feature" in node
        self.nodes[number], self.n_levels = node, max(self.n_levels, level + 1)
        if split and (most is None or level < most):
            self.inner.add(number)
            y = 0.5 * (self._visit(node["left"], level + 1, most) + self._visit(node["right"], level + 1, most))
        else:
            if split:
                self.cut_off.add(number)
            y = -float(self.n_rows)
            self.n_rows += 1
        self.place[number] = (float(level), y)
        return y

    def inches_a_row(self, heights: Mapping[int, float]) -> float:
        """How far apart rows must be so that no two boxes of a level, this high, touch."""
        needed = max(heights.values()) / self.n_rows
        for level in range(self.n_levels):
            column = sorted((-y, number) for number, (x, y) in self.place.items() if x == level)
            for (y, one), (other_y, other) in pairwise(column):
                needed = max(needed, 0.5 * (heights[one] + heights[other]) / (other_y - y))
        return needed


def _lines(node: Node, described: Node, digits: int, cut_off: bool) -> list[str]:
    """What a box says."""
    best = max(range(len(node["effect"])), key=node["effect"].__getitem__)
    of = " of" if len(described["arms"]) > 2 else ""
    lines = [f"effect{of} {effect_words(node, described, digits)[best]}", *response_words(node, described, digits)]
    if cut_off:
        lines.append(f"… {_leaves(node)} leaves")
    elif "feature" in node:
        lines += textwrap.wrap(condition(node, digits, _MOST_LEVELS) + "?", _MOST_LETTERS)
    return lines


def _leaves(node: Node) -> int:
    return _leaves(node["left"]) + _leaves(node["right"]) if "feature" in node else 1


def _room(ax: Any, layout: _Layout, texts: Mapping[int, list[str]], title: str) -> tuple[Any, float]:
    """Axes with a place for every box, and the size of letters that fits."""
    row = layout.inches_a_row({number: len(lines) * _LINE + _GAP for number, lines in texts.items()})
    width, height = _WIDE * layout.n_levels, row * layout.n_rows
    ax = new_axes(ax, figsize=(width, height + _TITLE))
    ax.set_axis_off()
    ax.set_title(title, fontsize=1.2 * _FONT)
    ax.set_xlim(-0.5, layout.n_levels - 0.5)
    ax.set_ylim(0.5 - layout.n_rows, 0.5)
    ax.figure.draw_without_rendering()  # a layout engine places the axes only now
    inside = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return ax, _FONT * min(inside.width / width, inside.height / height, 1.0)
