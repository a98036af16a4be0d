"""What the decoder of MP3 prints: libmpg123 writes to the standard error of the process."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_OWN = re.compile(rb"libmpg123|^(?:Note|Warning): .*(?:MPEG|[Xx]ing|resync|Skipped|stream|header)")
_ILLEGAL = re.compile(rb"Illegal Audio-MPEG-Header \S+ at offset (\d+)")
_LOCK = Lock()
_STDERR = 2


@contextmanager
def kept_from_screen(damaged: list[int] | None = None) -> Iterator[None]:
    """Nothing of the decoder reaches the screen meanwhile; what others write does. Adds the bytes that are no MPEG."""
    with _LOCK, tempfile.TemporaryFile() as caught:
        try:
            screen = os.dup(_STDERR)
        except OSError:  # it is closed
            yield
            return
        os.dup2(caught.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(screen, _STDERR)
            os.close(screen)
            caught.seek(0)
            text = caught.read()
            if damaged is not None:
                damaged += map(int, _ILLEGAL.findall(text))
            if others := b"".join(line for line in text.splitlines(keepends=True) if not _OWN.search(line)):
                os.write(_STDERR, others)


__all__ = ["kept_from_screen"]
