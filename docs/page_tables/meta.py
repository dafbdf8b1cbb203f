"""Tables of meta.md."""

from __future__ import annotations

import numpy as np

from page_tables._read import experiment


def propensities():
    """What propensities by "auto" are, and the average effect by them."""
    module, found = experiment("propensity_auto")
    return module.table(found)


def confounding():
    """Errors of the learners where those who do well anyway are treated more often."""
    _, found = experiment("meta_confounding")
    errors = {name: np.array(one) for name, one in found["errors"].items()}
    said = {
        name.removesuffix("Learner"): f"{one.mean():.3f} ± {one.std(ddof=1) / np.sqrt(len(one)):.3f}"
        for name, one in errors.items()
    }
    listed = ", ".join(f"{text} for {name}" for name, text in sorted(said.items(), key=lambda item: item[1]))
    return f"({found['rows']:,} rows, default bases, {len(errors['TLearner'])} sets), the root mean squared error of the effect is {listed}"


TABLES = {"propensities": propensities, "confounding": confounding}
