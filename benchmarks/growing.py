"""A run that grows: what a hundredth more costs, against the run that is there, and against one run over everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchmarks import chats, items, scoring
from convoscope.runs.run import Run

AIM = 0.10
"""Of the cost of the first run, for a hundredth of it more."""


class Kind(NamedTuple):
    """What is scored, and with which metrics; all if none is named."""

    make: Callable[[int], Iterator[dict[str, object]]]
    metrics: Sequence[str] = ()


KINDS = {"chats": Kind(chats.chats), "items": Kind(items.items, items.METRICS)}
ADDITIONS = 30


def run(folder: Path, sizes: Sequence[tuple[str, int]]) -> None:
    """So many chats with all metrics, or items with four scorers, then a hundredth more; and many small additions."""
    for kind, size in sizes:
        once_more(folder, kind, size)
    for kind in KINDS:
        many_times(folder, kind, min(size for name, size in sizes if name == kind) // 10)


def once_more(folder: Path, kind: str, size: int) -> None:
    """A hundredth more in a new file, and then nothing new."""
    make, metrics = KINDS[kind]
    logs, out, records = folder / f"growing-{kind}-{size}", folder / f"run-{kind}-{size}", make(size + size // 100)
    logs.mkdir()
    _write(logs / "first.jsonl", islice(records, size))
    first = scoring.score(logs, out, 1, metrics)
    _write(logs / "second.jsonl", records)
    second = scoring.score(logs, out, 1, metrics)
    nothing = scoring.score(logs, out, 1, metrics)
    whole = scoring.score(logs, folder / f"{out.name}-whole", 1, metrics)
    print(f"{size:,} {kind}, then {size // 100:,} more, one worker, page included")
    print(f"  first   {first.cpu:.1f} s of CPU time, {first.peak_mb:.0f} MB; all at once {whole.cpu:.1f} s")
    share = second.cpu / first.cpu
    print(f"  more    {second.cpu:.2f} s, {second.peak_mb:.0f} MB: {100 * share:.1f} % of the first, aim {AIM:.0%}")
    print(f"  nothing {nothing.cpu:.2f} s; {_compared(second.run.folder, whole.run.folder)}")


def many_times(folder: Path, kind: str, size: int) -> None:
    """Additions of a hundredth, one after the other."""
    make, metrics = KINDS[kind]
    logs, out = folder / f"additions-{kind}", folder / f"run-additions-{kind}"
    records, step = make(size + ADDITIONS * (size // 100)), size // 100
    logs.mkdir()
    _write(logs / "0.jsonl", islice(records, size))
    run = scoring.score(logs, out, 1, metrics)
    spent = [run.cpu]
    for number in range(1, ADDITIONS + 1):
        _write(logs / f"{number}.jsonl", islice(records, step))
        spent.append(scoring.score(logs, out, 1, metrics).cpu)
    whole = scoring.score(logs, folder / f"{out.name}-whole", 1, metrics)
    print(f"{size:,} {kind}, then {ADDITIONS} times {step:,} more")
    print(f"  first {spent[0]:.1f} s of CPU time; each addition {min(spent[1:]):.2f} to {max(spent[1:]):.2f} s")
    print(f"  {_compared(out, whole.run.folder)}")


def _compared(grown: Path, whole: Path) -> str:
    one, other = (Run.open(folder).tables.own("summary.json").read_bytes() for folder in (grown, whole))
    return f"the summary is {'' if one == other else 'NOT '}that of one run over everything, byte for byte"


def _write(path: Path, records: Iterator[dict[str, object]]) -> None:
    with path.open("wb") as stream:
        for record in records:
            stream.write(msgspec.json.encode(record) + b"\n")
