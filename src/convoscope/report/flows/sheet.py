"""Tables of figures with their intervals below: as wide as they are where there is room, else one block per row."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from convoscope.report.screen import Align, Column, Screen, Strong

_BETWEEN = 3
_GAP = "  "
NOTE = "note"
"""The column of words; in a block they stand on a line of their own."""


class SheetCell(NamedTuple):
    """A figure, what stands below it, and whether it must be seen."""

    text: str
    below: str = ""
    strong: bool = False

    @property
    def words(self) -> str:
        """A note of two parts in one line."""
        return ", ".join(filter(None, (self.text, self.below)))


class Head(NamedTuple):
    """The heading of a column."""

    title: str
    align: Align = "right"
    name: bool = False
    """It says what the row is about; such columns come first."""
    spare: bool = False
    """Left out on a narrow terminal: a name that all rows share, another column in which no row says anything."""


def print_sheet(screen: Screen, heads: Sequence[Head], rows: Sequence[Sequence[SheetCell]]) -> None:
    """Print rows of figures. A pipe gets every column, uncut."""
    if not screen.is_terminal:
        _print_table(screen, heads, rows)
        return
    width = shutil.get_terminal_size().columns
    needed = [at for at, head in enumerate(heads) if not _is_spare(head, {row[at][:2] for row in rows})]
    lean = _chosen(heads, rows, needed)
    for sheet in (_Sheet(heads, rows), lean, _folded(lean)):
        if _width(*sheet) <= width:
            _print_table(screen, *sheet)
            return
    _print_blocks(screen, heads, rows, width)


def _is_spare(head: Head, cells: set[tuple[str, str]]) -> bool:
    if not head.spare:
        return False
    return len(cells) < 2 if head.name else all(text in ("", "0", "·") and not below for text, below in cells)


class _Sheet(NamedTuple):
    heads: Sequence[Head]
    rows: Sequence[Sequence[SheetCell]]


def _chosen(heads: Sequence[Head], rows: Sequence[Sequence[SheetCell]], chosen: Sequence[int]) -> _Sheet:
    return _Sheet([heads[at] for at in chosen], [[row[at] for at in chosen] for row in rows])


def _folded(sheet: _Sheet) -> _Sheet:
    """The same with all names in the first column, one below the other: the last says most."""
    named = sum(head.name for head in sheet.heads)
    head = Head(" of ".join(head.title for head in reversed(sheet.heads[:named])), "left", name=True)
    rows = [
        [SheetCell(row[named - 1].text, " / ".join(cell.text for cell in row[: named - 1])), *row[named:]]
        for row in sheet.rows
    ]
    return _Sheet([head, *sheet.heads[named:]], rows)


def _width(heads: Sequence[Head], rows: Sequence[Sequence[SheetCell]]) -> int:
    from rich.cells import cell_len

    total = 0
    for at, head in enumerate(heads):
        widest = max(cell_len(text) for text in (head.title, *(text for row in rows for text in row[at][:2])))
        total += _BETWEEN + widest
    return total


def _print_table(screen: Screen, heads: Sequence[Head], rows: Sequence[Sequence[SheetCell]]) -> None:
    lines: list[list[str]] = []
    for row in rows:
        lines.append([Strong(cell.text) if cell.strong else cell.text for cell in row])
        if any(cell.below for cell in row):
            lines.append([cell.below for cell in row])
    screen.table([Column(head.title, head.align) for head in heads], lines)


def _print_blocks(screen: Screen, heads: Sequence[Head], rows: Sequence[Sequence[SheetCell]], width: int) -> None:
    named = sum(head.name for head in heads)
    for row in rows:
        screen.line(" / ".join(cell.text for cell in row[:named]), "bold")
        told = [(head, cell) for head, cell in zip(heads[named:], row[named:], strict=True) if cell.text]
        parts = [_part(head, cell) for head, cell in told if head.title != NOTE]
        line = ""
        for part in parts:
            if line and len(line) + len(part) + 2 * len(_GAP) > width:
                screen.line(_GAP + line)
                line = ""
            line = f"{line}{_GAP}{part}" if line else part
        if line:
            screen.line(_GAP + line)
        for head, cell in told:
            if head.title == NOTE:
                print_words(screen, cell.words, indent=_GAP)


def _part(head: Head, cell: SheetCell) -> str:
    text = f"**{cell.text}**" if cell.strong else cell.text
    below = f" [{cell.below}]" if cell.below else ""
    return f"{head.title} {text}{below}"


def print_words(screen: Screen, text: str, first: str = "", indent: str = "", style: str = "") -> None:
    """A sentence, within the width of a terminal; a pipe gets it whole. Later lines stand below the first word."""
    lines = [text]
    if screen.is_terminal:
        width = shutil.get_terminal_size().columns - max(len(first), len(indent))
        # Commands and names are not broken: whoever copies them would copy a blank.
        lines = textwrap.wrap(text, max(20, width), break_long_words=False, break_on_hyphens=False) or [""]
    for at, line in enumerate(lines):
        screen.line((indent if at else first or indent) + line, style)
