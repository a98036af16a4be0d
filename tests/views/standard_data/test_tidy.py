"""The tolerant reading of an item, rule by rule (section 1 of the specification)."""

from __future__ import annotations

import timeit
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from convoscope.views.standard_data import Warned, tidy, unknown_names
from support.tidied import codes, only, refused

EXAMPLE: dict[str, Any] = {
    "novaeval_item_type": "agent",
    "agent_name": "support-bot",
    "agent_role": "Customer support specialist",
    "agent_task": "How do I cancel my subscription?",
    "agent_response": "You can cancel your subscription from Settings > Billing > Cancel plan.",
    "ground_truth": "Settings > Billing > Cancel plan",
    "system_prompt": "You are a helpful customer support agent for Acme Corp.",
    "tool_calls": [],
    "retrieval_query": ["cancel subscription"],
    "retrieved_context": [["To cancel, go to Settings > Billing and click Cancel plan."]],
    "source_trace_id": "trace_abc123",
    "metadata": {"environment": "production", "model": "gpt-4o"},
}
"""The example item of the published schema."""


class TestACleanItem:
    def test_it_is_taken_as_it_is(self) -> None:
        assert tidy(EXAMPLE) == (EXAMPLE, {}, [])

    def test_clean_values_are_not_copied(self) -> None:
        fields = tidy(EXAMPLE).fields
        assert all(fields[name] is EXAMPLE[name] for name in EXAMPLE)

    def test_null_is_absent(self) -> None:
        assert tidy(dict.fromkeys(EXAMPLE)) == ({}, {}, [])

    def test_an_empty_list_and_an_empty_object_say_something(self) -> None:
        empty: dict[str, Any] = {"tool_calls": [], "metadata": {}, "retrieved_context": [], "metrics_collected": []}
        assert tidy(empty).fields == empty

    def test_it_is_quick(self) -> None:
        # About 3 µs where nothing else runs; the bound is for a busy machine.
        assert min(timeit.repeat(lambda: tidy(EXAMPLE), number=2_000, repeat=5)) / 2_000 < 30e-6


class TestAliases:
    @pytest.mark.parametrize(
        ("alias", "field", "value"),
        [
            ("trace_data", "trace", [{"step": 1}]),
            ("expected_output", "ground_truth", "Paris"),
            ("item_type", "novaeval_item_type", "conversational"),
            ("conversation", "conversation_context", {"turns": []}),
            ("question", "agent_task", "Where?"),
            ("query", "agent_task", "Where?"),
            ("answer", "agent_response", "There."),
        ],
    )
    def test_another_name_means_the_field(self, alias: str, field: str, value: Any) -> None:
        assert tidy({alias: value}) == ({field: value}, {}, [])

    def test_the_field_counts_where_both_are_there(self) -> None:
        tidied = tidy({"expected_output": "Rome", "ground_truth": "Paris"})
        assert tidied.fields == {"ground_truth": "Paris"}
        assert codes(tidied) == [("expected_output", "alias_ignored")]
        assert tidied.warnings[0].value == "Rome"

    def test_both_saying_the_same_is_no_conflict(self) -> None:
        assert tidy({"expected_output": 7, "ground_truth": "7"}) == ({"ground_truth": "7"}, {}, [])

    def test_the_field_being_null_leaves_room_for_the_alias(self) -> None:
        assert tidy({"ground_truth": None, "expected_output": "Rome"}).fields == {"ground_truth": "Rome"}

    def test_the_field_being_of_no_use_leaves_room_for_the_alias(self) -> None:
        tidied = tidy({"trace": 5, "trace_data": [{"a": 1}]})
        assert tidied.fields == {"trace": [{"a": 1}]}
        assert codes(tidied) == [("trace[0]", "not_an_object")]

    def test_question_comes_before_query_whatever_the_order(self) -> None:
        for payload in ({"question": "a", "query": "b"}, {"query": "b", "question": "a"}):
            tidied = tidy(payload)
            assert tidied.fields == {"agent_task": "a"}
            assert [(one.path, one.value) for one in tidied.warnings] == [("query", "b")]

    def test_a_warning_names_the_key_that_came(self) -> None:
        assert codes(tidy({"item_type": "robot"})) == [("item_type", "unknown_word")]


