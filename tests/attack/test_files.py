"""Model files of an attacker who puts the checksums right: refused in clear words, or a model that predicts finite numbers."""

from __future__ import annotations

import collections
import copy
import json

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import upturn as up
from hostile.corpus import File, files, read
from hostile.edits import at, load_npy, npy, places, put
from hostile.use import ROWS, judge, rows_for
from hostile.workers import judge_all
from saved import zipped
from upturn import ModelFileError
from upturn.meta import ClassTransformation, DRLearner, SLearner, TLearner, TreatedOnly, XLearner
from upturn.trees import UpliftTree

CASES = 2000


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return files(tmp_path_factory.mktemp("sound"))


def test_two_thousand_edits_in_workers(sound, tmp_path):
    """No crash, no hang, no exception but ours, no number that is not finite; and the edits reach further than the gate."""
    found = judge_all(sound, range(CASES), tmp_path)
    verdicts = collections.Counter(verdict for verdict, *_ in found.values())
    bad = {number: said for number, said in found.items() if said[0] not in ("clear", "right")}
    assert not bad, bad
    assert sum(verdicts.values()) == CASES
    assert verdicts["clear"] > CASES / 3 and verdicts["right"] > CASES / 5  # noqa: PT018


def test_the_judges_see_what_they_are_there_for(sound, tmp_path):
    """Were loading to crash, hang, raise or take all memory, it would be said so, and the cases after it still be judged."""
    traps = {
        3: "import os; os.abort()",
        4: "import time; time.sleep(60)",
        5: "{}['key']",
        6: "bytes(2**34)",
        7: "import numpy; numpy.zeros(3).reshape(2, 2)",
    }
    found = judge_all({"UpliftTree": sound["UpliftTree"]}, range(10), tmp_path, seconds=5.0, traps=traps, n_workers=1)
    verdicts = {number: said[0] for number, said in found.items()}
    assert {number: verdicts[number] for number in traps} == {3: "crash", 4: "hang", 5: "raw", 6: "raw", 7: "raw"}
    assert set(verdicts) == set(range(10))
    assert {verdicts[number] for number in (0, 1, 2, 8, 9)} <= {"clear", "right"}


# --------------------------------------------------------------------------------------------- attacks with a plan


def refused(file, tmp_path, message):
    path = tmp_path / "model"
    path.write_bytes(file.pack())
    with pytest.raises(ModelFileError, match=message):
        up.load(path)


def saved(model, tmp_path):
    model.save(tmp_path / "model")
    return read((tmp_path / "model").read_bytes())


def array_at(file, *names):
    """The member behind the first place whose path ends with these names."""
    tree = file.manifest["model"]
    path = next(path for path in places(tree) if path[-len(names) - 1 :] == (*names, "$array"))
    return at(tree, path)


def experiment(n=300):
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
    return X, (rng.random(n) < 0.3 + 0.4 * t * (X[:, 0] > 0)).astype(int), t


def test_one_tree_walked_a_million_times(sound, tmp_path):
    """Roots that repeat make a small file take any time."""
    file = sound["boosted T-learner"]
    roots = array_at(file, "roots")
    members = {**file.members, roots: npy(np.zeros(100_000, np.int64))}
    refused(File(file.manifest, members), tmp_path, "two branches of the trees lead to one node")


def test_trees_that_share_branches(sound, tmp_path):
    """Both children the same: 2 to the depth walks would be one table of a few nodes, and a node would count twice."""
    file = sound["boosted T-learner"]
    left, right = array_at(file, "left"), array_at(file, "right")
    members = {**file.members, right: file.members[left]}
    refused(File(file.manifest, members), tmp_path, "two branches of the trees lead to one node")


@pytest.mark.parametrize("length", [3 * 10**8, 10**17])
@pytest.mark.parametrize("name", ["UpliftBoosting", "FilterSelector", "UpliftTree"])
def test_arrays_of_nothing_that_are_long(sound, tmp_path, name, length):
    """(n, 0) takes no bytes, and something with n of them may be made for it."""
    file = sound[name]
    for member in [one for one in file.members if one.endswith(".npy")]:
        kind = load_npy(file.members[member]).dtype
        for shape in ((length, 0), (0, length)):
            members = {**file.members, member: npy(np.zeros(shape, kind))}
            refused(File(file.manifest, members), tmp_path, "claims shape")


def test_counts_that_wrap_around(sound, tmp_path):
    file = sound["UMODLDiscretizer"]
    counts = array_at(file, "counts")
    wrapped = load_npy(file.members[counts])
    wrapped[0] = 2**62
    refused(File(file.manifest, {**file.members, counts: npy(wrapped)}), tmp_path, "negative or too large")


