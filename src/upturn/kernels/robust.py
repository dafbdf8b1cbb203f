"""Doubly robust readings: what every row's outcome would be under some arm.

With μ the outcome expected under the arm and p the chance of the arm,

    μ + 1[the row was in that arm] (y - μ) / p,

whose mean is right when either μ or p is. With μ = 0 it is plain inverse propensity weighting.
"""

from __future__ import annotations

from upturn.kernels._jit import F8, F8_2, U1, F8_out, kernel, void


@kernel(void, F8, U1, U1, F8_2, F8_2, F8_out)
def robust_values(y, arm, code, response, chance, out):
    """The reading of row i under arm ``code[i]``; ``code``, ``response`` and ``chance`` may have one row for all."""
    one_code, one_response, one_chance = len(code) == 1, len(response) == 1, len(chance) == 1
    for i in range(len(y)):
        asked = code[0 if one_code else i]
        mu = response[0 if one_response else i, asked]
        out[i] = mu
        if arm[i] == asked:
            out[i] += (y[i] - mu) / chance[0 if one_chance else i, asked]
