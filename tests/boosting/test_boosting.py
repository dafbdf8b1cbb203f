"""Uplift boosting, against the equations and theorems of the paper, and bagging."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

import upturn as up
from naive import boosting as naive_boosting
from upturn import policy
from upturn.base import UpliftEstimator
from upturn.boosting import UpliftBagging, UpliftBoosting
from upturn.boosting._coefficients import bound_factor, coefficients
from upturn.meta import ClassTransformation, OneVsControl, TreatedOnly
from upturn.metrics import auuc
from upturn.trees import UpliftForest, UpliftTree

ALGORITHMS = ["adaboost", "balanced", "forgetting"]
ERROR = st.floats(0.01, 0.99)


def experiment(n=600, seed=0, share=0.5):
    rng = np.random.default_rng(seed)
    X, treatment = rng.normal(size=(n, 3)), (rng.random(n) < share).astype(int)
    effect = 0.25 * np.sign(X[:, 0]) + 0.15 * np.sign(X[:, 1] * X[:, 2])
    y = (rng.random(n) < 0.5 + effect * (treatment - 0.5)).astype(int)
    return X, y, treatment


def fitted(algorithm, n_estimators=25, **options):
    X, y, treatment = experiment()
    model = UpliftBoosting(algorithm=algorithm, n_estimators=n_estimators, random_state=0, **options).fit(
        X, y, treatment
    )
    return model, X, y, treatment


def until_restart(history):
    """The rounds before the first restart."""
    stops = np.flatnonzero(history["restarted"])
    return history[: stops[0]] if len(stops) else history


# ------------------------------------------------------------------------------------------------ the paper


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_algorithm_1(algorithm):
    model, X, y, treatment = fitted(algorithm)
    rounds = until_restart(model.history_)
    assert len(rounds) >= 3
    decisions = [(member.recommend(X) == 1).astype(int) for member in model.estimators_[: len(rounds)]]
    replay = naive_boosting.uplift_boosting(decisions, y, treatment == 1, algorithm, np.ones(len(y)))
    for found, (errors, shares, betas, _) in zip(rounds, replay, strict=True):
        assert (found["error_treatment"], found["error_control"]) == pytest.approx(errors, rel=1e-9)
        assert (found["weight_treatment"], found["weight_control"]) == pytest.approx(shares, rel=1e-9)
        assert (found["beta_treatment"], found["beta_control"]) == pytest.approx(betas, rel=1e-9)
        assert found["beta"] == pytest.approx(min(betas), rel=1e-9)


@pytest.mark.parametrize("algorithm", ["balanced", "forgetting"])
def test_equation_6_balance_after_every_round(algorithm):
    model, *_ = fitted(algorithm, n_estimators=60)
    np.testing.assert_allclose(model.history_["weight_treatment"], 0.5, rtol=1e-12)
    assert model.imbalance_ == pytest.approx(1)


def test_adaboost_need_not_be_balanced():
    model, *_ = fitted("adaboost", n_estimators=60)
    assert model.imbalance_ > 1.01


@pytest.mark.parametrize("algorithm", ["adaboost", "forgetting"])
def test_equation_9_the_last_member_is_forgotten(algorithm):
    model, X, y, treatment = fitted(algorithm)
    rounds = until_restart(model.history_)
    decisions = [(member.recommend(X) == 1).astype(int) for member in model.estimators_[: len(rounds)]]
    replay = naive_boosting.uplift_boosting(decisions, y, treatment == 1, algorithm, np.ones(len(y)))
    for h, (_, _, _, weights) in zip(decisions, replay, strict=True):
        wrong = np.where(treatment == 1, h != y, h == y)
        assert weights[wrong].sum() / weights.sum() == pytest.approx(0.5, abs=1e-12)


def test_balanced_boosting_does_not_forget_in_general():
    e_t, e_c = 0.3, 0.4
    b_t, b_c = coefficients("balanced", e_t, e_c, 0.5, 0.5)
    assert (1 - e_t) * b_t + (1 - e_c) * b_c != pytest.approx(e_t + e_c)


GRID = [0.02, 0.15, 0.3, 0.45, 0.499, 0.5, 0.501, 0.55, 0.7, 0.85, 0.98]


@pytest.mark.parametrize("e_t", GRID)
@pytest.mark.parametrize("e_c", GRID)
def test_theorem_2_minimises_the_bound_20(e_t, e_c):
    beta_t, beta_c = coefficients("balanced", e_t, e_c, 0.5, 0.5)
    grid = np.concatenate([np.geomspace(1e-4, 1e4, 20_001), [beta_c]])
    values = naive_boosting.bound_20(grid, e_t, e_c)
    reached = naive_boosting.bound_20(np.array(beta_c), e_t, e_c)
    assert reached <= values.min() + 1e-9
    assert bound_factor(e_t, e_c, 0.5, 0.5, beta_t, beta_c) == pytest.approx(float(reached), rel=1e-9)
    # Equation (22): AdaBoost's factor for the error nearer to one half, or nothing gained on opposite sides of it.
    if (e_t - 0.5) * (e_c - 0.5) > 0:
        nearer = min(e_t, e_c, key=lambda e: abs(e - 0.5))
        assert reached == pytest.approx(2 * np.sqrt(nearer * (1 - nearer)), rel=1e-9)
    else:
        assert (beta_t, beta_c) == (1, 1)
        assert reached == pytest.approx(1, rel=1e-12)


@given(e_t=ERROR, e_c=ERROR, p_t=st.floats(0.05, 0.95))
def test_equation_18_minimises_16(e_t, e_c, p_t):
    beta, same = coefficients("adaboost", e_t, e_c, p_t, 1 - p_t)
    assert beta == same
    best = bound_factor(e_t, e_c, p_t, 1 - p_t, beta, beta)
    error = p_t * e_t + (1 - p_t) * e_c
    assert best == pytest.approx(2 * np.sqrt(error * (1 - error)), rel=1e-9)
    for b_t in beta * np.geomspace(0.2, 5, 9):
        for b_c in beta * np.geomspace(0.2, 5, 9):
            assert bound_factor(e_t, e_c, p_t, 1 - p_t, b_t, b_c) >= best - 1e-12


@given(e_t=ERROR, e_c=ERROR)
def test_equations_7_and_23_of_balanced_forgetting(e_t, e_c):
    b_t, b_c = coefficients("forgetting", e_t, e_c, 0.5, 0.5)
    assert e_t + (1 - e_t) * b_t == pytest.approx(e_c + (1 - e_c) * b_c, rel=1e-9)
    assert (1 - e_t) * b_t + (1 - e_c) * b_c == pytest.approx(e_t + e_c, rel=1e-9)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_equation_15_bounds_the_training_error(algorithm):
    model, X, y, treatment = fitted(algorithm)
    rounds = until_restart(model.history_)
    first = np.ones(len(y))
    if algorithm != "adaboost":
        first = np.where(treatment == 1, 0.5 / np.sum(treatment == 1), 0.5 / np.sum(treatment == 0))
    for bound, score in zip(rounds["bound"], model.staged_predict(X), strict=False):
        h = (score >= 0.5 - 1e-12).astype(int)
        wrong = np.where(treatment == 1, h != y, h == y)
        assert first[wrong].sum() / first.sum() <= bound + 1e-12
    if algorithm != "forgetting":
        assert (np.diff(rounds["bound"]) <= 1e-12).all()
        assert rounds["bound"][0] <= 1
    assert np.isnan(model.history_["bound"][len(rounds) :]).all()


def test_adaboost_equals_discrete_adaboost_on_the_transformed_class():
    model, X, y, treatment = fitted("adaboost")
    rounds = until_restart(model.history_)
    decisions = [(member.recommend(X) == 1).astype(int) for member in model.estimators_[: len(rounds)]]
    labels = np.where(treatment == 1, y, 1 - y)
    for found, (error, beta, _) in zip(rounds, naive_boosting.discrete_adaboost(decisions, labels), strict=True):
        combined = (
            found["weight_treatment"] * found["error_treatment"] + found["weight_control"] * found["error_control"]
        )
        assert combined == pytest.approx(error, rel=1e-9)
        assert found["beta"] == pytest.approx(beta, rel=1e-9)


def test_theorem_1_half_an_error_is_no_gain():
    # Equal shares of h = 1 in both groups and equal weights: 1 - 2 error = the gain of equation (10).
    rng = np.random.default_rng(0)
    h = np.tile([1, 0, 1, 1], 50)
    treated, y = np.repeat([True, False], 100), rng.integers(0, 2, 200)
    weights = np.full(200, 1 / 200)
    (e_t, e_c), _, _, _ = next(naive_boosting.uplift_boosting([h], y, treated, "balanced", weights))
    rate = {(a, g): y[(h == a) & (treated == g)].mean() for a in (0, 1) for g in (True, False)}
    gain = 0.75 * (rate[1, True] - rate[1, False]) + 0.25 * (rate[0, False] - rate[0, True])
    assert 1 - (e_t + e_c) == pytest.approx(gain)


# ------------------------------------------------------------------------------------------------ behaviour


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_score_is_the_weighted_vote_and_recommend_its_half(algorithm):
    model, X, *_ = fitted(algorithm, ties="none")
    voices = np.log(1 / model.betas_)
    votes = np.array([member.recommend(X) == 1 for member in model.estimators_])
    np.testing.assert_allclose(model.predict(X), voices @ votes / voices.sum(), atol=1e-12)
    np.testing.assert_array_equal(model.recommend(X) == 1, voices @ votes >= voices.sum() / 2 - 1e-9)


def leaf_effects_one_by_one(member, X, y, treatment, weight, asked):
    """Effect in the leaf of every asked row, over the training rows in it; the average effect where a group is absent."""

    def effect(rows):
        means = [np.average(y[rows & (treatment == t)], weights=weight[rows & (treatment == t)]) for t in (0, 1)]
        return means[1] - means[0]

    leaves, found = member.apply(X).ravel(), {}
    for leaf in np.unique(leaves):
        rows = (leaves == leaf) & (weight > 0)
        both = all((rows & (treatment == t)).any() for t in (0, 1))
        found[leaf] = effect(rows if both else weight > 0)
    return np.array([found[leaf] for leaf in member.apply(asked).ravel()])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("height", [1, 4])
def test_tied_votes_are_ranked_by_the_leaves_own_effects(algorithm, height, weighted):
    X, y, treatment = experiment(500)
    weight = np.random.default_rng(5).integers(0, 3, 500).astype(float) if weighted else np.ones(500)
    tree = UpliftTree(max_depth=height, min_samples_split=2, min_samples_leaf=1, min_samples_arm=1)
    model = UpliftBoosting(tree, algorithm=algorithm, n_estimators=12, random_state=0)
    model.fit(X, y, treatment, sample_weight=weight if weighted else None)
    asked = experiment(300, seed=9)[0]
    voices = np.log(1 / model.betas_)
    votes = np.array([member.recommend(asked) == 1 for member in model.estimators_])
    effects = np.array(
        [leaf_effects_one_by_one(member, X, y, treatment, weight, asked) for member in model.estimators_]
    )
    expected = voices @ (votes + 1e-6 * effects) / voices.sum()
    np.testing.assert_allclose(model.predict(asked), expected, rtol=0, atol=1e-14)
    assert np.ptp(voices @ effects) > 0


@pytest.mark.parametrize("base", [None, ClassTransformation()], ids=["tree", "logistic"])
def test_ties_change_neither_the_members_nor_whom_to_treat(base):
    X, y, treatment = experiment(800)
    plain, ranked = (
        UpliftBoosting(base, n_estimators=9, ties=ties, random_state=0).fit(X, y, treatment)
        for ties in ("none", "effect")
    )
    assert plain.history_.tobytes() == ranked.history_.tobytes()
    np.testing.assert_array_equal(plain.recommend(X), ranked.recommend(X))
    assert 0 < np.abs(plain.predict(X) - ranked.predict(X)).max() <= 1e-6
    assert len(np.unique(ranked.predict(X))) >= len(np.unique(plain.predict(X)))


def test_a_base_without_leaves_ranks_ties_by_what_it_predicts():
    X, y, treatment = experiment(400)
    model = UpliftBoosting(ClassTransformation(), n_estimators=6, random_state=0).fit(X, y, treatment)
    voices = np.log(1 / model.betas_)
    votes = np.array([member.recommend(X) == 1 for member in model.estimators_])
    effects = np.array([member.predict(X) for member in model.estimators_])
    expected = voices @ votes / voices.sum() + 1e-6 * np.clip(voices @ effects / voices.sum(), -1, 1)
    np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-13)
    *_, last = model.staged_predict(X)
    np.testing.assert_array_equal(model.predict(X), last)


def rare(n=30_000, seed=0):
    """Few successes, and an effect for those with two properties: stumps vote in a handful of ways."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, n_levels, n) for n_levels in (4, 5, 2, 4)]).astype(float)
    treatment, effect = rng.integers(0, 2, n), 0.03 * (X[:, 2] == 1) * (X[:, 3] < 2)
    return X, (rng.random(n) < 0.01 + effect * treatment).astype(int), treatment, effect


