"""Where text goes: colours and boxes on a terminal, plain columns in a pipe."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Literal, NamedTuple

import msgspec

from convoscope.harmless import clean_json, one_line

Align = Literal["left", "right"]


_MIN_WORDS = 14


class Column(NamedTuple):
    """A heading, and to which side its cells are set."""

    title: str
    align: Align = "left"


class Strong(str):
    """A cell that must be seen: bold on a terminal, between asterisks in a pipe."""


class Screen:
    """Prints for a person if there is one, and for a program if not."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stdout
        self.is_terminal = self._stream.isatty()

    def line(self, text: str = "", style: str = "") -> None:
        """One line; styles are for terminals only."""
        if self.is_terminal and style and not os.environ.get("NO_COLOR"):
            self._console().print(_line(text), style=style, markup=False, highlight=False, soft_wrap=True)
        else:
            self._stream.write(_line(text) + "\n")

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]], title: str = "") -> None:
        """A table: ruled on a terminal, aligned and uncut in a pipe, one below the other where it is too wide."""
        if title:
            self.line(title, "bold")
        columns = [column._replace(title=_line(column.title)) for column in columns]
        cells = [[column.title for column in columns], *([self._cell(cell) for cell in row] for row in rows)]
        widths = [max(_width(row[number]) for row in cells) for number in range(len(columns))]
        if self.is_terminal:
            # Words may wrap; the names in the first column and numbers must not be broken.
            least = [min(width, _MIN_WORDS) if _wraps(columns, at) else width for at, width in enumerate(widths)]
            if sum(least) + 3 * len(least) <= self._console().width:
                self._ruled(columns, cells[1:])
            else:
                self._stacked(columns, cells[1:])
            return
        for row in cells:
            line = "  ".join(
                _padded(cell, width, column.align) for cell, width, column in zip(row, widths, columns, strict=True)
            )
            self._stream.write(line.rstrip() + "\n")

    def _cell(self, cell: str) -> str:
        if isinstance(cell, Strong):
            return Strong(_line(cell)) if self.is_terminal else f"**{_line(cell)}**"
        return _line(cell)

    def _ruled(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for at, column in enumerate(columns):
            wraps = _wraps(columns, at)
            table.add_column(
                column.title, justify=column.align, no_wrap=not wraps, overflow="fold" if wraps else "crop"
            )
        for row in rows:
            table.add_row(*(Text(cell, style="bold" if isinstance(cell, Strong) else "") for cell in row))
        self._console().print(table)

    def _stacked(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        width = self._console().width
        for row in rows:
            self.line(row[0], "bold")
            line = ""
            for column, cell in zip(columns[1:], row[1:], strict=True):
                part = f"{column.title} {cell}" if cell else ""
                if line and part and _width(line) + _width(part) + 4 > width:
                    self.line(f"  {line}")
                    line = ""
                line = f"{line}; {part}" if line and part else line or part
            if line:
                self.line(f"  {line}")

    def json(self, value: Any) -> None:
        """A value for a program."""
        self._write_json(msgspec.json.format(msgspec.json.encode(value), indent=2))

    def json_line(self, value: Any) -> None:
        """One value of several, each on its line."""
        self._write_json(msgspec.json.encode(value))

    def _write_json(self, text: bytes) -> None:
        self._stream.write(clean_json(text.decode()) + "\n")

    def _console(self) -> Any:
        from rich.console import Console

        return Console(file=self._stream)


@contextmanager
def progress_bar(stream: IO[str] | None = None) -> Iterator[Any]:
    """A bar with rate and time left on a terminal, silence elsewhere. Yields what to call with `Progress`."""
    target = stream or sys.stderr
    if not target.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[conversations]:,} conversations, {task.fields[rate]:,.0f}/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=target), transient=True) as bar:
        task = bar.add_task("scoring", total=None, conversations=0, rate=0.0)

        def show(step: Any) -> None:
            elapsed = bar.tasks[0].elapsed or 0.0
            rate = step.conversations / elapsed if elapsed else 0.0
            bar.update(
                task,
                description=step.stage,
                total=step.bytes_total or None,
                completed=step.bytes_done,
                conversations=step.conversations,
                rate=rate,
            )

        yield show


def _line(text: str) -> str:
    return one_line(text, None)


def _wraps(columns: Sequence[Column], at: int) -> bool:
    return columns[at].align == "left" and (at > 0 or len(columns) == 1)


def _width(text: str) -> int:
    """Columns that the text takes: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text
    )


def _padded(text: str, width: int, align: Align) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if align == "right" else text + blanks
