"""Figures 6 and 7: selecting features among added noise."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments import _draw
from experiments._compare import claims, held, number, table
from experiments._declared import Experiment
from upturn.datasets import DataNotFoundError, simulate_feature_selection
from upturn.features import FilterSelector, UMODLSelector
from upturn.meta import TLearner, XLearner
from upturn.metrics import qini
from upturn.model_selection import UpliftKFold

FILTERS = {"KL-filter": "kl", "Chi-filter": "chi2", "ED-filter": "euclidean", "LR-filter": "lr", "F-filter": "f"}
METHODS = ("UMODL-FS", *FILTERS)
LEARNERS = ("T-learner, logistic", "X-learner, linear")
NOISE = np.arange(0, 101, 10)
FEW = 100  # successes below which a Qini coefficient says nothing

EXPERIMENT = Experiment(
    paper="004",
    shows=("Figure 6", "Figure 7"),
    title="Selection among noise",
    data="What is public of the paper's: a sample of 5,000 rows of Zenodo 3653141 (the paper: 100 trials of 10,000) and one of 1,000 rows of Criteo (10,000 in the paper); and `simulate_feature_selection`, 10,000 rows, a set for every repeat.",
    protocol="0, 10, …, 100 columns of standard normal noise are added. In each of ten stratified folds every selector is fitted on the training part; filters keep as many features as UMODL-FS (at least one). Qini coefficients "
    "(scikit-uplift's convention) of a T-learner with logistic regression and an X-learner with linear regression. The paper has 100 samples of ten folds each: here 100 simulated sets, each with one of its ten folds; a fold is a repeat.",
)
PICTURES = ("selection-qini", "selection-noise")
SETS = ("zenodo", "criteo", "simulated")


def plan(size):
    if size == "smoke":
        yield {"set": "simulated", "rows": 600, "noise": 10}, 1
        return
    for name in SETS[:2]:
        yield {"set": name, "noise": 100}, 1 if size == "quick" else 10
        yield {"set": name, "about": "outcomes"}, 1
    small, each = {"rows": 2000, "noise": 20}, {"noise": 100, "folds": 1}
    yield {"set": "simulated", **(small if size == "quick" else each)}, {"quick": 1, "medium": 30, "full": 100}[size]


@lru_cache(maxsize=3)
def _data(name, number, rows):
    if name == "simulated":
        data = simulate_feature_selection(n=rows or 10_000, random_state=number)
        return data.X, data.y, data.treatment
    folder = Path(os.environ.get("UPTURN_DATA", "absent"))
    file, outcome, arm = {
        "zenodo": ("zenodo/zenodo3653141_sample5000_kuplift.csv.gz", "visit", "segment"),
        "criteo": ("criteo/criteo_uplift_v2.1_sample1000.csv.gz", "visit", "treatment"),
    }[name]
    if not (folder / file).exists():
        raise DataNotFoundError(f"{file} is not in the folder that UPTURN_DATA names")
    rows_read = pd.read_csv(folder / file)
    features = [f"f{j}" for j in range(12)] if name == "criteo" else [c for c in rows_read if c not in (outcome, arm)]
    return rows_read[features], rows_read[outcome].to_numpy(), rows_read[arm].to_numpy()


def _judge(X, y, t, train, test):
    logistic = make_pipeline(StandardScaler(), LogisticRegression(C=1e3, max_iter=500))  # hardly any penalty
    learners = TLearner(logistic), XLearner(LinearRegression(), LinearRegression(), propensity="shares")
    models = [learner.fit(X[train], y[train], t[train]) for learner in learners]
    return [qini(y[test], model.predict(X[test]), t[test], convention="sklift") for model in models]


def run(case, seed):
    drawn, fold = (seed, seed % 10) if case.get("folds") == 1 else divmod(seed, 10)
    X, y, t = _data(case["set"], drawn, case.get("rows"))
    if case.get("about") == "outcomes":
        return {"rows": len(y), "successes": int(np.sum(y == 1))}
    own, most = X.shape[1], case["noise"]
    noise = np.random.default_rng(drawn).normal(size=(len(y), most))
    full = pd.concat([X.reset_index(drop=True), pd.DataFrame(noise).add_prefix("noise")], axis=1)
    values = full.to_numpy(dtype=float)
    train, test = list(UpliftKFold(10, random_state=drawn).split(full, y, t))[fold]
    arrays = full.iloc[train], y[train], t[train]
    umodl = UMODLSelector().fit(*arrays).scores_
    ranks = {name: FilterSelector(criterion=s, k="all").fit(*arrays).ranking_ for name, s in FILTERS.items()}
    known, found = (
        {(): [0.0, 0.0]},
        {method: [] for method in METHODS},
    )  # without any feature there is nothing to rank by
    for more in NOISE[most >= NOISE]:  # a score does not depend on the other columns, so one fit serves all
        here = np.arange(own + more)
        for method in METHODS:
            chosen = here[umodl[here] > 0]
            if method != "UMODL-FS":
                chosen = here[np.argsort(ranks[method][here])[: max(len(chosen), 1)]]
            key = tuple(chosen.tolist())
            if key not in known:
                known[key] = _judge(values[:, chosen], y, t, train, test)
            found[method].append([*known[key], int((chosen >= own).sum()), len(chosen)])
    return found


def _rows(found):
    return {name: row for name in SETS if (row := found.one(set=name, noise=100))}


def _table(found):
    lines = []
    for name, row in _rows(found).items():
        for k, learner in enumerate(LEARNERS):
            cells = []
            for method in METHODS:
                mean = row.mean(method)[0]
                cells.append(f"{number(mean[0, k], 3)} → {number(mean[-1, k], 3)}")
            lines.append([name, learner, *cells, str(len(row.seeds))])
    return table(["mean Qini, 0 → 100 noise columns", "learner", *METHODS, "folds"], lines)


def _behind(found):
    """Where UMODL-FS is behind, and where it is not."""
    shares = []
    for name, row in _rows(found).items():
        means = {method: row.mean(method)[0][:, :2] for method in METHODS}
        first = means["UMODL-FS"] >= np.max([means[method] for method in FILTERS], axis=0)
        shares.append(f"{name} {first.mean():.0%}")
    few = [name for name, (n, _) in _about(found).items() if n < FEW]
    small = f"; {' and '.join(few)}: too few successes to tell" if few else ""
    return f"not found out; first in {', '.join(shares)}; the public samples are smaller than the paper's{small}"


def _claims(found):
    rows = _rows(found)
    kept = {name: int(row.numbers("UMODL-FS")[:, -1, 2].sum()) for name, row in rows.items()}  # a score knows no others
    asked = {name: 100 * len(row.seeds) for name, row in rows.items()}
    yield (
        "UMODL-FS never keeps a noise column",
        sum(kept.values()) == 0,
        "of those in all folds: " + "; ".join(f"{name} {n} of {asked[name]:,}" for name, n in kept.items()),
        "one of so many does by chance what a true feature does; not found out whether the paper's samples just had none",
    )
    shares = {name: [row.mean(m)[0][-1, 2] / row.mean(m)[0][-1, 3] for m in FILTERS] for name, row in rows.items()}
    text = "; ".join(f"{name} {min(s):.0%} to {max(s):.0%}" for name, s in shares.items())
    yield (
        "all filters keep noise",
        all(min(s) > 0 for s in shares.values()),
        f"of what they keep beside 100 noise columns: {text}",
    )
    first = []
    for row in rows.values():
        for k in range(2):
            means = {method: row.mean(method)[0][:, k] for method in METHODS}
            first += [means["UMODL-FS"][v] >= max(means[m][v] for m in FILTERS) for v in range(len(NOISE))]
    yield (
        "UMODL-FS has the best Qini in all experiments",
        bool(first) and all(first),
        f"in {np.mean(first):.0%} of them (sets × learners × numbers of noise columns)",
        _behind(found),
    )


def _about(found):
    """Successes and rows of the public samples."""
    rows = {name: found.one(set=name, about="outcomes") for name in SETS}
    return {name: (row.values[0]["successes"], row.values[0]["rows"]) for name, row in rows.items() if row}


def _sets(found):
    """Folds of simulated sets that were run, and of how many sets, in words."""
    row = found.one(set="simulated", noise=100)
    folds = len(row.seeds) if row else 0
    sets = len({seed if row.case.get("folds") == 1 else seed // 10 for seed in row.seeds}) if row else 0
    return f"{folds} {'fold' if folds == 1 else 'folds'} of {sets} simulated {'set' if sets == 1 else 'sets'}"


def report(found):
    if not _rows(found):
        return
    yield _table(found)
    yield claims(_claims(found))
    if about := _about(found):
        few = [f"{name}'s {n} say next to nothing" for name, (n, _) in about.items() if n < FEW]
        listed = ", ".join(f"{name} {n:,} of {rows:,} rows" for name, (n, rows) in about.items())
        yield f"Successes in the samples: {listed}" + (f"; Qini coefficients of {' and '.join(few)}." if few else ".")
    yield f"Bars of the picture are one standard deviation over folds: ten of each public sample, {_sets(found)}."
    yield "![Qini coefficients against noise columns](images/selection-qini.png)"
    yield "![Noise among what is kept](images/selection-noise.png)"


def summary(found):
    return f"{held(_claims(found))}; smaller samples than the paper's, {_sets(found)}"


def quotes(found):
    return {"table": _table(found), "findings": claims(_claims(found))}


def draw(found):
    rows = _rows(found)
    first, axes = _draw.panels(len(LEARNERS), len(rows), 4.2, 3.2)
    second, below = _draw.panels(1, len(rows), 4.2, 3.2)
    for j, (name, row) in enumerate(rows.items()):
        for m, method in enumerate(METHODS):
            mean, error = row.mean(method)
            spread = error * np.sqrt(len(row.seeds))
            for k, learner in enumerate(LEARNERS):
                axes[k, j].plot(NOISE, mean[:, k], label=method, **_draw.style(m))
                axes[k, j].errorbar(
                    NOISE + m - 2.5,
                    mean[:, k],
                    spread[:, k],
                    fmt="none",
                    ecolor=_draw.COLOURS[m],
                    elinewidth=0.8,
                    alpha=0.6,
                )
                axes[k, j].set(title=f"{name}: {learner}", xlabel="noise columns", ylabel="Qini")
            below[0, j].plot(NOISE[1:], 100 * mean[1:, 2] / NOISE[1:], label=method, **_draw.style(m))
            below[0, j].set(title=name, xlabel="noise columns", ylabel="% of them kept")
    for figure, axis in ((first, axes[0, 0]), (second, below[0, 0])):
        figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=len(METHODS), frameon=False)
    return {"selection-qini": first, "selection-noise": second}
