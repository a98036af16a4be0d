"""Targets over the figures of a run: which are met, which are missed, which are undetermined.

A metric declares a target for its headline, a run keeps those it was scored with, and a user gives more. For the same
figure, the latter replaces the former.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import isclose
from typing import Literal, NamedTuple

from msgspec.structs import replace

from convoscope.analysis.gate import (
    ACROSS,
    FAILED,
    NO_INTERVAL,
    PASSED,
    UNDETERMINED,
    GateFigure,
    Limit,
    Outcome,
    RuleVerdict,
    counts_as,
    doubt_text,
    evaluate,
    only_if_sure,
)
from convoscope.analysis.words import counted, name_text, reason_text, value_text
from convoscope.errors import RunError, UsageError
from convoscope.metrics.declaration import SHARE, Target
from convoscope.runs.reliability import missing_verdicts, reliability
from convoscope.runs.run import Run
from convoscope.runs.summary import NotMeasured, Summary, empty_figure
from convoscope.runs.targets import (
    ANY,
    By,
    FigureTarget,
    Requirements,
    figure_names,
    given_target,
    group_text,
    kept_target,
)
from convoscope.scores.judges import kind_of, speakers
from convoscope.scores.observation import ERROR, UNMEASURED
from convoscope.statistics.summary import Figure

LABELS: dict[Outcome, str] = {PASSED: "met", FAILED: "missed", UNDETERMINED: UNDETERMINED}
"""What people say of a target that passed or failed."""

Source = Literal["declared", "recorded", "given"]
DECLARED: Source = "declared"
RECORDED: Source = "recorded"
GIVEN: Source = "given"

_JUDGES = ("model", "external")
_SIGNS = {">": ">", ">=": "≥", "<": "<", "<=": "≤"}


class Check(NamedTuple):
    """One target over one figure of a summary."""

    figure: Figure
    target: Target
    verdict: RuleVerdict
    source: Source = DECLARED
    by: By = ()
    """The group that the figure is of; empty for all conversations."""
    requires: Requirements = ANY
    trusted: str = ""
    """Why the judge behind it could not decide it, where it does because judges are trusted."""

    @property
    def counts_as(self) -> Outcome | None:
        """What it counts as for the exit code. None: it is shown, and does not count."""
        return None if self.source == DECLARED else counts_as(self.verdict.outcome, self.requires.when_undetermined)

    @property
    def name(self) -> str:
        """`tools.success`, `state.stall[flow=booking, state=greet]`."""
        return name_text(self.figure) + group_text(self.by)

    @property
    def label(self) -> str:
        """`met`, `missed` or `undetermined`."""
        return LABELS[self.verdict.outcome]

    @property
    def result(self) -> str:
        """`missed`, `met, but the interval reaches across it`, `undetermined: no ground truth`."""
        if self.verdict.outcome == UNDETERMINED:
            return f"{self.label}: {self.reason}"
        return f"{self.label}, but {self.reason}" if self.reason else self.label

    @property
    def reason(self) -> str:
        """Why it is undetermined; of the others, why that is not sure, and what of it rests on trust."""
        if self.verdict.outcome == UNDETERMINED:
            return self.verdict.reason
        unsure = "" if self.verdict.sure else NO_INTERVAL if self.figure.interval is None else ACROSS
        return "; ".join(filter(None, (unsure, self.trusted)))

    @property
    def text(self) -> str:
        """`≥ 90.0 %: missed`."""
        return f"{target_text(self.target, self.figure.unit)}: {self.result}"


GivenTarget = str | FigureTarget
"""A target as a user writes it, or as a policy has it."""


def check(figure: Figure, target: Target, doubt: str = "", requires: Requirements = ANY) -> RuleVerdict:
    """Compare one figure with one target. Without a value, or with a doubt, nothing is met, and nothing is missed."""
    if figure.value is None:
        doubt = doubt or reason_text(figure.reason or "no_value")
    doubt = doubt or too_little(figure, requires) or _undecided(figure, target)
    verdict = evaluate(GateFigure(figure.value, doubt, interval=figure.interval), Limit(target))
    return only_if_sure(verdict, figure.interval) if requires.decide == "interval" else verdict


def too_little(figure: Figure, requires: Requirements) -> str:
    """Why a figure was measured on less than a policy asks for; empty where it was not."""
    if figure.samples_measured < requires.min_n:
        return f"{figure.samples_measured:,} measured, min_n is {requires.min_n:,}"
    coverage = min(figure.coverage or 0.0, figure.subject_coverage)
    if coverage < requires.min_coverage:
        return f"{100 * coverage:.4g} % covered, min_coverage is {100 * requires.min_coverage:.4g} %"
    return ""


def _undecided(figure: Figure, target: Target) -> str:
    """Why a judge's figure decides nothing: verdicts that are undetermined or missing could be on either side."""
    if figure.value is None or figure.bounds is None or kind_of(figure.judge) not in _JUDGES:
        return ""
    low, high = figure.bounds
    if target.is_met_by(low) == target.is_met_by(high):
        return ""
    ends = f"{value_text(low, figure.unit)} and {value_text(high, figure.unit)}"
    return f"with the verdicts that are missing, it is between {ends}"


def checks(summary: Summary, given: Sequence[GivenTarget] = (), *, trust_judges: bool = False) -> list[Check]:
    """Every target over the figures of a summary: the declared ones, and those given as text.

    Where judges are on a panel, the panel's figure is compared with the target; without a panel, each judge's is.
    What a judge says that is not calibrated decides nothing, unless judges are trusted.
    """
    return _checks(summary, [(target, GIVEN) for target in _given(summary, given)], trust_judges)


