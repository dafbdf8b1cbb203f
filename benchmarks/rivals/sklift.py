"""scikit-uplift: two models over scikit-learn's boosting, class transformation, areas under curves."""

import numpy as np

REQUIRES = ("scikit-uplift==0.5.1",)


def _gradient_boosting(seed, **parameters):
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=int(seed), **parameters)


def two_models(X, y, t, asked, seed=0, **parameters):
    from sklift.models import TwoModels

    model = TwoModels(_gradient_boosting(seed, **parameters), _gradient_boosting(seed, **parameters))
    return np.asarray(model.fit(X, y.astype(int), t).predict(asked))


def class_transformation(X, y, t, asked, seed=0, **parameters):
    from sklift.models import ClassTransformation

    model = ClassTransformation(_gradient_boosting(seed, **parameters))
    return np.asarray(model.fit(X, y.astype(int), t).predict(asked))


def auuc(y, score, t):
    from sklift.metrics import uplift_auc_score

    return uplift_auc_score(y, score, t)


JOBS = {"T-learner": two_models, "AUUC": auuc}
MODELS = {"sklift-two-models": two_models, "sklift-class-transformation": class_transformation}


def _draw(rng):
    return {
        "max_iter": int(rng.integers(20, 300)),
        "learning_rate": float(np.exp(rng.uniform(np.log(0.01), np.log(0.3)))),
        "max_leaf_nodes": int(rng.integers(4, 64)),
        "min_samples_leaf": int(rng.integers(5, 100)),
    }


DRAWS = dict.fromkeys(MODELS, _draw)
