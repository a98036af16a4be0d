"""What says that a promise was kept, and what only sounds like it."""

from __future__ import annotations

import pytest

from convoscope.text.result_words import participle, says_done


@pytest.mark.parametrize(
    ("text", "promise"),
    [
        ("I've sent it.", "Send the form"),
        ("I’ve just sent the form over.", "Send the form"),
        ("Okay, that's done.", "Send the form"),
        ("All sorted!", "Refund the order"),
        ("It has already been refunded.", "Refund the order"),
        ("The order is cancelled now.", "Cancel the order"),
        ("We already booked it.", "Book the room"),
    ],
)
def test_done(text: str, promise: str) -> None:
    assert says_done(text, promise)


@pytest.mark.parametrize(
    ("text", "promise"),
    [
        ("I'll send it.", "Send the form"),
        ("Once it's done, I'll call.", "Send the form"),
        ("It will have been sent by then.", "Send the form"),
        ("It's not done.", "Send the form"),
        ("I haven't sent it.", "Send the form"),
        ("I've called them.", "Send the form"),
        ("It should have been refunded.", "Refund the order"),
        ("I'm used to it.", "Use the form"),
        ("", "Send the form"),
        ("I've sent it.", ""),
    ],
)
def test_not_done(text: str, promise: str) -> None:
    assert not says_done(text, promise)


def test_forms_of_verbs() -> None:
    assert [participle(one) for one in ("book", "update", "apply", "play", "send")] == [
        "booked", "updated", "applied", "played", "sent",
    ]  # fmt: skip
