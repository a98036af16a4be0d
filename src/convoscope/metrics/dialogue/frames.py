"""A conversation's frames as the turns that dialogue metrics take: truth and prediction side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from convoscope.conversation import Conversation, Frame
from convoscope.conversation.lazy import cached_on_argument
from convoscope.conversation.turns import Turn
from convoscope.metrics.dialogue.accuracy import intent_domain
from convoscope.metrics.dialogue.completion import Completion, completion
from convoscope.metrics.dialogue.memory import TRANSFERABLE
from convoscope.metrics.dialogue.policy import BOOKING_RULES, PolicyRules
from convoscope.metrics.dialogue.turn_scores import TurnScores, score_turns
from convoscope.metrics.dialogue.turns import DialogueTurn, turn_of
from convoscope.metrics.dialogue.venues import VenueDatabase
from convoscope.metrics.dialogue.without_venues import judge_without_venues

GOLD, PREDICTED = "gold", "predicted"
RULES_FIELD, TRANSFERABLE_FIELD = "booking_rules", "transferable_slots"

Slots = dict[str, dict[str, tuple[str, ...]]]


@cached_on_argument
def dialogue_turns(conversation: Conversation) -> tuple[DialogueTurn, ...]:
    """The turns in which the user speaks. A turn without a prediction is empty wherever others predict something."""
    by_seq: dict[int, list[Frame]] = {}
    for frame in conversation.frames:
        by_seq.setdefault(frame.seq, []).append(frame)
    truth_speaks = others_speak(conversation)
    is_named = _intents_name_services(conversation.frames)
    predicts = _predicted_fields(conversation.frames, is_named)
    booked: dict[str, int] = {}
    return tuple(
        [
            _turn(turn, by_seq, predicts, truth_speaks, is_named)._replace(booked=_newly_booked(turn, by_seq, booked))
            for turn in conversation.turns
            if turn.user
        ]
    )


def others_speak(conversation: Conversation) -> bool:
    """Whether others held the dialogue: its words and calls are then not those of the system that predicts.

    They are where the truth has acts, and where predictions lie beside an annotated dialogue.
    """
    return bool(conversation.extras.get("predicted_beside")) or any(
        frame.origin == GOLD and frame.acts for frame in conversation.frames
    )


def predicted_replies(conversation: Conversation) -> dict[int, str] | None:
    """The predicted reply in each turn that has one; None where the words of the log are the agent's own."""
    if not has_predictions(conversation):
        return None
    responses = {
        frame.seq: frame.response
        for frame in conversation.frames
        if frame.origin == PREDICTED and frame.response is not None
    }
    if not responses and not others_speak(conversation):
        return None
    spoken = {turn.id: [event.seq for event in (*turn.assistant, *turn.user)] for turn in conversation.turns}
    replies = {id: next((responses[seq] for seq in seqs if seq in responses), "") for id, seqs in spoken.items()}
    return {id: reply for id, reply in replies.items() if reply.strip()}


def _newly_booked(turn: Turn, by_seq: Mapping[int, list[Frame]], booked: dict[str, int]) -> tuple[str, ...]:
    """The domains with more bookings than before, by the truth; `booked` keeps how many there are."""
    domains = []
    for frame in (frame for event in turn.assistant for frame in by_seq.get(event.seq, ())):
        if frame.origin == GOLD and frame.booked and len(frame.booked) > booked.get(frame.service, 0):
            booked[frame.service] = len(frame.booked)
            domains.append(frame.service)
    return tuple(domains)


@cached_on_argument
def turn_scores(conversation: Conversation) -> list[TurnScores]:
    """What the rules say of each turn, without a database."""
    return score_turns(dialogue_turns(conversation), None, rules_of(conversation))


def judged_turns(conversation: Conversation, venues: VenueDatabase | None) -> list[TurnScores]:
    """What the rules and a database, if there is one, say of each turn; kept with the conversation, as several metrics
    look at it."""
    kept: tuple[VenueDatabase | None, list[TurnScores]] | None = conversation.__dict__.get(_JUDGED)
    if kept is None or kept[0] is not venues:
        turns = dialogue_turns(conversation)
        if venues is None:
            kept = (None, judge_without_venues(turns, turn_scores(conversation)))
        else:
            kept = (venues, score_turns(turns, venues, rules_of(conversation)))
        conversation.__dict__[_JUDGED] = kept
    return kept[1]


_JUDGED = f"{__name__}.judged_turns"


def completion_of(conversation: Conversation, venues: VenueDatabase | None) -> Completion:
    """Whether the user's goals were met."""
    return completion(dialogue_turns(conversation), judged_turns(conversation, venues), rules_of(conversation), venues)


