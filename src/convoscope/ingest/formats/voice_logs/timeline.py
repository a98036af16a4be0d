"""The joined call as a timeline of events, and which log records went into each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import (
    AnyEvent,
    Clock,
    ComponentMetric,
    Logged,
    Marker,
    Participant,
    Segment,
    Text,
    Time,
    ToolCall,
    ToolResult,
    Utterance,
)
from convoscope.conversation.model import Pipeline
from convoscope.ingest.formats.voice_logs.framework import TextRun
from convoscope.ingest.formats.voice_logs.join import Join, Joined, Offsets, UserUtterance
from convoscope.ingest.formats.voice_logs.lines import milliseconds, tool_name
from convoscope.ingest.formats.voice_logs.logs import UNHEARD, LlmCall, as_logged
from convoscope.ingest.formats.voice_logs.replies import Reply
from convoscope.ingest.formats.voice_logs.sounds import (
    END,
    NOTICEABLE,
    START,
    HeardText,
    Skew,
    SoundSpan,
    sent_after,
    sent_in_time,
    skew,
    sound_shift,
)
from convoscope.ingest.record import as_object, number_in
from convoscope.ingest.report import Notes

_USER, _AGENT = "user", "assistant"
# Usual delays in seconds, as seen in calls whose clocks agree.
_AFTER_SPEECH = 0.4
"""From the end of the user's sound to the recogniser's line."""
_AFTER_SOUND = 0.5
"""From the start of the agent's sound to the first word that the framework logs."""
_AFTER_REPLY = 0.7
"""From the model's reply to the first word that the framework logs."""
_BEFORE_SOUND = 0.25
"""From the model's reply to the start of the agent's sound."""
_PAUSE = 2.5
"""A silence between two words, in seconds, that parts one utterance of the agent from the next."""
_BOUNDARIES = ("turn_start", "turn_end")


class ComponentValues(NamedTuple):
    """What was measured of a part of the stack, at an unknown time."""

    component: str
    values: dict[str, Any]
    label: str = ""


class JoinedCall(NamedTuple):
    """The logs of a call, as read."""

    audit: list[Logged]
    runs: list[TextRun]
    simulator: list[Logged]
    pipeline: Pipeline
    llm_calls: Sequence[LlmCall] = ()
    metrics: Sequence[ComponentValues] = ()


class Built(NamedTuple):
    """What a conversation is made of."""

    participants: tuple[Participant, ...]
    clocks: tuple[Clock, ...]
    timeline: tuple[AnyEvent, ...]
    log: tuple[Logged, ...]
    duration: float | None


class _Entry(NamedTuple):
    """An event on its way into the order: by the user's utterance before it, then by time."""

    slot: int
    order: float
    event: AnyEvent
    records: Sequence[int] = ()
    position: int = -1
    """Among events of one moment, the index in the audit log."""
    reply: int = -1
    """The number of the reply that it is."""


def build(call: JoinedCall, notes: Notes) -> Built:
    """Join the logs of a call."""
    log = _corrected([*call.audit, *map(as_logged, call.runs), *call.simulator], notes)
    first_run = len(call.audit)
    first_of_caller = first_run + len(call.runs)
    offsets, clocks = _clocks(log, call, first_run, first_of_caller, notes)
    join = Join(log, call.runs, first_run, offsets)
    joined = join.join(notes)
    if (
        not joined.utterances
        and len([run for run in call.runs if run.text and run.kind in ("tts_text", "llm_response")]) > 1
    ):
        # Turn boundaries say that the user spoke, but not what: without a word or a sound that is no utterance.
        notes.inferred("turns_unknown", "no log has anything of the user: all replies are one turn")
    entries = _entries(join, joined, call)
    entries.sort(key=lambda entry: (entry.slot, entry.order, entry.position))
    timeline: list[AnyEvent] = []
    event_of: dict[int, int] = {}
    event_of_reply: dict[int, int] = {}
    for seq, entry in enumerate(entries):
        # The events were made here and are not shared yet: no need of a copy.
        msgspec.structs.force_setattr(entry.event, "seq", seq)
        timeline.append(entry.event)
        for index in entry.records:
            event_of[index] = seq
        event_of_reply[entry.reply] = seq
    kept = [
        msgspec.structs.replace(record, event=event_of[index]) if index in event_of else record
        for index, record in enumerate(log)
    ]
    people = (Participant(_USER, _USER), Participant(_AGENT, _AGENT))
    # From the first record of any log to the last, in common time.
    times = [at for at, record in zip(join.times, join.log, strict=True) if record.ms is not None]
    duration = round(max(times) - min(times), 3) if len(times) > 1 else None
    return Built(people, clocks, tuple(timeline), _by_turn(kept, join, joined.replies, event_of_reply), duration)


