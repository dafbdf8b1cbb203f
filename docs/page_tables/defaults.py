"""Tables of defaults.md."""

from __future__ import annotations

import json

import numpy as np

from page_tables._read import ROOT, added, experiment, quality

REAL_VALUED = {"Hillstrom-spend-m", "Hillstrom-spend-w", "sim-confounded", "sim-constant", "sim-heavy-tails", "sim-prognostic", "sim-spend", "sim-zhao-2d", "sim-zhao-50d"}  # fmt: skip
# what, old default, new default, why, file(s), old contestant, new contestant, and which sets, if not all
COMPARED = [
    ("`UpliftSVM(p=)`", "1", "1.2", "p = 1 has one answer for everybody where effects are weak", "svm_power", "svm-p1", "svm-p1.2"),
    ("`UpliftBoosting(ties=)`", '`"none"`', '`"effect"`', "tied votes rank", "boosting_choose boosting_report", "boosting-h1-paper", "boosting-h1"),
    ("`UpliftBoosting`: height of its trees", "1", "1", "not decided by the sets: what height 2 would add", "boosting_choose boosting_report", "boosting-h1", "boosting-h2"),
    ("", "1", "1", "… height 3", "boosting_choose boosting_report", "boosting-h1", "boosting-h3"),
    ("`UpliftBoosting(n_estimators=)`", "101", "101", "what 31 would add: less", "boosting_choose boosting_report", "boosting-h1", "boosting-h1-n31"),
    ("", "101", "101", "… 301: nothing where it is chosen", "boosting_choose boosting_report", "boosting-h1", "boosting-h1-n301"),
    ("`CTSForest(leaf=, min_share=, min_samples_split=)`", '`"regularized"`, 0, 100', '`"mean"`, 0.1, `"auto"`', "values from further up mislead, and so do cuts near an end", "cts_leaves", "cts-regularized", "cts-share-auto"),
    (
        "`CTSForest(min_share=, min_samples_split=)` alone",
        "0, 100",
        '0.1, `"auto"`',
        "cuts near an end mislead; the size of a node should follow the rows",
        "cts_choose cts_report",
        "cts-means",
        "cts-share-auto",
    ),
    ("`UpliftForest(center=)`, more than two values", "False", "True", "what drives the outcome hides what drives the effect", "forest_centring", "forest-plain", "forest-centred", REAL_VALUED.__contains__),
    ("… two values", "False", "False", "centring adds little, for four times the time", "forest_centring", "forest-plain", "forest-centred", lambda name: name not in REAL_VALUED),
    *(
        (f"`{kind}`: smallest leaf of its trees", "50 (effects 100)", "also at most an eighth of the rows", "small arms could not be split", "meta_leaves", f"{name}-leaves-1", f"{name}-leaves-8")
        for name, kind in (("s", "SLearner"), ("t", "TLearner"), ("x", "XLearner"), ("dr", "DRLearner"), ("r", "RLearner"))
    ),
]  # fmt: skip


def compared():
    """Old and new defaults, and what the new one adds: AUUC in standard deviations of the outcome, and the truth on simulations."""
    lines = [
        "| default | old | new | why | half | AUUC, over the outcome's standard deviation | ranking by the truth, share of the oracle's |",
        "|---|---|---|---|---|---|---|",
    ]
    for what, old, new, why, files, before, after, *only in COMPARED:
        rows = quality(*files.split())
        for half in ("choose", "report"):
            mine = [row for row in rows if row["half"] == half and all(chosen(row["set"]) for chosen in only)]
            cells = [added(mine, before, after, measure, digits) for measure, digits in (("auuc", 4), ("share", 3))]
            if any(cells):
                lines.append("| " + " | ".join([what, old, new, why, half, *(cell or "–" for cell in cells)]) + " |")
    return "\n".join(lines)


