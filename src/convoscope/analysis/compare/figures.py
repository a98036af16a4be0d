"""Every figure of a side against the baseline: the difference, its interval, and whether the data decide it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from convoscope.analysis.answer.comparison import (
    MIN_CLUSTERS,
    GroupComparison,
    PairRows,
    Rows,
    interval_of,
    pair_rows,
    redrawn,
    whole,
)
from convoscope.analysis.answer.differences import (
    Difference,
    clusters_of,
    differences,
    is_worse,
    version_names,
)
from convoscope.analysis.answer.figures import SLOWEST
from convoscope.analysis.answer.model import Noun, metric_label
from convoscope.analysis.answer.samples import Samples, SubjectValues, wait_units
from convoscope.analysis.compare.model import ComparedFigure, Finding
from convoscope.analysis.compare.sides import ComparedSet, ComparedSets
from convoscope.analysis.compare.words import amount_text, needs_text
from convoscope.analysis.words import name_text, percent_text, reason_text
from convoscope.metrics.declaration import NEITHER, SECONDS, SHARE
from convoscope.metrics.registry import PUBLISHED, installed, parent_metric
from convoscope.runs.ranking import OUTCOME_METRIC
from convoscope.runs.reliability import reliability
from convoscope.runs.summary import DeclaredMetric, Summary
from convoscope.scores.judges import PANEL
from convoscope.statistics.differences import (
    LEVEL,
    OPEN,
    Codes,
    DifferenceInterval,
    FigureSample,
    benjamini_hochberg,
    clusters_for,
    holm,
    wald,
)
from convoscope.statistics.intervals import percentile, percentile_interval
from convoscope.statistics.summary import Figure
from convoscope.views.background import WHEN

ROUNDS = 20_000
"""Permutations that a difference must survive before it is claimed."""
OTHER_COVERAGE = 0.1
"""A figure that is measured in so many more of the conversations of one side is not compared by its value alone."""
TOO_MANY = 3_000
"""Beyond so many more pairs or conversations, an open figure says how large its difference may be instead."""
FINDINGS: tuple[Finding, ...] = ("worse", "better", "open", "not_compared")


class Smallest(NamedTuple):
    """The least differences that matter in practice."""

    points: float = 0.01
    """Of shares."""
    part: float = 0.05
    """Of other values, the part of the baseline's value."""

    def of(self, unit: str, before: float) -> float:
        return self.points if unit == SHARE else self.part * abs(before)


USUAL = Smallest()


class _Candidate(NamedTuple):
    """A figure of a side that may be compared."""

    figure: Figure
    declared: DeclaredMetric
    reason: str = ""
    """Why it is not compared."""
    twin: str = ""
    """The figure that has the same values in every conversation."""


class _Compared(NamedTuple):
    candidate: _Candidate
    raw: GroupComparison
    p: float
    interval: DifferenceInterval
    difference: Difference | None = None
    doubt: str = ""
    each: float = 1.0
    """Conversations of one cluster, on average."""


def compared_figures(sets: ComparedSets, noun: Noun, smallest: Smallest) -> list[ComparedFigure]:
    """Worse, better, open, not compared; each by importance. The level is shared by all figures of all sides."""
    by_side: list[tuple[ComparedSet, list[_Compared], list[_Candidate]]] = []
    baseline = sets.sets[0]
    for later in sets.sets[1:]:
        candidates = _candidates(sets, baseline, later)
        compared = list(_compared(sets, baseline, later, candidates))
        seen = {id(one.candidate) for one in compared}
        by_side.append((later, compared, [one for one in candidates if id(one) not in seen]))
    every = [one for _, compared, _ in by_side for one in compared]
    weights = [max(1.0, float(one.candidate.declared.importance)) for one in every]
    corrected = holm([one.p for one in every], weights)
    shares = benjamini_hochberg([one.p for one in every])
    levels = [LEVEL * weight / sum(weights) for weight in weights]
    numbers = {id(one): index for index, one in enumerate(every)}
    rows: list[ComparedFigure] = []
    for later, compared, rest in by_side:
        tested: dict[str, ComparedFigure] = {}
        for result in compared:
            index = numbers[id(result)]
            row = _row(result, later, noun, smallest, corrected[index], shares[index], levels[index])
            tested[row.metric] = row
        rows += tested.values()
        rows += [_rest_row(one, later, noun, tested.get(one.twin)) for one in rest]
    return sorted(
        rows, key=lambda one: (FINDINGS.index(one.finding), -one.importance, one.p if one.p is not None else 1)
    )


