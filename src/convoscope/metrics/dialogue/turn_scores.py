"""All that the rules say of one turn, found out together (dialogue, 1.1 to 1.9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from convoscope.conversation.dialogue_state import Act
from convoscope.metrics.dialogue.accuracy import (
    PairCount,
    SetMatch,
    domain_is_right,
    invented_pairs,
    match_sets,
    match_states,
    without_general,
)
from convoscope.metrics.dialogue.policy import (
    BOOKING_RULES,
    Attempt,
    PolicyRules,
    actions_taken,
    booking_attempt,
    does_right,
    expected_action,
)
from convoscope.metrics.dialogue.turns import DialogueTurn
from convoscope.metrics.dialogue.values import canonical_value
from convoscope.metrics.dialogue.venues import NAME, Mention, VenueDatabase, entities


class TurnScores(NamedTuple):
    """What was found in a turn. None: it cannot be told, or there is nothing to tell."""

    domain: bool | None = None
    first_domain: bool | None = None
    """Against the first domain alone that has an active intent."""
    intent: SetMatch | None = None
    acts: SetMatch | None = None
    acts_without_general: bool | None = None
    acts_with_slots: bool | None = None
    slots: PairCount | None = None
    joint_goal: bool | None = None
    invented: PairCount | None = None
    """Of the pairs in the domains that the turn is truly about."""
    invented_anywhere: PairCount | None = None
    entities: tuple[Mention, ...] | None = None
    attempt: Attempt | None = None
    expected: str = ""
    is_correct: bool | None = None

    @property
    def invented_entities(self) -> list[Mention]:
        return [one for one in self.entities or () if not one.is_known]

    @property
    def mentioned(self) -> frozenset[str]:
        """The kinds of details that the reply holds: phone, address, postcode, reference."""
        return frozenset([one.field for one in self.entities or () if one.field != NAME])

    @property
    def is_violation(self) -> bool:
        """It books while a slot is missing."""
        return self.attempt is not None and bool(self.attempt.missing)


def score_turn(
    turn: DialogueTurn,
    venues: VenueDatabase | None = None,
    rules: PolicyRules = BOOKING_RULES,
    named: Sequence[str] = (),
) -> TurnScores:
    """Every rule metric of a turn. `named` are the venues that the agent named before."""
    truth, predicted = turn.truth, turn.predicted
    ours, true = predicted.state, truth.state
    domain = first = intent = acts = plain = with_slots = slots = goal = invented = anywhere = None
    if truth.domains and predicted.domains is not None:
        domain = domain_is_right(predicted.domains, truth.domains)
        first = predicted.domains[:1] == truth.domains[:1]
    if truth.intents and predicted.intents is not None:
        intent = match_sets(predicted.intents, truth.intents)
    if truth.acts is not None and predicted.acts is not None:
        acts = match_sets(predicted.act_types, truth.act_types)
        plain = acts.is_equal or without_general(predicted.act_types) == without_general(truth.act_types)
        with_slots = acts.is_equal and (
            predicted.acts == truth.acts or act_slots(predicted.acts) == act_slots(truth.acts)
        )
    if true is not None and ours is not None:
        slots, goal, anywhere = match_states(ours, true)
        invented = invented_pairs(ours, true, truth.domains) if truth.domains else None
    mentioned = (
        None if venues is None else tuple(entities(turn.response, predicted.acts, venues, named, truth.domains or ()))
    )
    attempt = booking_attempt(turn, rules)
    expected = expected_action(turn, rules) if truth.intents is not None else ""
    correct = None
    if mentioned is not None and expected and goal is not None and predicted.acts is not None:
        correct = (
            not (attempt is not None and attempt.missing)
            and not (invented is not None and invented.number)
            and all(one.is_known for one in mentioned)
            and does_right(expected, actions_taken(turn))
        )
    return TurnScores(
        domain,
        first,
        intent,
        acts,
        plain,
        with_slots,
        slots,
        goal,
        invented,
        anywhere,
        mentioned,
        attempt,
        expected,
        correct,
    )


def score_turns(
    turns: Sequence[DialogueTurn], venues: VenueDatabase | None = None, rules: PolicyRules = BOOKING_RULES
) -> list[TurnScores]:
    """Every turn of a dialogue, in order: what was named before is remembered."""
    named: dict[str, None] = {}
    scores = []
    for turn in turns:
        score = score_turn(turn, venues, rules, tuple(named))
        named |= {one.value: None for one in score.entities or () if one.field == NAME and one.is_known}
        scores.append(score)
    return scores


def act_slots(acts: Sequence[Act]) -> frozenset[tuple[str, str, str]]:
    """Acts with their slots and values, as a set."""
    return frozenset(
        [
            (act.type.casefold(), slot.slot.casefold(), canonical_value(slot.value))
            for act in acts
            for slot in act.slots or (_NO_SLOT,)
        ]
    )


class _NoSlot(NamedTuple):
    slot: str = ""
    value: str | None = None


_NO_SLOT = _NoSlot()
