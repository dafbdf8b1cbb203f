"""A forest or a machine on Parquet files, on Dask and on Spark, beside the local fit of the same rows; each must be the same model.

    python benchmarks/bench_engines.py local parquet dask spark --rows 14000000    # one after the other
    python benchmarks/bench_engines.py parquet --rows 100000000                    # what does not fit into memory
    python benchmarks/bench_engines.py local h2o ydf lightgbm_dask --rows 1000000 --trees 20
    python benchmarks/bench_engines.py dask_levels spark_levels --rows 14000000    # as where no worker can hold a copy of all rows
    python benchmarks/bench_engines.py local dask --machine --rows 5000000         # UpliftSVM(p=2) on 20 columns

Each contestant is a process of its own, and what it finds joins ``benchmarks/engines.json`` under the size of the table. Times are wall time on two
cores, loading included, starting a cluster or session and compiling not. Besides: the most anonymous memory of one process, and for clusters the questions
asked of the rows (round trips) and the bytes of the answers that reach the driver, a tree. Tables are written once and kept in ``build/``. H2O and ydf are those
of ``benchmarks/rivals``, in environments that ``make bench-install`` makes; LightGBM on Dask is one binary model of the outcome on the same rows.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from _measure import BUILD, fresh_process, installed, report

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "engines.json"
FOREST_COLUMNS, MACHINE_COLUMNS = 12, 20
NEEDS = {
    "local": "polars", "parquet": "polars", "dask": "distributed", "spark": "pyspark", "dask_levels": "distributed", "spark_levels": "pyspark",
    "lightgbm_dask": "lightgbm",
}  # fmt: skip
RIVALS = {  # file in benchmarks/rivals, its model, and parameters that ask for the same forest
    "h2o": (
        "h2o",
        "h2o-uplift-forest",
        lambda trees, depth: {
            "ntrees": trees, "max_depth": depth, "nbins": 255, "mtries": 6, "sample_rate": 0.3, "min_rows": 10, "uplift_metric": "kl",  # by "euclidean" it hardly splits
        },
    ),
    "ydf": (
        "ydf",
        "ydf-uplift-forest",
        lambda trees, depth: {
            "num_trees": trees, "max_depth": depth + 1, "num_candidate_attributes_ratio": 0.5, "bootstrap_size_ratio": 0.3, "min_examples": 10,
        },
    ),
}  # fmt: skip
LIMITS = {
    "parquet": 1.7,
    "dask": 2.0,
    "spark": 3.5,
}  # of a forest's time, as multiples of the local fit; for a machine Dask's is the same
_FILE_ROWS, _FEWEST = 1_000_000, 4  # most rows of a file, and fewest files, so that all workers have something to do
_TEST_ROWS = 200_000
_SMALL = 20_000


# --- the table ---


class Task(NamedTuple):
    """What is learnt, from how many rows: a forest, or with ``depth`` 0 a machine."""

    rows: int
    trees: int
    depth: int

    @property
    def features(self):
        return [f"x{j}" for j in range(FOREST_COLUMNS if self.depth else MACHINE_COLUMNS)]

    @property
    def key(self):
        what = f"{self.trees} trees of depth {self.depth}" if self.depth else f"a machine of {MACHINE_COLUMNS} columns"
        return f"{self.rows} rows, {what}"

    def model(self):
        from upturn.svm import UpliftSVM
        from upturn.trees import UpliftForest

        if self.depth:
            return UpliftForest(self.trees, max_depth=self.depth, random_state=0, n_jobs=2)
        return UpliftSVM(p=2.0)

    def folder(self):
        """The folder of the table, which is written if it is not there."""
        folder = BUILD / f"engines-ids-{self.rows}{'' if self.depth else '-machine'}"
        if not folder.exists():
            made = folder.with_suffix(".part")
            made.mkdir(parents=True, exist_ok=True)
            size = min(_FILE_ROWS, -(-self.rows // _FEWEST))
            for k, start in enumerate(range(0, self.rows, size)):
                end = min(start + size, self.rows)
                make_rows(self.features, end - start, k).with_columns(id=np.arange(start, end)).write_parquet(
                    made / f"part{k:03}.parquet"
                )
            made.rename(folder)
        return folder


def make_rows(features, n, seed):
    import polars as pl

    rng = np.random.default_rng([20, seed])
    X = rng.standard_normal((n, len(features)), np.float32)
    t = rng.integers(0, 2, n).astype(np.int8)
    y = (rng.random(n) < 1 / (1 + np.exp(2.0 - 0.3 * X[:, 1] - 0.5 * np.tanh(X[:, 0]) * t))).astype(np.int8)
    return pl.DataFrame({**{name: X[:, j] for j, name in enumerate(features)}, "t": t, "y": y})


# --- contestants, each in a process of its own ---


def local(task):
    import polars as pl

    table = pl.read_parquet(task.folder() / "*.parquet", columns=[*task.features, "t", "y"])
    return task.model().fit(table, "y", "t")


def parquet(task):
    from upturn import engines

    return engines.fit(task.model(), task.folder() / "*.parquet", "y", "t", features=task.features)


def dask(task):
    import dask.dataframe as dd

    from upturn import engines

    table = dd.read_parquet(str(task.folder() / "*.parquet"))
    return engines.fit(task.model(), table, "y", "t", features=task.features)


def spark(task):
    from pyspark.sql import SparkSession

    from upturn import engines

    frame = SparkSession.getActiveSession().read.parquet(str(task.folder()))
    how = {"features": task.features, "row_id": "id"}  # Spark reads files in an order of its own
    return engines.fit(task.model(), frame, "y", "t", **how)


def dask_levels(task):
    return in_levels(dask, task)


def spark_levels(task):
    return in_levels(spark, task)


def in_levels(fit, task):
    """What workers do that cannot hold a copy of all rows: they grow trees a level at a time."""
    from upturn.engines import _grow

    _grow.MOST_COPIED = 0
    return fit(task)


def lightgbm_dask(task):
    import dask.dataframe as dd
    from lightgbm import DaskLGBMClassifier

    table = dd.read_parquet(str(task.folder() / "*.parquet")).persist()
    model = DaskLGBMClassifier(
        n_estimators=task.trees, max_depth=task.depth, num_leaves=2**task.depth, max_bin=255, verbose=-1
    )
    return model.fit(table[task.features].to_dask_array(lengths=True), table["y"].to_dask_array(lengths=True))


def start(name):
    """A cluster of two workers, or a session of two threads; what ends it."""
    if "dask" in name:
        from distributed import Client, LocalCluster

        client = Client(LocalCluster(2, processes=True, threads_per_worker=1, dashboard_address=None, memory_limit=0))
        return client.shutdown
    if "spark" in name:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
            .config("spark.driver.memory", "8g").config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.maxResultSize", "0").config("spark.log.level", "OFF").getOrCreate()
        )  # fmt: skip
        return session.stop
    return lambda: None


class Memory:
    """The most anonymous memory, in GiB, that this process or one of those it started held at once."""

    def __enter__(self):
        self.most, self._stop = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self):
        while not self._stop.wait(0.1):
            self.most = max(self.most, *map(_anonymous, _family()))

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


def _family():
    """This process and those below it."""
    found = [os.getpid()]
    for pid in found:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                found += map(int, task.read_text().split())
            except OSError:  # it has ended
                continue
    return found


def _anonymous(pid):
    try:
        words = Path(f"/proc/{pid}/status").read_text().split("RssAnon:")
        return int(words[1].split()[0]) / 2**20
    except (OSError, IndexError):
        return 0.0


def _processor_time():
    """Seconds that this process and those it started have used."""
    ticks = 0
    for pid in _family():
        try:
            words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += sum(map(int, words[11:15]))
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


class Traffic:
    """Questions asked and bytes of merged answers, while a fit runs."""

    def __enter__(self):
        self.questions = self.bytes = 0
        self._told = {}
        for name in [name for name in sys.modules if name.startswith("upturn.engines._")]:
            if "told" in vars(sys.modules[name]):
                self._told[name] = sys.modules[name].told
                sys.modules[name].told = self._count
        return self

    def _count(self, result):
        self.questions += 1
        self.bytes += len(pickle.dumps(result))
        return self._told["upturn.engines._places"](result)

    def __exit__(self, *_):
        for name, real in self._told.items():
            sys.modules[name].told = real


def run_one(name, task):
    """Fit once, having fitted to a small table first; what it took and what tells models apart."""
    fit, stop = globals()[name], start(name)
    task.folder()
    fit(task._replace(rows=_SMALL, trees=2))
    with Memory() as memory:
        began, used = time.perf_counter(), _processor_time()
        fitted = fit(task)
        seconds, used = time.perf_counter() - began, _processor_time() - used
    found = {
        "seconds": round(seconds, 2),
        "cpu_seconds": round(used, 2),
        "anonymous_gib": round(memory.most, 2),
    }
    if hasattr(fitted, "nodes_"):
        found["model"] = 0
        for part in ("feature", "cut", "left", "gain", "value", "weight"):
            found["model"] = zlib.crc32(np.ascontiguousarray(getattr(fitted.nodes_, part)).tobytes(), found["model"])
    if hasattr(fitted, "dual_gap_"):
        found["model"] = float(f"{fitted.objective_:.8g}")  # sums of floats differ in their last digits
    if name == "local":
        from upturn.metrics import auuc

        test = make_rows(task.features, _TEST_ROWS, 10**6)
        found["auuc"] = round(float(auuc(test["y"], fitted.predict(test.select(task.features)), test["t"])), 6)
    stop()
    return found


def run_traffic(name, task):
    """Round trips and bytes of answers of a fit."""
    fit, stop = globals()[name], start(name)
    fit(task._replace(rows=_SMALL, trees=2))  # which also loads what is counted
    with Traffic() as traffic:
        fit(task)
    stop()
    trees = task.trees if task.depth else 1
    return {"round_trips_a_tree": traffic.questions / trees, "megabytes_a_tree": round(traffic.bytes / trees / 1e6, 3)}


def run_rival(name, task):
    """A forest of another library, in its own environment; None if that is not there.

    Its processor time has handing over the rows and predicting in it, H2O's the start of its server as well; where training alone can
    be told apart, its seconds by the clock on two threads are found, too, with a server that is warm and has the rows.
    """
    import polars as pl

    from upturn.metrics import auuc

    sys.path.insert(0, str(HERE.parent))
    from benchmarks.rivals._call import call, files, installed

    contestant, model, parameters = RIVALS[name]
    if contestant not in installed():
        return None
    read, held = pl.read_parquet(task.folder() / "*.parquet"), make_rows(task.features, _TEST_ROWS, 10**6)
    X, asked = (table.select(task.features).to_numpy() for table in (read, held))
    given = {"X": X, "y": read["y"].to_numpy().astype(float), "t": read["t"].to_numpy()}
    found = call(contestant, "MODELS", model, {**given, "asked": asked, **parameters(task.trees, task.depth)})
    score = np.asarray(found.result, float).reshape(len(held), -1)[:, -1]
    measured = round(float(auuc(held["y"], score, held["t"])), 6)
    taken = {"cpu_seconds": round(found.seconds, 2), "gib": round(found.extra / 2**30, 2), "auuc": measured}
    if hasattr(files()[contestant], "TIMES"):
        trained = call(contestant, "TIMES", model, {**given, **parameters(task.trees, task.depth)})
        taken["train_seconds"] = round(float(trained.result), 2)
    return taken


# --- results ---


def keep(key, name, found):
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results.setdefault(key, {})[name] = {**results.get(key, {}).get(name, {}), **found}
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    return results[key]


def line(name, found, beside):
    if "seconds" not in found:
        base = beside.get("local", {}).get("cpu_seconds")
        times = (
            f"{found['cpu_seconds'] / base:5.2f} x local's processor time  " if base and "cpu_seconds" in found else ""
        )
        return f"{name:<14} {times}{found}"
    words = [f"{name:<14} {found['seconds']:8.1f} s"]
    base = beside.get("local")
    if base is not None and name != "local":
        limit = f" (at most {LIMITS[name]})" if name in LIMITS else ""
        words.append(f"{found['seconds'] / base['seconds']:5.2f} x local{limit}")
        if "cpu_seconds" in found and "cpu_seconds" in base:
            words.append(f"{found['cpu_seconds'] / base['cpu_seconds']:5.2f} x its processor time")
        if "model" in found:
            words.append("same model" if found["model"] == base["model"] else "ANOTHER MODEL")
    rest = {key: value for key, value in found.items() if key not in ("seconds", "model")}
    return "  ".join([*words, *(f"{key} {value}" for key, value in rest.items())])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["local", "parquet", "dask", "spark"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--machine", action="store_true", help="UpliftSVM(p=2) on 20 columns instead of a forest")
    parser.add_argument("--traffic", action="store_true", help="count round trips and bytes instead of time")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    task = Task(args.rows, args.trees, 0 if args.machine else args.depth)
    if args.one:
        report((run_traffic if args.traffic else run_one)(args.names[0], task))
        return
    unknown = [name for name in args.names if name not in (*NEEDS, *RIVALS)]
    if unknown:
        parser.error(f"{unknown} are none of {', '.join((*NEEDS, *RIVALS))}")
    if not task.depth and (not args.machine or any(name in (*RIVALS, "lightgbm_dask") for name in args.names)):
        parser.error("trees have a depth of at least 1, and other libraries have no such machine")
    for name in args.names:
        if name in RIVALS:
            found = run_rival(name, task)
        elif installed(NEEDS[name]):
            more = [f"--{flag}" for flag in ("traffic", "machine") if getattr(args, flag)]
            options = ["--rows", args.rows, "--trees", args.trees, "--depth", args.depth, *more]
            found = fresh_process(__file__, name, "--one", *options)
        else:
            found = None
        if found is None:
            print(f"{name} is not installed")
            continue
        beside = keep(task.key, name, found)
        print(line(name, beside[name], beside), flush=True)


if __name__ == "__main__":
    main()
