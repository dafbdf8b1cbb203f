"""Tables of scale.md: what benchmarks/bench_engines.py and bench_engine_states.py found, and what follows for clusters."""

from __future__ import annotations

import json

from page_tables._read import ROOT, markdown

RESULTS, STATES = ROOT / "benchmarks" / "engines.json", ROOT / "benchmarks" / "engine_states.json"
SHARE, TREES, LARGE = 0.3, 50, "14000000 rows, 50 trees of depth 8"
CLUSTERS, LEVELS = ("dask", "spark"), ("dask_levels", "spark_levels")
BATCH, PASSES, SENT = 32, 9, 255 * 24 * 2**10  # trees, passes of a batch of depth 8, bytes of a partition and tree
NAMES = {
    "local": "in memory", "parquet": "Parquet files", "dask": "Dask, two workers", "spark": "Spark, two threads",
    "dask_levels": "Dask, level by level", "spark_levels": "Spark, level by level",
}  # fmt: skip


def _found():
    return json.loads(RESULTS.read_text())


def times():
    """Every size of table, by engine."""
    rows = []
    for key, found in sorted(_found().items(), key=lambda item: ("machine" in item[0], int(item[0].split()[0]))):
        size, what = key.split(" rows, ")
        base = found.get("local", {})
        for name, words in NAMES.items():
            one = found.get(name)
            if not one or "seconds" not in one:
                continue
            beside = [
                f"{one[unit] / base[unit]:.2f}" if base and name != "local" else ""
                for unit in ("seconds", "cpu_seconds")
            ]
            same = "" if not base or name == "local" else "yes" if one["model"] == base["model"] else "**no**"
            cells = [_seconds(one["seconds"]), beside[0], _seconds(one["cpu_seconds"]), beside[1]]
            rows.append([f"{int(size):,}", what, words, *cells, f"{one['anonymous_gib']:.1f} GiB", same])
    head = ["rows", "learnt", "by", "time", "to memory's", "processor time", "to memory's", "most memory of a process"]
    return markdown([*head, "same model"], rows)


def _seconds(taken):
    return f"{taken:.1f} s" if taken < 10 else f"{taken:.0f} s"


def rivals():
    """Other libraries on the same rows."""
    names = {
        "h2o": "H2O's Uplift DRF",
        "ydf": "ydf's uplift forest",
        "lightgbm_dask": "LightGBM on Dask: one boosted model of the outcome, all rows and columns",
    }
    rows = []
    for key, found in _found().items():
        if not any(name in found for name in names):
            continue
        base, size = found["local"], key.split()[0]
        key = key.replace(size, f"{int(size):,}")
        alone = [f"{base['seconds']:.1f} s", "1"]
        rows.append([key, "upturn, in memory", f"{base['cpu_seconds']:.1f} s", "1", *alone, f"{base['auuc']:.4f}"])
        for name, words in names.items():
            if name in found:
                one = found[name]
                area = f"{one['auuc']:.4f}" if "auuc" in one else "–"
                ratio = one["cpu_seconds"] / base["cpu_seconds"]
                clock = one.get("train_seconds", one.get("seconds"))
                alone = [f"{clock:.1f} s", f"{clock / base['seconds']:.1f}"] if clock else ["–", "–"]
                rows.append([key, words, f"{one['cpu_seconds']:.1f} s", f"{ratio:.1f}", *alone, area])
    head = ["table", "model", "processor time", "to upturn's", "by the clock", "to upturn's"]
    return markdown([*head, "AUUC of 200,000 unseen rows"], rows)


def _microseconds(name):
    """Processor time for a row that a tree sees."""
    one = _found()[LARGE][name]
    return 1e6 * one["cpu_seconds"] / (int(LARGE.split()[0]) * SHARE * TREES)


def _bytes_of_a_row():
    """What workers keep of a row while trees grow besides the order of rows, at most while codes are made, and the order, by tree and share."""
    found = json.loads(STATES.read_text())
    made, grown = found["codes are made"], found["trees grow"]
    order = round(grown["orders"] / found["trees"] / found["share"])
    return round(grown["Part"]), round(made["Raw"] + made["Numbers"] + grown["Part"]), order


