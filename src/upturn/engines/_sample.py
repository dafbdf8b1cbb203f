"""A sample of rows, by their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from upturn._parameters import SEED, check, whole
from upturn._seeds import make_seed
from upturn.engines._scan import polars, scan
from upturn.kernels.hashing import SPLIT, words

if TYPE_CHECKING:
    import polars as pl


def sample(table: Any, n: int, random_state: Any = None) -> pl.DataFrame:
    """Draw rows of a table, in its order.

    Which rows are drawn depends on the seed and their numbers alone: those with the ``n`` smallest hashes.

    Parameters
    ----------
    table : path(s), pattern or polars LazyFrame
        Parquet files, or what reads them.
    n : int
        How many rows; all of them if there are no more.
    random_state : int, RandomState, Generator or None
        Seed.

    Returns
    -------
    polars.DataFrame

    Examples
    --------
    >>> import polars as pl
    >>> from upturn import engines
    >>> engines.sample(pl.LazyFrame({"age": [31, 52, 47]}), 2, random_state=0).columns
    ['age']
    """
    check("n", n, whole(least=1))
    check("random_state", random_state, SEED)
    pl, frame = polars(), scan(table)
    count = int(frame.select(pl.len()).collect().item())
    if n >= count:
        return frame.collect()
    hashes = np.empty(count, np.uint64)
    words(make_seed(random_state), SPLIT, np.uint64(0), hashes)
    chosen = np.zeros(count, np.bool_)
    chosen[np.argpartition(hashes, n)[:n]] = True
    return frame.filter(pl.Series(chosen)).collect()
