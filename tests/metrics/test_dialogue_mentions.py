"""Which names and details count as invented: each rule beyond the plain one, with the dialogue that argues for it."""

from __future__ import annotations

import pytest

from convoscope.metrics.dialogue.goals import completion
from convoscope.metrics.dialogue.policy import ANY, BOOK, REQUEST, SEARCH, actions_taken, does_right, expected_action
from convoscope.metrics.dialogue.turn_scores import score_turn, score_turns
from convoscope.metrics.dialogue.turns import DialogueTurn, act, turn_of
from convoscope.metrics.dialogue.venues import VenueDatabase
from support.dialogue_mentions import entities
from support.steps import steps

VENUES = VenueDatabase(
    {
        "hotel": [
            {
                "name": "acorn guest house",
                "phone": "01223353888",
                "address": "154 chesterton road",
                "postcode": "cb41da",
            },
            {"name": "rosa's bed and breakfast", "phone": "01223512596", "address": "53 roseford road"},
        ],
        "restaurant": [{"name": "golden wok", "phone": "01223350688", "address": "191 histon road chesterton"}],
        "attraction": [{"name": "queens' college", "phone": "01223335511", "postcode": "cb39et"}],
        "train": [{"trainID": "TR0001"}],
        "taxi": {"taxi_phone": ["^[0-9]{10}$"]},
    }
)


def invented(said: str, *acts, named=(), domains=()) -> list[str]:
    """The values that the database does not bear out."""
    return [one.value for one in entities(said, VENUES, *acts, named=named, domains=domains) if not one.is_known]


# A name is the same name however it is spelled: a tokeniser's space, an apostrophe and capitals are no other venue.
@pytest.mark.parametrize("name", ["Rosa's Bed and Breakfast", "rosa 's bed and breakfast", "rosas bed and breakfast"])
def test_a_spelling_is_no_other_venue(name: str) -> None:
    assert [one.value for one in entities(f"Try {name} .", VENUES)] == ["rosas bed and breakfast"]


def test_a_closing_apostrophe_does_not_glue_words() -> None:
    assert not invented("", act("Attraction-Inform", Name="queens college"))
    assert [one.value for one in entities("It is 'Golden Wok' .", VENUES)] == ["golden wok"]


# People shorten names; a run of words of a name that the database has is not absent from it. Other words are.
@pytest.mark.parametrize(
    ("name", "is_invented"),
    [
        ("acorn", False),
        ("the acorn", False),
        ("acorn hotel", False),  # the kind of a venue is not its name
        ("acorn guest house in the north", False),  # the whole name, with more around it
        ("acorn house", True),  # not a run: "guest" is between
        ("golden house", True),  # words of two venues
        ("the golden dragon", True),
    ],
)
def test_a_part_of_a_name_is_known_and_a_mixture_is_not(name: str, is_invented: bool) -> None:
    assert bool(invented("", act("Hotel-Recommend", Name=name))) is is_invented


@pytest.mark.parametrize(
    "said", ["Try The Golden Dragon", "how about The Golden Dragon ?", "booked you at The Golden Dragon"]
)
def test_a_name_in_capitals_after_a_cue_is_looked_up(said: str) -> None:
    assert invented(said) == ["the golden dragon"]


def test_words_in_capitals_without_a_cue_are_no_name() -> None:
    assert not invented("I will travel about The Golden Dragon on Monday Morning")


# A part of an address is true; so is an address with more around it. Half a word is neither.
@pytest.mark.parametrize(
    ("address", "is_invented"),
    [
        ("154 Chesterton Road", False),
        ("chesterton road", False),
        ("154 chesterton road , cambridge", False),
        ("54 chesterton road", True),
        ("chesterton roadhouse", True),
        ("regent street", True),
    ],
)
def test_an_address_may_be_given_in_part(address: str, is_invented: bool) -> None:
    assert bool(invented("acorn guest house", act("Hotel-Inform", Addr=address))) is is_invented


# "For that venue": the one that the reply names; where it names none, those named before; where nobody was, any.
def test_a_detail_is_looked_up_for_its_venue() -> None:
    assert invented("golden wok : 01223353888") == ["01223353888"]  # of the acorn
    assert not invented("Their number is 01223353888", named=["acorn guest house"])
    assert invented("Their number is 01223353888", named=["golden wok"]) == ["01223353888"]
    assert not invented("Their number is 01223353888")
    assert invented("Their number is 01223000000") == ["01223000000"]


# A taxi's phone is drawn by a pattern: no table could have it. A train has no phone: one that is given is invented.
def test_only_domains_without_records_keep_their_phones_to_themselves() -> None:
    assert not invented("Your taxi : 07676489243", domains=["taxi"])
    assert not invented("Your taxi : 07676489243", act("Taxi-Inform", Phone="07676489243"))
    assert invented("The train : 07676489243", domains=["train"]) == ["07676489243"]
    assert invented("acorn guest house : cb9 9zz", domains=["taxi"]) == [
        "cb99zz"
    ]  # a postcode is looked up all the same


