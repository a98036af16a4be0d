"""A dialogue as the metrics take it: per turn what is true and what was predicted, in one comparable form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from convoscope.conversation.annotations import Act, SlotValue
from convoscope.metrics.dialogue.policy import act_name

State = dict[str, dict[str, str]]
"""Slot values by domain and slot, in canonical form: no empty value, no empty domain."""

DONTCARE = "dontcare"

_EMPTY = frozenset({"", "none", "null", "not mentioned", "not given", "[]"})
_ANY = ("any", "do not care", "do n't care", "does not matter", "doesn't matter", "don't care", "dont care")
_SAME = {"center": "centre", **dict.fromkeys((*_ANY, "dont't care"), DONTCARE)}
_NOTHING: frozenset[Any] = frozenset()


@lru_cache(65536)
def _canonical_text(value: str) -> str:
    folded_value = " ".join(value.casefold().split())
    return "" if folded_value in _EMPTY else _SAME.get(folded_value, folded_value)


def canonical_value(value: object) -> str:
    """A slot value in lower case, with single spaces and one word for "any"; "" for an empty one (dialogue, 1.4)."""
    return "" if value is None else _canonical_text(value if type(value) is str else str(value))


def canonical_state(slots: Mapping[str, Mapping[str, Any]]) -> State:
    """A state in which every slot has one value; the first of several. `Hotel` and `hotel` are one domain."""
    state: State = {}
    for domain, values in slots.items():
        filled = {}
        for slot, value in values.items():
            values_given = value if isinstance(value, (list, tuple)) else (value,)
            text = next(filter(None, map(canonical_value, values_given)), "")
            if text:
                filled[slot.casefold()] = text
        if filled:
            name = domain.casefold()
            state[name] = {**filled, **state[name]} if name in state else filled
    return state


class AlignedStates(NamedTuple):
    """A predicted and a true state with one value for each slot."""

    predicted: State
    """Equal to the true one where it has any of the values that are right."""
    true: State
    own: State
    """As it was predicted, whatever is true."""


def aligned_state(predicted: Mapping[str, Mapping[str, Any]], truth: Mapping[str, Mapping[str, Any]]) -> AlignedStates:
    """Both states with one value for each slot, equal where the prediction is any of the values that are right."""
    true_state, own = canonical_state(truth), canonical_state(predicted)
    aligned = own
    for domain, values in truth.items():
        held = own.get(domain.casefold())
        if not held:
            continue
        for slot, value in values.items():
            if isinstance(value, str) or not isinstance(value, Iterable):
                continue
            right = [canonical_value(item) for item in value]
            answer = held.get(slot.casefold(), "")
            if len(right) > 1 and answer in right and right[0] and answer != right[0]:
                name = domain.casefold()
                aligned = {**aligned, name: {**aligned[name], slot.casefold(): right[0]}}
    return AlignedStates(aligned, true_state, own)


class Annotation(NamedTuple):
    """What a turn means, by the truth or by a prediction. None: it does not say."""

    domains: tuple[str, ...] | None = None
    """The domains that it is about, the first first."""
    intents: frozenset[str] | None = None
    state: State | None = None
    """All slot values so far."""
    acts: tuple[Act, ...] | None = None
    """What the agent does in reply."""
    act_types: frozenset[str] = _NOTHING
    requested: frozenset[tuple[str, str]] = _NOTHING
    """Domain and slot of what the user asks for in this turn."""
    own_state: State | None = None
    """Of a prediction whose values are right in another wording than the truth's first: the state as predicted."""


class DialogueTurn(NamedTuple):
    """What the user says, with the reply to it."""

    truth: Annotation
    predicted: Annotation
    response: str = ""
    """What the agent replied."""
    calls: tuple[str, ...] = ()
    """The tools that the agent called in reply."""
    booked: tuple[str, ...] = ()
    """The domains in which the true dialogue books in this turn."""
    copied: frozenset[tuple[str, str]] = _NOTHING
    """Domain and slot that the truth took over from another domain."""
    number: int = 0


