"""Survival times of which some are censored, as outcomes that an uplift model and a metric can be given.

Kaplan and Meier's curve, of events and of censoring, and the two ways to make people whose time was cut short neither
successes nor failures: weights for those whose outcome is known, or a pseudo-observation for everybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from upturn._arrays import Bools, Floats
from upturn._columns import as_column, as_floats, check_finite, check_same_length, to_numpy, warn_user
from upturn._parameters import check, number, one_of
from upturn._rows import check_order
from upturn._target import read_target

__all__ = ["SurvivalOutcome", "survival_outcome"]

_FEW = 0.1  # share of an arm under observation at the horizon, below which there is a warning


class SurvivalOutcome(NamedTuple):
    """What `survival_outcome` returns: outcomes and weights, to be passed on together."""

    y: Floats
    sample_weight: Floats


def survival_outcome(
    time: Any,
    event: Any,
    horizon: float,
    *,
    treatment: Any = None,
    kind: Literal["survival", "rmst"] = "survival",
    method: Literal["ipcw", "pseudo"] = "ipcw",
) -> SurvivalOutcome:
    r"""Turn censored survival times into outcomes and weights, so that nobody counts as a failure for having been lost.

    With T the time of the event and h the horizon, the outcome is either ``1[T > h]``, survival to the horizon, or
    ``min(T, h)``, the time lived up to it, whose mean is the restricted mean survival time. It is known of people who had
    the event, or were still being watched at the horizon, and unknown of those censored before it.

    ``method="ipcw"`` keeps the known outcomes and weighs them by the inverse of their chance of being known, people
    censored before the horizon having a weight of 0:

    .. math:: w_i = \frac{1[\text{known}_i]}{G(\min(t_i, h)-)}, \qquad
              G(u-) = \prod_{v < u} \Big(1 - \frac{c_v}{r_v - d_v}\Big),

    where G is Kaplan and Meier's curve of censoring in the person's arm: r people are under observation at v, of whom d
    have the event and c are then censored. The weights of an arm add up to its number of rows, and its weighted mean
    outcome is exactly Kaplan and Meier's estimate (or the area under it).

    ``method="pseudo"`` gives everybody a weight of 1 and a real-valued pseudo-observation, what they add to Kaplan and
    Meier's estimate θ of their arm of n people:

    .. math:: y_i = n\,\theta - (n - 1)\,\theta_{-i}

    Without censoring both are the plain outcomes, with weights of 1.

    .. warning::

       Both are right if people are lost at random *within their arm*. Censoring that depends on features is not handled:
       if the old, or those who live far away, leave the study earlier, effects among them (and averages over everybody)
       remain biased. People who had another event that rules this one out are not lost at random either: competing risks
       are not handled.

    Parameters
    ----------
    time : array-like of shape (n,)
        Observed times: until the event, or until people were last seen without it.
    event : array-like of shape (n,)
        1 where the event was seen, 0 where the time is censored. An event comes before a censoring of the same time.
    horizon : float
        The time to look at, in the unit of ``time``. Choose it before looking at the outcomes, such that people are still
        under observation in every arm: a warning says where fewer than 10% of an arm are.
    treatment : array-like of shape (n,), optional
        The label of the arm each row is in. Give it: arms are often watched for different times, and the curves are then
        estimated arm by arm. Without it everybody shares one curve, which is right only if censoring and (for
        pseudo-observations) survival are alike in all arms.
    kind : {"survival", "rmst"}
        Survival to the horizon, 0 or 1 with weights; or the time lived up to the horizon.
    method : {"ipcw", "pseudo"}
        Weights on those whose outcome is known, which every model takes, the binary ones too; or pseudo-observations,
        which use everybody and have honest standard errors, but are real numbers (some of them below 0 or above 1) also
        for survival.

    Returns
    -------
    SurvivalOutcome
        ``(y, sample_weight)``, two arrays of shape (n,). Pass both on: with weights left out, the people censored before the
        horizon, whose ``y`` only fills the place (0, or the time they were seen), would count as failures again.

    See Also
    --------
    survival_to_uplift : Success as a long observed time, whatever ended it; ignores ``event``.

    Notes
    -----
    Standard errors that take the weights as known, as those of :func:`upturn.subgroups` do, are a little too large with
    ``ipcw``; those of pseudo-observations are close to Greenwood's. It takes a sort: O(n log n).

    References
    ----------
    Robins, Finkelstein, "Correcting for noncompliance and dependent censoring in an AIDS clinical trial with inverse
    probability of censoring weighted (IPCW) log-rank tests", Biometrics 56, 2000.
    Satten, Datta, "The Kaplan-Meier estimator as an inverse-probability-of-censoring weighted average", The American
    Statistician 55, 2001.
    Andersen, Klein, Rosthøj, "Generalised linear models for correlated pseudo-observations, with applications to
    multi-state models", Biometrika 90, 2003.

    Examples
    --------
    Ten years of interest; the second person left after four:

    >>> from upturn.datasets import survival_outcome
    >>> y, weight = survival_outcome([3, 4, 8, 12, 15], [1, 0, 1, 0, 1], horizon=10)
    >>> y, weight.round(3)
    (array([0., 0., 0., 1., 1.]), array([1.   , 0.   , 1.333, 1.333, 1.333]))
    >>> y, weight = survival_outcome([3, 4, 8, 12, 15], [1, 0, 1, 0, 1], horizon=10, method="pseudo")
    >>> y.round(3), weight
    (array([ 0.   ,  0.667, -0.333,  1.167,  1.167]), array([1., 1., 1., 1., 1.]))

    The first is the fit of any model: ``model.fit(X, y, treatment, sample_weight=weight)``.
    """
    check_order(time=time, event=event, treatment=treatment)
    times, events = _read_times(time, event)
    check("horizon", horizon, number(above=0).named("a time above 0, in the unit of `time`"))
    check("kind", kind, one_of("survival", "rmst"))
    check("method", method, one_of("ipcw", "pseudo"))
    horizon = float(horizon)
    if horizon > times.max():
        raise ValueError(
            f"horizon={horizon:g} lies beyond the data, whose largest time is {times.max():g}: nobody was watched for so long; "
            "choose a horizon that part of every arm reached"
        )
    if treatment is None:
        codes, names = np.zeros(len(times), np.uint8), ["the data"]
    else:
        target = read_target(times, treatment, any_control=True)
        codes, names = target.arm, [f"arm {label!r}" for label in target.labels]
    y, weight = np.empty(len(times)), np.empty(len(times))
    for code, name in enumerate(names):
        rows = np.flatnonzero(codes == code)
        _check_follow_up(times[rows], events[rows], horizon, name)
        make = _weighted if method == "ipcw" else _pseudo
        y[rows], weight[rows] = make(times[rows], events[rows], horizon, kind == "rmst")
    return SurvivalOutcome(y, weight)


# --------------------------------------------------------------------------------------------- the gate


def _read_times(time: Any, event: Any) -> tuple[Floats, Bools]:
    times = as_floats(as_column(to_numpy(time, "time"), "time"), "time")
    check_finite(times, "time", "drop rows whose time is not known")
    if (times < 0).any():
        row = int((times < 0).argmax())
        raise ValueError(
            f"time holds {int((times < 0).sum())} negative value(s), the first {times[row]:g} at row {row}: expected times since "
            "people entered the study, 0 or larger"
        )
    events = as_floats(as_column(to_numpy(event, "event"), "event"), "event")
    check_same_length({"time": times, "event": events})
    check_finite(events, "event", "drop rows of which it is not known how their time ended")
    strange = (events != 0) & (events != 1)
    if strange.any():
        row = int(strange.argmax())
        raise ValueError(
            f"event holds {events[row]:g} at row {row}: expected 1 where the event was seen and 0 where the time is censored; of other "
            "codes, say which one is the event, as in (status == 2)"
        )
    return times, events == 1


def _check_follow_up(times: Floats, events: Bools, horizon: float, name: str) -> None:
    """Refuse a horizon that an arm's curve does not reach, and warn where few are left to draw it."""
    lost = ~events & (times < horizon)
    last = times.max()
    if last < horizon and lost[times == last].any():
        raise ValueError(
            f"horizon={horizon:g} lies beyond the follow-up of {name}, where the longest time is {last:g} and censored: what happened "
            f"after it is not known; choose a horizon of at most {last:g}"
        )
    watched = float(np.mean(times >= horizon))
    if lost.any() and watched < _FEW:
        from upturn.metrics._estimate import SmallSampleWarning  # loads the kernels, which data do without

        warn_user(
            f"of {name}, {watched:.1%} are still under observation at horizon={horizon:g} ({int((times >= horizon).sum()):,} of "
            f"{len(times):,} rows) and {np.mean(lost):.1%} were censored before: few people speak for many there, and errors are large; "
            "an earlier horizon is safer",
            SmallSampleWarning,
        )


