"""Spans of LiveKit Agents: turns of the user, answers of the model, tools; their attributes begin with `lk.`."""

from __future__ import annotations

from collections.abc import Sequence

from convoscope.ingest.kits.shapes import plain_messages
from convoscope.ingest.kits.spans import LoggedSpan
from convoscope.ingest.kits.trace_steps import Logged, LoggedCall, ToolRun
from convoscope.ingest.record import as_list, as_number, as_object

PREFIX = "lk."
CUT_OFF = "convoscope.cut_off"
"""Marks a span below a turn of the agent that the user interrupted."""


def is_livekit(span: LoggedSpan) -> bool:
    return any(name.startswith(PREFIX) for name in span.attributes)


def livekit_step(span: LoggedSpan, logged: Logged | None) -> Logged | None:
    """What a span logs; `logged` is what its attributes of the general conventions say."""
    tool = span.text(*_names("function_tool.name"))
    if tool:
        failed = span.attributes.get("lk.function_tool.is_error") is True
        return ToolRun(
            name=tool,
            call_id=span.text(*_names("function_tool.id")),
            arguments=span.first(*_names("function_tool.args")),
            result=span.first(*_names("function_tool.output")),
            error=span.error or (span.text(*_names("function_tool.output")) or "the tool failed" if failed else ""),
        )
    heard = span.text(*_names("user_transcript"))
    if heard:
        return LoggedCall(inputs=plain_messages(heard, "user"), is_spoken=True, is_measured=False)
    if not isinstance(logged, LoggedCall):
        return logged
    if not logged.inputs:
        logged.inputs = plain_messages(as_list(as_object(span.first(*_names("chat_ctx"))).get("items")))
    if not logged.outputs:
        calls = plain_messages(as_list(span.first(*_names("response.function_calls"))), "assistant")
        logged.outputs = [*plain_messages(span.text(*_names("response.text")), "assistant"), *calls]
    first = as_number(span.first("lk.response.ttft"))
    if first is not None and first >= 0:  # -1 says that there was no word
        logged.usage = {**logged.usage, "ttft": first}
    logged.is_cut_off = bool(span.attributes.get(CUT_OFF))
    return logged


def mark_interrupted(spans: Sequence[LoggedSpan]) -> None:
    """Mark the spans below a turn of the agent that was interrupted."""
    parents = {span.id: span for span in spans if span.id}
    for span in spans:
        above, seen = parents.get(span.parent), {span.id}
        while above is not None and above.id not in seen:
            seen.add(above.id)
            if above.attributes.get("lk.interrupted") is True:
                span.attributes[CUT_OFF] = True
            above = parents.get(above.parent)


def _names(name: str) -> tuple[str, str]:
    """An attribute, and the same where it is marked as personal data."""
    return f"{PREFIX}{name}", f"{PREFIX}pii.{name}"
