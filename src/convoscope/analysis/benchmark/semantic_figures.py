"""The figures of the semantic benchmark: what samples count, reduced as the metrics of a run are, with intervals,
worst cases, and the reasons why a figure is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from convoscope.analysis.benchmark.result import Lost, MetricResult, Tally, ratio_result
from convoscope.conversation.annotations import FAMILIES
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
from convoscope.scores.reducers import MEAN_OF_CONVERSATIONS, POOLED_COUNTS, Sums
from convoscope.vocabulary import semantic_vocabulary

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


def semantic_metrics(
    samples: Sequence[ScoredSample], threshold: float, skipped: Counter[str]
) -> dict[str, MetricResult]:
    """Every figure of the mode `tags`. `skipped`: why other samples have no gold."""
    topics, risks, actions = (_Family(samples, family, skipped) for family in FAMILIES)

    def of_severity(severity: str, score: SampleScore) -> Counts | None:
        return score.risks and score.risks.weighted and score.risks.by_severity[severity]

    def assignees_of(sample: ScoredSample) -> RightOfAll:
        matched = sample.score.actions
        return assignees(sample.predicted, sample.gold, matched) if matched and matched.matches else _NO_SHARE

    topic = topics.pooled(lambda score: score.topics)
    risk = risks.pooled(lambda score: score.risks and score.risks.overall)
    action = actions.pooled(lambda score: score.actions and score.actions.counts)
    by_type = risks.pooled(lambda score: score.risks and score.risks.weighted_type_only)
    missed = sum(len(gold.actions or ()) for gold, _ in actions.failed)
    return {
        **{f"topic_{name}": figure for name, figure in topic.items()},
        **{f"risk_{name}": figure for name, figure in risk.items()},
        **{
            f"risk_{name}_{severity}": figure
            for severity in semantic_vocabulary().weights
            for name, figure in risks.pooled(partial(of_severity, severity)).items()
            if name != "f1_macro"
        },
        "risk_f1_weighted": risks.pooled(lambda score: score.risks and score.risks.weighted)["f1"],
        "risk_f1_weighted_type_only": by_type["f1"],
        "risk_segment_overlap": _segment_overlap(risks),
        "action_accuracy": action.pop("recall"),
        **{f"action_{name}": figure for name, figure in action.items()},
        "action_accuracy_any": actions.share(partial(_in_any_wording, threshold), "nothing_in_gold", missed),
        "assignee_accuracy": actions.share(assignees_of, "no_matched_action_with_a_role"),
    }


class _Family:
    """The samples of which a family is measured, and why the others are not."""

    def __init__(self, samples: Sequence[ScoredSample], family: str, skipped: Counter[str]) -> None:
        self.measured: list[ScoredSample] = []
        self.reasons: Counter[str] = Counter()
        self.skipped = skipped
        self.failed: list[tuple[Labels, str]] = []
        """Gold of samples whose annotation failed, which is what they would have missed, and why it failed."""
        for sample in samples:
            reason = sample.score.reasons.get(family) if sample.score.reasons else None
            if reason is None:
                self.measured.append(sample)
                continue
            self.reasons[reason] += 1
            if family in sample.predicted.failed and getattr(sample.gold, family) is not None:
                self.failed.append((sample.gold, reason))

    def pooled(self, pick: Callable[[SampleScore], Counts | None]) -> dict[str, MetricResult]:
        """F1, precision and recall of all samples together, as a run reduces counts; and the mean F1 of samples."""
        picked = [pick(sample.score) for sample in self.measured]
        counts = [count for count in picked if count is not None]
        table = np.fromiter(chain.from_iterable(counts), np.float64, 3 * len(counts)).reshape(-1, 3)
        filled = table[table.any(axis=1)]
        missed = [(pick(score_sample(_NOTHING_FOUND, gold)), reason) for gold, reason in self.failed]
        lost = [(count.fn, reason) for count, reason in missed if count is not None and count.fn]
        tally = Tally(
            self.reasons + Counter({NO_SEVERITY: picked.count(None)}),
            self.skipped,
            Counter(reason for _, reason in lost),
            len(table) - len(filled),
        )
        # Counts are whole numbers, unless they are weighted.
        sums = [int(count) if count.is_integer() else count for count in filled.sum(axis=0).tolist()]
        fields = Counts(*sums)._asdict() if len(filled) else {}
        figures = POOLED_COUNTS.sums(Counts(*filled.T))
        results: dict[str, MetricResult] = {}
        for figure in figures:
            missing = (
                0 if figure.name == "precision" else sum(count for count, _ in lost)
            )  # finding nothing is no error
            results[figure.name or "f1"] = ratio_result(
                figure, len(filled), tally, lost=Lost(0, missing) if lost else None, **fields
            )
        (means,) = MEAN_OF_CONVERSATIONS.sums(SimpleNamespace(value=figures[0].above / figures[0].below))
        results["f1_macro"] = ratio_result(
            means._replace(empty=figures[0].empty),
            len(filled),
            tally,
            lost=Lost(0, len(lost)) if lost else None,
            average="macro",
        )
        return results

    def share(self, count: Callable[[ScoredSample], RightOfAll], empty: str, missed: int = 0) -> MetricResult:
        """What was right of all that could be, over samples. `missed`: how much more could be in failed ones."""
        pairs = np.array([count(sample) for sample in self.measured], float).reshape(-1, 2)
        right, total = pairs[pairs[:, 1] > 0].T
        failures = Counter(reason for _, reason in self.failed) if missed else Counter[str]()
        tally = Tally(self.reasons, self.skipped, failures, len(pairs) - len(right))
        lost = Lost(0, missed) if self.failed else None
        return ratio_result(Sums("", right, total, empty), len(right), tally, lost=lost)


def _segment_overlap(family: _Family) -> MetricResult:
    """Unmeasured where an annotator that finds risks never says where they are."""
    risks = [risk for sample in family.measured for risk in sample.predicted.risks or ()]
    if risks and not any(risk.segment for risk in risks):
        return family.share(lambda _: _NO_SHARE, NO_SEGMENTS)

    def overlap(sample: ScoredSample) -> RightOfAll:
        predicted, gold = sample.predicted.risks, sample.gold.risks
        return segment_overlap(predicted, gold) if predicted and gold else _NO_SHARE

    return family.share(overlap, "no_located_risk_of_a_type_that_was_found")


def _in_any_wording(threshold: float, sample: ScoredSample) -> RightOfAll:
    predicted, gold = sample.predicted.actions or (), sample.gold.actions or ()
    actions = sample.score.actions
    if actions is not None and not any(action.verbatim for action in (*predicted, *gold)):
        return RightOfAll(len(actions.matches), len(gold))
    matches = match_in_any_wording(wordings(sample.predicted), wordings(sample.gold), threshold)
    return RightOfAll(len(matches), len(gold))
