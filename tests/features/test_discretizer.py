"""UMODLDiscretizer and UMODLSelector: equation (2), the optimum, missing values, categories, arms, tables, files."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import upturn
from naive import umodl as naive
from upturn.features import FilterSelector, UMODLDiscretizer, UMODLSelector
from upturn.meta import ClassTransformation, TLearner
from upturn.model_selection import UpliftKFold


def draw(kind, n, seed):
    """One feature of a kind, with treatment and outcome."""
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(0, 10, n), rng.integers(0, 2, n)
    step = np.floor(x).astype(int)
    p = {
        "noise": np.full(n, 0.3),
        "crenel": np.where((step % 2 == 0) == (t == 1), 0.9, 0.1),
        "weak": np.where((step % 5 == 0) == (t == 1), 0.65, 0.35),
        "continuous": np.where(t == 1, x / 10, 0.5),
        "class only": np.where(x > 4, 0.7, 0.2),
        "spike": np.where((step == 7) & (t == 1), 0.95, 0.2),
        "rare": np.where((x > 8) & (t == 1), 0.12, 0.01),
    }[kind]
    return x, t, (rng.random(n) < p).astype(int)


KINDS = ("noise", "crenel", "weak", "continuous", "class only", "spike", "rare")


def fit_one(x, t, y, **options):
    return UMODLDiscretizer(**options).fit(
        np.asarray(x, dtype=float)[:, None],
        y,
        t,
    )


@pytest.mark.parametrize("seed", range(200))
def test_exact_optimum_and_cost_of_equation_2(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 1001))
    x, t, y = draw(KINDS[seed % len(KINDS)], n, seed)
    if seed % 4 == 1:
        x = np.round(x, 1)  # ties
    elif seed % 4 == 3:
        x = np.floor(x * rng.choice([0.3, 0.7, 2.0]))  # few distinct values
    if len(np.unique(y)) < 2 or len(np.unique(t)) < 2:
        y[:2], t[:2] = [0, 1], [0, 1]
    part = fit_one(x, t, y).partitions_[0]
    tables = naive.tables(x, t, y, 2, 2, part.edges)
    assert part.counts.tolist() == tables
    assert part.cost == pytest.approx(naive.cost(tables, naive.interval_prior(n, len(tables))), rel=1e-11)
    best = naive.best_cost(x, t, y, 2, 2)
    assert part.cost == pytest.approx(best, rel=1e-11)
    assert part.cost <= part.null_cost
    everything = [np.sum(tables, axis=0).tolist()]
    assert part.null_cost == pytest.approx(naive.cost(everything, naive.interval_prior(n, 1)), rel=1e-11)
    for table, separate in zip(tables, part.separate, strict=True):
        assert separate == (naive.part_cost(table, 1) < naive.part_cost(table, 0) - 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [3000, 20_000])
def test_no_search_costs_more_than_the_null_model_and_fast_is_near_exact(kind, n):
    x, t, y = draw(kind, n, 5)
    fast, greedy = fit_one(x, t, y), fit_one(x, t, y, search="greedy")
    assert fast.cost_[0] <= fast.null_cost_[0]
    assert greedy.cost_[0] <= greedy.null_cost_[0]
    assert fast.cost_[0] <= greedy.cost_[0] + 1e-6
    if n == 3000:
        exact = fit_one(x, t, y, search="exact")
        assert exact.cost_[0] <= fast.cost_[0] + 1e-6
        assert fast.cost_[0] <= exact.cost_[0] + 1.0


def test_compression_is_what_the_model_saves():
    x, t, y = draw("crenel", 3000, 0)
    model = UMODLDiscretizer().fit(np.column_stack([x, np.random.default_rng(1).normal(size=3000)]), y, t)
    np.testing.assert_allclose(model.compression_, 1 - model.cost_ / model.null_cost_)
    assert model.compression_[0] > 0.2
    assert model.compression_[1] == 0.0


def test_crenel_is_found_and_noise_is_left_alone():
    x, t, y = draw("crenel", 20_000, 0)
    part = fit_one(x, t, y).partitions_[0]
    np.testing.assert_allclose(part.edges, np.arange(1, 10), atol=0.02)
    assert part.separate.all()
    np.testing.assert_allclose(part.effects(np.array([0.0, 1.0]))[:, 0], [0.8, -0.8] * 5, atol=0.06)
    assert fit_one(*draw("noise", 20_000, 0)).n_parts_[0] == 1


def test_false_alarms_are_rare():
    rng = np.random.default_rng(0)
    n = 500
    t, y = rng.integers(0, 2, n), rng.integers(0, 2, n)
    model = UMODLDiscretizer().fit(rng.normal(size=(n, 200)), y, t)
    assert (model.n_parts_ > 1).sum() <= 2


def test_a_feature_with_no_effect_part_has_w_0():
    part = fit_one(*draw("class only", 5000, 1)).partitions_[0]
    assert part.n_parts == 2
    assert not part.separate.any()
    assert (part.effects(np.array([0.0, 1.0])) == 0).all()
    assert part.importance() > 0
    assert part.importance(effect_only=True) == 0


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any), min_size=1, max_size=5),
    st.booleans(),
)
def test_importance_is_equation_11(rows, effect_only):
    from upturn.features._partition import Partition

    counts = np.array(rows).reshape(-1, 2, 2)
    separate = np.arange(len(rows)) % 2 == 0
    part = Partition(np.arange(len(rows) - 1.0), None, -1, counts, separate, 1.0, 2.0)
    expected = 0.0
    for (c, t), w in zip(counts.tolist(), separate, strict=True):
        if sum(c) and sum(t) and (w or not effect_only):
            expected += (sum(c) + sum(t)) / counts.sum() * (t[1] / sum(t) - c[1] / sum(c)) ** 2
    assert part.importance(effect_only) == pytest.approx(expected if len(rows) > 1 else 0.0)


# ------------------------------------------------------------------------------- missing values, categories, arms


def with_missing(seed, informative):
    rng = np.random.default_rng(seed)
    x, t, y = draw("spike", 400, seed)
    gone = rng.random(400) < 0.3
    if informative:
        y = np.where(gone & (t == 1), 1, np.where(gone, 0, y))
    return np.where(gone, np.nan, x), t, y


@pytest.mark.parametrize("informative", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_missing_values_are_a_part_of_their_own_or_there_is_one_part(seed, informative):
    x, t, y = with_missing(seed, informative)
    model = fit_one(x, t, y)
    part, gone = model.partitions_[0], np.isnan(x)
    # the optimum by hand: all cuts of the rest with one more part in the prior, against the null model
    missing = naive.tables(np.zeros(gone.sum()), t[gone], y[gone], 2, 2, [])
    rest = np.unique(x[~gone])
    best = null = naive.cost(naive.tables(np.zeros(400), t, y, 2, 2, []), naive.interval_prior(400, 1))
    for lo in [None, *range(0, len(rest) - 1, 7)]:  # every two-cut partition of a coarse grid cannot beat the search
        for hi in [None] if lo is None else [None, *range(lo + 1, len(rest) - 1, 7)]:
            edges = [rest[k] for k in (lo, hi) if k is not None]
            parts = naive.tables(x[~gone], t[~gone], y[~gone], 2, 2, edges) + missing
            best = min(best, naive.cost(parts, naive.interval_prior(400, len(parts))))
    assert part.cost <= best + 1e-9
    if part.n_parts == 1:
        assert part.cost == pytest.approx(null, rel=1e-11)
        assert model.transform([[np.nan], [1.0]]).tolist() == [[0], [0]]
    else:
        parts = naive.tables(x[~gone], t[~gone], y[~gone], 2, 2, part.edges) + missing
        assert part.counts.tolist() == parts
        assert part.cost == pytest.approx(naive.cost(parts, naive.interval_prior(400, len(parts))), rel=1e-11)
        assert part.missing_part == part.n_parts - 1
        assert (model.transform(x[:, None])[gone, 0] == part.n_parts - 1).all()
    assert informative <= (part.n_parts > 1)


def test_missing_at_predict_only():
    x, t, y = draw("crenel", 4000, 0)
    model = fit_one(x, t, y)
    assert model.transform([[np.nan], [0.5]]).tolist() == [[-1], [0]]
    assert model.encode_as([[np.nan]], "effect").tolist() == [[0.0]]
    assert model.encode_as([[np.nan]], "onehot").sum() == 0


def test_a_column_without_any_value():
    _, t, y = draw("crenel", 300, 0)
    frame = pd.DataFrame({"a": np.full(300, np.nan), "b": pd.Categorical([None] * 300, categories=["u", "v"])})
    model = UMODLDiscretizer().fit(frame, y, t)
    assert model.n_parts_.tolist() == [1, 1]
    expected = naive.cost(naive.tables(np.zeros(300), t, y, 2, 2, []), naive.interval_prior(300, 1))
    assert model.cost_[0] == pytest.approx(expected, rel=1e-11)


def categories(seed, n=1200, missing=False):
    rng = np.random.default_rng(seed)
    names = np.array(list("abcdef"))
    code, t = rng.integers(0, 6, n), rng.integers(0, 2, n)
    y = (rng.random(n) < np.where((code % 2 == 0) & (t == 1), 0.8, 0.3)).astype(int)
    level = names[code].astype(object)
    if missing:
        level[rng.random(n) < 0.2] = None
    return level, t, y


@pytest.mark.parametrize("seed", range(5))
def test_categories_are_grouped_by_value_at_the_least_cost(seed):
    level, t, y = categories(seed)
    model = UMODLDiscretizer().fit(pd.DataFrame({"c": level}), y, t)
    part = model.partitions_[0]
    values = [naive.tables(np.zeros((level == v).sum()), t[level == v], y[level == v], 2, 2, [])[0] for v in "abcdef"]
    assert part.cost == pytest.approx(naive.best_group_cost(values), rel=1e-11)
    assert part.groups.tolist() == [0, 1, 0, 1, 0, 1]
    assert model.transform(pd.DataFrame({"c": ["b", "c"]}))["c"].tolist() == [1, 0]


def test_missing_categories_are_a_value_of_their_own_group():
    level, t, y = categories(1, missing=True)
    model = UMODLDiscretizer().fit(pd.DataFrame({"c": level}), y, t)
    part = model.partitions_[0]
    parts = part.counts.tolist()
    assert part.missing_part == part.n_parts - 1
    assert np.sum(parts[-1]) == sum(v is None for v in level)
    assert part.cost == pytest.approx(naive.cost(parts, naive.group_prior(7, len(parts))), rel=1e-11)
    assert model.summary()["part"].tolist()[-1] == "missing"
    with pytest.warns(UserWarning, match="not seen at fit"):
        assert model.transform(pd.DataFrame({"c": ["zzz"]}))["c"].tolist() == [part.n_parts - 1]


@pytest.mark.parametrize("n_levels", [40, 400, 3000])
def test_many_levels(n_levels):
    rng = np.random.default_rng(0)
    n = 12_000
    code, t = rng.integers(0, n_levels, n), rng.integers(0, 2, n)
    y = (rng.random(n) < np.where((code % 2 == 0) & (t == 1), 0.9, 0.2)).astype(int)
    frame = pd.DataFrame({"c": np.char.add("level", code.astype(str)), "noise": rng.permutation(code).astype(str)})
    model = UMODLDiscretizer().fit(frame, y, t)
    assert (model.cost_ <= model.null_cost_).all()
    assert model.n_parts_[1] == 1
    if n_levels <= 400:  # 3,000 levels of four rows each say nothing that pays
        assert model.n_parts_[0] == 2
        agree = np.mean(model.partitions_[0].codes(model._encode(frame)[:, 0]) == code % 2)
        assert max(agree, 1 - agree) > 0.9


def test_several_arms_and_classes():
    rng = np.random.default_rng(0)
    n = 900
    x, t, y = rng.uniform(0, 4, n), rng.integers(0, 3, n), rng.integers(0, 3, n)
    y = np.where((x > 2) & (t == 2), 2, y)
    model = fit_one(x, t, y)
    part = model.partitions_[0]
    tables = naive.tables(x, t, y, 3, 3, part.edges)
    assert part.counts.tolist() == tables
    assert part.cost == pytest.approx(naive.best_cost(x, t, y, 3, 3), rel=1e-11)
    effects = UMODLDiscretizer(encode="effect").fit(x[:, None], y, t).transform(x[:5, None])
    assert effects.shape == (5, 2)
    assert part.n_parts == 2
    expected = 2 - np.mean(y[(x > part.edges[0]) & (t == 0)])  # means: y is 0, 1, 2
    assert part.effects(model.classes_)[1, 1] == pytest.approx(expected)


def test_permuting_rows_and_increasing_maps_change_nothing():
    x, t, y = draw("continuous", 3000, 3)
    first = fit_one(x, t, y)
    order = np.random.default_rng(0).permutation(3000)
    second = fit_one(np.exp(x[order]), t[order], y[order])
    assert first.cost_[0] == second.cost_[0]
    assert first.partitions_[0].counts.tolist() == second.partitions_[0].counts.tolist()


def test_swapping_classes_or_arms_changes_no_cost():
    x, t, y = draw("weak", 800, 3)
    cost = fit_one(x, t, y).cost_[0]
    assert fit_one(x, t, 1 - y).cost_[0] == pytest.approx(cost, rel=1e-12)
    assert fit_one(x, 1 - t, y).cost_[0] == pytest.approx(cost, rel=1e-12)


def test_whole_weights_repeat_rows():
    x, t, y = draw("weak", 300, 1)
    w = np.random.default_rng(0).integers(0, 4, 300)
    weighted = UMODLDiscretizer().fit(x[:, None], y, t, sample_weight=w)
    repeated = fit_one(np.repeat(x, w), np.repeat(t, w), np.repeat(y, w))
    assert weighted.cost_[0] == repeated.cost_[0]
    assert weighted.partitions_[0].counts.tolist() == repeated.partitions_[0].counts.tolist()


# -------------------------------------------------------------------------------------------------- refusals


def test_a_real_valued_outcome_is_refused_with_advice():
    x, t, _ = draw("noise", 100, 0)
    with pytest.raises(ValueError, match=r"real-valued outcome. Bin the outcome .* FilterSelector\(criterion='f'\)"):
        fit_one(x, t, np.random.default_rng(0).normal(size=100))
    with pytest.raises(ValueError, match="real-valued"):
        fit_one(x, t, np.tile([0.0, 0.5, 1.0, 2.0], 25))


def test_other_refusals():
    x, t, y = draw("noise", 100, 0)
    with pytest.raises(ValueError, match="one value only"):
        fit_one(x, t, np.ones(100))
    with pytest.raises(ValueError, match=r"sample_weight holds 0\.5.*whole number"):
        UMODLDiscretizer().fit(x[:, None], y, t, sample_weight=np.full(100, 0.5))
    with pytest.raises(ValueError, match="search='fast': expected 'auto', 'exact' or 'greedy'"):
        fit_one(x, t, y, search="fast")
    with pytest.raises(ValueError, match="encode='dummy'"):
        fit_one(x, t, y, encode="dummy")


def test_exact_search_has_a_limit():
    x, t, y = draw("noise", 60_000, 0)
    with pytest.raises(ValueError, match="boundary points"):
        fit_one(x, t, y, search="exact")


# ------------------------------------------------------------------------------------------ tables, pipelines, files


def experiment(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    t = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "noise": rng.normal(size=n),
            "works": rng.normal(size=n),
            "city": pd.Categorical(rng.choice(["rome", "oslo", "lima"], n)),
        }
    )
    p = 0.3 + 0.4 * t * (frame["works"] > 0) * (frame["city"] == "rome")
    return frame, t, (rng.random(n) < p).astype(int)


def test_encodings_and_names():
    frame, t, y = experiment()
    model = UMODLDiscretizer().fit(frame, y, t)
    assert model.n_parts_.tolist() == [1, 2, 2]
    codes = model.transform(frame)
    assert list(codes.columns) == list(frame.columns)
    effects = clone(model).set_params(encode="effect").fit(frame, y, t).transform(frame)
    onehot = clone(model).set_params(encode="onehot").fit(frame, y, t)
    table = onehot.transform(frame)
    assert list(table.columns) == onehot.get_feature_names_out().tolist()
    assert (table.to_numpy().sum(axis=1) == 3).all()
    for j, name in enumerate(frame.columns):
        by_part = model.partitions_[j].effects(model.classes_)[:, 0]
        np.testing.assert_array_equal(effects[name], by_part[codes[name]])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "numpy"])
def test_tables_come_back_in_the_library_they_came_in(library):
    frame, t, y = experiment(1500)
    frame = frame[["noise", "works"]] if library == "numpy" else frame
    table = {
        "pandas": lambda: frame.set_index(np.arange(1500) + 7),
        "polars": lambda: pl.from_pandas(frame),
        "pyarrow": lambda: pl.from_pandas(frame).to_arrow(),
        "numpy": frame.to_numpy,
    }[library]()
    for model in (UMODLDiscretizer(), UMODLSelector(), FilterSelector(k=1)):
        out = model.fit(table, y, t).transform(table)
        assert type(out) is type(table)
        if library == "pandas":
            assert out.index.equals(table.index)


def test_selector_keeps_columns_as_they_are():
    frame, t, y = experiment()
    selector = UMODLSelector().fit(frame, y, t)
    assert selector.get_support().tolist() == [False, True, True]
    out = selector.transform(frame)
    pd.testing.assert_frame_equal(out, frame[["works", "city"]])
    assert selector.get_feature_names_out().tolist() == ["works", "city"]
    np.testing.assert_array_equal(selector.scores_, selector.discretizer_.feature_importances_)
    assert selector.transform(frame[["city", "works", "noise"]]).columns.tolist() == ["works", "city"]
    with pytest.raises(ValueError, match="'works'"):
        selector.transform(frame[["city", "noise"]])


def test_selecting_nothing_warns():
    x, t, y = draw("noise", 500, 0)
    selector = UMODLSelector().fit(x[:, None], y, t)
    with pytest.warns(UserWarning, match=r"kept none of the 1 feature.*min_features=1"):
        assert selector.transform(x[:, None]).shape == (500, 0)


def noise_only(n=600, p=4):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, p)), rng.integers(0, 2, n), rng.integers(0, 2, n)


@pytest.mark.filterwarnings("ignore:.*kept none")
def test_a_pipeline_on_noise_says_which_step_kept_nothing_and_what_to_do():
    X, t, y = noise_only()
    with pytest.raises(ValueError, match=r"0 feature\(s\).*UMODLSelector\(\) where all is noise.*min_features=1"):
        make_pipeline(UMODLSelector(), TLearner(LinearRegression())).fit(X, upturn.pack(y, t))


@pytest.mark.parametrize("least", [1, 3, 9])
def test_min_features_keeps_a_pipeline_going_on_noise(least, tmp_path):
    X, t, y = noise_only()
    pipeline = make_pipeline(UMODLSelector(min_features=least), TLearner(LinearRegression()))
    assert np.isfinite(pipeline.fit(X, upturn.pack(y, t)).predict(X)).all()
    selector = pipeline[0]
    assert (selector.scores_ == 0).all()
    apart = FilterSelector(criterion="euclidean", k=min(least, 4)).fit(X, y, t)
    np.testing.assert_array_equal(selector.get_support(), apart.get_support())
    assert selector.fillers_.tolist() == np.argsort(apart.ranking_)[:least].tolist()
    selector.save(tmp_path / "selector")
    np.testing.assert_array_equal(upturn.load(tmp_path / "selector").get_support(), selector.get_support())


def test_min_features_adds_nothing_where_enough_is_found():
    frame, t, y = experiment()
    assert UMODLSelector(min_features=2).fit(frame, y, t).get_support().tolist() == [False, True, True]
    assert UMODLSelector(min_features=3).fit(frame, y, t).get_support().all()
    for wrong in (-1, 1.5, True):
        with pytest.raises(ValueError, match="min_features="):
            UMODLSelector(min_features=wrong).fit(frame, y, t)


def test_selectors_work_in_a_pipeline_with_a_packed_target():
    frame, t, y = experiment(4000)
    for selector in (UMODLSelector(), FilterSelector(criterion="chi2", k=2)):
        pipeline = make_pipeline(selector, ClassTransformation())
        scores = cross_val_score(pipeline, frame, upturn.pack(y, t), cv=UpliftKFold(3))
        assert (scores > 0).all()


def test_treatment_is_routed_without_any_request():
    frame, t, y = experiment(4000)
    for step in (UMODLDiscretizer(encode="effect"), UMODLSelector(), FilterSelector(criterion="f", k=2)):
        packed = make_pipeline(clone(step), ClassTransformation()).fit(frame, upturn.pack(y, t))
        with sklearn.config_context(enable_metadata_routing=True):
            routed = make_pipeline(clone(step), ClassTransformation()).fit(frame, y, treatment=t)
            transformed = clone(step).fit_transform(frame, y, treatment=t)
        np.testing.assert_array_equal(routed.predict(frame), packed.predict(frame))
        pd.testing.assert_frame_equal(transformed, packed[0].transform(frame))


def test_set_output_and_parameters():
    X, t, y = draw("crenel", 500, 0)
    model = UMODLDiscretizer(encode="onehot").set_output(transform="pandas").fit(X[:, None], y, t)
    out = model.transform(X[:3, None])
    assert list(out.columns) == model.get_feature_names_out().tolist()
    assert clone(model).get_params() == model.get_params()
    assert "control 0, arm 1" in repr(model)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        UMODLDiscretizer().transform(X[:, None])
    with pytest.raises(sklearn.exceptions.NotFittedError):
        UMODLSelector().transform(X[:, None])


def test_columns_in_parallel_give_the_same():
    rng = np.random.default_rng(0)
    x, t, y = draw("crenel", 2000, 0)
    X = np.column_stack([x, rng.normal(size=(2000, 5))])
    one, two = (UMODLDiscretizer(n_jobs=jobs).fit(X, y, t) for jobs in (1, 2))
    np.testing.assert_array_equal(one.cost_, two.cost_)
    np.testing.assert_array_equal(one.transform(X), two.transform(X))


def test_summary():
    frame, t, y = experiment()
    summary = UMODLDiscretizer().fit(frame, y, t).summary()
    assert summary.columns[:4] == ["feature", "part", "rows", "separate"]
    assert "{lima, oslo}" in repr(summary)
    table = summary.to_frame()
    assert table["part"].tolist()[0] == "everything"
    assert {"{rome}", "{lima, oslo}"} <= set(table["part"])
    assert table.groupby("feature")["rows"].sum().tolist() == [1500] * 3
    rome = table[table["part"] == "{rome}"].iloc[0]
    mask = (frame["city"] == "rome").to_numpy()
    assert rome["rate[1]"] == pytest.approx(y[mask & (t == 1)].mean())
    assert rome["difference"] == pytest.approx(rome["rate[1]"] - rome["rate[0]"])
    other = table[table["part"] == "{lima, oslo}"].iloc[0]
    assert not other["separate"]
    assert other["effect"] == 0.0
    assert other["difference"] != 0.0


def test_summaries_come_in_the_library_of_the_table():
    frame, t, y = experiment()
    table = pl.from_pandas(frame)
    for model in (UMODLDiscretizer().fit(table, y, t), UMODLSelector().fit(table, y, t).discretizer_):
        assert isinstance(model.summary().to_frame(), pl.DataFrame)
    assert isinstance(UMODLDiscretizer().fit(frame, y, t).summary().to_frame(), pd.DataFrame)


def test_an_empty_arm_gives_no_nan():
    x = np.repeat([0.0, 1.0], 60)
    t = np.concatenate([np.zeros(60), np.tile([0, 1], 30)])
    y = np.concatenate([np.ones(60), np.tile([0, 1], 30)])
    model = fit_one(x, t, y)
    assert model.n_parts_[0] == 2
    numbers = model.summary().to_frame().select_dtypes("number")
    assert not numbers.isna().any().any()
    assert model.encode_as([[0.0], [1.0]], "effect").tolist() == [[0.0], [1.0]]


def test_partition_of_a_feature_by_name_or_position():
    frame, t, y = experiment()
    model = UMODLDiscretizer().fit(frame, y, t)
    name, part, labels = model.partition_of("city")
    assert (name, labels) == ("city", ["{lima, oslo}", "{rome}"])
    assert part is model.partitions_[list(frame.columns).index("city")]
    assert model.partition_of(list(frame.columns).index("city"))[1] is part
    for wrong in ("town", 99, -1, True, 1.0):
        with pytest.raises(ValueError, match=f"no feature {wrong!r}"):
            model.partition_of(wrong)


@pytest.mark.parametrize("model", [UMODLDiscretizer(encode="effect"), UMODLSelector(effect_only=True)])
def test_saved_and_loaded(model, tmp_path):
    frame, t, y = experiment()
    frame.loc[:20, "works"] = np.nan
    model.fit(frame, y, t).save(tmp_path / "model")
    again = upturn.load(tmp_path / "model")
    pd.testing.assert_frame_equal(again.transform(frame), model.transform(frame))
    assert repr(again) == repr(model)
    if isinstance(model, UMODLSelector):
        np.testing.assert_array_equal(again.scores_, model.scores_)
        before, after = (fitted.discretizer_.summary().to_frame() for fitted in (model, again))
        pd.testing.assert_frame_equal(after, before)


@pytest.mark.filterwarnings("ignore:.*kept none")
def test_a_parameter_changed_after_fit_changes_the_next_fit_only(tmp_path):
    x, t, y = draw("class only", 5000, 1)
    X = np.column_stack([x, x[::-1]])
    for model, changed in (
        (UMODLDiscretizer(), {"encode": "onehot"}),
        (UMODLSelector(), {"effect_only": True}),
        (FilterSelector(k=1), {"k": "all"}),
    ):
        before = model.fit(X, y, t).transform(X)
        model.set_params(**changed).save(tmp_path / "model")
        for fitted in (model, upturn.load(tmp_path / "model")):
            np.testing.assert_array_equal(fitted.transform(X), before)
        assert model.fit(X, y, t).transform(X).shape != before.shape


BREAKS = {
    "counts": lambda s: s.update(counts=s["counts"][:, :1]),
    "negative": lambda s: s.update(counts=-s["counts"]),
    "edges": lambda s: s.update(edges=np.array([np.nan])),
    "order": lambda s: s.update(edges=s["edges"][::-1] if len(s["edges"]) > 1 else np.array([1.0, 0.0])),
    "flags": lambda s: s.update(separate=s["separate"][:1]),
    "kind": lambda s: s.update(edges=None, groups=np.array([0, 1])),
    "missing": lambda s: s.update(missing_part=99),
    "cost": lambda s: s.update(cost=math.inf),
}


@pytest.mark.parametrize("how", BREAKS)
def test_a_damaged_state_is_refused(how):
    frame, t, y = experiment()
    model = UMODLDiscretizer().fit(frame, y, t)
    state = model._get_state()
    BREAKS[how](state["partitions"][1])
    with pytest.raises(ValueError, match="partition"):
        clone(model).fit(frame, y, t)._set_state(state)


def test_a_selector_refuses_a_discretizer_that_is_not_its_own():
    frame, t, y = experiment()
    model = UMODLSelector().fit(frame, y, t)
    other = UMODLDiscretizer().fit(frame[["works", "noise", "city"]], y, t)
    for wrong in (UMODLDiscretizer(), FilterSelector().fit(frame, y, t), None):
        with pytest.raises(ValueError, match="not a fitted UMODLDiscretizer"):
            model._set_state({**model._get_state(), "discretizer": wrong})
    for wrong in (other, UMODLDiscretizer(control=1).fit(frame, y, t)):
        with pytest.raises(ValueError, match="another experiment"):
            model._set_state({**model._get_state(), "discretizer": wrong})


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_codes_follow_the_counts(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 300))
    x = np.where(rng.random(n) < 0.2, np.nan, np.round(rng.normal(size=n), int(rng.integers(0, 3))))
    t, y = rng.integers(0, 2, n), rng.integers(0, 2, n)
    t[:4], y[:4] = [0, 0, 1, 1], [0, 1, 0, 1]
    y = np.where((x > 0.3) & (t == 1), 1, y)
    model = fit_one(x, t, y)
    codes, part = model.transform(x[:, None])[:, 0], model.partitions_[0]
    for i in range(part.n_parts):
        assert np.bincount((2 * t + y)[codes == i], minlength=4).tolist() == part.counts[i].ravel().tolist()


def test_rows_of_weight_0_have_no_say_in_which_features_join():
    differ = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, treatment, y = rng.normal(size=(150, 6)), rng.integers(0, 2, 150), rng.integers(0, 2, 150)
        weight = rng.integers(0, 3, 150).astype(float)
        used = weight > 0
        found = UMODLSelector(min_features=3).fit(X, y, treatment, weight).get_support()
        np.testing.assert_array_equal(
            found, UMODLSelector(min_features=3).fit(X[used], y[used], treatment[used], weight[used]).get_support()
        )
        differ += (found != UMODLSelector(min_features=3).fit(X, y, treatment).get_support()).any()
    assert differ > 0  # weights do matter here
