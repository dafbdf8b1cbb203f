"""The gate of policies: what people pass, checked and laid out as arrays. Every public function here enters through it.

==================  ==================================================================================================
``read_plan``       people with their predictions, costs and values, and an experiment on them if there is one
``read_others``     other people, for a plan that is made already
``read_limit``      a share of people, or a budget
``read_study``      features and treatment, where the outcome plays no part
``read_response``   expected outcomes without and with treatment
==================  ==================================================================================================
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from upturn._arrays import Floats
from upturn._columns import as_floats, check_finite, check_magnitude, to_numpy
from upturn._experiment import Experiment
from upturn._parameters import LABEL, NONE, check, number
from upturn._rows import by_label, check_order, index_of, names_of, take_named
from upturn._table import read_table
from upturn._target import Label, Target, read_measured

_NO_ARMS = {
    "score",
    "uplift",
    "prediction",
    "predicted",
    "effect",
    "cate",
}  # what a column of predictions is called that names no arm


@dataclass(frozen=True)
class People:
    """The people a plan is for.

    Attributes
    ----------
    uplift : float array of shape (n, K)
        Predicted uplift, a column per treatment arm.
    labels : list of labels
        Of control and the arms.
    cost : float array of shape (n, K) or None
        What treating them costs.
    value : float, float array of shape (n,) or None
        What a unit of their outcome is worth.
    index : pandas index or None
        What the table they came in calls them.
    """

    uplift: Floats
    labels: list[Label]
    cost: Floats | None = None
    value: float | Floats | None = None
    index: Any = None

    def __len__(self) -> int:
        return len(self.uplift)

    @property
    def n_arms(self) -> int:
        """Number of treatment arms."""
        return int(self.uplift.shape[1])

    @property
    def worth(self) -> Floats:
        """The uplift in money, or as it is where nothing has a value."""
        return self.uplift if self.value is None else self.uplift * np.reshape(self.value, (-1, 1))


def read_plan(
    score: Any,
    *,
    cost: Any,
    value: Any,
    y: Any,
    treatment: Any,
    sample_weight: Any,
    control: Label | None,
    arms: Sequence[Label] | None = None,
) -> tuple[People, Target | None]:
    """People to plan for, and an experiment on the same people; None where there is none."""
    experiment = _read_experiment(y, treatment, sample_weight, control)
    _check_names(arms)
    if experiment is None:
        control, arms = _named_arms(score, control, arms)
        uplift = _read_uplift(score, arms, control)
        labels = _read_labels(control, arms, uplift.shape[1])
    else:
        uplift, labels = _read_uplift(score, experiment.arms, experiment.control), experiment.labels
        _check_arms(arms, experiment.arms)
        _check_experiment(experiment, uplift)
    n, index = len(uplift), index_of(score, y, treatment)
    index = index if index is not None and index.is_unique else None  # what names several people names nobody
    return People(uplift, labels, _read_costs(cost, n, labels), _read_value(value, n), index), experiment


def read_others(score: Any, cost: Any, value: Any, labels: list[Label]) -> People:
    """Other people, for a plan with these labels."""
    check_order(score=score, cost=cost, value=value)
    uplift = _read_uplift(score, labels[1:], labels[0])
    if uplift.shape[1] != len(labels) - 1:
        raise ValueError(f"score has {uplift.shape[1]} column(s) and the plan {len(labels) - 1} arm(s) {labels[1:]!r}")
    return People(uplift, labels, _read_costs(cost, len(uplift), labels), _read_value(value, len(uplift)))


def read_limit(fraction: Any, budget: Any, n: int, by_person: bool) -> float | None:
    """How many people, or how much money, a plan may use; None for no limit."""
    if fraction is not None and budget is not None:
        raise ValueError(
            f"fraction={fraction!r} and budget={budget!r} both limit the plan: pass one of them, a share of people or a budget"
        )
    check("fraction", fraction, number(least=0, most=1).named("a share of people from 0 to 1, such as 0.2") | NONE)
    what = "a number of people" if by_person else "an amount of money"
    check("budget", budget, number(least=0).named(f"{what}, 0 or more") | NONE.named("None for no limit"))
    if fraction is not None:
        return float(np.floor(fraction * n + 1e-9))
    return None if budget is None else float(budget)


def read_study(X: Any, treatment: Any, sample_weight: Any, control: Label | None) -> Experiment:
    """Who was in which arm, and what is known of them; the outcome is 0 everywhere. Columns may be named in X."""
    X, columns, _ = take_named(X, treatment=treatment, sample_weight=sample_weight)
    matrix, schema = read_table(X)
    return Experiment(matrix, schema, read_measured(np.zeros(len(matrix)), **columns, control=control))


def read_response(response: Any) -> Floats:
    """Expected outcomes without and with treatment, a column each."""
    matrix = _numbers(response, "response")
    check_magnitude(matrix, "response")
    if matrix.ndim != 2 or matrix.shape[1] != 2 or len(matrix) == 0:
        raise ValueError(
            f"response has shape {matrix.shape}: expected (n, 2), outcomes without and with treatment, as predict_response gives them; of "
            "several arms, pick one: response[:, [0, k]]"
        )
    return matrix


# --------------------------------------------------------------------------------------------- people


def _read_uplift(score: Any, arms: Sequence[Label] | None, control: Label | None) -> Floats:
    """Predictions, a column per arm; those of a frame are put into the order of the arms by their names."""
    matrix = _numbers(score if arms is None else by_label(score, arms, "score", control), "score")
    check_magnitude(matrix, "score")
    matrix = matrix[:, None] if matrix.ndim == 1 else matrix
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"score has shape {matrix.shape}: expected (n,), or (n, K) with a column per treatment arm")
    return np.ascontiguousarray(matrix)


def _named_arms(
    score: Any, control: Label | None, arms: Sequence[Label] | None
) -> tuple[Label | None, Sequence[Label] | None]:
    """Labels of control and the arms: those given, else the names of the columns of a frame, as ``predict(X, output="frame")`` has them."""
    names = names_of(score)
    if arms is not None or names is None or (len(names) == 1 and names[0].casefold() in _NO_ARMS):
        return control, arms
    if not all(name.isdecimal() for name in names):
        return control, names
    numbers = [int(name) for name in names]  # of arms that are numbers
    return 0 if control is None and 0 not in numbers else control, numbers


def _read_experiment(y: Any, treatment: Any, sample_weight: Any, control: Label | None) -> Target | None:
    if y is None:
        if treatment is not None:
            raise ValueError("treatment was given without y: an experiment needs both, to measure what the plan gains")
        return None
    return read_measured(y, treatment, sample_weight, control=control)


def _check_experiment(experiment: Target, uplift: Floats) -> None:
    """Refuse an experiment on other people, or with other arms."""
    if len(experiment) != len(uplift):
        raise ValueError(
            f"score has {len(uplift):,} rows and y has {len(experiment):,}: the experiment must be on the same people; for others, make the "
            "plan on the experiment and pass their score to plan.apply"
        )
    if experiment.n_arms != uplift.shape[1]:
        raise ValueError(
            f"score has {uplift.shape[1]} column(s) and treatment {experiment.n_arms} arm(s) {experiment.arms!r} besides control: "
            "expected one column per arm, in this order"
        )


def _read_labels(control: Label | None, arms: Sequence[Label] | None, n_arms: int) -> list[Label]:
    """The labels of control and the arms when there is no experiment to take them from."""
    check("control", control, LABEL)
    _check_names(arms)
    given = list(range(1, n_arms + 1) if arms is None else arms)
    if len(given) != n_arms:
        raise ValueError(
            f"arms={given!r} has {len(given)} label(s) and score {n_arms} column(s): expected one per column"
        )
    if control is None:
        control = 0 if arms is None else "control"
    repeated = [label for label in given if given.count(label) > 1]
    if repeated:
        raise ValueError(f"arms={given!r} names {repeated[0]!r} more than once: expected a label of its own per column")
    if control in given:
        raise ValueError(
            f"arms={given!r} holds {control!r}, the label of control: score has no column for control; name the arms of its "
            "columns in arms, and control in control"
        )
    return [control, *given]


def _check_names(arms: Any) -> None:
    """Refuse what is no list of labels."""
    if arms is None:
        return
    given = list(arms) if isinstance(arms, list | tuple | range | np.ndarray) and np.ndim(arms) == 1 else [None]
    if not all(label is not None and LABEL.accepts(label) and label == label for label in given):
        raise ValueError(
            f"arms={reprlib.repr(arms)}: expected a list of labels, one for each column of score, as in ['mail', 'call']"
        )


def _check_arms(arms: Sequence[Label] | None, found: Sequence[Label]) -> None:
    """Refuse names of the columns other than those of the experiment, or in another order."""
    _check_names(arms)
    if arms is not None and list(arms) != list(found):
        raise ValueError(
            f"arms={list(arms)!r} and treatment holds {list(found)!r} besides control: with an experiment, the columns of score (and of "
            "cost) are its arms in this order; sort them so, and leave arms out"
        )


# --------------------------------------------------------------------------------------------- money


def _read_costs(cost: Any, n: int, labels: Sequence[Label]) -> Floats | None:
    """Costs as a matrix with a row per person and a column per treatment arm; None when there are none.

    A number, a number per arm (a list in the order of the arms, or a dict by label), a column per person when there is
    one arm, or a matrix.
    """
    arms = list(labels[1:])
    if cost is None:
        return None
    cost = _keyed(cost, labels)
    cost = _costs_by_label(cost, labels) if isinstance(cost, Mapping) else by_label(cost, arms, "cost", labels[0])
    values = _numbers(cost, "cost")
    _no_negatives(values, "cost", "a cost is 0 or more; what treatment brings in belongs into value")
    check_magnitude(values, "cost")
    check_magnitude(values[(values > 0) & (values < 1)], "a cost")
    if values.ndim == 0 or values.shape == (1,) == (len(arms),):
        matrix = np.full((n, len(arms)), float(values.reshape(())))
    elif values.shape == (n, len(arms)):
        matrix = values
    elif values.shape == (len(arms),) and len(arms) != n:
        matrix = np.tile(values, (n, 1))
    elif values.shape == (n,) and len(arms) == 1:
        matrix = values[:, None]
    else:
        raise ValueError(
            f"cost has shape {values.shape}, with {n:,} people and {len(arms)} treatment arm(s) {arms!r}: expected a number, one "
            "number per arm, or one per person and arm"
        )
    return np.ascontiguousarray(matrix)


def _keyed(cost: Any, labels: Sequence[Label]) -> Any:
    """A column of pandas whose index is the names of arms, as a mapping; numbers in an index may be those of rows."""
    index = index_of(cost)
    short = index is not None and np.ndim(cost) == 1 and len(cost) <= len(labels)
    return dict(cost.items()) if short and any(isinstance(arm, str) and arm in index for arm in labels[1:]) else cost


def _costs_by_label(cost: Mapping[Any, Any], labels: Sequence[Label]) -> list[Any]:
    arms = list(labels[1:])
    given = {key: value for key, value in cost.items() if key != labels[0]}
    absent = [label for label in arms if label not in given]
    strange = [key for key in given if key not in arms]
    if absent or strange:
        raise ValueError(
            f"cost names {list(cost)!r}: expected one cost for each of the arms {arms!r}"
            + (f"; {absent!r} missing" if absent else "")
            + (f"; {strange!r} not an arm" if strange else "")
        )
    if cost.get(labels[0], 0) != 0:
        raise ValueError(
            f"cost gives control {labels[0]!r} the cost {cost[labels[0]]!r}: costs are on top of control's, which is 0"
        )
    return [given[label] for label in arms]


def _read_value(value: Any, n: int) -> float | Floats | None:
    """What a unit of the outcome is worth: a number, or a number per person; None when nothing was said."""
    if value is None:
        return None
    values = _numbers(value, "value")
    _no_negatives(
        values, "value", "a unit of outcome is worth 0 or more; turn the outcome round if less of it is better"
    )
    check_magnitude(values, "value")
    if values.ndim == 0:
        return float(values)
    if values.shape != (n,):
        raise ValueError(
            f"value has shape {values.shape} and there are {n:,} people: expected a number, or one per person"
        )
    return np.ascontiguousarray(values)


def _numbers(values: Any, name: str) -> Floats:
    """Finite numbers of any shape, of any library."""
    raw = to_numpy(values, name)
    if raw.size == 0:
        raise ValueError(f"{name} is empty: expected numbers")
    array = as_floats(np.atleast_1d(raw), name)
    check_finite(array, name, f"every {name} must be a finite number")
    return array.reshape(raw.shape)


def _no_negatives(array: Floats, name: str, advice: str) -> None:
    if (array < 0).any():
        where = f", the first at row {np.argwhere(array < 0)[0, 0]}" if array.ndim else ""
        raise ValueError(
            f"{name} holds {int((array < 0).sum())} negative value(s) (smallest {array.min():g}){where}: {advice}"
        )
