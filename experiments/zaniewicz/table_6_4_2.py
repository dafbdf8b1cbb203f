"""Table 6.4.2: the Lp machines and class transformation over them, p = 1, 1.2, 1.5 and 2, on 28 data sets."""

from __future__ import annotations

from experiments import _compare
from experiments._compare import beside, compared, number, table
from experiments._declared import Experiment
from experiments.zaniewicz._methods import LARGE, area
from experiments.zaniewicz._printed import TABLE_6_4_2
from experiments.zaniewicz.readings import explanations
from upturn.datasets import PAPER_ROWS

METHODS = ("Uplift SVM", "Class-transf SVM")
POWERS = (2.0, 1.5, 1.2)

EXPERIMENT = Experiment(
    paper="000",
    shows=("Table 6.4.2",),
    title="Machines with slacks to the power p",
    data="The 28 data sets of Table 6.4.1.",
    protocol="As Table 6.4.1, with ten ratios from 1 to 5. The columns for p = 1 are those of Table 6.4.1.",
)
_SPLITS = {"smoke": 1, "quick": 2, "medium": 16, "full": 128}


def plan(size):
    names = {"smoke": ["hodg"], "quick": ["hodg", "veteran", "labor"]}.get(size, PAPER_ROWS)
    for p in POWERS:
        for method in METHODS:
            for name in names:
                if name in LARGE:
                    yield {"set": name, "method": method, "p": p, "grid": "few"}, {"medium": 16, "full": 128}[size]
                else:
                    yield {"set": name, "method": method, "p": p}, _SPLITS[size]


def run(case, seed):
    return area(case["set"], case["method"], seed, case["p"], few=case.get("grid") == "few")


def pairs(found):
    for name in PAPER_ROWS:
        for p in POWERS:
            for method in METHODS:
                row = found.one(set=name, method=method, p=p)
                one = beside(TABLE_6_4_2[name][f"{method}, p = {p:g}"], row, their_n=128, rounded=0.0005)
                if one is not None:
                    yield name, method, p, one


def report(found):
    everything, (why, _) = list(pairs(found)), explanations()
    yield (
        f"{_compare.count(one for *_, one in everything)} cells are within {_compare.FAR:g} standard errors of the printed ones; the column of standard errors is of our mean alone, z counts the paper's, too."
    )
    rows = []
    for p in POWERS:
        for method in METHODS:
            mine = [one for _, how, power, one in everything if (how, power) == (method, p)]
            if mine:
                rows.append(
                    [
                        method,
                        f"{p:g}",
                        _compare.count(mine),
                        number(sum(one.ours - one.paper for one in mine) / len(mine)),
                    ]
                )
    yield table(["method", "p", "agree", "mean difference, here less paper"], rows)
    yield compared(
        (
            ((name, method, f"{p:g}"), one, why[name] if one.verdict == "does not agree" else "")
            for name, method, p, one in everything
        ),
        ("data", "method", "p"),
    )


def quotes(found):
    return {"agree": _compare.count(one for *_, one in pairs(found))}


def summary(found):
    return f"{_compare.count(one for *_, one in pairs(found))} cells agree, {len(list(pairs(found)))} run"
