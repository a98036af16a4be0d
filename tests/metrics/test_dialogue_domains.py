"""Domains, bookings and deliveries however a data set writes them: SGD, ABCD, tools of any name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.conversation import Conversation
from convoscope.metrics.dialogue.evaluators import DatasetEvaluator, DialogueEvaluator
from convoscope.metrics.dialogue.goals import completion
from convoscope.metrics.dialogue.policy import BOOK, booking_attempts, expected_action, tool_use
from convoscope.metrics.dialogue.turn_scores import score_turn, score_turns
from convoscope.metrics.dialogue.turns import act, turn_of
from convoscope.metrics.dialogue.venues import VenueDatabase
from convoscope.metrics.registry import installed
from support.logs import EXAMPLES, read, write_json, write_lines

VENUES = VenueDatabase(
    {
        "hotel": [{"name": "acorn guest house", "phone": "01223353888", "postcode": "cb41da"}],
        "restaurant": [{"name": "golden wok", "phone": "01223350688", "postcode": "cb43jb"}],
    }
)
STAY = {"hotel": {"name": "acorn", "bookday": "monday", "bookpeople": "2", "bookstay": "2"}}


def values(key: str, conversation: Conversation) -> list[float | None]:
    return [one.value for one in installed().declared[f"dialogue.{key}"](conversation)]


def reasons(key: str, conversation: Conversation) -> set[str]:
    return {one.reason for one in installed().declared[f"dialogue.{key}"](conversation)}


# Names of domains.

SERVICE = "Restaurants_2"


def sgd(tmp_path: Path, predicted_domain: str | None, **predicted: Any) -> Conversation:
    """A schema-guided dialogue of one turn, with a prediction beside it."""
    state = {"active_intent": "FindRestaurants", "requested_slots": [], "slot_values": {"city": ["San Jose"]}}
    frames = [{"service": SERVICE, "actions": [], "slots": [], "state": state}]
    acts = [{"act": "OFFER", "slot": "restaurant_name", "values": ["Bo"], "canonical_values": ["Bo"]}]
    turns = [
        {"speaker": "USER", "utterance": "Food in San Jose", "frames": frames},
        {"speaker": "SYSTEM", "utterance": "Bo?", "frames": [{"service": SERVICE, "actions": acts, "slots": []}]},
    ]
    write_json(tmp_path / "dialogues.json", [{"dialogue_id": "1_00000", "services": [SERVICE], "turns": turns}])
    record = {"dialogue_id": "1_00000", "turn_id": 0, "predicted_domain": predicted_domain, **predicted}
    write_lines(tmp_path / "predictions.jsonl", record)
    return read(tmp_path).only


def test_a_domain_with_an_underscore_is_one_name(tmp_path: Path) -> None:
    slots = {SERVICE: {"city": "San Jose", "moons": "two"}}  # one of two is invented
    talk = sgd(tmp_path, SERVICE, predicted_slots=slots, predicted_intent="FindRestaurants")
    assert values("domain_accuracy", talk) == [1.0]
    assert values("slot_hallucination", talk) == [0.5]
    assert values("slot_hallucination@all_domains", talk) == [0.5]


def test_another_domain_with_the_same_number_is_wrong(tmp_path: Path) -> None:
    assert values("domain_accuracy", sgd(tmp_path, "Hotels_2", predicted_slots={})) == [0.0]


def test_where_intents_do_not_tell_their_domain_a_prediction_without_one_is_unmeasured(tmp_path: Path) -> None:
    talk = sgd(tmp_path, None, predicted_intent="FindRestaurants")
    assert values("intent_accuracy", talk) == [1.0]
    assert reasons("domain_accuracy", talk) == {"not_predicted"}
    domainless = turn_of(predicted_intents="find_hotel", true_intents="find_hotel")
    assert domainless.predicted.domains == domainless.truth.domains == ("hotel",)  # a name such as this one tells it


def test_a_data_set_without_services_has_no_domain_to_be_right(tmp_path: Path) -> None:
    abcd = next((EXAMPLES / "abcd").glob("*.json"))
    (tmp_path / "dialogues.json").write_text(abcd.read_text())
    ids = [one.id for one in convoscope.read(tmp_path / "dialogues.json")]
    records = [{"dialogue_id": id, "turn_id": "0", "predicted_intent": "return_size"} for id in ids]
    write_lines(tmp_path / "predictions.jsonl", *records)
    talk = next(iter(convoscope.read(tmp_path)))
    assert set(values("domain_accuracy", talk)) == {None}
    assert "no_true_domain" in reasons("domain_accuracy", talk)
    assert any(value is not None for value in values("intent_accuracy", talk))


def test_a_domain_that_is_written_in_two_ways_is_one() -> None:
    turn = turn_of(
        predicted_slots={"Hotel": {"area": "north"}, "hotel": {"stars": "4"}},
        true_slots={"hotel": {"area": "north", "stars": "4"}},
    )
    assert score_turn(turn).joint_goal is True


# Plain values.


def test_a_name_by_itself_is_a_list_of_one() -> None:
    turn = turn_of(
        predicted_intents="find_hotel",
        true_intents=["find_hotel"],
        predicted_domains="hotel",
        predicted_acts="Hotel-Inform",
        true_acts=["Hotel-Inform"],
        calls="book_hotel",
        booked="hotel",
    )
    score = score_turn(turn)
    assert score.intent is not None
    assert score.acts is not None
    assert (score.intent.is_equal, score.domain, score.acts.is_equal) == (True, True, True)
    assert (turn.calls, turn.booked) == (("book_hotel",), ("hotel",))


def test_a_missing_prediction_scores_as_empty_and_counts() -> None:
    truth = {"true_slots": STAY, "true_intents": "book_hotel", "true_acts": "Hotel-Inform"}
    evaluator = DialogueEvaluator(venues=VENUES)
    evaluator.add_turn(**truth, predicted_slots=STAY, predicted_intents="book_hotel", predicted_acts="Hotel-Inform")
    evaluator.add_turn(**truth, is_missing=True)
    figures = evaluator.figures()
    for name in ("domain_accuracy", "intent_accuracy", "action_type_accuracy", "slot_accuracy", "jga"):
        assert figures[name] == 0.5, name  # one of two turns
    dataset = DatasetEvaluator()
    dataset.add(evaluator)
    assert dataset.figures()["jga"].value == 0.5


# Deliveries.


def is_complete(*turns) -> bool:
    return completion(turns, score_turns(turns, VENUES), venues=VENUES).is_complete


@pytest.mark.parametrize(
    ("acts", "delivered"),
    [
        (["Restaurant-Inform"], True),
        (["INFORM"], True),  # of the turn
        (["general-bye"], False),
        (["Restaurant-NoOffer"], False),
        (["Restaurant-Request"], False),
        (["Hotel-Inform"], False),  # of another domain
        (["GOODBYE"], False),
    ],
)
def test_a_search_wants_to_be_told_something(acts: list[str], delivered: bool) -> None:
    assert is_complete(turn_of(true_intents="find_restaurant", true_slots={}, predicted_acts=acts)) is delivered


@pytest.mark.parametrize(
    ("said", "acts", "delivered"),
    [
        ("", [act("Hotel-Inform", Phone="01223353888")], True),
        ("", [act("Hotel-Inform", Area="north"), act("Restaurant-Inform", Phone="01223350688")], False),
        ("", [act("Hotel-Inform", Area="north"), act("Hotel-NoOffer", Phone="01223353888")], False),
        ("acorn guest house : 01223353888", [act("Hotel-Inform")], True),
        ("golden wok : 01223350688", [act("Hotel-Inform")], False),
    ],
)
def test_what_is_told_of_one_domain_answers_no_question_about_another(said: str, acts: list, delivered: bool) -> None:
    turn = turn_of(
        true_intents="find_hotel", true_slots={}, predicted_acts=acts, requested=[("hotel", "phone")], response=said
    )
    assert is_complete(turn) is delivered


# Bookings.


def test_each_domain_that_is_named_is_a_booking_of_its_own() -> None:
    turn = turn_of(predicted_slots=STAY, true_slots=STAY, calls=["book_hotel", "book_restaurant"])
    assert booking_attempts(turn) == (
        ("hotel", ()),
        ("restaurant", ("name", "bookday", "bookpeople", "booktime")),
    )
    evaluator = DialogueEvaluator()
    evaluator.add_turn(turn)
    figures = evaluator.figures()
    assert (figures["policy_violations"], figures["policy_violations@attempts"]) == (1, 0.5)  # one turn, one of two


def test_a_booking_without_a_domain_is_the_one_that_lacks_least() -> None:
    about = ["restaurant", "hotel"]
    assert booking_attempts(turn_of(predicted_slots=STAY, true_domains=about, predicted_acts=["Booking-Book"])) == (
        ("hotel", ()),
    )
    # The tool booked; the act says so.
    both = turn_of(predicted_slots=STAY, true_domains=about, predicted_acts=["Booking-Book"], calls=["book_hotel"])
    assert booking_attempts(both) == (("hotel", ()),)
    # A train and a hotel.
    two = turn_of(predicted_slots=STAY, true_domains="hotel", predicted_acts=["Booking-Book", "Train-OfferBooked"])
    assert booking_attempts(two) == (("train", ()), ("hotel", ()))


@pytest.mark.parametrize(
    ("name", "books", "domain"),
    [
        ("book_hotel", True, "hotel"),
        ("bookHotel", True, "hotel"),
        ("make_hotel_booking", True, "hotel"),
        ("ReserveRestaurant", True, "restaurant"),
        ("create_reservation", True, ""),
        ("hotel.book", True, "hotel"),
        ("book_table", True, ""),  # of the turn
        ("place_order", True, ""),
        ("find_hotel", False, "hotel"),
        ("get_booking", False, ""),
        ("cancel_booking", False, ""),
        ("bookstore_search", False, "bookstore"),
        ("order_status", False, ""),
        ("user_order_lookup", False, "user"),
        ("book_availability", False, "book"),
    ],
)
def test_a_tool_books_by_its_name(name: str, books: bool, domain: str) -> None:
    assert tool_use(name)[:2] == (books, domain)


def test_a_service_that_is_named_in_full_is_the_one_that_the_tool_means() -> None:
    rules = {"restaurants_2": ("time",)}
    state = {SERVICE: {"city": "San Jose"}}
    for done in ({"calls": "ReserveRestaurant"}, {"predicted_acts": "NOTIFY_SUCCESS"}):
        turn = turn_of(predicted_slots=state, true_domains=SERVICE, true_intents="ReserveRestaurant", **done)
        assert booking_attempts(turn, rules) == (("restaurants_2", ("time",)),)
    assert expected_action(frozenset({"reserverestaurant"}), {}, {"restaurants_2": ()}, ("restaurants_2",)) == BOOK


def test_what_a_tool_does_that_nobody_knows_is_unmeasured() -> None:
    evaluator = DialogueEvaluator()
    evaluator.add_turn(predicted_slots={}, calls="frobnicate")
    assert "policy_violations" not in evaluator.figures()
