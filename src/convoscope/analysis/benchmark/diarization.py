"""The track `diarization`: who spoke when, against RTTM, pooled by time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import NamedTuple

from convoscope.analysis.benchmark.datasets import read_file
from convoscope.analysis.benchmark.error_rates import ErrorRate, FailedFile, divided, error_rate
from convoscope.analysis.benchmark.result import MetricResult
from convoscope.errors import InputError, UsageError
from convoscope.metrics.semantic.matching import best_pairs

_UNITS = 1_000_000
"""Times are whole microseconds, so that sums are exact."""
ENDINGS = (".rttm",)


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