def annotation(
    *,
    domains: Iterable[str] | None = None,
    intents: Iterable[str] | None = None,
    state: State | None = None,
    acts: Iterable[Act] | None = None,
    requested: Iterable[tuple[str, str]] = (),
    own_state: State | None = None,
) -> Annotation:
    """These parts, each in its canonical form."""
    acting = None if acts is None else tuple(acts)
    return Annotation(
        domains=None if domains is None else _domains(domains),
        intents=None if intents is None else folded(filter(is_intent, intents)),
        state=state,
        acts=acting,
        act_types=frozenset([act_name(act.type) for act in acting or ()]),
        requested=frozenset(requested),
        own_state=own_state,
    )


def _domains(names: Iterable[str]) -> tuple[str, ...]:
    """Domains in lower case, each once, in their order. A name such as `Restaurants_2` is one name."""
    return tuple(dict.fromkeys([name.strip().casefold() for name in names if is_intent(name.strip())]))


Names = str | Iterable[str]
"""One name, or several: a name by itself is a list of one (dialogue, 1.2)."""


def _names(given: Names | None) -> list[str] | None:
    return given if given is None else [given] if isinstance(given, str) else list(given)


def turn_of(
    *,
    predicted_slots: Mapping[str, Mapping[str, Any]] | None = None,
    true_slots: Mapping[str, Mapping[str, Any]] | None = None,
    predicted_intents: Names | None = None,
    true_intents: Names | None = None,
    predicted_domains: Names | None = None,
    true_domains: Names | None = None,
    predicted_acts: Act | str | Iterable[Act | str] | None = None,
    true_acts: Act | str | Iterable[Act | str] | None = None,
    requested: Iterable[tuple[str, str]] = (),
    copied: Iterable[tuple[str, str]] = (),
    booked: Names = (),
    response: str = "",
    calls: Names = (),
    is_missing: bool = False,
) -> DialogueTurn:
    """A turn from plain values, as an agent's loop has them: slots by domain, intents, acts by type or with slots.

    Intents such as `find_hotel` name their domains (dialogue, 1.1). A turn whose prediction is missing is predicted
    to be empty in everything.
    """
    if is_missing:
        predicted_slots, predicted_intents, predicted_domains, predicted_acts = {}, (), (), ()
        response, calls = "", ()
    states = aligned_state(predicted_slots or {}, true_slots or {})
    true_names, predicted_names = _names(true_intents), _names(predicted_intents)
    return DialogueTurn(
        truth=annotation(
            domains=_domains_of(true_domains, true_names),
            intents=true_names,
            state=None if true_slots is None else states.true,
            acts=_acts(true_acts),
            requested=requested,
        ),
        predicted=annotation(
            domains=_domains_of(predicted_domains, predicted_names),
            intents=predicted_names,
            state=None if predicted_slots is None else states.predicted,
            acts=_acts(predicted_acts),
            own_state=None if states.own is states.predicted else states.own,
        ),
        response=response,
        calls=tuple(_names(calls) or ()),
        booked=tuple(_names(booked) or ()),
        copied=frozenset([(domain.casefold(), slot.casefold()) for domain, slot in copied]),
    )


def _domains_of(given: Names | None, intents: list[str] | None) -> Iterable[str] | None:
    """The domains that are given, else those of the intents."""
    if given is None and intents is not None:
        return [intent_domain(intent) for intent in intents if is_intent(intent)]
    return _names(given)


def _acts(acts: Act | str | Iterable[Act | str] | None) -> list[Act] | None:
    if acts is None:
        return None
    listed = [acts] if isinstance(acts, (Act, str)) else acts
    return [Act(item) if isinstance(item, str) else item for item in listed]


def act(type: str, **slots: str | None) -> Act:
    """`act("Hotel-Inform", area="north")`."""
    return Act(type, tuple(SlotValue(slot, value) for slot, value in slots.items()))


def intent_domain(intent: str) -> str:
    """The domain of an intent: what follows its last underscore, or all of it (dialogue, 1.1)."""
    return intent.rpartition("_")[2].casefold()


def is_intent(intent: str) -> bool:
    """Whether it is an intent at all: annotations write NONE for no intent."""
    return bool(intent) and intent.casefold() != "none"


def folded(names: Iterable[str]) -> frozenset[str]:
    """Names as a set, in lower case."""
    return frozenset([name.strip().casefold() for name in names])
