"""Component metrics: what they are of, their units, maps by turn, and LiveKit's envelopes and chat messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from convoscope.views.standard_data.payloads.metrics_collected import component_metrics

EOU = {"type": "eou_metrics", "end_of_utterance_delay": 0.553, "transcription_delay": 0.312, "speech_id": "speech_1"}
LLM = {"type": "llm_metrics", "label": "livekit.plugins.openai.llm.LLM", "ttft": 0.482, "duration": 1.41}
TTS = {"type": "tts_metrics", "label": "livekit.plugins.cartesia.tts.TTS", "ttfb": 0.187, "cancelled": False}


def read(value: object, type: str = "") -> list[dict[str, Any]]:
    """The metrics of a payload that is read without a warning."""
    components = component_metrics(value, type)
    assert components.warnings == []
    return components.metrics


def codes(value: object) -> list[tuple[str, str]]:
    return [(warned.path, warned.code) for warned in component_metrics(value).warnings]


class TestWhatItIsOf:
    @pytest.mark.parametrize("shape", [[LLM, TTS], json.dumps([LLM, TTS]), [LLM, json.dumps(TTS)], (LLM, TTS)])
    def test_a_list_and_its_json_text(self, shape: object) -> None:
        assert read(shape) == [LLM, TTS]

    @pytest.mark.parametrize("shape", [LLM, json.dumps(LLM), [[LLM]]])
    def test_one_object_is_a_list_of_one(self, shape: object) -> None:
        assert read(shape) == [LLM]

    @pytest.mark.parametrize("name", ["vad", "VAD", "VADMetrics", "VAD metrics", "livekit.agents.metrics.VADMetrics"])
    def test_a_type_by_another_name(self, name: str) -> None:
        """The name as it came is kept beside the one that counts."""
        assert read({"type": name, "idle_time": 1.9}) == [
            {"type": "vad_metrics", "idle_time": 1.9, "source_type": name}
        ]

    @pytest.mark.parametrize(
        ("untyped", "component"),
        [
            # Rule 5 of section 1.3, key by key.
            ({"end_of_utterance_delay": 0.5}, "eou_metrics"),
            ({"idle_time": 1.9}, "vad_metrics"),
            ({"inference_count": 60}, "vad_metrics"),
            ({"ttft": 0.4, "duration": 1.4}, "llm_metrics"),
            ({"total_tokens": 655, "tokens_per_second": 29.8}, "llm_metrics"),
            ({"ttfb": 0.1}, "tts_metrics"),
            ({"characters_count": 71}, "tts_metrics"),
            ({"speaking_duration": 4.6}, "tts_metrics"),
            ({"audio_duration": 5.0, "transcript": "Hello."}, "stt_metrics"),
            ({"audio_duration": 5.0, "confidence": 0.9}, "stt_metrics"),
            ({"audio_duration": 5.0, "streamed": True}, "stt_metrics"),
            # Both a TTS and an STT metric have these three; only a TTS metric has the first.
            ({"ttfb": 0.1, "audio_duration": 5.0, "streamed": True}, "tts_metrics"),
            # Ours: keys that no other component has.
            ({"transcription_delay": 0.3}, "eou_metrics"),
            ({"prompt_tokens": 613}, "llm_metrics"),
            ({"ttft_ms": 400}, "llm_metrics"),
        ],
    )
    def test_an_untyped_metric_is_told_by_a_key_that_only_one_component_has(
        self, untyped: dict[str, Any], component: str
    ) -> None:
        (metric,) = read(untyped)
        assert metric["type"] == component
        assert untyped.items() <= metric.items()

    def test_the_array_it_stands_in_decides_where_nothing_else_does(self) -> None:
        assert read([{"duration": 0.7}, LLM], "stt_metrics") == [{"type": "stt_metrics", "duration": 0.7}, LLM]

    @pytest.mark.parametrize("name", ["realtime_model_metrics", "interruption_metrics", "avatar_metrics", "whatever"])
    def test_an_unknown_type_is_kept_as_it_came(self, name: str) -> None:
        """Even its oddities: what is of no component that we know is not judged."""
        raw = {"type": name, "ttft": "soon", "detection_delay": 0.4, "metadata": None}
        assert read(raw) == [raw]

    def test_an_object_that_nothing_names_is_kept_and_reported(self) -> None:
        components = component_metrics([LLM, {"cpu": 0.7}])
        assert components.metrics == [LLM, {"type": "unknown", "cpu": 0.7}]
        assert [(one.path, one.code) for one in components.warnings] == [("[1]", "unknown_metric")]

    @pytest.mark.parametrize("junk", [7, "soon", True, None, ""])
    def test_what_is_no_object_is_in_the_warning(self, junk: object) -> None:
        components = component_metrics([junk, LLM])
        assert components.metrics == [LLM]
        assert [(one.path, one.code, one.value) for one in components.warnings] == [("[0]", "not_a_metric", junk)]


class TestValues:
    def test_numbers_flags_and_ids_as_text(self) -> None:
        given = {"type": "tts_metrics", "ttfb": "0.187", "characters_count": "71", "cancelled": "true", "speech_id": 7}
        assert read(given) == [
            {"type": "tts_metrics", "ttfb": 0.187, "characters_count": 71, "cancelled": True, "speech_id": "7"}
        ]

    @pytest.mark.parametrize(
        ("field", "bad", "code"),
        [
            ("ttft", "soon", "not_a_number"),
            ("ttft", float("nan"), "not_a_number"),
            ("ttft", True, "not_a_number"),
            ("prompt_tokens", 0.5, "not_an_integer"),
            ("cancelled", "perhaps", "not_a_boolean"),
            ("timestamp", "yesterday", "not_a_time"),
        ],
    )
    def test_a_bad_value_is_null_and_in_the_warning(self, field: str, bad: object, code: str) -> None:
        components = component_metrics({"turn_1": [LLM | {field: bad}]})
        assert components.metrics[0][field] is None
        (warned,) = components.warnings
        assert (warned.path, warned.code) == (f".turn_1[0].{field}", code)
        assert warned.value is bad

    @pytest.mark.parametrize(
        ("time", "seconds"),
        [
            (1763200000.25, 1763200000.25),
            (1763200000250, 1763200000.25),
            ("1763200000.25", 1763200000.25),
            ("2025-11-15T09:46:40.250Z", 1763200000.25),  # 20,407 days and 35,200.25 s after the epoch
            (12.5, 12.5),  # since the start of the call
        ],
    )
    def test_times_are_seconds(self, time: object, seconds: float) -> None:
        assert read(LLM | {"timestamp": time})[0]["timestamp"] == seconds

    def test_sentinels_are_kept(self) -> None:
        """−1 (no token) and 0.0 (streaming, not detected) mean something to the scorers, which filter them."""
        given = [{"type": "llm_metrics", "ttft": -1.0}, {"type": "stt_metrics", "duration": 0.0}]
        assert read(given) == given

    def test_milliseconds_become_seconds_beside_what_came(self) -> None:
        """482 ms = 0.482 s. A field in seconds that is there already counts."""
        (metric,) = read({"type": "llm_metrics", "ttft_ms": 482, "duration": 1.41, "duration_ms": 9000})
        assert metric == {"type": "llm_metrics", "ttft_ms": 482, "ttft": 0.482, "duration": 1.41, "duration_ms": 9000}

    def test_milliseconds_of_something_else_stay(self) -> None:
        (metric,) = read({"type": "llm_metrics", "ttft": 0.4, "queue_ms": 12})
        assert metric == {"type": "llm_metrics", "ttft": 0.4, "queue_ms": 12}

    def test_a_warning_says_where_from_the_name_of_the_field(self) -> None:
        (warned,) = component_metrics([LLM | {"ttft": "soon"}], path="llm_metrics").warnings
        assert warned.path == "llm_metrics[0].ttft"
        assert warned.message.startswith("llm_metrics[0].ttft should be a number")


class TestMaps:
    def test_by_turn(self) -> None:
        """The turn becomes the label; LiveKit's, which names the plugin, is kept as `source_label` (1.3, rule 4)."""
        assert read({"turn_1": [EOU, LLM], "turn_2": TTS}) == [
            EOU | {"label": "turn_1"},
            LLM | {"label": "turn_1", "source_label": "livekit.plugins.openai.llm.LLM"},
            TTS | {"label": "turn_2", "source_label": "livekit.plugins.cartesia.tts.TTS"},
        ]

    def test_a_turn_that_the_metric_names_itself(self) -> None:
        assert read({"turn_1": [EOU | {"label": "turn_1"}]}) == [EOU | {"label": "turn_1"}]

    def test_a_source_label_that_is_there_is_not_overwritten(self) -> None:
        given = LLM | {"label": "turn_7", "source_label": "plugin"}
        assert read({"turn_1": [given]}) == [
            LLM | {"label": "turn_1", "source_label": "plugin", "source_source_label": "turn_7"}
        ]

    def test_by_component(self) -> None:
        """A key that names a component is no turn."""
        assert read({"stt": [{"duration": 0.7}], "llm_metrics": {"duration": 1.4}}) == [
            {"type": "stt_metrics", "duration": 0.7},
            {"type": "llm_metrics", "duration": 1.4},
        ]

    def test_by_turn_and_then_by_component(self) -> None:
        assert read({"turn_1": {"stt": {"duration": 0.7}, "llm": [LLM]}}) == [
            {"type": "stt_metrics", "duration": 0.7, "label": "turn_1"},
            LLM | {"label": "turn_1", "source_label": LLM["label"]},
        ]

    def test_by_turn_in_an_array_of_one_type(self) -> None:
        assert read({"turn_1": [{"duration": 0.7}]}, "stt_metrics") == [
            {"type": "stt_metrics", "duration": 0.7, "label": "turn_1"}
        ]

    def test_a_turn_as_json_text(self) -> None:
        assert read({"turn_1": json.dumps([EOU])}) == [EOU | {"label": "turn_1"}]

    def test_a_turn_that_is_nothing(self) -> None:
        assert codes({"turn_1": [EOU], "turn_2": 7, "turn_3": {}}) == [
            (".turn_2", "not_a_metric"),
            (".turn_3", "empty_metric"),
        ]


