"""The contestants: a name, and a function that makes the estimator, seeded by the split.

Add a line for what you compare. A name says what differs from the defaults; "svm" alone would be whatever the default is today.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

from benchmarks.quality.rivals import RIVALS, Rival, together
from benchmarks.quality.tuned import TUNED, Tuned

from upturn._nuisance import _boosted as default_trees
from upturn.boosting import UpliftBagging, UpliftBoosting
from upturn.ensemble import UpliftAuto, UpliftStacking
from upturn.meta import ClassTransformation, DRLearner, RLearner, SLearner, TLearner, TreatedOnly, XLearner
from upturn.svm import DifferentialSVM, StandardSVM, SubgroupSVM, TwoCostSVM, UpliftSVM, UpliftSVMCV
from upturn.trees import CTSForest, UCTSForest, UpliftForest, UpliftTree


def _seeded(kind: Callable[..., Any], **options: Any) -> Callable[[int], Any]:
    return lambda split: kind(**options, random_state=split)


def _plain(kind: Callable[..., Any], **options: Any) -> Callable[[int], Any]:
    return lambda split: kind(**options)


def _boosted(split: int, height: int, min_samples_arm: Any = 1, **options: Any) -> Any:
    tree = UpliftTree(max_depth=height, min_samples_split=2, min_samples_leaf=1, min_samples_arm=min_samples_arm)
    return UpliftBoosting(tree, **{"n_estimators": 101, "random_state": split, **options})


class _Leaves:
    """A learner whose default trees ask for leaves of at most one part of ``parts`` of the rows; 1 lets small samples unsplit."""

    def __init__(self, model: Any, parts: int) -> None:
        self.model, self.parts = model, parts

    def fit(self, X: Any, y: Any, treatment: Any) -> Any:
        """Fit with other minima than the library's."""
        with patch.object(default_trees, "_PARTS", self.parts):
            self.model.fit(X, y, treatment)
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


CONTESTANTS: dict[str, Callable[[int], Any]] = {
    # defaults, whatever they are at the moment
    "auto": _seeded(UpliftAuto, metric=None),
    "auto-60": _seeded(UpliftAuto, metric=None, time_budget=60, propensity="shares"),
    "auto-low": _seeded(UpliftAuto, effort="low", metric=None),
    "bagging": _seeded(UpliftBagging),
    "boosting": _seeded(UpliftBoosting),
    "class-transformation": _plain(ClassTransformation),
    "cts": _seeded(CTSForest),
    "differential-svm": _plain(DifferentialSVM),
    "dr": _seeded(DRLearner),
    "forest": _seeded(UpliftForest),
    "r": _seeded(RLearner),
    "s": _plain(SLearner),
    "stacking": _seeded(UpliftStacking),
    "stacking-dr": _seeded(UpliftStacking, loss="dr"),
    "standard-svm": _plain(StandardSVM),
    "subgroup-svm": _plain(SubgroupSVM),
    "svm": _plain(UpliftSVM),
    "svm-cv": _seeded(UpliftSVMCV),
    "t": _seeded(TLearner),
    "treated-only": _seeded(TreatedOnly),
    "tree": _seeded(UpliftTree),
    "two-cost-svm": _plain(TwoCostSVM),
    "ucts": _seeded(UCTSForest),
    "x": _plain(XLearner),
    # leaves, smallest shares and sizes of CTS; centring of forests
    "cts-regularized": _seeded(CTSForest, leaf="regularized", min_share=0.0, min_samples_split=100),
    "cts-means": _seeded(CTSForest, min_share=0.0, min_samples_split=100),
    "cts-share": _seeded(CTSForest, min_share=0.1, min_samples_split=100),
    "cts-share-auto": _seeded(CTSForest, min_share=0.1, min_samples_split="auto"),
    "ucts-100": _seeded(UCTSForest, min_samples_split=100),
    "ucts-auto": _seeded(UCTSForest, min_samples_split="auto"),
    "forest-centred": _seeded(UpliftForest, center=True),
    "forest-plain": _seeded(UpliftForest, center=False),
    "forest-shares": _seeded(UpliftForest, propensity="shares"),
    # height, number and ties of boosted trees
    **{f"boosting-h{h}": partial(lambda h, split: _boosted(split, h), h) for h in (1, 2, 3, 4, 5)},
    **{f"boosting-h{h}-paper": partial(lambda h, split: _boosted(split, h, ties="none"), h) for h in (1, 3)},
    **{
        f"boosting-h{h}-n{n}": partial(lambda h, n, split: _boosted(split, h, n_estimators=n), h, n)
        for h in (1, 2, 3)
        for n in (31, 301)
    },
    **{
        f"boosting-h{h}-sqrt": partial(lambda h, split: _boosted(split, h, min_samples_arm="sqrt"), h)
        for h in (1, 2, 3, 4)
    },
    # smallest leaves of the default trees of learners, on small sets
    **{
        f"{name}-leaves-{parts}": partial(
            lambda kind, parts, split: _Leaves(kind(random_state=split), parts), kind, parts
        )
        for name, kind in (("s", SLearner), ("t", TLearner), ("x", XLearner), ("dr", DRLearner), ("r", RLearner))
        for parts in (1, 4, 8, 16)
    },
    # other libraries, in interpreters of their own
    **{name: partial(lambda name, split: Rival(name, split, together), name) for name in RIVALS},
    # twenty draws of parameters, chosen on the training rows
    **{f"{name}-tuned": partial(Tuned, name) for name in TUNED},
    # exponents of the uplift machine
    **{f"svm-p{p:g}": partial(lambda p, split: UpliftSVM(p=p), p) for p in (1.0, 1.2, 1.5, 2.0)},
}

# what a group's name stands for: every model of upturn that ranks in a way of its own, at its defaults; and so on
GROUPS = {
    "upturn": (
        "auto", "bagging", "boosting", "class-transformation", "cts", "differential-svm", "dr", "forest", "r", "s", "stacking", "standard-svm",
        "subgroup-svm", "svm", "svm-cv", "t", "treated-only", "tree", "two-cost-svm", "ucts", "x",
    ),
    "rivals": tuple(RIVALS),
    "tuned": tuple(f"{name}-tuned" for name in TUNED),
}  # fmt: skip


def named(words: str) -> list[str]:
    """Contestants by their names and those of groups, with commas."""
    found = [model for word in words.split(",") for model in GROUPS.get(word, (word,))]
    return list(dict.fromkeys(found))
