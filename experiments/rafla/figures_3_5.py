"""Figures 3 to 5: does UMODL find known uplift patterns, and from how many rows on?"""

from __future__ import annotations

from functools import cache

import numpy as np

from experiments import _draw
from experiments._compare import claims, held, number, table
from experiments._declared import Experiment
from upturn.datasets import simulate_pattern
from upturn.features import UMODLDiscretizer

EXPERIMENT = Experiment(
    paper="004",
    shows=("Figure 3", "Figure 4", "Figure 5"),
    title="Known patterns",
    data="`simulate_pattern`: two crenels with five θ, trigonometric, scissors and continuous.",
    protocol="Samples of 10 to 100,000 rows (40 sizes, 10 samples each, as in the paper). The number of intervals found, and the root mean squared error of the effect of the interval against the true one "
    "on 10,000 test rows. Also noise: how many of 50 columns without any effect are cut.",
)
PICTURES = ("intervals-crenel1", "intervals-crenel2", "intervals-others")
THETAS = (1.0, 0.9, 0.8, 0.7, 0.6)
PATTERNS = (*((name, theta) for name in ("crenel1", "crenel2") for theta in THETAS), ("trigonometric", 1.0), ("scissors", 1.0), ("continuous", 1.0))  # fmt: skip
SIZES = np.unique(np.geomspace(10, 100_000, 40).round().astype(int)).tolist()


def plan(size):
    sizes, sets = {"smoke": (SIZES[20:21], 1), "quick": (SIZES[10:31:10], 1)}.get(
        size, (SIZES, {"medium": 3, "full": 10}.get(size))
    )
    for name, theta in PATTERNS[:: 6 if size == "smoke" else 1]:
        for rows in sizes:
            yield {"pattern": name, "theta": theta, "rows": rows}, sets
    for rows in (100,) if size == "smoke" else (100, 1000, 10_000):
        yield {"pattern": "noise", "rows": rows}, {"smoke": 1, "quick": 1, "medium": 20, "full": 20}[size]


@cache
def _test(pattern, theta):
    return simulate_pattern(pattern, n=10_000, theta=theta, random_state=10**6)


def run(case, seed):
    n = case["rows"]
    if case["pattern"] == "noise":
        rng = np.random.default_rng([n, seed])
        t, y = rng.integers(0, 2, n), (rng.random(n) < 0.3).astype(int)
        return {"cut": int((UMODLDiscretizer().fit(rng.normal(size=(n, 50)), y, t).n_parts_ > 1).sum())}
    for attempt in range(100):  # ten rows do not always have both arms and both outcomes
        data = simulate_pattern(
            case["pattern"], n=n, theta=case["theta"], random_state=np.random.default_rng([seed, attempt, n])
        )
        if len(np.unique(data.treatment)) == 2 and len(np.unique(data.y)) == 2:
            break
    model = UMODLDiscretizer(encode="effect").fit(data.X, data.y, data.treatment)
    test = _test(case["pattern"], case["theta"])
    error = np.sqrt(np.mean((model.transform(test.X)[:, 0] - test.effect) ** 2))
    return {"intervals": int(model.n_parts_[0]), "error": error}


def _of(found, name, theta):
    return sorted(found.where(pattern=name, theta=theta), key=lambda row: row.case["rows"])


def _from(rows):
    """The size from which on all samples have ten intervals."""
    good = [(row.numbers("intervals") == 10).all() for row in rows]
    return next((rows[i].case["rows"] for i in range(len(rows)) if all(good[i:])), None)


def _table(found):
    lines = []
    for name, theta in PATTERNS:
        rows = _of(found, name, theta)
        if rows:
            counts = np.concatenate([row.numbers("intervals") for row in rows])
            last, first = rows[-1], _from(rows)
            ten = "–" if name == "continuous" or first is None else f"{first:,}"
            eleven = "–" if name == "continuous" else f"{int((counts > 10).sum())} of {len(counts)}"
            lines.append(
                [
                    name,
                    f"{theta:g}" if "crenel" in name else "",
                    ten,
                    eleven,
                    number(last.mean("intervals")[0], 1),
                    number(last.mean("error")[0], 3),
                    f"{last.case['rows']:,}",
                ]
            )
    return table(
        [
            "pattern",
            "θ",
            "ten intervals from",
            "samples with more than ten",
            "intervals with most rows",
            "error there",
            "most rows",
        ],
        lines,
    )


