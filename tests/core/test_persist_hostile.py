"""Damaged and hostile files end in a clean error, or in the same model: never in a crash, a hang or an execution."""

from __future__ import annotations

import io
import itertools
import json
import os
import random
import struct
import zipfile
from hashlib import sha256

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import upturn as up
from saved import NUMBERS, SIDE, Y, fingerprint, native, zipped
from upturn import ModelFileError, persist
from upturn.meta import ClassTransformation

# --------------------------------------------------------------------------------------------- random damage


def corruptions(good, count):
    """Byte flips, truncations, holes, insertions, and files whose members changed places."""
    draw = random.Random(0)
    archive = zipfile.ZipFile(io.BytesIO(good))
    members = [(name, archive.read(name)) for name in archive.namelist()]
    for turn in range(count):
        kind, bad = turn % 5, bytearray(good)
        at = draw.randrange(len(bad))
        if kind < 2:
            for _ in range(draw.choice([1, 1, 2, 8])):
                bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
        elif kind == 2:
            del bad[at:]
        elif kind == 3:
            end = at + draw.randrange(1, 200)
            bad[at:end] = draw.choice([b"", bytes(end - at), bytes(draw.randbytes(end - at)), bad[at:end] * 2])
        else:
            names, contents = [name for name, _ in members], [content for _, content in members]
            i, j = draw.sample(range(len(names)), 2)
            side = draw.choice([names, contents])
            side[i], side[j] = side[j], side[i]
            shuffled = list(zip(names, contents, strict=True))
            draw.shuffle(shuffled)
            bad = zipped(shuffled[: draw.choice([len(shuffled)] * 3 + [len(shuffled) - 1])])
        yield bytes(bad)


def test_ten_thousand_corruptions(tmp_path):
    """Each is a ModelFileError or the same model: never another exception, a hang, or another model."""
    path, expected = tmp_path / "model", fingerprint(native())
    native().save(path)
    refused = 0
    for bad in corruptions(path.read_bytes(), 10_000):
        path.write_bytes(bad)
        try:
            model = up.load(path)
        except ModelFileError:
            refused += 1
        else:
            assert fingerprint(model) == expected
    assert 9_000 < refused < 10_000


def test_corruptions_of_a_foreign_model(tmp_path):
    path = tmp_path / "model"
    model = ClassTransformation(LogisticRegression()).fit(NUMBERS, Y, SIDE)
    model.save(path)
    expected, good = model.predict(NUMBERS), path.read_bytes()
    for bad in corruptions(good, 500):
        path.write_bytes(bad)
        try:
            again = up.load(path)
        except ModelFileError:
            continue
        assert np.array_equal(again.predict(NUMBERS), expected)