STUMP = UpliftTree(max_depth=1, min_samples_split=2, min_samples_leaf=1, min_samples_arm=1)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_collapsed_ensemble_says_so_and_its_remedy_works(algorithm):
    X, y, treatment, _ = rare()
    model = UpliftBoosting(STUMP, algorithm=algorithm, random_state=0)
    with pytest.warns(UserWarning, match=r"members has collapsed: .* rows take only \d different value") as caught:
        model.fit(X, y, treatment)
    advice = str(caught[0].message)
    assert "algorithm='adaboost' with estimator=UpliftTree(max_depth=4)" in advice
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        UpliftBoosting(UpliftTree(max_depth=4), algorithm="adaboost", random_state=0).fit(X, y, treatment)
    X_new, *_, effect_new = rare(seed=1)
    assert np.corrcoef(model.predict(X_new).argsort().argsort(), effect_new)[0, 1] > 0.4


def test_one_decision_for_all_is_told():
    X, _, treatment = experiment(2000)
    y = (np.random.default_rng(0).random(2000) < 0.2 + treatment * (0.3 + 0.2 * (X[:, 0] > 0))).astype(int)
    model = UpliftBoosting(UpliftTree(max_depth=3), algorithm="balanced", random_state=0)
    with pytest.warns(UserWarning, match=r"the vote is for treatment in every row.*upturn\.policy\.target"):
        model.fit(X, y, treatment)
    assert (model.recommend(X) == 1).all()
    assert policy.target(model.predict(X), fraction=0.3).n_treated == 600


