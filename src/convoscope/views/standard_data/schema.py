"""The schema of an evaluation item, declared once: each field with its type and its kind, and its other names.

Here the classes are records: `SchemaRecord.kind` coerces payloads without Pydantic. `model.py` makes Pydantic models of
the same names of them when one is asked for; type checkers see these classes as the models.
"""
# Annotations are evaluated here, since the kinds are read from them: no `from __future__ import annotations`.

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from convoscope.views.standard_data.containers import (
    CHUNK,
    OBJECT,
    ChunksByQuery,
    ListOf,
    PerTurn,
    RecordKind,
    TextOrObject,
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
    Warned,
    Warnings,
)

if TYPE_CHECKING:
    from pydantic import BaseModel
else:
    BaseModel = object

Text = Annotated[str | None, TEXT]
Id = Annotated[str | None, ID]
TimeText = Annotated[str | None, TIME]
Number = Annotated[float | None, NUMBER]
Epoch = Annotated[float | None, EPOCH]
Integer = Annotated[int | None, INTEGER]
Boolean = Annotated[bool | None, BOOLEAN]
Object = Annotated[dict[str, Any] | None, OBJECT]


class SchemaRecord(BaseModel):
    """A record of the schema. Everything is optional."""

    kind: ClassVar[RecordKind]

    def __init_subclass__(cls, **options: Any) -> None:
        cls.kind = RecordKind({name: hint.__metadata__[0] for name, hint in hints_of(cls).items()}, **options)


def hints_of(record: type[SchemaRecord]) -> dict[str, Any]:
    """The annotations of the fields, in their order; what is not annotated with a kind is not a field."""
    return {
        name: hint
        for owner in reversed(record.__mro__)
        for name, hint in vars(owner).get("__annotations__", {}).items()
        if hasattr(hint, "__metadata__")
    }


class ToolSchema(
    SchemaRecord,
    inside="function",
    aliases={
        "parameters": "args_schema",
        "input_schema": "args_schema",
        "inputSchema": "args_schema",
        "output_schema": "return_schema",
    },
):
    """A tool that the agent had."""

    name: Text = None
    description: Text = None
    args_schema: Object = None
    return_schema: Object = None


class StandardToolCall(
    SchemaRecord,
    inside="function",
    aliases={
        "name": "tool_name",
        "arguments": "parameters",
        "args": "parameters",
        "input": "parameters",
        "id": "call_id",
        "tool_call_id": "call_id",
    },
    # A call that names no id is as good as one that does (section 1.2).
    default={"call_id": ""},
):
    """A call that was made, or should have been."""

    tool_name: Text = None
    parameters: Object = None
    call_id: Id = None


class StandardToolResult(
    SchemaRecord,
    aliases={
        "tool_call_id": "call_id",
        "tool_use_id": "call_id",
        "id": "call_id",
        "output": "result",
        "content": "result",
        "error": "error_message",
    },
):
    """What a call returned."""

    call_id: Id = None
    result: Annotated[Any, ANY] = None
    success: Boolean = None
    error_message: Text = None


class ConversationTurn(SchemaRecord, aliases={"role": "speaker", "content": "message", "text": "message"}):
    """One thing that a speaker said."""

    speaker: Text = None
    message: Text = None
    timestamp: TimeText = None
    metadata: Object = None


def _of_turns(turns: list[Any]) -> dict[str, Any] | None:
    """A bare list is the turns of a conversation, unless it holds the one conversation itself."""
    alone = turns[0] if len(turns) == 1 else None
    if isinstance(alone, str) or (isinstance(alone, dict) and ("turns" in alone or "messages" in alone)):
        return None
    return {"turns": turns}


class StandardConversation(SchemaRecord, aliases={"messages": "turns"}, listed=_of_turns):
    """What was said before."""

    turns: Annotated[list[ConversationTurn] | None, ListOf(ConversationTurn.kind)] = None
    context: Text = None
    topic: Text = None
    metadata: Object = None


class STTData(SchemaRecord, aliases={"text": "transcript"}):
    """Speech that was transcribed."""

    provider: Text = None
    model: Text = None
    transcript: Text = None
    confidence: Number = None
    is_final: Boolean = None
    mode: Text = None
    event_type: Text = None
    audio_duration_ms: Number = None
    language: Text = None
    audio_url: Text = None
    span_start_time: TimeText = None
    span_end_time: TimeText = None
    span_duration_ms: Number = None
    audio_uuid: Id = None
    raw_audio_uuid: Id = None


