"""Words that were heard, given to the texts that they belong to."""

from hypothesis import given
from hypothesis import strategies as st

from convoscope.audio.word_alignment import AlignedText, align
from convoscope.resources import Recognised


def words(*parts: str) -> list[Recognised]:
    """Words of half a second each, a second of pause between the parts."""
    now, spoken = 0.0, []
    for part in parts:
        for word in part.split():
            spoken.append(Recognised(word, now, now + 0.5))
            now += 0.5
        now += 1.0
    return spoken


def heard(aligned: list[AlignedText]) -> list[str]:
    return [one.heard for one in aligned]


class TestTexts:
    def test_have_their_words(self) -> None:
        assert heard(align(["Good morning.", "It is nine."], words("good morning", "it is nine"))) == [
            "good morning",
            "it is nine",
        ]

    def test_words_of_no_text_go_where_the_pause_is(self) -> None:
        # "well then" is in neither text, and is spoken with the second.
        assert heard(align(["Good morning.", "It is nine."], words("good morning", "well then it is nine"))) == [
            "good morning",
            "well then it is nine",
        ]

    def test_one_that_was_not_heard_has_none(self) -> None:
        aligned = align(["Good morning.", "Who is there?", "It is nine."], words("good morning", "it is nine"))
        assert heard(aligned) == ["good morning", "", "it is nine"]
        assert aligned[1].matched_share == 0.0
        # It would have been between the end of "morning" (1.0) and the start of "it" (2.0); it has no words itself.
        assert aligned[1].moment(0, 3) is None

    def test_labels_are_not_spoken(self) -> None:
        (aligned,) = align(["[laughs] Good <break/> morning."], words("good morning"))
        assert aligned.matched_share == 1.0

    def test_no_texts_and_no_words(self) -> None:
        assert align([], words("good")) == []
        assert heard(align(["Good."], [])) == [""]

    def test_written_without_blanks(self) -> None:
        (aligned,) = align(["今日は金曜日です"], words("今日は木曜日です"), "ja")
        # One of eight characters is another.
        assert aligned.matched_share == 7 / 8


class TestAStretchOfAText:
    def test_in_other_forms_has_all_words_between_its_neighbours(self) -> None:
        text = "That is $42.50 in all."
        (aligned,) = align([text], words("that is forty two fifty in all"))
        start = text.index("$")
        assert [word.text for word in aligned.words_at(start, start + 6)] == ["forty", "two", "fifty"]
        # The third to the fifth word, of half a second each.
        assert aligned.moment(start, start + 6) == (1.0, 2.5)

    def test_of_which_nothing_was_heard_is_between_its_neighbours(self) -> None:
        text = "That is nine in all."
        (aligned,) = align([text], words("that is", "in all"))
        start = text.index("nine")
        assert aligned.words_at(start, start + 4) == ()
        assert aligned.moment(start, start + 4) == (1.0, 2.0)  # after two words, before the pause is over

    def test_ends_where_its_last_word_was_heard(self) -> None:
        text = "Your code is seven, and your seat is twelve."
        (aligned,) = align([text], words("your code is seven and"))
        assert text[: aligned.reached] == "Your code is seven, and"


_SAID = st.lists(st.sampled_from(["good", "day", "nine", "is", "it"]), max_size=8)


@given(st.lists(_SAID, max_size=5), _SAID)
def test_every_word_belongs_to_one_text(texts: list[list[str]], spoken: list[str]) -> None:
    given_words = words(" ".join(spoken))
    aligned = align([" ".join(text) for text in texts], given_words)
    assert len(aligned) == len(texts)
    if texts:
        assert [word for one in aligned for word in one.words] == given_words


@given(st.lists(_SAID.filter(bool), min_size=1, max_size=5))
def test_what_is_spoken_as_written_is_heard_so(texts: list[list[str]]) -> None:
    written = [" ".join(text) for text in texts]
    aligned = align(written, words(*written))
    assert heard(aligned) == written
    assert all(one.matched_share == 1.0 for one in aligned)
