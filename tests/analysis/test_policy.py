"""A run against a policy: noise neither passes nor fails, and nothing passes on nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from convoscope.analysis.compare.model import ComparedFigure, RunComparison, Side
from convoscope.analysis.policy import Baseline, PolicyGate, RuleResult, check_policy
from convoscope.analysis.targets import figure_units, run_checks
from convoscope.runs.make import make_run as score
from convoscope.runs.policy import find_policy, resolve
from convoscope.runs.run import Run
from support.generated import FEW, write_lines


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Thirty generated chats, half of them of each model."""
    folder = tmp_path_factory.mktemp("policy")
    return score(write_lines(folder / "chats.jsonl", range(30)), metrics=FEW, by=[["model"]], out=folder / "run")


def compared(
    metric: str, difference: float | None, low: float | None = None, high: float | None = None, **facts: Any
) -> ComparedFigure:
    usual: dict[str, Any] = {"unit": "share", "better": "higher", "importance": 3, "side": "run", "n": 100}
    return ComparedFigure(
        metric=metric,
        label=metric,
        finding="open",
        before=0.5,
        after=None if difference is None else 0.5 + difference,
        difference=difference,
        low=low,
        high=high,
        **usual | facts,
    )


def gate(run: Run, text: str, *figures: ComparedFigure, against: Run | None = None) -> PolicyGate:
    """What a policy says of a run, with a comparison of these figures."""
    file = run.folder.parent / "policy.toml"
    file.write_text(text)
    found = find_policy(file, None)
    assert found is not None
    policy = resolve(found, figure_units(run.summary))
    sides = (Side(name="before", conversations=30), Side(name="run", conversations=30))
    comparison = RunComparison(noun="chat", sides=sides, verdict="mixed", sentences=(), figures=figures)
    baseline = Baseline(against or run, comparison) if figures else None
    return check_policy(run, policy, run_checks(run, policy.targets), baseline)


def rule(text: str, **keys: object) -> str:
    lines = [f"{name} = {value!r}" for name, value in keys.items()]
    return "\n".join(["[[policy.target]]", f"rule = {text!r}", *lines, ""])


def changed(run: Run, text: str, figure: ComparedFigure, **keys: object) -> RuleResult:
    (result,) = gate(run, rule(text, **keys), figure).rules
    return result


