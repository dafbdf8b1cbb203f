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
from upturn.metrics._adjusted import Reading
from upturn.metrics._conventions import LIBRARIES, check_convention, check_target
from upturn.metrics._ranked import judge, read_ranked
from upturn.metrics._replicates import Replicates
from upturn.metrics._statistic import Statistic, estimate, replicate_means
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
    adjustable : bool
        Whether what was expected of every row can be taken off its outcome: it cancels between the arms.
    effects : Statistic, callable or None
        The same number from effect scores of all rows together, where it can be had from them.
    """

    statistic: Statistic | Callable[..., Statistic]
    says: str
    convention: str | None = None
    call: str = ""
    chosen_by: Mapping[str, Any] = field(default_factory=dict)
    per_person: bool = True
    adjustable: bool = False
    effects: Statistic | Callable[..., Statistic] | None = None

    @property
    def library(self) -> str:
        """Whose number it is."""
        return "upturn" if self.convention is None else LIBRARIES[self.convention].name

    def statistic_of(self, target: Target, options: Mapping[str, Any]) -> Statistic:
        """The statistic for gated data, which the library must be able to take."""
        check_target(self.convention, target)
        return self.statistic if isinstance(self.statistic, Statistic) else self.statistic(target, **options)

    def adjust(
        self, target: Target, options: Mapping[str, Any], propensity: Any, response: Any
    ) -> tuple[Reading, Statistic]:
        """What to measure, and in what, with the chances of the arms or the responses that are known."""
        statistic = self.statistic_of(target, options)
        if propensity is None and self.adjustable:
            return Reading.outcomes(target, response), statistic
        if self.effects is None:
            what = f"convention={self.convention!r}" if self.convention else "it"
            raise ValueError(f"{what} has no effect scores: leave propensity and response out")
        own = self.effects if isinstance(self.effects, Statistic) else self.effects(target, **options)
        return Reading.effects(target, propensity, response), own


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
    zero : str
        What the number is, where 0 is not random targeting.
    """

    name: str
    question: str
    unit: str
    definitions: Sequence[Definition]
    options: Mapping[str, Any] = field(default_factory=dict)
    zero: str = ""

    measures = "predict"

    @property
    def from_effects(self) -> bool:
        """Whether it can be had from effect scores, and so takes ``propensity`` and ``response``."""
        return any(definition.effects is not None for definition in self.definitions)

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
        return self._measured(target, scores, definition, own, options, replicates)

    def _measured(
        self,
        target: Target,
        scores: Floats,
        definition: Definition,
        own: dict[str, Any],
        options: Mapping[str, Any],
        replicates: Replicates | None,
    ) -> float:
        """The number of gated data; with a response, beside what its error would be without."""
        propensity, response = options.get("propensity"), options.get("response")
        if propensity is None and response is None:
            statistic = definition.statistic_of(target, own)
            return estimate(statistic, judge(target, scores), partial(Strata.of_arms, target), replicates)
        reading, statistic = definition.adjust(target, own, propensity, response)
        value = float(reading.measure([statistic], scores)[0])
        if replicates is None:
            return value
        samples = reading.replicate([statistic], [scores], replicates)[0][0]
        if response is None:
            return replicates.estimate(value, samples)
        without = {**options, "response": None}
        return replicates.estimate(value, samples, self._measured(target, scores, definition, own, without, replicates))


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
