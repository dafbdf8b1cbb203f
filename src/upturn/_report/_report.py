"""`upturn.report`: the whole job, from an experiment to a page with a decision."""

from __future__ import annotations

import contextlib
import datetime
import os
import secrets
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from upturn._check import check as examine
from upturn._columns import file_to_write, read_outcome, to_numpy
from upturn._parameters import INTERVAL, JOBS, NONE, TEXT, VERBOSE, Rule, check, one_of, whole
from upturn._report._answer import Answer, Words, answer
from upturn._report._found import Found
from upturn._report._held_out import ONE_RULE, Experiment, default_models, one_rule, score_held_out
from upturn._report._html import render
from upturn._report._measure import Money, Options, measure
from upturn._report._page import make_page
from upturn._report._people import describe
from upturn._report._pictures import draw
from upturn._rows import take_named
from upturn._splitters import take_rows
from upturn._target import Label, open_packed, read_measured
from upturn.policy import Targeting

# Who hears what is being done, and how many such steps there are: the command.
listener: Callable[[str, int], None] | None = None


class Report:
    """What :func:`upturn.report` found; ``save`` writes the page.

    Attributes
    ----------
    answer : Answer
        ``kind`` ("recommend", or why nothing is: "ranking", "random", "rule", "unsound"), ``sentence``, ``sure`` and ``advice``.
    check : CheckReport
    plan : Targeting
        Whom to treat, by scores of models that have not seen them.
    scores : dict from str to array of shape (n, K)
        Held-out scores of every model; ``rows`` are the row numbers they are of, those with an outcome.
    html : str
        The page.
    """

    def __init__(self, found: Found, rows: Any) -> None:
        self._found, self.rows = found, rows

    @property
    def answer(self) -> Answer:
        """What to do, and how sure that is."""
        return self._found.answer

    @property
    def check(self) -> Any:
        """Whether the experiment is sound."""
        return self._found.check

    @property
    def plan(self) -> Targeting:
        """Whom to treat."""
        return self._found.measured.plan

    @property
    def scores(self) -> dict[str, Any]:
        """Held-out scores by model."""
        return self._found.held.scores

    @cached_property
    def page(self) -> dict[str, Any]:
        """The values the page is made of: text, tables and the numbers of its charts."""
        return make_page(self._found)

    @cached_property
    def html(self) -> str:
        """The page, a single file without anything outside it."""
        return render(self.page, draw(self._found))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, whole or not at all, and return its path."""
        target = file_to_write(path)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        try:
            temporary.write_text(self.html, encoding="utf-8")
            os.replace(temporary, target)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        return Path(path)

    def __repr__(self) -> str:
        return "\n".join([self.answer.sentence, *self.answer.sure, *(f"- {line}" for line in self.answer.advice)])

    def _repr_html_(self) -> str:
        from html import escape

        return f'<iframe srcdoc="{escape(self.html)}" style="width:100%;height:720px;border:0" title="report"></iframe>'


def report(
    X: Any,
    y: Any,
    treatment: Any = None,
    *,
    estimator: Any = None,
    models: Mapping[str, Any] | None = None,
    sample_weight: Any = None,
    control: Label | None = None,
    groups: Any = None,
    cost: Any = None,
    value: Any = None,
    budget: float | None = None,
    fraction: float | None = None,
    audience: Literal["business", "trial"] = "business",
    outcome: str = "the outcome",
    title: str | None = None,
    cv: int = 5,
    interval: float = 0.95,
    n_bootstrap: int = 200,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
    about: Mapping[str, Any] | None = None,
) -> Report:
    """Do the whole job, and put it on one page: is the experiment sound, for whom did it work, whom to treat next.

    Every row is scored by a model that was fitted to other rows (``cv`` folds), so that everything on the page is measured on
    people the models have not seen. The page is about one model; it is compared with others and with the best single
    rule, by paired intervals. If it does not beat chance, or a single rule, or the experiment is not sound, the page
    says so and recommends nothing.

    Parameters
    ----------
    X : table of n rows
        Features known before the treatment.
    y : array of shape (n,)
        Outcome, larger is better; missing values (NaN) are counted, and left out of everything but the check. Or a packed target.
    treatment : array of shape (n,)
        Labels of the arms; left out when y is packed. y, treatment, sample_weight and groups may also be names of columns of X.
    estimator : model, optional
        The model of the page; by default :class:`upturn.ensemble.UpliftAuto`, which chooses anew in every fold. One that knows a single arm is fitted once per arm, and one whose scores
        only rank people is calibrated.
    models : mapping from name to model, optional
        What it is compared with, besides a single rule; by default two separate models.
    sample_weight, control
        As everywhere.
    groups : array of shape (n,), optional
        Rows that belong together, such as a household: on one side of every split, and drawn as a whole for intervals.
    cost, value, budget, fraction
        As in :func:`upturn.policy.target`: what treating costs, what a unit of the outcome is worth, and what to spend, or
        the share to treat. By default everybody it pays to treat.
    audience : {"business", "trial"}
        "trial" speaks of patients and not of money, counts who was assigned and analysed, and has effects by subgroup with
        adjusted p-values.
    outcome, title : str
        What the outcome is called, and the page.
    cv : int
        Folds.
    interval : float
        Confidence level of the intervals.
    n_bootstrap : int
        Replicates behind them.
    random_state : int
        Seed of folds, models without one of their own, and replicates.
    n_jobs : int, optional
        Threads.
    verbose : int
        1 prints what is being done.
    about : mapping, optional
        What the page says besides: ``source``, ``command``, ``python`` (the lines that make the page again), ``leaks``,
        ``left out`` (why, by column) and ``without an arm`` (a number of rows), as the command puts them in.

    Returns
    -------
    Report
        ``save("report.html")`` writes the page; printed, it is the answer.

    Examples
    --------
    >>> import upturn as up
    >>> from upturn.datasets import simulate_campaign
    >>> from upturn.trees import UpliftTree
    >>> data = simulate_campaign(2000, random_state=0)
    >>> page = up.report(data.X, data.y, data.treatment, estimator=UpliftTree(max_depth=3), models={}, cv=2)
    >>> page.answer.kind in ("recommend", "ranking", "rule", "random", "unsound")
    True
    >>> page.save("report.html")  # doctest: +SKIP
    """
    check("audience", audience, one_of("business", "trial"))
    check("interval", interval, INTERVAL)
    check("cv", cv, whole(least=2))
    check("n_bootstrap", n_bootstrap, whole(least=2))
    check("random_state", random_state, whole(least=0))
    check("n_jobs", n_jobs, JOBS)
    check("verbose", verbose, VERBOSE)
    check("outcome", outcome, TEXT)
    check("title", title, TEXT | NONE)
    check("estimator", estimator, Rule("a model, as UpliftForest()", _is_model) | NONE)
    check("about", about, Rule("a mapping, as {'source': 'campaign.csv'}", lambda a: isinstance(a, Mapping)) | NONE)
    several = "a mapping from names to models, as {'boosting': UpliftBoosting()}"
    check(
        "models",
        models,
        Rule(several, lambda m: isinstance(m, Mapping) and all(map(_is_model, m.values()))) | NONE,
    )
    if audience == "trial" and (cost is not None or value is not None):
        raise ValueError(
            "cost and value are for audience='business': a trial's page speaks of no money; leave them out"
        )
    if cost is None and np.ndim(value) > 0:
        raise ValueError(
            "value is one per person, and there is no cost to weigh it against: give cost= as well, or one value for all"
        )
    if value is not None and not np.any(value):
        raise ValueError(
            "value is 0 for everybody, so nobody is worth what treating costs: give what one unit of the outcome is worth, such as value=25, or leave it out"
        )
    day = _today()
    seed = int(random_state)
    options, words = Options(float(interval), int(n_bootstrap), seed, n_jobs), Words(outcome, audience == "trial")
    money = Money(cost, value, budget, fraction)

    main, contestants = default_models(estimator, seed, n_jobs)
    if models is not None:
        contestants = {main: contestants[main], **models}
    contestants[ONE_RULE] = one_rule(seed, n_jobs)

    def say(step: str) -> None:
        if verbose:
            print(step, flush=True)
        if listener is not None:
            listener(step, len(contestants) * int(cv) + 3)

    X, columns, _ = take_named(X, y=y, treatment=treatment, sample_weight=sample_weight, groups=groups)
    y, treatment, sample_weight, groups = columns.values()
    say("checking the experiment")
    checked = examine(X, y, treatment, sample_weight=sample_weight, control=control, groups=groups, random_state=seed)
    data, rows, money = _observed(X, y, treatment, sample_weight, control, groups, money)
    if data.target.y.min() == data.target.y.max():
        raise ValueError(
            f"{outcome} is {data.target.y[0]:g} in every row, so no effect can be seen in it: give one that differs between people"
        )
    held = score_held_out(contestants, data, int(cv), seed, say, n_jobs=n_jobs, sound=checked.ok)
    say("measuring")
    measured = measure(main, held, data, money, options)
    say("describing")
    people = describe(measured, held, data, options, trial=words.trial)
    leaks = [leak["column"] for leak in (about or {}).get("leaks", ())]
    said = answer(checked, list(dict.fromkeys(leaks)), measured, people, data, options, words, money, held)
    source = {
        "python": _python_lines(estimator, money, audience, outcome, cv, seed),
        "next": _next_lines(contestants[main], money),
        "title": title,
        "date": day,
        **(about or {}),
    }
    lost = checked.n - len(data.target)
    return Report(Found(checked, data, held, measured, people, said, money, options, words, source, lost), rows)


def _today() -> str:
    """The date, or that of a build which must come out the same again."""
    stamp = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        day = datetime.datetime.fromtimestamp(int(stamp), datetime.UTC).date() if stamp else datetime.date.today()
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"SOURCE_DATE_EPOCH is {stamp!r}: expected seconds since 1970, as 1700000000; unset it for today's date"
        ) from None
    return f"{day.day} {day:%B %Y}"


def _is_model(value: Any) -> bool:
    return not isinstance(value, type) and all(hasattr(value, name) for name in ("fit", "predict", "get_params"))


def _observed(
    X: Any, y: Any, treatment: Any, sample_weight: Any, control: Label | None, groups: Any, money: Money
) -> tuple[Experiment, Any, Money]:
    """The rows with an outcome, behind the gates."""
    y, treatment, sample_weight, control = open_packed(y, treatment, sample_weight, control)
    seen = ~np.isnan(read_outcome(y, missing=True))
    rows, n = np.flatnonzero(seen), len(seen)

    def part(column: Any, name: str) -> Any:
        if column is None or len(rows) == n:
            return None if column is None else to_numpy(column, name)
        return to_numpy(column, name)[rows]

    target = read_measured(
        part(y, "y"), part(treatment, "treatment"), part(sample_weight, "sample_weight"), control=control
    )
    kept = X if len(rows) == n else take_rows(X, rows)
    if len(rows) < n:
        cost, value = (
            v[rows] if isinstance(v, np.ndarray) and v.shape[:1] == (n,) else v for v in (money.cost, money.value)
        )
        money = Money(cost, value, money.budget, money.fraction)
    return Experiment(kept, target, part(groups, "groups")), rows, money


def _prices(money: Money) -> list[str]:
    """Cost, value, and what to spend, as keywords."""
    given = {name: getattr(money, name) for name in ("cost", "value", "budget", "fraction")}
    return [
        f"{name}={value!r}" if np.ndim(value) == 0 else f"{name}={name}"
        for name, value in given.items()
        if value is not None
    ]


def _next_lines(model: Any, money: Money) -> str:
    """What chooses from a list of new people."""
    made = " ".join(repr(model).split())
    keywords = ", ".join(["model.predict(X_next)", *_prices(money), "control=model.control_", "arms=model.arms_"])
    return f"model = {made}.fit(X, y, treatment)\nplan = up.policy.target({keywords})\nplan.order  # the rows to treat, the best first"


def _python_lines(estimator: Any, money: Money, audience: str, outcome: str, cv: int, seed: int) -> str:
    """What makes this page again, given X, y and treatment."""
    parts = ["X", "y", "treatment"]
    if estimator is not None:
        parts.append(f"estimator={' '.join(repr(estimator).split())}")
    parts += _prices(money)
    if audience != "business":
        parts.append(f"audience={audience!r}")
    parts += [f"outcome={outcome!r}", f"cv={cv}", f"random_state={seed}"]
    return f'import upturn as up\n\npage = up.report({", ".join(parts)})\npage.save("report.html")'
