"""Tables of trees.md."""

from __future__ import annotations

import numpy as np

from page_tables._read import added, benchmark, markdown, quality


def leaves():
    """What the best ranking gains, and how much of it CTS has with each of its parts."""
    found = quality("cts_leaves", "cts_choose", "cts_report")
    models = {
        "cts-regularized": '`CTSForest(leaf="regularized", min_share=0.0, min_samples_split=100)`',
        "cts-means": "`CTSForest(min_share=0.0, min_samples_split=100)`",
        "cts-share": "`CTSForest(min_samples_split=100)`",
        "cts-share-auto": "`CTSForest()`",
        "ucts-auto": "`UCTSForest()`",
    }
    rows = []
    for name in sorted({row["set"] for row in found if row["model"] == "cts-regularized"}):
        shares = {model: {} for model in models}
        for row in found:
            if row["set"] == name and row["model"] in models and "share" in row:
                shares[row["model"]][row["split"]] = row["share"]
        common = set.intersection(*(set(one) for one in shares.values() if one))
        cells = [f"{np.mean([one[split] for split in common]):.2f}" if one else "–" for one in shares.values()]
        rows.append([f"`{name}`", str(len(common)), *cells])
    return markdown(["simulation", "draws", *models.values()], rows)


def defaults():
    """Old and new defaults of CTS and UCTS."""
    changed = (
        ("`CTSForest(min_share=0.0 → 0.1)`, `min_samples_split=100`", "cuts at the end of a feature win by chance", "cts-means", "cts-share"),
        ('then `min_samples_split=100 → "auto"`', "100 rows of an arm are more than small sets have", "cts-share", "cts-share-auto"),
        ('`UCTSForest(min_samples_split=100 → "auto")`', "the same", "ucts-100", "ucts-auto"),
    )  # fmt: skip
    rows = []
    for what, why, before, after in changed:
        cells = [
            added(quality(half), before, after, measure, digits)
            for measure, digits in (("auuc", 4), ("rank_correlation", 3))
            for half in ("cts_choose", "cts_report")
        ]
        rows.append([what, why, *cells])
    head = ["old default → new default", "why", "AUUC, choosing half", "AUUC, reporting half"]
    return markdown([*head, "rank correlation with the truth, choosing", "reporting"], rows)


def centring():
    """Correlations with the true effect, and what recommendations gain, without and with centring."""
    found, rows = quality("forest_centring"), []
    sets = {
        "sim-prognostic": "strong prognostic features, real-valued",
        "sim-confounded": "confounded, real-valued",
        "sim-heavy-tails": "heavy tails, correlated features",
        "sim-prognostic-binary": "strong prognostic features, two values",
        "sim-steps": "steps, two values",
        "sim-campaign": "campaign, two values",
    }
    for name, words in sets.items():
        mine = {
            model: [row for row in found if row["set"] == name and row["model"] == model]
            for model in ("forest-plain", "forest-centred")
        }
        cells = [
            f"{np.mean([row[measure] for row in part]):.{digits}f}"
            for measure, digits in (("correlation", 3), ("policy", 2))
            for part in mine.values()
        ]
        rows.append([words, str(len(mine["forest-plain"])), *cells])
    head = ["simulation", "draws", "`center=False`", "`center=True`"]
    return markdown([*head, "rule, `center=False`", "rule, `center=True`"], rows)


def speed():
    """A tree beside one of LightGBM's and causalml's."""
    found = benchmark("forest")
    sizes = {
        "a": "128,000 × 50, 4 arms, honest, 25 features a node, `min_samples_split=100`",
        "b": "1,000,000 × 12, 2 arms, depth 8",
    }
    rivals = {"a": "LightGBM's rf", "b": "LightGBM's gbdt"}
    kinds = {"real": "real-valued outcome", "binary": "binary outcome"}
    rows = []
    for case, one in found.items():
        name, _, rest = case.partition(", ")
        if name in sizes:
            theirs = f"{rivals[name]}, {one['lightgbm_leaves']:.0f} leaves, {one['lightgbm_ms']:.0f} ms"
            what = f"{sizes[name]}, {kinds[rest.split()[0]]}"
            mine = f"{one['ratio'] * one['lightgbm_ms']:.0f} ms"
            rows.append([what, mine, f"{one['leaves']:.0f}", theirs, f"{1 / one['ratio']:.2f}"])
    one = found["c"]
    theirs = f"causalml's CTS, {1000 * one['causalml_seconds_a_tree']:.0f} ms"
    mine = f"{1000 * one['upturn_seconds_a_tree']:.0f} ms"
    rows.append(
        ["32,000 × 50, 4 arms, CTS, 25 features a node", mine, f"{one['leaves']:.0f}", theirs, f"{one['ratio']:.0f}"]
    )
    return markdown(["", "a tree", "leaves", "a tree elsewhere", "times as fast"], rows)


TABLES = {"speed": speed, "leaves": leaves, "defaults of CTS and UCTS": defaults, "centring": centring}