def costs():
    """What a fit takes, for each thing that there may be more of."""
    found = _found()[LARGE]

    def told(key, names, form):
        return " to ".join(dict.fromkeys(form.format(one) for one in sorted(found[name][key] for name in names)))

    kept, most, order = _bytes_of_a_row()
    seen = "for each row that a tree of depth 8 sees, 6 of 12 features a node; reading included"
    rows = [
        ["processor time, in memory", f"{_microseconds('local'):.2f} µs {seen}"],
        *([f"… {NAMES[name]}", f"{_microseconds(name):.2f} µs"] for name in ("parquet", *CLUSTERS, *LEVELS)),
        ["bytes a row that workers keep while trees grow", f"one a feature, and 9 (17 with weights): {kept} of 12 features"],
        ["… before, on Dask, while codes are made", f"up to {most} of 12 features of float32: as they were read, as numbers, and as codes"],
        ["bytes a row while a tree grows", f"{order} times the share of rows a tree sees (21 with weights), for each tree of a batch"],
        ["trees of a batch", f"{BATCH} at most, and as many as grow in 2 GiB a machine"],
        ["passes over the rows, a batch", f"{PASSES} for trees of depth {PASSES - 1}, with one task for each partition"],
        ["bytes that a partition sends, a tree", f"24 KiB a node of 6 features and two arms: {SENT / 2**20:.0f} MiB for 255 nodes"],
        ["bytes that reach the driver, a tree", f"{told('megabytes_a_tree', LEVELS, '{:.0f}')} MB, with the rows of small nodes; of trees on copies {told('megabytes_a_tree', CLUSTERS, '{:.1f}')} MB"],
        ["questions to all partitions, a tree", f"{told('round_trips_a_tree', LEVELS, '{:.2f}')}, in batches of 25 trees and more; on copies {told('round_trips_a_tree', CLUSTERS, '{:.2f}')}"],
    ]  # fmt: skip
    return markdown(["what", "how much"], rows)


def clusters():
    """The arithmetic for a billion and a hundred billion rows on Dask."""
    each, trees = round(_microseconds("dask_levels"), 2), 200
    kept, most, order = _bytes_of_a_row()
    columns = {}
    for rows, name, partitions, machines, cores in (
        (10**9, "a billion rows", 500, 16, 4),
        (10**11, "a hundred billion", 10_000, 100, 32),
    ):
        seconds = rows * SHARE * trees * each / 1e6
        batch = min(BATCH, max(1, int(machines * 2 * 2**30 / (rows * SHARE * order))))
        tasks, sent = partitions * PASSES * -(-trees // batch), SENT * partitions * trees
        columns[name] = {
            "machines": f"{machines} with {cores} cores",
            "partitions": f"{partitions:,}",
            "processor time": f"{rows:,} × {SHARE} × {trees} × {each} µs = {seconds / 3600:,.0f} hours, {_minutes(seconds / machines / cores)} of all cores",
            "rows on a machine": f"{kept} bytes each, {rows * kept / machines / 1e9:,.0f} GB",
            "… while codes are made": f"up to {most} bytes each, {rows * most / machines / 1e9:,.0f} GB",
            "trees of a batch": f"{batch}, {rows * SHARE * order * batch / machines / 1e9:,.0f} GB a machine",
            "between workers": f"{sent / 1e12:,.1f} TB, {sent / machines / 1e9:,.0f} GB a machine: {_minutes(8 * sent / machines / 1e10)} at 10 Gbit/s",
            "tasks": f"{partitions:,} × {PASSES} × {-(-trees // batch)} = {tasks:,}: {_minutes(tasks / 1000)} of Dask's scheduler at a millisecond each",
        }
    what = list(next(iter(columns.values())))
    rows = [[one, *(column[one] for column in columns.values())] for one in what]
    return markdown([f"{trees} trees of depth 8, 12 features", *columns], rows)


def _minutes(seconds):
    return f"{max(round(seconds / 60), 1)} min"


def per_row():
    """Processor time a row of files, by size."""
    found = {
        int(key.split()[0]): one["parquet"]["cpu_seconds"]
        for key, one in _found().items()
        if key.endswith(f" {TREES} trees of depth 8") and "parquet" in one
    }
    each = {rows: 1e6 * seconds / rows for rows, seconds in sorted(found.items()) if rows >= 5_000_000}
    spread = max(each.values()) / min(each.values()) - 1.0
    listed = "; ".join(f"{rows:,} rows {one:.2f} µs" for rows, one in each.items())
    return f"Processor time for a row of files, all {TREES} trees together: {listed}. The largest is {spread:.0%} above the smallest."


TABLES = {"times": times, "rivals": rivals, "costs": costs, "clusters": clusters, "cost a row": per_row}
