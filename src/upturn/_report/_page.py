"""The report as plain values: tables of text for the template, and the numbers behind the charts."""

from __future__ import annotations

from typing import Any

import numpy as np

from upturn._arrays import Floats
from upturn._report._answer import plan_share, row_of
from upturn._report._appendix import data_card, left_out, settings
from upturn._report._charts import numbers_of, paying, stops_of
from upturn._report._found import Found, table
from upturn._report._people import HARM, LEAVE
from upturn._report._words import condition, listed, number, p_value, percent, rounded, signed, with_interval
from upturn._results import level_text
from upturn._subgroups._result import Subgroups

_FAR_WIDER = 3.0  # times the usual width of an interval
_LINES = {"Command": "command", "Python": "python"}
_STATUS = {"ok": "fine", "warning": "problem", "note": "note", "skipped": "not judged"}


def make_page(found: Found) -> dict[str, Any]:
    """The values the template is filled with."""
    words, target = found.words, found.data.target
    return {
        "title": found.source.get("title") or _title(found),
        "trial": words.trial,
        "people": words.people,
        "outcome": words.outcome,
        "date": found.source["date"],
        "rows": f"{len(target):,}",
        "interval": level_text(found.options.interval),
        "arms": [str(label) for label in target.arms],
        "flat": found.is_flat,
        "flat_arms": [words.arm(label, target) for label in found.flat_arms],
        "control": str(target.control),
        "answer": found.answer,
        "key": _key(found),
        "check": _check(found),
        "models": _models(found),
        "plans": _plans(found) if found.shows_plan else None,
        "curves": _curve_tables(found),
        "bins": _bins(found),
        "budget": _budget_table(found) if found.shows_plan else None,
        "money": not words.trial,
        "importances": _bars(found.people.importances),
        "groups": _groups(found.people.groups, found),
        "profiles": _profiles(found) if found.shows_plan else None,
        "by_feature": _by_feature(found),
        "card": data_card(found),
        "left_out": left_out(found),
        "settings": settings(found),
        "reproduce": [(name, found.source[key]) for name, key in _LINES.items() if found.source.get(key)],
        "next": found.source.get("next", ""),
        "data": numbers_of(found),
    }


def _title(found: Found) -> str:
    target, words = found.data.target, found.words
    arms = [words.arm(label, target) for label in target.arms]
    if words.trial:
        return f"{listed(arms)[0].upper()}{listed(arms)[1:]}, and {words.outcome}"
    return (
        f"For whom does {arms[0]} raise {words.outcome}?"
        if len(arms) == 1
        else f"What raises {words.outcome}, and for whom?"
    )


# --------------------------------------------------------------------------------------------- the answer and the check


def _key(found: Found) -> list[dict[str, str]]:
    """A few numbers to remember."""
    measured, words = found.measured, found.words
    plan, cells = measured.plan, []
    if found.answer.kind == "recommend" and not words.trial:
        gain: Any = plan.per_1000
        cells.append(
            {
                "name": f"{words.people} to treat",
                "value": percent(plan_share(measured)),
                "note": f"{plan.n_treated:,} of {plan.n:,}",
            }
        )
        cells.append(
            {
                "name": f"gain {words.per_1000}",
                "value": number(gain),
                "note": f"{with_interval(gain, gain.low, gain.high).partition('(')[2].rstrip(')')}",
            }
        )
        if plan.profit is not None:
            profit: Any = plan.profit_per_1000
            cells.append(
                {
                    "name": f"profit {words.per_1000}",
                    "value": number(profit),
                    "note": with_interval(profit, profit.low, profit.high).partition("(")[2].rstrip(")"),
                }
            )
        row = row_of(measured, "as many at random")
        better = [1000 * float(row[key]) for key in ("this plan better by", "better low", "better high")]
        cells.append(
            {
                "name": "more than at random" if plan.profit is None else "profit over random",
                "value": signed(better[0]),
                "note": with_interval(*better).partition("(")[2].rstrip(")"),
            }
        )
        return cells
    for arm in found.check.arms:
        if arm.effect is not None and arm.low is not None and arm.high is not None:
            text = with_interval(1000 * arm.effect, 1000 * arm.low, 1000 * arm.high)
            cells.append(
                {
                    "name": f"effect of {words.arm(arm.arm, found.data.target)} {words.per_1000}",
                    "value": text.partition(" (")[0],
                    "note": text.partition("(")[2].rstrip(")"),
                }
            )
    return cells


