"""One round of boosting over the rows: how much weight each group has and gets wrong, and the new weights.

A treated row is right when the decision equals its outcome, a control row when it differs (equations (3) and (4) of the
uplift boosting paper), so a row is wrong when "decision equals outcome" differs from "is treated".
"""

from __future__ import annotations

from upturn.kernels._jit import F8, U1, F8_out, f8, inner, kernel, void


@inner
def _is_wrong(decision, success, treated):
    return (decision == success) != (treated != 0)


@kernel(void, F8, U1, U1, U1, F8_out)
def tally(weight, decision, success, treated, sums):
    """Write the weight of control and of treatment, then the weight each of them gets wrong."""
    sums[:] = 0.0
    for i in range(len(weight)):
        group = 1 if treated[i] else 0
        sums[group] += weight[i]
        if _is_wrong(decision[i], success[i], treated[i]):
            sums[2 + group] += weight[i]


@kernel(void, U1, U1, U1, f8, f8, F8_out)
def reweigh(decision, success, treated, beta_treatment, beta_control, weight):
    """Multiply the weights of rows that are right by their group's coefficient (steps 2f and 2g)."""
    for i in range(len(weight)):
        if not _is_wrong(decision[i], success[i], treated[i]):
            weight[i] *= beta_treatment if treated[i] else beta_control
