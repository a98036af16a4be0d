"""Messages, tokens and tools in the attributes and events of spans, by the GenAI conventions of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convoscope.ingest.kits.shapes import embedded, is_message, plain_messages
from convoscope.ingest.kits.spans import LoggedSpan, SpanEvent, unflattened
from convoscope.ingest.kits.trace_steps import ToolRun
from convoscope.ingest.kits.traces import with_result_message
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text

USAGE = {
    "prompt_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens"),
    "completion_tokens": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.usage.completion_tokens",
    ),
    "total_tokens": ("gen_ai.usage.total_tokens", "llm.usage.total_tokens"),
    "cost": ("gen_ai.usage.cost", "operation.cost", "gen_ai.cost"),
    "ttft": ("gen_ai.response.time_to_first_chunk", "gen_ai.server.time_to_first_token"),
}
_EVENT_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


def tool_run(span: LoggedSpan) -> ToolRun:
    """A tool that ran, by any generation of its attributes."""
    given = span.first("gen_ai.tool.call.arguments", "traceloop.entity.input", "tool_arguments", "input.value", "input")
    result = span.first("gen_ai.tool.call.result", "traceloop.entity.output", "tool_response", "output.value", "output")
    for event in span.events:  # Strands: what the tool was given is an event, too
        if event.name == "gen_ai.tool.message" and given is None:
            given = embedded(event.attributes.get("content"))
        elif event.name == "gen_ai.choice" and result is None:
            result = embedded(event.attributes.get("message"))
    wrapped = as_object(given)
    if "input_str" in wrapped:  # LangChain's callbacks
        given = wrapped.get("inputs") or embedded(wrapped["input_str"])
    if "output" in as_object(result) and as_object(result).keys() <= {"output", "kwargs"}:
        result = as_object(result)["output"]
    run = ToolRun(
        name=span.text("gen_ai.tool.name", "traceloop.entity.name", "tool.name") or span.name,
        call_id=span.text("gen_ai.tool.call.id"),
        arguments=given,
        result=result,
        error=span.error or span.text("error.type") or ("the tool failed" if _failed(span) else ""),
    )
    return run if run.call_id else with_result_message(run)


def _failed(span: LoggedSpan) -> bool:
    return span.text("gen_ai.tool.status", "gen_ai.task.status") in ("error", "failure")


def sent(span: LoggedSpan) -> list[JsonObject]:
    """The messages that a model was sent."""
    instructions = span.first("gen_ai.system_instructions")
    if isinstance(instructions, list):  # parts of one message
        instructions = {"role": "system", "parts": instructions}
    messages = plain_messages(instructions, "system") if instructions else []
    given = span.first("gen_ai.input.messages", "gen_ai.prompt", "pydantic_ai.all_messages")
    flat = unflattened(span.attributes, "gen_ai.prompt") if given is None else []
    # Some early instrumentations name the text by its role.
    flat = [{"role": "user", "content": as_object(entry).get("user"), **as_object(entry)} for entry in flat]
    messages += plain_messages(given if given is not None else flat)
    if not messages or all(entry["role"] == "system" for entry in messages):
        messages += _from_events(span, outputs=False)
    return messages


def answered(span: LoggedSpan) -> list[JsonObject]:
    """The messages that a model answered with."""
    given = span.first("gen_ai.output.messages", "gen_ai.completion")
    flat = unflattened(span.attributes, "gen_ai.completion")
    messages = plain_messages(
        given if given is not None else [_flat_answer(as_object(entry)) for entry in flat], "assistant"
    )
    return messages or _from_events(span, outputs=True)


def _flat_answer(entry: JsonObject) -> JsonObject:
    """A message of an answer. Traceloop lists thoughts as a message of their own."""
    if entry.get("role") == "thinking":
        return {"role": "assistant", "content": [{"type": "thinking", "thinking": entry.get("content")}]}
    return {"role": "assistant", **entry}


def _from_events(span: LoggedSpan, *, outputs: bool) -> list[JsonObject]:
    """Messages of the generation that logs each as an event of the span."""
    messages: list[JsonObject] = []
    for event in (*span.events, *_events_attribute(span, outputs=outputs)):
        bodies = ("event_body", "body", "gen_ai.event.content")
        held_in = next((event.attributes[name] for name in bodies if event.attributes.get(name)), None)
        body: Any = embedded(held_in) or event.attributes
        if event.name == "gen_ai.choice" and outputs:
            held = embedded(as_object(body).get("message", body))
            held = {"content": held} if isinstance(held, str | list) else held
            messages += plain_messages({"content": None, **as_object(held), "role": "assistant"}, "assistant")
        elif event.name == "gen_ai.client.inference.operation.details":
            name = "gen_ai.output.messages" if outputs else "gen_ai.input.messages"
            messages += plain_messages(event.attributes.get(name), "assistant" if outputs else "user")
        elif event.name in ("gen_ai.content.prompt", "gen_ai.content.completion"):
            if outputs == event.name.endswith("completion"):
                name = "gen_ai.completion" if outputs else "gen_ai.prompt"
                messages += plain_messages(event.attributes.get(name), "assistant" if outputs else "user")
        elif (role := _EVENT_ROLES.get(event.name)) and not outputs:
            value = {"content": None, **as_object(body), "role": role}
            messages += plain_messages(value, role) if is_message(value) else []
    return messages


def _events_attribute(span: LoggedSpan, *, outputs: bool) -> Iterator[SpanEvent]:
    """Events as a list in an attribute, where the answer is the last message of the assistant."""
    listed = [as_object(entry) for entry in as_list(span.first("events", "all_messages_events", "gen_ai.events"))]
    names = [as_text(entry.get("event.name")) for entry in listed]
    for index, (name, entry) in enumerate(zip(names, listed, strict=True)):
        is_answer = name == "gen_ai.choice" or (name == "gen_ai.assistant.message" and index == len(names) - 1)
        if is_answer == outputs:
            yield SpanEvent("gen_ai.choice" if outputs else name, entry)
