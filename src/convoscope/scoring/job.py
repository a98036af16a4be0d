"""A job: which inputs, which metrics, with what. Planned once, then executed by an engine, part by part."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from convoscope.annotate.annotator import ASKS_JUDGE, Annotator
from convoscope.errors import DeclarationError, UsageError
from convoscope.ingest.companions.dialogue_files import VenueTable, read_venues
from convoscope.ingest.discover import FoundInput, find_inputs, size_of
from convoscope.ingest.read import MADE_IN_PYTHON, PathLike, from_objects
from convoscope.ingest.split import Partition, cut
from convoscope.metrics.declaration import Declaration, Derived, Metric
from convoscope.metrics.needs import BY_DATA, NAMED, VENUES_TYPE, WHOLE_NAMES, GivenNames
from convoscope.metrics.registry import Declared, is_shared, registered
from convoscope.resources.registry import JUDGE, Resource, by_type, given
from convoscope.scores.side_tables import SideTable
from convoscope.scoring.annotators import annotator_for
from convoscope.scoring.engines import Engine
from convoscope.scoring.partition import InputRule, PartDone, PartitionTask, Writer
from convoscope.scoring.session import HeldConversations, Session
from convoscope.scoring.settings import ScoreSettings, joint_metrics

if TYPE_CHECKING:
    from convoscope.metrics.dialogue.venues import VenueDatabase


class Chosen(NamedTuple):
    """The metrics that are asked for, and what gives the resources that they ask for."""

    metrics: tuple[Declared, ...]
    resources: dict[str, Resource]
    """By the whole names of the types."""
    tables: tuple[SideTable, ...]
    """The side tables of all families."""
    problems: tuple[str, ...]
    """Packages whose metrics could not be loaded."""

    def resources_with(self, venues: Sequence[VenueTable]) -> dict[str, Resource]:
        """The resources, with a database of the venues among the logs, where a metric asks for one."""
        asked = any(VENUES_TYPE in one.resources.values() for one in self.metrics if isinstance(one, Metric))
        if not venues or not asked or VENUES_TYPE in self.resources:
            return self.resources
        return {**self.resources, VENUES_TYPE: Resource((VENUES_TYPE,), _VenueFiles(venues), is_managed=False)}


class _VenueFiles:
    """Reads the tables of venues, once in each process."""

    def __init__(self, tables: Sequence[VenueTable]) -> None:
        self._tables = tuple(tables)
        self.__qualname__ = type(self).__qualname__

    def __call__(self) -> VenueDatabase:
        from convoscope.metrics.dialogue.venues import VenueDatabase

        return VenueDatabase(read_venues(self._tables))


def choose(
    metrics: str | Declared | Iterable[str | Declared] | None,
    metrics_from: Iterable[PathLike] = (),
    resources: Iterable[Any] = (),
    annotate: str | None = None,
) -> Chosen:
    """The metrics that are meant, checked, and the resources for them: those of the user's code, and those given.

    `annotate` is the annotator of the run: one of them asks a judge.
    """
    registry = registered(metrics_from)
    if isinstance(metrics, str):
        metrics = [name.strip() for name in metrics.split(",") if name.strip()]
    chosen = registry.to_score([metrics] if isinstance(metrics, Declaration) else metrics)
    if not chosen:
        raise UsageError("no metric to score with")
    check_declarations(chosen)
    wanted = {name for one in chosen if isinstance(one, Metric) for name in one.resources.values()}
    if annotate == ASKS_JUDGE:
        wanted.add(JUDGE)
    handed_in = given(resources)
    is_any = handed_in or registry.resources
    others = [one for one in registry.declared.values() if isinstance(one, Metric)] if is_any else []
    known = {name for one in others for name in one.resources.values()}
    provided = {**by_type(handed_in, wanted, registry.resources, known), **_given_names(metrics, chosen)}
    return Chosen(chosen, provided, tuple(registry.tables.values()), registry.problems)


def _given_names(
    metrics: Declared | Iterable[str | Declared] | None, chosen: Sequence[Declared]
) -> dict[str, Resource]:
    """What it means that metrics were named, for those of the chosen ones to which it means something."""
    asked = {need.resource for one in chosen if isinstance(one, Metric) for need in one.needs}
    names = [metrics] if isinstance(metrics, Declaration) else list(metrics or ())
    by_data = any(map(is_shared, names)) and "judged.faithfulness" not in names
    held = [NAMED] * (metrics is not None and NAMED in asked)
    held += [BY_DATA if by_data else WHOLE_NAMES] * (WHOLE_NAMES in asked)
    return {name: Resource((name,), GivenNames) for name in held}


def check_declarations(metrics: Sequence[Declared]) -> None:
    """Refuse declarations that cannot work, before anything runs: a derived figure must not depend on itself."""
    by_key = {declared.key: declared for declared in metrics}
    derived = [declared for declared in metrics if isinstance(declared, Derived)]
    for declared in metrics:
        if isinstance(declared, Metric):
            _ = declared.view  # raises for a type that is not a view
    for figure in derived:
        if missing := set(figure.inputs) - by_key.keys():
            names = ", ".join(sorted(missing))
            raise DeclarationError(f"{figure.key} needs unknown metrics: {names}", hint="write whole names")
    try:
        TopologicalSorter({figure.key: figure.inputs for figure in derived}).prepare()
    except CycleError as error:
        names = ", ".join(sorted(set(error.args[1])))
        raise DeclarationError(f"{names} depend on each other", hint="break the cycle") from None
    for figure in derived:
        for name in figure.inputs if figure.over == "conversation" else ():
            needed = by_key[name]
            if isinstance(needed, Derived) and needed.over == "group":
                raise DeclarationError(
                    f"{figure.key} is of one conversation, but needs {name}, which is of a group",
                    hint='derive it over="group"',
                )


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be scored, and with what."""

    settings: ScoreSettings
    name: str
    """Of the first path, for a run that is given no other."""
    input: FoundInput
    """The inputs, the flow definitions among them, and the read report, which grows while the inputs are cut."""
    chosen: Chosen
    session: Session
    """What this process scores with. It is closed by the caller of `plan_job`."""
    bytes_total: int
    annotator: Annotator | None

    def parts(
        self,
        engine: Engine,
        writer: Writer,
        scratch: Path,
        done: Mapping[int, PartDone],
        rules: Sequence[InputRule] = (),
    ) -> Generator[PartDone, None, None]:
        """The parts that are not done, as they come. The caller adds them to `done`.

        With a limit, no more are begun when those that are done from the first on have enough conversations.
        """
        settings = self.settings

        def waiting() -> Iterator[Partition]:
            for partition in cut(self.input.inputs, self.input.report, scratch, settings.part_bytes):
                if settings.limit is not None and _first_conversations(done) >= settings.limit:
                    return
                if partition.number not in done:
                    yield partition

        # Of a small input, not all workers get a part.
        workers = min(engine.workers, -(-self.bytes_total // settings.part_bytes))
        in_flight = max(1, settings.max_concurrency // max(1, workers))
        work = PartitionTask(
            metrics=self.chosen.metrics,
            writer=writer,
            settings=settings.portable(in_flight),
            flows=self.input.flows,
            rules=rules,
            resources=self.session.resources,
            seen=getattr(settings.progress, "seen", None),
        )
        self.session.max_concurrency = in_flight
        work.use(self.session)
        yield from engine.run(work, waiting())


def plan_job(
    source: Sequence[Any], chosen: Chosen, settings: ScoreSettings, second_look: Resource | None = None
) -> Job:
    """Find the inputs, in paths or in objects made in Python; nothing is read or asked yet."""
    annotator = None if settings.annotate is None else annotator_for(settings.annotate, chosen.resources)
    are_paths = bool(source) and isinstance(source[0], str | os.PathLike)
    find = find_inputs if are_paths else from_objects
    discovered = find(source, format=settings.format, flows=settings.flows, readers_from=settings.readers_from)
    discovered.report.warnings.extend(chosen.problems)
    session = Session(
        chosen.resources_with(discovered.venues),
        repeats=settings.repeats,
        panel=settings.panel_rule,
        second_look=second_look,
        joint_metrics=joint_metrics(chosen.metrics, settings),
    )
    session.held = HeldConversations()
    return Job(
        settings=settings,
        name=Path(source[0]).resolve().name if are_paths else MADE_IN_PYTHON,
        input=discovered,
        chosen=chosen,
        session=session,
        bytes_total=sum(map(size_of, discovered.inputs)),
        annotator=annotator,
    )


def _first_conversations(done: Mapping[int, PartDone]) -> int:
    """Conversations of the parts from the first on without a gap."""
    total, number = 0, 0
    while number in done:
        total += done[number].conversations
        number += 1
    return total
