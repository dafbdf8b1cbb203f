"""A part of the attack on inputs; ``experiments/attack/inputs.py`` runs the whole."""

import os

import pytest

from attack import bad_inputs

ONE_IN = 12


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """Some cases write files, into the current folder."""
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("attack"))
    yield
    os.chdir(before)


def test_everything_public_is_attacked():
    public, attacked = bad_inputs.public_names(), bad_inputs.attacked_names()
    assert len(public) > 80
    missing = public - attacked - set(bad_inputs.EXCUSED)
    assert not missing, f"without a call in bad_inputs.py: {sorted(missing)}"
    assert not set(bad_inputs.EXCUSED) & attacked, "attacked and excused"
    assert set(bad_inputs.EXCUSED) <= public, "excused, and not there"


def test_bad_values_are_refused_in_words_or_answered_rightly():
    found = [(case.name, bad_inputs.attack(case)) for case in bad_inputs.part_of(bad_inputs.cases(), ONE_IN)]
    bad = [
        f"{name}: {verdict.kind} {verdict.detail} {verdict.leaks}"
        for name, verdict in found
        if name not in bad_inputs.KNOWN and (verdict.kind not in ("clear", "right") or verdict.leaks)
    ]
    assert not bad, "\n".join(bad)
    assert len(found) > 5000
    assert {verdict.kind for name, verdict in found if name not in bad_inputs.KNOWN} == {"clear", "right"}


def test_what_is_known_to_end_raw_is_still_there():
    names = {case.name for case in bad_inputs.cases()}
    assert set(bad_inputs.KNOWN) <= names
    assert len(bad_inputs.KNOWN) < 10


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
