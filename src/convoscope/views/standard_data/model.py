"""`StandardData`: the evaluation item, field for field as the published schema has it.

Everything is optional, and keys that the schema does not know are kept. An item is tidied before it is
validated, so that no payload is refused: see `tidy.py` for what is put right, and `warnings` for what was not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import CoreModeRef, CoreRef, DefsRef, GenerateJsonSchema

from convoscope.views.standard_data.shapes import METRICS, STT, TTS, TWINS
from convoscope.views.standard_data.tidy import tidy
from convoscope.views.standard_data.values import Warned

# Models lie at most so deep in a payload: item, conversation, turns, turn.
_MODELS_LIE = 4


class _Open(BaseModel):  # noqa: PLW1641 (what can be changed has no hash)
    """A model that keeps the keys it does not know. Null and absent are the same."""

    model_config = ConfigDict(extra="allow")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, _Open):
            return NotImplemented
        return self.__dict__ == other.__dict__ and self._others() == other._others()

    def _others(self) -> dict[str, Any]:
        return {key: value for key, value in (self.__pydantic_extra__ or {}).items() if value is not None}


class _PublishedNames(GenerateJsonSchema):
    """Our classes say in their names that they are of this schema; in the schema itself they do not."""

    def get_defs_ref(self, core_mode_ref: CoreModeRef) -> DefsRef:
        core_ref, mode = core_mode_ref
        return super().get_defs_ref((CoreRef(core_ref.replace(".Standard", ".")), mode))


class ToolSchema(_Open):
    """A tool that the agent had."""

    name: str | None = None
    description: str | None = None
    args_schema: dict[str, Any] | None = None
    return_schema: dict[str, Any] | None = None


class StandardToolCall(_Open):
    """A call that was made, or should have been."""

    model_config = ConfigDict(title="ToolCall")

    tool_name: str | None = None
    parameters: dict[str, Any] | None = None
    call_id: str | None = None


class StandardToolResult(_Open):
    """What a call gave back."""

    model_config = ConfigDict(title="ToolResult")

    call_id: str | None = None
    result: Any = None
    success: bool | None = None
    error_message: str | None = None


class ConversationTurn(_Open):
    """One thing that somebody said."""

    speaker: str | None = None
    message: str | None = None
    timestamp: str | None = None
    metadata: dict[str, Any] | None = None


class StandardConversation(_Open):
    """What was said before."""

    model_config = ConfigDict(title="Conversation")

    turns: list[ConversationTurn] | None = None
    context: str | None = None
    topic: str | None = None
    metadata: dict[str, Any] | None = None


class _Span(_Open):
    """What is one object or a map by turn: without a key of the schema in it, it would be read as such a map."""

    @model_serializer(mode="wrap")
    def _told_from_a_map(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        if written and type(self).model_fields.keys().isdisjoint(written):
            written["provider"] = None
        return written


class STTData(_Span):
    """Speech that was transcribed."""

    provider: str | None = None
    model: str | None = None
    transcript: str | None = None
    confidence: float | None = None
    is_final: bool | None = None
    mode: str | None = None
    event_type: str | None = None
    audio_duration_ms: float | None = None
    language: str | None = None
    audio_url: str | None = None
    span_start_time: str | None = None
    span_end_time: str | None = None
    span_duration_ms: float | None = None
    audio_uuid: str | None = None
    raw_audio_uuid: str | None = None


class TTSData(_Span):
    """Text that was spoken."""

    provider: str | None = None
    model: str | None = None
    input_text: str | None = None
    audio_duration_ms: float | None = None
    audio_url: str | None = None
    span_start_time: str | None = None
    span_end_time: str | None = None
    span_duration_ms: float | None = None
    speed: float | None = None
    pitch: float | None = None
    audio_uuid: str | None = None


class RawCompleteAudio(_Open):
    """The recording of the whole session; `audio_duration` in seconds."""

    audio_duration: float | None = None
    audio_uuid: str | None = None
    sample_rate: int | None = None
    channels: int | None = None
    format: str | None = None
    complete_transcript: str | None = None
    audio_url: str | None = None
    timeline: dict[str, Any] | None = None


class _Metrics(_Open):
    """What every component metric has. `label` is the turn's key where metrics came by turn, and `source_label`
    then the plugin's name; else `label` is what the source says."""

    label: str | None = None
    source_label: str | None = None
    timestamp: float | None = None
    request_id: str | None = None
    speech_id: str | None = None
    metadata: dict[str, Any] | None = None


class VADMetrics(_Metrics):
    """Voice activity detection."""

    type: Literal["vad_metrics"] = "vad_metrics"
    idle_time: float | None = None
    inference_duration_total: float | None = None
    inference_count: int | None = None
    speech_detected: bool | None = None


class STTMetrics(_Metrics):
    """Speech to text."""

    type: Literal["stt_metrics"] = "stt_metrics"
    duration: float | None = None
    audio_duration: float | None = None
    transcript: str | None = None
    confidence: float | None = None
    streamed: bool | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    input_audio_tokens: int | None = None
    acquire_time: float | None = None
    connection_reused: bool | None = None


class TTSMetrics(_Metrics):
    """Text to speech."""

    type: Literal["tts_metrics"] = "tts_metrics"
    ttfb: float | None = None
    duration: float | None = None
    audio_duration: float | None = None
    speaking_duration: float | None = None
    cancelled: bool | None = None
    characters_count: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    streamed: bool | None = None
    acquire_time: float | None = None
    connection_reused: bool | None = None
    segment_id: str | None = None


