"""Hypothesis strategies: arbitrary JSON, and arbitrary conversations that the model accepts.

Each struct is built from its own type hints, so that a field which is added to the model is covered
at once. Only what the model checks is spelled out: ids, order, and who points at what.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from convoscope.conversation import (
    TURN_RULES,
    Action,
    Annotations,
    AnyEvent,
    Clock,
    Conversation,
    Entity,
    Flow,
    FlowSegment,
    FlowState,
    Frame,
    Item,
    Participant,
    Risk,
    Segment,
    Time,
    Topic,
    Utterance,
)

T = TypeVar("T")

EVENT_TYPES: tuple[type[AnyEvent], ...] = get_args(AnyEvent)

# Texts that have broken JSON writers, line readers and word counters before.
AWKWARD_TEXTS = (
    "",
    " ",
    "null",
    "NaN",
    '"\\/\b\f\n\r\t',
    "\x00\x1f\x7f\x85\u2028",  # control characters and line breaks, of ASCII and beyond
    "e\u0301\u202e",  # a combining accent, and writing turned right to left
    "👩🏽‍🚀🇮🇸",  # one person of four code points, one flag of two
)
ROLES = ("user", "assistant", "system", "supervisor")
KNOWN_TURN_RULES = st.sampled_from(sorted(TURN_RULES))
BIG_INTEGERS = (2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**30)
BIG_AND_SMALL_FLOATS = (1e16, 1.7976931348623157e308, 5e-324, -0.0, 0.1 + 0.2)


def texts(min_size: int = 0) -> SearchStrategy[str]:
    """Any text that UTF-8 can carry; often short, sometimes awkward."""
    awkward = [text for text in AWKWARD_TEXTS if len(text) >= min_size]
    return st.sampled_from(awkward) | st.text(min_size=min_size, max_size=8)


def finite_floats() -> SearchStrategy[float]:
    return st.sampled_from(BIG_AND_SMALL_FLOATS) | st.floats(allow_nan=False, allow_infinity=False)


def integers() -> SearchStrategy[int]:
    return st.sampled_from(BIG_INTEGERS) | st.integers()


def json_values(max_leaves: int = 6) -> SearchStrategy[Any]:
    """Any value that JSON can carry: nested, empty, unicode, integers of any size, no NaN and no infinity."""
    return st.recursive(
        st.none() | st.booleans() | integers() | finite_floats() | texts(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3),
        max_leaves=max_leaves,
    )


def conversations(
    *, turn_rules: SearchStrategy[str] = KNOWN_TURN_RULES, max_events: int = 8
) -> SearchStrategy[Conversation]:
    """Any conversation that the model accepts.

    The turn rule is one that is known, so that turns can be derived, unless `turn_rules` says otherwise.
    """
    return _conversations(Filling(least=0, most=2), turn_rules, max_events)


def complete_conversations(*, turn_rules: SearchStrategy[str] = KNOWN_TURN_RULES) -> SearchStrategy[Conversation]:
    """The same with nothing left out: every kind of event, and in every field something other than its default."""
    return _conversations(Filling(least=1, most=1), turn_rules, max_events=len(EVENT_TYPES))


class Filling(NamedTuple):
    """How many elements a collection has. Where it is at least one, no field is left at its default either."""

    least: int
    most: int


def struct(kind: type[T], filling: Filling, **given: SearchStrategy[Any]) -> SearchStrategy[T]:
    """A struct with an arbitrary value in each field that is not given."""
    return st.fixed_dictionaries(_fields(kind, filling) | given).map(lambda values: kind(**values))


@cache
def _fields(kind: type[msgspec.Struct], filling: Filling) -> dict[str, SearchStrategy[Any]]:
    hints = get_type_hints(kind)
    strategies: dict[str, SearchStrategy[Any]] = {}
    for field in msgspec.structs.fields(kind):
        hint = hints[field.name]
        if field.required:
            strategies[field.name] = _of_type(hint, filling)
        elif not filling.least:
            strategies[field.name] = _default(field) | _of_type(hint, filling)
        elif hint is bool or get_origin(hint) is Literal:
            others = {True, False} if hint is bool else set(get_args(hint))
            strategies[field.name] = st.sampled_from(sorted(others - {field.default}))
        else:
            strategies[field.name] = _of_type(hint, filling)
    return strategies


def _default(field: msgspec.structs.FieldInfo) -> SearchStrategy[Any]:
    if field.default_factory is not msgspec.NODEFAULT:
        return st.builds(field.default_factory)
    return st.just(field.default)


@cache
def _of_type(hint: Any, filling: Filling) -> SearchStrategy[Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        wanted = [one for one in arguments if one is not type(None) or not filling.least]
        return st.one_of(*(_of_type(one, filling) for one in wanted))
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        return _tuples(_of_type(arguments[0], filling), filling)
    if origin is tuple:
        return st.tuples(*(_of_type(one, filling) for one in arguments))
    if origin is dict:
        values = _of_type(arguments[1], filling)
        return st.dictionaries(texts(), values, min_size=filling.least, max_size=filling.most)
    if hint is Flow:
        return _flows(filling)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return struct(hint, filling)
    return _plain(hint, filling)


def _flows(filling: Filling) -> SearchStrategy[Flow]:
    """A declaration has a name, and so has each of its states and segments, no two of them the same."""
    named: dict[str, SearchStrategy[Any]] = {
        name: st.lists(
            struct(kind, filling), min_size=filling.least, max_size=filling.most, unique_by=lambda one: one.name
        ).map(tuple)
        for name, kind in (("states", FlowState), ("segments", FlowSegment))
    }
    return struct(Flow, filling, name=texts(min_size=1), **named)


def _plain(hint: Any, filling: Filling) -> SearchStrategy[Any]:
    if hint is Any:
        return json_values().map(lambda value: [value]) if filling.least else json_values()
    known = {
        str: texts(min_size=filling.least),
        int: integers(),
        float: finite_floats(),
        bool: st.booleans(),
        type(None): st.none(),
    }
    return known[hint]


def _tuples(elements: SearchStrategy[T], filling: Filling) -> SearchStrategy[tuple[T, ...]]:
    return st.lists(elements, min_size=filling.least, max_size=filling.most).map(tuple)


@st.composite
def _conversations(draw: st.DrawFn, filling: Filling, turn_rules: SearchStrategy[str], max_events: int) -> Conversation:
    participants = draw(_distinct(struct(Participant, filling, role=st.sampled_from(ROLES)), filling))
    clocks = draw(_distinct(struct(Clock, filling), filling))
    speakers = [participant.id for participant in participants]
    timeline = draw(_timelines(filling, speakers, [clock.id for clock in clocks], max_events))
    seqs = [event.seq for event in timeline]
    return draw(
        struct(
            Conversation,
            filling,
            id=texts(min_size=1),
            participants=st.just(participants),
            clocks=st.just(clocks),
            timeline=st.just(timeline),
            turn_rule=turn_rules,
            frames=_tuples(struct(Frame, filling, seq=st.sampled_from(seqs)), filling) if seqs else st.just(()),
            items=_tuples(_items(filling, seqs), filling),
            annotations=_tuples(_annotations(filling, seqs), filling),
        )
    )


def _distinct(elements: SearchStrategy[T], filling: Filling) -> SearchStrategy[tuple[T, ...]]:
    return st.lists(elements, min_size=filling.least, max_size=4, unique_by=lambda element: element.id).map(tuple)


@st.composite
def _timelines(
    draw: st.DrawFn, filling: Filling, speakers: Sequence[str], clocks: Sequence[str], max_events: int
) -> tuple[AnyEvent, ...]:
    chosen = draw(_kinds(filling, speakers, max_events))
    seqs = draw(st.lists(st.integers(0, 2**70), min_size=len(chosen), max_size=len(chosen), unique=True))
    on_clock = {"clock": st.sampled_from(clocks)}
    times = _optional(struct(Time, filling, **on_clock), filling) if clocks else st.none()
    segments = _tuples(struct(Segment, filling, **on_clock), filling) if clocks else st.just(())
    interrupters = _optional(st.sampled_from(speakers), filling, default="")
    talk = {"speaker": st.sampled_from(speakers), "cut_off_by": interrupters, "segments": segments}
    events: list[AnyEvent] = []
    for seq, kind in zip(sorted(seqs), chosen, strict=True):
        given = talk if kind is Utterance else {}
        events.append(draw(struct(kind, filling, seq=st.just(seq), time=times, **given)))
    return tuple(events)


def _kinds(filling: Filling, speakers: Sequence[str], max_events: int) -> SearchStrategy[list[type[AnyEvent]]]:
    if filling.least:
        return st.permutations(EVENT_TYPES)
    # Most of what happens in a conversation is talk, and turns are made of it.
    kinds = [*EVENT_TYPES, *[Utterance] * 8]
    return st.lists(st.sampled_from([kind for kind in kinds if kind is not Utterance or speakers]), max_size=max_events)


def _optional(strategy: SearchStrategy[T], filling: Filling, default: Any = None) -> SearchStrategy[Any]:
    return strategy if filling.least else st.just(default) | strategy


def _items(filling: Filling, seqs: Sequence[int]) -> SearchStrategy[Item]:
    pointed = _optional(st.sampled_from(seqs), filling) if seqs else st.none()
    events = _tuples(st.sampled_from(seqs), filling) if seqs else st.just(())
    return struct(Item, filling, asked=pointed, answered=pointed, events=events)


def _annotations(filling: Filling, seqs: Sequence[int]) -> SearchStrategy[Annotations]:
    one = st.sampled_from(seqs)
    events = _tuples(one, filling) if seqs else st.just(())
    span = _optional(st.tuples(one, one).map(sorted).map(tuple), filling) if seqs else st.none()

    def family(kind: type[Any], **given: SearchStrategy[Any]) -> SearchStrategy[Any]:
        return _optional(_tuples(struct(kind, filling, events=events, **given), filling), filling)

    return struct(
        Annotations,
        filling,
        topics=family(Topic, span=span),
        risks=family(Risk),
        actions=family(Action),
        entities=family(Entity),
    )
