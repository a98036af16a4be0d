"""OpenTelemetry GenAI, and what all readers of traces do: order, sessions, histories, tools, agents inside of tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Retrieval, ToolCall, ToolResult
from convoscope.errors import ConvoscopeError
from support.logs import EXAMPLES, Outcome, measured, read, talk, write_json
from support.spans import answers, calls, model, otlp, says, span, tool

ASK, REPLY = says("user", "Is it open?"), says("assistant", "Until six.")
AGAIN, BYE = says("user", "And on Sunday?"), says("assistant", "It is closed.")


def reading(folder: Path, *spans: Any) -> Outcome:
    return read(write_json(folder / "trace.json", otlp(*spans)))


class TestTheExample:
    def test_two_traces_of_a_session_are_one_conversation(self) -> None:
        conversation = read(EXAMPLES / "otel-genai" / "boathouse.jsonl").only
        assert conversation.id == "kayak-17"
        assert talk(conversation) == [
            "user: Is a double kayak free on Saturday?",
            'free_boats({"day": "Saturday", "seats": 2})',
            '-> {"free": 3}',
            "assistant:Boathouse: Yes, three double kayaks are free on Saturday.",
            "user: Then hold one for me, please.",
            'hold_boat({"day": "Saturday"})',
            "-> null",
            "assistant:Boathouse: I could not hold the kayak: our booking service does not answer.",
        ]
        assert conversation.agent.instructions == "You rent out kayaks at Fjord Paddles."

    def test_the_failed_tool_has_its_error(self) -> None:
        conversation = read(EXAMPLES / "otel-genai" / "boathouse.jsonl").only
        results = [event for event in conversation.timeline if isinstance(event, ToolResult)]
        assert [(result.success, result.error) for result in results] == [
            (None, ""),
            (False, "the booking service does not answer"),
        ]

    def test_tokens_and_times_of_each_call_are_measured(self) -> None:
        """Four calls: 0.1 to 1.0, 1.4 to 2.2, 30.1 to 31.0, and 36.2 to 37.1 seconds."""
        conversation = read(EXAMPLES / "otel-genai" / "boathouse.jsonl").only
        assert measured(conversation) == [
            {"prompt_tokens": 48, "completion_tokens": 17, "duration": pytest.approx(0.9)},
            {"prompt_tokens": 83, "completion_tokens": 12, "duration": pytest.approx(0.8)},
            {"prompt_tokens": 104, "completion_tokens": 15, "duration": pytest.approx(0.9)},
            {"prompt_tokens": 140, "completion_tokens": 16, "duration": pytest.approx(0.9)},
        ]

    def test_the_older_conventions(self) -> None:
        conversation = read(EXAMPLES / "otel-genai" / "older-conventions.json").only
        assert talk(conversation) == [
            "user: Do you rent dry suits?",
            "assistant: Yes, in all sizes, from April to June.",
        ]
        assert measured(conversation) == [
            {"prompt_tokens": 31, "completion_tokens": 10, "total_tokens": 41, "duration": 1.5}
        ]


class TestOrder:
    def test_the_last_answer_may_come_first_in_the_file(self, tmp_path: Path) -> None:
        later = model("b", 10, 11, [ASK, REPLY, AGAIN], BYE)
        outcome = reading(tmp_path, later, model("a", 0, 1, [ASK], REPLY))
        assert talk(outcome.only) == [
            "user: Is it open?",
            "assistant: Until six.",
            "user: And on Sunday?",
            "assistant: It is closed.",
        ]

    def test_a_parent_may_be_absent(self, tmp_path: Path) -> None:
        outcome = reading(tmp_path, model("a", 0, 1, [ASK], REPLY, parent="never-exported"))
        assert talk(outcome.only) == ["user: Is it open?", "assistant: Until six."]

    def test_spans_that_are_each_the_parent_of_the_other_end(self, tmp_path: Path) -> None:
        outcome = reading(tmp_path, model("a", 0, 1, [ASK], REPLY, parent="b"), span("b", 0, 1, parent="a"))
        assert talk(outcome.only) == ["user: Is it open?", "assistant: Until six."]


class TestHistories:
    def test_five_calls_with_growing_inputs_are_said_once(self, tmp_path: Path) -> None:
        """1, 3, 5, 7 and 9 messages are sent: 25. Said were five questions and five answers."""
        spans, history = [], list[Any]()
        for number in range(5):
            question, answer = says("user", f"Question {number}?"), says("assistant", f"Answer {number}.")
            spans.append(model(f"s{number}", 10 * number, 10 * number + 1, [*history, question], answer))
            history += [question, answer]
        assert talk(reading(tmp_path, *spans).only) == [
            line for number in range(5) for line in (f"user: Question {number}?", f"assistant: Answer {number}.")
        ]

    def test_a_user_who_says_the_same_again_in_a_new_trace_is_heard_twice(self, tmp_path: Path) -> None:
        session = {"gen_ai.conversation.id": "s"}
        first = model("a", 0, 1, [ASK], REPLY, attributes=session)
        second = model("b", 60, 61, [ASK], BYE, trace="t2", attributes=session)
        assert talk(reading(tmp_path, first, second).only) == [
            "user: Is it open?",
            "assistant: Until six.",
            "user: Is it open?",
            "assistant: It is closed.",
        ]

    def test_the_same_words_twice_in_one_history_are_two_messages(self, tmp_path: Path) -> None:
        yes, one, two = says("user", "Yes."), says("assistant", "Sure?"), says("assistant", "Really?")
        spans = [model("a", 0, 1, [yes], one), model("b", 5, 6, [yes, one, yes], two)]
        assert talk(reading(tmp_path, *spans).only) == [
            "user: Yes.",
            "assistant: Sure?",
            "user: Yes.",
            "assistant: Really?",
        ]


class TestHistoriesOverTraces:
    """Each turn is a trace of its own, and no span names the session: a call repeats what was said before."""

    def turn(self, id: str, at: float, messages: list[Any], answer: Any, **attributes: Any) -> Any:
        return model(id, at, at + 1, messages, answer, trace=f"trace-{id}", attributes=attributes)

    def test_three_turns_are_one_conversation(self, tmp_path: Path) -> None:
        last, end = says("user", "Thanks."), says("assistant", "Bye.")
        spans = [
            self.turn("c", 20, [ASK, REPLY, AGAIN, BYE, last], end),
            self.turn("a", 0, [ASK], REPLY),
            self.turn("b", 10, [ASK, REPLY, AGAIN], BYE),
        ]
        outcome = reading(tmp_path, *spans)
        assert talk(outcome.only) == [
            "user: Is it open?",
            "assistant: Until six.",
            "user: And on Sunday?",
            "assistant: It is closed.",
            "user: Thanks.",
            "assistant: Bye.",
        ]
        assert outcome.ids == ["trace-a"]
        assert outcome.report.inferred["history_merged"].count == 1

    def test_two_users_who_begin_alike_are_two(self, tmp_path: Path) -> None:
        """Each of the two beginnings is gone on from once."""
        other = says("user", "Where is it?")
        spans = [
            self.turn("a", 0, [ASK], REPLY),
            self.turn("b", 1.5, [ASK], REPLY),
            self.turn("c", 10, [ASK, REPLY, AGAIN], BYE),
            self.turn("d", 20, [ASK, REPLY, other], BYE),
        ]
        conversations = reading(tmp_path, *spans).conversations
        assert [len(talk(one)) for one in conversations] == [4, 4]
        assert [talk(one)[2] for one in conversations] == ["user: And on Sunday?", "user: Where is it?"]

    def test_other_users_and_named_sessions_are_apart(self, tmp_path: Path) -> None:
        spans = [
            self.turn("a", 0, [ASK], REPLY, **{"user.id": "ann"}),
            self.turn("b", 10, [ASK, REPLY, AGAIN], BYE, **{"user.id": "bob"}),
            self.turn("c", 20, [ASK, REPLY, AGAIN], BYE, **{"session.id": "visit", "user.id": "ann"}),
        ]
        assert len(reading(tmp_path, *spans).conversations) == 3

    def test_a_question_that_repeats_no_answer_begins_anew(self, tmp_path: Path) -> None:
        spans = [self.turn("a", 0, [ASK], REPLY), self.turn("b", 10, [ASK, AGAIN], BYE)]
        assert len(reading(tmp_path, *spans).conversations) == 2

    def test_a_tool_in_a_trace_of_its_own_belongs_to_its_call(self, tmp_path: Path) -> None:
        held = {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "9 to 6"}
        ran = tool("t", 1.1, 1.6, "hours", trace="trace-t", attributes=held)
        outcome = reading(tmp_path, self.turn("a", 0, [ASK], calls("hours", "c1")), ran)
        assert talk(outcome.only) == ["user: Is it open?", "hours({})", '-> "9 to 6"']


class TestSessions:
    def test_one_span_that_names_the_session_is_enough(self, tmp_path: Path) -> None:
        root = span("root", 0, 2, attributes={"session.id": "visit-1"})
        assert reading(tmp_path, model("a", 0, 1, [ASK], REPLY, parent="root"), root).ids == ["visit-1"]

    def test_traces_without_a_session_are_conversations_of_their_own(self, tmp_path: Path) -> None:
        spans = [model("a", 0, 1, [ASK], REPLY), model("b", 9, 10, [AGAIN], BYE, trace="t2")]
        assert sorted(reading(tmp_path, *spans).ids) == ["t1", "t2"]

    def test_a_trace_of_something_else_is_counted(self, tmp_path: Path) -> None:
        spans = [model("a", 0, 1, [ASK], REPLY), span("GET /health", 0, 1, trace="t2")]
        outcome = reading(tmp_path, *spans)
        assert outcome.ids == ["t1"]
        assert outcome.report.ignored["trace_of_something_else"] == 1


class TestTwice:
    def test_the_same_span_twice_is_one(self, tmp_path: Path) -> None:
        call = model("a", 0, 1, [ASK], REPLY)
        outcome = reading(tmp_path, call, call)
        assert talk(outcome.only) == ["user: Is it open?", "assistant: Until six."]
        assert outcome.report.ignored["span_twice"] == 1

    def test_a_streamed_call_in_two_traces_is_one(self, tmp_path: Path) -> None:
        """One span ends when the stream is opened, without the answer; another has it."""
        opened = model("a", 0, 0.1, [ASK], None)
        whole = model("b", 0, 1.5, [ASK], REPLY, trace="t2")
        outcome = reading(tmp_path, opened, whole)
        assert outcome.ids == ["t2"]
        assert talk(outcome.only) == ["user: Is it open?", "assistant: Until six."]
        assert outcome.report.ignored["call_logged_twice"] == 1

    def test_the_same_question_an_hour_later_is_another_call(self, tmp_path: Path) -> None:
        spans = [model("a", 0, 1, [ASK], REPLY), model("b", 3600, 3601, [ASK], REPLY, trace="t2")]
        assert len(reading(tmp_path, *spans).conversations) == 2


class TestTools:
    def test_calls_in_messages_count_without_spans_of_tools(self, tmp_path: Path) -> None:
        asked = calls("hours", "c1", day="Monday")
        spans = [model("a", 0, 1, [ASK], asked), model("b", 2, 3, [ASK, asked, answers("c1", "9 to 6")], REPLY)]
        assert talk(reading(tmp_path, *spans).only) == [
            "user: Is it open?",
            'hours({"day": "Monday"})',
            '-> "9 to 6"',
            "assistant: Until six.",
        ]

    def test_a_span_and_two_messages_are_one_call_and_one_result(self, tmp_path: Path) -> None:
        asked = calls("hours", "c1", day="Monday")
        ran = tool(
            "t", 1.1, 1.6, "hours", attributes={"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "9 to 6"}
        )
        later = model("b", 2, 3, [ASK, asked, answers("c1", "9 to 6")], REPLY)
        conversation = reading(tmp_path, model("a", 0, 1, [ASK], asked), ran, later).only
        assert [event.name for event in conversation.timeline if isinstance(event, ToolCall)] == ["hours"]
        (result,) = (event for event in conversation.timeline if isinstance(event, ToolResult))
        assert result.time is not None
        assert result.time.at == pytest.approx(1_772_440_001.6)

    def test_a_hand_over_is_no_tool(self, tmp_path: Path) -> None:
        handed = span("h", 1, 1, attributes={"gen_ai.operation.name": "handoff", "gen_ai.handoff.to_agent": "Billing"})
        conversation = reading(tmp_path, model("a", 0, 1, [ASK], REPLY), handed).only
        assert talk(conversation)[-1] == "[handoff]"
        assert not any(isinstance(event, ToolCall) for event in conversation.timeline)

    def test_a_retrieval(self, tmp_path: Path) -> None:
        found = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "opening hours"}
        found |= {"gen_ai.retrieval.documents": [{"content": "Open from nine to six."}]}
        lookup = span("r", 0, 0.5, attributes=found)
        conversation = reading(tmp_path, lookup, model("a", 1, 2, [ASK], REPLY)).only
        (event,) = (event for event in conversation.timeline if isinstance(event, Retrieval))
        assert (event.query, event.chunks) == ("opening hours", ("Open from nine to six.",))


def test_an_agent_inside_of_a_tool_does_not_talk_with_the_user(tmp_path: Path) -> None:
    asked = calls("research", "c1", topic="rain")
    task, found = says("user", "Research rain."), says("assistant", "It will rain.")
    given = {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "It will rain."}
    spans = [
        model("a", 0, 1, [ASK], asked),
        tool("t", 1.1, 5, "research", attributes=given),
        model("inner", 2, 4, [task], found, parent="t", attributes={"gen_ai.agent.name": "Scout"}),
        model("b", 6, 7, [ASK, asked, answers("c1", "It will rain.")], REPLY),
    ]
    conversation = reading(tmp_path, *spans).only
    assert talk(conversation) == [
        "user: Is it open?",
        'research({"topic": "rain"})',
        "orchestrator: Research rain.",
        "subagent:Scout: It will rain.",
        '-> "It will rain."',
        "assistant: Until six.",
    ]
    assert [turn.user_text for turn in conversation.turns] == ["Is it open?"]


class TestNoContent:
    def test_it_is_refused_with_that_reason(self, tmp_path: Path) -> None:
        bare = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small", "gen_ai.usage.input_tokens": 9}
        with pytest.raises(ConvoscopeError, match=r"1 calls of models without any message .*capture of message"):
            reading(tmp_path, span("a", 0, 1, attributes=bare))

    def test_another_trace_of_the_file_is_read(self, tmp_path: Path) -> None:
        bare = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small"}
        outcome = reading(tmp_path, span("a", 0, 1, attributes=bare), model("b", 0, 1, [ASK], REPLY, trace="t2"))
        assert outcome.ids == ["t2"]
        assert "trace t1: 1 calls of models without any message" in outcome.problem.message


def test_instructions_may_be_parts(tmp_path: Path) -> None:
    parts = {"gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}]}
    assert reading(tmp_path, model("a", 0, 1, [ASK], REPLY, attributes=parts)).only.agent.instructions == "Be brief."


def test_messages_as_events(tmp_path: Path) -> None:
    def event(name: str, body: dict[str, Any]) -> dict[str, Any]:
        typed = [{"key": key, "value": {"stringValue": value}} for key, value in body.items()]
        return {"name": name, "attributes": typed}

    events = [
        event("gen_ai.user.message", {"content": "Is it open?"}),
        event("gen_ai.choice", {"message": '{"role": "assistant", "content": "Until six."}'}),
    ]
    old = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small"}
    conversation = reading(tmp_path, span("a", 0, 1, attributes=old, events=events)).only
    assert talk(conversation) == ["user: Is it open?", "assistant: Until six."]