# --------------------------------------------------------------------------------------------- curves


@dataclass(frozen=True)
class _Counts:
    """Distinct times of one arm up to the horizon, in order; events, censored, and people under observation at each."""

    times: Floats
    events: Floats
    censored: Floats
    watched: Floats

    @classmethod
    def of(cls, times: Floats, events: Bools, horizon: float) -> _Counts:
        distinct, place, counts = np.unique(times, return_inverse=True, return_counts=True)
        watched = len(times) - np.concatenate(([0], np.cumsum(counts)[:-1]))
        died = np.bincount(place, weights=events, minlength=len(distinct))
        seen = slice(0, int(np.searchsorted(distinct, horizon, side="right")))
        columns = [np.asarray(column[seen], dtype=np.float64) for column in (distinct, died, counts - died, watched)]
        return cls(*columns)


def _weighted(times: Floats, events: Bools, horizon: float, rmst: bool) -> tuple[Floats, Floats]:
    """Outcomes of one arm, and weights by the inverse chance of not having been censored before they were known."""
    counts = _Counts.of(times, events, horizon)
    exposed = counts.watched - counts.events  # events come first, so only these can be censored at that time
    stay = 1.0 - np.divide(counts.censored, exposed, out=np.zeros_like(exposed), where=exposed > 0)
    before = np.concatenate(([1.0], np.cumprod(stay)))  # G just before each time, and after all of them
    known_at = np.minimum(times, horizon)
    known = events | (times >= horizon)
    chance = before[np.searchsorted(counts.times, known_at, side="left")]
    weight = np.divide(1.0, chance, out=np.zeros_like(chance), where=known)
    return (known_at if rmst else _survives(times, events, horizon).astype(np.float64)), weight


