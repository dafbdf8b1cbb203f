"""Models compared on repeated splits, as the papers do: the same splits for all, paired statistics, resumable."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit
from sklearn.base import clone

from upturn._arrays import Floats
from upturn._columns import as_column, as_floats, check_finite, to_numpy
from upturn._parallel import run_parallel
from upturn._parameters import JOBS, SEED, VERBOSE, Rule, check
from upturn._results import NOT_AVAILABLE, library_of, number_text, plural
from upturn._rows import take_named
from upturn._seeds import make_seed
from upturn._splitters import RepeatedUpliftSplit, folds_of, take_rows
from upturn._target import Target, decode, pack, read_target
from upturn._units import is_rate, unit_scale, unit_text
from upturn.metrics import Curve, Table, average_curves, uplift_curve
from upturn.metrics._compare import check_baseline
from upturn.metrics._multiple import holm
from upturn.metrics._registry import find_metric
from upturn.model_selection._journal import Journal
from upturn.model_selection._scorers import UpliftScorer, check_arms, control_of, uplift_scorer

_GRID = 101


def signed_rank_test(differences: Any) -> float:
    """Exact two-sided p-value of Wilcoxon's signed-rank test.

    Under the hypothesis that a difference is as likely to be positive as negative, all 2^n patterns of signs are equally
    likely, and the p-value is the share of them whose rank sum is at least as far from its mean. Equal sizes share their
    mean rank, zeros are left out, and the distribution is counted, not approximated.

    Parameters
    ----------
    differences : array-like of shape (n,)
        Paired differences, such as the AUUC of two models fold by fold.

    Returns
    -------
    float

    References
    ----------
    Wilcoxon, "Individual comparisons by ranking methods", 1945.

    Examples
    --------
    >>> from upturn.model_selection import signed_rank_test
    >>> signed_rank_test(range(1, 11)) == 2 / 2**10
    True
    """
    values = as_floats(as_column(to_numpy(differences, "differences"), "differences"), "differences")
    check_finite(values, "differences", "leave those folds out")
    values = values[values != 0]
    if len(values) == 0:
        return 1.0
    _, place, count = np.unique(np.abs(values), return_inverse=True, return_counts=True)
    ends = np.cumsum(count)
    doubled = (2 * ends - count + 1)[place]  # twice the mean rank of each value, a whole number
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled:  # each rank goes to either side
        ways[rank:] = (ways[rank:] + ways[: len(ways) - rank]) / 2
        ways[:rank] /= 2
    total = int(doubled.sum())
    seen = int(doubled[values > 0].sum())
    far = np.abs(2 * np.arange(total + 1) - total) >= abs(2 * seen - total)
    return float(min(1.0, ways[far].sum()))


class ModelComparison(Mapping[str, Floats]):
    """What :func:`compare_models` found; ``comparison["model"]`` holds that model's score on every split.

    Attributes
    ----------
    baseline : str
        The model the others are compared with.
    metric : str
        What was measured.
    curves : dict from str to Curve
        Uplift curves of the test parts, averaged over splits; empty for several arms.
    """

    def __init__(
        self,
        scores: dict[str, Floats],
        baseline: str,
        metric: str,
        curves: dict[str, Curve],
        test_share: float,
        library: str | None = None,
        rate: bool | None = None,
    ) -> None:
        self._scores, self.baseline, self.metric, self.curves = scores, baseline, metric, curves
        self._library, self._ratio = library, test_share / (1 - test_share)
        self._rate = (
            rate  # whether scores are rates, printed per 1,000 people, or per person; None where they are neither
        )

    def __getitem__(self, model: str) -> Floats:
        return self._scores[model]

    def __iter__(self) -> Any:
        return iter(self._scores)

    def __len__(self) -> int:
        return len(self._scores)

    def table(self) -> Table:
        """One row per model: mean and sd over splits, and the paired difference from the baseline.

        ``mark`` is ``*`` where the mean difference is larger than one standard deviation of the difference over splits
        and ``**`` where it is larger than two, as in Table 6.4.1 of Zaniewicz (2018), which leaves open whether the standard
        deviation is that of the difference or of the areas. ``wins`` counts the splits on which
        the model beat the baseline. ``p_signed_rank`` is the exact Wilcoxon test over splits. Splits share rows, which
        makes it too sure when they overlap; ``p_corrected`` is the t-test corrected for that (Nadeau and Bengio, 2003), and
        ``low`` and ``high`` are the ends of its 95% interval of the difference. ``p_holm`` is ``p_corrected`` adjusted for all the
        comparisons of the table by Holm's rule: of many models some one differs from the baseline by chance.
        Splits on which a score is not defined (NaN) are left out, for all models.
        """
        defined = np.isfinite(np.array(list(self.values()))).all(axis=0)
        base = self[self.baseline][defined]
        columns: dict[str, list[Any]] = {
            name: []
            for name in (
                "model",
                "mean",
                "sd",
                "difference",
                "low",
                "high",
                "mark",
                "wins",
                "p_signed_rank",
                "p_corrected",
            )
        }  # and p_holm, which needs all of them
        for model, all_scores in self.items():
            scores = all_scores[defined]
            d, n = scores - base, len(base)
            mean, sd = float(d.mean()) if n else np.nan, float(d.std(ddof=1)) if n > 1 else np.nan
            same = model == self.baseline
            mark = "" if same or not sd > 0 else "**" if abs(mean) > 2 * sd else "*" if abs(mean) > sd else ""
            se = sd * np.sqrt(1 / n + self._ratio) if sd > 0 else np.nan
            t, reach = mean / se, float(stdtrit(n - 1, 0.975)) * se if n > 1 else np.nan
            row = {
                "model": model,
                "mean": float(scores.mean()) if n else np.nan,
                "sd": float(scores.std(ddof=1)) if n > 1 else np.nan,
                "difference": np.nan if same else mean,
                "low": np.nan if same else mean - reach,
                "high": np.nan if same else mean + reach,
                "mark": mark,
                "wins": int((d > 0).sum()),
                "p_signed_rank": np.nan if same or not n else signed_rank_test(d),
                "p_corrected": np.nan if same or np.isnan(t) else float(2 * stdtr(n - 1, -abs(t))),
            }
            for name, value in row.items():
                columns[name].append(value)
        columns["p_holm"] = holm(np.array(columns["p_corrected"])).tolist()
        notes = ["* and **: mean difference above one and two standard deviations over splits"]
        several = len(self) > 2
        if several:
            notes.append(f"p_holm: p_corrected, adjusted for {len(self) - 1} comparisons")
        if not defined.all():
            notes.append(f"left out: {plural(int((~defined).sum()), 'split')} on which a score is not defined")
        scale, unit = unit_scale(bool(self._rate)), "" if self._rate is None else f", {unit_text(self._rate)},"
        numbers = dict.fromkeys(("mean", "sd", "difference", "low", "high"), lambda value: number_text(scale * value))
        return Table(
            columns,
            title=f"{self.metric}{unit} over {plural(len(base), 'split')}, against {self.baseline!r}, 95% intervals",
            notes=notes,
            formats=numbers
            | dict.fromkeys(("p_signed_rank", "p_corrected"), _p_text)
            | {"p_holm": _p_text if several else None},  # of one comparison it is the same
            library=self._library,
        )

    def to_frame(self) -> Any:
        """The table as a frame of the library X came in."""
        return self.table().to_frame()

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def _p_text(value: float) -> str:
    return NOT_AVAILABLE if np.isnan(value) else f"{value:.4f}"


def _is_rate(scorer: Any, target: Target) -> bool | None:
    """Whether a scorer's numbers are rates of people (True), outcomes per person (False), or neither (None)."""
    if not isinstance(scorer, UpliftScorer):
        return None
    metric = find_metric(scorer.metric)
    definition = metric.choose(scorer.options)
    per_person = definition is None or definition[0].per_person
    return is_rate(target) if per_person else None


