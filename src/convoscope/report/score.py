"""The whole road to a person: score, keep the run, and write its page."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from convoscope.errors import keeping
from convoscope.report.page import write_page
from convoscope.runs import make as making
from convoscope.runs.run import PAGE, Run

P = ParamSpec("P")


def _with_page(make: Callable[P, Run]) -> Callable[P, Run]:
    @wraps(make)
    def score(*args: P.args, **kwargs: P.kwargs) -> Run:
        run = make(*args, **kwargs)
        # The run is safe by now, whatever becomes of the page. One that is there may be larger by choice.
        if not (run.folder / PAGE).exists():
            with keeping(lambda: f"the run is kept in {run.folder}; only its page is missing"):
                tell = kwargs.get("progress")
                if callable(tell):
                    tell(making.Progress("writing the page", run.summary.conversations))
                write_page(run)
        return run

    score.__name__ = score.__qualname__ = "score"
    return score


score = _with_page(making.make_run)
