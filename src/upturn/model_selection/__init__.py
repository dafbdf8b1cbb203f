"""Choosing between models: splitters, scorers for scikit-learn's searches, and repeated comparisons on the same splits."""

from upturn._splitters import RepeatedUpliftSplit, UpliftGroupKFold, UpliftKFold, uplift_train_test_split
from upturn.model_selection._comparison import ModelComparison, compare_models, signed_rank_test
from upturn.model_selection._scorers import UpliftScorer, uplift_scorer

__all__ = [
    "ModelComparison",
    "RepeatedUpliftSplit",
    "UpliftGroupKFold",
    "UpliftKFold",
    "UpliftScorer",
    "compare_models",
    "signed_rank_test",
    "uplift_scorer",
    "uplift_train_test_split",
]
