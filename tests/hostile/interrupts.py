"""Ctrl-C while something long runs: how many seconds until the caller has it.

``python -m hostile.interrupts NAME`` runs one task over and over, each time until SIGINT comes, and says when: the other side is
:func:`measure`. Clocks are the system's monotonic one, which all processes share.
"""

from __future__ import annotations

import functools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Task = Callable[[], Any]


@functools.cache
def table(n: int, p: int, real: bool = False) -> tuple[Any, Any, Any]:
    """An experiment with an effect in the first column; where time is short, of fewer rows."""
    n = n // int(os.environ.get("FEWER_ROWS", "1"))
    rng = np.random.default_rng(n + p)
    X, treatment = rng.normal(size=(n, p)), rng.integers(0, 2, n)
    chance = 0.3 + 0.2 * treatment * (X[:, 0] > 0) + 0.1 * (X[:, -1] > 0)
    return X, rng.normal(chance) if real else (rng.random(n) < chance).astype(float), treatment


def fitting(path: str, n: int, p: int, /, *, real: bool = False, **options: Any) -> Task:
    """A fit of a class, named by its module and name, to a table of that size."""
    data, model = table(n, p, real), made(path, **options)
    return lambda: model.fit(*data)


def made(path: str, **options: Any) -> Any:
    """An estimator by its module and name."""
    import importlib

    module, name = path.split(".")
    return getattr(importlib.import_module(f"upturn.{module}"), name)(**options)


def measuring(path: str, n: int, **options: Any) -> Task:
    """A function of outcomes, scores and treatments on so many rows."""
    import importlib

    X, y, treatment = table(n, 2)
    module, name = path.split(".")
    function = getattr(importlib.import_module(f"upturn.{module}"), name)
    return lambda: function(y, X[:, 0], treatment, **options)


def _compared() -> Task:
    import upturn

    X, y, t = table(100_000, 10)
    models = {"s": made("meta.SLearner"), "forest": made("trees.UpliftForest", n_estimators=50)}
    return lambda: upturn.model_selection.compare_models(models, X, y, t, random_state=0)


def _judged(name: str) -> Task:
    from upturn import metrics

    X, y, t = table(1_000_000, 3)
    return lambda: getattr(metrics, name)(y, {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}, t, n_bootstrap=1000)


def _checked() -> Task:
    import upturn

    X, y, t = table(1_000_000, 30)
    return lambda: upturn.check(X, y, t)


def _planned() -> Task:
    from upturn import policy

    X, y, t = table(2_000_000, 2)
    cost, value = np.abs(X[:, 1]), np.full(len(y), 10.0)
    return lambda: policy.target(X[:, 0], budget=1e5, cost=cost, value=value, y=y, treatment=t, n_bootstrap=2000)


def _weighed(name: str) -> Task:
    from upturn import policy

    X, _, t = table(1_000_000, 20)
    return lambda: getattr(policy, name)(X, t)


def _distance() -> Task:
    from upturn.svm import energy_distance

    X, _, _ = table(6_000_000, 4)
    return lambda: [energy_distance(X[:, 0], X[:, 1], exponent) for exponent in (1.0, 1.5, 1.0, 1.5)]


def _balanced() -> Task:
    from upturn.svm import score_balance

    X, _, t = table(6_000_000, 4)
    return lambda: [score_balance(X[:, 0], t) for _ in range(10)]


def _predicted(path: str, n: int, **options: Any) -> Task:
    model = made(path, **options).fit(*table(20_000, 10))
    X, _, _ = table(n, 10)
    return lambda: [model.predict(X) for _ in range(20)]


def _grouped() -> Task:
    import upturn

    _X, y, t = table(4_000_000, 4)
    group = (np.arange(len(y)) % 50).astype(float)
    return lambda: [upturn.subgroups(group, None, y, t, n_bins=50) for _ in range(20)]


def _piloted() -> Task:
    import upturn

    X, y, t = table(2_000_000, 2)
    return lambda: upturn.power(y, X[:, 0], t, effect=0.01, n_bootstrap=2000)


