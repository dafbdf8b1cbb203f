"""Fitting a model to a table in parts."""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from upturn._parameters import VERBOSE, check, check_parameters
from upturn._results import plural
from upturn.base import Gated, all_or_nothing
from upturn.engines._bases import check_cluster, engine_of_base
from upturn.engines._ensembles import is_ensemble
from upturn.engines._files import pair_of, read_files
from upturn.engines._filters import learn_filter, learn_selector
from upturn.engines._forest import looked, suited_to
from upturn.engines._gather import Roles, gather
from upturn.engines._ids import check_ids
from upturn.engines._kinds import engine_of
from upturn.engines._learn import check_spread, check_use_of_ids, learn, learn_whole
from upturn.engines._meta import LEARNERS
from upturn.engines._numbers import Whole
from upturn.engines._open import library_of, names_in, opened
from upturn.engines._pairs import keep_arms, learn_pairs, own_scale
from upturn.engines._places import Places, watched
from upturn.engines._scan import polars, scan, schema_of, settled
from upturn.engines._svm import check_machine, is_machine
from upturn.engines._umodl import learn_umodl
from upturn.engines._views import Views
from upturn.features import FilterSelector, UMODLDiscretizer, UMODLSelector
from upturn.meta import OneVsControl
from upturn.trees import UpliftForest
from upturn.trees._base import TreeModel
from upturn.trees._look import Look

if TYPE_CHECKING:
    import polars as pl

_COUNTED: dict[type, Callable[[Any, Places, Roles, str], None]] = {
    FilterSelector: learn_filter,
    UMODLSelector: learn_selector,
    UMODLDiscretizer: learn_umodl,
}
_OPENED = {"dask": "dask.dataframe.read_parquet(files)", "spark": "spark.read.parquet(files)"}
_ROOM = 1.1  # times what rows take, that must be free on the disk
# Bytes of a row besides its codes: outcome, weight and words; more where the outcome is centred, chances are estimated or intervals rehearsed.
_NUMBERS, _CENTRED, _REHEARSED, _AN_ARM = 96, 200, 480, 32
_AN_ID, _A_PAIR = (
    16,
    32,
)  # of a row id, with those of weight above 0; of outcome, weight, id and arm of a row in a pair of arms


