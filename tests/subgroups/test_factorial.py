"""upturn.factorial: against least squares and formulas by hand, its readings of a design, and its gates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import upturn as up


@pytest.fixture(scope="module")
def trial():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 500))
    return rng.normal(size=500) * (1 + a) + 0.5 * a + 0.2 * b + 0.4 * a * b, a, b


def test_effects_are_those_of_the_saturated_regression(trial):
    """Codes of -1/2 and 1/2: slopes are main effects, and the product's is the interaction."""
    y, a, b = trial
    design = np.column_stack([np.ones(500), a - 0.5, b - 0.5, (a - 0.5) * (b - 0.5)])
    slopes = np.linalg.lstsq(design, y, rcond=None)[0]
    found = up.factorial(y, a, b)
    assert found["what"][:3].tolist() == ["first", "second", "first x second"]
    assert found["effect"][:3] == pytest.approx(slopes[1:])
    cells = [y[(a == i) & (b == j)] for i, j in ((0, 0), (1, 0), (0, 1), (1, 1))]
    variances = np.array([cell.var(ddof=1) / len(cell) for cell in cells])
    assert found["se"][:3] == pytest.approx(np.sqrt(variances.sum()) * np.array([0.5, 0.5, 1.0]))
    assert found.means["mean"] == pytest.approx([cell.mean() for cell in cells])
    assert found.means["rows"].tolist() == [len(cell) for cell in cells]


@pytest.mark.parametrize(
    ("row", "one", "other"),
    [(3, (1, 0), (0, 0)), (4, (1, 1), (0, 1)), (5, (0, 1), (0, 0)), (6, (1, 1), (1, 0)), (7, (1, 1), (0, 0))],
)
def test_single_effects_are_welch(trial, row, one, other):
    y, a, b = trial
    test = stats.ttest_ind(y[(a == one[0]) & (b == one[1])], y[(a == other[0]) & (b == other[1])], equal_var=False)
    found = up.factorial(y, a, b, interval=0.9)
    ends = test.confidence_interval(0.9)
    assert (found["low"][row], found["high"][row]) == pytest.approx((ends.low, ends.high))
    assert found["p_value"][row] == pytest.approx(test.pvalue)


@pytest.mark.parametrize("both", ["mail + phone", "Phone&Mail", "mail and phone", "both"])
def test_four_labels_are_read_as_two_columns(trial, both):
    y, a, b = trial
    labels = np.array(["control", "mail", "phone", both])[a + 2 * b]
    found, columns = up.factorial(y, labels), up.factorial(y, a, b, names=("mail", "phone"))
    assert found["effect"].tolist() == columns["effect"].tolist()
    assert found["what"].tolist() == columns["what"].tolist()
    assert columns.treatment.tolist() == np.array(["control", "mail", "phone", "mail + phone"])[a + 2 * b].tolist()
    assert up.factorial(y, columns.treatment).treatment.tolist() == columns.treatment.tolist()


def test_labels_name_the_treatments_and_errors_hold():
    """300 trials without any effect: every interval of 90% fails in about a tenth of them."""
    rng = np.random.default_rng(1)
    first, second = rng.choice(["control", "aspirin"], 200), rng.choice(["control", "statin"], 200)
    wrong = []
    for _ in range(300):
        found = up.factorial(rng.normal(size=200) * (1 + (first == "aspirin")), first, second, interval=0.9)
        wrong.append(found["p_value"] < 0.1)
    assert found["what"][2] == "aspirin x statin"
    assert (np.abs(np.mean(wrong, axis=0) - 0.1) < 4 * np.sqrt(0.09 / 300)).all()


def test_weights_and_words(trial):
    y, a, b = trial
    assert up.factorial(y, a, b, np.full(500, 3.0))["se"] == pytest.approx(up.factorial(y, a, b)["se"])
    twice = up.factorial(y + 5 * a * b, a, b)
    assert "An interaction is seen: read the effects without and with" in repr(twice)
    assert "is not seen, and could be anything from" in repr(
        up.factorial(np.random.default_rng(3).normal(size=500), a, b)
    )


@pytest.mark.parametrize(
    ("first", "second", "options", "message"),
    [
        ([0, 1, 2, 0] * 5, [0, 1] * 10, {}, r"the first treatment has the arms \[0, 1, 2\]"),
        ([0, 1] * 10, [0, 1] * 10, {}, r"fewer than two rows in \['first', 'second'\]"),
        ([0, 1] * 10, [0, 0, 1, 1], {}, "second treatment: .*inconsistent numbers"),
        (["control", "a", "b", "c"] * 5, None, {}, "expected four, control, two treatments and both together"),
        ([0, 1] * 10, None, {}, "expected four"),
        (["control", "x"] * 10, ["control", "control", "x", "x"] * 5, {}, "both treatments are called 'x'"),
        ([0, 1] * 10, [0, 0, 1, 1] * 5, {"names": "ab"}, "expected two words"),
        ([0, 1] * 10, [0, 0, 1, 1] * 5, {"interval": 2}, "interval=2"),
    ],
)
def test_errors(first, second, options, message):
    with pytest.raises(ValueError, match=message):
        up.factorial(np.arange(20.0), first, second, **options)
