"""The verdict: whether there is something to recommend, and the sentences at the top of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from upturn._check import CheckReport
from upturn._report._held_out import ONE_RULE, Experiment
from upturn._report._measure import Measured, Options
from upturn._report._people import People
from upturn._report._words import condition, listed, number, percent, with_interval
from upturn._target import Target
from upturn.metrics import Estimate

Kind = Literal["recommend", "rule", "random", "unsound"]


@dataclass(frozen=True)
class Words:
    """What things are called."""

    outcome: str
    trial: bool

    @property
    def people(self) -> str:
        """Those who are treated."""
        return "patients" if self.trial else "people"

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
    better than chance) or "rule" (none is better than a single rule).
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
) -> Answer:
    """Decide what the page says; ``leaks`` are columns that may have been measured after the treatment."""
    if leaks:
        was, it = ("was", "it") if len(leaks) == 1 else ("were", "them")
        mend = f"If {listed(leaks)} {was} measured after the treatment, leave {it} out and make the page again."
        return Answer("unsound", _leaking(leaks), _sure(measured, data, options, words), [mend, *check.advice])
    kind = _kind(check, measured)
    say = {"recommend": _recommend, "rule": _rule, "random": _random, "unsound": _unsound}[kind]
    sentence, advice = say(check, measured, people, data, words)
    if words.trial and kind != "unsound":
        sentence = _in_a_trial(kind, check, data, words)
    sure = _sure(measured, data, options, words)
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
    return "recommend"


def row_of(measured: Measured, whom: str) -> dict[str, Any]:
    """A line of the comparison of plans."""
    table = measured.plan.comparison
    at = table["whom"].tolist().index(whom)
    return {name: table[name][at] for name in table.columns}


def _better(measured: Measured, whom: str) -> tuple[float, float, float]:
    """By how much the plan is better than another one, per 1,000 people."""
    row = row_of(measured, whom)
    return tuple(1000 * float(row[key]) for key in ("this plan better by", "better low", "better high"))  # type: ignore[return-value]


def _treat(measured: Measured, data: Experiment, words: Words) -> str:
    plan = measured.plan
    share = percent(plan.n_treated / plan.n)
    if data.target.n_arms == 1:
        return f"Treat {share} of {words.people}"
    counts = [int((plan.arm == k + 1).sum()) for k in range(data.target.n_arms)]
    parts = [
        f"{words.arm(label, data.target)} to {percent(count / plan.n)}"
        for label, count in zip(data.target.arms, counts, strict=True)
        if count
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
    """The average effect of every arm."""
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
    return sentence, list(check.advice)


def _sure(measured: Measured, data: Experiment, options: Options, words: Words) -> list[str]:
    area = measured.areas[measured.main]
    chance = "better than chance" if area.low > 0 else "not measurably better than chance"
    return [
        f"Everything is measured on {len(data.target):,} rows, each scored by a model that has not seen it; "
        f"the ranges are {options.interval:.0%} intervals.",
        f"The ranking is {chance}: the area between its uplift curve and random targeting is "
        f"{with_interval(1000 * float(area), 1000 * area.low, 1000 * area.high)} {words.per_1000} (0 is chance).",
    ]
