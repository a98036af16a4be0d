"""English: what each list finds, and what it leaves alone."""

from __future__ import annotations

import pytest

from support.lexicons import finds, objects


@pytest.mark.parametrize(
    "text",
    [
        "That's not what I asked.",
        "thats not what i said",
        "I already told you my name.",
        "You're not listening to me.",
        "You didn't answer my question.",
        "Are you sure?",
        "This is ridiculous.",
        "That doesn’t help.",
        "No, that's wrong.",
        "As I said, it's the blue one.",
        "For the third time, cancel it.",
        "I understand, but I need it today.",
        "It still doesn't work.",
        "Could you check again?",
    ],
)
def test_objection(text: str) -> None:
    assert objects("en", text)


@pytest.mark.parametrize(
    "text",
    [
        "It doesn't work.",
        "Our printer doesn't work any more.",
        "Where is my order?",
        "Thank you for your help.",
        "No, that's all.",
        "That's not a problem.",
        "I did not receive my package.",
        "Yes, that is right.",
        "I was charged twice, that is why I write.",
        "The app says my password is wrong.",
        "Can you keep my seat?",
        "No, I don't think so, thanks.",
        "I have two bags already.",
    ],
)
def test_no_objection(text: str) -> None:
    assert not objects("en", text)


@pytest.mark.parametrize(
    "text",
    [
        "Thank you so much!",
        "thx",
        "You've been very helpful.",
        "Much appreciated",
    ],
)
def test_thanks(text: str) -> None:
    assert finds("en", "thanks", text)


@pytest.mark.parametrize(
    "text",
    [
        "Thanks for nothing",
        "That was not helpful",
        "Please cancel it.",
    ],
)
def test_no_thanks(text: str) -> None:
    assert not finds("en", "thanks", text)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't do that.",
        "Unfortunately that is not possible.",
        "I am unable to process this.",
        "We cannot refund this ticket.",
        "im not able to help with that",
        "I'm sorry, but I can't.",
        "Unfortunately we really may not do that.",
        "Unfortunately, this ticket is final.",
        "Sale items cannot be returned.",
    ],
)
def test_refusal(text: str) -> None:
    assert finds("en", "refusal", text)


@pytest.mark.parametrize(
    "text",
    [
        "I can help with that.",
        "Your parcel is on its way.",
        "I can't wait to see you.",
        "Unfortunately the blue chair is sold out, but I reserved the red one for you.",
        "Unfortunately the blue chair costs 20 euros more now: 120 euros.",
        "Unfortunately I missed that. Your code, please?",
        "I'm afraid it will rain on Friday.",
        "I'm sorry, but which of the two orders do you mean?",
        "Here is your final bill.",
    ],
)
def test_no_refusal(text: str) -> None:
    assert not finds("en", "refusal", text)


@pytest.mark.parametrize(
    "text",
    [
        "I am transferring you to a human agent.",
        "You will be transferred now.",
        "Let me connect you with a specialist.",
    ],
)
def test_hand_over(text: str) -> None:
    assert finds("en", "hand_over", text)


@pytest.mark.parametrize(
    "text",
    [
        "Would you like me to transfer you?",
        "I cannot transfer you.",
        "The money was transferred to your account.",
    ],
)
def test_no_hand_over(text: str) -> None:
    assert not finds("en", "hand_over", text)


@pytest.mark.parametrize(
    "text",
    [
        "Goodbye!",
        "bye",
        "That's all, thanks.",
        "See you",
    ],
)
def test_goodbye(text: str) -> None:
    assert finds("en", "goodbye", text)


@pytest.mark.parametrize(
    "text",
    [
        "Is that all?",
        "I see you have three rooms.",
    ],
)
def test_no_goodbye(text: str) -> None:
    assert not finds("en", "goodbye", text)
