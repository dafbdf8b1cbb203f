"""Results in a notebook: a few pieces of HTML, with everything that comes from data escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_MOST_LINES = 80  # of a text that could be very long


def paragraphs(lines: Sequence[str]) -> str:
    """A paragraph per line."""
    return "".join(f"<p>{escape(line)}</p>" for line in lines if line)


def bullets(lines: Sequence[str]) -> str:
    """A list."""
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """A table of text, the columns marked ``right`` flush right."""
    styles = ["text-align: right" if flush else "text-align: left" for flush in right]

    def line(tag: str, cells: Sequence[str]) -> str:
        inside = "".join(
            f'<{tag} style="{style}">{escape(text)}</{tag}>' for text, style in zip(cells, styles, strict=True)
        )
        return f"<tr>{inside}</tr>"

    return f"<table>{line('th', header)}{''.join(line('td', row) for row in rows)}</table>"


def preformatted(text: str) -> str:
    """Text as it is, its first lines where there are very many."""
    lines = text.splitlines()
    more = [f"… {len(lines) - _MOST_LINES:,} more lines"] if len(lines) > _MOST_LINES else []
    return f"<pre>{escape(chr(10).join(lines[:_MOST_LINES] + more))}</pre>"
