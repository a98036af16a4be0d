"""The diagnosis in words that a person can act on: the worst states first (flow-states, Analyse)."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping

from convoscope.analysis.flows.diagnosis import Analysis, Cause, End, Evidence, Healthy
from convoscope.analysis.flows.state_table import few_words
from convoscope.harmless import one_line
from convoscope.report.flows.heading import Asked, print_nothing, print_title
from convoscope.report.flows.numbers import MANY, excluded_line, figure, interval, name, node
from convoscope.report.flows.sheet import print_words
from convoscope.report.flows.state_matrix import untested_lines, without_text
from convoscope.report.screen import Screen
from convoscope.report.words import counted
from convoscope.runs.run import Run

_MAX_COMMAND = 400
_INDENT = " " * 4


def print_analysis(screen: Screen, asked: Asked, found: Analysis, top: int) -> None:
    """The causes, the worst first, so many of them; then what else is worth knowing."""
    print_title(screen, f"# Root causes — {asked.scope} (most conversations lost first)", asked.runs)
    if not found.states:
        print_nothing(screen, asked)
    else:
        _print_causes(screen, asked, found, top)
    rest = list(_rest(found))
    if rest:
        screen.line()
    for line in rest:
        print_words(screen, line)


def _print_causes(screen: Screen, asked: Asked, found: Analysis, top: int) -> None:
    looked = f"{counted(found.states, 'state')} in {counted(found.conversations, 'conversation')} of {asked.places}"
    said = few_words(found.conversations)
    few = f" ({said})" if said else ""
    budget = f"latency budget {found.latency_budget_ms / 1000:g} s where none is declared"
    if not found.causes:
        print_words(screen, f"no rule finds any of {looked} weak{few}; {budget}")
        return
    weak = len(found.causes)
    print_words(screen, f"{weak:,} of {looked} {'is a weak one' if weak == 1 else 'are weak'}{few}; {budget}")
    runs = {run.name: run for run in asked.runs}
    for place, cause in enumerate(found.causes[:top], 1):
        screen.line()
        _print_cause(screen, place, cause, runs)
    if weak > top:
        screen.line()
        screen.line(f"and {weak - top:,} more: --top {weak} shows them all")


def _print_cause(screen: Screen, place: int, cause: Cause, runs: Mapping[str, Run]) -> None:
    segment = f" (segment {name(cause.segment)})" if cause.segment else ""
    screen.line(f"{place}. {node(cause.flow, cause.state)}{segment}: {cause.headline}", "bold")
    for line in _told(cause):
        print_words(screen, line, indent=_INDENT)
    for run, conversation in zip(cause.runs, cause.conversations, strict=True):
        screen.line(f"{_INDENT}open: {show_command(runs[run], conversation)}")


def _told(cause: Cause) -> Iterator[str]:
    if cause.said:
        yield cause.said
    for evidence in cause.evidence:
        yield f"{evidence.words}: {_behind(evidence)}"
    yield f"cost: {cause.cost}"
    if cause.starves:
        more = len(cause.starves) - MANY
        told = [
            f"{name(one.state)} (about {one.missed:,.0f} on top of {one.reached:,})" for one in cause.starves[:MANY]
        ]
        yield f"starves: {', '.join(told)}" + (f" and {counted(more, 'state')} more" if more > 0 else "")
    for change in cause.if_median:
        yield f"what would change: {change}"


_NAMES = {
    "stall": "stall",
    "failure": "left for failure",
    "progress": "progress",
    "revisit": "revisit",
    "guard_error": "guard errors a conversation",
    "slots": "slot_fill",
}
_LIMITS = {
    "stall": "weak from",
    "failure": "weak from",
    "progress": "weak below",
    "revisit": "weak from",
    "guard_error": "weak above",
}


def _behind(one: Evidence) -> str:
    """The number behind a fault, how sure it is, and where a fault begins."""
    if one.fault == "latency":
        return f"n={counted(one.n, 'turn')}"
    bounds = interval(one.low, one.high)
    most = math.inf if one.fault in ("revisit", "guard_error") else 1.0
    parts = [
        f"{_NAMES[one.fault]} {figure(one.value, most=most)}",
        *([f"95 % {bounds}"] if bounds else []),
        f"n={one.n:,}",
    ]
    limit = f"{_LIMITS.get(one.fault, 'weak below')} {one.threshold:g}"
    return f"{', '.join(parts)} ({limit})"


def show_command(run: Run, conversation: str) -> str:
    """The command that shows a conversation, as it can be pasted."""
    guard = ["--"] if conversation.startswith("-") else []
    return one_line(shlex.join(["convoscope", "show", str(run.folder), *guard, conversation]), _MAX_COMMAND)


def _rest(found: Analysis) -> Iterator[str]:
    for one in found.unknown[:MANY]:
        told = counted(one.n, "conversation")
        yield f"outcome unknown, in no stall: {told} that ended in {node(one.flow, one.state)}"
    if len(found.unknown) > MANY:
        yield f"and {counted(len(found.unknown) - MANY, 'other state')} in which conversations of unknown outcome ended"
    yield from map(_end, found.ends[:MANY])
    if len(found.ends) > MANY:
        yield f"and {counted(len(found.ends) - MANY, 'other end')} without success"
    yield from map(_healthy, found.front_loaded[:MANY])
    if len(found.front_loaded) > MANY:
        yield f"and {counted(len(found.front_loaded) - MANY, 'other state')} whose callers told everything before"
    yield from untested_lines((one.flow, one.state) for one in found.untested)
    if line := excluded_line(found.excluded):
        yield line
    if found.without_states and found.states:
        yield without_text(found.without_states)


def _end(one: End) -> str:
    came = f", from {', '.join(map(name, one.came_from))}" if one.came_from else ""
    where = f"{node(one.flow, one.state)} ({name(one.terminal)})"
    return f"end without success: {where}: {counted(one.n, 'conversation')}{came}"


def _healthy(one: Healthy) -> str:
    filled = f"slot_fill {figure(one.slot_fill_rate, most=1.0)}, progress {figure(one.progress, most=1.0)}"
    told = f"{counted(one.front_loaded, 'slot')} told before it was entered"
    return f"healthy, though it collects little: {node(one.flow, one.state)} ({filled}, {told})"
