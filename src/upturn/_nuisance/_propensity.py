"""Propensities: the probability of every arm given the features."""

from __future__ import annotations

import reprlib
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from upturn._arrays import Floats, Indices, Ints
from upturn._encode import LinearEncoder
from upturn._experiment import Experiment
from upturn._nuisance._crossfit import crossfit
from upturn._nuisance._logistic import Logistic
from upturn._nuisance._member import _fit_foreign, ask_foreign, try_out
from upturn._parameters import check, number
from upturn._propensity import read_chances, shares_of, with_control
from upturn._table import Schema

PropensitySpec = Any  # "shares", "logistic", a classifier, a number, numbers or column names; see fit_propensity
CLIP = number(least=0, below=0.5).named("a number from 0 (no clipping) to below 0.5, such as 0.01")


@dataclass(frozen=True)
class Propensity:
    """Something that gives the probabilities of control and every arm, a column each.

    Exactly one of ``shares`` (the same for everybody), ``columns`` (read from the table), ``logistic`` and ``foreign``
    (estimated) is there; ``encoder`` may stand before a foreign classifier.
    """

    n_arms: int
    shares: Floats | None = None
    columns: Ints | None = None
    logistic: Logistic | None = None
    foreign: Any = None
    encoder: LinearEncoder | None = None

    def predict(self, X: Floats) -> Floats:
        """Probabilities, control first, before any clipping."""
        if self.shares is not None:
            return np.tile(self.shares, (len(X), 1))
        if self.columns is not None:
            return with_control(X[:, self.columns], "the propensity column(s)")
        if self.logistic is not None:
            return self.logistic.predict_proba(X)
        features = X if self.encoder is None else self.encoder.transform(X)
        return ask_foreign(self.foreign.predict_proba, features)

    def get_state(self) -> dict[str, Any]:
        """The propensity as JSON values, arrays and, if it is one, the foreign classifier."""
        return {
            "shares": self.shares,
            "columns": self.columns,
            "logistic": None if self.logistic is None else self.logistic.get_state(),
            "foreign": self.foreign,
            "encoder": None if self.encoder is None else self.encoder.get_state(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], schema: Schema, n_arms: int) -> Propensity:
        """Rebuild and check a propensity that was read from a file."""
        shares, columns = state["shares"], state["columns"]
        logistic, foreign, encoder = state["logistic"], state["foreign"], state["encoder"]
        if sum(part is not None for part in (shares, columns, logistic, foreign)) != 1:
            raise ValueError("the propensity is not well formed")
        if shares is not None and (shares.shape != (n_arms + 1,) or not (shares > 0).all() or not (shares < 1).all()):
            raise ValueError("the arms' shares are not probabilities")
        if columns is not None and (
            columns.shape != (n_arms,)
            or columns.dtype != np.int64
            or columns.min() < 0
            or columns.max() >= schema.n_features
        ):
            raise ValueError("the propensity names a column that does not exist")
        if shares is not None and abs(shares.sum() - 1.0) > 1e-6:
            raise ValueError("the arms' shares do not add up to 1")
        propensity = cls(
            n_arms,
            shares,
            columns,
            None if logistic is None else Logistic.from_state(logistic, schema, n_arms + 1),
            foreign,
            None if encoder is None else LinearEncoder.from_state(encoder, schema),
        )
        if foreign is not None:
            try_out(foreign, foreign.predict_proba, propensity.encoder, schema, n_arms + 1)
        return propensity


def fit_propensity(spec: PropensitySpec, data: Experiment) -> Propensity:
    """Make a propensity from what the user said.

    ========================  ========================================================================================
    ``"shares"``              every arm's share of the rows: a randomised experiment
    ``"logistic"``            estimated by logistic regression on the encoded table
    a classifier              estimated by a copy of it
    a number, or K numbers    known and the same for everybody, the arms in the order of ``arms_``
    a name, or K names        known row by row: columns of the table that hold the probability of each arm
    ========================  ========================================================================================
    """
    k, weight = data.n_arms, data.weight
    if _is_word(spec, "shares"):
        return Propensity(k, shares=shares_of(data.arm, weight, k))
    if _is_word(spec, "logistic"):
        rows = slice(None) if weight is None else weight > 0
        part = None if weight is None else weight[rows]
        return Propensity(k, logistic=Logistic.fit(data.X[rows], data.arm[rows], k + 1, part, data.schema))
    if hasattr(spec, "fit"):
        return _foreign(spec, data)
    names = [spec] if isinstance(spec, str) else spec
    if isinstance(names, list | tuple | np.ndarray) and len(names) and all(isinstance(name, str) for name in names):
        return Propensity(k, columns=_find_columns(list(names), data))
    _check_numbers(spec, data)
    return Propensity(k, shares=read_chances(spec, data.target.labels))