def _by_turn(
    log: Sequence[Logged], join: Join, replies: Sequence[Reply], event_of_reply: Mapping[int, int]
) -> tuple[Logged, ...]:
    """The records, with what was sent to the speech engine cut between two lines or sounds of the user.

    Only where the framework's log has no turn boundary at all: else those cut it.
    """
    if any(record.source == "framework" and record.kind in _BOUNDARIES for record in log):
        return tuple(log)
    lines = ((index, join.log[index]) for index in join.order("audit"))
    heard = sorted(join.at(index) for index, line in lines if line.kind == _USER and line.ms is not None)
    instead: dict[int, list[Logged]] = {}
    for index, record in enumerate(log):
        if record.source != "framework":
            continue
        numbers_here = [number for number, reply in enumerate(replies) if index in reply.records and reply.text]
        numbers_here.sort(key=lambda number: (replies[number].slot, replies[number].sent))
        parts: dict[tuple[int, int], list[int]] = {}
        for number in numbers_here:
            reply = replies[number]
            parts.setdefault((reply.slot, bisect_right(heard, reply.sent)), []).append(number)
        if len(parts) < 2:
            continue
        instead[index] = [
            msgspec.structs.replace(
                record,
                ms=round(1000 * (replies[numbers[0]].sent - join.offsets.framework)),
                text=" ".join(replies[number].text for number in numbers),
                event=event_of_reply.get(numbers[0], -1),
            )
            for numbers in parts.values()
        ]
    return tuple(piece for index, record in enumerate(log) for piece in instead.get(index, [record]))


def _corrected(log: list[Logged], notes: Notes) -> list[Logged]:
    """Where the caller corrected what they had meant to say, they said the correction."""
    for index, record in enumerate(log):
        if record.kind == "user_speech_correction" and isinstance(record.value, dict):
            wrong, right = record.value.get("original"), record.value.get("corrected")
            for before in range(index - 1, -1, -1):
                if log[before].kind == "user_speech" and log[before].text == wrong and isinstance(right, str):
                    log[before] = msgspec.structs.replace(log[before], text=right)
                    notes.repaired("user_text_corrected", f"{str(wrong)[:40]!r} to {right[:40]!r}")
                    break
    return log


def _clocks(
    log: Sequence[Logged], call: JoinedCall, first_run: int, first_of_caller: int, notes: Notes
) -> tuple[Offsets, tuple[Clock, ...]]:
    """The clocks of the logs, and how they relate: one clock, unless the texts show otherwise."""
    caller = range(first_of_caller, len(log))
    audio = sound_shift(log, caller)
    if audio:
        notes.repaired("clock_skew", f"sounds are logged {audio:+.1f} s away from the caller's log")
    meant, heard = _caller_texts(log, caller, audio, ends=call.pipeline != "s2s")
    of_audit = _line_texts(log, range(first_run), "user")
    of_replies = _line_texts(log, range(first_run), "assistant")
    runs = [HeardText(run.ms / 1000, run.text) for run in call.runs if run.kind == "tts_text" and run.ms is not None]
    ahead: dict[str, Skew | None] = {"audit": None, "framework": None}
    if meant or heard:
        # Speech-to-speech services stamp the user's words when speech begins, recognisers when it has ended.
        usual = 0.0 if call.pipeline == "s2s" else _AFTER_SPEECH
        ahead["audit"] = skew(of_audit, meant, usual) if of_audit else skew(of_replies, heard, -_BEFORE_SOUND)
    if of_replies:
        in_time = sent_in_time(of_replies, runs, _AFTER_REPLY)
        late = None if in_time else sent_after(of_replies, _words(call), _AFTER_REPLY)
        ahead["framework"] = _added(late, ahead["audit"])
    elif heard and runs:
        ahead["framework"] = skew(_phrases(_words(call)), heard, _AFTER_SOUND)
    for source, skewed in ahead.items():
        if skewed is not None:
            other = "the caller's" if meant or heard else "the audit log's"
            detail = (
                f"the {source} clock is {skewed.seconds:+.1f} s away from {other}, by {skewed.texts} matching texts"
            )
            notes.repaired("clock_skew", detail)
    shift = {source: -found.seconds if found is not None else 0.0 for source, found in ahead.items()}
    offsets = Offsets(shift.get("audit", 0.0), shift.get("framework", 0.0), 0.0, audio)
    clocks = tuple(
        Clock(
            id=source,
            kind="audio" if source == "audio" else "wall",
            source="audio_timestamp" if source == "audio" else f"{source} log",
            resolution=None if source == "audio" else 0.001,
            offset=offset,
            estimated=offset != 0.0,
        )
        for source, offset in offsets._asdict().items()
    )
    return offsets, clocks


