"""What a metric is: how its numbers are made, whose they are, what options choose between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from upturn._arrays import Floats
from upturn._parameters import Rule, check
from upturn._target import Target, read_measured
from upturn.metrics._conventions import LIBRARIES, check_convention, check_target
from upturn.metrics._ranked import arm_shares, judge, judge_one_group, read_ranked
from upturn.metrics._replicates import Replicates
from upturn.metrics._robust import dr_effects
from upturn.metrics._statistic import Statistic, estimate, measure, replicate, replicate_means
from upturn.metrics._strata import Strata


@dataclass(frozen=True)
class Definition:
    """One way to make a number of a ranking.

    Attributes
    ----------
    statistic : Statistic or callable
        The sums and the formula; or a function of the gated data and the metric's own options that makes them.
    says : str
        What the number is, for the docs.
    convention : str or None
        Whose number it is; None is upturn's own.
    call : str
        What it is called there.
    chosen_by : mapping
        Options that choose this definition among those of its convention; the first of them is the default.
    per_person : bool
        Whether it is in units of the outcome per person, which tables print per 1,000 people.
    """

    statistic: Statistic | Callable[..., Statistic]
    says: str
    convention: str | None = None
    call: str = ""
    chosen_by: Mapping[str, Any] = field(default_factory=dict)
    per_person: bool = True

    @property
    def library(self) -> str:
        """Whose number it is."""
        return "upturn" if self.convention is None else LIBRARIES[self.convention].name

    def statistic_of(self, target: Target, options: Mapping[str, Any]) -> Statistic:
        """The statistic for gated data, which the library must be able to take."""
        check_target(self.convention, target)
        return self.statistic if isinstance(self.statistic, Statistic) else self.statistic(target, **options)


@dataclass(frozen=True)
class Metric:
    """A number that ``predict`` earns: of a ranking by scores.

    Attributes
    ----------
    name, question, unit : str
        What it is called, what it answers, what it is measured in.
    definitions : sequence of Definition
        Upturn's own first.
    options : mapping
        Options handed on to the statistic, with their defaults.
    from_effects : bool
        Whether it can be had from effect scores, and so takes ``propensity`` and ``response``.
    zero : str
        What the number is, where 0 is not random targeting.
    """

    name: str
    question: str
    unit: str
    definitions: Sequence[Definition]
    options: Mapping[str, Any] = field(default_factory=dict)
    from_effects: bool = False
    zero: str = ""

    measures = "predict"

    @property
    def ranking_options(self) -> list[str]:
        """Options that need nothing but the ranking, which ``evaluate`` and ``compare`` take."""
        chosen = dict.fromkeys(name for definition in self.definitions for name in definition.chosen_by)
        conventions = ["convention"] if any(definition.convention for definition in self.definitions) else []
        return [*self.options, *chosen, *conventions]

    @property
    def all_options(self) -> list[str]:
        """All of them."""
        return [*self.ranking_options, *(("propensity", "response") if self.from_effects else ())]

    def choose(self, options: Mapping[str, Any]) -> tuple[Definition, dict[str, Any]]:
        """The definition that options ask for, and the options of its statistic; refused before there are any data."""
        convention = options.get("convention")
        known = list(dict.fromkeys(definition.convention for definition in self.definitions))
        check_convention(convention, known, self.name)
        mine = [definition for definition in self.definitions if definition.convention == convention]
        for name in dict.fromkeys(name for definition in self.definitions for name in definition.chosen_by):
            value = options.get(name)
            if value is None:
                continue
            values = list(dict.fromkeys(d.chosen_by[name] for d in self.definitions if name in d.chosen_by))
            check(name, value, _among(values))
            having = [definition for definition in mine if definition.chosen_by.get(name, values[0]) == value]
            if not having:
                others = [d for d in self.definitions if d.chosen_by.get(name) == value]
                whose = " or ".join(dict.fromkeys(f"convention={d.convention!r}" for d in others))
                raise ValueError(
                    f"{name}={value!r} belongs to {whose}, not to convention={convention!r}: leave one of them out"
                )
            mine = having
        return mine[0], {name: options.get(name, default) for name, default in self.options.items()}

    def number(
        self,
        y: Any,
        score: Any,
        treatment: Any,
        sample_weight: Any,
        control: Any,
        options: Mapping[str, Any],
        replicates: Replicates | None = None,
    ) -> float:
        """The number, with its interval where there are replicates."""
        definition, own = self.choose(options)
        target, scores = read_ranked(y, score, treatment, sample_weight, control)
        statistic = definition.statistic_of(target, own)
        propensity, response = options.get("propensity"), options.get("response")
        if propensity is None and response is None:
            return estimate(statistic, judge(target, scores), partial(Strata.of_arms, target), replicates)
        only_own_effects(definition.convention)
        effects, value, samples = dr_effects(target, propensity, response), 0.0, 0.0
        for k, share in enumerate(arm_shares(target).tolist()):
            judged = judge_one_group(effects[:, k], scores[:, k], target.weight)
            value += share * float(measure([statistic], judged)[0])
            if replicates is not None:
                strata = Strata.of_values(target, effects[:, k], replicates.clusters)
                samples = samples + share * replicate([statistic], [judged], strata, replicates)[0][0]
        return value if replicates is None else replicates.estimate(value, np.asarray(samples))


def _among(values: Sequence[Any]) -> Rule:
    """One of a few words; or True or False, where those are the values, and not 1 or 0."""
    text = " or ".join(map(repr, values))
    return Rule(text, lambda value: isinstance(value, type(values[0]) | np.bool_) and value in values)


def only_own_effects(convention: str | None) -> None:
    """Refuse propensities and responses where another library's definition has no place for them."""
    if convention not in (None, "grf"):
        raise ValueError(f"convention={convention!r} has no effect scores: leave propensity and response out")


@dataclass(frozen=True)
class PolicyMetric:
    """A number that ``recommend`` earns: the mean of a value that every row has under the arm recommended for it."""

    name: str
    question: str
    unit: str
    values: Callable[..., Floats]
    all_options: Sequence[str]
    zero: str = ""

    measures = "recommend"
    from_effects = False

    def choose(self, options: Mapping[str, Any]) -> None:
        """There is nothing to choose."""

    def number(
        self,
        y: Any,
        recommended: Any,
        treatment: Any,
        sample_weight: Any,
        control: Any,
        options: Mapping[str, Any],
        replicates: Replicates | None = None,
    ) -> float:
        """The number, with its interval where there are replicates."""
        target = read_measured(y, treatment, sample_weight, control=control)
        values = self.values(target, recommended, **options)
        mean = float(np.average(values, weights=target.weight))
        if replicates is None:
            return mean
        strata = Strata.of_values(target, values, replicates.clusters)
        return replicates.estimate(mean, replicate_means(strata, replicates))
