"""Both steps of reduction by hand: observations of conversations in, figures of the group out, no files between."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from convoscope.metrics import (
    CONVERSATION,
    HIGHER,
    Metric,
    Observation,
    Reduce,
    Subject,
    counted,
    measured,
    metric,
    ratio,
)
from convoscope.scores.reducers import ACROSS, WITHIN, Percentile
from convoscope.statistics.intervals import Columns
from convoscope.statistics.summary import STATUSES, Figure, Subjects, Table, figures
from convoscope.statistics.within import ConversationScore, reduce_conversation


def reduced_by(
    within: str, across: str | Percentile = "mean_of_conversations", unit: str = "x", **facts: Any
) -> Metric:
    """A metric that is reduced in this way; what it measures is given by the test."""
    facts = {"version": 1, "observes": CONVERSATION, "better": HIGHER} | facts

    @metric(
        "test.metric",
        unit=unit,
        reduce=Reduce(WITHIN[within], ACROSS[across] if isinstance(across, str) else across),
        **facts,
    )
    def nothing(conversation: object) -> tuple[Observation, ...]:
        """What the test says."""
        return ()

    return nothing


def turn(number: int) -> Subject:
    return Subject("turn", str(number), number)


def values(*numbers: float) -> list[Observation]:
    """A conversation whose turns have these values."""
    return [measured(turn(number), value) for number, value in enumerate(numbers, start=1)]


def ratios(*pairs: tuple[float, float]) -> list[Observation]:
    """A conversation whose turns have these numerators and denominators."""
    return [ratio(turn(number), *pair, empty="no_chance") for number, pair in enumerate(pairs, start=1)]


def counts(*triples: tuple[float, float, float]) -> list[Observation]:
    """A conversation whose turns have these tp, fp, fn."""
    return [counted(turn(number), tp=tp, fp=fp, fn=fn) for number, (tp, fp, fn) in enumerate(triples, start=1)]


def within(reducer: str, observations: Sequence[Observation], **facts: Any) -> ConversationScore:
    """The first step alone, of a metric with one judge."""
    (score,) = reduce_conversation(reduced_by(reducer, **facts), observations)
    return score


def group(declared: Metric, *conversations: Sequence[Observation], scenarios: Iterable[int] | None = None) -> Table:
    """The conversations of a group, each given by its observations; each a cluster unless scenarios are given."""
    scores = [reduce_conversation(declared, observations)[0] for observations in conversations]
    reasons = sorted({score.reason for score in scores if score.reason})
    pooled = [
        (one.value, row)
        for row, observations in enumerate(conversations)
        for one in observations
        if one.value is not None
    ]
    return Table(
        status=np.array([STATUSES.index(score.status) for score in scores], dtype=np.int8),
        reason=np.array([reasons.index(one.reason) if one.reason else -1 for one in scores], dtype=np.int32),
        reasons=reasons,
        columns=Columns(
            *(np.array([getattr(score, name) or 0.0 for score in scores], dtype=float) for name in Columns._fields)
        ),
        skipped=np.array([one.not_applicable + one.unmeasured + one.errors for one in scores], dtype=float),
        missing=np.array([one.unmeasured + one.errors for one in scores], dtype=float),
        clusters=np.array(list(range(len(scores)) if scenarios is None else scenarios), dtype=np.int64),
        subjects=lambda: Subjects(
            np.array([value for value, _ in pooled], dtype=float), np.array([row for _, row in pooled], dtype=np.int64)
        ),
    )


def summary(
    declared: Metric,
    *conversations: Sequence[Observation],
    rows: Iterable[bool] | None = None,
    scenarios: Iterable[int] | None = None,
) -> dict[str, Figure]:
    """The figures of the group by the name of their reduction; the headline has none."""
    table = group(declared, *conversations, scenarios=scenarios)
    chosen = np.ones(len(conversations), dtype=np.bool_) if rows is None else np.array(list(rows), dtype=np.bool_)
    return {figure.reduction: figure for figure in figures(declared, "(computed)", table, chosen)}


def headline(declared: Metric, *conversations: Sequence[Observation], **facts: Any) -> Figure:
    return summary(declared, *conversations, **facts)[""]
