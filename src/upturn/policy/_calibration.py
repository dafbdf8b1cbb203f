"""Calibration: are predicted effects of the right size, and how to make them so."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from upturn._arrays import Bools, Floats, Indices
from upturn._experiment import Experiment
from upturn._nuisance import make_folds, rows_that_count
from upturn._parallel import run_parallel
from upturn._seeds import make_seed
from upturn._target import Label, Target, read_target
from upturn.base import UpliftEstimator
from upturn.metrics import Table
from upturn.metrics._estimate import check_level
from upturn.metrics._ranked import read_ranked

_COLUMNS = {"arm", "rows", "predicted", "effect", "se", "low", "high", "calibrated"}
_END_ROWS, _END_SHARE = 20, 0.01  # rows, and share of the rows, that the ends of an isotonic map rest on at least
Knots = tuple[Floats, Floats]


class UpliftCalibrator(UpliftEstimator):
    r"""Turns the scores of any uplift model into effects, by a monotone map learned on rows the model has not seen.

    Every row of control or of an arm gets a noisy effect whose mean, among rows of equal score, is the effect there,

    .. math:: \psi_i = m_1(s_i) - m_0(s_i) + \frac{1[T_i = 1]}{p}\,(Y_i - m_1(s_i)) - \frac{1[T_i = 0]}{1 - p}\,(Y_i - m_0(s_i)),

    with p the arm's share and m the outcome's regression on the rank of the score (only there to reduce noise: p is
    known). The map is the monotone regression of ψ on the score. Scores keep their order, except where the data cannot tell
    them apart; there they become equal. Then 0 means no effect, so ``recommend`` works for every model. Weights that undo a
    biased assignment (:func:`iptw_weights`) are taken as ``sample_weight``.

    The two ends of a monotone regression hang on a few rows each, and go on beyond the scores seen. So the lowest and the
    highest step of the isotonic map are means over at least 20 rows, 1% of the rows, and a row of either arm. Where the two
    ends meet, the map is a constant. Neither map exceeds the range of the outcome, the largest effect there can be.

    Parameters
    ----------
    model : uplift model
        A model of upturn. It is copied and fitted, unless ``cv="prefit"``.
    method : {"isotonic", "linear"}
        Any rising step-like map, or a straight line a + b·score with b ≥ 0, which small data sets can better afford.
    cv : int, splitter, list of splits or "prefit"
        How scores of unseen rows are made: out of folds, after which the model is fitted on all rows; or by a model that is
        fitted already, on other rows than these.
    n_bins : int
        Rows of the calibration table, for every arm.
    n_jobs : int, optional
        Threads to fit folds in; the result does not depend on it.
    random_state : int, RandomState, Generator or None
        Seed of the folds.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    model_ : uplift model
        The fitted model.
    table_ : Table
        Calibration table of the unseen scores: per bin, mean score, measured effect with interval, and mean calibrated
        effect.
    control_, arms_ : label, list of labels

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.meta import TreatedOnly
    >>> from upturn.policy import UpliftCalibrator
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(4000, 2)), rng.integers(0, 2, 4000)
    >>> y = rng.random(4000) < 0.4 + 0.2 * treatment * np.sign(X[:, 0])
    >>> model = UpliftCalibrator(TreatedOnly(random_state=0), random_state=0).fit(X, y, treatment)
    >>> model.recommend([[2.0, 0.0], [-2.0, 0.0]])  # TreatedOnly itself refuses to recommend
    array([1, 0])
    """

    model_: UpliftEstimator

    def __init__(
        self,
        model: Any,
        *,
        method: str = "isotonic",
        cv: Any = 5,
        n_bins: int = 10,
        n_jobs: int | None = None,
        random_state: Any = None,
        control: Label | None = None,
    ) -> None:
        self.model = model
        self.method = method
        self.cv = cv
        self.n_bins = n_bins
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.control = control

    @property
    def _outcome(self) -> Any:  # type: ignore[override]
        return getattr(self.model, "_outcome", "any")

    @property
    def _multi_arm(self) -> bool:  # type: ignore[override]
        return getattr(self.model, "_multi_arm", True)

    def fit(self, X: Any, y: Any, treatment: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model and learn what its scores mean; with ``cv="prefit"``, only the latter.

        Parameters are those of every model's ``fit``.
        """
        if not isinstance(self.model, UpliftEstimator):
            raise TypeError(
                f"model={self.model!r} is not an uplift model of upturn: expected one such as UpliftSVM(); in a pipeline, calibrate the "
                "last step: make_pipeline(StandardScaler(), UpliftCalibrator(model))"
            )
        if self.method not in ("isotonic", "linear"):
            raise ValueError(f"method={self.method!r}: expected 'isotonic' or 'linear'")
        if not isinstance(self.cv, str):
            super().fit(X, y, treatment, sample_weight)
            self.model_.control_, self.model_.arms_ = self.control_, self.arms_
            self.model_._adopt_schema(self._schema)
            return self
        if self.cv != "prefit":
            raise ValueError(f"cv={self.cv!r}: expected a number of folds, a splitter, or 'prefit' for a fitted model")
        check_is_fitted(self.model)
        known = (self.model.control_, self.model.arms_)
        target = read_target(y, treatment, sample_weight, known=known, outcome=self._outcome)
        matrix, schema = self.model._encode(X), self.model._schema
        data = Experiment(matrix, schema, target)
        self.model_ = self.model
        self._calibrate(data, self.model._predict(matrix))
        self.control_, self.arms_ = known
        self._adopt_schema(schema)
        return self

    def _fit(self, data: Experiment) -> None:
        data = rows_that_count(data, self.cv)
        folds = make_folds(data, self.cv, make_seed(self.random_state))
        scores = np.empty((len(data), data.n_arms))

        def one(k: int) -> None:
            train, test = folds[k]
            model = clone(self.model)
            model._fit(data.take(train))
            scores[test] = model._predict(data.X[test])

        run_parallel(one, range(len(folds)), n_jobs=self.n_jobs)
        self.model_ = clone(self.model)
        self.model_._fit(data)
        self._calibrate(data, scores)

    def _calibrate(self, data: Experiment, scores: Floats) -> None:
        self._knots = []
        for k in range(data.n_arms):
            rows = np.flatnonzero((data.arm == 0) | (data.arm == k + 1))
            score, weight = np.ascontiguousarray(scores[rows, k]), data.weights[rows]
            y, treated = data.y[rows], data.arm[rows] > 0
            largest = float(np.ptp(y[weight > 0]))
            # An outcome that never varies has no effect, not one of the size of a rounding error.
            effect = score_effects(y, treated, weight, score) if largest > 0 else np.zeros(len(y))
            if self.method == "linear":
                self._knots.append(_linear(score, effect, weight, largest))
            else:
                self._knots.append(_isotonic(score, effect, weight, treated, largest))
        table = _table(data.target, scores, self.n_bins, 0.95)
        table["calibrated"] = _bin_means(data.target, scores, self._map(scores), self.n_bins)
        self._columns: dict[str, Any] = {name: np.array(column) for name, column in table.items()}

    @property
    def table_(self) -> Table:
        """Calibration table of the scores of unseen rows."""
        check_is_fitted(self)
        return Table({**self._columns, "arm": [self.arms_[code - 1] for code in self._columns["arm"]]})

    def _map(self, scores: Floats) -> Floats:
        return np.column_stack([np.interp(scores[:, k], *knots) for k, knots in enumerate(self._knots)])

    def _predict(self, X: Floats) -> Floats:
        return self._map(self.model_._predict(X))

    def _get_state(self) -> dict[str, Any]:
        return {
            "model": self.model_,
            "knots": [list(knots) for knots in self._knots],
            "table": self._columns,
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        model, knots = state["model"], state["knots"]
        if not isinstance(model, UpliftEstimator) or model.arms_ != self.arms_ or model._schema != self._schema:
            raise ValueError("the calibrated model does not fit the calibrator")
        if not isinstance(knots, list) or len(knots) != len(self.arms_):
            raise ValueError("expected a map per arm")
        for score, effect in knots:
            good = (
                score.dtype == effect.dtype == np.float64
                and score.ndim == 1
                and score.shape == effect.shape
                and len(score)
            )
            if not good or not np.isfinite(score).all() or not np.isfinite(effect).all():
                raise ValueError("a calibration map is not well formed")
            if (np.diff(score) <= 0).any() or (np.diff(effect) < 0).any():
                raise ValueError("a calibration map is not monotone")
        table = state["table"]
        if set(table) != _COLUMNS or len({column.shape for column in table.values()}) > 1 or table["arm"].ndim != 1:
            raise ValueError("the calibration table is not well formed")
        if table["arm"].dtype.kind not in "iu" or not np.isin(table["arm"], range(1, len(knots) + 1)).all():
            raise ValueError("the calibration table names an arm that does not exist")
        self._columns = table
        self.model_, self._knots = model, [(score, effect) for score, effect in knots]


def score_effects(y: Floats, treated: Bools, weight: Floats, score: Floats) -> Floats:
    """Noisy effects ψ of single rows of a randomised (or weighted) experiment, with means that follow the score's rank."""
    order = np.argsort(score, kind="stable")
    rank = np.empty(len(score))
    _, first, counts = np.unique(score[order], return_index=True, return_counts=True)
    rank[order] = np.repeat(first + (counts - 1) / 2, counts) / len(score) - 0.5  # ties share their mean rank
    basis = np.column_stack([np.ones(len(score)), rank, rank**2])
    means, share = [], []
    for side in (~treated, treated):
        root = np.sqrt(weight[side])
        solution, *_ = np.linalg.lstsq(basis[side] * root[:, None], y[side] * root, rcond=None)
        means.append(basis @ solution)
        share.append(weight[side].sum() / weight.sum())
    return np.asarray(means[1] - means[0] + np.where(treated, (y - means[1]) / share[1], -(y - means[0]) / share[0]))


def _isotonic(
    score: Floats,
    effect: Floats,
    weight: Floats,
    treated: Bools,
    largest: float,
) -> Knots:
    keep = weight > 0
    values, where = np.unique(score[keep], return_inverse=True)
    total = np.bincount(where, weights=weight[keep])
    fitted = isotonic_regression(np.bincount(where, weights=(weight * effect)[keep]) / total, sample_weight=total)
    sides = [np.bincount(where, weights=side[keep], minlength=len(values)) for side in (~treated, treated)]
    fitted = np.clip(_pool_ends(fitted, total, *sides), -largest, largest)
    # A block of equal effects is a flat piece: its two ends are all that needs to be kept.
    ends = np.ones(len(values), dtype=bool)
    ends[1:-1] = (fitted[1:-1] != fitted[:-2]) | (fitted[1:-1] != fitted[2:])
    return values[ends], np.asarray(fitted[ends], dtype=np.float64)


def _pool_ends(fitted: Floats, weight: NDArray[Any], control: NDArray[Any], treated: NDArray[Any]) -> Floats:
    """Join the steps at either end with their neighbours until they rest on enough rows, of both arms.

    ``control`` and ``treated`` are numbers of rows. Where the two ends meet, all is one step.
    """
    step = np.concatenate(([0], np.cumsum(np.diff(fitted) != 0)))
    counts = np.stack([np.bincount(step, weights=side) for side in (control, treated)])
    minimum = max(_END_ROWS, _END_SHARE * counts.sum())

    def reach(counts: NDArray[Any]) -> int:
        so_far = counts.cumsum(axis=1)
        enough = (so_far.sum(axis=0) >= minimum) & (so_far > 0).all(axis=0)
        return int(enough.argmax()) if enough.any() else len(enough) - 1

    low, high = reach(counts), counts.shape[1] - 1 - reach(counts[:, ::-1])
    ends = [step >= 0] if low >= high else [step <= low, step >= high]
    pooled = fitted.copy()
    for end in ends:
        pooled[end] = np.average(fitted[end], weights=weight[end])
    return np.maximum.accumulate(pooled)  # a mean may leave its range by a rounding error


def _linear(score: Floats, effect: Floats, weight: Floats, largest: float) -> Knots:
    """The line through the mean as two points, where it meets ±``largest``; beyond them it is level."""
    mean, level = np.average(score, weights=weight), np.average(effect, weights=weight)
    spread = weight @ (score - mean) ** 2
    slope = max(0.0, float(weight @ ((score - mean) * (effect - level)) / spread)) if spread > 0 else 0.0
    effects = np.array([-largest, largest])
    ends = mean + (effects - level) / slope if slope > 0 else np.array([mean, mean])
    if not (np.isfinite(ends).all() and ends[0] < ends[1]):  # no slope, or one too small to reach the bounds
        return np.array([mean]), np.clip([level], -largest, largest)
    return ends, effects


def calibration_table(
    y: Any,
    uplift: Any,
    treatment: Any = None,
    *,
    sample_weight: Any = None,
    control: Label | None = None,
    n_bins: int = 10,
    interval: float = 0.95,
) -> Table:
    """Predicted against measured effects, in bins of equally many rows by prediction.

    Parameters
    ----------
    y, treatment, sample_weight : arrays of shape (n,)
        An experiment the model was not fitted on; no treatment when ``y`` is packed.
    uplift : array of shape (n,) or (n, K)
        Its predictions, a column per arm.
    control : label, optional
        Which label is control, when its name does not tell.
    n_bins : int
        Number of bins per arm; rows with equal predictions stay together, so there may be fewer.
    interval : float
        Confidence level of the intervals.

    Returns
    -------
    Table
        Per bin: arm, rows, mean prediction, measured effect (difference of the weighted means of arm and control), its
        standard error and interval. NaN where a bin lacks an arm.

    Examples
    --------
    >>> from upturn.policy import calibration_table
    >>> table = calibration_table([1, 0, 1, 0, 0, 0, 0, 1], [0.9] * 4 + [0.1] * 4, [1, 0, 1, 0] * 2, n_bins=2)
    >>> table["predicted"].round(1).tolist(), table["effect"].tolist()
    ([0.1, 0.9], [-0.5, 1.0])
    """
    target, scores = read_ranked(y, uplift, treatment, sample_weight, control)
    columns = _table(target, scores, n_bins, check_level(interval))
    columns["arm"] = [target.labels[code] for code in columns["arm"]]
    return Table(columns)


def _bins(score: Floats, n_bins: int) -> Indices:
    """A bin per row by quantiles of the score; equal scores share one."""
    if isinstance(n_bins, bool) or not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise ValueError(f"n_bins={n_bins!r}: expected a number of bins, 1 or more")
    edges = np.unique(np.quantile(score, np.arange(1, n_bins) / n_bins, method="lower"))
    codes = np.searchsorted(edges, score, side="left")
    return np.asarray(np.unique(codes, return_inverse=True)[1])


def _table(target: Target, scores: Floats, n_bins: int, level: float) -> dict[str, Any]:
    z = float(ndtri(0.5 + level / 2))
    lines: dict[str, list[Any]] = {}
    weights = np.ones(len(target.y)) if target.weight is None else target.weight
    for code in range(1, target.n_arms + 1):
        rows = np.flatnonzero((target.arm == 0) | (target.arm == code))
        score = scores[rows, code - 1]
        bins = _bins(score, n_bins)
        for b in range(bins.max() + 1):
            mine = rows[bins == b]
            effect, se = _difference(target.y[mine], target.arm[mine] > 0, weights[mine])
            line = {
                "arm": code,
                "rows": len(mine),
                "predicted": float(np.average(score[bins == b], weights=weights[mine]))
                if weights[mine].sum()
                else np.nan,
                "effect": effect,
                "se": se,
                "low": effect - z * se,
                "high": effect + z * se,
            }
            for key, value in line.items():
                lines.setdefault(key, []).append(value)
    return lines


def _bin_means(target: Target, scores: Floats, values: Floats, n_bins: int) -> list[float]:
    found: list[float] = []
    weights = np.ones(len(target.y)) if target.weight is None else target.weight
    for code in range(1, target.n_arms + 1):
        rows = np.flatnonzero((target.arm == 0) | (target.arm == code))
        bins = _bins(scores[rows, code - 1], n_bins)
        for b in range(bins.max() + 1):
            mine = rows[bins == b]
            found.append(
                float(np.average(values[mine, code - 1], weights=weights[mine])) if weights[mine].any() else np.nan
            )
    return found


def _difference(y: Floats, treated: Bools, weight: Floats) -> tuple[float, float]:
    """Difference of weighted means and its standard error; NaN where an arm has no weight or one row."""
    means, variances = [], []
    for side in (~treated, treated):
        w = weight[side]
        if (w > 0).sum() < 2:
            return np.nan, np.nan
        mean = w @ y[side] / w.sum()
        means.append(mean)
        n = (w > 0).sum()
        variances.append(n / (n - 1) * (w**2 @ (y[side] - mean) ** 2) / w.sum() ** 2)
    return float(means[1] - means[0]), float(np.sqrt(sum(variances)))
