"""Spans of OpenTelemetry as tests write them: OTLP JSON, and messages of the GenAI conventions."""

from __future__ import annotations

import json
from typing import Any

START = 1_772_440_000
"""A moment of the wall clock: 2 March 2026."""


def span(id: str, start: float, end: float, parent: str = "", trace: str = "t1", error: str = "", **more: Any) -> Any:
    """A span of OTLP JSON. `attributes` are by name; objects and lists are written as JSON."""
    attributes = more.pop("attributes", {})
    return {
        "traceId": trace,
        "spanId": id,
        "parentSpanId": parent,
        "name": more.pop("name", id),
        "startTimeUnixNano": str(round((START + start) * 1e3) * 10**6),
        "endTimeUnixNano": str(round((START + end) * 1e3) * 10**6),
        "attributes": [{"key": name, "value": _typed(value)} for name, value in attributes.items()],
        "status": {"code": 2, "message": error} if error else {},
        **more,
    }


def _typed(value: Any) -> dict[str, Any]:
    if isinstance(value, dict | list):
        return {"stringValue": json.dumps(value)}
    if isinstance(value, bool):
        return {"boolValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def otlp(*spans: Any) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]}


def says(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def calls(name: str, id: str, **arguments: Any) -> dict[str, Any]:
    return {"role": "assistant", "parts": [{"type": "tool_call", "id": id, "name": name, "arguments": arguments}]}


def answers(id: str, response: Any) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": id, "response": response}]}


def model(id: str, start: float, end: float, inputs: list[Any], output: Any, parent: str = "", **more: Any) -> Any:
    """A call of a model."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "small",
        "gen_ai.input.messages": inputs,
        "gen_ai.output.messages": [output] if output else [],
    }
    return span(id, start, end, parent, attributes=attributes | more.pop("attributes", {}), **more)


def tool(id: str, start: float, end: float, name: str, parent: str = "", **more: Any) -> Any:
    """A tool that ran."""
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    return span(id, start, end, parent, attributes=attributes | more.pop("attributes", {}), **more)
