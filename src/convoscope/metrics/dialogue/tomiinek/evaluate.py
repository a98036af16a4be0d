"""The standard MultiWOZ evaluation of predictions: inform, success, state tracking, richness, BLEU (dialogue, 4)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from math import fsum, log2
from typing import Any, NamedTuple

from convoscope.errors import UsageError
from convoscope.metrics.dialogue.tomiinek.matching import (
    SEARCHED,
    Venues,
    VenueSearch,
    is_like,
    response_form,
    state_form,
)

REQUESTABLE = ("PHONE", "ADDRESS", "POST", "REFERENCE", "TRAINID")
TOTAL = "total"
_TRAIN, _TRAINID, _REFERENCE, _NAME = "train", "TRAINID", "REFERENCE", "NAME"

Forms = Mapping[str, Mapping[str, str]]


class DomainGoal(NamedTuple):
    """What a user wants of a domain: constraints, and what they ask for, as placeholders."""

    informable: Mapping[str, str]
    requestable: frozenset[str] = frozenset()


class Judgement(NamedTuple):
    """Whether each domain, and the whole, was informed of and a success. No success is judged without inform."""

    inform: dict[str, bool]
    success: dict[str, bool]

    @property
    def is_informed(self) -> bool:
        return self.inform[TOTAL]

    @property
    def is_success(self) -> bool:
        return self.success.get(TOTAL, False)


def judge_dialogue(
    goals: Mapping[str, DomainGoal],
    responses: Sequence[str],
    states: Sequence[Forms],
    active: Sequence[Sequence[str]],
    booked: Sequence[Sequence[str]],
    search: VenueSearch,
) -> Judgement:
    """A dialogue by its delexicalised responses, turn by turn.

    `active` are the domains that each turn is about, `booked` those in which the gold dialogue has a booking.
    """
    offered: dict[str, Venues] = {}
    provided: dict[str, set[str]] = {domain: set() for domain in goals}
    for response, state, domains, bookings in zip(responses, states, active, booked, strict=True):
        for domain in goals:
            if domain in domains:
                if _NAME in response or (_TRAINID in response and domain == _TRAIN):
                    _offer(domain, state, offered, search)
                provided[domain].update(_provided(response, domain in bookings))
    inform = {domain: _is_informed(domain, goal, offered.get(domain), search) for domain, goal in goals.items()}
    inform[TOTAL] = all(inform.values())
    success: dict[str, bool] = {}
    if inform[TOTAL]:
        success = {
            domain: all(item in provided[domain] for item in goal.requestable if item in REQUESTABLE)
            for domain, goal in goals.items()
        }
        success[TOTAL] = all(success.values())
    return Judgement(inform, success)


def _offer(domain: str, state: Forms, offered: dict[str, Venues], search: VenueSearch) -> None:
    """What the state finds is offered, unless it only widens what was offered before."""
    venues = search.fitting(domain, state.get(domain, {}))
    if venues and not (offered.get(domain) and offered[domain] <= venues):
        offered[domain] = venues


def _provided(response: str, is_booked: bool) -> list[str]:
    return [item for item in REQUESTABLE if item in response and (item != _REFERENCE or is_booked)]


def _is_informed(domain: str, goal: DomainGoal, offered: Venues | None, search: VenueSearch) -> bool:
    if domain not in SEARCHED or "name" in goal.informable:
        return True
    if not offered:
        return domain == _TRAIN and _TRAINID not in goal.requestable
    return offered <= search.fitting(domain, goal.informable)


def active_domains(states: Sequence[Forms]) -> list[list[str]]:
    """The domain that each turn is about, where it is not given: the one whose state changes most, else the one before.

    Of several that change at once one is chosen, and it alone is seen: the others still count as changed in the turn
    after.
    """
    estimates: list[list[str]] = []
    seen: dict[str, Mapping[str, str]] = {}
    for state in states:
        changed = {domain: len(slots.items() - seen.get(domain, {}).items()) for domain, slots in state.items()}
        most = max(changed.values(), default=0)
        if most:
            chosen = next(domain for domain, count in changed.items() if count == most)
            seen[chosen] = state[chosen]
            estimates.append([chosen])
        else:
            estimates.append(estimates[-1] if estimates else [])
    return estimates


_SAME_VALUE = 95
_EPSILON = 1e-10


class TurnTracking(NamedTuple):
    """The slots of a turn: matched, predicted, true; and whether all match."""

    is_joint: bool
    matched: int
    predicted: int
    true: int


class Tracking(NamedTuple):
    """Forms tracking over many turns: joint accuracy and F1 in percent, precision and recall as shares."""

    joint_accuracy: float
    slot_f1: float
    slot_precision: float
    slot_recall: float


def track_turn(predicted: Forms, true: Forms) -> TurnTracking:
    """Slots of one turn. Values match where one is nearly a part of the other: "1" and "10" do."""
    predicted_slots, gold = _flat(predicted), _flat(true)
    matched = sum([slot in predicted_slots and is_match(predicted_slots[slot], value) for slot, value in gold.items()])
    is_joint = predicted_slots.keys() == gold.keys() and matched == len(gold)
    return TurnTracking(is_joint, matched, len(predicted_slots), len(gold))


def is_match(predicted: str, true: str) -> bool:
    """Whether two values count as the same."""
    return predicted == true or is_like(predicted, true, _SAME_VALUE)


def tracking(turns: Iterable[TurnTracking]) -> Tracking:
    """Over all turns, with the small number in every divisor that the standard evaluator adds."""
    rows = list(turns)
    joint = sum(row.is_joint for row in rows) / (len(rows) + _EPSILON)
    matched = sum(row.matched for row in rows)
    precision = matched / (sum(row.predicted for row in rows) + _EPSILON)
    recall = matched / (sum(row.true for row in rows) + _EPSILON)
    f1 = 2 * precision * recall / (precision + recall + _EPSILON)
    return Tracking(100 * joint, 100 * f1, precision, recall)


def _flat(state: Forms) -> dict[tuple[str, str], str]:
    return {(domain, slot): value for domain, slots in state.items() for slot, value in slots.items()}


_TOKEN = re.compile(r"[\w']+|[^\w\s]")
SEGMENT = 50


class Richness(NamedTuple):
    """Figures over all responses together. None where there is too little text."""

    mean_length: float | None
    """Tokens in a response."""
    entropy: float | None
    """Bits in a token."""
    conditional_entropy: float | None
    """Bits in a token, where the token before it is known."""
    msttr: float | None
    """The mean share of distinct tokens in segments of fifty."""
    distinct_unigrams: int
    distinct_bigrams: int
    distinct_trigrams: int


def richness(responses: Iterable[str]) -> Richness:
    """The richness of responses. N-grams do not reach from one response into the next; segments do."""
    tokens = [_TOKEN.findall(response) for response in responses]
    unigrams, bigrams, trigrams = (_grams(tokens, size) for size in (1, 2, 3))
    single, double = _entropy(unigrams), _entropy(bigrams)
    firsts = _entropy(Counter(gram[0] for gram in bigrams.elements()))
    return Richness(
        mean_length=sum(map(len, tokens)) / len(tokens) if tokens else None,
        entropy=single,
        conditional_entropy=None if double is None or firsts is None else double - firsts,
        msttr=_msttr([token for row in tokens for token in row]),
        distinct_unigrams=len(unigrams),
        distinct_bigrams=len(bigrams),
        distinct_trigrams=len(trigrams),
    )


def _grams(rows: Iterable[Sequence[str]], size: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(row[start : start + size]) for row in rows for start in range(len(row) - size + 1))


def _entropy(grams: Counter[tuple[str, ...]] | Counter[str]) -> float | None:
    total = sum(grams.values())
    return fsum(-count / total * log2(count / total) for count in grams.values()) if total else None


def _msttr(tokens: Sequence[str]) -> float | None:
    segments = [tokens[start : start + SEGMENT] for start in range(0, len(tokens) - SEGMENT + 1, SEGMENT)]
    return fsum(len(set(segment)) / SEGMENT for segment in segments) / len(segments) if segments else None


def corpus_bleu(responses: Sequence[str], references: Sequence[str]) -> float:
    """BLEU of all responses together, with one reference each, from 0 to 100."""
    try:
        sacrebleu = import_module("sacrebleu")
    except ImportError:
        raise UsageError("BLEU needs sacrebleu", hint="pip install 'convoscope[bleu]'") from None
    # `force` keeps it from complaining of texts that are cut into tokens, as these are.
    return float(sacrebleu.corpus_bleu(list(responses), [list(references)], force=True).score)


State = Mapping[str, Mapping[str, Any]]


class GoldDialogue(NamedTuple):
    """What is true of a dialogue: its goals, and per turn of the agent the response, the state and what was booked."""

    goals: Mapping[str, DomainGoal]
    responses: Sequence[str]
    states: Sequence[State]
    booked: Sequence[Sequence[str]]


class Coverage(NamedTuple):
    """How much of the gold dialogues was predicted. What is missing scores as empty."""

    dialogues: int
    expected_dialogues: int
    turns: int
    expected_turns: int
    unknown: tuple[str, ...]
    """Predicted dialogues that are not in the gold; they do not count."""


class StandardFigures(NamedTuple):
    """The figures of the standard evaluator: rates in percent with one decimal. None: not measured."""

    inform: float | None
    success: float | None
    bleu: float | None
    tracking: Tracking | None
    richness: Richness
    coverage: Coverage

    @property
    def combined(self) -> float | None:
        """BLEU plus half of inform and success."""
        if self.bleu is None or self.inform is None or self.success is None:
            return None
        return self.bleu + (self.inform + self.success) / 2


def dialogue_key(id: str) -> str:
    """The id as predictions write it: lower case, without `.json`."""
    return id.lower().removesuffix(".json")


def judge_prediction(turns: Sequence[Mapping[str, Any]], gold: GoldDialogue, search: VenueSearch) -> Judgement:
    """Inform and success of one dialogue. Without predicted states the gold ones are taken; missing turns are empty."""
    number = len(gold.responses)
    padded = [*turns[:number], *({} for _ in range(number - len(turns)))]
    states = [state_form(turn.get("state", true)) for turn, true in zip(padded, gold.states, strict=True)]
    is_given = all("active_domains" in turn for turn in turns)
    active = [turn.get("active_domains", ()) for turn in padded] if is_given else active_domains(states)
    responses = [response_form(turn.get("response", "")) for turn in padded]
    return judge_dialogue(gold.goals, responses, states, active, gold.booked, search)


def evaluate(
    predictions: Mapping[str, Sequence[Mapping[str, Any]]],
    gold: Mapping[str, GoldDialogue],
    search: VenueSearch,
    *,
    with_bleu: bool = True,
) -> StandardFigures:
    """All figures of `{dialogue: [{response, state, active_domains}]}` against the gold. The input is not changed."""
    predicted = {dialogue_key(id): turns for id, turns in predictions.items()}
    true = {dialogue_key(id): dialogue for id, dialogue in gold.items()}
    judgements, tracked, pairs, turns = [], [], [], 0
    has_states = any("state" in turn for id in true for turn in predicted.get(id, ()))
    for id, dialogue in true.items():
        own = predicted.get(id, ())
        turns += min(len(own), len(dialogue.responses))
        judgements.append(judge_prediction(own, dialogue, search))
        for index, response in enumerate(dialogue.responses):
            turn = own[index] if index < len(own) else {}
            pairs.append((response_form(turn.get("response", "")), response_form(response)))
            if has_states:
                truth = state_form(dialogue.states[index], drops_dontcare=True)
                tracked.append(track_turn(state_form(turn.get("state", {})), truth))
    return StandardFigures(
        inform=_percent([judgement.is_informed for judgement in judgements]),
        success=_percent([judgement.is_success for judgement in judgements]),
        bleu=corpus_bleu(*zip(*pairs, strict=True)) if with_bleu and pairs else None,
        tracking=tracking(tracked) if tracked else None,
        richness=richness([response for response, _ in pairs]),
        coverage=Coverage(
            sum(id in predicted for id in true),
            len(true),
            turns,
            len(pairs),
            tuple(sorted(predicted.keys() - true.keys())),
        ),
    )


def _percent(verdicts: Sequence[bool]) -> float | None:
    return round(100 * sum(verdicts) / len(verdicts), 1) if verdicts else None