def test_products_of_features_and_arms_beyond_all_memory(tmp_path):
    """A constant model needs no coefficients, so the file could name any number of columns for each of 254 arms."""
    X, _, t = experiment()
    with pytest.warns(UserWarning, match="the same for everybody"):
        model = SLearner(Ridge(), interactions=True).fit(X, np.ones(len(X)), t)
    file = saved(model, tmp_path)
    width, state = 5000, file.manifest["model"]["state"]
    state["schema"].update(names=[f"x{j}" for j in range(width)], levels=[None] * width)
    state["arms"] = list(range(1, 255))
    encoder = state["fitted"]["encoder"]
    arrays = [one["$array"] for name, one in encoder.items() if isinstance(one, dict) and name != "missing"]
    assert len(arrays) == 4
    members = {**file.members, **{name: npy(np.ones(width)) for name in arrays}}
    refused(File(file.manifest, members), tmp_path, "more than a table can have")


@pytest.mark.parametrize("one", ["auc", "pvalue"])
def test_half_of_what_was_seen_of_the_propensity(tmp_path, one):
    X, y, t = experiment()
    file = saved(DRLearner(Ridge(), cv=2, random_state=0).fit(X, y, t), tmp_path)
    choice = file.manifest["model"]["state"]["fitted"]["choice"]
    assert isinstance(choice[one], float)
    choice[one] = None
    refused(file, tmp_path, "said about the propensity")


@pytest.mark.parametrize("place", [("control",), ("arms", 0)])
def test_labels_that_are_not_equal_to_themselves(sound, tmp_path, place):
    manifest = copy.deepcopy(sound["UpliftTree"].manifest)
    put(manifest["model"]["state"], place, {"$float": "nan"})
    refused(File(manifest, sound["UpliftTree"].members), tmp_path, "of a kind that cannot be one")


def test_levels_that_are_not_equal_to_themselves(sound, tmp_path):
    manifest = copy.deepcopy(sound["pruned tree"].manifest)
    levels = manifest["model"]["state"]["schema"]["levels"]
    next(level for level in levels if level)[0] = {"$float": "nan"}
    refused(File(manifest, sound["pruned tree"].members), tmp_path, "column schema is not well formed")


# --------------------------------------------------------------------------------------------- estimators of other libraries


@pytest.fixture
def foreign(tmp_path):
    """The refusal of a file after a change to the skops file inside it: (schema, members) are changed in place."""
    X, y, t = experiment()

    def run(change, message, model=None):
        file = saved((model or TreatedOnly(Ridge())).fit(X, y, t), tmp_path)
        # The first is the parameter, the last the fitted one.
        name = [name for name in file.members if name.startswith("foreign-")][-1]
        archive = read_zip(file.members[name])
        schema = json.loads(archive.pop("schema.json"))
        change(schema, archive)
        members = [("schema.json", json.dumps(schema)), *archive.items()]
        refused(File(file.manifest, {**file.members, name: zipped(members)}), tmp_path, message)

    return run


def read_zip(content):
    import io
    import zipfile

    archive = zipfile.ZipFile(io.BytesIO(content))
    return {name: archive.read(name) for name in archive.namelist()}


def attribute(schema, name):
    return schema["content"]["content"][name]


def test_an_array_that_claims_more_than_it_holds(foreign):
    def change(schema, members):
        name = attribute(schema, "coef_")["file"]
        members[name] = members[name].replace(b"'shape': (3,), ", b"'shape': (3000000000,), ")

    foreign(change, r"claims shape \(3000000000,\)")


def test_an_array_of_nothing_that_claims_everything(foreign):
    def change(schema, members):
        members[attribute(schema, "coef_")["file"]] = npy(np.zeros((0, 2**40)))

    foreign(change, "claims shape")


@pytest.mark.filterwarnings("ignore:TreatedOnly predicts the same for everybody")
@pytest.mark.parametrize(
    ("base", "name"),
    [
        (DummyRegressor(), "n_outputs_"),
        (DummyClassifier(), "n_outputs_"),
        (DummyClassifier(), "n_classes_"),
        (DummyClassifier(strategy="uniform"), "n_classes_"),
    ],
)
def test_columns_that_a_dummy_would_make(foreign, base, name):
    """A number in a small file may not be a number of columns."""

    def change(schema, members):
        attribute(schema, name).update(
            __class__="str", __module__="builtins", __loader__="JsonNode", content=str(10**9)
        )

    foreign(change, f"is not sound .*{name}", TreatedOnly(base))


def test_one_array_for_many_values(foreign):
    def change(schema, members):
        coef = attribute(schema, "coef_")
        schema["content"]["content"].update({f"x{j}_": {**coef, "__id__": j} for j in range(1000)})

    foreign(change, "is used by several values")


def test_values_that_contain_each_other_twice_over(foreign):
    """Forty lists, each twice in the next: skops would look at 2 to the 40 of them."""

    def change(schema, members):
        inner = {"__class__": "int", "__module__": "builtins", "__loader__": "JsonNode", "content": "1", "__id__": 1}
        for level in range(2, 42):
            inner = {
                "__class__": "list",
                "__module__": "builtins",
                "__loader__": "ListNode",
                "content": [inner, {"__id__": level - 1}],
                "__id__": level,
            }
        schema["content"]["content"]["laughs_"] = inner

    foreign(change, "contain each other many times over")


