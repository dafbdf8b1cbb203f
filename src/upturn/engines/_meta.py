"""Meta-learners of rows in several places, over models of outcomes that learn there (``_bases``).

The learners' own formulas are those of ``upturn.meta``, row by row: what a model is to learn follows from a row and the models before it, so partitions make it
whenever it is asked for. Folds of cross-fitting are dealt by the hash of a row's id. Trees of other libraries depend on how rows are divided: the
learner is as good as the local one, not the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from upturn._arrays import Floats, Ints
from upturn._columns import warn_user
from upturn._experiment import Experiment
from upturn._nuisance import Choice, Member, Propensity, clip_chances, fit_propensity, seed_of
from upturn._nuisance._member import many_values
from upturn._nuisance._propensity import kind_of
from upturn._parameters import is_whole
from upturn._seeds import make_seed
from upturn._target import Target
from upturn.engines._balance import balance_of_parts
from upturn.engines._bases import check_base, is_classifier
from upturn.engines._gather import Roles
from upturn.engines._ids import check_ids
from upturn.engines._numbers import Numbers, Whole, describe, few_outcomes, in_units, to_numbers, understand
from upturn.engines._places import Places
from upturn.kernels.hashing import SPLIT, words_of
from upturn.meta import DRLearner, RLearner, SLearner, TLearner, XLearner
from upturn.meta._base import effect_base
from upturn.meta._r import residuals
from upturn.meta._x import impute
from upturn.metrics._robust import robust_effects
from upturn.trees._base import Scale
from upturn.trees._samples import Lot

_UNBALANCED = 0.05  # p-value of the joint test of balance below which "auto" is not taken for the shares
LEARNERS = (SLearner, TLearner, XLearner, DRLearner, RLearner)


class Sample(NamedTuple):
    """Rows that a base learns from."""

    X: Floats
    y: Floats
    weight: Floats | None


Read = Callable[[Numbers], Sample]


def check_learner(model: Any, engine: str) -> None:
    """Refuse what about a meta-learner does not run on an engine."""
    check_base(model, "estimator", model.estimator, engine)
    if isinstance(model, XLearner | DRLearner | RLearner):
        check_base(model, "effect_estimator", _effects(model), engine)
        if is_classifier(_effects(model)):
            raise ValueError(
                f"effect_estimator={type(_effects(model)).__name__} is not a regressor: effects are numbers"
            )
    if isinstance(model, SLearner) and model.interactions:
        raise ValueError(
            "SLearner(interactions=True) does not run on a cluster: leave interactions out, trees find them; or fit it to engines.sample(table, n)"
        )
    cv = getattr(model, "cv", 2)
    if not is_whole(cv) or cv < 2:
        raise ValueError(
            f"cv={cv!r}: expected a number of folds on a cluster, where rows are dealt by the hash of their ids; or fit {type(model).__name__} to engines.sample(table, n)"
        )


def _effects(model: Any) -> Any:
    """The base that learns effects."""
    if model.effect_estimator is None and not is_classifier(model.estimator):
        return model.estimator
    return effect_base(model.effect_estimator, None)


def learn_meta(model: Any, raws: Places, roles: Roles, row_id: str | None, library: str) -> None:
    """Fit a meta-learner to places of raw frames."""
    whole = understand(raws.ask(partial(describe, roles)), roles, model.control)
    plain = Scale(0.0, 1.0, whole.scale.binary)
    step = partial(to_numbers, roles, whole.schema, whole.labels, plain, whole.firsts, row_id)
    whole = in_units(whole._replace(places=raws.change(step)))
    if row_id is not None:
        check_ids(whole.places, int(whole.rows.sum()), row_id)
    task = _Task(model, whole, roles.sample_weight is not None, make_seed(model.random_state))
    if isinstance(model, TLearner):
        model._members = [task.response(partial(_arm, (code,)), code) for code in task.codes]
    elif isinstance(model, SLearner):
        model._n_arms, model._encoder = task.n_arms, None
        model._members = [task.response(partial(_wide, task.n_arms))]
    else:
        choice = _choose(model, raws, roles, whole)
        model._keep_choice(choice)
        chances = _Chances(fit_propensity(choice, task.summary()), float(model.clip))
        chances.tell(whole.places, type(model).__name__)
        _LEARN[type(model)](model, task, chances)
    model._library, model._rate = library, whole.rate
    model._remember(whole.labels[0], whole.labels[1:], whole.schema)
    if all(member.model is None for member in model._members):
        warn_user(
            f"{type(model).__name__} predicts the same for everybody: what its models were to learn is the same in all rows",
            UserWarning,
        )


# ------------------------------------------------------------------------------------------- models of parts


@dataclass(frozen=True)
class _Task:
    """A learner, the rows of all places, and how its bases are fitted to them."""

    model: Any
    whole: Whole
    weighted: bool
    seed: np.uint64

    @property
    def n_arms(self) -> int:
        """Treatment arms."""
        return len(self.whole.labels) - 1

    @property
    def codes(self) -> range:
        """Codes of control and all arms."""
        return range(self.n_arms + 1)

    def response(self, read: Read, *what: int) -> Member:
        """A model of the outcome of some rows; ``what`` tells its seed from others."""
        return self._fit(self.model.estimator, read, self.weighted, *what)

    def effect(self, read: Read, *what: int, weighted: bool | None = None) -> Member:
        """A model of effects of single rows."""
        return self._fit(_effects(self.model), read, self.weighted if weighted is None else weighted, 2, *what)

    def _fit(self, estimator: Any, read: Read, weighted: bool, *what: int) -> Member:
        places: Any = self.whole.places
        values = sorted({value for some in places.ask(partial(_ends, read)) for value in some})
        low, high, classify = values[0], values[-1], is_classifier(estimator)
        if low == high:
            return Member(None, low=low)
        if not classify:
            return Member(
                places.train(estimator, read, weighted=weighted, classify=False, seed=seed_of(self.seed, *what))
            )
        if len(values) > 2:
            raise ValueError(many_values(estimator, "more than two", low, high))
        read = _Larger(read, high)
        fitted = places.train(estimator, read, weighted=weighted, classify=True, seed=seed_of(self.seed, *what))
        return Member(fitted, low=low, high=high)

    def summary(self) -> Experiment:
        """Two rows of each arm that weigh what it weighs: all that shares, numbers and columns of propensities ask for."""
        totals: Floats = self.whole.places.ask(partial(_totals, self.n_arms + 1), _add)
        arm = np.tile(np.arange(self.n_arms + 1, dtype=np.uint8), 2)
        labels = self.whole.labels
        target = Target(np.zeros(len(arm)), arm, np.tile(totals / 2, 2), labels[0], labels[1:])
        return Experiment(np.zeros((len(arm), self.whole.schema.n_features)), self.whole.schema, target)


def _ends(read: Read, part: Numbers) -> tuple[float, ...]:
    return few_outcomes(read(part).y)


def _totals(n_arms: int, part: Numbers) -> Floats:
    return np.bincount(part.arm, part.weight, minlength=n_arms).astype(np.float64)


def _add(arrays: Sequence[Any]) -> Any:
    return np.sum(arrays, axis=0)


@dataclass(frozen=True)
class _Larger:
    """Rows with 1 for the larger of two outcomes."""

    read: Read
    high: float

    def __call__(self, part: Numbers) -> Sample:
        sample = self.read(part)
        return sample._replace(y=(sample.y == self.high).astype(np.float64))


def _take(part: Numbers, rows: Any, y: Floats, X: Floats | None = None, weight: Floats | None = None) -> Sample:
    """Some rows of a part with a number for each."""
    features = part.X[rows] if X is None else X
    weight = weight if weight is not None or part.weight is None else part.weight[rows]
    return Sample(np.ascontiguousarray(features, np.float64), np.asarray(y, np.float64), weight)


def _arm(codes: tuple[int, ...], part: Numbers) -> Sample:
    rows = np.flatnonzero(np.isin(part.arm, codes))
    return _take(part, rows, part.y[rows])


def _wide(n_arms: int, part: Numbers) -> Sample:
    rows = slice(None)
    return _take(part, rows, part.y, np.column_stack([part.X, np.eye(n_arms + 1)[part.arm, 1:]]))


# ------------------------------------------------------------------------------------------- chances of the arms


def _choose(model: Any, raws: Places, roles: Roles, whole: Whole) -> Choice:
    """What is meant by ``propensity=``; "auto" is the shares, unless arms differ in their features."""
    spec = model.propensity
    if isinstance(spec, str) and spec == "auto":
        pvalue = balance_of_parts(raws, roles, whole.schema, whole.labels)
        if pvalue < _UNBALANCED:
            raise ValueError(
                f"propensity='auto' found arms that differ in their features (p = {pvalue:.2g}), and models of who got which arm do not run on a cluster: "
                "pass propensity='shares' if arms were given at random all the same, their chances, or columns that hold them; or fit it to engines.sample(table, n)"
            )
        return Choice("shares")
    choice = Choice(kind_of(spec), spec)
    if choice.estimated:
        raise ValueError(
            f"propensity={spec!r} is a model that needs all rows in one place: pass 'shares', the arms' chances, or names of columns that hold them; or fit "
            f"{type(model).__name__} to engines.sample(table, n)"
        )
    return choice


@dataclass(frozen=True)
class _Chances:
    """Chances of the arms of every row, away from 0 and 1."""

    propensity: Propensity
    clip: float

    def __call__(self, X: Floats) -> Floats:
        return clip_chances(self.propensity.predict(X), self.clip)[0]

    def tell(self, places: Places, name: str) -> None:
        """Say how many rows have others."""
        outside = sum(places.ask(self._outside))
        if outside and self.clip == 0:
            raise ValueError(
                f"the propensity of {outside:,} row(s) is 0 or 1: they could only ever be in one arm, so nothing can be learned from them about an effect; remove "
                "them, or pass clip=0.01"
            )
        if outside:
            warn_user(
                f"{name}: the propensity of {outside:,} row(s) was below {self.clip:g} or above {1 - self.clip:g} and was set to that bound",
                UserWarning,
            )

    def _outside(self, part: Numbers) -> int:
        if not len(part.y):
            return 0
        chances = self.propensity.predict(np.asarray(part.X, np.float64))
        if self.clip == 0:
            return int(((chances <= 0) | (chances >= 1)).any(axis=1).sum())
        return clip_chances(chances, self.clip)[1]


# ------------------------------------------------------------------------------------------- learners


def _learn_x(model: XLearner, task: _Task, chances: _Chances) -> None:
    responses = [task.response(partial(_arm, (code,)), 1, code) for code in task.codes]
    model._members = [
        task.effect(
            partial(_imputed, code if treated else 0, treated, responses[0 if treated else code]), treated, code
        )
        for code in task.codes[1:]
        for treated in (False, True)
    ]
    model._propensity, model._clip = chances.propensity, chances.clip


def _imputed(code: int, treated: bool, other: Member, part: Numbers) -> Sample:
    rows = np.flatnonzero(part.arm == code)
    if not len(rows):
        return _take(part, rows, np.empty(0))
    X = np.ascontiguousarray(part.X[rows], np.float64)
    return _take(part, rows, impute(part.y[rows], other.predict(X), treated=treated), X)


@dataclass(frozen=True)
class _Crossed:
    """Models of the outcome of groups of arms, fold by fold, each fitted to the rows of all other folds."""

    folds: _Folds
    members: tuple[tuple[Member, ...], ...]

    def predict(self, part: Numbers, X: Floats) -> Floats:
        """What models that have not seen a row expect of it, a column per group."""
        out, fold = np.empty((len(X), len(self.members[0]))), self.folds.of(part)
        for k, members in enumerate(self.members):
            rows = np.flatnonzero(fold == k)
            if len(rows):
                out[rows] = np.column_stack([member.predict(X[rows]) for member in members])
        return out


@dataclass(frozen=True)
class _Folds:
    """The fold of every row, by the hash of its id."""

    seed: np.uint64
    n: int

    def of(self, part: Numbers) -> Ints:
        """Numbers of folds."""
        drawn = np.empty(len(part.y), np.uint64)
        words_of(self.seed, SPLIT, np.uint64(0), Lot(part.arm, part.first, part.ids).numbers, drawn)
        return (drawn % np.uint64(self.n)).astype(np.int64)

    def count(self, n_arms: int, part: Numbers) -> Ints:
        """Rows by fold and arm."""
        cells = self.of(part) * n_arms + part.arm
        return np.bincount(cells, minlength=self.n * n_arms).reshape(self.n, n_arms)

    def others(self, fold: int, codes: tuple[int, ...], part: Numbers) -> Sample:
        """The rows of some arms in all other folds."""
        rows = np.flatnonzero((self.of(part) != fold) & np.isin(part.arm, codes))
        return _take(part, rows, part.y[rows])


def _cross(task: _Task, groups: Sequence[tuple[int, ...]]) -> _Crossed:
    folds = _Folds(task.seed, int(task.model.cv))
    counts: Ints = task.whole.places.ask(partial(folds.count, task.n_arms + 1), _add)
    empty = np.argwhere(counts.sum(axis=0) - counts == 0)
    if len(empty):
        label = task.whole.labels[int(empty[0][1])]
        raise ValueError(
            f"arm {label!r} has no row outside of one of the {folds.n} folds: pass a larger table or another random_state"
        )
    members = tuple(
        tuple(task.response(partial(folds.others, fold, arms), 1, fold, j) for j, arms in enumerate(groups))
        for fold in range(folds.n)
    )
    return _Crossed(folds, members)


def _learn_dr(model: DRLearner, task: _Task, chances: _Chances) -> None:
    crossed = _cross(task, [(code,) for code in task.codes])
    psi = _Robust(crossed, chances)
    total, sums = task.whole.places.ask(psi.sums, _add_pairs)
    model.average_effects_ = sums / total
    _, squares = task.whole.places.ask(partial(psi.squares, model.average_effects_), _add_pairs)
    model.average_effects_se_ = np.sqrt(squares) / total
    model._members = [task.effect(partial(psi.of, k), k) for k in range(task.n_arms)]


@dataclass(frozen=True)
class _Robust:
    """Doubly robust effects of all rows."""

    crossed: _Crossed
    chances: _Chances

    def _effects(self, part: Numbers) -> tuple[Floats, Floats]:
        X = np.ascontiguousarray(part.X, np.float64)
        if not len(X):
            return X, np.empty((0, len(self.crossed.members[0]) - 1))
        return X, robust_effects(part.y, part.arm, self.crossed.predict(part, X), self.chances(X))

    def of(self, k: int, part: Numbers) -> Sample:
        """Effects of one arm, to be learnt."""
        X, effects = self._effects(part)
        return _take(part, slice(None), np.ascontiguousarray(effects[:, k]), X)

    def sums(self, part: Numbers) -> tuple[float, Floats]:
        """Weight of all rows, and weighted effects."""
        weight = np.ones(len(part.y)) if part.weight is None else part.weight
        return float(weight.sum()), weight @ self._effects(part)[1]

    def squares(self, mean: Floats, part: Numbers) -> tuple[float, Floats]:
        """Squared weights times squared differences from a mean."""
        weight = np.ones(len(part.y)) if part.weight is None else part.weight
        return 0.0, weight**2 @ (self._effects(part)[1] - mean) ** 2


def _add_pairs(parts: Sequence[tuple[float, Floats]]) -> tuple[float, Floats]:
    totals, sums = zip(*parts, strict=True)
    return sum(totals), np.sum(sums, axis=0)


def _learn_r(model: RLearner, task: _Task, chances: _Chances) -> None:
    crossed = _cross(task, [(0, code) for code in task.codes[1:]])
    model._members = [
        task.effect(partial(_residual, crossed, chances, k), k, weighted=True) for k in range(task.n_arms)
    ]


def _residual(crossed: _Crossed, chances: _Chances, k: int, part: Numbers) -> Sample:
    rows = np.flatnonzero((part.arm == 0) | (part.arm == k + 1))
    if not len(rows):
        return _take(part, rows, np.empty(0), weight=np.empty(0))
    X = np.ascontiguousarray(part.X, np.float64)
    given = np.ones(len(rows)) if part.weight is None else part.weight[rows]
    mean, chance = crossed.predict(part, X)[rows, k], chances(X[rows])
    y, weight = residuals(part.y[rows], part.arm[rows] == k + 1, mean, chance[:, [0, k + 1]], given)
    return _take(part, rows, y, X[rows], weight)


_LEARN: dict[type, Callable[[Any, _Task, _Chances], None]] = {
    XLearner: _learn_x,
    DRLearner: _learn_dr,
    RLearner: _learn_r,
}
