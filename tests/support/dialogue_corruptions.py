"""Faults that are put into right predictions, each at a place that is drawn by a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from convoscope.conversation.annotations import Act
from convoscope.metrics.dialogue.goals import completion, transfers, true_transfers
from convoscope.metrics.dialogue.policy import BOOKING_RULES, SEARCH, missing_slots
from convoscope.metrics.dialogue.turn_scores import TurnScores, score_turns, without_general
from convoscope.metrics.dialogue.turns import DialogueTurn, annotation
from convoscope.metrics.dialogue.venues import VenueDatabase

Turns = list[DialogueTurn]
CARRIED = ("area", "pricerange")
NEEDED = {"name", *CARRIED}
INVENTED = "The number is 99999 999999 ."
INVENTED_VENUE = "I recommend The Golden Dragon ."


class Place(NamedTuple):
    """A turn of a dialogue where a fault can be put."""

    dialogue: int
    turn: int


class Scored(NamedTuple):
    """A dialogue whose predictions are the truth, with what is known of it."""

    turns: Turns
    scores: list[TurnScores]
    is_complete: bool


def scored(dialogues: list[Turns], venues: VenueDatabase) -> list[Scored]:
    rows = []
    for turns in dialogues:
        scores = score_turns(turns, venues)
        rows.append(Scored(turns, scores, completion(turns, scores).is_complete))
    return rows


def fault_places(fault: str, dialogues: list[Scored]) -> list[Place]:
    """Where a fault can be put; few dialogues may have no such turn."""
    possible, _ = FAULTS[fault]
    return [Place(at, turn) for at, row in enumerate(dialogues) for turn in possible(row)]


def corrupted(fault: str, dialogues: list[Scored], seed: int) -> list[Turns]:
    """The dialogues with one fault, at one of the places where it can be put."""
    _, put = FAULTS[fault]
    place = random.Random(seed).choice(fault_places(fault, dialogues))
    copies = [list(row.turns) for row in dialogues]
    put(copies[place.dialogue], place.turn)
    return copies


def _state(turns: Turns, place: int, domain: str, slots: dict[str, str]) -> None:
    """Replace the predicted slots of a domain."""
    turn = turns[place]
    state = {**turn.predicted.state, domain: slots}
    state = {name: values for name, values in state.items() if values}
    turns[place] = turn._replace(predicted=turn.predicted._replace(state=state))


def _optional(turn: DialogueTurn) -> list[tuple[str, str]]:
    """Slots that neither a booking needs nor a change of domain carries over."""
    return [
        (domain, slot)
        for domain, slots in turn.predicted.state.items()
        for slot in slots
        if slot not in NEEDED and not slot.startswith("book")
    ]


def _can_drop(row: Scored) -> Iterator[int]:
    yield from (place for place, turn in enumerate(row.turns) if turn.predicted.state and _optional(turn))


def _drop(turns: Turns, place: int) -> None:
    domain, slot = _optional(turns[place])[0]
    slots = dict(turns[place].predicted.state[domain])
    del slots[slot]
    _state(turns, place, domain, slots)


def _can_swap(row: Scored) -> Iterator[int]:
    """After a turn of the same, only domain that has a slot to carry over."""
    domains = {domain for turn in row.turns for domain in turn.truth.domains or ()}
    if len(domains) != 1:
        return
    (domain,) = domains
    for place in range(1, len(row.turns)):
        before, turn = row.turns[place - 1], row.turns[place]
        if before.predicted.domains and turn.predicted.domains and turn.predicted.state is not None:
            state = before.predicted.state or {}
            if any(slot in state.get(domain, {}) for slot in CARRIED) and set(turn.predicted.state) <= {domain}:
                yield place


def _swap(turns: Turns, place: int) -> None:
    turn = turns[place]
    other = "hotel" if turn.predicted.domains[0] != "hotel" else "restaurant"
    predicted = turn.predicted._replace(domains=(other,), intents=frozenset({f"find_{other}"}))
    turns[place] = turn._replace(predicted=predicted)


def _can_invent(row: Scored) -> Iterator[int]:
    yield from (place for place, score in enumerate(row.scores) if score.is_correct and row.turns[place].truth.domains)


def _invent(turns: Turns, place: int) -> None:
    domain = turns[place].truth.domains[0]
    _state(turns, place, domain, {**turns[place].predicted.state.get(domain, {}), "moons": "two"})


def _can_invent_entity(row: Scored) -> Iterator[int]:
    asked = {one for turn in row.turns for one in turn.truth.requested}
    has_taxi = any("taxi" in (turn.truth.domains or ()) for turn in row.turns)
    if row.is_complete and asked and not has_taxi and any(score.is_correct for score in row.scores):
        yield 0


def _invent_entity(turns: Turns, place: int) -> None:
    del place  # in every reply: whatever was asked for is then answered by something invented
    turns[:] = [turn._replace(response=f"{turn.response} {INVENTED}") for turn in turns]


def _can_book_early(row: Scored) -> Iterator[int]:
    if not row.is_complete:
        return
    for place, (turn, score) in enumerate(zip(row.turns, row.scores, strict=True)):
        domains = turn.truth.domains or ()
        if len(domains) != 1 or score.attempts or not score.is_correct or turn.truth.acts is None:
            continue
        if domains[0] in BOOKING_RULES and missing_slots(turn.predicted.state, domains[0], BOOKING_RULES):
            yield place


def _book_early(turns: Turns, place: int) -> None:
    turn = turns[place]
    acts = (*turn.predicted.acts, Act("Booking-Book"))
    types = turn.predicted.act_types | {"booking-book"}
    turns[place] = turn._replace(predicted=turn.predicted._replace(acts=acts, act_types=types))


def _can_forget(row: Scored) -> Iterator[int]:
    """The change into the last domain, where it carries a slot that the prediction has on that very turn."""
    changes = {event.turn for event in transfers(row.turns)}
    carried = {event.turn for event in transfers(row.turns) if event.is_carried}
    events = [event for event in true_transfers(row.turns) if event.turn in carried and event.turn == max(changes)]
    routes = (
        [turn.predicted.domains[0] for turn in row.turns[max(changes) :] if turn.predicted.domains] if events else []
    )
    if len(set(routes)) == 1:
        yield events[0].turn


def _forget(turns: Turns, place: int) -> None:
    event = next(event for event in true_transfers(turns) if event.turn == place)
    for later in range(place, len(turns)):
        slots = (turns[later].predicted.state or {}).get(event.to_domain, {})
        _state(turns, later, event.to_domain, {slot: value for slot, value in slots.items() if slot != event.slot})


def _says_nothing_known(row: Scored, place: int) -> bool:
    """A right turn of an incomplete dialogue that names no venue and books nothing."""
    score = row.scores[place]
    return bool(score.is_correct) and not row.is_complete and not score.entities and not score.attempts


def _can_say_goodbye(row: Scored) -> Iterator[int]:
    for place, (turn, score) in enumerate(zip(row.turns, row.scores, strict=True)):
        if _says_nothing_known(row, place) and score.expected == SEARCH and turn.truth.acts is not None:
            yield place


def _say_goodbye(turns: Turns, place: int) -> None:
    turn = turns[place]
    predicted = turn.predicted._replace(acts=(Act("general-bye"),), act_types=frozenset({"general-bye"}))
    turns[place] = turn._replace(predicted=predicted)


def _can_invent_venue(row: Scored) -> Iterator[int]:
    asked = {one for turn in row.turns for one in turn.truth.requested}
    if row.is_complete and asked and any(score.is_correct for score in row.scores):
        yield 0


def _invent_venue(turns: Turns, place: int) -> None:
    del place  # in every reply, as an invented phone number
    turns[:] = [turn._replace(response=f"{turn.response} {INVENTED_VENUE}") for turn in turns]


def _can_miss(row: Scored) -> Iterator[int]:
    domains = {domain for turn in row.turns for domain in turn.truth.domains or ()}
    for place, turn in enumerate(row.turns):
        has_truth = turn.truth.domains and turn.truth.intents and turn.truth.state and turn.truth.acts
        if (
            len(domains) == 1
            and has_truth
            and without_general(turn.truth.act_types)
            and _says_nothing_known(row, place)
        ):
            yield place


def _miss(turns: Turns, place: int) -> None:
    empty = annotation(domains=(), intents=(), state={}, acts=())
    turns[place] = turns[place]._replace(predicted=empty, response="")


FAULTS: dict[str, tuple[Callable[[Scored], Iterator[int]], Callable[[Turns, int], None]]] = {
    "drop a slot": (_can_drop, _drop),
    "swap a domain": (_can_swap, _swap),
    "invent a value": (_can_invent, _invent),
    "invent a phone number": (_can_invent_entity, _invent_entity),
    "book too early": (_can_book_early, _book_early),
    "forget at a change": (_can_forget, _forget),
    "wrong act": (_can_say_goodbye, _say_goodbye),
    "invent a venue": (_can_invent_venue, _invent_venue),
    "predict nothing": (_can_miss, _miss),
}
