"""Tables of metrics.md; those of the metrics themselves are made by make_metrics.py."""

from __future__ import annotations

from page_tables._read import experiment, markdown


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


TABLES = {"coverage": coverage, "clusters": clusters}
