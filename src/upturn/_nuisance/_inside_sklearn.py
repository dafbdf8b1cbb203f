"""The one file that reaches into scikit-learn: the trees of a fitted HistGradientBoosting, as a flat table of nodes.

Nothing here is promised by scikit-learn. So nobody calls it who has not seen it agree with ``predict`` on a small model
(``_boosted.layout_is_known``), and there is another way to keep a model where it does not.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Ints
from upturn._levels import LevelCodes
from upturn._nuisance._flat_trees import AS_MISSING, LEFT, RIGHT, FlatTrees


def flatten(model: Any, codes: LevelCodes, logit: bool) -> FlatTrees:
    """The trees of a fitted model, in the columns and levels of our own matrix."""
    # scikit-learn moves categorical columns to the front and renumbers the levels it has seen.
    order = sorted(range(len(codes)), key=lambda j: (codes[j] is None, j))
    source = np.array(order, dtype=np.int32)
    parts: dict[str, list[NDArray[Any]]] = {
        name: [] for name in ("feature", "threshold", "left", "right", "missing", "start")
    }
    roots, sides, size, filled = [], [], 0, 0
    gain = np.zeros(len(codes))
    for (tree,) in model._predictors:
        nodes = tree.nodes
        leaf, categorical = nodes["is_leaf"].astype(bool), nodes["is_categorical"].astype(bool)
        start = np.full(len(nodes), -1, dtype=np.int64)
        for node in np.flatnonzero(categorical & ~leaf):
            code = codes[source[nodes["feature_idx"][node]]]
            assert code is not None
            entry = _sides(code, tree.raw_left_cat_bitsets[nodes["bitset_idx"][node]])
            start[node], filled = filled, filled + len(entry)
            sides.append(entry)
        roots.append(size)
        gain += np.bincount(source[nodes["feature_idx"][~leaf]], nodes["gain"][~leaf], len(codes))
        parts["feature"].append(np.where(leaf, -1, source[np.where(leaf, 0, nodes["feature_idx"])]))
        parts["threshold"].append(np.where(leaf, nodes["value"], np.where(categorical, 0.0, nodes["num_threshold"])))
        parts["left"].append(np.where(leaf, -1, nodes["left"].astype(np.int64) + size))
        parts["right"].append(np.where(leaf, -1, nodes["right"].astype(np.int64) + size))
        parts["missing"].append(nodes["missing_go_to_left"].astype(bool))
        parts["start"].append(start)
        size += len(nodes)
    kinds = {"feature": np.int32, "threshold": np.float64, "left": np.int32, "right": np.int32, "missing": bool}
    arrays = {name: np.concatenate(part).astype(kinds.get(name, np.int64)) for name, part in parts.items()}
    return FlatTrees(
        baseline=float(np.ravel(model._baseline_prediction)[0]),
        logit=logit,
        gain=gain,
        roots=np.array(roots, dtype=np.int64),
        sides=np.concatenate(sides) if sides else np.empty(0, dtype=np.uint8),
        **arrays,
    )


def _sides(code: Ints, bitset: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Where every level goes at a split whose left side is a set of codes."""
    word, bit = np.maximum(code, 0) // 32, np.maximum(code, 0) % 32
    goes_left = (bitset[word] >> bit.astype(np.uint32)) & np.uint32(1)
    return np.where(code < 0, AS_MISSING, np.where(goes_left == 1, LEFT, RIGHT)).astype(np.uint8)


_PREPARING = threading.Lock()


@contextlib.contextmanager
def prepares_alone(model: Any) -> Iterator[None]:
    """Let no two models code their levels or cut their columns into bins at once while the block runs.

    scikit-learn does both through joblib, and each of its tasks empties the warning filters of the process and fills them again.
    A task that finds them empty, because another is between the two, warns of "`sklearn.utils.parallel.delayed`".
    """
    methods = {name: getattr(model, name) for name in ("_preprocess_X", "_bin_data") if hasattr(model, name)}

    def alone(method: Any) -> Any:
        def call(*arguments: Any, **keywords: Any) -> Any:
            with _PREPARING:
                return method(*arguments, **keywords)

        return call

    for name, method in methods.items():
        setattr(model, name, alone(method))
    try:
        yield
    finally:
        for name in methods:
            delattr(model, name)
