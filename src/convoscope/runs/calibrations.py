"""What a run says of its judges: the calibrations that fit them, copied into its summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from convoscope.judging.calibrations import Agreement, found_calibrations, replaced
from convoscope.runs.run import PAGE, SUMMARY, Run, write_summary
from convoscope.runs.summary import Summary
from convoscope.scores.judges import is_panel, kind_of
from convoscope.scoring.settings import ScoreSettings


def calibrations_for(settings: ScoreSettings) -> list[Agreement]:
    """The calibrations that a run may use: of the file that its settings name, else of the usual one."""
    file = None if settings.calibration is None else Path(settings.calibration)
    return found_calibrations(file, settings.least_labels, settings.least_kappa)


def with_calibrations(summary: Summary, find: Callable[[], Iterable[Agreement]]) -> Summary:
    """A summary with the calibrations of its judges; nothing is looked for where no judge speaks.

    For a judge without one, those of its metric are kept that are of other judges: they say why it has none.
    """
    judges = {(figure.key, figure.judge) for figure in summary.figures if not figure.judge.startswith("(")}
    if not judges:
        return summary
    agreements = list(find())
    fitting = [one for one in agreements if (one.metric, one.judge) in judges]
    known = {(one.metric, one.judge) for one in (*summary.calibrations, *fitting)}
    lacking = {metric for metric, judge in judges - known if kind_of(judge) == "model" and not is_panel(judge)}
    fitting += [one for one in agreements if one.metric in lacking and one.is_calibrated and not is_panel(one.judge)]
    return msgspec.structs.replace(summary, calibrations=replaced(summary.calibrations, fitting))


def recalibrate(run: Run, find: Callable[[], Iterable[Agreement]]) -> None:
    """Keep with a run what is known of its judges by now. A page that says something else is removed."""
    summary = with_calibrations(run.summary, find)
    if summary.calibrations != run.summary.calibrations:
        for path in {run.folder / SUMMARY, run.tables.own(SUMMARY)}:
            write_summary(path, summary)
        run.__dict__["summary"] = summary
        (run.folder / PAGE).unlink(missing_ok=True)
