"""The gate for clusters: households, centres, shops, whatever makes rows alike that are not alike by chance.

People of a household answer alike, so they say less than as many strangers: what is resampled, split or tested is then the
household. ``groups=`` has that meaning everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Arms, Bools, Indices, Ints
from upturn._columns import as_column, check_same_length, is_missing, to_numpy


def read_clusters(groups: Any) -> Indices:
    """A number from 0 on for every row's cluster; labels that can be sorted are numbered in their order."""
    labels = as_column(to_numpy(groups, "groups"), "groups")
    if labels.dtype.kind == "O":
        places: dict[Any, int] = {}
        try:
            codes = np.fromiter((places.setdefault(label, len(places)) for label in labels), np.intp, len(labels))
        except TypeError:
            raise TypeError("groups holds values that cannot be labels: expected numbers, text or dates") from None
        by_identity = object.__hash__  # of what is equal to nothing but itself
        odd = [label for label in places if getattr(type(label), "__hash__", None) is by_identity]
        if not all(is_missing(label) for label in odd):
            raise TypeError("groups holds values that cannot be labels: expected numbers, text or dates")
        missing = [code for label, code in places.items() if is_missing(label)]
    else:
        if labels.dtype.kind not in "biufUSmM":
            raise TypeError(f"groups is of type {labels.dtype}: expected numbers, text or dates, one for each row")
        distinct, codes = np.unique(labels, return_inverse=True)
        missing = np.flatnonzero(distinct != distinct).tolist()
    if missing:
        rows = np.flatnonzero(np.isin(codes, missing))
        raise ValueError(
            f"groups is missing in {len(rows):,} row(s), the first at row {rows[0]}: give a row that belongs to nobody else a "
            "cluster of its own, or leave it out"
        )
    return codes.astype(np.intp)


def check_clusters(clusters: Indices, n: int) -> None:
    """Refuse clusters of other rows than those of the experiment."""
    check_same_length({"y": np.empty(n, np.uint8), "groups": clusters})


def arms_of(clusters: Indices, arm: Arms) -> tuple[Ints, Bools]:
    """The lowest arm code in every cluster, and whether it is the only one; clusters are numbered without gaps."""
    order = np.lexsort((arm, clusters))
    first = np.flatnonzero(np.concatenate(([True], np.diff(clusters[order]) > 0)))
    last = np.concatenate((first[1:], [len(order)])) - 1
    lowest = arm[order[first]].astype(np.int64)
    return lowest, lowest == arm[order[last]]


def whole_clusters(clusters: Indices, arm: NDArray[Any]) -> bool:
    """Whether every cluster lies in one arm, as where clusters were assigned and not people."""
    return bool(arms_of(np.unique(clusters, return_inverse=True)[1], arm)[1].all())
