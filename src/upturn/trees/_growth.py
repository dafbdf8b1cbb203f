"""Growing: a binned experiment, the rules of a tree, the rows it sees; and the tree that comes of them.

Three objects, so that nothing is prepared twice: :class:`Soil` is fixed data (codes, arms, outcome), shared by all the
trees of a forest and by all the rounds of a boosting (``reweighted`` changes only the words); :class:`Sampling` and the
kernel's ``Rules`` say how to grow; :meth:`Soil.grow` returns :class:`Nodes`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools, Floats, Ints
from upturn.kernels import growing, sampling
from upturn.kernels.criteria import Rules
from upturn.kernels.histogram import CELLS, Layout, Rows, arm_sums
from upturn.kernels.sampling import ESTIMATE, GROW, HALF, HONEST, IN, NODE, ROWS
from upturn.trees._bins import Bins, Codes
from upturn.trees._nodes import Nodes
from upturn.trees._outcome import encode_outcome

_HALF_ROLE = np.uint8(4)
_MOST_KEPT_BYTES = 512 * 2**20  # of histograms kept for subtraction, a tree
_NO_COPIES = np.empty(0, np.uint8)
_NO_WEIGHTS = np.empty(0)
NO_ROWS = Rows(np.empty(0, np.uint32), np.empty(0, np.int64), np.empty(0, np.uint8))


@dataclass(frozen=True)
class Sampling:
    """Which rows a tree sees.

    Attributes
    ----------
    bootstrap : bool
        Draw rows with replacement: every row appears a Poisson number of times.
    fraction : float
        Mean number of copies of a bootstrap, or the share of rows drawn without replacement, by arm.
    rho : float or None
        Share of those rows that shape an honest tree; the others give its values. None for a tree that is not honest.
    group_size : int
        Trees that share one half-sample of the experiment; 1 for no half-sampling.
    """

    bootstrap: bool = False
    fraction: float = 1.0
    rho: float | None = None
    group_size: int = 1

    @property
    def share(self) -> float:
        """Share of an experiment's rows that shape a tree."""
        return self.fraction * (1.0 if self.rho is None else self.rho) * (0.5 if self.group_size > 1 else 1.0)


