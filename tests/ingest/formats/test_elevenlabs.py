"""ElevenLabs: conversations of agents with workflows, tools and the vendor's own analysis."""

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
    StateExited,
    ToolResult,
)
from convoscope.errors import InputError
from convoscope.ingest.formats.elevenlabs import READER
from convoscope.ingest.reader import Sample
from convoscope.views.flow.endings import is_completed
from support.exports import built, built_one, codes
from support.logs import EXAMPLES, counts, read, write_json, write_lines
from support.losses import lost

EXAMPLE = EXAMPLES / "elevenlabs"


def agent(message: str | None, at: Any = 0, node: str | None = None, **more: Any) -> dict[str, Any]:
    place = {"agent_id": more.pop("agent_id", "a1"), "workflow_node_id": node}
    return {"role": "agent", "message": message, "time_in_call_secs": at, "agent_metadata": place, **more}


def user(message: str, at: int = 0, **more: Any) -> dict[str, Any]:
    return {"role": "user", "message": message, "time_in_call_secs": at, "agent_metadata": None, **more}


def call(*rows: Any, **more: Any) -> dict[str, Any]:
    return {"conversation_id": "c1", "agent_id": "a1", "status": "done", "transcript": list(rows), **more}


def measured(**seconds: float) -> dict[str, Any]:
    return {"metrics": {f"convai_{name}": {"elapsed_time": value} for name, value in seconds.items()}}


def only(value: Any) -> Conversation:
    return built_one(READER, value)[0]


def path(conversation: Conversation) -> list[str]:
    """States as they were entered and left, and what was said in between."""
    told = []
    for event in conversation.timeline:
        if isinstance(event, StateEntered):
            told.append(f"+{event.state}")
        elif isinstance(event, StateExited):
            told.append(f"-{event.state}>{event.to_state}")
        elif hasattr(event, "speaker"):
            told.append(conversation.text(event))
    return told


class TestStates:
    def test_a_node_is_a_state_and_holds_what_was_said_in_it(self) -> None:
        made = only(call(agent("Hi", 0, "greet"), user("Book", 2), agent("When?", 4, "ask"), user("Now", 6)))
        assert path(made) == ["+greet", "Hi", "Book", "-greet>ask", "+ask", "When?", "Now"]  # the last has no exit

    def test_the_first_node_is_entered_before_the_first_word(self) -> None:
        assert path(only(call(user("Hello?", 0), agent("Hi", 1, "greet"))))[0] == "+greet"

    def test_going_back_is_a_second_visit(self) -> None:
        made = only(call(agent("1", 0, "a"), agent("2", 1, "b"), agent("3", 2, "a")))
        assert [one for one in path(made) if one[0] == "+"] == ["+a", "+b", "+a"]

    def test_without_nodes_several_agents_are_states(self) -> None:
        made = only(call(agent("1"), agent("2", agent_id="a2")))
        assert path(made) == ["+a1", "1", "-a1>a2", "+a2", "2"]
        assert made.dimensions["flow"] == "a1"

    def test_one_agent_without_nodes_has_no_states(self) -> None:
        made = only(call(agent("1"), user("2")))
        assert path(made) == ["1", "2"]
        assert "flow" not in made.dimensions

    def test_two_agents_with_a_node_of_one_id_are_told_apart(self) -> None:
        made = only(call(agent("1", 0, "start"), agent("2", 1, "start", agent_id="a2")))
        assert path(made)[2] == "-start (a1)>start (a2)"

    def test_a_transfer_says_why(self) -> None:
        result = {"request_id": "r", "tool_name": "transfer_to_agent", "result_value": "ok", "is_error": False}
        moved = {**result, "result": {"result_type": "transfer_to_agent_success", "condition": "wants sales"}}
        made = only(call(agent("1"), agent(None, tool_results=[moved]), agent("2", agent_id="a2")))
        assert [one.reason for one in made.timeline if isinstance(one, StateExited)] == ["wants sales"]

    def test_a_workflow_that_goes_on_by_itself_visits_each_node(self) -> None:
        steps = [
            {"type": "edge", "edge_id": "e1", "target_node_id": "look", "step_latency_secs": 0.1},
            {
                "type": "nested_tools",
                "node_id": "look",
                "requests": [{"request_id": "n1", "tool_name": "look_up", "params_as_json": "{}"}],
                "results": [{"request_id": "n1", "tool_name": "look_up", "result_value": "none", "is_error": True}],
                "is_successful": False,
                "step_latency_secs": 0.4,
            },
            {"type": "edge", "edge_id": "e2", "target_node_id": "sorry", "step_latency_secs": 0.1},
        ]
        outer = {"request_id": "w", "tool_name": "workflow", "result_value": "", "is_error": False, "type": "workflow"}
        made = only(
            call(
                agent("1", 0, "ask"),
                agent(None, 1, "ask", tool_results=[{**outer, "result": {"steps": steps}}]),
                agent("2", 2, "sorry"),
            )
        )
        assert path(made) == ["+ask", "1", "-ask>look", "+look", "-look>sorry", "+sorry", "2"]
        assert [one.reason for one in made.timeline if isinstance(one, StateExited)] == ["e1", "e2"]
        assert made.tool_results[made.tool_calls[0].seq].success is False


