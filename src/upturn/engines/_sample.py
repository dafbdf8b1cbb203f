"""A sample of rows, by their numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from upturn._parameters import SEED, check, whole
from upturn._seeds import make_seed
from upturn.engines._kinds import engine_of
from upturn.engines._numbers import Raw
from upturn.engines._scan import polars, scan
from upturn.kernels import sampling
from upturn.kernels.hashing import SPLIT, words


def sample(table: Any, n: int, random_state: Any = None) -> Any:
    """Draw rows of a table, in its order.

    Which rows are drawn depends on the seed and their numbers alone: those with the ``n`` smallest hashes.

    Parameters
    ----------
    table : path(s), pattern, polars LazyFrame, Dask DataFrame or Spark DataFrame
        Parquet files, or what reads them. Rows of a cluster are numbered in the order of partitions.
    n : int
        How many rows; all of them if there are no more.
    random_state : int, RandomState, Generator or None
        Seed.

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
    spread = engine_of(table)
    if spread is not None:
        return _sample_spread(spread, table, int(n), make_seed(random_state))
    pl, frame = polars(), scan(table)
    count = int(frame.select(pl.len()).collect().item())
    if n >= count:
        return frame.collect()
    hashes = np.empty(count, np.uint64)
    words(make_seed(random_state), SPLIT, np.uint64(0), hashes)
    chosen = np.zeros(count, np.bool_)
    chosen[np.argpartition(hashes, n)[:n]] = True
    return frame.filter(pl.Series(chosen)).collect()


def _sample_spread(spread: Any, table: Any, n: int, seed: np.uint64) -> Any:
    """The rows with the smallest hashes of a table on a cluster."""
    import pandas as pd

    key, names = np.uint64(sampling.purpose_key(seed, SPLIT, np.uint64(0))), [str(name) for name in table.columns]
    with spread.places(table, names) as places:
        sizes = places.ask(_count)
        count, wanted = np.array([sum(sizes)]), np.array([n])
        firsts = np.cumsum([0, *sizes]).tolist()
        cut = sampling.Cut(np.array([2**64 - 1], np.uint64), np.ones(1, np.uint8))
        if n < count[0]:
            for window in (sampling.make_window(count, wanted), sampling.whole_window(1)):
                near = sampling.find_cut(places.ask(partial(_look, key, firsts, window), sampling.merge), count, wanted)
                if near is not None:
                    cut = near
                    break
        return pd.concat(places.ask(partial(_take, key, firsts, cut)), ignore_index=True)


def _count(raw: Raw) -> int:
    return len(nw.from_native(raw.frame, eager_only=True))


def _look(key: np.uint64, firsts: list[int], window: sampling.Window, raw: Raw) -> Any:
    n = _count(raw)
    return sampling.look(key, np.zeros(n, np.uint8), 1, np.ones(n, np.uint8), window, firsts[raw.number])


def _take(key: np.uint64, firsts: list[int], cut: sampling.Cut, raw: Raw) -> Any:
    n = _count(raw)
    role, first = np.ones(n, np.uint8), np.uint64(firsts[raw.number])
    sampling.choose_up_to(key, first, sampling.NO_IDS, np.zeros(n, np.uint8), 1, 2, *cut, role)
    return nw.from_native(raw.frame, eager_only=True).to_pandas()[role == 2]
