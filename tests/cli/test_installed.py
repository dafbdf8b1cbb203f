"""The installed command in processes of its own: a million rows, how it starts, and how it ends."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from golden_lines import SOURCE, prepare, run

from upturn.cli._demo import STEPS, steps
from upturn.trees import UpliftTree

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE)}


def test_a_million_rows(tmp_path):
    """From file to list; a nightly job reads from a pipe."""
    rng = np.random.default_rng(0)
    n = 1_000_000
    x, arm = rng.normal(size=(n, 3)).astype(np.float32), rng.integers(0, 2, n)
    y = rng.random(n) < 0.2 + 0.1 * arm * (x[:, 0] > 0)
    table = pl.DataFrame({"person": np.arange(n), **{f"x{j}": x[:, j] for j in range(3)}, "arm": arm, "bought": y})
    table.write_parquet(tmp_path / "people.parquet")
    run("fit people.parquet --outcome bought --treatment arm --model tree --set max_depth=3 -o m.upturn", tmp_path)
    ran = run("score m.upturn people.parquet -o scores.parquet --json", tmp_path)
    assert json.loads(ran.stdout)["rows"] == n
    scores = pl.read_parquet(tmp_path / "scores.parquet")
    assert scores["person"].equals(table["person"])
    assert scores.filter(table["x0"] > 0.1)["uplift"].mean() == pytest.approx(0.1, abs=0.01)
    assert "score" not in (tmp_path / "upturn.toml").read_text()


def own_memory(line, folder):
    """The most memory that a command held and that is not a file's, in megabytes: pages of a mapped file come and go."""
    running = subprocess.Popen([sys.executable, "-m", "upturn", *line.split()], cwd=folder, env=ENVIRONMENT)
    most = 0
    while running.poll() is None:
        try:
            status = Path(f"/proc/{running.pid}/status").read_text()
            most = max(most, int(status.split("RssAnon:")[1].split()[0]))
        except (OSError, IndexError):
            continue
        time.sleep(0.002)
    assert running.returncode == 0
    return most / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_scoring_does_not_hold_the_table(tmp_path):
    """Three million rows of twelve columns are 288 MB; on their way at once are some twenty groups of rows, of 5 MB each."""
    rng = np.random.default_rng(0)
    million = pl.DataFrame({f"x{j}": rng.normal(size=1_000_000) for j in range(12)})
    few = million.head(50_000)
    few.write_parquet(tmp_path / "few.parquet")
    pl.concat([million] * 3).write_parquet(tmp_path / "many.parquet", row_group_size=50_000)
    arm = rng.integers(0, 2, len(few))
    y = rng.random(len(few)) < 0.2 + 0.1 * arm * (few["x0"].to_numpy() > 0)
    UpliftTree(max_depth=3).fit(few, y, arm).save(tmp_path / "m.upturn")
    least, most = (own_memory(f"score m.upturn {name}.parquet -o s.parquet -q", tmp_path) for name in ("few", "many"))
    assert pl.scan_parquet(tmp_path / "s.parquet").select(pl.len()).collect().item() == 3 * len(million)
    assert most - least < 200


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is another thing there")
def test_ctrl_c_is_said_and_leaves_the_old_file(tmp_path):
    rng = np.random.default_rng(0)
    table = pl.DataFrame({f"x{j}": rng.normal(size=1_000_000) for j in range(4)})
    table.write_parquet(tmp_path / "people.parquet")
    few, arm = table.head(5_000), rng.integers(0, 2, 5_000)
    UpliftTree(max_depth=3).fit(few, rng.random(5_000) < 0.3, arm).save(tmp_path / "m.upturn")
    (tmp_path / "scores.csv").write_text("of yesterday")
    line = [sys.executable, "-m", "upturn", "score", "m.upturn", "people.parquet", "-o", "scores.csv", "--json"]
    running = subprocess.Popen(
        line, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while running.poll() is None and not list(tmp_path.glob(".scores.csv*")):
        time.sleep(0.001)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate()
    assert running.returncode == 130
    assert err.splitlines()[-1] == "upturn: interrupted"
    assert json.loads(out) == {"error": "interrupted", "code": 130}
    assert (tmp_path / "scores.csv").read_text() == "of yesterday"
    assert not list(tmp_path.glob(".scores.csv*"))


def test_report_of_hillstrom(tmp_path):
    """The whole job, by a small model, as somebody with a file would ask for it."""
    if not prepare("hillstrom", tmp_path):
        pytest.skip("UPTURN_DATA does not have Hillstrom's file")
    roles = "--outcome visit --treatment segment --control 'No E-Mail' --drop conversion,spend"
    small = "--model tree --set max_depth=4 --models '' --folds 2"
    ran = run(f"report hillstrom.csv.gz {roles} {small} -o page.html --json", tmp_path)
    found = json.loads(ran.stdout)
    assert found["rows"] == 64_000
    assert found["sound"]
    assert found["kind"] in ("recommend", "rule", "random")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert len(page.encode()) < 3e6
    assert "Womens E-Mail" in page
    assert (tmp_path / "upturn.toml").exists()
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("check t.csv --outcome vist --treatment arm", "t.csv has no column 'vist'; did you mean 'visit'?"),
        ("fit tt.csv --outcome visit --treatment arm", "there is no file 'tt.csv': did you mean 't.csv'?"),
        ("report t.csv --outcome visit --treatment arm --audience boss", "expected business or trial"),
    ],
)
def test_errors_are_one_line_and_exit_code_2(line, message, tmp_path):
    """A few of those that test_check_command.py and test_commands.py go through, as a shell sees them."""
    pl.DataFrame({"x": [1.0, 2.0] * 30, "arm": [0, 1, 1, 0] * 15, "visit": [0, 1, 0] * 20}).write_csv(
        tmp_path / "t.csv"
    )
    ran = run(line, tmp_path, check=False)
    assert ran.returncode == 2
    assert message in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert ran.stdout == ""
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]


