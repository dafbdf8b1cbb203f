"""Forests look at the arms before the fit, wherever the rows lie, and estimate chances where they differ."""

import numpy as np
import pytest

from upturn import engines
from upturn.engines._gather import Roles
from upturn.engines._learn import learn
from upturn.engines._numbers import Raw
from upturn.engines._places import Here
from upturn.trees import CTSForest, UpliftForest

pl = pytest.importorskip("polars")


def confounded(n=6000, real=False):
    rng = np.random.default_rng(0)
    a, city = rng.normal(size=n), rng.choice(["Rome", "Oslo", "Kyiv"], n)
    arm = rng.random(n) < 1 / (1 + np.exp(-a))
    y = a + arm + rng.normal(size=n)
    weight = np.where(rng.random(n) < 0.1, 0.0, 1.0 + rng.random(n))
    return pl.DataFrame({"a": a, "city": city, "arm": arm, "y": y if real else (y > 0.5).astype(int), "w": weight})


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("forest", [UpliftForest(6, random_state=1), CTSForest(6, random_state=1)])
def test_the_look_is_the_same_in_parts(forest, real, weight, tmp_path):
    frame = confounded(real=real)
    X, given = frame.select("a", "city"), None if weight is None else frame["w"]
    said = "the arms differ in their features by more than chance"
    with pytest.warns(UserWarning, match=said):
        whole = forest.fit(X, frame["y"], frame["arm"], given)
    expected = whole.predict(X)
    for k, rows in enumerate((slice(0, 1), slice(1, 4000), slice(4000, 6000))):
        frame[rows].write_parquet(tmp_path / f"{k}.parquet")
    roles = {"y": "y", "treatment": "arm", "sample_weight": weight, "features": ["a", "city"]}
    with pytest.warns(UserWarning, match=said):
        files = engines.fit(forest.__class__(6, random_state=1), str(tmp_path / "*.parquet"), **roles)
    places = Here(
        [Raw(k, frame[rows]) for k, rows in enumerate((slice(0, 2500), slice(2500, 2500), slice(2500, 6000)))]
    )
    spread = forest.__class__(6, random_state=1)
    with pytest.warns(UserWarning, match=said):
        learn(spread, places, Roles("y", "arm", weight, ["a", "city"]), None, "polars")
    for other in (files, spread):
        assert other._look == whole._look
        assert (other.propensity_kind_, other.centered_) == (whole.propensity_kind_, whole.centered_)
        np.testing.assert_array_equal(other.predict(X), expected)
    assert whole.propensity_kind_ == ("trees" if type(forest) is UpliftForest else "shares")


@pytest.mark.parametrize("inference", [False, True])
def test_chances_that_leave_nobody_to_compare_are_not_used_in_parts_either(inference):
    rng = np.random.default_rng(0)
    n, k = (600, 10) if inference else (3000, 40)
    shop, of_shop = rng.integers(0, k, n), rng.normal(size=(k, 2))
    arm = rng.permutation(np.arange(k) % 2)[shop]
    a, b = of_shop[shop].T
    frame = pl.DataFrame({"a": a, "b": b, "c": rng.normal(size=n), "arm": arm, "y": a + arm + rng.normal(size=n)})
    X, said = frame.select("a", "b", "c"), "tell nearly everybody's arm"

    def forest():
        return UpliftForest(6, inference=inference, random_state=1)

    with pytest.warns(UserWarning, match=said):
        whole = forest().fit(X, frame["y"], frame["arm"])
    third = n // 3
    places = Here([Raw(0, frame[:third]), Raw(1, frame[third:third]), Raw(2, frame[third:])])
    spread = forest()
    with pytest.warns(UserWarning, match=said):
        learn(spread, places, Roles("y", "arm", None, ["a", "b", "c"]), None, "polars")
    assert (spread.propensity_kind_, spread.propensity_pvalue_) == ("shares", whole.propensity_pvalue_)
    assert (spread._look, spread.centered_) == (whole._look, whole.centered_)
    np.testing.assert_array_equal(spread.predict(X), whole.predict(X))
