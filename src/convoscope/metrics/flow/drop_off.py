"""Where callers leave: how far down the stages of a flow a conversation came, by the states that it entered."""

from __future__ import annotations

from collections.abc import Iterator

from convoscope.conversation import Conversation, Json, Outcome, StateEntered, StateExited
from convoscope.metrics.declaration import CONVERSATION, HIGHER, RATIO, TenPoints, metric
from convoscope.metrics.needs import CONTENTS, Fact, Need
from convoscope.scores.observation import Observation, measured, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, Reduce
from convoscope.text.identifiers import folded_name
from convoscope.views.subjects import WHOLE

_NAMES = ("name", "state", "id", "stage", "label")
_SUCCESS = frozenset(
    ("success", "succeeded", "successful", "complete", "completed", "done", "resolved", "goal_reached")
)

STATES = Need(
    code="no_states",
    field="timeline.state_entered",
    unlock="a log that tells which states of the flow were entered",
    present=Fact(CONTENTS, "has_states"),
)


@metric(
    "telephony.drop_off_node",
    variant="states",
    version=1,
    observes=CONVERSATION,
    unit=RATIO,
    better=HIGHER,
    needs=(STATES,),
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    ten=TenPoints(zero=0.0, ten=1.0),
    notices=(),
)
def drop_off_node(conversation: Conversation) -> Observation:
    """How far did the conversation come through the stages of its flow?

    1 where it was completed, by its own account or because it reached the last stage; else the place of
    the deepest stage that it reached ÷ the number of stages. `node` in the details is the state that it
    was in when it ended. The order of the stages is the one that is given (`stages`); without one, a
    conversation that was not completed is unmeasured, and the detail names the node.
    """
    path = _path(conversation)
    if not path:
        return unmeasured(WHOLE, STATES.code, "no state has a name")
    node, visited = path[-1], list(dict.fromkeys(path))
    stages = _stages(conversation)
    reached = 0
    details: dict[str, Json] = {"node": node, "reached": visited}
    if stages:
        places = {folded_name(stage): place for place, stage in enumerate(stages, start=1)}
        reached = max(places.get(folded_name(state), 0) for state in visited)
        details |= {"stages": len(stages), "deepest": stages[reached - 1] if reached else None}
    if _completed(conversation):
        return measured(WHOLE, 1.0, details={**details, "completed": True})
    if not stages:
        return unmeasured(WHOLE, "stages_unknown", f"ended in {node}, after {', '.join(visited)}"[:200])
    if not reached:
        return unmeasured(WHOLE, "not_among_stages", f"ended in {node}; stages {', '.join(stages)}"[:200])
    return measured(WHOLE, reached / len(stages), details={**details, "completed": reached == len(stages)})


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


def _stages(conversation: Conversation) -> list[str]:
    """The stages in order, from the first place that gives any: items, the conversation, its scenario, its agent."""
    for holder in _holders(conversation):
        given = holder.get("stages") if isinstance(holder, dict) else None
        names = [name for one in given if (name := _name(one))] if isinstance(given, list | tuple) else []
        if names:
            places = {folded_name(name): place for place, name in reversed(list(enumerate(names)))}
            return [names[place] for place in sorted(places.values())]
    return []


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
