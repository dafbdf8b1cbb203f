"""What an experiment declares, and how it is found by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
SIZES = ("smoke", "quick", "medium", "full")  # seconds; minutes; an hour or two for all; the papers' own repeats

Case = dict[str, Any]  # names and plain values: what is run, apart from its seed


@dataclass(frozen=True)
class Experiment:
    """A declaration.

    Parameters
    ----------
    paper : str
        Number of the paper.
    shows : tuple of str
        Tables and figures of the paper, as it numbers them; empty if it goes beyond the paper.
    title, data, protocol : str
        What it is about, on which data, and how it is done in the paper and here.
    version : int
        Raised by hand whenever what ``run`` returns changes; kept results of another version are not used.
    summed : tuple of str
        Keys of what ``run`` returns whose lists are too long to be kept for every seed: only sums over seeds are.
    shaky : tuple of str
        Values of cases whose numbers another make of processor changes for good, as where another library adds up weights as it likes and grows other trees:
        a small part of them is run, and not compared with the results.
    """

    paper: str
    shows: tuple[str, ...]
    title: str
    data: str
    protocol: str
    version: int = 1
    summed: tuple[str, ...] = ()
    shaky: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """An experiment with its functions, as a file of a paper's folder has them."""

    name: str  # folder.file
    declared: Experiment
    module: ModuleType

    def plan(self, size: str) -> list[tuple[Case, int]]:
        return list(self.module.plan(size))

    @property
    def run(self) -> Callable[[Case, int], Any]:
        return self.module.run

    def does(self, what: str) -> Callable[..., Any] | None:
        return getattr(self.module, what, None)


FOLDERS = {"000": "zaniewicz", "001": "soltys", "002": "zhao", "003": "kuusisto", "004": "rafla"}


def parts() -> list[Part]:
    """All experiments, in the order of their papers and files."""
    found = []
    for folder in FOLDERS.values():
        for path in sorted((HERE / folder).glob("[a-z]*.py")):
            module = importlib.import_module(f"experiments.{folder}.{path.stem}")
            if hasattr(module, "EXPERIMENT"):
                found.append(Part(f"{folder}.{path.stem}", module.EXPERIMENT, module))
    return found


def chosen(words: Iterable[str]) -> list[Part]:
    """The experiments of papers ("000", "zaniewicz"), tables and figures ("Table 6.4.1", "6.4.1"), or files; all, if none is named."""
    everything, wanted = parts(), [word.lower() for word in words]
    named = {id(part): _names(part) for part in everything}
    unknown = [word for word in wanted if not any(word in names for names in named.values())]
    if unknown:
        known = sorted({part.name for part in everything} | set(FOLDERS) | set(FOLDERS.values()))
        raise SystemExit(
            f"nothing is called {unknown}: name one of {known}, or a table or figure such as 'Table 6.4.1'"
        )
    return [part for part in everything if not wanted or any(word in named[id(part)] for word in wanted)]


def _names(part: Part) -> set[str]:
    folder, file = part.name.split(".")
    labels = {label.lower() for label in part.declared.shows}
    return {part.name, folder, file, part.declared.paper} | labels | {label.split()[-1] for label in labels}
