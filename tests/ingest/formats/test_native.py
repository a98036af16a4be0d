"""Our own conversation JSON, read back: kept whole, and refused with the path of what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.conversation import from_json, to_json
from support.logs import EXAMPLES, Outcome, read, write_json, write_lines
from support.losses import lost

OURS = sorted((EXAMPLES / "convoscope").glob("*.json"))
SMALL: dict[str, Any] = {
    "schema": "convoscope.conversation/1",
    "id": "small",
    "participants": [{"id": "user", "role": "user"}],
    "timeline": [{"type": "utterance", "seq": 0, "speaker": "user", "intended": {"text": "Hello?"}}],
}


def small(tmp_path: Path, **changes: Any) -> Outcome:
    """Read a good conversation and a changed one after it."""
    return read(write_lines(tmp_path / "all.jsonl", {**SMALL, "id": "good"}, {**SMALL, **changes}))


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_an_example_is_read_as_it_is(path: Path) -> None:
    outcome = read(path)
    assert outcome.only == from_json(path.read_bytes())
    assert outcome.report.files[path.name].format == "convoscope"
    assert (outcome.report.unknown, outcome.report.ignored, outcome.report.problems) == ({}, {}, [])


def test_all_examples_as_lines(tmp_path: Path) -> None:
    wanted = [from_json(path.read_bytes()) for path in OURS]
    path = tmp_path / "all.jsonl"
    path.write_bytes(b"".join(to_json(one) + b"\n" for one in wanted))
    assert read(path).conversations == wanted


def test_a_conversation_that_does_not_say_where_it_comes_from_is_given_its_file(tmp_path: Path) -> None:
    source = read(write_json(tmp_path / "a.json", SMALL)).only.source
    assert (source.format, source.files) == ("convoscope", ("a.json",))


def test_an_unknown_key_is_kept_and_reported(tmp_path: Path) -> None:
    outcome = small(tmp_path, mood="calm")
    assert outcome.conversations[1].extras == {"mood": "calm"}
    assert outcome.report.unknown == {"$.mood": 1}


def test_an_unknown_key_does_not_displace_an_extra_of_the_same_name(tmp_path: Path) -> None:
    record = {**SMALL, "mood": "calm", "extras": {"mood": "angry"}}
    assert lost(record, read(write_json(tmp_path / "a.json", record)).only) == []


def test_an_unknown_key_goes_to_the_nearest_place_that_can_hold_it(tmp_path: Path) -> None:
    event = {**SMALL["timeline"][0], "pace": "slow", "intended": {"text": "Hello?", "tone": "high"}}
    outcome = small(tmp_path, timeline=[event])
    (said,) = outcome.conversations[1].timeline
    assert said.extras == {"pace": "slow", "timeline[0].intended.tone": "high"}
    assert outcome.report.unknown == {"$.timeline[0].pace": 1, "$.timeline[0].intended.tone": 1}


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"id": 7}, "$.id", "Expected `str`, got `int`"),
        ({"timeline": {}}, "$.timeline", "Expected `array`, got `object`"),
        ({"timeline": [{"type": "sneeze", "seq": 0}]}, "$.timeline[0].type", "Invalid value 'sneeze'"),
        ({"timeline": [{"type": "utterance", "speaker": "user"}]}, "$.timeline[0]", "missing required field `seq`"),
        ({"dimensions": {"trial": 2}}, "$.dimensions[...]", "Expected `str`, got `int`"),
        ({"pipeline": "pigeon"}, "$.pipeline", "Invalid enum value 'pigeon'"),
        ({"extras": []}, "$.extras", "Expected `object`, got `array`"),
    ],
)
def test_a_wrong_type_is_a_problem_with_its_path(
    tmp_path: Path, changes: dict[str, Any], field: str, message: str
) -> None:
    outcome = small(tmp_path, **changes)
    assert outcome.ids == ["good"]
    assert (outcome.problem.file, outcome.problem.line, outcome.problem.field) == ("all.jsonl", 2, field)
    assert message in outcome.problem.message
    assert outcome.problem.hint == "see docs/formats/convoscope.md"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": ""}, "a conversation needs an id"),
        ({"participants": []}, "event 0 is spoken by 'user', who is not a participant"),
        ({"timeline": SMALL["timeline"] * 2}, "the timeline must ascend: seq 0 follows 0"),
    ],
)
def test_what_contradicts_itself_is_a_problem(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    outcome = small(tmp_path, **changes)
    assert outcome.ids == ["good"]
    assert (outcome.problem.line, outcome.problem.message) == (2, message)


def test_a_missing_field(tmp_path: Path) -> None:
    anonymous = {key: value for key, value in SMALL.items() if key != "id"}
    outcome = read(write_lines(tmp_path / "all.jsonl", SMALL, anonymous))
    assert outcome.problem.message == "Object missing required field `id`"


def test_another_version_is_told_clearly(tmp_path: Path) -> None:
    outcome = small(tmp_path, schema="convoscope.conversation/2")
    assert outcome.ids == ["good"]
    assert (outcome.problem.line, outcome.problem.field) == (2, "schema")
    assert outcome.problem.message == "is version 2 of the conversation JSON"
    assert outcome.problem.hint == "this version of convoscope reads version 1"


def test_a_line_without_the_tag_among_many(tmp_path: Path) -> None:
    records = [{**SMALL, "id": f"c{number}"} for number in range(5)]
    del records[3]["schema"]
    outcome = read(write_lines(tmp_path / "all.jsonl", *records))
    assert outcome.ids == ["c0", "c1", "c2", "c4"]
    assert (outcome.problem.line, outcome.problem.field) == (4, "schema")
    assert outcome.problem.message == 'no "schema": "convoscope.conversation/1"'
    assert outcome.problem.hint == "add it, or move the record elsewhere"
    assert (outcome.report.records_seen, outcome.report.records_used) == (5, 4)


def test_only_another_version_is_nothing_readable(tmp_path: Path) -> None:
    path = write_json(tmp_path / "a.json", {**SMALL, "schema": "convoscope.conversation/9"})
    with pytest.raises(convoscope.ConvoscopeError, match="is version 9 of the conversation JSON"):
        list(convoscope.read(path))


def test_what_reading_gives_can_be_written_and_read_again(tmp_path: Path) -> None:
    first = read(EXAMPLES / "openai-chat", EXAMPLES / "openai-responses").conversations
    path = tmp_path / "again.jsonl"
    path.write_bytes(b"".join(to_json(one) + b"\n" for one in first))
    again = read(path)
    assert again.conversations == first
    assert json.loads(to_json(first[0]))["schema"] == "convoscope.conversation/1"


CLOCKS = [{"id": name, "kind": name} for name in ("audio", "wall")]


class TestSoundThatEndsBeforeItStarts:
    """A segment from 5 s to 3 s was taken as it stood, and told nobody."""

    def outcome(self, tmp_path: Path, **fields: Any) -> Outcome:
        utterance = {**SMALL["timeline"][0], **fields}
        return read(write_json(tmp_path / "a.json", {**SMALL, "clocks": CLOCKS, "timeline": [utterance]}))

    def test_a_segment_is_set_aside(self, tmp_path: Path) -> None:
        segments = [{"start": 1.0, "end": 2.0}, {"start": 5.0, "end": 3.0}]
        outcome = self.outcome(tmp_path, segments=segments)
        (utterance,) = outcome.only.utterances
        assert [(one.start, one.end) for one in utterance.segments] == [(1.0, 2.0)]
        assert utterance.extras == {"segments": [{"start": 5.0, "end": 3.0}]}
        assert outcome.report.set_aside["end_before_start"].examples == ["a.json segment: 5.0 to 3.0"]

    def test_an_end_is_set_aside_and_the_start_stays(self, tmp_path: Path) -> None:
        outcome = self.outcome(tmp_path, time={"at": 5.0, "until": 3.0})
        (utterance,) = outcome.only.utterances
        assert utterance.time is not None
        assert (utterance.time.at, utterance.time.until) == (5.0, None)
        assert outcome.report.set_aside["end_before_start"].examples == ["a.json time: 5.0 to 3.0"]

    def test_no_length_is_a_length(self, tmp_path: Path) -> None:
        outcome = self.outcome(tmp_path, segments=[{"start": 1.0, "end": 1.0}], time={"at": 1.0, "until": 1.0})
        assert outcome.report.set_aside == {}
        assert len(outcome.only.utterances[0].segments) == 1
