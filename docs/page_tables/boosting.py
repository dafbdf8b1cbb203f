"""Tables of boosting.md."""

from __future__ import annotations

from page_tables._read import benchmark, markdown


def beside_a_forest():
    """Predictions and files, beside a forest of as many trees."""
    found = benchmark("boosting")["beside_a_forest"]
    words = {"bagging": "bagging", "boosting": "boosting, stumps"}
    rows = [
        [words[name], f"{found[name]['seconds_ratio']:.2f}x", f"{found[name]['bytes_ratio']:.2f}x"] for name in words
    ]
    return markdown(["", "predicts, beside a forest of as many trees", "file, beside the forest's"], rows)


TABLES = {"beside a forest": beside_a_forest}