def _survives(times: Floats, events: Bools, horizon: float) -> Bools:
    """Who is known to be without the event after the horizon; an event at the horizon has happened by then."""
    return np.asarray((times > horizon) | ((times == horizon) & ~events))


def _pseudo(times: Floats, events: Bools, horizon: float, rmst: bool) -> tuple[Floats, Floats]:
    """Pseudo-observations of one arm, and weights of 1.

    Without person i, every factor of Kaplan and Meier's curve up to their time has one person fewer under observation
    (and at their time one event fewer, if it was one), and every later factor is as it was. So the curve without them is
    a prefix of a curve that is the same for everybody, times what the ordinary curve does afterwards.
    """
    n = len(times)
    if not (~events & (times < horizon)).any():  # everybody's outcome is known, and this is what comes out
        outcome = np.minimum(times, horizon) if rmst else _survives(times, events, horizon).astype(np.float64)
        return outcome, np.ones(n)
    counts = _Counts.of(times, events, horizon)
    r, d = counts.watched, counts.events
    whole = np.cumprod(np.concatenate(([1.0], 1.0 - d / r)))  # S after each time, with S(0) first
    fewer = np.maximum(r - 1.0, 1.0)  # where nobody else is left there is no event either, and the curve stays level
    short = np.cumprod(np.concatenate(([1.0], np.where(r > 1, (r - 1.0 - d) / fewer, 1.0))))
    own = np.where(r > 1, (r - d) / fewer, 1.0)  # the factor at one's own time, for a person with the event
    # Number of the last distinct time not after the person's own; those who outlive the horizon have met all of them.
    met = np.searchsorted(counts.times, np.minimum(times, horizon), side="right")
    dies = events & (times <= horizon)
    until = np.where(dies, short[met - 1] * own[met - 1], short[met])  # curve without the person, after their time
    later = np.divide(until, whole[met], out=np.zeros(n), where=whole[met] > 0)
    if not rmst:
        # Where the ordinary curve is 0 there is no later time, and the curve without the person ends as it is.
        without = np.where(whole[met] > 0, later * whole[-1], until)
        return n * whole[-1] - (n - 1) * without, np.ones(n)
    edges = np.concatenate(([0.0], counts.times, [horizon]))
    area = np.concatenate(([0.0], np.cumsum(whole * np.diff(edges))))  # under the curve up to each edge
    area_short = np.concatenate(([0.0], np.cumsum(short * np.diff(edges))))
    # Up to the last distinct time met the curve without the person is `short`, and from there on `until` and what follows.
    rest = np.where(whole[met] > 0, later * (area[-1] - area[met]), until * (horizon - edges[met]))
    return n * area[-1] - (n - 1) * (area_short[met] + rest), np.ones(n)
