"""Engines: the same learners on tables that do not fit into memory.

A table is a path (a pattern, or a list of paths) of Parquet files, a polars LazyFrame, or a DataFrame of Dask or Spark. :func:`fit` puts the codes of
files into a scratch folder, part after part, and the ordinary grower works on that; rows of a cluster stay where they are, and trees are grown from histograms that partitions
add up. The model it returns is the model that ``fit`` of the whole table gives, to the last bit. :func:`predict` adds a model's scores to a table lazily, part after part;
:func:`sample` draws rows by their number. :func:`evaluate`, :func:`compare`, :func:`curve` and :func:`expected_response` judge scores that are columns of a table, :func:`target` chooses whom to treat,
:func:`check` says whether the experiment is sound.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from upturn.engines._check import check
    from upturn.engines._evaluate import compare, curve, evaluate, expected_response
    from upturn.engines._fit import fit
    from upturn.engines._predict import predict
    from upturn.engines._sample import sample
    from upturn.engines._target import target

__all__ = ["check", "compare", "curve", "evaluate", "expected_response", "fit", "predict", "sample", "target"]

# Names are loaded when they are first used: whoever predicts waits for nothing that measures.
_HOMES = {
    "check": "_check",
    "compare": "_evaluate",
    "curve": "_evaluate",
    "evaluate": "_evaluate",
    "expected_response": "_evaluate",
    "fit": "_fit",
    "predict": "_predict",
    "sample": "_sample",
    "target": "_target",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
