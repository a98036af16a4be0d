"""`make screenshots`: the pictures of the page in docs/images, taken of the demo in a real browser."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Literal, get_args

from playwright.sync_api import Browser, sync_playwright

import convoscope
from convoscope.demo import make_calls, write_logs

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from browser.looking import chromium  # noqa: E402 (tests are no package)

Scheme = Literal["light", "dark"]
IMAGES = ROOT / "docs" / "images"
CALL = "v1-live-03"
"""A call that is lost while a tool takes its time."""
PLACES = {"page": "#/overview", "flow": "#/breaks", "conversation": f"#/call/{CALL}", "compare": "#/compare"}


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        logs = Path(folder) / "logs"
        write_logs(list(make_calls()), logs)
        run = convoscope.score(logs, out=Path(folder) / "demo", by=[["agent"]])
        page = (run.folder / "report.html").as_uri()
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        for scheme in get_args(Scheme):
            for name, place in PLACES.items():
                _picture(browser, page + place, IMAGES / f"{name}-{scheme}.png", scheme, (1400, 1160))
        _picture(browser, page + "#/overview", IMAGES / "phone-light.png", "light", (390, 844))
        browser.close()


def _picture(browser: Browser, address: str, file: Path, scheme: Scheme, window: tuple[int, int]) -> None:
    context = browser.new_context(viewport={"width": window[0], "height": window[1]}, color_scheme=scheme)
    tab = context.new_page()
    tab.goto(address)
    tab.wait_for_selector("html[data-ready]")
    tab.screenshot(path=file)
    context.close()


if __name__ == "__main__":
    main()
