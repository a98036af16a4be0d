"""Small conversations written by hand, and what a metric says of them: for docstrings, tests and a first try."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from convoscope.conversation import Conversation
from convoscope.errors import UsageError
from convoscope.metrics.declaration import Declaration, Derived, GroupSample, Metric
from convoscope.metrics.registry import known
from convoscope.scores.observation import ERROR, MEASURED, UNMEASURED

_LINE = re.compile(r"(?:(?P<at>[\d.]+)(?:-(?P<until>[\d.]+))? )?(?P<role>[a-z]+): (?P<text>.*)", re.DOTALL)
_COMPONENTS = ("eou", "llm", "stt", "tts", "vad")
_TOOL = re.compile(r"(?P<name>[^\s{]+)\s*(?P<arguments>\{.*?\})?(?: -> (?P<result>.*))?", re.DOTALL)


def example(*events: str | Mapping[str, Any], id: str = "example", **fields: Any) -> Conversation:
    """A conversation of a few lines: who speaks and what they say, and the tools that are called.

    A line may begin with its seconds: `3 user: hello`, or `3-4.5 user: hello` for a sound with its end. A tool has
    its arguments and its result as JSON, where it has them: `tool: book {"seats": 2} -> {"ok": true}`. What a part
    of the stack reports is JSON, too: `llm: {"ttft": 0.4}`. `state: greet` enters a state of a flow, and
    `20 marker: recording_ended` is a moment of the sound. An event of another type is a mapping, as the JSON of a
    conversation has it. Further fields are those of a `Conversation`, as JSON.

    >>> [turn.user_text for turn in example("user: Hello?", "assistant: Hello.", "user: Good bye.").turns]
    ['Hello?', 'Good bye.']
    >>> example('tool: book {"seats": 2} -> {"ok": true}').tool_calls[0].arguments
    {'seats': 2}
    """
    timeline: list[dict[str, Any]] = []
    for event in events:
        for entry in [dict(event)] if isinstance(event, Mapping) else _entries(event):
            timeline.append({**entry, "seq": len(timeline)})
    roles = dict.fromkeys(entry["speaker"] for entry in timeline if entry["type"] == "utterance")
    clocks = [{"id": kind, "kind": kind, "offset": 0.0, "resolution": 0.5} for kind in ("wall", "audio")]
    whole = {"participants": [{"id": role, "role": role} for role in roles], "clocks": clocks, "timeline": timeline}
    return msgspec.convert({**whole, **fields, "id": id}, Conversation)


def _entries(line: str) -> list[dict[str, Any]]:
    """The events of a line: an utterance, or a tool call and its result."""
    match = _LINE.fullmatch(line)
    if match is None:
        raise UsageError(f"{line!r} is not a line of an example", hint="write who speaks and what: `user: hello`")
    at, until, role, text = match.group("at", "until", "role", "text")
    entry: dict[str, Any] = {}
    if at is not None:
        entry["time"] = {"at": float(at), "clock": "audio" if until else "wall"}
    if role in _COMPONENTS:
        return [{**entry, "type": "component_metric", "component": role, "values": msgspec.json.decode(text)}]
    if role == "marker":
        return [{"type": "marker", "name": text, "time": {"at": float(at or 0), "clock": "audio"}}]
    if role == "state":
        return [{**entry, "type": "state_entered", "state": text}]
    if role != "tool":
        if until is not None:
            entry["time"]["until"] = float(until)
            entry["segments"] = [{"start": float(at), "end": float(until)}]
        return [{**entry, "type": "utterance", "speaker": role, "intended": {"text": text}}]
    tool = _TOOL.fullmatch(text)
    if tool is None:
        raise UsageError(f"{line!r} is not a tool call", hint='write `tool: name {"argument": 1} -> {"result": 2}`')
    name, arguments, result = tool.group("name", "arguments", "result")
    call = {**entry, "type": "tool_call", "name": name, "arguments": msgspec.json.decode(arguments or "{}")}
    if result is None:
        return [call]
    return [call, {**entry, "type": "tool_result", "name": name, "result": msgspec.json.decode(result)}]


def value(
    declared: Declaration | str, conversation: Conversation | Sequence[Conversation], **resources: Any
) -> float | str:
    """What a metric, or its name, says of a conversation: a number, or the reason why it has no value.

    A figure over a group takes several conversations, and the inputs of a derived figure are measured first.

    >>> value("conversation.turns", example("user: Hello?", "assistant: Hello.", "user: Good bye."))
    2.0
    >>> value("tools.success", example("user: Hello?", "assistant: Hello."))
    'no_tool_calls'
    """
    if isinstance(declared, str):
        name, declared = declared, known(declared)  # type: ignore[assignment]
        if declared is None:
            raise UsageError(f"unknown metric {name!r}", hint="write its whole name, such as tools.success")
    if isinstance(declared, Derived):
        if declared.over == "group":
            conversations = [conversation] if isinstance(conversation, Conversation) else conversation
            return _of_group(declared, conversations)
        inputs = [value(key, conversation) for key in declared.inputs]
        reason = next((given for given in inputs if isinstance(given, str)), None)
        return float(declared.function(*inputs)) if reason is None else reason
    assert isinstance(declared, Metric)
    assert isinstance(conversation, Conversation)
    given = frozenset(declared.resources[name] for name in resources)
    unmet = next((need for need in declared.needs if not need.met(conversation, given)), None)
    if unmet is not None:
        return unmet.code
    observations = declared(conversation, **resources)
    measured = [observation for observation in observations if observation.status == MEASURED]
    missing = [observation for observation in observations if observation.status in (UNMEASURED, ERROR)]
    if not measured or (declared.reduce.within.whole and missing):
        return (missing or observations)[0].reason if observations else "nothing_to_observe"
    result = measured[0].value if len(measured) == 1 else declared.reduce.within.reduce(measured)
    return "no_value" if result is None else result


def _of_group(declared: Derived, conversations: Sequence[Conversation]) -> float | str:
    inputs: list[Any] = []
    for key in declared.inputs:
        source = known(key)
        if isinstance(source, Derived) and source.over == "group":
            inputs.append(_of_group(source, conversations))
            continue
        values = [(one, value(key, one)) for one in conversations]
        inputs.append(
            [
                GroupSample(one.id, one.dimensions, UNMEASURED, None)
                if isinstance(given, str)
                else GroupSample(one.id, one.dimensions, MEASURED, given)
                for one, given in values
            ]
        )
    result = declared.function(*inputs)
    figures = [one for one in (result.values() if isinstance(result, Mapping) else [result]) if one is not None]
    return sum(figures) / len(figures) if figures else declared.unscored


__all__ = ["example", "value"]