def test_a_table_with_few_different_rows_is_no_collapse():
    rng = np.random.default_rng(0)
    X, treatment = rng.integers(0, 2, (1000, 2)).astype(float), rng.integers(0, 2, 1000)
    y = rng.random(1000) < 0.5 + 0.3 * treatment * np.where(X[:, 0] > 0, 1, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = UpliftBoosting(STUMP, n_estimators=15, random_state=0).fit(X, y, treatment)
    assert len(np.unique(model.predict(X))) <= 4


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_boosting_learns_what_a_stump_cannot(algorithm):
    X, y, treatment = experiment(4000, seed=1)
    X_new, y_new, t_new = experiment(8000, seed=2)
    base = UpliftTree(max_depth=3)
    single = auuc(y_new, UpliftTree(max_depth=1).fit(X, y, treatment).predict(X_new), t_new)
    model = UpliftBoosting(base, algorithm=algorithm, n_estimators=30, random_state=0).fit(X, y, treatment)
    assert model.score(X_new, y_new, t_new) > single


@pytest.mark.parametrize("average", ["score", "vote"])
def test_stages_of_bagging_are_smaller_bags(average):
    X, y, treatment = experiment(400)
    model = UpliftBagging(n_estimators=5, average=average, random_state=0).fit(X, y, treatment)
    small = UpliftBagging(n_estimators=3, average=average, random_state=0).fit(X, y, treatment)
    stages = list(model.staged_predict(X))
    assert len(stages) == 5
    np.testing.assert_array_equal(stages[2], small.predict(X))
    assert model.staged_score(X, y, treatment)[-1] == model.score(X, y, treatment)


def test_staged_scores_end_at_the_score():
    model, X, y, treatment = fitted("adaboost")
    stages = list(model.staged_predict(X))
    assert len(stages) == len(model.estimators_) == len(model.betas_)
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    scores = model.staged_score(X, y, treatment)
    assert scores[-1] == model.score(X, y, treatment)
    assert scores[0] == auuc(y, stages[0], treatment)


def test_any_weighted_base_and_raw_tables():
    import pandas as pd

    X, y, treatment = experiment()
    table = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "high", "low"), "c": X[:, 2]})
    table.loc[::7, "c"] = np.nan
    for base in (ClassTransformation(), UpliftTree(max_depth=2)):
        model = UpliftBoosting(base, n_estimators=5, random_state=0).fit(table, y, treatment)
        assert model.score(table, y, treatment) > 0


