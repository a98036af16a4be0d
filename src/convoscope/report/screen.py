"""Where text goes: colours and boxes on a terminal, plain columns in a pipe."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Literal, NamedTuple

import msgspec

Align = Literal["left", "right"]


class Column(NamedTuple):
    """A heading, and to which side its cells are set."""

    title: str
    align: Align = "left"


class Screen:
    """Prints for a person if there is one, and for a program if not."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stdout
        self.is_terminal = self._stream.isatty()

    def line(self, text: str = "", style: str = "") -> None:
        """One line; styles are for terminals only."""
        if self.is_terminal and style and not os.environ.get("NO_COLOR"):
            self._console().print(clean(text), style=style, markup=False, highlight=False, soft_wrap=True)
        else:
            self._stream.write(clean(text) + "\n")

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]], title: str = "") -> None:
        """A table: ruled on a terminal, aligned and uncut in a pipe."""
        if title:
            self.line(title, "bold")
        if self.is_terminal:
            from rich import box
            from rich.table import Table
            from rich.text import Text

            table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
            for column in columns:
                table.add_column(column.title, justify=column.align, overflow="fold")
            for row in rows:
                table.add_row(*(Text(clean(cell)) for cell in row))
            self._console().print(table)
            return
        cells = [[column.title for column in columns], *([clean(cell) for cell in row] for row in rows)]
        widths = [max(_width(row[number]) for row in cells) for number in range(len(columns))]
        for row in cells:
            line = "  ".join(
                _padded(cell, width, column.align) for cell, width, column in zip(row, widths, columns, strict=True)
            )
            self._stream.write(line.rstrip() + "\n")

    def json(self, value: Any) -> None:
        """A value for a program."""
        self._stream.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")

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


def clean(text: str) -> str:
    """Without control characters: a log must not steer the reader's terminal."""
    if text.isprintable():
        return text
    return "".join(one if one == "\n" or unicodedata.category(one)[0] != "C" else "\ufffd" for one in text)


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
