"""The real browser, opened once, and the runs whose pages are looked at.

Playwright keeps an event loop running in the thread that started it, as long as the browser is open. So that no test
of anything else finds itself inside that loop, whatever touches the browser happens in a thread of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from playwright.sync_api import Browser, sync_playwright

from browser import given, walks
from browser.looking import View, chromium
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

_THREAD = ThreadPoolExecutor(1, thread_name_prefix="browser")


def _beside(function: Callable[[], object]) -> None:
    """Call a function in the thread of the browser."""
    if threading.current_thread().name.startswith("browser"):
        function()
    else:
        _THREAD.submit(function).result()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A test of this folder with its fixtures. Pytest asks here about the tests of every folder."""
    if Path(__file__).parent not in item.path.parents:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    _beside(lambda: runtestprotocol(item, nextitem=nextitem))
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium()
    if not path:
        pytest.fail("there is no Chromium: `make test` installs it, CONVOSCOPE_CHROMIUM names another", pytrace=False)
    playwright = sync_playwright().start()
    # The last test of the session, which closes everything, may be one of another folder.
    try:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        _beside(browser.close)
    finally:
        _beside(playwright.stop)


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


@pytest.fixture(scope="session")
def viewings(runs: Path) -> Run:
    """64 calls through the states of one flow, 28 of them lost."""
    return walks.make_run(runs / "viewings", list(walks.viewings()))


@pytest.fixture(scope="session")
def versions(runs: Path) -> Run:
    """80 calls of two versions through one flow: v1 gets stuck in one state, and v2 hardly ever."""
    return walks.make_run(runs / "versions", list(walks.versions()))


@pytest.fixture(scope="session")
def many(runs: Path) -> Run:
    """More chats than the list holds."""
    return given.many(runs)
