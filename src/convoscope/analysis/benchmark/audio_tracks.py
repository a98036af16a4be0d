"""Tracks whose predictions and references are files of one kind: transcripts, and speakers' times."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.analysis.benchmark import asr, diarization
from convoscope.analysis.benchmark.datasets import ASR, BenchmarkDataset, sample_path
from convoscope.analysis.benchmark.diarization import DiarizationSettings
from convoscope.analysis.benchmark.result import FailedSample, MetricResult, Scored
from convoscope.errors import InputError, UsageError


class AudioTrack(NamedTuple):
    """How a track reads a file, compares two, and what all come to."""

    endings: tuple[str, ...]
    read: Callable[[Path], Any]
    compare: Callable[[Any, Any], Any]
    metrics: Callable[[list[Any], list[Any]], dict[str, MetricResult]]
    config: dict[str, Any]


def track_named(name: str, settings: DiarizationSettings) -> AudioTrack:
    """A track by its name."""
    if name == ASR:
        normaliser = {"normaliser": asr.NORMALISER}
        return AudioTrack(asr.ENDINGS, asr.read_text, asr.compare_texts, asr.asr_metrics, normaliser)
    settings.check()

    def compare(predicted: Any, reference: Any) -> Any:
        return diarization.compare_speech(predicted, reference, settings)

    def metrics(samples: list[Any], references: list[Any]) -> dict[str, MetricResult]:
        return diarization.diarization_metrics(samples, [compare([], one) for one in references])

    config = {"collar": settings.collar, "skip_overlap": settings.skip_overlap}
    return AudioTrack(diarization.ENDINGS, diarization.read_rttm, compare, metrics, config)


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
            reference = track.read(path)
            gold_hashes[sample] = _hash(path)
        except (InputError, OSError) as error:
            skipped.append(FailedSample(sample, "no_reference", str(error)))
            continue
        references.append(reference)
        place = sample_path(folder, sample, track.endings)
        try:
            if place is None:
                raise InputError("there is no prediction", file=str(folder / (sample + track.endings[0])))
            compared.append(track.compare(track.read(place), reference))
            hashes[sample] = _hash(place)
        except (InputError, OSError) as error:
            compared.append(None)
            failed.append(FailedSample(sample, "no_prediction", str(error)))
    return Scored(
        total=len(samples),
        metrics=track.metrics(compared, references),
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
