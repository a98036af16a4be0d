"""Compare runs or logs: logs are scored first. The comparison on the terminal, as Markdown, and in a notebook."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import msgspec
from rich.cells import cell_len

from convoscope.analysis.answer.figures import twin_of
from convoscope.analysis.compare.figures import USUAL, Smallest
from convoscope.analysis.compare.make import compare_by, compare_runs
from convoscope.analysis.compare.model import ComparedFigure, ConversationPair, Finding, RunComparison
from convoscope.analysis.compare.words import (
    difference_text,
    false_share_text,
    interval_text,
    rounded,
    signed_text,
)
from convoscope.analysis.words import counted, number_text, value_text
from convoscope.errors import UsageError
from convoscope.harmless import clean, one_line
from convoscope.metrics.declaration import RATIO, SHARE
from convoscope.report.score import score_with
from convoscope.report.screen import WIDTH, Screen, wrapped_lines
from convoscope.report.table import plain
from convoscope.runs.run import RECEIPT, Run
from convoscope.scoring.settings import ScoreSettings
from convoscope.storage import as_path

LABEL = 27
HEAD = 10
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
) -> RunComparison:
    """Runs or logs against the first of them; or, with `by`, the groups of one run.

    Logs are scored first, with `settings` as `convoscope.score` takes them.
    """
    runs = [opened(source, ScoreSettings(**settings)) for source in sources]
    return compared(runs, by=by, values=values, smallest=smallest, names=side_names(sources))


def side_names(sources: Sequence[str | os.PathLike[str] | Run]) -> list[str]:
    """What sides are called: the names of runs and of the folders or files of logs; nothing where two are the same."""
    names = [one.name if isinstance(one, Run) else Path(os.path.abspath(one)).name for one in sources]
    return names if len(set(names)) == len(names) else []


def compared(
    runs: Sequence[Run],
    *,
    by: str | None = None,
    values: Sequence[str] = (),
    smallest: Smallest = USUAL,
    names: Sequence[str] = (),
) -> RunComparison:
    """The same of runs that are open."""
    if by is None:
        return compare_runs(runs, smallest, names)
    if len(runs) != 1:
        raise UsageError("--by compares the groups of one run", hint="name one run, or leave --by out")
    return compare_by(runs[0], by, values, smallest)


def opened(source: str | os.PathLike[str] | Run, settings: ScoreSettings) -> Run:
    """A run as it is, or the run of logs, which are scored first."""
    if isinstance(source, Run):
        return source
    path = as_path(source)
    if (path / RECEIPT).is_file():
        return Run.open(path)
    return score_with([path], settings)


def print_comparison(screen: Screen, comparison: RunComparison, *, full: bool = False) -> None:
    """The answer first, then what moved, what is open, what was fixed and what broke."""
    for clause in comparison.sentences:
        style = {"bad": "bold red", "good": "bold green"}.get(clause.tone, "bold" if clause.lead else "")
        screen.wrapped(clause.text, style)
    for later in comparison.sides[1:]:
        own = [one for one in comparison.figures if one.side == later.name]
        screen.line()
        _print_figures(screen, comparison, later.name, own, full=full)
    _print_groups(screen, comparison)
    screen.line()
    if comparison.shared and (comparison.fixed or comparison.broken):
        screen.wrapped(f"{moved_text(comparison)}{_first(comparison)}")
    screen.wrapped(comparison.pairing)
    for note in comparison.notes:
        screen.wrapped(note, "yellow")


def moved_text(comparison: RunComparison) -> str:
    """`9 calls fixed, 21 broken`."""
    return f"{counted(comparison.fixed, comparison.noun)} fixed, {comparison.broken:,} broken"


def _first(comparison: RunComparison) -> str:
    first = next(iter(comparison.pairs), None)
    return "" if first is None else f"; first: {one_line(first.after)}, before {one_line(first.before)}"


def _print_figures(
    screen: Screen, comparison: RunComparison, later: str, figures: Sequence[ComparedFigure], *, full: bool
) -> None:
    rows = {finding: [one for one in figures if one.finding == finding] for finding in TITLES}
    if not full:
        rows = {finding: [one for one in found if not one.same_as] for finding, found in rows.items()}
    shown = {finding: found if full else _without_related(found)[: _most(finding)] for finding, found in rows.items()}
    cells = {id(one): _cells(one, full=full) for found in shown.values() for one in found}
    heads = (_head(comparison.sides[0].name), _head(later))
    widths = [
        max(
            [cell_len(row[column]) for row in cells.values()]
            + ([cell_len(heads[column - 1])] if column in (1, 2) else [0])
        )
        for column in range(4)
    ]
    screen.line(f"  {'':{widths[0]}}  {heads[0]:>{widths[1]}}  {heads[1]:>{widths[2]}}".rstrip())
    for finding, figures_of_it in rows.items():
        if finding in ("open", "not_compared") and not figures_of_it:
            continue
        if finding == "not_compared" and not full:
            example = f"{figures_of_it[0].label}: {figures_of_it[0].remark}"
            screen.wrapped(f"{TITLES[finding]}: {len(figures_of_it):,}, such as {example} (--full)")
            continue
        hidden = len(figures_of_it) - len(shown[finding])
        more = f" ({hidden:,} more with --full)" if hidden else ""
        screen.line(f"{TITLES[finding]}: {len(figures_of_it):,}{more}")
        for row in shown[finding]:
            _print_row(screen, row, cells[id(row)], widths)


def _head(name: str) -> str:
    text = one_line(name)
    return text if cell_len(text) <= HEAD else f"{text[: HEAD - 1]}…"


def _without_related(figures: Sequence[ComparedFigure]) -> list[ComparedFigure]:
    """One of the figures that move together by definition; the slowest 5 % of a wait stay beside its mean."""
    kept: dict[tuple[object, str], ComparedFigure] = {}
    for figure in figures:
        key, _, reduction = figure.metric.partition(" ")
        kept.setdefault((twin_of(key), reduction), figure)
    return list(kept.values())


def _most(finding: Finding) -> int:
    return {"open": MOST_OPEN, "not_compared": 0}.get(finding, 12)


def _cells(figure: ComparedFigure, *, full: bool) -> tuple[str, str, str, str, str]:
    label = one_line(figure.label)
    label = label if len(label) <= LABEL else f"{label[: LABEL - 1]}…"
    return (
        label,
        _short(figure.before, figure.unit),
        _short(figure.after, figure.unit),
        _short_difference(figure),
        _remark(figure) + (f", {false_share_text(figure.q)}" if full and figure.q is not None else ""),
    )


def _short(value: float | None, unit: str) -> str:
    """A value in a narrow column: a unit of several words is left out."""
    if value is None or unit == SHARE or len(unit) <= SHORT_UNIT:
        return value_text(value, unit)
    return number_text(value, RATIO if abs(value) < 1 else unit)


def _short_difference(figure: ComparedFigure) -> str:
    if figure.unit == SHARE or len(figure.unit) <= SHORT_UNIT or figure.difference is None:
        return difference_text(figure.difference, figure.unit)
    return signed_text(figure.difference, RATIO if abs(figure.difference) < 1 else figure.unit)


def _remark(figure: ComparedFigure) -> str:
    if figure.finding in ("better", "worse"):
        return interval_text(figure) + (", too small to matter" if figure.small else "") + _within(figure)
    if figure.needs:
        return f"needs ~{rounded(figure.needs):,} more{_within(figure)}"
    has_interval = figure.low is not None and figure.high is not None and figure.remark.startswith("may be")
    return (interval_text(figure) if has_interval else figure.remark or interval_text(figure)) + _within(figure)


def _within(figure: ComparedFigure) -> str:
    return f", within {figure.within}" if figure.within else ""


def _print_row(
    screen: Screen, figure: ComparedFigure, cells: tuple[str, str, str, str, str], widths: Sequence[int]
) -> None:
    label = cells[0] + " " * (widths[0] - cell_len(cells[0]))
    line = f"  {label}  {cells[1]:>{widths[1]}}  {cells[2]:>{widths[2]}}  {cells[3]:>{widths[3]}}"
    style = {"worse": "red", "better": "green"}.get(figure.finding, "") if not figure.small else ""
    if cell_len(line) + 2 + cell_len(cells[4]) <= WIDTH:
        screen.line(f"{line}  {cells[4]}".rstrip(), style)
        return
    screen.line(line.rstrip(), style)
    for part in wrapped_lines(cells[4]):
        screen.line(part.strip().rjust(WIDTH), style)


def _print_groups(screen: Screen, comparison: RunComparison) -> None:
    lines = [one.sentence for one in comparison.groups] + [one.sentence for one in comparison.mix]
    if lines:
        screen.line()
    for line in lines:
        screen.wrapped(line)


def print_after(screen: Screen, comparison: RunComparison, page: Path | None) -> None:
    """Where the page is, and what to look at next."""
    if page is not None:
        screen.line(f"page  {page}")
    pair = next(iter(comparison.pairs), None)
    if pair is not None:
        run = next(one.run for one in comparison.sides if one.name == pair.side)
        screen.line(f"next  convoscope show {shlex.quote(run)} {shlex.quote(one_line(pair.after))}")


MAX_ROWS = 40


def comparison_markdown(comparison: RunComparison) -> str:
    """The comparison for a pull request. What comes from logs cannot be markup."""
    before, *later = comparison.sides
    names = " and ".join(plain(one.name) for one in later)
    lines = [f"### {names} against {plain(before.name)}", ""]
    for clause in comparison.sentences:
        lines += [f"{f'**{plain(clause.lead)}**' if clause.lead else ''}{plain(clause.rest)}", ""]
    tested = [one for one in comparison.figures if one.p is not None and not one.same_as]
    after = plain(later[0].name) if len(later) == 1 else "after"
    head = ["figure", plain(before.name), after, "difference", "95 % interval", "n", ""]
    lines += [f"| {' | '.join(head)} |", "|---|--:|--:|--:|--:|--:|---|"]
    for figure in tested[:MAX_ROWS]:
        cells = [
            plain(figure.label) + (f" ({plain(figure.side)})" if len(later) > 1 else ""),
            value_text(figure.before, figure.unit),
            value_text(figure.after, figure.unit),
            difference_text(figure.difference, figure.unit),
            interval_text(figure),
            f"{figure.n:,}{' pairs' if figure.paired else ''}",
            _word(figure),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    if len(tested) > MAX_ROWS:
        lines.append(f"\n{len(tested) - MAX_ROWS:,} more figures show no clear difference.")
    lines += ["", plain(comparison.pairing) + "."]
    if comparison.fixed or comparison.broken:
        lines += ["", f"{moved_text(comparison)}:", ""]
        for pair in _some_pairs(comparison):
            reason = f": {plain(pair.reason)}" if pair.reason else ""
            lines.append(f"- {pair.moved}: {plain(pair.after)}, before {plain(pair.before)}{reason}")
    extra = [*(one.sentence for one in comparison.groups), *(one.sentence for one in comparison.mix), *comparison.notes]
    lines += ["", *(f"- {plain(one)}" for one in extra)] if extra else []
    return "\n".join(lines) + "\n"


def _some_pairs(comparison: RunComparison) -> list[ConversationPair]:
    """The first that broke, and the first that were fixed."""
    by_kind = [[pair for pair in comparison.pairs if pair.moved == kind][:5] for kind in ("broken", "fixed")]
    return [*by_kind[0], *by_kind[1]]


def _word(figure: ComparedFigure) -> str:
    if figure.finding in ("better", "worse"):
        share = f", {false_share_text(figure.q)}" if figure.q is not None else ""
        return f"**{figure.finding}**" + (", too small to matter" if figure.small else "") + share
    return plain(figure.remark) if figure.remark else "no clear difference"


def comparison_html(comparison: RunComparison) -> str:
    """How a notebook shows a comparison. What comes from logs is escaped."""
    return f'<div style="max-width: 860px; line-height: 1.45">\n{chr(10).join(_html(comparison))}\n</div>'


def _html(comparison: RunComparison) -> Iterator[str]:
    for clause in comparison.sentences:
        yield f"<p><b>{_text(clause.lead)}</b>{_text(clause.rest)}</p>"
    names = ("figure", comparison.sides[0].name, "after", "difference", "95 % interval", "n", "")
    head = "".join(f"<th>{_text(name)}</th>" for name in names)
    yield f"<table>\n<thead><tr>{head}</tr></thead><tbody>"
    for figure in comparison.figures:
        if figure.p is None or figure.same_as:
            continue
        cells = (
            value_text(figure.before, figure.unit),
            value_text(figure.after, figure.unit),
            difference_text(figure.difference, figure.unit),
            interval_text(figure),
            f"{figure.n:,}",
            TITLES[figure.finding] if figure.finding != "open" else figure.remark or TITLES["open"],
        )
        yield f'<tr><td style="text-align: left" title="{_text(figure.metric)}">{_text(figure.label)}</td>'
        yield "".join(f"<td>{_text(cell)}</td>" for cell in cells) + "</tr>"
    yield f"</tbody>\n</table>\n<p>{_text(comparison.pairing)}</p>"


def _text(value: object) -> str:
    return escape(clean(str(value)))


RunComparison.html = comparison_html


def comparison_json(comparison: RunComparison) -> Any:
    """For a program: `claims`, `figures`, `verdict`, and the rest."""
    made = msgspec.to_builtins(comparison)
    return {**made, "sentences": [clause.text for clause in comparison.sentences]}
