"""The receipt of a run: when, with what, from what, and whether it is valid. With the same input, settings, metrics,
version and sources, a run would come out the same."""

from __future__ import annotations

import hashlib
import inspect
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from convoscope.ingest.discover import Input
from convoscope.ingest.reader import Reader, reader_named


class InputHash(msgspec.Struct, frozen=True):
    """One input and the hash of its bytes."""

    name: str
    sha256: str
    format: str


class Receipt(msgspec.Struct, kw_only=True):
    """Everything about a run that is not a result."""

    schema: str = "convoscope.receipt/2"
    run_id: str
    valid: bool = True
    invalid_reason: str | None = None
    invalidated_at: str | None = None
    superseded_by: str | None = None
    started_at: str
    finished_at: str
    seconds: float
    config: dict[str, Any]
    config_hash: str
    inputs: list[InputHash]
    input_hash: str
    metrics: dict[str, str]
    """The signature of each metric's source."""
    depends_on: dict[str, str]
    """Hashes of all that could make it come out otherwise: settings, input, metrics, version, sources."""
    versions: dict[str, str]
    workers: int
    parts: list[int]
    """How many conversations each part holds: a conversation's number counts those before it."""
    timings: dict[str, float] = {}
    """Seconds of work by what they were spent on, over all workers."""
    audit: dict[str, int] = {}
    """Rows of states that were counted again from the events, and how many of them disagree."""


def canonical_hash(value: Any) -> str:
    """`sha256:` of the value's canonical JSON: keys sorted, no blanks."""
    return "sha256:" + hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()


def hash_inputs(inputs: Sequence[tuple[Input, str]]) -> tuple[list[InputHash], str]:
    """The hashes of the inputs, and one over all of them that does not depend on where they lie."""
    hashes = [InputHash(one.name, digest, one.reader) for one, digest in inputs]
    return hashes, canonical_hash(sorted((one.name, one.sha256) for one in hashes))


def versions() -> Mapping[str, str]:
    """What computed the run."""
    import duckdb
    import numpy as np

    from convoscope import __version__

    return {
        "convoscope": __version__,
        "python": sys.version.split()[0],
        "platform": f"{platform.system()} {platform.machine()}",
        "duckdb": duckdb.__version__,
        "numpy": np.__version__,
    }


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


_SHOWS_ONLY = ("cli", "report", "emit")
"""Packages that cannot change a number: they print what was computed, or write logs."""


@cache
def sources() -> str:
    """A hash of everything of ours that can change a number: readers, metrics, statistics, all but what shows them."""
    root = Path(__file__).parents[1]
    files = (
        path
        for path in root.rglob("*")
        if path.suffix in (".py", ".json", ".toml", ".yaml")
        and path.relative_to(root).parts[0] not in (*_SHOWS_ONLY, "examples")
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
    file = Path(path)
    return _hash(file.parent, file.parent.rglob("*.py") if "." in type(reader).__module__ else [file])


def _hash(root: Path, files: Iterable[Path]) -> str:
    whole = hashlib.sha256()
    for path in sorted(files):
        whole.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return "sha256:" + whole.hexdigest()