class TestTwins:
    @pytest.mark.parametrize(("field", "twin"), [("agent_task", "input_text"), ("agent_response", "output_text")])
    def test_one_is_enough(self, field: str, twin: str) -> None:
        assert tidy({field: "a"}).fields == {field: "a"}
        assert tidy({twin: "a"}).fields == {field: "a"}
        assert tidy({field: "a", twin: "a"}) == ({field: "a"}, {}, [])

    def test_a_conflict_is_a_warning_not_an_overwrite(self) -> None:
        tidied = tidy({"agent_task": "a", "input_text": "b"})
        assert tidied.fields == {"agent_task": "a", "input_text": "b"}
        assert codes(tidied) == [("input_text", "twins_differ")]

    def test_aliases_come_before_the_twins_are_compared(self) -> None:
        # The question fills the twin that is null, and then they differ.
        tidied = tidy({"question": "a", "input_text": "b"})
        assert tidied.fields == {"agent_task": "a", "input_text": "b"}
        assert codes(tidied) == [("input_text", "twins_differ")]

    def test_an_alias_that_agrees_with_one_of_two_is_not_lost(self) -> None:
        tidied = tidy({"answer": "b", "agent_response": "a", "output_text": "b"})
        assert codes(tidied) == [("output_text", "twins_differ")]


class TestTexts:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (7, "7"),
            ("007", "007"),
            ("7.0", "7.0"),
            ("", ""),
            (2.5, "2.5"),
            (Decimal("1.10"), "1.10"),
            (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
            (datetime(2025, 11, 15, tzinfo=UTC), "2025-11-15T00:00:00+00:00"),
        ],
    )
    def test_single_values_are_written_out(self, value: Any, text: str) -> None:
        assert only("agent_task", value) == text
        assert only("user_id", value) == text

    @pytest.mark.parametrize(("value", "text"), [(3.0, "3.0"), (True, "true")])
    def test_text_is_written_as_it_was_given(self, value: Any, text: str) -> None:
        assert only("agent_task", value) == text

    @pytest.mark.parametrize(
        ("value", "id"),
        [(7.0, "7"), (-0.0, "0"), (Decimal("7.00"), "7"), (2.0**52, "4503599627370496"), (1e300, "1e+300")],
    )
    @pytest.mark.parametrize("name", ["user_id", "task_id", "turn_id", "source_trace_id"])
    def test_a_whole_number_is_one_id_however_a_table_wrote_it(self, name: str, value: Any, id: str) -> None:
        assert only(name, value) == id

    def test_an_object_becomes_its_json_text(self) -> None:
        tidied = tidy({"ground_truth": {"city": "Zürich"}})
        assert tidied.fields == {"ground_truth": '{"city": "Zürich"}'}
        assert [(one.code, one.value) for one in tidied.warnings] == [("kept_as_json", {"city": "Zürich"})]

    @pytest.mark.parametrize("value", [{"id": 7}, [1], True, False, float("nan"), float("inf")])
    @pytest.mark.parametrize("name", ["user_id", "task_id", "turn_id", "source_trace_id"])
    def test_what_names_nothing(self, name: str, value: Any) -> None:
        assert refused(name, value) == "not_an_id"

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_not_a_number_is_null(self, value: float) -> None:
        assert refused("agent_response", value) == "not_text"

    def test_json_text_stays_text(self) -> None:
        assert only("agent_response", '{"a": 1}') == '{"a": 1}'

    @pytest.mark.parametrize("value", [{"a": 1}, '{"a": 1}', ' {"a": 1}\n', '"{\\"a\\": 1}"'])
    def test_a_context_that_is_an_object(self, value: Any) -> None:
        assert only("context", value) == {"a": 1}

    @pytest.mark.parametrize(
        "text", ["", "Anna asks.", "{name} asks.", '{"a": 1', '[{"a": 1}]', '"quoted"', "7", "null"]
    )
    def test_a_context_that_is_text(self, text: str) -> None:
        assert only("context", text) == text

    def test_a_context_that_had_to_be_repaired(self) -> None:
        tidied = tidy({"context": '{"a": NaN}'})
        assert tidied.fields == {"context": {"a": None}}
        assert codes(tidied) == [("context", "json_repaired")]


