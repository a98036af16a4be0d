"""The schema of an item as a table: each field with its kind. `model.py` says the same to Pydantic.

Other names that are met in exports stand beside the fields they mean.
"""

from __future__ import annotations

from typing import Any

from convoscope.views.standard_data.containers import (
    OBJECT,
    Alias,
    ChunksByQuery,
    ListOf,
    PerTurn,
    RecordKind,
    TextOrObject,
    Texts,
)
from convoscope.views.standard_data.values import (
    ANY,
    BOOLEAN,
    EPOCH,
    ID,
    INTEGER,
    ITEM_TYPE,
    NUMBER,
    TEXT,
    TIME,
    ValueKind,
)

TOOL_SCHEMA = RecordKind(
    {"name": TEXT, "description": TEXT, "args_schema": OBJECT, "return_schema": OBJECT},
    {
        "parameters": Alias("args_schema"),
        "input_schema": Alias("args_schema"),
        "inputSchema": Alias("args_schema"),
        "output_schema": Alias("return_schema"),
    },
    inside="function",
)
TOOL_CALL = RecordKind(
    {"tool_name": TEXT, "parameters": OBJECT, "call_id": ID},
    {
        "name": Alias("tool_name"),
        "arguments": Alias("parameters"),
        "args": Alias("parameters"),
        "input": Alias("parameters"),
        "id": Alias("call_id"),
        "tool_call_id": Alias("call_id"),
    },
    inside="function",
    # A call that names no id is as good as one that does (section 1.2).
    default={"call_id": ""},
)
TOOL_RESULT = RecordKind(
    {"call_id": ID, "result": ANY, "success": BOOLEAN, "error_message": TEXT},
    {
        "tool_call_id": Alias("call_id"),
        "tool_use_id": Alias("call_id"),
        "id": Alias("call_id"),
        "output": Alias("result"),
        "content": Alias("result"),
        "error": Alias("error_message"),
    },
)
TURN = RecordKind(
    {"speaker": TEXT, "message": TEXT, "timestamp": TIME, "metadata": OBJECT},
    {"role": Alias("speaker"), "content": Alias("message"), "text": Alias("message")},
)


def _of_turns(turns: list[Any]) -> dict[str, Any] | None:
    """A bare list is the turns of a conversation, unless it holds the one conversation itself."""
    alone = turns[0] if len(turns) == 1 else None
    if isinstance(alone, str) or (isinstance(alone, dict) and ("turns" in alone or "messages" in alone)):
        return None
    return {"turns": turns}


CONVERSATION = RecordKind(
    {"turns": ListOf(TURN), "context": TEXT, "topic": TEXT, "metadata": OBJECT},
    {"messages": Alias("turns")},
    listed=_of_turns,
)

_SPAN = {
    "provider": TEXT,
    "model": TEXT,
    "audio_duration_ms": NUMBER,
    "audio_url": TEXT,
    "audio_uuid": ID,
    "span_start_time": TIME,
    "span_end_time": TIME,
    "span_duration_ms": NUMBER,
}
STT_DATA = RecordKind(
    _SPAN
    | {
        "transcript": TEXT,
        "confidence": NUMBER,
        "is_final": BOOLEAN,
        "mode": TEXT,
        "event_type": TEXT,
        "language": TEXT,
        "raw_audio_uuid": ID,
    },
    {"text": Alias("transcript")},
)
TTS_DATA = RecordKind(_SPAN | {"input_text": TEXT, "speed": NUMBER, "pitch": NUMBER}, {"text": Alias("input_text")})
RAW_COMPLETE_AUDIO = RecordKind(
    {
        "audio_duration": NUMBER,
        "audio_uuid": ID,
        "sample_rate": INTEGER,
        "channels": INTEGER,
        "format": TEXT,
        "complete_transcript": TEXT,
        "audio_url": TEXT,
        "timeline": OBJECT,
    },
    {
        # Section 7: traces count milliseconds, the schema seconds.
        "audio_duration_ms": Alias("audio_duration", per=1000),
        "duration_ms": Alias("audio_duration", per=1000),
        "duration": Alias("audio_duration"),
        "audio_sample_rate": Alias("sample_rate"),
        "audio_channels": Alias("channels"),
        "audio_format": Alias("format"),
    },
)