def _added(first: Skew | None, other: Skew | None) -> Skew | None:
    if first is None or other is None:
        return first or other
    seconds = first.seconds + other.seconds
    return Skew(seconds, min(first.texts, other.texts)) if abs(seconds) >= NOTICEABLE else None


def _words(call: JoinedCall) -> list[HeardText]:
    return [HeardText(ms / 1000, text) for run in call.runs if run.kind == "tts_text" for ms, text in run.parts if ms]


def _phrases(words: list[HeardText]) -> list[HeardText]:
    """Words that follow each other at once, as one text with the time of the first."""
    phrases: list[HeardText] = []
    latest = float("-inf")
    for word in words:
        if word.at - latest > _PAUSE:
            phrases.append(word)
        else:
            phrases[-1] = HeardText(phrases[-1].at, f"{phrases[-1].text} {word.text}")
        latest = word.at
    return phrases


def _caller_texts(
    log: Sequence[Logged], caller: range, audio: float, *, ends: bool
) -> tuple[list[HeardText], list[HeardText]]:
    """What the caller meant, with the end (or else the start) of its sound, and what they heard, with its start."""
    meant: list[HeardText] = []
    heard: list[HeardText] = []
    began = spoke = latest = 0.0
    awaited = False
    """The last words of the user are in a sound that has not ended yet."""
    for index in caller:
        record = log[index]
        latest = latest if record.ms is None else record.ms / 1000
        when = record.sound + audio if record.sound is not None else latest
        if record.kind == START and record.speaker == _AGENT:
            began = when
        elif record.kind == "assistant_speech":
            heard.append(HeardText(began or when, record.text))
        elif record.kind == "user_speech":
            meant.append(HeardText(when + len(record.text) / 15 if ends else spoke or when, record.text))
            awaited = ends
        elif record.kind == START and record.speaker == _USER:
            spoke = when
        elif record.kind == END and record.speaker == _USER and awaited:
            # Only the first end: a sound without words that follows is another one.
            meant[-1] = HeardText(when, meant[-1].text)
            awaited = False
    return meant, heard


def _line_texts(log: Sequence[Logged], indexes: range, kind: str) -> list[HeardText]:
    return [
        HeardText(record.ms / 1000, record.text)
        for index in indexes
        if (record := log[index]).kind == kind and record.ms is not None and record.text not in UNHEARD
    ]


def _entries(join: Join, joined: Joined, call: JoinedCall) -> list[_Entry]:
    starts = [utterance.at for utterance in joined.utterances]
    entries = [_say(join, number, utterance) for number, utterance in enumerate(joined.utterances, 1)]
    fallback = _fallbacks(join, call)
    entries += [
        _reply(join, reply, joined.utterances, manner="fallback" if reply.line in fallback else "")._replace(
            reply=number
        )
        for number, reply in enumerate(joined.replies)
    ]
    for index, slot in joined.slot.items():
        event = _tool(join, index)
        if event is not None:
            entries.append(_Entry(slot, join.at(index), event, (index,), index))
    for index in joined.unsaid:
        text = join.log[index].text
        event = Marker(seq=0, name="reply_not_spoken", participant=_AGENT, value=text, time=_time(join, index))
        entries.append(_Entry(joined.slot.get(index, 0), join.at(index), event, (index,)))
    for sound in joined.noise:
        time = Time(
            sound.at - join.offsets.audio, "audio", None if sound.end is None else sound.until - join.offsets.audio
        )
        event = Marker(seq=0, name="noise", participant=sound.role, time=time)
        entries.append(_Entry(bisect_right(starts, sound.at), sound.at, event, sound.records))
    for index in range(len(call.audit) + len(call.runs), len(join.log)):
        record = join.log[index]
        if record.kind == "connection_state" or record.kind in ("timeout", "error"):
            event = Marker(seq=0, name=record.kind, value=record.value, time=_time(join, index))
            entries.append(_Entry(bisect_right(starts, join.at(index)), join.at(index), event, (index,)))
    return [*entries, *_components(join, call, starts)]


def _time(join: Join, index: int) -> Time | None:
    record = join.log[index]
    return None if record.ms is None else Time(record.ms / 1000, record.source)


def _segments(join: Join, sounds: Sequence[SoundSpan]) -> tuple[Segment, ...]:
    shift = join.offsets.audio
    return tuple(
        Segment(sound.start - shift, sound.end - shift, "audio")
        for sound in sounds
        if sound.start is not None and sound.end is not None
    )


