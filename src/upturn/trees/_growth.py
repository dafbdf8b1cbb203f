"""Growing: a binned experiment, the rules of a tree, the rows it sees; and the tree that comes of them.

Three objects, so that nothing is prepared twice: :class:`Soil` is fixed data (codes, arms, outcome), shared by all the
trees of a forest and by all the rounds of a boosting (``reweighted`` changes only the words); ``Sampling`` and the
kernel's ``Rules`` say how to grow; :meth:`Soil.grow` returns :class:`Nodes`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats, Ints
from upturn.kernels import growing, sampling
from upturn.kernels.criteria import Rules
from upturn.kernels.histogram import CELLS, Layout, Rows, seen, sum_rows
from upturn.kernels.sampling import ESTIMATE, GROW, NO_IDS, NODE
from upturn.trees._bins import Bins, Codes
from upturn.trees._nodes import Nodes
from upturn.trees._outcome import encode_outcome, read_sums
from upturn.trees._samples import Lot, Roles, Sampling, draw_roles

_MOST_KEPT_BYTES = 512 * 2**20  # of histograms kept for subtraction, a tree
NO_ROWS = Rows(np.empty(0, np.uint32), np.empty(0, np.int64), np.empty(0, np.uint8))


class Ground(Protocol):
    """What a model has to know of a binned experiment, wherever its rows lie."""

    @property
    def bins(self) -> Bins:
        """How values became codes."""

    @property
    def size(self) -> Floats:
        """Weight of each arm."""

    @property
    def mean(self) -> Floats:
        """Mean outcome of each arm."""

    @property
    def layout(self) -> Layout:
        """How sums of words are read."""

    def __len__(self) -> int: ...

    def features_constant(self) -> bool:
        """Whether every feature has the same code in all rows."""

    def outcome_constant(self) -> bool:
        """Whether the outcome is the same in all rows."""


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
    rows : int64 array of shape (1 + K,)
        Number of rows of each arm.
    size, mean : float64 arrays of shape (1 + K,)
        Weight and mean outcome of each arm.
    words : int64 array
        What histograms add for each row, read by ``layout``.
    layout : Layout
        How sums of words are read.
    ids : uint64 array of shape (n,), or empty
        The rows' numbers, by which samples are drawn, where they are not 0, 1, 2, …
    """

    bins: Bins
    codes: Codes
    arm: NDArray[np.uint8]
    rows: Ints
    size: Floats
    mean: Floats
    words: Ints
    layout: Layout
    ids: NDArray[np.uint64] = field(default_factory=lambda: NO_IDS)

    @classmethod
    def prepare(
        cls,
        bins: Bins,
        codes: Codes,
        arm: NDArray[np.uint8],
        n_arms: int,
        y: Floats,
        weight: Floats | None = None,
        ids: NDArray[np.uint64] = NO_IDS,
    ) -> Soil:
        """Put binned features and an outcome together; ``n_arms`` counts treatment arms, without control."""
        words, layout = encode_outcome(y, weight)
        means = arm_means(sum_words(words, arm, n_arms + 1, layout), layout)
        return cls(bins, codes, arm, np.bincount(arm, minlength=n_arms + 1), *means, words, layout, ids)

    def reweighted(self, y: Floats, weight: Floats | None) -> Soil:
        """The same features and arms with other weights or outcomes: what a round of boosting needs."""
        words, layout = encode_outcome(y, weight)
        size, mean = arm_means(sum_words(words, self.arm, len(self.mean), layout), layout)
        return replace(self, size=size, mean=mean, words=words, layout=layout)

    def __len__(self) -> int:
        return len(self.arm)

    def features_constant(self) -> bool:
        """Whether every feature has the same code in all rows."""
        return all((codes == codes[0]).all() for codes in self.codes)

    def outcome_constant(self) -> bool:
        """Whether the outcome is the same in all rows, as far as words without a weight of their own show it."""
        bare = self.layout.n_words == 1 or self.layout.weight_word > 0
        return bare and bool((self.words == self.words[0]).all())

    def roles(self, plan: Sampling, seed: np.uint64, tree: int) -> Roles:
        """Role of every row in a tree, and its copies (empty: one each); a pure function of seed, tree and row.

        Rows that are neither ``GROW`` nor ``ESTIMATE`` are not seen by the tree.
        """
        return draw_roles(Lot(self.arm, 0, self.ids), self.rows, plan, seed, tree)

    def grow(self, rules: Rules, plan: Sampling, seed: np.uint64, tree: int) -> Nodes:
        """Grow tree number ``tree`` of a forest."""
        role, copies = self.roles(plan, seed, tree)
        return self.grow_on(role, copies, rules, seed, tree)

    def grow_on(
        self, role: NDArray[np.uint8], copies: NDArray[np.uint8], rules: Rules, seed: np.uint64, tree: int
    ) -> Nodes:
        """Grow a tree on the rows that have the roles for it."""
        drawn = (self.words, self.arm, self.layout)
        rows = rows_of(role, copies, GROW, *drawn, reordered=rules.max_depth > 1)
        held = rows_of(role, copies, ESTIMATE, *drawn) if rules.honest else NO_ROWS
        key = sampling.purpose_key(seed, NODE, np.uint64(tree))
        binned = binned_by(self.bins, self.codes.reshape(-1), len(self), rules)
        layout = layout_with(self.layout, len(copies) > 0)
        above = np.concatenate([self.mean, self.mean])
        return to_nodes(growing.grow(key, 0, above, rows, held, binned, rules, layout), len(self.mean))


