"""What was meant, said and heard, side by side: which words are marked, which readings are told once."""

from __future__ import annotations

import itertools
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from convoscope.conversation import Text, Utterance
from convoscope.report.text_diff import MAX_WORDS, DiffPiece, Op, TextVersion, difference, readings
from support.strategies import AWKWARD_TEXTS


def told(before: str, after: str) -> list[tuple[Op, str]]:
    return [(piece.op, piece.text) for piece in difference(before, after)]


def text_of(pieces: tuple[DiffPiece, ...], *ops: Op) -> str:
    return "".join(piece.text for piece in pieces if piece.op in ops)


def said(**texts: str | Text) -> tuple[TextVersion, ...]:
    """The readings of an utterance with these texts."""
    given = {kind: text if isinstance(text, Text) else Text(text) for kind, text in texts.items()}
    return readings(Utterance(seq=0, speaker="agent", **given))


def kinds(found: tuple[TextVersion, ...]) -> list[tuple[str, ...]]:
    return [reading.kinds for reading in found]


class TestExamples:
    def test_a_speaker_who_was_cut_off_lacks_the_rest(self) -> None:
        assert told("Your order comes on Friday morning.", "Your order comes") == [
            ("=", "Your order comes"),
            ("-", " on Friday morning."),
        ]

    def test_a_misheard_word_is_one_gone_and_one_come(self) -> None:
        assert told("I want to fly to Austin", "I want to fly to Boston") == [
            ("=", "I want to fly to "),
            ("-", "Austin "),
            ("+", "Boston"),
        ]

    def test_a_misheard_word_in_the_middle_keeps_the_blanks_of_the_text(self) -> None:
        assert told("two tickets please", "three tickets please") == [
            ("-", "two "),
            ("+", "three "),
            ("=", "tickets please"),
        ]

    def test_a_spelled_number_differs_from_its_digits(self) -> None:
        # Nobody guesses that the two are the same: it is what a recogniser really wrote.
        assert told("my code is four two", "my code is 42") == [
            ("=", "my code is "),
            ("-", "four two "),
            ("+", "42"),
        ]

    def test_a_word_more(self) -> None:
        assert told("yes please", "yes um please") == [("=", "yes "), ("+", "um "), ("=", "please")]

    def test_a_word_less(self) -> None:
        assert told("yes um please", "yes please") == [("=", "yes "), ("-", "um "), ("=", "please")]

    def test_the_first_words_gone(self) -> None:
        assert told("well hello there", "there") == [("-", "well hello "), ("=", "there")]

    def test_nothing_alike(self) -> None:
        assert told("good day", "auf Wiedersehen") == [("-", "good day "), ("+", "auf Wiedersehen")]

    def test_the_same(self) -> None:
        assert told("the same words", "the same words") == [("=", "the same words")]

    def test_changes_in_a_row_are_told_as_one_gone_and_one_come(self) -> None:
        assert told("go to gate nine at noon", "go from port two at noon") == [
            ("=", "go "),
            ("-", "to gate nine "),
            ("+", "from port two "),
            ("=", "at noon"),
        ]

    def test_of_whatever_kinds_they_are(self) -> None:
        # three words for one, and one for three: a word replaced, and two only gone, or only come
        assert told("a b c d", "a x d") == [("=", "a "), ("-", "b c "), ("+", "x "), ("=", "d")]
        assert told("a x d", "a b c d") == [("=", "a "), ("-", "x "), ("+", "b c "), ("=", "d")]


