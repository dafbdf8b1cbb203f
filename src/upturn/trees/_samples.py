"""Samples: which rows a tree sees, wherever they lie.

A row's part in a tree is a function of the seed, the tree, the row's id, and a few numbers that all rows together decide: how many of each arm
there are, and the cut below which hashes are drawn (``kernels.sampling``). ``_steps`` takes the draws one after the other and stops at each such
number: a table in one place answers at once (``draw_roles``), rows in several places are asked, their answers merged, and the draws
go on (:class:`Answers`). Both give a row the same role.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools, Ints
from upturn.kernels import sampling
from upturn.kernels.sampling import ESTIMATE, GROW, HALF, HONEST, IN, NO_IDS, PRUNE, ROWS, Cut

_HALF_ROLE = np.uint8(4)
VALIDATION = np.uint8(5)  # rows that a tree is pruned by
_NO_COPIES = np.empty(0, np.uint8)
Roles = tuple[NDArray[np.uint8], NDArray[np.uint8]]


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
    validation : float
        Share of all rows, by arm, that a tree does not see because it is pruned by them.
    """

    bootstrap: bool = False
    fraction: float = 1.0
    rho: float | None = None
    group_size: int = 1
    validation: float = 0.0

    @property
    def share(self) -> float:
        """Share of an experiment's rows that shape a tree."""
        grown = self.fraction * (1.0 if self.rho is None else self.rho) * (0.5 if self.group_size > 1 else 1.0)
        return grown * (1.0 - self.validation)


class Lot(NamedTuple):
    """Rows that lie together: their arms and ids, which are numbers from ``first`` on if they are not listed."""

    arm: NDArray[np.uint8]
    first: int = 0
    ids: NDArray[np.uint64] = NO_IDS

    @property
    def numbers(self) -> NDArray[np.uint64]:
        """The ids, listed."""
        return self.ids if len(self.ids) else np.arange(len(self.arm), dtype=np.uint64) + np.uint64(self.first)

    def take(self, rows: Ints) -> Lot:
        """Some of the rows, which keep their ids."""
        return Lot(self.arm[rows], 0, self.numbers[rows])


@dataclass(frozen=True)
class Choice:
    """An exact number of rows of each arm that get a role ``target`` instead of ``source``; the answer is a cut."""

    key: np.uint64
    source: np.uint8
    target: np.uint8
    count: Ints
    wanted: Ints

    def look(self, lot: Lot, role: NDArray[np.uint8], *, wide: bool = False) -> Any:
        """What the rows of a lot have to say."""
        window = sampling.whole_window(len(self.wanted)) if wide else sampling.make_window(self.count, self.wanted)
        return sampling.look(self.key, lot.arm, self.source, role, window, lot.first, lot.ids)

    def merge(self, found: Sequence[Any]) -> Any:
        """The cut that all rows together decide; None if it has to be looked for everywhere."""
        return sampling.find_cut(sampling.merge(found), self.count, self.wanted)

    def settle(self, lot: Lot, role: NDArray[np.uint8]) -> None:
        """Give the rows of a lot that holds all of them their roles at once."""
        sampling.choose(self.key, lot.arm, self.source, self.target, self.count, self.wanted, role, lot.first, lot.ids)

    def carry_out(self, lot: Lot, cut: Cut | None, role: NDArray[np.uint8]) -> None:
        """Give the rows their roles; None if they are given already."""
        if cut is not None:
            sampling.choose_up_to(
                self.key, np.uint64(lot.first), lot.ids, lot.arm, self.source, self.target, cut.last, cut.some, role
            )


@dataclass(frozen=True)
class _Count:
    """How many rows of each arm have a role; the answer is that."""

    role: np.uint8
    n_arms: int

    def look(self, lot: Lot, role: NDArray[np.uint8], *, wide: bool = False) -> Any:
        """The number of a lot's rows."""
        return count_roles(role, self.role, lot.arm, self.n_arms)

    def settle(self, lot: Lot, role: NDArray[np.uint8]) -> Any:
        """The number of all rows, where a lot holds them."""
        return self.look(lot, role)

    def merge(self, found: Sequence[Any]) -> Any:
        """The number of all rows."""
        return np.sum(found, axis=0)


Question = Choice | _Count


