"""H2O-3: a distributed uplift forest in Java, for outcomes of 0 and 1 and one arm; here on one thread of one machine."""

import time
from contextlib import contextmanager

import numpy as np

REQUIRES = ("h2o==3.46.0.12", "pandas")
TREES, DEPTH = 20, 8


_open = []  # the server that several calls share


@contextmanager
def running(threads=1):
    """A server for the calls inside; one that is there already is taken, and emptied."""
    import h2o

    if _open:
        try:
            yield
        finally:
            h2o.remove_all()
        return
    from h2o.utils.progressbar import ProgressBar

    h2o.init(nthreads=int(threads), verbose=False)
    h2o.no_progress()
    ProgressBar.MIN_PROGRESS_CHECK_INTERVAL = 0.02  # seconds; it would wait .2 before it asks whether a job is done
    _open.append(True)
    try:
        yield
    finally:
        _open.clear()
        process = h2o.connection().local_server
        h2o.cluster().shutdown()
        while process is not None and process.is_running():  # else the next one finds this one, which is about to end
            time.sleep(0.05)


@contextmanager
def server(threads, X, y, t):
    """A server that has the rows: (names of features, its table)."""
    import h2o
    import pandas as pd

    with running(threads):
        names = [f"x{j}" for j in range(X.shape[1])]
        table = h2o.H2OFrame(pd.DataFrame(X, columns=names).assign(y=y.astype(int), t=t.astype(int)))
        table["y"], table["t"] = table["y"].asfactor(), table["t"].asfactor()
        yield names, table


def uplift_forest(X, y, t, asked, seed=0, **parameters):
    import h2o
    import pandas as pd
    from h2o.estimators import H2OUpliftRandomForestEstimator

    if not set(np.unique(y)) <= {0.0, 1.0}:
        raise ValueError("takes outcomes of 0 and 1 only")
    with server(1, X, y, t) as (names, table):
        model = H2OUpliftRandomForestEstimator(treatment_column="t", seed=int(seed), **parameters)
        model.train(x=names, y="y", training_frame=table)
        given = h2o.H2OFrame(pd.DataFrame(asked, columns=names).assign(t=np.arange(len(asked)) % 2))
        given["t"] = given["t"].asfactor()
        return model.predict(given).as_data_frame()["uplift_predict"].to_numpy()


def trees_alone(X, y, t, repeats=3, threads=2, **parameters):
    """Seconds by the clock of training alone, least of several on a server that is warm and has the rows."""
    from h2o.estimators import H2OUpliftRandomForestEstimator

    taken = []
    with server(threads, X, y, t) as (names, table):
        for _ in range(int(repeats) + 1):
            model = H2OUpliftRandomForestEstimator(treatment_column="t", seed=1, **parameters)
            start = time.perf_counter()
            model.train(x=names, y="y", training_frame=table)
            taken.append(time.perf_counter() - start)
    return min(taken[1:])


def forest(X, y, t, asked):
    return uplift_forest(X, y, t, asked, ntrees=TREES, max_depth=DEPTH, uplift_metric="euclidean")


JOBS = {"forest": forest}
MODELS = {"h2o-uplift-forest": uplift_forest}
SHARED = running
TIMES = {"h2o-uplift-forest": trees_alone}


def _draw(rng):
    return {
        "ntrees": int(rng.integers(20, 200)),
        "max_depth": int(rng.integers(2, 16)),
        "min_rows": int(rng.integers(5, 200)),
        "uplift_metric": str(rng.choice(["kl", "euclidean", "chi_squared"])),
    }


DRAWS = dict.fromkeys(MODELS, _draw)
