"""What several answers come to: the repeats of one judge, and the panel of several judges of one kind."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from math import fsum, sqrt
from statistics import median, stdev
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from convoscope.errors import UsageError, nearest_names
from convoscope.metrics.declaration import LOWER, RATIO, SHARE, Derived, Metric
from convoscope.scores.judges import PANEL, kind_of, model_of
from convoscope.scores.observation import (
    COMPUTED,
    MEASURED,
    NOT_APPLICABLE,
    UNMEASURED,
    Observation,
    measured,
    not_applicable,
    unmeasured,
)
from convoscope.views.items import Subject

Aggregation = Literal["mean", "median", "weighted_mean", "majority_vote", "consensus", "min", "max"]
AGGREGATIONS: tuple[Aggregation, ...] = get_args(Aggregation)
REPEATS_STRADDLE = "repeats_straddle"
NO_CONSENSUS = "no_consensus"
TOO_FEW_JUDGES = "too_few_judges"
_ROUNDING = 1e-9


class Marks(NamedTuple):
    """What values of a metric mean: the worst, the best, and the one from which on they pass, where one is known."""

    worst: float
    best: float
    passes_at: float | None

    def share(self, value: float) -> float:
        """How far a value is on the way from the worst to the best."""
        return (value - self.worst) / (self.best - self.worst)

    def passes(self, value: float) -> bool | None:
        if self.passes_at is None:
            return None
        return self.share(value) >= self.share(self.passes_at) - _ROUNDING

    def straddled_by(self, values: Sequence[float]) -> bool:
        """Whether some of the values pass and others do not."""
        return len({self.passes(value) for value in values}) > 1


def marks_of(declared: Metric | Derived | None, observations: Sequence[Observation]) -> Marks | None:
    """The marks of a metric: its ten points, else its scale with the mark of the rubric that its scores name.

    The scale is 0 to 1; of ratings in another unit, the one that its scores name.
    """
    if declared is None:
        return None
    ten = declared.ten
    if ten is not None and ten.of == "value" and ten.falls is None:
        return Marks(ten.zero, ten.ten, ten.zero + ten.passes_at / 10 * (ten.ten - ten.zero))
    named = next((details for one in observations if "passes_at" in (details := one.details or {})), {})
    scale = (0.0, 1.0) if declared.unit in (RATIO, SHARE) else named.get("value_scale") or named.get("scale")
    if not scale:
        return None
    low, high = scale
    return Marks(*((high, low) if declared.better == LOWER else (low, high)), named.get("passes_at"))


def joined_repeats(
    rounds: Sequence[Sequence[Observation]], declared: Metric | Derived | None = None
) -> Sequence[Observation]:
    """What one judge said each time it was asked, as one score for each subject: the mean, with the spread.

    A subject that some repeat gave no value for has none: its reason is that of the repeat. Where some repeats pass
    and others do not, it is undetermined: unmeasured, `repeats_straddle`.
    """
    if len(rounds) == 1:
        return rounds[0]
    by_subject: dict[tuple[str, Subject], list[Observation]] = {}
    for observations in rounds:
        for observation in observations:
            by_subject.setdefault((observation.judge, observation.subject), []).append(observation)
    return [_joined(repeats, len(rounds), declared) for repeats in by_subject.values()]


def _joined(repeats: Sequence[Observation], rounds: int, declared: Metric | Derived | None) -> Observation:
    values = [one.value for one in repeats if one.value is not None]
    lacking = next((one for one in repeats if one.status != MEASURED), None)
    if lacking is not None:
        return msgspec.structs.replace(lacking, details=_together(lacking, repeats)) if values else lacking
    # The repeat in the middle speaks: its words go with a rating that was really given.
    spokesman = sorted(repeats, key=lambda one: one.value or 0.0)[(len(repeats) - 1) // 2]
    if len(repeats) < rounds:
        return _undetermined(spokesman, repeats, "repeat_missing", f"{len(repeats)} of {rounds} repeats")
    marks = marks_of(declared, repeats)
    if marks is not None and marks.straddled_by(values):
        passed = sum(marks.passes(value) is True for value in values)
        return _undetermined(spokesman, repeats, REPEATS_STRADDLE, f"{passed} of {rounds} repeats pass")
    return msgspec.structs.replace(spokesman, value=fsum(values) / len(values), details=_together(spokesman, repeats))


def _undetermined(spokesman: Observation, repeats: Sequence[Observation], reason: str, detail: str) -> Observation:
    return Observation(
        subject=spokesman.subject,
        status=UNMEASURED,
        reason=reason,
        detail=detail,
        judge=spokesman.judge,
        details=_together(spokesman, repeats),
    )


_TAKEN = ("input_tokens", "output_tokens", "cost", "seconds")


def _together(spokesman: Observation, repeats: Sequence[Observation]) -> dict[str, Any]:
    """The details of one repeat, with the values of all, their spread, and what all of them took."""
    values = [one.value for one in repeats]
    known = [value for value in values if value is not None]
    details = {**(spokesman.details or {}), "repeats": values, "spread": max(known) - min(known)}
    for name in _TAKEN:
        taken = [(one.details or {}).get(name) for one in repeats]
        amounts = [amount for amount in taken if amount is not None]
        if amounts:
            details[name] = sum(amounts) if len(amounts) == len(taken) else None
    return details


class PanelRule(msgspec.Struct, frozen=True, kw_only=True):
    """How the judges of a panel come to one score."""

    aggregation: Aggregation = "median"
    weights: dict[str, float] = {}
    """Of `weighted_mean`, by the judge's `provider/model`."""
    require_consensus: float | None = None
    """From 0 to 1: where judges agree less than this, the panel has no score."""

    def __post_init__(self) -> None:
        if self.aggregation not in AGGREGATIONS:
            near = nearest_names(self.aggregation, AGGREGATIONS)
            hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(AGGREGATIONS)}"
            raise UsageError(f"no panel is called {self.aggregation!r}", hint=hint)
        if self.require_consensus is not None and not 0 <= self.require_consensus <= 1:
            raise UsageError(f"the consensus that is required is from 0 to 1, not {self.require_consensus:g}")
        wrong = next((name for name, weight in self.weights.items() if not 0 <= weight < float("inf")), None)
        if wrong is not None:
            raise UsageError(f"the weight of {wrong} is {self.weights[wrong]:g}", hint="a weight is 0 or more")

    def refuse(self, judges: int) -> str:
        """Why so many judges cannot be this panel; empty where they can."""
        least = 3 if self.aggregation == "majority_vote" else 2
        if judges < least:
            return f"{self.aggregation} needs {least} judges or more, not {judges}"
        is_tie = self.aggregation == "majority_vote" and judges % 2 == 0
        return f"{self.aggregation} needs an odd number of judges, not {judges}" if is_tie else ""


