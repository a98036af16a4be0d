"""Small voice calls for tests: who said what, and when their sound began and ended."""

from typing import Any

from convoscope.conversation import ComponentMetric, Conversation, Event, Logged, Segment, Text, Utterance
from support.chats import UNPLACED, chat

LoggedSpan = tuple[float, float]


def voice_call(*events: Event, pipeline: str | None = "cascade", **facts: Any) -> Conversation:
    """A call of `user` and `agent`, in the order in which it happened."""
    return chat(*events, pipeline=pipeline, **facts)


def caller(text: str, *sound: LoggedSpan, heard: str | None = None, **facts: Any) -> Utterance:
    """The user means to say a text; `heard` is what the recogniser made of it."""
    return _said("user", text, sound, heard, **facts)


def bot(text: str, *sound: LoggedSpan, **facts: Any) -> Utterance:
    return _said("agent", text, sound, None, **facts)


def _said(speaker: str, text: str, sound: tuple[LoggedSpan, ...], heard: str | None, **facts: Any) -> Utterance:
    return Utterance(
        seq=UNPLACED,
        speaker=speaker,
        intended=Text(text) if text else None,
        heard=None if heard is None else Text(heard),
        segments=tuple(Segment(start, end, "audio") for start, end in sound),
        **facts,
    )


def reported(component: str, **values: Any) -> ComponentMetric:
    """A figure that a part of the stack reports of itself."""
    return ComponentMetric(seq=UNPLACED, component=component, values=values)


def simulated(kind: str, value: Any = None) -> Logged:
    """A record of the simulator's log."""
    return Logged(source="simulator", kind=kind, value=value)


def exchange(gap: float, *between: Event) -> Conversation:
    """One question from 0 to 4 s, and the reply `gap` seconds after its end."""
    return voice_call(caller("book it", (0.0, 4.0)), *between, bot("done", (4.0 + gap, 9.0 + gap)))


def is_of_this_world(conversation: Conversation) -> bool:
    """No time in it lies more than thirty thousand years away, where doubles no longer add up."""
    times = [clock.offset or 0.0 for clock in conversation.clocks]
    times += [event.time.at for event in conversation.timeline if event.time is not None]
    times += [time for one in conversation.utterances for part in one.segments for time in (part.start, part.end)]
    return all(abs(time) < 1e12 for time in times)
