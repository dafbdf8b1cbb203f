"""What choosing costs: the stack, UpliftAuto and the candidate with the best cross-validated AUUC against the best candidate in hindsight.

    python experiments/auto_regret.py [--splits 30] [--jobs 2] [--minutes 60]

On the experiments among the real sets of ``benchmarks/quality`` and its simulated ones, at most 10,000 training rows each: every candidate of ``UpliftAuto("low")`` is
fitted to the training rows and measured on the test rows, and so are three ways to choose that have seen the training rows only. Beside it, whether what
UpliftAuto returns is worse than one effect for everybody, on the test rows: by the R-loss, and by the statistic mean(τ² − 2 τ Y*), Y* the outcome
weighted by the inverse propensity, whose expectation is the squared error of τ up to a constant. How a stack shares its weight was settled on splits 10 and 11, which are left out. What was found is kept as it comes,
and a run goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.quality.sets import load

from upturn._nuisance import fit_response
from upturn.ensemble import UpliftAuto
from upturn.ensemble._combine import combine
from upturn.metrics import auuc

# Experiments: their arms were drawn by lot, which is what the measure takes for granted. Sets whose "treatment" is an attribute are left out.
REAL = (
    "Hillstrom-conversion-m", "Hillstrom-conversion-w", "Hillstrom-spend-m", "Hillstrom-spend-w", "Hillstrom-visit", "Hillstrom-visit-m",
    "Hillstrom-visit-w", "bladder", "colon-death", "colon-lev-death", "colon-lev-recur", "colon-lev5fu-death", "colon-lev5fu-recur",
    "colon-recur", "pbc", "veteran",
)  # fmt: skip
SIMULATED = (
    "sim-campaign", "sim-collinear", "sim-constant", "sim-crescents", "sim-customers", "sim-features", "sim-heavy-tails", "sim-interaction",
    "sim-null", "sim-prognostic", "sim-prognostic-binary", "sim-randomised", "sim-randomised-small", "sim-rare", "sim-spend", "sim-steps",
    "sim-thin", "sim-unbalanced", "sim-zhao-2d", "sim-zhao-50d",
)  # fmt: skip
ROWS = 10_000
SETTLED_ON = (10, 11)
OUT = Path("experiments/auto_regret.json")


class Watched(UpliftAuto):
    """UpliftAuto that keeps what it searched."""

    def _keep_found(self, search, found, names, data):
        super()._keep_found(search, found, names, data)
        self.watched = search, found, names, data


def one(name, split):
    """Areas on the test rows, and how much better than one effect for everybody UpliftAuto is there."""
    train, test = load(name).split(split)
    rows = np.sort(np.random.default_rng(split).permutation(len(train.y))[:ROWS])
    X = train.X.iloc[rows] if hasattr(train.X, "iloc") else train.X[rows]
    model = Watched("low", metric=None, propensity="shares", random_state=split).fit(
        X, train.y[rows], train.treatment[rows]
    )
    search, found, names, data = model.watched
    effects = search._effects(found.step, found.alive, None)[:, :, 0]
    stacks = {
        way: combine(search.problems[0], effects, search.n_folds, "auto", weighting)
        for way, weighting in (("stack", "exponential"), ("least squares", "least-squares"))
    }
    matrix = model._encode(test.X)
    fitted = [search.unseen.fit((search.n_steps, j, ()), len(data)) for j in range(len(names))]
    alone = np.column_stack([candidate._predict(matrix)[:, 0] for candidate in fitted])
    inside = [auuc(data.y, column, data.arm) for column in effects.T]
    outside = np.array([auuc(test.y, column, test.treatment) for column in alone.T])
    alive = np.array(found.alive)
    ours = model.predict(test.X)
    stacked = {way: one.average + (alone[:, alive] - one.means) @ one.weights for way, one in stacks.items()}
    labels = (test.treatment != model.control_).astype(float)
    chance = float(np.mean(data.arm))
    member = fit_response(None, data.X, data.y, None, data.schema, seed=split)
    left, slope = test.y - member.predict(matrix), labels - chance
    weighted = test.y * (labels / chance - (1 - labels) / (1 - chance))
    c = float(model.average_effects_[0])
    gains = {
        "r": (left - slope * c) ** 2 - (left - slope * ours) ** 2,
        "q": c**2 - 2 * c * weighted - (ours**2 - 2 * ours * weighted),
    }
    return {
        "alone": {name: _short(value) for name, value in zip(names, outside, strict=True)},
        "se": _short(
            auuc(test.y, alone[:, int(np.argmax(outside))], test.treatment, interval=0.95, n_bootstrap=100).se
        ),
        "best": _short(max(outside)),
        "by auuc": _short(outside[alive[int(np.argmax(inside))]]),
        **{way: _short(auuc(test.y, effects, test.treatment)) for way, effects in stacked.items()},
        "auto": _short(auuc(test.y, ours, test.treatment)),
        "constant": model.constant_,
        **{key: [_short(gain.mean()), _short(gain.std() / np.sqrt(len(gain)))] for key, gain in gains.items()},
    }


def _short(value):
    return float(f"{float(value):.4g}")


def table(results):
    """A line for every set: mean areas and regrets over splits, and the gains over one effect for everybody."""
    lines = [
        "| set | splits | best in hindsight | its error | regret of the best by AUUC | of the stack | by least squares | of UpliftAuto | constant | R-loss gain / error | Q gain / error |",
        "|" + "---|" * 11,
    ]
    single = {"r": [], "q": []}
    whole = {"by auuc": [], "stack": [], "least squares": [], "auto": []}
    real = []
    for name in (*REAL, *SIMULATED):
        rows = list(results.get(name, {}).values())
        if not rows:
            continue
        best = np.mean([row["best"] for row in rows])
        error = np.mean(
            [row["se"] for row in rows if row["se"] > 0]
        )  # 0 where the best predicts one effect for everybody
        regret = {way: np.array([(row["best"] - row[way]) / error for row in rows]) for way in whole}
        for way, values in regret.items():
            whole[way].append(values.mean())
        real.append(name in REAL)
        cells = [name, str(len(rows)), f"{1000 * best:.1f}", f"{1000 * error:.1f}"]
        cells += [f"{values.mean():.2f}" for values in regret.values()]
        cells += [f"{sum(row['constant'] for row in rows)}"]
        for key in ("r", "q"):
            gain, size = np.array([row[key] for row in rows]).T
            # Splits share rows, so their mean is taken to be no surer than one of them, whose error is 0 where effects are constant.
            spread = np.sqrt(np.mean(size**2))
            cells.append(f"{gain.mean() / spread:+.2f}" if spread > 0 else "0")
            single[key] += [(g / s, name) for g, s in zip(gain, size, strict=True) if s > 0]
        lines.append("| " + " | ".join(cells) + " |")
    means = {way: np.array(values) for way, values in whole.items()}
    lines.append("")
    for key, words in (("r", "R-loss"), ("q", "Q")):
        z, name = min(single[key])
        lines.append(
            f"Split by split, {sum(z < -2 for z, _ in single[key])} of the {len(single[key])} that are not constant are worse than one effect for everybody by more than two standard "
            f"errors of the {words}; the lowest is {z:.2f}, of {name}."
        )
    lines.append("")
    for way, words in (("stack", "the stack"), ("least squares", "a stack by least squares"), ("auto", "UpliftAuto")):
        d, experiments = means["by auuc"] - means[way], np.array(real)
        lines.append(
            f"Mean regret over {len(d)} sets, in standard errors of the best candidate's AUUC: {means[way].mean():.2f} for {words}, "
            f"{means['by auuc'].mean():.2f} for the best by cross-validated AUUC; paired difference {_interval(d)}, of the real sets alone {_interval(d[experiments])}, of the "
            f"simulated ones {_interval(d[~experiments])}. "
            f"Within 2 standard errors of the best on {int((means[way] <= 2).sum())} sets, beyond 3 on {int((means[way] > 3).sum())}."
        )
    return "\n".join(lines)


def _interval(d):
    """A mean over sets, and its 95% interval."""
    if len(d) < 2:
        return "–"
    reach = stdtrit(len(d) - 1, 0.975) * d.std(ddof=1) / np.sqrt(len(d))
    return f"{d.mean():+.2f} ({d.mean() - reach:+.2f} to {d.mean() + reach:+.2f})"


def run(task):
    """One split of one set, in one of the processes."""
    warnings.simplefilter("ignore")
    return task, one(*task)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    end = time.time() + 60 * options.minutes
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    splits = [split for split in range(options.splits + len(SETTLED_ON)) if split not in SETTLED_ON]
    tasks = [(name, split) for split in splits for name in (*REAL, *SIMULATED)]
    open_ = [(name, split) for name, split in tasks if str(split) not in results.get(name, {})]
    with Pool(options.jobs) as pool:
        for (name, split), found in pool.imap_unordered(run, open_):
            results.setdefault(name, {})[str(split)] = found
            options.out.write_text(_written(results))
            print(name, split, flush=True)
            if time.time() > end:
                break
    print(table(results))


def _written(results):
    """A line for every split, in order whatever came first."""
    ordered = {
        name: {key: results[name][key] for key in sorted(results[name], key=int)}
        for name in (*REAL, *SIMULATED)
        if name in results
    }
    return json.dumps(ordered).replace("]}, ", "]},\n") + "\n"


if __name__ == "__main__":
    main()
