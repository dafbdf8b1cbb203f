"""Readings of what the dissertation leaves open, each as one rule for all sets: which comes nearest to Table 6.4.2?"""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np

from experiments import _kept
from experiments._compare import beside, count, number, table
from experiments._data import load
from experiments._declared import Experiment, Part
from experiments.zaniewicz._methods import LARGE, split
from experiments.zaniewicz._printed import TABLE_6_4_2
from upturn.datasets import PAPER_ROWS, UCI_SPLITS
from upturn.datasets._reading import table as table_of
from upturn.metrics import auuc
from upturn.svm import UpliftSVM

EXPERIMENT = Experiment(
    paper="000",
    shows=(),
    title="Readings of the protocol",
    data="The sets of Table 6.4.1, the two mailings left out.",
    protocol="The uplift machine with p = 2, C = 1 and ratio 1, beside the printed column for p = 2 (which is tuned; with p = 2 that hardly matters). Every reading is one rule for all sets.",
)
READINGS = {
    "as everywhere here": "columns standardised, levels as 0-1 columns, missing values at the mean with a column that says where, splits by arm and outcome",
    "not scaled": "columns as they are",
    "unit interval": "columns brought to [0, 1]",
    "codes are numbers": "levels that are written as numbers are numbers",
    "levels are numbered": "every level is replaced by its number, in the order of the alphabet",
    "complete rows": "rows with missing values left out",
    "no column for missing": "missing values at the mean, and no column that says where",
    "split by arm": "outcomes are not balanced between the parts of a split",
    "arms exchanged": "the condition of Table 6.2.1 selects control",
    "minority succeeds": "the outcome the other way round",
    "condition known": "rows in which the attribute that splits the set is missing are left out (here they are control, or treatment for ≠)",
    "ordered outcome": "outcomes of several ordered classes are cut in the middle (quality 6 or more) instead of majority against the rest",
    "median of all arms": "survival beyond the median of all arms of the trial, also where two of three are used",
    "above the median": "survival longer than the median, instead of at least as long",
    "C = .01": "a strong penalty, as tuning on small sets often chooses",
    "C = 100": "a weak penalty",
}


def plan(size):
    splits = {"smoke": 1, "quick": 4, "medium": 32, "full": 128}[size]
    names = ("labor", "hodg") if size in ("smoke", "quick") else [name for name in PAPER_ROWS if name not in LARGE]
    for reading in list(READINGS)[: 5 if size == "smoke" else None]:
        for name in names:
            yield {"set": name, "reading": reading}, splits


def run(case, seed):
    data, reading = load(case["set"]), case["reading"]
    data = replace(data, y=_outcome(data, case["set"], reading))
    X, y, t = data.X, data.y, data.treatment
    train, test = split(data, seed, "arm" if reading == "split by arm" else "arm-outcome")
    if reading in ("complete rows", "condition known"):
        whole = ~X.isna().any(axis=1).to_numpy() if reading == "complete rows" else _known(case["set"], len(y))
        train, test = train[whole[train]], test[whole[test]]
        if len(test) < 4 or min(np.bincount(2 * t[train] + y[train], minlength=4)) == 0 or len(set(t[test])) < 2:
            return None
    X = _read(X, reading, train)
    y, t = (1 - y if reading == "minority succeeds" else y), (1 - t if reading == "arms exchanged" else t)
    C = {"C = .01": 0.01, "C = 100": 100.0}.get(reading, 1.0)
    plain = reading in ("not scaled", "unit interval")
    model = UpliftSVM(C=C, p=2.0, standardize=not plain).fit(X.iloc[train], y[train], t[train])
    return auuc(y[test], model.predict(X.iloc[test]), t[test])


def _outcome(data, name, reading):
    """Successes as a reading has them."""
    if reading == "ordered outcome" and name.startswith("winequality"):
        return (raw(name)["quality"] >= 6).to_numpy().astype(int)
    time = data.details.get("time")
    if reading == "above the median" and time is not None:
        return (time > np.median(time)).astype(int)
    if reading == "median of all arms" and name.startswith("colon-lev"):
        everybody = load("colon-death" if name.endswith("death") else "colon-recur").details["time"]
        return (time >= np.median(everybody)).astype(int)
    return data.y


def raw(name):
    """The file of a set that is split by an attribute."""
    one = UCI_SPLITS[{"diagnosis": "acute-inflammations", "breast cancer": "breast-cancer"}.get(name, name)]
    return table_of(one.file, "readings", (one.condition[0], one.target), missing=("", "?"))


def _known(name, n):
    name = {"diagnosis": "acute-inflammations", "breast cancer": "breast-cancer"}.get(name, name)
    return raw(name)[UCI_SPLITS[name].condition[0]].notna().to_numpy() if name in UCI_SPLITS else np.ones(n, bool)


def _read(X, reading, train):
    """The features as a reading has them; what it learns it learns from the training rows."""
    levels = [column for column in X.columns if str(X[column].dtype) in ("category", "object", "str", "string")]
    if reading == "codes are numbers":
        numeric = [c for c in levels if all(_is_number(level) for level in X[c].dropna().unique())]
        return X.astype(dict.fromkeys(numeric, float))
    if reading == "levels are numbered":
        X = X.copy()
        for column in levels:
            codes = X[column].astype("category").cat.codes.astype(float)
            X[column] = codes.where(codes >= 0)
        return X
    if reading == "no column for missing":
        X = X.copy()
        for column in X.columns:
            if column not in levels:
                X[column] = X[column].astype(float).fillna(X[column].iloc[train].mean())
        return X
    if reading == "unit interval":
        X = X.copy()
        for column in X.columns:
            if column not in levels:
                part = X[column].iloc[train].astype(float)
                X[column] = (X[column].astype(float) - part.min()) / max(part.max() - part.min(), 1e-12)
    return X