def rules_of(conversation: Conversation) -> PolicyRules:
    """The rules of booking that came with the data, by domain, or the usual ones."""
    rules = conversation.extras.get(RULES_FIELD)
    if not isinstance(rules, dict):
        return BOOKING_RULES
    return {domain.casefold(): _names(slots) for domain, slots in rules.items() if isinstance(slots, list)}


def transferable_slots(conversation: Conversation) -> tuple[str, ...]:
    """The slots that are carried over from domain to domain, as the data say, or the usual ones."""
    slots = conversation.extras.get(TRANSFERABLE_FIELD)
    return _names(slots) if isinstance(slots, list) else TRANSFERABLE


def _names(slots: list[Any]) -> tuple[str, ...]:
    return tuple([str(slot).strip().casefold() for slot in slots])


def has_predictions(conversation: Conversation) -> bool:
    """Whether somebody predicted anything."""
    return any(frame.origin == PREDICTED for frame in conversation.frames)


def has_truth(conversation: Conversation) -> bool:
    """Whether anything is annotated."""
    return any(frame.origin == GOLD for frame in conversation.frames)


_FIELDS = ("intents", "slots", "acts", "response")


def _predicted_fields(frames: Sequence[Frame], is_named: bool) -> frozenset[str]:
    predicted = [frame for frame in frames if frame.origin == PREDICTED]
    fields = {name for name in _FIELDS if any(getattr(frame, name) is not None for frame in predicted)}
    tells_domains = is_named or all(frame.service for frame in predicted if frame.intents)
    if ("intents" in fields and tells_domains) or any(frame.is_active is not None for frame in predicted):
        fields.add("domains")
    return frozenset(fields)


def _intents_name_services(frames: Sequence[Frame]) -> bool:
    """Whether the true intents tell their services, as `find_hotel` does: then predicted ones do, too."""
    named = [(frame.service, intent) for frame in frames if frame.origin == GOLD for intent in frame.intents or ()]
    return all(intent_domain(intent) == service.casefold() for service, intent in named)


def _turn(
    turn: Turn, by_seq: Mapping[int, list[Frame]], predicts: frozenset[str], truth_speaks: bool, is_named: bool
) -> DialogueTurn:
    asked = [frame for said in turn.user for frame in by_seq.get(said.seq, ())]
    answered = [frame for said in turn.assistant for frame in by_seq.get(said.seq, ())]
    true_asked, ours_asked = _of(asked, GOLD), _of(asked, PREDICTED)
    true_answered, ours_answered = _of(answered, GOLD), _of(answered, PREDICTED)
    response = next((frame.response for frame in ours_answered if frame.response is not None), None)
    if response is None:
        response = "" if "response" in predicts or truth_speaks else turn.assistant_text
    empty: Any = dict.fromkeys(predicts, ())
    return turn_of(
        predicted_slots=_slots(ours_asked) or ({} if "slots" in predicts else None),
        true_slots=_slots(true_asked),
        predicted_intents=_intents(ours_asked) or empty.get("intents"),
        true_intents=_intents(true_asked),
        predicted_domains=_domains(ours_asked, is_named) or empty.get("domains"),
        true_domains=_domains(true_asked, False),
        predicted_acts=_acts(ours_answered) or empty.get("acts"),
        true_acts=_acts(true_answered),
        requested=[(frame.service, slot) for frame in true_asked for slot in frame.requested or ()],
        copied=[(frame.service, span.slot) for frame in true_asked for span in frame.spans if span.copied_from],
        response=response,
        calls=() if truth_speaks else [call.name for call in turn.tool_calls],
        tells_domains=False,
        number=turn.id,
    )


def _of(frames: Sequence[Frame], origin: str) -> list[Frame]:
    return [frame for frame in frames if frame.origin == origin]


def _slots(frames: Sequence[Frame]) -> Slots | None:
    states = {frame.service: frame.slots for frame in frames if frame.slots is not None}
    return states if states else None


def _intents(frames: Sequence[Frame]) -> list[str] | None:
    annotated = [frame.intents for frame in frames if frame.intents is not None]
    return [intent for intents in annotated for intent in intents] if annotated else None


def _domains(frames: Sequence[Frame], is_named: bool) -> list[str] | None:
    """The domains that a turn is about: as it says, or those with an intent.

    An intent without a service tells its domain only where intents are named by it.
    """
    if any(frame.is_active is not None for frame in frames):
        return [frame.service for frame in frames if frame.is_active]
    intents = [(frame.service, intent) for frame in frames for intent in frame.intents or ()]
    if all(frame.intents is None for frame in frames) or not (is_named or all(service for service, _ in intents)):
        return None
    return [service or intent_domain(intent) for service, intent in intents]


def _acts(frames: Sequence[Frame]) -> list[Any] | None:
    annotated = [frame.acts for frame in frames if frame.acts is not None]
    return [act for acts in annotated for act in acts] if annotated else None
