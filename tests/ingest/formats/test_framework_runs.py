"""The framework's log: previews go, words in a row become one text (voice logs, 3.1 step 2)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from convoscope.ingest.formats.voice_logs.framework import FrameworkLine, TextRun, runs, without_previews


def sent(text: str, ms: int | None = None) -> FrameworkLine:
    return FrameworkLine(ms, "tts_text", text)


def written(text: str, ms: int | None = None) -> FrameworkLine:
    return FrameworkLine(ms, "llm_response", text)


def begins(ms: int | None = None) -> FrameworkLine:
    return FrameworkLine(ms, "turn_start", "StartFrame#0")


def ends(ms: int | None = None, *, interrupted: bool = False) -> FrameworkLine:
    return FrameworkLine(ms, "turn_end", "turn_end", interrupted)


def texts(lines: list[FrameworkLine]) -> list[str]:
    return [line.text for line in without_previews(lines)]


class TestWhatTheModelWrote:
    def test_counts_where_nothing_was_sent_to_the_speech_engine(self) -> None:
        assert texts([written("Hel"), written("lo.")]) == ["Hel", "lo."]

    def test_goes_where_anything_was_sent_even_in_another_turn(self) -> None:
        assert texts([written("Hello.", 1), ends(2), sent("Bye.", 3)]) == ["turn_end", "Bye."]


class TestAPhraseWithTheTimeOfAnotherText:
    def test_goes(self) -> None:
        assert texts([sent("Hello there.", 5), sent("Hello", 5), sent("you", 6)]) == ["Hello", "you"]

    def test_goes_also_where_the_other_is_far_away(self) -> None:
        assert texts([sent("Hello there.", 5), ends(6), sent("Bye", 5)]) == ["turn_end", "Bye"]

    def test_two_phrases_with_one_time_both_go(self) -> None:
        assert texts([sent("Hello there.", 5), sent("How are you?", 5), sent("Fine.", 6)]) == ["Fine."]

    def test_words_with_one_time_stay(self) -> None:
        assert texts([sent("Hello", 5), sent("there.", 5)]) == ["Hello", "there."]

    def test_the_time_of_a_turn_boundary_does_not_count(self) -> None:
        assert texts([begins(5), sent("Hello there.", 5)]) == ["StartFrame#0", "Hello there."]

    def test_the_time_of_what_the_model_wrote_does_not_count(self) -> None:
        assert texts([written("Hello", 5), sent("Hello there.", 5)]) == ["Hello there."]

    def test_an_unknown_time_is_nobodys_time(self) -> None:
        assert texts([sent("Hello there."), sent("How are you?")]) == ["Hello there.", "How are you?"]


class TestAPhraseWhoseWordsFollow:
    def test_goes(self) -> None:
        assert texts([sent("Hello there.", 1), sent("Hello", 2), sent("there.", 3)]) == ["Hello", "there."]

    def test_stays_if_a_word_differs(self) -> None:
        lines = [sent("Hello there.", 1), sent("Hello", 2), sent("there", 3)]
        assert texts(lines) == ["Hello there.", "Hello", "there"]

    def test_stays_if_a_word_is_missing(self) -> None:
        assert texts([sent("Hello there.", 1), sent("Hello", 2)]) == ["Hello there.", "Hello"]

    def test_stays_if_a_turn_boundary_parts_them(self) -> None:
        lines = [sent("Hello there.", 1), sent("Hello", 2), ends(3), sent("there.", 4)]
        assert texts(lines) == ["Hello there.", "Hello", "turn_end", "there."]

    def test_stays_if_they_follow_as_phrases(self) -> None:
        lines = [sent("One two three four", 1), sent("One two", 2), sent("three four", 3)]
        assert texts(lines) == ["One two three four", "One two", "three four"]

    def test_is_looked_for_after_phrases_with_a_shared_time_went(self) -> None:
        # the second phrase shares its time with "x" and goes first; only then do the words follow the first
        lines = [sent("Hello there.", 1), sent("in between", 2), sent("Hello", 3), sent("there.", 4), sent("x", 2)]
        assert texts(lines) == ["Hello", "there.", "x"]

    def test_is_compared_exactly(self) -> None:
        lines = [sent("Hello  there.", 1), sent("Hello", 2), sent("there.", 3)]
        assert texts(lines) == ["Hello  there.", "Hello", "there."]


class TestRuns:
    def test_words_are_joined_by_a_blank_at_the_time_of_the_first(self) -> None:
        assert runs([begins(1), sent("Hello", 2), sent("there.", 9), ends(10, interrupted=True)]) == [
            TextRun("turn_start", 1, "StartFrame#0", ((1, "StartFrame#0"),), None),
            TextRun("tts_text", 2, "Hello there.", ((2, "Hello"), (9, "there.")), None),
            TextRun("turn_end", 10, "turn_end", ((10, "turn_end"),), True),
        ]

    def test_what_the_model_wrote_is_joined_as_it_is(self) -> None:
        assert [run.text for run in runs([written("Hel", 1), written("lo there.", 2)])] == ["Hello there."]

    def test_only_a_turn_boundary_parts_texts(self) -> None:
        # no gap in time does
        lines = [sent("One", 1), sent("two", 99_000), ends(99_001), sent("three", 99_002)]
        assert [run.text for run in runs(lines)] == ["One two", "turn_end", "three"]

    def test_every_turn_boundary_stands_by_itself(self) -> None:
        assert [
            (run.kind, run.ms, run.interrupted) for run in runs([ends(1), ends(2, interrupted=True), begins(3)])
        ] == [
            ("turn_end", 1, False),
            ("turn_end", 2, True),
            ("turn_start", 3, None),
        ]

    def test_nothing(self) -> None:
        assert runs([]) == []
        assert without_previews([]) == []


_LINES = st.lists(
    st.builds(
        FrameworkLine,
        st.none() | st.integers(0, 5),
        st.sampled_from(["turn_start", "turn_end", "tts_text", "tts_text", "llm_response"]),
        st.sampled_from(["", " ", "a", "b", "a b", "b a", "a b a"]),
        st.none() | st.booleans(),
    )
)


@given(_LINES)
def test_only_phrases_and_the_models_writing_ever_go(lines: list[FrameworkLine]) -> None:
    kept = without_previews(lines)
    assert [line for line in kept if " " not in line.text] == [
        line
        for line in lines
        if " " not in line.text and (line.kind != "llm_response" or not any(one.kind == "tts_text" for one in lines))
    ]


@given(_LINES)
def test_runs_lose_no_line(lines: list[FrameworkLine]) -> None:
    assert [(run.kind, *part) for run in runs(lines) for part in run.parts] == [
        (line.kind, line.ms, line.text) for line in lines
    ]
