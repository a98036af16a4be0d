"""How long a person waits for the page, and how large it is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

from playwright.sync_api import Browser, sync_playwright

from benchmarks.chats import write_chats
from convoscope.report.page import MAX_MB, write_page
from convoscope.runs.make import make_run as score

SIZES = (10, 300, 100_000)
ROUNDS = 5
PAINT_LIMIT_MS = 1_000
"""What people still take for at once."""


class Opened(NamedTuple):
    """Milliseconds from asking for the page to something on the screen, and to a list that can be searched."""

    painted: float
    ready: float


def run(folder: Path) -> None:
    chromium = (
        os.environ.get("CONVOSCOPE_CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    )
    print(f"the page, median of {ROUNDS} openings from disk in headless Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for size in SIZES:
            chats = folder / f"page-{size}.jsonl"
            write_chats(chats, size)
            scored = score(chats, out=folder / f"page-{size}")
            began = perf_counter()
            page = write_page(scored)
            seconds = perf_counter() - began
            opened = [_open(browser, page.path) for _ in range(ROUNDS)]
            painted, ready = (median(column) for column in zip(*opened, strict=True))
            print(
                f"  {size:>7,} conversations ({page.in_full} in full): {page.bytes / 1e6:5.2f} MB, "
                f"{page.bytes / 1e6 / MAX_MB:4.2f} of the limit of {MAX_MB:.0f} MB; "
                f"first paint {painted:4.0f} ms, {painted / PAINT_LIMIT_MS:4.2f} of the limit of {PAINT_LIMIT_MS} ms; "
                f"list ready {ready:5.0f} ms; written in {seconds:4.1f} s"
            )
        browser.close()
    print()


def _open(browser: Browser, path: Path) -> Opened:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    began = perf_counter()
    page.goto(path.resolve().as_uri(), wait_until="commit")
    page.wait_for_selector("html[data-ready]", state="attached", timeout=120_000)
    ready = 1000 * (perf_counter() - began)
    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    context.close()
    return Opened(float(painted), ready)