def compare_models(
    models: Mapping[str, Any],
    X: Any,
    y: Any,
    treatment: Any = None,
    sample_weight: Any = None,
    *,
    cv: Any = None,
    groups: Any = None,
    metric: str | UpliftScorer = "auuc",
    baseline: str | None = None,
    resume: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    random_state: Any = None,
) -> ModelComparison:
    """Fit and score several models on the same repeated splits.

    Parameters
    ----------
    models : mapping from name to estimator
        Unfitted models; a clone of each is fitted on every training part.
    X, y, treatment, sample_weight
        The experiment; no treatment when ``y`` is packed. All but X, and ``groups``, may be names of columns of X.
    cv : int or splitter, optional
        By default :class:`RepeatedUpliftSplit` with ten random 80/20 splits; the papers take 128 or 256. A number means that
        many folds of :class:`UpliftKFold`. A splitter of scikit-learn is given the arms as ``y``, so that stratified ones deal them evenly.
    groups : array-like of shape (n,), optional
        The cluster of every row, such as a household or a shop, which no split cuts: repeated splits and folds are then of
        whole clusters, as in :class:`UpliftGroupKFold`.
    metric : str or scorer
        A metric of :func:`uplift_scorer` by name, or a scorer, such as one with options.
    baseline : str, optional
        The model the others are compared with; by default the first.
    resume : path, optional
        A file to which every result is added as it is found, one line of JSON each. Run again after an interruption, what
        the file holds is not computed again; results of other data, splits, parameters or metrics in it are left alone.
        A parameter that is a function counts as another one in every session.
        Give ``random_state`` (or a seeded ``cv``), or the splits are others each time.
    n_jobs : int, optional
        Threads over models and splits; the result does not depend on it.
    verbose : int
        A progress bar when 1.
    random_state : int, RandomState or None
        Seed of the splits where ``cv`` is a number or left out.

    Returns
    -------
    ModelComparison

    References
    ----------
    Zaniewicz, "Support Vector Machines for Uplift Modeling", 2018, section 6.4.
    Nadeau, Bengio, "Inference for the generalization error", 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from upturn.meta import ClassTransformation
    >>> from upturn.model_selection import compare_models
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(600, 2)), rng.integers(0, 2, 600)
    >>> y = rng.random(600) < 0.5 + 0.3 * treatment * np.sign(X[:, 0])
    >>> models = {"plain": ClassTransformation(), "heavily shrunk": ClassTransformation(LogisticRegression(C=1e-6))}
    >>> compare_models(models, X, y, treatment, random_state=0)["plain"].shape
    (10,)
    """
    if isinstance(models, Mapping) and not models:
        raise ValueError("models is empty: expected a mapping from names to estimators, as {'forest': UpliftForest()}")
    if not isinstance(models, Mapping) or not all(hasattr(model, "fit") for model in models.values()):
        raise ValueError(
            f"models={reprlib.repr(models)}: expected a mapping from names to estimators, as {{'forest': UpliftForest()}}"
        )
    check_baseline(baseline, models)
    check("verbose", verbose, VERBOSE)
    check("n_jobs", n_jobs, JOBS)
    check("random_state", random_state, SEED)
    check(
        "metric",
        metric,
        Rule("the name of a metric, such as 'auuc', or a scorer", lambda m: isinstance(m, str) or callable(m)),
    )
    if isinstance(metric, type):
        raise ValueError(f"metric={metric!r} is a class: expected the name of a metric, such as 'auuc', or a scorer")
    baseline = next(iter(models)) if baseline is None else baseline
    if X is None:
        raise ValueError("X is None: expected a table with one row per person and one column per feature")
    X, columns, _ = take_named(X, y=y, treatment=treatment, sample_weight=sample_weight, groups=groups)
    y, treatment, sample_weight, groups = columns.values()
    target = read_target(y, treatment, sample_weight, any_control=True)
    packed = pack(target.y, decode(target.labels, target.arm), target.weight) if treatment is not None else y
    if treatment is None and sample_weight is not None:
        raise ValueError("y is packed: put the weights into it, as pack(y, treatment, sample_weight)")
    cv = RepeatedUpliftSplit(10, random_state=random_state) if cv is None else cv
    splits = folds_of(X, target, cv, make_seed(random_state), groups)
    scorer = uplift_scorer(metric) if isinstance(metric, str) else metric
    journal = Journal(resume, X, target, scorer)

    def run(job: tuple[str, int]) -> dict[str, Any]:
        name, number = job
        train, test = splits[number]
        known = journal.find(name, models[name], train, test)
        if known is not None:
            return known
        for part in (train, test):  # before the model would learn from, or be scored on, fewer arms than there are
            read_target(packed[part], known=(target.control, target.arms))
        model = clone(models[name]).fit(take_rows(X, train), packed[train])
        held_out, y_test = take_rows(X, test), packed[test]
        check_arms(model, y_test)  # a scorer of another kind may not
        found: dict[str, Any] = {"score": float(scorer(model, held_out, y_test))}
        if target.n_arms == 1:
            curve = uplift_curve(y_test, model.predict(held_out), control=control_of(model))
            found["curve"] = curve(np.linspace(0, 1, _GRID)).tolist()
        journal.add(name, models[name], train, test, found)
        return found

    jobs = [(name, number) for number in range(len(splits)) for name in models]
    found = dict(zip(jobs, run_parallel(run, jobs, n_jobs=n_jobs, verbose=verbose, description="models"), strict=True))
    numbers = range(len(splits))
    scores = {name: np.array([found[name, number]["score"] for number in numbers]) for name in models}
    curves = {}
    if target.n_arms == 1:
        x = np.linspace(0, 1, _GRID)
        for name in models:
            drawn = [Curve(x, np.array(found[name, number]["curve"])) for number in numbers]
            curves[name] = average_curves(drawn, _GRID, interval=0.68 if len(drawn) > 1 else None)
    share = float(np.mean([len(test) / (len(train) + len(test)) for train, test in splits]))
    measured = scorer.metric if isinstance(scorer, UpliftScorer) else "score"
    return ModelComparison(scores, baseline, measured, curves, share, library_of(X), _is_rate(scorer, target))
