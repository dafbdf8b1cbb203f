"""Figure 4: expected response against training size on the 50-dimensional model."""

from __future__ import annotations

from functools import cache

import numpy as np
from sklearn.ensemble import AdaBoostRegressor, RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVR

from experiments import _draw
from experiments._compare import UNKNOWN, claims, held, number, table
from experiments._declared import Experiment
from upturn.datasets import simulate_zhao_50d
from upturn.trees import CTSForest, UCTSForest

EXPERIMENT = Experiment(
    paper="002",
    shows=("Figure 4",),
    title="Expected response against training size",
    data="`simulate_zhao_50d`, four arms: a fixed arm earns 5.185 and the best rule 5.785 (the paper: 5.18 and 5.79). The paper's f is not printed; ours is of its form and at its level.",
    protocol="10 sets of data for each size in the paper, those it published; here as many as the table says, drawn anew. 400 trees, 25 features a node, min_split one of 25, 100, 400, chosen on 30% of the rows by what the recommended arms earn, then the forest is grown on all of them. "
    "Separate models per arm: random forest, nearest neighbours, AdaBoost, support vector regression with a radial kernel (up to 8,000 rows per arm). Rules are judged by the true means of 20,000 fresh points.",
    shaky=("SMA-Ada",),
)
PICTURES = ("response-50d",)
SIZES = (500, 2000, 4000, 8000, 16_000, 32_000)
MIN_SPLITS = (25.0, 100.0, 400.0)
METHODS = ("UCTS", "CTS", "SMA-RF", "SMA-KNN", "SMA-Ada", "SMA-SVR")


def plan(size):
    trees = 5 if size == "smoke" else 400
    sets = {"smoke": 1, "quick": 1, "medium": 3, "full": 10}[size]
    for rows in {"smoke": SIZES[:1], "quick": SIZES[:1], "medium": SIZES[:3]}.get(size, SIZES):
        for method in METHODS[:4:3] if size == "smoke" else METHODS:
            if method != "SMA-SVR" or rows <= 8000:
                yield {"method": method, "rows": rows} | ({"trees": trees} if method in ("UCTS", "CTS") else {}), sets


@cache
def _fresh():
    data = simulate_zhao_50d(20_000, random_state=1)
    return data.X, data.details["response"]


def run(case, seed):
    rng = np.random.default_rng([case["rows"], seed])
    data = simulate_zhao_50d(4 * case["rows"], random_state=rng)
    X, y, arm = data.X, data.y, data.treatment
    fresh, response = _fresh()
    if case["method"] in ("UCTS", "CTS"):
        rule, chosen = _forest(case, seed, X, y, arm, rng)
        rule = rule.recommend(fresh)
    else:
        model = {
            "SMA-RF": lambda: RandomForestRegressor(100, max_features=0.5, min_samples_leaf=5, random_state=seed),
            "SMA-KNN": lambda: KNeighborsRegressor(50),
            "SMA-Ada": lambda: AdaBoostRegressor(n_estimators=50, random_state=seed),
            "SMA-SVR": SVR,
        }[case["method"]]
        rule = np.column_stack([model().fit(X[arm == t], y[arm == t]).predict(fresh) for t in range(4)]).argmax(axis=1)
        chosen = None
    return {"earned": response[np.arange(len(fresh)), np.asarray(rule).astype(int)].mean(), "min_split": chosen}


def _forest(case, seed, X, y, arm, rng):
    """The forest with the min_split that earns most on 30% of the rows, grown on all of them."""

    def make(split):
        kind = UCTSForest if case["method"] == "UCTS" else CTSForest
        more = {} if case["method"] == "UCTS" else {"min_share": 0.0}
        return kind(case["trees"], min_samples_split=split, max_features=25, random_state=seed, **more)

    held = rng.random(len(y)) < 0.3
    earned = []
    for split in MIN_SPLITS:
        rule = make(split).fit(X[~held], y[~held], arm[~held]).recommend(X[held])
        earned.append(np.where(rule == arm[held], 4.0 * y[held], 0.0).mean())  # every arm has probability 1/4
    chosen = MIN_SPLITS[int(np.argmax(earned))]
    return make(chosen).fit(X, y, arm), chosen


def _row(found, method, rows):
    return next((row for row in found.where(method=method, rows=rows) if row.case.get("trees", 400) == 400), None)


def _cell(row):
    mean, error = row.mean("earned")
    margin = f" ± {number(1.96 * error, 3)}" if len(row.seeds) > 1 else ""
    return f"{mean:.3f}{margin} ({len(row.seeds)})"


def _table(found):
    lines = []
    for method in METHODS:
        rows = [_row(found, method, size) for size in SIZES]
        if any(rows):
            lines.append(
                [
                    method,
                    *(_cell(row) if row else "–" for row in rows),
                ]
            )
    return table(["rows per arm", *(f"{size:,}" for size in SIZES)], lines)


def _claims(found):
    for size in SIZES:
        ours = [_row(found, method, size) for method in ("UCTS", "CTS")]
        others = [row for method in METHODS[2:] if (row := _row(found, method, size))]
        if all(ours) and others:
            best, rival = (max(row.mean("earned")[0] for row in rows) for rows in (ours, others))
            said = size > 4000
            yield (
                f"{'' if said else '(below the sizes of which the paper says it) '}UCTS and CTS beat separate models, {size:,} rows",
                bool(best > rival),
                f"{best:.3f} against {rival:.3f}",
                UNKNOWN if said else "the paper says it of more than 4,000 rows",
            )
            gap = ours[0].mean("earned")[0] - ours[1].mean("earned")[0]
            reach = 1.96 * sum(row.mean("earned")[1] for row in ours)
            sets = min(len(row.seeds) for row in ours)
            yield (
                f"margins of UCTS and CTS overlap, {size:,} rows",
                None if np.isnan(reach) else bool(abs(gap) <= reach),
                f"difference {number(gap, 3)}",
                f"not found out; margins of {sets} sets are uncertain themselves" if sets < 10 else UNKNOWN,
            )


def report(found):
    yield "Means ± 95% margins (sets of data):"
    yield _table(found)
    yield claims(_claims(found))
    yield "![Expected response against training size](images/response-50d.png)"


def summary(found):
    largest = max(row.case["rows"] for row in found.rows)
    return f"{held(_claims(found))}; up to {largest:,} rows per arm"


def quotes(found):
    return {"table": _table(found)}


def draw(found):
    figure, axes = _draw.panels(1, 1, 7, 4.5)
    for k, method in enumerate(METHODS):
        points = [(size, row.mean("earned")) for size in SIZES if (row := _row(found, method, size))]
        if points:
            sizes, values = zip(*points, strict=True)
            errors = [0.0 if np.isnan(error) else 1.96 * error for _, error in values]
            axes[0, 0].errorbar(
                sizes, [mean for mean, _ in values], yerr=errors, marker="o", capsize=3, label=method, **_draw.style(k)
            )
    response = _fresh()[1]
    for value, label in ((response.mean(), "a fixed arm"), (response.max(axis=1).mean(), "the best rule")):
        axes[0, 0].axhline(value, color="0.5", linestyle=":", label=label)
    axes[0, 0].set(xscale="log", xlabel="training rows per arm", ylabel="expected response")
    run = sorted({row.case["rows"] for row in found.rows})
    axes[0, 0].set_xticks(run, [f"{size:,}" for size in run])
    axes[0, 0].minorticks_off()
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return {"response-50d": figure}
