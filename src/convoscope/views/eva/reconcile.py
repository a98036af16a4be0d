"""The trace brought in line with the texts by turn: grouped, labelled, complete at both ends (voice logs, 3.6)."""

from __future__ import annotations

from typing import NamedTuple

from convoscope.views.eva.call_state import ASSISTANT, INTENDED, TOOL, TRANSCRIBED, USER, Entry
from convoscope.views.eva.labels import ASSISTANT_INTERRUPTS, CUT_ITSELF_OFF, USER_INTERRUPTS

Texts = dict[int, str | None]
Interval = tuple[float, float]


class Aligned(NamedTuple):
    """What one role said and sounded like, by turn; the three have the same keys."""

    transcribed: Texts
    intended: Texts
    audio: dict[int, list[Interval] | None]


def align(transcribed: dict[int, str], intended: dict[int, str], audio: dict[int, list[Interval]]) -> Aligned:
    """3.6(6): a key that one has, all have."""
    turns = sorted({*transcribed, *intended, *audio})
    return Aligned(
        {turn: transcribed.get(turn, "") for turn in turns},
        {turn: intended.get(turn, "") for turn in turns},
        {turn: audio.get(turn) for turn in turns},
    )


def group(trace: list[Entry]) -> list[Entry]:
    """3.6(3): what one role said in one turn without anything between is one entry."""
    grouped: list[Entry] = []
    for entry in trace:
        last = grouped[-1] if grouped else None
        if last is not None and entry.role != TOOL and last.role == entry.role and last.turn == entry.turn:
            last.content = f"{last.content} {entry.content}"
        else:
            grouped.append(entry)
    return grouped


def label_interruptions(trace: list[Entry], assistant_interrupted: set[int], user_interrupted: set[int]) -> None:
    """3.6(4): an interruption that was noticed late is labelled now."""
    for turn in assistant_interrupted:
        entries = [entry for entry in trace if entry.turn == turn and entry.role == ASSISTANT]
        if entries and not _starts_with(entries[0], ASSISTANT_INTERRUPTS):
            entries[0].content = f"{ASSISTANT_INTERRUPTS} {entries[0].content}"
    for turn in user_interrupted:
        entries = [entry for entry in trace if entry.turn == turn and entry.role == USER]
        if entries and not any(_starts_with(entry, USER_INTERRUPTS) for entry in entries):
            entries[0].content = f"{USER_INTERRUPTS} {entries[0].content}"


def reconcile(trace: list[Entry], user: Aligned, assistant: Aligned, *, backfill: bool = True) -> None:
    """3.6(8): the greeting first, the user's last words last; where the agent has the last word, it was cut off.

    `backfill`: what the user was to say stands in for what was last heard of them.
    """
    if not trace:
        if greeting := assistant.intended.get(0):
            trace.append(Entry(ASSISTANT, INTENDED, 0, greeting))
        return
    if trace[0].role == USER and trace[0].turn > 0:
        _greet_first(trace, assistant)
    if not user.intended:
        return
    last = max(user.intended)
    if last > trace[-1].turn:
        trace.append(Entry(USER, INTENDED, last, user.intended[last]))
    else:
        _cut_off_at_the_end(trace, assistant)
    if backfill and not user.transcribed.get(last):
        user.transcribed[last] = user.intended[last]


def _greet_first(trace: list[Entry], assistant: Aligned) -> None:
    for place, entry in enumerate(trace):
        if entry.role == ASSISTANT and entry.turn == 0:
            trace.insert(0, trace.pop(place))
            return
    if greeting := assistant.intended.get(0):
        trace.insert(0, Entry(ASSISTANT, INTENDED, 0, greeting))
    else:
        trace.insert(0, Entry(ASSISTANT, TRANSCRIBED, 0, assistant.transcribed.get(0)))


def _cut_off_at_the_end(trace: list[Entry], assistant: Aligned) -> None:
    last = trace[-1]
    if last.role == ASSISTANT:
        turn = last.turn
        last.content = f"{last.content} {CUT_ITSELF_OFF}"
    else:
        turn = max(assistant.intended, default=-1)
        text = assistant.intended.get(turn)
        if turn < last.turn or not text or any(entry.role == ASSISTANT and entry.turn == turn for entry in trace):
            return
        trace.append(Entry(ASSISTANT, INTENDED, turn, f"{text} {CUT_ITSELF_OFF}"))
    if text := assistant.intended.get(turn):
        assistant.intended[turn] = f"{text} {CUT_ITSELF_OFF}"
    if text := assistant.transcribed.get(turn):
        assistant.transcribed[turn] = f"{text} {CUT_ITSELF_OFF}"
    else:
        assistant.transcribed[turn] = assistant.intended.get(turn)


def _starts_with(entry: Entry, label: str) -> bool:
    return (entry.content or "").startswith(label)
