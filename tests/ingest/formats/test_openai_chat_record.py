"""OpenAI chat messages: times, and what stands beside the messages in a record."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.conversation import Clock, Conversation, ExpectedToolCall, Time, Tool
from convoscope.views.tool_outcomes import tool_outcome
from support.logs import ASK, CHAT, EXAMPLES, REPLY, Outcome, counts, read, write_json, write_lines
from support.losses import lost


def record(tmp_path: Path, **beside: Any) -> Outcome:
    """Read a chat with these fields beside its messages."""
    return read(write_json(tmp_path / "log.json", {**CHAT, **beside}))


def timed(tmp_path: Path, *times: Any, name: str = "timestamp") -> Outcome:
    said = [{**message, name: time} for message, time in zip((ASK, REPLY), times, strict=True)]
    return read(write_json(tmp_path / "log.json", {"messages": said}))


def seconds(outcome: Outcome) -> list[float | None]:
    return [None if event.time is None else event.time.at for event in outcome.only.timeline]


class TestTimes:
    def test_iso_with_a_zone(self, tmp_path: Path) -> None:
        outcome = timed(tmp_path, "2026-03-02T09:00:00Z", "2026-03-02T10:00:01.5+01:00")
        assert seconds(outcome) == [1772442000.0, 1772442001.5]
        assert outcome.only.clocks == (Clock(id="wall", kind="wall", source="message.timestamp"),)
        assert outcome.report.inferred == {}

    def test_iso_without_a_zone_is_taken_for_utc(self, tmp_path: Path) -> None:
        outcome = timed(tmp_path, "2026-03-02T09:00:00", "2026-03-02 09:00:01")
        assert seconds(outcome) == [1772442000.0, 1772442001.0]
        assert outcome.report.inferred["time_zone_taken_as_utc"].count == 1  # noted once a conversation

    @pytest.mark.parametrize(
        ("times", "inferred"),
        [
            ((1772442000, 1772442001.5), "time_in_epoch_s"),
            ((1772442000000, 1772442001500), "time_in_epoch_ms"),
            ((1772442000000000, 1772442001500000), "time_in_epoch_us"),
            (("1772442000", "1772442001.5"), "time_in_epoch_s"),
            (("1772442000000", " 1772442001500 "), "time_in_epoch_ms"),
        ],
    )
    def test_numbers_since_the_epoch(self, tmp_path: Path, times: tuple[Any, Any], inferred: str) -> None:
        outcome = timed(tmp_path, *times)
        assert seconds(outcome) == [1772442000.0, 1772442001.5]
        assert {name: tally.count for name, tally in outcome.report.inferred.items()} == {inferred: 1}

    def test_small_numbers_count_from_the_start(self, tmp_path: Path) -> None:
        outcome = timed(tmp_path, 0, 2.25)
        assert [event.time for event in outcome.only.timeline] == [Time(0.0, "relative"), Time(2.25, "relative")]
        assert [clock.kind for clock in outcome.only.clocks] == ["relative"]
        assert list(outcome.report.inferred) == ["time_from_start"]

    @pytest.mark.parametrize("unreadable", ["yesterday", True, [2026, 3, 2], "2026-13-40"])
    def test_unreadable_times_are_counted(self, tmp_path: Path, unreadable: Any) -> None:
        outcome = timed(tmp_path, unreadable, "2026-03-02T09:00:00Z")
        assert seconds(outcome) == [None, 1772442000.0]
        assert counts(outcome.report.set_aside) == {"unreadable_time": 1}

    @pytest.mark.parametrize("absent", [None, ""])
    def test_an_empty_time_is_no_time(self, tmp_path: Path, absent: Any) -> None:
        outcome = timed(tmp_path, absent, absent)
        assert seconds(outcome) == [None, None]
        assert outcome.only.clocks == ()
        assert outcome.report.ignored == {}

    @pytest.mark.parametrize("name", ["created_at", "created", "time", "ts"])
    def test_other_names_of_a_time(self, tmp_path: Path, name: str) -> None:
        assert seconds(timed(tmp_path, 1772442000, 1772442001, name=name)) == [1772442000.0, 1772442001.0]

    def test_a_tool_call_has_the_time_of_its_message(self, tmp_path: Path) -> None:
        call = {"id": "c", "function": {"name": "hours", "arguments": "{}"}}
        asks = {"role": "assistant", "content": "Wait.", "timestamp": "2026-03-02T09:00:00Z", "tool_calls": [call]}
        outcome = read(write_json(tmp_path / "a.json", {"messages": [asks]}))
        assert seconds(outcome) == [1772442000.0, 1772442000.0]


class TestTruth:
    @pytest.mark.parametrize(
        "name",
        ["ground_truth", "expected_output", "expected_answer", "ideal", "reference", "target", "expected"],
    )
    def test_names_of_the_truth(self, tmp_path: Path, name: str) -> None:
        assert record(tmp_path, **{name: "closed"}).only.expected.ground_truth == "closed"

    def test_truth_in_the_metadata(self, tmp_path: Path) -> None:
        assert record(tmp_path, metadata={"ground_truth": "closed"}).only.expected.ground_truth == "closed"

    def test_the_records_own_truth_comes_first(self, tmp_path: Path) -> None:
        outcome = record(tmp_path, ground_truth="closed", metadata={"ground_truth": "open"})
        assert outcome.only.expected.ground_truth == "closed"

    def test_several_truths(self, tmp_path: Path) -> None:
        outcome = record(tmp_path, ideal=["closed", "not open"])
        assert outcome.only.expected.ground_truth == "closed"
        assert outcome.only.expected.extras == {"ground_truths": ["closed", "not open"]}
        assert outcome.report.ignored == {"further_ground_truths": 1}

    def test_a_truth_that_is_no_text(self, tmp_path: Path) -> None:
        outcome = record(tmp_path, ground_truth={"open": False})
        assert outcome.only.expected.ground_truth is None
        assert outcome.only.expected.extras == {"ground_truth": {"open": False}}
        assert counts(outcome.report.set_aside) == {"ground_truth_not_text": 1}

    def test_no_truth_is_not_an_empty_truth(self, tmp_path: Path) -> None:
        assert record(tmp_path).only.expected.ground_truth is None

    def test_expected_tool_calls(self, tmp_path: Path) -> None:
        wanted = [{"name": "hours", "arguments": {"day": 1}}, {"function": {"name": "map"}}]
        assert record(tmp_path, expected_tool_calls=wanted).only.expected.tool_calls == (
            ExpectedToolCall("hours", {"day": 1}),
            ExpectedToolCall("map"),
        )

    def test_expected_arguments_may_be_json_in_a_string(self, tmp_path: Path) -> None:
        wanted = [{"function": {"name": "hours", "arguments": '{"day": 1}'}}, {"name": "map", "arguments": "{north"}]
        assert record(tmp_path, expected_tool_calls=wanted).only.expected.tool_calls == (
            ExpectedToolCall("hours", {"day": 1}),
            ExpectedToolCall("map", "{north"),  # what is not JSON stays a text
        )

    def test_none_expected_is_not_nothing_said(self, tmp_path: Path) -> None:
        assert record(tmp_path, expected_tool_calls=[]).only.expected.tool_calls == ()
        assert record(tmp_path).only.expected.tool_calls is None


class TestDimensions:
    def test_from_the_record(self, tmp_path: Path) -> None:
        dimensions = {
            "dataset": "desk",
            "split": "dev",
            "scenario_id": "monday",
            "trial": 2,
            "agent": "ivy",
            "model": "llm-1",
            "flow": "hours",
            "domain": "museum",
        }
        outcome = record(tmp_path, **dimensions)
        assert outcome.only.dimensions == {**dimensions, "trial": "2"}
        assert outcome.only.agent.name == "ivy"
        assert outcome.only.agent.models == {"llm": "llm-1"}
        assert outcome.report.unknown == {}

    def test_from_the_metadata_which_is_kept(self, tmp_path: Path) -> None:
        metadata = {"flow": "hours", "agent_name": "ivy", "shift": "night"}
        outcome = record(tmp_path, metadata=metadata)
        assert outcome.only.dimensions == {"flow": "hours", "agent": "ivy"}
        assert outcome.only.extras == {"metadata": metadata}

    def test_the_record_comes_before_its_metadata(self, tmp_path: Path) -> None:
        assert record(tmp_path, flow="hours", metadata={"flow": "tickets"}).only.dimensions == {"flow": "hours"}

    def test_the_id_may_stand_in_the_metadata(self, tmp_path: Path) -> None:
        assert record(tmp_path, metadata={"session_id": "s-1"}).only.id == "s-1"

    @pytest.mark.parametrize(
        "name",
        ["conversation_id", "session_id", "thread_id", "chat_id", "id", "custom_id", "uuid"],
    )
    def test_names_of_the_id(self, tmp_path: Path, name: str) -> None:
        assert record(tmp_path, **{name: "x-1"}).only.id == "x-1"


class TestAgent:
    def test_tools(self, tmp_path: Path) -> None:
        schema = {"type": "object", "properties": {"day": {"type": "string"}}}
        function = {"name": "hours", "description": "Opening hours.", "parameters": schema}
        tools = [{"type": "function", "function": function}]
        wanted = (Tool(name="hours", description="Opening hours.", arguments_schema=schema),)
        assert record(tmp_path, tools=tools).only.agent.tools == wanted
        assert record(tmp_path, functions=[function]).only.agent.tools == wanted
        assert record(tmp_path, request={"tools": tools}).only.agent.tools == wanted

    def test_no_tools_is_not_nothing_said(self, tmp_path: Path) -> None:
        assert record(tmp_path, tools=[]).only.agent.tools == ()
        assert record(tmp_path).only.agent.tools is None

    def test_an_error_of_the_integration_is_the_outcome(self, tmp_path: Path) -> None:
        assert record(tmp_path, error="upstream timed out").only.outcome.error == "upstream timed out"
        assert record(tmp_path, error=None).only.outcome.error == ""

    def test_unknown_fields_are_kept_and_counted(self, tmp_path: Path) -> None:
        beside = {"weather": {"rain": True}, "shift": "night"}
        outcome = read(write_lines(tmp_path / "all.jsonl", {**CHAT, **beside}, {**CHAT, "shift": "day"}))
        assert [one.extras for one in outcome.conversations] == [beside, {"shift": "day"}]
        assert outcome.report.unknown == {"record.weather": 1, "record.shift": 2}

    def test_usual_fields_of_the_interface_are_kept_and_no_surprise(self, tmp_path: Path) -> None:
        beside = {"created": 1772442000, "usage": {"total_tokens": 91}, "temperature": 0.2}
        outcome = record(tmp_path, **beside)
        assert outcome.only.extras == beside
        assert outcome.report.unknown == {}

    def test_nothing_of_a_full_record_is_lost(self, tmp_path: Path) -> None:
        full = {
            **CHAT,
            "id": "full-1",
            "model": "llm-1",
            "ground_truth": "closed",
            "metadata": {"flow": "hours", "nested": {"deep": [1, 2, {"er": 3.25}]}},
            "usage": {"total_tokens": 91},
            "expected_tool_calls": [{"name": "hours", "arguments": {"day": "monday"}}],
        }
        assert lost(full, read(write_json(tmp_path / "a.json", full)).only) == []


class TestTheSupportExample:
    @pytest.fixture
    def chats(self) -> dict[str, Conversation]:
        return {one.id: one for one in convoscope.read(EXAMPLES / "openai-chat" / "support.jsonl")}

    def test_two_flows_and_two_agents_cross(self, chats: dict[str, Conversation]) -> None:
        crossed = Counter((one.dimensions["flow"], one.dimensions["agent"]) for one in chats.values())
        assert crossed == {
            ("change_delivery", "juniper"): 3,
            ("change_delivery", "clover"): 3,
            ("damaged_parcel", "juniper"): 2,
            ("damaged_parcel", "clover"): 3,
        }

    def test_one_agent_repeats_itself(self, chats: dict[str, Conversation]) -> None:
        replies = [turn.assistant_text for turn in chats["chat-2103"].turns]
        assert replies[0] == replies[1] == replies[2]

    def test_one_user_waits_long(self, chats: dict[str, Conversation]) -> None:
        slow = chats["chat-2106"]
        asked, replied = (event.time for event in slow.utterances[:2])
        assert asked is not None
        assert replied is not None
        assert slow.elapsed(asked, replied) == pytest.approx(48.2)

    def test_one_chat_has_no_clock(self, chats: dict[str, Conversation]) -> None:
        assert [id for id, one in chats.items() if not one.clocks] == ["chat-2104"]

    def test_tools_fail_in_every_way(self, chats: dict[str, Conversation]) -> None:
        failed = [
            (id, outcome.error)
            for id, one in chats.items()
            for outcome in map(tool_outcome, one.tool_results.values())
            if outcome.failed
        ]
        assert failed == [
            ("chat-2102", "no subscription under this address"),
            ("chat-2108", "out of stock: teapot moss"),
            ("chat-2108", "out of stock: teapot moss"),
            ("chat-2109", "Error: the arguments are not valid JSON"),
            ("chat-2110", "the warehouse did not answer in time"),
        ]
