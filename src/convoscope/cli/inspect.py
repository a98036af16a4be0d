"""`convoscope inspect`: what is this log, what can be measured, what is missing?"""

from __future__ import annotations

import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from convoscope.cli.options import Json, Metrics, MetricsFrom, Paths, ReadOptions, split, with_read_options

if TYPE_CHECKING:
    from convoscope.conversation import Conversation
    from convoscope.ingest.report import FileRead
    from convoscope.report.screen import Screen
    from convoscope.scoring.profiles import Plan, Planned

_MAX_FILES = 20
_MAX_FILES_IN_SHORT = 5
_MAX_DIMENSIONS = 4
_MAX_REASONS = 6
_WIDTH = 80
_OF_SOUND = "audio."
_LOG_NEEDED = "the log of the call"
_MAX_MEMBERS = 3
"""So many metrics of a family that need the same thing have a row each."""


@with_read_options
def inspect(
    paths: Paths,
    reading: ReadOptions,
    metrics: Metrics = None,
    metrics_from: MetricsFrom = None,
    limit: Annotated[int, typer.Option("--limit", help="Look at the first N conversations.", min=1)] = 1000,
    suggest_map: Annotated[
        bool, typer.Option("--suggest-map", help="Print a mapping for an unknown format, to be corrected: see --map.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="List every file, metric and reason.")] = False,
    json: Json = False,
) -> None:
    """Say what these files are, and what can be measured in them. Also say what would unlock the rest."""
    if suggest_map:
        _suggest_map(paths)
        return
    from convoscope.analysis.words import sides_text
    from convoscope.ingest.read import read
    from convoscope.report.run_terminal import print_reading, print_warnings
    from convoscope.report.screen import Screen
    from convoscope.scoring.job import choose
    from convoscope.scoring.profiles import Planner
    from convoscope.views.fields import LabelSearch, best_proposal
    from convoscope.views.flow.endings import outcome_of

    chosen = choose(split(metrics), metrics_from or ())
    contents: Counter[str] = Counter()
    dimensions: dict[str, Counter[str]] = {}
    recordings: Counter[str] = Counter()
    stream = read(paths, limit=limit, **reading.arguments)
    planner = Planner(chosen.metrics, frozenset(chosen.resources_with(stream.venues)))
    search, known = LabelSearch(), 0
    for conversation in stream:
        planner.see(conversation)
        search.see(conversation)
        known += outcome_of(conversation).done is not None
        _count(conversation, contents, dimensions)
        if conversation.source.format == "recording":
            recordings[_sides(conversation)] += 1
    plan = planner.plan()
    labels = [] if known else search.proposals(first=plan.conversations == limit)
    screen = Screen() if full or json else _narrow_screen()
    if json:
        screen.json(
            {
                "read_report": stream.report.ordered(),
                "contents": dict(contents),
                "dimensions": {name: dict(values.most_common(20)) for name, values in dimensions.items()},
                "labels": [proposal.text for proposal in labels],
                "plan": plan,
            }
        )
    else:
        print_files(screen, stream.report.files, full=full)
        print_reading(screen, stream.report)
        if plan.conversations == limit:
            screen.line(f"looked at the first {limit:,} conversations; --limit looks further")
        screen.line("holds " + ", ".join(_counted(what, count) for what, count in contents.items() if count))
        for name, values in list(dimensions.items())[: None if full else _MAX_DIMENSIONS]:
            most = 5 if full else 3
            some = ", ".join(f"{value} ({count:,})" for value, count in values.most_common(most))
            screen.line(f"{name}: {some}{', …' if len(values) > most else ''}")
        if labels:
            screen.line(best_proposal(labels))
        of_logs = contents["with a recording"] > sum(recordings.values())
        for hint in _recording_hints(recordings, of_logs, sides_text(stream.report, paths)):
            screen.line(hint)
        if full:
            print_plan(screen, plan)
        else:
            print_short_plan(screen, plan, is_bare=sum(recordings.values()) == plan.conversations > 0)
    print_warnings(Screen(sys.stderr), stream.report)


def _sides(conversation: Conversation) -> str:
    """What is known of the sides of a recording without a log."""
    from convoscope.conversation import ASSISTANT, USER

    roles = set(conversation.roles.values())
    if not conversation.timeline:
        return "silent"
    return "mixed" if not roles else "unknown" if roles.isdisjoint((ASSISTANT, USER)) else "known"


def _recording_hints(sides: Counter[str], of_logs: bool, command: str) -> Iterator[str]:
    """What would unlock more, where the input is recordings without a log; and that those of logs were not opened."""
    if of_logs:
        yield "the recordings of logs are not opened here: their sound is measured if it holds speech of known speakers"
    words = "the log of the call, or a recogniser, has the words"
    if "silent" in sides:
        yield "recordings without speech: nothing is measured of their sound"
    if "unknown" in sides:
        yield f"recordings without a log: {command}; {words}"
    elif "known" in sides:
        yield f"recordings without a log: {words}"
    if "mixed" in sides:
        yield f"recordings with all speakers in one channel: the times of a log say who speaks when; {words}"


def _narrow_screen() -> Screen:
    """A screen of 80 columns, whose longer lines go on below."""
    from convoscope.harmless import one_line
    from convoscope.report.screen import Screen

    class NarrowScreen(Screen):
        def line(self, text: str = "", style: str = "") -> None:
            indent = " " * (2 + len(text) - len(text.lstrip()))
            lines = textwrap.wrap(one_line(text, None), _WIDTH, subsequent_indent=indent, break_on_hyphens=False)
            for part in lines or [""]:
                super().line(part, style)

    return NarrowScreen()


def _suggest_map(paths: Sequence[Path]) -> None:
    """Print a mapping of the first of these logs that one can be made of."""
    from convoscope.harmless import clean
    from convoscope.ingest.io.streams import as_files
    from convoscope.ingest.mapping.suggestion import suggested_map

    files = as_files(paths)
    try:
        sys.stdout.write(clean(suggested_map([Path(path) for path in files.paths])))
    finally:
        if files.folder is not None:
            files.folder.cleanup()


def print_files(screen: Screen, files: dict[str, FileRead], *, full: bool) -> None:
    """What each file was taken for, and why; many files in short."""
    from convoscope.report.table import print_table, text_table

    rows = [(name, file.format or "not read", file.why or file.skipped) for name, file in sorted(files.items())]
    if not full:
        for name, format, why in rows[:_MAX_FILES_IN_SHORT]:
            screen.line(f"{name}: {format}, {why}")
        if len(rows) > _MAX_FILES_IN_SHORT:
            counts = Counter(format for _, format, _ in rows[_MAX_FILES_IN_SHORT:])
            others = ", ".join(f"{count:,} {format}" for format, count in counts.most_common())
            screen.line(f"and {len(rows) - _MAX_FILES_IN_SHORT:,} more files: {others}")
        return
    more = len(rows) - _MAX_FILES
    notes = [f"and {more:,} more files"] if more > 0 else []
    print_table(screen, text_table(("file", "format", "because"), rows[:_MAX_FILES], notes=notes))
    screen.line()


def print_short_plan(screen: Screen, plan: Plan, *, is_bare: bool = False) -> None:
    """How many metrics of each family can be measured, and what would unlock most of the others.

    Of recordings without a log, what asks for more than sound has one row.
    """
    from convoscope.analysis.words import reason_text
    from convoscope.metrics.registry import whole_metrics
    from convoscope.report.table import number_column, print_table, text_table

    wholes = plan.whole_metrics
    ready = whole_metrics(metric.metric for metric in _wholes(plan) if metric.applies_to)
    families = Counter(name.partition(".")[0] for name in ready)
    screen.line()
    listed = ", ".join(f"{family} {count}" for family, count in families.most_common())
    screen.line(f"{len(ready)} of {len(wholes)} metrics can be measured: {listed or 'none'}")
    # One reason may have several unlocks: the commonest is named.
    unlocks: dict[str, Counter[str]] = {}
    for name, gap in wholes.items():
        if gap is not None:
            needs_log = is_bare and not name.startswith(_OF_SOUND)
            code, unlock = ("no_log", _LOG_NEEDED) if needs_log else (reason_text(gap.code), gap.unlock)
            unlocks.setdefault(code, Counter())[unlock] += 1
    if unlocks:
        commonest = sorted(unlocks.items(), key=lambda one: -one[1].total())[:_MAX_REASONS]
        rows = [
            (
                f"{of.total()}",
                reason_text(code),
                textwrap.shorten(of.most_common(1)[0][0], 40, placeholder=" …"),
            )
            for code, of in commonest
        ]
        screen.line()
        print_table(screen, text_table((number_column("not measured"), "reason", "how to enable"), rows))
    screen.line()
    screen.line("--full lists every metric, and what each one needs")


def _wholes(plan: Plan) -> list[Planned]:
    """The metrics without their parts: a part can be measured where the whole can."""
    from convoscope.metrics.registry import parent_metric

    names = {metric.metric for metric in plan.metrics}
    return [metric for metric in plan.metrics if not parent_metric(metric.metric, names)]


def print_plan(screen: Screen, plan: Plan) -> None:
    """What can be measured, and what would unlock the rest."""
    from convoscope.report.table import number_column, print_table, text_table

    screen.line()
    wholes = _wholes(plan)
    conversations = number_column("conversations")
    rows = [
        (metric.metric, f"{metric.applies_to:,} of {metric.conversations:,}", metric.question)
        for metric in wholes
        if metric.applies_to
    ]
    print_table(screen, text_table(("can be measured", conversations, "question"), rows))
    if missing := list(_unmeasurable(wholes)):
        screen.line()
        print_table(screen, text_table(("not measurable", conversations, "reason", "how to enable"), missing))


def _unmeasurable(metrics: Sequence[Planned]) -> Iterator[tuple[str, str, str, str]]:
    """What cannot be measured, and why; many metrics of one family that need the same thing share a row."""
    from convoscope.analysis.words import reason_text

    groups: dict[tuple[str, str, str], list[tuple[str, int]]] = {}
    for metric in metrics:
        for gap in metric.missing:
            key = (metric.metric.split(".", 1)[0], gap.code, gap.unlock)
            groups.setdefault(key, []).append((metric.metric, gap.conversations))
    for (family, code, unlock), members in groups.items():
        shared = [(f"{len(members)} metrics of {family}", max(count for _, count in members))]
        for name, count in shared if len(members) > _MAX_MEMBERS else members:
            yield name, f"{count:,}", reason_text(code), unlock


_PLURAL = re.compile(r"s(?=$| (?:with|without|entered|left|evaluated|filled)\b)")
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


def _counted(what: str, count: int) -> str:
    """`1 marker`, `2 conversations with times`."""
    return f"{count:,} {what if count != 1 else _PLURAL.sub('', what, count=1)}"


def _count(conversation: Conversation, contents: Counter[str], dimensions: dict[str, Counter[str]]) -> None:
    from convoscope.metrics.needs import GROUND_TRUTH

    contents["items"] += len(conversation.items)
    if conversation.source.format != "recording" or any(one.user or one.assistant for one in conversation.turns):
        contents["turns"] += len(conversation.turns)
    for event in conversation.timeline:
        contents[_EVENTS[str(type(event).__struct_config__.tag)]] += 1
    if conversation.frames:
        _count_frames(conversation, contents)
    contents["conversations with times"] += any(event.time is not None for event in conversation.timeline)
    contents["with a ground truth"] += GROUND_TRUTH.met(conversation)
    contents["with a recording"] += conversation.recording is not None
    for name, value in conversation.dimensions.items():
        dimensions.setdefault(name, Counter())[value] += 1


def _count_frames(conversation: Conversation, contents: Counter[str]) -> None:
    """Truth and prediction of dialogue states; one that is missing or failed does not count."""
    from convoscope.ingest.companions.predictions import exchanges_of

    seqs: dict[str, set[int]] = {"gold": set(), "predicted": set()}
    for frame in conversation.frames:
        seqs[frame.origin].add(frame.seq)
    failed = sum(bool(frame.failure) for frame in conversation.frames)
    exchanges = exchanges_of(conversation)
    predicted = sum(any(one is not None and one.seq in seqs["predicted"] for one in pair) for pair in exchanges)
    contents["utterances with a truth"] += len(seqs["gold"])
    contents["turns with a prediction"] += predicted - failed
    contents["turns without one"] += failed
