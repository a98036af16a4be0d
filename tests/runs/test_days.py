"""The tables of a run by day: what warehouses load. Only days that changed are written again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

import convoscope
from convoscope.errors import RunError, UsageError
from convoscope.runs.days import MANIFEST, UNDATED, write_days
from convoscope.runs.prune import prune
from convoscope.runs.run import Run
from support.command_line import convoscope as run_command

METRICS = ["conversation.turns", "tools.success"]
CHATS = {"a": "2026-11-01T09:00:00Z", "b": "2026-11-01T23:59:00Z", "c": "2026-11-03T08:00:00Z", "d": ""}


def write(path: Path, chats: Mapping[str, str]) -> None:
    """Chats of one turn, by id, with the time of their first message; "" for none."""
    lines = []
    for id, time in chats.items():
        user: dict[str, Any] = {"role": "user", "content": f"Is {id} open?", **({"timestamp": time} if time else {})}
        lines.append({"id": id, "messages": [user, {"role": "assistant", "content": f"{id}: until six."}]})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def score(logs: Path, out: Path) -> Run:
    return convoscope.score(logs, out=out, metrics=METRICS, workers=1)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    write(tmp_path / "logs" / "one.jsonl", CHATS)
    return tmp_path / "logs"


def rows(folder: Path, table: str, columns: str) -> list[tuple[Any, ...]]:
    """As another program reads it."""
    source = f"read_parquet('{folder}/{table}/*/*.parquet', hive_partitioning = true)"
    return duckdb.sql(f"SELECT {columns} FROM {source} ORDER BY ALL").fetchall()


def files(folder: Path) -> dict[str, int]:
    """When each file of a day was written."""
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.glob("*/*/*.parquet")}


def days(folder: Path) -> Sequence[tuple[str, str | None]]:
    return [(id, None if day is None else str(day)) for id, day in rows(folder, "conversations", "conversation, day")]


def test_each_conversation_is_in_the_day_that_it_began_on(logs: Path, tmp_path: Path) -> None:
    made = write_days(score(logs, tmp_path / "run"), tmp_path / "out")
    assert {day: one.conversations for day, one in made.days.items()} == {"2026-11-01": 2, "2026-11-03": 1, UNDATED: 1}
    assert days(made.folder) == [("a", "2026-11-01"), ("b", "2026-11-01"), ("c", "2026-11-03"), ("d", None)]
    # Each chat has one turn, and one score of the conversation for it.
    assert rows(made.folder, "conversation_scores", "conversation, value") == [(id, 1.0) for id in CHATS]
    joined = duckdb.sql(
        f"SELECT count(*) FROM '{made.folder}/scores/*/*.parquet' JOIN '{made.folder}/conversations/*/*.parquet' "
        "USING (part, row)"
    ).fetchall()
    assert joined == [(4,)]


def test_only_days_that_changed_are_written_again(logs: Path, tmp_path: Path) -> None:
    write_days(score(logs, tmp_path / "run"), tmp_path / "out")
    before = files(tmp_path / "out")
    assert write_days(Run.open(tmp_path / "run"), tmp_path / "out").written == []
    write(logs / "two.jsonl", {"e": "2026-11-03T10:00:00Z", "f": "2026-11-04T10:00:00Z"})
    made = write_days(score(logs, tmp_path / "run"), tmp_path / "out")
    assert sorted(made.written) == ["2026-11-03", "2026-11-04"]
    after = files(tmp_path / "out")
    assert {path for path in after if after[path] != before.get(path)} == {
        path for path in after if "2026-11-03" in path or "2026-11-04" in path
    }
    assert [id for id, _ in days(tmp_path / "out")] == ["a", "b", "c", "d", "e", "f"]


def test_a_day_that_left_the_run_leaves_the_folder(logs: Path, tmp_path: Path) -> None:
    write_days(score(logs, tmp_path / "run"), tmp_path / "out")
    made = write_days(prune(Run.open(tmp_path / "run"), "2026-11-02").run, tmp_path / "out")
    assert made.removed == ["2026-11-01"]
    assert days(tmp_path / "out") == [("c", "2026-11-03"), ("d", None)]


def test_after_a_kill_the_same_command_does_the_rest(logs: Path, tmp_path: Path) -> None:
    run = score(logs, tmp_path / "run")
    whole = write_days(run, tmp_path / "out")
    expected = rows(whole.folder, "scores", "conversation, metric, value, day")
    # As it lies when the day was being replaced: no entry, one table without it, and what was prepared.
    manifest = json.loads((whole.folder / MANIFEST).read_text())
    del manifest["days"]["2026-11-01"]
    (whole.folder / MANIFEST).write_text(json.dumps(manifest))
    (whole.folder / "scores" / "day=2026-11-01" / "part-0.parquet").unlink()
    (whole.folder / ".new" / "scores").mkdir(parents=True)
    assert write_days(run, tmp_path / "out").written == ["2026-11-01"]
    assert rows(whole.folder, "scores", "conversation, metric, value, day") == expected
    assert not (whole.folder / ".new").exists()


def test_two_of_one_id_have_two_names(logs: Path, tmp_path: Path) -> None:
    write(logs / "two.jsonl", {"z": "2026-11-01T09:00:00Z"})
    (logs / "two.jsonl").write_text((logs / "two.jsonl").read_text().replace('"id": "z"', '"id": "a"'))
    write_days(score(logs, tmp_path / "run"), tmp_path / "out")
    assert [id for id, _ in days(tmp_path / "out")] == ["a", "a~2", "b", "c", "d"]


def test_of_a_run_in_an_object_store(logs: Path, tmp_path: Path) -> None:
    run = convoscope.score(logs, out="memory://runs/by-day", metrics=METRICS, workers=1)
    write_days(run, tmp_path / "out")
    write_days(score(logs, tmp_path / "run"), tmp_path / "local")
    wanted = "conversation, metric, value, day"
    assert rows(tmp_path / "out", "scores", wanted) == rows(tmp_path / "local", "scores", wanted)


def test_only_some_metrics(logs: Path, tmp_path: Path) -> None:
    run = score(logs, tmp_path / "run")
    made = write_days(run, tmp_path / "out", ["conversation.turns"])
    assert {name for (name,) in rows(made.folder, "scores", "metric")} == {"conversation.turns"}
    with pytest.raises(UsageError, match="not scored with outcome"):
        write_days(run, tmp_path / "other", ["outcome.success"])


def test_no_folder_of_something_else_is_touched(logs: Path, tmp_path: Path) -> None:
    run = score(logs, tmp_path / "run")
    with pytest.raises(RunError, match="holds something else"):
        write_days(run, logs)
    write_days(run, tmp_path / "out")
    with pytest.raises(RunError, match="of another run"):
        write_days(score(logs, tmp_path / "another"), tmp_path / "out")
    with pytest.raises(UsageError, match="not a folder of this machine"):
        write_days(run, "s3://bucket/days")


def test_command(logs: Path, tmp_path: Path) -> None:
    run = score(logs, tmp_path / "run")
    printed = run_command("export", run.folder, "--to", "days", "--out", tmp_path / "out").out
    assert f"{tmp_path / 'out'}: 2 days, 4 conversations, 1 without a time; 3 written, 0 removed" in printed.replace(
        "\n", ""
    )
    again = json.loads(run_command("export", run.folder, "--to", "days", "--out", tmp_path / "out", "--json").out)
    assert again["written"] == []
    assert again["days"] == {"2026-11-01": 2, "2026-11-03": 1, UNDATED: 1}
    assert run_command("export", run.folder, "--to", "days").code == 2
