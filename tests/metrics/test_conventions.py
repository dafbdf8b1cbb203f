"""Numbers of other libraries, kept in golden/metrics.json by golden/make_metrics.py, under their convention."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import trapezoid

from upturn import metrics

CASES = json.loads((Path(__file__).parent.parent / "golden" / "metrics.json").read_text())["cases"]
CLOSE = {"abs": 1e-9, "rel": 1e-9}
CALLS = {
    ("sklift", "auuc"): lambda *a: metrics.auuc(*a, convention="sklift"),
    ("sklift", "qini"): lambda *a: metrics.qini(*a, convention="sklift"),
    ("sklift", "qini_no_harm"): lambda *a: metrics.qini(*a, convention="sklift", negative_effect=False),
    ("sklift", "uplift_at_separate"): lambda *a: metrics.uplift_at(*a, 0.3, convention="sklift"),
    ("sklift", "uplift_at_joint"): lambda *a: metrics.uplift_at(*a, 0.3, convention="sklift", ranking="joint"),
    ("causalml", "auuc"): lambda *a: metrics.auuc(*a, convention="causalml"),
    ("causalml", "qini"): lambda *a: metrics.qini(*a, convention="causalml"),
    ("causalml", "autoc"): lambda *a: metrics.autoc(*a, convention="causalml"),
}


def arguments(case):
    return case["y"], case["score"], case["treatment"]


@pytest.mark.parametrize("library", ["sklift", "causalml"])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_numbers(library, number):
    case = CASES[number]
    golden = case.get(library)
    if golden is None:
        with pytest.raises(ValueError, match="outcomes 0 and 1 only"):
            metrics.auuc(*arguments(case), convention="sklift")
        return
    asked = [name for name in golden if not name.endswith("curve")]
    assert len(asked) >= 3
    for name in asked:
        assert CALLS[library, name](*arguments(case)) == pytest.approx(golden[name], **CLOSE), name


@pytest.mark.parametrize("curve", ["uplift_curve", "qini_curve", "toc_curve"])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_curves(curve, number):
    case = CASES[number]
    make = getattr(metrics, curve)
    found = make(*arguments(case), convention="causalml")
    np.testing.assert_allclose(found.y, case["causalml"][curve], atol=1e-9)
    if curve in case.get("sklift", {}):
        x, height = make(*arguments(case), convention="sklift")
        np.testing.assert_allclose(x, case["sklift"][curve][0])
        np.testing.assert_allclose(height, case["sklift"][curve][1], atol=1e-9)


def test_intervals_in_other_conventions_are_those_of_resampled_rows():
    from upturn.kernels.resampling import resample, rows_by_stratum

    case = CASES[3]
    y, score, arm = (np.array(column) for column in arguments(case))
    rows, counts = rows_by_stratum(np.asarray(arm, np.uint8), 2), np.empty(len(y), np.int32)
    for call in (metrics.auuc, metrics.qini):
        for convention in ("sklift", "causalml", "libuplift"):
            samples = call(y, score, arm, convention=convention, interval=0.9, n_bootstrap=10, random_state=4).samples
            for replicate in range(10):
                resample(np.uint64(4), replicate, *rows, counts)
                drawn = np.repeat(np.arange(len(y)), counts)
                expected = call(y[drawn], score[drawn], arm[drawn], convention=convention)
                assert samples[replicate] == pytest.approx(expected, **CLOSE)


def test_libuplift_numbers():
    # Its separate area is upturn's own, its joint one weighs the arms to equal sizes, its Qini area is n_T times larger.
    case = CASES[4]
    y, score, arm = (np.array(column) for column in arguments(case))
    area = metrics.auuc(y, score, arm)
    assert metrics.auuc(y, score, arm, convention="libuplift") == area
    assert metrics.qini(y, score, arm, convention="libuplift") == pytest.approx(area * arm.sum())
    x, u = np.zeros(len(y) + 1), np.zeros(len(y) + 1)
    for position, row in enumerate(np.argsort(-score), 1):
        size = (arm == arm[row]).sum()
        x[position], u[position] = x[position - 1] + 0.5 / size, u[position - 1] + (2 * arm[row] - 1) * y[row] / size
    joint = metrics.auuc(y, score, arm, convention="libuplift", ranking="joint")
    assert joint == pytest.approx(trapezoid(u, x) - u[-1] / 2, abs=1e-12)
    curve = metrics.uplift_curve(y, score, arm, convention="libuplift", ranking="joint")
    np.testing.assert_allclose(curve.x, x)
    np.testing.assert_allclose(curve.y, u, atol=1e-12)
