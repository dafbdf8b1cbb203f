"""Write the tables of pages that come from committed results: python docs/make_tables.py

The papers' own tables and figures are made by ``python -m experiments pages``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

from page_tables import rivals  # noqa: E402

NAMES = (
    "boosting",
    "command",
    "defaults",
    "ensemble",
    "meta",
    "metrics",
    "policy",
    "report",
    "rivals",
    "scale",
    "svm",
    "trees",
    "umodl",
)
PAGES = {f"{name}.md": import_module(f"page_tables.{name}").TABLES for name in NAMES}


def page(name, text):
    """The page with its tables made anew, and the sentences whose mark stands in a line."""
    for mark, make in PAGES[name].items():
        start = text.index(f"<!-- {mark} -->") + len(f"<!-- {mark} -->")
        body = f"\n{make()}\n" if text[start] == "\n" else make()
        text = text[:start] + body + text[text.index("<!-- end -->", start) :]
    return text


if __name__ == "__main__":
    for name in PAGES:
        path = DOCS / name
        path.write_text(page(name, path.read_text(encoding="utf-8")), encoding="utf-8")
    rivals.draw(DOCS)
