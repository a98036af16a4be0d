"""Whatever the model accepts can be written and read back, whole; and its turns are a cut of its timeline."""

import json
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from convoscope.conversation import (
    USER,
    Agent,
    Annotations,
    AudioFile,
    Clock,
    ComponentMetric,
    Conversation,
    Database,
    Expected,
    ExpectedToolCall,
    GuardEvaluated,
    Item,
    Label,
    Marker,
    Outcome,
    Participant,
    Risk,
    Scenario,
    Segment,
    SlotFilled,
    Text,
    Time,
    Tool,
    ToolCall,
    ToolResult,
    Track,
    Utterance,
    from_builtins,
    from_json,
    json_schema,
    to_json,
)
from support import strategies

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
SCHEMA = Draft202012Validator(json_schema())
any_rule = strategies.texts()
any_conversation = strategies.conversations(turn_rules=any_rule) | strategies.complete_conversations(
    turn_rules=any_rule
)


@unhurried
@given(any_conversation)
def test_what_is_written_is_valid_and_reads_as_the_same(conversation: Conversation) -> None:
    written = to_json(conversation)
    read = from_json(written)
    assert read == conversation
    # More than equality: 1, 1.0 and True are equal in Python, and different facts in a log.
    assert to_json(read) == written
    by_another_library = json.loads(written)
    assert from_builtins(by_another_library) == conversation
    SCHEMA.validate(by_another_library)


# NaN and infinity: JSON has no word for them, and the encoder would write null.

NOT_FINITE = (math.nan, math.inf, -math.inf)


def with_events(*events: Any) -> Conversation:
    return Conversation(
        id="c",
        participants=(Participant("u", USER),),
        clocks=(Clock(id="audio", kind="audio"),),
        timeline=events,
    )


PLACES: dict[str, Callable[[float], Conversation]] = {
    "extras": lambda bad: Conversation(id="c", extras={"a": {"b": [1, bad]}}),
    "extras of an event": lambda bad: with_events(Marker(seq=0, name="m", extras={"a": bad})),
    "tool arguments": lambda bad: with_events(ToolCall(seq=0, name="t", arguments={"amount": bad})),
    "tool arguments, deep": lambda bad: with_events(ToolCall(seq=0, name="t", arguments=[{"a": [{"b": bad}]}])),
    "tool result": lambda bad: with_events(ToolResult(seq=0, result=bad)),
    "tool result, deep": lambda bad: with_events(ToolResult(seq=0, result={"rows": [[0.5], [bad]]})),
    "guard result": lambda bad: with_events(GuardEvaluated(seq=0, result=bad)),
    "slot value": lambda bad: with_events(SlotFilled(seq=0, slot="s", value=bad)),
    "component figure": lambda bad: with_events(ComponentMetric(seq=0, component="llm", values={"ttft": bad})),
    "marker value": lambda bad: with_events(Marker(seq=0, name="m", value=bad)),
    "confidence of a text": lambda bad: with_events(Utterance(seq=0, speaker="u", heard=Text("hi", confidence=bad))),
    "segment": lambda bad: with_events(Utterance(seq=0, speaker="u", segments=(Segment(0.0, bad),))),
    "clock resolution": lambda bad: Conversation(id="c", clocks=(Clock(id="w", kind="wall", resolution=bad),)),
    "clock offset": lambda bad: Conversation(id="c", clocks=(Clock(id="w", kind="wall", offset=bad),)),
    "tool schema": lambda bad: Conversation(id="c", agent=Agent(tools=(Tool(name="t", arguments_schema=[bad]),))),
    "goal": lambda bad: Conversation(id="c", scenario=Scenario(goal={"price": bad})),
    "database": lambda bad: Conversation(id="c", scenario=Scenario(before=Database({"stock": bad}))),
    "expected arguments": lambda bad: Conversation(
        id="c", items=(Item(id="i", expected=Expected(tool_calls=(ExpectedToolCall("t", {"amount": bad}),))),)
    ),
    "duration": lambda bad: Conversation(id="c", outcome=Outcome(duration=bad)),
    "duration of a track": lambda bad: Conversation(id="c", recording=AudioFile(tracks=(Track(duration=bad),))),
    "label": lambda bad: Conversation(id="c", labels=(Label(name="csat", value=bad),)),
    "confidence of a finding": lambda bad: Conversation(
        id="c", annotations=(Annotations(origin="gold", risks=(Risk(type="churn", confidence=bad),)),)
    ),
}


@pytest.mark.parametrize("bad", NOT_FINITE)
@pytest.mark.parametrize("place", PLACES)
def test_nan_and_infinity_are_refused_in(place: str, bad: float) -> None:
    to_json(PLACES[place](0.5))  # a finite number there is fine
    with pytest.raises(ValueError, match="'c' holds NaN or infinity, which JSON cannot carry"):
        to_json(PLACES[place](bad))


def test_times_are_refused_where_they_are_made() -> None:
    for bad in NOT_FINITE:
        with pytest.raises(ValueError, match="finite number of seconds"):
            Time(at=bad)
        with pytest.raises(ValueError, match="finite number of seconds"):
            Time(at=0.0, until=bad)


