"""A run as Markdown, fit for a comment on a pull request.

Whatever a log or a plugin says is in a code span, where no dialect sees markup, HTML, a link or
a mention. The whole stays below what a comment may hold; what was cut is said.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from html import escape
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple

from convoscope.analysis.answer import Answer, make_answer, rank_reasons
from convoscope.analysis.policy import PolicyGate
from convoscope.analysis.targets import Check, GivenTarget, run_checks, tally_text
from convoscope.analysis.words import ORDERS, counted
from convoscope.harmless import one_line
from convoscope.report.files import write_text
from convoscope.report.gate import gate_table, target_lines
from convoscope.report.judging import judging_lines
from convoscope.report.run_tables import FigureRows, group_tables, sections, small_text, visible_figures
from convoscope.report.run_terminal import print_reading
from convoscope.report.screen import Screen
from convoscope.report.table import ReportTable, Row, TableCell, code, markdown_table, plain
from convoscope.runs.ranking import rank, worst_and_broken
from convoscope.runs.run import Run
from convoscope.runs.summary import Summary
from convoscope.storage import as_path

MAX_CHARACTERS = 65_536
"""What GitHub takes as a comment."""
MAX_WORST = 5
MAX_GROUPINGS = 8
MAX_COLUMNS = 10
MAX_PROBLEMS = 10
_RESERVED = 1_000
"""Kept free for the last lines."""


class Block(NamedTuple):
    """Some lines that belong together: those in the middle may be cut, the others stand or fall with the block."""

    head: Sequence[str]
    lines: Sequence[str]
    tail: Sequence[str] = ()


def write_markdown(
    run: Run, path: str | os.PathLike[str], targets: Sequence[GivenTarget] = (), gate: PolicyGate | None = None
) -> None:
    """Write the Markdown of a run, whole or not at all."""
    write_text(as_path(path), markdown(run, targets, gate))


def markdown(run: Run, targets: Sequence[GivenTarget] = (), gate: PolicyGate | None = None) -> str:
    """The Markdown of a run. `targets` come beside those that the run was scored with."""
    checks = run_checks(run, targets)
    # Those of all conversations are in the table, beside their figures; those of a policy have a table.
    of_groups = target_lines([check for check in checks if check.by]) if gate is None else []
    blocks = [
        _title(run, checks, gate),
        *([] if gate is None else [_gate(gate)]),
        _answer(make_answer(run, targets)),
        Block(["Targets of groups:", ""], of_groups, [""]) if of_groups else Block([], []),
        _figures(run.summary, [check for check in checks if not check.by]),
        *_worst(run),
        *_groups(run.summary),
        _judging(run.summary),
        _reading(run),
    ]
    receipt = run.receipt
    # A report is shared: the folders of this machine are not.
    folder = run.name if run.folder.is_absolute() else str(run.folder)
    where = f"Run {code(folder)}, {code(receipt.run_id)}, finished {plain(receipt.finished_at)}."
    return "\n".join([*fit(blocks, MAX_CHARACTERS - _RESERVED), where]) + "\n"


def fit(blocks: Sequence[Block], limit: int) -> list[str]:
    """The lines of the blocks, as many as go into so many characters; where some do not, it says so."""
    taken: list[str] = []
    left = limit
    dropped = 0
    for block in blocks:
        room = left - _size([*block.head, _cut(len(block.lines)), *block.tail])
        sizes = accumulate(len(line) + 1 for line in block.lines)
        fitting = sum(size <= room for size in sizes)
        if room < 0 or (block.lines and not fitting):
            dropped += 1
            continue
        missing = len(block.lines) - fitting
        part = [*block.head, *block.lines[:fitting], *([_cut(missing)] if missing else []), *block.tail]
        taken += part
        left -= _size(part)
    return [*taken, *([f"{counted(dropped, 'part')} left out: a comment has no more room.", ""] if dropped else [])]


def _cut(missing: int) -> str:
    return f"\n{missing:,} more left out: a comment has no more room."


def _size(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _answer(answer: Answer) -> Block:
    lines = [f"**{plain(clause.text)}**" for clause in answer.verdict]
    lines += [line for note in answer.remarks for line in ("", plain(note))]
    lost = [*answer.causes, *answer.remaining]
    if lost:
        lines.append("")
    for cause in lost:
        example = f", for example {code(cause.example.conversation)}" if cause.example is not None else ""
        lines.append(f"- {cause.lost:,} lost: {code(cause.sentence)}{example}")
        lines += [f"  - {code(cause.opinion.text)}"] if cause.opinion is not None else []
    return Block([], [*lines, ""])


def _gate(gate: PolicyGate) -> Block:
    """The verdict of a policy, and what the comparison with the baseline comes to."""
    table = gate_table(gate)
    tail = [f"- {plain(note)}" for note in gate.notes]
    if gate.sentences:
        tail += ["", f"Against {code(Path(gate.against).name)}: {plain(' '.join(gate.sentences))}"]
    return Block(table.head, table.rows, [*tail, ""] if tail else [""])


def _title(run: Run, checks: Sequence[Check], gate: PolicyGate | None) -> Block:
    receipt = run.receipt
    head = [f"## Convoscope: {code(run.name)}", ""]
    if not receipt.valid:
        by = f", superseded by {code(receipt.superseded_by)}" if receipt.superseded_by else ""
        when, why = plain(receipt.invalidated_at or ""), code(receipt.invalid_reason or "")
        head += [f"**INVALID** since {when}: {why}{by}. Its numbers are not to be relied on.", ""]
    tally = tally_text(checks) if gate is None else f"gate {gate.outcome}"
    head += [f"**{tally}**, over {counted(run.summary.conversations, 'conversation')}", ""]
    return Block(head, [])


def _figures(summary: Summary, checks: Sequence[Check]) -> Block:
    shown = visible_figures(summary, {check.name for check in checks})
    figures = FigureRows(summary, shown.figures, checks)
    rows: list[Row] = []
    for section in sections(summary, shown.figures):
        rows += [figures.partial_row(TableCell(section.title, strong=True)), *map(figures.row, section.figures)]
    table = markdown_table(ReportTable(figures.columns, rows))
    tail = ["", f"And {counted(len(shown.parts), 'figure')} of their parts, in the page."] if shown.parts else []
    if shown.silent:
        tail += ["", "Nothing to measure here for:", "", *(f"- {plain(family.text)}" for family in shown.silent)]
    return Block(table.head, table.rows, [*tail, ""])


def _worst(run: Run) -> Iterator[Block]:
    worst, broken = worst_and_broken(run, MAX_WORST)
    why = rank_reasons(run, [ranked.number for ranked in worst])
    lines = [
        f"- {code(ranked.conversation)}: {'; '.join(map(plain, why[ranked.number].reasons))}"
        for ranked in worst
        if why[ranked.number].reasons
    ]
    if lines:
        yield Block([f"Conversations, {ORDERS[rank(run).basis]}:", ""], lines, [""])
    if broken:
        errors = [f"- {code(ranked.conversation)}: {code(ranked.error)}" for ranked in broken]
        yield Block(["The integration broke, which says nothing about the agent:", ""], errors, [""])


def _groups(summary: Summary) -> Iterator[Block]:
    for table in islice(group_tables(summary, MAX_COLUMNS), MAX_GROUPINGS):
        lines = markdown_table(table)
        # Inside the HTML, up to the blank line, there is no Markdown: names are escaped as HTML.
        names = (column.title for column in table.columns[: table.name_count])
        title = " and ".join(f"<code>{escape(one_line(name))}</code>" for name in names)
        head = [f"<details><summary>By {title}</summary>", "", *lines.head]
        notes = [line for note in table.notes for line in (plain(note), "")]
        yield Block(head, lines.rows, ["", *notes, "</details>", ""])
    small = [f"- {plain(small_text(groups))}" for groups in summary.small_groups]
    yield Block([], small, [""] if small else [])


def _judging(summary: Summary) -> Block:
    lines = [f"- {plain(line)}" for line in judging_lines(summary)]
    return Block(["How far judges agree:", ""], lines, [""]) if lines else Block([], [])


def _reading(run: Run) -> Block:
    report = run.read_report
    output = io.StringIO()
    print_reading(Screen(output), report)
    lines = [f"- {plain(line)}" for line in output.getvalue().splitlines()]
    shown = report.problems[:MAX_PROBLEMS]
    lines += [f"- problem: {code(str(problem))}" for problem in shown]
    if more := report.problem_count - sum(problem.count for problem in shown):
        lines.append(f"- and {more:,} more problems, in read-report.json")
    lines += [f"- note: {code(warning)}" for warning in report.warnings[:MAX_PROBLEMS]]
    title = counted(report.problem_count, "problem") if report.problem_count else "no problem"
    return Block([f"<details><summary>Reading: {title}</summary>", ""], lines, ["", "</details>", ""])
