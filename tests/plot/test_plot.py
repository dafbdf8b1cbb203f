"""Pictures: what is drawn is what was computed, on the axes given or on new ones."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt

from upturn import metrics, plot
from upturn._results import number_text
from upturn.features import UMODLSelector
from upturn.trees import UpliftForest, UpliftTree


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
    x, height = lines["two"].get_data()
    np.testing.assert_allclose(height, 1000 * expected(x / 100), atol=1e-9)
    assert ax.get_xlabel()
    assert "per 1,000 people" in ax.get_ylabel()
    assert "95% bands" in ax.get_title()
    money = getattr(plot, f"{name}_curves")(0.5 * y, -score, treatment, interval=None)
    np.testing.assert_allclose(money.get_lines()[0].get_ydata(), height / 2000, atol=1e-9)
    assert "per person" in money.get_ylabel()
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
    np.testing.assert_allclose(line.get_ydata(), [1000 * y[treatment == 0].mean(), 1000 * end])


@pytest.mark.parametrize("name", ["uplift", "qini", "toc"])
def test_curves_of_several_arms(name):
    """A curve per arm, each against control, with the weights, clusters and responses of its rows."""
    y, score, treatment = experiment(600, arms=3)
    rng = np.random.default_rng(1)
    weight, groups = rng.uniform(1, 2, 600), np.arange(600) // 2
    options = {"sample_weight": weight, "groups": groups, "n_bootstrap": 10}
    if name != "uplift":
        options["response"] = rng.normal(size=(600, 3))
    ax = getattr(plot, f"{name}_curves")(y, score, treatment, **options)
    lines = {line.get_label(): line for line in ax.get_lines()}
    for k in (1, 2):
        rows = np.isin(treatment, [0, k])
        own = {} if name == "uplift" else {"response": options["response"][rows][:, [0, k]]}
        expected = getattr(metrics, f"{name}_curve")(
            y[rows], score[rows, k - 1], treatment[rows], sample_weight=weight[rows], **own
        )
        x, height = lines[str(k)].get_data()
        np.testing.assert_allclose(height, 1000 * expected(x / 100), atol=1e-6)
    both = getattr(plot, f"{name}_curves")(y, {"a": score, "b": -score}, treatment, interval=None)
    names = [text.get_text() for text in both.get_legend().get_texts()]
    assert names[:4] == ["a: 1", "a: 2", "b: 1", "b: 2"]


def test_many_models_are_told_apart_and_bands_are_chosen():
    y, score, treatment = experiment()
    rng = np.random.default_rng(0)
    scores = {f"model {j}": score + rng.normal(size=len(y)) for j in range(16)}
    ax = plot.uplift_curves(y, scores, treatment, n_bootstrap=10)
    assert not ax.collections  # sixteen bands would hide each other
    drawn = [line for line in ax.get_lines() if line.get_label().startswith("model")]
    assert len({(line.get_color(), str(line._unscaled_dash_pattern)) for line in drawn}) == 16
    assert ax.get_legend().get_bbox_to_anchor().x0 >= ax.bbox.x1 - 1  # beside the curves
    chosen = plot.uplift_curves(y, scores, treatment, bands=["model 3", "model 9"], n_bootstrap=10)
    assert len(chosen.collections) == 2
    with pytest.raises(ValueError, match="bands names 'forest'"):
        plot.uplift_curves(y, scores, treatment, bands="forest")
    for count in (17, 40):
        with pytest.raises(
            ValueError, match=rf"there are {count} curves to draw, and more than 16 .* choose some of them"
        ):
            plot.uplift_curves(y, {str(j): score for j in range(count)}, treatment, interval=None)


def test_importances_by_name():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X, arm = pd.DataFrame(rng.normal(size=(1500, 4)), columns=["age", "in_come", "$x$", "d"]), rng.integers(0, 2, 1500)
    y = rng.random(1500) < 0.4 + 0.3 * arm * np.sign(X["age"])
    model = UpliftForest(n_estimators=5, random_state=0).fit(X, y, arm)
    ax = plot.importances(model)
    order = np.argsort(-model.feature_importances_)
    assert [text.get_text() for text in ax.get_yticklabels()] == [X.columns[j] for j in order]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], model.feature_importances_[order])
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the largest on top
    few = plot.importances(model, n_features=2)
    assert few.get_yticklabels()[-1].get_text() == "2 others, together"
    assert few.get_title()
    assert few.get_xlabel()
    ax.figure.canvas.draw()
    with pytest.raises(TypeError, match="has no feature_importances_"):
        plot.importances(object())


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
    plain = plot.deciles(y, score, treatment, n_bins=5, interval=None)
    assert [text.get_text() for text in plain.get_legend().get_texts()] == ["predicted", "observed"]
    table = metrics.calibration_table(y, score, treatment, n_bins=5, random_state=0)
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], 1000 * table["observed"])
    arms, columns = np.arange(len(y)) % 3, np.column_stack([score, -score])
    both = plot.deciles(y, columns, arms, n_bins=4, n_bootstrap=10)
    table = metrics.calibration_table(y, columns, arms, n_bins=4, interval=None)
    np.testing.assert_allclose([bar.get_height() for bar in both.patches], 1000 * table["observed"])
    names = [text.get_text() for text in both.get_legend().get_texts()]
    assert names == ["1: predicted", "2: predicted", "1: observed, 95% interval", "2: observed, 95% interval"]
    assert "per person" in plot.deciles(0.5 * y, score, treatment, interval=None).get_ylabel()


def test_score_distributions():
    _, score, treatment = experiment()
    ax = plot.score_distributions(score, treatment)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names[0].startswith("0 (")
    assert names[1].startswith("1 (")


def test_averaged_curves():
    y, score, treatment = experiment()
    mean = metrics.average_curves([metrics.uplift_curve(y, s, treatment) for s in (score, -score)], interval=0.9)
    ax = plot.curves({"mean": mean}, ylabel="gain")
    assert len(ax.collections) == 1


def grown(n=4000, arms=("control", "mail"), seed=0, **options):
    rng = np.random.default_rng(seed)
    X, arm = rng.normal(size=(n, 3)), rng.integers(0, len(arms), n)
    y = (rng.random(n) < 0.4 + 0.3 * (arm > 0) * np.sign(X[:, 0]) * (X[:, 1] > 0)).astype(float)
    return UpliftTree(random_state=0, **options).fit(X, y, np.array(arms)[arm])


def boxes_of(ax):
    return [text for text in ax.texts if text.get_text() not in ("yes", "no")]


def test_a_tree_has_a_box_for_every_node():
    model = grown(max_depth=3)
    ax = plot.tree(model)
    boxes = [text.get_text() for text in boxes_of(ax)]
    assert len(boxes) == len(model.nodes_.feature)
    assert len(ax.texts) - len(boxes) == len(ax.lines) == len(boxes) - 1  # a branch to each but the root
    root = model.export_json()["root"]
    assert boxes[0].splitlines()[0] == f"effect {number_text(1000 * root['effect'][0], '+', 3)}"
    assert f"mail: {number_text(1000 * root['response'][1], '', 3)} (n={root['weight'][1]:,.0f})" in boxes[0]
    assert all("control: " in box and "(n=" in box for box in boxes)
    assert sum(box.endswith("?") for box in boxes) == np.sum(~model.nodes_.is_leaf)


def test_a_tree_is_drawn_down_to_a_depth():
    model = grown(max_depth=6, min_samples_arm=10)
    ax = plot.tree(model, max_depth=1)
    boxes = [text.get_text() for text in boxes_of(ax)]
    assert len(boxes) == 3
    below = [int(box.split("… ")[1].split()[0]) for box in boxes if "leaves" in box]
    assert sum(below) == model.nodes_.is_leaf.sum()
    assert model.nodes_.depth.max() > 3
    assert max(round(text.get_position()[0]) for text in boxes_of(plot.tree(model))) == 3  # the default
    assert len(boxes_of(plot.tree(model, max_depth=None))) == len(model.nodes_.feature)
    assert len(boxes_of(plot.tree(model, max_depth=0))) == 1


@pytest.mark.parametrize("on_given_axes", [False, True])
def test_boxes_of_a_tree_do_not_touch(on_given_axes):
    ax = plot.tree(grown(max_depth=4, min_samples_arm=10), ax=plt.subplots()[1] if on_given_axes else None, max_depth=4)
    ax.figure.canvas.draw()
    frames = [text.get_bbox_patch().get_window_extent() for text in boxes_of(ax)]
    assert len(frames) > 8
    for k, one in enumerate(frames):
        assert not any(one.overlaps(other) for other in frames[k + 1 :])
    inside = ax.figure.bbox
    assert all(inside.x0 <= f.x0 and f.x1 <= inside.x1 and inside.y0 <= f.y0 and f.y1 <= inside.y1 for f in frames)


def test_help_is_blue_and_harm_is_orange():
    for text in boxes_of(plot.tree(grown(max_depth=3))):
        red, _, blue, _ = text.get_bbox_patch().get_facecolor()
        assert (blue > red) == text.get_text().startswith("effect +")


def test_a_tree_of_several_arms_names_the_best():
    model = grown(arms=("control", "call", "mail"))
    for text, node in zip(boxes_of(plot.tree(model, max_depth=1)), walk(model.export_json()["root"], 1), strict=True):
        best = ("call", "mail")[int(np.argmax(node["effect"]))]
        assert text.get_text().startswith(f"effect of {best} {number_text(1000 * max(node['effect']), '+', 3)}\n")


def walk(node, depth):
    deeper = depth > 0 and "feature" in node
    return [node, *walk(node["left"], depth - 1), *walk(node["right"], depth - 1)] if deeper else [node]


def test_a_tree_with_many_levels_and_dollars():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    level, arm = rng.integers(0, 40, 4000), rng.integers(0, 2, 4000)
    y = (rng.random(4000) < 0.4 + 0.3 * arm * np.where(level % 2, 1, -1)).astype(float)
    X = pd.DataFrame({"price": [f"${value} - ${value + 1}" for value in level]})
    ax = plot.tree(UpliftTree(max_depth=1, random_state=0).fit(X, y, arm))
    root = boxes_of(ax)[0].get_text()
    assert " more}" in root.replace("\n", " ")
    assert root.count("$") == 8  # four levels are named, and no letter became mathematics
    assert not boxes_of(ax)[0].get_parse_math()
    assert max(len(line) for line in root.splitlines()) <= 30
    ax.figure.canvas.draw()


def test_a_tree_of_a_forest():
    rng = np.random.default_rng(0)
    X, arm = rng.normal(size=(800, 2)), rng.integers(0, 2, 800)
    forest = UpliftForest(n_estimators=4, random_state=0).fit(X, rng.integers(0, 2, 800), arm)
    first, last = (boxes_of(plot.tree(forest, k, max_depth=0))[0].get_text() for k in (0, 3))
    assert first != last
    assert number_text(1000 * forest.export_json(3)["root"]["effect"][0], "+", 3) in last
    with pytest.raises(ValueError, match="say which"):
        plot.tree(forest)
    with pytest.raises(ValueError, match="expected a number from 0 to 3"):
        plot.tree(forest, 4)
    with pytest.raises(ValueError, match="single tree"):
        plot.tree(grown(max_depth=1), 0)
    with pytest.raises(TypeError, match="expected a fitted UpliftTree"):
        plot.tree({})


def test_parts_of_a_feature():
    rng = np.random.default_rng(0)
    x, arm = rng.uniform(size=3000), rng.integers(0, 3, 3000)
    y = rng.random(3000) < np.where(x < 0.3, 0.2, 0.5 + 0.2 * arm * (x > 0.6))
    names = np.array(["control", "a", "b"])
    model = UMODLSelector().fit(np.column_stack([x, x]), y, names[arm])
    _, axes = plt.subplots()
    ax = plot.parts(model, 1, ax=axes)
    assert ax is axes
    name, part, labels = model.discretizer_.partition_of(1)
    assert part.n_parts == 3
    assert [tick.get_text() for tick in ax.get_xticklabels()] == labels
    assert ax.get_xlabel() == name
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["control", "a", "b"]
    for a, bars in enumerate(ax.containers):
        line, _, (ends,) = bars
        np.testing.assert_allclose(line.get_ydata(), 1000 * part.responses(np.array([0.0, 1.0]))[:, a])
        low, high = np.array(ends.get_segments())[:, :, 1].T
        p, n = part.responses(np.array([0.0, 1.0]))[:, a], part.counts[:, a].sum(axis=1)
        np.testing.assert_allclose((high - low) / 1000, 2 * 1.959964 * np.sqrt(p * (1 - p) / n), rtol=1e-6)
    widths = [patch.get_path().get_extents(patch.get_patch_transform()).width for patch in ax.patches]
    assert np.isclose(widths, 1).sum() == np.sum(~part.separate)
    assert not any(bars.has_yerr for bars in plot.parts(model, 0, interval=None).containers)
    with pytest.raises(TypeError, match="expected a fitted UMODLDiscretizer"):
        plot.parts(UpliftTree(), 0)
