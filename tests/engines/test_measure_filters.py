"""Filters from counts of parts: the scores of the whole table."""

import numpy as np
import pytest
from sklearn.base import clone

from engines.test_measure_umodl import FEATURES
from engines.test_measure_umodl import table as counted
from engines.test_places import parts
from upturn import engines
from upturn.engines import _filters, _umodl
from upturn.engines._gather import Roles
from upturn.features import FilterSelector

pl = pytest.importorskip("polars")


def table(real=False, **how):
    frame = counted(**how)
    rng = np.random.default_rng(5)
    heavy = rng.uniform(0.2, 3.0, len(frame)) * (rng.random(len(frame)) > 0.05)
    y = pl.col("bought") * 3.0 + rng.normal(100, 1, len(frame)) if real else pl.col("bought") + 1.0
    return frame.with_columns(bought=y, weight=heavy, huge=heavy * 2.0**40)


def far(model, frame, k, weight=None):
    model = clone(model)
    _filters.learn_filter(model, parts(frame, k), Roles("bought", "segment", weight, FEATURES), "polars")
    return model


def local(model, frame, weight=None):
    chosen = [*FEATURES, "segment", "bought", *([weight] if weight else [])]
    return clone(model).fit(frame.select(chosen), "bought", "segment", weight)


@pytest.mark.parametrize("weight", [None, "weight", "huge"])
@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("criterion", ["kl", "euclidean", "chi2", "f", "lr"])
def test_scores_are_those_of_the_whole_table(criterion, real, weight):
    if real and criterion not in ("euclidean", "f"):
        pytest.skip("rates only")
    for arms in (("none", "mail"), ("none", "mail", "call")):
        frame, model = table(real, arms=arms), FilterSelector(criterion=criterion, k=3)
        whole = local(model, frame, weight)
        for k in (1, 7):
            found = far(model, frame, k, weight)
            if weight is None and not real and criterion not in ("f", "lr"):
                np.testing.assert_array_equal(found.scores_, whole.scores_)
            np.testing.assert_allclose(found.scores_, whole.scores_, rtol=1e-8, atol=1e-9)
            np.testing.assert_array_equal(found.ranking_, whole.ranking_)
            if whole.pvalues_ is not None:
                np.testing.assert_allclose(found.pvalues_, whole.pvalues_, rtol=1e-6)
            assert (found._rate, found.n_selected_, found.arms_) == (whole._rate, 3, whole.arms_)
            np.testing.assert_array_equal(found.get_support(), whole.get_support())


@pytest.mark.parametrize("criterion", ["kl", "f", "lr"])
def test_a_column_of_many_values_is_scored_between_quantiles(criterion, monkeypatch):
    """With as few as 300 quantiles of 1,500 rows."""
    monkeypatch.setattr(_umodl, "MOST", 300)
    frame, model = table(), FilterSelector(criterion=criterion)
    found, whole = far(model, frame, 5), local(model, frame)
    np.testing.assert_allclose(found.scores_, whole.scores_, rtol=0.03, atol=0.03 if criterion != "kl" else 0.002)
    assert found.ranking_.argmin() == whole.ranking_.argmin()


@pytest.mark.parametrize(
    ("criterion", "change", "said"),
    [
        ("kl", {"bought": pl.col("bought") * pl.col("noise")}, "more than two distinct values"),
        ("f", {"bought": pl.lit(3.0)}, "one value only"),
    ],
)
def test_outcomes_that_cannot_be_are_refused_in_words(criterion, change, said):
    frame, model = table().with_columns(**change), FilterSelector(criterion=criterion)
    for fit in (local, lambda model, frame: far(model, frame, 4)):
        with pytest.raises(ValueError, match=said):
            fit(model, frame)


def test_files_are_scored(tmp_path):
    frame = table()
    frame[:400].write_parquet(tmp_path / "a.parquet")
    frame[400:].write_parquet(tmp_path / "b.parquet")
    found = engines.fit(FilterSelector(k=2), tmp_path, "bought", "segment", features=FEATURES)
    np.testing.assert_array_equal(found.scores_, local(FilterSelector(k=2), frame).scores_)
    with pytest.raises(ValueError, match="has no use for scratch="):
        engines.fit(FilterSelector(), tmp_path, "bought", "segment", features=FEATURES, scratch=tmp_path)
