"""Turns as the published fixtures count them (voice logs, section 3)."""

from __future__ import annotations

from convoscope.conversation import AnyEvent, Conversation, Turn
from convoscope.conversation.turns import exchange, turn_of
from convoscope.views.eva.reading import eva_reading


def eva_turns(conversation: Conversation) -> tuple[Turn, ...]:
    """Turns as the published fixtures of EVA count them in the logs of a call.

    An event belongs to the turn in which the first log record that it was made of was met; one that
    no record speaks of stays with the event before it. Without logs there is nothing to count by,
    and turns are exchanges.
    """
    if not conversation.log:
        return exchange(conversation)
    first: dict[int, int] = {}
    reading = eva_reading(conversation)
    for record, turn in zip(reading.log, reading.turn_of, strict=True):
        if record.event >= 0:
            first.setdefault(record.event, turn)
    turns: dict[int, list[AnyEvent]] = {}
    current = 0
    for event in conversation.timeline:
        current = first.get(event.seq, current)
        turns.setdefault(current, []).append(event)
    return tuple(turn_of(number, conversation, turns[number]) for number in sorted(turns))
