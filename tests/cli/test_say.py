"""Progress: a bar where a person sits at a terminal, plain lines in a log, nothing when asked to be quiet."""

import io
import os
import warnings

import pytest

from upturn.cli import _say
from upturn.cli._say import UserError, Voice


class Screen(io.StringIO):
    """Standard error, of a terminal or of a log."""

    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


def shown(monkeypatch, *, terminal, quiet=False):
    """What is written while five times ten rows are done."""
    screen = Screen(terminal)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(_say, "_EVERY", -1.0)  # every time
    monkeypatch.setenv("TERM", "xterm")
    voice = Voice("score", quiet=quiet)
    with voice.progress("scoring", 50) as done:
        for _ in range(5):
            done(10)
    with voice.step("reading"):
        pass
    with voice.steps("a report") as begin:
        for fold in (1, 2):
            begin(f"forest, fold {fold} of 2", 2)
    return screen.getvalue()


def test_a_log_has_plain_lines(monkeypatch):
    lines = shown(monkeypatch, terminal=False).splitlines()
    assert lines[:5] == [f"scoring: {n} of 50 rows" for n in (10, 20, 30, 40, 50)]
    assert [line.split(":")[0] for line in lines[5:7]] == ["scoring", "reading"]
    assert lines[7:9] == [f"a report: step {n} of 2, forest, fold {n} of 2" for n in (1, 2)]
    assert [line.split(":")[0] for line in lines[9:]] == ["a report"]
    assert not any("\x1b" in line or "\r" in line for line in lines)


def test_a_terminal_has_a_bar(monkeypatch):
    text = shown(monkeypatch, terminal=True)
    assert "\x1b" in text
    assert "50/50" in text
    assert "of 50 rows" not in text
    assert "forest, fold 2 of 2" in text
    assert "1/2" in text
    assert "step 1 of 2" not in text


@pytest.mark.parametrize("terminal", [True, False])
def test_quiet_is_silent(monkeypatch, terminal):
    assert shown(monkeypatch, terminal=terminal, quiet=True) == ""


def test_a_link_that_leads_back_to_itself_is_no_place_to_write(tmp_path):
    from upturn.cli._write import whole_file

    (tmp_path / "one").symlink_to(tmp_path / "one")
    with pytest.raises(OSError, match="leads back to itself"), whole_file(str(tmp_path / "one")):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_a_warning_of_every_fold_is_said_once(monkeypatch):
    import warnings

    screen = Screen(False)
    monkeypatch.setattr("sys.stderr", screen)
    with Voice("report").hears_warnings():
        for fold in range(5):
            warnings.warn(f"the vote of {27_000 + fold:,} rows says nothing", UserWarning, stacklevel=1)
        warnings.warn("another thing", RuntimeWarning, stacklevel=1)
    assert screen.getvalue().splitlines() == [
        "note: the vote of 27,000 rows says nothing",
        "warning: another thing",
    ]


def test_a_pipe_is_not_replaced_by_a_file(tmp_path):
    """Nor is what a link leads to."""
    from upturn.cli._write import check_table_name, write_text

    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "link.csv").symlink_to("pipe.csv")
    for name in ("pipe.csv", "link.csv"):
        for write in (lambda path: check_table_name(path), lambda path: write_text("text", path)):
            with pytest.raises(OSError, match=f"{name}, which is a device or a pipe"):
                write(str(tmp_path / name))
    assert (tmp_path / "pipe.csv").is_fifo()
    assert sorted(os.listdir(tmp_path)) == ["link.csv", "pipe.csv"]


@pytest.mark.parametrize("reason", ["no such thing: {place}", "No space left on device (os error 28)"])
def test_what_cannot_be_written_is_called_by_its_name(tmp_path, reason):
    from upturn.cli._write import whole_file

    path = str(tmp_path / "list.csv")
    with pytest.raises(UserError) as caught, whole_file(path) as place:
        raise OSError(reason.format(place=place))
    assert str(caught.value) == f"cannot write {path}: {reason.format(place=path)}"
    with pytest.raises(OSError, match="something else"), whole_file(path):
        raise OSError("something else")
    assert os.listdir(tmp_path) == []


def test_a_folder_that_takes_no_file_is_said_first(tmp_path, monkeypatch):
    from upturn.cli._write import check_output

    def refuse(**_):
        raise PermissionError(13, "Permission denied", "some temporary name")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(UserError, match=r"^cannot write .*list\.csv: Permission denied$"):
        check_output(str(tmp_path / "list.csv"))


def test_warnings_of_the_library_are_in_words_of_flags(capsys):
    voice = Voice("evaluate")
    with voice.hears_warnings():
        warnings.warn("groups holds 12 clusters: an interval is too narrow", UserWarning, stacklevel=1)
        warnings.warn("sample_weight has 1 odd value(s) in 2 row(s)", RuntimeWarning, stacklevel=1)
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "note: --group makes 12 clusters: an interval is too narrow",
        "warning: --weight has 1 odd value in 2 rows",
    ]
