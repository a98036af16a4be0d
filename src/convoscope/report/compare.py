"""Compare runs or logs: logs are scored first. The comparison on the terminal, as Markdown, and in a notebook."""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import msgspec
from rich.cells import cell_len

from convoscope.analysis.answer.figures import twin_of
from convoscope.analysis.compare.figures import USUAL, Smallest
from convoscope.analysis.compare.make import compare_by, compare_runs
from convoscope.analysis.compare.model import ComparedFigure, Comparison, Finding
from convoscope.analysis.compare.words import difference_text, interval_text, rounded, signed_text
from convoscope.analysis.words import counted, cut_text, number_text, value_text
from convoscope.errors import UsageError
from convoscope.harmless import clean, one_line
from convoscope.metrics.declaration import RATIO, SHARE
from convoscope.report.score import score_with
from convoscope.report.screen import Screen
from convoscope.report.table import plain
from convoscope.runs.run import RECEIPT, Run
from convoscope.scoring.settings import ScoreSettings

WIDTH = 80
LABEL = 27
SHORT_UNIT = 2
"""Letters of a unit that fits into a column."""
MOST_OPEN = 5
"""Open figures that the short form lists, by importance."""
TITLES: dict[Finding, str] = {
    "worse": "worse",
    "better": "better",
    "open": "no clear difference",
    "not_compared": "not compared",
}


def compare(
    *sources: str | os.PathLike[str] | Run,
    by: str | None = None,
    values: Sequence[str] = (),
    smallest: Smallest = USUAL,
    **settings: Any,
) -> Comparison:
    """Runs or logs against the first of them; or, with `by`, the groups of one run.

    Logs are scored first, with `settings` as `convoscope.score` takes them.
    """
    runs = [opened(source, ScoreSettings(**settings)) for source in sources]
    return compared(runs, by=by, values=values, smallest=smallest)


def compared(
    runs: Sequence[Run], *, by: str | None = None, values: Sequence[str] = (), smallest: Smallest = USUAL
) -> Comparison:
    """The same of runs that are open."""
    if by is None:
        return compare_runs(runs, smallest)
    if len(runs) != 1:
        raise UsageError("--by compares the groups of one run", hint="name one run, or leave --by out")
    return compare_by(runs[0], by, values, smallest)


def opened(source: str | os.PathLike[str] | Run, settings: ScoreSettings) -> Run:
    """A run as it is, or the run of logs, which are scored first."""
    if isinstance(source, Run):
        return source
    path = Path(source)
    if (path / RECEIPT).is_file():
        return Run.open(path)
    return score_with([path], settings)


def print_comparison(screen: Screen, comparison: Comparison, *, full: bool = False) -> None:
    """The answer first, then what moved, what is open, what was fixed and what broke."""
    for clause in comparison.sentences:
        style = {"bad": "bold red", "good": "bold green"}.get(clause.tone, "bold" if clause.lead else "")
        _wrapped(screen, clause.text, style)
    for later in comparison.sides[1:]:
        own = [one for one in comparison.figures if one.side == later.name]
        screen.line()
        _print_figures(screen, comparison, later.name, own, full=full)
    _print_groups(screen, comparison)
    screen.line()
    if comparison.shared and (comparison.fixed or comparison.broken):
        _wrapped(screen, f"{moved_text(comparison)}{_first(comparison)}")
    _wrapped(screen, comparison.pairing)
    for note in comparison.notes:
        _wrapped(screen, note, "yellow")


def moved_text(comparison: Comparison) -> str:
    """`9 calls fixed, 21 broken`."""
    return f"{counted(comparison.fixed, comparison.noun)} fixed, {comparison.broken:,} broken"


def _first(comparison: Comparison) -> str:
    first = next(iter(comparison.pairs), None)
    return "" if first is None else f"; first: {one_line(first.after)}, before {one_line(first.before)}"


