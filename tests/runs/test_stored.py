"""Runs in an object store: the bytes of a local run, opened in place, whole or not there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import convoscope
from convoscope.errors import ConvoscopeError, RunError
from convoscope.ingest.split import Partition
from convoscope.runs.database import file_name
from convoscope.runs.run import Run, find_runs
from convoscope.scoring.partition import PartDone
from support.command_line import convoscope as command
from support.generated import FEW, write_lines
from support.object_store import BUCKET, object_store, upload

CHATS = 60
PART_BYTES = 4_000
RUN = f"s3://{BUCKET}/runs"

SCRIPT = f"""
import sys
from convoscope import score
score(sys.argv[1], metrics={FEW}, out=sys.argv[2], workers=1, part_bytes={PART_BYTES})
"""


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    with object_store() as opened:
        yield opened


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("logs") / "chats.jsonl", range(CHATS))


@pytest.fixture(scope="module")
def local(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return convoscope.score(logs, metrics=FEW, out=tmp_path_factory.mktemp("local") / "run", part_bytes=20_000)


@pytest.fixture(scope="module")
def stored(store: Any, logs: Path) -> Run:
    return scored(logs, f"{RUN}/one", workers=2, part_bytes=20_000)


def scored(logs: Path, out: str, **options: Any) -> Run:
    return convoscope.score(logs, metrics=FEW, out=out, **{"workers": 1, "part_bytes": PART_BYTES, **options})


def names(store: Any, address: str) -> set[str]:
    """What is below an address."""
    store.invalidate_cache()
    root = address.removeprefix("s3://")
    return {name.removeprefix(root).lstrip("/") for name in store.find(root)} if store.exists(root) else set()


def test_a_run_in_a_store_has_the_files_of_a_local_run(store: Any, stored: Run, local: Run) -> None:
    here = {path.relative_to(local.folder).as_posix() for path in local.folder.rglob("*") if path.is_file()}
    # Its own files under the names of an attempt, and copies of them for people; the parts have names of an attempt.
    there = {file_name(name) or name for name in names(store, f"{RUN}/one")}
    own = {f"generation-000000/{name}" for name in here if "/" not in name} - {
        f"generation-000000/{name}" for name in ("receipt.json", "report.html")
    }
    assert there == (here | own) - {"parts.json", "looks"}
    assert store.cat_file(f"{RUN}/one/summary.json") == (local.folder / "summary.json").read_bytes()
    assert list(map(str, stored.scores())) == list(map(str, local.scores()))
    assert not names(store, f"{RUN}/one.partial")


def test_a_run_in_a_store_is_opened_in_place(store: Any, stored: Run, local: Run) -> None:
    opened = Run.open(f"{RUN}/one")
    assert [one.id for one in opened.conversations()] == [one.id for one in local.conversations()]
    assert opened.worst(3) == local.worst(3)
    count = command("sql", "--run", f"{RUN}/one", "--csv", "SELECT count(*) AS n FROM conversations")
    assert (count.code, count.out.split()) == (0, ["n", str(CHATS)])
    assert "No clear difference" in command("compare", f"{RUN}/one", str(local.folder)).out
    before = store.info(f"{RUN}/one/report.html")["LastModified"]
    assert command("report", f"{RUN}/one").code == 0
    store.invalidate_cache()
    assert store.info(f"{RUN}/one/report.html")["LastModified"] >= before
    assert [run.name for run in find_runs(RUN)] == ["one"]


def test_a_query_sees_this_run_and_nothing_else_of_the_bucket(store: Any, stored: Run, local: Run) -> None:
    other = local.folder / "scores.parquet" / "part-000000.parquet"
    store.put_file(str(other), f"{BUCKET}/secret/secret.parquet")
    query = f"SELECT * FROM read_parquet('s3://{BUCKET}/secret/secret.parquet')"
    refused = command("sql", "--run", f"{RUN}/one", query)
    assert refused.code != 0
    assert "cannot" in refused.err.lower()


def test_a_finished_run_is_not_scored_again(store: Any, stored: Run, logs: Path) -> None:
    part = f"{RUN}/one/{next(name for name in stored.receipt.objects if name.startswith('scores.parquet/part-000000'))}"
    written = store.info(part)["LastModified"]
    assert scored(logs, f"{RUN}/one", part_bytes=20_000).receipt.run_id == stored.receipt.run_id
    store.invalidate_cache()
    assert store.info(part)["LastModified"] == written


def test_what_is_no_run_is_not_overwritten(store: Any, logs: Path) -> None:
    store.pipe_file(f"{BUCKET}/runs/taken/notes.txt", b"mine")
    with pytest.raises(RunError, match="is not a run"):
        scored(logs, f"{RUN}/taken")
    assert store.cat_file(f"{BUCKET}/runs/taken/notes.txt") == b"mine"


def finished_parts(store: Any, address: str) -> int:
    return sum("/journal/" in f"/{name}" for name in names(store, address))


def test_a_killed_writer_leaves_no_run_and_its_parts_are_gone_on_from(
    store: Any, logs: Path, local: Run, tmp_path: Path
) -> None:
    out = f"{RUN}/killed"
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(logs), out], env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    try:
        while process.poll() is None and finished_parts(store, f"{out}.partial") < 3:
            time.sleep(0.01)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    kept = finished_parts(store, f"{out}.partial")
    assert kept >= 3
    assert not names(store, out)
    with pytest.raises(RunError):
        Run.open(out)
    stages: list[str] = []
    run = scored(logs, out, progress=lambda at: stages.append(at.stage))
    # Only the parts that were not kept are scored.
    assert stages.count("scoring") == len(run.receipt.parts) - kept
    assert (run.folder / "summary.json").read_bytes() == (local.folder / "summary.json").read_bytes()
    assert [one.id for one in run.conversations()] == [one.id for one in local.conversations()]
    assert not names(store, f"{out}.partial")


def test_a_store_that_stops_half_way_is_an_error_and_what_is_kept_counts(logs: Path, local: Run) -> None:
    with object_store() as store:
        out, stopped = f"{RUN}/stopped", []

        def stop(at: Any) -> None:
            if at.parts >= 3 and not stopped:
                stopped.append(at.parts)
                store.server.stop()

        with pytest.raises(ConvoscopeError, match=RUN):
            scored(logs, out, progress=stop)
        store.server.start()
        assert finished_parts(store, f"{out}.partial") >= 3
        assert not names(store, out)
        run = scored(logs, out)
        assert (run.folder / "summary.json").read_bytes() == (local.folder / "summary.json").read_bytes()


def test_the_same_code_writes_to_memory(logs: Path, local: Run) -> None:
    import fsspec

    run = scored(logs, "memory://runs/x")
    assert (run.folder / "summary.json").read_bytes() == (local.folder / "summary.json").read_bytes()
    assert [one.id for one in Run.open("memory://runs/x").conversations()] == [one.id for one in local.conversations()]
    fsspec.filesystem("memory").rm("runs", recursive=True)


def test_a_run_in_a_store_grows(store: Any, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    write_lines(logs / "monday.jsonl", range(20))
    scored(logs, f"{RUN}/grown")
    write_lines(logs / "tuesday.jsonl", range(20, 30))
    grown = scored(logs, f"{RUN}/grown")
    whole = scored(logs, str(tmp_path / "whole"))
    assert len(list(grown.conversations())) == 30
    assert grown.tables.own("summary.json").read_bytes() == (whole.folder / "summary.json").read_bytes()
    assert Run.open(f"{RUN}/grown").summary.conversations == 30
    assert not names(store, f"{RUN}/grown.partial")


class OtherMachine:
    """Does the work as a machine would that has no disk in common with this one."""

    workers = 1

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, work: Any, partitions: Iterable[Partition]) -> Iterator[PartDone]:
        writer = msgspec.structs.replace(work.writer, folder=self.folder)
        elsewhere = msgspec.structs.replace(work, writer=writer)
        for partition in partitions:
            yield elsewhere(partition)
        elsewhere.session.close()


def test_workers_without_a_shared_disk_leave_their_parts_in_the_store(
    store: Any, logs: Path, local: Run, tmp_path: Path
) -> None:
    run = scored(logs, f"{RUN}/apart", engine=OtherMachine(tmp_path / "worker"), part_bytes=20_000)
    assert (run.folder / "summary.json").read_bytes() == (local.folder / "summary.json").read_bytes()
    assert list(map(str, run.scores())) == list(map(str, local.scores()))
    assert not [path for path in (tmp_path / "worker").rglob("*") if path.is_file()]


def test_every_path_of_a_command_may_be_in_the_store(
    store: Any, stored: Run, local: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one, out = f"{RUN}/one", f"s3://{BUCKET}/reports"
    written = command("report", one, "--out", f"{out}/a.html", "--junit", f"{out}/a.xml", "--markdown", f"{out}/a.md")
    assert (written.code, written.err) == (0, "")
    assert command("compare", one, str(local.folder), "--out", f"{out}/c.html").code == 0
    assert names(store, out) == {"a.html", "a.xml", "a.md", "c.html"}
    assert command("baseline", "set", one).code == 0
    assert f"{one}, {CHATS} conversations" in command("baseline", "show").out
    unasked = command("judge", "calibrate", one, "--labels", "labels.csv")
    assert f"no judge was asked in {one}" in unasked.err or "labels.csv" in unasked.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["convoscope-baseline.json"]


def test_recordings_and_code_are_files_of_this_machine(store: Any, tmp_path: Path) -> None:
    sound = Path(__file__).parents[2] / "examples" / "sound"
    upload(store, sound, "sound")
    address = f"s3://{BUCKET}/sound"
    run = convoscope.score(address, metrics=["audio.speech_share"], out=tmp_path / "first", workers=1)
    assert [row.reason for row in run.scores()] == ["recording_not_found"]
    shutil.rmtree(tmp_path / "first")
    options = {"--audio": "", "--map": "a.toml", "--metrics-from": "a.py", "--readers-from": "a.py"}
    for option, name in options.items():
        ended = command("score", address, option, f"{address}/{name}", "--out", str(tmp_path / "run"))
        assert (ended.code, "is in an object store" in ended.err) == (2, True), ended.err
        assert "copy it to this machine" in ended.err
    assert list(tmp_path.iterdir()) == []


def test_what_the_client_of_a_store_raises_is_no_bug_of_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Clients try for ten seconds to reach a store: here one says at once that it cannot."""
    import botocore.exceptions

    from convoscope.cli import main

    def fail() -> None:
        raise botocore.exceptions.EndpointConnectionError(endpoint_url="https://store.invalid/runs")

    monkeypatch.setattr(main, "make_app", lambda names: fail)
    with pytest.raises(SystemExit, match="2"):
        main.main()
    said = capsys.readouterr().err
    assert 'the object store: Could not connect to the endpoint URL: "https://store.invalid/runs"' in said
    assert "bug" not in said


def test_a_run_that_is_not_there(store: Any) -> None:
    """A store has no list of runs on this machine; the address may name no bucket."""
    with pytest.raises(RunError, match=r"there is no run at s3://nobucket/x\n  the store has no bucket nobucket"):
        Run.open("s3://nobucket/x")
    with pytest.raises(RunError, match=rf"there is no run at s3://{BUCKET}/none\n  the store has nothing below"):
        Run.open(f"s3://{BUCKET}/none")
