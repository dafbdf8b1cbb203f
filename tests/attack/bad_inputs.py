"""The systematic attack on inputs: every public function, estimator, method and parameter, given every bad value of its kind.

One argument at a time is replaced in a call that is otherwise good. What becomes of it is one of

==========  ========================================================================================================
``clear``   an error that upturn itself raises, in its own words
``right``   an answer, and the catalogue (:mod:`attack.bad_values`) allows one like it
``raw``     an error of Python, numpy or another library: somebody looked at the value before a gate did
``silent``  an answer where none can be right, another one than for the good value, or NaN without a word
==========  ========================================================================================================

and, only seen from outside the process, ``crash`` and ``hang``. Warnings of numpy that come through are counted as ``leaks``.
``tests/attack`` runs a part, ``experiments/attack/inputs.py`` the whole.
"""

from __future__ import annotations

import contextlib
import dataclasses
import dis
import functools
import inspect
import os
import tempfile
import traceback
import types
import typing
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _num_samples

import upturn
from attack import bad_values
from attack.bad_values import HUGE, Bad, allowing, parameters
from estimators import ESTIMATORS, TRANSFORMERS
from upturn import datasets, engines, metrics, model_selection, persist, plot, policy, svm
from upturn._check import CheckReport
from upturn._parameters import is_flag, is_number, is_whole
from upturn.meta import DRLearner, RLearner, SLearner, TreatedOnly, XLearner
from upturn.metrics import Curve, Table

HOME = str(Path(upturn.__file__).parent)
_RAISE = dis.opmap["RAISE_VARARGS"]

# ---------------------------------------------------------------------------------------------------------- good values

N = 60
_i = np.arange(N)
X = np.column_stack([(_i * 7 % 16) / 8 - 1, (_i * 5 % 24) / 8 - 1.5, (_i * 11 % 8) / 4])
TREATMENT = _i % 2
Y = ((_i * 3 % 7 + (X[:, 0] > 0) * TREATMENT * 3) > 4).astype(float)
SCORE = (_i * 13 % 32) / 8 - 2
WEIGHT = 1.0 + _i % 3
CLUSTERS = _i // 2 * 7 % 11
RESPONSE = np.column_stack([(_i % 5) / 8, (_i % 3) / 4])

GOOD: dict[str, Any] = {
    "X": X,
    "y": Y,
    "treatment": TREATMENT,
    "sample_weight": WEIGHT,
    "score": SCORE,
    "recommended": np.where(SCORE > 0, 1, 0),
    "response": RESPONSE,
    "propensity": 0.5,
    "scores": {"a": SCORE, "b": SCORE[::-1].copy()},
    "control": 0,
    "cost": np.full(N, 0.25),
    "value": np.full(N, 2.0),
    "time": 1.0 + _i % 16,
    "event": _i % 2,
    "differences": (_i[:12] * 5 % 7) / 8 - 0.375,
    "first": SCORE,
    "second": SCORE * 0.5,
    "effect": Y - 0.5,
}
KINDS = {
    "X": bad_values.TABLE,
    "y": bad_values.OUTCOME,
    "treatment": bad_values.LABELS,
    "recommended": allowing(bad_values.LABELS, "one arm"),  # everybody is advised the same
    "sample_weight": bad_values.WEIGHT,
    "score": bad_values.SCORE,
    "time": bad_values.NUMBERS,
    "event": bad_values.OUTCOME,
    "differences": bad_values.NUMBERS,
    "first": bad_values.NUMBERS,
    "second": bad_values.NUMBERS,
}
# Numbers of things that are made one by one: what asks for billions of them is believed, and waited for.
COSTLY = {
    "n", "n_bins", "n_bootstrap", "n_components", "n_estimators", "n_features", "n_irrelevant", "n_class", "n_uplift", "n_jobs",
    "n_repeats", "n_splits", "points", "grid", "edges", "nodes", "arms", "max_iter", "digits", "max_bins",
}  # fmt: skip

# Cases that end raw all the same, each with the reason why.
KNOWN: dict[str, str] = {
    "model_selection.compare_models | metric | a function": "a scorer is the user's own function, and its errors are its own",
}
# Calls whose answers may hold NaN, each with the reason why.
MAY_BE_EMPTY: dict[str, str] = {
    "policy.four_groups": "n/a for groups without people",
    "policy.target of": "nobody is next in a plan that treats everybody whom it would pay to treat, which it says",
    "subgroups": "n/a for groups without people in both arms",
    "factorial": "n/a for cells without people",
    "datasets.split_by_attribute of tables": "what is missing in the table is missing in what is left of it",
    "FilterSelector.transform": "what is missing in the table is missing in what is kept of it",
    "UMODLSelector.transform": "what is missing in the table is missing in what is kept of it",
}

# ---------------------------------------------------------------------------------------------------------------- calls


@dataclass(frozen=True)
class Call:
    """Something public, the arguments of a call that succeeds, and the values each argument is attacked with."""

    name: str
    function: Callable[..., Any]
    good: Mapping[str, Any]
    bad: Mapping[str, tuple[Any, list[Bad]]]  # argument → its good value, and the others


@dataclass(frozen=True)
class Case:
    """One bad value in one argument of one call."""

    call: Call
    argument: str
    bad: Bad

    @property
    def name(self) -> str:
        """What it is called in reports, once in all cases."""
        return f"{self.call.name} | {self.argument} | {self.bad.name}"


