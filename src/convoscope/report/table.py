"""The one table of all reports for people to read; report/render prints it for a terminal, a pipe or Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from convoscope.analysis.words import NOTHING

Side: TypeAlias = Literal["left", "right"]
NOTE = "note"
"""The title of a column of remarks. Where a row becomes a block, a remark stands on a line of its own."""


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
    """A text, what stands below it, and whether it must be seen."""

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
        needed = [at for at in range(len(self.columns)) if not self._is_spare(at)]
        return self.only(needed)

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
