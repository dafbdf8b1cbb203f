"""Algorithm 1 of the uplift boosting paper and discrete AdaBoost, written down plainly, given the base decisions."""

from __future__ import annotations

import numpy as np


def uplift_boosting(decisions, y, treated, algorithm, weights):
    """Replay rounds whose base decisions are known: yields (errors, shares, betas, weights after the round)."""
    if algorithm != "adaboost":
        weights = np.where(treated, weights / weights[treated].sum(), weights / weights[~treated].sum())
    for h in decisions:
        weights = weights / weights.sum()  # 2a
        wrong_t = treated & (h != y)  # equation (3)
        wrong_c = ~treated & (h == y)  # equation (4)
        p_t, p_c = weights[treated].sum(), weights[~treated].sum()  # (1)
        e_t, e_c = weights[wrong_t].sum() / p_t, weights[wrong_c].sum() / p_c  # (5)
        if algorithm == "adaboost":
            b_t = b_c = (p_t * e_t + p_c * e_c) / (1 - p_t * e_t - p_c * e_c)
        elif algorithm == "forgetting":
            b_t, b_c = e_c / (1 - e_t), e_t / (1 - e_c)
        else:
            b_c = theorem_2(e_t, e_c)
            b_t = (e_c - e_t) / (1 - e_t) + (1 - e_c) / (1 - e_t) * b_c  # (19)
        after = weights.copy()
        after[treated & (h == y)] *= b_t  # 2f
        after[~treated & (h == 1 - y)] *= b_c  # 2g
        yield (e_t, e_c), (p_t, p_c), (b_t, b_c), after
        weights = after


def theorem_2(e_t, e_c):
    if e_c <= e_t < 0.5 or 0.5 < e_t < e_c:
        return (2 * e_t - e_c) / (1 - e_c)
    if e_t < e_c < 0.5 or 0.5 < e_c <= e_t:
        return e_c / (1 - e_c)
    return 1.0


def bound_20(beta_c, e_t, e_c):
    """The bound (20) under the balance condition, as a function of the control group's coefficient."""
    beta_t = (e_c - e_t) / (1 - e_t) + (1 - e_c) / (1 - e_t) * beta_c
    smaller = np.minimum(beta_c, beta_t)
    return np.where(smaller > 0, (1 - (1 - e_c) * (1 - beta_c)) / np.sqrt(np.maximum(smaller, 1e-300)), np.inf)


def discrete_adaboost(decisions, labels):
    """Freund and Schapire's AdaBoost for labels 0 and 1: yields (error, beta, normalised weights after the round)."""
    weights = np.full(len(labels), 1 / len(labels))
    for h in decisions:
        error = weights[h != labels].sum()
        beta = error / (1 - error)
        weights = weights * np.where(h == labels, beta, 1.0)
        weights = weights / weights.sum()
        yield error, beta, weights
