"""The end of a test run says how many conformance cases were run."""

from __future__ import annotations

import pytest


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