class TestWords:
    def test_what_was_meant_and_what_was_played(self) -> None:
        made = only(call(agent("We have", original_message="We have two rooms.", interrupted=True), user("Stop")))
        said, heard = made.utterances
        assert (said.intended and said.intended.text, said.spoken and said.spoken.text) == (
            "We have two rooms.",
            "We have",
        )
        assert said.cut_off_by == "user"
        assert heard.heard is not None
        assert heard.heard.source == "message"

    def test_a_backchannel(self) -> None:
        made = only(call(agent("So"), user("mhm", ignored_as_backchannel=True)))
        assert made.utterances[1].manner == "backchannel"

    def test_whole_seconds(self) -> None:
        made = only(call(agent("Hi", 3)))
        assert [(one.id, one.kind, one.resolution) for one in made.clocks] == [("call", "relative", 1.0)]
        assert made.timeline[0].time is not None
        assert made.timeline[0].time.at == 3.0

    def test_a_text_chat_has_no_sound(self) -> None:
        made = only(call(agent("Hi"), user("Yo"), metadata={"text_only": True}))
        assert made.pipeline == "text"
        assert [one.intended is not None for one in made.utterances] == [True, True]

    def test_what_the_platform_did_is_marked(self) -> None:
        made = only(call(agent("Hi"), user("", 9, platform_event="user_turn_timeout")))
        assert getattr(made.timeline[-1], "name", "") == "user_turn_timeout"


class TestLatency:
    def test_times_are_told_in_the_words_of_the_metrics(self) -> None:
        times = measured(ttf_audio_since_silence=1.2, llm_service_ttfb=0.5, tts_service_ttfb=0.2)
        heard = measured(asr_trailing_service_latency=0.1)
        made = only(
            call(user("a", conversation_turn_metrics=heard), agent("b", 1, "n", conversation_turn_metrics=times))
        )
        found = {one.component: one for one in made.timeline if isinstance(one, ComponentMetric)}
        assert {name: one.values for name, one in found.items()} == {
            "eou": {"transcription_delay": 0.1},
            "turn": {"e2e_latency": 1.2},
            "llm": {"ttft": 0.5},
            "tts": {"ttfb": 0.2},
        }
        assert {one.speech_id for one in found.values()} == {"exchange-1"}
        assert found["turn"].state == "n"

    def test_a_tool_row_that_repeats_them_counts_nothing(self) -> None:
        times = measured(ttf_audio_since_silence=1.2)
        tool = {"request_id": "r", "tool_name": "find", "params_as_json": "{}"}
        (made,), notes = built(
            READER,
            call(
                user("a"),
                agent(None, 1, "first", tool_calls=[tool], conversation_turn_metrics=times),
                agent("b", 2, "second", conversation_turn_metrics=times),
            ),
        )
        metrics = [one for one in made.timeline if isinstance(one, ComponentMetric)]
        assert [(one.values, one.state) for one in metrics] == [({"e2e_latency": 1.2}, "second")]
        assert "metric_repeated" in codes(notes)

    def test_two_replies_may_share_one_figure(self) -> None:
        first = measured(ttf_audio_since_silence=1.2, tts_service_ttfb=0.2)
        second = measured(ttf_audio_since_silence=0.7, tts_service_ttfb=0.2)
        made = only(
            call(user("a"), agent("b", conversation_turn_metrics=first), agent("c", conversation_turn_metrics=second))
        )
        metrics = [one for one in made.timeline if isinstance(one, ComponentMetric)]
        assert [one.speech_id for one in metrics] == ["exchange-1"] * 2 + ["exchange-1.2"] * 2

    def test_a_time_below_zero_is_set_aside(self) -> None:
        (made,), notes = built(READER, call(agent("b", conversation_turn_metrics=measured(tts_service_ttfb=-1.0))))
        assert not any(isinstance(one, ComponentMetric) for one in made.timeline)
        assert set(codes(notes)) == {"unusable_metric"}


