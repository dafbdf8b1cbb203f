"""The base trees of the boosting paper, its algorithms and splits."""

from __future__ import annotations

import numpy as np

from experiments._data import load_trial
from upturn.boosting import UpliftBagging, UpliftBoosting
from upturn.model_selection import uplift_train_test_split
from upturn.trees import UpliftTree

ROUNDS = 101
ALGORITHMS = ("adaboost", "balanced", "forgetting")


def base_tree(height):
    return UpliftTree(max_depth=height, min_samples_split=2, min_samples_leaf=1, min_samples_arm=1)


def parts(name, seed):
    """X, X_test, y, y_test, treatment, treatment_test of a split of 80/20 in both groups."""
    data = load_trial(name)
    return uplift_train_test_split(data.X, data.y, data.treatment, test_size=0.2, stratify="arm", random_state=seed)


def boosted(algorithm, height, seed, rounds=ROUNDS):
    return UpliftBoosting(base_tree(height), algorithm=algorithm, n_estimators=rounds, ties="none", random_state=seed)


def bagged(height, seed, rounds=ROUNDS):
    return UpliftBagging(base_tree(height), n_estimators=rounds, average="vote", random_state=seed)


def members_by_round(model):
    """How many members there are after every round: a restart adds none."""
    return np.cumsum(~model.history_["restarted"])
