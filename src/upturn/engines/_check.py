"""Is the experiment of a table in parts sound? What `upturn.check` finds in the whole table.

Everything that is counted is counted where the rows are, one feature after the other: rows of every level, or of every distinct value, by arm. Two
checks fit models, and see a sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np

from upturn._arrays import Bools, Floats, Ints
from upturn._balance import count_pvalue
from upturn._check import _statistics as statistics
from upturn._check._examine import (
    arm_sizes,
    balance,
    few_rows,
    missing_features,
    missing_outcomes,
    useless_columns,
)
from upturn._check._models import heterogeneity, tell_apart
from upturn._check._report import ArmRow, CheckReport, FeatureRow, Finding
from upturn._check._trial import Trial
from upturn._columns import check_magnitude, power_of_two, read_outcome, read_weight
from upturn._parallel import progress
from upturn._parameters import SEED, VERBOSE, number
from upturn._parameters import check as check_option
from upturn._table import is_identifier
from upturn._target import Label, find_labels, name_arms, read_labels, weight_unit
from upturn.engines._balance import (
    add,
    arm_pvalues,
    known_values,
    level_sums,
    pool,
    rank_pvalues,
    read_arms,
    read_column,
)
from upturn.engines._gather import Roles
from upturn.engines._measured import Rows
from upturn.engines._numbers import Raw, describe_columns, series_of, union
from upturn.engines._open import check_column, library_of, names_in, opened
from upturn.engines._places import Places
from upturn.engines._sample import sample

SAMPLE = 100_000  # rows that the two models see


def check(
    table: Any,
    y: str,
    treatment: str,
    *,
    features: list[str] | None = None,
    sample_weight: str | None = None,
    control: Label | None = None,
    expected: Mapping[Label, float] | Sequence[float] | None = None,
    alpha: float = 0.05,
    random_state: Any = 0,
    verbose: int = 0,
) -> CheckReport:
    """Is this experiment sound? The findings of :func:`upturn.check`, of a table in parts.

    Arm sizes, balance, what is missing and effects are those of all rows. The classifier and heterogeneity fit models, and see at most 100,000 rows, drawn by arm
    (:func:`sample`); where those are not all, the findings say so.

    Parameters
    ----------
    table : path(s), pattern, polars LazyFrame, Dask DataFrame or Spark DataFrame
        It is read once for every feature, and must not change meanwhile.
    y, treatment : str
        Columns of the outcome, in which values may be missing, and of the arm's label.
    features : list of str, optional
        Columns known before the treatment; all others by default.
    sample_weight : str, optional
        Column of weights for the effects and for the standardised differences.
    control, expected, alpha, random_state
        As in :func:`upturn.check`.
    verbose : int
        Above 0, a progress bar counts the features.

    Returns
    -------
    CheckReport

    Examples
    --------
    >>> import numpy as np, polars as pl
    >>> from upturn import engines
    >>> rng = np.random.default_rng(0)
    >>> given = rng.integers(0, 2, 2000)
    >>> table = pl.LazyFrame({"age": rng.normal(40 + 5 * given, 10), "given": given, "bought": rng.integers(0, 2, 2000)})
    >>> engines.check(table, "bought", "given").warnings
    ('balance', 'classifier')
    """
    check_option("alpha", alpha, number(above=0, below=1).named("a probability, such as 0.05"))
    check_option("random_state", random_state, SEED)
    check_option("verbose", verbose, VERBOSE)
    roles = _read_roles(table, y, treatment, sample_weight, features)
    limit = alpha / 5
    with opened(table, [*roles.features, *roles.taken]) as places:
        people = _read_people(places, roles, control)
        named = progress(roles.features, verbose, "features")
        found = [_feature(places, people, roles, name) for name in named]
    rows = [row for row, _ in found]
    trial = _sampled(table, roles, people, random_state)
    part = int(people.sizes.sum()) > SAMPLE
    pairs = range(1, len(people.labels))
    gone = people.sizes - people.outcomes
    findings = [
        arm_sizes(people.sizes, people.labels, expected, limit),
        balance(rows, limit),
        _said(tell_apart(trial, limit), part),
        missing_features(rows, limit),
        missing_outcomes(
            gone, people.sizes, people.labels, [_flag_pvalue(gone, people.sizes, k) for k in pairs], limit
        ),
    ]
    few = few_rows(people.labels, people.counted, people.worth.tolist(), [False] * len(people.labels))
    names = [row.feature for row, identifies in found if identifies]
    findings = [*few, *findings, *useless_columns(rows, names)]
    findings.append(_said(heterogeneity(trial, sound=all(f.status != "warning" for f in findings)), part))
    order = sorted(rows, key=lambda row: -abs(row.difference))
    n, p = int(people.sizes.sum()), len(roles.features)
    return CheckReport(n, p, tuple(findings), _arm_rows(people), tuple(order), library_of(table), people.rate)


def _read_roles(table: Any, y: Any, treatment: Any, sample_weight: Any, features: Any) -> Roles:
    columns = names_in(table)
    check_column(y, columns, "y")
    check_column(treatment, columns, "treatment")
    if sample_weight is not None:
        check_column(sample_weight, columns, "sample_weight")
    taken = {y, treatment, sample_weight}
    if features is not None and not isinstance(features, list | tuple):
        raise TypeError(f"features={features!r}: expected a list of columns' names")
    chosen = [name for name in columns if name not in taken] if features is None else list(features)
    for name in chosen:
        check_column(name, columns, "features")
    if not chosen or len(set(chosen)) < len(chosen) or taken & set(chosen):
        raise ValueError(
            f"features={chosen!r}: expected names of columns, each once, that are neither outcome nor treatment nor weight"
        )
    return Roles(y, treatment, sample_weight, chosen)


def _sampled(table: Any, roles: Roles, people: People, random_state: Any) -> Trial:
    drawn = sample(table, SAMPLE, random_state, treatment=roles.treatment)
    X = nw.from_native(drawn, eager_only=True).select(roles.features).to_native()
    weight = None if roles.sample_weight is None else drawn[roles.sample_weight]
    return Trial.read(X, drawn[roles.y], drawn[roles.treatment], weight, people.labels[0], None, random_state)


def _said(finding: Finding, part: bool) -> Finding:
    return replace(finding, seen=f"{finding.seen} (a sample of {SAMPLE:,} rows)") if part else finding


# ------------------------------------------------------------------------------------------- arms and outcomes


class People(NamedTuple):
    """What all parts together know of their arms: rows, rows with an outcome, those of them with weight, what these are worth, means and
    mean squared deviations of the outcome, in ``unit``."""

    labels: list[Label]
    sizes: Ints
    outcomes: Ints
    counted: Ints
    worth: Floats
    mean: Floats
    spread: Floats
    unit: float
    heavy: float  # what weights are divided by
    rate: bool


def _read_people(places: Places, roles: Roles, control: Label | None) -> People:
    looks: list[_Look] = places.ask(partial(_look, roles))
    counts: dict[Label, int] = {}
    for look in looks:
        for label, count in look.rows.items():
            counts[label] = counts.get(label, 0) + count
    if not counts:
        raise ValueError("the table has no rows: expected one row per person")
    name, arms = name_arms(list(counts), control, sum(counts.values()))
    labels = [name, *arms]
    ends = np.array([value for look in looks for value in look.ends])
    if not len(ends):
        raise ValueError("y is missing in every row: there is no outcome to judge an experiment by")
    check_magnitude(ends, "y")
    largest = float(np.abs(ends).max())
    unit = power_of_two(largest) if largest and not 1e-70 < largest < 1e70 else 1.0
    heavy = weight_unit(max(look.heaviest for look in looks))
    first = places.ask(partial(_outcome_sums, roles, labels, unit, heavy, None), add)
    outcomes, counted, total, squares, sums, everybody = first
    if (everybody <= 0).any():
        empty = [label for label, mass in zip(labels, everybody, strict=True) if mass <= 0]
        raise ValueError(
            f"sample_weight is zero for every row of arm(s) {empty!r}: each arm needs some positive weight"
        )
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums / total
        deviations = places.ask(partial(_outcome_sums, roles, labels, unit, heavy, mean), add)[4]
        worth = np.where(total > 0, total * total / squares, 0.0)
        spread = deviations / total
    sizes = np.array([counts[label] for label in labels])
    rate = all(look.rate for look in looks)
    return People(
        labels, sizes, outcomes.astype(np.int64), counted.astype(np.int64), worth, mean, spread, unit, heavy, rate
    )


class _Look(NamedTuple):
    rows: Mapping[Label, int]
    ends: tuple[float, ...]  # smallest and largest outcome
    heaviest: float
    rate: bool


def _look(roles: Roles, raw: Raw) -> _Look:
    if not len(nw.from_native(raw.frame, eager_only=True)):
        return _Look({}, (), 0.0, rate=True)
    y = read_outcome(series_of(raw, roles.y), missing=True)
    known = y[~np.isnan(y)]
    labels, codes = find_labels(read_labels(series_of(raw, roles.treatment)))
    counts = np.bincount(codes, minlength=len(labels)).tolist()
    ends = (float(known.min()), float(known.max())) if len(known) else ()
    heaviest = 1.0 if roles.sample_weight is None else float(read_weight(series_of(raw, roles.sample_weight)).max())
    return _Look(dict(zip(labels, counts, strict=True)), ends, heaviest, bool(((known == 0) | (known == 1)).all()))


def _outcome_sums(
    roles: Roles, labels: list[Label], unit: float, heavy: float, mean: Floats | None, raw: Raw
) -> Floats:
    """By arm, of rows with an outcome: how many, with weight, weight, its square, weighted outcomes (or squared deviations); the weight of all."""
    if not len(nw.from_native(raw.frame, eager_only=True)):
        return np.zeros((6, len(labels)))
    y = read_outcome(series_of(raw, roles.y), missing=True) / unit
    arm, weight = read_arms(roles, labels, heavy, raw)
    seen: Bools = ~np.isnan(y)
    code, w, v = arm[seen], weight[seen], y[seen]
    last = w * v if mean is None else w * (v - mean[code]) ** 2
    columns = [np.bincount(code, column, minlength=len(labels)) for column in (None, w > 0, w, w * w, last)]
    return np.array([*columns, np.bincount(arm, weight, minlength=len(labels))], dtype=np.float64)


def _arm_rows(people: People) -> tuple[ArmRow, ...]:
    rows, n, unit = [], int(people.sizes.sum()), people.unit
    for k, label in enumerate(people.labels):
        size, seen, mean = int(people.sizes[k]), int(people.outcomes[k]), float(people.mean[k]) * unit
        effect: tuple[float | None, ...] = (None,) * 4
        if k:
            groups = [(float(people.worth[j]), float(people.mean[j]), float(people.spread[j])) for j in (k, 0)]
            found = statistics.welch(groups)
            effect = (found.value * unit, found.low * unit, found.high * unit, found.pvalue)
        rows.append(ArmRow(label, size, size / n, seen, mean, *effect))
    return tuple(rows)


# ------------------------------------------------------------------------------------------- features


def _flag_pvalue(flags: Ints, sizes: Ints, k: int) -> float:
    """P-value of how often something is so in arm k and in control."""
    return count_pvalue(int(sizes[0] + sizes[k]), int(flags[0] + flags[k]), int(sizes[k]), int(flags[k]))


def _feature(raws: Places, people: People, roles: Roles, name: str) -> tuple[FeatureRow, bool]:
    """What is to be said of a feature, and whether it looks like an identifier."""
    own = roles._replace(features=[name])
    schema = union([one for one in raws.ask(partial(_describe, name)) if one is not None], own)
    places = raws.change(partial(read_column, own, schema, people.labels, people.heavy))
    levels, n_arms, n = schema.levels[0], len(people.labels), int(people.sizes.sum())
    identifies = False
    if levels is None:
        first = places.ask(partial(_number_sums, n_arms, None, 1.0), _merge_numbers)
        known, differences = first[0][0].astype(np.int64), _number_differences(places, n_arms, *first)
    else:
        counts, mass = places.ask(partial(level_sums, n_arms, len(levels)), add)
        counts = counts.astype(np.int64)
        identifies = is_identifier(counts.sum(axis=0), n)
        counts, mass = pool(counts, n), pool(counts, n, mass)
        known = counts.sum(axis=1)
        differences = [_level_difference(mass, k) for k in range(1, n_arms)]
    gone, gone_pvalue = people.sizes - known, 1.0
    for k in range(1, n_arms):
        if gone.any():
            gone_pvalue = min(gone_pvalue, _flag_pvalue(gone, people.sizes, k))
    pvalues = rank_pvalues(places, name, known) if levels is None else arm_pvalues(counts)
    row = FeatureRow(
        name,
        max([0.0, *differences], key=abs),
        min(1.0, min(pvalues) * len(pvalues)),
        float(gone.sum() / n),
        min(1.0, gone_pvalue * (n_arms - 1)),
    )
    return row, identifies


def _describe(name: str, raw: Raw) -> Any:
    return describe_columns(raw, [name]) if len(nw.from_native(raw.frame, eager_only=True)) else None


def _level_difference(mass: Floats, k: int) -> float:
    totals = mass.sum(axis=1)
    if min(totals[0], totals[k]) <= 0:
        return 0.0
    sizes = statistics.share_differences(mass[0] / totals[0], mass[k] / totals[k])
    return max([0.0, *sizes[1 if len(sizes) == 2 else 0 :]], key=abs)


def _number_sums(n_arms: int, mean: Floats | None, unit: float, rows: Rows) -> tuple[Floats, float]:
    """By arm: rows, weight and weighted values (or squared deviations); the largest value in size."""
    values, arm, weight = known_values(rows)
    last = values / unit if mean is None else (values / unit - mean[arm]) ** 2
    with np.errstate(over="ignore"):
        columns = [np.bincount(arm, column, minlength=n_arms) for column in (None, weight, weight * last)]
    return np.array(columns, dtype=np.float64), float(np.abs(values).max(initial=0.0))


def _merge_numbers(parts: Sequence[tuple[Floats, float]]) -> tuple[Floats, float]:
    return np.sum([sums for sums, _ in parts], axis=0), max(largest for _, largest in parts)


def _number_differences(places: Places, n_arms: int, sums: Floats, largest: float) -> list[float]:
    """Standardised differences of every arm."""
    unit = power_of_two(largest) if largest and not 1e-70 < largest < 1e70 else 1.0
    if unit != 1.0:
        sums, _ = places.ask(partial(_number_sums, n_arms, None, unit), _merge_numbers)
    _, total, values = sums
    safe = np.where(total > 0, total, 1.0)
    mean = values / safe
    deviations, _ = places.ask(partial(_number_sums, n_arms, mean, unit), _merge_numbers)
    variance = deviations[2] / safe
    return [
        0.0
        if min(total[0], total[k]) <= 0
        else statistics.in_deviations([mean[0], mean[k]], [variance[0], variance[k]])
        for k in range(1, n_arms)
    ]
