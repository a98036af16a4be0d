"""Where callers leave: how far down the stages of a flow a conversation came, by the states that it entered."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from operator import attrgetter
from typing import NamedTuple

from convoscope.conversation import Conversation, Json, Outcome, StateEntered, StateExited
from convoscope.conversation.flow import Flow
from convoscope.conversation.lazy import cached_on_argument
from convoscope.metrics.declaration import CONVERSATION, HIGHER, RATIO, TenPoints, metric
from convoscope.metrics.needs import CONTENTS, Fact, Need
from convoscope.scores.observation import Observation, measured, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, Reduce
from convoscope.text.folding import folded_name
from convoscope.views.items import WHOLE

_NAMES = ("name", "state", "id", "stage", "label")
_SUCCESS = frozenset(
    ("success", "succeeded", "successful", "complete", "completed", "done", "resolved", "goal_reached")
)
_NO_STAGES = frozenset(("failure", "escalation"))

STATES = Need(
    code="no_states",
    field="timeline.state_entered",
    unlock="a log that tells which states of the flow were entered",
    present=Fact(CONTENTS, "has_states"),
)


@metric(
    "telephony.drop_off_node",
    variant="states",
    version=2,
    label="how far it came in the flow",
    importance=5,
    observes=CONVERSATION,
    unit=RATIO,
    better=HIGHER,
    needs=(STATES,),
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    ten=TenPoints(zero=0.0, ten=1.0),
    sensitive_to=(),
)
def drop_off_node(conversation: Conversation) -> Observation:
    """How far did the conversation come through the stages of its flow?

    1 where it was completed, by its own account or because it reached the last stage; else the place of
    the deepest stage that it reached ÷ the number of stages. `node` in the details is the state that it
    was in when it ended. The order of the stages is the one that is given (`stages`), else the order of
    states that the flow declares. Unmeasured without an order, and where none of its states is known
    there, whether it was completed or not.
    """
    path = _path(conversation)
    if not path:
        return unmeasured(WHOLE, STATES.code, "no state has a name")
    node, visited = path[-1], list(dict.fromkeys(path))
    order = _order(conversation)
    if order is None:
        return unmeasured(WHOLE, "stages_unknown", f"ended in {node}, after {', '.join(visited)}"[:200])
    if not any(folded_name(state) in order.known for state in visited):
        return unmeasured(WHOLE, "not_among_stages", f"ended in {node}; stages {', '.join(order.names)}"[:200])
    reached = max(order.places.get(folded_name(state), 0) for state in visited)
    completed = _completed(conversation) or reached == len(order.names)
    details: dict[str, Json] = {"node": node, "reached": visited, "stages": len(order.names)}
    details |= {"deepest": order.names[reached - 1] if reached else None, "completed": completed}
    return measured(WHOLE, 1.0 if completed else reached / len(order.names), details=details)


class _Order(NamedTuple):
    """The stages of a flow."""

    names: list[str]
    places: dict[str, int]
    """The place of each stage, from 1, by its folded name."""
    known: Collection[str]
    """The states that whoever gave the order knows, folded; not all of them need to be stages."""


def _path(conversation: Conversation) -> list[str]:
    """The states in the order in which the conversation was in them; leaving for a state is entering it."""
    path: list[str] = []
    for event in conversation.timeline:
        kind = type(event)
        if kind is StateEntered:
            path.append(event.state)  # type: ignore[union-attr]
        elif kind is StateExited:
            path += (event.state, event.to_state)  # type: ignore[union-attr]
    named = [state for state in path if state.strip()]
    return [state for state, before in zip(named, ["", *named], strict=False) if state != before]


def _order(conversation: Conversation) -> _Order | None:
    """The first that is given, by items, the conversation, its scenario, its agent; else the flow's own."""
    for holder in _holders(conversation):
        given = holder.get("stages") if isinstance(holder, dict) else None
        names = [name for one in given if (name := _name(one))] if isinstance(given, list | tuple) else []
        if names:
            first = {folded_name(name): place for place, name in reversed(list(enumerate(names)))}
            names = [names[place] for place in sorted(first.values())]
            places = {folded_name(name): place for place, name in enumerate(names, start=1)}
            return _Order(names, places, places)
    return _declared_order(conversation.flow) if conversation.flow is not None else None


@cached_on_argument
def _declared_order(flow: Flow) -> _Order | None:
    """The states of a flow by rank; those of one rank share a place. Where it hands over or gives up is no stage."""
    names: dict[float, str] = {}
    ranked = [state for state in flow.states if state.rank is not None and state.terminal not in _NO_STAGES]
    for state in sorted(ranked, key=attrgetter("rank")):
        names.setdefault(state.rank or 0.0, state.name)
    place = {rank: number for number, rank in enumerate(names, start=1)}
    places = {folded_name(state.name): place[state.rank or 0.0] for state in ranked}
    known = frozenset(folded_name(state.name) for state in flow.states)
    return _Order(list(names.values()), places, known) if names else None


def _holders(conversation: Conversation) -> Iterator[Json]:
    for extras in (*(item.extras for item in conversation.items), conversation.extras):
        yield extras.get("context")
        yield extras.get("metadata")
        yield extras
    if conversation.scenario is not None:
        yield conversation.scenario.extras
    yield conversation.agent.extras
    yield conversation.expected.extras


def _name(stage: Json) -> str:
    if isinstance(stage, dict):
        stage = next((stage[name] for name in _NAMES if isinstance(stage.get(name), str)), "")
    return stage.strip() if isinstance(stage, str) else ""


def _completed(conversation: Conversation) -> bool:
    """The log says that the goal was reached: of the conversation, else of its last item that says how it ended."""
    ends: list[Outcome] = [item.outcome for item in conversation.items if item.outcome is not None]
    for outcome in (conversation.outcome, *reversed(ends)):
        if outcome.completed is not None:
            return outcome.completed
        if outcome.final_status:
            return folded_name(outcome.final_status) in _SUCCESS
    return False