# --------------------------------------------------------------------------------------------- hostile files


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The members of a sound file: the manifest as JSON, and the rest."""
    path = tmp_path_factory.mktemp("good") / "model"
    native().save(path)
    archive = zipfile.ZipFile(path)
    members = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(members.pop("manifest.json")), members


@pytest.fixture
def attack(tmp_path, good):
    """Load a sound file after a change to its manifest or its members, with checksums put right again."""

    def run(change=lambda manifest, members: None, *, checksums=True, **options):
        manifest, members = json.loads(json.dumps(good[0])), dict(good[1])
        change(manifest, members)
        if checksums:
            manifest["members"] = {name: sha256(content).hexdigest() for name, content in members.items()}
        path = tmp_path / "model"
        path.write_bytes(zipped([("manifest.json", json.dumps(manifest)), *members.items()], **options))
        return up.load(path)

    return run


def test_the_attack_itself_does_no_harm(attack):
    assert fingerprint(attack()) == fingerprint(native())


def npy(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def header(text, data=b"", version=b"\x01\x00"):
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text.encode() + data


EVIL_NAMES = [
    "../evil",
    "/etc/evil",
    "..\\evil",
    "C:\\evil",
    "array-00000.npy/../../evil",
    "array-1.npy",
    "a\x00b",
    "manifest.json/",
    "x" * 60_000,
]


@pytest.mark.parametrize("name", EVIL_NAMES, ids=range(len(EVIL_NAMES)))
def test_names_that_do_not_belong(attack, tmp_path, name):
    with pytest.raises(ModelFileError, match="unexpected member"):
        attack(lambda manifest, members: members.update({name: b"evil"}))
    assert os.listdir(tmp_path) == ["model"]


def test_a_member_twice(tmp_path, good):
    members = [("manifest.json", json.dumps(good[0])), *good[1].items()]
    for extra in (members[0], members[1]):
        with pytest.warns(UserWarning, match="Duplicate name"):
            (tmp_path / "model").write_bytes(zipped([*members, extra]))
        with pytest.raises(ModelFileError, match="a member twice"):
            up.load(tmp_path / "model")


def test_too_many_members(attack):
    with pytest.raises(ModelFileError, match="too many members"):
        attack(lambda manifest, members: members.update({f"array-{j:05d}.npy": b"" for j in range(20_001)}))


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_compressed_bomb(attack, method):
    def bomb(manifest, members):
        members["array-00000.npy"] = bytes(2**24)

    with pytest.raises(ModelFileError, match="is compressed or encrypted"):
        attack(bomb, compression=method)


def test_huge_declared_sizes(tmp_path, good):
    data = bytearray(zipped([("manifest.json", json.dumps(good[0])), *good[1].items()]))
    central = data.rindex(b"PK\x01\x02")
    for compressed, size, message in [
        (2**31, 2**31, "claims 2,147,483,648 bytes in a file of"),
        (10, 2**31, "is compressed"),
    ]:
        bad = bytearray(data)
        struct.pack_into("<II", bad, central + 20, compressed, size)
        (tmp_path / "model").write_bytes(bad)
        with pytest.raises(ModelFileError, match=message):
            up.load(tmp_path / "model")


def test_members_that_overlap(tmp_path, good):
    """Every member points at the first one's bytes, so that a small file claims to hold much."""
    big = [("manifest.json", json.dumps(good[0])), *((f"array-{j:05d}.npy", b"") for j in range(50))]
    data = bytearray(zipped(big))
    size, at = len(json.dumps(good[0])), data.index(b"PK\x01\x02")
    while at >= 0:
        struct.pack_into("<II", data, at + 20, size, size)
        struct.pack_into("<I", data, at + 42, 0)
        at = data.find(b"PK\x01\x02", at + 4)
    (tmp_path / "model").write_bytes(data)
    with pytest.raises(ModelFileError, match="the members claim more bytes than the file has"):
        up.load(tmp_path / "model")


def test_an_encrypted_member(tmp_path, good):
    data = bytearray(zipped([("manifest.json", json.dumps(good[0])), *good[1].items()]))
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "model").write_bytes(data)
    with pytest.raises(ModelFileError, match="is compressed or encrypted"):
        up.load(tmp_path / "model")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK",
        b"PK\x05\x06" + bytes(18),
        b"\x80\x04\x95evil",
        bytes(5000),
        b"PK\x03\x04" * 500,
        b"not a model\n" * 10,
    ],
    ids=["empty", "two bytes", "empty zip", "pickle", "zeros", "headers", "text"],
)
def test_files_that_are_no_models(tmp_path, content):
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(
        ModelFileError, match=r"model(:| is) (not an upturn model|not a model file, or it is damaged)"
    ) as error:
        up.load(tmp_path / "model")
    assert str(tmp_path / "model") in str(error.value)
    assert isinstance(error.value, ValueError)


def test_a_central_directory_before_the_start_of_the_file(tmp_path, good):
    data = bytearray(zipped([("manifest.json", json.dumps(good[0])), *good[1].items()]))
    end = data.rindex(b"PK\x05\x06")
    for offset, value in itertools.product((12, 16), (0, 1, len(data), 2**31, 2**32 - 1)):
        bad = bytearray(data)
        struct.pack_into("<I", bad, end + offset, value)
        (tmp_path / "model").write_bytes(bad)
        with pytest.raises(ModelFileError):
            up.load(tmp_path / "model")


