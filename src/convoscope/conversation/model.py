"""The canonical conversation: who took part, what happened in which order, what was expected."""

from __future__ import annotations

from collections.abc import Collection, Container
from typing import Literal

import msgspec

from convoscope.conversation.annotations import Annotations, Frame, Label
from convoscope.conversation.events import AnyEvent, Clock, Json, Logged, Time, ToolCall, ToolResult, Utterance
from convoscope.conversation.flow import Flow
from convoscope.conversation.lazy import remembered
from convoscope.conversation.turns import DEFAULT_TURN_RULE, Contents, Turn, contents_of, derive_turns

Pipeline = Literal["text", "cascade", "audio_llm", "s2s"]
ChangeKind = Literal["added", "removed", "changed"]

# Roles are open; these are the ones that turn derivation and metrics know.
USER = "user"
ASSISTANT = "assistant"
SYSTEM = "system"

_AUDIO_NATIVE = ("audio_llm", "s2s")

# Dimensions are open; these have a column of their own in a run.
DIMENSIONS = ("dataset", "split", "scenario_id", "trial", "agent", "model", "flow", "domain")


class Participant(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Someone, or something, that speaks."""

    id: str
    role: str
    name: str = ""


class Tool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A tool that the agent may call."""

    name: str
    description: str = ""
    arguments_schema: Json = None
    result_schema: Json = None
    kind: str = ""
    extras: dict[str, Json] = {}


class Agent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The agent as it was configured. `tools` is None where the log does not say what it had."""

    name: str = ""
    role: str = ""
    instructions: str = ""
    tools: tuple[Tool, ...] | None = None
    models: dict[str, str] = {}
    """Model by part: llm, stt, tts."""
    extras: dict[str, Json] = {}


class Database(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The contents of a scenario database at one moment, and the hash that its source claims."""

    content: Json
    hash: str = ""
    is_hash_wrong: bool = False
    """The hash was recomputed from the content, and differs."""


class ChangePattern(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Changes of a database that a rule speaks of: those whose path fits, and all else that is given."""

    path: str
    """Keys with dots between them; `*` is any one key, `**` any number of keys; a backslash before `.` `*` `\\`."""
    kind: ChangeKind | None = None
    values: tuple[Json, ...] = ()
    """The values that the change may lead to; none is any value."""
    fields: dict[str, Json] = {}
    """What the new record has to hold; its other fields may be anything."""
    times: int | None = None
    """How often a required change happens; None is once for a record that comes or goes, once or more else."""


class ChangeRules(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the agent has to change, may change and must not change. Whatever else it changes is damage."""

    required: tuple[ChangePattern, ...] | None = None
    """None is "whatever leads to the expected database"; nothing at all is `()`."""
    allowed: tuple[ChangePattern, ...] = ()
    forbidden: tuple[ChangePattern, ...] = ()
    generated: tuple[str, ...] = ()
    """Paths of records whose last key is made up by the system, so that another one is as good."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The task that was set: what the user wants, and the world before, after and as it should be."""

    goal: Json = None
    persona: Json = None
    clock: str = ""
    """The date and time that the scenario pretends it is."""
    before: Database | None = None
    after: Database | None = None
    expected: Database | None = None
    rules: ChangeRules | None = None
    """What has to, may and must not change on the way from before to after."""
    extras: dict[str, Json] = {}


class ExpectedToolCall(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A tool call that should have been made."""

    name: str
    arguments: Json = None
    call_id: str = ""
    extras: dict[str, Json] = {}


class Expected(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a good answer would be. None is "not stated"; no tool calls is `()`."""

    ground_truth: str | None = None
    format: str | None = None
    tool_calls: tuple[ExpectedToolCall, ...] | None = None
    extras: dict[str, Json] = {}


class LabelVerdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The user's own verdict on a conversation: a field of the record that was named as its label."""

    field: str
    value: Json
    passed: bool | None = None
    """None for a number without a mark, and for a text that says neither pass nor fail."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How it ended, as the log tells it. None and "" are "the log does not say"."""

    completed: bool | None = None
    """The task was done, by the agent's own account."""
    finished: bool | None = None
    """The conversation came to a natural end."""
    ended_reason: str = ""
    final_status: str = ""
    error: str = ""
    """The integration broke: such a conversation says nothing about the agent."""
    duration: float | None = None
    label: LabelVerdict | None = None
    """What the user's own field says, which counts before all of these."""
    extras: dict[str, Json] = {}


class Item(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One question and its answer inside the conversation, to be judged by itself."""

    id: str
    kind: str = ""
    asked: int | None = None
    """seq of the utterance that asks."""
    answered: int | None = None
    """seq of the utterance that answers."""
    events: tuple[int, ...] = ()
    """seqs of what happened for it beside that: tool calls and their results, retrievals, component metrics."""
    expected: Expected = Expected()
    outcome: Outcome | None = None
    """How this item ended, where the log distinguishes it from the conversation's end."""
    extras: dict[str, Json] = {}


class Track(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One audio file; `channels` says which participant each of its channels carries."""

    path: str = ""
    url: str = ""
    channels: tuple[str, ...] = ()
    format: str = ""
    sample_rate: int | None = None
    duration: float | None = None
    started: Time | None = None
    id: str = ""
    extras: dict[str, Json] = {}


class AudioFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The sound of the conversation."""

    tracks: tuple[Track, ...] = ()
    transcript: str = ""
    extras: dict[str, Json] = {}


class Source(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where the conversation was read from."""

    format: str = ""
    files: tuple[str, ...] = ()
    record: str = ""
    """Line, index or id inside the file."""
    folder: str = ""
    """Absolute path of the folder that holds the files, where a folder is one conversation."""


class Conversation(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    dict=True,
    tag_field="schema",
    tag="convoscope.conversation/1",
):
    """One conversation, as facts. Turns and other readings of it are derived, never stored."""

    id: str
    dimensions: dict[str, str] = {}
    source: Source = Source()
    pipeline: Pipeline | None = None
    participants: tuple[Participant, ...] = ()
    clocks: tuple[Clock, ...] = ()
    agent: Agent = Agent()
    flow: Flow | None = None
    """What the flow declares that it went through, where that was given; the name is the dimension `flow`."""
    scenario: Scenario | None = None
    expected: Expected = Expected()
    items: tuple[Item, ...] = ()
    timeline: tuple[AnyEvent, ...] = ()
    log: tuple[Logged, ...] = ()
    """The records that the timeline was joined from, source by source, where several logs were joined."""
    turn_rule: str = DEFAULT_TURN_RULE
    frames: tuple[Frame, ...] = ()
    annotations: tuple[Annotations, ...] = ()
    labels: tuple[Label, ...] = ()
    outcome: Outcome = Outcome()
    recording: AudioFile | None = None
    extras: dict[str, Json] = {}

    def __post_init__(self) -> None:
        if not self.id:
            raise ValueError("a conversation needs an id")
        participants, declared = self.participants, self.clocks
        speakers = {one.id for one in participants}
        if len(speakers) != len(participants):
            raise ValueError("two participants share an id")
        clocks = {one.id for one in declared} if declared else _NONE
        if len(clocks) != len(declared):
            raise ValueError("two clocks share an id")
        last = -1
        for event in self.timeline:
            seq, time = event.seq, event.time
            if seq <= last:
                raise ValueError(f"the timeline must ascend: seq {seq} follows {last}")
            last = seq
            if time is not None and time.clock not in clocks:
                raise ValueError(f"event {last} uses clock {time.clock!r}, which is not declared")
            if type(event) is Utterance and (event.speaker not in speakers or event.cut_off_by or event.segments):
                _check_utterance(event, speakers, clocks)
        if self.items or self.frames or self.annotations:
            self._check_references(last)

    def _check_references(self, last: int) -> None:
        """Whatever points at an event must find it."""
        timeline = self.timeline
        # They ascend from 0 at least: where the last is as large as their number allows, none is missing.
        seqs: Container[int | None] = range(last + 1)
        if len(timeline) != last + 1:
            seqs = {event.seq for event in timeline}
        for item in self.items:
            asked, answered = item.asked, item.answered
            if (asked is None or asked in seqs) and (answered is None or answered in seqs) and not item.events:
                continue
            for seq in (asked, answered, *item.events):
                if seq is not None and seq not in seqs:
                    raise ValueError(f"item {item.id!r} points at event {seq}, which is not in the timeline")
        if not self.frames and not self.annotations:
            return
        references: list[tuple[str, int | None]] = [("frame", frame.seq) for frame in self.frames]
        for annotated in self.annotations:
            for family in (annotated.topics, annotated.risks, annotated.actions, annotated.entities):
                references += [("annotation", seq) for finding in family or () for seq in finding.events]
            references += [("topic", seq) for topic in annotated.topics or () for seq in topic.span or ()]
        for who, seq in references:
            if seq is not None and seq not in seqs:
                raise ValueError(f"{who} points at event {seq}, which is not in the timeline")

    @remembered
    def roles(self) -> dict[str, str]:
        """Role by participant id."""
        return {one.id: one.role for one in self.participants}

    @remembered
    def contents(self) -> Contents:
        """What there is in the timeline, seen in one look."""
        return contents_of(self)

    @remembered
    def turns(self) -> tuple[Turn, ...]:
        """The conversation cut into turns by its `turn_rule`."""
        return derive_turns(self)

    @remembered
    def utterances(self) -> tuple[Utterance, ...]:
        """Everything that was said, in order."""
        return tuple([event for event in self.timeline if type(event) is Utterance])

    @remembered
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Every tool call of the agent, and of those who work for it, in order. A user may have tools, too."""
        calls = [event for event in self.timeline if type(event) is ToolCall]
        return tuple([call for call in calls if not call.caller or self.roles.get(call.caller) != USER])

    @remembered
    def tool_results(self) -> dict[int, ToolResult]:
        """The result of each tool call, by the call's seq.

        Matched by call id; where one side has none, a result belongs to the oldest open call of its
        name, or, nameless too, to the oldest open call.
        """
        results: dict[int, ToolResult] = {}
        waiting: list[ToolCall] = []
        for event in self.timeline:
            if type(event) is ToolCall:
                waiting.append(event)
            elif type(event) is ToolResult and waiting:
                index = _answered(event, waiting)
                if index >= 0:
                    results[waiting.pop(index).seq] = event
        return results

    @remembered
    def started(self) -> float:
        """When it began, in seconds of the common time: the earliest moment of any event; 0 without one."""
        moments = [self.common(event.time) for event in self.timeline if event.time is not None]
        moments += [start for utterance in self.utterances for start, _ in self.sounds(utterance)]
        return min(moments, default=0.0)

    def sounds(self, utterance: Utterance) -> list[tuple[float, float]]:
        """Start and end of each span of an utterance's sound, in seconds of the common time."""
        offset = self._offsets.get
        return [
            (part.start + offset(part.clock, 0.0), part.end + offset(part.clock, 0.0)) for part in utterance.segments
        ]

    def common(self, time: Time) -> float:
        """A moment in seconds of the common time; of a clock that relates to no other, in its own."""
        return time.at + self._offsets.get(time.clock, 0.0)

    @remembered
    def _offsets(self) -> dict[str, float]:
        return {clock.id: clock.offset for clock in self.clocks if clock.offset}

    @property
    def is_audio_native(self) -> bool:
        """The model hears the sound itself; what a recogniser wrote beside it was not used."""
        return self.pipeline in _AUDIO_NATIVE

    def text(self, utterance: Utterance) -> str:
        """The words that count: the agent's as intended, the user's as the agent received them."""
        if self.pipeline not in _AUDIO_NATIVE and self.roles[utterance.speaker] == USER:
            return utterance.received()
        return utterance.meant()

    def elapsed(self, earlier: Time, later: Time) -> float | None:
        """Seconds between two moments, to the microsecond; None where their clocks do not relate.

        A double holds seconds since 1970 no finer than that.
        """
        if earlier.clock == later.clock:
            return round(later.at - earlier.at, 6)
        offsets = {clock.id: clock.offset for clock in self.clocks}
        before, after = offsets.get(earlier.clock), offsets.get(later.clock)
        if before is None or after is None:
            return None
        return round((later.at + after) - (earlier.at + before), 6)


_NONE: frozenset[str] = frozenset()


def _check_utterance(utterance: Utterance, speakers: Collection[str], clocks: Collection[str]) -> None:
    if utterance.speaker not in speakers:
        raise ValueError(f"event {utterance.seq} is spoken by {utterance.speaker!r}, who is not a participant")
    if utterance.cut_off_by and utterance.cut_off_by not in speakers:
        raise ValueError(f"event {utterance.seq} is cut off by {utterance.cut_off_by!r}, who is not a participant")
    for segment in utterance.segments:
        if segment.clock not in clocks:
            raise ValueError(f"event {utterance.seq} uses clock {segment.clock!r}, which is not declared")


def _answered(result: ToolResult, waiting: list[ToolCall]) -> int:
    """The position of the call that a result belongs to; -1 for none."""
    id, name = result.call_id, result.name
    if id:
        for index, call in enumerate(waiting):
            if call.call_id == id:
                return index
    for index, call in enumerate(waiting):
        if not (id and call.call_id) and (not name or name == call.name):
            return index
    return -1
