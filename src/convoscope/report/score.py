"""The whole road to a person: score, keep the run, and write its page."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from convoscope.errors import keeping
from convoscope.report.notebook import Run
from convoscope.report.page import write_page
from convoscope.runs.make import Progress, make_run
from convoscope.runs.run import PAGE

P = ParamSpec("P")


def _named_score(make: Callable[P, Run]) -> Callable[P, Run]:
    """`make_run` followed by the page, with its arguments and documentation, under the name that users know."""

    @wraps(make)
    def score(*args: P.args, **kwargs: P.kwargs) -> Run:
        run = make(*args, **kwargs)
        # A page that is there already may be larger by choice.
        if not (run.folder / PAGE).exists():
            # The run is safe by now, whatever becomes of the page.
            with keeping(lambda: f"the run is kept in {run.folder}; only its page is missing"):
                progress = kwargs.get("progress")
                if callable(progress):
                    progress(Progress("writing the page", run.summary.conversations))
                write_page(run)
        return run

    score.__name__ = score.__qualname__ = "score"
    return score


score = _named_score(make_run)
