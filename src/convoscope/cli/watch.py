"""`convoscope watch`: follows logs, and scores what comes."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from convoscope.cli.options import (
    EngineOption,
    Json,
    Metrics,
    MetricsFrom,
    Out,
    PolicyOption,
    ReadOptions,
    SettingsOption,
    Since,
    Targets,
    Workers,
    split,
    with_read_options,
)
from convoscope.cli.targets import exit_by


@with_read_options
def watch_command(
    reading: ReadOptions,
    logs: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder that logs come to, or one log.")],
    out: Out = None,
    metrics: Metrics = None,
    metrics_from: MetricsFrom = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="FIELD", help="Your own verdict: resolved, or 'csat >= 4'.")
    ] = None,
    target: Targets = None,
    policy: PolicyOption = None,
    settings: SettingsOption = None,
    since: Since = None,
    workers: Workers = None,
    engine: EngineOption = None,
    keep: Annotated[
        bool, typer.Option("--keep/--prune", help="Whether what is no longer in the logs stays in the run.")
    ] = True,
    every: Annotated[float, typer.Option("--every", metavar="SECONDS", help="Between two looks at the logs.")] = 10.0,
    ended_after: Annotated[
        float,
        typer.Option("--ended-after", metavar="SECONDS", help="A call has ended when its log is quiet for so long."),
    ] = 60.0,
    report: Annotated[float, typer.Option("--report", metavar="SECONDS", help="Between two summaries.")] = 600.0,
    stalled: Annotated[
        float, typer.Option("--stalled", metavar="SECONDS", help="Without a new line, say so after this.")
    ] = 720.0,
    json: Json = False,
) -> None:
    """Follow logs: score what comes, print a line for each conversation that ended, renew the page."""
    from convoscope.analysis.answer import make_answer
    from convoscope.analysis.policy import HeldRun, hold
    from convoscope.errors import ConvoscopeError, is_interrupt
    from convoscope.report.run_terminal import print_answer, print_warnings
    from convoscope.report.screen import Screen
    from convoscope.report.watch import Pace, Watch, watch_settings
    from convoscope.runs.policy import find_policy
    from convoscope.runs.run import Run
    from convoscope.settings_file import find_settings, score_options

    file_settings = find_settings(settings)
    stated = {"out": out, "label": label, "metrics": metrics, **reading._asdict()}
    options = score_options(file_settings, {"logs": [logs], "by": None, "annotate": None, "engine": engine, **stated})
    policy_file = find_policy(policy, file_settings)
    read = ReadOptions(**{name: options[name] for name in ReadOptions._fields})
    run_settings = watch_settings(
        logs,
        metrics=split(options["metrics"]),
        metrics_from=metrics_from or (),
        out=options["out"],
        label=options["label"],
        annotate=options["annotate"],
        targets=target or (),
        since=since,
        workers=workers,
        engine=options["engine"],
        prune=not keep,
        ended_after=ended_after,
        **read.arguments,
    )

    def held(run: Run) -> HeldRun:
        return hold(run, (), policy_file, file_settings)

    screen = Screen()
    # What ends a service, a container or a pod is as Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    watch = Watch(logs, run_settings, held, Pace(every, report, stalled))
    try:
        for event in watch.events(screen.is_closed):
            if json:
                screen.json_line(event)
            else:
                for line in str(event).split("\n"):
                    screen.line(line)
            screen.flush()
            if screen.is_closed():
                break
        raise KeyboardInterrupt  # the reader has seen enough, as `head` has
    except BaseException as error:
        # Ctrl-C, also where it reaches the database first.
        if watch.run is None or not is_interrupt(error):
            with suppress(ConvoscopeError, OSError):  # what went wrong may keep the page from being written, too
                watch.end()
            raise
    watch.end()
    run = watch.run
    result = held(run)
    answer = make_answer(run, result.targets)
    if json:
        screen.json_line({"event": "end", "run": str(run.folder), "answer": answer})
    else:
        screen.line()
        print_answer(screen, answer, run)
        print_warnings(Screen(sys.stderr), run.read_report)
    exit_by(run, result)
