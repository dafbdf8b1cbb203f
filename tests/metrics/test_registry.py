"""The registry of metrics: what reads it, and that the page about metrics says what it says."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from upturn import metrics
from upturn.kernels import areas
from upturn.meta import ClassTransformation
from upturn.metrics import _conventions, _registry
from upturn.metrics._metric import Definition, Metric
from upturn.metrics._statistic import Statistic
from upturn.model_selection import compare_models, uplift_scorer

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
SHARED = ["y", "treatment", "sample_weight", "control", "groups", "interval", "n_bootstrap", "random_state", "n_jobs"]


def make_metrics():
    spec = importlib.util.spec_from_file_location("make_metrics", DOCS / "make_metrics.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def experiment(n=600):
    rng = np.random.default_rng(0)
    X, treatment = rng.normal(size=(n, 2)), rng.integers(0, 2, n)
    return X, (rng.random(n) < 0.5 + 0.3 * treatment * np.sign(X[:, 0])).astype(int), treatment


@pytest.mark.parametrize("name", ["metrics", "conventions"])
def test_the_page_has_the_tables_of_the_registry(name):
    made = make_metrics()
    assert made.block(name, made.TABLES[name]()) in (DOCS / "metrics.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", list(_registry.METRICS))
def test_functions_take_the_options_of_the_registry(name):
    metric = _registry.METRICS[name]
    first = "score" if metric.measures == "predict" else "recommended"
    assert set(inspect.signature(getattr(metrics, name)).parameters) == {first, *SHARED, *metric.all_options}
    assert getattr(metrics, name).__name__ == name


def test_a_new_metric_is_one_entry(monkeypatch):
    halved = Metric(
        "halved",
        "how much is half an area?",
        "outcome per person, 0 is random",
        [
            Definition(Statistic(lambda sums, totals: _registry.AREA.finish(sums, totals) / 2, areas.LIFTS), "half"),
            Definition(_registry.AREA, "all of it", "grf", "whole", per_person=False),
        ],
    )
    monkeypatch.setitem(_registry.METRICS, "halved", halved)
    X, y, treatment = experiment()
    scores = {"good": X[:, 0], "bad": X[:, 1]}
    whole = metrics.auuc(y, X[:, 0], treatment, interval=0.95)
    table = metrics.evaluate(y, scores, treatment, metrics=["halved", ("halved", {"convention": "grf"})])
    assert table["good"]["halved"] == pytest.approx(whole / 2)
    assert table["good"]["halved"].se == pytest.approx(whole.se / 2)
    assert table["good"]["halved grf"] == whole
    text = repr(table)
    assert f"{500 * whole:.4g} [" in text
    assert "as they come, with a zero of their own: halved grf" in text
    assert metrics.compare(y, scores, treatment, metric="halved")["model"][0] == "good"
    model = ClassTransformation().fit(X, y, treatment)
    assert uplift_scorer("halved", convention="grf")(model, X, y, treatment) == pytest.approx(
        metrics.auuc(y, model.predict(X), treatment)
    )
    found = compare_models({"it": ClassTransformation()}, X, y, treatment, metric="halved", cv=2, random_state=0)
    assert found.metric == "halved"
    assert np.isfinite(found["it"]).all()
    made = make_metrics()
    assert "| `halved` | how much is half an area? |" in made.metrics_table()
    assert '| `halved(convention="grf")` | 0.0092 | grf | `whole` | all of it |' in made.conventions_table()
    with pytest.raises(ValueError, match="convention='sklift': halved is there as upturn's own"):
        metrics.evaluate(y, scores, treatment, metrics=[("halved", {"convention": "sklift"})])


def test_conventions_that_signatures_offer_are_those_there_are():
    assert set(get_args(_conventions.Convention)) == set(_conventions.LIBRARIES)
    used = {d.convention for m in _registry.METRICS.values() for d in getattr(m, "definitions", ())} - {None}
    assert used == set(_conventions.LIBRARIES)


def test_options_that_do_not_go_together():
    with pytest.raises(
        ValueError, match=r"negative_effect=False belongs to convention='sklift', not to convention=None"
    ):
        _registry.QINI.choose({"negative_effect": False})
    with pytest.raises(ValueError, match=r"ranking='joint' belongs to .*'sklift'.* not to convention='criteo'"):
        _registry.AUUC.choose({"ranking": "joint", "convention": "criteo"})
    assert _registry.AUUC.choose({"convention": "sklift"})[0].chosen_by == {"ranking": "joint"}
    assert _registry.UPLIFT_AT.choose({"k": 0.1}) == (_registry.UPLIFT_AT.definitions[0], {"k": 0.1})
