"""A run as JUnit XML, for CI servers: a missed target is a failed test.

One suite per family of metrics, and in it one test for each figure that has a target or could not be
computed:

| the figure | the test |
|---|---|
| meets its targets | passes |
| misses one | fails |
| has no value to compare with one | is an error: it must not be taken for passed |
| could not be computed | is an error, with a target or without |

The suite `policy` has a test for each rule of a policy on a change, and on a figure that the run was scored without.
Where an undetermined rule is to fail, its test fails; where it is only to warn, its test is skipped and says so.

Figures without a target are no tests. Where there is no target at all, the test `targets` is skipped and says so.
The suite `run` says whether the run is still valid, and the suite `reading` fails where something
in the input could not be read: what is not in the numbers cannot have been good.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from convoscope.analysis.answer import rank_texts
from convoscope.analysis.gate import FAILED, UNDETERMINED, Outcome, overall
from convoscope.analysis.policy import PolicyGate, RuleResult
from convoscope.analysis.targets import DECLARED, Check, GivenTarget, observed, run_checks, target_text
from convoscope.analysis.words import (
    counted,
    coverage_text,
    interval_text,
    name_text,
    reason_text,
    reasons_text,
    value_text,
)
from convoscope.harmless import clean, one_line
from convoscope.metrics.registry import parent_metric
from convoscope.report.files import write_text
from convoscope.report.gate import rule_text
from convoscope.runs.ranking import extreme_values, worst
from convoscope.runs.run import Run
from convoscope.runs.summary import Summary
from convoscope.scores.observation import ERROR
from convoscope.statistics.summary import Figure
from convoscope.storage import as_path

MAX_CONVERSATIONS = 5
MAX_PROBLEMS = 20

Ending = Literal["passed", "failure", "error", "skipped"]


class JUnitCase(NamedTuple):
    """One test: how it ended, and what there is to say."""

    suite: str
    name: str
    ending: Ending
    message: str = ""
    type: str = ""
    text: str = ""


def write_junit(
    run: Run, path: str | os.PathLike[str], targets: Sequence[GivenTarget] = (), gate: PolicyGate | None = None
) -> None:
    """Write the JUnit XML of a run, whole or not at all."""
    write_text(as_path(path), junit(run, targets, gate))


def junit(run: Run, targets: Sequence[GivenTarget] = (), gate: PolicyGate | None = None) -> str:
    """The JUnit XML of a run. `targets` are added to those that the run was scored with."""
    root = Element("testsuites", {"name": clean(f"convoscope {run.name}"), "time": f"{run.receipt.seconds:.3f}"})
    suites: dict[str, list[JUnitCase]] = {}
    rules = [] if gate is None else [rule for rule in gate.rules if not rule.is_of_run]
    checks = run_checks(run, targets)
    unchecked = [] if checks or rules else [JUnitCase("run", "targets", "skipped", "no target: nothing was checked")]
    for case in [_validity(run), _reading(run), *unchecked, *_figures(run, checks), *map(_rule, rules)]:
        suites.setdefault(case.suite, []).append(case)
    for name, cases in suites.items():
        suite = SubElement(root, "testsuite", {"name": clean(name), **_counts(cases)})
        for case in cases:
            # `clean` also takes out every character that XML 1.0 forbids.
            test = SubElement(suite, "testcase", {"classname": clean(case.suite), "name": clean(case.name)})
            if case.ending != "passed":
                attributes = {"message": clean(case.message)} | ({"type": clean(case.type)} if case.type else {})
                SubElement(test, case.ending, attributes).text = clean(case.text) or None
            elif case.text:
                SubElement(test, "system-out").text = clean(case.text)
    root.attrib.update(_counts(case for cases in suites.values() for case in cases))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _counts(cases: Iterable[JUnitCase]) -> dict[str, str]:
    endings = [case.ending for case in cases]
    counts: dict[str, Ending] = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    return {"tests": str(len(endings))} | {name: str(endings.count(ending)) for name, ending in counts.items()}


def _validity(run: Run) -> JUnitCase:
    receipt = run.receipt
    if receipt.valid:
        return JUnitCase("run", "run is valid", "passed")
    by = f", superseded by {receipt.superseded_by}" if receipt.superseded_by else ""
    message = f"marked invalid at {receipt.invalidated_at}: {receipt.invalid_reason}{by}"
    return JUnitCase("run", "run is valid", "error", message, "invalid run")


def _reading(run: Run) -> JUnitCase:
    report, name = run.read_report, "every record was read"
    if not report.problem_count:
        return JUnitCase("reading", name, "passed")
    shown = report.problems[:MAX_PROBLEMS]
    lines = [one_line(str(problem)) for problem in shown]
    if more := report.problem_count - sum(problem.count for problem in shown):
        lines.append(f"and {more:,} more; see read-report.json")
    message = f"{counted(report.problem_count, 'problem')} in reading; what could not be read is not in the figures"
    return JUnitCase("reading", name, "failure", message, "not read", "\n".join(lines))


def _figures(run: Run, checks: Sequence[Check]) -> list[JUnitCase]:
    """One test per figure that has a target or failed."""
    names = {figure.metric for figure in run.summary.figures}
    figures = {
        name_text(figure): figure
        for figure in run.summary.figures
        if figure.status == ERROR and not figure.reduction and not parent_metric(figure.metric, names)
    }
    by_name: dict[str, list[Check]] = {}
    for check in checks:
        by_name.setdefault(check.name, []).append(check)
        figures[check.name] = check.figure
    families = sorted({figure.metric.split(".", 1)[0] for figure in figures.values()})
    return [
        _figure(run, family, name, figure, by_name.get(name, []))
        for family in families
        for name, figure in sorted(figures.items())
        if figure.metric.split(".", 1)[0] == family
    ]


def _figure(run: Run, family: str, name: str, figure: Figure, checks: Sequence[Check]) -> JUnitCase:
    value = value_text(figure.value, figure.unit)
    text = "\n".join([*(f"target: {check.text}" for check in checks), *_figure_lines(figure, run.summary)])
    outcome = overall(check.verdict.outcome for check in checks)
    counts = {check.counts_as for check in checks if check.source != DECLARED}
    if figure.status == ERROR:
        return JUnitCase(family, name, "error", f"failed: {reason_text(figure.reason)}", "metric failed", text)
    deciding = [check for check in checks if check.verdict.outcome == outcome]
    targets = "; ".join(f"target {check.text}" for check in deciding)
    if outcome == FAILED:
        if not deciding[0].by:  # the worst of the run need not be in the group
            text += "\n" + "\n".join(worst_lines(run, deciding[0]))
        return JUnitCase(family, name, "failure", f"{value}, {targets}", "target missed", text)
    if outcome == UNDETERMINED:
        return JUnitCase(family, name, _open_ending(overall(filter(None, counts)), counts), targets, _OPEN, text)
    return JUnitCase(family, name, "passed", text=text)


_OPEN = "target undetermined"


def _open_ending(outcome: Outcome, counts: Collection[Outcome | None]) -> Ending:
    """How the test of an undetermined target ends: as an error, unless its policy says that it fails, or only warns."""
    if outcome == FAILED:
        return "failure"
    return "skipped" if counts and UNDETERMINED not in counts else "error"


def _rule(rule: RuleResult) -> JUnitCase:
    """The test of a rule of a policy that is on no figure of the run."""
    name, text = f"{rule.name} {rule.limit}", rule_text(rule)
    if rule.outcome == UNDETERMINED:
        ending = _open_ending(rule.counts_as or UNDETERMINED, {rule.counts_as})
        return JUnitCase("policy", name, ending, f"undetermined: {rule.reason}", _OPEN, text)
    if rule.outcome == FAILED:
        return JUnitCase("policy", name, "failure", text, "target missed", text)
    return JUnitCase("policy", name, "passed", text=text)


def _figure_lines(figure: Figure, summary: Summary) -> list[str]:
    if figure.value is None:
        detail = f" ({one_line(figure.detail)})" if figure.detail else ""
        lines = [f"no value: {reason_text(figure.reason)}{detail}"]
    else:
        # Next to a target, a rounded value may look as if it met it.
        shown = value_text(figure.value, figure.unit)
        lines = [f"value {shown} ({figure.value!r})", f"95 % interval {interval_text(figure)}"]
    lines += [f"n {figure.n:,}", f"coverage {coverage_text(figure, observed(figure, summary))}"]
    left_out = reasons_text(figure, observed(figure, summary))
    return [*lines, f"not measured: {left_out}"] if left_out else lines


def worst_lines(run: Run, check: Check) -> list[str]:
    """The conversations on the wrong end of the metric; of a figure over groups, the worst of the run."""
    figure, below = check.figure, check.target.comparison in {">", ">="}
    far = extreme_values(run, figure, "lowest" if below else "highest", MAX_CONVERSATIONS)
    far = [row for row in far if not check.target.is_met_by(row.value)] or far
    if far:
        title = f"{'lowest' if below else 'highest'} (target {target_text(check.target, figure.unit)}):"
        return [title, *(f"  {one_line(row.conversation)}: {value_text(row.value, figure.unit)}" for row in far)]
    behind = worst(run, MAX_CONVERSATIONS)
    return [
        "worst conversations:",
        *(
            f"  {one_line(row.conversation)}: {one_line(why)}"
            for row, why in zip(behind, rank_texts(run, behind), strict=True)
        ),
    ]
