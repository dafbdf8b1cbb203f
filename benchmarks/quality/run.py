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


def run(set_names, models, splits, jobs, path, rows=None, kept=None):
    """Add rows to the file at ``path``, after every split; rows of the same set and model from an earlier run are replaced.

    ``rows`` are the most rows to learn from. What every fit gave is kept in the folder ``kept``, if there is one, and taken from there by the next run: splits are
    judged with all their models together.
    """
    from benchmarks.quality.contestants import CONTESTANTS
    from benchmarks.quality.rivals import available
    from benchmarks.quality.sets import load

    unknown = [model for model in models if model not in CONTESTANTS]
    if unknown:
        raise SystemExit(f"no contestants are called {unknown}: there are {sorted(CONTESTANTS)}")
    models = available(models)
    # First splits first, so that a run that is stopped has all sets; of them the largest, so that the last job to end is a short one.
    tasks = [
        (name, k)
        for name in sorted(set_names, key=lambda name: -load(name).rows)
        for k in range(load(name).splits(splits))
    ]
    tasks.sort(key=lambda task: task[1])
    found = read(path) if path.exists() else []
    for task, measured in _measured(tasks, models, rows, kept, jobs):
        _tell(measured, task)
        first = {(task[0], model) for model in models} if task[1] == 0 else set()
        again = {(row["set"], row["model"], row["split"]) for row in measured}
        found = [row for row in found if (row["set"], row["model"]) not in first]
        found = [row for row in found if (row["set"], row["model"], row["split"]) not in again] + measured
        found.sort(key=lambda row: (row["set"], row["model"], row["split"]))
        write(path, paired(found, task, models))


def paired(found, task, models):
    """All rows; of a split for which more models are kept than were judged together, without the differences, as its best may be another."""
    here = [row for row in found if (row["set"], row["split"]) == task]
    if {row["model"] for row in here} - set(models):
        for row in here:
            for key in ("difference", "low", "high"):
                row.pop(key, None)
    return found


def _measured(tasks, models, rows, kept, jobs):
    if jobs == 1:
        for task in tasks:
            yield task, measure(*task, models, rows, kept)
        return
    with ProcessPoolExecutor(jobs, initializer=_one_thread) as pool:
        lists = [[one] * len(tasks) for one in (models, rows, kept)]
        yield from zip(tasks, pool.map(measure, *zip(*tasks, strict=True), *lists), strict=True)


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


def _tell(rows, task):
    areas = ", ".join(f"{row['model']} {row.get('auuc', 'failed')}" for row in rows)
    print(f"{task[0]} {task[1]}: {areas}", file=sys.stderr)


def measure(name, k, models, rows=None, kept=None):
    """The rows of all models on the k-th split of a set, learning from at most so many rows."""
    from benchmarks.quality.sets import load

    chosen = load(name)
    train, test = chosen.split(k)
    if rows is not None:
        train = train.some(rows, k)
    common = {
        "set": name,
        "half": chosen.half,
        "simulated": chosen.simulated,
        "split": k,
        "scale": _round(float(train.y.std())),
        **({} if rows is None else {"learnt": len(train.y)}),
    }
    scores, found = {}, {}
    for model in models:
        found[model], score = _kept(kept, model, name, k, train, test)
        if score is not None:
            scores[model] = score
    for model, line in against_best(scores, {model: found[model]["auuc"] for model in scores}, test).items():
        found[model] |= line
    return [{**common, "model": model, **found[model]} for model in models]


def _kept(folder, model, name, k, train, test):
    """What a fit gave and the scores of the test rows; from the file of an earlier run, if there is one."""
    from benchmarks.quality.contestants import CONTESTANTS

    path = folder / f"{name} {k} {len(train.y)}" / f"{model}.json" if folder else None
    if path and path.exists():
        kept = json.loads(path.read_text())
        return kept["found"], kept["score"]
    found, score = _one(CONTESTANTS[model](k), train, test)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".part").write_text(json.dumps({"found": found, "score": score}))
        os.replace(path.with_suffix(".part"), path)
    return found, score


def against_best(scores, areas, test):
    """AUUC less that of the best of a split, and the 95% interval of the difference, both judged on the same replicates of the test rows."""
    from upturn.metrics import compare

    if len(scores) < 2:
        return {}
    best = max(areas, key=areas.get)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paired = compare(test.y, scores, test.treatment, metric="auuc", baseline=best, n_bootstrap=200)
    columns = ("difference", "low", "high")
    lines = zip(paired["model"], *(paired[column] for column in columns), strict=True)
    found = {model: dict(zip(columns, map(_round, values), strict=True)) for model, *values in lines}
    return {best: dict.fromkeys(columns, 0.0), **found}


def _one(model, train, test):
    """What one fit gives: areas, agreement with the truth, processor seconds, and the warnings of fit; and its scores, None where it failed."""
    import numpy as np

    from upturn.metrics import auuc

    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(train.X, train.y, train.treatment)
            seconds, said = time.process_time() - start, sorted({warning.category.__name__ for warning in caught})
            score = np.asarray(model.predict(test.X), dtype=float).reshape(len(test.y), -1)[:, 0]
        except (ValueError, TypeError) as error:
            return {"failed": f"{type(error).__name__}: {error}"[:160]}, None
    seconds = getattr(model, "seconds", seconds)  # of a rival, which is fitted elsewhere
    found = {"auuc": auuc(test.y, score, test.treatment), "seconds": seconds, "distinct": len(np.unique(score))}
    if test.effect is not None:
        try:
            recommended = np.asarray(model.recommend(test.X))
        except (AttributeError, ValueError):  # a score that only ranks
            recommended = None
        found |= truth(score, test.effect, recommended)
    found = {key: _round(value) for key, value in found.items()}
    if said:
        found["warnings"] = said
    return found, score.tolist()


def truth(score, effect, recommended):
    """Agreement of a score with the true effect.

    ``correlation``, ``rank_correlation`` (0 for a constant score); ``share``, the area of the score's uplift curve over the diagonal,
    in true effects, as a share of the oracle's; ``policy``, the true gain of treating whom the model recommends to treat, as a
    share of the gain of treating whoever it helps. None where the truth is constant, or helps nobody, or where the score has no zero.
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

    best = float(np.maximum(effect, 0.0).sum())
    found = {"policy": None}
    if recommended is not None and best > 0:
        found = {"policy": float(effect[np.asarray(recommended != 0).reshape(-1)].sum()) / best}
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
