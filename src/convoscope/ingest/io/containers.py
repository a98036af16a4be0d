"""Bytes of a file, whatever it is wrapped in, and the records inside: lines, array elements, a document."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar, cast

from convoscope.errors import InputError
from convoscope.ingest.io.json import BadJson, decode
from convoscope.storage import StoreError, is_remote, open_binary

_Content = TypeVar("_Content")

MAX_RECORD_BYTES = 64 * 1024 * 1024
_READ_BYTES = 1024 * 1024

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
BOM = codecs.BOM_UTF8

PACKED_ENDINGS = (".gz", ".zst", ".zstd")

TOO_LONG = f"one record is larger than {MAX_RECORD_BYTES // 1024 // 1024} MB"
CUT_ARRAY = "the JSON array is cut off at the end"
TOO_LONG_HINT = "write one conversation per line, and keep audio in files beside the log"

BETWEEN_ELEMENTS = b"\x1e"
"""Separates the elements of a range: no JSON text holds it but inside a string, where it is escaped."""


class ByteRange(NamedTuple):
    """Some whole records of a file: bytes start to end, the first record's number.

    `data` holds the bytes where a position in the file cannot be returned to (compressed input);
    else it is None and `start` and `end` say where to read.
    """

    first: int
    start: int
    end: int
    data: bytes | None
    problem: str = ""
    """Set instead of records: why this range cannot be read."""
    hint: str = ""
    """With a problem: what to do about it, where that is another thing than usual."""


def open_bytes(path: Path) -> IO[bytes]:
    """The file's text as UTF-8 bytes, unpacked. Compression is recognised by content, not by name."""
    head = _magic(path)
    if head.startswith(_GZIP):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=open_binary(path)) if is_remote(path) else gzip.GzipFile(path))
    if head.startswith(_ZSTD):
        try:
            from compression import zstd  # type: ignore[import-not-found, unused-ignore] # Python 3.14
        except ImportError:
            from backports import zstd
        return cast("IO[bytes]", zstd.ZstdFile(open_binary(path) if is_remote(path) else path))
    if head.startswith(_UTF16):
        text = io.TextIOWrapper(open_binary(path), encoding="utf-16", errors="replace", newline="")
        return cast("IO[bytes]", _Recoded(text))
    return open_binary(path)


def unpacked_name(name: str) -> str:
    """The name of a file in lower case, without the endings of compression."""
    lower = name.lower()
    for ending in PACKED_ENDINGS:
        lower = lower.removesuffix(ending)
    return lower


def is_plain(path: Path) -> bool:
    """Neither compressed nor UTF-16: positions in the file are positions in the text."""
    return not _magic(path).startswith((_GZIP, _ZSTD, *_UTF16))


def _magic(path: Path) -> bytes:
    with open_binary(path) as stream:
        return stream.read(4)


class _Recoded(io.RawIOBase):
    """Text as UTF-8 bytes."""

    def __init__(self, text: IO[str]) -> None:
        self._text = text

    def readable(self) -> bool:
        return True

    def read1(self, size: int = -1) -> bytes:
        return self._text.read(size).encode("utf-8", "replace")

    def close(self) -> None:
        self._text.close()
        super().close()


def read_block(stream: IO[bytes], size: int) -> tuple[bytes, str]:
    """Up to `size` bytes, and why the stream broke where it did. A cut archive gives what it can."""
    step = size if isinstance(stream, io.BufferedReader) else _READ_BYTES
    parts: list[bytes] = []
    have = 0
    while have < size:
        try:
            # One step at a time: what was unpacked before a break is not lost with it.
            block: bytes = stream.read1(min(size - have, step))  # type: ignore[attr-defined]
        except EOFError:
            return b"".join(parts), "the compressed file is cut off"
        except StoreError:
            raise
        except Exception as error:  # each decompressor has an error class of its own
            return b"".join(parts), f"the file is damaged: {error}"
        if not block:
            break
        parts.append(block)
        have += len(block)
    return b"".join(parts), ""


def head_of(path: Path, size: int) -> bytes:
    """The first bytes of the text, without a byte-order mark: one whole line and more, if it is not too long."""
    size += len(BOM)
    with open_bytes(path) as stream:
        block, broken = read_block(stream, size)
        # The first line may be long, and is had in steps that double, with some of what follows it: one of many?
        while not broken and size <= len(block) <= MAX_RECORD_BYTES and b"\n" not in block.strip():
            more, broken = read_block(stream, len(block))
            if not more:
                break
            block += more
    if broken and not block:
        raise InputError(broken, hint="make the file again")
    return block.removeprefix(BOM)


def whole(path: Path) -> bytes:
    """All of the text, up to the size that one record may have."""
    with open_binary(path) as plain:
        about = path.stat() if is_remote(path) else os.fstat(plain.fileno())
        fits = stat.S_ISREG(about.st_mode) and about.st_size <= MAX_RECORD_BYTES
        # Asked for the most that may be there, Python makes room for all of that first.
        block, broken = plain.read(-1 if fits else MAX_RECORD_BYTES + 1), ""
    if block.startswith((_GZIP, _ZSTD, *_UTF16)):
        with open_bytes(path) as stream:
            block, broken = read_block(stream, MAX_RECORD_BYTES + 1)
    if broken:
        raise InputError(broken, hint="make the file again")
    if len(block) > MAX_RECORD_BYTES:
        raise InputError(TOO_LONG, hint=TOO_LONG_HINT)
    return block.removeprefix(BOM)


