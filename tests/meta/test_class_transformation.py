"""The class transformation over classifiers of other libraries: weights, missing values, pipelines."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from upturn.meta import ClassTransformation

rng = np.random.default_rng(0)
N = 500
X, TREATMENT = rng.normal(size=(N, 3)), (rng.random(N) < 0.3).astype(int)
Y = (rng.random(N) < 0.4 + 0.3 * TREATMENT * (X[:, 0] > 0)).astype(int)


def test_a_pipeline_gets_the_weights():
    """The native model is a standardised logistic regression, so this pipeline is the same model but for its scaler."""
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    pipeline = ClassTransformation(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, Y, TREATMENT)
    by_hand = ClassTransformation(LogisticRegression()).fit(scaled, Y, TREATMENT)
    assert np.allclose(pipeline.predict(X), by_hand.predict(scaled), atol=1e-10)
    without = ClassTransformation(make_pipeline(StandardScaler(), LogisticRegression()), reweight=False)
    assert not np.allclose(without.fit(X, Y, TREATMENT).predict(X), pipeline.predict(X), atol=1e-3)


def test_a_classifier_without_weights_is_refused_when_they_matter():
    with pytest.raises(ValueError, match=r"KNeighborsClassifier takes no sample_weight, .*reweight=False"):
        ClassTransformation(KNeighborsClassifier()).fit(X, Y, TREATMENT)
    assert np.isfinite(
        ClassTransformation(KNeighborsClassifier(), reweight=False).fit(X, Y, TREATMENT).predict(X)
    ).all()


def test_values_missing_at_predict_only():
    gap, filled = X.copy(), X.copy()
    gap[:5, 1] = np.nan
    for estimator in (None, LogisticRegression()):
        model = ClassTransformation(estimator).fit(X, Y, TREATMENT)
        filled[:5, 1] = model.encoder_.fill[1]
        assert np.allclose(model.predict(gap), model.predict(filled), rtol=1e-12)


def test_nothing_to_learn():
    with pytest.raises(ValueError, match="every treated row has one outcome and every control row the other"):
        ClassTransformation().fit(X, TREATMENT, TREATMENT)
