"""A part of the attack on inputs; ``experiments/attack/inputs.py`` runs the whole."""

import os

import pytest

from attack import bad_inputs

ONE_IN = 150


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """Some cases write files, into the current folder."""
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("attack"))
    yield
    os.chdir(before)


def test_everything_public_is_attacked():
    missing = bad_inputs.public_names() - bad_inputs.attacked_names()
    assert missing == bad_inputs.NOT_YET, f"without a call in bad_inputs.py: {sorted(missing)}"


def test_bad_values_are_refused_in_words_or_answered_rightly():
    found = [(case.name, bad_inputs.attack(case)) for case in bad_inputs.part_of(bad_inputs.cases(), ONE_IN)]
    bad = [
        f"{name}: {verdict.kind} {verdict.detail}"
        for name, verdict in found
        if name not in bad_inputs.KNOWN and verdict.kind not in ("clear", "right")
    ]
    assert not bad, "\n".join(bad)
    assert {verdict.kind for _, verdict in found} == {"clear", "right"}


def test_the_judge_tells_an_error_of_ours_from_one_of_python():
    from upturn._columns import read_outcome

    def raised(function, *arguments):
        try:
            function(*arguments)
        except Exception as error:
            return bad_inputs._judge_error(error)[0]
        return None

    assert raised(read_outcome, None) == "clear"
    assert raised(len, None) == "raw"
    assert raised(bad_inputs.numbers_in, 1.0) is None
