"""What is said alike comes out equal, and plain prose stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convoscope.text.spoken import normalise, normalised

EQUAL = {
    # codes and spelled words
    "zk3ffw": ["Z K three F F W", "ZK3FFW", "Zulu Kilo three Foxtrot Foxtrot Whiskey", "Z-K-3-F-F-W"],
    "sk703": ["Sierra Kilo seven zero three", "SK703", "SK 703", "S K seven zero three", "SK seven zero three"],
    "7nnpts": ["seven N N P T S", "7-NN-PTS", "7NNPTS", "seven double N P T S"],
    "ax3un9": ["A X three U N nine", "AX3UN9"],
    "yqz74j": ["Y as in Yankee, Q as in Quebec, Z as in Zulu, seven as in seven, four, J for Juliet", "YQZ74J"],
    "rodriguez": ["R-O-D-R-I-G-U-E-Z", "R O D R I G U E Z", "Rodriguez"],
    "xt2": ["x-ray tango two", "X T 2"],
    "lax": ["L A X", "LAX", "L.A.X.", "L-A-X"],
    "us": ["U.S.", "US", "U S"],
    "ibm": ["I B M", "IBM"],
    "a1b2c3": ["alpha one bravo two charlie three", "A1B2C3", "A 1 B 2 C 3"],
    "abc123": ["Alpha Bravo Charlie one two three", "ABC123", "alfa bravo charlie 1 2 3"],
    "ab": ["alfa bravo", "AB", "A as in Alpha, B as in Boy", "A for Alpha, B for Bravo"],
    "ba": ["B as in Boy, A as in Anna", "bravo alpha"],
    "ib4": ["I as in India, B as in Bravo, four", "India Bravo four"],
    "xyz": ["X Y zee", "X Y zed", "XYZ"],
    "929": ["niner two niner", "nine two nine"],
    # numbers
    "402": ["four oh two", "402", "four zero two", "4 oh 2"],
    "1200": ["1,200", "twelve hundred", "one thousand two hundred", "1200"],
    "115200": ["one hundred and fifteen thousand two hundred", "115,200"],
    "5000000": ["five million", "5 million"],
    "3.5": ["three point five", "3.5"],
    "77": ["double seven", "seven seven", "77"],
    "50 percent": ["fifty percent", "50%", "fifty per cent"],
    "21st": ["twenty-first", "21st"],
    "first": ["first", "1st"],
    "5551234567": [
        "555-123-4567",
        "(555) 123 4567",
        "555.123.4567",
        "five five five one two three four five six seven",
        "triple five... one two three... four five six seven",
        "(555) 123-4567",
        "(555)123-4567",
        "555 123-4567",
    ],
    "15551234567": [
        "+1 555 123 4567",
        "plus one five five five one two three four five six seven",
        "1-555-123-4567",
        "1.555.123.4567",
        "1 555 123 4567",
        "+1 (555) 123-4567",
        "+15551234567",
    ],
    "18005551212": [
        "one eight hundred five five five one two one two",
        "1-800-555-1212",
        "1 (800) 555-1212",
    ],
    "442079460958": ["+44 20 7946 0958", "plus four four two zero seven nine four six zero nine five eight"],
    # times
    "4 pm": ["4:00 PM", "four p.m.", "4 pm", "four o'clock pm", "4 p m", "4pm", "4.00 p.m."],
    "855 am": ["eight fifty five a m", "8:55 a.m.", "8:55am", "8.55 am", "8 55 AM"],
    "1 o'clock": ["one o'clock", "1:00", "1 o’clock", "one o clock"],
    "430": ["four thirty", "4:30", "430", "half past four"],
    "445": ["a quarter to five", "quarter to five", "4:45"],
    "1245": ["quarter to one", "12:45"],
    "415 pm": ["quarter past four p m", "4:15 PM"],
    "12 pm": ["noon", "12 noon", "twelve o'clock noon", "12:00 PM"],
    "12 am": ["midnight", "12:00 AM"],
    "3 pm": ["15:00", "3 pm"],
    # dates
    "march 25th": [
        "March twenty fifth",
        "March 25th",
        "March 25",
        "the twenty-fifth of March",
        "3/25",
        "25/3",
        "Mar. 25",
        "25 March",
        "25th March",
        "twenty five march",
    ],
    "march first": ["1st March", "1 March", "March 1", "the first of March"],
    "march first 2026": ["1 March 2026", "March 1, 2026", "March first twenty twenty six", "2026-03-01", "1 Mar 2026"],
    "may second": ["2 May", "2nd May", "May 2"],
    "march 25th 2026": ["March twenty fifth, twenty twenty six", "March 25, 2026", "3/25/2026", "2026-03-25"],
    "july 2026": ["July twenty twenty six", "July two thousand twenty six", "July 2026"],
    "may fifth 2026": ["May five twenty twenty six", "May 5th, 2026"],
    # money
    "115 dollars": [
        "one hundred fifteen dollars",
        "one fifteen dollars",
        "$115",
        "115 dollars",
        "USD 115",
        "$115.00",
        "US$115",
        "115 USD",
    ],
    "12.50 dollars": ["$12.50", "twelve dollars and fifty cents", "twelve fifty dollars", "12 dollars 50 cents"],
    "125 dollars": ["one twenty five dollars", "$125"],  # hundreds, as the first part is a single digit
    "1200000 dollars": ["one point two million dollars", "$1.2 million", "$1,200,000", "$1.2M", "1.2 million dollars"],
    "3500": ["three point five thousand", "3.5 thousand", "3,500"],
    "150 pounds": ["a hundred and fifty pounds", "£150"],
    # seats, addresses, writing
    "seat 21a": ["seat twenty one A", "seat 21A", "seat 21 a", "Seat twenty one Alpha"],
    "21a": ["twenty one A", "21A"],
    "john.doe@example.com": ["john.doe@example.com", "john dot doe at example dot com", "John.Doe at example.com"],
    "john_doe99@mail.co.uk": [
        "john underscore doe ninety nine at mail dot co dot uk",
        "john_doe99@mail.co.uk",
        "john underscore doe 99 at mail.co.uk",
    ],
    "a-b+c.d@x.com.au": ["a dash b plus c dot d at x dot com dot au", "a-b+c.d@x.com.au"],
    "okay mr lee": ["OK, Mr. Lee", "okay mister Lee"],
    "cafe jose": ["café José", "Cafe Jose", "cafe\u0301 jose"],
    "i'll": ["I'll", "I’ll", "‘I'll’"],
    "well then": ["Well... then", "well — then", "[slow] well-then [pause]", "WELL, THEN!", "“Well” then?"],
}


@pytest.mark.parametrize(("canonical", "forms"), EQUAL.items())
def test_forms_that_are_one(canonical: str, forms: list[str]) -> None:
    assert {form: normalised(form) for form in forms} == dict.fromkeys(forms, canonical)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("Oscar had a Whiskey at the hotel I booked", "oscar had a whiskey at the hotel i booked"),
        ("I want one", "i want 1"),  # on both sides, so that it compares
        ("a seat", "a seat"),
        ("I want a U S passport", "i want a us passport"),  # the article is no letter
        ("I have 2 I think", "i have 2 i think"),
        ("at 4 a man came", "at 4 a man came"),
        ("A one day pass", "a 1 day pass"),
        ("a double room for two", "a double room for 2"),
        ("Delta four five five", "delta 455"),  # one radio word alone is a name
        ("I may go in a second", "i may go in a second"),
        ("U O zero J R E", "uo0jre"),  # the letter O is never zero among letters
        ("one hundred, two hundred", "100 200"),
        ("nine, ten, fifteen", "9 10 15"),  # punctuation ends a number
        ("10-15 minutes", "10 15 minutes"),  # a range
        ("3/4", "3/4"),  # two days, or three quarters
        ("twelve fifty", "1250"),  # no currency near
        ("03/01/2026", "03/01/2026"),  # March or January
        (
            "the first may go, 25 may stay",
            "the first may go 25 may stay",
        ),  # a verb, unless a capital or year says month
        ("an Alpha and a Zed", "an alpha and a zed"),  # one radio word alone
        ("nothing as in a shop", "nothing as in a shop"),
        ("eight hundred five", "805"),
        ("half of it, a quarter to spare", "half of it a quarter to spare"),
        ("2 plus 2", "2 plus 2"),
        ("16:30", "1630"),  # as sixteen thirty
        ("1.2345 thousand", "1.2345 thousand"),  # not whole
        ("my mail is 99 at x dot com", "my mail is 99@x.com"),
        ("john underscore at x dot com", "john underscore at x.com"),
        ("May 5th, 5 pm", "may fifth 5 pm"),
        ("look at example.com", "look at example.com"),
        ("um, uh, yes", "um uh yes"),  # hesitations are words
        ("[user interrupts]", ""),
        ("", ""),
    ],
)
def test_prose_stays(text: str, canonical: str) -> None:
    assert normalised(text) == canonical


def test_other_languages_are_only_folded() -> None:
    assert normalise("Ich möchte „Zwei“, bitte.", "de-DE") == ("ich", "möchte", "zwei", "bitte")
    assert normalise("हिन्दी में", "hi") == ("हिन्दी", "में")  # vowel signs belong to their letter


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("1½ cups", ("1.5", "cups")),
        ("½ cup", ("1/2", "cup")),
        ("10⁶ and 5³", ("10", "to", "the", "6", "and", "5", "cubed")),
        ("25 m²", ("25", "m2")),
        ("Windows™ 11", ("windows", "11")),
        ("№5", ("no", "5")),
        ("H₂O", ("h2o",)),
        ("ﬁve", ("5",)),
        ("１２", ("12",)),
    ],
)
def test_signs_of_one_letter_do_not_change_a_number(text: str, tokens: tuple[str, ...]) -> None:
    assert normalise(text) == tokens


def test_chinese_japanese_and_korean_are_characters() -> None:
    assert normalise("航班 SK621。", "zh") == ("航", "班", "sk621")
    assert normalise("はい、ＯＫ", "ja") == ("は", "い", "ok")
    assert normalise("네 좋아요", "ko-KR") == ("네", "좋", "아", "요")


WORDS = (
    "a A i I o oh double triple five twenty zero one 5 12 2026 555 123 4567 hundred thousand million and K f SK LAX US "
    "Charlie hotel november Oscar x ray as in for mike March may 25th fifth second the of Mar p m a.m. pm o'clock "
    "clock $5 $12.50 12.50 4:30 4:00 3/25 3/4 2026-03-25 dollars cents usd USD per cent % point dot at com gmail "
    "john.doe@x.com seat [x] I'll don’t — … , . - ' @ & AM OK 7-MM-8TS 5-5 U.S. é ＡＢ 1,200 1st 12th £3 x.co 00 400 "
    "½ 1½ 10⁶ ™ "
    "alpha niner zed half quarter past to noon plus +1 +44 (555) underscore co uk 16:00 $3M May ok mister café 1234567"
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(WORDS.split()), max_size=9), st.sampled_from([" ", "", ", ", "-", "\n"]))
def test_a_canonical_text_is_its_own_canonical_text(words: list[str], between: str) -> None:
    tokens = normalise(between.join(words))
    assert all(tokens)
    assert normalise(" ".join(tokens)) == tokens


@settings(deadline=None)
@given(st.text(), st.sampled_from(["en", "de", "ja", "", "en_GB"]))
def test_any_text_has_tokens(text: str, language: str) -> None:
    tokens = normalise(text, language)
    assert all(tokens)
    assert normalise(" ".join(tokens), language) == tokens
