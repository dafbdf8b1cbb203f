"""The four groups of marketing: persuadables, sure things, lost causes and sleeping dogs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools, Floats
from upturn._html import paragraphs
from upturn._parameters import NONE, check, number
from upturn._results import Table, library_of, number_text
from upturn.policy._gate import read_response

GROUPS = ("persuadable", "sure thing", "lost cause", "sleeping dog")
_CAVEAT = (
    "Nobody is seen both treated and untreated, so which group a person belongs to is never known. The rows above group\n"
    "people by what a model predicts for people like them. The true shares of the four types lie within the bounds, for any\n"
    "dependence between what people do with and without treatment (if the predicted probabilities are right)."
)


@dataclass(frozen=True, repr=False)
class FourGroups:
    """A population by predicted response and effect. Made by :func:`four_groups`.

    Attributes
    ----------
    group : array of shape (n,)
        The group everybody is in by prediction.
    summary : Table
        Per group: people, share, mean predicted response without and with treatment, mean effect and, for outcomes that
        are probabilities, the lowest and highest share of that *type* of people that is compatible with them.
    margin, sure : float
        The effect and the response that separate the groups.
    caveat : str
        What can and cannot be known.
    """

    group: NDArray[Any]
    summary: Table
    margin: float
    sure: float
    caveat: str

    def to_frame(self) -> Any:
        """The summary as a frame of the library the responses came in."""
        return self.summary.to_frame()

    def _repr_html_(self) -> str:
        return self.summary._repr_html_() + paragraphs([self._cuts(), self.caveat])

    def __repr__(self) -> str:
        return f"{self.summary!r}\n{self._cuts()}\n{self.caveat}"

    def _cuts(self) -> str:
        return f"Effects within ±{number_text(self.margin)} count as none; who then responds untreated with {number_text(self.sure)} or more is a sure thing."


def four_groups(response: Any, *, margin: float | None = None, sure: float | None = None) -> FourGroups:
    r"""Summarise a population as persuadables, sure things, lost causes and sleeping dogs.

    By prediction: a *persuadable* has an effect above ``margin``, a *sleeping dog* one below minus ``margin``; of the
    rest, a *sure thing* responds without treatment with at least ``sure``, a *lost cause* with less.

    The types themselves are about what one person would do both with and without treatment, which is never seen. With
    p0 and p1 the probabilities of success without and with treatment, only bounds hold:

    .. math::

        \max(0, p_1 - p_0) \le P(\text{persuadable}) \le \min(p_1, 1 - p_0), \qquad
        \max(0, p_0 - p_1) \le P(\text{sleeping dog}) \le \min(p_0, 1 - p_1),

        \max(0, p_0 + p_1 - 1) \le P(\text{sure thing}) \le \min(p_0, p_1), \qquad
        \max(0, 1 - p_0 - p_1) \le P(\text{lost cause}) \le \min(1 - p_0, 1 - p_1),

    averaged here over people.

    Parameters
    ----------
    response : array of shape (n, 2)
        ``model.predict_response(X)``: expected outcomes without and with treatment.
    margin : float, optional
        Effects no larger than this, either way, count as none. By default half the standard deviation of the predicted
        effects; no two predictions are quite equal, so with 0 hardly anybody is a sure thing or a lost cause. A margin that
        means something, such as the effect that pays for the treatment, is better than the default.
    sure : float, optional
        Response that makes a sure thing; by default the mean of the responses without treatment.

    Returns
    -------
    FourGroups

    Examples
    --------
    >>> from upturn.policy import four_groups
    >>> groups = four_groups([[0.1, 0.4], [0.8, 0.8], [0.1, 0.1], [0.6, 0.3]], margin=0.05)
    >>> groups.group.tolist()
    ['persuadable', 'sure thing', 'lost cause', 'sleeping dog']
    >>> groups.summary["at least"].round(3).tolist(), groups.summary["at most"].round(3).tolist()
    ([0.075, 0.15, 0.35, 0.075], [0.25, 0.325, 0.525, 0.25])
    """
    matrix = read_response(response)
    check("margin", margin, number(least=0) | NONE)
    check("sure", sure, number().named("a response, such as 0.5") | NONE)
    p0, p1 = matrix.T
    effect = p1 - p0
    width = float(effect.std()) / 2 if margin is None else float(margin)
    cut = float(p0.mean()) if sure is None else float(sure)
    code = np.where(effect > width, 0, np.where(effect < -width, 3, np.where(p0 >= cut, 1, 2)))
    members = [code == g for g in range(4)]
    columns: dict[str, Any] = {
        "group": list(GROUPS),
        "people": [int(m.sum()) for m in members],
        "share": [float(m.mean()) for m in members],
        "untreated": [_mean(p0, m) for m in members],
        "treated": [_mean(p1, m) for m in members],
        "effect": [_mean(effect, m) for m in members],
    }
    probabilities = bool(((matrix >= 0) & (matrix <= 1)).all())
    if probabilities:
        zero = np.zeros_like(p0)
        low = [np.maximum(zero, v) for v in (p1 - p0, p0 + p1 - 1, 1 - p0 - p1, p0 - p1)]
        high = [np.minimum(a, b) for a, b in ((p1, 1 - p0), (p0, p1), (1 - p0, 1 - p1), (p0, 1 - p1))]
        columns["at least"] = [float(v.mean()) for v in low]
        columns["at most"] = [float(v.mean()) for v in high]
    caveat = _CAVEAT if probabilities else _CAVEAT.split(". The true")[0] + "."
    return FourGroups(np.array(GROUPS)[code], Table(columns, library=library_of(response)), width, cut, caveat)


def _mean(values: Floats, members: Bools) -> float:
    return float(values[members].mean()) if members.any() else float("nan")
