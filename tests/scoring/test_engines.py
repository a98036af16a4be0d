"""Whoever does the work, the run comes out to the byte the same."""

from __future__ import annotations

import json
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.errors import UsageError
from convoscope.ingest.split import Partition
from convoscope.judging.backends import JudgeFailed
from convoscope.judging.limits import SharedBudget
from convoscope.metrics import COUNT, LOWER, Observation, measured, metric
from convoscope.runs.make import make_run
from convoscope.scoring.engines import Engine, LocalEngine, engine_for
from convoscope.scoring.engines.named import parse_address
from convoscope.scoring.engines.remote import counter_class
from convoscope.scoring.partition import PartDone
from support.engine_checks import CODE
from support.generated import FEW, write_lines

NOTES = CODE.replace("NAME", "notes")


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
    source.write_text(NOTES)
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
    for text in (
        NOTES,
        NOTES.replace("Notes of a talk", "Notes of talks"),
    ):
        source.write_text(text)
        if text != NOTES:
            with pytest.raises(convoscope.ConvoscopeError, match="sources changed"):
                make_run(notes, metrics=["conversation.turns"], readers_from=[source], out=tmp_path / "run", workers=1)
        else:
            make_run(notes, metrics=["conversation.turns"], readers_from=[source], out=tmp_path / "run", workers=1)


def test_there_is_at_least_one_worker() -> None:
    with pytest.raises(UsageError, match="--workers must be at least 1, not 0"):
        LocalEngine(0)


def test_reading_by_hand(notes: Path) -> None:
    source = notes.parent / "my_third_notes.py"
    source.write_text(NOTES)
    talks = list(convoscope.read(notes, readers_from=[source]))
    assert [talk.id for talk in talks] == [str(number) for number in range(6)]
    with pytest.raises(convoscope.ConvoscopeError, match="no conversation could be read"):
        list(convoscope.read(notes))  # what was brought along once is not there for others
    assert json.dumps([talk.text(talk.utterances[0]) for talk in talks[:2]]) == '["WHERE IS IT?", "Where is it?"]'


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("spark://local", "unknown engine"),
        ("dask", "unknown engine"),
        ("dask://", "no address of a cluster"),
        ("dask://host:99999", "no address of a cluster"),
        ("dask://host:x", "no address of a cluster"),
        ("ray://host:1/path", "no address of a cluster"),
    ],
)
def test_an_engine_that_cannot_be_meant(engine: str, message: str, tmp_path: Path) -> None:
    logs = write_lines(tmp_path / "chats.jsonl", range(2))
    with pytest.raises(UsageError, match=f"--engine {engine}: {message}\n  there is dask://HOST:8786"):
        make_run(logs, metrics=FEW, out=tmp_path / "run", engine=engine)
    assert not (tmp_path / "run.partial").exists()


def test_an_engine_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("convoscope.scoring.engines.named.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"needs the package distributed\n  pip install 'convoscope\[dask\]'"):
        engine_for("dask://local")
    with pytest.raises(UsageError, match=r"needs the package ray\n  pip install 'convoscope\[ray\]'"):
        engine_for("ray://host:10001")


def test_a_cluster_that_cannot_be_reached(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    logs = write_lines(tmp_path / "chats.jsonl", range(2))
    with pytest.raises(UsageError, match=rf"--engine dask://127.0.0.1:{port} cannot be reached: Connection refused"):
        make_run(logs, metrics=FEW, out=tmp_path / "run", engine=f"dask://127.0.0.1:{port}")


def test_a_port_may_be_left_out_and_a_host_may_be_of_ipv6() -> None:
    assert parse_address("dask://scheduler") == ("dask", "scheduler", 8786)
    assert parse_address("ray://head/") == ("ray", "head", 10001)
    assert parse_address("dask://[fd00::1]:9000") == ("dask", "fd00::1", 9000)
    assert str(parse_address("ray://local")) == "ray://local"


def test_money_is_counted_by_hand() -> None:
    # At most 5 questions and 10 cents, of which 1 question and 2 cents are spent.
    counter = counter_class()(5, 0.10, 1, 0.02)
    assert counter.ask("reserve", 0.05)  # 7 cents
    assert not counter.ask("reserve", 0.05)  # 12 would be too much
    counter.ask("charge", -0.04)  # it cost 1 cent: 3 cents
    assert counter.ask("reserve", 0.05)  # 8 cents
    assert counter.ask("reserve", 0.01)  # 9 cents, 4 questions
    assert counter.ask("reserve", 0.0)  # 5 questions
    assert not counter.ask("reserve", 0.0)
    questions, dollars = counter.ask("spent", 0.0)
    assert (questions, dollars) == (5, pytest.approx(0.09))


def test_a_budget_that_cannot_be_reached_allows_nothing() -> None:
    def lost(what: str, dollars: float) -> bool:
        raise ConnectionError

    budget = SharedBudget(lost)
    with pytest.raises(JudgeFailed, match="the budget of this run cannot be reached: ConnectionError"):
        budget.reserve(0.01)
    budget.charge(0.01, 0.0)  # what was set aside stays set aside


def test_a_worker_that_was_thought_to_be_lost_changes_nothing(tmp_path: Path) -> None:
    """It writes its part after another one did, and even after the run was finished."""
    logs = write_lines(tmp_path / "chats.jsonl", range(6))
    late: list[Callable[[], PartDone]] = []

    class Twice:
        workers = 1

        def run(self, work: Callable[[Partition], PartDone], partitions: Iterable[Partition]) -> Iterator[PartDone]:
            for partition in partitions:
                yield work(partition)
                late.append(partial(work, partition))
                work(partition)  # written under names of its own, and not taken

    run = make_run(logs, metrics=FEW, out=tmp_path / "run", engine=Twice())
    files = sorted(path for path in run.folder.rglob("*") if path.is_file())
    assert {path.suffix for path in run.folder.glob("*.parquet/*")} == {".parquet"}
    with pytest.raises(Exception, match="No such file"):
        late[0]()
    assert sorted(path for path in run.folder.rglob("*") if path.is_file()) == files
    assert not (tmp_path / "run.partial").exists()


def test_no_more_partitions_than_a_judge_may_be_asked_at_once(tmp_path: Path) -> None:
    class Many:
        workers = 50

        def run(self, work: Any, partitions: Iterable[Partition]) -> Iterator[PartDone]:
            seen.append((work.most_partitions, work.settings.max_concurrency))
            yield from map(work, partitions)

    seen: list[tuple[int | None, int]] = []
    logs = write_lines(tmp_path / "chats.jsonl", range(60))
    make_run(logs, metrics=FEW, out=tmp_path / "counted", engine=Many(), part_bytes=300)
    make_run(logs, metrics="mine.slow", metrics_from=[_slow(tmp_path)], out=tmp_path / "asked", engine=Many(),
             part_bytes=300, max_concurrency=7)  # fmt: skip
    # 50 workers have 4 questions of the usual 200 each; 7 questions are for 7 partitions, not for 50.
    assert seen == [(None, 4), (7, 1)]


def _slow(folder: Path) -> Path:
    source = folder / "my_slow.py"
    source.write_text(
        "from convoscope.metrics import measured, metric\n\n"
        "@metric('mine.slow', version=1, observes='conversation', unit='count', better='lower')\n"
        "async def slow(conversation):\n"
        '    """How many turns?"""\n'
        "    return measured(conversation, len(conversation.turns))\n"
    )
    return source
