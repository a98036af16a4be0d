"""Gates over benchmark results: the targets of a mode, and no regression against a baseline."""

from __future__ import annotations

from decimal import Decimal

from convoscope.analysis.benchmark.result import BenchmarkGate, BenchmarkResult, GateCheck, MetricResult, gate_of
from convoscope.errors import UsageError
from convoscope.metrics.declaration import HIGHER, LOWER, Better, Target

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


def check_targets(result: BenchmarkResult) -> BenchmarkGate:
    """Whether a result reaches the targets of the mode that ran."""
    targets = TARGETS.get((result.track, result.mode), {})
    if not result.valid:
        return gate_of([], f"the result is marked invalid: {result.invalid_reason}")
    checks = [_reached(name, target, result.metrics.get(name)) for name, target in targets.items()]
    if not result.samples_skipped:
        return gate_of(checks)
    total = result.samples_evaluated + result.samples_failed + result.samples_skipped
    return gate_of(checks, f"{result.samples_skipped} of {total} samples have no usable gold labels")


def _reached(name: str, target: Target, figure: MetricResult | None) -> GateCheck:
    value = None if figure is None else figure.value
    if figure is None or value is None:
        why = "it is not in the result" if figure is None else figure.reason
        return GateCheck(name, "undetermined", None, target.value, f"unmeasured: {why}")
    if not target.is_met_by(value):
        return GateCheck(name, "failed", value, target.value, f"{value:.4f} is not {target.comparison} {target.value}")
    if figure.worst_case is not None and not target.is_met_by(figure.worst_case):
        words = f"samples failed: had they found nothing, it would be {figure.worst_case:.4f}"
        return GateCheck(name, "undetermined", value, target.value, words)
    return GateCheck(name, "passed", value, target.value, f"{value:.4f} {target.comparison} {target.value}")


def compare(current: BenchmarkResult, baseline: BenchmarkResult, threshold: float) -> BenchmarkGate:
    """Whether no figure of the baseline got worse by more than a share of it."""
    for name in ("track", "mode", "dataset", "split"):
        mine, theirs = getattr(current, name), getattr(baseline, name)
        if mine != theirs:
            hint = "a comparison needs the same track, mode, data set and split"
            raise UsageError(f"the {name} of the results differ: {mine} and {theirs}", hint=hint)
    if not current.valid or not baseline.valid:
        which = baseline if current.valid else current
        return gate_of([], f"{which.run_id} is marked invalid: {which.invalid_reason}")
    refusal = ""
    if current.receipt.gold_hash != baseline.receipt.gold_hash:
        refusal = "the gold labels of the two results differ: score both against the same gold"
    elif _scoring(current) != _scoring(baseline):
        refusal = "the settings of scoring or the vocabularies of the two results differ"
    names = [name for name, figure in baseline.metrics.items() if figure.value is not None]
    checks = [regression(name, current.metrics.get(name), baseline.metrics[name], threshold) for name in names]
    return gate_of(checks, refusal)


_WHO = ("model", "backend", "annotator", "makers")


def _scoring(result: BenchmarkResult) -> dict[str, object]:
    """The settings that decide what a number means; who predicted may differ."""
    return {key: value for key, value in result.receipt.config.items() if key not in _WHO}


def regression(name: str, current: MetricResult | None, baseline: MetricResult, threshold: float) -> GateCheck:
    """One figure against its baseline. A figure that was measured then, and is not now, is not passed."""
    better = better_of(name)
    value = None if current is None else current.value
    if current is None or value is None or baseline.value is None:
        return GateCheck(name, "undetermined", value, baseline.value, "unmeasured in one of the two")
    if better not in (current.better, baseline.better) or current.better != baseline.better:
        return GateCheck(name, "undetermined", value, baseline.value, "the results disagree on which way is better")
    worse = is_worse(value, baseline.value, threshold, better)
    if not worse and current.worst_case is not None and is_worse(current.worst_case, baseline.value, threshold, better):
        words = f"samples failed: had they found nothing, it would be {current.worst_case:.4f}"
        return GateCheck(name, "undetermined", value, baseline.value, words)
    if not worse and current.worst_case is None and (current.coverage or 0) < (baseline.coverage or 0):
        words = f"measured on {current.coverage or 0:.0%} of the samples, the baseline on {baseline.coverage:.0%}"
        return GateCheck(name, "undetermined", value, baseline.value, words)
    words = f"{value:.4f} against {baseline.value:.4f}, {better} is better"
    return GateCheck(name, "failed" if worse else "passed", value, baseline.value, words)


def is_worse(current: float, baseline: float, threshold: float, better: Better) -> bool:
    """Whether a figure lost more than a share of its baseline. Decimals as they are written: 0.72 is 10 % below 0.8."""
    now, before, share = Decimal(str(current)), Decimal(str(baseline)), Decimal(str(threshold))
    loss = before - now if better == HIGHER else now - before
    return loss > share * abs(before)
