"""A file of another library's estimator in which something else goes by a harmless name."""

import hashlib
import io
import json
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

import upturn
from saved import zipped
from upturn.meta import TreatedOnly

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
    "an estimator as an operator": ("random_state", called("OperatorFuncNode", "Ridge", "sklearn.linear_model._ridge", attrs=text([])), b""),
}  # fmt: skip


@pytest.mark.parametrize("what", list(CRAFTED))
def test_nothing_else_goes_by_a_harmless_name(what, tmp_path):
    rng = np.random.default_rng(0)
    X, treatment = rng.normal(size=(60, 3)), np.arange(60) % 2
    TreatedOnly(Ridge()).fit(X, rng.normal(size=60), treatment).save(tmp_path / "model.upturn")
    assert upturn.load(tmp_path / "model.upturn").predict(X).shape == (60,)
    outer = members((tmp_path / "model.upturn").read_bytes())
    place = [name for name in outer if name.startswith("foreign-")][-1]
    inner = members(outer[place])
    schema = json.loads(inner.pop("schema.json"))
    attribute, node, content = CRAFTED[what]
    schema["content"]["content"][attribute] = node
    if content:
        inner["x.npz"] = content
    outer[place] = zipped([("schema.json", json.dumps(schema)), *inner.items()])
    manifest = json.loads(outer.pop("manifest.json"))
    manifest["members"] = {name: hashlib.sha256(part).hexdigest() for name, part in outer.items()}
    (tmp_path / "crafted.upturn").write_bytes(
        zipped([("manifest.json", json.dumps(manifest).encode()), *outer.items()])
    )
    with pytest.raises(upturn.ModelFileError, match="is rebuilt as"):
        upturn.load(tmp_path / "crafted.upturn")