class TTSData(SchemaRecord, aliases={"text": "input_text"}):
    """Text that was spoken."""

    provider: Text = None
    model: Text = None
    input_text: Text = None
    audio_duration_ms: Number = None
    audio_url: Text = None
    span_start_time: TimeText = None
    span_end_time: TimeText = None
    span_duration_ms: Number = None
    speed: Number = None
    pitch: Number = None
    audio_uuid: Id = None


class RawCompleteAudio(
    SchemaRecord,
    aliases={
        "audio_duration_ms": "audio_duration",
        "duration_ms": "audio_duration",
        "duration": "audio_duration",
        "audio_sample_rate": "sample_rate",
        "audio_channels": "channels",
        "audio_format": "format",
    },
    # Section 7: traces count milliseconds, the schema seconds.
    milliseconds=("audio_duration_ms", "duration_ms"),
):
    """The recording of the whole session; `audio_duration` in seconds."""

    audio_duration: Number = None
    audio_uuid: Id = None
    sample_rate: Integer = None
    channels: Integer = None
    format: Text = None
    complete_transcript: Text = None
    audio_url: Text = None
    timeline: Object = None


class ComponentMetrics(SchemaRecord):
    """What every component metric has. `label` is the turn's key where metrics came by turn, and `source_label`
    then the plugin's name; else `label` is what the source says."""

    label: Text = None
    source_label: Text = None
    timestamp: Epoch = None
    request_id: Id = None
    speech_id: Id = None
    metadata: Object = None


class VADMetrics(ComponentMetrics):
    """Voice activity detection."""

    type: Annotated[Literal["vad_metrics"], TEXT] = "vad_metrics"
    idle_time: Number = None
    inference_duration_total: Number = None
    inference_count: Integer = None
    speech_detected: Boolean = None


class STTMetrics(ComponentMetrics):
    """Speech to text."""

    type: Annotated[Literal["stt_metrics"], TEXT] = "stt_metrics"
    duration: Number = None
    audio_duration: Number = None
    transcript: Text = None
    confidence: Number = None
    streamed: Boolean = None
    input_tokens: Integer = None
    output_tokens: Integer = None
    total_tokens: Integer = None
    input_audio_tokens: Integer = None
    acquire_time: Number = None
    connection_reused: Boolean = None


class TTSMetrics(ComponentMetrics):
    """Text to speech."""

    type: Annotated[Literal["tts_metrics"], TEXT] = "tts_metrics"
    ttfb: Number = None
    duration: Number = None
    audio_duration: Number = None
    speaking_duration: Number = None
    cancelled: Boolean = None
    characters_count: Integer = None
    input_tokens: Integer = None
    output_tokens: Integer = None
    streamed: Boolean = None
    acquire_time: Number = None
    connection_reused: Boolean = None
    segment_id: Id = None


class LLMMetrics(ComponentMetrics):
    """The language model."""

    type: Annotated[Literal["llm_metrics"], TEXT] = "llm_metrics"
    ttft: Number = None
    duration: Number = None
    cancelled: Boolean = None
    completion_tokens: Integer = None
    prompt_tokens: Integer = None
    prompt_cached_tokens: Integer = None
    cache_creation_tokens: Integer = None
    reasoning_tokens: Integer = None
    total_tokens: Integer = None
    tokens_per_second: Number = None


class EOUMetrics(ComponentMetrics):
    """The end of an utterance."""

    type: Annotated[Literal["eou_metrics"], TEXT] = "eou_metrics"
    end_of_utterance_delay: Number = None
    transcription_delay: Number = None
    on_user_turn_completed_delay: Number = None
    last_speaking_time: Epoch = None


METRIC_RECORDS = (VADMetrics, STTMetrics, TTSMetrics, LLMMetrics, EOUMetrics)
METRICS = {record.type: record.kind for record in METRIC_RECORDS}
"""The five component metrics by `type`; a metric of another type is kept as it came."""
STT, TTS = PerTurn(STTData.kind), PerTurn(TTSData.kind)
AnyMetrics = VADMetrics | STTMetrics | TTSMetrics | LLMMetrics | EOUMetrics | dict[str, Any]


