"""Logs in an object store that an earlier run read, known by what the store says of their content: not read again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from convoscope.storage import is_remote, tag_of


class KnownObject(msgspec.Struct, frozen=True, array_like=True):
    """A log in a store, as a run read it."""

    tag: str
    """Of its address, ETag and size."""
    name: str
    digest: str
    """The hash of its bytes."""
    is_plain: bool
    """Positions in the file are positions in the text."""
    reader: str
    container: str
    grouping: str
    why: str


class KnownObjects(msgspec.Struct, frozen=True):
    """The logs of a run, as its file `objects.json` keeps them."""

    readers: list[str]
    """The names of all readers there were: another one might have claimed them."""
    objects: list[KnownObject]


class ObjectState(msgspec.Struct, frozen=True):
    """What is known of a log in a store, without reading it."""

    tag: str
    is_plain: bool
    digest: str = ""
    """The hash of its bytes, where a run has read it."""
    name: str = ""
    """Its name in that run."""


def by_tag(objects: Iterable[KnownObject]) -> Mapping[str, KnownObject]:
    return {one.tag: one for one in objects}


def known_object(path: Path, known: Mapping[str, KnownObject]) -> KnownObject | None:
    """The object at a path, if it is still what was read."""
    return known.get(tag_of(path)) if known and is_remote(path) else None
