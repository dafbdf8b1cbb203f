"""Pictures of rankings: curves, deciles, score distributions."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from upturn import metrics
from upturn._columns import check_magnitude, to_numpy
from upturn._parameters import NONE, TEXT, Rule, check, number, one_of, whole
from upturn._results import level_text
from upturn._rows import by_label, same_rows
from upturn._target import decode, read_labels, read_measured, read_ranking, read_score
from upturn._units import is_rate, unit_scale, unit_text
from upturn.metrics import Curve
from upturn.plot._style import (
    COLOURS,
    GREY,
    HATCHES,
    MARKERS,
    MOST_BARS,
    STYLES,
    band,
    legend,
    line_style,
    new_axes,
    tidy,
)

_MOST_POINTS = 400  # more cannot be seen, and hide the dashes of a line
_MOST_LINES = 16  # each with a colour and dashes of its own; the legend of more is longer than the picture
_MOST_BANDS = 3  # more hide each other, unless they are asked for by name
_BY_ROW = ("sample_weight", "groups", "propensity", "response")  # options with a value for every row


def _named(scores: Any) -> Mapping[str, Any]:
    if isinstance(scores, Mapping) and not scores:
        raise ValueError("scores is an empty mapping: expected the scores of at least one model, as {'forest': …}")
    return scores if isinstance(scores, Mapping) else {"model": scores}


def _are_curves(drawn: Any) -> bool:
    return isinstance(drawn, Mapping) and len(drawn) > 0 and all(isinstance(curve, Curve) for curve in drawn.values())


def _thin(curve: Curve) -> Curve:
    """No more points than can be seen."""
    if len(curve.x) <= _MOST_POINTS:
        return curve
    keep = np.unique(np.linspace(0, len(curve.x) - 1, _MOST_POINTS).astype(int))
    return _points(curve, keep)


def _points(curve: Curve, keep: Any) -> Curve:
    """Some of a curve's points."""
    low, high = (None if side is None else side[keep] for side in (curve.low, curve.high))
    return replace(curve, x=curve.x[keep], y=curve.y[keep], low=low, high=high)


def curves(
    drawn: Mapping[str, Curve],
    *,
    random: str | None = "diagonal",
    scale: float = 1.0,
    ax: Any = None,
    xlabel: str = "share of the population treated (%)",
    ylabel: str = "",
    title: str = "",
) -> Any:
    """Draw curves you already have, such as averages over splits, with their bands.

    Parameters
    ----------
    drawn : mapping from name to Curve
        The curves.
    random : {"diagonal", "zero", None}
        The line of random targeting: the curves' own (``curve.random``, or from the common start to the common end), 0,
        or none.
    scale : float
        What heights are multiplied with, such as 1000 for "per 1,000 people".
    ax : matplotlib axes, optional
        Where to draw; made when not given.
    xlabel, ylabel, title : str
        Texts.

    Returns
    -------
    matplotlib axes
    """
    several = "a mapping from names to curves with at least one of them, as {'forest': uplift_curve(…)}"
    check("drawn", drawn, Rule(several, _are_curves))
    check("random", random, one_of("diagonal", "zero") | NONE)
    check("scale", scale, number())
    for word, text in (("xlabel", xlabel), ("ylabel", ylabel), ("title", title)):
        check(word, text, TEXT)
    _not_too_many(len(drawn))
    ax = new_axes(ax, _size(len(drawn) > 2))
    for j, (name, points) in enumerate(drawn.items()):
        curve = _thin(points)
        if curve.low is not None and curve.high is not None:
            band(ax, 100 * curve.x, scale * curve.low, scale * curve.high, j)
        ax.plot(100 * curve.x, scale * curve.y, linewidth=1.8, label=name, **line_style(j))
    if random is not None:
        first = next(iter(drawn.values()))
        ends = (0.0, 0.0) if random == "zero" else first.random or (first.y[0], first.y[-1])
        ax.plot(
            [0, 100], [scale * end for end in ends], color=GREY, linewidth=1.2, label="random", linestyle=(0, (2, 2))
        )
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title, xlim=(0, 100))
    tidy(ax)
    legend(ax, beside=len(drawn) > 2)
    return ax


def _size(beside: bool) -> tuple[float, float]:
    """Inches of a figure, wider where the legend stands beside the axes."""
    return (8.2, 4) if beside else (6, 4)


