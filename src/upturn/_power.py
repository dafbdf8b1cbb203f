"""`upturn.power`: how many rows an experiment needs, what it can see, and how likely it is to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from upturn._arrays import Floats
from upturn._columns import warn_user
from upturn._parameters import INTERVAL, NONE, check, is_number, number, one_of, whole
from upturn._results import Table, level_text, number_text
from upturn._rows import same_rows
from upturn._target import is_packed, read_target
from upturn._units import is_rate, unit_scale, unit_text, units_text
from upturn.metrics import SmallSampleWarning, compare, evaluate
from upturn.metrics._compare import Asked, RankingWarning
from upturn.metrics._estimate import reach_of
from upturn.metrics._replicates import Replicates

__all__ = ["Power", "power"]

_FEW = 10  # rows of an arm (of either outcome, for rates) below which the normal law is a poor guide
_CHANCE = number(above=0, below=1)
_MOST = 10**15  # rows


@dataclass(frozen=True)
class Noise:
    """How the standard error of a number falls with the rows: ``se = sqrt(unit(effect) / rows)``.

    Attributes
    ----------
    rate : float or None
        Success rate of control, for which the noise depends on the effect.
    sd : (float, float) or None
        Standard deviations of the outcome in control and under treatment.
    shares : tuple of float
        Shares of control and of every arm in the rows.
    constant : float or None
        rows × se², as a pilot has it.
    """

    shares: tuple[float, ...]
    rate: float | None = None
    sd: tuple[float, float] | None = None
    constant: float | None = None

    def unit(self, effect: float) -> float:
        """Variance of one row's worth; of several arms that of the smallest, which needs the most rows."""
        if self.constant is not None:
            return self.constant
        if self.rate is not None:
            treated = self.rate + effect
            control, treated = self.rate * (1 - self.rate), treated * (1 - treated)
        else:
            assert self.sd is not None
            control, treated = (sd * sd for sd in self.sd)
        return control / self.shares[0] + treated / min(self.shares[1:])


def power_of(effect: float, se: float, interval: float) -> float:
    """Chance that an interval leaves out 0 when the effect is so large, on either side."""
    z, shift = reach_of(interval), abs(effect) / se
    return float(ndtr(shift - z) + ndtr(-shift - z))


def _check_chance(power: float, interval: float) -> None:
    if power <= 1 - interval:
        raise ValueError(
            f"power={power:g} is what chance alone gives (1 - interval = {1 - interval:g}): expected more, such as 0.8, or a larger interval"
        )


def reach_for(chance: float, interval: float) -> float:
    """How many standard errors an effect must be away from 0 to be seen with that chance."""
    _check_chance(chance, interval)
    most = reach_of(interval) + 40.0
    return float(brentq(lambda shift: power_of(shift, 1.0, interval) - chance, 0.0, most, xtol=1e-12))


