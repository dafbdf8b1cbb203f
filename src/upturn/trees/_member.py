"""A single tree as a member of an ensemble: one binning for all of them, one walk, one table of nodes in the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from upturn._arrays import Floats, Indices
from upturn._experiment import Experiment
from upturn.base import Opinion
from upturn.kernels.forest import twin_codes
from upturn.trees._base import Scale, TreeModel
from upturn.trees._bins import Bins, Codes
from upturn.trees._growth import Soil
from upturn.trees._nodes import Nodes, share_rows


@dataclass(frozen=True)
class _Prepared:
    """What fits to the same rows under different weights share: the experiment, binned, codes also by row."""

    soil: Soil
    row_codes: Codes
    y: Floats
    scale: Scale


class MemberTree(TreeModel):
    """A model of one tree, whose prepared rows are codes for prediction; trees with the same bins have one form."""

    def _fit_soil(self, soil: Soil, scale: Scale) -> Any:
        raise TypeError(f"{type(self).__name__} does not say how to grow")

    def _prepare(self, data: Experiment) -> _Prepared:
        some_zero = data.weight is not None and (data.weight == 0.0).any()  # bins are learnt from all rows then
        soil, scale = self._soil(data.with_weight(None) if some_zero else data)
        return _Prepared(soil, twin_codes(soil.codes), scale.see(data.y), scale)

    def _fit_prepared(self, prepared: _Prepared, weight: Floats) -> None:
        soil = prepared.soil.reweighted(prepared.y, weight)
        self._fit_soil(soil, prepared.scale)

    def _rows_of(self, prepared: _Prepared) -> Codes:
        return prepared.row_codes

    @property
    def _form(self) -> Bins:
        return self.bins_

    def _prepare_rows(self, X: Floats) -> Codes:
        return self.bins_.encode_rows(X, n_jobs=self.n_jobs)

    def _predict_rows(self, rows: Codes) -> Floats:
        effects: Floats = self.nodes_.opinions("score")[self.nodes_.leaves(rows)[0]]
        return effects

    def _recommend_rows(self, rows: Codes) -> Indices:
        features = self.nodes_.used_features
        if len(features) != 1:
            return self._decide(rows)
        every = np.zeros((self.bins_.n_features, 256), np.uint8)  # a stump decides code by code
        every[features[0]] = np.arange(256)
        return np.asarray(self._decide(twin_codes(every)).take(rows[:, 2 * features[0]]))

    def _decide(self, rows: Codes) -> Indices:
        """The arm with the largest response, control first of equals."""
        best: Indices = self.nodes_.value.argmax(axis=1).take(self.nodes_.leaves(rows)[0])
        return best

    @property
    def _n_nodes(self) -> int:
        return len(self.nodes_.feature)

    def _nodes_of(self, rows: Codes) -> Indices:
        leaf: Indices = self.nodes_.leaves(rows)[0].astype(np.intp)
        return leaf

    def _node_opinions(self, how: Opinion) -> Floats:
        return self.nodes_.opinions(how)

    def _add_opinions(
        self,
        members: Sequence[Self],
        voices: Sequence[float],
        X: Floats,
        how: Opinion | Sequence[Floats],
        total: Floats,
        n_jobs: int | None,
    ) -> None:
        nodes = Nodes.join([member.nodes_ for member in members])
        said = nodes.opinions(how) if isinstance(how, str) else np.concatenate(how)
        values = np.repeat(voices, np.diff(nodes.first))[:, None] * said

        def add(rows: slice) -> None:
            nodes.add_up(self.bins_, X[rows], values, total[rows])

        share_rows(add, len(X), self.n_jobs if n_jobs is None else n_jobs)

    def _get_states(self, members: Sequence[Self]) -> dict[str, Any]:
        nodes = Nodes.join([member.nodes_ for member in members])
        return {"bins": self.bins_.get_state(), "nodes": nodes.get_state()}

    def _set_states(self, states: dict[str, Any], make: Callable[[], Self]) -> list[Self]:
        whole = make()
        whole._set_state(states)
        members = []
        for tree in range(whole.nodes_.n_trees):
            member = make()
            member.bins_, member.nodes_ = whole.bins_, whole.nodes_.tree(tree)
            members.append(member)
        return members
