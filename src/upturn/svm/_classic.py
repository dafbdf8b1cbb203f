"""One hyperplane: the classifiers that uplift machines are compared with (Kuusisto et al., section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from upturn._arrays import Bools, Floats, Indices
from upturn._experiment import Experiment
from upturn._parameters import FLAG, Rule, number
from upturn._seeds import make_seed
from upturn._target import Label
from upturn.svm._base import Machine
from upturn.svm._problem import MarginSolution
from upturn.svm._solve import Prepared
from upturn.svm._vanishing import Local, Ranking, Scored, rank, smooth_neighbour


class _Classifier(Machine):
    """An SVM on some of the rows, labelled by the outcome; its score ranks, and has no zero to treat by."""

    _score_has_zero = False

    def _fit(self, data: Experiment) -> None:
        kept, rows, z, price = self._margins(data)
        features = self._learn_features(kept, make_seed(self.random_state))
        prepared = Prepared(self._problem(), features, z, np.ones(len(rows), dtype=bool))
        found = self._solve(prepared, float(self.C) * price[None], Local(features, kept.weights))
        self._adopt(*found, rows, data)

    def _margins(self, data: Experiment) -> tuple[Experiment, Indices, Floats, Floats]:
        """The rows that have a price and their numbers, labels and prices."""
        price = self._price(data)
        rows = np.flatnonzero(price > 0.0)
        kept = data if len(rows) == len(data) else data.take(rows)
        return kept, rows, np.where(self._labels(kept), 1.0, -1.0), price[rows]

    def _solve(self, prepared: Prepared, cost: Floats, scored: Scored) -> tuple[MarginSolution, Ranking | None]:
        """The solution, and what ranks where w = 0 is optimal."""
        solution = prepared.solve(cost)
        ranking, _ = rank(self.at_zero, solution, scored, lambda: smooth_neighbour(prepared, cost))
        return solution, ranking

    def _recommend(self, X: Floats) -> Indices:
        return np.asarray(self._decision(X) > self._b[0], dtype=np.intp)

    def _price(self, data: Experiment) -> Floats:
        return data.weights

    def _labels(self, data: Experiment) -> Bools:
        return np.asarray(data.y > 0)

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        if self._b.shape != (1,):
            raise ValueError("a classifier has one hyperplane")


_PARAMETERS = """C : float
        Penalty of a slack.
    p : float
        Exponent of the slacks: 1, or from 1.05 to 10.
    kernel, gamma, degree, coef0, n_components, at_zero, standardize, tol, max_iter, random_state, control
        As for :class:`UpliftSVM`."""


class StandardSVM(_Classifier):
    r"""A support vector machine that ignores the treatment, or flips the labels of control.

    .. math:: \min_{w, b} \; \tfrac12 \|w\|^2 + C \sum_i \max(0,\; 1 - y_i(\langle w, x_i\rangle - b))^p

    It learns who responds, not whom treatment moves: the baseline every uplift model should beat. With
    ``flip_control=True`` the labels of the control group are negated, which makes it the class-transformed
    (flipped-label) Lp-SVM; that is :class:`UpliftSVM` with ``ratio=1`` and half the C.

    Parameters
    ----------
    {parameters}
    flip_control : bool
        Whether control labels are negated. ``recommend`` works only then.

    Attributes
    ----------
    coef_, coef_names_, feature_importances_, intercepts_, intercept_intervals_, vanishing_, ranking_coef_, support_, objective_, dual_bound_, dual_gap_, n_iter_
        As for :class:`UpliftSVM`, with one hyperplane.

    References
    ----------
    Kuusisto et al., "Support vector machines for differential prediction", 2014, section 4.1.
    Zaniewicz, "Support Vector Machines for Uplift Modeling", 2018, Table 6.4.2.

    Examples
    --------
    >>> from upturn.svm import StandardSVM
    >>> model = StandardSVM(C=10.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], [0, 1, 0, 1])
    >>> model.coef_.round(4), model.intercepts_.round(4)
    (array([2.]), array([3.]))
    """

    def __init__(
        self,
        C: float = 1.0,
        p: float = 1.0,
        kernel: str = "linear",
        standardize: bool = True,
        *,
        flip_control: bool = False,
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        n_components: int | None = None,
        at_zero: Literal["rank", "zero"] = "rank",
        tol: float = 1e-8,
        max_iter: int = 100,
        random_state: Any = None,
        control: Label | None = None,
    ) -> None:
        self.C = C
        self.p = p
        self.kernel = kernel
        self.standardize = standardize
        self.flip_control = flip_control
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.at_zero = at_zero
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.control = control

    _parameters: ClassVar[Mapping[str, Rule]] = {**_Classifier._parameters, "flip_control": FLAG}

    @property
    def _score_has_zero(self) -> bool:  # type: ignore[override]
        return self.flip_control

    def _labels(self, data: Experiment) -> Bools:
        return np.asarray((data.y > 0) == (data.arm == 1) if self.flip_control else data.y > 0)


class TwoCostSVM(_Classifier):
    r"""A support vector machine that prices errors in the two groups differently.

    .. math:: \min_{w, b} \; \tfrac12 \|w\|^2 + C \sum_{i \in A} \xi_i^p + C_B \sum_{j \in B} \xi_j^p, \qquad
        \xi_i = \max(0,\; 1 - y_i(\langle w, x_i\rangle - b)),

    with A the treatment group and B the control group. With C well above C_B the classifier fits the treatment group
    and is held to the control group only loosely.

    Parameters
    ----------
    {parameters}
    C_control : float
        :math:`C_B`, 0 or more; ``C`` is :math:`C_A`.

    Attributes
    ----------
    coef_, coef_names_, feature_importances_, intercepts_, intercept_intervals_, vanishing_, ranking_coef_, support_, objective_, dual_bound_, dual_gap_, n_iter_
        As for :class:`UpliftSVM`, with one hyperplane.

    References
    ----------
    Kuusisto et al., "Support vector machines for differential prediction", 2014, section 4.4. The paper prints no
    intercept; one is fitted here.

    Examples
    --------
    >>> from upturn.svm import TwoCostSVM
    >>> model = TwoCostSVM(C=10.0, C_control=0.1).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0], [1, 1, 0, 0])
    >>> bool(model.coef_[0] > 0)
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        C_control: float = 0.1,
        p: float = 1.0,
        kernel: str = "linear",
        standardize: bool = True,
        *,
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        n_components: int | None = None,
        at_zero: Literal["rank", "zero"] = "rank",
        tol: float = 1e-8,
        max_iter: int = 100,
        random_state: Any = None,
        control: Label | None = None,
    ) -> None:
        self.C = C
        self.C_control = C_control
        self.p = p
        self.kernel = kernel
        self.standardize = standardize
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.at_zero = at_zero
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.control = control

    _parameters: ClassVar[Mapping[str, Rule]] = {
        **_Classifier._parameters,
        "C_control": number(least=0, most=1e100).named(
            "0 (control rows are ignored) or a penalty above 0, at most 1e100"
        ),
    }

    def _price(self, data: Experiment) -> Floats:
        return data.weights * np.where(data.arm == 1, 1.0, float(self.C_control) / float(self.C))


