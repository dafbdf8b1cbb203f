"""The gate for outcomes, treatments and weights: what it accepts, and what it says about what it does not."""

from __future__ import annotations

import decimal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

import upturn as up
from upturn import metrics, plot, policy
from upturn._columns import is_missing
from upturn._target import decode, is_packed, plain_label, read_ranking, read_target, sort_labels
from upturn.datasets import UpliftData
from upturn.meta import ClassTransformation
from upturn.trees import UpliftTree

Y, T = [0, 1, 1, 0], ["control", "mail", "control", "mail"]
X = np.arange(8.0).reshape(4, 2)
NAN, INF = float("nan"), float("inf")


# --------------------------------------------------------------------------------------------- encoding


def test_arms_are_encoded_with_control_first():
    target = read_target([3, 1, 2, 5], ["sms", "control", "mail", "sms"])
    assert target.control == "control"
    assert target.arms == ["mail", "sms"]
    assert target.labels == ["control", "mail", "sms"]
    assert target.n_arms == 2
    assert target.arm.tolist() == [2, 0, 1, 2]
    assert target.arm.dtype == np.uint8
    assert target.y.tolist() == [3.0, 1.0, 2.0, 5.0]
    assert target.weight is None


def test_arrays_behind_the_gate_are_contiguous_floats():
    wide = np.arange(12.0).reshape(4, 3)
    target = read_target(wide[:, 1], T, wide[:, 2].astype(np.float32))
    for column in (target.y, target.weight, target.arm):
        assert column.flags.c_contiguous
    assert target.y.dtype == target.weight.dtype == np.float64


KINDS_OF_LABELS = {
    "int": [0, 7, 0, 7],
    "bool": [False, True, False, True],
    "float": [0.0, 2.5, 0.0, 2.5],
    "str": T,
    "mixed": [0, "mail", 0, "mail"],
    "mixed bool": ["mail", False, "mail", False],
}


@pytest.mark.parametrize("labels", KINDS_OF_LABELS.values(), ids=KINDS_OF_LABELS)
def test_labels_keep_their_types(labels):
    target = read_target(Y, labels)
    assert {type(label) for label in target.labels} == {type(label) for label in labels}
    assert [target.labels[code] for code in target.arm] == labels
    again = decode(target.labels, target.arm)
    assert again.tolist() == labels
    assert [type(label) for label in again.tolist()] == [type(label) for label in labels]


def libraries(values, dtype=None):
    made = {
        "list": values,
        "tuple": tuple(values),
        "object": np.array(values, dtype=object),
        "pandas": pd.Series(values, index=range(10, 10 + len(values))),
        "index": pd.Index(values),
        "category": pd.Series(values, dtype="category"),
        "categorical": pd.Categorical(values),
        "polars": pl.Series(values),
        "chunked": pa.chunked_array([values[:2], values[2:]]),
        "dictionary": pa.chunked_array([pa.array(values).dictionary_encode()]),
        "arrow": pa.array(values),
    }
    if isinstance(values[0], str):
        made["polars categorical"] = pl.Series(values, dtype=pl.Categorical)
        made["string[pyarrow]"] = pd.Series(values, dtype="string[pyarrow]")
        made["str array"] = np.array(values)
    elif isinstance(values[0], bool):
        made["boolean"] = pd.Series(values, dtype="boolean")
    else:
        made["Int64"] = pd.Series(values, dtype="Int64")
        made["int8"] = np.array(values, dtype=np.int8)
        made["uint64"] = np.array(values, dtype=np.uint64)
    return made


@pytest.mark.parametrize("labels", [KINDS_OF_LABELS["int"], KINDS_OF_LABELS["bool"], T], ids=["int", "bool", "str"])
def test_every_library_gives_the_same_arms(labels):
    for name, column in libraries(labels).items():
        target = read_target(Y, column)
        assert target.arm.tolist() == [0, 1, 0, 1], name
        assert target.labels == [labels[0], labels[1]], name


