"""`convoscope report` and `convoscope plot`: the page of a run, JUnit XML, Markdown, and pictures for slides."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convoscope.cli.options import (
    Contexts,
    EmbedAudio,
    Json,
    Junit,
    Markdown,
    PolicyOption,
    RunPath,
    Targets,
    TrustJudge,
    WithAudio,
    split,
)
from convoscope.cli.targets import ReportFiles, exit_by


def report(
    run: RunPath,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File of the page. Default: report.html in the run.")
    ] = None,
    conversations: Annotated[
        int, typer.Option("--conversations", help="How many to show in full, the worst first.")
    ] = 400,
    max_mb: Annotated[float, typer.Option("--max-mb", help="How large the page may become.")] = 5.0,
    with_audio: WithAudio = False,
    embed_audio: EmbedAudio = False,
    target: Targets = None,
    policy: PolicyOption = None,
    trust_judge: TrustJudge = False,
    junit: Junit = None,
    markdown: Markdown = None,
    contexts: Contexts = False,
    json: Json = False,
) -> None:
    """Write the page of a run.

    Targets given here are held against the figures beside those that the run was scored with; for the
    same figure they replace them.
    """
    from convoscope.analysis.policy import hold
    from convoscope.report.gate import print_policy_gate, print_targets, targets_json
    from convoscope.report.page import write_page
    from convoscope.report.screen import Screen
    from convoscope.report.view_terminal import write_contexts
    from convoscope.runs.policy import find_policy
    from convoscope.runs.run import PAGE, Run
    from convoscope.settings_file import find_settings

    settings = find_settings()
    opened = Run.open(run)
    opened.trusts_judges = opened.trusts_judges or trust_judge
    files = ReportFiles(junit, markdown)
    files.check(out or opened.folder / PAGE)
    held = hold(opened, target or (), find_policy(policy, settings), settings)
    page = write_page(
        opened,
        out=out,
        conversations=conversations,
        max_mb=max_mb,
        targets=held.targets,
        with_audio=with_audio,
        embed_audio=embed_audio,
    )
    files.write(opened, held)
    if contexts:
        write_contexts(opened)
    screen = Screen()
    if json:
        fields = {name: value for name, value in page._asdict().items() if name != "path"}
        gate = {} if held.gate is None else {"gate": held.gate}
        screen.json({"page": str(page.path), **fields, "targets": targets_json(held.checks), **gate})
    else:
        if held.gate is not None:
            print_policy_gate(screen, held.gate)
        else:
            print_targets(screen, held.checks)
        size = f"{page.bytes / 1e6:,.1f} MB"
        screen.line(f"{page.path}: {size}, {page.in_full:,} of {page.conversations:,} conversations in full")
        for note in page.notes:
            screen.line(note)
    exit_by(opened, held)


def plot_command(
    run: RunPath,
    metric: Annotated[
        str, typer.Argument(help="A metric or figure, such as response_latency; `states` draws the states of flows.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write: .svg, or .png with convoscope[png].")],
    by: Annotated[
        str | None, typer.Option("--by", help="One row for each group by these dimensions, with commas between.")
    ] = None,
    against: Annotated[Path | None, typer.Option("--against", help="An earlier run to draw beside it.")] = None,
    flow: Annotated[str | None, typer.Option("--flow", help="With `states`: only this flow.")] = None,
    target: Annotated[
        list[str] | None,
        typer.Option("--target", help="A value to reach, drawn as a line: 'response_latency < 2'. May be repeated."),
    ] = None,
) -> None:
    """Draw a metric: distribution, groups, or before and after."""
    from convoscope.report.files import check_files
    from convoscope.report.plot.make import check_ending, plot
    from convoscope.report.screen import Screen

    check_ending(out)
    check_files(out)
    plot(run, metric, by=split(by) or (), against=against, flow=flow, targets=target or ()).save(out)
    Screen().line(f"wrote {out}")
