"""Bytes of a file, whatever it is wrapped in, and the records inside: lines, array elements, a document."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple, cast

from convoscope.errors import InputError

MAX_RECORD_BYTES = 64 * 1024 * 1024
_READ_BYTES = 1024 * 1024

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_BOM = codecs.BOM_UTF8


class Stretch(NamedTuple):
    """Some whole records of a file: bytes start to end, the first record's number.

    `data` holds the bytes where a position in the file cannot be returned to (compressed input);
    else it is None and `start` and `end` say where to read.
    """

    first: int
    start: int
    end: int
    data: bytes | None
    problem: str = ""
    """Set instead of records: why this stretch cannot be read."""


def is_plain(head: bytes) -> bool:
    """Neither compressed nor UTF-16: positions in the file are positions in the text."""
    return not head.startswith((_GZIP, _ZSTD, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def open_bytes(path: Path) -> IO[bytes]:
    """The file's text as UTF-8 bytes, unpacked. Compression is told by content, not by name."""
    stream = path.open("rb")
    head = stream.read(4)
    stream.seek(0)
    if head.startswith(_GZIP):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=stream))
    if head.startswith(_ZSTD):
        return _open_zstd(stream)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = io.TextIOWrapper(stream, encoding="utf-16", errors="replace", newline="")
        return cast("IO[bytes]", _Recoded(text))
    return stream


def _open_zstd(stream: IO[bytes]) -> IO[bytes]:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore] # Python 3.14
    except ImportError:
        from backports import zstd
    return cast("IO[bytes]", zstd.ZstdFile(stream))


class _Recoded(io.RawIOBase):
    """Text as UTF-8 bytes."""

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text = text

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._text.read(size).encode()


def read_block(stream: IO[bytes], size: int) -> tuple[bytes, str]:
    """Up to `size` bytes, and why the stream broke where it did. A cut archive gives what it can."""
    parts: list[bytes] = []
    have = 0
    while have < size:
        try:
            block = stream.read(min(size - have, _READ_BYTES))
        except EOFError:
            return b"".join(parts), "the compressed file is cut off"
        except Exception as error:  # each decompressor has an error class of its own
            return b"".join(parts), f"the file is damaged: {error}"
        if not block:
            break
        parts.append(block)
        have += len(block)
    return b"".join(parts), ""


def head_of(path: Path, size: int) -> bytes:
    """The first bytes of the text, without a byte-order mark."""
    with open_bytes(path) as stream:
        block, broken = read_block(stream, size)
    if broken and not block:
        raise InputError(broken, file=str(path), hint="make the file again")
    return block.removeprefix(_BOM)


def whole(path: Path) -> bytes:
    """All of the text, up to the size that one record may have."""
    with open_bytes(path) as stream:
        block, broken = read_block(stream, MAX_RECORD_BYTES + 1)
    if broken:
        raise InputError(broken, file=str(path), hint="make the file again")
    if len(block) > MAX_RECORD_BYTES:
        raise InputError(TOO_LONG, file=str(path), hint=TOO_LONG_HINT)
    return block.removeprefix(_BOM)


TOO_LONG = f"one record is larger than {MAX_RECORD_BYTES // 1024 // 1024} MB"
TOO_LONG_HINT = "write one conversation per line, and keep audio in files beside the log"


def line_stretches(path: Path, size: int) -> Iterator[Stretch]:
    """The lines of a file in stretches of about `size` bytes. Lines are numbered from 1."""
    with path.open("rb") as raw:
        plain = is_plain(raw.read(4))
    with open_bytes(path) as stream:
        line, start = 1, 0
        rest = b""
        while True:
            block, broken = read_block(stream, size)
            data = rest + block
            ended = bool(broken) or len(block) < size
            cut = len(data) if ended else data.rfind(b"\n") + 1
            if cut == 0 and len(data) <= MAX_RECORD_BYTES:
                rest = data
                continue
            if cut == 0:
                skipped, broken, ended, rest = _skip_line(stream, len(data))
                yield Stretch(line, start, start, b"", TOO_LONG)
                line, start = line + 1, start + skipped
            else:
                if cut:
                    yield Stretch(line, start, start + cut, None if plain else data[:cut])
                line, start, rest = line + data.count(b"\n", 0, cut), start + cut, data[cut:]
            if broken:
                yield Stretch(line, start, start, b"", broken)
            if ended:
                return


