"""The diagnosis in words that a person can act on: the worst states first (flow-states, Analyse)."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping

from convoscope.analysis.flows.diagnosis import Analysis, End, Healthy, StateCause, StateEvidence
from convoscope.analysis.flows.state_table import few_words
from convoscope.analysis.words import (
    MAX_NAMES,
    counted,
    decimal_text,
    excluded_line,
    range_text,
    short_name,
    state_name,
)
from convoscope.harmless import one_line
from convoscope.report.flows.heading import StateQuestion, print_nothing, print_title
from convoscope.report.flows.state_matrix import untested_lines, without_text
from convoscope.report.screen import Screen
from convoscope.report.table import print_words
from convoscope.runs.run import Run

_MAX_COMMAND = 400
_INDENT = " " * 4


def print_analysis(screen: Screen, question: StateQuestion, analysis: Analysis, top: int) -> None:
    """The causes, the worst first, so many of them; then what else is worth knowing."""
    print_title(screen, f"# Root causes — {question.scope} (most conversations lost first)", question.runs)
    if not analysis.states:
        print_nothing(screen, question)
    else:
        _print_causes(screen, question, analysis, top)
    remarks = list(_remarks(analysis))
    if remarks:
        screen.line()
    for line in remarks:
        print_words(screen, line)


def _print_causes(screen: Screen, question: StateQuestion, analysis: Analysis, top: int) -> None:
    states, conversations = counted(analysis.states, "state"), counted(analysis.conversations, "conversation")
    examined = f"{states} in {conversations} of {question.places}"
    caution = few_words(analysis.conversations)
    few = f" ({caution})" if caution else ""
    budget = f"latency budget {analysis.latency_budget_ms / 1000:g} s where none is declared"
    if not analysis.causes:
        print_words(screen, f"no rule finds any of {examined} weak{few}; {budget}")
        return
    weak = len(analysis.causes)
    print_words(screen, f"{weak:,} of {examined} {'is a weak one' if weak == 1 else 'are weak'}{few}; {budget}")
    runs = {run.name: run for run in question.runs}
    for place, cause in enumerate(analysis.causes[:top], 1):
        screen.line()
        _print_cause(screen, place, cause, runs)
    if weak > top:
        screen.line()
        screen.line(f"and {weak - top:,} more: --top {weak} shows them all")


def _print_cause(screen: Screen, place: int, cause: StateCause, runs: Mapping[str, Run]) -> None:
    segment = f" (segment {short_name(cause.segment)})" if cause.segment else ""
    screen.line(f"{place}. {state_name(cause.flow, cause.state)}{segment}: {cause.headline}", "bold")
    for line in _cause_lines(cause):
        print_words(screen, line, indent=_INDENT)
    for run, conversation in zip(cause.runs, cause.conversations, strict=True):
        screen.line(f"{_INDENT}open: {show_command(runs[run], conversation)}")


def _cause_lines(cause: StateCause) -> Iterator[str]:
    if cause.caution:
        yield cause.caution
    for evidence in cause.evidence:
        yield f"{evidence.words}: {_evidence(evidence)}"
    yield f"cost: {cause.cost}"
    if cause.starves:
        more = len(cause.starves) - MAX_NAMES
        starved = [
            f"{short_name(state.state)} ({state.reached:,} reach it, about {state.missed:,.0f} more would)"
            for state in cause.starves[:MAX_NAMES]
        ]
        yield f"fewer reach: {', '.join(starved)}" + (f" and {counted(more, 'state')} more" if more > 0 else "")
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


def _evidence(evidence: StateEvidence) -> str:
    """The number behind a fault, how sure it is, and where a fault begins."""
    if evidence.fault == "latency":
        return f"n={counted(evidence.n, 'turn')}"
    interval = range_text(evidence.low, evidence.high)
    most = math.inf if evidence.fault in ("revisit", "guard_error") else 1.0
    parts = [
        f"{_NAMES[evidence.fault]} {decimal_text(evidence.value, most=most)}",
        *([f"95 % {interval}"] if interval else []),
        f"n={evidence.n:,}",
    ]
    limit = f"{_LIMITS.get(evidence.fault, 'weak below')} {evidence.threshold:g}"
    return f"{', '.join(parts)} ({limit})"


def show_command(run: Run, conversation: str) -> str:
    """The command that shows a conversation, as it can be pasted."""
    guard = ["--"] if conversation.startswith("-") else []
    return one_line(shlex.join(["convoscope", "show", str(run.folder), *guard, conversation]), _MAX_COMMAND)


def _remarks(analysis: Analysis) -> Iterator[str]:
    for state in analysis.unknown[:MAX_NAMES]:
        conversations = counted(state.n, "conversation")
        yield f"outcome unknown, in no stall: {conversations} that were in {state_name(state.flow, state.state)}"
    if (more := len(analysis.unknown) - MAX_NAMES) > 0:
        yield f"and {counted(more, 'other state')} with conversations of unknown outcome"
    yield from map(_end, analysis.ends[:MAX_NAMES])
    if (more := len(analysis.ends) - MAX_NAMES) > 0:
        yield f"and {counted(more, 'other end')} without success"
    yield from map(_healthy, analysis.front_loaded[:MAX_NAMES])
    if (more := len(analysis.front_loaded) - MAX_NAMES) > 0:
        yield f"and {counted(more, 'other state')} whose callers told everything before"
    yield from untested_lines((state.flow, state.state) for state in analysis.untested)
    if line := excluded_line(analysis.excluded):
        yield line
    if analysis.without_states and analysis.states:
        yield without_text(analysis.without_states)


def _end(end: End) -> str:
    origins = f", from {', '.join(map(short_name, end.came_from))}" if end.came_from else ""
    where = f"{state_name(end.flow, end.state)} ({short_name(end.terminal)})"
    return f"end without success: {where}: {counted(end.n, 'conversation')}{origins}"


def _healthy(state: Healthy) -> str:
    rates = (
        f"slot_fill {decimal_text(state.slot_fill_rate, most=1.0)}, progress {decimal_text(state.progress, most=1.0)}"
    )
    front_loaded = f"{counted(state.front_loaded, 'slot')} told before it was entered"
    where = state_name(state.flow, state.state)
    return f"healthy, though it collects little: {where} ({rates}, {front_loaded})"
