"""The engine of Ray: partitions are tasks, on a cluster or on one that is started here."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from secrets import token_hex
from typing import Any

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
    sent_work,
)
from convoscope.scoring.partition import PartDone

_SECONDS = 30
_QUIET = {
    # Nothing is reported to the makers of Ray, and a cluster that is started here listens on loopback only.
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
_HERE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Ray's own switch for one machine: its processes then listen on 127.0.0.1 alone."""
_OBJECTS = 80_000_000
"""Bytes for what tasks exchange: parts are files, and what comes back is small."""


@cache
def _token() -> str:
    """What the processes of a cluster on this machine know each other by; Ray would leave one in ~/.ray."""
    return token_hex(32)


class RayEngine:
    """Works on a Ray cluster. A partition whose worker is lost is given to another one."""

    def __init__(self, address: Address, workers: int | None) -> None:
        self.address = address
        self._wanted = workers
        self._workers = 0
        self._is_own = False

    @property
    def workers(self) -> int:
        """How many partitions are worked on at the same time: as many as there are CPUs, unless the user said."""
        if not self._workers:
            self._connect()
        return self._workers

    def run(self, work: Callable[[Partition], PartDone], partitions: Iterable[Partition]) -> Iterator[PartDone]:
        """The parts as they come."""
        workers = self.workers
        import ray

        running: set[Any] = set()
        call = ray.remote(num_cpus=1, max_retries=3)(entry_point())
        sent = sent_work(work)  # type: ignore[arg-type]
        try:
            with _counted(counter_of(sent, work)) as (ask, actor):  # type: ignore[arg-type]

                def submit(partition: Partition) -> Any:
                    return call.remote(pickle.dumps((do_partition, sent, ask, partition)), actor)

                most = most_partitions(work, 2 * workers)
                for reference in in_flight(partitions, most, submit, _first_done, running):
                    yield self._result(reference)
        except BaseException:
            with suppress(Exception):
                for reference in running:
                    ray.cancel(reference, force=True)
            raise
        finally:
            if self._is_own:
                with suppress(Exception):
                    ray.shutdown()

    def _result(self, reference: Any) -> PartDone:
        import ray
        from ray import exceptions

        try:
            done: PartDone = pickle.loads(ray.get(reference))
        except exceptions.RayTaskError as error:
            cause = getattr(error, "cause", None) or error
            raise explained(cause, str(self.address)) from None
        except (exceptions.RayError, ConnectionError) as error:
            raise died(str(self.address), f"a partition was lost: {type(error).__name__}") from None
        return done

    def _connect(self) -> None:
        """Connect to the cluster, or start one on this machine; a program that is connected already stays so."""
        self.address.check()
        os.environ.update(_QUIET if self.address.host else {**_QUIET, **_HERE})
        if not self.address.host and "RAY_AUTH_TOKEN_PATH" not in os.environ:
            os.environ.setdefault("RAY_AUTH_TOKEN", _token())
        import ray

        quiet: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
        if not ray.is_initialized():
            self._is_own = True
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    if self.address.host:
                        ray.init(address=str(self.address), **quiet)
                    else:
                        options = {"include_dashboard": False, "object_store_memory": _OBJECTS}
                        ray.init(address="local", num_cpus=self._wanted or cores(), **options, **quiet)
            except (ConnectionError, RuntimeError, OSError) as error:
                raise UsageError(
                    f"--engine {self.address} cannot be used: {str(error)[:300]}",
                    hint="is it the port of the Ray Client server? With tokens, RAY_AUTH_MODE=token is needed here",
                ) from None
        self._workers = self._wanted or int(ray.cluster_resources().get("CPU", 0))
        if not self._workers:
            raise UsageError(
                f"--engine {self.address} has no CPU yet",
                hint="--workers N, where the cluster starts machines when there is work",
            )


def _first_done(running: set[Any]) -> tuple[list[Any], list[Any]]:
    import ray

    done, others = ray.wait(list(running), num_returns=1)
    return done, others


@contextmanager
def _counted(counter: SharedCounter) -> Iterator[tuple[Callable[[Any], Ask] | None, Any]]:
    """While partitions are scored, an actor counts what judges spend, for all workers."""
    if not counter.is_needed:
        yield None, None
        return
    import ray

    actor = ray.remote(num_cpus=0)(counter_class()).remote(*counter.limits)
    try:
        yield _asking, actor
    finally:
        with suppress(Exception):
            counter.keep(*ray.get(actor.ask.remote("spent", 0.0), timeout=_SECONDS))
            ray.kill(actor)
        counter.close()


def _asking(actor: Any) -> Ask:
    """On a worker: asks the actor."""
    return partial(_asked, actor)


def _asked(actor: Any, what: str, dollars: float) -> Any:
    import ray

    return ray.get(actor.ask.remote(what, dollars), timeout=_SECONDS)
