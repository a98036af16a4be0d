"""The track `semantic`, mode `tags`: predicted topics, risks and actions against gold."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from convoscope.analysis.benchmark.agreement import agreement
from convoscope.analysis.benchmark.datasets import BenchmarkDataset, read_file
from convoscope.analysis.benchmark.labels import (
    NO_PREDICTION,
    UNREADABLE_PREDICTION,
    FailedPrediction,
    SemanticPrediction,
    gold_labels,
    read_prediction,
)
from convoscope.analysis.benchmark.result import FailedSample, Scored, with_skipped
from convoscope.analysis.benchmark.sample_results import ScoredSample, sample_result, skipped_result
from convoscope.analysis.benchmark.semantic_figures import semantic_metrics
from convoscope.conversation.annotations import FAMILIES
from convoscope.errors import InputError, UsageError
from convoscope.ingest.companions.gold_files import ENDING, check_bytes, transcript_segments
from convoscope.metrics.semantic.samples import (
    FAILED,
    Labels,
    has_severity,
    of_one_run,
    precision,
    recall,
    score_sample,
)
from convoscope.scores.observation import Counts
from convoscope.vocabulary import semantic_vocabulary, vocabulary_hash

NO_GOLD = "no_gold_labels"
SWEEP = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Thresholds whose figures stand beside those of the one that counts."""


class SemanticSettings(NamedTuple):
    """What may be chosen."""

    threshold: float = 0.8
    min_confidence: float | None = None

    def check(self) -> None:
        if not 0 < self.threshold <= 1:
            raise UsageError(f"--threshold must be above 0 and at most 1, not {self.threshold:g}")
        if self.min_confidence is not None and not 0 <= self.min_confidence <= 1:
            raise UsageError(f"--min-confidence must be between 0 and 1, not {self.min_confidence:g}")


Predict = Callable[[str], SemanticPrediction]
"""The prediction of a sample; a `FailedPrediction` where there is none that can be used."""


class PredictionFolder:
    """Predictions that lie in a folder, each in a file of its sample's name."""

    def __init__(self, folder: Path, min_confidence: float | None, model: str | None = None) -> None:
        if not folder.is_dir():
            raise InputError("there is no such folder", file=str(folder), hint="--predictions names one")
        self._prefix = f"{folder}/"
        self.min_confidence = min_confidence
        self.hashes: dict[str, str] = {}
        self.model = model
        self.makers: set[str] = set()
        self.several = 0
        """Samples with findings of several annotators."""
        self._names = frozenset(os.listdir(folder))

    def __call__(self, sample: str) -> SemanticPrediction:
        name, other = sample + ".json", sample + "_prediction.json"
        name = other if name not in self._names and other in self._names else name
        try:
            data = read_file(self._prefix + name)
        except FileNotFoundError:
            raise FailedPrediction(NO_PREDICTION, f"{name}: there is no prediction") from None
        except OSError as error:
            raise FailedPrediction(UNREADABLE_PREDICTION, f"{name}: {error.strerror}") from None
        self.hashes[sample] = sha256(data).hexdigest()
        try:
            prediction = read_prediction(data, name, self.min_confidence, self.model)
        except InputError as error:
            raise FailedPrediction(UNREADABLE_PREDICTION, str(error)) from None
        self.makers.add(prediction.maker)
        self.several += prediction.annotators > 1
        return prediction

    def samples(self, known: Collection[str]) -> Iterator[str]:
        """The samples that have a prediction and are none of those known."""
        for name in sorted(self._names):
            sample = name.removesuffix(".json").removesuffix("_prediction")
            if name.endswith(".json") and sample not in known:
                with suppress(InputError, OSError):
                    read_prediction(read_file(self._prefix + name), name)
                    yield sample

    @property
    def notes(self) -> list[str]:
        """What a reader of the result should know."""
        if not self.several:
            return []
        which = f"that of {self.model}, else the first," if self.model else "the first"
        return [f"{self.several} predictions are of several annotators: {which} was scored; --model names another"]


def score_semantic(
    dataset: BenchmarkDataset,
    samples: Sequence[str],
    predict: Predict,
    settings: SemanticSettings,
    transcripts: Path | None = None,
) -> Scored:
    """Score the samples. One without usable gold is skipped; one without a usable prediction failed.

    `transcripts` is the folder that says which segments there are, for gold that cites one.
    """
    settings.check()
    with without_collector():
        return _score(dataset, samples, predict, settings, transcripts)


