"""evaluate and compare: paired replicates, tables that read well, and the warning when a sample cannot rank models."""

import warnings

import numpy as np
import pytest

from upturn.metrics import (
    RankingWarning,
    _statistic,
    _strata,
    autoc,
    auuc,
    average_curves,
    calibration_table,
    compare,
    evaluate,
    lift_curve,
    modified_uplift_curve,
    policy_value,
    qini_curve,
    toc_curve,
    uplift_at,
    uplift_curve,
)


def experiment(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    effect, treatment = rng.uniform(-0.3, 0.5, n), rng.integers(0, 2, n)
    y = (rng.random(n) < 0.4 + effect * treatment).astype(int)
    return y, {"oracle": effect, "noisy": effect + rng.normal(0, 0.3, n), "guess": rng.normal(size=n)}, treatment


def test_evaluation_holds_what_the_metrics_say():
    y, scores, treatment = experiment()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)
        table = evaluate(y, scores, treatment, metrics=["auuc", "autoc", ("uplift_at", {"k": 0.1})], random_state=4)
    for name, score in scores.items():
        for metric, call in (("auuc", auuc), ("autoc", autoc)):
            single = call(y, score, treatment, interval=0.95, random_state=4)
            assert table[name][metric] == single
            np.testing.assert_array_equal(table[name][metric].samples, single.samples)
    text = repr(table).splitlines()
    assert text[0].startswith("3 models on 3,000 rows (0 ")
    assert [line.split()[0] for line in text[2:5]] == ["oracle", "noisy", "guess"]
    assert "per 1,000 people" in text[-1]
    frame = table.to_frame()
    assert list(frame.columns) == ["model", "metric", "value", "se", "low", "high", "p_value"]
    assert len(frame) == 9
    assert "uplift_at 0.1" in set(frame["metric"])
    assert "<table>" in table._repr_html_()


def test_paired_differences():
    y, scores, treatment = experiment()
    table = compare(y, scores, treatment, random_state=4)
    pairs = list(zip(table["model"], table["against"], strict=True))
    assert pairs == [("oracle", "noisy"), ("oracle", "guess"), ("noisy", "guess")]
    one, two = (auuc(y, scores[name], treatment, interval=0.95, random_state=4) for name in ("oracle", "noisy"))
    assert table["difference"][0] == pytest.approx(one - two)
    assert table["se"][0] == pytest.approx(np.std(one.samples - two.samples, ddof=1))
    # What the two share cancels: the pair is told apart better than two separate intervals would.
    assert table["se"][0] < 0.8 * np.hypot(one.se, two.se)
    against = compare(y, scores, treatment, baseline="guess", random_state=4)
    assert list(against["model"]) == ["oracle", "noisy"]
    assert set(against["against"]) == {"guess"}
    assert "p_value" in repr(against)


def test_many_comparisons_are_adjusted():
    y, scores, treatment = experiment()
    table = compare(y, scores, treatment, random_state=4)
    p, order = table["p_value"], np.argsort(table["p_value"])
    expected, worst = np.empty(3), 0.0
    for j, at in enumerate(order):  # Holm, step by step
        worst = max(worst, min(1.0, (3 - j) * p[at]))
        expected[at] = worst
    np.testing.assert_allclose(table["p_holm"], expected)
    assert "p_holm: adjusted for 3 comparisons" in repr(table)
    one = compare(y, {name: scores[name] for name in ("oracle", "guess")}, treatment, random_state=4)
    assert one["p_holm"][0] == one["p_value"][0]
    assert "p_holm" not in repr(one)
    assert "p_holm" in one.to_frame().columns


