"""Table 6.2.1: the UCI sets that are split into treatment and control by an attribute."""

from __future__ import annotations

from experiments._compare import table
from experiments._declared import Experiment
from upturn.datasets import UCI_SPLITS, load_uci_split

EXPERIMENT = Experiment(
    paper="000",
    shows=("Table 6.2.1",),
    title="UCI sets split by an attribute",
    data="Sixteen sets of the UCI repository: `load_uci_split`.",
    protocol="Attributes are removed whose means differ by more than 25% between the groups, or one of whose levels' shares differs by more than .25.",
)


def plan(size):
    for name in ["labor", "hepatitis"] if size == "smoke" else UCI_SPLITS:
        yield {"set": name}, 1


def run(case, seed):
    data = load_uci_split(case["set"])
    removed = len(data.details["removed"])
    return {
        "removed": removed,
        "total": removed + data.X.shape[1],
        "rows": len(data.y),
        "treated": int(data.treatment.sum()),
    }


def _same(found):
    rows = [row for row in found.rows if row.case["set"] in UCI_SPLITS]
    return sum(
        (row.values[0]["removed"], row.values[0]["total"]) == (UCI_SPLITS[row.case["set"]].removed, UCI_SPLITS[row.case["set"]].total)
        for row in rows
    ), len(rows)  # fmt: skip


def report(found):
    rows = []
    for name, split in UCI_SPLITS.items():
        row = found.one(set=name)
        if row:
            value = row.values[0]
            rows.append(
                [
                    name,
                    f"{split.removed} of {split.total}",
                    f"{value['removed']} of {value['total']}",
                    f"{value['rows']:,}",
                    f"{value['treated']:,}",
                ]
            )
    yield "Attributes removed agree with the table for {} of {} sets.".format(*_same(found))
    yield table(["data", "removed, paper", "removed, here", "rows", "in treatment"], rows)


def summary(found):
    return "counts agree for {} of {} sets".format(*_same(found))
