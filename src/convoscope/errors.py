"""The errors a user can meet, one tree.

ConvoscopeError
├── InputError          a file or a record that cannot be read: file, line, field, what to do
│   └── NothingReadable no conversation came out of anything that was given
├── UsageError          a request that makes no sense: an unknown metric, a bad option
│   ├── UnknownMetric
│   └── DeclarationError a metric, reader or derived figure that was declared wrongly
└── RunError            a run folder that is not one, is taken, or is being written by another

Interrupted is not among them: it is a KeyboardInterrupt that says what is kept.
"""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says where a disk is full, or may not be filled further."""


class ConvoscopeError(Exception):
    """Anything that is worth a sentence to the user and never a traceback."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class InputError(ConvoscopeError):
    """Something in the input cannot be used; says where and what to do."""

    def __init__(
        self, message: str, *, file: str = "", line: int | None = None, field: str = "", hint: str = "", count: int = 1
    ) -> None:
        super().__init__(message, hint=hint)
        self.file = file
        self.line = line
        self.field = field
        self.count = count
        """How many records it stands for."""

    def __str__(self) -> str:
        position = self.file if self.line is None else f"{self.file}:{self.line}"
        where = " ".join(part for part in (position, self.field) if part)
        return f"{where}: {super().__str__()}" if where else super().__str__()


class NothingReadable(InputError):
    """No conversation came out of anything that was given."""


class UsageError(ConvoscopeError):
    """The request itself is wrong."""


def nearest_names(name: str, known: Iterable[str], most: int = 3, cutoff: float = 0.6) -> list[str]:
    """The known names that are spelt most like a name: as a whole, or what follows a dot in them."""
    ranked = []
    matcher = difflib.SequenceMatcher(b=name)
    for candidate in known:
        parts = candidate.split(".")
        ratios = []
        for at in range(len(parts)):
            matcher.set_seq1(".".join(parts[at:]))
            ratios.append(matcher.ratio())
        if max(ratios) >= cutoff:
            ranked.append((-max(ratios), -ratios[0], candidate))
    return [candidate for *_, candidate in sorted(ranked)[:most]]


class UnknownMetric(UsageError):
    """A metric name that no metric has, or that two families share."""

    def __init__(self, name: str, known: Iterable[str], measures: str = "") -> None:
        """`measures` is the metric of a rubric of this name."""
        near = [measures] if measures else nearest_names(name, known, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "`convoscope metrics` lists the ones there are."
        rubric = ": it is the name of a rubric" if measures else ""
        super().__init__(f"no metric is called {name!r}{rubric}", hint=hint)


class DeclarationError(UsageError):
    """A metric, reader or derived figure was declared wrongly."""


class RunError(ConvoscopeError):
    """A run folder that is not one, is taken, or is being written by someone else."""


class Interrupted(KeyboardInterrupt):
    """The user stopped the work. `kept` says what there is of it."""

    def __init__(self, kept: str) -> None:
        super().__init__(kept)
        self.kept = kept


def is_interrupt(error: BaseException) -> bool:
    """Whether the user stopped the work; the database has errors of its own for it."""
    return (
        isinstance(error, KeyboardInterrupt)
        or type(error).__name__ == "InterruptException"
        or (type(error) is RuntimeError and str(error) == "Query interrupted")
        or raised_inside(error).startswith(KeyboardInterrupt.__name__)
    )


def raised_inside(error: BaseException) -> str:
    """What Python raised inside of a query of the database, such as `OSError: …`; empty for the database's own errors.

    The text may be a traceback, and end with the query. Errors of Thrift look like those of Python.
    """
    if type(error).__module__ != "_duckdb" or type(error).__name__ != "Error":
        return ""
    last = str(error).partition("\n\n")[0].strip(": \n").rpartition("\n")[2]
    return last if re.fullmatch(r"(?!T[A-Z]\w*Exception)[A-Za-z_][\w.]*(: .*)?", last) else ""


@contextmanager
def keeping(kept: Callable[[], str]) -> Iterator[None]:
    """A user who stops what is done here learns what is kept of it."""
    try:
        yield
    except BaseException as error:
        if is_interrupt(error) and not isinstance(error, Interrupted):
            raise Interrupted(kept()) from None
        raise
