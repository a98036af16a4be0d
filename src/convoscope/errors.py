"""The errors a user can meet, one tree.

ConvoscopeError
├── InputError          a file or a record that cannot be read: file, line, field, what to do
│   └── NothingReadable no conversation came out of anything that was given
├── UsageError          a request that makes no sense: an unknown metric, a bad option
│   ├── UnknownMetric
│   └── DeclarationError a metric, reader or derived figure that was declared wrongly
└── RunError            a run folder that is not one, is taken, or is being written by another
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


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
        self, message: str, *, file: str = "", line: int | None = None, field: str = "", hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.file = file
        self.line = line
        self.field = field

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        where = " ".join(part for part in (place, self.field) if part)
        return f"{where}: {super().__str__()}" if where else super().__str__()


class NothingReadable(InputError):
    """No conversation came out of anything that was given."""


class UsageError(ConvoscopeError):
    """The request itself is wrong."""


class UnknownMetric(UsageError):
    """A metric name that nobody declared, or that two families share."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        near = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "`convoscope metrics` lists the ones there are."
        super().__init__(f"no metric is called {name!r}", hint=hint)


class DeclarationError(UsageError):
    """A metric, reader or derived figure was declared wrongly."""


class RunError(ConvoscopeError):
    """A run folder that is not one, is taken, or is being written by someone else."""