def test_every_library_gives_the_same_outcome_and_weight():
    for name, column in libraries([0, 1, 1, 3]).items():
        target = read_target(column, T, column)
        assert target.y.tolist() == [0.0, 1.0, 1.0, 3.0], name
        assert target.weight.tolist() == [0.0, 1.0, 1.0, 3.0], name


def test_decimals_are_numbers():
    y = [decimal.Decimal("1.5"), decimal.Decimal("2.0")] * 2
    for column in (y, pl.Series(y), pd.Series(y), pa.chunked_array([y])):
        assert read_target(column, T).y.tolist() == [1.5, 2.0, 1.5, 2.0]


def test_extreme_integers_are_labels():
    top = 2**64 - 1
    assert read_target(Y, np.array([0, top, 0, top], dtype=np.uint64)).arms == [top]
    assert read_target(Y, np.array([top, top - 1] * 2, np.uint64), control=top).arms == [top - 1]
    assert read_target(Y, np.array([-128, 127, 0, 0], dtype=np.int8)).arms == [-128, 127]
    assert read_target(Y, [-(2**63), 2**63 - 1, 0, 0]).arms == [-(2**63), 2**63 - 1]


@given(
    labels=st.lists(
        st.one_of(
            st.integers(-(10**6), 10**6),
            st.floats(allow_nan=False, allow_infinity=False),
            st.text(max_size=5),
            st.booleans(),
        ),
        min_size=2,
        max_size=60,
    ).filter(lambda values: len(set(values)) > 1)
)
def test_encoding_is_undone_by_labels(labels):
    """Whatever the labels are, and in whatever order they come, each row keeps its own."""
    column = np.empty(len(labels), dtype=object)
    column[:] = labels
    target = read_target(np.zeros(len(labels)), column, control=labels[0])
    assert [target.labels[code] for code in target.arm] == labels
    assert target.control == labels[0]
    assert target.arms == sort_labels(target.arms)
    shuffled = read_target(np.zeros(len(labels)), column[::-1], control=labels[0])
    assert shuffled.arms == target.arms
    assert shuffled.arm.tolist() == target.arm[::-1].tolist()


def test_sort_never_compares_kinds():
    assert sort_labels(["b", 3, "a", 1.5, False]) == [False, 1.5, 3, "a", "b"]


# --------------------------------------------------------------------------------------------- control


@given(
    word=st.sampled_from(["control", "0", "0.0", "false", "placebo", "none"]),
    flips=st.lists(st.booleans(), min_size=7, max_size=7),
    pads=st.tuples(st.sampled_from(["", " ", "\t "]), st.sampled_from(["", "  ", "\n"])),
    others=st.sets(
        st.sampled_from(["mail", "sms", "1", "treatment", "controls", "00", "nothing"]), min_size=1, max_size=3
    ),
)
def test_control_is_found_by_its_name(word, flips, pads, others):
    name = pads[0] + "".join(c.upper() if flip else c for c, flip in zip(word, flips, strict=False)) + pads[1]
    labels = [*others, name]
    target = read_target(np.arange(len(labels)), labels)
    assert target.control == name
    assert set(target.arms) == others


@pytest.mark.parametrize(
    ("labels", "control"), [([0, 1], 0), ([0.0, 1.0], 0.0), ([True, False], False), ([1, 0, 2], 0)]
)
def test_zero_and_false_are_control(labels, control):
    target = read_target(np.arange(len(labels)), labels)
    assert target.control == control
    assert type(target.control) is type(control)


def test_unknown_control_lists_the_labels():
    with pytest.raises(ValueError, match=r"control='ctl' is not among the labels of treatment: 'control', 'mail'"):
        read_target(Y, T, control="ctl")
    with pytest.raises(ValueError, match=r"control='0' is not among the labels of treatment: 0, 1"):
        read_target(Y, [0, 1, 0, 1], control="0")


