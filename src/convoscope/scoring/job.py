"""A job: which inputs, which metrics, with what. Planned once, then executed by an engine, part by part."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from convoscope.annotate.annotator import ASKS_JUDGE, Annotator
from convoscope.audio import is_installed
from convoscope.audio.resource import OpenedRecordings
from convoscope.errors import DeclarationError, UsageError
from convoscope.ingest.companions.dialogue_files import VenueTable, read_venues
from convoscope.ingest.discover import FoundInput, Input, changed_at, find_inputs, size_of
from convoscope.ingest.known_objects import KnownObject
from convoscope.ingest.known_pieces import KnownParts, Surroundings, hash_of, hash_of_file
from convoscope.ingest.looks import Looks
from convoscope.ingest.read import MADE_IN_PYTHON, PathLike, from_objects
from convoscope.ingest.report import FileRead
from convoscope.ingest.split import Partition, contested_recordings, cut
from convoscope.metrics.declaration import Declaration, Derived, Metric
from convoscope.metrics.needs import BY_DATA, NAMED, VENUES_TYPE, WHOLE_NAMES, GivenNames
from convoscope.metrics.registry import Declared, is_shared, registered
from convoscope.resources.registry import JUDGE, RECOGNISER, RECORDING, Resource, by_type, given
from convoscope.scores.side_tables import SideTable
from convoscope.scoring.annotators import annotator_for
from convoscope.scoring.engines import Engine
from convoscope.scoring.partition import InputRule, PartDone, PartitionTask, Writer
from convoscope.scoring.session import HeldConversations, Session
from convoscope.scoring.settings import ScoreSettings, joint_metrics
from convoscope.storage import as_path

if TYPE_CHECKING:
    from convoscope.metrics.dialogue.venues import VenueDatabase

BEING_WRITTEN = "is still being written"
"""Why a file is not read yet."""


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
    *,
    use_audio: bool = True,
    fetch_audio: bool = False,
) -> Chosen:
    """The metrics that are meant, checked, and the resources for them: those of the user's code, and those given.

    `annotate` is the annotator of the run: one of them asks a judge. Recordings are opened where a metric asks for
    them, unless `use_audio` is false; `fetch_audio` allows addresses of other machines.
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
    if any(RECOGNISER in one.types for one in handed_in):  # it writes down recordings, whatever is measured
        wanted |= {RECOGNISER, RECORDING}
    is_any = handed_in or registry.resources
    others = [one for one in registry.declared.values() if isinstance(one, Metric)] if is_any else []
    known = {name for one in others for name in one.resources.values()}
    provided = {**by_type(handed_in, wanted, registry.resources, known), **_given_names(metrics, chosen)}
    if use_audio and RECORDING in wanted and RECORDING not in provided and is_installed():
        provided[RECORDING] = Resource((RECORDING,), OpenedRecordings(fetch=fetch_audio))
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


class Job(msgspec.Struct, frozen=True, kw_only=True, dict=True):
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
        known: KnownParts | None = None,
        looks: Looks | None = None,
    ) -> Generator[PartDone, None, None]:
        """The parts that are not done, as they come. The caller adds them to `done`.

        Of an input that grew, `known` are the parts that are there; it learns the order of all parts. `looks` keeps
        what was seen at the first look.

        With a limit, no more are begun when those that are done from the first on have enough conversations.
        """
        settings = self.settings

        def waiting() -> Iterator[Partition]:
            inputs, report, size = self.input.inputs, self.input.report, settings.part_bytes
            for partition in cut(inputs, report, scratch, size, known, looks, self.contested):
                if known is not None:
                    known.order.append(partition.number)
                if settings.limit is not None and _first_conversations(done) >= settings.limit:
                    return
                if partition.number not in done and not partition.is_known:
                    yield partition

        # Of a small input, not all workers get a part.
        workers = max(1, min(engine.workers, -(-self.bytes_total // settings.part_bytes)))
        asks = JUDGE in self.session.resources or any(
            isinstance(one, Metric) and one.waits for one in self.chosen.metrics
        )
        if asks:
            workers = min(workers, settings.max_concurrency)
        in_flight = max(1, settings.max_concurrency // workers)
        work = PartitionTask(
            metrics=self.chosen.metrics,
            writer=writer,
            settings=settings.portable(in_flight),
            flows=self.input.flows,
            rules=rules,
            resources=self.session.resources,
            surroundings=self.surroundings(rules),
            most_partitions=workers if asks else None,
            seen=getattr(settings.progress, "seen", None),
        )
        self.session.max_concurrency = in_flight
        work.use(self.session)
        yield from engine.run(work, waiting())

    @cached_property
    def contested(self) -> frozenset[str]:
        """What does not say whose a recording is."""
        return contested_recordings(self.input.inputs, self.settings.reading.audio, self.settings.part_bytes)

    def surroundings(self, rules: Sequence[InputRule]) -> Surroundings:
        """What conversations depend on beside their own logs: rules, flow definitions, tables of venues, recordings."""
        venues = [(one.domain, hash_of_file(as_path(one.path))) for one in self.input.venues]
        known = (rules, venues, self.input.flows)
        common = hash_of(known) if any(known) else ""
        common = hash_of((common, sorted(self.contested))) if self.contested else common
        return Surroundings(common, self.settings.reading.audio, by_content=RECORDING in self.session.resources)


def plan_job(
    source: Sequence[Any],
    chosen: Chosen,
    settings: ScoreSettings,
    second_look: Resource | None = None,
    known: Mapping[str, KnownObject] = {},
) -> Job:
    """Find the inputs, in paths or in objects made in Python; nothing is read or asked yet.

    `known` are logs in a store that an earlier run read.
    """
    annotator = None if settings.annotate is None else annotator_for(settings.annotate, chosen.resources)
    are_paths = bool(source) and isinstance(source[0], str | os.PathLike)
    find = partial(find_inputs, known=known) if are_paths else from_objects
    discovered = find(source, format=settings.format, flows=settings.flows, readers_from=settings.readers_from)
    discovered.report.warnings.extend(chosen.problems)
    if settings.ended_after:
        discovered = discovered._replace(inputs=tuple(_ended_inputs(discovered, settings.ended_after)))
    resources = chosen.resources_with(discovered.venues)
    if RECOGNISER in resources:
        from convoscope.audio.recognise import kept

        resources = {**resources, RECOGNISER: kept(resources[RECOGNISER], use_cache=settings.judge_cache)}
    session = Session(
        resources,
        repeats=settings.repeats,
        panel=settings.panel_rule,
        second_look=second_look,
        joint_metrics=joint_metrics(chosen.metrics, settings),
    )
    session.held = HeldConversations()
    return Job(
        settings=settings,
        name=as_path(source[0]).resolve().name if are_paths else MADE_IN_PYTHON,
        input=discovered,
        chosen=chosen,
        session=session,
        bytes_total=sum(map(size_of, discovered.inputs)),
        annotator=annotator,
    )


def _ended_inputs(discovered: FoundInput, seconds: float) -> Iterator[Input]:
    """The inputs without those that are one conversation, or one document, and were written to a moment ago."""
    for item in discovered.inputs:
        is_whole = item.grouping in ("file", "folder") or item.container == "document"
        if item.data is None and is_whole and time() - changed_at(item) < seconds:
            discovered.report.files[item.name] = FileRead(item.reader, item.why, skipped=BEING_WRITTEN)
        else:
            yield item


def _first_conversations(done: Mapping[int, PartDone]) -> int:
    """Conversations of the parts from the first on without a gap."""
    total, number = 0, 0
    while number in done:
        total += done[number].conversations
        number += 1
    return total
