"""MultiWOZ dialogues, versions 2.1 and 2.2; acts are read in the slot names of version 2.2.

A dialogue of 2.1 is a goal and a log in which user and system take turns. The state of a user's turn is in the
`metadata` of the system's answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from convoscope.conversation import (
    ASSISTANT,
    USER,
    Act,
    Conversation,
    Frame,
    Scenario,
    SlotSpan,
    SlotValue,
    Source,
    Text,
)
from convoscope.errors import InputError
from convoscope.ingest.formats.multiwoz_layouts import DialogueLayout, in_version_22, is_other_layout, rows_of
from convoscope.ingest.formats.sgd import conversation as conversation_22
from convoscope.ingest.formats.sgd import is_dialogue
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.record import Fields, JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder

_NAMES = {
    "addr": "address",
    "arrive": "arriveby",
    "car": "type",
    "day": "bookday",
    "depart": "departure",
    "dest": "destination",
    "fee": "entrancefee",
    "id": "trainid",
    "leave": "leaveat",
    "open": "openhours",
    "people": "bookpeople",
    "post": "postcode",
    "price": "pricerange",
    "stay": "bookstay",
    "ticket": "price",
    "time": "booktime",
}
_NAMES_OF_DOMAINS = {
    "train": {"day": "day", "time": "duration", "price": "price"},
    "bus": {"day": "day"},
    "attraction": {"price": "entrancefee"},
}
_REQUESTED = "?"
_NOTHING = "none"


_Annotation = TypeVar("_Annotation")


class Annotated(NamedTuple, Generic[_Annotation]):
    """The acts or the spans of an utterance; `is_whole` where everything that was written could be read."""

    values: tuple[_Annotation, ...] = ()
    is_whole: bool = True


def slot_name(domain: str, name: str) -> str:
    """The name of a slot in version 2.2, which is also that of the state."""
    lower = name.lower()
    return _NAMES_OF_DOMAINS.get(domain, {}).get(lower) or _NAMES.get(lower, lower)


def domain_of(act: str) -> str:
    """The domain that an act names: `Hotel-Inform` is of the hotel."""
    return act.partition("-")[0].lower()


def read_acts(value: dict[str, Any]) -> Annotated[Act]:
    """`{"Hotel-Inform": [["Area", "north"]]}`; `?` asks for a value, and a slot `none` is no slot."""
    acts: list[Act] = []
    is_whole = True
    for type, listed in value.items():
        pairs = [
            pair
            for pair in as_list(listed)
            if isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)
        ]
        is_whole &= isinstance(listed, list) and len(pairs) == len(listed)
        slots = (
            SlotValue(slot_name(domain_of(type), name), None if value == _REQUESTED else value)
            for name, value in pairs
            if name.lower() != _NOTHING
        )
        acts.append(Act(type, tuple(slots)))
    return Annotated(tuple(acts), is_whole)


def read_spans(value: list[Any], text: str, *, in_words: bool) -> Annotated[SlotSpan]:
    """`["Hotel-Inform", "Area", "north", 3, 3]`: words of the text in 2.1, both included; characters in 2.2."""
    words = [match.span() for match in re.finditer(r"\S+", text)] if in_words else []
    whole = [one for one in value if isinstance(one, list) and len(one) >= 3 and all(map(as_text, one[:3]))]
    return Annotated(tuple(_span(one, text, words) for one in whole), len(whole) == len(value))


def _span(value: list[Any], text: str, words: list[tuple[int, int]]) -> SlotSpan:
    """The value with its position, if the text has it there."""
    act, name, text_of_value = (as_text(one) for one in value[:3])
    position = _position(value[3:], words)
    if position is None or text[slice(*position)].casefold() != text_of_value.casefold():
        position = None
    start, end = position or (None, None)
    return SlotSpan(act=act, slot=slot_name(domain_of(act), name), value=text_of_value, start=start, end=end)


def _position(numbers: list[Any], words: list[tuple[int, int]]) -> tuple[int, int] | None:
    if len(numbers) != 2 or not all(type(one) is int and one >= 0 for one in numbers):
        return None
    first, last = numbers
    if not words:
        return first, last
    return (words[first][0], words[last][1]) if first <= last < len(words) else None


DOMAINS = ("restaurant", "hotel", "attraction", "train", "taxi", "hospital", "police", "bus")
_BOOKABLE = frozenset({"restaurant", "hotel", "train"})
_INTENTS = {"taxi": "book_taxi", "police": "police"}
_UNSET = frozenset({"", "not mentioned"})
_DERIVED = ("intents", "requested")
_USUAL = frozenset({"turn_id", "entry", "text", "metadata", "dialog_act", "span_info"})


class DomainState(NamedTuple):
    """What a domain's metadata say: the slots, those that are for a booking, and what was booked."""

    slots: dict[str, tuple[str, ...]]
    for_booking: dict[str, str]
    booked: tuple[dict[str, str], ...]


