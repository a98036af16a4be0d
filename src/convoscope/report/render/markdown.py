"""Tables as Markdown, in which no text out of a log becomes markup.

Whatever could be taken for markup, HTML, a link or a mention stands in a code span, where no dialect sees it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from convoscope.harmless import one_line
from convoscope.report.table import ReportTable, TableCell

_HARMLESS = re.compile(
    r"""
    (?:
        [A-Za-z0-9\ ,·%()…–-]
      | (?:^|(?<=;\ ))[<>≤≥]\ ?(?=[0-9-])           # a comparison, where a part begins
      | (?<=[A-Za-z0-9])[_=](?=[A-Za-z0-9])         # inside of a word
      | (?<=[0-9])\.(?=[0-9])                       # 0.5, and never a domain
      | (?<=[A-Za-z0-9)])\.(?=\ |$)                 # the end of a sentence
      | [:;](?=\ )
      | (?<=\ )[/+=×÷−](?=\ )
    )*
    """,
    re.VERBOSE,
)
_BACKTICKS = re.compile("`+")


class MarkdownTable(NamedTuple):
    """The lines of a table: its head, which rows need, and the rows."""

    head: Sequence[str]
    rows: Sequence[str]


def code(text: str) -> str:
    """A text out of a log as a code span: its fence is longer than any run of backticks in it."""
    line = one_line(text)
    if not line.strip():
        return "(blank)"
    fence = "`" * (1 + max((len(ticks) for ticks in _BACKTICKS.findall(line)), default=0))
    space = " " if line[0] in "` " or line[-1] in "` " else ""
    return f"{fence}{space}{line}{space}{fence}"


def plain(text: str) -> str:
    """Words as they are where nothing in them could be taken for markup, else a code span."""
    if not text:
        return ""
    return escape(text) if text.strip() and _HARMLESS.fullmatch(text) else code(text)


def row(cells: Sequence[str]) -> str:
    """A row of a table. A pipe in a cell is broken: dialects do not agree on how to escape one in a code span."""
    return f"| {' | '.join(_unpiped(cell) for cell in cells)} |"


def _unpiped(cell: str) -> str:
    return cell.replace("|", "¦")


def markdown_table(table: ReportTable) -> MarkdownTable:
    """The table in the fewest characters. Title and notes are left to the page that it stands on."""
    titles, *rows = _cells(table)
    sides = ["---:" if column.side == "right" else "---" for column in table.columns]
    return MarkdownTable([row(titles), row(sides)], [row(cells) for cells in rows])


def padded_table(table: ReportTable) -> list[str]:
    """The table padded, so that it can be read as it is, too; then its notes."""
    cells = _cells(table)
    widths = [max(len(line[at]) for line in cells) for at in range(len(table.columns))]
    rights = [column.side == "right" for column in table.columns]
    titles, *rows = (row([_padded(*cell) for cell in zip(line, widths, rights, strict=True)]) for line in cells)
    sides = "|".join("-" * (width + 1) + (":" if right else "-") for width, right in zip(widths, rights, strict=True))
    return [titles, f"|{sides}|", *rows, *(line for note in table.notes for line in ("", plain(note)))]


def _padded(text: str, width: int, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)


def _cells(table: ReportTable) -> list[list[str]]:
    return [[plain(column.title) for column in table.columns], *([_cell(cell) for cell in line] for line in table.rows)]


def _cell(cell: TableCell) -> str:
    text = f"**{plain(cell.text)}**" if cell.strong else plain(cell.text)
    return f"{text}<br>{plain(cell.below)}" if cell.below else text
