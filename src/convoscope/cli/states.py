"""`convoscope states`: which state broke the flow, asked of one or several runs."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
import typer

from convoscope.cli.options import Json
from convoscope.cli.targets import FAILED, exit_with
from convoscope.report.screen import Screen
from convoscope.storage import as_path

if TYPE_CHECKING:
    from convoscope.report.flow_answers import StateQuestion

Answer = TypeVar("Answer", bound=msgspec.Struct)

app = typer.Typer(
    help="Which state broke the flow? Asked of one or several runs.", no_args_is_help=True, rich_markup_mode=None
)

Runs = Annotated[
    list[Path],
    typer.Argument(metavar="RUN...", parser=as_path, help="The folder of a run; several are taken together."),
]
OneFlow = Annotated[str | None, typer.Option("--flow", help="Only the conversations of this flow.")]
OneAgent = Annotated[str | None, typer.Option("--agent", help="Only the conversations with this agent.")]


@app.command("matrix")
def matrix(
    runs: Runs,
    flow: OneFlow = None,
    agent: OneAgent = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")] = False,
    json: Json = False,
) -> None:
    """Every state in one line, worst first. With --flow also the states around each."""
    from convoscope.errors import UsageError
    from convoscope.report.flow_answers import matrix_markdown, print_matrix

    if markdown and json:
        raise UsageError("--markdown and --json cannot be combined")
    question = _question(runs, flow, agent)
    states = question.states.matrix()
    if not markdown:
        _answer(question, states, print_matrix, json)
        return
    for line in matrix_markdown(question, states):
        Screen().line(line)


def _add_command(name: str, help: str) -> None:
    """Add a command that prints one answer about states, for a person or a program."""

    @app.command(name, help=help)
    def ask(runs: Runs, flow: OneFlow = None, agent: OneAgent = None, json: Json = False) -> None:
        from convoscope.report import flow_answers

        question = _question(runs, flow, agent)
        answer = getattr(question.states, name)()
        _answer(question, answer, getattr(flow_answers, f"print_{name}"), json)


_add_command("segments", "Every segment of a flow, the least cohesive first.")
_add_command("flows", "Every flow by agent: correctness, completion, errors, latency, humanness.")


@app.command("archetypes")
def archetypes(runs: Runs, flow: OneFlow = None, agent: OneAgent = None, json: Json = False) -> None:
    """Every kind of segment over all flows, the weakest first."""
    from convoscope.report.flow_answers import print_archetypes

    question = _question(runs, flow, agent)
    answer = question.states.archetypes()
    if json:
        Screen().json(question.json(archetypes=answer))
    else:
        print_archetypes(Screen(), question, answer)


@app.command("analyze")
def analyze(
    runs: Runs,
    flow: OneFlow = None,
    agent: OneAgent = None,
    latency_budget: Annotated[
        float, typer.Option("--latency-budget", help="Seconds that a slow turn may take, where the flow declares none.")
    ] = 4.0,
    top: Annotated[int, typer.Option("--top", help="How many causes to print.")] = 10,
    json: Json = False,
) -> None:
    """The states that break their flows: what is wrong, how sure, what it costs, what to open."""
    from convoscope.errors import UsageError
    from convoscope.report.flow_answers import print_analysis

    if top < 1:
        raise UsageError(f"--top must be at least 1, not {top}")
    if not 0 < latency_budget < math.inf:
        raise UsageError(f"--latency-budget must be above 0, not {latency_budget:g}")
    question = _question(runs, flow, agent)
    answer = question.states.analyze(latency_budget_ms=latency_budget * 1000)
    _answer(question, answer, partial(print_analysis, top=top), json)


@app.command("gate")
def gate(
    runs: Runs,
    baseline: Annotated[
        list[Path],
        typer.Option("--baseline", metavar="RUN", parser=as_path, help="The run to compare with. May be repeated."),
    ],
    flow: OneFlow = None,
    agent: OneAgent = None,
    floor: Annotated[float, typer.Option("--floor", help="The points that a flow must reach.")] = 6.0,
    drop: Annotated[float, typer.Option("--drop", help="The points that a flow may lose.")] = 1.0,
    min_n: Annotated[int, typer.Option("--min-n", help="The conversations that a verdict needs.")] = 10,
    aspect: Annotated[
        list[str] | None,
        typer.Option(
            "--aspect", help="What to check: correctness, completion, errors. May be repeated. Default: the first two."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Hold runs against a baseline, flow by flow. Exit code 0 passed, 1 failed, 3 undetermined."""
    from convoscope.analysis.flows.flow_matrix import ASPECTS
    from convoscope.errors import UsageError
    from convoscope.report.flow_answers import print_nothing
    from convoscope.report.gate import print_flow_gate
    from convoscope.runs.run import Run

    # Nothing is less than "not a number": such a floor would let everything pass.
    if not 0 <= floor <= 10 or not 0 <= drop <= 10:
        raise UsageError(f"--floor and --drop must be from 0 to 10, not {floor:g} and {drop:g}")
    if min_n < 1:
        raise UsageError(f"--min-n must be at least 1, not {min_n}")
    question, screen = _question(runs, flow, agent), Screen()
    before = [Run.open(folder) for folder in baseline]
    aspects = list(dict.fromkeys(aspect)) if aspect else list(ASPECTS)
    verdict = question.states.gate(before, floor=floor, drop=drop, least=min_n, aspects=aspects)
    if json:
        screen.json(question.json(verdict, baseline=[str(run.folder) for run in before]))
    else:
        if not verdict.flows:
            print_nothing(screen, question)
        print_flow_gate(screen, question.runs, before, verdict)
    exit_with(verdict.outcome)


@app.command("recount")
def recount(runs: Runs, json: Json = False) -> None:
    """Count visits again from the events of each run. Exit code 1 where a stored row disagrees."""
    from convoscope.report.flow_answers import print_audit

    question, screen = _question(runs), Screen()
    audits = question.states.audit()
    holds = all(audit.holds for audit in audits.values())
    if json:
        screen.json(question.json(holds=holds, audits=[audits[run.name] for run in question.runs]))
    else:
        print_audit(screen, Screen(sys.stderr), question.runs, audits)
    if not holds:
        raise typer.Exit(FAILED)


@app.command("audit", hidden=True)
def audit(runs: Runs, json: Json = False) -> None:
    """The old name of `recount`."""
    from convoscope.errors import UsageError

    del runs, json
    raise UsageError(
        "`convoscope states audit` is called `convoscope states recount`",
        hint="`convoscope audit` asks whether metrics notice nonsense",
    )


def _question(runs: list[Path], flow: str | None = None, agent: str | None = None) -> StateQuestion:
    from convoscope.report.flow_answers import StateQuestion
    from convoscope.runs.run import Run

    return StateQuestion([Run.open(run) for run in runs], flow, agent)


def _answer(
    question: StateQuestion, answer: Answer, show: Callable[[Screen, StateQuestion, Answer], None], json: bool
) -> None:
    if json:
        Screen().json(question.json(answer))
    else:
        show(Screen(), question, answer)
