"""Tables of meta.md."""

from __future__ import annotations

from page_tables._read import experiment


def propensities():
    """What propensities by "auto" are, and the average effect by them."""
    module, found = experiment("propensity_auto")
    return module.table(found)


TABLES = {"propensities": propensities}
