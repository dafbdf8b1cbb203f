"""``upturn report``: the whole job, from a file to one page with a decision."""

from __future__ import annotations

import contextlib
import importlib.util
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from upturn.cli._command import Session
from upturn.cli._fit import MODEL, SETTINGS
from upturn.cli._roles import LISTS
from upturn.cli._say import UserError, Voice

if TYPE_CHECKING:
    from upturn.cli._load import Loaded


# How far models that search do so here, where they search anew in every fold, and how exactly a slow one is solved; what --set says goes before.
_EFFORT = {
    "DifferentialSVM": ["tol=1e-6"],
    "UpliftAuto": ["cv=3"],
    "UpliftStacking": ["cv=2"],
    "UpliftSVMCV": ["cv=2", "Cs=[0.01, 1, 100]", "ratios=[1, 2]"],
}


def report(
    session: Session,
    output: Annotated[str, typer.Option("--output", "-o", help="File to write the page to.")] = "report.html",
    model: MODEL = "auto",
    settings: SETTINGS = None,
    models: Annotated[
        str | None, typer.Option("--models", help="Models to compare it with, commas between; by default t.")
    ] = None,
    cost: Annotated[
        str | None,
        typer.Option(
            "--cost",
            help="Of treating one person: 1.2, or a column, or one of the two for each arm, as call=4,coupon=1.",
        ),
    ] = None,
    value: Annotated[
        str | None, typer.Option("--value", help="What a unit of the outcome is worth: 25, or a column.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option("--budget", help="Money to spend, given costs; otherwise people to treat.")
    ] = None,
    fraction: Annotated[float | None, typer.Option("--fraction", help="Share of people to treat.")] = None,
    audience: Annotated[
        str, typer.Option("--audience", help="business, or trial: patients, subgroups and p-values, no money.")
    ] = "business",
    title: Annotated[str | None, typer.Option("--title", help="Title of the page.")] = None,
    folds: Annotated[
        int, typer.Option("--folds", min=2, help="Folds: every row is scored by a model of the others.")
    ] = 5,
) -> int:
    """Do the whole job and write one page: is the experiment sound, for whom did it work, whom to treat, what does it bring.

    The page is a single file that needs no network: send it, print it, open it anywhere. Everything on it is measured on rows the models have not seen; where nothing beats chance, or a single rule, it says so and recommends nothing.
    """
    from upturn import report as make
    from upturn.cli._load import load, tell_leaks
    from upturn.cli._models import class_name, make_model
    from upturn.cli._write import whole_file
    from upturn.policy._gate import read_limit

    voice = session.voice
    if importlib.util.find_spec("jinja2") is None:
        raise UserError("a report needs jinja2: pip install 'upturn[report]'")
    if not output.lower().endswith((".html", ".htm")):
        raise UserError(f"{output}: the page is HTML, so its name should end in .html; a browser prints it as PDF")
    if audience not in ("business", "trial"):
        raise UserError(f"--audience {audience}: expected business or trial")
    if audience == "trial" and (cost is not None or value is not None):
        raise UserError("--audience trial speaks of no money: leave out --cost and --value")
    read_limit(fraction, budget, 0, by_person=cost is None)
    names = [] if models is None else [name.strip() for name in models.split(",") if name.strip()]
    for name in (model, *names):
        class_name(name)  # before anything is read
    given = {
        "model": None if model == "auto" else model, "set": settings, "models": models, "cost": cost, "value": value,
        "budget": budget, "fraction": fraction, "audience": None if audience == "business" else audience, "title": title,
        "folds": None if folds == 5 else folds,
    }  # fmt: skip
    data = load(voice, session.roles, session.file, missing_outcomes=True, writes=[output])
    leaks = tell_leaks(voice, data)
    common: dict[str, Any] = {
        "control": data.control,
        "n_arms": data.target.n_arms,
        "seed": session.seed,
        "jobs": session.jobs,
    }
    made = make_model(model, [*_EFFORT.get(class_name(model), ()), *(settings or ())], **common)
    others = {name: make_model(name, (), **common) for name in names}
    with whole_file(output) as place, _heard(voice, f"{len(data.y):,} rows and {data.X.width} features"):
        found = make(
            data.X, data.y, data.treatment,
            estimator=made,
            models=others if models is not None else None,
            sample_weight=data.weight, control=data.control, groups=data.group,
            cost=_price(cost, data, "cost"), value=_price(value, data, "value"),
            budget=budget, fraction=fraction, audience=audience,  # type: ignore[arg-type]
            outcome=_outcome(data),
            title=title, cv=folds, random_state=session.seed, n_jobs=session.jobs,
            about={"source": data.source.name, "command": _command(session, data, output, given), "next": _next(session, data, given), "python": _python_lines(session, data, output, given, {"": made, **others}), "leaks": [vars(leak) for leak in leaks], "left out": _left_out(data), "without an arm": data.armless},
        )  # fmt: skip
        place.write_text(found.html, encoding="utf-8")
    answer, plan, recommends = found.answer, found.plan, found.answer.kind == "recommend"
    voice.result(
        f"{found!r}\n\nThe page: {output}",
        output=output,
        recommends=recommends,
        kind=answer.kind,
        answer=answer.sentence,
        sure=answer.sure,
        advice=answer.advice,
        sound=found.check.ok,
        rows=plan.n,
        treated=plan.n_treated if recommends else None,
        per_1000=plan.per_1000 if recommends else None,
        profit=plan.profit if recommends else None,
    )
    return 0


@contextlib.contextmanager
def _heard(voice: Voice, what: str) -> Iterator[None]:
    """Steps of a report, said while it is made."""
    from upturn._report import _report

    with voice.steps(what) as begin:
        _report.listener = begin
        try:
            yield
        finally:
            _report.listener = None


def _price(text: str | None, data: Loaded, role: str) -> Any:
    """A cost or a value, with the columns of the table that its names mean."""
    from upturn.cli._say import did_you_mean
    from upturn.cli._target import fill_price, price_columns, read_price

    arms = data.target.arms
    price = read_price(text, arms if role == "cost" else [])
    for name in price_columns(price):
        if name not in data.frame.columns:
            raise UserError(
                f"--{role} {name}: it is no number, and no column of {data.source.name}; {did_you_mean(name, data.frame.columns)}"
            )
    return fill_price(price, data.frame, arms, role)


def _left_out(data: Loaded) -> dict[str, str]:
    """Columns that are no features and have no other role, and why: the same whether they were named or found."""
    from upturn.cli._dates import undecided_dates

    left = dict.fromkeys(data.roles.id, "identifier")
    there = [name for name in data.roles.drop if name in data.source.columns]
    for column in data.source.scan(sample=True).select(there).head(1000).collect():
        dates = column.dtype.is_temporal() or undecided_dates(column)
        left[column.name] = "dates" if dates else "lists" if column.dtype.is_nested() else "dropped"
    return left


def _command(session: Session, data: Loaded, output: str, given: dict[str, Any]) -> str:
    """The command line that makes the page again."""
    return shlex.join(["upturn", "report", *_table(session, data), *_flags(given), *_end(session), "-o", output])


def _next(session: Session, data: Loaded, given: dict[str, Any]) -> str:
    """The command lines that learn from the same table, and choose from the next list."""
    fit, choose = ("model", "set"), ("cost", "value", "budget", "fraction")
    learn = [*_table(session, data), *_flags(given, *fit), *_end(session), "-o", "model.upturn"]
    pick = ["model.upturn", "next.csv", *_flags(given, *choose), *_end(session), "-o", "list.csv"]
    return f"{shlex.join(['upturn', 'fit', *learn])}\n{shlex.join(['upturn', 'target', *pick])}"


def _table(session: Session, data: Loaded) -> list[str]:
    """The table and the roles of its columns as words of a command line."""
    roles, source = data.roles, data.source
    single = {**roles.named, "control": str(data.control)}
    several = [(role, name) for role in LISTS for name in getattr(roles, role)]
    words = [source.name if source.content is None else "-"]
    words += ["--delimiter", source.delimiter] if source.delimiter else []
    return words + [word for role, name in (*single.items(), *several) for word in (f"--{role}", name)]


def _flags(given: dict[str, Any], *names: str) -> list[str]:
    """Options as they were given, as often as they were."""
    values = {name: given[name] for name in names or given}
    return [word for name, value in values.items() for one in _several(value) for word in (f"--{name}", str(one))]


def _end(session: Session) -> list[str]:
    return [*(["--roles", session.file] if session.file else []), "--seed", str(session.seed)]


def _several(value: Any) -> tuple[Any, ...]:
    return () if value is None else tuple(value) if isinstance(value, list) else (value,)


def _outcome(data: Loaded) -> str:
    name = data.roles.outcome or ""
    return name if data.found.success is None else name.partition("=")[0]


_READERS = {"csv": "read_csv", "parquet": "read_parquet", "arrow": "read_ipc", "jsonl": "read_ndjson"}


def _python_lines(session: Session, data: Loaded, output: str, given: dict[str, Any], models: dict[str, Any]) -> str:
    """The lines of Python that make the page again; the model of the page is the first of ``models``."""
    roles, (model, *others) = data.roles, models.items()
    keywords: dict[str, Any] = {
        "control": data.control,
        "outcome": _outcome(data),
        "random_state": session.seed,
        "n_jobs": session.jobs,
    }
    for key in ("budget", "fraction", "audience", "title"):
        if given[key] is not None:
            keywords[key] = given[key]
    written = [f"estimator={_made(model[1])}"]
    if given["models"] is not None:
        written.append("models={" + ", ".join(f"{name!r}: {_made(other)}" for name, other in others) + "}")
    written += [f"{key}={value!r}" for key, value in keywords.items()]
    written += [f"sample_weight=data[{roles.weight!r}]"] if roles.weight else []
    written += [f"groups=data[{roles.group!r}]"] if roles.group else []
    written += [f"cv={given['folds']}"] if given["folds"] else []
    for key in ("cost", "value"):
        price = _price_words(given[key], data, key)
        written += [f"{key}={price}"] if price else []
    reading, outcome = _reading(data)
    call = ",\n    ".join(["X", outcome, f"data[{roles.treatment!r}]", *written])
    homes = sorted({(type(made).__module__.rpartition(".")[0], type(made).__name__) for _, made in (model, *others)})
    return "\n".join(
        [
            "import polars as pl",
            "import upturn as up",
            *(f"from {home} import {name}" for home, name in homes),
            "",
            *reading,
            f"page = up.report(\n    {call},\n)",
            f"page.save({output!r})",
        ]
    )


def _made(model: Any) -> str:
    return " ".join(repr(model).split())


def _reading(data: Loaded) -> tuple[list[str], str]:
    """The lines that read the table as the command did, and what the outcome is then."""
    import polars as pl

    from upturn.cli._dates import python_of
    from upturn.cli._formats import csv_options
    from upturn.cli._load import success_of

    source, roles, name = data.source, data.roles, _outcome(data)
    arm, reader = roles.treatment or "", _READERS.get(source.kind)
    if source.content is not None or reader is None:
        lines = [f"data = ...  # {source.name} as a table of polars"]
    else:
        options = csv_options(source) if source.kind == "csv" else {}
        where = repr(source.files[0] if len(source.files) == 1 else list(source.files))
        lines = [f"data = pl.{reader}({', '.join([where, *(f'{key}={value!r}' for key, value in options.items())])})"]
    frame = data.frame
    if data.armless:
        lines.append(f"data = data.filter(pl.col({arm!r}).is_not_null())")
    lines.append(f"X = data.select({list(data.found.features)!r})")
    for column, written in source.dates.items():
        if column in data.found.features:
            lines.append(f"X = X.with_columns({python_of(column, written)})")
    for column in data.found.features:  # numbers, as models want them
        kind = frame.schema[column]
        if kind in (pl.Date, pl.Datetime):
            days = f'pl.col({column!r}).cast(pl.Datetime("us")).dt.timestamp("us") / 86_400e6'
            lines.append(f"X = X.with_columns({days})  # days since 1970")
        elif kind.is_temporal():
            lines.append(f"X = X.with_columns(pl.col({column!r}).cast(pl.Int64).cast(pl.Float64))")
    success = data.found.success or success_of(frame[name])
    return lines, f"data[{name!r}]" + ("" if success is None else f".cast(pl.String) == {success!r}")


def _price_words(text: str | None, data: Loaded, role: str) -> str:
    """A cost or value of the command line as Python has it."""
    from upturn.cli._target import price_columns, read_price

    arms = data.target.arms
    price = read_price(text, arms if role == "cost" else [])
    names = price_columns(price)
    if not names:
        return "" if price is None else repr(price)
    if role == "value" or len(arms) == 1:
        return f"data[{names[0]!r}].to_numpy()"
    by_arm = {str(arm): price[arm] if isinstance(price, dict) else price for arm in arms}
    columns = [f"{arm!r}: pl.{'col' if isinstance(one, str) else 'lit'}({one!r})" for arm, one in by_arm.items()]
    return f"data.select(**{{{', '.join(columns)}}}).to_numpy()"
