"""The charts as still pictures from `upturn.plot`, for a page that is read without JavaScript."""

from __future__ import annotations

import base64
import importlib.util
import io
from typing import Any

import numpy as np

from upturn._report._found import Found
from upturn._results import Table

_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "upturn", "font.size": 10}


def draw(found: Found) -> dict[str, str]:
    """Pictures as addresses that hold them, by name; none where there is no ranking, or no matplotlib."""
    if found.is_flat or importlib.util.find_spec("matplotlib") is None:
        return {}
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    from upturn import plot

    measured, pictures = found.measured, {}

    def picture(name: str, drawn: Any) -> None:
        figure = Figure(figsize=(6.4, 3.8), layout="constrained")
        drawn(figure.add_subplot())
        held = io.BytesIO()
        FigureCanvasSVG(figure).print_svg(held, metadata={"Date": None, "Creator": None})
        pictures[name] = "data:image/svg+xml;base64," + base64.b64encode(held.getvalue()).decode("ascii")

    with rc_context(_SETTINGS):
        for kind, arms in measured.curves.items():
            for arm, curves in arms.items():
                label = f"gain {found.words.per_1000}"
                picture(
                    f"{kind} {arm}",
                    lambda ax, curves=curves, label=label: plot.curves(curves, scale=1000, ax=ax, ylabel=label),
                )
        for arm in measured.curves["uplift"]:
            mine = measured.bins["arm"] == arm
            names = measured.bins.columns
            scales = {name: measured.bins.scale_of(name) for name in names}
            part = Table({name: np.asarray(measured.bins[name])[mine] for name in names}, scales=scales)
            picture(f"calibration {arm}", lambda ax, part=part: plot.calibration(part, ax=ax))
        picture("gain", lambda ax: plot.gain(measured.budgets, ax=ax))
    return pictures
