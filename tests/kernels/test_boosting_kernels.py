"""The two passes of a boosting round, against the equations."""

import numpy as np

from upturn.kernels.boosting import reweigh, tally


def test_a_round():
    rng = np.random.default_rng(0)
    weight = rng.random(50)
    h, y, treated = (rng.integers(0, 2, 50).astype(np.uint8) for _ in range(3))
    wrong = np.where(treated == 1, h != y, h == y)  # equations (3) and (4)
    sums = np.empty(4)
    tally(weight, h, y, treated, sums)
    expected = [weight[treated == g].sum() for g in (0, 1)] + [weight[(treated == g) & wrong].sum() for g in (0, 1)]
    np.testing.assert_allclose(sums, expected)
    after = weight.copy()
    reweigh(h, y, treated, 0.25, 0.5, after)  # steps 2f and 2g
    np.testing.assert_allclose(after, np.where(wrong, weight, weight * np.where(treated == 1, 0.25, 0.5)))