def test_paths_that_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError):
        up.load(tmp_path / "nowhere")
    with pytest.raises(IsADirectoryError):
        up.load(tmp_path)
    with pytest.raises(TypeError):
        up.load(0)  # a file descriptor is no path: reading standard input would hang


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
def test_pipes_and_devices_are_no_files(tmp_path):
    """To open a pipe would wait for ever, and to save would put a file in its place."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/null"):
        with pytest.raises(ModelFileError, match="is a device or a pipe"):
            up.load(path)
    with pytest.raises(OSError, match="is a device or a pipe"):
        native().save(tmp_path / "pipe")
    assert os.listdir(tmp_path) == ["pipe"]


def test_links_that_lead_nowhere(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="leads back to itself"):
        native().save(tmp_path / "loop")
    with pytest.raises(OSError, match="symbolic links"):
        up.load(tmp_path / "loop")
    (tmp_path / "dangling").symlink_to("new")
    native().save(tmp_path / "dangling")
    assert sorted(os.listdir(tmp_path)) == ["dangling", "loop", "new"]
    assert fingerprint(up.load(tmp_path / "new")) == fingerprint(native())


def test_an_unknown_class(attack):
    for name in ("Evil", "os.system", "BaseEstimator", "", None, 3):
        with pytest.raises(
            ModelFileError, match=r"unknown class .*: this version of upturn knows .*ClassTransformation"
        ):
            attack(lambda manifest, members, name=name: manifest["model"].update({"$model": name}))
    with pytest.raises(ModelFileError, match="does not hold a sound model"):
        attack(lambda manifest, members: manifest["model"].update({"$model": ["ClassTransformation"]}))


def test_a_newer_format(attack):
    def newer(manifest, members):
        manifest.update(format=persist.FORMAT + 1, upturn="9.9.9")

    with pytest.raises(
        ModelFileError, match=rf"in format {persist.FORMAT + 1}, written by upturn 9\.9\.9, .*: upgrade upturn"
    ):
        attack(newer)


@pytest.mark.parametrize("value", [0, -1, None, "1", 1.0, [], {}])
def test_a_strange_format(attack, value):
    with pytest.raises(ModelFileError, match="format"):
        attack(lambda manifest, members: manifest.update(format=value))


@pytest.mark.parametrize(
    "text",
    [
        '{"a":' * 100_000,
        "[" * 100_000,
        "[" * 900 + "]" * 900,
        '{"format": 1, "members": {}, "model": ' + '{"$tuple":[' * 300 + "]}" * 300 + "}",
    ],
)
def test_deep_nesting(tmp_path, text):
    (tmp_path / "model").write_bytes(zipped([("manifest.json", text)]))
    with pytest.raises(ModelFileError):
        up.load(tmp_path / "model")


def test_deep_nesting_inside_a_model(tmp_path, good):
    text = json.dumps(good[0])
    deep = text.replace('"reweight": true', '"reweight": ' + '{"a":' * 5000 + "1" + "}" * 5000)
    assert deep != text
    (tmp_path / "model").write_bytes(zipped([("manifest.json", deep), *good[1].items()]))
    with pytest.raises(ModelFileError, match="RecursionError"):
        up.load(tmp_path / "model")


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_constants_that_are_not_json(tmp_path, good, text):
    manifest = json.dumps(good[0]).replace('"intercept": ', f'"intercept": {text}, "other": ')
    assert text in manifest
    (tmp_path / "model").write_bytes(zipped([("manifest.json", manifest), *good[1].items()]))
    with pytest.raises(ModelFileError, match=f"the manifest holds {text}, which is not JSON"):
        up.load(tmp_path / "model")


@pytest.mark.parametrize(
    "text", [b"", b"{", b"null", b"[]", b"3", b'"$model"', b"\xff\xfe", b"{}", b"1" * 5000, b'{"format": 1}']
)
def test_manifests_that_say_nothing(tmp_path, text):
    (tmp_path / "model").write_bytes(zipped([("manifest.json", text)]))
    with pytest.raises(ModelFileError):
        up.load(tmp_path / "model")


@pytest.mark.parametrize(
    "value",
    [
        "$model",
        ["$model"],
        None,
        3,
        {},
        {"$foreign": "x"},
        {"$tuple": []},
        {"$float": "1"},
        {"$array": "array-00000.npy"},
    ],
)
def test_a_manifest_without_a_model(attack, value):
    with pytest.raises(ModelFileError):
        attack(lambda manifest, members: manifest.update(model=value))


OBJECTS = npy(np.array([{"a": 1}], dtype=object))
ARRAY_TRICKS = {
    "object dtype": OBJECTS,
    "not npy": b"garbage",
    "empty": b"",
    "magic only": b"\x93NUMPY\x01\x00",
    "huge shape": header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }"),
    "overflowing shape": header("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296, 16), }"),
    "negative shape": header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }", bytes(8)),
    "five dimensions": header("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1), }", bytes(8)),
    "long number": header("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",), }"),
    "too many bytes": header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", bytes(16)),
    "too few bytes": header("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", bytes(8)),
    "fortran": header("{'descr': '<f8', 'fortran_order': True, 'shape': (1,), }", bytes(8)),
    "big-endian": header("{'descr': '>f8', 'fortran_order': False, 'shape': (1,), }", bytes(8)),
    "text": header("{'descr': '<U2', 'fortran_order': False, 'shape': (1,), }", bytes(8)),
    "dates": header("{'descr': '<M8', 'fortran_order': False, 'shape': (1,), }", bytes(8)),
    "pickle": header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", bytes(8)),
    "pointer": header("{'descr': '|V8', 'fortran_order': False, 'shape': (1,), }", bytes(8)),
    "structured": header("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }", bytes(8)),
    "code": header("__import__('os').system('true')"),
    "nested": header("(" * 3000),
    "unclosed": header("{'descr': '<f8', 'fortran_order': False, 'shape': (1L,), ", bytes(8)),
    "quotes": header("{'descr': '''<f8', 'fortran_order': False, 'shape': (1,), }", bytes(8)),
    "extra key": header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'x': 1, }", bytes(8)),
    "not latin": header("{'descr': '<f8', 'fortran_order': False, 'shape': (\u0661,), }", bytes(8)),
    "version 2": header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", bytes(8), b"\x02\x00"),
    "version 9": header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", bytes(8), b"\x09\x00"),
    "header length": b"\x93NUMPY\x01\x00\xff\xff{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }\n" + bytes(8),
    "truth values": header("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", b"\x01\x07"),
}


@pytest.mark.parametrize("content", ARRAY_TRICKS.values(), ids=ARRAY_TRICKS)
def test_array_tricks(attack, content):
    with pytest.raises(ModelFileError, match=r"array-00000\.npy"):
        attack(lambda manifest, members: members.update({"array-00000.npy": content}))


def test_arrays_are_used_once_and_all_of_them(attack):
    """One large array named many times would fill the memory of whoever opens the file."""

    def repeat(manifest, members):
        manifest["model"]["params"]["reweight"] = [{"$array": "array-00000.npy"}] * 1000

    with pytest.raises(ModelFileError, match=r"'array-00000\.npy' is not there, or is used twice"):
        attack(repeat)
    with pytest.raises(ModelFileError, match=r"1 member\(s\) belong to nothing"):
        attack(lambda manifest, members: members.update({"array-00099.npy": npy(np.zeros(3))}))
    with pytest.raises(ModelFileError, match="is not there, or is used twice"):
        attack(lambda manifest, members: members.pop("array-00004.npy"))


def fitted(manifest):
    return manifest["model"]["state"]["fitted"]


def replace_array(*path, by):
    """Change an array the manifest points to; the checksum will be right."""

    def change(manifest, members):
        node = fitted(manifest)
        for key in path:
            node = node[key]
        name = node["$array"]
        old = np.load(io.BytesIO(members[name]))
        members[name] = npy(np.asarray(by(old)))

    return change


def put(array, value):
    array = array.copy()
    array.flat[0] = value
    return array


BAD_STATE = {
    "short": (replace_array("encoder", "fill", by=lambda a: a[:-1]), "arrays do not fit the columns"),
    "matrix": (replace_array("encoder", "mean", by=lambda a: a[:, None]), "arrays do not fit the columns"),
    "scalar": (replace_array("encoder", "scale", by=lambda a: a[0]), "arrays do not fit the columns"),
    "negative spread": (replace_array("encoder", "spread", by=lambda a: put(a, -1.0)), "a spread is negative"),
    "nan": (replace_array("encoder", "mean", by=lambda a: put(a, np.nan)), "numbers are not finite"),
    "infinite": (replace_array("encoder", "fill", by=lambda a: put(a, np.inf)), "numbers are not finite"),
    "float32": (replace_array("encoder", "mean", by=lambda a: a.astype("f4")), "numbers are not finite"),
    "zero scale": (replace_array("encoder", "scale", by=lambda a: put(a, 0.0)), "divides by zero"),
    "infinite coefficient": (replace_array("coef", by=lambda a: put(a, np.inf)), "coefficients are not finite"),
    "nan coefficient": (replace_array("coef", by=lambda a: put(a, np.nan)), "coefficients are not finite"),
    "too many coefficients": (
        replace_array("coef", by=lambda a: np.append(a, 1.0)),
        "coefficients do not fit the columns",
    ),
    "matrix of coefficients": (replace_array("coef", by=lambda a: a[None]), "coefficients do not fit the columns"),
    "integer coefficients": (replace_array("coef", by=lambda a: a.astype("i8")), "coefficients do not fit the columns"),
    "no intercept": (lambda m, _: fitted(m).pop("intercept"), "KeyError: 'intercept'"),
    "intercept of text": (lambda m, _: fitted(m).update(intercept="1"), "coefficients are not finite"),
    "intercept not finite": (lambda m, _: fitted(m).update(intercept={"$float": "nan"}), "coefficients are not finite"),
    "no encoder": (lambda m, _: fitted(m).update(encoder=None), "has lost its encoder"),
    "no state": (lambda m, _: m["model"]["state"].update(fitted=None), "not hold a sound model"),
    "three arms": (
        lambda m, _: m["model"]["state"].update(arms=["a", "b"]),
        "has one arm besides control, and the file names 2",
    ),
    "no arms": (lambda m, _: m["model"]["state"].update(arms=[]), "arm labels are not well formed"),
    "arm is control": (lambda m, _: m["model"]["state"].update(arms=["control"]), "arm labels are not well formed"),
    "arm is null": (
        lambda m, _: m["model"]["state"].update(arms=[None]),
        "an arm label is of a kind that cannot be one",
    ),
    "arm is a list": (lambda m, _: m["model"]["state"].update(arms=[[1]]), "not hold a sound model"),
    "arms is text": (lambda m, _: m["model"]["state"].update(arms="ab"), "arm labels are not well formed"),
    "too many arms": (lambda m, _: m["model"]["state"].update(arms=list(range(255))), "arm labels are not well formed"),
    "no schema": (lambda m, _: m["model"]["state"].update(schema=None), "not hold a sound model"),
    "fewer columns": (
        lambda m, _: m["model"]["state"]["schema"].update(names=["age"], levels=[None], gaps=[]),
        "columns with missing values are out of range",
    ),
    "fewer levels": (
        lambda m, _: m["model"]["state"]["schema"]["levels"].__setitem__(1, []),
        "arrays do not fit the columns",
    ),
    "unknown parameter": (lambda m, _: m["model"]["params"].update(evil=1), "does not take these parameters"),
    "params is a list": (lambda m, _: m["model"].update(params=[]), "does not take these parameters"),
    "no params": (lambda m, _: m["model"].pop("params"), "KeyError: 'params'"),
    "unknown value": (
        lambda m, _: m["model"]["params"].update(reweight={"$code": "1+1"}),
        r"unknown kind of value '\$code'",
    ),
    "two values": (
        lambda m, _: m["model"]["params"].update(reweight={"$float": "1", "x": 1}),
        r"unknown kind of value '\$float'",
    ),
    "float of text": (lambda m, _: m["model"]["params"].update(reweight={"$float": "one"}), "could not convert"),
    "estimator of text": (
        lambda m, _: fitted(m).update(estimator="evil"),
        "neither predict_proba nor decision_function",
    ),
}


@pytest.mark.parametrize(("change", "message"), BAD_STATE.values(), ids=BAD_STATE)
def test_bad_state_with_correct_checksums(attack, change, message):
    with pytest.raises(ModelFileError, match=message):
        attack(change)


def test_a_base_estimator_that_is_none(attack):
    def change(manifest, members):
        manifest["model"]["params"]["estimator"] = "evil"
        fitted(manifest)["estimator"] = None

    with pytest.raises(ModelFileError, match="neither predict_proba nor decision_function"):
        attack(change)


def test_damaged_and_exchanged_members_are_named(attack):
    def exchange(manifest, members):
        members["array-00000.npy"], members["array-00001.npy"] = members["array-00001.npy"], members["array-00000.npy"]

    with pytest.raises(ModelFileError, match=r"damaged or exchanged members: 'array-00000\.npy', 'array-00001\.npy'"):
        attack(exchange, checksums=False)
    for digests in (None, [], {}, {"array-00000.npy": None}):
        with pytest.raises(ModelFileError):
            attack(lambda manifest, members, digests=digests: manifest.update(members=digests), checksums=False)


def nodes(tree, path=()):
    yield path
    if isinstance(tree, dict | list):
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            yield from nodes(tree[key], (*path, key))


JUNK = [
    None,
    True,
    0,
    -1,
    2**80,
    1.5,
    "",
    "control",
    "x",
    [],
    {},
    [None],
    {"$tuple": []},
    {"$float": "nan"},
    {"$float": "-inf"},
    {"$model": "ClassTransformation"},
    {"$array": "array-00000.npy"},
    {"$model": "ClassTransformation", "params": {}, "state": None},
    {"$foreign": "array-00000.npy"},
    [[]] * 5,
]


def test_any_value_of_the_manifest_replaced_by_junk(attack, good):
    """Whatever stands in the manifest, checksums correct: a ModelFileError, or a model that can still predict."""
    loaded = 0
    for path, junk in itertools.product([path for path in nodes(good[0]) if path and path[0] != "members"], JUNK):

        def change(manifest, members, path=path, junk=junk):
            node = manifest
            for key in path[:-1]:
                node = node[key]
            node[path[-1]] = junk

        try:
            model = attack(change)
        except ModelFileError:
            continue
        loaded += 1
        if model.__sklearn_is_fitted__():
            assert model._predict(np.zeros((3, model.n_features_in_))).shape == (3, 1)
    assert loaded > 0


# --------------------------------------------------------------------------------------------- hostile foreign members


def skops_member(schema, compression=zipfile.ZIP_STORED, **members):
    text = {"protocol": 2, "_skops_version": "0.16.0", **schema}
    return zipped([("schema.json", json.dumps(text)), *members.items()], compression)


EVIL = {
    "function": {
        "__class__": "system",
        "__module__": "os",
        "__loader__": "FunctionNode",
        "content": "system",
        "__id__": 1,
    },
    "reduce": {
        "__class__": "system",
        "__module__": "os",
        "__loader__": "ReduceNode",
        "__reduce__": {
            "args": {
                "__class__": "str",
                "__module__": "builtins",
                "__loader__": "JsonNode",
                "content": '"touch evil"',
                "is_json": True,
                "__id__": 2,
            }
        },
        "content": {},
        "__id__": 1,
    },
    "type": {
        "__class__": "type",
        "__module__": "builtins",
        "__loader__": "TypeNode",
        "content": {"__class__": "Popen", "__module__": "subprocess"},
        "__id__": 1,
    },
    "object": {
        "__class__": "Popen",
        "__module__": "subprocess",
        "__loader__": "ObjectNode",
        "content": None,
        "__id__": 1,
    },
    "unknown loader": {"__class__": "x", "__module__": "y", "__loader__": "EvilNode", "content": {}, "__id__": 1},
    "nothing": {},
}


@pytest.fixture
def foreign(tmp_path):
    """Load a model whose foreign member is the given bytes, checksums correct."""
    path = tmp_path / "model"
    ClassTransformation(LogisticRegression()).fit(NUMBERS, Y, SIDE).save(path)
    archive = zipfile.ZipFile(path)
    members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop("manifest.json"))

    def run(content, **options):
        name = fitted(manifest)["estimator"]["$foreign"]
        members[name] = content
        manifest["members"] = {name: sha256(content).hexdigest() for name, content in members.items()}
        path.write_bytes(zipped([("manifest.json", json.dumps(manifest)), *members.items()]))
        return up.load(path, **options)

    return run


@pytest.mark.parametrize("schema", EVIL.values(), ids=EVIL)
def test_hostile_estimators_are_not_executed(foreign, tmp_path, monkeypatch, schema):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelFileError, match=r"not known to be harmless|cannot be rebuilt"):
        foreign(skops_member(schema))
    assert os.listdir(tmp_path) == ["model"]


def test_a_bomb_inside_an_estimator(foreign):
    bomb = skops_member({}, zipfile.ZIP_DEFLATED, **{"array.npy": bytes(2**24)})
    with pytest.raises(ModelFileError, match="is compressed or encrypted"):
        foreign(bomb)


@pytest.mark.parametrize("content", [b"", b"garbage", npy(np.zeros(3)), OBJECTS])
def test_an_estimator_that_is_none(foreign, content):
    with pytest.raises(ModelFileError, match="cannot be rebuilt"):
        foreign(content)


def test_an_estimator_of_the_wrong_kind(foreign):
    import skops.io

    with pytest.raises(ModelFileError, match="neither predict_proba nor decision_function"):
        foreign(skops.io.dumps({"a": 1}))
