"""What was said and done in a Retell call: the entries of its transcript become a timeline."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import (
    ASSISTANT,
    USER,
    Clock,
    Marker,
    Segment,
    Text,
    Time,
    ToolCall,
    ToolResult,
    Utterance,
)
from convoscope.ingest.call_exports import StateTrack, error_of, overlapping_utterances, set_tool_outcome, spoken_lines
from convoscope.ingest.record import JsonObject, as_number, as_object, as_text, filled
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder
from convoscope.views.tool_outcomes import tool_outcome

AUDIO = "audio"
CALL = "call"
CLOCKS = {
    AUDIO: Clock(id=AUDIO, kind="audio", source="words"),
    CALL: Clock(id=CALL, kind="relative", source="time_sec"),
}
PAUSE = 1.0
"""Seconds between two words from which on they are two stretches of sound."""
EXTRACTING = "extract_dynamic_variable"

_SPEAKERS = {"agent": ASSISTANT, "user": USER, "transfer_target": "transfer_target"}
_MARKERS = {"dtmf": USER, "sms": USER, "injected": ""}
"""Entries that are neither speech nor tools, and whose they are."""
_OF_AN_UTTERANCE = frozenset({"response_id", "interrupt_id", "is_backchannel", "backup_model_used"})
_OF_A_TOOL = frozenset({"type", "metadata", "thought_signature"})
_LINE = re.compile(r"^\s*(agent|user|transfer[ _]target)\s*:\s?", re.IGNORECASE)


class FlowNode(NamedTuple):
    """One end of a transition."""

    id: str
    name: str


def lines_of(transcript: str) -> Iterator[JsonObject]:
    """The entries of a transcript that is plain text, `Agent: …` and `User: …` by line."""
    for speaker, words in spoken_lines(transcript, _LINE):
        yield {"role": speaker.replace(" ", "_"), "content": words}


def is_speech(entry: Any) -> bool:
    """Whether somebody says something in it."""
    return isinstance(entry, dict) and as_text(entry.get("role")) in _SPEAKERS and bool(_words_of(entry))


class Transcript:
    """Reads the entries one after the other, and knows which node the call is in."""

    def __init__(self, notes: Notes, source: str, slots: JsonObject) -> None:
        self.notes = notes
        self.timeline = TimelineBuilder(notes)
        self.slots = slots
        """Variables that were collected and have no place on the timeline yet."""
        self.states = StateTrack(self.timeline)
        self._source = source
        self._calls: dict[str, ToolCall] = {}
        self._clocks: set[str] = set()
        self._ids: dict[str, list[str]] = {}
        self._names: dict[str, str] = {}

    @property
    def clocks(self) -> tuple[Clock, ...]:
        return tuple(clock for id, clock in CLOCKS.items() if id in self._clocks)

    def read(self, entries: Sequence[Any], start: str = "") -> None:
        """Put all entries on the timeline; `start` is the node of a call that was never in another."""
        moves = [move for move in entries if isinstance(move, dict) and move.get("role") == "node_transition"]
        for move in moves:
            for side in ("former", "new"):
                self._know(_node(move, side))
        first = self._name(_node(moves[0], "former")) if moves else start
        if first:
            extras = {"node_id": _node(moves[0], "former").id} if moves else {}
            self.states.enter(first, None, extras)
        for entry in entries:
            self._read(entry)
        self._tell_cut_offs()

    def aside(self, name: str, entries: Any) -> None:
        """Entries of before or after the call. The platform made them, so they are no acts of the agent."""
        for entry in entries if isinstance(entries, list) else [entries] if entries else ():
            self.timeline.mark(name, entry)

    def _read(self, entry: Any) -> None:
        if not isinstance(entry, dict):
            self.notes.ignored("not_an_entry", repr(entry)[:80], self.timeline.seq)
            self.timeline.mark("not_an_entry", entry)
            return
        facts = dict(entry)
        role = as_text(facts.pop("role", ""))
        if role in _SPEAKERS or role == "unknown":
            self._say(role, facts)
        elif role == "tool_call_invocation":
            self._call(facts)
        elif role == "tool_call_result":
            self._result(facts)
        elif role == "node_transition":
            self._move(facts)
        else:
            if role not in _MARKERS:
                self.notes.unknown(f"role={role or '(none)'}", self.timeline.seq)
            self._mark(role, facts)

    # Speech

    def _say(self, role: str, facts: JsonObject) -> None:
        words = facts.get("words")
        spoken_words = _words_of(facts)
        content = facts.get("content")
        if spoken_words and content in (None, ""):
            self.notes.repaired("text_from_words", spoken_words[:80], self.timeline.seq)
        if isinstance(content, str | int | float) or content is None:
            facts.pop("content", None)
        stretches = self._stretches(facts.pop("words") if isinstance(words, list) else None)
        time = self._time(facts)
        metadata = facts.pop("metadata") if isinstance(facts.get("metadata"), dict) else {}
        backchannel = metadata.get("is_backchannel") is True
        if not spoken_words and not stretches:
            self.notes.ignored("empty_utterance", role, self.timeline.seq)
            return
        speaker = self.timeline.participant(_SPEAKERS.get(role, role))
        text = Text(spoken_words, f"{self._source}.content") if spoken_words else None
        # A transcript holds what the recogniser made of a caller, and what was really played of the agent.
        spoken = text if role == "agent" else None
        beside = {name: value for name, value in metadata.items() if not (name == "is_backchannel" and backchannel)}
        extras = self.timeline.unknown("utterance", filled({**facts, **beside}), _OF_AN_UTTERANCE)
        self.timeline.events.append(
            Utterance(
                seq=self.timeline.seq,
                time=Time(stretches[0].start, AUDIO, stretches[-1].end) if stretches else time,
                speaker=speaker,
                spoken=spoken,
                heard=None if spoken else text,
                segments=stretches,
                manner="backchannel" if backchannel else "",
                extras=extras,
            )
        )

    def _stretches(self, words: Any) -> tuple[Segment, ...]:
        """The words' times, brought together where there is no pause between."""
        times: list[tuple[float, float]] = []
        for word in words if isinstance(words, list) else ():
            start, end = (as_number(word.get(name)) if isinstance(word, dict) else None for name in ("start", "end"))
            if start is not None and end is not None and 0 <= start <= end:
                times.append((start, end))
            elif not isinstance(word, dict) or not (word.get("start") is None and word.get("end") is None):
                self.notes.set_aside("word_times", repr(word)[:80], self.timeline.seq)
        stretches: list[Segment] = []
        for start, end in sorted(times):
            if stretches and start - stretches[-1].end < PAUSE:
                stretches[-1] = Segment(stretches[-1].start, max(stretches[-1].end, end), AUDIO)
            else:
                stretches.append(Segment(start, end, AUDIO))
        if stretches:
            self._clocks.add(AUDIO)
        return tuple(stretches)

    def _tell_cut_offs(self) -> None:
        """An `interrupt_id` says that somebody cut in; the times say who spoke into whose words."""
        for place, first, second in list(overlapping_utterances(self.timeline.events)):
            marked = any(one.extras.get("interrupt_id") is not None for one in (first, second))
            if marked and not second.manner:
                self.notes.inferred("cut_off_by_times", f"interrupt_id of {first.speaker}", first.seq)
                self.timeline.events[place] = msgspec.structs.replace(first, cut_off_by=second.speaker)

    # Tools

    def _call(self, facts: JsonObject) -> None:
        name, call_id = as_text(facts.pop("name", "")), as_text(facts.pop("tool_call_id", ""))
        time = self._time(facts)
        arguments = facts.pop("arguments", None)
        extras = self.timeline.unknown("tool_call", filled(facts), _OF_A_TOOL)
        self.timeline.call(name, arguments, call_id=call_id, time=time, extras=extras)
        event = self.timeline.events[-1]
        if isinstance(event, ToolCall):
            self._calls[call_id] = event

    def _result(self, facts: JsonObject) -> None:
        call_id = as_text(facts.pop("tool_call_id", ""))
        call = self._calls.get(call_id)
        time = self._time(facts)
        worked = facts.pop("successful") if isinstance(facts.get("successful"), bool) else None
        content = facts.pop("content", None)
        extras = self.timeline.unknown("tool_result", filled(facts), _OF_A_TOOL)
        name = call.name if call else ""
        self.timeline.result(content, call_id=call_id, name=name, time=time, extras=extras)
        if worked is not None:
            set_tool_outcome(self.timeline, worked=worked, error=error_of(self.timeline) or str(content)[:500])
        result = self.timeline.events[-1]
        if isinstance(result, ToolResult) and not tool_outcome(result).failed:
            self._fill(result, call)

    def _fill(self, result: ToolResult, call: ToolCall | None) -> None:
        """Variables that a tool brought. One that extracts them names them; another one gives their very value."""
        given = as_object(result.result)
        extracts = call is not None and call.extras.get("type") == EXTRACTING
        arguments = call.arguments if call is not None and extracts and isinstance(call.arguments, dict) else {}
        for slot in list(self.slots):
            brought = given.get(slot) if given.get(slot) is not None else arguments.get(slot)
            if brought is not None and (extracts or _same(brought, self.slots[slot])):
                if not extracts:
                    self.notes.inferred("slot_from_tool_result", f"{slot} from {result.name}", self.timeline.seq)
                self.states.fill(slot, self.slots.pop(slot), result.time)

    # Nodes

    def _move(self, facts: JsonObject) -> None:
        former, new = self._name(_node(facts, "former")), self._name(_node(facts, "new"))
        time = self._time(facts)
        if not new:
            self.notes.set_aside("transition_without_node", repr(facts)[:80], self.timeline.seq)
            self.timeline.mark("node_transition", facts, time)
            return
        here = self.states.current
        if former and here and former != here:
            self.notes.inferred("transition_not_logged", f"{here} → {former}", self.timeline.seq)
            self.states.leave(former, time)
        if former and former != here:
            self.states.enter(former, time, {"node_id": _node(facts, "former").id})
        reason = as_text(facts.get("transition_type"))
        read_fields = {"transition_type"} | {
            f"{side}_node_{part}" for side in ("former", "new") for part in ("id", "name")
        }
        unread = {name: value for name, value in facts.items() if name not in read_fields}
        extras = {"node_id": _node(facts, "new").id, "transition_type": reason}
        self.states.leave(new, time, reason)
        unread = self.timeline.unknown("node_transition", filled(unread), frozenset())
        self.states.enter(new, time, {**extras, **unread})

    def _know(self, node: FlowNode) -> None:
        if node.id:
            self._names.setdefault(node.id, node.name)
            self._names[node.id] = self._names[node.id] or node.name
            ids = self._ids.setdefault(node.name, [])
            if node.id not in ids:
                ids.append(node.id)

    def _name(self, node: FlowNode) -> str:
        name = node.name or self._names.get(node.id, "")
        if not name:
            return node.id
        return f"{name} ({node.id})" if node.id and len(self._ids.get(name, ())) > 1 else name

    # Anything else

    def _mark(self, role: str, facts: JsonObject) -> None:
        owner = _MARKERS.get(role, "")
        time = self._time(facts)
        self.timeline.events.append(
            Marker(
                seq=self.timeline.seq,
                name=role or "not_an_entry",
                participant=self.timeline.participant(owner) if owner else "",
                value=facts.get("digit") if role == "dtmf" and set(facts) == {"digit"} else filled(facts),
                time=time,
            )
        )

    def _time(self, facts: JsonObject) -> Time | None:
        """When it happened, in seconds from the start of the call, where the entry says so."""
        at = as_number(facts.get("time_sec"))
        if at is None:
            return None
        del facts["time_sec"]
        self._clocks.add(CALL)
        return Time(at, CALL)


def _words_of(entry: JsonObject) -> str:
    """The text of an entry, else its words."""
    content = entry.get("content")
    if as_text(content).strip():
        return as_text(content)
    words = entry.get("words")
    texts = [as_text(word.get("word")) for word in words if isinstance(word, dict)] if isinstance(words, list) else []
    return " ".join(word.strip() for word in texts if word.strip())


def _node(facts: JsonObject, side: str) -> FlowNode:
    return FlowNode(as_text(facts.get(f"{side}_node_id")), as_text(facts.get(f"{side}_node_name")))


def _same(first: Any, second: Any) -> bool:
    """Variables are kept as text, whatever they were."""
    return str(first).strip().casefold() == str(second).strip().casefold()
