"""``propensity="auto"``: shares where nothing speaks against a randomised experiment, else the better of two models.

The choice is made once per fit, on all rows and without the outcome, and does not depend on the seed of the learner. On at
most 100,000 rows logistic regression and boosting predict who is in which arm, for rows they have not seen; their
log-odds against control are calibrated by a line (that of the other folds), and their log loss is compared with that of the arms' shares. Shares are kept
if neither model is better by more than one standard error of the paired difference and the joint test of balance that
:func:`upturn.check` makes has p > 0.1. Otherwise the model with the smaller loss is taken, with its calibration.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from upturn._arrays import Arms, Floats, Indices
from upturn._balance import balance_pvalue
from upturn._columns import warn_user
from upturn._experiment import Experiment
from upturn._nuisance._crossfit import crossfit
from upturn._nuisance._propensity import (
    Choice,
    Kind,
    PropensitySpec,
    calibrate,
    fit_propensity,
    kind_of,
    log_odds,
)
from upturn._propensity import shares_of
from upturn._sparse import SparseMatrix
from upturn._splitters import UpliftKFold
from upturn.kernels.hashing import HALVES, words

_MODELS: tuple[Kind, ...] = ("logistic", "boosting")
MOST_ROWS = 100_000  # that models of the arms are compared on
_FEWEST = 10  # rows of an arm; with fewer no model is tried
_BALANCED = 0.1  # p-value of the joint test of balance from which on shares may be kept
_SEEN, _SURE = 0.6, 2.4865  # an area that should be seen; z(.95) + z(.8): a one-sided test at 5% sees it 4 times in 5
_STEPS, _STEEPEST = 50, 3.0  # of a calibration
_ROWS = np.uint64(1 << 32)  # what the draw of rows is for, beyond all that `check` draws


def choose_propensity(spec: PropensitySpec, data: Experiment, n_jobs: int | None = None) -> Choice:
    """What the user asked for or, for "auto", what the rows speak for."""
    if not (isinstance(spec, str) and spec == "auto"):
        return Choice(kind_of(spec), spec)
    if isinstance(data.X, SparseMatrix):
        warn_user(
            "propensity='auto' looks for arms that differ among dense columns only: with a sparse X it takes the arms' shares, which is right for a "
            "randomised experiment; pass propensity='shares' to say that it is one, or 'logistic'",
            UserWarning,
        )
        return Choice("shares")
    data = _some(data)
    pvalue, sizes = balance_pvalue(data), data.target.sizes
    enough = _enough(sizes)
    if sizes.min() < _FEWEST:
        return Choice("shares", auc=0.5, pvalue=pvalue, enough=False)
    n_folds = 5 if len(data) <= 20_000 else 3
    folds = list(UpliftKFold(n_folds, stratify="arm", random_state=0).split(None, np.zeros(len(data)), data.arm))
    # Weights of any size mean the same; those of rows without one are 1.
    weight = data.weights / data.weights.sum()
    plain = -np.log(shares_of(data.arm, data.weight, data.n_arms))[data.arm]
    found = [_judge(kind, data, folds, weight, plain, n_jobs) for kind in _MODELS]
    best = min(found, key=lambda one: one.loss)
    if pvalue > _BALANCED and not any(one.better for one in found):
        return Choice("shares", auc=best.auc, pvalue=pvalue, enough=enough)
    return Choice(best.kind, calibration=best.calibration, auc=best.auc, pvalue=pvalue, enough=enough)


class _Judged(NamedTuple):
    """A kind of model, on rows it has not seen: calibration, log loss, area, and whether it clearly beats the shares."""

    kind: Kind
    calibration: Floats
    loss: float
    auc: float
    better: bool


def _some(data: Experiment) -> Experiment:
    """The rows that count, at most ``MOST_ROWS`` of them, by their hash."""
    if data.weight is not None and (data.weight == 0).any():
        data = data.take(np.flatnonzero(data.weight))
    if len(data) <= MOST_ROWS:
        return data
    word = np.empty(len(data), np.uint64)
    words(np.uint64(0), HALVES, _ROWS, word)
    return data.take(np.sort(np.argpartition(word, MOST_ROWS)[:MOST_ROWS]))


def _judge(
    kind: Kind,
    data: Experiment,
    folds: list[tuple[Indices, Indices]],
    weight: Floats,
    plain: Floats,
    n_jobs: int | None,
) -> _Judged:
    """Cross-fit a kind of model; ``plain`` is the loss of every row with the arms' shares."""
    raw = crossfit(
        folds, lambda _, rows: fit_propensity(kind, data.take(rows)).predict, data.X, data.n_arms + 1, n_jobs
    )
    odds = log_odds(raw)
    own = np.empty(len(data))
    for others, rows in folds:  # calibrated, too, by rows it is not judged on
        line = _fit_calibration(odds[others], data.arm[others], weight[others])
        own[rows] = calibrate(odds[rows], line)[np.arange(len(rows)), data.arm[rows]]
    gain = plain + np.log(own)
    mean = float(weight @ gain)
    error = float(np.sqrt(weight**2 @ (gain - mean) ** 2)) + 1e-9  # a slope of 0 gains nothing but rounding
    calibration = _fit_calibration(odds, data.arm, weight)
    return _Judged(kind, calibration, float(-weight @ np.log(own)), area(1.0 - raw[:, 0], data.arm > 0), mean > error)


