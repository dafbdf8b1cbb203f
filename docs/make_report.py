"""The pictures in report.md: parts of the page of a simulated campaign. Needs chromium and chromium-driver."""

import base64
import shutil
import tempfile
from pathlib import Path

import numpy as np
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

import upturn as up
from upturn.datasets import simulate_campaign

WIDTH, HEIGHT = 1000, 900
# From the top of one part of the page to the bottom of another.
PICTURES = {"report.png": ("body", ".answer .keys"), "report_budget.png": ("#budget", "#budget .panel")}


def main():
    data = simulate_campaign(30_000, random_state=0)
    rows = np.flatnonzero(np.isin(data.treatment, ["control", "coupon"]))
    X = data.X.iloc[rows] if hasattr(data.X, "iloc") else data.X[rows]
    page = up.report(
        X, data.y[rows], data.treatment[rows], cost=0.8, value=25, outcome="purchases", n_jobs=-1, verbose=1,
        title="Spring coupons: who buys because of them?",
    )  # fmt: skip
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in ("--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT}"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    with tempfile.TemporaryDirectory() as place:
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(page.save(Path(place) / "report.html").as_uri())
        browser.execute_script("document.querySelector('nav').style.position = 'static'")
        for name, ends in PICTURES.items():
            boxes = [f"document.querySelector('{end}').getBoundingClientRect()" for end in ends]
            top, bottom = browser.execute_script(f"return [{boxes[0]}.top + scrollY, {boxes[1]}.bottom + scrollY + 24]")
            clip = {"x": 0, "y": top, "width": WIDTH, "height": bottom - top, "scale": 0.9}
            asked = {"format": "png", "captureBeyondViewport": True, "clip": clip}
            shot = browser.execute_cdp_cmd("Page.captureScreenshot", asked)["data"]
            (Path(__file__).parent / "images" / name).write_bytes(base64.b64decode(shot))
        browser.quit()


if __name__ == "__main__":
    main()
