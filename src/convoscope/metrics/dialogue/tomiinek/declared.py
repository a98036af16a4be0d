"""The standard MultiWOZ figures of a run, as variant `tomiinek` (dialogue, 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from convoscope.conversation import Conversation, Frame
from convoscope.conversation.lazy import cached_on_argument
from convoscope.metrics.declaration import CONVERSATION, HIGHER, RATIO, SHARE, TURN, metric
from convoscope.metrics.dialogue.declared import PREDICTIONS, STATE_MEMORY, TRACKING, TRUTH, WHOLE_SYSTEM
from convoscope.metrics.dialogue.frames import GOLD, PREDICTED, dialogue_turns
from convoscope.metrics.dialogue.policy import act_use
from convoscope.metrics.dialogue.tomiinek.evaluate import (
    DomainGoal,
    GoldDialogue,
    Judgement,
    TurnTracking,
    judge_prediction,
    track_turn,
)
from convoscope.metrics.dialogue.tomiinek.matching import placeholder, state_form
from convoscope.metrics.dialogue.venues import VenueDatabase
from convoscope.metrics.needs import Need
from convoscope.scores.observation import Observation, counted, in_turn, measured, unmeasured
from convoscope.scores.reducers import COUNTS, MEAN, MEAN_OF_CONVERSATIONS, MEAN_OF_SUBJECTS, POOLED_COUNTS, Reduce
from convoscope.views.items import WHOLE

TOMIINEK = "tomiinek"
_SLOTS = {"arriveby": "arrive", "leaveat": "leave"}

GOALS = Need(
    "no_goals",
    "scenario.goal",
    "dialogues with the goals that users were given, such as MultiWOZ 2.1",
    lambda conversation: conversation.scenario is not None and bool(conversation.scenario.goal),
)
RESPONSES = Need(
    "no_predicted_responses",
    "frames.response",
    "delexicalised responses in the file of predictions",
    lambda conversation: any(frame.response is not None for frame in conversation.frames),
)
PLACEHOLDERS = Need(
    "responses_without_placeholders",
    "frames.response",
    "responses with placeholders for values, such as `[hotel_name] is at [hotel_address]`",
    lambda conversation: not conversation.extras.get("plain_responses"),
)
_judged = partial(
    metric,
    variant=TOMIINEK,
    version=2,
    observes=CONVERSATION,
    unit=SHARE,
    better=HIGHER,
    needs=(GOALS, RESPONSES, PLACEHOLDERS),
    component=WHOLE_SYSTEM,
    sensitive_to=(),
)


@_judged("dialogue.inform", label="right venue offered", importance=6)
def inform(conversation: Conversation, venues: VenueDatabase) -> Observation:
    """Was a venue offered that fits the user's goal?

    For each domain of the goal, the venues that the state finds at the last narrowing offer fit the goal. Responses
    are delexicalised: an offer is a placeholder of a name or a train.

    >>> goal = {"goal": {"hotel": {"info": {"area": "north"}, "reqt": ["phone"]}}}
    >>> venues = VenueDatabase({"hotel": [{"name": "gull house", "area": "north"}]})
    >>> turn = "find_hotel hotel-area=north", "find_hotel hotel-area=north"
    >>> value(inform, labelled(turn, response="[hotel_name] is nice.", scenario=goal), venues=venues)
    1.0
    """
    return measured(WHOLE, float(_judgement(conversation, venues).is_informed))


@_judged("dialogue.success", label="right venue, and all that was asked", importance=6)
def success(conversation: Conversation, venues: VenueDatabase) -> Observation:
    """Was a fitting venue offered, and did the agent say all that the user asked about it?

    Phone, address, postcode, reference and train id; a reference counts only where the gold dialogue books.

    >>> goal = {"goal": {"hotel": {"info": {"area": "north"}, "reqt": ["phone"]}}}
    >>> venues = VenueDatabase({"hotel": [{"name": "gull house", "area": "north"}]})
    >>> turn = "find_hotel hotel-area=north", "find_hotel hotel-area=north"
    >>> value(success, labelled(turn, response="[hotel_name] is nice.", scenario=goal), venues=venues)  # no phone
    0.0
    """
    return measured(WHOLE, float(_judgement(conversation, venues).is_success))


_tracked = partial(
    metric, variant=TOMIINEK, version=2, observes=TURN, better=HIGHER, component=TRACKING, sensitive_to=()
)


@_tracked(
    "dialogue.jga",
    unit=SHARE,
    needs=(PREDICTIONS, TRUTH),
    reduce=Reduce(MEAN, MEAN_OF_SUBJECTS),
    also={"macro": MEAN_OF_CONVERSATIONS},
    component=STATE_MEMORY,
)
def joint_accuracy(conversation: Conversation) -> Iterator[Observation]:
    """Are all slots of the state right, where a value that is nearly a part of another counts as the same?

    The truth's "dontcare" is dropped, the prediction's is not.

    >>> value(joint_accuracy, labelled(("hotel-name=gull", "hotel-name=gull_house")))
    1.0
    """
    for number, row in _tracking(conversation):
        subject = in_turn(number)
        yield unmeasured(subject, "not_predicted") if row is None else measured(subject, float(row.is_joint))


@_tracked("dialogue.slot_f1", unit=RATIO, needs=(PREDICTIONS, TRUTH), reduce=Reduce(COUNTS, POOLED_COUNTS))
def slot_f1(conversation: Conversation) -> Iterator[Observation]:
    """How many slots of the state are found, and how many of the predicted ones are right, with fuzzy values?

    >>> value(slot_f1, labelled(("hotel-area=north train-day=monday", "hotel-area=north train-day=tuesday")))
    0.5
    """
    for number, row in _tracking(conversation):
        if row is None:
            yield unmeasured(in_turn(number), "not_predicted")
        else:
            wrong, missed = row.predicted - row.matched, row.true - row.matched
            yield counted(in_turn(number), tp=row.matched, fp=wrong, fn=missed, empty="no_slots")


@cached_on_argument
def _frames(conversation: Conversation) -> list[tuple[int, list[Frame], list[Frame]]]:
    """Number of each of the user's turns, with the frames of what the user and the agent say."""
    by_seq: dict[int, list[Frame]] = {}
    for frame in conversation.frames:
        by_seq.setdefault(frame.seq, []).append(frame)
    return [
        (
            turn.id,
            [frame for event in turn.user for frame in by_seq.get(event.seq, ())],
            [frame for event in turn.assistant for frame in by_seq.get(event.seq, ())],
        )
        for turn in conversation.turns
        if turn.user
    ]