def headlines(summary: Summary) -> Iterator[tuple[Figure, DeclaredMetric]]:
    """The figures with a direction: no parts, no published variants; of waits also the slowest; panels for judges."""
    names = {declared.name for declared in summary.declared}
    panels = {figure.key for figure in summary.metrics if figure.judge.startswith(PANEL)}
    for figure in summary.metrics:
        declared = summary.by_key[figure.key]
        if figure.better == NEITHER or figure.variant in PUBLISHED or parent_metric(figure.metric, names):
            continue
        if figure.reduction and not (figure.reduction == SLOWEST and figure.unit == SECONDS):
            continue
        if figure.key in panels and not figure.judge.startswith(PANEL):
            continue
        yield figure, declared


def _candidates(sets: ComparedSets, baseline: ComparedSet, later: ComparedSet) -> list[_Candidate]:
    """The figures of both sides, and why some are not compared; those with the same values are compared once."""
    doubtful = {run.name for run in sets.runs if _has_two_units(sets, run.summary)}
    candidates: dict[str, _Candidate] = {}
    every = [*headlines(sets.summary), *headlines(baseline.run.summary)]
    for figure, declared in sorted(every, key=lambda one: (-one[1].importance, len(one[1].label))):
        name = name_text(figure)
        if name not in candidates:
            reason = _refusal(figure, baseline, later)
            if not reason and figure.key == OUTCOME_METRIC:
                reason = sets.other_labels
            if not reason and figure.unit == SECONDS and doubtful:
                reason = "waits seem to be in two units"
            candidates[name] = _Candidate(figure, declared, reason)
    return list(_with_twins(sets, list(candidates.values())))


def _has_two_units(sets: ComparedSets, summary: Summary) -> bool:
    parts = [sets.samples] if isinstance(sets.samples, Samples) else sets.samples.parts
    return any(wait_units(summary, part).are_two for part in parts if part.count == summary.conversations)


def _refusal(figure: Figure, baseline: ComparedSet, later: ComparedSet) -> str:
    """Why a figure is not compared; empty where it is."""
    key = (figure.key, figure.reduction, figure.judge)
    summaries = [one.run.summary for one in (baseline, later)]
    declared = [summary.by_key.get(figure.key) for summary in summaries]
    if any(one is None for one in declared):
        return f"only {(later if declared[0] is None else baseline).side.name} was scored with it"
    versions = [one.version for one in declared if one is not None]
    if len(set(versions)) > 1:
        return f"versions {versions[0]} and {versions[1]} of the metric"
    for compared, summary in zip((baseline, later), summaries, strict=True):
        if key not in compared.figures and compared.is_grouped:
            judges = {other[2] for other in compared.figures if other[:2] == key[:2]}
            if judges and not figure.judge.startswith("("):
                return "other judges"
            return f"{compared.side.name}: {_why_not(summary, figure)}"
    if declared[1] is not None and declared[1].observes == "group":
        return "computed over a whole group: no interval of the difference"
    codes = {one.run.receipt.metrics.get(figure.key) for one in (baseline, later)}
    if len(codes) > 1 and figure.key not in installed().declared:
        return "the code of the metric is another, though its version is the same"
    return ""


def _why_not(summary: Summary, figure: Figure) -> str:
    empty = next((one for one in summary.figures if one.key == figure.key and one.value is None), None)
    return f"not measured, {reason_text(empty.reason)}" if empty is not None else "not measured"


