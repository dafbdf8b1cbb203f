"""Saved models: the same predictions in another process, the same bytes, and no harm done by a failing save."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC, LinearSVC

import upturn as up
from saved import FRAME, LABELS, NUMBERS, SIDE, TABLE, Y, assign, fingerprint, native
from upturn import ModelFileError, persist
from upturn.boosting import UpliftBagging
from upturn.meta import ClassTransformation, XLearner
from upturn.trees import UpliftTree

SRC = Path(up.__file__).parent.parent


class HomeMade(ClassifierMixin, BaseEstimator):
    """A classifier that no library knows."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.mean_ = np.mean(X)
        return self

    def predict_proba(self, X):
        p = (X.mean(axis=1) > self.mean_) * 0.5 + 0.25
        return np.column_stack([1 - p, p])


# --------------------------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("pair", LABELS.values(), ids=LABELS)
def test_labels_keep_their_types(tmp_path, pair):
    model = native(pair)
    model.save(tmp_path / "model")
    again = up.load(tmp_path / "model")
    assert [again.control_, *again.arms_] == list(pair)
    assert [type(label) for label in (again.control_, *again.arms_)] == [type(label) for label in pair]
    assert np.array_equal(again.recommend(FRAME), model.recommend(FRAME))
    assert fingerprint(again) == fingerprint(model)
    assert repr(again) == repr(model)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, "array"])
def test_schema_comes_back(tmp_path, library):
    X = (
        NUMBERS
        if library == "array"
        else library(TABLE if library is pd.DataFrame else {"age": TABLE["age"], "channel": TABLE["channel"]})
    )
    model = ClassTransformation(control=1).fit(X, Y, SIDE)
    model.save(tmp_path / "model")
    again = up.load(str(tmp_path / "model"))
    assert again._schema == model._schema
    assert again.n_features_in_ == model.n_features_in_
    assert hasattr(again, "feature_names_in_") == (library != "array")
    assert again.get_params() == model.get_params()
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.score(X, Y, SIDE), model.score(X, Y, SIDE))


def wanted_trust(path):
    """The types that the error of an untrusting load names."""
    try:
        up.load(path)
    except ModelFileError as error:
        return re.findall(r"'([\w.]+)'", str(error).split("trusted=")[1])
    return []


def test_predictions_in_a_fresh_process(tmp_path):
    models = {
        "native": native(),
        "mixed": native((0, "mail")),
        "logistic": ClassTransformation(LogisticRegression(C=0.3)).fit(FRAME, Y, SIDE),
        "svc": ClassTransformation(LinearSVC(), reweight=False).fit(FRAME, Y, SIDE),
        "forest": ClassTransformation(RandomForestClassifier(5, random_state=0)).fit(FRAME, Y, SIDE),
        "boosting": ClassTransformation(HistGradientBoostingClassifier(max_iter=5)).fit(FRAME, Y, SIDE),
    }
    trusted = []
    for name, model in models.items():
        model.save(tmp_path / name)
        trusted += wanted_trust(tmp_path / name)
    assert "sklearn.tree._tree.Tree" in trusted
    (tmp_path / "table.json").write_text(json.dumps(TABLE))
    script = f"""if True:
        import json, sys
        import numpy as np, pandas as pd, upturn as up
        folder = sys.argv[1] + "/"
        frame = pd.DataFrame(json.load(open(folder + "table.json")))
        for name in {list(models)!r}:
            model = up.load(folder + name, trusted={trusted!r})
            np.save(folder + name + ".npy", model.predict(frame))
            np.save(folder + name + "-arms.npy", model.recommend(frame).astype(str))
    """
    subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], check=True, env={**os.environ, "PYTHONPATH": str(SRC)}
    )
    for name, model in models.items():
        assert np.array_equal(np.load(tmp_path / f"{name}.npy"), model.predict(FRAME)), name
        assert np.array_equal(np.load(tmp_path / f"{name}-arms.npy"), model.recommend(FRAME).astype(str)), name


def test_a_loaded_model_can_be_refitted_cloned_and_saved_again(tmp_path):
    model = native()
    model.save(tmp_path / "a")
    again = up.load(tmp_path / "a")
    again.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert fingerprint(again.fit(FRAME, Y, assign(("control", "mail")))) == fingerprint(model)


