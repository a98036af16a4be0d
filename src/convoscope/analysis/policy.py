"""A run against a policy: each rule is passed, failed or undetermined, and so is the whole.

A rule on a change is decided by the 95 % interval of the difference, so that noise neither passes nor fails:

| outcome | when |
|---|---|
| passed | the whole interval is within what is allowed |
| failed | the difference is beyond what is allowed, and clearly worse than no change at all. Where the rule asks for an
  improvement, clearly less than that |
| undetermined | neither: the text says about how many conversations would decide it |

"Clearly" is corrected by Holm for the number of such rules in the policy, so that more rules are not more false alarms.
A pass needs no correction: all rules have to pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Literal, NamedTuple

import msgspec

from convoscope.analysis.compare.make import compare_runs
from convoscope.analysis.compare.model import ComparedFigure, RunComparison
from convoscope.analysis.compare.words import difference_text, rounded, signed_text
from convoscope.analysis.gate import (
    FAILED,
    NO_INTERVAL,
    PASSED,
    UNDETERMINED,
    GateFigure,
    Limit,
    Outcome,
    RuleVerdict,
    counts_as,
    evaluate,
    overall,
)
from convoscope.analysis.targets import (
    DECLARED,
    GIVEN,
    Check,
    GivenTarget,
    Source,
    figure_units,
    judge_doubt,
    run_checks,
    target_text,
    too_little,
)
from convoscope.analysis.words import NOTHING, counted, name_text, number_text, value_text
from convoscope.errors import RunError
from convoscope.metrics.declaration import Target
from convoscope.runs.baseline import SET, baseline_path, open_baseline
from convoscope.runs.policy import ChangeTarget, Policy, resolve
from convoscope.runs.run import Run
from convoscope.runs.targets import WhenUndetermined
from convoscope.settings_file import FoundSettings
from convoscope.statistics.intervals import Interval
from convoscope.statistics.summary import Figure

LEVEL = 0.025
"""How likely a rule may fail by chance: what lies beyond one end of a 95 % interval."""
NO_BASELINE = f"there is no baseline; {SET}"
NOT_COMPARED = "its change is not compared: only headlines are, and the p95 of waits"
NOT_SCORED = "the run was scored without it"
_MOST = 10_000_000


class RuleResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of one rule."""

    figure: str
    """With its group, reduction and judge: `outcome.success[flow=booking]`."""
    kind: Literal["figure", "change"] = "figure"
    limit: str
    """`≥ 80.0 %`, `≤ +2.0 pp`."""
    outcome: Outcome
    reason: str = ""
    """Why it is undetermined; of the others, why that is not sure."""
    value: float | None = None
    """Of a change: the difference."""
    low: float | None = None
    high: float | None = None
    n: int = 0
    """Conversations that were measured; of a change, those that are compared."""
    coverage: float | None = None
    unit: str = ""
    when_undetermined: WhenUndetermined = "stop"
    source: Source = GIVEN
    rule: str = ""
    """As the policy has it; empty for a target that is not of the policy."""

    @property
    def name(self) -> str:
        """`outcome.success`, `outcome.success change`."""
        return f"{self.figure} change" if self.kind == "change" else self.figure

    @property
    def is_of_run(self) -> bool:
        """It is on a figure that the run has, and not on a change."""
        return self.kind == "figure" and bool(self.unit)

    @property
    def counts_as(self) -> Outcome | None:
        """What it counts as for the whole. None: it is shown, and does not count."""
        return counts_as(self.outcome, self.when_undetermined)

    @property
    def value_text(self) -> str:
        """The value with its 95 % interval; of a change, the difference with its sign."""
        if self.value is None:
            return NOTHING
        is_change = self.kind == "change"
        shown = difference_text(self.value, self.unit) if is_change else value_text(self.value, self.unit)
        if self.low is None and self.high is None:
            return shown
        text = signed_text if is_change else number_text
        ends = [NOTHING if end is None else text(end, self.unit) for end in (self.low, self.high)]
        return f"{shown} ({' to '.join(ends)})"


