"""What a file is that is not a log in text: an archive, a binary file, text in another encoding."""

from __future__ import annotations

import re

from convoscope.errors import InputError

ARCHIVE_ENDINGS = (".zip", ".tar", ".tgz", ".7z", ".rar", ".bz2", ".xz")
_ARCHIVES = (b"PK\x03\x04", b"PK\x05\x06", b"7z\xbc\xaf\x27\x1c", b"Rar!", b"BZh", b"\xfd7zXZ\0")
_TAR = (257, b"ustar")
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MAX_CONTROLS = 0.02
_LEGACY = "cp1252"
_MAX_FOREIGN = 0.3
"""In text of western languages, at most this share of the letters is not ASCII."""
_SEE_FORMATS = "`convoscope formats` lists what can be read"


def is_binary(head: bytes) -> bool:
    """Whether bytes cannot be text: many of them are control characters."""
    some = head[:4096]
    return len(_CONTROLS.findall(some)) > _MAX_CONTROLS * len(some)


def not_text(head: bytes) -> InputError | None:
    """Why a file is not text that can be read; None for text."""
    start, mark = _TAR
    if head.startswith(_ARCHIVES) or head[start : start + len(mark)] == mark:
        return InputError("is an archive, which is not opened", hint="unpack it")
    if is_binary(head):
        return InputError("is a binary file", hint=_SEE_FORMATS)
    if legacy_text(head) is None:
        return InputError("is not UTF-8 text", hint="save it as UTF-8")
    return None


def legacy_text(data: bytes) -> str | None:
    """The text of bytes: UTF-8, or else Latin-1 as western systems write it; None where it is neither."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if error.end >= len(data) > 4 and error.reason == "unexpected end of data":
            return data[: error.start].decode()  # cut in the middle of a letter
    text = data.decode(_LEGACY, "replace")
    letters = [one for one in text if one.isalpha()]
    foreign = sum(not one.isascii() for one in letters) + text.count("\ufffd")
    return text if foreign <= _MAX_FOREIGN * len(letters) else None
