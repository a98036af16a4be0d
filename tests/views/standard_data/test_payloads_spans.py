"""Spans of noveum-trace: dotted keys become the fields of an item."""

from __future__ import annotations

from typing import Any

import pytest

from convoscope.views.standard_data import tidy
from convoscope.views.standard_data.payloads.metrics_collected import component_metrics
from convoscope.views.standard_data.payloads.spans import from_span


def test_livekit_speech_to_text() -> None:
    span = from_span(
        {
            "stt.provider": "deepgram",
            "stt.transcript": "Hello.",
            "stt.is_final": True,
            "stt.audio_uuid": "a1",
            "stt.custom": 7,
            "start_time": "2026-03-14T09:00:00Z",
            "end_time": "2026-03-14T09:00:01Z",
            "duration_ms": 1000.0,
            "name": "stt.stream",
        }
    )
    assert span.fields == {
        "stt_data": {
            "provider": "deepgram",
            "transcript": "Hello.",
            "is_final": True,
            "audio_uuid": "a1",
            "custom": 7,
            "span_start_time": "2026-03-14T09:00:00Z",
            "span_end_time": "2026-03-14T09:00:01Z",
            "span_duration_ms": 1000.0,
        }
    }
    assert span.rest == {"name": "stt.stream"}


def test_pipecat_says_text_and_measures_in_milliseconds() -> None:
    """244 ms from the end of speech to the final transcript: a transcription delay of 0.244 s."""
    span = from_span({"stt.text": "Hello.", "stt.vad_to_final_ms": 244, "tts.input_text": "Hi.", "tts.ttfb_ms": 133})
    assert span.fields["stt_data"] == {"transcript": "Hello.", "vad_to_final_ms": 244}
    assert span.fields["tts_data"] == {"input_text": "Hi.", "ttfb_ms": 133}
    assert span.fields["metrics_collected"] == [
        {"type": "eou_metrics", "transcription_delay": 0.244, "source": "stt.vad_to_final_ms"},
        {"type": "tts_metrics", "ttfb": 0.133, "source": "tts.ttfb_ms"},
    ]


def test_a_measurement_alone_is_a_metric_and_no_record_of_speech() -> None:
    """120 ms = 0.12 s, 240 ms = 0.24 s."""
    span = from_span({"tts.ttfb_ms": 120, "stt": {"audio_uuid": None}, "stt.vad_to_final_ms": "240"})
    assert span.fields == {
        "stt_data": {"audio_uuid": None, "vad_to_final_ms": "240"},
        "metrics_collected": [
            {"type": "eou_metrics", "transcription_delay": 0.24, "source": "stt.vad_to_final_ms"},
            {"type": "tts_metrics", "ttfb": 0.12, "ttfb_ms": 120, "source": "tts.ttfb_ms"},
        ],
    }
    for attribute, field in (("tts.ttfb_ms", "tts_data"), ("stt.vad_to_final_ms", "stt_data")):
        tidied = tidy({attribute: 120})
        assert (field in tidied.fields, tidied.unknown, tidied.warnings) == (False, {}, [])
        assert len(tidied.fields["metrics_collected"]) == 1


def test_attributes_that_the_schema_does_not_know_stay_where_they_were() -> None:
    assert from_span({"tts.custom": 7, "tts.ttfb_ms": "soon"}) == ({}, {"tts.custom": 7, "tts.ttfb_ms": "soon"})


def test_the_times_of_a_span_of_both_kinds_are_of_neither() -> None:
    span = from_span({"stt.text": "Hello.", "tts.input_text": "Hi.", "duration_ms": 9.0})
    assert span.rest == {"duration_ms": 9.0}


def test_a_turn() -> None:
    span = from_span({"turn.user_bot_latency_seconds": 1.3, "turn.was_interrupted": False, "turn.number": 4})
    turn = {"type": "turn_metrics", "e2e_latency": 1.3, "was_interrupted": False, "number": 4}
    assert span == ({"metrics_collected": [turn]}, {})
    assert component_metrics(span.fields["metrics_collected"]) == ([turn], [])


def test_a_turn_of_which_nothing_was_measured_is_not_used() -> None:
    assert from_span({"turn.number": 4}) == ({}, {"turn.number": 4})


def test_the_whole_recording_counts_milliseconds() -> None:
    """61,500 ms = 61.5 s."""
    span = from_span(
        {
            "full_conversation.audio_uuid": "a1",
            "full_conversation.audio_format": "wav",
            "full_conversation.audio_channels": 2,
            "full_conversation.audio_channel_left": "user",
            "full_conversation.duration_ms": "61500",
        }
    )
    assert span.fields == {
        "raw_complete_audio": {
            "audio_uuid": "a1",
            "format": "wav",
            "channels": 2,
            "audio_channel_left": "user",
            "duration_ms": "61500",
            "audio_duration": 61.5,
        }
    }


FLAT = {
    "metrics_collected.type": "metrics_collected",
    "metrics_collected.metrics.type": "eou_metrics",
    "metrics_collected.metrics.end_of_utterance_delay": 0.553,
    "metrics_collected.metrics.metadata.model_name": "multilingual",
    "metrics_collected.created_at": 1763200000.25,
}
EVENT = {
    "type": "metrics_collected",
    "metrics": {"type": "eou_metrics", "end_of_utterance_delay": 0.553, "metadata": {"model_name": "multilingual"}},
    "created_at": 1763200000.25,
}


@pytest.mark.parametrize(
    "payload",
    [FLAT, {"attributes": FLAT}, {"attributes": {"metrics_collected": EVENT}}],
)
def test_an_event(payload: dict[str, Any]) -> None:
    span = from_span(payload)
    assert span == ({"metrics_collected": [EVENT]}, {})
    (metric,) = component_metrics(span.fields["metrics_collected"]).metrics
    assert (metric["end_of_utterance_delay"], metric["timestamp"]) == (0.553, 1763200000.25)


def test_metrics_that_the_item_has_already_come_first() -> None:
    own = {"type": "llm_metrics", "ttft": 0.4}
    assert from_span(FLAT | {"metrics_collected": own}).fields == {"metrics_collected": [own, EVENT]}


def test_attributes_that_are_not_used_stay() -> None:
    span = from_span({"attributes": {"stt.text": "Hello.", "llm.model": "gpt"}, "user_id": "7"})
    assert span == ({"stt_data": {"transcript": "Hello."}}, {"attributes": {"llm.model": "gpt"}, "user_id": "7"})


def test_nested_instead_of_dotted() -> None:
    span = from_span({"stt": {"text": "Hello."}, "tts": {"voice": "unknown to us"}})
    assert span == ({"stt_data": {"transcript": "Hello."}}, {"tts": {"voice": "unknown to us"}})


def test_a_field_that_is_there_is_not_touched() -> None:
    payload = {"stt_data": {"transcript": "Hello."}, "stt.text": "Other."}
    assert from_span(payload) == ({}, payload)


def test_both_names_of_one_thing() -> None:
    span = from_span({"stt.text": "a", "stt.transcript": "b"})
    assert span.fields == {"stt_data": {"text": "a", "transcript": "b"}}


def test_an_item_without_a_span() -> None:
    payload = {"agent_task": "Where?", "metadata": {"a": 1}}
    assert from_span(payload) == ({}, payload)
