"""Table 6.4.1: areas under the uplift curve of six methods on 28 data sets."""

from __future__ import annotations

import math

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
    "regression; SVM-upl divides C by the number of pairs. The tree is Euclidean, pruned or grown without any minimum. On the mailings the grid has 2 × 3 points (other machines 3).",
)
_SPLITS = {"smoke": 1, "quick": 2, "medium": 16, "full": 128}
TREE = "Uplift Tree"
TREES = {"pruned": "pruned", "whole": "not pruned"}  # the text does not say; the one that agrees on more sets is shown


def plan(size):
    names = {"smoke": ["hodg"], "quick": ["hodg", "veteran", "breast cancer", "labor"]}.get(size, PAPER_ROWS)
    for method in METHODS:
        for name in names:
            if name in LARGE:  # minutes each
                yield {"set": name, "method": method, "grid": "few"}, {"medium": 16, "full": 128}[size]
            elif (name, method) != ("bladder", "Diff-pred SVM"):  # "we were not able to run"
                yield {"set": name, "method": method}, _SPLITS[size]
    for name in names:
        yield {"set": name, "method": TREE, "tree": "whole"}, _SPLITS[size]


def run(case, seed):
    few, pruned = case.get("grid") == "few", case.get("tree") != "whole"
    return area(case["set"], case["method"], seed, few=few, pruned=pruned)


def _row(found, name, method, tree):
    """The row of a set and method, the tree's in one of its readings."""
    rows = found.where(set=name, method=method)
    return next((row for row in rows if method != TREE or row.case.get("tree", "pruned") == tree), None)


def _cell(found, name, method, tree):
    row = _row(found, name, method, tree)
    return beside(TABLE_6_4_1[name].get(method, math.nan), row, their_n=128, rounded=0.0005)


def _trees(found):
    """The tree's comparisons by reading and set."""
    cells = {tree: {name: _cell(found, name, TREE, tree) for name in PAPER_ROWS} for tree in TREES}
    return {tree: {name: one for name, one in by_set.items() if one} for tree, by_set in cells.items()}


def _shown(found):
    """The reading of the tree that agrees on most sets, one for all sets."""
    cells = _trees(found)
    return max(TREES, key=lambda tree: sum(one.verdict == "agrees" for one in cells[tree].values()))


def pairs(found):
    """Every comparison: set, method, and the numbers."""
    tree = _shown(found)
    for name in PAPER_ROWS:
        for method in TABLE_6_4_1[name]:
            one = _cell(found, name, method, tree)
            if one is not None:
                yield name, method, one


def _why(name, method, one, other_trees, readings, agreeing):
    """Why a cell does not agree, as far as it is known."""
    if one.verdict != "does not agree":
        return ""
    for tree, cells in other_trees.items() if method == TREE else ():
        if name in cells and cells[name].verdict == "agrees":
            return f"{TREES[tree]} it does: {number(cells[name].ours)} ± {number(cells[name].error)}"
    if method in ("Uplift SVM", "Class-transf SVM"):
        return readings[name]
    if name in agreeing:
        return f"{_compare.UNKNOWN}, though the uplift machine with p = 2 agrees on this set"
    if readings[name].startswith("would"):
        return f"{_compare.UNKNOWN}; the uplift machine with p = 2 {readings[name]}"
    return (
        f"{_compare.UNKNOWN}; the uplift machine with p = 2 does not agree either"
        if readings[name]
        else _compare.UNKNOWN
    )


def report(found):
    everything, readings, agreeing = list(pairs(found)), *explanations()
    yield (
        f"{_compare.count(one for _, _, one in everything)} cells are within {_compare.FAR:g} standard errors of the printed ones. "
        "The column of standard errors is of our mean over splits; z also counts that of the paper's mean of 128 splits and its rounding, but never the data's own: another sample of people would differ by far more."
    )
    rows = []
    for method in METHODS:
        mine = [one for _, name, one in everything if name == method]
        rows.append(
            [method, _compare.count(mine), number(sum(one.ours - one.paper for one in mine) / max(len(mine), 1), 4)]
        )
    yield table(["method", "agree", "mean difference, here less paper"], rows)
    trees, shown = _trees(found), _shown(found)
    counts = "; ".join(f"{TREES[tree]} {_compare.count(cells.values())}" for tree, cells in trees.items() if cells)
    yield f"Whether the tree was pruned is not said. Sets that agree: {counts}. The table has the tree {TREES[shown]}, on all sets."
    others = {tree: cells for tree, cells in trees.items() if tree != shown}
    yield compared(
        (
            ((name, method), one, _why(name, method, one, others, readings, agreeing))
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
