"""The track `semantic`, mode `tags`: predicted topics, risks and actions against gold."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.analysis.benchmark.agreement import agreement
from convoscope.analysis.benchmark.datasets import BenchmarkDataset, sample_path
from convoscope.analysis.benchmark.gold_labels import gold_labels
from convoscope.analysis.benchmark.predictions import SemanticPrediction, read_prediction
from convoscope.analysis.benchmark.result import FailedSample, MetricResult, Scored
from convoscope.errors import InputError, UsageError
from convoscope.ingest.beside.gold_files import check_bytes
from convoscope.metrics.semantic.counts import PlainRisk, precision, recall, topic_set
from convoscope.metrics.semantic.samples import (
    ACTIONS,
    FAMILIES,
    NO_SEVERITY,
    RISKS,
    TOPICS,
    Assignees,
    Labels,
    LocatedRisks,
    SampleScore,
    assignees,
    descriptions,
    matched_in_any_wording,
    score_sample,
    segment_overlap,
)
from convoscope.scores.observation import Counts
from convoscope.scores.reducers import Sums
from convoscope.statistics.intervals import Interval, ratio_interval
from convoscope.vocabulary import semantic_vocabulary
from convoscope.vocabulary.semantic import vocabulary_hash

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


class ScoredSample(NamedTuple):
    """A sample that has gold: what was predicted and what came of it; no prediction where it failed."""

    id: str
    gold: Labels
    predicted: Labels
    score: SampleScore
    failed: str = ""


Predict = Callable[[str], SemanticPrediction]
"""The prediction of a sample; an `InputError` where there is none."""


class PredictionFolder:
    """Predictions that lie in a folder, each in a file of its sample's name."""

    def __init__(self, folder: Path, min_confidence: float | None) -> None:
        if not folder.is_dir():
            raise InputError("there is no such folder", file=str(folder), hint="--predictions names one")
        self.folder = folder
        self.min_confidence = min_confidence
        self.hashes: dict[str, str] = {}
        self.models: set[str] = set()

    def __call__(self, sample: str) -> SemanticPrediction:
        path = sample_path(self.folder, sample, (".json", "_prediction.json"))
        if path is None:
            raise InputError("there is no prediction", file=str(self.folder / f"{sample}.json"))
        data = path.read_bytes()
        self.hashes[sample] = hashlib.sha256(data).hexdigest()
        prediction = read_prediction(data, str(path), self.min_confidence)
        self.models.add(prediction.model or prediction.annotator)
        return prediction


def score_semantic(
    dataset: BenchmarkDataset, samples: Sequence[str], predict: Predict, settings: SemanticSettings
) -> Scored:
    """Score the samples. One without usable gold is skipped; one without a usable prediction failed."""
    settings.check()
    scored: list[ScoredSample] = []
    skipped: list[FailedSample] = []
    failed: list[FailedSample] = []
    gold_hashes: dict[str, str] = {}
    for sample in samples:
        path = dataset.reference(sample)
        try:
            data = path.read_bytes()
        except OSError:
            skipped.append(FailedSample(sample, "no_gold_labels", str(path)))
            continue
        gold_hashes[sample] = hashlib.sha256(data).hexdigest()
        checked = check_bytes(data, path.name, str(path))
        if checked.gold is None:
            skipped.append(FailedSample(sample, "invalid_gold_labels", str(checked.errors[0])))
            continue
        score = _scored(sample, gold_labels(checked.gold), predict, settings.threshold)
        scored.append(score)
        if score.failed:
            failed.append(FailedSample(sample, *score.failed.split(": ", 1)))
    vocabulary = semantic_vocabulary()
    return Scored(
        total=len(samples),
        metrics=_metrics(scored),
        coverage=_coverage(len(samples), scored),
        config={
            "threshold": str(settings.threshold),
            "min_confidence": settings.min_confidence,
            "sweep": list(SWEEP),
            "vocabulary": {"version": vocabulary.version, "hash": vocabulary_hash()},
        },
        gold_hashes=gold_hashes,
        prediction_hashes={},
        failed=failed,
        skipped=skipped,
        sweep=_sweep(scored),
        out_of_vocabulary=_strangers(scored),
        agreement=agreement(dataset, samples, settings.threshold),
        sample_results=[_sample_result(one) for one in scored],
    )


def _scored(sample: str, gold: Labels, predict: Predict, threshold: float) -> ScoredSample:
    try:
        predicted = predict(sample).labels
        failure = "".join(f"annotation_failed: {family}" for family in sorted(predicted.failed)[:1])
    except (InputError, OSError) as error:
        predicted, failure = Labels(failed=frozenset(FAMILIES)), f"no_prediction: {error}"
    return ScoredSample(sample, gold, predicted, score_sample(predicted, gold, threshold, SWEEP), failure)


class _Column(NamedTuple):
    """What each sample says of a figure: counts, or the reason why there are none; and what failed samples missed."""

    counts: list[Counts]
    reasons: Counter[str]
    lost: float
    empty: int
    """Samples with nothing to find, where nothing was."""


