"""A job: which inputs, which metrics, with what. Planned once, then executed by an engine, part by part."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convoscope.annotate.annotator import Annotator, annotator_named
from convoscope.conversation import Flow
from convoscope.errors import UsageError
from convoscope.ingest.companions.dialogue_files import VenueTable
from convoscope.ingest.discover import Input, find_inputs
from convoscope.ingest.read import PathLike
from convoscope.ingest.report import ReadReport
from convoscope.ingest.settings import DEFAULT_SETTINGS, ReadSettings
from convoscope.ingest.split import PART_BYTES, Partition, cut
from convoscope.metrics.declaration import Declaration, Metric
from convoscope.metrics.needs import VENUES_TYPE
from convoscope.metrics.registry import Declared, registered
from convoscope.resources.registry import Resource, by_type, given
from convoscope.scores.side_tables import SideTable
from convoscope.scoring.check_declarations import check_declarations
from convoscope.scoring.engines.engine import Engine
from convoscope.scoring.labels import LabelRule
from convoscope.scoring.partition import PartDone, Writer
from convoscope.scoring.partition_task import PartitionTask
from convoscope.scoring.session import DEFAULT_CONCURRENCY, Session
from convoscope.scoring.venue_resource import venue_resource
from convoscope.user_code import names


class Chosen(NamedTuple):
    """The metrics that are asked for, and who gives what they ask for."""

    metrics: tuple[Declared, ...]
    resources: dict[str, Resource]
    """By the whole names of the types."""
    tables: tuple[SideTable, ...]
    """What families keep beside the scores."""
    problems: tuple[str, ...]
    """Packages whose metrics could not be loaded."""

    def resources_with(self, venues: Sequence[VenueTable]) -> dict[str, Resource]:
        """The resources, with a database of the venues that lie beside the logs, where it is asked for."""
        asked = any(VENUES_TYPE in one.resources.values() for one in self.metrics if isinstance(one, Metric))
        if not venues or not asked or VENUES_TYPE in self.resources:
            return self.resources
        return {**self.resources, VENUES_TYPE: venue_resource(venues)}


def choose(
    metrics: str | Declared | Iterable[str | Declared] | None,
    metrics_from: Iterable[PathLike] = (),
    resources: Iterable[Any] = (),
) -> Chosen:
    """The metrics that are meant, checked, and the resources for them: those of the user's code, and those given."""
    registry = registered(metrics_from)
    chosen = registry.to_score(_named(metrics))
    if not chosen:
        raise UsageError("no metric to score with")
    check_declarations(chosen)
    wanted = {name for one in chosen if isinstance(one, Metric) for name in one.resources.values()}
    handed_in = (*given(resources), *registry.resources)
    metrics_there = [one for one in registry.declared.values() if isinstance(one, Metric)] if handed_in else []
    known = {name for one in metrics_there for name in one.resources.values()}
    return Chosen(
        chosen,
        by_type(handed_in, wanted, known),
        tuple(registry.tables.values()),
        registry.problems,
    )


def _named(metrics: str | Declared | Iterable[str | Declared] | None) -> Iterable[str | Declared] | None:
    """Metrics as they were given, as a list; None for all."""
    if isinstance(metrics, str):
        return [name.strip() for name in metrics.split(",") if name.strip()]
    return [metrics] if isinstance(metrics, Declaration) else metrics


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be scored, and with what."""

    paths: Sequence[PathLike]
    inputs: tuple[Input, ...]
    report: ReadReport
    """What was seen on the way to the inputs; it grows while they are cut."""
    definitions: tuple[Flow, ...]
    metrics: tuple[Declared, ...]
    resources: dict[str, Resource]
    tables: tuple[SideTable, ...]
    session: Session
    """What this process scores with. It is closed by whoever planned the job."""
    settings: ReadSettings
    format: str | None
    limit: int | None
    part_bytes: int
    max_concurrency: int
    metrics_from: tuple[str, ...]
    readers_from: tuple[str, ...]
    bytes_total: int
    annotator: Annotator | None = None

    def parts(
        self,
        engine: Engine,
        writer: Writer,
        scratch: Path,
        done: Mapping[int, PartDone],
        label: LabelRule | None = None,
    ) -> Generator[PartDone, None, None]:
        """The parts that are not done, as they come. Whoever takes them adds them to `done`.

        With a limit, no more are begun when those that are done from the first on have enough conversations.
        """

        def waiting() -> Iterator[Partition]:
            for partition in cut(self.inputs, self.report, scratch, self.part_bytes):
                if self.limit is not None and _first_conversations(done) >= self.limit:
                    return
                if partition.number not in done:
                    yield partition

        work = PartitionTask(
            metrics=self.metrics,
            writer=writer,
            settings=self.settings,
            flows=self.definitions,
            limit=self.limit,
            label=label,
            annotate="" if self.annotator is None else self.annotator.name,
            resources=self.resources,
            max_concurrency=self._concurrency_each(engine),
            metrics_from=self.metrics_from,
            readers_from=self.readers_from,
        )
        self.session.max_concurrency = work.max_concurrency
        work.use(self.session)
        yield from engine.run(work, waiting())

    def _concurrency_each(self, engine: Engine) -> int:
        """How many questions each worker may have in flight; of a small input, not all workers get a part."""
        parts = -(-self.bytes_total // self.part_bytes)
        return max(1, self.max_concurrency // max(1, min(engine.workers, parts)))


def plan_job(
    paths: Sequence[PathLike],
    chosen: Chosen,
    *,
    metrics_from: Iterable[PathLike] = (),
    readers_from: Iterable[PathLike] = (),
    limit: int | None = None,
    format: str | None = None,
    settings: ReadSettings = DEFAULT_SETTINGS,
    flows: Iterable[PathLike | Flow] = (),
    part_bytes: int = PART_BYTES,
    max_concurrency: int = DEFAULT_CONCURRENCY,
    annotate: str | None = None,
) -> Job:
    """Find the inputs; nothing is read or asked yet."""
    if limit is not None and limit < 1:
        raise UsageError(f"--limit must be at least 1, not {limit}")
    if max_concurrency < 1:
        raise UsageError(f"--at-once must be at least 1, not {max_concurrency}")
    annotator = None if annotate is None else annotator_named(annotate)
    inputs = find_inputs(paths, format=format, flows=flows, readers_from=readers_from)
    inputs.report.warnings.extend(chosen.problems)
    resources = chosen.resources_with(inputs.venues)
    return Job(
        paths=paths,
        inputs=inputs.inputs,
        report=inputs.report,
        definitions=inputs.flows,
        metrics=chosen.metrics,
        resources=resources,
        tables=chosen.tables,
        session=Session(resources),
        settings=settings,
        format=format,
        limit=limit,
        part_bytes=part_bytes,
        max_concurrency=max_concurrency,
        metrics_from=_anywhere(metrics_from),
        readers_from=_anywhere(readers_from),
        bytes_total=sum(_size(Path(one.path)) for one in inputs.inputs),
        annotator=annotator,
    )


def _anywhere(sources: Iterable[PathLike]) -> tuple[str, ...]:
    """Files and modules by names that hold wherever a worker runs."""
    return tuple(str(Path(one).resolve()) if Path(one).is_file() else one for one in names(sources))


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(place.stat().st_size for place in path.rglob("*") if place.is_file())
    return path.stat().st_size


def _first_conversations(done: Mapping[int, PartDone]) -> int:
    """Conversations of the parts from the first on without a gap."""
    total, number = 0, 0
    while number in done:
        total += done[number].conversations
        number += 1
    return total


__all__ = ["Chosen", "Job", "choose", "plan_job"]
