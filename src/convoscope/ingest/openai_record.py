"""What the two OpenAI shapes have in common: content parts, ids, what stands beside the messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from convoscope.conversation import Agent, Conversation, Expected, ExpectedToolCall, Outcome, Source, Tool
from convoscope.ingest.building import Timeline, dimensions
from convoscope.ingest.reader import Group
from convoscope.ingest.report import Notes

CONVERSATION_IDS = ("conversation_id", "session_id", "thread_id", "call_id", "chat_id")
_RECORD_IDS = (*CONVERSATION_IDS, "id", "custom_id", "uuid")
_TRUTHS = ("ground_truth", "expected_output", "expected_answer", "ideal", "reference", "target", "expected")
_TOOLS = ("tools", "functions")
_CONSUMED = frozenset(
    {*_RECORD_IDS, *_TRUTHS, *_TOOLS, "model", "metadata", "object", "expected_tool_calls", "agent_name", "error"}
)
# Fields of the API that say nothing about the conversation: kept in extras, and no surprise.
_USUAL = frozenset(
    {"created", "created_at", "usage", "status", "choices", "request", "response", "body", "temperature", "top_p"}
    | {"tool_choice", "parallel_tool_calls", "max_tokens", "max_output_tokens", "system_fingerprint", "service_tier"}
    | {"previous_response_id", "stream", "store", "user", "text", "reasoning", "truncation", "incomplete_details"}
)
MAX_EMBEDDED = 1024


class Content(NamedTuple):
    """The text of a message, and its parts that are not text."""

    text: str
    parts: list[Any]


def content_of(content: Any, notes: Notes, seq: int) -> Content:
    """Text of a string or of a list of parts; sound and pictures are described, not copied."""
    if isinstance(content, str):
        return Content(content, [])
    if content is None:
        return Content("", [])
    texts: list[str] = []
    parts: list[Any] = []
    for part in content if isinstance(content, list) else [content]:
        text = part if isinstance(part, str) else _text_of(part)
        if text is not None:
            texts.append(text)
        else:
            parts.append(_without_payload(part, notes, seq))
    return Content("\n".join(texts), parts)


def _text_of(part: Any) -> str | None:
    if isinstance(part, dict):
        for key in ("text", "refusal", "transcript"):
            if isinstance(part.get(key), str):
                return str(part[key])
    return None


def _without_payload(part: Any, notes: Notes, seq: int) -> Any:
    if isinstance(part, str) and len(part) > MAX_EMBEDDED:
        notes.ignored("embedded_data", f"{len(part)} characters", seq)
        return f"({len(part)} characters left out)"
    if isinstance(part, dict):
        return {key: _without_payload(value, notes, seq) for key, value in part.items()}
    return part


def first_of(record: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The first of these fields that has a value."""
    for name in names:
        value = record.get(name)
        if value is not None and value != "":
            return value
    return None


def id_of(record: Mapping[str, Any]) -> str | None:
    """The id that a record brings, as text."""
    found = first_of(record, _RECORD_IDS)
    if found is None and isinstance(record.get("metadata"), dict):
        found = first_of(record["metadata"], CONVERSATION_IDS)
    return str(found) if isinstance(found, str | int) else None


def put_together(
    record: Mapping[str, Any],
    *,
    timeline: Timeline,
    instructions: str,
    id: str,
    format: str,
    group: Group,
    notes: Notes,
) -> Conversation:
    """The conversation of a record: its timeline, and what stands beside the messages."""
    metadata = record.get("metadata")
    dims = dimensions(record, metadata)
    model = first_of(record, ("model",)) or _inner(record, "model")
    if isinstance(model, str):
        dims.setdefault("model", model)
    tools = first_of(record, _TOOLS)
    if tools is None:
        tools = next((inner for name in _TOOLS if (inner := _inner(record, name)) is not None), None)
    extras = {key: value for key, value in record.items() if key not in _CONSUMED and key not in dims}
    for key in extras:
        if key not in _USUAL:
            notes.unknown(f"record.{key}")
    if metadata:
        extras["metadata"] = metadata
    error = record.get("error")
    return Conversation(
        id=id,
        dimensions=dims,
        source=Source(format=format, files=(group.path.name,), record=group.name),
        pipeline="text",
        participants=timeline.participants,
        clocks=timeline.clocks,
        agent=Agent(
            name=dims.get("agent", ""),
            instructions=instructions,
            tools=None if tools is None else tuple(_tool(one) for one in tools if isinstance(one, dict)),
            models={"llm": model} if isinstance(model, str) else {},
        ),
        expected=_expected(record, metadata, notes),
        timeline=tuple(timeline.events),
        outcome=Outcome(error="" if not error else str(error)),
        extras=extras,
    )


def _inner(record: Mapping[str, Any], name: str) -> Any:
    """A field of the request or response that a record wraps."""
    for envelope in ("request", "response", "body"):
        inner = record.get(envelope)
        if isinstance(inner, dict) and inner.get(name) is not None:
            return inner[name]
    return None


def _tool(tool: Mapping[str, Any]) -> Tool:
    function = tool.get("function")
    facts = function if isinstance(function, dict) else tool
    return Tool(
        name=str(facts.get("name") or tool.get("type") or ""),
        description=str(facts.get("description") or ""),
        arguments_schema=facts.get("parameters"),
    )


def _expected(record: Mapping[str, Any], metadata: Any, notes: Notes) -> Expected:
    truth = first_of(record, _TRUTHS)
    if truth is None and isinstance(metadata, dict):
        truth = first_of(metadata, ("ground_truth",))
    extras: dict[str, Any] = {}
    if isinstance(truth, list) and truth and all(isinstance(one, str) for one in truth):
        if len(truth) > 1:
            notes.ignored("further_ground_truths", f"{len(truth) - 1} more")
            extras["ground_truths"] = truth
        truth = truth[0]
    if truth is not None and not isinstance(truth, str):
        extras["ground_truth"] = truth
        notes.ignored("ground_truth_not_text", type(truth).__name__)
        truth = None
    calls = record.get("expected_tool_calls")
    return Expected(
        ground_truth=truth,
        tool_calls=tuple(_expected_call(one) for one in calls if isinstance(one, dict))
        if isinstance(calls, list)
        else None,
        extras=extras,
    )


def _expected_call(call: Mapping[str, Any]) -> ExpectedToolCall:
    function = call.get("function")
    facts = function if isinstance(function, dict) else call
    return ExpectedToolCall(name=str(facts.get("name") or ""), arguments=facts.get("arguments"))