def test_weights_equal_repeated_rows():
    X, y, treatment = experiment(300)
    X = X.round(1)
    times = np.random.default_rng(1).integers(1, 4, 300)
    rows = np.repeat(np.arange(300), times)
    weighted = UpliftBoosting(n_estimators=8, random_state=0).fit(X, y, treatment, times)
    repeated = UpliftBoosting(n_estimators=8, random_state=0).fit(X[rows], y[rows], treatment[rows])
    before = len(until_restart(weighted.history_))
    np.testing.assert_allclose(weighted.betas_[:before], repeated.betas_[:before], rtol=1e-6)


def test_same_seed_same_bits():
    X, y, treatment = experiment(400, share=0.8)
    for make in (
        lambda: UpliftBoosting(UpliftTree(max_depth=2), algorithm="forgetting", n_estimators=40, random_state=3),
        lambda: UpliftBagging(n_estimators=6, random_state=3),
    ):
        once, again = make().fit(X, y, treatment), make().fit(X, y, treatment)
        np.testing.assert_array_equal(once.predict(X), again.predict(X))
    threaded = UpliftBagging(n_estimators=6, random_state=3, n_jobs=2).fit(X, y, treatment)
    np.testing.assert_array_equal(threaded.predict(X), again.predict(X))


# ------------------------------------------------------------------------------------------------ degenerate rounds


