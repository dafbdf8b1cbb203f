"""Data: loaders of the papers' data sets, conversions, and simulators that know the true effect."""

from upturn.datasets._benchmarks import PAPER_ROWS, paper_benchmarks
from upturn.datasets._campaign import simulate_campaign
from upturn.datasets._clinical import (
    load_bladder,
    load_bmt,
    load_burn,
    load_colon,
    load_hodg,
    load_pbc,
    load_rhc,
    load_rotterdam,
    load_tamoxifen,
    load_veteran,
)
from upturn.datasets._convert import AttributeSplit, split_by_attribute, survival_to_uplift
from upturn.datasets._customers import simulate_customers
from upturn.datasets._data import UpliftData
from upturn.datasets._marketing import load_criteo, load_hillstrom, load_lenta, load_megafon, load_x5
from upturn.datasets._patterns import simulate_feature_selection, simulate_pattern
from upturn.datasets._responses import simulate_zhao_2d, simulate_zhao_50d
from upturn.datasets._shapes import simulate_biased, simulate_crescents
from upturn.datasets._sources import DataNotFoundError
from upturn.datasets._survival import SurvivalOutcome, survival_outcome
from upturn.datasets._uci import UCI_SPLITS, load_uci_split

__all__ = [
    "PAPER_ROWS",
    "UCI_SPLITS",
    "AttributeSplit",
    "DataNotFoundError",
    "SurvivalOutcome",
    "UpliftData",
    "load_bladder",
    "load_bmt",
    "load_burn",
    "load_colon",
    "load_criteo",
    "load_hillstrom",
    "load_hodg",
    "load_lenta",
    "load_megafon",
    "load_pbc",
    "load_rhc",
    "load_rotterdam",
    "load_tamoxifen",
    "load_uci_split",
    "load_veteran",
    "load_x5",
    "paper_benchmarks",
    "simulate_biased",
    "simulate_campaign",
    "simulate_crescents",
    "simulate_customers",
    "simulate_feature_selection",
    "simulate_pattern",
    "simulate_zhao_2d",
    "simulate_zhao_50d",
    "split_by_attribute",
    "survival_outcome",
    "survival_to_uplift",
]
