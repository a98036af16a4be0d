"""A run that was killed keeps what it finished, whatever comes to its logs before the same command goes on."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from unittest import mock

import pytest

from convoscope.errors import InputError
from convoscope.runs.make import make_run as score
from convoscope.runs.partial import Partial
from convoscope.runs.run import Run
from convoscope.scoring.partition import PartDone
from runs import test_kill
from support.generated import FEW, chat, write_lines

CHATS = 300


def add(path: Path, *numbers: int) -> None:
    with path.open("a") as stream:
        stream.writelines(json.dumps(chat(number)) + "\n" for number in numbers)


def scored(logs: Path, out: Path, **options: object) -> Run:
    return score(logs, **{"metrics": FEW, "out": out, "workers": 1, "part_bytes": 20_000, **options})


def killed(logs: Path, out: Path) -> Path:
    """The folder of a run that was killed when at least three parts were finished."""
    partial = out / ".partial" if out.exists() else out.with_name(f"{out.name}.partial")
    process = test_kill.start(logs, out)
    journal = partial / "journal.jsonl"
    while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") > 3):
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    if not partial.exists():
        pytest.skip("the run was finished before it could be killed")
    return partial


def finished(partial: Path) -> dict[int, int]:
    """The parts in the journal, and what a file system knows their scores by."""
    lines = map(json.loads, (partial / "journal.jsonl").read_text().splitlines())
    numbers = [line["part"]["part"] for line in lines if line["type"] == "part"]
    return {one: (partial / "scores.parquet" / f"part-{one:06d}.parquet").stat().st_ino for one in numbers}


def forget(partial: Path, number: int) -> None:
    """As if a part had not been finished when the others were."""
    journal = partial / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if json.loads(line).get("part", {}).get("part") != number))


def assert_is_whole(run: Run, logs: Path, numbers: range, parts: dict[int, int]) -> None:
    """It says what one run says, nothing is lost or doubled, and the parts are those that were there."""
    whole = scored(logs, run.folder.with_name("whole"))
    assert (run.folder / "summary.json").read_bytes() == (whole.folder / "summary.json").read_bytes()
    assert list(map(str, run.scores())) == list(map(str, whole.scores()))
    assert [one.id for one in run.conversations()] == [one.id for one in whole.conversations()]
    assert sorted(one.id for one in run.conversations()) == [f"chat-{number:05d}" for number in numbers]
    assert finished_in(run).items() >= parts.items()
    assert len(finished_in(run)) == len(run.tables.order)


def finished_in(run: Run) -> dict[int, int]:
    paths = (run.folder / "scores.parquet").iterdir()
    return {int(path.stem.removeprefix("part-")): path.stat().st_ino for path in paths}


@pytest.mark.parametrize("name", ["another.jsonl", "chats.jsonl", "zlast.jsonl"])
def test_lines_that_came_after_the_kill(name: str, tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "run"
    logs.mkdir()
    write_lines(logs / "chats.jsonl", range(CHATS))
    partial = killed(logs, out)
    # Workers finish in any order.
    forget(partial, 1)
    parts = finished(partial)
    add(logs / name, CHATS)
    run = scored(logs, out)
    said = [one for one in run.read_report.warnings if one.startswith(("resuming", "starting"))]
    assert said == [f"resuming: {len(parts)} parts are done" if len(parts) > 1 else "resuming: 1 part is done"]
    assert_is_whole(run, logs, range(CHATS + 1), parts)


def files_of(run: Run) -> list[str]:
    return sorted(str(path.relative_to(run.folder)) for path in run.folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("left_out", [[0], [1], [1, 2, 4], [0, 5, 6, 7, 8, 9]])
def test_parts_that_were_left_out_get_their_numbers(left_out: list[int], tmp_path: Path) -> None:
    """Workers finish in any order. Without a change, the run has the parts of one that never stopped."""
    logs, out = tmp_path / "logs", tmp_path / "run"
    logs.mkdir()
    write_lines(logs / "chats.jsonl", range(CHATS))
    write_lines(logs / "few.jsonl", range(CHATS, CHATS + 5))
    with mock.patch.object(Partial, "publish", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        scored(logs, out)
    partial = tmp_path / "run.partial"
    journal = partial / "journal.jsonl"
    unfinished = [line for line in journal.read_text().splitlines() if json.loads(line)["type"] in ("header", "part")]
    journal.write_text("".join(f"{line}\n" for line in unfinished))
    for number in left_out:
        forget(partial, number)
    parts = finished(partial)
    assert not {*left_out} & {*parts}
    run = scored(logs, out)
    assert_is_whole(run, logs, range(CHATS + 5), parts)
    assert files_of(run) == files_of(Run.open(tmp_path / "whole"))
    assert not run.receipt.order


def test_killed_again_after_lines_came(tmp_path: Path) -> None:
    """Parts of two attempts at different logs: the third attempt is at the logs of the second."""
    logs, out = tmp_path / "logs", tmp_path / "run"
    logs.mkdir()
    write_lines(logs / "chats.jsonl", range(CHATS))
    partial = killed(logs, out)
    forget(partial, 1)
    write_lines(logs / "before.jsonl", range(CHATS, CHATS + 30))
    finish = Partial.finish_part

    def stopped(self: Partial, part: PartDone) -> None:
        finish(self, part)
        raise KeyboardInterrupt

    with mock.patch.object(Partial, "finish_part", stopped), pytest.raises(KeyboardInterrupt):
        scored(logs, out)
    parts = finished(partial)
    assert_is_whole(scored(logs, out), logs, range(CHATS + 30), parts)


def test_growth_that_was_killed_goes_on_with_more(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "run"
    logs.mkdir()
    write_lines(logs / "a.jsonl", range(20))
    before = finished_in(scored(logs, out))
    add(logs / "b.jsonl", *range(20, CHATS))
    parts = finished(killed(logs, out))
    add(logs / "0.jsonl", CHATS)
    assert_is_whole(scored(logs, out), logs, range(CHATS + 1), before | parts)


def test_a_log_that_changed_is_scored_again_and_the_rest_is_not(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "run"
    logs.mkdir()
    write_lines(logs / "a.jsonl", range(20))
    write_lines(logs / "b.jsonl", range(20, CHATS))
    parts = finished(killed(logs, out))
    write_lines(logs / "a.jsonl", range(1))
    run = scored(logs, out)
    assert len(finished_in(run).items() & parts.items()) >= len(parts) - 1
    whole = scored(logs, tmp_path / "whole")
    assert run.summary.conversations == CHATS - 19
    assert (run.folder / "summary.json").read_bytes() == (whole.folder / "summary.json").read_bytes()


@pytest.mark.parametrize("grows", [False, True])
def test_all_was_done_but_the_name_and_a_log_came(tmp_path: Path, *, grows: bool) -> None:
    logs, out = tmp_path / "logs", tmp_path / "run"
    logs.mkdir()
    if grows:
        write_lines(logs / "a.jsonl", range(10))
        scored(logs, out)
    write_lines(logs / "b.jsonl", range(10 if grows else 0, 60))
    with mock.patch.object(Partial, "publish", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        scored(logs, out)
    partial = out / ".partial" if grows else tmp_path / "run.partial"
    parts = finished(partial)
    add(logs / "c.jsonl", 60)
    run = scored(logs, out)
    assert run.receipt.generation == (2 if grows else 1)
    assert_is_whole(run, logs, range(61), parts)


def test_what_is_finished_survives_a_log_that_is_refused(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "run"
    logs.mkdir()
    write_lines(logs / "chats.jsonl", range(CHATS))
    parts = finished(killed(logs, out))
    (logs / "broken.jsonl").write_text("no log\n")
    with pytest.raises(InputError):
        scored(logs, out, strict=True)
    (logs / "broken.jsonl").unlink()
    assert_is_whole(scored(logs, out, strict=True), logs, range(CHATS), parts)


def test_a_limit_counts_from_the_first_part(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "run"
    logs.mkdir()
    write_lines(logs / "chats.jsonl", range(CHATS))
    with mock.patch.object(Partial, "publish", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        scored(logs, out, limit=100)
    add(logs / "a.jsonl", CHATS)
    run = scored(logs, out, limit=100)
    whole = scored(logs, tmp_path / "whole", limit=100)
    assert (run.folder / "summary.json").read_bytes() == (whole.folder / "summary.json").read_bytes()
