"""The base of every model: ``fit`` gates, calls ``_fit`` on encoded arrays, and the rest follows.

A model is a class that says what it needs (``_outcome``, ``_multi_arm``) and implements

==================  =========================================================================================
``_fit``            learn from an :class:`Experiment`; set attributes that end in an underscore
``_predict``        uplift scores of an encoded matrix, one column per treatment arm
``_get_state``      what a saved file must hold: JSON values, arrays, lists and dicts of them, estimators
``_set_state``      put it back, having checked shapes, ranges and finiteness
==================  =========================================================================================

and, where it has them, ``_predict_response`` (expected outcomes, control first) and ``_recommend`` (its own rule).
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from upturn import persist
from upturn._arrays import Floats, Indices
from upturn._experiment import Experiment
from upturn._html import paragraphs, preformatted
from upturn._parameters import NONE, Rule, check, check_parameters, one_of
from upturn._results import frame_like, library_of, plural
from upturn._rows import take_named
from upturn._sparse import is_sparse
from upturn._table import Schema, conform_table, read_table
from upturn._target import Label, Outcome, Target, decode, in_units, read_measured, read_target
from upturn._units import is_rate
from upturn.metrics._areas import mean_area

Opinion = Literal["score", "vote"]  # what members of an ensemble are asked for
# What scikit-learn keeps on an estimator that is neither a parameter nor learnt: its output, its requests, and what a pipeline calls back.
_OF_SCIKIT_LEARN = ("_sklearn_", "_skl_", "_metadata_request", "_parent_callback_ctx")
_ROUTED = {"treatment": True, "sample_weight": True}
_ASKED = 500  # rows that are asked first whether a model tells people apart


@functools.cache
def _constructor_names(kind: type[BaseEstimator]) -> frozenset[str]:
    """What constructors set: a class may have fewer parameters than the one it is made of, which has set the others."""
    kinds: list[Any] = [base for base in kind.__mro__ if issubclass(base, BaseEstimator)]
    return frozenset(name for base in kinds for name in base._get_param_names())


@contextlib.contextmanager
def all_or_nothing(model: BaseEstimator) -> Iterator[None]:
    """A fit from a clean slate: what an earlier one left is put aside, and put back if this one does not end.

    Whatever stops it, an error or Ctrl-C at any line, the model is then exactly as it was before.
    """
    kind: Any = type(model)
    before, kept = model.__dict__.copy(), _constructor_names(kind)
    try:
        for name in before:
            if name not in kept and not name.startswith(_OF_SCIKIT_LEARN):
                del model.__dict__[name]
        yield
    except BaseException:
        model.__dict__.clear()
        model.__dict__.update(before)
        raise


class Gated(BaseEstimator):  # type: ignore[misc]
    """What models and transformers share: the gates, arm labels, columns, and the saved form."""

    _outcome: Outcome = "any"
    _multi_arm = True
    _any_size = False  # whether it takes outcomes whose squares are no numbers, and weights of any size as they are
    _float32 = False  # whether it takes a matrix of float32 as it is, without a copy; float64 otherwise
    _parameters: ClassVar[Mapping[str, Rule]] = {}  # what each parameter may be

    __metadata_request__fit = _ROUTED

    control: Label | None
    control_: Label
    arms_: list[Label]
    n_features_in_: int
    _schema: Schema
    _rate = False  # whether the outcome it was fitted to is yes or no, so that its mean is a rate
    _library: str | None = None  # of the frame it was fitted to, which tables come in

    def fit(self, X: Any, y: Any, treatment: Any = None, sample_weight: Any = None) -> Self:
        """Learn from an experiment.

        Parameters
        ----------
        X : table of shape (n, p)
            Features: numpy, pandas, polars or pyarrow; for linear machines, and meta-learners over a base that takes them, also
            sparse matrices of scipy.
        y : array-like of shape (n,), or str
            Outcome; or a packed target made by :func:`upturn.pack`, and then no treatment. Outcome, treatment and weight may
            also be names of columns of X, as in ``fit(table, "visit", "segment")``: they are no features then, and are passed
            over in tables that come later.
        treatment : array-like of shape (n,), or str, optional
            The label of the arm each row was in.
        sample_weight : array-like of shape (n,), or str, optional
            Weights of the rows. Where the largest lies outside 2^±30, only their ratios count.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            check_parameters(self)
            X, columns, taken = take_named(X, y=y, treatment=treatment, sample_weight=sample_weight)
            if is_sparse(X) and not self._takes_sparse() and (advice := self._sparse_advice()):
                raise TypeError(advice)
            matrix, schema = read_table(X, float32=self._float32, sparse=self._takes_sparse())
            schema = replace(schema, taken=taken) if taken else schema
            target = read_target(**columns, control=self.control, outcome=self._outcome)
            self._learn(Experiment(matrix, schema, target), library_of(X))
        return self

    def _learn(self, data: Experiment, library: str | None) -> None:
        """What ``fit`` does with an experiment, once it is read."""
        target = data.target if self._any_size else in_units(data.target)
        data, self._library, self._rate = replace(data, target=target), library, is_rate(target)
        self._refuse_arms(target.control, target.arms)
        self._fit(data)
        self._remember(target.control, target.arms, data.schema)
        self._tell(data)

    def _refuse_arms(self, control: Label, arms: list[Label]) -> None:
        """Refuse several arms where there may be one."""
        if len(arms) > 1 and not self._multi_arm:
            raise ValueError(
                f"{type(self).__name__} compares one treatment with control, and treatment holds {len(arms)} arms "
                f"{arms!r} besides control {control!r}: keep the rows of one of them, wrap it, as in "
                f"meta.OneVsControl({type(self).__name__}()), or use a model for several arms such as UpliftForest"
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that :func:`upturn.load` reads; no pickle is involved."""
        check_is_fitted(self)
        persist.save(self, path)

    def _fit(self, data: Experiment) -> None:
        raise TypeError(f"{type(self).__name__} does not say how to fit")

    def _takes_sparse(self) -> bool:
        """Whether it takes sparse matrices as they are."""
        return False

    def _sparse_advice(self) -> str:
        """What to change for it to take sparse matrices, where that is more than the gate can know."""
        return ""

    def _tell(self, data: Experiment) -> None:
        """Warn of what a user should know about the model just fitted; models inside others stay silent."""
        self._tell_arms()

    def _tell_arms(self) -> None:
        """Warn of arms that are not alike, if this model, or the one inside, has looked at them."""

    def _get_state(self) -> dict[str, Any]:
        raise TypeError(f"{type(self).__name__} does not say what its state is")

    def _set_state(self, state: dict[str, Any]) -> None:
        raise TypeError(f"{type(self).__name__} does not say what its state is")

    def _remember(self, control: Label, arms: list[Label], schema: Schema) -> None:
        """Keep the labels and columns of the experiment; an ensemble hands them on to its members."""
        self.control_, self.arms_ = control, arms
        self._adopt_schema(schema)

    def _adopt_schema(self, schema: Schema) -> None:
        self._schema, self.n_features_in_ = schema, schema.n_features
        if schema.named:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _encode(self, X: Any) -> Floats:
        """Gate the features of a fitted model."""
        check_is_fitted(self)
        name, sparse = type(self).__name__, self._takes_sparse()
        return conform_table(X, self._schema, name, float32=self._float32, sparse=sparse)

    def _dump(self) -> dict[str, Any] | None:
        """Everything a saved file holds besides the parameters; None for a model that is not fitted."""
        if not self.__sklearn_is_fitted__():
            return None
        return {
            "control": self.control_,
            "arms": self.arms_,
            "schema": self._schema.to_json(),
            "rate": self._rate,
            "fitted": self._get_state(),
        }

    def _restore(self, dump: dict[str, Any] | None) -> None:
        if dump is None:
            return
        control, arms = dump["control"], dump["arms"]
        if not isinstance(arms, list) or not 1 <= len(arms) <= 254 or len({control, *arms}) != len(arms) + 1:
            raise ValueError("the arm labels are not well formed")
        if len(arms) > 1 and not self._multi_arm:
            raise ValueError(f"{type(self).__name__} has one arm besides control, and the file names {len(arms)}")
        if not all(isinstance(label, bool | int | float | str) and label == label for label in (control, *arms)):
            raise ValueError("an arm label is of a kind that cannot be one")
        if not isinstance(dump["rate"], bool):
            raise ValueError("whether the outcome is a rate is neither true nor false")
        self._rate = dump["rate"]
        self._remember(control, arms, Schema.from_json(dump["schema"]))
        self._set_state(dump["fitted"])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "control_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = self._takes_sparse()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = str(super().__repr__(N_CHAR_MAX))
        return f"{text} [{self._fitted_words()}]" if self.__sklearn_is_fitted__() else text

    def _fitted_words(self) -> str:
        """What a fitted model is of."""
        arms = f"arm {self.arms_[0]!r}" if len(self.arms_) == 1 else f"arms {self.arms_!r}"
        return f"fitted: control {self.control_!r}, {arms}, {plural(self.n_features_in_, 'feature')}"

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._fitted_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        shown: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in shown:  # scikit-learn's diagram
            shown["text/html"] = str(shown["text/html"]) + self._fitted_html()
        return shown

    def _fitted_html(self) -> str:
        """What a notebook shows below the diagram of a fitted model: what it is of, and a single tree in words."""
        if not self.__sklearn_is_fitted__():
            return ""
        words = (
            preformatted(self.export_text())
            if hasattr(self, "export_text") and not hasattr(self, "n_estimators")
            else ""
        )
        return paragraphs([self._fitted_words()]) + words


_OUTPUT = one_of("frame").named("'frame'") | NONE.named("None for an array")


def _estimates_responses(model: Any) -> bool:
    if hasattr(model, "_predict_response"):
        return True
    raise AttributeError(f"{type(model).__name__} estimates effects, not responses: it has no predict_response")


class UpliftEstimator(Gated):
    """Base class of uplift models: predict, recommend and score on top of ``_fit`` and ``_predict``."""

    _score_has_zero = True  # whether 0 separates those to treat from those to leave alone
    _score_is_effect = True  # whether it is in units of the outcome, so that those of different models compare

    __metadata_request__score = _ROUTED

    def predict(self, X: Any, *, output: Literal["frame"] | None = None) -> Any:
        """Predicted uplift: what treatment adds to the outcome, row by row.

        Parameters
        ----------
        X : table of shape (n, p)
            The columns of the fit, in any order when they are named.
        output : {None, "frame"}
            An array, or a frame of the library of X with its index and a column per arm, named as the arm.

        Returns
        -------
        array of shape (n,), or (n, K) for K arms in the order of ``arms_``; or a frame
        """
        check("output", output, _OUTPUT)
        with np.errstate(all="ignore"):  # what overflows is refused in words
            scores = finite(self._predict(self._encode(X)))
        if output is not None:
            return frame_like(X, {str(arm): scores[:, k] for k, arm in enumerate(self.arms_)})
        return scores[:, 0] if len(self.arms_) == 1 else scores

    @available_if(_estimates_responses)  # type: ignore[untyped-decorator]
    def predict_response(self, X: Any) -> Floats:
        """Expected outcome under control and under every arm: an array of shape (n, 1 + K), control first."""
        with np.errstate(all="ignore"):
            return finite(self._predict_response(self._encode(X)))

    def recommend(self, X: Any, *, output: Literal["frame"] | None = None) -> Any:
        """The label each row should get by the model's own rule; the control label where nothing helps.

        With ``output="frame"``, a frame of the library of X with its index and the column "recommended".
        """
        check("output", output, _OUTPUT)
        self._refuse_without_zero()
        matrix = self._encode(X)
        with np.errstate(all="ignore"):
            labels = decode([self.control_, *self.arms_], self._recommend(matrix))
        return labels if output is None else frame_like(X, {"recommended": labels})

    def _same_for_all(self, data: Experiment) -> bool:
        """Whether all rows are predicted the same, some of them being asked first."""
        some = data.X[:: max(len(data) // _ASKED, 1)]
        return all(bool((scores == scores[0]).all()) for scores in map(self._predict, (some, data.X)))

    def _refuse_without_zero(self) -> None:
        if not self._score_has_zero:
            raise ValueError(
                f"the scores of {type(self).__name__} rank people but have no zero that tells help from harm, so they cannot say "
                "whom to treat: turn them into effects with upturn.policy.UpliftCalibrator(model), or treat the top of the "
                "ranking with upturn.policy.target"
            )

    def score(self, X: Any, y: Any, treatment: Any = None, sample_weight: Any = None) -> float:
        """AUUC of the predictions; with several arms, the arms' mean weighted by their size.

        Parameters are those of ``fit``; every arm of the fit must have rows.
        """
        check_is_fitted(self)
        matrix, target = self._gate_experiment(X, y, treatment, sample_weight)
        with np.errstate(all="ignore"):
            scores = finite(self._predict(matrix))
        return mean_area(target, scores)

    def _gate_experiment(self, X: Any, y: Any, treatment: Any, sample_weight: Any) -> tuple[Floats, Target]:
        """Gate an experiment that a fitted model is judged by."""
        X, columns, _ = take_named(X, y=y, treatment=treatment, sample_weight=sample_weight)
        target = read_measured(**columns, known=(self.control_, self.arms_))
        data = Experiment(self._encode(X), self._schema, target)
        return data.X, data.target

    def _predict(self, X: Floats) -> Floats:
        raise TypeError(f"{type(self).__name__} does not say how to predict")

    def _recommend(self, X: Floats) -> Indices:
        scores = finite(self._predict(X))
        best = scores.argmax(axis=1)
        return np.where(scores[np.arange(len(X)), best] > 0, best + 1, 0)

    # As a member of an ensemble, which fits many models to one experiment that differ only in their weights, asks all of
    # them about the same rows and saves them in one file. A model whose fits can share work overrides what it must: trees
    # bin the features once, are walked together, and keep one table of nodes.

    def _prepare(self, data: Experiment) -> Any:
        """What every fit to these rows shares."""
        return data

    def _fit_prepared(self, prepared: Any, weight: Floats) -> None:
        """Fit to prepared rows under other weights."""
        self._fit(prepared.with_weight(weight))

    def _rows_of(self, prepared: Any) -> Any:
        """The rows of a prepared experiment in the form that ``_prepare_rows`` gives them."""
        return prepared.X

    @property
    def _form(self) -> Any:
        """What that form depends on: members whose ``_form`` is the same object take the same prepared rows."""
        return None

    def _prepare_rows(self, X: Floats) -> Any:
        """Rows to ask members about; ``rows[mask]`` are some of them."""
        return X

    def _predict_rows(self, rows: Any) -> Floats:
        """What ``_predict`` says about prepared rows."""
        return self._predict(rows)

    def _recommend_rows(self, rows: Any) -> Indices:
        """What ``_recommend`` says about prepared rows."""
        return self._recommend(rows)

    # Models with leaves, whose answer is one of a few that they know beforehand, also say which.

    @property
    def _n_nodes(self) -> int:
        """Nodes that rows can be in; 0 for a model without leaves."""
        return 0

    def _nodes_of(self, rows: Any) -> Indices:
        """The leaf of prepared rows, by its number among the nodes."""
        raise TypeError(f"{type(self).__name__} has no leaves")

    def _node_opinions(self, how: Opinion) -> Floats:
        """The opinion that rows of every node get: an array of shape (nodes, arms)."""
        raise TypeError(f"{type(self).__name__} has no leaves")

    def _opinion(self, rows: Any, how: Opinion, n_arms: int) -> Floats:
        """The effects of prepared rows, or the model's votes for their arms; a column per arm."""
        return self._predict_rows(rows) if how == "score" else votes_for(self._recommend_rows(rows), n_arms)

    def _add_opinions(
        self,
        members: Sequence[Any],
        voices: Sequence[float],
        X: Floats,
        how: Opinion | Sequence[Floats],
        total: Floats,
        n_jobs: int | None,
    ) -> None:
        """Add to ``total``, member after member, their opinions times their voices; this is one of them, of one form.

        Of models with leaves, ``how`` may also be what to say in the nodes of each.
        """
        assert isinstance(how, str), "a model without leaves has nothing to say in them"
        rows = self._prepare_rows(X)
        for member, voice in zip(members, voices, strict=True):
            total += voice * member._opinion(rows, how, total.shape[1])

    def _get_states(self, members: Sequence[Any]) -> Any:
        """What a saved file must hold of members of one form, this being one of them."""
        return [member._get_state() for member in members]

    def _set_states(self, states: Any, make: Callable[[], Any]) -> list[Any]:
        """The members that a file holds, out of empty ones as ``make`` makes them."""
        members = []
        for state in states:
            member = make()
            member._set_state(state)
            members.append(member)
        return members

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor"
        tags.regressor_tags = RegressorTags()
        return tags


def votes_for(arm: NDArray[Any], n_arms: int) -> Floats:
    """1 in the column of the arm that each row is given, 0 elsewhere; nothing but 0 for control."""
    return np.asarray(arm[:, None] == np.arange(1, n_arms + 1), dtype=np.float64)


def finite(predicted: Floats) -> Floats:
    """Predictions, none of them missing or infinite: numbers too large to add, or a base model that went astray, are not hidden."""
    bad = ~np.isfinite(predicted).all(axis=1)
    if bad.any():
        raise ValueError(
            f"the model has no finite prediction for {int(bad.sum()):,} row(s), the first at row {int(bad.argmax())}: look for "
            "features or outcomes of absurd size, and at the model inside, if it is one of another library"
        )
    return predicted


def finite_importances(values: Floats, n_features: int) -> Floats:
    """Importances, one a feature and none of them missing or infinite."""
    if values.shape != (n_features,) or not np.isfinite(values).all():
        raise ValueError(
            "the model has no finite importance for every feature: look for features or outcomes of absurd size, and at the model "
            "inside, if it is one of another library"
        )
    return values
