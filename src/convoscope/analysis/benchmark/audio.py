"""Rates of errors that are pooled over files: Σ errors ÷ Σ of what there was."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from convoscope.analysis.benchmark.datasets import ASR, BenchmarkDataset, read_file, without_folder
from convoscope.analysis.benchmark.labels import NO_PREDICTION, UNREADABLE_PREDICTION, FailedPrediction
from convoscope.analysis.benchmark.result import FailedSample, MetricResult, Scored, with_skipped
from convoscope.errors import InputError, UsageError
from convoscope.ingest.companions.gold_files import sample_path
from convoscope.ingest.io.json import BadJson, decode
from convoscope.metrics.declaration import LOWER
from convoscope.metrics.semantic.matching import best_pairs
from convoscope.scores.reducers import Sums
from convoscope.statistics.intervals import ratio_interval
from convoscope.text.folding import plain_description

_Sample = TypeVar("_Sample")


class ErrorRate(NamedTuple):
    """Errors and what they are of, for each file; and what the files without a prediction would add to both."""

    pairs: Sequence[tuple[float, float]]
    lost_errors: float
    lost: float
    bounded: bool = False
    """Whether there cannot be more errors than what they are of."""


class FailedFile(str):
    """The reason why a file has no usable prediction, in place of what it was compared to."""


def divided(samples: Sequence[_Sample | FailedFile]) -> tuple[list[_Sample], Counter[str]]:
    """What was measured, and why the rest was not."""
    measured = [one for one in samples if not isinstance(one, FailedFile)]
    return measured, Counter(str(one) for one in samples if isinstance(one, FailedFile))


def error_rate(rate: ErrorRate, reasons: Counter[str], empty: str) -> MetricResult:
    """The pooled rate. Without anything in the references there is none."""
    import numpy as np

    failed = reasons.total()
    above, below = sum(one for one, _ in rate.pairs), sum(one for _, one in rate.pairs)
    kept = [one for one in rate.pairs if one[1]]
    interval = None
    if len(kept) > 1:
        columns = np.array(kept, float).T
        sums = Sums("", columns[0], columns[1])
        interval = ratio_interval(sums, np.arange(len(kept)), bounded=rate.bounded, least=0.0)
    common = reasons.most_common(1)
    reason = None if below else empty if rate.pairs else common[0][0] if common else "no_samples"
    return MetricResult(
        value=above / below if below else None,
        better=LOWER,
        average="pooled",
        reason=reason,
        coverage=len(rate.pairs) / (len(rate.pairs) + failed) if rate.pairs or failed else None,
        samples_measured=len(rate.pairs),
        samples_skipped=failed,
        skipped_reasons=dict(sorted(reasons.items())),
        interval=interval,
        worst_case=(above + rate.lost_errors) / (below + rate.lost) if failed and below else None,
    )


NORMALISER = "plain/1"
"""NFKC, case folded, without punctuation, single blanks. It is in the config of each result."""
TEXT_ENDINGS = (".txt", ".json")


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
    """The words of a transcript: plain text, or JSON with `text` or `segments`."""
    del sample
    try:
        data = read_file(str(path))
        if path.suffix != ".json":
            return data.decode()
        value = decode(data).value
    except (BadJson, UnicodeDecodeError) as error:
        raise InputError(f"is not a transcript: {error}", file=str(path)) from None
    if isinstance(value, dict) and isinstance(value.get("segments"), list):
        return " ".join(_segment_text(one, place, path) for place, one in enumerate(value["segments"]))
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return str(value["text"])
    raise InputError("has no words", file=str(path), field="$.segments", hint="give `segments` or `text`")


def _segment_text(segment: Any, place: int, path: Path) -> str:
    text = segment.get("text") if isinstance(segment, dict) else None
    if not isinstance(text, str):
        hint = 'a segment is {"text": "…"}'
        raise InputError("is not a segment with words", file=str(path), field=f"$.segments[{place}]", hint=hint)
    return text


def compare_texts(recognised: str, reference: str) -> AsrSample:
    """Edits of words and of characters, after both texts are normalised in the same way."""
    mine, theirs = plain_description(recognised), plain_description(reference)
    return AsrSample(edits(mine.split(), theirs.split()), edits(mine, theirs))


def edits(recognised: str | list[str], reference: str | list[str]) -> Edits:
    """The fewest edits between two texts or lists of words."""
    from rapidfuzz.distance import Levenshtein

    kinds = [one.tag for one in Levenshtein.editops(reference, recognised)]
    return Edits(kinds.count("replace"), kinds.count("delete"), kinds.count("insert"), len(reference))


def asr_metrics(samples: Sequence[AsrSample | FailedFile], references: Sequence[str]) -> dict[str, MetricResult]:
    """WER and CER, and the parts of WER. A file without a transcript failed; without a word, all would be deleted."""
    measured, reasons = divided(samples)
    pairs = zip(samples, references, strict=True)
    lost = [plain_description(text) for sample, text in pairs if isinstance(sample, FailedFile)]
    words, letters = sum(len(one.split()) for one in lost), sum(map(len, lost))
    rates = {
        "wer": ErrorRate([(one.words.errors, one.words.total) for one in measured], words, words),
        "cer": ErrorRate([(one.characters.errors, one.characters.total) for one in measured], letters, letters),
    }
    for name, added, bounded in (("substitution", 0, True), ("deletion", words, True), ("insertion", 0, False)):
        edits = [(getattr(one.words, f"{name}s"), one.words.total) for one in measured]
        rates[f"{name}_rate"] = ErrorRate(edits, added, words, bounded)
    return {name: error_rate(rate, reasons, "empty_reference") for name, rate in rates.items()}


_UNITS = 1_000_000
"""Times are whole microseconds, so that sums are exact."""
RTTM_ENDINGS = (".rttm",)


class SpeakerTime(NamedTuple):
    """A stretch in which somebody speaks."""

    speaker: str
    start: int
    end: int


class DiarizationSettings(NamedTuple):
    """What is scored. The collar lies on either side of each boundary of the reference."""

    collar: float = 0.0
    skip_overlap: bool = False

    def check(self) -> None:
        if not 0 <= self.collar < 60:
            raise UsageError(f"--collar must be between 0 and 60 s, not {self.collar:g}")


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
    [
        "SPKR-INFO",
        "SEGMENT",
        "NOSCORE",
        "NO_RT_METADATA",
        "LEXEME",
        "NON-LEX",
        "NON-SPEECH",
        "FILLER",
        "EDIT",
        "SU",
        "IP",
        "CB",
        "A/P",
    ]
)
"""Kinds of lines of RTTM that say nothing of who speaks when."""
_LINE = "SPEAKER FILE CHANNEL START DURATION <NA> <NA> NAME <NA> <NA>"


def read_rttm(path: Path, sample: str = "") -> list[SpeakerTime]:
    """The SPEAKER lines of an RTTM file; of a file for several recordings, those of the sample.

    A file with other content is no silence: without a line for the sample, only an empty one says that nobody speaks.
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
    return speech.get(sample, []) if sample else [one for some in speech.values() for one in some]


