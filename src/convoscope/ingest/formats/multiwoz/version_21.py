"""One dialogue of MultiWOZ 2.1: a goal, and a log in which user and system take turns.

The state of a user's turn stands in the `metadata` of the system's answer. Version 2.1 has no intents and no requested
slots. Both are derived, and say so in `Frame.derived`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from convoscope.conversation import ASSISTANT, USER, Act, Conversation, Frame, Scenario, Source, Text
from convoscope.errors import InputError
from convoscope.ingest.formats.multiwoz.acts import domain_of, read_acts, read_spans
from convoscope.ingest.reader import RecordGroup
from convoscope.ingest.record import JsonObject, as_object, as_text, filled, leftovers, take
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder

DOMAINS = ("restaurant", "hotel", "attraction", "train", "taxi", "hospital", "police", "bus")
_BOOKABLE = frozenset({"restaurant", "hotel", "train"})
_INTENTS = {"taxi": "book_taxi", "police": "police"}
_UNSET = frozenset({"", "not mentioned"})
_DERIVED = ("intents", "requested")
_USUAL = frozenset({"turn_id"})


class DomainState(NamedTuple):
    """What a domain's metadata say: the slots, those that are for a booking, and what was booked."""

    slots: dict[str, tuple[str, ...]]
    for_booking: dict[str, str]
    booked: tuple[dict[str, str], ...]


class LogEntry(NamedTuple):
    """What one entry of a log says beside its text. None is "not annotated"."""

    acts: tuple[Act, ...] | None
    state: dict[str, DomainState] | None


def conversation(id: str, dialogue: JsonObject, group: RecordGroup, notes: Notes) -> Conversation:
    """The dialogue with frames of both speakers."""
    facts = dict(dialogue)
    log = take(facts, "log", kind=list)
    if log is None:
        raise InputError(f"dialogue {id} has no log", field=f"{id}.log", hint='expected {"goal": …, "log": [{"text"')
    goal = facts.pop("goal", None)
    timeline = TimelineBuilder(notes)
    frames: list[Frame] = []
    entries = [_entry(place, value, timeline, frames) for place, value in enumerate(log)]
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
        extras={
            **({"services": list(services)} if services else {}),
            **leftovers(facts, frozenset(), "dialogue", notes),
        },
    )


def _entry(place: int, value: Any, timeline: TimelineBuilder, frames: list[Frame]) -> LogEntry:
    """Say what an entry says; its acts and spans go to the frames."""
    facts, notes, seq = dict(as_object(value)), timeline.notes, timeline.seq
    if not isinstance(value, dict):
        notes.set_aside("entry_unreadable", f"log[{place}]", seq)
        facts = {"entry": value}
    text = take(facts, "text")
    if text is None:
        notes.set_aside("text_missing", f"log[{place}].text", seq)
    acts = _take_acts(facts, notes, seq)
    spans = _take_spans(facts, text or "", notes, seq)
    state = _take_state(facts, notes, seq)
    speaker = timeline.participant(USER if place % 2 == 0 else ASSISTANT)
    extras = leftovers(facts, _USUAL | {"entry", "text", "metadata", "dialog_act", "span_info"}, "log", notes)
    timeline.say(speaker, intended=Text(text or ""), id=str(place), extras=extras)
    if acts is not None or spans:
        frames.append(Frame(seq=seq, origin="gold", acts=acts, spans=spans))
    return LogEntry(acts, state)


def _take_acts(facts: JsonObject, notes: Notes, seq: int) -> tuple[Act, ...] | None:
    """The acts. Without any the turn is not annotated: every turn of a person does something."""
    value = facts.get("dialog_act")
    if not isinstance(value, dict):
        if value is not None and value != "No Annotation":
            notes.set_aside("acts_unreadable", "dialog_act", seq)
        return None
    read = read_acts(value)
    if read.is_whole:
        del facts["dialog_act"]
    else:
        notes.set_aside("acts_unreadable", "dialog_act", seq)
    return read.acts or None


def _take_spans(facts: JsonObject, text: str, notes: Notes, seq: int) -> Any:
    value = facts.get("span_info")
    if not isinstance(value, list):
        if value is not None:
            notes.set_aside("spans_unreadable", "span_info", seq)
        return ()
    read = read_spans(value, text, in_words=True)
    if read.is_whole:
        del facts["span_info"]
    else:
        notes.set_aside("spans_unreadable", "span_info", seq)
    return read.spans


def _take_state(facts: JsonObject, notes: Notes, seq: int) -> dict[str, DomainState] | None:
    """The state by domain; metadata that cannot be read whole are kept beside it."""
    value = facts.get("metadata")
    if not isinstance(value, dict):
        if value is not None:
            notes.set_aside("state_unreadable", "metadata", seq)
        return None
    states = {domain: _domain_state(parts) for domain, parts in value.items() if _is_whole(parts)}
    if len(states) == len(value):
        del facts["metadata"]
    else:
        strange = [domain for domain in value if domain not in states]
        notes.set_aside("state_unreadable", f"metadata.{strange[0]}", seq)
    return states or None


def _is_whole(parts: Any) -> bool:
    """`{"semi": {slot: value}, "book": {slot: value, "booked": [{…}]}}`, and nothing else."""
    if not isinstance(parts, dict) or parts.keys() - {"semi", "book"}:
        return False
    semi, book = parts.get("semi", {}), parts.get("book", {})
    if not isinstance(semi, dict) or not isinstance(book, dict):
        return False
    booked = book.get("booked", [])
    return (
        isinstance(booked, list)
        and all(isinstance(one, dict) and all(isinstance(inner, str) for inner in one.values()) for one in booked)
        and all(isinstance(value, str) for value in semi.values())
        and all(isinstance(value, str) for name, value in book.items() if name != "booked")
    )


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
    """The goal of each domain that has one; the task as the user was told it stands beside them."""
    if not isinstance(goal, dict):
        if goal is not None:
            notes.set_aside("goal_unreadable", as_text(goal)[:80] or type(goal).__name__)
            return Scenario(extras={"goal": goal})
        return None
    wanted = {name: value for name, value in goal.items() if name in DOMAINS and value}
    return Scenario(goal=wanted, extras=filled({name: value for name, value in goal.items() if name not in DOMAINS}))
