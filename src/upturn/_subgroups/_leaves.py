"""Leaves of a fitted tree in words: every condition on the way, with those on one column put together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from upturn._arrays import Bools
from upturn.trees._export import written


@dataclass(frozen=True)
class _Range:
    """What a path allows of one column: values above ``low`` and up to ``high``, or levels; missing values or not."""

    low: float = -np.inf
    high: float = np.inf
    levels: tuple[Any, ...] | None = None
    missing: bool = True
    values: bool = True  # whether anything but a missing value is allowed

    def words(self, name: str, gaps: bool) -> str:
        """As one condition; ``gaps`` says whether the column has missing values at all."""
        tail = " or missing" if gaps and self.missing else ""
        if not self.values:
            return f"{name} is missing"
        if self.levels is not None:
            several = f"in {{{', '.join(str(level) for level in self.levels)}}}"
            return f"{name} {several if len(self.levels) != 1 else f'= {self.levels[0]}'}{tail}"
        if np.isinf(self.low) and np.isinf(self.high):
            return f"{name} is not missing" if gaps and not self.missing else ""
        low, high = written(self.low, 4), written(self.high, 4)
        if np.isinf(self.low):
            return f"{name} <= {high}{tail}"
        return f"{name} > {low}{tail}" if np.isinf(self.high) else f"{low} < {name} <= {high}{tail}"


def leaf_words(model: Any, gaps: Bools) -> dict[int, str]:
    """The words of every leaf by its number, from left to right; ``gaps`` marks the columns that have missing values."""
    tree, schema = model.export_json(), model._schema
    levels = {name: tuple(found) for name, found in zip(schema.names, schema.levels, strict=True) if found is not None}
    gap = dict(zip(schema.names, gaps.tolist(), strict=True))
    found: dict[int, str] = {}
    for number, ranges in _paths(tree["root"], {}, levels):
        parts = [part for name, allowed in ranges.items() if (part := allowed.words(name, gap[name]))]
        if len(parts) > 1:
            parts = [f"({part})" if " or " in part else part for part in parts]
        found[number] = " and ".join(parts) or "all rows"
    return found


def _paths(root: dict[str, Any], start: dict[str, _Range], levels: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    waiting = [(root, start)]
    while waiting:
        node, ranges = waiting.pop()
        if "feature" not in node:
            yield node["node"], ranges
            continue
        name = node["feature"]
        now = ranges.get(name, _Range())
        to_left = node["missing"] == "left"
        left, right = (replace(now, missing=now.missing and there) for there in (to_left, not to_left))
        if "levels" in node:
            allowed = now.levels if now.levels is not None else levels[name]
            chosen = set(node["levels"])
            left = replace(left, levels=tuple(level for level in allowed if level in chosen))
            right = replace(right, levels=tuple(level for level in allowed if level not in chosen))
        elif node["threshold"] is None:  # missing values alone go one way
            left, right = (replace(left, values=False), right) if to_left else (left, replace(right, values=False))
        else:
            cut = node["threshold"]
            left, right = replace(left, high=min(now.high, cut)), replace(right, low=max(now.low, cut))
        waiting += [(node["right"], {**ranges, name: right}), (node["left"], {**ranges, name: left})]
