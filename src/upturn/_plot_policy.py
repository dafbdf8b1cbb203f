"""Pictures of policies: overlap of the arms, calibration of effects, gain against budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from upturn.metrics import Table
from upturn.policy import GainCurve, Overlap


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("drawing needs the package matplotlib: pip install 'upturn[plot]'") from None
    return plt.subplots(figsize=(6, 4), layout="constrained")[1]


def plot_overlap(found: Overlap, *, arm: int = 1, bins: int = 30, ax: Any = None) -> Any:
    """Draw how the probability of an arm is distributed in the arms: where only one has people, nothing can be compared.

    Parameters
    ----------
    found : Overlap
        From :func:`upturn.policy.overlap`.
    arm : int
        Number of the arm whose probability is drawn, control being 0.
    bins : int
        Number of bars.
    ax : matplotlib axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    matplotlib axes
    """
    ax = _axes(ax)
    edges = np.linspace(0, 1, bins + 1)
    for code, label in enumerate(found.labels):
        mine = found.propensity[found.arm == code, arm]
        ax.hist(mine, bins=edges, density=True, alpha=0.5, label=f"{label} ({len(mine):,} rows)")
    ax.set(xlabel=f"probability of {found.labels[arm]}", ylabel="density", title="Overlap of the arms", xlim=(0, 1))
    ax.legend(frameon=False)
    return ax


def plot_calibration(table: Table, *, ax: Any = None) -> Any:
    """Draw measured against predicted effects, with intervals; on the dashed line they agree.

    Parameters
    ----------
    table : Table
        From :func:`upturn.policy.calibration_table`, or ``calibrator.table_``, where the calibrated effects are drawn too.
    ax : matplotlib axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    matplotlib axes
    """
    ax = _axes(ax)
    arms = list(dict.fromkeys(table["arm"].tolist()))
    for arm in arms:
        mine = table["arm"] == arm
        x, effect = table["predicted"][mine], table["effect"][mine]
        margin = np.abs(np.vstack([effect - table["low"][mine], table["high"][mine] - effect]))
        drawn = ax.errorbar(x, effect, yerr=margin, fmt="o", capsize=3, label=f"{arm}")
        if "calibrated" in table.columns:
            ax.plot(x, table["calibrated"][mine], "-", color=drawn[0].get_color(), label=f"{arm}, calibrated")
    low, high = np.nanmin(table["predicted"]), np.nanmax(table["predicted"])
    ax.plot([low, high], [low, high], "--", color="grey", zorder=0)
    ax.axhline(0, color="grey", linewidth=0.5, zorder=0)
    ax.set(xlabel="predicted effect, or score", ylabel="measured effect", title="Calibration")
    if len(arms) > 1 or "calibrated" in table.columns:
        ax.legend(frameon=False)
    return ax


def plot_gain(curve: GainCurve, *, ax: Any = None) -> Any:
    """Draw what every budget gains per 1,000 people, with its interval, beside spending it at random.

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
    ax = _axes(ax)
    money = curve.profit is not None
    height = curve.gain if curve.profit is None else curve.profit
    low = curve.low if curve.profit_low is None else curve.profit_low
    high = curve.high if curve.profit_high is None else curve.profit_high
    (line,) = ax.plot(curve.budget, height, label="the best first")
    ax.fill_between(curve.budget, low, high, alpha=0.2, color=line.get_color(), label=f"{curve.level:.0%} interval")
    if not money:
        ax.plot(curve.budget, curve.random, "--", color="grey", label="at random")
    ax.axhline(0, color="grey", linewidth=0.5)
    ax.set(xlabel="budget", ylabel=f"{'net profit' if money else 'gain'} per 1,000 people", title="What a budget gains")
    ax.legend(frameon=False)
    return ax
