"""Every estimator of the library as the tests that run over all of them want it: small, quick, seeded."""

from __future__ import annotations

from sklearn.linear_model import LogisticRegression

from upturn.meta import ClassTransformation

# (name, a function that makes one)
ESTIMATORS = {
    "ClassTransformation": lambda: ClassTransformation(),
    "ClassTransformation over a classifier": lambda: ClassTransformation(LogisticRegression()),
}
