"""Readers of records that hold a list of messages: they say what the messages are, and what else a record says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any

import msgspec

from convoscope.conversation import (
    SYSTEM,
    Agent,
    ComponentMetric,
    Conversation,
    Expected,
    Label,
    Outcome,
    Scenario,
    Source,
)
from convoscope.conversation.model import Pipeline
from convoscope.errors import InputError
from convoscope.ingest.kits.leftovers import Leftovers
from convoscope.ingest.kits.messages import read_tools
from convoscope.ingest.kits.plain_timeline import PlainTimeline
from convoscope.ingest.kits.spans import seconds
from convoscope.ingest.reader import Reader, RecordGroup
from convoscope.ingest.record import JsonObject, as_object, filled, in_order
from convoscope.ingest.report import Notes
from convoscope.ingest.speaker_labels import note_unknown_speakers


class TalkMessage(msgspec.Struct, kw_only=True):
    """A plain message (`kits.shapes`) of a talk, and what the log says of it."""

    plain: JsonObject
    at: float | None = None
    role: str = ""
    """Instead of the role of the message: `subagent`, `orchestrator`."""
    name: str = ""
    caller: str = ""
    """The role of who calls the tools of the message; "" for the agent."""
    is_spoken: bool = False
    is_cut_off: bool = False
    extras: JsonObject = {}
    marker: str = ""
    """What the entry is, where it is no speech: a note for colleagues, an event of the system."""
    usage: JsonObject = {}
    """Tokens, costs and times of the call of a model that gave the message, under the names of component metrics."""


class LoggedTalk(msgspec.Struct, kw_only=True):
    """What a record says of one conversation."""

    id: str = ""
    messages: list[TalkMessage] = []
    agent: str = ""
    model: str = ""
    instructions: str = ""
    tools: Sequence[Any] | None = None
    dimensions: dict[str, str] = {}
    expected: Expected = Expected()
    scenario: Scenario | None = None
    labels: Sequence[Label] = ()
    outcome: Outcome = Outcome()
    pipeline: Pipeline = "text"
    extras: JsonObject = {}
    raw: Any = None
    """What the log says of this talk, as it is written: what is not in the conversation is kept beside it."""


class TalkReader(Reader):
    """Reads records that hold talks."""

    clock_source = "message"
    no_messages = "has no messages"
    known: Set[str] = frozenset()
    """Names of fields that need not be kept: they say again what others say."""
    shown: Set[str] = frozenset()
    """The same, but only for texts and numbers: a value of another type is kept."""
    is_rewritten = False
    """The talks hold whole records in another notation, not the records themselves."""

    def talks(self, group: RecordGroup, notes: Notes) -> Iterable[LoggedTalk]:
        """The talks of a group of records."""
        raise NotImplementedError

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        leftovers = Leftovers(notes, self.known, self.shown)
        for talk in self.talks(group, notes):
            timeline = PlainTimeline(notes, self.clock_source)
            for message in talk.messages:
                _add(message, timeline, talk)
            if any(message.plain for message in talk.messages if not message.marker) and timeline.events:
                note_unknown_speakers(timeline)
                yield leftovers.kept_with(self._conversation(talk, timeline, group), [talk.raw])
            else:
                leftovers.leave([talk.raw])
                where = f"{talk.id}: " if talk.id else ""
                notes.refuse(InputError(f"{where}{self.no_messages}", hint="nothing was said in it"))
        if not self.is_rewritten:
            leftovers.note_rest(record.value for record in group.records)

    def _conversation(self, talk: LoggedTalk, timeline: PlainTimeline, group: RecordGroup) -> Conversation:
        instructions = [talk.instructions, *timeline.instructions] if talk.instructions else timeline.instructions
        dimensions = filled({"agent": talk.agent, "model": talk.model}) | filled(talk.dimensions)
        return Conversation(
            id=talk.id or group.name,
            dimensions=dimensions,
            source=Source(format=self.name, files=group.file_names, record=group.name),
            pipeline=talk.pipeline,
            participants=timeline.participants,
            clocks=timeline.clocks,
            agent=Agent(
                name=talk.agent,
                instructions="\n\n".join(dict.fromkeys(instructions)),
                tools=None if talk.tools is None else read_tools(talk.tools),
                models={"llm": talk.model} if talk.model else {},
            ),
            scenario=talk.scenario,
            expected=talk.expected,
            timeline=tuple(timeline.events),
            labels=tuple(talk.labels),
            outcome=talk.outcome,
            extras=talk.extras,
        )


def empty_message(entry: JsonObject, at: float | None = None) -> TalkMessage:
    """An entry of a message in which nothing is said, called or answered."""
    return TalkMessage(plain={"role": "", **entry}, at=at, marker="message_without_text")


def oldest_first(entries: Iterable[Any], *names: str) -> list[tuple[float | None, JsonObject]]:
    """Entries by the time in one of these fields. Some logs begin with the newest; what has no time keeps its place."""
    timed = [(seconds(entry, names), entry) for entry in map(as_object, entries)]
    known = [at for at, _ in timed if at is not None]
    if known and known[0] > known[-1]:
        timed.reverse()
    return [timed[index] for index in in_order([at for at, _ in timed])]


def _add(message: TalkMessage, timeline: PlainTimeline, talk: LoggedTalk) -> None:
    at = timeline.at(message.at)
    if message.marker:
        timeline.notes.ignored(message.marker, "", timeline.seq)
        timeline.mark(message.marker, message.plain, at)
        return
    if message.plain["role"] == SYSTEM and not message.role:
        timeline.instruct(message.plain)
        return
    timeline.add_plain(
        message.plain,
        at,
        role=message.role,
        name=message.name,
        caller=timeline.participant(message.caller) if message.caller else "",
        is_spoken=message.is_spoken,
        is_cut_off=message.is_cut_off,
        extras=message.extras,
    )
    if message.usage:
        timeline.add(ComponentMetric, component="llm", values=message.usage, label=talk.model, time=at)
