"""Whoever does the work, the run comes out to the byte the same."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.errors import UsageError
from convoscope.ingest.split import Partition
from convoscope.metrics import COUNT, LOWER, Observation, measured, metric
from convoscope.runs.make import make_run
from convoscope.scoring.engines import Engine, LocalEngine
from convoscope.scoring.partition import PartDone
from support.generated import FEW, write_lines

MINE = '''
from convoscope.conversation import Conversation, Participant, Text, Utterance
from convoscope.ingest.reader import Detection, Reader
from convoscope import metric
from convoscope.metrics import measured


class Notes(Reader):
    """Plain lines: who, a bar, what."""

    name = "notes"
    title = "Notes of a talk"

    def detect(self, sample):
        if sample.container == "text" and all(" | " in line for line in sample.values):
            return Detection(0.9, "lines of who | what", "file")
        return None

    def build(self, group, notes):
        said = [record.value.split(" | ", 1) for record in group.records]
        events = tuple(
            Utterance(seq=place, speaker=who, intended=Text(what, "notes")) for place, (who, what) in enumerate(said)
        )
        people = tuple(Participant(who, who) for who in ("user", "assistant"))
        yield Conversation(id=group.name, participants=people, timeline=events)


NOTES = Notes()


@metric("mine.shouting", version=1, observes="conversation", unit="count", better="lower")
def shouting(conversation):
    """How many utterances are in capitals?"""
    return measured(conversation, sum(conversation.text(one).isupper() for one in conversation.utterances))
'''


class Backwards:
    """Works in this process, from the last partition to the first."""

    workers = 1

    def run(self, work: Callable[[Partition], PartDone], partitions: Iterable[Partition]) -> Iterator[PartDone]:
        for partition in reversed([*partitions]):
            yield work(partition)


class Strangers:
    """Each partition goes to an interpreter of its own, which knows nothing but what it is sent."""

    workers = 1

    def run(self, work: Callable[[Partition], PartDone], partitions: Iterable[Partition]) -> Iterator[PartDone]:
        code = (
            "import pickle, sys; work, one = pickle.load(sys.stdin.buffer); pickle.dump(work(one), sys.stdout.buffer)"
        )
        for partition in partitions:
            sent = pickle.dumps((work, partition))
            done = subprocess.run([sys.executable, "-c", code], input=sent, stdout=subprocess.PIPE, check=True)
            yield pickle.loads(done.stdout)


def summary_bytes(run: convoscope.Run) -> bytes:
    return (run.folder / "summary.json").read_bytes()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Six talks in a format of one's own."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(6):
        said = "WHERE IS IT?" if number % 3 == 0 else "Where is it?"
        (folder / f"{number}.txt").write_text(f"user | {said}\nassistant | Here.\n")
    return folder


@pytest.mark.parametrize("engine", [Backwards(), Strangers(), LocalEngine(2), LocalEngine(2, start="spawn")])
def test_the_bytes_are_the_same(engine: Engine, tmp_path: Path) -> None:
    logs = write_lines(tmp_path / "chats.jsonl", range(60))
    part_bytes = logs.stat().st_size // 3 + 1
    here = make_run(logs, metrics=FEW, out=tmp_path / "here", workers=1, part_bytes=part_bytes)
    there = make_run(logs, metrics=FEW, out=tmp_path / "there", engine=engine, part_bytes=part_bytes)
    assert len(there.receipt.parts) > 2
    assert summary_bytes(there) == summary_bytes(here)
    assert list(map(str, there.scores())) == list(map(str, here.scores()))


@pytest.mark.parametrize(
    ("name", "engine"),
    [("strange", Strangers()), ("forked", LocalEngine(2)), ("spawned", LocalEngine(2, start="spawn"))],
)
def test_workers_load_your_own_readers_and_metrics(name: str, engine: Engine, notes: Path, tmp_path: Path) -> None:
    source = tmp_path / f"my_{name}_notes.py"
    source.write_text(MINE)
    run = make_run(
        notes,
        metrics=["mine.shouting"],
        metrics_from=[source],
        readers_from=[source],
        engine=engine,
        part_bytes=120,
        out=tmp_path / "run",
    )
    assert len(run.receipt.parts) > 1
    assert run.summary.conversations == 6
    (shouting,) = run.summary.metrics
    assert shouting.value == pytest.approx(2 / 6)  # the first and the fourth


def test_a_metric_that_has_no_name_elsewhere_is_scored_here(tmp_path: Path) -> None:
    def unnamed(conversation: Any) -> Observation:
        """How many turns?"""
        return measured(conversation, len(conversation.turns))

    declared = metric("test.unnamed", version=1, observes="conversation", unit=COUNT, better=LOWER)(unnamed)
    logs = write_lines(tmp_path / "chats.jsonl", range(6))
    with pytest.warns(UserWarning, match=r"scored in one process.*metrics_from"):
        run = make_run(logs, metrics=[declared], out=tmp_path / "run", engine=LocalEngine(2, start="spawn"))
    assert run.summary.conversations == 6


def test_a_changed_reader_makes_another_run(notes: Path, tmp_path: Path) -> None:
    source = notes.parent / "my_other_notes.py"
    for text in (MINE, MINE.replace("Notes of a talk", "Notes of talks")):
        source.write_text(text)
        if text != MINE:
            with pytest.raises(convoscope.ConvoscopeError, match="sources changed"):
                make_run(notes, metrics=["conversation.turns"], readers_from=[source], out=tmp_path / "run", workers=1)
        else:
            make_run(notes, metrics=["conversation.turns"], readers_from=[source], out=tmp_path / "run", workers=1)


def test_there_is_at_least_one_worker() -> None:
    with pytest.raises(UsageError, match="--workers must be at least 1, not 0"):
        LocalEngine(0)


def test_reading_by_hand(notes: Path) -> None:
    source = notes.parent / "my_third_notes.py"
    source.write_text(MINE)
    talks = list(convoscope.read(notes, readers_from=[source]))
    assert [talk.id for talk in talks] == [str(number) for number in range(6)]
    with pytest.raises(convoscope.ConvoscopeError, match="no conversation could be read"):
        list(convoscope.read(notes))  # what was brought along once is not there for others
    assert json.dumps([talk.text(talk.utterances[0]) for talk in talks[:2]]) == '["WHERE IS IT?", "Where is it?"]'