class TestChanges:
    @pytest.mark.parametrize(
        ("limit", "difference", "low", "high", "outcome"),
        [
            # at most 2 points fewer: the whole interval has to be above -2
            (">= -2pp", 0.01, -0.019, 0.04, "passed"),
            (">= -2pp", 0.01, -0.02, 0.04, "passed"),  # to be at the limit is allowed
            (">= -2pp", 0.01, -0.03, 0.05, "undetermined"),
            (">= -2pp", -0.01, -0.05, 0.03, "undetermined"),
            # beyond it, and clearly worse than before
            (">= -2pp", -0.06, -0.11, -0.01, "failed"),
            (">= -2pp", -0.06, -0.08, -0.04, "failed"),
            # beyond it, and it may be noise
            (">= -2pp", -0.03, -0.09, 0.03, "undetermined"),
            # clearly worse, and within what is allowed: nothing is broken
            (">= -2pp", -0.01, -0.015, -0.005, "passed"),
            # the same for what should not rise
            ("<= +2pp", -0.01, -0.03, 0.01, "passed"),
            ("<= +2pp", 0.05, 0.01, 0.09, "failed"),
            ("<= +2pp", 0.05, -0.01, 0.11, "undetermined"),
            ("<= +2pp", 0.01, -0.01, 0.03, "undetermined"),
            # an improvement is asked for: no change at all is a failure, if that is clear
            (">= +2pp", 0.05, 0.03, 0.07, "passed"),
            (">= +2pp", 0.0, -0.01, 0.01, "failed"),
            (">= +2pp", 0.01, -0.01, 0.03, "undetermined"),
            ("<= -2pp", 0.0, -0.01, 0.01, "failed"),
            # an open end is no end
            (">= -2pp", 0.01, None, 0.04, "undetermined"),
            (">= -2pp", 0.01, -0.01, None, "passed"),
            (">= -2pp", 0.01, None, None, "undetermined"),
            (">= -2pp", -0.05, -0.09, None, "undetermined"),
        ],
    )
    def test_are_decided_by_the_interval_of_the_difference(
        self, run: Run, limit: str, difference: float, low: float | None, high: float | None, outcome: str
    ) -> None:
        result = changed(run, f"tools.success change {limit}", compared("tools.success", difference, low, high))
        assert (result.outcome, result.kind, result.value) == (outcome, "change", difference)

    @pytest.mark.parametrize(("difference", "outcome"), [(0.01, "passed"), (-0.03, "failed")])
    def test_by_the_value_where_the_policy_says_so(self, run: Run, difference: float, outcome: str) -> None:
        figure = compared("tools.success", difference, -0.2, 0.2)
        assert changed(run, "tools.success change >= -2pp", figure, decide="value").outcome == outcome

    def test_more_rules_are_not_more_false_alarms(self, run: Run) -> None:
        """Alone, p = 0.04 is below 0.05. As one of two, the smallest p has to be below 0.025: Holm."""
        first = compared("tools.success", -0.06, -0.117, -0.003, p=0.04)
        calm = compared("answer.f1", 0.0, -0.01, 0.01, p=1.0, unit="ratio")
        text = rule("tools.success change >= -2pp")
        assert gate(run, text, first, calm).outcome == "failed"
        both = gate(run, text + rule("answer.f1 change >= -0.02"), first, calm)
        assert [result.outcome for result in both.rules] == ["undetermined", "passed"]
        # p = 0.02 stays clear: 2 · 0.02 = 0.04
        clear = compared("tools.success", -0.06, -0.11, -0.01, p=0.02)
        assert gate(run, text + rule("answer.f1 change >= -0.02"), clear, calm).outcome == "failed"

    def test_what_is_open_says_how_many_would_decide_it(self, run: Run) -> None:
        # To pass, the interval may reach 3 points below +1; it reaches 6: (6 ÷ 3)² · 100 = 400.
        within = changed(run, "tools.success change >= -2pp", compared("tools.success", 0.01, -0.05, 0.07))
        assert within.reason == (
            "within what is allowed, but not surely; "
            "about 400 conversations a side would decide it, if the difference stays"
        )
        # To fail, it has to end below 0, 3 points above -3; it ends 6 above: again 400, here scenarios.
        beyond = compared("tools.success", -0.03, -0.09, 0.03, paired=True)
        assert changed(run, "tools.success change >= -2pp", beyond).reason == (
            "beyond what is allowed, but not clearly; about 400 scenarios would decide it, if the difference stays"
        )

    def test_a_share_of_the_baseline(self, run: Run) -> None:
        # the baseline is 0.5 s: a tenth of it is 0.05 s
        name = "timing.response_latency p95"
        slower = compared(name, 0.02, 0.0, 0.049, unit="s", better="lower")
        result = changed(run, f"{name} change <= 10%", slower)
        assert (result.outcome, result.limit) == ("passed", "≤ +10 %")
        assert changed(run, f"{name} change <= 10%", compared(name, 0.08, 0.06, 0.1, unit="s")).outcome == "failed"
        nothing = compared(name, 0.08, 0.06, 0.1, unit="s")
        nothing = ComparedFigure(**{one: getattr(nothing, one) for one in nothing.__struct_fields__} | {"before": 0.0})
        assert "the baseline is 0" in changed(run, f"{name} change <= 10%", nothing).reason

    def test_what_is_printed(self, run: Run) -> None:
        result = changed(run, "tools.success change >= -2pp", compared("tools.success", 0.031, -0.012, 0.074))
        assert (result.name, result.limit, result.value_text) == (
            "tools.success change",
            "≥ -2.0 pts",
            "+3.1 pts (-1.2 to +7.4)",
        )

    @pytest.mark.parametrize(
        ("figure", "keys", "reason"),
        [
            (compared("tools.success", None, remark="another judge"), {}, "another judge"),
            (compared("tools.success", 0.1, 0.05, 0.15, doubt="their flows differ too"), {}, "their flows differ too"),
            (compared("answer.f1", 0.0), {}, "its change is not compared: only headlines are, and the p95 of waits"),
            (
                compared("tools.success", 0.1, 0.05, 0.15, n=49),
                {"min_n": 50},
                "49 compared, min_n is 50",
            ),
        ],
    )
    def test_without_enough_are_undetermined(
        self, run: Run, figure: ComparedFigure, keys: dict[str, object], reason: str
    ) -> None:
        assert changed(run, "tools.success change >= -2pp", figure, **keys).reason == reason

    def test_against_nothing_are_undetermined(self, run: Run) -> None:
        made = gate(run, rule("tools.success change >= -50pp"))
        assert made.outcome == "undetermined"
        assert "there is no baseline" in made.rules[0].reason


