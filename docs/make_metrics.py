"""Write the two tables of metrics.md that are read off the registry of metrics: python docs/make_metrics.py

The numbers are those of the experiment that metrics.md simulates. The test suite compares the page with these tables.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from upturn.metrics._registry import METRICS

PAGE = Path(__file__).with_name("metrics.md")


def experiment():
    """The experiment of the page: half of the people gain 0.10, and the score knows which half."""
    rng = np.random.default_rng(0)
    n = 4000
    score, treatment = rng.normal(size=n), rng.integers(0, 2, n)
    return (rng.random(n) < 0.30 + 0.10 * treatment * (score > 0)).astype(int), score, treatment


def table(header, rows):
    """Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "|" + "|".join(cells) + "|" if cells[0] == "---" else f"| {' | '.join(cells)} |" for cells in lines
    )


def metrics_table():
    """One line per metric."""
    rows = []
    for name, metric in METRICS.items():
        options = ", ".join(f"`{option}`" for option in metric.all_options)
        rows.append([f"`{name}`", metric.question, metric.unit, f"`{metric.measures}`", options])
    return table(["metric", "question", "unit", "measures", "options"], rows)


def conventions_table():
    """One line per definition."""
    y, score, treatment = experiment()
    rows = []
    for name, metric in METRICS.items():
        if metric.measures != "predict":
            continue
        defaults = set()
        for definition in metric.definitions:
            asked = {} if definition.convention is None else {"convention": definition.convention}
            if definition.convention in defaults:  # the first of a convention needs no more to be chosen
                asked |= definition.chosen_by
            defaults.add(definition.convention)
            number = metric.number(y, score, treatment, None, None, asked)
            options = ", ".join(
                f'{key}="{value}"' if isinstance(value, str) else f"{key}={value}" for key, value in asked.items()
            )
            rows.append(
                [
                    f"`{name}({options})`" if options else f"`{name}`",
                    f"{number:.4f}" if abs(number) < 1 else f"{number:.2f}",
                    definition.library,
                    f"`{definition.call}`" if definition.call else "",
                    definition.says.replace("|", r"\|"),
                ]
            )
    return table(["here", "number", "library", "call there", "what it is"], rows)


TABLES = {"metrics": metrics_table, "conventions": conventions_table}


def block(name, text):
    """A table between its marks."""
    return f"<!-- {name}: made by make_metrics.py -->\n{text}\n<!-- end -->"


def main():
    """Put the tables between their marks."""
    page = PAGE.read_text(encoding="utf-8")
    for name, make in TABLES.items():
        found = re.compile(rf"<!-- {name}: made by make_metrics\.py -->.*?<!-- end -->", re.DOTALL)
        assert found.search(page), f"{PAGE.name} has no place for the table of {name}"
        text = block(name, make())
        page = found.sub(lambda _, text=text: text, page)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
