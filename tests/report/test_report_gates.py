"""What `upturn.report` refuses before it does any work, and tables of absurd size that it can describe."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import upturn
from upturn.trees import UpliftTree


def experiment(n=200):
    rng = np.random.default_rng(0)
    X, treatment = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
    return X, (rng.random(n) < 0.3 + 0.2 * treatment * (X[:, 0] > 0)).astype(float), treatment


QUICK = {"estimator": UpliftTree(max_depth=2, random_state=0), "models": {}, "cv": 2, "n_bootstrap": 8}


@pytest.mark.parametrize("estimator", [5, "forest", [], UpliftTree, {"a": UpliftTree()}], ids=repr)
def test_what_is_no_model_is_refused(estimator):
    with pytest.raises(ValueError, match=r"estimator=.*expected a model, as UpliftForest\(\)"):
        upturn.report(*experiment(), **{**QUICK, "estimator": estimator})


@pytest.mark.parametrize("models", [{"a": 1}, {"a": UpliftTree}, [UpliftTree()]], ids=repr)
def test_what_are_no_models_are_refused(models):
    with pytest.raises(ValueError, match=r"models=.*expected a mapping from names to models"):
        upturn.report(*experiment(), **{**QUICK, "models": models})


@pytest.mark.parametrize("about", [0, "text", ["source"]], ids=repr)
def test_what_is_no_mapping_is_refused(about):
    with pytest.raises(ValueError, match=r"about=.*expected a mapping"):
        upturn.report(*experiment(), **QUICK, about=about)


@pytest.mark.parametrize("size", [1e300, 1e160, 1e-160])
def test_columns_of_absurd_size_are_described(size):
    X, y, treatment = experiment()
    plain = upturn.report(X, y, treatment, **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        large = upturn.report(X * size, y, treatment, **QUICK)
        card = large.page["card"]
    assert large._found.people.traits == plain._found.people.traits
    assert "∞" not in str(card)


def test_arms_named_by_numbers_beyond_those_of_floats():
    X, y, treatment = experiment()
    far = np.where(treatment == 0, np.uint64(0), np.uint64(2**64 - 1))
    page = upturn.report(X, y, far, **QUICK)
    assert page._found.people.profiles[0].kind == f"treat: {2**64 - 1}"