class TestLiveKit:
    def test_an_event_gives_its_time_to_a_metric_that_has_none(self) -> None:
        event = {"type": "metrics_collected", "metrics": EOU, "created_at": "2025-11-15T09:46:40.250Z"}
        assert read([event]) == [EOU | {"timestamp": 1763200000.25}]

    def test_what_else_an_event_says_is_kept(self) -> None:
        event = {"type": "metrics_collected", "metrics": EOU | {"timestamp": 5.0}, "created_at": 6.0, "room": "r1"}
        assert read([event]) == [EOU | {"timestamp": 5.0, "envelopes": [{"created_at": 6.0, "room": "r1"}]}]

    def test_an_event_without_metrics(self) -> None:
        components = component_metrics({"metrics": [7], "room": "r1"})
        assert components.metrics == []
        assert [(one.code, one.value) for one in components.warnings] == [
            ("not_a_metric", 7),
            ("no_metric", {"room": "r1"}),
        ]

    @pytest.mark.parametrize(
        "event",
        [
            {"metrics_collected.metrics.type": "eou_metrics", "metrics_collected.metrics.end_of_utterance_delay": 0.5},
            {"metrics": {"type": "eou_metrics", "end_of_utterance_delay": 0.5}},
            {"type": "metrics_collected", "metrics": '{"type": "eou_metrics", "end_of_utterance_delay": 0.5}'},
        ],
    )
    def test_an_event_flattened_nested_or_as_text(self, event: dict[str, Any]) -> None:
        assert read(event) == [{"type": "eou_metrics", "end_of_utterance_delay": 0.5}]

    def test_a_flattened_event_with_an_object_in_it(self) -> None:
        flat = {
            "metrics_collected.type": "metrics_collected",
            "metrics_collected.created_at": 1763200000.25,
            "metrics_collected.metrics.ttft": 0.482,
            "metrics_collected.metrics.metadata.model_name": "gpt-4.1-mini",
        }
        assert read(flat) == [
            {
                "type": "llm_metrics",
                "ttft": 0.482,
                "metadata": {"model_name": "gpt-4.1-mini"},
                "timestamp": 1763200000.25,
            }
        ]

    USER = {"transcription_delay": 0.312, "end_of_turn_delay": 0.553, "on_user_turn_completed_delay": 0.0004}
    ASSISTANT = {"llm_node_ttft": 0.482, "llm_node_tps": 30.5, "tts_node_ttfb": 0.187, "e2e_latency": 1.32}

    def test_metrics_of_a_users_message(self) -> None:
        (metric,) = read(self.USER)
        assert metric["type"] == "eou_metrics"
        assert metric["end_of_utterance_delay"] == 0.553

    def test_metrics_of_an_assistants_message(self) -> None:
        """What is of the whole turn stands on the first: the model."""
        assert read(self.ASSISTANT | {"llm_node_ttfs": 0.6, "started_speaking_at": 5.0}) == [
            {
                "type": "llm_metrics",
                "ttft": 0.482,
                "tokens_per_second": 30.5,
                "ttfs": 0.6,
                "e2e_latency": 1.32,
            },
            {"type": "tts_metrics", "ttfb": 0.187, "started_speaking_at": 5.0},
        ]

    def test_of_whom_the_metadata_is(self) -> None:
        llm, tts = read(self.ASSISTANT | {"llm_metadata": {"a": 1}, "tts_metadata": {"b": 2}, "stt_metadata": {"c": 3}})
        assert (llm["metadata"], llm["stt_metadata"], tts["metadata"]) == ({"a": 1}, {"c": 3}, {"b": 2})

    def test_only_the_whole_turn_was_measured(self) -> None:
        assert read({"e2e_latency": "1.32"}) == [{"type": "turn_metrics", "e2e_latency": 1.32}]

    def test_a_question_is_of_the_speech_that_answers_it(self) -> None:
        """LiveKit's events give both the id of the answer; so do we, where messages follow one another."""
        messages = [
            {"id": "item_1", "type": "message", "role": "user", "content": ["Hi"], "metrics": self.USER},
            {"id": "item_2", "type": "message", "role": "assistant", "metrics": self.ASSISTANT, "created_at": 9.0},
            {"id": "item_3", "type": "message", "role": "user", "metrics": self.USER},
        ]
        asked, llm, tts, last = read(messages)
        assert [one["speech_id"] for one in (asked, llm, tts, last)] == ["item_2", "item_2", "item_2", "item_3"]
        assert asked["envelopes"] == [{"id": "item_1", "role": "user", "content": ["Hi"]}]
        assert (llm["timestamp"], tts["timestamp"]) == (9.0, 9.0)

    def test_a_message_without_metrics_is_kept(self) -> None:
        message = {"id": "item_1", "type": "message", "role": "user", "content": ["Hi"], "metrics": {}}
        assert read([message]) == [message]