@dataclass(frozen=True, repr=False)
class Power:
    """A plan of an experiment: rows, effect and power that go together. Made by :func:`upturn.power`.

    Attributes
    ----------
    what : str
        What is to be seen.
    effect, rows, power : float, int, float
        So many rows show so large an effect with that chance.
    interval : float
        Confidence level of the interval that must leave out 0.
    se : float
        Standard error to expect with these rows.
    rows_per_arm : tuple of int
        The rows of control and of every arm.
    note : str
        What to keep in mind.
    rate, per_person : bool
        Whether the outcome is yes or no, and the effect one per person: it is then printed per 1,000 people.
    asked : float
        The chance that was asked for; 0.8 where the chance is what was found.
    """

    what: str
    effect: float
    rows: int
    power: float
    interval: float
    noise: Noise
    note: str = ""
    rate: bool = False
    per_person: bool = True
    asked: float = 0.8

    @property
    def se(self) -> float:
        """Standard error to expect."""
        return math.sqrt(self.noise.unit(self.effect) / self.rows)

    @property
    def rows_per_arm(self) -> tuple[int, ...]:
        """Rows of control and of every arm."""
        exact = self.rows * np.array(self.noise.shares)
        whole = np.floor(exact).astype(int)
        whole[np.argsort(whole - exact, kind="stable")[: self.rows - int(whole.sum())]] += 1
        return tuple(whole.tolist())

    def at(self, rows: Sequence[int]) -> Table:
        """Other numbers of rows: standard error, chance to see this effect, and the effect that is seen with the chance asked for."""
        for n in rows:
            check("rows", n, whole(least=2))
        return Table(
            {
                "rows": list(rows),
                "se": [math.sqrt(self.noise.unit(self.effect) / n) for n in rows],
                "power": [
                    power_of(self.effect, math.sqrt(self.noise.unit(self.effect) / n), self.interval) for n in rows
                ],
                "effect": [_detectable(self.noise, n, self.asked, self.interval) for n in rows],
            },
            title=f"Power to see {self.what} of {self._text(self.effect)}, and the one that is seen with a chance of {self.asked:.0%}",
            formats={"rows": lambda n: f"{n:,}", "power": lambda chance: f"{chance:.1%}"},
            scales=dict.fromkeys(("se", "effect"), self._scale),
            heads={name: f"{name} {unit_text(self.rate)}" for name in ("se", "effect") if self.per_person},
        )

    @property
    def _scale(self) -> int:
        return unit_scale(self.rate and self.per_person)

    def _text(self, value: float) -> str:
        """An effect as it is printed."""
        return units_text(value, self.rate, self.per_person)

    def to_frame(self) -> Any:
        """The plan as a frame of one row."""
        columns = {name: [getattr(self, name)] for name in ("what", "effect", "rows", "power", "interval", "se")}
        return Table(columns).to_frame()

    def __repr__(self) -> str:
        arms = ", ".join(f"{n:,}" for n in self.rows_per_arm)
        if math.isnan(self.effect):
            return f"{self.rows:,} rows (control, then arms: {arms}) show no effect there can be with a chance of {self.power:.1%}."
        lines = [
            f"{self.rows:,} rows (control, then arms: {arms}) show {self.what} of {self._text(self.effect)} with a chance of {self.power:.1%}: "
            f"the {level_text(self.interval)} interval, of ±{number_text(self._scale * reach_of(self.interval) * self.se)}, then leaves out 0."
        ]
        return "\n".join([*lines, *([self.note] if self.note else [])])


