"""What the library says of its parameters, said of the flags that they are here."""

from __future__ import annotations

import re
from typing import Any

# Parameters of the library in an error, and their flags.
_PARAMETERS = {name: name for name in ("alpha", "budget", "fraction", "interval", "metric", "resume")} | {
    "n_jobs": "jobs"
}
_PARAMETER = re.compile(rf"(?:^|(?<=and ))({'|'.join(_PARAMETERS)})=")  # at its head, or beside the one that is
# Words of Python in errors of the library, and ours.
_OF_PYTHON: list[tuple[str, Any]] = [
    ("sample_weight", "--weight"),
    (r"\b1 ((?:\w+ )?\w+)\(s\)", r"1 \1"),
    (r"(\w)\(s\)", r"\1s"),
    (r" \(n_samples=\d+\)", ""),
    (r"^treatment holds\b", "the treatment holds"),
    (r",? or None( for no limit)?\b", ""),
    (r"^y (holds|has)\b", r"the outcome \1"),
    (r"^groups holds\b", "--group makes"),
    (r"\bX contains infinity in\b", "the table holds infinite numbers in"),
    (r"\bat row (\d+)\b", lambda found: f"in row {int(found[1]) + 1:,} of those used"),
    (r"\bexpected names the arms\b", "--expected names the arms"),
    (r"(?<=arms )\[([^\]]*)\]", lambda found: found[1].replace("'", "")),
]


def in_flags(text: str) -> str:
    """An error or a warning of the library, in words of the command line."""
    text = _PARAMETER.sub(lambda found: f"--{_PARAMETERS[found[1]]} ", text)
    for pattern, words in _OF_PYTHON:
        text = re.sub(pattern, words, text)
    return text
