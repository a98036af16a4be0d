"""What a run depends on: with the same of it, it would come out the same."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from convoscope.ingest.reader import Reader, reader_named

_SHOWS_ONLY = ("cli", "report", "emit")
"""Packages that cannot change a number: they print what was computed, or write logs."""


@cache
def sources() -> str:
    """A hash of everything of ours that can change a number: readers, metrics, statistics, all but what shows them."""
    root = Path(__file__).parents[1]
    files = (
        place
        for place in root.rglob("*")
        if place.suffix in (".py", ".json", ".toml", ".yaml")
        and place.relative_to(root).parts[0] not in (*_SHOWS_ONLY, "examples")
    )
    return _hash(root, files)


def reader_sources(names: Iterable[str]) -> dict[str, str]:
    """A hash of the source of each reader that is not ours, and of the settings of those that have any."""
    hashes: dict[str, str] = {}
    for name in sorted(set(names)):
        reader = reader_named(name)
        if not type(reader).__module__.startswith("convoscope."):
            hashes[name] = _reader_hash(reader)
        if reader.settings:
            hashes[name] = hashes.get(name, "") + reader.settings
    return hashes


def _reader_hash(reader: Reader) -> str:
    """The module of a reader; where that is part of a package of its own, all of that package."""
    path = inspect.getsourcefile(type(reader))
    if path is None:
        return ""
    place = Path(path)
    if "." not in type(reader).__module__:
        return _hash(place.parent, [place])
    return _hash(place.parent, place.parent.rglob("*.py"))


def _hash(root: Path, files: Iterable[Path]) -> str:
    whole = hashlib.sha256()
    for place in sorted(files):
        whole.update(place.relative_to(root).as_posix().encode() + b"\0" + place.read_bytes() + b"\0")
    return "sha256:" + whole.hexdigest()
