"""Pipelines of scikit-learn that end in a model: saved, loaded, and refused where they are not sound."""

import hashlib
import json
import os
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

import upturn as up
from hostile.edits import edit_foreign
from hostile.use import in_words
from saved import zipped
from upturn.features import UMODLDiscretizer
from upturn.meta import TLearner
from upturn.persist._steps import STEPS, check_step
from upturn.svm import UpliftSVM
from upturn.trees import UpliftTree

RNG = np.random.default_rng(0)
N = 300
EDITS = 60
TABLE = pd.DataFrame(
    {
        "age": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
        "city": RNG.choice(["Rome", "Oslo", "Bonn"], N),
        "size": RNG.integers(0, 4, N),
        "income": RNG.lognormal(size=N),
    }
)
TREATED = RNG.random(N) < 0.5
TARGET = up.pack(RNG.random(N) < 0.3 + 0.6 * ((TABLE["size"] > 1) == TREATED), np.where(TREATED, "mail", "control"))
NUMBERS = TABLE[["size", "income"]]


def read_file(path):
    """The members of a file."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack_file(path, members, manifest):
    """A file of members, with the checksums put right."""
    others = {name: content for name, content in members.items() if name != "manifest.json"}
    manifest["members"] = {name: hashlib.sha256(content).hexdigest() for name, content in others.items()}
    path.write_bytes(zipped([("manifest.json", json.dumps(manifest).encode()), *others.items()]))


def columns():
    """What people put before a model."""
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", drop="if_binary", sparse_output=False), ["city", "size"]),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
        remainder="passthrough",
    )


PIPELINES = {
    "columns": lambda: make_pipeline(columns(), UpliftSVM(C=0.1)),
    "ours before ours": lambda: make_pipeline(UMODLDiscretizer(), UpliftTree(max_depth=2, random_state=0)),
    "levels": lambda: make_pipeline(
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), "passthrough", UpliftTree(random_state=0)
    ),
    "inside": lambda: make_pipeline(
        SimpleImputer(strategy="most_frequent"),
        make_pipeline(OrdinalEncoder(), UMODLDiscretizer()),
        Pipeline([("t", TLearner(LogisticRegression()))]),
    ),
}
SCALERS = [StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler(), PCA(1), VarianceThreshold()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PIPELINES)
def test_saved_and_loaded(name, tmp_path):
    pipeline = PIPELINES[name]().fit(TABLE, TARGET)
    up.save(pipeline, tmp_path / "pipeline")
    again = up.load(tmp_path / "pipeline")
    assert type(again) is Pipeline
    assert list(again.named_steps) == list(pipeline.named_steps)
    np.testing.assert_array_equal(again.predict(TABLE), pipeline.predict(TABLE))
    other = TABLE.assign(city="Riga")[:5]  # a level that was not seen
    if name in ("columns", "levels"):
        np.testing.assert_array_equal(again.predict(other), pipeline.predict(other))
    assert again.score(TABLE, TARGET) == pipeline.score(TABLE, TARGET)
    up.save(again, tmp_path / "again")
    np.testing.assert_array_equal(up.load(tmp_path / "again").predict(TABLE), pipeline.predict(TABLE))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("step", SCALERS, ids=lambda step: type(step).__name__)
def test_every_known_step(step, tmp_path):
    pipeline = make_pipeline(step, UpliftTree(random_state=0)).fit(NUMBERS, TARGET)
    up.save(pipeline, tmp_path / "pipeline")
    np.testing.assert_array_equal(up.load(tmp_path / "pipeline").predict(NUMBERS), pipeline.predict(NUMBERS))


def test_a_model_is_saved_as_by_its_method(tmp_path):
    model = UpliftTree(random_state=0).fit(NUMBERS, TARGET)
    up.save(model, tmp_path / "a")
    model.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (StandardScaler().fit(NUMBERS), "cannot be saved: expected a fitted model of upturn, or a pipeline"),
        ("model", "expected a fitted model of upturn"),
        (UpliftTree, "of type UpliftTree cannot be saved"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "the pipeline ends in LogisticRegression"),
        (make_pipeline(StandardScaler(), UpliftTree()), "not fitted"),
        (UpliftTree(), "not fitted"),
        (
            make_pipeline(FunctionTransformer(lambda X: X), UpliftTree(random_state=0)).fit(NUMBERS, TARGET),
            "cannot be saved",
        ),
    ],
)
def test_what_cannot_be_loaded_is_refused_at_save(model, message, tmp_path):
    with pytest.raises((TypeError, ValueError), match=message):
        up.save(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_rare_levels_that_are_grouped_are_refused_at_save(tmp_path):
    encoder = OneHotEncoder(min_frequency=10, sparse_output=False)
    pipeline = make_pipeline(encoder, UpliftTree(random_state=0)).fit(TABLE[["city"]], TARGET)
    with pytest.raises(TypeError, match=r"could not be loaded: .*groups rare levels"):
        up.save(pipeline, tmp_path / "pipeline")


@pytest.mark.filterwarnings("ignore")
def test_types_to_trust_are_named_all_at_once(tmp_path):
    first, second = PolynomialFeatures(2), SelectKBest(k=2)
    pipeline = make_pipeline(first, StandardScaler(), second, UpliftTree(random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline.fit(NUMBERS, TARGET["y"], uplifttree__treatment=TARGET["treatment"])
    with pytest.warns(UserWarning, match=r"pipeline holds types of other libraries.*load\(path, trusted=\[") as said:
        up.save(pipeline, tmp_path / "pipeline")
    assert len(said) == 1
    with pytest.raises(up.ModelFileError, match=r"SelectKBest.*f_classif.*PolynomialFeatures.*trusted=\[") as caught:
        up.load(tmp_path / "pipeline")
    named = json.loads(str(caught.value).partition("trusted=")[2].rpartition(")")[0].replace("'", '"'))
    assert str(said[0].message).endswith(f"trusted={named!r})")
    assert "sklearn.preprocessing._data.StandardScaler" not in named
    again = up.load(tmp_path / "pipeline", trusted=named)
    np.testing.assert_array_equal(again.predict(NUMBERS), pipeline.predict(NUMBERS))


OWN = """
import sys, warnings
import numpy as np, upturn as up
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from upturn.meta import TLearner
from upturn.trees import UpliftTree

