"""Signs and short forms as they are said, and the ways in which one date or amount may be read."""

import pytest

from convoscope.text.spoken.aloud import aloud, readings_of


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("in 2-3 days", "in 2 to 3 days"),
        ("9:00-17:00", "9:00 to 17:00"),
        ("call 555-0142", "call 555-0142"),  # a phone number
        ("the code K7-49", "the code K7-49"),
        ("5 km", "5 kilometers"),
        ("a 10-year plan", "a 10-year plan"),
        ("4x faster", "4 times faster"),
        ("€19,99 or 1,99 €", "€19.99 or €1.99"),
        ("$1,250", "$1,250"),
        ("one and a half million", "one point five million"),
        ("zip oh two one three nine", "zip zero two one three nine"),
        ("Oh, one moment", "Oh, one moment"),
        ("oh one moment", "oh one moment"),
        ("two point oh", "two point zero"),
        ("ten in the morning", "ten am"),
        ("7:30 in the evening", "7:30 pm"),
        ("March 12 in the morning", "March 12 in the morning"),
        ("room 40 in the morning", "room 40 in the morning"),
        ("Mon 5 Jan", "monday january 5"),
        ("the 90s", "the  nineties"),
        ("It is -5.", "It is  minus 5."),
        ("1½ cups", "1.5 cups"),
        ("one and a quarter", "one point two five"),
        ("1 and 1/2 cups", "1.5 cups"),
        ("a 2 1/2 mile walk", "a 2.5 mile walk"),
        ("the 9/11 and 3/4 of it", "the 9/11 and 3/4 of it"),
        ("60 km/h", "60 kilometers per hour"),
        ("gate 5M", "gate 5 million"),
        ("1 kg at $3/kg", "1 kilogram at $3 per kilogram"),
        ("K as in kilo", "K as in kilo"),
        ("in St. Louis", "in Saint Louis"),
        ("and/or", "and/or"),
    ],
)
def test_aloud(text: str, spoken: str) -> None:
    assert aloud(text) == spoken


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12/03/2026", {"december 3 2026", "march 12 2026"}),
        ("03.12.2026", {"december 3 2026", "march 12 2026"}),
        ("25/03/26", {"march 25 2026"}),
        ("24/7", {"24 7"}),
        ("1/2", {"half a"}),
        ("$0.99", {"99 cents", "0.99 dollars"}),
        ("2-3 days", {"2 to 3 days", "2 or 3 days"}),
        ("12-34", {"12 34"}),
        ("½", {"half", "half a", "1/2"}),
        ("-5°C", {"minus 5 degrees celsius", "negative 5 degrees"}),
        ("14:30", {"14:30", "2:30 pm"}),
    ],
)
def test_readings(text: str, expected: set[str]) -> None:
    assert expected <= set(readings_of(text))


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("25/03/2026", "march 3"),
        ("2-3 days", "23 days"),
        ("2-3 days", "2 3 days"),
        ("$1.99", "99 cents"),
        ("1/2", "1 2"),
    ],
)
def test_no_reading(text: str, other: str) -> None:
    assert other not in readings_of(text)


def test_what_is_read_in_one_way_has_one_reading() -> None:
    for text in ("$1,250", "March 3rd", "7:30 pm", "K7M4QX", "555-0142", "1-800-555-0199"):
        assert len(readings_of(text)) == 1