def test_words_that_look_like_null_and_nan_are_fine() -> None:
    extras = {"null": "null", "NaN": "NaN", "nothing": None, "Infinity": [None, "-Infinity"]}
    assert from_json(to_json(Conversation(id="null", extras=extras))).extras == extras


@settings(unhurried, max_examples=20)
@given(st.data(), any_conversation)
def test_nan_and_infinity_are_refused_wherever_a_number_may_stand(
    data: st.DataObject, conversation: Conversation
) -> None:
    path = data.draw(st.sampled_from(list(_number_places(conversation, Conversation))), label="path")
    bad = data.draw(st.sampled_from(NOT_FINITE), label="number")
    # A time refuses by itself when it is made, all else when it is written.
    with pytest.raises(ValueError, match=r"NaN or infinity|finite number of seconds"):
        to_json(_put(conversation, path, bad))


def _number_places(value: Any, hint: Any) -> Iterator[tuple[str | int, ...]]:
    """Paths to every field, element or new key in which the model would take a float."""
    if hint is Any or isinstance(value, float):
        yield ()
    elif isinstance(value, msgspec.Struct):
        for name, inner in _hints(type(value)).items():
            yield from ((name, *rest) for rest in _number_places(getattr(value, name), inner))
    elif isinstance(value, tuple):
        for index, element in enumerate(value):
            yield from ((index, *rest) for rest in _number_places(element, type(element)))
    elif get_origin(hint) is dict and get_args(hint)[1] is Any:
        yield ("a key of its own",)


_hints = cache(get_type_hints)


def _put(value: Any, path: tuple[str | int, ...], leaf: Any) -> Any:
    if not path:
        return leaf
    step, *rest = path
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **{step: _put(getattr(value, step), tuple(rest), leaf)})
    if isinstance(value, tuple):
        return (*value[:step], _put(value[step], tuple(rest), leaf), *value[step + 1 :])
    return value | {step: leaf}


# Turns


@unhurried
@given(strategies.conversations(max_events=20))
def test_turns_are_a_cut_of_the_timeline(conversation: Conversation) -> None:
    turns = conversation.turns
    # each event in exactly one turn, order kept
    assert tuple(event for turn in turns for event in turn.events) == conversation.timeline
    # ids ascend one by one, from 0 where something came before the user and from 1 where nothing did
    ids = [turn.id for turn in turns]
    assert ids in (list(range(len(ids))), list(range(1, len(ids) + 1)))
    assert all(turn.events for turn in turns)


# The strategy itself: a property that never meets a field proves nothing about it.


@settings(unhurried, max_examples=5)
@given(strategies.complete_conversations(turn_rules=strategies.texts()))
def test_a_complete_conversation_fills_every_field_of_every_struct(conversation: Conversation) -> None:
    assert _declared(Conversation, set()) - set(_filled(conversation)) == set()


def _filled(value: Any) -> Iterator[str]:
    """Fields that hold something other than their default, by the name of their struct."""
    if isinstance(value, msgspec.Struct):
        for field in msgspec.structs.fields(value):
            held = getattr(value, field.name)
            if held != field.default and held not in ((), {}):
                yield f"{type(value).__name__}.{field.name}"
                yield from _filled(held)
    elif isinstance(value, tuple):
        for element in value:
            yield from _filled(element)


def _declared(hint: Any, seen: set[type]) -> set[str]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        if hint in seen:
            return set()
        seen.add(hint)
        fields = get_type_hints(hint)
        return {f"{hint.__name__}.{name}" for name in fields}.union(*(_declared(f, seen) for f in fields.values()))
    return set().union(*(_declared(one, seen) for one in get_args(hint)))


def test_arbitrary_json_has_it_all() -> None:
    values: list[Any] = []

    @settings(unhurried, max_examples=300, derandomize=True, database=None)
    @given(strategies.json_values())
    def collect(value: Any) -> None:
        values.extend(_parts(value))

    collect()
    wanted: dict[str, Callable[[Any], bool]] = {
        "nothing": lambda value: value is None,
        "a truth": lambda value: value is True,
        "an empty text": lambda value: value == "",
        "an empty list": lambda value: value == [],
        "an empty object": lambda value: value == {},
        "a control character": lambda value: isinstance(value, str) and "\x00" in value,
        "an emoji of several code points": lambda value: isinstance(value, str) and "👩🏽‍🚀" in value,
        "an integer above 64 bits": lambda value: isinstance(value, int) and value > 2**64,
        "an integer below 64 bits": lambda value: isinstance(value, int) and value < -(2**63),
        "a tiny float": lambda value: isinstance(value, float) and 0 < abs(value) < 1e-300,
        "a list in an object": lambda value: isinstance(value, dict) and any(type(v) is list for v in value.values()),
        "an object in a list": lambda value: isinstance(value, list) and any(type(v) is dict for v in value),
        "an empty key": lambda value: isinstance(value, dict) and "" in value,
    }
    assert [name for name, met in wanted.items() if not any(map(met, values))] == []
    assert not any(isinstance(value, float) and not math.isfinite(value) for value in values)


def _parts(value: Any) -> Iterator[Any]:
    yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _parts(inner)
