"""A sample of rows, by their numbers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import narwhals.stable.v1 as nw
import numpy as np

from upturn._arrays import Arms, Ints
from upturn._parameters import SEED, check, whole
from upturn._seeds import make_seed
from upturn._target import Label, find_labels, read_labels, sort_labels
from upturn.engines._files import coded
from upturn.engines._kinds import engine_of
from upturn.engines._numbers import Raw, series_of
from upturn.engines._open import check_column, names_in
from upturn.engines._scan import polars, said, scan, settled
from upturn.kernels import sampling
from upturn.kernels.hashing import SPLIT, words

if TYPE_CHECKING:
    import polars as pl


def sample(table: Any, n: int, random_state: Any = None, *, treatment: str | None = None) -> Any:
    """Draw rows of a table, in its order.

    Which rows are drawn depends on the seed and their numbers alone: those with the ``n`` smallest hashes; with ``treatment``, those of each arm.

    Parameters
    ----------
    table : path(s), pattern, polars LazyFrame, Dask DataFrame or Spark DataFrame
        Parquet files, or what reads them. Rows of a cluster are numbered in the order of partitions.
    n : int
        How many rows; all of them if there are no more.
    random_state : int, RandomState, Generator or None
        Seed.
    treatment : str, optional
        Column of arm labels: every arm then has its share of the sample, to a row, and at least one row.

    Returns
    -------
    polars.DataFrame, or one of pandas from Dask and Spark

    Examples
    --------
    >>> import polars as pl
    >>> from upturn import engines
    >>> engines.sample(pl.LazyFrame({"age": [31, 52, 47]}), 2, random_state=0).columns
    ['age']
    """
    check("n", n, whole(least=1))
    check("random_state", random_state, SEED)
    if treatment is not None:
        check_column(treatment, names_in(table), "treatment")
    spread, seed = engine_of(table), make_seed(random_state)
    if spread is not None:
        return _sample_spread(spread, table, int(n), seed, treatment)
    with settled(scan(table)) as frame:
        return _sample_files(frame, int(n), seed, treatment)


def _sample_files(frame: pl.LazyFrame, n: int, seed: np.uint64, treatment: str | None) -> pl.DataFrame:
    """The rows with the smallest hashes of a table that is read in parts."""
    pl = polars()
    try:
        count = int(frame.select(pl.len()).collect().item())
        if n >= count:
            return frame.collect()
        arm, sizes = np.zeros(count, np.uint8), np.array([count])
        if treatment is not None:
            column = frame.select(treatment).collect()[treatment]
            texts = column.dtype in (pl.String, pl.Categorical, pl.Enum)
            labels, arm = find_labels(read_labels(coded(column) if texts else column))
            sizes = np.bincount(arm, minlength=len(labels))
        hashes, chosen = np.empty(count, np.uint64), np.zeros(count, np.bool_)
        words(seed, SPLIT, np.uint64(0), hashes)
        for code, wanted in enumerate(_shares(n, sizes).tolist()):
            mine = np.flatnonzero(arm == code)
            chosen[mine[np.argsort(hashes[mine], kind="stable")[:wanted]]] = True
        return frame.filter(pl.Series(chosen)).collect()
    except pl.exceptions.PolarsError as error:
        raise RuntimeError(f"the table could not be read: {said(error)}") from None


def _shares(n: int, sizes: Ints) -> Ints:
    """How many rows of each arm: in proportion, rounded so that they add up, and one at least."""
    exact = n * sizes / sizes.sum()
    wanted = np.maximum(np.floor(exact), 1).astype(np.int64)
    while wanted.sum() > n and wanted.max() > 1:  # from whom has most beyond its share
        beyond = np.where(wanted > 1, wanted - exact, -np.inf)
        wanted[beyond.argmax()] -= 1
    wanted = np.minimum(wanted, sizes)
    while wanted.sum() < n:  # to whom most is owed, of those who have more rows
        owed = np.where(wanted < sizes, exact - wanted, -np.inf)
        wanted[owed.argmax()] += 1
    return np.asarray(wanted)


def _sample_spread(spread: Any, table: Any, n: int, seed: np.uint64, treatment: str | None) -> Any:
    """The rows with the smallest hashes of a table on a cluster."""
    import pandas as pd

    key, names = np.uint64(sampling.purpose_key(seed, SPLIT, np.uint64(0))), [str(name) for name in table.columns]
    with spread.places(table, names) as places:
        found: list[dict[Label, int]] = places.ask(partial(_count_labels, treatment))
        labels = sort_labels(list({label for counts in found for label in counts}))
        count = np.array([sum(counts.get(label, 0) for counts in found) for label in labels])
        firsts = np.cumsum([0, *(sum(counts.values()) for counts in found)]).tolist()
        wanted = _shares(n, count) if 0 < n < count.sum() else count
        cut = sampling.Cut(np.full(len(labels), 2**64 - 1, np.uint64), np.ones(len(labels), np.uint8))
        draw = partial(_look, key, firsts, treatment, labels)
        if n < count.sum():
            for window in (sampling.make_window(count, wanted), sampling.whole_window(len(labels))):
                near = sampling.find_cut(places.ask(partial(draw, window), sampling.merge), count, wanted)
                if near is not None:
                    cut = near
                    break
        drawn = pd.concat(places.ask(partial(_take, key, firsts, treatment, labels, cut)), ignore_index=True)
        # Spark says nothing of the columns of a partition without rows.
        return drawn if len(drawn.columns) else table.limit(0).toPandas()


def _count(raw: Raw) -> int:
    return len(nw.from_native(raw.frame, eager_only=True))


def _count_labels(treatment: str | None, raw: Raw) -> dict[Label, int]:
    """Rows by arm; all of them as one where arms are not told apart."""
    if not _count(raw):
        return {}
    if treatment is None:
        return {0: _count(raw)}
    labels, codes = find_labels(read_labels(series_of(raw, treatment)))
    return dict(zip(labels, np.bincount(codes, minlength=len(labels)).tolist(), strict=True))


def _arms(treatment: str | None, labels: list[Label], raw: Raw) -> Arms:
    if treatment is None or not _count(raw):
        return np.zeros(_count(raw), np.uint8)
    found, codes = find_labels(read_labels(series_of(raw, treatment)))
    return np.array([labels.index(label) for label in found], np.uint8)[codes]


def _look(
    key: np.uint64, firsts: list[int], treatment: str | None, labels: list[Label], window: sampling.Window, raw: Raw
) -> Any:
    role = np.ones(_count(raw), np.uint8)
    return sampling.look(key, _arms(treatment, labels, raw), 1, role, window, firsts[raw.number])


def _take(
    key: np.uint64, firsts: list[int], treatment: str | None, labels: list[Label], cut: sampling.Cut, raw: Raw
) -> Any:
    role, first = np.ones(_count(raw), np.uint8), np.uint64(firsts[raw.number])
    sampling.choose_up_to(key, first, sampling.NO_IDS, _arms(treatment, labels, raw), 1, 2, *cut, role)
    return nw.from_native(raw.frame, eager_only=True).to_pandas()[role == 2]