def test_no_control_lists_the_labels_and_says_what_to_do():
    message = r"none of the labels looks like a control arm \(labels found: 'a', 'b'\): say which of them it is, with control=LABEL"
    with pytest.raises(ValueError, match=message):
        read_target(Y, ["b", "a", "b", "a"])


@pytest.mark.parametrize(
    "word",
    [
        "control",
        "Placebo",
        "none",
        "NO",
        "holdout",
        "untreated",
        "ctrl",
        "Baseline",
        "0",
        "false",
        "No E-Mail",
        "no call",
    ],
)
def test_control_is_known_by_its_name(word):
    assert read_target(Y, [word, "drug", word, "drug"]).control == word


def test_the_hint_names_no_arm():
    """It would be the first in the alphabet, which is as likely the treatment."""
    with pytest.raises(ValueError, match="control=LABEL"):
        read_target(Y, ["drug", "sugar", "drug", "sugar"])
    with pytest.raises(ValueError, match="all look like control arms"):
        read_target(Y, ["none", "placebo", "none", "placebo"])
    for label in ("nothing", "notice", "normal"):
        with pytest.raises(ValueError, match="none of the labels"):
            read_target(Y, [label, "drug", label, "drug"])


def test_missing_labels_are_never_control():
    with pytest.raises(ValueError, match="keep_default_na=False"):
        read_target(Y, [None, "drug", None, "drug"])


def test_a_packed_target_carries_its_control():
    packed = up.pack(Y, ["a", "b", "a", "b"], control="b")
    assert read_target(packed).control == "b"
    assert read_target(np.concatenate([packed[:2], packed[2:]])).arms == ["a"]
    assert read_target(packed[[0, 1]]).control == "b"
    with pytest.raises(ValueError, match="packed with control='b'"):
        read_target(packed, control="a")
    with pytest.raises(ValueError, match="several control arms"):
        read_target(np.concatenate([packed, up.pack(Y, ["a", "b", "a", "b"], control="a")]))
    with pytest.raises(ValueError, match="is not among the labels"):
        up.pack(Y, ["a", "b", "a", "b"], control="c")
    assert len(up.unpack(packed)) == 3


RNG = np.random.default_rng(0)
LETTERS = UpliftData(
    RNG.normal(size=(400, 2)), RNG.integers(0, 2, 400), RNG.choice(["a", "b"], 400), control="b", name="letters"
)
SCORE = LETTERS.X[:, 0]