def _check(found: Found) -> dict[str, Any]:
    check, words = found.check, found.words
    findings = [
        {
            "check": item.check,
            "status": item.status,
            "word": _STATUS[item.status],
            "seen": words.say(item.seen),
            "advice": words.say(item.advice),
        }
        for item in check.findings
    ]
    rows = []
    for arm in check.arms:
        effect = (
            ""
            if arm.effect is None or arm.low is None or arm.high is None
            else with_interval(1000 * arm.effect, 1000 * arm.low, 1000 * arm.high)
        )
        cells = [str(arm.arm), f"{arm.rows:,}", f"{rounded(100 * arm.share, 1)}%"]
        if words.trial:
            cells += [f"{arm.rows - arm.outcomes:,}", f"{arm.outcomes:,}"]
        p = [] if not words.trial else [p_value(arm.pvalue) if arm.pvalue is not None else ""]
        rows.append([*cells, number(1000 * arm.mean), effect, *p])
    armless = found.source.get("without an arm", 0)
    if words.trial and armless:
        rows.append(["no arm given", f"{armless:,}", "", "", "0", "", "", ""])
    head = [
        "arm",
        "assigned" if words.trial else "rows",
        "share",
        *(["outcome missing", "analysed"] if words.trial else []),
    ]
    arms = table(
        [*head, f"{words.outcome} {words.per_1000}", "effect (95% interval)", *(["p"] if words.trial else [])], rows, 1
    )
    balance = [
        [row.feature, f"{row.difference:+.3f}".replace("-", "−"), p_value(row.pvalue), percent(row.missing)]
        for row in check.features
    ]
    leaks = [[leak["column"], leak["evidence"]] for leak in found.source.get("leaks", ())]
    return {
        "ok": check.ok and not leaks,
        "findings": findings,
        "arms": arms,
        "balance": table(["feature", "difference (sd)", "p", "missing"], balance, 1),
        "leaks": table(["column", "evidence"], leaks) if leaks else None,
        "lost": found.lost,
        "armless": armless,
    }


# --------------------------------------------------------------------------------------------- models and curves


def _models(found: Found) -> dict[str, Any]:
    measured, rows = found.measured, []
    main = measured.main
    for name, area in sorted(measured.areas.items(), key=lambda pair: -float(pair[1])):
        value = with_interval(1000 * float(area), 1000 * area.low, 1000 * area.high)
        verdict = "yes" if area.low > 0 else "no" if area.high < 0 else "not measurably"
        against = "the model of this page"
        if name != main:
            difference, low, high = (1000 * part for part in measured.better[name])
            against = with_interval(difference, low, high)
        rows.append([name, value, verdict, against])
    better = [name for name, (_, _, high) in measured.better.items() if high < 0]
    head = ["model", "area (0 is chance)", "better than chance?", f"{main} better by"]
    return {
        "table": table(head, rows, 1),
        "better": better,
        "main": main,
        "rule": [condition(side) for side, _ in found.people.rule],
    }


def _plans(found: Found) -> dict[str, Any]:
    comparison, rows = found.measured.plan.comparison, []
    names = comparison.columns
    gain = next(name for name in names if name.endswith("gain"))
    profit = next((name for name in names if name.endswith("profit")), None)
    for i, whom in enumerate(comparison["whom"].tolist()):

        def cell(name: str, low: str, high: str, i: int = i) -> str:
            return with_interval(*(1000 * float(comparison[key][i]) for key in (name, low, high)))

        row = [whom, percent(float(comparison["treated"][i])), cell(gain, "low", "high")]
        if "cost" in names:
            row.append(number(1000 * float(comparison["cost"][i])))
        if profit is not None:
            row.append(cell(profit, "profit low", "profit high"))
        row.append("" if i == 0 else cell("this plan better by", "better low", "better high"))
        rows.append(row)
    head = ["whom", "treated", "gain"]
    head += ["cost"] if "cost" in names else []
    head += ["net profit"] if profit is not None else []
    return table([*head, "this plan better by"], rows, 1)