def _is_number(level):
    try:
        float(level)
    except (TypeError, ValueError):
        return False
    return True


def _pairs(found, reading):
    for name in PAPER_ROWS:
        row = found.one(set=name, reading=reading)
        if row is not None:
            kept = [(seed, value) for seed, value in zip(row.seeds, row.values, strict=True) if value is not None]
            if len(kept) > 1:
                row = type(row)(row.case, *map(list, zip(*kept, strict=True)))
                yield name, beside(TABLE_6_4_2[name]["Uplift SVM, p = 2"], row, their_n=128, rounded=0.0005)


def _run(found):
    return [reading for reading in READINGS if found.where(reading=reading)]


def report(found):
    rows = []
    for reading in _run(found):
        pairs = dict(_pairs(found, reading))
        off = [name for name, one in pairs.items() if one.verdict != "agrees"]
        splits = [len(row.seeds) for row in found.where(reading=reading)]
        rows.append([reading, READINGS[reading], _range(splits), count(pairs.values()), ", ".join(off)])
    if all(_same(found, reading) for reading in ("arms exchanged", "minority succeeds")):
        yield "Exchanging the arms or the outcomes changes nothing, as it must: all labels of the machine change sign, and so does the ranking."
    agree = _agreeing(found)
    most = [f"*{reading}* ({sum(agree[reading])} of {len(agree[reading])})" for reading in _best(found)]
    left = f", {len(READINGS) - len(rows)} more are written" if len(rows) < len(READINGS) else ""
    yield (
        f"{len(rows)} readings were tried{left}. Most sets agree under {' and '.join(most)}; as everywhere here, {count(one for _, one in _pairs(found, _run(found)[0]))} do. "
        "How many sets come within three standard errors of the printed area:"
    )
    yield table(["reading", "what it is", "splits", "agree", "sets that do not"], rows)
    if len({len(row.seeds) for row in found.rows}) > 1:
        yield "Counts of readings with other numbers of splits differ by chance, too."
    wide = [["", *("paper", *_run(found))]]
    cells = {reading: dict(_pairs(found, reading)) for reading in _run(found)}
    body = [
        [name, number(TABLE_6_4_2[name]["Uplift SVM, p = 2"], 3), *(number(cells[r][name].ours, 3) if name in cells[r] else "–" for r in cells)]
        for name in PAPER_ROWS
        if any(name in cell for cell in cells.values())
    ]  # fmt: skip
    yield table(wide[0], body)


def _same(found, reading):
    """Whether a reading gives the areas of the first one, on the same splits."""
    apart = []
    for row in found.where(reading=reading):
        first = found.one(set=row.case["set"], reading=next(iter(READINGS)))
        by_seed = dict(zip(first.seeds, first.values, strict=True)) if first else {}
        apart += [abs(v - by_seed[k]) for k, v in zip(row.seeds, row.values, strict=True) if by_seed.get(k) is not None]
    return bool(apart) and max(apart) < 1e-4


def _range(numbers):
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"


def _agreeing(found):
    """For every reading: of each set that can be judged, whether it agrees."""
    return {
        reading: [one.verdict == "agrees" for _, one in _pairs(found, reading) if not math.isnan(one.z)]
        for reading in _run(found)
    }


def _best(found):
    """The readings under which most sets agree."""
    agree = {reading: sum(one) for reading, one in _agreeing(found).items()}
    return [reading for reading, n in agree.items() if n == max(agree.values())]


def quotes(found):
    best = _best(found)[0]
    return {
        "tried": str(len(_run(found))),
        "first": count(one for _, one in _pairs(found, _run(found)[0])),
        "best": f"{best} ({count(one for _, one in _pairs(found, best))})",
    }


def explanations():
    """A sentence for every set, on the uplift machine: which readings bring it to the printed area, by more than chance on the same splits; and the sets where it agrees anyway."""
    found = _kept.read(Part("zaniewicz.readings", EXPERIMENT, sys.modules[__name__]))
    first, *others = READINGS
    cells = {reading: dict(_pairs(found, reading)) for reading in READINGS}
    said = dict.fromkeys(PAPER_ROWS, "")
    for name, one in cells[first].items():
        if one.verdict == "agrees":
            said[name] = "with p = 2, C = 1 and ratio 1 it does, so it is hardly the data"
        elif one.verdict == "does not agree":
            near = [
                reading
                for reading in others
                if name in cells[reading] and cells[reading][name].verdict == "agrees" and _moved(found, name, first, reading)
            ]  # fmt: skip
            said[name] = (
                "would, if " + " or ".join(f"*{reading}*" for reading in near) if near else "no reading tried does"
            )
    return said, {name for name, one in cells[first].items() if one.verdict == "agrees"}


def _moved(found, name, first, reading):
    """Whether a reading changes the area by more than two standard errors of its differences on the same splits."""
    by_seed = [
        dict(zip(row.seeds, row.values, strict=True))
        for row in (found.one(set=name, reading=r) for r in (first, reading))
    ]
    apart = [
        by_seed[1][k] - by_seed[0][k]
        for k in by_seed[0].keys() & by_seed[1].keys()
        if None not in (by_seed[0][k], by_seed[1][k])
    ]
    if len(apart) < 2 or not np.any(apart):
        return False
    return abs(np.mean(apart)) > 2 * np.std(apart, ddof=1) / np.sqrt(len(apart))
