"""`convoscope score`: read logs, score them, keep the run, print it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from convoscope.metrics.registry import Declared
    from convoscope.runs.run import Run

from convoscope.cli.options import (
    Contexts,
    Flows,
    Format,
    Full,
    Json,
    Junit,
    Map,
    Markdown,
    Metrics,
    MetricsFrom,
    ReadersFrom,
    SessionGap,
    SpeechTools,
    Targets,
    ToolFailed,
    Turns,
    sources,
    split,
)
from convoscope.cli.targets import ReportFiles, exit_by
from convoscope.errors import keeping


def score_command(
    paths: Annotated[list[Path], typer.Argument(help="Log files, or folders of them; - is standard input.")],
    metrics: Metrics = None,
    metrics_from: MetricsFrom = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the run. Default: one under runs/.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", help="Only the first N conversations.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", help="Processes. Default: all cores.")] = None,
    max_concurrency: Annotated[
        int, typer.Option("--at-once", help="Questions in flight, for metrics that wait for an answer.", min=1)
    ] = 200,
    by: Annotated[
        list[str] | None, typer.Option("--by", help="Group by these fields, e.g. flow,agent. May be repeated.")
    ] = None,
    format: Format = None,
    readers_from: ReadersFrom = None,
    map: Map = None,
    turns: Turns = None,
    tool_failed: ToolFailed = None,
    speech_tools: SpeechTools = None,
    session_gap: SessionGap = None,
    flows: Flows = None,
    label: Annotated[
        str | None,
        typer.Option("--label", help="The field that is your own verdict, e.g. resolved, or 'csat >= 4' for a number."),
    ] = None,
    annotate: Annotated[
        str | None, typer.Option("--annotate", help="Find topics, risks and actions with this annotator: rules.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail if anything could not be read.")] = False,
    target: Targets = None,
    junit: Junit = None,
    markdown: Markdown = None,
    contexts: Contexts = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="Also try the metrics on nonsense (`convoscope audit`), and keep what came.")
    ] = False,
    k: Annotated[int | None, typer.Option("--k", help="Trials that pass@k and pass^k draw. Default: 3.", min=1)] = None,
    full: Full = False,
    json: Json = False,
) -> None:
    """Score the conversations in some logs and keep the result as a run.

    The same command again opens the run that is there, or goes on where an earlier one was cut short.
    """
    from convoscope.report.score import score
    from convoscope.report.screen import progress_bar

    files = ReportFiles(junit, markdown)
    files.check()
    with progress_bar() as progress:
        run = score(
            paths,
            metrics=_chosen(metrics, metrics_from or (), k),
            metrics_from=metrics_from or (),
            out=out,
            limit=limit,
            workers=workers,
            max_concurrency=max_concurrency,
            strict=strict,
            by=None if not by else [split(one) or [] for one in by],
            format=format,
            readers_from=sources(readers_from, map),
            turns=turns,
            tool_failed=tool_failed or (),
            speech_tools=speech_tools or (),
            session_gap=session_gap,
            flows=flows or (),
            label=label,
            annotate=annotate,
            targets=target or (),
            progress=progress,
        )
    with keeping(lambda: f"the run is kept in {run.folder}"):
        if audit:
            _audit(run, metrics_from or ())
        _tell(run, files, contexts=contexts, full=full, json=json)


def _tell(run: Run, files: ReportFiles, *, contexts: bool, full: bool, json: bool) -> None:
    """Print the run and write its reports; end with what its targets came to."""
    from convoscope.analysis.answer import make_answer
    from convoscope.analysis.targets import run_checks
    from convoscope.report.gate import print_targets, targets_json
    from convoscope.report.run_terminal import print_answer, print_next, print_run, print_warnings
    from convoscope.report.screen import Screen
    from convoscope.report.view_terminal import write_contexts
    from convoscope.runs.run import PAGE

    screen = Screen()
    answer = make_answer(run)
    if full and not json:
        print_run(screen, run, answer)
    # The run keeps the targets that it was scored with: they are the given ones.
    checks = run_checks(run)
    files.write(run, ())
    if contexts:
        write_contexts(run)
    if json:
        screen.json(
            {
                "run": str(run.folder),
                "page": str(run.folder / PAGE),
                "answer": answer,
                "targets": targets_json(checks),
                "summary": run.summary,
                "read_report": run.read_report,
            }
        )
    elif full:
        print_targets(screen, checks)
        print_next(screen, answer, run)
    else:
        shown = {one.name for one in answer.figures}
        print_answer(
            screen, answer, run, lambda: print_targets(screen, [one for one in checks if one.name not in shown])
        )
    print_warnings(Screen(sys.stderr), run.read_report, full=full)
    exit_by(run, checks)


def _audit(run: Run, metrics_from: Sequence[str]) -> None:
    """Audit the run, unless that was done before; its page is drawn anew."""
    from convoscope.analysis.vacuity import audit_run
    from convoscope.report.page import write_page
    from convoscope.report.vacuity import keep_audit, kept_audit

    if kept_audit(run) is None:
        keep_audit(run, audit_run(run, metrics_from=metrics_from))
        write_page(run)


def _chosen(metrics: str | None, metrics_from: Sequence[str], k: int | None) -> Sequence[str | Declared] | None:
    """The metrics that are asked for, with other numbers of trials where `k` is."""
    if k is None:
        return split(metrics)
    from convoscope.metrics.composites import with_trials
    from convoscope.metrics.registry import registered

    return with_trials(registered(metrics_from).to_score(split(metrics)), k)
