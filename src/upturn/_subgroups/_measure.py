"""The one place that measures effects by group."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from upturn._arrays import Indices
from upturn._clusters import check_clusters, read_clusters
from upturn._columns import check_magnitude, warn_user
from upturn._parameters import INTERVAL, SEED, check, one_of, whole
from upturn._results import level_text, library_of, number_text
from upturn._rows import same_rows, take_named
from upturn._splitters import RepeatedUpliftSplit, UpliftGroupKFold, take_rows
from upturn._subgroups._cells import Cells, Members
from upturn._subgroups._groups import is_model, read_groups
from upturn._subgroups._multiple import Interaction, equality, sidak
from upturn._subgroups._result import OVERALL, Subgroups, probability
from upturn._subgroups._scales import NEED_TWO_VALUES, SCALES, Comparison, nnt_words
from upturn._target import Target, decode, read_target
from upturn._units import unit_text
from upturn.metrics._estimate import SmallSampleWarning
from upturn.metrics._multiple import holm
from upturn.metrics._strata import warn_if_few_clusters

_FEW = 10  # rows of an arm in a group, below which there is a warning
_TITLES = {
    "difference": "difference of means",
    "ratio": "ratio of means",
    "odds_ratio": "odds ratio",
    "nnt": "number needed to treat for one more outcome of 1; negative: for one fewer",
}


@same_rows
def subgroups(
    by: Any,
    X: Any,
    y: Any,
    treatment: Any = None,
    sample_weight: Any = None,
    *,
    scale: Literal["difference", "ratio", "odds_ratio", "nnt"] = "difference",
    interval: float = 0.95,
    n_bins: int = 5,
    groups: Any = None,
    control: Any = None,
    random_state: Any = 0,
) -> Subgroups:
    r"""Effects by group, with errors, intervals, p-values, their adjustment for many groups, and a test that groups differ.

    In group g the effect of arm k is :math:`m_{gk} - m_{g0}`, the difference of the (weighted) mean outcomes, or on another
    scale:

    ============  ===================  ====================================================================================
    scale         effect               interval
    ============  ===================  ====================================================================================
    difference    m_k - m_0            outcomes 0 and 1: Newcombe's, out of Wilson's intervals of both rates; others: Welch's
    ratio         m_k / m_0            normal on the logarithm; half a row is added to each outcome where one never happened
    odds_ratio    odds_k / odds_0      the same (Woolf's, with Haldane's correction); outcomes 0 and 1 only
    nnt           1 / (m_k - m_0)      the difference's, turned over; where that holds 0 it runs through infinity and is told in
                                       words; outcomes 0 and 1 only
    ============  ===================  ====================================================================================

    A p-value is the level at which the interval touches no effect. ``p_holm`` and the intervals ``low_all`` to ``high_all``
    (Šidák's, each of level :math:`\text{interval}^{1/m}`) hold for all m comparisons at once, whatever their dependence. The
    interaction test is Wald's of equal effects in all groups, on the same scale; it says whether groups *differ*, which that
    one is significant and another is not never says.

    Where rows come in clusters (``groups``), the variance of a mean is that of sums over clusters, arms and groups that share clusters
    have a covariance, and t laws go by the number of clusters; Newcombe's intervals are then those of correlated rates.

    .. warning::

       The statistics are right for groups chosen **without looking at these outcomes**: features known before the trial, or
       a model trained on **other rows**. A model that was trained on the same rows has found the groups in which these very
       outcomes look best, its effects are too large, its intervals too narrow, and **nothing in this function can see that**.
       Pass held-out rows; or pass the model unfitted, and it is fitted here to one half of the rows and measured on the other.

    Parameters
    ----------
    by : array-like, str, mapping, list of pairs, or model
        The groups:

        - labels, one per row (missing ones are a group of their own);
        - the name of a column of X: its values, or ``n_bins`` bins of a number with more than ten values;
        - names with masks, as a mapping or pairs: ``{"women": sex == "f", "over 60": age > 60}``, which may overlap;
        - a fitted :class:`~upturn.trees.UpliftTree`: its leaves, in words;
        - a fitted model with ``predict_sign`` (SVMs): its three groups;
        - any other fitted model: ``n_bins`` groups by its score, best first (with several arms by the largest score);
        - a model that is not fitted: a clone of it is fitted to a random half of the rows and its groups measured on the rest.
    X : table of shape (n, p), or None
        Features, needed where ``by`` is a column or a model.
    y : array-like of shape (n,), or str
        Outcome; or a packed target, and then no treatment. Outcome, treatment, weight and ``groups`` may also be names of columns
        of X, which are no features then.
    treatment : array-like of shape (n,), optional
        Arm labels.
    sample_weight : array-like of shape (n,), optional
        Weights, such as those of :func:`~upturn.datasets.survival_outcome`. Variances are those of weighted means, with the
        weights taken as known.
    scale : {"difference", "ratio", "odds_ratio", "nnt"}
    interval : float
        Confidence level.
    n_bins : int
        Groups of a score, or of a column of many numbers.
    groups : array-like of shape (n,), optional
        The cluster of every row, such as a centre or a household, as in :func:`upturn.metrics.auuc`: not what is compared, which
        is ``by``, but what makes rows alike. A model that is fitted here is fitted to whole clusters.
    control : label, optional
        Which label is control, when its name does not tell.
    random_state : int, RandomState, Generator or None
        Seed of the halves, where a model is fitted here.

    Returns
    -------
    Subgroups
        A table; ``plot.subgroups(table)`` is the forest plot.

    References
    ----------
    Newcombe, "Interval estimation for the difference between independent proportions", Statistics in Medicine 17, 1998.
    Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979.
    Šidák, "Rectangular confidence regions for the means of multivariate normal distributions", JASA 62, 1967.
    Altman, "Confidence intervals for the number needed to treat", BMJ 317, 1998.
    Wang, Lagakos, Ware, Hunter, Drazen, "Statistics in medicine: reporting of subgroup analyses in clinical trials", NEJM 357, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> import upturn as up
    >>> rng = np.random.default_rng(0)
    >>> sex, treatment = rng.choice(["f", "m"], 2000), rng.integers(0, 2, 2000)
    >>> y = rng.random(2000) < 0.3 + 0.2 * treatment * (sex == "f")
    >>> found = up.subgroups(sex, None, y, treatment)
    >>> found["group"].tolist(), found["effect"].round(3).tolist()
    (['f', 'm', 'all rows'], [0.187, 0.026, 0.103])
    >>> found.interaction[0].p_value < 0.001
    True
    """
    check("scale", scale, one_of(*SCALES))
    check("interval", interval, INTERVAL)
    check("n_bins", n_bins, whole(least=2))
    check("random_state", random_state, SEED)
    library = library_of(X, y, treatment)
    if X is not None or any(isinstance(column, str) for column in (y, treatment, sample_weight, groups)):
        named = {"y": y, "treatment": treatment, "sample_weight": sample_weight, "groups": groups}
        X, columns, _ = take_named(X, features=False, **named)
        y, treatment, sample_weight, groups = columns.values()
    target = read_target(y, treatment, sample_weight, control=control)
    check_magnitude(target.y, "y")
    clusters = None if groups is None else read_clusters(groups)
    if clusters is not None:
        check_clusters(clusters, len(target))
    rows, model, notes = None, None, []
    if is_model(by):
        model = by
        if not _is_fitted(by):
            model, rows = _fit_half(by, X, target, clusters, random_state)
            X, target = take_rows(X, rows), target.take(rows)
            clusters = None if clusters is None else np.unique(clusters[rows], return_inverse=True)[1]
            notes.append(
                f"The model was fitted to one half of the rows; these are the {len(rows):,} rows of the other."
            )
        else:
            notes.append(
                "If the model was trained on any of these rows, its groups were chosen by their outcomes: effects are then too large, and "
                "p-values and intervals mean nothing."
            )
    members = read_groups(model if model is not None else by, X, len(target), int(n_bins))
    cells, whole_cells = Cells.of(members, target, clusters), Cells.whole(target, clusters)
    if clusters is not None:
        notes.append(f"Errors are those of {int(clusters.max()) + 1:,} clusters.")
        warn_if_few_clusters(int(clusters.max()) + 1)
    return _tabulate(members, target, cells, whole_cells, scale, float(interval), notes, library, rows, model)


def _is_fitted(model: Any) -> bool:
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def _fit_half(model: Any, X: Any, target: Target, clusters: Indices | None, random_state: Any) -> tuple[Any, Indices]:
    """A clone fitted to half of the rows, or of the clusters, and the numbers of the others."""
    if X is None:
        raise ValueError("X is None: a model needs the features to be fitted to")
    labels = decode(target.labels, target.arm)
    if clusters is None:
        split = RepeatedUpliftSplit(1, test_size=0.5, random_state=random_state)
        train, test = next(split.split(X, target.y, labels))
    else:
        train, test = next(UpliftGroupKFold(2, random_state=random_state).split(X, target.y, labels, clusters))
    part, fitted = target.take(train), clone(model)
    if getattr(fitted, "control", 0) is None:
        fitted.set_params(control=target.control)
    fitted.fit(take_rows(X, train), part.y, decode(part.labels, part.arm), sample_weight=part.weight)
    return fitted, test


def _tabulate(
    members: Members,
    target: Target,
    cells: Cells,
    whole_cells: Cells,
    scale: str,
    interval: float,
    notes: list[str],
    library: str | None,
    rows: Indices | None,
    model: Any,
) -> Subgroups:
    binary = bool(((target.y == 0) | (target.y == 1)).all())
    if scale in NEED_TWO_VALUES and not binary:
        raise ValueError(
            f"scale={scale!r} is for outcomes of 0 and 1, and y holds others: use scale='difference' or 'ratio'"
        )
    if scale == "ratio" and (target.y < 0).any():
        raise ValueError(
            "scale='ratio' compares means by their ratio, and y holds negative values: use scale='difference'"
        )
    g, arms = len(members.names), list(range(1, target.n_arms + 1))
    groups = [Comparison.of(cells, k, scale, binary) for k in arms]
    overall = [Comparison.of(whole_cells, k, scale, binary) for k in arms]
    p = np.column_stack([c.p_value() for c in groups])
    comparisons = int((~np.isnan(p)).sum())
    level = sidak(interval, comparisons)

    def column(values: list[Any], ends: list[Any]) -> Any:
        """Per group its arms, one after the other; then everybody's."""
        return np.concatenate([np.column_stack(values).reshape(-1), np.column_stack(ends).reshape(-1)])

    def both(function: Any) -> Any:
        return column([function(c) for c in groups], [function(c) for c in overall])

    none = [np.full(1, np.nan) for _ in arms]
    adjusted = holm(p.reshape(-1)).reshape(g, len(arms))
    columns: dict[str, Any] = {
        "group": [name for name in members.names for _ in arms] + [OVERALL] * len(arms),
        "arm": decode(target.labels, np.array(arms * (g + 1))),
        "n_control": column([cells.rows[:, 0]] * len(arms), [whole_cells.rows[:, 0]] * len(arms)),
        "n_treated": column([cells.rows[:, k] for k in arms], [whole_cells.rows[:, k] for k in arms]),
        "mean_control": column([cells.mean[:, 0]] * len(arms), [whole_cells.mean[:, 0]] * len(arms)),
        "mean_treated": column([cells.mean[:, k] for k in arms], [whole_cells.mean[:, k] for k in arms]),
        "effect": both(lambda c: c.shown(c.value)),
        "se": both(lambda c: c.se),
        "low": both(lambda c: c.shown_bounds(interval)[0]),
        "high": both(lambda c: c.shown_bounds(interval)[1]),
        "p_value": column(list(p.T), [c.p_value() for c in overall]),
        "p_holm": column(list(adjusted.T), none),
        "low_all": column([c.shown_bounds(level)[0] for c in groups], none),
        "high_all": column([c.shown_bounds(level)[1] for c in groups], none),
    }
    if scale == "nnt":
        columns["in words"] = [nnt_words(*ends) for ends in zip(columns["low"], columns["high"], strict=True)]
        columns["all in words"] = [
            nnt_words(*ends) for ends in zip(columns["low_all"], columns["high_all"], strict=True)
        ]
    interaction = [equality(groups, cells, [k], target.labels[k]) for k in arms]
    if len(arms) > 1:
        interaction.append(equality(groups, cells, arms, "all arms"))
    arm = f"{target.labels[1]!r}" if len(arms) == 1 else "each arm"
    return Subgroups(
        columns,
        interaction=interaction,
        scale=scale,
        interval=interval,
        group=members.codes,
        rows=rows,
        estimator=model,
        title=f"Effect of {arm} against {target.control!r} by group: {_TITLES[scale]}, {level_text(interval)} intervals{_unit(scale, binary)}",
        rate=binary,
        notes=[
            *_say(interaction, comparisons, level, interval, scale),
            *_caveats(members, cells, groups, scale, target),
            *notes,
        ],
        library=library,
    )


def _unit(scale: str, rate: bool) -> str:
    if scale == "difference":
        return f", {unit_text(rate)}"
    return f"; means {unit_text(rate)}"


def _say(interaction: list[Interaction], n: int, level: float, interval: float, scale: str) -> list[str]:
    lines = []
    for test in interaction:
        if test.freedom:
            who = "" if len(interaction) == 1 else f" ({test.arm})"
            lines.append(
                f"Do groups differ?{who} chi-square {number_text(test.statistic)} with {test.freedom} degree{'s' if test.freedom > 1 else ''} of "
                f"freedom, p {probability(test.p_value, '= ')}."
            )
    if n > 1:
        ends = "the intervals of the last column" if scale == "nnt" else "low_all to high_all"
        lines.append(
            f"{n} comparisons: p_holm is adjusted for all of them; {ends} hold at once with {level_text(interval)} (each {level:.2%})."
        )
    return lines


def _caveats(members: Members, cells: Cells, groups: list[Comparison], scale: str, target: Target) -> list[str]:
    """What to know of single groups: too few rows (a warning as well), corrected ones, those that overlap."""
    units = "rows" if cells.clusters is None else "clusters"
    lines, few = [], (cells.rows if cells.clusters is None else cells.clusters).min(axis=1) < _FEW
    if few.any():
        names = [members.names[i] for i in np.flatnonzero(few)]
        listed = ", ".join(repr(name) for name in names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        said = f"fewer than {_FEW} {units} of an arm in {listed}: what is printed there says little"
        warn_user(f"{said}; join small groups", SmallSampleWarning)
        lines.append(f"There are {said}.")
    corrected = sorted({members.names[i] for c in groups for i in np.flatnonzero(c.corrected)})
    if corrected:
        lines.append(f"Half a row was added to each outcome, because one never happened, in: {', '.join(corrected)}.")
    if members.overlap:
        lines.append("Groups overlap: some rows are in several; the interaction test allows for it.")
    left = 0 if members.codes is None else int((members.codes < 0).sum())
    if left:
        lines.append(f"{left:,} rows are in no group; they count in {OVERALL!r}.")
    return lines
