"""The class transformation: one classifier of treated successes and control failures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from upturn._arrays import Floats
from upturn._encode import LinearEncoder, tell_dwarfed
from upturn._experiment import Experiment
from upturn._nuisance import (
    CLIP,
    Choice,
    Logistic,
    Member,
    PropensitySpec,
    check_classifier,
    clip_propensity,
    fit_propensity,
    fit_response,
)
from upturn._parameters import ELSEWHERE, FLAG, LABEL, Rule
from upturn._target import Label
from upturn.base import finite_importances
from upturn.meta._base import WithPropensity, base_takes_sparse


class ClassTransformation(WithPropensity):
    r"""Uplift by one classifier, on a target that is 1 for treated successes and for control failures.

    With g = 1 in treatment and 0 in control,

    .. math:: z = y g + (1 - y)(1 - g), \qquad \tau(x) = 2\,P(z = 1 \mid x) - 1,

    which is the effect of the treatment on the probability of success when both arms are equally likely. With
    ``reweight=True`` rows are weighted by the inverse of the probability of their arm, which makes them so: the formula
    then holds for groups of any sizes and, with row-wise propensities, for any assignment. A classifier without
    probabilities, such as a support vector machine, is calibrated by a logistic regression on its scores.

    Parameters
    ----------
    estimator : classifier, optional
        Any scikit-learn classifier. By default a logistic regression that takes raw tables: levels become 0-1 columns,
        missing numbers the mean, and columns are standardised.
    reweight : bool
        Whether to give both groups equal weight. Without it this is the flipped-label model of Kuusisto et al.
    propensity : "auto", "shares", "logistic", "boosting", classifier, number or column name
        Probability of treatment that ``reweight`` undoes: the arm's share of the rows; estimated by logistic regression,
        gradient boosting or a classifier; known; or a column of X. "auto" keeps the share unless a model tells the arms apart
        on rows it has not seen, or a test of balance does.
    clip : float
        Propensities are kept at least this far from 0 and 1, with a warning that says for how many rows.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier; only when one was given.
    coef_, intercept_ : array, float
        The logistic regression in encoded columns ``coef_names_``; only when no estimator was given.
    feature_importances_ : array of shape (p,)
        Those of the classifier; or absolute coefficients, in standard deviations of their columns, summed over levels.
    propensity_kind_ : str
        With ``reweight``, which propensities were used: "shares", "logistic", "boosting", "classifier", "known" or "columns".
    propensity_auc_, propensity_pvalue_ : float or None
        What "auto" saw: the area under the ROC curve of the better model on rows it has not seen, and the p-value of the
        joint test of balance. None if the kind was given.
    control_, arms_ : label, list of labels

    References
    ----------
    Jaśkowski, Jaroszewicz, "Uplift modeling for clinical trial data", 2012.
    Kuusisto et al., "Support vector machines for differential prediction", 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.meta import ClassTransformation
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(1000, 2)), rng.integers(0, 2, 1000)
    >>> y = rng.random(1000) < 0.5 + 0.3 * treatment * np.sign(X[:, 0])
    >>> model = ClassTransformation().fit(X, y, treatment)
    >>> model.recommend([[2.0, 0.0], [-2.0, 0.0]])
    array([1, 0])

    The class-transformed SVM of the papers:

    >>> from sklearn.svm import SVC
    >>> svm = ClassTransformation(SVC(kernel="linear"))
    """

    _outcome = "binary"
    _multi_arm = False

    _parameters: ClassVar[Mapping[str, Rule]] = {
        "estimator": ELSEWHERE,
        "reweight": FLAG,
        "propensity": ELSEWHERE,
        "clip": CLIP,
        "control": LABEL,
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        reweight: bool = True,
        propensity: PropensitySpec = "auto",
        clip: float = 0.01,
        control: Label | None = None,
    ) -> None:
        self.estimator = estimator
        self.reweight = reweight
        self.propensity = propensity
        self.clip = clip
        self.control = control

    def _choose(self, data: Experiment) -> Choice:
        return super()._choose(data) if self.reweight else Choice("shares")

    def _fit_chosen(self, data: Experiment, choice: Choice) -> None:
        if self.estimator is not None:
            check_classifier(self.estimator)
        z = (data.y == (data.arm == 1)).astype(np.float64)
        if z.min() == z.max():
            raise ValueError(
                "every treated row has one outcome and every control row the other, so the transformed target is constant and "
                "there is nothing to learn: the effect is the same, and as large as can be, for everybody"
            )
        weight = data.weight
        if self.reweight:
            self._keep_choice(choice)
            chance = fit_propensity(choice, data).predict(data.X)
            if choice.kind != "shares":
                chance = clip_propensity(chance, self.clip, type(self).__name__)
            weight = data.weights / (2 * chance[np.arange(len(data)), data.arm])
        for name in (
            "estimator_",
            "coef_",
            "intercept_",
            "coef_names_",
        ):  # of an earlier fit, perhaps of the other kind
            self.__dict__.pop(name, None)
        if self.estimator is None:
            model = Logistic.fit(data.X, z.astype(np.int64), 2, weight, data.schema)
            self.encoder_: LinearEncoder | None = model.encoder
            self.coef_names_ = model.encoder.names(data.schema)
            self.coef_, self.intercept_ = model.coef[1], float(model.intercept[1])
        else:
            self._adopt(fit_response(self.estimator, data.X, z, weight, data.schema, seed=0))

    def _takes_sparse(self) -> bool:
        return self.estimator is None or base_takes_sparse(self)

    def _tell(self, data: Experiment) -> None:
        if self.estimator is None:
            tell_dwarfed(type(self).__name__, self.encoder_, data.X, data.schema)

    def _adopt(self, member: Member) -> None:
        self._member = member
        self.estimator_, self.encoder_ = member.model, member.encoder

    def _predict(self, X: Floats) -> Floats:
        if hasattr(self, "estimator_"):  # what was fitted counts, not the parameter, which may have changed since
            return (2.0 * self._member.predict(X) - 1.0)[:, None]
        assert self.encoder_ is not None
        return np.asarray(2.0 * expit(self.encoder_.transform(X) @ self.coef_ + self.intercept_) - 1.0)[:, None]

    @property
    def feature_importances_(self) -> Floats:
        """Importances of the classifier, or the absolute coefficients of the logistic regression, level by level added up."""
        check_is_fitted(self)
        if hasattr(self, "estimator_"):
            return self._member.importances(self.n_features_in_)
        assert self.encoder_ is not None
        values = np.abs(self.coef_) * self.encoder_.spread / self.encoder_.scale
        return finite_importances(self.encoder_.by_column(values), self.n_features_in_)

    def _get_state(self) -> dict[str, Any]:
        state: dict[str, Any] = {
            "encoder": None if self.encoder_ is None else self.encoder_.get_state(),
            "choice": self._choice_state() if hasattr(self, "propensity_kind_") else None,
        }
        if hasattr(self, "estimator_"):
            link = self._member.link
            return {**state, "estimator": self.estimator_, "link": None if link is None else list(link)}
        return {**state, "coef": self.coef_, "intercept": self.intercept_}

    def _set_state(self, state: dict[str, Any]) -> None:
        if state["choice"] is not None:
            self._set_choice(state["choice"])
        if "estimator" in state:
            check_classifier(state["estimator"])
            member = {**state, "foreign": state["estimator"], "boosted": None, "low": 0.0, "high": 1.0}
            self._adopt(Member.from_state(member, self._schema))
            return
        encoder = state["encoder"]
        if encoder is None:
            raise ValueError("the logistic regression has lost its encoder")
        self.encoder_ = LinearEncoder.from_state(encoder, self._schema)
        self.coef_names_ = self.encoder_.names(self._schema)
        self.coef_, self.intercept_ = state["coef"], state["intercept"]
        if self.coef_.shape != (len(self.coef_names_),) or self.coef_.dtype != np.float64:
            raise ValueError("the coefficients do not fit the columns")
        if not isinstance(self.intercept_, float) or not np.isfinite([*self.coef_, self.intercept_]).all():
            raise ValueError("the coefficients are not finite")
