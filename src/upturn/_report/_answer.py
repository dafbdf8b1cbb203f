"""The verdict: whether there is something to recommend, and the sentences at the top of the page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from upturn._check import CheckReport
from upturn._report._held_out import ONE_RULE, Experiment, HeldOut
from upturn._report._measure import Measured, Money, Options
from upturn._report._people import People
from upturn._report._words import condition, listed, number, percent, rounded, with_interval
from upturn._results import level_text
from upturn._target import Target
from upturn.metrics import Estimate

_MOST_ARMS = 3  # that a sentence names one by one

Kind = Literal["recommend", "ranking", "rule", "random", "unsound"]


@dataclass(frozen=True)
class Words:
    """What things are called."""

    outcome: str
    trial: bool

    @property
    def people(self) -> str:
        """Those who are treated."""
        return "patients" if self.trial else "people"

    def say(self, text: str) -> str:
        """A sentence of the library with those words."""
        return re.sub(r"\bpeople\b", self.people, text)

    def arm(self, label: object, target: Target) -> str:
        """An arm in a sentence: by its label, unless that is a number."""
        if not str(label).replace(".", "").isdigit() and str(label) not in ("True", "False"):
            return str(label)
        if label == target.control:
            return "control"
        return "treatment" if target.n_arms == 1 else f"arm {label}"

    @property
    def per_1000(self) -> str:
        """The unit of gains."""
        return f"per 1,000 {self.people}"


@dataclass(frozen=True)
class Answer:
    """The answer: one sentence, how sure it is, and what to do.

    ``kind`` is "recommend", or why nothing is recommended: "unsound" (the experiment), "random" (no model ranks people
    better than chance), "rule" (none is better than a single rule) or "ranking" (the ranking is good, but the plan is not
    measurably better than treating as many at random).
    """

    kind: Kind
    sentence: str
    sure: list[str]
    advice: list[str]


def answer(
    check: CheckReport,
    leaks: list[str],
    measured: Measured,
    people: People,
    data: Experiment,
    options: Options,
    words: Words,
    money: Money,
    held: HeldOut,
) -> Answer:
    """Decide what the page says; ``leaks`` are columns that may have been measured after the treatment."""
    sure = _sure(measured, data, options, words, held)
    if leaks:
        was, it = ("was", "it") if len(leaks) == 1 else ("were", "them")
        mend = f"If {listed(leaks)} {was} measured after the treatment, leave {it} out and make the page again."
        return Answer("unsound", _leaking(leaks), sure, [mend, *map(words.say, check.advice)])
    kind = _kind(check, measured)
    if kind == "ranking":
        sentence, advice = _ranking(measured, words, money)
    elif kind == "random" and held.is_flat(measured.main):
        sentence, advice = _flat(check, measured, data, words)
    else:
        say = {"recommend": _recommend, "rule": _rule, "random": _random, "unsound": _unsound}[kind]
        sentence, advice = say(check, measured, people, data, words)
    if words.trial and kind != "unsound":
        sentence = _in_a_trial(kind, check, data, words)
    if kind == "recommend":
        gain = number(1000 * measured.plan.predicted_gain / measured.plan.n)
        sure.append(
            f"By its own predictions the plan would gain {gain} {words.per_1000}; what was measured is what counts."
        )
    return Answer(kind, sentence, sure, advice)


def _kind(check: CheckReport, measured: Measured) -> Kind:
    if not check.ok:
        return "unsound"
    if not measured.areas[measured.main].low > 0:
        return "random"
    if not measured.better[ONE_RULE][1] > 0:
        return "rule"
    if measured.plan.n_treated and not _better(measured, "as many at random")[1] > 0:
        return "ranking"
    return "recommend"


def row_of(measured: Measured, whom: str) -> dict[str, Any]:
    """A line of the comparison of plans."""
    table = measured.plan.comparison
    at = table["whom"].tolist().index(whom)
    return {name: table[name][at] for name in table.columns}


def plan_share(measured: Measured) -> float:
    """The share of people whom the plan treats: the same number wherever the page says it."""
    return float(row_of(measured, "this plan")["treated"])


def _better(measured: Measured, whom: str) -> tuple[float, float, float]:
    """By how much the plan is better than another one, per 1,000 people."""
    row = row_of(measured, whom)
    return tuple(1000 * float(row[key]) for key in ("this plan better by", "better low", "better high"))  # type: ignore[return-value]


def _treat(measured: Measured, data: Experiment, words: Words) -> str:
    if data.target.n_arms == 1:
        return f"Treat {percent(plan_share(measured))} of {words.people}"
    weight = data.target.weights
    shares = [
        float(weight[measured.plan.arm == k + 1].sum() / weight.sum()) if (measured.plan.arm == k + 1).any() else 0.0
        for k in range(data.target.n_arms)
    ]
    parts = [
        f"{words.arm(label, data.target)} to {percent(share)}"
        for label, share in zip(data.target.arms, shares, strict=True)
        if share
    ]
    return f"Give {listed(parts)} of {words.people}" if parts else f"Treat none of the {words.people}"


def _recommend(
    check: CheckReport, measured: Measured, people: People, data: Experiment, words: Words
) -> tuple[str, list[str]]:
    plan = measured.plan
    if plan.n_treated == 0:
        if words.trial:
            return "Treat nobody: no patient is predicted to gain.", [
                "The control is the better choice for all of them."
            ]
        return (
            "Treat nobody: no one is predicted to gain more than treating them costs.",
            ["Look at cost and value: at which of them would somebody be worth it?"],
        )
    gain, profit = plan.per_1000, plan.profit_per_1000
    what, best = (words.outcome, gain) if profit is None else ("net profit", profit)
    assert isinstance(best, Estimate)
    more = _better(measured, "as many at random")
    text = (
        f"{_treat(measured, data, words)}: {what} rises by {with_interval(best, best.low, best.high)} {words.per_1000} "
        f"over treating nobody, and by {with_interval(*more)} over treating as many at random."
    )
    rivals = {"nobody": "treating nobody", "as many at random": "treating as many at random"}
    for label in data.target.arms:
        rivals[f"everybody: {label}"] = (
            "treating everybody" if data.target.n_arms == 1 else f"giving {words.arm(label, data.target)} to everybody"
        )
    won = [name for whom, name in rivals.items() if _better(measured, whom)[1] > 0]
    lost = {name: _better(measured, whom) for whom, name in rivals.items() if not _better(measured, whom)[1] > 0}
    advice = [f"Measurably better than {listed(won)}."] if won else []
    advice += [
        f"Not measurably better than {name}: the difference is {with_interval(*gap)}." for name, gap in lost.items()
    ]
    if not words.trial:
        advice.insert(
            0, "Choose from the next list with this model, fitted to all rows: the last lines of the appendix do that."
        )
        advice.append(
            "Keep a small part of the next list untreated, at random: only that tells whether it worked again."
        )
    return text, advice


def _ranking(measured: Measured, words: Words, money: Money) -> tuple[str, list[str]]:
    """The order of people is right, but the plan goes too far down to gain by it, or not far enough to show it."""
    more, share = with_interval(*_better(measured, "as many at random")), percent(plan_share(measured))
    what = "" if measured.plan.profit is None else " in net profit"
    if measured.plan.n_treated == measured.plan.n:
        found = f"everybody is predicted to gain, so the plan is to treat all {words.people}, and a ranking has nothing to choose"
    else:
        found = (
            f"treating {share} of {words.people} by it is not measurably better than treating as many at random: the difference{what} is "
            f"{more} {words.per_1000}"
        )
    sentence = (
        f"No recommendation whom to treat: the {measured.main} ranks {words.people} better than chance, but {found}."
    )
    if words.trial:
        return sentence, ["Effects differ, but too little for most patients to be better off with the control."]
    advice = ["Where fewer are treated, the ranking does matter: the curves and the slider below say how much."]
    if money.cost is None and money.budget is None and money.fraction is None:
        advice.append(
            "Say what treating costs and what the outcome is worth, or how many can be treated: then there is a plan to judge."
        )
    else:
        advice.append(
            "Treat as many as planned if that pays by itself, or fewer, the best first; more rows would tell more."
        )
    return sentence, advice


def _flat(check: CheckReport, measured: Measured, data: Experiment, words: Words) -> tuple[str, list[str]]:
    """The model itself says that everybody gains alike."""
    sentence = (
        f"One effect for everybody: on {len(data.target):,} rows nothing shows that effects differ, and the {measured.main} predicts the "
        f"same for all {words.people}. On average, {_average(check, data, words)}."
    )
    need = "To tell whose benefit is larger takes" if words.trial else "To target takes"
    return sentence, [
        f"Decide for all {words.people} alike, by the average effect.",
        f"{need} more rows, or features that say more about why somebody would respond.",
    ]


def _random(
    check: CheckReport, measured: Measured, people: People, data: Experiment, words: Words
) -> tuple[str, list[str]]:
    others = [name for name, area in measured.areas.items() if area.low > 0]
    who = "no model" if not others else f"the {measured.main} does not"
    text = f"on {len(data.target):,} rows {who} {'tells' if not others else 'tell'} who gains from who does not better than chance"
    sentence = f"No recommendation whom to treat: {text}. On average, {_average(check, data, words)}."
    advice = [f"Decide for all {words.people} alike, by the average effect."]
    if others:
        advice.append(
            f"Better than chance by itself: {listed(others)}. Make the page with that model, on other rows if you can."
        )
    else:
        need = "To tell whose benefit is larger takes" if words.trial else "To target takes"
        advice.append(f"{need} more rows, or features that say more about why somebody would respond.")
    return sentence, advice


def _average(check: CheckReport, data: Experiment, words: Words) -> str:
    """The average effect of every arm; of many arms, from where to where they go."""
    told = [1000 * row.effect for row in check.arms if row.effect is not None and row.low is not None]
    if len(told) > _MOST_ARMS:
        least, most = (rounded(effect, 1).replace("-", "−") for effect in (min(told), max(told)))
        return f"the {len(told)} arms change {words.outcome} by {least} to {most} {words.per_1000}, each as below"
    effects = [
        f"{words.arm(row.arm, data.target)} changes {words.outcome} by {with_interval(1000 * row.effect, 1000 * row.low, 1000 * row.high)}"
        for row in check.arms
        if row.effect is not None and row.low is not None and row.high is not None
    ]
    return f"{listed(effects)} {words.per_1000}"


def _in_a_trial(kind: Kind, check: CheckReport, data: Experiment, words: Words) -> str:
    """The average effect, and whether it can be told whose is larger."""
    told = {
        "recommend": "Whose benefit is larger can be told from the features, better than chance and better than by a single rule",
        "ranking": "Whose benefit is larger can be told from the features, better than chance and better than by a single rule",
        "rule": "Whose benefit is larger can be told better than chance, but not measurably better than by a single rule",
        "random": "Whose benefit is larger cannot be told from the features better than chance",
    }[kind]
    return f"Against {words.arm(data.target.control, data.target)}, {_average(check, data, words)}. {told}."


def _rule(
    check: CheckReport, measured: Measured, people: People, data: Experiment, words: Words
) -> tuple[str, list[str]]:
    value, low, high = measured.better[ONE_RULE]
    sides = [f"“{condition(text)}”" for text, _ in people.rule]
    sentence = (
        f"No model is recommended: the {measured.main} does not rank {words.people} measurably better than a single rule "
        f"({listed(sides, 'against')}). The difference is {with_interval(1000 * value, 1000 * low, 1000 * high)} {words.per_1000}."
    )
    best = max(people.rule, key=lambda side: max(side[1]))[0] if people.rule else ""
    if words.trial:
        return sentence, [
            f"The rule alone says as much: the benefit is larger where {condition(best)}.",
            "A model may still say more by less than these rows can show: more of them would tell.",
        ]
    return sentence, [
        f"Use the rule if you target at all, and treat first where {condition(best)}; it is easier to explain, and to check.",
        "A model may still be better by less than these rows can show: more of them would tell.",
    ]


def _leaking(leaks: list[str]) -> str:
    return (
        f"No recommendation: {listed(leaks)} may have been measured after the treatment, and a model that goes by what the "
        "treatment did cannot say whom to treat."
    )


def _unsound(
    check: CheckReport, measured: Measured, people: People, data: Experiment, words: Words
) -> tuple[str, list[str]]:
    sentence = (
        f"No recommendation: the experiment does not look sound ({listed(check.warnings)}), so what follows may not be the "
        "treatment's doing."
    )
    return sentence, [words.say(line) for line in check.advice]


def _sure(measured: Measured, data: Experiment, options: Options, words: Words, held: HeldOut) -> list[str]:
    area, main = measured.areas[measured.main], measured.main
    chance = "better than chance" if area.low > 0 else "not measurably better than chance"
    lines = [
        f"Everything is measured on {len(data.target):,} rows, each scored by a model that has not seen it; "
        f"the ranges are {level_text(options.interval)} intervals.",
    ]
    if held.is_flat(main):
        return [
            *lines,
            f"In none of {held.folds} folds did the rows show to the {main} that effects differ: there is no ranking.",
        ]
    for label, count in zip(data.target.arms, held.constant[main].tolist(), strict=True):
        if count:
            of = "" if data.target.n_arms == 1 else f" of {words.arm(label, data.target)}"
            when = "In every fold" if count == held.folds else f"In {count} of {held.folds} folds"
            lines.append(
                f"{when} the {main} predicted one effect{of} for everybody: its rows did not show that it differs."
            )
    return [
        *lines,
        f"The ranking is {chance}: the area between its uplift curve and random targeting is "
        f"{with_interval(1000 * float(area), 1000 * area.low, 1000 * area.high)} {words.per_1000} (0 is chance).",
    ]