def _steps(
    lot: Lot, size: Ints, plan: Sampling, seed: np.uint64, tree: int
) -> Generator[tuple[Question, NDArray[np.uint8]], Any, Roles]:
    """Draw a tree's rows from a lot: yields questions to all rows, with the roles so far, is sent the answers, returns roles and copies.

    ``size`` is the number of rows of each arm in all lots together.
    """
    copies, eligible, count = _NO_COPIES, IN, size
    whole = plan.group_size == 1 and not plan.bootstrap and plan.fraction == 1.0
    role = np.full(len(lot.arm), GROW if whole else IN)
    if plan.group_size > 1:
        wanted = _share(count, 0.5)
        half = Choice(
            sampling.purpose_key(seed, HALF, np.uint64(tree // plan.group_size)), IN, _HALF_ROLE, count, wanted
        )
        half.carry_out(lot, (yield half, role), role)
        eligible, count = _HALF_ROLE, wanted
    key = sampling.purpose_key(seed, ROWS, np.uint64(tree))
    if plan.bootstrap:
        copies = np.zeros(len(lot.arm), np.uint8)
        sampling.poisson_bootstrap(key, np.uint64(lot.first), lot.ids, plan.fraction, eligible, GROW, role, copies)
        drawn = yield _Count(GROW, len(size)), role
        for a in np.flatnonzero(drawn == 0):  # a tiny arm that drew nothing at all
            all_of_it = (role == eligible) & (lot.arm == a)
            role[all_of_it], copies[all_of_it] = GROW, 1
        count = np.where(drawn == 0, count, drawn)
    elif plan.fraction < 1.0:
        wanted = _share(count, plan.fraction)
        some = Choice(key, eligible, GROW, count, wanted)
        some.carry_out(lot, (yield some, role), role)
        count = wanted
    elif not whole:
        role[role == eligible] = GROW
    if plan.rho is not None:
        held = np.maximum(np.maximum(count - _share(count, plan.rho), np.minimum(count - 1, 1)), 0)
        key = sampling.purpose_key(seed, HONEST, np.uint64(tree))
        apart = Choice(key, GROW, ESTIMATE, count, held)
        apart.carry_out(lot, (yield apart, role), role)
    if plan.validation > 0.0:
        mixed = np.full(len(lot.arm), IN)
        wanted = np.clip(np.floor(plan.validation * size + 0.5).astype(np.int64), 1, size - 1)
        judges = Choice(sampling.purpose_key(seed, PRUNE, np.uint64(tree)), IN, VALIDATION, size, wanted)
        judges.carry_out(lot, (yield judges, mixed), mixed)
        role[mixed == VALIDATION] = VALIDATION
        if plan.rho is not None:  # an arm too small for three parts: what is left of it shapes the tree
            left = yield _Count(GROW, len(size)), role
            role[(role == ESTIMATE) & (left == 0)[lot.arm]] = GROW
    return role, copies


def draw_roles(lot: Lot, size: Ints, plan: Sampling, seed: np.uint64, tree: int) -> Roles:
    """Role of every row in a tree, and its copies (empty: one each), of a lot that holds all rows.

    Rows that are neither ``GROW`` nor ``ESTIMATE`` are not seen by the tree.
    """
    steps, answer = _steps(lot, size, plan, seed, tree), None
    while True:
        try:
            question, role = steps.send(answer)
        except StopIteration as done:
            roles: Roles = done.value
            return roles
        answer = question.settle(lot, role)


@dataclass(frozen=True)
class Answers:
    """The draws of one tree whose rows lie in several lots, and what is known of them so far.

    Every lot is asked :meth:`look`, what they find is merged by :meth:`tell`, until :attr:`complete`; then :meth:`roles` is known.
    """

    size: Ints
    plan: Sampling
    seed: np.uint64
    tree: int
    known: tuple[Any, ...] = ()
    wide: bool = False

    def _run(self, lot: Lot) -> tuple[Question, NDArray[np.uint8]] | Roles:
        """The first question whose answer is not known, with roles so far; or roles and copies."""
        steps = _steps(lot, self.size, self.plan, self.seed, self.tree)
        try:
            asked = next(steps)
            for answer in self.known:
                asked = steps.send(answer)
        except StopIteration as done:
            roles: Roles = done.value
            return roles
        return asked

    @property
    def complete(self) -> bool:
        """Whether nothing is left to ask."""
        return not isinstance(self._run(Lot(np.empty(0, np.uint8)))[0], Question)

    def look(self, lot: Lot) -> Any:
        """What a lot has to say to the question that is open."""
        question, role = self._run(lot)
        assert isinstance(question, Question)
        return question.look(lot, role, wide=self.wide)

    def tell(self, found: Sequence[Any]) -> Answers:
        """The same draws with what all lots found."""
        question, _ = self._run(Lot(np.empty(0, np.uint8)))
        assert isinstance(question, Question)
        answer = question.merge(found)
        if answer is None:
            return Answers(self.size, self.plan, self.seed, self.tree, self.known, wide=True)
        return Answers(self.size, self.plan, self.seed, self.tree, (*self.known, answer))

    def roles(self, lot: Lot) -> Roles:
        """Roles and copies of a lot's rows, once the draws are complete."""
        role, copies = self._run(lot)
        assert isinstance(role, np.ndarray)
        return role, copies


def unseen(role: NDArray[np.uint8]) -> Bools:
    """Mask of the rows that a tree with these roles does not see."""
    mask: Bools = (role != GROW) & (role != ESTIMATE)
    return mask


def count_roles(role: NDArray[np.uint8], value: np.uint8, arm: NDArray[np.uint8], n_arms: int) -> Ints:
    """How many rows of each arm have a role."""
    out = np.zeros(n_arms, np.int64)
    sampling.count_roles(role, value, arm, out)
    return out


def _share(count: Ints, share: float) -> Ints:
    """A share of the rows of each arm, rounded; at least one row."""
    wanted: Ints = np.minimum(count, np.maximum(1, np.floor(share * count + 0.5).astype(np.int64)))
    return wanted
