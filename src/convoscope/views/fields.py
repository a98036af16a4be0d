"""Any field of a conversation by its name: dimensions, labels, what the log says of the end, metadata, extras.

What a reader has no use for it keeps, so that a user can group by it or name it as a label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from convoscope.conversation import Conversation, Json

MAX_FIELDS = 200
"""So many fields of one conversation are listed."""
_DEEPEST = 6
_LONGEST_NAME = 40
_OF_OUTCOME = ("completed", "finished", "ended_reason", "final_status", "error", "duration")


def field_value(conversation: Conversation, name: str) -> str | float | bool | None:
    """The value of a field; None where the conversation has none, or one that is a list or an object.

    Dots lead into objects: `metadata.team`. Where several places have the name, the first of `_places` counts.
    """
    places = _places(conversation)
    for place in (*places.values(), places):
        value = _at(place, name)
        if isinstance(value, str | int | float) and value != "":
            return value
    return None


def field_names(conversation: Conversation) -> list[str]:
    """The fields that a conversation has, as `field_value` knows them."""
    places = _places(conversation)
    names = (name for place in places.values() for name in _names(place, _DEEPEST))
    return list(dict.fromkeys(islice(names, MAX_FIELDS)))


def _places(conversation: Conversation) -> dict[str, Mapping[str, Json]]:
    """Where fields are, the likeliest to be meant first."""
    outcome, extras = conversation.outcome, conversation.extras
    flow = {"flow": conversation.flow.name} if conversation.flow is not None else {}
    stated = {name: value for name in _OF_OUTCOME if (value := getattr(outcome, name)) not in (None, "")}
    places: dict[str, Mapping[str, Json]] = {
        "dimensions": {**flow, **conversation.dimensions},
        "labels": _labels(conversation),
        "extras": extras,
        "metadata": metadata if isinstance(metadata := extras.get("metadata"), dict) else {},
        "header": header_fields(extras.get("header")),
        "outcome": {**outcome.extras, **stated},
        "agent": conversation.agent.extras,
        "scenario": conversation.scenario.extras if conversation.scenario is not None else {},
    }
    if len(conversation.items) == 1:
        (item,) = conversation.items
        places["item"] = item.extras
        places["expected"] = item.expected.extras
    places["messages"] = _of_messages(conversation)
    return places


def header_fields(lines: Json) -> dict[str, Json]:
    """The fields of a header of plain text: lines such as `Outcome: resolved`."""
    fields: dict[str, Json] = {}
    for line in lines if isinstance(lines, list) else ():
        name, colon, value = str(line).partition(":")
        if colon and 0 < len(name.strip()) <= _LONGEST_NAME and value.strip():
            fields.setdefault(name.strip(" \t#*-").lower(), value.strip())
    return fields


def _of_messages(conversation: Conversation) -> dict[str, Json]:
    """What stands beside messages, as a column of a table with one row a message: of several values the last."""
    beside: dict[str, Json] = {}
    for event in conversation.timeline:
        beside |= event.extras
    return beside


def _labels(conversation: Conversation) -> dict[str, Json]:
    """Verdicts on the whole conversation: a person's before a vendor's, the first of several."""
    labels: dict[str, Json] = {}
    for label in sorted(conversation.labels, key=lambda one: one.rater_kind != "human"):
        if label.subject_kind == "conversation":
            labels.setdefault(label.name, label.value)
    return labels


def _at(place: Mapping[str, Json], name: str) -> Json:
    """What stands at a name. A key may hold dots itself: the longest that is there leads on."""
    if name in place:
        return place[name]
    end = name.rfind(".")
    while end >= 0:
        inner = place.get(name[:end])
        if isinstance(inner, Mapping) and (value := _at(inner, name[end + 1 :])) is not None:
            return value
        end = name.rfind(".", 0, end) if end else -1
    return None


def _names(place: Mapping[str, Json], depth: int) -> Iterator[str]:
    """The names of all values that are neither lists nor objects."""
    for name, value in place.items():
        if isinstance(value, dict):
            if depth > 1:
                yield from (f"{name}.{inner}" for inner in _names(value, depth - 1))
        elif isinstance(value, str | int | float) and value != "":
            yield name


__all__ = ["field_names", "field_value", "header_fields"]
