"""One conversation on the terminal as a story: how it ended and why, then who said what, then what is bad."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from convoscope.analysis.answer.causes import cause_of
from convoscope.analysis.answer.make import reason_of
from convoscope.analysis.answer.model import Noun
from convoscope.analysis.words import ORDERS, cut_text, outcome_text, trial_text
from convoscope.conversation import (
    ASSISTANT,
    SYSTEM,
    USER,
    Conversation,
    StateEntered,
    ToolCall,
    Utterance,
)
from convoscope.conversation.events import AnyEvent
from convoscope.harmless import one_line
from convoscope.report.placed_findings import by_place, placed_findings
from convoscope.report.screen import Screen
from convoscope.runs.conversations import KeptConversation
from convoscope.runs.ranking import Ranking
from convoscope.runs.summary import Summary
from convoscope.scores.observation import MEASURED
from convoscope.views.flow.endings import LOST, outcome_of
from convoscope.views.machines import is_call
from convoscope.views.tool_outcomes import tool_outcomes

WIDTH = 80
_INDENT = " " * 15
_LONG = 160
"""Letters of a tool's answer."""


def print_brief_story(screen: Screen, record: KeptConversation, summary: Summary, ranking: Ranking) -> None:
    """The story of a conversation, for somebody who wants to know what happened."""
    conversation = record.conversation
    noun: Noun = "call" if is_call(conversation) else "chat"
    place = ranking.order.tolist().index(record.number) + 1
    ended = outcome_of(conversation)
    screen.line(f"{one_line(conversation.id)}: {one_line(outcome_text(ended.name, ended.evidence))}", "bold")
    symptom = cause_of(conversation) if ended.name == LOST else None
    reasons = [symptom.words] if symptom is not None and symptom.words else []
    reasons += [trial] if (trial := trial_text(ranking.trials.get(record.number))) else []
    reasons += [reason_of(summary, behind, noun) for behind in ranking.because(record.number)]
    for reason in reasons:
        _wrapped(screen, f"- {reason}", "  ")
    dimensions = [f"{name} {value}" for name, value in conversation.dimensions.items()]
    rank = f"{place:,} of {len(ranking.order):,}, {ORDERS[ranking.basis]}"
    _wrapped(screen, ", ".join([*dimensions, rank]), "  ")
    screen.line()
    marked = symptom.event if symptom is not None else None
    findings = by_place(placed_findings(conversation))
    for event in conversation.timeline:
        for line in _lines(conversation, event):
            style = "bold red" if event.seq == marked else "" if isinstance(event, Utterance) else "dim"
            screen.line(line, style)
        for finding in findings.get(event.seq, ()):
            for line in textwrap.wrap(one_line(f"{finding.by}: {finding.text}", _LONG), WIDTH - len(_INDENT)):
                screen.line(_INDENT + line, "red" if finding.is_open else "dim")
    screen.line()
    measured = sum(one.status == MEASURED for one in record.reduced)
    notes = f", {len(record.notes):,} notes of reading" if record.notes else ""
    screen.line(f"{measured:,} scores, {len(record.reduced) - measured:,} not measured{notes} (--full)")


def _wrapped(screen: Screen, text: str, indent: str) -> None:
    for line in textwrap.wrap(one_line(text, None), WIDTH, subsequent_indent=indent):
        screen.line(line)


def _lines(conversation: Conversation, event: AnyEvent) -> Iterator[str]:
    """What one event says; nothing of what only a machine wants to know."""
    if isinstance(event, Utterance):
        role = conversation.roles[event.speaker]
        user = "caller" if is_call(conversation) else "user"
        who = {USER: user, ASSISTANT: "agent", SYSTEM: "system"}.get(role, "other")
        text = event.meant().strip() or conversation.text(event)
        if text.strip():
            yield from _spoken(_clock(conversation, event), who, text)
        heard = event.received().strip()
        if role == USER and heard and _plain(heard) != _plain(text):
            yield from _spoken("", "heard", heard)
    elif isinstance(event, ToolCall):
        yield from _spoken(_clock(conversation, event), "tool", _tool(conversation, event))
    elif isinstance(event, StateEntered):
        yield f"{'':7} → {one_line(event.state)}"


def _spoken(clock: str, who: str, text: str) -> Iterator[str]:
    lines = textwrap.wrap(one_line(text, None), WIDTH - len(_INDENT)) or [""]
    yield f"{clock:>6}  {who:<6} {lines[0]}"
    for line in lines[1:]:
        yield f"{_INDENT}{line}"


def _tool(conversation: Conversation, call: ToolCall) -> str:
    """The tool, how long it took, and what came of it."""
    result = conversation.tool_results.get(call.seq)
    if result is None:
        return f"{call.name}: no result in the log"
    elapsed = None if call.time is None or result.time is None else conversation.elapsed(call.time, result.time)
    took = f" took {elapsed:.1f} s," if elapsed is not None else ""
    outcome = tool_outcomes(conversation)[result.seq]
    if outcome.failed:
        why = f": {cut_text(outcome.error, _LONG)}" if outcome.error else ""
        return f"{call.name}{took} failed{why}"
    return f"{call.name}{took} answered"


def _clock(conversation: Conversation, event: AnyEvent) -> str:
    """Minutes and seconds since the conversation began."""
    if event.time is not None:
        at = conversation.common(event.time) - conversation.started
    elif isinstance(event, Utterance) and (sounds := conversation.sounds(event)):
        at = sounds[0][0] - conversation.started
    else:
        return ""
    return f"{int(max(0.0, at) // 60)}:{int(max(0.0, at) % 60):02d}"


def _plain(text: str) -> str:
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text).casefold().split())