@dataclass(frozen=True)
class Soil:
    """A binned experiment, ready to grow any number of trees.

    Attributes
    ----------
    bins : Bins
        How values became codes.
    codes : uint8 array of shape (p, n)
        Feature-major codes.
    arm : uint8 array of shape (n,)
        0 is control.
    size, mean : float64 arrays of shape (1 + K,)
        Weight and mean outcome of each arm.
    words : int64 array
        What histograms add for each row, read by ``layout``.
    layout : Layout
        How sums of words are read.
    """

    bins: Bins
    codes: Codes
    arm: NDArray[np.uint8]
    size: Floats
    mean: Floats
    words: Ints
    layout: Layout

    @classmethod
    def prepare(
        cls,
        bins: Bins,
        codes: Codes,
        arm: NDArray[np.uint8],
        n_arms: int,
        y: Floats,
        weight: Floats | None = None,
    ) -> Soil:
        """Put binned features and an outcome together; ``n_arms`` counts treatment arms, without control."""
        words, layout = encode_outcome(y, weight)
        return cls(bins, codes, arm, *_arm_means(arm, n_arms, y, weight), words, layout)

    def reweighted(self, y: Floats, weight: Floats | None) -> Soil:
        """The same features and arms with other weights or outcomes: what a round of boosting needs."""
        words, layout = encode_outcome(y, weight)
        size, mean = _arm_means(self.arm, len(self.mean) - 1, y, weight)
        return replace(self, size=size, mean=mean, words=words, layout=layout)

    def __len__(self) -> int:
        return len(self.arm)

    def roles(self, plan: Sampling, seed: np.uint64, tree: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Role of every row in a tree, and its copies (empty: one each); a pure function of seed, tree and row.

        Rows that are neither ``GROW`` nor ``ESTIMATE`` are not seen by the tree.
        """
        copies = _NO_COPIES
        eligible = IN
        whole = plan.group_size == 1 and not plan.bootstrap and plan.fraction == 1.0
        role = np.full(len(self), GROW if whole else IN)
        if plan.group_size > 1:
            group = sampling.purpose_key(seed, HALF, np.uint64(tree // plan.group_size))
            sampling.choose(group, self.arm, IN, _HALF_ROLE, self._share(role, IN, 0.5), role)
            eligible = _HALF_ROLE
        key = sampling.purpose_key(seed, ROWS, np.uint64(tree))
        if plan.bootstrap:
            copies = np.zeros(len(self), np.uint8)
            sampling.poisson_bootstrap(key, plan.fraction, eligible, GROW, role, copies)
            for a in np.flatnonzero(self._count(role, GROW) == 0):  # a tiny arm that drew nothing at all
                all_of_it = (role == eligible) & (self.arm == a)
                role[all_of_it], copies[all_of_it] = GROW, 1
        elif plan.fraction < 1.0:
            sampling.choose(key, self.arm, eligible, GROW, self._share(role, eligible, plan.fraction), role)
        elif not whole:
            role[role == eligible] = GROW
        if plan.rho is not None:
            drawn = self._count(role, GROW)
            held = np.maximum(drawn - self._share(role, GROW, plan.rho), np.minimum(drawn - 1, 1))
            key = sampling.purpose_key(seed, HONEST, np.uint64(tree))
            sampling.choose(key, self.arm, GROW, ESTIMATE, np.maximum(held, 0), role)
        return role, copies

    @staticmethod
    def unseen(role: NDArray[np.uint8]) -> Bools:
        """Mask of the rows that a tree with these roles does not see."""
        unseen: Bools = (role != GROW) & (role != ESTIMATE)
        return unseen

    def grow(self, rules: Rules, plan: Sampling, seed: np.uint64, tree: int) -> Nodes:
        """Grow tree number ``tree`` of a forest."""
        role, copies = self.roles(plan, seed, tree)
        return self.grow_on(role, copies, rules, seed, tree)

    def grow_on(
        self, role: NDArray[np.uint8], copies: NDArray[np.uint8], rules: Rules, seed: np.uint64, tree: int
    ) -> Nodes:
        """Grow a tree on the rows that have the roles for it."""
        rows = self._gather(role, copies, GROW, reordered=rules.max_depth > 1)
        held = self._gather(role, copies, ESTIMATE, reordered=True) if rules.honest else NO_ROWS
        key = sampling.purpose_key(seed, NODE, np.uint64(tree))
        n_features = self.bins.n_features
        # a block copies all features, which pays only if a good part of them is looked at
        block_rows = growing.BLOCK_BYTES // n_features if 3 * rules.max_features >= n_features else 0
        binned = growing.Binned(self.codes.reshape(-1), len(self), self.bins.n_codes, self.bins.categorical, block_rows)
        layout = (
            self.layout if len(copies) == 0 else self.layout._replace(weight_word=0)
        )  # copies of a row have a weight each
        return _to_nodes(growing.grow(key, 0, self.mean, rows, held, binned, rules, layout), len(self.mean))

    def _gather(self, role: NDArray[np.uint8], copies: NDArray[np.uint8], value: np.uint8, *, reordered: bool) -> Rows:
        """The rows of a role for the grower, which may bring them into the order of its nodes if they are ``reordered``."""
        n = int(np.count_nonzero(role == value))
        if n == len(self) and len(copies) == 0 and not reordered:
            words, arm = np.require(self.words, requirements="W"), np.require(self.arm, requirements="W")
            return Rows(np.arange(n, dtype=np.uint32), words, arm)
        layout = self.layout
        row_words = 1 if layout.weight_word > 0 and len(copies) == 0 else layout.n_words
        rows = Rows(np.empty(n, np.uint32), np.empty(n * row_words, np.int64), np.empty(n, np.uint8))
        if n > 0:
            sampling.gather_rows(role, value, copies, self.words, layout.n_words, layout.weight_word, self.arm, *rows)
        return rows

    def _count(self, role: NDArray[np.uint8], value: np.uint8) -> Ints:
        out = np.zeros(len(self.mean), np.int64)
        sampling.count_roles(role, value, self.arm, out)
        return out

    def _share(self, role: NDArray[np.uint8], value: np.uint8, share: float) -> Ints:
        """A share of the rows of a role in each arm, rounded; at least one row."""
        count = self._count(role, value)
        wanted: Ints = np.minimum(count, np.maximum(1, np.floor(share * count + 0.5).astype(np.int64)))
        return wanted


def _arm_means(arm: NDArray[np.uint8], n_arms: int, y: Floats, weight: Floats | None) -> tuple[Floats, Floats]:
    """Weight and mean outcome of each arm."""
    sums = np.zeros((n_arms + 1, 2))
    arm_sums(arm, y, _NO_WEIGHTS if weight is None else weight, sums)
    return sums[:, 0].copy(), sums[:, 1] / sums[:, 0]


def _to_nodes(grown: tuple[Any, ...], n_responses: int) -> Nodes:
    n_nodes, links, numbers, n_sets, sets = grown
    links, numbers = links[:n_nodes], numbers[:n_nodes]

    def column(j: int) -> NDArray[np.int32]:
        return np.ascontiguousarray(links[:, j])

    return Nodes(
        np.array([0, n_nodes]),
        column(growing.FEATURE_COLUMN),
        column(growing.CUT),
        column(growing.LEFT_CHILD),
        column(growing.CATEGORY_SET),
        links[:, growing.MISSING_LEFT] == 1,
        numbers[:, 0].copy(),
        numbers[:, 1 : 1 + n_responses].copy(),
        numbers[:, 1 + n_responses : 1 + 2 * n_responses].copy(),
        sets[:n_sets].view(np.uint64).copy(),
    )


def kept_histograms_fit(n_rows: int, n_features: int, n_responses: int, n_words: int) -> bool:
    """Whether the histograms that subtraction keeps take a reasonable amount of memory."""
    slots = int(n_rows).bit_length() + 2
    return slots * n_features * n_responses * CELLS * n_words * 8 <= _MOST_KEPT_BYTES
