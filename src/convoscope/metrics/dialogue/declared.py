"""The dialogue metrics of a run: eleven questions, each at turn, dialogue and dataset level (dialogue, 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from convoscope.conversation import ASSISTANT, Conversation
from convoscope.metrics.declaration import (
    CONVERSATION,
    COUNT,
    HIGHER,
    LOWER,
    MEAN_OF_ALL,
    RATIO,
    SHARE,
    SUM_OVER_SUM,
    TURN,
    axis,
    metric,
)
from convoscope.metrics.dialogue.frames import (
    completion_of,
    dialogue_turns,
    has_predictions,
    has_truth,
    judged_turns,
    transferable_slots,
    turn_scores,
)
from convoscope.metrics.dialogue.goals import NOT_PREDICTED, Transfer, transfers, true_transfers
from convoscope.metrics.dialogue.policy import no_doing
from convoscope.metrics.dialogue.turn_scores import PairCount, SetMatch, TurnScores
from convoscope.metrics.dialogue.turns import DialogueTurn, State
from convoscope.metrics.dialogue.venues import VenueDatabase
from convoscope.metrics.needs import Need, english_words
from convoscope.scores.observation import Observation, counted, in_turn, measured, not_applicable, ratio, unmeasured
from convoscope.scores.reducers import (
    COUNTS,
    MEAN_OF_CONVERSATIONS,
    MEAN_OF_SUBJECTS,
    POOLED_COUNTS,
    RATIO_OF_SUMS,
    SUM,
    Reduce,
)
from convoscope.views.items import WHOLE, Subject

TRIAGE, ACTION = "triage", "action, supervisor"
TRACKING, STATE_MEMORY, POLICY = "triage, memory", "memory, triage", "policy"
SUPERVISION, WHOLE_SYSTEM = "supervisor, action", "end-to-end"
SLOT, INTENT, SERVICE = axis("slot"), axis("intent"), axis("service")

PREDICTIONS = Need(
    "no_predictions",
    "frames of origin predicted",
    "a file of predictions beside the dialogues, or a log in which the agent writes its state",
    has_predictions,
)
TRUTH = Need("no_true_state", "frames of origin gold", "dialogues with an annotated state, such as MultiWOZ", has_truth)
NO_INTENT = "no_active_intent"

MACRO = Reduce()
_MICRO = {"micro": MEAN_OF_SUBJECTS}
_dialogue_metric = partial(metric, version=2, better=HIGHER, needs=(PREDICTIONS, TRUTH), sensitive_to=())
_macro = partial(_dialogue_metric, observes=TURN, unit=SHARE, reduce=MACRO, also=_MICRO)
_micro = partial(_dialogue_metric, observes=TURN, unit=SHARE, reduce=MEAN_OF_ALL, also={"macro": MEAN_OF_CONVERSATIONS})
_pooled = partial(_dialogue_metric, observes=TURN, unit=RATIO, reduce=Reduce(COUNTS, POOLED_COUNTS))
_recall = partial(_dialogue_metric, unit=SHARE, reduce=SUM_OVER_SUM, component=TRIAGE)

Reason = Callable[[DialogueTurn], str]
"""Why the truth of a turn has nothing to compare with; "" where it has."""


def _each_turn(conversation: Conversation) -> Iterator[tuple[Subject, DialogueTurn, TurnScores]]:
    for turn, score in zip(dialogue_turns(conversation), turn_scores(conversation), strict=True):
        yield in_turn(turn.number), turn, score


def _verdicts(conversation: Conversation, field: str, no_truth: Reason) -> Iterator[Observation]:
    """A yes or no of each turn, as `TurnScores` has it."""
    for subject, turn, score in _each_turn(conversation):
        value = getattr(score, field)
        yield without(subject, no_truth(turn)) if value is None else measured(subject, float(value))


def _sets(
    conversation: Conversation,
    field: str,
    no_truth: Reason,
    observe: Callable[[Subject, SetMatch], Observation],
) -> Iterator[Observation]:
    """The intents or acts of each turn, compared as sets."""
    for subject, turn, score in _each_turn(conversation):
        match: SetMatch | None = getattr(score, field)
        yield without(subject, no_truth(turn)) if match is None else observe(subject, match)


def _is_equal(subject: Subject, match: SetMatch) -> Observation:
    return measured(subject, float(match.is_equal))


def _set_counts(subject: Subject, match: SetMatch) -> Observation:
    return counted(subject, tp=match.right, fp=match.predicted - match.right, fn=match.true - match.right)


def without(subject: Subject, reason: str) -> Observation:
    """No intent is no opportunity; a truth or a prediction that is not there is missing."""
    if reason == NO_INTENT:
        return not_applicable(subject, NO_INTENT)
    return unmeasured(subject, reason or NOT_PREDICTED)


def no_domain(turn: DialogueTurn) -> str:
    """The domain is not annotated, or there is no domain: the user has no intent."""
    if turn.truth.domains is None:
        return "no_true_domain" if turn.truth.intents else NO_INTENT
    return "" if turn.truth.domains else NO_INTENT


def _no_intent(turn: DialogueTurn) -> str:
    return "" if turn.truth.intents else NO_INTENT


def _no_acts(turn: DialogueTurn) -> str:
    return "" if turn.truth.acts is not None else "no_true_acts"


def _no_state(turn: DialogueTurn) -> str:
    return "" if turn.truth.state is not None else "no_true_state"


@_macro("dialogue.domain_accuracy", component=TRIAGE, label="turns sent to the right domain", importance=6)
def domain_accuracy(conversation: Conversation) -> Iterator[Observation]:
    """Was the turn routed to the right domain?

    1 where the predicted domain is one of those in which the user truly has an intent. A turn in which they have none
    is not applicable.

    >>> value(domain_accuracy, labelled(("find_hotel", "find_hotel"), ("find_hotel", "find_taxi")))
    0.5
    """
    return _verdicts(conversation, "domain", no_domain)


@_macro("dialogue.domain_accuracy", variant="first_frame", component=TRIAGE)
def domain_accuracy_first_frame(conversation: Conversation) -> Iterator[Observation]:
    """Was the turn routed to the first domain in which the user has an intent?

    Where several intents are active at once, the order of the annotation decides who is right.

    >>> value(domain_accuracy_first_frame, labelled(("find_hotel find_taxi", "find_taxi")))
    0.0
    """
    return _verdicts(conversation, "first_domain", no_domain)


@_recall("dialogue.domain_recall", observes=SERVICE)
def domain_recall(conversation: Conversation) -> Iterator[Observation]:
    """Of each domain, how many of the turns that are about it were routed rightly?

    >>> value(domain_recall, labelled(("find_hotel", "find_hotel"), ("find_hotel", "find_taxi")))
    0.5
    """
    rows = list(zip(dialogue_turns(conversation), turn_scores(conversation), strict=True))
    true = Counter(domain for turn, score in rows if score.domain is not None for domain in turn.truth.domains or ())
    right = Counter(domain for turn, score in rows if score.domain for domain in turn.truth.domains or ())
    yield from _shares(SERVICE, right, true)
    if not true:
        reasons = {no_domain(turn) for turn, _ in rows} - {NO_INTENT}
        yield without(WHOLE, max(reasons) if reasons else NO_INTENT)


def _shares(kind: str, right: Counter[str], true: Counter[str]) -> Iterator[Observation]:
    for index, (name, total) in enumerate(sorted(true.items())):
        yield ratio(Subject(kind, name, index), right[name], total, empty="no_turn")


@_macro("dialogue.intent_accuracy", component=TRIAGE, label="turns with the right intent", importance=6)
def intent_accuracy(conversation: Conversation) -> Iterator[Observation]:
    """Are the predicted intents exactly the true ones?

    Sets are compared, in lower case. A turn without an active intent is not applicable.

    >>> value(intent_accuracy, labelled(("find_hotel find_taxi", "find_hotel")))
    0.0
    """
    return _sets(conversation, "intent", _no_intent, _is_equal)


@_macro("dialogue.intent_accuracy", variant="any", component=TRIAGE)
def intent_accuracy_any(conversation: Conversation) -> Iterator[Observation]:
    """Is every predicted intent a true one, where at least one was predicted?

    Where the user has several intents at once, one of them is enough.

    >>> value(intent_accuracy_any, labelled(("find_hotel find_taxi", "find_hotel")))
    1.0
    """
    return _sets(conversation, "intent", _no_intent, _is_among)


def _is_among(subject: Subject, match: SetMatch) -> Observation:
    return measured(subject, float(match.predicted > 0 and match.right == match.predicted))


@_pooled("dialogue.intent_f1", component=TRIAGE)
def intent_f1(conversation: Conversation) -> Iterator[Observation]:
    """How many intents are found, and how many of the predicted ones are true?

    F1 of the intents of all turns together, with precision and recall beside it.

    >>> round(value(intent_f1, labelled(("find_hotel find_taxi", "find_hotel"))), 3)  # 2 · 1 ÷ (2 · 1 + 0 + 1)
    0.667
    """
    return _sets(conversation, "intent", _no_intent, _set_counts)


@_recall("dialogue.intent_recall", observes=INTENT)
def intent_recall(conversation: Conversation) -> Iterator[Observation]:
    """Of each intent, in how many of the turns that have it was it predicted?

    >>> value(intent_recall, labelled(("find_hotel", "find_hotel"), ("find_hotel", "find_taxi")))
    0.5
    """
    truths = [turn for turn in dialogue_turns(conversation) if turn.truth.intents]
    turns = [(turn.truth.intents or (), turn.predicted.intents) for turn in truths]
    known = [(true, predicted) for true, predicted in turns if predicted is not None]
    total = Counter(intent for true, _ in known for intent in true)
    right = Counter(intent for true, predicted in known for intent in true if intent in predicted)
    yield from _shares(INTENT, right, total)
    if not total:
        yield without(WHOLE, "" if turns else NO_INTENT)


@_macro("dialogue.action_type_accuracy", component=ACTION, label="replies of the right kind", importance=5)
def action_type_accuracy(conversation: Conversation) -> Iterator[Observation]:
    """Does the agent do what it ought to: are its act types exactly the true ones?

    The acts are those of the reply to the user's turn, as plain sets. A turn whose reply has no annotated acts is
    unmeasured.

    >>> value(action_type_accuracy, labelled(("Hotel-Inform", "Hotel-Inform"), ("Hotel-Inform", "Hotel-Request")))
    0.5
    """
    return _sets(conversation, "acts", _no_acts, _is_equal)


@_macro("dialogue.action_type_accuracy", variant="no_general", component=ACTION)
def action_type_accuracy_no_general(conversation: Conversation) -> Iterator[Observation]:
    """Are the act types the true ones, greetings, thanks and goodbyes left aside?

    >>> value(action_type_accuracy_no_general, labelled(("Hotel-Inform General-Greet", "Hotel-Inform")))
    1.0
    """
    return _verdicts(conversation, "acts_without_general", _no_acts)


@_macro("dialogue.action_type_accuracy", variant="with_slots", component=ACTION)
def action_type_accuracy_with_slots(conversation: Conversation) -> Iterator[Observation]:
    """Are the acts the true ones, with all their slots and values?

    >>> value(action_type_accuracy_with_slots, labelled(("Hotel-Inform:area=north", "Hotel-Inform:area=south")))
    0.0
    """
    return _verdicts(conversation, "acts_with_slots", _no_acts)


@_pooled("dialogue.action_type_f1", component=ACTION)
def action_type_f1(conversation: Conversation) -> Iterator[Observation]:
    """How many act types are found, and how many of the predicted ones are true?

    F1 of the act types of all turns together, with precision and recall beside it.

    >>> round(value(action_type_f1, labelled(("Hotel-Inform Hotel-Request", "Hotel-Inform"))), 3)  # 2 ÷ (2 + 0 + 1)
    0.667
    """
    return _sets(conversation, "acts", _no_acts, _set_counts)


@_micro("dialogue.slot_accuracy", component=TRACKING, label="slots tracked", importance=6)
def slot_accuracy(conversation: Conversation) -> Iterator[Observation]:
    """How many of the true slot values has the agent tracked?

    Right (domain, slot, value) ÷ true ones, of the whole state so far. It is a recall: what was invented besides does
    not count. A turn without true slots is not applicable.

    >>> value(slot_accuracy, labelled(("hotel-area=north hotel-stars=4", "hotel-area=north hotel-stars=3")))  # 1 of 2
    0.5
    """
    for subject, turn, score in _each_turn(conversation):
        if score.slots is None:
            yield without(subject, _no_state(turn))
        else:
            yield ratio(subject, score.slots.number, score.slots.total, empty="no_true_slots")


@_pooled("dialogue.slot_f1", observes=SLOT, component=TRACKING, label="slot values right, by slot", importance=5)
def slot_f1(conversation: Conversation) -> Iterator[Observation]:
    """Of each slot, how often is its value found, and how often is a predicted value true?

    Over the turns of a dialogue: a right value is found; a wrong one is both wrongly found and missed.

    >>> value(slot_f1, labelled(("hotel-area=north", "hotel-area=north"), ("hotel-area=north", "hotel-area=south")))
    0.5
    """
    right: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    true: Counter[str] = Counter()
    is_tracked = False
    for turn in dialogue_turns(conversation):
        if turn.truth.state is None or turn.predicted.state is None:
            continue
        is_tracked = True
        predicted_slots, gold = _flat(turn.predicted.state), _flat(turn.truth.state)
        predicted.update(predicted_slots.keys())
        true.update(gold.keys())
        right.update([slot for slot, value in predicted_slots.items() if gold.get(slot) == value])
    for index, slot in enumerate(sorted(true | predicted)):
        hits = right[slot]
        yield counted(Subject(SLOT, slot, index), tp=hits, fp=predicted[slot] - hits, fn=true[slot] - hits)
    if not true and not predicted:
        yield not_applicable(WHOLE, "no_slots") if is_tracked else unmeasured(WHOLE, NOT_PREDICTED)


def _flat(state: State) -> dict[str, str]:
    return {f"{domain}-{slot}": value for domain, slots in state.items() for slot, value in slots.items()}


@_micro("dialogue.jga", component=STATE_MEMORY, label="turns with all slots right", importance=7)
def jga(conversation: Conversation) -> Iterator[Observation]:
    """Is the whole state of the dialogue right (joint goal accuracy)?

    1 where every slot of every domain has a right value and no other slot has one. Empty values do not count;
    "don't care" is a value; where several values are listed as true, any of them is right.

    >>> value(jga, labelled(("hotel-area=north", "hotel-area=north"), ("hotel-area=north", "hotel-area=south")))
    0.5
    """
    return _verdicts(conversation, "joint_goal", _no_state)


@_micro("dialogue.slot_hallucination", better=LOWER, component=SUPERVISION, label="slot values made up", importance=7)
def slot_hallucination(conversation: Conversation) -> Iterator[Observation]:
    """How many of the predicted slot values in the active domains are not true?

    Wrong value, wrong slot or wrong domain. The active domains are those in which the user truly has an intent, those
    that the turn was routed to, and those of which the truth has no slot at all. 0 where nothing was predicted in them;
    a turn without an active intent is not applicable.

    >>> value(slot_hallucination, labelled(("find_hotel hotel-area=north", "hotel-area=north hotel-stars=4")))  # 1 of 2
    0.5
    """
    for subject, turn, score in _each_turn(conversation):
        yield _invented(subject, score.invented, _no_state(turn) or no_domain(turn))


@_micro("dialogue.slot_hallucination", variant="all_domains", better=LOWER, component=SUPERVISION)
def slot_hallucination_all_domains(conversation: Conversation) -> Iterator[Observation]:
    """How many of the predicted slot values, in whatever domain, are not true?

    >>> value(slot_hallucination_all_domains, labelled(("hotel-area=north", "hotel-area=north taxi-day=monday")))
    0.5
    """
    for subject, turn, score in _each_turn(conversation):
        yield _invented(subject, score.invented_anywhere, _no_state(turn))


def _invented(subject: Subject, pairs: PairCount | None, reason: str) -> Observation:
    """No pair at all is 0 (dialogue, 1.6): the details say how many there were."""
    if pairs is None:
        return without(subject, reason)
    return measured(subject, pairs.share or 0.0, details={"invented": pairs.number, "predicted": pairs.total})


@_micro(
    "dialogue.entity_hallucination",
    better=LOWER,
    needs=(PREDICTIONS, english_words(ASSISTANT)),
    languages=("en",),
    component=SUPERVISION,
    label="names and details made up",
    importance=8,
)
def entity_hallucination(conversation: Conversation, venues: VenueDatabase) -> Iterator[Observation]:
    """How many of the names and details that the agent mentions does the database not bear out?

    Names of venues in the reply and its acts, and phone, address, postcode or reference that the database does not
    have for that venue. A turn that mentions none is not applicable.

    >>> venues = VenueDatabase({"hotel": [{"name": "Gull House", "phone": "555 0142"}]})
    >>> dialogue = labelled(("", "find_hotel"), reply="Gull House, phone 555 0199.")
    >>> value(entity_hallucination, dialogue, venues=venues)  # the name is right, the phone is not
    0.5
    """
    for turn, score in zip(dialogue_turns(conversation), judged_turns(conversation, venues), strict=True):
        invented = [f"{mention.field}: {mention.value}" for mention in score.invented_entities]
        yield ratio(
            in_turn(turn.number),
            len(invented),
            len(score.entities or ()),
            empty="no_entity_mentioned",
            details={"invented": invented} if invented else None,
        )


_memory = partial(
    _dialogue_metric,
    observes=CONVERSATION,
    unit=SHARE,
    reduce=MACRO,
    also={"micro": RATIO_OF_SUMS},
    component=STATE_MEMORY,
)


@_memory("dialogue.memory_transfer", needs=(PREDICTIONS,), label="constraints carried over", importance=4)
def memory_transfer(conversation: Conversation) -> Observation:
    """When the dialogue changes its domain, are area and price range carried over?

    At each change of the predicted domain, each such slot that is filled in the old domain is an opportunity; it is
    taken where the new domain has the same value on that very turn. Truth is not looked at: users may want another
    area. Without an opportunity it is not applicable.

    >>> before = "find_hotel hotel-area=north hotel-pricerange=cheap"
    >>> value(memory_transfer, labelled(("", before), ("", f"find_restaurant {before} restaurant-area=north")))
    0.5
    """
    return _carried(transfers(dialogue_turns(conversation), transferable_slots(conversation)))


@_memory("dialogue.memory_transfer_gt", label="true constraints carried over", importance=5)
def memory_transfer_gt(conversation: Conversation) -> Observation:
    """Where the user truly takes a constraint over into a new domain, does the agent?

    An opportunity is such a slot that has the same true value in both domains by the end of the segment, or any slot
    that is annotated as copied. It is taken where the prediction holds the value by then.

    >>> before, after = "hotel-area=north", "hotel-area=north restaurant-area=north"
    >>> turns = (f"find_hotel {before}", before), (f"find_restaurant {after}", before)
    >>> value(memory_transfer_gt, labelled(*turns))
    0.0
    """
    return _carried(true_transfers(dialogue_turns(conversation), transferable_slots(conversation)))


def _carried(events: list[Transfer]) -> Observation:
    missed = [event for event in events if not event.is_carried]
    lost = [f"{event.from_domain} → {event.to_domain}: {event.slot} = {event.value}" for event in missed]
    carried = len(events) - len(lost)
    return ratio(WHOLE, carried, len(events), empty="no_opportunity", details={"lost": lost} if lost else None)


_policy = partial(_dialogue_metric, observes=TURN, better=LOWER, needs=(PREDICTIONS,), component=POLICY)


@_policy(
    "dialogue.policy_violations",
    unit=COUNT,
    reduce=Reduce(SUM, MEAN_OF_SUBJECTS),
    label="bookings against the rules",
    importance=8,
)
def policy_violations(conversation: Conversation) -> Iterator[Observation]:
    """How often does the agent book while a required slot is missing?

    A booking is an act such as Booking-Book, or an act or a tool with a name such as `book_hotel`,
    `make_hotel_booking` or `ReserveHotel`; to ask for what is missing is no booking. A turn with acts or tools whose
    names do not say whether they book is unmeasured. In a dialogue it is the number of turns with a violation, in a
    data set these ÷ turns.

    >>> value(policy_violations, labelled(("", "find_hotel hotel-name=gull Booking-Book")))  # no day, people, stay
    1.0
    """
    for subject, turn, score in _each_turn(conversation):
        reason = no_doing(turn)
        if reason and not score.is_violation:
            yield unmeasured(subject, reason)
        else:
            yield measured(subject, float(score.is_violation), details=_violations(score))


def _violations(score: TurnScores) -> dict[str, Any] | None:
    wrong = [{"domain": one.domain, "missing": list(one.missing)} for one in score.attempts if one.missing]
    return {"violations": wrong} if len(wrong) > 1 else next(iter(wrong), None)


@_policy("dialogue.policy_violations", variant="attempts", unit=SHARE, reduce=SUM_OVER_SUM)
def policy_violations_attempts(conversation: Conversation) -> Iterator[Observation]:
    """What share of the agent's bookings are against the rules?

    A turn can hold several: one in each domain that an act or a tool names. Turns in which it books nothing are not
    applicable.

    >>> full = "hotel-name=gull hotel-bookday=monday hotel-bookpeople=2 hotel-bookstay=1"
    >>> turns = ("", "find_hotel hotel-name=gull Booking-Book"), ("", f"find_hotel {full} Booking-Book")
    >>> value(policy_violations_attempts, labelled(*turns))
    0.5
    """
    for subject, turn, score in _each_turn(conversation):
        reason, wrong = no_doing(turn), sum([bool(attempt.missing) for attempt in score.attempts])
        if reason:
            yield unmeasured(subject, reason)
        else:
            yield ratio(subject, wrong, len(score.attempts), empty="no_booking", details=_violations(score))


@_macro("dialogue.system_correctness", component=WHOLE_SYSTEM, label="turns done right", importance=8)
def system_correctness(conversation: Conversation, venues: VenueDatabase | None = None) -> Iterator[Observation]:
    """Did the agent do the right thing, without inventing anything and within the rules?

    The right thing follows from the truth: search where the user wants to find something, book where all slots of a
    booking are there, request where one is missing, else acknowledge. It is wrong with a slot value or an entity that
    is made up, and with a booking against the rules. Without a database of venues a turn with a search is unmeasured,
    and so is a right reply that names a venue or a detail. So is a turn whose acts do not say what was done.

    >>> truth = "book_hotel hotel-name=gull"  # day, people and stay are missing: to request them is right
    >>> turns = (truth, "hotel-name=gull Hotel-Request"), (truth, "hotel-name=gull Booking-Book")
    >>> value(system_correctness, labelled(*turns))
    0.5
    """
    for turn, score in zip(dialogue_turns(conversation), judged_turns(conversation, venues), strict=True):
        subject = in_turn(turn.number)
        if score.is_correct is None:
            missing = NOT_PREDICTED if turn.truth.intents is not None else NO_TRUE_INTENT
            yield unmeasured(subject, score.undecided or missing)
        else:
            yield measured(subject, float(score.is_correct), details={"expected": score.expected})


NO_TRUE_INTENT = "no_true_intent"
_completed = partial(_dialogue_metric, observes=CONVERSATION, unit=SHARE, reduce=MACRO, component=WHOLE_SYSTEM)


@_completed("dialogue.goal_completion", label="users whose goal was met", importance=9)
def goal_completion(conversation: Conversation, venues: VenueDatabase | None = None) -> Observation:
    """Did the user get what they came for?

    Every booking was made with its slots filled, everything they asked for was answered by something that is not made
    up, and no booking was against the rules. Without a database of venues a dialogue in which they only book is
    measured; one in which they ask or look for something is not.

    >>> full = "hotel-name=gull hotel-bookday=monday hotel-bookpeople=2 hotel-bookstay=1"
    >>> value(goal_completion, labelled((f"book_hotel {full}", f"{full} Booking-Book")))
    1.0
    """
    result = completion_of(conversation, venues)
    if result.is_complete is None or not _has_intents(conversation):
        return unmeasured(WHOLE, result.undecided or NO_TRUE_INTENT)
    details = {"violations": result.violations, "unbooked": result.unbooked, "unanswered": result.unanswered}
    return measured(WHOLE, float(result.is_complete), details={name: part for name, part in details.items() if part})


def _has_intents(conversation: Conversation) -> bool:
    """Whether the truth says what the user wants."""
    return any(turn.truth.intents is not None for turn in dialogue_turns(conversation))


@_completed("dialogue.goal_completion", variant="bookings")
def goal_completion_bookings(conversation: Conversation, venues: VenueDatabase | None = None) -> Observation:
    """Did the user get what they came for, where they came to book?

    >>> value(goal_completion_bookings, labelled(("book_hotel hotel-name=gull", "hotel-name=gull Hotel-Request")))
    0.0
    """
    result = completion_of(conversation, venues)
    if not _has_intents(conversation):
        return unmeasured(WHOLE, NO_TRUE_INTENT)
    if not result.goals.bookings:
        return not_applicable(WHOLE, "no_booking_goal")
    if result.is_complete is None:
        return unmeasured(WHOLE, result.undecided)
    return measured(WHOLE, float(result.is_complete))
