"""All that the rules say of one turn, found out together (dialogue, 1.1 to 1.9)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from convoscope.conversation.annotations import Act
from convoscope.metrics.dialogue.accuracy import (
    PairCount,
    SetMatch,
    invented_pairs,
    match_acts,
    match_domains,
    match_sets,
    match_states,
)
from convoscope.metrics.dialogue.actions import act_name, actions_taken, books, unknown_doing
from convoscope.metrics.dialogue.mentions import Mention, mentions_in, read_replies
from convoscope.metrics.dialogue.policy import (
    BOOKING_RULES,
    Attempt,
    PolicyRules,
    booking_attempts,
    does_right,
    expected_action,
)
from convoscope.metrics.dialogue.turns import DialogueTurn
from convoscope.metrics.dialogue.values import State, canonical_value
from convoscope.metrics.dialogue.venues import NAME, VenueDatabase


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
    """Of the pairs in the domains that the turn is about, by the truth or by the prediction, or of which the truth has
    no slot."""
    invented_anywhere: PairCount | None = None
    entities: tuple[Mention, ...] | None = None
    attempts: tuple[Attempt, ...] = ()
    """The bookings that the agent performs."""
    expected: str = ""
    is_correct: bool | None = None
    invented_mentions: int = 0
    """How many of the entities the database does not bear out."""
    undecided: str = ""
    """Why it cannot be told whether the agent did right, where what it did and ought to do is known."""

    @property
    def invented_entities(self) -> list[Mention]:
        return [one for one in self.entities or () if not one.is_known]

    @property
    def is_violation(self) -> bool:
        """It books while a slot is missing."""
        return any(attempt.missing for attempt in self.attempts)


_new = tuple.__new__  # a row has its fields in order: the check of a call by names is spared


def score_turns(
    turns: Sequence[DialogueTurn],
    venues: VenueDatabase | None = None,
    rules: PolicyRules = BOOKING_RULES,
    named: Collection[str] = (),
) -> list[TurnScores]:
    """Every rule metric of every turn, in order. `named` are the venues that the agent named before.

    Dialogues come by the ten thousand. So a turn is taken apart once, the replies of a dialogue are read together,
    and what depends on labels alone is remembered.
    """
    replies = None if venues is None else read_replies([turn[2] for turn in turns])
    earlier = dict.fromkeys(named)
    scores = []
    for place, turn in enumerate(turns):
        truth, predicted, _, calls, _, _, _ = turn
        true_domains, true_intents, true, true_acts, true_types, _, _ = truth
        domains, intents, ours, acts, types, _, _ = predicted
        domain = first = intent = match = plain = with_slots = slots = goal = invented = anywhere = None
        mentions = correct = None
        attempts: tuple[Attempt, ...] = ()
        unknown, undecided = 0, ""
        if true_domains and domains is not None:
            domain, first = match_domains(domains, true_domains)
        if true_intents and intents is not None:
            intent = match_sets(intents, true_intents)
        if true_acts is not None and acts is not None:
            match, plain = match_acts(types, true_types)
            with_slots = match[0] and (acts == true_acts or act_slots(acts) == act_slots(true_acts))
        if true is not None and ours is not None:
            slots, goal, anywhere = match_states(ours, true)
            if true_domains:
                is_alone = len(ours) == 1 and true_domains[0] in ours
                invented = anywhere if is_alone else _invented(ours, true, true_domains, domains)
        if calls or books(types):
            attempts = booking_attempts(turn, rules)
        expected = "" if true_intents is None else expected_action(true_intents, true, rules, true_domains)
        if replies is not None and venues is not None:
            mentions, unknown = mentions_in(replies[place], acts, venues, earlier, true_domains)
            if expected and goal is not None and acts is not None:
                is_wrong = bool(unknown) or is_against_rules(attempts, invented)
                correct, undecided = verdict(is_wrong, expected, types, calls)
        fields = (
            domain,
            first,
            intent,
            match,
            plain,
            with_slots,
            slots,
            goal,
            invented,
            anywhere,
            mentions,
            attempts,
            expected,
            correct,
            unknown,
            undecided,
        )
        scores.append(_new(TurnScores, fields))
    return scores


def _invented(ours: State, true: State, about: tuple[str, ...], routed: tuple[str, ...] | None) -> PairCount:
    """Predicted pairs that are not true, in the active domains: those of the truth and those of the prediction.

    A domain of which the truth has no slot is a wrong one, so what is predicted there counts too (the seed, metric 6,
    case 1). What is remembered of another domain of the user does not.
    """
    domains = {*about, *(routed or ()), *(ours.keys() - true.keys())}
    return invented_pairs(ours, true, domains)


def is_against_rules(attempts: Sequence[Attempt], invented: PairCount | None) -> bool:
    """Whether a turn books while a slot is missing, or makes up a slot value."""
    return any(attempt[1] for attempt in attempts) or bool(invented and invented[0])


def verdict(
    is_wrong: bool, expected: str, act_types: frozenset[str], calls: tuple[str, ...]
) -> tuple[bool | None, str]:
    """Whether the agent did what is expected, and nothing wrong. Where a name does not say what was done: why not."""
    if is_wrong or does_right(expected, actions_taken(act_types, calls)):
        return not is_wrong, ""
    unknown = unknown_doing(act_types, calls)
    return (None, unknown) if unknown else (False, "")


def score_turn(
    turn: DialogueTurn,
    venues: VenueDatabase | None = None,
    rules: PolicyRules = BOOKING_RULES,
    named: Collection[str] = (),
) -> TurnScores:
    """A turn by itself, after these venues were named."""
    return score_turns((turn,), venues, rules, named)[0]


def names_known(score: TurnScores) -> list[str]:
    """The venues that the agent named in a turn and the database has."""
    return [one.value for one in score.entities or () if one.field == NAME and one.is_known]


def act_slots(acts: Sequence[Act]) -> frozenset[tuple[str, str, str]]:
    """Acts with their slots and values, as a set."""
    return frozenset(
        [
            (act_name(act.type), slot.slot.casefold(), canonical_value(slot.value))
            for act in acts
            for slot in act.slots or (_NO_SLOT,)
        ]
    )


class _NoSlot(NamedTuple):
    slot: str = ""
    value: str | None = None


_NO_SLOT = _NoSlot()
