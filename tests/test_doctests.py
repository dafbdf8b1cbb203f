"""Every example in a docstring runs and prints what it says."""

import doctest
import importlib
import pkgutil
import warnings

import pytest

import upturn

MODULES = [module.name for module in pkgutil.walk_packages(upturn.__path__, "upturn.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    if name == "upturn.engines.spark":
        pytest.importorskip("pyspark")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a kernel typed at the prompt has no file to cache
        result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
