"""Calibration: predicted effects of the right size, from any score."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from upturn._arrays import Floats, Indices
from upturn._columns import warn_user
from upturn._experiment import Experiment
from upturn._nuisance import crossfit, make_folds, rows_that_count
from upturn._parameters import ELSEWHERE, JOBS, LABEL, SEED, check_parameters, one_of, whole
from upturn._results import Table, library_of
from upturn._rows import take_named
from upturn._seeds import make_seed
from upturn._table import Schema
from upturn._target import Label, Target, in_units, read_target
from upturn.base import UpliftEstimator, all_or_nothing
from upturn.metrics._bins import bin_columns, bin_table
from upturn.metrics._replicates import Replicates
from upturn.metrics._strata import FEW_ROWS
from upturn.policy._maps import Knots, isotonic_map, linear_map, row_effects

_INTERVAL = 0.95  # confidence level of the table's intervals
_N_BOOTSTRAP = 200
_COLUMNS = {
    "arm", "bin", "treated", "control", "rate_treated", "rate_control", "predicted", "calibrated", "observed", "se", "low",
    "high",
}  # fmt: skip


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
    estimator : uplift model
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
        Seed of the folds, and of the table's intervals.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    estimator_ : uplift model
        The fitted model.
    table_ : Table
        Calibration table of the unseen scores, as :func:`upturn.metrics.calibration_table` makes it with intervals of 95%,
        and a column ``calibrated``: the mean calibrated effect.
    feature_importances_ : array of shape (p,)
        Those of the model, if it has them.
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

    estimator_: UpliftEstimator

    _parameters: ClassVar = {
        "estimator": ELSEWHERE,
        "method": one_of("isotonic", "linear"),
        "cv": ELSEWHERE,
        "n_bins": whole(least=1),
        "n_jobs": JOBS,
        "random_state": SEED,
        "control": LABEL,
    }

    def __init__(
        self,
        estimator: Any,
        *,
        method: str = "isotonic",
        cv: Any = 5,
        n_bins: int = 10,
        n_jobs: int | None = None,
        random_state: Any = None,
        control: Label | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.n_bins = n_bins
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.control = control

    @property
    def _outcome(self) -> Any:  # type: ignore[override]
        return getattr(self.estimator, "_outcome", "any")

    @property
    def _multi_arm(self) -> bool:  # type: ignore[override]
        return getattr(self.estimator, "_multi_arm", True)

    def fit(self, X: Any, y: Any, treatment: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model and learn what its scores mean; with ``cv="prefit"``, only the latter.

        Parameters are those of every model's ``fit``.
        """
        if not isinstance(self.estimator, UpliftEstimator):
            raise TypeError(
                f"estimator={self.estimator!r} is not an uplift model of upturn: expected one such as UpliftSVM(); in a pipeline, "
                "calibrate the last step: make_pipeline(StandardScaler(), UpliftCalibrator(model))"
            )
        if not isinstance(self.cv, str):
            return super().fit(X, y, treatment, sample_weight)
        if self.cv != "prefit":
            raise ValueError(f"cv={self.cv!r}: expected a number of folds, a splitter, or 'prefit' for a fitted model")
        check_is_fitted(self.estimator)
        with all_or_nothing(self):
            check_parameters(self)
            matrix, target = self._read_unseen(X, y, treatment, sample_weight)
            self.estimator_ = self.estimator
            self._calibrate(target, self.estimator._predict(matrix), make_seed(self.random_state))
            self._remember(target.control, target.arms, self.estimator._schema)
            self._library = library_of(X)
            self._tell(Experiment(matrix, self.estimator._schema, target))
        return self

    def _read_unseen(self, X: Any, y: Any, treatment: Any, sample_weight: Any) -> tuple[Floats, Target]:
        """Gate an experiment for a model that is fitted already."""
        known = (self.estimator.control_, self.estimator.arms_)
        X, columns, _ = take_named(X, y=y, treatment=treatment, sample_weight=sample_weight)
        target = in_units(read_target(**columns, known=known, outcome=self._outcome))
        data = Experiment(self.estimator._encode(X), self.estimator._schema, target)
        return data.X, data.target

    def _fit(self, data: Experiment) -> None:
        seed, data = make_seed(self.random_state), rows_that_count(data, self.cv)

        def fit(_: int, rows: Indices) -> Any:
            return self._copy(data.take(rows))._predict

        scores = crossfit(make_folds(data, self.cv, seed), fit, data.X, data.n_arms, self.n_jobs)
        self.estimator_ = self._copy(data)
        self._calibrate(data.target, scores, seed)

    def _tell_arms(self) -> None:
        if self.estimator_ is not self.estimator:
            self.estimator_._tell_arms()

    def _tell(self, data: Experiment) -> None:
        self._tell_arms()
        if any(effect[0] != effect[-1] for _, effect in self._knots):
            return
        name = type(self.estimator_).__name__
        if np.ptp(data.y) == 0:
            why = "the outcome is the same in all rows"
        elif self.estimator_._same_for_all(data):
            why = f"{name} tells nobody apart: calibrate another model, such as UpliftForest, or gather more rows"
        else:
            why = (
                f"on rows that {name} had not seen, higher scores did not go with larger effects, so its ranking may be chance (or the "
                "effect is the same for all): use more rows or another model, such as UpliftForest; estimator_.predict has the scores as they are"
            )
        warn_user(f"{type(self).__name__} predicts the same for everybody: {why}", UserWarning)

    def _copy(self, data: Experiment) -> UpliftEstimator:
        """A copy of the model, fitted."""
        model: UpliftEstimator = clone(self.estimator)
        model._fit(data)
        return model

    def _remember(self, control: Label, arms: list[Label], schema: Schema) -> None:
        super()._remember(control, arms, schema)
        if hasattr(self, "estimator_") and self.estimator_ is not self.estimator:
            self.estimator_._remember(control, arms, schema)

    def _calibrate(self, target: Target, scores: Floats, seed: np.uint64) -> None:
        self._knots = [self._learn_map(target.take(rows), scores[rows, k]) for k, rows in _pairs(target)]
        few = target.sizes.min() < FEW_ROWS  # of which intervals say nothing
        replicates = None if few else Replicates(_INTERVAL, _N_BOOTSTRAP, seed, self.n_jobs)
        means = {"predicted": scores, "calibrated": self._map(scores)}
        self._columns = bin_columns(target, scores, self.n_bins, replicates, means)
        for name in ("se", "low", "high"):
            self._columns.setdefault(name, np.full(len(self._columns["bin"]), np.nan))

    def _learn_map(self, pair: Target, score: Floats) -> Knots:
        """The map of one arm, from its rows and those of control."""
        score, treated, weight = np.ascontiguousarray(score), pair.arm > 0, pair.weights
        largest = float(np.ptp(pair.y[weight > 0]))
        # An outcome that never varies has no effect, not one of the size of a rounding error.
        effect = row_effects(pair.y, treated, weight, score) if largest > 0 else np.zeros(len(score))
        if self.method == "linear":
            return linear_map(score, effect, weight, largest)
        return isotonic_map(score, effect, weight, treated, largest)

    @property
    def table_(self) -> Table:
        """Calibration table of the scores of unseen rows."""
        check_is_fitted(self)
        return bin_table(self._columns, [self.control_, *self.arms_], _INTERVAL, self._library)

    @property
    def feature_importances_(self) -> Floats:
        """Importance of the features to the model."""
        check_is_fitted(self)
        importances: Floats = self.estimator_.feature_importances_
        return importances

    def _map(self, scores: Floats) -> Floats:
        return np.column_stack([np.interp(scores[:, k], *knots) for k, knots in enumerate(self._knots)])

    def _predict(self, X: Floats) -> Floats:
        return self._map(self.estimator_._predict(X))

    def _get_state(self) -> dict[str, Any]:
        return {
            "estimator": self.estimator_,
            "knots": [list(knots) for knots in self._knots],
            "table": self._columns,
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        model, knots, table = state["estimator"], state["knots"], state["table"]
        if not isinstance(model, UpliftEstimator) or not model.__sklearn_is_fitted__():
            raise ValueError("the calibrated model is not a fitted uplift model")
        if (model.control_, model.arms_, model._schema) != (self.control_, self.arms_, self._schema):
            raise ValueError("the calibrated model does not fit the calibrator")
        if not isinstance(knots, list) or len(knots) != len(self.arms_):
            raise ValueError("expected a map per arm")
        for score, effect in knots:
            _check_map(score, effect)
        _check_columns(table, len(knots))
        self.estimator_, self._columns = model, table
        self._knots = [(score, effect) for score, effect in knots]


def _pairs(target: Target) -> list[tuple[int, Indices]]:
    """Every arm's column, with its rows and those of control."""
    return [(k, target.pair(k + 1)) for k in range(target.n_arms)]


def _check_map(score: Floats, effect: Floats) -> None:
    shaped = score.ndim == 1 and score.shape == effect.shape and len(score) > 0
    if not shaped or not score.dtype == effect.dtype == np.float64:
        raise ValueError("a calibration map is not well formed")
    if not (np.isfinite(score).all() and np.isfinite(effect).all()):
        raise ValueError("a calibration map is not finite")
    if (np.diff(score) <= 0).any() or (np.diff(effect) < 0).any():
        raise ValueError("a calibration map is not monotone")


def _check_columns(table: dict[str, Any], n_arms: int) -> None:
    if set(table) != _COLUMNS or len({column.shape for column in table.values()}) > 1 or table["arm"].ndim != 1:
        raise ValueError("the calibration table is not well formed")
    if any(column.dtype.kind not in ("iu" if name in ("arm", "bin") else "f") for name, column in table.items()):
        raise ValueError("the calibration table is not made of numbers")
    if not np.isin(table["arm"], range(1, n_arms + 1)).all():
        raise ValueError("the calibration table names an arm that does not exist")