class TestNumbersAndFlags:
    @pytest.mark.parametrize("value", [True, "true", "TRUE", 1, 1.0, "1", "yes", " On "])
    def test_yes(self, value: Any) -> None:
        assert only("agent_exit", value) is True

    @pytest.mark.parametrize("value", [False, "false", 0, "0", "no", "OFF"])
    def test_no(self, value: Any) -> None:
        assert only("agent_exit", value) is False

    @pytest.mark.parametrize("value", ["maybe", 2, [], "", float("nan")])
    def test_neither(self, value: Any) -> None:
        assert refused("agent_exit", value) == "not_a_boolean"

    @pytest.mark.parametrize(("value", "number"), [(3, 3), (3.0, 3), ("3", 3), (" 12 ", 12), ("-1.0", -1)])
    def test_whole_numbers(self, value: Any, number: int) -> None:
        whole = only("turn_position", value)
        assert whole == number
        assert type(whole) is int

    @pytest.mark.parametrize("value", [2.5, "2.5", "three", True, 2**63, 1e300, "1_000", "١", ""])
    def test_no_whole_numbers(self, value: Any) -> None:
        assert refused("turn_position", value) == "not_an_integer"

    def test_numbers_inside(self) -> None:
        tidied = tidy({"stt_data": {"confidence": " 0.94 ", "audio_duration_ms": "1e3", "span_duration_ms": "fast"}})
        assert tidied.fields == {
            "stt_data": {"confidence": 0.94, "audio_duration_ms": 1000.0, "span_duration_ms": None}
        }
        assert [(one.path, one.code, one.value) for one in tidied.warnings] == [
            ("stt_data.span_duration_ms", "not_a_number", "fast")
        ]

    @pytest.mark.parametrize("value", [10**400, "9" * 5_000, float("inf"), True])
    def test_what_no_double_holds_is_no_number(self, value: Any) -> None:
        tidied = tidy({"stt_data": {"transcript": "hi", "confidence": value}})
        assert tidied.fields == {"stt_data": {"transcript": "hi", "confidence": None}}
        assert codes(tidied) == [("stt_data.confidence", "not_a_number")]

    @pytest.mark.parametrize("value", ["agent", "Agent", " AGENT "])
    def test_the_type_of_item(self, value: str) -> None:
        assert only("novaeval_item_type", value) == "agent"

    def test_another_type_of_item(self) -> None:
        assert refused("novaeval_item_type", "robot") == "unknown_word"
        assert refused("novaeval_item_type", ["agent"]) == "unknown_word"


class TestLists:
    def test_one_query(self) -> None:
        assert only("retrieval_query", "q") == ["q"]
        assert only("retrieval_query", 5) == ["5"]
        assert only("retrieval_query", '["q1", "q2"]') == ["q1", "q2"]

    @pytest.mark.parametrize("text", ["5", "null", '{"a": 1}', "[1", '"quoted"'])
    def test_a_query_that_merely_looks_like_json(self, text: str) -> None:
        assert only("retrieval_query", text) == [text]

    def test_one_tool_call(self) -> None:
        call = {"tool_name": "t", "parameters": {}, "call_id": "1"}
        assert only("tool_calls", call) == [call]
        assert only("tool_calls", '{"tool_name": "t", "parameters": {}, "call_id": "1"}') == [call]
        assert only("tool_calls", ['{"tool_name": "t", "parameters": {}, "call_id": "1"}']) == [call]
        assert only("tool_calls", '"[{\\"tool_name\\": \\"t\\", \\"call_id\\": \\"1\\"}]"') == [
            {"tool_name": "t", "call_id": "1"}
        ]

    def test_a_bad_element_is_left_out_with_its_value(self) -> None:
        tidied = tidy({"trace": [{"a": 1}, 5, "text", None, '{"b": 2}']})
        assert tidied.fields == {"trace": [{"a": 1}, {"b": 2}]}
        assert [(one.path, one.code, one.value) for one in tidied.warnings] == [
            ("trace[1]", "not_an_object", 5),
            ("trace[2]", "bad_json", "text"),
            ("trace[3]", "null_element", None),
        ]

    def test_a_list_in_which_nothing_is_good_is_null(self) -> None:
        tidied = tidy({"tool_calls": [1, 2]})
        assert tidied.fields == {}
        assert [one.value for one in tidied.warnings] == [1, 2]

    @pytest.mark.parametrize("field", ["tool_calls", "trace", "metadata", "expected_tool_call", "stt_data", "latency"])
    def test_text_that_is_not_json(self, field: str) -> None:
        assert refused(field, "a=1") == "bad_json"
        assert refused(field, " ") == "empty_text"

    def test_json_that_had_to_be_repaired(self) -> None:
        text = '{"a": NaN, "b": "\\ud800"}'
        tidied = tidy({"metadata": text})
        assert tidied.fields == {"metadata": {"a": None, "b": "\ufffd"}}
        assert tidied.warnings == [
            Warned("metadata", "json_repaired", "metadata holds JSON that had to be repaired.", text)
        ]

    def test_one_object_in_a_list_where_an_object_is_expected(self) -> None:
        assert only("metadata", [{"a": 1}]) == {"a": 1}
        assert refused("metadata", [{"a": 1}, {"b": 2}]) == "not_an_object"


