"""The table of all reports, and how it is printed: on a terminal, in a pipe, and as Markdown.

In Markdown no text of a log becomes markup: what could be taken for markup, HTML, a link or a mention is in a code
span, where no dialect sees it.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Literal, NamedTuple, TypeAlias

from rich.cells import cell_len

from convoscope.analysis.words import NOTHING
from convoscope.harmless import one_line
from convoscope.report.screen import Screen
from convoscope.text.patterns import lazy_pattern

Side: TypeAlias = Literal["left", "right"]
NOTE = "note"
"""The title of a column of remarks. Where a row becomes a block, a remark is on a line of its own."""


class TableColumn(NamedTuple):
    """A heading, and how its cells are set."""

    title: str
    side: Side = "left"
    names_row: bool = False
    """It says what the row is about; such columns come first. Without any, the first column does."""
    spare: bool = False
    """Left out on a narrow terminal: a name that all rows share, another column in which no row says anything."""
    whole: bool = False
    """Its words are never broken into several lines. Numbers and the names of rows never are."""


class TableCell(NamedTuple):
    """A text, what is below it, and whether it must be seen."""

    text: str
    below: str = ""
    strong: bool = False
    link: str = ""
    """Where it leads on the page, such as a conversation."""

    @property
    def words(self) -> str:
        """Both texts in one line."""
        return ", ".join(filter(None, (self.text, self.below)))


NOTE_COLUMN = TableColumn(NOTE, spare=True, whole=True)


Row: TypeAlias = Sequence[TableCell]


class ReportTable(NamedTuple):
    """Columns, rows of cells, a title above and notes below."""

    columns: Sequence[TableColumn]
    rows: Sequence[Row]
    title: str = ""
    notes: Sequence[str] = ()

    @property
    def name_count(self) -> int:
        """How many columns say what a row is about."""
        return sum(column.names_row for column in self.columns) or 1

    def wraps(self, at: int) -> bool:
        """Whether the words of a column may be broken into several lines."""
        column = self.columns[at]
        is_name = at < self.name_count and len(self.columns) > 1
        return column.side == "left" and not column.whole and not is_name

    def lean(self) -> ReportTable:
        """The same without spare columns."""
        return self.only([at for at in range(len(self.columns)) if not self._is_spare(at)])

    def only(self, columns: Sequence[int]) -> ReportTable:
        """The same with these columns alone."""
        rows = [[row[at] for at in columns] for row in self.rows]
        return self._replace(columns=[self.columns[at] for at in columns], rows=rows)

    def _is_spare(self, at: int) -> bool:
        column = self.columns[at]
        if not column.spare:
            return False
        texts = {(row[at].text, row[at].below) for row in self.rows}
        if column.names_row:
            return len(texts) < 2
        return all(text in ("", "0", NOTHING) and not below for text, below in texts)

    def folded(self) -> ReportTable:
        """The same with all names in the first column, one below the other: the last says most."""
        count = self.name_count
        if count == 1:
            return self
        title = " of ".join(column.title for column in reversed(self.columns[:count]))
        rows = [
            [TableCell(row[count - 1].text, " / ".join(cell.text for cell in row[: count - 1])), *row[count:]]
            for row in self.rows
        ]
        return self._replace(columns=[TableColumn(title, names_row=True), *self.columns[count:]], rows=rows)


def text_table(
    columns: Iterable[str | TableColumn],
    rows: Iterable[Sequence[str]],
    title: str = "",
    notes: Sequence[str] = (),
) -> ReportTable:
    """A table of plain texts. A column that is only a title is set to the left."""
    heads = [TableColumn(column) if isinstance(column, str) else column for column in columns]
    return ReportTable(heads, [[TableCell(text) for text in row] for row in rows], title, notes)


def number_column(title: str, spare: bool = False) -> TableColumn:
    """A column of numbers."""
    return TableColumn(title, "right", spare=spare)


_MIN_WORDS = 14
"""Characters that a column of text keeps, however narrow the terminal."""
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
    """A sentence, within the width of a terminal; a pipe gets it whole. Later lines begin below the first word."""
    lines = [text]
    if screen.is_terminal:
        width = screen.width - max(len(first), len(indent))
        # Commands and names are not broken: a copy of them would have a blank.
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
        padded = []
        for text, width, column in zip(row, widths, table.columns, strict=True):
            blanks = " " * (width - cell_len(text))
            padded.append(blanks + text if column.side == "right" else text + blanks)
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
    """Each row as one line, and a second one where something is below."""
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
        lines: list[str] = []
        notes: list[str] = []
        for column, cell in zip(table.columns[named:], row[named:], strict=True):
            below = f" [{cell.below}]" if cell.below else ""
            part = f"{column.title} {_starred(cell)}{below}".lstrip()
            if not cell.text:
                continue
            if column.title == NOTE:
                notes.append(cell.words)
            elif lines and cell_len(lines[-1]) + len(_GAP) + cell_len(part) <= screen.width - len(_GAP):
                lines[-1] += _GAP + part
            else:
                lines.append(part)
        for line in (*lines, *notes):
            print_words(screen, line, indent=_GAP)


def _starred(cell: TableCell) -> str:
    return f"**{cell.text}**" if cell.strong else cell.text


_HARMLESS = lazy_pattern(
    r"""
    (?:
        [A-Za-z0-9\ ,·%()…–-]
      | (?:^|(?<=;\ ))[<>≤≥]\ ?(?=[0-9-])           # a comparison, where a part begins
      | (?<=[A-Za-z0-9])[_=](?=[A-Za-z0-9])         # inside of a word
      | (?<=[0-9])\.(?=[0-9])                       # 0.5, and never a domain
      | (?<=[A-Za-z0-9)])\.(?=\ |$)                 # the end of a sentence
      | [:;](?=\ )
      | (?<=\ )[/+=×÷−](?=\ )
      | (?<=[\ (])\+(?=[0-9])                        # a difference
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
    return f"| {' | '.join(cell.replace('|', '¦') for cell in cells)} |"


def markdown_table(table: ReportTable) -> MarkdownTable:
    """The table in the fewest characters. Title and notes are left to the page that it is on."""
    titles, *rows = _cells(table)
    sides = ["---:" if column.side == "right" else "---" for column in table.columns]
    return MarkdownTable([row(titles), row(sides)], [row(cells) for cells in rows])


def padded_table(table: ReportTable) -> list[str]:
    """The table padded, so that it can be read as it is, too; then its notes."""
    cells = _cells(table)
    widths = [max(len(line[at]) for line in cells) for at in range(len(table.columns))]
    rights = [column.side == "right" for column in table.columns]
    titles, *rows = (
        row(
            [
                text.rjust(width) if right else text.ljust(width)
                for text, width, right in zip(line, widths, rights, strict=True)
            ]
        )
        for line in cells
    )
    sides = "|".join("-" * (width + 1) + (":" if right else "-") for width, right in zip(widths, rights, strict=True))
    return [titles, f"|{sides}|", *rows, *(line for note in table.notes for line in ("", plain(note)))]


def _cells(table: ReportTable) -> list[list[str]]:
    def text_of(cell: TableCell) -> str:
        text = f"**{plain(cell.text)}**" if cell.strong else plain(cell.text)
        return f"{text}<br>{plain(cell.below)}" if cell.below else text

    return [[plain(column.title) for column in table.columns], *(list(map(text_of, line)) for line in table.rows)]
