"""The whole road to a person: score, keep the run, and write its page."""

from __future__ import annotations

from typing import Any

from convoscope.errors import keeping
from convoscope.report.notebook import Run
from convoscope.report.page import write_page
from convoscope.runs.make import run_with, with_settings
from convoscope.runs.run import PAGE
from convoscope.scoring.settings import ScoreSettings


def score_with(source: Any, settings: ScoreSettings) -> Run:
    """Score the conversations of a source, keep the run, and write its page."""
    run = run_with(source, settings)
    # A page that is there already may be larger by choice.
    if not (run.folder / PAGE).exists():
        # The run is safe by now, whatever becomes of the page.
        with keeping(lambda: f"the run is kept in {run.folder}; only its page is missing"):
            settings.report("writing the page", run.summary.conversations)
            write_page(run)
    run.held.clear()
    return run


score = with_settings(score_with, ScoreSettings)