class LogEntry(NamedTuple):
    """The annotations of an entry of a log. None is "not annotated"."""

    acts: tuple[Act, ...] | None
    state: dict[str, DomainState] | None


def _conversation_21(id: str, dialogue: Any, group: RecordGroup, notes: Notes) -> Conversation:
    if not isinstance(dialogue, dict):
        raise InputError(f"dialogue {id} is not an object", field=id, hint='expected {"goal": …, "log": […]}')
    fields = Fields(dialogue, "dialogue", notes)
    log = fields.take("log", kind=list)
    if log is None:
        raise InputError(f"dialogue {id} has no log", field=f"{id}.log", hint='expected {"goal": …, "log": [{"text"')
    goal = fields.pop("goal", None)
    timeline = TimelineBuilder(notes)
    frames: list[Frame] = []
    entries = [_entry(index, value, timeline, frames) for index, value in enumerate(log)]
    services = _services(goal, entries)
    frames += _states(entries, services)
    notes.inferred("intents_derived")
    notes.inferred("requested_slots_derived")
    return Conversation(
        id=id,
        dimensions={"domain": "+".join(services)} if services else {},
        source=Source(format="multiwoz", files=group.file_names, record=id),
        participants=timeline.participants,
        scenario=_scenario(goal, notes),
        timeline=tuple(timeline.events),
        frames=tuple(sorted(frames, key=lambda frame: frame.seq)),
        extras={**({"services": list(services)} if services else {}), **fields.rest()},
    )


def _entry(index: int, value: Any, timeline: TimelineBuilder, frames: list[Frame]) -> LogEntry:
    """The utterance of an entry; its acts and spans go to the frames."""
    notes, seq = timeline.notes, timeline.seq
    fields = Fields(value if isinstance(value, dict) else {"entry": value}, "log", notes, _USUAL)
    if "entry" in fields and not isinstance(value, dict):
        notes.set_aside("entry_unreadable", f"log[{index}]", seq)
    text = fields.take("text", kind=str)
    if text is None:
        notes.set_aside("text_missing", f"log[{index}].text", seq)
    # Without any act the turn is not annotated: every turn of a person does something.
    acts = _take_whole(fields, "dialog_act", dict, read_acts, "acts_unreadable", seq) or None
    read = partial(read_spans, text=text or "", in_words=True)
    spans = _take_whole(fields, "span_info", list, read, "spans_unreadable", seq)
    state = _take_state(fields, seq)
    speaker = timeline.participant(USER if index % 2 == 0 else ASSISTANT)
    timeline.say(speaker, intended=Text(text or ""), id=str(index), extras=fields.rest())
    if acts is not None or spans:
        frames.append(Frame(seq=seq, origin="gold", acts=acts, spans=spans))
    return LogEntry(acts, state)


def _take_whole(
    fields: Fields, name: str, kind: type, read: Callable[[Any], Annotated[_Annotation]], code: str, seq: int
) -> tuple[_Annotation, ...]:
    """The acts or spans of a field, which is taken where all of it can be read."""
    value = fields.get(name)
    annotated: Annotated[_Annotation] = read(value) if isinstance(value, kind) else Annotated((), is_whole=False)
    if annotated.is_whole:
        del fields[name]
    elif value is not None and (name, value) != ("dialog_act", "No Annotation"):
        fields.notes.set_aside(code, name, seq)
    return annotated.values


