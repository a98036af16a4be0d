"""Where the messages of a Vapi call belong: in the visits of nodes, or of the assistants of a squad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from convoscope.ingest.record import Fields, JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Notes
from convoscope.views.end_reasons import passes_on

RESULTS = frozenset({"tool_call_result", "tool-call-result", "tool", "function_result"})
TEXTS = ("message", "content")
CALL_LISTS = ("toolCalls", "tool_calls", "toolCallList")
CALL_IDS = ("toolCallId", "tool_call_id")


class CallVisit(NamedTuple):
    """A node or an assistant that the call was in, and what is known of that time."""

    state: str
    extras: JsonObject = {}
    variables: JsonObject = {}
    messages: Sequence[Any] = ()


class MessageStep(NamedTuple):
    """A message, and the number of the visit that it happened in."""

    message: Any
    visit: int


class PlacedMessages(NamedTuple):
    """The messages of a call, in order and each in its visit."""

    steps: Sequence[MessageStep]
    visits: Sequence[CallVisit] = ()
    unplaced: Sequence[CallVisit] = ()
    """Assistants that were active at an unknown time."""


def placed_messages(messages: Sequence[Any], artifact: JsonObject, call: JsonObject, notes: Notes) -> PlacedMessages:
    """Which node, else which assistant of a squad, each message belongs to."""
    nodes = [Fields(node, "node", notes) for node in as_list(artifact.get("nodes")) if isinstance(node, dict)]
    if nodes:
        visits: list[CallVisit] = []
        for node in nodes:
            name = next(filter(None, (as_text(node.get(name)) for name in ("nodeName", "name", "nodeId"))), "(unnamed)")
            held, variables, _ = (node.pop(name, None) for name in ("messages", "variableValues", "nodeName"))
            visits.append(CallVisit(name, filled(node), as_object(variables), as_list(held)))
        return PlacedMessages(_by_nodes(messages, visits), visits)
    activated = _activations(artifact)
    speakers = {speaker.state for one in messages if isinstance(one, dict) and (speaker := assistant_of(one))}
    unmoved = [MessageStep(one, 0) for one in messages]
    if len(activated) < 2 and len(speakers) < 2 and not (call.get("squad") or call.get("squadId")):
        return PlacedMessages(unmoved)
    if speakers:
        return _by_speakers(messages, activated)
    if len(activated) == 1:
        return PlacedMessages(unmoved, activated)
    handed = _by_hand_overs(messages, activated) if activated else None
    if handed is not None:
        notes.inferred("assistant_from_hand_over", f"{len(activated)} assistants")
        return PlacedMessages(handed, activated)
    return PlacedMessages(unmoved, (), activated)


def _activations(artifact: JsonObject) -> list[CallVisit]:
    """The assistants that were activated, in order; two of one name are distinguished by their ids."""
    visits = [
        visit._replace(extras=filled({**entry, "assistantName": None}))
        for entry in as_list(artifact.get("assistantActivations"))
        if isinstance(entry, dict) and (visit := assistant_of(entry))
    ]
    ids: dict[str, set[str]] = {}
    for visit in visits:
        ids.setdefault(visit.state, set()).add(as_text(visit.extras.get("assistantId")))
    return [
        visit._replace(state=f"{visit.state} ({id})")
        if len(ids[visit.state]) > 1 and (id := as_text(visit.extras.get("assistantId")))
        else visit
        for visit in visits
    ]


def each_once(lists: Sequence[Sequence[Any]]) -> list[Any]:
    """All messages of some lists; a list may repeat what the ones before it hold."""
    distinct: list[Any] = []
    before: set[str] = set()
    for messages in lists:
        distinct += [one for one in messages if _identity(one) not in before]
        before.update(map(_identity, messages))
    return distinct


def _by_nodes(messages: Sequence[Any], visits: Sequence[CallVisit]) -> list[MessageStep]:
    """Each message in the node that lists it. What only a node lists comes at the end of its visit."""
    listed = [{_identity(one) for one in visit.messages} for visit in visits]
    steps: list[MessageStep] = []
    here = 0
    for message in messages:
        identity = _identity(message)
        here = next((visit for visit in range(here, len(visits)) if identity in listed[visit]), here)
        steps.append(MessageStep(message, here))
    placed = {_identity(message) for message in messages}
    for number, visit in enumerate(visits):
        for message in visit.messages:
            if _identity(message) not in placed:
                placed.add(_identity(message))
                steps.append(MessageStep(message, number))
    return sorted(steps, key=lambda step: step.visit)


def _by_speakers(messages: Sequence[Any], activated: Sequence[CallVisit]) -> PlacedMessages:
    """Each message with the assistant that was active: it changes before the first text of the next."""
    visits = list(activated)
    steps: list[MessageStep] = []
    here = 0
    for message in messages:
        speaker = assistant_of(message) if isinstance(message, dict) else None
        if speaker is not None and visits and not _is_same(visits[here], speaker):
            ahead = (visit for visit in range(here + 1, len(visits)) if _is_same(visits[visit], speaker))
            coming = next(ahead, None)
            here = here + 1 if coming is None else coming
            if coming is None:
                visits.insert(here, speaker)
        elif speaker is not None and not visits:
            visits.append(speaker)
        steps.append(MessageStep(message, here))
    return PlacedMessages(steps, visits)


def _by_hand_overs(messages: Sequence[Any], visits: Sequence[CallVisit]) -> list[MessageStep] | None:
    """Each message with the assistant that was active, where there is one hand-over for each that followed."""
    over = [
        index
        for index, one in enumerate(messages)
        if isinstance(one, dict) and as_text(one.get("role")) in RESULTS and passes_on(as_text(one.get("name")))
    ]
    if len(over) != len(visits) - 1:
        return None
    return [MessageStep(message, sum(index > done for done in over)) for index, message in enumerate(messages)]


def assistant_of(message: JsonObject) -> CallVisit | None:
    """The assistant that a message says it comes from."""
    name, id = as_text(message.get("assistantName")), as_text(message.get("assistantId"))
    return CallVisit(name or id, filled({"assistantId": id})) if name or id else None


def _is_same(first: CallVisit, second: CallVisit) -> bool:
    ids = first.extras.get("assistantId"), second.extras.get("assistantId")
    return ids[0] == ids[1] if all(ids) else first.state == second.state


def _identity(message: Any) -> str:
    """What distinguishes a message from others, where it is written twice."""
    if not isinstance(message, dict):
        return repr(message)
    names = ("role", "time", "secondsFromStart", *TEXTS, *CALL_LISTS, *CALL_IDS, "result")
    return repr([message.get(name) for name in names])


def text_in(message: JsonObject) -> str:
    return next((text for name in TEXTS if (text := as_text(message.get(name)))), "")
