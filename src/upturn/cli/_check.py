"""``upturn check``: is the experiment sound?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from upturn.cli._command import Session
from upturn.cli._say import UserError, plain, shell_word

if TYPE_CHECKING:
    from upturn.cli._load import Loaded

_ROUNDED = 0.02  # by which shares that were rounded may miss 1


def check(
    session: Session,
    expected: Annotated[
        str | None, typer.Option("--expected", help="Shares the arms were meant to have, as control=0.5,mail=0.5.")
    ] = None,
    alpha: Annotated[float, typer.Option("--alpha", help="Chance that a sound experiment gets a warning.")] = 0.05,
) -> int:
    """Is the experiment sound? Exit code 0 if so, 1 if problems were found, 2 if the input cannot be used.

    Checks the sizes of the arms, whether they agree in every feature, whether a model can tell them apart and what is
    missing; names columns that look like identifiers, dates or leaks; and measures the effect of every arm.
    """
    from upturn import check as examine
    from upturn.cli._load import load

    voice = session.voice
    data = load(voice, session.roles, session.file, missing_outcomes=True)
    shares = None if expected is None else _shares(expected, data)
    if shares and abs(sum(shares.values()) - 1) > _ROUNDED:
        total = sum(shares.values())
        taken = ", ".join(f"{label} {share / total:.3g}" for label, share in shares.items())
        voice.note(f"--expected {expected}: the shares add up to {total:.4g}; taken as {taken}")
    with voice.step(f"checking {len(data.y):,} rows and {data.X.width} features"):
        report = examine(
            data.X, data.y, data.treatment, sample_weight=data.weight, control=data.control, groups=data.group,
            expected=shares, alpha=alpha, random_state=session.seed,
        )  # fmt: skip
        leaks = data.leaks()
    sound = report.ok and not leaks
    lines = [_with_flags(str(report), data)]
    if leaks:
        lines.append(
            "Suspected leaks, columns that may have been measured after the treatment (--drop those that were):\n"
            + "\n".join(f"- {leak.column}: {leak.evidence}" for leak in leaks)
        )
    voice.result(
        "\n\n".join(lines),
        ok=sound,
        rows=report.n,
        features=list(data.X.columns),
        arms=[vars(row) for row in report.arms],
        checks=[vars(finding) for finding in report.findings],
        balance=[vars(row) for row in report.features],
        leaks=[vars(leak) for leak in leaks],
        columns={
            "ids": data.roles.id,
            "dropped": data.roles.drop,
            **{f"found_{k}": v for k, v in data.found.seen.items()},
        },
    )
    return 0 if sound else 1


def _with_flags(text: str, data: Loaded) -> str:
    """The report with a parameter of Python said as the flag it is here."""
    equal = f"{1 / len(data.target.labels):.3g}"
    shares = ",".join(f"{label}={equal}" for label in data.target.labels)
    return text.replace("expected={label: share, ...}", f"as in --expected {shell_word(shares)}")


def _shares(text: str, data: Loaded) -> dict[Any, float]:
    """``control=0.5,mail=0.5`` as a mapping from labels."""
    labels = {str(label): label for label in plain(data.treatment)}
    shares: dict[Any, float] = {}
    for part in text.split(","):
        name, _, share = part.rpartition("=")
        try:
            shares[labels[name.strip()]] = float(share)
        except (KeyError, ValueError):
            raise UserError(
                f"--expected {text}: expected a share for each arm, as in {','.join(f'{name}=0.5' for name in sorted(labels))}"
            ) from None
    return shares
