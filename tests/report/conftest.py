"""Pages, made once."""

import numpy as np
import pytest
from small_pages import OPTIONS, Average, make_experiment, small_forest

import upturn as up
from upturn.trees import UpliftTree


@pytest.fixture(scope="session")
def mail():
    return make_experiment(4000)


@pytest.fixture(scope="session")
def page(mail):
    """One arm, everybody costs the same."""
    return up.report(*mail, estimator=small_forest(), models={}, cost=2, value=30, outcome="visit", **OPTIONS)


@pytest.fixture(scope="session")
def offers():
    return make_experiment(5000, arms=2, seed=1)


@pytest.fixture(scope="session")
def offers_page(offers):
    """Two arms that cost differently."""
    prices = {"cost": {"mail": 1, "call": 4}, "value": 30}
    return up.report(*offers, estimator=small_forest(), models={}, **prices, outcome="visit", **OPTIONS)


@pytest.fixture(scope="session")
def trial_page(mail):
    X, y, treatment = mail
    lost = y.copy()
    lost[:150] = np.nan
    tree = UpliftTree(max_depth=3, random_state=0)
    return up.report(X, lost, treatment, estimator=tree, models={}, audience="trial", outcome="remission", **OPTIONS)


@pytest.fixture(scope="session")
def flat_page():
    """Folds that predict one effect for everybody, each its own."""
    return up.report(*make_experiment(1500, slope=0.0, seed=3), estimator=Average(), models={}, **OPTIONS)