def _may(hint: Any, value: Any) -> bool:
    """Whether a type hint allows a value; numbers in other clothes (Decimal, 0-d) may be taken or not."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or hint is inspect.Parameter.empty:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_may(part, value) for part in args)
    if origin is typing.Literal:
        return isinstance(value, str) and value in args
    if hint in (type(None), None):
        return value is None
    if hint is bool:
        return is_flag(value)
    if hint in (int, float):
        if type(value).__name__ in ("Decimal", "Fraction") or (isinstance(value, np.ndarray) and value.shape == ()):
            return True
        return is_whole(value) if hint is int else is_number(value) or (is_whole(value) and abs(value) < 2**1000)
    if hint is str:
        return isinstance(value, str)
    return isinstance(value, origin or hint) if isinstance(origin or hint, type) else True


def _allowed(name: str, hint: Any) -> Callable[[Any], bool | None]:
    def allowed(value: Any) -> bool | None:
        if name in COSTLY and is_whole(value) and abs(value) >= 2**31 and abs(value) < 2**63:
            return None
        if name == "random_state":
            return value is None or (isinstance(value, int | np.integer) and not is_flag(value) and value >= 0)
        if name == "control":
            return value is None or (isinstance(value, bool | int | float | np.generic) and value in (0, 1))
        if name == "n_jobs":
            return value is None or is_whole(value)
        if name == "verbose":
            return is_flag(value) or is_whole(value)
        return _may(hint, value)

    return allowed


# Parameters whose hint says less than their docs: what may be taken.
_SPECIAL: dict[str, Callable[[Any], bool]] = {
    "cv": lambda value: value is None or (is_whole(value) and value >= 2),
    "estimator": lambda value: value is None,
    "effect_estimator": lambda value: value is None,
    "propensity": lambda value: (
        value is None
        or (isinstance(value, str) and value == "auto")
        or (not is_flag(value) and not isinstance(value, str | bytes) and np.ndim(np.array(value, dtype=object)) <= 1)
    ),
    "scores": lambda value: False,
    "models": lambda value: False,
    "metrics": lambda value: False,
    "metric": lambda value: False,
    "drawn": lambda value: False,
    "curves": lambda value: False,
    "ax": lambda value: value is None,
    "fraction": lambda value: value is None or (is_number(value) and 0 <= value <= 1),
    "budget": lambda value: value is None or (is_number(value) and value >= 0),
    "interval": lambda value: value is None or (is_number(value) and 0 < value < 1),
    "alpha": lambda value: is_number(value) and 0 < value < 1,
    "condition": lambda value: False,
    "found": lambda value: False,
    "table": lambda value: False,
    "curve": lambda value: False,
    "groups": lambda value: value is None,
    "expected": lambda value: value is None or (np.shape(value) == (2,) and not isinstance(value, set)),
}


_SPARSE = "a sparse matrix"  # which linear machines and some meta-learners take, and columns are then not centred


def _hints(function: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function.__init__ if inspect.isclass(function) else function)
    except NameError:
        return {}


def _values(function: Any, argument: str, later: bool) -> list[Bad]:
    if argument == "X" and later:
        return allowing(bad_values.LATER_TABLE, _SPARSE)
    if argument in KINDS:
        return KINDS[argument]
    special = _SPECIAL.get(argument)
    if special is not None:
        return list(parameters(lambda value: _safely(special, value)))
    return list(parameters(_allowed(argument, _hints(function).get(argument, Any))))


def _safely(test: Callable[[Any], bool], value: Any) -> bool:
    try:
        return bool(test(value))
    except (TypeError, ValueError, RuntimeError):
        return False


def _call(
    name: str,
    function: Any,
    good: Mapping[str, Any],
    *,
    wrap: Callable[..., Any] | None = None,
    only: Mapping[str, list[Bad]] | None = None,
    skip: tuple[str, ...] = (),
    later: bool = False,
) -> Call:
    """A call of a function; every named parameter is attacked, or only some."""
    signature = inspect.signature(function).parameters
    names = [key for key, what in signature.items() if what.kind not in (what.VAR_KEYWORD, what.VAR_POSITIONAL)]
    bad: dict[str, tuple[Any, list[Bad]]] = {}
    for argument in names if only is None else only:
        if argument in skip or argument == "self":
            continue
        default = signature[argument].default
        value = good.get(argument, GOOD.get(argument, None if default is inspect.Parameter.empty else default))
        values = _values(function, argument, later) if only is None else only[argument]
        bad[argument] = (value, values)
    return Call(name, wrap or function, good, bad)


def _optional(values: list[Bad]) -> list[Bad]:
    """The same where None may be left to a default."""
    return [Bad(bad.name, bad.make, "sound") if bad.name == "None" else bad for bad in values]


def _functions() -> Iterator[Call]:
    ranked = {"y": Y, "score": SCORE, "treatment": TREATMENT}
    quick = {"n_bootstrap": 8}
    several = {"y": Y, "scores": GOOD["scores"], "treatment": TREATMENT}
    advised = {"y": Y, "recommended": GOOD["recommended"], "treatment": TREATMENT}
    for name in ("auuc", "auu", "autoc", "qini", "uplift_at", "uplift_curve", "qini_curve", "toc_curve", "modified_uplift_curve",
                 "calibration_table"):  # fmt: skip
        yield _call(f"metrics.{name}", getattr(metrics, name), {**ranked, **quick, "interval": 0.9})
    for name in ("lift_area", "lift_curve"):
        yield _call(f"metrics.{name}", getattr(metrics, name), {"y": Y, "score": SCORE, **quick, "interval": 0.9})
    effects = {"effect": Y - 0.5, "score": SCORE, **quick, "interval": 0.9}
    yield _call("metrics.rate", metrics.rate, effects, skip=("effect",))
    yield _call("metrics.rate of effects", metrics.rate, effects, only={"effect": bad_values.OUTCOME})
    for name in ("expected_response", "policy_value"):
        yield _call(f"metrics.{name}", getattr(metrics, name), {**advised, **quick, "interval": 0.9})
    yield _call("metrics.effect_scores", metrics.effect_scores, {"y": Y, "treatment": TREATMENT})
    yield _call("metrics.evaluate", metrics.evaluate, {**several, **quick})
    yield _call("metrics.compare", metrics.compare, {**several, **quick})
    curve = metrics.uplift_curve(Y, SCORE, TREATMENT)
    yield _call("metrics.average_curves", metrics.average_curves, {"curves": [curve, curve], "interval": 0.9})
    # The heights come in the shape of the shares.
    any_shape = allowing(
        _optional_length(bad_values.SCORE),
        "a column vector",
        "np.matrix",
        "a frame of one column",
        "a frame of two columns",
        "lists in cells",
    )
    yield _call("metrics.Curve.__call__", lambda x: curve(x), {"x": _i / 64}, only={"x": any_shape})
    one = {"scores of a model": bad_values.SCORE}
    for name in ("evaluate", "compare"):
        yield Call(
            f"metrics.{name} of scores",
            lambda name=name, **given: getattr(metrics, name)(
                Y, {"a": given["scores of a model"], "b": SCORE}, TREATMENT, n_bootstrap=8
            ),
            {},
            {key: (SCORE[::-1].copy(), values) for key, values in one.items()},
        )
    # A packed part of an experiment may hold one arm, and which one is control is said later, by who reads it.
    packed = {
        "y": bad_values.OUTCOME,
        "treatment": allowing(bad_values.LABELS, "one arm", "two that look like control"),
        "sample_weight": allowing(bad_values.WEIGHT, "all of them 0"),
    }
    yield _call("pack", upturn.pack, {"y": Y, "treatment": TREATMENT}, only=packed)
    yield Call("unpack", upturn.unpack, {}, {"packed": (upturn.pack(Y, TREATMENT), list(parameters(lambda _: False)))})
    study = {"X": X, "y": Y, "treatment": TREATMENT}
    yield _call("check", upturn.check, study, skip=("y",))
    # Outcomes that are missing are something to report on.
    lost = allowing(bad_values.OUTCOME, "NaN", "None in a list", "pandas' NA")
    yield _call("check of outcomes", upturn.check, study, only={"y": lost})
    yield from _trials()
    yield from _in_clusters(ranked, several)
    yield from _reports(study)
    yield _call("svm.energy_distance", svm.energy_distance, {"first": SCORE, "second": SCORE * 0.5},
                skip=("sample_weight",))  # fmt: skip
    yield Call(
        "svm.energy_distance of weights",
        lambda sample_weight: svm.energy_distance(SCORE, SCORE * 0.5, sample_weight=(sample_weight, WEIGHT)),
        {},
        {"sample_weight": (WEIGHT, bad_values.WEIGHT)},
    )
    yield _call("svm.score_balance", svm.score_balance, {"score": SCORE, "treatment": TREATMENT})
    yield _call(
        "svm.sign_shares",
        svm.sign_shares,
        {"model": svm.UpliftSVM(p=2.0), "X": X, "y": Y, "treatment": TREATMENT, "ratios": [1.0, 2.0]},
    )
    yield from _policies(ranked, quick)
    yield from _selection()
    yield from _pictures(ranked, several)
    yield from _data()


def _clusters() -> list[Bad]:
    """Values in place of every row's cluster, which anything that can be a label may name."""
    days = ("dates", "durations", "dates in a list", "dates of pandas", "pandas' periods", "pandas' intervals")
    wide = allowing(bad_values.LABELS, "one arm", "two that look like control", "infinite", "bytes in cells", *days)
    return [Bad(bad.name, bad.make, "sound" if bad.must == "same" else bad.must) for bad in wide]


