"""The coefficients of a boosting round, and what they do to the bound on the training error."""

from __future__ import annotations

from typing import Literal

import numpy as np

Algorithm = Literal["adaboost", "balanced", "forgetting"]


def coefficients(
    algorithm: Algorithm, error_t: float, error_c: float, weight_t: float, weight_c: float
) -> tuple[float, float]:
    """β^T and β^C of Table 1 and Theorem 2, from the groups' errors and their shares of the weight."""
    if algorithm == "adaboost":  # equation (18)
        error = weight_t * error_t + weight_c * error_c
        beta = error / (1 - error)
        return beta, beta
    if algorithm == "forgetting":  # section 3.3
        return error_c / (1 - error_t), error_t / (1 - error_c)
    if (error_t < 0.5 and error_c < 0.5) or (error_t > 0.5 and error_c > 0.5):  # Theorem 2
        # The error nearer to one half gets AdaBoost's factor, the other group is kept in balance by equation (7).
        if abs(error_c - 0.5) <= abs(error_t - 0.5):
            beta_c = error_c / (1 - error_c)
        else:
            beta_c = (2 * error_t - error_c) / (1 - error_c)
        return (error_c - error_t + (1 - error_c) * beta_c) / (1 - error_t), beta_c
    return 1.0, 1.0


def bound_factor(
    error_t: float, error_c: float, weight_t: float, weight_c: float, beta_t: float, beta_c: float
) -> float:
    """What one round multiplies the bound (15) on the training error by: expression (16)."""
    correct = weight_t * (1 - error_t) * (1 - beta_t) + weight_c * (1 - error_c) * (1 - beta_c)
    return float((1 - correct) / np.sqrt(min(beta_t, beta_c)))
