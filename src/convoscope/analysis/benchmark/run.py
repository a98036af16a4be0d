"""Running a benchmark: from a track, a data set and predictions to a result."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convoscope.analysis.benchmark.audio import DiarizationSettings, score_files
from convoscope.analysis.benchmark.datasets import SEMANTIC, TRACKS, BenchmarkDataset, find_dataset
from convoscope.analysis.benchmark.gate import TARGETS
from convoscope.analysis.benchmark.labels import PredictionFolder, TranscriptFolder
from convoscope.analysis.benchmark.result import BenchmarkResult, FailedSample, MetricResult, Scored, make_result
from convoscope.analysis.benchmark.semantic import SemanticSettings, score_semantic
from convoscope.annotate.annotator import annotator_named
from convoscope.errors import UsageError
from convoscope.ingest.companions.gold_files import TRANSCRIPTS, transcript_segments

TAGS, SUMMARY = "tags", "summary"
MODES = (TAGS, SUMMARY)
MODEL_VARIABLE = "CONVOSCOPE_SEMANTIC_MODEL"
RULES = "rules"
MODELS = (RULES,)
"""Installed annotators that can be named. Language models come with judges."""


class BenchmarkRequest(NamedTuple):
    """What a user asks for."""

    track: str
    dataset: str
    mode: str = TAGS
    split: str | None = None
    limit: int | None = None
    model: str | None = None
    predictions: Path | None = None
    transcripts: Path | None = None
    settings: SemanticSettings = SemanticSettings()
    diarization: DiarizationSettings = DiarizationSettings()


def run_benchmark(request: BenchmarkRequest) -> BenchmarkResult:
    """The result of a benchmark."""
    if request.track not in TRACKS:
        raise UsageError(f"there is no track {request.track!r}", hint=f"there is {', '.join(TRACKS)}")
    if request.mode not in MODES:
        raise UsageError(f"there is no mode {request.mode!r}", hint=f"there is {', '.join(MODES)}")
    if request.track != SEMANTIC and request.mode != TAGS:
        raise UsageError(f"--mode {request.mode} is of the track {SEMANTIC}, not of {request.track}")
    if request.predictions is not None and request.transcripts is not None:
        raise UsageError("--predictions and --transcripts cannot be combined", hint="what is found is given, or made")
    dataset = find_dataset(request.track, request.dataset)
    samples = dataset.split(request.split, request.limit, without_reference(request, dataset))
    if request.track == SEMANTIC:
        scored = _semantic(request, dataset, samples)
    else:
        scored = score_files(request.track, dataset, samples, request.predictions, request.diarization)
    scored = msgspec.structs.replace(scored, config={**scored.config, "limit": request.limit})
    return make_result(scored, track=request.track, mode=request.mode, dataset=request.dataset, split=request.split)


def without_reference(request: BenchmarkRequest, dataset: BenchmarkDataset) -> list[str]:
    """Samples with a transcript or a prediction, and without gold: they are skipped, not left out."""
    if request.track != SEMANTIC or request.split is not None:
        return []
    known = frozenset(dataset.samples)
    named: set[str] = set()
    if request.predictions is not None and request.predictions.is_dir():
        named.update(PredictionFolder(request.predictions, None).samples(known))
    for folder in {dataset.folder / "transcripts", request.transcripts or dataset.folder / "transcripts"}:
        if folder.is_dir():
            names = {path.stem for path in folder.iterdir() if path.suffix in TRANSCRIPTS} - known
            named.update(name for name in names if transcript_segments(folder, name))
    return sorted(named - known)


def _semantic(request: BenchmarkRequest, dataset: BenchmarkDataset, samples: list[str]) -> Scored:
    staged = dataset.folder / "transcripts"
    transcripts = request.transcripts or (staged if staged.is_dir() else None)
    settings, given = request.settings, request.predictions
    if request.mode == SUMMARY:
        if given is None:
            model_named(request.model)
        return _unmeasured_summary(samples)
    config: dict[str, Any]
    if given is not None:
        predictions = PredictionFolder(given, settings.min_confidence, request.model)
        scored = score_semantic(dataset, samples, predictions, settings, transcripts)
        makers = sorted(predictions.makers - {""})
        model = request.model or ", ".join(makers) or os.environ.get(MODEL_VARIABLE) or "unnamed"
        config, backend = {"makers": makers}, "predictions"
        notes, hashes = predictions.notes, predictions.hashes
    else:
        model = model_named(request.model)
        annotator = annotator_named(model)
        made = TranscriptFolder(transcripts or staged, annotator, settings.min_confidence)
        scored = score_semantic(dataset, samples, made, settings, transcripts)
        config, backend = {"annotator": annotator.identity}, "local"
        notes, hashes = [], made.hashes
    return msgspec.structs.replace(
        scored,
        model=model,
        backend=backend,
        notes=notes,
        prediction_hashes=hashes,
        config={**scored.config, **config, "model": model, "backend": backend},
    )


def model_named(model: str | None) -> str:
    """The model that the user means; refuses what cannot be run yet."""
    name = model or os.environ.get(MODEL_VARIABLE) or RULES
    if name not in MODELS:
        source = "--model" if model else MODEL_VARIABLE
        hint = f"there is {', '.join(MODELS)}; give what another model found with --predictions"
        raise UsageError(f"{source}: the model {name!r} cannot be run", hint=hint)
    return name


def _unmeasured_summary(samples: list[str]) -> Scored:
    """Summaries are judged, and there is no judge yet."""
    nothing = MetricResult(
        value=None,
        unit="0-10",
        reason="no_judge",
        average="macro",
        coverage=0.0,
        samples_measured=0,
        samples_skipped=len(samples),
    )
    return Scored(
        total=len(samples),
        metrics=dict.fromkeys(TARGETS[SEMANTIC, SUMMARY], nothing),
        coverage={"samples_total": len(samples)},
        config={},
        gold_hashes={},
        prediction_hashes={},
        skipped=[FailedSample(sample, "no_judge") for sample in samples],
    )
