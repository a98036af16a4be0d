"""What the page says before any conversation is opened: figures, groups, charts, reading, receipt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from convoscope.analysis.findings import findings, side
from convoscope.analysis.targets import Check, observed, tally, target_text
from convoscope.analysis.words import (
    NOTHING,
    counted,
    coverage_text,
    interval_text,
    key_text,
    name_text,
    place_text,
    points_text,
    reading_text,
    reason_text,
    reasons_text,
    seconds_text,
    standing_text,
    value_text,
)
from convoscope.metrics.declaration import HIGHER, LOWER, NEITHER, RATIO, SHARE
from convoscope.metrics.parts import parent_metric
from convoscope.report.groups import are_alone, groupings, small_text
from convoscope.report.page.charts import Bar, Chart, histogram_chart, turns_chart
from convoscope.report.visible_figures import headlines, visible_figures
from convoscope.runs.distributions import Distribution, Histogram, distributions
from convoscope.runs.ranking import Ranking, Standing, standings
from convoscope.runs.run import Run
from convoscope.runs.score_arrays import MAX_GROUPS
from convoscope.runs.summary import DeclaredMetric, Summary
from convoscope.statistics.summary import Figure
from convoscope.views.flow.endings import LOST

MAX_TILES = 8
MAX_ROWS = 200
"""Rows of a table of files, inputs or names; what is left out is counted."""
_ARROWS: Mapping[str, str] = {HIGHER: "higher is better", LOWER: "lower is better", NEITHER: ""}
_OPENED = {"flow", "agent", "scenario_id"}
_SIGNS = {"met": "✓", "missed": "✗", "undetermined": "?"}


class Range(NamedTuple):
    """Value, interval and target on a scale of 0 to 100."""

    low: float
    high: float
    value: float
    targets: Sequence[float]


class TargetLine(NamedTuple):
    """A target and what came of it, in words."""

    name: str
    value: str
    target: str
    outcome: str
    sign: str
    but: str
    """What is to be said against it, such as an interval that reaches across."""


class Row(NamedTuple):
    """A figure in the table of metrics."""

    name: str
    question: str
    beside: bool
    value: str
    reason: str
    ten: str
    interval: str
    range: Range | None
    n: str
    coverage: str
    better: str
    checks: Sequence[TargetLine]
    reasons: str


class Family(NamedTuple):
    name: str
    rows: Sequence[Row]


class Tile(NamedTuple):
    name: str
    arrow: str
    value: str
    interval: str


class GroupCell(NamedTuple):
    value: str
    under: str
    """Interval and n, or why there is no value."""
    side: str
    sign: str


class GroupRow(NamedTuple):
    name: str
    link: str
    conversations: str
    cells: Sequence[GroupCell]


class Grouping(NamedTuple):
    title: str
    columns: Sequence[str]
    rows: Sequence[GroupRow]
    total: int
    more: int
    open: bool


class DrawnChart(NamedTuple):
    chart: Chart
    filter: str | None


class DrawnMetric(NamedTuple):
    name: str
    arrow: str
    question: str
    alike: str
    charts: Sequence[DrawnChart]


def sections(run: Run, ranking: Ranking, checked: Sequence[Check]) -> dict[str, Any]:
    """Everything that the template needs but the conversations and the page's own code."""
    summary, report, receipt = run.summary, run.read_report, run.receipt
    counts = tally(checked)
    target_lines = [_target_line(one) for one in checked]
    tiles = _tiles(summary)
    shown = visible_figures(summary, {one.name for one in checked})
    return {
        "name": run.name,
        "place": place_text(run),
        "conversations": summary.conversations,
        "receipt": receipt,
        "report": report,
        "reading_line": reading_text(report),
        "checks": target_lines,
        "met": counts.met,
        "missed": counts.missed,
        "undetermined": counts.undetermined,
        "any_target": bool(target_lines),
        "tiles": tiles[:MAX_TILES],
        "more_tiles": max(0, len(tiles) - MAX_TILES),
        "sure": list(_sure(run)),
        "broke": len(ranking.errors),
        "found": findings(summary),
        "standing": _standing(run, ranking),
        "families": _families(summary, shown.figures, checked),
        "parts": _families(summary, shown.parts, checked),
        "silent": shown.silent,
        "groupings": list(_groupings(summary)),
        "small_groups": [small_text(one) for one in summary.small_groups],
        "ungrouped": run.receipt.config.get("by") is None,
        "max_groups": MAX_GROUPS,
        "metrics_drawn": _drawn(run),
        "tallied": [("Set aside", report.set_aside), ("Repaired", report.repaired), ("Inferred", report.inferred)],
        "named": [
            (title, list(kept.items())[:MAX_ROWS], max(0, len(kept) - MAX_ROWS))
            for title, kept in (("Ignored", report.ignored), ("Unknown names, kept in extras", report.unknown))
            if kept
        ],
        "files": list(report.files.items())[:MAX_ROWS],
        "more_files": max(0, len(report.files) - MAX_ROWS),
        "inputs": receipt.inputs[:MAX_ROWS],
        "more_inputs": max(0, len(receipt.inputs) - MAX_ROWS),
        "receipt_facts": list(_receipt_facts(run)),
        "settings": msgspec.json.format(msgspec.json.encode(receipt.config), indent=2).decode(),
        "declared": summary.declared,
        "bar_link": bar_link,
        "group_link": group_link,
        "conversation_link": conversation_link,
        "standing_text": standing_text,
        "counted": counted,
        "interval_text": interval_text,
        "name_text": name_text,
        "reason_text": reason_text,
        "value_text": value_text,
    }


