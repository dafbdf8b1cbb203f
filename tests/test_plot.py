"""Pictures: what is drawn is what was computed, on the axes given or on new ones."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt

from upturn import metrics, plot


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def experiment(n=400, arms=2):
    rng = np.random.default_rng(0)
    treatment = rng.integers(0, arms, n)
    score = rng.normal(size=(n, arms - 1) if arms > 2 else n)
    return (rng.random(n) < 0.4).astype(int), score, treatment


@pytest.mark.parametrize("name", ["uplift", "qini", "toc", "modified_uplift"])
def test_curves(name):
    y, score, treatment = experiment()
    _, axes = plt.subplots()
    scores = {"one": score, "two": -score}
    ax = getattr(plot, f"{name}_curves")(y, scores, treatment, ax=axes, random_state=0, n_bootstrap=20)
    assert ax is axes
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert {"one", "two"} <= set(lines)
    assert lines["one"].get_linestyle() != lines["two"].get_linestyle()
    assert len(ax.collections) == 2  # bands
    expected = getattr(metrics, f"{name}_curve")(y, -score, treatment)
    scale = 1 if name == "modified_uplift" else 1000
    x, height = lines["two"].get_data()
    np.testing.assert_allclose(height, scale * expected(x / 100), atol=1e-9)
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    ax.figure.canvas.draw()


def test_new_axes_one_model_and_no_band():
    y, score, treatment = experiment()
    ax = plot.uplift_curves(y, score, treatment, interval=None)
    assert not ax.collections
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["model", "random"]


def test_long_curves_are_thinned():
    y, score, treatment = experiment(9000)
    line = plot.uplift_curves(y, score, treatment, interval=None).get_lines()[0]
    assert len(line.get_xdata()) <= 400
    assert line.get_xdata()[-1] == 100


def test_modified_uplift_curves_of_several_arms():
    y, score, treatment = experiment(arms=3)
    ax = plot.modified_uplift_curves(y, score, treatment, n_bootstrap=20, random_state=0)
    line = {line.get_label(): line for line in ax.get_lines()}["random"]
    shares = [(treatment == k).sum() / (treatment > 0).sum() for k in (1, 2)]
    end = sum(share * y[treatment == k].mean() for share, k in zip(shares, (1, 2), strict=True))
    np.testing.assert_allclose(line.get_ydata(), [y[treatment == 0].mean(), end])


def test_lift_curves():
    y, score, treatment = experiment()
    labels = np.where(treatment == 1, "mail", "control")
    ax = plot.lift_curves(y, score, labels, random_state=0, n_bootstrap=20)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["treated (mail)", "control", "random"]
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert lines["control"].get_ydata()[-1] == pytest.approx(1000 * y[treatment == 0].mean())
    assert len(ax.collections) == 2  # bands
    mine = treatment == 1
    curve = metrics.lift_curve(y[mine], score[mine], interval=0.95, random_state=0, n_bootstrap=20)
    top = ax.collections[0].get_paths()[0].vertices[:, 1].max()
    assert top == pytest.approx(1000 * curve.high.max() / mine.sum())
    assert not plot.lift_curves(y, score, labels, interval=None).collections


def test_deciles():
    y, score, treatment = experiment()
    ax = plot.deciles(y, score, treatment, n_bins=5, random_state=0)
    table = metrics.decile_table(y, score, treatment, n_bins=5, random_state=0)
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], 1000 * table["observed"])


def test_score_distributions():
    _, score, treatment = experiment()
    ax = plot.score_distributions(score, treatment)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names[0].startswith("0 (")
    assert names[1].startswith("1 (")


def test_averaged_curves():
    y, score, treatment = experiment()
    mean = metrics.average_curves([metrics.uplift_curve(y, s, treatment) for s in (score, -score)], level=0.9)
    ax = plot.curves({"mean": mean}, ylabel="gain")
    assert len(ax.collections) == 1
