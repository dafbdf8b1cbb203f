"""Pictures of policies: overlap of the arms, calibration of effects, gain against budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from upturn._parameters import Rule, check, whole
from upturn._results import Table, level_text
from upturn._units import unit_scale, unit_text
from upturn.plot._style import COLOURS, GREY, MOST_BARS, STYLES, legend, new_axes, tidy
from upturn.policy import GainCurve, Overlap


def overlap(found: Overlap, *, arm: int = 1, n_bins: int = 30, ax: Any = None) -> Any:
    """Draw how the probability of an arm is distributed in the arms: where only one has people, nothing can be compared.

    Parameters
    ----------
    found : Overlap
        From :func:`upturn.policy.overlap`.
    arm : int
        Number of the arm whose probability is drawn, control being 0.
    n_bins : int
        Number of bars.
    ax : matplotlib axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    matplotlib axes
    """
    check("found", found, Rule("an Overlap, as policy.overlap makes it", lambda given: isinstance(given, Overlap)))
    last = len(found.labels) - 1
    check("arm", arm, whole(least=0, most=last).named(f"the number of an arm, from 0 (control) to {last}"))
    check("n_bins", n_bins, whole(least=1, most=MOST_BARS))
    ax = new_axes(ax)
    edges = np.linspace(0, 1, n_bins + 1)
    for code, label in enumerate(found.labels):
        mine = found.propensity[found.arm == code, arm]
        colour, style = COLOURS[code % len(COLOURS)], STYLES[code % len(STYLES)]
        ax.hist(mine, bins=edges, density=True, alpha=0.25, color=colour)
        ax.hist(
            mine,
            bins=edges,
            density=True,
            histtype="step",
            color=colour,
            linestyle=style,
            linewidth=1.6,
            label=f"{label} ({len(mine):,} rows)",
        )
    ax.set(xlabel=f"probability of {found.labels[arm]}", ylabel="density", title="Overlap of the arms", xlim=(0, 1))
    legend(ax)
    tidy(ax)
    return ax


def calibration(table: Table, *, ax: Any = None) -> Any:
    """Draw observed against predicted effects, with intervals; on the dashed line they agree.

    Parameters
    ----------
    table : Table
        From :func:`upturn.metrics.calibration_table`, or ``calibrator.table_``, where the calibrated effects are drawn too.
    ax : matplotlib axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    matplotlib axes
    """
    needed = {"arm", "predicted", "observed"}
    check(
        "table",
        table,
        Rule(
            "a Table, as metrics.calibration_table makes it",
            lambda given: isinstance(given, Table) and needed <= set(given.columns),
        ),
    )
    ax = new_axes(ax)
    arms = list(dict.fromkeys(table["arm"].tolist()))
    scale = table.scale_of("observed")
    for k, arm in enumerate(arms):
        mine, colour = table["arm"] == arm, COLOURS[k % len(COLOURS)]
        x, effect = scale * table["predicted"][mine], scale * table["observed"][mine]
        margin = None
        if "low" in table.columns:
            margin = np.abs(np.vstack([effect - scale * table["low"][mine], scale * table["high"][mine] - effect]))
        ax.errorbar(x, effect, yerr=margin, fmt="os^Dv"[k % 5], color=colour, capsize=3, label=f"{arm}")
        if "calibrated" in table.columns:
            style = STYLES[k % len(STYLES)]
            ax.plot(x, scale * table["calibrated"][mine], linestyle=style, color=colour, label=f"{arm}, calibrated")
    low, high = scale * np.nanmin(table["predicted"]), scale * np.nanmax(table["predicted"])
    ax.plot([low, high], [low, high], "--", color=GREY, zorder=0)
    ax.axhline(0, color=GREY, linewidth=0.5, zorder=0)
    unit = unit_text(scale != 1)
    ax.set(xlabel=f"predicted effect, or score, {unit}", ylabel=f"observed effect {unit}", title="Calibration")
    if len(arms) > 1 or "calibrated" in table.columns:
        legend(ax)
    tidy(ax)
    return ax


def gain(curve: GainCurve, *, ax: Any = None) -> Any:
    """Draw what every budget gains, with its interval, beside spending it at random: rates per 1,000 people, money per person.

    Parameters
    ----------
    curve : GainCurve
        From :func:`upturn.policy.gain_curve`.
    ax : matplotlib axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    matplotlib axes
    """
    check(
        "curve", curve, Rule("a GainCurve, as policy.gain_curve makes it", lambda given: isinstance(given, GainCurve))
    )
    ax = new_axes(ax)
    money = curve.profit is not None
    height = curve.gain if curve.profit is None else curve.profit
    low = curve.low if curve.profit_low is None else curve.profit_low
    high = curve.high if curve.profit_high is None else curve.profit_high
    rate = curve.rate and not money
    scale = unit_scale(rate)
    ax.plot(curve.budget, scale * height, color=COLOURS[0], label="the best first")
    if low is not None and high is not None and curve.interval is not None:
        label = f"{level_text(curve.interval)} interval"
        ax.fill_between(curve.budget, scale * low, scale * high, alpha=0.2, color=COLOURS[0], linewidth=0, label=label)
    random = curve.random if curve.random_profit is None else curve.random_profit
    ax.plot(curve.budget, scale * random, "--", color=GREY, label="at random")
    ax.axhline(0, color=GREY, linewidth=0.5)
    ylabel = f"{'net profit' if money else 'gain'} {unit_text(rate)}"
    ax.set(xlabel="budget", ylabel=ylabel, title="What a budget gains")
    legend(ax)
    tidy(ax)
    return ax
