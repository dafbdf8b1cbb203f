"""Which rows a tree sees: exact subsamples by arm and Poisson bootstraps, row by row.

Every row has a role (``OUT``, ``IN``, ``GROW``, ``ESTIMATE``, ...) and an id: its number in the table, or one of a list. A draw is a hash of
the id, so a row's part in a sample does not depend on where the row lies. A sample of an exact number of rows of each arm is those with
the smallest hashes, so it is known by a :class:`Cut`, the largest hash of each arm that is still drawn. The cut is near a known place, as
hashes are uniform: one pass counts the hashes below a narrow :class:`Window` around it and lists those inside (:func:`look`), and of them
the right one is picked (:func:`find_cut`). What was found in several places is put together first (:func:`merge`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from upturn.kernels._jit import I8, U1, U8, I8_out, U1_out, U4_out, U8_out, f8, i8, inner, kernel, u1, u8, void
from upturn.kernels.hashing import draw, fold, uniform

OUT, IN, GROW, ESTIMATE = np.uint8(0), np.uint8(1), np.uint8(2), np.uint8(3)
# What the draws of trees are for (``hashing`` has the other purposes).
ROWS = np.uint64(16)  # the rows a tree is grown on
HALF = np.uint64(17)  # the half sample a group of trees shares
HONEST = np.uint64(18)  # approximation against estimation rows
NODE = np.uint64(19)  # the root of the keys of a tree's nodes
EDGES = np.uint64(20)  # the rows whose values decide the edges of the bins
PRUNE = np.uint64(21)  # the validation rows of a pruned tree
OUTCOME = np.uint64(22)  # all draws of the trees that predict the outcome
REHEARSAL = np.uint64(23)  # the made experiment that intervals are calibrated on

_MOST = 15  # copies of a row in one bootstrap: the chance of more is 2e-14 a row
_WIDE = (
    8.0  # standard deviations of the cut on either side of where it is expected: it lies elsewhere once in 10^15 times
)
_LAST = np.uint64(0xFFFFFFFFFFFFFFFF)
NO_IDS = np.empty(0, np.uint64)


class Window(NamedTuple):
    """Where the cut of each arm is looked for, from ``low`` to ``high``, both included."""

    low: object
    high: object


class Found(NamedTuple):
    """How many hashes of each arm lie below its window, and those inside it with their arms."""

    below: object
    arm: object
    hashes: object


class Cut(NamedTuple):
    """The largest hash of each arm that is drawn, and whether any is."""

    last: object
    some: object


@kernel(u8, u8, u8, u8)
def purpose_key(seed, purpose, number):
    """Key of all draws for a purpose in tree (or group of trees) ``number``."""
    return fold(fold(seed, purpose), number)


@inner
def _id(first, ids, row):
    """The id of a row: those of a table in its own order are numbers from ``first`` on."""
    return ids[row] if ids.size > 0 else first + row


def choose(key, arm, source, target, count, wanted, role, first=0, ids=NO_IDS):
    """Give ``wanted[a]`` rows of each arm a role ``target`` instead of ``source``, which ``count[a]`` have; all if there are fewer.

    No row has the role ``target`` before. One pass gives it to the rows below the windows and lists those inside, of which the cut then decides.
    """
    window = make_window(count, wanted)
    room = _room(len(role), window)
    below, some = np.zeros(len(wanted), np.int64), (wanted > 0).astype(np.uint8)
    rows, arms, hashes = np.empty(room, np.uint32), np.empty(room, np.uint8), np.empty(room, np.uint64)
    inside = _choose_below(
        key, np.uint64(first), ids, arm, source, target, *window, some, role, below, rows, arms, hashes
    )
    if inside <= room:
        rows, arms, hashes = rows[:inside], arms[:inside], hashes[:inside]
        cut = find_cut(Found(below, arms, hashes), count, wanted)
        if cut is not None:
            role[rows[(hashes <= cut.last[arms]) & (some[arms] == 1)]] = target
            return
    role[role == target] = source
    cut = find_cut(look(key, arm, source, role, whole_window(len(wanted)), first, ids), count, wanted)
    choose_up_to(key, np.uint64(first), ids, arm, source, target, *cut, role)


def make_window(count, wanted):
    """A window that holds the cut of each arm, but for one case in 10^15; an arm of which all or nothing is drawn needs none."""
    low, high = np.full(len(wanted), _LAST), np.full(len(wanted), _LAST)
    for a, (n, k) in enumerate(zip(count.tolist(), wanted.tolist(), strict=True)):
        if 0 < k < n:
            share = k / n
            half = _WIDE * (math.sqrt(share * (1.0 - share) / n) + _WIDE / n)
            low[a] = int(max(share - half, 0.0) * 2.0**64)
            high[a] = min(int((share + half) * 2.0**64), 2**64 - 1)
    return Window(low, high)


def whole_window(n_arms):
    """All hashes of every arm."""
    return Window(np.zeros(n_arms, np.uint64), np.full(n_arms, _LAST))


def look(key, arm, source, role, window, first=0, ids=NO_IDS):
    """What lies below and inside the windows, of the rows of role ``source``."""
    room = _room(len(role), window)
    while True:
        below = np.zeros(len(window.low), np.int64)
        arms, hashes = np.empty(room, np.uint8), np.empty(room, np.uint64)
        inside = _look(key, np.uint64(first), ids, arm, source, role, *window, below, arms, hashes)
        if inside <= room:
            return Found(below, arms[:inside], hashes[:inside])
        room = inside


def _room(n, window):
    """How many of ``n`` hashes may be inside the windows, with some to spare."""
    spans = window.high.astype(np.float64) - window.low.astype(np.float64)
    share = min(max(float(spans.max()), 0.0) * 2.0**-64 * 1.2, 1.0)
    return min(int(n * share) + 4096, n)


def merge(found):
    """What was found in several places."""
    return Found(
        sum(one.below for one in found),
        *(np.concatenate(parts) for parts in zip(*(one[1:] for one in found), strict=True)),
    )


def find_cut(found, count, wanted):
    """The cuts that draw ``wanted[a]`` of ``count[a]`` rows; None if one of them lies outside its window."""
    last, some = np.full(len(wanted), _LAST), (wanted > 0).astype(np.uint8)
    for a in np.flatnonzero((wanted > 0) & (wanted < count)):
        hashes, place = found.hashes[found.arm == a], wanted[a] - found.below[a] - 1
        if not 0 <= place < len(hashes):
            return None
        last[a] = np.partition(hashes, place)[place]
    return Cut(last, some)


@kernel(i8, u8, u8, U8, U1, u1, U1, U8, U8, I8_out, U1_out, U8_out)
def _look(key, first, ids, arm, source, role, low, high, below, arms, hashes):
    """Count hashes below the windows and list those inside, as far as there is room; return how many there are."""
    inside = np.uint64(0)
    for row in range(np.uint64(role.size)):
        if role[row] == source:
            h, a = draw(key, _id(first, ids, row)), np.uint64(arm[row])
            below[a] += np.int64(h < low[a])  # added, not branched on: which side it is on is anybody's guess
            if h - low[a] <= high[a] - low[a]:  # modulo 2^64: one comparison for both ends
                if inside < np.uint64(hashes.size):
                    arms[inside], hashes[inside] = arm[row], h
                inside += np.uint64(1)
    return np.int64(inside)


@kernel(i8, u8, u8, U8, U1, u1, u1, U8, U8, U1, U1_out, I8_out, U4_out, U1_out, U8_out)
def _choose_below(key, first, ids, arm, source, target, low, high, some, role, below, rows, arms, hashes):
    """Give rows below the windows the role ``target``, and list those inside, as far as there is room; return how many there are."""
    inside = np.uint64(0)
    for row in range(np.uint64(role.size)):
        if role[row] == source:
            h, a = draw(key, _id(first, ids, row)), np.uint64(arm[row])
            drawn = np.uint8(h < low[a])
            below[a] += np.int64(drawn)
            role[row] = target if drawn & some[a] else source  # written either way: no branch to guess
            if h - low[a] <= high[a] - low[a]:  # modulo 2^64: one comparison for both ends
                if inside < np.uint64(hashes.size):
                    rows[inside], arms[inside], hashes[inside] = row, arm[row], h
                inside += np.uint64(1)
    return np.int64(inside)


@kernel(void, u8, u8, U8, U1, u1, u1, U8, U1, U1_out)
def choose_up_to(key, first, ids, arm, source, target, last, some, role):
    """Give the rows whose hashes are not above their arm's cut a role ``target`` instead of ``source``."""
    for row in range(np.uint64(role.size)):
        if role[row] == source:
            a = np.uint64(arm[row])
            drawn = np.uint8(draw(key, _id(first, ids, row)) <= last[a]) & some[a]
            role[row] = target if drawn else source  # written either way: no branch to guess