class PolicyGate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a policy says of a run."""

    run: str
    against: str = ""
    """The baseline, as a command names it."""
    outcome: Outcome
    rules: tuple[RuleResult, ...]
    notes: tuple[str, ...] = ()
    """Why it cannot pass."""
    sentences: tuple[str, ...] = ()
    """What the comparison with the baseline comes to."""


class Baseline(NamedTuple):
    """What a run is held against: an earlier run, and the comparison with it."""

    run: Run
    comparison: RunComparison


class HeldRun(NamedTuple):
    """A run held against its targets, and against a policy if there is one."""

    targets: tuple[GivenTarget, ...]
    """Those that were given, and those of the policy on figures, as reports take them."""
    checks: list[Check]
    gate: PolicyGate | None = None


def hold(
    run: Run,
    given: Sequence[str] = (),
    policy: FoundSettings | None = None,
    settings: FoundSettings | None = None,
    against: Path | Baseline | None = None,
) -> HeldRun:
    """Hold a run against targets that were given and a policy; against a baseline, if a change is asked for.

    The baseline is `against`, else what the settings name. Where theirs cannot be opened, changes are undetermined.
    """
    if policy is None:
        return HeldRun(tuple(given), run_checks(run, given))
    resolved = resolve(policy, figure_units(run.summary))
    targets: tuple[GivenTarget, ...] = (*given, *resolved.targets)
    checks = run_checks(run, targets)
    baseline, why = (against, "") if isinstance(against, Baseline) else (None, "")
    if isinstance(against, Path):
        baseline = compare_with(run, open_baseline(against) if against.is_file() else Run.open(against))
    elif resolved.changes and baseline is None:
        try:
            baseline = compare_with(run, open_baseline(baseline_path(settings or policy)))
        except RunError as error:
            why = "; ".join(filter(None, (error.message, error.hint)))
    return HeldRun(targets, checks, check_policy(run, resolved, checks, baseline, why))


def compare_with(run: Run, baseline: Run) -> Baseline:
    """A run compared with its baseline. A run is not held against itself: that would pass whatever happens."""
    if baseline.receipt.depends_on == run.receipt.depends_on:
        raise RunError(f"{run.folder} is the baseline itself: nothing is compared", hint="score other logs")
    return Baseline(baseline, compare_runs([baseline, run]))


def check_policy(
    run: Run, policy: Policy, checks: Sequence[Check], baseline: Baseline | None, no_baseline: str = NO_BASELINE
) -> PolicyGate:
    """Hold a run against a policy. `checks` are the targets on its figures: `run_checks` with those of the policy."""
    results = [_of_check(check) for check in checks if check.source != DECLARED]
    results += [
        RuleResult(
            figure=rule.text.rpartition(f" {rule.parsed.comparison} ")[0].removesuffix(" change"),
            kind="change" if rule.is_change else "figure",
            limit=f"{rule.parsed.comparison} {rule.parsed.number}{rule.parsed.unit}",
            outcome=UNDETERMINED,
            reason=NOT_SCORED,
            when_undetermined=rule.requires.when_undetermined,
            rule=rule.text,
        )
        for rule in policy.absent
    ]
    results += _changes(run, policy.changes, baseline, no_baseline)
    order = {text: position for position, text in enumerate(policy.texts)}
    results.sort(key=lambda result: order.get(result.rule, -1))
    outcomes = [outcome for result in results if (outcome := result.counts_as) is not None]
    receipt = run.receipt
    notes = () if receipt.valid else (f"the run is marked invalid: {receipt.invalid_reason}",)
    if results and not outcomes:
        notes = (*notes, "every rule is undetermined, and none of them counts: nothing was decided")
    return PolicyGate(
        run=str(run.folder),
        against="" if baseline is None else str(baseline.run.folder),
        outcome=FAILED if receipt.audit.get("disagreements") else overall(outcomes, can_pass=receipt.valid),
        rules=tuple(results),
        notes=notes,
        sentences=() if baseline is None else tuple(one.text for one in baseline.comparison.sentences),
    )


def _of_check(check: Check) -> RuleResult:
    figure, interval = check.figure, check.figure.interval
    return RuleResult(
        figure=check.name,
        limit=target_text(check.target, figure.unit),
        outcome=check.verdict.outcome,
        reason=check.reason,
        value=figure.value,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        n=figure.samples_measured,
        coverage=figure.coverage,
        unit=figure.unit,
        when_undetermined=check.requires.when_undetermined,
        source=check.source,
        rule=check.requires.rule,
    )


class _Change(NamedTuple):
    """A rule on a change with what it is about: `compared` is None where there is nothing to compare."""

    rule: ChangeTarget
    compared: ComparedFigure | None
    target: Target
    """With the limit as an amount."""
    doubt: str = ""

    @property
    def sign(self) -> int:
        """1 where the change must be at least the limit, -1 where at most."""
        return 1 if self.target.comparison.startswith(">") else -1

    @property
    def boundary(self) -> float:
        """What a clear failure is below, in the direction of the rule: no change, or the improvement asked for."""
        return max(0.0, self.sign * self.target.value)

    @property
    def worst_end(self) -> float | None:
        """The end of the interval that may break the rule."""
        return None if self.compared is None else self.compared.low if self.sign > 0 else self.compared.high

    @property
    def best_end(self) -> float | None:
        return None if self.compared is None else self.compared.high if self.sign > 0 else self.compared.low


def _changes(run: Run, rules: Sequence[ChangeTarget], baseline: Baseline | None, no_baseline: str) -> list[RuleResult]:
    changes = [change for rule in rules for change in _compared(run, rule, baseline, no_baseline)]
    tested = [change for change in changes if not change.doubt and change.rule.requires.decide == "interval"]
    clear = _clear(tested)
    return [_of_change(run, change, change_verdict(change, is_clear=change in clear)) for change in changes]


def _compared(run: Run, rule: ChangeTarget, baseline: Baseline | None, no_baseline: str) -> list[_Change]:
    """The compared figures that a rule means: one, or one of each judge."""
    if baseline is None:
        return [_Change(rule, None, rule.target, no_baseline)]
    if not baseline.run.receipt.valid:
        return [_Change(rule, None, rule.target, "the baseline is marked invalid")]
    meant = [one for one in baseline.comparison.figures if one.metric.partition(" [")[0] == rule.figure]
    if not meant:
        return [_Change(rule, None, rule.target, NOT_COMPARED)]
    return [_with_limit(rule, one, _doubt(run, rule, one, baseline)) for one in meant]


def _with_limit(rule: ChangeTarget, compared: ComparedFigure, doubt: str) -> _Change:
    if not rule.is_share:
        return _Change(rule, compared, rule.target, doubt)
    if not compared.before:
        return _Change(rule, compared, rule.target, doubt or "the baseline is 0, and a share of it is no limit")
    limit = Target(rule.target.comparison, rule.target.value * abs(compared.before))
    return _Change(rule, compared, limit, doubt)


def _doubt(run: Run, rule: ChangeTarget, compared: ComparedFigure, baseline: Baseline) -> str:
    """Why a difference allows no verdict."""
    if compared.difference is None or compared.finding == "not_compared":
        return compared.remark or "it was not compared"
    if compared.doubt:
        return compared.doubt
    if compared.n < rule.requires.min_n:
        return f"{compared.n:,} compared, min_n is {rule.requires.min_n:,}"
    coverage = rule.requires._replace(min_n=0)
    for side, prefix in ((run, ""), (baseline.run, "baseline ")):
        figure = _figure(side, compared.metric)
        if figure is not None and (doubt := too_little(figure, coverage)):
            return prefix + doubt
    figure = _figure(run, compared.metric)
    return judge_doubt(run.summary, figure) if figure is not None and not run.trusts_judges else ""


def _figure(run: Run, name: str) -> Figure | None:
    return next((figure for figure in run.summary.figures if name_text(figure) == name), None)


def _clear(changes: Sequence[_Change]) -> list[_Change]:
    """The changes that are clearly beyond their boundary, by Holm over all rules on changes."""
    chances = sorted(((_chance(change), change) for change in changes), key=lambda pair: pair[0])
    clear = []
    for rank, (chance, change) in enumerate(chances):
        if chance * (len(chances) - rank) > LEVEL:
            break
        clear.append(change)
    return clear


def _chance(change: _Change) -> float:
    """How likely so bad a difference is, if the change were at its boundary: one-sided."""
    compared = change.compared
    if compared is None or compared.difference is None:
        return 1.0
    seen = change.sign * compared.difference
    if seen >= change.boundary:
        return 1.0
    if not change.boundary and compared.p is not None:
        return compared.p / 2
    if change.best_end is None:
        return 1.0
    spread = (change.sign * change.best_end - seen) / NormalDist().inv_cdf(1 - LEVEL)
    return NormalDist().cdf((seen - change.boundary) / spread) if spread > 0 else 0.0


def change_verdict(change: _Change, *, is_clear: bool) -> RuleVerdict:
    """What came of a rule on a change."""
    compared = change.compared
    if compared is None or change.doubt or compared.difference is None:
        return RuleVerdict(UNDETERMINED, change.doubt)
    interval = None
    if compared.low is not None or compared.high is not None:
        interval = Interval(low=compared.low, high=compared.high, method="", clusters=compared.n)
    verdict = evaluate(GateFigure(compared.difference, interval=interval), Limit(change.target))
    if change.rule.requires.decide == "value":
        return verdict
    if (verdict.outcome == PASSED and verdict.sure) or (verdict.outcome == FAILED and is_clear):
        return RuleVerdict(verdict.outcome, verdict.reason, sure=True)
    within = verdict.outcome == PASSED
    what = "within what is allowed, but not surely" if within else "beyond what is allowed, but not clearly"
    return RuleVerdict(UNDETERMINED, what + _more(change, compared, within=within))


def _more(change: _Change, compared: ComparedFigure, *, within: bool) -> str:
    """`; about 1,900 conversations a side would decide it, if the difference stays`."""
    sign, seen = change.sign, change.sign * (compared.difference or 0.0)
    end = change.worst_end if within else change.best_end
    if end is None:
        return "; the interval is open" if compared.low is not None or compared.high is not None else f"; {NO_INTERVAL}"
    limit = sign * change.target.value if within else change.boundary
    if seen == limit or not compared.n:
        return ""
    needed = compared.n * ((sign * end - seen) / (limit - seen)) ** 2
    noun = "scenario" if compared.paired else "conversation"
    number = (
        f"about {counted(rounded(math.ceil(round(needed, 6))), noun)}"
        if needed <= _MOST
        else f"more than {_MOST:,} {noun}s"
    )
    return f"; {number}{'' if compared.paired else ' a side'} would decide it, if the difference stays"


def _of_change(run: Run, change: _Change, verdict: RuleVerdict) -> RuleResult:
    rule, compared = change.rule, change.compared
    unit = compared.unit if compared is not None else _unit(run, rule.figure)
    limit = f"{100 * rule.target.value:+g} %" if rule.is_share else difference_text(rule.target.value, unit)
    sign = {">=": "≥", "<=": "≤"}.get(rule.target.comparison, rule.target.comparison)
    figure = None if compared is None else _figure(run, compared.metric)
    return RuleResult(
        figure=rule.figure if compared is None else compared.metric,
        kind="change",
        limit=f"{sign} {limit}".strip(),
        outcome=verdict.outcome,
        reason=verdict.reason if verdict.outcome == UNDETERMINED else _trusted(run, figure),
        value=None if compared is None else compared.difference,
        low=None if compared is None else compared.low,
        high=None if compared is None else compared.high,
        n=0 if compared is None else compared.n,
        coverage=None if figure is None else figure.coverage,
        unit=unit,
        when_undetermined=rule.requires.when_undetermined,
        rule=rule.requires.rule,
    )


def _trusted(run: Run, figure: Figure | None) -> str:
    """Why the judge could not decide it, where judges are trusted."""
    return judge_doubt(run.summary, figure, trust_judges=True) if figure is not None and run.trusts_judges else ""


def _unit(run: Run, figure: str) -> str:
    declared = run.summary.by_key.get(figure.partition(" ")[0])
    return declared.unit if declared is not None else ""
