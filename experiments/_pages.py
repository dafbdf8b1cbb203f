"""Pages made of results: one for every paper, one with all tables and figures, and what other pages quote.

A page quotes by a mark: ``<!-- result:zaniewicz.table_6_4_1/uplift -->`` … ``<!-- end -->``; what is between is replaced by what ``quotes`` of
that experiment has under the name after the slash.
"""

from __future__ import annotations

import re
from pathlib import Path

from experiments import _draw, _kept
from experiments._declared import FOLDERS, Part, parts
from experiments._papers import PAPERS, Paper

DOCS = Path(__file__).resolve().parents[1] / "docs"
REPLICATION = DOCS / "replication"
IMAGES = REPLICATION / "images"
HEAD = "<!-- made by `python -m experiments pages` from experiments/results: change nothing here -->\n"
QUOTE = re.compile(r"(<!-- result:([\w.]+)/([^>]+?) -->)(.*?)(<!-- end -->)", re.DOTALL)


def pages(folder: Path = _kept.RESULTS) -> dict[Path, str]:
    """Every page of docs/replication."""
    everything = parts()
    made = {REPLICATION / "README.md": _overview(everything, folder)}
    for paper in PAPERS:
        mine = [part for part in everything if part.declared.paper == paper.number]
        made[REPLICATION / f"{paper.number}.md"] = _page(paper, mine, folder)
    return made


def _page(paper: Paper, mine: list[Part], folder: Path) -> str:
    order = [label for label, _, _ in paper.items]
    mine = sorted(mine, key=lambda part: order.index(part.declared.shows[0]) if part.declared.shows else len(order))
    text = [HEAD, f"# {paper.title}\n"]
    text.append("What is replicated of it, and how near it comes; [all papers](README.md).\n")
    for part in mine:
        text.append(_section(part, _kept.read(part, folder)))
    return "\n".join(text)


def _section(part: Part, found: _kept.Found) -> str:
    declared = part.declared
    name = ", ".join(declared.shows) if declared.shows else "Beyond the paper"
    text = [f"## {name}: {declared.title}\n", f"{declared.data} {declared.protocol}\n"]
    if not found:
        text.append("Not run yet.\n")
    else:
        text += [f"{block}\n" for block in part.module.report(found)]
        runs = sum(len(row.seeds) for row in found.rows)
        seconds = sum(row.seconds for row in found.rows)
        commits = sorted({commit for row in found.rows for commit in row.commits})
        took = f"{seconds / 60:,.0f} minutes" if seconds >= 600 else f"{seconds:,.0f} seconds"
        text.append(f"*{runs:,} runs, {took} of processor time, of the source at {', '.join(commits)}.*")
    text.append(f"`python -m experiments run {part.name}`\n")
    return "\n".join(text)


def _overview(everything: list[Part], folder: Path) -> str:
    text = [HEAD, "# The papers, replicated\n"]
    text.append(
        "Every table and figure of the five papers that upturn is built on. How to run them: `python -m experiments list`.\n"
    )
    for paper in PAPERS:
        text += [f"## [{paper.title}]({paper.number}.md)\n", "| | what | replicated |", "|---|---|---|"]
        for label, what, why_not in paper.items:
            part = next((p for p in everything if p.declared.paper == paper.number and label in p.declared.shows), None)
            text.append(f"| {label} | {what} | {_state(part, folder) if part else why_not or 'not yet'} |")
        text.append("")
    return "\n".join(text)


def _state(part: Part, folder: Path) -> str:
    found = _kept.read(part, folder)
    if not found:
        return f"written, not run yet: `{part.name}`"
    least, most = (pick(len(row.seeds) for row in found.rows if "about" not in row.case) for pick in (min, max))
    times = f"{most}" if least == most else f"{least} to {most}"
    summary = part.does("summary")
    return (f"{summary(found)}; " if summary else "") + f"`{part.name}`, {times} {'repeat' if most == 1 else 'repeats'}"


