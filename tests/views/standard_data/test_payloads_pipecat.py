"""Pipecat: metrics frames, their entries, RTVI's groups, and the breakdown of a wait."""

from __future__ import annotations

from typing import Any

import pytest

from convoscope.views.standard_data.payloads.metrics_collected import component_metrics

LLM = {"processor": "OpenAILLMService#0", "model": "gpt-4.1"}
TTS = {"processor": "CartesiaTTSService#0", "model": "sonic-2"}
STT = {"processor": "DeepgramSTTService#0", "model": "nova-3"}
TOKENS = {"prompt_tokens": 613, "completion_tokens": 42, "total_tokens": 655}


def read(value: object) -> list[dict[str, Any]]:
    components = component_metrics(value)
    assert components.warnings == []
    return components.metrics


def warned(value: object) -> list[tuple[str, str, object]]:
    return [(one.path, one.code, one.value) for one in component_metrics(value).warnings]


def of(name: str, entry: dict[str, Any], value: object) -> dict[str, Any]:
    """An entry that says its class."""
    return {"type": name, **entry, "value": value}


class TestEntries:
    @pytest.mark.parametrize(
        ("entry", "component", "field"),
        [
            # The table of section 7, row by row.
            (of("TTFBMetricsData", LLM, 0.4), "llm_metrics", "ttft"),
            (of("TTFBMetricsData", TTS, 0.4), "tts_metrics", "ttfb"),
            (of("TTFBMetricsData", STT, 0.4), "eou_metrics", "transcription_delay"),
            (of("ProcessingMetricsData", LLM, 0.4), "llm_metrics", "duration"),
            (of("ProcessingMetricsData", TTS, 0.4), "tts_metrics", "duration"),
            (of("ProcessingMetricsData", STT, 0.4), "stt_metrics", "duration"),
            (of("TextAggregationMetricsData", TTS, 0.4), "tts_metrics", "text_aggregation"),
        ],
    )
    def test_a_number_whose_class_is_named(self, entry: dict[str, Any], component: str, field: str) -> None:
        (metric,) = read(entry)
        assert (metric["type"], metric[field]) == (component, 0.4)
        assert (metric["processor"], metric["model"], metric["source_type"]) == (
            entry["processor"],
            entry["model"],
            entry["type"],
        )
        assert "speech_id" not in metric

    def test_usage_is_told_by_its_shape(self) -> None:
        llm, tts, stt = read(
            [LLM | {"value": TOKENS}, TTS | {"value": 71}, STT | {"value": {"audio_seconds": 5.05}, "model": None}]
        )
        assert llm == {"type": "llm_metrics", **LLM, **TOKENS}
        assert tts == {"type": "tts_metrics", **TTS, "characters_count": 71}
        assert stt == {"type": "stt_metrics", "processor": "DeepgramSTTService#0", "audio_duration": 5.05}

    def test_the_end_of_a_turn_counts_milliseconds(self) -> None:
        """64 ms = 0.064 s."""
        turn = {"processor": "LocalSmartTurnAnalyzerV3", "is_complete": True, "e2e_processing_time_ms": 64}
        assert read(turn) == [{"type": "eou_metrics", **turn, "end_of_utterance_delay": 0.064}]

    @pytest.mark.parametrize(
        ("processor", "component"),
        [
            ("AWSNovaSonicLLMService#3", "llm_metrics"),
            ("FastTTSService#0", "tts_metrics"),  # "stt" by chance, in small letters
            ("my_llm", "llm_metrics"),
            ("llm", "llm_metrics"),
        ],
    )
    def test_the_component_is_in_the_name_of_the_processor(self, processor: str, component: str) -> None:
        (metric,) = component_metrics({"processor": processor, "value": 0.4}).metrics
        assert metric["type"] == component

    def test_a_processor_of_no_component_is_kept_as_it_came(self) -> None:
        entry = {"processor": "TavusVideoService#0", "value": 0.4}
        components = component_metrics([entry, {"ttfb": [entry]}])
        assert components.metrics == [{"type": "unknown", **entry}, {"type": "unknown", **entry, "metric": "ttfb"}]
        assert [(one.path, one.code) for one in components.warnings] == [
            ("[0]", "unknown_processor"),
            ("[1].ttfb[0]", "unknown_processor"),
        ]


