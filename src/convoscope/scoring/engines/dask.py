"""The engine of Dask: partitions are tasks of `dask.distributed`, on a cluster or on one that is started here."""

from __future__ import annotations

import asyncio
import logging
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from uuid import uuid4

from convoscope.errors import UsageError
from convoscope.ingest.split import Partition
from convoscope.scoring.engines.engine import cores, in_flight, most_partitions
from convoscope.scoring.engines.named import Address
from convoscope.scoring.engines.remote import (
    Ask,
    SharedCounter,
    counter_class,
    counter_of,
    died,
    do_partition,
    entry_point,
    explained,
    forget_work,
    sent_work,
)
from convoscope.scoring.partition import PartDone

_SECONDS = 30
"""To wait for a scheduler and a first worker."""
_SOON = 2
"""To wait for what is given up."""


class DaskEngine:
    """Works on a Dask cluster. A partition whose worker is lost is given to another one."""

    def __init__(self, address: Address, workers: int | None) -> None:
        self.address = address
        self._wanted = workers
        self._client: Any = None
        self._cluster: Any = None
        self._log = logging.getLogger("distributed.client")
        self._workers = 0

    @property
    def workers(self) -> int:
        """How many partitions are worked on at the same time: as many as there are processes, unless the user said."""
        if not self._workers:
            self._connect()
        return self._workers

    def run(self, work: Callable[[Partition], PartDone], partitions: Iterable[Partition]) -> Iterator[PartDone]:
        """The parts as they come."""
        workers, client = self.workers, self._client
        running: set[Any] = set()
        call, name = entry_point(), f"convoscope-{uuid4().hex[:8]}"
        sent = sent_work(work)  # type: ignore[arg-type]
        try:
            with _counted(client, counter_of(sent, work), name) as ask:  # type: ignore[arg-type]

                def submit(partition: Partition) -> Any:
                    content = pickle.dumps((do_partition, sent, ask, partition))
                    return client.submit(call, content, key=f"{name}-{partition.number}", pure=False)

                most, first_done = most_partitions(work, 2 * workers), partial(_first_done, client)
                for future in in_flight(partitions, most, submit, first_done, running):
                    yield self._result(future)
            with suppress(Exception):  # a worker that went away has nothing to close
                client.run(partial(_call, pickle.dumps((forget_work, sent.key))), on_error="ignore")
        except BaseException as error:
            with suppress(Exception):
                client.cancel(list(running), force=True)
            if _is_lost(error):
                raise died(str(self.address), "the connection to the scheduler was lost") from None
            raise
        finally:
            self._close()

    def _result(self, future: Any) -> PartDone:
        from distributed import KilledWorker

        try:
            done: PartDone = pickle.loads(future.result())
        except KilledWorker as error:
            what = f"every worker that took partition {error.task.rpartition('-')[2]} died"
            raise died(str(self.address), what) from None
        except ModuleNotFoundError as error:
            raise explained(error, str(self.address)) from None
        return done

    def _connect(self) -> None:
        """Connect to the scheduler, or start one with workers on this machine; refuse what could not work."""
        self.address.check()
        from distributed import Client

        if not self.address.host:
            self._cluster = _local_cluster(self._wanted or cores())
        self._log.disabled = True  # what goes wrong is an error of the run, in words
        target = self._cluster or f"tcp://{self.address.host}:{self.address.port}"
        try:
            self._client = Client(target, timeout=_SECONDS, set_as_default=False)
            if self._cluster is not None:
                self._client.wait_for_workers(self._wanted or cores(), timeout=_SECONDS)
            elif self._wanted is None:
                self._client.wait_for_workers(1, timeout=_SECONDS)
        except (OSError, TimeoutError) as error:
            self._close()
            what = "has no worker" if isinstance(error, TimeoutError) else "is no Dask scheduler"
            hint = "start workers; or --workers N, where the cluster starts them when there is work"
            raise UsageError(f"--engine {self.address} {what}: {str(error)[:200]}", hint=hint) from None
        known = self._client.nthreads()
        self._workers = self._wanted or len(known)
        self._check_python()

    def _check_python(self) -> None:
        """Functions go from one Python to another of the same minor version only."""
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        infos = self._client.get_versions(check=False)
        for where, info in {"the scheduler": infos["scheduler"], **infos["workers"]}.items():
            python = ".".join(str(info["host"]["python"]).split(".")[:2])
            if python != here:
                self._close()
                raise UsageError(
                    f"--engine {self.address}: {where} runs Python {python}, this machine {here}",
                    hint="use the same minor version on all machines",
                )

    def _close(self) -> None:
        client, cluster, self._client, self._cluster = self._client, self._cluster, None, None
        with suppress(Exception):
            if client is not None:
                client.close(timeout=_SOON)
        with suppress(Exception):
            if cluster is not None:
                cluster.close(timeout=_SOON)
        self._log.disabled = False


