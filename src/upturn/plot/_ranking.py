"""Pictures of rankings: curves, deciles, score distributions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from upturn import metrics
from upturn._columns import check_magnitude
from upturn._parameters import NONE, TEXT, Rule, check, number, one_of, whole
from upturn._target import read_labels, read_measured, read_score
from upturn.metrics import Curve
from upturn.plot._style import COLOURS, GREY, MOST_BARS, STYLES, band, legend, new_axes, tidy

_MOST_POINTS = 400  # more cannot be seen, and hide the dashes of a line


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
    ax = new_axes(ax)
    for j, (name, points) in enumerate(drawn.items()):
        curve, colour = _thin(points), COLOURS[j % len(COLOURS)]
        if curve.low is not None and curve.high is not None:
            band(ax, 100 * curve.x, scale * curve.low, scale * curve.high, j)
        ax.plot(
            100 * curve.x, scale * curve.y, color=colour, linestyle=STYLES[j % len(STYLES)], linewidth=1.8, label=name
        )
    if random is not None:
        first = next(iter(drawn.values()))
        ends = (0.0, 0.0) if random == "zero" else first.random or (first.y[0], first.y[-1])
        ax.plot(
            [0, 100], [scale * end for end in ends], color=GREY, linewidth=1.2, label="random", linestyle=(0, (2, 2))
        )
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title, xlim=(0, 100))
    tidy(ax)
    legend(ax)
    return ax


def _ranked(
    make: Any, y: Any, scores: Any, treatment: Any, interval: float | None, options: dict[str, Any]
) -> dict[str, Curve]:
    return {name: make(y, score, treatment, interval=interval, **options) for name, score in _named(scores).items()}


def uplift_curves(
    y: Any, scores: Any, treatment: Any = None, *, interval: float | None = 0.95, ax: Any = None, **options: Any
) -> Any:
    """Uplift curves of one or several models with bands and the line of random targeting.

    Parameters
    ----------
    y, treatment
        As in :func:`upturn.metrics.uplift_curve`.
    scores : array-like, or mapping from name to array-like
        The scores of one model, or of several by name.
    interval : float or None
        Confidence level of the bands; None draws none.
    ax : matplotlib axes, optional
        Where to draw; made when not given.
    **options
        Further keywords of :func:`upturn.metrics.uplift_curve`.

    Returns
    -------
    matplotlib axes
    """
    drawn = _ranked(metrics.uplift_curve, y, scores, treatment, interval, options)
    return curves(drawn, scale=1000, ax=ax, ylabel="gain per 1,000 people", title=_title("Uplift curve", interval))


def qini_curves(
    y: Any, scores: Any, treatment: Any = None, *, interval: float | None = 0.95, ax: Any = None, **options: Any
) -> Any:
    """Qini curves; arguments as in :func:`uplift_curves`, options of :func:`upturn.metrics.qini_curve`."""
    drawn = _ranked(metrics.qini_curve, y, scores, treatment, interval, options)
    return curves(drawn, scale=1000, ax=ax, ylabel="gain per 1,000 people", title=_title("Qini curve", interval))


def toc_curves(
    y: Any, scores: Any, treatment: Any = None, *, interval: float | None = 0.95, ax: Any = None, **options: Any
) -> Any:
    """TOC curves; arguments as in :func:`uplift_curves`, options of :func:`upturn.metrics.toc_curve`.

    The first two percent are left out: the curve is very noisy where it averages over a few people.
    """
    drawn = {
        name: _from(curve, 0.02)
        for name, curve in _ranked(metrics.toc_curve, y, scores, treatment, interval, options).items()
    }
    title = _title("Targeting operator characteristic", interval)
    label = "effect above average, per 1,000 people"
    return curves(drawn, random="zero", scale=1000, ax=ax, ylabel=label, title=title)


def _from(curve: Curve, share: float) -> Curve:
    """The part of a curve beyond a share."""
    return _points(curve, curve.x >= share)


def modified_uplift_curves(
    y: Any, scores: Any, treatment: Any = None, *, interval: float | None = 0.95, ax: Any = None, **options: Any
) -> Any:
    """Modified uplift curves; arguments as in :func:`uplift_curves`, with a column of scores for each of several arms.

    Every curve starts from the mean outcome of control. The dotted line gives the arms at random, in proportion to their
    sizes, to a growing share of the people.
    """
    drawn = _ranked(metrics.modified_uplift_curve, y, scores, treatment, interval, options)
    title = _title("Modified uplift curve", interval)
    return curves(drawn, ax=ax, ylabel="expected outcome per person", title=title)


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
    values = read_score(score, len(target.y), 1)[:, 0]
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
    ax = curves(drawn, random=None, scale=1000, ax=ax, xlabel="share of the arm, best scores first (%)",
                ylabel="outcome per 1,000 people of the arm", title=_title("Lift curves", interval))  # fmt: skip
    for j, curve in enumerate(drawn.values()):
        name = "random" if j == 0 else "_random"  # once in the legend
        ax.plot([0, 100], [0, 1000 * curve.y[-1]], color=GREY, linewidth=1.2, linestyle=(0, (2, 2)), label=name)
    legend(ax)
    return ax


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
    """Observed effect in tenths of the ranking, with intervals, beside what the model predicted.

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
    ax = new_axes(ax)
    table = metrics.calibration_table(y, score, treatment, n_bins=n_bins, interval=interval, **options)
    if len(table) > n_bins:
        arms = list(dict.fromkeys(table["arm"].tolist()))
        raise ValueError(
            f"this picture shows one arm, and treatment holds {len(arms)} arms {arms!r}: keep the rows of one of them and of control, or "
            "draw all in plot.calibration(metrics.calibration_table(y, score, treatment))"
        )
    x, observed = table["bin"], 1000 * table["observed"]
    name = "observed" if interval is None else f"observed, {interval:.0%} interval"
    ax.bar(x, observed, color="#D6EAF8", edgecolor=COLOURS[0], width=0.75, label=name)
    if interval is not None:
        reach = 1000 * (table["high"] - table["low"]) / 2
        ax.errorbar(x, observed, reach, fmt="none", ecolor="#333333", elinewidth=1.1, capsize=3)
    ax.plot(x, 1000 * table["predicted"], color=COLOURS[1], marker="o", markersize=5, linestyle="--", label="predicted")
    ax.axhline(0, color="#333333", linewidth=0.9)
    ax.set(
        xlabel="tenth of the ranking, best scores first" if n_bins == 10 else "bin of the ranking, best scores first",
        ylabel="effect per 1,000 people",
        title="Effect by rank",
        xticks=x,
    )
    tidy(ax)
    ax.grid(visible=False, axis="x")
    legend(ax)
    return ax


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
    values = read_score(score, len(target), 1)[:, 0]
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


def _title(name: str, interval: float | None) -> str:
    return name if interval is None else f"{name}, {interval:.0%} bands"