class TestBareNumbers:
    """Two classes are `{processor, model, value: seconds}` once they are written: what is around them tells which."""

    def test_the_first_is_the_first_byte_and_a_larger_one_the_duration(self) -> None:
        payload = [LLM | {"value": 0.412}, LLM | {"value": 1.201}]
        assert component_metrics(payload).metrics == [{"type": "llm_metrics", **LLM, "ttft": 0.412, "duration": 1.201}]
        assert warned(payload) == [("[0]", "inferred_metric", [0.412, 1.201])]

    def test_each_turn_begins_anew(self) -> None:
        values = [0.4, 1.2, 0.5, 1.6]
        first, second = component_metrics([LLM | {"value": value} for value in values]).metrics
        assert (first["ttft"], first["duration"], second["ttft"], second["duration"]) == (0.4, 1.2, 0.5, 1.6)

    def test_a_smaller_one_is_of_the_next(self) -> None:
        first, second = component_metrics([LLM | {"value": 0.5}, LLM | {"value": 0.4}]).metrics
        assert (first["ttft"], second["ttft"]) == (0.5, 0.4)

    def test_the_zeros_of_a_start_begin_nothing(self) -> None:
        """A processor reports 0.0 for both when it starts. 0.412 is more than 0, and yet no duration."""
        metrics = component_metrics([LLM | {"value": value} for value in (0.0, 0.0, 0.412, 1.201)]).metrics
        assert [(one["ttft"], one.get("duration")) for one in metrics] == [(0.0, None), (0.0, None), (0.412, 1.201)]

    def test_a_number_in_another_frame_is_a_first_byte(self) -> None:
        """Pipecat sends one measurement in a frame: the next may well be that of the next turn."""
        frames = [{"data": [LLM | {"value": value}], "id": number} for number, value in enumerate((0.4, 0.6))]
        first, second = component_metrics(frames).metrics
        assert (first["ttft"], second["ttft"], "duration" in first) == (0.4, 0.6, False)
        assert (first["envelopes"], second["envelopes"]) == ([{"id": 0}], [{"id": 1}])
        assert warned(frames) == [("[0].data[0]", "inferred_metric", [0.4, 0.6])]

    def test_two_numbers_of_one_frame(self) -> None:
        (metric,) = component_metrics({"data": [LLM | {"value": 0.412}, LLM | {"value": 1.201}]}).metrics
        assert (metric["ttft"], metric["duration"]) == (0.412, 1.201)

    def test_another_processor_between_them(self) -> None:
        metrics = component_metrics([LLM | {"value": 0.4}, TTS | {"value": 0.1}, LLM | {"value": 0.6}]).metrics
        assert [(one.get("ttft"), one.get("ttfb")) for one in metrics] == [(0.4, None), (None, 0.1), (0.6, None)]

    def test_as_many_numbers_as_usages_are_one_each(self) -> None:
        """Two turns of a voice: 0.1 s and 71 characters, 0.2 s and 50."""
        for values in ((0.1, 71, 0.2, 50), (71, 0.1, 50, 0.2), (0.1, 0.2, 71, 50)):
            metrics = component_metrics([{"data": [TTS | {"value": value}]} for value in values]).metrics
            assert sorted(one["ttfb"] for one in metrics if "ttfb" in one) == [0.1, 0.2]
            assert [one for one in metrics if "duration" in one] == []
        frames = [{"data": [TTS | {"value": value}]} for value in (0.1, 71, 0.2, 50)]
        first, second = component_metrics(frames).metrics
        assert (first["ttfb"], first["characters_count"]) == (0.1, 71)
        assert (second["ttfb"], second["characters_count"]) == (0.2, 50)

    def test_twice_as_many_numbers_as_usages_are_pairs(self) -> None:
        """Two calls of a model: 42 tokens ÷ 1.2 s = 35, and 42 ÷ 1.6 = 26.25 a second."""
        values = (0.4, TOKENS, 1.2, 0.5, TOKENS, 1.6)
        first, second = component_metrics([{"data": [LLM | {"value": value}]} for value in values]).metrics
        assert (first["ttft"], first["duration"], first["tokens_per_second"]) == (0.4, 1.2, pytest.approx(35.0))
        assert (second["ttft"], second["duration"], second["tokens_per_second"]) == (0.5, 1.6, pytest.approx(26.25))

    def test_pairs_grow(self) -> None:
        """Twice as many numbers, but 0.5 is no duration of a call whose first token came after 0.9 s."""
        values = (0.9, TOKENS, 0.5)
        metrics = component_metrics([{"data": [LLM | {"value": value}]} for value in values]).metrics
        assert [one["ttft"] for one in metrics] == [0.9, 0.5]

    def test_a_model_between_two_utterances(self) -> None:
        """A greeting, a turn with two calls, and one that was cut short: there, each is a first token."""
        call = [
            *[(LLM, 0.3), (TTS, 0.1), (LLM, 0.9)],
            *[(STT, 0.2), (LLM, 0.4), (LLM, 1.0), (LLM, 0.5), (TTS, 0.2), (LLM, 1.5)],
            *[(STT, 0.3), (LLM, 0.6)],
        ]
        metrics = component_metrics([{"data": [whose | {"value": value}]} for whose, value in call]).metrics
        llm = [(one["ttft"], one.get("duration")) for one in metrics if one["type"] == "llm_metrics"]
        assert llm == [(0.3, 0.9), (0.4, 1.0), (0.5, 1.5), (0.6, None)]
        assert [one["ttfb"] for one in metrics if one["type"] == "tts_metrics"] == [0.1, 0.2]
        assert [one["transcription_delay"] for one in metrics if one["type"] == "eou_metrics"] == [0.2, 0.3]

    def test_a_name_is_believed(self) -> None:
        payload = [of("TTFBMetricsData", LLM, 0.4), LLM | {"value": 1.2}, of("TTFBMetricsData", LLM, 0.5)]
        first, second = component_metrics(payload).metrics
        assert (first["ttft"], first["duration"], second["ttft"]) == (0.4, 1.2, 0.5)

    def test_turns_are_read_apart(self) -> None:
        first, second = component_metrics({"turn_1": [LLM | {"value": 0.4}], "turn_2": [LLM | {"value": 0.5}]}).metrics
        assert (first["ttft"], first["label"], second["ttft"], second["label"]) == (0.4, "turn_1", 0.5, "turn_2")

    @pytest.mark.parametrize("turn", ["turn_1", "turn", "1"])
    def test_a_turn_with_one_entry(self, turn: str) -> None:
        (metric,) = component_metrics({turn: LLM | {"value": 0.4}}).metrics
        assert (metric["ttft"], metric["label"]) == (0.4, turn)

    def test_a_speech_recogniser_has_two_metrics(self) -> None:
        eou, stt = component_metrics([STT | {"value": 0.2}, STT | {"value": 0.3}]).metrics
        assert (eou["type"], eou["transcription_delay"]) == ("eou_metrics", 0.2)
        assert (stt["type"], stt["duration"]) == ("stt_metrics", 0.3)


