"""The history of runs for Python: figures over many nights, with a picture and a page."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from convoscope.analysis.history import make_history
from convoscope.analysis.history.model import History
from convoscope.report.history_page import write_history_page
from convoscope.report.plot.history import history_plot


def history(
    runs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], *, by: str = "", targets: Sequence[str] = ()
) -> History:
    """The figures of many runs over time: levels, changes, and the version that came with each.

    `runs` are runs, or folders that hold runs. `by="day"` splits each run by the days of its conversations. `targets`
    come beside those that the last run was scored with.

    >>> convoscope.history("runs/nightly").plot().save("history.svg")   # doctest: +SKIP
    """
    return make_history(runs, by=by, targets=targets)


def history_json(made: History, page: Path | None) -> dict[str, Any]:
    """A history for a program."""
    fields: dict[str, Any] = msgspec.to_builtins(made)
    return {"page": None if page is None else str(page), **fields}


History.draw = history_plot
History.write = write_history_page
