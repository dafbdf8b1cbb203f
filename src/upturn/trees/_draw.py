"""A picture of a tree: boxes with each arm's weight and response, coloured by effect."""

from __future__ import annotations

from typing import Any

from upturn.trees._export import condition

_MOST_LEVELS = 5  # named in a box


def draw_tree(tree: dict[str, Any], *, ax: Any = None, max_depth: int | None = None, digits: int = 3) -> Any:
    """Draw a tree made by ``export_json`` with matplotlib; deeper nodes than ``max_depth`` are left out."""
    import matplotlib.pyplot as plt

    places: dict[int, tuple[float, int]] = {}
    n_leaves = _place(tree["root"], 0, max_depth, places, 0)
    depth = max(level for _, level in places.values())
    if ax is None:
        _, ax = plt.subplots(figsize=(max(6.0, 2.6 * n_leaves), 1.9 * (depth + 1)))
    ax.set_axis_off()
    ax.set_xlim(-0.6, n_leaves - 0.4)
    ax.set_ylim(-depth - 0.5, 0.6)
    largest = max(abs(effect) for node in _walk(tree["root"]) for effect in node["effect"]) or 1.0
    colours = plt.get_cmap("RdYlGn")

    def box(node: dict[str, Any]) -> None:
        x, level = places[node["node"]]
        best = max(node["effect"])
        lines = [
            f"{arm}: {response:.{digits}g} (n={weight:.6g})"
            for arm, response, weight in zip(tree["arms"], node["response"], node["weight"], strict=True)
        ]
        lines.append("effect " + ", ".join(f"{effect:+.{digits}g}" for effect in node["effect"]))
        splits = "feature" in node and node["left"]["node"] in places
        if splits:
            lines.append(condition(node, digits, _MOST_LEVELS) + "?")
            for side, label in (("left", "yes"), ("right", "no")):
                child_x, child_level = places[node[side]["node"]]
                ax.plot([x, child_x], [-level, -child_level], color="0.6", linewidth=1, zorder=1)
                ax.text((x + child_x) / 2, -(level + child_level) / 2, label, fontsize=7, color="0.3", zorder=2)
                box(node[side])
        colour = colours(0.5 + 0.45 * best / largest)
        shape = {"boxstyle": "round", "facecolor": colour, "edgecolor": "0.4", "alpha": 0.9}
        ax.text(x, -level, "\n".join(lines), ha="center", va="center", fontsize=8, bbox=shape, zorder=3)

    box(tree["root"])
    return ax


def _walk(node: dict[str, Any]) -> list[dict[str, Any]]:
    return [node] + ([*_walk(node["left"]), *_walk(node["right"])] if "feature" in node else [])


def _place(
    node: dict[str, Any], level: int, most: int | None, places: dict[int, tuple[float, int]], leaves: int
) -> int:
    """Give the leaves places from left to right and every parent the middle of its children; count the leaves."""
    if "feature" not in node or (most is not None and level >= most):
        places[node["node"]] = (float(leaves), level)
        return leaves + 1
    leaves = _place(node["left"], level + 1, most, places, leaves)
    leaves = _place(node["right"], level + 1, most, places, leaves)
    middle = (places[node["left"]["node"]][0] + places[node["right"]["node"]][0]) / 2
    places[node["node"]] = (middle, level)
    return leaves
