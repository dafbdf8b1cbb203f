"""The loaders of large published files, on small files of the same form."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="loaders need the extra [data]")

from upturn import datasets


def save(folder, name, frame):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("UPTURN_DATA", str(tmp_path))
    return tmp_path


def criteo_frame():
    frame = pd.DataFrame({f"f{i}": np.arange(4) + i / 10 for i in range(12)})
    return frame.assign(treatment=[1, 0, 1, 1], conversion=[0, 0, 0, 1], visit=[0, 1, 0, 1], exposure=[0, 0, 1, 1])


def test_criteo_from_the_folder_leaves_exposure_out(folder):
    save(folder, "criteo/criteo-research-uplift-v2.1.csv.gz", criteo_frame())
    data = datasets.load_criteo("conversion")
    assert data.y.tolist() == [0, 0, 0, 1]
    assert data.treatment.tolist() == [1, 0, 1, 1]
    assert list(data.X.columns) == [f"f{i}" for i in range(12)]


def test_lenta(folder):
    frame = pd.DataFrame(
        {
            "age": [30.0, None, 50.0],
            "gender": ["Ж", "М", None],
            "group": ["test", "control", "test"],
            "response_att": [0, 1, 1],
            "cheque_count_3m_g20": [1.0, 2.0, 3.0],
        }
    )
    data = datasets.load_lenta(save(folder, "mine.csv.gz", frame))
    assert list(data.X.columns) == ["age", "gender", "cheque_count_3m_g20"]
    assert data.treatment.tolist() == [1, 0, 1]
    assert data.X["gender"].cat.categories.tolist() == ["Ж", "М"]
    assert data.X.isna().sum().tolist() == [1, 1, 0]
    save(folder, "lenta/lenta_dataset.csv", frame.assign(group=["a", "b", "a"]))  # plain, in the data folder
    with pytest.raises(ValueError, match=r"groups 'control' and 'test'; found \['a', 'b'\]"):
        datasets.load_lenta()


def test_megafon(folder):
    frame = pd.DataFrame({f"X_{i}": [0.5, 1.5] for i in range(1, 51)})
    frame = frame.assign(id=[1, 2], treatment_group=["control", "treatment"], conversion=[0, 1])
    save(folder, "megafon/megafon_dataset.csv.gz", frame)
    data = datasets.load_megafon()
    assert data.X.shape == (2, 50)
    assert data.treatment.tolist() == [0, 1]
    assert data.y.tolist() == [0, 1]


@pytest.mark.parametrize("explicit", [True, False])
def test_x5_joins_clients_by_their_id(folder, explicit):
    clients = pd.DataFrame(
        {
            "client_id": ["b", "a", "c"],
            "first_issue_date": ["2017-01-02 12:00:00", "2018-01-01 00:00:00", "2017-05-05 00:00:00"],
            "first_redeem_date": [None, "2018-01-03 00:00:00", "2018-01-01 00:00:00"],
            "age": [20, 30, 40],
            "gender": ["F", "M", "U"],
        }
    )
    train = pd.DataFrame({"client_id": ["a", "b"], "treatment_flg": [1, 0], "target": [1, 0]})
    save(folder, "x5/clients.csv.gz", clients)
    save(folder, "x5/uplift_train.csv", train)
    data = datasets.load_x5(folder / "x5") if explicit else datasets.load_x5()
    assert data.X["age"].tolist() == [30, 20]
    assert data.X["issue_day"].tolist() == [365.0, 1.5]
    assert list(data.X.columns) == ["age", "gender", "issue_day"]  # a card is first used before or after the message
    assert data.treatment.tolist() == [1, 0]


def test_another_file_of_the_same_name_is_recognised(folder):
    save(folder, "criteo/criteo-research-uplift-v2.1.csv.gz", criteo_frame().drop(columns="visit"))
    with pytest.raises(ValueError, match=r"has no column \['visit'\].*Is it the right file"):
        datasets.load_criteo()


def test_a_truncated_gzip_file_is_named(folder):
    path = folder / "criteo" / "criteo-research-uplift-v2.1.csv.gz"
    path.parent.mkdir()
    whole = gzip.compress(criteo_frame().to_csv(index=False).encode() * 50)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="cannot read it as a table"):
        datasets.load_criteo()


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(datasets.DataNotFoundError, match="there is no file"):
        datasets.load_criteo(path=tmp_path / "no.csv")