def test_k_of_the_top():
    y, scores, treatment = experiment()
    one = {"oracle": scores["oracle"]}
    table = evaluate(y, one, treatment, k=0.1, interval=None)
    assert table["oracle"]["uplift_at"] == uplift_at(y, scores["oracle"], treatment, k=0.1)
    assert "uplift_at top 10%" in repr(table)
    assert "uplift_at top 30%" in repr(evaluate(y, one, treatment, interval=None))
    both = evaluate(y, one, treatment, k=0.2, metrics=["uplift_at", ("uplift_at", {"k": 0.5})], interval=None)
    assert list(both["oracle"]) == ["uplift_at", "uplift_at 0.5"]
    assert both["oracle"]["uplift_at 0.5"] == uplift_at(y, scores["oracle"], treatment, k=0.5)
    assert "uplift_at top 20%" in repr(both)
    assert "uplift_at top 50%" in repr(both)


def test_rates_are_printed_per_thousand_and_money_per_person():
    y, scores, treatment = experiment()
    two = {name: scores[name] for name in ("oracle", "guess")}
    rate, money = evaluate(y, two, treatment, metrics=["auuc"]), evaluate(50.0 * y, two, treatment, metrics=["auuc"])
    value = float(rate["oracle"]["auuc"])
    assert f"oracle  {1000 * value:.4g} [" in repr(rate)
    assert "outcomes per 1,000 people; 0 is random" in repr(rate)
    assert f"oracle  {50 * value:.4g} [" in repr(money)
    assert "outcome per person; 0 is random" in repr(money)
    pair = compare(y, two, treatment)
    assert f" {1000 * pair['difference'][0]:.4g} " in repr(pair)
    assert "Paired differences in auuc, per 1,000 people, on 3,000 rows" in repr(pair)
    assert "Paired differences in auuc, per person, on" in repr(compare(50.0 * y, two, treatment))
    assert repr(evaluate(y, {"one": scores["oracle"]}, treatment)).startswith("1 model on 3,000 rows")
    many = repr(evaluate(1e9 * y, two, treatment, metrics=["auuc"]))
    assert "e+" not in many


def test_a_small_sample_cannot_rank():
    y, scores, treatment = experiment(200)
    del scores["guess"]
    scores["almost"] = scores["oracle"] + 1e-3 * scores["noisy"]
    with pytest.warns(RankingWarning, match=r"too small to rank .* 200 rows give a difference .* rows like these"):
        evaluate(y, scores, treatment, random_state=0)
    with pytest.warns(RankingWarning, match=r"too small to rank"):
        compare(y, scores, treatment, random_state=0)
    with pytest.warns(RankingWarning, match=r"they rank these rows alike"):
        table = compare(y, {"a": scores["oracle"], "b": 2 * scores["oracle"]}, treatment, random_state=0)
    assert table["p_value"][0] == 1.0
    assert table["se"][0] == 0.0


def test_several_arms():
    rng = np.random.default_rng(1)
    treatment, y = rng.integers(0, 3, 900), rng.normal(size=900)
    scores = {"a": rng.normal(size=(900, 2)), "b": rng.normal(size=(900, 2))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)
        table = evaluate(y, scores, treatment, random_state=0)
    assert table["a"]["qini"].se > 0


def test_numbers_of_other_libraries_are_printed_as_they_come():
    rng = np.random.default_rng(0)
    score, arm = rng.normal(size=400), rng.integers(0, 2, 400)
    y = (rng.random(400) < 0.3 + 0.2 * arm * (score > 0)).astype(int)
    chosen = ["auuc", ("auuc", {"convention": "causalml"})]
    table = evaluate(y, {"one": score}, arm, metrics=chosen, random_state=0)
    ours, theirs = table["one"].values()
    assert f"{1000 * float(ours):.4g} [" in repr(table)
    assert f"{float(theirs):.4g} [" in repr(table)
    assert "with a zero of their own: auuc causalml" in repr(table)


