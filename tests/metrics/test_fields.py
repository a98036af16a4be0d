"""Which fields each scorer reads, and whether an item has them (StandardData, scorer-to-field mapping)."""

import re
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import (
    Agent,
    AudioFile,
    ComponentMetric,
    Conversation,
    Event,
    Expected,
    ExpectedToolCall,
    Item,
    Outcome,
    Retrieval,
    Tool,
    Track,
)
from convoscope.metrics.judged.fields import FIELDS, PRESENT, SCORERS, missing, needs_of, silence
from convoscope.views.items import cases
from convoscope.views.standard_data.tidy import FIELDS as SCHEMA
from support.chats import agent, call, chat, result, user

# The two lists of the published schema: beside the group of fields, and in the table at its end.
BESIDE_THE_FIELDS = {
    "tool_correctness": "expected_tool_call tool_calls",
    "parameter_correctness": "tool_calls parameters_passed tool_call_results",
    "answer_relevancy": "agent_task agent_response",
    "faithfulness": "retrieved_context agent_response",
    "contextual_precision": "retrieval_query retrieved_context ground_truth",
    "contextual_recall": "retrieval_query retrieved_context ground_truth",
    "conversation_relevancy": "conversation_context agent_response",
    "intention_fulfillment": "conversation_context agent_task agent_response",
    "knowledge_retention": "conversation_context",
    "role_adherence": "agent_role conversation_context agent_response",
    "instruction_adherence": "conversation_context system_prompt",
    "sentiment_csat": "conversation_context",
}
IN_THE_TABLE = {
    "accuracy exact_match f1": "agent_response ground_truth",
    "answer_relevancy": "agent_task agent_response",
    "faithfulness": "retrieved_context agent_response",
    "contextual_precision contextual_recall": "retrieval_query retrieved_context ground_truth",
    "hallucination_detection claim_verification factual_accuracy": "agent_task agent_response",
    "tool_correctness": "expected_tool_call tool_calls",
    "parameter_correctness": "tool_calls parameters_passed tool_call_results",
    "task_progression": "agent_task agent_role system_prompt agent_response",
    "context_relevancy": "agent_task agent_role agent_response",
    "agent_role_adherence": "agent_role agent_task agent_response tool_calls",
    "goal_achievement conversation_coherence": "agent_exit trace",
    "conversation_relevancy intention_fulfillment": "conversation_context agent_task agent_response",
    "knowledge_retention role_adherence": "agent_role conversation_context agent_response",
    "mos tone_clarity pronunciation_audio gibberish audio_breakage": "raw_complete_audio",
    "word_accuracy": "tts_data raw_complete_audio",
    "assistant_average_pitch_hz assistant_volume_rms": "raw_complete_audio",
    "assistant_latency llm_ttft llm_latency e2e_latency": "metrics_collected",
    "stt_latency stt_audio_duration stt_processing_duration": "metrics_collected",
    "tts_latency tts_ttfb tts_duration tts_audio_duration": "metrics_collected",
    "end_of_turn_delay on_user_turn_completed_delay": "metrics_collected",
    "instruction_adherence sentiment_csat drop_off_node": "conversation_context system_prompt",
    "conversation_context_coherence appropriate_call_termination": "conversation_context",
    "g_eval panel_judge": "agent_task agent_response",
}
PUBLISHED = {name: fields.split() for names, fields in IN_THE_TABLE.items() for name in names.split()}


def of_item(*events: Event, beside: tuple[Item, ...] = (), item: dict[str, Any] | None = None, **facts: Any) -> Any:
    """The first item of a conversation in which these events happened for it."""
    first = Item(id="1", events=tuple(range(len(events))), **(item or {}))
    return next(iter(cases(chat(*events, items=(first, *beside), **facts))))


class TestTheTable:
    @pytest.mark.parametrize("name", sorted(PUBLISHED))
    def test_the_shorter_list_is_required_and_the_rest_is_optional(self, name: str) -> None:
        lists = [PUBLISHED[name]]
        if name in BESIDE_THE_FIELDS:
            lists.append(BESIDE_THE_FIELDS[name].split())
        shorter = min(lists, key=len)
        rest = {field for one in lists for field in one} - set(shorter)
        assert set(SCORERS[name].required) == set(shorter)
        assert rest <= set(SCORERS[name].optional)

    def test_every_scorer_of_the_schema_is_in_it(self) -> None:
        # g_eval and panel_judge read a context where there is one.
        assert set(PUBLISHED) <= set(SCORERS)
        assert SCORERS["g_eval"].optional == SCORERS["panel_judge"].optional == ("context",)

    def test_it_knows_every_field_of_the_schema_and_no_other(self) -> None:
        assert set(PRESENT) == set(FIELDS) == set(SCHEMA)
        assert {field for reads in SCORERS.values() for field in (*reads.required, *reads.optional)} <= set(SCHEMA)

    def test_a_need_is_called_after_its_field(self) -> None:
        assert {need.code for need in FIELDS.values()} == {f"no_{field}" for field in SCHEMA}


GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "scorers-and-fields.md"
BY = {"a rule": "rule", "a judge": "judge", "the recording": "sound"}


def test_the_guide_has_the_same_table() -> None:
    told = {}
    for line in GUIDE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[4] in BY:
            names, required, optional = (tuple(re.findall("`(.*?)`", cell)) for cell in cells[:3])
            only = None if cells[3] == "any" else cells[3]
            told |= dict.fromkeys(names, (required, optional, only, BY[cells[4]]))
    assert told == {name: (one.required, one.optional, one.only, one.by) for name, one in SCORERS.items()}


def codes(name: str) -> list[str]:
    return [need.code for need in needs_of(name)]


class TestNeeds:
    def test_the_kind_of_item_then_the_fields_then_a_judge(self) -> None:
        assert codes("role_adherence") == [
            "not_a_conversational_item",
            "no_agent_role",
            "no_conversation_context",
            "no_agent_response",
            "no_judge",
        ]

    def test_an_agent_that_has_not_finished_cannot_have_reached_its_goal(self) -> None:
        assert codes("goal_achievement") == [
            "not_an_agent_item",
            "no_agent_exit",
            "agent_not_exited",
            "no_trace",
            "no_judge",
        ]

    def test_rules_need_no_judge(self) -> None:
        assert codes("exact_match") == ["no_agent_response", "no_ground_truth"]

    def test_a_recording_and_somebody_who_listens_to_it(self) -> None:
        assert codes("mos") == ["no_recording", "no_audio_analysis"]


def met(name: str, code: str, conversation: Conversation) -> bool:
    return next(need for need in needs_of(name) if need.code == code).met(conversation)


class TestKindOfItem:
    @pytest.mark.parametrize(
        ("kinds", "agent_scorers", "conversational_scorers"),
        [
            ((), True, True),
            (("",), True, True),  # not stated
            (("agent",), True, False),
            (("conversational",), False, True),
            (("agent", "conversational"), True, True),
        ],
    )
    def test_it_decides_what_is_planned(
        self, kinds: tuple[str, ...], agent_scorers: bool, conversational_scorers: bool
    ) -> None:
        items = tuple(Item(id=str(number), kind=kind) for number, kind in enumerate(kinds))
        conversation = chat(items=items)
        assert met("task_progression", "not_an_agent_item", conversation) is agent_scorers
        assert met("knowledge_retention", "not_a_conversational_item", conversation) is conversational_scorers

    def test_an_item_of_the_other_kind_is_left_out_of_a_mixed_conversation(self) -> None:
        case = of_item(item={"kind": "agent"}, beside=(Item(id="2", kind="conversational"),))
        left_out = silence(case, "knowledge_retention")
        assert left_out is not None
        assert (str(left_out.subject), left_out.status, left_out.reason) == (
            "item 1",
            "not_applicable",
            "not_a_conversational_item",
        )


class TestSilence:
    def test_the_first_missing_field_is_named(self) -> None:
        case = of_item(user("Where is my order?"), item={"asked": 0})
        assert missing(case, "task_progression") == "agent_role"
        left_out = silence(case, "task_progression")
        assert left_out is not None
        assert (left_out.status, left_out.reason, left_out.detail) == ("unmeasured", "no_agent_role", "agent_role")

    def test_an_agent_that_goes_on(self) -> None:
        going_on = of_item(item={"outcome": Outcome(finished=False), "extras": {"trace": [{}]}})
        left_out = silence(going_on, "goal_achievement")
        assert left_out is not None
        assert (left_out.status, left_out.reason) == ("not_applicable", "agent_not_exited")
        done = of_item(item={"outcome": Outcome(finished=True), "extras": {"trace": [{}]}})
        assert silence(done, "goal_achievement") is None


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
        assert (missing(first, "answer_relevancy"), missing(second, "answer_relevancy")) == (
            "agent_response",
            "agent_task",
        )

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


class TestSound:
    @pytest.mark.parametrize(
        ("facts", "is_named"),
        [
            ({}, False),
            ({"recording": AudioFile(transcript="Hi.")}, False),  # words, and no sound
            ({"recording": AudioFile(tracks=(Track(duration=12.0, format="wav"),))}, False),  # how long, not where
            ({"recording": AudioFile(tracks=(Track(url="https://example.org/a.wav"),))}, True),
            ({"recording": AudioFile(tracks=(Track(path="audio.wav"),))}, True),
            ({"recording": AudioFile(tracks=(Track(id="uuid"),))}, True),
            ({"items": (Item(id="1", extras={"metadata": {"local_audio_path": "a.wav"}}),)}, True),
            ({"items": (Item(id="1", extras={"raw_complete_audio": {"audio_url": "a.wav"}}),)}, True),
            ({"items": (Item(id="1", extras={"raw_complete_audio": {"audio_duration": 3}}),)}, False),
            ({"items": (Item(id="1", extras={"raw_complete_audio": "a", "metadata": "b"}),)}, False),
        ],
    )
    def test_a_recording_has_to_be_named(self, facts: dict[str, Any], is_named: bool) -> None:
        assert met("mos", "no_recording", chat(**facts)) is is_named
