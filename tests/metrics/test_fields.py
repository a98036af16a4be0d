"""Which fields each scorer reads, and whether an item has them (StandardData, scorer-to-field mapping)."""

import re
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import (
    Agent,
    AudioFile,
    ComponentMetric,
    Event,
    Expected,
    ExpectedToolCall,
    Item,
    Outcome,
    Retrieval,
    Tool,
)
from convoscope.metrics.item_fields import FIELDS, PRESENT, SCORERS, first_absent, missing, needs_of
from convoscope.views.items import cases
from convoscope.views.standard_data.schema import FIELDS as SCHEMA
from support.chats import agent, call, chat, result, user

# The table at the end of the published schema, of the scorers that are measured.
IN_THE_TABLE = {
    "accuracy exact_match f1": "agent_response ground_truth",
    "contextual_precision@lexical contextual_recall@lexical": "retrieval_query retrieved_context ground_truth",
    "tool_correctness": "expected_tool_call tool_calls",
    "parameter_correctness": "tool_calls parameters_passed tool_call_results",
    "word_accuracy": "tts_data raw_complete_audio",
    "assistant_latency llm_ttft llm_latency e2e_latency": "metrics_collected",
    "stt_latency stt_audio_duration stt_processing_duration": "metrics_collected",
    "tts_latency tts_ttfb tts_duration tts_audio_duration": "metrics_collected",
    "end_of_turn_delay on_user_turn_completed_delay": "metrics_collected",
}
PUBLISHED = {name: fields.split() for names, fields in IN_THE_TABLE.items() for name in names.split()}


def of_item(*events: Event, beside: tuple[Item, ...] = (), item: dict[str, Any] | None = None, **facts: Any) -> Any:
    """The first item of a conversation in which these events happened for it."""
    first = Item(id="1", events=tuple(range(len(events))), **(item or {}))
    return next(iter(cases(chat(*events, items=(first, *beside), **facts))))


class TestTheTable:
    @pytest.mark.parametrize("name", sorted(PUBLISHED))
    def test_it_requires_what_the_schema_says(self, name: str) -> None:
        assert set(SCORERS[name].required) == set(PUBLISHED[name])

    def test_it_knows_every_field_of_the_schema_and_no_other(self) -> None:
        assert set(PRESENT) == set(FIELDS) == set(SCHEMA)
        assert {field for reads in SCORERS.values() for field in (*reads.required, *reads.optional)} <= set(SCHEMA)

    def test_a_need_is_called_after_its_field(self) -> None:
        assert {need.code for need in FIELDS.values()} == {
            "tool_calls_unknown" if field == "tool_calls" else f"no_{field}" for field in SCHEMA
        }


GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "scorers-and-fields.md"


def test_the_guide_has_the_same_table() -> None:
    table = {}
    for line in GUIDE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[0].startswith("`"):
            names, required, optional = (tuple(re.findall("`(.*?)`", cell)) for cell in cells)
            table |= dict.fromkeys(names, (required, optional))
    assert table == {name: (reads.required, reads.optional) for name, reads in SCORERS.items()}


def test_needs_are_the_required_fields_in_the_order_of_the_table() -> None:
    assert [need.code for need in needs_of("exact_match")] == ["no_agent_response", "no_ground_truth"]


def test_the_first_missing_field_is_named() -> None:
    case = of_item(user("Where is my order?"), item={"asked": 0})
    assert missing(case, "exact_match") == "agent_response"


