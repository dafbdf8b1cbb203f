"""Edits of a saved model: its arrays, the values of its manifest, its parameters, parts of other models, foreign members.

``edited(files, number, seed)`` is a pure function, so that a case can be looked at again by its number.
"""

from __future__ import annotations

import copy
import io
import json
import zipfile

import numpy as np
import scipy.sparse as sp

from hostile.corpus import File
from saved import zipped

MEMBERS = ("$array", "$foreign", "$step")  # what points to a member of the file
DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]
WHOLE = [-(2**63), -(2**62), -(2**32), -(2**31), -256, -2, -1, 0, 1, 2, 3, 127, 254, 255, 256, 2**24, 2**31 - 1, 2**31]
WHOLE += [2**32 - 1, 2**32, 2**61, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
REAL = [0.0, -0.0, 0.5, 1.0, -1.0, 1e-320, 5e-324, 1e-300, 1e300, -1e300, 1.7e308, -1.7e308, np.nan, np.inf, -np.inf]
VALUES = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3,
    7,
    254,
    255,
    2**31,
    2**63,
    2**80,
    -(2**80),
    10**400,
    1.5,
    -1.5,
    0.5,
    1e300,
    1e-320,
]
VALUES += [
    "",
    "x",
    "control",
    "a",
    "web",
    "shares",
    "logistic",
    "chance",
    "rbf",
    "poly",
    "linear",
    "precomputed",
    "cts",
    "kl",
]
VALUES += [
    "isotonic",
    "onehot",
    "effect",
    "code",
    "score",
    "vote",
    "balanced",
    "sqrt",
    "prefit",
    "\ud800",
    [],
    {},
    [None],
]
VALUES += [[0.5], [[1]], {"$tuple": []}, {"$float": "nan"}, {"$float": "inf"}, {"$float": "-inf"}, {"$float": "1e5000"}]
VALUES += [{"$model": "UpliftTree", "params": {}, "state": None}, {"$model": "TLearner", "params": {}, "state": None}]
VALUES += [{"x": 1}, list(range(300)), ["a", "b"], "x" * 10_000]


# --------------------------------------------------------------------------------------------- arrays


def load_npy(content):
    return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)