def _with_twins(sets: ComparedSets, candidates: Sequence[_Candidate]) -> Iterator[_Candidate]:
    """Metrics that give each conversation the same values are one test; the more important one is compared."""
    seen: dict[tuple[object, ...], str] = {}
    for candidate in candidates:
        figure = candidate.figure
        if candidate.reason:
            yield candidate
            continue
        sample = sets.samples.of(figure)
        if sample is None:
            yield candidate._replace(reason="no ratio of sums over conversations: no interval of the difference")
            continue
        key = (figure.unit, figure.better, figure.reduction, hash(sample.above.tobytes()), hash(sample.below.tobytes()))
        first = seen.setdefault(key, name_text(figure))
        yield candidate if first == name_text(figure) else candidate._replace(twin=first)


def _compared(
    sets: ComparedSets, baseline: ComparedSet, later: ComparedSet, candidates: Sequence[_Candidate]
) -> Iterator[_Compared]:
    first, second, samples = baseline.rows, later.rows, sets.samples
    wanted = [one for one in candidates if not one.reason and not one.twin]
    by_figure = {id(one.figure): one for one in wanted}
    but = [*version_names(samples.dimension_names), *WHEN, *([sets.by] if sets.by else [])]
    whole_figures = [(one.figure, one.declared) for one in wanted if not one.figure.reduction]
    clusters, pairs = clusters_of(samples, first, second), pair_rows(samples, first, second)
    reading = sets.other_reading
    by_key: dict[tuple[str, str], _Compared] = {}
    for difference in differences(whole_figures, samples, first, second, but, ROUNDS):
        candidate = by_figure[id(difference.figure)]
        sample = samples.of(difference.figure)
        interval = OPEN
        if sample is not None:
            interval = _interval(difference, sample, samples.scenarios, clusters, pairs, first, second)
        doubt = reading or _doubt(difference, candidate, baseline, later)
        each = 1.0 if sample is None else _each(sample, clusters, first | second)
        made = _Compared(candidate, difference.comparison, difference.p, interval, difference, doubt, each)
        by_key[difference.figure.key, difference.figure.judge] = made
        yield made
    sides = (first, second) if pairs is None else (pairs.first, pairs.second)
    for candidate in wanted:
        if candidate.figure.reduction:
            slow = _slowest(samples.values(candidate.figure), candidate, clusters, *sides, samples.count)
            if slow is not None:
                mean = by_key.get((candidate.figure.key, candidate.figure.judge))
                yield slow._replace(doubt=reading or _doubt_of_slowest(mean, candidate, baseline, later))


def _each(sample: FigureSample, clusters: Codes, rows: Rows) -> float:
    inside = clusters[rows & (sample.below > 0)]
    return len(inside) / max(1, int(np.count_nonzero(np.bincount(inside))))


def _doubt_of_slowest(mean: _Compared | None, candidate: _Candidate, baseline: ComparedSet, later: ComparedSet) -> str:
    """The slowest values are compared whole: what makes their mean doubtful, or holds it within kinds, counts here."""
    if mean is None or mean.difference is None:
        return ""
    if mean.doubt:
        return mean.doubt
    strata = mean.difference.strata
    if strata is not None:
        return f"the sides have another mix of {strata.by}"
    return _coverage_doubt(candidate.figure, baseline.figures, later.figures) if baseline.is_grouped else ""


def _interval(
    difference: Difference,
    sample: FigureSample,
    scenarios: Codes,
    clusters: Codes,
    pairs: PairRows | None,
    first: Rows,
    second: Rows,
) -> DifferenceInterval:
    compared = difference.comparison
    if difference.strata is not None:
        return wald(compared.difference, compared.error, compared.degrees)
    if compared.pairs and pairs is not None:
        return interval_of(compared, sample, pairs.first, pairs.second, scenarios)
    return interval_of(compared, sample, first, second, clusters)