class TestToolsAndSlots:
    def test_a_tool_that_failed(self) -> None:
        tool = {"request_id": "r", "tool_name": "book", "params_as_json": '{"day": "Mon"}'}
        answer = {"request_id": "r", "tool_name": "book", "result_value": "503", "is_error": True}
        made = only(call(agent("Wait", tool_calls=[tool]), agent(None, tool_results=[answer])))
        result = made.tool_results[made.tool_calls[0].seq]
        assert (made.tool_calls[0].arguments, result.success, result.error) == ({"day": "Mon"}, False, "503")

    def test_arguments_that_are_no_json_are_kept(self) -> None:
        made = only(call(agent("x", tool_calls=[{"request_id": "r", "tool_name": "t", "params_as_json": "{oops"}])))
        assert made.tool_calls[0].raw_arguments == "{oops"

    def test_a_variable_that_a_tool_set_is_a_slot_of_its_state(self) -> None:
        def set_to(value: Any) -> dict[str, Any]:
            changes = [{"variable_name": "room", "new_value": value}]
            return {"request_id": "r", "tool_name": "t", "result_value": "", "dynamic_variable_updates": changes}

        rows = [agent("1", 0, "a", tool_results=[set_to("12")]), agent("2", 1, "b", tool_results=[set_to("14")])]
        made = only(call(*rows, analysis={"data_collection_results": {"room": {"value": "14"}}}))
        slots = [(one.slot, one.value, one.state) for one in made.timeline if isinstance(one, SlotFilled)]
        assert slots == [("room", "12", "a")]  # the first commit

    @pytest.mark.parametrize(("value", "filled"), [(0, True), (False, True), ("", True), (None, False)])
    def test_a_collected_value_is_a_slot_that_no_state_is_known_of(self, value: Any, filled: bool) -> None:
        analysis = {"data_collection_results": {"age": {"data_collection_id": "age", "value": value}}}
        (made,), notes = built(READER, call(agent("1", 0, "a"), analysis=analysis))
        slots = [(one.slot, one.value, one.state) for one in made.timeline if isinstance(one, SlotFilled)]
        assert slots == ([("age", value, "")] if filled else [])
        assert ("slot_from_analysis" in codes(notes)) is filled


class TestTheEnd:
    @pytest.mark.parametrize(
        ("reason", "finished"),
        [
            ("end_call tool was called.", True),
            ("Call ended by remote party", True),
            ("Client disconnected: 1000", True),
            ("Conversation exceeded the max duration", False),
            ("something new", None),
        ],
    )
    def test_reasons(self, reason: str, finished: bool | None) -> None:
        outcome = only(call(agent("x"), metadata={"termination_reason": reason, "call_duration_secs": 12})).outcome
        assert (outcome.ended_reason, outcome.finished, outcome.duration) == (reason, finished, 12.0)
        assert outcome.error == ""

    def test_a_failed_call_is_an_error(self) -> None:
        made = only(call(agent("x"), status="failed", metadata={"error": {"code": 1011, "reason": "no tts"}}))
        assert (made.outcome.error, made.outcome.final_status, made.outcome.finished) == ("no tts", "", False)
        assert made.extras["status"] == "failed"
        assert only(call(agent("x"), status="failed")).outcome.error == "failed"

    def test_verdicts_are_the_vendors(self) -> None:
        criteria = {
            "kind": {"criteria_id": "kind", "result": "failure", "rationale": "rude", "score": 1, "max_score": 5}
        }
        analysis = {"call_successful": "failure", "evaluation_criteria_results": criteria}
        (made,), notes = built(READER, call(agent("x"), analysis=analysis))
        assert [(one.name, one.value, one.rater, one.rater_kind, one.scale) for one in made.labels] == [
            ("call_successful", "failure", "elevenlabs", "external", ""),
            ("kind", "failure", "elevenlabs", "external", ""),
            ("kind.score", 1, "elevenlabs", "external", "0 to 5"),
        ]
        # What a model thinks of a call is no fact about its end.
        assert made.outcome.completed is None
        assert set(codes(notes)) == set()

    @pytest.mark.parametrize("status", ["done", "processing", "in-progress", "initiated"])
    def test_how_far_the_vendor_came_with_a_call_is_not_how_the_call_ended(self, status: str) -> None:
        (made,), notes = built(READER, call(agent("x", 0, "ask"), status=status))
        assert (made.outcome.final_status, made.outcome.error, is_completed(made)) == ("", "", None)
        assert made.extras["status"] == status
        assert set(codes(notes)) == set()


