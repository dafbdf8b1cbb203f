"""``OneVsControl`` of rows in several places: for every arm, the model of its rows and those of control."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from sklearn.base import clone

from upturn._arrays import Floats, Ints
from upturn._target import Label
from upturn.engines import _umodl
from upturn.engines._gather import Roles
from upturn.engines._ids import check_ids
from upturn.engines._numbers import Numbers, Raw, Whole, describe, in_units, to_numbers, understand
from upturn.engines._places import Places
from upturn.features._percentiles import quantiles_of
from upturn.meta import OneVsControl
from upturn.meta._one_vs_control import LADDER
from upturn.trees._base import Scale

Learn = Callable[[Any, Whole, Places, Roles, str], None]
PairOf = Callable[[int], tuple[Whole, Places]]


def learn_pairs(model: OneVsControl, whole: Whole, pair_of: PairOf, roles: Roles, library: str, learn: Learn) -> None:
    """Fit a model for every arm with ``learn``, to its rows and those of control, which ``pair_of`` finds by the arm's number."""
    control, arms = whole.labels[0], whole.labels[1:]
    base, members, ladders = model._base(), [], []
    for k, label in enumerate(arms, start=1):
        own, raws = pair_of(k)
        own = in_units(own)
        member = clone(base)
        try:
            learn(member, own, raws, roles, library)
        except ValueError as error:
            raise ValueError(f"arm {label!r} against control {control!r}: {error}") from error
        member._rate, member._library = False, None  # as of all members
        members.append(member)
        ladders.append(_ladder(member, own.places))
    model.estimators_, model._ladder = members, np.array(ladders)
    model._library, model._rate = library, whole.rate or base._outcome == "binary"
    model._remember(control, arms, whole.schema)


def own_scale(model: OneVsControl, whole: Whole) -> Scale | None:
    """The scale that pairs see outcomes on; None for one of their own."""
    return whole.scale if model._base()._outcome == "binary" else None


@dataclass(frozen=True)
class FarPairs:
    """Pairs of arms among places of raw frames."""

    model: OneVsControl
    whole: Whole
    raws: Places
    roles: Roles
    row_id: str | None

    def __call__(self, k: int) -> tuple[Whole, Places]:
        """Control and arm ``k``: numbers, and the frames they are made of."""
        roles, labels = self.roles, (self.whole.labels[0], self.whole.labels[k])
        pair = self.raws.change(partial(keep_arms, roles.treatment, labels))
        own = understand(pair.ask(partial(describe, roles)), roles, labels[0])
        scale = own_scale(self.model, self.whole) or own.scale
        own = own._replace(schema=self.whole.schema, scale=scale, heaviest=self.whole.heaviest)
        step = partial(to_numbers, roles, own.schema, own.labels, scale, own.firsts, self.row_id)
        own = own._replace(places=pair.change(step))
        if self.row_id is not None:
            check_ids(own.places, int(own.rows.sum()), self.row_id)
        return own, pair


def _ladder(member: Any, places: Places) -> Floats:
    """Quantiles of a member's scores: exact if they take few values, else between quantiles of parts."""
    few: Floats | None = places.ask(partial(_values, member), partial(_umodl.merge_values, _umodl.MOST))
    points = _umodl.quantiles(places.ask(partial(_points, member))) if few is None else few
    rows: Ints = places.ask(partial(_count, member, points), _add)
    return quantiles_of(points, rows, LADDER)


# ------------------------------------------------------------------------------------------- what a part answers


def keep_arms(treatment: str, labels: tuple[Label, Label], raw: Raw) -> Raw:
    """The rows of two arms."""
    frame = nw.from_native(raw.frame, eager_only=True)
    if not len(frame):
        return raw
    return Raw(raw.number, frame.filter(nw.col(treatment).is_in(list(labels))).to_native())


class _Scores(NamedTuple):
    values: Floats


def _scores(member: Any, part: Numbers) -> _Scores:
    if not len(part.y):
        return _Scores(np.empty(0))
    X = part.X if member._float32 else part.X.astype(np.float64)
    return _Scores(np.add(member._predict(X)[:, 0], 0.0))


def _values(member: Any, part: Numbers) -> Floats | None:
    return _umodl.values_of(_umodl.MOST, _scores(member, part))


def _points(member: Any, part: Numbers) -> tuple[Floats, float]:
    return _umodl.points_of(_umodl.MOST, _scores(member, part))


def _count(member: Any, points: Floats, part: Numbers) -> Ints:
    at = np.searchsorted(points, _scores(member, part).values)
    return np.bincount(at, minlength=len(points))


def _add(parts: Sequence[Ints]) -> Ints:
    total: Ints = np.sum(parts, axis=0)
    return total
