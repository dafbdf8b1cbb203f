"""Are the predictions of every estimator the same, to the last bit, before and after a change?

    python benchmarks/same_bits.py write FILE      fit everything with the upturn that is importable, keep predictions
    python benchmarks/same_bits.py compare A B     say what differs, and by how much

Run ``write`` with PYTHONPATH at the ``src`` of either tree, with the same interpreter on the same machine: compiled
code and BLAS differ between processors. Parameters that had another name before are given under both.
"""

from __future__ import annotations

import inspect
import sys
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from upturn import boosting, features, meta, metrics, pack, policy, svm, trees

OLD_NAMES = {"min_share": "alpha", "exponent": "alpha", "estimator": "model", "interval": "level"}


def make(kind, **params):
    known = inspect.signature(kind).parameters
    return kind(**{name if name in known else OLD_NAMES.get(name, name): value for name, value in params.items()})


def table(n, seed, *, arms=2, outcome="binary", weighted=False, raw=False):
    """A seeded experiment; ``raw`` has missing values and, for those who take frames, a category."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    X[:, 3] = rng.integers(0, 4, n)
    t = rng.integers(0, arms, n)
    effect = 0.4 * np.tanh(X[:, 0]) * (t > 0) + 0.1 * (t == 2) * X[:, 1]
    score = 0.3 * X[:, 1] - 0.2 * (X[:, 3] == 2) + effect
    y = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(float) if outcome == "binary" else score + rng.normal(size=n)
    w = rng.uniform(0.5, 2, n) if weighted else None
    if raw:
        import pandas as pd

        X[rng.random(n) < 0.05, 2] = np.nan
        X = pd.DataFrame(X, columns=list("abcdef"))
        X["g"] = pd.Categorical(rng.choice(["red", "green", "blue"], n))
    return X, y, t, w


TABLES = {
    "binary": {"n": 1500, "seed": 1},
    "weighted": {"n": 1500, "seed": 2, "weighted": True},
    "raw": {"n": 1500, "seed": 3, "raw": True},
    "real": {"n": 1500, "seed": 4, "outcome": "real"},
    "real weighted raw": {"n": 1500, "seed": 5, "outcome": "real", "weighted": True, "raw": True},
    "arms": {"n": 1800, "seed": 6, "arms": 3},
    "arms real": {"n": 1800, "seed": 7, "arms": 3, "outcome": "real"},
    "small": {"n": 120, "seed": 8},
    "large": {"n": 60_000, "seed": 9, "raw": True},
}
BINARY = ("binary", "weighted", "raw", "small", "large")
UNWEIGHTED = ("binary", "raw", "small", "large", "arms")
SMALL = ("binary", "weighted", "raw", "small")
ANY = ("binary", "weighted", "raw", "real", "real weighted raw", "arms", "arms real", "small", "large")

T, B, S, M = trees, boosting, svm, meta


def stacking():
    from upturn.ensemble import UpliftStacking  # which older trees of source do not have

    candidates = {"forest": T.UpliftForest(n_estimators=5), "T": M.TLearner(Ridge())}
    return UpliftStacking(candidates, estimator=Ridge(), cv=3, random_state=0)


def auto():
    from upturn.ensemble import UpliftAuto

    candidates = {"forest": T.UpliftForest(n_estimators=5), "T": M.TLearner(Ridge())}
    return UpliftAuto("low", estimators=candidates, estimator=Ridge(), cv=3, random_state=0)


MODELS = {
    "tree": (lambda: make(T.UpliftTree, random_state=0), ANY),
    "tree pruned": (lambda: make(T.UpliftTree, prune=True, random_state=0), ANY),
    "tree kl honest": (lambda: make(T.UpliftTree, criterion="kl", honest=True, random_state=0), BINARY),
    "tree chi2": (lambda: make(T.UpliftTree, criterion="chi2", max_bins=16, random_state=0), BINARY),
    "tree cts": (lambda: make(T.UpliftTree, criterion="cts", min_share=0.1, pi=0.1, random_state=0), ANY),
    "forest": (lambda: make(T.UpliftForest, n_estimators=12, random_state=0), ANY),
    "forest jobs": (lambda: make(T.UpliftForest, n_estimators=12, n_jobs=2, bootstrap=True, random_state=0), ANY),
    "forest honest": (
        lambda: make(T.UpliftForest, n_estimators=12, honest=True, ci_group_size=2, min_share=0.05, random_state=0),
        ANY,
    ),
    "CTS": (lambda: make(T.CTSForest, n_estimators=12, random_state=0), ANY),
    "UCTS": (lambda: make(T.UCTSForest, n_estimators=12, random_state=0), ANY),
    "boosting": (lambda: make(B.UpliftBoosting, n_estimators=21, random_state=0), BINARY),
    "balanced": (
        lambda: B.UpliftBoosting(T.UpliftTree(max_depth=3), algorithm="balanced", n_estimators=21, random_state=0),
        BINARY,
    ),
    "forgetting": (lambda: make(B.UpliftBoosting, algorithm="forgetting", n_estimators=21, random_state=0), BINARY),
    "bagging": (lambda: make(B.UpliftBagging, n_estimators=21, random_state=0), ANY),
    "svm p=1": (lambda: make(S.UpliftSVM, ratio=1.3), BINARY),
    "svm p=1.2": (lambda: make(S.UpliftSVM, p=1.2, ratio=1.3), BINARY),
    "svm p=2": (lambda: make(S.UpliftSVM, p=2.0), BINARY),
    "svm energy": (lambda: make(S.UpliftSVM, p=2.0, balance=1.0), SMALL),
    "svm rbf": (lambda: make(S.UpliftSVM, kernel="rbf", C=0.5), ("small",)),
    "svm cv": (lambda: make(S.UpliftSVMCV, Cs=[0.01, 1.0], ratios=[1.0, 1.5], cv=3, random_state=0), SMALL),
    "differential": (lambda: make(S.DifferentialSVM), SMALL),
    "standard": (lambda: make(S.StandardSVM), BINARY),
    "two costs": (lambda: make(S.TwoCostSVM), BINARY),
    "subgroup": (lambda: make(S.SubgroupSVM), BINARY),
    "S": (lambda: make(M.SLearner, random_state=0), ANY),
    "S linear": (lambda: M.SLearner(Ridge(), interactions=True), ANY),
    "T": (lambda: make(M.TLearner, random_state=0), ANY),
    "T logistic": (lambda: M.TLearner(LogisticRegression()), SMALL),
    "X": (lambda: make(M.XLearner, random_state=0), ANY),
    "DR": (lambda: make(M.DRLearner, random_state=0), ANY),
    "R": (lambda: make(M.RLearner, random_state=0), ANY),
    "transformed": (lambda: M.ClassTransformation(), BINARY),
    "treated only": (lambda: M.TreatedOnly(Ridge()), BINARY),
    "calibrated": (
        lambda: policy.UpliftCalibrator(T.UpliftForest(n_estimators=5, random_state=0), cv=3, random_state=0),
        ANY,
    ),
    "auto": (auto, ANY),
    "stacking": (stacking, ANY),
    "umodl": (lambda: features.UMODLDiscretizer(), UNWEIGHTED),
    "umodl selector": (lambda: features.UMODLSelector(), UNWEIGHTED),
    "filter": (lambda: features.FilterSelector(k=2), (*BINARY, "arms")),
}


def predictions():
    answers = {}
    for kind, settings in TABLES.items():
        X, y, t, w = table(**settings)
        for name, (maker, kinds) in MODELS.items():
            if kind not in kinds:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = maker().fit(X, y, t, w)
                answer = model.predict(X) if hasattr(model, "predict") else model.transform(X)
                if hasattr(model, "ci_group_size") and model.ci_group_size > 1:
                    answers[f"{name} intervals | {kind}"] = np.asarray(model.predict_interval(X))
            answers[f"{name} | {kind}"] = np.asarray(answer, dtype=float)
        scores = np.round(np.asarray(X, dtype=object)[:, 0].astype(float), 1)
        if TABLES[kind].get("arms", 2) == 2:
            for metric in ("auuc", "qini", "autoc"):
                value = getattr(metrics, metric)(y, scores, t, sample_weight=w)
                answers[f"{metric} | {kind}"] = np.array([float(value)])
            answers[f"compare | {kind}"] = np.array(
                [v for c in ("difference", "se") for v in _compare(y, {"a": scores, "b": -scores}, t, w)[c]],
                dtype=float,
            )
        packed = pack(y, t, w)
        answers[f"pack | {kind}"] = np.asarray(packed["y"], dtype=float)
    return answers


def _compare(y, scores, t, w):
    return metrics.compare(y, scores, t, sample_weight=w, n_bootstrap=50, random_state=0)


def compare(first, second):
    a, b = np.load(first), np.load(second)
    only = set(a.files) ^ set(b.files)
    different = []
    for name in sorted(set(a.files) & set(b.files)):
        x, z = a[name], b[name]
        if x.shape != z.shape:
            different.append(f"{name}: shapes {x.shape} and {z.shape}")
        elif not np.array_equal(x, z, equal_nan=True):
            scale = np.nanmax(np.abs(x)) or 1.0
            off = np.nanmax(np.abs(x - z)) / scale
            different.append(f"{name}: {np.sum(x != z)} of {x.size} differ, by at most {off:.1e} of the largest")
    for line in [*(f"{name}: only in one" for name in sorted(only)), *different]:
        print(line)
    same = len(set(a.files) & set(b.files)) - len(different)
    print(f"{same} of {len(set(a.files) | set(b.files))} the same to the last bit")
    return 1 if only or different else 0


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "write":
        np.savez(sys.argv[2], **predictions())
    elif len(sys.argv) == 4 and sys.argv[1] == "compare":
        sys.exit(compare(*sys.argv[2:]))
    else:
        sys.exit(__doc__)
