"""LiveKit: session reports and chat histories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import (
    Conversation,
    Marker,
    StateEntered,
    StateExited,
    Utterance,
)
from convoscope.errors import InputError
from convoscope.ingest.formats.livekit import READER
from convoscope.ingest.reader import Sample
from convoscope.metrics.latency.components import LATENCIES
from convoscope.scoring.evaluate import observe
from convoscope.views.standard_data.payloads.metrics_collected import COMPONENT_FIELDS
from support.exports import built_one, codes, metrics
from support.logs import EXAMPLES, read, write_json

EXAMPLE = EXAMPLES / "livekit"
T = 1773057600.0


def message(role: str, text: str, at: float | None = None, **more: Any) -> dict[str, Any]:
    item = {"id": more.pop("id", f"{role}-{at}"), "type": "message", "role": role, "content": [text], **more}
    return item if at is None else {**item, "created_at": T + at}


def handoff(old: str | None, new: str, at: float) -> dict[str, Any]:
    return {"id": f"h-{at}", "type": "agent_handoff", "old_agent_id": old, "new_agent_id": new, "created_at": T + at}


def event(kind: str, at: float, **more: Any) -> dict[str, Any]:
    return {"type": kind, "created_at": T + at, **more}


def speaking(who: str, start: float, end: float) -> list[dict[str, Any]]:
    kind = f"{who}_state_changed"
    return [
        event(kind, start, old_state="listening", new_state="speaking"),
        event(kind, end, old_state="speaking", new_state="listening"),
    ]


def report(*items: Any, events: Any = (), **more: Any) -> dict[str, Any]:
    return {
        "job_id": "AJ",
        "room_id": "RM",
        "events": list(events),
        "chat_history": {"items": list(items)},
        "agent_name": "desk",
        **more,
    }


def only(value: Any) -> Conversation:
    return built_one(READER, value)[0]


def spans(utterance: Utterance) -> list[tuple[float, float]]:
    return [(round(one.start - T, 3), round(one.end - T, 3)) for one in utterance.segments]


class TestStates:
    def test_agents_are_states_and_a_handoff_leads_from_one_to_the_next(self) -> None:
        made = only(
            report(handoff(None, "greeter", 0), message("assistant", "Hi", 1), handoff("greeter", "booking", 2))
        )
        told = [(type(one).__name__, getattr(one, "state", "")) for one in made.timeline]
        assert told == [
            ("StateEntered", "greeter"),
            ("Utterance", ""),
            ("StateExited", "greeter"),
            ("StateEntered", "booking"),
        ]
        left = made.timeline[2]
        assert isinstance(left, StateExited)
        assert left.to_state == "booking"
        assert made.dimensions == {"agent": "desk", "flow": "desk"}

    def test_what_came_before_the_first_handoff_was_said_by_the_old_agent(self) -> None:
        made = only(report(message("assistant", "Hi", 1), handoff("greeter", "booking", 2)))
        first = made.timeline[0]
        assert isinstance(first, StateEntered)
        assert first.state == "greeter"

    def test_a_handoff_from_somebody_else_is_put_right(self) -> None:
        made, notes = built_one(READER, report(handoff(None, "a", 0), handoff("b", "c", 1)))
        assert [(one.state, one.to_state) for one in made.timeline if isinstance(one, StateExited)] == [("a", "c")]
        assert "handoff_from_another_agent" in codes(notes)

    def test_a_session_of_one_agent_has_no_flow(self) -> None:
        assert only(report(message("user", "x", 0))).dimensions == {"agent": "desk"}


class TestWords:
    def test_markup_is_meant_and_not_spoken(self) -> None:
        made = only(report(message("assistant", '<expr type="expression" label="warm"/> Good <expr>day</expr>.', 0)))
        said = made.utterances[0]
        assert said.spoken is not None
        assert said.spoken.text == "Good day."
        assert said.intended is not None
        assert said.intended.text.startswith("<expr type=")

    def test_what_was_cut_off_is_what_was_played(self) -> None:
        made = only(report(message("assistant", "We have", 0, interrupted=True)))
        said = made.utterances[0]
        assert (said.spoken and said.spoken.text, said.intended, said.cut_off_by) == ("We have", None, "user")

    def test_the_user_was_heard_with_a_confidence(self) -> None:
        made = only(report(message("user", "Two.", 0, transcript_confidence=0.8)))
        heard = made.utterances[0].heard
        assert heard is not None
        assert (heard.text, heard.confidence) == ("Two.", 0.8)

    def test_instructions_are_nobodys_words(self) -> None:
        made = only(report(message("system", "Be kind.", 0), message("user", "Hi", 1)))
        assert made.agent.instructions == "Be kind."
        assert len(made.utterances) == 1

    def test_a_summary_of_old_words_was_not_said(self) -> None:
        made = only(report(message("assistant", "They met.", 0, extra={"is_summary": True}), message("user", "Hi", 1)))
        assert [one.speaker for one in made.utterances] == ["user"]
        assert [one.value for one in made.timeline if isinstance(one, Marker)] == ["They met."]


class TestSound:
    def test_a_message_tells_when_it_was_spoken(self) -> None:
        told = {"started_speaking_at": T + 1, "stopped_speaking_at": T + 2.5}
        made = only(report(message("user", "x", 3, metrics=told)))
        assert spans(made.utterances[0]) == [(1.0, 2.5)]

    def test_it_cannot_stop_before_it_started(self) -> None:
        told = {"started_speaking_at": T + 2, "stopped_speaking_at": T + 1}
        made, notes = built_one(READER, report(message("user", "x", 3, metrics=told)))
        assert made.utterances[0].segments == ()
        assert "stopped_before_started" in codes(notes)

    def test_changes_of_state_tell_where_messages_do_not(self) -> None:
        events = [
            *speaking("agent", 1, 3),
            *speaking("user", 4, 5),
            *speaking("user", 5.2, 6),
            *speaking("agent", 8, 9),
        ]
        made = only(
            report(
                message("assistant", "a", 1),
                message("user", "b", 6.5),
                message("assistant", "c", 7.9),
                events=events,
            )
        )
        assert [spans(one) for one in made.utterances] == [[(1, 3)], [(4, 5), (5.2, 6)], [(8, 9)]]

    def test_sound_without_words_is_marked(self) -> None:
        made = only(report(message("user", "b", 3), events=speaking("user", 4, 5)))
        assert [(one.name, one.participant) for one in made.timeline if isinstance(one, Marker)] == [
            ("user_speaking", "user")
        ]


class TestLatency:
    def test_user_and_reply_are_joined_by_the_reply(self) -> None:
        heard = {"end_of_turn_delay": 0.5, "transcription_delay": 0.2}
        said = {"llm_node_ttft": 0.4, "tts_node_ttfb": 0.1, "e2e_latency": 1.1, "llm_node_tps": 40.0}
        made = only(
            report(
                handoff(None, "desk", 0),
                message("user", "a", 1, metrics=heard),
                message("assistant", "b", 2, metrics=said, id="reply"),
            )
        )
        assert {one.component: one.values for one in metrics(made)} == {
            "eou": {"end_of_utterance_delay": 0.5, "transcription_delay": 0.2},
            "llm": {"ttft": 0.4, "tokens_per_second": 40.0},
            "tts": {"ttfb": 0.1},
            "turn": {"e2e_latency": 1.1},
        }
        assert {(one.speech_id, one.state) for one in metrics(made)} == {("reply", "desk")}

    def test_values_that_say_none(self) -> None:
        made, notes = built_one(
            READER,
            report(
                message("user", "a", 1, metrics={"end_of_turn_delay": 0.0, "transcription_delay": 0.0}),
                message("assistant", "b", 2, metrics={"llm_node_ttft": -1, "e2e_latency": 1.0}),
            ),
        )
        assert [one.values for one in metrics(made)] == [{"transcription_delay": 0.0}, {"e2e_latency": 1.0}]
        assert [one.extras for one in metrics(made)] == [{"end_of_turn_delay": 0.0}, {"llm_node_ttft": -1}]
        assert set(codes(notes)) >= {"end_of_turn_delay_says_none", "llm_node_ttft_says_none"}

    def test_models_are_told_by_the_metrics(self) -> None:
        told = {"llm_metadata": {"model_name": "m1"}, "tts_metadata": {"model_name": "v1"}, "e2e_latency": 1.0}
        made = only(report(message("assistant", "b", 2, metrics=told)))
        assert (made.agent.models, made.dimensions["model"], made.pipeline) == (
            {"llm": "m1", "tts": "v1"},
            "m1",
            "cascade",
        )


HEARD = {"transcription_delay": 0.312, "end_of_turn_delay": 0.553, "on_user_turn_completed_delay": 0.0004}
SAID = {
    "llm_node_ttft": 0.482,
    "llm_node_ttfs": 0.61,
    "llm_node_tps": 30.5,
    "tts_node_ttfb": 0.187,
    "playback_latency": 0.003,
    "e2e_latency": 1.32,
}
COMPONENTS = {
    "eou": {"transcription_delay": 0.312, "end_of_utterance_delay": 0.553, "on_user_turn_completed_delay": 0.0004},
    "llm": {"ttft": 0.482, "ttfs": 0.61, "tokens_per_second": 30.5},
    "tts": {"ttfb": 0.187, "playback_latency": 0.003},
}


def by_component(conversation: Conversation) -> tuple[dict[str, Any], list[Any]]:
    """What the components measured, and what was measured of the turn, wherever it stands."""
    measured = {field for _, field in COMPONENT_FIELDS.values()}
    found = {
        one.component: {name: one.values[name] for name in one.values if name in measured}
        for one in metrics(conversation)
    }
    whole = [one.values["e2e_latency"] for one in metrics(conversation) if "e2e_latency" in one.values]
    return {component: values for component, values in found.items() if values}, whole


def latencies(conversation: Conversation) -> dict[str, list[Any]]:
    return {
        name: [(found.status, found.value, found.reason) for found in observe(one, conversation)]
        for name, one in LATENCIES.items()
    }


class TestThePayloadInAnItem:
    """The metrics of the same messages, in a session report and as `metrics_collected` of an item."""

    @pytest.mark.parametrize(
        ("heard", "said"),
        [
            (HEARD, SAID),
            ({}, {"tts_node_ttfb": 0.187, "playback_latency": 0.003}),  # a greeting
            ({}, {"playback_latency": 0.003}),
            ({}, {"llm_node_ttfs": 0.61}),
            (HEARD, {"e2e_latency": 1.32}),
        ],
        ids=["all", "greeting", "playback alone", "first sentence alone", "the turn alone"],
    )
    def test_is_read_the_same(self, heard: dict[str, float], said: dict[str, float], tmp_path: Path) -> None:
        messages = [message("user", "a", 1, metrics=heard), message("assistant", "b", 2, metrics=said, id="reply")]
        reported = only(report(*messages))
        item = {"agent_task": "a", "agent_response": "b", "metrics_collected": messages}
        (of_an_item,) = read(write_json(tmp_path / "items.json", [item])).conversations
        assert by_component(of_an_item) == by_component(reported)
        assert latencies(of_an_item) == latencies(reported)

    def test_is_read_as_the_table_says(self) -> None:
        messages = [message("user", "a", 1, metrics=HEARD), message("assistant", "b", 2, metrics=SAID, id="reply")]
        assert by_component(only(report(*messages))) == (COMPONENTS, [1.32])


class TestJavaScript:
    def test_milliseconds_and_camel_case(self) -> None:
        at = int(T * 1000)
        items = [
            {"id": "1", "type": "agent_handoff", "newAgentId": "greeter", "createdAt": at},
            {
                "id": "2",
                "type": "message",
                "role": "assistant",
                "content": ["Hi"],
                "createdAt": at + 1000,
                "metrics": {"e2eLatency": 900, "startedSpeakingAt": at + 1000, "stoppedSpeakingAt": at + 2500},
            },
            {
                "id": "3",
                "type": "function_call",
                "callId": "c",
                "name": "find",
                "args": '{"a": 1}',
                "createdAt": at + 3000,
            },
            {"id": "4", "type": "function_call_output", "callId": "c", "output": "no", "isError": True},
        ]
        made, notes = built_one(READER, report(*items))
        assert spans(made.utterances[0]) == [(1.0, 2.5)]
        assert [one.values for one in metrics(made)] == [{"e2e_latency": 0.9}]
        assert made.tool_calls[0].arguments == {"a": 1}
        assert made.tool_results[made.tool_calls[0].seq].success is False
        assert set(codes(notes)) >= {"names_in_camel_case", "time_in_epoch_ms", "metrics_in_milliseconds"}

    def test_short_waits_beside_milliseconds_are_seconds(self) -> None:
        item = {"id": "2", "type": "message", "role": "assistant", "content": ["Hi"], "createdAt": int(T * 1000)}
        made = only(report({**item, "metrics": {"e2eLatency": 0.9}}))
        assert [one.values for one in metrics(made)] == [{"e2e_latency": 0.9}]


class TestEventsAndTheEnd:
    @pytest.mark.parametrize(
        ("reason", "finished", "error"),
        [
            ("CR_PARTICIPANT_DISCONNECTED", True, ""),
            ("CR_COMPLETED", True, ""),
            ("task_completed", True, ""),
            ("CR_JOB_SHUTDOWN", None, ""),
            ("CR_ERROR", False, "CR_ERROR"),
            (None, None, ""),
        ],
    )
    def test_reasons(self, reason: str | None, finished: bool | None, error: str) -> None:
        outcome = only(report(message("user", "x", 0), close_reason=reason, duration_ms=1500)).outcome
        assert (outcome.ended_reason, outcome.finished, outcome.error) == (reason or "", finished, error)
        assert outcome.duration == 1.5

    def test_the_close_event_tells_where_the_report_does_not(self) -> None:
        closed = event("close", 5, reason="error", error={"type": "llm_error", "label": "openai.LLM"})
        outcome = only(report(message("user", "x", 0), events=[closed])).outcome
        assert (outcome.ended_reason, outcome.error) == ("error", "llm_error: openai.LLM")

    def test_an_error_that_was_got_over_is_only_marked(self) -> None:
        failed = event("error", 1, error={"type": "tts_error", "recoverable": True}, source="tts")
        made = only(report(message("user", "x", 0), events=[failed]))
        assert made.outcome.error == ""
        assert [one.name for one in made.timeline if isinstance(one, Marker)] == ["error"]

    def test_words_that_reached_no_message_are_kept(self) -> None:
        heard = [
            event("user_input_transcribed", 1, transcript="Hello", is_final=True),
            event("user_input_transcribed", 2, transcript="anyone there", is_final=True),
            event("user_input_transcribed", 3, transcript="any", is_final=False),
        ]
        made = only(report(message("user", "Hello.", 1), events=heard))
        assert [one.value["transcript"] for one in made.timeline if isinstance(one, Marker)] == ["anyone there"]

    def test_without_a_history_the_events_tell(self) -> None:
        calls = {"call_id": "c", "name": "find", "arguments": "{}", "id": "f", "created_at": T + 2}
        outputs = {"call_id": "c", "name": "find", "output": "ok", "is_error": False, "id": "g", "created_at": T + 3}
        events = [
            event("conversation_item_added", 1, item=message("user", "Find it", 1)),
            event("function_tools_executed", 3, function_calls=[calls], function_call_outputs=[outputs]),
            event("conversation_item_added", 4, item=message("assistant", "Found", 4)),
        ]
        whole = report(events=events)
        del whole["chat_history"]
        made, notes = built_one(READER, whole)
        assert [made.text(one) for one in made.utterances] == ["Find it", "Found"]
        assert len(made.tool_calls) == 1
        assert "item_from_an_event" in codes(notes)

    def test_a_report_without_both_is_refused(self) -> None:
        with pytest.raises(InputError, match="has no chat history"):
            only({"job_id": "AJ", "room_id": "RM", "close_reason": "CR_ERROR"})

    def test_a_list_of_tools_counts_only_if_it_is_whole(self) -> None:
        given = {"type": "agent_config_update", "id": "c", "tools_added": ["find"], "created_at": T}
        made = only(report(given, message("user", "x", 1)))
        assert [tool.name for tool in made.agent.tools or ()] == ["find"]
        called = {"type": "function_call", "id": "f", "call_id": "1", "name": "other", "arguments": "{}"}
        assert only(report(given, called)).agent.tools is None

    def test_a_recording_is_named(self) -> None:
        made = only(report(message("user", "x", 0), audio_recording_path="/disk/a.ogg", audio_recording_started_at=T))
        assert made.recording is not None
        (track,) = made.recording.tracks
        assert (track.path, track.format, track.started and track.started.at) == ("/disk/a.ogg", "ogg", T)


class TestFiles:
    def test_the_example(self) -> None:
        outcome = read(EXAMPLE)
        assert outcome.ids == ["chat-history", "RM_lake1", "RM_lake2"]
        assert outcome.report.problems == []
        assert outcome.report.unknown == {}
        _, first, broken = outcome.conversations
        assert [one.state for one in first.timeline if isinstance(one, StateEntered)] == [
            "greeter",
            "booking",
            "farewell",
        ]
        assert broken.outcome.error == "llm_error: openai.LLM"

    def test_a_bare_history(self, tmp_path: Path) -> None:
        outcome = read(write_json(tmp_path / "h.json", {"items": [message("user", "x"), handoff(None, "a", 1)]}))
        assert [file.format for file in outcome.report.files.values()] == ["livekit"]

    def test_it_leaves_other_formats_alone(self) -> None:
        call = {"call_id": "c", "transcript": "x"}
        plain = {"type": "message", "role": "user", "content": "x"}
        for other in ({"items": [call]}, {"items": [plain]}, {"output": [plain]}, {"items": [{"agent_task": "x"}]}, []):
            assert READER.detect(Sample(Path("x.json"), "document", [other])) is None
