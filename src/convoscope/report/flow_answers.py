"""What `convoscope states` prints: tables of states, segments, flows and archetypes, root causes, the recount."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from convoscope.analysis.flows import States, states
from convoscope.analysis.flows.diagnosis import STALL, Analysis, End, Healthy, StateCause, StateEvidence
from convoscope.analysis.flows.flow_matrix import PARTS, Aspect, FlowFigures, FlowMatrix, JudgedEnding
from convoscope.analysis.flows.segments import Archetype, Segments, Unassigned
from convoscope.analysis.flows.state_table import FEW, Matrix, Neighbour, StateFigures, few_text
from convoscope.analysis.words import (
    MAX_NAMES,
    NOTHING,
    counted,
    decimal_text,
    excluded_line,
    first_of,
    range_text,
    reason_text,
    short_name,
    state_name,
    ten_text,
    unmeasured_line,
)
from convoscope.harmless import one_line
from convoscope.report.flow_tables import ARCHETYPES, FLOWS, SEGMENTS, STATES
from convoscope.report.screen import Screen
from convoscope.report.table import (
    NOTE_COLUMN,
    ReportTable,
    TableCell,
    TableColumn,
    code,
    number_column,
    padded_table,
    plain,
    print_table,
    print_words,
    text_table,
)
from convoscope.runs.audit import Audit
from convoscope.runs.run import Run

MAX_DISAGREEMENTS = 20
"""Disagreements that are printed one by one."""
_MAX_COMMAND = 400
_INDENT = " " * 4
_BELOW = "Below each fraction is its 95 % interval."


class StateQuestion(NamedTuple):
    """The runs, and the flow and agent where only one is wanted."""

    runs: Sequence[Run]
    flow: str | None = None
    agent: str | None = None

    @property
    def states(self) -> States:
        """What can be asked of them."""
        return states(self.runs, flow=self.flow, agent=self.agent)

    @property
    def scope(self) -> str:
        """`all flows`, or the one, and the agent."""
        flow = "all flows" if self.flow is None else short_name(self.flow)
        return flow if self.agent is None else f"{flow}, agent {short_name(self.agent)}"

    @property
    def folders(self) -> str:
        """The runs by their folders."""
        return first_of([str(run.folder) for run in self.runs])

    def json(self, answer: msgspec.Struct | None = None, **more: Any) -> dict[str, Any]:
        """An answer for a program: what it is of, then its fields."""
        fields = {} if answer is None else {field: getattr(answer, field) for field in answer.__struct_fields__}
        invalid = [str(run.folder) for run in self.runs if not run.receipt.valid]
        runs = {"runs": [str(run.folder) for run in self.runs], **({"invalid": invalid} if invalid else {})}
        chosen = {key: value for key, value in (("flow", self.flow), ("agent", self.agent)) if value is not None}
        return {**runs, **chosen, **fields, **more}


def _print_title(screen: Screen, question: StateQuestion, title: str, order: str) -> None:
    screen.line(f"# {title} — {question.scope} ({order} first)", "bold")
    for run in question.runs:
        if not run.receipt.valid:
            reason = short_name(run.receipt.invalid_reason or "")
            screen.line(f"INVALID {run.folder} since {run.receipt.invalidated_at}: {reason}", "bold red")
    screen.line()


def print_nothing(screen: Screen, question: StateQuestion) -> None:
    """Nothing to look at is not the same as nothing wrong."""
    matrix = question.states.matrix(neighbours=False)
    total = matrix.conversations + matrix.without_states + sum(group.n for group in matrix.excluded)
    scope = "" if question.flow is None and question.agent is None else f" of {question.scope}"
    if not total:
        print_words(screen, f"no conversation{scope} in {question.folders}: nothing ran it")
        return
    print_words(screen, f"none of the {counted(total, 'conversation')}{scope} in {question.folders} has states")
    if broken := total - matrix.without_states - matrix.conversations:
        screen.line(f"  {counted(broken, 'conversation')} broke and {'is' if broken == 1 else 'are'} excluded")
    screen.line("  `convoscope formats` lists the logs that have states, such as state events")


def print_matrix(screen: Screen, question: StateQuestion, matrix: Matrix) -> None:
    """The table, its legend, what is not in it; with the states around each where they were asked for."""
    _print_title(screen, question, "Per-state quality", "worst")
    if matrix.rows:
        print_table(screen, STATES.report(matrix.rows, _BELOW, *_state_remarks(matrix.rows)))
        if _has_neighbours(matrix):
            screen.line()
            print_table(screen, _neighbour_table(matrix.rows))
        screen.line()
        count, conversations = counted(len(matrix.rows), "state"), counted(matrix.conversations, "conversation")
        screen.line(f"{count} in {conversations}: {question.folders}")
    else:
        print_nothing(screen, question)
    for line in _outside_lines(matrix):
        print_words(screen, line)


def matrix_markdown(question: StateQuestion, matrix: Matrix) -> list[str]:
    """The same as Markdown, for a pull request or a wiki; the intervals are in a table of their own."""
    lines = [f"# Per-state quality — {plain(question.scope)} (worst first)", ""]
    for run in question.runs:
        if not run.receipt.valid:
            lines += [f"**INVALID** {code(str(run.folder))}: {code(run.receipt.invalid_reason or '')}", ""]
    outside = _outside_lines(matrix)
    if not matrix.rows:
        lines.append(f"None of {matrix.without_states:,} conversations has states.")
        return lines + [part for line in outside for part in ("", plain(line))]
    table = STATES.report(matrix.rows, *_state_remarks(matrix.rows))
    table = table._replace(notes=[*table.notes, *outside])
    without = [[*(cell._replace(below="") for cell in row[:-1]), TableCell(row[-1].words)] for row in table.rows]
    lines += padded_table(table._replace(rows=without))
    if _has_neighbours(matrix):
        around = _neighbour_table(matrix.rows)
        lines += ["", f"{around.title}:", "", *padded_table(around)]
    return [*lines, "", "95 % intervals:", "", *padded_table(_intervals(table))]


def _intervals(table: ReportTable) -> ReportTable:
    """The names, and what is below the figures."""
    names = table.name_count
    rows = [[*row[:names], *(TableCell(cell.below or NOTHING) for cell in row[names:])] for row in table.rows]
    measured = [
        at
        for at, column in enumerate(table.columns)
        if column != NOTE_COLUMN and any(row[at].below for row in table.rows)
    ]
    return table._replace(rows=rows, notes=()).only([*range(names), *measured])


def _state_remarks(rows: Sequence[StateFigures]) -> Iterator[str]:
    if any(state.terminal and (state.stall.value or 0.0) > STALL for state in rows):
        yield "An end without success is where its conversations stop: look at the states that lead to it."
    if few := sum(bool(state.caution) for state in rows):
        yield f"Fewer than {FEW} conversations are too few to conclude from: {few:,} of {counted(len(rows), 'state')}."


def _has_neighbours(matrix: Matrix) -> bool:
    return any(state.led_to is not None for state in matrix.rows)


def _neighbour_table(rows: Sequence[StateFigures]) -> ReportTable:
    """The states around each, with transitions: a weak state keeps conversations from those that it leads to."""
    return text_table(
        ("State", "came from", "led to"),
        [(short_name(state.state), _neighbours(state.came_from), _neighbours(state.led_to)) for state in rows],
        "Neighbours, with the number of transitions",
    )


def _neighbours(neighbours: Sequence[Neighbour] | None) -> str:
    return first_of([f"{short_name(state.state)} {state.transitions:,}" for state in neighbours or ()]) or NOTHING


def _outside_lines(answer: Matrix | Analysis) -> list[str]:
    """What is in no row: states that were never entered, conversations that broke or have no state."""
    by_flow: dict[str, list[str]] = {}
    for state in answer.untested:
        by_flow.setdefault(state.flow, []).append(short_name(state.state))
    lines = [
        f"untested, no conversation came there: {short_name(flow)}: {first_of(names)}"
        for flow, names in by_flow.items()
    ]
    if excluded := excluded_line(answer.excluded):
        lines.append(excluded)
    if answer.without_states and (answer.rows if isinstance(answer, Matrix) else answer.states):
        verb = "has" if answer.without_states == 1 else "have"
        lines.append(f"{counted(answer.without_states, 'conversation')} {verb} no state")
    return lines


def print_segments(screen: Screen, question: StateQuestion, segments: Segments) -> None:
    """One row per segment of a flow, and the states that are in none."""
    _print_title(screen, question, "Segments", "least cohesive")
    if not segments.rows:
        _print_no_segment(screen, question, segments.unassigned)
        return
    print_table(screen, SEGMENTS.report(segments.rows))
    _print_unassigned(screen, segments.unassigned)


def print_archetypes(screen: Screen, question: StateQuestion, archetypes: Sequence[Archetype]) -> None:
    """One row per kind of segment over all flows: a weakness in many flows is no fault of one."""
    _print_title(screen, question, "Archetypes", "weakest")
    if archetypes:
        print_table(screen, ARCHETYPES.report(archetypes))
    else:
        _print_no_segment(screen, question, question.states.segments().unassigned)


def _print_no_segment(screen: Screen, question: StateQuestion, unassigned: Sequence[Unassigned]) -> None:
    if not unassigned:
        print_nothing(screen, question)
        return
    screen.line("no state belongs to a segment")
    _print_unassigned(screen, unassigned)
    screen.line("  a flow definition has the segments: `convoscope score --flows FILE`")


def _print_unassigned(screen: Screen, unassigned: Sequence[Unassigned]) -> None:
    for group in unassigned:
        count = f"{counted(len(group.states), 'state')} of {short_name(group.flow)}"
        names = first_of([short_name(state) for state in group.states])
        print_words(screen, f"in no segment ({short_name(reason_text(group.reason))}): {count}: {names}")


def print_flows(screen: Screen, question: StateQuestion, matrix: FlowMatrix) -> None:
    """The aspects of every flow, then the parts of correctness, then what each judge says."""
    _print_title(screen, question, "Flows", "least correct")
    if not any(flow.n for flow in matrix.rows):
        print_nothing(screen, question)
    else:
        print_table(screen, FLOWS.report(matrix.rows))
        for table in (_part_table(matrix.rows), _judge_table(matrix.rows), _ending_table(matrix.humanness_by_ending)):
            if table.rows:
                screen.line()
                print_table(screen, table)
    if line := excluded_line(matrix.excluded):
        print_words(screen, line)


def _part_table(flows: Sequence[FlowFigures]) -> ReportTable:
    """Correctness is the mean of its parts: which of them is missing says what to look at."""
    titles = [part for part in PARTS if any(part in flow.parts for flow in flows)]
    measured = [flow for flow in flows if any(part.score is not None for part in flow.parts.values())]
    names = [TableColumn(title, names_row=True) for title in ("Flow", "Agent")]
    columns = (*names, *(number_column(title) for title in titles))
    rows = []
    for flow in measured:
        names_of_row = TableCell(short_name(flow.flow)), TableCell(short_name(flow.agent))
        rows.append([*names_of_row, *(_part(flow.parts.get(title)) for title in titles)])
    reasons = [
        (title, flow.parts[title].reason)
        for flow in measured
        for title in titles
        if title in flow.parts and flow.parts[title].score is None
    ]
    notes = [*filter(None, [unmeasured_line(reasons)])]
    return ReportTable(columns, rows, "Parts of correctness, as fractions of conversations", notes)


def _part(part: Aspect | None) -> TableCell:
    if part is None:
        return TableCell(NOTHING)
    return TableCell(decimal_text(part.score, most=1.0), range_text(part.low, part.high))


def _judge_table(flows: Sequence[FlowFigures]) -> ReportTable:
    columns = ("Flow / Agent", "judge", number_column("score"), number_column("n"), number_column("spread"))
    rows = [
        (
            f"{short_name(flow.flow)} / {short_name(flow.agent)}",
            short_name(verdict.judge),
            ten_text(verdict.score),
            f"{verdict.n:,}",
            "" if verdict.spread is None else decimal_text(verdict.spread, 1),
        )
        for flow in flows
        for verdict in flow.humanness
    ]
    return text_table(columns, rows, "Humanness, judge by judge; spread=from the strictest to the kindest of a panel")


def _ending_table(endings: Sequence[JudgedEnding]) -> ReportTable:
    columns = ("Flow / Agent", "ended in", "judge", number_column("score"), number_column("n"), number_column("spread"))
    rows = [
        (
            f"{short_name(one.flow)} / {short_name(one.agent)}",
            short_name(one.ended_in),
            short_name(one.judge),
            ten_text(one.score),
            f"{one.n:,}",
            "" if one.spread is None else decimal_text(one.spread, 1),
        )
        for one in endings
    ]
    return text_table(columns, rows, "Humanness by the state in which conversations ended")


def print_analysis(screen: Screen, question: StateQuestion, analysis: Analysis, top: int) -> None:
    """The causes, the worst first, so many of them; then what else is worth knowing."""
    _print_title(screen, question, "Root causes", "most conversations lost")
    if analysis.states:
        _print_causes(screen, question, analysis, top)
    else:
        print_nothing(screen, question)
    if remarks := list(_analysis_remarks(analysis)):
        screen.line()
    for line in remarks:
        print_words(screen, line)


def _print_causes(screen: Screen, question: StateQuestion, analysis: Analysis, top: int) -> None:
    count, conversations = counted(analysis.states, "state"), counted(analysis.conversations, "conversation")
    examined = f"{count} in {conversations} of {question.folders}"
    caution = few_text(analysis.conversations)
    few = f" ({caution})" if caution else ""
    budget = f"latency budget {analysis.latency_budget_ms / 1000:g} s where none is declared"
    if not analysis.causes:
        print_words(screen, f"no rule finds any of {examined} weak{few}; {budget}")
        return
    weak = len(analysis.causes)
    print_words(screen, f"{weak:,} of {examined} {'is a weak one' if weak == 1 else 'are weak'}{few}; {budget}")
    runs = {run.name: run for run in question.runs}
    for rank, cause in enumerate(analysis.causes[:top], 1):
        screen.line()
        segment = f" (segment {short_name(cause.segment)})" if cause.segment else ""
        screen.line(f"{rank}. {state_name(cause.flow, cause.state)}{segment}: {cause.headline}", "bold")
        for line in _cause_lines(cause):
            print_words(screen, line, indent=_INDENT)
        for name, conversation in zip(cause.runs, cause.conversations, strict=True):
            guard = ["--"] if conversation.startswith("-") else []
            command = shlex.join(["convoscope", "show", str(runs[name].folder), *guard, conversation])
            screen.line(f"{_INDENT}open: {one_line(command, _MAX_COMMAND)}")
    if weak > top:
        screen.line()
        screen.line(f"and {weak - top:,} more: --top {weak} shows them all")


def _cause_lines(cause: StateCause) -> Iterator[str]:
    if cause.caution:
        yield cause.caution
    for evidence in cause.evidence:
        yield f"{evidence.text}: {_evidence(evidence)}"
    yield f"cost: {cause.cost}"
    if cause.starves:
        more = len(cause.starves) - MAX_NAMES
        blocked = [
            f"{short_name(state.state)} ({state.reached:,} reach it, about {state.missed:,.0f} more would)"
            for state in cause.starves[:MAX_NAMES]
        ]
        yield f"fewer reach: {', '.join(blocked)}" + (f" and {counted(more, 'state')} more" if more > 0 else "")
    for change in cause.if_median:
        yield f"what would change: {change}"


class _FaultText(NamedTuple):
    """What a fault is called, where it begins, and the most that its figure can be."""

    name: str
    limit: str
    most: float = 1.0


_FAULTS = {
    "stall": _FaultText("stall", "weak from"),
    "failure": _FaultText("left for failure", "weak from"),
    "progress": _FaultText("progress", "weak below"),
    "revisit": _FaultText("revisit", "weak from", math.inf),
    "guard_error": _FaultText("guard errors a conversation", "weak above", math.inf),
    "slots": _FaultText("slot_fill", "weak below"),
}


def _evidence(evidence: StateEvidence) -> str:
    """The number behind a fault, how sure it is, and where a fault begins."""
    if evidence.fault == "latency":
        return f"n={counted(evidence.n, 'turn')}"
    fault, interval = _FAULTS[evidence.fault], range_text(evidence.low, evidence.high)
    value = f"{fault.name} {decimal_text(evidence.value, most=fault.most)}"
    parts = [value, *([f"95 % {interval}"] if interval else []), f"n={evidence.n:,}"]
    return f"{', '.join(parts)} ({fault.limit} {evidence.threshold:g})"


def _analysis_remarks(analysis: Analysis) -> Iterator[str]:
    unknown = [
        f"outcome unknown, in no stall: {counted(row.n, 'conversation')} that were in {state_name(row.flow, row.state)}"
        for row in analysis.unknown
    ]
    yield from _first(unknown, "other state", "with conversations of unknown outcome")
    yield from _first([*map(_end, analysis.ends)], "other end", "without success")
    yield from _first([*map(_healthy, analysis.front_loaded)], "other state", "whose callers said everything before")
    yield from _outside_lines(analysis)


def _first(lines: Sequence[str], noun: str, rest: str) -> Iterator[str]:
    yield from lines[:MAX_NAMES]
    if (more := len(lines) - MAX_NAMES) > 0:
        yield f"and {counted(more, noun)} {rest}"


def _end(end: End) -> str:
    origins = f", from {', '.join(map(short_name, end.came_from))}" if end.came_from else ""
    where = f"{state_name(end.flow, end.state)} ({short_name(end.terminal)})"
    return f"end without success: {where}: {counted(end.n, 'conversation')}{origins}"


def _healthy(state: Healthy) -> str:
    fill, progress = (decimal_text(rate, most=1.0) for rate in (state.slot_fill_rate, state.progress))
    front_loaded = f"{counted(state.front_loaded, 'slot')} filled before it was entered"
    where = state_name(state.flow, state.state)
    return f"healthy, though it collects little: {where} (slot_fill {fill}, progress {progress}, {front_loaded})"


def print_audit(screen: Screen, errors: Screen, runs: Iterable[Run], audits: Mapping[str, Audit]) -> None:
    """The result of the recount. A disagreement is an error: whatever is built on such a row is wrong."""
    left = MAX_DISAGREEMENTS
    for run in runs:
        audit = audits[run.name]
        checked = f"{counted(audit.rows, 'row')} of states, {counted(audit.conversations, 'conversation')}"
        if audit.holds:
            result = "the events bear out every one" if audit.rows else "there is nothing to recount"
            screen.line(f"{run.folder}: {checked}: {result}")
            continue
        disagreements = f"{counted(audit.disagreements, 'disagreement')} with the events"
        screen.line(f"{run.folder}: {checked}: {disagreements}", "bold red")
        shown = audit.examples[:left]
        for disagreement in shown:
            errors.line(f"error: {one_line(str(run.folder))}: {one_line(str(disagreement))}", "red")
        left -= len(shown)
        if more := audit.disagreements - len(shown):
            errors.line(f"error: {one_line(str(run.folder))}: and {more:,} more", "red")