class Fixed(UpliftEstimator):
    """A base that always gives the same answer."""

    def __init__(self, answer=1.0, control=None):
        self.answer = answer
        self.control = control

    def _fit(self, data):
        pass

    def _predict(self, X):
        return np.full((len(X), 1), self.answer)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("restart", ["combined", "strict"])
@pytest.mark.parametrize("answer", [1.0, 0.0, -1.0])
def test_a_base_that_always_says_the_same(algorithm, restart, answer):
    X, y, treatment = experiment()
    y = np.where(treatment == 1, y, 0)  # nobody succeeds in control
    model = UpliftBoosting(Fixed(answer), algorithm=algorithm, restart=restart, n_estimators=9, random_state=0)
    with pytest.warns(UserWarning, match="the ensemble is empty and its score constant: try"):
        model.fit(X, y, treatment)
    assert model.n_restarts_ == 9
    assert set(model.predict(X)) == {1.0}  # treatment helps on average
    assert (model.recommend(X) == 1).all()


def test_doubts_are_told_by_the_outermost_model_that_has_them():
    """A member of several arms is the user's own model, and speaks; one that is calibrated is judged by the calibrator."""
    X, y, treatment = experiment()
    y = np.where(treatment == 1, y, 0)
    model = UpliftBoosting(Fixed(1.0), n_estimators=9, random_state=0)
    with pytest.warns(UserWarning, match="the ensemble is empty and its score constant: try"):
        OneVsControl(model).fit(X, y, treatment)
    with pytest.warns(UserWarning, match="UpliftCalibrator predicts the same for everybody") as told:
        policy.UpliftCalibrator(model, cv=2, random_state=0).fit(X, y, treatment)
    assert len(told) == 1
    with pytest.warns(UserWarning, match=r"3 of 3 members: none of the 9 rounds"):
        UpliftBagging(model, n_estimators=3, random_state=0).fit(X, y, treatment)


@pytest.mark.filterwarnings("ignore:none of the 9 rounds")
@pytest.mark.filterwarnings("ignore:the base model of round 1 makes no error")
@pytest.mark.filterwarnings("ignore:the ensemble of . members has collapsed")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("restart", ["combined", "strict"])
@pytest.mark.parametrize(
    "outcome",
    [
        lambda X, t: (t == 1) == (X[:, 0] > 0),  # a perfect stump: no error at all
        lambda X, t: np.where(t == 1, X[:, 0] > 0, 0),  # one class in control
        lambda X, t: np.where(t == 1, 1, X[:, 0] > 0),  # one class in treatment
        lambda X, t: t == 1,  # one class in each
    ],
)
def test_degenerate_outcomes_never_give_nan(algorithm, restart, outcome):
    X, _, treatment = experiment(200)
    y = np.asarray(outcome(X, treatment)).astype(int)
    model = UpliftBoosting(algorithm=algorithm, restart=restart, n_estimators=9, random_state=0).fit(X, y, treatment)
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.history_["error_treatment"]).all()
    assert ((model.betas_ > 0) & (model.betas_ < 1)).all()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"algorithm": "gentle"}, ValueError, "algorithm='gentle': expected 'adaboost', 'balanced' or 'forgetting'"),
        ({"restart": "never"}, ValueError, "restart='never': expected 'combined' or 'strict'"),
        ({"ties": "random"}, ValueError, "ties='random': expected 'effect' or 'none'"),
        ({"n_estimators": 0}, ValueError, "n_estimators=0: expected a whole number of at least 1"),
        ({"n_estimators": 2.5}, ValueError, "n_estimators=2.5"),
        ({"estimator": object()}, TypeError, r"is not an uplift model: .*ClassTransformation\(classifier\)"),
    ],
)
def test_bad_parameters(change, error, message):
    X, y, treatment = experiment(50)
    with pytest.raises(error, match=message):
        UpliftBoosting(**change).fit(X, y, treatment)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"average": "median"}, "average='median': expected 'score' or 'vote'"),
        ({"n_estimators": True}, "n_estimators=True: expected a whole number of at least 1"),
        ({"n_jobs": 0}, "n_jobs=0: expected None, a number of threads"),
        ({"estimator": UpliftBoosting(restart="never")}, "restart='never': expected 'combined' or 'strict'"),
    ],
)
def test_bad_parameters_of_bagging_and_of_its_base(change, message):
    with pytest.raises(ValueError, match=message):
        UpliftBagging(**change).fit(*experiment(50))


