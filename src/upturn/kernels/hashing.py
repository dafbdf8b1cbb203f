"""Random numbers as pure functions of what they are for.

A draw is ``draw(key, i)``: the i-th 64-bit word under a key, and keys are folded from whatever the draw belongs to,
``fold(fold(seed, PURPOSE), tree)``. There is no stream and no state, so the order in which draws are asked for, or the
number of threads that ask, cannot change them. The mixing function is the finaliser of SplitMix64 (Steele, Lea and
Flood, "Fast splittable pseudorandom number generators", 2014).

All arithmetic is on uint64: numba turns a mixture of int64 and uint64 into float64.
"""

from __future__ import annotations

import math

import numpy as np

from upturn.kernels._jit import U8, F8_out, U8_out, inner, kernel, u8, void

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32, _S11, _ONE = (np.uint64(k) for k in (30, 27, 31, 32, 11, 1))

# What a draw is for. Two purposes never share a key.
BOOTSTRAP = np.uint64(1)
RESTART = np.uint64(2)
FOLDS = np.uint64(3)  # which fold a row is dealt to
SPLIT = np.uint64(4)  # which side of a random split a row is on
TIES = np.uint64(5)  # the order of people whom a plan cannot tell apart
HALVES = np.uint64(6)  # the rows that `check` fits its models on
GROUPS = np.uint64(8)  # which group of a large arm a row is resampled with
LANDMARKS = np.uint64(9)  # the rows a kernel machine is built on
BAND = np.uint64(10)  # the nested samples of a margin problem
COORDINATES = np.uint64(11)  # the order in which coordinate descent visits multipliers
QUADRUPLES = np.uint64(12)  # the rows of a stochastic gradient
EDGES = np.uint64(14)  # the rows of a long table that bins of boosted trees are taken from
LOOK = np.uint64(15)  # the rows of which a forest compares the arms
REPLICATES = np.uint64(13)  # how often a row is in a replicate of rows that lie in several places


@inner
def mix(z):
    """Scramble 64 bits, one to one."""
    z = (z ^ (z >> _S30)) * _M1
    z = (z ^ (z >> _S27)) * _M2
    return z ^ (z >> _S31)


@inner
def fold(key, value):
    """The key of ``value`` under ``key``, both uint64."""
    return mix(key + mix(value + _GOLDEN))


@inner
def draw(key, i):
    """The i-th 64-bit word under ``key``, both uint64."""
    return mix(key + (i + _ONE) * _GOLDEN)


@inner
def below(word, n):
    """A number in 0 … n - 1 from a word, n below 2**32; the bias is under n / 2**32."""
    return ((word >> _S32) * n) >> _S32


@inner
def uniform(word):
    """A float in [0, 1) from a word."""
    return (word >> _S11) * (1.0 / 9007199254740992.0)


@kernel(void, u8, u8, u8, u8, U8, F8_out)
def exponentials(seed, purpose, index, first, ids, out):
    """Fill ``out`` with independent standard exponential numbers, one per row; rows are numbered from ``first`` on, or have ``ids``."""
    key = fold(fold(seed, purpose), index)
    for i in range(len(out)):
        row = ids[i] if len(ids) else first + np.uint64(i)
        out[i] = -math.log(1.0 - uniform(draw(key, row)))


@kernel(void, u8, u8, u8, U8_out)
def words(seed, purpose, index, out):
    """Fill ``out`` with independent 64-bit words, one per row."""
    key = fold(fold(seed, purpose), index)
    for i in range(len(out)):
        out[i] = draw(key, np.uint64(i))


@kernel(void, u8, u8, u8, U8, U8_out)
def words_of(seed, purpose, index, ids, out):
    """The same words for rows by their ids: those of ``words`` where a row's id is its number."""
    key = fold(fold(seed, purpose), index)
    for i in range(len(out)):
        out[i] = draw(key, ids[i])
