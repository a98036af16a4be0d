"""How fast logs of other programs are read, against `json.loads` of the same file: spans or messages a second and core.

Generated chats are written as each program writes them. A trace repeats the history in each call of a model, and so
do its spans. CPU time, the least of several rounds: each round times the unit and the work one after the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import convoscope
from benchmarks.chats import chats

Message = dict[str, Any]
_INSTRUCTIONS = "You help customers of a parcel service. " + " ".join(
    f"Rule {number}: look up a parcel before you say where it is, and say what you do not know." for number in range(15)
)


class Made(NamedTuple):
    """A log as text, and how many spans or messages are in it."""

    text: str
    entries: int


def run(folder: Path, count: int, rounds: int = 3) -> None:
    """Print for each format what reading `count` chats, or calls, takes."""
    print(f"reading logs of {count:,} chats, CPU time, against json.loads of the same file")
    for name, (what, make) in FORMATS.items():
        made = make(count)
        path = folder / f"{name}.{'json' if made.text.startswith('[') else 'jsonl'}"
        path.write_text(made.text)
        unit, cost, conversations = _times(path, rounds)
        print(
            f"  {name:<14}{made.entries:>8,} {what:<9}{len(made.text) / 1e6:>6.1f} MB{conversations:>6,} conversations"
            f"{made.entries / cost:>10,.0f} {what} a second{cost:>7.2f} s,{cost / unit:>6.1f} times json.loads"
        )
        path.unlink()
    print()


def _times(path: Path, rounds: int) -> tuple[float, float, int]:
    """The least seconds of `json.loads` and of reading, and how many conversations were read."""
    units, costs, conversations = [], [], 0
    for _ in range(rounds):
        text = path.read_text()
        began = process_time()
        [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)
        units.append(process_time() - began)
        del text
        began = process_time()
        conversations = sum(1 for _ in convoscope.read(path))
        costs.append(process_time() - began)
    return min(units), min(costs), conversations


class ModelCall(NamedTuple):
    """One call of a model in a chat."""

    chat: str
    number: int
    inputs: list[Message]
    output: Message
    at: float

    @property
    def trace(self) -> str:
        return f"{int(self.chat[5:]):032x}"

    @property
    def id(self) -> str:
        return f"{int(self.chat[5:]) * 100 + self.number:016x}"


def _talks(count: int) -> Iterator[tuple[str, list[Message]]]:
    for chat in chats(count):
        messages: Any = chat["messages"]
        yield str(chat["id"]), [{"role": "system", "content": _INSTRUCTIONS}, *messages[1:]]


def _calls(count: int) -> Iterator[ModelCall]:
    for id, messages in _talks(count):
        for number, message in enumerate(messages):
            if message["role"] == "assistant":
                yield ModelCall(id, number, messages[:number], message, message["timestamp"])


def _plain(message: Message) -> Message:
    return {name: value for name, value in message.items() if name != "timestamp"}


def _parts(message: Message) -> Message:
    """A message of OpenTelemetry's newer convention."""
    if message["role"] == "tool":
        part = {"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}
        return {"role": "tool", "parts": [part]}
    parts = [{"type": "text", "content": message["content"]}] if message["content"] else []
    for call in message.get("tool_calls", ()):
        function = call["function"]
        arguments = json.loads(function["arguments"])
        parts.append({"type": "tool_call", "id": call["id"], "name": function["name"], "arguments": arguments})
    return {"role": message["role"], "parts": parts}


def _attributes(values: dict[str, Any]) -> list[Any]:
    return [
        {"key": name, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for name, value in values.items()
    ]


def _otlp(name: str, call: ModelCall, values: dict[str, Any]) -> dict[str, Any]:
    start = int(call.at * 1e9)
    return {
        "traceId": call.trace,
        "spanId": call.id,
        "name": name,
        "kind": 3,
        "startTimeUnixNano": str(start - 900_000_000),
        "endTimeUnixNano": str(start),
        "attributes": _attributes(values),
        "status": {},
    }


def otel(count: int) -> Made:
    """OTLP JSON lines, one batch of spans for each conversation."""
    lines: dict[str, list[Any]] = {}
    for call in _calls(count):
        values = {
            "gen_ai.operation.name": "chat",
            "gen_ai.conversation.id": call.chat,
            "gen_ai.request.model": "model-1",
            "gen_ai.input.messages": json.dumps(list(map(_parts, call.inputs))),
            "gen_ai.output.messages": json.dumps([_parts(call.output)]),
            "gen_ai.usage.input_tokens": 100 * call.number,
            "gen_ai.usage.output_tokens": 20,
        }
        lines.setdefault(call.chat, []).append(_otlp("chat model-1", call, values))
    resource = {"attributes": _attributes({"service.name": "desk"})}
    batches = [
        {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "desk"}, "spans": spans}]}]}
        for spans in lines.values()
    ]
    return Made("".join(json.dumps(batch) + "\n" for batch in batches), sum(map(len, lines.values())))