class Own(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self
    def transform(self, X):
        return X
    def __sklearn_is_fitted__(self):
        return True

class Base(LogisticRegression):
    pass

X, y, t = np.arange(400.0).reshape(200, 2) % 7, np.arange(200) % 3 > 0, np.arange(200) % 2
for model in (make_pipeline(Own(), UpliftTree(random_state=0)), TLearner(Base())):
    model.fit(X, up.pack(y, t))
    try:
        up.save(model, sys.argv[1])
    except TypeError as error:
        print(error)
"""


def test_classes_of_the_running_script_are_not_saved(tmp_path):
    """No other program could load them; a module of its own is another matter."""
    script = tmp_path / "script.py"
    script.write_text(OWN)
    path = {**os.environ, "PYTHONPATH": str(Path(up.__file__).parent.parent)}
    command = [sys.executable, str(script), str(tmp_path / "model")]
    said = subprocess.run(command, env=path, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(said) == 2
    assert "this Pipeline holds __main__.Own, which only the running script or notebook knows" in said[0]
    assert "this TLearner holds __main__.Base" in said[1]
    assert not (tmp_path / "model").exists()


def _spoil(attribute, value):
    def edit(step):
        setattr(step, attribute, value(step) if callable(value) else value)

    return edit


@pytest.mark.parametrize(
    ("step", "edit"),
    [
        (StandardScaler(), _spoil("mean_", np.zeros(3))),
        (StandardScaler(), _spoil("scale_", np.zeros(2))),
        (StandardScaler(), _spoil("scale_", None)),
        (MinMaxScaler(), _spoil("min_", np.array([np.nan, 0]))),
        (RobustScaler(), _spoil("center_", np.array(["a", "b"], dtype=object))),
        (SimpleImputer(), _spoil("statistics_", np.zeros((2, 2)))),
        (SimpleImputer(), _spoil("indicator_", StandardScaler())),
        (PCA(1), _spoil("components_", np.zeros((1, 3)))),
        (PCA(1), _spoil("n_components_", 7)),
        (VarianceThreshold(), _spoil("variances_", np.zeros(1))),
        (OneHotEncoder(), _spoil("categories_", lambda s: s.categories_[:1])),
        (OneHotEncoder(), _spoil("categories_", lambda s: [c[::-1] for c in s.categories_])),
        (OneHotEncoder(), _spoil("categories_", lambda s: [np.append(c, np.nan)[::-1] for c in s.categories_])),
        (OneHotEncoder(), _spoil("max_categories", 2)),
        (OneHotEncoder(), _spoil("dtype", str)),
        (OneHotEncoder(drop="first"), _spoil("drop", ["never", "seen"])),
        (OrdinalEncoder(), _spoil("categories_", lambda s: [c[:, None] for c in s.categories_])),
        (OrdinalEncoder(), _spoil("categories_", lambda s: [np.array([slice(3)], dtype=object)] * 2)),
        (StandardScaler(), _spoil("n_features_in_", "two")),
        (make_column_transformer((StandardScaler(), [0, 1])), lambda s: _spoil("mean_", None)(s.transformers_[0][1])),
        (FunctionTransformer(), _spoil("func", lambda _: len)),
        (make_pipeline(StandardScaler()), _spoil("steps", [("a", 3)])),
        (make_pipeline(StandardScaler()), _spoil("steps", lambda s: s.steps * 2)),
        (StandardScaler(), _spoil("transform", lambda _: np.ndarray)),
        (StandardScaler(), _spoil("copy", "perhaps")),
        (StandardScaler(), _spoil("feature_names_in_", np.array(["a"], dtype=object))),
        (SimpleImputer(), _spoil("statistics_", np.array(["a", "b"], dtype=object))),
        (SimpleImputer(), _spoil("_fit_dtype", np.dtype("<U1000000"))),
        (make_column_transformer((StandardScaler(), [0, 1])), _spoil("_transformer_to_input_indices", {"a": [0]})),
        (
            make_column_transformer((StandardScaler(), [0, 1])),
            lambda s: s._transformer_to_input_indices.update(standardscaler=[0, 2]),
        ),
        (make_column_transformer((StandardScaler(), [0, 1])), _spoil("transformers", [("a", 3, [0])])),
        (
            make_column_transformer((StandardScaler(), [0, 1])),
            _spoil("transformers_", lambda s: [(*s.transformers_[0][:2], 7)]),
        ),
        (
            make_column_transformer((StandardScaler(), [0, 1])),
            _spoil("transformers_", lambda s: [(*s.transformers_[0][:2], slice(0, 2, 0))]),
        ),
        (
            make_column_transformer((StandardScaler(), [0, 1])),
            _spoil("transformer_weights", {"standardscaler": np.nan}),
        ),
        (make_column_transformer((StandardScaler(), [0, 1])), _spoil("sparse_output_", "yes")),
    ],
)
def test_states_that_are_not_sound_are_refused(step, edit):
    step.fit(NUMBERS.to_numpy())
    check_step(step, None)
    edit(step)
    with pytest.raises(up.ModelFileError):
        check_step(step, None)


def test_what_an_encoder_writes_by_is_derived_anew():
    """A file that says one column comes out where five do would have compiled code write beyond its array."""
    step = OneHotEncoder(drop="first", sparse_output=False).fit(NUMBERS[["size"]])
    expected = step.transform(NUMBERS[["size"]])
    step._n_features_outs, step._infrequent_enabled = [1], True
    step._drop_idx_after_grouping = step.drop_idx_ = np.array([77], dtype=object)
    step._default_to_infrequent_mappings = [np.array([9000] * 4)]
    check_step(step, None)
    np.testing.assert_array_equal(step.transform(NUMBERS[["size"]]), expected)


def _trees(manifest):
    steps = manifest["model"]["$pipeline"]
    yield "a name twice", lambda: steps[1].__setitem__(0, steps[0][0])
    yield "no name", lambda: steps[0].__setitem__(0, 3)
    yield "no steps", lambda: manifest["model"].__setitem__("$pipeline", [])
    yield "the model first", lambda: steps.reverse()
    yield "no model", lambda: steps[1].__setitem__(1, "passthrough")
    yield "a step that is text", lambda: steps[0].__setitem__(1, "drop")
    yield "a list", lambda: steps[0].__setitem__(1, [1])
    yield "another kind", lambda: steps[0].__setitem__(1, {"$foreign": steps[0][1]["$step"]})
    yield "an array", lambda: steps[0].__setitem__(1, {"$step": next(n for n in manifest["members"] if "npy" in n)})
    yield "more keys", lambda: manifest["model"].__setitem__("params", {})
    yield "not fitted", lambda: steps[1][1].__setitem__("state", None)


def test_manifests_that_are_not_sound_are_refused(tmp_path):
    pipeline = make_pipeline(StandardScaler(), UpliftTree(random_state=0)).fit(NUMBERS, TARGET)
    up.save(pipeline, tmp_path / "good")
    members = read_file(tmp_path / "good")
    for number in range(11):
        manifest = json.loads(members["manifest.json"])
        _, edit = list(_trees(manifest))[number]
        edit()
        pack_file(tmp_path / "bad", members, manifest)
        with pytest.raises(up.ModelFileError):
            up.load(tmp_path / "bad")


def test_a_step_that_needs_trust_does_not_pass_as_an_estimator_that_needs_none(tmp_path):
    """What is harmless as a step is not harmless inside a learner, where nothing would check it."""
    model = TLearner(LogisticRegression()).fit(NUMBERS, TARGET)
    model.save(tmp_path / "good")
    members = read_file(tmp_path / "good")
    name = next(name for name in members if name.startswith("foreign-"))
    members[name] = skops.io.dumps(OneHotEncoder().fit(NUMBERS))
    manifest = json.loads(members["manifest.json"])
    pack_file(tmp_path / "bad", members, manifest)
    with pytest.raises(up.ModelFileError, match="OneHotEncoder"):
        up.load(tmp_path / "bad")
    assert "sklearn.preprocessing._encoders.OneHotEncoder" in STEPS
    with zipfile.ZipFile(tmp_path / "good") as archive:
        assert all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())


def test_pipelines_without_steps_of_others_need_no_skops(tmp_path, monkeypatch):
    pipeline = make_pipeline(UMODLDiscretizer(), UpliftTree(max_depth=2, random_state=0)).fit(NUMBERS, TARGET)
    monkeypatch.setitem(__import__("sys").modules, "skops.io", None)
    up.save(pipeline, tmp_path / "pipeline")
    np.testing.assert_array_equal(up.load(tmp_path / "pipeline").predict(NUMBERS), pipeline.predict(NUMBERS))
    with pytest.raises(ImportError, match=r"pip install 'upturn\[skops\]'"):
        up.save(make_pipeline(StandardScaler(), UpliftTree()).fit(NUMBERS, TARGET), tmp_path / "other")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["columns", "levels", "inside"])
def test_edited_steps_are_refused_or_answer(name, tmp_path):
    """Steps that were edited: refused at load in our words, or asked; they answer in numbers, or refuse the rows in words."""
    up.save(PIPELINES[name]().fit(TABLE, TARGET), tmp_path / "good")
    members, refused = read_file(tmp_path / "good"), 0
    step = next(file for file in members if file.startswith("step-"))
    rng = np.random.default_rng(0)
    for _ in range(EDITS):
        content, _ = edit_foreign(rng, members[step], [2, 3, 4, 7, N])
        pack_file(tmp_path / "bad", {**members, step: content}, json.loads(members["manifest.json"]))
        try:
            loaded = up.load(tmp_path / "bad")
        except up.ModelFileError:
            refused += 1
            continue
        try:
            assert np.isfinite(loaded.predict(TABLE)).all()
        except (TypeError, ValueError) as error:
            if not in_words(error, pipeline=True):
                raise
    assert EDITS / 4 < refused < EDITS
