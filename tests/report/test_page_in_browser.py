"""The page in a real browser: Chromium without a window, driven by selenium.

Skipped where there is no browser; with UPTURN_BROWSER=1 in the environment, as in continuous integration, that is a failure.
"""

import importlib.util
import os
import shutil

import pytest

from upturn.policy import target

SECTIONS = ["answer", "sound", "models", "curves", "budget", "who", "appendix"]


def _found():
    """The browser and its driver, or what is missing."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    for name in ("selenium", "axe_core_python"):
        if importlib.util.find_spec(name) is None:
            return None, None, f"{name} is not installed"
    return chromium, driver, "" if chromium and driver else "chromium or chromium-driver is not installed"


@pytest.fixture(scope="module")
def browser():
    chromium, driver, missing = _found()
    if missing:
        if os.environ.get("UPTURN_BROWSER") == "1":
            pytest.fail(f"UPTURN_BROWSER=1, but {missing}")
        pytest.skip(missing)
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1200,900",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    made = webdriver.Chrome(options=options, service=Service(driver))
    yield made
    made.quit()


@pytest.fixture
def show(browser, tmp_path):
    """Open a page, as wide as said, in one of the two colour schemes; returns the browser."""

    def run(report, width=1200, scheme="light"):
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        wishes = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}  # or clicks miss what still moves
        features = [{"name": name, "value": wish} for name, wish in wishes.items()]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
        browser.get_log("browser")
        browser.get_log("performance")
        browser.get(report.save(tmp_path / "report.html").as_uri())
        return browser

    return run


def value(browser, name, part="value"):
    return float(browser.execute_script(f"return document.getElementById('{name}').dataset.{part}"))


def set_field(browser, name, number):
    browser.execute_script(
        "const e = document.getElementById(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event('input', {bubbles: true}))",
        name,
        str(number),
    )


@pytest.mark.parametrize("which", ["page", "offers_page", "trial_page", "flat_page"])
def test_it_loads_without_complaint_or_network(show, which, request):
    import json

    browser = show(request.getfixturevalue(which))
    assert browser.get_log("browser") == []
    asked = []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.append(message["params"]["request"]["url"])
    assert [url for url in asked if not url.startswith("data:")] == [browser.current_url]
    assert len(browser.find_elements("css selector", ".chart canvas")) == (0 if which == "flat_page" else 4)


def test_the_slider_moves_the_numbers_to_those_of_target(show, page, mail):
    _, y, treatment = mail
    browser = show(page)
    stops, score, n = page.page["data"]["budget"], page.scores["forest"], len(y)
    assert browser.find_element("id", "out-share").text == f"{page.page['key'][0]['value']} of the list"
    for stop, cost, worth in ((stops["plan"], 2, 30), (20, 2, 30), (20, 0.7, 12.5), (80, 0.7, 12.5)):
        set_field(browser, "slider", stop)
        set_field(browser, "cost", cost)
        set_field(browser, "value", worth)
        plan = target(
            score, fraction=stops["treated"][stop] / n, cost=cost, value=worth, y=y, treatment=treatment, n_bootstrap=60
        )
        assert value(browser, "out-treated") == plan.n_treated
        assert value(browser, "out-gain") == pytest.approx(float(plan.gain), rel=1e-9, abs=1e-6)
        assert value(browser, "out-gain-range", "low") == pytest.approx(plan.gain.low, rel=1e-9, abs=1e-6)
        assert value(browser, "out-cost") == pytest.approx(plan.cost)
        assert value(browser, "out-profit") == pytest.approx(float(plan.profit), rel=1e-9, abs=1e-6)
        assert value(browser, "out-profit-range", "low") == pytest.approx(plan.profit.low, rel=1e-9, abs=1e-6)
        assert value(browser, "out-profit-range", "high") == pytest.approx(plan.profit.high, rel=1e-9, abs=1e-6)
    set_field(browser, "cost", 2)
    set_field(browser, "spend", 2 * stops["treated"][30] + 1)
    assert value(browser, "out-treated") == stops["treated"][30]
    set_field(browser, "list", 10 * n)
    assert value(browser, "out-treated") <= stops["treated"][30]  # the same money, for a list ten times as long
    browser.find_element("id", "to-plan").click()
    assert value(browser, "out-treated") == pytest.approx(10 * page.plan.n_treated)


def test_a_slider_of_money_moves_too(show, offers_page, offers):
    _, y, treatment = offers
    browser = show(offers_page)
    stops, score = offers_page.page["data"]["budget"], offers_page.scores["forest"]
    stop = stops["plan"] // 2
    set_field(browser, "slider", stop)
    prices = {"cost": {"mail": 1, "call": 4}, "value": 30}
    plan = target(score, budget=stops["spent"][stop], **prices, y=y, treatment=treatment, n_bootstrap=60)
    assert value(browser, "out-cost") == pytest.approx(plan.cost)
    assert value(browser, "out-profit") == pytest.approx(float(plan.profit), rel=1e-9, abs=1e-6)
    assert not browser.find_elements("id", "cost")
    for worth, factor in ((30, 1), (12, 1), (60, 0.5), (0, 1)):  # the slider goes as far as it pays, and the money does
        set_field(browser, "costs", factor)
        set_field(browser, "value", worth)
        cost = {"mail": factor, "call": 4 * factor}
        most = target(score, cost=cost, value=worth, y=y, treatment=treatment, n_bootstrap=60).cost
        assert value(browser, "out-cost") <= most * (1 + 1e-9)
        set_field(browser, "slider", 10_000)
        reached = value(browser, "out-cost")
        assert reached <= most * (1 + 1e-9)
        assert reached >= 0.95 * most
        plan = target(score, budget=reached, cost=cost, value=worth, y=y, treatment=treatment, n_bootstrap=60)
        assert value(browser, "out-profit") == pytest.approx(float(plan.profit), rel=1e-9, abs=1e-6)
        assert value(browser, "out-profit-range", "low") == pytest.approx(plan.profit.low, rel=1e-9, abs=1e-6)
        set_field(browser, "spend", 0.3 * reached)
        assert value(browser, "out-cost") <= 0.3 * reached
    browser.find_element("id", "to-plan").click()
    assert value(browser, "out-profit") == pytest.approx(float(offers_page.plan.profit), rel=1e-9, abs=1e-6)
    assert browser.get_log("browser") == []


def test_everything_works_by_keyboard(show, page):
    from selenium.webdriver.common.keys import Keys

    browser = show(page)
    slider = browser.find_element("id", "slider")
    before = value(browser, "out-treated")
    slider.send_keys(Keys.HOME)
    assert value(browser, "out-treated") == 0
    slider.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert 0 < value(browser, "out-treated") < before
    assert "people" in slider.get_attribute("aria-valuetext")
    chart = browser.find_element("id", "chart-curves")
    chart.send_keys(Keys.ARROW_RIGHT, Keys.PAGE_UP)
    said = browser.find_element("id", "read-curves").text
    assert said.startswith("10% treated: forest")
    browser.find_element("css selector", "input[name=kind]").send_keys(Keys.ARROW_RIGHT)
    assert browser.execute_script("return document.querySelector('input[name=kind]:checked').value") == "qini"
    box = browser.find_element("css selector", "#legend input[value='one rule']")
    box.send_keys(Keys.SPACE)
    chart.send_keys(Keys.ARROW_RIGHT)
    assert "one rule" not in browser.find_element("id", "read-curves").text
    # by the tabulator alone, from the top: every control is reached
    browser.execute_script("document.activeElement.blur(); window.scrollTo(0, 0)")
    reached = set()
    for _ in range(80):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        reached.add(browser.execute_script("return document.activeElement.id || document.activeElement.tagName"))
    assert {"chart-curves", "slider", "to-plan", "cost", "value", "spend", "list"} <= reached


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", ["page", "offers_page", "trial_page"])
def test_axe_finds_nothing_serious(show, which, scheme, request):
    from importlib.resources import files

    browser = show(request.getfixturevalue(which), scheme=scheme)
    browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    browser.execute_script(files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    found = browser.execute_async_script("const done = arguments[0]; axe.run().then(done)")
    assert len(found["passes"]) > 15
    serious = [
        (rule["id"], node["target"], node["failureSummary"])
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]
    assert serious == []


@pytest.mark.parametrize("which", ["page", "offers_page", "trial_page"])
def test_a_phone_needs_no_sideways_scrolling(show, which, request):
    browser = show(request.getfixturevalue(which), width=380)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 380
    canvas = browser.execute_script(
        "return document.querySelector('#chart-curves canvas').getBoundingClientRect().width"
    )
    assert 200 < canvas <= 380
    effects = browser.execute_script(
        "return [...document.querySelectorAll('.forest tbody tr:not(.feature)')]"
        ".map(row => row.querySelectorAll('td.num')[1].getBoundingClientRect().right)"
    )
    assert len(effects) > 2
    assert max(effects) <= 380
    notes = browser.execute_script(
        "return [...document.querySelectorAll('.forest .feature span')].map(note => note.getBoundingClientRect().right)"
    )
    assert max(notes, default=0) <= 380


def test_paper_has_every_part(show, page):
    import base64

    browser = show(page, scheme="dark")
    made = browser.execute_cdp_cmd("Page.printToPDF", {"generateTaggedPDF": True, "generateDocumentOutline": True})
    pdf = base64.b64decode(made["data"])
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") >= 3
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    for name in SECTIONS:
        heading = browser.find_element("css selector", f"#{name} h2")
        assert heading.is_displayed()
        assert heading.text.encode("utf-16-be").hex().upper().encode() in pdf.upper() or heading.text.encode() in pdf
    assert browser.execute_script("return [...document.querySelectorAll('details')].every(d => d.open)")
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    browser.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert not browser.execute_script("return [...document.querySelectorAll('details')].every(d => d.open)")


def test_without_scripts_it_can_be_read(show, browser, page):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(page)
        browser.execute_cdp_cmd("DOM.enable", {})
        root = browser.execute_cdp_cmd("DOM.getDocument", {"depth": 0})["root"]["nodeId"]

        def boxes(selector):
            found = browser.execute_cdp_cmd("DOM.querySelectorAll", {"nodeId": root, "selector": selector})["nodeIds"]
            heights = []
            for node in found:
                try:
                    heights.append(browser.execute_cdp_cmd("DOM.getBoxModel", {"nodeId": node})["model"]["height"])
                except Exception:  # not laid out
                    heights.append(0)
            return heights

        assert all(height > 100 for height in boxes("img.still"))
        assert len(boxes("img.still")) >= 4
        assert not any(boxes(".live"))
        assert sum(height > 0 for height in boxes("table")) > 5
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
