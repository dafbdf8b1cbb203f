"""The picture in report.md: the top of the page of a simulated campaign. Needs chromium and chromium-driver."""

import base64
import shutil
import tempfile
from pathlib import Path

import numpy as np
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

import upturn as up
from upturn.datasets import simulate_campaign

WIDTH, HEIGHT = 1000, 700


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
        top = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
        browser.quit()
    (Path(__file__).parent / "images" / "report.png").write_bytes(base64.b64decode(top))


if __name__ == "__main__":
    main()
