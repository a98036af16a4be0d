"""The real browser, opened once, and the runs whose pages are looked at."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from browser import given
from browser.looking import View
from convoscope.runs.run import Run

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

Look = Callable[..., View]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = os.environ.get("CONVOSCOPE_CHROMIUM") or shutil.which("chromium")
    if not path or not shutil.which(path):
        pytest.fail(f"there is no Chromium at {path or 'any place of PATH'}: `make test` installs it", pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def look(browser: Browser) -> Iterator[Look]:
    """Opens the page of a run, or a file. At the end, whatever the page did unasked fails the test."""
    opened: list[View] = []

    def open_page(what: Run | Path, address: str = "", **window: object) -> View:
        file = what.folder / "report.html" if isinstance(what, Run) else what
        opened.append(View(browser, file, address, **window))  # type: ignore[arg-type]
        return opened[-1]

    yield open_page
    try:
        for view in opened:
            view.was_quiet()
    finally:
        for view in opened:
            view.close()


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def examples(runs: Path) -> Run:
    """Examples of the repository: 24 conversations of three formats, one of them a recorded call."""
    return given.examples(runs)


@pytest.fixture(scope="session")
def shop(runs: Path) -> Run:
    """A few hundred chats of which two could not be read, scored with metrics that fail, tie and grow large."""
    return given.shop(runs)


@pytest.fixture(scope="session")
def forty(runs: Path) -> Run:
    """Forty chats."""
    return given.forty(runs)


@pytest.fixture(scope="session")
def hostile(runs: Path) -> Run:
    """Logs written by somebody who wants the page to do their bidding."""
    return given.hostile(runs)
