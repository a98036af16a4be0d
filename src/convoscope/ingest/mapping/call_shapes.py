"""Calls of tools and their results, found in messages by their shape: a name and arguments; an id and an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from convoscope.ingest.io.json import parsed
from convoscope.ingest.mapping.declaration import (
    CALL_ARGUMENTS,
    CALL_IDS,
    CALL_NAMES,
    EACH,
    RESULT_IDS,
    RESULTS,
    Each,
    find,
    steps_of,
    value_at,
    written,
)
from convoscope.ingest.mapping.fields import RecordField, calls_in, fields_of, listed_fields, plain_name, words_of
from convoscope.ingest.mapping.meanings import KINDS
from convoscope.ingest.mapping.role_words import role_of
from convoscope.ingest.record import as_text

_NAMES = (*CALL_NAMES, "toolName", "method", "func", "api", "endpoint", "api_name", "functionName")
_ARGUMENTS = (*CALL_ARGUMENTS, "tool_input", "tool_args", "inputs", "kwargs", "toolInput", "arguments_json")
_IDS = (*CALL_IDS, "toolCallId", "callId", "tool_use_id")
_OF_CALL = tuple(name for name in _IDS if name != "id")
_RESULTS = ("result", "output", "response", "tool_output", "tool_result", "toolOutput")
_RESULT_IDS = (*RESULT_IDS, "toolCallId", "callId")
_ANSWERS = (*RESULTS, "observation", "answer", "tool_output")
_IS_NAME = re.compile(r"[^\W\d][\w./:-]{0,99}")
_OF_CALLS = re.compile(r"tools?(_?(calls?|uses?))?$|functions?(_?calls?)?$|calls?$|actions$", re.IGNORECASE)
_CALLED = re.compile(r"call(s|ed)?|tools?|functions?|actions?|api|invocations?|commands?")
_DEEPEST = 4
"""Steps to a call in a message: what lies deeper is a copy of what a program sent and got."""
_MOST = 0.6
_MAX_KINDS = 30


class CallGuess(NamedTuple):
    """Where calls of tools are: in a list of a message, or the message itself."""

    path: str = ""
    keys: tuple[tuple[str, str], ...] = ()
    """Keys of `tool_call` whose names are not recognised without them, and their paths."""
    kind: tuple[str, list[str]] | None = None
    """The field and the words that say that a message is a call."""


def calls_in_messages(messages: Sequence[Any], text: str) -> CallGuess:
    """Calls that messages hold beside what they say; the surest and shallowest."""
    if any(calls_in(value_at(message, text)) for message in messages):
        return CallGuess()  # they are parts of the texts
    guesses: list[tuple[tuple[int, int, int], CallGuess]] = []
    for field in listed_fields(messages):
        steps = steps_of(field.path)
        if field.path == text or field.path.startswith(f"{text}.") or _is_definition(field):
            continue
        inner = [step for step in steps if not (isinstance(step, Each) and step == EACH)]
        if len(inner) > _DEEPEST:
            continue
        is_named = bool(inner) and _OF_CALLS.search(plain_name(inner[-1])) is not None
        keys = _call_keys(field.values, needs_arguments=not is_named)
        if keys is None or not (is_named or _is_call(inner, field.values)):
            continue
        path = written(steps[:-1]) if isinstance(steps[-1], Each) else field.path
        guesses.append(((not is_named, len(steps), -len(field.values)), CallGuess(path, keys)))
    return min(guesses, key=lambda pair: pair[0], default=((0, 0, 0), CallGuess()))[1]


def _is_call(steps: Sequence[str], values: Sequence[Any]) -> bool:
    """Whether objects with a name and arguments are calls: their field says so, or they have a result or id of a call.

    The settings of a model have a name and parameters, too.
    """
    words = [word for step in steps[-2:] for word in words_of(step)]
    has_result = bool(_first(values, _RESULTS, lambda value: value is not None))
    return any(map(_CALLED.fullmatch, words)) or has_result or bool(_first(values, _OF_CALL, as_text))


def _is_definition(field: RecordField) -> bool:
    """Whether these are descriptions of tools, and no calls."""
    return any(
        "description" in one or isinstance(value_at(one, ["parameters.properties", "input_schema", "schema"]), dict)
        for one in field.values
    )


def _call_keys(values: Sequence[Any], *, needs_arguments: bool) -> tuple[tuple[str, str], ...] | None:
    """Where name, arguments, id and result are in calls; None for other objects."""
    name = _first(values, _NAMES, lambda value: isinstance(value, str) and _IS_NAME.fullmatch(value) is not None)
    arguments = _first(values, _ARGUMENTS, lambda value: isinstance(parsed(value), dict))
    if not name or (needs_arguments and not arguments):
        return None
    id, result = _first(values, _IDS, as_text), _first(values, _RESULTS, lambda value: value is not None, least=0.0)
    known = {"name": CALL_NAMES, "arguments": CALL_ARGUMENTS, "id": CALL_IDS, "result": _RESULTS[:3]}
    keys = {"name": name, "arguments": arguments, "id": id, "result": result, "caller": _caller(values)}
    return tuple((key, path) for key, path in keys.items() if path and path not in known.get(key, ()))


def _first(values: Sequence[Any], paths: Sequence[str], fits: Any, least: float = _MOST) -> str:
    """The first of these paths at which most of the objects have a value that fits, and none has another."""
    for path in paths:
        held = [leaf.value for value in values if (leaf := find(value, path)) is not None]
        if held and len(held) >= least * len(values) and all(fits(value) for value in held):
            return path
    return ""


def _caller(values: Sequence[Any]) -> str:
    """The field of a call that says who calls, where users do, too."""
    for field in fields_of(values):
        words = {role_of(value) if isinstance(value, str) else "" for value in field.values}
        if "." not in field.path and words == {"user", "assistant"}:
            return field.path
    return ""


def calls_as_messages(messages: Sequence[Any], text: str) -> CallGuess:
    """Messages that are calls themselves, where a field tells them from the others."""
    calls = [
        one
        for one in messages
        if isinstance(one, dict) and not find(one, text) and _call_keys([one], needs_arguments=True) is not None
    ]
    keys = _call_keys(calls, needs_arguments=True) if calls else None
    kind = _kind(calls, messages) if keys is not None else None
    return CallGuess("", keys or (), kind) if kind is not None else CallGuess()


def results_as_messages(messages: Sequence[Any], text: str) -> CallGuess:
    """Messages that are results of calls: an id of a call and an answer, and no text."""
    results = [
        one for one in messages if isinstance(one, dict) and not find(one, text) and _result_keys([one]) is not None
    ]
    keys = _result_keys(results) if results else None
    kind = _kind(results, messages) if keys is not None else None
    return CallGuess("", keys or (), kind) if kind is not None else CallGuess()


def results_in_messages(messages: Sequence[Any], text: str, calls: str) -> CallGuess:
    """Results that messages hold beside what they say."""
    for field in listed_fields(messages):
        steps = steps_of(field.path)
        if any(field.path == one or field.path.startswith(f"{one}.") for one in (text, calls) if one):
            continue
        keys = _result_keys(field.values)
        if keys is not None and isinstance(steps[-1], Each):
            return CallGuess(written(steps[:-1]), keys)
    return CallGuess()


def _result_keys(values: Sequence[Any]) -> tuple[tuple[str, str], ...] | None:
    """Where id, answer and error are in results; None for other objects."""
    id = _first(values, _RESULT_IDS, as_text)
    answer = _first(values, _ANSWERS, lambda value: value is not None)
    called = _first(values, _ARGUMENTS, lambda value: isinstance(parsed(value), dict), least=0.0)
    if not id or not answer or called:
        return None
    known = {"call_id": RESULT_IDS, "content": RESULTS}
    error = _first(values, ("is_error", "isError", "error"), lambda value: isinstance(value, bool | str), least=0.0)
    keys = {"call_id": id, "content": answer, "error": error}
    return tuple((key, path) for key, path in keys.items() if path and path not in known.get(key, ()))


def _kind(chosen: Sequence[Any], messages: Sequence[Any]) -> tuple[str, list[str]] | None:
    """A field of kinds whose words all of these messages have, and none of the others."""
    of_chosen = {id(one) for one in chosen}
    rest = [one for one in messages if id(one) not in of_chosen]
    for field in (one for one in fields_of(chosen) if one.name in KINDS):
        words = [*dict.fromkeys(field.values)] if all(isinstance(one, str) for one in field.values) else []
        if not words or len(field.values) < len(chosen) or len(words) > min(_MAX_KINDS, max(1, len(chosen) // 2)):
            continue
        if all(value_at(one, field.path) not in words for one in rest):
            return field.path, words
    return None
