"""upturn: uplift modelling. For whom did the experiment work?

Names are loaded when they are first used, so ``import upturn`` costs nothing; ``__init__.pyi`` tells type checkers
and editors what there is.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "check": "upturn._check",
    "compile": "upturn._compile",
    "factorial": "upturn._subgroups",
    "power": "upturn._power",
    "report": "upturn._report",
    "subgroups": "upturn._subgroups",
    "pack": "upturn._target",
    "unpack": "upturn._target",
    "load": "upturn.persist",
    "save": "upturn.persist",
    "ModelFileError": "upturn.persist",
}
_ROOMS = (
    "base",
    "boosting",
    "datasets",
    "engines",
    "ensemble",
    "features",
    "meta",
    "metrics",
    "model_selection",
    "persist",
    "plot",
    "policy",
    "svm",
    "trees",
)

__all__ = ["__version__", *_HOMES, *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"upturn.{name}")
    raise AttributeError(f"module 'upturn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
