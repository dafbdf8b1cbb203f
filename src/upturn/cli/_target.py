"""``upturn target``: whom to treat, and with what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from upturn.cli._command import Session
from upturn.cli._say import UserError, did_you_mean, rows_of
from upturn.cli._score import MODEL_FILE, TRUSTED

if TYPE_CHECKING:
    import polars as pl

    from upturn.cli._measure import Measured


_LISTED = ("arm", "uplift")  # columns of a list, beside the identifiers


def target(
    session: Session,
    model: MODEL_FILE,
    budget: Annotated[
        float | None, typer.Option("--budget", help="Money to spend, given costs; otherwise people to treat.")
    ] = None,
    fraction: Annotated[float | None, typer.Option("--fraction", help="Share of people to treat.")] = None,
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
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="File to write the list to: .parquet, .csv, .jsonl or .arrow.")
    ] = None,
    everyone: Annotated[
        bool, typer.Option("--everyone", help="List everybody in the order of the table, also those not to treat.")
    ] = False,
    trust: TRUSTED = None,
) -> int:
    """Choose whom to treat for a budget, and write the list: identifiers, arm, predicted uplift, the most rewarding first.

    Where the table has the outcome and the treatment of an experiment that the model has not seen, gains are measured, with intervals; otherwise they are what the model predicts.
    """
    from upturn._report._held_out import gives_effects
    from upturn.cli._measure import measure
    from upturn.cli._predict import load_model
    from upturn.cli._write import check_table_name
    from upturn.policy import target as choose
    from upturn.policy._gate import read_limit

    voice = session.voice
    if output is not None:
        check_table_name(output, [model])
    read_limit(fraction, budget, 0, by_person=cost is None)
    fitted = load_model(model, trust, 1)
    if fraction is None:
        fitted._refuse_without_zero()
    if not gives_effects(fitted):
        voice.note(
            f"note: scores of {type(fitted).__name__} put people in an order and are no effects: a predicted gain or profit means nothing, a "
            "measured one does"
        )
    prices, worth = read_price(cost, fitted.arms_), read_price(value, [])
    columns = {**dict.fromkeys(price_columns(prices), "cost"), **dict.fromkeys(price_columns(worth), "value")}
    found = measure(session, fitted, experiment=False, more=columns, writes=[output])
    if output is not None:
        found.asked.refuse_names(found.asked.id_names, _LISTED)
    with voice.step(f"choosing from {len(found.score):,} people"):
        plan = choose(
            found.score,
            fraction=fraction,
            budget=budget,
            cost=fill_price(prices, found.frame, fitted.arms_, "cost"),
            value=fill_price(worth, found.frame, fitted.arms_, "value"),
            y=found.y,
            treatment=found.treatment,
            sample_weight=found.weight,
            groups=found.group,
            control=fitted.control_,
            arms=fitted.arms_,
            random_state=session.seed,
            n_jobs=session.jobs,
        )
    if output is not None:
        _write_list(found, plan, output, everyone)
    voice.result(
        f"{plan!r}\n\n{plan.comparison!r}" + (f"\n\nThe list: {output}" if output is not None else ""),
        people=plan.n,
        treated=plan.n_treated,
        cost=plan.cost,
        left=plan.left,
        measured=plan.measured,
        gain=plan.gain,
        per_1000=plan.per_1000,
        profit=plan.profit,
        predicted_gain=plan.predicted_gain,
        predicted_profit=plan.predicted_profit,
        comparison=rows_of(plan.comparison),
        output=output,
    )
    return 0


def _write_list(found: Measured, plan: Any, output: str, everyone: bool) -> None:
    import numpy as np
    import polars as pl

    from upturn.cli._write import write_table

    rows = np.arange(plan.n) if everyone else plan.order.astype(np.int64)
    arm = plan.arm[rows].astype(np.int64)
    chosen = np.where(arm > 0, found.score[rows, np.maximum(arm - 1, 0)], 0.0)
    labels = [str(label) for label in plan.rule.labels]
    ids = found.frame.select(found.asked.id_names)[rows]
    listed = ids.with_columns(
        arm=pl.Series([labels[code] for code in arm.tolist()], dtype=pl.String), uplift=pl.Series(chosen)
    )
    write_table(listed.lazy(), output)


def _number(text: str) -> float | str:
    """A number, or the name of a column."""
    try:
        return float(text)
    except ValueError:
        return text.strip()


def read_price(text: str | None, arms: list[Any]) -> Any:
    """A cost or a value: a number, the name of a column, or one of the two for each arm."""
    if text is None:
        return None
    if "=" not in text:
        return _number(text)
    labels, prices = {str(arm): arm for arm in arms}, {}
    for part in text.split(","):
        name, _, price = (word.strip() for word in part.rpartition("="))
        if not labels:
            raise UserError(f"--value {text}: expected a number or a column; an outcome is worth the same in every arm")
        if name not in labels:
            raise UserError(f"--cost {text}: there is no arm {name!r}; {did_you_mean(name, labels)}")
        prices[labels[name]] = _number(price)
    missing = [name for name, arm in labels.items() if arm not in prices]
    if missing:
        raise UserError(f"--cost {text}: there is no cost of {missing[0]!r}; name one for each of {', '.join(labels)}")
    return prices


def price_columns(price: Any) -> list[str]:
    """The columns that a price is read from."""
    return [one for one in (price.values() if isinstance(price, dict) else [price]) if isinstance(one, str)]


def fill_price(price: Any, frame: pl.DataFrame, arms: list[Any], role: str) -> Any:
    """A price with its columns in place of their names: one number per person, and arm where there are several."""
    import numpy as np

    names = price_columns(price)
    if not names:
        return price
    for name in names:
        if not frame.schema[name].is_numeric():
            raise UserError(f"--{role} {name}: the column holds {frame.schema[name]} values; expected numbers")
    if role == "value" or len(arms) == 1:
        return frame.get_column(names[0]).to_numpy().astype(float)
    by_arm = [price[arm] if isinstance(price, dict) else price for arm in arms]
    columns = [frame.get_column(one).to_numpy() if isinstance(one, str) else np.full(len(frame), one) for one in by_arm]
    return np.column_stack(columns).astype(float)
