"""Scores as columns: the same whether all rows are kept in memory, or each metric is read by itself."""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import convoscope
from convoscope.metrics.declaration import COUNT, SECONDS
from convoscope.runs.array_file import ArrayFile
from convoscope.runs.make import make_run as score
from convoscope.runs.run import Run
from convoscope.runs.score_columns import POINTS, VALUES, ScoreColumns
from convoscope.scores.observation import COMPUTED
from support.chats import agent, chat, user
from support.graded import grade, graded, listed
from support.pages import page_facts


def assert_the_same(run: Run) -> None:
    kept = ScoreColumns(run.tables)
    read = ScoreColumns(run.tables, most_kept=0)
    aside = ScoreColumns(run.tables, most_kept=0, sets_aside=True)
    for key in aside.extents:
        aside.block(key)
    assert (kept.extents.keys(), kept.is_kept) == (read.extents.keys(), True)
    assert (aside.is_kept, read.is_kept) == (True, not read.extents)
    for others in (read, aside):
        for key, extent in kept.extents.items():
            other = others.extents[key]
            assert (extent.rows, extent.judges, extent.measured_by) == (other.rows, other.judges, other.measured_by)
            for judge in extent.measured_by:
                one, two = (rows.measured(*key, judge, (*VALUES, POINTS)) for rows in (kept, others))
                for name in one:
                    np.testing.assert_array_equal(one[name], two[name], err_msg=f"{key} {name}")
            block, again = kept.block(key), others.block(key)
            for name in ("number", "judge", "status", "reason"):
                np.testing.assert_array_equal(getattr(block, name), getattr(again, name))


class TestKeptAndRead:
    def test_chats_of_all_metrics(self, tmp_path: Path) -> None:
        chats = [
            chat(*[user("Where is it?"), agent("It is on its way.")] * turns, id=f"c{number}")
            for number, turns in enumerate((1, 2, 2, 5, 1))
        ]
        assert_the_same(score(chats, out=tmp_path / "run", workers=1))

    @pytest.mark.parametrize("most_at_hand", [1, 2, 1000])
    def test_parts_that_are_read_one_after_the_other(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_at_hand: int
    ) -> None:
        monkeypatch.setattr("convoscope.runs.score_columns._CONVERSATIONS_AT_HAND", most_at_hand)
        chats = [chat(*[user("hi"), agent("yes?")] * turns, id=f"c{turns}") for turns in (1, 2, 3, 4)]
        run = score(chats, out=tmp_path / "run", workers=1, part_bytes=1, metrics=["conversation.turns"])
        assert len(run.receipt.parts) > 1
        assert_the_same(run)
        rows = ScoreColumns(run.tables).measured("conversation.turns", "", COMPUTED, ("value",))
        assert rows["value"].tolist() == [1, 2, 3, 4]  # turns of the user, in the order of the input

    def test_numbers_keep_all_of_their_digits(self, tmp_path: Path) -> None:
        values = [0.1, 1e300, -3.0, 16777217.0]  # the last is the first whole number that four bytes cannot hold
        run = listed(tmp_path, {"wait": values}, [grade("wait", unit=SECONDS)])
        assert_the_same(run)
        assert ScoreColumns(run.tables).measured("test.wait", "", COMPUTED, ("value",))["value"].tolist() == values

    def test_nothing_was_measured(self, tmp_path: Path) -> None:
        run = graded(tmp_path, {"a": {}, "b": {}}, [grade("calls", unit=COUNT)])
        assert_the_same(run)
        assert len(ScoreColumns(run.tables).measured("test.calls", "", COMPUTED, ("value",))["value"]) == 0

    def test_a_large_run_is_set_aside_for_its_page(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        chats = [
            chat(
                *[user("Where is it?"), agent("It is on its way.")] * turns,
                id=f"c{number}",
                dimensions={"model": f"m{number % 2}"},
            )
            for number, turns in enumerate((1, 2, 2, 5, 1, 3))
        ]
        read: list[object] = []
        monkeypatch.setattr(ScoreColumns, "_read", spied(ScoreColumns._read, read))
        small = convoscope.score(chats, out=tmp_path / "small" / "run", workers=1)
        assert not read  # all at once
        monkeypatch.setattr("convoscope.runs.make.MOST_KEPT_OF_NEW", 0)
        large = convoscope.score(chats, out=tmp_path / "large" / "run", workers=1)
        # Each metric is read once, for the summary: what page, answer and comparison want was set aside.
        assert len(read) == len(set(read)) > 5
        assert summary(large) == summary(small)
        assert without_times(large) == without_times(small)

    def test_where_nothing_can_be_set_aside_the_run_is_read_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(ArrayFile, "add", full)
        run = listed(tmp_path, {"wait": [0.5, 2.0, 1.0]}, [grade("wait", unit=SECONDS)])
        rows = ScoreColumns(run.tables, most_kept=0, sets_aside=True)
        assert rows.block(("test.wait", "")).column("value").tolist() == [0.5, 2.0, 1.0]
        assert not rows.is_kept
        assert rows.measured("test.wait", "", COMPUTED, ("value",))["value"].tolist() == [0.5, 2.0, 1.0]


def spied(read: Callable[..., Any], seen: list[object]) -> Callable[..., Any]:
    def reading(rows: ScoreColumns, key: tuple[str, str], names: Sequence[str]) -> Any:
        seen.append(key)
        return read(rows, key, names)

    return reading


def summary(run: Run) -> bytes:
    return run.tables.own("summary.json").read_bytes()


def without_times(run: Run) -> tuple[str, ...]:
    """The facts of the page, but for when it was made and how long that took; and the list of conversations."""
    page = (run.folder / "report.html").read_text()
    index = re.search(r'id="index">([^<]+)<', page)
    assert index is not None
    facts = page_facts(run.folder / "report.html").replace(run.folder.parent.name, "")
    return re.sub(r'"footer":"[^"]*"', "", facts), gzip.decompress(base64.b64decode(index[1])).decode()
