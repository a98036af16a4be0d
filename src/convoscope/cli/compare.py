"""`convoscope compare`: did it get better, and are we sure?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from convoscope.cli.options import (
    Full,
    Json,
    Markdown,
    Metrics,
    MetricsFrom,
    ReadOptions,
    split,
    with_read_options,
)
from convoscope.cli.targets import exit_by

if TYPE_CHECKING:
    from convoscope.analysis.compare.figures import Smallest


@with_read_options
def compare_command(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="BASELINE OTHERS…", help="Runs, or logs, which are scored first. One is held against the baseline."
        ),
    ],
    reading: ReadOptions,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="FIELD[=A,B]", help="Compare the groups of one run: agent, or agent=v1,v2."),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="FIELD", help="Of logs, your own verdict: resolved, or 'csat >= 4'."),
    ] = None,
    metrics: Metrics = None,
    metrics_from: MetricsFrom = None,
    least: Annotated[
        list[str] | None,
        typer.Option(
            "--least",
            metavar="SIZE",
            help="The smallest difference that matters: 1pp of shares, 5% of other values (the defaults). Repeatable.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Also write a page.")] = None,
    policy: Annotated[
        Path | None, typer.Option("--policy", metavar="FILE", help="Also hold the second against this policy.")
    ] = None,
    markdown: Markdown = None,
    full: Full = False,
    json: Json = False,
) -> None:
    """Compare runs or logs with the first of them, or the groups of one run.

    Pairs of a scenario are compared where both sides have it. What the data do not decide is said, with what it would
    take. Exit code 0, whatever moved, unless a policy says otherwise.
    """
    from convoscope.analysis.policy import Baseline, hold
    from convoscope.errors import UsageError
    from convoscope.report.compare import (
        compared,
        comparison_json,
        comparison_markdown,
        opened,
        print_after,
        print_comparison,
        side_names,
    )
    from convoscope.report.files import check_files, write_text
    from convoscope.report.gate import print_policy_gate
    from convoscope.report.screen import Screen, progress_bar
    from convoscope.runs.baseline import baseline_path, open_baseline
    from convoscope.runs.policy import find_policy
    from convoscope.scoring.settings import ScoreSettings
    from convoscope.settings_file import find_settings, score_options

    check_files(out, markdown)
    smallest = _smallest(least or ())
    name, _, values = (by or "").partition("=")
    project = find_settings()
    rules = find_policy(policy, None)
    if rules is not None and (by or len(sources) > 2):
        raise UsageError("a policy is about one run and its baseline", hint="name two runs")
    baseline = baseline_path(project)
    is_lone = len(sources) < 2 and not by
    if is_lone and not baseline.exists():
        hint = "name a second run or folder of logs, or --by a field of this one: --by agent; "
        hint += "or set a baseline: convoscope baseline set RUN"
        raise UsageError("there is nothing to compare it with", hint=hint)
    # Logs are scored as the project says; runs are taken as they are.
    stated = score_options(project, {"label": label, "metrics": metrics, **reading._asdict()})
    reading = ReadOptions(**{name: stated[name] for name in ReadOptions._fields})
    settings = {
        "label": stated["label"],
        "metrics": split(stated["metrics"]),
        "metrics_from": metrics_from or (),
        **reading.arguments,
    }
    with progress_bar() as progress:
        runs = [opened(one, ScoreSettings(progress=progress, **settings)) for one in sources]
    if is_lone:
        runs = [open_baseline(baseline), *runs]
    names = side_names([*runs[:1], *sources] if is_lone else sources)
    comparison = compared(runs, by=name or None, values=split(values) or (), smallest=smallest, names=names)
    held = hold(runs[-1], (), rules, project, None if rules is None else Baseline(runs[0], comparison))
    if out is not None:
        from convoscope.report.page import write_compare_page

        write_compare_page(comparison, runs, out)
    if markdown is not None:
        write_text(markdown, comparison_markdown(comparison))
    screen = Screen()
    if json:
        screen.json(comparison_json(comparison) | ({} if held.gate is None else {"gate": held.gate}))
    else:
        print_comparison(screen, comparison, full=full)
        print_after(screen, comparison, out)
        if held.gate is not None:
            print_policy_gate(screen, held.gate)
    if held.gate is not None:
        exit_by(runs[-1], held)


def _smallest(given: list[str] | tuple[str, ...]) -> Smallest:
    """`1pp` for shares, `5%` for other values."""
    from convoscope.analysis.compare.figures import USUAL
    from convoscope.errors import UsageError

    smallest = USUAL
    for text in given:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(pp|points?|%)\s*", text)
        if match is None:
            raise UsageError(f"--least {text!r} is no size", hint="write 2pp for shares, 5% for other values")
        value = float(match[1]) / 100
        smallest = smallest._replace(**{"part" if match[2] == "%" else "points": value})
    return smallest
