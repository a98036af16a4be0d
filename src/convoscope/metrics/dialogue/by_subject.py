"""Slots, intents and domains as subjects: a run is grouped by them (dialogue, 1.1, 1.2 and 1.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import HIGHER, RATIO, SHARE, axis, metric
from convoscope.metrics.dialogue.declared import NO_INTENT, PREDICTIONS, TRACKING, TRIAGE, TRUTH, no_domain, without
from convoscope.metrics.dialogue.frames import dialogue_turns, turn_scores
from convoscope.metrics.dialogue.values import State
from convoscope.scores.observation import Observation, counted, not_applicable, ratio, unmeasured
from convoscope.scores.reducers import COUNTS, POOLED_COUNTS, RATIO_OF_SUMS, Reduce
from convoscope.scores.reducers import RATIO as RATIO_WITHIN
from convoscope.views.items import WHOLE, Subject

SLOT = axis("slot")
INTENT = axis("intent")
SERVICE = axis("service")

_NEEDS = (PREDICTIONS, TRUTH)


@metric(
    "dialogue.slot_f1",
    version=2,
    observes=SLOT,
    unit=RATIO,
    better=HIGHER,
    needs=_NEEDS,
    reduce=Reduce(COUNTS, POOLED_COUNTS),
    component=TRACKING,
    label="slot values right, by slot",
    importance=5,
    sensitive_to=(),
)
def slot_f1(conversation: Conversation) -> Iterator[Observation]:
    """Of each slot, how often is its value found, and how often is a predicted value true?

    Over the turns of a dialogue: a right value is found; a wrong one is both wrongly found and missed.
    """
    right: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    true: Counter[str] = Counter()
    is_tracked = False
    for turn in dialogue_turns(conversation):
        if turn.truth.state is None or turn.predicted.state is None:
            continue
        is_tracked = True
        ours, gold = _flat(turn.predicted.state), _flat(turn.truth.state)
        predicted.update(ours.keys())
        true.update(gold.keys())
        right.update([slot for slot, value in ours.items() if gold.get(slot) == value])
    for place, slot in enumerate(sorted(true | predicted)):
        hits = right[slot]
        yield counted(Subject(SLOT, slot, place), tp=hits, fp=predicted[slot] - hits, fn=true[slot] - hits)
    if not true and not predicted:
        yield not_applicable(WHOLE, "no_slots") if is_tracked else unmeasured(WHOLE, "not_predicted")


def _flat(state: State) -> dict[str, str]:
    return {f"{domain}-{slot}": value for domain, slots in state.items() for slot, value in slots.items()}


@metric(
    "dialogue.intent_recall",
    version=2,
    observes=INTENT,
    unit=SHARE,
    better=HIGHER,
    needs=_NEEDS,
    reduce=Reduce(RATIO_WITHIN, RATIO_OF_SUMS),
    component=TRIAGE,
    sensitive_to=(),
)
def intent_recall(conversation: Conversation) -> Iterator[Observation]:
    """Of each intent, in how many of the turns that have it was it predicted?"""
    turns = [turn for turn in dialogue_turns(conversation) if turn.truth.intents]
    known = [turn for turn in turns if turn.predicted.intents is not None]
    true = Counter(intent for turn in known for intent in turn.truth.intents or ())
    right = Counter(
        intent for turn in known for intent in turn.truth.intents or () if intent in (turn.predicted.intents or ())
    )
    yield from _shares(INTENT, right, true)
    if not true:
        yield unmeasured(WHOLE, "not_predicted") if turns else not_applicable(WHOLE, "no_active_intent")


@metric(
    "dialogue.domain_recall",
    version=2,
    observes=SERVICE,
    unit=SHARE,
    better=HIGHER,
    needs=_NEEDS,
    reduce=Reduce(RATIO_WITHIN, RATIO_OF_SUMS),
    component=TRIAGE,
    sensitive_to=(),
)
def domain_recall(conversation: Conversation) -> Iterator[Observation]:
    """Of each domain, how many of the turns that are about it were routed rightly?"""
    rows = list(zip(dialogue_turns(conversation), turn_scores(conversation), strict=True))
    true = Counter(domain for turn, score in rows if score.domain is not None for domain in turn.truth.domains or ())
    right = Counter(domain for turn, score in rows if score.domain for domain in turn.truth.domains or ())
    yield from _shares(SERVICE, right, true)
    if not true:
        reasons = {no_domain(turn) for turn, _ in rows} - {NO_INTENT}
        yield without(WHOLE, max(reasons) if reasons else NO_INTENT)


def _shares(kind: str, right: Counter[str], true: Counter[str]) -> Iterator[Observation]:
    for place, (name, total) in enumerate(sorted(true.items())):
        yield ratio(Subject(kind, name, place), right[name], total, empty="no_turn")
