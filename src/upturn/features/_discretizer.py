"""UMODL: the Bayes-optimal discretisation of each feature for uplift."""

from __future__ import annotations

import reprlib
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from upturn._arrays import Floats, Ints
from upturn._experiment import Experiment
from upturn._parallel import run_parallel
from upturn._parameters import JOBS, LABEL, VERBOSE, check, is_whole, one_of
from upturn._results import Table, like_input
from upturn._target import Label
from upturn.base import Gated
from upturn.features._cells import MOST_CLASSES, Cells, read_cells
from upturn.features._column import column_of, partition_column
from upturn.features._partition import Partition

SEARCH = one_of("auto", "exact", "greedy")
ENCODING = one_of("code", "effect", "onehot")


class UMODLDiscretizer(TransformerMixin, Gated):  # type: ignore[misc]
    r"""Cut each feature into the intervals or value groups that best tell how the outcome depends on the treatment.

    A model M of one feature is a number I of parts, their bounds, a flag :math:`W_i` for each part that says whether
    the arms differ in it, and the class frequencies that follow. Its cost is minus the logarithm of prior times
    likelihood (equation 2 of [1]_), and the cheapest model is searched for:

    .. math::
        C(M) = \log N + \log\binom{N+I-1}{I-1} + I \log 2
        + \sum_{i: W_i = 0} \log\binom{N_i+J-1}{J-1} \frac{N_i!}{\prod_j N_{i.j}!}
        + \sum_{i: W_i = 1} \sum_t \log\binom{N_{it}+J-1}{J-1} \frac{N_{it}!}{\prod_j N_{itj}!}

    There is nothing to tune: a feature in which nothing happens comes out in one part.

    Categorical features are grouped by value, with the prior :math:`\log V + \log B(V, I) + I \log 2`, B counting the
    partitions of V values into at most I groups. Missing values are a part of their own, counted in I (and in V).
    With several arms, :math:`W_i = 1` separates all of them. An arm without rows in a part contributes nothing.

    Parameters
    ----------
    search : {"auto", "exact", "greedy"}
        "auto" searches exactly by dynamic programming up to about 2,000 boundary points, and beyond in steps whose
        result is at or near the optimum; "exact" always exactly (O(points²), up to 30,000 points); "greedy" is the
        paper's bottom-up merging with its post-optimisation.
    encode : {"code", "effect", "onehot"}
        What ``transform`` returns: the number of the part, its estimated effect (a column for each arm), or a 0-1
        column for each part.
    n_jobs : int, optional
        Columns are searched on so many threads.
    verbose : int
        1 shows a progress bar.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    partitions_ : list of Partition
        By feature: ``edges`` or ``groups``, ``counts`` by part, arm and class, ``separate`` (the W), costs.
    n_parts_, cost_, null_cost_, compression_ : arrays of shape (n_features,)
        Number of parts; cost of the model and of a single part; 1 - cost / null cost.
    feature_importances_ : array of shape (n_features,)
        Equation (11): mean squared difference of the arms' rates over the parts, 0 for a single part.
    encoding_ : str
        The ``encode`` of the fit.
    classes_ : array
        The distinct outcomes. With two, the larger is success; with more, effects are differences of means.
    control_, arms_ : label, list of labels

    Notes
    -----
    The outcome must be a class: two values, or up to 20 whole numbers. ``sample_weight`` must be whole numbers and
    counts rows several times, as the criterion is about counts.

    A missing value (or an unseen level) where there was none at fit gets code -1, effect 0 and no 0-1 column.

    References
    ----------
    .. [1] M. Rafla, N. Voisine, B. Crémilleux, M. Boullé, "A non-parametric Bayesian approach for uplift
       discretization and feature selection", ECML PKDD 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.features import UMODLDiscretizer
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.uniform(size=(2000, 2)), rng.integers(0, 2, 2000)
    >>> y = rng.random(2000) < 0.3 + 0.4 * treatment * (X[:, 0] > 0.5)  # it works on half of the people
    >>> umodl = UMODLDiscretizer(encode="effect").fit(X, y, treatment)
    >>> umodl.n_parts_
    array([2, 1])
    >>> umodl.partitions_[0].edges.round(2)
    array([0.5])
    >>> umodl.transform([[0.2, 0.5], [0.8, 0.5]]).round(1)  # the second feature only knows the average effect
    array([[0. , 0.2],
           [0.4, 0.2]])
    """

    def __init__(
        self,
        *,
        search: Literal["auto", "exact", "greedy"] = "auto",
        encode: Literal["code", "effect", "onehot"] = "code",
        n_jobs: int | None = None,
        verbose: int = 0,
        control: Label | None = None,
    ) -> None:
        self.search = search
        self.encode = encode
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.control = control

    _any_size = True
    _float32 = True  # columns are looked at one by one, in double precision
    _parameters: ClassVar = {
        "search": SEARCH,
        "encode": ENCODING,
        "n_jobs": JOBS,
        "verbose": VERBOSE,
        "control": LABEL,
    }

    def _fit(self, data: Experiment) -> None:
        if data.weight is not None and (data.weight == 0).any():
            data = data.take(np.flatnonzero(data.weight))
        classes, cells = read_cells(data)
        fit_one = partial(_fit_column, data, cells, self.search)
        self.partitions_ = run_parallel(
            fit_one, range(data.X.shape[1]), n_jobs=self.n_jobs, verbose=self.verbose, description="UMODL"
        )
        self.classes_, self.encoding_ = classes, self.encode

    @property
    def n_parts_(self) -> Ints:
        """Number of parts by feature."""
        return np.array([part.n_parts for part in self.partitions_], dtype=np.int64)

    @property
    def cost_(self) -> Floats:
        """Cost of the model found, by feature."""
        return np.array([part.cost for part in self.partitions_])

    @property
    def null_cost_(self) -> Floats:
        """Cost of a single part, by feature."""
        return np.array([part.null_cost for part in self.partitions_])

    @property
    def compression_(self) -> Floats:
        """1 - cost / null cost, by feature."""
        return np.array([part.compression for part in self.partitions_])

    @property
    def feature_importances_(self) -> Floats:
        """Equation (11), by feature."""
        return np.array([part.importance() for part in self.partitions_])

    def transform(self, X: Any) -> Any:
        """Encode a table: codes, effects or 0-1 columns, as ``encode`` said at fit.

        Parameters
        ----------
        X : table of shape (n, p)

        Returns
        -------
        array of shape (n, columns), or a frame of the library that X came in
        """
        check_is_fitted(self)
        return self.encode_as(X, self.encoding_)

    def encode_as(self, X: Any, encode: Literal["code", "effect", "onehot"]) -> Any:
        """Encode a table in another way than ``transform`` does."""
        matrix = self._encode(X)
        check("encode", encode, ENCODING)
        blocks: list[NDArray[Any]] = []
        for j, part in enumerate(self.partitions_):
            codes = part.codes(column_of(matrix, j))
            if encode == "code":
                blocks.append(codes[:, None])
            elif encode == "effect":
                effects = np.vstack([part.effects(self.classes_), np.zeros(len(self.arms_))])  # last row: code -1
                blocks.append(effects[codes])
            else:
                blocks.append((codes[:, None] == np.arange(part.n_parts)).astype(np.float64))
        return like_input(X, np.hstack(blocks), self._names_of(encode))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns that ``transform`` returns."""
        check_is_fitted(self)
        return np.array(self._names_of(self.encoding_), dtype=object)

    def _names_of(self, encode: str) -> list[str]:
        names: list[str] = []
        for j, (name, part) in enumerate(zip(self._schema.names, self.partitions_, strict=True)):
            if encode == "onehot":
                labels = part.labels(self._schema.levels[j])
                names += [f"{name}={label}" for label in labels]
            elif encode == "effect" and len(self.arms_) > 1:
                names += [f"{name}:{arm}" for arm in self.arms_]
            else:
                names.append(name)
        return names

    def summary(self) -> Table:
        """Return a table with a row for each part of each feature: rows, W, the arms' rates, and the effects.

        ``difference`` is the raw difference to control, ``effect`` the same with 0 where the model sees none. An arm
        without rows in a part takes the rate of the part. ``summary().to_frame()`` is a frame of the library that X
        came in.
        """
        check_is_fitted(self)
        columns: dict[str, list[Any]] = {"feature": [], "part": [], "rows": [], "separate": []}
        labels = [self.control_, *self.arms_]
        several = len(self.arms_) > 1
        rate = "rate" if len(self.classes_) == 2 else "mean"
        for j, (name, part) in enumerate(zip(self._schema.names, self.partitions_, strict=True)):
            columns["feature"] += [name] * part.n_parts
            columns["part"] += part.labels(self._schema.levels[j])
            columns["rows"] += part.counts.sum(axis=(1, 2)).tolist()
            columns["separate"] += part.separate.tolist()
            for a, label in enumerate(labels):
                columns.setdefault(f"{rate}[{label}]", []).extend(part.responses(self.classes_)[:, a].tolist())
            for a, label in enumerate(self.arms_):
                of = f"[{label}]" if several else ""
                columns.setdefault(f"difference{of}", []).extend(part.differences(self.classes_)[:, a].tolist())
                columns.setdefault(f"effect{of}", []).extend(part.effects(self.classes_)[:, a].tolist())
        return Table(columns, library=self._library)

    def partition_of(self, feature: str | int) -> tuple[str, Partition, list[str]]:
        """Return the name of a feature, its partition, and its parts in words.

        Parameters
        ----------
        feature : str or int
            Name or position.
        """
        check_is_fitted(self)
        j = _position(feature, self._schema.names)
        part = self.partitions_[j]
        return self._schema.names[j], part, part.labels(self._schema.levels[j])

    def _get_state(self) -> dict[str, Any]:
        parts = [part.to_state() for part in self.partitions_]
        return {"classes": self.classes_, "partitions": parts, "encoding": self.encoding_}

    def _set_state(self, state: dict[str, Any]) -> None:
        classes, parts = state["classes"], state["partitions"]
        if classes.dtype != np.float64 or classes.ndim != 1 or not 2 <= len(classes) <= MOST_CLASSES:
            raise ValueError("the classes are not well formed")
        if not np.isfinite(classes).all() or (np.diff(classes) <= 0).any():
            raise ValueError("the classes are not increasing numbers")
        if not isinstance(parts, list) or len(parts) != self.n_features_in_:
            raise ValueError("there must be one partition for each feature")
        check("encoding", state["encoding"], ENCODING)
        levels = [None if level is None else len(level) for level in self._schema.levels]
        self.partitions_ = [
            Partition.from_state(part, len(self.arms_) + 1, len(classes), n_levels)
            for part, n_levels in zip(parts, levels, strict=True)
        ]
        if not all(np.isfinite(part.differences(classes)).all() for part in self.partitions_):
            raise ValueError("an effect is too large for a float")
        self.classes_, self.encoding_ = classes, state["encoding"]


def _fit_column(data: Experiment, cells: Cells, search: str, j: int) -> Partition:
    levels = data.schema.levels[j]
    return partition_column(column_of(data.X, j), cells, None if levels is None else len(levels), search)


def _position(feature: str | int, names: tuple[str, ...]) -> int:
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if is_whole(feature) and 0 <= int(feature) < len(names):
        return int(feature)
    raise ValueError(
        f"there is no feature {reprlib.repr(feature)}: expected a position from 0 to {len(names) - 1} or one of "
        f"{', '.join(map(repr, names[:10]))}{', …' if len(names) > 10 else ''}"
    )