def _is_word(spec: PropensitySpec, word: str) -> bool:
    return isinstance(spec, str) and spec == word


def _check_numbers(spec: PropensitySpec, data: Experiment) -> None:
    """Refuse what is neither a number nor a number per arm, and say why an array with a row per row is not taken."""
    shape: tuple[int, ...] | None = np.shape(spec) if np.asarray(spec).dtype.kind in "fiu" else None
    if shape is not None and shape[:1] == (len(data),) and shape != (data.n_arms,):
        raise ValueError(
            f"propensity has shape {shape}, a probability for each of the {len(data):,} rows: a model is copied, fitted on some of the rows "
            "and asked about others, and such an array would not go with them; make it a column of X and pass that column's name"
        )
    if shape not in ((), (data.n_arms,)):
        raise ValueError(
            f"propensity={reprlib.repr(spec)}: expected 'shares', 'logistic', a classifier, the known probability of each of the "
            f"{data.n_arms} treatment arm(s), or the name of a column of X that holds it"
        )


def crossfit_propensity(
    spec: PropensitySpec, data: Experiment, folds: list[tuple[Indices, Indices]], n_jobs: int | None = None
) -> Floats:
    """Probabilities of every row, control first; estimated ones come from models that have not seen the row."""
    if not _is_word(spec, "logistic") and not hasattr(spec, "fit"):  # known, not estimated
        return fit_propensity(spec, data).predict(data.X)
    return crossfit(
        folds, lambda _, rows: fit_propensity(spec, data.take(rows)).predict, data.X, data.n_arms + 1, n_jobs
    )


def clip_propensity(propensity: Floats, clip: float, model: str) -> Floats:
    """Keep probabilities within ``clip`` … 1 - ``clip``, and say how many rows that changed."""
    clipped, outside = clip_chances(propensity, clip)
    if clip == 0:
        certain = np.flatnonzero(((propensity <= 0) | (propensity >= 1)).any(axis=1))
        if len(certain):
            raise ValueError(
                f"the propensity of {len(certain):,} of {len(propensity):,} row(s) is 0 or 1, the first at row {certain[0]}: they could "
                "only ever be in one arm, so nothing can be learned from them about an effect; remove them, or pass clip=0.01"
            )
    if outside:
        warnings.warn(
            f"{model}: the propensity of {outside:,} of {len(propensity):,} row(s) was below {clip:g} or above {1 - clip:g} (smallest "
            f"{propensity.min():.3g}, largest {propensity.max():.3g}) and was set to that bound; such rows have hardly anybody to be "
            "compared with, see upturn.policy.overlap",
            UserWarning,
            stacklevel=4,
        )
    return clipped


def clip_chances(propensity: Floats, clip: float) -> tuple[Floats, int]:
    """Probabilities within ``clip`` … 1 - ``clip``, and how many rows had others; 0 leaves them alone."""
    check("clip", clip, CLIP)
    if clip == 0:
        return propensity, 0
    outside = ((propensity < clip) | (propensity > 1 - clip)).any(axis=1)
    return np.clip(propensity, clip, 1 - clip), int(outside.sum())


def _foreign(spec: Any, data: Experiment) -> Propensity:
    if not is_classifier(spec) or not hasattr(spec, "predict_proba"):
        raise ValueError(
            f"propensity={type(spec).__name__} predicts no probabilities of arms: pass a classifier that does, such as "
            "LogisticRegression(), or CalibratedClassifierCV(SVC())"
        )
    part = data if data.weight is None else data.take(np.flatnonzero(data.weight > 0))
    model, encoder = _fit_foreign(spec, part.X, part.arm.astype(np.int64), part.weight, data.schema)
    return Propensity(data.n_arms, foreign=model, encoder=encoder)


def _find_columns(names: list[str], data: Experiment) -> Ints:
    unknown = [name for name in names if name not in data.schema.names]
    if unknown:
        raise ValueError(
            f"propensity names the column(s) {unknown!r}, which X does not have: expected 'shares', 'logistic' or one of {list(data.schema.names[:12])!r}"
        )
    if len(names) != data.n_arms:
        raise ValueError(
            f"propensity names {len(names)} column(s) and there are {data.n_arms} treatment arm(s): expected one column per arm, in "
            "the order of arms_"
        )
    columns = np.array([data.schema.names.index(name) for name in names], dtype=np.int64)
    if data.schema.categorical[columns].any():
        raise ValueError("a propensity column holds text: expected probabilities")
    return columns


__all__ = [
    "CLIP",
    "Propensity",
    "PropensitySpec",
    "clip_chances",
    "clip_propensity",
    "crossfit_propensity",
    "fit_propensity",
]
