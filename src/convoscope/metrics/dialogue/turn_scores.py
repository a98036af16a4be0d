"""All that the rules say of one turn: domain, intent, acts and slots against the truth, and a verdict on the reply
(dialogue, 1.1 to 1.9)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from convoscope.conversation.annotations import Act, SlotValue
from convoscope.metrics.dialogue.mentions import Mention, mentions_in, read_replies
from convoscope.metrics.dialogue.policy import (
    BOOKING_RULES,
    SEARCH,
    Attempt,
    PolicyRules,
    act_name,
    actions_taken,
    booking_attempts,
    does_right,
    expected_action,
    unknown_doing,
)
from convoscope.metrics.dialogue.turns import DialogueTurn, State, canonical_value
from convoscope.metrics.dialogue.venues import NAME, VenueDatabase

NO_VENUES = "no_venue_database"
_NO_SLOTS: dict[str, str] = {}
_NO_SLOT = SlotValue("", None)


class SetMatch(NamedTuple):
    """Two sets compared: what both have, what was predicted, what is true."""

    is_equal: bool
    right: int
    predicted: int
    true: int

    @property
    def recall(self) -> float:
        """1 where nothing is true and nothing was predicted; 0 where nothing is true and something was."""
        return self.right / self.true if self.true else float(self.is_equal)

    @property
    def precision(self) -> float:
        return self.right / self.predicted if self.predicted else float(self.is_equal)

    @property
    def f1(self) -> float:
        return 2 * self.right / (self.predicted + self.true) if self.predicted + self.true else 1.0


class PairCount(NamedTuple):
    """How many slot-value pairs there are, and how many of them are right (or wrong)."""

    number: int
    total: int

    @property
    def share(self) -> float | None:
        """None where there are no pairs."""
        return self.number / self.total if self.total else None


class StateMatch(NamedTuple):
    """Slot recall, joint goal and invented pairs of two states."""

    slots: PairCount
    is_equal: bool
    invented: PairCount


class TurnScores(NamedTuple):
    """What was found in a turn. None: it is unknown, or there is nothing to compare."""

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
    attempts: tuple[Attempt, ...] = ()
    """The bookings that the agent performs."""
    expected: str = ""
    entities: tuple[Mention, ...] | None = None
    invented_mentions: int = 0
    """How many of the entities are not in the database."""
    is_correct: bool | None = None
    undecided: str = ""
    """Why it is unknown whether the agent did right, where what it did and ought to do is known."""

    @property
    def invented_entities(self) -> list[Mention]:
        return [mention for mention in self.entities or () if not mention.is_known]

    @property
    def known_names(self) -> list[str]:
        """The venues that the agent named and the database has."""
        return [mention.value for mention in self.entities or () if mention.field == NAME and mention.is_known]

    @property
    def is_violation(self) -> bool:
        """It books while a slot is missing."""
        return bool(self.attempts) and any(attempt.missing for attempt in self.attempts)


_LABELS = TurnScores._fields.index("entities")
"""How many fields labels decide. The verdict on the reply comes after them."""
_NO_VERDICT = (None, "")


def score_turns(
    turns: Sequence[DialogueTurn],
    venues: VenueDatabase | None = None,
    rules: PolicyRules = BOOKING_RULES,
    named: Collection[str] = (),
) -> list[TurnScores]:
    """Every rule metric of every turn, in order. `named` are the venues that the agent named before."""
    scores = [_score_labels(turn, rules) for turn in turns]
    return scores if venues is None else judge_turns(turns, scores, venues, named)


def score_turn(
    turn: DialogueTurn,
    venues: VenueDatabase | None = None,
    rules: PolicyRules = BOOKING_RULES,
    named: Collection[str] = (),
) -> TurnScores:
    """A turn by itself, after these venues were named."""
    return score_turns((turn,), venues, rules, named)[0]


def _score_labels(turn: DialogueTurn, rules: PolicyRules) -> TurnScores:
    """What labels alone decide. Dialogues come by the ten thousand: comparisons of equal labels are remembered."""
    truth, predicted = turn.truth, turn.predicted
    domain = first = intent = match = without_general = with_slots = slots = goal = invented = anywhere = None
    if truth.domains and predicted.domains is not None:
        domain, first = match_domains(predicted.domains, truth.domains)
    if truth.intents and predicted.intents is not None:
        intent = match_sets(predicted.intents, truth.intents)
    if truth.acts is not None and predicted.acts is not None:
        match, without_general = match_acts(predicted.act_types, truth.act_types)
        with_slots = match.is_equal and (
            predicted.acts == truth.acts or act_slots(predicted.acts) == act_slots(truth.acts)
        )
    if truth.state is not None and predicted.state is not None:
        slots, goal, anywhere = match_states(predicted.state, truth.state)
        if truth.domains:
            is_alone = len(predicted.state) == 1 and truth.domains[0] in predicted.state
            invented = anywhere if is_alone else _invented_in_active(turn, predicted.state, truth.state)
    expected = "" if truth.intents is None else expected_action(truth.intents, truth.state, rules, truth.domains)
    return TurnScores(
        domain,
        first,
        intent,
        match,
        without_general,
        with_slots,
        slots,
        goal,
        invented,
        anywhere,
        booking_attempts(turn, rules),
        expected,
    )


@lru_cache(65536)
def match_domains(predicted: tuple[str, ...], true: tuple[str, ...]) -> tuple[bool, bool]:
    """Whether the routing is right, and whether it is to the first of the true domains."""
    return domain_is_right(predicted, true), predicted[:1] == true[:1]


def domain_is_right(predicted: Collection[str], true: Collection[str]) -> bool:
    """Whether the turn was routed to a domain with an active intent, and to no other."""
    return bool(predicted) and all(domain in true for domain in predicted)


@lru_cache(65536)
def match_sets(predicted: frozenset[str], true: frozenset[str]) -> SetMatch:
    """Intents or act types as sets: order does not matter, and only equal sets are right."""
    return SetMatch(predicted == true, len(predicted & true), len(predicted), len(true))


@lru_cache(65536)
def match_acts(predicted: frozenset[str], true: frozenset[str]) -> tuple[SetMatch, bool]:
    """Act types as sets, and whether they are equal without greetings, thanks and goodbyes."""
    return match_sets(predicted, true), without_general(predicted) == without_general(true)


def without_general(acts: frozenset[str]) -> frozenset[str]:
    """Acts without greetings, thanks and goodbyes."""
    return frozenset([act for act in acts if not act.startswith("general-")])


def act_slots(acts: Sequence[Act]) -> frozenset[tuple[str, str, str]]:
    """Acts with their slots and values, as a set."""
    return frozenset(
        [
            (act_name(act.type), slot.slot.casefold(), canonical_value(slot.value))
            for act in acts
            for slot in act.slots or (_NO_SLOT,)
        ]
    )


def match_states(predicted: State, true: State) -> StateMatch:
    """Slot recall, joint goal and invented pairs of two states."""
    expected = sum(map(len, true.values()))
    if predicted == true:
        return _equal_states(expected)
    right, total = matching_pairs(predicted, true), sum(map(len, predicted.values()))
    return StateMatch(_pair_count(right, expected), False, _pair_count(total - right, total))


_pair_count = lru_cache(65536)(PairCount)


@lru_cache(4096)
def _equal_states(pairs: int) -> StateMatch:
    """Most states are equal."""
    return StateMatch(PairCount(pairs, pairs), True, PairCount(0, pairs))


def matching_pairs(predicted: State, true: State) -> int:
    """How many (domain, slot, value) both states hold."""
    right = 0
    for domain, slots in true.items():
        held = predicted.get(domain)
        if held is not None:
            right += len(slots) if held == slots else len(held.items() & slots.items())
    return right


def invented_pairs(predicted: State, true: State, domains: Collection[str]) -> PairCount:
    """Predicted pairs that are not true, of all predicted ones in the given domains."""
    wrong = total = 0
    for domain in domains:
        held, gold = predicted.get(domain, _NO_SLOTS), true.get(domain, _NO_SLOTS)
        total += len(held)
        if held != gold:
            wrong += len(held) - len(held.items() & gold.items())
    return _pair_count(wrong, total)


def _invented_in_active(turn: DialogueTurn, predicted: State, true: State) -> PairCount:
    """Predicted pairs that are not true, in the active domains: those of the truth and those of the prediction.

    A domain of which the truth has no slot is a wrong one, so what is predicted there counts too (the seed, metric 6,
    case 1). What is remembered of another domain of the user does not.
    """
    active = {*(turn.truth.domains or ()), *(turn.predicted.domains or ()), *(predicted.keys() - true.keys())}
    return invented_pairs(predicted, true, active)


def judge_turns(
    turns: Sequence[DialogueTurn],
    scores: Sequence[TurnScores],
    venues: VenueDatabase | None,
    named: Collection[str] = (),
) -> list[TurnScores]:
    """The scores with a verdict on each reply: by a database, or as far as nothing has to be looked up."""
    if venues is None:
        return [
            TurnScores._make((*score[:_LABELS], None, 0, *_verdict_without_venues(turn, score)))
            for turn, score in zip(turns, scores, strict=True)
        ]
    earlier = dict.fromkeys(named)
    replies = read_replies([turn.response for turn in turns])
    judged = []
    for turn, score, reply in zip(turns, scores, replies, strict=True):
        mentions, unknown = mentions_in(reply, turn.predicted.acts, venues, earlier, turn.truth.domains)
        verdict = _verdict(turn, score, is_wrong=bool(unknown))
        judged.append(TurnScores._make((*score[:_LABELS], mentions, unknown, *verdict)))
    return judged


def _verdict(turn: DialogueTurn, score: TurnScores, is_wrong: bool = False) -> tuple[bool | None, str]:
    """Whether the agent did what is expected, and nothing wrong. Where a name does not say what was done: why not."""
    if not score.expected or score.joint_goal is None or turn.predicted.acts is None:
        return _NO_VERDICT
    act_types, calls = turn.predicted.act_types, turn.calls
    if is_wrong or score.is_violation or (score.invented is not None and score.invented.number):
        return False, ""
    if does_right(score.expected, actions_taken(act_types, calls)):
        return True, ""
    unknown = unknown_doing(act_types, calls)
    return (None, unknown) if unknown else (False, "")


def _verdict_without_venues(turn: DialogueTurn, score: TurnScores) -> tuple[bool | None, str]:
    """An answer to a search is about venues, so it is left open, right or wrong: were only the wrong ones counted, the
    figure would fall. In other turns a reply that names something may make it up.
    """
    verdict = _verdict(turn, score)
    if verdict == _NO_VERDICT:
        return verdict
    if score.expected == SEARCH or (verdict[0] and names_something(turn)):
        return None, NO_VENUES
    return verdict


_EMPTY_DATABASE = VenueDatabase({})


def names_something(turn: DialogueTurn) -> bool:
    """Whether a reply or its acts hold a name or a detail that only a database can confirm.

    A name that the user truly gave needs no database.
    """
    (reply,) = read_replies([turn.response])
    mentions, _ = mentions_in(reply, turn.predicted.acts, _EMPTY_DATABASE, {}, turn.truth.domains)
    if not mentions or any(mention.field != NAME for mention in mentions):
        return bool(mentions)
    values = [value for slots in (turn.truth.state or {}).values() for value in slots.values()]
    given = VenueDatabase({"": [{"name": value} for value in values]})
    return any(given.name_of(mention.value) is None for mention in mentions)
