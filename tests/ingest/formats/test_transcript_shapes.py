"""Transcripts in the shapes that services and programs give them: files, answers of an API, events of a stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Conversation
from convoscope.errors import NothingReadable
from support.logs import counts, read, story, write, write_json, write_lines

Times = list[tuple[float, float] | None]


def times(conversation: Conversation) -> Times:
    """The start and the end of each utterance, in seconds of the recording."""
    segments = [one.segments for one in conversation.utterances]
    return [(held[0].start, held[-1].end) if held else None for held in segments]


def word(text: str, start: float, **more: Any) -> dict[str, Any]:
    """A word of Deepgram, a fifth of a second long."""
    return {"word": text.lower().strip("."), "punctuated_word": text, "start": start, "end": start + 0.25, **more}


SEGMENTS = [{"start": 0.5, "end": 1.5, "text": " Is the mill open?", "speaker": "SPEAKER_00"}]
WHISPER: dict[str, tuple[Any, list[str], Times]] = {
    "whisper.cpp": (
        {
            "model": {"type": "base"},
            "result": {"language": "en"},
            "transcription": [
                {"offsets": {"from": 500, "to": 1500}, "text": " Is the mill open?"},
                {"timestamps": {"from": "00:01:02,000", "to": "00:01:03,250"}, "text": " Yes."},
            ],
        },
        ["unknown: Is the mill open?", "unknown: Yes."],
        [(0.5, 1.5), (62.0, 63.25)],
    ),
    "Hugging Face": (
        {"text": " Is it open? Yes.", "chunks": [{"timestamp": [0.0, 1.5], "text": " Is it open?"}]},
        ["unknown: Is it open?"],
        [(0.0, 1.5)],
    ),
    "speakers of chunks": (
        {
            "speakers": [{"speaker": "SPEAKER_01", "text": "Yes.", "timestamp": [1.0, 1.5]}],
            "chunks": [{"text": "Yes.", "timestamp": [1.0, 1.5]}],
            "text": "Yes.",
        },
        ["unknown:SPEAKER_01: Yes."],
        [(1.0, 1.5)],
    ),
    "words alone": (
        {
            "task": "transcribe",
            "duration": 2.5,
            "text": "Is it open?",
            "words": [{"word": "Is", "start": 0.5, "end": 0.75}, {"word": "open", "start": 1.0, "end": 1.5}],
        },
        ["unknown: Is it open?"],
        [(0.5, 1.5)],
    ),
    "the answer of a service": (
        {"status": "completed", "result": {"segments": SEGMENTS, "word_segments": []}, "error": None},
        ["unknown:SPEAKER_00: Is the mill open?"],
        [(0.5, 1.5)],
    ),
}


class TestWhisper:
    @pytest.mark.parametrize("shape", WHISPER)
    def test_shapes(self, shape: str, tmp_path: Path) -> None:
        value, said, when = WHISPER[shape]
        only = read(write_json(tmp_path / "w.json", value)).only
        assert (story(only), times(only)) == (said, when)

    def test_rows_are_milliseconds(self, tmp_path: Path) -> None:
        rows = "start\tend\ttext\n500\t1500\tIs it open?\n61000\t62000\tYes.\n"
        only = read(write(tmp_path / "w.tsv", rows)).only
        assert times(only) == [(0.5, 1.5), (61.0, 62.0)]

    def test_the_length_of_the_recording(self, tmp_path: Path) -> None:
        assert (
            read(write_json(tmp_path / "w.json", {"duration": 9.5, "segments": SEGMENTS})).only.outcome.duration == 9.5
        )

    def test_a_list_of_segments_with_words_is_one_transcript(self, tmp_path: Path) -> None:
        segments = [{**SEGMENTS[0], "words": [{"word": "Is", "start": 0.5, "end": 0.6}]}] * 2
        assert len(read(write_json(tmp_path / "w.json", segments)).only.utterances) == 2


class TestDeepgram:
    def test_a_pause_in_a_stream_ends_the_turn(self, tmp_path: Path) -> None:
        def result(text: str, start: float, **more: Any) -> dict[str, Any]:
            channel = {"alternatives": [{"transcript": text, "words": [word(text, start)]}]}
            return {"type": "Results", "channel_index": [0, 1], "channel": channel, "is_final": True, **more}

        events = [
            result("Hel", 0.5, is_final=False),
            result("Hello.", 0.5),
            result("Anyone?", 1.0, speech_final=True),
            result("Goodbye.", 9.0, speech_final=True),
        ]
        outcome = read(write_lines(tmp_path / "live.jsonl", *events))
        assert story(outcome.only) == ["unknown:speaker: Hello. Anyone?", "unknown:speaker: Goodbye."]
        assert times(outcome.only) == [(0.5, 1.25), (9.0, 9.25)]
        assert outcome.report.ignored["partial_result"] == 1

    def test_the_last_event_of_a_turn_is_what_was_said(self, tmp_path: Path) -> None:
        def turn(text: str, event: str, end: float) -> dict[str, Any]:
            window = {"audio_window_start": 0.0, "audio_window_end": end}
            return {"type": "TurnInfo", "event": event, "turn_index": 0, "transcript": text, **window}

        events = [turn("Is it", "StartOfTurn", 0.5), turn("Is it open?", "EndOfTurn", 1.5)]
        only = read(write_lines(tmp_path / "flux.jsonl", *events)).only
        assert (story(only), times(only)) == (["unknown:speaker: Is it open?"], [(0.0, 1.5)])

    def test_the_answer_of_an_sdk(self, tmp_path: Path) -> None:
        channels = [{"alternatives": [{"transcript": "Hello.", "words": [word("Hello.", 0.5)]}]}]
        log = {"result": {"metadata": {"request_id": "r"}, "results": {"channels": channels}}, "error": None}
        assert read(write_json(tmp_path / "d.json", log)).only.id == "r"


class TestAssemblyAI:
    @pytest.mark.parametrize(
        "events",
        [
            [
                {"type": "Begin", "id": "s"},
                {"type": "Turn", "turn_order": 0, "transcript": "is it", "words": []},
                {
                    "type": "Turn",
                    "turn_order": 0,
                    "end_of_turn": True,
                    "transcript": "Is it open?",
                    "words": [{"text": "Is", "start": 500, "end": 750}, {"text": "open?", "start": 1000, "end": 1500}],
                },
            ],
            [
                {"message_type": "SessionBegins", "session_id": "s"},
                {"message_type": "PartialTranscript", "audio_start": 0, "text": "is it", "words": []},
                {
                    "message_type": "FinalTranscript",
                    "audio_start": 0,
                    "text": "Is it open?",
                    "words": [{"text": "Is", "start": 500, "end": 750}, {"text": "open?", "start": 1000, "end": 1500}],
                },
            ],
        ],
    )
    def test_streams_of_both_generations(self, events: list[Any], tmp_path: Path) -> None:
        outcome = read(write_lines(tmp_path / "live.jsonl", *events))
        assert (outcome.only.id, story(outcome.only)) == ("s", ["unknown:speaker: Is it open?"])
        assert times(outcome.only) == [(0.5, 1.5)]  # of its words, in milliseconds
        assert outcome.report.ignored["partial_result"] == 1

    def test_sentences_and_names(self, tmp_path: Path) -> None:
        spoken = {"text": "Is it open?", "start": 500, "end": 1500, "speaker": "Customer"}
        log = {"id": "a", "audio_duration": 3, "sentences": [spoken, {**spoken, "speaker": "B"}]}
        only = read(write_json(tmp_path / "a.json", log)).only
        assert [one.role for one in only.participants] == ["user", "unknown"]
        assert [one.name for one in only.participants] == ["Customer", "Speaker B"]


def item(text: str, start: str = "", **more: Any) -> dict[str, Any]:
    timed = {"start_time": start, "end_time": str(float(start) + 0.25)} if start else {}
    kind = "pronunciation" if start else "punctuation"
    return {**timed, "type": kind, "alternatives": [{"content": text, "confidence": "0.9"}], **more}


class TestTranscribe:
    def test_items_name_their_channel(self, tmp_path: Path) -> None:
        items = [item("Hello", "0.5", channel_label="ch_0"), item("Yes", "1.0", channel_label="ch_1")]
        log = {"jobName": "j", "results": {"transcripts": [{"transcript": "Hello Yes"}], "items": items}}
        assert story(read(write_json(tmp_path / "t.json", log)).only) == ["unknown:ch_0: Hello", "unknown:ch_1: Yes"]

    @pytest.mark.parametrize("by", ["speaker", "sound"])
    def test_a_segment_is_a_turn(self, by: str, tmp_path: Path) -> None:
        """One speaker, two segments with a pause between them; the sign joins the word before it."""
        items = [item("Hello", "0.5", id=0), item(".", id=1), item("Anyone", "5.0", id=2), item("?", id=3)]
        results: dict[str, Any] = {"transcripts": [{"transcript": "Hello. Anyone?"}], "items": items}
        if by == "speaker":
            segments = [{"speaker_label": "spk_0", "items": [{"start_time": start}]} for start in ("0.5", "5.0")]
            results["speaker_labels"] = {"speakers": 1, "segments": segments}
        else:
            results["audio_segments"] = [{"id": 0, "items": [0, 1]}, {"id": 1, "items": [2, 3]}]
        only = read(write_json(tmp_path / "t.json", {"results": results})).only
        assert [only.text(one) for one in only.utterances] == ["Hello.", "Anyone?"]
        assert times(only) == [(0.5, 0.75), (5.0, 5.25)]

    def test_a_job_says_where_its_transcript_is(self, tmp_path: Path) -> None:
        job = {"TranscriptionJob": {"Transcript": {"TranscriptFileUri": "https://bucket.example/j.json"}}}
        with pytest.raises(NothingReadable, match=r"another file: https://bucket\.example/j\.json"):
            read(write_json(tmp_path / "job.json", job))


def segment(id: str, role: str, text: str, begin: int) -> dict[str, Any]:
    entry = {
        "Id": id,
        "ParticipantRole": role,
        "Content": text,
        "BeginOffsetMillis": begin,
        "EndOffsetMillis": begin + 500,
    }
    return {"Transcript": entry}


class TestContactLens:
    def test_events_of_one_contact_are_one_conversation(self, tmp_path: Path) -> None:
        contact = {"Channel": "VOICE", "ContactId": "c-1", "EventType": "SEGMENTS"}
        begun = {"TranscriptId": "1", "ParticipantRole": "CUSTOMER", "PartialContent": "Is"}
        events = [
            {**contact, "EventType": "STARTED"},
            {**contact, "Segments": [{"Utterance": begun}]},
            {**contact, "Segments": [segment("1", "CUSTOMER", "Is it open?", 500)]},
            {**contact, "ContactId": "c-2", "Segments": [segment("1", "AGENT", "Good morning.", 0)]},
            {**contact, "Segments": [segment("2", "AGENT", "Yes.", 2000)]},
        ]
        outcome = read(write_lines(tmp_path / "stream.jsonl", *events))
        told = {one.id: story(one) for one in outcome.conversations}
        assert told == {"c-1": ["user: Is it open?", "assistant: Yes."], "c-2": ["assistant: Good morning."]}
        assert outcome.report.ignored["partial_result"] == 1

    def test_a_chat_in_real_time_has_times_and_events(self, tmp_path: Path) -> None:
        said = {"Id": "1", "ParticipantRole": "CUSTOMER", "DisplayName": "Ann", "Content": "Hello?"}
        segments = [
            {"Transcript": {**said, "Time": {"AbsoluteTime": "2024-01-02T03:04:05Z"}}},
            {
                "Event": {
                    "ParticipantRole": "AGENT",
                    "EventType": "joined",
                    "Time": {"AbsoluteTime": "2024-01-02T03:04:06Z"},
                }
            },
        ]
        only = read(write_json(tmp_path / "v2.json", {"Channel": "CHAT", "Segments": segments})).only
        assert story(only) == ["user:Ann: Hello?", "[joined]"]
        assert [event.time.at for event in only.timeline if event.time] == [1704164645.0, 1704164646.0]

    def test_the_role_of_an_entry_counts_where_the_participants_have_none(self, tmp_path: Path) -> None:
        choice = '{"templateType": "ListPicker", "data": {"content": {"title": "Which day?"}}}'
        entry = {"Type": "MESSAGE", "ParticipantId": "p", "ParticipantRole": "CUSTOM_BOT", "Content": choice}
        shown = {**entry, "ContentType": "application/vnd.amazonaws.connect.message.interactive"}
        log = {"Participants": [{"ParticipantId": "p"}], "Transcript": [shown]}
        assert story(read(write_json(tmp_path / "chat.json", log)).only) == ["assistant: Which day?"]

    def test_utterances_of_call_analytics(self, tmp_path: Path) -> None:
        event = {"UtteranceId": "u", "ParticipantRole": "AGENT", "BeginOffsetMillis": 0, "EndOffsetMillis": 900}
        events = [
            {"UtteranceEvent": {**event, "IsPartial": partial, "Transcript": text}}
            for partial, text in ((True, "Good"), (False, "Good morning."))
        ]
        outcome = read(write_lines(tmp_path / "ca.jsonl", *events))
        assert story(outcome.only) == ["assistant: Good morning."]
        assert counts(outcome.report.inferred) == {}

    def test_sentiments_of_the_service_are_labels(self, tmp_path: Path) -> None:
        scores = {"Sentiment": {"OverallSentiment": {"AGENT": 0, "CUSTOMER": 3.1}}}
        entry = segment("1", "AGENT", "Hello.", 0)["Transcript"]
        log = {"Channel": "VOICE", "Participants": [], "Transcript": [entry], "ConversationCharacteristics": scores}
        labels = read(write_json(tmp_path / "voice.json", log)).only.labels
        assert [(one.name, one.value) for one in labels] == [("sentiment.AGENT", 0), ("sentiment.CUSTOMER", 3.1)]
