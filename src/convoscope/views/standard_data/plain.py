"""Evaluation items whose fields are right as they are: a plan for all items of one shape, and conversations by it.

`tidy` and `to_conversation` are the definition. The items of a file mostly have the same names with values of the
same types, so that most of what these two find out of an item is known before it is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any

import msgspec

from convoscope.conversation.events import AnyEvent, Text, Utterance
from convoscope.conversation.model import ASSISTANT, USER, Agent, Conversation, Item, Source
from convoscope.views.standard_data.canonical import PARTICIPANTS
from convoscope.views.standard_data.containers import OBJECT
from convoscope.views.standard_data.events import (
    HAPPENED,
    NOTHING_EXPECTED,
    PEOPLE,
    Clocks,
    add_dimensions,
    happen,
    take_expected,
    take_outcome,
    to_recording,
    to_tool,
)
from convoscope.views.standard_data.payloads.spans import SIGNS
from convoscope.views.standard_data.shapes import ALIASES, METRICS, TWINS
from convoscope.views.standard_data.tidy import FIELDS
from convoscope.views.standard_data.values import BOOLEAN, ID, TEXT

_TEXTS = frozenset(name for name, kind in FIELDS.items() if kind in (TEXT, ID))
_RIGHT = {name: {BOOLEAN: bool, OBJECT: dict}.get(kind) for name, kind in FIELDS.items()}
"""The type of which every value is right, by the name of the field. JSON has no keys but text."""
_ALIAS_OF = {
    "question": "agent_task",
    "query": "agent_task",
    "answer": "agent_response",
    "expected_output": "ground_truth",
}
"""Of the other names of fields, those of texts."""
_KNOWN = frozenset({*FIELDS, *ALIASES, *METRICS})
_SPECIAL = frozenset({*ALIASES, *METRICS, *SIGNS})
_HISTORY = frozenset({"conversation_context", "message"})
"""Fields of items that tell more of the talk than a question and an answer."""
_EMPTY_STAYS = ("agent_name", "agent_role", "system_prompt", *PEOPLE, "turn_id")
"""Fields that have another home unless they are empty."""
_ELSEWHERE = frozenset({*_EMPTY_STAYS, "agent_task", "agent_response", "novaeval_item_type", "tools_available"})
_EXPECTED = frozenset({"ground_truth", "expected_format", "expected_tool_call"})
_ENDED = frozenset({"agent_exit", "exit_status"})


class ItemPlan(msgspec.Struct, frozen=True):
    """What is done with the items of one shape."""

    fields: dict[str, str]
    """The fields that are not null, and the names that they have there."""
    unknown: tuple[str, ...]
    """Names that the schema does not know."""
    checks: tuple[tuple[str, Callable[[Any], bool]], ...]
    """Values that only a look tells to be right."""
    twins: tuple[tuple[str, str], ...]
    """Values that must be the same."""
    filled: tuple[str, ...]
    """Values that must not be empty."""
    rest: tuple[tuple[str, str], ...]
    """Fields that the item keeps, or that are taken from it one by one; with the names that they have there."""
    task: str
    answer: str
    people: tuple[str, ...]
    happened: tuple[str, ...]
    expects: bool
    ends: bool


def plan_of(names: Sequence[str], types: Sequence[type]) -> ItemPlan | None:
    """A plan for items with values of these types under these names; None where `tidy` has to look at each."""
    fields: dict[str, str] = {}
    unknown: list[str] = []
    checks = []
    for name, kind in zip(names, types, strict=True):
        if kind is NoneType and name in _KNOWN:
            continue
        field = _ALIAS_OF.get(name, name)
        if field not in FIELDS:
            if name in _SPECIAL or "." in name:
                return None
            unknown.append(name)
            continue
        if field in fields or (field in _TEXTS and kind is not str):
            return None
        fields[field] = name
        if field not in _TEXTS and kind is not _RIGHT.get(field):
            checks.append((name, FIELDS[field].clean))
    twins = []
    for field, twin in TWINS.items():
        if twin in fields:
            if fields.get(field, field) != field:
                return None
            own = fields.setdefault(field, twin)
            if own != twin:
                twins.append((own, twin))
            del fields[twin]
    if not fields or not _HISTORY.isdisjoint(fields):
        return None
    return ItemPlan(
        fields=fields,
        unknown=tuple(unknown),
        checks=tuple(checks),
        twins=tuple(twins),
        filled=tuple(field for field in _EMPTY_STAYS if field in fields),
        rest=tuple((field, name) for field, name in fields.items() if field not in _ELSEWHERE),
        task=fields.get("agent_task", ""),
        answer=fields.get("agent_response", ""),
        people=tuple(field for field in PEOPLE if field in fields),
        happened=tuple(field for field in fields if field in HAPPENED),
        expects=not _EXPECTED.isdisjoint(fields),
        ends=not _ENDED.isdisjoint(fields),
    )


def conversation_by(plan: ItemPlan, payload: dict[str, Any], id: str, source: Source) -> Conversation | None:
    """The conversation of an item of the plan's shape; None where `tidy` has to look at it."""
    if not _fits(plan, payload):
        return None
    fields, get = plan.fields, payload.get
    rest = {field: payload[name] for field, name in plan.rest}
    timeline: list[AnyEvent] = []
    clocks: Clocks = {}
    events: tuple[int, ...] = ()
    asked = answered = None
    if plan.task:
        asked = 0
        timeline.append(Utterance(seq=0, speaker=USER, intended=Text(payload[plan.task], "agent_task")))
    for name in plan.happened:
        if payload[name]:
            events = happen(rest, timeline, clocks)
            break
    if plan.answer:
        answered = len(timeline)
        text = Text(payload[plan.answer], "agent_response")
        timeline.append(Utterance(seq=answered, speaker=ASSISTANT, intended=text))
    agent = get("agent_name")
    dimensions = {"agent": agent} if agent else {}
    for name_of_person in plan.people:
        dimensions[name_of_person] = payload[name_of_person]
    if "metadata" in fields:
        add_dimensions(dimensions, payload["metadata"])
    audio = rest.pop("raw_complete_audio") if rest.get("raw_complete_audio") else None
    tools = get("tools_available")
    expected = take_expected(rest) if plan.expects else NOTHING_EXPECTED
    outcome = take_outcome(rest) if plan.ends else None
    if "turn_id" not in fields:
        rest["turn_id"] = None
    if plan.unknown:
        rest["unknown"] = {one: payload[one] for one in plan.unknown}
    item = Item(
        id=get("turn_id") or "1",
        kind=get("novaeval_item_type") or "",
        asked=asked,
        answered=answered,
        events=events,
        expected=expected,
        outcome=outcome,
        extras=rest,
    )
    return Conversation(
        id=id,
        dimensions=dimensions,
        source=source,
        participants=PARTICIPANTS[asked is not None, answered is not None],
        clocks=tuple(clocks.values()) if clocks else (),
        agent=Agent(
            name=agent or "",
            role=get("agent_role") or "",
            instructions=get("system_prompt") or "",
            tools=None if tools is None else tuple(to_tool(one) for one in tools),
        ),
        items=(item,),
        timeline=tuple(timeline),
        recording=None if audio is None else to_recording(audio),
    )


def _fits(plan: ItemPlan, payload: dict[str, Any]) -> bool:
    """Whether the values are what the plan takes them for."""
    for name in plan.filled:
        if not payload[name]:
            return False
    for name, clean in plan.checks:
        if not clean(payload[name]):
            return False
    return all(payload[name] == payload[twin] for name, twin in plan.twins) if plan.twins else True
