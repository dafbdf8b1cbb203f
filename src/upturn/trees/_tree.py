"""The single uplift tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Ints
from upturn._experiment import Experiment
from upturn._parameters import FLAG, Rule
from upturn._seeds import make_seed
from upturn._target import Label
from upturn.kernels.criteria import Rules
from upturn.kernels.forest import twin_codes
from upturn.trees import _export
from upturn.trees._base import SHARE, Scale
from upturn.trees._center import leaf_sums
from upturn.trees._growth import Soil, rows_of
from upturn.trees._member import MemberTree
from upturn.trees._prune import prune
from upturn.trees._samples import VALIDATION, Sampling


class UpliftTree(MemberTree):
    r"""A tree that splits where treatment and control differ most, or where another arm becomes the best.

    With D the divergence of the outcome's distributions in two arms, a split is worth

    .. math:: \sum_k \Big[ \sum_{a} P(a)\, D\big(P_k(y \mid a) : P_0(y \mid a)\big) - D\big(P_k(y) : P_0(y)\big) \Big],

    summed over treatment arms k (0 is control) and over the two sides a, divided, if ``normalize``, by a factor that is
    large where a split treats the arms unequally. With ``criterion="cts"`` it is worth the increase of the best arm's
    expected response, control being one of the arms.

    Parameters
    ----------
    criterion : {"euclidean", "kl", "chi2", "cts"}
        Squared Euclidean distance, Kullback-Leibler or chi-square divergence, or contextual treatment selection. KL and
        chi-square need an outcome of two values; the others take any (for real-valued outcomes the Euclidean distance
        is the squared difference of means).
    normalize : bool
        Divide the gain of a divergence by the factor of Rzepakowski and Jaroszewicz. With several arms, the factor's
        divergence is summed over arms and its impurity is that of all arms' shares.
    laplace : bool
        Correct the success rates inside the divergences by one success and one failure. Leaf values are never
        corrected.
    max_depth : int, optional
        Depth limit; 0 is a single leaf.
    min_samples_split : "auto" or float
        A node is a leaf when every arm has fewer rows. For "cts", also the number of rows below which an arm takes its
        parent's estimate. "auto" is the number of ``min_samples_arm="sqrt"``.
    min_samples_leaf : float
        Fewest rows of a leaf.
    min_samples_arm : "sqrt" or float
        Fewest rows of each arm in a leaf. "sqrt" is twice the square root of the number of rows that shape the tree in
        its smallest arm, and at least 10, but never more than a third of those rows: leaves grow with the experiment, and so
        does their number.
    max_features : None, "sqrt", int or float
        Features looked at in a node: all, their square root, a number or a share. More are drawn while none of them
        offers an admissible split.
    min_share : float
        Each side of a split keeps at least this share of the node's rows.
    pi : float
        Probability that a node looks at one random feature only.
    n_reg : float
        Weight of the parent's estimate in a node's, in rows.
    leaf : {"mean", "regularized"}
        For "cts": leaf values are plain means of the tree's rows, inherited from the parent where an arm has none; or the
        estimates that splits are scored by, inherited where an arm has fewer than ``min_samples_split`` rows and shrunk by
        ``n_reg``. The other criteria score splits by plain means, and ``n_reg`` shrinks their leaves only.
    min_gain : float, optional
        A split must gain more than this; by default 0, and no limit for "cts".
    honest : bool
        Shape the tree on a share ``rho`` of the rows, by arm, and take its values from the others.
    rho : float
        That share.
    prune : bool
        Cut back, bottom up, every split without which the AUUC of ``validation_fraction`` of the rows, kept apart by
        arm, is no worse.
    validation_fraction : float
        Share of the rows for pruning.
    max_bins : int
        Bins of a feature, at most 255. A feature with no more distinct values loses nothing.
    random_state : int, RandomState, Generator or None
        Seed of ties, drawn features and samples.
    n_jobs : int, optional
        Threads for binning and prediction; no result depends on it.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    nodes_ : Nodes
        The fitted tree as a flat table.
    feature_importances_ : array of shape (p,)
    control_, arms_ : label, list of labels

    Notes
    -----
    Weights count as rows everywhere, in the minima too: give them a mean of about 1. Missing values go to the side that
    gains more; where a node has none they follow the heavier side. Levels of a category are ordered, in each node, by
    their effect, and cut like a number; with several arms every arm's order is tried. Levels a node has not seen go
    the way of missing values. Only the 254 most frequent levels of a feature stay apart; the others are one.
    Zero probabilities inside KL and chi-square are kept 2^-20 (one in a million) away from 0 and 1.

    References
    ----------
    Rzepakowski, Jaroszewicz, "Decision trees for uplift modeling with single and multiple treatments", 2012.
    Sołtys, Jaroszewicz, "Boosting algorithms for uplift modeling", section 1.2.
    Zhao, Fang, Simchi-Levi, "A practically competitive and provably consistent algorithm for uplift modeling", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.trees import UpliftTree
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.integers(0, 10, (4000, 2)), rng.integers(0, 2, 4000)
    >>> y = rng.random(4000) < 0.4 + 0.3 * treatment * np.where(X[:, 0] < 5, 1, -1)
    >>> tree = UpliftTree(max_depth=1, random_state=0).fit(X, y, treatment)
    >>> print(tree.export_text(digits=2))
    effects and outcomes per 1,000 people
    all: effect +7.3 [0: 390 (n=1,948); 1: 400 (n=2,052)]
    |   x0 <= 4.5: effect +320 [0: 390 (n=957); 1: 710 (n=1,016)]
    |   x0 > 4.5: effect -300 [0: 400 (n=991); 1: 99 (n=1,036)]
    >>> tree.recommend([[2, 0], [7, 0]])
    array([1, 0])
    """

    _parameters: ClassVar[Mapping[str, Rule]] = {**MemberTree._parameters, "prune": FLAG, "validation_fraction": SHARE}

    def __init__(
        self,
        criterion: str = "euclidean",
        *,
        normalize: bool = True,
        laplace: bool = True,
        max_depth: int | None = 5,
        min_samples_split: Any = 2,
        min_samples_leaf: float = 1,
        min_samples_arm: Any = "sqrt",
        max_features: Any = None,
        min_share: float = 0.0,
        pi: float = 0.0,
        n_reg: float = 0.0,
        leaf: str = "mean",
        min_gain: float | None = None,
        honest: bool = False,
        rho: float = 0.5,
        prune: bool = False,
        validation_fraction: float = 0.3,
        max_bins: int = 255,
        random_state: Any = None,
        n_jobs: int | None = None,
        control: Label | None = None,
    ) -> None:
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
        self.prune = prune
        self.validation_fraction = validation_fraction
        self.max_bins = max_bins
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.control = control

    def _fit(self, data: Experiment) -> None:
        soil, scale = self._soil(data)
        rules, share = self._fit_soil(soil, scale)
        self._tell_constant(soil, rules, share)

    def _fit_soil(self, soil: Soil, scale: Scale) -> tuple[Rules, float]:
        """Fit on an experiment that is already binned; returns the rules, and the share of the rows that shaped the tree."""
        seed, plan = make_seed(self.random_state), self._sampling(soil.rows)
        rules = self._rules(soil, scale.binary, plan.share, scale.span)
        role, copies = soil.roles(plan, seed, 0)
        nodes = soil.grow_on(role, copies, rules, seed, 0)
        if self.prune:
            rows = rows_of(role, copies, VALIDATION, soil.words, soil.arm, soil.layout)
            codes = twin_codes(np.ascontiguousarray(soil.codes[:, np.asarray(rows.index)]))
            nodes = prune(nodes, leaf_sums(nodes, codes, rows, soil.layout, len(soil.mean)), soil.layout)
        self._keep(soil, nodes, scale)
        return rules, plan.share

    def _sampling(self, rows: Ints) -> Sampling:
        """Which rows the tree sees, of so many in each arm: at least one of each stays on either side of the validation."""
        if self.prune and (rows < 2).any():
            raise ValueError(
                f"prune=True keeps rows of each arm apart for validation, and the smallest arm has {rows.min()} row(s): "
                "expected at least 2 in each"
            )
        held = float(self.validation_fraction) if self.prune else 0.0
        return Sampling(rho=self.rho if self.honest else None, validation=held)

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Leaf each row falls in: an array of node numbers of shape (n,)."""
        matrix = self._encode(X)
        return self.nodes_.apply(self.bins_, matrix, self.n_jobs)[:, 0]

    def export_json(self) -> dict[str, Any]:
        """The tree as nested dicts of JSON values.

        ``{"arms": [...], "rate": bool, "root": node}``, ``rate`` saying whether the outcome is yes or no; a node has ``node``, ``weight`` and ``response`` per arm (control first) and
        ``effect``; an inner node also ``feature``, ``gain``, ``missing`` (the side), ``threshold`` (values up to it go
        left) or ``levels`` (those go left), ``left`` and ``right``.
        """
        return self._describe(0)

    def export_text(self, *, digits: int = 4) -> str:
        """The tree as indented text, with effects and each arm's response and number of rows in every node.

        Rates are per 1,000 people, other outcomes per person, with so many significant digits.
        """
        return _export.to_text(self.export_json(), digits)
