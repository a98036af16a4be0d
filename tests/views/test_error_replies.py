"""Replies that are error texts of the system, and sentences about errors, which are replies."""

from __future__ import annotations

import pytest

from convoscope.views.user_turns import is_error_text

ERRORS = [
    "Internal Server Error",
    "500 Internal Server Error",
    "502 Bad Gateway",
    "HTTP 503",
    "Error code: 429 - {'error': {'message': 'Rate limit reached'}}",
    '{"error": "model overloaded"}',
    '{"error": {"message": "The engine is overloaded", "type": "server_error"}}',
    '{"status": "error", "message": "Model overloaded"}',
    "null",
    "None",
    "undefined",
    "NaN",
    "[object Object]",
    "Traceback (most recent call last):\n  File \"bot.py\", line 3, in reply\nKeyError: 'name'",
    "openai.RateLimitError: Error code: 429",
    "ReadTimeout: HTTPSConnectionPool(host='api', port=443): Read timed out.",
    "Error: connect ECONNREFUSED 10.0.0.1:8080",
    "Error: model not found",
    "upstream connect error or disconnect/reset before headers. reset reason: overflow",
    "<html><head><title>502 Bad Gateway</title></head><body></body></html>",
    "Request timed out.",
    "rpc error: code = Unavailable desc = transport is closing",
    "Fehler: Modell nicht geladen",
]
REPLIES = [
    "Error 404 means that the page was not found. Check the address.",
    "Sorry, something went wrong. Please try again.",
    "I could not find your order.",
    "I'm unable to help with that.",
    "Error: please enter a number between 1 and 5.",
    "Invalid card number.",
    "Your payment failed because the card was declined.",
    "The server is down, we are working on it.",
    "The error was on our side and is fixed.",
    "The request was rejected by the bank.",
    "None of them.",
    "None left in stock.",
    "Nothing to pay.",
    "500 euros.",
    "404",
    "It is flight 503 to Rome.",
    '{"answer": "It is on its way.", "error": "none"}',
    '{"reply": "No such order", "success": false}',
    "Not found.",
    "Fehler: Bitte geben Sie eine Nummer ein.",
    "Do you see an Internal Server Error?",
    "No errors.",
    "ok",
    "[laughs] Of course.",
]


@pytest.mark.parametrize("text", ERRORS)
def test_errors(text: str) -> None:
    assert is_error_text(text)


@pytest.mark.parametrize("text", REPLIES)
def test_replies(text: str) -> None:
    assert not is_error_text(text)


def test_half_a_character_is_no_obstacle() -> None:
    # UTF-8 cannot hold it, and a log made in Python may.
    assert is_error_text("502 Bad Gateway \ud800")
    assert not is_error_text("It is on its way \ud800")