def _ranked(
    make: Any,
    y: Any,
    scores: Any,
    treatment: Any,
    interval: float | None,
    bands: Any,
    options: dict[str, Any],
    by_arm: bool = True,
) -> tuple[dict[str, Curve], bool]:
    """The curves by name, a curve per arm where there are several, and whether the outcome is a rate."""
    named = _named(scores)
    chosen = _read_bands(bands, named)
    _not_too_many(len(named))
    weight = options.get("sample_weight")
    target = read_measured(y, treatment, weight, control=options.get("control"))
    drawn = {}
    for name, score in named.items():
        level = interval if name in chosen else None
        if target.n_arms == 1 or not by_arm:
            drawn[name] = make(y, score, treatment, interval=level, **options)
            continue
        matrix = read_score(score, target)
        for k, label in enumerate(target.arms):
            rows = target.pair(k + 1)
            own = {word: _rows(word, value, rows, k, target.labels, len(target)) for word, value in options.items()}
            own["control"] = target.control
            if target.weight is not None:
                own["sample_weight"] = target.weight[rows]
            labels = decode(target.labels, target.arm[rows])
            full = str(label) if len(named) == 1 else f"{name}: {label}"
            drawn[full] = make(target.y[rows], matrix[rows, k], labels, interval=level, **own)
    return drawn, is_rate(target)


def _not_too_many(count: int) -> None:
    """Refuse more curves than can be told apart."""
    if count > _MOST_LINES:
        raise ValueError(
            f"there are {count} curves to draw, and more than {_MOST_LINES} cannot be told apart: choose some of them, such as the best by "
            "metrics.evaluate, as in {name: scores[name] for name in ['forest', 'tree']}"
        )


def _rows(word: str, value: Any, rows: Any, k: int, labels: Any, n: int) -> Any:
    """An option for the rows of control and one arm, with the columns of both where it has some for all arms."""
    if word not in _BY_ROW or value is None:
        return value
    array = to_numpy(by_label(value, labels, word) if word in ("propensity", "response") else value, word)
    if array.ndim == 0 or len(array) != n:
        return value
    return array[rows] if array.ndim == 1 else array[rows][:, [0, k + 1]]


def _read_bands(bands: Any, named: Mapping[str, Any]) -> list[str]:
    """The models that get a band: those named, else all while they are few."""
    if bands is None:
        return list(named) if len(named) <= _MOST_BANDS else []
    chosen = [bands] if isinstance(bands, str) else list(bands) if isinstance(bands, list | tuple | set) else [bands]
    strange = [name for name in chosen if not isinstance(name, str) or name not in named]
    if strange:
        raise ValueError(f"bands names {reprlib.repr(strange[0])}: expected names of the models {list(named)!r}")
    return chosen


@same_rows
def uplift_curves(
    y: Any,
    scores: Any,
    treatment: Any = None,
    *,
    interval: float | None = 0.95,
    bands: Any = None,
    ax: Any = None,
    **options: Any,
) -> Any:
    """Uplift curves of one or several models with bands and the line of random targeting.

    Rates are drawn per 1,000 people, other outcomes per person. Where there are several arms every model has a curve for each,
    against control.

    Parameters
    ----------
    y, treatment
        As in :func:`upturn.metrics.uplift_curve`.
    scores : array-like, or mapping from name to array-like
        The scores of one model, or of several by name.
    interval : float or None
        Confidence level of the bands; None draws none.
    bands : str or list of str, optional
        The models that get a band. By default all of up to three, and none of more, whose bands would hide each other.
    ax : matplotlib axes, optional
        Where to draw; made when not given.
    **options
        Further keywords of :func:`upturn.metrics.uplift_curve`.

    Returns
    -------
    matplotlib axes
    """
    drawn, rate = _ranked(metrics.uplift_curve, y, scores, treatment, interval, bands, options)
    return _draw_gains(drawn, rate, "Uplift curve", ax)


def _draw_gains(drawn: dict[str, Curve], rate: bool, name: str, ax: Any) -> Any:
    return curves(
        drawn,
        scale=unit_scale(rate),
        ax=ax,
        ylabel=f"gain {unit_text(rate)}",
        title=_title(name, drawn),
        random=_line(drawn),
    )


def _line(drawn: dict[str, Curve]) -> str | None:
    """The line of random targeting, where the curves have the same: those of several arms do not."""
    ends = {round(float(curve.y[-1]), 12) for curve in drawn.values()}
    return "diagonal" if len(ends) == 1 else None


