"""Figures 5 and 6: expected revenue and modified uplift curves of seven methods, on a simulated campaign that stands in for an airline's prices."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import AdaBoostRegressor, RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVR

from experiments import _draw
from experiments._compare import claims, held, number, table
from experiments._declared import Experiment
from upturn._encode import LinearEncoder
from upturn._table import conform_table, read_table
from upturn.datasets import simulate_campaign
from upturn.metrics import modified_uplift_curve
from upturn.trees import CTSForest, UCTSForest, UpliftForest

EXPERIMENT = Experiment(
    paper="002",
    shows=("Figure 5", "Figure 6"),
    title="Revenue of seven methods",
    data="**A stand-in**: the airline's data are private. `simulate_campaign` instead, revenue in euros: a call, a coupon or no offer, nine columns of which two are levels, missing values.",
    protocol="Training rows and 20,000 test rows, three arms. Forests of 400 trees with 3 features a node, min_split at its default; separate models per arm on coded columns (support vector regression on 2,000 rows an arm at most). "
    "Expected revenue of the recommended arms is taken from the true means; the curves are those of the test outcomes.",
    summed=("curve",),
)
PICTURES = ("campaign-curves",)
METHODS = ("UCTS", "CTS", "Uplift forest", "SMA-RF", "SMA-KNN", "SMA-Ada", "SMA-SVM")
SHARES = np.linspace(0, 1, 41)
LABELS = np.array(["control", "call", "coupon"])


def plan(size):
    rows, trees = {"smoke": (600, 10), "quick": (3000, 100)}.get(size, (30_000, 400))
    for method in METHODS[:1] if size == "smoke" else METHODS:
        yield {"method": method, "rows": rows, "trees": trees}, {"smoke": 1, "quick": 1, "medium": 3, "full": 10}[size]


def run(case, seed):
    data = simulate_campaign(case["rows"], outcome="revenue", random_state=seed)
    test = simulate_campaign(20_000, outcome="revenue", random_state=10_000 + seed)
    means = _means(case, seed, data, test.X)
    rule = means.argmax(axis=1)
    truth = test.details["revenue_response"]
    score = means[:, 1:] - means[:, :1]  # arms in the sorted order of their labels, as everywhere
    return {
        "earned": truth[np.arange(len(rule)), rule].mean(),
        "fixed": truth.mean(axis=0).max(),
        "best": truth.max(axis=1).mean(),
        "curve": modified_uplift_curve(test.y, score, test.treatment)(SHARES),
    }


def _means(case, seed, data, X_test):
    """Expected revenue of every arm, control first."""
    forests = {"UCTS": UCTSForest, "CTS": CTSForest, "Uplift forest": UpliftForest}
    if case["method"] in forests:
        model = forests[case["method"]](case["trees"], max_features=3, random_state=seed)
        return model.fit(data.X, data.y, data.treatment).predict_response(X_test)
    matrix, schema = read_table(data.X)
    encoder = LinearEncoder.fit(matrix, schema)
    X, new = encoder.transform(matrix), encoder.transform(conform_table(X_test, schema, "SMA"))
    make = {
        "SMA-RF": lambda: RandomForestRegressor(100, min_samples_leaf=20, random_state=seed),
        "SMA-KNN": lambda: KNeighborsRegressor(100),
        "SMA-Ada": lambda: AdaBoostRegressor(n_estimators=50, random_state=seed),
        "SMA-SVM": SVR,
    }[case["method"]]
    columns = []
    for label in LABELS:
        rows = np.flatnonzero(data.treatment == label)[: 2000 if case["method"] == "SMA-SVM" else None]
        columns.append(make().fit(X[rows], data.y[rows]).predict(new))
    return np.column_stack(columns)


def _rows(found):
    largest = max(row.case["rows"] for row in found.rows)
    return {method: row for method in METHODS if (row := found.one(method=method, rows=largest))}


def _claims(found):
    earned = {method: row.mean("earned")[0] for method, row in _rows(found).items()}
    separate = [value for method, value in earned.items() if method.startswith("SMA")]
    if "UCTS" not in earned or not separate:
        return
    best = max(earned, key=earned.get)
    yield (
        "UCTS beats every separate model",
        bool(earned["UCTS"] > max(separate)),
        f"{number(earned['UCTS'], 3)} against {number(max(separate), 3)}",
        "other data: a simulated campaign stands in",
    )
    yield (
        "UCTS is best of all",
        best == "UCTS",
        f"best: {best}, {number(earned[best], 3)}" + ("" if best == "UCTS" else f"; UCTS {number(earned['UCTS'], 3)}"),
        "other data: a simulated campaign stands in",
    )


def report(found):
    rows, lines = _rows(found), []
    for method, row in rows.items():
        earned, error = row.mean("earned")
        fixed = row.mean("fixed")[0]
        lines.append(
            [
                method,
                f"{number(earned, 3)} ± {number(1.96 * error, 3)}",
                f"{earned / fixed - 1:+.1%}",
                str(len(row.seeds)),
            ]
        )
    first = next(iter(rows.values()))
    yield f"The best fixed arm earns {number(first.mean('fixed')[0], 3)} a customer, the best rule {number(first.mean('best')[0], 3)}. Means ± 95% margins:"
    yield table(["method", "expected revenue", "over the best fixed arm", "sets"], lines)
    if told := list(_claims(found)):
        yield claims(told)
    yield "![Modified uplift curves of seven methods](images/campaign-curves.png)"


def summary(found):
    return f"stands in: a simulated campaign, as the data are private; {held(_claims(found))}"


def draw(found):
    figure, axes = _draw.panels(1, 2, 5, 4)
    for k, (method, row) in enumerate(_rows(found).items()):
        mean, error = row.mean("earned")
        axes[0, 0].errorbar(
            k, mean, yerr=0.0 if np.isnan(error) else 1.96 * error, fmt="o", capsize=4, color=_draw.COLOURS[k]
        )
        axes[0, 1].plot(SHARES, row.mean("curve")[0], label=method, **_draw.style(k))
    axes[0, 0].set_xticks(range(len(_rows(found))), list(_rows(found)), rotation=45)
    axes[0, 0].set(ylabel="expected revenue", title="a simulated campaign (stands in)")
    axes[0, 1].set(xlabel="share treated", ylabel="expected revenue")
    axes[0, 1].legend(frameon=False, fontsize=8)
    return {"campaign-curves": figure}
