"""`upturn score` on a Parquet file of many rows, beside `predict` on the same numbers in memory: time as a ratio, and memory.

python benchmarks/bench_score.py [rows …] [--keep]      # 20,000,000 by default; --keep writes benchmarks/score.json

Both run in processes of their own on all cores, in turn, and the least of their times counts. The command's time is that of the whole
process, with its start, its reading and its writing; of `predict` it is the call alone.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _measure import best_time, fresh_process, installed, report, write_json

FEATURES, PART, ROUNDS = 12, 1_000_000, 6
KEPT = Path(__file__).resolve().parent / "score.json"


def make_table(folder, rows):
    """The same numbers as Parquet and as an array, and a model of the first of them."""
    import polars as pl
    import pyarrow.parquet as pq

    from upturn.trees import UpliftForest

    names = [f"x{j}" for j in range(FEATURES)]
    matrix = np.lib.format.open_memmap(folder / "people.npy", "w+", np.float32, (rows, FEATURES))
    writer = None
    for start in range(0, rows, PART):
        rng = np.random.default_rng(start)
        part = matrix[start : start + PART]
        part[:] = rng.normal(size=part.shape)
        table = pl.DataFrame({"person": np.arange(start, start + len(part)), **dict(zip(names, part.T, strict=True))})
        writer = writer or pq.ParquetWriter(folder / "people.parquet", table.to_arrow().schema)
        writer.write_table(table.to_arrow())
        if start == 0:
            arm = rng.integers(0, 2, len(part))
            y = rng.random(len(part)) < 0.2 + 0.1 * arm * (part[:, 0] > 0)
            few = slice(0, 100_000)
            X = table.select(names)[few]
            UpliftForest(20, random_state=0).fit(X, y[few], arm[few]).save(folder / "model.upturn")
    writer.close()


def run_command(folder):
    """Wall and processor seconds of the command, and the most memory it held."""
    line = [
        sys.executable,
        "-m",
        "upturn",
        "score",
        "model.upturn",
        "people.parquet",
        "-o",
        "scores.parquet",
        "--quiet",
    ]
    start, megabytes = time.perf_counter(), 0.0
    running = subprocess.Popen(line, cwd=folder)
    status = 0
    while True:
        pid, status, used = os.wait4(running.pid, os.WNOHANG)
        if pid:
            break
        # its own mark: that of wait4 counts what this process held when it started the other
        held = Path(f"/proc/{running.pid}/status").read_text().partition("VmHWM:")[2].split()[:1]
        megabytes = max([megabytes, *(int(number) / 1024 for number in held)])
        time.sleep(0.01)
    if status:
        raise RuntimeError(f"{' '.join(line)}: exit status {status}")
    return {
        "wall": time.perf_counter() - start,
        "cpu": used.ru_utime + used.ru_stime,
        "megabytes": megabytes,
    }


def run_predict(folder):
    """Called in a fresh process: `predict` of a float32 matrix."""
    import upturn

    X = np.load(folder / "people.npy")
    model = upturn.load(folder / "model.upturn", n_jobs=-1)
    model.predict(X[:1000])  # compiled
    wall, cpu, score = best_time(lambda: model.predict(X), 1)
    np.save(folder / "expected.npy", score)
    report({"wall": wall, "cpu": cpu})


def compare(rows):
    import polars as pl

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_table(folder, rows)
        runs = []
        for _ in range(ROUNDS):
            runs.append((run_command(folder), fresh_process(__file__, "--predict", folder)))
        score = pl.scan_parquet(folder / "scores.parquet").select("uplift").collect()["uplift"].to_numpy()
        assert np.array_equal(score, np.load(folder / "expected.npy"))
    least = {key: [min(run[side][key] for run in runs) for side in (0, 1)] for key in ("wall", "cpu")}
    return {
        "rows": rows,
        "features": FEATURES,
        "score seconds": round(least["wall"][0], 1),
        "score cpu seconds": round(least["cpu"][0], 1),
        "score megabytes": round(max(run[0]["megabytes"] for run in runs)),
        "predict seconds": round(least["wall"][1], 1),
        "predict cpu seconds": round(least["cpu"][1], 1),
        "speed of predict, by the clock": round(least["wall"][1] / least["wall"][0], 2),
        "speed of predict, by processor time": round(least["cpu"][1] / least["cpu"][0], 2),
    }


def main(arguments):
    if not installed("polars") or not installed("pyarrow") or not installed("typer"):
        print("polars, pyarrow and typer are needed: pip install 'upturn[cli]' pyarrow")
        sys.exit(77)
    sizes = [int(word.replace(",", "")) for word in arguments if not word.startswith("--")] or [20_000_000]
    results = []
    for rows in sizes:
        results.append(compare(rows))
        print(json.dumps(results[-1]), flush=True)
    write_json("score", results)
    if "--keep" in arguments:
        KEPT.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--predict"]:
        run_predict(Path(sys.argv[2]))
    else:
        main(sys.argv[1:])
