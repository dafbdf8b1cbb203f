"""A file of another library's estimator in which something else goes by a harmless name."""

import hashlib
import importlib
import io
import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

import upturn
from saved import zipped
from upturn.meta import TreatedOnly
from upturn.persist._foreign import HARMLESS, IN_STEPS

skops = pytest.importorskip("skops")


def members(content):
    archive = zipfile.ZipFile(io.BytesIO(content))
    return {name: archive.read(name) for name in archive.namelist()}


def called(loader, name="ndarray", module="numpy", **more):
    return {"__class__": name, "__module__": module, "__loader__": loader, **more}


def text(value):
    return called("JsonNode", "str", "builtins", content=json.dumps(value), is_json=True)


def sparse(index):
    matrix = sp.csr_matrix(np.ones((1, 3)))
    matrix.indices = np.array([0, 1, index], dtype=np.int32)
    content = io.BytesIO()
    sp.save_npz(content, matrix, compressed=False)
    return content.getvalue()


def tuple_of(*values):
    return called("TupleNode", "tuple", "builtins", content=list(values))


CRAFTED = {
    "a sparse matrix with a wild index": ("coef_", called("SparseMatrixNode", type="scipy", file="x.npz"), sparse(10**9 + 7)),
    "a sparse matrix that reads its neighbour": ("coef_", called("SparseMatrixNode", type="scipy", file="x.npz"), sparse(3)),
    "an array of whatever is in memory": ("coef_", called("ConstructorFromReduceNode", content=tuple_of(text([3]))), b""),
    "an array of four gigabytes": ("n_iter_", called("ConstructorFromReduceNode", content=tuple_of(text([5 * 10**8]))), b""),
    "a function with arguments": (
        "random_state",
        called("PartialNode", "dict", "builtins",
               content={"func": called("TypeNode"), "args": tuple_of(text([5])), "kwds": text({}), "namespace": text(None)}),
        b"",
    ),
    "a method": ("random_state", called("MethodNode", "str", "builtins", content={"func": "join", "obj": text("a")}), b""),
    "a type in place of a number": ("coef_", called("TypeNode"), b""),
    "a type that stands for a method": ("predict", called("TypeNode"), b""),
    "an estimator as an operator": ("random_state", called("OperatorFuncNode", "Ridge", "sklearn.linear_model._ridge", attrs=text([])), b""),
}  # fmt: skip


def crafted_file(tmp_path, change):
    """A file whose foreign estimator was changed, the checksums put right."""
    rng = np.random.default_rng(0)
    X, treatment = rng.normal(size=(60, 3)), np.arange(60) % 2
    TreatedOnly(Ridge()).fit(X, rng.normal(size=60), treatment).save(tmp_path / "model.upturn")
    assert upturn.load(tmp_path / "model.upturn").predict(X).shape == (60,)
    outer = members((tmp_path / "model.upturn").read_bytes())
    place = [name for name in outer if name.startswith("foreign-")][-1]
    inner = members(outer[place])
    schema = json.loads(inner.pop("schema.json"))
    attributes = schema["content"]["content"]
    types, before = schema["content"]["key_types"]["content"], len(attributes)
    change(attributes, inner)
    types += [
        dict(types[0]) for _ in range(len(attributes) - before)
    ]  # skops reads no attribute without the type of its name
    outer[place] = zipped([("schema.json", json.dumps(schema)), *inner.items()])
    manifest = json.loads(outer.pop("manifest.json"))
    manifest["members"] = {name: hashlib.sha256(part).hexdigest() for name, part in outer.items()}
    (tmp_path / "crafted.upturn").write_bytes(
        zipped([("manifest.json", json.dumps(manifest).encode()), *outer.items()])
    )
    return tmp_path / "crafted.upturn"


@pytest.mark.parametrize("what", list(CRAFTED))
def test_nothing_else_goes_by_a_harmless_name(what, tmp_path):
    attribute, node, content = CRAFTED[what]

    def change(attributes, inner):
        attributes[attribute] = node
        if content:
            inner["x.npz"] = content

    with pytest.raises(upturn.ModelFileError, match="is rebuilt as"):
        upturn.load(crafted_file(tmp_path, change))


@pytest.mark.parametrize("name", ["predict", "get_params", "__sklearn_tags__", "_validate_params"])
def test_no_value_stands_for_a_method(name, tmp_path):
    path = crafted_file(tmp_path, lambda attributes, inner: attributes.update({name: text(3)}))
    with pytest.raises(upturn.ModelFileError, match=r"is not its own|cannot be rebuilt"):
        upturn.load(path)


@pytest.mark.parametrize(
    ("parameter", "value"), [("alpha", -1.0), ("solver", "magic"), ("max_iter", 2.5), ("fit_intercept", "no")]
)
def test_parameters_of_others_are_such_as_they_take(parameter, value, tmp_path):
    path = crafted_file(tmp_path, lambda attributes, inner: attributes.update({parameter: text(value)}))
    with pytest.raises(upturn.ModelFileError, match=f"The '{parameter}' parameter of Ridge must be"):
        upturn.load(path)


def test_an_array_that_was_named_where_nobody_reads_is_looked_at(tmp_path):
    """Its header promises 24 gigabytes; its first mention is in a place that skops passes over."""

    def change(attributes, inner):
        coef = attributes["coef_"]
        attributes["coef_"] = {"junk": {"file": coef["file"], "__id__": coef["__id__"]}, **coef}
        inner[coef["file"]] = inner[coef["file"]].replace(b"'shape': (3,), ", b"'shape': (3000000000,), ")

    with pytest.raises(upturn.ModelFileError, match="claims shape"):
        upturn.load(crafted_file(tmp_path, change))


LEARNERS = [
    name
    for name in sorted(HARMLESS)
    if name.startswith("sklearn.") and not any(part in name for part in ("preprocessing", "impute", "pipeline"))
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LEARNERS)
def test_every_model_on_the_list_needs_no_trust(name, tmp_path):
    module, _, kind = name.rpartition(".")
    rng = np.random.default_rng(0)
    X, treatment = rng.normal(size=(90, 3)), np.arange(90) % 2
    base = getattr(importlib.import_module(module), kind)()
    model = TreatedOnly(base).fit(X, X[:, 0] + rng.normal(size=90) > 0, treatment)
    model.save(tmp_path / "model.upturn")
    np.testing.assert_array_equal(upturn.load(tmp_path / "model.upturn").predict(X), model.predict(X))


def test_the_list_that_people_read_is_the_list():
    text = (Path(__file__).parents[2] / "SECURITY.md").read_text()
    section = text.partition("## Estimators of other libraries")[2].partition("They are looked at")[0]
    named = {name.rpartition(".")[2] for name in re.findall(r"`([\w.]+)`", section)} - {"HARMLESS", "linear_model"}
    assert named == {name.rpartition(".")[2] for name in HARMLESS}
    steps = text.partition("Besides the types above")[2].partition("their state is checked")[0]
    kinds = {name.rpartition(".")[2] for name in IN_STEPS} - {"_RemainderColsList"}
    assert kinds <= set(re.findall(r"`(\w+)`", steps))
