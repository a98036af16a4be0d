"""Files of evaluation items: what is told to be one, which belong together, and what reading says about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.analysis.words import reading_text
from convoscope.conversation import Source
from convoscope.errors import NothingReadable
from convoscope.ingest.report import Problem
from support.logs import ASK as MESSAGE
from support.logs import CHAT, EXAMPLES, counts, places, read, write, write_json, write_lines
from views.standard_data.test_canonical import ASK, SEED, story

FORMAT = "standard-data"


def taken_for(path: Path) -> str:
    """The format that a file is taken for; "" where nobody reads it."""
    try:
        reading = convoscope.read(path)
        list(reading)
    except NothingReadable:
        return ""
    return reading.report.files[path.name].format


class TestDetection:
    @pytest.mark.parametrize(
        "item",
        [
            SEED,
            ASK,
            {"agent_response": "4"},
            {"novaeval_item_type": "agent"},
            {"retrieved_context": [["a"]]},
            {"metrics_collected": [{"type": "llm_metrics", "ttft": 0.4}]},
            {"llm_metrics": [{"ttft": 0.4}]},
            {"question": "2 + 2?", "answer": "4"},
            {"query": "2 + 2?", "expected_output": "4"},
            {"answer": "4", "ground_truth": "4"},
            {"input_text": "2 + 2?", "output_text": "4"},
            {"conversation_context": {"turns": []}},
            {"conversation": [{"role": "user", "content": "Hello."}]},
            {"speaker": "user", "message": "Hello."},
            {"stt.transcript": "Hello.", "stt.confidence": 0.9},
            {"attributes": {"tts.input_text": "Hello."}},
            # An id and a ground truth make no evaluation record of a voice log.
            {"id": "7", "agent_task": "2 + 2?", "agent_response": "4", "ground_truth": "4"},
            {"id": 7, "agent_response": "4", "ground_truth": {"sum": 4}},
            {"id": "7", "question": "2 + 2?", "answer": "4", "ground_truth": "4"},
        ],
        ids="+".join,
    )
    def test_items(self, tmp_path: Path, item: dict[str, Any]) -> None:
        assert taken_for(write_json(tmp_path / "item.json", item)) == FORMAT
        assert taken_for(write_lines(tmp_path / "items.jsonl", item, item)) == FORMAT
        assert taken_for(write_json(tmp_path / "items.json", [item])) == FORMAT

    @pytest.mark.parametrize(
        ("record", "format"),
        [
            ({**CHAT, "ground_truth": "closed", "agent_response": "It is closed."}, "openai-chat"),
            ({"messages": [MESSAGE], "question": "Open?", "answer": "No."}, "openai-chat"),
            ({**MESSAGE, "conversation_id": "c-1"}, "openai-chat"),
            ({"input": [{"type": "message", **MESSAGE}], "output": []}, "openai-responses"),
            ({"schema": "convoscope.conversation/1", "id": "c-1", "items": [{"id": "i"}]}, "convoscope"),
            ({"event_type": "state_entered", "state": "greeting", "conversation_id": "c-1"}, "state-events"),
            ({"id": 1, "answer": "4"}, ""),
            ({"question": "Open?"}, ""),
            ({"items": [{"sku": "A-1"}]}, ""),
            ({"metadata": {"model": "m"}, "trace": []}, ""),
            ({"name": "Anna"}, ""),
        ],
        ids=lambda given: given if isinstance(given, str) else "+".join(given),
    )
    def test_what_is_none(self, tmp_path: Path, record: dict[str, Any], format: str) -> None:
        assert taken_for(write_json(tmp_path / "log.json", record)) == format

    def test_why(self, tmp_path: Path) -> None:
        outcome = read(write_json(tmp_path / "item.json", {"task_id": 7, "retrieved_context": [["a"]]}))
        assert outcome.report.files["item.json"].why == '"retrieved_context" is a field of an evaluation item'

    def test_the_other_examples_stay_what_they_are(self) -> None:
        formats = {name: file.format for name, file in read(EXAMPLES).report.files.items() if file.conversations}
        assert {name.split("/")[0] for name, format in formats.items() if format == FORMAT} == {FORMAT, "sound"}
        assert len({name.split("/")[0] for name in formats}) > 3


class TestIds:
    def test_items_without_an_id_stand_for_themselves(self, tmp_path: Path) -> None:
        outcome = read(write_lines(tmp_path / "items.jsonl", ASK, ASK))
        assert outcome.ids == ["items.jsonl:1", "items.jsonl:2"]
        assert outcome.conversations[1].source == Source(format=FORMAT, files=("items.jsonl",), record="2")

    def test_a_turn_names_its_conversation_where_nothing_else_does(self, tmp_path: Path) -> None:
        outcome = read(write_json(tmp_path / "item.json", {**ASK, "turn_id": "span-1"}))
        assert outcome.ids == ["span-1"]

    def test_items_of_one_conversation_are_joined(self, tmp_path: Path) -> None:
        records = [
            {**ASK, "conversation_id": 7},
            {**ASK, "conversation_id": "8"},
            {"agent_task": "Thanks.", "agent_response": "Bye.", "conversation_id": "7"},
            {"agent_task": "Still there?", "conversation_id": 7.0},
        ]
        outcome = read(write_lines(tmp_path / "items.jsonl", *records))
        by_id = {one.id: one for one in outcome.conversations}
        assert sorted(by_id) == ["7", "8"]
        assert story(by_id["7"])[2:] == ["user: Thanks.", "assistant: Bye.", "user: Still there?"]
        assert by_id["7"].source.record == "1, 3, 4"

    @pytest.mark.parametrize("name", ["conversation_id", "session_id", "task_id", "source_trace_id"])
    def test_ids_that_join(self, tmp_path: Path, name: str) -> None:
        outcome = read(write_lines(tmp_path / "items.jsonl", {**ASK, name: "x"}, {**ASK, name: "x"}))
        assert [(one.id, len(one.items)) for one in outcome.conversations] == [("x", 2)]

    def test_the_first_of_them_counts(self, tmp_path: Path) -> None:
        shared = {**ASK, "task_id": "t", "source_trace_id": "s"}
        outcome = read(
            write_lines(
                tmp_path / "items.jsonl", {**shared, "session_id": "a"}, {**shared, "session_id": "b"}, shared, shared
            )
        )
        assert sorted((one.id, len(one.items)) for one in outcome.conversations) == [("a", 1), ("b", 1), ("t", 2)]

    def test_two_agents_at_one_task_are_two_conversations(self, tmp_path: Path) -> None:
        records = [{**ASK, "task_id": "t", "agent_name": name} for name in ("ivy", "fern", "ivy")]
        outcome = read(write_lines(tmp_path / "items.jsonl", *records))
        found = sorted((one.dimensions["agent"], len(one.items)) for one in outcome.conversations)
        assert found == [("fern", 1), ("ivy", 2)]

    def test_turns_are_joined_though_only_one_side_names_the_agent(self, tmp_path: Path) -> None:
        outcome = read(
            write_lines(
                tmp_path / "turns.jsonl",
                {"session_id": "s", "speaker": "user", "message": "Hello.", "turn_position": 0},
                {"session_id": "s", "speaker": "ivy", "message": "Hi!", "turn_position": 1, "agent_name": "Ivy"},
            )
        )
        assert story(outcome.only) == ["user: Hello.", "ivy: Hi!"]
        assert outcome.only.roles == {"user": "user", "ivy": "assistant"}

    def test_items_in_several_files(self, tmp_path: Path) -> None:
        write_json(tmp_path / "a.json", {**ASK, "conversation_id": "c"})
        write_json(tmp_path / "b.json", {**ASK, "agent_task": "And then?", "conversation_id": "c"})
        outcome = read(tmp_path)
        assert (outcome.ids, outcome.only.source.files) == (["c"], ("a.json", "b.json"))

    def test_each_file_that_told_of_a_conversation_is_told_of(self, tmp_path: Path) -> None:
        write_lines(tmp_path / "a.jsonl", {**ASK, "task_id": "007"}, {**ASK, "task_id": "7"})
        more = {**ASK, "agent_task": "And then?"}
        write_lines(tmp_path / "b.jsonl", {**more, "task_id": "007"}, {**more, "task_id": 7}, ASK)
        write(tmp_path / "c.csv", "task_id,agent_task\n007,Where?\n")
        write_lines(tmp_path / "d.jsonl", {**ASK, "task_id": "8"}, {"agent_task": None, "task_id": []})
        report = read(tmp_path).report
        # 007 of a, b and c; 7 of a and b; one of b alone; 8 of d
        assert report.conversations == 4
        assert {name: file.conversations for name, file in report.files.items()} == {
            "a.jsonl": 2,
            "b.jsonl": 3,
            "c.csv": 1,
            "d.jsonl": 1,
        }
        assert (report.records_seen, report.records_used) == (8, 7)
        assert reading_text(report).startswith("read 4 conversations from 4 files (standard-data); 1 of 8 records")

    @pytest.mark.parametrize("id", ["", None, True, [], {}])
    def test_what_is_no_id(self, tmp_path: Path, id: Any) -> None:
        outcome = read(write_lines(tmp_path / "items.jsonl", {**ASK, "conversation_id": id}, ASK))
        assert outcome.ids == ["items.jsonl:1", "items.jsonl:2"]
        said = {} if id in ("", None) else {"not_an_id": ["items.jsonl:1 conversation_id"]}
        assert places(outcome.report.set_aside) == said


class TestWrapped:
    @pytest.mark.parametrize("name", ["items", "data", "dataset_items"])
    def test_items_in_a_document(self, tmp_path: Path, name: str) -> None:
        items = [{**ASK, "session_id": 1}, ASK, {**ASK, "session_id": 1}]
        outcome = read(write_json(tmp_path / "set.json", {"dataset_slug": "spring", name: items}))
        assert [(one.id, len(one.items)) for one in outcome.conversations] == [("1", 2), ("set#2", 1)]
        assert outcome.conversations[0].extras == {"document": {"dataset_slug": "spring"}}
        assert outcome.report.unknown == {"document.dataset_slug": 1}

    def test_documents_on_lines(self, tmp_path: Path) -> None:
        outcome = read(write_lines(tmp_path / "pages.jsonl", {"items": [ASK]}, {"items": [ASK, ASK]}))
        assert outcome.ids == ["pages.jsonl:1", "pages.jsonl:2#1", "pages.jsonl:2#2"]

    def test_what_is_no_item_among_them(self, tmp_path: Path) -> None:
        outcome = read(write_json(tmp_path / "set.json", {"items": [ASK, 3, {"sku": "A-1"}]}))
        assert outcome.ids == ["set#1"]
        assert outcome.problem.message == "2 of 3 items cannot be used: item 2 is not an object but a number"


class TestWhatReadingSays:
    def test_names_that_are_not_of_the_schema(self, tmp_path: Path) -> None:
        item = {**ASK, "colour": "red", "session_id": "s", "tool_calls": [{"tool_name": "find", "shade": 1}]}
        outcome = read(write_json(tmp_path / "item.json", item))
        assert outcome.report.unknown == {"item.colour": 1, "item.tool_calls[].shade": 1}
        assert outcome.only.items[0].extras["unknown"] == {"colour": "red", "session_id": "s"}

    def test_what_was_set_aside_and_what_was_put_right(self, tmp_path: Path) -> None:
        item = {**ASK, "agent_exit": "perhaps", "input_text": "Something else.", "ground_truth": {"a": 1}}
        outcome = read(write_lines(tmp_path / "items.jsonl", ASK, item))
        assert outcome.report.ignored == {}
        assert places(outcome.report.set_aside) == {"not_a_boolean": ["items.jsonl:2 agent_exit"]}
        assert places(outcome.report.repaired) == {
            "kept_as_json": ["items.jsonl:2 ground_truth"],
            "twins_differ": ["items.jsonl:2 input_text"],
        }
        assert outcome.conversations[1].items[0].expected.ground_truth == '{"a": 1}'

    def test_what_was_concluded_about_times(self, tmp_path: Path) -> None:
        turns = [{"speaker": "user", "message": "Hi.", "timestamp": f"2026-03-02T09:00:0{n}"} for n in range(2)]
        item = {"conversation_context": {"turns": turns}, "stt_data": {"span_start_time": "2026-03-02T09:00:00Z"}}
        report = read(write_json(tmp_path / "item.json", item)).report
        assert counts(report.inferred) == {"time_zone_taken_as_utc": 1}

    def test_a_value_that_is_lost_is_found_again(self, tmp_path: Path) -> None:
        lost = {**ASK, "conversation_id": "c", "metrics_collected": [{"type": "llm_metrics", "ttft": "fast"}]}
        write_lines(tmp_path / "a.jsonl", {**ASK, "conversation_id": "c"})
        write_lines(tmp_path / "b.jsonl", ASK, lost)
        write_json(tmp_path / "c.json", {"items": [ASK, {**ASK, "agent_exit": "perhaps"}]})
        write(tmp_path / "d.csv", "agent_task,tool_calls\nWhere?,[1\n")
        # By the file it stands in, though the conversation begins in another; in a document by its path.
        assert places(read(tmp_path).report.set_aside) == {
            "not_a_number": ["b.jsonl:2 metrics_collected[0].ttft"],
            "not_a_boolean": ["c.json items[1].agent_exit"],
            "bad_json": ["d.csv:2 tool_calls"],
        }

    def test_what_told_nothing_is_not_lost(self, tmp_path: Path) -> None:
        item = {**ASK, "metadata": "", "retrieval_query": ["a", None], "colour": None}
        report = read(write_json(tmp_path / "item.json", item)).report
        assert (report.ignored, report.set_aside) == ({"empty_text": 1, "null_element": 1}, {})
        assert report.unknown == {}

    def test_a_turn_that_is_there_twice(self, tmp_path: Path) -> None:
        item = {**ASK, "conversation_id": "c", "turn_id": "1"}
        write_lines(tmp_path / "a.jsonl", item)
        write_lines(tmp_path / "b.jsonl", {**item, "turn_id": "2"}, item)
        outcome = read(tmp_path)
        assert [one.id for one in outcome.only.items] == ["1", "2", "1~2"]
        assert places(outcome.report.repaired) == {"turn_id_twice": ["b.jsonl:2 turn_id 1, now 1~2"]}

    def test_a_clean_item_says_nothing(self, tmp_path: Path) -> None:
        report = read(write_json(tmp_path / "item.json", SEED)).report
        assert (report.ignored, report.repaired, report.inferred, report.unknown) == ({}, {}, {}, {})

    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            ("[1]", "is not an object but a list"),
            ('"text"', "is not an object but a text"),
            ("null", "is not an object but null"),
            ("{}", "has no field of an evaluation item: it is empty"),
            ('{"agent_task": null}', "has no field of an evaluation item: it is empty"),
            ('{"sku": "A-1"}', "has no field of an evaluation item: its fields are sku"),
            ('{"agent_task": ', "JSON is cut off at the end"),
        ],
    )
    @pytest.mark.parametrize("joined", [False, True])
    def test_a_bad_item_never_stops_a_file(self, tmp_path: Path, bad: str, message: str, joined: bool) -> None:
        item = json.dumps({**ASK, "task_id": 1} if joined else ASK)
        outcome = read(write(tmp_path / "items.jsonl", "\n".join([item, bad, item])))
        assert sum(len(one.items) for one in outcome.conversations) == 2
        assert isinstance(outcome.problem, Problem)
        assert (outcome.problem.line, outcome.problem.message) == (2, message)
        assert outcome.problem.hint

    def test_a_bad_item_of_a_conversation_costs_itself(self, tmp_path: Path) -> None:
        good = {**ASK, "conversation_id": "c"}
        outcome = read(write_lines(tmp_path / "items.jsonl", good, {"conversation_id": "c", "sku": "A-1"}, good))
        assert len(outcome.only.items) == 2
        assert counts(outcome.report.set_aside) == {"not_an_item": 1}
        assert (outcome.report.records_seen, outcome.report.records_used) == (3, 2)

    def test_every_field_can_be_wrong(self, tmp_path: Path) -> None:
        fields = [name for name in SEED if name not in ("agent_task", "metadata")]
        records = [{"agent_task": "Where?", name: [{"a": [None]}]} for name in fields]
        outcome = read(write_lines(tmp_path / "items.jsonl", *records))
        assert len(outcome.conversations) == len(records)
        assert outcome.report.problems == []
