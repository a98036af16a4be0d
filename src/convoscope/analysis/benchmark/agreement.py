"""How far two labellings of one data set agree: Cohen's κ for each label, and what one scores against the other.

Two labellers who follow the same guide agree so far: above their figures, annotators show no clear difference. So a
benchmark prints them as a ceiling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from convoscope.analysis.benchmark.datasets import BenchmarkDataset
from convoscope.analysis.benchmark.labels import gold_labels
from convoscope.ingest.companions.gold_files import ENDING, check_file
from convoscope.metrics.semantic.matching import THRESHOLD
from convoscope.metrics.semantic.samples import Labels, SampleScore, score_sample, sum_of, topic_set
from convoscope.scores.observation import Counts
from convoscope.vocabulary import semantic_vocabulary

NEVER_USED = "neither_labelling_uses_it"
ALWAYS_USED = "both_labellings_use_it_everywhere"
NO_SAMPLES = "no_sample_is_labelled_twice"
NOTHING_TO_FIND = "nothing_to_find"


class Kappa(msgspec.Struct, frozen=True, kw_only=True):
    """Cohen's κ of one label over samples, or the reason why it is missing, and the four counts behind it."""

    value: float | None
    reason: str | None = None
    both: int
    first_only: int
    second_only: int
    neither: int


class FamilyAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """What the second labelling scores against the first. F1 is the same the other way round."""

    f1: float | None
    reason: str | None = None
    tp: float
    fp: float
    fn: float
    samples: int


class LabelAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """Two labellings of the same samples, held against each other."""

    second: str
    """The name of the second labelling's folder."""
    samples: int
    """Labelled by both."""
    samples_once: int = 0
    """Of those asked for, without usable labels of both."""
    topics: dict[str, Kappa]
    risks: dict[str, Kappa]
    ceilings: dict[str, FamilyAgreement]
    """By the name of the benchmark's figure."""


def kappa(pairs: Iterable[tuple[bool, bool]]) -> Kappa:
    """Cohen's κ: (observed − expected) ÷ (1 − expected) agreement on whether a label holds.

    Where neither labelling ever uses the label, or both always do, agreement shows nothing: no value.
    """
    both = first = second = neither = 0
    for in_first, in_second in pairs:
        both += in_first and in_second
        first += in_first and not in_second
        second += in_second and not in_first
        neither += not in_first and not in_second
    total = both + first + second + neither
    expected = (both + first) * (both + second) + (neither + first) * (neither + second)
    value = reason = None
    if not total:
        reason = NO_SAMPLES
    elif expected == total * total:
        reason = ALWAYS_USED if both else NEVER_USED
    else:
        value = (total * (both + neither) - expected) / (total * total - expected)
    return Kappa(value=value, reason=reason, both=both, first_only=first, second_only=second, neither=neither)


def agreement(
    dataset: BenchmarkDataset, samples: Sequence[str], threshold: float | None = None
) -> LabelAgreement | None:
    """The agreement on these samples; None where the data set was labelled once."""
    folder = dataset.second_labelling
    if folder is None:
        return None
    pairs: list[tuple[Labels, Labels]] = []
    for sample in samples:
        first, second = (check_file(path).gold for path in (dataset.reference(sample), folder / (sample + ENDING)))
        if first is not None and second is not None:
            pairs.append((gold_labels(first), gold_labels(second)))
    return label_agreement(pairs, folder.name, len(samples) - len(pairs), threshold)


def label_agreement(
    pairs: Sequence[tuple[Labels, Labels]], second: str, once: int = 0, threshold: float | None = None
) -> LabelAgreement:
    """The agreement of labels side by side. A family that either did not label is left out of its figures."""
    vocabulary = semantic_vocabulary()
    topics = [
        (topic_set(left.topics), topic_set(right.topics))
        for left, right in pairs
        if left.topics is not None and right.topics is not None
    ]
    risks = [
        ({risk.type for risk in left.risks}, {risk.type for risk in right.risks})
        for left, right in pairs
        if left.risks is not None and right.risks is not None
    ]
    scores = [score_sample(right, left, THRESHOLD if threshold is None else threshold) for left, right in pairs]
    return LabelAgreement(
        second=second,
        samples=len(pairs),
        samples_once=once,
        topics={label: _of_label(label, topics) for label in sorted(vocabulary.labels)},
        risks={type: _of_label(type, risks) for type in vocabulary.risks},
        ceilings={name: _ceiling(scores, pick) for name, pick in _CEILINGS.items()},
    )


def _of_label(label: str, sides: Iterable[tuple[set[str], set[str]]]) -> Kappa:
    return kappa((label in left, label in right) for left, right in sides)


_CEILINGS: dict[str, Callable[[SampleScore], Counts | None]] = {
    "topic_f1": lambda score: score.topics,
    "risk_f1": lambda score: score.risks and score.risks.overall,
    "risk_f1_weighted": lambda score: score.risks and score.risks.weighted,
    "action_f1": lambda score: score.actions and score.actions.counts,
}


def _ceiling(scores: Iterable[SampleScore], pick: Callable[[SampleScore], Counts | None]) -> FamilyAgreement:
    counts = [counted for score in scores if (counted := pick(score)) is not None]
    total = sum_of(counts)
    reason = NO_SAMPLES if not counts else NOTHING_TO_FIND if total.f1 is None else None
    return FamilyAgreement(f1=total.f1, reason=reason, tp=total.tp, fp=total.fp, fn=total.fn, samples=len(counts))
