"""Things in files that several processes share: what was put there comes back, and nothing that was left half done."""

import numpy as np
import pytest

from upturn.engines import _store


def thing():
    return {"rows": np.arange(100_000, dtype=np.uint32), "nothing": np.empty(0), "words": [np.ones((3, 5)), "text"]}


def same(one, two):
    assert one.keys() == two.keys()
    np.testing.assert_array_equal(one["rows"], two["rows"])
    np.testing.assert_array_equal(one["words"][0], two["words"][0])
    assert one["words"][1] == two["words"][1]


def test_what_is_written_comes_back_and_stays_as_it_was(tmp_path):
    _store.write(tmp_path / "state", thing())
    found = _store.read(tmp_path / "state")
    same(found, thing())
    found["rows"][:] = 7  # a copy of its own
    same(_store.read(tmp_path / "state"), thing())
    _store.write(tmp_path / "state", {**thing(), "rows": np.zeros(3)})
    assert len(_store.read(tmp_path / "state")["rows"]) == 3
    assert len(list(tmp_path.iterdir())) == 2  # and the arrays before are gone
    with pytest.raises(FileNotFoundError):
        _store.read(tmp_path / "other")


def test_a_desk_is_worked_at_in_place_by_one_at_a_time(tmp_path):
    path = tmp_path / "kept"
    assert _store.Desk(path).take() is None
    _store.Desk(path).put(thing())
    mine, other = _store.Desk(path), _store.Desk(path)
    found = mine.take()
    assert other.take() is None  # until it is put back
    found["rows"][:] = np.arange(100_000)[::-1]
    files = {name for name in tmp_path.iterdir() if name.name.endswith("-arrays")}
    mine.put(found)
    assert {name for name in tmp_path.iterdir() if name.name.endswith("-arrays")} == files  # nothing was copied
    np.testing.assert_array_equal(other.take()["rows"], np.arange(100_000)[::-1])
    assert mine.take() is None


def test_a_desk_with_new_arrays_forgets_the_old_ones(tmp_path):
    desk = _store.Desk(tmp_path / "kept")
    desk.put(thing())
    found = desk.take()
    desk.put({**found, "rows": np.arange(5)})
    assert len(list(tmp_path.iterdir())) == 2
    np.testing.assert_array_equal(_store.Desk(tmp_path / "kept").take()["rows"], np.arange(5))


def test_what_somebody_took_and_never_put_back_is_gone(tmp_path):
    _store.Desk(tmp_path / "kept").put(thing())
    _store.Desk(tmp_path / "kept").take()["rows"][:] = 0
    assert _store.Desk(tmp_path / "kept").take() is None


def test_a_desk_whose_arrays_are_gone_is_empty(tmp_path):
    _store.Desk(tmp_path / "kept").put(thing())
    next(path for path in tmp_path.iterdir() if path.name.endswith("-arrays")).unlink()
    desk = _store.Desk(tmp_path / "kept")
    assert desk.take() is None
    assert not list(tmp_path.iterdir())
    desk.put(thing())
    same(_store.Desk(tmp_path / "kept").take(), thing())