def group_link(by: Mapping[str, str]) -> str:
    """Where the page lists the conversations of a group."""
    return "#find?" + urlencode({f"by.{name}": value for name, value in by.items()})


def bar_link(metric: str, bar: Bar, last: bool) -> str:
    """Where the page lists the conversations of a bar."""
    return "#find?" + urlencode({"metric": metric, "low": bar.low, "high": bar.high, "last": int(last)})


def conversation_link(id: str) -> str:
    """Where the page shows one conversation."""
    return "#conversation=" + quote(id, safe="")


def _target_line(check: Check) -> TargetLine:
    unit = check.figure.unit
    outcome = check.verdict.outcome
    but = check.verdict.words.removeprefix(outcome).lstrip(",: ")
    value = value_text(check.figure.value, unit)
    return TargetLine(check.name, value, target_text(check.target, unit), outcome, _SIGNS[outcome], but)


def _headlines(summary: Summary) -> list[Figure]:
    """The headline of each metric; where judges sat on a panel, the panel's, which comes after theirs."""
    return list({key_text(one.metric, one.variant): one for one in summary.figures if not one.reduction}.values())


def _tiles(summary: Summary) -> list[Tile]:
    names = {figure.metric for figure in summary.figures}
    return [
        Tile(
            name_text(one),
            "↑" if one.better == HIGHER else "↓",
            value_text(one.value, one.unit),
            interval_text(one) if one.interval else "",
        )
        for one in _headlines(summary)
        if one.better != NEITHER and one.value is not None and not parent_metric(one.metric, names)
    ]


def _sure(run: Run) -> Iterator[str]:
    """How far the figures can be trusted, in a few sentences."""
    summary = run.summary
    shown = visible_figures(summary)
    worth = {id(figure) for figure in shown.figures}
    headlines = [one for one in _headlines(summary) if id(one) in worth]
    have = [one for one in headlines if one.value is not None]
    names = {one.metric for one in summary.figures}
    total = sum(not parent_metric(one.metric, names) for one in _headlines(summary))
    measured = sum(not parent_metric(one.metric, names) for one in have)
    yield f"{measured} of {counted(total, 'metric')} {'has' if measured == 1 else 'have'} a value"
    yield from _intervals(have)
    yield from _coverage(run, headlines)
    missing: dict[str, list[str]] = {}
    for figure in headlines:
        if figure.value is None:
            missing.setdefault(reason_text(figure.reason), []).append(name_text(figure))
    for reason, names_of in missing.items():
        more = f" and {len(names_of) - 3} more" if len(names_of) > 3 else ""
        yield f"no value, {reason}: {', '.join(names_of[:3])}{more}"


