"""One round of boosting over the rows: how much weight each group has and gets wrong, and the new weights.

A treated row is right when the decision equals its outcome, a control row when it differs (equations (3) and (4) of the
uplift boosting paper), so a row is wrong when "decision equals outcome" differs from "is treated".
"""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import F8, U1, F8_out, I8_out, inner, kernel, void

_UNITS = 2.0**61  # of which weights are whole numbers when they are added up
UNIT = 1.0 / _UNITS


@inner
def _cell(decision, success, treated):
    """Which of four cells a row belongs to: 2 * treated + wrong. No branch: outcomes are as good as random here."""
    return 2 * treated + (np.uint8(decision == success) ^ treated)


@kernel(void, F8, U1, U1, U1, I8_out)
def tally(weight, decision, success, treated, cells):
    """Write the weight of right and wrong control rows, then of right and wrong treated rows, as multiples of ``UNIT``.

    Weights add up to 1, or a little more. Sums are integers, so they do not depend on the order of rows or on where they lie.
    """
    cells[:] = 0
    for i in range(len(weight)):
        cells[_cell(decision[i], success[i], treated[i])] += np.int64(weight[i] * _UNITS + 0.5)


@kernel(void, U1, U1, U1, F8, F8_out)
def reweigh(decision, success, treated, factors, weight):
    """Multiply the weights of rows by the factor of their cell, in the order of ``tally`` (steps 2f and 2g)."""
    for i in range(len(weight)):
        weight[i] *= factors[_cell(decision[i], success[i], treated[i])]
