"""Where each field of an item lives in a conversation, and how the items of one conversation come together."""

from __future__ import annotations

from typing import Any

import pytest

from convoscope.conversation import (
    Clock,
    ComponentMetric,
    Conversation,
    Expected,
    ExpectedToolCall,
    Outcome,
    Participant,
    Retrieval,
    Text,
    Time,
    Tool,
    ToolCall,
    ToolResult,
    Track,
    Utterance,
    from_json,
    to_json,
)
from convoscope.views.standard_data import standard_data_of, tidy, to_conversation
from convoscope.views.standard_data.canonical import fields_of

SEED: dict[str, Any] = {
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
ASK = {"agent_task": "Where is it?", "agent_response": "On its way."}
HELLO = {"speaker": "user", "message": "Hello."}
HI = {"speaker": "assistant", "message": "Hi! What can I do?"}
WHERE = {"speaker": "user", "message": "Where is it?"}
COMING = {"speaker": "assistant", "message": "On its way."}


def converted(*payloads: dict[str, Any]) -> Conversation:
    """The conversation of some items; and the way back, through JSON, gives exactly these items."""
    tidied = [tidy(payload) for payload in payloads]
    conversation = from_json(to_json(to_conversation(tidied, id="talk-1")))
    assert [fields_of(conversation, item) for item in conversation.items] == tidied
    return conversation


def story(conversation: Conversation) -> list[str]:
    """The timeline, one line an event."""
    return [_told(event) for event in conversation.timeline]


def _told(event: Any) -> str:
    if isinstance(event, Utterance):
        return f"{event.speaker}: {event.intended.text if event.intended else '-'}"
    if isinstance(event, ToolCall):
        return f"{event.name}()"
    if isinstance(event, ToolResult):
        return f"-> {event.result}"
    if isinstance(event, Retrieval):
        return f"? {event.query}: {' | '.join(event.chunks)}"
    assert isinstance(event, ComponentMetric)
    return f"[{event.component} {event.label}]".replace(" ]", "]")


def with_history(*turns: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"conversation_context": {"turns": list(turns)}, **fields}


class TestOneItem:
    def test_the_published_example(self) -> None:
        conversation = converted(SEED)
        (item,) = conversation.items
        assert story(conversation) == [
            "user: How do I cancel my subscription?",
            "? cancel subscription: To cancel, go to Settings > Billing and click Cancel plan.",
            "assistant: You can cancel your subscription from Settings > Billing > Cancel plan.",
        ]
        assert (item.asked, item.answered, item.events) == (0, 2, (1,))
        assert item.kind == "agent"
        assert item.expected == Expected(ground_truth="Settings > Billing > Cancel plan")
        assert conversation.dimensions == {"agent": "support-bot", "model": "gpt-4o"}
        assert conversation.agent.name == "support-bot"
        assert conversation.agent.role == "Customer support specialist"
        assert conversation.agent.instructions == "You are a helpful customer support agent for Acme Corp."
        assert conversation.agent.tools is None
        assert item.extras == {
            "turn_id": None,  # it has none: "1" is its place
            "tool_calls": [],  # it is known that no tool was called
            "source_trace_id": "trace_abc123",
            "metadata": {"environment": "production", "model": "gpt-4o"},
        }
        assert item.id == "1"
        assert conversation.source.format == "standard-data"

    def test_ids(self) -> None:
        conversation = converted({**ASK, "turn_id": "span-9", "user_id": "u-1", "task_id": "007"})
        assert conversation.items[0].id == "span-9"
        assert conversation.dimensions == {"user_id": "u-1", "task_id": "007"}
        assert conversation.items[0].extras == {}

    def test_what_is_not_of_the_schema_and_what_was_odd(self) -> None:
        conversation = converted({**ASK, "colour": "red", "agent_exit": "perhaps"})
        extras = conversation.items[0].extras
        assert extras["unknown"] == {"colour": "red"}
        assert [(path, code, value) for path, code, _, value in extras["warnings"]] == [
            ("agent_exit", "not_a_boolean", "perhaps")
        ]

    def test_twins_that_differ(self) -> None:
        conversation = converted({**ASK, "input_text": "Where's my parcel?"})
        assert conversation.items[0].extras["input_text"] == "Where's my parcel?"
        assert story(conversation)[0] == "user: Where is it?"

    def test_twins_that_agree_are_one(self) -> None:
        conversation = converted({"input_text": "Where is it?", "output_text": "On its way."})
        assert story(conversation) == ["user: Where is it?", "assistant: On its way."]
        assert conversation.items[0].extras == {"turn_id": None}

    def test_expectations_and_the_end(self) -> None:
        call = {"tool_name": "track", "parameters": {"number": "A-1"}, "call_id": "c-1"}
        conversation = converted(
            {
                **ASK,
                "expected_tool_call": call,
                "expected_format": "JSON",
                "exit_status": "timeout",
                "agent_exit": False,
            }
        )
        (item,) = conversation.items
        assert item.expected.tool_calls == (ExpectedToolCall("track", {"number": "A-1"}, "c-1"),)
        assert item.expected.format == "JSON"
        assert item.outcome == Outcome(finished=False, final_status="timeout")

    def test_tools_that_the_agent_had(self) -> None:
        schema = {"name": "track", "description": "Find a parcel.", "args_schema": {"type": "object"}, "owner": "mail"}
        conversation = converted({**ASK, "tools_available": [schema]})
        assert conversation.agent.tools == (
            Tool(
                name="track",
                description="Find a parcel.",
                arguments_schema={"type": "object"},
                extras={"owner": "mail"},
            ),
        )
        assert converted({**ASK, "tools_available": []}).agent.tools == ()

    def test_empty_texts_are_not_the_same_as_none(self) -> None:
        conversation = converted({**ASK, "agent_name": "", "exit_status": "", "user_id": "", "turn_id": ""})
        assert conversation.agent.name == ""
        assert conversation.dimensions == {}
        assert conversation.items[0].extras == {"agent_name": "", "exit_status": "", "user_id": "", "turn_id": ""}

    def test_an_empty_answer_is_an_answer(self) -> None:
        conversation = converted({"agent_task": "Hello?", "agent_response": ""})
        assert story(conversation) == ["user: Hello?", "assistant: "]

    def test_only_an_answer(self) -> None:
        conversation = converted({"agent_response": "On its way."})
        assert conversation.participants == (Participant("assistant", "assistant"),)
        assert (conversation.items[0].asked, conversation.items[0].answered) == (None, 0)

    def test_nothing_at_all(self) -> None:
        conversation = converted({})
        assert conversation.timeline == ()
        assert conversation.items[0].extras == {"turn_id": None}


class TestTools:
    CALLS = [
        {"tool_name": "find", "parameters": {"who": "me"}, "call_id": "a"},
        {"tool_name": "track", "parameters": {}, "call_id": "b"},
    ]

    def test_a_result_follows_its_call(self) -> None:
        results = [
            {"call_id": "b", "result": "van", "success": True},
            {"call_id": "a", "result": None, "success": False, "error_message": "nobody"},
            {"call_id": "z", "result": "stray"},
        ]
        conversation = converted({**ASK, "tool_calls": self.CALLS, "tool_call_results": results})
        assert story(conversation)[1:-1] == ["find()", "-> None", "track()", "-> van", "-> stray"]
        # The item names them as they were listed: the calls, then the results.
        assert conversation.items[0].events == (1, 3, 4, 2, 5)
        failed = conversation.timeline[2]
        assert isinstance(failed, ToolResult)
        assert (failed.success, failed.error) == (False, "nobody")

    def test_a_call_without_an_id(self) -> None:
        conversation = converted({**ASK, "tool_calls": [{"tool_name": "find", "shade": 1}]})
        (call,) = conversation.tool_calls
        assert (call.name, call.arguments, call.call_id, call.extras) == ("find", None, "", {"shade": 1})


class TestRetrieval:
    def test_more_chunks_than_queries(self) -> None:
        conversation = converted({**ASK, "retrieval_query": ["a"], "retrieved_context": [["1", "2"], ["3"]]})
        assert story(conversation)[1:-1] == ["? a: 1 | 2", "? None: 3"]

    def test_fewer_chunks_than_queries(self) -> None:
        conversation = converted({**ASK, "retrieval_query": ["a", "b"], "retrieved_context": [["1"]]})
        assert story(conversation)[1:-1] == ["? a: 1", "? b: "]
        # The way back would give [["1"], []].
        assert conversation.items[0].extras["standard_data"] == {"retrieved_context": [["1"]]}

    def test_queries_whose_chunks_are_not_told(self) -> None:
        conversation = converted({**ASK, "retrieval_query": ["a"]})
        assert conversation.items[0].extras["retrieved_context"] is None

    @pytest.mark.parametrize("name", ["retrieval_query", "retrieved_context", "tool_calls", "tool_call_results"])
    def test_an_empty_list_says_that_there_was_nothing(self, name: str) -> None:
        assert converted({**ASK, name: []}).items[0].extras[name] == []


class TestVoice:
    def test_component_metrics(self) -> None:
        llm = {"type": "llm_metrics", "ttft": 0.4, "label": "turn_1", "source_label": "openai.LLM", "speech_id": "s-1"}
        realtime = {"type": "realtime_model_metrics", "ttft": 0.6}
        conversation = converted({**ASK, "metrics_collected": [llm, realtime]})
        assert conversation.timeline[1] == ComponentMetric(
            seq=1,
            component="llm",
            label="turn_1",
            speech_id="s-1",
            values={"ttft": 0.4, "source_label": "openai.LLM"},
        )
        assert story(conversation)[1:-1] == ["[llm turn_1]", "[realtime_model]"]

    def test_metrics_are_put_in_the_order_of_their_times(self) -> None:
        metrics = [
            {"type": "tts_metrics", "ttfb": 0.2, "timestamp": 1763200003.0},
            {"type": "eou_metrics", "end_of_utterance_delay": 0.5, "timestamp": 1763200001.0},
        ]
        span = {"transcript": "Where is it?", "span_start_time": "2025-11-15T09:46:39Z"}  # 1763199999
        conversation = converted({**ASK, "metrics_collected": metrics, "stt_data": {"turn_1": span}})
        assert story(conversation)[1:-1] == ["[stt_span turn_1]", "[eou]", "[tts]"]
        assert [event.time for event in conversation.timeline[1:-1]] == [
            Time(1763199999.0),
            Time(1763200001.0),
            Time(1763200003.0),
        ]
        assert conversation.clocks == (Clock(id="wall", kind="wall", source="timestamp"),)

    def test_without_all_times_they_stay_as_listed(self) -> None:
        metrics = [{"type": "tts_metrics", "timestamp": 1763200003.0}, {"type": "llm_metrics", "ttft": 0.4}]
        conversation = converted({**ASK, "metrics_collected": metrics, "tts_data": {"input_text": "Hi."}})
        assert story(conversation)[1:-1] == ["[tts]", "[llm]", "[tts_span]"]

    def test_a_span_takes_its_time(self) -> None:
        span = {"span_start_time": "2025-11-15T09:46:40Z", "span_end_time": "2025-11-15T09:46:41.5Z", "model": "m"}
        conversation = converted({**ASK, "stt_data": span})
        assert conversation.timeline[1].time == Time(1763200000.0, "wall", 1763200001.5)

    def test_the_recording(self) -> None:
        audio = {
            "audio_url": "https://audio.example/1.ogg",
            "audio_uuid": "a-1",
            "audio_duration": 34.5,
            "sample_rate": 48000,
            "channels": 2,
            "format": "ogg",
            "complete_transcript": "Where is it? On its way.",
            "timeline": {"user": [[0.0, 1.5]]},
        }
        recording = converted({**ASK, "raw_complete_audio": audio}).recording
        assert recording is not None
        assert recording.tracks == (
            Track(url="https://audio.example/1.ogg", id="a-1", duration=34.5, sample_rate=48000, format="ogg"),
        )
        assert recording.transcript == "Where is it? On its way."
        assert recording.extras == {"channels": 2, "timeline": {"user": [[0.0, 1.5]]}}


class TestHistory:
    def test_turns_are_utterances_and_speakers_participants(self) -> None:
        turns = [
            {
                "speaker": "Caller",
                "message": "Hello.",
                "timestamp": "2026-03-02T09:00:00Z",
                "metadata": {"mood": "calm"},
            },
            {"speaker": "ivy", "message": "Hi."},
            {"speaker": "Supervisor", "message": "Go on."},
            {"message": "Noise."},
        ]
        conversation = converted({"agent_name": "Ivy", "conversation_context": {"turns": turns, "topic": "parcels"}})
        assert conversation.participants == (
            Participant("Caller", "user"),
            Participant("ivy", "assistant"),  # called like the agent
            Participant("Supervisor", "supervisor"),
            Participant("", "unknown"),
        )
        assert conversation.timeline[0] == Utterance(
            seq=0,
            speaker="Caller",
            intended=Text("Hello.", "conversation_context"),
            time=Time(1772442000.0),
            extras={"timestamp": "2026-03-02T09:00:00Z", "metadata": {"mood": "calm"}},
        )
        assert conversation.items[0].extras["conversation_context"] == {"turns": [0, 1, 2, 3], "topic": "parcels"}

    def test_question_and_answer_at_its_end_are_not_doubled(self) -> None:
        calls = [{"tool_name": "track", "parameters": {}, "call_id": "b"}]
        conversation = converted(with_history(HELLO, HI, WHERE, COMING, **ASK, tool_calls=calls))
        assert story(conversation) == [
            "user: Hello.",
            "assistant: Hi! What can I do?",
            "user: Where is it?",
            "track()",
            "assistant: On its way.",
        ]
        (item,) = conversation.items
        assert (item.asked, item.answered, item.events) == (2, 4, (3,))
        assert item.extras["conversation_context"] == {"turns": [0, 1, 2, 4]}

    def test_only_the_question_is_in_it(self) -> None:
        conversation = converted(with_history(HELLO, HI, WHERE, **ASK))
        assert story(conversation)[2:] == ["user: Where is it?", "assistant: On its way."]
        assert (conversation.items[0].asked, conversation.items[0].answered) == (2, 3)

    def test_neither_is_in_it(self) -> None:
        conversation = converted(with_history(HELLO, HI, **ASK))
        assert story(conversation)[2:] == ["user: Where is it?", "assistant: On its way."]
        assert conversation.items[0].extras["conversation_context"] == {"turns": [0, 1]}

    def test_an_earlier_exchange(self) -> None:
        """Each item of an export may carry the whole conversation."""
        conversation = converted(with_history(WHERE, COMING, HELLO, HI, **ASK))
        assert len(conversation.timeline) == 4
        assert (conversation.items[0].asked, conversation.items[0].answered) == (0, 1)

    def test_the_same_question_again_with_another_answer(self) -> None:
        conversation = converted(with_history(WHERE, COMING, agent_task="Where is it?", agent_response="Here."))
        assert story(conversation)[2:] == ["user: Where is it?", "assistant: Here."]

    def test_a_task_that_nobody_said(self) -> None:
        task = {"agent_task": "Help to find a parcel", "agent_response": "On its way."}
        conversation = converted(with_history(WHERE, COMING, **task))
        assert story(conversation) == ["user: Where is it?", "user: Help to find a parcel", "assistant: On its way."]
        assert (conversation.items[0].asked, conversation.items[0].answered) == (1, 2)

    def test_the_customer_asks_as_the_customer(self) -> None:
        customer = {"speaker": "customer", "message": "Hello."}
        conversation = converted(with_history(customer, **ASK))
        assert story(conversation)[1] == "customer: Where is it?"


class TestSeveralItems:
    def test_a_growing_history_is_told_once(self) -> None:
        first = {"agent_task": "Hello.", "agent_response": "Hi! What can I do?", "turn_id": "t-1"}
        conversation = converted(first, with_history(HELLO, HI, **ASK, turn_id="t-2"))
        assert story(conversation) == [
            "user: Hello.",
            "assistant: Hi! What can I do?",
            "user: Where is it?",
            "assistant: On its way.",
        ]
        assert [(item.id, item.asked, item.answered) for item in conversation.items] == [("t-1", 0, 1), ("t-2", 2, 3)]

    def test_a_window_onto_the_talk(self) -> None:
        conversation = converted(with_history(HELLO, HI, WHERE), with_history(HI, WHERE, COMING))
        assert [turn.split(":")[0] for turn in story(conversation)] == ["user", "assistant", "user", "assistant"]
        assert conversation.items[1].extras["conversation_context"] == {"turns": [1, 2, 3]}

    def test_a_history_that_knows_more_of_a_turn(self) -> None:
        timed = {**WHERE, "timestamp": "2026-03-02T09:00:00Z"}
        conversation = converted(ASK, with_history(timed, COMING))
        assert len(conversation.timeline) == 2
        assert conversation.timeline[0].time == Time(1772442000.0)

    def test_a_history_that_tells_a_turn_otherwise_is_kept_as_it_came(self) -> None:
        moody = {**HELLO, "metadata": {"mood": "calm"}}
        conversation = converted(with_history(HELLO, HI), with_history(moody, HI))
        assert len(conversation.timeline) == 2
        assert conversation.items[1].extras["standard_data"] == {"conversation_context": {"turns": [moody, HI]}}

    def test_what_happened_stays_with_its_item(self) -> None:
        def calling(name: str) -> dict[str, Any]:
            calls = [{"tool_name": name, "parameters": {}, "call_id": "c-1"}]
            return {**ASK, "tool_calls": calls, "tool_call_results": [{"call_id": "c-1", "result": name}]}

        conversation = converted(calling("find"), calling("track"))
        assert [item.events for item in conversation.items] == [(1, 2), (5, 6)]
        # The same id twice: each result belongs to the call before it.
        assert [result.result for result in conversation.tool_results.values()] == ["find", "track"]

    def test_single_turns_come_in_the_order_of_their_positions(self) -> None:
        turns = [
            {"speaker": "assistant", "message": "Hi!", "turn_position": 1},
            {"speaker": "user", "message": "Hello.", "turn_position": 0},
        ]
        conversation = converted(*turns)
        assert story(conversation) == ["user: Hello.", "assistant: Hi!"]
        # Items stay in the order of the records, and each points at its turn.
        assert [item.events for item in conversation.items] == [(1,), (0,)]
        assert conversation.items[0].extras["message"] == "Hi!"

    def test_single_turns_without_positions_come_in_the_order_of_their_times(self) -> None:
        turns = [
            {"speaker": "assistant", "message": "Hi!", "timestamp": "2026-03-02T09:00:02Z"},
            {"speaker": "user", "message": "Hello.", "timestamp": "2026-03-02T09:00:00Z"},
        ]
        conversation = converted(*turns)
        assert story(conversation) == ["user: Hello.", "assistant: Hi!"]
        assert conversation.timeline[1].time == Time(1772442002.0)

    def test_single_turns_without_either_stay_as_they_were_read(self) -> None:
        conversation = converted({"speaker": "assistant", "message": "Hi!"}, {"speaker": "user", "message": "Hello."})
        assert story(conversation) == ["assistant: Hi!", "user: Hello."]

    def test_facts_of_the_agent_that_an_item_does_not_share(self) -> None:
        conversation = converted(
            {**ASK, "agent_name": "ivy", "agent_role": "clerk"},
            {**ASK, "agent_name": "fern", "agent_role": "clerk"},
            ASK,
        )
        assert (conversation.agent.name, conversation.agent.role) == ("ivy", "clerk")
        assert "agent" not in conversation.dimensions
        assert [item.extras.get("agent_name", "as above") for item in conversation.items] == ["as above", "fern", None]

    def test_users_are_a_dimension_only_where_all_agree(self) -> None:
        same = converted({**ASK, "user_id": "u", "task_id": "t"}, {**ASK, "user_id": "u", "task_id": "s"})
        assert same.dimensions == {"user_id": "u"}
        assert [item.extras["task_id"] for item in same.items] == ["t", "s"]
        assert converted({**ASK, "user_id": "u"}, ASK).dimensions == {}

    def test_a_recording_that_differs(self) -> None:
        conversation = converted(
            {**ASK, "raw_complete_audio": {"audio_url": "1.wav"}}, {**ASK, "raw_complete_audio": {"audio_url": "2.wav"}}
        )
        assert conversation.recording is not None
        assert conversation.recording.tracks[0].url == "1.wav"
        assert conversation.items[1].extras["raw_complete_audio"] == {"audio_url": "2.wav"}

    def test_ids_that_are_used_twice_are_told_apart(self) -> None:
        conversation = converted({**ASK, "turn_id": "a"}, {**ASK, "turn_id": "a"}, ASK, {**ASK, "turn_id": "3"})
        assert [item.id for item in conversation.items] == ["a", "a~2", "3", "3~2"]


class TestConversationsOfOtherFormats:
    def test_a_chat_is_one_item(self) -> None:
        chat = Conversation(
            id="c-1",
            dimensions={"agent": "ivy", "model": "m-1", "task_id": "t-1"},
            participants=(Participant("user", "user"), Participant("assistant:Ivy", "assistant", "Ivy")),
            clocks=(Clock(id="wall", kind="wall"),),
            expected=Expected(ground_truth="closed"),
            timeline=(
                Utterance(seq=0, speaker="user", intended=Text("Open on Monday?"), time=Time(1772442000.0)),
                ToolCall(seq=1, name="hours", arguments={"day": "Monday"}, call_id="c"),
                ToolResult(seq=2, call_id="c", result={"open": False}),
                Utterance(seq=3, speaker="assistant:Ivy", intended=Text("It is closed.")),
            ),
        )
        (item,) = standard_data_of(chat)
        assert item.model_dump(exclude_none=True) == {
            "conversation_id": "c-1",
            "task_id": "t-1",
            "agent_task": "Open on Monday?",
            "input_text": "Open on Monday?",
            "agent_response": "It is closed.",
            "output_text": "It is closed.",
            "ground_truth": "closed",
            "tool_calls": [{"tool_name": "hours", "parameters": {"day": "Monday"}, "call_id": "c"}],
            "tool_call_results": [{"call_id": "c", "result": {"open": False}}],
            "conversation_context": {
                "turns": [
                    {"speaker": "user", "message": "Open on Monday?", "timestamp": "2026-03-02T09:00:00Z"},
                    {"speaker": "assistant", "message": "It is closed."},
                ]
            },
            "metadata": {"model": "m-1"},
        }

    def test_nothing_is_made_up(self) -> None:
        (item,) = standard_data_of(Conversation(id="c-1"))
        assert item.model_dump(exclude_none=True) == {"conversation_id": "c-1"}


def test_what_python_brings_that_json_cannot_carry() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    for value in (float("nan"), b"bytes", {1, 2}, object(), "\ud800", [float("inf")], 10**5_000, deep):
        tidied = tidy({"agent_exit": value})
        conversation = to_conversation([tidied], id="talk-1")
        ((path, code, _, kept),) = from_json(to_json(conversation)).items[0].extras["warnings"]
        assert (path, code) == ("agent_exit", "not_a_boolean")
        assert kept is not None
