"""A forest on Parquet files, on Dask and on Spark, beside the local fit of the same rows; each must be the same model.

    python benchmarks/bench_engines.py local parquet dask spark --rows 14000000    # one after the other
    python benchmarks/bench_engines.py parquet --rows 100000000                    # what does not fit into memory
    UPTURN_RIVALS=/path/to/bin/python python benchmarks/bench_engines.py local h2o lightgbm-dask ydf --rows 1000000 --trees 20

Each contestant is a process of its own, and what it finds joins ``benchmarks/engines.json`` under the size of the table. Times are wall time on two
cores, loading included, starting a cluster or session and compiling not. Besides: the most anonymous memory of one process, and for clusters the questions
asked of the rows (round trips) and the bytes of the answers that reach the driver, a tree. Tables are written once and kept in ``build/``. Rivals
(``engines_rivals.py``) run in the interpreter that ``UPTURN_RIVALS`` names.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import numpy as np
from _measure import BUILD, fresh_process, installed, report

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "engines.json"
FEATURES = [f"x{j}" for j in range(12)]
NEEDS = {"local": "polars", "parquet": "polars", "dask": "distributed", "spark": "pyspark"}
RIVALS = ("h2o", "lightgbm-dask", "ydf")
LIMITS = {"parquet": 1.7, "dask": 2.0, "spark": 3.5}  # of time, as multiples of the local fit
_FILE_ROWS, _FEWEST = 1_000_000, 4  # most rows of a file, and fewest files, so that all workers have something to do
_TEST_ROWS = 200_000
_SMALL = 20_000


# --- the table ---


def make_rows(n, seed):
    import polars as pl

    rng = np.random.default_rng([20, seed])
    X = rng.standard_normal((n, 12), np.float32)
    t = rng.integers(0, 2, n).astype(np.int8)
    y = (rng.random(n) < 1 / (1 + np.exp(2.0 - 0.3 * X[:, 1] - 0.5 * np.tanh(X[:, 0]) * t))).astype(np.int8)
    return pl.DataFrame({**{name: X[:, j] for j, name in enumerate(FEATURES)}, "t": t, "y": y})


def table(rows):
    """The folder of a table, which is written if it is not there."""
    folder = BUILD / f"engines-ids-{rows}"
    if not folder.exists():
        made = folder.with_suffix(".part")
        made.mkdir(parents=True, exist_ok=True)
        size = min(_FILE_ROWS, -(-rows // _FEWEST))
        for k, start in enumerate(range(0, rows, size)):
            rows_of_file = make_rows(min(size, rows - start), k).with_columns(
                id=np.arange(start, min(start + size, rows))
            )
            rows_of_file.write_parquet(made / f"part{k:03}.parquet")
        made.rename(folder)
    return folder


# --- contestants, each in a process of its own ---


def model(trees, depth):
    from upturn.trees import UpliftForest

    return UpliftForest(trees, max_depth=depth, random_state=0, n_jobs=2)


def local(folder, trees, depth):
    import polars as pl

    return model(trees, depth).fit(pl.read_parquet(folder / "*.parquet", columns=[*FEATURES, "t", "y"]), "y", "t")


def parquet(folder, trees, depth):
    from upturn import engines

    return engines.fit(model(trees, depth), folder / "*.parquet", "y", "t", features=FEATURES)


def dask(folder, trees, depth):
    import dask.dataframe as dd

    from upturn import engines

    return engines.fit(model(trees, depth), dd.read_parquet(str(folder / "*.parquet")), "y", "t", features=FEATURES)


def spark(folder, trees, depth):
    from pyspark.sql import SparkSession

    from upturn import engines

    frame = SparkSession.getActiveSession().read.parquet(str(folder))
    how = {"features": FEATURES, "row_id": "id"}  # Spark reads files in an order of its own
    return engines.fit(model(trees, depth), frame, "y", "t", **how)


def start(name):
    """A cluster of two workers, or a session of two threads; what ends it."""
    if name == "dask":
        from distributed import Client, LocalCluster

        client = Client(LocalCluster(2, processes=True, threads_per_worker=1, dashboard_address=None, memory_limit=0))
        return client.shutdown
    if name == "spark":
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


def run_one(name, rows, trees, depth):
    """Fit once, having fitted to a small table first; what it took and a number that tells models apart."""
    fit, stop = globals()[name], start(name)
    small, folder = table(_SMALL), table(rows)
    fit(small, 2, depth)
    with Memory() as memory:
        began, used = time.perf_counter(), _processor_time()
        fitted = fit(folder, trees, depth)
        seconds, used = time.perf_counter() - began, _processor_time() - used
    same = 0
    for part in ("feature", "cut", "left", "gain", "value", "weight"):
        same = zlib.crc32(np.ascontiguousarray(getattr(fitted.nodes_, part)).tobytes(), same)
    found = {
        "seconds": round(seconds, 2),
        "cpu_seconds": round(used, 2),
        "anonymous_gib": round(memory.most, 2),
        "model": same,
    }
    if name == "local":
        from upturn.metrics import auuc

        test = make_rows(_TEST_ROWS, 10**6)
        found["auuc"] = round(float(auuc(test["y"], fitted.predict(test.select(FEATURES)), test["t"])), 6)
    stop()
    return found


def run_traffic(name, rows, trees, depth):
    """Round trips and bytes of answers of a fit."""
    fit, stop = globals()[name], start(name)
    fit(table(_SMALL), 2, depth)  # which also loads what is counted
    with Traffic() as traffic:
        fit(table(rows), trees, depth)
    stop()
    return {"round_trips_a_tree": traffic.questions / trees, "megabytes_a_tree": round(traffic.bytes / trees / 1e6, 3)}


def run_rival(name, rows, trees, depth):
    python = os.environ.get("UPTURN_RIVALS", "").split(os.pathsep)[0]
    if not python:
        return None
    test = BUILD / "engines-test.parquet"
    if not test.exists():
        make_rows(_TEST_ROWS, 10**6).write_parquet(test)
    scores = BUILD / "engines-scores.npy"
    command = [python, str(HERE / "engines_rivals.py"), name, table(rows), test, scores, trees, depth]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    lines = [line for line in run.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise RuntimeError(f"{name} failed:\n{run.stderr[-2000:]}")
    found = json.loads(lines[-1].removeprefix("RESULT "))
    if scores.exists():
        import polars as pl

        from upturn.metrics import auuc

        held = pl.read_parquet(test)
        found["auuc"] = round(float(auuc(held["y"], np.load(scores), held["t"])), 6)
        scores.unlink()
    return found


# --- results ---


def keep(key, name, found):
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results.setdefault(key, {})[name] = {**results.get(key, {}).get(name, {}), **found}
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    return results[key]


def line(name, found, beside):
    if "seconds" not in found:
        return f"{name:<14} {found}"
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
    parser.add_argument("--traffic", action="store_true", help="count round trips and bytes instead of time")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    size = (args.rows, args.trees, args.depth)
    if args.one:
        report((run_traffic if args.traffic else run_one)(args.names[0], *size))
        return
    unknown = [name for name in args.names if name not in (*NEEDS, *RIVALS)]
    if unknown:
        parser.error(f"{unknown} are none of {', '.join((*NEEDS, *RIVALS))}")
    key = f"{args.rows} rows, {args.trees} trees of depth {args.depth}"
    for name in args.names:
        if name in RIVALS:
            found = run_rival(name, *size)
        elif installed(NEEDS[name]):
            more = ["--traffic"] if args.traffic else []
            options = ["--rows", args.rows, "--trees", args.trees, "--depth", args.depth, *more]
            found = fresh_process(__file__, name, "--one", *options)
        else:
            found = None
        if found is None:
            print(f"{name} is not installed")
            continue
        beside = keep(key, name, found)
        print(line(name, beside[name], beside), flush=True)


if __name__ == "__main__":
    main()
