"""Tracks whose predictions and references are files of one kind: transcripts, and speakers' times."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.analysis.benchmark import asr, diarization
from convoscope.analysis.benchmark.datasets import ASR, BenchmarkDataset, without_folder
from convoscope.analysis.benchmark.diarization import DiarizationSettings
from convoscope.analysis.benchmark.error_rates import FailedFile
from convoscope.analysis.benchmark.predictions import NO_PREDICTION, UNREADABLE_PREDICTION, FailedPrediction
from convoscope.analysis.benchmark.result import FailedSample, MetricResult, Scored, with_skipped
from convoscope.errors import InputError, UsageError
from convoscope.ingest.companions.gold_files import sample_path


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
        normaliser = {"normaliser": asr.NORMALISER}
        return AudioTrack(asr.ENDINGS, asr.read_text, asr.compare_texts, asr.asr_metrics, normaliser)
    settings.check()

    def compare(predicted: Any, reference: Any) -> Any:
        if reference and not predicted:
            raise InputError(
                "is empty, and the reference is not", hint="a file without speech cannot be told from none"
            )
        return diarization.compare_speech(predicted, reference, settings)

    def metrics(samples: list[Any], references: list[Any]) -> dict[str, MetricResult]:
        silent = [diarization.compare_speech([], one, settings) for one in references]
        return diarization.diarization_metrics(samples, silent)

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
