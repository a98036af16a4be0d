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
from convoscope.metrics.signatures import hash_files
from convoscope.user_code import content_hash


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
    """How many conversations each part holds; 0 where a part was replaced when the run grew."""
    order: list[int] = []
    """The numbers of the parts in the order of the input, which counts the conversations; empty if that is theirs."""
    resources: list[str] = []
    """The names of the types that metrics were handed."""
    running: int = 0
    """Conversations that went on when the logs were read: they are not in the run."""
    kept: int = 0
    """Conversations that are gone from the logs, and are in the run: `depends_on` does not speak of them."""
    unanswered: int = 0
    """Parts with scores that a judge did not give: the same command asks for them again."""
    generation: int = 0
    """How often the run has grown."""
    objects: list[str] = []
    """In an object store: the names of all objects that the run is read from. No two attempts to write share one."""
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


_CHANGES_NOTHING = ("benchmarks", "cli", "demo", "emit", "report")
"""Packages that cannot change a number: they print what was computed, or hold and write logs, which are input."""


@cache
def sources() -> str:
    """A hash of everything of ours that can change a number: readers, metrics, statistics, and not what shows them."""
    root, kinds = Path(__file__).parents[1], (".py", ".json", ".toml", ".yaml")
    return hash_files(root, kinds, lambda package: package not in _CHANGES_NOTHING)


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
    if "." in type(reader).__module__:
        return hash_files(file.parent, (".py",))
    return f"sha256:{content_hash(file)}"
