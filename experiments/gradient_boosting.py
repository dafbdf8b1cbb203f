"""Is gradient boosting of uplift trees worth a model of its own? A plain one, measured beside the learners there are.

    python experiments/gradient_boosting.py --half choose [--splits 6] [--jobs 1]
    python experiments/gradient_boosting.py --show

The model: m(x) = E[Y | x] cross-fitted, then trees one by one on what is left of the R-loss,

    sum over i of (r_i - (T_i - e) tau(x_i))^2,   r = Y - m,   e the share of the treated,

each tree grown on the residual r - (T - e) tau by the Euclidean criterion on means, its leaves set to the minimiser of the loss with a ridge
(second-order leaf weights), and added with a shrinkage. Five such sequences leave out one fold each and stop where the R-loss of that
fold was least; the prediction is their mean. Settings are compared on the sets for choosing, the best is reported on the others.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.quality import contestants, run, sets, show  # noqa: E402

from upturn._nuisance import crossfit_responses, make_folds  # noqa: E402
from upturn._seeds import make_seed  # noqa: E402
from upturn.meta import DRLearner, RLearner, XLearner  # noqa: E402
from upturn.trees import UpliftTree  # noqa: E402

OUT = ROOT / "benchmarks" / "quality" / "results" / "gradient.json"
BESIDE = ("forest", "forest-centred", "s", "t", "x", "dr", "r", "causalml-x", "causalml-r", "causalml-t")
LEARNERS = {"x": XLearner, "r": RLearner, "dr": DRLearner}


class Gradient(RLearner):
    """The trial model, two arms, randomised: an R-learner whose model of the effect is boosted uplift trees."""

    def __init__(self, depth=3, rate=0.1, ridge=1.0, most=300, random_state=None):
        super().__init__(random_state=random_state, propensity="shares")
        self.depth, self.rate, self.ridge, self.most = depth, rate, ridge, most

    def _fit_chosen(self, data, choice):
        self._keep_choice(choice)
        seed = make_seed(self.random_state)
        folds = make_folds(data, 5, seed)
        means = crossfit_responses(None, data, [(0, 1)], folds, seed, None)[:, 0]
        chance = float(np.mean(data.arm))
        slope, left = data.arm - chance, data.y - means
        self._sequences = [self._grow(data, train, test, slope, left) for train, test in folds]
        self._members = []

    def _grow(self, data, train, test, slope, left):
        start = float(slope[train] @ left[train] / (slope[train] @ slope[train]))
        effect = np.full(len(data), start)
        ridge = self.ridge * float(np.mean(slope[train] ** 2))
        trees, losses = [], [float(np.sum((left[test] - slope[test] * start) ** 2))]
        for number in range(self.most):
            residual = left - slope * effect
            part = data.take(train)
            part = replace(part, target=replace(part.target, y=residual[train]))
            tree = UpliftTree(max_depth=self.depth, normalize=False, laplace=False, random_state=number)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree._fit(part)
            leaf = tree.nodes_.apply(tree.bins_, data.X)[:, 0]
            size = int(leaf.max()) + 1
            top = np.bincount(leaf[train], slope[train] * residual[train], size)
            bottom = np.bincount(leaf[train], slope[train] ** 2, size)
            values = self.rate * top / (bottom + ridge)
            effect = effect + values[leaf]
            trees.append((tree, values))
            losses.append(float(np.sum((left[test] - slope[test] * effect[test]) ** 2)))
            if len(losses) - 1 - int(np.argmin(losses)) >= 25:
                break
        return start, trees[: int(np.argmin(losses))]

    def _predict(self, X):
        total = np.zeros(len(X))
        for start, trees in self._sequences:
            total += start
            for tree, values in trees:
                total += values[tree.nodes_.apply(tree.bins_, X)[:, 0]]
        return total[:, None] / len(self._sequences)


def _of(**options):
    return lambda split: Gradient(**options, random_state=split)


TRIED = {
    f"gradient-d{depth}-r{rate:g}-l{ridge:g}": _of(depth=depth, rate=rate, ridge=float(ridge))
    for depth in (1, 2, 4)
    for rate in (0.1,)
    for ridge in (1, 30)
}


def _over(learner, library):
    """A learner over the boosting of another library at its defaults, of outcomes and of effects."""

    def make(split):
        if library == "lightgbm":
            from lightgbm import LGBMRegressor

            base = LGBMRegressor(random_state=split, n_jobs=1, verbose=-1)
        else:
            from sklearn.ensemble import HistGradientBoostingRegressor

            base = HistGradientBoostingRegressor(random_state=split)
        return learner(base, base, random_state=split)

    return make


OVER = {f"{library}-{name}": _over(LEARNERS[name], library) for library in ("lightgbm", "sklearn") for name in LEARNERS}
contestants.CONTESTANTS.update(TRIED | OVER)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=("choose", "report"), default="choose")
    parser.add_argument("--models", default=",".join((*TRIED, *BESIDE, *OVER)))
    parser.add_argument("--baseline", default="x")
    parser.add_argument("--sets", default=None)
    parser.add_argument("--splits", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if not options.show:
        run.run(sets.names(options.sets or options.half), options.models.split(","), options.splits, options.jobs, OUT)
    show.show(OUT, options.baseline, "auuc", options.half)


if __name__ == "__main__":
    main()