def _speaker_line(fields: Sequence[str], path: Path, number: int) -> tuple[str, SpeakerTime]:
    try:
        if fields[0] != "SPEAKER":
            raise ValueError(fields[0])
        start, length = (int(Decimal(fields[place]) * _UNITS) for place in (3, 4))
        name, speaker = fields[1], fields[7]
    except (IndexError, InvalidOperation, ValueError, OverflowError):
        raise InputError("is not a line of RTTM", file=str(path), line=number, hint=_LINE) from None
    if start < 0 or length < 0:
        raise InputError("a time is negative", file=str(path), line=number, hint="times are seconds from the start")
    return name, SpeakerTime(speaker, start, start + length)


class _Stretch(NamedTuple):
    """A stretch in which nobody starts or stops."""

    length: int
    reference: frozenset[str]
    predicted: frozenset[str]


def compare_speech(
    predicted: Sequence[SpeakerTime], reference: Sequence[SpeakerTime], settings: DiarizationSettings | None = None
) -> DiarizationSample:
    """Missed, false and confused time, with the speakers paired so that the most time agrees."""
    stretches = _stretches(predicted, reference, settings or DiarizationSettings())
    times = _times(stretches)
    names, others = sorted(times.reference), sorted(times.predicted)
    together = [[times.shared.get((name, other), 0) for other in others] for name in names]
    pairs = {names[row]: others[column] for row, column in best_pairs(together) if together[row][column]}
    missed = false_alarm = confusion = total = 0
    for length, theirs, mine in stretches:
        right = sum(pairs.get(name) in mine for name in theirs)
        both = min(len(theirs), len(mine))
        total += length * len(theirs)
        missed += length * (len(theirs) - both)
        false_alarm += length * (len(mine) - both)
        confusion += length * (both - right)
    jaccard = tuple(_jaccard(name, pairs.get(name), times) for name in names)
    return DiarizationSample(missed, false_alarm, confusion, total, jaccard)


