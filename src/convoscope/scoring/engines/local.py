"""All cores of this machine."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any, TypeVar

from convoscope.errors import ConvoscopeError

Work = TypeVar("Work")
Result = TypeVar("Result")


class WorkerDied(ConvoscopeError):
    """A process of the pool ended without an answer, most often for want of memory."""


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def can_share() -> bool:
    """Whether workers inherit this process's memory, and with it metrics that were made in it."""
    return sys.platform == "linux"


def run(function: Callable[[Work], Result], work: Iterable[Work], *, workers: int) -> Generator[Result, None, None]:
    """The results of `function` over `work`, as they come. Work is taken up as workers get free.

    With one worker everything happens here, in order.
    """
    if workers == 1:
        yield from map(function, work)
        return
    context = multiprocessing.get_context("fork" if can_share() else "spawn")
    pending = iter(work)
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(workers, context, initializer=_receive, initargs=(function, os.getpid())) as pool:
        running: set[Future[Result]] = set()
        try:
            while True:
                running |= {pool.submit(_apply, one) for one in islice(pending, 2 * workers - len(running))}
                if not running:
                    break
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        except BrokenProcessPool:
            hint = "run the same command again: what is done is kept; fewer --workers need less memory"
            raise WorkerDied("a worker process died", hint=hint) from None
        except BaseException:
            # Nobody waits for them any more, and a part that is half written is no part.
            for worker in set(multiprocessing.active_children()) - others:
                worker.kill()
            raise


_inherited: dict[str, Callable[[Any], Any]] = {}


def _receive(function: Callable[[Any], Any], parent: int) -> None:
    _inherited["function"] = function
    # Who presses Ctrl-C means the process that we work for; it ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        # A worker must not outlive the process it works for: it would keep its files locked.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


_PR_SET_PDEATHSIG = 1


def _apply(one: Any) -> Any:
    return _inherited["function"](one)