def _is_lost(error: BaseException) -> bool:
    """Whether an error says that the scheduler cannot be reached any more."""
    from distributed.comm import CommClosedError

    return isinstance(error, (asyncio.CancelledError, futures.CancelledError, CommClosedError))


def _first_done(client: Any, running: set[Any]) -> tuple[set[Any], set[Any]]:
    from distributed import wait

    with client.as_current():
        done, others = wait(running, return_when="FIRST_COMPLETED")
    return done, others


def _call(content: bytes) -> None:
    function, *given = pickle.loads(content)
    function(*given)


def _local_cluster(workers: int) -> Any:
    """A scheduler in this process, and workers that end with it. They are interpreters of their own.

    So a program of a user needs no `if __name__ == "__main__"`. Nothing of it listens but on loopback.
    """
    from distributed import Scheduler
    from distributed.deploy.spec import SpecCluster

    from convoscope.scoring.engines.dask_process import WorkerProcess

    options = {"host": "127.0.0.1", "dashboard": False}
    quiet = {"nthreads": 1, "memory_limit": 0, "silence_logs": 50}
    worker = {"cls": WorkerProcess, "options": {"worker_kwargs": {**options, **quiet}}}
    scheduler = {"cls": Scheduler, "options": {**options, "port": 0, "dashboard_address": "127.0.0.1:0"}}
    return SpecCluster(workers=dict.fromkeys(range(workers), worker), scheduler=scheduler, silence_logs=50)


@contextmanager
def _counted(client: Any, counter: SharedCounter, name: str) -> Iterator[Callable[[Any], Ask] | None]:
    """While partitions are scored, the scheduler counts what judges spend, for all workers."""
    if not counter.is_needed:
        yield None
        return
    handler = name.replace("-", "_")
    client.register_plugin(_counting_plugin(handler, counter.limits, client.id), name=name)
    try:
        yield partial(_asking, handler)
    finally:
        ask = getattr(client.scheduler, handler)
        with suppress(Exception):
            counter.keep(*client.sync(ask, what="spent", dollars=0.0))
            client.sync(ask, what="close", dollars=0.0)
            client.unregister_scheduler_plugin(name)
        counter.close()


def _asking(handler: str, connection: Any) -> Ask:
    """On a worker: asks the scheduler. Waits in the thread that asks; the worker's own loop sends."""
    from distributed import get_worker

    del connection
    worker = get_worker()

    def ask(what: str, dollars: float) -> Any:
        asked = getattr(worker.scheduler, handler)(what=what, dollars=dollars)
        return asyncio.run_coroutine_threadsafe(asked, worker.loop.asyncio_loop).result(_SECONDS)

    return ask


def _counting_plugin(handler: str, limits: tuple[Any, ...], owner: str) -> Any:
    """A plugin of the scheduler, which is sent by value: the scheduler needs no Convoscope."""
    from distributed import SchedulerPlugin

    counter = counter_class()

    class Counting(SchedulerPlugin):  # type: ignore[misc]
        async def start(self, scheduler: Any) -> None:
            self.handlers, counting = scheduler.handlers, counter(*limits)

            async def ask(what: str, dollars: float) -> Any:
                if what == "close":
                    self.handlers.pop(handler)
                    return None
                return counting.ask(what, dollars)

            self.handlers[handler] = ask

        def remove_client(self, scheduler: Any, client: str) -> None:
            del scheduler
            if client == owner:  # it died, and closed nothing
                self.handlers.pop(handler, None)

    return Counting()
