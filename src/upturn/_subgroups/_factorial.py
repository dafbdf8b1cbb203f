"""Two treatments given independently of each other: main effects and interaction of a 2 x 2 factorial design."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from upturn._columns import check_magnitude, is_missing
from upturn._parameters import INTERVAL, check
from upturn._results import Table, level_text, library_of, number_text
from upturn._rows import same_rows
from upturn._subgroups._cells import Cells
from upturn._subgroups._result import probability
from upturn._target import Target, read_target
from upturn._units import is_rate, unit_scale, unit_text

_JOINED = re.compile(r"\s*(?:\+|&|/|\band\b)\s*", re.IGNORECASE)
_BOTH = {"both", "combination", "combined"}

# Weights of the mean outcomes under neither, the first, the second and both.
_CONTRASTS = {
    "{a}": (-0.5, 0.5, -0.5, 0.5),
    "{b}": (-0.5, -0.5, 0.5, 0.5),
    "{a} x {b}": (1.0, -1.0, -1.0, 1.0),
    "{a}, without {b}": (-1.0, 1.0, 0.0, 0.0),
    "{a}, with {b}": (0.0, 0.0, -1.0, 1.0),
    "{b}, without {a}": (-1.0, 0.0, 1.0, 0.0),
    "{b}, with {a}": (0.0, -1.0, 0.0, 1.0),
    "both": (-1.0, 0.0, 0.0, 1.0),
}


class Factorial(Table):
    """Effects of a 2 x 2 factorial design. Made by :func:`upturn.factorial`.

    Columns ``what``, ``effect``, ``se``, ``low``, ``high``, ``p_value``: main effects first, then the interaction, then the effects
    of each treatment without and with the other, and of both together.

    Attributes
    ----------
    treatment : array of shape (n,)
        The label of everybody's arm, one of four, "control" being one of them: what models of several arms take.
    means : Table
        Rows and mean outcome of the four arms.
    """

    def __init__(
        self, columns: Mapping[str, Sequence[Any]], treatment: NDArray[Any], means: Table, **shown: Any
    ) -> None:
        super().__init__(columns, formats={"p_value": probability}, **shown)
        self.treatment, self.means = treatment, means


@same_rows
def factorial(
    y: Any, first: Any, second: Any = None, sample_weight: Any = None, *, names: Any = None, interval: float = 0.95
) -> Factorial:
    r"""Main effects and interaction of two treatments that were given independently of each other.

    With :math:`m_{ab}` the mean outcome of those with (1) or without (0) the first and the second treatment,

    .. math:: \text{first} = \tfrac12\big[(m_{10} - m_{00}) + (m_{11} - m_{01})\big], \qquad
              \text{first} \times \text{second} = m_{11} - m_{10} - m_{01} + m_{00},

    and the same for the second. A main effect uses everybody, which is why such trials are done; it is the effect of the treatment
    averaged over those with and without the other, **and describes neither if the interaction is not 0**. The test of the
    interaction has a standard error twice that of a main effect: that it is not significant does not show that there is none,
    so the effects without and with the other treatment are in the table too.

    Errors are those of independent means of any variances; intervals and p-values are Welch's.

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcome.
    first : array-like of shape (n,)
        Whether people got the first treatment: two labels, one of which is control by its name. Or, without ``second``, the arms of
        the design: control, two treatments, and both, as in "control", "aspirin", "statin", "aspirin + statin" (or "both").
    second : array-like of shape (n,), optional
        Whether they got the second treatment.
    sample_weight : array-like of shape (n,), optional
        Weights.
    names : pair of str, optional
        What the treatments are called; by default the label of those who got them, or "first" and "second" where that is a number.
    interval : float
        Confidence level.

    Returns
    -------
    Factorial
        A table; ``treatment`` has the four arms as labels for models.

    References
    ----------
    McAlister, Straus, Sackett, Altman, "Analysis and reporting of factorial trials", JAMA 289, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> import upturn as up
    >>> rng = np.random.default_rng(1)
    >>> aspirin, statin = rng.integers(0, 2, (2, 4000))
    >>> y = rng.normal(size=4000) + 0.5 * aspirin + 0.2 * statin
    >>> found = up.factorial(y, aspirin, statin, names=("aspirin", "statin"))
    >>> found["what"][:3].tolist(), found["effect"][:3].round(2).tolist()
    (['aspirin', 'statin', 'aspirin x statin'], [0.48, 0.2, -0.03])
    >>> sorted(set(found.treatment.tolist()))
    ['aspirin', 'aspirin + statin', 'control', 'statin']
    """
    check("interval", interval, INTERVAL)
    target, (a, b) = (
        _read_arms(y, first, sample_weight) if second is None else _read_columns(y, first, second, sample_weight)
    )
    check_magnitude(target.y, "y")
    if names is not None:
        if not isinstance(names, tuple | list) or [isinstance(name, str) for name in names] != [True, True]:
            raise ValueError(f"names={names!r}: expected two words, one for each treatment")
        a, b = names
    if a == b:
        raise ValueError(f"both treatments are called {a!r}: say names=('…', '…')")
    labels = ["control", a, b, f"{a} + {b}"]
    empty = [labels[arm] for arm in np.flatnonzero(target.sizes < 2)]
    if empty:
        raise ValueError(
            f"fewer than two rows in {empty!r}: a 2 x 2 design has people under control, each treatment, and both"
        )
    cells = Cells.whole(target)
    mean, worth = cells.mean[0], cells.worth[0]
    alone = [labels[arm] for arm in np.flatnonzero(worth <= 1.0 + 1e-12)]
    if alone:
        raise ValueError(
            f"the weights of {alone!r} are worth a single row: a spread needs two, so weigh rows more evenly"
        )
    variance = cells.variance[0] * worth / (worth - 1.0)
    weights = np.array(list(_CONTRASTS.values()))
    parts = weights**2 * variance
    effect, se = weights @ mean, np.sqrt(parts.sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = parts.sum(axis=1) ** 2 / (parts**2 / (worth - 1.0)).sum(axis=1)
        freedom = np.where(np.isfinite(freedom), freedom, np.inf)
        t = np.where((se == 0) & (effect == 0), 0.0, np.abs(effect) / se)
    half = stats.t.ppf(0.5 + interval / 2, freedom) * se
    p = np.asarray(2 * stats.t.sf(t, freedom))
    library, rate = library_of(y, first, second), is_rate(target)
    scale = unit_scale(rate)
    means = Table(
        {"arm": labels, "rows": cells.rows[0].tolist(), "mean": mean.tolist()},
        heads={"mean": f"mean {unit_text(rate)}"},
        scales={"mean": scale},
        library=library,
    )
    what = [words.format(a=a, b=b) for words in _CONTRASTS]
    columns = {"what": what, "effect": effect, "se": se, "low": effect - half, "high": effect + half, "p_value": p}
    sure = (
        "is seen: read the effects without and with the other treatment, not the main effects"
        if p[2] < 1 - interval
        else (
            f"is not seen, and could be anything from {number_text(scale * (effect[2] - half[2]))} to {number_text(scale * (effect[2] + half[2]))}"
        )
    )
    return Factorial(
        columns,
        np.array(labels)[target.arm],
        means,
        title=f"2 x 2 factorial design of {len(target):,} rows: {a} and {b}, {level_text(interval)} intervals, {unit_text(rate)}",
        scales=dict.fromkeys(("effect", "se", "low", "high"), scale),
        notes=[f"An interaction {sure}."],
        library=library,
    )


def _read_columns(y: Any, first: Any, second: Any, weight: Any) -> tuple[Target, tuple[str, str]]:
    """Two columns of treatments as one target of four arms: neither, the first, the second, both."""
    columns, names = [], []
    for treatment, word in ((first, "first"), (second, "second")):
        try:
            one = read_target(y, treatment, weight)
        except ValueError as error:
            raise ValueError(f"{word} treatment: {error}") from error
        if one.n_arms != 1:
            raise ValueError(
                f"the {word} treatment has the arms {one.labels!r}: expected two labels, control and one treatment"
            )
        columns.append(one)
        names.append(one.arms[0] if isinstance(one.arms[0], str) and not is_missing(one.arms[0]) else word)
    arm = (columns[0].arm + 2 * columns[1].arm).astype(columns[0].arm.dtype)
    target = Target(columns[0].y, arm, columns[0].weight, "control", [names[0], names[1], "both"])
    return target, (names[0], names[1])


def _read_arms(y: Any, treatment: Any, weight: Any) -> tuple[Target, tuple[str, str]]:
    """One column of four labels, of which one is made of two others."""
    target = read_target(y, treatment, weight)
    single = [label for label in target.arms if len(_parts(label)) == 1 and str(label).strip().casefold() not in _BOTH]
    joint = [label for label in target.arms if label not in single]
    if target.n_arms != 3 or len(joint) != 1 or not _names_both(joint[0], single):
        raise ValueError(
            f"treatment has the labels {target.labels!r}: expected four, control, two treatments and both together, as 'a', 'b' and "
            "'a + b' (or 'both'); or pass the two treatments as two columns"
        )
    order = [target.labels.index(label) for label in (target.control, *single, joint[0])]
    code = np.empty(4, dtype=target.arm.dtype)
    code[order] = np.arange(4)
    a, b = str(single[0]), str(single[1])
    return Target(target.y, code[target.arm], target.weight, "control", [a, b, "both"]), (a, b)


def _parts(label: Any) -> list[str]:
    return [part.casefold() for part in _JOINED.split(str(label).strip()) if part]


def _names_both(joint: Any, single: list[Any]) -> bool:
    parts = _parts(joint)
    return str(joint).strip().casefold() in _BOTH or sorted(parts) == sorted(
        str(label).strip().casefold() for label in single
    )