def fit(
    model: Any,
    table: Any,
    y: str,
    treatment: str,
    sample_weight: str | None = None,
    features: list[str] | None = None,
    *,
    row_id: str | None = None,
    scratch: str | os.PathLike[str] | None = None,
    verbose: int = 0,
) -> Any:
    """Fit a model of trees, or a linear machine, to a table that need not fit into memory.

    On Dask and Spark, rows stay where they are: every partition turns its features into codes (a byte a value) and adds up histograms, from which
    trees are grown level by level. Of Parquet files, codes, outcome, arms and weights are written to files of a scratch folder, which trees read as if they were
    in memory, and removed at the end; in memory are the rows of the trees that grow. Either way the model is that of the whole table, to the last bit. A machine is solved
    with sums over partitions, and is that of the whole table to a relative 1e-8 of its objective.

    Parameters
    ----------
    model : UpliftTree, UpliftForest, CTSForest, UCTSForest, UpliftBoosting or UpliftBagging over trees, linear UpliftSVM, StandardSVM, TwoCostSVM or SubgroupSVM, OneVsControl over one of these, a meta-learner over models of LightGBM or XGBoost for Dask or Spark, UMODLDiscretizer, UMODLSelector or FilterSelector
        The model to fit. For boosting and bagging, files keep the features themselves, up to eight bytes a value,
        and codes and outcomes are in memory; on Dask and Spark, ``oob_prediction_`` of bagging comes to the driver, eight bytes a row and arm. UMODL and filters need counts alone, one column after the other: exact ones of columns with up to 65,536
        values, else of the rows between as many quantiles.
    table : path(s), pattern, polars LazyFrame, Dask DataFrame or Spark DataFrame
        Parquet files, in the order of their names, or what reads them. It is read more than once and must not change meanwhile.
    y, treatment, sample_weight : str
        Columns of the table: outcome, label of the arm, and weight if there is one.
    features : list of str, optional
        Columns to learn from; all others by default.
    row_id : str, optional
        A column with a whole number for each row, no two the same, by which samples are drawn: then the model does not depend on the
        order of rows, files or partitions. Without it rows are numbered in the order of files or partitions, as in the whole table.
    scratch : path, optional
        For Parquet files, a folder with room for a byte a value and 96 bytes a row, some 300 with a centred outcome, and 530 where chances of the arms are estimated (outcomes of more than two values are centred by
        default), 550 for ``inference``, eight bytes a value and level for machines; the system's folder for temporary files by default. A lazy frame with joins, groups or sorts, whose
        rows may come in another order whenever it is read, is written there as well.
    verbose : int
        Above 0, progress bars show how far parts of files are read, and count passes over the table, among them the steps of a machine's solver; by
        default as the model's own ``verbose`` says, which shows trees, members or features besides.

    Returns
    -------
    model
        The same object, fitted: ``predict``, ``save`` and all the rest as always.

    Examples
    --------
    >>> import numpy as np, polars as pl
    >>> from upturn import engines
    >>> from upturn.trees import UpliftForest
    >>> table = pl.DataFrame({"age": np.arange(400.0) % 80, "given": [0, 1] * 200, "bought": [0, 0, 1, 1] * 100})
    >>> model = engines.fit(UpliftForest(10, random_state=0), table.lazy(), y="bought", treatment="given")
    >>> model.predict(pl.DataFrame({"age": [20.0, 60.0]})).shape
    (2,)
    """
    check("verbose", verbose, VERBOSE)
    verbose = verbose or getattr(model, "verbose", 0)
    spread = engine_of(table)
    if isinstance(model, tuple(_COUNTED)):
        return _fit_counts(model, table, (y, treatment, sample_weight, features), row_id, scratch, verbose)
    if spread is not None:
        return _fit_spread(spread, model, table, (y, treatment, sample_weight, features), row_id, scratch, verbose)
    _check_model(model)
    named = scan(table)
    columns = schema_of(named).names()
    roles = _without_id(_read_roles(columns, y, treatment, sample_weight, features), row_id, columns, features)
    check_use_of_ids(model, row_id)
    folder = _new_folder(scratch)
    try:
        with settled(named.select(roles.columns(row_id)), folder) as frame, all_or_nothing(model):
            check_parameters(model)
            _fit_files(model, frame, roles, row_id, folder, verbose)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return model


def _fit_files(model: Any, frame: pl.LazyFrame, roles: Roles, row_id: str | None, folder: Path, verbose: int) -> None:
    """Fit a model to a table that is read in parts, with numbers per row in files of a folder."""
    n = int(frame.select(polars().len()).collect().item())
    _check_room(n, _bytes_of_a_row(model, len(roles.features), row_id), roles, folder)
    if not (isinstance(model, TreeModel) or is_machine(model)) and row_id is None:
        data = gather(
            frame,
            roles,
            folder,
            control=model.control,
            outcome=model._outcome,
            float32=model._float32,
            verbose=verbose,
        )
        model._learn(data, "polars")
        return
    whole = read_files(frame, n, roles, folder, model.control, getattr(model, "n_jobs", None), row_id, verbose)
    if row_id is not None:
        check_ids(whole.places, int(whole.rows.sum()), row_id)
    whole = looked(model, whole, weighted=roles.sample_weight is not None)
    _check_room(n, _bytes_of_a_row(suited_to(model, whole), len(roles.features), row_id, whole), roles, folder)
    with opened(frame, roles.columns()) as raws, watched(whole.places, verbose) as places:
        whole = whole._replace(places=places)
        if isinstance(model, OneVsControl):
            learn_pairs(model, whole, _Pairs(model, whole, raws, roles), roles, "polars", learn_whole)
        else:
            learn_whole(model, whole, raws, roles, "polars")
        model._tell_arms()


