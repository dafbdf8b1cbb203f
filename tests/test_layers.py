"""Imports point one way: a module imports only from rooms below its own, and families never import each other."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "upturn"

# Lowest first. A module may import from its own room and from every level below it, never sideways or up.
LEVELS: list[set[str]] = [
    {"_arrays", "_html"},
    {"kernels"},
    {"_columns", "_parallel", "_parameters", "_seeds", "_sparse"},
    {"_clusters", "_rows"},
    {"_target"},
    {"_table", "_propensity"},
    {"_experiment"},
    {"_balance", "_boosted_trees", "_encode", "_levels", "_results"},
    {"_units"},
    {"metrics", "_splitters"},
    {"persist"},
    {"base"},
    {"svm", "trees", "features", "datasets"},
    {"_nuisance"},
    {"boosting", "meta", "policy", "model_selection", "_check", "_power", "_subgroups"},
    {"ensemble", "engines"},
    {"plot", "_compile"},
    {"_report"},
    {"cli"},
    {"__main__"},
]
LEVEL = {room: depth for depth, rooms in enumerate(LEVELS) for room in rooms}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_rooms(path: Path) -> set[str]:
    here = ("upturn", *path.relative_to(PACKAGE).parts[:-1])
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else ()
            stem = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{stem}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "upturn" and len(parts) > 1:
                found.add(parts[1])
    return found & set(LEVEL)


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path):
    room = room_of(path)
    assert room in LEVEL, f"{room} has no level: add it to LEVELS"
    wrong = {other for other in imported_rooms(path) if other != room and LEVEL[other] >= LEVEL[room]}
    assert not wrong, f"{path.relative_to(PACKAGE)} imports {sorted(wrong)}, which is not below {room}"


def test_imports_are_seen():
    assert imported_rooms(PACKAGE / "metrics" / "_ranked.py") >= {"kernels", "_target"}


def test_tests_mirror_the_rooms():
    """A folder of tests is named as the room it tests; what many rooms rest on is in core, hostile files and inputs in attack."""
    rooms = {room.lstrip("_") for room in LEVEL}
    for path in Path(__file__).parent.rglob("test_*.py"):
        folder = path.relative_to(Path(__file__).parent).parts[0]
        assert folder == path.name or folder in {"core", "attack"} or folder in rooms, (
            f"{folder} is no room of the package"
        )
