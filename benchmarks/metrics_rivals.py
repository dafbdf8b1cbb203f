"""The contestants of bench_metrics: what each library calls to answer the same question. One function a library and job."""

from __future__ import annotations

import sys
from pathlib import Path

RIVALS = {"sklift": "scikit-uplift", "causalml": "causalml"}


def interpreter(name):
    """The interpreter of a library: other ones have environments of their own, which ``make bench-install`` makes."""
    folder = Path(__file__).resolve().parent.parent / "build" / "rivals" / name
    return folder / "bin" / "python" if name in RIVALS else Path(sys.executable)


def available():
    return [name for name in RIVALS if interpreter(name).exists()]


def _frame(data):
    import pandas as pd

    y, score, treatment = data
    return pd.DataFrame({"y": y, "w": treatment, "model": score})


def _recommended(data):
    y, score, treatment = data
    return y, (score > 0).astype(treatment.dtype), treatment


def _group(data):
    return data[:2]


def _three_arms(data):
    import numpy as np

    y, score, treatment = data
    return y, np.column_stack([score, -score]), treatment * (1 + np.arange(len(y)) % 2)


# Jobs on something else than a score of one arm.
_FORMS = {
    "expected_response": _recommended,
    "policy_value": _recommended,
    "lift_area": _group,
    "lift curve": _group,
    "modified uplift curve": _three_arms,
}


def upturn(job):
    from upturn import metrics

    def one(data):
        y, score, treatment = data
        return y, {"one": score}, treatment

    def two(data):
        y, score, treatment = data
        return y, {"one": score, "two": -score}, treatment

    def with_options(name, **options):
        call = getattr(metrics, name)
        return lambda data: float(call(*data, **options))

    jobs = {
        "auuc": with_options("auuc"),
        "auuc joint": with_options("auuc", ranking="joint"),
        "auuc as sklift": with_options("auuc", convention="sklift"),
        "auuc as causalml": with_options("auuc", convention="causalml"),
        "qini": with_options("qini"),
        "qini as sklift": with_options("qini", convention="sklift"),
        "qini as causalml": with_options("qini", convention="causalml"),
        "autoc": with_options("autoc"),
        "uplift_at": with_options("uplift_at", k=0.3),
        "auu": with_options("auu"),
        "lift_area": with_options("lift_area"),
        "expected_response": with_options("expected_response"),
        "policy_value": with_options("policy_value"),
        # an interval, of 200 replicates, is part of these unless it is left out
        "calibration_table": lambda data: float(metrics.calibration_table(*data)["observed"][0]),
        "calibration_table, no interval": lambda data: float(
            metrics.calibration_table(*data, interval=None)["observed"][0]
        ),
        "evaluate": lambda data: float(metrics.evaluate(*one(data))["one"]["auuc"]),
        "evaluate, no interval": lambda data: float(metrics.evaluate(*one(data), interval=None)["one"]["auuc"]),
        "compare": lambda data: float(metrics.compare(*two(data))["difference"][0]),
        "toc curve": lambda data: float(metrics.toc_curve(*data).y[-1]),
        "lift curve": lambda data: float(metrics.lift_curve(*data).y[-1]),
        "modified uplift curve": lambda data: float(metrics.modified_uplift_curve(*data).y[-1]),
        "uplift curve": lambda data: float(metrics.uplift_curve(*data).y[-1]),
        "uplift curve joint": lambda data: float(metrics.uplift_curve(*data, ranking="joint").y[-1]),
        "qini curve": lambda data: float(metrics.qini_curve(*data).y[-1]),
        "auuc bootstrap": with_options("auuc", interval=0.95, n_bootstrap=200, random_state=0),
        "qini bootstrap": with_options("qini", interval=0.95, n_bootstrap=200, random_state=0),
        "autoc bootstrap": with_options("autoc", interval=0.95, n_bootstrap=200, random_state=0),
    }
    return jobs[job], _FORMS.get(job, lambda data: data)


def sklift(job):
    from sklift import metrics

    jobs = {
        "auuc": lambda d: metrics.uplift_auc_score(*d),
        "qini": lambda d: metrics.qini_auc_score(*d),
        "uplift_at": lambda d: metrics.uplift_at_k(*d, strategy="by_group", k=0.3),
        "calibration_table, no interval": lambda d: float(metrics.uplift_by_percentile(*d)["uplift"].iloc[0]),
        "uplift curve joint": lambda d: float(metrics.uplift_curve(*d)[1][-1]),
        "qini curve": lambda d: float(metrics.qini_curve(*d)[1][-1]),
    }
    return jobs[job], lambda data: data


def causalml(job):
    from causalml import metrics

    def bootstrap(score):
        return lambda d: float(score(d, return_ci=True, n_bootstrap=200, random_state=0).iloc[0, 0])

    jobs = {
        "auuc": lambda d: float(metrics.auuc_score(d)["model"]),
        "qini": lambda d: float(metrics.qini_score(d)["model"]),
        "autoc": lambda d: float(metrics.rate_score(d)["model"]),
        "uplift curve joint": lambda d: float(metrics.get_cumgain(d)["model"].iloc[-1]),
        "qini curve": lambda d: float(metrics.get_qini(d)["model"].iloc[-1]),
        "toc curve": lambda d: float(metrics.get_toc(d)["model"].iloc[-1]),
        "auuc bootstrap": bootstrap(metrics.auuc_score),
        "qini bootstrap": bootstrap(metrics.qini_score),
        "autoc bootstrap": bootstrap(metrics.rate_score),
    }
    return jobs[job], _frame  # its own form of the data, made before the clock starts


CONTESTANTS = {"upturn": upturn, "sklift": sklift, "causalml": causalml}
