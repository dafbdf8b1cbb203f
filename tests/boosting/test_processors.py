"""The same model on every make of processor: what decides is added up one after the other, not as BLAS likes it."""

import os
import subprocess
import sys
import zlib

import numpy as np

from upturn.boosting import UpliftBagging, UpliftBoosting
from upturn.trees import UpliftForest, UpliftTree


def fingerprints():
    """Of small ensembles, whose later members depend on the last digit of the weights."""
    rng = np.random.default_rng(0)
    X, t = rng.integers(0, 5, (150, 4)).astype(float), rng.integers(0, 2, 150)
    y = (rng.random(150) < 0.3 + 0.2 * t * (X[:, 0] > 2)).astype(float)
    models = [
        UpliftBoosting(UpliftTree(max_depth=depth), algorithm=algorithm, n_estimators=100, random_state=0)
        for algorithm in ("adaboost", "balanced", "forgetting")
        for depth in (1, 3)
    ]
    models += [UpliftBagging(n_estimators=10, random_state=0), UpliftForest(10, center=True, random_state=0)]
    return [zlib.crc32(model.fit(X, y, t).predict(X).tobytes()) for model in models]


def test_models_do_not_depend_on_how_blas_adds_up():
    """OpenBLAS takes the kernels of the processor it is told; other libraries of numpy make this test pass for nothing."""
    said = []
    for processor in ("Prescott", "Haswell", "SkylakeX"):
        environment = {**os.environ, "OPENBLAS_CORETYPE": processor}
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", __file__], env=environment, capture_output=True, text=True, check=True
        )
        said.append(ran.stdout)
    assert said[0] == said[1] == said[2] != ""


if __name__ == "__main__":
    print(*fingerprints())
