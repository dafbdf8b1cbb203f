"""Models judged on tables in parts: what :mod:`upturn.metrics` says of the whole table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from upturn._arrays import Floats
from upturn._parameters import VERBOSE, check
from upturn._propensity import read_chances
from upturn._results import Table
from upturn._target import Label, Target
from upturn.engines._measured import Measured, Roles, Rows, read_measured_parts
from upturn.engines._open import check_column, library_of, names_in, opened
from upturn.engines._ranking import Ranking, judge_parts, replicate_ranking, walk_down, warn_if_few
from upturn.kernels.resampling import BOOTSTRAP, replicate_cells
from upturn.metrics import Curve
from upturn.metrics._compare import Asked, Evaluation, Found, MetricName, check_models, read_metrics
from upturn.metrics._curves import JOINT, SEPARATE, curve_of, with_band
from upturn.metrics._rate_curves import QINI_HEIGHTS, TOC_HEIGHTS, qini_points, toc_points
from upturn.metrics._replicates import BLOCK, Replicates
from upturn.metrics._robust import inverse_propensity_values
from upturn.metrics._statistic import SCHEMES, Plan, Statistic, warn_if_undefined


def evaluate(
    table: Any,
    y: str,
    scores: Sequence[str] | Mapping[str, Any],
    treatment: str,
    *,
    metrics: Sequence[MetricName] = ("auuc", "qini", "autoc", "uplift_at"),
    k: float = 0.3,
    sample_weight: str | None = None,
    control: Label | None = None,
    row_id: str | None = None,
    interval: float | None = 0.95,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    verbose: int = 0,
) -> Evaluation:
    """Judge several models on a table in parts: every metric with its interval, as :func:`upturn.metrics.evaluate` does in memory.

    Parts add up their rows of one score, so what travels is a row per distinct score, in ranges of scores if there are more than four million. The
    numbers are those of the whole table in memory, to rounding. Intervals are from replicates in which every row is drawn by the hash of its
    id, a Poisson number of times (for "qini" and "autoc", every other time), and so are the same however the rows lie; they differ from those in memory as two seeds do.

    Parameters
    ----------
    table : path(s), pattern, polars LazyFrame, Dask DataFrame or Spark DataFrame
        Rows that no model was fitted to, with the models' scores, such as :func:`predict` adds. Of files, only the columns that
        are named here are read and kept, eight bytes a number.
    y, treatment : str
        Columns of the outcome and of the arm's label.
    scores : list of str, or mapping
        Columns of predicted uplift, each a model; or columns by the model's name. With several arms, a model has a list of columns in the sorted order of
        the labels, or a mapping from label to column.
    metrics, k
        As in :func:`upturn.metrics.evaluate`.
    sample_weight : str, optional
        Column of weights.
    control : label, optional
        Which label is control, when its name does not tell.
    row_id : str, optional
        A column with a whole number for each row, no two the same, by which replicates are drawn; by default rows are numbered as they lie.
    interval, n_bootstrap, random_state
        As in :func:`upturn.metrics.evaluate`. Replicates take most of the time; ``interval=None`` needs one pass a model and arm.
    verbose : int
        Above 0, progress bars show how far parts of files are read, and count passes over the table.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import numpy as np, polars as pl
    >>> from upturn import engines
    >>> rng = np.random.default_rng(0)
    >>> effect, given = rng.uniform(-0.2, 0.4, 4000), rng.integers(0, 2, 4000)
    >>> bought = rng.random(4000) < 0.4 + effect * given
    >>> table = pl.LazyFrame({"oracle": effect, "guess": rng.normal(size=4000), "given": given, "bought": bought})
    >>> engines.evaluate(table, "bought", ["oracle", "guess"], "given", metrics=["auuc"], interval=None)
    2 models on 4,000 rows (0 1,948, 1 2,052)
    model   auuc, per 1,000 people
    oracle  52.04
    guess   -3.031
    outcomes per 1,000 people; 0 is random targeting
    """
    check("verbose", verbose, VERBOSE)
    replicates = Replicates.read(interval, n_bootstrap, random_state)
    asked = read_metrics(metrics, k)
    models = _read_models(scores)
    roles = _read_roles(table, y, treatment, sample_weight, row_id, _columns_of(models))
    with opened(table, roles.columns, verbose) as places:
        measured = read_measured_parts(places, roles, control)
        return _judge(measured, models, asked, replicates).evaluation(list(models), library_of(table))


def compare(
    table: Any,
    y: str,
    scores: Sequence[str] | Mapping[str, Any],
    treatment: str,
    *,
    metric: MetricName = "auuc",
    baseline: str | None = None,
    sample_weight: str | None = None,
    control: Label | None = None,
    row_id: str | None = None,
    interval: float | None = 0.95,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    verbose: int = 0,
) -> Table:
    """The paired difference between models on a table in parts, as :func:`upturn.metrics.compare` gives it in memory.

    Parameters
    ----------
    table, y, scores, treatment, sample_weight, control, row_id, interval, n_bootstrap, random_state, verbose
        As in :func:`evaluate`, at least two models.
    metric, baseline
        As in :func:`upturn.metrics.compare`.

    Returns
    -------
    Table

    Examples
    --------
    >>> import numpy as np, polars as pl
    >>> from upturn import engines
    >>> rng = np.random.default_rng(0)
    >>> effect, given = rng.uniform(-0.2, 0.4, 4000), rng.integers(0, 2, 4000)
    >>> bought = rng.random(4000) < 0.4 + effect * given
    >>> table = pl.LazyFrame({"oracle": effect, "guess": rng.normal(size=4000), "given": given, "bought": bought})
    >>> found = engines.compare(table, "bought", ["oracle", "guess"], "given")
    >>> bool(found["low"][0] > 0)
    True
    """
    check("verbose", verbose, VERBOSE)
    replicates = Replicates.read(interval, n_bootstrap, random_state)
    asked = [Asked.read(metric)]
    models = _read_models(scores)
    check_models(models, baseline)
    roles = _read_roles(table, y, treatment, sample_weight, row_id, _columns_of(models))
    with opened(table, roles.columns, verbose) as places:
        measured = read_measured_parts(places, roles, control)
        return _judge(measured, models, asked, replicates).comparison(list(models), baseline, library_of(table))


def curve(
    table: Any,
    y: str,
    score: str,
    treatment: str,
    *,
    kind: Literal["separate", "joint", "qini", "toc"] = "separate",
    sample_weight: str | None = None,
    control: Label | None = None,
    row_id: str | None = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    verbose: int = 0,
) -> Curve:
    """The curve of a model on a table in parts, as :mod:`upturn.metrics` gives it in memory.

    Of up to four million distinct scores it has all points; of more, some thousand of them, finer towards the top, through which the same
    curve runs.

    Parameters
    ----------
    table, y, treatment, sample_weight, control, row_id, interval, n_bootstrap, random_state, verbose
        As in :func:`evaluate`; the treatment has one arm besides control.
    score : str
        Column of predicted uplift.
    kind : {"separate", "joint", "qini", "toc"}
        Which curve: :func:`upturn.metrics.uplift_curve` with either ranking, :func:`upturn.metrics.qini_curve` or
        :func:`upturn.metrics.toc_curve`.

    Returns
    -------
    Curve

    Examples
    --------
    >>> import polars as pl
    >>> from upturn import engines
    >>> table = pl.LazyFrame({"bought": [1, 0, 0, 1], "uplift": [4, 3, 2, 1], "given": [1, 0, 1, 0]})
    >>> engines.curve(table, "bought", "uplift", "given").y
    array([0. , 0.5, 0. ])
    """
    if kind not in _CURVES:
        raise ValueError(f"kind={kind!r}: expected one of {', '.join(map(repr, _CURVES))}")
    check("verbose", verbose, VERBOSE)
    replicates = Replicates.read(interval, n_bootstrap, random_state)
    roles = _read_roles(table, y, treatment, sample_weight, row_id, [score])
    with opened(table, roles.columns, verbose) as places:
        measured = read_measured_parts(places, roles, control)
        return replace(_curve(measured, score, kind, replicates), library=library_of(table))


def expected_response(
    table: Any,
    y: str,
    recommended: str,
    treatment: str,
    *,
    propensity: Any = None,
    sample_weight: str | None = None,
    control: Label | None = None,
    row_id: str | None = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    verbose: int = 0,
) -> float:
    """The mean outcome if everybody got the recommended arm, on a table in parts, as :func:`upturn.metrics.expected_response` gives it in memory.

    Parameters
    ----------
    table, y, treatment, sample_weight, control, row_id, interval, n_bootstrap, random_state, verbose
        As in :func:`evaluate`.
    recommended : str
        Column of the label everybody should get.
    propensity : number(s), mapping, str or list of str, optional
        Chance of every arm: a number per treatment arm, a mapping from label to chance, the column of the chance of the one treatment, or a list of
        columns, control's first. By default the arms' shares.

    Returns
    -------
    float or Estimate

    Examples
    --------
    >>> import polars as pl
    >>> from upturn import engines
    >>> table = pl.LazyFrame({"bought": [1, 0, 0, 1], "best": [1, 1, 0, 0], "given": [1, 0, 1, 0]})
    >>> engines.expected_response(table, "bought", "best", "given")
    1.0
    """
    check("verbose", verbose, VERBOSE)
    replicates = Replicates.read(interval, n_bootstrap, random_state)
    chances = _chance_columns(propensity)
    roles = _read_roles(table, y, treatment, sample_weight, row_id, chances, [recommended])
    with opened(table, roles.columns, verbose) as places:
        measured = read_measured_parts(places, roles, control)
        return _response(measured, recommended, propensity, chances, replicates)


# ------------------------------------------------------------------------------------------- arguments


def _read_models(scores: Any) -> dict[str, Any]:
    """Columns by the name of the model."""
    if isinstance(scores, str):
        scores = [scores]
    if isinstance(scores, Mapping) and scores and all(isinstance(name, str) for name in scores):
        return dict(scores)
    fine = isinstance(scores, list | tuple) and scores and all(isinstance(name, str) for name in scores)
    if not fine or len(set(scores)) < len(scores):
        raise ValueError(
            f"scores={scores!r}: expected columns of scores, each once, as ['uplift'], or columns by the model's name, as {{'forest': 'uplift'}}"
        )
    return {name: name for name in scores}


def _columns_of(models: Mapping[str, Any]) -> list[str]:
    columns: list[str] = []
    for columns_of_model in models.values():
        if isinstance(columns_of_model, Mapping):
            columns += columns_of_model.values()
        elif isinstance(columns_of_model, list | tuple):
            columns += columns_of_model
        else:
            columns.append(columns_of_model)
    return columns


def _by_arm(model: str, columns: Any, target: Target) -> list[str]:
    """The columns of a model in the order of the arms."""
    if isinstance(columns, Mapping):
        if set(columns) != set(target.arms):
            raise ValueError(
                f"model {model!r} has columns for {list(columns)!r}: expected one for each of {target.arms!r}"
            )
        return [columns[arm] for arm in target.arms]
    found = list(columns) if isinstance(columns, list | tuple) else [columns]
    if len(found) != target.n_arms:
        raise ValueError(
            f"model {model!r} has {len(found)} column(s) of scores and treatment has {target.n_arms} arm(s) besides control: expected one per arm, "
            f"as {{{model!r}: {{{', '.join(f'{arm!r}: …' for arm in target.arms)}}}}}"
        )
    return found


def _read_roles(
    table: Any,
    y: Any,
    treatment: Any,
    sample_weight: Any,
    row_id: Any,
    numbers: Sequence[Any],
    labels: Sequence[Any] = (),
) -> Roles:
    columns = names_in(table)
    named = {"y": y, "treatment": treatment, "sample_weight": sample_weight, "row_id": row_id}
    for role, name in named.items():
        if name is not None or role in ("y", "treatment"):
            check_column(name, columns, role)
    for name in numbers:
        check_column(name, columns, "score")
    for name in labels:
        check_column(name, columns, "recommended")
    return Roles(y, treatment, sample_weight, tuple(dict.fromkeys(numbers)), tuple(labels), row_id)


def _chance_columns(propensity: Any) -> list[str]:
    if isinstance(propensity, str):
        return [propensity]
    if isinstance(propensity, list | tuple) and propensity and all(isinstance(name, str) for name in propensity):
        return list(propensity)
    return []


# ------------------------------------------------------------------------------------------- numbers


def _judge(measured: Measured, models: Mapping[str, Any], asked: list[Asked], replicates: Replicates | None) -> Found:
    """Every metric of every model on the same rows and the same replicates."""
    target = measured.target
    statistics = [one.statistic(target) for one in asked]
    columns = [_by_arm(model, names, target) for model, names in models.items()]
    if replicates is not None:
        warn_if_few(measured, statistics)
    values, samples = [], []
    for names in columns:
        own, drawn = judge_parts(measured, statistics, names, replicates)
        values.append([float(value) for value in own])
        samples.append(drawn)
    for statistic, column in zip(statistics, zip(*values, strict=True), strict=True):
        warn_if_undefined(statistic, *column)
    return Found(target, asked, values, samples, replicates)


def _separate(table: Floats) -> Curve:
    return curve_of(table, "separate")


def _joint(table: Floats) -> Curve:
    return curve_of(table, "joint")


_CURVES: dict[str, tuple[Any, Statistic]] = {
    "separate": (_separate, SEPARATE),
    "joint": (_joint, JOINT),
    "qini": (qini_points, QINI_HEIGHTS),
    "toc": (toc_points, TOC_HEIGHTS),
}


def _curve(measured: Measured, score: str, kind: str, replicates: Replicates | None) -> Curve:
    if measured.target.n_arms > 1:
        raise ValueError(
            f"a curve compares one arm with control, and treatment holds {measured.target.n_arms} arms {measured.target.arms!r}: keep the rows of one "
            "of them and of control, or use evaluate, which averages over arms"
        )
    points, statistic = _CURVES[kind]
    ranking, plan = Ranking.of(measured, score, 1), Plan([statistic])
    walked = walk_down(measured.places, ranking, plan)
    found: Curve = points(np.ascontiguousarray(walked.table[:, :4]))
    if replicates is None:
        return found
    warn_if_few(measured, [statistic])
    scheme = SCHEMES[statistic.scheme]
    sums, tops = replicate_ranking(measured.places, ranking, walked.ends, plan, scheme, replicates)
    assert statistic.shares is not None
    with np.errstate(invalid="ignore", divide="ignore"):
        return with_band(found, statistic.end(sums[0], tops, ranking), statistic.shares, replicates)


def _response(
    measured: Measured, recommended: str, propensity: Any, chances: list[str], replicates: Replicates | None
) -> float:
    target = measured.target
    if propensity is None:
        known: Any = target.mass / target.mass.sum()
    else:
        known = None if chances else read_chances(propensity, target.labels)
    if chances and len(chances) not in (target.n_arms + 1, *([1] if target.n_arms == 1 else [])):
        raise ValueError(
            f"propensity={chances!r}: expected a column for each of {target.labels!r}, control's first, or of one treatment its own"
        )
    values = partial(_response_values, target.labels, recommended, known, chances)
    weight, total = measured.places.ask(partial(_mean_sums, values), _add)
    mean = float(total / weight)
    if replicates is None:
        return mean
    measured.strata.warn_if_few()
    samples = []
    for first in range(0, replicates.n, BLOCK):
        numbers = range(first, min(first + BLOCK, replicates.n))
        weights, sums = measured.places.ask(partial(_mean_replicates, values, replicates.seed, numbers), _add)
        samples.append(sums / weights)
    return replicates.estimate(mean, np.concatenate(samples))


def _add(arrays: Sequence[Any]) -> Any:
    return np.sum(arrays, axis=0)


def _response_values(
    labels: list[Label], recommended: str, known: Floats | None, chances: list[str], rows: Rows
) -> Floats:
    """The value of every row of a part under the arm recommended for it."""
    if not len(rows.y):
        return np.empty(0)
    chance: Any = None if known is None else dict(zip(labels, known.tolist(), strict=True))
    if known is None:
        columns = np.column_stack([rows.numbers[name] for name in chances])
        chance = columns[:, 0] if columns.shape[1] == 1 else columns
    target = Target(rows.y, rows.arm, None, labels[0], labels[1:])
    return inverse_propensity_values(target, rows.labels[recommended], chance)


def _mean_sums(values: Any, rows: Rows) -> Floats:
    found = values(rows)
    weight = rows.weight if len(rows.weight) else np.ones(len(found))
    return np.array([weight.sum(), weight @ found])


def _mean_replicates(values: Any, seed: np.uint64, numbers: range, rows: Rows) -> Floats:
    found, sums = values(rows), np.zeros((1, 5, len(numbers)))
    ids = rows.ids if len(rows.ids) else np.arange(rows.first, rows.first + len(found), dtype=np.uint64)
    cell, side = np.zeros(len(found), np.int64), np.zeros(len(found), np.uint8)
    replicate_cells(BOOTSTRAP, seed, numbers.start, ids, cell, side, found, rows.weight, sums)
    return sums[0, :2]
