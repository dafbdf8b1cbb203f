"""The page says what the committed results say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_has_the_committed_results():
    spec = importlib.util.spec_from_file_location("make_ensemble", DOCS / "make_ensemble.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (DOCS / "ensemble.md").read_text(encoding="utf-8")
    assert module.page(text) == text, "run python docs/make_ensemble.py"