@same_rows
def qini_curves(
    y: Any,
    scores: Any,
    treatment: Any = None,
    *,
    interval: float | None = 0.95,
    bands: Any = None,
    ax: Any = None,
    **options: Any,
) -> Any:
    """Qini curves; arguments as in :func:`uplift_curves`, options of :func:`upturn.metrics.qini_curve`."""
    drawn, rate = _ranked(metrics.qini_curve, y, scores, treatment, interval, bands, options)
    return _draw_gains(drawn, rate, "Qini curve", ax)


@same_rows
def toc_curves(
    y: Any,
    scores: Any,
    treatment: Any = None,
    *,
    interval: float | None = 0.95,
    bands: Any = None,
    ax: Any = None,
    **options: Any,
) -> Any:
    """TOC curves; arguments as in :func:`uplift_curves`, options of :func:`upturn.metrics.toc_curve`.

    The first two percent are left out: the curve is very noisy where it averages over a few people.
    """
    whole, rate = _ranked(metrics.toc_curve, y, scores, treatment, interval, bands, options)
    drawn = {name: _from(curve, 0.02) for name, curve in whole.items()}
    title = _title("Targeting operator characteristic", drawn)
    label = f"effect above average, {unit_text(rate)}"
    return curves(drawn, random="zero", scale=unit_scale(rate), ax=ax, ylabel=label, title=title)


def _from(curve: Curve, share: float) -> Curve:
    """The part of a curve beyond a share."""
    return _points(curve, curve.x >= share)


@same_rows
def modified_uplift_curves(
    y: Any,
    scores: Any,
    treatment: Any = None,
    *,
    interval: float | None = 0.95,
    bands: Any = None,
    ax: Any = None,
    **options: Any,
) -> Any:
    """Modified uplift curves; arguments as in :func:`uplift_curves`, with a column of scores for each of several arms.

    Every curve starts from the mean outcome of control. The dotted line gives the arms at random, in proportion to their
    sizes, to a growing share of the people.
    """
    drawn, rate = _ranked(metrics.modified_uplift_curve, y, scores, treatment, interval, bands, options, by_arm=False)
    title = _title("Modified uplift curve", drawn)
    return curves(drawn, scale=unit_scale(rate), ax=ax, ylabel=f"expected outcome {unit_text(rate)}", title=title)


@same_rows
def lift_curves(
    y: Any,
    score: Any,
    treatment: Any = None,
    *,
    sample_weight: Any = None,
    control: Any = None,
    interval: float | None = 0.95,
    ax: Any = None,
    **options: Any,
) -> Any:
    """Lift curves of the treated and of control, whose difference is the uplift curve, with bands and random lines.

    Parameters
    ----------
    y, score, treatment, sample_weight, control
        As in :func:`upturn.metrics.uplift_curve`, one arm and control.
    interval : float or None
        Confidence level of the bands; None draws none.
    ax : matplotlib axes, optional
        Where to draw; made when not given.
    **options
        Further keywords of :func:`upturn.metrics.lift_curve`.

    Returns
    -------
    matplotlib axes
    """
    target = read_measured(y, treatment, sample_weight, control=control)
    values = read_score(score, target)[:, 0]
    drawn = {}
    for code in (1, 0):
        mine = target.arm == code
        weight = None if target.weight is None else target.weight[mine]
        curve = metrics.lift_curve(target.y[mine], values[mine], sample_weight=weight, interval=interval, **options)
        size = float(mine.sum() if weight is None else weight.sum())
        low, high = (None if side is None else side / size for side in (curve.low, curve.high))
        name = "control" if code == 0 else "treated"
        label = target.labels[code]
        drawn[name if str(label) in (name, "0", "1") else f"{name} ({label})"] = replace(
            curve, y=curve.y / size, low=low, high=high
        )
    rate = is_rate(target)
    scale = unit_scale(rate)
    ax = curves(drawn, random=None, scale=scale, ax=ax, xlabel="share of the arm, best scores first (%)",
                ylabel=f"outcome {unit_text(rate)} of the arm", title=_title("Lift curves", drawn))  # fmt: skip
    for j, curve in enumerate(drawn.values()):
        name = "random" if j == 0 else "_random"  # once in the legend
        ax.plot([0, 100], [0, scale * curve.y[-1]], color=GREY, linewidth=1.2, linestyle=(0, (2, 2)), label=name)
    legend(ax)
    return ax


