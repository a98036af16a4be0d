"""The JSON of a conversation: what is required, what is refused and where, and what becomes of unknown keys."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator

from convoscope.conversation import (
    Clock,
    Conversation,
    Item,
    Participant,
    Segment,
    Text,
    Time,
    Utterance,
    from_builtins,
    from_json,
    json_schema,
    to_json,
)
from convoscope.conversation.serial import Moved, keep_unknown_keys
from support import strategies

SCHEMA_FILE = Path(__file__).parents[2] / "docs" / "formats" / "conversation-1.schema.json"


def document(**fields: Any) -> dict[str, Any]:
    """The least that is a conversation, and more where it is given."""
    people = [{"id": "u", "role": "user"}, {"id": "a", "role": "assistant"}]
    return {"schema": "convoscope.conversation/1", "id": "c", "participants": people, **fields}


# What is required


def test_a_conversation_is_written_with_its_schema_and_without_its_defaults() -> None:
    assert to_json(Conversation(id="c")) == b'{"schema":"convoscope.conversation/1","id":"c"}'


def test_defaults_are_left_out_at_every_depth() -> None:
    said = Utterance(seq=0, speaker="u", heard=Text("hi"), segments=(Segment(0.0, 1.5),), time=Time(7.0))
    made = Conversation(
        id="c",
        participants=(Participant("u", "user"),),
        clocks=(Clock(id="wall", kind="wall"), Clock(id="audio", kind="audio")),
        items=(Item(id="q", asked=0),),
        timeline=(said,),
    )
    assert json.loads(to_json(made)) == {
        "schema": "convoscope.conversation/1",
        "id": "c",
        "participants": [{"id": "u", "role": "user"}],
        "clocks": [{"id": "wall", "kind": "wall"}, {"id": "audio", "kind": "audio"}],
        "items": [{"id": "q", "asked": 0}],
        "timeline": [
            {
                "type": "utterance",
                "seq": 0,
                "time": {"at": 7.0},
                "speaker": "u",
                "heard": {"text": "hi"},
                "segments": [{"start": 0.0, "end": 1.5}],
            }
        ],
    }


def test_a_schema_of_another_name_or_version_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"Invalid value 'convoscope.conversation/2' - at `\$.schema`"):
        from_json(b'{"schema": "convoscope.conversation/2", "id": "c"}')
    with pytest.raises(msgspec.ValidationError, match=r"Invalid value 'other' - at `\$.schema`"):
        from_builtins({"schema": "other", "id": "c"})


def test_the_schema_is_required() -> None:
    with pytest.raises(msgspec.ValidationError, match="schema"):
        from_json(b'{"id": "c"}')


def test_the_schema_is_required_of_decoded_json_too() -> None:
    with pytest.raises(msgspec.ValidationError, match="schema"):
        from_builtins({"id": "c"})


def test_the_id_is_required() -> None:
    with pytest.raises(msgspec.ValidationError, match="required field `id`"):
        from_json(b'{"schema": "convoscope.conversation/1"}')


def test_the_type_of_an_event_is_required() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"required field `type` - at `\$.timeline\[0\]`"):
        from_builtins(document(timeline=[{"seq": 0, "name": "x"}]))


def test_an_event_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"Invalid value 'wink' - at `\$.timeline\[0\].type`"):
        from_builtins(document(timeline=[{"type": "wink", "seq": 0}]))


def test_json_that_is_cut_short_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError, match="truncated"):
        from_json(b'{"schema": "convoscope.conversation/1", "id": ')


# What is refused, and where

WRONG_TYPES = {
    "$.id": document(id=7),
    "$.pipeline": document(pipeline="telepathy"),
    "$.dimensions[...]": document(dimensions={"trial": 2}),
    "$.participants": document(participants={"u": "user"}),
    "$.participants[1].role": document(participants=[{"id": "u", "role": "user"}, {"id": "a", "role": None}]),
    "$.clocks[0].kind": document(clocks=[{"id": "wall", "kind": "sundial"}]),
    "$.timeline[1].seq": document(timeline=[{"type": "marker", "seq": 0, "name": "x"}, {"type": "marker", "seq": "1"}]),
    "$.timeline[0].time.at": document(timeline=[{"type": "marker", "seq": 0, "name": "x", "time": {"at": "noon"}}]),
    "$.timeline[0].heard.text": document(timeline=[{"type": "utterance", "seq": 0, "heard": {"text": 1}}]),
    "$.timeline[0].success": document(timeline=[{"type": "tool_result", "seq": 0, "success": "yes"}]),
    "$.agent.tools[0].name": document(agent={"tools": [{"name": ["find"]}]}),
    "$.items[0].expected.tool_calls": document(items=[{"id": "q", "expected": {"tool_calls": "none"}}]),
    "$.frames[0].slots[...][0]": document(frames=[{"seq": 0, "origin": "gold", "slots": {"people": [3]}}]),
    "$.annotations[0].origin": document(annotations=[{"origin": "guessed"}]),
    "$.annotations[0].topics[0].span": document(
        annotations=[{"origin": "gold", "topics": [{"label": "x", "span": [1]}]}]
    ),
    "$.recording.tracks[0].sample_rate": document(recording={"tracks": [{"sample_rate": 44.1}]}),
    "$.extras": document(extras=["a", "list"]),
}


@pytest.mark.parametrize("path", WRONG_TYPES)
def test_a_wrong_type_is_refused_with_its_path(path: str) -> None:
    for read in (lambda value: from_json(json.dumps(value)), from_builtins):
        with pytest.raises(msgspec.ValidationError) as refused:
            read(WRONG_TYPES[path])
        assert str(refused.value).endswith(f" - at `{path}`")


def test_a_whole_number_will_do_for_seconds() -> None:
    timeline = [{"type": "marker", "seq": 0, "name": "x", "time": {"at": 3}}]
    made = from_builtins(document(clocks=[{"id": "wall", "kind": "wall"}], timeline=timeline))
    assert made.timeline[0].time is not None
    assert type(made.timeline[0].time.at) is float


def test_an_unknown_key_is_refused_until_it_is_kept() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `mood`"):
        from_builtins(document(mood="sunny"))


# Unknown keys


def utterance(**fields: Any) -> dict[str, Any]:
    return {"type": "utterance", "seq": 0, "speaker": "u", **fields}


class Kept(NamedTuple):
    """A conversation with the unknown key `mood`, the path of its object, and the key's new home and name."""

    value: dict[str, Any]
    path: str
    home: tuple[str | int, ...]
    name: str


