"""The one cross-fitter: folds that keep every arm, and predictions for rows a model has not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from upturn._arrays import Floats, Indices
from upturn._experiment import Experiment
from upturn._nuisance._member import fit_response
from upturn._parallel import run_parallel
from upturn._splitters import folds_of

Predictor = Callable[[Floats], Floats]


def seed_of(seed: np.uint64, *what: int) -> int:
    """A seed of its own for every model: a pure function of the learner's seed and what the model is for."""
    return int(np.random.SeedSequence([int(seed), *what]).generate_state(1)[0])


def make_folds(data: Experiment, cv: Any, seed: np.uint64) -> list[tuple[Indices, Indices]]:
    """Splits (train, test) whose test parts share out the rows, every arm in every train part.

    ``cv`` is a number of folds, a splitter, or a list of splits.
    """
    folds = folds_of(data.X, data.target, cv, seed)
    _check_folds(folds, data)
    return folds


def rows_that_count(data: Experiment, cv: Any) -> Experiment:
    """Without the rows of weight 0, which must not fill a fold; splits given row by row leave nothing to drop."""
    if data.weight is None or (data.weight > 0).all() or not isinstance(cv, int | np.integer):
        return data
    return data.take(np.flatnonzero(data.weight > 0))


def crossfit(
    folds: list[tuple[Indices, Indices]],
    fit: Callable[[int, Indices], Predictor],
    X: Floats,
    n_columns: int,
    n_jobs: int | None = None,
) -> Floats:
    """Predictions of every row by the model of the fold it is not trained in.

    ``fit(fold, rows)`` trains on some rows and returns a function from a matrix to ``n_columns`` columns.
    """
    out = np.empty((len(X), n_columns))

    def one(k: int) -> None:
        train, test = folds[k]
        predict = fit(k, train)
        with np.errstate(all="ignore"):  # what overflows is refused below
            out[test] = predict(X[test])

    run_parallel(one, range(len(folds)), n_jobs=n_jobs)
    lost = ~np.isfinite(out).all(axis=1)
    if lost.any():
        raise ValueError(
            f"models fitted to the other folds have no finite prediction for {int(lost.sum()):,} row(s), the first at row {int(lost.argmax())}: "
            "look for features or outcomes of absurd size there"
        )
    return out


def crossfit_responses(
    estimator: Any,
    data: Experiment,
    groups: Sequence[tuple[int, ...]],
    folds: list[tuple[Indices, Indices]],
    seed: np.uint64,
    n_jobs: int | None = None,
    shelves: Sequence[Any] | None = None,
) -> Floats:
    """Expected outcomes of every row, a column per group of arms, by outcome models that have not seen the row.

    Those of single arms come from the folds' ``shelves``, if there are any.
    """

    def fit(fold: int, rows: Indices) -> Predictor:
        members = []
        for j, arms in enumerate(groups):
            if shelves is not None and len(arms) == 1:
                members.append(shelves[fold].response(estimator, data.take(rows), arms[0]))
                continue
            mine = data.take(rows[np.isin(data.arm[rows], arms)])
            own = seed_of(seed, 1, fold, j)
            members.append(fit_response(estimator, mine.X, mine.y, mine.weight, mine.schema, seed=own))
        return lambda X: np.column_stack([member.predict(X) for member in members])

    return crossfit(folds, fit, data.X, len(groups), n_jobs)


def _check_folds(folds: list[tuple[Indices, Indices]], data: Experiment) -> None:
    tested = np.concatenate([test for _, test in folds]) if folds else np.empty(0, np.intp)
    if len(tested) != len(data) or not np.array_equal(np.sort(tested), np.arange(len(data))):
        raise ValueError(
            f"the test parts of cv hold {len(tested):,} rows, {len(np.unique(tested)):,} of them distinct, and there are {len(data):,}: "
            "cross-fitting needs every row in exactly one test part, as in UpliftKFold"
        )
    for train, test in folds:
        if len(np.intersect1d(train, test)):
            raise ValueError("a train part of cv holds rows of its own test part: cross-fitting must keep them apart")
        empty = np.flatnonzero(np.bincount(data.arm[train], data.weights[train] > 0, data.n_arms + 1) == 0)
        if len(empty):
            raise ValueError(
                f"{data.target.name_of(int(empty[0]))} has no row that counts in a train part of cv: pass cv=UpliftKFold(), which keeps every arm "
                "in every fold"
            )
