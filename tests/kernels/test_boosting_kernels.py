"""The two passes of a boosting round, against the equations."""

import numpy as np

from upturn.kernels.boosting import UNIT, reweigh, tally


def test_a_round():
    rng = np.random.default_rng(0)
    weight = rng.random(50) / 50
    h, y, treated = (rng.integers(0, 2, 50).astype(np.uint8) for _ in range(3))
    wrong = np.where(treated == 1, h != y, h == y)  # equations (3) and (4)
    cells = np.empty(4, np.int64)
    tally(weight, h, y, treated, cells)
    np.testing.assert_allclose(
        cells * UNIT, [weight[(treated == g) & (wrong == w)].sum() for g in (0, 1) for w in (0, 1)], rtol=1e-14
    )
    after = weight.copy()
    reweigh(h, y, treated, np.array([0.5, 1.0, 0.25, 1.0]), after)  # steps 2f and 2g
    np.testing.assert_allclose(after, np.where(wrong, weight, weight * np.where(treated == 1, 0.25, 0.5)))
