"""`convoscope audit`: would the metrics notice if these conversations were nonsense?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from convoscope.cli.options import Json, Markdown, Metrics, MetricsFrom, ReadOptions, split, with_read_options
from convoscope.cli.targets import exit_with

if TYPE_CHECKING:
    from convoscope.analysis.vacuity import VacuityAudit


@with_read_options
def audit_command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Log files, or folders of them; - is standard input. Or the folder of one run, which keeps the audit."
        ),
    ],
    reading: ReadOptions,
    metrics: Metrics = None,
    metrics_from: MetricsFrom = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target", help="A target to try: 'tools.success >= 90%'. May be repeated. A run brings its own."
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="Make nonsense of the first N conversations.", min=1)] = 200,
    markdown: Markdown = None,
    json: Json = False,
) -> None:
    """See which metrics and targets notice broken conversations.

    Exit code 1 where a metric does not notice what it declares, 3 where nothing could be decided.
    """
    from convoscope.analysis.vacuity import audit
    from convoscope.report.files import check_files, write_text
    from convoscope.report.screen import Screen
    from convoscope.report.vacuity import print_vacuity, vacuity_markdown
    from convoscope.runs.run import RECEIPT

    check_files(markdown)
    if len(paths) == 1 and (paths[0] / RECEIPT).is_file():
        result = _of_run(paths[0], split(metrics), metrics_from or (), target or (), limit)
    else:
        result = audit(
            paths,
            metrics=split(metrics),
            metrics_from=metrics_from or (),
            targets=target or (),
            limit=limit,
            **reading.arguments,
        )
    screen = Screen()
    if json:
        screen.json(result)
    else:
        print_vacuity(screen, result)
    if markdown is not None:
        write_text(markdown, vacuity_markdown(result))
    exit_by_audit(result)


def exit_by_audit(result: VacuityAudit) -> None:
    """End the command with what the audit came to."""
    exit_with("failed" if result.failures else "passed" if result.could_tell else "undetermined")


def _of_run(
    folder: Path,
    metrics: list[str] | None,
    metrics_from: list[str] | tuple[()],
    targets: list[str] | tuple[()],
    limit: int,
) -> VacuityAudit:
    """The audit of a run, which is kept with it; its page is drawn anew."""
    from convoscope.analysis.vacuity import audit_run
    from convoscope.report.page import write_page
    from convoscope.report.vacuity import keep_audit
    from convoscope.runs.run import Run

    run = Run.open(folder)
    result = audit_run(run, metrics=metrics, metrics_from=metrics_from, targets=targets, limit=limit)
    keep_audit(run, result)
    write_page(run)
    return result