@pytest.mark.parametrize("first", [None, LogisticRegression()], ids=["native", "foreign"])
def test_a_parameter_changed_after_fit_changes_the_next_fit_only(tmp_path, first):
    other = None if first is not None else LogisticRegression()
    model = ClassTransformation(first).fit(FRAME, Y, SIDE)
    before = model.predict(FRAME)
    model.set_params(estimator=other)
    model.save(tmp_path / "model")
    for fitted in (model, up.load(tmp_path / "model")):
        assert np.array_equal(fitted.predict(FRAME), before)
        again = fitted.fit(FRAME, Y, SIDE).predict(FRAME)
        assert np.array_equal(again, ClassTransformation(other).fit(FRAME, Y, SIDE).predict(FRAME))
        assert hasattr(fitted, "coef_") != hasattr(fitted, "estimator_")


def test_arrays_of_a_loaded_model_are_its_own(tmp_path):
    native().save(tmp_path / "model")
    coefficients = up.load(tmp_path / "model").coef_
    assert coefficients.flags.writeable
    coefficients[:] = 0
    assert up.load(tmp_path / "model").coef_.any()


ARRAYS = [
    np.array(3.5),
    np.arange(3),
    np.empty((0, 4)),
    np.arange(24.0).reshape(2, 3, 4),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(10)[::3],
    np.array([True, False]),
    np.arange(3, dtype=">i4"),
    *(np.array([0, 1, 100], dtype=dtype) for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")),
    np.array([np.nan, -np.inf, -0.0, 5e-324]),
    np.zeros((1, 2, 1, 2)),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype.str}-{array.shape}")
def test_arrays_survive(array):
    writer = persist.Writer()
    tree = json.loads(json.dumps(writer.encode({"a": array, "b": [array, (array, None)]})))
    made = persist.Reader(writer.members, ()).decode(tree)
    for again in (made["a"], made["b"][0], made["b"][1][0]):
        assert again.shape == array.shape
        assert again.dtype == array.dtype.newbyteorder("=")
        assert again.tobytes() == array.astype(array.dtype.newbyteorder("=")).tobytes()
        assert again.flags.c_contiguous


VALUES = [
    None,
    True,
    False,
    0,
    -(2**70),
    0.1,
    1e308,
    float("inf"),
    "",
    "ünï\n",
    [],
    {},
    (),
    [1, [2.0, (3, "a")]],
    {"a": {"b": [None]}},
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_survive(value):
    tree = json.loads(json.dumps(persist.Writer().encode(value), allow_nan=False))
    again = persist.Reader({}, ()).decode(tree)
    assert again == value
    assert repr(again) == repr(value)


def test_numpy_scalars_become_plain():
    scalars = [np.int8(3), np.float32(0.5), np.bool_(True), np.str_("a"), np.float64(2)]
    again = json.loads(json.dumps(persist.Writer().encode(scalars)))
    assert again == [3, 0.5, True, "a", 2.0]
    assert [type(value) for value in again] == [int, float, bool, str, float]


# --------------------------------------------------------------------------------------------- writing


def test_the_same_model_gives_the_same_bytes(tmp_path):
    native().save(tmp_path / "a")
    native().save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_members_are_stored_under_fixed_names(tmp_path):
    native().save(tmp_path / "model")
    infos = zipfile.ZipFile(tmp_path / "model").infolist()
    assert [info.filename for info in infos] == ["manifest.json", *(f"array-{j:05d}.npy" for j in range(6))]
    assert all(info.compress_type == zipfile.ZIP_STORED and info.date_time == (1980, 1, 1, 0, 0, 0) for info in infos)


@pytest.mark.skipif(os.name != "posix", reason="permission bits are a POSIX matter")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_permission_bits(tmp_path, mask):
    old = os.umask(mask)
    try:
        native().save(tmp_path / "model")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o666 & ~mask
    (tmp_path / "model").chmod(0o640)
    native().save(tmp_path / "model")
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o640


BREAKS = {
    "disk full": (zipfile.ZipFile, "writestr", OSError(28, "No space left on device")),
    "flush": (os, "fsync", OSError(5, "Input/output error")),
    "rename": (os, "replace", PermissionError(13, "Permission denied")),
    "ctrl-c": (os, "fsync", KeyboardInterrupt()),
}


@pytest.mark.parametrize(("where", "name", "error"), BREAKS.values(), ids=BREAKS)
@pytest.mark.parametrize("exists", [True, False])
def test_a_failing_save_changes_nothing(tmp_path, monkeypatch, where, name, error, exists):
    if exists:
        (tmp_path / "model").write_bytes(b"precious")
    before = sorted(os.listdir(tmp_path))

    def fail(*arguments, **options):
        raise error

    model = native()
    monkeypatch.setattr(where, name, fail)
    with pytest.raises(type(error)):
        model.save(tmp_path / "model")
    monkeypatch.undo()
    assert sorted(os.listdir(tmp_path)) == before
    if exists:
        assert (tmp_path / "model").read_bytes() == b"precious"


def test_a_save_that_cannot_keep_the_permissions_changes_nothing(tmp_path, monkeypatch):
    (tmp_path / "model").write_bytes(b"precious")
    model = native()
    monkeypatch.setattr(os, "chmod", lambda *_: (_ for _ in ()).throw(PermissionError(1, "Operation not permitted")))
    with pytest.raises(PermissionError):
        model.save(tmp_path / "model")
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["model"]
    assert (tmp_path / "model").read_bytes() == b"precious"


@pytest.mark.skipif(os.name != "posix", reason="permission bits are a POSIX matter")
def test_a_private_file_is_private_while_it_is_replaced(tmp_path, monkeypatch):
    native().save(tmp_path / "model")
    (tmp_path / "model").chmod(0o600)
    seen = []
    monkeypatch.setattr(os, "fsync", lambda handle: seen.append(stat.S_IMODE(os.fstat(handle).st_mode)))
    native().save(tmp_path / "model")
    assert seen == [0o600]


@pytest.mark.skipif(os.name != "posix", reason="links are a POSIX matter")
def test_saving_through_a_link_replaces_what_it_points_to(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "model")
    native().save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert os.listdir(tmp_path / "there") == ["model"]
    assert np.array_equal(up.load(tmp_path / "link").predict(FRAME), native().predict(FRAME))


def test_what_a_killed_save_left_is_swept_up_later(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    long_ago = time.time() - 7200
    left = {
        "gone": (f".model.{dead.pid}-0123abcd.tmp", long_ago, False),
        "gone, but just now": (f".model.{dead.pid}-1123abcd.tmp", time.time(), True),
        "alive": (f".model.{os.getpid()}-0123abcd.tmp", long_ago, True),
        "of another model": (f".model2.{dead.pid}-0123abcd.tmp", long_ago, True),
        "not ours": (".model.notes-1.tmp", long_ago, True),
    }
    for name, when, _ in left.values():
        (tmp_path / name).write_bytes(b"")
        os.utime(tmp_path / name, (when, when))
    native().save(tmp_path / "model")
    assert sorted(os.listdir(tmp_path)) == sorted(["model", *(name for name, _, stays in left.values() if stays)])


def test_threads_and_progress_bars_are_the_readers(tmp_path):
    model = UpliftBagging(n_estimators=2, n_jobs=2, verbose=1, random_state=0).fit(NUMBERS, Y, SIDE)
    model.save(tmp_path / "model")
    again = up.load(tmp_path / "model")
    assert (again.n_jobs, again.verbose, again.n_estimators) == (None, 0, 2)
    assert up.load(tmp_path / "model", n_jobs=2).n_jobs == 2
    with pytest.raises(ValueError, match="n_jobs=0: expected None, a number of threads"):
        up.load(tmp_path / "model", n_jobs=0)


def test_saving_where_there_is_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cannot save to .*model: there is no folder .*nowhere; make it first"):
        native().save(tmp_path / "nowhere" / "model")
    with pytest.raises(OSError, match="directory"):
        native().save(tmp_path)
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_saved(tmp_path):
    model = native()
    model.propensity = len  # which only the reader of propensities could judge
    with pytest.raises(
        TypeError, match=r"parameter propensity: <built-in function len> of type builtin_function.* cannot be saved"
    ):
        model.save(tmp_path / "model")
    model = native()
    model.coef_ = model.coef_.astype(object)
    with pytest.raises(TypeError, match="an array of type object cannot be saved"):
        model.save(tmp_path / "model")
    with pytest.raises(TypeError, match="keys of saved state must be text that does not start with a dollar sign"):
        persist.Writer().encode({"$array": "array-00000.npy"})
    assert os.listdir(tmp_path) == []


def test_only_classes_of_the_library_are_saved(tmp_path):
    class Special(ClassTransformation):
        pass

    class Disguised(ClassTransformation):
        pass

    Disguised.__name__ = "ClassTransformation"
    for cls in (Special, Disguised):
        model = cls().fit(NUMBERS, Y, SIDE)
        with pytest.raises(
            TypeError, match=r"test_persist\..* cannot be saved: only upturn's own classes can, no subclasses"
        ):
            model.save(tmp_path / "model")


def test_a_random_generator_is_not_saved():
    assert persist.Writer()._param("random_state", np.random.default_rng(0)) is None
    assert persist.Writer()._param("random_state", 3) == 3


# --------------------------------------------------------------------------------------------- estimators of other libraries


def test_a_type_that_is_not_trusted_is_refused_and_named(tmp_path):
    model = ClassTransformation(HomeMade()).fit(NUMBERS, Y, SIDE)
    model.save(tmp_path / "model")
    name = f"{__name__}.HomeMade"
    with pytest.raises(ModelFileError, match=rf"not known to be harmless: {name}; if you trust .*trusted=\['{name}'\]"):
        up.load(tmp_path / "model")
    with pytest.raises(ModelFileError, match="not known to be harmless"):
        up.load(tmp_path / "model", trusted=["another.Type"])
    for trusted in ([name], {name}, name, iter([name])):
        assert np.array_equal(up.load(tmp_path / "model", trusted=trusted).predict(NUMBERS), model.predict(NUMBERS))


@pytest.mark.parametrize("base", [SVC(), SGDClassifier(), KNeighborsClassifier()], ids=lambda base: type(base).__name__)
def test_types_whose_compiled_code_trusts_the_file_need_trust(base, tmp_path):
    model = ClassTransformation(base, reweight=False).fit(NUMBERS, Y, SIDE)
    model.save(tmp_path / "model")
    named = wanted_trust(tmp_path / "model")
    assert any(type(base).__name__ in name for name in named)
    again = up.load(tmp_path / "model", trusted=named)
    assert np.array_equal(again.predict(NUMBERS), model.predict(NUMBERS))


def test_all_types_to_trust_are_named_at_once(tmp_path):
    model = XLearner(RandomForestRegressor(2), KNeighborsRegressor()).fit(NUMBERS, Y, SIDE)
    model.save(tmp_path / "model")
    named = wanted_trust(tmp_path / "model")
    assert {"sklearn.ensemble._forest.RandomForestRegressor", "sklearn.neighbors._kd_tree.KDTree"} <= set(named)
    up.load(tmp_path / "model", trusted=named)


def test_without_skops_the_extra_is_named(tmp_path, monkeypatch):
    model = ClassTransformation(LogisticRegression()).fit(NUMBERS, Y, SIDE)
    model.save(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(
        ImportError, match=r"built on LogisticRegression needs the package skops: pip install 'upturn\[skops\]'"
    ):
        model.save(tmp_path / "other")
    with pytest.raises(ImportError, match=r"needs the package skops: pip install 'upturn\[skops\]'"):
        up.load(tmp_path / "model")
    native().save(tmp_path / "native")
    up.load(tmp_path / "native")


@pytest.mark.parametrize("estimator", [Ridge(), "logistic", 3])
def test_a_base_that_is_no_classifier(estimator):
    with pytest.raises(
        TypeError, match="has neither predict_proba nor decision_function: expected a classifier such as"
    ):
        ClassTransformation(estimator).fit(NUMBERS, Y, SIDE)


@pytest.mark.parametrize("thing", [None, 1, "text", [1.0], {"a": 1}, np.zeros(3), int], ids=repr)
def test_what_is_no_model_is_not_saved(thing, tmp_path):
    from upturn.persist import save

    with pytest.raises(TypeError, match="cannot be saved: expected a fitted model of upturn"):
        save(thing, tmp_path / "thing.upturn")
    assert not list(tmp_path.iterdir())


def test_names_that_no_file_can_have_and_links_in_a_circle(tmp_path):
    model = UpliftTree(max_depth=0).fit([[0.0], [1.0]] * 20, [0, 1] * 20, [0, 0, 1, 1] * 10)
    for act in (model.save, up.load):
        with pytest.raises(ValueError, match="holds half a character"):
            act(str(tmp_path / "\ud800"))
    (tmp_path / "one").symlink_to(tmp_path / "two")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    with pytest.raises(OSError, match=r"leads back to itself|symbolic links"):
        model.save(tmp_path / "one")
