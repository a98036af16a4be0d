"""What a run says, as `summary.json` holds it. The same input gives the same bytes, whichever process computed it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec

from convoscope.judging.calibrations import Agreement
from convoscope.judging.rubrics import Rubric, own_rubric
from convoscope.metrics.declaration import LOWER, Better, Derived, Metric, Target, TenPoints
from convoscope.metrics.registry import Declared
from convoscope.runs.judging import JudgingSummary
from convoscope.scores.observation import COMPUTED, Status
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS
from convoscope.statistics.summary import Figure, whole_reasons

SCHEMA = "convoscope.summary/2"
DERIVED = "(derived)"
"""Stands for a judge in figures that are derived over a group."""


class LabelCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The label of a run, and how many conversations it passes and fails."""

    label: str
    """As it was given: `reward`, or `csat >= 4`."""
    conversations: int
    """Those that have it."""
    passed: int
    failed: int


class OutcomeCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many conversations are lost, done, and so on; together all of them."""

    lost: int = 0
    handed_over: int = 0
    """Put through to a person, and neither label nor log nor flow says whether that is a loss."""
    unknown: int = 0
    done: int = 0
    no_user_speech: int = 0
    """The user never said a word. These and the next two are in no average."""
    voicemail: int = 0
    ivr: int = 0


class NotMeasured(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Metrics of which no conversation has a value, all for the same reasons: one entry for all of them.

    A judge or panel that gave no value has entries of its own, also where other judges of the metric gave some.
    """

    metrics: list[str]
    judge: str = ""
    """Where judges speak: the one without a value."""
    status: Status
    reason: str
    """The commonest among those of the gravest status."""
    detail: str = ""
    samples_total: int
    samples_not_applicable: int = 0
    skipped_reasons: dict[str, int] = {}


