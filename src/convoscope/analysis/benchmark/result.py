"""What a benchmark is asked for, and its result: figures or the reasons why they are missing, coverage, receipt, and
whether it holds."""

from __future__ import annotations

import math
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from convoscope.analysis.benchmark.agreement import LabelAgreement
from convoscope.errors import InputError, RunError
from convoscope.judging.calibrations import NOT_CALIBRATED
from convoscope.metrics.declaration import Better
from convoscope.runs.receipt import canonical_hash, now
from convoscope.runs.run import write_json
from convoscope.scores.judges import model_of
from convoscope.scores.reducers import Sums
from convoscope.statistics.intervals import Interval, ratio_interval, total

SCHEMA = "convoscope.benchmark/1"
NO_SAMPLES = "no_samples"
TAGS, SUMMARY = "tags", "summary"
POINTS = "0-10"
"""The unit of what a judge rates."""


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
    threshold: float = 0.8
    min_confidence: float | None = None
    collar: float = 0.0
    skip_overlap: bool = False


class MetricResult(msgspec.Struct, frozen=True, kw_only=True):
    """A figure over all samples, or the reason why it is missing. A value and a reason exclude each other."""

    value: float | None
    unit: str = "ratio"
    better: Better = "higher"
    average: str = "micro"
    reason: str | None = None
    coverage: float | None
    """Of the samples that could have a value: how many have one."""
    samples_measured: int
    samples_skipped: int
    samples_not_applicable: int = 0
    """Of those skipped, the ones with nothing to find where nothing was found."""
    skipped_reasons: dict[str, int] = {}
    tp: float | None = None
    fp: float | None = None
    fn: float | None = None
    interval: Interval | None = None
    worst_case: float | None = None
    """The value if every failed sample had found nothing, or had no points; None if it is unknown, or none failed."""
    judge: str | None = None
    """Who rated, where a judge did."""
    calibration: str | None = None
    """How far this judge agrees with people: `κ 0.61 (0.48 to 0.72), 69 labels`, or `not calibrated`."""

    def __post_init__(self) -> None:
        if (self.value is None) == (self.reason is None):
            raise ValueError("a figure has a value, or the reason why it has none")

    @property
    def is_calibrated(self) -> bool:
        """Whether a judge rated that agrees with people well enough."""
        return bool(self.calibration) and not str(self.calibration).startswith(NOT_CALIBRATED)


class FailedSample(msgspec.Struct, frozen=True):
    """A sample without a usable prediction, or without usable gold."""

    sample_id: str
    reason: str
    detail: str = ""


class RiskMatch(msgspec.Struct, frozen=True, gc=False):
    """A predicted risk and the gold risk that it is, as `type:severity`; one side alone is None on the other."""

    predicted: str | None
    gold: str | None
    match: bool


class ActionMatch(msgspec.Struct, frozen=True, gc=False):
    """A predicted action and the gold action that it is; one side alone is None on the other."""

    predicted: str | None
    gold: str | None
    similarity: float | None


