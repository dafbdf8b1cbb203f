"""Does a plan of `upturn.power` keep its word? Experiments of the planned size are simulated, and those that see the effect counted.

    python experiments/power_simulated.py            # writes experiments/power_simulated.md

Rates and means: 100,000 experiments each, judged by the difference of means and its Wald interval. Metrics: 300
times a pilot of 4,000 rows, which a plan is made from, and an experiment of the planned size (the table has the middle one), judged by
the metric's own bootstrap interval.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

import upturn as up
from upturn.metrics import auuc, compare
from upturn.metrics._estimate import reach_of

REPEATS, EXPERIMENTS, PILOT = 100_000, 300, 4000


def rates(rng, rate, effect, share, interval, chance):
    plan = up.power(effect=effect, rate=rate, share=share, interval=interval, power=chance)
    n0, n1 = plan.rows_per_arm
    p0, p1 = rng.binomial(n0, rate, REPEATS) / n0, rng.binomial(n1, rate + effect, REPEATS) / n1
    se = np.sqrt(p0 * (1 - p0) / n0 + p1 * (1 - p1) / n1)
    return plan, np.mean(np.abs(p1 - p0) > reach_of(interval) * se), REPEATS


def means(rng, sd, effect, share, interval, chance):
    plan = up.power(effect=effect, sd=sd, share=share, interval=interval, power=chance)
    n0, n1 = plan.rows_per_arm
    gap = rng.normal(effect, np.hypot(sd[0] / np.sqrt(n0), sd[1] / np.sqrt(n1)), REPEATS)
    v0, v1 = (s * s * rng.chisquare(n - 1, REPEATS) / (n - 1) for s, n in zip(sd, (n0, n1), strict=True))
    return plan, np.mean(np.abs(gap) > reach_of(interval) * np.sqrt(v0 / n0 + v1 / n1)), REPEATS


def campaign(rng, n, base, slope):
    x, treatment = rng.uniform(-1, 1, n), rng.integers(0, 2, n)
    noisy = x + rng.normal(size=n)
    return x, noisy, (rng.random(n) < base + slope * x * treatment).astype(float), treatment


def metric(rng, base, slope, pair):
    def judge(n, interval):
        x, noisy, y, t = campaign(rng, n, base, slope)
        seed = int(rng.integers(2**31))
        if interval is None:
            return float(auuc(y, x, t) - (auuc(y, noisy, t) if pair else 0.0)), False
        if not pair:
            found = auuc(y, x, t, interval=interval, n_bootstrap=100, random_state=seed)
            return float(found), found.low > 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = compare(
                y, {"a": x, "b": noisy}, t, baseline="b", interval=interval, n_bootstrap=100, random_state=seed
            )
        return float(found["difference"][0]), bool(found["low"][0] > 0)

    truth, seen, plans = float(np.mean([judge(200_000, None)[0] for _ in range(20)])), [], []
    for _ in range(EXPERIMENTS):
        x, noisy, y, t = campaign(rng, PILOT, base, slope)
        seed = int(rng.integers(2**31))
        plans.append(up.power(y, x, t, baseline=noisy if pair else None, effect=truth, random_state=seed))
        seen.append(judge(plans[-1].rows, 0.95)[1])
    middle = sorted(plans, key=lambda plan: plan.rows)[EXPERIMENTS // 2]
    return middle, np.mean(seen), EXPERIMENTS


def main() -> None:
    rng = np.random.default_rng(0)
    cases = [
        ("rates .03 and .04, half treated", rates, (0.03, 0.01, 0.5, 0.95, 0.8)),
        ("rates .20 and .25, 30% treated", rates, (0.2, 0.05, 0.3, 0.95, 0.8)),
        ("rates .50 and .40, power .9", rates, (0.5, -0.1, 0.5, 0.95, 0.9)),
        ("rates .01 and .02, 10% treated, 90% interval", rates, (0.01, 0.01, 0.1, 0.9, 0.8)),
        ("means, sd 1 and 1, effect .5", means, ((1.0, 1.0), 0.5, 0.5, 0.95, 0.8)),
        ("means, sd 1 and 3, effect .3, 25% treated", means, ((1.0, 3.0), 0.3, 0.25, 0.95, 0.8)),
        ("AUUC, effects from -.2 to .2", metric, (0.3, 0.2, False)),
        ("AUUC, rare outcomes", metric, (0.05, 0.04, False)),
        ("difference in AUUC of two models", metric, (0.4, 0.3, True)),
    ]
    lines = ["| what | rows | promised | seen | standard error |", "|---|---|---|---|---|"]
    for name, function, arguments in cases:
        plan, share, n = function(rng, *arguments)
        error = np.sqrt(plan.power * (1 - plan.power) / n)
        lines.append(f"| {name} | {plan.rows:,} | {plan.power:.3f} | {share:.3f} | {error:.4f} |")
        print(lines[-1], file=sys.stderr, flush=True)
    text = "<!-- made by experiments/power_simulated.py -->\n" + "\n".join(lines) + "\n"
    Path(__file__).with_suffix(".md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