def _take_state(fields: Fields, seq: int) -> dict[str, DomainState] | None:
    """The state by domain; metadata that cannot be read whole are kept as they are."""
    value = fields.get("metadata")
    if not isinstance(value, dict):
        if value is not None:
            fields.notes.set_aside("state_unreadable", "metadata", seq)
        return None
    states = {domain: _domain_state(parts) for domain, parts in value.items() if _is_whole(parts)}
    if len(states) == len(value):
        del fields["metadata"]
    else:
        unread = next(domain for domain in value if domain not in states)
        fields.notes.set_aside("state_unreadable", f"metadata.{unread}", seq)
    return states or None


def _is_whole(parts: Any) -> bool:
    """`{"semi": {slot: value}, "book": {slot: value, "booked": [{…}]}}`, and nothing else."""
    if not isinstance(parts, dict) or parts.keys() - {"semi", "book"}:
        return False
    semi, book = parts.get("semi", {}), parts.get("book", {})
    if not isinstance(semi, dict) or not isinstance(book, dict):
        return False
    booked = book.get("booked", [])
    if not isinstance(booked, list) or not all(isinstance(one, dict) for one in booked):
        return False
    slots = [value for name, value in book.items() if name != "booked"]
    return all(isinstance(one, str) for one in (*semi.values(), *slots, *chain(*map(dict.values, booked))))


def _domain_state(parts: JsonObject) -> DomainState:
    semi, book = parts.get("semi", {}), dict(parts.get("book", {}))
    booked = tuple(book.pop("booked", ()))
    for_booking = {f"book{name.lower()}": value for name, value in book.items() if value not in _UNSET}
    slots = {name.lower(): (value,) for name, value in semi.items() if value not in _UNSET}
    return DomainState(slots | {name: (value,) for name, value in for_booking.items()}, for_booking, booked)


def _services(goal: Any, entries: list[LogEntry]) -> tuple[str, ...]:
    """The domains that the goal names, that the state has slots of or that anybody speaks of, in their usual order."""
    named = {domain for domain, wanted in as_object(goal).items() if domain in DOMAINS and wanted}
    for entry in entries:
        named |= {domain_of(act.type) for act in entry.acts or ()} & set(DOMAINS)
        named |= {domain for domain, state in (entry.state or {}).items() if state.slots or state.booked}
    known = [domain for domain in DOMAINS if domain in named]
    return (*known, *sorted(named - set(DOMAINS)))


def _states(entries: list[LogEntry], services: tuple[str, ...]) -> list[Frame]:
    """Frames of each user's turn: its state is what the system wrote into its answer."""
    frames: list[Frame] = []
    before: dict[str, DomainState] = {}
    for seq in range(0, len(entries), 2):
        answer = entries[seq + 1].state if seq + 1 < len(entries) else None
        acts = entries[seq].acts or ()
        for domain in services:
            state = (answer or {}).get(domain)
            frames.append(
                Frame(
                    seq=seq,
                    origin="gold",
                    service=domain,
                    intents=_intents(domain, acts, before.get(domain), state),
                    slots=None if answer is None else dict(state.slots) if state else {},
                    requested=_requested(domain, acts),
                    derived=_DERIVED,
                )
            )
            if state is not None and state.booked:
                frames.append(Frame(seq=seq + 1, origin="gold", service=domain, booked=state.booked))
        before = answer or before
    return frames


_NO_STATE = DomainState({}, {}, ())


def _intents(
    domain: str, acts: tuple[Act, ...], before: DomainState | None, state: DomainState | None
) -> tuple[str, ...]:
    """What the user wants of a domain in this turn; none where neither their acts nor the state are about it.

    It is a booking where they name a slot of a booking, where such a slot changes, or where the answer books.
    """
    own = [act for act in acts if domain_of(act.type) == domain]
    was, now = before or _NO_STATE, state or before or _NO_STATE
    if not own and now == was:
        return ()
    if domain not in _BOOKABLE:
        return (_INTENTS.get(domain, f"find_{domain}"),)
    names_booking = any(slot.slot.startswith("book") for act in own for slot in act.slots)
    books = names_booking or now.for_booking != was.for_booking or now.booked != was.booked
    return (f"book_{domain}" if books else f"find_{domain}",)


