"""Predictions of dialogue systems in the three shapes that they come in, made alike.

Records of a turn, the `_turns.json` of mas4cs, and the `{dialogue: [{response, state, active_domains}]}` of the
standard MultiWOZ evaluator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from convoscope.conversation import Act, SlotValue
from convoscope.ingest.record import Facts, as_list, as_object, as_text, filled

State = dict[str, dict[str, tuple[str, ...]]]
"""Values by domain and slot."""

DIALOGUE = ("dialogue_id", "dialog_id")
TURN = ("turn_id", "turn")
DOMAINS = ("predicted_domain", "predicted_domains", "active_domains", "domain")
INTENTS = ("predicted_intent", "predicted_intents", "active_intent")
STATE = ("predicted_slots", "predicted_state", "slots_values", "slot_values", "state")
REQUESTED = ("predicted_requested_slots", "requested_slots")
ACTS = ("predicted_act_type", "predicted_acts", "predicted_dialogue_acts", "dialogue_acts", "act_type", "dialog_act")
RESPONSE = ("predicted_response", "system_response", "response")
FAILURE = ("error", "failure")

_PREDICTED = ("slots_values", "active_domains", "response", "system_response", "policy_compliant")
_NO_INTENT = "none"


class TurnPrediction(NamedTuple):
    """What a system made of one turn. None is "not predicted"."""

    turn: str = ""
    """The id of the turn; "" where only the order of predictions counts."""
    domains: tuple[str, ...] | None = None
    intents: tuple[str, ...] | None = None
    state: State | None = None
    requested: tuple[str, ...] | None = None
    acts: tuple[Act, ...] | None = None
    response: str | None = None
    failure: str = ""
    extras: Facts = {}


class Predictions(NamedTuple):
    """The predictions of one or more files, by dialogue."""

    by_dialogue: dict[str, list[TurnPrediction]]
    predicts: frozenset[str]
    """The fields that any of them predicts."""
    problems: tuple[str, ...] = ()


def dialogue_key(id: str) -> str:
    """Ids of dialogues are written with and without `.json`, in capitals and in small letters."""
    return id.lower().removesuffix(".json")


def shape_of(values: Sequence[Any]) -> str:
    """What a file of predictions is, by its first values; "" for any other file."""
    first = next((value for value in values if isinstance(value, dict)), None)
    if first is None:
        return ""
    turns = first.get("turns")
    if isinstance(turns, list) and any(_is_turn(one) for one in turns):
        return "predictions of turns, in a list `turns`"
    if any(_is_turn(value) for value in values):
        return "predictions, one record per turn"
    if any(_is_answers(value) for value in first.values()):
        return "predictions: responses and states by dialogue"
    return ""


def _is_turn(value: Any) -> bool:
    """A record with the ids of a dialogue and a turn, and something that only a system predicts."""
    if not isinstance(value, dict) or not (_has(value, DIALOGUE) and _has(value, TURN)) or "speaker" in value:
        return False
    return any(name.startswith("predicted_") or name in _PREDICTED for name in value)


def _is_answers(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_answer(one) for one in value)


def _is_answer(value: Any) -> bool:
    return isinstance(value, dict) and "response" in value and value.keys() <= {"response", "state", "active_domains"}


def _has(value: Mapping[str, Any], names: Iterable[str]) -> bool:
    return any(as_text(value.get(name)) for name in names)


def predictions_of(values: Iterable[Any]) -> tuple[dict[str, list[TurnPrediction]], int]:
    """The predictions of a file's values by dialogue, and how many of its records are none."""
    by_dialogue: dict[str, list[TurnPrediction]] = {}
    unread = 0
    for value in values:
        facts = as_object(value)
        turns = facts.get("turns") if isinstance(facts.get("turns"), list) else None
        for record in turns if turns is not None else [value] if _has(facts, DIALOGUE) else ():
            if isinstance(record, dict) and _has(record, DIALOGUE) and _has(record, TURN):
                id = next(as_text(record[name]) for name in DIALOGUE if as_text(record.get(name)))
                by_dialogue.setdefault(dialogue_key(id), []).append(_of_turn(record))
            else:
                unread += 1
        if turns is None and not _has(facts, DIALOGUE):
            for id, answers in facts.items():
                if isinstance(answers, list):
                    held = by_dialogue.setdefault(dialogue_key(id), [])
                    held += [_prediction("", dict(as_object(one))) for one in answers]
                else:
                    unread += 1
            unread += not isinstance(value, dict)
    return by_dialogue, unread


