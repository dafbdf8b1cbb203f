"""Every picture can be drawn, and shows what it was given."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt

from upturn import plot
from upturn.meta import ClassTransformation
from upturn.metrics import calibration_table
from upturn.policy import UpliftCalibrator, gain_curve, overlap


def test_pictures():
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(600, 2)), rng.integers(0, 2, 600)
    y = (rng.random(600) < 0.4 + 0.2 * t * np.sign(X[:, 0])).astype(float)
    ax = plot.overlap(overlap(X, t), n_bins=12)
    assert ax.get_xlabel() == "probability of 1"
    assert len(ax.patches) == 2 * 12 + 2  # bars, and an outline for each arm
    table = calibration_table(y, X[:, 0], t, n_bins=4)
    assert len(plot.calibration(table).containers) == 1
    assert len(plot.calibration(calibration_table(y, X[:, 0], t, n_bins=4, interval=None)).collections) == 0
    model = UpliftCalibrator(ClassTransformation(), cv=2, random_state=0).fit(X, y, t)
    drawn = plot.calibration(model.table_)
    np.testing.assert_allclose(drawn.lines[-3].get_ydata(), model.table_["calibrated"])
    curve = gain_curve(y, X[:, 0], t, n_bootstrap=20)
    np.testing.assert_allclose(plot.gain(curve).lines[0].get_ydata(), 1000 * curve.gain)
    assert plot.gain(curve).get_ylabel() == "gain per 1,000 people"
    money = gain_curve(40 * y, X[:, 0], t, n_bootstrap=20)
    np.testing.assert_allclose(plot.gain(money).lines[0].get_ydata(), money.gain)
    assert plot.gain(money).get_ylabel() == "gain per person"
    np.testing.assert_allclose(plot.calibration(table).lines[0].get_ydata(), 1000 * table["observed"])
    assert plot.calibration(table).get_ylabel() == "observed effect per 1,000 people"
    bare = plot.gain(gain_curve(y, X[:, 0], t, interval=None))
    assert not bare.collections
    assert len(plot.gain(curve).collections) == 1
    priced = gain_curve(y, X[:, 0], t, cost=1, value=10, n_bootstrap=20)
    assert plot.gain(priced).get_ylabel() == "net profit per person"
    plt.close("all")