QUICK = (
    "UpliftTree",
    "UpliftSVM, RBF of many rows",
    "XLearner",
    "UMODLSelector",
    "auuc",
)  # in the tests, on fewer rows
TASKS: dict[str, Callable[[], Task]] = {
    "UpliftTree": lambda: fitting("trees.UpliftTree", 4_000_000, 20, max_depth=12),
    "UpliftForest": lambda: fitting("trees.UpliftForest", 500_000, 20),
    "UpliftForest, one tree of many rows": lambda: fitting("trees.UpliftForest", 4_000_000, 10, n_estimators=4),
    "UpliftForest, two threads": lambda: fitting("trees.UpliftForest", 500_000, 20, n_jobs=2),
    "CTSForest": lambda: fitting("trees.CTSForest", 500_000, 20),
    "UCTSForest": lambda: fitting("trees.UCTSForest", 500_000, 20),
    "UpliftBagging": lambda: fitting("boosting.UpliftBagging", 300_000, 20),
    "UpliftBoosting": lambda: fitting("boosting.UpliftBoosting", 500_000, 20),
    "UpliftSVM": lambda: fitting("svm.UpliftSVM", 1_000_000, 30),
    "UpliftSVM, p = 2": lambda: fitting("svm.UpliftSVM", 2_000_000, 30, p=2.0),
    "UpliftSVM, p = 1.5": lambda: fitting("svm.UpliftSVM", 1_000_000, 30, p=1.5),
    "UpliftSVM, RBF": lambda: fitting("svm.UpliftSVM", 3_000, 10, kernel="rbf"),
    "UpliftSVM, RBF of many rows": lambda: fitting("svm.UpliftSVM", 20_000, 10, kernel="rbf"),
    "UpliftSVM, polynomials": lambda: fitting("svm.UpliftSVM", 3_000, 10, kernel="poly"),
    "UpliftSVM, balanced": lambda: fitting("svm.UpliftSVM", 600_000, 20, balance=1.0),
    "UpliftSVM, many columns": lambda: fitting("svm.UpliftSVM", 5_000, 3_000),
    "UpliftSVMCV": lambda: fitting("svm.UpliftSVMCV", 100_000, 20),
    "DifferentialSVM": lambda: fitting("svm.DifferentialSVM", 200_000, 30),
    "DifferentialSVM, many columns": lambda: fitting("svm.DifferentialSVM", 2_000, 3_000),
    "StandardSVM": lambda: fitting("svm.StandardSVM", 2_000_000, 30),
    "TwoCostSVM": lambda: fitting("svm.TwoCostSVM", 2_000_000, 30),
    "SubgroupSVM": lambda: fitting("svm.SubgroupSVM", 4_000_000, 30),
    "SLearner": lambda: fitting("meta.SLearner", 1_000_000, 20),
    "TLearner": lambda: fitting("meta.TLearner", 1_000_000, 20),
    "XLearner": lambda: fitting("meta.XLearner", 500_000, 20),
    "DRLearner": lambda: fitting("meta.DRLearner", 500_000, 20),
    "RLearner": lambda: fitting("meta.RLearner", 500_000, 20, real=True),
    "TreatedOnly": lambda: fitting("meta.TreatedOnly", 2_000_000, 20),
    "ClassTransformation": lambda: fitting("meta.ClassTransformation", 4_000_000, 20),
    "OneVsControl": lambda: fitting("meta.OneVsControl", 500_000, 20),
    "UpliftCalibrator": lambda: fitting("policy.UpliftCalibrator", 500_000, 20, estimator=made("meta.SLearner")),
    "UMODLDiscretizer": lambda: fitting("features.UMODLDiscretizer", 2_000_000, 10),
    "UMODLSelector": lambda: fitting("features.UMODLSelector", 6_000_000, 10),
    "UMODLSelector, pairs": lambda: fitting("features.UMODLSelector", 200_000, 20, pairs=True),
    "FilterSelector": lambda: fitting("features.FilterSelector", 4_000_000, 20),
    "auuc": lambda: measuring("metrics.auuc", 4_000_000, interval=0.95, n_bootstrap=2000),
    "autoc": lambda: measuring("metrics.autoc", 4_000_000, interval=0.95, n_bootstrap=2000),
    "qini": lambda: measuring("metrics.qini", 4_000_000, interval=0.95, n_bootstrap=2000),
    "uplift_at": lambda: measuring("metrics.uplift_at", 4_000_000, interval=0.95, n_bootstrap=2000),
    "uplift_curve": lambda: measuring("metrics.uplift_curve", 4_000_000, interval=0.95, n_bootstrap=2000),
    "calibration_table": lambda: measuring("metrics.calibration_table", 4_000_000, n_bootstrap=5000),
    "evaluate": lambda: _judged("evaluate"),
    "compare": lambda: _judged("compare"),
    "energy_distance": _distance,
    "score_balance": _balanced,
    "check": _checked,
    "compare_models": _compared,
    "policy.target": _planned,
    "policy.gain_curve": lambda: measuring("policy.gain_curve", 4_000_000, n_bootstrap=2000),
    "policy.overlap": lambda: _weighed("overlap"),
    "subgroups": _grouped,
    "power of a pilot": _piloted,
    "predict of a forest": lambda: _predicted("trees.UpliftForest", 2_000_000),
    "predict of an RBF machine": lambda: _predicted("svm.UpliftSVM", 500_000, kernel="rbf", n_components=500),
    "predict of an X-learner": lambda: _predicted("meta.XLearner", 2_000_000),
}  # fmt: skip


def serve(name: str) -> None:
    """Run a task until SIGINT comes, once for every line of stdin; print "start", then how it ended and when."""
    import warnings

    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    task = TASKS[name]()
    task()  # imports, loads and compiles what it needs: not what is measured
    print(json.dumps(["ready", time.monotonic()]), flush=True)
    for _ in sys.stdin:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            print(json.dumps(["start", time.monotonic()]), flush=True)
            task()
            ended = "ended"
        except KeyboardInterrupt:
            ended = "interrupted"
        now = time.monotonic()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print(json.dumps([ended, now]), flush=True)


def measure(name: str, moments: int, seed: int = 0, longest: float = 4.0, limit: float = 60.0) -> list[dict[str, Any]]:
    """Interrupt a task at random moments: each time, when it was, whether it ran still, and how long it went on."""
    draw = random.Random(f"{name} {seed}")
    process = subprocess.Popen(
        [sys.executable, "-m", "hostile.interrupts", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    found = []
    try:
        json.loads(process.stdout.readline())
        for _ in range(moments):
            process.stdin.write("go\n")
            process.stdin.flush()
            _, started = json.loads(process.stdout.readline())
            moment = draw.uniform(0.1, longest)
            time.sleep(max(0.0, started + moment - time.monotonic()))
            sent = time.monotonic()
            process.send_signal(signal.SIGINT)
            ended, when = json.loads(process.stdout.readline())
            found.append(
                {
                    "moment": round(moment, 2),
                    "ended": ended,
                    "seconds": round(when - sent, 3),
                    "ran": round(when - started, 2),
                }
            )
    finally:
        process.kill()
        process.communicate()  # which also closes its pipes
    return found


if __name__ == "__main__":
    serve(sys.argv[1])
