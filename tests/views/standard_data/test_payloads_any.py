"""Whatever stands where component metrics are expected: nothing is raised, nothing is changed, nothing is lost."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from convoscope.views.standard_data.payloads.fields import METRIC_FIELDS
from convoscope.views.standard_data.payloads.metrics_collected import component_metrics
from convoscope.views.standard_data.payloads.spans import from_span
from support.payload_leaves import leaves, lost
from support.strategies import json_values

KEYS = st.sampled_from(
    [
        *sorted(METRIC_FIELDS),
        *["type", "metrics", "data", "metadata", "processor", "model", "value", "id", "role", "created_at", "content"],
        *["ttfb", "ttfa", "ttfat", "processing", "tokens", "characters", "stt_usage", "text_aggregation", "turn"],
        *["llm_node_ttft", "llm_node_tps", "llm_node_ttfs", "tts_node_ttfb", "playback_latency", "end_of_turn_delay"],
        *["user_turn_secs", "total_secs", "function_calls", "contributions", "duration_secs", "start_time"],
        *["metrics_collected.metrics.type", "metrics_collected.metrics.ttft", "metrics_collected.metrics"],
        *["metrics_collected.created_at", "metrics_collected.metrics.metadata.model_name", "metrics_collected.a.b.c"],
        *["turn_1", "turn_2", "llm", "stt_metrics", "envelopes", "source_label", "source_type", "ttft_ms", "ttfb_llm"],
    ]
)
TEXTS = st.sampled_from(
    [
        *["llm_metrics", "VADMetrics", "tts", "realtime_model_metrics", "metrics_collected", "message", "unknown"],
        *["OpenAILLMService#0", "CartesiaTTSService#0", "DeepgramSTTService#1", "Transport#0", "TTFBMetricsData"],
        *["ProcessingMetricsData", "user", "assistant", "0.25", "-1", "1e999", "true", "2026-03-14T09:26:53Z"],
        *["1763200000250", "speech_1", "", " "],
    ]
)
NUMBERS = st.sampled_from([0, 0.0, -1, -1.0, 0.4, 1.2, 71, 5e-324, 1.7e308, 1763200000.25, 1763200000250, 10**400])


def payloads(max_leaves: int = 12) -> st.SearchStrategy[Any]:
    """Objects with the keys and texts of real payloads at any place, and arbitrary JSON between them."""
    return st.recursive(
        TEXTS | NUMBERS | st.booleans() | json_values(3),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(KEYS, inner, max_size=6)
            | st.dictionaries(KEYS, inner, max_size=3).map(json.dumps)
        ),
        max_leaves=max_leaves,
    )


def entries() -> st.SearchStrategy[Any]:
    """Entries of Pipecat's frames that belong together more often than chance would have it."""
    entry = st.fixed_dictionaries(
        {"processor": TEXTS, "value": NUMBERS | st.dictionaries(KEYS, NUMBERS, max_size=2)},
        optional={
            "model": st.sampled_from(["a", "b"]),
            "timestamp": NUMBERS,
            "type": TEXTS,
            "ttfa": NUMBERS,
            "ttfat": NUMBERS,
            "ttfb": NUMBERS,
            "label": TEXTS,
            "extra": json_values(2),
        },
    )
    frame = st.fixed_dictionaries({"data": st.lists(entry, max_size=3)}, optional={"id": NUMBERS, "name": TEXTS})
    groups = st.dictionaries(
        st.sampled_from(["ttfb", "processing", "tokens", "characters", "ttfa", "id"]), st.lists(entry, max_size=3)
    )
    breakdown = st.fixed_dictionaries(
        {"ttfb": st.lists(entry, max_size=3), "total_secs": NUMBERS}, optional={"user_turn_secs": NUMBERS}
    )
    whole = st.lists(entry | frame | groups | breakdown, max_size=6)
    return whole | st.dictionaries(st.sampled_from(["turn_1", "turn_2"]), whole)


@given(payloads() | entries(), st.sampled_from(["", "stt_metrics", "llm_metrics"]))
@example({"metrics": '{"ttft": NaN}'}, "")
@example([[[[[[[[[[[[[[[[[[[[{"ttft": 1}]]]]]]]]]]]]]]]]]]]], "")
@example({"type": ["llm_metrics"], "ttft": 0.4}, "")
@example({"type": {}, "data": [{"processor": "LLM", "value": 1}]}, "")
@example([{"processor": "LLM", "value": {"ttfa_ttfb": -1}, "ttfb": 0, "ttfat": 0}], "")
@example([{"type": "llm_metrics", "completion_tokens": 10**400, "duration": 1.0}], "")
@example([{"processor": "LLM", "value": {"request_id": -1.0}, "ttfb": 0}], "")
def test_nothing_is_raised_changed_or_lost(payload: Any, default: str) -> None:
    before = copy.deepcopy(payload)
    read = component_metrics(payload, default)
    assert payload == before
    assert lost(payload, read) == []
    for metric in read.metrics:
        assert isinstance(metric["type"], str)
        assert metric["type"]
    for warned in read.warnings:
        assert warned.code
        assert warned.message
        assert warned.path == "" or warned.path[0] in ".["


@given(payloads() | entries())
def test_what_was_read_reads_as_itself(payload: Any) -> None:
    """An item that was written and is read again has the same metrics."""
    once = component_metrics(payload).metrics
    assert component_metrics(once).metrics == once


@given(st.dictionaries(KEYS | st.sampled_from(["stt.text", "tts.ttfb_ms", "turn.x", "attributes"]), payloads(4)))
@example({"stt.": 1, ".": 2, "turn.": 3, "full_conversation.duration_ms": "x", "attributes": {}})
@example({"stt": {"text": "a"}, "stt.text": "b", "stt_data": None})
def test_a_span_loses_nothing(payload: dict[str, Any]) -> None:
    before = copy.deepcopy(payload)
    span = from_span(payload)
    assert payload == before
    there = [*leaves(span.fields), *leaves(span.rest)]
    assert [leaf for leaf in leaves(payload) if leaf not in there] == []


@pytest.mark.parametrize("value", [None, [], [[]], "[]", ()])
def test_nothing_is_nothing(value: object) -> None:
    assert component_metrics(value) == ([], [])


def test_text_that_opens_and_never_closes_is_no_metric() -> None:
    read = component_metrics("[" * 100_000)
    assert read.metrics == []
    assert [warned.code for warned in read.warnings] == ["not_a_metric"]