def _print_figures(
    screen: Screen, comparison: Comparison, later: str, figures: Sequence[ComparedFigure], *, full: bool
) -> None:
    rows = {finding: [one for one in figures if one.finding == finding] for finding in TITLES}
    if not full:
        rows = {finding: [one for one in found if not one.same_as] for finding, found in rows.items()}
    shown = {finding: found if full else _without_related(found)[: _most(finding)] for finding, found in rows.items()}
    cells = {id(one): _cells(one) for found in shown.values() for one in found}
    heads = (cut_text(one_line(comparison.sides[0].name), 12), cut_text(one_line(later), 12))
    widths = [
        max(
            [cell_len(row[column]) for row in cells.values()]
            + ([cell_len(heads[column - 1])] if column in (1, 2) else [0])
        )
        for column in range(4)
    ]
    screen.line(f"  {'':{widths[0]}}  {heads[0]:>{widths[1]}}  {heads[1]:>{widths[2]}}".rstrip())
    for finding, found in rows.items():
        if finding in ("open", "not_compared") and (not found or (finding == "not_compared" and not full)):
            continue
        more = f" ({len(found) - len(shown[finding]):,} more with --full)" if len(shown[finding]) < len(found) else ""
        screen.line(f"{TITLES[finding]}: {len(found):,}{more}")
        for one in shown[finding]:
            _print_row(screen, one, cells[id(one)], widths)


def _without_related(figures: Sequence[ComparedFigure]) -> list[ComparedFigure]:
    """One of the figures that move together by definition; the slowest 5 % of a wait stay beside its mean."""
    kept: dict[tuple[object, str], ComparedFigure] = {}
    for one in figures:
        key, _, reduction = one.metric.partition(" ")
        kept.setdefault((twin_of(key), reduction), one)
    return list(kept.values())


def _most(finding: Finding) -> int:
    return {"open": MOST_OPEN, "not_compared": 0}.get(finding, 12)


def _cells(one: ComparedFigure) -> tuple[str, str, str, str, str]:
    label = one_line(one.label)
    label = label if len(label) <= LABEL else f"{label[: LABEL - 1]}…"
    return (
        label,
        _short(one.before, one.unit),
        _short(one.after, one.unit),
        _short_difference(one),
        _remark(one),
    )


def _short(value: float | None, unit: str) -> str:
    """A value in a narrow column: a unit of several words is left out."""
    if value is None or unit == SHARE or len(unit) <= SHORT_UNIT:
        return value_text(value, unit)
    return number_text(value, RATIO if abs(value) < 1 else unit)


def _short_difference(one: ComparedFigure) -> str:
    if one.unit == SHARE or len(one.unit) <= SHORT_UNIT or one.difference is None:
        return difference_text(one.difference, one.unit)
    return signed_text(one.difference, RATIO if abs(one.difference) < 1 else one.unit)


def _remark(one: ComparedFigure) -> str:
    if one.finding in ("better", "worse"):
        return interval_text(one) + (", too small to matter" if one.small else "") + _within(one)
    if one.needs:
        return f"needs ~{rounded(one.needs):,} more{_within(one)}"
    has_interval = one.low is not None and one.high is not None and one.remark.startswith("may be")
    return (interval_text(one) if has_interval else one.remark or interval_text(one)) + _within(one)


def _within(one: ComparedFigure) -> str:
    return f", within {one.within}" if one.within else ""


def _print_row(
    screen: Screen, one: ComparedFigure, cells: tuple[str, str, str, str, str], widths: Sequence[int]
) -> None:
    label = cells[0] + " " * (widths[0] - cell_len(cells[0]))
    line = f"  {label}  {cells[1]:>{widths[1]}}  {cells[2]:>{widths[2]}}  {cells[3]:>{widths[3]}}"
    style = {"worse": "red", "better": "green"}.get(one.finding, "") if not one.small else ""
    if cell_len(line) + 2 + cell_len(cells[4]) <= WIDTH:
        screen.line(f"{line}  {cells[4]}".rstrip(), style)
        return
    screen.line(line.rstrip(), style)
    for part in textwrap.wrap(one_line(cells[4], None), WIDTH - 8):
        screen.line(part.rjust(WIDTH), style)


def _print_groups(screen: Screen, comparison: Comparison) -> None:
    lines = [one.sentence for one in comparison.groups] + [one.sentence for one in comparison.mix]
    if lines:
        screen.line()
    for line in lines:
        _wrapped(screen, line)


def print_after(screen: Screen, comparison: Comparison, page: Path | None) -> None:
    """Where the page is, and what to look at next."""
    if page is not None:
        screen.line(f"page  {page}")
    pair = next(iter(comparison.pairs), None)
    if pair is not None:
        run = next(one.run for one in comparison.sides if one.name == pair.side)
        screen.line(f"next  convoscope show {shlex.quote(run)} {shlex.quote(one_line(pair.after))}")


