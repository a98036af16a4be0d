"""What is done to each partition, in a form that can be sent to another process or another machine."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from convoscope.annotate.annotator import annotator_named
from convoscope.conversation import Flow
from convoscope.ingest.reader import registered as registered_readers
from convoscope.ingest.settings import DEFAULT_SETTINGS, ReadSettings
from convoscope.ingest.split import Partition
from convoscope.metrics.registry import Declared
from convoscope.metrics.registry import registered as registered_metrics
from convoscope.resources.registry import Resource
from convoscope.scoring.labels import LabelRule
from convoscope.scoring.partition import PartDone, Writer, score_partition
from convoscope.scoring.session import DEFAULT_CONCURRENCY, Session


class PartitionTask(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Call it with a partition to get the part. Whoever receives it first loads the user's own code."""

    metrics: Sequence[Declared]
    writer: Writer
    settings: ReadSettings = DEFAULT_SETTINGS
    flows: Sequence[Flow] = ()
    limit: int | None = None
    label: LabelRule | None = None
    annotate: str = ""
    """The name of the annotator."""
    resources: Mapping[str, Resource] = {}
    """Who gives each type that metrics ask for."""
    max_concurrency: int = DEFAULT_CONCURRENCY
    """How many questions one process may have in flight."""
    metrics_from: tuple[str, ...] = ()
    readers_from: tuple[str, ...] = ()
    """Files by their absolute paths, and modules."""

    def __call__(self, partition: Partition) -> PartDone:
        return score_partition(
            partition,
            self.metrics,
            self.writer,
            settings=self.settings,
            flows=self.flows,
            session=self.session,
            limit=self.limit,
            label=self.label,
            annotator=annotator_named(self.annotate) if self.annotate else None,
        )

    @property
    def session(self) -> Session:
        """What this process scores with. One that was inherited belongs to another process."""
        held: Session | None = self.__dict__.get("_session")
        if held is None or held.process != os.getpid():
            held = self.__dict__["_session"] = Session(self.resources, self.max_concurrency)
        return held

    def use(self, session: Session) -> None:
        """Score with what this process has already."""
        self.__dict__["_session"] = session

    def __reduce__(self) -> tuple[Callable[..., PartitionTask], tuple[Any, ...]]:
        # The metrics are looked up by name, so that what declares them must be loaded before they are.
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return (_restored, (self.metrics_from, self.readers_from, pickle.dumps(fields)))


def _restored(metrics_from: Sequence[str], readers_from: Sequence[str], fields: bytes) -> PartitionTask:
    registered_metrics(metrics_from)
    registered_readers(readers_from)
    return PartitionTask(**pickle.loads(fields))


__all__ = ["PartitionTask"]
