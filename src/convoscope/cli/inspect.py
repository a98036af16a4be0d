"""`convoscope inspect`: what is this log, what can be measured, what is missing?"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from convoscope.cli.options import Flows, Format, Json, Metrics, MetricsFrom, ReadersFrom, Turns, split

if TYPE_CHECKING:
    from convoscope.conversation import Conversation
    from convoscope.ingest.report import FileRead
    from convoscope.report.screen import Screen
    from convoscope.scoring.plan import Plan, Planned


def inspect(
    paths: Annotated[list[Path], typer.Argument(help="Log files, or folders of them; - is standard input.")],
    metrics: Metrics = None,
    metrics_from: MetricsFrom = None,
    limit: Annotated[int, typer.Option("--limit", help="Look at the first N conversations.", min=1)] = 1000,
    format: Format = None,
    readers_from: ReadersFrom = None,
    turns: Turns = None,
    flows: Flows = None,
    json: Json = False,
) -> None:
    """Say what these files are, what can be measured in them, and what would unlock the rest."""
    from convoscope.ingest.read import read
    from convoscope.report.screen import Screen
    from convoscope.report.terminal import print_reading, print_warnings
    from convoscope.scoring.job import choose
    from convoscope.scoring.plan import Planner

    chosen = choose(split(metrics), metrics_from or ())
    planner = Planner(chosen.metrics, frozenset(chosen.resources))
    contents: Counter[str] = Counter()
    dimensions: dict[str, Counter[str]] = {}
    reading = read(paths, format=format, limit=limit, turns=turns, flows=flows or (), readers_from=readers_from or ())
    for conversation in reading:
        planner.see(conversation)
        _count(conversation, contents, dimensions)
    plan = planner.plan()
    screen = Screen()
    if json:
        screen.json(
            {
                "read_report": reading.report.ordered(),
                "contents": dict(contents),
                "dimensions": {name: dict(values.most_common(20)) for name, values in dimensions.items()},
                "plan": plan,
            }
        )
    else:
        print_files(screen, reading.report.files)
        print_reading(screen, reading.report)
        if plan.conversations == limit:
            screen.line(f"looked at the first {limit:,} conversations; --limit looks further")
        screen.line("holds " + ", ".join(f"{count:,} {what}" for what, count in contents.items() if count))
        for name, values in dimensions.items():
            some = ", ".join(f"{value} ({count:,})" for value, count in values.most_common(5))
            screen.line(f"{name}: {some}{', …' if len(values) > 5 else ''}")
        print_plan(screen, plan)
    print_warnings(Screen(sys.stderr), reading.report)


def print_files(screen: Screen, files: dict[str, FileRead]) -> None:
    """What each file was taken for, and why; many files in short."""
    from convoscope.report.screen import Column

    rows = [(name, file.format or "not read", file.why or file.skipped) for name, file in sorted(files.items())]
    screen.table([Column("file"), Column("format"), Column("because")], rows[:20])
    if len(rows) > 20:
        screen.line(f"and {len(rows) - 20:,} more files")
    screen.line()


def print_plan(screen: Screen, plan: Plan) -> None:
    """What can be measured, and what would unlock the rest."""
    from convoscope.metrics.parts import parent_metric
    from convoscope.report.screen import Column

    screen.line()
    names = {one.metric for one in plan.metrics}
    # A part of a metric can be measured where the whole can.
    rows = [
        (one.metric, f"{one.applies_to:,} of {one.conversations:,}", one.question)
        for one in plan.metrics
        if one.applies_to and not parent_metric(one.metric, names)
    ]
    screen.table([Column("can be measured"), Column("conversations", "right"), Column("question")], rows)
    missing = list(_silent([one for one in plan.metrics if not parent_metric(one.metric, names)]))
    if missing:
        screen.line()
        columns = [
            Column("is silent"),
            Column("conversations", "right"),
            Column("because"),
            Column("would be unlocked by"),
        ]
        screen.table(columns, missing)


_MANY = 3


def _silent(metrics: Sequence[Planned]) -> Iterator[tuple[str, str, str, str]]:
    """Who is silent, and why; many of one family that want the same thing are told in one row."""
    from convoscope.report.words import reason_text

    found: dict[tuple[str, str, str], list[tuple[str, int]]] = {}
    for one in metrics:
        for gap in one.missing:
            key = (one.metric.split(".", 1)[0], gap.code, gap.unlock)
            found.setdefault(key, []).append((one.metric, gap.conversations))
    for (family, code, unlock), mine in found.items():
        gathered = [(f"{len(mine)} metrics of {family}", max(count for _, count in mine))]
        for name, count in gathered if len(mine) > _MANY else mine:
            yield name, f"{count:,}", reason_text(code), unlock


_EVENTS = {
    "utterance": "utterances",
    "tool_call": "tool calls",
    "tool_result": "tool results",
    "state_entered": "states entered",
    "state_exited": "states left",
    "guard_evaluated": "guards evaluated",
    "slot_filled": "slots filled",
    "component_metric": "component metrics",
    "retrieval": "retrievals",
    "marker": "markers",
}


def _count(conversation: Conversation, contents: Counter[str], dimensions: dict[str, Counter[str]]) -> None:
    from convoscope.metrics.needs import GROUND_TRUTH

    contents["items"] += len(conversation.items)
    contents["turns"] += len(conversation.turns)
    for event in conversation.timeline:
        contents[_EVENTS[str(type(event).__struct_config__.tag)]] += 1
    contents["conversations with times"] += any(event.time is not None for event in conversation.timeline)
    contents["with a ground truth"] += GROUND_TRUTH.met(conversation)
    contents["with a recording"] += conversation.recording is not None
    for name, value in conversation.dimensions.items():
        dimensions.setdefault(name, Counter())[value] += 1