def json_document(path: Path) -> Any:
    """The value of a JSON file. What is wrong with it is an error that names the file and the line."""
    try:
        return decode(whole(path)).value
    except BadJson as error:
        raise InputError(str(error), file=str(path), line=error.line, hint="the JSON must be complete") from None


def read_once(
    most: int,
) -> Callable[[Callable[[Sequence[Path]], _Content]], Callable[[Sequence[Path]], _Content]]:
    """A function of files whose result is kept as long as the files stay the same; those that are gone are left out."""

    def decorate(read: Callable[[Sequence[Path]], _Content]) -> Callable[[Sequence[Path]], _Content]:
        @lru_cache(maxsize=most)
        def kept(stamped: tuple[tuple[Path, int], ...]) -> _Content:
            return read([path for path, _ in stamped])

        return lambda paths: kept(tuple((path, path.stat().st_mtime_ns) for path in paths if path.exists()))

    return decorate


def line_ranges(path: Path, size: int) -> Iterator[ByteRange]:
    """The lines of a file in ranges of about `size` bytes. Lines are numbered from 1."""
    with open_bytes(path) as stream:
        yield from ranges_of_lines(stream, size, plain=is_plain(path))


def ranges_of_lines(stream: IO[bytes], size: int, *, plain: bool, begun: bytes = b"") -> Iterator[ByteRange]:
    """The same of an open stream; where it is `plain`, ranges say where to read and hold no bytes.

    `begun` is what was already read of the first line.
    """
    line, start, unfinished = 1, 0, begun
    while True:
        block, broken = read_block(stream, size)
        data = unfinished + block
        ended = bool(broken) or len(block) < size
        cut = len(data) if ended else data.rfind(b"\n") + 1
        if cut:
            yield ByteRange(line, start, start + cut, None if plain else data[:cut])
            line, start, unfinished = line + data.count(b"\n", 0, cut), start + cut, data[cut:]
        elif not ended and len(data) <= MAX_RECORD_BYTES:
            unfinished = data
        elif not ended:
            # The rest of a line that is too long to hold is passed over.
            yield ByteRange(line, start, start, b"", TOO_LONG)
            line, start, cut = line + 1, start + len(data), 0
            while not (cut or ended):
                block, broken = read_block(stream, _READ_BYTES)
                cut, ended = block.find(b"\n") + 1, bool(broken) or not block
                start += cut or len(block)
            unfinished = block[cut:] if cut else b""
            if ended and unfinished:
                yield ByteRange(line, start, start + len(unfinished), None if plain else unfinished)
                line, start = line + unfinished.count(b"\n"), start + len(unfinished)
        if broken:
            yield ByteRange(line, start, start, b"", broken)
        if ended:
            return


def element_ranges(path: Path, size: int) -> Iterator[ByteRange]:
    """The elements of a top-level JSON array, in ranges. Elements are numbered from 1.

    An array of any length passes through little memory.
    """
    return ranges_of_texts(_texts(path, "[", "]"), size, BETWEEN_ELEMENTS)


def member_ranges(path: Path, size: int) -> Iterator[ByteRange]:
    """The members of a top-level JSON object, each as an object of one member, as `element_ranges`."""
    return ranges_of_texts(_texts(path, "{", "}"), size, BETWEEN_ELEMENTS)


def ranges_of_texts(texts: Iterable[bytes | BrokenEnd], size: int, between: bytes) -> Iterator[ByteRange]:
    """The texts of records, numbered from 1, in ranges of about `size` bytes; the last text may say why they end."""
    held: list[bytes] = []
    length, first = 0, 1
    for number, text in enumerate(texts, start=1):
        is_broken = isinstance(text, BrokenEnd)
        if held and (is_broken or length >= size):
            yield ByteRange(first, 0, 0, between.join(held))
            held, length, first = [], 0, number
        if isinstance(text, BrokenEnd):
            yield ByteRange(number, 0, 0, b"", text.problem, text.hint)
            return
        held.append(text)
        length += len(text)
    if held:
        yield ByteRange(first, 0, 0, between.join(held))


class BrokenEnd(NamedTuple):
    """Instead of a record: why its file cannot be read further."""

    problem: str
    hint: str = ""