class TestRetrievedContext:
    @pytest.mark.parametrize(
        ("value", "chunks"),
        [
            ([["a"], ["b", "c"]], [["a"], ["b", "c"]]),
            ("a", [["a"]]),
            (["a"], [["a"]]),
            (["a", "b"], [["a", "b"]]),
            (["a", 1], [["a", "1"]]),
            (["a", ["b"]], [["a"], ["b"]]),
            ('[["a"]]', [["a"]]),
            ('["a"]', [["a"]]),
            ([[], ["a"]], [[], ["a"]]),
        ],
    )
    def test_a_list_for_each_query(self, value: Any, chunks: list[list[str]]) -> None:
        assert only("retrieved_context", value) == chunks

    def test_a_query_keeps_its_place(self) -> None:
        tidied = tidy({"retrieved_context": [None, ["b", None]]})
        assert tidied.fields == {"retrieved_context": [[], ["b"]]}
        assert codes(tidied) == [
            ("retrieved_context[0][0]", "null_element"),
            ("retrieved_context[1][1]", "null_element"),
        ]

    def test_chunks_with_a_score_beside_them(self) -> None:
        tidied = tidy({"retrieved_context": [{"text": "a", "score": 0.9}, {"score": 0.1}]})
        assert tidied.fields == {"retrieved_context": [["a", '{"score": 0.1}']]}
        assert [one.value for one in tidied.warnings] == [{"text": "a", "score": 0.9}, {"score": 0.1}]


class TestUnknownKeys:
    def test_they_are_kept_aside(self) -> None:
        assert tidy({"foo": 1, "bar": None}).unknown == {"foo": 1, "bar": None}

    def test_inside_they_stay_where_they_are(self) -> None:
        call = {"tool_name": "t", "call_id": "1", "foo": {"deep": 1}}
        assert only("tool_calls", [call]) == [call]

    def test_their_names(self) -> None:
        tidied = tidy(
            {
                "foo": 1,
                "tool_calls": [{"tool_name": "t", "call_id": "1", "foo": 2}, {"call_id": "2", "foo": 3, "bar": 4}],
                "stt_data": {"turn_1": {"transcript": "a", "foo": 5}},
                "tts_data": {"input_text": "a", "foo": 6},
                "conversation_context": {"turns": [{"message": "a", "foo": 7}]},
                "metrics_collected": [{"type": "vad_metrics", "foo": 8}, {"type": "realtime_model_metrics", "foo": 9}],
                "metadata": {"foo": 10},
            }
        )
        assert unknown_names(tidied) == [
            "foo",
            "tool_calls[].foo",
            "tool_calls[].bar",
            "stt_data.*.foo",
            "tts_data.foo",
            "conversation_context.turns[].foo",
            "metrics_collected[].foo",
        ]