def test_refusals_say_what_to_use_instead():
    X, y, treatment = experiment(60)
    with pytest.raises(ValueError, match=r"3 distinct values.*UpliftForest"):
        UpliftBoosting().fit(X, np.arange(60) % 3, treatment)
    with pytest.raises(ValueError, match=r"2 arms .*UpliftForest"):
        UpliftBoosting().fit(X, y, np.arange(60) % 3)


@pytest.mark.parametrize("algorithm", ["adaboost", "balanced", "forgetting"])
def test_a_base_without_an_error_is_kept(algorithm):
    X, _, treatment = experiment(300)
    y = (treatment == 1) == (X[:, 0] > 0)
    with pytest.warns(UserWarning, match="round 1 makes no error on the training rows"):
        model = UpliftBoosting(algorithm=algorithm, n_estimators=5, random_state=0).fit(X, y, treatment)
    assert len(model.estimators_) == len(model.betas_) == 1
    np.testing.assert_array_equal(model.recommend(X), (X[:, 0] > 0).astype(int))


def test_scores_without_a_zero_make_no_decisions():
    X, y, treatment = experiment(200)
    for model in (UpliftBoosting(TreatedOnly()), UpliftBagging(TreatedOnly(), average="vote")):
        with pytest.raises(ValueError, match="scores of TreatedOnly rank people but have no zero"):
            model.fit(X, y, treatment)
    bag = UpliftBagging(TreatedOnly(random_state=0), n_estimators=3, random_state=0).fit(X, y, treatment)
    assert np.isfinite(bag.predict(X)).all()
    with pytest.raises(ValueError, match="no zero"):
        bag.recommend(X)


def test_staged_scores_want_an_outcome_per_row():
    model, X, y, treatment = fitted("adaboost")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.staged_score(X[:50], y, treatment)


def test_models_inside_the_base_have_seeds_too():
    X, y, treatment = experiment(200)
    base = ClassTransformation(RandomForestClassifier(3))
    for ensemble in (UpliftBoosting, UpliftBagging):
        first, second = (ensemble(base, n_estimators=3, random_state=0).fit(X, y, treatment).predict(X) for _ in "ab")
        np.testing.assert_array_equal(first, second)


# ------------------------------------------------------------------------------------------------ bagging


@pytest.mark.parametrize("average", ["score", "vote"])
def test_bagging_follows_the_bases_own_rule(average):
    X, y, treatment = experiment(400)
    base = UpliftBoosting(n_estimators=5, random_state=0)
    model = UpliftBagging(base, n_estimators=5, average=average, random_state=0).fit(X, y, treatment)
    votes = np.mean([member.recommend(X) == 1 for member in model.estimators_], axis=0)
    np.testing.assert_array_equal(model.recommend(X) == 1, votes > 0.5)
    assert 0 < votes.mean() < 1
    if average == "vote":
        np.testing.assert_allclose(model.predict(X), votes)


def test_bags_are_drawn_from_rows_that_count():
    X, y, treatment = experiment(400)
    weight = np.zeros(400)
    weight[np.r_[np.flatnonzero(treatment == 0)[:4], np.flatnonzero(treatment == 1)[:4]]] = 1.0
    model = UpliftBagging(n_estimators=11, random_state=0).fit(X, y, treatment, sample_weight=weight)
    assert np.isfinite(model.predict(X)).all()


def test_bagging_averages_its_members():
    X, y, treatment = experiment()
    for average in ("score", "vote"):
        model = UpliftBagging(n_estimators=7, average=average, random_state=0).fit(X, y, treatment)
        effects = np.array([member.predict(X) for member in model.estimators_])
        expected = effects if average == "score" else effects > 0
        np.testing.assert_allclose(model.predict(X), expected.mean(axis=0), atol=1e-12)
    assert (model.recommend(X) == (model.predict(X) > 0.5)).all()


