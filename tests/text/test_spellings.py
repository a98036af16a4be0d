"""Words that are written in two ways and sound the same: they are no error of a recogniser."""

import pytest

from convoscope.text.spoken import normalise
from convoscope.text.spoken.vocabulary import SPELLINGS


@pytest.mark.parametrize(
    ("british", "american"),
    [
        ("I cancelled it", "I canceled it"),  # counted as a substitution: 1 of 3 words
        ("cancelling my favourite colour", "canceling my favorite color"),
        ("the theatre centre", "the theater center"),
        ("we apologise and organise", "we apologize and organize"),
        ("a grey cheque", "a gray check"),
        ("Travelling neighbours", "traveling neighbors"),
        ("realising, realised, realises", "realizing, realized, realizes"),
    ],
)
def test_both_ways_are_one(british: str, american: str) -> None:
    assert normalise(british) == normalise(american)


def test_what_sounds_different_stays_different() -> None:
    for first, second in (("aluminium", "aluminum"), ("learnt", "learned"), ("cancel", "canceled")):
        assert normalise(first) != normalise(second)


def test_no_spelling_leads_to_another_that_is_replaced() -> None:
    assert not set(SPELLINGS.values()) & SPELLINGS.keys()


def test_other_languages_are_left_alone() -> None:
    assert normalise("le centre", "fr") == ("le", "centre")