AUDIO = [{"id": "audio", "kind": "audio"}]
ACTS = [{"type": "inform", "slots": [{"slot": "area", "mood": 1}]}]

KEPT = {
    "the conversation": Kept(document(mood=1), "$", ("extras",), "mood"),
    "the agent": Kept(document(agent={"mood": 1}), "$.agent", ("agent", "extras"), "mood"),
    "a tool": Kept(
        document(agent={"tools": [{"name": "find", "mood": 1}]}),
        "$.agent.tools[0]",
        ("agent", "tools", 0, "extras"),
        "mood",
    ),
    "an event": Kept(document(timeline=[utterance(mood=1)]), "$.timeline[0]", ("timeline", 0, "extras"), "mood"),
    "an item": Kept(document(items=[{"id": "q", "mood": 1}]), "$.items[0]", ("items", 0, "extras"), "mood"),
    "what an item expects": Kept(
        document(items=[{"id": "q", "expected": {"mood": 1}}]),
        "$.items[0].expected",
        ("items", 0, "expected", "extras"),
        "mood",
    ),
    "how an item ended": Kept(
        document(items=[{"id": "q", "outcome": {"mood": 1}}]),
        "$.items[0].outcome",
        ("items", 0, "outcome", "extras"),
        "mood",
    ),
    "a track": Kept(
        document(recording={"tracks": [{"id": "t", "mood": 1}]}),
        "$.recording.tracks[0]",
        ("recording", "tracks", 0, "extras"),
        "mood",
    ),
    "a topic": Kept(
        document(annotations=[{"origin": "gold", "topics": [{"label": "x", "mood": 1}]}]),
        "$.annotations[0].topics[0]",
        ("annotations", 0, "topics", 0, "extras"),
        "mood",
    ),
    # These have no extras of their own: the nearest above them take the key, under the path that it had.
    "a participant": Kept(
        document(participants=[{"id": "u", "role": "user", "mood": 1}]),
        "$.participants[0]",
        ("extras",),
        "participants[0].mood",
    ),
    "the source": Kept(document(source={"mood": 1}), "$.source", ("extras",), "source.mood"),
    "a label": Kept(
        document(labels=[{"name": "csat", "value": 5, "mood": 1}]), "$.labels[0]", ("extras",), "labels[0].mood"
    ),
    "a text": Kept(
        document(timeline=[utterance(heard={"text": "hi", "mood": 1})]),
        "$.timeline[0].heard",
        ("timeline", 0, "extras"),
        "timeline[0].heard.mood",
    ),
    "a segment": Kept(
        document(timeline=[utterance(segments=[{"start": 0, "end": 1, "mood": 1}])], clocks=AUDIO),
        "$.timeline[0].segments[0]",
        ("timeline", 0, "extras"),
        "timeline[0].segments[0].mood",
    ),
    "a database": Kept(
        document(scenario={"before": {"content": {}, "mood": 1}}),
        "$.scenario.before",
        ("scenario", "extras"),
        "scenario.before.mood",
    ),
    "the slot of an act": Kept(
        document(timeline=[utterance()], frames=[{"seq": 0, "origin": "gold", "acts": ACTS}]),
        "$.frames[0].acts[0].slots[0]",
        ("frames", 0, "extras"),
        "frames[0].acts[0].slots[0].mood",
    ),
}