class _Times(NamedTuple):
    """How long each speaks, and how long each of the one side does while one of the other is heard."""

    reference: Counter[str]
    predicted: Counter[str]
    shared: Counter[tuple[str, str]]


def _times(stretches: Sequence[_Stretch]) -> _Times:
    times = _Times(Counter(), Counter(), Counter())
    for length, theirs, mine in stretches:
        for name in theirs:
            times.reference[name] += length
            for other in mine:
                times.shared[name, other] += length
        for other in mine:
            times.predicted[other] += length
    return times


def _jaccard(name: str, other: str | None, times: _Times) -> float:
    """1 − shared time ÷ time of either; 1 for a speaker whom nobody is paired with."""
    if other is None:
        return 1.0
    shared = times.shared[name, other]
    return 1 - shared / (times.reference[name] + times.predicted[other] - shared)


class _Change(NamedTuple):
    """At a time somebody starts (+1) or stops (-1), on one of three sides."""

    time: int
    side: int
    speaker: str
    step: int


_REFERENCE, _PREDICTED, _UNSCORED = range(3)


def _stretches(
    predicted: Sequence[SpeakerTime], reference: Sequence[SpeakerTime], settings: DiarizationSettings
) -> list[_Stretch]:
    """One sweep over all times at which something changes."""
    settings.check()
    active: tuple[Counter[str], ...] = (Counter(), Counter(), Counter())
    stretches: list[_Stretch] = []
    last = 0
    for change in sorted(_changes(predicted, reference, int(Decimal(str(settings.collar)) * _UNITS))):
        theirs, mine, unscored = active
        is_left_out = unscored or (settings.skip_overlap and len(theirs) > 1)
        if change.time > last and (theirs or mine) and not is_left_out:
            stretches.append(_Stretch(change.time - last, frozenset(theirs), frozenset(mine)))
        last = change.time
        speakers = active[change.side]
        speakers[change.speaker] += change.step
        if not speakers[change.speaker]:
            del speakers[change.speaker]
    return stretches


def _changes(predicted: Sequence[SpeakerTime], reference: Sequence[SpeakerTime], collar: int) -> Iterator[_Change]:
    for side, speech in ((_REFERENCE, reference), (_PREDICTED, predicted)):
        for speaker, start, end in speech:
            if start < end:
                yield _Change(start, side, speaker, 1)
                yield _Change(end, side, speaker, -1)
    for edge in {edge for one in reference for edge in (one.start, one.end)} if collar else ():
        yield _Change(edge - collar, _UNSCORED, "", 1)
        yield _Change(edge + collar, _UNSCORED, "", -1)


