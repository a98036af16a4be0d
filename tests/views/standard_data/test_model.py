"""The model: field for field as published, never refusing a payload, and made of the records of `schema.py`."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pytest
from pydantic import BaseModel

import convoscope
from convoscope.views.standard_data import model
from convoscope.views.standard_data.model import (
    ConversationTurn,
    EOUMetrics,
    LLMMetrics,
    RawCompleteAudio,
    StandardConversation,
    StandardData,
    StandardToolCall,
    StandardToolResult,
    STTData,
    STTMetrics,
    ToolSchema,
    TTSData,
    TTSMetrics,
    VADMetrics,
)
from convoscope.views.standard_data.schema import FIELDS, RECORDS

# As the seed lists them, group by group.
PUBLISHED = {
    StandardData: (
        "user_id task_id turn_id source_trace_id "
        "agent_task input_text agent_response output_text ground_truth novaeval_item_type "
        "agent_name agent_role system_prompt trace exit_status agent_exit "
        "tools_available tool_calls parameters_passed tool_call_results expected_tool_call "
        "retrieval_query retrieved_context "
        "conversation_context speaker message turn_position context "
        "expected_format extracted_content "
        "stt_data tts_data raw_complete_audio latency metrics_collected metadata"
    ),
    ToolSchema: "name description args_schema return_schema",
    StandardToolCall: "tool_name parameters call_id",
    StandardToolResult: "call_id result success error_message",
    StandardConversation: "turns context topic metadata",
    ConversationTurn: "speaker message timestamp metadata",
    STTData: (
        "provider model transcript confidence is_final mode event_type audio_duration_ms language audio_url "
        "span_start_time span_end_time span_duration_ms audio_uuid raw_audio_uuid"
    ),
    TTSData: (
        "provider model input_text audio_duration_ms audio_url span_start_time span_end_time span_duration_ms "
        "speed pitch audio_uuid"
    ),
    RawCompleteAudio: ("audio_duration audio_uuid sample_rate channels format complete_transcript audio_url timeline"),
}
# The seed names the first ones; the others are what LiveKit sends (section 7).
METRICS = {
    VADMetrics: "idle_time inference_count speech_detected inference_duration_total",
    STTMetrics: "duration audio_duration transcript confidence streamed acquire_time request_id",
    TTSMetrics: "ttfb duration audio_duration speaking_duration cancelled characters_count segment_id acquire_time",
    LLMMetrics: "ttft duration completion_tokens prompt_tokens tokens_per_second cancelled prompt_cached_tokens",
    EOUMetrics: "end_of_utterance_delay transcription_delay on_user_turn_completed_delay",
}
OF_EVERY_METRIC = {"type", "label", "source_label", "timestamp", "speech_id", "metadata"}


class TestFields:
    @pytest.mark.parametrize(("kind", "names"), PUBLISHED.items(), ids=lambda one: getattr(one, "__name__", ""))
    def test_as_published(self, kind: type[BaseModel], names: str) -> None:
        assert set(kind.model_fields) == set(names.split())

    @pytest.mark.parametrize(("kind", "names"), METRICS.items(), ids=lambda one: getattr(one, "__name__", ""))
    def test_component_metrics(self, kind: type[BaseModel], names: str) -> None:
        assert set(kind.model_fields) >= set(names.split()) | OF_EVERY_METRIC

    @pytest.mark.parametrize("kind", [*PUBLISHED, *METRICS])
    def test_everything_is_optional(self, kind: type[BaseModel]) -> None:
        assert set(kind().model_dump(exclude={"type"}).values()) == {None}

    def test_the_records_have_the_fields_of_the_model(self) -> None:
        assert set(FIELDS) == set(StandardData.model_fields)
        assert {record.__name__ for record in RECORDS} == {kind.__name__ for kind in [*PUBLISHED, *METRICS]}
        for record in RECORDS:
            kind = getattr(convoscope.views.standard_data, record.__name__)
            assert set(record.kind.fields) == set(kind.model_fields), kind

    def test_aliases_name_fields(self) -> None:
        for record in RECORDS:
            assert set(record.kind.aliases.values()) <= set(record.kind.fields)

    def test_every_model_is_public(self) -> None:
        for kind in [*PUBLISHED, *METRICS]:
            assert getattr(convoscope.views.standard_data, kind.__name__) is kind


class TestMaking:
    def test_twins_are_in_sync(self) -> None:
        assert StandardData(question="a").input_text == "a"
        assert StandardData(output_text="b").agent_response == "b"
        item = StandardData(agent_task="a", input_text="b")
        assert (item.agent_task, item.input_text) == ("a", "b")
        assert [one.code for one in item.warnings] == ["twins_differ"]

    def test_nested_models(self) -> None:
        item = StandardData(
            tool_calls={"tool_name": "t"},
            conversation_context=[{"speaker": "user", "message": "hi"}],
            stt_data={"turn_1": {"transcript": "hi"}},
            tts_data={"input_text": "ho"},
            metrics_collected=[{"type": "llm_metrics", "ttft": 0.5}, {"type": "realtime_model_metrics", "ttft": 0.6}],
        )
        assert item.tool_calls == [StandardToolCall(tool_name="t", call_id="")]
        assert item.conversation_context == StandardConversation(turns=[ConversationTurn(speaker="user", message="hi")])
        assert item.stt_data == {"turn_1": STTData(transcript="hi")}
        assert item.tts_data == TTSData(input_text="ho")
        assert item.metrics_collected == [LLMMetrics(ttft=0.5), {"type": "realtime_model_metrics", "ttft": 0.6}]

    def test_out_of_models(self) -> None:
        calls = [StandardToolCall(tool_name="t", parameters={"a": 1}, call_id="1")]
        item = StandardData(
            tool_calls=calls, stt_data={"turn_1": STTData(transcript="hi")}, metrics_collected=[VADMetrics(idle_time=1)]
        )
        assert item.tool_calls == calls
        assert item.stt_data == {"turn_1": STTData(transcript="hi")}
        assert item.metrics_collected == [VADMetrics(idle_time=1)]
        assert StandardData.model_validate(item) is item

    @pytest.mark.parametrize("payload", [5, None, "text", [], [{"agent_task": "a"}], 0.5, True])
    def test_no_object_at_all(self, payload: Any) -> None:
        item = StandardData.model_validate(payload)
        assert item == StandardData()
        assert [(one.code, one.value) for one in item.warnings] == [("not_an_object", payload)]

    def test_one_object_without_a_value_of_the_schema_is_not_a_map(self) -> None:
        item = StandardData(stt_data={"transcript": None, "turn_1": {"language": "en"}})
        assert item.stt_data == STTData.model_validate({"turn_1": {"language": "en"}})
        assert StandardData.model_validate(item.model_dump(exclude_none=True)) == item

    def test_from_json(self) -> None:
        assert StandardData.model_validate_json('{"user_id": 7, "agent_exit": "yes"}') == StandardData(
            user_id="7", agent_exit=True
        )

    def test_half_a_character(self) -> None:
        # In a text it stays as it came; in a key that is not of the schema, where Pydantic refuses it, it is escaped.
        item = StandardData.model_validate({"agent_task": "\ud83d", "\ud83d": 1, "tool_calls": [{"\ud83d": 2}]})
        assert item.agent_task == "\ud83d"
        assert item.unknown == {"\\ud83d": 1}
        assert item.tool_calls == [StandardToolCall.model_validate({"call_id": "", "\\ud83d": 2})]

    def test_assigning_is_ordinary(self) -> None:
        item = StandardData(agent_task="a")
        item.agent_task = "b"
        assert item.agent_task == "b"
        assert item.input_text == "a"


class TestUnknownKeys:
    ITEM = StandardData.model_validate(
        {"agent_task": "a", "warnings": "mine", "unknown": 1, "_warnings": 2, "model_config": 3, "": 4, "copy": 5}
    )

    def test_they_are_kept_whatever_their_name(self) -> None:
        unknown = {"warnings": "mine", "unknown": 1, "_warnings": 2, "model_config": 3, "": 4, "copy": 5}
        assert self.ITEM.unknown == unknown
        assert self.ITEM.warnings == ()
        assert {name: self.ITEM.model_dump()[name] for name in unknown} == unknown

    def test_they_survive_a_round_trip(self) -> None:
        assert StandardData.model_validate(self.ITEM.model_dump(exclude_none=True)) == self.ITEM
        assert pickle.loads(pickle.dumps(self.ITEM)) == self.ITEM


class TestEquality:
    def test_it_is_of_fields_and_unknown_keys(self) -> None:
        assert StandardData(user_id=7) == StandardData(user_id="7")
        assert StandardData(user_id={}) == StandardData()  # a warning makes no difference
        assert StandardData(foo=1) != StandardData(foo=2)
        assert StandardData(foo=None) == StandardData()
        assert StandardData(user_id="7") != StandardData(user_id="8")
        assert StandardData() != StandardToolCall()

    def test_null_inside_is_absent(self) -> None:
        assert StandardToolCall(tool_name="t", foo=None) == StandardToolCall(tool_name="t")


def test_tidying_needs_no_pydantic() -> None:
    code = "import sys, convoscope.views.standard_data as s; s.tidy({'user_id': 7}); print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_public_names() -> None:
    assert convoscope.StandardData is StandardData is model.StandardData
    assert dir(convoscope.views.standard_data) == convoscope.views.standard_data.__all__
    with pytest.raises(AttributeError, match="no attribute 'tidyy'"):
        _ = convoscope.views.standard_data.tidyy
