"""Who they are: what matters, groups in words, and the people to treat, to leave alone, and harmed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from upturn._arrays import Bools, Floats
from upturn._columns import power_of_two
from upturn._report._held_out import Experiment, HeldOut, halves, one_rule
from upturn._report._measure import Measured, Options
from upturn._report._words import mean_of, number, percent
from upturn._subgroups import subgroups
from upturn._subgroups._leaves import leaf_words
from upturn._subgroups._result import Subgroups
from upturn._table import few_levels, read_frame, read_table
from upturn.metrics import SmallSampleWarning
from upturn.metrics._multiple import holm
from upturn.trees import UpliftTree

LEAVE, HARM = "leave alone", "harmed"
_MOST_TRAITS = 6  # features that a profile names
_MOST_FEATURES = 12  # bars of importance, and features a trial's table of subgroups has
_FEWEST = 20  # rows of a profile


@dataclass(frozen=True)
class Profile:
    """People of one kind: how many, the effect of every arm measured among them, and what sets them apart."""

    kind: str
    rows: int
    share: float
    effects: list[tuple[str, float, float, float]]  # arm, effect, low, high
    traits: list[str]  # one per feature of ``People.traits``


@dataclass(frozen=True)
class People:
    """Who they are.

    ``rule`` is the single best rule in words with what it predicts on either side; ``by_feature`` are a trial's subgroups,
    with ``p_holm`` adjusted for all comparisons in all of its tables.
    """

    importances: list[tuple[str, float]] | None
    groups: Subgroups | None
    profiles: list[Profile]
    traits: list[str]
    everybody: list[str]
    rule: list[tuple[str, list[float]]]
    by_feature: list[tuple[str, Subgroups, Floats]]


def describe(measured: Measured, held: HeldOut, data: Experiment, options: Options, *, trial: bool) -> People:
    """Describe them."""
    columns = _Columns.read(data.X)
    kind = _kinds(measured, held, data)
    traits = columns.telling(kind)
    return People(
        importances=_importances(held.importances[measured.main], columns.names),
        groups=_groups(data, options),
        profiles=_profiles(kind, columns, traits, data, options),
        traits=[columns.label(j, level) for j, level in traits.items()],
        everybody=[columns.say(j, np.ones(len(kind), dtype=bool), traits[j]) for j in traits],
        rule=_rule(data, options),
        by_feature=_by_feature(data, held.importances[measured.main], columns.names, options) if trial else [],
    )


def _importances(values: Floats | None, names: tuple[str, ...]) -> list[tuple[str, float]] | None:
    """The features that matter most, as shares of all importance."""
    if values is None or not values.sum() > 0:
        return None
    order = np.argsort(-values, kind="stable")[:_MOST_FEATURES]
    return [(names[j], float(values[j] / values.sum())) for j in order if values[j] > 0]


def _rule(data: Experiment, options: Options) -> list[tuple[str, list[float]]]:
    """The best single split of all rows, in words; how good it is was measured on folds."""
    tree = data.fit(one_rule(options.seed, options.n_jobs).set_params(control=data.target.control))
    matrix = tree._encode(data.X)
    words, leaf = leaf_words(tree, np.isnan(matrix).any(axis=0)), tree.apply(data.X)
    score = np.asarray(tree.predict(data.X)).reshape(len(leaf), -1)
    first = {number: int(np.argmax(leaf == number)) for number in words if (leaf == number).any()}
    return [(words[number], score[row].tolist()) for number, row in first.items()]


def _groups(data: Experiment, options: Options) -> Subgroups | None:
    """Groups that a small tree finds in one half of the rows, with their effects in the other."""
    train, test = halves(data, options.seed)
    part = data.take(train)
    least = max(50.0, 0.02 * float(part.target.weights.sum()))
    tree = UpliftTree(max_depth=2, min_samples_leaf=least, random_state=options.seed, control=data.target.control)
    rest = data.take(test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallSampleWarning)
        found = _subgroups(part.fit(tree), rest, options)
    return found if len(set(found["group"].tolist())) > 2 else None  # one group is everybody


def _subgroups(by: Any, data: Experiment, options: Options, **more: Any) -> Subgroups:
    target = data.target
    keywords = {"sample_weight": target.weight, "control": target.control, "interval": options.interval, **more}
    return subgroups(by, data.X, target.y, data.labels, groups=data.groups, random_state=options.seed, **keywords)


def _by_feature(
    data: Experiment, importances: Floats | None, names: tuple[str, ...], options: Options
) -> list[tuple[str, Subgroups, Floats]]:
    """Effects by the values of every feature, the most important ones where there are many."""
    if read_frame(data.X) is None:
        return []
    chosen = list(range(len(names)))
    if len(chosen) > _MOST_FEATURES:
        order = np.arange(len(names)) if importances is None else np.argsort(-importances, kind="stable")
        chosen = sorted(order[:_MOST_FEATURES].tolist())
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallSampleWarning)
        for j in chosen:
            try:
                found.append((names[j], _subgroups(names[j], data, options, n_bins=3)))
            except (TypeError, ValueError):  # too many levels to be groups
                continue
    if not found:
        return []
    raw = [np.where(table.is_overall, np.nan, table["p_value"]) for _, table in found]
    adjusted = np.split(holm(np.concatenate(raw)), np.cumsum([len(p) for p in raw])[:-1])
    return [(name, table, p) for (name, table), p in zip(found, adjusted, strict=True)]


# --------------------------------------------------------------------------------------------- profiles


def _kinds(measured: Measured, held: HeldOut, data: Experiment) -> Any:
    """What the plan does with everybody: an arm's label, or leave alone; harmed are those whom every arm is predicted to
    harm by more than half a standard deviation of what is predicted.
    """
    plan, best = measured.plan, held.scores[measured.main].max(axis=1)
    named = np.array([LEAVE, *(f"treat: {label}" for label in data.target.arms)], dtype=object)
    kind = named[plan.arm]
    kind[(plan.arm == 0) & (best < -best.std() / 2)] = HARM
    return kind


def _profiles(
    kind: Any, columns: _Columns, traits: dict[int, int], data: Experiment, options: Options
) -> list[Profile]:
    found = [name for name in dict.fromkeys(kind.tolist()) if (kind == name).sum() >= _FEWEST]
    if not found:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallSampleWarning)
        table = _subgroups({name: kind == name for name in found}, data, options)
    profiles = []
    order = [*(f"treat: {label}" for label in data.target.arms), LEAVE, HARM]
    for name in sorted(found, key=order.index):
        rows = np.flatnonzero(table["group"] == name)
        effects = [
            (str(table["arm"][i]), float(table["effect"][i]), float(table["low"][i]), float(table["high"][i]))
            for i in rows
        ]
        mine = kind == name
        words = [columns.say(j, mine, level) for j, level in traits.items()]
        profiles.append(Profile(name, int(mine.sum()), float(mine.mean()), effects, words))
    return profiles


@dataclass(frozen=True)
class _Columns:
    """The features as numbers and codes."""

    matrix: Floats
    names: tuple[str, ...]
    levels: tuple[Any, ...]

    @classmethod
    def read(cls, X: Any) -> _Columns:
        matrix, schema = read_table(X, quiet=True)
        return cls(matrix, schema.names, schema.levels)

    def telling(self, kind: Any) -> dict[int, int]:
        """The features in which those to treat differ most from the rest, the most telling first, each with a level."""
        treated = np.array([str(name).startswith("treat: ") for name in kind])
        if treated.all() or not treated.any():  # then those of one arm from those of another, or just some
            treated = kind == kind[0]
        sizes = {}
        for j in range(len(self.names)):
            sizes[j] = self._difference(j, treated)
        order = sorted(sizes, key=lambda j: -sizes[j][0])
        return {j: sizes[j][1] for j in order[:_MOST_TRAITS]}

    def _difference(self, j: int, treated: Bools) -> tuple[float, int]:
        """In standard deviations; and the level that makes it, of a feature that has levels."""
        column, n_levels = few_levels(self.matrix[:, j], self.levels[j])
        known = ~np.isnan(column)
        largest = float(np.abs(column[known]).max(initial=0.0))
        if n_levels is None and largest and not 1e-70 < largest < 1e70:  # squares may not fit a float: in other units
            column = column / power_of_two(largest)
        a, b = column[known & treated], column[known & ~treated]
        if len(a) < 2 or len(b) < 2:
            return 0.0, 0
        if n_levels is None:
            spread = float(column[known].std())
            return (abs(float(a.mean() - b.mean())) / spread if spread > 0 else 0.0), 0
        p, q = (np.bincount(side.astype(np.int64), minlength=n_levels) / len(side) for side in (a, b))
        sizes = np.abs(p - q) / np.sqrt(np.maximum((p + q) / 2 * (1 - (p + q) / 2), 1e-12))
        level = int(sizes.argmax())
        return float(sizes[level]), level

    def say(self, j: int, members: Bools, level: int) -> str:
        """A group's mean of a feature, or its share of a level."""
        column, n_levels = few_levels(self.matrix[:, j], self.levels[j])
        values = column[members]
        values = values[~np.isnan(values)]
        if not len(values):
            return "n/a"
        return number(mean_of(values)) if n_levels is None else percent(float((values == level).mean()))

    def label(self, j: int, level: int) -> str:
        """The name of a feature, with the level whose share is said."""
        _, n_levels = few_levels(self.matrix[:, j], self.levels[j])
        if n_levels is None:
            return self.names[j]
        levels = self.levels[j]
        return f"{self.names[j]}: {levels[level] if n_levels == len(levels) else 'a level'}"
