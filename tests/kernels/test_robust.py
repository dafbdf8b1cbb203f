"""Doubly robust readings against the formula, written out row by row."""

import numpy as np
import pytest

from naive import metrics as naive_metrics
from upturn.kernels.robust import robust_values


@pytest.mark.parametrize("rows", [1, 40])
def test_readings_equal_naive_twin(rows):
    rng = np.random.default_rng(rows)
    y, arm = rng.normal(size=40), rng.integers(0, 3, 40).astype(np.uint8)
    response, chance = rng.normal(size=(rows, 3)), rng.dirichlet([3, 3, 3], rows)
    out = np.empty(40)
    for code in (np.array([2], np.uint8), rng.integers(0, 3, 40).astype(np.uint8)):
        robust_values(y, arm, code, response, chance, out)
        expected = [
            naive_metrics.robust_value(y[i], arm[i], code[i % len(code)], response[i % rows], chance[i % rows])
            for i in range(40)
        ]
        np.testing.assert_allclose(out, expected, rtol=1e-14)