# A reference is made when something is booked. A database that lists none cannot say which are made up.
def test_references_are_looked_up_where_a_database_lists_them() -> None:
    booked = act("Booking-Book", Ref="ABC123")
    assert not invented("", booked)
    listed = VenueDatabase({"hotel": [{"name": "hilton", "reference": "XYZ789"}]})
    assert [one.is_known for one in entities("", listed, booked)] == [False]
    assert [one.is_known for one in entities("", listed, act("Train-OfferBooked", Ref="xyz789"))] == [True]


# What the agent asks for, or says that there is not, it does not tell.
def test_asking_and_denying_mention_nothing() -> None:
    assert not entities("", VENUES, act("Hotel-Request", Name="?"), act("Hotel-NoOffer", Name="the golden dragon"))
    assert not entities("", VENUES, act("Hotel-Inform", Name="none", Phone=None))


def test_a_name_is_remembered_through_the_dialogue() -> None:
    first = turn_of(predicted_acts=["Hotel-Recommend"], response="The Acorn Guest House is nice .")
    second = turn_of(predicted_acts=["Hotel-Inform"], response="Its number is 01223350688 .")  # of the golden wok
    assert [score.invented_mentions for score in score_turns([first, second], VENUES)] == [0, 1]


# System correctness: one action is expected, and a reply may do more than one thing.


def test_a_reply_that_searches_and_asks_has_searched() -> None:
    taken = actions_taken(frozenset({"hotel-inform", "hotel-request"}), ())
    assert does_right(SEARCH, taken)
    assert not does_right(SEARCH, actions_taken(frozenset({"hotel-request"}), ()))
    assert not does_right(BOOK, taken)


def test_a_booking_that_was_refused_was_tried() -> None:
    assert does_right(BOOK, actions_taken(frozenset({"booking-nobook"}), ()))
    assert not does_right(REQUEST, actions_taken(frozenset({"booking-nobook"}), ()))


def test_without_a_rule_nobody_can_say_when_a_booking_is_complete() -> None:
    intents = frozenset({"book_taxi"})
    assert expected_action(intents, {}) == ANY
    assert does_right(ANY, actions_taken(frozenset({"taxi-inform"}), ()))
    assert not does_right(ANY, actions_taken(frozenset(), ()))  # to do nothing is never right
    assert expected_action(intents, {}, {"taxi": ("leaveat",)}) == REQUEST
    assert expected_action(intents, {"taxi": {"leaveat": "10:00"}}, {"taxi": ("leaveat",)}) == BOOK


def test_what_a_bare_booking_books_is_taken_from_the_truth() -> None:
    full = {"hotel": {"name": "acorn", "bookday": "monday", "bookpeople": "2", "bookstay": "2"}, "restaurant": {}}
    turn = turn_of(
        predicted_slots=full,
        true_slots=full,
        true_intents=["book_hotel"],
        predicted_intents=["book_restaurant"],  # a wrong routing is charged to routing alone
        predicted_acts=["Booking-Book"],
    )
    assert score_turn(turn).attempts == (("hotel", ()),)
    assert score_turn(turn._replace(booked=("restaurant",))).attempts[0].domain == "restaurant"


# Task completion.


def completed(*turns) -> bool:
    return completion(turns, score_turns(turns, VENUES), venues=VENUES).is_complete


def asked(slot: str, said: str, *acts) -> DialogueTurn:
    """The user asks for something of a hotel."""
    return turn_of(
        true_intents=["find_hotel"], predicted_acts=acts, requested=[("hotel", slot)], response=said, true_slots={}
    )


def test_a_request_is_answered_by_the_value_in_the_words_of_the_reply() -> None:
    assert completed(asked("address", "Acorn Guest House is at 154 Chesterton Road .", "Hotel-Inform"))
    assert not completed(asked("address", "Acorn Guest House is at 53 Roseford Road .", "Hotel-Inform"))  # of Rosa's
    assert not completed(asked("address", "It is at 154 Chesterton Road .", "Hotel-Inform"))  # nobody said of which
    named = turn_of(true_intents=["find_hotel"], predicted_acts=["Hotel-Inform"], response="acorn guest house")
    assert completed(named, asked("address", "It is at 154 Chesterton Road .", "Hotel-Inform"))


def test_the_price_of_anything_is_one_piece_of_information() -> None:
    assert completed(asked("entrancefee", "", act("Hotel-Inform", Price="free")))
    assert completed(asked("price", "", act("Hotel-Inform", Ticket="12 pounds")))
    assert not completed(asked("price", "", act("Hotel-Inform", Stars="4")))
    assert not completed(asked("price", "", act("Hotel-Request", Price="?")))