def test_out_of_bag_predictions_come_from_members_that_did_not_see_the_row():
    from upturn.kernels.resampling import resample, rows_by_stratum

    X, y, treatment = experiment(200)
    model = UpliftBagging(n_estimators=8, random_state=4).fit(X, y, treatment)
    draws, counts = rows_by_stratum(treatment.astype(np.uint8), 2), np.empty(200, np.int32)
    effects = np.array([member.predict(X) for member in model.estimators_])
    unseen = np.zeros((8, 200), bool)
    for m in range(8):
        resample(np.uint64(4), m, *draws, counts)
        unseen[m] = counts == 0
    with np.errstate(invalid="ignore"):
        expected = (effects * unseen).sum(axis=0) / unseen.sum(axis=0)
    np.testing.assert_allclose(model.oob_prediction_, expected, atol=1e-12)


def test_bagging_takes_what_its_base_takes():
    rng = np.random.default_rng(0)
    X, treatment = rng.normal(size=(600, 2)), rng.choice(["control", "a", "b"], 600)
    y = rng.normal(size=600) + X[:, 0] * (treatment == "a")
    model = UpliftBagging(UpliftTree(max_depth=2), n_estimators=5, random_state=0).fit(X, y, treatment)
    assert model.predict(X).shape == model.oob_prediction_.shape == (600, 2)
    assert set(model.recommend(X)) <= {"control", "a", "b"}
    with pytest.raises(ValueError, match="this model needs exactly two"):
        UpliftBagging(ClassTransformation()).fit(X, y, treatment == "a")


@pytest.mark.parametrize("model", [UpliftBoosting(n_estimators=12, random_state=0), UpliftBagging(n_estimators=4)])
@pytest.mark.parametrize("base", [None, ClassTransformation()], ids=["tree", "logistic"])
def test_saved_state(model, base, tmp_path):
    from sklearn.base import clone

    X, y, treatment = experiment(300)
    model = clone(model).set_params(estimator=base).fit(X, y, treatment)
    model.save(tmp_path / "model.upturn")
    loaded = up.load(tmp_path / "model.upturn")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.recommend(X), model.recommend(X))


# ------------------------------------------------------------------------------------------------ members together


def raw_experiment(n=500, n_arms=1, seed=0):
    import pandas as pd

    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    X["d"] = rng.choice(["red", "green", "blue", None], n)
    X.loc[::6, "b"] = np.nan
    treatment = rng.integers(0, n_arms + 1, n)
    effect = 0.25 * np.sign(X["a"]) - 0.3 * (X["d"] == "red") * (treatment == n_arms)
    return X, (rng.random(n) < 0.5 + effect * (treatment > 0)).astype(int), treatment


def one_by_one(model, X):
    """The members' opinions added up as they come, each from its own public prediction."""
    total, heard, seen = 0.0, 0.0, []
    for member, voice in zip(model.estimators_, model._voices(), strict=True):
        if getattr(model, "average", "vote") == "score":
            opinion = member.predict(X)
        else:
            choice = np.asarray(member.recommend(X))
            opinion = np.column_stack([choice == arm for arm in model.arms_]).astype(float)
            opinion = opinion[:, 0] if len(model.arms_) == 1 else opinion
            if isinstance(model, UpliftBoosting):
                opinion += (
                    1e-6 * model._effects[len(seen)][member.nodes_.leaves(member._prepare_rows(member._encode(X)))[0]]
                )
                seen.append(member)
        total, heard = total + voice * opinion, heard + voice
    return total / heard


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("n_arms", [1, 2])
@pytest.mark.parametrize("average", ["score", "vote"])
def test_trees_walked_together_say_what_they_say_apart(average, n_arms, n_jobs):
    X, y, treatment = raw_experiment(n_arms=n_arms)
    model = UpliftBagging(UpliftTree(max_depth=4), n_estimators=9, average=average, random_state=0, n_jobs=n_jobs)
    model.fit(X, y, treatment)
    assert any((member.nodes_.category_set >= 0).any() for member in model.estimators_)
    np.testing.assert_array_equal(model.predict(X), one_by_one(model, X))
    *_, last = model.staged_predict(X)
    np.testing.assert_array_equal(model.predict(X), last)


@pytest.mark.parametrize("height", [1, 3])
def test_boosted_trees_walked_together_say_what_they_say_apart(height):
    X, y, treatment = raw_experiment(2000)
    model = UpliftBoosting(UpliftTree(max_depth=height), n_estimators=15, random_state=0).fit(X, y, treatment)
    assert len(model.estimators_) > 3
    np.testing.assert_array_equal(model.predict(X), one_by_one(model, X))
    *_, last = model.staged_predict(X)
    np.testing.assert_array_equal(model.predict(X), last)


