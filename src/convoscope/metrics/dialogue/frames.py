"""A conversation's frames as the turns that dialogue metrics take: truth and prediction side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from convoscope.conversation import Conversation, Frame
from convoscope.conversation.lazy import cached_on_argument
from convoscope.conversation.turns import Turn
from convoscope.metrics.dialogue.goals import TRANSFERABLE, Completion, completion
from convoscope.metrics.dialogue.policy import BOOKING_RULES, PolicyRules
from convoscope.metrics.dialogue.turn_scores import TurnScores, judge_turns, score_turns
from convoscope.metrics.dialogue.turns import DialogueTurn, aligned_state, annotation, intent_domain
from convoscope.metrics.dialogue.venues import VenueDatabase
from convoscope.metrics.examples import example

GOLD, PREDICTED = "gold", "predicted"
RULES_FIELD, TRANSFERABLE_FIELD = "booking_rules", "transferable_slots"
_FIELDS = ("intents", "slots", "acts", "response")


def has_predictions(conversation: Conversation) -> bool:
    """Whether anything was predicted."""
    return any(frame.origin == PREDICTED for frame in conversation.frames)


def has_truth(conversation: Conversation) -> bool:
    """Whether anything is annotated."""
    return any(frame.origin == GOLD for frame in conversation.frames)


def others_speak(conversation: Conversation) -> bool:
    """Whether others held the dialogue: its text and calls are then not those of the system that predicts.

    They did where the truth has acts, and where predictions are companion files of an annotated dialogue.
    """
    return bool(conversation.extras.get("predicted_beside")) or any(
        frame.origin == GOLD and frame.acts for frame in conversation.frames
    )


@cached_on_argument
def dialogue_turns(conversation: Conversation) -> tuple[DialogueTurn, ...]:
    """The turns in which the user speaks. A turn without a prediction is empty wherever others predict something."""
    read = _TurnReader(conversation)
    return tuple([read.turn(turn) for turn in conversation.turns if turn.user])


class _TurnReader:
    """Reads the frames of a conversation turn by turn."""

    def __init__(self, conversation: Conversation) -> None:
        frames = conversation.frames
        self.by_seq: dict[int, list[Frame]] = {}
        for frame in frames:
            self.by_seq.setdefault(frame.seq, []).append(frame)
        self.others_speak = others_speak(conversation)
        self.bookings: dict[str, int] = {}
        """How many bookings the truth has so far, by domain."""
        named = [(frame.service, intent) for frame in frames if frame.origin == GOLD for intent in frame.intents or ()]
        self.is_named = all(intent_domain(intent) == service.casefold() for service, intent in named)
        """Whether the true intents name their services, as `find_hotel` does: then predicted ones do, too."""
        predicted = [frame for frame in frames if frame.origin == PREDICTED]
        self.predicts = {name for name in _FIELDS if any(getattr(frame, name) is not None for frame in predicted)}
        names_domains = self.is_named or all(frame.service for frame in predicted if frame.intents)
        if ("intents" in self.predicts and names_domains) or any(frame.is_active is not None for frame in predicted):
            self.predicts.add("domains")

    def turn(self, turn: Turn) -> DialogueTurn:
        asked, asked_predicted = self._frames(turn.user)
        answered, answered_predicted = self._frames(turn.assistant)
        response = next((frame.response for frame in answered_predicted if frame.response is not None), None)
        if response is None:
            response = "" if "response" in self.predicts or self.others_speak else turn.assistant_text
        true_slots, slots = _slots(asked), _slots(asked_predicted) or ({} if "slots" in self.predicts else None)
        states = aligned_state(slots or {}, true_slots or {})
        empty: Any = dict.fromkeys(self.predicts, ())
        return DialogueTurn(
            truth=annotation(
                domains=_domains(asked, False),
                intents=_joined(asked, "intents"),
                state=None if true_slots is None else states.true,
                acts=_joined(answered, "acts"),
                requested=[(frame.service, slot) for frame in asked for slot in frame.requested or ()],
            ),
            predicted=annotation(
                domains=_domains(asked_predicted, self.is_named) or empty.get("domains"),
                intents=_joined(asked_predicted, "intents") or empty.get("intents"),
                state=None if slots is None else states.predicted,
                acts=_joined(answered_predicted, "acts") or empty.get("acts"),
                own_state=None if states.own is states.predicted else states.own,
            ),
            response=response,
            calls=() if self.others_speak else tuple([call.name for call in turn.tool_calls]),
            booked=self._newly_booked(answered),
            copied=frozenset(
                [
                    (frame.service.casefold(), span.slot.casefold())
                    for frame in asked
                    for span in frame.spans
                    if span.copied_from
                ]
            ),
            number=turn.id,
        )

    def _frames(self, events: Sequence[Any]) -> tuple[list[Frame], list[Frame]]:
        """The frames of what is said: of the truth, and predicted."""
        frames = [frame for event in events for frame in self.by_seq.get(event.seq, ())]
        return (
            [frame for frame in frames if frame.origin == GOLD],
            [frame for frame in frames if frame.origin == PREDICTED],
        )

    def _newly_booked(self, answered: Sequence[Frame]) -> tuple[str, ...]:
        """The domains with more bookings than before, by the truth."""
        domains = []
        for frame in answered:
            if frame.booked and len(frame.booked) > self.bookings.get(frame.service, 0):
                self.bookings[frame.service] = len(frame.booked)
                domains.append(frame.service)
        return tuple(domains)


def _slots(frames: Sequence[Frame]) -> dict[str, dict[str, tuple[str, ...]]] | None:
    return {frame.service: frame.slots for frame in frames if frame.slots is not None} or None


def _joined(frames: Sequence[Frame], field: str) -> list[Any] | None:
    """The intents or acts of all frames; None where no frame has the field."""
    annotated = [items for frame in frames if (items := getattr(frame, field)) is not None]
    return [item for items in annotated for item in items] if annotated else None


def _domains(frames: Sequence[Frame], is_named: bool) -> list[str] | None:
    """The domains that a turn is about: as it says, or those with an intent.

    An intent without a service names its domain only where intents are named by it.
    """
    if any(frame.is_active is not None for frame in frames):
        return [frame.service for frame in frames if frame.is_active]
    intents = [(frame.service, intent) for frame in frames for intent in frame.intents or ()]
    if all(frame.intents is None for frame in frames) or not (is_named or all(service for service, _ in intents)):
        return None
    return [service or intent_domain(intent) for service, intent in intents]


def predicted_replies(conversation: Conversation) -> dict[int, str] | None:
    """The predicted reply in each turn that has one; None where the text of the log is the agent's own."""
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


