"""What happened in a LiveKit session: the items of its chat history, and the events around them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from convoscope.conversation import (
    ASSISTANT,
    SYSTEM,
    USER,
    Marker,
    Segment,
    Text,
    Time,
    Utterance,
)
from convoscope.conversation.events import moment
from convoscope.ingest.call_exports import SpokenStretch, StateTrack, error_of, set_tool_outcome
from convoscope.ingest.record import (
    JsonObject,
    as_list,
    as_number,
    as_object,
    as_text,
    filled,
    in_order,
    take_content,
    take_text,
    wall,
)
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder
from convoscope.views.standard_data.payloads.metrics_collected import COMPONENT_FIELDS, METADATA, SPEAKING

ITEMS = frozenset({"message", "function_call", "function_call_output", "agent_handoff", "agent_config_update"})

_ROLES = {"user": USER, "assistant": ASSISTANT, "system": SYSTEM, "developer": SYSTEM}
_ALIASES = {"args": "arguments"}
_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_MARKUP = re.compile(r"</?expr\b[^<>]*>")

_RATES = frozenset({"llm_node_tps"})
_FIELDS = {name: (type.removesuffix("_metrics"), field) for name, (type, field) in COMPONENT_FIELDS.items()}
"""The name in a message's metrics, and what the latency metrics read: part of the stack, name."""
_METRICS = {name: told for name, told in _FIELDS.items() if name not in _RATES} | {
    "e2e_latency": ("turn", "e2e_latency")
}
"""Those that are times."""
_ZERO_IS_NONE = frozenset({"end_of_turn_delay"})
_MODELS = {name: type.removesuffix("_metrics") for name, type in METADATA.items()} | {"stt_metadata": "stt"}
_LONGEST = 60.0
"""Where the clock counts milliseconds, a wait of more than a minute is taken to be in milliseconds too."""

_SPEAKING = {"user_state_changed": USER, "agent_state_changed": ASSISTANT}
_REPEATED = frozenset(
    {"conversation_item_added", "function_tools_executed", "speech_created", "session_usage_updated"}
    | {"tool_execution_updated", "metrics_collected", "debug_message"}
)
"""Events that tell what the items tell, or how the session worked inside."""
_MARKED = frozenset(
    {"error", "close", "agent_false_interruption", "overlapping_speech", "eot_prediction", "user_turn_exceeded"}
    | {"user_transcription_timeout", "agent_backchannel_opportunity", "user_input_transcribed", "user_state_changed"}
)
_USUAL_IN_ITEM = frozenset({"content", "created_at", "extra", "group_id", "reply_required", "metrics", "hash"})


