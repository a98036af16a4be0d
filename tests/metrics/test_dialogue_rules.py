"""The rules of the dialogue metrics on plain values: the seed's examples, empty cases, properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.metrics.dialogue.goals import completion, transfers, true_transfers
from convoscope.metrics.dialogue.policy import booking_attempts
from convoscope.metrics.dialogue.turn_scores import match_sets, match_states, score_turn, score_turns
from convoscope.metrics.dialogue.turns import DialogueTurn, act, aligned_state, canonical_state, folded, turn_of
from convoscope.metrics.dialogue.venues import VenueDatabase
from support.dialogue_mentions import entities

ARMS = {"hotel": {"name": "university arms", "bookday": "saturday", "bookpeople": "2", "bookstay": "2"}}
HILTON = {"hotel": {"name": "hilton", "bookday": "saturday", "bookpeople": "2", "bookstay": "2"}}
NAMELESS = {"hotel": {"bookday": "saturday", "bookpeople": "2", "bookstay": "2"}}
DEAR = {"restaurant": {"area": "centre", "pricerange": "expensive"}}
VENUES = VenueDatabase(
    {
        "hotel": [
            {"name": "university arms", "phone": "01223351241", "postcode": "cb21ad", "address": "regent street"},
            {"name": "hilton", "phone": "01223000001", "postcode": "cb11aa"},
        ],
        "restaurant": [
            {"name": "nandos", "phone": "01223902158", "postcode": "cb17dy"},
            {"name": "nandos city centre", "phone": "01223327908", "postcode": "cb23ar"},
        ],
        "taxi": {"taxi_phone": ["^[0-9]{10}$"]},
    }
)


def reply(slots: dict, intent: str, *acts, said: str = "", requested=(), predicted: dict | None = None) -> DialogueTurn:
    """A turn that is tracked rightly, and answered by these acts."""
    ours = slots if predicted is None else predicted
    return turn_of(
        predicted_slots=ours,
        true_slots=slots,
        predicted_intents=[intent],
        true_intents=[intent],
        predicted_acts=acts,
        true_acts=acts,
        requested=requested,
        response=said,
    )


def is_correct(turn: DialogueTurn) -> bool | None:
    return score_turn(turn, VENUES).is_correct


def is_complete(*turns: DialogueTurn) -> bool:
    return completion(turns, score_turns(turns, VENUES)).is_complete


# The seed's four examples of system correctness.

ASKS = reply({"hotel": {"bookpeople": "2"}}, "book_hotel", "Booking-Request", said="I need the hotel name")
BLOCKS = reply({"hotel": {"name": "hilton"}}, "book_hotel", "Booking-Request", said="I cannot complete the booking")
INVENTS = reply(
    DEAR,
    "find_restaurant",
    "Restaurant-Recommend",
    said="I recommend The Golden Dragon, phone: 123-456-7890",
    requested=[("restaurant", "phone")],
)
SEARCHES = reply(HILTON, "book_hotel", "Hotel-Inform", said="Let me search for hotels in that area...")
BOOKS = reply(ARMS, "book_hotel", "Booking-Book", said="Booking confirmed for University Arms")


@pytest.mark.parametrize(
    ("turn", "correct"), [(ASKS, True), (BLOCKS, True), (INVENTS, False), (SEARCHES, False), (BOOKS, True)]
)
def test_system_correctness_of_the_seeds_examples(turn: DialogueTurn, correct: bool) -> None:
    assert is_correct(turn) is correct


def test_an_invented_name_and_its_phone_are_both_hallucinations() -> None:
    assert [(one.field, one.is_known) for one in entities(INVENTS.response, VENUES)] == [
        ("name", False),
        ("phone", False),
    ]


# The seed's table: completion, correctness.


@pytest.mark.parametrize(
    ("turn", "completed", "correct"),
    [(BOOKS, True, True), (ASKS, False, True), (SEARCHES, False, False), (INVENTS, False, False)],
)
def test_task_completion_against_system_correctness(turn: DialogueTurn, completed: bool, correct: bool) -> None:
    assert (is_complete(turn), is_correct(turn)) == (completed, correct)


def test_task_completion_of_the_seeds_examples() -> None:
    assert is_complete(BOOKS)
    goodbye = turn_of(predicted_slots=NAMELESS, true_slots=NAMELESS, predicted_acts=["general-bye"])
    assert not is_complete(reply(NAMELESS, "book_hotel", "Booking-Request"), goodbye)  # no name
    never_mind = turn_of(predicted_slots=HILTON, true_slots=HILTON, predicted_acts=["general-bye"])
    assert not is_complete(reply(HILTON, "book_hotel", "Hotel-Inform"), never_mind)  # no booking


def test_a_violation_makes_the_task_incomplete_even_where_a_later_booking_is_right() -> None:
    assert not is_complete(reply(NAMELESS, "book_hotel", "Booking-Book"), BOOKS)


def test_a_request_is_answered_by_an_act_or_by_a_known_value_but_not_before_it() -> None:
    asks = {"requested": [("hotel", "phone")]}
    assert is_complete(reply({}, "find_hotel", act("Hotel-Inform", Phone="01223000001"), **asks, said="hilton"))
    assert is_complete(reply({}, "find_hotel", "Hotel-Inform", said="hilton: 01223 000001", **asks))
    assert not is_complete(reply({}, "find_hotel", "Hotel-Inform", said="hilton: 01223 351241", **asks))  # of the Arms
    assert not is_complete(
        reply({}, "find_hotel", act("Hotel-Inform", Phone="01223000001"), said="hilton"),
        reply({}, "find_hotel", "general-bye", **asks),
    )


# Policy: performing a booking, not hearing of one.


def test_only_a_performed_booking_can_break_the_rule() -> None:
    assert booking_attempts(ASKS) == ()
    assert booking_attempts(BOOKS) == (("hotel", ()),)
    assert booking_attempts(reply(NAMELESS, "book_hotel", "Booking-Book")) == (("hotel", ("name",)),)
    by_tool = turn_of(predicted_slots=NAMELESS, calls=["book_hotel"])
    assert booking_attempts(by_tool) == (("hotel", ("name",)),)
    assert booking_attempts(turn_of(predicted_slots={}, calls=["find_hotel"])) == ()
    train = reply({}, "book_train", "Train-OfferBooked")
    assert booking_attempts(train) == (("train", ()),)  # no rule for trains
    assert booking_attempts(train, {"train": ("bookpeople",)}) == (("train", ("bookpeople",)),)


# Sets and states.


def test_empty_against_empty_is_a_match() -> None:
    match = match_sets(frozenset(), frozenset())
    assert (match.is_equal, match.recall, match.precision, match.f1) == (True, 1.0, 1.0, 1.0)


def test_general_acts_count_in_the_headline_alone() -> None:
    turn = turn_of(predicted_acts=["Booking-Book"], true_acts=["Booking-Book", "general-reqmore"])
    score = score_turn(turn)
    assert (score.acts.is_equal, score.acts_without_general) == (False, True)


def test_acts_with_slots_compare_values() -> None:
    turn = turn_of(predicted_acts=[act("Hotel-Inform", area="north")], true_acts=[act("Hotel-Inform", area="south")])
    assert (score_turn(turn).acts.is_equal, score_turn(turn).acts_with_slots) == (True, False)


def test_any_listed_value_is_right_and_dontcare_has_one_form() -> None:
    ours, true, own = aligned_state(
        {"hotel": {"name": "The Acorn", "area": "don't care", "stars": "none"}},
        {"hotel": {"name": ("acorn guest house", "the acorn"), "area": ("dontcare",)}, "taxi": {}},
    )
    assert ours == true == {"hotel": {"name": "acorn guest house", "area": "dontcare"}}
    assert own == {"hotel": {"name": "the acorn", "area": "dontcare"}}


def test_a_turn_without_true_slots_has_no_slot_accuracy_but_a_joint_goal() -> None:
    score = score_turn(turn_of(predicted_slots={}, true_slots={}, true_intents=["find_hotel"], predicted_intents=[]))
    assert (score.slots.share, score.joint_goal, score.invented) == (None, True, (0, 0))


def test_slots_of_a_wrong_domain_are_invented() -> None:
    """The seed, metric 6, case 1: the user mentioned a restaurant, the system predicted hotel slots."""
    turn = turn_of(
        predicted_slots={"hotel": {"area": "north"}, "restaurant": {"area": "north"}},
        true_slots={"restaurant": {"area": "north"}},
        true_intents=["find_restaurant"],
        predicted_intents=["find_hotel"],
    )
    score = score_turn(turn)
    assert (score.invented, score.invented_anywhere) == ((1, 2), (1, 2))
    assert (score.domain, score.intent.is_equal, score.joint_goal) == (False, False, False)


def invented(predicted: dict, true: dict, about: str, routed: str | None = None) -> tuple[int, int] | None:
    return score_turn(
        turn_of(predicted_slots=predicted, true_slots=true, true_domains=about, predicted_domains=routed)
    ).invented


def test_the_domain_that_a_turn_was_routed_to_is_active() -> None:
    true = {"hotel": {"area": "north"}, "restaurant": {"area": "north"}}
    wrong_memory = {"hotel": {"area": "south"}, "restaurant": {"area": "north"}}
    assert invented(wrong_memory, true, about="restaurant", routed="restaurant") == (0, 1)  # of an earlier turn
    assert invented(wrong_memory, true, about="restaurant", routed="hotel") == (1, 2)
    assert invented(wrong_memory, true, about="restaurant") == (0, 1)


def test_a_domain_that_the_user_never_spoke_of_counts_whatever_the_turn_was_routed_to() -> None:
    true = {"restaurant": {"area": "north"}}
    assert invented({"hotel": {"area": "north"}}, true, about="restaurant") == (1, 1)
    assert invented({"hotel": {"area": "north"}}, true, about="restaurant", routed="restaurant") == (1, 1)
    assert invented({"taxi": {"leaveat": "9:00"}, **true}, true, about="restaurant", routed="restaurant") == (1, 2)


def test_values_that_are_listed_as_right_do_not_change_what_was_carried_over() -> None:
    """The prediction says "middle" in both domains; truth lists it as an alternative in one of them."""
    both = {"restaurant": {"area": "middle"}, "hotel": {"area": "middle"}}
    listed = {"restaurant": {"area": ("centre", "middle")}, "hotel": {"area": ("middle",)}}
    for truth in ({}, listed):
        turns = [
            turn_of(predicted_domains="restaurant", predicted_slots=both, true_slots=truth),
            turn_of(predicted_domains="hotel", predicted_slots=both, true_slots=truth),
        ]
        assert [(one.value, one.is_carried) for one in transfers(turns)] == [("middle", True)]


def test_what_nobody_predicts_is_not_scored() -> None:
    score = score_turn(turn_of(true_slots={}, true_intents=["find_hotel"], true_acts=[]))
    assert score[:10] == (None,) * 10
    assert score.is_correct is None


# Memory.


def test_a_switch_back_counts_again_and_a_value_must_be_there_at_once() -> None:
    north = {"restaurant": {"area": "north"}}
    both = {"restaurant": {"area": "north"}, "hotel": {"area": "north"}}
    turns = [
        turn_of(predicted_domains=["restaurant"], predicted_slots=north),
        turn_of(predicted_domains=["hotel"], predicted_slots=north),  # not carried
        turn_of(predicted_domains=["hotel"], predicted_slots=both),  # too late, and no switch
        turn_of(predicted_domains=["restaurant"], predicted_slots=both),  # back: carried
    ]
    assert [one.is_carried for one in transfers(turns)] == [False, True]
    assert transfers(turns, ("pricerange",)) == []


def test_against_the_truth_only_what_it_carries_counts_by_the_end_of_the_segment() -> None:
    north = {"restaurant": {"area": "north", "pricerange": "cheap"}}
    both = north | {"hotel": {"area": "north", "pricerange": "expensive"}}
    turns = [
        turn_of(true_intents=["find_restaurant"], true_slots=north, predicted_slots=north),
        turn_of(true_intents=["find_hotel"], true_slots=both, predicted_slots=north),
        turn_of(true_intents=[], true_slots=both, predicted_slots=both),
    ]
    assert [(one.slot, one.is_carried) for one in true_transfers(turns)] == [("area", True)]
    assert [one.is_carried for one in true_transfers(turns[:2])] == [False]


def test_every_slot_that_the_truth_copied_is_an_opportunity_however_many_intents_are_active() -> None:
    before = {"restaurant": {"area": "north", "bookday": "friday"}}
    true = before | {"hotel": {"area": "north", "bookday": "friday"}}
    ours = before | {"hotel": {"area": "north"}}
    both = ["find_restaurant", "find_hotel"]  # the first stays the restaurant: no change of domain is seen
    turns = [
        turn_of(true_intents="find_restaurant", true_slots=before, predicted_slots=before),
        turn_of(
            true_intents=both,
            true_slots=true,
            predicted_slots=before,
            copied=[("hotel", "area"), ("hotel", "bookday")],
        ),
        turn_of(true_intents=both, true_slots=true, predicted_slots=ours),
    ]
    assert [(one.from_domain, one.to_domain, one.slot, one.is_carried) for one in true_transfers(turns)] == [
        ("restaurant", "hotel", "area", True),  # by the end of the segment
        ("restaurant", "hotel", "bookday", False),
    ]


def test_a_copy_between_equal_values_counts_once() -> None:
    before = {"restaurant": {"area": "north"}}
    after = before | {"hotel": {"area": "north"}}
    turns = [
        turn_of(true_intents="find_restaurant", true_slots=before, predicted_slots=before),
        turn_of(true_intents="find_hotel", true_slots=after, predicted_slots=after, copied=[("hotel", "area")]),
    ]
    assert len(true_transfers(turns)) == 1


# Names of venues.


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("Nandos City Centre is nice", ["nandos city centre"]),  # not charged with nandos, too
        ("nandos is nice", ["nandos"]),
        ("hiltons", []),  # whole words alone
        ("", []),
    ],
)
def test_names_are_whole_words_the_longest_first(said: str, names: list[str]) -> None:
    assert VENUES.names_in(said) == names


def test_a_detail_belongs_to_the_venue_that_is_named() -> None:
    assert entities("The hilton, cb1 1aa", VENUES)[1] == ("postcode", "cb11aa", True)
    assert entities("The hilton, cb2 1ad", VENUES)[1] == ("postcode", "cb21ad", False)
    assert entities("It is cb2 1ad", VENUES, named=["university arms"]) == (("postcode", "cb21ad", True),)
    assert entities("Your taxi comes at 12:15 for 3 people", VENUES) == ()


_NAMES = st.sampled_from(["area", "stars", "name", "food"])
_VALUES = st.sampled_from(["north", "Centre", "center", "4", "dontcare", "any", "none", "", "not mentioned"])
_STATES = st.dictionaries(st.sampled_from(["hotel", "restaurant", "taxi"]), st.dictionaries(_NAMES, _VALUES))


@given(_STATES, _STATES)
def test_states_keep_their_laws(left: dict, right: dict) -> None:
    ours, true = canonical_state(left), canonical_state(right)
    recall, is_equal, invented = match_states(ours, true)
    assert 0 <= recall.number <= recall.total
    assert 0 <= invented.number <= invented.total
    assert is_equal == (recall.number == recall.total and invented.number == 0)
    assert canonical_state(ours) == ours
    assert all(ours.values())


@given(st.sets(_NAMES), st.sets(_NAMES))
def test_f1_lies_between_precision_and_recall(left: set[str], right: set[str]) -> None:
    match = match_sets(folded(left), folded(right))
    low, high = sorted((match.precision, match.recall))
    assert low - 1e-9 <= match.f1 <= high + 1e-9
