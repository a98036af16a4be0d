"""OpenAI Responses: every shape the items come in, and what becomes of each item."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.conversation import Conversation, Marker, ToolResult
from convoscope.views.tool_outcomes import tool_outcome
from support.logs import EXAMPLES, Outcome, counts, read, story, write, write_json, write_lines
from support.losses import lost
from support.tool_outcomes import stated

ASK = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Is the museum open?"}]}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "hours", "arguments": '{"day": "monday"}'}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": '{"open": false}'}
REPLY = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "It is closed."}],
}
STORY = ["user: Is the museum open?", 'hours({"day": "monday"})', '-> {"open": false}', "assistant: It is closed."]


def items(tmp_path: Path, *output: Any, **beside: Any) -> Outcome:
    """Read one record that holds these items."""
    return read(write_json(tmp_path / "log.json", {"input": [ASK], "output": list(output), **beside}))


def answered(tmp_path: Path, item: dict[str, Any]) -> ToolResult:
    result = items(tmp_path, item).only.timeline[-1]
    assert isinstance(result, ToolResult)
    return result


class TestShapes:
    def test_a_response_object(self, tmp_path: Path) -> None:
        record = {"id": "resp_1", "object": "response", "model": "llm-1", "output": [REPLY]}
        outcome = read(write_json(tmp_path / "a.json", record))
        assert (outcome.only.id, story(outcome.only)) == ("resp_1", STORY[3:])
        assert outcome.only.dimensions == {"model": "llm-1"}
        assert outcome.report.files["a.json"].format == "openai-responses"

    def test_input_and_output_items(self, tmp_path: Path) -> None:
        outcome = read(write_json(tmp_path / "monday.json", {"input": [ASK, CALL, OUTPUT], "output": [REPLY]}))
        assert (outcome.only.id, story(outcome.only)) == ("monday", STORY)
        assert outcome.report.unknown == {}

    def test_input_as_a_string_is_what_the_user_said(self, tmp_path: Path) -> None:
        record = {"input": "Is the museum open?", "output": [REPLY]}
        assert story(read(write_json(tmp_path / "a.json", record)).only) == [STORY[0], STORY[3]]

    def test_input_messages_may_lack_a_type(self, tmp_path: Path) -> None:
        record = {"input": [{"role": "user", "content": "Is the museum open?"}], "output": [REPLY]}
        assert story(read(write_json(tmp_path / "a.json", record)).only) == [STORY[0], STORY[3]]

    def test_lines_of_responses(self, tmp_path: Path) -> None:
        path = write_lines(tmp_path / "all.jsonl", {"id": "r1", "output": [REPLY]}, {"output": [ASK, REPLY]})
        assert read(path).ids == ["r1", "all.jsonl:2"]

    def test_an_array_of_responses(self, tmp_path: Path) -> None:
        path = write_json(tmp_path / "all.json", [{"id": "r1", "output": [REPLY]}, {"output": [ASK, REPLY]}])
        assert read(path).ids == ["r1", "all.json#2"]

    def test_a_list_of_items_is_one_conversation(self, tmp_path: Path) -> None:
        outcome = read(write_json(tmp_path / "monday.json", [ASK, CALL, OUTPUT, REPLY]))
        assert (outcome.only.id, story(outcome.only)) == ("monday", STORY)

    def test_lines_of_item_lists(self, tmp_path: Path) -> None:
        outcome = read(write_lines(tmp_path / "all.jsonl", [ASK, CALL, OUTPUT, REPLY], [ASK, REPLY]))
        assert outcome.ids == ["all.jsonl:1", "all.jsonl:2"]
        assert story(outcome.conversations[0]) == STORY

    def test_the_items_of_a_conversation_as_the_server_lists_them(self, tmp_path: Path) -> None:
        record = {"object": "list", "data": [ASK, REPLY], "has_more": False}
        assert story(read(write_json(tmp_path / "a.json", record)).only) == [STORY[0], STORY[3]]

    def test_items_by_line_are_one_conversation(self, tmp_path: Path) -> None:
        outcome = read(write_lines(tmp_path / "monday.jsonl", ASK, CALL, OUTPUT, REPLY))
        assert (outcome.only.id, story(outcome.only)) == ("monday", STORY)

    def test_items_by_line_may_start_with_a_call(self, tmp_path: Path) -> None:
        outcome = read(write_lines(tmp_path / "monday.jsonl", CALL, OUTPUT, REPLY))
        assert (outcome.only.id, story(outcome.only)) == ("monday", STORY[1:])

    def test_items_by_line_with_the_id_of_their_conversation(self, tmp_path: Path) -> None:
        lines = [{"conversation_id": id, **item} for item in (ASK, CALL, OUTPUT, REPLY) for id in ("a", "b")]
        outcome = read(write_lines(tmp_path / "all.jsonl", *lines))
        assert outcome.ids == ["a", "b"]
        assert [story(one) for one in outcome.conversations] == [STORY, STORY]

    def test_a_request_and_its_response(self, tmp_path: Path) -> None:
        record = {"id": "pair", "request": {"model": "llm-1", "input": [ASK]}, "response": {"output": [REPLY]}}
        conversation = read(write_json(tmp_path / "a.json", record)).only
        assert (conversation.id, story(conversation)) == ("pair", [STORY[0], STORY[3]])
        assert conversation.agent.models == {"llm": "llm-1"}

    def test_a_request_whose_input_is_a_string(self, tmp_path: Path) -> None:
        record = {"request": {"input": "Is the museum open?"}, "response": {"output": [REPLY]}}
        assert story(read(write_json(tmp_path / "a.json", record)).only) == [STORY[0], STORY[3]]

    def test_a_record_without_items_among_others(self, tmp_path: Path) -> None:
        outcome = read(write_lines(tmp_path / "all.jsonl", {"output": [ASK]}, {"object": "response", "output": []}))
        assert len(outcome.conversations) == 1
        assert (outcome.problem.line, outcome.problem.field, outcome.problem.message) == (2, "output", "no items here")
        assert "expected" in outcome.problem.hint


class TestItems:
    def test_calls_find_their_outputs(self, tmp_path: Path) -> None:
        conversation = items(tmp_path, CALL, OUTPUT).only
        (call,) = conversation.tool_calls
        assert (call.id, call.call_id) == ("fc_1", "call_1")
        assert conversation.tool_results[call.seq].result == {"open": False}

    def test_custom_tools_take_text(self, tmp_path: Path) -> None:
        call = {"type": "custom_tool_call", "call_id": "c", "name": "run_sql", "input": "select 1"}
        output = {"type": "custom_tool_call_output", "call_id": "c", "output": "1 row"}
        conversation = items(tmp_path, call, output).only
        assert story(conversation)[1:] == ["run_sql(select 1)", '-> "1 row"']

    def test_arguments_that_are_not_json_are_kept_as_text(self, tmp_path: Path) -> None:
        outcome = items(tmp_path, {**CALL, "arguments": '{"day": "mon'})
        (call,) = outcome.only.tool_calls
        assert (call.arguments, call.raw_arguments) == (None, '{"day": "mon')
        assert outcome.report.repaired["tool_arguments_kept_as_text"].count == 1

    @pytest.mark.parametrize(
        ("output", "success", "error"),
        [
            ('{"error": "no such day"}', False, "no such day"),
            ('{"success": true}', True, ""),
            ("Error: no such day", False, "Error: no such day"),
            ("closed", None, ""),
            ({"success": False, "error": "locked"}, False, "locked"),
            ([{"type": "input_text", "text": "Error: no such day"}], False, "Error: no such day"),
        ],
    )
    def test_signs_of_success(self, tmp_path: Path, output: Any, success: bool | None, error: str) -> None:
        result = answered(tmp_path, {**OUTPUT, "output": output})
        assert stated(result) == (success, error)

    def test_an_output_that_is_a_list_of_values_is_its_own_result(self, tmp_path: Path) -> None:
        days = [{"day": "monday", "open": False}]
        assert answered(tmp_path, {**OUTPUT, "output": days}).result == days

    def test_a_call_on_another_server_brings_its_output_along(self, tmp_path: Path) -> None:
        call = {
            "type": "mcp_call",
            "id": "mcp_1",
            "server_label": "museum",
            "name": "hours",
            "arguments": '{"day": "monday"}',
            "output": "closed",
            "error": None,
        }
        conversation = items(tmp_path, call).only
        assert story(conversation)[1:] == ['hours({"day": "monday"})', '-> "closed"']
        (made,) = conversation.tool_calls
        assert made.extras == {"server_label": "museum"}
        assert conversation.tool_results[made.seq].call_id == "mcp_1"

    def test_a_call_on_another_server_that_failed(self, tmp_path: Path) -> None:
        call = {"type": "mcp_call", "id": "m", "name": "hours", "arguments": "{}", "error": "no route"}
        result = answered(tmp_path, call)
        assert (*stated(result), result.call_id) == (False, "no route", "m")

    def test_reasoning_is_a_marker(self, tmp_path: Path) -> None:
        thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "A question."}]}
        outcome = items(tmp_path, thought, REPLY)
        assert story(outcome.only) == [STORY[0], "[reasoning]", STORY[3]]
        marker = outcome.only.timeline[1]
        assert isinstance(marker, Marker)
        assert (marker.id, marker.value["summary"]) == ("rs_1", thought["summary"])
        assert outcome.report.unknown == {}

    def test_an_unknown_item_is_kept_as_a_marker_and_counted(self, tmp_path: Path) -> None:
        listed = {"type": "mcp_list_tools", "id": "ml_1", "server_label": "museum", "tools": [{"name": "hours"}]}
        outcome = items(tmp_path, listed, REPLY)
        assert story(outcome.only) == [STORY[0], "[mcp_list_tools]", STORY[3]]
        assert outcome.report.unknown == {"item.type=mcp_list_tools": 1}
        assert lost(listed, outcome.only) == []

    def test_tools_of_the_service_are_calls(self, tmp_path: Path) -> None:
        search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "museum hours"}}
        code = {"type": "code_interpreter_call", "id": "ci_1", "code": "9 + 8", "outputs": [{"logs": "17"}]}
        outcome = items(tmp_path, search, code, REPLY)
        assert story(outcome.only) == [
            STORY[0],
            'web_search({"query": "museum hours"})',
            'code_interpreter({"code": "9 + 8"})',
            '-> [{"logs": "17"}]',
            STORY[3],
        ]
        assert lost(search, outcome.only) == lost(code, outcome.only) == []

    @pytest.mark.parametrize("odd", ["tape changed", 7, None, [], [ASK]])
    def test_what_is_no_item_is_kept_as_a_marker_and_counted(self, tmp_path: Path, odd: Any) -> None:
        outcome = items(tmp_path, odd, REPLY)
        assert story(outcome.only) == [STORY[0], "[not_an_item]", STORY[3]]
        marker = outcome.only.timeline[1]
        assert isinstance(marker, Marker)
        assert marker.value == odd
        assert outcome.report.ignored == {"not_an_item": 1}

    @pytest.mark.parametrize("odd", [{"type": ["message"], "text": "x-1"}, {"role": [], "content": "x-1"}])
    def test_an_item_of_an_odd_kind_is_kept_as_a_marker(self, tmp_path: Path, odd: dict[str, Any]) -> None:
        outcome = items(tmp_path, odd, REPLY)
        assert isinstance(outcome.only.timeline[1], Marker)
        assert lost(odd, outcome.only) == []

    def test_unknown_keys_are_kept_and_counted(self, tmp_path: Path) -> None:
        outcome = items(tmp_path, {**REPLY, "phase": "final"}, {**CALL, "phase": "early"}, {**OUTPUT, "phase": "late"})
        assert [event.extras for event in outcome.only.timeline[1:]] == [
            {"phase": "final"},
            {"phase": "early"},
            {"phase": "late"},
        ]
        assert outcome.report.unknown == {"item.phase": 3}

    def test_a_refusal_is_said(self, tmp_path: Path) -> None:
        refusal = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I won't."}]}
        assert story(items(tmp_path, refusal).only)[1:] == ["assistant: I won't."]

    def test_an_embedded_picture_is_noted_and_not_copied(self, tmp_path: Path) -> None:
        picture = {"type": "input_image", "image_url": "data:image/png;base64," + "iVBOR" * 1000}
        shown = {"type": "message", "role": "user", "content": [picture]}
        outcome = items(tmp_path, shown)
        told = {"type": "input_image", "image_url": "(5022 characters left out)"}
        assert outcome.only.timeline[1].extras == {"content": [told]}
        assert outcome.report.ignored == {"embedded_data": 1}

    def test_times(self, tmp_path: Path) -> None:
        timed = [{**REPLY, "created_at": 1772442000}, {**CALL, "timestamp": "2026-03-02T09:00:01Z"}]
        conversation = items(tmp_path, *timed).only
        assert [event.time and event.time.at for event in conversation.timeline] == [None, 1772442000.0, 1772442001.0]
        assert [clock.source for clock in conversation.clocks] == ["item.timestamp"]

    def test_an_unreadable_time_is_counted_once(self, tmp_path: Path) -> None:
        outcome = items(tmp_path, {**REPLY, "timestamp": "soon"})
        assert counts(outcome.report.set_aside) == {"unreadable_time": 1}


class TestBesideTheItems:
    def test_instructions(self, tmp_path: Path) -> None:
        assert items(tmp_path, REPLY, instructions="Be brief.").only.agent.instructions == "Be brief."

    def test_instructions_of_the_request(self, tmp_path: Path) -> None:
        record = {"request": {"instructions": "Be brief.", "input": [ASK]}, "response": {"output": [REPLY]}}
        assert read(write_json(tmp_path / "a.json", record)).only.agent.instructions == "Be brief."

    def test_system_items_at_the_start_are_instructions_too(self, tmp_path: Path) -> None:
        prompt = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "No jokes."}]}
        record = {"instructions": "Be brief.", "input": [prompt, ASK, prompt], "output": [REPLY]}
        conversation = read(write_json(tmp_path / "a.json", record)).only
        assert conversation.agent.instructions == "Be brief.\n\nNo jokes."
        assert story(conversation) == [STORY[0], "system: No jokes.", STORY[3]]

    def test_tools_stand_flat(self, tmp_path: Path) -> None:
        schema = {"type": "object"}
        tools = [{"type": "function", "name": "hours", "description": "When.", "parameters": schema}]
        (tool, search) = items(tmp_path, REPLY, tools=[*tools, {"type": "web_search"}]).only.agent.tools or ()
        assert (tool.name, tool.description, tool.arguments_schema) == ("hours", "When.", schema)
        assert search.name == "web_search"  # a built-in tool has no other name

    def test_truth_and_dimensions(self, tmp_path: Path) -> None:
        conversation = items(tmp_path, REPLY, ground_truth="closed", metadata={"flow": "hours", "trial": "2"}).only
        assert conversation.expected.ground_truth == "closed"
        assert conversation.dimensions == {"flow": "hours", "trial": "2"}

    def test_unknown_fields_are_kept_and_counted(self, tmp_path: Path) -> None:
        outcome = items(tmp_path, REPLY, shift="night")
        assert outcome.only.extras == {"shift": "night"}
        assert outcome.report.unknown == {"record.shift": 1}


class TestTheExample:
    @pytest.fixture
    def orders(self) -> dict[str, Conversation]:
        return {one.id: one for one in convoscope.read(EXAMPLES / "openai-responses" / "orders.jsonl")}

    def test_nothing_is_lost(self, orders: dict[str, Conversation]) -> None:
        text = (EXAMPLES / "openai-responses" / "orders.jsonl").read_text()
        records = [json.loads(line) for line in text.splitlines()]
        assert list(orders) == [record["id"] for record in records]
        for record in records:
            assert lost(record, orders[record["id"]]) == []

    def test_an_order(self, orders: dict[str, Conversation]) -> None:
        assert story(orders["resp_lavender"]) == [
            "user: Do you have lavender? I'd need a dozen by Friday.",
            'check_stock({"plant": "lavender"})',
            '-> {"plant": "lavender", "in_stock": 40, "price": 3.5}',
            'place_order({"plant": "lavender", "count": 12, "day": "friday"})',
            '-> {"success": true, "order": "TN-771", "total": 42.0}',
            "assistant: Twelve lavenders are put aside for Friday, 42 crowns in all. Your order is TN-771.",
        ]

    def test_failures(self, orders: dict[str, Conversation]) -> None:
        failed = {
            id: [each.error for each in map(tool_outcome, order.tool_results.values()) if each.failed]
            for id, order in orders.items()
        }
        assert failed == {
            "resp_lavender": [],
            "resp_quince": [],
            "resp_ferns": [],
            "resp_roses": ["no collection on sundays"],
            "resp_roses_2": ["Error: the stock system is being restarted"],
        }


def test_a_single_item_in_a_pretty_printed_file(tmp_path: Path) -> None:
    outcome = read(write(tmp_path / "a.json", json.dumps(REPLY, indent=2)))
    assert story(outcome.only) == STORY[3:]
