"""Payloads dumped from the real classes of LiveKit and Pipecat, read as the tables of the specification say."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from convoscope.views.standard_data.payloads.fields import COMPONENTS
from convoscope.views.standard_data.payloads.metrics_collected import component_metrics
from convoscope.views.standard_data.payloads.spans import from_span
from support.payload_leaves import lost
from support.shared_data import content_hash

Metrics = list[dict[str, Any]]


class Payload(NamedTuple):
    source: str
    name: str
    value: Any


@pytest.fixture
def payloads(shared: Callable[[str], Path]) -> list[Payload]:
    given = json.loads((shared("data/cases") / "livekit-pipecat-metrics.json").read_text())
    return [
        Payload(source, name, value)
        for source, named in given.items()
        if isinstance(named, dict)
        for name, value in named.items()
        if isinstance(value, dict)
    ]


# What the known payloads become, where that is not the payload itself. Of Pipecat's entries the name in the file
# says the class, as it would stand in the log of a person who kept it.
BECOMES: dict[str, Metrics] = {
    "event_envelope": [
        {
            "type": "eou_metrics",
            "timestamp": 1763200000.25,
            "end_of_utterance_delay": 0.553,
            "transcription_delay": 0.312,
            "on_user_turn_completed_delay": 0.0004,
            "speech_id": "speech_abc123",
            "metadata": {"model_name": "multilingual", "model_provider": "livekit"},
        }
    ],
    # end_of_turn_delay is the newer name of end_of_utterance_delay.
    "chat_message_metrics_user": [
        {
            "type": "eou_metrics",
            "started_speaking_at": 1763199997.05,
            "stopped_speaking_at": 1763199999.65,
            "transcription_delay": 0.312,
            "end_of_turn_delay": 0.553,
            "end_of_utterance_delay": 0.553,
            "on_user_turn_completed_delay": 0.0004,
            "stt_metadata": {"model_name": "nova-3", "model_provider": "Deepgram"},
        }
    ],
    "chat_message_metrics_assistant": [
        {
            "type": "llm_metrics",
            "ttft": 0.482,
            "e2e_latency": 1.32,
            "metadata": {"model_name": "gpt-4.1-mini", "model_provider": "openai"},
        },
        {
            "type": "tts_metrics",
            "ttfb": 0.187,
            "playback_latency": 0.003,
            "started_speaking_at": 1763200000.97,
            "stopped_speaking_at": 1763200005.55,
        },
    ],
    "ttfb_llm": [{"type": "llm_metrics", "processor": "OpenAILLMService#0", "model": "gpt-4.1", "ttft": 0.412}],
    "ttfb_tts": [{"type": "tts_metrics", "processor": "CartesiaTTSService#0", "model": "sonic-2", "ttfb": 0.133}],
    # From the end of speech to the final transcript: the delay of the transcription.
    "ttfb_stt": [
        {
            "type": "eou_metrics",
            "processor": "DeepgramSTTService#0",
            "model": "nova-3-general",
            "transcription_delay": 0.244,
        }
    ],
    "processing_llm": [
        {"type": "llm_metrics", "processor": "OpenAILLMService#0", "model": "gpt-4.1", "duration": 1.201}
    ],
    "llm_usage": [
        {
            "type": "llm_metrics",
            "processor": "OpenAILLMService#0",
            "model": "gpt-4.1",
            "prompt_tokens": 613,
            "completion_tokens": 42,
            "total_tokens": 655,
        }
    ],
    "tts_usage": [
        {"type": "tts_metrics", "processor": "CartesiaTTSService#0", "model": "sonic-2", "characters_count": 71}
    ],
    "stt_usage": [{"type": "stt_metrics", "processor": "DeepgramSTTService#0", "audio_duration": 5.05}],
    # 0.133 + 0.049 = 0.182. No other metric tells the time to first byte: this one does.
    "ttfa": [
        {
            "type": "tts_metrics",
            "processor": "CartesiaTTSService#0",
            "ttfa": 0.182,
            "ttfb": 0.133,
            "leading_silence": 0.049,
        }
    ],
    # 0.412 + 0.488 = 0.9.
    "ttfat": [
        {
            "type": "llm_metrics",
            "processor": "OpenAILLMService#0",
            "ttfat": 0.9,
            "ttft": 0.412,
            "thinking_time": 0.488,
        }
    ],
    "text_aggregation": [{"type": "tts_metrics", "processor": "CartesiaTTSService#0", "text_aggregation": 0.21}],
    # 64.2 ms = 0.0642 s.
    "turn": [
        {
            "type": "eou_metrics",
            "processor": "LocalSmartTurnAnalyzerV3",
            "is_complete": True,
            "probability": 0.97,
            "e2e_processing_time_ms": 64.2,
            "end_of_utterance_delay": pytest.approx(0.0642),
        }
    ],
}
# The payloads that were looked at: another one of the same name holds other numbers.
LOOKED_AT = {
    "event_envelope": "cc0b395cbd2a",
    "chat_message_metrics_user": "2be4838c146d",
    "chat_message_metrics_assistant": "acfb39cf7657",
    "ttfb_llm": "c50adccc4a25",
    "ttfb_tts": "15162aaf8546",
    "ttfb_stt": "e65390554463",
    "processing_llm": "3abe0956dfd6",
    "llm_usage": "0aec0044a413",
    "tts_usage": "394f4ee5aa6e",
    "stt_usage": "d4aa2e0ab0c4",
    "ttfa": "64ffcc51f028",
    "ttfat": "b0bd5f06c3c0",
    "text_aggregation": "7558effd7a4c",
    "turn": "21e570e40e59",
}
PIPECAT = {
    "ttfb_llm",
    "ttfb_tts",
    "ttfb_stt",
    "processing_llm",
    "llm_usage",
    "tts_usage",
    "stt_usage",
    "ttfa",
    "ttfat",
    "text_aggregation",
    "turn",
}
UNCHANGED = {"vad", "stt", "eou", "llm", "tts", "realtime", "interruption", "eot_inference"}


def is_known(payload: Payload) -> bool:
    """Whether it is one of those above; of LiveKit's flat metrics any is."""
    if payload.name in BECOMES:
        return content_hash(payload.value) == LOOKED_AT[payload.name]
    return payload.name in UNCHANGED and isinstance(payload.value.get("type"), str)


