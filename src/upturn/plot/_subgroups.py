"""The forest plot of subgroups."""

from __future__ import annotations

from typing import Any

import numpy as np

from upturn._parameters import FLAG, check
from upturn._results import NOT_AVAILABLE, level_text, number_text
from upturn._subgroups import Subgroups
from upturn._units import unit_text
from upturn.plot._style import COLOURS, GREY, MARKERS, new_axes, plain_numbers

_LABELS = {
    "difference": "effect (difference of means)",
    "ratio": "ratio of means (logarithmic)",
    "odds_ratio": "odds ratio (logarithmic)",
    "nnt": "difference per 1,000 people; the numbers needed to treat are beside it",
}


def subgroups(table: Subgroups, *, simultaneous: bool = True, ax: Any = None) -> Any:
    """Draw effects by group with their intervals: the forest plot.

    A square per group, the larger the more rows it has, with the interval of that group alone; thin grey lines reach to
    the interval that holds in all groups at once. At the bottom a diamond for everybody, the dashed line. Ratios are drawn
    on a logarithmic axis; numbers needed to treat at their differences, where an interval through infinity is one piece.

    Parameters
    ----------
    table : Subgroups
        From :func:`upturn.subgroups`.
    simultaneous : bool
        Whether to draw the intervals that hold at once.
    ax : matplotlib axes, optional
        Where to draw; a new figure otherwise, as high as there are groups.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import numpy as np
    >>> import upturn as up
    >>> rng = np.random.default_rng(0)
    >>> group, treatment, y = rng.integers(0, 3, 900), rng.integers(0, 2, 900), rng.normal(size=900)
    >>> ax = up.plot.subgroups(up.subgroups(group, None, y, treatment))  # doctest: +SKIP
    """
    if not isinstance(table, Subgroups):
        raise TypeError(f"plot.subgroups got {type(table).__name__}: expected the table that upturn.subgroups returns")
    check("simultaneous", simultaneous, FLAG)
    arms = list(dict.fromkeys(table["arm"].tolist()))
    k, n, overall = len(arms), len(table), table.is_overall
    ax = new_axes(ax, (8.5, 1.3 + 0.34 * n + 0.12 * len(set(table["group"].tolist()))))
    logarithmic = table.scale in ("ratio", "odds_ratio")
    value, low, high, low_all, high_all = (
        _drawn(table, name) for name in ("effect", "low", "high", "low_all", "high_all")
    )
    low, high = np.minimum(low, high), np.maximum(low, high)
    low_all, high_all = np.minimum(low_all, high_all), np.maximum(low_all, high_all)
    place = np.arange(n) + 0.4 * (np.arange(n) // k) * (k > 1) + 0.5 * overall
    size = table["n_control"] + table["n_treated"]
    largest = size[~overall].max()
    none = 1.0 if logarithmic else 0.0
    ax.axvline(none, color=GREY, linewidth=1, zorder=0)
    for i in range(n):
        j = i % k
        colour, marker = COLOURS[j % len(COLOURS)], "D" if overall[i] else "s" if k == 1 else MARKERS[j % len(MARKERS)]
        if simultaneous and not overall[i] and np.isfinite([low_all[i], high_all[i]]).all():
            ax.plot([low_all[i], high_all[i]], [place[i]] * 2, color="#aaaaaa", linewidth=1, zorder=1)
        if np.isfinite([low[i], high[i]]).all():
            ax.plot([low[i], high[i]], [place[i]] * 2, color=colour, linewidth=2, zorder=2, solid_capstyle="butt")
        if np.isfinite(value[i]):
            area = 60.0 if overall[i] else 20.0 + 100.0 * size[i] / largest
            ax.scatter([value[i]], [place[i]], s=area, color=colour, marker=marker, zorder=3)
        if overall[i] and k == 1:
            ax.axvline(value[i], color=colour, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    if logarithmic:
        ax.set_xscale("log")
        _plain_ticks(ax)
    names = [f"{table['group'][i]}" if i % k == 0 else "" for i in range(n)]
    labels = [f"{name}  ({int(size[i]):,})" if name and k == 1 else name for i, name in enumerate(names)]
    ax.set_yticks(place, [_wrapped(label) for label in labels])
    ax.set_ylim(place[-1] + 0.8, -0.8)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    plain_numbers(ax.xaxis)
    unit = f", {unit_text(table.scale_of('effect') != 1)}" if table.scale == "difference" else ""
    ax.set(xlabel=_LABELS[table.scale] + unit, title="Effects by group" + (f", arm {arms[0]}" if k == 1 else ""))
    _write_numbers(ax, table, place)
    if k > 1:
        for j, arm in enumerate(arms):
            ax.scatter([], [], color=COLOURS[j % len(COLOURS)], marker=MARKERS[j % len(MARKERS)], label=str(arm))
        ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.25 / max(n / 6, 1)), ncols=min(k, 4))
    return ax


def _wrapped(label: str, width: int = 46) -> str:
    """A long name in several lines, broken between its conditions."""
    lines = [""]
    for part in label.split(" and "):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines[-1] += " and"
            lines.append(part)
        else:
            lines[-1] += (" and " if lines[-1] else "") + part
    return "\n".join(lines)


def _drawn(table: Subgroups, name: str) -> Any:
    """A column at the place where it is drawn."""
    values = table.scale_of("effect") * np.asarray(table[name], dtype=np.float64)
    if table.scale != "nnt":
        return values
    with np.errstate(divide="ignore"):
        return 1000.0 / values


def _plain_ticks(ax: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = ax.get_xlim()
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high > 10 * low else (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value)))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _write_numbers(ax: Any, table: Subgroups, place: Any) -> None:
    """Effect and interval in figures, in a column to the right of the picture."""
    across = ax.get_yaxis_transform()
    effect = {"ratio": "ratio", "odds_ratio": "odds ratio", "nnt": "number needed"}.get(table.scale, "effect")
    head = f"{effect} ({level_text(table.interval)} interval)"
    ax.text(1.02, -0.75, head, transform=across, va="center", fontsize="small", fontweight="bold")
    for i, y in enumerate(place):
        value, low, high = (table.scale_of("effect") * float(table[name][i]) for name in ("effect", "low", "high"))
        words = number_text(value, digits=3) if np.isfinite(value) else NOT_AVAILABLE
        if table.scale == "nnt":
            words += "" if np.isnan(low) else f" ({table['in words'][i]})"
        elif not np.isnan(low):
            words += f" ({number_text(low, digits=3)} to {number_text(high, digits=3)})"
        ax.text(1.02, y, words, transform=across, va="center", fontsize="small")
