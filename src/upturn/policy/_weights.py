"""Inverse probability of treatment weights, and whether the arms overlap."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from upturn._arrays import Arms, Floats
from upturn._columns import power_of_two
from upturn._encode import LinearEncoder
from upturn._experiment import Experiment
from upturn._nuisance import (
    Choice,
    PropensitySpec,
    area,
    choose_propensity,
    clip_chances,
    crossfit_propensity,
    fit_propensity,
    make_folds,
)
from upturn._parameters import FLAG, SEED, check
from upturn._propensity import shares_of
from upturn._results import Table, library_of
from upturn._seeds import make_seed
from upturn._target import Label, Target
from upturn.policy._gate import read_study


@dataclass(frozen=True, repr=False)
class Overlap:
    """How comparable the arms of a study are. Made by :func:`overlap`.

    Attributes
    ----------
    propensity : array of shape (n, 1 + K)
        Probability of control and of every arm, after clipping.
    weights : array of shape (n,)
        1 over the probability of the arm each row was in.
    arm : array of shape (n,)
        The arm of every row as a number, control being 0.
    labels : list
        Labels of control and the arms.
    auc : float
        How well the features tell treated rows from control, by area under the ROC curve; 0.5 in a randomised
        experiment (estimated on the rows of the fit, a little more).
    n_clipped : int
        Rows whose propensity was clipped.
    choice : Choice
        What ``propensity`` came to: its ``kind`` and, for "auto", the better model's area on rows it has not seen (``auc``), the
        p-value of the joint test of balance (``pvalue``), and whether there are rows ``enough`` to see an area of 0.6.
    arms : Table
        Per arm: rows, smallest and largest probability of that arm among all rows, rows of the arm whose probability is
        below 0.05, largest weight, and effective sample size (Σw)²/Σw².
    balance : Table
        Per column: the largest standardised difference of means between an arm and control, before and after weighting.
    """

    propensity: Floats
    weights: Floats
    arm: Arms
    labels: list[Label]
    auc: float
    n_clipped: int
    choice: Choice
    arms: Table
    balance: Table

    def to_frame(self) -> Any:
        """The table of arms as a frame of the library X came in."""
        return self.arms.to_frame()

    def __repr__(self) -> str:
        before, after = self.balance["before"], self.balance["after"]
        return (
            f"{self.arms!r}\npropensity: {self.choice}\narea under the ROC curve of the propensity: {self.auc:.3f}; {self.n_clipped:,} row(s) clipped\n"
            f"largest standardised difference of means: {np.abs(before).max():.3f} before weighting, {np.abs(after).max():.3f} after"
        )


def overlap(
    X: Any,
    treatment: Any,
    *,
    propensity: PropensitySpec = "auto",
    clip: float = 0.0,
    stabilize: bool = False,
    cv: Any = None,
    sample_weight: Any = None,
    control: Label | None = None,
    random_state: Any = 0,
) -> Overlap:
    """Estimate the probability of every arm, weight rows by its inverse, and say how far the arms overlap.

    Parameters
    ----------
    X : table of shape (n, p)
        What the assignment may have depended on.
    treatment : array of shape (n,), or str
        Arm labels. They, and ``sample_weight``, may be names of columns of X.
    propensity : "auto", "shares", "logistic", "boosting", classifier, number(s) or column name(s)
        As in :class:`upturn.meta.DRLearner`: by default the arms' shares, unless a model tells the arms apart on rows it has
        not seen, or a test of balance does.
    clip : float
        Keep probabilities at least this far from 0 and 1; 0 leaves them alone.
    stabilize : bool
        Whether to multiply weights by the share of their arm, which keeps their mean near 1.
    cv : int, splitter or list of splits, optional
        Estimate probabilities on other folds. By default on all rows, as the papers do, except by boosting, which would
        remember them: it takes 5 folds.
    sample_weight : array of shape (n,), optional
        Weights of the rows; the result multiplies them.
    control : label, optional
        Which label is control, when its name does not tell.
    random_state : int, RandomState, Generator or None
        Seed of the folds.

    Returns
    -------
    Overlap

    References
    ----------
    Robins, Hernán, Brumback, "Marginal structural models and causal inference in epidemiology", 2000.
    Zaniewicz, "Support Vector Machines for Uplift Modeling", 2018, section 6.5.

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.policy import overlap
    >>> X = np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]])
    >>> found = overlap(X, [1, 0, 0, 1, 1, 0], propensity="shares")
    >>> found.weights
    array([2., 2., 2., 2., 2., 2.])
    """
    check("stabilize", stabilize, FLAG)
    check("random_state", random_state, SEED)
    data = read_study(X, treatment, sample_weight, control)
    matrix, target = data.X, data.target
    choice = choose_propensity(propensity, data)
    if cv is None and choice.kind == "boosting":
        cv = 5
    if cv is None:
        chance = fit_propensity(choice, data).predict(matrix)
    else:
        chance = crossfit_propensity(choice, data, make_folds(data, cv, make_seed(random_state)))
    chance, n_clipped = clip_chances(chance, clip)
    own = chance[np.arange(len(matrix)), target.arm]
    if (own <= 0).any():
        raise ValueError(
            f"the probability of the arm it was in is 0 for {int((own <= 0).sum()):,} row(s), the first at row {int((own <= 0).argmax())}, whose "
            "weight would be infinite: clip probabilities, as in clip=0.01, or use a smoother estimator"
        )
    share = shares_of(target.arm, target.weight, target.n_arms) if stabilize else np.ones(target.n_arms + 1)
    weights, library = data.weights * share[target.arm] / own, library_of(X, treatment)
    return Overlap(
        propensity=chance,
        weights=weights * target.unit,
        arm=target.arm,
        labels=target.labels,
        auc=area(1.0 - chance[:, 0], target.arm > 0),
        n_clipped=n_clipped,
        choice=choice,
        arms=_arms_table(chance, weights, target, library),
        balance=_balance(data, weights, library),
    )


def iptw_weights(
    X: Any,
    treatment: Any,
    *,
    propensity: PropensitySpec = "auto",
    clip: float = 0.0,
    stabilize: bool = False,
    cv: Any = None,
    sample_weight: Any = None,
    control: Label | None = None,
    random_state: Any = 0,
) -> Floats:
    r"""Inverse probability of treatment weights: pass them as ``sample_weight`` to undo a biased assignment.

    .. math:: w_i = 1 / \hat P(T = T_i \mid X = X_i)

    Clipping is off by default; where it is on, a warning says how many rows it changed. See :func:`overlap` for the
    parameters, and for how much the weights can be trusted.

    Parameters
    ----------
    X, treatment, propensity, clip, stabilize, cv, sample_weight, control, random_state
        As in :func:`overlap`.

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.policy import iptw_weights
    >>> X = np.repeat([[0.0], [1.0]], 50, axis=0)
    >>> treatment = np.r_[np.repeat([0, 1], [40, 10]), np.repeat([0, 1], [10, 40])]
    >>> weights = iptw_weights(X, treatment)
    >>> bool(weights[treatment == 1][:10].mean() > 4)  # treated although that was unlikely
    True
    """
    found = overlap(
        X, treatment, propensity=propensity, clip=clip, stabilize=stabilize, cv=cv, sample_weight=sample_weight,
        control=control, random_state=random_state,
    )  # fmt: skip
    if found.n_clipped:
        warnings.warn(
            f"iptw_weights: the propensity of {found.n_clipped:,} of {len(found.weights):,} row(s) was within {clip:g} of 0 or 1 and was "
            "set to that bound; such rows have hardly anybody to be compared with, see upturn.policy.overlap",
            UserWarning,
            stacklevel=2,
        )
    return found.weights


def _arms_table(chance: Floats, weights: Floats, target: Target, library: str | None) -> Table:
    columns: dict[str, list[Any]] = {}
    for code, label in enumerate(target.labels):
        mine = target.arm == code
        w = weights[mine]
        line = {
            "arm": str(label),
            "rows": int(mine.sum()),
            "smallest": float(chance[:, code].min()),
            "largest": float(chance[:, code].max()),
            "below 0.05": int((chance[mine, code] < 0.05).sum()),
            "largest weight": float(w.max()) * target.unit,
            "effective rows": float(w.sum() ** 2 / (w**2).sum()),
        }
        for key, value in line.items():
            columns.setdefault(key, []).append(value)
    return Table(columns, library=library)


def _balance(data: Experiment, weights: Floats, library: str | None) -> Table:
    encoder = LinearEncoder.fit(data.X, data.schema, standardize=False)
    features = encoder.transform(data.X)
    columns: dict[str, Any] = {
        "column": encoder.names(data.schema),
        "before": _differences(features, data.weights, data.arm, data.n_arms),
        "after": _differences(features, weights, data.arm, data.n_arms),
    }
    return Table(columns, library=library)


def _differences(features: Floats, weights: Floats, arm: Arms, n_arms: int) -> Floats:
    """Of the arms' standardised differences of means from control, the largest per column, with its sign.

    The unit is the unweighted standard deviation, averaged over the two arms, before and after weighting alike.
    """
    largest = np.abs(features).max(axis=0)
    for j in np.flatnonzero((largest > 1e70) | ((largest > 0) & (largest < 1e-70))):  # squares may not fit a float
        features[:, j] /= power_of_two(largest[j])
    means = [weights[arm == k] @ features[arm == k] / weights[arm == k].sum() for k in range(n_arms + 1)]
    spreads = [features[arm == k].var(axis=0) for k in range(n_arms + 1)]
    found = []
    for k in range(1, n_arms + 1):
        unit = np.sqrt((spreads[0] + spreads[k]) / 2)
        gap = means[k] - means[0]
        found.append(np.divide(gap, unit, out=np.zeros_like(gap), where=unit > 0))
    table = np.array(found)
    return np.asarray(table[np.abs(table).argmax(axis=0), np.arange(table.shape[1])])
