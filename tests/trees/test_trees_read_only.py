"""Trees of arrays that cannot be written: memory maps, frozen arrays, codes that were sent from elsewhere."""

from dataclasses import replace

import numpy as np
import pytest

from upturn._experiment import Experiment
from upturn._table import read_table
from upturn._target import read_target
from upturn.trees import CTSForest, UCTSForest, UpliftForest, UpliftTree
from upturn.trees._growth import Sampling


def frozen(array):
    array = np.array(array)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "model",
    [
        UpliftTree(max_depth=1, random_state=0),
        UpliftTree(prune=True, honest=True, random_state=0),
        UpliftForest(n_estimators=4, oob=True, ci_group_size=2, random_state=0),
        CTSForest(n_estimators=4, random_state=0),
        UCTSForest(n_estimators=4, random_state=0),
    ],
    ids=["stump", "pruned", "forest", "cts", "ucts"],
)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_read_only_tables_are_fitted_and_predicted(tmp_path, model, kind):
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(400, 4)).astype(kind), rng.integers(0, 2, 400)
    y, w = (rng.random(400) < 0.4 + 0.2 * t * (X[:, 0] > 0)).astype(float), rng.uniform(0.5, 2.0, 400)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for weight in (None, w):
        expected = model.fit(X, y, t, sample_weight=weight).predict(X)
        given = [frozen(y), frozen(t), None if weight is None else frozen(weight)]
        again = model.fit(mapped, given[0], given[1], sample_weight=given[2])
        np.testing.assert_array_equal(again.predict(mapped), expected)


def test_a_soil_of_read_only_arrays_grows_the_same_tree():
    """What a partition that was read from a file or sent over a wire consists of."""
    rng = np.random.default_rng(1)
    X, t = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
    y = rng.normal(size=300) + t * X[:, 0]
    matrix, schema = read_table(X)
    model = UpliftTree(random_state=0)
    soil, scale = model._soil(Experiment(matrix, schema, read_target(y, t)))
    still = replace(soil, codes=frozen(soil.codes), arm=frozen(soil.arm), words=frozen(soil.words))
    for depth in (1, 4):
        rule = model._rules(soil, scale.binary)._replace(max_depth=depth)
        one = soil.grow(rule, Sampling(), np.uint64(3), 0)
        two = still.grow(rule, Sampling(), np.uint64(3), 0)
        assert len(one.feature) > depth
        for name in one.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
