"""The filters UMODL is compared with: divergences on percentile bins, and tests of the treatment-feature interaction."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.stats import chi2 as chi2_distribution
from scipy.stats import f as f_distribution

from upturn._arrays import Bools, Floats, Ints
from upturn._experiment import Experiment
from upturn._parallel import run_parallel
from upturn._parameters import JOBS, LABEL, VERBOSE, one_of, whole
from upturn._target import Label
from upturn.features._column import column_of
from upturn.features._interaction import f_statistic, likelihood_ratio
from upturn.features._percentiles import bin_score
from upturn.features._selectors import UpliftSelector
from upturn.kernels.criteria import CRITERIA

DIVERGENCES = ("kl", "euclidean", "chi2")
TESTS = ("f", "lr")


class FilterSelector(UpliftSelector):
    r"""Keep the k features with the highest uplift score (the filters of [1]_).

    ``criterion="kl"``, ``"euclidean"``, ``"chi2"``: the feature is cut into ``max_bins`` bins at its percentiles, and the
    score is how far the arms are from control in them,

    .. math:: \sum_b \frac{N_b}{N} \sum_k D(P_{kb} : P_{0b}),

    with D the Kullback-Leibler divergence, the squared Euclidean distance or the chi-square divergence of the outcome
    distributions: the formulas of the tree criteria. A categorical feature has a bin for each level, missing values
    have a bin of their own, and an arm without rows in a bin tells nothing there.

    ``criterion="f"``: the F statistic of the interaction terms in the linear regression of the outcome on treatment,
    feature and treatment × feature. ``criterion="lr"``: the likelihood-ratio statistic of the same terms in a logistic
    regression. Levels become 0-1 columns, missing numbers the mean with a 0-1 column that says so. Features may then
    differ in degrees of freedom, so they are ranked by p-value, which for numeric features without missing values is
    the order of the statistics.

    Parameters
    ----------
    criterion : {"kl", "euclidean", "chi2", "f", "lr"}
        What the score of a feature is.
    k : int or "all"
        How many features to keep.
    max_bins : int
        Most percentile bins of a numeric feature, for the divergences.
    n_jobs : int, optional
        Columns are scored on so many threads.
    verbose : int
        1 shows a progress bar.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    scores_, feature_importances_ : arrays of shape (n_features,)
        Divergences or statistics, under both names.
    pvalues_ : array of shape (n_features,) or None
        Of the F and likelihood-ratio tests.
    ranking_ : array of shape (n_features,)
        1 for the best feature, and so on; ties by position.
    n_selected_ : int
        How many are kept.
    control_, arms_ : label, list of labels

    Notes
    -----
    "f" and "euclidean" take real-valued outcomes (the latter then compares means: D is the squared difference), the
    others need two classes. Weights of any kind are taken; bins are cut at percentiles of the rows.

    References
    ----------
    .. [1] Z. Zhao, Y. Zhang, T. Harinen, M. Yung, "Feature selection methods for uplift modeling", 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.features import FilterSelector
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(2000, 5)), rng.integers(0, 2, 2000)
    >>> y = rng.random(2000) < 0.3 + 0.4 * treatment * (X[:, 2] > 0)
    >>> FilterSelector(criterion="kl", k=1).fit(X, y, treatment).get_support(indices=True)
    array([2])
    """

    def __init__(
        self,
        *,
        criterion: Literal["kl", "euclidean", "chi2", "f", "lr"] = "kl",
        k: int | Literal["all"] = 10,
        max_bins: int = 10,
        n_jobs: int | None = None,
        verbose: int = 0,
        control: Label | None = None,
    ) -> None:
        self.criterion = criterion
        self.k = k
        self.max_bins = max_bins
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.control = control

    _parameters: ClassVar = {
        "criterion": one_of(*DIVERGENCES, *TESTS),
        "k": (whole(least=1) | one_of("all")).named("how many features to keep, 1 or more, or 'all'"),
        "max_bins": whole(least=2),
        "n_jobs": JOBS,
        "verbose": VERBOSE,
        "control": LABEL,
    }

    def _fit(self, data: Experiment) -> None:
        if data.weight is not None and (data.weight == 0.0).any():
            data = data.take(data.weight > 0.0)
        y, binary = _outcome(data, self.criterion)
        if self.criterion in DIVERGENCES:
            score_of = partial(bin_score, data, y, binary, CRITERIA[self.criterion].code, self.max_bins)
        else:
            score_of = partial(_test, data, y, self.criterion)
        found = np.array(
            run_parallel(
                score_of, range(data.X.shape[1]), n_jobs=self.n_jobs, verbose=self.verbose, description=self.criterion
            )
        )
        self._rank(found)

    def _rank(self, found: Floats) -> None:
        """Rank features by their scores and the logarithms of p-values, a row each."""
        self.scores_, log_p = np.ascontiguousarray(found[:, 0]), found[:, 1]
        self.pvalues_ = np.exp(log_p) if self.criterion in TESTS else None
        order = np.lexsort((np.arange(len(found)), -self.scores_, log_p))
        self.ranking_ = np.empty(len(found), dtype=np.int64)
        self.ranking_[order] = np.arange(1, len(found) + 1)
        self.n_selected_ = len(found) if self.k == "all" else min(int(self.k), len(found))

    def _get_support_mask(self) -> Bools:
        return self.ranking_ <= self.n_selected_

    def _get_state(self) -> dict[str, Any]:
        return {
            "scores": self.scores_,
            "pvalues": self.pvalues_,
            "ranking": self.ranking_,
            "n_selected": self.n_selected_,
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        scores, pvalues, ranking = state["scores"], state["pvalues"], state["ranking"]
        shape = (self.n_features_in_,)
        if scores.dtype != np.float64 or scores.shape != shape or not np.isfinite(scores).all():
            raise ValueError("the scores are not well formed")
        if pvalues is not None and (pvalues.shape != shape or not ((pvalues >= 0) & (pvalues <= 1)).all()):
            raise ValueError("the p-values are not well formed")
        if (
            ranking.dtype != np.int64
            or ranking.shape != shape
            or sorted(ranking.tolist()) != list(range(1, self.n_features_in_ + 1))
        ):
            raise ValueError("the ranking is not a ranking")
        if not isinstance(state["n_selected"], int) or not 1 <= state["n_selected"] <= self.n_features_in_:
            raise ValueError("the number of selected features is not well formed")
        self.scores_, self.pvalues_, self.ranking_ = scores, pvalues, ranking
        self.n_selected_ = state["n_selected"]


def _outcome(data: Experiment, criterion: str) -> tuple[Floats, bool]:
    """Return the outcome as the criterion takes it, and whether it is 0-1."""
    classes = np.unique(data.y)
    if len(classes) == 2:
        return (data.y == classes[1]).astype(np.float64), True
    check_outcome(len(classes), criterion)
    return data.y, False


def check_outcome(classes: int, criterion: str) -> None:
    """Refuse an outcome with so many distinct values, other than two, where a criterion does not take it; above 2, there may be more."""
    if classes == 1:
        raise ValueError("y has one value only: there is nothing that features could tell")
    if criterion == "lr" or (criterion in CRITERIA and CRITERIA[criterion].needs_rates):
        raise ValueError(
            f"y has more than two distinct values and FilterSelector(criterion={criterion!r}) needs exactly two: use "
            "criterion='f' or criterion='euclidean', which take real-valued outcomes, or make it two classes yourself, as in y = (spend > 0)"
        )


def _test(data: Experiment, y: Floats, criterion: str, j: int) -> tuple[float, float]:
    """Return the statistic and the logarithm of its p-value; a feature that cannot interact scores 0."""
    levels = data.schema.levels[j]
    columns = regressors(column_of(data.X, j), None if levels is None else len(levels))
    return interaction(criterion, columns, data.arm, data.n_arms, y, data.weights)


def interaction(criterion: str, *regression: Any) -> tuple[float, float]:
    """The statistic of a test, and the logarithm of its p-value."""
    if criterion == "f":
        statistic, extra, rest = f_statistic(*regression)
        log_p = f_distribution.logsf(statistic, extra, rest) if extra > 0 and rest > 0 else 0.0
    else:
        statistic, extra = likelihood_ratio(*regression)
        log_p = chi2_distribution.logsf(statistic, extra) if extra > 0 else 0.0
    return statistic, float(log_p)


def regressors(column: Floats, n_levels: int | None, rows: Ints | None = None) -> Floats:
    """Return the columns that stand for a feature in a regression, centred and scaled where numeric. With ``rows``, each value is there so often."""
    missing = np.isnan(column)
    if n_levels is not None:
        codes = np.where(missing, n_levels, column)
        dummies: Floats = (codes[:, None] == np.arange(1, n_levels + 1)).astype(np.float64)
        return dummies
    if missing.all():
        return np.zeros((len(column), 1))
    mean = column[~missing].mean() if rows is None else np.average(column[~missing], weights=rows[~missing])
    centred = np.where(missing, 0.0, column - mean)
    scale = np.sqrt(np.average(centred**2, weights=rows))
    centred = centred / scale if scale > 0 else centred
    return np.column_stack([centred, missing.astype(np.float64)]) if missing.any() else centred[:, None]
