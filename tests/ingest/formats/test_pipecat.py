"""Pipecat: records of observers, messages of aggregators, and the log of Flows."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convoscope.conversation import (
    Conversation,
    Marker,
    SlotFilled,
    StateEntered,
    StateExited,
    Utterance,
    from_json,
    to_json,
)
from convoscope.errors import InputError
from convoscope.ingest.formats.pipecat import READER
from convoscope.ingest.reader import Sample
from support.exports import built, built_one, codes, metrics
from support.logs import EXAMPLES, read, write_lines
from support.tool_outcomes import stated

EXAMPLE = EXAMPLES / "pipecat"
T = 1773144000.0
MANAGER = "pipecat.flows.manager"


def line(tag: str, at: float | None = None, **more: Any) -> dict[str, Any]:
    return {"record": tag, **({} if at is None else {"timestamp": T + at}), **more}


def said(role: str, text: str | None, at: float, **more: Any) -> dict[str, Any]:
    tag = "UserTurnStoppedMessage" if role == "user" else "AssistantTurnStoppedMessage"
    return line(tag, at, content=text, **more)


def speech(who: str, start: float, end: float) -> list[dict[str, Any]]:
    kind = f"{who}_speech"
    return [
        line("SpeechEvent", start, kind=f"{kind}_started", started_at=None),
        line("SpeechEvent", end, kind=f"{kind}_stopped", started_at=T + start),
    ]


def function(kind: str, at: float, id: str = "c1", **more: Any) -> dict[str, Any]:
    return line("FunctionCallEvent", at, kind=f"function_call_{kind}", function_name="find", tool_call_id=id, **more)


def logged(message: str, at: float = 0.0, name: str = MANAGER) -> dict[str, Any]:
    inner = {"message": message, "name": name, "level": {"name": "DEBUG"}, "time": {"timestamp": T + at}, "extra": {}}
    return {"text": f"… - {message}\n", "record": inner}


def only(*values: Any) -> Conversation:
    return built_one(READER, *values)[0]


def path(conversation: Conversation) -> list[str]:
    told = []
    for event in conversation.timeline:
        if isinstance(event, StateEntered):
            told.append(f"+{event.state}")
        elif isinstance(event, StateExited):
            told.append(f"-{event.state}>{event.to_state} {event.reason}".strip())
        elif isinstance(event, Utterance):
            told.append(conversation.text(event))
    return told


def markers(conversation: Conversation) -> list[str]:
    return [one.name for one in conversation.timeline if isinstance(one, Marker)]


class TestStates:
    @pytest.mark.parametrize("tag", ["FlowNode", "NodeTransition", "node_transition", "FlowNodeChanged", "NodeChanged"])
    @pytest.mark.parametrize("name", ["current_node", "new_node", "to_node", "node"])
    def test_names_of_a_change_of_node(self, tag: str, name: str) -> None:
        made = only(line(tag, 0, **{name: "greet"}), said("assistant", "Hi", 1), line(tag, 2, **{name: "ask"}))
        assert path(made) == ["+greet", "Hi", "-greet>ask", "+ask"]

    def test_the_node_that_was_left_first_was_entered_at_the_start(self) -> None:
        made = only(
            said("assistant", "Hi", 0),
            line("NodeTransition", 2, previous_node="greet", current_node="ask", function_name="go"),
        )
        assert path(made) == ["+greet", "Hi", "-greet>ask go", "+ask"]

    def test_lines_are_put_in_the_order_of_time(self) -> None:
        """A message is written when the turn has stopped, and tells when it started."""
        made = only(
            line("FlowNode", 0, current_node="a"),
            line("FlowNode", 5, current_node="b"),
            said("assistant", "in a", 1),
            said("assistant", "in b", 6),
        )
        assert path(made) == ["+a", "in a", "-a>b", "+b", "in b"]

    def test_a_node_that_is_set_again_is_a_second_visit(self) -> None:
        assert path(only(line("FlowNode", 0, node="a"), line("FlowNode", 1, node="a"))) == ["+a", "-a>a", "+a"]

    def test_the_state_of_the_flow_holds_slots_and_the_first_value_counts(self) -> None:
        made = only(
            line("FlowNode", 0, node="a"),
            line("FlowState", 1, state={"size": "", "count": 0, "street": None}),
            line("FlowNode", 2, node="b"),
            line("FlowState", 3, state={"size": "big", "count": 2, "street": "Mill Lane"}),
        )
        slots = [(one.slot, one.value, one.state) for one in made.timeline if isinstance(one, SlotFilled)]
        assert slots == [("size", "", "a"), ("count", 0, "a"), ("street", "Mill Lane", "b")]


class TestTheLogOfFlows:
    def test_a_node_is_entered_once_however_often_it_is_told(self) -> None:
        made = only(
            logged("Setting initial node: greet", 0),
            logged("Setting node: greet", 0.1),
            logged("Successfully set node: greet", 0.2),
            logged("Function called: choose", 1),
            logged("Function handler completed for choose", 2),
            logged("Transition to function-returned node: ask", 3),
            logged("Setting node: ask", 3.1),
            logged("Successfully set node: ask", 3.2),
        )
        assert path(made) == ["+greet", "-greet>ask choose", "+ask"]
        assert [(one.name, made.tool_results[one.seq].success) for one in made.tool_calls] == [("choose", True)]

    def test_a_node_that_could_not_be_set_was_not_entered(self) -> None:
        made = only(
            logged("Setting node: greet", 0),
            logged("Successfully set node: greet", 1),
            logged("Setting node: ask", 2),
            logged("Error setting node ask: no task_messages", 3),
        )
        assert path(made) == ["+greet"]
        assert markers(made) == ["node_failed"]

    def test_a_function_that_raised(self) -> None:
        made = only(logged("Function called: f", 0), logged("Error in transition function f: boom: x", 1))
        result = made.tool_results[made.tool_calls[0].seq]
        assert (result.success, result.error) == (False, "boom: x")

    def test_the_older_package_logs_the_same(self) -> None:
        assert path(only(logged("Setting node: a", name="pipecat_flows.manager"))) == ["+a"]

    def test_others_may_write_the_same_words(self) -> None:
        with pytest.raises(InputError, match="holds no record of Pipecat"):
            built(READER, logged("Setting node: a", name="my.bot"))

    def test_records_may_be_logged_as_json_with_and_without_their_name(self) -> None:
        named = json.dumps({"record": "AssistantTurnStoppedMessage", "content": "Hi", "timestamp": T})
        bare = json.dumps({"kind": "bot_speech_stopped", "timestamp": T + 2, "started_at": T + 1})
        made = only(logged(named, 3, "bot"), logged(bare, 3, "bot"))
        assert [(made.text(one), len(one.segments)) for one in made.utterances] == [("Hi", 1)]

    def test_the_observers_records_count_more(self) -> None:
        made, notes = built(
            READER, logged("Function called: find", 0), function("started", 0), function("completed", 1)
        )
        assert len(made[0].tool_calls) == 1
        assert "function_in_the_log" in codes(notes)


class TestWordsAndSound:
    def test_sound_belongs_to_the_message_of_its_turn(self) -> None:
        made = only(
            said("assistant", "Hi", 0.5),
            *speech("bot", 1, 3),
            *speech("user", 4, 5),
            *speech("user", 5.3, 6),
            said("user", "One pizza", 4.2),
            said("assistant", "Which", 7, interrupted=True),
            *speech("bot", 8, 9),
        )
        told = [(made.text(one), [(s.start - T, round(s.end - T, 3)) for s in one.segments]) for one in made.utterances]
        assert told == [("Hi", [(1, 3)]), ("One pizza", [(4, 5), (pytest.approx(5.3), 6)]), ("Which", [(8, 9)])]
        assert made.utterances[2].cut_off_by == "user"
        assert made.utterances[1].heard is not None
        assert made.utterances[0].spoken is not None

    def test_a_turn_that_is_told_after_a_short_word(self) -> None:
        """A turn may begin when the words are there, and they may be there after the sound."""
        made = only(
            said("user", "Hello", 0), said("assistant", "Hi", 2), *speech("user", 5, 5.4), said("user", "Yes", 6)
        )
        assert [len(one.segments) for one in made.utterances] == [0, 0, 1]

    def test_a_cough_is_no_turn(self) -> None:
        made = only(said("user", "Hello", 0), said("assistant", "Hi", 2), *speech("user", 5, 5.2))
        assert markers(made) == ["user_speech"]

    def test_without_words_the_sound_is_what_was_said(self) -> None:
        made = only(*speech("bot", 0, 1), *speech("user", 2, 3))
        assert [(one.speaker, len(one.segments)) for one in made.utterances] == [("assistant", 1), ("user", 1)]

    def test_a_message_that_two_events_tell_is_one(self) -> None:
        again = line("UserTurnMessageAddedMessage", 1, content="Hello", user_id=None)
        made, notes = built(READER, said("user", "Hello", 1), again)
        assert len(made[0].utterances) == 1
        assert "message_repeated" in codes(notes)

    def test_a_backchannel(self) -> None:
        made = only(said("assistant", "So", 0), line("UserBackchannelMessage", 1, content="mhm"))
        assert made.utterances[1].manner == "backchannel"


class TestTools:
    def test_a_call_is_one_however_many_moments_it_has(self) -> None:
        made = only(
            function("started", 0, arguments={"a": 1}),
            function("in_progress", 1, arguments={"a": 1}, group_id="g"),
            function("completed", 2, in_progress_at=T + 1, result={"n": 2}),
        )
        (called,) = made.tool_calls
        result = made.tool_results[called.seq]
        assert (called.arguments, result.result, result.success) == ({"a": 1}, {"n": 2}, True)

    @pytest.mark.parametrize(
        ("kind", "more", "success", "error"),
        [
            ("completed", {}, True, ""),
            ("completed", {"result": {"status": "error", "error": "closed"}}, False, "closed"),
            ("failed", {"error": "boom"}, False, "boom"),
            ("timed_out", {}, False, "timed out"),
            ("cancelled", {}, False, "cancelled"),
        ],
    )
    def test_how_it_settled(self, kind: str, more: dict[str, Any], success: bool, error: str) -> None:
        made = only(function("started", 0), function(kind, 1, **more))
        result = made.tool_results[made.tool_calls[0].seq]
        assert stated(result) == (success, error)


class TestLatency:
    def test_a_breakdown_is_the_wait_of_its_turn(self) -> None:
        parts = [
            {"key": "llm_inference", "duration_secs": 0.5, "start_time": T + 2},
            {"key": "speech_synthesis", "duration_secs": 0.7, "start_time": T + 2.5},
        ]
        told = line(
            "LatencyBreakdown", contributions=parts, total_secs=1.2, user_turn_secs=0.3, measured_from="user_silence"
        )
        made = only(line("FlowNode", 0, node="a"), said("user", "x", 1), told, said("assistant", "y", 3))
        assert [(one.component, one.values, one.state, one.speech_id) for one in metrics(made)] == [
            ("eou", {"end_of_utterance_delay": 0.3}, "a", "exchange-1"),
            (
                "turn",
                {"e2e_latency": 1.2, "contributions": {"llm_inference": 0.5, "speech_synthesis": 0.7}},
                "a",
                "exchange-1",
            ),
        ]

    def test_the_wait_for_a_greeting_is_no_wait_for_a_reply(self) -> None:
        told = line("LatencyBreakdown", contributions=[], total_secs=2.0, measured_from="client_connected")
        assert metrics(only(said("assistant", "Hi", 0), told))[0].values == {"first_speech_latency": 2.0}

    def test_the_first_byte_is_counted_once(self) -> None:
        def latency(kind: str, at: float, **more: Any) -> dict[str, Any]:
            return line("ServiceLatencyRecord", at, kind=kind, processor="CartesiaTTSService#0", model="v", **more)

        made = only(
            said("user", "x", 0),
            latency("ttfb", 1, seconds=0.2),
            latency("ttfa", 1.1, seconds=0.3, ttfb_secs=0.2, leading_silence_secs=0.1),
        )
        assert [one.values.get("ttfb") for one in metrics(made)] == [0.2, None]
        assert {one.component for one in metrics(made)} == {"tts"}
        assert (made.agent.models, made.pipeline) == ({"tts": "v"}, "cascade")

    def test_zero_before_anything_was_said_is_no_measurement(self) -> None:
        first = line("ServiceLatencyRecord", 0, kind="ttfb", processor="OpenAILLMService#0", seconds=0.0)
        made, notes = built(READER, first, said("assistant", "Hi", 1))
        assert metrics(made[0]) == []
        assert "zero_at_the_start" in codes(notes)

    def test_tokens(self) -> None:
        used = line("ServiceUsageRecord", 1, kind="llm", processor="X#0", model="m", prompt_tokens=7, total_tokens=9)
        made = only(said("user", "x", 0), used)
        assert metrics(made)[0].values == {"model": "m", "prompt_tokens": 7, "total_tokens": 9}
        assert made.dimensions["model"] == "m"


class TestTheEnd:
    @pytest.mark.parametrize(
        ("category", "usable", "error"),
        [("quota", False, "quota: gone"), ("quota", True, ""), ("application", False, "")],
    )
    def test_errors(self, category: str, usable: bool, error: str) -> None:
        told = line("ErrorEvent", 1, message="gone", category=category, processor="X#0", processor_usable=usable)
        made = only(said("user", "x", 0), told)
        assert made.outcome.error == error
        assert markers(made) == ["error"]

    def test_an_end_that_is_told(self) -> None:
        outcome = only(said("user", "x", 0), line("ConversationEnded", 9, reason="end_node", completed=True)).outcome
        assert (outcome.ended_reason, outcome.completed, outcome.finished) == ("end_node", True, None)


FLOWS = "pipecat_flows.manager"


def text(message: str, at: float = 0.0, name: str = "pipecat.x", level: str = "DEBUG") -> str:
    """A line as loguru writes it where nobody told it otherwise."""
    return f"2026-03-11 18:30:{at:06.3f} | {level:<8} | {name}:run:7 - {message}"


def set_node(name: str, at: float = 0.0) -> str:
    return text(f"Setting node: {name}", at, FLOWS)


class TestPlainText:
    def test_nodes_become_states_and_the_function_is_the_reason(self) -> None:
        made = only(
            set_node("a"),
            text("Successfully set node: a", 0.1, FLOWS),
            text("Function called: go", 1, FLOWS),
            text("Function handler completed for go", 2, FLOWS),
            text("Transition to function-returned node: b", 3, FLOWS),
            set_node("b", 3),
        )
        assert path(made) == ["+a", "-a>b go", "+b"]
        assert [result.success for result in made.tool_results.values()] == [True]

    def test_times_are_those_of_the_lines(self) -> None:
        made, notes = built(READER, set_node("a", 1.5))
        assert [event.time.at for event in made[0].timeline if event.time] == [1773253801.5]
        assert "time_zone_taken_as_utc" in codes(notes)

    @pytest.mark.parametrize(
        "line",
        [
            "2026-03-11T18:30:00.000+0100 | DEBUG    | pipecat.flows.manager:_set_node:1 - Setting node: a",
            "web-1  | 2026-03-11 18:30:00.000 | DEBUG | pipecat_flows.manager:_set_node:1 - Setting node: a",
            "2026-03-11 18:30:00.000 | DEBUG | session 7 | pipecat_flows.manager:_set_node:1 - Setting node: a",
            "\x1b[32m2026-03-11 18:30:00.000\x1b[0m | \x1b[34m\x1b[1mDEBUG   \x1b[0m | "
            "\x1b[36mpipecat_flows.manager\x1b[0m:\x1b[36m_set_node\x1b[0m:\x1b[36m1\x1b[0m - Setting node: a",
        ],
    )
    def test_forms_of_a_line(self, line: str) -> None:
        assert path(only(line)) == ["+a"]

    def test_a_message_may_go_on_in_the_next_line(self) -> None:
        made = only(text("X#0: Generating TTS [One."), "Two.]", set_node("a", 1))
        assert path(made) == ["One.\nTwo.", "+a"]

    @pytest.mark.parametrize(
        ("message", "words"),
        [
            ("Transcription: [Hello there]", "Hello there"),
            ("Transcription (from: p1): [Hello]", "Hello"),
            ("[Transcription:user] [Hello]", "Hello"),
            ("Committed transcript: [Hello]", "Hello"),
            ('AssemblyAISTTService#0 Transcript: "Hello"', "Hello"),
            ('SpeechmaticsSTTService#0 finalized transcript: "I\'m here"', "I'm here"),
            ("💬 DeepgramSTTService#0 → TRANSCRIPTION: 'Hello' from '' at 3.20s", "Hello"),
        ],
    )
    def test_what_was_heard(self, message: str, words: str) -> None:
        (said,) = only(text(message)).utterances
        assert (said.speaker, said.heard and said.heard.text) == ("user", words)

    def test_interim_words_are_not_heard_and_the_same_words_count_once(self) -> None:
        made = only(
            text("💬 S#0 → INTERIM TRANSCRIPTION: 'Hel' from '' at 3.1s"),
            text("Transcription: [Hello]", 1),
            text("💬 S#0 → TRANSCRIPTION: 'Hello' from '' at 3.2s", 1.1),
        )
        assert [made.text(one) for one in made.utterances] == ["Hello"]

    def test_sentences_that_are_spoken_in_one_go_are_one_utterance(self) -> None:
        made = only(
            text("T#0: Generating TTS [One.]", 0),
            text("Bot started speaking", 1),
            text("T#0: Generating TTS [Two.]", 2),
            text("Bot stopped speaking", 4),
            text("T#0: Generating TTS [Three.]", 5),
        )
        assert path(made) == ["One. Two.", "Three."]
        first = made.utterances[0]
        assert [(one.start - 1773253800, one.end - 1773253800) for one in first.segments] == [(1.0, 4.0)]
        # What was sent to be spoken is what was meant: nobody says how much of it was heard.
        assert first.intended is not None
        assert first.spoken is None

    def test_an_interruption_while_the_bot_speaks_cuts_it_off(self) -> None:
        speaks = [text("T#0: Generating TTS [One.]", 0), text("Bot started speaking", 1)]
        cut = text("U#0: broadcasting interruption", 2)
        assert only(*speaks, cut, text("Bot stopped speaking", 3)).utterances[0].cut_off_by == "user"
        assert only(*speaks, text("Bot stopped speaking", 1.5), cut).utterances[0].cut_off_by == ""

    def test_calls_with_their_arguments_and_the_error_that_was_raised(self) -> None:
        made = only(
            text("L#0 Calling function [book:c1] with arguments {'at': '19:00', 'n': 4}", 0),
            text("Function called: book", 0, FLOWS),
            text("Error in transition function book: no answer", 1, FLOWS, "ERROR"),
            text("A#0 FunctionCallResultFrame: [book:c1]", 1),
            text("L#0 Calling function [book:c2] with arguments not a dict", 2),
            text("L#0 Function call [book:c2] timed out after 5 seconds and is being cancelled.", 7),
        )
        calls, results = made.tool_calls, list(made.tool_results.values())
        assert [(call.call_id, call.arguments, call.raw_arguments) for call in calls] == [
            ("c1", {"at": "19:00", "n": 4}, None),
            ("c2", None, "not a dict"),
        ]
        assert [(one.success, one.error) for one in results] == [(False, "no answer"), (False, "timed out")]

    def test_times_of_the_services_and_of_the_reply(self) -> None:
        made = only(
            text("OpenAILLMService#0 TTFB: 0.500s"),
            text("CartesiaTTSService#0 TTFA: 0.300s (0.100s leading silence)"),
            text("OpenAILLMService#0 processing time: 0.900s"),
            text("OpenAILLMService#0 prompt tokens: 10, completion tokens: 3"),
            text("User-to-bot latency: 1.460s", name="__main__"),
        )
        assert [(one.component, one.values) for one in metrics(made)] == [
            ("llm", {"ttfb": 0.5}),
            ("tts", {"ttfa": 0.3, "leading_silence": 0.1}),
            ("llm", {"duration": 0.9}),
            ("llm", {"prompt_tokens": 10.0, "completion_tokens": 3.0}),
            ("turn", {"e2e_latency": 1.46}),
        ]

    def test_a_turn_of_the_user_is_no_sound(self) -> None:
        made = only(text("A#0: User started speaking (strategy: V)"), text("Transcription: [Hi]", 1))
        assert markers(made) == ["user_turn_started"]
        assert made.utterances[0].segments == ()

    def test_lines_that_tell_nothing_are_counted_by_who_logged_them(self) -> None:
        made, notes = built(
            READER, set_node("a"), text("Linking A -> B"), text("Linking B -> C"), text("x", name="my.bot")
        )
        ignored = {note.code: note.count for note in notes.taken if note.kind == "ignored"}
        assert ignored == {"log.pipecat.x": 2, "log.my.bot": 1}
        assert len(made) == 1

    def test_an_error_is_a_marker_and_breaks_nothing(self) -> None:
        made = only(set_node("a"), text("T#0 error: no answer", 1, level="ERROR"), "Traceback (most recent call last):")
        assert markers(made) == ["error"]
        assert made.outcome.error == ""

    def test_a_log_that_goes_on_holds_several_calls(self, tmp_path: Path) -> None:
        call = [text("Client connected", name="bot"), text("Initialized FlowManager", 0, FLOWS), set_node("a", 1)]
        file = tmp_path / "bot.log"
        file.write_text("\n".join([*call, text("Client disconnected", 2, "bot"), "", *call]))
        outcome = read(file)
        assert outcome.ids == ["bot#1", "bot#2"]
        assert [one.outcome.ended_reason for one in outcome.conversations] == ["client_disconnected", ""]
        assert outcome.report.ignored["blank_line"] == 1

    def test_the_same_messages_are_read_where_they_are_json(self) -> None:
        made = only(logged("Setting node: a", 0), logged("T#0: Generating TTS [Hi.]", 1, "pipecat.services.tts"))
        assert path(made) == ["+a", "Hi."]

    def test_a_record_tells_more_than_the_log(self) -> None:
        value = logged("T#0: Generating TTS [Hi.]", 1, "pipecat.services.tts")
        made, notes = built(READER, value, said("assistant", "Hi.", 1.2))
        assert [one.spoken and one.spoken.text for one in made[0].utterances] == ["Hi."]
        assert "told_by_a_record" in codes(notes)

    def test_the_sample(self) -> None:
        made = read(EXAMPLE / "table-booking.log").only
        assert path(made) == [
            "+greeting",
            "Good evening, Harbour Table. For how many may I book?",
            "A table for four, please.",
            "-greeting>choose_time set_party",
            "+choose_time",
            "For four, lovely. We have tables at six, at seven and at half past eight.",
            "Seven is good.",
            "I am sorry, I could not reach the book. One moment.",
            "-choose_time>goodbye book",
            "+goodbye",
            "Booked: four at seven. Good night!",
        ]
        assert [one.success for one in made.tool_results.values()] == [True, False, True]

    def test_a_log_of_somebody_else_is_none_of_ours(self, tmp_path: Path) -> None:
        file = tmp_path / "app.log"
        file.write_text("2026-03-11 18:30:00.000 | DEBUG    | app.main:run:1 - Setting node: a\n")
        with pytest.raises(InputError, match="is the log of a program"):
            read(file)


class TestFiles:
    def test_the_example(self) -> None:
        outcome = read(EXAMPLE)
        assert outcome.ids == ["flows-log", "table-booking", "pizza-1", "pizza-2"]
        assert outcome.report.problems == []
        assert outcome.report.unknown == {}
        log, _, order, broken = outcome.conversations
        assert [one.state for one in log.timeline if isinstance(one, StateEntered)] == ["greeting", "address"]
        assert [one.state for one in order.timeline if isinstance(one, StateEntered)] == [
            "greeting",
            "address",
            "confirm",
        ]
        # The second and third turn began 5.4 and 9.9 s in, and were answered at 7.1 and 17.2 s.
        assert [one.values["e2e_latency"] for one in metrics(order) if "e2e_latency" in one.values] == [1.7, 7.3]
        assert order.dimensions == {"agent": "pia", "flow": "pizza_order", "model": "gpt-4.1-mini"}
        assert broken.outcome.error == "quota: the account has no credit left"

    def test_one_file_is_one_conversation(self, tmp_path: Path) -> None:
        outcome = read(write_lines(tmp_path / "call-7.jsonl", said("user", "a", 0), said("assistant", "b", 1)))
        assert outcome.ids == ["call-7"]

    def test_ids_bring_lines_of_several_files_together(self, tmp_path: Path) -> None:
        one, two = ({**said(role, role, at), "conversation_id": "c"} for role, at in (("user", 0), ("assistant", 1)))
        write_lines(tmp_path / "a.jsonl", one)
        write_lines(tmp_path / "b.jsonl", two, {**two, "conversation_id": "d"})
        outcome = read(tmp_path)
        assert sorted(outcome.ids) == ["c", "d"]
        assert {len(one.utterances) for one in outcome.conversations} == {1, 2}

    def test_lines_without_an_id_belong_to_the_conversation_before_them(self) -> None:
        values = [{**said("user", "a", 0), "conversation_id": "c"}, said("assistant", "b", 1)]
        values += [{**said("user", "d", 2), "conversation_id": "e"}]
        assert [(one.id, len(one.utterances)) for one in built(READER, *values)[0]] == [("c", 2), ("e", 1)]

    def test_an_id_may_be_bound_to_the_logger(self) -> None:
        value = logged("Setting node: a")
        value["record"]["extra"] = {"conversation_id": "c9"}
        assert READER.key(value) == "c9"

    def test_an_unknown_record_is_kept(self) -> None:
        made, notes = built(READER, said("user", "a", 0), line("CoffeeEvent", 1, cups=2))
        assert markers(made[0]) == ["CoffeeEvent"]
        assert "record=CoffeeEvent" in codes(notes)

    def test_it_leaves_other_formats_alone(self) -> None:
        eva = {"type": "turn_start", "timestamp": 1, "data": {"frame": {}}, "conversation_id": "c"}
        payload = {"metrics_collected": [{"type": "llm_metrics", "ttft": 0.2}]}
        for other in (eva, payload, {"record": 7}, {"record": {"a": 1}}, {"record": "row"}, [], 3):
            assert READER.detect(Sample(Path("x.jsonl"), "lines", [other])) is None
        assert {one.source.format for one in read(EXAMPLES / "voice-logs").conversations} == {"voice-logs"}


@settings(deadline=None, derandomize=True, max_examples=75, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_a_log_holds_it_is_read_or_refused(data: st.DataObject) -> None:
    lines = (EXAMPLE / "table-booking.log").read_text().splitlines()
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(lines) - 1))
        cut = data.draw(st.integers(0, len(lines[place])))
        odd = data.draw(st.sampled_from(["", "[", "]", "{'a': [", "\x00", "9" * 400, "Setting node: ", " - "]))
        lines[place] = lines[place][:cut] + odd + lines[place][cut + data.draw(st.integers(0, 9)) :]
    READER.detect(Sample(Path("x.log"), "text", lines))
    with contextlib.suppress(InputError):
        for made in built(READER, *lines)[0]:
            assert from_json(to_json(made)) == made
