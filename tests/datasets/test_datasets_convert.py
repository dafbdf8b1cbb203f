"""survival_to_uplift and split_by_attribute against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upturn.datasets import split_by_attribute, survival_to_uplift

times = st.lists(st.floats(0, 1e6, allow_nan=False), min_size=1, max_size=30)


@given(times)
def test_success_is_at_least_the_median(values):
    ordered = sorted(values)
    n = len(ordered)
    median = ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2
    assert survival_to_uplift(values).tolist() == [int(value >= median) for value in values]


@given(times, st.floats(0, 1e6))
def test_a_threshold_of_ones_own(values, threshold):
    assert survival_to_uplift(values, threshold=threshold).tolist() == [int(value >= threshold) for value in values]


def test_censoring_is_ignored():
    assert survival_to_uplift([1, 2, 3], [0, 0, 0]).tolist() == survival_to_uplift([1, 2, 3], [1, 1, 1]).tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "empty"),
        (([[1.0, 2.0]],), "1d array"),
        (([1.0, np.nan],), "1 NaN .missing. value"),
        (([1.0, 2.0], [1]), "time has 2, event has 1"),
        (([1.0, 2.0], [1, 2]), "event must be 1"),
        (([1.0, 2.0], [1, 0], "mean"), "threshold='mean': expected 'median', or a time"),
    ],
)
def test_survival_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        survival_to_uplift(*arguments)


def naive_difference(column, treated):
    """The rule of section 6.2, a value at a time."""
    groups = ([], [])
    for value, arm in zip(column, treated, strict=True):
        if value is not None and value == value:
            groups[int(arm)].append(value)
    if not groups[0] or not groups[1]:
        return 0.0
    if all(isinstance(value, (int, float)) for value in column if value is not None):
        means = [sum(group) / len(group) for group in groups]
        larger = max(abs(means[0]), abs(means[1]))
        return abs(means[0] - means[1]) / larger if larger else 0.0
    share = [{value: group.count(value) / len(group) for value in group} for group in groups]
    return max(abs(share[0].get(v, 0) - share[1].get(v, 0)) for v in {*groups[0], *groups[1]})


rows = st.lists(
    st.tuples(
        st.sampled_from(["m", "f", None]),
        st.sampled_from(["a", "b", "c", None]),
        st.one_of(st.none(), st.integers(-5, 5).map(float)),
        st.integers(-3, 30).map(float),
    ),
    min_size=2,
    max_size=25,
)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@given(table=rows, sign=st.sampled_from(["==", "!="]))
def test_against_the_rule_written_out(library, table, sign):
    module = pytest.importorskip(library)
    columns = {name: [row[i] for row in table] for i, name in enumerate(["sex", "kind", "x", "z"])}
    if library == "pandas":
        X = module.DataFrame(columns).astype({"kind": "category", "x": "float64"})
    elif library == "polars":
        X = module.DataFrame(
            columns, schema={"sex": module.String, "kind": module.String, "x": module.Float64, "z": module.Float64}
        )
    else:
        X = module.table(
            columns,
            schema=module.schema(
                [("sex", module.string()), ("kind", module.string()), ("x", module.float64()), ("z", module.float64())]
            ),
        )
    treated = [(value == "m") if sign == "==" else (value != "m") for value in columns["sex"]]
    if all(treated) or not any(treated):
        with pytest.raises(ValueError, match="does not split"):
            split_by_attribute(X, ("sex", sign, "m"))
        return
    split = split_by_attribute(X, ("sex", sign, "m"))
    assert split.treatment.tolist() == [int(t) for t in treated]
    expected = {name: naive_difference(values, treated) for name, values in columns.items()}
    removed = {name for name, size in expected.items() if size > 0.25 or name == "sex"}
    borderline = {name for name, size in expected.items() if abs(size - 0.25) < 1e-12}
    assert set(split.removed) - borderline == removed - borderline
    for name in removed - borderline:
        assert split.removed[name] == pytest.approx(expected[name], abs=1e-12)
    assert type(split.X) is type(X)
    kept = split.X.column_names if library == "pyarrow" else list(split.X.columns)
    assert kept == [name for name in columns if name not in split.removed]


def test_comparisons_and_missing_values():
    pl = pytest.importorskip("polars")
    X = pl.DataFrame({"v": [1.0, 2.0, 3.0, None], "w": [1.0, 1.0, 1.0, 1.0]})
    for sign, value, expected in [
        ("<", 2, [1, 0, 0, 0]),
        ("<=", 2, [1, 1, 0, 0]),
        (">", 2, [0, 0, 1, 0]),
        (">=", 2, [0, 1, 1, 0]),
        ("==", 2, [0, 1, 0, 0]),
        ("!=", 2, [1, 0, 1, 1]),
        ("in", (1, 3), [1, 0, 1, 0]),
    ]:
        assert split_by_attribute(X, ("v", sign, value)).treatment.tolist() == expected


def test_split_errors():
    pl = pytest.importorskip("polars")
    X = pl.DataFrame({"v": [1.0, 2.0]})
    with pytest.raises(ValueError, match="names the column 'u', but X has"):
        split_by_attribute(X, ("u", "==", 1))
    with pytest.raises(ValueError, match="'~' is no comparison"):
        split_by_attribute(X, ("v", "~", 1))
    with pytest.raises(ValueError, match="every row is control: v > 9 does not split these 2 rows"):
        split_by_attribute(X, ("v", ">", 9))
