"""What single trees and forests share: parameters to rules, a binned experiment, prediction, export, saved state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from upturn._arrays import Floats, Indices
from upturn._columns import warn_user
from upturn._experiment import Experiment
from upturn._parameters import FLAG, JOBS, LABEL, NONE, SEED, Rule, is_whole, number, one_of, whole
from upturn.base import UpliftEstimator, finite, finite_importances
from upturn.kernels.binning import MAX_BINS
from upturn.kernels.criteria import ANY_WEIGHT, CRITERIA, Rules
from upturn.trees import _export
from upturn.trees._bins import Bins
from upturn.trees._growth import Ground, Soil, kept_histograms_fit
from upturn.trees._nodes import Nodes

SHARE = number(above=0, below=1).named("a share strictly between 0 and 1")
_DEEPEST = 10_000  # "no limit"
_FAR = 1000.0  # an outcome further from 0 than so many times its range is moved to 0
_EXTREME = 300  # exponent of two beyond which an outcome is rescaled: its square must not leave the range of floats


class Scale(NamedTuple):
    """How trees see an outcome: ``y = low + span * seen``."""

    low: float
    span: float
    binary: bool  # what they see are 0s and 1s

    def see(self, y: Floats) -> Floats:
        """The outcome as trees see it."""
        return y if self[:2] == (0.0, 1.0) else (y - self.low) / self.span

    def tell(self, seen: Floats) -> Floats:
        """What trees see as an outcome again."""
        return seen if self[:2] == (0.0, 1.0) else self.low + self.span * seen


class TreeModel(UpliftEstimator):
    """Base of the tree models: everything that follows from a table of nodes."""

    _any_size = True
    _float32 = True
    # Parameters; a subclass that fixes one keeps it as a class attribute.
    criterion: str
    normalize: bool = True
    laplace: bool = True
    max_depth: int | None = None
    min_samples_split: Any = 2
    min_samples_leaf: float = 1
    min_samples_arm: Any = 0
    max_features: Any = None
    min_share: float = 0.0
    pi: float = 0.0
    n_reg: float = 0.0
    leaf: str = "mean"
    min_gain: float | None = None
    honest: bool = False
    rho: float = 0.5
    max_bins: int = MAX_BINS
    n_jobs: int | None = None

    _parameters: ClassVar[Mapping[str, Rule]] = {
        "criterion": one_of(*CRITERIA),
        "normalize": FLAG,
        "laplace": FLAG,
        "max_depth": whole(least=0) | NONE,
        "min_samples_split": one_of("auto") | number(least=0),
        "min_samples_leaf": number(least=0),
        "min_samples_arm": one_of("sqrt") | number(least=0),
        "max_features": (NONE | one_of("sqrt") | whole(least=1) | number(above=0, most=1)).named(
            "None for all, 'sqrt', a number of features such as 5, or a share such as 0.5"
        ),
        "min_share": number(least=0, below=0.5).named("a share of at least 0 and below 0.5"),
        "pi": number(least=0, most=1).named("a probability from 0 to 1"),
        "n_reg": number(least=0),
        "leaf": one_of("mean", "regularized"),
        "min_gain": NONE | number(),
        "honest": FLAG,
        "rho": SHARE,
        "max_bins": whole(least=2, most=MAX_BINS),
        "random_state": SEED,
        "n_jobs": JOBS,
        "control": LABEL,
    }

    bins_: Bins
    nodes_: Nodes

    # ------------------------------------------------------------------------------------------ fitting

    def _soil(self, data: Experiment) -> tuple[Soil, Scale]:
        """Bin an experiment and scale its outcome; return the scale as well."""
        if data.weight is not None and (data.weight == 0.0).any():
            data = data.take(data.weight > 0.0)
        scale = scale_of(data.y)
        seen = scale.see(data.y)
        if data.weight is not None:
            least, most, total = float(data.weight.min()), float(data.weight.max()), float(data.weight.sum())
            check_weights(least, most, total, float(np.abs(seen).max()))
        self._check_outcome(scale, varies=bool(seen.any()))
        n_levels = [None if levels is None else len(levels) for levels in data.schema.levels]
        bins = Bins.learn(data.X, n_levels, data.weight, self.max_bins, self.n_jobs)
        codes = bins.encode(data.X, self.n_jobs)
        return Soil.prepare(bins, codes, data.arm, data.n_arms, seen, data.weight), scale

    def _check_outcome(self, scale: Scale, *, varies: bool) -> None:
        """Refuse an outcome that varies and is none of two values where success rates are compared."""
        if not scale.binary and varies and CRITERIA[self.criterion].needs_rates:
            raise ValueError(
                f"criterion={self.criterion!r} compares success rates, and y holds more than two values: use "
                "criterion='euclidean' or criterion='cts', which take any outcome"
            )

    def _rules(self, soil: Ground, binary: bool, share: float = 1.0, span: float = 1.0) -> Rules:
        """Rules of the kernel from the parameters; a tree is shaped by a ``share`` of the rows, y scaled by its ``span``."""
        criterion = CRITERIA[self.criterion]
        n_features = soil.bins.n_features
        max_features = self._count_features(n_features)
        min_gain = criterion.min_gain if self.min_gain is None else self.min_gain
        smallest = share * float(soil.size.min())
        min_split = _rows_by_size(smallest) if self.min_samples_split == "auto" else float(self.min_samples_split)
        all_features = max_features == n_features and self.pi == 0.0
        min_arm = _rows_by_size(smallest) if self.min_samples_arm == "sqrt" else float(self.min_samples_arm)
        kept = kept_histograms_fit(len(soil), n_features, len(soil.mean), soil.layout.n_words)
        return Rules(
            criterion=criterion.code,
            binary=binary,
            normalize=bool(self.normalize),
            laplace=1.0 if self.laplace and binary and criterion.laplace else 0.0,
            min_split=min_split,
            n_reg=float(self.n_reg),
            inherit_below=max(min_split, ANY_WEIGHT) if criterion.inherits else ANY_WEIGHT,
            min_share=float(self.min_share),
            min_leaf=float(self.min_samples_leaf),
            min_arm=min_arm,
            min_gain=float(min_gain) / (span if criterion.in_outcome_units else 1.0),
            max_depth=_DEEPEST if self.max_depth is None else int(self.max_depth),
            max_features=max_features,
            random_share=float(self.pi),
            honest=bool(self.honest),
            plain_leaves=criterion.inherits and self.leaf == "mean",
            subtraction=all_features and kept,
        )

    def _keep(self, soil: Ground, nodes: Nodes, scale: Scale) -> None:
        """Keep the fitted trees, responses (and gains that are differences of them) in units of y."""
        low, span, _ = scale
        if (low, span) != (0.0, 1.0):
            nodes.value[:] = low + span * nodes.value
            if CRITERIA[self.criterion].in_outcome_units:
                nodes.gain[:] *= span
        self.bins_, self.nodes_ = soil.bins, nodes

    def _tell_constant(self, soil: Ground, rules: Rules, share: float) -> None:
        """Say that no tree has a split, if so, and why; ``share`` is that of the rows that shape a tree."""
        if (self.nodes_.left >= 0).any() or rules.max_depth == 0:
            return
        shaping = share * soil.size
        least, most, whole = float(shaping.min()), float(shaping.max()), float(shaping.sum())
        if (soil.bins.n_codes <= 2).all() and soil.features_constant():
            why = "every feature has the same value in all rows: give it features that vary"
        elif soil.outcome_constant():
            why = "the outcome is the same in all rows, and so is every effect: give it an outcome that varies"
        elif most < rules.min_split:
            why = (
                f"a node is split only if some arm has min_samples_split={rules.min_split:.4g} rows, and the largest has "
                f"{most:.4g} to shape a tree with: lower min_samples_split"
            )
        elif least < 2.0 * rules.min_arm:
            why = (
                f"a leaf needs {rules.min_arm:.4g} rows of every arm, and the smallest arm has {least:.4g} to shape a tree with: lower "
                "min_samples_arm, or let a tree see more rows"
            )
        elif whole < 2.0 * rules.min_leaf:
            why = f"a leaf needs min_samples_leaf={rules.min_leaf:.4g} rows, and a tree is shaped by {whole:.4g}: lower min_samples_leaf"
        else:
            why = (
                "no admissible split gains more than min_gain: the effect may be the same for everybody; more rows, other features or "
                "smaller leaves (min_samples_arm) would show more"
            )
        trees = "the tree is" if self.nodes_.n_trees == 1 else f"all {self.nodes_.n_trees} trees are"
        warn_user(f"{trees} a single leaf, so everybody is predicted the same: {why}", UserWarning)

    def _count_features(self, n_features: int) -> int:
        wanted = self.max_features
        if wanted is None:
            return n_features
        if wanted == "sqrt":
            return max(1, math.isqrt(n_features))
        return min(int(wanted), n_features) if is_whole(wanted) else max(1, round(float(wanted) * n_features))

    # ------------------------------------------------------------------------------------------ using

    def _predict_response(self, X: Floats) -> Floats:
        return self.nodes_.respond(self.bins_, X, self.n_jobs)

    def _predict(self, X: Floats) -> Floats:
        return self.nodes_.effects(self.bins_, X, self.n_jobs)

    def _recommend(self, X: Floats) -> Indices:
        best: Indices = finite(self._predict_response(X)).argmax(
            axis=1
        )  # the first of equals: control, then the arms in order
        return best

    @property
    def feature_importances_(self) -> Floats:
        """What each feature adds to the criterion: the gains of its splits, each times its node's share of the rows.

        Not normalised, never negative; the mean over the trees of a forest. Real-valued outcomes give it the unit of the
        criterion's gain, two values that of their rates.
        """
        check_is_fitted(self)
        return finite_importances(self.nodes_.importances(self.bins_.n_features), self.n_features_in_)

    # ------------------------------------------------------------------------------------------ saved state

    def _get_state(self) -> dict[str, Any]:
        return {"bins": self.bins_.get_state(), "nodes": self.nodes_.get_state()}

    def _set_state(self, state: dict[str, Any]) -> None:
        self.bins_ = Bins.from_state(state["bins"], self.n_features_in_)
        for j, levels in enumerate(self._schema.levels):
            first, last = self.bins_.level_range[j]
            if (first == -1) != (levels is None) or (levels is not None and last - first != len(levels)):
                raise ValueError("the bins do not fit the columns")
        self.nodes_ = Nodes.from_state(state["nodes"], self.bins_, 1 + len(self.arms_))

    def _describe(self, tree: int) -> dict[str, Any]:
        """One tree as nested dicts (see ``export_json``)."""
        check_is_fitted(self)
        if not is_whole(tree) or not 0 <= tree < self.nodes_.n_trees:
            raise ValueError(f"tree={tree!r}: expected a number from 0 to {self.nodes_.n_trees - 1}")
        labels = [self.control_, *self.arms_]
        return _export.describe(self.nodes_.tree(tree), self.bins_, self._schema, labels, self._rate)


def _rows_by_size(n: float) -> float:
    """Rows of an arm that make an estimate, where ``n`` are those that shape a tree: twice the root of n.

    Not fewer than 10; but a third of n is always enough, or a small sample could not be split at all.
    """
    return min(max(10.0, 2.0 * math.sqrt(n)), n / 3.0)


def check_weights(least: float, heaviest: float, total: float, largest: float) -> None:
    """Refuse weights that would leave the range of floats, by themselves or multiplied by the ``largest`` outcome."""
    if least < ANY_WEIGHT or total > np.finfo(np.float64).max / max(largest, 1.0):
        raise ValueError(
            f"sample_weight goes from {least:g} to {heaviest:g}, which is too {'small' if least < ANY_WEIGHT else 'large'} to be "
            "added up: multiply all weights by one number"
        )


def scale_of(y: Floats) -> Scale:
    """The scale on which trees see an outcome.

    Two values (or 0s or 1s alone) become 0 and 1, the larger one success: then rates are what trees compare. Any other
    outcome stays as it is, except where sums or squares would lose it: far from 0 it is moved there, which is exact, and
    huge or tiny numbers are divided by a power of two. One value alone becomes 0, so that all means of it are equal.
    """
    low, high = float(y.min()), float(y.max())
    return scale_between(low, high, two=bool(((y == low) | (y == high)).all()))


def scale_between(low: float, high: float, *, two: bool) -> Scale:
    """The scale of an outcome from its smallest to its largest value, if it has ``two`` values at most or more."""
    if not math.isfinite(high - low):
        raise ValueError(
            f"y runs from {low:g} to {high:g}, and the difference is too large for a float: divide the outcome by some number"
        )
    if two and low in (0.0, 1.0) and high in (0.0, 1.0):
        return Scale(0.0, 1.0, True)
    if low == high:
        return Scale(low, 1.0, False)
    if two:
        return Scale(low, high - low, True)
    middle = 0.5 * low + 0.5 * high
    if abs(middle) > _FAR * (high - low):
        low, high = low - middle, high - middle
    else:
        middle = 0.0
    exponent = math.frexp(max(abs(low), abs(high)))[1] - 1
    return Scale(middle, 2.0**exponent if abs(exponent) > _EXTREME else 1.0, False)