def cpu_seconds(*line):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run([sys.executable, *line], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ran, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_is_quick_and_loads_nothing_heavy():
    """Processor time: a machine that is busy with other things does not count."""
    cpu_seconds("-m", "upturn", "--help")  # writes bytecode
    assert min(cpu_seconds("-m", "upturn", "--help")[1] for _ in range(3)) < 0.3
    ran, _ = cpu_seconds("-X", "importtime", "-m", "upturn", "check", "--help")
    loaded = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    assert "typer" in loaded
    assert not loaded & {"numpy", "numba", "polars", "sklearn", "scipy", "pandas", "narwhals", "rich", "upturn.kernels"}
    assert "Example: upturn check mail.csv" in ran.stdout


def test_check_loads_nothing_that_it_does_not_need(tmp_path):
    """Under 2 s, most of it imports: processor time, the least of three, as a machine busy with other things does not count."""
    rng = np.random.default_rng(0)
    n = 10_000
    columns = {f"x{j}": rng.normal(size=n) for j in range(6)}
    arm, text = rng.integers(0, 2, n), rng.choice(["web", "shop"], n)
    pl.DataFrame({**columns, "text": text, "arm": arm, "y": rng.integers(0, 2, n)}).write_csv(tmp_path / "t.csv")
    line = ("-m", "upturn", "check", str(tmp_path / "t.csv"), "--outcome", "y", "--treatment", "arm")
    line = (*line, "--roles", str(tmp_path / "t.toml"))
    ran, _ = cpu_seconds("-X", "importtime", *line)
    loaded = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    assert "polars" in loaded
    assert not loaded & {"sklearn", "pandas", "scipy.stats", "matplotlib", "jinja2", "joblib"}
    ran, _ = cpu_seconds("-X", "importtime", *line)  # its kernels are compiled now
    loaded = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    assert not loaded & {"numba.np.arraymath", "numba.np.linalg"}
    assert min(cpu_seconds(*line)[1] for _ in range(3)) < 2


def test_completion_and_version(upturn):
    ran = subprocess.run(
        [sys.executable, "-m", "upturn", "--show-completion", "bash"],
        capture_output=True,
        text=True,
        check=False,
        env={**ENVIRONMENT, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )
    assert "complete" in ran.stdout
    assert upturn("--version").out.startswith("upturn 0.")


def test_a_pipe_that_is_closed_is_no_error(tmp_path):
    """As in `upturn datasets list | head -1`; here whoever reads has gone before anything is written."""
    if shutil.which("bash") is None:
        pytest.skip("no bash")
    line = f"{sys.executable} -m upturn datasets list | true; exit ${{PIPESTATUS[0]}}"
    ran = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, check=False, env=ENVIRONMENT, cwd=tmp_path
    )
    assert ran.returncode == 0
    assert "Traceback" not in ran.stderr


def in_shell(line, folder):
    """A line of bash, in which ``upturn`` is the command."""
    if shutil.which("bash") is None:
        pytest.skip("no bash")
    head = f"upturn() {{ '{sys.executable}' -m upturn \"$@\"; }}; "
    return subprocess.run(["bash", "-c", head + line], capture_output=True, text=True, check=False, env=ENVIRONMENT, cwd=folder)  # fmt: skip


@pytest.fixture
def small(tmp_path):
    """An experiment of sixty people, with a leak."""
    visit = [0, 1, 0] * 20
    pl.DataFrame(
        {"x": [1, 2] * 30, "z": [1, 1, 2] * 20, "arm": [0, 1, 1, 0] * 15, "leak": visit, "visit": visit}
    ).write_csv(tmp_path / "t.csv")
    return tmp_path


CHECK = "upturn check t.csv --outcome visit --treatment arm --quiet"


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (f"{CHECK} --json | true; exit ${{PIPESTATUS[0]}}", 1, ""),  # problems, as without a reader
        ("upturn check nope.csv --json | true; exit ${PIPESTATUS[0]}", 2, "there is no file 'nope.csv'"),
        ("upturn check nope.csv --json > /dev/full", 2, "there is no file 'nope.csv'"),
        (f"{CHECK} --json > /dev/full", 2, "cannot write to standard output: No space left on device"),
        (f"{CHECK} >&-", 1, ""),
        ("upturn --help >&-", 0, ""),
        ("upturn check --help | true; exit ${PIPESTATUS[0]}", 0, ""),
        ("upturn --version | true; exit ${PIPESTATUS[0]}", 0, ""),
        ("upturn check - --outcome visit --treatment arm <&-", 2, "standard input is empty"),
        (f"{CHECK} 2>&-", 1, ""),
    ],
)
def test_streams_that_are_gone_full_or_closed_change_no_exit_code(line, code, said, small):
    if "/dev/full" in line and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    ran = in_shell(line, small)
    assert ran.returncode == code
    assert said in ran.stderr
    assert ran.stderr.count("\n") == (1 if said else 0)