def read_by_name(payload: Payload) -> Metrics:
    metrics = component_metrics({payload.name: payload.value}).metrics
    return [{key: value for key, value in one.items() if value != payload.name} for one in metrics]


def test_every_known_payload_is_what_the_tables_say(payloads: list[Payload], ran: Callable[[str, int], None]) -> None:
    known = [one for one in payloads if is_known(one)]
    for payload in known:
        if payload.source.startswith("pipecat"):
            assert read_by_name(payload) == BECOMES[payload.name], payload.name
        else:
            read = component_metrics(payload.value)
            assert read == (BECOMES.get(payload.name, [payload.value]), []), payload.name
    ran("component metrics, payloads known by name", len(known))


def test_no_payload_loses_anything(payloads: list[Payload], ran: Callable[[str, int], None]) -> None:
    """Whatever else comes: alone, in a list, as text, by turn, by name, flattened; and read again as it was written."""
    for payload in payloads:
        before = copy.deepcopy(payload.value)
        alone = component_metrics(payload.value)
        assert payload.value == before, payload.name
        assert lost(payload.value, alone) == [], payload.name
        assert all(isinstance(one["type"], str) and one["type"] for one in alone.metrics), payload.name
        assert component_metrics([payload.value]).metrics == alone.metrics, payload.name
        assert component_metrics(json.dumps(payload.value)).metrics == alone.metrics, payload.name
        assert component_metrics(alone.metrics).metrics == alone.metrics, payload.name
        by_turn = component_metrics({"turn_1": payload.value})
        assert lost(payload.value, by_turn) == [], payload.name
        assert len(by_turn.metrics) == len(alone.metrics), payload.name
        assert {one["label"] for one in by_turn.metrics} <= {"turn_1"}, payload.name
    ran("component metrics, nothing lost", len(payloads))


def test_what_is_inferred_is_said(payloads: list[Payload]) -> None:
    """Without a name a bare number of Pipecat can only be told by its order, and that is the only warning there is."""
    for payload in payloads:
        bare = payload.source.startswith("pipecat") and isinstance(payload.value.get("value"), float)
        codes = [one.code for one in component_metrics(payload.value).warnings]
        if is_known(payload):
            assert codes == (["inferred_metric"] if bare else []), payload.name


def test_livekits_metrics_are_of_their_component(payloads: list[Payload]) -> None:
    """Every flat metric keeps its type, its values and its sentinels; without the type its keys tell it."""
    for payload in payloads:
        if payload.value.get("type") in COMPONENTS:
            assert component_metrics(payload.value) == ([payload.value], []), payload.name
            untyped = {key: value for key, value in payload.value.items() if key != "type"}
            assert component_metrics(untyped) == ([payload.value], []), payload.name


def test_what_noveum_trace_makes_of_livekits_event(payloads: list[Payload]) -> None:
    for payload in payloads:
        if isinstance(payload.value.get("metrics"), dict) and payload.value.get("type") == "metrics_collected":
            flat = {f"metrics_collected.metrics.{key}": value for key, value in payload.value["metrics"].items()}
            flat |= {f"metrics_collected.{key}": one for key, one in payload.value.items() if key != "metrics"}
            fields, rest = from_span(flat)
            assert rest == {}
            read = component_metrics(fields["metrics_collected"])
            assert read == component_metrics(payload.value), payload.name


def test_pipecats_payloads_of_one_turn(payloads: list[Payload]) -> None:
    """All of them as one turn by name: one metric for each generation, and no time to first byte twice."""
    known = [one for one in payloads if one.source.startswith("pipecat") and one.name in BECOMES and is_known(one)]
    turn = {one.name: one.value for one in known}
    if turn.keys() != PIPECAT:
        pytest.skip("no conformance data: Pipecat's payloads of one turn, as they were looked at")
    metrics, warnings = component_metrics({"turn_1": turn})
    assert warnings == []
    llm, tts, eou, stt, end = metrics
    assert llm == {
        "type": "llm_metrics",
        "processor": "OpenAILLMService#0",
        "model": "gpt-4.1",
        "label": "turn_1",
        "ttft": 0.412,
        "duration": 1.201,
        "prompt_tokens": 613,
        "completion_tokens": 42,
        "total_tokens": 655,
        "tokens_per_second": pytest.approx(34.97, abs=0.01),  # 42 / 1.201
        "ttfat": 0.9,
        "thinking_time": 0.488,
    }
    assert tts == {
        "type": "tts_metrics",
        "processor": "CartesiaTTSService#0",
        "model": "sonic-2",
        "label": "turn_1",
        "ttfb": 0.133,
        "characters_count": 71,
        "ttfa": 0.182,
        "leading_silence": 0.049,
        "text_aggregation": 0.21,
    }
    assert (eou["transcription_delay"], stt["audio_duration"]) == (0.244, 5.05)
    assert end["end_of_utterance_delay"] == pytest.approx(0.0642)