def _fit_calibration(odds: Floats, arm: Arms, weight: Floats) -> Floats:
    """Slope, from 0 to 3, and intercept of the log-odds of every arm, by maximum likelihood among its rows and control's."""
    found = []
    for k in range(odds.shape[1]):
        rows = (arm == 0) | (arm == k + 1)
        x, z, w = odds[rows, k], (arm[rows] == k + 1).astype(np.float64), weight[rows]
        share = min(max(float(w @ z / w.sum()), 1e-15), 1 - 1e-15)  # an arm may weigh next to nothing
        line = np.array([0.0, np.log(share / (1 - share))])
        design = np.column_stack([x, np.ones(len(x))])
        for _ in range(_STEPS):
            p = expit(design @ line)
            curve = (design * (w * p * (1 - p))[:, None]).T @ design
            step = np.linalg.lstsq(curve, design.T @ (w * (z - p)), rcond=None)[0]
            line = line + step
            if not 0 <= line[0] <= _STEEPEST:
                break
            if np.abs(step).max() < 1e-10:
                break
        if not 0 <= line[0] <= _STEEPEST:
            line = _at_bound(float(np.clip(line[0], 0, _STEEPEST)), x, z, w)
        found.append(line)
    return np.array(found)


def _at_bound(slope: float, x: Floats, z: Floats, w: Floats) -> Floats:
    """A slope, and the intercept that goes with it: the one with which as many are expected as there are."""
    low, high = -700.0 - slope * x.max(), 700.0 - slope * x.min()
    for _ in range(200):
        middle = (low + high) / 2
        if w @ (expit(slope * x + middle) - z) > 0:
            high = middle
        else:
            low = middle
    return np.array([slope, (low + high) / 2])


def area(score: Floats, treated: Any) -> float:
    """Area under the ROC curve, ties counting half."""
    _, codes, counts = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - (counts - 1) / 2)[codes]
    n1 = int(treated.sum())
    n0 = len(score) - n1
    return float((rank[treated].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))


def _enough(sizes: Any) -> bool:
    """Whether a score that tells every arm from control with an area of 0.6 would be told from chance."""
    control, arms = float(sizes[0]), sizes[1:].astype(np.float64)
    error = np.sqrt((control + arms + 1) / (12 * control * arms))
    return bool((_SURE * error <= _SEEN - 0.5).all())