def test_duckdb_says_nothing_of_its_own(small):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(small / "shop.duckdb")) as base:
        base.execute(f"create table mail as select * from read_csv('{small / 't.csv'}')")
    for line, code in ((CHECK.replace("t.csv", "shop.duckdb::mail"), 1), ("upturn check shop.duckdb::male -q", 2)):
        ran = in_shell(line, small)
        assert ran.returncode == code
        assert ran.stderr.count("\n") == code - 1


@pytest.mark.skipif(sys.platform != "linux", reason="sizes of files are limited in another way there")
def test_files_that_would_be_too_large_leave_the_old_ones(small):
    """As on a full disk, whose limit a shell can set."""
    assert in_shell(f"{CHECK} --drop leak", small).returncode == 0
    before = (small / "upturn.toml").read_text()
    (small / "upturn.toml").chmod(0o600)
    ran = in_shell("ulimit -f 0; trap '' XFSZ; upturn check --drop x", small)
    assert "upturn.toml could not be written to, and was not changed" in ran.stderr
    assert (small / "upturn.toml").read_text() == before
    assert in_shell("upturn check --drop leak,z -q", small).returncode == 0
    assert (small / "upturn.toml").read_text() != before
    assert (small / "upturn.toml").stat().st_mode & 0o777 == 0o600
    in_shell("upturn fit --model tree --set max_depth=1 -o m.upturn", small)
    many = pl.DataFrame({"x": np.arange(50_000) % 3, "z": 1})
    many.write_csv(small / "many.csv")
    for line in ("score m.upturn many.csv -o big.parquet", "score m.upturn many.csv -o big.csv", "fit -o big.upturn"):
        name = line.split()[-1]
        ran = in_shell(f"ulimit -f 2; trap '' XFSZ; upturn {line} -q", small)
        assert ran.returncode == 2
        assert f"cannot write {name}" in ran.stderr
        assert "cut off" not in ran.stderr
        assert not list(small.glob("*big*"))
    (small / "upturn.toml").unlink()
    ran = in_shell(f"ulimit -f 0; trap '' XFSZ; {CHECK.removesuffix('--quiet')}", small)
    assert "upturn.toml could not be written" in ran.stderr
    assert not (small / "upturn.toml").exists()


def test_without_the_extra_it_says_what_to_install(monkeypatch, capsys):
    import importlib.util

    from upturn.cli import main

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "typer" else find(name, *rest))
    assert main(["--help"]) == 2
    assert "pip install 'upturn[cli]'" in capsys.readouterr().err


def test_demo_with_another_seed():
    """Two campaigns that differ, and everything after them by that seed."""
    lines = [line for _, line in steps(1)]
    assert lines[0] == "datasets get campaign --rows 20000 -o campaign.csv --seed 1"
    assert lines[3] == "datasets get campaign --rows 10000 --seed 2 -o new.csv"
    assert all(line.count("--seed") == 1 for line in lines)
    assert all(line.endswith("--seed 1") for line in lines if "--seed 2" not in line)


def test_demo(upturn, tmp_path):
    ran = upturn("demo", "--json")
    assert list(ran.json) == ["command", "commands", "files", "notes"]
    assert [step["code"] for step in ran.json["commands"]] == [0] * 7
    assert [step["command"] for step in ran.json["commands"]] == [line for _, line in steps(0)] == [s[1] for s in STEPS]
    plots = [f"plots/{kind}_{arm}.png" for kind in ("deciles", "qini", "uplift") for arm in ("call", "coupon")]
    made = ["campaign.csv", "forest.upturn", "list.csv", "new.csv", *plots, "report.html", "upturn.toml"]
    assert [Path(file).relative_to("upturn-demo").as_posix() for file in ran.json["files"]] == made
    assert (tmp_path / "upturn-demo" / "list.csv").exists()
    assert "<h1>" in (tmp_path / "upturn-demo" / "report.html").read_text(encoding="utf-8")
    assert "remove it, or name another" in upturn("demo").err