MEDIAN = PanelRule()


class PanelVerdict(NamedTuple):
    """What a panel comes to. Without a score there is a reason."""

    score: float | None
    consensus: float | None
    """From 0, as far apart as judges can be, to 1; None for one judge, or where the ends of the scale are unknown."""
    reason: str = ""
    detail: str = ""


def consensus_of(shares: Sequence[float]) -> float | None:
    """1 − the standard deviation of the judges ÷ the largest that so many judges can have; None for one judge.

    >>> consensus_of([1, 0])
    0.0
    >>> consensus_of([0.4]) is None
    True
    """
    count = len(shares)
    if count < 2:
        return None
    largest = sqrt(count / (4 * (count - 1))) if count % 2 == 0 else sqrt((count + 1) / (4 * count))
    return min(1.0, max(0.0, 1 - stdev(shares) / largest))


def panel_verdict(voices: Mapping[str, float], rule: PanelRule, marks: Marks | None) -> PanelVerdict:
    """One score of those of several judges, each by its name."""
    values = list(voices.values())
    shares = None if marks is None else [marks.share(value) for value in values]
    consensus = None if shares is None else consensus_of(shares)
    if refusal := rule.refuse(len(values)):
        return PanelVerdict(None, consensus, TOO_FEW_JUDGES, refusal)
    if rule.require_consensus is not None:
        if consensus is None:
            return PanelVerdict(None, None, NO_CONSENSUS, "the ends of the scale are unknown")
        if consensus < rule.require_consensus - _ROUNDING:
            detail = f"{consensus:.2f}, and {rule.require_consensus:g} is required"
            return PanelVerdict(None, consensus, NO_CONSENSUS, detail)
    if rule.aggregation in ("majority_vote", "consensus"):
        if marks is None or marks.passes_at is None:
            return PanelVerdict(None, consensus, "no_pass_mark", f"{rule.aggregation} needs one")
        return PanelVerdict(_voted(values, marks, rule.aggregation), consensus)
    return PanelVerdict(_combined(voices, rule), consensus)


