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


def told_together(n=6000, houses=1):
    """Three arms, of which one follows the sign of a product; values are missing; ``houses`` of several rows."""
    rng = np.random.default_rng(0)
    a, b, city = rng.normal(size=n), rng.normal(size=n), rng.choice(["Rome", "Oslo", "Kyiv"], n)
    arm = np.where(rng.random(n) < 0.3, 2, rng.random(n) < 0.5 + 0.3 * np.sign(a * b))
    a, b, city, arm = (np.repeat(one[: n // houses], houses) for one in (a, b, city, arm))
    weight = np.where(rng.random(n) < 0.1, 0.0, 1.0 + rng.random(n))
    c = np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n))
    frame = pl.DataFrame({"a": a, "b": b, "city": city, "c": c, "arm": arm, "w": weight})
    return frame.with_columns(y=a + arm + rng.normal(size=n))


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("houses", [1, 3])
def test_what_trees_tell_is_the_same_in_parts(weight, houses):
    frame, columns = told_together(houses=houses), ["a", "b", "city", "c"]
    given = None if weight is None else frame["w"]
    with pytest.warns(UserWarning, match="by more than chance"):
        whole = UpliftForest(6, random_state=1).fit(frame.select(columns), frame["y"], frame["arm"], given)
    spread = UpliftForest(6, random_state=1)
    places = Here([Raw(k, frame[rows]) for k, rows in enumerate((slice(0, 1), slice(1, 2500), slice(2500, 6000)))])
    with pytest.warns(UserWarning, match="by more than chance"):
        learn(spread, places, Roles("y", "arm", weight, columns), None, "polars")
    assert whole._look.rows == (frame if weight is None else frame.filter(frame["w"] > 0))["a"].n_unique()
    assert spread._look == whole._look
    assert whole.propensity_auc_ > 0.6
    assert repr(spread) == repr(whole)
    np.testing.assert_array_equal(spread.predict(frame.select(columns)), whole.predict(frame.select(columns)))


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
