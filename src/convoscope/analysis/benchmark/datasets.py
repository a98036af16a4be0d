"""Where benchmark data lie, which data sets there are, and which samples a split has."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import msgspec

from convoscope.errors import InputError, UsageError
from convoscope.ingest.companions.gold_files import ENDING, NAME_HINT, SECOND_LABELLING, is_sample_name
from convoscope.ingest.io.containers import BOM

VARIABLE = "CONVOSCOPE_BENCHMARKS"
OTHER_VARIABLE = "SLOWER_WHISPER_BENCHMARKS"
"""The name that slower-whisper gives it: honoured where ours is not set."""
SEMANTIC, ASR, DIARIZATION = "semantic", "asr", "diarization"
TRACKS = (SEMANTIC, ASR, DIARIZATION)

NOT_STAGED = {
    "ami": "the AMI meeting corpus is not part of Convoscope: get it from its makers, label it, and stage it",
    "librispeech": "LibriSpeech is not part of Convoscope: get it from its makers, and stage it",
}
"""Data sets that people ask for, and that Convoscope may not distribute."""

_REFERENCES = {SEMANTIC: ("goldens", ENDING), ASR: ("references", ".txt"), DIARIZATION: ("references", ".rttm")}
"""By track: the folder of what is true, and how its files end."""


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """`dataset.json` in the folder of a data set: what it is, and which samples each split has."""

    description: str = ""
    version: str = ""
    language: str = ""
    splits: dict[str, tuple[str, ...]] = {}


class BenchmarkDataset(NamedTuple):
    """A data set of a track."""

    track: str
    name: str
    folder: Path
    manifest: Manifest
    problem: InputError | None = None
    """Why its `dataset.json` cannot be used."""

    @property
    def references(self) -> Path:
        """The folder of what is true."""
        return self.folder / _REFERENCES[self.track][0]

    def reference(self, sample: str) -> Path:
        """What is true of a sample."""
        return self.references / (sample + _REFERENCES[self.track][1])

    @property
    def second_labelling(self) -> Path | None:
        """The folder of what another labeller, who did not see the first labels, took for true; None without one."""
        folder = self.folder / SECOND_LABELLING
        return folder if self.track == SEMANTIC and folder.is_dir() else None

    @property
    def samples(self) -> list[str]:
        """Every sample that has a reference or is in a split."""
        ending = _REFERENCES[self.track][1]
        named = {one.name.removesuffix(ending) for one in self.references.glob(f"*{ending}")}
        return sorted(named.union(*self.manifest.splits.values()))

    def split(self, split: str | None, limit: int | None, also: Collection[str] = ()) -> list[str]:
        """The samples of a split, by name; None is all of them, and `also` those that have no reference."""
        if limit is not None and limit <= 0:
            raise UsageError(f"--limit must be at least 1, not {limit}", hint="leave it out for all samples")
        if split is None:
            return sorted({*self.samples, *also})[:limit]
        if split not in self.manifest.splits:
            known = ", ".join(self.manifest.splits) or f"none: {self.folder / 'dataset.json'} declares no splits"
            raise UsageError(f"{self.name} has no split {split!r}", hint=f"its splits: {known}")
        return sorted(self.manifest.splits[split])[:limit]


def roots() -> list[Path]:
    """Where data sets are looked for: the folder that the user names, then what is bundled."""
    variable = OTHER_VARIABLE if not os.environ.get(VARIABLE) and os.environ.get(OTHER_VARIABLE) else VARIABLE
    named = os.environ.get(variable)
    if named and not Path(named).is_dir():
        raise UsageError(f"{variable}: there is no folder {named}", hint="name the folder that holds datasets/")
    return [*([Path(named)] if named else []), Path(str(files("convoscope").joinpath("benchmarks")))]


def find_datasets(track: str | None = None) -> list[BenchmarkDataset]:
    """The data sets that are staged, by track and name; one of the user's own comes before a bundled one."""
    datasets: dict[tuple[str, str], BenchmarkDataset] = {}
    for root in roots():
        for name in TRACKS if track is None else (track,):
            for folder in sorted((root / "datasets" / name).glob("*/")):
                if (folder / _REFERENCES[name][0]).is_dir():
                    datasets.setdefault((name, folder.name), _dataset(name, folder))
    return [datasets[key] for key in sorted(datasets)]


def find_dataset(track: str, name: str) -> BenchmarkDataset:
    """A data set by its name; says what to do where it is not staged."""
    staged = find_datasets(track)
    for dataset in staged:
        if dataset.name == name:
            return _usable(dataset)
    folder, ending = _REFERENCES[track]
    root = os.environ.get(VARIABLE) or os.environ.get(OTHER_VARIABLE) or f"${VARIABLE}"
    path = f"{root}/datasets/{track}/{name}/{folder}/SAMPLE{ending}"
    why = NOT_STAGED.get(name, f"there is {', '.join(one.name for one in staged) or 'no data set'} for this track")
    raise UsageError(f"the data set {name!r} is not staged: {why}", hint=f"what is true of a sample goes to {path}")


def find_named(name: str) -> BenchmarkDataset:
    """The first data set of this name, of whatever track."""
    for dataset in find_datasets():
        if dataset.name == name:
            return _usable(dataset)
    return find_dataset(SEMANTIC, name)


def _usable(dataset: BenchmarkDataset) -> BenchmarkDataset:
    if dataset.problem is not None:
        raise dataset.problem
    return dataset


def _dataset(track: str, folder: Path) -> BenchmarkDataset:
    path = folder / "dataset.json"
    if not path.exists():
        return BenchmarkDataset(track, folder.name, folder, Manifest())
    try:
        return BenchmarkDataset(track, folder.name, folder, _manifest(path))
    except InputError as error:
        return BenchmarkDataset(track, folder.name, folder, Manifest(), error)


def _manifest(path: Path) -> Manifest:
    try:
        manifest = msgspec.json.decode(read_file(str(path)), type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
        hint = 'write {"splits": {"test": ["sample", …]}}'
        raise InputError(f"is not the description of a data set: {error}", file=str(path), hint=hint) from None
    for split, samples in manifest.splits.items():
        field = f"$.splits.{split}"
        counted = Counter(samples)
        if repeated := [name for name, count in counted.items() if count > 1]:
            words = f"names a sample more than once: {', '.join(map(repr, repeated[:5]))}"
            raise InputError(words, file=str(path), field=field, hint="each sample once: it would count more than once")
        if strange := next((name for name in samples if not is_sample_name(name)), None):
            raise InputError(f"{strange!r} cannot be the name of a sample", file=str(path), field=field, hint=NAME_HINT)
    return manifest


def without_folder(words: str, folder: Path) -> str:
    """Words about a file without the folder that it lies in: a result is handed on, and says nothing of a machine."""
    return words.replace(f"{folder}{os.sep}", "")


_BLOCK = 1 << 16


def read_file(path: str) -> bytes:
    """The bytes of a file without a byte order mark. There may be very many: one call to open, to read, to close."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        data = os.read(descriptor, _BLOCK)
        while len(data) % _BLOCK == 0 and (more := os.read(descriptor, _BLOCK)):
            data += more
        return data.removeprefix(BOM)
    finally:
        os.close(descriptor)