@pytest.mark.parametrize("place", KEPT)
def test_an_unknown_key_is_kept_in_the_nearest_extras(place: str) -> None:
    kept = KEPT[place]
    value = copy.deepcopy(kept.value)
    with pytest.raises(msgspec.ValidationError, match="unknown field `mood`"):
        from_builtins(value)
    assert keep_unknown_keys(value) == [Moved(path=kept.path, key="mood")]
    written = json.loads(to_json(from_builtins(value)))
    for step in kept.home:
        written = written[step]
    assert written == {kept.name: 1}


def test_extras_that_are_there_already_stay() -> None:
    value = document(mood="sunny", extras={"note": "kept"})
    keep_unknown_keys(value)
    assert from_builtins(value).extras == {"note": "kept", "mood": "sunny"}


def test_a_key_whose_name_is_taken_in_the_extras_is_not_lost() -> None:
    value = document(mood="sunny", extras={"mood": "rainy"})
    keep_unknown_keys(value)
    assert sorted(from_builtins(value).extras.values()) == ["rainy", "sunny"]


def test_a_known_conversation_is_left_alone() -> None:
    value = document(timeline=[utterance(heard={"text": "hi"}, extras={"mood": {"deep": [1]}})])
    before = copy.deepcopy(value)
    assert keep_unknown_keys(value) == []
    assert value == before


def test_keys_inside_free_json_are_not_unknown() -> None:
    call = {"type": "tool_call", "seq": 0, "name": "find", "arguments": {"mood": 1, "type": "x"}}
    value = document(timeline=[call], scenario={"goal": {"mood": 1}}, dimensions={"mood": "sunny"})
    assert keep_unknown_keys(value) == []
    assert from_builtins(value).tool_calls[0].arguments == {"mood": 1, "type": "x"}


def test_extras_of_the_wrong_type_are_still_refused() -> None:
    value = document(mood="sunny", extras=None)
    assert keep_unknown_keys(value) == []
    with pytest.raises(msgspec.ValidationError):
        from_builtins(value)


UNKNOWN = "\N{SHRUG} never heard of"


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(strategies.complete_conversations())
def test_unknown_keys_at_every_depth_at_once(conversation: Conversation) -> None:
    value = json.loads(to_json(conversation))
    structs = list(_structs(conversation, value))
    for number, one in enumerate(structs):
        one[UNKNOWN] = f"value {number}"
    assert len(keep_unknown_keys(value)) == len(structs)
    written = to_json(from_builtins(value))
    assert [number for number in range(len(structs)) if written.count(b'"value %d"' % number) != 1] == []
    assert _without_unknown(json.loads(written)) == json.loads(to_json(conversation))  # nothing else has moved


def _without_unknown(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_unknown(inner) for key, inner in value.items() if not key.endswith(UNKNOWN)}
    return [_without_unknown(inner) for inner in value] if isinstance(value, list) else value


def _structs(model: Any, value: Any) -> Iterator[dict[str, Any]]:
    """The JSON object of each struct inside a conversation, itself included."""
    if isinstance(model, msgspec.Struct):
        yield value
        for name in get_type_hints(type(model)):
            if name in value:
                yield from _structs(getattr(model, name), value[name])
    elif isinstance(model, tuple):
        for inner, element in zip(model, value, strict=True):
            yield from _structs(inner, element)


# The JSON Schema


def test_the_schema_file_is_up_to_date() -> None:
    generated = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    # Compared as a truth, because a diff of two thousand lines would hide what to do.
    current = SCHEMA_FILE.read_text(encoding="utf-8") == generated
    assert current, f"the model has changed and {SCHEMA_FILE.name} has not: run `make schema`"


def test_the_schema_is_a_schema() -> None:
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == "convoscope.conversation/1.json"
    assert schema["$defs"]["Conversation"]["required"] == ["schema", "id"]


@pytest.mark.parametrize(
    "bad",
    [
        {"id": "c"},
        {"schema": "convoscope.conversation/2", "id": "c"},
        document(mood="sunny"),
        *(WRONG_TYPES[path] for path in WRONG_TYPES),
    ],
)
def test_the_schema_refuses_what_the_model_refuses(bad: dict[str, Any]) -> None:
    assert not Draft202012Validator(json_schema()).is_valid(bad)


def test_the_schema_takes_the_least_that_is_a_conversation() -> None:
    assert Draft202012Validator(json_schema()).is_valid(document())
