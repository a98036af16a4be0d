"""Sessions that go on after a long silence: what follows is a conversation of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import msgspec

from convoscope.conversation import AnyEvent, Conversation, Outcome
from convoscope.ingest.ids import has_label

_HOUR = 3600.0


def split_by_silence(conversation: Conversation, hours: float) -> list[Conversation]:
    """The conversations of a session, by silences of so many hours: `s1`, `s1#2`, `s1#3`.

    Only times of the wall clock tell. What has none belongs to what is before it. A session with a label or frames is
    one: these are about the whole of it.
    """
    wall = {clock.id for clock in conversation.clocks if clock.kind == "wall"}
    if not wall or conversation.labels or conversation.frames or has_label(conversation.extras):
        return [conversation]
    starts = list(_starts(conversation, wall, hours * _HOUR))
    if not starts:
        return [conversation]
    bounds = [0, *starts, len(conversation.timeline)]
    return [
        _part(conversation, number, conversation.timeline[start:end], is_last=end == len(conversation.timeline))
        for number, (start, end) in enumerate(pairwise(bounds), 1)
    ]


def _starts(conversation: Conversation, wall: set[str], silence: float) -> Iterator[int]:
    latest: float | None = None
    for index, event in enumerate(conversation.timeline):
        if event.time is None or event.time.clock not in wall:
            continue
        if latest is not None and event.time.at - latest >= silence:
            yield index
        latest = event.time.at if latest is None else max(latest, event.time.at)


def _part(whole: Conversation, number: int, events: tuple[AnyEvent, ...], *, is_last: bool) -> Conversation:
    timeline = tuple(msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(events))
    return msgspec.structs.replace(
        whole,
        id=whole.id if number == 1 else f"{whole.id}#{number}",
        timeline=timeline,
        outcome=whole.outcome if is_last else Outcome(),
    )