def _skip_line(stream: IO[bytes], skipped: int) -> tuple[int, str, bool, bytes]:
    """Pass over the rest of a line that is too long to hold."""
    while True:
        block, broken = read_block(stream, _READ_BYTES)
        cut = block.find(b"\n") + 1
        if cut or broken or not block:
            taken = cut or len(block)
            return skipped + taken, broken, not block, block[taken:]
        skipped += len(block)


def element_stretches(path: Path, size: int) -> Iterator[Stretch]:
    """The elements of a top-level JSON array, in stretches. Elements are numbered from 1.

    A stretch is `element,element,…`: put it in brackets to read it. An array of any length passes
    through little memory.
    """
    held: list[str] = []
    length, first, number = 0, 1, 0
    for number, element in enumerate(_elements(path), start=1):
        if isinstance(element, _Broken):
            if held:
                yield Stretch(first, 0, 0, _bytes(held))
            yield Stretch(number, 0, 0, b"", element)
            return
        held.append(element)
        length += len(element)
        if length >= size:
            yield Stretch(first, 0, 0, _bytes(held))
            held, length, first = [], 0, number + 1
    if held:
        yield Stretch(first, 0, 0, _bytes(held))


class _Broken(str):
    """In place of an element: why the array cannot be read further."""

    __slots__ = ()


def _elements(path: Path) -> Iterator[str]:
    # Bytes that are not UTF-8 pass through as surrogates and come out as they were.
    unpacked = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    parse = json.JSONDecoder(strict=False).raw_decode
    with open_bytes(path) as stream:
        text, at, line, step = "", 0, 1, _READ_BYTES
        opened = ended = False
        while True:
            at = _BETWEEN.match(text, at).end() if opened else _OPENING.match(text).end()  # type: ignore[union-attr]
            opened = opened or at > 0
            if opened and text.startswith("]", at):
                return
            try:
                if at >= len(text) and not ended:
                    raise json.JSONDecodeError("more to read", text, at)
                _, end = parse(text, at)
                if end == len(text) and not ended:
                    raise json.JSONDecodeError("more to read", text, at)
            except RecursionError:
                yield _Broken("nested too deeply")
                return
            except json.JSONDecodeError as error:
                if ended or len(text) - at > MAX_RECORD_BYTES:
                    yield _Broken(_why_broken(error, text, at, line))
                    return
                block, broken = read_block(stream, step)
                ended = bool(broken) or len(block) < step
                line += text.count("\n", 0, at)
                text, at = text[at:] + unpacked.decode(block, ended), 0
                # A long element is tried again with twice as much, so that it costs no square.
                step = min(2 * step, MAX_RECORD_BYTES) if len(text) > step else _READ_BYTES
                continue
            yield text[at:end]
            at = end


_OPENING = re.compile(r"\ufeff?\s*\[?")
_BETWEEN = re.compile(r"[\s,]*")


def _why_broken(error: json.JSONDecodeError, text: str, at: int, line: int) -> str:
    if len(text) - at > MAX_RECORD_BYTES:
        return TOO_LONG
    if error.pos >= len(text.rstrip()):
        return "the JSON array is cut off at the end"
    where = line + text.count("\n", 0, error.pos)
    near = text[error.pos : error.pos + 20].split("\n", maxsplit=1)[0]
    return f"not JSON at line {where}, near {near!r}; the elements before it were read"


def _bytes(elements: list[str]) -> bytes:
    return ",".join(elements).encode("utf-8", "surrogateescape")
