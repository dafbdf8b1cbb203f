"""Bins of people by score: what was predicted and what was observed in each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from upturn._arrays import Floats
from upturn._columns import check_sums
from upturn._parameters import check, whole
from upturn._results import Table, level_text, library_of
from upturn._rows import same_rows
from upturn._target import Target
from upturn._units import is_rate, unit_scale, unit_text
from upturn.kernels.ranking import S0, S1, W0, W1
from upturn.metrics._formulas import rates_or_nan, ratio_or_nan
from upturn.metrics._ranked import Judged, Ranked, rank, read_ranked
from upturn.metrics._replicates import Replicates
from upturn.metrics._statistic import Statistic, measure, replicate
from upturn.metrics._strata import Strata

_ONE = np.ones(1)  # the share of the only ranking there is


@same_rows
def calibration_table(
    y: Any,
    score: Any,
    treatment: Any = None,
    *,
    n_bins: int = 10,
    sample_weight: Any = None,
    control: Any = None,
    groups: Any = None,
    interval: float | None = 0.95,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Table:
    """Predicted against observed effect, in tenths of the ranking from the highest score to the lowest.

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcome of an experiment the model was not fitted on; or a packed target, and then no treatment.
    score : array-like of shape (n,) or (n, K)
        Predicted effects, or scores, a column per arm.
    treatment : array-like of shape (n,), optional
        Arm labels.
    n_bins : int
        Number of bins per arm, each with the same share of the weight. Equal scores at a cut are shared out between the bins.
    sample_weight, control, groups
        As in :func:`auuc`.
    interval : float or None
        Confidence level of the observed effects' intervals; None gives none.
    n_bootstrap, random_state, n_jobs
        As in :func:`auuc`.

    Returns
    -------
    Table
        Columns ``arm``, ``bin`` (1 is the top), ``treated`` and ``control`` (weight of the rows), ``rate_treated``,
        ``rate_control``, ``predicted`` (mean score), ``observed`` and, with an interval, ``se``, ``low``, ``high``. Every arm
        is ranked by its own score, among its own rows and those of control. Where a bin has nobody of an arm, there is no
        rate and no effect (NaN, printed as n/a).

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.metrics import calibration_table
    >>> y, score, treatment = np.repeat([1, 0, 0, 1], 10), np.repeat([4, 3, 2, 1], 10), np.repeat([1, 0, 1, 0], 10)
    >>> calibration_table(y, score, treatment, n_bins=2)["observed"]
    array([ 1., -1.])
    """
    check("n_bins", n_bins, whole(least=1))
    replicates = Replicates.read(interval, n_bootstrap, random_state, n_jobs, groups)
    target, scores = read_ranked(y, score, treatment, sample_weight, control)
    check_sums(scores, "score", float(target.totals.sum()))  # whose means are taken
    columns = bin_columns(target, scores, n_bins, replicates, {"predicted": scores})
    return bin_table(columns, target.labels, interval, library_of(score, y, treatment), is_rate(target))


def bin_columns(
    target: Target, scores: Floats, n_bins: int, replicates: Replicates | None, means: Mapping[str, Floats]
) -> dict[str, Any]:
    """The columns of the table, arms by their codes; ``means`` are matrices whose means are taken in every bin."""
    shares = np.linspace(0, 1, n_bins + 1)
    rankings = [rank(target, scores[:, k], k + 1) for k in range(target.n_arms)]
    sums = np.concatenate([_sums(ranked, shares) for ranked in rankings])
    observed = rates_or_nan(sums)
    columns: dict[str, Any] = {
        "arm": np.repeat(np.arange(1, target.n_arms + 1), n_bins),
        "bin": np.tile(np.arange(1, n_bins + 1), target.n_arms),
        "treated": sums[:, W1] * target.unit,
        "control": sums[:, W0] * target.unit,
        "rate_treated": ratio_or_nan(sums[:, S1], sums[:, W1]),
        "rate_control": ratio_or_nan(sums[:, S0], sums[:, W0]),
    }
    for name, values in means.items():
        columns[name] = np.concatenate([_means(ranked, values[:, k], shares) for k, ranked in enumerate(rankings)])
    columns["observed"] = observed
    if replicates is not None:
        models = [Judged([ranked], _ONE) for ranked in rankings]
        found = replicate(
            [Statistic(_effects, shares=shares)], models, Strata.of_arms(target, replicates.clusters), replicates
        )
        error = np.concatenate([replicates.spread(samples) for (samples,) in found])
        columns |= {"se": error, "low": observed - replicates.z * error, "high": observed + replicates.z * error}
    return columns


def bin_table(
    columns: Mapping[str, Any],
    labels: list[Any],
    interval: float | None,
    library: str | None = None,
    rate: bool = False,
) -> Table:
    """The columns as a table that prints, with the arms' labels; rates are printed per 1,000 people."""
    title = f"Predicted and observed effect in {columns['bin'].max()} bins of the ranking, {unit_text(rate)}"
    if interval is not None:
        title += f", {level_text(interval)} intervals"
    named = {**columns, "arm": [labels[code] for code in columns["arm"]]}
    formats = dict.fromkeys(("treated", "control"), "{:,.0f}".format)
    scales = dict.fromkeys(set(columns) - {"arm", "bin", "treated", "control"}, unit_scale(rate))
    return Table(named, title=title, formats=formats, scales=scales, library=library)


def _sums(ranked: Ranked, shares: Floats) -> Floats:
    """Weight and outcome of either side in every bin."""
    return np.diff(measure([Statistic(_as_is, shares=shares)], Judged([ranked], _ONE))[0], axis=0)


def _means(ranked: Ranked, values: Floats, shares: Floats) -> Floats:
    """Mean of a value in every bin: from the same ranking, the values in place of the outcomes of one group."""
    one_group = replace(ranked, y=values[ranked.order], side=np.ones(len(ranked.order), np.uint8))
    sums = _sums(one_group, shares)
    return np.asarray(sums[:, S1] / sums[:, W1])


def _as_is(sums: Floats, totals: Floats) -> Floats:
    return sums


def _effects(sums: Floats, totals: Floats) -> Floats:
    return rates_or_nan(np.diff(sums, axis=-2))