class MetricList(ValueKind):
    """Component metrics, each with its `type`; those of a type that the schema does not have stay as they came."""

    def is_valid(self, value: Any) -> bool:
        if type(value) is not list:
            return False
        for metric in value:
            shape = METRICS.get(metric["type"]) if type(metric) is dict and type(metric.get("type")) is str else None
            # A key that is not of the schema may be another framework's name for one that is.
            if shape is None or not shape.is_valid(metric) or any(key not in shape.fields for key in metric):
                return False
        return True

    def coerce(self, value: Any, path: str, warnings: Warnings, type: str = "") -> list[dict[str, Any]] | None:
        from convoscope.views.standard_data.payloads.metrics_collected import component_metrics

        warned = len(warnings)
        read = component_metrics(value, type)
        warnings.extend(notice._replace(path=path + notice.path) for notice in read.warnings)
        result = []
        for index, metric in enumerate(read.metrics):
            shape = METRICS.get(metric.get("type", ""), OBJECT)
            if shape.is_valid(metric):
                result.append(metric)
            elif (coerced := shape.coerce(metric, f"{path}[{index}]", warnings)) is not None:
                result.append(coerced)
        return result if result or len(warnings) == warned else None

    def unknown(self, value: Any) -> Iterator[str]:
        from convoscope.views.standard_data.payloads.fields import OF_FRAMEWORKS

        for metric in value:
            if (shape := METRICS.get(metric.get("type", ""))) is not None:
                yield from (f"[]{name}" for name in shape.unknown(metric) if name[1:] not in OF_FRAMEWORKS)


COMPONENT_METRICS = MetricList()


class StandardData(SchemaRecord):
    """One item to evaluate. Any payload makes one; what could not be used is null, and in `warnings`.

    Items are equal where their fields and their unknown keys are.

    >>> from convoscope import StandardData
    >>> item = StandardData(question="Where is it?", user_id=7, colour="red")
    >>> item.agent_task, item.input_text, item.user_id, item.unknown
    ('Where is it?', 'Where is it?', '7', {'colour': 'red'})
    """

    user_id: Id = None
    task_id: Id = None
    turn_id: Id = None
    source_trace_id: Id = None

    agent_task: Text = None
    input_text: Text = None
    agent_response: Text = None
    output_text: Text = None
    ground_truth: Text = None
    novaeval_item_type: Annotated[Literal["agent", "conversational"] | None, ITEM_TYPE] = None

    agent_name: Text = None
    agent_role: Text = None
    system_prompt: Text = None
    trace: Annotated[list[dict[str, Any]] | None, ListOf(OBJECT)] = None
    exit_status: Text = None
    agent_exit: Boolean = None

    tools_available: Annotated[list[ToolSchema] | None, ListOf(ToolSchema.kind)] = None
    tool_calls: Annotated[list[StandardToolCall] | None, ListOf(StandardToolCall.kind)] = None
    parameters_passed: Object = None
    tool_call_results: Annotated[list[StandardToolResult] | None, ListOf(StandardToolResult.kind)] = None
    expected_tool_call: Annotated[StandardToolCall | None, StandardToolCall.kind] = None

    retrieval_query: Annotated[list[str] | None, ListOf(TEXT, may_be_text=True)] = None
    retrieved_context: Annotated[list[list[str]] | None, ChunksByQuery(ListOf(CHUNK))] = None

    conversation_context: Annotated[StandardConversation | None, StandardConversation.kind] = None
    speaker: Text = None
    message: Text = None
    turn_position: Integer = None
    context: Annotated[str | dict[str, Any] | None, TextOrObject()] = None

    expected_format: Text = None
    extracted_content: Text = None

    stt_data: Annotated[STTData | dict[str, STTData] | None, STT] = None
    tts_data: Annotated[TTSData | dict[str, TTSData] | None, TTS] = None
    raw_complete_audio: Annotated[RawCompleteAudio | None, RawCompleteAudio.kind] = None
    latency: Object = None

    metrics_collected: Annotated[list[AnyMetrics] | None, COMPONENT_METRICS] = None

    metadata: Object = None

    if TYPE_CHECKING:
        _warnings: tuple[Warned, ...]

        @property
        def warnings(self) -> tuple[Warned, ...]:
            """What was set aside or looked odd when the item was made."""

        @property
        def unknown(self) -> dict[str, Any]:
            """The keys that the schema does not know, as they came."""


FIELDS = StandardData.kind.fields
"""Every field of an item with its kind."""
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
RECORDS = (
    *(ToolSchema, StandardToolCall, StandardToolResult, ConversationTurn, StandardConversation),
    *(STTData, TTSData, RawCompleteAudio, *METRIC_RECORDS, StandardData),
)
"""Every record, those inside of others first."""
