"""The engine of this machine: worker processes, or this process alone."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from typing import Any, Literal

from convoscope.ingest.split import Partition
from convoscope.scoring.engines.engine import WorkerDied, checked_workers, cores, in_flight, most_partitions
from convoscope.scoring.partition import PartDone


def can_share() -> bool:
    """Whether workers inherit this process's memory, and with it metrics that were made in it."""
    return sys.platform == "linux"


class LocalEngine:
    """Worker processes on this machine; with one worker, everything happens in this process, in order.

    `start` is how processes are started: "fork" shares this process's memory, "spawn" sends them what they need. By
    default they are forked where that can be done.
    """

    def __init__(self, workers: int | None = None, start: Literal["fork", "spawn"] | None = None) -> None:
        self.workers = checked_workers(workers) or cores()
        self._is_default = workers is None
        self._start = start or ("fork" if can_share() else "spawn")

    def run(self, work: Callable[[Partition], PartDone], partitions: Iterable[Partition]) -> Iterator[PartDone]:
        """The parts as they come. A partition is taken up as a worker gets free."""
        if self.workers == 1 or (self._start == "spawn" and not _can_be_sent(work)):
            yield from map(work, partitions)
            return
        pending = iter(partitions)
        if self._is_default:
            first = list(islice(pending, 2))
            if len(first) < 2:  # to start processes costs more than a small input
                yield from map(work, first)
                return
            pending = chain(first, pending)
        context = multiprocessing.get_context(self._start)
        others = set(multiprocessing.active_children())
        size = min(self.workers, most_partitions(work, self.workers))
        with ProcessPoolExecutor(size, context, initializer=_receive, initargs=(work, os.getpid())) as pool:
            running: set[Future[PartDone]] = set()
            try:
                for future in in_flight(pending, 2 * size, lambda one: pool.submit(_apply, one), _first_done, running):
                    yield future.result()
            except BrokenProcessPool:
                hint = "run the same command again: what is done is kept; fewer --workers need less memory"
                raise WorkerDied("a worker process died", hint=hint) from None
            except BaseException:
                # No caller waits for them any more, and a part that is half written is no part.
                for worker in set(multiprocessing.active_children()) - others:
                    worker.kill()
                raise


def _first_done(running: set[Future[PartDone]]) -> tuple[set[Future[PartDone]], set[Future[PartDone]]]:
    done, others = wait(running, return_when=FIRST_COMPLETED)
    return done, others


def _can_be_sent(work: Callable[[Partition], PartDone]) -> bool:
    """Metrics that were made in this process and have no name elsewhere cannot; they are scored in this process."""
    try:
        pickle.dumps(work)
    except Exception as error:  # whatever an object of the user says to being pickled
        warnings.warn(
            f"scored in one process: a metric or reader cannot be sent to others ({error}). "
            "Put it at the top level of a module, or name its file with metrics_from or readers_from.",
            stacklevel=2,
        )
        return False
    return True


_inherited: dict[str, Callable[[Any], Any]] = {}


def _receive(function: Callable[[Any], Any], parent: int) -> None:
    _inherited["function"] = function
    # Who presses Ctrl-C means the process that we work for; it ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform == "linux":
        # A worker must not outlive the process it works for: it would keep its files locked.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


_PR_SET_PDEATHSIG = 1


def _apply(partition: Any) -> Any:
    return _inherited["function"](partition)