def _intervals(have: Sequence[Figure]) -> Iterator[str]:
    clusters = sorted(one.interval.clusters for one in have if one.interval)
    if clusters:
        spread = f"{clusters[0]:,}" if clusters[0] == clusters[-1] else f"{clusters[0]:,} to {clusters[-1]:,}"
        words = f"95 % intervals, from {spread} independent clusters"
        shared = any(one.interval and one.interval.clusters < one.samples_measured for one in have)
        yield words + (": conversations of one scenario are one cluster" if shared else "")
    bare: dict[str, int] = {}
    for figure in have:
        if not figure.interval:
            bare[figure.interval_reason] = bare.get(figure.interval_reason, 0) + 1
    for reason, count in bare.items():
        yield f"{counted(count, 'value')} without an interval: {reason_text(reason)}"


def _coverage(run: Run, headlines: Sequence[Figure]) -> Iterator[str]:
    covered = sorted((one for one in headlines if one.coverage), key=lambda one: one.coverage or 0.0)
    problems = run.read_report.problem_count
    if problems:
        yield f"{counted(problems, 'problem')} in reading: what could not be read is in no number"
    if covered and (covered[0].coverage or 0.0) < 1:
        least = covered[0]
        reasons = reasons_text(least, observed(least, run.summary))
        yield f"least covered: {name_text(least)}, {coverage_text(least, observed(least, run.summary))} ({reasons})"
    elif covered and all(one.coverage != 0 for one in headlines):
        skipped = sum(one.subjects_skipped for one in headlines)
        words = "every conversation that could be measured was"
        yield words + (f"; {counted(skipped, 'subject')} in them have no value" if skipped else "")


def _standing(run: Run, ranking: Ranking) -> list[Standing]:
    worst = standings(run, ranking, ranking.whole[:5].tolist())
    return [one for one in worst if one.because or one.outcome == LOST]


def _families(summary: Summary, figures: Sequence[Figure], checked: Sequence[Check]) -> list[Family]:
    families: dict[str, list[Row]] = {}
    declared = summary.by_key
    for figure in figures:
        facts = declared.get(figure.key)
        checks = [one for one in checked if one.name == name_text(figure)]
        rows = families.setdefault(figure.metric.split(".", 1)[0], [])
        rows.append(_row(figure, facts, checks, reasons_text(figure, observed(figure, summary))))
    return [Family(name, rows) for name, rows in families.items()]


def _row(figure: Figure, facts: DeclaredMetric | None, checks: Sequence[Check], reasons: str) -> Row:
    beside = bool(figure.reduction)
    return Row(
        name=name_text(figure),
        question="" if beside else facts.question if facts else "",
        beside=beside,
        value=value_text(figure.value, figure.unit),
        reason="" if figure.value is not None else reason_text(figure.reason),
        ten=_ten(figure, facts),
        interval=interval_text(figure),
        range=_range(figure, checks),
        n=f"{figure.n:,}",
        coverage=coverage_text(figure, facts.observes if facts else "subject"),
        better=_ARROWS[figure.better].removesuffix(" is better"),
        checks=[_target_line(one) for one in checks],
        reasons=reasons,
    )


def _ten(figure: Figure, facts: DeclaredMetric | None) -> str:
    points = points_text(figure.ten, facts)
    return points and f"of 10: {points}"


def _range(figure: Figure, checks: Sequence[Check]) -> Range | None:
    """Shares and ratios lie on a scale that everybody knows; other units have none that rows could share."""
    value, interval = figure.value, figure.interval
    if value is None or interval is None or figure.unit not in (SHARE, RATIO):
        return None
    low, high, at = (_percent(one) for one in (interval.lowest, interval.highest, value))
    return Range(low, max(high, low + 0.5), at, [_percent(one.target.value) for one in checks])