def _heard_at(join: Join, sounds: Sequence[SoundSpan], index: int | None) -> Time | None:
    """When an utterance began: by its sound, else by its log.

    Of a sound of the user whose start is lost the end is the one moment that is known, and what a reply is timed by.
    """
    if sounds:
        shift = join.offsets.audio
        start, end = sounds[0].start, sounds[-1].end
        if start is None and sounds[0].role == _USER:
            start = end
        if start is not None:
            return Time(start - shift, "audio", None if end is None else end - shift)
    return None if index is None else _time(join, index)


def _text(join: Join, indexes: Sequence[int], source: str) -> Text | None:
    words = [join.log[index].text.strip() for index in indexes]
    return Text(" ".join(word for word in words if word), source) if words else None


def _say(join: Join, number: int, utterance: UserUtterance) -> _Entry:
    first = next(iter([*utterance.meant, *utterance.heard]), None)
    # A placeholder of the recogniser is used only where the words are unknown.
    heard = [index for index in utterance.heard if join.log[index].text not in UNHEARD]
    heard = heard or ([] if utterance.meant else utterance.heard)
    event = Utterance(
        seq=0,
        speaker=_USER,
        intended=_text(join, utterance.meant, "simulator"),
        heard=_text(join, heard, "audit"),
        segments=_segments(join, utterance.sounds),
        time=_heard_at(join, utterance.sounds, first),
    )
    records = [*(index for sound in utterance.sounds for index in sound.records), *utterance.meant, *utterance.heard]
    return _Entry(number, float("-inf"), event, sorted(records))


def _reply(join: Join, reply: Reply, utterances: Sequence[UserUtterance], *, manner: str) -> _Entry:
    heard = [index for sound in reply.sounds for index in sound.texts]
    segments = _segments(join, reply.sounds)
    following = utterances[reply.slot] if reply.slot < len(utterances) else None
    cut = reply.cut
    if following is not None and following.sounds and segments:
        cut = following.at < reply.sounds[-1].until - 0.001
    source = join.log[reply.records[0]].source if reply.records else ""
    event = Utterance(
        seq=0,
        speaker=_AGENT,
        intended=Text(reply.text, source) if reply.text else None,
        heard=_text(join, heard, "simulator"),
        segments=segments,
        time=_heard_at(join, reply.sounds, reply.records[0] if reply.records else None),
        cut_off_by=_USER if cut else "",
        manner=manner,
    )
    records = [*(index for sound in reply.sounds for index in sound.records), *heard, *reply.records]
    return _Entry(reply.slot, reply.order, event, sorted(records), -1 if reply.line is None else reply.line)


def _fallbacks(join: Join, call: JoinedCall) -> set[int]:
    """The replies that follow a turn that was ended for want of an answer."""
    fallbacks: set[int] = set()
    waiting = False
    for index in range(len(call.audit)):
        kind = join.log[index].kind
        if kind == "turn_fallback":
            waiting = True
        elif kind == "assistant" and waiting:
            fallbacks.add(index)
            waiting = False
    return fallbacks


def _tool(join: Join, index: int) -> AnyEvent | None:
    record = join.log[index]
    value, name = as_object(record.value), str(tool_name(record) or "")
    if record.kind == "tool_call":
        arguments = value.get("parameters", value.get("arguments"))
        return ToolCall(seq=0, name=name, arguments=arguments, time=_time(join, index))
    if record.kind == "tool_response":
        answer = value.get("response", value.get("result"))
        return ToolResult(seq=0, name=name, result=answer, time=_time(join, index))
    if record.kind == "turn_fallback":
        return Marker(seq=0, name="turn_fallback", value=record.text or record.value, time=_time(join, index))
    return None


def _components(join: Join, call: JoinedCall, starts: Sequence[float]) -> list[_Entry]:
    """What the parts of the stack log of themselves: calls to the model, first bytes, tokens."""
    entries: list[_Entry] = []
    for made in call.llm_calls:
        latency, ended = number_in(made.latency_ms), milliseconds(made.end_time)
        if latency is None:
            continue
        at = float("inf") if ended is None else ended / 1000 + join.offsets.audit
        event = ComponentMetric(
            seq=0,
            component="llm",
            values={"latency": latency / 1000},
            label=made.model if isinstance(made.model, str) else "",
            time=None if ended is None else Time(ended / 1000, "audit"),
        )
        entries.append(_Entry(bisect_right(starts, at), at, event))
    for component, values, label in call.metrics:
        event = ComponentMetric(seq=0, component=component, values=values, label=label)
        entries.append(_Entry(len(starts), float("inf"), event))
    return entries
