"""The checker of parameters: every class declares all of its own, and what is declared is held to."""

import re

import numpy as np
import pytest

from estimators import ESTIMATORS, TRANSFORMERS
from upturn._parameters import FLAG, INTERVAL, JOBS, LABEL, NONE, SEED, VERBOSE, check, number, one_of, whole

VALUES = {
    "0": 0,
    "1": 1,
    "-1": -1,
    "2.5": 2.5,
    "half": np.float32(0.5),
    "three": np.int8(3),
    "huge": 10**400,
    "nan": float("nan"),
    "inf": np.inf,
    "true": True,
    "false": np.False_,
    "word": "1",
    "none": None,
    "list": [1],
    "array": np.array([1.0, 2.0]),
    "complex": 1j,
    "class": int,
}


def accepted(rule):
    found = []
    for name, value in VALUES.items():
        try:
            check("x", value, rule)
            found.append(name)
        except ValueError:
            with pytest.raises(ValueError, match=rf"^x=.*: expected {re.escape(rule.text)}$"):
                check("x", value, rule)
    return " ".join(found)


@pytest.mark.parametrize(
    ("rule", "good"),
    [
        (number(), "0 1 -1 2.5 half three"),
        (number(least=0), "0 1 2.5 half three"),
        (number(above=0, most=1), "1 half"),
        (number(below=1), "0 -1 half"),
        (whole(), "0 1 -1 three"),
        (whole(least=1, most=3), "1 three"),
        (one_of("1", "2"), "word"),
        (NONE, "none"),
        (FLAG, "true false"),
        (JOBS, "1 -1 three none"),
        (VERBOSE, "0 1 three true false"),
        (SEED, "0 1 three huge none"),
        (INTERVAL, "half"),
        (LABEL, "0 1 -1 2.5 half three huge nan inf true false word none"),
        (number(least=1) | one_of("1") | NONE, "1 2.5 three word none"),
    ],
    ids=lambda value: getattr(value, "text", ""),
)
def test_rules(rule, good):
    assert accepted(rule) == good


def test_words():
    assert number(above=0, most=1).text == "a number above 0 and at most 1"
    assert whole(least=2).text == "a whole number of at least 2"
    assert one_of("a", "b", "c").text == "'a', 'b' or 'c'"
    assert (NONE | whole()).text == "None, or a whole number"


@pytest.mark.parametrize("name", [*ESTIMATORS, *TRANSFORMERS])
def test_every_parameter_is_declared_and_the_defaults_pass(name):
    model = (ESTIMATORS | TRANSFORMERS)[name]()
    assert set(model._parameters) >= set(model.get_params(deep=False))
    for parameter, value in model.get_params(deep=False).items():
        check(parameter, value, model._parameters[parameter])


@pytest.mark.parametrize("name", [*ESTIMATORS, *TRANSFORMERS])
def test_fit_checks_the_parameters_first(name):
    model = (ESTIMATORS | TRANSFORMERS)[name]()
    model.control = ["not a label"]
    with pytest.raises(ValueError, match=r"control=.*expected None, or the label of the control arm"):
        model.fit(None, None)
