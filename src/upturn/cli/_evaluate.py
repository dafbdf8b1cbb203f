"""``upturn evaluate``: how good is a model on an experiment it has not seen?"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from upturn.cli._command import Session
from upturn.cli._say import UserError, did_you_mean, rows_of
from upturn.cli._score import MODEL_FILE, TRUSTED

if TYPE_CHECKING:
    from upturn.cli._measure import Measured


def evaluate(
    session: Session,
    model: MODEL_FILE,
    metrics: Annotated[str, typer.Option("--metrics", help="Names with commas between.")] = "auuc,qini,autoc,uplift_at",
    interval: Annotated[float, typer.Option("--interval", help="Confidence level of the intervals.")] = 0.95,
    plots: Annotated[str | None, typer.Option("--plots", help="Folder to draw curves and deciles into.")] = None,
    curves: Annotated[str | None, typer.Option("--curves", help="File to write the curves to, as a table.")] = None,
    trust: TRUSTED = None,
) -> int:
    """Measure a model on an experiment it was not fitted to: areas and curves with intervals, deciles, pictures."""
    from upturn._parameters import INTERVAL, check
    from upturn.cli._measure import measure
    from upturn.cli._predict import load_model
    from upturn.cli._write import check_table_name, write_table
    from upturn.metrics import calibration_table
    from upturn.metrics import evaluate as judge
    from upturn.metrics._registry import METRICS

    voice = session.voice
    if plots is not None and importlib.util.find_spec("matplotlib") is None:
        raise UserError("--plots: pictures need matplotlib: pip install 'upturn[plot]'")
    if curves is not None:
        check_table_name(curves, [model])
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    for name in names:
        if name not in METRICS:
            raise UserError(f"--metrics {name}: {did_you_mean(name, METRICS)}")
    check("interval", interval, INTERVAL)
    if plots is not None:
        _check_folder(Path(plots))
    fitted = load_model(model, trust, 1)
    found = measure(session, fitted, experiment=True, writes=[curves])
    common: dict[str, Any] = {
        "control": fitted.control_,
        "interval": interval,
        "random_state": session.seed,
        "n_jobs": session.jobs,
        "sample_weight": found.weight,
        "groups": found.group,
    }
    with voice.step(f"measuring {len(found.score):,} rows"):
        table = judge(found.y, {Path(model).stem: found.score}, found.treatment, metrics=names, **common)
        deciles = calibration_table(found.y, found.score, found.treatment, **common)
        drawn = _curves(found, common)
    if curves is not None:
        import polars as pl

        write_table(pl.DataFrame(drawn).lazy(), curves)
    written = []
    if plots is not None:
        with voice.step(f"drawing into {plots}"):
            written = _draw(found, common, plots)
    text = f"{table!r}\n\n{deciles!r}"
    if written:
        text += f"\n\nDrawn: {', '.join(written)}"
    voice.result(
        text,
        rows=len(found.score),
        control=fitted.control_,
        arms=found.arms,
        metrics=dict(table[Path(model).stem]),
        curves=drawn,
        deciles=rows_of(deciles),
        plots=written,
    )
    return 0


def _check_folder(folder: Path) -> None:
    """Refuse, before any work is done, a folder that cannot be made."""
    there = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise UserError(f"--plots {folder}: {there} is a file; expected a folder")
    if not os.access(there, os.W_OK):
        raise UserError(f"--plots {folder}: the folder {there} may not be written to")


def _pairs(found: Measured, common: dict[str, Any]) -> Any:
    """Every arm with control: its label, scores, outcomes, arms, and keywords of metrics."""
    import numpy as np

    assert found.y is not None
    assert found.treatment is not None
    model = found.asked.model
    for k, arm in enumerate(found.arms):
        rows = np.flatnonzero((found.treatment == arm) | (found.treatment == model.control_))
        weight = None if found.weight is None else found.weight[rows]
        group = None if found.group is None else found.group[rows]
        keywords = {**common, "sample_weight": weight, "groups": group}
        yield arm, found.y[rows], found.score[rows, k], found.treatment[rows], keywords


def _curves(found: Measured, common: dict[str, Any]) -> list[dict[str, Any]]:
    """Uplift curves at every hundredth of the people, with their bands, in outcome units per person."""
    import numpy as np

    from upturn.metrics import uplift_curve

    rows, grid = [], np.linspace(0, 1, 101)
    for arm, y, score, treatment, keywords in _pairs(found, common):
        curve = uplift_curve(y, score, treatment, **keywords)
        assert curve.low is not None
        assert curve.high is not None
        band = {"low": np.interp(grid, curve.x, curve.low), "high": np.interp(grid, curve.x, curve.high)}
        for j, share in enumerate(grid.tolist()):
            rows.append(
                {
                    "arm": str(arm),
                    "share": round(share, 2),
                    "gain": float(curve(share)),
                    **{k: float(v[j]) for k, v in band.items()},
                }
            )
    return rows


def _draw(found: Measured, common: dict[str, Any], folder: str) -> list[str]:
    """Uplift and Qini curves and deciles of every arm, as pictures."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from upturn import plot
    from upturn.cli._write import whole_file

    Path(folder).mkdir(parents=True, exist_ok=True)
    written = []
    pictures: dict[str, Any] = {"uplift": plot.uplift_curves, "qini": plot.qini_curves, "deciles": plot.deciles}
    for arm, y, score, treatment, keywords in _pairs(found, common):
        for name, draw in pictures.items():
            figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
            draw(y, score, treatment, ax=ax, **keywords)
            several = len(found.arms) > 1
            path = Path(folder) / (f"{name}_{_file_name(arm)}.png" if several else f"{name}.png")
            with whole_file(str(path)) as place:
                figure.savefig(place, dpi=110, format="png")
            plt.close(figure)
            written.append(str(path))
    return written


def _file_name(arm: Any) -> str:
    return "".join(c if c.isalnum() else "_" for c in str(arm))