@same_rows
def power(
    y: Any = None,
    score: Any = None,
    treatment: Any = None,
    sample_weight: Any = None,
    *,
    effect: float | str | None = None,
    rows: int | None = None,
    power: float | None = None,
    rate: float | None = None,
    sd: Any = None,
    share: Any = 0.5,
    metric: str = "auuc",
    baseline: Any = None,
    interval: float = 0.95,
    control: Any = None,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Power:
    r"""Plan an experiment: rows needed to see an effect, the effect that rows can see, or the power of both.

    An effect is *seen* when its interval leaves out 0. With a standard error of :math:`\sigma / \sqrt n` that happens with
    the chance

    .. math:: \Phi\Big(\frac{|\text{effect}| \sqrt n}{\sigma} - z\Big) + \Phi\Big(-\frac{|\text{effect}| \sqrt n}{\sigma} - z\Big),

    z being the reach of the interval. Say two of ``effect``, ``rows`` and ``power`` (0.8 if not said), and the third is found.

    **From assumptions.** The average effect has :math:`\sigma^2 = v_1 / s + v_0 / (1 - s)` with s the share of treatment, and
    :math:`v_a = r_a (1 - r_a)` for success rates (``rate``, that of control) or the square of ``sd``.

    **From a pilot table** ``(y, score, treatment)``, an earlier experiment or campaign of the same kind, its standard error is
    carried over to other numbers of rows by :math:`1 / \sqrt n`: that of the average effect if there is no ``score``, of a
    metric of the score, or of the difference between two models' metrics if there is a ``baseline``.

    Parameters
    ----------
    y : array-like of shape (n,), optional
        Outcome of a pilot; or a packed target, and then no treatment.
    score : array-like of shape (n,) or (n, K), optional
        Predictions of a model that has not seen these rows.
    treatment, sample_weight, control
        Of the pilot, as everywhere.
    effect : float or "pilot", optional
        What is to be seen, in the units of the outcome: an average effect, an AUUC, a difference of two. "pilot" is what the
        pilot itself shows, and the default where ``rows`` is not given either. **A pilot's own effect is too large more often
        than not** (it is the reason for going on), and rows planned by it are then too few: an effect that would be worth
        having is the better choice.
    rows : int, optional
        Rows of the experiment, all arms together.
    power : float, optional
        Chance to see the effect.
    rate : float, optional
        Success rate without treatment, assumed.
    sd : float or pair of floats, optional
        Standard deviation of a real-valued outcome, assumed; control's and treatment's if they differ.
    share : float or sequence of floats
        Share of the rows that is treated; of several arms each one's share, control having the rest. The plan is then for the
        arm with the fewest rows. A pilot has its own shares.
    metric : str
        The metric of the score, by its name.
    baseline : array-like, optional
        Predictions of the model to compare with.
    interval : float
        Confidence level.
    n_bootstrap, random_state, n_jobs
        Of the pilot's standard error, as in :func:`upturn.metrics.auuc`.

    Returns
    -------
    Power
        ``rows``, ``effect``, ``power``, and ``at([…])`` for other numbers of rows.

    References
    ----------
    Cohen, "Statistical Power Analysis for the Behavioral Sciences", 1988.

    Examples
    --------
    Three buyers in a hundred, and a campaign that should bring one more:

    >>> import upturn as up
    >>> plan = up.power(effect=0.01, rate=0.03)
    >>> plan.rows, plan.rows_per_arm
    (10596, (5298, 5298))
    >>> round(up.power(rows=4000, rate=0.03).effect, 4)                 # what 4,000 people can show
    0.017
    >>> round(up.power(effect=0.01, rate=0.03, rows=4000).power, 3)
    0.406
    """
    check("interval", interval, INTERVAL)
    Replicates.read(interval, n_bootstrap, random_state, n_jobs)  # for its complaints
    check("power", power, _CHANCE.named("a chance between 0 and 1, such as 0.8") | NONE)
    check("rows", rows, whole(least=2, most=_MOST) | NONE)
    check("effect", effect, NONE | one_of("pilot") | number())
    if power is not None:
        _check_chance(power, interval)
    if y is None:
        noise, note = _assumed(effect, score, treatment, baseline, rate, sd, share), ""
        aim = _Aim("an average effect", rate is not None)
    else:
        if rate is not None or sd is not None:
            raise ValueError("rate and sd are assumptions, and a pilot (y) has its own: give one or the other")
        if not (is_number(share) and share == 0.5):
            raise ValueError(f"share={share!r} is an assumption, and a pilot (y) has its own shares: leave it out")
        options = {"interval": interval, "n_bootstrap": n_bootstrap, "random_state": random_state, "n_jobs": n_jobs}
        noise, aim, seen = _pilot(y, score, treatment, sample_weight, metric, baseline, control, options)
        note = f"The pilot has {aim.what} of {units_text(seen, aim.rate, aim.per_person)}."
        if effect == "pilot" or (effect is None and rows is None):
            effect = seen
            note += (
                " It was taken for the truth; effects of pilots are often too large, and fewer rows than needed follow."
            )
    return _solve(noise, aim, effect, rows, power, float(interval), note)


@dataclass(frozen=True)
class _Aim:
    """What is to be seen, and what it is printed in."""

    what: str
    rate: bool
    per_person: bool = True


def _solve(
    noise: Noise, aim: _Aim, effect: Any, rows: int | None, power: float | None, interval: float, note: str
) -> Power:
    """The plan, with what is missing found."""
    if effect is None and rows is None:
        raise ValueError("there is nothing to plan with: say the effect to see, or the rows there are")
    if effect is not None and float(effect) == 0:
        raise ValueError("effect=0: no number of rows shows an effect of nothing; say the smallest one worth seeing")
    if noise.rate is not None and effect is not None and not 0 < noise.rate + effect < 1:
        raise ValueError(
            f"rate={noise.rate:g} and effect={effect:g} make a rate of {noise.rate + effect:g} under treatment: expected one between 0 and 1"
        )
    if aim.rate and aim.per_person and effect is not None and abs(float(effect)) >= 1:
        raise ValueError(
            f"effect={effect:g} of a rate: expected one between -1 and 1, such as 0.05 for five in a hundred"
        )
    if effect is not None and rows is not None:
        if power is not None:
            raise ValueError("effect, rows and power are all given: leave out the one to be found")
        found = power_of(float(effect), math.sqrt(noise.unit(float(effect)) / rows), interval)
        plan = Power(aim.what, float(effect), int(rows), found, interval, noise, note, aim.rate, aim.per_person)
    else:
        chance = 0.8 if power is None else float(power)
        if rows is None:
            size = float(effect)
            exact = noise.unit(size) * (reach_for(chance, interval) / size) ** 2
            if not exact < _MOST:
                raise ValueError(
                    f"effect={size:g} is too small beside the noise: more than {_MOST:.0e} rows would be needed"
                )
            needed = max(2, math.ceil(exact - 1e-9))
        else:
            size, needed = _detectable(noise, int(rows), chance, interval), int(rows)
        plan = Power(aim.what, size, needed, chance, interval, noise, note, aim.rate, aim.per_person, chance)
    _warn_if_small(plan)
    return plan


def _detectable(noise: Noise, rows: int, chance: float, interval: float) -> float:
    """The smallest positive effect that so many rows show with that chance; NaN if no possible one is large enough."""
    reach = reach_for(chance, interval)
    if noise.rate is None:
        return reach * math.sqrt(noise.unit(0.0) / rows)
    most = (1 - noise.rate) * (1 - 1e-12)

    def short(effect: float) -> float:
        return effect - reach * math.sqrt(noise.unit(effect) / rows)

    return float(brentq(short, 0.0, most, xtol=1e-15)) if short(most) > 0 else float("nan")


def _warn_if_small(plan: Power) -> None:
    if math.isnan(plan.effect):
        warn_user(
            f"{plan.rows:,} rows are too few to see any effect there can be with a chance of {plan.power:.0%}",
            SmallSampleWarning,
        )
        return
    few: float = min(plan.rows_per_arm)
    if plan.noise.rate is not None:
        rates = (plan.noise.rate, plan.noise.rate + plan.effect)
        few = min(n * min(r, 1 - r) for n in plan.rows_per_arm for r in rates)
    if few < _FEW:
        kind = "rows of an arm" if plan.noise.rate is None else "successes or failures in an arm"
        warn_user(
            f"the plan has about {few:.1f} {kind}: with fewer than {_FEW} the normal law behind it is a poor guide; check it by simulation",
            SmallSampleWarning,
        )


# --------------------------------------------------------------------------------------------- where the noise is known from


def _assumed(effect: Any, score: Any, treatment: Any, baseline: Any, rate: Any, sd: Any, share: Any) -> Noise:
    if score is not None or treatment is not None or baseline is not None:
        raise ValueError("score, treatment and baseline belong to a pilot table, and there is no y: pass y too")
    if effect == "pilot":
        raise ValueError("effect='pilot', and there is no pilot: pass y, treatment and, for a metric, score")
    if (rate is None) == (sd is None):
        raise ValueError(
            "say how the outcome varies, in one way: rate=0.03 (success rate of control), sd=12.5 (standard deviation), or a pilot table y, "
            "score, treatment"
        )
    try:
        shares = np.atleast_1d(np.asarray(share, dtype=np.float64))
    except Exception:  # whatever an object raises when it is read
        shares = np.array([np.nan])
    if shares.ndim != 1 or not len(shares) or not ((shares > 0).all() and shares.sum() < 1):
        raise ValueError(
            f"share={share!r}: expected the share of treatment between 0 and 1, or one per arm that leave some for control"
        )
    arms = (float(1 - shares.sum()), *shares.tolist())
    if rate is not None:
        check("rate", rate, _CHANCE.named("a success rate between 0 and 1"))
        return Noise(arms, rate=float(rate))
    pair = (sd, sd) if is_number(sd) else sd
    if not (isinstance(pair, Sequence) and len(pair) == 2 and all(is_number(one) and one > 0 for one in pair)):
        raise ValueError(f"sd={sd!r}: expected a number above 0, or two of them, control's and treatment's")
    return Noise(arms, sd=(float(pair[0]), float(pair[1])))


def _pilot(
    y: Any, score: Any, treatment: Any, weight: Any, metric: str, baseline: Any, control: Any, options: dict[str, Any]
) -> tuple[Noise, _Aim, float]:
    """Noise of a pilot, what was measured in it, and how much it was."""
    import warnings

    target = read_target(y, treatment, weight, control=control)
    if target.sizes.min() < 2:
        raise ValueError(
            f"{target.name_of(int(target.sizes.argmin()))} has one row in the pilot: expected at least 2 of each arm"
        )
    n, shares, yes_or_no = len(target), tuple((target.sizes / len(target)).tolist()), is_rate(target)
    if score is None:
        if baseline is not None:
            raise ValueError("baseline is compared with a score, and there is none: pass both")
        values, errors = _mean_effects(target)
        worst = int(errors.argmax())
        whose = "" if target.n_arms == 1 else f" of {target.name_of(worst + 1)}"
        aim = _Aim(f"an average effect{whose}", yes_or_no)
        return Noise(shares, constant=float(n * errors[worst] ** 2)), aim, float(values[worst])
    given = {"sample_weight": weight, "control": control, **options}
    treated = None if is_packed(y) else treatment
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)  # what it says is what is asked here
        if baseline is None:
            number = evaluate(y, {"score": score}, treated, metrics=[metric], **given)["score"]
            found = next(iter(number.values()))
            value, se, what = float(found), found.se, f"{metric} of the score"
        else:
            table = compare(
                y, {"score": score, "baseline": baseline}, treated, metric=metric, baseline="baseline", **given
            )
            value, se, what = float(table["difference"][0]), float(table["se"][0]), f"a difference in {metric}"
    if not np.isfinite(se) or se == 0:
        raise ValueError(
            f"the pilot gives {what} no standard error (se={se:g}): do the scores tell rows apart, and differ from each other?"
        )
    aim = _Aim(what, yes_or_no, Asked.read(metric).definition.per_person)
    return Noise(shares, constant=float(n * se**2)), aim, value


def _mean_effects(target: Any) -> tuple[Floats, Floats]:
    """Effects of the arms in a pilot with their standard errors."""
    values, errors, parts = [], [], []
    for arm in range(target.n_arms + 1):
        mine = target.arm == arm
        w, v = target.weights[mine] / target.weights[mine].max(), target.y[mine]
        mean, worth = float(w @ v / w.sum()), float(w.sum() ** 2 / (w @ w))
        parts.append((mean, float((w * w) @ (v - mean) ** 2) / w.sum() ** 2 * worth / max(worth - 1, 1e-300)))
    for mean, variance in parts[1:]:
        values.append(mean - parts[0][0])
        errors.append(math.sqrt(variance + parts[0][1]))
    if max(errors) == 0:
        raise ValueError("the outcome does not vary in the pilot: there is no noise to plan with")
    return np.array(values), np.array(errors)
