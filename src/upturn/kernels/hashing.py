"""Random numbers as pure functions of what they are for.

There is no stream: a draw is a hash of (seed, purpose, tree, node path, row or feature), so it does not depend on the
order in which trees, nodes or rows are visited, on the number of threads, or on how the rows are spread over machines.

``mix`` folds one more number into a 64-bit key (a multiply-xorshift finaliser of the splitmix family), ``uniform``
turns a key into a float in [0, 1), and ``child_key`` walks from a node's key to its children's.
"""

from __future__ import annotations

import numpy as np

from ._jit import inner, kernel, u8

_ODD = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_UNIT = 1.0 / 9007199254740992.0  # 2^-53

# What a draw is for. Two purposes never share a key.
ROWS = np.uint64(1)  # the rows a tree is grown on
HALF = np.uint64(2)  # the half sample a group of trees shares
HONEST = np.uint64(3)  # approximation against estimation rows
NODE = np.uint64(4)  # the root of the keys of a tree's nodes
FEATURE = np.uint64(5)  # the order in which a node looks at the features
RANDOM = np.uint64(6)  # whether a node draws one feature only
LEFT = np.uint64(7)
RIGHT = np.uint64(8)
EDGES = np.uint64(9)  # the rows whose values decide the edges of the bins
PRUNE = np.uint64(10)  # the validation rows of a pruned tree


@inner
def mix(key, value):
    """Fold ``value`` into ``key`` (both uint64)."""
    z = (key ^ (value * _ODD)) + _ODD
    z = (z ^ (z >> _S30)) * _FIRST
    z = (z ^ (z >> _S27)) * _SECOND
    return z ^ (z >> _S31)


@inner
def uniform(key):
    """Turn a key into a float64 in [0, 1)."""
    return (key >> _S11) * _UNIT


@inner
def child_key(key, left):
    """Walk from a node's key to that of its left or right child."""
    return mix(key, LEFT if left else RIGHT)


@kernel(u8, u8, u8, u8)
def purpose_key(seed, purpose, number):
    """Key of draw family ``purpose`` of tree (or group) ``number`` under ``seed``."""
    return mix(mix(mix(np.uint64(0), seed), purpose), number)
