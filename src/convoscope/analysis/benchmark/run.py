"""Running a benchmark: from a track, a data set and predictions to a result."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from convoscope.analysis.benchmark.audio import DiarizationSettings, score_files
from convoscope.analysis.benchmark.datasets import SEMANTIC, TRACKS, BenchmarkDataset, find_dataset, without_folder
from convoscope.analysis.benchmark.gate import TARGETS
from convoscope.analysis.benchmark.labels import NO_PREDICTION, FailedPrediction, SemanticPrediction
from convoscope.analysis.benchmark.result import BenchmarkResult, FailedSample, MetricResult, Scored, make_result
from convoscope.analysis.benchmark.semantic import PredictionFolder, SemanticSettings, score_semantic
from convoscope.annotate.annotator import Annotator, annotations_of, annotator_named, failure_of
from convoscope.conversation import Conversation
from convoscope.errors import InputError, UsageError
from convoscope.ingest.companions.gold_files import TRANSCRIPTS, sample_path, transcript_segments
from convoscope.metrics.semantic.samples import labels_of

TAGS, SUMMARY = "tags", "summary"
MODES = (TAGS, SUMMARY)
UNREADABLE_TRANSCRIPT = "unreadable_transcript"


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
    config = {**scored.config, "limit": request.limit}
    scored = msgspec.structs.replace(scored, config=config)
    return make_result(scored, track=request.track, mode=request.mode, dataset=request.dataset, split=request.split)


def without_reference(request: BenchmarkRequest, dataset: BenchmarkDataset) -> list[str]:
    """Samples with a transcript or a prediction, and nothing to be held against: they are skipped, not left out."""
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
    if request.mode == SUMMARY:
        if request.predictions is None:
            model_named(request.model)
        return _unmeasured_summary(samples)
    if request.predictions is not None:
        folder = PredictionFolder(request.predictions, request.settings.min_confidence, request.model)
        scored = score_semantic(dataset, samples, folder, request.settings, transcripts)
        makers = sorted(folder.makers - {""})
        model = request.model or ", ".join(makers) or default_model() or "unnamed"
        scored = msgspec.structs.replace(scored, config={**scored.config, "makers": makers}, notes=folder.notes)
        return _with_maker(scored, model, "predictions", folder.hashes)
    model = model_named(request.model)
    annotator = annotator_named(model)
    source = TranscriptFolder(transcripts or staged, annotator, request.settings)
    scored = score_semantic(dataset, samples, source, request.settings, transcripts)
    scored = msgspec.structs.replace(scored, config={**scored.config, "annotator": annotator.identity})
    return _with_maker(scored, model, "local", source.hashes)


def _with_maker(scored: Scored, model: str, backend: str, hashes: dict[str, str]) -> Scored:
    config = {**scored.config, "model": model, "backend": backend}
    return msgspec.structs.replace(scored, model=model, backend=backend, prediction_hashes=hashes, config=config)


class TranscriptFolder:
    """Predictions that an annotator makes of transcripts, each in a file of its sample's name."""

    def __init__(self, folder: Path, annotator: Annotator, settings: SemanticSettings) -> None:
        if not folder.is_dir():
            raise InputError("there are no transcripts", file=str(folder), hint="name their folder with --transcripts")
        self.folder = folder
        self.annotator = annotator
        self.settings = settings
        self.hashes: dict[str, str] = {}
        """Of the transcripts: with the annotator's identity they say what was predicted."""

    def __call__(self, sample: str) -> SemanticPrediction:
        annotations = annotations_of(self._conversation(sample), self.annotator)
        failure = failure_of(annotations)
        if failure is not None:
            raise FailedPrediction(*failure)
        labels = labels_of([annotations], min_confidence=self.settings.min_confidence)
        return SemanticPrediction(labels, annotations.model, annotations.annotator)

    def _conversation(self, sample: str) -> Conversation:
        from convoscope.ingest.read import read

        path = sample_path(self.folder, sample, TRANSCRIPTS)
        if path is None:
            raise FailedPrediction(NO_PREDICTION, f"{sample}.json: there is no transcript")
        try:
            self.hashes[sample] = sha256(path.read_bytes()).hexdigest()
            conversations = list(read([path]))
        except (InputError, OSError) as error:
            raise FailedPrediction(UNREADABLE_TRANSCRIPT, without_folder(str(error), path.parent)) from None
        if len(conversations) != 1:
            detail = f"{path.name}: holds {len(conversations)} conversations, not one"
            raise FailedPrediction(UNREADABLE_TRANSCRIPT, detail)
        return conversations[0]


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


MODEL_VARIABLE = "CONVOSCOPE_SEMANTIC_MODEL"
RULES = "rules"
_MODELS = (RULES,)
"""What can be named. Models that are asked come with judges."""


def default_model() -> str:
    """The model that the user's environment names; empty without one."""
    return os.environ.get(MODEL_VARIABLE) or ""


def model_named(model: str | None) -> str:
    """The model that the user means; refuses what nobody can run yet."""
    name = model or default_model() or RULES
    if name not in _MODELS:
        whose = "--model" if model else MODEL_VARIABLE
        hint = f"there is {', '.join(_MODELS)}; give what another model found with --predictions"
        raise UsageError(f"{whose}: the model {name!r} cannot be run", hint=hint)
    return name
