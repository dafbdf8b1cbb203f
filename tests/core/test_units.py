"""One rule of units and digits in whatever is printed or drawn: no 7.247e+06, no 0.123456789, and what it is in."""

from __future__ import annotations

import re
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import upturn as up
from upturn import metrics, plot, policy
from upturn.features import UMODLDiscretizer
from upturn.model_selection import compare_models
from upturn.trees import UpliftForest, UpliftTree

mpl.use("Agg")

N = 3000
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "age": RNG.normal(45, 12, N),
        "income": RNG.uniform(100, 98765.4321, N),
        "city": RNG.choice(["Bern", "Rom", "Ulm"], N),
    }
)
ARM = RNG.choice(["no mail", "mail"], N)
ARMS = RNG.choice(["no mail", "mail", "call"], N)
HELPED = (X["age"] > 45).to_numpy() & (ARM == "mail")
OUTCOMES = {
    "rate": (RNG.random(N) < 0.2 + 0.15 * HELPED).astype(int),
    "small rate": (RNG.random(N) < 0.004 + 0.003 * HELPED).astype(int),
    "money": 1234567.89 * RNG.gamma(2, 1, N) * (1 + 0.4 * HELPED),
    "cents": 0.000123456 * RNG.gamma(2, 1, N) * (1 + 0.4 * HELPED),
}
UNITS = {"rate": "per 1,000 people", "small rate": "per 1,000 people", "money": "per person", "cents": "per person"}
NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


def offences(text: str) -> list[str]:
    """Numbers with an exponent, or with more than five digits that say something; what is counted may have all of its digits."""
    text = re.sub(r"[\d,]+ rows|arms: [\d, ]+\)|at a cost of [\d,]+|[\d,]+ of the budget", "", text)
    found = re.findall(r"\d(?:\.\d+)?e[+-]?\d+", text)
    for number in NUMBER.findall(text):
        if "e" in number:
            continue
        digits = number.replace(",", "").strip("0") if "." not in number else number.replace(",", "")
        digits = digits.replace(".", "").lstrip("0")
        if len(digits) > 5:
            found.append(number)
    return found


def test_offences_are_found():
    assert offences("a 7.247e+06 and 0.123456 and 7,247,123 and 1e7, n=21,306") == [
        "7.247e+06", "1e7", "0.123456", "7,247,123",
    ]  # fmt: skip
    assert not offences("7,247,000 of 12.35% [0.0001234, 64,000], 1,000 people; x0 <= 4.5")


def texts_of(name: str) -> dict[str, str]:
    """Everything that prints, of a table with this outcome."""
    y = OUTCOMES[name]
    size = float(np.std(y))
    score = size * (X["age"].to_numpy() - 45) / 60
    two = {"age": score, "guess": size * RNG.normal(size=N)}
    plain = {"y": y, "treatment": ARM}
    tree = UpliftTree(max_depth=2, random_state=0).fit(X, y, ARM)
    several = UpliftTree(max_depth=1, random_state=0).fit(X, y, ARMS)
    response = np.column_stack([np.full(N, y.mean()), np.full(N, y.mean() * 1.1)])
    found = {
        "check": up.check(X, y, ARM),
        "evaluate": metrics.evaluate(y, two, ARM, k=0.123456789, n_bootstrap=20),
        "evaluate with few": metrics.evaluate(y, {"a": score}, ARM, k=1, metrics=["uplift_at"], interval=None),
        "evaluate with response": metrics.evaluate(y, two, ARM, metrics=["auuc"], response=response, n_bootstrap=20),
        "compare": metrics.compare(y, two, ARM, n_bootstrap=20),
        "subgroups": up.subgroups("city", X, y, ARM),
        "subgroups by income": up.subgroups("income", X, y, ARM),
        "subgroups of a tree": up.subgroups(tree, X, y, ARM),
        "ratio": up.subgroups("city", X, y, ARM, scale="ratio"),
        "factorial": up.factorial(y, ARM, RNG.choice(["no call", "call"], N)),
        "calibration": metrics.calibration_table(y, score, ARM, n_bins=4),
        "plan": policy.target(score, fraction=0.2, **plain, n_bootstrap=20),
        "plan with costs": policy.target(score, budget=123456.789, cost=1234.5, value=98765.4, **plain, n_bootstrap=20),
        "plan without value": policy.target(score, budget=1234.567, cost=3.21, **plain, n_bootstrap=20),
        "predicted plan": policy.target(score, fraction=0.2),
        "gain curve": policy.gain_curve(**plain, score=score, n_bootstrap=20),
        "curve": metrics.uplift_curve(y, score, ARM),
        "tree": tree,
        "text of a tree": tree.export_text(),
        "text of several arms": several.export_text(),
        "power": up.power(y, None, ARM, effect=size / 10),
        "power of a score": up.power(y, score, ARM, effect=size / 30, n_bootstrap=20),
        "pilot": up.power(y, None, ARM),
        "overlap": policy.overlap(X, ARM),
        "comparison of models": compare_models({"a": tree, "b": several}, X, y, ARM, cv=2, random_state=0),
        "model": UpliftForest(n_estimators=4, random_state=0).fit(X, y, ARM),
    }
    found["power at"] = found["power"].at([100, 12_345])
    found["comparison of plans"] = found["plan with costs"].comparison
    if "rate" in name:
        found["number needed"] = up.subgroups("city", X, y, ARM, scale="nnt")
        found["odds ratio"] = up.subgroups("city", X, y, ARM, scale="odds_ratio")
        found["discretiser"] = UMODLDiscretizer().fit(X, y, ARM)
        found["assumed"] = up.power(effect=y.mean() / 7, rate=float(y.mean()))
    else:
        found["assumed"] = up.power(effect=size / 7, sd=size)
    texts = {}
    for what, value in found.items():
        texts[what] = value if isinstance(value, str) else repr(value)
        if hasattr(value, "_fitted_html") or hasattr(
            value, "_repr_html_"
        ):  # of models, what upturn adds to the diagram
            html = value._fitted_html() if hasattr(value, "_fitted_html") else value._repr_html_()
            texts[f"{what} in a notebook"] = re.sub(
                r"<style.*?</style>|<script.*?</script>|<[^>]*>", " ", html, flags=re.S
            )
    return texts