def _curve_tables(found: Found) -> list[dict[str, Any]]:
    """The uplift curves in figures, for whoever reads no chart."""

    def cell(curve: Any, share: int) -> str:
        return with_interval(*(1000 * float(side[share]) for side in (curve.y, curve.low, curve.high)))

    tables = []
    for arm, curves in found.measured.curves["uplift"].items():
        rows = [[f"{share}%", *(cell(curve, share) for curve in curves.values())] for share in range(10, 101, 10)]
        tables.append({"arm": str(arm), "table": table(["treated", *curves], rows, 0)})
    return tables


def _bins(found: Found) -> list[dict[str, Any]]:
    bins, tables = found.measured.bins, []
    for arm in found.data.target.arms:
        if arm in found.flat_arms:
            continue
        rows = []
        for i in np.flatnonzero(bins["arm"] == arm):
            observed = (1000 * float(bins[key][i]) for key in ("observed", "low", "high"))
            sizes = (f"{bins[key][i]:,.0f}" for key in ("treated", "control"))
            rows.append(
                [str(bins["bin"][i]), *sizes, number(1000 * float(bins["predicted"][i])), with_interval(*observed)]
            )
        head = ["tenth, best first", "treated", "control", "predicted effect", "observed effect"]
        tables.append({"arm": str(arm), "table": table(head, rows, 0)})
    return tables


def _budget_table(found: Found) -> dict[str, Any]:
    """What every tenth of the slider says, where nothing moves."""
    stops = stops_of(found)
    shown = paying(stops, found)
    money = found.measured.plan.profit is not None
    rows = []
    for i in shown[_tenths(stops["share"][shown])]:
        gain = with_interval(*(stops[key][i] for key in ("gain", "low", "high")))
        row = [f"{stops['treated'][i]:,.0f}", percent(stops["share"][i]), gain, number(stops["random"][i])]
        if money:
            row.insert(2, number(stops["spent"][i]))
            row.append(with_interval(*(stops[key][i] for key in ("profit", "profit_low", "profit_high"))))
        rows.append(row)
    head = ["treated", "share", "gain", "at random"]
    if money:
        head = ["treated", "share", "cost", "gain", "at random", "net profit"]
    return table(head, rows, 0)


def _tenths(shares: Floats) -> list[int]:
    wanted = np.linspace(0, float(shares[-1]), 11)
    return list(dict.fromkeys(int(np.abs(shares - share).argmin()) for share in wanted))


# --------------------------------------------------------------------------------------------- people


def _bars(importances: list[tuple[str, float]] | None) -> list[dict[str, Any]] | None:
    if not importances:
        return None
    top = importances[0][1]
    return [
        {"name": name, "share": percent(share), "width": round(100 * share / top, 1)} for name, share in importances
    ]


def _groups(groups: Subgroups | None, found: Found) -> dict[str, Any] | None:
    if groups is None:
        return None
    return {**_forest(groups, found, groups["p_holm"]), "interaction": _interaction(groups)}


