"""A run on the terminal: its targets in the table, its groups in the order in which people look at them."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from convoscope.analysis.answer import make_answer
from convoscope.report.run_tables import groupings
from convoscope.report.run_terminal import print_run
from convoscope.report.screen import Screen
from convoscope.runs.make import make_run as score
from convoscope.runs.run import Run
from support.chats import chat, user

USUAL = ("flow", "agent", "scenario_id", "model", "domain", "dataset", "split")


def printed(run: Run) -> list[str]:
    stream = StringIO()
    print_run(Screen(stream), run, make_answer(run))
    return stream.getvalue().splitlines()


def grouped(folder: Path, names: Sequence[str], by: Sequence[Sequence[str]] | None = None) -> Run:
    """Ten conversations; of each of these dimensions, five have one value and five another."""
    conversations = [
        chat(user("hi"), id=f"c{number}", dimensions={name: f"{name} {number % 2}" for name in names})
        for number in range(10)
    ]
    return score(conversations, metrics=["turns"], out=folder / "run", workers=1, by=by)


def cells(run: Run, name: str) -> str:
    """The row of a figure."""
    (found,) = [line for line in printed(run) if line.split("  ")[0] == name]
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Four conversations of one turn each, so that the interval has no width."""
    conversations = [chat(user("hi"), id=f"c{number}") for number in range(4)]
    targets = ["turns > 0", "turns < 100", "turns >= 5", "turns p95 < 1", "f1 > 0.5"]
    metrics = ["turns", "f1", "tools.calls"]
    out = tmp_path_factory.mktemp("targets") / "run"
    return score(conversations, metrics=metrics, out=out, workers=1, targets=targets)


class TestTargets:
    def test_of_one_figure_are_all_in_its_row(self, run: Run) -> None:
        # after the last two blanks; nothing of the turns was left out, so that the targets come last
        told = cells(run, "conversation.turns").rpartition("  ")[2]
        assert sorted(told.split("; ")) == [
            f"{target}, but there is no interval" for target in ("< 100: met", "> 0: met", "≥ 5: missed")
        ]

    def test_stand_at_their_own_figure(self, run: Run) -> None:
        assert "  < 1: missed" in cells(run, "conversation.turns p95")
        assert "  > 0.500: undetermined: no ground truth" in cells(run, "answer.f1")
        assert not {":", ";"} & set(cells(run, "conversation.turns p50"))

    def test_have_a_column_where_there_are_any(self, run: Run, tmp_path: Path) -> None:
        heading = next(line for line in printed(run) if line.startswith("metric "))
        assert "  target  " in heading
        plain = score([chat(user("hi"))], metrics=["turns"], out=tmp_path / "run", workers=1)
        assert not any("target" in line for line in printed(plain))


class TestGroups:
    def test_come_in_the_order_in_which_people_look_at_them(self, tmp_path: Path) -> None:
        # given in another order, which does not matter
        run = grouped(tmp_path, sorted(USUAL))
        expected = [
            ("flow",),
            ("agent",),
            ("flow", "agent"),
            ("scenario_id",),
            ("model",),
            ("domain",),
            ("dataset",),
            ("split",),
        ]
        assert list(groupings(run.summary.groups)) == expected
        titles = [line for line in printed(run) if line.startswith("by ")]
        assert titles == [f"by {' and '.join(names)}" for names in expected]

    @pytest.mark.parametrize(
        ("names", "expected"),
        [
            (["split", "agent"], [("agent",), ("split",)]),
            (["model", "flow"], [("flow",), ("model",)]),
            (["agent", "flow"], [("flow",), ("agent",), ("flow", "agent")]),
            ([], []),
        ],
    )
    def test_of_dimensions_that_are_there(
        self, names: list[str], expected: list[tuple[str, ...]], tmp_path: Path
    ) -> None:
        assert list(groupings(grouped(tmp_path, names).summary.groups)) == expected

    def test_a_dimension_of_one_value_tells_nothing_apart(self, tmp_path: Path) -> None:
        conversations = [
            chat(user("hi"), id=f"c{number}", dimensions={"flow": "only", "agent": f"a{number % 2}", "split": "test"})
            for number in range(10)
        ]
        run = score(conversations, metrics=["turns"], out=tmp_path / "run", workers=1)
        assert list(groupings(run.summary.groups)) == [("agent",)]

    def test_that_were_asked_for_keep_their_order(self, tmp_path: Path) -> None:
        asked = [("split",), ("agent", "flow"), ("model",), ("flow",)]
        run = grouped(tmp_path, USUAL, by=asked)
        assert list(groupings(run.summary.groups)) == asked
        assert [line for line in printed(run) if line.startswith("by ")] == [
            "by split",
            "by agent and flow",
            "by model",
            "by flow",
        ]

    def test_within_one_they_go_by_value(self, tmp_path: Path) -> None:
        found = groupings(grouped(tmp_path, ["flow", "agent"]).summary.groups)
        # c0, c2, … have the values 0, c1, c3, … the values 1: nobody has 0 and 1
        assert [(group.by, group.conversations) for group in found["flow", "agent"]] == [
            ({"flow": "flow 0", "agent": "agent 0"}, 5),
            ({"flow": "flow 1", "agent": "agent 1"}, 5),
        ]

    def small(self, folder: Path, **options: Any) -> Run:
        """Nine conversations: five of flow a, three of b, one of c."""
        conversations = [
            chat(user("hi"), id=f"c{number}", dimensions={"flow": flow}) for number, flow in enumerate("aaaaabbbc")
        ]
        return score(conversations, metrics=["turns"], out=folder / "run", workers=1, **options)

    def test_small_ones_are_counted_in_a_line(self, tmp_path: Path) -> None:
        lines = printed(self.small(tmp_path))
        # b and c: 3 + 1 conversations
        told = "by flow: 2 groups of fewer than 5 (4 conversations) left out; `--by flow` has them"
        assert lines.count(told) == 1
        assert [line.split()[:2] for line in lines if line.split()[:1] in (["a"], ["b"], ["c"])] == [["a", "5"]]

    def test_who_asks_for_them_sees_them(self, tmp_path: Path) -> None:
        lines = printed(self.small(tmp_path, by=[("flow",)]))
        assert not any("left out" in line for line in lines)
        assert [line.split()[:2] for line in lines if line.split()[:1] in (["a"], ["b"], ["c"])] == [
            ["a", "5"],
            ["b", "3"],
            ["c", "1"],
        ]


class TestFiguresBesideAHeadline:
    """Three or more of them share a row; a target tells its own figure apart."""

    ITEMS = Path(__file__).parents[2] / "examples" / "standard-data" / "items.jsonl"

    def lines(self, run: Run) -> list[str]:
        return [line for line in printed(run) if line.startswith("latency.llm_ttft")]

    def test_share_a_row(self, tmp_path: Path) -> None:
        run = score(self.ITEMS, metrics=["llm_ttft"], out=tmp_path / "run", workers=1)
        # 0.4 and 1.2 s: mean and p50 0.8, p95 0.4 + 0.95 × 0.8 = 1.16
        assert [" ".join(line.split()) for line in self.lines(run)] == [
            "latency.llm_ttft 0.80 s 7.5, passes · 2 10 % lower 9 no metrics collected",
            "latency.llm_ttft p50, p95, max 0.80, 1.16, 1.20 s",
        ]

    def test_stand_apart_where_one_has_a_target(self, tmp_path: Path) -> None:
        run = score(
            self.ITEMS, metrics=["llm_ttft"], out=tmp_path / "run", workers=1, targets=["latency.llm_ttft p95 < 1"]
        )
        assert len(self.lines(run)) == 4