def rows_of(
    role: NDArray[np.uint8],
    copies: NDArray[np.uint8],
    value: np.uint8,
    words: Ints,
    arm: NDArray[np.uint8],
    layout: Layout,
    *,
    reordered: bool = True,
) -> Rows:
    """The rows of a role for the grower, which may bring them into the order of its nodes if they are ``reordered``."""
    n = int(np.count_nonzero(role == value))
    if n == len(role) and len(copies) == 0 and not reordered:
        own_words, own_arm = np.require(words, requirements="W"), np.require(arm, requirements="W")
        return Rows(np.arange(n, dtype=np.uint32), own_words, own_arm)
    row_words = 1 if layout.weight_word > 0 and len(copies) == 0 else layout.n_words
    rows = Rows(np.empty(n, np.uint32), np.empty(n * row_words, np.int64), np.empty(n, np.uint8))
    if n > 0:
        sampling.gather_rows(role, value, copies, words, layout.n_words, layout.weight_word, arm, *rows)
    return rows


def layout_with(layout: Layout, copies: bool) -> Layout:
    """How the words of a tree's rows are read: copies of a row have a weight each."""
    return layout._replace(weight_word=0) if copies else layout


def binned_by(bins: Bins, codes: NDArray[np.uint8], stride: int, rules: Rules) -> growing.Binned:
    """Codes for the grower; a block copies all features, which pays only if a good part of them is looked at."""
    pays = 3 * rules.max_features >= bins.n_features
    sizes = [size // bins.n_features if pays else 0 for size in (growing.BLOCK_BYTES, growing.FAR_BLOCK_BYTES)]
    return growing.Binned(codes, stride, bins.n_codes, bins.categorical, *sizes)


def arm_means(sums: Ints, layout: Layout) -> tuple[Floats, Floats]:
    """Weight and mean outcome of each arm from integer sums, whose order is of no consequence."""
    n_arms = len(sums) // 2
    size, total = read_sums(sums[:n_arms], sums[n_arms:], layout)
    return size, np.divide(total, size, out=np.full(n_arms, np.nan), where=size > 0.0)


def sum_words(words: Ints, arm: NDArray[np.uint8], n_arms: int, layout: Layout) -> Ints:
    """Integer sums of words: the weight of each arm, then the outcome of each."""
    sums = np.empty(2 * n_arms, np.int64)
    sum_rows(seen(Rows(np.empty(0, np.uint32), words, arm)), 0, len(arm), layout, sums)
    return sums


def weight_of_arms(weight: Floats, arm: NDArray[np.uint8], n_arms: int) -> Floats:
    """The weight of each arm, from integers whose order is of no consequence."""
    words, layout = encode_outcome(np.zeros(len(arm)), weight)
    return sum_words(words, arm, n_arms, layout)[:n_arms] * np.float64(layout.weight_unit)


def to_nodes(grown: tuple[Any, ...], n_responses: int) -> Nodes:
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
