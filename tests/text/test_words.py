"""Words and sentences of ASCII texts are counted by bytes: they must come out as the definitions have them."""

import re

from hypothesis import given
from hypothesis import strategies as st

from convoscope.text.comparison import Sentence, count_words, long_sentences, normalised_words, sentences, tokens

# Whatever parts words and sentences, in ASCII and beyond.
_PIECES = ["a", "B", "9", "_", "é", "ß", "…", "。", "-", "'", ".", "!", "?", " ", "\n", "\t", "\x1c", "\x85", "\x00"]
texts = st.lists(st.sampled_from(_PIECES), max_size=16).map("".join)


@given(texts)
def test_a_word_stands_between_blanks_and_holds_a_letter_or_a_digit(text: str) -> None:
    assert count_words(text) == sum(any(one.isalnum() for one in run) for run in text.split())


@given(texts.filter(str.isascii))
def test_a_token_is_a_run_of_letters_digits_and_underscores(text: str) -> None:
    assert tokens(text) == re.findall(r"\w+", text.lower())
    assert normalised_words(text) == " ".join(re.findall(r"\w+", text.casefold()))


@given(texts)
def test_a_sentence_ends_after_a_mark_before_a_blank_and_at_line_ends(text: str) -> None:
    parts = re.split(r"[.!?…]+(?:\s+|$)|[。！？\n]+", text)
    assert sentences(text) == [part.strip() for part in parts if part.strip()]


@given(texts, st.integers(1, 4))
def test_long_sentences_are_those_with_enough_words(text: str, least: int) -> None:
    long = [Sentence(normalised_words(one), one) for one in sentences(text) if count_words(one) >= least]
    assert long_sentences(text, least) == long


def test_what_sentences_have_in_common() -> None:
    # "e-mail" is one word of two tokens, and "-" is no word
    assert long_sentences("Send an e-mail - now! ok. SEND an E mail now", 4) == [
        Sentence("send an e mail now", "Send an e-mail - now"),
        Sentence("send an e mail now", "SEND an E mail now"),
    ]
