"""Vapi: calls and end-of-call reports with their nodes, assistants, tools, latencies and verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import (
    ComponentMetric,
    Conversation,
    SlotFilled,
    StateEntered,
    ToolCall,
    ToolResult,
)
from convoscope.errors import InputError
from convoscope.ingest.formats.vapi import READER
from convoscope.ingest.reader import Sample
from support.exports import built_one, codes, steps
from support.logs import EXAMPLES, counts, read, write_json, write_lines
from support.tool_outcomes import stated

START = 1772800000000


def said(role: str, text: str, at: float | None = None, length: float = 1.0, **beside: Any) -> dict[str, Any]:
    """A message that begins `at` seconds into the call."""
    if at is None:
        return {"role": role, "message": text, **beside}
    time = START + int(at * 1000)
    whole = {"time": time, "endTime": time + int(length * 1000), "secondsFromStart": at, "duration": length}
    return {"role": role, "message": text, **whole, **beside}


def called(id: str, name: str, arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "tool_calls", "message": "", "toolCalls": [{"id": id, "type": "function", "function": function}]}


def gave(id: str, name: str, result: Any) -> dict[str, Any]:
    told = result if isinstance(result, str) else json.dumps(result)
    return {"role": "tool_call_result", "toolCallId": id, "name": name, "result": told}


HELLO = said("bot", "Hello.", 0.5)
ASK = said("user", "My knee.", 2.0)
REPLY = said("bot", "Which one?", 4.0)


def a_call(*messages: Any, **beside: Any) -> dict[str, Any]:
    """A call; what belongs into its artifact is named by `artifact`."""
    artifact = {"messages": list(messages), **beside.pop("artifact", {})}
    return {"id": "v-1", "orgId": "o", "endedReason": "customer-ended-call", "artifact": artifact, **beside}


def one(*messages: Any, **beside: Any) -> Conversation:
    return built_one(READER, a_call(*messages, **beside))[0]


def node(name: str, /, *messages: Any, **variables: Any) -> dict[str, Any]:
    return {"nodeName": name, "messages": list(messages), "variableValues": variables}


def latency(turn: Any, model: Any = None) -> dict[str, Any]:
    return {"turnLatency": turn, "modelLatency": model}


class TestMessages:
    def test_the_bot_spoke_and_the_user_was_heard(self) -> None:
        bot, user = one(HELLO, said("user", "My knee.", 2.0, confidence=0.9, confidenceSource="provider")).utterances
        assert (bot.speaker, bot.spoken and bot.spoken.text) == ("assistant", "Hello.")
        assert user.heard
        assert (user.speaker, user.heard.text, user.heard.confidence) == ("user", "My knee.", 0.9)
        assert user.heard.source == "artifact.messages.message"

    def test_times_are_of_the_wall_clock(self) -> None:
        call = one(HELLO)
        (bot,) = call.utterances
        begun = START / 1000 + 0.5
        assert bot.time
        assert (bot.time.at, bot.time.until, bot.time.clock) == (begun, begun + 1.0, "wall")
        assert [(seg.start, seg.end, seg.clock) for seg in bot.segments] == [(begun, begun + 1.0, "wall")]

    @pytest.mark.parametrize(
        ("duration", "seconds", "code"), [(9371, 9.371, "duration_in_ms"), (2.5, 2.5, "duration_in_s")]
    )
    def test_without_an_end_the_length_is_read_by_its_size(self, duration: float, seconds: float, code: str) -> None:
        message = {**HELLO, "duration": duration}
        del message["endTime"]
        call, notes = built_one(READER, a_call(message))
        (segment,) = call.utterances[0].segments
        assert segment.end - segment.start == pytest.approx(seconds)
        assert code in codes(notes, "inferred")

    def test_an_end_before_its_start_is_set_aside(self) -> None:
        call, notes = built_one(READER, a_call({**HELLO, "endTime": START - 5000, "duration": None}))
        assert call.utterances[0].segments == ()
        assert codes(notes, "set_aside") == ["end_before_start"]

    def test_seconds_from_the_start_where_there_is_no_time(self) -> None:
        call = one({"role": "bot", "message": "Hello.", "secondsFromStart": 1.25})
        assert call.utterances[0].time
        assert (call.utterances[0].time.at, call.utterances[0].time.clock) == (1.25, "relative")

    def test_the_prompt_is_no_message(self) -> None:
        call = one(said("system", "Be brief.", 0.0), HELLO, said("system", "Now be long."))
        assert call.agent.instructions == "Be brief."
        assert steps(call) == ["assistant: Hello.", "system: Now be long."]

    def test_assistant_is_another_word_for_bot(self) -> None:
        assert steps(one(said("assistant", "Hello."))) == ["assistant: Hello."]

    def test_what_was_filtered_is_kept_beside_what_was_heard(self) -> None:
        (user,) = one(said("user", "[blocked]", isFiltered=True, originalMessage="rm -rf")).utterances
        assert user.heard
        assert (user.heard.text, user.extras) == ("[blocked]", {"isFiltered": True, "originalMessage": "rm -rf"})

    def test_tools(self) -> None:
        call = one(called("t", "find", {"day": "Monday"}), gave("t", "find", "Error: no answer"), HELLO)
        asked, failed = call.timeline[:2]
        assert isinstance(asked, ToolCall)
        assert isinstance(failed, ToolResult)
        assert (asked.name, asked.arguments, asked.call_id) == ("find", {"day": "Monday"}, "t")
        assert (failed.call_id, *stated(failed)) == ("t", False, "Error: no answer")
        assert stated(one(gave("t", "find", {"success": True}), HELLO).timeline[0]) == (True, "")  # type: ignore[arg-type]
        assert one({"role": "tool_call_result", "error": "gone"}, HELLO).timeline[0].error == "gone"  # type: ignore[union-attr]

    def test_a_stranger_among_messages_is_kept(self) -> None:
        call, notes = built_one(READER, a_call(7, {"role": "mood", "message": "?"}, HELLO))
        assert steps(call) == ["[not_a_message]", "[mood]", "assistant: Hello."]
        assert (codes(notes, "ignored"), codes(notes, "unknown")) == (["not_a_message"], ["role=mood"])

    def test_where_messages_are_looked_for(self) -> None:
        openai = [
            {"role": "assistant", "content": "Hi.", "tool_calls": [{"id": "t", "function": {"name": "f"}}]},
            {"role": "tool", "tool_call_id": "t", "content": "done"},
        ]
        base = {"id": "v", "endedReason": "x"}
        assert steps(built_one(READER, {**base, "messages": [ASK]})[0]) == ["user: My knee."]
        assert steps(built_one(READER, {**base, "artifact": {"messagesOpenAIFormatted": openai}})[0]) == [
            "assistant: Hi.",
            "f()",
            "-> None",
        ]
        call, notes = built_one(READER, {**base, "artifact": {"transcript": "AI: Hi.\nUser: Hello\nthere.\n"}})
        assert steps(call) == ["assistant: Hi.", "user: Hello\nthere."]
        assert codes(notes, "inferred") == ["turns_from_text"]


class TestNodes:
    def test_each_visit_is_entered_and_left_with_its_slots(self) -> None:
        nodes = [node("greet", HELLO, ASK), node("knee", REPLY, side=None, pain=0, name=""), node("end")]
        assert steps(one(HELLO, ASK, REPLY, artifact={"nodes": nodes})) == [
            "+greet",
            "assistant: Hello.",
            "user: My knee.",
            "greet>knee",
            "+knee",
            "assistant: Which one?",
            "pain=0@knee",  # 0 and "" are values, null is none
            "name=@knee",
            "knee>end",
            "+end",
        ]

    def test_a_variable_is_filled_once_and_what_was_given_is_not_collected(self) -> None:
        nodes = [node("a", HELLO, clinic="Fernhill", name="Mara"), node("b", ASK, clinic="Fernhill", name="M.", age=4)]
        call = one(
            HELLO,
            ASK,
            artifact={"nodes": nodes, "variableValues": {"name": "M.", "age": 4, "now": "noon", "late": 1}},
            workflowOverrides={"variableValues": {"clinic": "Fernhill"}},
        )
        assert [step for step in steps(call) if "=" in step] == ["name=Mara@a", "age=4@b", "late=1@"]

    def test_lists_that_repeat_the_nodes_before(self) -> None:
        nodes = [node("a", HELLO, ASK), node("b", HELLO, ASK, REPLY)]
        expected = ["+a", "assistant: Hello.", "user: My knee.", "a>b", "+b", "assistant: Which one?"]
        assert steps(one(HELLO, ASK, REPLY, artifact={"nodes": nodes})) == expected
        assert steps(one(artifact={"nodes": nodes})) == expected  # also where only the nodes hold messages

    def test_a_message_that_only_a_node_has_is_not_lost(self) -> None:
        call = one(HELLO, REPLY, artifact={"nodes": [node("a", HELLO, ASK), node("b", REPLY)]})
        assert steps(call)[:4] == ["+a", "assistant: Hello.", "user: My knee.", "a>b"]

    def test_the_flow_is_the_workflow(self) -> None:
        call = one(HELLO, artifact={"nodes": [node("a", HELLO)]}, workflowId="wf", workflow={"name": "Intake"})
        assert call.dimensions == {"agent": "Intake", "flow": "Intake"}


class TestAssistants:
    FIRST = said("bot", "Desk.", assistantName="Desk", assistantId="1")
    SECOND = said("bot", "Billing.", assistantName="Billing", assistantId="2")
    BOTH = [{"assistantName": "Desk", "assistantId": "1"}, {"assistantName": "Billing", "assistantId": "2"}]

    def test_the_next_one_begins_with_its_first_words(self) -> None:
        messages = (self.FIRST, ASK, called("h", "handoff", {}), gave("h", "handoff", "ok"), self.SECOND)
        assert steps(one(*messages, artifact={"assistantActivations": self.BOTH})) == [
            *("+Desk", "assistant: Desk.", "user: My knee.", "handoff()", "-> None"),
            *("Desk>Billing", "+Billing", "assistant: Billing."),
        ]

    def test_one_that_never_spoke_was_still_there(self) -> None:
        active = [self.BOTH[0], {"assistantName": "Router"}, self.BOTH[1], {"assistantName": "Closer"}]
        entered = steps(one(self.FIRST, self.SECOND, artifact={"assistantActivations": active}))
        assert [step for step in entered if step[0] == "+"] == ["+Desk", "+Router", "+Billing", "+Closer"]

    def test_messages_alone_tell_it_too(self) -> None:
        assert "Desk>Billing" in steps(one(self.FIRST, self.SECOND))

    def test_hand_overs_tell_it_where_messages_do_not(self) -> None:
        messages = (HELLO, called("h", "handoff_to_billing", {}), gave("h", "handoff_to_billing", "ok"), REPLY)
        call, notes = built_one(READER, a_call(*messages, artifact={"assistantActivations": self.BOTH}))
        assert steps(call)[-3:] == ["Desk>Billing", "+Billing", "assistant: Which one?"]
        assert "assistant_from_hand_over" in codes(notes, "inferred")

    def test_where_nothing_tells_it_no_state_is_claimed(self) -> None:
        call, notes = built_one(READER, a_call(HELLO, artifact={"assistantActivations": self.BOTH}))
        assert steps(call) == ["assistant: Hello.", "[assistant_activation]", "[assistant_activation]"]
        assert codes(notes, "set_aside") == ["activation_place_not_told"] * 2

    def test_a_lone_assistant_is_no_flow_unless_it_is_of_a_squad(self) -> None:
        alone = {"assistantActivations": self.BOTH[:1]}
        assert steps(one(self.FIRST, artifact=alone)) == ["assistant: Desk."]
        squad = one(self.FIRST, artifact=alone, squadId="sq")
        assert steps(squad) == ["+Desk", "assistant: Desk."]
        assert squad.dimensions == {"agent": "sq", "flow": "sq"}

    def test_nodes_count_more(self) -> None:
        artifact = {"nodes": [node("a", self.FIRST)], "assistantActivations": self.BOTH}
        assert [step for step in steps(one(self.FIRST, artifact=artifact)) if step[0] == "+"] == ["+a"]

    def test_two_of_one_name_are_told_apart(self) -> None:
        active = [{"assistantName": "Desk", "assistantId": "1"}, {"assistantName": "Desk", "assistantId": "2"}]
        second = {**self.SECOND, "assistantName": "Desk"}
        entered = steps(one(self.FIRST, second, artifact={"assistantActivations": active}))
        assert [step for step in entered if step[0] == "+"] == ["+Desk (1)", "+Desk (2)"]


class TestLatencies:
    def test_as_many_as_replies_they_belong_to_them(self) -> None:
        """The greeting answers nobody: two latencies for the two replies."""
        again = (said("user", "Left.", 6.0), said("bot", "Ah.", 8.0))
        figures = {
            "turnLatencies": [
                {"turnLatency": 1260, "modelLatency": 520, "voiceLatency": 210}
                | {"transcriberLatency": 130, "endpointingLatency": 400},
                latency(990),
            ]
        }
        call, notes = built_one(
            READER,
            a_call(HELLO, ASK, REPLY, *again, artifact={"nodes": [node("a", HELLO)], "performanceMetrics": figures}),
        )
        assert steps(call)[3:] == [
            "turn {'e2e_latency': 1.26} @a",
            "llm {'ttft': 0.52} @a",
            "tts {'ttfb': 0.21} @a",
            "eou {'end_of_utterance_delay': 0.4, 'transcription_delay': 0.13} @a",
            "assistant: Which one?",
            "user: Left.",
            "turn {'e2e_latency': 0.99} @a",
            "assistant: Ah.",
        ]
        assert "turn_latencies_by_number" in codes(notes, "inferred")
        parts = [event.speech_id for event in call.timeline if isinstance(event, ComponentMetric)]
        assert len(set(parts[:4])) == 1
        assert parts[4] != parts[0]

    @pytest.mark.parametrize("count", [1, 3])
    def test_else_they_are_of_the_call(self, count: int) -> None:
        again = (said("user", "Left.", 6.0), said("bot", "Ah.", 8.0))
        figures = {"turnLatencies": [latency(1000, 400)] * count}
        call = one(HELLO, ASK, REPLY, *again, artifact={"performanceMetrics": figures})
        assert (
            steps(call)[5:]
            == [
                "call turnLatency {'e2e_latency': 1.0}",
                "call modelLatency {'modelLatency': 0.4}",
            ]
            * count
        )

    def test_averages_are_kept_beside(self) -> None:
        figures = {"turnLatencies": [], "turnLatencyAverage": 1200, "numUserInterrupted": 0}
        call = one(HELLO, artifact={"performanceMetrics": figures})
        assert call.extras["artifact"]["performanceMetrics"] == {"turnLatencyAverage": 1200, "numUserInterrupted": 0}

    @pytest.mark.parametrize(("told", "by"), [(1, "user"), (2, ""), (None, "")])
    def test_a_cut_off_is_claimed_where_count_and_times_agree(self, told: Any, by: str) -> None:
        figures = {"numAssistantInterrupted": told}
        messages = (said("bot", "Our offers", 1.0, 3.0), said("user", "Stop.", 3.5))
        assert one(*messages, artifact={"performanceMetrics": figures}).utterances[0].cut_off_by == by


class TestBesideTheMessages:
    @pytest.mark.parametrize(
        ("reason", "finished", "broken"),
        [
            ("assistant-ended-call", True, False),
            ("customer-ended-call", True, False),
            ("assistant-forwarded-call", True, False),
            ("silence-timed-out", False, False),
            ("exceeded-max-duration", False, False),
            ("voicemail", False, False),
            ("customer-did-not-answer", False, False),
            ("call.in-progress.error-warm-transfer-silence-timeout", False, False),
            ("pipeline-error-openai-llm-failed", False, True),
            ("call.in-progress.error-providerfault-openai-llm-failed", False, True),
            ("call.start.error-get-assistant", False, True),
            ("call.in-progress.error-assistant-did-not-receive-customer-audio", False, True),
            ("twilio-failed-to-connect-call", False, True),
            ("assistant-not-found", False, True),
            ("error-of-tomorrow", False, True),
            ("bored", None, False),
        ],
    )
    def test_how_it_ended(self, reason: str, finished: bool | None, broken: bool) -> None:
        call, notes = built_one(READER, a_call(HELLO, endedReason=reason))
        outcome = call.outcome
        assert (outcome.ended_reason, outcome.finished, outcome.error) == (reason, finished, reason if broken else "")
        assert codes(notes, "unknown") == ([f"endedReason={reason}"] if finished is None else [])

    def test_a_reason_that_is_no_text_is_noted_and_kept(self) -> None:
        call, notes = built_one(READER, a_call(HELLO, endedReason=["customer-ended-call"]))
        assert (call.outcome.ended_reason, call.outcome.finished, call.outcome.error) == ("", None, "")
        assert codes(notes, "set_aside") == ["end_reason_is_no_text"]
        assert call.extras["endedReason"] == ["customer-ended-call"]

    def test_how_long_it_took(self) -> None:
        times = {"startedAt": "2026-03-06T12:00:00.000Z", "endedAt": "2026-03-06T12:00:38.400Z"}
        assert one(HELLO, **times).outcome.duration == 38.4
        assert one(HELLO, durationMs=2500).outcome.duration == 2.5

    @pytest.mark.parametrize("told", [True, "true", "False", "7", "Good"])
    def test_success_is_the_vendors_verdict_and_no_fact(self, told: str | bool) -> None:
        call = one(HELLO, analysis={"successEvaluation": told, "summary": "Short.", "structuredData": {"why": "knee"}})
        assert call.outcome.completed is None
        assert [(label.name, label.value, label.rater, label.rater_kind) for label in call.labels] == [
            ("successEvaluation", told, "vapi", "external"),
            ("structuredData.why", "knee", "vapi", "external"),
        ]
        assert call.extras["analysis"]["summary"] == "Short."

    def test_structured_outputs_and_scorecards_are_labels(self) -> None:
        artifact = {
            "structuredOutputs": {"s": {"name": "Mood", "result": "calm"}},
            "scorecards": {"c": {"name": "Quality", "score": 70}},
        }
        assert [(label.name, label.value) for label in one(HELLO, artifact=artifact).labels] == [
            ("structuredOutputs.Mood", "calm"),
            ("scorecards.Quality", 70),
        ]

    def test_the_agent_and_its_parts(self) -> None:
        tools = [{"type": "function", "function": {"name": "cancel"}}, {"type": "endCall"}]
        assistant = {
            "name": "Reminder",
            "model": {"model": "m-1", "tools": tools, "messages": [{"role": "system", "content": "Be brief."}]},
            "voice": {"provider": "v"},
            "transcriber": {"model": "t-1"},
        }
        call = one(HELLO, assistant=assistant, assistantId="as")
        assert call.dimensions == {"agent": "Reminder", "model": "m-1"}
        assert call.agent.models == {"llm": "m-1", "stt": "t-1"}
        assert [tool.name for tool in call.agent.tools or ()] == ["cancel", "endCall"]
        assert (call.agent.instructions, call.pipeline) == ("Be brief.", "cascade")
        assert one(HELLO, assistant={"model": {"model": "gpt-realtime"}}).pipeline == "s2s"

    def test_recordings_and_transfers(self) -> None:
        artifact = {
            "recordingUrl": "https://x.invalid/m.wav",
            "recording": {
                "mono": {"combinedUrl": "https://x.invalid/m.wav", "assistantUrl": "https://x.invalid/a.wav"}
            },
            "transfers": [{"mode": "blind-transfer", "status": "busy"}],
        }
        call = one(HELLO, artifact=artifact)
        assert call.recording
        assert [(track.id, track.channels) for track in call.recording.tracks] == [
            ("mono", ()),
            ("assistant", ("assistant",)),
        ]
        assert steps(call)[-1] == "[transfer]"

    def test_what_is_unknown_is_kept_and_told(self) -> None:
        call, notes = built_one(READER, a_call(HELLO, mood="calm", cost=0.1))
        assert call.extras == {"orgId": "o", "mood": "calm", "cost": 0.1}
        assert codes(notes, "unknown") == ["call.mood"]


class TestEnvelopes:
    def report(self, call: dict[str, Any], kind: str = "end-of-call-report", **beside: Any) -> dict[str, Any]:
        inner = {name: value for name, value in call.items() if name not in ("artifact", "endedReason")}
        outer = {name: value for name, value in call.items() if name in ("artifact", "endedReason")}
        return {"message": {"type": kind, "call": {**inner, "type": "webCall"}, **outer, **beside}}

    def test_a_call_a_report_a_list_and_lines(self, tmp_path: Path) -> None:
        first, second = a_call(HELLO), {**a_call(ASK), "id": "v-2"}
        for name, value, ids in (
            ("call", first, ["v-1"]),
            ("report", self.report(first), ["v-1"]),
            ("array", [first, self.report(second)], ["v-1", "v-2"]),
            ("list", {"results": [first, second], "metadata": {}}, ["v-1", "v-2"]),
        ):
            outcome = read(write_json(tmp_path / f"{name}.json", value))
            assert (name, outcome.ids, outcome.report.problems) == (name, ids, [])
        assert read(write_lines(tmp_path / "calls.jsonl", self.report(first), second)).ids == ["v-1", "v-2"]

    def test_the_type_of_a_report_is_not_the_calls(self) -> None:
        call, _ = built_one(READER, self.report(a_call(HELLO), timestamp=5))
        assert (call.extras["type"], call.extras["timestamp"]) == ("webCall", 5)

    def test_of_the_webhooks_of_a_call_the_report_tells_all(self, tmp_path: Path) -> None:
        update = self.report({"id": "v-1", "orgId": "o"}, "status-update", status="ringing")
        outcome = read(write_lines(tmp_path / "hooks.jsonl", update, self.report(a_call(HELLO)), update))
        assert outcome.ids == ["v-1"]
        assert outcome.report.ignored["message.type=status-update"] == 2

    def test_a_call_without_messages_but_with_an_end(self) -> None:
        call, notes = built_one(READER, {"id": "v", "endedReason": "customer-busy", "artifact": {}})
        assert (call.timeline, call.outcome.finished) == ((), False)
        assert codes(notes, "set_aside") == ["no_messages"]

    def test_a_call_that_goes_on_is_no_conversation(self) -> None:
        with pytest.raises(InputError, match="no messages and no end"):
            built_one(READER, self.report({"id": "v-1", "orgId": "o"}, "status-update"))

    def test_a_bad_call_in_a_list_costs_itself(self, tmp_path: Path) -> None:
        listed = {"results": [a_call(HELLO), {"id": "v-2"}, "x"]}
        outcome = read(write_json(tmp_path / "list.json", listed))
        assert outcome.ids == ["v-1"]
        assert outcome.problem.message == (
            "2 of 3 calls skipped: results[1] has no messages and no end; results[2] is a str, not a call"
        )


class TestDetection:
    def claim(self, value: Any) -> float:
        found = READER.detect(Sample(Path("x.json"), "document", [value]))
        return found.confidence if found else 0.0

    def test_what_is_ours(self) -> None:
        assert self.claim(a_call(HELLO)) == 1.0
        assert self.claim(
            {"message": {"type": "end-of-call-report", "call": {"id": "v", "orgId": "o"}, "endedReason": ""}}
        )
        assert self.claim({"id": "v", "messages": [HELLO]}) == 1.0

    @pytest.mark.parametrize(
        "value",
        [
            {},
            [],
            "x",
            {"messages": [{"role": "user", "content": "Hi"}]},
            {"message": {"role": "user", "content": "Hi"}},
            {"artifact": {"name": "x"}, "id": "a"},
            {"call_id": "c", "transcript_with_tool_calls": []},
            {"results": [{"id": "x", "score": 1}]},
        ],
    )
    def test_what_is_not(self, value: Any) -> None:
        assert self.claim(value) == 0.0


class TestTheExamples:
    def test_they_are_read_without_a_problem(self) -> None:
        outcome = read(EXAMPLES / "vapi")
        assert outcome.report.problems == []
        assert outcome.report.unknown == {}
        assert len(outcome.conversations) == 6
        assert counts(outcome.report.set_aside) == {"no_messages": 1}

    def test_the_workflow(self) -> None:
        outcome = read(EXAMPLES / "vapi" / "webhooks.jsonl")
        call = next(one for one in outcome.conversations if one.dimensions.get("flow") == "wf-3c20")
        entered = [event.state for event in call.timeline if isinstance(event, StateEntered)]
        assert entered == ["greet", "collect_patient", "find_time", "confirm", "hang_up"]
        slots = {event.slot: (event.value, event.state) for event in call.timeline if isinstance(event, SlotFilled)}
        assert slots == {
            "patient_name": ("Mara Quist", "collect_patient"),
            "date_of_birth": ("1990-05-04", "collect_patient"),
            "known_patient": (False, "collect_patient"),
            "appointment": ("2026-03-09T09:20", "find_time"),
        }
        turns = [event for event in call.timeline if isinstance(event, ComponentMetric) and event.component == "turn"]
        assert [(turn.values["e2e_latency"], turn.state) for turn in turns] == [
            (1.26, "collect_patient"),
            (1.185, "collect_patient"),
            (9.38, "find_time"),
            (1.153, "confirm"),
        ]
