"""The track `semantic`, mode `tags`: predicted topics, risks and actions against gold."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from msgspec import UNSET

from convoscope.analysis.benchmark.agreement import agreement
from convoscope.analysis.benchmark.datasets import BenchmarkDataset, read_file
from convoscope.analysis.benchmark.labels import PredictionFolder, TranscriptFolder, gold_labels
from convoscope.analysis.benchmark.result import (
    ActionMatch,
    BenchmarkRequest,
    BenchmarkResult,
    FailedSample,
    RiskMatch,
    SampleResult,
    make_result,
)
from convoscope.analysis.benchmark.semantic_figures import ScoredSample, semantic_metrics
from convoscope.annotate.annotator import NotAnnotated
from convoscope.conversation.annotations import FAMILIES
from convoscope.ingest.companions.gold_files import ENDING, check_bytes, transcript_segments
from convoscope.metrics.semantic.samples import (
    FAILED,
    INVALID_GOLD,
    Labels,
    PlainRisk,
    Provided,
    descriptions,
    of_one_run,
    precision,
    recall,
    score_sample,
    topic_set,
)
from convoscope.scores.observation import Counts
from convoscope.vocabulary import semantic_vocabulary, vocabulary_hash

NO_GOLD = "no_gold_labels"
SWEEP = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Thresholds whose figures are given besides those of the one that counts."""


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


@without_collector()
def score_semantic(
    request: BenchmarkRequest,
    dataset: BenchmarkDataset,
    samples: Sequence[str],
    predict: PredictionFolder | TranscriptFolder,
    transcripts: Path | None = None,
) -> BenchmarkResult:
    """Score the samples. One without usable gold is skipped; one without a usable prediction failed.

    `transcripts` is the folder that says which segments there are, for gold that cites one.
    """
    labelled: dict[str, Labels] = {}
    skipped: list[FailedSample] = []
    gold_hashes: dict[str, str] = {}
    folder = f"{dataset.references}/"
    for sample in samples:
        name = sample + ENDING
        try:
            data = read_file(folder + name)
        except OSError:
            skipped.append(FailedSample(sample, NO_GOLD, name))
            continue
        gold_hashes[sample] = sha256(data).hexdigest()
        segments = None if transcripts is None else transcript_segments(transcripts, sample)
        checked = check_bytes(data, name, name, segments)
        if checked.gold is None:
            skipped.append(FailedSample(sample, INVALID_GOLD, str(checked.errors[0])))
            continue
        labelled[sample] = gold_labels(checked.gold)
    attempts: list[tuple[str, Labels, Labels, str]] = []
    for (sample, gold), made in zip(labelled.items(), predict.each(labelled), strict=True):
        if isinstance(made, NotAnnotated):
            attempts.append((sample, gold, Labels(failed=frozenset(FAMILIES), failure=made.reason), str(made)))
        else:
            attempts.append((sample, gold, made, ""))
    # What an annotator provides is decided over all samples: one that lacks it failed, it did not find nothing.
    provided = Provided([predicted for _, _, predicted, _ in attempts])
    run = of_one_run([predicted for _, _, predicted, _ in attempts], provided)
    scored: list[ScoredSample] = []
    for (sample, gold, given, failure), predicted in zip(attempts, run, strict=True):
        score = score_sample(predicted, gold, request.threshold, SWEEP, run_has_severity=provided.severity)
        failed = failure or _failed_families(given.failed, predicted.failed)
        scored.append(ScoredSample(sample, gold, predicted, score, failed))
    vocabulary = semantic_vocabulary()
    results = [sample_result(sample) for sample in scored]
    results += [
        SampleResult(sample_id=sample.sample_id, skipped=sample.reason, reasons=dict.fromkeys(FAMILIES, sample.reason))
        for sample in skipped
    ]
    return make_result(
        request,
        len(samples),
        metrics=semantic_metrics(scored, request.threshold, Counter(sample.reason for sample in skipped)),
        coverage={**_coverage(len(samples), scored), "samples_partial": predict.partial},
        config={
            "threshold": str(request.threshold),
            "min_confidence": request.min_confidence,
            "sweep": list(SWEEP),
            "vocabulary": {"version": vocabulary.version, "hash": vocabulary_hash()},
            **predict.config(request.model),
        },
        gold_hashes=gold_hashes,
        prediction_hashes=predict.hashes,
        failed=[FailedSample(sample.id, *sample.failed.split(": ", 1)) for sample in scored if sample.failed],
        skipped=skipped,
        sweep=_sweep(scored),
        out_of_vocabulary=_unknown_labels(scored),
        agreement=agreement(dataset, samples, request.threshold),
        notes=predict.notes,
        sample_results=sorted(results, key=lambda result: result.sample_id),
    )


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
        "samples_with_predictions": sum(len(sample.predicted.failed) < len(FAMILIES) for sample in samples),
        **{
            f"samples_with_{family}": sum(bool(getattr(sample.gold, family)) for sample in samples)
            for family in FAMILIES
        },
        "gold_label_coverage": len(samples) / total if total else None,
    }


