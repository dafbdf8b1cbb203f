"""What the dissertation looks at beside AUUC: neutral shares against the ratio, and how alike two groups' scores are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from upturn._arrays import Floats
from upturn._columns import (
    as_column,
    as_floats,
    check_finite,
    check_magnitude,
    check_same_length,
    read_weight,
    to_numpy,
)
from upturn._experiment import Experiment
from upturn._parameters import check, check_parameters
from upturn._seeds import make_seed
from upturn._table import read_table
from upturn._target import read_measured, read_target, scale_weight
from upturn.svm._energy import EXPONENT, ascending, energy, signed_weights
from upturn.svm._uplift import RATIO, UpliftSVM, UpliftTask


def energy_distance(
    first: Any, second: Any, exponent: float = 1.0, *, sample_weight: tuple[Any, Any] | None = None
) -> float:
    r"""Energy distance between two samples of numbers, in O(n log n).

    .. math:: 2\,E|X - Y|^\alpha - E|X - X'|^\alpha - E|Y - Y'|^\alpha

    It is 0 only for equal distributions. Székely and Rizzo's statistic :math:`e^{(\alpha)}` is this times
    :math:`n_1 n_2 / (n_1 + n_2)`.

    Parameters
    ----------
    first, second : array-like
        The samples.
    exponent : float
        :math:`\alpha`, in [1, 2).
    sample_weight : pair of array-like, optional
        Weights of both samples.

    Returns
    -------
    float

    References
    ----------
    Zaniewicz, "Support Vector Machines for Uplift Modeling", 2018, (5.2.1) and (5.2.3).

    Examples
    --------
    >>> from upturn.svm import energy_distance
    >>> energy_distance([0.0, 1.0], [0.0, 1.0])
    0.0
    >>> energy_distance([0.0, 0.0], [1.0])
    2.0
    """
    check("exponent", exponent, EXPONENT)
    samples = [_read_sample(first, "first"), _read_sample(second, "second")]
    scores = np.concatenate(samples)
    in_first = np.arange(scores.shape[0]) < samples[0].shape[0]
    weight = None if sample_weight is None else np.concatenate(_read_weights(sample_weight, samples))
    value, _ = energy(scores, signed_weights(in_first, weight), float(exponent))
    return max(value, 0.0)


def _read_sample(values: Any, name: str) -> Floats:
    numbers = as_floats(as_column(to_numpy(values, name), name), name)
    check_finite(numbers, name, "every number of a sample must be finite")
    check_magnitude(numbers, name)
    return numbers


def _read_weights(sample_weight: Any, samples: list[Floats]) -> list[Floats]:
    if not isinstance(sample_weight, list | tuple) or len(sample_weight) != 2:
        raise ValueError("sample_weight: expected a pair of arrays, the weights of the first and of the second sample")
    weights = []
    for given, sample, name in zip(sample_weight, samples, ("first", "second"), strict=True):
        weight, _ = scale_weight(read_weight(given))
        assert weight is not None
        check_same_length({name: sample, f"sample_weight of {name}": weight})
        if not weight.any():
            raise ValueError(f"sample_weight is 0 for all of {name}: some weight must be positive")
        weights.append(weight)
    return weights


@dataclass(frozen=True)
class ScoreBalance:
    """How differently a model scores the treatment and the control group (Table 6.5.2).

    Attributes
    ----------
    mean_difference : float
        Mean score of the treatment group minus that of control.
    ks : float
        Kolmogorov-Smirnov statistic: the largest difference of the two distribution functions.
    energy : float
        Energy distance with exponent 1.
    score, treated_cdf, control_cdf : arrays
        The distinct scores in ascending order, and both groups' empirical distribution functions at them.
    """

    mean_difference: float
    ks: float
    energy: float
    score: Floats
    treated_cdf: Floats
    control_cdf: Floats


def score_balance(score: Any, treatment: Any, *, sample_weight: Any = None, control: Any = None) -> ScoreBalance:
    """Compare the distributions of a model's scores in the two groups of an experiment.

    Parameters
    ----------
    score : array-like of shape (n,)
        A model's predictions.
    treatment : array-like of shape (n,)
        Labels of two arms.
    sample_weight : array-like of shape (n,), optional
        Weights.
    control : label, optional
        Which label is control, when its name does not tell.

    Returns
    -------
    ScoreBalance

    Examples
    --------
    >>> from upturn.svm import score_balance
    >>> found = score_balance([1.0, 2.0, 3.0, 4.0], [1, 1, 0, 0])
    >>> found.mean_difference, found.ks
    (-2.0, 1.0)
    """
    values = _read_sample(score, "score")
    target = read_measured(values, treatment, sample_weight, control=control)
    if target.n_arms != 1:
        raise ValueError(f"scores of two groups are compared, and treatment holds the arms {target.labels!r}")
    treated = target.arm == 1
    signed = signed_weights(treated, target.weight)
    order = ascending(values)
    ordered = values[order]
    last = np.append(ordered[1:] != ordered[:-1], True)
    above = np.cumsum(np.where(signed > 0, signed, 0.0)[order])[last]
    below = np.cumsum(np.where(signed < 0, -signed, 0.0)[order])[last]
    distance, _ = energy(values, signed, 1.0)
    return ScoreBalance(
        float(signed @ values), float(np.abs(above - below).max()), max(distance, 0.0), ordered[last], above, below
    )


def sign_shares(model: UpliftSVM, X: Any, y: Any, treatment: Any, ratios: Iterable[float]) -> Floats:
    """Shares of rows predicted harmed, unmoved and helped, as C2/C1 grows (Figures 6.3.1 and 6.3.2).

    Parameters
    ----------
    model : UpliftSVM
        Its parameters are used, apart from ``ratio``; it is not changed.
    X, y, treatment
        An experiment, as for ``fit``.
    ratios : sequence of float
        Values of C2/C1.

    Returns
    -------
    array of shape (number of ratios, 3)
        Shares of the signs -1, 0 and +1, each the mean of the shares in the two groups.

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.svm import UpliftSVM, sign_shares
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    >>> y = rng.random(300) < 0.5 + 0.4 * treatment * np.tanh(2 * X[:, 0])
    >>> shares = sign_shares(UpliftSVM(p=2.0), X, y, treatment, [1.0, 2.0, 50.0])
    >>> bool(shares[0, 1] == 0 and shares[1, 1] > 0.3 and shares[2, 1] > 0.9)
    True
    """
    if not isinstance(model, UpliftSVM):
        raise TypeError(f"model is a {type(model).__name__}: expected an UpliftSVM, whose parameters are used")
    machine = clone(model)
    check_parameters(machine)
    matrix, schema = read_table(X)
    target = read_target(y, treatment, control=model.control, outcome="binary")
    data = Experiment(matrix, schema, target)
    wanted = as_floats(as_column(to_numpy(ratios, "ratios"), "ratios"), "ratios").tolist()
    for ratio in wanted:
        check("ratios", ratio, RATIO)
    seed = make_seed(machine.random_state)
    task = UpliftTask(machine, machine._learn_features(data, seed), data, seed)
    shares = []
    for solution in task.solve_grid(np.array([float(machine.C)]), np.array(wanted, dtype=np.float64)):
        sign = ((task.features @ solution.coef)[:, None] > solution.intercepts).sum(axis=1)
        groups = [np.bincount(sign[target.arm == arm], minlength=3) / (target.arm == arm).sum() for arm in (0, 1)]
        shares.append((groups[0] + groups[1]) / 2.0)
    return np.array(shares)
