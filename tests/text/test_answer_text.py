"""Two texts compared: the rules behind answer.*, with numbers derived by hand, and what holds for any text."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from convoscope.metrics.answer.multiple_choice import choice_accuracy_of, multi_pattern_of
from convoscope.text.comparison import (
    Comparison,
    accuracy_of,
    exact_match_of,
    f1_of,
    occurs,
    overlap_of,
    positions_of,
    words,
    words_or_characters,
)
from convoscope.text.folding import comparable

ANY = st.text(max_size=40)
TALK = st.lists(
    st.sampled_from(
        [
            *("the", "The", "cat", "B", "a", "answer", "is", ":", "-5", "3.14", "1,000", ".", "\n", "**", "`", "日本"),
            *("café", "cafe\u0301", "Straße", "STRASSE", "_", "don't", "not", "(C)", "5", "ﬁn", "हिन्दी", "..", "，"),
        ]
    ),
    max_size=8,
).map(" ".join)
TEXTS = ANY | TALK


class TestExactMatch:
    def test_options(self) -> None:
        assert exact_match_of(" Paris", "Paris", strip=False) == 0.0
        assert exact_match_of("in \t Paris", "in Paris") == 0.0
        assert exact_match_of("in \t Paris", "in Paris", collapse=True) == 1.0
        assert exact_match_of("PARIS", "paris", case_sensitive=False) == 1.0

    def test_how_an_accent_is_composed_does_not_count(self) -> None:
        assert exact_match_of("cafe\u0301", "café") == 1.0

    def test_folded_case(self) -> None:
        assert exact_match_of("STRASSE", "straße", case_sensitive=False) == 1.0
        # the small form of İ is an i with a dot above, which is not an i
        assert exact_match_of("İstanbul", "istanbul", case_sensitive=False) == 0.0

    @pytest.mark.parametrize("truth", ["", " ", "\u3000"])
    @pytest.mark.parametrize("strip", [True, False])
    def test_a_blank_truth_is_not_applicable(self, truth: str, strip: bool) -> None:
        assert exact_match_of("Paris", truth, strip=strip) is None


class TestAccuracy:
    @pytest.mark.parametrize(
        ("answer", "truth"),
        [
            ("new york", "New York"),
            ("It is Paris, of course.", "Paris"),
            ("It is\nNew\tYork.", "new york"),  # blanks of any kind
            ("Ｐａｒｉｓ", "Paris"),  # full width
            ("„Paris“", "Paris"),
            ("Paris", "Paris."),  # punctuation at the edges of the truth
            ("answer: b because …", "B"),
            ("_B_", "B"),
            ("答案：B", "B"),
            ("答案是B。", "B"),  # no blank parts Chinese from Latin letters
            ("그것은 B입니다", "B"),
            ("東京都に行く", "東京都"),
            ("I paid $5.", "5"),
            ("5. Paris", "5"),  # a point that ends, not one that goes on
            ("It costs -5", "-5"),
            ("pages 3-5", "5"),  # a hyphen between numbers is no minus
            ("!", "!"),  # of punctuation alone, all of it
            ("C++ it is", "C++"),
            ("It is _Paris_, or __Paris__.", "Paris"),  # a line below that joins nothing
            ("set user_id to 5", "user_id"),
        ],
    )
    def test_the_truth_stands_in_the_answer(self, answer: str, truth: str) -> None:
        assert accuracy_of(answer, truth) == 1.0

    @pytest.mark.parametrize(
        ("answer", "truth"),
        [
            ("party", "art"),
            ("Parisian", "Paris"),
            ("3.14", "3"),
            ("3.14", "14"),
            ("1,005", "5"),
            ("-5", "5"),
            ("it was -5 degrees", "5"),
            ("(-5)", "5"),
            ("15", "5"),
            ("caf\u00e9s", "caf"),
            ("कि", "क"),  # the vowel sign belongs to its letter
            ("user_id", "user"),
            ("user_id", "id"),
            ("set user__id first", "user"),
            ("set user__id first", "id"),
            ("v_2", "2"),
            ("", "Paris"),
        ],
    )
    def test_not_as_a_part_of_a_word_or_of_a_number(self, answer: str, truth: str) -> None:
        assert accuracy_of(answer, truth) == 0.0

    @pytest.mark.parametrize(
        ("answer", "truth", "recall"),
        [
            ("billing settings", "Settings > Billing > Cancel plan", 2 / 4),
            ("plan, then cancel", "cancel plan", 2 / 2),  # in another order
            ("very good", "very very good", 2 / 3),  # the second "very" is missing
            ("it costs 1000", "1,000 crowns", 1 / 2),
            ("no idea", "cancel plan", 0 / 2),
        ],
    )
    def test_else_the_share_of_its_words(self, answer: str, truth: str, recall: float) -> None:
        assert accuracy_of(answer, truth) == pytest.approx(recall)

    def test_a_pattern_finds_the_answer(self) -> None:
        pattern = re.compile(r"Result=(\d*)|total (\d+)")
        assert accuracy_of("Result=7, but 8", "7", pattern=pattern) == 1.0
        assert accuracy_of("Result=7, but 8", "8", pattern=pattern) == 0.0
        assert accuracy_of("total 7", "7", pattern=pattern) == 1.0  # the group that took part
        assert accuracy_of("Result=", "7", pattern=pattern) == 0.0  # found, and empty
        assert accuracy_of("It is 7", "7", pattern=pattern) == 0.0  # nothing found
        assert accuracy_of("x 12", "12", pattern=re.compile(r"\d+")) == 1.0  # no group: all of it


class TestOverlap:
    def test_precision_recall_and_f1(self) -> None:
        overlap = overlap_of("The the cat", "the cat sat")
        assert overlap is not None
        # shared: the, cat; the second "the" has no partner
        assert (overlap.shared, overlap.given, overlap.wanted) == (2, 3, 3)
        assert (overlap.precision, overlap.recall, overlap.f1) == (2 / 3, 2 / 3, 2 / 3)

    def test_repeats_of_the_truth(self) -> None:
        assert f1_of("very very", "very very good") == pytest.approx(4 / 5)

    def test_case(self) -> None:
        assert f1_of("The CAT", "the cat", case_sensitive=True) == 0.0
        assert f1_of("Straße", "STRASSE") == 1.0

    @pytest.mark.parametrize("truth", ["", "!", "🙂"])
    def test_a_truth_without_words_is_not_applicable(self, truth: str) -> None:
        assert overlap_of("Paris", truth) is None


class TestWords:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("The CAT, sat!", ["the", "cat", "sat"]),
            ("don't snake_case", ["don", "t", "snake_case"]),
            ("well-known A-5", ["well", "known", "a", "5"]),
            ("3.14 and -5.", ["3.14", "and", "-5"]),
            ("1,000 or 12,345,678.90", ["1000", "or", "12345678.90"]),
            ("1,5 and 1,00", ["1,5", "and", "1,00"]),  # these commas part no thousands
            ("2024-05-01 10:30 v1.2.", ["2024", "05", "01", "10", "30", "v1.2"]),
            ("5-3 = 2", ["5", "3", "2"]),
            ("(-7) --8", ["-7", "-8"]),
            ("caf\u0065\u0301 हिन्दी", ["café", "हिन्दी"]),
            ("", []),
            ("...", []),
        ],
    )
    def test_words_and_numbers(self, text: str, found: list[str]) -> None:
        assert words(text) == found

    @given(TEXTS)
    def test_the_quick_way_for_plain_letters_is_the_way_for_all(self, text: str) -> None:
        # A character that is no word's own changes nothing but the way that is taken.
        assert words(text) == words(f"{text} ·")

    @given(TEXTS)
    def test_by_its_definition(self, text: str) -> None:
        alike = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
        of_words = "".join(
            one if one.isalnum() or one == "_" or unicodedata.category(one)[0] == "M" else f" {one} " for one in alike
        )
        # Without signs, words are what stands between all other characters.
        if not any(sign in alike for sign in "-.,"):
            kept = [one for one in of_words.split() if len(one) > 1 or one.isalnum() or one == "_" or _mark(one)]
            assert words(text) == kept


def _mark(one: str) -> bool:
    return unicodedata.category(one)[0] == "M"


class TestWritingsWithoutBlanks:
    """A right answer in a sentence had an F1 of 0."""

    @pytest.mark.parametrize(
        ("answer", "truth", "value"),
        [
            ("東京です", "東京", 2 / 3),  # 2 of 4 and 2 of 2 characters: 4 ÷ 6
            ("答案是北京。", "北京", 4 / 7),  # 2 shared, 5 and 2
            ("กรุงเทพ", "กรุงเทพ", 1.0),
            ("ມື້ນີ້", "ມື້ນີ້", 1.0),
            ("iPhone15を買う", "iPhone15", 2 / 5),  # iPhone15, を, 買, う
            ("서울 입니다", "서울", 2 / 3),  # Korean sets blanks
        ],
    )
    def test_each_character_is_a_word(self, answer: str, truth: str, value: float) -> None:
        assert f1_of(answer, truth) == pytest.approx(value)

    def test_vowel_signs_belong_to_their_letter(self) -> None:
        assert words_or_characters("ที่นี่") == ["ที่", "นี่"]

    def test_words_alone_as_before(self) -> None:
        assert f1_of("東京です", "東京", tokenize="words") == 0.0

    def test_characters_of_any_writing(self) -> None:
        # "ab c" and "abd": a and b of 3 and 3.
        assert f1_of("ab c", "abd", tokenize="characters") == pytest.approx(2 / 3)

    def test_by_a_function_of_your_own(self) -> None:
        assert f1_of("A-b", "a-c", tokenize=lambda text: text.split("-")) == 0.5
        assert f1_of("A-b", "a-c", tokenize=lambda text: text.split("-"), case_sensitive=True) == 0.0


class TestCaseOfCandidates:
    def test_capital_letters_count_where_they_are_asked_to(self) -> None:
        for answer, value in (("Answer: Paris", 1.0), ("Answer: paris", 0.0)):
            assert multi_pattern_of(answer, "Paris", case_sensitive=True) == value
            assert multi_pattern_of(answer, "Paris") == 1.0
        assert multi_pattern_of("b", "London", choices=["Paris", "London"], case_sensitive=True) == 0.0
        assert multi_pattern_of("B", "London", choices=["Paris", "London"], case_sensitive=True) == 1.0


class TestForAnyText:
    @given(TEXTS, TEXTS)
    @example("ŉ", "ŉ")
    @example("\u0345", "\u0399")
    def test_values_lie_between_0_and_1(self, answer: str, truth: str) -> None:
        for value in (
            exact_match_of(answer, truth),
            accuracy_of(answer, truth),
            multi_pattern_of(answer, truth),
            f1_of(answer, truth),
            choice_accuracy_of(answer, truth, choices=[truth, answer]),
        ):
            assert value is None or 0.0 <= value <= 1.0

    @given(TEXTS, TEXTS)
    def test_not_applicable_exactly_where_the_truth_is_blank(self, answer: str, truth: str) -> None:
        blank = not truth.strip()
        assert (exact_match_of(answer, truth) is None) == blank
        assert (accuracy_of(answer, truth) is None) == blank
        assert (multi_pattern_of(answer, truth) is None) == blank
        assert (f1_of(answer, truth) is None) == (not words(truth))

    @given(TEXTS, TEXTS)
    def test_from_strict_to_lenient(self, answer: str, truth: str) -> None:
        exact, accuracy, multi = (score(answer, truth) for score in (exact_match_of, accuracy_of, multi_pattern_of))
        if exact is not None:
            assert accuracy is not None
            assert multi is not None
            assert exact <= multi <= accuracy
            assert exact <= (exact_match_of(answer, truth, case_sensitive=False, collapse=True) or 0)

    @given(TEXTS)
    def test_every_text_that_says_something_is_its_own_truth(self, text: str) -> None:
        if text.strip():
            assert exact_match_of(text, text) == 1.0
            assert accuracy_of(text, text) == 1.0
            assert multi_pattern_of(text, text) == 1.0
        if words(text):
            assert f1_of(text, text) == 1.0

    @given(TEXTS, TEXTS)
    def test_f1_and_exact_match_do_not_mind_which_is_which(self, one: str, other: str) -> None:
        if words(one) and words(other):
            assert f1_of(one, other) == f1_of(other, one)
        if one.strip() and other.strip():
            assert exact_match_of(one, other) == exact_match_of(other, one)

    @given(TEXTS, TEXTS)
    def test_overlap_counts_as_a_bag_of_words_does(self, answer: str, truth: str) -> None:
        overlap = overlap_of(answer, truth)
        if overlap is not None:
            assert (
                overlap.shared == (Counter(words_or_characters(answer)) & Counter(words_or_characters(truth))).total()
            )
            assert overlap.f1 <= 2 * overlap.recall

    @given(TEXTS, TEXTS, TEXTS)
    def test_more_words_around_it_leave_the_truth_in_the_answer(self, before: str, truth: str, after: str) -> None:
        if comparable(truth) and comparable(truth)[0].isalpha() and comparable(truth)[-1].isalpha():
            assert accuracy_of(f"{before} | {truth} | {after}", truth) == 1.0


_PIECES = ["Paris", "paris", "a", "B", " ", "\n", ".", "-", "+", ">", "**", "answer:", "the answer is ", "_", "5", "é"]
_pieced = st.lists(st.sampled_from(_PIECES), max_size=8).map("".join)


class TestComparison:
    @given(_pieced, _pieced)
    def test_the_accuracy_is_that_of_comparable_texts(self, answer: str, truth: str) -> None:
        said, wanted = comparable(answer), comparable(truth)
        mine = Counter(words(said))
        shared = sum(min(count, mine[word]) for word, count in Counter(words(wanted)).items())
        share = shared / len(words(wanted)) if words(wanted) else 0.0
        assert Comparison(answer, truth).accuracy() == (None if not wanted else 1.0 if occurs(wanted, said) else share)

    @given(_pieced, _pieced, _pieced)
    def test_a_truth_with_a_word_that_the_answer_lacks_is_no_candidate(self, before: str, truth: str, end: str) -> None:
        for answer in (before, before + truth + end, f"{before} {truth} {end}"):
            if Comparison(answer, truth).lacks_a_word:
                assert multi_pattern_of(answer, truth) == 0.0

    @pytest.mark.parametrize(
        ("answer", "truth", "lacks"),
        [
            ("It is Rome.", "Paris", True),
            ("Paris, Paris", "paris paris paris", True),  # two of three
            ("It is Paris.", "paris", False),
            ("Party", "art", True),  # a part of a word is no word
            ("flight 7", "seven", False),  # beside digits, it takes a closer look
            ("Rome", "!", False),  # without a word there is none to lack
        ],
    )
    def test_words_that_are_lacking(self, answer: str, truth: str, lacks: bool) -> None:
        assert Comparison(answer, truth).lacks_a_word is lacks


@pytest.mark.parametrize(
    "text", ["a " * 20_000, "\n" * 20_000, "- " * 20_000, "answer: " * 5_000, "**" * 10_000, "\\boxed{" * 5_000]
)
def test_long_texts_take_no_longer_than_they_are(text: str) -> None:
    # Measured in tests by not timing out: each of these took minutes with a careless pattern.
    for truth in ("B", "Paris", text):
        accuracy_of(text, truth)
        multi_pattern_of(text, truth)
        choice_accuracy_of(text, truth, choices=["Paris", "Rome"])


@given(st.text(alphabet="好a ", min_size=1, max_size=8), st.text(alphabet="好a ", max_size=40))
def test_places_are_those_where_a_text_stands_as_whole_words_one_by_one(wanted: str, given: str) -> None:
    starts = [place for place in range(len(given)) if given.startswith(wanted, place)]
    # A stretch of Latin letters is one word; elsewhere a word may begin and end anywhere.
    whole = [
        place
        for place in starts
        if "aa" not in (given[place - 1 : place] + wanted[0], wanted[-1] + given[place + len(wanted) :][:1])
    ]
    assert list(positions_of(wanted, given)) == whole


def test_a_text_that_repeats_itself_stands_at_each_of_its_repeats() -> None:
    # 7 times "ab " and once more without the blank: "ab ab ab" begins at the first six of eight words.
    assert list(positions_of("ab ab ab", "ab " * 7 + "ab")) == [0, 3, 6, 9, 12, 15]
