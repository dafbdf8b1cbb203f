"""The learners against econml and causalml on the same folds and base models; see tests/golden/meta_learners.py."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from upturn.meta import DRLearner, RLearner, SLearner, TLearner, XLearner

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "meta_learners.json").read_text())


def curved(final=None):
    return make_pipeline(PolynomialFeatures(2, include_bias=False), Ridge() if final is None else final)


def ours(library, name, case):
    folds = [(np.array(train), np.array(test)) for train, test in case["folds"]]
    logistic = LogisticRegression(solver="newton-cholesky", tol=1e-10)
    # causalml is told a propensity of 0.4 for every arm against control, which need not add up over arms
    known = 0.4 if case["n_arms"] == 1 else [0.4 / 1.4] * 2
    chance = logistic if library == "econml" else known
    if library == "causalml" and case["n_arms"] == 2:
        control = 1 - sum(known)
        assert known[0] / (known[0] + control) == pytest.approx(0.4)
    return {
        "S": lambda: SLearner(curved(LinearRegression())),
        "T": lambda: TLearner(curved()),
        "X": lambda: XLearner(curved(), Ridge(), propensity=chance),
        "DR": lambda: DRLearner(curved(), Ridge(), propensity=chance, clip=1e-6, cv=folds),
        "R": lambda: RLearner(curved(), Ridge(), propensity=chance, clip=0, cv=folds),
    }[name]()


CASES = [
    pytest.param(case, library, name, id=f"{library}-{name}-{case['n_arms']} arm(s)")
    for case in GOLDEN["cases"]
    for library, effects in case["effects"].items()
    for name in effects
]


@pytest.mark.parametrize(("case", "library", "name"), CASES)
def test_effects_agree(case, library, name):
    model = ours(library, name, case).fit(np.array(case["X"]), case["y"], case["arm"])
    expected = np.array(case["effects"][library][name])
    found = model.predict(np.array(case["new"])).reshape(expected.shape)
    assert np.ptp(expected) > 0.3  # effects differ between rows, so agreeing on them says something
    # theirs come from a solver of logistic regressions that stops some 1e-8 short of the optimum, here and there on another machine
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=1e-7 if library == "econml" and name in ("DR", "R") else 1e-8
    )