def _column(samples: Iterable[ScoredSample], family: str, pick: Callable[[SampleScore], Counts | None]) -> _Column:
    counts: list[Counts] = []
    reasons: Counter[str] = Counter()
    lost, empty = 0.0, 0
    for sample in samples:
        if family in sample.score.reasons:
            reasons[sample.score.reasons[family]] += 1
            if family in sample.predicted.failed and getattr(sample.gold, family) is not None:
                missed = pick(score_sample(_SILENT, sample.gold))
                lost += missed.fn if missed is not None else 0.0
            continue
        counted = pick(sample.score)
        if counted is None:
            reasons[NO_SEVERITY] += 1
        elif any(counted):
            counts.append(counted)
        else:
            empty += 1
    return _Column(counts, reasons, lost, empty)


_SILENT = Labels((), (), ())


def _metrics(samples: Sequence[ScoredSample]) -> dict[str, MetricResult]:
    topics = _column(samples, TOPICS, lambda score: score.topics)
    risks = _column(samples, RISKS, lambda score: score.risks and score.risks.overall)
    actions = _column(samples, ACTIONS, lambda score: score.actions and score.actions.counts)
    metrics = {**_figures("topic", topics), **_figures("risk", risks)}
    for severity in semantic_vocabulary().weights:
        metrics[f"risk_f1_{severity}"] = _f1(_column(samples, RISKS, partial(_of_severity, severity)))
    metrics["risk_f1_weighted"] = _f1(_column(samples, RISKS, lambda score: score.risks and score.risks.weighted))
    metrics["risk_f1_weighted_type_only"] = _f1(
        _column(samples, RISKS, lambda score: score.risks and score.risks.weighted_type_only)
    )
    metrics["risk_segment_overlap"] = _share(samples, RISKS, _overlap, "no_located_risk_of_a_type_that_was_found")
    of_actions = _figures("action", actions)
    metrics["action_accuracy"] = of_actions.pop("action_recall")
    metrics |= of_actions
    metrics["action_accuracy_any"] = _share(samples, ACTIONS, _in_any_wording, "nothing_in_gold")
    metrics["assignee_accuracy"] = _share(samples, ACTIONS, _assignees, "no_matched_action_with_a_role")
    return metrics


def _of_severity(severity: str, score: SampleScore) -> Counts | None:
    risks = score.risks
    return risks.by_severity[severity] if risks is not None and risks.weighted is not None else None


def _figures(name: str, column: _Column) -> dict[str, MetricResult]:
    values = [counts.f1 or 0.0 for counts in column.counts]
    macro = sum(values) / len(values) if values else None
    return {
        f"{name}_f1": _f1(column),
        f"{name}_precision": _ratio(
            column, lambda one: (one.tp, one.tp + one.fp), "nothing_predicted", loses_nothing=True
        ),
        f"{name}_recall": _ratio(column, lambda one: (one.tp, one.tp + one.fn), "nothing_in_gold"),
        f"{name}_f1_macro": _result(column, macro, "nothing_to_find", average="macro"),
    }


def _f1(column: _Column) -> MetricResult:
    return _ratio(column, lambda one: (2 * one.tp, 2 * one.tp + one.fp + one.fn), "nothing_to_find")


def _ratio(
    column: _Column, parts: Callable[[Counts], tuple[float, float]], empty: str, *, loses_nothing: bool = False
) -> MetricResult:
    pairs = [parts(counts) for counts in column.counts]
    above, below = sum(one for one, _ in pairs), sum(one for _, one in pairs)
    value = above / below if below else None
    worst = above / (below + column.lost) if column.lost and not loses_nothing and below else None
    total = Counts(*(sum(column) for column in zip(*column.counts, strict=True))) if column.counts else None
    return _result(column, value, empty, counts=total, interval=_interval(pairs), worst=worst)


def _result(
    column: _Column,
    value: float | None,
    empty: str,
    *,
    average: str = "micro",
    counts: Counts | None = None,
    interval: Interval | None = None,
    worst: float | None = None,
) -> MetricResult:
    """A figure; without one, the commonest reason: nothing to measure, or what kept the samples from being so."""
    measured, without = len(column.counts), column.reasons.total()
    reason = None
    if value is None:
        common = column.reasons.most_common(1)
        reason = empty if measured or column.empty else common[0][0] if common else "no_samples"
    return MetricResult(
        value=value,
        average=average,
        reason=reason,
        coverage=measured / (measured + without) if measured + without else None,
        samples_measured=measured,
        samples_skipped=without + column.empty,
        samples_not_applicable=column.empty,
        skipped_reasons=dict(sorted(column.reasons.items())),
        tp=counts.tp if counts else None,
        fp=counts.fp if counts else None,
        fn=counts.fn if counts else None,
        interval=interval,
        worst_case=worst,
    )


def _interval(pairs: Sequence[tuple[float, float]]) -> Interval | None:
    import numpy as np

    kept = [one for one in pairs if one[1]]
    if len(kept) < 2:
        return None
    above, below = np.array(kept, float).T
    return ratio_interval(Sums("", above, below), np.arange(len(kept)), bounded=True)


