"""Trees and forests beside their rivals, as ratios in one run.

    python benchmarks/bench_forest.py [--only a,b,c,d,e,f,quality,start] [--repeats 3] [--trees 200] [--json FILE]

Cases: (a) wide and honest against LightGBM's rf, (b) long and shallow against LightGBM's gbdt, (c) causalml's CTS,
(d) ydf's uplift forest, (e) prediction, (f) the size of Criteo, quality on a known effect, start-up. A rival that is not
installed is skipped and said so. Everything runs on one thread unless a line says otherwise; times are minima of CPU
seconds over repeats, rivals interleaved with upturn.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

RESULTS: dict[str, dict[str, float]] = {}


def say(case: str, **numbers: float) -> None:
    RESULTS.setdefault(case, {}).update({name: float(value) for name, value in numbers.items()})
    print(f"({case}) " + ", ".join(f"{name} {value:.4g}" for name, value in numbers.items()), flush=True)


def caches() -> str:
    """Sizes of the first core's caches: what a histogram costs hangs on them."""
    folders = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"))
    found = {}
    for folder in folders:
        level, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            found[f"L{level}{'d' if kind == 'Data' else ''}"] = size
    return ", ".join(f"{name} {size}" for name, size in found.items()) or "unknown here"


def best_of(repeats: int, *jobs) -> list[float]:
    """Minimum CPU seconds of each job, the jobs taking turns. All are on one thread, and a busy machine disturbs less."""
    times = [np.inf] * len(jobs)
    for _ in range(repeats):
        for k, job in enumerate(jobs):
            start = time.process_time()
            job()
            times[k] = min(times[k], time.process_time() - start)
    return times


def rival(name: str):
    try:
        return __import__(name)
    except ImportError:
        print(f"    {name} is not installed: skipped")
        return None


def soil_of(X, y, arm, n_arms):
    from upturn.trees._bins import Bins
    from upturn.trees._growth import Soil

    bins = Bins.learn(X, [None] * X.shape[1])
    return Soil.prepare(bins, bins.encode(X), arm.astype(np.uint8), n_arms, y)


def lightgbm_per_tree(lgb, X, y, parameters, repeats, few=3, many=9):
    """A job that times (many - few) trees, so that set-up cancels; returns (seconds a tree, leaves a tree)."""
    base = {"num_threads": 1, "verbose": -1, "max_bin": 255, **parameters}
    best = np.inf
    for layout in ("force_col_wise", "force_row_wise"):
        settings = {**base, layout: True}
        data = lgb.Dataset(X, y, params=settings).construct()
        few_time, many_time = best_of(
            repeats, partial(lgb.train, settings, data, few), partial(lgb.train, settings, data, many)
        )
        best = min(best, (many_time - few_time) / (many - few))
    model = lgb.train(settings, data, few)
    return best, np.mean([tree["num_leaves"] for tree in model.dump_model()["tree_info"]])


def upturn_per_tree(model, soil, binary, repeats, trees=4):
    plan = model._sampling()
    rules = model._rules(soil, binary, plan.share)
    grown = [soil.grow(rules, plan, np.uint64(0), tree) for tree in range(trees)]
    (seconds,) = best_of(repeats, lambda: [soil.grow(rules, plan, np.uint64(0), tree) for tree in range(trees)])
    return seconds / trees, np.mean([tree.is_leaf.sum() for tree in grown])


def wide_and_honest(repeats: int) -> None:
    from upturn.trees import UCTSForest

    rng = np.random.default_rng(0)
    n, p = 128_000, 50
    X, arm = rng.uniform(0, 10, (n, p)), rng.integers(0, 4, n)
    real = np.sin(X[:, 4]) + 0.4 * np.take_along_axis(X, arm[:, None], 1)[:, 0] / 2 + rng.normal(size=n)
    lgb = rival("lightgbm")
    for kind, y in (("real", real), ("binary", (real > np.median(real)).astype(float))):
        soil = soil_of(X, y, arm, 3)
        model = UCTSForest(max_features=25, min_samples_split=100, pi=0.0)
        mine, leaves = upturn_per_tree(model, soil, kind == "binary", repeats)
        say(f"a, {kind} y", upturn_ms=1e3 * mine, leaves=leaves)
        if lgb:
            rf = {"boosting": "rf", "objective": "regression", "bagging_fraction": 0.5, "bagging_freq": 1,
                  "feature_fraction_bynode": 0.5, "num_leaves": round(leaves), "min_data_in_leaf": 20}  # fmt: skip
            theirs, their_leaves = lightgbm_per_tree(lgb, X, y, rf, repeats)
            mine = min(mine, upturn_per_tree(model, soil, kind == "binary", repeats)[0])
            say(f"a, {kind} y", lightgbm_ms=1e3 * theirs, lightgbm_leaves=their_leaves, ratio=mine / theirs)


