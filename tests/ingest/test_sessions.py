"""Sessions that return after a long silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import convoscope
from support.logs import read, write_lines

DAY = 86_400.0


def rows(*times: float, **fields: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"{at:g}", "timestamp": 1.8e9 + at, **fields} for at in times]


@pytest.mark.parametrize(
    ("times", "ids"),
    [
        ((0, 60, 120), ["s"]),
        ((0, DAY - 1), ["s"]),
        ((0, DAY), ["s", "s#2"]),
        ((0, 3 * DAY, 3 * DAY + 5, 9 * DAY), ["s", "s#2", "s#3"]),
    ],
)
def test_a_day_of_silence(times: tuple[float, ...], ids: list[str], tmp_path: Path) -> None:
    outcome = read(write_lines(tmp_path / "a.jsonl", *rows(*times, session_id="s")))
    assert outcome.ids == ids
    assert outcome.report.conversations == len(ids)
    assert [event.seq for one in outcome.conversations for event in one.timeline] == [
        seq for one in outcome.conversations for seq in range(len(one.timeline))
    ]


def test_another_gap(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", *rows(0, 3600, session_id="s"))
    assert [one.id for one in convoscope.read(path, session_gap=0.5)] == ["s", "s#2"]


@pytest.mark.parametrize("field", ["conversation_id", "thread_id", "ticket_id"])
def test_a_conversation_of_its_own_is_one(field: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", *rows(0, 9 * DAY, **{field: "s"}))
    assert read(path).ids == ["s"]


def test_without_times_nothing_is_split(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": text, "session_id": "s"} for text in "ab"]
    assert read(write_lines(tmp_path / "a.jsonl", *messages)).ids == ["s"]


def test_a_list_of_messages(tmp_path: Path) -> None:
    record = {"session_id": "s", "messages": rows(0, 5, 9 * DAY)}
    assert read(write_lines(tmp_path / "a.jsonl", record)).ids == ["s", "s#2"]
    assert read(write_lines(tmp_path / "b.jsonl", {**record, "resolved": True})).ids == ["s"]
