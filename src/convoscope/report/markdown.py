"""A run as Markdown, fit for a comment on a pull request.

Whatever a log or a plugin says stands in a code span, where no dialect sees markup, HTML, a link or
a mention. The whole stays below what a comment may hold; what was cut is said.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from convoscope.harmless import one_line
from convoscope.report.files import write_text
from convoscope.report.groups import are_alone, groupings, small_text
from convoscope.report.screen import Screen
from convoscope.report.targets import Check, observed, run_checks, tally_text, target_text
from convoscope.report.terminal import print_reading
from convoscope.report.unmeasured import headlines, heard
from convoscope.report.words import (
    behind_text,
    counted,
    coverage_text,
    interval_text,
    name_text,
    points_text,
    reason_text,
    reasons_text,
    value_text,
)
from convoscope.runs.ranking import Standing, worst
from convoscope.runs.run import Run
from convoscope.runs.summary import Group, Summary
from convoscope.statistics.summary import Figure

MAX_CHARACTERS = 65_536
"""What GitHub takes as a comment."""
MAX_WORST = 5
MAX_GROUPS = 12
MAX_GROUPINGS = 8
MAX_COLUMNS = 10
MAX_PROBLEMS = 10
_RESERVED = 1_000
"""Kept free for the last lines."""
_PLAIN = re.compile(r"(?:[A-Za-z0-9 ,·%()…-]|(?<=[0-9])\.(?=[0-9])|[:;](?= ))*")
_BACKTICKS = re.compile("`+")


class Block(NamedTuple):
    """Some lines that belong together: those in the middle may be cut, the others stand or fall with the block."""

    head: Sequence[str]
    lines: Sequence[str]
    tail: Sequence[str] = ()


def write_markdown(run: Run, path: str | os.PathLike[str], targets: Sequence[str] = ()) -> None:
    """Write the Markdown of a run, whole or not at all."""
    write_text(Path(path), markdown(run, targets))


def markdown(run: Run, targets: Sequence[str] = ()) -> str:
    """The Markdown of a run. `targets` come beside those that the run was scored with."""
    checks = run_checks(run, targets)
    blocks = [
        _title(run, checks),
        _group_targets([check for check in checks if check.by]),
        _figures(run.summary, [check for check in checks if not check.by]),
        _worst(worst(run, MAX_WORST)),
        *_groups(run.summary),
        _reading(run),
    ]
    receipt = run.receipt
    where = f"Run {code(str(run.folder))}, {code(receipt.run_id)}, finished {plain(receipt.finished_at)}."
    return "\n".join([*fit(blocks, MAX_CHARACTERS - _RESERVED), where]) + "\n"


def code(text: str) -> str:
    """A text out of a log as a code span: its fence is longer than any run of backticks in it."""
    line = one_line(text)
    if not line.strip():
        return "(blank)"
    fence = "`" * (1 + max((len(found) for found in _BACKTICKS.findall(line)), default=0))
    space = " " if line[0] in "` " or line[-1] in "` " else ""
    return f"{fence}{space}{line}{space}{fence}"


def plain(text: str) -> str:
    """Words as they are where nothing in them could be taken for markup, else a code span."""
    return text if _PLAIN.fullmatch(text) else code(text)


def row(cells: Sequence[str]) -> str:
    """A row of a table. A pipe in a cell is broken: dialects do not agree on how to escape one in a code span."""
    return f"| {' | '.join(cell.replace('|', '¦') for cell in cells)} |"


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


def _title(run: Run, checks: Sequence[Check]) -> Block:
    receipt = run.receipt
    head = [f"## Convoscope: {code(run.name)}", ""]
    if not receipt.valid:
        by = f", superseded by {code(receipt.superseded_by)}" if receipt.superseded_by else ""
        when, why = plain(receipt.invalidated_at or ""), code(receipt.invalid_reason or "")
        head += [f"**INVALID** since {when}: {why}{by}. Its numbers are not to be relied on.", ""]
    head += [f"**{tally_text(checks)}**, over {counted(run.summary.conversations, 'conversation')}", ""]
    return Block(head, [])


def _group_targets(checks: Sequence[Check]) -> Block:
    """Targets of groups; those of all conversations stand in the table, beside their figures."""
    lines = [
        f"- {code(check.name)} {plain(value_text(check.figure.value, check.figure.unit))}, target {_target(check)}"
        for check in checks
    ]
    return Block(["Targets of groups:", ""], lines, [""]) if lines else Block([], [])


def _figures(summary: Summary, checks: Sequence[Check]) -> Block:
    """All figures in one table, each family under its name."""
    titles = ["metric", "value", "95 % interval", "n", "coverage", "better", "not measured"]
    sides = ["---", "---:", "---:", "---:", "---:", "---", "---"]
    if checks:
        titles.insert(6, "target")
        sides.insert(6, "---")
    lines: list[str] = []
    family = ""
    shown = heard(summary, {one.name for one in checks})
    for figure in shown.figures:
        if family != figure.metric.split(".", 1)[0]:
            family = figure.metric.split(".", 1)[0]
            lines.append(row([f"**{plain(family)}**", *[""] * (len(titles) - 1)]))
        lines.append(row(_cells(figure, summary, checks)))
    silent = [f"- {plain(silence.text)}" for silence in shown.silent]
    rest = ["", f"And {counted(len(shown.parts), 'figure')} of their parts, in the page."] if shown.parts else []
    rest += ["", "Nothing to measure here for:", "", *silent] if silent else []
    return Block([row(titles), row(sides)], lines, [*rest, ""])


def _cells(figure: Figure, summary: Summary, checks: Sequence[Check]) -> list[str]:
    name = name_text(figure)
    left_out = reasons_text(figure, observed(figure, summary))
    if figure.value is None and not left_out:
        left_out = reason_text(figure.reason)
    points = points_text(figure.ten, summary.by_key.get(figure.key))
    cells = [
        code(name),
        plain(value_text(figure.value, figure.unit)) + (f"<br>of 10: {points}" if points else ""),
        interval_text(figure),
        f"{figure.n:,}",
        coverage_text(figure),
        "" if figure.better == "neither" else figure.better,
        plain(left_out),
    ]
    if checks:
        cells.insert(6, "<br>".join(_target(check) for check in checks if check.name == name))
    return cells


def _target(check: Check) -> str:
    sign, _, value = target_text(check.target, check.figure.unit).partition(" ")
    return f"{escape(sign)} {plain(value)}: {plain(check.verdict.words)}"


def _worst(standings: Sequence[Standing]) -> Block:
    lines = [f"- {code(one.conversation)}: {'; '.join(_reasons(one))}" for one in standings if one.because or one.error]
    if not lines:
        return Block([], [])
    return Block(["Furthest behind the others:", ""], lines, [""])


def _reasons(one: Standing) -> Iterator[str]:
    if one.error:
        yield f"the integration broke: {code(one.error)}"
    for behind in one.because:
        key, _, rest = behind_text(behind).partition(" ")
        yield f"{code(key)} {plain(rest)}"


def _groups(summary: Summary) -> Iterator[Block]:
    """One table per grouping, folded. Groups of one are not worth a table."""
    worthy = [(names, found) for names, found in groupings(summary.groups).items() if not are_alone(found)]
    for names, found in worthy[:MAX_GROUPINGS]:
        yield _grouping(summary, names, found)
    small = [f"- {plain(small_text(one))}" for one in summary.small_groups]
    yield Block([], small, [""] if small else [])


def _grouping(summary: Summary, names: Sequence[str], groups: Sequence[Group]) -> Block:
    heads = headlines(summary, groups)
    columns = [name_text(one) for one in heads[:MAX_COLUMNS]]
    titles = [*(code(name) for name in names), "conversations", *(code(name) for name in columns)]
    lines = []
    for group in groups[:MAX_GROUPS]:
        found = {name_text(one): value_text(one.value, one.unit) for one in group.metrics}
        values = [plain(found.get(name, "·")) for name in columns]
        lines.append(row([*(code(group.by[name]) for name in names), f"{group.conversations:,}", *values]))
    tail = [""]
    if len(groups) > MAX_GROUPS:
        tail += [f"and {len(groups) - MAX_GROUPS:,} more groups", ""]
    if len(heads) > MAX_COLUMNS:
        tail += [f"and {len(heads) - MAX_COLUMNS:,} more metrics", ""]
    sides = ["---"] * len(names) + ["---:"] * (1 + len(columns))
    # Inside the HTML, up to the blank line, there is no Markdown: names are escaped as HTML.
    title = " and ".join(f"<code>{escape(one_line(name))}</code>" for name in names)
    head = [f"<details><summary>By {title}</summary>", "", row(titles), row(sides)]
    return Block(head, lines, [*tail, "</details>", ""])


def _reading(run: Run) -> Block:
    report = run.read_report
    said = io.StringIO()
    print_reading(Screen(said), report)
    lines = [f"- {plain(line)}" for line in said.getvalue().splitlines()]
    shown = report.problems[:MAX_PROBLEMS]
    lines += [f"- problem: {code(str(problem))}" for problem in shown]
    if more := report.problem_count - sum(problem.count for problem in shown):
        lines.append(f"- and {more:,} more problems, in read-report.json")
    lines += [f"- note: {code(warning)}" for warning in report.warnings[:MAX_PROBLEMS]]
    title = counted(report.problem_count, "problem") if report.problem_count else "no problem"
    return Block([f"<details><summary>Reading: {title}</summary>", ""], lines, ["", "</details>", ""])
