"""From rows to predictions: codes, spans of rows, and numbers of either precision."""

import numpy as np
import pytest

from upturn.trees import UCTSForest, UpliftForest, UpliftTree
from upturn.trees import _bins as bins_module
from upturn.trees import _nodes as nodes_module
from upturn.trees._bins import Bins


def experiment(n=700, seed=0):
    rng = np.random.default_rng(seed)
    X, treatment = rng.normal(size=(n, 4)), rng.integers(0, 3, n)
    X[:, 1] = rng.integers(0, 5, n)
    X[::5, 2] = np.nan
    return X, X[:, 0] * (treatment == 1) + rng.normal(size=n), treatment


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("make", [lambda: UpliftTree(), lambda: UpliftForest(20), lambda: UCTSForest(20)])
def test_spans_of_rows_and_threads_change_nothing(make, n_jobs, monkeypatch):
    X, y, treatment = experiment()
    model = make().set_params(random_state=0)
    if isinstance(model, UCTSForest):
        model.set_params(ci_group_size=2)
    model.fit(X, y, treatment)

    def answers():
        found = [model.predict(X), model.predict_response(X), model.apply(X), model.recommend(X)]
        return found + (list(model.predict_interval(X)) if isinstance(model, UCTSForest) else [])

    whole = answers()
    monkeypatch.setattr(nodes_module, "_LEAST_ROWS", 97)
    monkeypatch.setattr(nodes_module, "_MOST_ROWS", 113)
    monkeypatch.setattr(nodes_module, "_CODES", 8 * 4 * 64)  # blocks of 64 rows and less
    monkeypatch.setattr(bins_module, "_PIECE", 53)
    model.set_params(n_jobs=n_jobs)
    for part, expected in zip(answers(), whole, strict=True):
        np.testing.assert_array_equal(part, expected)


def test_effects_are_differences_of_responses():
    X, y, treatment = experiment()
    model = UpliftForest(15, random_state=0).fit(X, y, treatment)
    response = model.predict_response(X)
    np.testing.assert_array_equal(model.predict(X), response[:, 1:] - response[:, :1])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [700, 60_000])  # quantiles of all rows, and of a sample of them
def test_float32_is_binned_as_it_is(n, weighted):
    X, *_ = experiment(n)
    single = X.astype(np.float32)
    single[0, 0] = -0.0
    weight = np.random.default_rng(1).uniform(0.5, 2.0, n) if weighted else None
    levels = [None, 5, None, None]
    one, other = (Bins.learn(matrix, levels, weight) for matrix in (single, single.astype(np.float64)))
    for name in Bins.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.encode(single), other.encode(single.astype(np.float64)))
    np.testing.assert_array_equal(one.encode_rows(single), other.encode_rows(single.astype(np.float64)))


def test_codes_by_row_are_the_codes_by_feature_twice():
    X, *_ = experiment()
    bins = Bins.learn(X, [None, 5, None, None])
    by_feature, by_row = bins.encode(X), bins.encode_rows(X)
    np.testing.assert_array_equal(by_row[:, 0::2], by_feature.T)
    np.testing.assert_array_equal(by_row[:, 1::2], by_feature.T - np.uint8(1))