class TestWhatDoesNotCount:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("Hello, World!", "hello world"),
            ("hello world", "HELLO — world…"),
            ("Straße", "STRASSE"),  # large letters have no ß
            ("caf\u00e9", "cafe\u0301"),  # one letter with its accent, written as one sign or as two
            ("a  b", "a b"),
            ("a b\n", "a b"),
            ("one , two", "one two"),
            ("one two", "one , two"),
        ],
    )
    def test_case_punctuation_and_blanks(self, before: str, after: str) -> None:
        assert told(before, after) == [("=", after)]

    def test_a_lone_comma_is_neither_missed_nor_added(self) -> None:
        assert told("well , yes", "well ... no") == [("=", "well ... "), ("-", "yes "), ("+", "no")]

    def test_a_lone_dash_among_words_that_repeat(self) -> None:
        assert told("no no no", "no - no no") == [("=", "no - no no")]

    def test_but_an_underscore_does(self) -> None:
        assert ("+", "a_b") in told("a b", "a_b")

    def test_an_accent_counts(self) -> None:
        assert told("resume", "résumé") == [("-", "resume "), ("+", "résumé")]


class TestWhatCounts:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("👍", "👎"),
            ("👍", "👍🏽"),  # the colour of a hand is a sign of its own
            ("C++", "C#"),
            ("C++", "C"),
            ("£5", "$5"),
            ("5°", "5"),
            ("-5", "5"),
            ("\u22125", "5"),  # the minus that is not a hyphen
            ("-٥", "٥"),  # five in Arabic digits
            ("x²", "x"),
            ("हिन्दी", "हन्दी"),  # a vowel that is a mark of its letter
        ],
    )
    def test_letters_digits_marks_and_signs(self, before: str, after: str) -> None:
        assert told(before, after) == [("-", f"{before} "), ("+", after)]
        assert told(f"it is {before} now", f"it is {after} now") == [
            ("=", "it is "),
            ("-", f"{before} "),
            ("+", f"{after} "),
            ("=", "now"),
        ]

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("Hello!", "hello"),
            ("a - 5", "a 5"),  # not directly before the digit: a dash
            ("5-", "5"),
            ("well-known", "wellknown"),
            ("-yes", "yes"),
            ("“so”", "so"),
            ("(so)", "so"),
            ("¿so?", "so"),
        ],
    )
    def test_but_not_punctuation(self, before: str, after: str) -> None:
        assert told(before, after) == [("=", after)]

    def test_a_sign_alone_is_a_word(self) -> None:
        assert told("thanks", "thanks 👍") == [("=", "thanks "), ("+", "👍")]
        assert told("a + b", "a b") == [("=", "a "), ("-", "+ "), ("=", "b")]


class TestScriptsWithoutBlanks:
    def test_chinese_is_compared_letter_by_letter(self) -> None:
        assert told("我要去北京", "我要去南京") == [("=", "我要去"), ("-", " 北 "), ("+", "南"), ("=", "京")]

    def test_japanese_is_compared_letter_by_letter(self) -> None:
        assert told("はいそうです", "はいです") == [("=", "はい"), ("-", " そう "), ("=", "です")]

    def test_their_punctuation_does_not_count(self) -> None:
        assert told("你好。", "你好") == [("=", "你好")]

    def test_words_of_other_scripts_among_them_stay_whole(self) -> None:
        assert told("我用iPhone", "我用iPad") == [("=", "我用"), ("-", " iPhone "), ("+", "iPad")]

    def test_a_sign_written_as_two_is_the_same_sign(self) -> None:
        assert told("\u304c", "\u304b\u3099") == [("=", "\u304b\u3099")]


class TestNothingToCompare:
    def test_both_empty(self) -> None:
        assert told("", "") == []

    def test_nothing_said(self) -> None:
        assert told("hello", "") == [("-", "hello")]

    def test_nothing_before(self) -> None:
        assert told("", "hello") == [("+", "hello")]

    def test_blanks_are_no_words(self) -> None:
        assert told("", "  ") == [("=", "  ")]
        assert told("  ", "") == []


