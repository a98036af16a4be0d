"""Signs find what their patterns find, and run only where a word gives them a chance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.annotate.rules.signs import SignIndex, alternatives, any_of, needed_words, table

TOPICS = {label: rule["strong"] for label, rule in table("topics").items() if isinstance(rule, dict)}
INDEX = SignIndex()
SIGNS = {label: (INDEX.sign(*texts), any_of(texts)) for label, texts in TOPICS.items()}
TEXT = (
    "I want my money back five pounds a month refund cancel the plan it's too dear bill charged twice parcel hasn't"
    " arrived can't log in İt ſend send-back 'quoted' (return) label, is leaking? at {weekday} £20 Kind won't"
)
WORDS = st.sampled_from(TEXT.split())


@pytest.mark.parametrize(
    ("text", "parts"),
    [("a|b", ["a", "b"]), ("(?:a|(?:b|c))", ["a", "b", "c"]), ("(?:a)(?:b|c)", ["(?:a)(?:b|c)"]), ("[|]|\\\\|", None)],
)
def test_alternatives(text: str, parts: list[str] | None) -> None:
    """What stands in brackets of letters, or behind a backslash, divides nothing."""
    assert alternatives(text) == (parts or ["[|]", "\\\\", ""])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("refund(?:s|ed)?", {"refund"}),
        ("(?:my|the) invoice", {"invoice"}),
        ("re(?:boot|start) it", {"reboot", "restart"}),
        # A blank behind a word says that it ends there.
        ("sue you all", {"sue "}),
        ("\\w+", None),
        ("(?:very )?dear", {"dear"}),
        ("(?:x|)", None),
    ],
)
def test_what_a_match_must_have(text: str, words: set[str] | None) -> None:
    assert (needed_words(text) or [None])[0] == words


def test_two_sets_are_needed() -> None:
    index = SignIndex()
    sign = index.sign("(?:close|end) my (?:account|contract)")
    assert [bool(index.chances(text) & sign.bits) for text in ("Close it.", "My account", "My account, close it")] == [
        False,
        False,
        True,
    ]


@given(st.lists(WORDS, max_size=12).map(" ".join))
def test_a_sign_finds_what_the_whole_pattern_finds(text: str) -> None:
    for sign, whole in SIGNS.values():
        assert whole is not None
        assert [one.span() for one in sign.finditer(text)] == [one.span() for one in whole.finditer(text)]


@given(st.text(alphabet="aeiİıſstK refund'-.", max_size=60))
def test_letters_that_are_taken_for_others(text: str) -> None:
    sign, whole = INDEX_OF_LETTERS
    assert [one.span() for one in sign.finditer(text)] == [one.span() for one in whole.finditer(text)]


_texts = ("is", "kites?", "it isn't", "refund")
_whole = any_of(_texts)
assert _whole is not None
INDEX_OF_LETTERS = (SignIndex().sign(*_texts), _whole)