def _claims(found):
    ends = [
        (name, theta, rows) for name, theta in PATTERNS if name != "continuous" and (rows := _of(found, name, theta))
    ]
    right = [rows[-1].mean("intervals")[0] == 10 for _, _, rows in ends]
    yield (
        "the ten intervals of the patterns are found",
        all(right),
        f"with most rows, in all samples of {sum(right)} of {len(right)} patterns",
    )
    errors = [rows[-1].mean("error")[0] for _, _, rows in ends]
    yield "the error goes to 0", max(errors) < 0.05, f"at most {number(max(errors), 3)} with most rows"
    more = [int((row.numbers("intervals") > 10).sum()) for _, _, rows in ends for row in rows]
    largest = [n for _, _, rows in ends for row in rows for n in row.numbers("intervals") if n == 11]
    yield (
        "there are never more than ten",
        sum(more) == 0,
        f"{sum(more)} of {sum(len(row.seeds) for _, _, rows in ends for row in rows):,} samples have more",
        f"not found out; {len(largest)} of them by one interval. The paper shows means over ten samples of a size, in which so few would hardly be seen"
        if len(largest) == sum(more)
        else "not found out; the paper shows means over ten samples of a size, in which so few would hardly be seen",
    )
    crenel = [_from(_of(found, "crenel1", theta)) for theta in (1.0, 0.6)]
    if all(crenel):
        yield (
            "small effects need more rows (crenel 1, θ = 1 and .6)",
            crenel[1] > crenel[0],
            f"from {crenel[0]:,} and {crenel[1]:,} rows",
        )
    rows = _of(found, "continuous", 1.0)
    if len(rows) > 1:
        yield (
            "the continuous pattern takes ever more intervals",
            rows[-1].mean("intervals")[0] > rows[len(rows) // 2].mean("intervals")[0],
            number(rows[-1].mean("intervals")[0], 1),
        )


def _noise(found):
    cells = [
        (row.case["rows"], int(row.numbers("cut").sum()), 50 * len(row.seeds)) for row in found.where(pattern="noise")
    ]
    return "; ".join(f"{cut} of {columns:,} at {rows:,} rows" for rows, cut, columns in sorted(cells))


def report(found):
    yield _table(found)
    yield claims(_claims(found))
    yield f"Columns of noise that are cut: {_noise(found)}."
    for name in PICTURES:
        yield f"![Intervals and errors against rows, {name[10:]}](images/{name}.png)"


def summary(found):
    return held(_claims(found))


def quotes(found):
    return {"table": _table(found), "noise": _noise(found)}


def draw(found):
    figures = {}
    for name in ("crenel1", "crenel2"):
        figure, axes = _draw.panels(1, 2, 5.2, 3.6)
        for k, theta in enumerate(THETAS):
            rows = _of(found, name, theta)
            for axis, key in zip(axes[0], ("intervals", "error"), strict=True):
                axis.plot(
                    [row.case["rows"] for row in rows],
                    [row.mean(key)[0] for row in rows],
                    label=f"θ = {theta:g}",
                    **_draw.style(k),
                )
                axis.set(
                    xscale="log",
                    xlabel="rows",
                    ylabel={"intervals": "intervals", "error": "error of the effect"}[key],
                    ylim=(0, None),
                )
        axes[0, 0].legend(frameon=False)
        figures[f"intervals-{name}"] = figure
    figure, axes = _draw.panels(1, 3, 4.4, 3.2)
    for axis, name in zip(axes[0], ("trigonometric", "scissors", "continuous"), strict=True):
        rows = _of(found, name, 1.0)
        at, twin = [row.case["rows"] for row in rows], axis.twinx()
        axis.plot(at, [row.mean("error")[0] for row in rows], **_draw.style(0))
        twin.plot(at, [row.mean("intervals")[0] for row in rows], **_draw.style(2))
        axis.set(xscale="log", title=name, xlabel="rows", ylim=(0, None))
        axis.set_ylabel("error of the effect", color=_draw.COLOURS[0])
        twin.set_ylabel("intervals", color=_draw.COLOURS[2])
        twin.set_ylim(0, None)
    figures["intervals-others"] = figure
    return figures