def openinference(count: int) -> Made:
    """Spans of a console exporter, one a line: each field of each message is an attribute."""
    lines = []
    for call in _calls(count):
        values: dict[str, Any] = {"openinference.span.kind": "LLM", "session.id": call.chat, "llm.model_name": "m-1"}
        values["input.value"] = json.dumps({"messages": list(map(_plain, call.inputs)), "model": "m-1"})
        values["output.value"] = json.dumps({"choices": [{"message": _plain(call.output)}]})
        for side, messages in (("input", call.inputs), ("output", [call.output])):
            for index, message in enumerate(messages):
                _flatten(f"llm.{side}_messages.{index}.message.", message, values)
        values |= {"llm.token_count.prompt": 100 * call.number, "llm.token_count.completion": 20}
        span = {
            "name": "ChatCompletion",
            "context": {"trace_id": f"0x{call.trace}", "span_id": f"0x{call.id}"},
            "start_time": int((call.at - 0.9) * 1e9),
            "end_time": int(call.at * 1e9),
            "attributes": values,
            "status": {"status_code": "OK"},
        }
        lines.append(json.dumps(span) + "\n")
    return Made("".join(lines), len(lines))


def _flatten(prefix: str, message: Message, values: dict[str, Any]) -> None:
    for name in ("role", "content", "tool_call_id"):
        if message.get(name):
            values[prefix + name] = message[name]
    for index, call in enumerate(message.get("tool_calls", ())):
        values[f"{prefix}tool_calls.{index}.tool_call.id"] = call["id"]
        for name, value in call["function"].items():
            values[f"{prefix}tool_calls.{index}.tool_call.function.{name}"] = value


def langfuse(count: int) -> Made:
    """An export of all traces: a list of observations with their inputs and outputs."""
    made: dict[str, dict[str, Any]] = {}
    spans = 0
    for call in _calls(count):
        trace = made.setdefault(call.chat, {"id": call.trace, "sessionId": call.chat, "observations": []})
        trace["observations"].append(
            {
                "id": call.id,
                "traceId": call.trace,
                "type": "GENERATION",
                "name": "reply",
                "startTime": _iso(call.at - 0.9),
                "endTime": _iso(call.at),
                "model": "model-1",
                "input": list(map(_plain, call.inputs)),
                "output": _plain(call.output),
                "usageDetails": {"input": 100 * call.number, "output": 20},
            }
        )
        spans += 1
    return Made(json.dumps(list(made.values())), spans)