class Group(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The figures of the conversations that share these dimensions."""

    by: dict[str, str]
    conversations: int
    metrics: list[Figure]
    not_measured: list[NotMeasured] = []
    """Of the metrics that have a value elsewhere in the run."""


class SmallGroups(msgspec.Struct, frozen=True, kw_only=True):
    """Groups of so few conversations that they have no figures of their own; `--by` makes them whole."""

    by: list[str]
    minimum: int
    groups: int
    conversations: int


class ReducedBy(msgspec.Struct, frozen=True, omit_defaults=True):
    """The names of the two steps from subjects to a group figure."""

    within: str = MEAN.name
    across: str = MEAN_OF_CONVERSATIONS.name


class OwnQuestion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The question of a scorer of the user's own, and its scale of whole numbers."""

    text: str
    low: int
    high: int
    passes_at: float
    is_raw: bool = True
    """The value of a score is the rating itself."""


class DeclaredMetric(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A declaration as data."""

    metric: str
    family: str
    version: int
    question: str
    unit: str
    better: Better
    observes: str
    reduce: ReducedBy = ReducedBy()
    also: dict[str, str] = {}
    """Further steps from conversations to a group, by the name that they print under."""
    needs: list[str] = []
    inputs: list[str] = []
    """Of a derived figure: the metrics that it is computed from."""
    target: Target | None = None
    ten_points: TenPoints | None = None
    aspect: str = ""
    component: str = ""
    label: str = ""
    """In a few plain words."""
    importance: int = 2
    languages: list[str] = []
    """The languages whose words it reads; none where it reads no words, or any language's."""
    asks: OwnQuestion | None = None
    """Of a scorer of the user's own that a judge answers: what people are asked who label it."""

    @property
    def own_rubric(self) -> Rubric | None:
        """What a scorer of the user's own asks; None of any other metric."""
        if self.asks is None:
            return None
        return own_rubric(
            self.metric,
            (self.asks.low, self.asks.high),
            self.asks.passes_at,
            version=self.version,
            text=self.asks.text,
            is_raw=self.asks.is_raw,
            is_lower_better=self.better == LOWER,
        )

    @property
    def name(self) -> str:
        return self.metric.partition("@")[0]

    @property
    def variant(self) -> str:
        return self.metric.partition("@")[2]


class Summary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """The figures of a run, over all conversations and over each group, and what has none."""

    schema: str
    config_hash: str
    input_hash: str
    conversations: int
    outcomes: OutcomeCounts = OutcomeCounts()
    """What came of the conversations: by the label, else as the log says, else by the end of the flow."""
    label: LabelCounts | None = None
    """The user's own verdict, where a field was named as the label."""
    clusters: str = ""
    """What is independent where it is not the conversation: `scenario`, `user`, or `scenario or user`."""
    metrics: list[Figure]
    not_measured: list[NotMeasured] = []
    judging: JudgingSummary | None = None
    """How far judges agree, where the run asked any."""
    groups: list[Group] = []
    small_groups: list[SmallGroups] = []
    declared: list[DeclaredMetric]
    calibrations: list[Agreement] = []
    """How far the judges of the run agree with people, as far as that is known."""

    @cached_property
    def by_key(self) -> dict[str, DeclaredMetric]:
        """The declarations by the names of their metrics."""
        return {one.metric: one for one in self.declared}

    @cached_property
    def figures(self) -> list[Figure]:
        """All figures in the order of the metrics, with one that has no value for each metric or judge without any."""
        by_metric: dict[str, list[Figure]] = {one.metric: [] for one in self.declared}
        for figure in (*self.metrics, *self._without_value()):
            by_metric[figure.key].append(figure)
        return [figure for figures in by_metric.values() for figure in figures]

    @cached_property
    def whole_metrics(self) -> dict[str, NotMeasured | None]:
        """The metrics, without variants and parts, each with the reason why it has no value; None where it has one."""
        entries = {key: entry for entry in reversed(self.not_measured) for key in entry.metrics}
        absent = {key: entries[key] for key in self.by_key if key in entries}
        return whole_reasons(self.by_key, {figure.metric for figure in self.metrics}, absent)

    @property
    def is_whole(self) -> bool:
        """Whether each figure is of a metric that is declared. Raises ValueError where one cannot be."""
        named = {figure.key for figures in (self.metrics, *(one.metrics for one in self.groups)) for figure in figures}
        absent = [*self.not_measured, *(entry for group in self.groups for entry in group.not_measured)]
        named |= {key for entry in absent for key in entry.metrics}
        return named <= self.by_key.keys() and len(self.figures) >= len(self.metrics)

    def by_subject(self, names: Sequence[str]) -> list[tuple[dict[str, str], list[Figure]]] | None:
        """The groups by these dimensions and subjects, each with all its figures; None where some were left out."""
        if any(one.by == list(names) for one in self.small_groups):
            return None
        return [
            (
                group.by,
                [
                    *group.metrics,
                    *(empty_figure(self.by_key[key], one) for one in group.not_measured for key in one.metrics),
                ],
            )
            for group in self.groups
            if list(group.by) == list(names)
        ]

    def _without_value(self) -> Iterator[Figure]:
        for entry in self.not_measured:
            for key in entry.metrics:
                yield empty_figure(self.by_key[key], entry)


def empty_figure(declared: DeclaredMetric, entry: NotMeasured) -> Figure:
    """The headline of a metric that has no value."""
    applicable = entry.samples_total - entry.samples_not_applicable
    return Figure(
        metric=declared.name,
        variant=declared.variant,
        judge=entry.judge or (DERIVED if declared.observes == "group" else COMPUTED),
        unit=declared.unit,
        better=declared.better,
        status=entry.status,
        value=None,
        reason=entry.reason,
        detail=entry.detail,
        coverage=0.0 if applicable else None,
        samples_total=entry.samples_total,
        samples_measured=0,
        samples_skipped=entry.samples_total,
        samples_not_applicable=entry.samples_not_applicable,
        skipped_reasons=entry.skipped_reasons,
        n=0,
    )


def not_measured(figures: list[Figure]) -> list[NotMeasured]:
    """The figures without a single sample, gathered by why that is so."""
    entries: dict[tuple[Any, ...], NotMeasured] = {}
    for figure in figures:
        if figure.reduction:
            continue  # its headline speaks for it
        judge = "" if figure.judge in (COMPUTED, DERIVED) else figure.judge
        fields = (figure.status, figure.reason, figure.detail, figure.samples_total, figure.samples_not_applicable)
        key = (judge, *fields, *figure.skipped_reasons.items())
        entry = entries.get(key)
        if entry is None:
            status, reason, detail, total, inapplicable = fields
            entries[key] = NotMeasured(
                metrics=[figure.key],
                judge=judge,
                status=status,
                reason=reason,
                detail=detail,
                samples_total=total,
                samples_not_applicable=inapplicable,
                skipped_reasons=figure.skipped_reasons,
            )
        elif figure.key not in entry.metrics:
            entry.metrics.append(figure.key)
    return list(entries.values())


def describe(declared: Declared) -> DeclaredMetric:
    """A declaration as data."""
    return DeclaredMetric(
        metric=declared.key,
        family=declared.family,
        version=declared.version,
        question=declared.question,
        unit=declared.unit,
        better=declared.better,
        observes=declared.observes if isinstance(declared, Metric) else declared.over,
        reduce=ReducedBy(declared.reduce.within.name, declared.reduce.across.name),
        also={name: one.name for name, one in declared.also.items()} if isinstance(declared, Metric) else {},
        needs=[need.code for need in declared.needs] if isinstance(declared, Metric) else [],
        inputs=list(declared.inputs) if isinstance(declared, Derived) else [],
        target=declared.target,
        ten_points=declared.ten,
        aspect=declared.aspect,
        component=declared.component,
        label=declared.label,
        importance=declared.importance,
        languages=list(declared.languages),
        asks=_own_question(declared),
    )


_MOST_RATINGS = 100


def _own_question(declared: Declared) -> OwnQuestion | None:
    """None where people could not label it: the scale has no whole numbers, or too many."""
    rubric = declared.rubric if isinstance(declared, Metric) else None
    if rubric is None or rubric.low % 1 or rubric.high % 1 or rubric.high - rubric.low > _MOST_RATINGS:
        return None
    low, high = int(rubric.low), int(rubric.high)
    return OwnQuestion(text=rubric.text, low=low, high=high, passes_at=rubric.passes_at, is_raw=rubric.is_raw)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of `summary.json`, generated from the types above."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{SCHEMA}.json",
        "title": "Convoscope summary, version 2",
        **msgspec.json.schema(Summary),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")