def diarization_metrics(
    samples: Sequence[DiarizationSample | FailedFile], silent: Sequence[DiarizationSample]
) -> dict[str, MetricResult]:
    """DER and its parts, pooled by time, and JER, the mean over all speakers of all references.

    `silent` has for each file what it would be had nobody been heard.
    """
    measured, reasons = divided(samples)
    failed = [two for one, two in zip(samples, silent, strict=True) if isinstance(one, FailedFile)]
    lost, speakers = sum(one.total for one in failed), sum(len(one.jaccard) for one in failed)
    rates = {"der": ErrorRate([(one.errors, one.total) for one in measured], lost, lost)}
    for name, added, bounded in (("missed", lost, True), ("false_alarm", 0, False), ("confusion", 0, True)):
        rates[name] = ErrorRate([(getattr(one, name), one.total) for one in measured], added, lost, bounded)
    shares = [(sum(one.jaccard), len(one.jaccard)) for one in measured]
    rates["jer"] = ErrorRate(shares, speakers, speakers, bounded=True)
    return {name: error_rate(rate, reasons, "no_speech_in_reference") for name, rate in rates.items()}


class AudioTrack(NamedTuple):
    """How a track reads a file, compares two, and what all come to."""

    endings: tuple[str, ...]
    read: Callable[[Path, str], Any]
    compare: Callable[[Any, Any], Any]
    metrics: Callable[[list[Any], list[Any]], dict[str, MetricResult]]
    config: dict[str, Any]


def track_named(name: str, settings: DiarizationSettings) -> AudioTrack:
    """A track by its name."""
    if name == ASR:
        normaliser = {"normaliser": NORMALISER}
        return AudioTrack(TEXT_ENDINGS, read_text, compare_texts, asr_metrics, normaliser)
    settings.check()

    def compare(predicted: Any, reference: Any) -> Any:
        if reference and not predicted:
            raise InputError(
                "is empty, and the reference is not", hint="a file without speech cannot be told from none"
            )
        return compare_speech(predicted, reference, settings)

    def metrics(samples: list[Any], references: list[Any]) -> dict[str, MetricResult]:
        silent = [compare_speech([], one, settings) for one in references]
        return diarization_metrics(samples, silent)

    config = {"collar": settings.collar, "skip_overlap": settings.skip_overlap}
    return AudioTrack(RTTM_ENDINGS, read_rttm, compare, metrics, config)


def score_files(
    name: str, dataset: BenchmarkDataset, samples: Sequence[str], folder: Path | None, settings: DiarizationSettings
) -> Scored:
    """Score the files of a folder. One without a reference is skipped; one without a prediction failed."""
    if folder is None:
        raise UsageError(f"the track {name} needs --predictions", hint="Convoscope reads transcripts, and makes none")
    if not folder.is_dir():
        raise InputError("there is no such folder", file=str(folder), hint="--predictions names one")
    track = track_named(name, settings)
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
        place = sample_path(folder, sample, track.endings)
        try:
            if place is None:
                detail = f"{sample}{track.endings[0]}: there is no prediction"
                raise FailedPrediction(NO_PREDICTION, detail)
            hashes[sample] = _hash(place)
            compared.append(_compared(track, place, sample, reference))
        except FailedPrediction as error:
            compared.append(FailedFile(error.reason))
            failed.append(FailedSample(sample, error.reason, error.detail))
    return Scored(
        total=len(samples),
        metrics=with_skipped(track.metrics(compared, references), skipped),
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


def _compared(track: AudioTrack, place: Path, sample: str, reference: Any) -> Any:
    try:
        return track.compare(track.read(place, sample), reference)
    except (InputError, OSError) as error:
        detail = str(error) if str(place) in str(error) else f"{place}: {error}"
        raise FailedPrediction(UNREADABLE_PREDICTION, without_folder(detail, place.parent)) from None


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
