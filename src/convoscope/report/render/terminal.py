"""Tables and sentences on a terminal, within its width; in a pipe whole, with aligned columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len

from convoscope.harmless import one_line
from convoscope.report.screen import Screen
from convoscope.report.table import NOTE, ReportTable, Row, Side, TableCell, TableColumn

_MIN_WORDS = 14
"""Letters that a column of words keeps, however narrow the terminal."""
_RULE_WIDTH = 3
_GAP = "  "


def print_table(screen: Screen, table: ReportTable) -> None:
    """Print a table: as wide as it is where there is room, else with less, else one block per row."""
    if table.title:
        screen.line(table.title, "bold")
    table = _cleaned(table)
    if screen.is_terminal:
        lean = table.lean()
        forms = (table, lean, lean.folded())
        fitting = next((form for form in forms if _least_width(form) <= screen.width), None)
        if fitting is None:
            _print_blocks(screen, table)
        else:
            _print_ruled(screen, fitting)
    else:
        _print_aligned(screen, table)
    if table.notes:
        screen.line()
    for note in table.notes:
        print_words(screen, note)


def print_words(screen: Screen, text: str, first: str = "", indent: str = "", style: str = "") -> None:
    """A sentence, within the width of a terminal; a pipe gets it whole. Later lines stand below the first word."""
    lines = [text]
    if screen.is_terminal:
        width = screen.width - max(len(first), len(indent))
        # Commands and names are not broken: whoever copies them would copy a blank.
        lines = textwrap.wrap(text, max(20, width), break_long_words=False, break_on_hyphens=False) or [""]
    for at, line in enumerate(lines):
        screen.line((indent if at else first or indent) + line, style)


def _cleaned(table: ReportTable) -> ReportTable:
    columns = [column._replace(title=one_line(column.title, None)) for column in table.columns]
    rows = [
        [TableCell(one_line(cell.text, None), one_line(cell.below, None), cell.strong) for cell in row]
        for row in table.rows
    ]
    return table._replace(columns=columns, rows=rows)


def _print_aligned(screen: Screen, table: ReportTable) -> None:
    rows = [[_starred(cell) for cell in row] for row in _lines(table)]
    cells = [[column.title for column in table.columns], *rows]
    widths = [max(cell_len(row[at]) for row in cells) for at in range(len(table.columns))]
    for row in cells:
        padded = (
            _padded(text, width, column.side) for text, width, column in zip(row, widths, table.columns, strict=True)
        )
        screen.line("  ".join(padded).rstrip())


def _print_ruled(screen: Screen, table: ReportTable) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    ruled = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for at, column in enumerate(table.columns):
        wraps = table.wraps(at)
        ruled.add_column(column.title, justify=column.side, no_wrap=not wraps, overflow="fold" if wraps else "crop")
    for row in _lines(table):
        ruled.add_row(*(Text(cell.text, style="bold" if cell.strong else "") for cell in row))
    screen.console.print(ruled)


def _lines(table: ReportTable) -> Iterator[Row]:
    """Each row as one line, and a second one where something stands below."""
    for row in table.rows:
        yield row
        if any(cell.below for cell in row):
            yield [TableCell(cell.below) for cell in row]


def _least_width(table: ReportTable) -> int:
    total = 0
    for at, column in enumerate(table.columns):
        texts = (column.title, *(text for row in table.rows for text in (row[at].text, row[at].below)))
        widest = max(cell_len(text) for text in texts)
        total += _RULE_WIDTH + (min(widest, _MIN_WORDS) if table.wraps(at) else widest)
    return total


def _print_blocks(screen: Screen, table: ReportTable) -> None:
    named = table.name_count
    for row in table.rows:
        screen.line(" / ".join(cell.text for cell in row[:named]), "bold")
        facts = [pair for pair in zip(table.columns[named:], row[named:], strict=True) if pair[1].text]
        parts = [_part(column, cell) for column, cell in facts if column.title != NOTE]
        for line in _filled(parts, screen.width - len(_GAP)):
            print_words(screen, line, indent=_GAP)
        for column, cell in facts:
            if column.title == NOTE:
                print_words(screen, cell.words, indent=_GAP)


def _part(column: TableColumn, cell: TableCell) -> str:
    below = f" [{cell.below}]" if cell.below else ""
    return f"{column.title} {_starred(cell)}{below}".lstrip()


def _filled(parts: Iterable[str], width: int) -> Sequence[str]:
    """Lines of as many parts as go into the width."""
    lines: list[str] = []
    for part in parts:
        if lines and cell_len(lines[-1]) + len(_GAP) + cell_len(part) <= width:
            lines[-1] += _GAP + part
        else:
            lines.append(part)
    return lines


def _starred(cell: TableCell) -> str:
    return f"**{cell.text}**" if cell.strong else cell.text


def _padded(text: str, width: int, side: Side) -> str:
    blanks = " " * (width - cell_len(text))
    return blanks + text if side == "right" else text + blanks