class History:
    """Puts items and events in one order and writes them on a timeline."""

    def __init__(self, timeline: TimelineBuilder, items: Sequence[Any], events: Sequence[Any]) -> None:
        self.timeline, self.notes = timeline, timeline.notes
        self.events = [snake_case(one, self.notes) for one in events if isinstance(one, dict)]
        self.items = self._all_items(items)
        self.states = StateTrack(timeline)
        self.models: dict[str, str] = {}
        self.instructions = ""
        self.tools: dict[str, None] | None = None
        self.close_reason, self.close_error = "", ""
        self.per_second = 1.0

    def _all_items(self, listed: Sequence[Any]) -> list[JsonObject]:
        """The history, and what only the events tell where the history is not there or was cut."""
        items: list[JsonObject] = []
        for entry in listed:
            if isinstance(entry, dict):
                items.append(snake_case(entry, self.notes))
            else:
                self.notes.set_aside("item_not_an_object", repr(entry)[:80])
        seen = {as_text(item.get("id")) for item in items} | {_call_key(item) for item in items}
        added = 0
        for item in _items_of_events(self.events):
            keys = {as_text(item.get("id")), _call_key(item)} - {""}
            if keys and not keys & seen:
                seen |= keys
                items.append(item)
                added += 1
        if added:
            self.notes.inferred("item_from_an_event", f"{added} times")
            items = [items[place] for place in in_order([_at(item.get("created_at")) for item in items])]
        return items

    def write(self) -> None:
        messages = [item for item in self.items if item.get("type") == "message"]
        self.per_second = self._unit_of_durations(messages)
        sounds, spare = self._sounds(messages)
        speech = _speech_ids(self.items)
        user_words = " ".join(
            as_text(take_content(dict(item), Notes(), 0).text) for item in messages if _is_of(item, USER)
        )
        first = next((item for item in self.items if item.get("type") == "agent_handoff"), None)
        if first is not None and as_text(first.get("old_agent_id")):
            self.states.enter(as_text(first["old_agent_id"]), self._time(self.items[0].get("created_at")))
        # The list says in which order the items came; events stand between them by their times.
        times = accumulate((_key(item, -math.inf) for item in self.items), max)
        steps: list[tuple[float, Callable[[], None]]] = [
            (at, partial(self._item, item, sounds.get(id(item), ()), speech[place]))
            for place, (at, item) in enumerate(zip(times, self.items, strict=True))
        ]
        steps += [
            (_at(event.get("created_at")) or math.inf, partial(self._event, event, user_words)) for event in self.events
        ]
        steps += [(one.start, partial(self._unheard, one)) for one in spare]
        for _, tell in sorted(steps, key=lambda step: step[0]):
            tell()
        called = {as_text(item.get("name")) for item in self.items if item.get("type") == "function_call"}
        if self.tools is not None and not called <= self.tools.keys():
            # Only some of the agents said what they were given: that is no list of all tools.
            self.notes.ignored("incomplete_list_of_tools", ", ".join(sorted(called - self.tools.keys()))[:80])
            self.tools = None

    def _unit_of_durations(self, messages: Sequence[JsonObject]) -> float:
        """JavaScript counts milliseconds; what it says of a message is told by the size of the numbers."""
        clocks = [found for item in messages if (found := as_number(item.get("created_at"))) is not None]
        waits = [
            abs(seconds)
            for item in messages
            for name in _METRICS
            if (seconds := as_number(as_object(item.get("metrics")).get(name))) is not None
        ]
        if any(at >= 1e11 for at in clocks) and any(wait > _LONGEST for wait in waits):
            self.notes.inferred("metrics_in_milliseconds", f"up to {max(waits):g}")
            return 1000.0
        return 1.0

    def _sounds(self, messages: Sequence[JsonObject]) -> tuple[dict[int, list[SpokenStretch]], list[SpokenStretch]]:
        """The stretches of sound of each message, and those that belong to none.

        A message tells its own. Where it does not, the changes of state do: an agent's message is made
        when it begins to be said, a user's when all was heard.
        """
        sounds: dict[int, list[SpokenStretch]] = {}
        for item in messages:
            if (own := self._own_stretch(item)) is not None:
                sounds[id(item)] = [own]
        spare: list[SpokenStretch] = []
        for stretch in self._stretches():
            if any(_overlaps(stretch, one) for told in sounds.values() for one in told):
                continue
            owner = _owner(stretch, [item for item in messages if _is_of(item, stretch.role)])
            if owner is None or _tells(owner):
                spare.append(stretch)
            else:
                sounds.setdefault(id(owner), []).append(stretch)
        return sounds, spare

    def _own_stretch(self, item: JsonObject) -> SpokenStretch | None:
        metrics = as_object(item.get("metrics"))
        start, end = (wall(metrics.get(name)) for name in SPEAKING)
        if start is None or end is None:
            return None
        if end < start:
            self.notes.set_aside("stopped_before_started", f"{as_text(item.get('id'))}: {start} to {end}"[:80])
            return None
        return SpokenStretch(_ROLES.get(as_text(item.get("role")), ""), start, end)

    def _stretches(self) -> Iterator[SpokenStretch]:
        since: dict[str, float] = {}
        for event in self.events:
            role, at = _SPEAKING.get(as_text(event.get("type"))), wall(event.get("created_at"))
            if role is None or at is None:
                continue
            if event.get("new_state") == "speaking":
                since.setdefault(role, at)
            elif role in since:
                start = since.pop(role)
                if at > start:
                    yield SpokenStretch(role, start, at)

    def _item(self, item: JsonObject, sounds: Sequence[SpokenStretch], speech: str) -> None:
        facts = dict(item)
        kind = as_text(facts.pop("type", None)) or ("message" if "role" in facts else "")
        time = self._time(facts.get("created_at"))
        if time is not None and not sounds:
            del facts["created_at"]
        match kind:
            case "message":
                self._message(facts, time, sounds, speech)
            case "function_call":
                id, call_id, name = take_text(facts, "id"), take_text(facts, "call_id"), take_text(facts, "name")
                arguments = facts.pop("arguments", None)
                extras = self.timeline.unknown("item", filled(facts), _USUAL_IN_ITEM)
                self.timeline.call(name, arguments, call_id=call_id or id, time=time, id=id, extras=extras)
            case "function_call_output":
                self._output(facts, time)
            case "agent_handoff":
                self._hand_over(facts, time)
            case _:
                if kind == "agent_config_update":
                    self._configure(facts)
                else:
                    self.notes.unknown(f"item.type={kind}", self.timeline.seq)
                id = take_text(facts, "id")
                self.timeline.mark(kind or "item", filled(facts), time, id)

    def _message(self, facts: JsonObject, time: Time | None, sounds: Sequence[SpokenStretch], speech: str) -> None:
        timeline = self.timeline
        role_name = as_text(facts.pop("role", None))
        role, id = _ROLES.get(role_name, role_name or ASSISTANT), take_text(facts, "id")
        content = take_content(facts, self.notes, timeline.seq)
        metrics = facts.pop("metrics", None)
        cut = facts.pop("interrupted", None) is True
        confidence = as_number(facts.pop("transcript_confidence", None))
        extras = filled({**facts, "content": content.parts})
        timeline.unknown("item", extras, _USUAL_IN_ITEM)
        if role == SYSTEM and not self.instructions:
            self.instructions = content.text
            if extras:
                timeline.mark("instructions", extras, time, id)
            return
        if as_object(facts.get("extra")).get("is_summary") is True:
            timeline.mark("chat_history_summary", content.text, time, id)
            return
        plain = _MARKUP.sub("", content.text) if role == ASSISTANT else content.text
        plain = " ".join(plain.split()) if plain != content.text else plain
        if cut and plain != content.text:
            extras["content"] = content.text
        text = Text(content.text, "content", confidence=confidence) if content.text else None
        segments = tuple(Segment(one.start, one.end, "wall") for one in sounds)
        start = Time(segments[0].start, "wall", segments[-1].end) if segments else time
        timeline.events.append(
            Utterance(
                seq=timeline.seq,
                time=start,
                id=id,
                speaker=timeline.participant(role),
                # What was cut off is what was played; the words that were meant are not told.
                intended=None if role == USER or cut else text,
                spoken=Text(plain, "content") if role == ASSISTANT and text else None,
                heard=text if role == USER else None,
                segments=segments,
                cut_off_by=timeline.participant(USER if role == ASSISTANT else ASSISTANT) if cut else "",
                extras=extras,
            )
        )
        if segments:
            self._declare_wall(segments[0].start)
        self._measure(metrics, start, speech)

    def _measure(self, metrics: Any, time: Time | None, speech: str) -> None:
        parts: dict[str, JsonObject] = {}
        left: JsonObject = {}
        for name, value in as_object(metrics).items():
            number = as_number(value)
            if name in _RATES and number is not None:
                part, called = _FIELDS[name]
                parts.setdefault(part, {})[called] = number
            elif name in _METRICS and number is not None:
                part, called = _METRICS[name]
                if number < 0 or (number == 0 and name in _ZERO_IS_NONE):
                    self.notes.ignored(f"{name}_says_none", f"{number:g}", self.timeline.seq)
                    left[name] = value
                else:
                    parts.setdefault(part, {})[called] = number / self.per_second
            elif name in _MODELS and isinstance(value, dict):
                self._model(_MODELS[name], value, parts)
            elif name not in SPEAKING and value is not None:
                left[name] = value
        if left and not parts:
            parts["turn"] = {}
        for place, (component, values) in enumerate(parts.items()):
            self.states.measure(component, values, speech, time, extras=left if place == 0 else {})

    def _model(self, part: str, metadata: JsonObject, parts: dict[str, JsonObject]) -> None:
        model = as_text(metadata.get("model_name"))
        if model:
            self.models.setdefault(part, model)
            parts.setdefault(part, {})["model"] = model
        if as_text(metadata.get("model_provider")):
            parts.setdefault(part, {})["provider"] = metadata["model_provider"]

    def _output(self, facts: JsonObject, time: Time | None) -> None:
        id, call_id, name = take_text(facts, "id"), take_text(facts, "call_id"), take_text(facts, "name")
        content, failed = facts.pop("output", None), facts.pop("is_error", None)
        extras = self.timeline.unknown("item", filled(facts), _USUAL_IN_ITEM)
        self.timeline.result(content, call_id=call_id or id, name=name, time=time, id=id, extras=extras)
        if isinstance(failed, bool):
            error = (error_of(self.timeline) or as_text(content) or "error")[:500]
            set_tool_outcome(self.timeline, worked=not failed, error=error)

    def _hand_over(self, facts: JsonObject, time: Time | None) -> None:
        old, new = take_text(facts, "old_agent_id"), take_text(facts, "new_agent_id")
        if not new:
            self.notes.set_aside("handoff_to_nobody", repr(facts)[:80], self.timeline.seq)
            self.timeline.mark("agent_handoff", filled({**facts, "old_agent_id": old}), time)
            return
        here = self.states.current
        if here and old and old != here:
            self.notes.repaired("handoff_from_another_agent", f"{old}, but {here} spoke", self.timeline.seq)
        id = take_text(facts, "id")
        self.states.move(new, time, extras=facts, id=id)

    def _configure(self, facts: JsonObject) -> None:
        added, removed = facts.get("tools_added"), facts.get("tools_removed")
        if isinstance(added, list):
            self.tools = {**(self.tools or {}), **{as_text(one): None for one in added if as_text(one)}}
        if isinstance(removed, list) and self.tools is None:
            self.tools = {as_text(one): None for one in removed if as_text(one)}
        if not self.instructions:
            self.instructions = as_text(facts.get("instructions"))

    def _event(self, event: JsonObject, user_words: str) -> None:
        facts = dict(event)
        kind = as_text(facts.pop("type", None))
        if kind in _REPEATED or (kind in _SPEAKING and facts.get("new_state") != "away"):
            self.notes.ignored(f"event.{kind}")
            return
        words = as_text(facts.get("transcript"))
        if kind == "user_input_transcribed" and (facts.get("is_final") is not True or words.strip() in user_words):
            self.notes.ignored("event.user_input_transcribed")
            return
        if kind not in _MARKED:
            self.notes.unknown(f"event.type={kind}", self.timeline.seq)
        if kind == "close":
            self.close_reason = as_text(facts.get("reason"))
            error = as_object(facts.get("error"))
            details = [as_text(error.get(name)) for name in ("type", "label", "message")]
            self.close_error = ": ".join(filter(None, details)) or as_text(facts.get("error"))
        time = self._time(facts.get("created_at"))
        if time is not None:
            del facts["created_at"]
        name = "user_away" if kind in _SPEAKING else kind or "event"
        self.timeline.mark(name, filled(facts) or None, time)

    def _unheard(self, span: SpokenStretch) -> None:
        """Somebody spoke, and no words came of it."""
        self._declare_wall(span.start)
        who = self.timeline.participant(span.role)
        time = Time(span.start, "wall", span.end)
        name = "user_speaking" if span.role == USER else "agent_speaking"
        self.timeline.events.append(Marker(seq=self.timeline.seq, time=time, name=name, participant=who))

    def _time(self, value: Any) -> Time | None:
        return self.timeline.time(value)

    def _declare_wall(self, at: float) -> None:
        if not any(clock.id == "wall" for clock in self.timeline.clocks):
            self.timeline.time(at)


