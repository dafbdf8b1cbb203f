"""What workers of Dask keep of a row while trees grow, and when the most is kept at once: of 12 float32 columns, without weights.

python benchmarks/bench_engine_states.py    # writes benchmarks/engine_states.json
"""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).resolve().parent / "engine_states.json"
ROWS, PIECES, COLUMNS, TREES, SHARE = 1_000_000, 4, 12, 10, 0.3


def held(dask_worker):
    """Bytes by kind of state; those of rows in the order of nodes, which a part keeps beside itself, as "orders"."""
    from dask.sizeof import sizeof

    from upturn.engines._numbers import Numbers, Raw
    from upturn.engines._parts import Part
    from upturn.engines._places import size_of

    found = Counter()
    for state in dask_worker.data.values():
        if isinstance(state, Part):
            found["orders"] += size_of(state.kept)
            found["Part"] += size_of(vars(state)) - size_of(state.kept)
        elif isinstance(state, Raw | Numbers):
            found[type(state).__name__] += sum(sizeof(one) for one in state)
    return found


def piece(k):
    """A partition."""
    import pandas as pd

    rng, n = np.random.default_rng(k), ROWS // PIECES
    columns = {f"x{j}": rng.normal(size=n).astype(np.float32) for j in range(COLUMNS)}
    return pd.DataFrame({**columns, "arm": rng.integers(0, 2, n).astype(np.int8), "y": rng.integers(0, 2, n).astype(np.int8)})  # fmt: skip


def main():
    """Fit a forest and look at the workers before codes are let go of, and before every level."""
    import dask
    import dask.dataframe as dd
    import distributed

    from upturn import engines
    from upturn.engines import _grow, _parts
    from upturn.trees import UpliftForest

    seen, forget, question = {"codes are made": [], "trees grow": []}, _parts.forget, _grow.LevelQuestion
    with (
        distributed.LocalCluster(n_workers=2, processes=True, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):

        def look(when):
            time.sleep(0.5)  # until workers have heard what they may let go of
            found = sum(client.run(held).values(), Counter())
            seen[when].append({kind: size / ROWS for kind, size in found.items()})

        _grow.MOST_COPIED = 0
        _parts.forget = lambda *places: [look("codes are made"), forget(*places)]
        _grow.LevelQuestion = lambda *asked: [look("trees grow"), question(*asked)][1]
        pieces = [dask.delayed(piece)(k) for k in range(PIECES)]
        table = dd.from_delayed(pieces, meta=piece(0).iloc[:0])
        engines.fit(UpliftForest(TREES, max_depth=5, max_samples=SHARE, random_state=0), table, "y", "arm")
    found = {when: max(looks, key=lambda one: sum(one.values())) for when, looks in seen.items()}
    RESULTS.write_text(json.dumps({"columns": COLUMNS, "trees": TREES, "share": SHARE, **found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