def propensities():
    """The error of the average effect with the old default, logistic regression, and with "auto"."""
    _, found = experiment("propensity_auto")
    words = {
        "half": "at random, one half",
        "tenth": "at random, one tenth",
        "logistic": "by a logistic regression",
        "steps": "by the sign of a product",
    }
    lines = [
        "| rows | treatment given | repeats | shares kept | root mean squared error, logistic (old) | auto (new) | auto less logistic | interval covers, old | new |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for key, rows in found.items():
        n, assignment = key.split()
        old, new = (np.array([row[how] for row in rows]) for how in ("logistic", "auto"))
        squares = [(one[:, 0] - 1.0) ** 2 for one in (old, new)]
        apart = np.abs(new[:, 0] - 1.0) - np.abs(old[:, 0] - 1.0)
        covers = [f"{np.mean(np.abs(one[:, 0] - 1.0) <= 1.96 * one[:, 1]):.0%}" for one in (old, new)]
        kept = np.mean([row["kind"] == "shares" for row in rows])
        roots = [f"{np.sqrt(one.mean()):.3f}" for one in squares]
        error = apart.std(ddof=1) / np.sqrt(len(rows))
        lines.append(
            f"| {int(n):,} | {words[assignment]} | {len(rows)} | {kept:.0%} | {roots[0]} | {roots[1]} | {apart.mean():+.3f} ± {error:.3f} | {covers[0]} | {covers[1]} |"
        )
    return "\n".join(lines)


def intervals():
    """How often the intervals of forests hold the true effect."""
    module, found = experiment("forest_coverage")
    return "\n".join(module.table(found))


def intervals_again():
    """The same with the source of a later day, on the first of the same seeds."""
    _, found = experiment("forest_coverage")
    later = json.loads((ROOT / "experiments" / "forest_coverage_later.json").read_text())
    gaps, widths, seeds = [], [], []
    for name, case in later.items():
        before, after = ({row[0]: row[1:3] for row in one["repeats"]} for one in (found[name], case))
        shared = sorted(before.keys() & after.keys())
        gaps.append(np.mean([100 * (after[seed][0] - before[seed][0]) for seed in shared]))
        widths.append(np.mean([after[seed][1] / before[seed][1] for seed in shared]))
        seeds.append(len(shared))
    gap = np.array(gaps)
    margin = 1.96 * gap.std(ddof=1) / np.sqrt(len(gap))
    return (
        f"Rehearsals have other draws since this table was made. On the first {min(seeds)} to {max(seeds)} of its seeds, intervals of today's source hold {gap.mean():+.2f} ± {margin:.2f} points more "
        f"(mean over {len(gap)} simulations; by simulation {gap.min():+.1f} to {gap.max():+.1f}), at {np.mean(widths):.3f} of the width."
    )


def widths():
    """The intervals beside those of econml."""
    module, found = experiment("interval_widths")
    return "\n".join(module.table(found))


def leaves():
    """Coverage and widths for leaves of several sizes."""
    module, found = experiment("leaf_sizes")
    return "\n".join(module.table(found))


def leaf_price():
    """Where larger leaves cost most on the seeds that were looked at."""
    _, found = experiment("leaf_sizes")
    two, four = ([100 * run[0] for run in found["sim-prognostic-binary 7000"][leaf]] for leaf in ("2", "4"))
    return (
        f"prognostic features with two values held {np.mean(four):.0f}% on 7,000 rows with leaves of four, on the {len(four)} seeds above, where leaves of two "
        f"hold {np.mean(two):.0f}%"
    )


def thin():
    """The forest and the learners where an effect is spread thin: correlation with the true effect."""
    rows = quality("forest_thin")
    models = ("forest", "s", "t", "x")
    lines = [
        "| simulation | half | splits | " + " | ".join(models) + " |",
        "|---|---|---|" + "---|" * len(models),
    ]
    for name in sorted({row["set"] for row in rows}):
        mine = [row for row in rows if row["set"] == name]
        cells, splits = [], 0
        for model in models:
            found = np.array([row["correlation"] for row in mine if row["model"] == model])
            splits = len(found)
            cells.append(f"{found.mean():.3f} ± {found.std(ddof=1) / np.sqrt(splits):.3f}" if splits > 1 else "–")
        lines.append("| " + " | ".join([f"`{name}`", mine[0]["half"], str(splits), *cells]) + " |")
    return "\n".join(lines)


def forest_propensities():
    """Errors of a forest's effects with the shares, the old default, and with "auto"."""
    module, found = experiment("forest_propensity")
    lines = [
        "| simulation | repeats | shares kept | root mean squared error, shares (old) | auto (new) | mean error, shares | auto | correlation with the truth, auto less shares | time, auto over shares |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in module.SETS:
        old, new = (np.array([row[way] for row in found[name]]) for way in ("shares", "auto"))
        apart = new[:, 2] - old[:, 2]
        cells = [
            f"{old[:, 0].mean():.3f}",
            f"{new[:, 0].mean():.3f}",
            f"{old[:, 1].mean():+.3f}",
            f"{new[:, 1].mean():+.3f}",
        ]
        error = apart.std(ddof=1) / np.sqrt(len(old))
        cells += [f"{apart.mean():+.3f} ± {error:.3f}", f"{new[:, 3].sum() / old[:, 3].sum():.1f}"]
        lines.append(f"| `{name}` | {len(old)} | {new[:, 4].mean():.0%} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def forest_overlap():
    """What estimated chances leave to compare, and errors with and without them."""
    path = experiment("forest_propensity")[0].OVERLAP
    found = json.loads(path.read_text()) if path.exists() else {}
    lines = [
        "| arms by | repeats | overlap left | root mean squared error, shares | trees | auto | mean error, shares | trees | auto | shares kept |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, rows in found.items():
        kind, size = name.split()
        words = {"slope": "log-odds of slope {}", "shops": "{} shops", "product": "sign of a product, for {}% of rows"}
        what = words[kind].format(size)
        errors = [np.mean([row[way] for row in rows], axis=0) for way in ("shares", "trees", "auto")]
        left = [row["left"] for row in rows if row["left"] is not None]
        cells = [f"{np.mean(left):.2f}" if left else ""]
        cells += [f"{error[0]:.3f}" for error in errors] + [f"{error[1]:+.3f}" for error in errors]
        kept = np.mean([row["chosen"] == "shares" for row in rows])
        lines.append(f"| {what} | {len(rows)} | " + " | ".join(cells) + f" | {kept:.0%} |")
    return "\n".join(lines)


ASSIGNED = {"half": "at random, one half", "tenth": "at random, one tenth", "logistic": "by a logistic regression", "steps": "by the sign of a product"}  # fmt: skip


def forest_rules():
    """The decision of forests beside that of learners."""
    found = json.loads(experiment("forest_propensity")[0].RULES.read_text())
    lines = [
        "| rows | treatment given | repeats | shares kept: forests | learners' rule | root mean squared error, shares | trees | auto | mean error, shares | trees | auto | seconds, shares | trees | learners' rule alone |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, rows in found.items():
        if len(rows) < 2:
            continue
        n, how = name.split()
        shares, trees, auto = (np.mean([row[way] for row in rows], axis=0) for way in ("shares", "trees", "auto"))
        kept = [np.mean([row[rule] == "shares" for row in rows]) for rule in ("chosen", "learners")]
        cells = [f"{int(n):,}", ASSIGNED[how], str(len(rows)), *(f"{share:.0%}" for share in kept)]
        cells += [f"{one[0]:.3f}" for one in (shares, trees, auto)] + [
            f"{one[1]:+.3f}" for one in (shares, trees, auto)
        ]
        seconds = np.mean([row["learners_seconds"] for row in rows])
        cells += [f"{shares[2]:.2g}", f"{trees[2]:.2g}", f"{seconds:.2g}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def look_alarms():
    """How often the look takes a trial for something else."""
    found = experiment("forest_look")[1]["alarms"]
    lines = [
        "| randomised tables | drawn | trees were asked | balance: p < .01 | < .001 | < .0001 | trees: p < .01 | < .001 | < .0001 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for kind, one in found.items():
        counts = [*one["joint"][1:], *one["trees"][1:]]
        lines.append(f"| {kind} | {one['tables']:,} | {one['asked']:,} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(lines)


def look_alarm_rate():
    """How many of all of them are taken for something else."""
    found = list(experiment("forest_look")[1]["alarms"].values())
    alarms, tables = sum(one["joint"][-1] + one["trees"][-1] for one in found), sum(one["tables"] for one in found)
    return f"{alarms} of {tables:,} randomised tables"


def look_cost():
    """What the look takes, and the share of the fit's other time."""
    found = experiment("forest_look")[1]["cost"]
    lines = [
        "| rows, 12 columns | the look | of the rest of a fit, two values | real-valued |",
        "|---|---|---|---|",
    ]
    for n in sorted({int(key.split()[0]) for key in found}):
        two, real = (found.get(f"{n} {outcome}") for outcome in ("two values", "real-valued"))
        shares = ["–" if one is None else f"{one[0] / (one[1] - one[0]):.0%}" for one in (two, real)]
        lines.append(f"| {n:,} | {1000 * two[0]:.2g} ms | {shares[0]} | {shares[1]} |")
    return "\n".join(lines)


TABLES = {
    "compared": compared,
    "intervals": intervals,
    "intervals again": intervals_again,
    "widths": widths,
    "leaves": leaves,
    "leaf price": leaf_price,
    "thin": thin,
    "propensities": propensities,
    "forest propensities": forest_propensities,
    "forest overlap": forest_overlap,
    "forest rules": forest_rules,
    "look alarms": look_alarms,
    "look alarm rate": look_alarm_rate,
    "look cost": look_cost,
}
