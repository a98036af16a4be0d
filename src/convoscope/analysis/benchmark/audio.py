"""The tracks `asr` and `diarization`: files of transcripts and of speakers' times against references, pooled."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from convoscope.analysis.benchmark.datasets import ASR, BenchmarkDataset, read_file, without_folder
from convoscope.analysis.benchmark.labels import NO_PREDICTION, UNREADABLE_PREDICTION
from convoscope.analysis.benchmark.result import (
    BenchmarkRequest,
    BenchmarkResult,
    FailedSample,
    Lost,
    MetricResult,
    Tally,
    make_result,
    ratio_result,
)
from convoscope.errors import InputError, UsageError
from convoscope.ingest.companions.gold_files import sample_path
from convoscope.ingest.io.json import BadJson, decode
from convoscope.metrics.declaration import LOWER
from convoscope.metrics.semantic.matching import best_pairs
from convoscope.scores.reducers import Sums
from convoscope.text.folding import plain_description

NORMALISER = "plain/1"
"""NFKC, case folded, without punctuation, single blanks. It is in the config of each result."""
TEXT_ENDINGS = (".txt", ".json")
RTTM_ENDINGS = (".rttm",)
_UNITS = 1_000_000
"""Times are whole microseconds, so that sums are exact."""

_NONE: Counter[str] = Counter()
_Sample = TypeVar("_Sample")


class FailedFile(str):
    """The reason why a file has no usable prediction, in place of its comparison."""


class AudioTrack(NamedTuple):
    """How a track reads a file, compares two, and what all come to."""

    endings: tuple[str, ...]
    read: Callable[[Path, str], Any]
    compare: Callable[[Any, Any], Any]
    metrics: Callable[[list[Any], list[Any], Counter[str]], dict[str, MetricResult]]
    config: dict[str, Any]


class DiarizationSettings(NamedTuple):
    """What is scored. The collar lies on either side of each boundary of the reference."""

    collar: float = 0.0
    skip_overlap: bool = False

    def check(self) -> None:
        if not 0 <= self.collar < 60:
            raise UsageError(f"--collar must be between 0 and 60 s, not {self.collar:g}")


def track_named(name: str, settings: DiarizationSettings) -> AudioTrack:
    """A track by its name."""
    if name == ASR:
        return AudioTrack(TEXT_ENDINGS, read_text, compare_texts, asr_metrics, {"normaliser": NORMALISER})
    settings.check()

    def compare(predicted: Any, reference: Any) -> Any:
        if reference and not predicted:
            hint = "an empty file may mean that there is no speech, or that nothing was predicted"
            raise InputError("is empty, and the reference is not", hint=hint)
        return compare_speech(predicted, reference, settings)

    def metrics(samples: list[Any], references: list[Any], skipped: Counter[str]) -> dict[str, MetricResult]:
        silent = [compare_speech([], reference, settings) for reference in references]
        return diarization_metrics(samples, silent, skipped)

    return AudioTrack(RTTM_ENDINGS, read_rttm, compare, metrics, settings._asdict())


def score_files(request: BenchmarkRequest, dataset: BenchmarkDataset, samples: Sequence[str]) -> BenchmarkResult:
    """Score the files of a folder. One without a reference is skipped; one without a prediction failed."""
    folder = request.predictions
    if folder is None:
        hint = "Convoscope reads transcripts, and makes none"
        raise UsageError(f"the track {request.track} needs --predictions", hint=hint)
    if not folder.is_dir():
        raise InputError("there is no such folder", file=str(folder), hint="--predictions names one")
    track = track_named(request.track, DiarizationSettings(request.collar, request.skip_overlap))
    references: list[Any] = []
    compared: list[Any] = []
    failed: list[FailedSample] = []
    skipped: list[FailedSample] = []
    gold_hashes: dict[str, str] = {}
    hashes: dict[str, str] = {}
    for sample in samples:
        path = dataset.reference(sample)
        try:
            reference = track.read(path, sample)
            gold_hashes[sample] = _hash(path)
        except (InputError, OSError) as error:
            skipped.append(FailedSample(sample, "no_reference", without_folder(str(error), path.parent)))
            continue
        references.append(reference)
        file = sample_path(folder, sample, track.endings)
        if file is None:
            detail = f"{sample}{track.endings[0]}: there is no prediction"
            failed.append(FailedSample(sample, NO_PREDICTION, detail))
            compared.append(FailedFile(NO_PREDICTION))
            continue
        hashes[sample] = _hash(file)
        try:
            compared.append(track.compare(track.read(file, sample), reference))
        except (InputError, OSError) as error:
            detail = str(error) if str(file) in str(error) else f"{file}: {error}"
            failed.append(FailedSample(sample, UNREADABLE_PREDICTION, without_folder(detail, file.parent)))
            compared.append(FailedFile(UNREADABLE_PREDICTION))
    return make_result(
        request,
        len(samples),
        metrics=track.metrics(compared, references, Counter(sample.reason for sample in skipped)),
        coverage={
            "samples_total": len(samples),
            "samples_with_references": len(references),
            "reference_coverage": len(references) / len(samples) if samples else None,
        },
        config=track.config,
        gold_hashes=gold_hashes,
        prediction_hashes=hashes,
        failed=failed,
        skipped=skipped,
    )


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _divided(samples: Sequence[_Sample | FailedFile], skipped: Counter[str]) -> tuple[list[_Sample], Tally]:
    """What was measured, and why the rest was not."""
    measured = [sample for sample in samples if not isinstance(sample, FailedFile)]
    return measured, Tally(Counter(str(sample) for sample in samples if isinstance(sample, FailedFile)), skipped)


def _error_rate(
    pairs: Sequence[tuple[float, float]], lost: Lost, tally: Tally, empty: str, *, bounded: bool = False
) -> MetricResult:
    """Σ errors ÷ Σ of what they are of. Without anything in the references there is no rate.

    `lost`: what the files without a prediction would add. `bounded`: there cannot be more errors than what they are of.
    """
    above, below = np.array(pairs, float).reshape(-1, 2).T
    return ratio_result(
        Sums("", above, below, empty),
        len(pairs),
        tally,
        lost=lost if tally.reasons else None,
        bounded=bounded,
        least=0.0,
        better=LOWER,
        average="pooled",
    )


# asr: words and characters that a recogniser got wrong.


class Edits(NamedTuple):
    """What it takes to make the reference of what was recognised."""

    substitutions: int
    deletions: int
    insertions: int
    total: int
    """Words, or characters, of the reference."""

    @property
    def errors(self) -> int:
        return self.substitutions + self.deletions + self.insertions


class AsrSample(NamedTuple):
    """One file."""

    words: Edits
    characters: Edits


def read_text(path: Path, sample: str = "") -> str:
    """The text of a transcript: plain, or JSON with `text` or `segments`."""
    del sample
    try:
        data = read_file(str(path))
        if path.suffix != ".json":
            return data.decode()
        value = decode(data).value
    except (BadJson, UnicodeDecodeError) as error:
        raise InputError(f"is not a transcript: {error}", file=str(path)) from None
    fields = value if isinstance(value, dict) else {}
    if isinstance(segments := fields.get("segments"), list):
        return " ".join(_segment_text(segment, index, path) for index, segment in enumerate(segments))
    if isinstance(text := fields.get("text"), str):
        return text
    raise InputError("has no words", file=str(path), field="$.segments", hint="give `segments` or `text`")


def _segment_text(segment: Any, index: int, path: Path) -> str:
    text = segment.get("text") if isinstance(segment, dict) else None
    if not isinstance(text, str):
        hint = 'a segment is {"text": "…"}'
        raise InputError("is not a segment with words", file=str(path), field=f"$.segments[{index}]", hint=hint)
    return text


def compare_texts(recognised: str, reference: str) -> AsrSample:
    """Edits of words and of characters, after both texts are normalised in the same way."""
    predicted, true = plain_description(recognised), plain_description(reference)
    return AsrSample(edits(predicted.split(), true.split()), edits(predicted, true))


def edits(recognised: str | list[str], reference: str | list[str]) -> Edits:
    """The fewest edits between two texts or lists of words."""
    from rapidfuzz.distance import Levenshtein

    kinds = [edit.tag for edit in Levenshtein.editops(reference, recognised)]
    return Edits(kinds.count("replace"), kinds.count("delete"), kinds.count("insert"), len(reference))


def asr_metrics(
    samples: Sequence[AsrSample | FailedFile], references: Sequence[str], skipped: Counter[str] = _NONE
) -> dict[str, MetricResult]:
    """WER and CER, and the parts of WER. A file without a transcript failed; without a word, all would be deleted."""
    measured, tally = _divided(samples, skipped)
    pairs = zip(samples, references, strict=True)
    lost = [plain_description(text) for sample, text in pairs if isinstance(sample, FailedFile)]
    words, characters = sum(len(text.split()) for text in lost), sum(map(len, lost))

    def rate(field: str, of: str, lost: Lost, *, bounded: bool = False) -> MetricResult:
        edits = [getattr(sample, of) for sample in measured]
        counts = [(getattr(sample, field), sample.total) for sample in edits]
        return _error_rate(counts, lost, tally, "empty_reference", bounded=bounded)

    return {
        "wer": rate("errors", "words", Lost(words, words)),
        "cer": rate("errors", "characters", Lost(characters, characters)),
        "substitution_rate": rate("substitutions", "words", Lost(0, words), bounded=True),
        "deletion_rate": rate("deletions", "words", Lost(words, words), bounded=True),
        "insertion_rate": rate("insertions", "words", Lost(0, words)),
    }


# diarization: who spoke when, against RTTM.


class SpeakerTime(NamedTuple):
    """A span in which a person speaks."""

    speaker: str
    start: int
    end: int


class DiarizationSample(NamedTuple):
    """Times of one file, in microseconds; `jaccard` has the error of each speaker of the reference."""

    missed: int
    false_alarm: int
    confusion: int
    total: int
    jaccard: tuple[float, ...]

    @property
    def errors(self) -> int:
        return self.missed + self.false_alarm + self.confusion


_OTHER_LINES = frozenset(
    {"SPKR-INFO", "SEGMENT", "NOSCORE", "NO_RT_METADATA", "LEXEME", "NON-LEX", "NON-SPEECH", "FILLER"}
    | {"EDIT", "SU", "IP", "CB", "A/P"}
)
"""Kinds of lines of RTTM that say nothing of who speaks when."""
_LINE = "SPEAKER FILE CHANNEL START DURATION <NA> <NA> NAME <NA> <NA>"


def read_rttm(path: Path, sample: str = "") -> list[SpeakerTime]:
    """The SPEAKER lines of an RTTM file; of a file for several recordings, those of the sample.

    Only an empty file says that there is no speech, not one with other content and no line for the sample.
    """
    try:
        lines = read_file(str(path)).decode().splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"is not RTTM: {error}", file=str(path)) from None
    speech: dict[str, list[SpeakerTime]] = {}
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if not fields or fields[0].startswith(";") or fields[0] in _OTHER_LINES:
            continue
        name, time = _speaker_line(fields, path, number)
        speech.setdefault(name, []).append(time)
    if not speech and any(line.strip() for line in lines):
        raise InputError("has no SPEAKER line", file=str(path), hint=_LINE)
    if sample and speech and sample not in speech:
        named = ", ".join(sorted(speech)[:5])
        raise InputError(
            f"is of {named}, not of {sample}", file=str(path), hint="the second column names the recording"
        )
    return speech.get(sample, []) if sample else [time for times in speech.values() for time in times]


def _speaker_line(fields: Sequence[str], path: Path, number: int) -> tuple[str, SpeakerTime]:
    try:
        if fields[0] != "SPEAKER":
            raise ValueError(fields[0])
        start, length = (int(Decimal(fields[column]) * _UNITS) for column in (3, 4))
        name, speaker = fields[1], fields[7]
    except (IndexError, InvalidOperation, ValueError, OverflowError):
        raise InputError("is not a line of RTTM", file=str(path), line=number, hint=_LINE) from None
    if start < 0 or length < 0:
        raise InputError("a time is negative", file=str(path), line=number, hint="times are seconds from the start")
    return name, SpeakerTime(speaker, start, start + length)


class _Span(NamedTuple):
    """A span in which no speaker starts or stops, and who speaks in it."""

    length: int
    reference: frozenset[str]
    predicted: frozenset[str]


def compare_speech(
    predicted: Sequence[SpeakerTime], reference: Sequence[SpeakerTime], settings: DiarizationSettings | None = None
) -> DiarizationSample:
    """Missed, false and confused time, with the speakers paired so that the most time agrees."""
    spans = _spans(predicted, reference, settings or DiarizationSettings())
    spoken: Counter[str] = Counter()
    heard: Counter[str] = Counter()
    shared: Counter[tuple[str, str]] = Counter()
    for length, speakers, labels in spans:
        spoken.update(dict.fromkeys(speakers, length))
        heard.update(dict.fromkeys(labels, length))
        shared.update({(speaker, label): length for speaker in speakers for label in labels})
    names, others = sorted(spoken), sorted(heard)
    together = [[shared[name, other] for other in others] for name in names]
    pairs = {names[row]: others[column] for row, column in best_pairs(together) if together[row][column]}
    missed = false_alarm = confusion = total = 0
    for length, speakers, labels in spans:
        right = sum(pairs.get(name) in labels for name in speakers)
        both = min(len(speakers), len(labels))
        total += length * len(speakers)
        missed += length * (len(speakers) - both)
        false_alarm += length * (len(labels) - both)
        confusion += length * (both - right)

    def jaccard(name: str) -> float:
        """1 − shared time ÷ time of either; 1 for a speaker without a pair."""
        other = pairs.get(name)
        if other is None:
            return 1.0
        agreed = shared[name, other]
        return 1 - agreed / (spoken[name] + heard[other] - agreed)

    return DiarizationSample(missed, false_alarm, confusion, total, tuple(map(jaccard, names)))


class _Change(NamedTuple):
    """A time at which a speaker starts (+1) or stops (-1), on one of three sides."""

    time: int
    side: int
    speaker: str
    step: int


_REFERENCE, _PREDICTED, _UNSCORED = range(3)


def _spans(
    predicted: Sequence[SpeakerTime], reference: Sequence[SpeakerTime], settings: DiarizationSettings
) -> list[_Span]:
    """One sweep over all times at which something changes."""
    settings.check()
    active: tuple[Counter[str], ...] = (Counter(), Counter(), Counter())
    spans: list[_Span] = []
    last = 0
    for change in sorted(_changes(predicted, reference, int(Decimal(str(settings.collar)) * _UNITS))):
        speakers, labels, unscored = active
        is_left_out = unscored or (settings.skip_overlap and len(speakers) > 1)
        if change.time > last and (speakers or labels) and not is_left_out:
            spans.append(_Span(change.time - last, frozenset(speakers), frozenset(labels)))
        last = change.time
        side = active[change.side]
        side[change.speaker] += change.step
        if not side[change.speaker]:
            del side[change.speaker]
    return spans


def _changes(predicted: Sequence[SpeakerTime], reference: Sequence[SpeakerTime], collar: int) -> Iterator[_Change]:
    for side, speech in ((_REFERENCE, reference), (_PREDICTED, predicted)):
        for speaker, start, end in speech:
            if start < end:
                yield _Change(start, side, speaker, 1)
                yield _Change(end, side, speaker, -1)
    for edge in {edge for time in reference for edge in (time.start, time.end)} if collar else ():
        yield _Change(edge - collar, _UNSCORED, "", 1)
        yield _Change(edge + collar, _UNSCORED, "", -1)


def diarization_metrics(
    samples: Sequence[DiarizationSample | FailedFile],
    silent: Sequence[DiarizationSample],
    skipped: Counter[str] = _NONE,
) -> dict[str, MetricResult]:
    """DER and its parts, pooled by time, and JER, the mean over all speakers of all references.

    `silent` has for each file what it would be if no speech had been predicted.
    """
    measured, tally = _divided(samples, skipped)
    failed = [empty for sample, empty in zip(samples, silent, strict=True) if isinstance(sample, FailedFile)]
    time, speakers = sum(sample.total for sample in failed), sum(len(sample.jaccard) for sample in failed)
    empty = "no_speech_in_reference"

    def rate(field: str, lost: Lost, *, bounded: bool = False) -> MetricResult:
        times = [(getattr(sample, field), sample.total) for sample in measured]
        return _error_rate(times, lost, tally, empty, bounded=bounded)

    shares = [(sum(sample.jaccard), len(sample.jaccard)) for sample in measured]
    return {
        "der": rate("errors", Lost(time, time)),
        "missed": rate("missed", Lost(time, time), bounded=True),
        "false_alarm": rate("false_alarm", Lost(0, time)),
        "confusion": rate("confusion", Lost(0, time), bounded=True),
        "jer": _error_rate(shares, Lost(speakers, speakers), tally, empty, bounded=True),
    }
