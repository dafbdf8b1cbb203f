"""The report of `upturn.check`: what was found, as an object, a table and plain words."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from math import isnan
from typing import Any, Literal

from upturn._html import bullets, paragraphs, table
from upturn._results import NOT_AVAILABLE, aligned, new_frame, number_text, plural
from upturn._target import Label
from upturn._units import unit_scale, unit_text

_Cells = tuple[list[str], list[list[str]], list[bool]]
Status = Literal["ok", "warning", "note", "skipped"]

_SIGNS = {"ok": "ok", "warning": "WARNING", "note": "note", "skipped": "skipped"}


@dataclass(frozen=True)
class Finding:
    """One check: its name, how it ended, its smallest p-value against its limit, and what it saw."""

    check: str
    status: Status
    pvalue: float | None
    limit: float | None
    seen: str
    advice: str = ""


@dataclass(frozen=True)
class ArmRow:
    """One arm: rows, share, rows with an outcome, mean outcome, and its effect against control, an interval and a p-value."""

    arm: Label
    rows: int
    share: float
    outcomes: int
    mean: float
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    pvalue: float | None = None


@dataclass(frozen=True)
class FeatureRow:
    """One feature: largest standardised difference to control over the arms, its p-value, and what is missing."""

    feature: str
    difference: float
    pvalue: float
    missing: float
    missing_pvalue: float


@dataclass(frozen=True, repr=False)
class CheckReport:
    """What `upturn.check` found.

    Attributes
    ----------
    ok : bool
        Whether no check of the experiment's soundness raised a warning.
    findings : tuple of Finding
        One per check.
    arms : tuple of ArmRow
        One per arm, control first.
    features : tuple of FeatureRow
        One per feature, the least balanced first.
    n, n_features : int
    rate : bool
        Whether the outcome is yes or no, so that means and effects are printed per 1,000 people.
    """

    n: int
    n_features: int
    findings: tuple[Finding, ...]
    arms: tuple[ArmRow, ...]
    features: tuple[FeatureRow, ...]
    library: str | None = field(default=None, compare=False)
    rate: bool = False

    @property
    def ok(self) -> bool:
        """Whether the experiment looks sound."""
        return all(finding.status != "warning" for finding in self.findings)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The names of the checks that raised a warning."""
        return tuple(finding.check for finding in self.findings if finding.status == "warning")

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do about it, in plain words."""
        return tuple(finding.advice for finding in self.findings if finding.advice)

    def __getitem__(self, check: str) -> Finding:
        """Return the finding of a check by its name."""
        for finding in self.findings:
            if finding.check == check:
                return finding
        raise KeyError(f"there is no check {check!r}; there are {[finding.check for finding in self.findings]}")

    def to_frame(self, what: Literal["checks", "arms", "features"] = "checks") -> Any:
        """Return the checks, the arms or the features as a table of the library X came in."""
        parts: dict[str, tuple[Any, ...]] = {"checks": self.findings, "arms": self.arms, "features": self.features}
        if what not in parts:
            raise ValueError(f"to_frame got {what!r}; expected one of {list(parts)}.")
        kind: type[Finding | ArmRow | FeatureRow] = {"checks": Finding, "arms": ArmRow, "features": FeatureRow}[what]
        columns = {part.name: [getattr(row, part.name) for row in parts[what]] for part in fields(kind)}
        if what == "arms":
            columns["arm"] = [str(label) for label in columns["arm"]]
        return new_frame(columns, self.library)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        head, arms, checks = self._parts()
        parts = [head, aligned(*arms), aligned(*checks)]
        if self.advice:
            parts.append("What to do:\n" + "\n".join(f"- {sentence}" for sentence in self.advice))
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        head, arms, checks = self._parts()
        advice = paragraphs(["What to do:"]) + bullets(self.advice) if self.advice else ""
        return paragraphs([head]) + table(*arms) + table(*checks) + advice

    def _parts(self) -> tuple[str, _Cells, _Cells]:
        """The first line, and the tables of arms and of checks: header, rows, which columns are flush right."""
        verdict = "looks sound" if self.ok else "WARNING: " + ", ".join(self.warnings)
        if "rows" in self.warnings:
            verdict = verdict.replace("rows", "too few rows to tell", 1)
        head = f"Experiment of {plural(self.n, 'row')}, {plural(self.n_features, 'feature')}, {plural(len(self.arms), 'arm')}: {verdict}"
        arms, scale = [], unit_scale(self.rate)
        for row in self.arms:
            effect = ["", "", ""]
            if row.effect is not None and row.low is not None and row.high is not None and row.pvalue is not None:
                known, p = not isnan(row.effect), p_text(row.pvalue).removeprefix("p ").removeprefix("= ")
                interval = f"{number_text(scale * row.low, '+')} to {number_text(scale * row.high, '+')}"
                effect = [number_text(scale * row.effect, "+"), interval, p] if known else [NOT_AVAILABLE] * 3
            mean = number_text(scale * row.mean)
            arms.append([str(row.arm), f"{row.rows:,}", f"{row.share:.1%}", mean, *effect])
        checks = [[finding.check, _SIGNS[finding.status], finding.seen] for finding in self.findings]
        unit = unit_text(self.rate)
        names = ["arm", "rows", "share", f"outcome {unit}", f"effect {unit}", "95% interval", "p"]
        return (
            head,
            (names, arms, [False, *[True] * 6]),
            (["check", "result", "what was seen"], checks, [False] * 3),
        )


def p_text(pvalue: float) -> str:
    """Return a p-value as people read it."""
    return "p < 0.0001" if pvalue < 1e-4 else f"p = {pvalue:.2g}"