class TestGenerations:
    def test_one_metric_for_one_generation(self) -> None:
        """42 tokens in 1.2 s are 35 a second."""
        (metric,) = read(
            [
                of("TTFBMetricsData", LLM, 0.4),
                LLM | {"value": TOKENS},
                of("ProcessingMetricsData", LLM, 1.2),
                {"processor": LLM["processor"], "ttfat": 0.9, "ttfb": 0.4, "thinking_time": 0.5},
            ]
        )
        assert {key: metric[key] for key in ("ttft", "duration", "completion_tokens", "ttfat", "thinking_time")} == {
            "ttft": 0.4,
            "duration": 1.2,
            "completion_tokens": 42,
            "ttfat": 0.9,
            "thinking_time": 0.5,
        }
        assert metric["tokens_per_second"] == pytest.approx(35.0)

    def test_characters_come_before_the_first_byte(self) -> None:
        """A synthesiser counts what it is given, and then begins to speak: sentence by sentence."""
        first, second = read(
            [
                TTS | {"value": 71},
                of("TTFBMetricsData", TTS, 0.1),
                TTS | {"value": 12},
                of("TTFBMetricsData", TTS, 0.2),
            ]
        )
        assert (first["characters_count"], first["ttfb"]) == (71, 0.1)
        assert (second["characters_count"], second["ttfb"]) == (12, 0.2)

    def test_another_model_is_another_generation(self) -> None:
        first, second = read([of("TTFBMetricsData", LLM, 0.4), LLM | {"model": "other", "value": TOKENS}])
        assert ("completion_tokens" in first, second["model"]) == (False, "other")

    def test_times_of_the_parts_are_kept(self) -> None:
        (metric,) = read(
            [
                of("TTFBMetricsData", LLM, 0.4) | {"timestamp": 10.0},
                of("ProcessingMetricsData", LLM, 1.2) | {"timestamp": 10.8},
            ]
        )
        assert (metric["timestamp"], metric["processing_timestamp"]) == (10.0, 10.8)

    def test_no_duration_no_speed(self) -> None:
        (metric,) = read([of("ProcessingMetricsData", LLM, 0.0), LLM | {"value": TOKENS}])
        assert "tokens_per_second" not in metric


class TestFirstByteToldTwice:
    TTFA = {"processor": "CartesiaTTSService#0", "ttfa": 0.182, "ttfb": 0.133, "leading_silence": 0.049}

    def test_beside_the_metric_itself_it_is_counted_once(self) -> None:
        (metric,) = read([of("TTFBMetricsData", TTS, 0.133), self.TTFA])
        assert (metric["ttfb"], metric["ttfa"], metric["leading_silence"]) == (0.133, 0.182, 0.049)
        assert "ttfa_ttfb" not in metric

    def test_another_value_is_kept_aside(self) -> None:
        (metric,) = read([of("TTFBMetricsData", TTS, 0.2), self.TTFA])
        assert (metric["ttfb"], metric["ttfa_ttfb"]) == (0.2, 0.133)

    def test_alone_it_is_the_only_one_that_tells_it(self) -> None:
        assert read(self.TTFA) == [{"type": "tts_metrics", **self.TTFA}]
        ttfat = {"processor": "OpenAILLMService#0", "ttfat": 0.9, "ttfb": 0.4}
        assert read(ttfat) == [
            {"type": "llm_metrics", "processor": "OpenAILLMService#0", "ttfat": 0.9, "ttft": 0.4},
        ]


