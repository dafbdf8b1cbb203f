"""A forest on Parquet files, on Dask and on Spark, beside the local fit of the same rows; each must be the same model.

    python benchmarks/bench_engines.py [--rows 1000000] [--trees 10] [--depth 8] [--only dask ...]

Times are wall time on two cores, loading included, starting a cluster or session not. Printed besides: questions asked of the rows (round trips) and bytes of
the answers that reach the driver, a tree.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _measure import installed, write_json

FEATURES = [f"x{j}" for j in range(12)]
FILES = 14


def write_table(folder, rows):
    import polars as pl

    rng = np.random.default_rng(0)
    for k in range(FILES):
        n = rows // FILES + (k < rows % FILES)
        X = rng.normal(size=(n, 12)).astype(np.float32)
        t = rng.integers(0, 2, n).astype(np.int8)
        y = (rng.random(n) < 1 / (1 + np.exp(2.0 - 0.3 * X[:, 1] - 0.5 * np.tanh(X[:, 0]) * t))).astype(np.int8)
        pl.DataFrame({**{name: X[:, j] for j, name in enumerate(FEATURES)}, "t": t, "y": y}).write_parquet(
            folder / f"part{k:02}.parquet"
        )


def model(args):
    from upturn.trees import UpliftForest

    return UpliftForest(args.trees, max_depth=args.depth, random_state=0, n_jobs=2)


def local(folder, args):
    import polars as pl

    table = pl.read_parquet(folder / "*.parquet")
    return model(args).fit(table.select(*FEATURES, "t", "y"), "y", "t")


def parquet(folder, args):
    from upturn import engines

    return engines.fit(model(args), folder / "*.parquet", "y", "t", features=FEATURES)


def dask(folder, args):
    import dask.dataframe as dd

    from upturn import engines

    return engines.fit(model(args), dd.read_parquet(str(folder / "*.parquet")), "y", "t", features=FEATURES)


def spark(folder, args):
    from pyspark.sql import SparkSession

    from upturn import engines

    table = SparkSession.getActiveSession().read.parquet(str(folder))
    return engines.fit(model(args), table, "y", "t", features=FEATURES)


def start(name):
    """A cluster of two workers, or a session of two threads, that has compiled what it needs."""
    if name == "dask":
        from distributed import Client, LocalCluster

        return Client(LocalCluster(2, processes=True, threads_per_worker=1, dashboard_address=None, memory_limit=0))
    if name == "spark":
        from pyspark.sql import SparkSession

        return (
            SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
            .config("spark.driver.memory", "6g").config("spark.driver.host", "127.0.0.1").getOrCreate()
        )  # fmt: skip
    return None


class Traffic:
    """Questions asked and bytes of merged answers, while a fit runs."""

    def __enter__(self):
        from upturn.engines import _places

        self.questions = self.bytes = 0
        self._told = {}
        for module in (name for name in sys.modules if name.startswith("upturn.engines._")):
            if "told" in vars(sys.modules[module]):
                self._told[module] = sys.modules[module].told
                sys.modules[module].told = self._count
        self._real = _places.told
        return self

    def _count(self, result):
        self.questions += 1
        self.bytes += len(pickle.dumps(result))
        return result

    def __exit__(self, *_):
        for module, told in self._told.items():
            sys.modules[module].told = told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--trees", type=int, default=10)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=["parquet", "dask", "spark"])
    args = parser.parse_args()
    needs = {"parquet": "polars", "dask": "distributed", "spark": "pyspark"}
    contestants = [name for name in args.only if installed(needs[name])]
    found = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_table(folder, args.rows)
        local(folder, argparse.Namespace(trees=2, depth=args.depth))  # compiles
        for name in ("local", *contestants):
            session = start(name)
            fit = globals()[name]
            if session is not None:
                fit(folder, argparse.Namespace(trees=2, depth=args.depth))
            times = []
            for _ in range(args.repeats):
                began = time.perf_counter()
                fitted = fit(folder, args)
                times.append(time.perf_counter() - began)
            found[name] = {"seconds": min(times)}
            if name == "local":
                whole = fitted
            else:
                same = all(
                    np.array_equal(getattr(fitted.nodes_, part), getattr(whole.nodes_, part))
                    for part in ("feature", "cut", "left", "gain", "value", "weight")
                )
                found[name] |= {"ratio": found[name]["seconds"] / found["local"]["seconds"], "same": same}
            if session is not None:
                with Traffic() as traffic:
                    fit(folder, args)
                found[name] |= {
                    "questions": traffic.questions,
                    "bytes_a_tree": traffic.bytes / args.trees,
                }
                (session.shutdown if name == "dask" else session.stop)()
            print(name, found[name], flush=True)
    write_json("bench_engines", {"rows": args.rows, "trees": args.trees, "depth": args.depth, **found})


if __name__ == "__main__":
    main()