@pytest.mark.parametrize(
    "value", [np.zeros(2), np.zeros((3, 3)), np.full(3, np.nan), np.zeros(0), np.zeros(3, "U3")], ids=str
)
def test_an_estimator_that_cannot_predict_for_zeros(foreign, value):
    def change(schema, members):
        members[attribute(schema, "coef_")["file"]] = npy(value)

    foreign(change, "does not hold a sound model")


def test_probabilities_that_are_none(foreign):
    def change(schema, members):
        members[attribute(schema, "intercept_")["file"]] = npy(np.array([np.nan]))

    foreign(change, "does not predict a finite number", ClassTransformation(LogisticRegression()))


def test_propensities_of_too_many_arms(tmp_path):
    X, y, t = experiment()
    file = saved(XLearner(Ridge(), propensity=LogisticRegression()).fit(X, y, t), tmp_path)
    state = file.manifest["model"]["state"]
    name = state["fitted"]["propensity"]["foreign"]["$foreign"]
    archive = read_zip(file.members[name])
    schema = json.loads(archive["schema.json"])
    archive[attribute(schema, "coef_")["file"]] = npy(np.zeros((3, 3)))
    archive[attribute(schema, "intercept_")["file"]] = npy(np.zeros(3))
    members = {**file.members, name: zipped(list(archive.items()))}
    refused(File(file.manifest, members), tmp_path, "LogisticRegression inside does not predict")


def test_threads_of_an_estimator_inside_are_the_readers(tmp_path):
    X, y, t = experiment()
    TLearner(LogisticRegression(verbose=0)).fit(X, y, t).save(tmp_path / "model")
    file = read((tmp_path / "model").read_bytes())
    members = dict(file.members)
    for name in [name for name in members if name.startswith("foreign-")]:
        archive = read_zip(members[name])
        schema = json.loads(archive.pop("schema.json"))
        attribute(schema, "n_jobs")["content"] = "100000"
        attribute(schema, "verbose")["content"] = "7"
        members[name] = zipped([("schema.json", json.dumps(schema)), *archive.items()])
    (tmp_path / "model").write_bytes(File(file.manifest, members).pack())
    for n_jobs in (None, 2):
        model = up.load(tmp_path / "model", n_jobs=n_jobs)
        inside = [model.estimator, *(member.model for member in model._members)]
        assert {(one.n_jobs, one.verbose) for one in inside} == {(n_jobs, 0)}


def test_a_pipeline_does_not_read_pickles_where_the_file_says(tmp_path):
    """A refit of the loaded model would execute what lies there."""
    X, y, t = experiment()
    model = TreatedOnly(make_pipeline(StandardScaler(), Ridge(), memory=str(tmp_path / "pickles"))).fit(X, y, t)
    model.save(tmp_path / "model")
    again = up.load(tmp_path / "model")
    assert model.estimator.memory is not None
    assert again.estimator.memory is None
    assert again._members[0].model.memory is None
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_nobody_writes_into_the_table(tmp_path):
    """Scalers that spare a copy would scale rows of whoever asks, once for every model inside."""
    X, y, t = experiment()
    kept, make = X.copy(), lambda copy: TLearner(make_pipeline(StandardScaler(copy=copy), Ridge(copy_X=copy)))
    expected = make(True).fit(X, y, t).predict(X)
    model = make(False).fit(X, y, t)
    model.save(tmp_path / "model")
    for one in (model, up.load(tmp_path / "model")):
        np.testing.assert_array_equal(one.predict(X), expected)
    np.testing.assert_array_equal(X, kept)
    pipeline = make_pipeline(StandardScaler(copy=False), UpliftTree(random_state=0)).fit(X.copy(), up.pack(y, t))
    up.save(pipeline, tmp_path / "pipeline")
    up.load(tmp_path / "pipeline").predict(X)
    np.testing.assert_array_equal(X, kept)


# --------------------------------------------------------------------------------------------- answers that are not finite


def test_what_is_not_finite_is_refused_wherever_it_is_asked(sound, tmp_path):
    """Numbers that are finite and add up to infinity: no method hides it."""
    file = sound["UpliftBagging"]
    value = array_at(file, "value")
    huge = np.where(np.arange(2) == 1, 1.7e308, -1.7e308) * np.ones_like(load_npy(file.members[value]))
    (tmp_path / "model").write_bytes(File(file.manifest, {**file.members, value: npy(huge)}).pack())
    model = up.load(tmp_path / "model")
    X = rows_for(model)
    with np.errstate(over="ignore"):
        for ask in (model.predict, lambda X: next(model.staged_predict(X))):
            with pytest.raises(ValueError, match="no finite prediction"):
                ask(X)
        t = np.arange(ROWS) % 2
        with pytest.raises(ValueError, match="no finite prediction"):
            model.score(X, t, np.array(["control", "a"], dtype=object)[t // 1])


def test_every_sound_file_is_right(sound, tmp_path):
    for name, file in sound.items():
        assert judge(file.pack(), tmp_path / "model") == ("right", ""), name
