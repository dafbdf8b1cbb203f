"""Propensities: the probability of every arm given the features."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy.special import softmax
from sklearn.base import is_classifier

from upturn._arrays import Floats, Indices, Ints
from upturn._columns import warn_user
from upturn._encode import LinearEncoder
from upturn._experiment import Experiment
from upturn._nuisance._boosted import fit_boosted
from upturn._nuisance._crossfit import Predictor, crossfit
from upturn._nuisance._flat_trees import FlatTrees
from upturn._nuisance._logistic import Logistic
from upturn._nuisance._member import _fit_foreign, ask_foreign, try_out
from upturn._parameters import check, number
from upturn._propensity import read_chances, shares_of, with_control
from upturn._sparse import is_sparse
from upturn._table import Schema

PropensitySpec = (
    Any  # "auto", "shares", "logistic", "boosting", a classifier, number(s) or column names; see fit_propensity
)
Kind = Literal["shares", "logistic", "boosting", "classifier", "known", "columns"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CLIP = number(least=0, below=0.5).named("a number from 0 (no clipping) to below 0.5, such as 0.01")


class _Clipped(NamedTuple):
    """Who clipped propensities, at which bound, and what there is to say about it."""

    model: str
    clip: float
    text: str


_TOLD: ContextVar[list[_Clipped] | None] = ContextVar(
    "told", default=None
)  # kept for somebody who tells of all together


@dataclass(frozen=True)
class Propensity:
    """Something that gives the probabilities of control and every arm, a column each.

    Exactly one of ``shares`` (the same for everybody), ``columns`` (read from the table), ``logistic``, ``boosted`` (a model
    per arm, beside control) and ``foreign`` (estimated) is there; ``encoder`` may stand before a foreign classifier, and a
    ``calibration`` after any estimated one.
    """

    n_arms: int
    shares: Floats | None = None
    columns: Ints | None = None
    logistic: Logistic | None = None
    foreign: Any = None
    encoder: LinearEncoder | None = None
    boosted: tuple[FlatTrees, ...] | None = None
    calibration: Floats | None = None

    def predict(self, X: Floats) -> Floats:
        """Probabilities, control first, before any clipping."""
        raw = self._predict_raw(X)
        return raw if self.calibration is None else calibrate(log_odds(raw), self.calibration)

    def _predict_raw(self, X: Floats) -> Floats:
        if self.shares is not None:
            return np.tile(self.shares, (len(X), 1))
        if self.columns is not None:
            chosen: Any = X[:, self.columns]
            return with_control(chosen.toarray() if is_sparse(chosen) else chosen, "the propensity column(s)")
        if self.logistic is not None:
            return self.logistic.predict_proba(X)
        if self.boosted is not None:
            beside = np.column_stack([model.predict(X) for model in self.boosted])  # each arm's share of it and control
            odds = np.column_stack([np.ones(len(X)), beside / np.maximum(1.0 - beside, 1e-300)])
            return np.asarray(odds / odds.sum(axis=1, keepdims=True))
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
            "boosted": None if self.boosted is None else [model.get_state() for model in self.boosted],
            "calibration": self.calibration,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], schema: Schema, n_arms: int) -> Propensity:
        """Rebuild and check a propensity that was read from a file."""
        shares, columns = state["shares"], state["columns"]
        logistic, foreign, encoder = state["logistic"], state["foreign"], state["encoder"]
        boosted, calibration = state["boosted"], state["calibration"]
        if sum(part is not None for part in (shares, columns, logistic, foreign, boosted)) != 1:
            raise ValueError("the propensity is not well formed")
        if boosted is not None and (not isinstance(boosted, list) or len(boosted) != n_arms):
            raise ValueError("expected a boosted model of the propensity for every arm")
        if calibration is not None and (
            calibration.shape != (n_arms, 2) or calibration.dtype != np.float64 or not np.isfinite(calibration).all()
        ):
            raise ValueError("the calibration of the propensity is not well formed")
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
            None if boosted is None else tuple(FlatTrees.from_state(one, schema) for one in boosted),
            calibration,
        )
        if foreign is not None:
            try_out(foreign, foreign.predict_proba, propensity.encoder, schema, n_arms + 1)
        return propensity


@dataclass(frozen=True)
class Choice:
    """What became of ``propensity=``: a kind of model and, where ``"auto"`` chose it, why.

    Attributes
    ----------
    kind : str
        "shares", "logistic", "boosting", "classifier", "known" or "columns".
    spec : what was asked for
        None where it was chosen.
    calibration : array of shape (K, 2), optional
        Slope and intercept of the log-odds of every arm against control, for a chosen model.
    auc : float, optional
        How well the better of the two models tells treated rows from control on rows it has not seen.
    pvalue : float, optional
        Of the joint test of balance.
    enough : bool
        Whether there are rows enough to see an area of 0.6.
    """

    kind: Kind
    spec: PropensitySpec = None
    calibration: Floats | None = None
    auc: float | None = None
    pvalue: float | None = None
    enough: bool = True

    @property
    def estimated(self) -> bool:
        """Whether a model is fitted to the rows."""
        return self.kind in ("logistic", "boosting", "classifier")

    def __str__(self) -> str:
        if self.auc is None:
            return self.kind
        few = "" if self.enough else "; too few rows to see an area of 0.6"
        return f"{self.kind} (by 'auto': area under the ROC curve {self.auc:.3f}, balance p = {self.pvalue:.2g}{few})"


def fit_propensity(spec: PropensitySpec, data: Experiment) -> Propensity:
    """Make a propensity from what the user said.

    ========================  ========================================================================================
    ``"shares"``              every arm's share of the rows: a randomised experiment
    ``"logistic"``            estimated by logistic regression on the encoded table
    ``"boosting"``            estimated by gradient boosting, an arm beside control at a time
    a classifier              estimated by a copy of it
    a number, or K numbers    known and the same for everybody, the arms in the order of ``arms_``
    a name, or K names        known row by row: columns of the table that hold the probability of each arm
    a :class:`Choice`         what ``"auto"`` chose
    ========================  ========================================================================================
    """
    choice = spec if isinstance(spec, Choice) else Choice(kind_of(spec), spec)
    k, weight, spec = data.n_arms, data.weight, choice.spec
    if choice.kind == "shares":
        return Propensity(k, shares=shares_of(data.arm, weight, k))
    if choice.kind in ("logistic", "boosting"):
        part = data if weight is None else data.take(np.flatnonzero(weight > 0))
        if choice.kind == "boosting":
            return Propensity(k, boosted=_fit_pairs(part), calibration=choice.calibration)
        logistic = Logistic.fit(part.X, part.arm, k + 1, part.weight, data.schema)
        return Propensity(k, logistic=logistic, calibration=choice.calibration)
    if choice.kind == "classifier":
        return _foreign(spec, data)
    if choice.kind == "columns":
        return Propensity(k, columns=_find_columns([spec] if isinstance(spec, str) else list(spec), data))
    _check_numbers(spec, data)
    return Propensity(k, shares=read_chances(spec, data.target.labels))


def kind_of(spec: PropensitySpec) -> Kind:
    """The kind of propensity a user means; "auto", which means one of several, is chosen before."""
    if isinstance(spec, str) and spec in ("shares", "logistic", "boosting"):
        return spec  # type: ignore[return-value]
    if hasattr(spec, "fit"):
        return "classifier"
    names = [spec] if isinstance(spec, str) else spec
    several = isinstance(names, list | tuple) or (isinstance(names, np.ndarray) and names.ndim == 1)
    return "columns" if several and len(names) and all(isinstance(name, str) for name in names) else "known"


def _fit_pairs(data: Experiment) -> tuple[FlatTrees, ...]:
    """For every arm, a boosted model of who is in it among its rows and control's."""
    found = []
    for code in range(1, data.n_arms + 1):
        pair = data.take(data.target.pair(code))
        z = (pair.arm == code).astype(np.int64)
        found.append(fit_boosted(pair.X, z, pair.weight, data.schema, classify=True, what="arm", seed=0))
    return tuple(found)