@same_rows
def deciles(
    y: Any,
    score: Any,
    treatment: Any = None,
    *,
    n_bins: int = 10,
    interval: float | None = 0.95,
    ax: Any = None,
    **options: Any,
) -> Any:
    """Observed effect in tenths of the ranking, with intervals, beside what the model predicted; bars of every arm side by side.

    Parameters
    ----------
    y, score, treatment
        As in :func:`upturn.metrics.calibration_table`.
    n_bins : int
        Number of bins.
    interval : float or None
        Confidence level; None draws no intervals.
    ax : matplotlib axes, optional
        Where to draw; made when not given.
    **options
        Further keywords of :func:`upturn.metrics.calibration_table`.

    Returns
    -------
    matplotlib axes
    """
    table = metrics.calibration_table(y, score, treatment, n_bins=n_bins, interval=interval, **options)
    rate = is_rate(read_measured(y, treatment, options.get("sample_weight"), control=options.get("control")))
    scale, arms = unit_scale(rate), list(dict.fromkeys(table["arm"].tolist()))
    ax = new_axes(ax, _size(len(arms) > 1))
    ends, wide = "" if interval is None else f", {level_text(interval)} interval", 0.75 / len(arms)
    for k, arm in enumerate(arms):
        mine = table["arm"] == arm
        x = table["bin"][mine] + wide * (k - (len(arms) - 1) / 2)
        observed, whose = scale * table["observed"][mine], "" if len(arms) == 1 else f"{arm}: "
        colour = COLOURS[(2 * k) % len(COLOURS)]
        ax.bar(
            x, observed, color=(*_pale(colour), 1.0), edgecolor=colour, width=wide, hatch=HATCHES[k % len(HATCHES)],
            label=f"{whose}observed{ends}",
        )  # fmt: skip
        if interval is not None:
            reach = scale * (table["high"] - table["low"])[mine] / 2
            ax.errorbar(
                x, observed, reach, fmt="none", ecolor="#333333", elinewidth=1.1, capsize=3 if len(arms) == 1 else 1.5
            )
        style = {"color": COLOURS[(2 * k + 1) % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)], "markersize": 5}
        ax.plot(x, scale * table["predicted"][mine], linestyle="--", label=f"{whose}predicted", **style)
    ax.axhline(0, color="#333333", linewidth=0.9)
    ax.set(
        xlabel="tenth of the ranking, best scores first" if n_bins == 10 else "bin of the ranking, best scores first",
        ylabel=f"effect {unit_text(rate)}",
        title="Effect by rank",
        xticks=np.arange(1, n_bins + 1),
    )
    tidy(ax)
    ax.grid(visible=False, axis="x")
    legend(ax, beside=len(arms) > 1)
    return ax


def _pale(colour: str) -> tuple[float, ...]:
    """A light shade of a colour, on which black lines are seen."""
    from matplotlib.colors import to_rgb

    return tuple(1.0 - 0.2 * (1.0 - part) for part in to_rgb(colour))


@same_rows
def score_distributions(score: Any, treatment: Any, *, control: Any = None, n_bins: int = 40, ax: Any = None) -> Any:
    """Distribution of the scores in every arm: in a randomised experiment they must look alike.

    Parameters
    ----------
    score : array-like of shape (n,)
        Predicted uplift.
    treatment : array-like of shape (n,)
        Arm labels.
    control : label, optional
        Which label is control, when its name does not tell.
    n_bins : int
        Number of bins.
    ax : matplotlib axes, optional
        Where to draw; made when not given.

    Returns
    -------
    matplotlib axes
    """
    check("n_bins", n_bins, whole(least=1, most=MOST_BARS))
    labels = read_labels(treatment)
    target = read_measured(np.zeros(len(labels)), labels, control=control)
    values = read_ranking(score, len(target))[:, 0]
    check_magnitude(values, "score")
    ax = new_axes(ax)
    edges = np.histogram_bin_edges(values, n_bins)
    for code, label in enumerate(target.labels):
        mine = values[target.arm == code]
        heights = np.histogram(mine, edges)[0] / len(mine) * 100
        name = f"{label} ({len(mine):,} rows)"
        ax.stairs(
            heights,
            edges,
            color=COLOURS[code % len(COLOURS)],
            linestyle=STYLES[code % len(STYLES)],
            linewidth=1.7,
            label=name,
        )
        if code == 0:
            ax.stairs(heights, edges, color=COLOURS[0], fill=True, alpha=0.12)
    ax.set(xlabel="score", ylabel="share of the arm (%)", title="Scores by arm", xlim=(edges[0], edges[-1]))
    ax.set_ylim(0, 1.25 * ax.get_ylim()[1])  # room for the legend
    tidy(ax)
    legend(ax)
    return ax


def _title(name: str, drawn: dict[str, Curve]) -> str:
    levels = [curve.interval for curve in drawn.values() if curve.interval is not None]
    return f"{name}, {levels[0]:.0%} bands" if levels else name
