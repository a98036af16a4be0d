"""Transcripts of recognisers: words are read once, times are seconds, and speakers without a role stay unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Marker, Segment, to_json
from convoscope.errors import NothingReadable
from support.logs import EXAMPLES, counts, read, story, write_json


class TestDeepgram:
    def test_utterances_and_words_say_the_same_once(self) -> None:
        outcome = read(EXAMPLES / "deepgram")
        assert story(outcome.only) == [
            "unknown:Speaker 0: Parcel desk, good morning.",
            "unknown:Speaker 1: Hello, my parcel is late.",
        ]
        assert outcome.only.utterances[1].segments == (Segment(3.0, 4.8, "audio"),)
        assert outcome.only.outcome.duration == 9.5

    def test_without_utterances_the_words_of_a_speaker_are_a_turn(self, tmp_path: Path) -> None:
        words = [
            {"word": "good", "punctuated_word": "Good", "start": 0.1, "end": 0.4, "speaker": 0, "confidence": 0.8},
            {"word": "day", "punctuated_word": "day.", "start": 0.4, "end": 0.9, "speaker": 0, "confidence": 1.0},
            {"word": "hello", "start": 1.5, "end": 2.0, "speaker": 1},
            {"word": "yes", "start": 2.5, "end": 3.0, "speaker": 0},
        ]
        log = {"results": {"channels": [{"alternatives": [{"transcript": "x", "words": words}]}]}}
        only = read(write_json(tmp_path / "d.json", log)).only
        assert story(only) == ["unknown:Speaker 0: Good day.", "unknown:Speaker 1: hello", "unknown:Speaker 0: yes"]
        first = only.utterances[0]
        assert first.segments == (Segment(0.1, 0.9, "audio"),)
        assert first.heard is not None
        assert first.heard.confidence == pytest.approx(0.9)  # (0.8 + 1.0) / 2

    def test_of_alternatives_the_first_is_read(self, tmp_path: Path) -> None:
        said = [[{"word": word, "start": 0.0, "end": 1.0}] for word in ("yes", "yeast")]
        log = {"results": {"channels": [{"alternatives": [{"words": words} for words in said]}]}}
        assert story(read(write_json(tmp_path / "d.json", log)).only) == ["unknown:speaker: yes"]

    def test_channels_are_speakers_in_the_order_of_time(self, tmp_path: Path) -> None:
        channels = [
            {"alternatives": [{"words": [{"word": word, "start": at, "end": at + 0.5}]}]}
            for word, at in (("second", 2.0), ("first", 1.0))
        ]
        only = read(write_json(tmp_path / "d.json", {"results": {"channels": channels}})).only
        assert story(only) == ["unknown:Channel 1: first", "unknown:Channel 0: second"]


class TestAssemblyAI:
    def test_milliseconds_are_seconds(self) -> None:
        only = read(EXAMPLES / "assemblyai").only
        assert story(only) == ["unknown:Speaker A: Dental practice, hello.", "unknown:Speaker B: I need a new date."]
        # 250 to 1,500 and 2,200 to 3,200 milliseconds; the length of the sound is 4 seconds.
        assert [one.segments for one in only.utterances] == [
            (Segment(0.25, 1.5, "audio"),),
            (Segment(2.2, 3.2, "audio"),),
        ]
        assert only.outcome.duration == 4

    def test_a_failed_transcript_is_refused_with_its_reason(self, tmp_path: Path) -> None:
        log = {"id": "t", "status": "error", "error": "no sound", "audio_url": "u", "words": None}
        good = {"id": "g", "status": "completed", "audio_url": "u", "words": [{"text": "Hi", "start": 0, "end": 9}]}
        outcome = read(write_json(tmp_path / "a.json", [log, good]))
        assert outcome.ids == ["g"]
        assert "no sound" in outcome.problem.message

    def test_a_time_that_cannot_be_read_leaves_the_words(self, tmp_path: Path) -> None:
        said = [{"speaker": "A", "text": "Hello", "start": "soon", "end": 900}]
        log = {"id": "t", "status": "completed", "audio_url": "u", "words": [], "utterances": said}
        outcome = read(write_json(tmp_path / "a.json", log))
        assert outcome.only.utterances[0].segments == ()
        assert counts(outcome.report.set_aside) == {"segment_without_times": 1}
        assert b'"soon"' in to_json(outcome.only)


class TestTranscribe:
    def test_punctuation_has_no_time_and_no_confidence(self) -> None:
        only = read(EXAMPLES / "aws-transcribe").only
        assert story(only) == ["unknown:spk_0: Harbour garage.", "unknown:spk_1: My brakes squeal."]
        heard = [one.heard for one in only.utterances]
        # (0.98 + 1.0) / 2 and (0.9 + 0.9 + 0.6) / 3: the 0.0 of a full stop is no doubt about a word.
        assert [one.confidence for one in heard if one is not None] == [pytest.approx(0.99), pytest.approx(0.8)]
        assert [one.segments for one in only.utterances] == [
            (Segment(0.4, 1.5, "audio"),),
            (Segment(2.0, 3.6, "audio"),),
        ]

    def test_a_partial_result_of_a_stream_is_said_again_and_left_out(self, tmp_path: Path) -> None:
        results = [
            {"IsPartial": partial, "StartTime": 0.0, "EndTime": end, "Alternatives": [{"Transcript": text}]}
            for partial, end, text in ((True, 0.5, "my"), (True, 1.0, "my name"), (False, 1.5, "My name is Ana."))
        ]
        events = [{"TranscriptEvent": {"Transcript": {"Results": [result]}}} for result in results]
        outcome = read(write_json(tmp_path / "s.json", events))
        assert story(outcome.only) == ["unknown:speaker: My name is Ana."]
        assert outcome.report.ignored["partial_result"] == 2


class TestContactLens:
    def test_a_chat(self) -> None:
        outcome = read(EXAMPLES / "contact-lens" / "chat.json")
        assert story(outcome.only)[1:] == [
            "[system_message]",
            "user:Rosa: My lamp came without a cable.",
            "assistant:Jon: I am sorry. I send you the cable today.",
        ]
        joined = outcome.only.timeline[0]
        assert isinstance(joined, Marker)
        assert joined.name.endswith("participant.joined")
        assert outcome.report.ignored["event_without_content"] == 1
        first, second = (one.time for one in outcome.only.utterances)
        assert first is not None
        assert second is not None
        assert second.at - first.at == 21.5  # 09:00:20.000 to 09:00:41.500

    def test_a_call_has_milliseconds_of_the_recording(self) -> None:
        only = read(EXAMPLES / "contact-lens" / "voice.json").only
        assert story(only) == ["assistant: Lakeside homeware, this is Jon.", "user: The kettle does not switch off."]
        assert [one.segments for one in only.utterances] == [
            (Segment(0.3, 2.1, "audio"),),
            (Segment(2.9, 4.75, "audio"),),
        ]
        assert only.outcome.duration == 6.4

    def test_a_participant_of_another_role_stays_unknown(self, tmp_path: Path) -> None:
        log: dict[str, Any] = {
            "Channel": "VOICE",
            "Participants": [{"ParticipantId": "p", "ParticipantRole": "GUEST"}],
            "Transcript": [{"ParticipantId": "p", "Content": "Hi", "BeginOffsetMillis": 0, "EndOffsetMillis": 1}],
        }
        assert story(read(write_json(tmp_path / "c.json", log)).only) == ["unknown: Hi"]


@pytest.mark.parametrize("name", ["deepgram", "assemblyai", "aws-transcribe", "contact-lens"])
def test_examples_are_read_without_a_problem(name: str) -> None:
    report = read(EXAMPLES / name).report
    assert (report.problem_count, report.set_aside) == (0, {})


class TestOtherShapes:
    def test_a_channel_that_speaks_in_a_pause_ends_the_turn_and_an_overlap_does_not(self, tmp_path: Path) -> None:
        def channel(*words: tuple[str, float]) -> dict[str, Any]:
            return {"alternatives": [{"words": [{"word": word, "start": at, "end": at + 0.5} for word, at in words]}]}

        # "sure" lies between "hello" (ends 0.5) and "help"; "yes" begins while "help" is said (3.0 to 3.5).
        channels = [channel(("hello", 0.0), ("help", 3.0), ("me", 3.5)), channel(("sure", 1.5), ("yes", 3.2))]
        only = read(write_json(tmp_path / "d.json", {"results": {"channels": channels}})).only
        assert story(only) == [
            "unknown:Channel 0: hello",
            "unknown:Channel 1: sure",
            "unknown:Channel 0: help me",
            "unknown:Channel 1: yes",
        ]

    def test_deepgram_without_words_has_paragraphs_or_a_text(self, tmp_path: Path) -> None:
        paragraphs = [
            {"speaker": number, "sentences": [{"text": text, "start": number, "end": number + 0.5}]}
            for number, text in enumerate(["Good day.", "Hello."])
        ]
        best = {"transcript": "Good day. Hello.", "paragraphs": {"paragraphs": paragraphs}}
        log = {"results": {"channels": [{"alternatives": [best]}]}}
        only = read(write_json(tmp_path / "d.json", log)).only
        assert story(only) == ["unknown:Speaker 0: Good day.", "unknown:Speaker 1: Hello."]
        bare = {"results": {"channels": [{"alternatives": [{"transcript": "Good day."}]}]}}
        outcome = read(write_json(tmp_path / "e.json", bare))
        assert story(outcome.only) == ["unknown:speaker: Good day."]
        assert outcome.only.utterances[0].segments == ()

    def test_deepgram_live_results_that_are_final(self, tmp_path: Path) -> None:
        log = [
            {
                "type": "Results",
                "channel_index": [0, 1],
                "is_final": is_final,
                "channel": {"alternatives": [{"transcript": "x", "words": words}]},
                "metadata": {"request_id": "live-7"},
            }
            for is_final, words in (
                (False, [{"word": "good", "start": 0.0, "end": 0.4}]),
                (True, [{"word": "good", "start": 0.0, "end": 0.4}, {"word": "day", "start": 0.4, "end": 0.8}]),
            )
        ]
        outcome = read(write_json(tmp_path / "d.json", log))
        assert outcome.only.id == "live-7"
        assert story(outcome.only) == ["unknown:speaker: good day"]
        assert outcome.report.ignored["partial_result"] == 1

    def test_words_of_two_speakers_in_one_result_of_a_stream(self, tmp_path: Path) -> None:
        items = [
            {"Content": text, "Type": "pronunciation", "StartTime": at, "EndTime": at + 0.5, "Speaker": who}
            for text, at, who in (("ready", 0.0, "0"), ("yes", 1.0, "1"))
        ]
        result = {"ResultId": "1", "IsPartial": False, "Alternatives": [{"Transcript": "ready yes", "Items": items}]}
        log = {"TranscriptEvent": {"Transcript": {"Results": [result]}}}
        assert story(read(write_json(tmp_path / "s.json", log)).only) == ["unknown:spk_0: ready", "unknown:spk_1: yes"]

    def test_a_result_that_stays_partial_is_read_and_noted(self, tmp_path: Path) -> None:
        result = {"ResultId": "1", "IsPartial": True, "Alternatives": [{"Transcript": "ready"}]}
        outcome = read(write_json(tmp_path / "s.json", {"TranscriptEvent": {"Transcript": {"Results": [result]}}}))
        assert story(outcome.only) == ["unknown:speaker: ready"]
        assert "partial_result_is_the_last" in outcome.report.inferred

    def test_assemblyai_has_a_text_alone_or_is_not_finished(self, tmp_path: Path) -> None:
        log = {"id": "a", "audio_url": "u", "status": "completed", "words": [], "text": "Good day."}
        assert story(read(write_json(tmp_path / "a.json", log)).only) == ["unknown:speaker: Good day."]
        waiting = write_json(tmp_path / "b.json", {**log, "status": "processing", "text": None})
        with pytest.raises(NothingReadable, match="not finished: processing"):
            read(waiting)

    def test_call_analytics_names_roles_and_no_ids(self, tmp_path: Path) -> None:
        roles = ("AGENT", "CUSTOMER")
        log = {
            "JobName": "call-7",
            "Channel": "VOICE",
            "Participants": [{"ParticipantRole": role} for role in roles],
            "Transcript": [
                {"ParticipantRole": role, "Content": role.title(), "BeginOffsetMillis": 0, "EndOffsetMillis": 900}
                for role in roles
            ],
        }
        only = read(write_json(tmp_path / "c.json", log)).only
        assert (only.id, story(only)) == ("call-7", ["assistant: Agent", "user: Customer"])

    def test_contact_lens_segments_in_real_time(self, tmp_path: Path) -> None:
        spoken = [{"ParticipantRole": role, "Content": role.title()} for role in ("AGENT", "CUSTOMER")]
        segments = [{"Transcript": spoken[0]}, {"Categories": {}}, {"Transcript": spoken[1]}]
        log = {"Channel": "VOICE", "Segments": segments}
        assert story(read(write_json(tmp_path / "c.json", log)).only) == ["assistant: Agent", "user: Customer"]
