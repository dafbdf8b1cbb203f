"""The template filled in, with style, script and chart library inside: one file that needs nothing else."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

_RANGE = re.compile(r"(\(−?[\d.,]+ to −?[\d.,]+\))")
_SIGN = re.compile(r" (=|≤|≥|&lt;|&gt;) (?=[\d.−])")
HOME = files("upturn._report")


def render(page: dict[str, Any], pictures: dict[str, str]) -> str:
    """The page as HTML; every value is escaped."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError:
        raise ImportError("a report needs jinja2: pip install 'upturn[report]'") from None
    from markupsafe import Markup, escape

    def tied(text: str) -> str:
        return _SIGN.sub("\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}", text)

    def breakable(text: object) -> Any:
        """A name or condition that may go over into the next line behind an underscore, and not before a number."""
        return Markup(tied(str(escape(text))).replace("_", "_<wbr>"))

    def ranges(text: object) -> Any:
        """Intervals in a lighter hand and on one line, and so is p = 0.05; a minus is one."""
        minus = re.sub(r"(?<=[ (])-(?=\d)", "−", str(escape(text)))
        return Markup(_RANGE.sub(r'<span class="range">\1</span>', tied(minus)))

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    environment.filters |= {"breakable": breakable, "ranges": ranges}
    template = environment.from_string(_read("page", "report.html"))
    return template.render(
        **page,
        pictures=pictures,
        style=_read("page", "style.css"),
        script=_read("page", "page.js"),
        chart_style=_read("vendor", "uplot", "uPlot.min.css"),
        chart_script=_read("vendor", "uplot", "uPlot.iife.min.js"),
    )


def _read(*parts: str) -> str:
    return HOME.joinpath(*parts).read_text(encoding="utf-8")
