"""What a reader did not take: kept once by its path, and noted where it looks like something that was said."""

from __future__ import annotations

from typing import Any

from convoscope.conversation import Conversation, Participant, Text, Utterance
from convoscope.ingest.kits.leftovers import UNREAD, Leftovers, with_leftovers
from convoscope.ingest.report import Notes

TALK = Conversation(
    id="a",
    participants=(Participant("user", "user"),),
    timeline=(Utterance(seq=0, speaker="user", intended=Text("Good morning.\nIs it open?", "message")),),
)


def kept(*records: Any, known: frozenset[str] = frozenset()) -> tuple[Any, list[str]]:
    notes = Notes()
    conversation = with_leftovers(TALK, records, notes, known)
    return conversation.extras.get(UNREAD), [note.code for note in notes.taken]


def test_what_the_conversation_says_is_not_kept_again() -> None:
    assert kept({"content": "Good morning.\nIs it open?", "role": "user"}) == (None, [])


def test_parts_that_were_joined_are_there() -> None:
    assert kept({"parts": [{"text": "Good morning."}, {"text": "Is it open?"}]}) == (None, [])


def test_control_text_was_said_by_no_person() -> None:
    assert kept({"content": "Is it open? ###STOP###"}) == (None, [])


def test_an_unknown_field_is_kept_by_its_path() -> None:
    assert kept({"span": {"colour": "red", "size": 12.5}}) == (
        {"span.colour": ["red"], "span.size": [12.5]},
        ["field_not_read"],
    )


def test_a_value_is_kept_once_for_all_spans() -> None:
    spans = [{"version": "1.2"}, {"version": "1.2"}, {"version": "1.3"}]
    assert kept(spans) == ({"version": ["1.2", "1.3"]}, ["field_not_read"])


def test_words_that_were_not_read_are_set_aside() -> None:
    assert kept({"messages": [{"role": 7, "content": "Where are you?"}]}) == (
        {"messages.content": ["Where are you?"]},
        ["field_not_read", "text_not_read"],
    )


def test_json_in_a_text_is_looked_into() -> None:
    assert kept({"input": '{"content": "Is it open?", "mood": "glad"}'}) == (
        {"input.mood": ["glad"]},
        ["field_not_read"],
    )


def test_an_attribute_of_otlp_is_named_by_its_key() -> None:
    attributes = [
        {"key": "server.port", "value": {"intValue": "443"}},
        {"key": "empty", "value": {"stringValue": None}},
    ]
    assert kept({"attributes": attributes})[0] == {"attributes.server.port": [443], "attributes.key": ["empty"]}


def test_known_names_are_left_out_at_any_depth() -> None:
    assert kept({"id": "x", "inner": [{"id": "y"}]}, known=frozenset({"id"})) == (None, [])


def test_a_long_text_is_described_and_noted() -> None:
    value, codes = kept({"image": "A" * 5000})
    assert value == {"image": ["(5000 characters left out)"]}
    assert codes == ["field_not_read", "embedded_data"]


def test_a_value_that_is_nested_without_end_is_kept_as_text() -> None:
    value: Any = "deep"
    for _ in range(200):
        value = [value]
    ((path, (text,)),) = kept({"nest": value})[0].items()
    assert path == "nest"
    assert "deep" in text


def rest(record: Any, *given: Any, known: frozenset[str] = frozenset()) -> list[tuple[str, str]]:
    """What is noted of a record of which these parts were given with the conversation."""
    notes = Notes()
    leftovers = Leftovers(notes, known)
    leftovers.kept_with(TALK, given)
    notes.hand_over()
    leftovers.note_rest([record])
    return [(note.code, note.detail) for note in notes.taken]


def test_what_was_given_with_no_conversation_is_noted() -> None:
    talk = {"content": "Is it open?", "mood": "glad"}
    record = {"talk": talk, "child": {"content": "The road is closed."}, "other": {"name": "road"}}
    assert rest(record, talk) == [
        ("field_in_no_conversation", "child.content, other.name"),
        ("text_in_no_conversation", "child.content"),
    ]


def test_of_the_rest_only_texts_count_that_say_something_new() -> None:
    record = {"copy": '"Is it open?"', "short": "ok", "at": "2026-03-02T09:00:00Z", "count": 12, "id": "x1234"}
    assert rest(record, known=frozenset({"id"})) == []


def test_what_was_noted_already_is_not_noted_again() -> None:
    notes = Notes()
    leftovers = Leftovers(notes)
    refused = {"title": "An empty talk", "inner": {"text": "Nothing here."}}
    leftovers.leave([refused])
    leftovers.note_rest([{"talks": [refused]}])
    assert notes.taken == []
