"""What an engine is, and what all engines do in the same way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Protocol, TypeVar

from convoscope.errors import ConvoscopeError, UsageError
from convoscope.ingest.split import Partition
from convoscope.scoring.partition import PartDone

MAX_WORKERS = 1000

Handle = TypeVar("Handle")


class Engine(Protocol):
    """Does the work of a run. The order in which parts come back does not matter.

    The work can be pickled, and rebuilds what it needs where it is unpickled. It writes its files to the folder of the
    run, which must be the same for all: a shared disk, where there are several machines.
    """

    @property
    def workers(self) -> int:
        """How many partitions are worked on at the same time."""

    def run(self, work: Callable[[Partition], PartDone], partitions: Iterable[Partition]) -> Iterator[PartDone]:
        """The part of each partition. Partitions are taken when a worker is free, not all at once."""


class WorkerDied(ConvoscopeError):
    """A worker ended without an answer, most often for want of memory."""


def checked_workers(workers: int | None) -> int | None:
    """A number of workers that a user asks for."""
    if workers is not None and workers < 1:
        raise UsageError(f"--workers must be at least 1, not {workers}")
    if workers is not None and workers > MAX_WORKERS:
        raise UsageError(f"--workers must be at most {MAX_WORKERS:,}, not {workers:,}")
    return workers


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def most_partitions(work: Any, default: int) -> int:
    """How many partitions may be handed out at the same time.

    Where metrics wait for a judge, no more than its limit was divided by.
    """
    most: int | None = getattr(work, "most_partitions", None)
    return default if most is None else most


def in_flight(
    partitions: Iterable[Partition],
    most: int,
    submit: Callable[[Partition], Handle],
    first_done: Callable[[set[Handle]], tuple[Iterable[Handle], Iterable[Handle]]],
    running: set[Handle],
) -> Iterator[Handle]:
    """What is done, as it comes. At most `most` partitions are handed out; `running` holds their handles."""
    pending = iter(partitions)
    while True:
        running |= {submit(one) for one in islice(pending, most - len(running))}
        if not running:
            return
        done, others = first_done(running)
        finished = set(done)
        running.clear()
        running.update(others)
        yield from finished
