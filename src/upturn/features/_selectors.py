"""Feature selectors: what they share, and the one that follows from UMODL."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from upturn._arrays import Bools, Floats, Ints
from upturn._experiment import Experiment
from upturn._parameters import FLAG, JOBS, LABEL, VERBOSE, whole
from upturn._results import select_columns
from upturn._target import Label
from upturn.base import Gated
from upturn.features._cells import read_cells
from upturn.features._discretizer import SEARCH, UMODLDiscretizer
from upturn.features._pairs import find_pairs
from upturn.features._percentiles import bin_score
from upturn.kernels.criteria import CRITERIA


class UpliftSelector(SelectorMixin, Gated):  # type: ignore[misc]
    """Base of the selectors: ``transform`` keeps the columns of the mask, untouched, in the user's own kind of table."""

    scores_: Floats
    _any_size = True
    _float32 = True

    @property
    def feature_importances_(self) -> Floats:
        """Importance of each feature, unnormalised: its score."""
        check_is_fitted(self)
        return self.scores_

    def transform(self, X: Any) -> Any:
        """Keep the selected columns.

        Parameters
        ----------
        X : table of shape (n, p)

        Returns
        -------
        table of the same kind with the selected columns, values and types as they were
        """
        check_is_fitted(self)
        mask = self._get_support_mask()
        if not mask.any():
            warnings.warn(self._nothing_kept(len(mask)), UserWarning, stacklevel=2)
        return select_columns(X, self._schema, mask, type(self).__name__)

    def _nothing_kept(self, n_features: int) -> str:
        return f"{type(self).__name__} kept none of the {n_features} feature(s)"

    def _get_support_mask(self) -> Bools:
        raise TypeError(f"{type(self).__name__} does not say what it selects")