class TestRTVI:
    def test_groups_say_what_was_measured(self) -> None:
        """Nothing has to be inferred, and tokens without a processor are of the only model."""
        message = {
            "label": "rtvi-ai",
            "type": "metrics",
            "data": {
                "processing": [LLM | {"value": 1.2}],
                "ttfb": [LLM | {"value": 0.4}, TTS | {"value": 0.1}],
                "tokens": [TOKENS],
                "characters": [TTS | {"value": 71}],
                "stt_usage": [STT | {"value": {"audio_seconds": 5.05}}],
            },
        }
        llm, tts, stt = read(message)
        assert (llm["ttft"], llm["duration"], llm["completion_tokens"]) == (0.4, 1.2, 42)
        assert llm["tokens_per_second"] == pytest.approx(35.0)
        assert (tts["ttfb"], tts["characters_count"], stt["audio_duration"]) == (0.1, 71, 5.05)
        assert llm["envelopes"] == [{"label": "rtvi-ai"}]

    def test_the_first_of_each_group_belong_together(self) -> None:
        groups = {
            "ttfb": [LLM | {"value": 0.4}, LLM | {"value": 0.5}],
            "processing": [LLM | {"value": 1.2}, LLM | {"value": 1.6}],
        }
        first, second = read(groups)
        assert (first["ttft"], first["duration"], second["ttft"], second["duration"]) == (0.4, 1.2, 0.5, 1.6)

    def test_messages_that_follow_one_another(self) -> None:
        (metric,) = read([{"ttfb": [LLM | {"value": 0.4}]}, {"processing": [LLM | {"value": 1.2}]}])
        assert (metric["ttft"], metric["duration"]) == (0.4, 1.2)

    def test_tokens_of_nobody_where_there_are_two_models(self) -> None:
        other = {"processor": "AnthropicLLMService#1"}
        metrics = read({"ttfb": [LLM | {"value": 0.4}, other | {"value": 0.5}], "tokens": [TOKENS]})
        assert metrics[2] == {"type": "llm_metrics", **TOKENS}

    def test_entries_by_name(self) -> None:
        (tts,) = read({"ttfb_tts": TTS | {"value": 0.133}, "text_aggregation": TTS | {"value": 0.21}})
        assert (tts["ttfb"], tts["text_aggregation"]) == (0.133, 0.21)


class TestBreakdown:
    def test_a_wait_taken_apart(self) -> None:
        """The end of the user's turn comes first, and carries what is of the whole wait."""
        eou, llm, tts = read(
            {
                "ttfb": [
                    STT | {"start_time": 100.0, "duration_secs": 0.2},
                    LLM | {"start_time": 100.5, "duration_secs": 0.4},
                    TTS | {"start_time": 100.9, "duration_secs": 0.1},
                ],
                "text_aggregation": {"processor": TTS["processor"], "start_time": 100.8, "duration_secs": 0.05},
                "user_turn_start_time": 97.0,
                "user_turn_secs": 0.5,
                "function_calls": [{"function_name": "find", "duration_secs": 0.3}],
                "contributions": [],
                "total_secs": 1.3,
            }
        )
        assert (eou["end_of_utterance_delay"], eou["transcription_delay"], eou["e2e_latency"]) == (0.5, 0.2, 1.3)
        assert eou["function_calls"] == [{"function_name": "find", "duration_secs": 0.3}]
        assert (llm["type"], llm["ttft"], llm["timestamp"]) == ("llm_metrics", 0.4, 100.5)
        assert (tts["type"], tts["ttfb"], tts["text_aggregation"]) == ("tts_metrics", 0.1, 0.05)
        assert "e2e_latency" not in llm

    def test_what_frames_have_told_is_counted_once(self) -> None:
        payload = [of("TTFBMetricsData", LLM, 0.4), {"ttfb": [LLM | {"value": 0.4}], "total_secs": 1.3}]
        components = component_metrics(payload)
        (metric,) = components.metrics
        assert (metric["ttft"], metric["e2e_latency"]) == (0.4, 1.3)
        assert [(one.path, one.code) for one in components.warnings] == [("[1].ttfb[0]", "repeated_metric")]

    def test_only_the_whole_wait(self) -> None:
        assert read({"ttfb": [], "function_calls": [], "total_secs": 1.3}) == [
            {"type": "turn_metrics", "e2e_latency": 1.3}
        ]
