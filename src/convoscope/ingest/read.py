"""Read conversations from files and folders, one after the other."""

from __future__ import annotations

import os
import sys
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from convoscope.conversation import Conversation, Flow, to_json
from convoscope.errors import InputError, NothingReadable, UsageError
from convoscope.harmless import one_line
from convoscope.ingest.companions.flows import FlowDefinitions
from convoscope.ingest.companions.predictions import PredictionFiles, unused_predictions
from convoscope.ingest.companions.verdicts import Verdicts, unused_verdicts
from convoscope.ingest.discover import OBJECTS, FoundInput, Input, best_claim, chosen_readers, find_inputs
from convoscope.ingest.given_speakers import LABELS_SEEN, GivenSpeakers, unmatched_speakers
from convoscope.ingest.io.containers import SEE_FORMATS
from convoscope.ingest.io.streams import as_files
from convoscope.ingest.reader import Sample, registered
from convoscope.ingest.report import ReadReport
from convoscope.ingest.settings import DEFAULT_SETTINGS, ReadSettings, read_settings
from convoscope.ingest.split import Read, contested_recordings, cut, read_partition

PathLike = str | os.PathLike[str]
MADE_IN_PYTHON = "conversations.jsonl"
"""The name of what was made in Python, in reports and receipts."""
_SAMPLE = 100


class ReadStream:
    """Iterates over the conversations; `report` says what reading did, and grows on the way."""

    def __init__(
        self,
        paths: Sequence[PathLike],
        *,
        format: str | None = None,
        limit: int | None = None,
        settings: ReadSettings = DEFAULT_SETTINGS,
        flows: Iterable[PathLike | Flow] = (),
        readers_from: Iterable[PathLike] = (),
    ) -> None:
        files = as_files(paths)
        if files.folder is not None:
            weakref.finalize(self, files.folder.cleanup)
        self._found = find_inputs(files.paths, format=format, flows=flows, readers_from=readers_from)
        # No iterator counts further.
        self._limit = None if limit is None else min(limit, sys.maxsize)
        self._settings = settings
        self._current: Iterator[Conversation] | None = None
        self.report: ReadReport = self._found.report
        self.venues = self._found.venues

    def __iter__(self) -> Iterator[Conversation]:
        return (read.conversation for read in self.with_notes())

    def __next__(self) -> Conversation:
        if self._current is None:
            self._current = iter(self)
        return next(self._current)

    def with_notes(self) -> Iterator[Read]:
        """The conversations with what was done to read each."""
        # A second iteration has a report of its own, not the sum of both.
        self.report = msgspec.json.decode(msgspec.json.encode(self._found.report), type=ReadReport)
        predictions = {path for item in self._found.inputs for path in item.companions_of(PredictionFiles.format)}
        verdicts = {path for item in self._found.inputs for path in item.companions_of(Verdicts.format)}
        ids: list[str] = []
        for read in islice(self._all(), self._limit):
            if predictions or verdicts:
                ids.append(read.conversation.id)
            yield read
        known = ids if self._limit is None else None
        self.report.add_notes([*unused_predictions(predictions, known), *unused_verdicts(verdicts, known)])
        if not self.report.conversations:
            raise nothing_readable(self.report)
        refuse_unmatched_speakers(self._settings, self.report, self._limit)

    def _all(self) -> Iterator[Read]:
        inputs = self._found.inputs
        with tempfile.TemporaryDirectory(prefix="convoscope-") as scratch:
            contested = contested_recordings(inputs, self._settings.audio)
            for partition in cut(inputs, self.report, Path(scratch), contested=contested):
                yield from read_partition(partition, self.report, self._settings, self._found.flows)


def read(
    path: PathLike | Sequence[PathLike],
    *,
    format: str | None = None,
    limit: int | None = None,
    turns: str | None = None,
    flows: Iterable[PathLike | Flow] = (),
    readers_from: Iterable[PathLike] = (),
    tool_failed: str | Iterable[str] = (),
    speech_tools: str | Iterable[str] = (),
    session_gap: float | None = None,
    speakers: GivenSpeakers = (),
    audio: PathLike | None = None,
) -> ReadStream:
    """Read the conversations of a file, a folder, or several of them; `-` is standard input.

    The format is recognised by content unless `format` names one. `turns` is the rule that turns are cut
    by, `exchange` or `eva`. `flows` are files and folders of flow definitions, besides those
    among the logs. `readers_from` are Python files and modules whose readers are added to the
    installed ones. `tool_failed` are patterns of tool results that mean failure, `speech_tools` the tools
    through which the agent speaks, `session_gap` the hours of silence after which a session id is another
    conversation. `speakers` are the labels of who is who, where the log does not say it:
    `{"agent": "SPEAKER_01"}`. `audio` is the folder of the recordings, where they are not where the logs say.
    The result is an iterator of `Conversation`, with the read report at hand as
    `.report`.
    """
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    settings = read_settings(turns, tool_failed, speech_tools, session_gap, speakers, audio)
    return ReadStream(paths, format=format, limit=limit, settings=settings, flows=flows, readers_from=readers_from)