def run_checks(run: Run, given: Sequence[GivenTarget] = ()) -> list[Check]:
    """The same over a run, with the targets that it was scored with."""
    fresh = _given(run.summary, given)
    replaced = {(target.figure, target.by) for target in fresh}
    recorded = [kept_target(text) for text in run.receipt.config.get("targets", ())]
    sources = [(target, RECORDED) for target in recorded if (target.figure, target.by) not in replaced]
    return _checks(run.summary, [*sources, *((target, GIVEN) for target in fresh)], run.trusts_judges)


def tally_text(checks: Sequence[Check]) -> str:
    """`3 targets: 1 met, 2 missed`; without a target, that nothing was checked."""
    if not checks:
        return "no target: nothing was checked"
    counts = Counter(check.label for check in checks)
    outcomes = ", ".join(f"{counts[label]:,} {label}" for label in LABELS.values() if counts[label])
    return f"{counted(len(checks), 'target')}: {outcomes}"


def verdict_text(verdict: RuleVerdict, figure: Figure) -> str:
    """`met`, `missed, too close`, `met, no interval`, `undetermined`: the exit code, and how sure it is."""
    doubt = ", too close" if figure.interval is not None else ", no interval"
    return LABELS[verdict.outcome] + ("" if verdict.sure or verdict.outcome == UNDETERMINED else doubt)


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


def figure_units(summary: Summary) -> dict[str, str]:
    """The figures that a target can name, each with its unit."""
    return {name: declared.unit for declared in summary.declared for name in figure_names(declared)}


def _given(summary: Summary, given: Sequence[GivenTarget]) -> list[FigureTarget]:
    units = figure_units(summary)
    targets = [given_target(target, units) if isinstance(target, str) else target for target in given]
    for target, source in zip(targets, given, strict=True):
        if isinstance(source, str) and (doubt := _no_groups(summary, target.by)):
            known = "; ".join(map(", ".join, sorted(_groupings(summary)))) or "no groups at all"
            raise UsageError(f"{target.text!r}: {doubt}", hint=f"it has {known}")
    return list(dict.fromkeys(targets))


def _groupings(summary: Summary) -> set[tuple[str, ...]]:
    return {
        tuple(sorted(names))
        for names in (*(one.by for one in summary.groups), *(one.by for one in summary.small_groups))
    }


def _no_groups(summary: Summary, by: By) -> str:
    """Why there cannot be a group; empty where the run has groups by these dimensions, or none is asked for."""
    names = tuple(name for name, _ in by)
    return f"the run has no groups by {' and '.join(names)}" if by and names not in _groupings(summary) else ""


def _checks(summary: Summary, given: Sequence[tuple[FigureTarget, Source]], trust_judges: bool) -> list[Check]:
    named = {target.figure for target, _ in given if not target.by}
    declared = [
        (FigureTarget(metric.metric, metric.target), DECLARED)
        for metric in summary.declared
        if metric.target is not None and metric.metric not in named
    ]
    positions = {name_text(figure): position for position, figure in enumerate(summary.figures)}
    checks = [
        _check(summary, figure, wanted, source, trust_judges)
        for wanted, source in (*declared, *given)
        for figure in _meant(summary, wanted)
    ]
    return sorted(checks, key=lambda check: positions.get(name_text(check.figure), len(positions)))


def _check(summary: Summary, figure: Figure, wanted: FigureTarget, source: Source, trust_judges: bool) -> Check:
    doubt = judge_doubt(summary, figure, trust_judges=trust_judges)
    other = missing_verdicts(summary, figure, wanted.target)
    # A judge that gave no value is not made to decide by any trust: the reason is that of the value.
    untrusted = "" if trust_judges or figure.value is None else doubt
    is_open = _no_groups(summary, wanted.by) or untrusted or other
    verdict = check(figure, wanted.target, is_open, wanted.requires)
    return Check(figure, wanted.target, verdict, source, wanted.by, wanted.requires, doubt if trust_judges else "")


def judge_doubt(summary: Summary, figure: Figure, *, trust_judges: bool = False) -> str:
    """Why the judge behind a figure cannot decide a gate, or what trust overrides; empty where it can decide."""
    judged = reliability(summary, figure)
    return doubt_text(judged.doubt if judged is not None else "", trust_judges)


def _meant(summary: Summary, target: FigureTarget) -> list[Figure]:
    """The figures that a target names: the panel's where there is one, else every judge's; of people and of models."""
    figures = _of_group(summary, target) if target.by else summary.figures
    named = [figure for figure in figures if figure_name(figure) == target.figure]
    who = speakers(figure.judge for figure in named)
    return [figure for figure in named if figure.judge in who] or _missing(figures, target.figure)


def _of_group(summary: Summary, target: FigureTarget) -> Sequence[Figure]:
    """The figures of a group. One that the run does not have has no value: its target must not vanish with it."""
    for group in summary.groups:
        if group.by == dict(target.by):
            empty = [empty_figure(summary.by_key[key], one) for one in group.not_measured for key in one.metrics]
            keys = {figure.key for figure in (*group.metrics, *empty)}
            # What has no value in the whole run is not repeated in each group.
            nowhere = [figure for figure in summary.figures if figure.value is None and figure.key not in keys]
            return [*group.metrics, *empty, *nowhere]
    key = target.figure.partition(" ")[0]
    absent = NotMeasured(metrics=[key], status=UNMEASURED, reason="no_such_group", samples_total=0)
    return [empty_figure(summary.by_key[key], absent)]


def _missing(figures: Sequence[Figure], name: str) -> list[Figure]:
    """A figure that is missing, because its metric has no value or its reduction failed.

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
