"""The screen of all figures: families of rows, the panel of each row, and what is drawn: intervals and spreads."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

import msgspec
import numpy as np

from convoscope.analysis.answer import metric_label
from convoscope.analysis.answer.figures import SLOWEST
from convoscope.analysis.answer.model import Noun
from convoscope.analysis.gate import UNDETERMINED
from convoscope.analysis.targets import Check, target_text, verdict_text
from convoscope.analysis.words import (
    coverage_text,
    interval_text,
    name_text,
    points_text,
    reason_text,
    reasons_text,
    value_text,
)
from convoscope.metrics.declaration import HIGHER, LOWER, RATIO, SECONDS, SHARE, Target
from convoscope.report.run_tables import interval_and_clusters, sections, visible_figures
from convoscope.runs.distributions import Histogram, histograms
from convoscope.runs.measured import measured_columns, with_values
from convoscope.runs.ranking import headlines, least, names
from convoscope.runs.reliability import calibration_mark, claims_nothing, reliability
from convoscope.runs.run import Run
from convoscope.runs.summary import DeclaredMetric, Summary
from convoscope.runs.targets import group_text
from convoscope.statistics.summary import Figure


class ScaledInterval(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value, its interval and its targets, in percent of the metric's own scale."""

    value: float
    low: float | None = None
    high: float | None = None
    targets: list[float] = []
    text: str
    """The same in words."""


