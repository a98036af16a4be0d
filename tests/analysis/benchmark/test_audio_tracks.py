"""Words and speakers against references, every number derived by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from convoscope.analysis.benchmark.asr import asr_metrics, compare_texts
from convoscope.analysis.benchmark.diarization import (
    DiarizationSettings,
    SpeakerTime,
    compare_speech,
    diarization_metrics,
    read_rttm,
)
from convoscope.analysis.benchmark.run import BenchmarkRequest, run_benchmark
from convoscope.errors import InputError
from support.logs import write

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
    wer = asr_metrics([compare_texts("a b", "a b"), None], ["a b", "c d"])["wer"]
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
