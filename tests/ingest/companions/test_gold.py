"""Gold labels: what the validator refuses and where, and how labels come to conversations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Annotations
from convoscope.errors import InputError
from convoscope.ingest.companions.gold_files import check_file, check_paths, check_value, converted
from convoscope.ingest.discover import find_inputs
from support.logs import chat, read, write, write_json


def gold(**other: Any) -> dict[str, Any]:
    """The example of the seed."""
    return {
        "schema_version": 1,
        "sample_id": "ES2002a",
        "dataset": "ami",
        "annotator": "human",
        "annotated_at": "2026-01-08T12:00:00Z",
        "topics": [{"label": "pricing", "span": [0, 1], "confidence": 1.0, "notes": "budget"}],
        "risks": [{"type": "escalation", "severity": "high", "segment_ids": [1], "evidence": "a manager"}],
        "actions": [{"description": "Send pricing proposal", "assignee_role": "agent", "verbatim": "I'll send it"}],
        **other,
    }


def wrong(**other: Any) -> list[tuple[str, str]]:
    """JSON path and what is allowed, of each error."""
    checked = check_value(gold(**other), "g")
    assert (checked.gold is None) == bool(checked.errors)
    return [(one.path, one.allowed) for one in checked.errors]


def test_the_example_of_the_seed_is_valid() -> None:
    assert wrong() == []


@pytest.mark.parametrize("families", [{"topics": None}, {"risks": []}, {"actions": None, "topics": []}])
def test_a_family_may_be_unlabelled_or_empty(families: dict[str, Any]) -> None:
    assert wrong(**families) == []


def test_a_topic_outside_the_vocabulary_is_refused_with_what_was_meant() -> None:
    assert wrong(topics=[{"label": "support"}]) == [("$.topics[0].label", "technical_support")]
    (path, allowed), *_ = wrong(topics=[{"label": "pricing"}, {"label": "weather"}])
    assert path == "$.topics[1].label"
    assert "warranty" in allowed


def test_a_label_is_written_as_in_the_vocabulary() -> None:
    assert wrong(topics=[{"label": "Bug Report"}]) == [("$.topics[0].label", "bug_report")]


def test_a_risk_has_the_severities_of_its_type() -> None:
    assert wrong(risks=[{"type": "compliance", "severity": "low"}]) == [
        ("$.risks[0].severity", "medium, high, critical")
    ]
    assert wrong(risks=[{"type": "churn", "severity": "low"}])[0][0] == "$.risks[0].type"


def test_required_fields_are_missed_where_they_should_be() -> None:
    value = gold(actions=[{"assignee_role": "agent"}])
    del value["dataset"]
    assert {one.path for one in check_value(value, "g").errors} == {"$.dataset", "$.actions[0].description"}


def test_an_unknown_field_is_refused_with_those_there_are() -> None:
    assert wrong(topics=[{"label": "pricing", "segment": 3}]) == [
        ("$.topics[0].segment", "confidence, label, notes, span")
    ]


def test_other_versions_types_and_roles_are_refused() -> None:
    assert wrong(schema_version=2)[0][0] == "$.schema_version"
    assert wrong(topics="pricing")[0][0] == "$.topics"
    assert wrong(actions=[{"description": "Call", "assignee_role": "boss"}]) == [
        ("$.actions[0].assignee_role", "agent, customer, team, unknown")
    ]
    assert wrong(actions=[{"description": " … "}])[0][0] == "$.actions[0].description"


def test_identical_labels_are_refused() -> None:
    risk = {"type": "churn_risk", "severity": "high", "segment_ids": [1]}
    assert wrong(risks=[risk, {**risk, "segment_ids": [2]}]) == []
    assert wrong(risks=[risk, {**risk, "evidence": "other words"}])[0][0] == "$.risks[1]"
    assert wrong(topics=[{"label": "refund", "span": [0, 1]}, {"label": "refund", "span": [4, 5]}]) == []
    assert wrong(topics=[{"label": "refund"}, {"label": "refund"}])[0][0] == "$.topics[1]"
    assert wrong(actions=[{"description": "Call back"}, {"description": "call  back!"}])[0][0] == "$.actions[1]"


def test_spans_run_forwards_and_segments_exist() -> None:
    assert wrong(topics=[{"label": "refund", "span": [5, 4]}])[0][0] == "$.topics[0].span"
    assert wrong(topics=[{"label": "refund", "span": [-1, 4]}])[0][0] == "$.topics[0].span[0]"
    value = gold(topics=[{"label": "refund", "span": [0, 9]}])
    errors = check_value(value, "g", segments=range(3)).errors
    assert [(one.path, one.allowed) for one in errors] == [("$.topics[0].span[1]", "0 to 2")]


def test_the_sample_has_the_name_of_its_file(tmp_path: Path) -> None:
    assert check_file(write_json(tmp_path / "ES2002a_gold.json", gold())).errors == ()
    (error,) = check_file(write_json(tmp_path / "other_gold.json", gold())).errors
    assert (error.path, error.allowed) == ("$.sample_id", "other")
    (error,) = check_file(write_json(tmp_path / "ES2002a.json", gold())).errors
    assert error.allowed == "a file called ES2002a_gold.json"


def test_a_folder_is_checked_with_all_below_it(tmp_path: Path) -> None:
    write_json(tmp_path / "a" / "ES2002a_gold.json", gold())
    write_json(tmp_path / "b" / "ES2002a_gold.json", gold())
    (tmp_path / "b" / "bad_gold.json").write_text("{")
    empty = tmp_path / "empty"
    empty.mkdir()
    count, errors, others = check_paths(tmp_path)
    assert others == []
    assert count == 3
    assert [(Path(one.file).name, one.path) for one in errors] == [
        ("ES2002a_gold.json", "$.sample_id"),
        ("bad_gold.json", "$"),
    ]
    with pytest.raises(InputError, match="holds no gold label file"):
        check_paths(empty)


def test_the_published_shape_is_converted() -> None:
    theirs = {
        "schema_version": 1,
        "meeting_id": "call",
        "topics": [{"label": "support", "segment_ids": [2, 0]}],
        "risks": [{"type": "churn", "severity": "low", "segment_id": 0, "evidence": "leaving"}],
        "actions": [{"text": "Call back", "speaker_id": "spk_agent", "segment_ids": [1]}],
    }
    mine = converted(theirs, "invented", "upstream")
    assert mine["topics"] == [{"label": "technical_support", "span": [0, 2]}]
    assert mine["risks"] == [{"type": "churn_risk", "severity": "low", "segment_ids": [0], "evidence": "leaving"}]
    assert mine["actions"] == [{"description": "Call back", "assignee_role": "agent", "segment_ids": [1]}]
    assert check_value(mine, "g").errors == ()
    with pytest.raises(InputError, match="published shape"):
        converted([], "invented", "upstream")
    with pytest.raises(InputError, match="list of objects"):
        converted({"meeting_id": "x", "topics": ["a"]}, "invented", "upstream")


def test_an_error_of_the_schema_does_not_hide_those_of_words() -> None:
    found = wrong(annotated_at="yesterday", topics=[{"label": 3}, {"label": "weather"}], risks=[{"type": "escalation"}])
    assert [path for path, _ in found] == [
        "$.topics[0].label", "$.risks[0].severity", "$.annotated_at", "$.topics[1].label",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("families", "message", "allowed"),
    [
        (
            {"risks": [{"type": "escalation", "severity": "high", "segment_ids": [-1]}]},
            "cannot be -1",
            "a whole number >= 0",
        ),
        ({"topics": [{"label": 3}]}, "cannot be 3", "a string"),
        ({"topics": "refund"}, 'cannot be "refund"', "a list or null"),
        ({"topics": [{"label": "refund", "confidence": 2}]}, "cannot be 2", "a number <= 1.0"),
        ({"topics": [{"label": "refund", "span": [1, 2, 3]}]}, "cannot be [1, 2, 3]", "a list of length 2"),
        ({"annotator": ""}, 'cannot be ""', "a string of length >= 1"),
    ],
)
def test_what_is_allowed_is_said_in_words(families: dict[str, Any], message: str, allowed: str) -> None:
    (error,) = check_value(gold(**families), "g").errors
    assert (error.message, error.allowed) == (message, allowed)


def test_places_in_another_order_are_the_same_label() -> None:
    risk = {"type": "churn_risk", "severity": "high", "segment_ids": [3, 4]}
    assert wrong(risks=[risk, {**risk, "segment_ids": [4, 3]}]) == [("$.risks[1]", "each label once")]


@pytest.mark.parametrize(
    ("field", "value"),
    [("annotated_at", "yesterday"), ("annotator", "  "), ("dataset", " "), ("sample_id", "a/b"), ("sample_id", "a\0")],
)
def test_who_labelled_what_and_when(field: str, value: str) -> None:
    assert [path for path, _ in wrong(**{field: value})] == [f"$.{field}"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b'"confidence": 1.0', b'"confidence": NaN', "a value that is not a number"),
        (b"budget", b"\xff", "bytes that are not UTF-8"),
        (b'"label": "pricing"', b'"label": "refund", "label": "pricing"', "'label' twice"),
        (b'"dataset": "ami"', b'"dataset": "x", "dataset": "ami"', "'dataset' twice"),
    ],
)
def test_gold_is_strict_json(tmp_path: Path, old: bytes, new: bytes, words: str) -> None:
    path = tmp_path / "ES2002a_gold.json"
    text = json.dumps(gold()).encode()
    assert old in text
    path.write_bytes(text.replace(old, new))
    (error,) = check_file(path).errors
    assert words in error.message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "Agent: Hello.\nCustomer: Hi.\n"),
        ("a.srt", "1\n00:00:00,000 --> 00:00:01,000\nHello.\n\n2\n00:00:01,000 --> 00:00:02,000\nHi.\n"),
        ("a.vtt", "WEBVTT\n\n00:00.000 --> 00:01.000\nHello.\n\n00:01.000 --> 00:02.000\nHi.\n"),
        ("a.json", '{"segments": [{"id": 0, "text": "Hello."}, {"id": 1, "text": "Hi."}]}'),
    ],
)
def test_segments_exist_in_transcripts_of_every_kind(tmp_path: Path, name: str, text: str) -> None:
    write_json(tmp_path / "goldens" / "a_gold.json", gold(sample_id="a", topics=[{"label": "refund", "span": [1, 7]}]))
    write(tmp_path / "transcripts" / name, text)
    (error,) = check_paths(tmp_path / "goldens").errors
    assert (error.path, error.message) == ("$.topics[0].span[1]", "segment 7 is not in the transcript")
    with pytest.raises(InputError, match="no such folder"):
        check_paths(tmp_path / "goldens", tmp_path / "nowhere")


def test_files_of_other_names_are_told_to_be_left(tmp_path: Path) -> None:
    write_json(tmp_path / "goldens" / "ES2002a_gold.json", gold())
    other = write_json(tmp_path / "goldens" / "b.json", gold())
    write_json(tmp_path / "transcripts" / "c.json", {})
    assert check_paths(tmp_path).others == [other]


UNUSABLE = Annotations(origin="gold", extraction=dict.fromkeys(("topics", "risks", "actions"), "error"))
"""What is left of gold labels with an error: that there were some."""


class TestBesideLogs:
    def test_labels_come_to_the_conversation_of_their_sample(self, tmp_path: Path) -> None:
        write_json(tmp_path / "calls" / "ES2002a.json", chat("ES2002a"))
        write_json(tmp_path / "calls" / "other.json", chat("other"))
        write_json(tmp_path / "gold" / "ES2002a_gold.json", gold())
        result = read(tmp_path / "calls", tmp_path / "gold")
        by_id = {one.id: one for one in result.conversations}
        (labels,) = by_id["ES2002a"].annotations
        assert (labels.origin, labels.annotator) == ("gold", "human")
        assert [topic.label for topic in labels.topics or ()] == ["pricing"]
        assert by_id["other"].annotations == ()

    def test_each_input_has_its_own_labels_and_not_those_of_all(self, tmp_path: Path) -> None:
        for name in ("a", "b", "c"):
            write_json(tmp_path / f"{name}.json", chat(name))
            write_json(tmp_path / f"{name}_gold.json", gold(sample_id=name))
        companions = {
            one.name: [Path(file.path).name for file in one.companions] for one in find_inputs([tmp_path]).inputs
        }
        assert companions == {"a.json": ["a_gold.json"], "b.json": ["b_gold.json"], "c.json": ["c_gold.json"]}

    def test_a_file_of_many_conversations_has_labels_by_their_ids(self, tmp_path: Path) -> None:
        lines = "\n".join(json.dumps(chat(name)) for name in ("a", "b"))
        (tmp_path / "calls.jsonl").write_text(lines)
        write_json(tmp_path / "gold" / "b_gold.json", gold(sample_id="b"))
        assert [bool(one.annotations) for one in read(tmp_path).conversations] == [False, True]

    def test_labels_that_cannot_be_used_are_told(self, tmp_path: Path) -> None:
        write_json(tmp_path / "a.json", chat("a"))
        write_json(tmp_path / "a_gold.json", gold(sample_id="a", topics=[{"label": "weather"}]))
        result = read(tmp_path)
        assert result.conversations[0].annotations == (UNUSABLE,)
        assert result.report.set_aside["gold_left_out"].count == 1

    def test_labels_whose_file_has_another_name_are_told(self, tmp_path: Path) -> None:
        write_json(tmp_path / "calls" / "a.json", chat("a"))
        write_json(tmp_path / "gold" / "x_gold.json", gold(sample_id="a"))
        result = read(tmp_path / "calls", tmp_path / "gold")
        assert result.conversations[0].annotations == (UNUSABLE,)
        assert result.report.set_aside["gold_left_out"].count == 1


@pytest.mark.parametrize(
    ("other", "paths"),
    [
        ({"topics": [{"label": "weather"}]}, ["$.topics[0].label", "$.sample_id"]),
        ({"dataset": 3}, ["$.dataset", "$.sample_id"]),
        ({"topics": [{"label": "weather"}], "dataset": 3}, ["$.dataset", "$.topics[0].label", "$.sample_id"]),
    ],
)
def test_a_wrong_name_is_said_beside_other_errors(other: dict[str, Any], paths: list[str], tmp_path: Path) -> None:
    path = write_json(tmp_path / "other_gold.json", gold(**other))
    assert [one.path for one in check_file(path).errors] == paths
    cut = write(tmp_path / "cut_gold.json", json.dumps(gold())[:60])
    assert [one.path for one in check_file(cut).errors] == ["$"]  # nobody knows what it is called
