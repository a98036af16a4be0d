"""Retell: calls with their nodes, tools, words, latencies and verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import (
    Conversation,
    Marker,
    SlotFilled,
    StateEntered,
    StateExited,
    ToolCall,
    ToolResult,
    to_json,
)
from convoscope.errors import InputError, NothingReadable
from convoscope.ingest.formats.retell import READER
from convoscope.ingest.reader import Sample
from support.exports import built_one, codes, steps
from support.logs import EXAMPLES, counts, read, write_json, write_lines

REASONS = {
    True: "user_hangup agent_hangup user_requested_dnc user_requested_callback call_transfer transfer_bridged "
    "transfer_cancelled",
    False: "inactivity max_duration_reached manual_stopped call_take_over scam_detected voicemail_reached ivr_reached "
    "dial_busy dial_no_answer user_declined registered_call_timeout",
    None: "concurrency_limit_reached no_concurrency_fallback no_valid_payment credit_exhausted budget_reached "
    "dial_failed invalid_destination telephony_provider_permission_denied telephony_provider_unavailable "
    "sip_routing_error marked_as_spam network_blocked error_llm_websocket_open error_llm_websocket_lost_connection "
    "error_llm_websocket_runtime error_llm_websocket_corrupt_payload error_no_audio_received error_asr error_retell "
    "error_unknown error_user_not_joined",
}
"""All 39 codes: natural ends, forced ends, and (None) a call that could not be made or held."""


def said(role: str, content: str, *times: tuple[float, float], **beside: Any) -> dict[str, Any]:
    words = [
        {"word": word, "start": start, "end": end} for word, (start, end) in zip(content.split(), times, strict=False)
    ]
    return {"role": role, "content": content, "words": words, **beside}


def moved(former: str, new: str, kind: str = "normal", **beside: Any) -> dict[str, Any]:
    """From one node to another; `id/name`."""
    (old_id, old), (new_id, now) = former.split("/"), new.split("/")
    ids = {"former_node_id": old_id, "former_node_name": old, "new_node_id": new_id, "new_node_name": now}
    return {"role": "node_transition", **ids, "transition_type": kind, **beside}


def tool(id: str, name: str, arguments: Any, kind: str = "custom") -> dict[str, Any]:
    told = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"role": "tool_call_invocation", "tool_call_id": id, "name": name, "arguments": told, "type": kind}


def answer(id: str, content: Any, successful: bool | None = None) -> dict[str, Any]:
    told = content if isinstance(content, str) else json.dumps(content)
    return {"role": "tool_call_result", "tool_call_id": id, "content": told, "successful": successful}


HELLO = said("agent", "Hello there.", (0.5, 0.8), (0.9, 1.2))
ASK = said("user", "My bike.", (2.0, 2.2), (2.2, 2.5))


def a_call(*entries: Any, **beside: Any) -> dict[str, Any]:
    return {"call_id": "c-1", "transcript_with_tool_calls": list(entries), **beside}


def one(*entries: Any, **beside: Any) -> Conversation:
    return built_one(READER, a_call(*entries, **beside))[0]


class TestSpeech:
    def test_the_agent_spoke_and_the_user_was_heard(self) -> None:
        agent, user = one(HELLO, ASK).utterances
        assert (agent.speaker, agent.spoken and agent.spoken.text, agent.heard) == ("assistant", "Hello there.", None)
        assert (user.speaker, user.heard and user.heard.text, user.spoken) == ("user", "My bike.", None)
        assert agent.spoken
        assert agent.spoken.source == "transcript_with_tool_calls.content"

    def test_words_are_seconds_of_audio(self) -> None:
        call = one(HELLO)
        (agent,) = call.utterances
        assert [(seg.start, seg.end, seg.clock) for seg in agent.segments] == [(0.5, 1.2, "audio")]
        assert agent.time
        assert (agent.time.at, agent.time.until) == (0.5, 1.2)
        assert [(clock.id, clock.kind) for clock in call.clocks] == [("audio", "audio")]

    def test_a_pause_of_a_second_parts_the_sound(self) -> None:
        (user,) = one(said("user", "Well I think so", (1.0, 1.2), (1.5, 1.6), (2.6, 2.8), (2.9, 3.0))).utterances
        assert [(seg.start, seg.end) for seg in user.segments] == [(1.0, 1.6), (2.6, 3.0)]

    def test_words_out_of_order_are_put_in_order(self) -> None:
        (user,) = one(said("user", "b a", (2.0, 2.4), (1.0, 1.4))).utterances
        assert [(seg.start, seg.end) for seg in user.segments] == [(1.0, 2.4)]

    def test_times_that_cannot_be_are_set_aside(self) -> None:
        call, notes = built_one(READER, a_call(said("user", "a b c", (2.0, 1.0), (-1.0, 0.0), (3.0, 3.5))))
        assert [(seg.start, seg.end) for seg in call.utterances[0].segments] == [(3.0, 3.5)]
        assert codes(notes, "set_aside") == ["word_times"] * 2

    def test_a_transfer_target_is_somebody_else(self) -> None:
        call = one(HELLO, said("transfer_target", "Workshop."))
        assert [(who.id, who.role) for who in call.participants] == [
            ("assistant", "assistant"),
            ("transfer_target", "transfer_target"),
        ]

    def test_a_backchannel_is_told(self) -> None:
        assert one(said("user", "Mm-hm.", metadata={"is_backchannel": True})).utterances[0].manner == "backchannel"

    def test_an_interrupt_with_the_words_that_overlap(self) -> None:
        cut = said("agent", "Our offers are", (1.0, 1.4), (1.4, 1.8), (1.8, 2.4), metadata={"interrupt_id": 3})
        call, notes = built_one(READER, a_call(cut, said("user", "Stop.", (2.1, 2.5))))
        assert [who.cut_off_by for who in call.utterances] == ["user", ""]
        assert call.utterances[0].extras == {"interrupt_id": 3}
        assert codes(notes, "inferred") == ["cut_off_by_times"]

    def test_an_agent_that_cuts_in(self) -> None:
        """The id stands on the agent's words; that they begin inside the user's tells who was cut off."""
        user = said("user", "So I went", (1.0, 1.4), (1.4, 1.8), (1.8, 2.4))
        call = one(user, said("agent", "Wait.", (2.0, 2.4), metadata={"interrupt_id": 0}))
        assert [who.cut_off_by for who in call.utterances] == ["assistant", ""]

    def test_overlap_alone_is_no_cut_off(self) -> None:
        call = one(said("agent", "Bye now", (1.0, 1.4), (1.4, 1.8)), said("user", "Bye.", (1.7, 2.0)))
        assert [who.cut_off_by for who in call.utterances] == ["", ""]

    def test_words_stand_in_for_missing_text(self) -> None:
        entry = said("user", "My bike.", (2.0, 2.2), (2.2, 2.5))
        call, notes = built_one(READER, a_call({**entry, "content": None}))
        assert steps(call) == ["user: My bike."]
        assert codes(notes, "repaired") == ["text_from_words"]

    def test_an_empty_utterance_is_left_out(self) -> None:
        call, notes = built_one(READER, a_call(HELLO, {"role": "user", "content": "", "words": []}))
        assert len(call.timeline) == 1
        assert codes(notes, "ignored") == ["empty_utterance"]


class TestNodes:
    def test_each_visit_is_entered_and_left(self) -> None:
        call = one(HELLO, ASK, moved("1/Greet", "2/Collect"), said("agent", "Which?"), moved("2/Collect", "3/End"))
        assert steps(call) == [
            "+Greet",
            "assistant: Hello there.",
            "user: My bike.",
            "Greet>Collect normal",
            "+Collect",
            "assistant: Which?",
            "Collect>End normal",
            "+End",
        ]

    @pytest.mark.parametrize("kind", ["global", "global_go_back", "interrupt_go_back", "normal"])
    def test_the_kind_of_transition_is_the_reason(self, kind: str) -> None:
        call = one(HELLO, moved("1/A", "2/B", kind, time_sec=8.5))
        left, entered = call.timeline[2:]
        assert isinstance(left, StateExited)
        assert isinstance(entered, StateEntered)
        assert (left.reason, entered.extras) == (kind, {"node_id": "2", "transition_type": kind})
        assert left.time
        assert (left.time.at, left.time.clock) == (8.5, "call")

    def test_a_node_that_leads_to_itself_is_entered_again(self) -> None:
        assert steps(one(HELLO, moved("1/A", "1/A")))[2:] == ["A>A normal", "+A"]

    def test_two_nodes_of_one_name_are_told_apart(self) -> None:
        call = one(HELLO, moved("1/Ask", "2/Ask"), moved("2/Ask", "3/End"))
        assert [step for step in steps(call) if step.startswith("+")] == ["+Ask (1)", "+Ask (2)", "+End"]

    def test_a_node_without_a_name_goes_by_its_id(self) -> None:
        assert "+2" in steps(one(HELLO, moved("1/A", "2/")))

    def test_a_gap_in_the_log_is_closed_and_told(self) -> None:
        call, notes = built_one(READER, a_call(HELLO, moved("1/A", "2/B"), moved("3/C", "4/D")))
        assert steps(call)[2:] == ["A>B normal", "+B", "B>C", "+C", "C>D normal", "+D"]
        assert codes(notes, "inferred") == ["transition_not_logged"]

    def test_a_first_transition_from_nowhere(self) -> None:
        entry = {"role": "node_transition", "new_node_id": "1", "new_node_name": "A"}
        assert steps(one(entry, HELLO)) == ["+A", "assistant: Hello there."]

    def test_a_transition_to_nowhere_is_kept_as_a_marker(self) -> None:
        call, notes = built_one(READER, a_call(HELLO, moved("1/A", "/")))
        assert steps(call) == ["+A", "assistant: Hello there.", "[node_transition]"]
        assert codes(notes, "set_aside") == ["transition_without_node"]

    def test_a_call_that_never_moved_is_in_its_current_node(self) -> None:
        call, notes = built_one(READER, a_call(HELLO, collected_dynamic_variables={"current_node": "Greet"}))
        assert steps(call) == ["+Greet", "assistant: Hello there."]
        assert codes(notes, "inferred") == ["state_from_current_node"]

    def test_without_nodes_in_the_transcript_the_last_one_says_nothing(self) -> None:
        beside = {"collected_dynamic_variables": {"current_node": "End", "previous_node": "Greet"}}
        assert steps(one(HELLO, **beside)) == ["assistant: Hello there."]
        plain = {"call_id": "c", "transcript_object": [HELLO], "collected_dynamic_variables": {"current_node": "End"}}
        assert steps(built_one(READER, plain)[0]) == ["assistant: Hello there."]

    def test_the_flow_is_the_agent_that_owns_the_nodes(self) -> None:
        beside = {"agent_id": "a-1", "agent_name": "Desk", "agent_version": 3}
        assert one(HELLO, **beside).dimensions == {"agent": "Desk", "agent_version": "3"}
        assert one(HELLO, moved("1/A", "2/B"), agent_id="a-1").dimensions == {"agent": "a-1", "flow": "a-1"}


class TestToolsAndSlots:
    def test_a_tool_that_fails(self) -> None:
        call = one(tool("t", "find", {"day": "Monday"}), answer("t", "no answer", False), HELLO)
        called, failed = call.timeline[:2]
        assert isinstance(called, ToolCall)
        assert isinstance(failed, ToolResult)
        assert (called.name, called.arguments, called.call_id) == ("find", {"day": "Monday"}, "t")
        assert (failed.name, failed.success, failed.error) == ("find", False, "no answer")

    def test_success_as_told_counts_more_than_the_words(self) -> None:
        call = one(tool("t", "find", {}), answer("t", {"error": "none"}, True), HELLO)
        assert call.tool_results[0].success is True
        assert call.tool_results[0].error == ""

    def test_arguments_that_are_no_json_are_kept(self) -> None:
        assert one(tool("t", "find", "{day: Monday"), HELLO).tool_calls[0].raw_arguments == "{day: Monday"

    def test_an_extraction_fills_its_slots_in_its_state(self) -> None:
        extract = tool("t", "Read", {"bike": "cargo", "colour": "red"}, "extract_dynamic_variable")
        collected = {"bike": "cargo", "name": "Ida", "current_node": "B", "previous_node": "A"}
        call = one(HELLO, extract, answer("t", "ok", True), moved("1/A", "2/B"), collected_dynamic_variables=collected)
        filled = [step for step in steps(call) if "=" in step]
        assert filled == ["bike=cargo@A", "name=Ida@"]
        assert steps(call).index("bike=cargo@A") == 4  # +A, hello, call, result, slot

    def test_another_tool_fills_what_it_gave_to_the_letter(self) -> None:
        """Variables are text: 2 and "2", true and "True" are the same; another value is not."""
        given = {"bay": 2, "free": True, "day": "Sunday", "gone": None}
        collected = {"bay": "2", "free": "True", "day": "Monday", "gone": ""}
        call, notes = built_one(
            READER,
            a_call(tool("t", "find", {}), answer("t", given, True), HELLO, collected_dynamic_variables=collected),
        )
        assert [step for step in steps(call) if "=" in step] == ["bay=2@", "free=True@", "day=Monday@", "gone=@"]
        assert codes(notes, "inferred") == ["slot_from_tool_result"] * 2 + ["slot_place_not_told"] * 2

    def test_a_failed_tool_fills_nothing(self) -> None:
        extract = tool("t", "Read", {"bike": "cargo"}, "extract_dynamic_variable")
        call = one(HELLO, extract, answer("t", "no", False), ASK, collected_dynamic_variables={"bike": "cargo"})
        assert steps(call)[-1] == "bike=cargo@"

    def test_null_is_no_value_and_empty_is_one(self) -> None:
        call = one(HELLO, collected_dynamic_variables={"a": None, "b": "", "c": 0, "d": False})
        assert steps(call)[1:] == ["b=@", "c=0@", "d=False@"]

    def test_what_the_call_began_with_was_not_collected(self) -> None:
        beside = {"retell_llm_dynamic_variables": {"shop": "Lakeside", "name": "?"}}
        call = one(HELLO, **beside, collected_dynamic_variables={"shop": "Lakeside", "name": "Ida"})
        assert steps(call)[1:] == ["name=Ida@"]

    def test_keys_messages_and_context_are_markers(self) -> None:
        call = one(
            {"role": "dtmf", "digit": "5"},
            {"role": "sms", "content": "LB-1", "time_sec": 4.5},
            {"role": "injected", "content": "VIP", "time_sec": 5.0},
            {"role": "mood", "content": "?"},
            7,
            HELLO,
        )
        markers = [event for event in call.timeline if isinstance(event, Marker)]
        assert [(marker.name, marker.participant, marker.value) for marker in markers] == [
            ("dtmf", "user", "5"),
            ("sms", "user", {"content": "LB-1"}),
            ("injected", "", {"content": "VIP"}),
            ("mood", "", {"content": "?"}),
            ("not_an_entry", "", 7),
        ]
        assert markers[1].time
        assert markers[1].time.clock == "call"

    def test_what_the_platform_did_around_the_call_is_no_act_of_the_agent(self) -> None:
        before = [tool("t", "look_up", {}), answer("t", "{}", True)]
        call = one(
            HELLO,
            moved("1/A", "2/B"),
            pre_session_transcript_with_tool_calls=before,
            post_session_transcript_with_tool_calls=before[:1],
        )
        assert steps(call)[:3] == ["[pre_session]", "[pre_session]", "+A"]
        assert steps(call)[-1] == "[post_session]"
        assert call.tool_calls == ()


class TestWhichTranscript:
    def test_the_scrubbed_one_is_preferred(self) -> None:
        clean = [said("user", "I am [NAME].")]
        call, notes = built_one(
            READER,
            a_call(
                said("user", "I am Ravi."),
                scrubbed_transcript_with_tool_calls=clean,
                transcript="User: I am Ravi.\n",
                transcript_object=[said("user", "I am Ravi.")],
                recording_url="https://x.invalid/a.wav",
                scrubbed_recording_url="https://x.invalid/b.wav",
            ),
        )
        assert "Ravi" not in to_json(call).decode()
        assert steps(call) == ["user: I am [NAME]."]
        assert call.recording
        assert [(track.id, track.url) for track in call.recording.tracks] == [
            ("scrubbed_recording_url", "https://x.invalid/b.wav")
        ]
        assert codes(notes, "ignored") == [
            "transcript_with_tool_calls",
            "transcript_object",
            "transcript",
            "unscrubbed_recording",
        ]

    def test_an_empty_scrubbed_list_is_none(self) -> None:
        assert steps(one(HELLO, scrubbed_transcript_with_tool_calls=[])) == ["assistant: Hello there."]

    def test_then_the_object_then_the_text(self) -> None:
        plain = "Agent: Hello.\nUser: Hi,\nit is me.\nTransfer Target: Yes?\n"
        assert steps(built_one(READER, {"call_id": "c", "transcript_object": [ASK], "transcript": plain})[0]) == [
            "user: My bike."
        ]
        call, notes = built_one(READER, {"call_id": "c", "transcript": plain})
        assert steps(call) == ["assistant: Hello.", "user: Hi,\nit is me.", "transfer_target: Yes?"]
        assert codes(notes, "inferred") == ["turns_from_text"]

    def test_text_without_speakers_is_still_text(self) -> None:
        assert steps(built_one(READER, {"call_id": "c", "transcript": "Hello?"})[0]) == ["unknown: Hello?"]

    def test_one_in_which_nobody_speaks_gives_way_and_is_kept(self) -> None:
        call = one(tool("t", "find", {}), transcript_object=[ASK])
        assert steps(call) == ["user: My bike."]
        assert call.extras["transcript_with_tool_calls"][0]["name"] == "find"


class TestBesideTheTranscript:
    @pytest.mark.parametrize(
        ("reason", "finished"), [(code, told) for told, listed in REASONS.items() for code in listed.split()]
    )
    def test_how_it_ended(self, reason: str, finished: bool | None) -> None:
        outcome = one(HELLO, disconnection_reason=reason).outcome
        assert outcome.ended_reason == reason
        assert outcome.finished is bool(finished)
        assert outcome.error == (reason if finished is None else "")

    def test_there_are_39_codes(self) -> None:
        assert sum(len(listed.split()) for listed in REASONS.values()) == 39

    @pytest.mark.parametrize("reason", [["user_hangup"], {"code": "user_hangup"}, True])
    def test_a_reason_that_is_no_text_is_noted_and_kept(self, reason: Any) -> None:
        call, notes = built_one(READER, a_call(HELLO, disconnection_reason=reason))
        assert (call.outcome.finished, call.outcome.ended_reason, call.outcome.error) == (None, "", "")
        assert codes(notes, "set_aside") == ["end_reason_is_no_text"]
        assert call.extras["disconnection_reason"] == reason

    def test_a_code_of_tomorrow(self) -> None:
        call, notes = built_one(READER, a_call(HELLO, disconnection_reason="bored"))
        assert (call.outcome.finished, call.outcome.error) == (None, "")
        assert codes(notes, "unknown") == ["disconnection_reason=bored"]
        assert one(HELLO, disconnection_reason="error_new").outcome.error == "error_new"
        assert one(HELLO, call_status="error").outcome.error == "call_status error"

    def test_how_long_it_took(self) -> None:
        assert one(HELLO, duration_ms=5120).outcome.duration == 5.12
        assert one(HELLO, start_timestamp=1772700000000, end_timestamp=1772700003500).outcome.duration == 3.5
        call, notes = built_one(READER, a_call(HELLO, duration_ms=-4))
        assert call.outcome.duration is None
        assert codes(notes, "set_aside") == ["duration"]

    def test_latencies_are_of_the_call_and_in_seconds(self) -> None:
        latency = {"e2e": {"p50": 900, "values": [900, 1250.5]}, "llm": {"values": [400, "?", -1]}, "tts": None}
        call, notes = built_one(READER, a_call(HELLO, latency=latency))
        assert steps(call)[1:] == [
            "call e2e {'e2e_latency': 0.9}",
            "call e2e {'e2e_latency': 1.2505}",
            "call llm {'llm_latency': 0.4}",
        ]
        assert codes(notes, "set_aside") == ["latency"] * 2
        assert call.extras["latency"]["e2e"] == {"p50": 900}
        assert call.pipeline == "cascade"
        assert one(HELLO, latency={"s2s": {"values": [300]}, "e2e": {}}).pipeline == "s2s"
        assert one(HELLO).pipeline is None

    def test_verdicts_are_labels_of_the_vendor(self) -> None:
        analysis = {
            "call_successful": False,
            "user_sentiment": "Negative",
            "call_summary": "Short.",
            "custom_analysis_data": {"kind": "brakes", "note": None},
        }
        call, notes = built_one(READER, a_call(HELLO, call_analysis=analysis))
        assert [(label.name, label.value, label.rater, label.rater_kind) for label in call.labels] == [
            ("call_successful", False, "retell", "external"),
            ("user_sentiment", "Negative", "retell", "external"),
            ("custom_analysis_data.kind", "brakes", "retell", "external"),
        ]
        # What a model thinks of a call is no fact about its end.
        assert call.outcome.completed is None
        assert codes(notes, "inferred") == []
        assert call.extras["call_analysis"]["call_summary"] == "Short."

    def test_recordings(self) -> None:
        urls = {"recording_url": "https://x.invalid/a.wav", "recording_multi_channel_url": "https://x.invalid/m.wav"}
        recording = one(HELLO, **urls).recording
        assert recording
        assert [track.id for track in recording.tracks] == ["recording_multi_channel_url", "recording_url"]

    def test_dimensions_of_the_callers_own_metadata(self) -> None:
        assert one(HELLO, metadata={"scenario_id": "s", "trial": 2, "crm": 7}).dimensions == {
            "scenario_id": "s",
            "trial": "2",
        }

    def test_what_is_unknown_is_kept_and_told(self) -> None:
        call, notes = built_one(READER, a_call(HELLO, mood="calm", from_number="+12025550142", duration_ms="long"))
        assert call.extras == {"mood": "calm", "from_number": "+12025550142", "duration_ms": "long"}
        assert codes(notes, "unknown") == ["call.mood"]

    def test_a_key_is_not_kept(self) -> None:
        assert "secret" not in to_json(one(HELLO, access_token="secret")).decode()


class TestEnvelopes:
    def test_one_call_a_webhook_a_list_and_an_array(self, tmp_path: Path) -> None:
        one_call, other = a_call(HELLO), {**a_call(ASK), "call_id": "c-2"}
        shapes: dict[str, Any] = {
            "call": (one_call, ["c-1"]),
            "webhook": ({"event": "call_ended", "call": one_call}, ["c-1"]),
            "list": ({"items": [one_call, other], "has_more": False, "pagination_key": "c-2"}, ["c-1", "c-2"]),
            "array": ([one_call, {"event": "call_ended", "call": other}], ["c-1", "c-2"]),
            "arrays": ([[one_call], [other]], ["c-1", "c-2"]),
        }
        for name, (value, ids) in shapes.items():
            outcome = read(write_json(tmp_path / f"{name}.json", value))
            assert (name, outcome.ids, outcome.report.problems) == (name, ids, [])

    def test_the_webhooks_of_a_call_are_one_conversation(self, tmp_path: Path) -> None:
        """The analysis comes last, whatever the order in which the lines were written."""
        started = {"event": "call_started", "call": {"call_id": "c-1", "call_status": "ongoing", "agent_id": "a"}}
        ended = {"event": "call_ended", "call": a_call(HELLO, call_status="ended", disconnection_reason="user_hangup")}
        verdict = {"call_successful": True}
        analyzed = {"event": "call_analyzed", "call": {**ended["call"], "call_analysis": verdict}}
        outcome = read(write_lines(tmp_path / "hooks.jsonl", analyzed, started, ended))
        assert outcome.ids == ["c-1"]
        assert [(label.name, label.value) for label in outcome.only.labels] == [("call_successful", True)]
        assert outcome.only.dimensions["agent"] == "a"
        assert outcome.only.extras["call_status"] == "ended"
        assert outcome.report.ignored["earlier_webhook"] == 2

    def test_a_call_without_a_transcript_but_with_an_end(self) -> None:
        call, notes = built_one(
            READER, {"call_id": "c", "call_status": "not_connected", "disconnection_reason": "dial_busy"}
        )
        assert (call.timeline, call.outcome.finished) == ((), False)
        assert codes(notes, "set_aside") == ["no_transcript"]

    def test_a_call_that_has_only_begun_is_no_conversation(self) -> None:
        with pytest.raises(InputError, match="no transcript and no end"):
            built_one(READER, {"event": "call_started", "call": {"call_id": "c", "call_status": "ongoing"}})

    def test_a_bad_call_in_a_list_costs_itself(self, tmp_path: Path) -> None:
        listed = {"items": [a_call(HELLO), 7, {"call_id": "c-9", "call_status": "ongoing"}]}
        outcome = read(write_json(tmp_path / "list.json", listed))
        assert outcome.ids == ["c-1"]
        assert outcome.problem.message == (
            "2 of 3 calls skipped: items[1] is a int, not a call; items[2] has no transcript and no end"
        )

    def test_an_empty_list(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="empty list"):
            built_one(READER, {"items": []})
        with pytest.raises(NothingReadable):
            read(write_json(tmp_path / "list.json", {"items": []}))

    def test_a_call_without_an_id_is_called_by_its_place(self) -> None:
        assert built_one(READER, {"transcript_object": [ASK]})[0].id == "log"


class TestDetection:
    def claim(self, value: Any) -> float:
        found = READER.detect(Sample(Path("x.json"), "document", [value]))
        return found.confidence if found else 0.0

    def test_what_is_ours(self) -> None:
        assert self.claim(a_call(HELLO)) == 1.0
        assert self.claim({"event": "call_ended", "call": a_call()}) == 1.0
        assert self.claim({"items": [{"call_id": "c", "call_status": "ended"}]}) == 0.95

    @pytest.mark.parametrize(
        "value",
        [
            {},
            [],
            "x",
            {"call_id": "c", "event": "state_entered", "state": "a"},
            {"call": {"id": "v"}, "message": {"type": "end-of-call-report"}},
            {"items": [{"id": "x", "messages": []}]},
            {"conversation_id": "c", "transcript": []},
        ],
    )
    def test_what_is_not(self, value: Any) -> None:
        assert self.claim(value) == 0.0


class TestTheExamples:
    def test_they_are_read_without_a_problem(self) -> None:
        outcome = read(EXAMPLES / "retell")
        assert outcome.report.problems == []
        assert outcome.report.unknown == {}
        assert len(outcome.conversations) == 8
        assert counts(outcome.report.set_aside) == {"no_transcript": 2}

    def test_the_call_with_nodes(self) -> None:
        call = read(EXAMPLES / "retell" / "call.json").only
        entered = [event.state for event in call.timeline if isinstance(event, StateEntered)]
        assert entered == [
            *("Greeting", "Collect bike", "Opening hours", "Collect bike"),
            *("Find slot", "Book repair", "Goodbye"),
        ]
        slots = {event.slot: event.state for event in call.timeline if isinstance(event, SlotFilled)}
        assert slots == {
            "bike": "Collect bike",
            "caller_name": "Collect bike",
            "slot": "Find slot",
            "booking": "Book repair",
        }
        assert [result.success for result in call.tool_results.values()] == [True, False, True, True]
