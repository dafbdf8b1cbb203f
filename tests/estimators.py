"""Every estimator of the library as the tests that run over all of them want it: small, quick, seeded."""

from __future__ import annotations

from sklearn.linear_model import LogisticRegression, Ridge

from upturn.meta import ClassTransformation, DRLearner, RLearner, SLearner, TLearner, TreatedOnly, XLearner
from upturn.policy import UpliftCalibrator

# (name, a function that makes one)
ESTIMATORS = {
    "ClassTransformation": lambda: ClassTransformation(),
    "ClassTransformation over a classifier": lambda: ClassTransformation(LogisticRegression()),
    "SLearner": lambda: SLearner(Ridge(), interactions=True),
    "TLearner": lambda: TLearner(random_state=0),
    "XLearner": lambda: XLearner(Ridge()),
    "DRLearner": lambda: DRLearner(Ridge(), cv=2, random_state=0),
    "RLearner": lambda: RLearner(Ridge(), cv=2, random_state=0),
    "TreatedOnly": lambda: TreatedOnly(Ridge()),
    "UpliftCalibrator": lambda: UpliftCalibrator(ClassTransformation(), cv=2, random_state=0),
}

# Those that deal rows to folds inside fit.
CROSS_FITTED = {"DRLearner", "RLearner", "UpliftCalibrator"}
