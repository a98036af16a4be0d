"""`convoscope gate` and `convoscope baseline`: may this run ship, and which run is it held against?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convoscope.cli.options import Json, Junit, Markdown, PolicyOption, RunPath, Targets, TrustJudge
from convoscope.cli.targets import ReportFiles, exit_by

app = typer.Typer(
    help="Which run are others held against? Set it, or show it.", no_args_is_help=True, rich_markup_mode=None
)


def gate(
    run: RunPath,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="RUN", help="The run to compare with. Default: the baseline."),
    ] = None,
    policy: PolicyOption = None,
    target: Targets = None,
    trust_judge: TrustJudge = False,
    junit: Junit = None,
    markdown: Markdown = None,
    json: Json = False,
) -> None:
    """Hold a run against a policy: exit code 0 if it passes, 1 if it fails, 3 if that is undetermined."""
    from convoscope.analysis.policy import hold
    from convoscope.errors import UsageError
    from convoscope.report.gate import print_policy_gate
    from convoscope.report.screen import Screen
    from convoscope.report.table import print_words
    from convoscope.runs.policy import find_policy
    from convoscope.runs.run import Run
    from convoscope.settings_file import FILE, find_settings

    files = ReportFiles(junit, markdown)
    files.check()
    settings = find_settings()
    opened = Run.open(run)
    opened.trusts_judges = opened.trusts_judges or trust_judge
    held = hold(opened, target or (), find_policy(policy, settings), settings, against)
    if held.gate is None:
        hint = f"name one with --policy, or write one into {FILE}: convoscope init LOGS"
        raise UsageError("there is no policy to hold the run against", hint=hint)
    files.write(opened, held)
    screen = Screen()
    if json:
        screen.json(held.gate)
    else:
        for sentence in held.gate.sentences:
            print_words(screen, sentence)
        print_policy_gate(screen, held.gate)
    exit_by(opened, held)


@app.command("set")
def set_command(run: RunPath, json: Json = False) -> None:
    """Make a run the baseline. The one before is replaced."""
    from convoscope.report.screen import Screen
    from convoscope.runs.baseline import baseline_path, read_baseline, set_baseline
    from convoscope.runs.run import Run
    from convoscope.settings_file import find_settings

    path = baseline_path(find_settings())
    before = read_baseline(path).run if path.is_file() else ""
    kept = set_baseline(Run.open(run), path)
    if json:
        Screen().json({"file": str(path), "before": before or None, "baseline": kept})
    else:
        was = f"; it was {before}" if before and before != kept.run else ""
        Screen().line(f"{path}: the baseline is {kept.run}, {kept.conversations:,} conversations{was}")


@app.command("show")
def show_command(json: Json = False) -> None:
    """Show which run is the baseline, and whether it is there."""
    from convoscope.report.screen import Screen
    from convoscope.runs.baseline import baseline_path, open_baseline
    from convoscope.settings_file import find_settings

    path = baseline_path(find_settings())
    run = open_baseline(path)
    if json:
        Screen().json({"file": str(path), "run": str(run.folder), "receipt": run.receipt})
    else:
        state = "valid" if run.receipt.valid else f"INVALID: {run.receipt.invalid_reason}"
        counts = f"{run.summary.conversations:,} conversations"
        Screen().line(f"{path}: {run.folder}, {counts}, finished {run.receipt.finished_at}, {state}")
