"""Features that matter only together: what the selector finds with ``pairs=True``, and what it does not."""

import numpy as np
import pandas as pd
import pytest

import upturn as up
from upturn.features import UMODLSelector


def product(n=4000, size=0.2, seed=0, columns=6):
    """The effect has the sign of a product: neither factor shows anything alone."""
    rng = np.random.default_rng(seed)
    X, t = rng.uniform(-1, 1, size=(n, columns)), rng.integers(0, 2, n)
    return X, (rng.random(n) < 0.5 + size * np.sign(X[:, 0] * X[:, 1]) * t).astype(int), t


def test_a_product_is_found_that_single_features_hide():
    X, y, t = product()
    with pytest.warns(UserWarning, match=r"kept none.*UMODLSelector\(pairs=True\)"):
        assert UMODLSelector().fit(X, y, t).transform(X).shape == (4000, 0)
    model = UMODLSelector(pairs=True).fit(X, y, t)
    assert model.get_support(indices=True).tolist() == [0, 1]
    assert model.pairs_.tolist() == [[0, 1]]
    # Equation (11) over the cells: the arms are 0.2 apart everywhere.
    assert model.pair_scores_[0] == pytest.approx(0.04, abs=0.015)
    np.testing.assert_array_equal(model.feature_importances_, model.scores_)
    assert model.scores_[:2].tolist() == [model.pair_scores_[0]] * 2
    assert (model.scores_[2:] == 0).all()


def test_noise_stays_noise():
    kept = [len(UMODLSelector(pairs=True).fit(*product(1500, 0.0, seed)).pairs_) for seed in range(15)]
    assert sum(kept) <= 1


def test_a_single_feature_needs_no_partner():
    rng = np.random.default_rng(0)
    X, t = rng.uniform(-1, 1, size=(4000, 6)), rng.integers(0, 2, 4000)
    y = rng.random(4000) < 0.4 + 0.3 * t * (X[:, 2] > 0)
    plain, pairs = (UMODLSelector(pairs=flag).fit(X, y, t) for flag in (False, True))
    assert pairs.pairs_.shape == (0, 2)
    np.testing.assert_array_equal(pairs.scores_, plain.scores_)
    assert pairs.get_support(indices=True).tolist() == [2]


def test_levels_and_missing_values_have_partners_too(tmp_path):
    rng = np.random.default_rng(1)
    n = 5000
    X = pd.DataFrame({"a": rng.choice(list("uvwxyz"), n), "b": rng.normal(size=n), "c": rng.normal(size=n)})
    X.loc[rng.random(n) < 0.5, "b"] = np.nan
    t = rng.integers(0, 3, n)
    good = X["a"].isin(["u", "w", "z"]) == X["b"].isna()
    y = rng.random(n) < 0.5 + 0.25 * np.where(good, 1, -1) * (t > 0)
    model = UMODLSelector(pairs=True, n_jobs=2).fit(X, y, t)
    assert model.get_feature_names_out().tolist() == ["a", "b"]
    model.save(tmp_path / "model.upturn")
    loaded = up.load(tmp_path / "model.upturn")
    np.testing.assert_array_equal(loaded.pairs_, model.pairs_)
    np.testing.assert_array_equal(loaded.scores_, model.scores_)
    assert loaded.transform(X).columns.tolist() == ["a", "b"]


def test_the_number_of_pairs_is_bounded(monkeypatch):
    monkeypatch.setattr("upturn.features._pairs.MOST_PAIRS", 3)
    X, y, t = product()
    assert len(UMODLSelector(pairs=True).fit(X[:, :3], y, t).pairs_) == 1  # three columns make three pairs
    seen = []
    partition = up.features._pairs.partition_column
    monkeypatch.setattr("upturn.features._pairs.partition_column", lambda *a: seen.append(1) or partition(*a))
    UMODLSelector(pairs=True).fit(X, y, t)
    assert len(seen) == 3


def test_weights_count_rows():
    X, y, t = product(3000)
    times = np.random.default_rng(2).integers(0, 3, 3000)
    rows = np.repeat(np.arange(3000), times)
    weighted = UMODLSelector(pairs=True).fit(X, y, t, sample_weight=times)
    assert weighted.pairs_.tolist() == [[0, 1]]
    assert UMODLSelector(pairs=True).fit(X[rows], y[rows], t[rows]).pairs_.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pairs", np.array([[1, 0]])),
        ("pairs", np.array([[0, 6]])),
        ("pairs", np.array([[-1, 1]])),
        ("pairs", np.array([0, 1])),
        ("pair_scores", np.array([np.nan])),
        ("pair_scores", np.array([0.1, 0.2])),
    ],
)
def test_spoiled_pairs_are_refused(key, value):
    model = UMODLSelector(pairs=True).fit(*product())
    state = {**model._get_state(), key: value}
    with pytest.raises(ValueError, match="pairs of features are not well formed"):
        model._set_state(state)