def _in_clusters(ranked: Mapping[str, Any], several: Mapping[str, Any]) -> Iterator[Call]:
    for function, good in (
        (metrics.auuc, {**ranked, "interval": 0.9, "n_bootstrap": 8}),
        (metrics.evaluate, {**several, "n_bootstrap": 8}),
        (metrics.compare, {**several, "n_bootstrap": 8}),
        (policy.gain_curve, {**ranked, "n_bootstrap": 8}),
        (upturn.check, {"X": X, "y": Y, "treatment": TREATMENT}),
    ):
        room = function.__module__.split(".")[1]
        name = function.__name__ if room.startswith("_") else f"{room}.{function.__name__}"
        yield _call(
            f"{name} of groups", function, {**good, "groups": CLUSTERS}, only={"groups": _optional(_clusters())}
        )


def _reports(study: Mapping[str, Any]) -> Iterator[Call]:
    """The page, of models that take no time; pictures of it are those of `plot`."""
    tree = ESTIMATORS["UpliftTree"]()
    quick = {**study, "estimator": tree, "models": {}, "cv": 2, "n_bootstrap": 8}
    several = {"y", "treatment", "X", "sample_weight", "cost", "value", "groups", "models", "about"}
    yield _call("report", upturn.report, quick, wrap=_reported, skip=tuple(several))
    lost = allowing(bad_values.OUTCOME, "NaN", "None in a list", "pandas' NA")  # counted, and left out
    data = {"X": bad_values.TABLE, "y": lost, "treatment": bad_values.LABELS, "sample_weight": bad_values.WEIGHT}
    yield _call("report of data", upturn.report, quick, wrap=_reported, only=data)
    money = _optional_length(_optional(bad_values.SCORE))
    spent = {**quick, "cost": GOOD["cost"], "value": GOOD["value"]}
    yield _call("report of money", upturn.report, spent, wrap=_reported, only={"cost": money, "value": money})
    grouped = {**quick, "groups": CLUSTERS}
    yield _call("report of groups", upturn.report, grouped, wrap=_reported, only={"groups": _optional(_clusters())})
    mappings = list(parameters(lambda value: value is None or (isinstance(value, dict) and not value)))
    said = list(parameters(lambda value: value is None or isinstance(value, dict)))
    yield _call("report of mappings", upturn.report, quick, wrap=_reported, only={"models": mappings, "about": said})


def _reported(**given: Any) -> Any:
    page = upturn.report(**given)
    assert page.page
    return [page.plan.order, page.scores, page.check]


