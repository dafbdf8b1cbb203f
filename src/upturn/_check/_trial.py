"""The experiment that `upturn.check` looks at: its gate, its arms two by two, and random halves of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from upturn._arrays import Bools, Floats, Indices, Ints
from upturn._clusters import check_clusters, read_clusters, whole_clusters
from upturn._columns import read_outcome
from upturn._experiment import Experiment
from upturn._rows import take_named
from upturn._seeds import make_seed
from upturn._table import read_table
from upturn._target import Label, open_packed, read_measured
from upturn.kernels.hashing import HALVES, words


class Pair(NamedTuple):
    """One arm beside control: the arm's number, the rows of both, and which of these are the arm's."""

    code: int
    rows: Indices
    treated: Bools


@dataclass(frozen=True)
class Trial:
    """An experiment with its unknown outcomes. Rows without one stay: they were assigned too; theirs is 0 in ``data``.

    ``clusters`` are the clusters of the rows, where there are any, and ``whole`` says that each lies in one arm: then clusters
    were assigned, and not people.
    """

    data: Experiment
    observed: Bools
    seed: np.uint64
    clusters: Indices | None = None
    whole: bool = False

    @classmethod
    def read(
        cls, X: Any, y: Any, treatment: Any, sample_weight: Any, control: Label | None, groups: Any, random_state: Any
    ) -> Trial:
        """Gate an experiment whose outcome may be missing; columns may be named in X."""
        X, columns, _ = take_named(X, y=y, treatment=treatment, sample_weight=sample_weight, groups=groups)
        y, treatment, sample_weight, groups = columns.values()
        y, treatment, sample_weight, control = open_packed(y, treatment, sample_weight, control)
        outcome = read_outcome(y, missing=True)
        observed = ~np.isnan(outcome)
        if not observed.any():
            raise ValueError("y is missing in every row: there is no outcome to judge an experiment by")
        target = read_measured(np.where(observed, outcome, 0.0), treatment, sample_weight, control=control)
        matrix, schema = read_table(X, quiet=True)
        data, clusters, whole = Experiment(matrix, schema, target), None, False
        if groups is not None:
            clusters = read_clusters(groups)
            check_clusters(clusters, len(target))
            whole = whole_clusters(clusters, target.arm)
        return cls(data, observed, make_seed(random_state), clusters, whole)

    @cached_property
    def pairs(self) -> list[Pair]:
        """Every treatment arm beside control."""
        arm, found = self.data.arm, []
        for k in range(1, self.data.n_arms + 1):
            rows = self.data.target.pair(k)
            found.append(Pair(k, rows, arm[rows] == k))
        return found

    @cached_property
    def arm_sizes(self) -> Ints:
        """Rows of control and of every arm; clusters, where those were assigned."""
        if not self.whole or self.clusters is None:
            return self.data.target.sizes
        first = np.unique(self.clusters, return_index=True)[1]
        return np.bincount(self.data.arm[first], minlength=self.data.n_arms + 1)

    @cached_property
    def weights(self) -> Floats:
        """The weights, ones when there are none."""
        return self.data.weights

    def thinned(self, pair: Pair, most: int, purpose: int) -> Pair:
        """A random part of a pair, of no more rows than ``most``, in their order."""
        if len(pair.rows) <= most:
            return pair
        keep = np.sort(np.argsort(self._words(pair, 2 * purpose), kind="stable")[:most])
        return Pair(pair.code, pair.rows[keep], pair.treated[keep])

    def clusters_of(self, rows: Indices) -> Indices | None:
        """The clusters of some rows, where there are any."""
        return None if self.clusters is None else self.clusters[rows]

    def half(self, pair: Pair, purpose: int) -> Bools:
        """A random half of the rows of a pair, half of either group in it; of clusters that were assigned, half of those."""
        if self.whole and self.clusters is not None:
            _, first, code = np.unique(self.clusters[pair.rows], return_index=True, return_inverse=True)
            named = Pair(pair.code, pair.rows[first], pair.treated[first])
            return self._half_of(named, purpose)[code]
        return self._half_of(pair, purpose)

    def _half_of(self, pair: Pair, purpose: int) -> Bools:
        word, half = self._words(pair, 2 * purpose + 1), np.zeros(len(pair.rows), dtype=bool)
        for group in (pair.treated, ~pair.treated):
            mine = np.flatnonzero(group)
            half[mine[np.argsort(word[mine], kind="stable")][: len(mine) // 2]] = True
        return half

    def _words(self, pair: Pair, purpose: int) -> Any:
        """A word for every row of a pair: a function of the seed, the arm, the purpose and the row's number."""
        word = np.empty(len(self.data), np.uint64)
        words(self.seed, HALVES, np.uint64(pair.code * 4 + purpose), word)
        return word[pair.rows]
