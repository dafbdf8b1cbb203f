"""Several models judged on the same rows: one table of all numbers, and the paired differences between models."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from upturn._arrays import Floats
from upturn._columns import warn_user
from upturn._results import NOT_AVAILABLE, Table, level_text, library_of, number_text, plural
from upturn._rows import same_rows
from upturn._target import Target, read_measured, read_score
from upturn._units import is_rate, unit_scale, unit_text
from upturn.metrics._adjusted import Reading
from upturn.metrics._estimate import Estimate, reach_of
from upturn.metrics._metric import Definition, Metric
from upturn.metrics._multiple import holm
from upturn.metrics._ranked import judge
from upturn.metrics._registry import check_options, find_metric
from upturn.metrics._replicates import Replicates
from upturn.metrics._statistic import Statistic, measure, replicate, warn_if_undefined
from upturn.metrics._strata import Strata

MetricName = str | tuple[str, Mapping[str, Any]]


class RankingWarning(UserWarning):
    """The sample is too small to say which model is better."""


@dataclass(frozen=True)
class Asked:
    """A metric that was asked for: which definition, with which options, what tables call it and what heads its column."""

    metric: Metric
    definition: Definition
    options: Mapping[str, Any]
    name: str
    head: str

    @classmethod
    def read(cls, item: Any, k: float | None = None) -> Asked:
        """A name, or a name and its options; refused before there are any data. ``k`` is for those that have one and were not given it."""
        pair = isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[1], Mapping)
        if not (isinstance(item, str) or pair):
            raise ValueError(
                f"metric {reprlib.repr(item)}: expected a name, or a name and its options as ('uplift_at', {{'k': 0.1}})"
            )
        name, options = (item, {}) if isinstance(item, str) else item
        metric: Metric = find_metric(name, measures="predict")
        check_options(name, options, metric.ranking_options)
        given = {"k": k} if k is not None and "k" in metric.options else {}
        definition, own = metric.choose({**given, **options})
        shown = "".join(_option_text(name, value) for name, value in {**own, **options}.items() if value is not None)
        return cls(metric, definition, own, name + "".join(f" {value}" for value in options.values()), name + shown)

    def statistic(self, target: Target) -> Statistic:
        """What is gathered from gated data."""
        return self.definition.statistic_of(target, self.options)

    def adjust(self, target: Target, propensity: Any, response: Any) -> tuple[Reading, Statistic]:
        """The same with the chances of the arms, or what was expected of every row."""
        try:
            return self.definition.adjust(target, self.options, propensity, response)
        except ValueError as error:
            raise ValueError(f"metric {self.name!r}: {error}") from None

    def scale(self, rate: bool) -> int:
        """What a printed number is multiplied with: rates are printed per 1,000 people, other outcomes per person."""
        return unit_scale(rate and self.definition.per_person)

    def unit(self, rate: bool) -> str:
        """What a head says of its units, after a comma; nothing where it has its own."""
        return f", {unit_text(rate)}" if self.definition.per_person else ""

    def text(self, value: float, rate: bool) -> str:
        """A number as tables print it."""
        scale = self.scale(rate)
        if np.isnan(value) or not isinstance(value, Estimate):
            return number_text(scale * value)
        if np.isnan(value.se):
            return f"{number_text(scale * float(value))} [{NOT_AVAILABLE}]"
        return (
            f"{number_text(scale * float(value))} [{number_text(scale * value.low)}, {number_text(scale * value.high)}]"
        )


def _option_text(option: str, value: Any) -> str:
    """An option in the head of a column: the top of a ranking in words, others by name."""
    if option == "k" and isinstance(value, int | np.integer):
        return f" top {value:,} {'person' if value == 1 else 'people'}"
    if option == "k" and isinstance(value, float | np.floating):
        return " everybody" if value == 1 else f" top {number_text(100 * float(value))}%"
    return f" {option}={value}"


class Evaluation(Mapping[str, dict[str, Any]]):
    """Numbers of every metric for every model: ``evaluation["model"]["auuc"]`` is an :class:`Estimate`, or a plain float
    where no interval was asked for.

    Printed, it is a table with one row per model, best first: rates (outcomes of 0 and 1) per 1,000 people, other outcomes per
    person. ``to_frame()`` has one row per model and metric, in plain outcome units per person.
    """

    def __init__(
        self,
        numbers: dict[str, dict[str, Any]],
        asked: Sequence[Asked],
        target: Target,
        interval: float | None,
        library: str | None = None,
    ) -> None:
        self._numbers, self._asked, self.interval, self._library = numbers, asked, interval, library
        self._arms = ", ".join(f"{label!r} {size:,}" for label, size in zip(target.labels, target.sizes, strict=True))
        self._n, self._rate = len(target), is_rate(target)

    def __getitem__(self, model: str) -> dict[str, Any]:
        return self._numbers[model]

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def to_frame(self) -> Any:
        """A frame with columns model, metric, value and, with an interval, se, low, high and p_value."""
        lines = [(model, name, value) for model, numbers in self.items() for name, value in numbers.items()]
        models, names, values = zip(*lines, strict=True)
        columns = {"model": models, "metric": names, "value": [float(value) for value in values]}
        return Table(columns | _spread(values), library=self._library).to_frame()

    def _table(self) -> Table:
        first = self._asked[0].name
        order = sorted(self, key=lambda model: _falling(self[model][first]))
        columns: dict[str, Any] = {"model": order}
        for asked in self._asked:
            columns[asked.head + asked.unit(self._rate)] = [
                asked.text(self[model][asked.name], self._rate) for model in order
            ]
        return Table(
            columns,
            title=f"{plural(len(self), 'model')} on {plural(self._n, 'row')} ({self._arms}){_intervals(self.interval)}",
            notes=[*_notes(self._asked, self._rate), *_adjusted(self._numbers.values())],
        )

    def __repr__(self) -> str:
        return repr(self._table())

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()


def _notes(asked: Sequence[Asked], rate: bool) -> list[str]:
    """What the numbers are in, and what 0 is."""
    common, own = ([a for a in asked if a.definition.per_person is per_person] for per_person in (True, False))
    others = ", ".join(dict.fromkeys(f"{a.metric.name} ({a.metric.zero})" for a in common if a.metric.zero))
    notes = []
    if common:
        what = "outcomes per 1,000 people" if rate else "outcome per person"
        notes.append(f"{what}; 0 is random targeting" + (f", except for {others}" if others else ""))
    if own:
        notes.append(f"as they come, with a zero of their own: {', '.join(a.name for a in own)}")
    return notes


def _adjusted(numbers: Iterable[Mapping[str, float]]) -> list[str]:
    """How much smaller errors are by adjustment, where there was one: the middle one of the models by metric."""
    found: dict[str, list[float]] = {}
    for row in numbers:
        for name, value in row.items():
            if isinstance(value, Estimate) and value.reduction is not None and np.isfinite(value.reduction):
                found.setdefault(name, []).append(value.reduction)
    if not found:
        return []
    parts = []
    for name, values in found.items():
        middle = float(np.median(values))
        parts.append(f"{name} {abs(middle):.0%} {'larger' if middle < -0.005 else 'smaller'}")
    return [f"adjusted by response, which makes the standard error of {', of '.join(parts)} than without"]


def _spread(values: Sequence[float]) -> dict[str, list[float]]:
    """Columns of errors, intervals and p-values, where the numbers have them."""
    estimates = [value for value in values if isinstance(value, Estimate)]
    names = ("se", "low", "high", "p_value") if estimates else ()
    return {name: [getattr(value, name) for value in estimates] for name in names}


def _intervals(interval: float | None) -> str:
    return "" if interval is None else f", {level_text(interval)} intervals"


def _falling(value: float) -> float:
    """A key that sorts the largest first, and what is not defined last."""
    return float("inf") if np.isnan(value) else -float(value)


@same_rows
def evaluate(
    y: Any,
    scores: Mapping[str, Any],
    treatment: Any = None,
    *,
    metrics: Sequence[MetricName] = ("auuc", "qini", "autoc", "uplift_at"),
    k: float = 0.3,
    sample_weight: Any = None,
    control: Any = None,
    propensity: Any = None,
    response: Any = None,
    groups: Any = None,
    interval: float | None = 0.95,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Evaluation:
    """Judge several models on the same rows: every metric with its interval, in one table.

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcome; or a packed target, and then no treatment.
    scores : mapping from name to array-like of shape (n,) or (n, K)
        The models' predicted uplift.
    treatment : array-like of shape (n,), optional
        Arm labels.
    metrics : sequence
        Names of metrics of a ranking, such as "auuc" and "auu" (an unknown one is answered with all there are), or pairs of
        a name and its options, such as ``("uplift_at", {"k": 0.1})``.
    k : float or int
        The top of the ranking that "uplift_at" is of, where it is not named with a k of its own.
    sample_weight, control, propensity, response, groups
        As in :func:`auuc`. With a response, a line below the table says how much smaller the errors are by it.
    interval : float or None
        Confidence level of the intervals; None gives plain numbers, which takes a small part of the time.
    n_bootstrap, random_state, n_jobs
        As in :func:`auuc`. All models and metrics see the same replicates.

    Returns
    -------
    Evaluation

    Warns
    -----
    RankingWarning
        When the sample is too small to tell the two best models apart by the first metric.

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.metrics import evaluate
    >>> rng = np.random.default_rng(0)
    >>> effect, treatment = rng.uniform(-0.2, 0.4, 4000), rng.integers(0, 2, 4000)
    >>> y = rng.random(4000) < 0.4 + effect * treatment
    >>> evaluate(y, {"oracle": effect, "guess": rng.normal(size=4000)}, treatment, metrics=["auuc"], random_state=0)
    2 models on 4,000 rows (0 1,948, 1 2,052), 95% intervals
    model   auuc, per 1,000 people
    oracle  52.04 [43.93, 60.14]
    guess   -3.031 [-11.42, 5.359]
    outcomes per 1,000 people; 0 is random targeting
    """
    replicates = Replicates.read(interval, n_bootstrap, random_state, n_jobs, groups)
    known = _Known(propensity, response)
    asked = read_metrics(metrics, k)
    found = _judge_all(y, scores, treatment, asked, sample_weight, control, replicates, known)
    return found.evaluation(list(scores), library_of(*scores.values(), y, treatment))


@same_rows
def compare(
    y: Any,
    scores: Mapping[str, Any],
    treatment: Any = None,
    *,
    metric: MetricName = "auuc",
    baseline: str | None = None,
    sample_weight: Any = None,
    control: Any = None,
    propensity: Any = None,
    response: Any = None,
    groups: Any = None,
    interval: float | None = 0.95,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Table:
    """The paired difference between models on the same rows, with its interval and p-value.

    Models are judged on the same replicates of the data, so what they share cancels out: two models can be told apart
    although their own intervals overlap.

    Parameters
    ----------
    y, scores, treatment
        As in :func:`evaluate`, at least two models.
    metric : str or (str, options)
        One of the metrics of :func:`evaluate`.
    baseline : str, optional
        The model the others are compared with. By default all pairs, the better of the two first.
    sample_weight, control, propensity, response, groups, interval, n_bootstrap, random_state, n_jobs
        As in :func:`auuc`.

    Returns
    -------
    Table
        Columns ``model``, ``against``, ``difference``, ``se``, ``low``, ``high``, ``p_value`` and ``p_holm``, in outcome units per
        person. ``p_holm`` is adjusted for all the comparisons of the table by Holm's rule: of many models some pair differs by
        chance. Printed, rates are per 1,000 people.

    Warns
    -----
    RankingWarning
        When the sample is too small to tell the two best models (or the best and the baseline) apart.

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.metrics import compare
    >>> rng = np.random.default_rng(0)
    >>> effect, treatment = rng.uniform(-0.2, 0.4, 4000), rng.integers(0, 2, 4000)
    >>> y = rng.random(4000) < 0.4 + effect * treatment
    >>> table = compare(y, {"oracle": effect, "guess": rng.normal(size=4000)}, treatment, random_state=0)
    >>> bool(table["low"][0] > 0)
    True
    """
    check_models(scores, baseline)
    replicates = Replicates.read(interval, n_bootstrap, random_state, n_jobs, groups)
    known = _Known(propensity, response)
    found = _judge_all(y, scores, treatment, [Asked.read(metric)], sample_weight, control, replicates, known)
    return found.comparison(list(scores), baseline, library_of(*scores.values(), y, treatment))


@dataclass(frozen=True)
class _Known:
    """What is known besides outcomes: chances of the arms, expected outcomes; None for neither."""

    propensity: Any
    response: Any

    @property
    def nothing(self) -> bool:
        """Whether nothing is."""
        return self.propensity is None and self.response is None


@dataclass(frozen=True)
class Found:
    """The numbers of several models, ``values[model][metric]``, and the same on every replicate where there are any."""

    target: Target
    asked: list[Asked]
    values: list[list[float]]
    samples: list[list[Floats]]
    replicates: Replicates | None
    before: Found | None = None  # the same without adjustment

    def number(self, model: int, metric: int) -> float:
        """A float, or an Estimate."""
        value = self.values[model][metric]
        if self.replicates is None:
            return value
        before = None if self.before is None else self.before.number(model, metric)
        return self.replicates.estimate(value, self.samples[model][metric], before)

    def difference(self, a: int, b: int) -> float:
        """How much better model a is than b by the first metric."""
        value = self.values[a][0] - self.values[b][0]
        if self.replicates is None:
            return value
        before = None if self.before is None else self.before.difference(a, b)
        return self.replicates.estimate(value, self.samples[a][0] - self.samples[b][0], before)

    def best_first(self) -> list[int]:
        """The models by falling first metric, those it is not defined for last."""
        return sorted(range(len(self.values)), key=lambda m: _falling(self.values[m][0]))

    def evaluation(self, models: list[str], library: str | None) -> Evaluation:
        """All numbers of all models, and a warning if the two best cannot be told apart."""
        numbers = {
            model: {asked.name: self.number(m, j) for j, asked in enumerate(self.asked)}
            for m, model in enumerate(models)
        }
        if len(numbers) > 1:
            best, second = self.best_first()[:2]
            _warn_if_tied(models, best, second, self)
        interval = None if self.replicates is None else self.replicates.interval
        return Evaluation(numbers, self.asked, self.target, interval, library)

    def comparison(self, models: list[str], baseline: str | None, library: str | None) -> Table:
        """Paired differences between the models by the first metric."""
        order = self.best_first()
        if baseline is None:
            pairs = list(combinations(order, 2))
        else:
            base = models.index(baseline)
            pairs = [(m, base) for m in order if m != base]
        differences = [self.difference(a, b) for a, b in pairs]
        _warn_if_tied(models, *pairs[0], self)
        columns: dict[str, Any] = {
            "model": [models[a] for a, _ in pairs],
            "against": [models[b] for _, b in pairs],
            "difference": [float(difference) for difference in differences],
        }
        columns |= _spread(differences)
        if "p_value" in columns:
            columns["p_holm"] = holm(np.array(columns["p_value"])).tolist()
        interval = None if self.replicates is None else self.replicates.interval
        asked, rate = self.asked[0], is_rate(self.target)
        scale = asked.scale(rate)
        formats: dict[str, Any] = dict.fromkeys(("difference", "se", "low", "high"), lambda v: number_text(scale * v))
        notes = _adjusted([{"difference": difference} for difference in differences])
        if len(pairs) > 1 and interval is not None:
            notes.append(f"p_holm: adjusted for {len(pairs)} comparisons")
        holm_text = _p_text if len(pairs) > 1 else None  # the same as p_value, and not printed twice
        return Table(
            columns,
            title=f"Paired differences in {asked.head}{asked.unit(rate)}, on {plural(len(self.target), 'row')}{_intervals(interval)}",
            formats=formats | {"p_value": _p_text, "p_holm": holm_text},
            notes=notes,
            library=library,
        )


def _judge_all(
    y: Any,
    scores: Mapping[str, Any],
    treatment: Any,
    asked: list[Asked],
    sample_weight: Any,
    control: Any,
    replicates: Replicates | None,
    known: _Known,
) -> Found:
    """Every metric of every model on the same rows and the same replicates."""
    _check_scores(scores)
    target = read_measured(y, treatment, sample_weight, control=control)
    statistics = [one.statistic(target) for one in asked]
    matrices = []
    for model, score in scores.items():
        try:
            matrices.append(read_score(score, target))
        except (TypeError, ValueError) as error:
            raise type(error)(f"model {model!r}: {error}") from None

    def judged(known: _Known) -> Found:
        if known.nothing:
            return _judge_plain(target, asked, statistics, matrices, replicates)
        return _judge_adjusted(target, asked, matrices, replicates, known)

    found = judged(known)
    measured = known.response is not None and replicates is not None  # then it is said what the response changes
    before = judged(replace(known, response=None)) if measured else None
    for statistic, column in zip(statistics, zip(*found.values, strict=True), strict=True):
        warn_if_undefined(statistic, *column)
    return replace(found, before=before)


def _judge_plain(
    target: Target,
    asked: list[Asked],
    statistics: list[Statistic],
    matrices: list[Floats],
    replicates: Replicates | None,
) -> Found:
    """From the outcomes as they are."""
    models = [judge(target, matrix) for matrix in matrices]
    values = [[float(value) for value in measure(statistics, model)] for model in models]
    samples: list[list[Floats]] = []
    if replicates is not None:
        samples = replicate(statistics, models, Strata.of_arms(target, replicates.clusters), replicates)
    return Found(target, asked, values, samples, replicates)


def _judge_adjusted(
    target: Target, asked: list[Asked], matrices: list[Floats], replicates: Replicates | None, known: _Known
) -> Found:
    """From outcomes less what was expected, or from effect scores."""
    values: list[list[float]] = [[] for _ in matrices]
    samples: list[list[Floats]] = [[] for _ in matrices]
    for one in asked:
        reading, statistic = one.adjust(target, known.propensity, known.response)
        drawn = None if replicates is None else reading.replicate([statistic], matrices, replicates)
        for m, matrix in enumerate(matrices):
            values[m].append(float(reading.measure([statistic], matrix)[0]))
            if drawn is not None:
                samples[m].append(drawn[m][0])
    return Found(target, asked, values, samples, replicates)


def read_metrics(metrics: Any, k: float) -> list[Asked]:
    """The metrics that were asked for."""
    if k is None:
        raise ValueError("k=None: expected a share of the ranking, such as 0.3, or a number of people")
    if not isinstance(metrics, list | tuple) or not metrics:
        raise ValueError(f"metrics={reprlib.repr(metrics)}: expected a list of names, such as ['auuc', 'qini']")
    return [Asked.read(item, k) for item in metrics]


def check_models(scores: Any, baseline: Any) -> None:
    """Refuse fewer than two models to compare, and a baseline that is none of them."""
    _check_scores(scores)
    if len(scores) < 2:
        raise ValueError(f"scores holds {len(scores)} model(s): a comparison needs at least two, as {{'a': …, 'b': …}}")
    check_baseline(baseline, scores)


def _check_scores(scores: Any) -> None:
    if not isinstance(scores, Mapping) or not scores:
        raise ValueError(
            f"scores is {reprlib.repr(scores)}: expected a mapping from model names to scores with at least one model, as {{'forest': …}}"
        )


def check_baseline(baseline: Any, models: Mapping[str, Any]) -> None:
    """Refuse a baseline that is none of the models."""
    if baseline is not None and not any(
        baseline is name or (isinstance(baseline, str) and baseline == name) for name in models
    ):
        raise ValueError(f"baseline={reprlib.repr(baseline)} is not among the models {list(models)!r}")


def _warn_if_tied(models: list[str], best: int, second: int, found: Found) -> None:
    """Say so when the interval of the difference of two models contains 0."""
    difference, n = found.difference(best, second), len(found.target)
    if not isinstance(difference, Estimate):
        return
    if difference.low > 0 or difference.high < 0 or np.isnan(difference):
        return  # told apart; or not defined, which was said already
    if np.isnan(difference.se):
        advice = "the difference has no standard error"
    elif float(difference) == 0:
        advice = "they rank these rows alike"
    else:
        needed = n * (reach_of(difference.interval) * difference.se / difference) ** 2
        rows = f"about {_round(needed):,} rows" if needed < 1e15 else "more rows than there are people"
        advice = f"if the difference is real, {rows} like these would show it"
    asked, rate = found.asked[0], is_rate(found.target)
    scale, unit = asked.scale(rate), asked.unit(rate).replace(",", "", 1)
    warn_user(
        f"the sample is too small to rank {models[best]!r} and {models[second]!r} by {asked.head}: {plural(n, 'row')} give a difference of "
        f"{number_text(scale * float(difference))}{unit} with a {level_text(difference.interval)} interval from "
        f"{number_text(scale * difference.low)} to {number_text(scale * difference.high)}; {advice}",
        RankingWarning,
    )


def _p_text(p: float) -> str:
    return NOT_AVAILABLE if np.isnan(p) else "<0.0001" if p < 1e-4 else f"{p:.4f}"


def _round(x: float) -> int:
    """To two significant digits, upwards."""
    digits = 10 ** max(0, int(np.floor(np.log10(x))) - 1)
    return int(np.ceil(x / digits) * digits)
