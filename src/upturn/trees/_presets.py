"""Contextual treatment selection, as its papers define it."""

from __future__ import annotations

from typing import Any

from upturn._target import Label
from upturn.trees._forest import UpliftForest


class CTSForest(UpliftForest):
    r"""Contextual treatment selection (CTS): a forest that splits where another arm becomes the best.

    A split of node φ into two is worth the increase of the best arm's expected response,

    .. math:: \hat p_l \max_t \hat y_t(\phi_l) + \hat p_r \max_t \hat y_t(\phi_r) - \max_t \hat y_t(\phi),

    control being one of the arms t. In this score an arm with fewer than ``min_samples_split`` rows in a node takes its
    estimate from the parent, and the others are shrunk towards it by ``n_reg`` rows; leaves predict plain means. A node is a leaf only when every arm has fewer than
    ``min_samples_split`` rows; the best split is made even where it gains nothing. Any number of arms, any outcome.

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    min_samples_split : "auto" or float
        The papers' ``min_split``; their most important parameter, worth tuning. "auto" is twice the square root of the rows
        of the smallest arm, at least 10, and never more than a third of them.
    n_reg : float
        Weight of the parent's estimate, in rows.
    leaf : {"mean", "regularized"}
        What leaves predict: plain means of the tree's rows, inherited from the parent where an arm has none; or the same
        inherited and shrunk estimates that score the splits. A CTS leaf has fewer than ``min_samples_split`` rows of every
        arm, so by the second reading all its values come from further up, one arm's perhaps from further than another's.
    max_features : None, "sqrt", int or float
        The papers' ``mtry``.
    min_share : float
        Smallest share of a node's rows on each side of a split; 0 in the paper. Without it the best score is often that of a
        cut near the end of a feature, where the few rows beyond it make one arm look good.
    max_depth : int, optional
        Depth limit.
    max_samples : float
        Mean number of copies of a row in a tree's bootstrap.
    oob, max_bins, random_state, n_jobs, verbose, control
        As in :class:`UpliftForest`.

    Attributes
    ----------
    nodes_, feature_importances_, centered_, propensity_kind_, propensity_pvalue_, propensity_auc_, oob_response_, oob_prediction_, control_, arms_
        As in :class:`UpliftForest`.

    References
    ----------
    Zhao, Fang, Simchi-Levi, "Uplift modeling with multiple treatments and general response types", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.trees import CTSForest
    >>> rng = np.random.default_rng(0)
    >>> X, arm = rng.uniform(size=(3000, 3)), rng.choice(["control", "mail", "call"], 3000)
    >>> y = rng.normal(size=3000) + (arm == "mail") * (2 * X[:, 0] - 1) + (arm == "call") * (1 - 2 * X[:, 0])
    >>> forest = CTSForest(n_estimators=50, min_samples_split=30, random_state=0).fit(X, y, arm)
    >>> forest.recommend([[0.9, 0.5, 0.5], [0.1, 0.5, 0.5]])
    array(['mail', 'call'], dtype='<U7')
    """

    criterion = "cts"
    normalize = False
    laplace = False
    min_samples_leaf = 1
    min_samples_arm = 0
    pi = 0.0
    min_gain = None
    honest = False
    bootstrap = True
    ci_group_size = 1
    center = False
    propensity = "shares"
    inference = False

    def __init__(
        self,
        n_estimators: int = 400,
        *,
        min_samples_split: Any = "auto",
        n_reg: float = 0.0,
        leaf: str = "mean",
        max_features: Any = 0.5,
        min_share: float = 0.1,
        max_depth: int | None = None,
        max_samples: float = 1.0,
        oob: bool = False,
        max_bins: int = 255,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        control: Label | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.min_samples_split = min_samples_split
        self.n_reg = n_reg
        self.leaf = leaf
        self.max_features = max_features
        self.min_share = min_share
        self.max_depth = max_depth
        self.max_samples = max_samples
        self.oob = oob
        self.max_bins = max_bins
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.control = control


class UCTSForest(UpliftForest):
    r"""Unbiased contextual treatment selection (UCTS): CTS with honest leaves, which makes it consistent.

    For every tree, a share ``rho`` of the rows of each arm shapes the tree by the criterion of :class:`CTSForest`; the
    other rows give the leaf responses, plain means that an arm without rows inherits from the parent node. Each split
    leaves at least a share ``min_share`` of the shaping rows on either side, and with probability ``pi`` a node looks at one
    random feature only.

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    rho : float
        Share of the rows that shape a tree.
    min_samples_split : "auto" or float
        The paper's ``min_split``, counted in shaping rows; its most important parameter, worth tuning. "auto" is twice the
        square root of the shaping rows of the smallest arm, at least 10, and never more than a third of them.
    n_reg : float
        Weight of the parent's estimate while shaping, in rows.
    max_features : None, "sqrt", int or float
        The paper's ``mtry``.
    pi : float
        Probability of a node with one random feature.
    min_share : float
        The paper's ``alpha``: smallest share of a node's rows on each side of a split.
    max_depth : int, optional
        Depth limit.
    max_samples : float
        Share of the rows a tree sees at all, by arm; the paper uses all of them.
    ci_group_size : int
        With 2 or more, trees share half-samples in groups of that size and ``predict_interval`` works.
    oob, max_bins, random_state, n_jobs, verbose, control
        As in :class:`UpliftForest`.

    Attributes
    ----------
    nodes_, feature_importances_, centered_, propensity_kind_, propensity_pvalue_, propensity_auc_, oob_response_, oob_prediction_, control_, arms_
        As in :class:`UpliftForest`.

    References
    ----------
    Zhao, Fang, Simchi-Levi, "A practically competitive and provably consistent algorithm for uplift modeling", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.trees import UCTSForest
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.uniform(size=(4000, 3)), rng.integers(0, 2, 4000)
    >>> y = rng.normal(size=4000) + treatment * (2 * X[:, 0] - 1)
    >>> forest = UCTSForest(n_estimators=50, min_samples_split=50, random_state=0).fit(X, y, treatment)
    >>> forest.recommend([[0.9, 0.5, 0.5], [0.1, 0.5, 0.5]])
    array([1, 0])
    """

    criterion = "cts"
    normalize = False
    laplace = False
    min_samples_leaf = 1
    min_samples_arm = 0
    min_gain = None
    honest = True
    leaf = "mean"
    bootstrap = False
    center = False
    propensity = "shares"
    inference = False

    def __init__(
        self,
        n_estimators: int = 400,
        *,
        rho: float = 0.5,
        min_samples_split: Any = "auto",
        n_reg: float = 0.0,
        max_features: Any = 0.5,
        pi: float = 0.05,
        min_share: float = 0.1,
        max_depth: int | None = None,
        max_samples: float = 1.0,
        ci_group_size: int = 1,
        oob: bool = False,
        max_bins: int = 255,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        control: Label | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.rho = rho
        self.min_samples_split = min_samples_split
        self.n_reg = n_reg
        self.max_features = max_features
        self.pi = pi
        self.min_share = min_share
        self.max_depth = max_depth
        self.max_samples = max_samples
        self.ci_group_size = ci_group_size
        self.oob = oob
        self.max_bins = max_bins
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.control = control
