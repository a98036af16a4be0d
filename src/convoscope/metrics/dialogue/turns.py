"""A dialogue as the metrics take it: per turn what is true and what was predicted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from convoscope.conversation.annotations import Act, SlotValue
from convoscope.metrics.dialogue.accuracy import folded, intent_domain, is_intent
from convoscope.metrics.dialogue.actions import act_name
from convoscope.metrics.dialogue.values import State, aligned_state

NOTHING: frozenset[Any] = frozenset()


class Annotation(NamedTuple):
    """What a turn means, by the truth or by a prediction. None: nobody says."""

    domains: tuple[str, ...] | None = None
    """The domains that it is about, the first first."""
    intents: frozenset[str] | None = None
    state: State | None = None
    """All slot values so far."""
    acts: tuple[Act, ...] | None = None
    """What the agent does in reply."""
    act_types: frozenset[str] = NOTHING
    requested: frozenset[tuple[str, str]] = NOTHING
    """Domain and slot of what the user asks for in this turn."""
    own_state: State | None = None
    """Of a prediction whose values are right in another wording than the truth's first: the state in its own words."""


class DialogueTurn(NamedTuple):
    """A say of the user with the reply to it."""

    truth: Annotation
    predicted: Annotation
    response: str = ""
    """What the agent replied."""
    calls: tuple[str, ...] = ()
    """The tools that the agent called in reply."""
    booked: tuple[str, ...] = ()
    """The domains in which the true dialogue books in this turn."""
    copied: frozenset[tuple[str, str]] = NOTHING
    """Domain and slot that the truth took over from another domain."""
    number: int = 0


class Dialogue(NamedTuple):
    """The turns of a dialogue, with what is true of it as a whole."""

    turns: tuple[DialogueTurn, ...]
    id: str = ""


EMPTY = Annotation()


def annotation(
    *,
    domains: Iterable[str] | None = None,
    intents: Iterable[str] | None = None,
    state: State | None = None,
    acts: Iterable[Act] | None = None,
    requested: Iterable[tuple[str, str]] = (),
    tells_domains: bool = True,
    own_state: State | None = None,
) -> Annotation:
    """These parts, each in its canonical form.

    Domains that are not given follow from intents, unless these do not tell them.
    """
    wanted = None if intents is None else [one for one in intents if is_intent(one)]
    named = domains
    if named is None and wanted is not None and tells_domains:
        named = map(intent_domain, wanted)
    acting = None if acts is None else tuple(acts)
    return Annotation(
        domains=None if named is None else _domains(named),
        intents=None if wanted is None else folded(wanted),
        state=state,
        acts=acting,
        act_types=frozenset([act_name(act.type) for act in acting or ()]),
        requested=frozenset(requested),
        own_state=own_state,
    )


def _domains(named: Iterable[str]) -> tuple[str, ...]:
    """Domains in small letters, each once, in their order. A name such as `Restaurants_2` is one name."""
    return tuple(dict.fromkeys([one.strip().casefold() for one in named if is_intent(one.strip())]))


Names = str | Iterable[str]
"""One name, or several."""


def names(given: Names | None) -> Iterable[str] | None:
    """A name by itself is a list of one (dialogue, 1.2)."""
    return (given,) if isinstance(given, str) else given


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
    tells_domains: bool = True,
    number: int = 0,
) -> DialogueTurn:
    """A turn from plain values: slots by domain, intents, and acts by type or with their slots.

    Intents such as `find_hotel` tell their domains (dialogue, 1.1), unless `tells_domains` is False. A turn whose
    prediction is missing is predicted to be empty in everything.
    """
    if is_missing:
        predicted_slots, predicted_intents, predicted_domains, predicted_acts = {}, (), (), ()
        response, calls = "", ()
    ours, true, own = aligned_state(predicted_slots or {}, true_slots or {})
    return DialogueTurn(
        truth=annotation(
            domains=names(true_domains),
            intents=names(true_intents),
            state=None if true_slots is None else true,
            acts=_acts(true_acts),
            requested=requested,
            tells_domains=tells_domains,
        ),
        predicted=annotation(
            domains=names(predicted_domains),
            intents=names(predicted_intents),
            state=None if predicted_slots is None else ours,
            acts=_acts(predicted_acts),
            tells_domains=tells_domains,
            own_state=None if own is ours else own,
        ),
        response=response,
        calls=tuple(names(calls) or ()),
        copied=frozenset([(domain.casefold(), slot.casefold()) for domain, slot in copied]),
        booked=tuple(names(booked) or ()),
        number=number,
    )


def _acts(acts: Act | str | Iterable[Act | str] | None) -> list[Act] | None:
    if acts is None:
        return None
    listed = [acts] if isinstance(acts, (Act, str)) else acts
    return [Act(one) if isinstance(one, str) else one for one in listed]


def act(type: str, **slots: str | None) -> Act:
    """`act("Hotel-Inform", area="north")`."""
    return Act(type, tuple(SlotValue(slot, value) for slot, value in slots.items()))
