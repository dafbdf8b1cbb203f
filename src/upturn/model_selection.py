"""Splitting experiments: for training and test, and for cross-validation."""

from upturn._splitters import RepeatedUpliftSplit, UpliftKFold, uplift_train_test_split

__all__ = ["RepeatedUpliftSplit", "UpliftKFold", "uplift_train_test_split"]