class LLMMetrics(_Metrics):
    """The language model."""

    type: Literal["llm_metrics"] = "llm_metrics"
    ttft: float | None = None
    duration: float | None = None
    cancelled: bool | None = None
    completion_tokens: int | None = None
    prompt_tokens: int | None = None
    prompt_cached_tokens: int | None = None
    cache_creation_tokens: int | None = None
    reasoning_tokens: int | None = None
    total_tokens: int | None = None
    tokens_per_second: float | None = None


class EOUMetrics(_Metrics):
    """The end of an utterance."""

    type: Literal["eou_metrics"] = "eou_metrics"
    end_of_utterance_delay: float | None = None
    transcription_delay: float | None = None
    on_user_turn_completed_delay: float | None = None
    last_speaking_time: float | None = None


def _stt_tag(value: Any) -> str:
    return "map" if isinstance(value, Mapping) and not STT.is_single(value) else "one"


def _tts_tag(value: Any) -> str:
    return "map" if isinstance(value, Mapping) and not TTS.is_single(value) else "one"


def _metric_tag(value: Any) -> str:
    tag = value.get("type") if isinstance(value, Mapping) else getattr(value, "type", None)
    return tag if isinstance(tag, str) and tag in METRICS else "other"


AnyMetrics = Annotated[
    Annotated[VADMetrics, Tag("vad_metrics")]
    | Annotated[STTMetrics, Tag("stt_metrics")]
    | Annotated[TTSMetrics, Tag("tts_metrics")]
    | Annotated[LLMMetrics, Tag("llm_metrics")]
    | Annotated[EOUMetrics, Tag("eou_metrics")]
    | Annotated[dict[str, Any], Tag("other")],
    Discriminator(_metric_tag),
]
STTByTurn = Annotated[
    Annotated[STTData, Tag("one")] | Annotated[dict[str, STTData], Tag("map")], Discriminator(_stt_tag)
]
TTSByTurn = Annotated[
    Annotated[TTSData, Tag("one")] | Annotated[dict[str, TTSData], Tag("map")], Discriminator(_tts_tag)
]


class StandardData(_Open):
    """One item to evaluate. Any payload makes one; what could not be used is null, and in `warnings`.

    Items are equal where their fields and their unknown keys are.

    >>> item = StandardData(question="Where is it?", user_id=7, colour="red")
    >>> item.agent_task, item.input_text, item.user_id, item.unknown
    ('Where is it?', 'Where is it?', '7', {'colour': 'red'})
    """

    user_id: str | None = None
    task_id: str | None = None
    turn_id: str | None = None
    source_trace_id: str | None = None

    agent_task: str | None = None
    input_text: str | None = None
    agent_response: str | None = None
    output_text: str | None = None
    ground_truth: str | None = None
    novaeval_item_type: Literal["agent", "conversational"] | None = None

    agent_name: str | None = None
    agent_role: str | None = None
    system_prompt: str | None = None
    trace: list[dict[str, Any]] | None = None
    exit_status: str | None = None
    agent_exit: bool | None = None

    tools_available: list[ToolSchema] | None = None
    tool_calls: list[StandardToolCall] | None = None
    parameters_passed: dict[str, Any] | None = None
    tool_call_results: list[StandardToolResult] | None = None
    expected_tool_call: StandardToolCall | None = None

    retrieval_query: list[str] | None = None
    retrieved_context: list[list[str]] | None = None

    conversation_context: StandardConversation | None = None
    speaker: str | None = None
    message: str | None = None
    turn_position: int | None = None
    context: str | dict[str, Any] | None = None

    expected_format: str | None = None
    extracted_content: str | None = None

    stt_data: STTByTurn | None = None
    tts_data: TTSByTurn | None = None
    raw_complete_audio: RawCompleteAudio | None = None
    latency: dict[str, Any] | None = None

    metrics_collected: list[AnyMetrics] | None = None

    metadata: dict[str, Any] | None = None

    _warnings: tuple[Warned, ...] = PrivateAttr(default=())

    @property
    def warnings(self) -> tuple[Warned, ...]:
        """What was set aside or looked odd when the item was made."""
        return self._warnings

    @property
    def unknown(self) -> dict[str, Any]:
        """The keys that the schema does not know, as they came."""
        return dict(self.__pydantic_extra__ or {})

    @classmethod
    def model_json_schema(cls, *arguments: Any, **options: Any) -> dict[str, Any]:
        """The JSON Schema, with the names of the published one."""
        return super().model_json_schema(*arguments, **{"schema_generator": _PublishedNames, **options})

    @model_validator(mode="wrap")
    @classmethod
    def _tidied(cls, payload: Any, handler: ModelWrapValidatorHandler[StandardData]) -> StandardData:
        if isinstance(payload, cls):
            return payload
        tidied = tidy(_builtins(payload))
        given = {**tidied.unknown, **tidied.fields}
        for name, twin in TWINS.items():
            if name in given:
                given.setdefault(twin, given[name])
        item = handler(given)
        item._warnings = tuple(tidied.warnings)
        return item


def _builtins(value: Any, depth: int = _MODELS_LIE) -> Any:
    """Models inside of a payload as the objects they stand for."""
    if isinstance(value, BaseModel):
        return {key: _builtins(one, depth) for key, one in value}
    if depth and isinstance(value, list | tuple):
        return [_builtins(one, depth - 1) for one in value]
    if depth and isinstance(value, Mapping):
        return {key: _builtins(one, depth - 1) for key, one in value.items()}
    return value
