"""One round of boosting over the rows: how much weight each group has and gets wrong, and the new weights.

A treated row is right when the decision equals its outcome, a control row when it differs (equations (3) and (4) of the
uplift boosting paper), so a row is wrong when "decision equals outcome" differs from "is treated".
"""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import F8, U1, F8_out, f8, inner, kernel, void


@inner
def _cell(decision, success, treated):
    """Which of four cells a row belongs to: 2 * treated + wrong. No branch: outcomes are as good as random here."""
    return 2 * treated + (np.uint8(decision == success) ^ treated)


@kernel(void, F8, U1, U1, U1, F8_out)
def tally(weight, decision, success, treated, cells):
    """Write the weight of right and wrong control rows, then of right and wrong treated rows."""
    cells[:] = 0.0
    for i in range(len(weight)):
        cells[_cell(decision[i], success[i], treated[i])] += weight[i]


@kernel(void, U1, U1, U1, f8, f8, F8_out)
def reweigh(decision, success, treated, beta_treatment, beta_control, weight):
    """Multiply the weights of rows that are right by their group's coefficient (steps 2f and 2g)."""
    factors = np.array([beta_control, 1.0, beta_treatment, 1.0])
    for i in range(len(weight)):
        weight[i] *= factors[_cell(decision[i], success[i], treated[i])]
