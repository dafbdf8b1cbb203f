"""Table 6.4.1: areas under the uplift curve of six methods on 28 data sets."""

from __future__ import annotations

from experiments import _compare
from experiments._compare import beside, compared, number, table
from experiments._declared import Experiment
from experiments.zaniewicz._methods import LARGE, METHODS, area
from experiments.zaniewicz._printed import TABLE_6_4_1
from experiments.zaniewicz.readings import explanations
from upturn.datasets import PAPER_ROWS

EXPERIMENT = Experiment(
    paper="000",
    shows=("Table 6.4.1",),
    title="Six methods on 28 data sets",
    data="BMT, Hillstrom's mailings, trials of the R packages survival and KMsurv, and UCI sets split by an attribute: `paper_benchmarks`.",
    protocol="128 random splits in the paper, 80% to learn from. All machines choose C by 5-fold AUUC inside the larger part: 10^-2 to 10^5, or, for the uplift "
    "machine (p = 1), 10^-2 to 10^3 with ten ratios from 1 to 2.5. The double machine takes one C for both groups and calibrates by a logistic "
    "regression; SVM-upl divides C by the number of pairs. The tree is Euclidean and pruned. On the mailings the grid has 2 × 3 points (other machines 3).",
)
_SPLITS = {"smoke": 1, "quick": 2, "medium": 16, "full": 128}


def plan(size):
    names = {"smoke": ["hodg"], "quick": ["hodg", "veteran", "breast cancer", "labor"]}.get(size, PAPER_ROWS)
    for method in METHODS:
        for name in names:
            if name in LARGE:  # minutes each
                yield {"set": name, "method": method, "grid": "few"}, {"medium": 16, "full": 128}[size]
            elif (name, method) != ("bladder", "Diff-pred SVM"):  # "we were not able to run"
                yield {"set": name, "method": method}, _SPLITS[size]


def run(case, seed):
    return area(case["set"], case["method"], seed, few=case.get("grid") == "few")


def pairs(found):
    """Every comparison: (set, method), the numbers, and why they differ where they do."""
    for name in PAPER_ROWS:
        for method, printed in TABLE_6_4_1[name].items():
            one = beside(printed, found.one(set=name, method=method), their_n=128, rounded=0.0005)
            if one is not None:
                yield name, method, one


def report(found):
    everything, why = list(pairs(found)), explanations()
    yield (
        f"{_compare.count(one for _, _, one in everything)} cells are within {_compare.FAR:g} standard errors of the printed ones. "
        "The standard error is that of the difference, the paper's 128 splits included, but never the data's own: another sample of people would differ by far more."
    )
    rows = []
    for method in METHODS:
        mine = [one for _, name, one in everything if name == method]
        rows.append(
            [method, _compare.count(mine), number(sum(one.ours - one.paper for one in mine) / max(len(mine), 1), 4)]
        )
    yield table(["method", "agree", "mean difference, here less paper"], rows)
    yield compared(
        (
            ((name, method), one, why[name] if one.verdict == "does not agree" else "")
            for name, method, one in everything
        ),
        ("data", "method"),
    )


def quotes(found):
    """The column of the uplift machine, for the page of the machines."""
    cells = [(name, one) for name, method, one in pairs(found) if method == "Uplift SVM"]
    rows = [
        [name, number(one.paper, 3), number(one.ours), number(one.error), str(one.n), one.verdict]
        for name, one in cells
    ]
    everything = [one for _, _, one in pairs(found)]
    return {
        "uplift": table(["data", "dissertation", "here", "standard error", "splits", ""], rows),
        "agree": _compare.count(everything),
        "agree uplift": _compare.count(one for _, one in cells),
    }


def summary(found):
    return f"{_compare.count(one for *_, one in pairs(found))} cells agree, {len(list(pairs(found)))} run"
