"""Other libraries whose numbers can be asked for with ``convention=``, and what data they take."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from upturn._parameters import NONE, check, one_of
from upturn._target import Target

Convention = Literal["sklift", "causalml", "criteo", "grf", "libuplift"]
Ranking = Literal["separate", "joint"]


@dataclass(frozen=True)
class Library:
    """Its name, and what it could not have been given."""

    name: str
    weights: bool = True
    binary: bool = False  # takes outcomes 0 and 1 only


LIBRARIES: dict[str, Library] = {
    "sklift": Library("scikit-uplift", weights=False, binary=True),
    "causalml": Library("causalml", weights=False),
    "criteo": Library("Criteo benchmark"),
    "grf": Library("grf"),
    "libuplift": Library("libuplift"),
}


def check_ranking(ranking: Ranking | None) -> None:
    """Refuse a ranking there is not."""
    check(
        "ranking",
        ranking,
        one_of("separate", "joint").named("'separate' (each arm ranked by itself) or 'joint'") | NONE,
    )


def check_convention(convention: str | None, known: Sequence[str | None], metric: str) -> None:
    """Refuse a convention a metric does not have."""
    if not (convention is None or isinstance(convention, str)) or convention not in known:
        names = ", ".join(repr(name) for name in known if name)
        has = f"{metric} is there as upturn's own (None) and as in {names}" if names else f"{metric} has none but None"
        raise ValueError(f"convention={reprlib.repr(convention)}: {has}")


def check_target(convention: str | None, target: Target) -> None:
    """Refuse data the other library could not have taken."""
    if convention is None:
        return
    library = LIBRARIES[convention]
    if not library.weights and target.weight is not None:
        raise ValueError(f"{library.name} has no weights: leave sample_weight out, or convention={convention!r}")
    if library.binary and not ((target.y == 0) | (target.y == 1)).all():
        raise ValueError(
            f"{library.name} takes outcomes 0 and 1 only: leave convention={convention!r} out for other outcomes"
        )
