"""A stretch of an input, and its records as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec

from convoscope.errors import InputError
from convoscope.ingest.discover import Input
from convoscope.ingest.io import containers as files
from convoscope.ingest.io import tables


class InputPiece(msgspec.Struct, frozen=True):
    """A stretch of one input; `place` is the input's place in the order of inputs."""

    input: Input
    place: int
    first: int = 1
    start: int = 0
    end: int = 0
    data: bytes | None = None
    problem: str = ""
    hint: str = ""
    repeated: frozenset[int] = frozenset()
    """Records that a longer one says again: they are part of that one."""
    takes_in: dict[int, int] = {}
    """How many records are part of a record, by its number."""
    copies: frozenset[int] = frozenset()
    """Records that are copies of others."""
    earlier: dict[int, list[Any]] = {}
    """Messages that come before those of a record, by its number: earlier records of its conversation have them."""
    elsewhere: dict[str, int] = {}
    """What was said in the conversations of these ids, by records of another shape."""


def cut_up(piece: InputPiece, size: int) -> Iterator[InputPiece]:
    """A whole input as pieces of about `size` bytes; a document is one piece."""
    item = piece.input
    cutter = CUTTERS.get(item.container)
    if cutter is None:
        yield piece
        return
    try:
        for stretch in cutter(Path(item.path), size):
            yield InputPiece(item, piece.place, *stretch)
    except OSError as error:
        yield InputPiece(item, piece.place, problem=f"cannot be read: {error.strerror}")
    except InputError as error:
        yield InputPiece(item, piece.place, problem=error.message, hint=error.hint)


CUTTERS = {
    "lines": files.line_stretches,
    "text": files.line_stretches,
    "array": files.element_stretches,
    "members": files.member_stretches,
    "table": tables.row_stretches,
}


def texts_of(piece: InputPiece) -> Iterator[tuple[int, bytes]]:
    """The records of a piece as they are written, each with its number; blank lines are among them."""
    data = data_of(piece)
    between = _BETWEEN.get(piece.input.container)
    # One line after the other: all of them at once would be as much memory again, and none of it in the cache.
    texts = (data,) if between is None else BytesIO(data) if between == b"\n" and data else data.split(between)
    for number, text in enumerate(texts, piece.first):
        yield number, text.strip()


def data_of(piece: InputPiece) -> bytes:
    if piece.data is not None:
        data = piece.data
    elif piece.input.container == "document":
        return files.whole(Path(piece.input.path))
    else:
        with Path(piece.input.path).open("rb") as stream:
            stream.seek(piece.start)
            data = stream.read(piece.end - piece.start)
    return data.removeprefix(files.BOM) if piece.start == 0 else data


_BETWEEN = {
    "lines": b"\n",
    "text": b"\n",
    "array": files.BETWEEN_ELEMENTS,
    "members": files.BETWEEN_ELEMENTS,
    "table": tables.BETWEEN_ROWS,
}