class TestVeryLongTexts:
    def test_as_many_words_as_can_be_compared(self) -> None:
        before = "word " * MAX_WORDS
        assert told(before, before + "") == [("=", before)]
        assert told(before, "word " * (MAX_WORDS - 1)) == [("=", "word " * (MAX_WORDS - 1)), ("-", "word ")]

    @pytest.mark.parametrize(("before", "after"), [(MAX_WORDS + 1, 1), (1, MAX_WORDS + 1)])
    def test_one_more_is_shown_without_marks(self, before: int, after: int) -> None:
        assert difference("a " * before, "b " * after) is None

    def test_an_agent_that_repeats_itself_is_compared_word_by_word(self) -> None:
        half = MAX_WORDS // 2
        pieces = difference("yes sir " * half, "yes miss " * half) or ()
        assert [piece.op for piece in pieces] == ["=", "-", "+"] * half

    def test_what_cannot_be_compared_is_still_told_as_two_readings(self) -> None:
        intended, spoken = "word " * (MAX_WORDS + 1), "only this"
        found = said(intended=intended, spoken=spoken)
        assert kinds(found) == [("intended",), ("spoken",)]
        assert found[-1].pieces == (DiffPiece("=", spoken),)

    def test_long_texts_that_are_the_same_are_one_reading(self) -> None:
        long = "word " * (MAX_WORDS + 1)
        assert kinds(said(intended=long, spoken=long)) == [("intended", "spoken")]


class TestReadings:
    def test_one_text_is_one_reading(self) -> None:
        (one,) = said(spoken="hello")
        assert (one.kinds, one.pieces) == (("spoken",), (DiffPiece("=", "hello"),))

    def test_no_text_is_none(self) -> None:
        assert said() == ()

    def test_an_empty_text_is_one(self) -> None:
        assert kinds(said(heard="")) == [("heard",)]

    def test_each_is_compared_with_the_one_before_it(self) -> None:
        intended, spoken, heard = said(
            intended="go to gate nine now", spoken="go to gate nine", heard="go to gate five"
        )
        assert intended.pieces == (DiffPiece("=", "go to gate nine now"),)
        assert spoken.pieces == (DiffPiece("=", "go to gate nine"), DiffPiece("-", " now"))
        # with what was spoken, not with what was intended: `now` is not missed a second time
        assert heard.pieces == (DiffPiece("=", "go to gate "), DiffPiece("-", "nine "), DiffPiece("+", "five"))

    def test_texts_equal_to_the_letter_are_one_reading_with_several_kinds(self) -> None:
        assert kinds(said(intended="Hello!", spoken="Hello!", heard="Hello!")) == [("intended", "spoken", "heard")]

    @pytest.mark.parametrize(
        ("intended", "spoken"), [("Hello!", "hello"), ("hello", "HELLO"), ("a b", "a  b"), ("caf\u00e9", "cafe\u0301")]
    )
    def test_the_same_words_in_other_letters_are_a_second_reading_without_marks(
        self, intended: str, spoken: str
    ) -> None:
        first, second = said(intended=intended, spoken=spoken)
        assert (first.kinds, first.pieces) == (("intended",), (DiffPiece("=", intended),))
        assert (second.kinds, second.pieces) == (("spoken",), (DiffPiece("=", spoken),))

    def test_only_neighbours_are_one(self) -> None:
        # Heard is compared with what was spoken; that it is as intended again is another reading.
        assert kinds(said(intended="yes sir", spoken="yes", heard="yes sir")) == [
            ("intended",),
            ("spoken",),
            ("heard",),
        ]
        assert kinds(said(intended="yes sir", spoken="yes", heard="yes")) == [("intended",), ("spoken", "heard")]

    def test_what_is_not_in_the_log_is_passed_over(self) -> None:
        assert kinds(said(intended="yes", heard="yes")) == [("intended", "heard")]

    def test_confidence_keeps_readings_apart(self) -> None:
        spoken, heard = said(spoken="hello", heard=Text("hello", confidence=0.4))
        assert (spoken.confidence, heard.confidence) == (None, 0.4)
        assert all(piece.op == "=" for piece in heard.pieces)
        first, second = said(spoken=Text("hello", confidence=0.4), heard="hello")
        assert (first.confidence, second.confidence) == (0.4, None)
        same = Text("hello", confidence=0.4)
        assert kinds(said(spoken=same, heard=same)) == [("spoken",), ("heard",)]

    def test_one_source_is_named_once(self) -> None:
        (one,) = said(intended=Text("hi", "llm.json"), spoken=Text("hi", "tts.json"), heard=Text("hi", "llm.json"))
        assert one.sources == ("llm.json", "tts.json")

    def test_no_source_is_none(self) -> None:
        (one,) = said(intended="hi", spoken="hi")
        assert one.sources == ()

    def test_the_language_is_told(self) -> None:
        (one,) = said(spoken=Text("hallo", language="de"))
        assert one.language == "de"


