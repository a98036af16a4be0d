"""The vacuity audit for people: as tables on a terminal, in Markdown, and as a panel of a run's page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from convoscope.analysis.vacuity import (
    GOES_SILENT,
    TOO_FEW,
    GateAudit,
    MetricAudit,
    NonsenseCheck,
    OutcomeDependence,
    VacuityAudit,
)
from convoscope.analysis.words import counted, reason_text
from convoscope.metrics.perturbations import PERTURBATIONS
from convoscope.report.panels import PagePanel, panel
from convoscope.report.screen import Screen
from convoscope.report.table import ReportTable, markdown_table, print_table, print_words, text_table
from convoscope.runs.run import Run

AUDIT = "audit.json"
"""The file of a run that keeps its audit."""
_MAX_NAMED = 8
"""Metrics that are named where many share a reason."""


def print_vacuity(screen: Screen, audit: VacuityAudit) -> None:
    """Which nonsense was noticed, what was not and why that may stand, and what could not be tried."""
    screen.line(_heading(audit), "bold")
    screen.line()
    for table in _tables(audit):
        print_table(screen, table)
        screen.line()
    for line in _remarks(audit):
        print_words(screen, line)


def vacuity_markdown(audit: VacuityAudit) -> str:
    """The same as Markdown."""
    blocks = ["## Would the metrics notice nonsense?", _heading(audit)]
    for table in _tables(audit):
        lines = markdown_table(table)
        blocks += [f"### {table.title}", "\n".join([*lines.head, *lines.rows])]
    blocks += [f"- {line}" for line in _remarks(audit)]
    return "\n\n".join(blocks) + "\n"


def keep_audit(run: Run, audit: VacuityAudit) -> None:
    """Keep the audit with a run, for its page."""
    (run.folder / AUDIT).write_bytes(msgspec.json.format(msgspec.json.encode(audit), indent=2) + b"\n")


def kept_audit(run: Run) -> VacuityAudit | None:
    """The audit that is kept with a run; None without one that can be read."""
    try:
        return msgspec.json.decode((run.folder / AUDIT).read_bytes(), type=VacuityAudit)
    except (OSError, msgspec.DecodeError):
        return None


@panel
def vacuity_panel(run: Run) -> PagePanel | None:
    """What the page says of the audit that a run keeps."""
    audit = kept_audit(run)
    if audit is None:
        return None
    return PagePanel(
        title="Would the metrics notice nonsense?",
        line=f"{_heading(audit)}.",
        tables=_tables(audit),
        remarks=list(_remarks(audit)),
    )


def _heading(audit: VacuityAudit) -> str:
    declared = audit.declared
    known = sum(bool(one.reason) for one in declared)
    few = sum(one.verdict == TOO_FEW for one in declared)
    parts = [
        f"{audit.noticed} of {len(declared)} declared kinds of nonsense noticed",
        f"{len(audit.failures)} not noticed",
        *([f"{known} not noticed for known reasons"] if known else []),
        *([f"{few} with too few conversations to tell"] if few else []),
    ]
    return f"{counted(audit.conversations, 'conversation')}: {', '.join(parts)}"


def _tables(audit: VacuityAudit) -> list[ReportTable]:
    tried = [metric for metric in audit.metrics if metric.declared or not metric.declares]
    made = ((kind, PERTURBATIONS[kind], f"{count:,}") for kind, count in audit.changed.items())
    tables = [
        text_table(("nonsense", "what", "conversations changed"), made, "Nonsense"),
        text_table(
            ("metric", "noticed", "not noticed", "too few to decide"), map(_row, tried), "What the metrics notice"
        ),
    ]
    if known := [
        (one.metric, reason_text(check.nonsense), check.reason)
        for one in audit.metrics
        for check in one.checks
        if check.reason
    ]:
        tables.append(text_table(("metric", "nonsense", "why it may stand"), known, "Not noticed, for a known reason"))
    if audit.gates:
        tables.append(text_table(("target", "verdict"), map(_gate, audit.gates), "Targets"))
    if audit.outcome_dependent:
        rows = map(_dependence, audit.outcome_dependent)
        columns = ("metric", "outcome", "measured", "why it may stand")
        tables.append(text_table(columns, rows, "Measured after one outcome only"))
    return tables


def _row(metric: MetricAudit) -> tuple[str, str, str, str]:
    if not metric.declares:
        noticed = _names([check for check in metric.checks if check.verdict == "noticed"])
        return metric.metric, f"{noticed or 'nothing'} (declares nothing)", "", ""
    declared = metric.declared
    holds = [check for check in declared if check.holds]
    few = [check for check in declared if check.verdict == TOO_FEW]
    missed = [check for check in declared if not check.holds and check.verdict != TOO_FEW]
    return metric.metric, f"{len(holds)} of {len(declared)}", ", ".join(map(_missed, missed)), _names(few)


def _missed(check: NonsenseCheck) -> str:
    silent = " (no value any more)" if check.verdict == GOES_SILENT else ""
    return reason_text(check.nonsense) + silent


def _names(checks: Sequence[NonsenseCheck]) -> str:
    return ", ".join(reason_text(check.nonsense) for check in checks)


def _gate(gate: GateAudit) -> tuple[str, str]:
    if not gate.tried:
        return gate.target, "not tried: no nonsense could be made"
    if not gate.can_fail:
        return gate.target, "cannot fail: every kind of nonsense meets it"
    missed = ", ".join(reason_text(kind) for kind in gate.tried if kind not in gate.met_by)
    return gate.target, f"can fail: not met by {missed}"


def _dependence(dependence: OutcomeDependence) -> tuple[str, str, str, str]:
    parts = []
    if dependence.only_wrong:
        parts.append(f"{dependence.only_wrong:,} only when it went wrong")
    if dependence.only_well:
        parts.append(f"{dependence.only_well:,} only when it went well")
    measured = ", ".join([*parts, f"{dependence.both:,} either way"])
    return dependence.metric, reason_text(dependence.outcome), measured, dependence.reason


def _remarks(audit: VacuityAudit) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for silent in audit.never_measured:
        by_reason.setdefault(silent.reason, []).append(silent.metric)
    for reason, names in by_reason.items():
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        yield f"never measured here ({reason_text(reason)}): {', '.join(names[:_MAX_NAMED])}{more}"