PAIR = (user("Where?"), agent("Here."))
SPOKEN = {"asked": 0, "answered": 1}
HAS: dict[str, Any] = {
    "user_id": of_item(dimensions={"user_id": "u-7"}),
    "task_id": of_item(item={"extras": {"task_id": "t-7"}}),
    "turn_id": of_item(),
    "source_trace_id": of_item(item={"extras": {"source_trace_id": "trace-1"}}),
    "agent_task": of_item(*PAIR, item=SPOKEN),
    "input_text": of_item(*PAIR, item=SPOKEN),
    "agent_response": of_item(*PAIR, item=SPOKEN),
    "output_text": of_item(*PAIR, item=SPOKEN),
    "ground_truth": of_item(item={"expected": Expected(ground_truth="")}),
    "expected_format": of_item(item={"expected": Expected(format="JSON")}),
    "expected_tool_call": of_item(item={"expected": Expected(tool_calls=(ExpectedToolCall("find"),))}),
    "novaeval_item_type": of_item(item={"kind": "agent"}),
    "agent_name": of_item(agent=Agent(name="clover")),
    "agent_role": of_item(agent=Agent(role="support")),
    "system_prompt": of_item(item={"extras": {"system_prompt": "Be kind."}}),
    "tools_available": of_item(agent=Agent(tools=())),  # known: it had none
    "tool_calls": of_item(item={"extras": {"tool_calls": []}}),  # known: it called nothing
    "parameters_passed": of_item(item={"extras": {"parameters_passed": {}}}),
    "tool_call_results": of_item(call("find", "1"), result("find", "1")),
    "retrieval_query": of_item(Retrieval(seq=0, query="cancel")),
    "retrieved_context": of_item(Retrieval(seq=0, chunks=("Go to Settings.",))),
    "conversation_context": of_item(item={"extras": {"conversation_context": {"turns": []}}}),
    "speaker": of_item(item={"extras": {"speaker": "user"}}),
    "message": of_item(item={"extras": {"message": "Hi"}}),
    "turn_position": of_item(item={"extras": {"turn_position": 0}}),
    "context": of_item(item={"extras": {"context": {"choices": ["a"]}}}),
    "agent_exit": of_item(item={"outcome": Outcome(finished=False)}),
    "exit_status": of_item(item={"outcome": Outcome(final_status="timeout")}),
    "trace": of_item(item={"extras": {"trace": [{"step": 1}]}}),
    "extracted_content": of_item(item={"extras": {"extracted_content": "{}"}}),
    "stt_data": of_item(ComponentMetric(seq=0, component="stt_span")),
    "tts_data": of_item(ComponentMetric(seq=0, component="tts_span")),
    "raw_complete_audio": of_item(recording=AudioFile(transcript="Hi.")),
    "metrics_collected": of_item(ComponentMetric(seq=0, component="llm", values={"ttft": 0.4})),
    "latency": of_item(item={"extras": {"latency": {"llm_ttft": 0.4}}}),
    "metadata": of_item(item={"extras": {"metadata": {"locale": "de"}}}),
}


class TestPresence:
    @pytest.mark.parametrize("field", sorted(PRESENT))
    def test_it_is_there(self, field: str) -> None:
        assert PRESENT[field](HAS[field])
        assert FIELDS[field].met(HAS[field].conversation)

    @pytest.mark.parametrize("field", sorted(PRESENT))
    def test_it_is_not(self, field: str) -> None:
        # An item without an id of its own is called after its place, and says so.
        nothing = of_item(item={"extras": {"turn_id": None}})
        assert not PRESENT[field](nothing)
        assert not FIELDS[field].met(nothing.conversation)

    def test_what_one_item_lacks_another_may_have(self) -> None:
        conversation = chat(*PAIR, items=(Item(id="1", asked=0), Item(id="2", answered=1)))
        first, second = cases(conversation)
        assert FIELDS["agent_task"].met(conversation)
        fields = ("agent_task", "agent_response")
        assert (first_absent(first, fields), first_absent(second, fields)) == ("agent_response", "agent_task")

    @pytest.mark.parametrize(
        ("field", "shared"),
        [
            ("agent_name", {"agent": Agent(name="clover")}),
            ("agent_role", {"agent": Agent(role="support")}),
            ("system_prompt", {"agent": Agent(instructions="Be kind.")}),
            ("tools_available", {"agent": Agent(tools=(Tool(name="find"),))}),
            ("raw_complete_audio", {"recording": AudioFile()}),
            ("user_id", {"dimensions": {"user_id": "u"}}),
        ],
    )
    def test_an_item_that_says_it_has_none_has_none(self, field: str, shared: dict[str, Any]) -> None:
        assert PRESENT[field](of_item(**shared))
        assert not PRESENT[field](of_item(item={"extras": {field: None}}, **shared))

    def test_a_query_without_a_list_of_chunks_retrieved_nothing_that_is_known(self) -> None:
        query = Retrieval(seq=0, query="cancel")
        assert PRESENT["retrieved_context"](of_item(query))  # an empty list: the search found nothing
        assert not PRESENT["retrieved_context"](of_item(query, item={"extras": {"retrieved_context": None}}))

    def test_a_session_latency_is_as_good_as_component_metrics(self) -> None:
        assert PRESENT["metrics_collected"](HAS["latency"])

    def test_outside_of_items_the_conversation_is_its_own_context(self) -> None:
        (whole,) = cases(chat(user("Hi"), agent("Hello"), call("find", "1")))
        for field in ("conversation_context", "agent_task", "agent_response", "tool_calls", "parameters_passed"):
            assert PRESENT[field](whole)
        (silent,) = cases(chat())
        assert not PRESENT["conversation_context"](silent)
