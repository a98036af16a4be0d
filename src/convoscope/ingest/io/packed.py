"""Files that hold JSON values in another dress: documents of YAML, and JSON members of a ZIP archive."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from convoscope.errors import InputError
from convoscope.ingest.io.containers import (
    BETWEEN_ELEMENTS,
    MAX_RECORD_BYTES,
    TOO_LONG,
    BrokenEnd,
    ByteRange,
    legacy_text,
    ranges_of_texts,
    whole,
)
from convoscope.ingest.io.yaml import yaml_documents
from convoscope.storage import open_binary

MEMBER, CONTENT = "member", "content"
"""Of a record of an archive: the name of the member, and its value."""
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_STORED, _DEFLATED, _ZSTD = 0, 8, 93
_MOST_MEMBERS = 100_000


def yaml_ranges(path: Path, size: int) -> Iterator[ByteRange]:
    """The documents of a YAML file, as JSON."""
    return ranges_of_texts(_documents(path), size, BETWEEN_ELEMENTS)


def _documents(path: Path) -> Iterator[bytes | BrokenEnd]:
    try:
        for document in yaml_documents(legacy_text(whole(path)) or ""):
            yield _json(document)
    except InputError as error:
        yield BrokenEnd(error.message, error.hint)


def zip_ranges(path: Path, size: int) -> Iterator[ByteRange]:
    """The JSON members of an archive, each as an object with its name and its value."""
    return ranges_of_texts(_members(path), size, BETWEEN_ELEMENTS)


def _members(path: Path) -> Iterator[bytes | BrokenEnd]:
    try:
        with open_binary(path) as stream, zipfile.ZipFile(stream) as archive:
            for info in archive.infolist()[:_MOST_MEMBERS]:
                if info.filename.lower().endswith(".json"):
                    content = _unpacked(info, stream)
                    name = msgspec.json.encode(info.filename)
                    yield b'{"member":%s,"content":%s}' % (
                        name,
                        content.strip().replace(BETWEEN_ELEMENTS, b"") or b"null",
                    )
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, struct.error) as error:
        yield BrokenEnd(f"the archive is damaged: {error}", "make the file again")


def _unpacked(info: zipfile.ZipInfo, stream: IO[bytes]) -> bytes:
    """The bytes of a member. Python 3.11 does not know Zstandard inside of ZIP, so members are read by hand."""
    stream.seek(info.header_offset)
    header = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))
    stream.seek(header[-2] + header[-1], 1)
    packed = stream.read(info.compress_size)
    if info.compress_type == _STORED:
        content = packed
    elif info.compress_type == _DEFLATED:
        content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, MAX_RECORD_BYTES + 1)
    elif info.compress_type == _ZSTD:
        try:
            from compression import zstd  # type: ignore[import-not-found, unused-ignore] # Python 3.14
        except ImportError:
            from backports import zstd
        content = zstd.ZstdDecompressor().decompress(packed, MAX_RECORD_BYTES + 1)
    else:
        raise ValueError(f"{info.filename} is compressed by method {info.compress_type}")
    if len(content) > MAX_RECORD_BYTES:
        raise ValueError(f"{info.filename}: {TOO_LONG}")
    return content


def is_zip(head: bytes) -> bool:
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def _json(value: object) -> bytes:
    return msgspec.json.encode(value).replace(BETWEEN_ELEMENTS, b"\\u001e")
