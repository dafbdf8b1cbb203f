"""Effects by econml's and causalml's meta-learners, which ours must reproduce where the definitions coincide.

Run it where both are installed; it writes ``meta_learners.json`` beside itself:

    python tests/golden/meta_learners.py

Base models are smooth and convex, so that a golden number means the same in every version of scikit-learn.
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from causalml.inference.meta import BaseRRegressor, BaseSRegressor, BaseTRegressor, BaseXRegressor
from econml.dml import NonParamDML
from econml.dr import DRLearner
from econml.metalearners import SLearner, TLearner, XLearner
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

N, NEW, FOLDS = 150, 12, 3


def curved(final):
    return make_pipeline(PolynomialFeatures(2, include_bias=False), final)


class PerArm(RegressorMixin, BaseEstimator):
    """A model per arm behind econml's interface, in which the last columns are the arms' indicators."""

    def __init__(self, base=None, n_arms=1):
        self.base = base
        self.n_arms = n_arms

    def fit(self, XT, y):
        X, arm = XT[:, : -self.n_arms], XT[:, -self.n_arms :] @ np.arange(1, self.n_arms + 1)
        self.models_ = [clone(self.base).fit(X[arm == k], y[arm == k]) for k in range(self.n_arms + 1)]
        return self

    def predict(self, XT):
        X, arm = XT[:, : -self.n_arms], (XT[:, -self.n_arms :] @ np.arange(1, self.n_arms + 1)).astype(int)
        return np.column_stack([model.predict(X) for model in self.models_])[np.arange(len(X)), arm]


def experiment(n_arms, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3)).round(3)
    arm = np.argmax(
        np.column_stack([np.zeros(N), *[0.5 * X[:, k] for k in range(n_arms)]]) + rng.gumbel(size=(N, n_arms + 1)),
        axis=1,
    )
    y = (X[:, 0] + X[:, 1] ** 2 + arm * (1 + X[:, 0]) + rng.normal(size=N)).round(3)
    folds = [
        (train.tolist(), test.tolist())
        for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, arm)
    ]
    return {"X": X, "y": y, "arm": arm, "folds": folds, "new": rng.normal(size=(NEW, 3)).round(3)}


def columns(effects, n_arms):
    return np.asarray(effects, dtype=float).reshape(NEW, n_arms).tolist()


def econml_effects(data, n_arms):
    X, y, arm, folds, new = data["X"], data["y"], data["arm"], data["folds"], data["new"]
    splits = [(np.array(train), np.array(test)) for train, test in folds]
    logistic = LogisticRegression(tol=1e-10, max_iter=10_000)
    found = {}
    models = {
        "S": SLearner(overall_model=curved(LinearRegression())),
        "T": TLearner(models=curved(Ridge())),
        "DR": DRLearner(
            model_propensity=logistic, model_regression=PerArm(curved(Ridge()), n_arms), model_final=Ridge(), cv=splits
        ),
    }
    if n_arms == 1:  # several arms: econml fits a propensity per pair of arms, we fit one of all arms
        models["X"] = XLearner(models=curved(Ridge()), cate_models=Ridge(), propensity_model=logistic)
        models["R"] = NonParamDML(
            model_y=curved(Ridge()), model_t=logistic, model_final=Ridge(), discrete_treatment=True, cv=splits
        )
    for name, model in models.items():
        model.fit(y, arm, X=X)
        found[name] = columns(model.const_marginal_effect(new), n_arms)
    return found


def causalml_effects(data, n_arms):
    X, y, arm, new = data["X"], data["y"], data["arm"], data["new"]
    known = {k: np.full(N, 0.4) for k in range(1, n_arms + 1)}
    at_new = {k: np.full(NEW, 0.4) for k in range(1, n_arms + 1)}
    found = {}
    s = BaseSRegressor(learner=curved(LinearRegression()), control_name=0)
    if n_arms == 1:  # several arms: causalml fits a model per arm, we fit one of all arms
        s.fit(X, arm, y)
        found["S"] = columns(s.predict(new), n_arms)
    t = BaseTRegressor(learner=curved(Ridge()), control_name=0)
    t.fit(X, arm, y)
    found["T"] = columns(t.predict(new), n_arms)
    x = BaseXRegressor(
        control_outcome_learner=curved(Ridge()), treatment_outcome_learner=curved(Ridge()),
        control_effect_learner=Ridge(), treatment_effect_learner=Ridge(), control_name=0,
    )  # fmt: skip
    x.fit(X, arm, y, p=known)
    found["X"] = columns(x.predict(new, p=at_new), n_arms)
    if n_arms == 1:  # several arms: causalml's mean outcome is that of all arms, ours that of the pair
        r = BaseRRegressor(
            outcome_learner=curved(Ridge()),
            effect_learner=Ridge(),
            n_fold=FOLDS,
            random_state=data["seed"],
            control_name=0,
        )
        r.fit(X, arm, y, p=known, verbose=False)
        found["R"] = columns(r.predict(new), n_arms)
    return found


def main():
    cases = []
    for n_arms, seed in ((1, 11), (2, 12)):
        data = {**experiment(n_arms, seed), "seed": seed}
        golden = {"econml": econml_effects(data, n_arms), "causalml": causalml_effects(data, n_arms)}
        plain = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in data.items()}
        cases.append({"n_arms": n_arms, **plain, "effects": golden})
    made_by = {name: version(name) for name in ("econml", "causalml", "scikit-learn", "numpy")}
    path = Path(__file__).with_suffix(".json")
    path.write_text(json.dumps({"made_by": made_by, "cases": cases}) + "\n")
    print(f"wrote {path.name}: {made_by}")


if __name__ == "__main__":
    main()