def log_odds(chance: Floats) -> Floats:
    """Of every arm against control, a column each."""
    logs = np.log(np.maximum(chance, 1e-12))
    return np.asarray(logs[:, 1:] - logs[:, :1])


def calibrate(odds: Floats, calibration: Floats) -> Floats:
    """Probabilities, control first, from log-odds stretched and moved arm by arm."""
    moved = odds * calibration[:, 0] + calibration[:, 1]
    return np.asarray(softmax(np.column_stack([np.zeros(len(moved)), moved]), axis=1))


def _check_numbers(spec: PropensitySpec, data: Experiment) -> None:
    """Refuse what is neither a number nor a number per arm, and say why an array with a row per row is not taken."""
    try:
        shape: tuple[int, ...] | None = np.shape(spec) if np.asarray(spec).dtype.kind in "fiu" else None
    except Exception:  # rows of different lengths, or whatever an object raises when it is read
        shape = None
    if shape is not None and shape[:1] == (len(data),) and shape != (data.n_arms,):
        raise ValueError(
            f"propensity has shape {shape}, a probability for each of the {len(data):,} rows: a model is copied, fitted on some of the rows "
            "and asked about others, and such an array would not go with them; make it a column of X and pass that column's name"
        )
    if shape not in ((), (data.n_arms,)):
        raise ValueError(
            f"propensity={reprlib.repr(spec)}: expected 'auto', 'shares', 'logistic', 'boosting', a classifier, the known probability of each of the "
            f"{data.n_arms} treatment arm(s), or the name of a column of X that holds it"
        )


