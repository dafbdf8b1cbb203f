"""Splitters that keep every arm, and every outcome within an arm, in the same share on both sides of a split."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold, StratifiedShuffleSplit
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from upturn._arrays import Indices
from upturn._target import Target, is_packed, read_target

Stratify = Literal["arm-outcome", "arm"]
Split = tuple[Indices, Indices]

_MOST_VALUES = 10  # an outcome with more distinct values than this is real-valued and is cut at its deciles


def _strata(target: Target, stratify: Stratify, smallest: int, what: str) -> Indices:
    """A stratum per row: the arm, or the arm and the outcome. Every stratum has at least ``smallest`` rows."""
    if stratify not in ("arm-outcome", "arm"):
        raise ValueError(f"stratify={stratify!r}: expected 'arm-outcome' or 'arm'")
    arm = target.arm.astype(np.intp)
    sizes = np.bincount(arm, minlength=target.n_arms + 1)
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
    >>> [test.tolist() for _, test in UpliftKFold(2, random_state=0).split(None, up.pack(y, treatment))]
    [[1, 2, 4, 7], [0, 3, 5, 6]]
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
        """Yield (train, test) row numbers; ``y`` packed, or plain with ``treatment``."""
        target = _read_split(X, y, treatment, groups)
        strata = _strata(target, self.stratify, self.n_splits, f"{self.n_splits} folds")
        seed = _seed(self.random_state) if self.shuffle else None
        # Dealt in the order of the strata, which go by arm, so that arms too are even to within one row.
        order = np.argsort(strata, kind="stable")
        folds = StratifiedKFold(self.n_splits, shuffle=self.shuffle, random_state=seed)
        for train, test in folds.split(order, strata[order]):
            yield np.sort(order[train]), np.sort(order[test])

    def get_n_splits(self, X: Any = None, y: Any = None, treatment: Any = None, groups: Any = None) -> int:
        """Number of folds."""
        return self.n_splits


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
        """Yield (train, test) row numbers; ``y`` packed, or plain with ``treatment``."""
        target = _read_split(X, y, treatment, groups)
        yield from _shuffle_split(target, self.n_repeats, self.test_size, self.stratify, self.random_state)

    def get_n_splits(self, X: Any = None, y: Any = None, treatment: Any = None, groups: Any = None) -> int:
        """Number of splits."""
        return self.n_repeats


def uplift_train_test_split(
    X: Any,
    y: Any,
    treatment: Any = None,
    *arrays: Any,
    test_size: float = 0.25,
    stratify: Stratify = "arm-outcome",
    random_state: Any = None,
) -> list[Any]:
    """Split an experiment into a train and a test part that have the same arms and outcomes in the same shares.

    Parameters
    ----------
    X, y, treatment : tables and arrays of length n
        The experiment; no treatment when ``y`` is packed.
    *arrays : tables or arrays of length n
        Anything else to split the same way, such as weights.
    test_size : float or int
        Share of the test part, or its number of rows.
    stratify : {"arm-outcome", "arm"}
        Whether the outcome is balanced too. A real-valued outcome is balanced by its deciles.
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
    target = _read_split(X, y, treatment, None)
    for array in arrays:
        if _num_samples(array) != len(target.y):
            raise ValueError(
                f"one of the arrays has {_num_samples(array)} rows and y has {len(target.y)}: all must have as many"
            )
    train, test = next(_shuffle_split(target, 1, test_size, stratify, random_state))
    parts = [X, y, *([] if is_packed(y) else [treatment]), *arrays]
    return [_safe_indexing(part, rows) for part in parts for rows in (train, test)]


def _shuffle_split(
    target: Target, n_repeats: int, test_size: Any, stratify: Stratify, random_state: Any
) -> Iterator[Split]:
    n = len(target.y)
    share = isinstance(test_size, float | np.floating) and 0 < test_size < 1
    if not share and not (isinstance(test_size, int | np.integer) and 0 < test_size < n):
        raise ValueError(f"test_size={test_size!r}: expected a share between 0 and 1, or a number of rows below {n}")
    n_test = math.ceil(test_size * n) if share else int(test_size)
    # A stratum of this many rows has at least one on each side.
    smallest = math.ceil(n / max(1, min(n_test, n - n_test)))
    strata = _strata(target, stratify, smallest, f"{n - n_test} rows to train and {n_test} to test")
    splitter = StratifiedShuffleSplit(n_repeats, test_size=n_test, random_state=_seed(random_state))
    yield from splitter.split(strata, strata)


def _seed(random_state: Any) -> Any:
    """What scikit-learn takes as a seed; it does not take a Generator."""
    return int(random_state.integers(2**32)) if isinstance(random_state, np.random.Generator) else random_state


def _read_split(X: Any, y: Any, treatment: Any, groups: Any) -> Target:
    if groups is not None:
        raise ValueError(
            "groups is not used here: rows are dealt one by one; use scikit-learn's GroupKFold to keep groups together"
        )
    target = read_target(y, treatment, any_control=True)
    if X is not None and _num_samples(X) != len(target.y):
        raise ValueError(f"X has {_num_samples(X)} rows and y has {len(target.y)}: they must describe the same rows")
    return target