@dataclass(frozen=True)
class _Pairs:
    """Pairs of arms among rows of files."""

    model: OneVsControl
    whole: Whole
    raws: Places
    roles: Roles

    def __call__(self, k: int) -> tuple[Whole, Places]:
        """Control and arm ``k``: numbers, and the frames they are made of."""
        keep = partial(keep_arms, self.roles.treatment, (self.whole.labels[0], self.whole.labels[k]))
        return pair_of(self.whole, k, own_scale(self.model, self.whole)), Views(self.raws, keep)


def _fit_counts(model: Any, table: Any, named: Any, row_id: Any, scratch: Any, verbose: int) -> Any:
    """Fit what needs counts of a table only, of any kind."""
    for name, value in (("row_id", row_id), ("scratch", scratch)):
        if value is not None:
            raise ValueError(f"{type(model).__name__} counts rows, and has no use for {name}=: leave it out")
    roles = _read_roles(names_in(table), *named)
    with all_or_nothing(model):
        check_parameters(model)
        with opened(table, roles.columns(), verbose) as places:
            learn_counts = next(learn for kind, learn in _COUNTED.items() if isinstance(model, kind))
            learn_counts(model, places, roles, library_of(table))
    return model


def _fit_spread(spread: Any, model: Any, table: Any, named: Any, row_id: Any, scratch: Any, verbose: int) -> Any:
    """Fit a model to a table of a cluster."""
    _check_gated(model)
    check_spread(model, spread.NAME)
    check_cluster(model)
    if scratch is not None:
        raise ValueError("scratch= is for Parquet files; a table of Dask or Spark stays where it is: leave it out")
    columns = [str(name) for name in table.columns]
    roles = _without_id(_read_roles(columns, *named), row_id, columns, named[3])
    with all_or_nothing(model):
        check_parameters(model)
        with opened(table, roles.columns(row_id), verbose) as places:
            learn(model, places, roles, row_id, "pandas")
    return model


def _without_id(roles: Roles, row_id: Any, columns: list[str], features: Any) -> Roles:
    """Roles in which the column of ids is no feature."""
    if row_id is None:
        return roles
    if not isinstance(row_id, str) or row_id not in columns:
        raise ValueError(f"row_id={row_id!r} is no column of the table: it has {columns[:20]!r}")
    if row_id not in roles.features:
        return roles
    if features is not None:
        raise ValueError(f"row_id={row_id!r} is among features=: a number of rows is nothing to learn from")
    return roles._replace(features=[name for name in roles.features if name != row_id])


def _check_gated(model: Any) -> None:
    if not isinstance(model, Gated):
        raise TypeError(f"model is a {type(model).__name__}: expected an uplift model, such as UpliftForest()")


def _check_model(model: Any) -> None:
    """Refuse what would need the whole table in memory."""
    _check_gated(model)
    if isinstance(model, OneVsControl):
        model = model._base()
    if is_machine(model):
        check_machine(model)
        return
    if isinstance(model, LEARNERS) and (engine := engine_of_base(model.estimator)) is not None:
        raise TypeError(
            f"{type(model).__name__} over {type(model.estimator).__name__} learns from a table of {engine.capitalize()}, and this one is not: open the files "
            f"there, as in {_OPENED[engine]}; or fit {type(model).__name__} over a model of scikit-learn to engines.sample(table, n)"
        )
    if not (isinstance(model, TreeModel) or is_ensemble(model)):
        raise TypeError(
            f"{type(model).__name__} needs its whole table in memory, and so cannot be fitted in parts: use UpliftForest, CTSForest, UCTSForest, "
            "UpliftTree, a linear UpliftSVM, UpliftBoosting or UpliftBagging over trees, or OneVsControl over one of them; or fit it to "
            "engines.sample(table, n)"
        )


