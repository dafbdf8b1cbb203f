"""Small steps shared by the loaders: read and check a file, keep features."""

from __future__ import annotations

from typing import Any

from upturn.datasets._files import FILES
from upturn.datasets._sources import need_columns, pandas, read

__all__ = ["features", "table"]


def table(file: str, loader: str, needed: tuple[str, ...], missing: tuple[str, ...] = ("", "NA")) -> Any:
    """Return a file as a DataFrame with the columns needed; only the strings given mean missing.

    "None" and the like are honest category names, so pandas' own long list of missing values is switched off.
    """
    found = read(FILES[file], loader, keep_default_na=False, na_values=list(missing))
    need_columns(found, needed, loader, FILES[file])
    return found


def features(source: Any, columns: tuple[str, ...], categorical: tuple[str, ...] = ()) -> Any:
    """Return the named columns with a fresh index; text columns and the named ones become categories."""
    pd = pandas("loading data")
    X = source.loc[:, list(columns)].reset_index(drop=True)
    X.columns = X.columns.astype(object)
    for name in X.columns:
        if name in categorical or not pd.api.types.is_numeric_dtype(X[name]):
            levels = sorted(X[name].dropna().unique().tolist())
            X[name] = pd.Categorical(X[name].astype(object), categories=levels)
    return X
