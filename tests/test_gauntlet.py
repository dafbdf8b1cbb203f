"""A small part of the stranger's gauntlet (``experiments/gauntlet``), what it found, and its verdicts."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "experiments" / "gauntlet"))
import run
import tables

from upturn.meta import ClassTransformation, SLearner, TLearner, XLearner
from upturn.policy import UpliftCalibrator
from upturn.svm import DifferentialSVM, UpliftSVM
from upturn.trees import UpliftForest

FAST = ("UpliftTree", "UpliftForest", "ClassTransformation", "SLearner", "TLearner", "UpliftSVM", "TwoCostSVM")


@pytest.mark.parametrize("table", ["60 rows", "missing tells", "0 and 1 only"])
@pytest.mark.parametrize("name", FAST)
def test_models_rank_better_than_random(table, name):
    fits = [run.one(table, name, seed) for seed in range(3)]
    assert run.verdict(fits) == "passed", fits


def test_committed_results_hold_no_failure():
    """Every model either passes every table, or says why it cannot; it seldom says so where it is easy."""
    groups = run.grouped(run.read_results())
    asked = {(table, name) for table in tables.TABLES for name in run.MODELS if name not in run.SLOW}
    assert asked <= set(groups)
    assert not {key: said for key, group in groups.items() if (said := run.verdict(group)) in run.BAD}
    easy = [fit for (table, _), group in groups.items() if table in tables.EASY for fit in group if "error" not in fit]
    assert sum(bool(fit["warnings"]) for fit in easy) <= 0.05 * len(easy)


def fit_of(rank, oracle=9.0, warnings=(), distinct=50):
    return {"rank": rank, "oracle": oracle, "warnings": list(warnings), "distinct": distinct}


def test_verdicts():
    good, blind = [fit_of(0.5), fit_of(0.6)], [fit_of(0.1), fit_of(-0.1)]
    assert run.verdict(good) == "passed"
    assert run.verdict(blind) == "FAILED"
    assert run.verdict([one | {"oracle": 1.0} for one in blind]) == "unseen"
    assert run.verdict([one | {"warnings": ["UserWarning: why"]} for one in blind]) == "warned"
    assert run.verdict([*good, fit_of(0.0, distinct=1)]) == "SILENT CONSTANT"
    assert run.verdict([*good, fit_of(0.5, warnings=["ConvergenceWarning: no"])]) == "NOT CONVERGED"
    refusal = {"error": "ValueError: two outcomes", "ours": True, "warnings": [], "oracle": 9.0}
    assert run.verdict([refusal, refusal]) == "refused"
    assert run.verdict([refusal, refusal | {"ours": False}]) == "raw error"


# ------------------------------------------------------------------------------------- what it found


def constant_features(n=120):
    rng = np.random.default_rng(0)
    return np.ones((n, 2)), rng.normal(size=n), np.arange(n) % 2


@pytest.mark.parametrize("model", [SLearner(), TLearner(), XLearner()], ids=lambda model: type(model).__name__)
def test_a_learner_that_tells_nobody_apart_says_so(model):
    with pytest.warns(UserWarning, match=f"{type(model).__name__} predicts the same for everybody.*UpliftForest"):
        model.fit(*constant_features())


def test_a_calibrator_that_tells_nobody_apart_says_why():
    with pytest.warns(UserWarning, match="UpliftCalibrator predicts the same for everybody: TLearner tells nobody"):
        UpliftCalibrator(TLearner(random_state=0), random_state=0).fit(*constant_features())
    made = tables.TABLES["plain"](np.random.default_rng(0))
    wrong = ClassTransformation().fit(made.X[:2000], 1 - made.y[:2000], made.t[:2000])  # ranks the wrong way round
    with pytest.warns(UserWarning, match="higher scores did not go with larger effects"):
        UpliftCalibrator(wrong, cv="prefit", random_state=0).fit(made.X[2000:], made.y[2000:], made.t[2000:])


@pytest.mark.parametrize(
    "model", [UpliftSVM(), DifferentialSVM(), ClassTransformation()], ids=lambda model: type(model).__name__
)
def test_a_linear_model_names_columns_hidden_by_outliers_and_the_remedies_work(model):
    made = tables.TABLES["features of 1e6"](np.random.default_rng(3))
    train = slice(0, 2000)
    with pytest.warns(UserWarning, match="'x0'.*clip the columns.*UpliftForest"):
        model.fit(made.X[train], made.y[train], made.t[train])
    clipped = made.X.clip(made.X.quantile(0.01), made.X.quantile(0.99), axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(clipped[train], made.y[train], made.t[train])
        forest = UpliftForest(random_state=0).fit(made.X[train], made.y[train], made.t[train])
    for score in (model.predict(clipped[2000:]), forest.predict(made.X[2000:])):
        assert pd.Series(score).corr(pd.Series(made.effect[2000:]), method="spearman") > 0.6


def test_skewed_columns_and_columns_of_zeros_are_no_outliers():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.exp(2 * rng.normal(size=1000)), (rng.random(1000) < 0.02) * 1e6, rng.standard_t(2, 1000)])
    t, y = np.arange(1000) % 2, rng.integers(0, 2, 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ClassTransformation(propensity="shares").fit(X, y, t)
