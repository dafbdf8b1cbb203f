"""The registry of metrics: everything that is said about a metric is said here, once.

``evaluate``, ``compare``, ``uplift_scorer``, ``compare_models`` and the tables of ``docs/metrics.md`` read it. A new metric of a
ranking is one entry: its name, the question it answers, and a :class:`Definition` for upturn's own number and for each
library whose number it can reproduce. Of every metric larger is better.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

from upturn.kernels import areas
from upturn.metrics import _formulas as formulas
from upturn.metrics import _top as top
from upturn.metrics._metric import Definition, Metric, PolicyMetric
from upturn.metrics._robust import inverse_propensity_values, policy_values
from upturn.metrics._statistic import Statistic

_ADVICE = "leave the convention out for a number that is not divided by anything of the sort"
_NO_EFFECT = f"causalml divides by the average effect, which is 0 in this sample; {_ADVICE}"
_NO_PERFECT = f"scikit-uplift divides by the area of a perfect curve over its diagonal, which is 0 here; {_ADVICE}"
_NO_GAIN = (
    f"scikit-uplift's negative_effect=False needs an average effect above 0, which this sample has not; {_ADVICE}"
)
_SEPARATE, _JOINT = {"ranking": "separate"}, {"ranking": "joint"}
_PER_PERSON = "outcome per person, 0 is random"

AREA = Statistic(formulas.over_diagonals, areas.LIFTS)  # what models are tuned and scored by
LIFTS = Statistic(formulas.lift_counts, areas.LIFTS, sized=True)
_AREA_OF_EFFECTS = Statistic(
    formulas.deviation_area, areas.DEVIATION
)  # the curve's area, its heights summed effect scores
QINI_AREA = Statistic(formulas.deviation_area, areas.DEVIATION, scheme="half")
_GRF_QINI = Statistic(formulas.deviation_mean, areas.DEVIATION, scheme="half")
AUTOC_MEAN = Statistic(formulas.harmonic_mean, areas.HARMONIC, scheme="half")

AUUC = Metric(
    "auuc",
    "how good is the ranking as a whole, each arm ranked by itself?",
    _PER_PERSON,
    [
        Definition(
            AREA,
            "area between the separate curve and its diagonal",
            chosen_by=_SEPARATE,
            adjustable=True,
            effects=_AREA_OF_EFFECTS,
        ),
        Definition(
            Statistic(formulas.gain_over_diagonal, areas.GAIN),
            "area between x·(rate difference in the top x) and its diagonal",
            chosen_by=_JOINT,
            adjustable=True,
            effects=_AREA_OF_EFFECTS,
        ),
        Definition(
            AREA,
            "the same as upturn's own",
            "libuplift",
            "area_under_uplift_curve",
            _SEPARATE,
            per_person=False,
        ),
        Definition(
            Statistic(formulas.balanced, areas.BALANCED),
            "arms ranked together, x is the mean of the arms' shares",
            "libuplift",
            "area_under_uplift_curve_j",
            _JOINT,
            per_person=False,
        ),
        Definition(
            Statistic(formulas.under_lifts, areas.LIFTS),
            "separate curve, diagonal *not* subtracted: upturn's own + effect / 2",
            "criteo",
            "AUUC",
            _SEPARATE,
            per_person=False,
        ),
        Definition(
            Statistic(formulas.sklift_auuc, areas.GAIN, undefined=_NO_PERFECT),
            "joint area over the diagonal, divided by that of a curve that knows every outcome",
            "sklift",
            "uplift_auc_score",
            _JOINT,
            per_person=False,
        ),
        Definition(
            Statistic(formulas.causalml_auuc, areas.GAIN_SUM, undefined=_NO_EFFECT),
            "mean of V(k) / |V(N)|, V(k) = k·(rate difference in the top k); random is 0.5",
            "causalml",
            "auuc_score",
            _JOINT,
            per_person=False,
        ),
    ],
)
QINI = Metric(
    "qini",
    "how good is the ranking as a whole, by effect scores?",
    _PER_PERSON,
    [
        Definition(QINI_AREA, "mean of q·TOC(q)", effects=QINI_AREA),
        Definition(_GRF_QINI, "the same; with weights, a right-hand sum", "grf", "QINI", effects=_GRF_QINI),
        Definition(
            Statistic(formulas.sklift_qini(True), areas.RADCLIFFE, undefined=_NO_PERFECT),
            "Radcliffe's Q(k) = R_T - R_C n_T / n_C over its line, divided by a perfect curve's",
            "sklift",
            "qini_auc_score",
            {"negative_effect": True},
            per_person=False,
        ),
        Definition(
            Statistic(formulas.sklift_qini(False), areas.RADCLIFFE, undefined=_NO_GAIN),
            "the same with a perfect curve that never falls",
            "sklift",
            "qini_auc_score(negative_effect=False)",
            {"negative_effect": False},
            per_person=False,
        ),
        Definition(
            Statistic(formulas.causalml_qini, areas.RADCLIFFE_SUM, undefined=_NO_EFFECT),
            "mean of Q(k) / |Q(N)| minus the line's",
            "causalml",
            "qini_score",
            per_person=False,
        ),
        Definition(
            Statistic(formulas.arm_times_area, areas.LIFTS, sized=True),
            "n_T times the separate area",
            "libuplift",
            "area_under_Qini_curve",
            per_person=False,
        ),
    ],
)
AUTOC = Metric(
    "autoc",
    "is there a small group with a large effect?",
    _PER_PERSON,
    [
        Definition(AUTOC_MEAN, "mean of TOC(q)", effects=AUTOC_MEAN),
        Definition(AUTOC_MEAN, "the same", "grf", "AUTOC", effects=AUTOC_MEAN),
        Definition(
            Statistic(formulas.weighted_toc, areas.TOC_SUM, scheme="half"),
            "TOC by differences in means, averaged with weights 1/q: mostly noise of the first few people",
            "causalml",
            "rate_score",
            per_person=False,
        ),
    ],
)
UPLIFT_AT = Metric(
    "uplift_at",
    "what is the effect in the top 30% (or any other k)?",
    "outcome per person",
    [
        Definition(
            top.top_of_each_arm,
            "rate difference in the top 30% of each arm",
            chosen_by=_SEPARATE,
            adjustable=True,
            effects=top.top_of_effects,
        ),
        Definition(
            top.top_of_everybody,
            "rate difference in the top 30% of everybody",
            chosen_by=_JOINT,
            adjustable=True,
            effects=top.top_of_effects,
        ),
        Definition(
            top.whole_rows_of_each_arm,
            "of each arm, the top rounded down to whole rows",
            "sklift",
            'uplift_at_k(strategy="by_group")',
            _SEPARATE,
            per_person=False,
        ),
        Definition(
            top.whole_rows_of_everybody,
            "of everybody, the top rounded down to whole rows",
            "sklift",
            'uplift_at_k(strategy="overall")',
            _JOINT,
            per_person=False,
        ),
    ],
    {"k": 0.3},
    zero="the effect in the top",
)
AUU = Metric(
    "auu",
    "how many more successes are captured than in control?",
    "count",
    [
        Definition(
            LIFTS,
            "areas under the arms' lift curves in counts, subtracted (Kuusisto et al.)",
            per_person=False,
        )
    ],
)
EXPECTED_RESPONSE = PolicyMetric(
    "expected_response",
    "what if everybody gets the recommended arm?",
    "mean outcome",
    inverse_propensity_values,
    ["propensity"],
)
POLICY_VALUE = PolicyMetric(
    "policy_value",
    "the same, doubly robust: less noisy with a model of the outcome",
    "mean outcome",
    policy_values,
    ["propensity", "response"],
)

METRICS: dict[str, Metric | PolicyMetric] = {
    metric.name: metric for metric in (AUUC, QINI, AUTOC, UPLIFT_AT, AUU, EXPECTED_RESPONSE, POLICY_VALUE)
}


def find_metric(name: Any, *, measures: str | None = None) -> Any:
    """A metric by name; one that ``measures`` "predict" or "recommend", if that is asked."""
    known = [key for key, metric in METRICS.items() if measures in (None, metric.measures)]
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"metric={reprlib.repr(name)}: expected one of {', '.join(known)}")
    return METRICS[name]


def check_options(name: str, options: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse options a metric does not have, naming those it has."""
    strange = [option for option in options if option not in known]
    if strange:
        has = f"its options are {', '.join(known)}" if known else "it has none"
        raise ValueError(f"metric={name!r} has no option {strange[0]!r}: {has}")