@pytest.mark.parametrize(
    "measure",
    [
        lambda *y, **control: metrics.auuc(y[0], SCORE, *y[1:], **control),
        lambda *y, **control: metrics.evaluate(y[0], {"a": SCORE}, *y[1:], **control).to_frame().to_numpy().tolist(),
        lambda *y, **control: metrics.compare(y[0], {"a": SCORE, "c": -SCORE}, *y[1:], **control)["model"][0],
        lambda *y, **control: metrics.calibration_table(y[0], SCORE, *y[1:], **control)["observed"].tolist(),
        lambda *y, **control: policy.gain_curve(y[0], SCORE, *y[1:], **control).gain.tolist(),
        lambda *y, **control: up.check(LETTERS.X, *y, **control).to_frame().to_numpy().tolist(),
        lambda *y, **control: up.subgroups(SCORE > 0, None, *y, **control)["effect"].tolist(),
        lambda *y, **control: up.power(y[0], SCORE, *y[1:], **control, effect=0.1).rows,
        lambda *y, **control: plot.uplift_curves(y[0], {"a": SCORE}, *y[1:], **control).lines[0].get_ydata().tolist(),
        lambda *y, **control: plot.deciles(y[0], SCORE, *y[1:], **control).patches[0].get_height(),
        lambda *y, **control: UpliftTree(random_state=0, **control).fit(LETTERS.X, *y).predict(LETTERS.X).tolist(),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_control_that_was_said_once_holds_everywhere(measure):
    first, other = measure(LETTERS.pack()), measure(up.pack(LETTERS.y, LETTERS.treatment, control="a"))
    assert str(first) == str(measure(LETTERS.y, LETTERS.treatment, control="b"))
    assert isinstance(first, int) or str(first) != str(other)
    with pytest.raises(ValueError, match="none of the labels looks like a control arm"):
        measure(LETTERS.y, LETTERS.treatment)


@pytest.mark.filterwarnings("ignore")
def test_a_report_and_a_plan_take_the_control_that_was_said_once():
    quick = {"estimator": UpliftTree(max_depth=1, random_state=0), "models": {}, "cv": 2, "n_bootstrap": 20}
    assert up.report(LETTERS.X, LETTERS.pack(), **quick).plan.rule.labels == ["b", "a"]
    assert policy.target(SCORE, fraction=0.5, y=LETTERS.pack()).rule.labels == ["b", "a"]


def test_data_know_their_control():
    assert "(control 'b')" in repr(LETTERS)
    with pytest.raises(ValueError, match="control='c' is not among the labels"):
        UpliftData(LETTERS.X, LETTERS.y, LETTERS.treatment, control="c")
    weight = np.ones(400)
    np.testing.assert_array_equal(LETTERS.pack(weight)["weight"], weight)


def test_two_controls_are_ambiguous():
    with pytest.raises(
        ValueError, match=r"\['0', 'control'\] all look like control arms \(labels found: '0', 'control'\)"
    ):
        read_target(Y, ["0", "control", "0", "control"])
    assert read_target(Y, ["0", "control", "0", "control"], control="0").arms == ["control"]


def test_only_splitters_may_do_without_a_control():
    assert read_target(Y, ["b", "a", "b", "a"], any_control=True).labels == ["a", "b"]


# --------------------------------------------------------------------------------------------- packing


def test_pack_and_unpack():
    packed = up.pack(Y, T, [1, 2, 3, 4])
    assert is_packed(packed)
    assert packed.shape == (4,)
    y, treatment, weight = up.unpack(packed)
    assert y.tolist() == Y
    assert treatment.tolist() == T
    assert weight.tolist() == [1, 2, 3, 4]
    assert up.unpack(up.pack(Y, T))[2] is None


@pytest.mark.parametrize("labels", KINDS_OF_LABELS.values(), ids=KINDS_OF_LABELS)
def test_packed_and_plain_are_the_same(labels):
    weight = [1.0, 2.0, 0.5, 3.0]
    plain, packed = read_target(Y, labels, weight), read_target(up.pack(Y, labels, weight))
    assert plain.labels == packed.labels
    assert [type(label) for label in plain.labels] == [type(label) for label in packed.labels]
    for name in ("y", "arm", "weight"):
        assert np.array_equal(getattr(plain, name), getattr(packed, name))
        assert getattr(packed, name).flags.c_contiguous


def test_a_packed_target_can_be_indexed_and_saved(tmp_path):
    packed = up.pack(Y, T)
    rows = np.array([3, 0])
    assert read_target(packed[rows]).arm.tolist() == [1, 0]
    np.save(tmp_path / "y.npy", packed)
    assert np.array_equal(np.load(tmp_path / "y.npy"), packed)


def test_weights_beside_a_packed_target():
    assert read_target(up.pack(Y, T), sample_weight=[1, 2, 3, 4]).weight.tolist() == [1, 2, 3, 4]


def test_packed_twice():
    with pytest.raises(ValueError, match="y is packed already: pass the plain outcome to pack"):
        up.pack(up.pack(Y, T), T)
    with pytest.raises(ValueError, match=r"not a packed target: make one with upturn\.pack\(y, treatment\)"):
        up.unpack(np.array(Y))
    with pytest.raises(ValueError, match="treatment is a packed target: pass the treatment labels"):
        read_target(Y, up.pack(Y, T))


@pytest.mark.parametrize("call", [read_target, lambda y, t: ClassTransformation().fit(X, y, t)])
def test_packed_and_treatment(call):
    with pytest.raises(
        ValueError, match="treatment was given twice, in the packed y and as an argument: leave one out"
    ):
        call(up.pack(Y, T), T)


def test_weights_twice():
    with pytest.raises(
        ValueError, match="sample_weight was given twice, in the packed y and as an argument: leave one"
    ):
        read_target(up.pack(Y, T, [1] * 4), sample_weight=[1] * 4)


@pytest.mark.parametrize("call", [read_target, lambda y: ClassTransformation().fit(X, y)])
def test_plain_y_without_treatment(call):
    with pytest.raises(
        ValueError, match=r"treatment is missing: pass fit\(X, y, treatment\), or pack .*upturn\.pack"
    ) as e:
        call(Y)
    assert "enable_metadata_routing=True" in str(e.value)


def test_no_y():
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        ClassTransformation().fit(X, None, T)


# --------------------------------------------------------------------------------------------- bad values

CALLS = {
    "plain": lambda y, t, w: read_target(y, t, w),
    "pack": lambda y, t, w: up.pack(y, t, w),
    "fit": lambda y, t, w: ClassTransformation().fit(X, y, t, w),
    "score": lambda y, t, w: ClassTransformation().fit(X, [0, 0, 1, 1], T).score(X, y, t, w),
    "metric": lambda y, t, w: up.metrics.auuc(y, np.arange(4.0), t, sample_weight=w),
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@every_call
@pytest.mark.parametrize(
    ("y", "found"),
    [
        ([0, NAN, 1, 0], r"y holds 1 NaN \(missing\) value\(s\), the first at row 1"),
        ([0, 1, None, None], r"y holds 2 NaN \(missing\) value\(s\), the first at row 2"),
        ([0, 1, 1, -INF], r"y holds 1 infinite value\(s\), the first at row 3"),
        ([0, INF, NAN, 0], r"y holds 2 NaN or infinite value\(s\), the first at row 1"),
        (pd.Series([0, 1, pd.NA, 0], dtype="Int64"), r"y holds 1 NaN \(missing\) value\(s\), the first at row 2"),
        (pl.Series([True, None, True, False]), r"y holds 1 NaN \(missing\) value\(s\), the first at row 1"),
        (pa.chunked_array([[1, 0, 0, None]]), r"y holds 1 NaN \(missing\) value\(s\), the first at row 3"),
    ],
)
def test_missing_or_infinite_outcome(call, y, found):
    with pytest.raises(ValueError, match=found + ": remove those rows, or decide what their outcome is"):
        call(y, T, None)


def test_nan_smuggled_into_a_packed_target():
    packed = up.pack(np.array(Y, float), T, [1.0] * 4)
    packed["y"][2] = NAN
    with pytest.raises(ValueError, match=r"y holds 1 NaN \(missing\) value\(s\), the first at row 2"):
        ClassTransformation().fit(X, packed)
    packed["y"][2], packed["weight"][0] = 1, NAN
    with pytest.raises(ValueError, match=r"sample_weight holds 1 NaN \(missing\) value\(s\), the first at row 0"):
        ClassTransformation().fit(X, packed)


@every_call
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (
            [1, NAN, 1, 1],
            r"sample_weight holds 1 NaN \(missing\) value\(s\), the first at row 1: every weight must be a finite",
        ),
        (
            [1, 1, INF, 1],
            r"sample_weight holds 1 infinite value\(s\), the first at row 2: every weight must be a finite",
        ),
        (
            [1, -2, 1, -3],
            r"sample_weight holds 2 negative value\(s\), the first -2 at row 1: weights must be 0 or larger",
        ),
        ([1e308, 1, 1, 1], r"sample_weight goes up to 1e\+308, and a sum of such weights is too large"),
        (["1", "1", "1", "1"], r"sample_weight holds '1' at row 0, which is not a number"),
        ([1, 1, 1], r"inconsistent numbers of samples: .*sample_weight has 3; each row needs one of each"),
    ],
)
def test_bad_weights(call, weight, message):
    with pytest.raises(ValueError, match=message):
        call(Y, T, weight)


@pytest.mark.parametrize("name", ["plain", "fit", "score", "metric"])
def test_weights_of_zero(name):
    with pytest.raises(
        ValueError, match=r"sample_weight is zero for every row of arm\(s\) \['control', 'mail'\]: each arm needs"
    ):
        CALLS[name](Y, T, [0, 0, 0, 0])
    with pytest.raises(
        ValueError, match=r"sample_weight is zero for every row of arm\(s\) \['mail'\]: each arm needs some"
    ):
        CALLS[name](Y, T, [1, 0, 1, 0])


@pytest.mark.parametrize(
    "labels",
    [
        ["mail", NAN, "control", "mail"],
        ["mail", None, "control", "mail"],
        [1, None, 0, 1],
        np.array([1, NAN, 0, 1]),
        pd.Series([1, pd.NA, 0, 1], dtype="Int64"),
        pd.Series([True, pd.NA, False, True], dtype="boolean"),
        pd.Series(["mail", None, "control", "mail"]),
        pd.Series(["mail", None, "control", "mail"], dtype="category"),
        pd.Series(["mail", pd.NA, "control", "mail"], dtype=object),
        pl.Series(["mail", None, "control", "mail"]),
        pl.Series(["mail", None, "control", "mail"], dtype=pl.Categorical),
        pl.Series([True, None, False, True]),
        pa.chunked_array([["mail", None, "control", "mail"]]),
        pa.chunked_array([pa.array(["mail", None, "control", "mail"]).dictionary_encode()]),
        pa.array([1, None, 0, 1]),
    ],
    ids=lambda labels: f"{type(labels).__module__}-{getattr(labels, 'dtype', getattr(labels, 'type', ''))}",
)
def test_missing_treatment(labels):
    with pytest.raises(
        ValueError, match=r"treatment is missing in 1 row\(s\), the first at row 1: remove rows whose arm"
    ):
        read_target(Y, labels)


@pytest.mark.parametrize("name", ["plain", "fit", "metric"])
def test_one_arm(name):
    with pytest.raises(
        ValueError, match=r"one arm only, 'mail' \(n_samples=4\): an uplift model compares at least two arms"
    ):
        CALLS[name](Y, ["mail"] * 4, None)


def test_one_row():
    with pytest.raises(ValueError, match=r"one arm only, 1 \(n_samples=1\): an uplift model compares at least two"):
        ClassTransformation().fit([[1.0]], [1], [1])


@pytest.mark.parametrize("name", ["plain", "pack", "metric"])
def test_empty(name):
    with pytest.raises(ValueError, match="y is empty: expected one value per row"):
        CALLS[name]([], [], None)
    with pytest.raises(ValueError, match="treatment is empty: expected one value per row"):
        CALLS[name](Y, [], None)


@every_call
def test_lengths_differ(call):
    with pytest.raises(
        ValueError, match=r"inconsistent numbers of samples: y has 4, treatment has 3.*; each row needs one"
    ):
        call(Y, T[:3], None)


@pytest.mark.parametrize("method", ["fit", "score"])
def test_table_of_another_length(method):
    model = ClassTransformation().fit(X, [0, 0, 1, 1], T)
    with pytest.raises(ValueError, match=r"X has 3, y has 4; each row needs one outcome and one treatment"):
        getattr(model, method)(X[:3], Y, T)


def test_three_classes():
    with pytest.raises(
        ValueError, match=r"y has 3 distinct values \(from 0 to 2\) and this model needs exactly two"
    ) as e:
        ClassTransformation().fit(X, [0, 1, 2, 0], T)
    assert "choose a threshold yourself" in str(e.value)
    with pytest.raises(
        ValueError, match=r"y has one value only, 1 \(1 class\): this model learns from two, such as 0 and 1"
    ):
        ClassTransformation().fit(X, [1, 1, 1, 1], T)


def test_the_larger_of_two_values_is_success():
    assert read_target([-1, 5, 5, -1], T, outcome="binary").y.tolist() == [0, 1, 1, 0]
    assert read_target([True, False, True, False], T, outcome="binary").y.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["yes", "no", "no", "yes"], r"y holds 'yes' at row 0, which is not a number: .*map it first"),
        (np.array(["1", "0", "1", "0"], dtype=object), "y holds '1' at row 0, which is not a number"),
        (pd.Series(["1", "0", "1", "0"]), "y holds '1' at row 0, which is not a number"),
        ([0, 1, "1", 0], "y holds '1' at row 2, which is not a number"),
        ([0, {}, 1, 0], r"y holds \{\} at row 1, which is not a number"),
        ([0, 10**5000, 1, 0], "y holds a number too large for float64"),
        ([1j, 0, 1, 0], "Complex data not supported: y holds complex numbers"),
        (np.zeros((4, 2)), r"y should be a 1d array, got an array of shape \(4, 2\)"),
        (3.0, r"y should be a 1d array, got an array of shape \(\)"),
        (
            np.zeros(4, dtype=[("event", bool), ("time", float)]),
            r"structured array with fields .*make it with upturn\.pack",
        ),
    ],
)
def test_outcomes_that_are_not_numbers(y, message):
    with pytest.raises(ValueError, match=message):
        read_target(y, T)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.date_range("2020", periods=4), "(holds dates|is of type datetime64.*: expected numbers, booleans or text)"),
        (scipy.sparse.csr_matrix(np.ones((4, 1))), "is a sparse matrix: expected a dense"),
        (np.ma.array([0, 1, 0, 1], mask=[0, 1, 0, 0]), "is a masked array, whose mask would be lost: fill it"),
        (pl.LazyFrame({"a": [0, 1, 0, 1]}), "is a lazy frame: collect it first"),
    ],
)
def test_columns_of_the_wrong_kind(column, message):
    with pytest.raises(TypeError, match="^y " + message):
        read_target(column, T)
    with pytest.raises(TypeError, match="^treatment " + message):
        read_target(Y, column)