def _share(
    samples: Iterable[ScoredSample], family: str, count: Callable[[ScoredSample], LocatedRisks | Assignees], empty: str
) -> MetricResult:
    """A share of what was right of all that could be, over samples."""
    column = _Column([], Counter(), 0.0, 0)
    pairs: list[tuple[float, float]] = []
    nothing = 0
    for sample in samples:
        if family in sample.score.reasons:
            column.reasons[sample.score.reasons[family]] += 1
            continue
        right, total = count(sample)
        if total:
            pairs.append((right, total))
            column.counts.append(Counts(right, 0, total - right))
        else:
            nothing += 1
    below = sum(total for _, total in pairs)
    value = sum(right for right, _ in pairs) / below if below else None
    return _result(column._replace(empty=nothing), value, empty, interval=_interval(pairs))


def _overlap(sample: ScoredSample) -> LocatedRisks:
    return segment_overlap(sample.predicted.risks or (), sample.gold.risks or ())


def _assignees(sample: ScoredSample) -> Assignees:
    actions = sample.score.actions
    return assignees(sample.predicted, sample.gold, actions) if actions is not None else Assignees(0, 0)


def _in_any_wording(sample: ScoredSample) -> LocatedRisks:
    if sample.score.actions is not None and not any(
        one.verbatim for one in (*(sample.predicted.actions or ()), *(sample.gold.actions or ()))
    ):
        return LocatedRisks(len(sample.score.actions.matches), len(sample.gold.actions or ()))
    return LocatedRisks(matched_in_any_wording(sample.predicted, sample.gold), len(sample.gold.actions or ()))


def _coverage(total: int, samples: Sequence[ScoredSample]) -> dict[str, float | int | None]:
    return {
        "samples_total": total,
        "samples_with_gold_labels": len(samples),
        "samples_with_predictions": sum(not one.failed.startswith("no_prediction") for one in samples),
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
    strangers: Counter[str] = Counter()
    for sample in samples:
        strangers.update(f"topic {one}" for one in {*(sample.predicted.topics or ())} - vocabulary.labels)
        kinds = {one.type for one in sample.predicted.risks or ()}
        strangers.update(f"risk {one}" for one in kinds - vocabulary.risks.keys())
    return dict(sorted(strangers.items()))


def _sample_result(sample: ScoredSample) -> dict[str, Any]:
    """What one sample came to, for whoever looks into it."""
    score, predicted, gold = sample.score, sample.predicted, sample.gold
    result: dict[str, Any] = {"sample_id": sample.id}
    if sample.failed:
        result["failed"] = sample.failed
    if score.reasons:
        result["reasons"] = dict(score.reasons)
    for name, counts in (
        ("topic", score.topics),
        ("risk", score.risks and score.risks.overall),
        ("action", score.actions and score.actions.counts),
    ):
        result[f"{name}_precision"] = counts and precision(counts)
        result[f"{name}_recall"] = counts and recall(counts)
        result[f"{name}_f1"] = counts and counts.f1
    result["predicted_topics"] = _listed(predicted.topics)
    result["gold_topics"] = _listed(gold.topics)
    result["risk_matches"] = _risk_matches(predicted.risks or (), gold.risks or ())
    result["action_matches"] = _action_matches(sample)
    return result


def _listed(topics: tuple[str, ...] | None) -> list[str] | None:
    return None if topics is None else sorted(topic_set(topics))


def _risk_matches(predicted: Sequence[PlainRisk], gold: Sequence[PlainRisk]) -> list[dict[str, Any]]:
    """Risks side by side: first those that agree in severity, then those that agree in type, then the rest."""
    mine, theirs = [*dict.fromkeys(predicted)], [*dict.fromkeys(gold)]
    rows: list[dict[str, Any]] = []
    for parts in (2, 1):
        for risk in list(mine):
            other = next((other for other in theirs if risk[:parts] == other[:parts]), None)
            if other is not None:
                mine.remove(risk)
                theirs.remove(other)
                rows.append({"predicted": _risk_text(risk), "gold": _risk_text(other), "match": True})
    rows += [{"predicted": _risk_text(one), "gold": None, "match": False} for one in mine]
    rows += [{"predicted": None, "gold": _risk_text(one), "match": False} for one in theirs]
    return rows


def _risk_text(risk: PlainRisk) -> str:
    return f"{risk.type}:{risk.severity}" if risk.severity else risk.type


def _action_matches(sample: ScoredSample) -> list[dict[str, Any]]:
    mine, theirs = descriptions(sample.predicted), descriptions(sample.gold)
    matches = sample.score.actions.matches if sample.score.actions else ()
    rows: list[dict[str, Any]] = [
        {"predicted": mine[one.predicted], "gold": theirs[one.gold], "similarity": round(one.similarity, 4)}
        for one in matches
    ]
    taken_mine, taken_theirs = {one.predicted for one in matches}, {one.gold for one in matches}
    alone: Mapping[str, Any] = {"predicted": None, "gold": None, "similarity": None}
    rows += [{**alone, "predicted": text} for place, text in enumerate(mine) if place not in taken_mine]
    rows += [{**alone, "gold": text} for place, text in enumerate(theirs) if place not in taken_theirs]
    return rows
