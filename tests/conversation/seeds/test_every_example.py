"""What holds for each of the seed examples: it reads, it is written back alike, it refers to what it holds."""

import json

import pytest
from jsonschema import Draft202012Validator

from convoscope.conversation import from_json, json_schema, to_json
from support.seed_examples import FOLDER, NAMES, example


def test_there_is_an_example_for_each_seed_and_no_other() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_survives_a_round_trip(name: str) -> None:
    conversation = example(name)
    assert from_json(to_json(conversation)) == conversation


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_valid_by_the_json_schema(name: str) -> None:
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(json.loads((FOLDER / f"{name}.json").read_bytes()))


@pytest.mark.parametrize("name", NAMES)
def test_an_example_refers_only_to_what_it_holds(name: str) -> None:
    conversation = example(name)
    spoken = {utterance.seq for utterance in conversation.utterances}
    speakers = set(conversation.roles)
    for item in conversation.items:
        assert {item.asked, item.answered} <= spoken
    for frame in conversation.frames:
        assert frame.seq in spoken
    for annotations in conversation.annotations:
        for family in (annotations.topics, annotations.risks, annotations.actions, annotations.entities):
            for finding in family or ():
                assert set(finding.events) <= spoken
        for topic in annotations.topics or ():
            assert set(topic.span or ()) <= spoken
    for utterance in conversation.utterances:
        assert utterance.cut_off_by in speakers | {""}
    for track in conversation.recording.tracks if conversation.recording else ():
        assert set(track.channels) <= speakers


@pytest.mark.parametrize("name", NAMES)
def test_a_tool_call_is_answered_in_every_example(name: str) -> None:
    conversation = example(name)
    assert list(conversation.tool_results) == [call.seq for call in conversation.tool_calls]