class TestFiles:
    def test_the_example(self) -> None:
        outcome = read(EXAMPLE)
        assert outcome.ids == ["conv_paws_1", "conv_paws_2", "conv_paws_3", "conv_paws_4"]
        assert outcome.report.problems == []
        assert outcome.report.unknown == {}
        first = outcome.conversations[0]
        # find_slots, book_slot twice (the first failed), end_call
        assert [one.success for one in first.timeline if isinstance(one, ToolResult)] == [True, False, True, True]
        entered = [one.state for one in first.timeline if isinstance(one, StateEntered)]
        assert entered == ["greeting", "collect_details", "offer_times", "book", "confirm"]

    def test_nothing_is_lost(self) -> None:
        outcome = read(EXAMPLE / "clinic.jsonl")
        for line, made in zip((EXAMPLE / "clinic.jsonl").read_text().splitlines(), outcome.conversations, strict=True):
            record = json.loads(line)
            # Of a row, the place it was made in is told by the state that it stands in.
            assert lost(record, made) == []

    @pytest.mark.parametrize("shape", ["one", "array", "lines", "envelope", "webhook"])
    def test_shapes(self, tmp_path: Path, shape: str) -> None:
        one = call(agent("Hi"), user("Yo"))
        file = tmp_path / "log.json"
        if shape == "lines":
            write_lines(tmp_path / "log.jsonl", one, {**one, "conversation_id": "c2"})
        else:
            envelope = {"conversations": [one], "has_more": False, "next_cursor": None}
            hook = {"type": "post_call_transcription", "event_timestamp": 1, "data": one}
            write_json(file, {"one": one, "array": [one], "envelope": envelope, "webhook": hook}[shape])
        outcome = read(tmp_path)
        assert outcome.ids[0] == "c1"
        assert {file.format for file in outcome.report.files.values()} == {"elevenlabs"}

    def test_summaries_tell_no_words(self) -> None:
        summary = {"conversation_id": "c1", "agent_id": "a", "call_successful": "success", "message_count": 4}
        assert READER.detect(Sample(Path("x.json"), "document", [{"conversations": [summary]}])) is not None
        with pytest.raises(InputError, match="1 of 1 conversations skipped") as raised:
            built(READER, {"conversations": [summary]})
        assert "fetch each conversation" in raised.value.hint

    def test_one_bad_conversation_of_a_list_does_not_stop_the_others(self, tmp_path: Path) -> None:
        listed = {"conversations": [call(agent("Hi")), {"conversation_id": "c2", "agent_id": "a", "transcript": []}, 7]}
        outcome = read(write_json(tmp_path / "list.json", listed))
        assert outcome.ids == ["c1"]
        assert "2 of 3 conversations skipped" in outcome.problem.message

    def test_odd_rows_are_told(self) -> None:
        (made,), notes = built(READER, call(7, {"role": "narrator", "message": "x", "time_in_call_secs": "soon"}))
        assert made.utterances[0].speaker == "assistant"
        assert set(codes(notes)) >= {"row_not_an_object", "role_taken_as_agent", "unreadable_time"}

    def test_it_leaves_other_formats_alone(self) -> None:
        for other in ({"messages": [{"role": "user", "content": "x"}]}, {"transcript": "a text"}, [], 3):
            assert READER.detect(Sample(Path("x.json"), "document", [other])) is None


def test_counts_of_the_report() -> None:
    report = read(EXAMPLE).report
    assert counts(report.inferred) == {"slot_from_analysis": 1}
