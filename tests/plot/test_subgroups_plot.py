"""The forest plot draws what the table says."""

import numpy as np
import pytest

import upturn as up

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture
def trial():
    rng = np.random.default_rng(0)
    group, t = rng.integers(0, 3, 600), rng.integers(0, 2, 600)
    return group, (rng.random(600) < 0.3 + 0.3 * t * (group == 1)).astype(int), t


@pytest.mark.parametrize("scale", ["difference", "ratio", "odds_ratio", "nnt"])
def test_squares_and_intervals(trial, scale):
    group, y, t = trial
    table = up.subgroups(group, None, y, t, scale=scale)
    ax = up.plot.subgroups(table)
    drawn = [float(points.get_offsets()[0, 0]) for points in ax.collections]
    unit = 1000 if scale in ("difference", "nnt") else 1  # rates
    expected = 1000 / table["effect"] if scale == "nnt" else unit * table["effect"]
    assert ("per 1,000 people" in ax.get_xlabel()) == (scale in ("difference", "nnt"))
    assert drawn == pytest.approx(expected)
    thick = [line.get_xdata() for line in ax.lines if line.get_linewidth() == 2]
    ends = (
        unit * np.sort([table["low"], table["high"]], axis=0)
        if scale != "nnt"
        else np.sort([1000 / table["low"], 1000 / table["high"]], axis=0)
    )
    assert np.array(thick) == pytest.approx(ends.T)
    assert [label.get_text() for label in ax.get_yticklabels()][-1] == "all rows  (600)"
    assert (ax.get_xscale() == "log") == (scale in ("ratio", "odds_ratio"))
    assert ax.yaxis_inverted()
    matplotlib.pyplot.close(ax.figure)


def test_several_arms_have_a_legend_and_grey_lines_can_be_left_out(trial):
    group, y, _ = trial
    table = up.subgroups(group, None, y, np.arange(600) % 3)
    ax = up.plot.subgroups(table, simultaneous=False)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["1", "2"]
    assert not [line for line in ax.lines if line.get_color() == "#aaaaaa"]
    assert up.plot.subgroups(table, ax=ax) is ax
    matplotlib.pyplot.close(ax.figure)
    with pytest.raises(TypeError, match=r"plot.subgroups got dict"):
        up.plot.subgroups({})