def test_no_interval_gives_plain_numbers_and_no_warning():
    y, scores, treatment = experiment(200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table, pairs = (call(y, scores, treatment, interval=None) for call in (evaluate, compare))
    for name, score in scores.items():
        assert table[name]["auuc"] == auuc(y, score, treatment)
        assert type(table[name]["auuc"]) is float
    assert list(table.to_frame().columns) == ["model", "metric", "value"]
    assert "interval" not in repr(table)
    assert "[" not in repr(table)
    assert pairs.columns == ["model", "against", "difference"]
    deciles = calibration_table(y, scores["oracle"], treatment, interval=None)
    assert "se" not in deciles.columns
    assert "interval" not in repr(deciles)


def test_the_default_seed_is_the_same_every_time():
    y, scores, treatment = experiment(400)
    once, again = (auuc(y, scores["oracle"], treatment, interval=0.95) for _ in range(2))
    np.testing.assert_array_equal(once.samples, again.samples)
    np.testing.assert_array_equal(
        once.samples, auuc(y, scores["oracle"], treatment, interval=0.95, random_state=0).samples
    )
    assert (auuc(y, scores["oracle"], treatment, interval=0.95, random_state=None).samples != once.samples).any()


def test_frames_are_of_the_library_the_data_came_in():
    polars = pytest.importorskip("polars")
    y, scores, treatment = experiment(200)
    y, oracle = polars.Series(y), scores["oracle"]
    tables = [
        evaluate(y, {"oracle": oracle}, treatment, n_bootstrap=2),
        compare(y, scores, treatment, interval=None),
        calibration_table(y, oracle, treatment, n_bootstrap=2),
        uplift_curve(y, oracle, treatment),
        qini_curve(y, oracle, treatment, interval=0.9, n_bootstrap=2),
        toc_curve(y, oracle, treatment),
        lift_curve(y, oracle),
        modified_uplift_curve(y, oracle, treatment),
        average_curves([uplift_curve(y, oracle, treatment)] * 2, interval=0.9),
    ]
    for table in tables:
        assert isinstance(table.to_frame(), polars.DataFrame)


def test_replicates_of_groups_spread_as_those_of_rows(monkeypatch):
    """Arms of more than 65,536 rows are drawn in groups, and long rankings thinned: the errors stay what they are."""
    rng = np.random.default_rng(0)
    n = 150_000
    effect, treatment = rng.gamma(0.3, 0.1, n), rng.integers(0, 2, n)
    # Most succeed: an AUU in counts would show it if replicates of groups were allowed to differ in size.
    y = (rng.random(n) < np.minimum(1.0, 0.85 + effect * treatment)).astype(int)
    weight, score = rng.exponential(size=n), effect + rng.normal(0, 0.05, n)
    chosen = ["auuc", "autoc", "auu", ("uplift_at", {"k": 0.02}), ("qini", {"convention": "libuplift"})]
    for columns, asked in (({}, chosen), ({"sample_weight": weight}, ["auu", "auuc"])):
        found = []
        for most in (_strata._MOST_ROWS, n):
            monkeypatch.setattr(_strata, "_MOST_ROWS", most)
            monkeypatch.setattr(_statistic, "_LONG", 1 << 17 if most < n else n)
            models = {"a": score, "b": score + rng.normal(0, 0.1, n)}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RankingWarning)
                found.append(evaluate(y, models, treatment, metrics=asked, n_bootstrap=160, n_jobs=2, **columns))
            monkeypatch.undo()
        groups, rows = found
        for name in groups["a"]:
            assert groups["a"][name] == rows["a"][name]  # the number itself is of all rows, as they are
            assert groups["a"][name].se == pytest.approx(rows["a"][name].se, rel=0.3)  # each is known to 6%
            paired = [np.std(table["a"][name].samples - table["b"][name].samples) for table in found]
            assert paired[0] == pytest.approx(paired[1], rel=0.3)


def test_the_error_of_a_mean_of_very_many_rows():
    rng = np.random.default_rng(1)
    n = 300_000
    treatment = np.sort(rng.integers(0, 2, n))  # sorted data, and a trend: groups must not follow the order
    y = rng.normal(np.linspace(0, 3, n), 1.0)
    value = policy_value(y, np.ones(n, int), treatment, interval=0.95, n_bootstrap=1000)
    treated = y[treatment == 1]
    assert float(value) == pytest.approx(treated.mean())
    assert value.se == pytest.approx(treated.std() / np.sqrt(len(treated)), rel=0.1)
