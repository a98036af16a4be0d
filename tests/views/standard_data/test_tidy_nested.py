"""The tolerant reading of what lies inside an item: tools, conversations, speech, metrics, spans of a trace."""

from __future__ import annotations

from typing import Any

import pytest

from convoscope.views.standard_data import tidy, unknown_names
from support.tidied import codes, only


class TestTools:
    def test_a_call_without_an_id_has_an_empty_one(self) -> None:
        assert only("tool_calls", [{"tool_name": "t"}]) == [{"tool_name": "t", "call_id": ""}]
        assert only("expected_tool_call", {"tool_name": "t", "call_id": None}) == {"tool_name": "t", "call_id": ""}

    def test_as_openai_writes_calls(self) -> None:
        call = {"id": "c1", "type": "function", "function": {"name": "t", "arguments": '{"a": 1}'}}
        assert only("tool_calls", [call]) == [
            {"tool_name": "t", "parameters": {"a": 1}, "call_id": "c1", "type": "function"}
        ]

    def test_other_names(self) -> None:
        call = {"tool_name": "t", "parameters": {"a": 1}, "call_id": "7"}
        assert only("tool_calls", [{"name": "t", "args": {"a": 1}, "id": 7}]) == [call]
        assert only("tool_calls", [{"name": "t", "input": {"a": 1}, "tool_call_id": "7"}]) == [call]

    def test_another_name_beside_the_field_stays_as_it_came(self) -> None:
        call = {"tool_name": "t", "name": "other", "call_id": "1"}
        assert only("tool_calls", [call]) == [call]
        nested = {"tool_name": "t", "call_id": "1", "function": {"name": "other", "strict": True}}
        assert only("tool_calls", [nested]) == [
            {"tool_name": "t", "call_id": "1", "name": "other", "function": {"strict": True}}
        ]

    def test_parameters_that_cannot_be_read(self) -> None:
        tidied = tidy({"tool_calls": [{"tool_name": "t", "parameters": "a=1", "call_id": "1"}]})
        assert tidied.fields == {"tool_calls": [{"tool_name": "t", "parameters": None, "call_id": "1"}]}
        assert [(one.path, one.code, one.value) for one in tidied.warnings] == [
            ("tool_calls[0].parameters", "bad_json", "a=1")
        ]

    def test_results_keep_whatever_the_tool_gave(self) -> None:
        given = [{"call_id": 1, "result": '{"a": 1}', "success": "true"}, {"tool_call_id": "2", "content": [1]}]
        assert only("tool_call_results", given) == [
            {"call_id": "1", "result": '{"a": 1}', "success": True},
            {"call_id": "2", "result": [1]},
        ]

    def test_tools_as_openai_declares_them(self) -> None:
        tool = {"type": "function", "function": {"name": "t", "description": "d", "parameters": {"type": "object"}}}
        assert only("tools_available", tool) == [
            {"type": "function", "name": "t", "description": "d", "args_schema": {"type": "object"}}
        ]


class TestConversations:
    TURN = {"speaker": "user", "message": "hi"}

    def test_a_bare_list_is_its_turns(self) -> None:
        assert only("conversation_context", [self.TURN]) == {"turns": [self.TURN]}
        assert only("conversation_context", {"messages": [{"role": "user", "content": "hi"}]}) == {"turns": [self.TURN]}
        assert only("conversation_context", [{"turns": [self.TURN]}]) == {"turns": [self.TURN]}

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ("2025-11-15T09:46:40Z", "2025-11-15T09:46:40Z"),
            ("2025-11-15 09:46", "2025-11-15 09:46"),
            ("1763200000", "1763200000"),
            # 1763200000 s = 20407 days (1763164800 s, to 15 November 2025) + 35200 s (9 h 46 min 40 s)
            (1763200000, "2025-11-15T09:46:40Z"),
            (1763200000.25, "2025-11-15T09:46:40.25Z"),
            (1763200000250, "2025-11-15T09:46:40.25Z"),
            (1763200000250123, "2025-11-15T09:46:40.250123Z"),
            (1763200000250123456, "2025-11-15T09:46:40.250123456Z"),
            # Few seconds are since the start of the call: no date can be made of them.
            (12.5, "12.5"),
            (0, "0"),
            # Beyond the year 9999 there is no date either.
            (1e300, "1e+300"),
        ],
    )
    def test_times(self, value: Any, text: str) -> None:
        turn = {"speaker": "user", "timestamp": value}
        assert only("conversation_context", {"turns": [turn]}) == {"turns": [{"speaker": "user", "timestamp": text}]}

    @pytest.mark.parametrize(
        ("value", "kept", "code"),
        [("yesterday", "yesterday", "kept_as_text"), (True, None, "not_a_time"), ([], None, "not_a_time")],
    )
    def test_no_times(self, value: Any, kept: str | None, code: str) -> None:
        tidied = tidy({"conversation_context": {"turns": [{"message": "hi", "timestamp": value}]}})
        (turn,) = tidied.fields["conversation_context"]["turns"]
        assert turn["timestamp"] == kept
        assert [(one.path, one.code, one.value) for one in tidied.warnings] == [
            ("conversation_context.turns[0].timestamp", code, value)
        ]