def _slowest(
    values: SubjectValues, candidate: _Candidate, clusters: Codes, first: Rows, second: Rows, count: int
) -> _Compared | None:
    """A percentile of both sides: the share of values above the common one is tested (a quantile test)."""
    q = 95.0
    sides = [values.value[rows[values.number]] for rows in (first, second)]
    if not all(map(len, sides)):
        return None
    inside = (first | second)[values.number]
    common = percentile(values.value[inside], q)
    is_above = (values.value[inside] > common).astype(np.float64)
    above = np.bincount(values.number[inside], weights=is_above, minlength=count).astype(np.float64)
    below = np.bincount(values.number[inside], minlength=count).astype(np.float64)
    sample = FigureSample(above, below, bounded=True)
    raw = whole(sample, first, second, clusters)
    if raw is None:
        return None
    p = redrawn(raw, sample, first, second, clusters, ROUNDS)
    before, after = (percentile(side, q) for side in sides)
    ends = [
        percentile_interval(side, clusters[values.number[rows[values.number]]], q)
        for side, rows in zip(sides, (first, second), strict=True)
    ]
    compared = raw._replace(first=before, second=after, error=math.inf)
    if any(one is None or one.low is None or one.high is None for one in ends):
        return _Compared(candidate, compared, p, OPEN)
    (low, high), (later_low, later_high) = ((one.lowest, one.highest) for one in ends if one is not None)
    down = math.hypot(after - later_low, high - before)
    up = math.hypot(later_high - after, before - low)
    return _Compared(candidate, compared, p, DifferenceInterval(after - before - down, after - before + up))


def _doubt(difference: Difference, candidate: _Candidate, baseline: ComparedSet, later: ComparedSet) -> str:
    """Why a difference is not claimed, whatever its probability."""
    if difference.mixed is not None:
        return f"better or worse by {difference.mixed.by}"
    if difference.apart:
        return f"their {difference.apart}s differ too"
    known = difference.coverage
    if known is not None and not known.is_even and difference.p > LEVEL:
        counts = (f"{known.second:,} of {known.second_total:,}", f"{known.first:,} of {known.first_total:,}")
        return f"the outcome is known for {counts[0]} of {later.side.name} and {counts[1]} of {baseline.side.name}"
    figure = candidate.figure
    judged = reliability(later.run.summary, figure)
    if judged is not None and judged.doubt and not later.run.trusts_judges:
        return judged.doubt
    if figure.key == OUTCOME_METRIC or not (baseline.is_grouped and later.is_grouped):
        return ""
    return _coverage_doubt(figure, baseline.figures, later.figures)


def _coverage_doubt(
    figure: Figure,
    before: Mapping[tuple[str, str, str], Figure],
    after: Mapping[tuple[str, str, str], Figure],
) -> str:
    """A figure that one side has for far fewer conversations may differ for that reason alone."""
    key = (figure.key, figure.reduction, figure.judge)
    sides = [before.get(key), after.get(key)]
    covers = [min(one.coverage or 0.0, one.subject_coverage) for one in sides if one is not None]
    if len(covers) < 2 or abs(covers[0] - covers[1]) < OTHER_COVERAGE:
        return ""
    bounds = [
        (one.bounds or (one.value, one.value)) if min(cover, 1.0) < 1.0 else (one.value, one.value)
        for one, cover in zip(sides, covers, strict=True)
        if one is not None
    ]
    known = [one for one in bounds if one[0] is not None and one[1] is not None]
    if figure.unit == SHARE and len(known) == 2 and (known[0][1] < known[1][0] or known[1][1] < known[0][0]):  # type: ignore[operator]
        return ""  # whatever those without a value are, the two differ
    return f"measured in {percent_text(covers[0])} before, {percent_text(covers[1])} after"