def npy(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def cast(value, dtype):
    """A value as near as the type has it."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return min(max(int(value), int(info.min)), int(info.max)) if np.isfinite(value) else info.max
    with np.errstate(all="ignore"):
        return np.asarray(float(value)).astype(dtype)[()]


def number_for(rng, array, sizes):
    """A number that hurts an array of this type: an extreme, a size of something, one beside what is there."""
    if array.dtype.kind == "f":
        pool = [*REAL, np.finfo(array.dtype).max, np.finfo(array.dtype).min, np.finfo(array.dtype).tiny]
    elif array.dtype.kind == "b":
        return bool(rng.integers(2))
    else:
        pool = [*WHOLE, *sizes, *(s - 1 for s in sizes), *(s + 1 for s in sizes)]
        pool += [np.iinfo(array.dtype).max - s for s in sizes[:3]]
    return cast(pool[rng.integers(len(pool))], array.dtype)


def some(rng, array):
    """Positions of one entry, a few, or all."""
    count = [1, 1, 2, 4, array.size][rng.integers(5)]
    return rng.integers(0, array.size, min(count, array.size))


def edit_array(rng, array, sizes):
    """One edit of an array, and its name."""
    kinds = [
        "numbers",
        "numbers",
        "numbers",
        "off by one",
        "negated",
        "shuffled",
        "zeroed",
        "truncated",
        "extended",
        "shape",
    ]
    kinds += ["dtype", "one number", "sorted", "reversed", "copied", "wrapped", "noise", "bits"]
    kind = kinds[rng.integers(len(kinds))]
    out = array.copy()
    flat = out.reshape(-1)
    if kind in ("shape", "dtype", "extended", "truncated") or not array.size:
        return _reshaped(rng, kind, array, sizes)
    at = some(rng, flat)
    with np.errstate(all="ignore"):
        if kind == "numbers":
            for i in at:
                flat[i] = number_for(rng, array, sizes)
        elif kind == "off by one":
            flat[at] = (
                ~flat[at] if array.dtype.kind == "b" else flat[at] + np.asarray(rng.choice([-1, 1])).astype(array.dtype)
            )
        elif kind == "negated":
            flat[at] = ~flat[at] if array.dtype.kind == "b" else np.negative(flat[at])
        elif kind == "shuffled":
            rng.shuffle(flat)
        elif kind == "zeroed":
            flat[at] = 0
        elif kind == "one number":
            flat[:] = number_for(rng, array, sizes)
        elif kind == "sorted":
            flat.sort()
        elif kind == "reversed":
            flat[:] = flat[::-1].copy()
        elif kind == "copied":
            flat[at] = flat[rng.integers(flat.size)]
        elif kind == "wrapped" and array.dtype.kind in "iu":  # steps that add up to what was there
            step = cast(2 ** (8 * array.dtype.itemsize - 2), array.dtype)
            flat[at] = flat[at] + np.asarray(step).astype(array.dtype) * np.arange(1, len(at) + 1).astype(array.dtype)
        elif kind == "bits":
            raw = flat.view(np.uint8)
            raw[rng.integers(raw.size)] ^= np.uint8(1 << rng.integers(8))
            if array.dtype.kind == "b":
                raw &= 1
        else:
            flat[:] = _noise(rng, flat)
    return out, kind


def _noise(rng, flat):
    if flat.dtype.kind == "f":
        return (rng.normal(size=flat.size) * 10.0 ** rng.integers(-5, 6)).astype(flat.dtype)
    if flat.dtype.kind == "b":
        return rng.random(flat.size) < 0.5
    low, high = int(flat.min()), int(flat.max())
    return np.array([low + int(rng.random() * (high - low + 1)) for _ in range(flat.size)], dtype=flat.dtype)


def _reshaped(rng, kind, array, sizes):
    if kind == "dtype":
        with np.errstate(all="ignore"):
            wanted = DTYPES[rng.integers(len(DTYPES))]
            return array.astype(wanted) if rng.random() < 0.7 else np.zeros(array.shape, wanted), "dtype"
    if kind == "truncated" and array.ndim and array.size:
        axis = rng.integers(array.ndim)
        keep = [0, 1, array.shape[axis] - 1, array.shape[axis] // 2][rng.integers(4)]
        return np.take(array, np.arange(min(keep, array.shape[axis])), axis), "truncated"
    if kind == "extended" and array.ndim and array.size:
        axis = rng.integers(array.ndim)
        more = [1, 1, 2, array.shape[axis], 1000][rng.integers(5)]
        return np.concatenate(
            [array, *[np.take(array, [-1], axis)] * min(more, 20_000 // array.size + 1)], axis
        ), "extended"
    shapes = [
        (array.size,),
        (1, array.size),
        (array.size, 1),
        (1, 1, array.size),
        (0,),
        (0, 3),
        (3, 0),
        (0, 2**40),
        (2**40, 0),
        (3 * 10**8, 0),
        (),
        array.shape[::-1],
    ]
    shape = shapes[rng.integers(len(shapes))]
    if int(np.prod(shape)) == array.size:
        return array.reshape(shape), "shape"
    return np.full(shape, number_for(rng, array, sizes), array.dtype), "shape"


def edit_rows(rng, arrays):
    """Take other rows of all arrays that have the same number of them, so that they still fit together."""
    sizes = sorted({array.shape[0] for array in arrays.values() if array.ndim and array.size})
    n = sizes[rng.integers(len(sizes))]
    every = np.arange(n)
    i = int(rng.integers(n))
    ways = [every[:-1], every[1:], every[:1], rng.permutation(n), np.delete(every, i), np.append(every, i), every[::-1]]
    ways += [np.repeat(every, 2), np.tile(every, 3), rng.integers(0, n, n), np.full(n, i)]
    rows = ways[rng.integers(len(ways))]
    # Usually every array of that many rows, sometimes only some of them.
    every_array = rng.random() < 0.7
    return {
        name: array[rows]
        for name, array in arrays.items()
        if array.ndim and array.shape[0] == n and (every_array or rng.random() < 0.5)
    }


# --------------------------------------------------------------------------------------------- the manifest


def places(node, path=()):
    """Paths of everything in a tree of JSON values."""
    yield path
    if isinstance(node, dict | list):
        for key in node if isinstance(node, dict) else range(len(node)):
            yield from places(node[key], (*path, key))


def at(node, path):
    for key in path:
        node = node[key]
    return node


def put(manifest, path, value):
    at(manifest, path[:-1])[path[-1]] = value


def edit_value(rng, value, sizes):
    """A value of the manifest, made a little or entirely wrong."""
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.5:
        pool = (
            [value + 1, value - 1, -value, value * 2, *sizes, *WHOLE]
            if isinstance(value, int)
            else [*REAL, -value, value * 2]
        )
        made = pool[rng.integers(len(pool))]
        return {"$float": str(made)} if isinstance(made, float) and not np.isfinite(made) else made
    if isinstance(value, list) and value and rng.random() < 0.7:
        i = int(rng.integers(len(value)))
        return [value[:-1], value[1:], [*value, value[i]], value[::-1], [], [value[i]] * len(value), value * 3][
            rng.integers(7)
        ]
    if isinstance(value, dict) and value and rng.random() < 0.4:
        key = list(value)[rng.integers(len(value))]
        return {name: item for name, item in value.items() if name != key}
    return copy.deepcopy(VALUES[rng.integers(len(VALUES))])


def edit_manifest(rng, manifest, members, sizes):
    """Put something else in one place; arrays nobody points to any more leave the file, so that the edit is what is judged."""
    model = manifest["model"]
    inside = [path for path in places(manifest) if path and path[0] == "model" and path != ("model",)]
    params = [path for path in inside if "params" in path and path[-1] != "params"]
    pool = params if params and rng.random() < 0.3 else inside
    path = pool[rng.integers(len(pool))]
    if rng.random() < 0.15:  # two values change places
        other = inside[rng.integers(len(inside))]
        if path[: len(other)] == other or other[: len(path)] == path:
            return "nothing"
        one, two = at(manifest, path), at(manifest, other)
        put(manifest, path, two)
        put(manifest, other, one)
        return "swapped values"
    put(manifest, path, edit_value(rng, at(manifest, path), sizes))
    _drop_unused(model, members)
    return "parameter" if pool is params else "value"


def _names(node):
    return {at(node, path) for path in places(node) if path and path[-1] in MEMBERS and isinstance(at(node, path), str)}


def _drop_unused(model, members):
    used = _names(model)
    for name in set(members) - used:
        del members[name]


def graft(rng, manifest, members, other):
    """Put a part of another model in place of a like part: same last name, arrays and all."""
    here = [path for path in places(manifest["model"]) if path and isinstance(path[-1], str)]
    there = {}
    for path in places(other.manifest["model"]):
        if path:
            there.setdefault(path[-1], []).append(path)
    path = here[rng.integers(len(here))]
    sources = there.get(path[-1])
    if not sources:
        return "nothing"
    part = copy.deepcopy(at(other.manifest["model"], sources[rng.integers(len(sources))]))
    put(manifest["model"], path, part)
    _adopt(part, manifest["model"], path, members, other.members)
    _drop_unused(manifest["model"], members)
    return "part of another model"


def _adopt(part, model, path, members, others):
    """Bring the members a part points to, under names that are free."""
    holder = at(model, path[:-1])
    wrapped = {"": part}
    for place in list(places(wrapped)):
        if place and place[-1] in MEMBERS and isinstance(at(wrapped, place), str):
            old = at(wrapped, place)
            kind, end = place[-1][1:], "npy" if place[-1] == "$array" else "skops"
            number = next(
                n
                for n in range(99_999)
                if f"{kind}-{n:05d}.{end}" not in members and f"{kind}-{n:05d}.{end}" not in others
            )
            name = f"{kind}-{number:05d}.{end}"
            if old in others:
                members[name] = others[old]
            put(wrapped, place, name)
    holder[path[-1]] = wrapped[""]


# --------------------------------------------------------------------------------------------- foreign members


def _node(loader, name="ndarray", module="numpy", **more):
    return {"__class__": name, "__module__": module, "__loader__": loader, **more}


def _text(value):
    return _node("JsonNode", "str", "builtins", content=json.dumps(value), is_json=True)


def _tuple(*values):
    return _node("TupleNode", "tuple", "builtins", content=list(values))


def _stored(file, **more):
    return _node("NdArrayNode", type="numpy", file=file, **more)


# Every way in which skops rebuilds something, each complete, under names that need no trust. ``x.npy`` and ``x.npz`` are
# files of the attacker's own.
_TYPE = _node("TypeNode")
CRAFTED = {
    "BytearrayNode": _node("BytearrayNode", "str", "builtins", file="x.npz"),
    "BytesNode": _node("BytesNode", "str", "builtins", file="x.npz"),
    "CachedNode": _node("CachedNode", "str", "builtins", __id__=1),
    "ConstructorFromReduceNode": _node("ConstructorFromReduceNode", content=_tuple(_text([3]))),
    "DTypeNode": _node("DTypeNode", "dtype", content=_stored("x.npy")),
    "DefaultDictNode": _node("DefaultDictNode", "dict", "builtins", content={"main": _text({}), "default_factory": _TYPE}),
    "DictNode": _node("DictNode", "dict", "builtins", content={"7": _text(1)}, key_types=_node("ListNode", "list", "builtins", content=[_TYPE])),
    "FunctionNode": _node("FunctionNode", content={"module_path": "numpy", "function": "load"}),
    "JsonNode": _text([[1.0, 2.0], [3.0]]),
    "ListNode": _node("ListNode", "list", "builtins", content=[_TYPE, _text(None)]),
    "LossNode": _node("LossNode", __reduce__={"args": _tuple(_text([3]))}, content=_text({})),
    "MaskedArrayNode": _node("MaskedArrayNode", content={"data": _stored("x.npy"), "mask": _stored("x.npy")}),
    "MethodNode": _node("MethodNode", "str", "builtins", content={"func": "join", "obj": _text("a")}),
    "NdArrayNode": _stored("x.npy", junk={"file": "x.npy", "__id__": 77}, __id__=77),
    "ObjectNode": _node("ObjectNode", "StandardScaler", "sklearn.preprocessing._data", content=_text({"transform": 1})),
    "OperatorFuncNode": _node("OperatorFuncNode", "Ridge", "sklearn.linear_model._ridge", attrs=_text([])),
    "PartialNode": _node("PartialNode", "dict", "builtins", content={"func": _TYPE, "args": _tuple(_text([5])), "kwds": _text({}), "namespace": _text(None)}),
    "QuantileForestNode": _node("QuantileForestNode", __reduce__={"args": _tuple(_text([3]))}, content=_text({})),
    "RandomGeneratorNode": _node("RandomGeneratorNode", content={"bit_generator": _text({"bit_generator": "PCG64"})}),
    "RandomStateNode": _node("RandomStateNode", content=_text([])),
    "SetNode": _node("SetNode", "list", "builtins", content=[_text(1)]),
    "SliceNode": _node("SliceNode", "slice", "builtins", content={"start": 0, "stop": 10**9, "step": 0}),
    "SparseMatrixNode": _node("SparseMatrixNode", type="scipy", file="x.npz"),
    "TreeNode": _node("TreeNode", __reduce__={"args": _tuple(_text(1), _stored("x.npy"), _text(1))}, content=_text({})),
    "TupleNode": _node("TupleNode", "tuple", "builtins", content=[_TYPE, _TYPE]),
    "TypeNode": _TYPE,
}  # fmt: skip
METHODS = ["predict", "transform", "fit", "predict_proba", "decision_function", "get_params", "set_params", "steps"]
METHODS += [
    "_validate_data",
    "__sklearn_tags__",
    "__class__",
    "__dict__",
    "_iter",
    "_transform",
    "_sklearn_output_config",
]


def edit_nodes(rng, schema, members):
    """Things under other names, rebuilt by other means, in other places: what only an attacker writes."""
    nodes = [path for path in places(schema) if isinstance(at(schema, path), dict) and "__loader__" in at(schema, path)]
    path = nodes[rng.integers(len(nodes))]
    other = copy.deepcopy(at(schema, nodes[rng.integers(len(nodes))]))
    attributes = [one for one in nodes if len(one) > 1 and one[-2] == "content"]
    kind = ["loader", "crafted", "crafted", "name", "shadow", "moved", "protocol"][rng.integers(7)]
    crafted = copy.deepcopy(CRAFTED[list(CRAFTED)[rng.integers(len(CRAFTED))]])
    if kind == "loader":
        put(schema, (*path, "__loader__"), list(CRAFTED)[rng.integers(len(CRAFTED))])
    elif kind == "name":
        put(schema, (*path, "__class__"), other["__class__"])
        put(schema, (*path, "__module__"), other["__module__"])
    elif kind == "protocol":
        schema["protocol"] = [-1, 0, 1, 2, 3, "2", None][rng.integers(7)]
    elif not attributes:
        return "nothing"
    elif kind == "shadow":
        place = attributes[rng.integers(len(attributes))]
        holder, types = at(schema, place[:-1]), at(schema, place[:-2]).get("key_types")
        if not types or not isinstance(holder, dict):
            return "nothing"
        types["content"].append(copy.deepcopy(types["content"][0]))  # without it, skops would not read what is added
        holder[METHODS[rng.integers(len(METHODS))]] = [crafted, other, copy.deepcopy(_TYPE)][rng.integers(3)]
    else:
        put(schema, attributes[rng.integers(len(attributes))], crafted if kind == "crafted" else other)
    files = [one for one in members if one.endswith(".npy")]
    members["x.npz"] = _bomb(rng)
    members["x.npy"] = [
        _promise(),
        npy(np.zeros(3)),
        members[files[0]] if files else b"",
        npy(np.zeros(0, "<U1000000")),
    ][rng.integers(4)]
    text = json.dumps(schema)
    for extra in ("x.npz", "x.npy"):
        if extra not in text:
            del members[extra]
    return kind


def _bomb(rng):
    """A sparse matrix with an index out of bounds, plain or packed."""
    matrix = sp.csr_matrix(np.ones((1, 3)))
    matrix.indices = np.array([0, 1, 10**9 + 7], dtype=np.int32)
    content = io.BytesIO()
    sp.save_npz(content, matrix, compressed=bool(rng.integers(2)))
    return content.getvalue()


def _promise():
    """An array of nothing that claims 24 gigabytes."""
    return npy(np.zeros(3)).replace(b"'shape': (3,), }         ", b"'shape': (3000000000,), }")


def edit_foreign(rng, content, sizes):
    """A skops file with an array, a value or a node of its schema edited."""
    archive = zipfile.ZipFile(io.BytesIO(content))
    members = {name: archive.read(name) for name in archive.namelist()}
    arrays = [name for name in members if name.endswith(".npy")]
    schema = json.loads(members["schema.json"])
    if rng.random() < 0.35:
        kind = edit_nodes(rng, schema, members)
        members["schema.json"] = json.dumps(schema).encode()
    elif arrays and rng.random() < 0.6:
        name = arrays[rng.integers(len(arrays))]
        if rng.random() < 0.1:  # a header that promises more than there is
            members[name] = members[name].replace(b"'shape': (", b"'shape': (99999999, ", 1)
            kind = "promised shape"
        else:
            made, kind = edit_array(rng, load_npy(members[name]), sizes)
            members[name] = npy(made)
    else:
        inside = [path for path in places(schema) if path and path[-1] not in ("protocol", "_skops_version")]
        path = inside[rng.integers(len(inside))]
        value = at(schema, path)
        if path[-1] == "content" and isinstance(value, str):  # JSON inside JSON
            texts = [
                "0",
                "-1",
                "1e308",
                "NaN",
                "null",
                '"x"',
                "[]",
                "1000000000",
                "100000",
                "true",
                "2",
                str(2**80),
                '"balanced"',
            ]
            put(schema, path, texts[rng.integers(len(texts))])
        else:
            put(schema, path, edit_value(rng, value, sizes))
        members["schema.json"] = json.dumps(schema).encode()
        kind = "schema"
    return zipped(list(members.items())), f"foreign {kind}"


# --------------------------------------------------------------------------------------------- all of them


def edited(files, number, seed=0):
    """The bytes of case ``number``, and (model, edits) that say what it is."""
    rng = np.random.default_rng([seed, number])
    names = list(files)
    name = names[number % len(names)]
    source = files[name]
    manifest, members = copy.deepcopy(source.manifest), dict(source.members)
    arrays = [one for one in members if one.endswith(".npy")]
    foreign = [one for one in members if one.endswith(".skops")]
    sizes = [load_npy(members[one]).shape[:1] for one in arrays]
    sizes = sorted({int(size[0]) for size in sizes if size}) or [1]
    done = []
    for _ in range([1, 1, 1, 2, 3][rng.integers(5)]):
        arrays = [one for one in arrays if one in members]
        foreign = [one for one in foreign if one in members]
        dice = rng.random()
        if foreign and dice < 0.35:
            one = foreign[rng.integers(len(foreign))]
            members[one], kind = edit_foreign(rng, members[one], sizes)
            foreign.remove(one)
        elif arrays and dice < 0.6:
            one = arrays[rng.integers(len(arrays))]
            made, kind = edit_array(rng, load_npy(members[one]), sizes)
            members[one] = npy(made)
        elif len(arrays) > 1 and dice < 0.66:
            i, j = rng.choice(len(arrays), 2, replace=False)
            members[arrays[i]], members[arrays[j]] = members[arrays[j]], members[arrays[i]]
            kind = "swapped arrays"
        elif arrays and dice < 0.72:
            made = edit_rows(rng, {one: load_npy(members[one]) for one in arrays})
            members.update({one: npy(array) for one, array in made.items()})
            kind = "rows"
        elif dice < 0.8:
            kind = graft(rng, manifest, members, files[names[rng.integers(len(names))]])
        else:
            kind = edit_manifest(rng, manifest, members, sizes)
        done.append(kind)
    return File(manifest, members).pack(), (name, " + ".join(done))
