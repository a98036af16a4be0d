"""Gates over benchmark results: the targets of a mode, and no regression against a baseline."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from convoscope.analysis.answer.comparison import interval_of, paired, redrawn
from convoscope.analysis.benchmark.result import POINTS, SUMMARY, BenchmarkResult, MetricResult
from convoscope.analysis.gate import (
    UNDETERMINED,
    Gate,
    GateCheck,
    GateFigure,
    Limit,
    NotWorse,
    SampleDifference,
    doubt_text,
    evaluate,
    gate_of,
)
from convoscope.errors import UsageError
from convoscope.judging.calibrations import NOT_CALIBRATED
from convoscope.metrics.declaration import HIGHER, LOWER, Better, Target
from convoscope.metrics.semantic.summaries import NO_REFERENCE
from convoscope.statistics.differences import FigureSample

ROUNDS = 20_000
"""Permutations of the samples of two results."""

TARGETS: dict[tuple[str, str], dict[str, Target]] = {
    ("semantic", "tags"): {
        "topic_f1": Target(">", 0.8),
        "risk_f1": Target(">", 0.75),
        "risk_f1_weighted": Target(">", 0.8),
        "action_accuracy": Target(">", 0.7),
    },
    ("semantic", "summary"): {
        "faithfulness": Target(">", 7.0),
        "coverage": Target(">", 7.0),
        "clarity": Target(">", 8.0),
    },
}
"""What counts as ready for production, by track and mode. To be at the target is not to be above it."""

_RATES = ("wer", "cer", "der", "jer", "substitution", "deletion", "insertion", "missed", "confusion", "alarm")
_LOWER = frozenset((*_RATES, "rtf", "mae", "latency", "error", "errors"))
"""Names of figures that have one of these words are better when they are lower."""


def better_of(metric: str) -> Better:
    """Which way a figure is better. What a file says of it does not matter."""
    return HIGHER if _LOWER.isdisjoint(metric.lower().split("_")) else LOWER


def check_targets(result: BenchmarkResult, *, trust_judge: bool = False) -> Gate:
    """Whether a result reaches the targets of the mode that ran.

    What a judge says that is not calibrated decides nothing, unless judges are trusted.
    """
    targets = TARGETS.get((result.track, result.mode), {})
    if not result.valid:
        return gate_of([], f"the result is marked invalid: {result.invalid_reason}")
    checks = [
        _judged(_reached(name, target, result.metrics.get(name)), result, trust_judge=trust_judge)
        for name, target in targets.items()
    ]
    if not result.samples_skipped or result.mode == SUMMARY:  # summaries need no gold labels
        return gate_of(checks)
    total = result.samples_evaluated + result.samples_failed + result.samples_skipped
    return gate_of(checks, f"{result.samples_skipped} of {total} samples have no usable gold labels")


def _reached(name: str, target: Target, figure: MetricResult | None) -> GateCheck:
    verdict = evaluate(_gate_figure(figure)._replace(caveat=_without_reference(figure)), Limit(target))
    value = None if figure is None else figure.value
    return GateCheck(name, verdict.outcome, value, target.value, verdict.reason)


def _judged(check: GateCheck, result: BenchmarkResult, *, trust_judge: bool) -> GateCheck:
    """The check, which a judge that is not calibrated decides only where judges are trusted."""
    doubt = judge_doubt(result, check.metric, trust_judge=trust_judge)
    if not doubt or check.outcome == UNDETERMINED:
        return check
    if trust_judge:
        return replace(check, reason=f"{check.reason}, but {doubt}")
    return replace(check, outcome=UNDETERMINED, reason=doubt)


def judge_doubt(result: BenchmarkResult, name: str, *, trust_judge: bool = False) -> str:
    """Why the judge behind a figure cannot decide it, or what trust overrides; empty where it can decide."""
    figure = result.metrics.get(name)
    if result.mode != SUMMARY or figure is None or figure.value is None or figure.is_calibrated:
        return ""
    own = ", and wrote the summaries itself" if result.judged_own_words else ""
    who = f"the judge {figure.judge}" if figure.judge else "the judge"
    return doubt_text(f"{who} is {figure.calibration or NOT_CALIBRATED}{own}", trust_judge)


def _gate_figure(figure: MetricResult | None) -> GateFigure:
    if figure is None or figure.value is None:
        return GateFigure(None, f"unmeasured: {'it is not in the result' if figure is None else figure.reason}")
    shown = GateFigure(figure.value, worst_case=figure.worst_case)
    return shown._replace(if_lost="had they 0 points") if figure.unit == POINTS else shown


def _without_reference(figure: MetricResult | None) -> str:
    """`2 of 7 samples have no reference summary`: why it cannot pass, though nothing failed. Else empty."""
    missing = 0 if figure is None else figure.skipped_reasons.get(NO_REFERENCE, 0)
    if figure is None or not missing:
        return ""
    total = figure.samples_measured + figure.samples_skipped
    return f"{missing} of {total} samples {'has' if missing == 1 else 'have'} no reference summary"


def compare(
    current: BenchmarkResult, baseline: BenchmarkResult, threshold: float, *, trust_judge: bool = False
) -> Gate:
    """Whether no figure of the baseline got worse by more than a share of it."""
    for name in ("track", "mode", "dataset", "split"):
        now, before = getattr(current, name), getattr(baseline, name)
        if now != before:
            hint = "a comparison needs the same track, mode, data set and split"
            raise UsageError(f"the {name} of the results differ: {now} and {before}", hint=hint)
    if not current.valid or not baseline.valid:
        which = baseline if current.valid else current
        return gate_of([], f"{which.run_id} is marked invalid: {which.invalid_reason}")
    refusal = ""
    if current.receipt.gold_hash != baseline.receipt.gold_hash:
        refusal = "the gold labels of the two results differ: score both against the same gold"
    elif _scoring(current) != _scoring(baseline):
        refusal = "the settings of scoring or the vocabularies of the two results differ"
    names = [name for name, figure in baseline.metrics.items() if figure.value is not None]
    checks = [
        replace(
            _judged(
                regression(name, current.metrics.get(name), baseline.metrics[name], threshold),
                current,
                trust_judge=trust_judge,
            ),
            by_sample=sample_difference(name, current, baseline),
        )
        for name in names
    ]
    return gate_of(checks, refusal)


def sample_difference(name: str, current: BenchmarkResult, baseline: BenchmarkResult) -> SampleDifference | None:
    """A figure in the samples that both results have, pair by pair; None where few have a value in both.

    It is the mean over samples, also where the figure itself is pooled over all of them.
    """
    sides = [
        {one.sample_id: value for one in result.sample_results if (value := getattr(one, name, None)) is not None}
        for result in (baseline, current)
    ]
    if not any(sides):
        return None
    index_of = {id: index for index, id in enumerate(sorted({*sides[0], *sides[1]}))}
    codes = np.concatenate([[index_of[id] for id in side] for side in sides]).astype(np.int64)
    values = np.concatenate([np.array(list(side.values()), dtype=np.float64) for side in sides])
    is_first = np.arange(len(values)) < len(sides[0])
    sample = FigureSample(values, np.ones(len(values)), bounded=True)
    compared = paired(sample, is_first, ~is_first, codes)
    if compared is None:
        return None
    interval = interval_of(compared, sample, is_first, ~is_first, codes)
    return SampleDifference(
        difference=compared.difference,
        low=interval.low,
        high=interval.high,
        n=compared.pairs,
        p=redrawn(compared, sample, is_first, ~is_first, codes, ROUNDS),
    )


_WHO = ("model", "backend", "annotator", "makers")


def _scoring(result: BenchmarkResult) -> dict[str, object]:
    """The settings that decide what a number means; who predicted may differ."""
    return {key: value for key, value in result.receipt.config.items() if key not in _WHO}


def regression(name: str, current: MetricResult | None, baseline: MetricResult, threshold: float) -> GateCheck:
    """One figure against its baseline. A figure that was measured then, and is not now, is not passed."""
    better = better_of(name)
    now, before = _gate_figure(current), _gate_figure(baseline)
    if current is not None and {current.better, baseline.better} != {better}:
        now = now._replace(doubt=now.doubt or "the results disagree on which way is better")
    elif current is not None and current.worst_case is None and (current.coverage or 0) < (baseline.coverage or 0):
        share, earlier = current.coverage or 0, baseline.coverage or 0
        now = now._replace(caveat=f"measured on {share:.0%} of the samples, the baseline on {earlier:.0%}")
    verdict = evaluate(now, NotWorse(before, threshold, better, is_share=True))
    return GateCheck(name, verdict.outcome, now.value, baseline.value, verdict.reason)
