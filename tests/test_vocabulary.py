"""One word for one thing, in every public signature; DEVELOPING.md has the words and what they mean."""

import importlib
import inspect
import re

import numpy as np
import pytest

import upturn
from estimators import ESTIMATORS, TRANSFORMERS
from upturn.persist import REGISTRY

ROOMS = (
    "boosting",
    "datasets",
    "ensemble",
    "features",
    "meta",
    "metrics",
    "model_selection",
    "plot",
    "policy",
    "svm",
    "trees",
)

# A word that is not used, and the one that is.
REPLACED = {
    "level": "interval",
    "confidence": "interval",
    "uplift": "score",
    "prediction": "score",
    "reference": "baseline",
    "scoring": "metric",
    "model": "estimator",
    "base_estimator": "estimator",
    "estimators": "models",
    "bins": "n_bins or max_bins",
    "seed": "random_state",
    "weight": "sample_weight",
    "weights": "sample_weight",
    "n_boot": "n_bootstrap",
    "p": "treatment",
    "t": "treatment",
    "outcome_variable": "y",
}
# Where such a word is right after all: (owner, word).
RIGHT = {
    ("UpliftAuto", "estimators"),
    ("UpliftStacking", "estimators"),  # those inside a model, as scikit-learn has it
    ("importances", "model"),  # functions that look at a fitted model
    ("parts", "model"),
    ("sign_shares", "model"),
    ("tree", "model"),
    ("StandardSVM", "p"),
    ("SubgroupSVM", "p"),
    ("TwoCostSVM", "p"),
    ("UpliftSVM", "p"),
    ("UpliftSVMCV", "p"),
}
GREEK = {"alpha": {"check"}}


def public():
    """(name, owner, function) of every public function, constructor and method."""
    found = [
        (name, name, getattr(upturn, name)) for name in upturn.__all__ if inspect.isfunction(getattr(upturn, name))
    ]
    for room in ROOMS:
        home = importlib.import_module(f"upturn.{room}")
        for name in home.__all__:
            thing = getattr(home, name)
            if inspect.isclass(thing) and issubclass(thing, BaseException):
                continue
            if inspect.isclass(thing):
                if name in REGISTRY or room == "model_selection":
                    found.append((f"{room}.{name}", name, thing))
                for method, code in inspect.getmembers(thing, inspect.isfunction):
                    if not method.startswith("_") and code.__module__.startswith("upturn"):
                        found.append((f"{room}.{name}.{method}", name, code))
            elif callable(thing):
                found.append((f"{room}.{name}", name, thing))
    return found


PUBLIC = {name: (owner, inspect.signature(thing).parameters) for name, owner, thing in public()}


def test_the_walk_sees_everything():
    assert len(PUBLIC) > 120
    assert "metrics.auuc" in PUBLIC
    assert "trees.UpliftForest.predict_interval" in PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_words(name):
    owner, parameters = PUBLIC[name]
    wrong = {
        word: REPLACED[word]
        for word in parameters
        if word in REPLACED and (owner, word) not in RIGHT and word != "self"
    }
    assert not wrong, f"{name}: say {wrong}"
    for word in parameters:
        if word in GREEK:
            assert owner in GREEK[word], f"{name}: {word} means something else"


@pytest.mark.parametrize("name", PUBLIC)
def test_order_of_what_is_measured(name):
    _, parameters = PUBLIC[name]
    words = [word for word in parameters if word in ("y", "score", "scores", "recommended", "treatment")]
    positional = [word for word in words if parameters[word].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    order = {"y": 0, "score": 1, "scores": 1, "recommended": 1, "treatment": 2}
    assert positional == sorted(positional, key=order.__getitem__), f"{name}({', '.join(parameters)})"
    features = [word for word in parameters if word in ("X", "y", "treatment", "sample_weight")]
    if "X" in features:
        assert features == sorted(features, key=["X", "y", "treatment", "sample_weight"].index)


@pytest.mark.parametrize("name", PUBLIC)
def test_defaults(name):
    _, parameters = PUBLIC[name]
    if "random_state" in parameters:
        resamples_for_an_interval = "interval" in parameters or name.startswith(
            ("policy.overlap", "policy.iptw", "check")
        )
        expected = 0 if resamples_for_an_interval else None
        assert parameters["random_state"].default == expected, f"{name}: random_state={expected}"
    for flagged, default in (("n_jobs", None), ("control", None), ("sample_weight", None)):
        if flagged in parameters and parameters[flagged].default is not inspect.Parameter.empty:
            assert parameters[flagged].default == default, name
    if "interval" in parameters:
        value = parameters["interval"].default
        assert value is None or 0 < value < 1 or value is inspect.Parameter.empty


def fitted(name):
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(3000, 3)), rng.integers(0, 2, 3000)
    y = (rng.random(3000) < 0.3 + 0.4 * t * (X[:, 0] > 0)).astype(float)
    return (ESTIMATORS | TRANSFORMERS)[name]().fit(X, y, t)


@pytest.mark.filterwarnings("ignore::upturn.svm.VanishingWarning")  # at p = 1 the classifiers' w is 0 on these rows
@pytest.mark.parametrize("name", [*ESTIMATORS, *TRANSFORMERS])
def test_importance_per_feature_has_one_name(name):
    model = fitted(name)
    importances = model.feature_importances_
    assert importances.shape == (3,)
    assert (importances >= 0).all()
    assert importances.argmax() == 0
    others = [word for word in dir(model) if re.search(r"importance", word) and word != "feature_importances_"]
    assert not [word for word in others if not word.startswith("_")]