class UMODLSelector(UpliftSelector):
    r"""Keep the features in which UMODL finds more than one part (UMODL-FS of [1]_). Nothing to tune.

    The score of a feature is its importance, equation (11),

    .. math:: \mathrm{imp}(X) = \sum_i \frac{N_i}{N} (p_i - q_i)^2 \quad\text{if } I > 1, \text{ else } 0,

    with p and q the success rates of treatment and control in part i (several arms: summed over them; more than two
    classes: half the squared distance of the distributions). Features with a score above 0 are kept.

    The sum runs over all parts, as printed, so a feature that only tells the outcome may score above 0 through the
    average effect. With ``effect_only=True`` only parts with :math:`W_i = 1` count, and such a feature scores 0 when
    no part needs separate distributions.

    **It looks at features one by one.** What only matters together with another feature scores 0 and is dropped, and a model behind the
    selector can be worse for it. With ``pairs=True`` it also groups, by the same criterion, the cells of the grid of every two
    features (four percentile bins, or the six commonest levels), and keeps both where that saves more than either does alone, plus the
    logarithm of the number of pairs. Of more than 2,000 pairs those of the 63 columns in which the arms are farthest apart are looked at.
    Both features of a pair have at least its importance, which is (11) over the groups of cells, as their score.

    Parameters
    ----------
    effect_only : bool
        Whether only parts in which the arms differ (W = 1) count.
    pairs : bool
        Whether features that matter only together are looked for.
    min_features : int
        Keep at least so many, if there are as many: where fewer score above 0, those join in which the arms are farthest
        apart on ten percentile bins (the sum above, over these bins). With 0 it may happen that none is kept, and most
        models refuse a table without columns; 1 keeps a pipeline going when nothing but noise is there.
    search : {"auto", "exact", "greedy"}
        See :class:`UMODLDiscretizer`.
    n_jobs : int, optional
        Columns are searched on so many threads.
    verbose : int
        1 shows a progress bar.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    scores_, feature_importances_ : arrays of shape (n_features,)
        The importance of each feature, under both names.
    pairs_ : array of shape (pairs, 2)
        Columns that are kept for each other's sake; empty without ``pairs``.
    pair_scores_ : array of shape (pairs,)
        Their importance.
    fillers_ : array of int
        Columns that score 0 and are kept for the sake of ``min_features``, the best first.
    discretizer_ : UMODLDiscretizer
        What the scores were read off, fitted: partitions, summaries, encodings; ``plot.parts`` draws them.
    control_, arms_ : label, list of labels

    References
    ----------
    .. [1] M. Rafla, N. Voisine, B. Crémilleux, M. Boullé, "A non-parametric Bayesian approach for uplift
       discretization and feature selection", ECML PKDD 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.features import UMODLSelector
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(2000, 5)), rng.integers(0, 2, 2000)
    >>> y = rng.random(2000) < 0.3 + 0.4 * treatment * (X[:, 2] > 0)
    >>> UMODLSelector().fit(X, y, treatment).get_support(indices=True)
    array([2])
    """

    def __init__(
        self,
        *,
        effect_only: bool = False,
        pairs: bool = False,
        min_features: int = 0,
        search: Literal["auto", "exact", "greedy"] = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        control: Label | None = None,
    ) -> None:
        self.effect_only = effect_only
        self.pairs = pairs
        self.min_features = min_features
        self.search = search
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.control = control

    _parameters: ClassVar = {
        "effect_only": FLAG,
        "pairs": FLAG,
        "min_features": whole(least=0),
        "search": SEARCH,
        "n_jobs": JOBS,
        "verbose": VERBOSE,
        "control": LABEL,
    }

    def _fit(self, data: Experiment) -> None:
        model = UMODLDiscretizer(search=self.search, n_jobs=self.n_jobs, verbose=self.verbose, control=self.control)
        model._fit(data)
        model._remember(data.target.control, data.target.arms, data.schema)
        model._library = self._library
        pairs, scores = np.empty((0, 2), dtype=np.int64), np.empty(0)
        if self.pairs:
            pairs, scores = self._find_pairs(data, model)
        self._adopt(model, bool(self.effect_only), pairs, scores)
        missing = self.min_features - int((self.scores_ > 0).sum())
        self.fillers_ = _farthest_apart(_weighed(data), np.flatnonzero(self.scores_ == 0), missing)

    def _find_pairs(self, data: Experiment, model: UMODLDiscretizer) -> tuple[Ints, Floats]:
        data = _weighed(data)
        order = _farthest_apart(data, np.arange(data.X.shape[1]), data.X.shape[1])
        return find_pairs(data, read_cells(data)[1], model.partitions_, order, self.n_jobs)

    def _adopt(self, model: UMODLDiscretizer, effect_only: bool, pairs: Ints, pair_scores: Floats) -> None:
        self.discretizer_, self.pairs_, self.pair_scores_ = model, pairs, pair_scores
        self.scores_ = np.array([part.importance(effect_only) for part in model.partitions_])
        for side in pairs.T:
            np.maximum.at(self.scores_, side, pair_scores)
        self._counted_effect_only = effect_only  # the parameter may be set anew before the next fit

    def _get_support_mask(self) -> Bools:
        mask: Bools = self.scores_ > 0
        mask[self.fillers_] = True
        return mask

    def _nothing_kept(self, n_features: int) -> str:
        return (
            f"UMODLSelector kept none of the {n_features} feature(s): in none of them does UMODL find more than one part, as in "
            "noise. A model behind it has nothing to learn from; UMODLSelector(pairs=True) also looks for features that matter only together, "
            "and UMODLSelector(min_features=1) keeps the best one nevertheless"
        )

    def _get_state(self) -> dict[str, Any]:
        return {
            "discretizer": self.discretizer_,
            "effect_only": self._counted_effect_only,
            "fillers": self.fillers_,
            "pairs": self.pairs_,
            "pair_scores": self.pair_scores_,
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        model, fillers = state["discretizer"], state["fillers"]
        if not isinstance(model, UMODLDiscretizer) or not model.__sklearn_is_fitted__():
            raise ValueError("the discretizer inside a selector is not a fitted UMODLDiscretizer")
        if (model.control_, model.arms_, model._schema) != (self.control_, self.arms_, self._schema):
            raise ValueError("the discretizer inside a selector is of another experiment")
        if not isinstance(state["effect_only"], bool):
            raise ValueError("effect_only is not a yes or no")
        pairs, scores = state["pairs"], state["pair_scores"]
        good = pairs.dtype == np.int64 and pairs.ndim == 2 and pairs.shape[1] == 2 and scores.dtype == np.float64
        good = good and scores.shape == (len(pairs),) and bool(((scores > 0) & (scores < np.inf)).all())
        if not good or (pairs < 0).any() or (pairs[:, 0] >= pairs[:, 1]).any() or (pairs >= self.n_features_in_).any():
            raise ValueError("the pairs of features are not well formed")
        self._adopt(model, state["effect_only"], pairs, scores)
        allowed = set(np.flatnonzero(self.scores_ == 0).tolist())
        good = fillers.dtype == np.int64 and fillers.ndim == 1 and len(set(fillers.tolist())) == len(fillers)
        if not good or not set(fillers.tolist()) <= allowed:
            raise ValueError("the features kept for want of better ones are not well formed")
        self.fillers_ = fillers


def _weighed(data: Experiment) -> Experiment:
    """Without the rows of weight 0."""
    if data.weight is None or (data.weight > 0).all():
        return data
    return data.take(np.flatnonzero(data.weight))


def _farthest_apart(data: Experiment, columns: Ints, wanted: int) -> Ints:
    """Return the columns, at most so many, in which the arms are farthest apart on percentile bins."""
    if wanted <= 0:
        return np.empty(0, dtype=np.int64)
    classes = np.unique(data.y)
    binary = len(classes) == 2
    y = (data.y == classes[1]).astype(np.float64) if binary else data.y
    scores = [bin_score(data, y, binary, CRITERIA["euclidean"].code, 10, int(j))[0] for j in columns]
    return columns[np.argsort(-np.array(scores), kind="stable")[:wanted]]