def long_and_shallow(repeats: int) -> None:
    from upturn.trees import UpliftForest

    rng = np.random.default_rng(0)
    n, p = 1_000_000, 12
    X, arm = rng.uniform(size=(n, p)), rng.integers(0, 2, n)
    lgb = rival("lightgbm")
    binary = (rng.random(n) < 0.3 + 0.3 * X[:, 0] * arm).astype(float)
    for kind, y in (("binary", binary), ("real", binary + rng.normal(size=n))):
        soil = soil_of(X, y, arm, 1)
        model = UpliftForest(
            criterion="cts", max_depth=8, max_features=None, min_share=0.1, max_samples=1.0, min_samples_arm=0
        )
        mine, leaves = upturn_per_tree(model, soil, kind == "binary", repeats, trees=2)
        say(f"b, {kind} y", upturn_ms=1e3 * mine, leaves=leaves)
        if lgb:
            gbdt = {"objective": "regression", "max_depth": 8, "num_leaves": round(leaves), "learning_rate": 0.1}
            theirs, their_leaves = lightgbm_per_tree(lgb, X, y, gbdt, repeats, 2, 5)
            mine = min(mine, upturn_per_tree(model, soil, kind == "binary", repeats, trees=2)[0])
            say(f"b, {kind} y", lightgbm_ms=1e3 * theirs, lightgbm_leaves=their_leaves, ratio=mine / theirs)


def against_causalml_cts(repeats: int) -> None:
    from upturn.trees import CTSForest

    if rival("causalml") is None:
        return
    from causalml.inference.tree import UpliftRandomForestClassifier

    rng = np.random.default_rng(0)
    n, p = 32_000, 50
    X, arm = rng.uniform(0, 10, (n, p)), rng.integers(0, 4, n)
    y = (rng.random(n) < 0.3 + 0.04 * np.take_along_axis(X, arm[:, None], 1)[:, 0]).astype(int)
    labels = np.array(["control", "a", "b", "c"])[arm]
    theirs = UpliftRandomForestClassifier(
        n_estimators=1, max_features=25, max_depth=30, min_samples_leaf=50, min_samples_treatment=10, evaluationFunction="CTS",
        control_name="control", n_jobs=1, random_state=0,
    )  # fmt: skip
    mine = CTSForest(40, max_features=25, min_samples_split=50, random_state=0)
    mine.fit(X, y, labels)
    seconds, causalml_seconds = best_of(repeats, lambda: mine.fit(X, y, labels), lambda: theirs.fit(X, labels, y))
    say("c", upturn_seconds_a_tree=seconds / 40, causalml_seconds_a_tree=causalml_seconds, ratio=causalml_seconds * 40 / seconds,
        leaves=mine.nodes_.is_leaf.sum() / 40)  # fmt: skip


def one_arm(n: int, p: int, seed: int):
    """A binary outcome with a smooth, nonlinear effect of known size."""
    rng = np.random.default_rng(seed)
    X, arm = rng.normal(size=(n, p)), rng.integers(0, 2, n)
    effect = 0.15 * np.tanh(X[:, 0] + 0.5 * X[:, 1]) + 0.08 * (X[:, 2] > 0) - 0.05 * np.abs(X[:, 3])
    base = 0.4 + 0.1 * np.tanh(X[:, 4]) + 0.1 * np.sin(X[:, 5])
    y = (rng.random(n) < np.clip(base + effect * arm, 0, 1)).astype(int)
    return X, y, arm, effect


def against_ydf(repeats: int) -> None:
    from upturn.trees import UpliftForest

    X, y, arm, _ = one_arm(100_000, 20, 0)
    mine = UpliftForest(10, max_depth=6, max_features=None, bootstrap=True, max_samples=1.0, random_state=0)
    mine.fit(X, y, arm)
    ydf = rival("ydf")
    if ydf is None:
        return
    ydf.verbose(0)
    learner, data = ydf_learner(ydf, X, y, arm, 10, 6)
    upturn_seconds, ydf_seconds = best_of(repeats, lambda: mine.fit(X, y, arm), lambda: learner.train(data))
    say("d", upturn_seconds=upturn_seconds, ydf_seconds=ydf_seconds, ratio=ydf_seconds / upturn_seconds,
        leaves=mine.nodes_.is_leaf.sum() / 10)  # fmt: skip


def ydf_learner(ydf, X, y, arm, trees, depth):
    data = {f"x{j}": X[:, j].astype(np.float32) for j in range(X.shape[1])}
    data |= {"y": y.astype(str), "t": arm.astype(str)}
    learner = ydf.RandomForestLearner(
        label="y", uplift_treatment="t", task=ydf.Task.CATEGORICAL_UPLIFT, num_trees=trees, max_depth=depth + 1, num_threads=1,
        compute_oob_performances=False,
    )  # fmt: skip
    return learner, data