def test_treatments_that_are_not_labels():
    for labels in (np.arange(1000), np.array([*np.arange(1000)], dtype=object)):
        with pytest.raises(
            ValueError,
            match=r"treatment has 1,000 distinct values in 1,000 rows \(such as 0\): .*at most 255 arms; is a feature",
        ):
            read_target(np.zeros(1000), labels)
    with pytest.raises(ValueError, match=r"treatment has 1,000 distinct values"):
        read_target(np.zeros(1000), np.random.default_rng(0).random(1000))
    with pytest.raises(
        TypeError, match=r"treatment holds Decimal\('1'\) of type Decimal: expected numbers, booleans or text"
    ):
        read_target(Y, [decimal.Decimal(1), 0, 1, 0])
    with pytest.raises(TypeError, match="treatment holds values that cannot be labels"):
        read_target(Y, np.array([{}, 0, 1, 0], dtype=object))
    with pytest.raises(TypeError, match=r"treatment is of type \|S1: expected numbers, booleans or text as arm labels"):
        read_target(Y, np.array([b"a", b"b"] * 2))


def test_as_many_arms_as_fit_in_a_byte():
    labels = np.arange(255)
    target = read_target(labels, labels)
    assert target.n_arms == 254
    assert np.array_equal(target.arm, labels)
    with pytest.raises(ValueError, match="at most 255 arms"):
        read_target(np.zeros(256), np.arange(256))


