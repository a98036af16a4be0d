"""Reports become files, whole or not at all."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from pathlib import Path

from convoscope.errors import NO_ROOM, UsageError
from convoscope.storage import is_remote, store_errors

STANDARD_OUTPUT = Path("-")


def check_files(*paths: Path | None) -> None:
    """Refuse what could not be written, before hours are spent on what would be written there."""
    given = [path for path in paths if path is not None]
    for path in given:
        if is_remote(path):
            continue
        if path.is_dir():
            raise UsageError(f"{path} is a folder", hint="give the name of a file")
        if not path.parent.is_dir():
            raise UsageError(f"cannot write {path}: there is no folder {path.parent}", hint="create it first")
    for target, count in Counter(path.resolve() for path in given if not _is_stream(path)).items():
        if count > 1:
            raise UsageError(f"two reports have the same file: {target}", hint="give each report its own file")


def write_text(path: Path, text: str) -> None:
    """Write a file that is never seen half written."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """The same with bytes."""
    if is_remote(path):  # an object is there whole or not at all
        with store_errors(path):
            path.write_bytes(content)
        return
    check_files(path)
    # A link is followed, so that it stays one; a stream has no other name than the one it was given.
    target = path if _is_stream(path) else path.resolve()
    fresh = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        if _is_output(target):
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
            sys.stdout.flush()
            return
        if _is_stream(target):
            with target.open("ab") as stream:
                stream.write(content)
            return
        try:
            fresh.write_bytes(content)
            if target.exists():
                shutil.copymode(target, fresh)
            os.replace(fresh, target)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise
        raise UsageError(f"cannot write {path}: {error.strerror or error}", hint="choose another place") from None


def _is_stream(target: Path) -> bool:
    """A terminal, a pipe, /dev/null: to replace it by a file would be to break it."""
    return target.parts[:2] == ("/", "dev") or _is_output(target) or (target.exists() and not target.is_file())


def _is_output(target: Path) -> bool:
    """The output of this very process, by whatever name: what else we print there must come after, not over it."""
    if target == STANDARD_OUTPUT:
        return True
    try:
        return os.path.samestat(target.stat(), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):
        return False
