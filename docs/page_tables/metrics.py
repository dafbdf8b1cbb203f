"""Tables of metrics.md; those of the metrics themselves are made by make_metrics.py."""

from __future__ import annotations

from page_tables._read import benchmark, experiment, markdown


def coverage():
    """How often intervals hold the truth."""
    _, found = experiment("metric_coverage")
    names = ("auuc", "qini", "autoc")
    head = ["outcome, rows", *names, *(f"paired {name}" for name in names)]
    rows = [
        [f"{one['outcome']}, {one['rows']:,}", *(f"{one['held'][name]:.1%}" for name in head[1:])]
        for one in found["coverage"]
    ]
    return markdown(head, rows)


def clusters():
    """How often they do where people come in clusters."""
    _, found = experiment("metric_clusters")
    names = {"auuc": "auuc", "uplift_at 0.3": "uplift_at", "paired auuc": "paired auuc"}
    head = ["assigned", "clusters"]
    for name in names.values():
        head += [f"{name}, by cluster", "by row"]
    drawn = {(one["assigned"], one["clusters"], one["drawn"]): one for one in found["coverage"]}
    rows = []
    for assigned, n in dict.fromkeys(key[:2] for key in drawn):
        shares = [drawn[assigned, n, way][name] for name in names for way in ("groups", "rows")]
        rows.append([assigned, str(n), *(f"{share:.0%}" for share in shares)])
    return markdown(head, rows)


SPEED = {
    "auuc": "`auuc`",
    "auuc joint": "`auuc`, joint",
    "auu": "`auu`",
    "lift_area": "`lift_area`",
    "qini": "`qini`",
    "autoc": "`autoc`",
    "uplift_at": "`uplift_at`",
    "uplift curve": "`uplift_curve`",
    "uplift curve joint": "`uplift_curve`, joint",
    "qini curve": "`qini_curve`",
    "toc curve": "`toc_curve`",
    "lift curve": "`lift_curve`",
    "modified uplift curve": "`modified_uplift_curve`, two arms",
    "expected_response": "`expected_response`",
    "policy_value": "`policy_value`",
    "calibration_table, no interval": "`calibration_table`, no interval",
    "calibration_table": "`calibration_table`, 200 replicates",
    "evaluate, no interval": "`evaluate`, one model, four metrics, no interval",
    "evaluate": "`evaluate`, one model, four metrics, 200 replicates",
    "compare": "`compare`, two models, 200 replicates",
    "auuc as sklift": '`auuc(convention="sklift")`',
    "auuc as causalml": '`auuc(convention="causalml")`',
    "qini as sklift": '`qini(convention="sklift")`',
    "qini as causalml": '`qini(convention="causalml")`',
}
REPLICATES = {"auuc bootstrap": "`auuc`", "qini bootstrap": "`qini`", "autoc bootstrap": "`autoc`"}


def _raced(found, words, of):
    """A line for every job: processor time and memory of upturn, and of the others with how many times longer they take."""
    rows = []
    for job, said in words.items():
        mine = found[job]["upturn"]
        cells = [said + of, f"{mine['cpu_seconds']:.2f} s, {mine['extra_bytes'] / 2**20:,.0f} MB"]
        for name in ("sklift", "causalml"):
            other = found[job].get(name)
            cells.append(
                ""
                if other is None
                else f"{other['cpu_seconds']:.2f} s ({other['cpu_seconds'] / mine['cpu_seconds']:.1f}x), {other['extra_bytes'] / 2**20:,.0f} MB"
            )
        rows.append(cells)
    return rows


def speed():
    """What metrics cost, beside other libraries."""
    found = benchmark("metrics")
    rows = _raced(found["jobs"], SPEED, "")
    rows += _raced(found["bootstraps"], REPLICATES, f", 200 replicates of {found['bootstrap_rows']:,} rows")
    return markdown(["job", "upturn", "scikit-uplift", "causalml"], rows)


TABLES = {"coverage": coverage, "clusters": clusters, "speed": speed}
