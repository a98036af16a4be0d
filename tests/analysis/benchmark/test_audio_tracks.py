"""Words and speakers against references, every number derived by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.analysis.benchmark.audio import (
    DiarizationSettings,
    FailedFile,
    SpeakerTime,
    asr_metrics,
    compare_speech,
    compare_texts,
    diarization_metrics,
    read_rttm,
)
from convoscope.analysis.benchmark.result import BenchmarkRequest
from convoscope.analysis.benchmark.run import run_benchmark
from convoscope.errors import InputError
from support.logs import write
from support.steps import steps

S = 1_000_000


def test_edits_of_words_and_characters() -> None:
    # the cat sat → the bat sat down: one substitution, one insertion, of three words.
    words = compare_texts("The bat sat, down!", "the cat sat").words
    assert words == (1, 0, 1, 3)
    assert compare_texts("", "a b").words == (0, 2, 0, 2)


def test_rates_are_pooled_and_not_averaged() -> None:
    # 1 of 1 word, and 0 of 9: 1 ÷ 10, not the mean 0.5.
    texts = ["no", "one two three four five six seven eight nine"]
    metrics = asr_metrics([compare_texts("yes", texts[0]), compare_texts(texts[1], texts[1])], texts)
    assert metrics["wer"].value == 0.1
    assert metrics["wer"].better == "lower"


def test_a_file_without_a_transcript_has_lost_all_its_words() -> None:
    wer = asr_metrics([compare_texts("a b", "a b"), FailedFile("no_prediction")], ["a b", "c d"])["wer"]
    assert (wer.value, wer.coverage, wer.worst_case) == (0, 0.5, 0.5)


def test_an_empty_reference_has_no_rate() -> None:
    wer = asr_metrics([compare_texts("something", "")], [""])["wer"]
    assert (wer.value, wer.reason) == (None, "empty_reference")


REFERENCE = [SpeakerTime("a", 0, 10 * S), SpeakerTime("b", 10 * S, 20 * S)]


def test_the_parts_of_the_error() -> None:
    # x is a for 8 s; nobody for 2 s; y is b for 10 s, and goes on for 5 s.
    sample = compare_speech([SpeakerTime("x", 0, 8 * S), SpeakerTime("y", 10 * S, 25 * S)], REFERENCE)
    assert sample[:4] == (2 * S, 5 * S, 0, 20 * S)
    assert sample.jaccard == (1 - 8 / 10, 1 - 10 / 15)
    metrics = diarization_metrics([sample], [compare_speech([], REFERENCE)])
    assert metrics["der"].value == 7 / 20
    assert metrics["jer"].value == pytest.approx((0.2 + 1 / 3) / 2)


def test_two_who_are_taken_for_one_are_confused() -> None:
    sample = compare_speech([SpeakerTime("x", 0, 20 * S)], REFERENCE)
    assert sample[:4] == (0, 0, 10 * S, 20 * S)


def test_overlap_can_be_left_out() -> None:
    both = [SpeakerTime("a", 0, 10 * S), SpeakerTime("b", 5 * S, 10 * S)]
    one = [SpeakerTime("x", 0, 10 * S)]
    assert compare_speech(one, both)[:4] == (5 * S, 0, 0, 15 * S)
    assert compare_speech(one, both, DiarizationSettings(skip_overlap=True))[:4] == (0, 0, 0, 5 * S)


def test_the_collar_lies_on_both_sides() -> None:
    # 0.5 s around 0, 10 and 20 are not scored: 9 s of each remain.
    assert compare_speech([], REFERENCE, DiarizationSettings(collar=0.5)).total == 18 * S


def test_a_line_that_is_no_rttm_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.rttm", "SPEAKER a 1 0.0 1.0 <NA> <NA> x <NA> <NA>\nSPEAKER a 1 zero 1.0\n")
    with pytest.raises(InputError, match=r"a\.rttm:2"):
        read_rttm(path)


def test_both_tracks_run_on_the_same_rails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONVOSCOPE_BENCHMARKS", str(tmp_path))
    line = "SPEAKER a 1 0.0 10.0 <NA> <NA> {} <NA> <NA>\n"
    write(tmp_path / "datasets" / "asr" / "d" / "references" / "a.txt", "hello world")
    write(tmp_path / "datasets" / "diarization" / "d" / "references" / "a.rttm", line.format("x"))
    write(tmp_path / "out" / "a.txt", "hello word")
    write(tmp_path / "out" / "a.rttm", line.format("y"))
    words = run_benchmark(BenchmarkRequest("asr", "d", predictions=tmp_path / "out"))
    assert words.metrics["wer"].value == 0.5
    assert words.metrics["cer"].value == pytest.approx(1 / 11)
    speakers = run_benchmark(BenchmarkRequest("diarization", "d", predictions=tmp_path / "out"))
    assert (speakers.metrics["der"].value, speakers.metrics["jer"].value) == (0, 0)
    assert speakers.receipt.config["collar"] == 0.0


LINE = "SPEAKER {} 1 {:.3f} {:.3f} <NA> <NA> {} <NA> <NA>\n"


class TestBrokenPredictions:
    """A file that is broken is a failed sample, and no silence."""

    @pytest.fixture
    def staged(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("CONVOSCOPE_BENCHMARKS", str(tmp_path))
        for name in ("a", "b"):
            write(tmp_path / "datasets" / "asr" / "d" / "references" / f"{name}.txt", "hello world")
            write(
                tmp_path / "datasets" / "diarization" / "d" / "references" / f"{name}.rttm",
                LINE.format(name, 0, 10, "x"),
            )
        write(tmp_path / "out" / "a.txt", "hello world")
        write(tmp_path / "out" / "a.rttm", LINE.format("a", 0, 10, "y"))
        return tmp_path

    @pytest.mark.parametrize(
        "text", ["garbage", '{"a": 1}', "", ";; a comment\n", LINE.format("other", 0, 10, "y"), "\xff", "SEGMENT b 1\n"]
    )
    def test_speakers(self, staged: Path, text: str) -> None:
        (staged / "out" / "b.rttm").write_bytes(text.encode("latin-1"))
        result = run_benchmark(BenchmarkRequest("diarization", "d", predictions=staged / "out"))
        assert [(one.sample_id, one.reason) for one in result.failures] == [("b", "unreadable_prediction")]
        assert "b.rttm" in result.failures[0].detail
        # 10 of 20 s would be missed, of one of two speakers.
        assert (result.metrics["der"].value, result.metrics["der"].worst_case) == (0, 0.5)
        assert (result.metrics["missed"].worst_case, result.metrics["jer"].worst_case) == (0.5, 0.5)
        assert result.metrics["confusion"].worst_case == 0

    def test_one_file_for_several_recordings(self, staged: Path) -> None:
        both = LINE.format("a", 0, 10, "y") + LINE.format("b", 0, 5, "y")
        for name in ("a", "b"):
            write(staged / "out" / f"{name}.rttm", both)
        result = run_benchmark(BenchmarkRequest("diarization", "d", predictions=staged / "out"))
        assert result.metrics["der"].value == 0.25  # b is missed for 5 of all 20 s

    @pytest.mark.parametrize(
        "text", ['{"segments": [1, 2, {"text": 5}]}', '{"segments": [{"start": 0}]}', "{", '{"a": 1}']
    )
    def test_words(self, staged: Path, text: str) -> None:
        write(staged / "out" / "b.json", text)
        result = run_benchmark(BenchmarkRequest("asr", "d", predictions=staged / "out"))
        assert [(one.sample_id, one.reason) for one in result.failures] == [("b", "unreadable_prediction")]
        assert (result.metrics["wer"].value, result.metrics["wer"].worst_case) == (0, 0.5)
        assert result.metrics["deletion_rate"].worst_case == 0.5
        assert result.metrics["insertion_rate"].worst_case == 0

    def test_an_absent_file_is_another_reason(self, staged: Path) -> None:
        result = run_benchmark(BenchmarkRequest("asr", "d", predictions=staged / "out"))
        assert result.metrics["wer"].skipped_reasons == {"no_prediction": 1}


def test_shares_of_what_there_is_stay_below_one() -> None:
    # Of 1 s each: nothing missed, nothing missed, all missed.
    reference = [SpeakerTime("a", 0, S)]
    samples = [compare_speech(one, reference) for one in (reference, reference, [SpeakerTime("b", 2 * S, 3 * S)])]
    metrics = diarization_metrics(samples, [compare_speech([], reference)] * 3)
    for name in ("missed", "confusion", "jer"):
        interval = metrics[name].interval
        assert interval is None or (interval.high is not None and interval.high <= 1), name
    assert metrics["missed"].value == metrics["jer"].value == 1 / 3
    assert metrics["missed"].interval is not None


def test_many_segments_are_compared_in_one_sweep() -> None:
    reference = [SpeakerTime(f"s{number % 4}", number * S, number * S + S) for number in range(20_000)]
    settings = DiarizationSettings(collar=0.1)
    sample = compare_speech(reference, reference, settings)
    few, more = (steps(compare_speech, some, some, settings) for some in (reference[:200], reference[:800]))
    assert more < 5 * few  # a square would be sixteen times
    # The first and the last second lose 0.1 s at either end, as all the others do.
    assert (sample.errors, sample.total) == (0, 20_000 * 800_000)


def test_who_speaks_over_themselves_and_not_at_all() -> None:
    twice = [SpeakerTime("a", 0, 6 * S), SpeakerTime("a", 4 * S, 10 * S), SpeakerTime("b", 3 * S, 3 * S)]
    assert compare_speech([SpeakerTime("x", 0, 10 * S)], twice) == (0, 0, 0, 10 * S, (0.0,))


SPEECH = st.lists(
    st.builds(
        lambda name, start, length: SpeakerTime(name, start, start + length),
        st.sampled_from("abc"),
        st.integers(0, 12),
        st.integers(0, 6),
    ),
    max_size=6,
)


@given(SPEECH, SPEECH, st.booleans())
def test_the_sweep_is_what_each_moment_says(
    predicted: list[SpeakerTime], reference: list[SpeakerTime], skip_overlap: bool
) -> None:
    """Moment by moment: missed and false are what the numbers of speakers say, whoever is paired with whom."""
    missed = false_alarm = total = 0
    for moment in range(20):
        theirs, mine = (
            len({one.speaker for one in speech if one.start <= moment < one.end}) for speech in (reference, predicted)
        )
        if skip_overlap and theirs > 1:
            continue
        total += theirs
        missed += max(theirs - mine, 0)
        false_alarm += max(mine - theirs, 0)
    sample = compare_speech(predicted, reference, DiarizationSettings(skip_overlap=skip_overlap))
    assert (sample.missed, sample.false_alarm, sample.total) == (missed, false_alarm, total)
    assert 0 <= sample.confusion <= total - missed
    assert all(0 <= one <= 1 for one in sample.jaccard)
