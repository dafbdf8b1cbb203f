"""Gates for what only some metrics take: one group without arms, responses, recommendations."""

from __future__ import annotations

from typing import Any

import numpy as np

from upturn._arrays import Floats, Indices
from upturn._columns import (
    as_floats,
    check_finite,
    check_magnitude,
    check_same_length,
    is_missing,
    read_outcome,
    read_weight,
    to_numpy,
)
from upturn._rows import by_label
from upturn._target import Target, is_packed, read_labels, read_ranking, scale_weight


def read_group(y: Any, score: Any, sample_weight: Any) -> tuple[Floats, Floats, Floats | None, float]:
    """Outcome, score and weight of one group, and what a weight of 1 stands for; see :func:`upturn._target.read_measured`."""
    if is_packed(y):
        raise ValueError(
            "y is a packed target and this judges one group: pass the outcomes of the rows of one arm, as y[treatment == arm]"
        )
    values = read_outcome(y)
    weight = None if sample_weight is None else read_weight(sample_weight)
    if weight is not None:
        check_same_length({"y": values, "sample_weight": weight})
        if not weight.any():
            raise ValueError("sample_weight is 0 for every row: some weight must be positive")
    check_magnitude(values, "y")
    return values, read_ranking(score, len(values))[:, 0], *scale_weight(weight)


def read_recommended(recommended: Any, target: Target) -> Indices:
    """Recommended labels as arm codes."""
    labels = read_labels(recommended, "recommended")
    check_same_length({"y": target.y, "recommended": labels})
    arms = target.labels
    if labels.dtype.kind == "O":  # labels of several kinds, which can be told apart but not sorted
        positions: dict[Any, int] = {}
        try:
            inverse = np.fromiter((positions.setdefault(v, len(positions)) for v in labels), np.intp, len(labels))
        except TypeError:
            raise TypeError(
                f"recommended holds values that cannot be labels: expected one of {arms!r} for each row"
            ) from None
        found = [label.item() if isinstance(label, np.generic) else label for label in positions]
    else:
        distinct, inverse = np.unique(labels, return_inverse=True)
        found = distinct.tolist()
    strange = [label for label in found if is_missing(label) or label not in arms]
    if strange:
        raise ValueError(
            f"recommended holds {strange[0]!r}, which is not an arm of the experiment: treatment has the labels "
            f"{arms!r}; recommend one of them for each row, as model.recommend(X) does"
        )
    return np.array([arms.index(label) for label in found], dtype=np.intp)[inverse]


def read_response(response: Any, target: Target) -> Floats:
    """Expected outcomes of every row under every arm, (n, 1 + K) with control first; of a frame, under the labels."""
    response, expected = by_label(response, target.labels, "response"), (len(target.y), target.n_arms + 1)
    raw = to_numpy(response, "response")
    if raw.shape != expected:
        raise ValueError(
            f"response has shape {raw.shape}: expected {expected}, the outcome expected of every row under control and "
            "under each arm, as model.predict_response(X) gives it"
        )
    values = as_floats(raw, "response")
    check_finite(values, "response", "every expected outcome must be finite")
    check_magnitude(values, "response")
    return values