spoken_texts = st.one_of(
    st.lists(
        st.sampled_from(
            [
                "yes",
                "no",
                "No,",
                "um",
                "42",
                "-42",
                "-",
                "—",
                ".",
                "\n",
                "我",
                "です",
                "don't",
                "ß",
                "👍",
                "👎",
                "C++",
                "C#",
            ]
        ),
        max_size=12,
    ).map(" ".join),
    st.text(max_size=20),
    st.sampled_from(AWKWARD_TEXTS),
)


def counting(text: str) -> str:
    """What of a text counts, one sign at a time: letters, digits, marks and signs, and a minus before a digit."""
    text = unicodedata.normalize("NFC", text).casefold()
    kept = ""
    for one, following in itertools.pairwise(f"{text} "):
        if unicodedata.category(one)[0] in "LNMS" or one in "%#@&" or (one == "-" and following.isdigit()):
            kept += one
    return kept


class TestWhateverIsCompared:
    @given(spoken_texts, spoken_texts)
    @example("a b", "a")
    @example("我", " 我")
    def test_what_is_there_is_the_text_to_the_letter(self, before: str, after: str) -> None:
        assert text_of(difference(before, after), "=", "+") == after

    @given(spoken_texts, spoken_texts)
    @example("42", "- -42")
    def test_what_is_there_and_what_is_gone_are_the_words_before(self, before: str, after: str) -> None:
        pieces = difference(before, after)
        kept = "".join(counting(piece.text) for piece in pieces if piece.op != "+")
        assert kept == counting(before)

    @given(spoken_texts, spoken_texts)
    def test_no_piece_is_empty_and_neighbours_differ(self, before: str, after: str) -> None:
        pieces = difference(before, after)
        assert all(piece.text for piece in pieces)
        assert all(one.op != other.op for one, other in itertools.pairwise(pieces))

    @given(spoken_texts, spoken_texts)
    def test_what_came_never_stands_before_what_is_gone(self, before: str, after: str) -> None:
        ops = "".join(piece.op for piece in difference(before, after))
        assert "+-" not in ops

    @given(spoken_texts, spoken_texts)
    @example("", "&")
    def test_what_is_marked_holds_a_word(self, before: str, after: str) -> None:
        assert all(counting(piece.text) for piece in difference(before, after) if piece.op != "=")

    @given(spoken_texts, spoken_texts)
    def test_two_texts_differ_where_what_counts_does(self, before: str, after: str) -> None:
        marked = any(piece.op != "=" for piece in difference(before, after))
        # Where blanks stand may make a difference, too: `a b` is not `ab`.
        if counting(before) != counting(after):
            assert marked
        if [counting(word) for word in before.split()] == [counting(word) for word in after.split()]:
            assert not marked

    @given(spoken_texts)
    def test_a_text_does_not_differ_from_itself(self, text: str) -> None:
        assert told(text, text) == ([("=", text)] if text else [])

    @given(st.lists(st.tuples(st.sampled_from(["yes", "no"]), st.sampled_from(["", ",", "!", " -"])), max_size=8))
    def test_dressing_a_text_up_makes_no_difference(self, words: list[tuple[str, str]]) -> None:
        plain, dressed = " ".join(word for word, _ in words), " ".join(word.upper() + mark for word, mark in words)
        assert all(piece.op == "=" for piece in difference(plain, dressed))
