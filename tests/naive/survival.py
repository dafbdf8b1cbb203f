"""Kaplan and Meier's curve a person at a time, and the jackknife by leaving everybody out in turn."""

from __future__ import annotations

import itertools


def kaplan_meier(times, events, at):
    """Survival just after ``at``: one factor per distinct time of an event."""
    curve = 1.0
    for u in sorted({t for t, e in zip(times, events, strict=True) if e and t <= at}):
        watched = sum(t >= u for t in times)
        died = sum(t == u and e for t, e in zip(times, events, strict=True))
        curve *= 1 - died / watched
    return curve


def restricted_mean(times, events, horizon):
    """Area under the curve up to the horizon."""
    edges = [0.0, *sorted({t for t in times if 0 < t < horizon}), horizon]
    return sum((b - a) * kaplan_meier(times, events, a) for a, b in itertools.pairwise(edges))


def pseudo_observations(times, events, horizon, kind):
    """What everybody adds to the estimate: n θ - (n - 1) θ without them."""
    estimate = kaplan_meier if kind == "survival" else restricted_mean
    n, whole, found = len(times), estimate(times, events, horizon), []
    for i in range(n):
        rest = [*times[:i], *times[i + 1 :]], [*events[:i], *events[i + 1 :]]
        found.append(n * whole - (n - 1) * estimate(*rest, horizon))
    return found