def _sweep(samples: Sequence[ScoredSample]) -> dict[str, dict[str, float | None]]:
    """The figures of actions at other thresholds: how much depends on the one that was chosen."""
    measured = [sample for sample in samples if sample.score.actions is not None]
    predicted = sum(len(sample.predicted.actions or ()) for sample in measured)
    gold = sum(len(sample.gold.actions or ()) for sample in measured)
    sweep: dict[str, dict[str, float | None]] = {}
    for index, threshold in enumerate(SWEEP):
        pairs = sum(len(sample.score.sweep[index]) for sample in measured)
        counts = Counts(pairs, predicted - pairs, gold - pairs)
        sweep[str(threshold)] = {
            "action_accuracy": recall(counts),
            "action_precision": precision(counts),
            "action_f1": counts.f1,
        }
    return sweep


def _unknown_labels(samples: Iterable[ScoredSample]) -> dict[str, int]:
    """Predicted labels outside the vocabulary, and in how many samples they are."""
    vocabulary = semantic_vocabulary()
    known, kinds = vocabulary.labels, vocabulary.risks.keys()
    unknown: Counter[str] = Counter()
    for sample in samples:
        topics, risks = sample.predicted.topics or (), sample.predicted.risks or ()
        unknown.update({f"topic {label}" for label in topics if label not in known})
        unknown.update({f"risk {risk.type}" for risk in risks if risk.type not in kinds})
    return dict(sorted(unknown.items()))


def sample_result(sample: ScoredSample) -> SampleResult:
    """What one sample came to."""
    score, predicted, gold = sample.score, sample.predicted, sample.gold
    topics = score.topics
    risks = score.risks and score.risks.overall
    actions = score.actions and score.actions.counts
    return SampleResult(
        sample_id=sample.id,
        failed=sample.failed or UNSET,
        reasons=dict(score.reasons) if score.reasons else UNSET,
        topic_precision=topics and precision(topics),
        topic_recall=topics and recall(topics),
        topic_f1=topics and topics.f1,
        risk_precision=risks and precision(risks),
        risk_recall=risks and recall(risks),
        risk_f1=risks and risks.f1,
        action_precision=actions and precision(actions),
        action_recall=actions and recall(actions),
        action_f1=actions and actions.f1,
        predicted_topics=None if predicted.topics is None else sorted(topic_set(predicted.topics)),
        gold_topics=None if gold.topics is None else sorted(topic_set(gold.topics)),
        risk_matches=_risk_matches(predicted.risks or (), gold.risks or ()),
        action_matches=_action_matches(sample),
    )


def _risk_matches(predicted: Sequence[PlainRisk], gold: Sequence[PlainRisk]) -> list[RiskMatch]:
    """Risks side by side: first those that agree in severity, then those that agree in type, then the rest."""
    wrong, missed = [*dict.fromkeys(predicted)], [*dict.fromkeys(gold)]
    rows: list[RiskMatch] = []
    for parts in (2, 1):
        for risk in list(wrong) if missed else ():
            match = next((other for other in missed if risk[:parts] == other[:parts]), None)
            if match is not None:
                wrong.remove(risk)
                missed.remove(match)
                rows.append(RiskMatch(_risk_text(risk), _risk_text(match), True))
    rows += [RiskMatch(_risk_text(risk), None, False) for risk in wrong]
    rows += [RiskMatch(None, _risk_text(risk), False) for risk in missed]
    return rows


def _risk_text(risk: PlainRisk) -> str:
    return f"{risk.type}:{risk.severity}" if risk.severity else risk.type


def _action_matches(sample: ScoredSample) -> list[ActionMatch]:
    predicted, gold = descriptions(sample.predicted), descriptions(sample.gold)
    matches = sample.score.actions.matches if sample.score.actions else ()
    rows = [ActionMatch(predicted[row], gold[column], round(similarity, 4)) for row, column, similarity in matches]
    found_rows, found_columns = {match.predicted for match in matches}, {match.gold for match in matches}
    rows += [ActionMatch(text, None, None) for row, text in enumerate(predicted) if row not in found_rows]
    rows += [ActionMatch(None, text, None) for column, text in enumerate(gold) if column not in found_columns]
    return rows