def _forest(
    groups: Subgroups, found: Found, adjusted: Floats, axis: tuple[float, float] | None = None
) -> dict[str, Any]:
    """Effects by group as rows with places on an axis, in percent of its width; what lies beyond its ends is cut off."""
    low, high, effect = (1000 * np.asarray(groups[key], dtype=np.float64) for key in ("low", "high", "effect"))
    start, end = _axis([groups]) if axis is None else axis
    several = found.data.target.n_arms > 1

    def place(value: float) -> float | None:
        return round(float(np.clip(100 * (value - start) / (end - start), 0, 100)), 2) if np.isfinite(value) else None

    rows = []
    for i, name in enumerate(groups["group"].tolist()):
        inside = start <= effect[i] <= end
        rows.append(
            {
                "group": condition(name),
                "span": found.data.target.n_arms if i % found.data.target.n_arms == 0 else 0,
                "arm": str(groups["arm"][i]) if several else "",
                "rows": f"{int(groups['n_control'][i]) + int(groups['n_treated'][i]):,}",
                "effect": with_interval(float(effect[i]), float(low[i]), float(high[i])),
                "p": p_value(float(groups["p_value"][i])),
                "p_holm": p_value(float(adjusted[i])) if np.isfinite(adjusted[i]) else "",
                "low": place(low[i]), "at": place(effect[i]) if inside else None, "high": place(high[i]),
                "all": bool(groups.is_overall[i]),
            }
        )  # fmt: skip
    return {"rows": rows, "zero": place(0.0), "several": several}


def _axis(tables: list[Subgroups], share: float = 0.0) -> tuple[float, float]:
    """From where to where effects are drawn: all of the intervals, or all but a share of their ends.

    No effect is cut off, but those of groups so small that their interval is far wider than most.
    """
    low_ends, effects, high_ends = (
        1000 * np.concatenate([np.asarray(groups[key], dtype=np.float64) for groups in tables])
        for key in ("low", "effect", "high")
    )
    seen = np.isfinite(low_ends) & np.isfinite(high_ends) & np.isfinite(effects)
    low_ends, effects, high_ends = low_ends[seen], effects[seen], high_ends[seen]
    ends, widths = np.concatenate([low_ends, high_ends]), high_ends - low_ends
    if not len(ends):
        return -1.0, 1.0
    told = effects[widths <= _FAR_WIDER * np.median(widths)]
    low, high = (float(np.quantile(ends, q)) for q in (share, 1 - share))
    low, high = min(low, 0.0, told.min()), max(high, 0.0, told.max())
    room = 0.04 * (high - low) or 1.0
    return low - room, high + room


def _by_feature(found: Found) -> dict[str, Any] | None:
    """A trial's subgroups as one table: the groups of every feature under its name, all on one axis, and everybody at the end."""
    tables = found.people.by_feature
    if not tables:
        return None
    axis, rows = _axis([groups for _, groups, _ in tables], 0.05), []
    whole: dict[str, Any] = {}
    for name, groups, adjusted in tables:
        whole = _forest(groups, found, adjusted, axis)
        rows.append({"feature": name, "note": _interaction(groups)})
        rows += [row for row in whole["rows"] if not row["all"]]
    return {**whole, "rows": rows + [row for row in whole["rows"] if row["all"]]}


def _interaction(groups: Subgroups) -> str:
    test = groups.interaction[-1]
    if not test.freedom:
        return ""
    verdict = "Effects differ" if test.p_value < 0.05 else "It is not shown that effects differ"
    return f"{verdict} between these groups (p {'' if test.p_value < 1e-4 else '= '}{p_value(test.p_value)})."


def _profiles(found: Found) -> dict[str, Any] | None:
    people, words = found.people, found.words
    if not people.profiles:
        return None
    names = {LEAVE: f"{words.people} to leave alone", HARM: f"{words.people} it is predicted to harm"}
    cards = []
    for profile in people.profiles:
        label = profile.kind.removeprefix("treat: ")
        several = found.data.target.n_arms > 1
        title = names.get(profile.kind, f"{words.people} to give {label}" if several else f"{words.people} to treat")
        cards.append(
            {
                "title": title[0].upper() + title[1:],
                "kind": "treat" if profile.kind.startswith("treat: ") else profile.kind.split()[0],
                "rows": f"{profile.rows:,}",
                "share": percent(profile.share),
                "effects": [
                    (
                        f"effect of {arm}" if several else "measured effect",
                        with_interval(1000 * effect, 1000 * low, 1000 * high),
                    )
                    for arm, effect, low, high in profile.effects
                ],
                "traits": list(zip(people.traits, profile.traits, people.everybody, strict=True)),
            }
        )
    return {"cards": cards}