class TestSpeech:
    def test_one_object_or_one_for_each_turn(self) -> None:
        one = {"transcript": "hi", "confidence": 0.9}
        assert only("stt_data", one) == one
        assert only("stt_data", {"turn_1": one, "turn_2": one}) == {"turn_1": one, "turn_2": one}

    def test_a_list_is_one_for_each_turn(self) -> None:
        # Section 1.3, rule 3; a list of one as well (section 1.2).
        assert only("stt_data", [{"transcript": "a"}]) == {"turn_1": {"transcript": "a"}}
        assert only("tts_data", '[{"input_text": "a"}, {"text": "b"}]') == {
            "turn_1": {"input_text": "a"},
            "turn_2": {"input_text": "b"},
        }

    def test_any_known_key_makes_it_one_object(self) -> None:
        given = {"language": None, "vendor_block": {"transcript": "x"}}
        assert only("stt_data", given) == given

    def test_several_for_one_turn(self) -> None:
        assert only("stt_data", {"turn_1": [{"transcript": "a"}, {"transcript": "b"}]}) == {
            "turn_1": {"transcript": "a"},
            "turn_1~2": {"transcript": "b"},
        }

    def test_a_bad_turn_is_left_out(self) -> None:
        tidied = tidy({"stt_data": {"turn_1": {"transcript": "a"}, "turn_2": 5, "turn_3": None}})
        assert tidied.fields == {"stt_data": {"turn_1": {"transcript": "a"}}}
        assert codes(tidied) == [("stt_data.turn_2", "not_an_object"), ("stt_data.turn_3", "null_element")]

    def test_pipecat_says_text(self) -> None:
        assert only("stt_data", {"text": "hi"}) == {"transcript": "hi"}

    def test_recordings_in_milliseconds(self) -> None:
        # 61 500 ms = 61.5 s
        given = {"duration_ms": 61_500, "audio_format": "ogg", "audio_channels": "2", "audio_channel_left": "user"}
        assert only("raw_complete_audio", given) == {
            "audio_duration": 61.5,
            "format": "ogg",
            "channels": 2,
            "audio_channel_left": "user",
        }


