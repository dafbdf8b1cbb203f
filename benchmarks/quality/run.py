"""Fit every contestant on every split of every set, and write what came out."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"


def run(set_names, models, splits, jobs, path):
    """Add rows to the file at ``path``; rows of the same set and model from an earlier run are replaced."""
    from benchmarks.quality.contestants import CONTESTANTS
    from benchmarks.quality.rivals import available
    from benchmarks.quality.sets import load

    unknown = [model for model in models if model not in CONTESTANTS]
    if unknown:
        raise SystemExit(f"no contestants are called {unknown}: there are {sorted(CONTESTANTS)}")
    models = available(models)
    # Largest first, so that the last job to end is a short one.
    tasks = [
        (name, k)
        for name in sorted(set_names, key=lambda name: -load(name).rows)
        for k in range(load(name).splits(splits))
    ]
    rows = []
    if jobs == 1:
        for task in tasks:
            rows += _watched(measure(*task, models), task)
    else:
        with ProcessPoolExecutor(jobs, initializer=_one_thread) as pool:
            for task, found in zip(
                tasks, pool.map(measure, *zip(*tasks, strict=True), [models] * len(tasks)), strict=True
            ):
                rows += _watched(found, task)
    again = {(row["set"], row["model"]) for row in rows}
    if path.exists():
        rows += [row for row in read(path) if (row["set"], row["model"]) not in again]
    rows.sort(key=lambda row: (row["set"], row["model"], row["split"]))
    write(path, rows)


_SHARED = ("set", "half", "simulated", "model")
_TRUTH = ("correlation", "rank_correlation", "share", "policy")


def write(path, rows):
    """A line for every set and model, with a list over splits of each number: small, and a difference can be read."""
    import numpy as np

    import upturn

    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in _SHARED), []).append(row)
    lines = []
    for shared, mine in groups.items():
        keys = dict.fromkeys(key for row in mine for key in row if key not in _SHARED)
        lines.append(dict(zip(_SHARED, shared, strict=True)) | {key: [row.get(key) for row in mine] for key in keys})
        if "failed" in keys and all("failed" in row for row in mine):  # in the same words on every split, or nearly
            lines[-1]["failed"] = mine[0]["failed"]
    path.parent.mkdir(parents=True, exist_ok=True)
    head = json.dumps({"upturn": upturn.__version__, "numpy": np.__version__})
    body = ",\n".join("  " + json.dumps(line, separators=(",", ":")) for line in lines)
    path.write_text(f'{{"versions": {head},\n "results": [\n{body}\n ]}}\n')


def read(path):
    """The rows of a file, one for every set, model and split."""
    found = json.loads(path.read_text())
    if "rows" in found:
        return found["rows"]
    rows = []
    for line in found["results"]:
        shared = {key: line[key] for key in _SHARED}
        lists = {key: values for key, values in line.items() if key not in _SHARED}
        for i in range(len(line["split"])):
            row = {key: values if isinstance(values, str) else values[i] for key, values in lists.items()}
            rows.append(shared | {key: value for key, value in row.items() if value is not None or key in _TRUTH})
    return rows


def _one_thread():
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"


def _watched(rows, task):
    print(
        f"{task[0]} {task[1]}: " + ", ".join(f"{row['model']} {row.get('auuc', 'failed')}" for row in rows),
        file=sys.stderr,
    )
    return rows


def measure(name, k, models):
    """The rows of all models on the k-th split of a set."""
    from benchmarks.quality.contestants import CONTESTANTS
    from benchmarks.quality.sets import load

    chosen = load(name)
    train, test = chosen.split(k)
    common = {
        "set": name,
        "half": chosen.half,
        "simulated": chosen.simulated,
        "split": k,
        "scale": _round(float(train.y.std())),
    }
    return [{**common, "model": model, **_one(CONTESTANTS[model](k), train, test)} for model in models]


def _one(model, train, test):
    """What one fit gives: areas, agreement with the truth, processor seconds, and the warnings of fit."""
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(train.X, train.y, train.treatment)
        except (ValueError, TypeError) as error:
            return {"failed": f"{type(error).__name__}: {error}"[:160]}
    seconds = time.process_time() - start
    import numpy as np

    from upturn.metrics import auuc

    try:
        score = np.asarray(model.predict(test.X), dtype=float).reshape(len(test.y), -1)[:, 0]
    except ValueError as error:
        return {"failed": f"{type(error).__name__}: {error}"[:160]}
    seconds = getattr(model, "seconds", seconds)  # of a rival, which is fitted elsewhere
    found = {"auuc": auuc(test.y, score, test.treatment), "seconds": seconds, "distinct": len(np.unique(score))}
    if test.effect is not None:
        found |= truth(score, test.effect, np.asarray(model.recommend(test.X)))
    found = {key: _round(value) for key, value in found.items()}
    if caught:
        found["warnings"] = sorted({warning.category.__name__ for warning in caught})
    return found


def truth(score, effect, recommended):
    """Agreement of a score with the true effect.

    ``correlation``, ``rank_correlation`` (0 for a constant score); ``share``, the area of the score's uplift curve over the diagonal,
    in true effects, as a share of the oracle's; ``policy``, the true gain of treating whom the model recommends to treat, as a
    share of the gain of treating whoever it helps. None where the truth is constant, or helps nobody.
    """
    import numpy as np
    from scipy.stats import rankdata

    def correlation(a, b):
        a, b = a - a.mean(), b - b.mean()
        size = np.sqrt((a @ a) * (b @ b))
        return float(a @ b / size) if size > 0 else 0.0

    def area(by):
        rank = rankdata(by) / len(by)  # ties share their mean rank, and so their mean gain
        return float((rank - rank.mean()) @ (effect - effect.mean())) / len(by)

    treated = np.asarray(recommended != 0).reshape(-1)
    best = float(np.maximum(effect, 0.0).sum())
    found = {"policy": float(effect[treated].sum()) / best if best > 0 else None}
    if np.ptp(effect) < 1e-12:
        return {"correlation": None, "rank_correlation": None, "share": None, **found}
    return {
        "correlation": correlation(score, effect),
        "rank_correlation": correlation(rankdata(score), rankdata(effect)),
        "share": area(score) / area(effect),
        **found,
    }


def _round(value):
    return value if value is None or isinstance(value, int) else float(f"{float(value):.5g}")
