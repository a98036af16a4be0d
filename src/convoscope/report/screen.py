"""Where text goes: lines with colours on a terminal, plain ones in a pipe, JSON for a program."""

from __future__ import annotations

import os
import re
import select
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any

import msgspec

from convoscope.harmless import clean_json, one_line

if TYPE_CHECKING:
    from rich.console import Console


WIDTH = 80
"""Columns of what is printed for a person, whatever the window."""
_SHORT = 20
"""Such a line fits on every terminal."""
_COMMAND = re.compile(r"^page  |(?:^|\s)(?:convoscope|pip install|export) \S")


class Screen:
    """Prints for a person if there is one, and for a program if not."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stdout
        self.is_terminal = self._stream.isatty()
        self.lines = 0
        """How many were printed."""
        self._is_closed = False

    def line(self, text: str = "", style: str = "") -> None:
        """One line, which goes on below where a terminal is narrower; styles are for terminals only."""
        text = one_line(text, None)
        for part in fitted(text, self.width) if self.is_terminal and len(text) > _SHORT else [text]:
            self._one_line(part, style)

    def _one_line(self, text: str, style: str) -> None:
        self.lines += 1
        if self.is_terminal and style and not os.environ.get("NO_COLOR"):
            self.console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
        else:
            self._write(text + "\n")

    def wrapped(self, text: str, style: str = "", indent: str = "  ") -> None:
        """A text in lines of 80 columns."""
        for line in wrapped_lines(text, indent):
            self.line(line, style)

    def json(self, value: Any) -> None:
        """A value for a program."""
        self._write_json(msgspec.json.format(msgspec.json.encode(value), indent=2))

    def json_line(self, value: Any) -> None:
        """One value of several, each on its line."""
        self._write_json(msgspec.json.encode(value))

    def flush(self) -> None:
        """Show at once what was printed: who reads may wait for it."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._close()

    def is_closed(self) -> bool:
        """Whether the program that reads what is printed has ended."""
        if not self._is_closed and hasattr(select, "poll"):
            with suppress(OSError, ValueError):  # no file of the system, as in a test
                poll = select.poll()
                poll.register(self._stream.fileno(), 0)
                self._is_closed = any(event & select.POLLERR for _, event in poll.poll(0))
        return self._is_closed

    def _close(self) -> None:
        self._is_closed = True
        close_pipe(self._stream)

    def _write_json(self, text: bytes) -> None:
        self._write(clean_json(text.decode()) + "\n")

    def _write(self, text: str) -> None:
        """Where the reader has seen enough, as `head` has, the rest is dropped; what the command checks still is."""
        try:
            self._stream.write(text)
        except BrokenPipeError:
            self._close()

    @cached_property
    def console(self) -> Console:
        """What draws on a terminal."""
        from rich.console import Console

        return Console(file=self._stream)

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return self.console.width


def close_pipe(stream: IO[str]) -> None:
    """Write to nowhere from here on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextmanager
def progress_bar(stream: IO[str] | None = None) -> Iterator[Any]:
    """A bar with rate and time left on a terminal, silence elsewhere. Yields what to call with `Progress`."""
    target = stream or sys.stderr
    if not target.isatty():
        yield None
        return
    from multiprocessing import Value

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    seen = Value("Q", 0)
    """Conversations that were read so far, in parts that are not finished, too."""

    class SeenColumn(TextColumn):
        def render(self, task: Any) -> Any:
            count = max(seen.value, task.fields["conversations"])
            task.fields.update(count=count, rate=count / task.elapsed if task.elapsed else 0.0)
            return super().render(task)

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        SeenColumn("{task.fields[count]:,} conversations, {task.fields[rate]:,.0f}/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=target), transient=True) as bar:
        task = bar.add_task("scoring", total=None, conversations=0)

        def show(step: Any) -> None:
            fields = {"total": step.bytes_total or None, "completed": step.bytes_done}
            bar.update(task, description=step.stage, conversations=step.conversations, **fields)

        show.seen = seen  # type: ignore[attr-defined]
        yield show


@contextmanager
def counting_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar of so many of so many on a terminal, nothing elsewhere. Yields what to call with both."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


def fitted(text: str, width: int) -> list[str]:
    """A line as lines that fit. A command stays whole: a copy of it would have a line break."""
    if len(text) <= width or _COMMAND.search(text):
        return [text]
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    lines = textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return lines or [text]


def wrapped_lines(text: str, indent: str = "  ") -> list[str]:
    """A text as lines of 80 columns; all but the first are indented."""
    return textwrap.wrap(one_line(text, None), WIDTH, subsequent_indent=indent, break_on_hyphens=False)
