"""Progress: a bar where a person sits at a terminal, plain lines in a log, nothing when asked to be quiet."""

import io

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
    return screen.getvalue()


def test_a_log_has_plain_lines(monkeypatch):
    lines = shown(monkeypatch, terminal=False).splitlines()
    assert lines[:5] == [f"scoring: {n} of 50 rows" for n in (10, 20, 30, 40, 50)]
    assert [line.split(":")[0] for line in lines[5:]] == ["scoring", "reading"]
    assert not any("\x1b" in line or "\r" in line for line in lines)


def test_a_terminal_has_a_bar(monkeypatch):
    text = shown(monkeypatch, terminal=True)
    assert "\x1b" in text
    assert "50/50" in text
    assert "of 50 rows" not in text


@pytest.mark.parametrize("terminal", [True, False])
def test_quiet_is_silent(monkeypatch, terminal):
    assert shown(monkeypatch, terminal=terminal, quiet=True) == ""


def test_a_link_that_leads_back_to_itself_is_no_place_to_write(tmp_path):
    from upturn.cli._write import whole_file

    (tmp_path / "one").symlink_to(tmp_path / "one")
    with pytest.raises(UserError, match="leads back to itself"), whole_file(str(tmp_path / "one")):
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
