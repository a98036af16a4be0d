"""Evidence as it is kept with a score: JSON whatever it is made of, and never more than a person would look at.

A metric may give as evidence whatever it found in a log, and a log may hold anything: a message of many
megabytes, said twice, is evidence of a repetition. What is kept of it must not cost the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import msgspec

LONGEST_EVIDENCE = 20_000
"""Bytes of JSON that are kept beside one score."""
LONGEST_NAME = 1_000
"""Characters that are kept of a subject, a reason and its detail."""
LONGEST_ID = 10_000
"""And of the id of a conversation, by which it is asked for."""

_encode = msgspec.json.Encoder(enc_hook=repr).encode
_CUTS = ((1_000, 100), (200, 20), (50, 5))
"""Characters of a text and entries of a list or an object: the first of these that makes evidence short enough."""


def evidence(details: Mapping[str, Any] | None) -> str | None:
    """As JSON; where it is cut, it says so under `cut`. What JSON cannot say is written as Python would show it."""
    if details is None:
        return None
    try:
        written = _encode(details)
    except Exception:  # circles, depths, numbers and reprs that cannot be written
        written = b'{"unreadable":true}'
        with suppress(Exception):
            written = _encode({"shown": repr(details)})
    return (written if len(written) <= LONGEST_EVIDENCE else _shortened(written)).decode()


def _shortened(written: bytes) -> bytes:
    note = {"cut": f"{len(written):,} bytes of evidence, of which the beginning is kept"}
    details = msgspec.json.decode(written)
    for characters, entries in _CUTS:
        shorter = _encode({**_cut(details, characters, entries), **note})
        if len(shorter) <= LONGEST_EVIDENCE:
            return shorter
    return _encode(note)


def _cut(value: Any, characters: int, entries: int) -> Any:
    if isinstance(value, str):
        return cut(value, characters)
    if isinstance(value, list):
        return [_cut(one, characters, entries) for one in value[:entries]]
    if isinstance(value, dict):
        some = islice(value.items(), entries)
        return {cut(name, characters): _cut(one, characters, entries) for name, one in some}
    return value


def cut(text: str, characters: int = LONGEST_NAME) -> str:
    """A text, or its beginning."""
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


def cut_all(texts: Sequence[str]) -> Sequence[str]:
    """Texts of which hardly any is long."""
    return texts if max(map(len, texts), default=0) <= LONGEST_NAME else list(map(cut, texts))