def test_a_column_vector_is_flattened_with_a_warning():
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed when a 1d array was expected"):
        assert read_target(np.array(Y)[:, None], T).y.tolist() == Y
    with pytest.warns(DataConversionWarning, match="A column-vector treatment was passed"):
        assert read_target(Y, pl.DataFrame({"t": T})).arm.tolist() == [0, 1, 0, 1]


# --------------------------------------------------------------------------------------------- known arms, scores


def test_arms_a_model_does_not_know():
    known = ("control", ["mail"])
    with pytest.raises(
        ValueError, match=r"treatment holds \['sms'\], which the model has not seen \(control 'control', arms"
    ):
        read_target(Y, ["control", "mail", "sms", "sms"], known=known)


def test_a_fold_without_an_arm():
    model = ClassTransformation().fit(X, [0, 0, 1, 1], T)
    with pytest.raises(ValueError, match=r"arm\(s\) \['mail'\] have no row in this sample .*pass cv=UpliftKFold\(\)"):
        model.score(X[::2], [0, 1], ["control", "control"])


def test_known_labels_match_by_value():
    assert read_target(Y, [False, True, False, True], known=(0, [1])).arm.tolist() == [0, 1, 0, 1]
    assert read_target(Y, [1, 1, 0, 1], known=(1, [0])).arm.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (
            [1, NAN, 0, 2],
            r"score holds 1 NaN \(missing\) value\(s\), the first at row 1: every row needs a finite score",
        ),
        ([1, 0, 0, INF], r"score holds 1 infinite value\(s\), the first at row 3: every row needs a finite score"),
        ([1, 0, 0], "score has 3 rows and y has 4: they must describe the same rows"),
        (
            np.zeros((4, 2)),
            r"score has 2 column\(s\) and treatment has 1 arm\(s\) besides control: expected one column per arm",
        ),
        (np.zeros((4, 1, 1)), r"score has shape \(4, 1, 1\): expected \(4,\) or \(4, 1\)"),
        (["a", "b", "c", "d"], "score holds 'a' at row 0, which is not a number"),
    ],
)
def test_bad_scores(score, message):
    with pytest.raises(ValueError, match=message):
        read_ranking(score, 4, 1)
    with pytest.raises(ValueError, match=message):
        up.metrics.auuc(Y, score, T)


