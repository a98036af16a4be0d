"""Targets over the figures of a run: which are met, which are missed, which nobody can tell.

A target comes from three sides: a metric declares one for its headline, a run keeps those it was
scored with, and a user gives more. For one figure, the latter replaces the former.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isclose
from typing import Literal, NamedTuple

from msgspec.structs import replace

from convoscope.analysis.words import counted, name_text, reason_text, value_text
from convoscope.errors import RunError, UsageError
from convoscope.metrics.declaration import SHARE, Target
from convoscope.runs.run import Run
from convoscope.runs.summary import NotMeasured, Summary, empty_figure
from convoscope.runs.targets import By, FigureTarget, figure_names, given_target, group_text, kept_target
from convoscope.scores.observation import ERROR, UNMEASURED
from convoscope.statistics.summary import Figure

Outcome = Literal["met", "missed", "undetermined"]
MET: Outcome = "met"
MISSED: Outcome = "missed"
UNDETERMINED: Outcome = "undetermined"

Source = Literal["declared", "recorded", "given"]
DECLARED: Source = "declared"
RECORDED: Source = "recorded"
GIVEN: Source = "given"

_SIGNS = {">": ">", ">=": "≥", "<": "<", "<=": "≤"}


class TargetVerdict(NamedTuple):
    """What came of a target. `sure` where the whole 95 % interval is on the same side of it."""

    outcome: Outcome
    sure: bool
    words: str


class Check(NamedTuple):
    """One target over one figure of a summary."""

    figure: Figure
    target: Target
    verdict: TargetVerdict
    source: Source = DECLARED
    by: By = ()
    """The group that the figure is of; none for all conversations."""

    @property
    def name(self) -> str:
        """`tools.success`, `state.stall[flow=booking, state=greet]`."""
        return name_text(self.figure) + group_text(self.by)

    @property
    def text(self) -> str:
        """`≥ 90.0 %: missed`."""
        return f"{target_text(self.target, self.figure.unit)}: {self.verdict.words}"


class TargetTally(NamedTuple):
    """How many targets had each outcome."""

    met: int
    missed: int
    undetermined: int


def check(figure: Figure, target: Target) -> TargetVerdict:
    """Hold one figure against one target. Without a value nothing is met, and nothing is missed."""
    value, interval = figure.value, figure.interval
    if value is None:
        return TargetVerdict(UNDETERMINED, False, f"undetermined: {reason_text(figure.reason or 'no_value')}")
    met = target.is_met_by(value)
    outcome = MET if met else MISSED
    if interval is None:
        return TargetVerdict(outcome, False, f"{outcome}, but there is no interval")
    # Both ends on one side: so is all between them.
    if target.is_met_by(interval.lowest) == target.is_met_by(interval.highest) == met:
        return TargetVerdict(outcome, True, outcome)
    return TargetVerdict(outcome, False, f"{outcome}, but the interval reaches across it")


def checks(summary: Summary, given: Sequence[str] = ()) -> list[Check]:
    """Every target over the figures of a summary: the declared ones, and those given as text.

    Where judges sat on a panel, the panel's figure is held against the target; without a panel, each judge's is.
    """
    return _checks(summary, [(one, GIVEN) for one in _given(summary, given)])


def run_checks(run: Run, given: Sequence[str] = ()) -> list[Check]:
    """The same over a run, with the targets that it was scored with."""
    fresh = _given(run.summary, given)
    replaced = {(one.figure, one.by) for one in fresh}
    recorded = [kept_target(text) for text in run.receipt.config.get("targets", ())]
    sources = [(one, RECORDED) for one in recorded if (one.figure, one.by) not in replaced]
    return _checks(run.summary, [*sources, *((one, GIVEN) for one in fresh)])


def tally(checks: Iterable[Check]) -> TargetTally:
    """Count the outcomes."""
    outcomes = [one.verdict.outcome for one in checks]
    return TargetTally(outcomes.count(MET), outcomes.count(MISSED), outcomes.count(UNDETERMINED))


def tally_text(checks: Sequence[Check]) -> str:
    """`3 targets: 1 met, 2 missed`; with no target, that nothing was checked."""
    if not checks:
        return "no target: nothing was checked"
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in tally(checks)._asdict().items() if count)
    return f"{counted(len(checks), 'target')}: {counts}"


def target_text(target: Target, unit: str) -> str:
    """`≥ 90.0 %`, `< 2.00 s`; with more digits where rounding would make another target of it."""
    shown = value_text(target.value, unit)
    number, _, after = shown.partition(" ")
    exact = 100 * target.value if unit == SHARE else target.value
    if not isclose(float(number.replace(",", "")), exact, rel_tol=1e-9):
        shown = f"{exact:.12g} {after}".strip()
    return f"{_SIGNS[target.comparison]} {shown}"


def figure_name(figure: Figure) -> str:
    """The name that a target calls a figure by: that of all its judges."""
    return f"{figure.key} {figure.reduction}" if figure.reduction else figure.key


def observed(figure: Figure, summary: Summary) -> str:
    """What the metric of a figure looks at: turn, event, item."""
    declared = summary.by_key.get(figure.key)
    return declared.observes if declared is not None else "subject"


def _given(summary: Summary, texts: Sequence[str]) -> list[FigureTarget]:
    units = {name: declared.unit for declared in summary.declared for name in figure_names(declared)}
    targets = list(dict.fromkeys(given_target(text, units) for text in texts))
    groupings = {
        tuple(sorted(by)) for by in (*(one.by for one in summary.groups), *(one.by for one in summary.small_groups))
    }
    for target in targets:
        if target.by and tuple(name for name, _ in target.by) not in groupings:
            names = " and ".join(name for name, _ in target.by)
            there = "; ".join(", ".join(one) for one in sorted(groupings)) or "no groups at all"
            raise UsageError(f"{target.text!r}: the run has no groups by {names}", hint=f"it has {there}")
    return targets


def _checks(summary: Summary, given: Sequence[tuple[FigureTarget, Source]]) -> list[Check]:
    named = {one.figure for one, _ in given if not one.by}
    everything = [*((one, DECLARED) for one in _declared(summary) if one.figure not in named), *given]
    places = {name_text(figure): place for place, figure in enumerate(summary.figures)}
    checks = [
        Check(figure, one.target, check(figure, one.target), source, one.by)
        for one, source in everything
        for figure in _meant(summary, one)
    ]
    return sorted(checks, key=lambda one: places.get(name_text(one.figure), len(places)))


def _declared(summary: Summary) -> Iterator[FigureTarget]:
    for declared in summary.declared:
        if declared.target is not None:
            yield FigureTarget(declared.metric, declared.target)


def _meant(summary: Summary, target: FigureTarget) -> list[Figure]:
    """The figures that a target names: the panel's where there is one, else every judge's."""
    figures = _of_group(summary, target) if target.by else summary.figures
    named = [figure for figure in figures if figure_name(figure) == target.figure]
    panels = [figure for figure in named if figure.judge.startswith("panel:")]
    return panels or named or _missing(figures, target.figure)


def _of_group(summary: Summary, target: FigureTarget) -> Sequence[Figure]:
    """The figures of a group. One that the run does not have has no value: its target must not vanish with it."""
    for group in summary.groups:
        if group.by == dict(target.by):
            empty = [empty_figure(summary.by_key[key], one) for one in group.not_measured for key in one.metrics]
            keys = {figure.key for figure in (*group.metrics, *empty)}
            # What has no value in the whole run is not told again in each group.
            nowhere = [figure for figure in summary.figures if figure.value is None and figure.key not in keys]
            return [*group.metrics, *empty, *nowhere]
    key = target.figure.partition(" ")[0]
    absent = NotMeasured(metrics=[key], status=UNMEASURED, reason="no_such_group", samples_total=0)
    return [empty_figure(summary.by_key[key], absent)]


def _missing(figures: Sequence[Figure], name: str) -> list[Figure]:
    """A figure that did not come, because its metric has no value or its reduction failed.

    Its target must not vanish with it.
    """
    key, _, reduction = name.partition(" ")
    missing: list[Figure] = []
    for figure in figures:
        if figure_name(figure) == key and figure.value is None:
            missing.append(replace(figure, reduction=reduction))
        elif figure_name(figure) == key:
            missing.append(
                replace(figure, reduction=reduction, status=ERROR, value=None, interval=None, reason="reduction_failed")
            )
    if not missing:
        raise RunError(f"the run has no figure {name} for its target", hint="score again")
    return missing
