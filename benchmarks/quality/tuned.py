"""Contestants that are tuned: twenty draws of their parameters, compared by AUUC on folds of the training rows; the best is fitted to all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.quality.rivals import RIVALS, Rival, together
from benchmarks.rivals._call import files

from upturn.boosting import UpliftBagging, UpliftBoosting
from upturn.meta import ClassTransformation, DRLearner, RLearner, SLearner, TLearner, TreatedOnly, XLearner
from upturn.metrics import auuc
from upturn.model_selection import UpliftKFold
from upturn.svm import DifferentialSVM, StandardSVM, SubgroupSVM, TwoCostSVM, UpliftSVM
from upturn.trees import CTSForest, UCTSForest, UpliftForest, UpliftTree

DRAWS, FOLDS = 20, 2


def _boosting(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "max_iter": int(rng.integers(20, 300)),
        "learning_rate": float(np.exp(rng.uniform(np.log(0.01), np.log(0.3)))),
        "max_leaf_nodes": int(rng.integers(4, 64)),
        "min_samples_leaf": int(rng.integers(5, 100)),
    }


def _forest(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "n_estimators": int(rng.integers(50, 400)),
        "max_depth": int(rng.integers(2, 16)),
        "max_features": float(rng.uniform(0.2, 1.0)),
        "min_samples_arm": int(rng.integers(2, 100)),
        "center": bool(rng.integers(2)),
    }


def _contextual(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "n_estimators": int(rng.integers(50, 400)),
        "min_samples_split": int(np.exp(rng.uniform(np.log(5), np.log(200)))),
        "max_features": float(rng.uniform(0.2, 1.0)),
        "n_reg": float(rng.uniform(0.0, 20.0)),
    }


def _machine(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "C": float(10 ** rng.uniform(-4, 2)),
        "p": float(rng.choice([1.0, 1.2, 1.5, 2.0])),
        "ratio": float(rng.uniform(1.0, 3.0)),
    }


def _classic(rng: np.random.Generator) -> dict[str, Any]:
    return {"C": float(10 ** rng.uniform(-4, 2)), "p": float(rng.choice([1.0, 1.2, 1.5, 2.0]))}


def _two_costs(rng: np.random.Generator) -> dict[str, Any]:
    drawn = _classic(rng)
    return {**drawn, "C_control": drawn["C"] * float(rng.uniform(0.0, 1.0))}


def _pairs(rng: np.random.Generator) -> dict[str, Any]:
    return {"C": float(10 ** rng.uniform(-6, 0))}  # of every pair


def _tree(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "criterion": str(rng.choice(["euclidean", "kl", "chi2", "cts"])),
        "max_depth": int(rng.integers(1, 12)),
        "min_samples_leaf": int(rng.integers(1, 100)),
        "prune": bool(rng.integers(2)),
    }


def _ensemble(rng: np.random.Generator) -> dict[str, Any]:
    return {"max_depth": int(rng.integers(1, 6)), "n_estimators": int(rng.integers(10, 200))}


def _penalty(rng: np.random.Generator) -> dict[str, Any]:
    return {"C": float(10 ** rng.uniform(-4, 2))}


def _over_trees(kind: Callable[..., Any]) -> Callable[..., Any]:
    def make(y: Any, seed: int, max_depth: int, n_estimators: int) -> Any:
        return kind(UpliftTree(max_depth=max_depth), n_estimators=n_estimators, random_state=seed)

    return make


def _over_logistic(y: Any, seed: int, C: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    return ClassTransformation(LogisticRegression(C=C, max_iter=1000))


def _over_boosting(kind: Callable[..., Any]) -> Callable[..., Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    def make(y: Any, seed: int, **parameters: Any) -> Any:
        base = HistGradientBoostingClassifier if len(np.unique(y)) == 2 else HistGradientBoostingRegressor
        return kind(base(random_state=seed, **parameters), random_state=seed)

    return make


def _own(kind: Callable[..., Any], seeded: bool = True) -> Callable[..., Any]:
    return lambda y, seed, **parameters: kind(**parameters, **({"random_state": seed} if seeded else {}))


def _rival(name: str) -> Callable[..., Any]:
    return lambda y, seed, **parameters: Rival(name, seed, together, **parameters)


# name -> (how it is made of outcomes, a seed and parameters; how parameters are drawn)
TUNED: dict[str, tuple[Callable[..., Any], Callable[[np.random.Generator], dict[str, Any]]]] = {
    "bagging": (_over_trees(UpliftBagging), _ensemble),
    "boosting": (_over_trees(UpliftBoosting), _ensemble),
    "class-transformation": (_over_logistic, _penalty),
    "cts": (_own(CTSForest), _contextual),
    "differential-svm": (_own(DifferentialSVM, seeded=False), _pairs),
    "forest": (_own(UpliftForest), _forest),
    "standard-svm": (_own(StandardSVM, seeded=False), _classic),
    "subgroup-svm": (_own(SubgroupSVM, seeded=False), _classic),
    "svm": (_own(UpliftSVM, seeded=False), _machine),
    "tree": (_own(UpliftTree), _tree),
    "two-cost-svm": (_own(TwoCostSVM, seeded=False), _two_costs),
    "ucts": (_own(UCTSForest), _contextual),
    **{
        name: (_over_boosting(kind), _boosting)
        for name, kind in (
            ("dr", DRLearner),
            ("r", RLearner),
            ("s", SLearner),
            ("t", TLearner),
            ("treated-only", TreatedOnly),
            ("x", XLearner),
        )
    },
    **{name: (_rival(name), files()[RIVALS[name]].DRAWS[name]) for name in RIVALS},
}


class Tuned:
    """A contestant whose parameters are chosen on the training rows alone."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.seed, self._elsewhere = name, seed, 0.0

    def fit(self, X: Any, y: Any, treatment: Any) -> Tuned:
        """Compare the draws on folds, and fit the best of them to all rows."""
        make, draw = TUNED[self.name]
        rng = np.random.default_rng(self.seed)
        draws = [draw(rng) for _ in range(DRAWS)]
        folds = list(UpliftKFold(FOLDS, random_state=self.seed).split(X, y, treatment))
        areas = [self._area(make, parameters, X, y, treatment, folds) for parameters in draws]
        self.parameters = draws[int(np.argmax(areas))]
        self.model = make(y, self.seed, **self.parameters).fit(X, y, treatment)
        return self

    def _area(self, make: Any, parameters: Any, X: Any, y: Any, treatment: Any, folds: Any) -> float:
        """Mean AUUC over the folds; a draw that cannot be fitted is never chosen if another can."""
        found = []
        for learn, judge in folds:
            try:
                model = make(y[learn], self.seed, **parameters).fit(_take(X, learn), y[learn], treatment[learn])
                found.append(auuc(y[judge], model.predict(_take(X, judge)), treatment[judge]))
                self._elsewhere += getattr(model, "seconds", 0.0)
            except ValueError:
                return -np.inf
        return float(np.mean(found))

    def predict(self, X: Any) -> Any:
        """By the best draw."""
        score = self.model.predict(X)
        if hasattr(self.model, "seconds"):  # a rival, whose fits took their time in another process
            self.seconds = self._elsewhere + self.model.seconds
        return score

    def recommend(self, X: Any) -> Any:
        """By the best draw."""
        return self.model.recommend(X)


def _take(X: Any, rows: Any) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