def _requested(domain: str, acts: tuple[Act, ...]) -> tuple[str, ...]:
    asked = (
        slot.slot
        for act in acts
        if domain_of(act.type) == domain and act.type.endswith("-Request")
        for slot in act.slots
    )
    return tuple(dict.fromkeys(asked))


def _scenario(goal: Any, notes: Notes) -> Scenario | None:
    """The goal of each domain that has one; the task as it was given to the user is in the extras."""
    if not isinstance(goal, dict):
        if goal is not None:
            notes.set_aside("goal_unreadable", as_text(goal)[:80] or type(goal).__name__)
            return Scenario(extras={"goal": goal})
        return None
    wanted = {name: value for name, value in goal.items() if name in DOMAINS and value}
    return Scenario(goal=wanted, extras=filled({name: value for name, value in goal.items() if name not in DOMAINS}))


_MEMBER = re.compile(rb'\s*\{\s*"[^"]*"\s*:\s*\{')
"""How an object of dialogues begins."""


class MultiWOZReader(Reader):
    """Task-oriented dialogues with the state and the acts of both sides."""

    name = "multiwoz"
    title = "MultiWOZ 2.1 and 2.2 dialogues"

    def detect(self, sample: Sample) -> Detection | None:
        for value in (row for held in sample.values for row in rows_of(held)):
            if isinstance(value, dict) and any(_is_21(one) for one in value.values()):
                return Detection(1.0, 'dialogues by id, each with a "log" of texts with "metadata"')
            if is_other_layout(value) and (isinstance(value["turns"], dict) or _is_22(value)):
                return Detection(1.1, '"turns" with columns, or with "slots_values" as lists of names and values')
            if is_dialogue(value) and _is_22(value):
                return Detection(1.1, '"turns" of USER and SYSTEM, with frames of the domains of MultiWOZ')
        return None

    def holds_members(self, head: bytes) -> bool:
        return _MEMBER.match(head) is not None and b'"log"' in head and b'"metadata"' in head

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        for record in group.records:
            rows = [row for row in rows_of(record.value) if isinstance(row, dict) and "turns" in row]
            for row in rows:
                layout = in_version_22(row) if is_other_layout(row) else DialogueLayout(row, {}, {})
                conversation = conversation_22(layout.dialogue, self.name, group, notes)
                yield _with_acts(conversation, layout, notes)
            if rows:
                continue
            if not isinstance(record.value, dict):
                raise InputError("has no dialogues by id", hint='expected {"MUL0001.json": {"goal": …, "log": […]}}')
            refused: list[InputError] = []
            for id, dialogue in record.value.items():
                try:
                    yield _conversation_21(id or group.name, dialogue, group, notes)
                except InputError as error:
                    refused.append(error)
            if refused:
                refused[0].count = len(refused)
                raise refused[0]


def _is_21(value: Any) -> bool:
    log = value.get("log") if isinstance(value, dict) else None
    return isinstance(log, list) and any(isinstance(one, dict) and {"text", "metadata"} <= one.keys() for one in log)


def _is_22(dialogue: Any) -> bool:
    """Schema-guided dialogues of other data sets have services such as `Hotels_2`."""
    held = [as_object(turn).get("frames") for turn in dialogue["turns"]]
    named = {as_text(as_object(frame).get("service")) for frames in held for frame in as_list(frames)}
    named |= {name for frames in held for name in as_object(frames)}
    return bool((named | set(map(as_text, as_list(dialogue.get("services"))))) & set(DOMAINS))


def _with_acts(conversation: Conversation, layout: DialogueLayout, notes: Notes) -> Conversation:
    frames = list(conversation.frames)
    for utterance in conversation.utterances:
        acts, spans = layout.acts.get(utterance.id), layout.spans.get(utterance.id, [])
        if acts is None and not spans:
            continue
        read, marked = read_acts(acts or {}), read_spans(spans, utterance.meant(), in_words=False)
        if not (read.is_whole and marked.is_whole):
            notes.set_aside("acts_unreadable", f"turn {utterance.id}", utterance.seq)
        frames.append(Frame(seq=utterance.seq, origin="gold", acts=read.values or None, spans=marked.values))
    return msgspec.structs.replace(conversation, frames=tuple(sorted(frames, key=lambda frame: frame.seq)))


READER = MultiWOZReader()
