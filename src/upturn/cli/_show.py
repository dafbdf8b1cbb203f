"""``upturn show`` and ``upturn export``: what is in a model's file."""

from __future__ import annotations

import json
import zipfile
from typing import Annotated, Any

import typer

from upturn.cli._command import Session
from upturn.cli._say import UserError, did_you_mean, one_line, plain, put
from upturn.cli._score import MODEL_FILE, TRUSTED

_MOST = 15  # features, levels and the like that are shown to people


def show(
    session: Session,
    model: MODEL_FILE,
    tree: Annotated[int, typer.Option("--tree", min=0, help="Which tree of a forest to show.")] = 0,
    trust: TRUSTED = None,
) -> int:
    """Show what is in a model's file: the data it was fitted to, the arms, the columns, the parameters, what matters, and a tree if it has any."""
    from upturn.cli._predict import load_model

    fitted = load_model(model, trust, 1)
    about = {**describe(fitted), **_written(model)}
    text = _text(about)
    if hasattr(fitted, "export_text"):
        about["tree"] = _one_tree(fitted, tree, "export_text")
        lines = about["tree"].splitlines()
        text += "\n\ntree" + (f" {tree}" if hasattr(fitted, "n_estimators") else "") + "\n" + "\n".join(lines[:40])
        text += f"\n… {len(lines) - 40} lines more: upturn export {model} --to text" if len(lines) > 40 else ""
    session.voice.result(text, **about)
    return 0


def export(
    session: Session,
    model: MODEL_FILE,
    to: Annotated[str, typer.Option("--to", help="json or text.")] = "json",
    output: Annotated[str, typer.Option("--output", "-o", help="File to write; - for standard output.")] = "-",
    trust: TRUSTED = None,
) -> int:
    """Write a model in a form that other programs and people read: its columns and parameters, and all of its trees."""
    from upturn.cli._predict import load_model
    from upturn.cli._write import check_output, write_text

    if to not in EXPORTS:
        raise UserError(f"--to {to}: {did_you_mean(to, EXPORTS)}")
    if output != "-":
        check_output(output, [model])
    text = EXPORTS[to](load_model(model, trust, 1))
    if output == "-":
        if session.voice.as_json and to != "json":
            session.voice.result(text, model=model, to=to, content=text)
        else:  # which is JSON, or what was asked for
            put(text)
        return 0
    write_text(text + "\n", output)
    session.voice.result(f"{model} as {to}: {output}", model=model, to=to, output=output)
    return 0


def describe(model: Any) -> dict[str, Any]:
    """A fitted model as JSON values."""
    schema = model._schema
    defaults = type(model)().get_params(deep=False)
    params = {key: value for key, value in model.get_params(deep=False).items() if key not in ("n_jobs", "verbose")}
    columns = [
        {"name": name, "kind": "number"} if levels is None else {"name": name, "kind": "levels", "levels": list(levels)}
        for name, levels in zip(schema.names, schema.levels, strict=True)
    ]
    about: dict[str, Any] = {
        "model": type(model).__name__,
        "control": model.control_,
        "arms": list(model.arms_),
        "columns": columns,
        "parameters": {key: _param(value) for key, value in params.items()},
        "set": [key for key, value in params.items() if repr(value) != repr(defaults.get(key))],
    }
    importances = getattr(model, "feature_importances_", None)
    if importances is not None:
        about["importances"] = dict(zip(schema.names, plain(importances), strict=True))
    return plain(about)  # type: ignore[no-any-return]


def _param(value: Any) -> Any:
    return repr(value) if hasattr(value, "get_params") else value


def _written(path: str) -> dict[str, Any]:
    """The version of upturn that wrote a file, which was read before and is sound, and what `upturn fit` wrote about the data."""
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    written, about = {"upturn": str(manifest.get("upturn"))}, manifest.get("about")
    return {**written, "data": about} if _is_about(about) else written


def _is_about(about: Any) -> bool:
    """Whether it has the form in which it is written; a file may hold anything."""
    kinds = {"arm": str, "rows": int, "mean": float | int | None}
    return (
        isinstance(about, dict)
        and {key: type(value) for key, value in about.items()}
        == {"data": str, "outcome": str, "treatment": str, "fitted to": list}
        and all(
            isinstance(arm, dict) and [*arm] == [*kinds] and all(isinstance(arm[key], kinds[key]) for key in kinds)
            for arm in about["fitted to"]
        )
    )


def _text(about: dict[str, Any]) -> str:
    lines = [f"{about['model']}: {', '.join(map(str, about['arms']))} against {about['control']}"]
    if "upturn" in about:
        lines[0] += f", written by upturn {about['upturn']}"
    if "data" in about:
        arms = about["data"]["fitted to"]
        lines.append(f"fitted to: {sum(arm['rows'] for arm in arms):,} rows of {one_line(about['data']['data'])}")
        lines += [f"  {one_line(arm['arm'])}: {arm['rows']:,} rows, {_mean(arm, about)}" for arm in arms]
    given = {key: about["parameters"][key] for key in about["set"]}
    lines.append("parameters: " + (", ".join(f"{key}={value!r}" for key, value in given.items()) or "defaults"))
    lines.append(f"columns: {len(about['columns'])}")
    importances = about.get("importances") or {}
    ranked = sorted(about["columns"], key=lambda column: -(importances.get(column["name"]) or 0.0))
    total = sum(value or 0.0 for value in importances.values())
    for column in ranked[:_MOST]:
        levels = column.get("levels", [])
        kind = (
            f"{len(levels)} levels ({', '.join(map(str, levels[:4]))}{' …' if len(levels) > 4 else ''})"
            if levels
            else column["kind"]
        )
        weight = f", {(importances.get(column['name']) or 0.0) / total:.1%} of the importance" if total > 0 else ""
        lines.append(f"  {column['name']}: {kind}{weight}")
    if len(ranked) > _MOST:
        lines.append(f"  and {len(ranked) - _MOST} more")
    return "\n".join(lines)


def _mean(arm: dict[str, Any], about: dict[str, Any]) -> str:
    outcome = one_line(about["data"]["outcome"])
    return f"{outcome} {arm['mean']:.4g} on average" if arm["mean"] is not None else f"no {outcome}"


def _trees(model: Any, method: str) -> list[Any]:
    """Every tree of a tree or a forest; nothing for other models."""
    if not hasattr(model, method):
        return []
    if not hasattr(model, "n_estimators"):
        return [getattr(model, method)()]
    return [_one_tree(model, number, method) for number in range(model.n_estimators)]


def _one_tree(model: Any, number: int, method: str) -> Any:
    if not hasattr(model, "n_estimators"):
        return getattr(model, method)()
    if number >= model.n_estimators:
        raise UserError(f"--tree {number}: the trees are numbered from 0 to {model.n_estimators - 1}")
    return getattr(model, method)(number)


def _as_json(model: Any) -> str:
    from upturn.cli._write import as_json

    about = describe(model)
    trees = _trees(model, "export_json")
    return as_json({**about, "trees": trees} if trees else about)


def _as_text(model: Any) -> str:
    trees = _trees(model, "export_text")
    parts = [_text(describe(model)), *(f"tree {number}\n{tree}" for number, tree in enumerate(trees))]
    return "\n\n".join(parts)


# What a model can be written as; one function each.
EXPORTS = {"json": _as_json, "text": _as_text}
