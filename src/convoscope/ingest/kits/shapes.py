"""Messages in the shapes of many programs, brought into one: `{"role", "content": [blocks]}`.

The blocks are those of Anthropic's Messages API, which keep the order of what is said, called and answered: `text`,
`tool_use`, `tool_result`, `thinking`. `kits.messages.add_message` puts such a message into a timeline.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from convoscope.ingest.io.json import BadJson, decode, parsed
from convoscope.ingest.record import ROLES, JsonObject, as_list, as_object, as_text, filled, is_role

UNKNOWN_ROLE = "unknown"
_LANGCHAIN = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "chat": "",
    "remove": "",
}
_LANGCHAIN_CLASSES = {
    f"{kind.capitalize() if kind != 'ai' else 'AI'}Message{chunk}": kind
    for kind in _LANGCHAIN
    for chunk in ("", "Chunk")
}
_PAIRED = ("system", "user", "human", "assistant", "ai")
_RESPONSES_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "mcp_call": "arguments"}
HOSTED_INPUTS = ("action", "operation", "queries", "code", "arguments", "input")
"""Where calls of tools that the service knows hold what is asked: `web_search_call`, `computer_call`, `shell_call`."""
HOSTED_RESULTS = ("results", "outputs", "result")
_LISTS = ("messages", "contents", "conversation", "history", "chat_history", "items", "input", "data")
"""Where an object holds a list of messages."""
_SYSTEMS = ("system", "instructions", "systemInstruction", "system_instruction")
_SAID = {
    "user": ("input", "inputs", "question", "query", "prompt", "user_input", "task", "text", "message"),
    "assistant": ("output", "outputs", "answer", "response", "result", "final_output", "text", "message", "content"),
}
"""Where the input and the output of a program hold what was asked and answered."""
_TURN = re.compile(r"^(system|developer|user|human|assistant|ai|tool): ?", re.M)
_encode = msgspec.json.Encoder(order="deterministic").encode


def plain_messages(value: Any, role: str = "user") -> list[JsonObject]:
    """The messages of a value, whatever its shape. A text without a role is said by `role`.

    >>> plain_messages([{"role": "model", "parts": [{"text": "Hi"}, {"functionCall": {"name": "f", "args": {}}}]}])
    [{'role': 'assistant', 'content': [{'type': 'text', 'text': 'Hi'}, {'type': 'tool_use', 'name': 'f', 'input': {}}]}]
    >>> plain_messages('[{"type": "human", "content": "Hello"}]')
    [{'role': 'user', 'content': [{'type': 'text', 'text': 'Hello'}]}]
    """
    value = embedded(value)
    if isinstance(value, str):
        return [{"role": role, "content": [_text_block(value)]}] if value.strip() else []
    if isinstance(value, list):
        if value and all(isinstance(entry, list) for entry in value) and not any(map(_is_pair, value)):
            value = value[0]  # LangChain: one list for each prompt of a batch
        if value and all(isinstance(entry, str) for entry in value) and by_prefix(value[0]):
            return [message for entry in value for message in by_prefix(entry) or plain_messages(entry, role)]
        value = [{"role": entry[0], "content": entry[1]} if _is_pair(entry) else entry for entry in value]
        matched = [message for entry in value for message in plain_messages(entry, role)]
        return _one_reply(matched) if role == "assistant" else matched
    if not isinstance(value, dict):
        return []
    held = next((value[name] for name in _LISTS if _holds_messages(embedded(value.get(name)))), None)
    if held is not None and not is_message(value):
        return [*instructions_in(value), *plain_messages(held, role)]
    message = _plain(value, role)
    return [message] if message is not None else []


def instructions_in(request: JsonObject) -> list[JsonObject]:
    """The instructions of a request to a model, as messages: a text, parts, or a content with parts."""
    inner = as_object(request.get("config"))  # Google's SDK
    held = next((one[name] for one in (request, inner) for name in _SYSTEMS if one.get(name)), None)
    parts = as_object(held).get("parts", held)
    return plain_messages([{"role": "system", "content": parts}] if isinstance(parts, list) else parts, "system")


def said_in(value: Any, role: str, depth: int = 0) -> list[JsonObject]:
    """What was asked or answered, of the input or the output of any program: messages, a text, or a field with these.

    >>> said_in({"question": "When?", "k": 4}, "user")
    [{'role': 'user', 'content': [{'type': 'text', 'text': 'When?'}]}]
    """
    value = embedded(value)
    matched = plain_messages(value, role)
    if matched or not isinstance(value, dict) or depth > 2:
        return matched
    inner = next((value[name] for name in _SAID[role] if value.get(name)), None)
    return said_in(inner, role, depth + 1) if inner is not None else []


def by_prefix(text: str) -> list[JsonObject]:
    """Messages that are written one after the other, each behind its role; nothing where a text is not so.

    >>> [(message["role"], message["content"][0]["text"]) for message in by_prefix("user: When?\\nassistant: At nine.")]
    [('user', 'When?'), ('assistant', 'At nine.')]
    """
    starts = list(_TURN.finditer(text))
    if not starts or starts[0].start():
        return []
    ends = [*(entry.start() for entry in starts[1:]), len(text)]
    matched = [(entry[1], text[entry.end() : end].strip()) for entry, end in zip(starts, ends, strict=True)]
    return [
        message
        for role, words in matched
        if words not in ("", "None")
        for message in plain_messages({"role": role, "content": words})
    ]


def _is_pair(value: Any) -> bool:
    """Whether a list is a message as LangChain takes it: a role and a text."""
    return isinstance(value, list) and len(value) == 2 and value[0] in _PAIRED and isinstance(value[1], str)


def is_message(value: Any) -> bool:
    """Whether an object is one message in a shape that is known."""
    return isinstance(value, dict) and any(test(value) for test, _ in _SHAPES)


def _holds_messages(value: Any) -> bool:
    if isinstance(value, list) and value and isinstance(value[0], list) and not _is_pair(value[0]):
        value = value[0]
    if isinstance(value, list) and value and all(isinstance(entry, str) for entry in value):
        return bool(by_prefix(value[0]))
    return isinstance(value, list) and any(is_message(entry) or _is_pair(entry) for entry in value)


def embedded(value: Any) -> Any:
    """A value that is written as JSON inside a text, even twice; other values as they are.

    >>> embedded('"{\\\\"a\\\\": 1}"'), embedded("{no JSON"), embedded("12")
    ({'a': 1}, '{no JSON', '12')
    """
    if not isinstance(value, str) or value[:1].isalnum():  # most texts begin with a letter
        return value
    if value.startswith(('"{', '"[')):
        with suppress(BadJson):
            value = decode(value.encode("utf-8", "replace")).value
    return parsed(value)


def joined_text(content: Any) -> Any:
    """The text of a list of parts that are nothing but text; any other content as it is.

    >>> joined_text([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), joined_text([{"type": "image"}])
    ('a\\nb', [{'type': 'image'}])
    """
    texts = [as_text(part.get("text")) for part in as_list(content) if as_object(part).get("type") == "text"]
    return "\n".join(texts) if texts and len(texts) == len(content) else content


def signature(message: JsonObject) -> str:
    """What a plain message says, calls and answers; ids, thoughts and blanks do not matter."""
    parts: list[Any] = []
    for block in message["content"]:
        if block["type"] == "text":
            parts.append(" ".join(str(block.get("text", "")).split()))
        elif block["type"] == "tool_use":
            parts.append([block.get("name"), embedded(block.get("input"))])
        elif block["type"] == "tool_result":
            parts.append(["result", block.get("tool_use_id", ""), _text_of(block.get("content"))])
    return _encode([message["role"], parts]).decode()


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(as_text(as_object(part).get("text", "")) or _encode(part).decode() for part in content)
    return content if isinstance(content, str) else _encode(content).decode()


def _plain(value: JsonObject, role: str) -> JsonObject | None:
    for test, convert in _SHAPES:
        if test(value):
            message = convert(value)
            named = as_text(message.get("role")).casefold()
            message["role"] = ROLES.get(named) or (role if not named else UNKNOWN_ROLE)
            if message["role"] == UNKNOWN_ROLE and named != UNKNOWN_ROLE:
                message["name"] = message.get("name") or named
            return message if message["content"] else None
    return None


def _one_reply(messages: list[JsonObject]) -> list[JsonObject]:
    """The items of one reply, which some APIs list apart, as one message."""
    joined: list[JsonObject] = []
    for message in messages:
        if (
            joined
            and message["role"] == joined[-1]["role"] == "assistant"
            and message.get("name") == joined[-1].get("name")
        ):
            joined[-1] = {**joined[-1], "content": [*joined[-1]["content"], *message["content"]]}
        else:
            joined.append(message)
    return joined


def _text_block(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _thought(text: Any) -> JsonObject:
    return {"type": "thinking", "thinking": text}


def _called(name: Any, arguments: Any, id: Any = None) -> JsonObject:
    return {"type": "tool_use", **filled({"id": as_text(id), "name": as_text(name)}), "input": embedded(arguments)}


def _answered(content: Any, id: Any = None, name: Any = None, *, is_error: bool | None = None) -> JsonObject:
    block = {"type": "tool_result", **filled({"tool_use_id": as_text(id), "name": as_text(name)}), "content": content}
    return block if is_error is None else {**block, "is_error": is_error}


def _blocks_of(content: Any) -> list[JsonObject]:
    """The blocks of a content: a text, a part, or a list of parts in any dialect."""
    if isinstance(content, str):
        parts = embedded(content) if content.startswith("[{") else None
        if not isinstance(parts, list) or not all(_is_part(part) for part in parts):
            return [_text_block(content)] if content else []
        content = parts  # attributes of spans hold texts only
    if isinstance(content, dict):
        content = [content]
    return [block for part in as_list(content) for block in _block(part)]


def _is_part(value: Any) -> bool:
    """Whether an object is a part of a message, and nothing but that: a user may write JSON, too."""
    part = as_object(value)
    usual = {"type", "text", "citations", "cache_control", "annotations"}
    is_text = isinstance(part.get("text"), str) and part.get("type", "text") == "text" and part.keys() <= usual
    return is_text or part.keys() in ({"toolUse"}, {"toolResult"}) or part.get("type") in ("tool_use", "tool_result")


def _block(part: Any) -> Iterator[JsonObject]:
    if isinstance(part, str):
        yield _text_block(part)
    elif isinstance(part, dict):
        for test, convert in _PARTS:
            if test(part):
                yield from convert(part)
                return
        yield part if isinstance(part.get("type"), str) else {"type": "unknown", **part}


def _kind(*kinds: str) -> Callable[[JsonObject], bool]:
    return lambda part: part.get("type") in kinds


def _has(*names: str) -> Callable[[JsonObject], bool]:
    return lambda part: any(name in part for name in names)


def _otel_text(part: JsonObject) -> Iterator[JsonObject]:
    names = ("text", "refusal", "transcript", "content", "output")
    text = next((part[name] for name in names if part.get(name)), "")
    if isinstance(text, str) and text:
        yield _text_block(text)
    elif isinstance(text, dict):  # OpenAI's assistants: {"text": {"value": …}}
        yield _text_block(as_text(text.get("value")))


def _thinking(part: JsonObject) -> Iterator[JsonObject]:
    text = next((part[name] for name in ("thinking", "text", "content", "reasoning", "data") if part.get(name)), None)
    if text:
        yield _thought(text)


def _bedrock_thinking(part: JsonObject) -> Iterator[JsonObject]:
    yield from _thinking(as_object(as_object(part["reasoningContent"]).get("reasoningText")))


def _call_part(part: JsonObject) -> Iterator[JsonObject]:
    inner = as_object(part.get("function")) or as_object(part.get("toolUse")) or part
    name = next((inner[key] for key in ("name", "toolName", "tool_name", "function") if inner.get(key)), "")
    arguments = next((inner[key] for key in ("arguments", "input", "args", "params") if key in inner), None)
    ids = ("id", "toolCallId", "tool_call_id", "call_id", "toolUseId")
    id = next((entry[key] for entry in (part, inner) for key in ids if entry.get(key)), "")
    yield _called(name, arguments, id)
    if "tool_type" in part and (part.get("result") or part.get("error")):  # Inspect: a tool that the service ran
        yield _answered(part.get("error") or part["result"], id, name, is_error=bool(part.get("error")))


def _result_part(part: JsonObject) -> Iterator[JsonObject]:
    inner = as_object(part.get("toolResult")) or part
    content = next((inner[key] for key in ("response", "result", "output", "content", "error") if key in inner), None)
    failed: bool | None = next(
        (inner[key] for key in ("is_error", "isError") if isinstance(inner.get(key), bool)), None
    )
    kind = as_text(as_object(content).get("type"))
    if inner.get("status") == "error" or part.get("type") == "tool-error" or kind.endswith("_tool_result_error"):
        failed = True
    if isinstance(content, dict) and set(content) <= {"type", "value", "reason"} and "type" in content:  # Vercel
        failed = True if str(content["type"]).startswith("error") else failed
        content = content.get("value", content.get("reason"))
    ids = ("id", "toolCallId", "tool_call_id", "tool_use_id", "toolUseId", "call_id")
    id = next((inner[key] for key in ids if inner.get(key)), "")
    name = next((inner[key] for key in ("name", "toolName", "tool_name") if inner.get(key)), "")
    yield _answered(content, id, name, is_error=failed)


def _ui_call(part: JsonObject) -> Iterator[JsonObject]:
    """A tool of a chat interface: one part is the call, and its result once it is there."""
    inner = as_object(part.get("toolInvocation")) or part
    name = as_text(inner.get("toolName")) or as_text(part["type"]).removeprefix("tool-")
    yield _called(name, inner.get("input", inner.get("args", inner.get("rawInput"))), inner.get("toolCallId"))
    failed = inner.get("errorText")
    answer = next((inner[key] for key in ("output", "result") if inner.get(key) is not None), None)
    if failed or answer is not None:
        yield _answered(failed or answer, inner.get("toolCallId"), name, is_error=bool(failed) or None)


def _is_ui_call(part: JsonObject) -> bool:
    kind = as_text(part.get("type"))
    return "toolCallId" in part and (kind == "dynamic-tool" or (kind.startswith("tool-") and "state" in part))


def has_tools_of_interface(parts: Any) -> bool:
    """Whether a message is one of a chat interface, of the Vercel AI SDK, and holds more than text."""
    kinds = ("step-start", "tool-invocation", "reasoning")
    listed = [as_object(part) for part in as_list(parts)]
    return any(_is_ui_call(part) or part.get("type") in kinds for part in listed)


def _gemini_call(part: JsonObject) -> Iterator[JsonObject]:
    call = as_object(part.get("functionCall", part.get("function_call")))
    yield _called(call.get("name"), call.get("args"), call.get("id"))


def _gemini_result(part: JsonObject) -> Iterator[JsonObject]:
    answer = as_object(part.get("functionResponse", part.get("function_response")))
    yield _answered(answer.get("response"), answer.get("id"), answer.get("name"))


def _gemini_code(part: JsonObject) -> Iterator[JsonObject]:
    """Code that the service wrote and ran itself."""
    code = as_object(part.get("executableCode", part.get("executable_code")))
    answer = as_object(part.get("codeExecutionResult", part.get("code_execution_result")))
    if code:
        yield _called("code_execution", code)
    if answer:
        yield _answered(answer.get("output"), name="code_execution", is_error=answer.get("outcome") != "OUTCOME_OK")


def _gemini_text(part: JsonObject) -> Iterator[JsonObject]:
    if isinstance(part.get("text"), dict):  # OpenAI's assistants
        yield from _otel_text(part)
    elif isinstance(part.get("text"), str) and part["text"]:
        yield _thought(part["text"]) if part.get("thought") is True else _text_block(part["text"])


def _openinference_part(part: JsonObject) -> Iterator[JsonObject]:
    inner = as_object(part["message_content"])
    text = inner.get("text", as_object(inner.get("audio")).get("transcript"))
    if isinstance(text, str):
        yield _text_block(text)
    elif inner:
        yield {"type": str(inner.get("type", "unknown")), **inner}


def _haystack_call(part: JsonObject) -> Iterator[JsonObject]:
    yield from _call_part(part["tool_call"])


def _haystack_result(part: JsonObject) -> Iterator[JsonObject]:
    answer, origin = part["tool_call_result"], as_object(part["tool_call_result"].get("origin"))
    failed = answer.get("error")
    yield _answered(
        answer.get("result"),
        origin.get("id"),
        origin.get("tool_name"),
        is_error=failed if isinstance(failed, bool) else None,
    )


_PARTS: Sequence[tuple[Callable[[JsonObject], bool], Callable[[JsonObject], Iterator[JsonObject]]]] = (
    (_is_ui_call, _ui_call),
    (_kind("tool-invocation"), _ui_call),
    (_kind("step-start"), lambda _: iter(())),
    (_kind("tool_call", "tool-call", "tool_use", "server_tool_use", "mcp_tool_use", "function"), _call_part),
    (_kind("tool_call_response", "tool-result", "tool-error", "function_response"), _result_part),
    (lambda part: as_text(part.get("type")).endswith("tool_result"), _result_part),  # also of tools of the service
    (_kind("reasoning", "thinking", "redacted_thinking", "reasoning_content", "redacted-reasoning"), _thinking),
    (_kind("text", "input_text", "output_text", "refusal", "input", "output"), _otel_text),
    (lambda part: part.get("type") in ("input_audio", "output_audio", "audio") and "transcript" in part, _otel_text),
    (_has("toolUse"), _call_part),
    (_has("toolResult"), _result_part),
    (
        _has("reasoningContent"),
        lambda part: _thinking(as_object(as_object(part["reasoningContent"]).get("reasoningText"))),
    ),
    (_has("functionCall", "function_call"), _gemini_call),
    (_has("functionResponse", "function_response"), _gemini_result),
    (_has("executableCode", "executable_code", "codeExecutionResult", "code_execution_result"), _gemini_code),
    (_has("message_content"), _openinference_part),
    (lambda part: "type" not in part and isinstance(part.get("tool_call"), dict), _haystack_call),
    (lambda part: "type" not in part and isinstance(part.get("tool_call_result"), dict), _haystack_result),
    (lambda part: "text" in part and "type" not in part, _gemini_text),  # also LlamaIndex's blocks
)
"""What a part of a message is, by its type or its fields, and its blocks. The first that fits counts."""


def _kept(value: JsonObject, *names: str) -> JsonObject:
    """Fields of a message that its plain form keeps under the same name."""
    return filled({name: value.get(name) for name in ("id", "name", "timestamp", "created_at", *names)})


def _langchain(value: JsonObject) -> JsonObject:
    fields = value
    kind = as_text(value.get("type"))
    if isinstance(value.get("kwargs"), dict):
        fields, kind = value["kwargs"], _LANGCHAIN_CLASSES.get(str((as_list(value.get("id")) or [""])[-1]), "")
    elif isinstance(value.get("data"), dict):
        fields = value["data"]
    kind = _LANGCHAIN_CLASSES.get(kind, kind)
    more = as_object(fields.get("additional_kwargs"))
    if kind in ("tool", "function"):
        failed = {"error": True, "success": False}.get(as_text(fields.get("status")))
        answer = _answered(fields.get("content"), fields.get("tool_call_id"), fields.get("name"), is_error=failed)
        return {"role": "tool", **filled({"id": fields.get("id")}), "content": [answer]}
    blocks = _blocks_of(fields.get("content"))
    if not any(block["type"] == "tool_use" for block in blocks):
        blocks += [
            _called(entry.get("name"), entry.get("args"), entry.get("id"))
            for entry in map(as_object, as_list(fields.get("tool_calls")))
        ]
    if not any(block["type"] == "tool_use" for block in blocks):
        blocks += [block for call in as_list(more.get("tool_calls")) for block in _call_part(as_object(call))]
    return {"role": _LANGCHAIN.get(kind) or fields.get("role", ""), **_kept(fields), "content": blocks}


def is_langchain(value: JsonObject) -> bool:
    """Whether an object is a message of LangChain: serialised, as a dictionary, or with its type."""
    if isinstance(value.get("kwargs"), dict) and isinstance(value.get("id"), list):
        return str((value["id"] or [""])[-1]) in _LANGCHAIN_CLASSES
    kind = value.get("type")
    kind = _LANGCHAIN_CLASSES.get(kind, kind) if isinstance(kind, str) else ""
    return (
        kind in _LANGCHAIN
        and ("content" in value or "content" in as_object(value.get("data")))
        and not is_role(value.get("role"))
    )


def hosted_input(item: JsonObject) -> Any:
    """What is asked of a tool that the service knows: an object, or a text under its name."""
    name = next((name for name in HOSTED_INPUTS if item.get(name)), "")
    asked = embedded(item.get(name))
    return {name: asked} if isinstance(asked, str) else asked


def _responses(value: JsonObject) -> JsonObject:
    kind = value["type"]
    if kind in _RESPONSES_CALLS:
        blocks = [
            _called(value.get("name"), value.get(_RESPONSES_CALLS[kind]), value.get("call_id") or value.get("id"))
        ]
        if kind == "mcp_call" and ("output" in value or "error" in value):
            failed = bool(value.get("error"))
            id = value.get("call_id") or value.get("id")
            blocks.append(_answered(value.get("output") or value.get("error"), id, is_error=failed))
        return {"role": "assistant", "content": blocks}
    if kind.endswith("_call"):
        asked = hosted_input(value)
        id = value.get("call_id") or value.get("id")
        blocks = [_called(kind.removesuffix("_call"), asked, id)]
        answer = next((value[name] for name in HOSTED_RESULTS if value.get(name)), None)
        if answer is not None:
            blocks.append(_answered(answer, id, kind.removesuffix("_call")))
        return {"role": "assistant", "content": blocks}
    if kind == "reasoning":
        return {"role": "assistant", "content": [_thought(value.get("summary") or value.get("content") or "(hidden)")]}
    is_error = True if value.get("status") == "failed" else None
    return {"role": "tool", "content": [_answered(value.get("output"), value.get("call_id"), is_error=is_error)]}


def _is_responses(value: JsonObject) -> bool:
    kind = value.get("type")
    if not isinstance(kind, str) or "role" in value or "content" in value:
        return kind == "reasoning" and "role" not in value
    is_hosted = kind.endswith("_call") and kind != "tool_call" and ("id" in value or "call_id" in value)
    return kind in _RESPONSES_CALLS or kind == "reasoning" or is_hosted or kind.endswith("_call_output")


def _openai(value: JsonObject) -> JsonObject:
    if value.get("role") in ("tool", "function") and not _has_result_parts(value.get("content")):
        answer = _answered(value.get("content"), value.get("tool_call_id") or value.get("id"), value.get("name"))
        return {"role": "tool", "content": [answer]}
    blocks = _blocks_of(value.get("content") or value.get("blocks"))
    if isinstance(value.get("refusal"), str) and value["refusal"]:
        blocks.append(_text_block(value["refusal"]))
    thought = value.get("reasoning_content")
    if isinstance(thought, str) and thought:
        blocks.insert(0, _thought(thought))
    audio = as_object(value.get("audio")).get("transcript")
    if isinstance(audio, str) and audio and not blocks:
        blocks.append(_text_block(audio))
    more = as_list(as_object(value.get("additional_kwargs")).get("tool_calls"))  # LangChain, in OpenAI's shape
    for call in as_list(value.get("tool_calls")) or more:
        blocks += _call_part(as_object(as_object(call).get("tool_call")) or as_object(call))
    if isinstance(value.get("function_call"), dict):
        blocks += _call_part(value["function_call"])
    if value.get("function_call_name"):  # OpenInference, of functions before tools
        blocks.append(_called(value["function_call_name"], value.get("function_call_arguments_json")))
    return {"role": value.get("role"), **_kept(value), "content": blocks}


def _has_result_parts(content: Any) -> bool:
    kinds = ("tool-result", "tool_result", "tool_call_response")
    return isinstance(content, list) and any(
        as_object(part).get("type") in kinds or "toolResult" in as_object(part) for part in content
    )


def _openinference(value: JsonObject) -> JsonObject:
    inner = dict(as_object(value["message"]))
    if "contents" in inner and not inner.get("content"):
        inner["content"] = inner.pop("contents")
    return _openai(inner)


def _parts(value: JsonObject) -> JsonObject:
    return {"role": value.get("role"), **_kept(value), "content": _blocks_of(value["parts"])}


_SHAPES: Sequence[tuple[Callable[[JsonObject], bool], Callable[[JsonObject], JsonObject]]] = (
    (
        lambda value: (
            isinstance(value.get("message"), dict) and ("role" in value["message"] or "tool_calls" in value["message"])
        ),
        _openinference,
    ),
    (lambda value: isinstance(value.get("parts"), list), _parts),
    (_is_responses, _responses),
    (is_langchain, _langchain),
    (
        lambda value: (
            isinstance(value.get("role"), str)
            and any(name in value for name in ("content", "tool_calls", "audio", "function_call_name", "blocks"))
        ),
        _openai,
    ),
)
"""The shapes of a message, and its plain form, but for the role as the model names it. The first that fits counts."""


def unflattened(attributes: Mapping[str, Any], prefix: str) -> list[Any]:
    """The list that attributes hold under a prefix, one attribute for each value: `prefix.0.role`, `prefix.0.content`.

    >>> unflattened({"p.0.role": "user", "p.1.role": "assistant", "p.1.calls.0.name": "f"}, "p")
    [{'role': 'user'}, {'role': 'assistant', 'calls': [{'name': 'f'}]}]
    """
    tree: JsonObject = {}
    for name, value in attributes.items():
        if not name.startswith(f"{prefix}."):
            continue
        node, *rest = tree, *name[len(prefix) + 1 :].split(".")
        for key in rest[:-1]:
            inner = node.setdefault(key, {})
            node = inner if isinstance(inner, dict) else node
        node[rest[-1]] = value
    listed = _as_lists(tree)
    return listed if isinstance(listed, list) else [listed] if listed else []


def _as_lists(node: Any) -> Any:
    """Objects whose keys are all numbers, as lists in the order of the numbers."""
    if not isinstance(node, dict):
        return node
    if node and all(key.isdecimal() for key in node):
        return [_as_lists(node[key]) for key in sorted(node, key=int)]
    return {key: _as_lists(value) for key, value in node.items()}


__all__ = ["UNKNOWN_ROLE", "by_prefix", "embedded", "instructions_in", "is_message", "joined_text", "plain_messages"]
__all__ += ["HOSTED_INPUTS", "HOSTED_RESULTS", "has_tools_of_interface", "hosted_input", "said_in", "signature"]
__all__ += ["unflattened"]