def _wrapped(screen: Screen, text: str, style: str = "") -> None:
    for line in textwrap.wrap(one_line(text, None), WIDTH, subsequent_indent="  ", break_on_hyphens=False):
        screen.line(line, style)


MAX_ROWS = 40


def comparison_markdown(comparison: Comparison) -> str:
    """The comparison for a pull request. What comes from logs cannot be markup."""
    before, *later = comparison.sides
    names = " and ".join(plain(one.name) for one in later)
    lines = [f"### {names} against {plain(before.name)}", ""]
    for clause in comparison.sentences:
        lines += [f"{f'**{plain(clause.lead)}**' if clause.lead else ''}{plain(clause.rest)}", ""]
    tested = [one for one in comparison.figures if one.p is not None and not one.same_as]
    head = ["figure", plain(before.name), "after", "difference", "95 % interval", "n", ""]
    lines += [f"| {' | '.join(head)} |", "|---|--:|--:|--:|--:|--:|---|"]
    for one in tested[:MAX_ROWS]:
        cells = [
            plain(one.label) + (f" ({plain(one.side)})" if len(later) > 1 else ""),
            value_text(one.before, one.unit),
            value_text(one.after, one.unit),
            difference_text(one.difference, one.unit),
            interval_text(one),
            f"{one.n:,}{' pairs' if one.paired else ''}",
            _word(one),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    if len(tested) > MAX_ROWS:
        lines.append(f"\n{len(tested) - MAX_ROWS:,} more figures show no clear difference.")
    lines += ["", plain(comparison.pairing) + "."]
    if comparison.fixed or comparison.broken:
        lines += ["", f"{moved_text(comparison)}:", ""]
        for pair in comparison.pairs[:10]:
            reason = f": {plain(pair.reason)}" if pair.reason else ""
            lines.append(f"- {pair.moved}: {plain(pair.after)}, before {plain(pair.before)}{reason}")
    extra = [*(one.sentence for one in comparison.groups), *(one.sentence for one in comparison.mix), *comparison.notes]
    lines += ["", *(f"- {plain(one)}" for one in extra)] if extra else []
    return "\n".join(lines) + "\n"


def _word(one: ComparedFigure) -> str:
    if one.finding in ("better", "worse"):
        return f"**{one.finding}**" + (", too small to matter" if one.small else "")
    return plain(one.remark) if one.remark else "no clear difference"


def comparison_html(comparison: Comparison) -> str:
    """How a notebook shows a comparison. What comes from logs is escaped."""
    return f'<div style="max-width: 860px; line-height: 1.45">\n{chr(10).join(_html(comparison))}\n</div>'


def _html(comparison: Comparison) -> Iterator[str]:
    for clause in comparison.sentences:
        yield f"<p><b>{_text(clause.lead)}</b>{_text(clause.rest)}</p>"
    names = ("figure", comparison.sides[0].name, "after", "difference", "95 % interval", "n", "")
    head = "".join(f"<th>{_text(name)}</th>" for name in names)
    yield f"<table>\n<thead><tr>{head}</tr></thead><tbody>"
    for one in comparison.figures:
        if one.p is None or one.same_as:
            continue
        cells = (
            value_text(one.before, one.unit),
            value_text(one.after, one.unit),
            difference_text(one.difference, one.unit),
            interval_text(one),
            f"{one.n:,}",
            TITLES[one.finding] if one.finding != "open" else one.remark or TITLES["open"],
        )
        yield f'<tr><td style="text-align: left" title="{_text(one.metric)}">{_text(one.label)}</td>'
        yield "".join(f"<td>{_text(cell)}</td>" for cell in cells) + "</tr>"
    yield f"</tbody>\n</table>\n<p>{_text(comparison.pairing)}</p>"


def _text(value: object) -> str:
    return escape(clean(str(value)))


Comparison.html = comparison_html


def comparison_json(comparison: Comparison) -> Any:
    """For a program: `claims`, `figures`, `verdict`, and the rest."""
    made = msgspec.to_builtins(comparison)
    made["sentences"] = [clause.text for clause in comparison.sentences]
    return {"claims": [], "figures": [], **made}
