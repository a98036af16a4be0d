"""A store whose client is killed at a write: from then on nothing reaches it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

_WRITES = ("pipe_file", "put_file", "cp_file", "rm_file", "rm")
_READS = ("get_object", "head_object", "head_bucket", "list_objects_v2", "get_bucket_location")


class Killed(Exception):
    """Instead of a write. No code of ours catches it."""


@contextmanager
def killed_after(store: Any, most: int) -> Iterator[list[str]]:
    """Let so many writes happen, and no more; gives the names of what was written."""
    written: list[str] = []
    inner = [0]
    kind = type(store)
    if hasattr(kind, "_call_s3"):
        call = kind._call_s3

        async def asked(self: Any, method: str, *args: Any, **kwargs: Any) -> Any:
            if method not in _READS:
                if len(written) >= most:
                    raise Killed
                written.append(f"{method} {kwargs.get('Key', '')}")
            return await call(self, method, *args, **kwargs)

        with mock.patch.object(kind, "_call_s3", asked):
            yield written
        return

    def wrapped(name: str) -> Any:
        write = getattr(kind, name)

        def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
            # What one write does is not counted again.
            if not inner[0]:
                if len(written) >= most:
                    raise Killed
                target = args[1] if name in ("put_file", "cp_file") else args[0]
                written.append(f"{name} {target}")
            inner[0] += 1
            try:
                return write(self, *args, **kwargs)
            finally:
                inner[0] -= 1

        return counted

    patches = {name: wrapped(name) for name in _WRITES if hasattr(kind, name)}
    with mock.patch.multiple(kind, **patches):
        yield written