class Spread(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the conversations spread: bins on the metric's scale, or the two parts of a yes and no."""

    bins: list[int] = []
    bad: list[int] = []
    """The places of the bins that lie beyond the target."""
    tips: list[str] = []
    yes: float | None = None
    """In percent, where every conversation has 0 or 1."""
    tone: str = ""
    """Of the part that is yes."""
    first: str = ""
    middle: str = ""
    last: str = ""


_POINTS = re.compile(r"of (\d+)")
"""A unit that says how many points there are: `of 10`."""


class Scale(msgspec.Struct, frozen=True):
    """From where to where the values of a metric are drawn."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """In percent, never beyond the ends."""
        return round(min(100.0, max(0.0, 100 * (value - self.low) / ((self.high - self.low) or 1.0))), 2)


def scale_of(figures: Sequence[Figure], histogram: Histogram | None, targets: Sequence[Target] = ()) -> Scale:
    """Shares from 0 to 100 %, points of 5 from 0 to 5; others as far as conversations, figures and targets reach."""
    values = [one.value for one in figures if one.value is not None]
    ends = [end for one in figures if one.interval for end in (one.interval.low, one.interval.high) if end is not None]
    reach = [*values, *ends, *(one.value for one in targets)]
    unit = figures[0].unit if figures else ""
    if unit == SHARE or (unit == RATIO and all(0 <= one <= 1 for one in reach)):
        return Scale(0.0, 1.0)
    if (points := _POINTS.fullmatch(unit)) and all(0 <= one <= float(points[1]) for one in reach):
        return Scale(0.0, float(points[1]))
    if histogram is not None:
        reach += [histogram.bins[0].low, histogram.bins[-1].high]
    return Scale(min([0.0, *reach]), max([0.0, *reach]) or 1.0)


def scaled(figure: Figure, scale: Scale, targets: Sequence[Target] = ()) -> ScaledInterval | None:
    """None where there is no value."""
    if figure.value is None:
        return None
    interval = figure.interval
    words = value_text(figure.value, figure.unit)
    return ScaledInterval(
        value=scale.at(figure.value),
        low=scale.at(interval.lowest) if interval else None,
        high=scale.at(interval.highest) if interval else None,
        targets=[scale.at(one.value) for one in targets],
        text=f"{words}, 95 % interval {interval_text(figure)}" if interval else words,
    )


def spread(histogram: Histogram, figure: Figure, targets: Sequence[Target] = ()) -> Spread:
    """The bins of a histogram; those that lie beyond a target as a whole are bad."""
    unit, bins = figure.unit, histogram.bins
    counts = [one.n for one in bins]
    if unit == SHARE and histogram.least == 0 and histogram.most == 1 and not any(counts[1:-1]):
        tone = {HIGHER: "good", LOWER: "bad"}.get(figure.better, "")
        yes = f"{counts[-1]:,} of {histogram.n:,}"
        return Spread(yes=round(100 * counts[-1] / histogram.n, 2), tone=tone, middle=yes)
    bad = [
        index
        for index, one in enumerate(bins)
        if not all(target.is_met_by(one.low) or target.is_met_by(one.high) for target in targets)
    ]
    return Spread(
        bins=counts,
        bad=bad,
        tips=[f"{value_text(one.low, unit)} to {value_text(one.high, unit)}: {one.n:,}" for one in bins],
        middle=f"median {value_text(histogram.p50, unit)}, p95 {value_text(histogram.p95, unit)}",
        first=value_text(histogram.least, unit),
        last=value_text(histogram.most, unit),
    )


MAX_GROUPS = 12
"""Groups of one dimension in a panel; the others are counted."""
MAX_DIMENSIONS = 6
WORST = 5
OPEN = 30
"""Rows that are open at first, so that the screen is not too long; further families are folded."""
_GRAVEST = (
    "missed",
    "missed, too close",
    "missed, no interval",
    UNDETERMINED,
    "met, no interval",
    "met, too close",
    "met",
)
_BETTER: Mapping[str, str] = {HIGHER: "higher", LOWER: "lower"}


class GroupFigure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The figure of one group."""

    name: str
    value: str
    n: str
    bar: ScaledInterval | None = None
    href: str = ""
    reason: str = ""
    target: str = ""
    """What is demanded of this group, and what came of it."""


class GroupFigures(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The figures of the groups of one dimension."""

    by: str
    rows: list[GroupFigure]
    more: int = 0


class Example(msgspec.Struct, frozen=True, array_like=True):
    """A conversation and its value."""

    conversation: str
    value: str


class FigureRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A figure: what the table shows of it, and what the panel does."""

    name: str
    label: str
    value: str
    reason: str = ""
    """Why there is no value."""
    bar: ScaledInterval | None = None
    interval: str
    interval_reason: str = ""
    n: str
    coverage: str
    covered: bool = True
    better: str = ""
    target: str = ""
    verdict: str = ""
    """`met`, `missed`, `undetermined`, or `missed, too close`: the exit code counts it, and another sample may not."""
    judged: str = ""
    """Who judged it, and how far they agree with people."""
    calibration: str = ""
    """`calibrated` or `not calibrated`, of what a judge says."""
    same: str = ""
    """The figure that has the same value in every conversation."""
    points: str = ""
    question: str = ""
    skipped: str = ""
    spread: Spread | None = None
    groups: list[GroupFigures] = []
    worst: list[Example] = []


class FigureFamily(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The figures of a family."""

    name: str
    rows: list[FigureRow]
    missed: int = 0
    folded: bool = False


class FiguresScreen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that can be said in figures."""

    measured: int
    unmeasured: int
    families: list[FigureFamily]
    silent: list[str] = []
    """What is not measured, a line for each family."""
    any_target: bool = False
    any_uncovered: bool = False


class FigureData:
    """What the rows of all figures need: histograms, targets, groups, the worst conversations."""

    def __init__(self, run: Run, noun: Noun, checked: Sequence[Check]) -> None:
        self.summary: Summary = run.summary
        self.noun = noun
        self.histograms: dict[str, Histogram] = {one.key: histogram for one, histogram in histograms(run)}
        self.checks: dict[str, list[Check]] = {}
        for check in checked:
            self.checks.setdefault(check.name, []).append(check)
        self.worst = _worst(run)
        self._trust = run.trusts_judges
        self._twins = _twins(run)
        self._first_of: dict[tuple[int, str], str] = {}
        self._subjects = {one.observes for one in run.summary.declared}
        """What groups are made of that are no conversations: slots, intents. The list cannot be filtered by them."""
        self.groups: dict[tuple[str, ...], list[tuple[dict[str, str], dict[str, Figure]]]] = {}
        for group in run.summary.groups:
            figures = {name_text(one): one for one in group.metrics}
            self.groups.setdefault(tuple(group.by), []).append((group.by, figures))

    def spread(self, figure: Figure) -> Spread | None:
        """How the conversations spread in the metric of a figure."""
        histogram = self.histograms.get(figure.key)
        if histogram is None:
            return None
        # What decides nothing colours nothing.
        checks = [] if self._claims_nothing(figure) else self.checks.get(name_text(figure), ())
        return spread(histogram, figure, [one.target for one in checks])

    def _claims_nothing(self, figure: Figure) -> bool:
        return claims_nothing(self.summary, figure, trust_judges=self._trust)

    def bar(self, figure: Figure) -> ScaledInterval | None:
        targets = [one.target for one in self.checks.get(name_text(figure), ())]
        return scaled(figure, scale_of([figure], self.histograms.get(figure.key), targets), targets)

    def row(self, figure: Figure) -> FigureRow:
        name = name_text(figure)
        declared = self.summary.by_key.get(figure.key)
        checks = self.checks.get(name, ())
        observes = declared.observes if declared else "subject"
        # The gravest of what came of the targets, as the exit code takes it; too close: the interval reaches across.
        outcomes = {verdict_text(one.verdict, figure) for one in checks}
        return FigureRow(
            name=name,
            label=figure_label(figure, declared, self.noun),
            value=value_text(figure.value, figure.unit),
            reason="" if figure.value is not None else reason_text(figure.reason),
            bar=self.bar(figure),
            interval=interval_and_clusters(figure, self.summary, self.noun),
            interval_reason="" if figure.interval else reason_text(figure.interval_reason or figure.reason),
            n=f"{figure.n:,}",
            coverage=coverage_text(figure, observes),
            covered=(figure.coverage or 0.0) >= 1 and not figure.has_gaps,
            better=_BETTER.get(figure.better, ""),
            target=", ".join(target_text(one.target, figure.unit) for one in checks),
            verdict=next((one for one in _GRAVEST if one in outcomes), ""),
            same=self._same(figure),
            points=points_text(figure.ten, None if self._claims_nothing(figure) else declared),
            question=declared.question if declared else "",
            skipped=reasons_text(figure, observes),
            judged=self._judged(figure),
            calibration=calibration_mark(self.summary, figure),
            spread=self.spread(figure),
            groups=list(self._by_group(name)),
            worst=[] if figure.reduction else self.worst.get(figure.key, []),
        )

    def _same(self, figure: Figure) -> str:
        """The first row that has the same values, in the order in which rows are made."""
        twin = self._twins.get((figure.metric, figure.variant, figure.judge))
        if twin is None or figure.value is None:
            return ""
        first = self._first_of.setdefault((twin, figure.reduction), name_text(figure))
        return "" if first == name_text(figure) else first

    def _judged(self, figure: Figure) -> str:
        judged = reliability(self.summary, figure)
        if judged is None:
            return ""
        return f"By {judged.judge}: {judged.text or 'a person, with whom judges are compared'}."

    def _by_group(self, name: str) -> list[GroupFigures]:
        made = []
        for by, groups in self.groups.items():
            named = [(group, figures[name]) for group, figures in groups if name in figures]
            if by == _STATES or len(named) < 2:  # states have a screen of their own
                continue
            named.sort(key=lambda one: not self._demands(name, one[0]))
            figures = [figure for _, figure in named]
            scale = scale_of(figures, self.histograms.get(figures[0].key))
            rows = [
                GroupFigure(
                    name=", ".join(group.values()),
                    value=value_text(figure.value, figure.unit),
                    n=f"{figure.n:,}",
                    bar=scaled(figure, scale),
                    href="" if self._subjects & group.keys() else calls_link(group),
                    reason=reason_text(figure.reason),
                    target="; ".join(f"{check.name} {check.text}" for check in self._demands(name, group)),
                )
                for group, figure in named[:MAX_GROUPS]
            ]
            made.append(GroupFigures(by=", ".join(by), rows=rows, more=max(0, len(named) - MAX_GROUPS)))
        return sorted(made, key=lambda one: not any(row.target for row in one.rows))[:MAX_DIMENSIONS]

    def _demands(self, name: str, group: Mapping[str, str]) -> list[Check]:
        return self.checks.get(name + group_text(tuple(group.items())), [])


_STATES = ("flow", "state")


def figures_screen(data: FigureData) -> FiguresScreen:
    """All figures of the run with a value in families; what has none in a few lines."""
    summary = data.summary
    shown = visible_figures(summary, set(data.checks))
    families: dict[str, list[FigureRow]] = {}
    weights = {one.metric: one.importance for one in summary.declared}
    # What matters most comes first; a figure beside a headline stays beside it.
    weighed = sorted(shown.figures, key=lambda figure: -weights.get(figure.key, 0))
    for section in sections(summary, weighed):
        families[section.title] = [data.row(figure) for figure in section.figures]
    if shown.parts:
        families["parts of these"] = [data.row(figure) for figure in shown.parts]
    made, room = [], OPEN
    for name, named in families.items():
        folded = len(named) > room
        room -= 0 if folded else len(named)
        missed = sum(row.verdict.startswith("missed") for row in named)
        title = name.replace("_", " ").capitalize()
        made.append(FigureFamily(name=title, rows=named, missed=missed, folded=folded))
    rows = [row for family in made for row in family.rows]
    unmeasured = sum(entry is not None for entry in summary.whole_metrics.values())
    return FiguresScreen(
        measured=len(summary.whole_metrics) - unmeasured,
        unmeasured=unmeasured,
        families=made,
        silent=[one.text for one in shown.silent],
        any_target=any(row.target for row in rows),
        any_uncovered=not all(row.covered for row in rows),
    )


def calls_link(by: Mapping[str, str]) -> str:
    """Where the page lists the conversations of a group."""
    return "#/calls?" + urlencode({dimension_key(name): value for name, value in by.items()})


def dimension_key(name: str) -> str:
    """A dimension in an address; one that is called as something else there gets a prefix."""
    return f"by.{name}" if name in _TAKEN or name.startswith("by.") else name


_TAKEN = frozenset(("text", "sort", "outcome", "cause", "lost_in", "moved", "judges", "repeats", "answers"))


def figure_label(figure: Figure, declared: DeclaredMetric | None, noun: Noun) -> str:
    """A figure in words."""
    words = metric_label(declared, noun) if declared else figure.metric
    label = words[:1].upper() + words[1:]
    if figure.variant and declared and declared.label and not re.fullmatch(r"k\d+", figure.variant):
        label += f" ({figure.variant})"
    if figure.reduction:
        label += ", slowest 5 %" if figure.reduction == SLOWEST and figure.unit == SECONDS else f", {figure.reduction}"
    return label if figure.judge.startswith("(") else f"{label} [{figure.judge}]"


def _twins(run: Run) -> dict[tuple[str, str, str], int]:
    """Metrics whose values are the same in every conversation, by what they have in common; constants are no twins."""
    alike: dict[tuple[str, int], list[tuple[str, str, str]]] = {}
    for name in sorted(with_values(run)):
        rows = measured_columns(run, *name, columns=("value",))
        number, value = rows["number"], np.ascontiguousarray(rows["value"])
        if value.min() < value.max():
            content = hashlib.blake2b(number.tobytes())
            content.update(value.tobytes())
            alike.setdefault((content.hexdigest(), len(number)), []).append(name)
    shared = [names for names in alike.values() if len(names) > 1]
    return {name: number for number, names in enumerate(shared) for name in names}


def _worst(run: Run) -> dict[str, list[Example]]:
    """Of each metric with a direction, the conversations with the worst values."""
    examples: dict[str, list[tuple[int, str]]] = {}
    for headline in headlines(run.summary):
        if headline.better in _BETTER:
            rows = measured_columns(run, *headline[:3], columns=("value",))
            number, value = rows["number"], rows["value"]
            worst = least(value if headline.better == HIGHER else -value, WORST)
            texts = [value_text(one, headline.unit) for one in value[worst].tolist()]
            examples[headline.key] = list(zip(number[worst].tolist(), texts, strict=True))
    ids = names(run, [number for rows in examples.values() for number, _ in rows])
    return {key: [Example(ids[number], text) for number, text in rows] for key, rows in examples.items() if rows}