def _percent(value: float) -> float:
    return round(min(100.0, max(0.0, 100 * value)), 2)


def _groupings(summary: Summary) -> Iterator[Grouping]:
    """The groups of each dimension, with the headline figures that have a value anywhere."""
    speaking = {id(one) for one in _headlines(summary)}
    for by, groups in groupings(summary.groups).items():
        columns = [one for one in headlines(summary, groups) if id(one) in speaking]
        shown = [name_text(one) for one in columns]
        rows = []
        for group in groups[:MAX_GROUPS]:
            figures = {name_text(one): one for one in group.metrics}
            cells = [_cell(figures.get(name), whole) for name, whole in zip(shown, columns, strict=True)]
            label = ", ".join(group.by.values())
            rows.append(GroupRow(label, group_link(group.by), f"{group.conversations:,}", cells))
        title = " and ".join(by)
        short = [name.split(".", 1)[1] for name in shown]
        opened = set(by) <= _OPENED and not are_alone(groups)
        yield Grouping(title, short, rows, len(groups), max(0, len(groups) - MAX_GROUPS), opened)


def _cell(figure: Figure | None, whole: Figure) -> GroupCell:
    if figure is None:
        return GroupCell(NOTHING, "not scored", "", "")
    if figure.value is None:
        return GroupCell(NOTHING, reason_text(figure.reason), "", "")
    where = side(figure, whole)
    under = f"{interval_text(figure)}, n {figure.n:,}" if figure.interval else f"n {figure.n:,}"
    sign = {"worse": "▼ ", "better": "▲ "}.get(where or "", "")
    return GroupCell(value_text(figure.value, figure.unit), under, where or "", sign)


def _drawn(run: Run) -> list[DrawnMetric]:
    questions = {one.metric: one.question for one in run.summary.declared}
    values = {key_text(one.metric, one.variant): one.value for one in _headlines(run.summary)}
    return [
        DrawnMetric(
            one.headline.key,
            _ARROWS[one.headline.better],
            questions.get(one.headline.key, ""),
            _alike(one),
            list(_charts(one, values.get(one.headline.key))),
        )
        for one in distributions(run)
    ]


def _charts(distribution: Distribution, headline: float | None) -> Iterator[DrawnChart]:
    unit = distribution.headline.unit
    if distribution.by_subject is not None and not _same(distribution.by_subject):
        yield DrawnChart(histogram_chart(distribution.by_subject, unit, distribution.observes), None)
    if distribution.by_conversation is not None and not _same(distribution.by_conversation):
        yield DrawnChart(
            histogram_chart(distribution.by_conversation, unit, "conversation", headline), distribution.headline.key
        )
    if distribution.over_turns is not None:
        yield DrawnChart(turns_chart(distribution.over_turns, unit), None)


def _same(histogram: Histogram) -> bool:
    return histogram.least == histogram.most


def _alike(distribution: Distribution) -> str:
    """What to say instead of drawing a single bar."""
    histogram = distribution.by_conversation
    if histogram is None or not _same(histogram):
        return ""
    value = value_text(histogram.mean, distribution.headline.unit)
    return f"{counted(histogram.n, 'conversation')}, and the value of each is {value}."


def _receipt_facts(run: Run) -> Iterator[tuple[str, str]]:
    receipt = run.receipt
    yield "run", receipt.run_id
    yield "valid", "yes" if receipt.valid else f"no, since {receipt.invalidated_at}: {receipt.invalid_reason}"
    yield "started", receipt.started_at
    yield (
        "finished",
        f"{receipt.finished_at}, after {seconds_text(receipt.seconds)} with {counted(receipt.workers, 'worker')}",
    )
    yield "input", receipt.input_hash
    yield "settings", receipt.config_hash
    yield "turns", str(receipt.config.get("turn_rule", ""))
    yield "made with", ", ".join(f"{name} {version}" for name, version in receipt.versions.items())