class TestFigures:
    def test_enough_has_to_be_measured(self, run: Run) -> None:
        """Of 30 chats, those whose number divides by 5 have a truth: 0, 5, …, 25 are 6."""
        (few,) = gate(run, rule("answer.f1 >= 0", min_n=7)).rules
        assert (few.outcome, few.reason, few.n) == ("undetermined", "6 measured, min_n is 7", 6)
        assert gate(run, rule("answer.f1 >= 0", min_n=6)).outcome == "passed"

    def test_enough_of_it_has_to_be_covered(self, run: Run) -> None:
        """Every third chat has no clock: 20 of 30 have a latency."""
        (part,) = gate(run, rule("response_latency < 60", min_coverage=0.9)).rules
        assert part.reason == "66.67 % covered, min_coverage is 90 %"
        assert gate(run, rule("response_latency < 60", min_coverage=0.6)).outcome == "passed"

    @pytest.mark.parametrize(
        ("limit", "by_value", "by_interval"),
        [("<= 9", "passed", "passed"), ("<= 1", "failed", "failed"), ("<= 2.6", None, "undetermined")],
    )
    def test_the_interval_decides_where_the_policy_says_so(
        self, run: Run, limit: str, by_value: str | None, by_interval: str
    ) -> None:
        """The chats have one to four turns, about 2.5; the interval is far from 1 and 9."""
        figure = run["conversation.turns"]
        assert figure.value is not None
        limit = limit if by_value else f"<= {figure.value}"
        (result,) = gate(run, rule(f"turns {limit}", decide="interval")).rules
        assert (result.outcome, result.reason) == (by_interval, "" if by_value else "the interval reaches across it")
        assert gate(run, rule(f"turns {limit}")).outcome == (by_value or "passed")

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("turns[flow=orders] <= 9", "the run has no groups by flow"),
            ("turns[model=model-7] <= 9", "no such group"),
            ("agent.talks_over_user <= 50%", "the run was scored without it"),
            ("agent.talks_over_user change <= 5pp", "the run was scored without it"),
        ],
    )
    def test_what_is_not_there_is_undetermined_and_never_passes(self, run: Run, text: str, reason: str) -> None:
        made = gate(run, rule(text) + rule("turns >= 1"))
        assert made.outcome == "undetermined"
        assert reason in [result.reason for result in made.rules]

    def test_of_a_group(self, run: Run) -> None:
        made = gate(run, rule("turns[model=model-1] <= 9"))
        assert [(result.figure, result.outcome, result.n) for result in made.rules] == [
            ("conversation.turns[model=model-1]", "passed", 15)
        ]


class TestWhenUndetermined:
    MISSING = "agent.talks_over_user <= 5%"

    @pytest.mark.parametrize(("when", "outcome"), [("stop", "undetermined"), ("fail", "failed"), ("warn", "passed")])
    def test_counts_as_the_policy_says(self, run: Run, when: str, outcome: str) -> None:
        made = gate(run, rule(self.MISSING, when_undetermined=when) + rule("turns >= 1"))
        assert made.outcome == outcome
        assert {result.rule: result.outcome for result in made.rules}[self.MISSING] == "undetermined"

    def test_warnings_alone_pass_nothing(self, run: Run) -> None:
        made = gate(run, rule(self.MISSING, when_undetermined="warn"))
        assert (made.outcome, made.notes) == (
            "undetermined",
            ("every rule is undetermined, and none of them counts: nothing was decided",),
        )

    def test_a_failure_stays_one(self, run: Run) -> None:
        assert gate(run, rule("turns <= 1", when_undetermined="warn") + rule("turns >= 1")).outcome == "failed"


def test_an_invalid_run_or_baseline_passes_nothing(tmp_path: Path) -> None:
    run = score(write_lines(tmp_path / "chats.jsonl", range(4)), metrics=["turns"], out=tmp_path / "run")
    other = score(tmp_path / "chats.jsonl", metrics=["turns"], out=tmp_path / "other")
    other.invalidate("the simulator was broken")
    same = compared("conversation.turns", 0.0, -0.1, 0.1, unit="count")
    made = gate(run, rule("turns change <= 1"), same, against=other)
    assert [result.reason for result in made.rules] == ["the baseline is marked invalid"]
    assert gate(run, rule("turns >= 1")).outcome == "passed"
    run.invalidate("the clock was wrong")
    made = gate(run, rule("turns >= 1"))
    assert (made.outcome, made.notes) == ("undetermined", ("the run is marked invalid: the clock was wrong",))