def _texts(path: Path, begin: str, end: str) -> Iterator[bytes | BrokenEnd]:
    """The texts of the elements of an array, or of the members of an object."""
    noun = "array" if begin == "[" else "object"
    with open_bytes(path) as stream:
        text = _Text(stream)
        if text.next_character() != begin:
            yield BrokenEnd(f"is not a JSON {noun}")
            return
        text.at += 1
        while (character := text.next_character()) != end:
            try:
                element = text.value() if begin == "[" else text.member()
            except _Unreadable as error:
                yield BrokenEnd(str(error).replace(CUT_ARRAY, CUT_ARRAY.replace("array", noun)))
                return
            # Bytes that were not UTF-8 came through as surrogates and go out as they were.
            yield element.replace("\x1e", "\\u001e").encode("utf-8", "surrogateescape")
            character = text.next_character()
            if character == ",":
                text.at += 1
            elif character != end:
                cut = CUT_ARRAY.replace("array", noun)
                yield BrokenEnd(text.complaint("a comma is missing") if character else cut)
                return
        text.at += 1
        if text.next_character():
            yield BrokenEnd(text.complaint(f"there is more after the end of the {noun}"))


class _Unreadable(ValueError):
    """What comes next is not JSON."""


class _Text:
    """The text of a stream, from which JSON values are taken one after the other."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.at = 0
        self._stream = stream
        self._text = ""
        self._line = 1
        self._broken = ""
        self._ended = False
        self._unpacked = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._parse = json.JSONDecoder(strict=False).raw_decode

    def next_character(self) -> str:
        """The next character that is not blank; "" at the end."""
        while True:
            blank = _BLANK.match(self._text, self.at)
            self.at = blank.end() if blank else self.at
            if self.at < len(self._text) or not self._more(_READ_BYTES):
                return self._text[self.at : self.at + 1]

    def value(self) -> str:
        """The text of the next value."""
        step = _READ_BYTES
        while True:
            try:
                _, end = self._parse(self._text, self.at)
                if end < len(self._text) or self._ended:
                    text = self._text[self.at : end]
                    self.at = end
                    return text
                error = json.JSONDecodeError("", self._text, end)
            except json.JSONDecodeError as caught:
                error = caught
            except RecursionError:
                raise _Unreadable("nested too deeply") from None
            except ValueError as caught:
                raise _Unreadable(self.complaint(f"cannot be read: {caught}")) from None
            if len(self._text) - self.at > MAX_RECORD_BYTES:
                raise _Unreadable(TOO_LONG)
            # A long value is tried again with twice as much, so that it costs no square.
            if not self._more(step):
                raise _Unreadable(self._why(error))
            step *= 2

    def member(self) -> str:
        """The text of the next member of an object, as an object."""
        if self.next_character() != '"':
            raise _Unreadable(self.complaint("a name is missing"))
        name = self.value()
        if self.next_character() != ":":
            raise _Unreadable(self.complaint("a colon is missing"))
        self.at += 1
        self.next_character()
        return f"{{{name}:{self.value()}}}"

    def complaint(self, what: str) -> str:
        near = self._text[self.at : self.at + 20].split("\n")[0]
        return f"{what} at line {self._line_of(self.at)}, near {near!r}"

    def _why(self, error: json.JSONDecodeError) -> str:
        if self._broken:
            return self._broken
        if error.pos >= len(self._text.rstrip()) or error.msg.startswith("Unterminated string"):
            return CUT_ARRAY
        near = self._text[error.pos : error.pos + 20].split("\n")[0]
        return f"not JSON at line {self._line_of(error.pos)}, near {near!r}"

    def _line_of(self, position: int) -> int:
        return self._line + self._text.count("\n", 0, position)

    def _more(self, size: int) -> bool:
        if self._ended:
            return False
        block, self._broken = read_block(self._stream, size)
        self._ended = bool(self._broken) or len(block) < size
        self._line = self._line_of(self.at)
        self._text, self.at = self._text[self.at :] + self._unpacked.decode(block, self._ended), 0
        return True


_BLANK = re.compile(r"[\ufeff\s]*")


# What a file is that is not a log in text: an archive, a binary file, text in another encoding.

ARCHIVE_ENDINGS = (".zip", ".tar", ".tgz", ".7z", ".rar", ".bz2", ".xz")
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MAX_CONTROLS = 0.02
_LEGACY = "cp1252"
_MAX_FOREIGN = 0.3
"""In text of western languages, at most this share of the letters is not ASCII."""
SEE_FORMATS = "`convoscope formats` lists what can be read"


_BINARY = (b"\x89PNG", b"%PDF-", b"\xff\xd8\xff", b"GIF8", b"OggS", b"fLaC", b"ID3\x03", b"ID3\x04")
"""How pictures, sound and PDF begin."""


def is_binary(head: bytes) -> bool:
    """Whether bytes cannot be text: they begin as a binary format does, or many of them are control characters."""
    some = head[:4096]
    return head.startswith(_BINARY) or len(_CONTROLS.findall(some)) > _MAX_CONTROLS * len(some)


def legacy_text(data: bytes) -> str | None:
    """The text of bytes: UTF-8, or else Latin-1 as western systems write it; None where it is neither."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if error.end >= len(data) > 4 and error.reason == "unexpected end of data":
            return data[: error.start].decode()  # cut in the middle of a character
    text = data.decode(_LEGACY, "replace")
    letters = [one for one in text if one.isalpha()]
    foreign = sum(not one.isascii() for one in letters) + text.count("\ufffd")
    return text if foreign <= _MAX_FOREIGN * len(letters) else None
