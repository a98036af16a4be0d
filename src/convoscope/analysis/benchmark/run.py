"""Running a benchmark: from a track, a data set and predictions to a result."""

from __future__ import annotations

import os
from collections.abc import Sequence

from convoscope.analysis.benchmark.audio import score_files
from convoscope.analysis.benchmark.datasets import (
    OTHER_VARIABLE,
    SEMANTIC,
    TRACKS,
    VARIABLE,
    BenchmarkDataset,
    find_dataset,
)
from convoscope.analysis.benchmark.gate import TARGETS
from convoscope.analysis.benchmark.labels import MODEL_VARIABLE, PredictionFolder, TranscriptFolder
from convoscope.analysis.benchmark.result import (
    SUMMARY,
    TAGS,
    BenchmarkRequest,
    BenchmarkResult,
    FailedSample,
    MetricResult,
    make_result,
)
from convoscope.analysis.benchmark.semantic import score_semantic
from convoscope.analysis.benchmark.summaries import score_summaries
from convoscope.annotate.annotator import Annotator, annotator_named
from convoscope.annotate.language_model import LanguageModelAnnotator
from convoscope.errors import UsageError
from convoscope.ingest.companions.gold_files import TRANSCRIPTS, transcript_segments
from convoscope.judging.calibrations import Agreement
from convoscope.judging.names import KEYS, language_model, suggested_name
from convoscope.resources.judge import Judge

MODES = (TAGS, SUMMARY)
RULES = "rules"
MODELS = (RULES,)
"""Installed annotators that can be named."""


def run_benchmark(
    request: BenchmarkRequest,
    judge: Judge | None = None,
    writer: Judge | None = None,
    calibrations: Sequence[Agreement] = (),
) -> BenchmarkResult:
    """The result of a benchmark. `judge` rates summaries, `writer` is the model that writes them or annotates.

    `calibrations` say how far judges agree with people.
    """
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
    if request.track != SEMANTIC:
        return score_files(request, dataset, samples)
    staged = dataset.folder / "transcripts"
    transcripts = request.transcripts or (staged if staged.is_dir() else None)
    if request.mode == SUMMARY:
        if judge is not None:
            return score_summaries(request, dataset, samples, judge, writer, transcripts or staged, calibrations)
        if request.predictions is None:
            model_named(request.model)
        return _unmeasured_summary(request, samples)
    predict: PredictionFolder | TranscriptFolder
    annotator: Annotator | None = None
    if request.predictions is not None:
        predict = PredictionFolder(request.predictions, request.min_confidence, request.model)
    else:
        annotator = (
            LanguageModelAnnotator(writer) if writer is not None else annotator_named(model_named(request.model))
        )
        predict = TranscriptFolder(transcripts or staged, annotator, request.min_confidence)
    if not 0 < request.threshold <= 1:
        raise UsageError(f"--threshold must be above 0 and at most 1, not {request.threshold:g}")
    if request.min_confidence is not None and not 0 <= request.min_confidence <= 1:
        raise UsageError(f"--min-confidence must be between 0 and 1, not {request.min_confidence:g}")
    try:
        return score_semantic(request, dataset, samples, predict, transcripts)
    finally:
        if isinstance(annotator, LanguageModelAnnotator):
            annotator.close()


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


def model_named(model: str | None) -> str:
    """The installed annotator that the user means; refuses what cannot be run."""
    name = model or os.environ.get(MODEL_VARIABLE) or RULES
    if name not in MODELS and not model and language_model(name):
        hint = f"--model {name} runs it: what a variable names is not sent anything"
        raise UsageError(f"{MODEL_VARIABLE} names the language model {name!r}", hint=hint)
    if name not in MODELS:
        source = "--model" if model else MODEL_VARIABLE
        meant = [suggested_name(name)] if suggested_name(name) else [f"{provider}:{name}" for provider in KEYS]
        named = " or ".join(f"--model {one}" for one in meant)
        hint = f"a language model: {named}; without one: {RULES}; --predictions: what another program found"
        raise UsageError(f"{source}: the model {name!r} cannot be run", hint=hint)
    return name


def unused_variables(*, annotates: bool = False) -> list[str]:
    """What variables of slower-whisper ask for that is not done here, in words: of a benchmark, or of a run that
    annotates, for which the folder of benchmarks has no meaning.
    """
    is_named = bool(os.environ.get(VARIABLE)) and not annotates
    why = {
        _OTHER_MODEL: f"name the model with {'--judge' if annotates else f'--model or {MODEL_VARIABLE}'}",
        OTHER_VARIABLE: f"{VARIABLE} is set",
    }
    return [
        f"{name} is not used: {why.get(name, 'Convoscope has no such setting')}"
        for name in sorted(os.environ)
        if name.startswith("SLOWER_WHISPER_") and (name != OTHER_VARIABLE or is_named)
    ]


_OTHER_MODEL = "SLOWER_WHISPER_SEMANTIC_MODEL"


def _unmeasured_summary(request: BenchmarkRequest, samples: list[str]) -> BenchmarkResult:
    """Summaries are judged, and no judge is named."""
    nothing = MetricResult(
        value=None,
        unit="0-10",
        reason="no_judge",
        average="macro",
        coverage=0.0,
        samples_measured=0,
        samples_skipped=len(samples),
    )
    return make_result(
        request,
        len(samples),
        metrics=dict.fromkeys(TARGETS[SEMANTIC, SUMMARY], nothing),
        coverage={"samples_total": len(samples)},
        config={},
        gold_hashes={},
        prediction_hashes={},
        skipped=[FailedSample(sample, "no_judge") for sample in samples],
    )