def crossfit_propensity(
    spec: PropensitySpec,
    data: Experiment,
    folds: list[tuple[Indices, Indices]],
    n_jobs: int | None = None,
    shelves: Sequence[Any] | None = None,
) -> Floats:
    """Probabilities of every row, control first; estimated ones come from models that have not seen the row: those of the folds' ``shelves``, if there are any."""
    choice = spec if isinstance(spec, Choice) else Choice(kind_of(spec), spec)
    if not choice.estimated:
        return fit_propensity(choice, data).predict(data.X)

    def fit(fold: int, rows: Indices) -> Predictor:
        part = data.take(rows)
        return (fit_propensity(choice, part) if shelves is None else shelves[fold].propensity(choice, part)).predict

    return crossfit(folds, fit, data.X, data.n_arms + 1, n_jobs)


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
        text = (
            f"{model}: the propensity of {outside:,} of {len(propensity):,} row(s) was below {clip:g} or above {1 - clip:g} (smallest "
            f"{propensity.min():.3g}, largest {propensity.max():.3g}) and was set to that bound; such rows have hardly anybody to be "
            "compared with, see upturn.policy.overlap"
        )
        told = _TOLD.get()
        if told is None:
            warn_user(text, UserWarning)
        else:
            told.append(_Clipped(model, clip, text))
    return clipped


@contextmanager
def clips_told_once(model: str) -> Iterator[None]:
    """A model that fits many others inside tells once of the propensities that it and they clip: its own, and theirs if their bounds differ."""
    outer, told = _TOLD.get(), list[_Clipped]()
    before = _TOLD.set(told)
    try:
        yield
    finally:
        _TOLD.reset(before)
    if outer is not None:
        outer.extend(told)
        return
    own = next((one for one in told if one.model == model), None)
    others = [one for one in told if one.model != model and (own is None or one.clip != own.clip)]
    if own is not None:
        warn_user(own.text, UserWarning)
    if others:
        names = ", ".join(dict.fromkeys(one.model for one in others))
        warn_user(f"{model}: models inside ({names}) clip propensities. The first was {others[0].text}", UserWarning)


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
            f"propensity names the column(s) {unknown!r}, which X does not have: expected 'auto', 'shares', 'logistic', 'boosting' or one of {list(data.schema.names[:12])!r}"
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