def quotes(folder: Path = _kept.RESULTS) -> dict[str, str]:
    """All that pages may quote, by experiment/name."""
    said = {}
    for part in parts():
        make, found = part.does("quotes"), _kept.read(part, folder)
        if make and found:
            said |= {f"{part.name}/{name}": text for name, text in make(found).items()}
    return said


def expanded(text: str, said: dict[str, str]) -> str:
    """A page with its quotes made anew; those of experiments that have no results say so."""
    known = {part.name for part in parts()}

    def fill(match: re.Match[str]) -> str:
        key = f"{match[2]}/{match[3]}"
        if key not in said and not any(one.startswith(f"{match[2]}/") for one in said) and match[2] in known:
            return match[1] + "*(not run yet)*" + match[5]
        if key not in said:
            raise KeyError(f"{key} is quoted, and no results have it; there are {sorted(said)}")
        body = f"\n{said[key]}\n" if "\n" in said[key] else said[key]
        return match[1] + body + match[5]

    return QUOTE.sub(fill, text)


def quoting() -> list[Path]:
    """Pages that quote."""
    return [path for path in sorted(DOCS.glob("*.md")) if QUOTE.search(path.read_text())]


def draw(part: Part, found: _kept.Found) -> None:
    """The pictures of an experiment."""
    make = part.does("draw")
    for name, figure in (make(found) if make and found else {}).items():
        _draw.save(figure, IMAGES / f"{name}.png", found)


def write(pictures: list[Part], folder: Path = _kept.RESULTS) -> None:
    """All pages, and the pictures of some experiments."""
    for part in pictures:
        draw(part, _kept.read(part, folder))
    for path, text in pages(folder).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    said = quotes(folder)
    for path in quoting():
        path.write_text(expanded(path.read_text(), said))


def stale(folder: Path = _kept.RESULTS) -> list[str]:
    """What differs from its results: pages, quotes, pictures."""
    wrong = [
        f"docs/replication/{path.name} is not what the results say"
        for path, text in pages(folder).items()
        if not path.exists() or path.read_text() != text
    ]
    said = quotes(folder)
    for path in quoting():
        if expanded(path.read_text(), said) != path.read_text():
            wrong.append(f"docs/{path.name} quotes what the results do not say")
    for part in parts():
        found = _kept.read(part, folder)
        for name in getattr(part.module, "PICTURES", ()) if found else ():
            path = IMAGES / f"{name}.png"
            if not path.exists() or _draw.stamp(path) != _draw.digest(found):
                wrong.append(f"docs/replication/images/{name}.png shows other results")
    return wrong


# ------------------------------------------------------------------------------------- numbers that nothing stands behind

MADE = re.compile(
    r"<!-- (?:result:[^>]+|(?!not measured|end )([\w ]+)(?:: made by [\w.]+)?) -->.*?<!-- end -->", re.DOTALL
)
EXCUSED = re.compile(r"<!-- (not measured|measured by benchmarks/[\w/]+\.py|an earlier run of [\w.]+) -->\n(?:\|.*\n)+")


def unmarked(text: str) -> list[str]:
    """Lines of tables with a number in a cell that neither comes from results nor is excused."""
    rest = MADE.sub("", EXCUSED.sub("", text))
    rest = re.sub(r"```.*?```", "", rest, flags=re.DOTALL)
    lines = [line for line in rest.splitlines() if line.startswith("|")]
    return [line for line in lines if re.search(r"(?<![\w^_])\d|(?<!\w)\.\d", re.sub(r"`[^`]*`", "", line))]


def marks(text: str) -> list[str]:
    """Names of tables that are made by scripts of docs."""
    return [match[1] for match in MADE.finditer(text) if match[1]]


def excuses(text: str) -> list[str]:
    """What tables without results are excused by."""
    return [match[1] for match in EXCUSED.finditer(text)]


__all__ = ["FOLDERS", "draw", "excuses", "expanded", "marks", "pages", "quotes", "stale", "unmarked", "write"]