class SubgroupSVM(_Classifier):
    r"""A support vector machine on the treatment group alone.

    .. math:: \min_{w, b} \; \tfrac12 \|w\|^2 + C \sum_{i \in A} \max(0,\; 1 - y_i(\langle w, x_i\rangle - b))^p

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    coef_, coef_names_, feature_importances_, intercepts_, intercept_intervals_, vanishing_, ranking_coef_, support_, objective_, dual_bound_, dual_gap_, n_iter_
        As for :class:`UpliftSVM`, with one hyperplane. Encoder and columns are those of the treatment group.

    References
    ----------
    Kuusisto et al., "Support vector machines for differential prediction", 2014, section 4.2; "Treatment SVM" in
    Table 6.4.1 of Zaniewicz, 2018.

    Examples
    --------
    >>> from upturn.svm import SubgroupSVM
    >>> model = SubgroupSVM(C=10.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0], [1, 1, 0, 0])
    >>> model.support_.tolist()
    [0, 1]
    """

    def __init__(
        self,
        C: float = 1.0,
        p: float = 1.0,
        kernel: str = "linear",
        standardize: bool = True,
        *,
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        n_components: int | None = None,
        at_zero: Literal["rank", "zero"] = "rank",
        tol: float = 1e-8,
        max_iter: int = 100,
        random_state: Any = None,
        control: Label | None = None,
    ) -> None:
        self.C = C
        self.p = p
        self.kernel = kernel
        self.standardize = standardize
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.at_zero = at_zero
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.control = control

    def _price(self, data: Experiment) -> Floats:
        return np.asarray(data.weights * (data.arm == 1))


for _class in (StandardSVM, TwoCostSVM, SubgroupSVM):
    _class.__doc__ = (_class.__doc__ or "").replace("{parameters}", _PARAMETERS)
