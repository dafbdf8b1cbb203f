"""Forests of uplift trees."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx

from upturn._arrays import Bools, Floats
from upturn._balance import balance_pvalue
from upturn._columns import warn_user
from upturn._experiment import Experiment
from upturn._parallel import run_parallel
from upturn._parameters import ELSEWHERE, FLAG, INTERVAL, VERBOSE, Rule, check, number, one_of, whole
from upturn._seeds import make_seed
from upturn._target import Label
from upturn.base import finite
from upturn.kernels.criteria import CRITERIA, Rules
from upturn.kernels.forest import twin_codes
from upturn.kernels.sampling import ESTIMATE, GROW
from upturn.metrics._estimate import reach_of
from upturn.trees import _export
from upturn.trees._base import Scale, TreeModel, scale_of
from upturn.trees._bins import Codes
from upturn.trees._center import leaf_sums, out_of_bag_twice, outcome_out_of_bag, put_back, respond_unseen
from upturn.trees._growth import Soil, layout_with, rows_of
from upturn.trees._inference import (
    BAG,
    GROUP,
    Pooled,
    correct_groups,
    correct_smoothing,
    effect_grid,
    pool_variance,
    pooled_rows,
    pooled_variance,
    rows_in_leaf,
    smoothed_sums,
)
from upturn.trees._look import Look, look_at_arms
from upturn.trees._nodes import Nodes
from upturn.trees._outcome import encode_outcome
from upturn.trees._overlap import (
    LEAST_LEFT,
    chances_of,
    kind_of,
    overlap_left,
    overlap_sums,
    overlap_weights,
)
from upturn.trees._rehearsal import forest_seed, reach, stage
from upturn.trees._samples import Sampling

_MANY = 500  # trees at least, for inference
_FITTED = {
    "bins_", "nodes_", "centered_", "propensity_kind_", "propensity_pvalue_", "propensity_auc_", "_enough", "_left", "_few", "_pooled", "oob_response_", "oob_prediction_",
}  # fmt: skip


class _Sown(NamedTuple):
    """A soil with the outcome that trees see, what was taken off it row by row (if it is centred), and the rows' weights."""

    soil: Soil
    level: Floats | None
    weight: Floats | None


