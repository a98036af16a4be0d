"""With --strict nothing that could not be read passes, whatever it is wrapped in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import convoscope
from convoscope.errors import InputError
from convoscope.runs.partial import Partial
from ingest.io.test_packed import PACKERS
from support.command_line import convoscope as command
from support.logs import chat, write, write_lines

ITEMS = "conversation_id,ground_truth,agent_response\nc1,Hi,Hello\nc2,Bye,Goodbye\n"


def parquet(folder: Path) -> bytes:
    (folder / "whole.csv").write_text(ITEMS)
    with duckdb.connect() as connection:
        connection.execute(f"COPY (FROM '{folder}/whole.csv') TO '{folder}/whole.parquet'")
    whole = (folder / "whole.parquet").read_bytes()
    for name in ("whole.csv", "whole.parquet"):
        (folder / name).unlink()
    return whole


def garbled(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:8] + bytes(255 - one for one in data[8:middle]) + data[middle:]


DAMAGED: dict[str, Callable[[Path], bytes]] = {
    "cut.parquet": lambda folder: parquet(folder)[:-20],
    "garbled.parquet": lambda folder: parquet(folder)[:-40] + b"\xff" * 30 + parquet(folder)[-10:],
    "bytes.csv": lambda folder: bytes(range(256)) * 20,
    "header.csv": lambda folder: b'a,"b\n1,2\n',
    "packed.csv.zst": lambda folder: garbled(PACKERS["zst"](ITEMS.encode() * 50)),
    "cut.csv.zst": lambda folder: PACKERS["zst"](ITEMS.encode())[:9],
    "cut.csv.gz": lambda folder: PACKERS["gz"](ITEMS.encode())[:12],
    "empty.tsv": lambda folder: b"",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_table_in_a_folder(name: str, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    write_lines(logs / "good.jsonl", chat("one"), chat("two"))
    write(logs / name, DAMAGED[name](tmp_path))
    lenient = command("score", logs, "--metrics", "turns", "--out", tmp_path / "lenient")
    assert lenient.code == 0
    assert f"warning: {name}" in lenient.err
    strict = command("score", logs, "--metrics", "turns", "--out", tmp_path / "strict", "--strict")
    assert strict.code == 2
    assert strict.err.startswith("error: 1 problem\n")
    assert name in strict.err
    assert not (tmp_path / "strict").exists()
    # A run that is there is held to the same.
    again = command("score", logs, "--metrics", "turns", "--out", tmp_path / "lenient", "--strict")
    assert (again.code, again.err) == (2, strict.err)


def test_one_that_goes_on_after_all_was_done_but_the_name(tmp_path: Path) -> None:
    """As a kill leaves it between the last file and the renaming."""
    logs = write(tmp_path / "log.jsonl", json.dumps(chat("one")) + "\n{broken\n" + json.dumps(chat("two")) + "\n")
    whole = convoscope.score(logs, metrics="turns", out=tmp_path / "whole", workers=1)
    out = tmp_path / "run"
    unfinished = Partial(out, {**whole.receipt.depends_on, "part_bytes": str(4 * 1024 * 1024)})
    unfinished.finish()
    unfinished.close()
    for path in whole.folder.iterdir():
        path.rename(unfinished.folder / path.name)
    with pytest.raises(InputError, match="1 problem"):
        convoscope.score(logs, metrics="turns", out=out, workers=1, strict=True)
    assert not out.exists()


class TestRecordsOfAGroup:
    """Each that is lost is one problem."""

    def test_two_of_one_id(self, tmp_path: Path) -> None:
        records = [
            {"conversation_id": "c", "agent_response": "Hi", "ground_truth": "Hi"},
            *[{"conversation_id": "d", "colour": "red"}] * 2,
        ]
        reading = convoscope.read(write_lines(tmp_path / "items.jsonl", *records), format="standard-data")
        assert [one.id for one in reading] == ["c"]
        assert reading.report.problem_count == 2
        assert [(problem.line, problem.count) for problem in reading.report.problems] == [(2, 2)]

    def test_two_in_a_list(self, tmp_path: Path) -> None:
        call = {"call_id": "a", "agent_id": "b", "call_status": "ended", "transcript": "User: Hi"}
        lines = write_lines(tmp_path / "calls.jsonl", [call, 7, "no call"], {**call, "call_id": "b"})
        reading = convoscope.read(lines, format="retell")
        assert [one.id for one in reading] == ["a", "b"]
        assert reading.report.problem_count == 2

    def test_a_warning_counts_what_it_does_not_show(self, tmp_path: Path) -> None:
        log = write(tmp_path / "log.jsonl", json.dumps(chat("one")) + "\n" + "{broken\n" * 7)
        told = command("inspect", log).err.splitlines()
        assert [line.split(":")[0] for line in told] == ["warning"] * 4
        assert told[-1] == "warning: and 4 more; see --full and read-report.json"
