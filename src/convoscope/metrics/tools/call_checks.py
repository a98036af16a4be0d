"""Whether a call fits its tool: arguments against the schema, and results that blame the call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from convoscope.conversation import Conversation, Json, Tool, ToolResult
from convoscope.text.json_schema import Fault, PlainObject, plain_object
from convoscope.text.patterns import lazy_pattern
from convoscope.views.result_fields import EMPTY, ToolOutcome

Answer = Literal["worked", "rejected", "world", "undecided"]

# Arguments against the schema of the tool


class CallableTool(NamedTuple):
    """What the arguments of a call of a tool are held to."""

    schema: dict[str, Any] | None
    """None where nothing is known."""
    plain: PlainObject | None
    """By which most calls are seen to fit at once, where the schema is that simple."""

    @classmethod
    def of(cls, arguments: Json) -> CallableTool:
        schema = arguments_schema(arguments)
        return cls(schema, None if schema is None else plain_object(schema))


class CallableTools:
    """The tools that an agent had, by name; each is made ready when it is first called."""

    def __init__(self, listed: Sequence[Tool]) -> None:
        self.listed = listed
        self._schemas = {tool.name: tool.arguments_schema for tool in listed}
        self._ready: dict[str, CallableTool] = {}

    def get(self, name: str) -> CallableTool | None:
        tool = self._ready.get(name)
        if tool is None and name in self._schemas:
            tool = self._ready[name] = CallableTool.of(self._schemas[name])
        return tool


def tools_of(conversation: Conversation) -> CallableTools:
    """The tools of the conversation's agent, made ready once for all conversations that share the list."""
    listed = conversation.agent.tools or ()
    cached = _READY.by_list.get(id(listed))
    if cached is None or cached.listed is not listed:
        if len(_READY.by_list) >= _MOST_READY:
            _READY.by_list.clear()
        cached = _READY.by_list[id(listed)] = CallableTools(listed)
    return cached


class _Ready:
    """What is kept at hand. An object, so that what it holds at a time is no part of what a metric computes with."""

    def __init__(self) -> None:
        self.by_list: dict[int, CallableTools] = {}
        """By the id of the list, which stays its own as long as the list is held here."""


_MOST_READY = 16
_READY = _Ready()


def arguments_schema(arguments: Json) -> dict[str, Any] | None:
    """The arguments of a tool as JSON Schema, lists of parameters included; None where nothing is known."""
    if isinstance(arguments, dict):
        if {"required_parameters", "optional_parameters"} & set(arguments):
            required, optional = (
                _list(arguments.get("required_parameters")),
                _list(arguments.get("optional_parameters")),
            )
            return _parameters([(one, True) for one in required] + [(one, False) for one in optional])
        if {"type", "properties", "required", "anyOf", "oneOf", "allOf", "$ref"} & set(arguments):
            return arguments
        if arguments and all(isinstance(one, dict) for one in arguments.values()):
            return _parameters([({"name": name, **one}, one.get("required")) for name, one in arguments.items()])
    if isinstance(arguments, list | tuple) and all(isinstance(one, dict) and one.get("name") for one in arguments):
        return _parameters([(one, one.get("required")) for one in arguments])
    return None


def _parameters(parameters: Iterable[tuple[Json, object]]) -> dict[str, Any]:
    """JSON Schema of a list of parameters; such a list is complete."""
    properties: dict[str, Any] = {}
    names: list[str] = []
    for parameter, required in parameters:
        fields = parameter if isinstance(parameter, dict) else {"name": parameter}
        name = str(fields.get("name", ""))
        properties[name] = {key: value for key, value in fields.items() if key != "required" or isinstance(value, list)}
        if required is True:
            names.append(name)
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def bad_argument(fault: Fault) -> str:
    """What is wrong with an argument, in the words of a call."""
    problem = "there is no such argument" if fault.kind == "unknown" else fault.problem
    return f"{fault.at or 'arguments'}: {problem}"


def unlisted(arguments: Json, schema: dict[str, Any]) -> list[str]:
    """Arguments that a schema which lists some, and is open for others, does not list."""
    listed = _properties(schema)
    if not isinstance(arguments, dict) or not listed or schema.get("additionalProperties") is False:
        return []
    return [name for name in arguments if name not in listed]


def _properties(schema: dict[str, Any]) -> dict[str, Json]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


# Errors that blame the call, and answers that merely say no
#
# By words, because every system has error types of its own. The first of these lists that has a word
# of the error's type decides, then that of its message.

