"""What the engines of clusters share: how work is sent, and what a worker does with it."""

from __future__ import annotations

import os
import pickle
import platform
import sys
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from convoscope import __version__
from convoscope.errors import ConvoscopeError, InputError, UsageError
from convoscope.ingest.split import Partition
from convoscope.judging.limits import Budget, SharedBudget, share_budget
from convoscope.judging.named import ledger_of
from convoscope.scoring.engines.engine import WorkerDied
from convoscope.scoring.partition import PartDone, PartitionTask
from convoscope.storage import is_remote

Ask = Callable[[str, float], Any]
"""Asks the counter of the run: `reserve` or `charge`, and how many dollars."""


class SentWork(msgspec.Struct, frozen=True):
    """The work as bytes, and what a worker must see as the sender does."""

    key: str
    work: bytes
    sees: Mapping[str, str]
    ledger: str = ""
    """The name of the budget that all workers share; "" for none."""


def sent_work(work: PartitionTask) -> SentWork:
    """The work, ready to be sent. Refuses what cannot be."""
    try:
        content = pickle.dumps(work)
    except Exception as error:  # whatever an object of the user says to being pickled
        raise UsageError(
            f"a metric, reader or resource cannot be sent to workers: {error}",
            hint="put it at the top level of a file, and name that with metrics_from or readers_from",
        ) from None
    return SentWork(sha256(content).hexdigest(), content, work.sees(), ledger_of(work.resources.values()))


def entry_point() -> Callable[..., bytes]:
    """What a cluster calls. It goes there by value: a worker that cannot import Convoscope can say so."""

    def convoscope_partition(content: bytes, connection: Any = None) -> bytes:
        import pickle

        do, *given = pickle.loads(content)
        return pickle.dumps(do(*given, connection))

    return convoscope_partition


def do_partition(
    sent: SentWork, ask: Callable[[Any], Ask] | None, partition: Partition, connection: Any = None
) -> PartDone:
    """On a worker: one partition. One at a time in a process, whatever threads it has: more would not be faster."""
    with _busy:
        if ask is not None and sent.ledger:
            share_budget(sent.ledger, SharedBudget(ask(connection)))
        work = _loaded(sent)
        _check_inputs(partition)
        return work(partition)


def forget_work(key: str) -> None:
    """On a worker: close what was made for a run that is over."""
    with _busy:
        if work := _works.pop(key, None):
            work.session.close()


_FEW = 20
_busy = Lock()
_works: dict[str, PartitionTask] = {}


def _loaded(sent: SentWork) -> PartitionTask:
    """The work, loaded and compared once in each process, before it does anything."""
    if sent.key not in _works:
        try:
            work: PartitionTask = pickle.loads(sent.work)
            own = work.sees()
        except ConvoscopeError as error:
            error.message = f"a worker on {_host()}: {error.message}"
            raise
        except Exception as error:  # whatever loading the code of a user raises
            raise UsageError(
                f"a worker on {_host()} cannot load the metrics, readers and resources: {error!r}",
                hint="put them into files that have the same path on all machines",
            ) from None
        other = [name for name, value in sent.sees.items() if own.get(name) != value]
        if other:
            raise UsageError(
                f"a worker on {_host()} has another state of: {', '.join(other)}",
                hint="all machines need the same Convoscope, files at the same paths, and a shared disk for the run; "
                "after an upgrade, start the workers again",
            )
        while len(_works) >= _FEW:  # their drivers died
            _works.pop(next(iter(_works))).session.close()
        _works[sent.key] = work
    return _works[sent.key]


def _check_inputs(partition: Partition) -> None:
    """Refuse a partition that this machine cannot read: its conversations would be missing from the figures."""
    items = [piece.input for piece in partition.pieces if piece.input.data is None]
    companions = (one.path for item in items for one in item.companions[:_FEW])
    for path in dict.fromkeys((*(item.path for item in items), *companions)):
        if not is_remote(path) and not os.access(path, os.R_OK):
            raise InputError(
                f"a worker on {_host()} cannot open it",
                file=path,
                hint="logs and run must be on a disk that all machines share, under the same path",
            )


def _host() -> str:
    return platform.node()[:60] or "another machine"


def explained(error: BaseException, cluster: str) -> BaseException:
    """An error of a worker as a person should read it."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "convoscope":
        version = f"{__version__}, for Python {sys.version_info.major}.{sys.version_info.minor}"
        return UsageError(
            f"a worker of {cluster} cannot import Convoscope", hint=f"install the same version on it: {version}"
        )
    return error


def died(cluster: str, what: str) -> WorkerDied:
    """The error for a partition that ends every worker that has it, or a cluster that went away."""
    hint = "run the same command again: what is done is kept; workers may need more memory"
    return WorkerDied(f"{cluster}: {what}", hint=hint)


class SharedCounter:
    """What a run has spent over all workers. The cluster keeps it; the file of the run learns of it at the end."""

    def __init__(self, ledger: str, questions: int | None, dollars: float | None) -> None:
        self._budget = Budget(Path(ledger), questions, dollars) if ledger else None
        spent = self._budget.spent() if self._budget is not None else (0, 0.0)
        self.limits = (questions, dollars, *spent)

    @property
    def is_needed(self) -> bool:
        return self._budget is not None

    def keep(self, questions: int, dollars: float) -> None:
        """What was spent when the work was over."""
        if self._budget is not None:
            self._budget.set_spent(questions, dollars)

    def close(self) -> None:
        if self._budget is not None:
            self._budget.close()


def counter_of(sent: SentWork, work: PartitionTask) -> SharedCounter:
    """The counter of what judges of a work may spend."""
    return SharedCounter(sent.ledger, work.settings.max_questions, work.settings.budget)


def counter_class() -> type[Any]:
    """The class that counts, to be sent by value: it runs where Convoscope need not be installed."""

    class Counter:
        def __init__(self, most_questions: Any, most_dollars: Any, questions: int, dollars: float) -> None:
            self.most = (most_questions, most_dollars)
            self.questions, self.dollars = questions, dollars

        def ask(self, what: str, dollars: float) -> Any:
            if what == "spent":
                return self.questions, self.dollars
            if what == "charge":
                self.dollars += dollars
                return True
            questions, most = self.most
            is_over = questions is not None and self.questions + 1 > questions
            if is_over or (most is not None and self.dollars + dollars > most + 1e-9):
                return False
            self.questions += 1
            self.dollars += dollars
            return True

    return Counter