def test_a_search_without_a_request_wants_to_be_told_something_that_is_not_invented() -> None:
    search = turn_of(true_intents=["find_hotel"], predicted_acts=["Hotel-Inform"], true_slots={})
    assert completed(search._replace(response="acorn guest house"))
    assert not completed(search._replace(response="I recommend The Golden Dragon"))  # the seed's table, row 4
    asks = turn_of(true_intents=["find_hotel"], predicted_acts=["Hotel-Request"], true_slots={})
    assert not completed(asks)


# What an agent recommends, suggests or calls by a name is a venue, however it is written.
@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("I recommend Zanzibar.", "zanzibar"),
        ("I recommend the Zanzibar.", "the zanzibar"),
        ("i recommend the golden dragon in the north .", "the golden dragon"),
        ("you could try zanzibar", "zanzibar"),
        ("There is one called zanzibar grill.", "zanzibar grill"),
        ("How about Zanzibar?", "zanzibar"),
        ("I have booked you at zanzibar.", "zanzibar"),
        ("Try The Golden Dragon restaurant", "the golden dragon"),
    ],
)
def test_a_name_after_a_cue_may_be_one_word_or_small(said: str, name: str) -> None:
    assert invented(said) == [name]


# Days, foods, equipment and what an agent says besides are no venues; nor is a known name, or one that is denied.
@pytest.mark.parametrize(
    "said",
    [
        "I suggest Saturday Evening",
        "I recommend British Food",
        "How about Free Wifi and Parking?",
        "I recommend Monday.",
        "I suggest booking early",
        "Try again later",
        "You could try something cheaper.",
        "How about a different area?",
        "What about the acorn guest house?",
        "I recommend acorn .",
        "i recommend the golden wok for dinner",
        "I have booked it for you",
        "I have booked 2 tickets",
        "The country house is nice, the pastry great",  # "try" is no word of these
        "There is no restaurant called Zanzibar.",
        "I couldn't find anything called the golden dragon",
        "I recommend TR1234 at 10:15",
        "May I recommend Rosa 's Bed and Breakfast ?",  # a tokeniser's space is no end of a name
        "I recommend Lisbon",  # where a train goes to
    ],
)
def test_other_words_after_a_cue_are_no_venue(said: str) -> None:
    tables = {**VENUES.tables, "train": [{"trainID": "TR0001", "destination": "lisbon"}]}
    assert [one for one in entities(said, VenueDatabase(tables)) if not one.is_known] == []


# A number to call is a phone, however short. A time, a price and a reference are none.
def test_a_number_that_is_to_be_called_is_a_phone() -> None:
    assert invented("call 555-1234") == ["5551234"]
    assert invented("Their phone number is 555 1234.") == ["5551234"]
    assert not invented("Call at 10:15, it is 12.50 pounds for 24 people")
    assert not invented("Your reference is 5551234")
    short = VenueDatabase({"hotel": [{"name": "gull house", "phone": "555-1234"}]})
    assert [one.is_known for one in entities("gull house, phone 555 1234", short)] == [True, True]


def test_an_address_in_the_words_of_a_reply_is_looked_up() -> None:
    assert invented("acorn guest house is at 12 Baker Street .") == ["12 baker street"]
    assert not invented("acorn guest house is at 154 Chesterton Road, Cambridge .")
    assert invented("golden wok is at 154 Chesterton Road .") == ["154 chesterton road"]  # of the acorn
    assert not invented("A table for 2 on Chesterton Road")
    assert not invented("A taxi to 12 Baker Street", domains=["taxi"])  # it goes anywhere


def test_an_address_in_words_and_in_an_act_is_one() -> None:
    told = act("Hotel-Inform", Addr="12 baker street chesterton")
    assert invented("acorn guest house is at 12 Baker Street .", told) == ["12 baker street chesterton"]


def test_a_reference_in_the_words_of_a_reply_is_looked_up() -> None:
    listed = VenueDatabase({"hotel": [{"name": "hilton", "reference": "AB12C3"}]})
    assert [one.is_known for one in entities("Your reference number is AB12C3 .", listed)] == [True]
    assert entities("is at the hilton, reference XY12Z9", listed)[1] == ("reference", "xy12z9", False)
    assert entities("Do you have the reference?", listed) == ()
    assert not invented("Your reference is XY12Z9 .")  # a database without any cannot say


@pytest.mark.parametrize("piece", ["try ", "call 5 ", "1 street ", "recommend the ", "reference ", "no called "])
def test_long_replies_take_as_long_as_they_are(piece: str) -> None:
    few, more = (steps(entities, piece * count, VENUES) for count in (500, 2_000))
    assert more < 5 * few + 1_000  # a square would be sixteen times
    assert len(entities(piece * 20_000, VENUES)) < 20_000


def test_a_reply_of_many_addresses_takes_as_long_as_it_is() -> None:
    def addresses(count: int) -> str:
        return " ".join(f"{number} x street" for number in range(count))

    few, more = (steps(entities, addresses(count), VENUES) for count in (500, 2_000))
    assert more < 5 * few
    assert entities(addresses(20_000), VENUES)
