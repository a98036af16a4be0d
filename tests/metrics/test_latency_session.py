"""What a session states of its own latency, where its parts report nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.conversation import ComponentMetric, Conversation
from convoscope.metrics.latency.components import LATENCIES
from convoscope.metrics.latency.samples import NAMES, stated
from convoscope.scoring.evaluate import evaluate, observe
from support.chats import told
from support.stacks import items, part, stack
from support.strategies import json_values

FIELDS = (
    *("ttft", "ttfb", "duration", "audio_duration", "cancelled", "streamed", "acquire_time", "e2e_latency"),
    *("end_of_utterance_delay", "transcription_delay", "on_user_turn_completed_delay"),
    *("processing", "latency", "source_label"),
)
VALUES = st.floats() | st.sampled_from([-1, 0, 1, 0.5, "0.25", True, None, 10**400, [], {}])
PARTS = st.builds(
    lambda component, values, speech, label: part(component, speech, label, **values),
    st.sampled_from(["llm", "tts", "stt", "eou", "vad", "turn"]),
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5),
    st.sampled_from(["", "", "a", "b"]),
    st.sampled_from(["", "", "turn_1", "plugin"]),
)


def scores(name: str, conversation: Conversation) -> list[tuple[str, Any]]:
    return told(observe(LATENCIES[name], conversation))


class TestNamesUnitsAndStatistics:
    @pytest.mark.parametrize(
        ("latency", "name", "seconds", "details"),
        [
            ({"e2e": 1.2}, "e2e_latency", 1.2, ("e2e", "value", "s, assumed")),
            ({"e2e_latency": "1.2"}, "e2e_latency", 1.2, ("e2e_latency", "value", "s, assumed")),
            ({"e2e_mean_ms": 1200}, "e2e_latency", 1.2, ("e2e_mean_ms", "mean", "ms")),
            ({"avgE2eLatencyMs": 1200}, "e2e_latency", 1.2, ("avgE2eLatencyMs", "mean", "ms")),
            ({"e2e_latency_seconds": 1.2}, "e2e_latency", 1.2, ("e2e_latency_seconds", "value", "s")),
            ({"e2e": {"mean": 1200, "unit": "ms"}}, "e2e_latency", 1.2, ("e2e.mean", "mean", "ms")),
            ({"unit": "ms", "e2e": {"p50": 1200}}, "e2e_latency", 1.2, ("e2e.p50", "p50", "ms")),
            ({"mean": {"e2e": 1.2}}, "e2e_latency", 1.2, ("mean.e2e", "mean", "s, assumed")),
            ({"e2e_ms": {"mean": 1200}}, "e2e_latency", 1.2, ("e2e_ms.mean", "mean", "ms")),
            ({"e2e": "1200 ms"}, "e2e_latency", 1.2, ("e2e", "value", "ms")),
            ({"end_to_end": {"value": 1.2}}, "e2e_latency", 1.2, ("end_to_end.value", "value", "s, assumed")),
            ({"latency": {"e2e": 1.2}}, "e2e_latency", 1.2, ("latency.e2e", "value", "s, assumed")),
            ({"llm": {"ttft": 0.4, "mean": 1.5}}, "llm_ttft", 0.4, ("llm.ttft", "value", "s, assumed")),
            ({"llm": {"ttft": 0.4, "mean": 1.5}}, "llm_latency", 1.5, ("llm.mean", "mean", "s, assumed")),
            ({"llm_ttft_ms": 400}, "llm_ttft", 0.4, ("llm_ttft_ms", "value", "ms")),
            ({"ttft": {"p50": 0.3, "mean": 0.4, "p95": 2}}, "llm_ttft", 0.4, ("ttft.mean", "mean", "s, assumed")),
            ({"tts": {"ttfb": 0.2}}, "tts_ttfb", 0.2, ("tts.ttfb", "value", "s, assumed")),
            ({"tts_latency": 0.3}, "tts_latency", 0.3, ("tts_latency", "value", "s, assumed")),
            ({"transcription_delay": 0.3}, "stt_latency", 0.3, ("transcription_delay", "value", "s, assumed")),
            ({"eou": {"end_of_utterance_delay": 0.5}}, "end_of_turn_delay", 0.5, None),
            ({"on_user_turn_completed_delay": 0}, "on_user_turn_completed_delay", 0.0, None),
            ({"assistant": {"avg": 0.7}}, "assistant_latency", 0.7, ("assistant.avg", "mean", "s, assumed")),
            ({"tts_audio_duration_total": 46}, "tts_audio_duration", 46.0, ("tts_audio_duration_total", "sum", None)),
            ({"stt": {"audio_duration": 0}}, "stt_audio_duration", 0.0, ("stt.audio_duration", "value", None)),
        ],
    )
    def test_is_found(self, latency: Any, name: str, seconds: float, details: tuple[str, str, str | None]) -> None:
        (one,) = observe(LATENCIES[name], stack(latency=latency))
        assert (str(one.subject), one.value) == ("item 1", pytest.approx(seconds))
        assert one.details is not None
        assert one.details["from"] == "session"
        if details is not None:
            key, statistic, unit = details
            assert (one.details["key"], one.details["statistic"]) == (key, statistic)
            assert one.details["unit"] == (unit or "s, assumed")

    @pytest.mark.parametrize(
        ("latency", "reason"),
        [
            ({"e2e": {"p95": 2.0, "max": 3.0}}, "no_mean"),  # the worst is no mean
            ({"e2e_max_ms": 3000}, "no_mean"),
            ({"e2e": 0}, "no_mean"),  # a field that was never filled
            ({"e2e": -1}, "no_mean"),
            ({"e2e": "fast"}, "no_mean"),
            ({"e2e": True}, "no_mean"),
            ({"e2e": [1.2]}, "no_mean"),
            ({"e2e": {"mean": 1.2, "count": 0}}, "no_metrics_collected"),  # a mean of nothing
            ({"e2e": {}}, "no_metrics_collected"),
            ({"total": 1.2}, "no_metrics_collected"),
            ({}, "no_metrics_collected"),
            ("1.2", "no_metrics_collected"),
            ([1.2], "no_metrics_collected"),
        ],
    )
    def test_is_not_found(self, latency: Any, reason: str) -> None:
        assert scores("e2e_latency", stack(latency=latency)) == [("item 1", f"unmeasured: {reason}")]

    def test_what_stands_there_instead_is_told(self) -> None:
        (one,) = observe(LATENCIES["e2e_latency"], stack(latency={"e2e": {"p95": 2.0, "max": 3.0}}))
        assert one.detail == "latency states only e2e.p95 2.0, e2e.max 3.0"

    @pytest.mark.parametrize(
        ("latency", "name", "detail"),
        [
            ({"llm_ttft": 450}, "llm_ttft", "llm_ttft 450"),
            ({"e2e": {"mean": 1300, "p50": 1200}}, "e2e_latency", "e2e.mean 1300, e2e.p50 1200"),
            ({"e2e": 60.1}, "e2e_latency", "e2e 60.1"),
            ({"tts_audio_duration_total": 46000}, "tts_audio_duration", "tts_audio_duration_total 46000"),
            ({"llm_ttft": 45, "e2e": 1300}, "llm_ttft", "llm_ttft 45"),  # its neighbour is not in seconds
        ],
    )
    def test_too_long_without_a_unit(self, latency: Any, name: str, detail: str) -> None:
        (one,) = observe(LATENCIES[name], stack(latency=latency))
        assert (str(one.subject), one.status, one.reason) == ("item 1", "unmeasured", "unit_unknown")
        assert one.detail == f"latency states without a unit {detail}"

    @pytest.mark.parametrize(
        ("latency", "seconds"),
        [
            ({"e2e": 60}, 60.0),
            ({"e2e": "75 s"}, 75.0),
            ({"e2e_seconds": 75}, 75.0),
            ({"e2e": 1300, "user_bot_latency_ms": 1300}, 1.3),  # the same, with its unit
            ({"e2e": 1.3, "tts_audio_duration": 120}, 1.3),  # sound may well be that long
        ],
    )
    def test_long_with_a_unit(self, latency: Any, seconds: float) -> None:
        (one,) = observe(LATENCIES["e2e_latency"], stack(latency=latency))
        assert one.value == pytest.approx(seconds)

    def test_a_mean_is_no_sum(self) -> None:
        latency = {"tts_audio_duration_mean": 4.6}
        assert scores("tts_audio_duration", stack(latency=latency)) == [("item 1", "unmeasured: no_sum")]

    def test_the_real_time_factor_of_a_session(self) -> None:
        conversation = stack(latency={"tts": {"duration": 1.0, "audio_duration": 1.25}})
        (evaluated,) = evaluate(conversation, [LATENCIES["tts_duration"]])
        assert evaluated.scores[0].ten == pytest.approx(7.0)  # 1 ÷ 1.25 = 0.8
        # A mean of calls ÷ the sum of a session is no factor.
        mixed = stack(latency={"tts": {"duration": {"mean": 1.0}, "audio_duration": {"sum": 12.5}}})
        (evaluated,) = evaluate(mixed, [LATENCIES["tts_duration"]])
        assert (evaluated.scores[0].value, evaluated.scores[0].ten) == (1.0, None)


class TestWhenItIsAsked:
    def test_only_where_the_parts_give_no_value(self) -> None:
        assert scores("llm_ttft", stack(part("llm", ttft=0.4), latency={"llm_ttft": 0.9})) == [
            ("component metric 0", 0.4)
        ]

    def test_beside_what_was_left_out(self) -> None:
        conversation = stack(part("llm", ttft=-1), latency={"llm_ttft": 0.9})
        assert scores("llm_ttft", conversation) == [
            ("component metric 0", "unmeasured: no_token"),
            ("item 1", 0.9),
        ]
        assert scores("llm_ttft", stack(part("llm", ttft=-1), latency={"llm": {"p95": 1}})) == [
            ("component metric 0", "unmeasured: no_token")
        ]

    def test_each_item_for_itself(self) -> None:
        conversation = items(([], {"e2e": 1.0}), ([part("tts", e2e_latency=1.5)], {"e2e": 9.0}))
        assert scores("e2e_latency", conversation) == [("item 1", 1.0), ("turn #1", 1.5)]


class TestNeverRaises:
    @given(json_values(max_leaves=12))
    def test_whatever_the_session_states(self, latency: Any) -> None:
        for name in NAMES:
            stated(latency, name)
        for name, declared in LATENCIES.items():
            assert declared(stack(latency={name: latency, "llm": latency})) is not None

    @given(st.lists(PARTS, max_size=6))
    def test_whatever_the_parts_report(self, events: list[ComponentMetric]) -> None:
        conversation = stack(*events)
        for declared in LATENCIES.values():
            (evaluated,) = evaluate(conversation, [declared])
            assert all(one.status != "error" for one in evaluated.observations)
            assert all(one.status != "error" for one in evaluated.scores)
            assert all(one.value is None or one.value >= 0 for one in evaluated.observations)
