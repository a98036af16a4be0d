"""Labels of people that carry their texts: one call a line, rated as a whole, by turn, or entity by entity."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.conversation import Conversation
from convoscope.errors import InputError, UsageError
from convoscope.judging.rubrics import Rubric, rubric_named, rubrics
from convoscope.metrics.examples import example

ENTITIES = "transcription_accuracy_key_entities"
_FILE_NAMES = {"key_entity_transcription": ENTITIES}
"""Published label files that are not called like the rubric."""
POLICIES = "violating_policies"
_DIMENSIONS = {
    "repetitive_tool_calls": "unnecessary_tool_calls",
    "inefficient_tool_use": "unnecessary_tool_calls",
    "forgetting_information": "information_loss",
    "asking_same_question": "information_loss",
    "minor_redundancy": "redundant_statements",
    "vague_questions": "question_quality",
    "no_clarifying_questions": "question_quality",
}
"""What published labels call a fault, and the dimension of ours that it belongs to."""
_HINT = (
    "a line has `trace` and `expected_rating`, or `conv_turns` with an `expected_rating` in each, "
    "or `user_tts`, `transcription` and `labels`"
)


class LabelledEntity(NamedTuple):
    """A name, code or number that the caller said, and whether people say that it arrived."""

    value: str
    is_correct: bool


class CallLabel(NamedTuple):
    """What people say of a call or of one of its turns."""

    rating: float
    """On the scale of the rubric."""
    flags: frozenset[str] | None = None
    """The faults that they name; None where the label names none for any call."""
    entities: tuple[LabelledEntity, ...] = ()
    """Where entities are labelled, they are what is compared, and not the rating."""


class LabelledCall(NamedTuple):
    """A conversation, and the labels of the whole (""), or of its turns."""

    conversation: Conversation
    labels: Mapping[str, CallLabel]
    """By the id of the subject."""
    cluster: str
    """Calls that begin with the same words are copies of one scenario."""
    part: str = ""
    """What the label rests on that the file does not carry."""


def read_labels(path: Path, name: str | None, folders: tuple[str, ...] = ()) -> tuple[Rubric, list[LabelledCall]]:
    """The calls of a file, and the rubric that they are about. Calls that are marked as invalid are dropped."""
    known_names = rubrics(folders)
    wanted = name or _FILE_NAMES.get(path.stem, path.stem)
    if name is None and wanted not in known_names:
        raise UsageError(f"{path.name} does not say what it labels", hint=f"--rubric {' or '.join(known_names)}")
    rubric = rubric_named(wanted, folders)
    calls = []
    for number, line in enumerate(_lines(path), 1):
        if line.strip():
            try:
                record = json.loads(line)
                call = None if record.get("invalid") is True else _call(record, number, rubric)
            except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
                raise InputError(
                    f"is not a labelled call: {error!r}", file=str(path), line=number, hint=_HINT
                ) from None
            if call is not None:
                calls.append(call)
    return rubric, calls


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        raise InputError("is not UTF-8", file=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=str(path)) from None


def _call(record: Mapping[str, Any], number: int, rubric: Rubric) -> LabelledCall:
    id = str(record.get("id", number))
    if "conv_turns" in record:
        return _by_turn(record["conv_turns"], id, rubric)
    if "user_tts" in record:
        return _by_entity(record, id)
    scenario = {"scenario": {"clock": str(record["current_date_time"])}} if record.get("current_date_time") else {}
    conversation = example(*(_event(entry) for entry in record["trace"]), id=id, **scenario)
    rating = _on_scale(record["expected_rating"], rubric)
    # A fault that is named beside the best rating does not count.
    flags = frozenset() if rating == rubric.high else _flags(record.get("failure_mode"))
    opening = next((entry["utterance"] for entry in record["trace"] if entry["event_type"] == "user_utterance"), id)
    part = "policy cases" if POLICIES in flags and not record.get("instructions") else ""
    return LabelledCall(conversation, {"": CallLabel(rating, flags)}, opening, part)


def _flags(modes: Any) -> frozenset[str]:
    """The dimensions that a label flags: a list, or a text with commas."""
    names = modes.split(",") if isinstance(modes, str) else modes or ()
    return frozenset(_DIMENSIONS.get(name.strip(), name.strip()) for name in names if name.strip())


def _by_turn(turns: Sequence[Mapping[str, Any]], id: str, rubric: Rubric) -> LabelledCall:
    conversation = example(*(f"{_role(turn['role'])}: {turn['content']}" for turn in turns), id=id)
    labels: dict[str, CallLabel] = {}
    for turn, rated in _agent_turns(conversation, turns):
        if rated.get("expected_rating") is not None:
            rating = _on_scale(rated["expected_rating"], rubric)
            modes = frozenset() if rating == rubric.high else _flags(rated.get("failure_modes"))
            labels[turn] = CallLabel(rating, modes)
    return LabelledCall(conversation, labels, turns[0]["content"])


def _by_entity(record: Mapping[str, Any], id: str) -> LabelledCall:
    """What the caller said and what was written, turn by turn; a turn that was not written has no second text."""
    meant, written = record["user_tts"], record["transcription"]
    events: list[str | Mapping[str, Any]] = []
    for index, text in enumerate(meant):
        heard = {"heard": {"text": written[index].strip()}} if index < len(written) else {}
        events.append({"type": "utterance", "speaker": "user", "intended": {"text": text}, **heard})
        events.append("assistant: (not in the data)")  # turns end where the agent speaks; this rubric does not show it
    conversation = example(*events, id=id)
    turns = [str(turn.id) for turn in conversation.turns if turn.user_text]
    if len(turns) != len(meant):
        raise ValueError("a turn of the caller is empty")
    labels: dict[str, CallLabel] = {}
    for turn in record["labels"]:
        entities = tuple(LabelledEntity(one["value"], bool(one["correct"])) for one in turn["entities"])
        if entities:
            labels[turns[turn["turn_id"]]] = CallLabel(float(all(one.is_correct for one in entities)), None, entities)
    return LabelledCall(conversation, labels, meant[0])


def _agent_turns(
    conversation: Conversation, turns: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The turns of the agent in the data, and their ids in the conversation, which are in the same order."""
    spoken = [str(turn.id) for turn in conversation.turns if turn.assistant_text]
    rated = [turn for turn in turns if _role(turn["role"]) == "assistant"]
    if len(spoken) != len(rated):
        raise ValueError("the agent speaks twice in a turn")
    yield from zip(spoken, rated, strict=True)


def _on_scale(rating: Any, rubric: Rubric) -> float:
    value = float(rating)
    if not rubric.low <= value <= rubric.high or value != int(value):
        raise ValueError(f"{rating} is off the scale from {rubric.low} to {rubric.high}")
    return value


def _role(name: str) -> str:
    return "assistant" if name in ("agent", "assistant") else "user"


def _event(entry: Mapping[str, Any]) -> str | Mapping[str, Any]:
    match entry["event_type"]:
        case "agent_utterance":
            return f"assistant: {entry['utterance']}"
        case "user_utterance":
            return f"user: {entry['utterance']}"
        case "tool_call":
            return {"type": "tool_call", "name": entry["tool_name"], "arguments": entry.get("params")}
        case "tool_response":
            return {"type": "tool_result", "name": entry["tool_name"], "result": entry.get("response")}
        case other:
            raise ValueError(f"unknown event {other!r}")