def snake_case(facts: JsonObject, notes: Notes, depth: int = 0) -> JsonObject:
    """The names as Python writes them; JavaScript writes camelCase. What a user put in stays as it is."""
    renamed_facts: JsonObject = {}
    renamed = False
    for name, value in facts.items():
        plain = _CAMEL.sub(lambda hit: "_" + hit[1].lower(), name)
        plain = _ALIASES.get(plain, plain)
        renamed = renamed or plain != name
        nested = plain in ("metrics", "item", "error", "llm_metadata", "tts_metadata", "stt_metadata")
        inner = snake_case(value, notes, depth + 1) if nested and isinstance(value, dict) and depth < 4 else value
        renamed_facts.setdefault(plain, inner)
    if renamed and not any(note.code == "names_in_camel_case" for note in notes.taken):
        notes.inferred("names_in_camel_case", "written by the JavaScript SDK")
    return renamed_facts


def _items_of_events(events: Sequence[JsonObject]) -> Iterator[JsonObject]:
    for event in events:
        kind = as_text(event.get("type"))
        if kind == "conversation_item_added" and isinstance(event.get("item"), dict):
            yield event["item"]
        elif kind == "function_tools_executed":
            for name, type in (("function_calls", "function_call"), ("function_call_outputs", "function_call_output")):
                for item in as_list(event.get(name)):
                    if isinstance(item, dict):
                        yield {"type": type, **snake_case(item, Notes())}


