"""A fit that does not end leaves the model as it was: fitted as before, or not fitted at all."""

import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from estimators import ESTIMATORS, TRANSFORMERS
from upturn import persist
from upturn.meta import ClassTransformation
from upturn.policy import UpliftCalibrator
from upturn.trees import UpliftForest

POINTS = 6  # interruptions of each estimator


def experiment(seed, n=120):
    rng = np.random.default_rng(seed)
    X, t = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
    y = (rng.random(n) < 0.3 + 0.4 * t * (X[:, 0] > 0)).astype(float)
    return X, y, t


FIRST, SECOND = experiment(0), experiment(1)
FITTED = ClassTransformation().fit(*FIRST)
MAKERS = {
    **ESTIMATORS,
    **TRANSFORMERS,
    "UpliftForest out of bag": lambda: UpliftForest(n_estimators=4, oob=True, random_state=0),
    "UpliftCalibrator of a fitted model": lambda: UpliftCalibrator(FITTED, cv="prefit", random_state=0),
}


class Interrupt(BaseException):
    """Like Ctrl-C: nothing catches it but what catches everything."""


class Countdown:
    """Counts the lines of the library that run, and interrupts at the one it was told."""

    def __init__(self, stop=None, within=None):
        self.lines, self.stop, self.within = 0, stop, within

    def __call__(self, frame, event, argument):
        if not frame.f_globals.get("__name__", "").startswith("upturn."):
            return None
        if event == "line" and self.within in (None, frame.f_code.co_name):
            self.lines += 1
            if self.lines == self.stop:
                raise Interrupt
        return self

    def __enter__(self):
        self._before = sys.gettrace()
        sys.settrace(self)
        return self

    def __exit__(self, *_):
        sys.settrace(self._before)


def output(model, X):
    return np.asarray(model.predict(X) if hasattr(model, "predict") else model.transform(X))


def state(model):
    return {name: id(value) for name, value in vars(model).items()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MAKERS)
def test_an_interrupted_fit_leaves_the_model_as_it_was(name):
    model = MAKERS[name]().fit(*FIRST)
    before, attributes = output(model, FIRST[0]), state(model)
    with Countdown() as whole:
        MAKERS[name]().fit(*SECOND)
    rng = np.random.default_rng(len(name))
    interrupted = 0
    for stop in np.unique(rng.integers(1, whole.lines, POINTS)):
        try:
            with Countdown(stop):
                model.fit(*SECOND)
        except Interrupt:
            interrupted += 1
            assert state(model) == attributes
            np.testing.assert_array_equal(output(model, FIRST[0]), before)
        else:  # lines differ a little between fits
            model = MAKERS[name]().fit(*FIRST)
            before, attributes = output(model, FIRST[0]), state(model)
        fresh = MAKERS[name]()
        try:
            with Countdown(stop):
                fresh.fit(*SECOND)
        except Interrupt:
            with pytest.raises(NotFittedError):
                output(fresh, FIRST[0])
    assert interrupted


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MAKERS)
def test_a_second_fit_remembers_nothing_of_the_first(name):
    again, fresh = MAKERS[name]().fit(*FIRST).fit(*SECOND), MAKERS[name]().fit(*SECOND)
    assert vars(again).keys() == vars(fresh).keys()
    np.testing.assert_array_equal(output(again, FIRST[0]), output(fresh, FIRST[0]))


@pytest.mark.parametrize("name", MAKERS)
def test_an_error_leaves_the_model_as_it_was(name):
    model = MAKERS[name]().fit(*FIRST)
    attributes = state(model)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(SECOND[0][:-1], *SECOND[1:])
    assert state(model) == attributes


def test_every_class_that_can_be_saved_is_interrupted():
    assert {type(make()).__name__ for make in MAKERS.values()} == set(persist.REGISTRY)


@pytest.mark.filterwarnings("ignore")
def test_a_forest_interrupted_out_of_bag_keeps_its_own_trees():
    """Trees of another experiment with other columns would read outside X: every line of that stage is tried."""
    model = MAKERS["UpliftForest out of bag"]().fit(*FIRST)
    before, attributes = output(model, FIRST[0]), state(model)
    wide = (np.hstack([SECOND[0], SECOND[0]]), *SECOND[1:])
    with Countdown(within="respond_unseen") as whole:
        MAKERS["UpliftForest out of bag"]().fit(*wide)
    assert whole.lines > 20
    for stop in range(1, whole.lines + 1):
        with pytest.raises(Interrupt), Countdown(stop, within="respond_unseen"):
            model.fit(*wide)
        assert state(model) == attributes
        np.testing.assert_array_equal(output(model, FIRST[0]), before)
