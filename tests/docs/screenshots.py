"""`make screenshots`: the pictures of the page in docs/images, taken of the demo in a real browser."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import BrowserContext, Page, sync_playwright

import convoscope

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from browser.looking import chromium  # noqa: E402 (tests are no package)
from browser.walks import make_run, viewings  # noqa: E402

IMAGES = ROOT / "docs" / "images"
TARGETS = ["tools.success >= 90%", "timing.response_latency p95 < 8", "agent.repetition < 5%"]
PLACES = {"page": "", "conversation": "#conversation=bike-desk-031%2Ftrial-2"}


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        run = convoscope.score(ROOT / "examples", out=Path(folder) / "demo", targets=TARGETS)
        page = (run.folder / "report.html").as_uri()
        # The examples hold two or three calls of a flow: too few for a picture to say something.
        flow = (make_run(Path(folder) / "viewings", list(viewings())).folder / "report.html").as_uri()
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport={"width": 1280, "height": 1160}, color_scheme=scheme)
            for name, place in PLACES.items():
                tab = context.new_page()
                tab.goto(page + place)
                tab.wait_for_selector("html[data-ready]")
                tab.screenshot(path=IMAGES / f"{name}-{scheme}.png")
                tab.close()
            _flow(context, flow).screenshot(path=IMAGES / f"flow-{scheme}.png")
            context.close()
        browser.close()


def _flow(context: BrowserContext, page: str) -> Page:
    """The page with the first of the states that broke their flow chosen."""
    tab = context.new_page()
    tab.goto(page)
    tab.wait_for_selector("html[data-ready]")
    tab.locator(".flow-causes a").first.click()
    tab.locator(".flow-picture .chosen").wait_for()
    tab.locator("#flow").evaluate("one => one.scrollIntoView()")
    tab.mouse.move(0, 0)
    return tab


if __name__ == "__main__":
    main()