def _call_key(item: JsonObject) -> str:
    call = as_text(item.get("call_id"))
    return f"{as_text(item.get('type'))} {call}" if call else ""


def _speech_ids(items: Sequence[JsonObject]) -> list[str]:
    """The speech that each item is a part of: an agent's message, and what the user said before it."""
    ids: list[str] = []
    following = ""
    for place in range(len(items) - 1, -1, -1):
        item = items[place]
        own = as_text(item.get("id")) or f"item-{place}"
        if _is_of(item, ASSISTANT):
            following = own
        ids.append(following or own)
        if _is_of(item, USER):
            following = ""
    return ids[::-1]


def _owner(stretch: SpokenStretch, messages: Sequence[JsonObject]) -> JsonObject | None:
    timed = [(at, item) for item in messages if (at := wall(item.get("created_at"))) is not None]
    if stretch.role == ASSISTANT:
        return next((item for at, item in reversed(timed) if at <= stretch.end), None)
    return next((item for at, item in timed if at >= stretch.start), None)


def _tells(item: JsonObject) -> bool:
    """Whether a message says itself when it was spoken."""
    return bool(as_object(item.get("metrics")).keys() & set(SPEAKING))


def _overlaps(first: SpokenStretch, second: SpokenStretch) -> bool:
    return first.role == second.role and first.start < second.end and second.start < first.end


def _is_of(item: JsonObject, role: str) -> bool:
    return item.get("type") == "message" and _ROLES.get(as_text(item.get("role"))) == role


def _key(facts: JsonObject, untimed: float) -> float:
    at = _at(facts.get("created_at"))
    return untimed if at is None else at


def _at(value: Any) -> float | None:
    read = moment(value)
    return None if read is None else read.at
