"""The figures of the semantic benchmark: counts of samples, pooled, with intervals and with why there are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.analysis.benchmark.result import NO_SAMPLES, MetricResult
from convoscope.analysis.benchmark.sample_results import ScoredSample
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
from convoscope.scores.reducers import Sums
from convoscope.statistics.intervals import Interval, ratio_interval
from convoscope.vocabulary import semantic_vocabulary

Pick = Callable[[SampleScore], Counts | None]
Table = NDArray[np.float64]


class _Family(NamedTuple):
    """The samples of which a family is measured, and why the others are not."""

    measured: list[ScoredSample]
    reasons: Counter[str]
    failed: list[Labels]
    """Gold of samples whose annotation failed: what they would have missed."""
    failures: list[str]
    """Why each of them failed."""


def _family(samples: Sequence[ScoredSample], family: str) -> _Family:
    reasons: Counter[str] = Counter()
    measured: list[ScoredSample] = []
    failed: list[Labels] = []
    failures: list[str] = []
    for sample in samples:
        why = sample.score.reasons.get(family) if sample.score.reasons else None
        if why is None:
            measured.append(sample)
            continue
        reasons[why] += 1
        if family in sample.predicted.failed and getattr(sample.gold, family) is not None:
            failed.append(sample.gold)
            failures.append(why)
    return _Family(measured, reasons, failed, failures)


class _Column(NamedTuple):
    """What each sample says of a figure: counts, or the reason why there are none; and what failed samples missed."""

    counts: Table
    """A row for each measured sample: found rightly, found wrongly, missed."""
    reasons: Counter[str]
    lost: float
    """What failed samples would have missed."""
    empty: int
    """Samples with nothing to find, where nothing was."""
    failures: Counter[str]
    """Why samples failed in which there was something to find."""

    @property
    def failed(self) -> int:
        """How many there are."""
        return self.failures.total()


_SILENT = Labels((), (), ())


def _column(family: _Family, pick: Pick) -> _Column:
    picked = [pick(sample.score) for sample in family.measured]
    reasons = family.reasons
    if None in picked:
        reasons = reasons + Counter({NO_SEVERITY: picked.count(None)})
    table = _table([one for one in picked if one is not None])
    missed = [pick(score_sample(_SILENT, gold)) for gold in family.failed]
    filled = table.any(axis=1)
    lost = [(one.fn, why) for one, why in zip(missed, family.failures, strict=True) if one is not None and one.fn]
    failures = Counter(why for _, why in lost)
    return _Column(table[filled], reasons, sum(fn for fn, _ in lost), int(len(table) - filled.sum()), failures)


def _table(counts: Sequence[Counts]) -> Table:
    return np.fromiter(chain.from_iterable(counts), np.float64, 3 * len(counts)).reshape(-1, 3)


def semantic_metrics(samples: Sequence[ScoredSample], threshold: float) -> dict[str, MetricResult]:
    """Every figure of the mode `tags`."""
    topics, risks, actions = (_family(samples, one) for one in (TOPICS, RISKS, ACTIONS))
    of_topics = _column(topics, lambda score: score.topics)
    of_risks = _column(risks, lambda score: score.risks and score.risks.overall)
    metrics = {**_figures("topic", of_topics), **_figures("risk", of_risks)}
    for severity in semantic_vocabulary().weights:
        metrics[f"risk_f1_{severity}"] = _f1(_column(risks, partial(_of_severity, severity)))
    metrics["risk_f1_weighted"] = _f1(_column(risks, lambda score: score.risks and score.risks.weighted))
    metrics["risk_f1_weighted_type_only"] = _f1(
        _column(risks, lambda score: score.risks and score.risks.weighted_type_only)
    )
    located = _overlap if _gives_segments(risks.measured) else _without_segments
    empty = "no_located_risk_of_a_type_that_was_found" if located is _overlap else NO_SEGMENTS
    metrics["risk_segment_overlap"] = _share(risks, located, empty)
    of_actions = _figures("action", _column(actions, lambda score: score.actions and score.actions.counts))
    metrics["action_accuracy"] = of_actions.pop("action_recall")
    metrics |= of_actions
    in_any_wording = partial(_in_any_wording, threshold)
    metrics["action_accuracy_any"] = _share(actions, in_any_wording, "nothing_in_gold", lost=_gold_actions)
    metrics["assignee_accuracy"] = _share(actions, _assignees, "no_matched_action_with_a_role")
    return metrics


def _of_severity(severity: str, score: SampleScore) -> Counts | None:
    risks = score.risks
    return risks.by_severity[severity] if risks is not None and risks.weighted is not None else None


def _figures(name: str, column: _Column) -> dict[str, MetricResult]:
    tp, fp, fn = column.counts.T
    values = (2 * tp / (2 * tp + fp + fn)).tolist()
    macro = sum(values) / len(values) if values else None
    worst = sum(values) / (len(values) + column.failed) if values and column.failed else None
    return {
        f"{name}_f1": _f1(column),
        f"{name}_precision": _ratio(column, tp, tp + fp, "nothing_predicted", loses_nothing=True),
        f"{name}_recall": _ratio(column, tp, tp + fn, "nothing_in_gold"),
        f"{name}_f1_macro": _result(column, macro, "nothing_to_find", average="macro", worst=worst),
    }


def _f1(column: _Column) -> MetricResult:
    tp, fp, fn = column.counts.T
    return _ratio(column, 2 * tp, 2 * tp + fp + fn, "nothing_to_find")


def _ratio(column: _Column, above: Table, below: Table, empty: str, *, loses_nothing: bool = False) -> MetricResult:
    part, whole = above.sum().item(), below.sum().item()
    value = part / whole if whole else None
    worst = part / (whole + (0 if loses_nothing else column.lost)) if column.failed and whole else None
    total = Counts(*map(_whole, column.counts.sum(axis=0).tolist())) if len(column.counts) else None
    return _result(column, value, empty, counts=total, interval=_interval(above, below), worst=worst)


def _whole(count: float) -> float:
    """Counts are whole numbers, unless they are weighted."""
    return int(count) if count.is_integer() else count


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
        reasons = column.failures if column.failed else column.reasons
        is_empty = (measured or column.empty) and not column.failed
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
        tp=counts.tp if counts else None,
        fp=counts.fp if counts else None,
        fn=counts.fn if counts else None,
        interval=interval,
        worst_case=worst,
    )


def _interval(above: Table, below: Table) -> Interval | None:
    kept = below > 0
    if kept.sum() < 2:
        return None
    sums = Sums("", above[kept], below[kept])
    return ratio_interval(sums, np.arange(int(kept.sum())), bounded=True)


def _share(
    family: _Family,
    count: Callable[[ScoredSample], RightOfAll],
    empty: str,
    lost: Callable[[Labels], int] | None = None,
) -> MetricResult:
    """A share of what was right of all that could be, over samples. `lost`: how much more could be in a failed one."""
    counted = [count(sample) for sample in family.measured]
    pairs = np.fromiter(chain.from_iterable(counted), np.float64, 2 * len(counted)).reshape(-1, 2)
    right, total = pairs[pairs[:, 1] > 0].T
    whole = total.sum().item()
    value = right.sum().item() / whole if whole else None
    table = np.stack([right, np.zeros_like(right), total - right], axis=1)
    missed = sum(map(lost, family.failed)) if lost else 0
    worst = right.sum().item() / (whole + missed) if family.failed and whole else None
    column = _Column(table, family.reasons, missed, len(pairs) - len(table), Counter(family.failures if missed else ()))
    return _result(column, value, empty, interval=_interval(right, total), worst=worst)


_NOTHING = RightOfAll(0, 0)


def _overlap(sample: ScoredSample) -> RightOfAll:
    mine, theirs = sample.predicted.risks, sample.gold.risks
    return segment_overlap(mine, theirs) if mine and theirs else _NOTHING


NO_SEGMENTS = "annotator_provides_no_segments"


def _gives_segments(samples: Sequence[ScoredSample]) -> bool:
    """Whether an annotator says where a risk is: no risk that it found does otherwise."""
    found_risks = [risk for sample in samples for risk in sample.predicted.risks or ()]
    return not found_risks or any(risk.place for risk in found_risks)


def _without_segments(sample: ScoredSample) -> RightOfAll:
    del sample
    return _NOTHING


def _assignees(sample: ScoredSample) -> RightOfAll:
    actions = sample.score.actions
    return assignees(sample.predicted, sample.gold, actions) if actions and actions.matches else _NOTHING


def _in_any_wording(threshold: float, sample: ScoredSample) -> RightOfAll:
    mine, theirs = sample.predicted.actions or (), sample.gold.actions or ()
    actions = sample.score.actions
    if actions is not None and not any(one.verbatim for one in (*mine, *theirs)):
        return RightOfAll(len(actions.matches), len(theirs))
    return RightOfAll(
        len(match_in_any_wording(wordings(sample.predicted), wordings(sample.gold), threshold)), len(theirs)
    )


def _gold_actions(gold: Labels) -> int:
    return len(gold.actions or ())