class TestMetrics:
    LLM = {"type": "llm_metrics", "label": "openai.LLM", "ttft": 0.482, "speech_id": "s1"}

    def test_a_flat_list(self) -> None:
        assert only("metrics_collected", [self.LLM]) == [self.LLM]

    def test_one_for_each_turn(self) -> None:
        # Section 1.3, rule 4: the label is the turn's, and the plugin's is kept beside it.
        assert only("metrics_collected", {"turn_1": [self.LLM]}) == [
            self.LLM | {"label": "turn_1", "source_label": "openai.LLM"}
        ]

    def test_the_five_arrays(self) -> None:
        tidied = tidy(
            {
                "llm_metrics": [{"ttft": "0.5"}],
                "vad_metrics": {"idle_time": 1},
                "eou_metrics": '[{"end_of_utterance_delay": 0.5}]',
                "metrics_collected": [self.LLM],
            }
        )
        assert tidied == (
            {
                "metrics_collected": [
                    self.LLM,
                    {"type": "vad_metrics", "idle_time": 1},
                    {"type": "eou_metrics", "end_of_utterance_delay": 0.5},
                    {"type": "llm_metrics", "ttft": 0.5},
                ]
            },
            {},
            [],
        )

    def test_arrays_are_folded_turn_by_turn(self) -> None:
        llm, tts = [{"ttft": 0.4}, {"ttft": 0.6}], [{"ttfb": 0.2}, {"ttfb": 0.1}]
        eou = [{"end_of_utterance_delay": 0.5}, {"end_of_utterance_delay": 0.7}]
        metrics = tidy({"tts_metrics": tts, "llm_metrics": llm, "eou_metrics": eou}).fields["metrics_collected"]
        assert [next(value for key, value in one.items() if key != "type") for one in metrics] == [
            *[0.5, 0.4, 0.2],
            *[0.7, 0.6, 0.1],
        ]

    def test_arrays_of_other_lengths_have_no_order(self) -> None:
        tidied = tidy({"tts_metrics": [{"ttfb": 0.2}], "llm_metrics": [{"ttft": 0.4}, {"ttft": 0.6}]})
        metrics = tidied.fields["metrics_collected"]
        assert [one.get("unordered") for one in metrics] == [True, True, True]
        assert tidy(tidied.fields) == tidied
        assert unknown_names(tidied) == []

    def test_arrays_with_times_are_folded_by_them(self) -> None:
        at = [{"timestamp": 1763200000.0 + second} for second in range(4)]
        tidied = tidy(
            {
                "tts_metrics": [{"ttfb": 0.2} | at[2]],
                "llm_metrics": [{"ttft": 0.4} | at[1], {"ttft": 0.6} | at[3]],
                "eou_metrics": [{"end_of_utterance_delay": 0.5} | at[0]],
            }
        )
        types = [one["type"] for one in tidied.fields["metrics_collected"]]
        assert types == ["eou_metrics", "llm_metrics", "tts_metrics", "llm_metrics"]

    def test_what_is_there_already_is_not_there_twice(self) -> None:
        tidied = tidy({"metrics_collected": [self.LLM], "llm_metrics": [self.LLM]})
        assert tidied.fields == {"metrics_collected": [self.LLM]}
        assert [(one.path, one.code, one.value) for one in tidied.warnings] == [
            ("llm_metrics[0]", "repeated_metric", self.LLM)
        ]

    def test_one_for_one(self) -> None:
        # One of the three is there already: two are new.
        one = {"type": "llm_metrics", "ttft": 0.4}
        tidied = tidy({"llm_metrics": [{"ttft": 0.4}] * 3, "metrics_collected": [one]})
        assert tidied.fields == {"metrics_collected": [one, one, one]}
        assert [(one.path, one.code) for one in tidied.warnings] == [("llm_metrics[0]", "repeated_metric")]

    def test_times_are_seconds_since_the_epoch(self) -> None:
        for value in ("2025-11-15T09:46:40Z", 1763200000000, "1763200000", 1763200000.0):
            (metric,) = only("metrics_collected", [{"type": "vad_metrics", "timestamp": value}])
            assert metric["timestamp"] == 1763200000.0

    def test_a_type_that_is_not_of_the_schema_is_kept_as_it_came(self) -> None:
        realtime = {"type": "realtime_model_metrics", "ttft": 0.61, "input_token_details": {"audio_tokens": 200}}
        assert tidy({"metrics_collected": [realtime]}).fields == {"metrics_collected": [realtime]}

    def test_a_bad_metric(self) -> None:
        tidied = tidy({"metrics_collected": [self.LLM, 5]})
        assert tidied.fields == {"metrics_collected": [self.LLM]}
        assert [(one.path, one.value) for one in tidied.warnings] == [("metrics_collected[1]", 5)]


class TestTraces:
    def test_flattened_keys(self) -> None:
        tidied = tidy(
            {
                "agent_task": "hi",
                "stt.transcript": "hello",
                "stt.confidence": 0.9,
                "metrics_collected.metrics.type": "eou_metrics",
                "metrics_collected.metrics.end_of_utterance_delay": 0.553,
                "my.own.key": 1,
            }
        )
        assert tidied.fields == {
            "agent_task": "hi",
            "stt_data": {"transcript": "hello", "confidence": 0.9},
            "metrics_collected": [{"type": "eou_metrics", "end_of_utterance_delay": 0.553}],
        }
        assert tidied.unknown == {"my.own.key": 1}

    def test_a_field_of_its_own_counts(self) -> None:
        tidied = tidy({"stt_data": {"transcript": "a"}, "stt.transcript": "b"})
        assert tidied.fields == {"stt_data": {"transcript": "a"}}
        assert [(one.path, one.code, one.value) for one in tidied.warnings] == [
            ("stt_data", "alias_ignored", {"transcript": "b"})
        ]
