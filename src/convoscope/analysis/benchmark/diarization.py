"""The track `diarization`: who spoke when, against RTTM, pooled by time."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from convoscope.analysis.benchmark.error_rates import ErrorRate, error_rate
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


def read_rttm(path: Path) -> list[SpeakerTime]:
    """The SPEAKER lines of an RTTM file."""
    speech: list[SpeakerTime] = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        fields = line.split()
        if not fields or fields[0] != "SPEAKER":
            continue
        try:
            start, length = (int(Decimal(fields[place]) * _UNITS) for place in (3, 4))
            speaker = fields[7]
        except (IndexError, InvalidOperation, ValueError, OverflowError):
            hint = "SPEAKER FILE CHANNEL START DURATION <NA> <NA> NAME <NA> <NA>"
            raise InputError("is not a line of RTTM", file=str(path), line=number, hint=hint) from None
        if start < 0 or length < 0:
            raise InputError("a time is negative", file=str(path), line=number, hint="times are seconds from the start")
        speech.append(SpeakerTime(speaker, start, start + length))
    return speech


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
    names = sorted({one for stretch in stretches for one in stretch.reference})
    others = sorted({one for stretch in stretches for one in stretch.predicted})
    together = [
        [sum(one.length for one in stretches if name in one.reference and other in one.predicted) for other in others]
        for name in names
    ]
    pairs = {names[row]: others[column] for row, column in best_pairs(together) if together[row][column]}
    missed = false_alarm = confusion = total = 0
    for length, theirs, mine in stretches:
        right = sum(pairs.get(name) in mine for name in theirs)
        both = min(len(theirs), len(mine))
        total += length * len(theirs)
        missed += length * (len(theirs) - both)
        false_alarm += length * (len(mine) - both)
        confusion += length * (both - right)
    jaccard = tuple(_jaccard(name, pairs.get(name), stretches) for name in names)
    return DiarizationSample(missed, false_alarm, confusion, total, jaccard)


def _jaccard(name: str, other: str | None, stretches: Sequence[_Stretch]) -> float:
    """1 − shared time ÷ time of either; 1 for a speaker whom nobody is paired with."""
    either = sum(one.length for one in stretches if name in one.reference or other in one.predicted)
    shared = sum(one.length for one in stretches if name in one.reference and other in one.predicted)
    return 1 - shared / either


def _stretches(
    predicted: Sequence[SpeakerTime], reference: Sequence[SpeakerTime], settings: DiarizationSettings
) -> list[_Stretch]:
    settings.check()
    collar = int(Decimal(str(settings.collar)) * _UNITS)
    edges = sorted({edge for one in reference for edge in (one.start, one.end)})
    unscored = [(edge - collar, edge + collar) for edge in edges] if collar else []
    cuts = {edge for one in (*predicted, *reference) for edge in (one.start, one.end)}
    cuts |= {edge for stretch in unscored for edge in stretch}
    ordered = sorted(cuts)
    stretches: list[_Stretch] = []
    for start, end in pairwise(ordered):
        if any(low <= start and end <= high for low, high in unscored):
            continue
        theirs, mine = _at(reference, start, end), _at(predicted, start, end)
        if (theirs or mine) and not (settings.skip_overlap and len(theirs) > 1):
            stretches.append(_Stretch(end - start, theirs, mine))
    return stretches


def _at(speech: Sequence[SpeakerTime], start: int, end: int) -> frozenset[str]:
    return frozenset(one.speaker for one in speech if one.start <= start and end <= one.end)


def diarization_metrics(
    samples: Sequence[DiarizationSample | None], silent: Sequence[DiarizationSample]
) -> dict[str, MetricResult]:
    """DER and its parts, pooled by time, and JER, the mean over all speakers of all references.

    A file without a prediction is None; `silent` has for each file what it would be had nobody been heard.
    """
    measured = [one for one in samples if one is not None]
    failed = len(samples) - len(measured)
    lost = sum(two.total for one, two in zip(samples, silent, strict=True) if one is None)
    speakers = sum(len(two.jaccard) for one, two in zip(samples, silent, strict=True) if one is None)
    rates = {"der": ErrorRate([(one.errors, one.total) for one in measured], lost)}
    for name in ("missed", "false_alarm", "confusion"):
        rates[name] = ErrorRate([(getattr(one, name), one.total) for one in measured], 0)
    rates["jer"] = ErrorRate([(sum(one.jaccard), len(one.jaccard)) for one in measured], speakers)
    return {name: error_rate(rate, failed, "no_speech_in_reference") for name, rate in rates.items()}