class SummaryVerdicts(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge says of one summary. A score that is None has its reason in `reasons` of the sample."""

    text: str
    faithfulness: float | None = None
    coverage: float | None = None
    clarity: float | None = None
    bands: dict[str, str] = {}
    """The band of each score: excellent, good, acceptable, poor, failed."""
    reasoning: dict[str, str] = {}


class SampleResult(msgspec.Struct, frozen=True, kw_only=True):
    """One sample. What could not be measured is None, and `reasons` says why."""

    sample_id: str
    failed: str | UnsetType = UNSET
    skipped: str | UnsetType = UNSET
    """Why nothing was scored: there is no gold, or none that can be used."""
    reasons: dict[str, str] | UnsetType = UNSET
    topic_precision: float | None = None
    topic_recall: float | None = None
    topic_f1: float | None = None
    risk_precision: float | None = None
    risk_recall: float | None = None
    risk_f1: float | None = None
    action_precision: float | None = None
    action_recall: float | None = None
    action_f1: float | None = None
    predicted_topics: list[str] | None = None
    gold_topics: list[str] | None = None
    risk_matches: list[RiskMatch] = []
    action_matches: list[ActionMatch] = []
    summary: SummaryVerdicts | UnsetType = UNSET
    """Of the mode `summary`, instead of what is above."""


class BenchmarkReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """What a result was made with."""

    tool_version: str
    semantic_model: str | None = None
    semantic_backend: str | None = None
    config_hash: str
    gold_hash: str
    predictions_hash: str
    config: dict[str, Any]


class Invalidation(msgspec.Struct, frozen=True):
    """Why a result is not to be relied on, since when, and what replaces it."""

    reason: str
    at: str
    superseded_by: str | None = None


class AggregateMetric(msgspec.Struct, frozen=True):
    """A figure as slower-whisper writes it."""

    value: float | None
    reason: str | None
    coverage: float | None
    samples_measured: int
    samples_skipped: int

    @classmethod
    def of(cls, figure: MetricResult) -> AggregateMetric:
        return cls(*(getattr(figure, name) for name in cls.__struct_fields__))


class BenchmarkResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a track gave on a data set."""

    schema: str = SCHEMA
    run_id: str
    valid: bool = True
    invalid_reason: str | None = None
    invalidated_at: str | None = None
    superseded_by: str | None = None
    invalidated_before: list[Invalidation] = []
    """Earlier marks, the first one first."""
    track: str
    mode: str
    dataset: str
    split: str | None
    samples_evaluated: int
    samples_failed: int
    samples_skipped: int
    timestamp: str
    metrics: dict[str, MetricResult]
    aggregate_metrics: dict[str, AggregateMetric] = {}
    """The same figures in the shape of slower-whisper."""
    coverage: dict[str, float | int | None]
    receipt: BenchmarkReceipt
    sweep: dict[str, dict[str, float | None]] = {}
    """Figures of actions by the similarity that makes a match."""
    out_of_vocabulary: dict[str, int] = {}
    """Predicted labels that are in no vocabulary, and how often."""
    agreement: LabelAgreement | None = None
    """Of two labellings, where the samples were labelled twice: the ceiling of what can be reached."""
    notes: list[str] = []
    failures: list[FailedSample] = []
    sample_results: list[SampleResult] = []

    @property
    def judged_own_words(self) -> bool:
        """The model that rated the summaries also wrote them."""
        judge, maker = (str(self.receipt.config.get(name) or "") for name in ("judge", "model"))
        return bool(judge) and model_of(judge) == model_of(maker)


class Tally(NamedTuple):
    """Why samples have no value."""

    reasons: Counter[str]
    """Why they could not be measured."""
    skipped: Counter[str] = Counter()
    """Why there is nothing to compare with."""
    failures: Counter[str] = Counter()
    """Why samples failed in which there was something to find."""
    empty: int = 0
    """Samples with nothing to find, where nothing was found."""


def metric_result(value: float | None, measured: int, empty: str, tally: Tally, **fields: Any) -> MetricResult:
    """A figure; without a value, the commonest reason: nothing to measure, or why samples could not be measured."""
    all_reasons = tally.reasons + tally.skipped
    applicable = measured + all_reasons.total()
    reason = None
    if value is None:
        reasons = tally.failures or tally.reasons or tally.skipped
        is_empty = (measured or tally.empty) and not tally.failures
        reason = empty if is_empty else reasons.most_common(1)[0][0] if reasons else NO_SAMPLES
    return MetricResult(
        value=value,
        reason=reason,
        coverage=measured / applicable if applicable else None,
        samples_measured=measured,
        samples_skipped=all_reasons.total() + tally.empty,
        samples_not_applicable=tally.empty,
        skipped_reasons=dict(sorted(all_reasons.items())),
        **fields,
    )


def ratio_result(
    sums: Sums,
    measured: int,
    tally: Tally,
    *,
    lost: Lost | None = None,
    bounded: bool = True,
    least: float = -math.inf,
    most: float = math.inf,
    **fields: Any,
) -> MetricResult:
    """Σ above ÷ Σ below over samples, with its interval, and what it would be with the samples that failed."""
    above, below = total(sums.above), total(sums.below)
    kept = sums.below > 0
    interval = None
    if kept.sum() > 1:
        filled = sums._replace(above=sums.above[kept], below=sums.below[kept])
        interval = ratio_interval(filled, np.arange(kept.sum()), bounded=bounded, least=least, most=most)
    worst = (above + lost.above) / (below + lost.below) if lost is not None and below else None
    value = above / below if below else None
    return metric_result(value, measured, sums.empty, tally, interval=interval, worst_case=worst, **fields)


class Lost(NamedTuple):
    """What samples that failed would add to both sums, had they found nothing."""

    above: float
    below: float


def make_result(
    request: BenchmarkRequest,
    samples: int,
    *,
    config: Mapping[str, Any],
    gold_hashes: Mapping[str, str],
    prediction_hashes: Mapping[str, str],
    metrics: dict[str, MetricResult],
    failed: Sequence[FailedSample] = (),
    skipped: Sequence[FailedSample] = (),
    **fields: Any,
) -> BenchmarkResult:
    """The result of what a track gives for so many samples."""
    from convoscope import __version__

    moment = now()
    asked = {name: getattr(request, name) for name in ("track", "mode", "dataset", "split")}
    config = {**asked, **config, "limit": request.limit}
    return BenchmarkResult(
        run_id=f"run-{moment[:10].replace('-', '')}-{request.track}-{secrets.token_hex(4)}",
        **asked,
        samples_evaluated=samples - len(failed) - len(skipped),
        samples_failed=len(failed),
        samples_skipped=len(skipped),
        timestamp=moment,
        metrics=metrics,
        aggregate_metrics={name: AggregateMetric.of(figure) for name, figure in metrics.items()},
        receipt=BenchmarkReceipt(
            tool_version=__version__,
            semantic_model=config.get("model"),
            semantic_backend=config.get("backend"),
            config_hash=canonical_hash({**config, "tool_version": __version__}),
            gold_hash=canonical_hash(gold_hashes),
            predictions_hash=canonical_hash(prediction_hashes),
            config=config,
        ),
        failures=[*failed, *skipped],
        **fields,
    )


def read_result(path: Path) -> BenchmarkResult:
    """A result that was written."""
    if not path.exists():
        raise InputError(
            "there is no such result", file=str(path), hint="`convoscope benchmark run -o FILE` writes one"
        )
    try:
        result = msgspec.json.decode(path.read_bytes(), type=BenchmarkResult)
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(f"is not a result of a benchmark: {error}", file=str(path)) from None
    if result.schema != SCHEMA:
        raise InputError(f"is of the schema {result.schema!r}", file=str(path), hint=f"this version reads {SCHEMA}")
    return result


def write_result(path: Path, result: BenchmarkResult) -> None:
    """Keep a result, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, result)


def invalidate(path: Path, reason: str, superseded_by: str | None) -> BenchmarkResult:
    """Mark a result as not to be relied on. Its numbers stay as they were, and so do earlier marks."""
    if not reason.strip():
        raise RunError("an invalid result needs a reason", hint="say what is wrong with it")
    before = read_result(path)
    marks = before.invalidated_before
    if not before.valid:
        last = Invalidation(before.invalid_reason or "", before.invalidated_at or "", before.superseded_by)
        marks = [*marks, last]
    result = msgspec.structs.replace(
        before,
        valid=False,
        invalid_reason=reason,
        invalidated_at=now(),
        superseded_by=superseded_by or before.superseded_by,
        invalidated_before=marks,
    )
    write_result(path, result)
    return result