_METRIC: dict[str, ValueKind] = {
    "type": TEXT,
    "label": TEXT,
    "source_label": TEXT,
    "timestamp": EPOCH,
    "request_id": ID,
    "speech_id": ID,
    "metadata": OBJECT,
}
_CONNECTION: dict[str, ValueKind] = {"streamed": BOOLEAN, "acquire_time": NUMBER, "connection_reused": BOOLEAN}
METRICS = {
    "vad_metrics": RecordKind(
        _METRIC
        | {
            "idle_time": NUMBER,
            "inference_duration_total": NUMBER,
            "inference_count": INTEGER,
            "speech_detected": BOOLEAN,
        }
    ),
    "stt_metrics": RecordKind(
        _METRIC
        | _CONNECTION
        | {
            "duration": NUMBER,
            "audio_duration": NUMBER,
            "transcript": TEXT,
            "confidence": NUMBER,
            "input_tokens": INTEGER,
            "output_tokens": INTEGER,
            "total_tokens": INTEGER,
            "input_audio_tokens": INTEGER,
        }
    ),
    "tts_metrics": RecordKind(
        _METRIC
        | _CONNECTION
        | {
            "ttfb": NUMBER,
            "duration": NUMBER,
            "audio_duration": NUMBER,
            "speaking_duration": NUMBER,
            "cancelled": BOOLEAN,
            "characters_count": INTEGER,
            "input_tokens": INTEGER,
            "output_tokens": INTEGER,
            "segment_id": ID,
        }
    ),
    "llm_metrics": RecordKind(
        _METRIC
        | {
            "ttft": NUMBER,
            "duration": NUMBER,
            "cancelled": BOOLEAN,
            "completion_tokens": INTEGER,
            "prompt_tokens": INTEGER,
            "prompt_cached_tokens": INTEGER,
            "cache_creation_tokens": INTEGER,
            "reasoning_tokens": INTEGER,
            "total_tokens": INTEGER,
            "tokens_per_second": NUMBER,
        }
    ),
    "eou_metrics": RecordKind(
        _METRIC
        | {
            "end_of_utterance_delay": NUMBER,
            "transcription_delay": NUMBER,
            "on_user_turn_completed_delay": NUMBER,
            "last_speaking_time": EPOCH,
        }
    ),
}
"""The five component metrics by `type`; a metric of another type is kept as it came."""

STT = PerTurn(STT_DATA)
TTS = PerTurn(TTS_DATA)

ITEM: dict[str, ValueKind] = {
    "user_id": ID,
    "task_id": ID,
    "turn_id": ID,
    "source_trace_id": ID,
    "agent_task": TEXT,
    "input_text": TEXT,
    "agent_response": TEXT,
    "output_text": TEXT,
    "ground_truth": TEXT,
    "novaeval_item_type": ITEM_TYPE,
    "agent_name": TEXT,
    "agent_role": TEXT,
    "system_prompt": TEXT,
    "trace": ListOf(OBJECT),
    "exit_status": TEXT,
    "agent_exit": BOOLEAN,
    "tools_available": ListOf(TOOL_SCHEMA),
    "tool_calls": ListOf(TOOL_CALL),
    "parameters_passed": OBJECT,
    "tool_call_results": ListOf(TOOL_RESULT),
    "expected_tool_call": TOOL_CALL,
    "retrieval_query": Texts(),
    "retrieved_context": ChunksByQuery(),
    "conversation_context": CONVERSATION,
    "speaker": TEXT,
    "message": TEXT,
    "turn_position": INTEGER,
    "context": TextOrObject(),
    "expected_format": TEXT,
    "extracted_content": TEXT,
    "stt_data": STT,
    "tts_data": TTS,
    "raw_complete_audio": RAW_COMPLETE_AUDIO,
    "latency": OBJECT,
    "metadata": OBJECT,
}
"""Every field of an item but `metrics_collected`, whose kind is in `components.py`."""
TWINS = {"agent_task": "input_text", "agent_response": "output_text"}
ALIASES = {
    "trace_data": ("trace",),
    "expected_output": ("ground_truth",),
    "item_type": ("novaeval_item_type",),
    "conversation": ("conversation_context",),
    "question": ("agent_task", "input_text"),
    "query": ("agent_task", "input_text"),
    "answer": ("agent_response", "output_text"),
}
