"""Memory: what a metric needs beside the columns it is given."""

import tracemalloc

import numpy as np

from upturn.metrics import auuc


def test_an_interval_needs_no_more_than_twice_the_columns():
    rng = np.random.default_rng(0)
    n = 1_000_000
    y, score, treatment = (rng.random(n) < 0.1).astype(float), rng.normal(size=n), rng.integers(0, 2, n)
    auuc(y[:1000], score[:1000], treatment[:1000], interval=0.9, n_bootstrap=4)  # compiled
    tracemalloc.start()
    try:
        auuc(y, score, treatment, interval=0.95, n_bootstrap=20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= 2 * (y.nbytes + score.nbytes + treatment.nbytes)  # three times, the columns themselves included
