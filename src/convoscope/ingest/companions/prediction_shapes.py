"""Predictions of dialogue systems in the three shapes that they come in, made alike.

Records of a turn, the `_turns.json` of mas4cs, and the `{dialogue: [{response, state, active_domains}]}` of the
standard MultiWOZ evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from convoscope.conversation import Act, SlotValue
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled

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

_PREDICTED = ("slots_values", "active_domains", "response", "system_response", "policy_compliant", *FAILURE)
_ANSWER = ("response", "state")
_SPOKEN = frozenset(
    {
        "user",
        "user_message",
        "role",
        "speaker",
        "text",
        "content",
        "utterance",
        "message",
        "messages",
        "prompt",
        "query",
    }
    | {"question", "input"}
)
"""What a log has beside a response, and an answer of the standard evaluator has not."""
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
    extras: JsonObject = {}
    unreadable: tuple[str, ...] = ()
    """Fields whose value, or a part of it, cannot be read; what is left of them is predicted."""


class Predictions(NamedTuple):
    """The predictions of one or more files, by dialogue."""

    by_dialogue: dict[str, list[TurnPrediction]]
    predicts: frozenset[str]
    """The fields that any of them predicts."""
    problems: tuple[str, ...] = ()
    is_plain: bool = False
    """There are responses, and none of them holds a placeholder such as `[hotel_name]`."""


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
    if first and all(_is_answers(value) for value in first.values()):
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
    """A response or a state, and nothing that somebody else says."""
    if not isinstance(value, dict) or not _SPOKEN.isdisjoint(value):
        return False
    return any(name in value for name in (*_ANSWER, *FAILURE))


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


def _of_turn(record: JsonObject) -> TurnPrediction:
    facts = dict(record)
    turn = ""
    for name in (*DIALOGUE, *TURN):
        value = as_text(facts.pop(name, None))
        turn = value if name in TURN and value else turn
    return _prediction(turn, facts)


def _prediction(turn: str, facts: JsonObject) -> TurnPrediction:
    """What a record predicts; what else it says is kept. A field that cannot be read is predicted to be empty."""
    failure = _take(facts, FAILURE)
    predicted: dict[str, Any] = {}
    unreadable: list[str] = []
    for field, names, read, is_whole in _READERS:
        name = next((name for name in names if facts.get(name) is not None), "")
        if name:
            value = facts[name] if not is_whole(facts[name]) else facts.pop(name)
            if name in facts:
                unreadable.append(f"{name} is {_kind(value)}")
            predicted[field] = read(value)
            if predicted[field] is None:
                predicted[field] = EMPTY.get(field, ())
    if failure:
        return TurnPrediction(turn, failure=as_text(failure)[:200] or "failed", extras=filled(facts))
    if not predicted:
        return TurnPrediction(turn, failure="nothing predicted", extras=filled(facts))
    return TurnPrediction(turn, **predicted, extras=filled(facts), unreadable=tuple(unreadable))


EMPTY: dict[str, Any] = {"state": {}, "response": ""}
"""What is predicted where nothing is; of other fields it is an empty list."""


def _take(facts: JsonObject, names: Sequence[str]) -> Any:
    """The first of these fields that is there and not null, taken out."""
    for name in names:
        if facts.get(name) is not None:
            return facts.pop(name)
    return None


def _kind(value: Any) -> str:
    """What a value is that should be something else, in words."""
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} that holds something else than expected"
    return f"{type(value).__name__} {str(value)[:40]!r}"


def _are_names(value: Any) -> bool:
    """One text, or a list of texts."""
    return isinstance(value, str) or (isinstance(value, list) and all(one is None or _is_name(one) for one in value))


def _is_name(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _are_acts(value: Any) -> bool:
    """Names, or objects of lists of pairs."""
    if not isinstance(value, dict):
        return _are_names(value)
    return all(isinstance(listed, list) and all(_is_pair(one) for one in listed) for listed in value.values())


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and _is_name(value[0])


def _is_state(value: Any) -> bool:
    """Objects whose values are texts or lists of them, by domain or not."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("slots_values_name"), list):
        return isinstance(value.get("slots_values_list"), list)
    inner = [one for slots in value.values() for one in (slots.values() if isinstance(slots, dict) else [slots])]
    return all(_are_values(one) for one in inner)


def _are_values(value: Any) -> bool:
    return all(
        one is None or isinstance(one, str | int | float) for one in (value if isinstance(value, list) else [value])
    )


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


_READERS: tuple[tuple[str, Sequence[str], Callable[[Any], Any], Callable[[Any], bool]], ...] = (
    ("domains", DOMAINS, names_of, _are_names),
    ("intents", INTENTS, names_of, _are_names),
    ("state", STATE, state_of, _is_state),
    ("requested", REQUESTED, names_of, _are_names),
    ("acts", ACTS, acts_of, _are_acts),
    ("response", RESPONSE, _text, lambda value: isinstance(value, str)),
)
"""By field of a prediction the names that it goes by, how it is read, and whether all of a value can be."""