def pictures_of(name: str) -> dict[str, object]:
    """Every picture of a table with this outcome."""
    y = OUTCOMES[name]
    size = float(np.std(y))
    score = size * (X["age"].to_numpy() - 45) / 60
    both = np.column_stack([score, -score])
    plain = {"interval": None}
    tree = UpliftTree(max_depth=2, random_state=0).fit(X, y, ARM)
    found = {
        "uplift": plot.uplift_curves(y, {"a": score, "b": -score}, ARM, **plain),
        "arms": plot.uplift_curves(y, both, ARMS, **plain),
        "qini": plot.qini_curves(y, score, ARM, **plain),
        "toc": plot.toc_curves(y, score, ARM, **plain),
        "modified": plot.modified_uplift_curves(y, score, ARM, **plain),
        "lift": plot.lift_curves(y, score, ARM, **plain),
        "deciles": plot.deciles(y, score, ARM),
        "scores": plot.score_distributions(score, ARM),
        "calibration": plot.calibration(metrics.calibration_table(y, score, ARM)),
        "gain": plot.gain(policy.gain_curve(y, score, ARM, n_bootstrap=20)),
        "profit": plot.gain(policy.gain_curve(y, score, ARM, cost=1234.5, value=98765.4, n_bootstrap=20)),
        "tree": plot.tree(tree),
        "tree of arms": plot.tree(UpliftTree(max_depth=2, random_state=0).fit(X, y, ARMS)),
        "importances": plot.importances(tree),
        "subgroups": plot.subgroups(up.subgroups("city", X, y, ARM)),
        "ratio": plot.subgroups(up.subgroups("city", X, y, ARM, scale="ratio")),
        "overlap": plot.overlap(policy.overlap(X, ARM)),
    }
    if "rate" in name:
        found["number needed"] = plot.subgroups(up.subgroups("city", X, y, ARM, scale="nnt"))
        found["parts"] = plot.parts(UMODLDiscretizer().fit(X, y, ARM), "age")
    return found


@pytest.mark.parametrize("name", OUTCOMES)
def test_printed_numbers(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        texts = texts_of(name)
    assert {what: offences(text) for what, text in texts.items() if offences(text)} == {}
    in_units = ["check", "evaluate", "compare", "subgroups", "factorial", "calibration", "plan", "gain curve", "power"]
    in_units += ["power of a score", "power at", "assumed", "text of a tree", "comparison of plans"]
    assert [what for what in in_units if UNITS[name] not in texts[what]] == []
    heads = next(line for line in texts["evaluate"].splitlines() if line.startswith("model"))
    assert f"auuc, {UNITS[name]}" in heads
    assert f"uplift_at top 12.35%, {UNITS[name]}" in heads
    assert f"uplift_at top 1 person, {UNITS[name]}" in texts["evaluate with few"]
    assert re.search(r"effect call [+-]\S+, mail [+-]\S+ \[no mail: ", texts["text of several arms"])


@pytest.mark.parametrize("name", OUTCOMES)
def test_drawn_numbers(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pictures = pictures_of(name)
    found = {}
    for what, ax in pictures.items():
        ax.figure.canvas.draw()
        texts = [text.get_text() for text in ax.findobj(mpl.text.Text) if text.get_visible()]
        assert ax.get_title()
        assert "tree" in what or (ax.get_xlabel() and (ax.get_ylabel() or ax.get_yticklabels()))  # a tree has no axes
        bad = [text for text in texts if offences(text) or "\N{MULTIPLICATION SIGN}" in text or "mathdefault" in text]
        if bad:
            found[what] = bad
        mpl.pyplot.close(ax.figure)
    assert found == {}
    labelled = ["uplift", "arms", "qini", "toc", "modified", "lift", "deciles", "calibration", "gain"]
    assert [what for what in labelled if UNITS[name] not in pictures[what].get_ylabel()] == []
    assert "net profit per person" in pictures["profit"].get_ylabel()
    assert UNITS[name] in pictures["tree"].get_title()
    assert UNITS[name] in pictures["subgroups"].get_xlabel()


def test_numbers_along_an_axis_are_told_apart():
    """Ticks keep the digits that tell neighbours apart, and a formatter that somebody chose stays."""
    ax = mpl.pyplot.subplots()[1]
    ax.plot([0, 1], [1.2e7, 1.6e7])
    plot._style.tidy(ax)
    ax.figure.canvas.draw()
    ticks = [label.get_text() for label in ax.get_yticklabels()]
    assert "12,000,000" in ticks
    assert len(set(ticks)) == len(ticks)
    assert ax.yaxis.get_offset_text().get_text() == ""
    chosen = mpl.ticker.PercentFormatter()
    ax.yaxis.set_major_formatter(chosen)
    plot._style.tidy(ax)
    assert ax.yaxis.get_major_formatter() is chosen
    mpl.pyplot.close(ax.figure)