def _of_turn(record: Facts) -> TurnPrediction:
    facts = dict(record)
    turn = ""
    for name in (*DIALOGUE, *TURN):
        value = as_text(facts.pop(name, None))
        turn = value if name in TURN and value else turn
    return _prediction(turn, facts)


def _prediction(turn: str, facts: Facts) -> TurnPrediction:
    """What a record predicts; what else it says is kept."""
    failure = _take(facts, FAILURE)
    prediction = TurnPrediction(
        turn,
        domains=names_of(_take(facts, DOMAINS)),
        intents=names_of(_take(facts, INTENTS)),
        state=state_of(_take(facts, STATE)),
        requested=names_of(_take(facts, REQUESTED)),
        acts=acts_of(_take(facts, ACTS)),
        response=_text(_take(facts, RESPONSE)),
    )
    if failure:
        return TurnPrediction(turn, failure=as_text(failure)[:200] or "failed", extras=filled(facts))
    if all(value is None for value in prediction[1:7]):
        return TurnPrediction(turn, failure="nothing predicted", extras=filled(facts))
    return prediction._replace(extras=filled(facts))


def _take(facts: Facts, names: Sequence[str]) -> Any:
    """The first of these fields that is there and not null, taken out."""
    for name in names:
        if facts.get(name) is not None:
            return facts.pop(name)
    return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def names_of(value: Any) -> tuple[str, ...] | None:
    """One name or several; `NONE` is none."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return None
    return tuple(name for one in value if (name := as_text(one).strip()) and name.casefold() != _NO_INTENT)


def state_of(value: Any) -> State | None:
    """Slots by domain, or by names such as `hotel-area`, or as two lists of names and values."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("slots_values_name"), list):
        value = dict(
            zip(map(as_text, value["slots_values_name"]), as_list(value.get("slots_values_list")), strict=False)
        )
    state: State = {}
    for name, inner in value.items():
        if isinstance(inner, dict):
            slots = state.setdefault(name, {})
            slots |= {_bare(slot, name): read for slot, one in inner.items() if (read := _values(one))}
        elif read := _values(inner):
            domain, _, slot = name.rpartition("-")
            state.setdefault(domain, {})[slot] = read
    return state


def _bare(slot: str, domain: str) -> str:
    return slot.removeprefix(f"{domain}-")


def _values(value: Any) -> tuple[str, ...]:
    """The values of a slot: none for one that is null."""
    listed = value if isinstance(value, list) else [value]
    return tuple(str(one).lower() if isinstance(one, bool) else as_text(one) for one in listed if _is_value(one))


def _is_value(value: Any) -> bool:
    return isinstance(value, bool) or bool(as_text(value))


def acts_of(value: Any) -> tuple[Act, ...] | None:
    """Types of acts, or acts with their slots: `{"Hotel-Inform": [["area", "north"]]}`."""
    if isinstance(value, dict):
        return tuple(Act(type, tuple(_slots(listed))) for type, listed in value.items())
    types = [value] if isinstance(value, str) else value
    return tuple(Act(name) for one in types if (name := as_text(one))) if isinstance(types, list) else None


def _slots(listed: Any) -> Iterable[SlotValue]:
    for pair in listed if isinstance(listed, list) else ():
        if isinstance(pair, list) and len(pair) == 2 and as_text(pair[0]) not in ("", "none"):
            yield SlotValue(as_text(pair[0]), None if pair[1] in (None, "?") else as_text(pair[1]))
