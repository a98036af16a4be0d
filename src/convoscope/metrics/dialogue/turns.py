"""A dialogue as the metrics take it: per turn what is true and what was predicted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from convoscope.conversation.dialogue_state import Act, SlotValue
from convoscope.metrics.dialogue.accuracy import folded, intent_domain, is_intent
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


class DialogueTurn(NamedTuple):
    """A say of the user with the reply to it."""

    truth: Annotation
    predicted: Annotation
    response: str = ""
    """What the agent replied."""
    calls: tuple[str, ...] = ()
    """The tools that the agent called in reply."""
    is_missing: bool = False
    """There is no prediction for this turn: it scores as empty."""
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
) -> Annotation:
    """These parts, each in its canonical form. Domains follow from intents where they are not given."""
    wanted = None if intents is None else [one for one in intents if is_intent(one)]
    named = wanted if domains is None else domains
    acting = None if acts is None else tuple(acts)
    return Annotation(
        domains=None if named is None else _domains(named),
        intents=None if wanted is None else folded(wanted),
        state=state,
        acts=acting,
        act_types=folded([act.type for act in acting or ()]),
        requested=frozenset(requested),
    )


def _domains(named: Iterable[str]) -> tuple[str, ...]:
    """The domains of intents, or domains as they are."""
    return tuple(dict.fromkeys([intent_domain(one.strip()) for one in named if is_intent(one.strip())]))


def turn_of(
    *,
    predicted_slots: Mapping[str, Mapping[str, Any]] | None = None,
    true_slots: Mapping[str, Mapping[str, Any]] | None = None,
    predicted_intents: Iterable[str] | None = None,
    true_intents: Iterable[str] | None = None,
    predicted_domains: Iterable[str] | None = None,
    true_domains: Iterable[str] | None = None,
    predicted_acts: Iterable[Act | str] | None = None,
    true_acts: Iterable[Act | str] | None = None,
    requested: Iterable[tuple[str, str]] = (),
    copied: Iterable[tuple[str, str]] = (),
    booked: Iterable[str] = (),
    response: str = "",
    calls: Iterable[str] = (),
    is_missing: bool = False,
    number: int = 0,
) -> DialogueTurn:
    """A turn from plain values: slots by domain, intents, and acts by type or with their slots."""
    ours, true = aligned_state(predicted_slots or {}, true_slots or {})
    return DialogueTurn(
        truth=annotation(
            domains=true_domains,
            intents=true_intents,
            state=None if true_slots is None else true,
            acts=_acts(true_acts),
            requested=requested,
        ),
        predicted=annotation(
            domains=predicted_domains,
            intents=predicted_intents,
            state=None if predicted_slots is None else ours,
            acts=_acts(predicted_acts),
        ),
        response=response,
        calls=tuple(calls),
        is_missing=is_missing,
        copied=frozenset(copied),
        booked=tuple(booked),
        number=number,
    )


def _acts(acts: Iterable[Act | str] | None) -> list[Act] | None:
    return None if acts is None else [Act(one) if isinstance(one, str) else one for one in acts]


def act(type: str, **slots: str | None) -> Act:
    """`act("Hotel-Inform", area="north")`."""
    return Act(type, tuple(SlotValue(slot, value) for slot, value in slots.items()))
