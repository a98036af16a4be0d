"""The one model of gates: a rule on a figure is passed, failed or undetermined, with the reason.

Targets over the figures of a run, flows against a baseline and results of benchmarks are rules on figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Literal, NamedTuple, Protocol

import msgspec

from convoscope.metrics.declaration import HIGHER, Better, Target
from convoscope.statistics.intervals import Interval

Outcome = Literal["passed", "failed", "undetermined"]
PASSED: Outcome = "passed"
FAILED: Outcome = "failed"
UNDETERMINED: Outcome = "undetermined"
EXIT_CODES: dict[Outcome, int] = {PASSED: 0, FAILED: 1, UNDETERMINED: 3}

NOTHING_TO_CHECK = "nothing to check"


class GateFigure(NamedTuple):
    """A figure as a gate sees it."""

    value: float | None
    doubt: str = ""
    """Why it has no value, or why its value allows no verdict."""
    caveat: str = ""
    """Why it cannot pass, though it can fail: it was measured on less than its baseline."""
    worst_case: float | None = None
    """Its value with the least that every sample that failed could have given."""
    if_lost: str = "had they found nothing"
    """What that least is."""
    interval: Interval | None = None
    digits: int = 4

    def text(self, value: float) -> str:
        """A value with as many digits as the verdict needs."""
        return f"{value:.{self.digits}f}"


class Rule(Protocol):
    """What a value must be. A new kind of gate is a new rule."""

    @property
    def doubt(self) -> str:
        """Why nothing can be checked against the rule; empty where it can."""

    def is_met_by(self, value: float) -> bool:
        """Whether a value obeys the rule."""

    def reason(self, figure: GateFigure, value: float) -> str:
        """The value, and what the rule asks for."""


class Limit(NamedTuple):
    """The value must be on the right side of a limit."""

    target: Target
    name: str = ""
    """What people call the limit, such as floor."""
    doubt: str = ""

    def is_met_by(self, value: float) -> bool:
        """Whether a value is on the right side."""
        return self.target.is_met_by(value)

    def reason(self, figure: GateFigure, value: float) -> str:
        """`0.7000 is not > 0.8`, `5.00 is below the floor of 6`."""
        comparison, limit = self.target.comparison, f"{self.target.value:g}"
        met = self.is_met_by(value)
        if self.name:
            side = "below" if comparison.startswith(">") else "above"
            return f"{figure.text(value)} is {'not ' if met else ''}{side} the {self.name} of {limit}"
        return f"{figure.text(value)} {'' if met else 'is not '}{comparison} {limit}"


class NotWorse(NamedTuple):
    """The value must not lose more against a baseline than is allowed: so much, or such a share of the baseline."""

    baseline: GateFigure
    allowed: float
    better: Better = HIGHER
    is_share: bool = False

    @property
    def doubt(self) -> str:
        """Why the baseline allows no verdict."""
        return f"baseline {self.baseline.doubt}" if self.baseline.doubt or self.baseline.value is None else ""

    def is_met_by(self, value: float) -> bool:
        """Whether the loss is allowed. Decimals as they are written: 0.72 is 10 % below 0.8."""
        allowed = Decimal(str(self.allowed))
        return self._loss(value) <= (allowed * abs(self._before) if self.is_share else allowed)

    def reason(self, figure: GateFigure, value: float) -> str:
        """`7.00, baseline 8.00`, `7.00, down 2.00 from 9.00 (allowed 1)`."""
        now, before = figure.text(value), figure.text(float(self._before))
        if self.is_met_by(value):
            return f"{now}, baseline {before}"
        allowed = f"{100 * self.allowed:g} %" if self.is_share else f"{self.allowed:g}"
        direction = "down" if self.better == HIGHER else "up"
        return f"{now}, {direction} {figure.text(float(self._loss(value)))} from {before} (allowed {allowed})"

    @property
    def _before(self) -> Decimal:
        return Decimal(str(self.baseline.value))

    def _loss(self, value: float) -> Decimal:
        gain = Decimal(str(value)) - self._before
        return -gain if self.better == HIGHER else gain


class RuleVerdict(NamedTuple):
    """What came of one rule. `sure` where the whole 95 % interval is on the same side of it."""

    outcome: Outcome
    reason: str
    sure: bool = False


def evaluate(figure: GateFigure, *rules: Rule) -> RuleVerdict:
    """What came of rules on one figure: a failure decides, then what is undetermined, then the last rule."""
    verdicts = [_verdict(figure, rule) for rule in rules]
    outcome = overall(verdict.outcome for verdict in verdicts)
    deciding = [verdict for verdict in verdicts if verdict.outcome == outcome]
    return deciding[-1] if outcome == PASSED else deciding[0]


def _verdict(figure: GateFigure, rule: Rule) -> RuleVerdict:
    value = figure.value
    if value is None or figure.doubt:
        return RuleVerdict(UNDETERMINED, figure.doubt)
    if rule.doubt:
        return RuleVerdict(UNDETERMINED, f"{figure.text(value)}; {rule.doubt}")
    met, interval = rule.is_met_by(value), figure.interval
    if met and figure.worst_case is not None and not rule.is_met_by(figure.worst_case):
        worst = figure.text(figure.worst_case)
        return RuleVerdict(UNDETERMINED, f"samples failed: {figure.if_lost}, it would be {worst}")
    if met and figure.caveat:
        return RuleVerdict(UNDETERMINED, figure.caveat)
    # Both ends on one side: so is all between them.
    sure = interval is not None and rule.is_met_by(interval.lowest) == rule.is_met_by(interval.highest) == met
    return RuleVerdict(PASSED if met else FAILED, rule.reason(figure, value), sure)


ACROSS = "the interval reaches across it"
NO_INTERVAL = "there is no interval"


def only_if_sure(verdict: RuleVerdict, interval: Interval | None) -> RuleVerdict:
    """The verdict where the interval decides: undetermined, unless the whole of it is on one side of the rule."""
    if verdict.sure or verdict.outcome == UNDETERMINED:
        return verdict
    return RuleVerdict(UNDETERMINED, ACROSS if interval is not None else NO_INTERVAL)


def doubt_text(doubt: str, trust_judges: bool) -> str:
    """What a gate says of a judge: `the judge openai/x@1 is not calibrated (--trust-judge decides it anyway)`."""
    return doubt and f"{doubt} ({'--trust-judge' if trust_judges else '--trust-judge decides it anyway'})"


def counts_as(outcome: Outcome, when_undetermined: str) -> Outcome | None:
    """What an outcome counts as for a gate. None: it is shown, and does not count."""
    if outcome != UNDETERMINED:
        return outcome
    return {"stop": UNDETERMINED, "fail": FAILED, "warn": None}[when_undetermined]


class SampleDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The mean difference over the samples that two results share, after minus before, with its 95 % interval."""

    difference: float
    low: float | None
    high: float | None
    n: int
    p: float
    """How likely so large a difference is by chance; not corrected for the number of figures."""


class GateCheck(msgspec.Struct, frozen=True, rename={"reason": "words"}):
    """What a gate says of one figure."""

    metric: str
    outcome: Outcome
    value: float | None
    limit: float | None
    reason: str
    by_sample: SampleDifference | None = None
    """Beside the verdict, where both results keep a value of each sample."""


class Gate(msgspec.Struct, frozen=True, rename={"reason": "words"}):
    """What a gate says of all its figures."""

    outcome: Outcome
    checks: Sequence[GateCheck]
    reason: str = ""


def gate_of(checks: Sequence[GateCheck], refusal: str = "") -> Gate:
    """The gate of some checks. A refusal says why it cannot pass."""
    reason = refusal or ("" if checks else NOTHING_TO_CHECK)
    return Gate(overall((check.outcome for check in checks), can_pass=not refusal), checks, reason)


def overall(outcomes: Iterable[Outcome], *, can_pass: bool = True) -> Outcome:
    """One outcome of many: a failure decides, then what is undetermined. Nothing to check is undetermined."""
    outcomes = set(outcomes)
    if FAILED in outcomes:
        return FAILED
    return PASSED if outcomes == {PASSED} and can_pass else UNDETERMINED