def _state(frames: list[Frame], origin: str) -> dict[str, dict[str, Any]] | None:
    states = [frame for frame in frames if frame.origin == origin and frame.slots is not None]
    if not states:
        return None
    return {
        frame.service: {_SLOTS.get(slot, slot): value for slot, value in (frame.slots or {}).items()}
        for frame in states
        if frame.slots
    }


@cached_on_argument
def _tracking(conversation: Conversation) -> list[tuple[int, TurnTracking | None]]:
    rows: list[tuple[int, TurnTracking | None]] = []
    for number, asked, _ in _frames(conversation):
        predicted, true = _state(asked, PREDICTED), _state(asked, GOLD)
        if true is not None:
            truth = state_form(true, drops_dontcare=True)
            rows.append((number, None if predicted is None else track_turn(state_form(predicted), truth)))
    return rows


def _judgement(conversation: Conversation, venues: VenueDatabase) -> Judgement:
    return judge_prediction(predicted_turns(conversation), gold_dialogue(conversation), venues.search)


def predicted_turns(conversation: Conversation) -> list[dict[str, Any]]:
    """What was predicted of each turn, in the shape of the standard evaluator: response, state, active domains."""
    turns = []
    for _, asked, answered in _frames(conversation):
        turn: dict[str, Any] = {"response": next((frame.response for frame in answered if frame.response), "")}
        state = _state(asked, PREDICTED)
        if state is not None:
            turn["state"] = state
        if any(frame.origin == PREDICTED and frame.is_active is not None for frame in asked):
            turn["active_domains"] = [frame.service for frame in asked if frame.origin == PREDICTED and frame.is_active]
        turns.append(turn)
    return turns


@cached_on_argument
def gold_dialogue(conversation: Conversation) -> GoldDialogue:
    """What is true of a dialogue, as the standard evaluation takes it."""
    goals = conversation.scenario.goal if conversation.scenario is not None else None
    rows = _frames(conversation)
    return GoldDialogue(
        goals={domain: _goal(goal) for domain, goal in goals.items()} if isinstance(goals, Mapping) else {},
        responses=[turn.assistant_text for turn in conversation.turns if turn.user],
        states=[_state(asked, GOLD) or {} for _, asked, _ in rows],
        booked=_booked(conversation, rows),
    )


def _goal(goal: Any) -> DomainGoal:
    """`{"info": {slot: value}, "reqt": [slot], "book": {…}}`; a booking asks for its reference."""
    fields = goal if isinstance(goal, Mapping) else {}
    info, asked = fields.get("info") or {}, fields.get("reqt") or ()
    informable = {_SLOTS.get(slot.lower(), slot.lower()): str(value) for slot, value in info.items()}
    requestable = {placeholder(str(slot).lower()) for slot in asked}
    return DomainGoal(informable, frozenset(requestable | ({"REFERENCE"} if fields.get("book") else set())))


def _booked(conversation: Conversation, rows: list[tuple[int, list[Frame], list[Frame]]]) -> list[tuple[str, ...]]:
    """The domains in which the gold dialogue books in each turn: by its bookings, or else by its acts."""
    if any(frame.origin == GOLD and frame.booked is not None for frame in conversation.frames):
        return [turn.booked for turn in dialogue_turns(conversation)]
    return [_booked_by_acts(asked, answered) for _, asked, answered in rows]


def _booked_by_acts(asked: list[Frame], answered: list[Frame]) -> tuple[str, ...]:
    acts = [act.type for frame in answered if frame.origin == GOLD for act in frame.acts or ()]
    if not any(act_use(act).books for act in acts):
        return ()
    return tuple([frame.service for frame in asked if frame.origin == GOLD and frame.intents])