@kernel(void, u8, u8, U8, f8, u1, u1, U1_out, U1_out)
def poisson_bootstrap(key, first, ids, rate, source, target, role, copies):
    """Draw how often each row of role ``source`` appears, Poisson with mean ``rate``; rows that do get ``target``."""
    none = math.exp(-rate)
    for row in range(np.uint64(role.size)):
        if role[row] != source:
            continue
        u = uniform(draw(key, _id(first, ids, row)))
        k = 0
        chance = none
        below = none
        while u >= below and k < _MOST:
            k += 1
            chance *= rate / k
            below += chance
        copies[row] = k
        if k > 0:
            role[row] = target


@kernel(void, U1, u1, U1, I8_out)
def count_roles(role, value, arm, out):
    """Add the number of rows of a role to ``out``, by arm."""
    for row in range(role.size):
        if role[row] == value:
            out[arm[row]] += 1


@kernel(i8, U1, u1, U1, I8, i8, i8, U1, U4_out, I8_out, U1_out)
def gather_rows(role, value, copies, words, n_words, weight_word, arm, index, word, row_arm):
    """List the rows of a role, ascending, with what the histograms add for them; return how many.

    ``copies`` may be empty (every row once). Without them, rows that come without their weight, ``weight_word``, stay so.
    """
    m, room, own = np.uint64(0), np.uint64(index.size), np.uint64(1)
    bare = n_words == 1 or (weight_word > 0 and copies.size == 0)
    for row in range(np.uint64(role.size)):
        if m == room:
            break
        times = np.int64(copies[row]) if copies.size > 0 else 1
        index[m] = row  # every row is written, and the next one over it unless it has the role: no branch to guess
        row_arm[m] = arm[row]
        if bare:
            word[m] = words[row] * times
        else:
            word[m + m] = (weight_word if weight_word > 0 else words[row + row]) * times
            word[m + m + own] = (words[row] if weight_word > 0 else words[row + row + own]) * times
        m += np.uint64(role[row] == value)
    return np.int64(m)
