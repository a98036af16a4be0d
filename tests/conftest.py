"""How the tests are run: in which order, with how much patience, and what the end of a run says."""

from __future__ import annotations

import gc
import random
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would every command that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes depends on who else uses the machine: it is no property of the code. Each run draws others,
# so that few are enough; `--hypothesis-profile thorough` draws many.
settings.register_profile("suite", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("suite"), max_examples=1000)
settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run files, and tests in a file, in a random order")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[object]:
    """Thousands of tests and all of the package stay: the collector need not look at them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[object]:
    """Between tests, in the main thread: what a browser or a model leaves must not be freed in a thread of a store."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.getoption("--shuffle")
    if seed is None:
        return
    # The same in each worker. A file stays together, for what its tests share is made once.
    chance = random.Random(seed)
    files = {item.path: chance.random() for item in items}
    items.sort(key=lambda item: (files[item.path], chance.random()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = sorted(
        str(value)
        for report in terminalreporter.stats.get("passed", [])
        for name, value in getattr(report, "user_properties", [])
        if name == "conformance"
    )
    if lines:
        terminalreporter.section("conformance cases run")
        for line in lines:
            terminalreporter.write_line(line)