def _read_roles(columns: list[str], y: str, treatment: str, sample_weight: str | None, features: Any) -> Roles:
    named = {"y": y, "treatment": treatment}
    if sample_weight is not None:
        named["sample_weight"] = sample_weight
    if features is not None:
        if not isinstance(features, list | tuple) or not all(isinstance(name, str) for name in features):
            raise TypeError(f"features={features!r}: expected a list of columns' names")
        named.update({f"features[{i}]": name for i, name in enumerate(features)})
    for role, name in named.items():
        if not isinstance(name, str):
            raise TypeError(f"{role} is a {type(name).__name__}: expected the name of a column of the table")
        if name not in columns:
            raise ValueError(f"{role}={name!r} is no column of the table: it has {columns[:20]!r}")
    taken = {y, treatment, sample_weight}
    chosen = [name for name in columns if name not in taken] if features is None else list(features)
    if not chosen or len(set(chosen)) < len(chosen) or taken & set(chosen):
        raise ValueError(
            f"features={chosen!r}: expected names of columns, each once, that are neither outcome nor treatment nor weight"
        )
    return Roles(y, treatment, sample_weight, chosen)


def _new_folder(scratch: Any) -> Path:
    """A folder of its own in ``scratch``."""
    if scratch is not None and not isinstance(scratch, str | os.PathLike):
        raise TypeError(f"scratch is a {type(scratch).__name__}: expected a folder's path, or None")
    if scratch is not None and not os.path.isdir(scratch):
        raise ValueError(f"scratch={os.fspath(scratch)!r} is no folder: make it, or name another")
    return Path(tempfile.mkdtemp(prefix="upturn-", dir=scratch))


def _bytes_of_a_row(model: Any, p: int, row_id: str | None, whole: Whole | None = None) -> int:
    """How much scratch space a row of ``p`` features needs, as far as that is known before the table has been read (``whole``) or after."""
    if row_id is not None:
        pairs = _A_PAIR if isinstance(model, OneVsControl) else 0
        inside = _as_unlike(model._base()) if pairs and whole is not None else model
        codes = p + _NUMBERS if is_ensemble(inside) else _bytes_of_a_row(inside, p, None, whole)
        return codes + _AN_ID + pairs
    if not isinstance(model, TreeModel):
        levels = () if whole is None else whole.schema.levels
        return 8 * (p + sum(len(one) for one in levels if one is not None))
    arms = 1 if whole is None else len(whole.labels) - 1
    if getattr(model, "inference", False):  # a rehearsal has rows of its own
        return 2 * p + _REHEARSED + _AN_ARM * arms
    center, propensity = getattr(model, "center", False), getattr(model, "propensity", "shares")
    centred = center is True or (center == "auto" and whole is not None and not whole.scale.binary)
    estimated = not isinstance(propensity, str) or propensity not in ("auto", "shares")
    return p + _NUMBERS + (_CENTRED if centred else 0) + (_CENTRED + _AN_ARM * arms if estimated else 0)


def _as_unlike(model: Any) -> Any:
    """The model of a pair of arms that nobody has looked at yet: a forest may find them unlike."""
    if isinstance(model, UpliftForest) and model._looks():
        model = copy.copy(model)
        model._look = Look(0.0, 0)
        return model._suited()
    return model


def _check_room(n: int, a_row: int, roles: Roles, folder: Path) -> None:
    """Say how much disk is needed before anything is written, if there is not as much."""
    p = len(roles.features)
    needed, free = int(_ROOM * n * a_row), shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            f"{plural(n, 'row')} of {plural(p, 'feature')} may need {needed / 2**30:.1f} GiB of scratch space, and "
            f"{folder.parent} has {free / 2**30:.1f}: pass scratch=, a folder with more"
        )