def _trials() -> Iterator[Call]:
    experiment = {"y": Y, "treatment": TREATMENT}
    data = {"y": bad_values.OUTCOME, "treatment": bad_values.LABELS, "sample_weight": bad_values.WEIGHT}
    plan = {"effect": 0.125, "rate": 0.25}
    yield _call(
        "power", upturn.power, plan, skip=("y", "score", "treatment", "sample_weight", "metric", "baseline", "control")
    )
    pilot = {**experiment, "score": SCORE, "baseline": SCORE[::-1].copy(), "effect": 0.125, "n_bootstrap": 8}
    scores = {"score": bad_values.SCORE, "baseline": _optional(bad_values.SCORE)}
    yield _call("power of a pilot", upturn.power, pilot, only={**data, **scores})
    yield _call(
        "power of options",
        upturn.power,
        pilot,
        skip=("y", "treatment", "sample_weight", "score", "baseline", "rate", "sd", "share"),
    )
    # Groups may be of any kind, one of all rows too, and rows whose group is not known are a group.
    labels = [
        Bad(bad.name, bad.make, "sound") if bad.must == "same" or bad.name in _GROUPS else bad
        for bad in bad_values.LABELS
    ]
    grouped = {"by": _i // 4 % 3, "X": None, **experiment}
    yield _call("subgroups", upturn.subgroups, grouped, skip=("by", "X", "y", "treatment", "sample_weight"))
    yield _call("subgroups of labels", upturn.subgroups, grouped, only={"by": labels, **data})
    named = {"by": "x0", "X": bad_values._frame(X), **experiment}
    kinds = ("dates", "durations", "periods", "complex numbers")  # in a column that is not asked for
    others = allowing(_frames(), "infinite in a frame", *(f"a column of {kind}" for kind in kinds))
    yield _call(
        "subgroups of a column", upturn.subgroups, named, only={"by": list(parameters(lambda _: True)), "X": others}
    )
    design = {"y": Y, "first": TREATMENT, "second": _i // 2 % 2}
    second = allowing(bad_values.LABELS, "None")  # then the first holds both
    factors = {
        "y": bad_values.OUTCOME,
        "first": bad_values.LABELS,
        "second": second,
        "sample_weight": bad_values.WEIGHT,
    }
    yield _call("factorial", upturn.factorial, design, skip=("y", "first", "second", "sample_weight"))
    yield _call("factorial of data", upturn.factorial, design, only=factors)


_GROUPS = {"one arm", "an arm for everybody", "two that look like control", "NaN", "None in a list", "pandas' NA", "all NaN", "all None",
           "categories with a gap", "infinite", "a row", "two columns", "a frame of two columns", "None"}  # fmt: skip


def _frames() -> list[Bad]:
    """Tables in place of a frame, which another kind of table is not."""
    return [
        Bad(bad.name, lambda _, bad=bad: bad.make(X), "sound" if bad.must == "same" else bad.must)
        for bad in bad_values.TABLE
    ]


def _optional_length(values: list[Bad]) -> list[Bad]:
    """The same for an argument that may be of any length or shape."""
    any_shape = {"a number", "0-d", "one too few", "one too many", "the first alone", "two columns", "three dimensions", "a row",
                 "an empty list", "an empty array", "no columns"}  # fmt: skip
    return [Bad(bad.name, bad.make, "sound") if bad.name in any_shape else bad for bad in values]


def _policies(ranked: Mapping[str, Any], quick: Mapping[str, Any]) -> Iterator[Call]:
    money = _optional_length(_optional(bad_values.SCORE))
    experiment = {"y": Y, "treatment": TREATMENT}
    plan = {"score": SCORE, "fraction": 0.5, **experiment, **quick}
    yield _call(
        "policy.target", policy.target, plan, skip=("cost", "value", "arms", "y", "treatment", "budget", "fraction")
    )
    yield _call("policy.target of an experiment", policy.target, plan,
                only={"y": bad_values.OUTCOME[1:], "treatment": bad_values.LABELS})  # fmt: skip
    yield _call("policy.target of money", policy.target, {"score": SCORE, "budget": 5.0, "cost": GOOD["cost"], "value": GOOD["value"]},
                only={"cost": money, "value": money})  # fmt: skip
    yield _call("policy.target of numbers", policy.target, {"score": SCORE}, only={
        name: list(parameters(functools.partial(_safely, _SPECIAL[name]))) for name in ("budget", "fraction")})  # fmt: skip
    yield _call(
        "policy.target of scores alone",
        policy.target,
        {"score": SCORE},
        only={"score": allowing(bad_values.NUMBERS, "a row", "a frame of one column", "a frame of two columns")},
    )  # of any number of arms, which columns of a frame name
    labels = list(parameters(lambda value: isinstance(value, list | tuple | np.ndarray | range) or value is None))
    yield _call("policy.target of arms", policy.target, {"score": SCORE, "arms": ["mail"]}, only={"arms": labels})
    made = policy.target(SCORE, budget=5.0, cost=GOOD["cost"], value=2.0)
    yield _call("policy.Targeting.apply", made.apply, {"score": SCORE, "cost": GOOD["cost"]},
                only={"score": bad_values.SCORE, "cost": money, "value": money})  # fmt: skip
    yield _call("policy.gain_curve", policy.gain_curve, {**ranked, **quick}, skip=("cost", "value"))
    yield _call("policy.gain_curve of money", policy.gain_curve, {**ranked, **quick, "cost": GOOD["cost"], "value": GOOD["value"]},
                only={"cost": money, "value": money})  # fmt: skip
    yield _call("policy.four_groups", policy.four_groups, {"response": RESPONSE}, skip=("response",))
    yield _call(
        "policy.four_groups of responses", policy.four_groups, {"response": RESPONSE}, only={"response": _matrices()}
    )
    for name in ("autoc", "qini", "modified_uplift_curve"):
        yield _call(f"metrics.{name} of responses", getattr(metrics, name), {**ranked, "response": RESPONSE},
                    only={"response": _optional(_matrices())})  # fmt: skip
    for name in ("overlap", "iptw_weights"):
        yield _call(f"policy.{name}", getattr(policy, name), {"X": X, "treatment": TREATMENT})


def _matrices() -> list[Bad]:
    """Values in place of a matrix of numbers with a row per row."""
    may_be = {"NaN in a cell", "None in a cell", "all empty", "an empty column", "an empty column but for one row"}
    text = (
        "text",
        "bools",
        "empty",
        "NA",
        "null",
        "ids",
        "one column",
        "one row",
        "names",
        "surrogates",
        "twice",
        "record",
    )
    kept = []
    for bad in bad_values.TABLE:
        if bad.must == "sound" and (bad.name in may_be or any(word in bad.name for word in text)):
            must = "sound" if bad.name in ("bools", "names without letters", "names of several levels", "one row too few",
                                           "one row", "a record batch") else "refuse"  # fmt: skip
            kept.append(Bad(bad.name, bad.make, must))
        else:
            kept.append(bad)
    return allowing(kept, "names of two kinds")  # columns go by their place


def _selection() -> Iterator[Call]:
    split = {"X": X, "y": Y, "treatment": TREATMENT}
    for name, kind in (
        ("UpliftKFold", model_selection.UpliftKFold),
        ("RepeatedUpliftSplit", model_selection.RepeatedUpliftSplit),
    ):
        yield _call(f"model_selection.{name}", kind, {"random_state": 0},
                    wrap=lambda kind=kind, **options: list(kind(**options).split(X, Y, TREATMENT)))  # fmt: skip
        yield _call(f"model_selection.{name}.get_n_splits", kind, {},
                    wrap=lambda kind=kind, **options: kind(**options).get_n_splits(X, Y, TREATMENT), skip=("random_state", "stratify", "shuffle", "test_size"))  # fmt: skip
        splitter = kind(2, random_state=0)
        yield _call(f"model_selection.{name}.split", splitter.split, split, only=_for_split() | {"groups": list(parameters(lambda v: v is None))},
                    wrap=lambda splitter=splitter, **given: list(splitter.split(**given)))  # fmt: skip
    grouped = model_selection.UpliftGroupKFold
    yield _call("model_selection.UpliftGroupKFold", grouped, {"random_state": 0},
                wrap=lambda **options: list(grouped(**options).split(X, Y, TREATMENT, CLUSTERS)))  # fmt: skip
    in_groups = grouped(2, random_state=0).split
    yield _call("model_selection.UpliftGroupKFold.split", in_groups, {**split, "groups": CLUSTERS}, only=_for_split() | {"groups": _clusters()},
                wrap=lambda **given: list(in_groups(**given)))  # fmt: skip
    halves = model_selection.uplift_train_test_split
    yield _call(
        "model_selection.uplift_train_test_split", halves, {**split, "random_state": 0}, skip=("X", "y", "treatment")
    )
    # Parts come back as they came in, whatever they hold: their numbers of rows are judged, and which rows by the splitters above.
    yield _call("model_selection.uplift_train_test_split of data", halves, {**split, "random_state": 0}, only=_for_split(),
                wrap=lambda **given: [_num_samples(part) for part in halves(**given)])  # fmt: skip
    yield _call(
        "model_selection.signed_rank_test", model_selection.signed_rank_test, {"differences": GOOD["differences"]}
    )
    yield _call("model_selection.uplift_scorer", model_selection.uplift_scorer, {})
    model = _fitted("ClassTransformation")
    scorer = model_selection.uplift_scorer("auuc")
    yield _call("model_selection.UpliftScorer.score", scorer.score, {"estimator": model, **split},
                only={"estimator": list(parameters(lambda _: False)), **_data_arguments(later=True)})  # fmt: skip
    models = {"a": ESTIMATORS["ClassTransformation"](), "b": ESTIMATORS["UpliftTree"]()}
    compare = model_selection.compare_models
    base = {"models": models, **split, "cv": 2, "random_state": 0}
    yield _call("model_selection.compare_models", compare, base, skip=("resume",))
    paths = list(parameters(lambda value: value is None or isinstance(value, str)))
    yield _call("model_selection.compare_models resumed", compare, base, only={"resume": [*paths, *_bad_files()]})


def _bad_files() -> list[Bad]:
    def written(content: bytes) -> Callable[[Any], str]:
        def make(_: Any) -> str:
            Path("resumed.json").write_bytes(content)
            return "resumed.json"

        return make

    return [
        Bad("a file that is not UTF-8", written(b"\xff\xfe\x00\x80"), "sound"),
        Bad("a file of numbers", written(b"1\n2\n[]\nnull\n"), "sound"),
        Bad("a file of wrong entries", written(b'{"key": 1, "found": 2}\n{"key": []}\n'), "sound"),
        Bad("a folder", lambda _: "."),
        Bad("in a folder that is not there", lambda _: "nowhere/at/all.json"),
    ]


def _for_split() -> dict[str, list[Bad]]:
    """Splitters look at the number of rows of X and at nothing else."""
    tables = []
    for bad in bad_values.TABLE:
        rows = {
            "a number",
            "an object",
            "a function",
            "a type",
            "a generator",
            "no rows",
            "a frame without rows",
            "raises when read",
        }
        tables.append(Bad(bad.name, bad.make, "refuse" if bad.name in rows else "sound"))
    # Parts come back in the kind they came in, so that only who compares like with like could ask for the same.
    # To deal rows out, arms need only be told apart.
    columns = {"y": bad_values.OUTCOME, "treatment": allowing(bad_values.LABELS, "two that look like control")}
    in_kind = {
        name: [Bad(bad.name, bad.make, "sound" if bad.must == "same" else bad.must) for bad in values]
        for name, values in columns.items()
    }
    return {"X": tables, **in_kind}


def _pictures(ranked: Mapping[str, Any], several: Mapping[str, Any]) -> Iterator[Call]:
    quick = {"n_bootstrap": 8}
    for name in ("uplift_curves", "qini_curves", "toc_curves", "modified_uplift_curves"):
        draw = getattr(plot, name)
        drawn = functools.partial(_drawn, draw, **quick)
        yield _call(f"plot.{name}", draw, several, wrap=drawn, skip=("scores",))
        yield _call(f"plot.{name} of scores", draw, {**several, "scores": SCORE}, wrap=drawn,
                    only={"scores": [*allowing(bad_values.SCORE, "a dict"), Bad("no models", lambda _: {}), Bad("a mapping of text", lambda _: {"a": "b"})]})  # fmt: skip
    yield _call("plot.lift_curves", plot.lift_curves, ranked, wrap=functools.partial(_drawn, plot.lift_curves, **quick))
    yield _call("plot.deciles", plot.deciles, ranked, wrap=functools.partial(_drawn, plot.deciles, **quick))
    scores = {"score": SCORE, "treatment": TREATMENT}
    yield _call(
        "plot.score_distributions",
        plot.score_distributions,
        scores,
        wrap=functools.partial(_drawn, plot.score_distributions),
    )
    curve = metrics.uplift_curve(Y, SCORE, TREATMENT)
    yield _call("plot.curves", plot.curves, {"drawn": {"a": curve}}, wrap=functools.partial(_drawn, plot.curves))
    found = policy.overlap(X, TREATMENT)
    yield _call("plot.overlap", plot.overlap, {"found": found}, wrap=functools.partial(_drawn, plot.overlap))
    table = metrics.calibration_table(Y, SCORE, TREATMENT, n_bins=3, n_bootstrap=8)
    yield _call(
        "plot.calibration", plot.calibration, {"table": table}, wrap=functools.partial(_drawn, plot.calibration)
    )
    gain = policy.gain_curve(Y, SCORE, TREATMENT, n_bootstrap=8)
    yield _call("plot.gain", plot.gain, {"curve": gain}, wrap=functools.partial(_drawn, plot.gain))
    groups = upturn.subgroups(_i // 4 % 3, None, Y, TREATMENT)
    yield _call("plot.subgroups", plot.subgroups, {"table": groups}, wrap=functools.partial(_drawn, plot.subgroups))
    refused = list(parameters(lambda _: False))
    umodl, forest, tree = _fitted("UMODLDiscretizer"), _fitted("UpliftForest"), _fitted("UpliftTree")
    yield _call(
        "plot.parts",
        plot.parts,
        {"model": umodl, "feature": 0},
        wrap=functools.partial(_drawn, plot.parts),
        skip=("model",),
    )
    yield _call(
        "plot.parts of a model",
        plot.parts,
        {"model": umodl, "feature": 0},
        wrap=functools.partial(_drawn, plot.parts),
        only={"model": refused},
    )
    yield _call(
        "plot.importances",
        plot.importances,
        {"model": forest},
        wrap=functools.partial(_drawn, plot.importances),
        skip=("model",),
    )
    yield _call(
        "plot.importances of a model",
        plot.importances,
        {"model": forest},
        wrap=functools.partial(_drawn, plot.importances),
        only={"model": refused},
    )
    yield _call(
        "plot.tree",
        plot.tree,
        {"model": forest, "index": 0},
        wrap=functools.partial(_drawn, plot.tree),
        skip=("model",),
    )
    yield _call(
        "plot.tree of a model",
        plot.tree,
        {"model": tree},
        wrap=functools.partial(_drawn, plot.tree),
        only={"model": refused},
    )


def _drawn(draw: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    try:
        ax = draw(*arguments, **options)
        return [np.asarray(line.get_ydata(), dtype=float) for line in ax.lines]
    finally:
        plt.close("all")


def _data() -> Iterator[Call]:
    small = {"n": 50, "random_state": 0}
    for name in ("biased", "campaign", "crescents", "customers", "feature_selection", "pattern", "zhao_2d", "zhao_50d"):
        function = getattr(datasets, f"simulate_{name}")
        yield _call(f"datasets.simulate_{name}", function, small,
                    wrap=lambda function=function, **given: _experiment(function(**given)))  # fmt: skip
    for name in ("load_bmt", "load_colon", "load_criteo", "load_hillstrom", "load_lenta", "load_megafon", "load_rhc", "load_tamoxifen",
                 "load_x5", "load_uci_split", "paper_benchmarks"):  # fmt: skip
        function = getattr(datasets, name)
        hints = _hints(function)
        attacked = {}
        for argument in inspect.signature(function).parameters:
            # What may be right would read files.
            allowed = _allowed(argument, hints.get(argument, Any))
            attacked[argument] = list(
                parameters(lambda value, allowed=allowed: None if value is None or _safely(allowed, value) else False)
            )
        good = {"name": "breast-cancer"} if name == "load_uci_split" else {}
        yield _call(f"datasets.{name}", function, good, only=attacked)
    yield _call(
        "datasets.survival_to_uplift", datasets.survival_to_uplift, {"time": GOOD["time"]}, skip=("threshold", "event")
    )
    events = [
        Bad(bad.name, bad.make, "sound") if bad.name in ("None", "constant", "zeros") else bad
        for bad in bad_values.OUTCOME
    ]
    yield _call("datasets.survival_to_uplift of events", datasets.survival_to_uplift, {"time": GOOD["time"]},
                only={"event": [Bad(bad.name, bad.make, "refuse" if "float" in bad.name and "largest" in bad.name else bad.must) for bad in events]})  # fmt: skip
    times = list(parameters(lambda value: is_number(value)))
    yield _call(
        "datasets.survival_to_uplift of thresholds",
        datasets.survival_to_uplift,
        {"time": GOOD["time"]},
        only={"threshold": times},
    )
    lived = {"time": GOOD["time"], "event": GOOD["event"], "horizon": 8.0, "treatment": TREATMENT}
    arms = allowing(
        bad_values.LABELS, "None", "two that look like control", "one arm"
    )  # arms need only be told apart, and may be left out
    yield _call("datasets.survival_outcome", datasets.survival_outcome, lived, skip=("time", "event", "treatment"))
    yield _call("datasets.survival_outcome of data", datasets.survival_outcome, lived,
                only={"time": bad_values.SCORE, "event": bad_values.OUTCOME, "treatment": arms})  # fmt: skip
    frame = bad_values._frame(X)
    split = {"X": frame, "condition": ("x0", ">", 0.0)}
    yield _call("datasets.split_by_attribute of tables", datasets.split_by_attribute, split, only={"X": _frames()})
    yield _call("datasets.split_by_attribute", datasets.split_by_attribute, split, skip=("X",))
    for sign in ("==", "!=", "<", "in", "?"):
        values = list(parameters(lambda _, sign=sign: sign != "?"))
        yield Call(f"datasets.split_by_attribute of values {sign}",
                   lambda value, sign=sign: datasets.split_by_attribute(frame, ("x0", sign, value)), {}, {"value": (0.25 if sign != "in" else [0.25], values)})  # fmt: skip


def _experiment(data: Any) -> list[Any]:
    return [np.asarray(data.y, dtype=float), data.effect]


# ----------------------------------------------------------------------------------------------------------- estimators

# The default bases, which the quick estimators of the other tests do without.
DEFAULTS: dict[str, Callable[[], Any]] = {
    "SLearner as it comes": lambda: SLearner(random_state=0),
    "XLearner as it comes": lambda: XLearner(random_state=0),
    "DRLearner as it comes": lambda: DRLearner(cv=2, random_state=0),
    "RLearner as it comes": lambda: RLearner(cv=2, random_state=0),
    "TreatedOnly as it comes": lambda: TreatedOnly(random_state=0),
}
MODELS: dict[str, Callable[[], Any]] = {**ESTIMATORS, **TRANSFORMERS, **DEFAULTS}


@functools.cache
def _fitted(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MODELS[name]().fit(X, Y, TREATMENT)


def _data_arguments(later: bool) -> dict[str, list[Bad]]:
    table = allowing(bad_values.LATER_TABLE if later else bad_values.TABLE, _SPARSE)
    return {"X": table, "y": bad_values.OUTCOME, "treatment": bad_values.LABELS, "sample_weight": bad_values.WEIGHT}


def _estimators() -> Iterator[Call]:
    for name, make in MODELS.items():
        yield _call(f"{name}.fit", make().fit, {"X": X, "y": Y, "treatment": TREATMENT}, only=_data_arguments(later=False),
                    wrap=functools.partial(_fit, make))  # fmt: skip
        if name not in DEFAULTS:
            yield _parameters_of(name, make)
            yield from _methods(name)


def _fit(make: Callable[[], Any], /, **data: Any) -> Any:
    model = make().fit(**data)
    return model.predict(data["X"]) if hasattr(model, "predict") else model.feature_importances_


def _parameters_of(name: str, make: Callable[[], Any]) -> Call:
    def fit(**changed: Any) -> Any:
        model = make().set_params(**changed).fit(X, Y, TREATMENT)
        return model.predict(X) if hasattr(model, "predict") else model.feature_importances_

    model, bad = make(), {}
    hints = _hints(type(model))
    for parameter in type(model)._get_param_names():
        rule, special = type(model)._parameters[parameter], _SPECIAL.get(parameter)
        if parameter == "metric":  # a model may go without
            special = None
        allowed = special or _allowed(parameter, hints.get(parameter, Any))

        def judge(value: Any, allowed: Any = allowed, rule: Any = rule) -> bool | None:
            may = allowed(value)
            return may if may is None else may and bool(rule.accepts(value))

        bad[parameter] = (
            getattr(model, parameter),
            list(parameters(lambda value, judge=judge: _or_skip(judge, value))),
        )
    return Call(f"{name}()", fit, {}, bad)


def _or_skip(judge: Callable[[Any], bool | None], value: Any) -> bool | None:
    try:
        return judge(value)
    except (TypeError, ValueError, RuntimeError):
        return False


def _methods(name: str) -> Iterator[Call]:
    """Every public method of a fitted model that takes arguments."""
    model = _fitted(name)
    for method in dir(type(model)):
        code = getattr(type(model), method)
        if method.startswith("_") or method in ("fit", "set_params", "get_params") or not callable(code):
            continue
        home = getattr(inspect.unwrap(code), "__module__", "") or ""
        if not (home.startswith("upturn") or method in ("predict_response",)):
            continue
        with contextlib.suppress(AttributeError):
            bound = getattr(model, method)
            arguments = inspect.signature(bound).parameters
            good = {key: GOOD[key] for key in ("X", "y", "treatment") if key in arguments}
            if method == "save":
                paths = list(parameters(lambda value: isinstance(value, str) and value != ""))
                yield _call(
                    f"{name}.save",
                    bound,
                    {"path": "model.upturn"},
                    only={"path": paths},
                    wrap=functools.partial(_saved, bound),
                )
                continue
            if method == "encode_as":
                good["encode"] = "code"
            if method == "partition_of":
                good["feature"] = 0
            if not arguments:
                continue
            try:
                if _consume(bound(**good)) is None:
                    continue
            except (ValueError, TypeError, NotFittedError):
                continue  # refuses to be asked, as a ranker does to recommend
            yield _call(f"{name}.{method}", bound, good, wrap=functools.partial(_asked, bound), later=True)


def _saved(save: Callable[..., Any], /, path: Any) -> None:
    """In a folder of its own, where no other case finds the file."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        save(path)


def _written(what: str, /, **given: Any) -> None:
    given = {"estimator": _fitted("UpliftTree"), "path": "model.upturn", what: given[what]}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        upturn.save(**given)


def _asked(bound: Callable[..., Any], /, **given: Any) -> Any:
    return _consume(bound(**given))


def _consume(result: Any) -> Any:
    if isinstance(result, types.GeneratorType | Iterator):
        return list(result)
    return 0 if result is None else result


def _files() -> Iterator[Call]:
    saved = Path("saved.upturn")
    _fitted("UpliftTree").save(saved)
    paths = list(parameters(lambda _: False))
    yield _call("load", upturn.load, {"path": str(saved)}, only={"path": paths})
    yield _call("load of options", upturn.load, {"path": str(saved)}, skip=("path",))
    save = functools.partial(_written, "estimator")
    yield Call("save", save, {}, {"estimator": (_fitted("UpliftTree"), list(parameters(lambda _: False)))})
    paths = list(parameters(lambda value: isinstance(value, str) and value != ""))
    yield Call("save of paths", functools.partial(_written, "path"), {}, {"path": ("model.upturn", paths)})
    any_type = list(parameters(lambda _: True))
    yield _call("is_harmless", persist.is_harmless, {"estimator": TREATMENT}, only={"estimator": any_type})


def _engines() -> Iterator[Call]:
    """Tables in parts."""
    frame = pl.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "y": Y, "t": TREATMENT, "w": WEIGHT}).lazy()
    never, no_name = list(parameters(lambda _: False)), list(parameters(lambda value: value is None))
    fitted = engines.fit(ESTIMATORS["UpliftTree"](), frame, "y", "t", features=["x0", "x1"])

    def fit(**given: Any) -> Any:
        return engines.fit(**given).predict(X[:, :2])

    model = ESTIMATORS["UpliftTree"]()
    good = {"model": model, "table": frame, "y": "y", "treatment": "t", "sample_weight": "w", "features": ["x0", "x1"]}
    bad = {"model": never, "table": never, "y": never, "treatment": never, "sample_weight": no_name, "features": never, "row_id": no_name, "scratch": no_name}  # fmt: skip
    bad["features"] = [case for case in no_name if case.name != "None"]  # all other columns
    yield _call("engines.fit", engines.fit, good, wrap=fit, only=bad)
    asked = {"model": fitted, "table": frame}
    yield _call("engines.predict", engines.predict, asked, wrap=lambda **given: engines.predict(**given).collect(),
                only={"model": never, "table": never})  # fmt: skip
    judged = {"table": frame, "y": "y", "treatment": "t", "sample_weight": "w", "n_bootstrap": 5, "interval": None}
    whose = {"table": never, "y": never, "treatment": never, "sample_weight": no_name, "row_id": no_name}
    for name, how in (
        ("evaluate", {"scores": ["x0"]}),
        ("compare", {"scores": ["x0", "x1"]}),
        ("curve", {"score": "x0"}),
        ("expected_response", {"recommended": "t"}),
    ):
        bad = {**whose, **dict.fromkeys(how, never)}
        yield _call(f"engines.{name}", getattr(engines, name), {**judged, **how}, only=bad)
    checked = {"table": frame, "y": "y", "treatment": "t", "sample_weight": "w", "features": ["x0"]}
    yield _call(
        "engines.check",
        engines.check,
        checked,
        only={"table": never, "y": never, "treatment": never, "sample_weight": no_name},
    )
    planned = {"table": frame, "score": "x0", "fraction": 0.2}
    yield _call("engines.target", engines.target, planned, wrap=lambda **given: engines.target(**given).table.collect(),
                only={"table": never, "score": never, "row_id": no_name})  # fmt: skip
    drawn = {"table": frame, "n": 20, "random_state": 0, "treatment": None}
    some = list(parameters(lambda value: is_whole(value) and value >= 1))
    yield _call("engines.sample", engines.sample, drawn, skip=("table", "n", "treatment"))
    yield _call("engines.sample of rows", engines.sample, drawn, only={"table": never, "n": some, "treatment": no_name})


@functools.cache
def calls() -> tuple[Call, ...]:
    """Everything that is attacked. Files are written to the current folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (*_functions(), *_estimators(), *_files(), *_engines())


def cases() -> list[Case]:
    """Every bad value in every argument of every call."""
    return [
        Case(call, argument, bad) for call in calls() for argument, (_, values) in call.bad.items() for bad in values
    ]


def part_of(everything: list[Case], one_in: int) -> list[Case]:
    """Some of the cases, the same ones every time."""
    return [case for case in everything if zlib.crc32(case.name.encode()) % one_in == 0]


def attacked_names() -> set[str]:
    """The public names that are attacked, as ``room.name``, and estimators by their class."""
    names = set()
    for call in calls():
        name = call.name.split(" of ")[0].split(" resumed")[0]
        names |= {name, name.removesuffix("()").removesuffix(".fit")}
    return names


# ---------------------------------------------------------------------------------------------------------------- judging


@dataclass(frozen=True)
class Verdict:
    """What became of a case."""

    kind: str
    detail: str = ""
    leaks: tuple[str, ...] = ()


@functools.cache
def _baseline(call: Call, argument: str) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return numbers_in(call.function(**{**call.good, argument: call.bad[argument][0]}))


Call.__hash__ = lambda self: hash(self.name)  # type: ignore[method-assign]


def attack(case: Case) -> Verdict:
    """Make the call and judge it."""
    good = case.call.bad[case.argument][0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy does not recommend its matrices
        value = case.bad.make(good)
    found: list[Any] = []
    result = None
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            result = case.call.function(**{**case.call.good, case.argument: value})
            found = numbers_in(result)
        except Exception as error:
            return Verdict(*_judge_error(error), _leaks(seen))
    leaks = _leaks(seen)
    if case.bad.must == "refuse":
        return Verdict("silent", f"taken, and answered with {_short(found)}", leaks)
    base = _baseline(case.call, case.argument)
    if case.bad.must == "same" and not _equal(found, base):
        return Verdict("silent", f"{_short(found)} where the good value gives {_short(base)}", leaks)
    if case.call.name.startswith(tuple(MAY_BE_EMPTY)):
        return Verdict("right", "", leaks)
    lost = sum(int((~np.isfinite(part)).sum()) for part in found)
    told = any(issubclass(w.category, UserWarning) and not issubclass(w.category, RuntimeWarning) for w in seen)
    told = told or (
        isinstance(result, CheckReport) and "rows" in result.warnings
    )  # too few for an effect, says the report
    if lost > sum(int((~np.isfinite(part)).sum()) for part in base) and not told:
        return Verdict("silent", f"{lost} numbers that are not finite, without a word", leaks)
    return Verdict("right", "", leaks)


def _judge_error(error: Exception) -> tuple[str, str]:
    trace = error.__traceback__
    assert trace is not None
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    ours = code.co_filename.startswith(HOME) and code.co_code[trace.tb_lasti] == _RAISE
    said = f"{type(error).__name__}: {str(error)[:160]}"
    names_the_file = isinstance(error, OSError) and error.filename is not None
    if ours or names_the_file or isinstance(error, NotFittedError):
        return "clear", said
    where = next((f for f in reversed(traceback.extract_tb(error.__traceback__)) if f.filename.startswith(HOME)), None)
    place = "" if where is None else f" at {_place(where.filename)}:{where.lineno}"
    return "raw", said + place


def _place(filename: str) -> str:
    """A file by its place in the package, or in the library it is of."""
    return (
        os.path.relpath(filename, HOME)
        if filename.startswith(HOME)
        else filename.rpartition("site-packages" + os.sep)[2]
    )


def _leaks(seen: list[warnings.WarningMessage]) -> tuple[str, ...]:
    """Warnings of numpy and the like that nobody turned into our words.

    What Ridge says of an ill-conditioned matrix, in clear words, is about the estimator that a user put inside a meta-learner.
    """
    return tuple(
        f"{w.category.__name__}: {str(w.message)[:100]} at {_place(w.filename)}:{w.lineno}"
        for w in seen
        if issubclass(w.category, RuntimeWarning | DeprecationWarning | FutureWarning)
        and w.category.__name__ != "LinAlgWarning"
    )


def numbers_in(result: Any) -> list[Any]:
    """The numbers of a result, as arrays, in a fixed order."""
    if isinstance(result, Table):
        return [part for name in result.columns for part in numbers_in(result[name])]
    if isinstance(result, Curve):
        return [result.x, result.y]
    if isinstance(result, np.ndarray):
        if result.dtype.names:
            return [part for name in result.dtype.names for part in numbers_in(result[name])]
        return [result.astype(np.float64)] if result.dtype.kind in "biuf" else _of_objects(result)
    if isinstance(result, pd.Index):  # what people are called, and no number
        return []
    if hasattr(result, "to_numpy"):  # a frame or a column of any library
        return numbers_in(np.asarray(result.to_numpy()))
    if isinstance(result, pa.Table):
        return numbers_in(result.to_pandas())
    if isinstance(result, bool | int | float | np.number):
        return [np.array(float(result))] if not isinstance(result, int) or abs(result) < 2**1000 else []
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        return [part for field in dataclasses.fields(result) for part in numbers_in(getattr(result, field.name))]
    if isinstance(result, Mapping):
        return [part for value in result.values() for part in numbers_in(value)]
    if isinstance(result, list | tuple):
        return [part for value in result for part in numbers_in(value)]
    return []


def _of_objects(result: Any) -> list[Any]:
    try:
        return [result.astype(np.float64)]
    except (TypeError, ValueError):
        return []


def _equal(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(
        a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True)
        for a, b in zip(one, other, strict=True)
    )


def _short(found: list[Any]) -> str:
    return repr([np.ravel(part)[:3].tolist() for part in found[:2]])[:80]


# Public, and without a call here, each with the reason why.
EXCUSED: dict[str, str] = {}


def public_names() -> set[str]:
    """Everything public that can be called with arguments: functions as ``room.name``, estimators by their class.

    Classes of results, which functions make and nobody calls, are not; nor are errors and warnings.
    """
    found = set()
    for name in upturn.__all__:
        thing = getattr(upturn, name)
        if inspect.ismodule(thing):
            found |= {_public(f"{name}.{inside}", getattr(thing, inside)) for inside in getattr(thing, "__all__", ())}
        elif callable(thing):
            found.add(_public(name, thing))
    return {name for name in found if name is not None}


def _public(name: str, thing: Any) -> str | None:
    if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, Exception)):
        return None
    if not inspect.isclass(thing):
        return name.removeprefix("persist.") if inspect.signature(thing).parameters else None
    if hasattr(thing, "_get_param_names"):
        return name.rpartition(".")[2] if thing.__module__.count("._") else None
    return name if hasattr(thing, "split") else None


__all__ = ["HUGE", "Case", "Verdict", "attack", "attacked_names", "cases", "part_of", "public_names"]