class UpliftForest(TreeModel):
    r"""Many uplift trees on random parts of the experiment, averaged.

    The response under arm k is the mean of the trees' leaf responses, the effect its difference to control:

    .. math:: \hat\mu_k(x) = \frac1B \sum_b \hat\mu_k(x; b), \qquad \hat\tau_k(x) = \hat\mu_k(x) - \hat\mu_0(x).

    ``recommend`` takes the arm with the largest estimated response; ties go to control, then to the first arm.

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    criterion, normalize, laplace, max_depth, min_samples_split, min_samples_leaf, min_samples_arm, max_features, \
    min_share, pi, n_reg, leaf, min_gain, honest, rho, max_bins
        As in :class:`UpliftTree`.
    bootstrap : bool
        Draw each tree's rows with replacement: a row appears a Poisson number of times. The draw is by row, so it does
        not depend on the order of the data's other rows.
    max_samples : float
        Mean number of copies in a bootstrap; without one, the share of the rows drawn, by arm. Small shares make the trees
        differ, which their average gains from.
    ci_group_size : int
        With 2 or more, that many consecutive trees share a half-sample of the experiment, and ``predict_interval``
        works. Each tree then draws its rows from the half-sample.
    center : {"auto", True, False}
        Take off the outcome, before trees look for effects, what the features alone predict of it: regression trees of the
        same engine predict every row out of bag, whatever its arm. Features that drive the outcome then no longer hide those
        that drive the effect. Responses are leaf means shifted by as much for every arm as gives the rows of a leaf their
        mean outcome back. It needs a criterion on means, so "kl", "chi2" and ``normalize=True`` refuse ``center=True``; the
        Laplace correction is off. "auto" centres outcomes of more than two
        values if the criterion is the plain Euclidean one.
    propensity : "auto", "shares", "trees", number(s) or column name(s)
        Chances of the arms. "shares": the same for everybody, as in a randomised experiment. "trees": estimated out of bag by
        trees of the same engine. A number, or one per treatment arm: known. Names of columns of X, one per treatment arm: known row by row.
        Wherever they are not the shares, rows have overlap weights, h / e of their own arm with h = 1 / (sum of 1 / e over the arms), which
        give every leaf the same people in all arms; combine with ``center=True``. "auto" is the shares, unless up to some 20,000 rows of each arm
        show that chance alone did not make them: the joint test of balance has p < 0.0001, or trees tell treated rows they have not seen from control with such a p. Then it is "trees", ``center="auto"``
        centres whatever the criterion allows, and a warning says so. Copies of a row count once, and so do, before arms are called unlike, the rows of a household or
        shop that one column tells, if each has one arm. With ``inference=True`` it is "trees" also if the test of balance of all rows has p < 0.05. Where the features then tell nearly everybody's arm, which leaves
        nobody to compare, "auto" stays with the shares, and a warning says so.
    inference : bool
        Choose by itself what ``predict_interval`` needs, whatever the other parameters say: honest trees, ten to a
        half-sample, leaves of at least two rows of each arm, and more where the smallest arm has above 2,500 of them, at least 500
        trees, a centred outcome (unless the criterion does not allow it, or ``center=False``), and values corrected for what leaves smooth: twice a leaf's effect, less the mean of the
        effects that other trees of its half-sample predict for its rows; once more if effects differ between people. Then all of it is
        rehearsed on an experiment that is made, with effects like those just found, to see how much wider intervals must be to hold
        them; that takes half as long again.
    oob : bool
        Predict every row by the trees that did not see it (``oob_response_``, ``oob_prediction_``).
    random_state : int, RandomState, Generator or None
        Seed. The same seed gives the same forest to the last bit for any ``n_jobs``.
    n_jobs : int, optional
        Threads.
    verbose : int
        1 shows progress.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    nodes_ : Nodes
        All trees as one flat table.
    feature_importances_ : array of shape (p,)
    centered_ : bool
        Whether the outcome was centred.
    propensity_kind_ : str
        "shares", "trees", "columns" or "known".
    propensity_pvalue_ : float or None
        Of the joint test of balance, if "auto" looked at one.
    propensity_auc_ : float or None
        How well trees told treated rows from control on rows they had not seen, if "auto" looked and there were rows enough: 0.5 is not at all.
    oob_response_ : array of shape (n, 1 + K)
        Responses of the trees that did not see the row; NaN where there is none. Only with ``oob=True``.
    oob_prediction_ : array of shape (n,) or (n, K)
        The effects that follow.
    control_, arms_ : label, list of labels

    Notes
    -----
    See :class:`UpliftTree` for weights, missing values and categories.

    References
    ----------
    Rzepakowski, Jaroszewicz, "Decision trees for uplift modeling with single and multiple treatments", 2012.
    Athey, Tibshirani, Wager, "Generalized random forests", 2019 (the intervals).
    Loh, "Calibrating confidence coefficients", 1987 (the rehearsal).

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.trees import UpliftForest
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(4000, 3)), rng.integers(0, 2, 4000)
    >>> y = rng.random(4000) < 0.4 + 0.2 * treatment * np.sign(X[:, 0])
    >>> forest = UpliftForest(n_estimators=50, random_state=0).fit(X, y, treatment)
    >>> forest.recommend([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    array([1, 0])
    >>> int(forest.feature_importances_.argmax())
    0
    """

    _parameters: ClassVar[Mapping[str, Rule]] = {
        **TreeModel._parameters,
        "n_estimators": whole(least=1),
        "bootstrap": FLAG,
        "max_samples": number(above=0, most=1).named("a share above 0 and at most 1"),
        "ci_group_size": whole(least=1),
        "center": one_of("auto") | FLAG,
        "propensity": ELSEWHERE,
        "inference": FLAG,
        "oob": FLAG,
        "verbose": VERBOSE,
    }

    # Of the last fit, and not part of a saved model:
    _look: Look | None = None  # at the arms, before the fit
    _plain: UpliftForest | None = (
        None  # the forest that takes the shares, where this one estimates chances and nobody asked it to
    )
    _left: float | None = None  # of overlap, by estimated chances
    _few: bool = False  # whether that happened, for want of overlap

    _enough: bool = True  # whether there were rows enough to see an area of 0.6

    def __init__(
        self,
        n_estimators: int = 100,
        criterion: str = "euclidean",
        *,
        normalize: bool = False,
        laplace: bool = True,
        max_depth: int | None = None,
        min_samples_split: Any = 2,
        min_samples_leaf: float = 1,
        min_samples_arm: Any = "sqrt",
        max_features: Any = 0.5,
        min_share: float = 0.0,
        pi: float = 0.0,
        n_reg: float = 0.0,
        leaf: str = "mean",
        min_gain: float | None = None,
        honest: bool = False,
        rho: float = 0.5,
        bootstrap: bool = False,
        max_samples: float = 0.3,
        ci_group_size: int = 1,
        center: Any = "auto",
        propensity: Any = "auto",
        inference: bool = False,
        oob: bool = False,
        max_bins: int = 255,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        control: Label | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.normalize = normalize
        self.laplace = laplace
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_samples_arm = min_samples_arm
        self.max_features = max_features
        self.min_share = min_share
        self.pi = pi
        self.n_reg = n_reg
        self.leaf = leaf
        self.min_gain = min_gain
        self.honest = honest
        self.rho = rho
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.ci_group_size = ci_group_size
        self.center = center
        self.propensity = propensity
        self.inference = inference
        self.oob = oob
        self.max_bins = max_bins
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.control = control

    def _fit(self, data: Experiment) -> None:
        self._fit_looked(data, look_at_arms(data) if self._looks() else None)

    def _fit_looked(self, data: Experiment, look: Look | None) -> None:
        self._look = look
        soil, scale = self._soil(data)
        seed, chosen = make_seed(self.random_state), self._chosen(soil.size)
        chosen._fit_forest(data, soil, scale, seed, chosen._weighing(data, soil, seed))
        self._take_over(chosen)

    def _prepare(self, data: Experiment) -> tuple[Experiment, Look | None]:
        # weights of an ensemble's rounds make arms unlike on purpose: what they are is looked at before
        return data, look_at_arms(data) if self._looks() else None

    def _fit_prepared(self, prepared: tuple[Experiment, Look | None], weight: Floats) -> None:
        data, look = prepared
        self._fit_looked(data.with_weight(weight), look)

    def _rows_of(self, prepared: tuple[Experiment, Look | None]) -> Floats:
        return prepared[0].X

    def _take_over(self, chosen: UpliftForest) -> None:
        """Take what was fitted under other parameters."""
        if chosen is not self:
            for name in _FITTED & vars(chosen).keys():
                setattr(self, name, getattr(chosen, name))

    def _looks(self) -> bool:
        """Whether the arms are compared before the fit: nobody has said what they are."""
        said = self.get_params(deep=False).get("propensity", "auto")
        return isinstance(said, str) and said == "auto"

    def _suited(self) -> UpliftForest:
        """The forest for arms that are as unlike as those looked at: this one, or one that estimates chances and centres outcomes."""
        if self._look is None or not self._look.unlike or "propensity" not in self.get_params(deep=False):
            return self
        suited = copy.copy(self)
        suited.propensity, suited._plain = "trees", self
        suited.center = self._may_centre() if self.center == "auto" else self.center
        return suited

    def _chosen(self, size: Floats) -> UpliftForest:
        """The forest that is fitted to arms of a ``size``: this one, or one with the parameters that inference or unlike arms ask for."""
        if not self.inference:
            return self._suited()
        chosen = copy.copy(self)
        chosen.honest, chosen.rho, chosen.bootstrap, chosen.max_samples = True, 0.5, False, 1.0
        chosen.ci_group_size, chosen.n_estimators = GROUP, max(-(-self.n_estimators // GROUP) * GROUP, _MANY)
        chosen.min_samples_split, chosen.min_samples_leaf = 2, 1
        chosen.min_samples_arm = rows_in_leaf(float(size.min()))  # weights count as rows
        chosen.center = self.center is not False and self._may_centre()
        if isinstance(self.propensity, str) and self.propensity == "auto":
            chosen._plain = chosen
        return chosen

    def _settle(self, kind: str, pvalue: float | None, left: float | None) -> None:
        """Keep what became of the chances of the arms; where estimated ones leave hardly anybody to compare, and nobody asked for them, shares are taken."""
        self._left, self._few = left, left is not None and left < LEAST_LEFT and self._plain is not None
        if self._few:
            assert self._plain is not None
            self.center, kind = self._plain.center, "shares"
        self.propensity_kind_, self.propensity_pvalue_ = kind, pvalue
        told = None if self._look is None else self._look.told
        self.propensity_auc_, self._enough = (None, True) if told is None else (told.auc, told.enough)

    def _weighing(self, data: Experiment, soil: Soil, seed: np.uint64) -> Floats | None:
        """Settle where chances of the arms come from, and return them: of every row of the soil, or None for the shares."""
        tested: list[float] = []

        def balance() -> float:
            tested.append(balance_pvalue(data))
            return tested[0]

        kind = kind_of(self.propensity, balance if self.inference else None, self._look)
        chances = None if kind == "shares" else chances_of(self.propensity, kind, data, soil, seed, self.n_jobs)
        left = overlap_left(overlap_sums(chances)) if chances is not None and kind == "trees" else None
        self._settle(kind, tested[0] if tested else None if self._look is None else self._look.pvalue, left)
        return None if self.propensity_kind_ == "shares" else chances

    def _fit_forest(
        self,
        data: Experiment,
        soil: Soil,
        scale: Scale,
        seed: np.uint64,
        chances: Floats | None,
        *,
        rehearsed: bool = False,
    ) -> None:
        """Grow the trees, rows weighted by the ``chances`` of the arms if there are any; those of a rehearsal are neither told of nor rehearsed themselves."""
        self._check_groups()
        centred = self._centres(scale.binary)
        plan = self._sampling()
        rules = self._rules(soil, scale.binary and not centred, plan.share, scale.span)
        sown = self._sow(data, soil, scale, chances, centred, seed)
        del chances  # eight bytes a row and arm
        grow = self._grower(sown, rules, plan, seed)
        pooled = None
        if self.inference:
            nodes, pooled = self._grow_groups(grow, sown, plan, seed)
        else:
            trees = run_parallel(
                grow, range(self.n_estimators), n_jobs=self.n_jobs, verbose=self.verbose, description="trees"
            )
            nodes = Nodes.join(trees)
        self._keep(soil, nodes, scale)
        self.centered_, self._pooled = centred, pooled
        if rehearsed:
            return
        self._tell_constant(soil, rules, plan.share)
        if self.oob or pooled is not None:
            response = self._out_of_bag(data, soil, plan, seed)
            if pooled is not None:
                self._pooled = pooled._replace(reach=self._rehearse(data, soil, response, pooled, scale, seed))
        if self.oob:
            self._keep_out_of_bag(response)

    def _tell(self, data: Experiment) -> None:
        self._tell_arms()

    def _tell_arms(self) -> None:
        """Warn of arms that chance alone does not make so unlike, and say what was done about it.

        The words are the same for all fits of a kind, so that those of many folds are shown once.
        """
        unlike = self._look is not None and self._look.unlike and not self.inference  # which chooses by itself
        if not (unlike or self._few):
            return
        if self._few:
            so = (
                "and features tell nearly everybody's arm, which leaves hardly anybody to be compared: chances of the arms were not used. If arms "
                'were given to whole groups of rows (people, shops), this is what it looks like: pass propensity="shares" to say so. If not, what it '
                "predicts may be differences between people"
            )
        elif self.propensity_kind_ == "trees":
            centred = " and outcomes centred" if self.centered_ else ""
            so = (
                f"so chances of the arms were estimated by trees, and rows weighted by them{centred}, which takes longer: if arms were given at "
                'random, to rows or to whole groups of them, pass propensity="shares"'
            )
        else:
            so = (
                "so what it predicts may be differences between people: if arms were not given at random, use UpliftForest, which then "
                "estimates their chances, or DRLearner; if they were, go on"
            )
        warn_user(
            f"{type(self).__name__}: the arms differ in their features by more than chance (propensity_pvalue_ is of the joint test of balance, propensity_auc_ how well trees tell who was treated), {so}; "
            "upturn.check shows where they differ",
            UserWarning,
        )

    def _fitted_words(self) -> str:
        pvalue = getattr(self, "propensity_pvalue_", None)
        words = super()._fitted_words()
        if pvalue is None or "propensity" not in self.get_params(deep=False):
            return words
        area = "" if self.propensity_auc_ is None else f"area under the ROC curve {self.propensity_auc_:.3f}, "
        few = "" if self._enough else "; too few rows to see an area of 0.6"
        return f"{words}, propensity: {self.propensity_kind_} (by 'auto': {area}balance p = {pvalue:.2g}{few})"

    def _rehearse(
        self, data: Experiment, soil: Soil, response: Floats, pooled: Pooled, scale: Scale, seed: np.uint64
    ) -> Floats:
        """How much wider than its standard errors the forest's intervals must be, per arm (``_rehearsal``)."""
        if data.weight is not None and (data.weight == 0.0).any():
            weighed = data.weight > 0.0
            data, response = data.take(weighed), response[weighed]
        staged = stage(data, response, pooled.varies, scale, seed)
        if staged is None:
            return np.ones(data.n_arms)
        forest, part, own = self._rehearsed(), data.take(staged.rows), scale_of(staged.y)
        part = replace(part, target=replace(part.target, y=staged.y))
        codes, ids = np.ascontiguousarray(soil.codes[:, staged.rows]), staged.rows.astype(np.uint64)
        ground = Soil.prepare(soil.bins, codes, part.arm, part.n_arms, own.see(staged.y), part.weight, ids)
        own_seed = forest_seed(seed)
        forest._fit_forest(part, ground, own, own_seed, forest._weighing(part, ground, own_seed), rehearsed=True)
        mean, variance = forest._moments_of(twin_codes(np.ascontiguousarray(soil.codes[:, staged.others])), self.n_jobs)
        return reach(mean - staged.effects, variance)

    def _rehearsed(self) -> UpliftForest:
        """The forest that a rehearsal fits, with leaves of as many rows as this one, though it sees fewer: rather too wide than too narrow."""
        forest = copy.copy(self)
        forest.n_estimators = max(self.n_estimators // (2 * GROUP), 2) * GROUP
        forest.propensity = self.propensity if self.propensity_kind_ in ("known", "columns") else self.propensity_kind_
        forest._plain = None
        return forest

    def _sow(
        self, data: Experiment, soil: Soil, scale: Scale, chances: Floats | None, centred: bool, seed: np.uint64
    ) -> _Sown:
        """The soil with the outcome and the weights that trees see: centred, and weighted for overlap, if so."""
        if chances is None and not centred:
            return _Sown(soil, None, data.weight)
        rows, y, weight = np.arange(len(data)), scale.see(data.y), data.weight
        if weight is not None:
            rows = np.flatnonzero(weight > 0.0)
            y, weight = y[rows], weight[rows]
        level = None
        if centred and chances is None:
            level = outcome_out_of_bag(soil, seed, self.n_jobs)
        elif centred:
            level = out_of_bag_twice(soil, y, weight, seed, 0, self.n_jobs)
        if chances is not None:
            weight = overlap_weights(chances, soil.arm, weight)
        return _Sown(soil.reweighted(y if level is None else y - level, weight), level, weight)

    def _centres(self, binary: bool) -> bool:
        """Whether the outcome is centred; refuse where the criterion is not one on means."""
        if self.center == "auto":
            return self.criterion == "euclidean" and not self.normalize and not binary
        if not self.center:
            return False
        if not self._may_centre():
            what = f"criterion={self.criterion!r}" if CRITERIA[self.criterion].needs_rates else "normalize=True"
            raise ValueError(
                f"center=True takes predicted outcomes off y, and {what} needs outcomes that are not centred: use "
                "criterion='euclidean' or 'cts' with normalize=False, or center=False"
            )
        return True

    def _may_centre(self) -> bool:
        """Whether the criterion is one on means."""
        return not (CRITERIA[self.criterion].needs_rates or self.normalize)

    def _grower(self, sown: _Sown, rules: Rules, plan: Sampling, seed: np.uint64) -> Callable[[int], Nodes]:
        """What grows one tree; the mean of what was taken off a node's rows is put back on all its arms."""
        soil, level, weight = sown
        if level is None:
            return lambda tree: soil.grow(rules, plan, seed, tree)
        codes: Codes = twin_codes(soil.codes)
        value_role = ESTIMATE if self.honest else GROW
        words, layout = encode_outcome(level, weight)

        def grow(tree: int) -> Nodes:
            role, copies = soil.roles(plan, seed, tree)
            nodes = soil.grow_on(role, copies, rules, seed, tree)
            rows = rows_of(role, copies, value_role, words, soil.arm, layout)
            own = layout_with(layout, len(copies) > 0)
            put_back(nodes, leaf_sums(nodes, codes[np.asarray(rows.index)], rows, own), own)
            return nodes

        return grow

    def _grow_groups(
        self, grow: Callable[[int], Nodes], sown: _Sown, plan: Sampling, seed: np.uint64
    ) -> tuple[Nodes, Pooled]:
        """Trees of all groups, each bag of them corrected for what its leaves smooth, and their pooled variances."""
        soil, _, weight = sown
        weight = None if weight is None else weight[weight > 0.0]
        codes: Codes = twin_codes(soil.codes)
        pool = pooled_rows(len(soil))
        trees = run_parallel(
            grow, range(self.n_estimators), n_jobs=self.n_jobs, verbose=self.verbose, description="trees"
        )
        total, shares = float(soil.size.sum()), soil.size / soil.size.sum()

        def correct(first: int, own: Sequence[Floats]) -> None:
            bag = slice(first, first + BAG)
            roles = [soil.roles(plan, seed, tree)[0] for tree in range(first, first + BAG)]
            grid = effect_grid(trees[bag], total, weighted=weight is not None)
            sums = smoothed_sums(trees[bag], roles, codes, weight, grid)
            correct_smoothing(trees[bag], own[bag], sums, grid, shares)

        def correct_all(own: Sequence[Floats]) -> None:
            run_parallel(lambda first: correct(first, own), range(0, self.n_estimators, BAG), n_jobs=self.n_jobs)

        def pool_all(nodes: Nodes) -> Pooled:
            roles = (soil.roles(plan, seed, first)[0][pool] for first in range(0, self.n_estimators, GROUP))
            return pool_variance(nodes, roles, codes[pool], GROUP, BAG)

        return correct_groups(trees, correct_all, pool_all)

    def _sampling(self) -> Sampling:
        rho = float(self.rho) if self.honest else None
        return Sampling(bool(self.bootstrap), float(self.max_samples), rho, int(self.ci_group_size))

    def _out_of_bag(self, data: Experiment, soil: Soil, plan: Sampling, seed: np.uint64) -> Floats:
        """Responses, row by row, of the trees that did not see it: their samples are drawn once more from the seed.

        Rows of weight 0 are not in the soil: no tree saw them.
        """
        roles = (soil.roles(plan, seed, tree)[0] for tree in range(self.nodes_.n_trees))
        found = respond_unseen(self.nodes_, roles, twin_codes(soil.codes))
        weighed = data.weights > 0.0
        return found if weighed.all() else self._with_unweighed(found, weighed, data.X[~weighed])

    def _with_unweighed(self, found: Floats, weighed: Bools, X: Floats) -> Floats:
        """Responses out of bag of all rows: what was ``found`` for those of weight above 0, and what all trees say of others."""
        response = np.empty((len(weighed), found.shape[1]))
        response[weighed], response[~weighed] = found, self._predict_response(X)
        return response

    def _keep_out_of_bag(self, response: Floats) -> None:
        self.oob_response_ = response
        effect = response[:, 1:] - response[:, :1]
        self.oob_prediction_ = effect[:, 0] if effect.shape[1] == 1 else effect

    def _check_groups(self) -> None:
        if self.n_estimators % self.ci_group_size:
            raise ValueError(
                f"n_estimators={self.n_estimators} is no multiple of ci_group_size={self.ci_group_size}: expected whole groups"
            )
        if self.oob and not self.bootstrap and self.max_samples == 1.0 and self.ci_group_size == 1:
            raise ValueError(
                "oob=True needs rows that a tree does not see: use bootstrap=True, max_samples below 1 or ci_group_size=2"
            )

    def _get_state(self) -> dict[str, Any]:
        pooled = None if self._pooled is None else np.stack(self._pooled)
        return {
            **super()._get_state(),
            "centered": self.centered_,
            "propensity": self.propensity_kind_,
            "pvalue": self.propensity_pvalue_,
            "auc": self.propensity_auc_,
            "enough": self._enough,
            "pooled": pooled,
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        if not isinstance(state["centered"], bool):
            raise ValueError("whether the outcome was centred is neither true nor false")
        self.centered_ = state["centered"]
        if state["propensity"] not in ("shares", "trees", "columns", "known"):
            raise ValueError("no forest has such a kind of propensity")
        self.propensity_kind_, found = state["propensity"], [state.get("pvalue"), state.get("auc")]
        if not all(one is None or (isinstance(one, float) and 0.0 <= one <= 1.0) for one in found):
            raise ValueError("the p-value of the arms' balance, or the area of what trees tell of them, is none")
        self.propensity_pvalue_, self.propensity_auc_ = found
        if not isinstance(enough := state.get("enough", True), bool):
            raise ValueError("whether there were rows enough to see an area of 0.6 is neither true nor false")
        self._enough = enough
        pooled = state["pooled"]
        if (pooled is None) == bool(self.inference) or (
            pooled is not None
            and (
                pooled.dtype.str != "<f8"
                or pooled.shape != (3, len(self.arms_))
                or not (np.isfinite(pooled) & (pooled >= 0.0)).all()
            )
        ):
            raise ValueError("the pooled variances of the forest are not well formed")
        self._pooled = None if pooled is None else Pooled(*pooled.copy())

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Leaf each row falls in, tree by tree: node numbers of shape (n, n_estimators)."""
        matrix = self._encode(X)  # first: it says so if there is nothing fitted yet
        return self.nodes_.apply(self.bins_, matrix, self.n_jobs)

    def predict_interval(self, X: Any, interval: float = 0.9) -> tuple[Floats, Floats]:
        """Confidence interval of the effects: lower and upper bounds, shaped like ``predict``.

        Groups of trees that share a half-sample differ from each other as forests on fresh experiments would; what the
        trees of a group differ among themselves is the noise of small groups, and is taken off (with a correction that
        keeps variances positive). The interval is normal around the prediction. It covers the forest's own expectation;
        it covers the true effect as far as the trees' bias is small: ``inference=True`` chooses honest trees, enough of
        them and small leaves, takes most of the bias off, pools the ratio of a group's variance to its noise over rows, because at
        one point it is hardly known, and widens intervals by what a rehearsal on known effects asks for.

        Parameters
        ----------
        X : table of shape (n, p)
            The columns of the fit.
        interval : float
            Confidence level, such as 0.9.

        References
        ----------
        Athey, Tibshirani, Wager, "Generalized random forests", 2019, section 4.1.
        """
        check("interval", interval, INTERVAL)
        matrix = self._encode(X)
        group_size = GROUP if self.inference else self.ci_group_size
        if group_size < 2:
            remedy = (
                "inference=True, or with ci_group_size=2" if "inference" in self.get_params() else "ci_group_size=2"
            )
            raise ValueError(
                f"predict_interval needs groups of trees that share half-samples, and ci_group_size={group_size}: fit with {remedy}"
            )
        n_groups = self.nodes_.n_trees // group_size
        if n_groups < 2:
            raise ValueError(
                f"predict_interval compares groups of trees, and all {self.nodes_.n_trees} trees are one group: fit with more "
                f"trees than ci_group_size={group_size}, hundreds of them"
            )
        mean, variance = self._moments(lambda size: self.nodes_.moments(self.bins_, matrix, size, self.n_jobs))
        half = reach_of(interval) * np.sqrt(variance)
        if self._pooled is not None:
            half *= self._pooled.reach
        low, high = finite(mean - half), finite(mean + half)
        return (low[:, 0], high[:, 0]) if low.shape[1] == 1 else (low, high)

    def _moments_of(self, codes: Codes, n_jobs: int | None) -> tuple[Floats, Floats]:
        """Effects of rows by their codes for prediction, and their estimated variances."""
        return self._moments(lambda size: self.nodes_.moments_of(codes, size, n_jobs))

    def _moments(self, moments: Callable[[int], tuple[Floats, Floats, Floats]]) -> tuple[Floats, Floats]:
        """Effects and their estimated variances, of shape (n, K), from the ``moments`` of groups of a size."""
        size = GROUP if self.inference else int(self.ci_group_size)
        n_groups = self.nodes_.n_trees // size
        mean, between, total = moments(size)
        if self._pooled is None:
            return mean, debiased_variance(between, total, size, n_groups)
        _, of_bags, _ = moments(BAG)
        return mean, pooled_variance(between, of_bags, size // BAG, n_groups, self._pooled)

    def export_json(self, tree: int = 0) -> dict[str, Any]:
        """One of the trees as nested dicts (see :meth:`UpliftTree.export_json`)."""
        return self._describe(tree)

    def export_text(self, tree: int = 0, *, digits: int = 4) -> str:
        """One of the trees as indented text."""
        return _export.to_text(self.export_json(tree), digits)


def debiased_variance(between: Floats, total: Floats, group_size: int, n_groups: int) -> Floats:
    """Variance of a forest from the variance of its group means and of its trees.

    ``between`` is too large by the noise of averaging only ``group_size`` trees, estimated from their spread within
    groups. The difference can be negative, so what is returned is its mean under a flat prior on the positive numbers
    and a normal likelihood: the truncated-normal mean m + s phi(m/s) / Phi(m/s).
    """
    noise = np.maximum(total - between, 0.0) / (group_size - 1)
    estimate = between - noise
    spread = np.maximum(between, noise) * np.sqrt(2.0 / n_groups)
    ratio = estimate / np.where(spread > 0.0, spread, 1.0)
    # phi(r) / Phi(r) = sqrt(2 / pi) / erfcx(-r / sqrt 2), stable far into both tails
    correction = spread * np.sqrt(2.0 / np.pi) / erfcx(-ratio / np.sqrt(2.0))
    variance: Floats = np.maximum(estimate + correction, 0.0)
    return variance