@contextmanager
def without_collector() -> Iterator[None]:
    """Labels make no cycles: a collector would only walk over all samples again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Attempt(NamedTuple):
    """A sample with usable gold, and what was predicted; or why nothing was."""

    sample: str
    gold: Labels
    predicted: Labels
    failure: str = ""


def _score(
    dataset: BenchmarkDataset,
    samples: Sequence[str],
    predict: Predict,
    settings: SemanticSettings,
    transcripts: Path | None,
) -> Scored:
    attempts: list[_Attempt] = []
    skipped: list[FailedSample] = []
    gold_hashes: dict[str, str] = {}
    folder = f"{dataset.references}/"
    for sample in samples:
        name = sample + ENDING
        path = folder + name
        try:
            data = read_file(path)
        except OSError:
            skipped.append(FailedSample(sample, NO_GOLD, name))
            continue
        gold_hashes[sample] = sha256(data).hexdigest()
        segments = None if transcripts is None else transcript_segments(transcripts, sample)
        checked = check_bytes(data, name, name, segments)
        if checked.gold is None:
            skipped.append(FailedSample(sample, "invalid_gold_labels", str(checked.errors[0])))
            continue
        attempts.append(_attempt(sample, gold_labels(checked.gold), predict))
    scored = _scored(attempts, settings.threshold)
    vocabulary = semantic_vocabulary()
    return Scored(
        total=len(samples),
        metrics=with_skipped(semantic_metrics(scored, settings.threshold), skipped),
        coverage=_coverage(len(samples), scored),
        config={
            "threshold": str(settings.threshold),
            "min_confidence": settings.min_confidence,
            "sweep": list(SWEEP),
            "vocabulary": {"version": vocabulary.version, "hash": vocabulary_hash()},
        },
        gold_hashes=gold_hashes,
        prediction_hashes={},
        failed=[FailedSample(one.id, *one.failed.split(": ", 1)) for one in scored if one.failed],
        skipped=skipped,
        sweep=_sweep(scored),
        out_of_vocabulary=_strangers(scored),
        agreement=agreement(dataset, samples, settings.threshold),
        sample_results=sorted(
            [*map(sample_result, scored), *(skipped_result(one.sample_id, one.reason) for one in skipped)],
            key=lambda one: one.sample_id,
        ),
    )


def _attempt(sample: str, gold: Labels, predict: Predict) -> _Attempt:
    try:
        return _Attempt(sample, gold, predict(sample).labels)
    except FailedPrediction as error:
        return _Attempt(sample, gold, Labels(failed=frozenset(FAMILIES), failure=error.reason), str(error))


def _scored(attempts: Sequence[_Attempt], threshold: float) -> list[ScoredSample]:
    """What an annotator provides is decided over all samples: one that lacks it found not nothing, it failed."""
    run = of_one_run([one.predicted for one in attempts])
    severity = has_severity(run)
    scored: list[ScoredSample] = []
    for attempt, predicted in zip(attempts, run, strict=True):
        failure = attempt.failure or _failed_families(attempt.predicted.failed, predicted.failed)
        score = score_sample(predicted, attempt.gold, threshold, SWEEP, run_has_severity=severity)
        scored.append(ScoredSample(attempt.sample, attempt.gold, predicted, score, failure))
    return scored


def _failed_families(reported: frozenset[str], all_failed: frozenset[str]) -> str:
    if not all_failed:
        return ""
    broken = ", ".join(family for family in FAMILIES if family in reported)
    lacking = ", ".join(family for family in FAMILIES if family in all_failed - reported)
    parts = [broken and f"an error at {broken}", lacking and f"no {lacking}, which other samples have"]
    return f"{FAILED}: {'; '.join(filter(None, parts))}"


def _coverage(total: int, samples: Sequence[ScoredSample]) -> dict[str, float | int | None]:
    return {
        "samples_total": total,
        "samples_with_gold_labels": len(samples),
        "samples_with_predictions": sum(len(one.predicted.failed) < len(FAMILIES) for one in samples),
        **{f"samples_with_{family}": sum(bool(getattr(one.gold, family)) for one in samples) for family in FAMILIES},
        "gold_label_coverage": len(samples) / total if total else None,
    }


def _sweep(samples: Sequence[ScoredSample]) -> dict[str, dict[str, float | None]]:
    """The figures of actions at other thresholds: how much depends on the one that was chosen."""
    measured = [one for one in samples if one.score.actions is not None]
    predicted = sum(len(one.predicted.actions or ()) for one in measured)
    gold = sum(len(one.gold.actions or ()) for one in measured)
    sweep: dict[str, dict[str, float | None]] = {}
    for place, threshold in enumerate(SWEEP):
        pairs = sum(len(one.score.sweep[place]) for one in measured)
        counts = Counts(pairs, predicted - pairs, gold - pairs)
        sweep[str(threshold)] = {
            "action_accuracy": recall(counts),
            "action_precision": precision(counts),
            "action_f1": counts.f1,
        }
    return sweep


def _strangers(samples: Iterable[ScoredSample]) -> dict[str, int]:
    vocabulary = semantic_vocabulary()
    known, kinds = vocabulary.labels, vocabulary.risks.keys()
    strangers: Counter[str] = Counter()
    for sample in samples:
        topics, risks = sample.predicted.topics or (), sample.predicted.risks or ()
        strangers.update([f"topic {one}" for one in {one for one in topics if one not in known}])
        strangers.update([f"risk {one}" for one in {one.type for one in risks if one.type not in kinds}])
    return dict(sorted(strangers.items()))