def test_scores_of_every_library():
    for name, column in libraries([3, 1, 2, 0]).items():
        assert read_ranking(column, 4, 1).tolist() == [[3.0], [1.0], [2.0], [0.0]], name
    assert read_ranking(pl.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}), 2, 2).tolist() == [[1.0, 3.0], [2.0, 4.0]]


# --------------------------------------------------------------------------------------------- small things


@pytest.mark.parametrize(
    "value", [None, NAN, np.nan, pd.NA, pd.NaT, np.float32("nan"), np.datetime64("NaT"), decimal.Decimal("nan")]
)
def test_what_is_missing(value):
    assert is_missing(value)


@pytest.mark.parametrize("value", [0, "", False, "nan", INF, np.arange(3), [], pd.Timestamp(0)])
def test_what_is_not_missing(value):
    assert not is_missing(value)


def test_plain_labels():
    assert plain_label(np.str_("a")) == "a"
    assert type(plain_label(np.int8(3))) is int
    assert type(plain_label(np.bool_(True))) is bool
    with pytest.raises(TypeError, match="treatment holds None of type NoneType"):
        plain_label(None)


def test_the_gate_does_not_write_into_its_input():
    y, treatment, weight = np.array(Y, float), np.array([0, 1, 0, 1]), np.ones(4)
    for column in (y, treatment, weight):
        column.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_target(y, treatment, weight, outcome="binary")


def test_infinity_is_no_label():
    with pytest.raises(ValueError, match="infinite number, which is no label of an arm"):
        read_target([0, 1, 0], [0, 1, np.inf])