def prediction(repeats: int) -> None:
    from upturn.trees import UCTSForest

    rng = np.random.default_rng(0)
    X, arm = rng.uniform(0, 10, (64_000, 50)), rng.integers(0, 4, 64_000)
    y = np.take_along_axis(X, arm[:, None], 1)[:, 0] + rng.normal(size=len(X))
    model = UCTSForest(100, max_features=25, random_state=0).fit(X, y, arm)
    rows = rng.uniform(0, 10, (20_000, 50))
    (seconds,) = best_of(repeats, lambda: model.predict_response(rows))
    say("e", ns_per_row_and_tree=1e9 * seconds / (len(rows) * 100), leaves=model.nodes_.is_leaf.sum() / 100)


def size_of_criteo() -> None:
    """In a process of its own, so that its peak memory is its own."""
    code = (
        "import numpy as np, time, resource\n"
        "from upturn.trees import UpliftForest\n"
        "rng = np.random.default_rng(0)\n"
        "n = 14_000_000\n"
        "X = rng.random((n, 12))\n"
        "arm = (rng.random(n) < 0.85).astype(np.uint8)\n"
        "y = (rng.random(n) < 0.04 + 0.02 * X[:, 0] * arm).astype(np.uint8)\n"
        "start = time.perf_counter()\n"
        "model = UpliftForest(50, max_depth=8, max_features=None, n_jobs=2, random_state=0).fit(X, y, arm)\n"
        "seconds = time.perf_counter() - start\n"
        "memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20\n"
        "print(seconds, memory, model.nodes_.is_leaf.sum() / 50)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    say("f", seconds_for_50_trees_on_2_threads=float(out[0]), peak_gib=float(out[1]), leaves=float(out[2]))


def steps(X):
    """Uniform features: a staircase in one, a box in two others; the base response has a hump elsewhere."""
    effect = 0.05 * np.floor(4 * X[:, 0]) - 0.1 + 0.12 * ((X[:, 1] > 0.6) & (X[:, 2] < 0.7))
    return 0.35 + 0.2 * np.exp(-20 * (X[:, 3] - 0.5) ** 2) + 0.1 * X[:, 4], effect


def product(X):
    """Correlated normal features: a product of two sigmoids, as in causal forests' papers, under a strong linear base."""
    effect = 0.3 / ((1 + np.exp(-3 * X[:, 0])) * (1 + np.exp(-3 * X[:, 5]))) - 0.05
    return 0.1 + 0.55 / (1 + np.exp(-X[:, 1] + X[:, 2])), effect


def many_small(X):
    """Heavy-tailed features: ten small linear effects, none of which matters much alone."""
    effect = 0.03 * np.clip(X[:, :10], -3, 3) @ np.resize([1.0, -1.0, 0.5], 10)
    return 0.5 + 0.1 * np.sin(2 * X[:, 11]), np.clip(effect, -0.3, 0.3)


def conversion(X):
    """Uniform features and a rare outcome, as in marketing: a few points of effect for some, none or a loss for others."""
    effect = 0.06 * X[:, 0] * (X[:, 1] > 0.4) - 0.02 * (X[:, 2] > 0.8)
    return 0.02 + 0.06 * X[:, 3] * X[:, 4] + 0.02 * (X[:, 5] > 0.7), effect


def comparison(X):
    """Skewed features: the effect hangs on which of two is the larger, and on a third."""
    effect = 0.12 * np.tanh(np.log(X[:, 0] / X[:, 1])) + 0.08 * (X[:, 2] > 2.0)
    return 0.4 + 0.15 * np.tanh(np.log(X[:, 3])) - 0.1 * (X[:, 4] > 1.0), effect


def simulation(kind: str, n: int, p: int, seed: int):
    """A binary outcome under one arm, and its true effect."""
    if kind == "smooth":
        return one_arm(n, p, seed)
    rng = np.random.default_rng(seed)
    if kind == "conversion":
        X, function = rng.random((n, p)), conversion
    elif kind == "comparison":
        X, function = np.exp(rng.normal(size=(n, p))), comparison
    elif kind == "steps":
        X, function = rng.random((n, p)), steps
    elif kind == "product":
        X, function = np.sqrt(0.7) * rng.normal(size=(n, p)) + np.sqrt(0.3) * rng.normal(size=(n, 1)), product
    else:
        X, function = rng.standard_t(4, (n, p)), many_small
    arm = rng.integers(0, 2, n)
    base, effect = function(X)
    low, high = np.clip(base, 0, 1), np.clip(base + effect, 0, 1)
    return X, (rng.random(n) < np.where(arm, high, low)).astype(int), arm, high - low


# Seeds of training and test data. Defaults were chosen on other draws of the first four; the last two were never looked at.
SIMULATIONS = {
    "smooth": (1, 2), "steps": (11, 12), "product": (21, 22), "many_small": (31, 32), "conversion": (41, 42),
    "comparison": (51, 52),
}  # fmt: skip


def quality(trees: int, kinds: list[str]) -> None:
    """Correlation with the true effect."""
    for kind in kinds:
        quality_on(kind, trees, *SIMULATIONS[kind])
    results = [RESULTS[f"quality, {kind}"] for kind in kinds]
    names = [name for name in results[0] if name.endswith("_correlation")]
    say("quality, mean", **{name: np.mean([result[name] for result in results]) for name in names})


def quality_on(kind: str, trees: int, seed: int, test_seed: int) -> None:
    from upturn.trees import UCTSForest, UpliftForest

    X, y, arm, _ = simulation(kind, 100_000, 20, seed)
    fresh, _, _, truth = simulation(kind, 20_000, 20, test_seed)

    def report(name, seconds, predicted):
        say(
            f"quality, {kind}",
            **{f"{name}_correlation": np.corrcoef(np.ravel(predicted), truth)[0, 1], f"{name}_seconds": seconds},
        )

    for name, model in (
        ("upturn", UpliftForest(trees, random_state=0)),
        ("upturn_ucts", UCTSForest(trees, random_state=0)),
    ):
        start = time.process_time()
        model.fit(X, y, arm)
        report(name, time.process_time() - start, model.predict(fresh))
    ydf = rival("ydf")
    if ydf:
        ydf.verbose(0)
        learner, data = ydf_learner(ydf, X, y, arm, trees, 16)
        start = time.process_time()
        fitted = learner.train(data)
        seconds = time.process_time() - start
        effect = fitted.predict({f"x{j}": fresh[:, j].astype(np.float32) for j in range(20)})
        # ydf numbers the arms by how frequent they are, so the sign of its effect is arbitrary: take the better one
        report("ydf", seconds, np.ravel(effect) * np.sign(np.corrcoef(np.ravel(effect), truth)[0, 1]))
    if rival("causalml"):
        from causalml.inference.tree import CausalRandomForestRegressor

        forest = CausalRandomForestRegressor(n_estimators=trees, n_jobs=1, random_state=0, min_samples_leaf=50)
        start = time.process_time()
        forest.fit(X, treatment=arm, y=y.astype(float))
        report("causalml_causal_forest", time.process_time() - start, forest.predict(fresh))
    if rival("econml"):
        from econml.grf import CausalForest

        forest = CausalForest(n_estimators=trees, random_state=0, n_jobs=1)
        start = time.process_time()
        forest.fit(X, arm[:, None], y.astype(float))
        report("econml_causal_forest", time.process_time() - start, forest.predict(fresh))


def start_up() -> None:
    """Seconds of the first fit and predict in a fresh process, beyond imports: with a cold and with a warm cache."""
    code = (
        "import time, numpy as np\n"
        "from upturn.trees import UpliftForest\n"
        "rng = np.random.default_rng(0)\n"
        "X, t, y = rng.normal(size=(500, 4)), rng.integers(0, 2, 500), rng.normal(size=500)\n"
        "start, cpu = time.perf_counter(), time.process_time()\n"
        "m = UpliftForest(4, ci_group_size=2, max_samples=0.5, bootstrap=False, random_state=0).fit(X, y, t)\n"
        "m.predict(X), m.apply(X), m.predict_interval(X)\n"
        "print(time.perf_counter() - start, time.process_time() - cpu)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        for state in ("cold", "warm", "warm_again"):
            out = subprocess.run(
                [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
            )
            seconds, cpu = map(float, out.stdout.split())
            say("start", **{f"{state}_seconds": seconds, f"{state}_cpu_seconds": cpu})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="a,b,c,d,e,f,quality,start")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--trees", type=int, default=200, help="of every forest in the quality case; a multiple of 4")
    parser.add_argument("--simulations", default=",".join(SIMULATIONS), help="of the quality case")
    parser.add_argument("--json")
    options = parser.parse_args()
    cases = {
        "a": lambda: wide_and_honest(options.repeats),
        "b": lambda: long_and_shallow(options.repeats),
        "c": lambda: against_causalml_cts(options.repeats),
        "d": lambda: against_ydf(options.repeats),
        "e": lambda: prediction(options.repeats),
        "f": size_of_criteo,
        "quality": lambda: quality(options.trees, options.simulations.split(",")),
        "start": start_up,
    }
    print(f"caches of a core: {caches()}")
    for name in options.only.split(","):
        cases[name]()
    print(f"peak memory of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(RESULTS, file, indent=2)


if __name__ == "__main__":
    main()
