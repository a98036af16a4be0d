"""Realtime voice sessions: words that arrive late, failed transcriptions, interruptions, both generations of names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Segment
from convoscope.errors import ConvoscopeError
from support.logs import EXAMPLES, counts, read, talk, write, write_json, write_lines

LAMPS = EXAMPLES / "realtime" / "lamps.jsonl"


def events() -> list[Any]:
    return [json.loads(line) for line in LAMPS.read_text().splitlines()]


class TestTheExample:
    def test_the_user_comes_before_the_answer(self) -> None:
        """The words of the user arrive as event 10; the answer begins with event 8."""
        conversation = read(LAMPS).only
        assert (conversation.id, conversation.pipeline) == ("sess_lamp", "s2s")
        assert talk(conversation) == [
            "user: Switch on the light in the kitchen.",
            'switch_lamp({"room": "kitchen"})',
            '-> {"error": "the lamp in the kitchen is broken"}',
            "assistant: I am sorry, the lamp in the kitchen is broken.",
            "user: ",
        ]

    def test_what_was_heard_has_its_sound(self) -> None:
        first = read(LAMPS).only.utterances[0]
        assert first.heard is not None
        assert first.segments == (Segment(0.4, 2.1, "audio"),)

    def test_a_turn_whose_transcription_failed_has_no_text(self) -> None:
        outcome = read(LAMPS)
        last = outcome.only.utterances[-1]
        assert (last.heard, last.intended, last.segments) == (None, None, (Segment(6.2, 7.0, "audio"),))
        assert counts(outcome.report.set_aside) == {"utterance_without_text": 1}

    def test_the_user_cut_the_answer_off(self) -> None:
        assert [one.cut_off_by for one in read(LAMPS).only.utterances] == ["", "user", ""]

    def test_settings(self) -> None:
        agent = read(LAMPS).only.agent
        assert (agent.instructions, [tool.name for tool in agent.tools or ()]) == ("You switch lamps.", ["switch_lamp"])


def test_the_other_names_of_the_same_events(tmp_path: Path) -> None:
    text = LAMPS.read_text().replace("response.output_audio_transcript", "response.audio_transcript")
    assert talk(read(write(tmp_path / "lamps.jsonl", text)).only) == talk(read(LAMPS).only)


def test_an_answer_that_was_never_finished_is_what_was_said_of_it(tmp_path: Path) -> None:
    kept = [event for event in events() if event["type"] != "response.output_audio_transcript.done"]
    lines = talk(read(write_lines(tmp_path / "lamps.jsonl", *kept)).only)
    assert "assistant: I am sorry, the lamp in the kitchen is broken." in lines
    half = [event for event in kept if event["event_id"] != "ev_11"]
    assert "assistant: I am sorry, the lamp " in talk(read(write_lines(tmp_path / "half.jsonl", *half)).only)


def test_events_twice_do_not_say_twice(tmp_path: Path) -> None:
    """A delta that is added twice would double the words."""
    kept = [event for event in events() if event["type"] != "response.output_audio_transcript.done"]
    outcome = read(write_lines(tmp_path / "lamps.jsonl", *kept, *kept))
    assert talk(outcome.only) == talk(read(LAMPS).only)
    assert outcome.report.ignored["event_twice"] == 16


def test_an_array_inside_of_envelopes(tmp_path: Path) -> None:
    wrapped = [{"direction": "in", "data": json.dumps(event)} for event in events()]
    assert talk(read(write_json(tmp_path / "socket.json", wrapped)).only) == talk(read(LAMPS).only)


def test_a_session_of_gemini_live(tmp_path: Path) -> None:
    call = {"id": "f1", "name": "switch_lamp", "args": {"room": "hall"}}
    answer = {"id": "f1", "name": "switch_lamp", "response": {"done": True}}
    messages: list[Any] = [
        {"setup": {"model": "models/aspen-live", "systemInstruction": {"parts": [{"text": "You switch lamps."}]}}},
        {"serverContent": {"inputTranscription": {"text": "Light in "}}},
        {"serverContent": {"inputTranscription": {"text": "the hall."}}},
        {"toolCall": {"functionCalls": [call]}},
        {"toolResponse": {"functionResponses": [answer]}},
        {"serverContent": {"outputTranscription": {"text": "It is "}}},
        {"serverContent": {"outputTranscription": {"text": "on."}}},
        {"serverContent": {"interrupted": True}},
    ]
    conversation = read(write_lines(tmp_path / "live.jsonl", *messages)).only
    assert talk(conversation) == [
        "user: Light in the hall.",
        'switch_lamp({"room": "hall"})',
        '-> {"done": true}',
        "assistant: It is on.",
    ]
    assert conversation.utterances[-1].cut_off_by == "user"
    assert (conversation.agent.instructions, conversation.dimensions) == ("You switch lamps.", {"model": "aspen-live"})


def test_a_session_of_settings_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConvoscopeError, match="nothing was said"):
        read(write_lines(tmp_path / "empty.jsonl", events()[0]))
