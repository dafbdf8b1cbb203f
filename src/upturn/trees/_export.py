"""A tree for people and for other programs: nested dicts, and text made from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools
from upturn._parameters import check, whole
from upturn._results import number_text
from upturn._table import Schema
from upturn._target import Label
from upturn._units import unit_scale, unit_text
from upturn.trees._bins import Bins
from upturn.trees._nodes import Nodes


def describe(nodes: Nodes, bins: Bins, schema: Schema, arms: Sequence[Label], rate: bool) -> dict[str, Any]:
    """One tree as nested dicts of JSON values, in plain units; ``rate`` says whether the outcome is yes or no.

    A node has ``node`` (its number), ``weight`` and ``response`` per arm (control first, as listed by ``arms`` at the
    top), ``effect`` of each arm against control; an inner node also ``feature``, ``gain``, ``missing`` ("left" or
    "right"), ``gaps`` (whether any value of the feature was missing at fit), either ``threshold`` (values up to it go left; None if only missing values separate) or ``levels`` (those
    that go left), and ``left`` and ``right``.
    """

    built: list[dict[str, Any]] = []
    for node in range(len(nodes.feature)):
        value, weight = nodes.value[node], nodes.weight[node]
        built.append(
            {
                "node": node,
                "weight": weight.tolist(),
                "response": value.tolist(),
                "effect": (value[1:] - value[0]).tolist(),
            }
        )
    for node in np.flatnonzero(~nodes.is_leaf).tolist():
        out, left, feature = built[node], int(nodes.left[node]), int(nodes.feature[node])
        out["feature"] = schema.names[feature]
        out["gain"] = float(nodes.gain[node])
        out["missing"] = "left" if nodes.missing_left[node] else "right"
        out["gaps"] = schema.names[feature] in schema.gaps
        if nodes.category_set[node] >= 0:
            levels = schema.levels[feature] or ()
            chosen = set_members(nodes.sets[nodes.category_set[node]])
            out["levels"] = [levels[level] for level in bins.levels_of(feature, chosen)]
        else:
            out["threshold"] = threshold(bins, feature, int(nodes.cut[node]))
        out["left"], out["right"] = built[left], built[left + 1]
    return {"arms": list(arms), "rate": rate, "root": built[0]}


def set_members(words: NDArray[np.uint64]) -> Bools:
    """The 256 bits of a category set as a mask."""
    bits = np.arange(64, dtype=np.uint64)
    return ((words[:, None] >> bits) & np.uint64(1)).astype(bool).reshape(-1)


def threshold(bins: Bins, feature: int, cut: int) -> float | None:
    """The largest value that goes left, None if every value goes the same way."""
    if cut == 0 or cut > bins.edges.shape[1]:
        return None
    edge = float(bins.edges[feature, cut - 1])
    return edge if np.isfinite(edge) else None


DIGITS = whole(least=1, most=17).named("a number of significant digits from 1 to 17")


def written(value: float, digits: int) -> str:
    """A bound with so many significant digits and its whole part in full, as it is compared with: 30612, not 3.061e+04."""
    ahead = len(str(int(abs(value)))) if 1.0 <= abs(value) < 1e17 else 0
    return number_text(value, digits=max(digits, ahead)).replace(",", "")


def condition(node: dict[str, Any], digits: int = 4, most_levels: int | None = None, side: str = "left") -> str:
    """What goes to one side of an inner node, in words; of more than ``most_levels`` levels the first few.

    Missing values are spoken of where the feature has some.
    """
    name, missing = node["feature"], node["missing"] == side
    tail = " or missing" if missing and node["gaps"] else ""
    if "levels" in node:
        levels = [str(level) for level in node["levels"]]
        if most_levels is not None and len(levels) > most_levels:
            levels[most_levels - 1 :] = [f"… {len(levels) - most_levels + 1} more"]
        return f"{name} {'in' if side == 'left' else 'not in'} {{{', '.join(levels)}}}{tail}"
    if node["threshold"] is None:
        return f"{name} is missing" if missing else f"{name} is not missing"
    return f"{name} {'<=' if side == 'left' else '>'} {written(node['threshold'], digits)}{tail}"


def effect_words(node: dict[str, Any], tree: dict[str, Any], digits: int) -> list[str]:
    """The effect of every arm in the units of print, with the names of several arms."""
    arms, scale = tree["arms"][1:], unit_scale(tree["rate"])
    texts = [number_text(scale * effect, "+", digits) for effect in node["effect"]]
    return texts if len(arms) == 1 else [f"{arm} {text}" for arm, text in zip(arms, texts, strict=True)]


def response_words(node: dict[str, Any], tree: dict[str, Any], digits: int) -> list[str]:
    """Response and weight of control and every arm."""
    scale, rows = unit_scale(tree["rate"]), zip(tree["arms"], node["response"], node["weight"], strict=True)
    return [
        f"{arm}: {number_text(scale * response, '', digits)} (n={number_text(n, '', 6)})" for arm, response, n in rows
    ]


def to_text(tree: dict[str, Any], digits: int = 4) -> str:
    """Indented text: the units, then a line a test, and in every node the effects and each arm's response and weight."""
    check("digits", digits, DIGITS)
    lines = [f"effects and outcomes {unit_text(tree['rate'])}"]

    def numbers(node: dict[str, Any]) -> str:
        effects = ", ".join(words for words in effect_words(node, tree, digits))
        return f"effect {effects} [{'; '.join(response_words(node, tree, digits))}]"

    waiting = [("all", tree["root"], 0)]
    while waiting:
        words, node, depth = waiting.pop()
        lines.append(f"{'|   ' * depth}{words}: {numbers(node)}")
        if "feature" in node:
            waiting += [(condition(node, digits, side=side), node[side], depth + 1) for side in ("right", "left")]
    return "\n".join(lines)