def _row(
    result: _Compared, later: ComparedSet, noun: Noun, smallest: Smallest, corrected: float, q: float, level: float
) -> ComparedFigure:
    figure, declared, raw = result.candidate.figure, result.candidate.declared, result.raw
    least = float(smallest.of(figure.unit, raw.first))
    claimed = bool(corrected <= LEVEL and result.interval.excludes_zero and not result.doubt)
    finding: Finding = "open"
    if claimed:
        finding = "worse" if is_worse(figure, raw.difference) else "better"
    needs = None if claimed or result.doubt else _needs(raw, level, result.each)
    within = (
        result.difference.strata.by if result.difference is not None and result.difference.strata is not None else ""
    )
    row = replace(
        row_of(figure, declared, raw, result.interval, later, noun),
        finding=finding,
        p=float(result.p),
        p_holm=float(corrected),
        q=float(q),
        small=claimed and bool(abs(raw.difference) < least),
        smallest=least,
        within=within,
        needs=needs,
        remark=result.doubt,
        doubt=result.doubt,
    )
    return row if claimed or result.doubt else _open(row, noun)


def row_of(
    figure: Figure,
    declared: DeclaredMetric,
    raw: GroupComparison,
    interval: DifferenceInterval,
    later: ComparedSet,
    noun: Noun,
) -> ComparedFigure:
    """What was compared, as data; nothing is claimed of it."""
    return ComparedFigure(
        metric=name_text(figure),
        label=_label(figure, declared, noun),
        unit=figure.unit,
        better=figure.better,
        importance=declared.importance,
        side=later.side.name,
        finding="open",
        before=float(raw.first),
        after=float(raw.second),
        difference=float(raw.difference),
        low=None if interval.low is None else float(interval.low),
        high=None if interval.high is None else float(interval.high),
        n=raw.pairs or raw.clusters,
        paired=bool(raw.pairs),
    )


def _label(figure: Figure, declared: DeclaredMetric, noun: Noun) -> str:
    return metric_label(declared, noun) + (", slowest 5 %" if figure.reduction == SLOWEST else "")


def _needs(raw: GroupComparison, level: float, each: float) -> int | None:
    """About how many more pairs, or conversations a side, would show the difference that is seen.

    `each`: conversations of one user or scenario. They go together, so that more of them are needed.
    """
    if not math.isfinite(raw.error):
        return None
    wanted = clusters_for(raw.difference, raw.error, raw.clusters, level=level)
    more = (wanted - raw.clusters) * (1.0 if raw.pairs else each)
    return None if not math.isfinite(more) else max(1, math.ceil(more))


def _open(row: ComparedFigure, noun: Noun) -> ComparedFigure:
    within = max(abs(row.low), abs(row.high)) if row.low is not None and row.high is not None else None
    if within is not None and within <= row.smallest:
        return replace(row, needs=None, remark=f"the same, within {amount_text(within, row.unit)}")
    if row.needs is not None and row.needs <= TOO_MANY:
        return replace(row, remark=needs_text(row, noun))
    if within is not None:
        return replace(row, needs=None, remark=f"may be {amount_text(within, row.unit)} either way")
    return replace(row, needs=None, remark="" if row.difference else "equal on both sides")


def _rest_row(candidate: _Candidate, later: ComparedSet, noun: Noun, twin: ComparedFigure | None) -> ComparedFigure:
    """A figure that was not tested: one with the same values as another, or one that cannot be."""
    figure, declared = candidate.figure, candidate.declared
    metric = name_text(figure)
    label = _label(figure, declared, noun)
    if twin is not None:
        return replace(
            twin,
            metric=metric,
            label=label,
            importance=declared.importance,
            same_as=twin.metric,
            remark=f"the same values as {twin.metric}",
        )
    return ComparedFigure(
        metric=metric,
        label=label,
        unit=figure.unit,
        better=figure.better,
        importance=declared.importance,
        side=later.side.name,
        finding="not_compared",
        remark=candidate.reason or f"fewer than {MIN_CLUSTERS} independent values on a side",
    )