def _voted(values: Sequence[float], marks: Marks, aggregation: Aggregation) -> float:
    passed = sum(marks.passes(value) is True for value in values)
    if aggregation == "majority_vote":
        return marks.best if passed > len(values) / 2 else marks.worst
    return min(values, key=marks.share) if passed == len(values) else marks.worst


def _combined(voices: Mapping[str, float], rule: PanelRule) -> float:
    values = list(voices.values())
    match rule.aggregation:
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "median":
            return median(values)
        case "weighted_mean":
            weights = [rule.weights.get(model_of(judge), 1.0) for judge in voices]
            if (whole := fsum(weights)) > 0:
                return fsum(weight * value for weight, value in zip(weights, values, strict=True)) / whole
    return fsum(values) / len(values)


def panel_name(judges: Sequence[str], rule: PanelRule = MEDIAN) -> str:
    """`panel:` and a hash of who sits on it, and of the rule where it is not the median."""
    kind = kind_of(judges[0])
    lines = sorted(judges)
    if rule != MEDIAN:
        lines.append(json.dumps(msgspec.to_builtins(rule), sort_keys=True))
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
    return f"{PANEL}{digest}" if kind == "model" else f"{PANEL}{kind}:{digest}"


def panels(
    observations: Sequence[Observation], declared: Metric | Derived | None = None, rule: PanelRule = MEDIAN
) -> list[Observation]:
    """The score of the panel of each kind of judges: people never sit with models. The rule is that of models."""
    scores: list[Observation] = []
    for kind in ("external", "human", "model"):
        those = [one for one in observations if kind_of(one.judge) in (kind, "computed")]
        scores += panel(those, declared, rule if kind == "model" else MEDIAN)
    return scores


def panel(
    observations: Sequence[Observation], declared: Metric | Derived | None = None, rule: PanelRule = MEDIAN
) -> list[Observation]:
    """The panel's score of each subject by judges of one kind; empty where fewer than two judges spoke.

    A judge that was asked several times speaks with the mean of its answers. Where a judge has no
    value for a subject, the panel has none either. What was not judged (a turn without an
    opportunity) makes no judge.
    """
    judges = sorted({one.judge for one in observations if one.judge != COMPUTED})
    if len(judges) < 2:
        return []
    name = panel_name(judges, rule)
    marks = marks_of(declared, observations)
    values_of: dict[Subject, dict[str, list[float]]] = {}
    passed: dict[Subject, str] = {}
    refused: set[Subject] = set()
    for observation in observations:
        voices = values_of.setdefault(observation.subject, {})
        if observation.status == MEASURED and observation.value is not None and observation.judge != COMPUTED:
            voices.setdefault(observation.judge, []).append(observation.value)
        elif observation.status == NOT_APPLICABLE:
            passed.setdefault(observation.subject, observation.reason)
        else:
            refused.add(observation.subject)
    scores: list[Observation] = []
    for subject, voices in values_of.items():
        silent = [judge for judge in judges if judge not in voices]
        if not voices and subject in passed and subject not in refused:
            scores.append(not_applicable(subject, passed[subject], judge=name))
        elif silent:
            scores.append(unmeasured(subject, "judge_missing", ", ".join(silent), judge=name))
        else:
            means = {judge: fsum(voices[judge]) / len(voices[judge]) for judge in judges}
            scores.append(_panel_score(subject, name, means, rule, marks))
    return scores


def _panel_score(
    subject: Subject, name: str, voices: Mapping[str, float], rule: PanelRule, marks: Marks | None
) -> Observation:
    verdict = panel_verdict(voices, rule, marks)
    values = list(voices.values())
    details: dict[str, Any] = {
        "judges": len(values),
        "spread": max(values) - min(values),
        "values": dict(voices),
        "aggregation": "mean" if rule.aggregation == "median" and len(values) == 2 else rule.aggregation,
    }
    if verdict.consensus is not None:
        details["consensus"] = verdict.consensus
    if marks is not None and marks.passes_at is not None:
        details |= {"passes_at": marks.passes_at, "split": marks.straddled_by(values)}
    if verdict.score is None:
        silent = unmeasured(subject, verdict.reason, verdict.detail, judge=name)
        return msgspec.structs.replace(silent, details=details)
    return measured(subject, verdict.score, judge=name, details=details)
