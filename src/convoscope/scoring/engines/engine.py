"""What an engine is: partitions in, parts out, wherever the work is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from convoscope.ingest.split import Partition
from convoscope.scoring.partition import PartDone


class Engine(Protocol):
    """Does the work of a run. The order in which parts come back does not matter.

    The work can be pickled, and rebuilds what it needs where it is unpickled. It writes its files to the folder of the
    run, which must be the same for all: a shared disk, where there are several machines.
    """

    @property
    def workers(self) -> int:
        """How many partitions are worked on at the same time."""

    def run(self, work: Callable[[Partition], PartDone], partitions: Iterable[Partition]) -> Iterator[PartDone]:
        """The part of each partition. Partitions are taken when there is somebody to work on them, not all at once."""


__all__ = ["Engine"]
