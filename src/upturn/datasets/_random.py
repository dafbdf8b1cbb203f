"""Random draws shared by the simulators: generators, assignment, outcomes, and putting an experiment together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats, Ints
from upturn._seeds import make_seed
from upturn.datasets._data import UpliftData

__all__ = ["Seed", "bernoulli", "coin", "equal_arms", "experiment", "generator", "logistic"]

Seed = int | np.random.Generator | np.random.RandomState | None


def generator(random_state: Seed) -> np.random.Generator:
    """Return a new generator; the same one for the same integer."""
    return np.random.default_rng(int(make_seed(random_state)))


def coin(rng: np.random.Generator, n: int, probability: Any = 0.5) -> Ints:
    """Return independent 0/1 draws."""
    return np.asarray(rng.random(n) < probability, dtype=np.int64)


def bernoulli(rng: np.random.Generator, response: Floats, arm: Ints) -> Ints:
    """Return 0/1 outcomes with each row's probability under the arm it got."""
    return coin(rng, len(arm), response[np.arange(len(arm)), arm])


def equal_arms(rng: np.random.Generator, n: int, groups: int) -> Ints:
    """Return a random assignment to groups whose sizes differ by at most one."""
    return rng.permutation(np.arange(n, dtype=np.int64) % groups)


def logistic(value: Floats) -> Floats:
    """Return 1 / (1 + exp(-value)), written so that nothing overflows."""
    half: Floats = 0.5 * (1.0 + np.tanh(0.5 * value))
    return half


def experiment(
    X: Any, y: NDArray[Any], treatment: NDArray[Any], response: Floats, name: str, description: str, **details: Any
) -> UpliftData:
    """Return the data with the effect that follows from the true expected outcomes, control in column 0."""
    effect = response[:, 1:] - response[:, :1]
    return UpliftData(
        X,
        y,
        treatment,
        effect[:, 0] if effect.shape[1] == 1 else effect,
        name,
        description,
        {"response": response, **details},
    )
