"""The page without a browser: what is in it, that it is honest, and that nothing in the data becomes code."""

import hashlib
import json
import os
import re
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from small_pages import HOSTILE, OPTIONS, Average, make_experiment, small_forest

import upturn as up
from upturn._report import _page
from upturn._report._held_out import ONE_RULE
from upturn._report._words import percent, signed
from upturn.metrics import auuc
from upturn.metrics._multiple import holm
from upturn.policy import target
from upturn.trees import UpliftForest, UpliftTree

SECTIONS = ["answer", "sound", "models", "curves", "budget", "who", "appendix"]


class Reader(HTMLParser):
    """Text that is shown, tags with their attributes, and the text of scripts."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.shown, self.scripts, self._inside = [], [], [], None
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self._inside = tag

    def handle_endtag(self, tag):
        if tag == self._inside:
            self._inside = None

    def handle_data(self, text):
        if self._inside is None:
            self.shown.append(text)
        elif self._inside == "script":
            self.scripts.append(text)

    @property
    def text(self):
        return " ".join(" ".join(self.shown).split())

    def ids(self, tag):
        return [attributes.get("id") for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def read(page):
    return Reader(page.html)


def test_every_part_is_there_in_order(read, page):
    assert read.ids("section") == SECTIONS
    assert [name for name, _ in read.tags].count("h1") == 1
    assert read.text.index(page.answer.sentence) < read.text.index("Is the experiment sound?")
    tables = [name for name, _ in read.tags if name in ("table", "caption")]
    assert tables == ["table", "caption"] * (len(tables) // 2)
    for words in (
        "Arm sizes",
        "one rule",
        "Groups in words",
        "People to treat",
        "What the model goes by",
        "seed",
        "numba",
    ):
        assert words in read.text


def test_the_file_needs_nothing_else(read, page):
    assert len(page.html.encode()) < 3e6
    for _, attributes in read.tags:
        for key in ("src", "href", "action", "data"):
            assert attributes.get(key, "#").startswith(("#", "data:")), attributes
    policy = next(a["content"] for _, a in read.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert not re.search(r"\b(fetch|XMLHttpRequest|import)\s*\(", page.html)


def test_what_the_data_say_stays_text(read, page):
    assert HOSTILE in read.text
    assert "<b>north</b>" in read.text or 'east "end"' in read.text
    assert HOSTILE not in page.html
    assert "<b>" not in page.html
    assert [name for name, _ in read.tags].count("script") == 3
    hostile = up.report(
        *make_experiment(600), estimator=small_forest(), models={"</script><b>": UpliftTree(max_depth=1)}, outcome="<i>",
        title="<u>", **OPTIONS,
    )  # fmt: skip
    again = Reader(hostile.html)
    assert not {"b", "i", "u"} & {name for name, _ in again.tags}
    assert json.loads(again.scripts[0])["models"][1] == "</script><b>"


def test_without_scripts_there_are_pictures_and_tables(read):
    stills = [attributes for name, attributes in read.tags if name == "img"]
    assert len(stills) >= 4
    assert all(picture["alt"] and picture["src"].startswith("data:image/svg+xml;base64,") for picture in stills)
    assert read.text.count("in figures") >= 3


def test_the_same_data_make_the_same_page(mail, page, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    made = [
        up.report(
            *make_experiment(600), estimator=small_forest(), models={}, outcome="visit", **{**OPTIONS, "n_jobs": jobs}
        ).html
        for jobs in (1, 2)
    ]
    assert "2 January 1970" in made[0]
    assert made[0].replace("n_jobs=1", "n_jobs=2") == made[1].replace("n_jobs=1", "n_jobs=2")


@pytest.mark.parametrize("stamp", ["abc", "1e9", "9" * 30])
def test_a_date_that_is_none_is_said_before_anything_is_fitted(stamp, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", stamp)
    with pytest.raises(ValueError, match="expected seconds since 1970"):
        up.report(None, None, None)


# ------------------------------------------------------------------------------------------------ the numbers


def test_the_slider_says_what_target_says(page, mail):
    """At every stop, for the cost and value of the page and for others."""
    _, y, treatment = mail
    stops, score = page.page["data"]["budget"], page.scores["forest"]
    n = len(y)
    assert stops["mode"] == "people"
    assert len(stops["gain"]) in (101, 102)
    for i in (0, 7, 50, stops["plan"], len(stops["gain"]) - 1):
        for cost, value in ((2, 30), (0.5, 11)):
            plan = target(
                score,
                fraction=stops["treated"][i] / n,
                cost=cost,
                value=value,
                y=y,
                treatment=treatment,
                n_bootstrap=60,
            )
            assert plan.n_treated == stops["treated"][i]
            assert stops["gain"][i] == pytest.approx(float(plan.per_1000), abs=1e-9)
            assert stops["low"][i] == pytest.approx(plan.per_1000.low, abs=1e-9)
            paid = 1000 * cost * stops["share"][i]
            profit = plan.profit_per_1000
            assert value * stops["gain"][i] - paid == pytest.approx(float(profit), abs=1e-7)
            assert value * stops["low"][i] - paid == pytest.approx(profit.low, abs=1e-7)
            assert value * stops["high"][i] - paid == pytest.approx(profit.high, abs=1e-7)
            random = 1000 * plan.comparison["gain"][plan.comparison["whom"].tolist().index("as many at random")]
            assert stops["random"][i] == pytest.approx(random, abs=1e-9)
    assert page.plan.n_treated == stops["treated"][stops["plan"]]
    assert float(page.plan.profit_per_1000) == pytest.approx(stops["profit"][stops["plan"]], abs=1e-9)


def test_a_slider_of_money_says_what_target_says(offers_page, offers):
    _, y, treatment = offers
    stops, score = offers_page.page["data"]["budget"], offers_page.scores["forest"]
    assert stops["mode"] == "money"
    for value, factor in ((30, 1), (12, 1), (75, 1), (30, 0.4), (90, 2.5)):
        cost = {"mail": factor, "call": 4 * factor}
        agrees(stops, value, factor, score, y, treatment, cost=cost, value=value)
    shown = offers_page.page["budget"]["rows"]
    assert shown[-1][0] == f"{offers_page.plan.n_treated:,}"  # without JavaScript, the slider ends with the plan
    assert "whatever one unit of visit is worth, and if all costs rise or fall alike" in offers_page.html


@pytest.mark.parametrize("money", [{}, {"budget": 900}, {"fraction": 0.3}])
def test_a_slider_of_money_on_a_page_without_a_value_takes_one(offers, money):
    X, y, treatment = offers
    prices = {"cost": {"mail": 1, "call": 4}, **money}
    found = up.report(X, y, treatment, estimator=small_forest(), models={}, **prices, **OPTIONS)
    stops, score, plan = found.page["data"]["budget"], found.scores["forest"], found.plan
    assert stops["value"] is None
    at = stops["plan"]
    assert (stops["treated"][at], stops["spent"][at]) == (plan.n_treated, pytest.approx(plan.cost))
    assert stops["gain"][at] == pytest.approx(float(plan.per_1000), abs=1e-9)
    if "fraction" not in money:  # a plan of the best by score is no stop of this path
        agrees(stops, 20, 1, score, y, treatment, cost=prices["cost"], value=20)
    assert json.dumps(found.page["data"], allow_nan=False)


def agrees(stops, one, factor, score, y, treatment, weight=None, **prices):
    """Stops at a value and at costs that are all a factor of the page's, against target; and the slider ends where target does."""
    given = {**prices, "y": y, "treatment": treatment, "sample_weight": weight, "n_bootstrap": 60}
    worth = [stops.get(f"worth{end}", stops[gain]) for end, gain in (("", "gain"), ("_low", "low"), ("_high", "high"))]
    reached = [i for i, m in enumerate(stops["marginal"]) if m is None or one * m > factor]
    assert reached == list(range(len(reached)))
    for i in reached[:: max(1, len(reached) // 5)]:
        plan = target(score, budget=factor * stops["spent"][i], **given)
        assert plan.cost == pytest.approx(factor * stops["spent"][i])
        assert plan.n_treated == round(stops["treated"][i])
        assert stops["gain"][i] == pytest.approx(float(plan.per_1000), abs=1e-9)
        profits = [one * of[i] - factor * stops["paid"][i] for of in worth]
        found = plan.profit_per_1000
        assert profits == pytest.approx([float(found), found.low, found.high], abs=1e-7)
    most = target(score, **given).cost
    assert factor * stops["spent"][reached[-1]] <= most * (1 + 1e-9)
    if len(reached) < len(stops["spent"]):
        assert most < factor * stops["spent"][len(reached)] * (1 + 1e-9)


def test_a_slider_of_money_where_people_differ_in_cost_value_and_weight():
    X, y, treatment = make_experiment(1500, arms=2, seed=2)
    rng = np.random.default_rng(0)
    cost, worth, weight = rng.uniform(0.5, 4, (1500, 2)), rng.uniform(10, 60, 1500), rng.uniform(0.5, 2, 1500)
    options = {"estimator": small_forest(), "models": {}, "sample_weight": weight, **OPTIONS}
    found = up.report(X, y, treatment, cost=cost, value=worth, **options)
    stops, score = found.page["data"]["budget"], found.scores["forest"]
    for many, factor in ((1, 1), (0.5, 1), (3, 1.5)):
        agrees(stops, many, factor, score, y, treatment, weight, cost=factor * cost, value=many * worth)
    plan, at = found.plan, stops["plan"]
    assert stops["profit"][at] == pytest.approx(float(plan.profit_per_1000), abs=1e-7)
    row = plan.comparison["whom"].tolist().index("as many at random")
    spent, usual = plan.comparison["cost"][0], plan.comparison["cost"][row]
    assert stops["random"][at] == pytest.approx(1000 * plan.comparison["gain"][row] * spent / usual)
    near = min(at + 1, len(stops["random"]) - 1)  # in a row with its neighbours
    assert min(stops["random"][at - 1], stops["random"][near]) - 1 <= stops["random"][at]
    assert stops["random"][at] <= max(stops["random"][at - 1], stops["random"][near]) + 1
    assert "if all values or all costs rise or fall alike" in found.html


def test_areas_and_curves_are_those_of_the_metrics(page, mail):
    _, y, treatment = mail
    area = auuc(y, page.scores["forest"], treatment, interval=0.95, n_bootstrap=60)
    shown = page.page["models"]["table"]["rows"]
    assert next(row[1] for row in shown if row[0] == "forest").startswith(f"{1000 * area:.3g}"[:4])
    curve = up.metrics.uplift_curve(y, page.scores["forest"], treatment)
    drawn = page.page["data"]["curves"]["uplift"]["mail"]["forest"]["y"]
    assert drawn == pytest.approx(1000 * curve(np.linspace(0, 1, 101)), rel=1e-4, abs=1e-4)


class Spy(BaseEstimator):
    """Refuses to be asked about rows it was fitted to."""

    def fit(self, X, y, treatment, sample_weight=None):
        self.seen_ = set(X["row"].to_list())
        self.households_ = set(X["household"].to_list())
        self.arms_, self.control_ = [1], 0
        return self

    def predict(self, X):
        assert not self.seen_ & set(X["row"].to_list())
        Spy.apart.append(not self.households_ & set(X["household"].to_list()))
        return X["x"].to_numpy()


@pytest.mark.parametrize("together", [False, True])
def test_nobody_is_scored_by_a_model_that_has_seen_him(together):
    import polars as pl

    rng, n = np.random.default_rng(0), 1200
    x, t = rng.normal(size=n), rng.integers(0, 2, n)
    X = pl.DataFrame({"row": np.arange(n) / 7, "household": np.arange(n) // 3 / 7, "x": x})
    y = x * t + rng.normal(size=n)
    Spy.apart = []
    groups = np.arange(n) // 3 if together else None
    found = up.report(X, y, t, estimator=Spy(), models={}, groups=groups, **{**OPTIONS, "cv": 3})
    assert len(Spy.apart) == 3
    assert all(Spy.apart) == together
    assert np.array_equal(found.scores["Spy"][:, 0], x)
    assert found.page["importances"] is None


# ------------------------------------------------------------------------------------------------ the verdict


def test_a_plan_is_recommended_where_a_model_is_better(page):
    assert page.answer.kind == "recommend"
    assert "over treating nobody" in page.answer.sentence
    assert page._found.measured.better[ONE_RULE][1] > 0
    assert repr(page).startswith("Treat ")


def test_the_numbers_to_remember_are_those_of_the_answer(page):
    """Per 1,000 people, as everything on the page."""
    plan = page._found.measured.plan
    row = plan.comparison["whom"].tolist().index("as many at random")
    shown = {cell["name"]: cell["value"] for cell in _page._key(page._found)}
    assert shown["profit over random"] == signed(1000 * plan.comparison["this plan better by"][row])
    share = plan.comparison["treated"][plan.comparison["whom"].tolist().index("this plan")]
    assert shown["people to treat"] == percent(share)
    assert page.answer.sentence.startswith(f"Treat {percent(share)} of people:")


def test_noise_gets_no_recommendation():
    X, y, treatment = make_experiment(1500, slope=0.0, seed=3)
    found = up.report(X, y, treatment, estimator=small_forest(), models={}, **OPTIONS)
    assert found.answer.kind == "random"
    read = Reader(found.html)
    assert read.ids("section") == [name for name in SECTIONS if name != "budget"]
    assert "Nothing here is worth targeting by" in read.text
    assert found.page["data"]["budget"] is None
    assert "Whom the plan treats" not in read.text


def test_one_effect_for_everybody_is_no_ranking(flat_page):
    """The folds' averages differ by chance: they are not put in an order, drawn, or treated by."""
    found = flat_page
    assert {name: count.tolist() for name, count in found._found.held.constant.items()} == {
        "Average": [2],
        ONE_RULE: [0],
    }
    assert len(np.unique(found.scores["Average"])) == 1
    assert found.answer.kind == "random"
    assert found.answer.sentence.startswith("One effect for everybody: on 1,500 rows nothing shows that effects differ")
    assert float(found._found.measured.areas["Average"]) == 0
    read = Reader(found.html)
    assert "There is no ranking." in read.text
    assert read.ids("section") == [name for name in SECTIONS if name != "budget"]
    assert not [a for _, a in read.tags if a.get("class", "").startswith("chart")]
    assert "Tenths" not in read.text
    assert not [a for name, a in read.tags if name == "img"]


def test_an_arm_with_one_effect_for_everybody_is_not_ranked(offers):
    """The other arm is."""

    class Half(Average):
        def fit(self, X, y, treatment, sample_weight=None):
            super().fit(X, y, treatment)
            self.arms_ = ["call", "mail"]
            return self

        def predict(self, X):
            return np.column_stack([X["age"].to_numpy() / 100, super().predict(X)])

    found = up.report(*offers, estimator=Half(), models={}, **OPTIONS)
    assert found._found.held.flat_arms("Half").tolist() == [False, True]
    assert len(np.unique(found.scores["Half"][:, 1])) == 1
    assert (
        "The Half predicts one effect of mail for everybody: of that arm there is no ranking" in Reader(found.html).text
    )
    assert any(line.startswith("In every fold the Half predicted one effect of mail") for line in found.answer.sure)
    assert found.page["data"]["flat"] == ["mail"]
    assert [part["arm"] for part in found.page["bins"]] == ["call"]
    curve = found.page["data"]["curves"]["uplift"]["mail"]["Half"]
    assert curve["y"] == pytest.approx(curve["random"], abs=1e-3)


def test_folds_without_an_effect_that_differs_are_counted(mail):
    class Sometimes(Average):
        """One effect for everybody in the first fold."""

        def predict(self, X):
            Sometimes.asked += 1
            return super().predict(X) if Sometimes.asked == 1 else X["age"].to_numpy()

    Sometimes.asked = 0
    found = up.report(*mail, estimator=Sometimes(), models={}, **OPTIONS)
    assert any(line.startswith("In 1 of 2 folds the Sometimes predicted one effect") for line in found.answer.sure)
    assert len(np.unique(found.scores["Sometimes"])) > 100


def test_a_ranking_whose_plan_is_no_better_than_chance_is_not_a_recommendation():
    """Everybody gains, some more than others: whom to leave out is not a question, unless treating costs something."""
    X, _, treatment = make_experiment(4000)
    rng, age = np.random.default_rng(5), X["age"].to_numpy()
    gain = 0.08 + 0.3 * ((age - 18) / 62 + (X["spend_before"].fill_null(60).to_numpy() < 50)) / 2
    y = (rng.random(len(X)) < 0.2 + gain * (treatment == "mail")).astype(float)
    found = up.report(X, y, treatment, estimator=small_forest(), models={}, **OPTIONS)
    assert found.answer.kind == "ranking"
    assert found.answer.sentence.startswith(
        "No recommendation whom to treat: the forest ranks people better than chance, but"
    )
    assert any("Say what treating costs" in line for line in found.answer.advice)
    read = Reader(found.html)
    assert "A ranking, but no plan" in read.text
    assert "Recommendation" not in read.text.split("How sure")[0]
    assert read.ids("section") == SECTIONS
    assert "To choose from the next list" not in read.text
    paid = up.report(X, y, treatment, estimator=small_forest(), models={}, cost=5, value=20, **OPTIONS)
    assert paid.answer.kind == "recommend"


def test_a_model_no_better_than_a_rule_is_not_recommended(mail):
    found = up.report(*mail, estimator=UpliftTree(max_depth=1, random_state=0), models={}, **OPTIONS)
    assert found.answer.kind == "rule"
    assert found.answer.sentence.startswith("No model is recommended")
    assert "One rule may do as well" in Reader(found.html).text


def test_no_effect_of_a_trial_is_cut_off_but_those_of_a_few_rows():
    """One of two that differ among many that do not would lie in the last twentieth of the ends."""
    many = {"low": np.full(20, 0.05), "effect": np.full(20, 0.1), "high": np.full(20, 0.15)}
    apart = {"low": np.array([0.25, -0.7]), "effect": np.array([0.3, 0.1]), "high": np.array([0.35, 0.9])}
    low, high = _page._axis([many, apart], 0.05)
    assert low > -100
    assert 300 < high < 350
    nothing = np.array([np.nan])
    assert _page._axis([{"low": nothing, "effect": nothing, "high": nothing}]) == (-1.0, 1.0)


def test_signs_stay_with_their_numbers(trial_page):
    checks = trial_page.html.split('class="checks"')[1].split("</ul>")[0]
    assert checks.count("p\xa0=\xa0") >= 3
    assert "p = " not in checks


def test_a_trial_of_one_rule_speaks_of_benefit(mail):
    tree = UpliftTree(max_depth=1, random_state=0)
    found = up.report(*mail, estimator=tree, models={}, audience="trial", **OPTIONS)
    assert found.answer.kind == "rule"
    assert found.answer.advice[0].startswith("The rule alone says as much: the benefit is larger where ")
    assert "target" not in " ".join(found.answer.advice)


def test_many_arms_are_not_named_one_by_one():
    X, _, _ = make_experiment(1500)
    rng = np.random.default_rng(0)
    arm = np.array(["control", *(f"offer {k}" for k in range(1, 6))])[rng.integers(0, 6, 1500)]
    tree = UpliftTree(max_depth=2, random_state=0)
    found = up.report(X, (rng.random(1500) < 0.3).astype(float), arm, estimator=tree, models={}, **OPTIONS)
    assert found.answer.kind == "random"
    effects = [1000 * row.effect for row in found.check.arms[1:]]
    low, high = (f"{value:.1f}".replace("-", "−") for value in (min(effects), max(effects)))
    said = f"the 5 arms change the outcome by {low} to {high} per 1,000 people, each as below."
    assert found.answer.sentence.endswith(said)
    assert [cell["name"] for cell in found.page["key"]] == [
        f"effect of offer {k} per 1,000 people" for k in range(1, 6)
    ]


def test_an_unsound_experiment_gets_no_recommendation(mail):
    X, y, treatment = mail
    keep = ~((treatment == "mail") & (X["age"].to_numpy() > 60))
    found = up.report(X.filter(keep), y[keep], treatment[keep], estimator=UpliftTree(max_depth=2), models={}, **OPTIONS)
    assert found.answer.kind == "unsound"
    assert "balance" in found.answer.sentence


def test_a_trial_speaks_of_patients_and_not_of_money(trial_page):
    read = Reader(trial_page.html)
    shown = read.text.lower()
    for word in ("money", "profit", "budget", "cost", "customer", "people", "spend "):
        assert word not in shown.replace("spend_before", ""), word
    for words in ("patients", "outcome missing", "analysed", "adjusted p", "effects by subgroup"):
        assert words in shown
    assert trial_page.page["check"]["lost"] == 150
    assert len(trial_page.scores["UpliftTree"]) == 3850
    tables = trial_page._found.people.by_feature
    assert [name for name, _, _ in tables] == ["age", "spend_before", HOSTILE]
    raw = np.concatenate([np.where(t.is_overall, np.nan, t["p_value"]) for _, t, _ in tables])
    assert np.concatenate([p for _, _, p in tables]) == pytest.approx(holm(raw), nan_ok=True)
    assert (~np.isnan(raw)).sum() > 6


def test_several_arms_say_who_gets_which(offers_page):
    read = Reader(offers_page.html)
    assert "People to give" in read.text
    assert "giving call to everybody" in " ".join(offers_page.answer.advice) + read.text
    assert list(offers_page.page["data"]["bins"]) == ["call", "mail"]


def test_the_last_lines_choose_from_another_list(page, mail):
    """As they stand on the page."""
    import html

    X, y, treatment = mail
    lines = html.unescape(re.search(r'aria-label="Next"><code>(.*?)</code>', page.html, re.DOTALL)[1])
    names = {"up": up, "X": X, "y": y, "treatment": treatment, "X_next": X.head(100), "UpliftForest": UpliftForest}
    exec(lines, names)
    assert names["plan"].n == 100
    assert names["plan"].rule.labels == ["control", "mail"]


def test_bad_input_is_refused_in_words(mail):
    for given, said in (
        ({"audience": "boss"}, "expected 'business' or 'trial'"),
        ({"audience": "trial", "cost": 1}, "no money"),
        ({"value": np.ones(4000)}, "no cost to weigh it against"),
        ({"value": 0}, "value is 0 for everybody"),
        ({"value": np.zeros(4000), "cost": 1}, "value is 0 for everybody"),
        ({"models": [1]}, "expected None, or a mapping|mapping from names to models"),
        ({"cv": 1}, "cv=1"),
        ({"groups": np.zeros(4000)}, "group|cluster"),
    ):
        with pytest.raises(ValueError, match=said):
            up.report(*mail, estimator=UpliftTree(max_depth=1), **given)
    X, y, treatment = mail
    with pytest.raises(ValueError, match="visits is 0 in every row, so no effect can be seen in it"):
        up.report(X, np.zeros(len(y)), treatment, estimator=UpliftTree(max_depth=1), outcome="visits")


def test_it_is_written_whole_or_not_at_all(page, tmp_path):
    path = page.save(tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == page.html
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    assert 'srcdoc="' in page._repr_html_()
    with pytest.raises(FileNotFoundError):
        page.save(tmp_path / "nowhere" / "report.html")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="is a device or a pipe"):
            page.save(tmp_path / name)
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("report.html")
    page.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()


def test_the_chart_library_is_the_one_that_was_fetched():
    home = files("upturn._report").joinpath("vendor", "uplot")
    sums = dict(reversed(line.split()) for line in home.joinpath("SHA256SUMS").read_text().splitlines())
    assert set(sums) == {"uPlot.iife.min.js", "uPlot.min.css", "LICENSE"}
    for name, expected in sums.items():
        assert hashlib.sha256(home.joinpath(name).read_bytes()).hexdigest() == expected
    assert "MIT License" in home.joinpath("LICENSE").read_text()
