"""Splitters that keep every arm, and every outcome within an arm, in the same share on both sides of a split.

Rows are put in the order of their strata, which go by arm, and within a stratum in the order of a hash of (seed, row): a pure
function of both, not of a stream. Folds are dealt from that order like cards, and a random split takes from it at even
steps. Either way every stratum, every arm and the whole are shared out to within one row.

Clusters cannot be cut, so they are dealt from the largest to the smallest, each to the part that has least of what it holds.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils.validation import _num_samples

from upturn._arrays import Floats, Indices
from upturn._clusters import check_clusters, read_clusters
from upturn._parameters import FLAG, SEED, check, is_whole, one_of, whole
from upturn._rows import check_order, take_named
from upturn._seeds import make_seed
from upturn._target import Target, is_packed, read_target
from upturn.kernels.hashing import FOLDS, SPLIT, words

Stratify = Literal["arm-outcome", "arm"]
Split = tuple[Indices, Indices]

_MOST_VALUES = 10  # an outcome with more distinct values than this is real-valued and is cut at its deciles


def _strata(target: Target, stratify: Stratify, smallest: int, what: str) -> Indices:
    """A stratum per row: the arm, or the arm and the outcome. Every stratum has at least ``smallest`` rows."""
    check("stratify", stratify, one_of("arm-outcome", "arm"))
    arm, sizes = target.arm.astype(np.intp), target.sizes
    if sizes.min() < smallest:
        label = target.labels[int(sizes.argmin())]
        raise ValueError(
            f"arm {label!r} has {sizes.min()} row(s), too few for {what}: every part must hold every arm, which needs at least "
            f"{smallest} rows of each"
        )
    if stratify == "arm":
        return arm
    values = np.unique(target.y)
    if len(values) > _MOST_VALUES:
        # The minimum stays an edge of its own: where most people spend nothing, buyers are told from the rest.
        values = np.unique(np.quantile(target.y, np.linspace(0, 1, _MOST_VALUES + 1)))
    kind = np.searchsorted(values, target.y)
    strata = arm * (len(values) + 1) + kind
    counts = np.bincount(strata)
    # Outcomes too rare to be in every part are spread over the arm with whatever else is rare in it.
    rare = counts[strata] < smallest
    strata = np.where(rare, arm * (len(values) + 1) + len(values), strata)
    lonely = np.bincount(strata)[strata] < smallest
    if lonely.any():  # the rare rows of an arm together are still too few: they join its most frequent outcome
        for code in np.unique(arm[lonely]):
            mine = (arm == code) & ~lonely
            strata[lonely & (arm == code)] = np.bincount(strata[mine]).argmax()
    return strata


class UpliftKFold(BaseCrossValidator):  # type: ignore[misc]
    """K folds, each with every arm (and outcome) in the same share as the whole.

    Parameters
    ----------
    n_splits : int
        Number of folds.
    stratify : {"arm-outcome", "arm"}
        Whether the outcome is balanced too. A real-valued outcome is balanced by its deciles.
    shuffle : bool
        Whether rows are dealt to folds at random.
    random_state : int, RandomState, Generator or None
        Seed of the shuffling.

    Examples
    --------
    >>> import upturn as up
    >>> from upturn.model_selection import UpliftKFold
    >>> y, treatment = [0, 0, 1, 1] * 2, [0, 1] * 4
    >>> [test.tolist() for _, test in UpliftKFold(2, random_state=1).split(None, up.pack(y, treatment))]
    [[1, 2, 3, 4], [0, 5, 6, 7]]
    """

    __metadata_request__split: ClassVar = {"treatment": True}

    def __init__(
        self, n_splits: int = 5, *, stratify: Stratify = "arm-outcome", shuffle: bool = True, random_state: Any = None
    ) -> None:
        self.n_splits = n_splits
        self.stratify = stratify
        self.shuffle = shuffle
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, treatment: Any = None, groups: Any = None) -> Iterator[Split]:
        """Yield (train, test) row numbers; ``y`` packed, or plain with ``treatment``; both may be names of columns of X."""
        check("n_splits", self.n_splits, whole(least=2))
        check("shuffle", self.shuffle, FLAG)
        check("random_state", self.random_state, SEED)
        target = _read_split(X, y, treatment, groups)
        strata = _strata(target, self.stratify, self.n_splits, f"{self.n_splits} folds")
        rows = np.arange(len(target))
        order = _shuffled(strata, make_seed(self.random_state), FOLDS, 0) if self.shuffle else _in_order(strata)
        fold = np.empty(len(target), np.intp)
        fold[order] = rows % self.n_splits
        for k in range(self.n_splits):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)

    def get_n_splits(self, X: Any = None, y: Any = None, treatment: Any = None, groups: Any = None) -> int:
        """Number of folds."""
        check("n_splits", self.n_splits, whole(least=2))
        return self.n_splits


class UpliftGroupKFold(BaseCrossValidator):  # type: ignore[misc]
    r"""K folds of whole clusters (households, centres, shops), each with every arm in nearly the same share as the whole.

    A model that has seen half of a household knows something of the other half, and is judged too well on it. Here nobody in
    a test part shares a cluster with anybody in the training part. Clusters are dealt from the largest to the smallest, those of
    about the same size at random, each to the fold k that holds least of the same kind,

    .. math:: \min_k \sum_s \frac{n_{ks}\, c_s}{N_s^2},

    with c_s the cluster's rows of stratum s (an arm, or an arm and an outcome), n_ks those in the fold so far and N_s all.

    Parameters
    ----------
    n_splits : int
        Number of folds.
    stratify : {"arm-outcome", "arm"}
        Whether the outcome is balanced too. A real-valued outcome is balanced by its deciles.
    random_state : int, RandomState, Generator or None
        Seed of the order in which clusters of about the same size (within a factor of two) are dealt.

    Examples
    --------
    >>> import upturn as up
    >>> from upturn.model_selection import UpliftGroupKFold
    >>> shop, treatment, y = [1, 1, 2, 2, 3, 3, 4, 4], [0, 0, 1, 1, 0, 0, 1, 1], [0, 1] * 4
    >>> [test.tolist() for _, test in UpliftGroupKFold(2, random_state=0).split(None, y, treatment, groups=shop)]
    [[2, 3, 4, 5], [0, 1, 6, 7]]
    """

    __metadata_request__split: ClassVar = {"treatment": True, "groups": True}

    def __init__(self, n_splits: int = 5, *, stratify: Stratify = "arm-outcome", random_state: Any = None) -> None:
        self.n_splits = n_splits
        self.stratify = stratify
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, treatment: Any = None, groups: Any = None) -> Iterator[Split]:
        """Yield (train, test) row numbers; ``y`` packed, or plain with ``treatment``; ``groups`` is every row's cluster.

        All three may be names of columns of X.
        """
        check("n_splits", self.n_splits, whole(least=2))
        check("random_state", self.random_state, SEED)
        X, columns, _ = take_named(X, features=False, y=y, treatment=treatment, groups=groups)
        y, treatment, groups = columns.values()
        target = _read_split(X, y, treatment, None)
        shares = np.full(self.n_splits, 1 / self.n_splits)
        part = _deal(target, groups, self.stratify, shares, make_seed(self.random_state), 0, f"{self.n_splits} folds")
        for k in range(self.n_splits):
            yield np.flatnonzero(part != k), np.flatnonzero(part == k)

    def get_n_splits(self, X: Any = None, y: Any = None, treatment: Any = None, groups: Any = None) -> int:
        """Number of folds."""
        check("n_splits", self.n_splits, whole(least=2))
        return self.n_splits


def _deal(
    target: Target, groups: Any, stratify: Stratify, shares: Floats, seed: np.uint64, number: int, what: str
) -> Indices:
    """The part of every row: whole clusters dealt to parts that are to hold the given shares of all rows."""
    if groups is None:
        raise ValueError(
            "groups is None: expected the cluster of every row; where a model is given a splitter and cannot pass it, give the splits "
            "instead, as in cv=list(UpliftGroupKFold(5).split(X, y, treatment, groups))"
        )
    clusters = read_clusters(groups)
    check_clusters(clusters, len(target))
    n = int(clusters.max()) + 1
    if n < len(shares):
        raise ValueError(f"groups holds {n} cluster(s), too few for {what}: a cluster is never cut")
    strata = np.unique(_strata(target, stratify, len(shares), what), return_inverse=True)[1]
    kinds = int(strata.max()) + 1
    held = np.bincount(clusters * kinds + strata, minlength=n * kinds).reshape(n, kinds)
    hashes = np.empty(n, np.uint64)
    words(seed, FOLDS, np.uint64(number), hashes)
    octave = np.frexp(held.sum(axis=1))[1]
    load, part = np.zeros((len(shares), kinds)), np.empty(n, np.intp)
    weight = 1.0 / np.bincount(strata).astype(np.float64) ** 2
    rows = np.zeros(len(shares))  # where nothing tells parts apart, the emptiest is next
    for g in np.lexsort((hashes, -octave)):
        k = np.lexsort((rows / shares, (load @ (held[g] * weight)) / shares))[0]
        part[g] = k
        load[k] += held[g]
        rows[k] += held[g].sum()
    of_rows = part[clusters]
    counts = np.bincount(of_rows * (target.n_arms + 1) + target.arm, minlength=len(shares) * (target.n_arms + 1))
    empty = np.argwhere(counts.reshape(len(shares), -1) == 0)
    if len(empty):
        label = target.labels[int(empty[0, 1])]
        mine = len(np.unique(clusters[target.arm == empty[0, 1]]))
        raise ValueError(
            f"arm {label!r} lies in {mine} cluster(s), too few for {what}: every part must hold every arm, and a cluster is never cut"
        )
    return of_rows


def _split_clusters(
    target: Target, groups: Any, n_repeats: int, test_size: Any, stratify: Stratify, seed: np.uint64
) -> Iterator[Split]:
    """Random splits into train and test that cut no cluster."""
    share = _test_rows(test_size, len(target)) / len(target)
    for repeat in range(n_repeats):
        shares = np.array([1 - share, share])
        part = _deal(target, groups, stratify, shares, seed, repeat, "a train and a test part")
        yield np.flatnonzero(part == 0), np.flatnonzero(part == 1)


class RepeatedUpliftSplit(BaseCrossValidator):  # type: ignore[misc]
    """Random splits into train and test, repeated, each with every arm (and outcome) in the same share.

    Parameters
    ----------
    n_repeats : int
        Number of splits.
    test_size : float or int
        Share of the test part, or its number of rows.
    stratify : {"arm-outcome", "arm"}
        Whether the outcome is balanced too. A real-valued outcome is balanced by its deciles.
    random_state : int, RandomState, Generator or None
        Seed; the same seed gives the same splits.

    Examples
    --------
    >>> import upturn as up
    >>> from upturn.model_selection import RepeatedUpliftSplit
    >>> y, treatment = [0, 0, 1, 1] * 5, [0, 1] * 10
    >>> for train, test in RepeatedUpliftSplit(2, random_state=0).split(None, up.pack(y, treatment)):
    ...     print(len(train), len(test))
    16 4
    16 4
    """

    __metadata_request__split: ClassVar = {"treatment": True}

    def __init__(
        self,
        n_repeats: int = 10,
        *,
        test_size: float = 0.2,
        stratify: Stratify = "arm-outcome",
        random_state: Any = None,
    ) -> None:
        self.n_repeats = n_repeats
        self.test_size = test_size
        self.stratify = stratify
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, treatment: Any = None, groups: Any = None) -> Iterator[Split]:
        """Yield (train, test) row numbers; ``y`` packed, or plain with ``treatment``; both may be names of columns of X."""
        target = _read_split(X, y, treatment, groups)
        yield from _shuffle_split(target, self.n_repeats, self.test_size, self.stratify, self.random_state)

    def get_n_splits(self, X: Any = None, y: Any = None, treatment: Any = None, groups: Any = None) -> int:
        """Number of splits."""
        check("n_repeats", self.n_repeats, whole(least=1))
        return self.n_repeats


def uplift_train_test_split(
    X: Any,
    y: Any,
    treatment: Any = None,
    *arrays: Any,
    test_size: float = 0.25,
    stratify: Stratify = "arm-outcome",
    groups: Any = None,
    random_state: Any = None,
) -> list[Any]:
    """Split an experiment into a train and a test part that have the same arms and outcomes in the same shares.

    Parameters
    ----------
    X, y, treatment : tables and arrays of length n
        The experiment; no treatment when ``y`` is packed. y, treatment and groups may be names of columns of X, which come back
        as columns of their own.
    *arrays : tables or arrays of length n
        Anything else to split the same way, such as weights.
    test_size : float or int
        Share of the test part, or its number of rows.
    stratify : {"arm-outcome", "arm"}
        Whether the outcome is balanced too. A real-valued outcome is balanced by its deciles.
    groups : array-like of shape (n,), optional
        Clusters that are never cut, such as households: all rows of one are on the same side. Sizes are then as near to
        ``test_size`` as whole clusters allow. To have the clusters of both sides, pass them among the arrays too.
    random_state : int, RandomState, Generator or None
        Seed.

    Returns
    -------
    list
        ``X_train, X_test, y_train, y_test, treatment_train, treatment_test, …``, without the treatments when ``y`` is
        packed. Tables come back in the library they came in.

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.model_selection import uplift_train_test_split
    >>> X, y, treatment = np.arange(16).reshape(8, 2), [0, 0, 1, 1] * 2, [0, 1] * 4
    >>> X1, X2, y1, y2, t1, t2 = uplift_train_test_split(X, y, treatment, test_size=0.5, random_state=0)
    >>> sum(t1), sum(t2)
    (2, 2)
    """
    if X is None:
        raise ValueError("X is None: expected the table to split")
    X, columns, _ = take_named(X, y=y, treatment=treatment, groups=groups)
    y, treatment, groups = columns.values()
    target = _read_split(X, y, treatment, None)
    check_order(X=X, **{f"array {i + 1}": array for i, array in enumerate(arrays)})
    for array in arrays:
        if _rows_of(array, "one of the arrays") != len(target.y):
            raise ValueError(
                f"one of the arrays has {_rows_of(array, 'one of the arrays')} rows and y has {len(target.y)}: all must have as many"
            )
    parts = [X, y, *([] if is_packed(y) else [treatment]), *arrays]
    if groups is None:
        train, test = next(_shuffle_split(target, 1, test_size, stratify, random_state))
    else:
        check("random_state", random_state, SEED)
        train, test = next(_split_clusters(target, groups, 1, test_size, stratify, make_seed(random_state)))
    return [take_rows(part, rows) for part in parts for rows in (train, test)]


def take_rows(part: Any, rows: Indices) -> Any:
    """Take some rows of an array, a table, a column or a sequence, in kind."""
    if hasattr(part, "iloc"):  # pandas
        return part.iloc[rows]
    if type(part).__module__.startswith("pyarrow"):
        return part.take(rows)
    if hasattr(part, "shape"):
        return (part.tocsr() if hasattr(part, "tocsr") else part)[rows]
    try:
        return [part[row] for row in rows]
    except Exception as error:  # has a length, and not so many rows
        raise TypeError(
            f"rows cannot be taken from a {type(part).__name__}: expected a table, an array or a list ({type(error).__name__}: {error})"
        ) from error


def _shuffle_split(
    target: Target, n_repeats: int, test_size: Any, stratify: Stratify, random_state: Any
) -> Iterator[Split]:
    check("n_repeats", n_repeats, whole(least=1))
    check("random_state", random_state, SEED)
    n = len(target)
    n_test = _test_rows(test_size, n)
    # A stratum of this many rows has at least one on each side.
    smallest = math.ceil(n / max(1, min(n_test, n - n_test)))
    strata = _strata(target, stratify, smallest, f"{n - n_test} rows to train and {n_test} to test")
    seed, steps = make_seed(random_state), np.arange(n + 1, dtype=np.int64) * n_test
    for repeat in range(n_repeats):
        order = _shuffled(strata, seed, SPLIT, repeat)
        start = np.empty(1, np.uint64)
        words(seed, SPLIT, np.uint64(n_repeats + repeat), start)
        # Row i of the order is taken when a multiple of n lies in its step of n_test: n_test rows, evenly spread.
        taken = np.diff((steps + int(start[0] % np.uint64(n))) // n) > 0
        tested = np.zeros(n, np.bool_)
        tested[order[taken]] = True
        yield np.flatnonzero(~tested), np.flatnonzero(tested)


def _test_rows(test_size: Any, n: int) -> int:
    """Rows of the test part, from their share or number."""
    share = isinstance(test_size, float | np.floating) and 0 < test_size < 1
    if not share and not (is_whole(test_size) and 0 < test_size < n):
        raise ValueError(
            f"test_size={reprlib.repr(test_size)}: expected a share between 0 and 1, or a number of rows below {n}"
        )
    return math.ceil(test_size * n) if share else int(test_size)


def _in_order(strata: Indices) -> Indices:
    return np.argsort(strata, kind="stable")


def _shuffled(strata: Indices, seed: np.uint64, purpose: np.uint64, number: int) -> Indices:
    """Rows by stratum, and within a stratum by their hash."""
    hashes = np.empty(len(strata), np.uint64)
    words(seed, purpose, np.uint64(number), hashes)
    return np.lexsort((hashes, strata))


def folds_of(X: Any, target: Target, cv: Any, seed: np.uint64, groups: Any = None) -> list[Split]:
    """Read ``cv=``: a number of folds, a splitter of ours or of scikit-learn, or (train, test) row numbers.

    A splitter of scikit-learn is given the arms to stratify by. With groups, a number means folds of whole clusters, and
    repeated splits are made of them; any other splitter must keep them together.
    """
    if isinstance(cv, UpliftGroupKFold):
        return list(cv.split(X, target.y, target.arm, groups))
    if groups is not None:
        if is_whole(cv):
            return list(UpliftGroupKFold(int(cv), random_state=int(seed)).split(X, target.y, target.arm, groups))
        if isinstance(cv, RepeatedUpliftSplit):
            own = make_seed(cv.random_state)
            return list(_split_clusters(target, groups, cv.n_repeats, cv.test_size, cv.stratify, own))
        folds = (
            folds_of(X, target, cv, seed) if not hasattr(cv, "split") else list(cv.split(X, target.arm, groups=groups))
        )
        _check_whole(folds, read_clusters(groups), cv)
        return [(_row_numbers(train, len(target)), _row_numbers(test, len(target))) for train, test in folds]
    if is_whole(cv):
        check("cv", cv, whole(least=2).named("at least 2 folds, 5 is usual"))
        few = int(target.sizes.argmin())
        if target.sizes[few] < cv:
            raise ValueError(
                f"{target.name_of(few)} has {target.sizes[few]} row(s), fewer than cv={cv} folds: every fold needs a row of every "
                "arm; lower cv, or leave that arm out"
            )
        cv = UpliftKFold(int(cv), random_state=int(seed))
    if isinstance(cv, UpliftKFold | RepeatedUpliftSplit):
        return list(cv.split(X, target.y, target.arm))
    try:
        splits = cv.split(X, target.arm) if hasattr(cv, "split") and not isinstance(cv, str) else cv
        folds = [(_row_numbers(train, len(target)), _row_numbers(test, len(target))) for train, test in splits]
        if not folds:
            raise ValueError("there is no split in it")
        return folds
    except Exception as error:  # of a splitter of any kind
        raise ValueError(
            f"cv={reprlib.repr(cv)}: expected a number of folds, a splitter such as UpliftKFold(5), or a list of (train, test) row "
            f"numbers ({error})"
        ) from error


def _check_whole(folds: list[Split], clusters: Indices, cv: Any) -> None:
    """Refuse splits that cut clusters."""
    for train, test in folds:
        cut = np.intersect1d(clusters[train], clusters[test])
        if len(cut):
            raise ValueError(
                f"cv={reprlib.repr(cv)} puts rows of {len(cut):,} cluster(s) of groups on both sides of a split: use UpliftGroupKFold, or a "
                "number of folds"
            )


def _row_numbers(rows: Any, n: int) -> Indices:
    """One side of a split as row numbers; a mask is turned into them."""
    array = np.asarray(rows)
    if array.dtype == np.bool_ and array.shape == (n,):
        return np.flatnonzero(array)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.size and not -n <= array.min() <= array.max() < n):
        raise ValueError(f"a side of a split is not made of row numbers below {n}")
    return array.astype(np.intp)


def _read_split(X: Any, y: Any, treatment: Any, groups: Any) -> Target:
    if groups is not None:
        raise ValueError(
            "groups is not used here: rows are dealt one by one; use UpliftGroupKFold to keep groups together"
        )
    X, columns, _ = take_named(X, features=False, y=y, treatment=treatment)
    target = read_target(**columns, any_control=True)
    if X is not None and _rows_of(X, "X") != len(target.y):
        raise ValueError(f"X has {_rows_of(X, 'X')} rows and y has {len(target.y)}: they must describe the same rows")
    return target


def _rows_of(part: Any, name: str) -> int:
    try:
        return int(_num_samples(part))
    except Exception as error:  # whatever an object raises when it is asked
        raise TypeError(
            f"{name} is a {type(part).__name__}, which has no rows: expected a table, an array or a list ({error})"
        ) from None
