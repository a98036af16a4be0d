"""What each sample of the semantic benchmark came to, for whoever looks into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from convoscope.conversation.annotations import FAMILIES
from convoscope.metrics.semantic.samples import Labels, PlainRisk, SampleScore, precision, recall, topic_set


class ScoredSample(NamedTuple):
    """A sample that has gold: what was predicted and what came of it; no prediction where it failed."""

    id: str
    gold: Labels
    predicted: Labels
    score: SampleScore
    failed: str = ""


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


def skipped_result(sample_id: str, reason: str) -> SampleResult:
    """A sample with nothing to be held against: it has no figure, and the reason."""
    return SampleResult(sample_id=sample_id, skipped=reason, reasons=dict.fromkeys(FAMILIES, reason))


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
        predicted_topics=_listed(predicted.topics),
        gold_topics=_listed(gold.topics),
        risk_matches=_risk_matches(predicted.risks or (), gold.risks or ()),
        action_matches=_action_matches(sample),
    )


def _listed(topics: tuple[str, ...] | None) -> list[str] | None:
    return None if topics is None else sorted(topic_set(topics))


def _risk_matches(predicted: Sequence[PlainRisk], gold: Sequence[PlainRisk]) -> list[RiskMatch]:
    """Risks side by side: first those that agree in severity, then those that agree in type, then the rest."""
    mine, theirs = [*dict.fromkeys(predicted)], [*dict.fromkeys(gold)]
    rows: list[RiskMatch] = []
    for parts in (2, 1):
        for risk in list(mine) if theirs else ():
            other = next((other for other in theirs if risk[:parts] == other[:parts]), None)
            if other is not None:
                mine.remove(risk)
                theirs.remove(other)
                rows.append(RiskMatch(_risk_text(risk), _risk_text(other), True))
    rows += [RiskMatch(_risk_text(one), None, False) for one in mine]
    rows += [RiskMatch(None, _risk_text(one), False) for one in theirs]
    return rows


def _risk_text(risk: PlainRisk) -> str:
    return f"{risk.type}:{risk.severity}" if risk.severity else risk.type


def _action_matches(sample: ScoredSample) -> list[ActionMatch]:
    mine, theirs = sample.predicted.actions or (), sample.gold.actions or ()
    matches = sample.score.actions.matches if sample.score.actions else ()
    rows = [
        ActionMatch(mine[row].description, theirs[column].description, round(similarity, 4))
        for row, column, similarity in matches
    ]
    taken_mine, taken_theirs = {one[0] for one in matches}, {one[1] for one in matches}
    rows += [ActionMatch(one.description, None, None) for place, one in enumerate(mine) if place not in taken_mine]
    rows += [ActionMatch(None, one.description, None) for place, one in enumerate(theirs) if place not in taken_theirs]
    return rows
