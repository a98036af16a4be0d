"""Why a file is not read: what it is, which format is nearest, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.errors import InputError
from convoscope.ingest.io import tables
from convoscope.ingest.io.audio_heads import ENDINGS
from convoscope.ingest.io.containers import SEE_FORMATS, is_binary, legacy_text
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.marks import MARKS, names_in
from convoscope.ingest.reader import Container, Reader

_SUGGEST_MAP = f"{SEE_FORMATS}; `convoscope inspect FILE --suggest-map` writes a mapping for anything else"
_MANY_KEYS = 8
_UNPACK = "unpack it"
_REPACK = "unpack it, or pack it with gzip or zstd"
_AS_JSON = "export its messages as JSON lines or CSV"
_AS_SOUND = "ffmpeg -i FILE call.flac makes a recording that is read"


class KnownFile(NamedTuple):
    """A kind of file that holds no log that could be read."""

    begin: bytes
    words: str
    hint: str


_BINARY = (
    KnownFile(b"PK\x03\x04", "is a ZIP archive, which is not opened", _UNPACK),
    KnownFile(b"PK\x05\x06", "is a ZIP archive without files", _UNPACK),
    KnownFile(b"7z\xbc\xaf\x27\x1c", "is a 7z archive, which is not opened", _UNPACK),
    KnownFile(b"Rar!", "is a RAR archive, which is not opened", _UNPACK),
    KnownFile(b"BZh", "is packed with bzip2, which is not opened", _REPACK),
    KnownFile(b"\xfd7zXZ\0", "is packed with xz, which is not opened", _REPACK),
    KnownFile(b"%PDF-", "is a PDF", _AS_JSON),
    KnownFile(b"\x89PNG", "is a picture", _AS_JSON),
    KnownFile(b"\xff\xd8\xff", "is a picture", _AS_JSON),
    KnownFile(b"GIF8", "is a picture", _AS_JSON),
    KnownFile(b"#!AMR", "is a recording in AMR, which is not opened", _AS_SOUND),
    KnownFile(b"\x1aE\xdf\xa3", "is a WebM or Matroska file, which is not opened", _AS_SOUND),
    KnownFile(b"SQLite format 3\0", "is an SQLite database", "export its table of messages as CSV"),
)
_RAW_SOUND = {".ulaw": "mulaw", ".ul": "mulaw", ".mulaw": "mulaw", ".alaw": "alaw", ".al": "alaw"} | {
    ".g722": "g722",
    ".gsm": "gsm",
    ".sln": "s16le",
    ".pcm": "s16le",
    ".raw": "s16le",
}
_OFFICE = {
    **dict.fromkeys((".xlsx", ".ods", ".xlsm"), ("is a spreadsheet", "save it as CSV")),
    **dict.fromkeys((".docx", ".odt", ".pptx"), ("is a document of an office program", "save it as plain text")),
}
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_HTML = re.compile(r"\s*(<!--.{0,500}-->\s*)?<(!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_XML = re.compile(r"\s*<(\?xml|[A-Za-z][\w:.-]{0,60}[\s/>])")
_SETTINGS = re.compile(r"\s*(?:[#;].*\n\s*){0,20}\[\[?[A-Za-z_][\w. \"'-]{0,60}\]\]?\s*(?:[#;].*)?(\n|$)")
_EVENTS = re.compile(r"(event|data|id|retry):( |$)")
_LEVEL = re.compile(r"\b(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)\b")
_UTF16 = re.compile(rb"(?:[\x09-\x7e]\0{1,3}){8}|(?:\0{1,3}[\x09-\x7e]){8}")
_MANY = 0.5
_MAX_LINES = 100


def looks_like_settings(head: bytes) -> bool:
    """Whether a file begins with the name of a section in brackets, which no JSON does."""
    return _SETTINGS.match(head[:2000].decode("utf-8", "replace")) is not None


def unknown_file(
    path: Path, head: bytes, container: Container, values: Sequence[Any], readers: Iterable[Reader]
) -> InputError:
    """Why no reader knows a file."""
    if container == "recording":
        return InputError("is a recording", hint="name the log of the call, or leave out --format")
    if container == "text" or path.suffix.lower() in ENDINGS:
        return _unknown_text(path, head)
    part = next(filter(None, (reader.part_of(path.name) for reader in readers)), "")
    if part:
        return InputError(f"is {part}")
    if container == "zip":
        return _known_binary(path, head) or InputError("is a ZIP archive, which is not opened", hint=_UNPACK)
    if container == "yaml":
        hint = f"a flow is shown in docs/guides/flow-definitions.md; {SEE_FORMATS}"
        return InputError(f"is YAML that declares no flow, and no log that is known; {_described(values)}", hint=hint)
    near = _nearest(values)
    if container == "table":
        return tables.UnknownTable(f"unknown table format; {_described(values)}{near}", hint=_SUGGEST_MAP)
    if container == "array" and not values:
        return InputError("unknown JSON format; an empty list", hint=SEE_FORMATS)
    is_list = container == "array" and not isinstance(values[0], dict | list)
    what = f"{'a list; ' if is_list else ''}{_described(values)}"
    return InputError(f"unknown JSON format; {what}{near}", hint=_SUGGEST_MAP)


def _known_binary(path: Path, head: bytes) -> InputError | None:
    """A binary file, by how it begins."""
    if head.startswith(b"PK") and path.suffix.lower() in _OFFICE:
        words, hint = _OFFICE[path.suffix.lower()]
        return InputError(words, hint=hint)
    for kind in _BINARY:
        if head.startswith(kind.begin):
            return InputError(kind.words, hint=kind.hint)
    if head[257:262] == b"ustar":
        return InputError("is a tar archive, which is not opened", hint=_UNPACK)
    if head[4:8] == b"ftyp":
        return InputError("is an MP4 or M4A file, which is not opened", hint=_AS_SOUND)
    if (raw := _RAW_SOUND.get(path.suffix.lower())) and (is_binary(head) or legacy_text(head) is None):
        hint = f"ffmpeg -f {raw} -ar 8000 -i FILE call.wav, with its rate"
        return InputError("is sound without a header, so that its rate is unknown", hint=hint)
    return None


def _unknown_text(path: Path, head: bytes) -> InputError:
    """Why a file that is no JSON and no table is not read, or has the name of a recording."""
    if path.suffix.lower() in ENDINGS:
        what = "of no known sound format" if is_binary(head) or legacy_text(head) is None else "text"
        return InputError(f"is not a recording: its first bytes are {what}", hint=SEE_FORMATS)
    if (known := _known_binary(path, head)) is not None:
        return known
    if _UTF16.match(head):
        return InputError("is text in UTF-16 or UTF-32 without a mark that says so", hint="save it as UTF-8")
    if _PICKLE.match(head) and is_binary(head):
        return InputError("is a Python pickle, which is not opened", hint=_AS_JSON)
    if is_binary(head):
        return InputError("is a binary file", hint=SEE_FORMATS)
    text = legacy_text(head)
    if text is None:
        return InputError("is not UTF-8 text", hint="save it as UTF-8")
    return _known_text(text) or InputError("is not JSON", hint=SEE_FORMATS)


def _known_text(text: str) -> InputError | None:
    """Text of a kind that is known, and holds no log that could be read."""
    if _HTML.match(text):
        return InputError("is an HTML page", hint="save the data behind the page, as JSON or CSV")
    if _XML.match(text):
        return InputError("is XML", hint=_AS_JSON)
    if _SETTINGS.match(text):
        return InputError("is a file of settings, such as INI or TOML", hint=SEE_FORMATS)
    lines = [line for line in text.splitlines()[:_MAX_LINES] if line.strip()]
    if lines and all(_EVENTS.match(line) for line in lines):
        return InputError("is a stream of server-sent events (SSE) that is not known", hint=SEE_FORMATS)
    if lines and sum(_LEVEL.search(line[:200]) is not None for line in lines) > _MANY * len(lines):
        return InputError("is the log of a program, as plain text", hint=f"{_AS_JSON}; {SEE_FORMATS}")
    try:
        value = decode(text.strip().encode()).value
    except BadJson:
        return None
    return InputError(f"is JSON that holds nothing but {_kind(value)}", hint=SEE_FORMATS)


def _described(values: Sequence[Any]) -> str:
    """What the first record is."""
    for value in values:
        if isinstance(value, dict):
            names = list(value)
            more = f" and {len(names) - _MANY_KEYS} more" if len(names) > _MANY_KEYS else ""
            return "fields: " + ", ".join(names[:_MANY_KEYS]) + more if names else "an empty object"
        if isinstance(value, list):
            return "a list; " + _described(value) if value else "an empty list"
        return f"its first entry is {_kind(value)}"
    return "no record"


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true or false"
    return "a text" if isinstance(value, str) else "a number"


def _nearest(values: Sequence[Any]) -> str:
    """The format with most of the telling names that the records have, in words; "" where they have none."""
    names = names_in(values)
    shared = [(sorted(filter(_is_telling, names & {*marks.split()})), reader) for reader, marks in MARKS.items()]
    telling, reader = max(shared, key=lambda pair: len(pair[0]))
    return f"; nearest is {reader}, which has {', '.join(telling[:3])} too" if telling else ""


def _is_telling(name: str) -> bool:
    """Whether a name is rare: of several words, or long."""
    return re.search(r"[A-Z_.$]", name[1:]) is not None or len(name) > 9