def refuse_unmatched_speakers(settings: ReadSettings, report: ReadReport, limit: int | None) -> None:
    """A label that no speaker has is an error; a warning where a limit may have left the speaker out."""
    if problem := unmatched_speakers(settings.speakers, report):
        if limit is None or report.conversations < limit:
            hint = "write a label as it is in the log; case does not matter"
            if LABELS_SEEN not in problem:
                hint = "a recording with a channel for each side, or a log with times, says who speaks"
            raise UsageError(problem, hint=hint)
        report.warnings.append(problem)


def from_objects(
    objects: Iterable[Conversation | Mapping[str, Any]],
    *,
    format: str | None = None,
    flows: Iterable[PathLike | Flow] = (),
    readers_from: Iterable[PathLike] = (),
) -> FoundInput:
    """What `find_inputs` gives, for objects in memory: nothing is written to a file.

    `objects` are conversations; or records of any format that can be read, as dicts, such as the events of flows or
    chats. The format of records is recognised by content unless `format` names one. Records go through the same
    reading as lines of a file: those of one conversation are joined, copies are dropped, problems are reported with
    the number of the record. The input can be cut, and its parts go to other processes, as those of files do.

    >>> found = from_objects([{"id": "a", "messages": [{"role": "user", "content": "Hi"}]}])
    >>> found.inputs[0].reader, len(found.inputs[0].data)
    ('openai-chat', 57)
    """
    things = list(objects)
    if not things:
        raise NothingReadable("there is nothing to score")
    registry = registered(readers_from)
    readers = chosen_readers(registry.by_name, format)
    report = ReadReport(warnings=list(registry.problems))
    definitions = FlowDefinitions(flows, report)
    if all(isinstance(thing, Conversation) for thing in things):
        texts = [to_json(thing) for thing in things if isinstance(thing, Conversation)]
        item = Input(MADE_IN_PYTHON, MADE_IN_PYTHON, "convoscope", "lines", "record", OBJECTS)
    else:
        odd = next((thing for thing in things if not isinstance(thing, Mapping)), None)
        if odd is not None:
            hint = "give paths, conversations, or records as dicts, and only one of these"
            raise UsageError(f"cannot score a {type(odd).__name__}", hint=hint)
        texts = [msgspec.json.encode(thing) for thing in things]
        sample = Sample(Path(MADE_IN_PYTHON), "lines", [msgspec.json.decode(text) for text in texts[:_SAMPLE]])
        claim = best_claim(sample, readers.values())
        if claim is None:
            raise InputError("unknown format of records", file=MADE_IN_PYTHON, hint=SEE_FORMATS)
        grouping, why = claim.claim.grouping, claim.claim.why
        item = Input(MADE_IN_PYTHON, MADE_IN_PYTHON, claim.name, "lines", grouping, why)
    item = msgspec.structs.replace(item, data=b"\n".join(texts) + b"\n")
    return FoundInput((item,), report, definitions.flows)


def nothing_readable(report: ReadReport) -> NothingReadable:
    """The error for a read that gave no conversation, with the reasons."""
    reasons = [str(problem) for problem in report.problems[:10]]
    reasons += [f"{name}: {file.skipped}" for name, file in report.files.items() if file.skipped and not reasons][:10]
    if not reasons:
        reasons += [
            f"{name}: {file.why}; the logs that it belongs to are missing" for name, file in report.files.items()
        ][:10]
    reasons += [f"unknown name {name}" for name in list(report.unknown)[:10]]
    lines = ["no conversation could be read", *(one_line(reason, None) for reason in reasons)]
    hint = "" if any(SEE_FORMATS in line for line in lines) else SEE_FORMATS
    return NothingReadable("\n  ".join(lines), hint=hint)
