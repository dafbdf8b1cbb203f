"""Loaders of marketing experiments: Hillstrom's e-mails, Criteo, Lenta, X5 RetailHero, MegaFon."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from upturn._columns import read_path as read_folder
from upturn._parameters import check, one_of
from upturn.datasets._data import UpliftData
from upturn.datasets._files import FILES
from upturn.datasets._reading import features, table
from upturn.datasets._sources import need_columns, pandas, read, read_path

__all__ = ["load_criteo", "load_hillstrom", "load_lenta", "load_megafon", "load_x5"]

_HILLSTROM = ("recency", "history_segment", "history", "mens", "womens", "zip_code", "newbie", "channel")
_SEGMENTS = {"No E-Mail": "control", "Womens E-Mail": "women", "Mens E-Mail": "men"}


def load_hillstrom(
    outcome: Literal["visit", "conversion", "spend"] = "visit",
    arms: Literal["women", "men", "both", "all"] = "women",
) -> UpliftData:
    """Load Hillstrom's e-mail experiment: an e-mail about women's or men's merchandise, or none.

    64,000 customers: 21,306 no e-mail (control), 21,387 the women's e-mail, 21,307 the men's. Visit rates .106, .151
    and .183.

    Covariates kept (8): recency, history_segment (categorical), history, mens, womens, zip_code (categorical), newbie,
    channel (categorical). Left out: segment (the treatment), visit, conversion, spend.

    Parameters
    ----------
    outcome : "visit", "conversion" or "spend"
        The first two are 0/1, spend is in dollars; all within two weeks of the e-mail.
    arms : "women", "men", "both" or "all"
        One of the e-mails against none; both merged into one arm; or both kept apart, with the treatment labels
        "control", "women" and "men".

    Examples
    --------
    >>> from upturn.datasets import load_hillstrom
    >>> data = load_hillstrom("visit", arms="women")      # doctest: +SKIP
    >>> len(data)                                         # doctest: +SKIP
    42693
    """
    check("outcome", outcome, one_of("visit", "conversion", "spend"))
    check("arms", arms, one_of("women", "men", "both", "all"))
    rows = table("hillstrom", "load_hillstrom", (*_HILLSTROM, "segment", outcome))
    label = rows["segment"].map(_SEGMENTS)
    if arms in ("women", "men"):
        keep = label.isin(["control", arms])
        rows, label = rows[keep], label[keep]
    labels = label.to_numpy().astype(str)
    suffix = {"women": "-w", "men": "-m", "both": "", "all": "-all"}[arms]
    return UpliftData(
        features(rows, _HILLSTROM),
        rows[outcome].to_numpy().astype(np.float64 if outcome == "spend" else np.int64),
        labels if arms == "all" else (labels != "control").astype(np.int64),
        name=f"Hillstrom-{outcome}{suffix}",
        description=f"Hillstrom's e-mail experiment, arms: {arms}; outcome: {outcome} within two weeks.",
    )


def _published(file: str, loader: str, path: str | Path | None, needed: tuple[str, ...]) -> Any:
    options = {"keep_default_na": True}
    rows = read(FILES[file], loader, **options) if path is None else read_path(path, loader, **options)
    need_columns(rows, needed, loader, FILES[file])
    return rows


def load_criteo(outcome: Literal["visit", "conversion"] = "visit", path: str | Path | None = None) -> UpliftData:
    """Load the Criteo uplift data (version 2.1): advertising against none, 13,979,592 users in the full file.

    Covariates kept (12): f0 to f11. Left out: treatment, visit, conversion, and exposure, which happens after the
    treatment. 85% of users are treated.

    Parameters
    ----------
    outcome : "visit" or "conversion"
    path : str or Path, optional
        Your copy of the file, plain or gzipped; otherwise criteo/criteo-research-uplift-v2.1.csv.gz is looked for.

    References
    ----------
    E. Diemert, A. Betlei, C. Renaudin, M.-R. Amini, "A large scale benchmark for uplift modeling", AdKDD 2018.
    """
    check("outcome", outcome, one_of("visit", "conversion"))
    columns = tuple(f"f{i}" for i in range(12))
    rows = _published("criteo", "load_criteo", path, (*columns, "treatment", outcome))
    return UpliftData(
        features(rows, columns),
        rows[outcome].to_numpy().astype(np.int64),
        rows["treatment"].to_numpy().astype(np.int64),
        name=f"criteo-{outcome}",
        description=f"Criteo uplift data 2.1, advertising against none; outcome: {outcome}.",
    )


def load_lenta(path: str | Path | None = None) -> UpliftData:
    """Load the Lenta grocery experiment: text messages against none; success is a purchase in the promotion.

    Covariates kept: every column of the file but group (the treatment: test or control), response_att (the outcome) and
    CardHolder (a customer number, where there is one); with missing values, and gender as a category.

    Parameters
    ----------
    path : str or Path, optional
        Your copy of the file; otherwise lenta/lenta_dataset.csv.gz is looked for.
    """
    rows = _published("lenta", "load_lenta", path, ("group", "response_att"))
    columns = tuple(name for name in rows.columns if name not in ("group", "response_att", "CardHolder"))
    return UpliftData(
        features(rows, columns),
        rows["response_att"].to_numpy().astype(np.int64),
        _treated(rows["group"], "test", "load_lenta"),
        name="lenta",
        description="Lenta, text messages against none; success: a purchase in the promotion.",
    )


def load_megafon(path: str | Path | None = None) -> UpliftData:
    """Load the MegaFon contest data (synthetic): success is a conversion.

    Covariates kept (50): X_1 to X_50. Left out: treatment_group (the treatment), conversion (the outcome), an id.

    Parameters
    ----------
    path : str or Path, optional
        Your copy of the file; otherwise megafon/megafon_dataset.csv.gz is looked for.
    """
    columns = tuple(f"X_{i}" for i in range(1, 51))
    rows = _published("megafon", "load_megafon", path, (*columns, "treatment_group", "conversion"))
    return UpliftData(
        features(rows, columns),
        rows["conversion"].to_numpy().astype(np.int64),
        _treated(rows["treatment_group"], "treatment", "load_megafon"),
        name="megafon",
        description="MegaFon contest, synthetic; success: conversion.",
    )


def load_x5(folder: str | Path | None = None) -> UpliftData:
    """Load the X5 RetailHero contest data: a text message against none; success is a purchase.

    Covariates kept (3): age, gender (categorical) and issue_day, the days from 2017-01-01 to the issue of the loyalty
    card. Left out: client_id, treatment_flg, target, and the day of the card's first use, which may come after the
    message. The contest's table of purchases is not read.

    Parameters
    ----------
    folder : str or Path, optional
        The folder of clients.csv and uplift_train.csv, plain or gzipped; otherwise x5/ is looked for.
    """
    pd = pandas("load_x5")
    parts = {}
    for file, needed in (
        ("x5_clients", ("client_id", "age", "gender", "first_issue_date")),
        ("x5_train", ("client_id", "treatment_flg", "target")),
    ):
        path = None
        if folder is not None:
            base = read_folder(folder, "folder") / Path(FILES[file].name).name
            path = base if base.is_file() else base.with_suffix("")
        parts[file] = _published(file, "load_x5", path, needed)
    rows = parts["x5_train"].merge(parts["x5_clients"], on="client_id", how="left", validate="one_to_one")
    start = pd.Timestamp("2017-01-01")
    rows["issue_day"] = (pd.to_datetime(rows["first_issue_date"]) - start) / pd.Timedelta(days=1)
    return UpliftData(
        features(rows, ("age", "gender", "issue_day")),
        rows["target"].to_numpy().astype(np.int64),
        rows["treatment_flg"].to_numpy().astype(np.int64),
        name="x5",
        description="X5 RetailHero, a text message against none; success: a purchase.",
    )


def _treated(column: Any, treated: str, loader: str) -> Any:
    found = sorted(column.astype(str).unique().tolist())
    if found != sorted(["control", treated]):
        raise ValueError(f"{loader} expected the groups 'control' and {treated!r}; found {found}.")
    return (column == treated).to_numpy().astype(np.int64)
