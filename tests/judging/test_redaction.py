"""Nothing that identifies a person leaves the machine; one value has one placeholder; answers get the value back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.errors import UsageError
from convoscope.judging.redaction import Redaction, is_card, is_iban

HIDE = Redaction().hide


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("write to ada.byron+x@mail.example.org now", "write to <EMAIL_1> now"),
        ("it is ada dot byron at example dot org", "it is <EMAIL_1>"),
        ("call +1-407-555-0138 please", "call <PHONE_1> please"),
        ("call (407) 555-0138", "call <PHONE_1>"),
        ("call 0049 170 1234567", "call <PHONE_1>"),
        ("four oh seven five five five oh one three eight is it", "<PHONE_1> is it"),
        ("four zero seven, double five five, oh one three eight", "<PHONE_1>"),
        ("null eins sieben null zwei drei vier fünf", "<PHONE_1>"),
        ("card 4111 1111 1111 1111 ok", "card <CARD_1> ok"),
        ("card 4111-1111-1111-1111", "card <CARD_1>"),
        ("four one one one, one one one one, one one one one, one one one one", "<CARD_1>"),
        ("IBAN DE89 3704 0044 0532 0130 00.", "IBAN <IBAN_1>."),
        ("de89-3704-0044-0532-0130-00 is mine", "<IBAN_1> is mine"),
        ("GB82 WEST 1234 5698 7654 32 it is", "<IBAN_1> it is"),
        ("iban_DE89370400440532013000", "iban_<IBAN_1>"),
        ("ada (at) example [dot] org", "<EMAIL_1>"),
        ("ada @ example.org", "<EMAIL_1>"),
        ("?to=ada%40example.org", "?to=<EMAIL_1>"),
        (r"ada\u0040example.org", "<EMAIL_1>"),
        ("407\u00a0555\u00a00138", "<PHONE_1>"),
        ("407 – 555 – 0138", "<PHONE_1>"),
        ("407\u200b555\u200b0138", "<PHONE_1>"),
        ("407 five five five 0138", "<PHONE_1>"),
        ("four oh seven, um, five five five, uh, oh one three eight", "<PHONE_1>"),
        ("zéro six douze trente-quatre cinquante-six", "<PHONE_1>"),
        ("null eins sieben vierunddreißig sechsundfünfzig", "<PHONE_1>"),
        ("cero cuatro siete treinta y cuatro cincuenta y seis", "<PHONE_1>"),
        ("[4111, 1111, 1111, 1111]", "[<CARD_1>]"),
        (r"4111\n1111\n1111\n1111", "<CARD_1>"),
        ("pan_4111111111111111x", "pan_<CARD_1>x"),
        ("2, 4111, 1111, 1111, 1111", "2, <CARD_1>"),
        ("3782 822463 10005, 4 tickets", "<CARD_1>, 4 tickets"),
    ],
)
def test_what_is_hidden(text: str, hidden: str) -> None:
    assert HIDE(text).text == hidden


@pytest.mark.parametrize(
    "text",
    [
        "on 2026-06-10 at 14:45",
        "2026-06-10T14:45:00",
        "it costs 1250.50 euros for 12 people",
        "one or two of them",
        "flight AB1234 seat 14A",
        "room 101, code K7M2",
        "twenty five minutes",
        # The turns that a judge is asked to rate.
        ", ".join(map(str, range(40))),
        "100, 200, 300, 400",
        "between 1, 2, 3 and four, 5 or 6, 7",
    ],
)
def test_what_is_not(text: str) -> None:
    assert HIDE(text).text == text


def test_spoken_and_written_are_one_value() -> None:
    hidden = HIDE("I said four oh seven five five five oh one three eight; it has 4075550138 and 407 555 0139")
    assert hidden.text == "I said <PHONE_1>; it has <PHONE_1> and <PHONE_2>"
    assert hidden.counts == {"phone": 2}


def test_answers_get_the_value_back() -> None:
    hidden = HIDE("mail ada@example.org")
    assert hidden.undone({"quote": "mail <EMAIL_1>", "list": ["<EMAIL_1>", 1]}) == {
        "quote": "mail ada@example.org",
        "list": ["ada@example.org", 1],
    }


def test_patterns_of_the_user() -> None:
    assert Redaction([r"CUST-\d+"]).hide("I am CUST-991, yes CUST-991").text == "I am <PRIVATE_1>, yes <PRIVATE_1>"
    with pytest.raises(UsageError, match="not a pattern"):
        Redaction(["("])


def test_check_digits() -> None:
    # Luhn by hand: 79927398713 is the textbook number, but a card has 13 digits at least.
    assert not is_card("79927398713")
    assert is_card("4111111111111111")
    assert not is_card("4111111111111112")
    assert is_iban("GB82 WEST 1234 5698 7654 32")
    assert not is_iban("GB82 WEST 1234 5698 7654 33")


@given(st.integers(10**9, 10**10 - 1), st.sampled_from(["", " ", "-", "."]))
def test_no_phone_number_gets_through(number: int, separator: str) -> None:
    digits = str(number)
    written = separator.join((digits[:3], digits[3:6], digits[6:]))
    assert digits[3:] not in "".join(filter(str.isdigit, HIDE(f"call me at {written}, thanks").text))
