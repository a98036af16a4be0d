"""Data that others made, replayed.

The data lies beside the checkout, at `../shared`, or where CONVOSCOPE_SHARED says. Every case and
folder that is found there is run, whatever its number or name, and the end of the test run says
how many there were. Where the data is absent, the tests are skipped and say so.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("CONVOSCOPE_SHARED") or Path(__file__).parents[3] / "shared")
_PROPERTY = "conformance"  # tests/conftest.py prints it at the end


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """`shared("data/cases")`: a place in the shared data, or a skip that says what is missing."""

    def find(place: str) -> Path:
        path = SHARED / place
        if not path.exists():
            pytest.skip(f"no conformance data: {path} is absent (set CONVOSCOPE_SHARED)")
        return path

    return find


@pytest.fixture
def ran(record_property: Callable[[str, object], None]) -> Callable[[str, int], None]:
    """`ran("what", 12)`: say how many cases were run. None at all is a skip that says so."""

    def say(what: str, count: int) -> None:
        if not count:
            pytest.skip(f"no conformance data: {what}: there is no case")
        record_property(_PROPERTY, f"{what}: {count}")

    return say
