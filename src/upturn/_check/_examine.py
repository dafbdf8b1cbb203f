"""`upturn.check`: is this experiment sound?"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from upturn._arrays import Bools, Floats, Indices, Ints
from upturn._balance import column_pvalues, each_column, flag_pvalue
from upturn._check import _statistics as statistics
from upturn._check._clustered import cluster_pvalue, cluster_pvalues
from upturn._check._models import heterogeneity, tell_apart
from upturn._check._report import ArmRow, CheckReport, FeatureRow, Finding, p_text
from upturn._check._trial import Trial
from upturn._columns import as_floats, check_magnitude, to_numpy
from upturn._parameters import SEED, number
from upturn._parameters import check as check_option
from upturn._results import library_of, plural
from upturn._table import few_levels, find_identifiers
from upturn._target import Label
from upturn._units import is_rate

_NEARLY = 0.95  # share of the rows, beyond which a column that misses as many is called nearly empty
_FEW_CLUSTERS = 30  # in all, below which intervals are too narrow
_FEWEST = 10  # outcomes an arm must have for the checks to mean anything


def check(
    X: Any,
    y: Any,
    treatment: Any = None,
    *,
    sample_weight: Any = None,
    control: Label | None = None,
    groups: Any = None,
    expected: Mapping[Label, float] | Sequence[float] | None = None,
    alpha: float = 0.05,
    random_state: Any = 0,
) -> CheckReport:
    """Is this experiment sound? Run it before any model.

    Five checks can raise a warning. Each may do so by chance in at most ``alpha / 5`` of sound experiments, so all
    together in at most ``alpha`` of them:

    - **arm sizes**: do they fit the intended shares (sample-ratio mismatch)?
    - **balance**: do the arms agree in every feature? Rank test for numbers, exact test for levels, corrected for the
      number of comparisons;
    - **classifier**: can a boosted tree model tell the arms apart on rows it has not seen (two-sample test)?
    - **missing features** and **missing outcomes**: are they missing equally often in every arm?

    An arm with fewer than ten outcomes gets a warning of its own (**rows**): no check could find anything wrong with it.

    Columns that are empty, nearly so, or that look like identifiers are noted (**columns**); of more than 256 levels of a
    column, the rarest are compared together.

    Two more inform: the **effect** of each arm with a 95% interval and a p-value (Welch), and whether **heterogeneity**, effects
    that differ between people in a way the features can tell, is seen, and how large it would have to be.

    Parameters
    ----------
    X : table of n rows
        Features known before the treatment.
    y : array of shape (n,)
        The outcome; missing values (NaN) are allowed here, unlike in ``fit``. Or a packed target.
    treatment : array of shape (n,)
        Labels of the arms; left out when y is packed. y, treatment, sample_weight and groups may also be names of columns of X.
    sample_weight : array of shape (n,), optional
        Weights for the effects and for the standardised differences. The tests look at rows, not at weights.
    control : label, optional
        The control arm, found by its name otherwise.
    groups : array of shape (n,), optional
        The cluster of every row, such as a centre, a shop or a household. Where every cluster lies in one arm, clusters were
        assigned and not people: then the tests compare clusters, each by its means, instead of rows. Effects and
        heterogeneity have errors by cluster either way. Fewer than 30 clusters, or 10 in an arm, get a warning (**clusters**).
    expected : mapping from label to share, or sequence of shares (control first, then sorted), optional
        The shares that were intended. When not given, equal shares are presumed if all shares found are within a
        tenth of equal; otherwise arm sizes are not judged.
    alpha : float
        Bound on the chance that a sound experiment gets a warning.
    random_state : int
        Splits the rows for the classifier and for heterogeneity.

    Returns
    -------
    CheckReport
        Prints as a table; has ``ok``, ``findings``, ``arms``, ``features``, ``advice`` and ``to_frame()``.

    References
    ----------
    D. Lopez-Paz and M. Oquab, "Revisiting classifier two-sample tests", ICLR 2017. A. Fabijan et al., "Diagnosing
    sample ratio mismatch in online controlled experiments", KDD 2019. Heterogeneity: V. Chernozhukov et al., 2018.

    Examples
    --------
    >>> import upturn
    >>> from upturn.datasets import simulate_biased
    >>> sound = simulate_biased(2000, bias=0.0, random_state=0)
    >>> upturn.check(sound.X, sound.y, sound.treatment).ok
    True
    >>> biased = simulate_biased(2000, bias=1.0, random_state=0)
    >>> upturn.check(biased.X, biased.y, biased.treatment).warnings
    ('balance', 'classifier')
    """
    check_option("alpha", alpha, number(above=0, below=1).named("a probability, such as 0.05"))
    check_option("random_state", random_state, SEED)
    trial = Trial.read(X, y, treatment, sample_weight, control, groups, random_state)
    limit = alpha / 5
    features = _feature_rows(trial)
    findings = [
        arm_sizes(trial.arm_sizes, trial.data.target.labels, expected, limit, whole=trial.whole),
        balance(features, limit),
        tell_apart(trial, limit),
        missing_features(features, limit),
        _missing_outcomes(trial, limit),
    ]
    findings = [
        *_rows(trial),
        *_clusters(trial),
        *findings,
        *useless_columns(features, find_identifiers(trial.data.X, trial.data.schema)),
    ]
    findings.append(heterogeneity(trial, sound=all(finding.status != "warning" for finding in findings)))
    order = sorted(features, key=lambda row: -abs(row.difference))
    data = trial.data
    arms, rate = _arm_rows(trial), is_rate(data.target)
    return CheckReport(len(data), data.schema.n_features, tuple(findings), arms, tuple(order), library_of(X), rate)


# ------------------------------------------------------------------------------------------------ arms and effects


def _rows(trial: Trial) -> list[Finding]:
    """A warning where an arm has too few outcomes for any check to see anything; nothing otherwise."""
    target = trial.data.target
    counts = np.bincount(target.arm[trial.observed & (trial.weights > 0)], minlength=target.n_arms + 1)
    codes, clusters = range(target.n_arms + 1), trial.clusters
    worth = [statistics.effective_rows(trial.weights[trial.observed & (target.arm == code)]) for code in codes]
    alone = [clusters is not None and len(set(clusters[target.arm == code].tolist())) < 2 for code in codes]
    return few_rows(target.labels, counts, worth, alone)


def few_rows(labels: list[Label], counts: Ints, worth: Sequence[float], alone: Sequence[bool]) -> list[Finding]:
    """The same from the outcomes of every arm, how many rows they are worth, and whether they are of one cluster."""
    few = [f"{label} has {count}" for label, count in zip(labels, counts, strict=True) if count < _FEWEST]
    for code, label in enumerate(labels):
        if counts[code] >= _FEWEST and worth[code] < 2:
            few.append(f"{label} has {counts[code]}, whose weights are worth {worth[code]:.2g}")
        if alone[code]:
            few.append(f"{label} has those of one cluster")
    if not few:
        return []
    seen = f"too few rows with an outcome: {', '.join(few)}"
    advice = (
        f"With fewer than {_FEWEST} outcomes in an arm nothing can be said about the experiment, good or bad: collect more, or "
        "leave the arm out."
    )
    return [Finding("rows", "warning", None, None, seen, advice)]


def _clusters(trial: Trial) -> list[Finding]:
    """What clusters there are and what that changes, with a warning where they are few; nothing without any."""
    if trial.clusters is None:
        return []
    sizes = np.unique(trial.clusters, return_counts=True)[1]
    how = "each in one arm: clusters are compared" if trial.whole else "in several arms: rows are compared"
    seen = f"{len(sizes):,} of {sizes.min():,} to {sizes.max():,} rows, {how}"
    target = trial.data.target
    counts = [len(np.unique(trial.clusters[target.arm == code])) for code in range(target.n_arms + 1)]
    few = [f"{label!r} has {count}" for label, count in zip(target.labels, counts, strict=True) if count < _FEWEST]
    if len(sizes) >= _FEW_CLUSTERS and not few:
        return [Finding("clusters", "ok", None, None, seen)]
    seen += f"; {', '.join(few)}" if few else ""
    advice = (
        f"Rows of a cluster say less than as many independent ones, and with fewer than {_FEW_CLUSTERS} clusters, or {_FEWEST} in an arm, "
        "intervals are too narrow however many rows there are: a larger experiment needs more clusters, not larger ones."
    )
    return [Finding("clusters", "warning", None, None, seen, advice)]


def useless_columns(features: list[FeatureRow], names: list[str]) -> list[Finding]:
    """A note where columns say nothing, or ``names`` of them name rows; nothing otherwise."""
    empty = [row.feature for row in features if row.missing == 1]
    sparse = [row.feature for row in features if _NEARLY < row.missing < 1]
    seen = [
        f"{what}: {', '.join(found[:5])}{', …' if len(found) > 5 else ''}"
        for what, found in (("empty", empty), ("nearly empty", sparse), ("like an identifier", names))
        if found
    ]
    if not seen:
        return []
    advice = "Leave such columns out: models can learn nothing from them"
    if names:
        advice += "; text that is another in nearly every row names people and does not describe them"
    return [Finding("columns", "note", None, None, "; ".join(seen), f"{advice}.")]


def _arm_rows(trial: Trial) -> tuple[ArmRow, ...]:
    target, weights, rows = trial.data.target, trial.weights, []
    for k, label in enumerate(target.labels):
        here = target.arm == k
        seen = here & trial.observed
        w = weights[seen]
        mean = float(w @ target.y[seen] / w.sum()) if w.sum() > 0 else float("nan")
        effect = None
        if k:
            pair = trial.observed & (here | (target.arm == 0))
            clusters = None if trial.clusters is None else trial.clusters[pair]
            effect = statistics.mean_difference(target.y[pair], here[pair], weights[pair], clusters)
        rows.append(
            ArmRow(
                label,
                int(here.sum()),
                float(here.mean()),
                int(seen.sum()),
                mean,
                *((None,) * 4 if effect is None else (effect.value, effect.low, effect.high, effect.pvalue)),
            )
        )
    return tuple(rows)


def _intended(
    counts: Ints, labels: list[Label], expected: Mapping[Label, float] | Sequence[float] | None
) -> Floats | None:
    if expected is None:
        equal = 1 / len(counts)
        return np.full(len(counts), equal) if np.abs(counts / counts.sum() - equal).max() <= 0.1 * equal else None
    if isinstance(expected, Mapping):
        if set(expected) != set(labels):
            raise ValueError(f"expected names the arms {list(expected)}, but the treatment has {labels}")
        expected = [expected[label] for label in labels]
    raw = to_numpy(expected, "expected")
    shares = as_floats(np.atleast_1d(raw), "expected")
    if raw.shape != (len(counts),) or not (shares > 0).all() or not np.isfinite(shares).all():
        raise ValueError(
            f"expected is {reprlib.repr(expected)}; there should be one positive share for each of the arms {labels}"
        )
    check_magnitude(shares, "expected")
    normal: Floats = shares / shares.sum()
    return normal


def arm_sizes(
    counts: Ints,
    labels: list[Label],
    expected: Mapping[Label, float] | Sequence[float] | None,
    limit: float,
    *,
    whole: bool = False,
) -> Finding:
    """Do the sizes of the arms, in ``whole`` clusters or in rows, fit the intended shares?"""
    shares = _intended(counts, labels, expected)
    if shares is None:
        return Finding(
            "arm sizes",
            "skipped",
            None,
            limit,
            "far from equal, and the intended shares are not known",
            "Tell check the shares that were intended, expected={label: share, ...}, and it will test them.",
        )
    pvalue = statistics.share_pvalue(counts, shares)
    meant = " / ".join(f"{share:.1%}" for share in shares)
    found = " / ".join(f"{share:.1%}" for share in counts / counts.sum())
    what = "of clusters " if whole else ""
    seen = f"{found} {what}where {meant} was {'meant' if expected is not None else 'presumed'}, {p_text(pvalue)}"
    if pvalue >= limit:
        return Finding("arm sizes", "ok", pvalue, limit, seen)
    return Finding(
        "arm sizes",
        "warning",
        pvalue,
        limit,
        seen,
        "The arms do not have the sizes they should (sample-ratio mismatch): rows were lost, doubled or sent elsewhere, "
        "and the effect cannot be trusted before you know which. Compare the counts at assignment with those here; if "
        "these shares were intended, say so with expected=.",
    )


# ------------------------------------------------------------------------------------------------ features


def _feature_rows(trial: Trial) -> list[FeatureRow]:
    data, pairs, rows = trial.data, trial.pairs, []
    weighed = [trial.weights[members] for _, members, _ in pairs]
    for name, levels, raw in zip(data.schema.names, data.schema.levels, each_column(data.X), strict=True):
        column, n_levels = few_levels(raw, levels)
        gone = np.isnan(column)
        gaps = bool(gone.any())
        difference, pvalue, comparisons, gone_pvalue = 0.0, 1.0, 0, 1.0
        for (_, members, treated), weight in zip(pairs, weighed, strict=True):
            known, arm = members, treated
            if gaps:
                seen = ~gone[members]
                known, arm, weight = members[seen], treated[seen], weight[seen]
                gone_pvalue = min(gone_pvalue, _flag_pvalue(trial, gone, members, treated))
            values = column[known]
            if trial.whole and trial.clusters is not None:
                pvalues = cluster_pvalues(values, n_levels, arm, trial.clusters[known])
            else:
                pvalues = column_pvalues(values, n_levels, arm)
            comparisons += len(pvalues)
            pvalue = min([pvalue, *pvalues])
            if n_levels is None:
                sizes = [statistics.standardised_difference(values, arm, weight)] if len(values) else []
            else:
                codes = values.astype(np.int64)
                sizes = statistics.level_differences(codes, n_levels, arm, weight)[1 if n_levels == 2 else 0 :]
            difference = max([difference, *sizes], key=abs)
        rows.append(
            FeatureRow(
                name,
                difference,
                min(1.0, pvalue * max(comparisons, 1)),
                float(gone.mean()),
                min(1.0, gone_pvalue * len(pairs)),
            )
        )
    return rows


def _flag_pvalue(trial: Trial, flag: Bools, rows: Indices, treated: Bools) -> float:
    """P-value of a yes/no column, over rows or over the clusters that were assigned."""
    if trial.whole and trial.clusters is not None:
        return cluster_pvalue(flag[rows].astype(np.float64), treated, trial.clusters[rows])
    return flag_pvalue(flag[rows], treated)


def balance(features: list[FeatureRow], limit: float) -> Finding:
    """Do the arms agree in every feature?"""
    pvalue = min(1.0, min(row.pvalue for row in features) * len(features))
    widest = max(features, key=lambda row: abs(row.difference))
    seen = f"largest difference {abs(widest.difference):.3f} sd ({widest.feature}), {p_text(pvalue)}"
    if pvalue >= limit:
        return Finding("balance", "ok", pvalue, limit, seen)
    apart = sorted((row for row in features if row.pvalue * len(features) < limit), key=lambda row: row.pvalue)
    names = ", ".join(f"{row.feature} ({row.difference:+.2f} sd)" for row in apart[:5])
    more = f" and {len(apart) - 5} more" if len(apart) > 5 else ""
    return Finding(
        "balance",
        "warning",
        pvalue,
        limit,
        seen,
        f"The arms differ in {names}{more} by more than chance allows, so people were not assigned at random, or the "
        "feature was measured after the treatment. Drop it if it was; otherwise correct with propensity weights, and do "
        "not read the plain effect as caused by the treatment.",
    )


def missing_features(features: list[FeatureRow], limit: float) -> Finding:
    """Are features missing equally often in every arm?"""
    affected = [row for row in features if row.missing > 0]
    if not affected:
        return Finding("missing features", "ok", None, limit, "none is missing")
    pvalue = min(1.0, min(row.missing_pvalue for row in affected) * len(affected))
    most = max(affected, key=lambda row: row.missing)
    where = f"most in {most.feature}" if len(affected) > 1 else most.feature
    seen = f"{plural(len(affected), 'feature')} with gaps, {where} ({most.missing:.1%}), {p_text(pvalue)}"
    if pvalue >= limit:
        return Finding("missing features", "ok", pvalue, limit, seen)
    apart = [row.feature for row in affected if row.missing_pvalue * len(affected) < limit]
    return Finding(
        "missing features",
        "warning",
        pvalue,
        limit,
        seen,
        f"Missing more often in one arm than in another: {', '.join(apart[:5])}. Was it recorded after the treatment, or "
        "by another system in one arm? A model would learn the arm from it: drop it or repair it.",
    )


def _missing_outcomes(trial: Trial, limit: float) -> Finding:
    gone, target = ~trial.observed, trial.data.target
    pvalues = [_flag_pvalue(trial, gone, rows, t) for _, rows, t in trial.pairs] if gone.any() else []
    counts = np.bincount(target.arm[gone], minlength=target.n_arms + 1)
    return missing_outcomes(counts, target.sizes, target.labels, pvalues, limit)


def missing_outcomes(gone: Ints, sizes: Ints, labels: list[Label], pvalues: Sequence[float], limit: float) -> Finding:
    """Are outcomes missing equally often in every arm, by how many are and what that says of each arm beside control?"""
    if not gone.any():
        return Finding("missing outcomes", "ok", None, limit, "none is missing")
    pvalue = min(1.0, len(pvalues) * min(pvalues))
    shares = [f"{label} {share:.1%}" for label, share in zip(labels, gone / sizes, strict=True)]
    seen = f"missing: {', '.join(shares)}, {p_text(pvalue)}"
    if pvalue >= limit:
        return Finding(
            "missing outcomes", "ok", pvalue, limit, seen, "Drop the rows without an outcome before fitting a model."
        )
    return Finding(
        "missing outcomes",
        "warning",
        pvalue,
        limit,
        seen,
        "The outcome is missing more often in one arm than in another (attrition). The people left are no longer alike, "
        "and the effect may be that of leaving: find out why, and bound what the missing outcomes could do.",
    )
