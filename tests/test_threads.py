"""Which thread a test runs in."""

from __future__ import annotations

import threading


def test_only_tests_of_the_browser_run_in_its_thread() -> None:
    assert threading.current_thread() is threading.main_thread()
