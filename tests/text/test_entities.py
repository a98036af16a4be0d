"""The facts in a turn, and whether they were heard."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convoscope.text.spoken import check_entities, check_fact, entities


def told(text: str) -> list[tuple[str, str, str]]:
    return [(entity.type, entity.text, entity.canonical) for entity in entities(text)]


class TestEntities:
    def test_a_code_and_a_name(self) -> None:
        assert told("My confirmation is two B S six M zero, last name Petrov.") == [
            ("confirmation_code", "two B S six M zero", "2bs6m0"),
            ("name", "Petrov", "petrov"),
        ]

    def test_a_spelled_name_is_a_name(self) -> None:
        assert told("the last name is G R A Y") == [("name", "G R A Y", "gray")]

    def test_places_times_and_amounts(self) -> None:
        assert told("Move me from Oslo to Bergen at nine fifteen a m for one hundred twenty dollars, or $99.") == [
            ("place", "Oslo", "oslo"),
            ("place", "Bergen", "bergen"),
            ("time", "nine fifteen a m", "915 am"),
            ("amount", "one hundred twenty dollars", "120 dollars"),
            ("amount", "$99", "99 dollars"),
        ]

    def test_a_flight_by_its_airline_or_its_code(self) -> None:
        assert told("Put me on Norwind three one eight or flight NW 445 to HEL") == [
            ("flight_number", "Norwind three one eight", "norwind 318"),
            ("flight_number", "NW 445", "nw445"),
            ("airport_code", "HEL", "hel"),
        ]

    def test_seat_date_duration_phone_and_mail(self) -> None:
        text = (
            "Seat twenty one Charlie on March third, 2026 for two weeks, my phone is five five five... zero one six "
            "seven, write to ann dot gray at example dot com"
        )
        assert told(text) == [
            ("seat", "twenty one Charlie", "21c"),
            ("date", "March third, 2026", "march third 2026"),
            ("duration", "two weeks", "2 weeks"),
            ("phone", "five five five... zero one six seven", "5550167"),
            ("email", "ann dot gray at example dot com", "ann.gray@example.com"),
        ]

    def test_a_radio_word_inside_a_code_is_a_letter_of_it(self) -> None:
        assert told("My code is Foxtrot two three Foxtrot nine Alpha.") == [
            ("confirmation_code", "Foxtrot two three Foxtrot nine Alpha", "f23f9a")
        ]
        assert told("It is Q B F as in Foxtrot, seven, two.") == [
            ("confirmation_code", "Q B F as in Foxtrot, seven, two", "qbf72")
        ]

    def test_dates(self) -> None:
        assert told("I fly in June, or on 25 March 2026, or the 1st of May.") == [
            ("date", "June", "june"),
            ("date", "25 March 2026", "march 25th 2026"),
            ("date", "1st of May", "may first"),
        ]

    def test_times(self) -> None:
        assert told("Not at four p.m. but at half past five, quarter to six p.m. or noon.") == [
            ("time", "four p.m", "4 pm"),
            ("time", "half past five", "530"),
            ("time", "quarter to six p.m", "545 pm"),
            ("time", "noon", "12 pm"),
        ]

    def test_phone_mail_and_large_amounts(self) -> None:
        text = (
            "Call +1 (555) 123-4567 or (555) 765-4321, mail is john underscore doe ninety nine at mail dot co dot uk, "
            "it costs one point two million dollars, look at example.com or ask a dash b at x dot com."
        )
        assert told(text) == [
            ("phone", "+1 (555) 123-4567", "15551234567"),
            ("phone", "(555) 765-4321", "5557654321"),
            ("email", "john underscore doe ninety nine at mail dot co dot uk", "john_doe99@mail.co.uk"),
            ("amount", "one point two million dollars", "1200000 dollars"),
            ("email", "a dash b at x dot com", "a-b@x.com"),
        ]

    @pytest.mark.parametrize(
        "text",
        [
            "I was the 1st, half way to you.",
            "I want one checked bag.",
            "Yes, please. Thanks!",
            "[pause] Hello",
            "I may go",
            "",
        ],
    )
    def test_prose_holds_no_fact(self, text: str) -> None:
        assert told(text) == []

    @settings(deadline=None)
    @given(st.text())
    def test_any_text_can_be_searched(self, text: str) -> None:
        found = entities(text)
        assert [entity.text for entity in found] == [text[entity.start : entity.end] for entity in found]
        assert all(one.end <= other.start for one, other in pairwise(found))
        check_entities(text, text)


class TestIsHeard:
    @pytest.mark.parametrize(
        ("said", "heard"),
        [
            ("Q B B eight T L", "QBB8TL"),
            ("Q B B eight T L", "qbb 8TL"),  # cut elsewhere
            ("12:30 PM", "12- 30 p.m."),
            ("10:00 AM", "10 ock AM"),  # a mangled o'clock
            ("$450", "keep the full 450"),  # the currency may be lost
            ("700", "Flight 7-0-0"),
            ("Norwind 472", "Norwind 4? 472"),  # begun twice
            ("four thirty (4:30)", "the 430"),  # brackets hold another form
            ("March third", "March 3"),
            ("115", "it is 115 pounds"),  # no currency was said
            ("anna.lee@gmail.com", "anna dot lee at gmail dot com"),
            ("(555) 123-4567", "555 123 4567"),
        ],
    )
    def test_heard(self, said: str, heard: str) -> None:
        assert check_fact(said, heard) == (True, None)

    @pytest.mark.parametrize(
        ("said", "heard", "instead"),
        [
            ("Q B B eight T L", "it is QBBHTL.", "qbbhtl"),
            ("four thirty", "at 4:13", "413"),
            ("$15", "a $50 voucher", "50"),
            ("Elliot", "last name Eliot", "eliot"),
            ("Petrov", "", None),
            ("$115", "it is 115 pounds", "115 pounds"),  # another currency
            ("anna.lee@gmail.com", "annalee at gmail dot com", "annalee@gmail.com"),  # the dot matters
            ("(555) 123-4567", "555", None),  # an area code is no other form of the number
            ("45", "145", "145"),  # part of a number is another number
        ],
    )
    def test_not_heard(self, said: str, heard: str, instead: str | None) -> None:
        verdict = check_fact(said, heard)
        assert not verdict.correct
        assert verdict.instead is None if instead is None else instead in (verdict.instead or "")


class TestHear:
    def test_each_fact_of_a_turn(self) -> None:
        checked = check_entities("From Oslo at four thirty p m for eighty dollars.", "From Oslo at 4:13 p.m. for $80.")
        assert [(one.entity.text, one.heard.correct) for one in checked] == [
            ("Oslo", True),
            ("four thirty p m", False),
            ("eighty dollars", True),
        ]

    def test_one_place_answers_for_one_fact(self) -> None:
        said = "My code is Q B B eight T L, I repeat: my code is Q B B eight T L."
        # Said twice, heard once, at the end: the second is the one that was heard.
        checked = check_entities(said, "My code is QB8TL, I repeat: my code is QBB8TL.")
        assert [one.heard.correct for one in checked] == [False, True]

    @pytest.mark.parametrize(
        ("said", "heard", "wrong"),
        [
            ("From Boston to Austin.", "From Austin to Boston.", {"Boston": "austin", "Austin": "boston"}),
            ("It is $5 per day or $9 per week.", "It is $9 per day or $5 per week.", {"$5": "9", "$9": "5"}),
            ("I leave on May 3rd and return on May 9th.", "I return on May 9th and leave on May 3rd.", {}),  # moved
            ("It is $20, not $30.", "It is not $30 but $20.", {}),
            ("Take 300, 400 or 500.", "Take 300, 500 or 400.", {}),  # no words around them say which is which
        ],
    )
    def test_a_fact_that_was_swapped_is_wrong_and_one_that_moved_is_right(
        self, said: str, heard: str, wrong: dict[str, str]
    ) -> None:
        checked = check_entities(said, heard)
        instead = {one.entity.text: (one.heard.instead or "").split()[0] for one in checked if not one.heard.correct}
        assert instead == wrong

    def test_of_two_currencies_the_right_one_is_taken(self) -> None:
        checked = check_entities("It is $115.", "It is 115 pounds, no, 115 dollars.")
        assert [one.heard.correct for one in checked] == [True]

    def test_a_fact_that_is_said_very_often_and_heard_once_less(self) -> None:
        # Five thousand times five thousand pairs are too many to be looked at.
        checked = check_entities("in Oslo. " * 5_000, "in Oslo. " * 4_999)
        assert sum(one.heard.correct for one in checked) == 4_999
        assert checked[0].heard.correct  # the first that was heard begins where it does

    def test_what_was_heard_is_looked_for_near_the_fact(self) -> None:
        # 600 facts, none heard, each two words from the next: the work per fact does not grow with the turn.
        checked = check_entities("in Oslo. " * 600, "in Osla. " * 600)
        assert {one.heard for one in checked} == {(False, "osla")}
        far = "we met them. " * 100
        (one,) = check_entities(f"From Oslo. {far}", f"{far} From Osla.")
        assert one.heard == (False, None)