@cached_on_argument
def turn_scores(conversation: Conversation) -> list[TurnScores]:
    """What the labels say of each turn, without a database."""
    return score_turns(dialogue_turns(conversation), rules=rules_of(conversation))


def judged_turns(conversation: Conversation, venues: VenueDatabase | None) -> list[TurnScores]:
    """The same with a verdict on each reply; kept with the conversation, as several metrics look at it."""
    kept: tuple[VenueDatabase | None, list[TurnScores]] | None = conversation.__dict__.get(_JUDGED)
    if kept is None or kept[0] is not venues:
        kept = venues, judge_turns(dialogue_turns(conversation), turn_scores(conversation), venues)
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
    return {domain.casefold(): _slot_names(slots) for domain, slots in rules.items() if isinstance(slots, list)}


def transferable_slots(conversation: Conversation) -> tuple[str, ...]:
    """The slots that are carried over from domain to domain, as the data say, or the usual ones."""
    slots = conversation.extras.get(TRANSFERABLE_FIELD)
    return _slot_names(slots) if isinstance(slots, list) else TRANSFERABLE


def _slot_names(slots: list[Any]) -> tuple[str, ...]:
    return tuple([str(slot).strip().casefold() for slot in slots])


def labelled(*turns: tuple[str, str], reply: str = "Yes.", response: str = "", **fields: Any) -> Conversation:
    """A dialogue for examples: the true and the predicted labels of each turn, in short.

    `find_hotel` is an intent, `hotel-area=north` a slot, `hotel-phone?` what the user asks for, `Booking-Book` or
    `Hotel-Inform:phone=555` an act of the reply. `response` is the predicted reply to each turn.
    """
    frames: list[dict[str, Any]] = []
    for index, sides in enumerate(turns):
        for origin, text in zip((GOLD, PREDICTED), sides, strict=True):
            frames += [{**frame, "origin": origin} for frame in _labelled_frames(text.split(), 2 * index)]
        if response:
            frames.append({"seq": 2 * index + 1, "origin": PREDICTED, "response": response})
    return example(*(("user: Hello.", f"assistant: {reply}") * len(turns)), frames=frames, **fields)


def _labelled_frames(labels: Sequence[str], seq: int) -> list[dict[str, Any]]:
    """Frames of the user's utterance by service, and one of the reply to it."""
    services: dict[str, dict[str, Any]] = {}
    acts: list[dict[str, Any]] = []
    for label in labels:
        name, _, value = label.partition("=")
        service, _, slot = name.partition("-")
        if label[0].isupper():
            type, _, slot = name.partition(":")
            acts.append({"type": type, "slots": [{"slot": slot, "value": value}] if slot else []})
        elif value:
            services.setdefault(service, {}).setdefault("slots", {})[slot] = [value]
        elif slot:
            services.setdefault(service, {}).setdefault("requested", []).append(slot.removesuffix("?"))
        else:
            services.setdefault(intent_domain(label), {}).setdefault("intents", []).append(label)
    asked = [{"seq": seq, "service": service, **frame} for service, frame in services.items()]
    return [*asked, {"seq": seq + 1, "acts": acts}] if acts else asked
