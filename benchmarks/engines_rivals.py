"""Rivals of ``bench_engines.py``, run by an interpreter that has them: one fit, its time, and scores of a held-out table.

    python engines_rivals.py NAME FOLDER TEST.parquet SCORES.npy TREES DEPTH

h2o             H2O-3's Uplift DRF, the uplift forest of a cluster: two threads, as many bins
lightgbm-dask   one binary model of the outcome on Dask with two workers: no uplift, the same rows, trees and leaves
ydf             uplift random forest of Yggdrasil, in memory
"""

from __future__ import annotations

import glob
import json
import sys
import time

FEATURES = [f"x{j}" for j in range(12)]


def h2o(folder, test, trees, depth):
    import h2o as library
    from h2o.estimators.uplift_random_forest import H2OUpliftRandomForestEstimator

    library.init(nthreads=2, max_mem_size="6g", verbose=False)
    library.no_progress()
    try:
        began = time.perf_counter()
        frame = library.import_file(folder, pattern=r".*\.parquet")
        frame["t"], frame["y"] = frame["t"].asfactor(), frame["y"].asfactor()
        model = H2OUpliftRandomForestEstimator(
            ntrees=trees, max_depth=depth, nbins=255, mtries=6, sample_rate=0.3, treatment_column="t", min_rows=10,
            uplift_metric="Euclidean", seed=0,
        )  # fmt: skip
        model.train(FEATURES, "y", frame)
        seconds = time.perf_counter() - began
        scores = model.predict(library.import_file(test)).as_data_frame()["uplift_predict"].to_numpy()
    finally:
        library.cluster().shutdown()
    return seconds, scores


def lightgbm_dask(folder, test, trees, depth):
    import dask.dataframe as dd
    import lightgbm
    from distributed import Client, LocalCluster

    cluster = LocalCluster(2, processes=True, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        began = time.perf_counter()
        table = dd.read_parquet(f"{folder}/*.parquet").persist()
        model = lightgbm.DaskLGBMClassifier(
            n_estimators=trees, max_depth=depth, num_leaves=2**depth, max_bin=255, client=client
        )
        model.fit(table[FEATURES].to_dask_array(lengths=True), table["y"].to_dask_array(lengths=True))
        return time.perf_counter() - began, None


def ydf(folder, test, trees, depth):
    import pandas as pd
    import ydf as library

    began = time.perf_counter()
    table = pd.concat([pd.read_parquet(name) for name in sorted(glob.glob(f"{folder}/*.parquet"))], ignore_index=True)
    table[["t", "y"]] = table[["t", "y"]].astype(str)
    learner = library.RandomForestLearner(
        label="y", task=library.Task.CATEGORICAL_UPLIFT, uplift_treatment="t", num_trees=trees, max_depth=depth + 1,
        num_candidate_attributes_ratio=0.5, bootstrap_size_ratio=0.3, min_examples=10, num_threads=2,
    )  # fmt: skip
    model = learner.train(table, verbose=0)
    seconds = time.perf_counter() - began
    held = pd.read_parquet(test)
    held[["t", "y"]] = held[["t", "y"]].astype(str)
    return seconds, model.predict(held).reshape(len(held), -1)[:, -1]


def main(name, folder, test, scores, trees, depth):
    import numpy as np

    seconds, found = {"h2o": h2o, "lightgbm-dask": lightgbm_dask, "ydf": ydf}[name](
        folder, test, int(trees), int(depth)
    )
    if found is not None:
        np.save(scores, np.asarray(found, float))
    print("RESULT " + json.dumps({"seconds": round(seconds, 2)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
