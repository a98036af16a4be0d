"""What gates say, for a terminal, Markdown, JSON and JUnit: targets of a run, flows, benchmarks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from convoscope.analysis.compare.words import number_pair, signed_text
from convoscope.analysis.gate import FAILED, NOTHING_TO_CHECK, PASSED, UNDETERMINED, Gate, GateCheck, Outcome
from convoscope.analysis.targets import DECLARED, Check
from convoscope.analysis.words import counted, first_of, name_text, short_name, unrounded_text, value_text
from convoscope.harmless import one_line
from convoscope.metrics.declaration import RATIO
from convoscope.report.screen import Screen
from convoscope.report.table import MarkdownTable, code, markdown_table, number_column, plain, print_words, text_table
from convoscope.runs.run import Run

if TYPE_CHECKING:
    from convoscope.analysis.flows.flow_matrix import AspectVerdict, FlowGate, FlowVerdict
    from convoscope.analysis.policy import PolicyGate, RuleResult

STYLES: dict[Outcome, str] = {PASSED: "green", FAILED: "bold red", UNDETERMINED: "yellow"}
_MAX_LINE = 1_000


class GateLine(NamedTuple):
    """One thing that a gate checked: a figure, or a flow."""

    name: str
    outcome: Outcome
    text: str


def print_gate(
    screen: Screen,
    noun: str,
    outcome: Outcome,
    lines: Sequence[GateLine],
    details: Iterable[str] = (),
    *,
    wrapped: bool = False,
) -> None:
    """A line for each thing that was checked, in 80 columns if `wrapped`; then what all of them come to."""
    write = screen.wrapped if wrapped else screen.line
    for line in lines:
        write(one_line(f"{line.name}: {line.outcome}: {line.text}", _MAX_LINE), STYLES[line.outcome])
    counts = Counter(line.outcome for line in lines)
    outcomes = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items())) or NOTHING_TO_CHECK
    conclusion = "; ".join([f"{counted(len(lines), noun)}: {outcomes}", *details])
    screen.line(f"gate {outcome}: {conclusion}", STYLES[outcome])


def print_benchmark_gate(screen: Screen, gate: Gate) -> None:
    """The figures of a result, each with its verdict."""
    lines = [GateLine(check.metric, check.outcome, check.reason + _by_sample(check)) for check in gate.checks]
    print_gate(screen, "figure", gate.outcome, lines, [gate.reason] if gate.reason else ())


def print_policy_gate(screen: Screen, gate: PolicyGate) -> None:
    """The rules of a policy, each with its verdict."""
    lines = [GateLine(f"{rule.name} {rule.limit}", rule.outcome, rule_text(rule)) for rule in gate.rules]
    details = [*([f"against {gate.against}"] if gate.against else ()), *gate.notes]
    print_gate(screen, "rule", gate.outcome, lines, details, wrapped=True)


def rule_text(rule: RuleResult) -> str:
    """What a rule rests on, and why it came out as it did: `67.1 % (61.6 to 72.2), n 304`."""
    basis = f"{rule.value_text}, n {rule.n:,}" if rule.value is not None else ""
    return "; ".join(filter(None, (basis, rule.reason, _counts_text(rule))))


def _counts_text(rule: RuleResult) -> str:
    if rule.counts_as == rule.outcome:
        return ""
    return "does not count" if rule.counts_as is None else f"counts as {rule.counts_as}"


def _by_sample(check: GateCheck) -> str:
    """`; by sample +0.021, 95 % -0.010 to +0.051, 120 pairs`."""
    made = check.by_sample
    if made is None:
        return ""
    interval = number_pair(made.low, made.high, RATIO)
    words = f"; by sample {signed_text(made.difference, RATIO)}{f', 95 % {interval}' if interval else ''}"
    return f"{words}, {counted(made.n, 'pair')}"


def print_flow_gate(screen: Screen, runs: Sequence[Run], baseline: Sequence[Run], gate: FlowGate) -> None:
    """A verdict on each flow, then the one on all."""
    lines = [GateLine(short_name(flow.flow), flow.outcome, _flow_text(flow)) for flow in gate.flows]
    limits = f"floor {gate.floor:g}, drop {gate.drop:g}, least n {gate.least:,}"
    now, before = (first_of([str(run.folder) for run in side]) for side in (runs, baseline))
    print_gate(screen, "flow", gate.outcome, lines, [limits, f"{now} against {before}"])
    if any("no flow definition" in aspect.reason for flow in gate.flows for aspect in flow.aspects):
        screen.line(
            "  correctness needs the flow's definition (`score --flows`); or ask for `--aspect completion` alone"
        )
    for run in (*runs, *baseline):
        if not run.receipt.valid:
            screen.line(f"INVALID {run.folder}: {short_name(run.receipt.invalid_reason or '')}", "bold red")


def _flow_text(flow: FlowVerdict) -> str:
    excluded = [f"{counted(flow.excluded, 'conversation')} excluded"] if flow.excluded else []
    return "; ".join([*map(_aspect_text, flow.aspects), *excluded, *flow.notes])


def _aspect_text(verdict: AspectVerdict) -> str:
    text = f"{verdict.aspect} {verdict.reason}"
    counts = [f"{title}={n:,}" for title, n in (("n", verdict.n), ("baseline n", verdict.baseline_n)) if n]
    return f"{text} [{', '.join(counts)}]" if counts and "too few" not in text else text


def print_targets(screen: Screen, checks: Iterable[Check]) -> None:
    """One line for each target: an exit code alone explains nothing."""
    for check in checks:
        value = _value_text(check)
        declared = ", declared by the metric" if check.source == DECLARED else ""
        style = "red" if check.verdict.outcome == FAILED else ""
        print_words(screen, f"{check.name} {check.text} ({value}{declared})", "target: ", "  ", style)


def target_lines(checks: Iterable[Check]) -> list[str]:
    """The same as a list in Markdown."""
    return [f"- {code(check.name)} {plain(_value_text(check))}, target {plain(check.text)}" for check in checks]


def _value_text(check: Check) -> str:
    figure = check.figure
    if figure.value is None:
        return value_text(None, figure.unit)
    return unrounded_text(figure.value, check.target.value, figure.unit)


def gate_table(gate: PolicyGate) -> MarkdownTable:
    """What a policy says of a run, as a table in Markdown."""
    columns = ("rule", "value", number_column("n"), "outcome", "why")
    rows = [
        (
            f"{rule.name} {rule.limit}",
            rule.value_text,
            f"{rule.n:,}" if rule.value is not None else "",
            rule.outcome,
            "; ".join(filter(None, (rule.reason, _counts_text(rule)))),
        )
        for rule in gate.rules
    ]
    return markdown_table(text_table(columns, rows))


def targets_json(checks: Iterable[Check]) -> list[dict[str, Any]]:
    """The same for a program."""
    return [
        {
            "figure": name_text(check.figure),
            **({"by": dict(check.by)} if check.by else {}),
            "comparison": check.target.comparison,
            "target": check.target.value,
            "value": check.figure.value,
            "outcome": check.label,
            "sure": check.verdict.sure,
            "words": check.result,
            "source": check.source,
        }
        for check in checks
    ]