@pytest.mark.parametrize("average", ["score", "vote"])
def test_members_of_two_fits_may_be_put_together(average, tmp_path):
    first, second = (
        UpliftBagging(n_estimators=4, average=average, random_state=seed).fit(*raw_experiment(seed=seed))
        for seed in (1, 2)
    )
    assert first.estimators_[0].bins_ is not second.estimators_[0].bins_
    first.estimators_ = first.estimators_[:2] + second.estimators_ + first.estimators_[2:]
    X, *_ = raw_experiment(seed=3)
    np.testing.assert_array_equal(first.predict(X), one_by_one(first, X))
    *_, last = first.staged_predict(X)
    np.testing.assert_array_equal(first.predict(X), last)
    first.save(tmp_path / "model.upturn")
    np.testing.assert_array_equal(up.load(tmp_path / "model.upturn").predict(X), first.predict(X))


@pytest.mark.parametrize("ensemble", [UpliftBagging, UpliftBoosting])
def test_a_file_holds_the_bins_and_the_nodes_once(ensemble, tmp_path):
    X, y, treatment = experiment(400)
    base = UpliftTree(max_depth=3, min_samples_arm=1)
    model = ensemble(base, n_estimators=20, random_state=0).fit(X, y, treatment)
    forest = UpliftForest(20, max_depth=3, min_samples_arm=1, max_features=None, random_state=0).fit(X, y, treatment)
    for name, one in (("model", model), ("forest", forest)):
        one.save(tmp_path / name)
    assert (tmp_path / "model").stat().st_size < 1.5 * (tmp_path / "forest").stat().st_size
    loaded = up.load(tmp_path / "model")
    assert len(loaded.estimators_) == len(model.estimators_) > 5
    assert all(member.bins_ is loaded.estimators_[0].bins_ for member in loaded.estimators_)
    for member, again in zip(model.estimators_, loaded.estimators_, strict=True):
        np.testing.assert_array_equal(member.predict(X), again.predict(X))
        assert member.export_text() == again.export_text()


def test_forests_and_ensembles_can_be_bagged():
    X, y, treatment = raw_experiment(300)
    for base in (UpliftForest(3, max_depth=2), UpliftBoosting(n_estimators=4)):
        for average in ("score", "vote"):
            model = UpliftBagging(base, n_estimators=3, average=average, random_state=0).fit(X, y, treatment)
            np.testing.assert_array_equal(model.predict(X), one_by_one(model, X))


def test_importances_are_the_members_mean():
    X, y, treatment = experiment(1500)
    bag = UpliftBagging(n_estimators=5, random_state=0).fit(X, y, treatment)
    apart = np.array([member.feature_importances_ for member in bag.estimators_])
    np.testing.assert_allclose(bag.feature_importances_, apart.mean(axis=0), rtol=1e-12)
    boosted = UpliftBoosting(UpliftTree(max_depth=3), n_estimators=9, random_state=0).fit(X, y, treatment)
    apart = np.array([member.feature_importances_ for member in boosted.estimators_])
    voices = np.log(1 / boosted.betas_)
    assert np.ptp(voices) > 0
    np.testing.assert_allclose(boosted.feature_importances_, voices @ apart / voices.sum(), rtol=1e-12)
    assert bag.feature_importances_.argmax() == 0


def test_importances_of_an_empty_ensemble_and_of_members_without_any():
    X, y, treatment = experiment()
    with pytest.warns(UserWarning, match="the ensemble is empty"):
        empty = UpliftBoosting(Fixed(1.0), n_estimators=3, random_state=0).fit(X, y, treatment)
    assert empty.feature_importances_.tolist() == [0.0, 0.0, 0.0]
    assert not hasattr(UpliftBagging(), "feature_importances_")
    assert not hasattr(UpliftBagging(Fixed(1.0), n_estimators=2).fit(X, y, treatment), "feature_importances_")


@pytest.mark.parametrize("ensemble", [UpliftBagging, UpliftBoosting])
@pytest.mark.parametrize("base", [None, ClassTransformation()], ids=["tree", "logistic"])
def test_float32_is_taken_as_the_base_takes_it(ensemble, base):
    X, y, treatment = experiment(400)
    single = X.astype(np.float32)
    model, same = (
        ensemble(base, n_estimators=5, random_state=0).fit(matrix, y, treatment)
        for matrix in (single, single.astype(np.float64))
    )
    assert model._encode(single).dtype == (np.float32 if base is None else np.float64)
    np.testing.assert_array_equal(model.predict(single), same.predict(single.astype(np.float64)))
    np.testing.assert_array_equal(model.recommend(single), same.recommend(single.astype(np.float64)))