def _iso(at: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def chat_messages(count: int) -> Made:
    """OpenAI's chat messages, a chat a line."""
    talks = list(_talks(count))
    lines = [json.dumps({"id": id, "messages": messages}) + "\n" for id, messages in talks]
    return Made("".join(lines), sum(len(messages) for _, messages in talks))


def langchain(count: int) -> Made:
    """Messages of LangChain, a thread a line."""
    kinds = {"system": "system", "user": "human", "assistant": "ai", "tool": "tool"}
    lines, messages = [], 0
    for id, talk in _talks(count):
        written = []
        for message in talk:
            calls = [
                {"name": one["function"]["name"], "args": json.loads(one["function"]["arguments"]), "id": one["id"]}
                for one in message.get("tool_calls", ())
            ]
            data: dict[str, Any] = {
                "content": message["content"] or "",
                "additional_kwargs": {},
                "response_metadata": {},
            }
            data |= {"tool_calls": calls} if calls else {}
            data |= {"tool_call_id": message["tool_call_id"]} if "tool_call_id" in message else {}
            written.append({"type": kinds[message["role"]], "data": data})
        lines.append(json.dumps({"thread_id": id, "messages": written}) + "\n")
        messages += len(written)
    return Made("".join(lines), messages)


def responses(count: int) -> Made:
    """Calls of the Responses API, each with its whole input: one for each chat."""
    lines, items = [], 0
    for id, messages in _talks(count):
        given = [item for message in messages[1:-1] for item in _items(message)]
        output = list(_items(messages[-1]))
        record = {"id": id, "object": "response", "model": "m-1", "instructions": _INSTRUCTIONS}
        lines.append(json.dumps({**record, "input": given, "output": output}) + "\n")
        items += len(given) + len(output)
    return Made("".join(lines), items)


def _items(message: Message) -> Iterator[dict[str, Any]]:
    if message["role"] == "tool":
        yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}
    elif message["content"]:
        kind = "output_text" if message["role"] == "assistant" else "input_text"
        content = [{"type": kind, "text": message["content"]}]
        yield {"type": "message", "role": message["role"], "content": content}
    for call in message.get("tool_calls", ()):
        yield {"type": "function_call", "call_id": call["id"], **call["function"]}


def adk(count: int) -> Made:
    """Sessions of Google's Agent Development Kit, one a line."""
    lines, events = [], 0
    for id, messages in _talks(count):
        written = []
        for number, message in enumerate(messages[1:]):
            parts: list[Any] = (
                [{"text": message["content"]}] if message["role"] != "tool" and message["content"] else []
            )
            for call in message.get("tool_calls", ()):
                function = {"id": call["id"], "name": call["function"]["name"]}
                parts.append({"function_call": {**function, "args": json.loads(call["function"]["arguments"])}})
            if message["role"] == "tool":
                answer = {"result": message["content"]}
                parts = [{"function_response": {"id": message["tool_call_id"], "name": "look_up", "response": answer}}]
            author = "user" if message["role"] == "user" else "desk"
            role = "model" if message["role"] == "assistant" else "user"
            event = {"id": f"{id}-{number}", "invocation_id": f"i-{number}", "author": author}
            written.append({**event, "content": {"parts": parts, "role": role}, "timestamp": 1.76e9 + number})
        lines.append(json.dumps({"id": id, "app_name": "desk", "user_id": "u", "events": written}) + "\n")
        events += len(written)
    return Made("".join(lines), events)


def deepgram(count: int) -> Made:
    """A transcript of a call for each chat, one a line: each word with its times. Words are counted."""
    lines, total = [], 0
    for id, messages in _talks(count):
        words: list[Any] = []
        for message in messages[1:]:
            speaker = 0 if message["role"] == "assistant" else 1
            for word in (message["content"] or "").split():
                start = len(words) * 0.3
                times = {"start": start, "end": start + 0.25, "confidence": 0.99, "speaker": speaker}
                words.append({"word": word.strip(".,?").lower(), **times, "punctuated_word": word})
        text = " ".join(word["punctuated_word"] for word in words)
        channel = {"alternatives": [{"transcript": text, "confidence": 0.98, "words": words}]}
        metadata = {"request_id": id, "created": "2026-03-02T09:00:00.000Z", "duration": len(words) * 0.3}
        lines.append(json.dumps({"metadata": metadata, "results": {"channels": [channel]}}) + "\n")
        total += len(words)
    return Made("".join(lines), total)


FORMATS: dict[str, tuple[str, Callable[[int], Made]]] = {
    "otel-genai": ("spans", otel),
    "openinference": ("spans", openinference),
    "langfuse": ("spans", langfuse),
    "openai-chat": ("messages", chat_messages),
    "responses": ("messages", responses),
    "langchain": ("messages", langchain),
    "google-adk": ("messages", adk),
    "deepgram": ("words", deepgram),
}
