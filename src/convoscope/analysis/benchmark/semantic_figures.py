"""The figures of the semantic benchmark: what samples count, reduced as the metrics of a run are, with intervals,
worst cases, and the reasons why a figure is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.analysis.benchmark.result import NO_SAMPLES, MetricResult
from convoscope.conversation.annotations import ACTIONS, RISKS, TOPICS
from convoscope.metrics.semantic.matching import match_in_any_wording
from convoscope.metrics.semantic.samples import (
    NO_SEVERITY,
    Labels,
    RightOfAll,
    SampleScore,
    assignees,
    score_sample,
    segment_overlap,
    wordings,
)
from convoscope.scores.observation import Counts
from convoscope.scores.reducers import POOLED_COUNTS, Sums
from convoscope.statistics.intervals import Interval, ratio_interval
from convoscope.vocabulary import semantic_vocabulary

Floats = NDArray[np.float64]
NO_SEGMENTS = "annotator_provides_no_segments"
_NOTHING_FOUND = Labels((), (), ())
_NO_SHARE = RightOfAll(0, 0)


class ScoredSample(NamedTuple):
    """A sample that has gold: what was predicted and what came of it; no prediction where it failed."""

    id: str
    gold: Labels
    predicted: Labels
    score: SampleScore
    failed: str = ""


class _Family(NamedTuple):
    """The samples of which a family is measured, and why the others are not."""

    measured: list[ScoredSample]
    reasons: Counter[str]
    failed: list[Labels]
    """Gold of samples whose annotation failed: what they would have missed."""
    failures: list[str]
    """Why each of them failed."""


class _Column(NamedTuple):
    """What the samples count for a figure, where there is something to count."""

    tp: Floats
    fp: Floats
    fn: Floats
    reasons: Counter[str]
    """Why samples are not measured."""
    empty: int
    """Samples with nothing to find, where nothing was found."""
    lost: float
    """What failed samples would have missed."""
    failures: Counter[str]
    """Why samples failed in which there was something to find."""


def semantic_metrics(samples: Sequence[ScoredSample], threshold: float) -> dict[str, MetricResult]:
    """Every figure of the mode `tags`."""
    topics, risks, actions = (_family(samples, family) for family in (TOPICS, RISKS, ACTIONS))

    def of_severity(severity: str) -> Callable[[SampleScore], Counts | None]:
        return lambda score: score.risks and score.risks.weighted and score.risks.by_severity[severity]

    def in_any_wording(sample: ScoredSample) -> RightOfAll:
        return _in_any_wording(sample, threshold)

    metrics = _pooled("topic", _column(topics, lambda score: score.topics))
    metrics |= _pooled("risk", _column(risks, lambda score: score.risks and score.risks.overall))
    for severity in semantic_vocabulary().weights:
        metrics[f"risk_f1_{severity}"] = _f1(_column(risks, of_severity(severity)))
    metrics["risk_f1_weighted"] = _f1(_column(risks, lambda score: score.risks and score.risks.weighted))
    metrics["risk_f1_weighted_type_only"] = _f1(
        _column(risks, lambda score: score.risks and score.risks.weighted_type_only)
    )
    metrics["risk_segment_overlap"] = _segment_overlap(risks)
    pooled = _pooled("action", _column(actions, lambda score: score.actions and score.actions.counts))
    metrics["action_accuracy"] = pooled.pop("action_recall")
    metrics |= pooled
    missed = sum(len(gold.actions or ()) for gold in actions.failed)
    metrics["action_accuracy_any"] = _share(actions, in_any_wording, "nothing_in_gold", missed)
    metrics["assignee_accuracy"] = _share(actions, _assignees, "no_matched_action_with_a_role")
    return metrics


def _family(samples: Sequence[ScoredSample], family: str) -> _Family:
    result = _Family([], Counter(), [], [])
    for sample in samples:
        reason = sample.score.reasons.get(family) if sample.score.reasons else None
        if reason is None:
            result.measured.append(sample)
            continue
        result.reasons[reason] += 1
        if family in sample.predicted.failed and getattr(sample.gold, family) is not None:
            result.failed.append(sample.gold)
            result.failures.append(reason)
    return result


def _column(family: _Family, pick: Callable[[SampleScore], Counts | None]) -> _Column:
    picked = [pick(sample.score) for sample in family.measured]
    reasons = family.reasons
    if None in picked:
        reasons = reasons + Counter({NO_SEVERITY: picked.count(None)})
    counts = [count for count in picked if count is not None]
    missed = [(pick(score_sample(_NOTHING_FOUND, gold)), reason) for gold, reason in zip(*family[2:], strict=True)]
    lost = [(count.fn, reason) for count, reason in missed if count is not None and count.fn]
    table = np.fromiter(chain.from_iterable(counts), np.float64, 3 * len(counts)).reshape(-1, 3)
    filled = table[table.any(axis=1)]
    failures = Counter(reason for _, reason in lost)
    tp, fp, fn = filled.T
    return _Column(tp, fp, fn, reasons, len(table) - len(filled), sum(missing for missing, _ in lost), failures)


def _pooled(name: str, column: _Column) -> dict[str, MetricResult]:
    """F1, precision and recall of all samples together, as a run reduces counts; and the mean F1 of samples."""
    figures = POOLED_COUNTS.sums(column)
    results = {f"{name}_{sums.name or 'f1'}": _ratio(column, sums) for sums in figures}
    values = (figures[0].above / figures[0].below).tolist()
    macro = sum(values) / len(values) if values else None
    failed = column.failures.total()
    worst = sum(values) / (len(values) + failed) if values and failed else None
    results[f"{name}_f1_macro"] = _result(column, macro, figures[0].empty, average="macro", worst=worst)
    return results


def _f1(column: _Column) -> MetricResult:
    return _ratio(column, POOLED_COUNTS.sums(column)[0])


def _ratio(column: _Column, sums: Sums) -> MetricResult:
    part, whole = sums.above.sum().item(), sums.below.sum().item()
    lost = 0 if sums.name == "precision" else column.lost  # who finds nothing is never wrong
    return _result(
        column,
        part / whole if whole else None,
        sums.empty,
        counts=Counts(*(_whole(counts.sum().item()) for counts in column[:3])) if len(column.tp) else None,
        interval=_interval(sums),
        worst=part / (whole + lost) if column.failures and whole else None,
    )


def _whole(count: float) -> float:
    """Counts are whole numbers, unless they are weighted."""
    return int(count) if count.is_integer() else count


def _interval(sums: Sums) -> Interval | None:
    kept = sums.below > 0
    if kept.sum() < 2:
        return None
    sums = sums._replace(above=sums.above[kept], below=sums.below[kept])
    return ratio_interval(sums, np.arange(len(sums.below)), bounded=True)


def _share(family: _Family, count: Callable[[ScoredSample], RightOfAll], empty: str, missed: int = 0) -> MetricResult:
    """What was right of all that could be, over samples. `missed`: how much more could be in failed ones."""
    pairs = np.array([count(sample) for sample in family.measured], float).reshape(-1, 2)
    right, total = pairs[pairs[:, 1] > 0].T
    failures = Counter(family.failures if missed else ())
    column = _Column(right, right * 0, total - right, family.reasons, len(pairs) - len(right), missed, failures)
    part, whole = right.sum().item(), total.sum().item()
    return _result(
        column,
        part / whole if whole else None,
        empty,
        interval=_interval(Sums("", right, total)),
        worst=part / (whole + missed) if family.failed and whole else None,
    )


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
    """A figure; without a value, the commonest reason: nothing to measure, or why samples could not be measured."""
    measured, without = len(column.tp), column.reasons.total()
    reason = None
    if value is None:
        reasons = column.failures or column.reasons
        is_empty = (measured or column.empty) and not column.failures
        reason = empty if is_empty else reasons.most_common(1)[0][0] if reasons else NO_SAMPLES
    return MetricResult(
        value=value,
        average=average,
        reason=reason,
        coverage=measured / (measured + without) if measured + without else None,
        samples_measured=measured,
        samples_skipped=without + column.empty,
        samples_not_applicable=column.empty,
        skipped_reasons=dict(sorted(column.reasons.items())),
        interval=interval,
        worst_case=worst,
        **(counts._asdict() if counts else {}),
    )


def _segment_overlap(family: _Family) -> MetricResult:
    """Unmeasured where an annotator that finds risks never says where they are."""
    risks = [risk for sample in family.measured for risk in sample.predicted.risks or ()]
    if risks and not any(risk.place for risk in risks):
        return _share(family, lambda _: _NO_SHARE, NO_SEGMENTS)

    def overlap(sample: ScoredSample) -> RightOfAll:
        predicted, gold = sample.predicted.risks, sample.gold.risks
        return segment_overlap(predicted, gold) if predicted and gold else _NO_SHARE

    return _share(family, overlap, "no_located_risk_of_a_type_that_was_found")


def _assignees(sample: ScoredSample) -> RightOfAll:
    actions = sample.score.actions
    return assignees(sample.predicted, sample.gold, actions) if actions and actions.matches else _NO_SHARE


def _in_any_wording(sample: ScoredSample, threshold: float) -> RightOfAll:
    predicted, gold = sample.predicted.actions or (), sample.gold.actions or ()
    actions = sample.score.actions
    if actions is not None and not any(action.verbatim for action in (*predicted, *gold)):
        return RightOfAll(len(actions.matches), len(gold))
    matches = match_in_any_wording(wordings(sample.predicted), wordings(sample.gold), threshold)
    return RightOfAll(len(matches), len(gold))
