"""The data sets of Table 6.4.1 (Zaniewicz, 2018), in its order, with the areas it prints."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from upturn.datasets._clinical import load_bladder, load_bmt, load_burn, load_colon, load_hodg, load_pbc, load_veteran
from upturn.datasets._data import UpliftData
from upturn.datasets._marketing import load_hillstrom
from upturn.datasets._uci import load_uci_split

__all__ = ["PAPER_ROWS", "paper_benchmarks"]

_NAN = float("nan")
_MODELS = ("Uplift SVM", "Double SVM", "Class-transf SVM", "Diff-pred SVM", "Treatment SVM", "Uplift Tree")
_AREAS: dict[str, tuple[float, ...]] = {
    "BMT-agvh": (-0.024, -0.019, -0.038, -0.019, 0.001, -0.016),
    "BMT-cgvh": (0.04, 0.046, 0.021, 0.049, 0.017, 0.023),
    "Hillstrom-visit": (0.004, 0.005, 0.003, 0.004, 0.003, 0.004),
    "Hillstrom-visit-w": (0.008, 0.008, 0.008, 0.006, 0.004, 0.006),
    "australian": (-0.002, 0.023, -0.005, -0.008, 0.013, 0.004),
    "bladder": (-0.048, -0.03, -0.042, _NAN, 0.005, 0.004),
    "breast cancer": (0.043, 0.035, 0.041, 0.038, 0.002, 0.008),
    "burn": (0.038, 0.097, 0.042, 0.034, 0.007, 0.069),
    "colon-death": (-0.014, -0.008, -0.017, -0.015, -0.009, 0.003),
    "colon-recur": (0.003, 0.015, 0.001, 0.008, -0.009, 0.003),
    "colon-lev5fu-death": (0.008, 0.008, 0.01, 0.005, 0.006, 0.012),
    "colon-lev5fu-recur": (0.006, 0.001, -0.015, -0.015, -0.007, 0.0),
    "colon-lev-death": (0.002, -0.012, -0.022, -0.024, -0.013, -0.001),
    "colon-lev-recur": (-0.004, -0.009, -0.012, -0.015, -0.01, 0.003),
    "credit-a": (0.062, 0.011, 0.059, 0.049, 0.004, 0.022),
    "dermatology": (0.08, 0.056, 0.079, 0.076, -0.045, 0.068),
    "diabetes": (-0.002, 0.005, -0.003, -0.01, 0.01, 0.016),
    "diagnosis": (0.151, -0.003, 0.142, 0.148, 0.018, 0.139),
    "heart-c": (0.023, -0.001, 0.028, 0.016, 0.016, 0.017),
    "hepatitis": (0.015, 0.009, 0.003, 0.025, -0.002, -0.001),
    "hodg": (0.05, 0.043, 0.053, 0.074, 0.056, 0.019),
    "labor": (-0.016, -0.005, -0.024, -0.013, -0.005, -0.019),
    "liver-disorders": (0.001, 0.029, 0.012, 0.021, 0.028, 0.02),
    "pbc": (0.0, -0.006, -0.012, -0.009, -0.016, -0.01),
    "primary-tumor": (0.041, 0.011, 0.037, 0.039, 0.022, 0.01),
    "veteran": (0.057, 0.034, 0.06, 0.061, -0.007, 0.038),
    "winequality-red": (0.019, 0.014, 0.02, 0.021, 0.013, 0.034),
    "winequality-white": (0.02, 0.021, 0.019, 0.023, 0.004, 0.04),
}
_LOADERS: dict[str, Callable[[], UpliftData]] = {
    "BMT-agvh": partial(load_bmt, "acute"),
    "BMT-cgvh": partial(load_bmt, "chronic"),
    "Hillstrom-visit": partial(load_hillstrom, "visit", "both"),
    "Hillstrom-visit-w": partial(load_hillstrom, "visit", "women"),
    "bladder": load_bladder,
    "burn": load_burn,
    "colon-death": partial(load_colon, "death", "both"),
    "colon-recur": partial(load_colon, "recurrence", "both"),
    "colon-lev5fu-death": partial(load_colon, "death", "lev5fu"),
    "colon-lev5fu-recur": partial(load_colon, "recurrence", "lev5fu"),
    "colon-lev-death": partial(load_colon, "death", "lev"),
    "colon-lev-recur": partial(load_colon, "recurrence", "lev"),
    "hodg": load_hodg,
    "pbc": load_pbc,
    "veteran": load_veteran,
}
PAPER_ROWS: tuple[str, ...] = tuple(_AREAS)


def paper_benchmarks(names: Iterable[str] | None = None) -> Iterator[UpliftData]:
    """Yield the 28 data sets of Table 6.4.1 in [1]_, ready to use.

    Each is named as in the table and carries the table's areas under the uplift curve (over the diagonal) in
    ``details["auuc"]``, one per model; ``nan`` where the table has a dash. A data set is read when its turn comes.

    Parameters
    ----------
    names : iterable of str, optional
        Rows to yield, in this order; all of them otherwise.

    References
    ----------
    .. [1] Ł. Zaniewicz, *Support Vector Machines for Uplift Modeling*, 2018, section 6.4.

    Examples
    --------
    >>> from upturn.datasets import paper_benchmarks
    >>> for data in paper_benchmarks(["veteran", "burn"]):     # doctest: +SKIP
    ...     print(data.name, len(data), data.details["auuc"]["Uplift SVM"])
    veteran 137 0.057
    burn 154 0.038
    """
    if not (names is None or (isinstance(names, Iterable) and not isinstance(names, str | bytes))):
        raise TypeError(
            f"names={reprlib.repr(names)}: expected a list of rows of the table, such as {list(PAPER_ROWS[:2])}"
        )
    wanted = PAPER_ROWS if names is None else tuple(names)
    unknown = [name for name in wanted if not isinstance(name, str) or name not in _AREAS]
    if unknown:
        raise ValueError(f"paper_benchmarks has no rows {unknown}; the table has {list(PAPER_ROWS)}.")
    return _read(wanted)


def _read(names: tuple[str, ...]) -> Iterator[UpliftData]:
    for name in names:
        data = _LOADERS.get(name, partial(load_uci_split, name))()
        yield replace(data, name=name, details={**data.details, "auuc": dict(zip(_MODELS, _AREAS[name], strict=True))})
