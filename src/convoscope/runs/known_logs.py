"""The logs in an object store that the run at `--out` was made of: unchanged ones are known without reading them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from convoscope.errors import ConvoscopeError
from convoscope.ingest.discover import Input, fingerprint
from convoscope.ingest.known_objects import KnownObject, KnownObjects, by_tag
from convoscope.ingest.reader import registered
from convoscope.runs.receipt import InputHash, canonical_hash, reader_sources, sources, versions
from convoscope.runs.run import OBJECTS, Run, read_json, write_whole
from convoscope.scoring.settings import ScoreSettings
from convoscope.storage import as_path, is_remote


def known_logs(paths: Iterable[object], settings: ScoreSettings) -> Mapping[str, KnownObject]:
    """The logs of the run that is to grow, by their tags, as long as they would be recognised as they were."""
    if settings.out is None or not any(map(is_remote, paths)):
        return {}
    readers = _readers(settings)
    try:
        run = Run.open(as_path(settings.out))
        if not run.tables.own(OBJECTS).is_file():
            return {}
        kept: KnownObjects = read_json(run.tables.own(OBJECTS), KnownObjects)
        before, config = run.receipt.depends_on, run.receipt.config
        same = before["version"] == versions()["convoscope"] and config["format"] == settings.format
        same = same and kept.readers == readers
        same = same and before["sources"] == code_of(one.format for one in run.receipt.inputs)
    except (ConvoscopeError, KeyError):  # it is said where the run is opened to grow
        return {}
    return by_tag(kept.objects) if same else {}


def unchanged(before: Iterable[InputHash], now: Sequence[InputHash]) -> frozenset[str]:
    """The names of the logs that hold what they held, each the only one of its name."""
    known, names = {(one.name, one.sha256) for one in before}, Counter(one.name for one in now)
    return frozenset(one.name for one in now if names[one.name] == 1 and (one.name, one.sha256) in known)


def code_of(readers: Iterable[str]) -> str:
    """A hash of all that can change a number: our sources, and those of the readers that are not ours."""
    return canonical_hash([sources(), reader_sources(readers)])


def write_logs(folder: Path, inputs: Sequence[Input], hashes: Sequence[InputHash], settings: ScoreSettings) -> None:
    """Keep what the logs of a run are, where a store says when they change. `hashes` are those of the inputs."""
    if objects := list(_objects(zip(inputs, hashes, strict=True))):
        write_whole(folder / OBJECTS, msgspec.json.encode(KnownObjects(_readers(settings), objects)))


def _objects(inputs: Iterable[tuple[Input, InputHash]]) -> Iterator[KnownObject]:
    for item, hashed in inputs:
        if (state := item.state) is not None:
            # That of a log with companions is of their bytes, too.
            own = fingerprint(msgspec.structs.replace(item, companions=())) if item.companions else hashed.sha256
            digest = own.removeprefix("sha256:")
            is_plain, kind = state.is_plain, (item.reader, item.container, item.grouping, item.why)
            yield KnownObject(state.tag, item.name, digest, is_plain, *kind)


def _readers(settings: ScoreSettings) -> list[str]:
    return sorted(registered(settings.readers_from).by_name)
