"""Every estimator of the library as the tests that run over all of them want it: small, quick, seeded."""

from __future__ import annotations

from sklearn.linear_model import LogisticRegression, Ridge

from upturn.boosting import UpliftBagging, UpliftBoosting
from upturn.ensemble import UpliftAuto, UpliftStacking
from upturn.features import FilterSelector, UMODLDiscretizer, UMODLSelector
from upturn.meta import (
    ClassTransformation,
    DRLearner,
    OneVsControl,
    RLearner,
    SLearner,
    TLearner,
    TreatedOnly,
    XLearner,
)
from upturn.policy import UpliftCalibrator
from upturn.svm import DifferentialSVM, StandardSVM, SubgroupSVM, TwoCostSVM, UpliftSVM, UpliftSVMCV
from upturn.trees import CTSForest, UCTSForest, UpliftForest, UpliftTree

# (name, a function that makes one)
ESTIMATORS = {
    "ClassTransformation": lambda: ClassTransformation(),
    "ClassTransformation over a classifier": lambda: ClassTransformation(LogisticRegression()),
    "UpliftTree": lambda: UpliftTree(random_state=0),
    "UpliftForest": lambda: UpliftForest(n_estimators=4, random_state=0),
    "CTSForest": lambda: CTSForest(n_estimators=4, random_state=0),
    "UCTSForest": lambda: UCTSForest(n_estimators=4, random_state=0),
    "UpliftBoosting": lambda: UpliftBoosting(n_estimators=4, random_state=0),
    "UpliftBagging": lambda: UpliftBagging(n_estimators=4, random_state=0),
    "UpliftSVM": lambda: UpliftSVM(ratio=1.2, tol=1e-12),
    "UpliftSVM with p of 2": lambda: UpliftSVM(p=2.0, ratio=1.5),
    "UpliftSVMCV": lambda: UpliftSVMCV(Cs=[0.001, 0.1], ratios=[1.0, 3.0], cv=2, random_state=0),
    "DifferentialSVM": lambda: DifferentialSVM(),
    "StandardSVM": lambda: StandardSVM(tol=1e-12),
    "TwoCostSVM": lambda: TwoCostSVM(tol=1e-12),
    "SubgroupSVM": lambda: SubgroupSVM(tol=1e-12),
    "SLearner": lambda: SLearner(Ridge(), interactions=True),
    "TLearner": lambda: TLearner(random_state=0),
    "XLearner": lambda: XLearner(Ridge()),
    "DRLearner": lambda: DRLearner(Ridge(), cv=2, random_state=0),
    "RLearner": lambda: RLearner(Ridge(), cv=2, random_state=0),
    "OneVsControl": lambda: OneVsControl(),
    "OneVsControl over a machine": lambda: OneVsControl(TwoCostSVM(tol=1e-12)),
    "TreatedOnly": lambda: TreatedOnly(Ridge()),
    "UpliftStacking": lambda: UpliftStacking(
        {"linear": XLearner(Ridge()), "tree": UpliftTree()}, estimator=Ridge(), cv=2, random_state=0
    ),
    "UpliftAuto": lambda: UpliftAuto(
        "low",
        estimators={"linear": XLearner(Ridge()), "tree": UpliftTree()},
        estimator=Ridge(),
        cv=3,
        metric=None,
        random_state=0,
    ),
    "UpliftCalibrator": lambda: UpliftCalibrator(ClassTransformation(), cv=2, random_state=0),
}

# Transformers, which have no predict.
TRANSFORMERS = {
    "FilterSelector": lambda: FilterSelector(k=1),
    "UMODLDiscretizer": lambda: UMODLDiscretizer(),
    "UMODLSelector": lambda: UMODLSelector(),
}

# Those that draw rows at random, or deal them to folds, inside fit: a weighted row then differs from repeated ones.
DRAWS_ROWS = {
    "UpliftForest",
    "CTSForest",
    "UCTSForest",
    "UpliftBagging",
    "UpliftSVMCV",
    "DRLearner",
    "RLearner",
    "UpliftCalibrator",
    "UpliftStacking",
    "UpliftAuto",
    # the propensity is chosen by folds
    "ClassTransformation",
    "ClassTransformation over a classifier",
    "OneVsControl",
    "XLearner",
}