_PART = r"(?:parameter|param|argument|arg|kwarg|keyword|field|property|attribute|input|value|format)s?"
_FAULT = (
    r"(?:missing|required|invalid|unknown|unrecogni[sz]ed|unexpected|unsupported|bad|illegal|incorrect|wrong|extra"
    r"|empty|undefined|not (?:found|allowed|permitted|recogni[sz]ed|supported|valid|provided|specified))"
)
_CALLEE = r"(?:tool|function|method|command)s?"
_CALL_FOR_SURE = lazy_pattern(
    rf"\b(?:{_FAULT} (?:\w+ ){{0,2}}?{_PART}|{_PART} (?:\w+ ){{0,2}}?{_FAULT}"
    rf"|(?:unknown|invalid|undefined|unsupported|no such) (?:\w+ )?{_CALLEE}"
    rf"|{_CALLEE} (?:\w+ ){{0,2}}?(?:not found|unknown|does not exist)"
    r"|malformed|schema|bad request|unprocessable|out of range|not a valid|type error|value error|validation|syntax"
    r"|must be (?:one of|an?|of type|in the format|formatted|between|provided|specified)|expected (?:type|one of|an?)"
    r"|(?:does not|doesn t) match (?:the )?(?:expected |required )?(?:pattern|format|schema|regex|type))\b"
)
_WORLD_FOR_SURE = lazy_pattern(
    r"\b(?:not found|no (?:\w+ ){1,3}found|none found|no results?|no match(?:es|ing)?|no such"
    r"|(?:does not|doesn t|did not|do not) (?:exist|match)|mismatch(?:ed)?|unavailable|not available|no availability"
    r"|sold out|out of stock|declined|denied|timeout|timed out|internal|server error|rate limit|too many|quota"
    r"|permissions?|forbidden|unauthori[sz]ed|not authori[sz]ed|authenticat\w+|authori[sz]ation|credentials?|login"
    r"|password|passcode|pin|otp|verification|token|session|expired|(?:in)?eligib\w+|not eligible|already|duplicate"
    r"|conflict|insufficient|exceed\w*|transition|current (?:state|status)|invalid state)\b"
)
_CALL = re.compile(
    r"\b(?:invalid|missing|unknown(?! (?:error|reason|failure|exception))|unrecogni[sz]ed|unsupported|illegal"
    r"|not (?:recogni[sz]ed|supported|valid)|parameters?|arguments?|format)\b"
)
_WORLD = re.compile(
    r"\b(?:polic(?:y|ies)|not allowed|not permitted|prohibited|restricted|blocked|locked|suspended|closed|approval"
    r"|deadline|too (?:late|early)|try again)\b"
)
_TYPE_KEYS = ("error_type", "error_code", "errorType", "errorCode", "code", "type", "reason")
_TEXT_KEYS = ("message", "error_message", "error", "detail", "details", "description", "msg", "title", "errors")
_NUMBER_KEYS = ("status_code", "http_status", "statusCode", "code", "error_code", "status")
# HTTP, and JSON-RPC: the request cannot be understood.
_CALL_NUMBERS = frozenset({400, 405, 406, 411, 413, 414, 415, 422, -32700, -32600, -32601, -32602})


class AnswerReading(NamedTuple):
    """How a result is read."""

    answer: Answer | None
    error: str = ""
    sign: str = ""


NOT_READ = AnswerReading(None)
_WORKED = AnswerReading("worked")


def reading_of(result: ToolResult, outcome: ToolOutcome, schema: Json, arguments: Json) -> AnswerReading:
    """How a tool answered, and the part of its error that decides."""
    if outcome.failed:
        return _read(result.result, outcome.error, schema, arguments)
    # What says neither whether it worked was still taken by the tool.
    return NOT_READ if outcome.reason == EMPTY else _WORKED


def _read(result: Json, message: str, schema: Json, arguments: Json) -> AnswerReading:
    """Of a result that reports an error: whether it blames the call, is an answer of the world, or leaves that open."""
    types, texts, numbers = _error_signs(result)
    error = ": ".join(dict.fromkeys(filter(None, [*types[:1], *(texts[:1] or [message])])))[:300]
    names = {*_properties(schema or {}), *(arguments if isinstance(arguments, dict) else ())}
    for text in (*types, *texts, message):
        words = _words(text)
        for answer, pattern in _READINGS:
            if match := pattern.search(words):
                return AnswerReading(answer, error, match[0])
        for name in names:
            if re.search(rf"\b{re.escape(_words(name))} (?:is |are )?(?:required|missing)\b", words):
                return AnswerReading("rejected", error, f"{name} required")
    for number in numbers:
        if number in _CALL_NUMBERS or 400 <= number < 600:
            return AnswerReading("rejected" if number in _CALL_NUMBERS else "world", error, str(number))
    return AnswerReading("undecided", error)


_READINGS: tuple[tuple[Answer, re.Pattern[str]], ...] = (
    ("rejected", _CALL_FOR_SURE),
    ("world", _WORLD_FOR_SURE),
    ("rejected", _CALL),
    ("world", _WORLD),
)


class _ErrorSigns(NamedTuple):
    types: list[str]
    texts: list[str]
    numbers: list[int]


def _error_signs(result: Json) -> _ErrorSigns:
    """The types, the messages and the numbers by which a result reports its error."""
    signs = _ErrorSigns([], [], [])
    if isinstance(result, str):
        signs.texts.append(result.strip().split("\n", 1)[0][:500])
    if isinstance(result, list):
        result = {"errors": result}
    if not isinstance(result, dict):
        return signs
    for key in _NUMBER_KEYS:
        value = result.get(key)
        if isinstance(value, int) or (isinstance(value, str) and re.fullmatch(r"-?\d{3,5}", value)):
            signs.numbers.append(int(value))
    signs.types.extend(result[key] for key in _TYPE_KEYS if isinstance(result.get(key), str))
    for key in _TEXT_KEYS:
        value = result.get(key)
        if isinstance(value, str) and value:
            signs.texts.append(value[:500])
        for inner in value[:5] if isinstance(value, list) else [value]:
            if isinstance(inner, dict) or (isinstance(value, list) and isinstance(inner, str)):
                types, texts, numbers = _error_signs(inner)
                signs.types.extend(types)
                signs.texts.extend(texts)
                signs.numbers.extend(numbers)
    return signs


def _words(text: str) -> str:
    """Small words with single blanks; the end of a sentence keeps its mark, so that no phrase reaches across it."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return " ".join(re.findall(r"[a-z0-9]+|[.;:!?]", apart.lower()))
