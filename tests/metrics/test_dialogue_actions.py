"""What names of acts, tools and intents say is done, and what can be told without a database of venues."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from convoscope.conversation import Conversation, Participant, Text, Utterance
from convoscope.conversation.annotations import Act, Frame
from convoscope.metrics.dialogue.evaluators import DialogueEvaluator
from convoscope.metrics.dialogue.policy import (
    BOOK,
    INFORM,
    OTHER,
    REQUEST,
    SEARCH,
    act_use,
    booking_attempts,
    intent_books,
    no_doing,
)
from convoscope.metrics.dialogue.turns import act, turn_of
from convoscope.metrics.dialogue.venues import VenueDatabase
from convoscope.metrics.needs import NAMED
from convoscope.metrics.registry import installed
from convoscope.resources import Verdict

ARMS = {"hotel": {"name": "university arms", "bookday": "saturday", "bookpeople": "2", "bookstay": "2"}}
NAMELESS = {"hotel": {"bookday": "saturday", "bookpeople": "2", "bookstay": "2"}}


@pytest.mark.parametrize(
    ("name", "actions", "books", "domain"),
    [
        ("Booking-Book", {BOOK}, True, ""),
        ("Train-OfferBooked", {BOOK}, True, "train"),
        ("NOTIFY_SUCCESS", {BOOK}, True, ""),
        ("Booking-NoBook", {BOOK, INFORM}, False, ""),
        ("Hotel-Inform", {SEARCH, INFORM}, False, "hotel"),
        ("general-bye", {INFORM}, False, "general"),
        ("REQ_MORE", {INFORM}, False, ""),
        ("book_hotel", {BOOK}, True, "hotel"),  # the seed's own name
        ("bookHotel", {BOOK}, True, "hotel"),
        ("BookHotel", {BOOK}, True, "hotel"),
        ("book-hotel", {BOOK}, True, "hotel"),
        ("hotel_book", {BOOK}, True, "hotel"),
        ("hotel.reserve", {BOOK}, True, "hotel"),
        ("make_hotel_booking", {BOOK}, True, "hotel"),
        ("train_offerbooked", {BOOK}, True, "train"),
        ("request_info", {REQUEST}, False, "request"),
        ("request_missing_slots", {REQUEST}, False, "missing_slots"),
        ("ask_for_name", {REQUEST}, False, "for_name"),
        ("search_hotel", {SEARCH}, False, "hotel"),
        ("find_restaurant", {SEARCH}, False, "restaurant"),
        ("hotel_inform", {SEARCH, INFORM}, False, "hotel"),
        ("cancel_booking", {OTHER}, False, ""),
        ("order_status", {SEARCH}, False, ""),
        ("bookmark_page", set(), False, "bookmark"),
        ("frobnicate", set(), False, ""),
        ("", set(), False, ""),
    ],
)
def test_what_an_act_does(name: str, actions: set[str], books: bool, domain: str) -> None:
    use = act_use(name)
    assert (use.actions, use.books, use.domain) == (actions, books, domain)


@pytest.mark.parametrize(
    ("intent", "books"),
    [
        ("book_hotel", (True, "hotel")),
        ("reserverestaurant", (True, "restaurant")),
        ("make_reservation", (True, "")),
        ("find_hotel", (False, "hotel")),
        ("order_status", (False, "")),
        ("police", (False, "police")),
    ],
)
def test_which_intents_are_bookings(intent: str, books: tuple[bool, str]) -> None:
    assert intent_books(intent) == books


def turn(slots: dict[str, dict[str, str]], intent: str, *acts: Any, said: str = "", **fields: Any) -> Any:
    return turn_of(
        predicted_slots=slots, true_slots=slots, true_intents=intent, predicted_acts=acts, response=said, **fields
    )


# The seed, metric 8: the predicted action is `book_hotel`, the state lacks `bookstay`.


def test_an_act_that_books_by_its_name_can_break_the_rule() -> None:
    stay = {"hotel": {"name": "arms", "bookday": "monday", "bookpeople": "2"}}
    assert booking_attempts(turn(stay, "book_hotel", "book_hotel")) == (("hotel", ("bookstay",)),)
    assert booking_attempts(turn(ARMS, "book_hotel", "book_hotel")) == (("hotel", ()),)
    # The name of a room says no domain that has a rule, but it holds one.
    lone = turn_of(predicted_slots=stay, predicted_acts=["book_hotel_room"])
    assert booking_attempts(lone) == (("hotel", ("bookstay",)),)


def test_an_act_that_nobody_knows_is_unmeasured_and_not_compliant() -> None:
    assert no_doing(turn({}, "book_hotel", "frobnicate")) == "act_unknown"
    assert no_doing(turn({}, "book_hotel", "frobnicate", "Booking-Book")) == ""
    assert no_doing(turn({}, "book_hotel")) == ""  # predicted to do nothing
    assert no_doing(turn_of(calls="frobnicate")) == "tool_unknown"
    assert no_doing(turn_of(true_slots={})) == "not_predicted"


def figures(*turns: Any, venues: VenueDatabase | None = None) -> dict[str, float]:
    evaluator = DialogueEvaluator(venues=venues)
    for one in turns:
        evaluator.add_turn(one)
    return evaluator.figures()


# The seed, metrics 9 and 10, without a database of venues.


@pytest.mark.parametrize("booking", ["book_hotel", "Booking-Book", "bookHotel"])
def test_a_booking_goal_needs_no_database(booking: str) -> None:
    booked = figures(turn(ARMS, "book_hotel", booking, said="Booking confirmed for University Arms"))
    assert (booked["system_correctness"], booked["goal_completion"], booked["policy_violations"]) == (1, 1, 0)
    early = figures(turn(NAMELESS, "book_hotel", booking, said="Booked."))
    assert (early["system_correctness"], early["goal_completion"], early["policy_violations"]) == (0, 0, 1)


def test_asking_for_what_is_missing_is_right_and_completes_nothing() -> None:
    asked = figures(turn(NAMELESS, "book_hotel", "request_info", said="I need the hotel name."))
    assert (asked["system_correctness"], asked["goal_completion"]) == (1, 0)


def test_a_search_instead_of_a_booking_is_wrong_whatever_a_database_says() -> None:
    assert figures(turn(ARMS, "book_hotel", "Hotel-Inform", said="Let me search."))["system_correctness"] == 0


def test_what_only_a_database_can_tell_is_unmeasured() -> None:
    dear = {"restaurant": {"area": "centre"}}
    invents = turn(dear, "find_restaurant", "Restaurant-Recommend", said="The Golden Dragon is nice.")
    assert not {"system_correctness", "goal_completion"} & figures(invents).keys()
    # A booking whose reply tells a phone number: the number may be made up.
    tells = turn(ARMS, "book_hotel", "book_hotel", said="Booked. Their phone number is 01223 351241.")
    assert "system_correctness" not in figures(tells)
    assert figures(tells)["goal_completion"] == 1  # it was booked, and nothing was asked
    # Were only wrong answers to searches told, the figure would fall: none is.
    for answer in ("search_restaurant", "general-bye", act("Restaurant-Inform", name="golden dragon")):
        assert not {"system_correctness", "goal_completion"} & figures(turn(dear, "find_restaurant", answer)).keys()


def test_a_name_that_the_user_gave_needs_no_database() -> None:
    said = "I have booked the University Arms for you."
    assert figures(turn(ARMS, "book_hotel", "book_hotel", said=said))["system_correctness"] == 1
    other = "I have booked the Grand Palace for you."
    assert "system_correctness" not in figures(turn(ARMS, "book_hotel", "book_hotel", said=other))


def test_an_unknown_act_may_be_the_booking_that_is_missing() -> None:
    unknown = figures(turn(ARMS, "book_hotel", "frobnicate"))
    assert not {"system_correctness", "goal_completion", "policy_violations"} & unknown.keys()
    known = figures(turn(ARMS, "book_hotel", "frobnicate", "book_hotel"))
    assert (known["system_correctness"], known["goal_completion"]) == (1, 1)


def test_goals_are_not_missed_where_nobody_says_what_was_done() -> None:
    states = turn_of(predicted_slots=ARMS, true_slots=ARMS, true_intents="book_hotel", response="Booked.")
    assert "goal_completion" not in figures(states)
    assert "goal_completion" not in figures(states, venues=VenueDatabase({"hotel": [{"name": "university arms"}]}))


def test_a_goal_with_a_question_is_measured_with_a_database_alone_whatever_came_of_it() -> None:
    asks = {"requested": [("hotel", "phone")]}
    venues = VenueDatabase({"hotel": [{"name": "university arms", "phone": "01223351241"}]})
    for acts, said, met in (
        (["book_hotel"], "University Arms: 01223 351241", 1),
        (["book_hotel"], "University Arms: 01223 999999", 0),
        (["general-bye"], "", 0),
    ):
        one = turn(ARMS, "book_hotel", *acts, said=said, **asks)
        assert "goal_completion" not in figures(one)
        assert figures(one, venues=venues)["goal_completion"] == met


# The judge is shown what was predicted (dialogue, 1.11).


class Recorder:
    """A judge that keeps what it is shown."""

    identity = "test/recorder@1"

    def __init__(self) -> None:
        self.shown: list[str] = []

    async def ask(self, prompt: str, schema: Mapping[str, Any]) -> Verdict:
        del schema
        self.shown.append(json.loads(prompt.rpartition("\nassistant: ")[2].partition("\n</data>")[0]))
        return Verdict({"score": 4, "quote": self.shown[-1]}, self.identity)


def conversation(*frames: Frame, **fields: Any) -> Conversation:
    said = [("u", "A hotel?"), ("a", "A person's reply."), ("u", "And a table?"), ("a", "Another of a person.")]
    return Conversation(
        id="d",
        participants=(Participant("u", "user"), Participant("a", "assistant")),
        timeline=tuple(Utterance(seq=seq, speaker=who, intended=Text(text)) for seq, (who, text) in enumerate(said)),
        frames=frames,
        **fields,
    )


def judged(talk: Conversation) -> tuple[list[str], list[Any]]:
    judge = Recorder()
    declared = installed().declared["dialogue.response_quality"]
    observations = asyncio.run(declared.ask(talk, judge=judge))
    return judge.shown, [one.value if one.value is not None else one.reason for one in observations]


GOLD_ACTS = Frame(seq=1, origin="gold", acts=(Act("Hotel-Inform"),))


def test_a_predicted_reply_is_judged_and_not_that_of_the_data_set() -> None:
    predicted = Frame(seq=1, origin="predicted", response="Gull House.")
    assert judged(conversation(GOLD_ACTS, predicted)) == (["Gull House."], [4.0, "not_predicted"])


def test_a_prediction_that_is_missing_or_empty_is_not_judged() -> None:
    empty = Frame(seq=3, origin="predicted", response="")
    first = Frame(seq=1, origin="predicted", response="Gull House.")
    assert judged(conversation(first, empty)) == (["Gull House."], [4.0, "not_predicted"])
    states = Frame(seq=0, origin="predicted", slots={"area": ("north",)})
    assert judged(conversation(GOLD_ACTS, states)) == ([], ["not_predicted"] * 2)


def test_states_beside_an_annotated_dialogue_bring_no_words() -> None:
    states = Frame(seq=0, origin="predicted", slots={"area": ("north",)})
    gold = Frame(seq=0, origin="gold", slots={"area": ("north",)})
    assert judged(conversation(gold, states, extras={"predicted_beside": True}))[0] == []


def test_an_agent_that_writes_its_state_is_judged_by_its_own_words() -> None:
    own = Frame(seq=0, origin="predicted", slots={"area": ("north",)})
    for talk in (conversation(), conversation(own)):
        assert judged(talk) == (["A person's reply.", "Another of a person."], [4.0, 4.0])


def test_what_people_said_in_an_annotated_dialogue_is_not_judged() -> None:
    """Nothing was predicted, so nothing is the system's; an ordinary chat is judged only if the metric is named."""
    declared = installed().declared["dialogue.response_quality"]
    states = Frame(seq=0, origin="gold", slots={"area": ("north",)})
    own = Frame(seq=0, origin="predicted", slots={"area": ("north",)})

    def missing(*frames: Frame, named: bool = False) -> list[str]:
        talk, held = conversation(*frames), frozenset([NAMED] if named else [])
        return [need.code for need in declared.needs if need.code != "no_judge" and not need.met(talk, held)]

    assert missing(GOLD_ACTS, named=True) == missing(states, named=True) == ["no_predictions"]
    # An agent that writes its state speaks for itself, too.
    assert missing(named=False) == missing(own) == ["not_named"]
    assert missing(named=True) == missing(own, named=True) == missing(GOLD_ACTS, own) == []
