"""`--label FIELD`: the user's own verdict, as a rule, in a run, and on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.conversation import Conversation, Label, LabelVerdict
from convoscope.errors import UsageError
from convoscope.metrics import LOWER
from convoscope.runs.make import make_run
from convoscope.runs.ranking import worst
from convoscope.runs.run import Run
from convoscope.runs.sql import query
from convoscope.scoring.labels import LabelRule, label_rule
from support.chats import chat, user
from support.command_line import convoscope as command
from support.graded import grade


class TestALabelAsItIsWritten:
    @pytest.mark.parametrize(
        ("text", "field", "kept"),
        [
            ("reward", "reward", "reward"),
            (" metadata.csat ", "metadata.csat", "metadata.csat"),
            ("csat >= 4", "csat", "csat >= 4"),
            ("csat>=4.0", "csat", "csat >= 4"),
            ("my field ≥ .5", "my field", "my field >= 0.5"),
            ("wait < 1e2", "wait", "wait < 100"),
            ("escalated=false", "escalated", "escalated = false"),
            ("escalated == false", "escalated", "escalated = false"),
            ("status ≠ still open", "status", "status != still open"),
            ("status in solved,closed", "status", "status in solved, closed"),
            ("status not in open", "status", "status != open"),
        ],
    )
    def test_has_a_field_and_perhaps_a_mark(self, text: str, field: str, kept: str) -> None:
        assert (label_rule(text).field, label_rule(text).text) == (field, kept)

    @pytest.mark.parametrize(
        "text", ["", "  ", ">= 4", "csat >=", "csat >= high", "csat =", "csat >= 4%", "a >= 1e999"]
    )
    def test_else_it_is_refused(self, text: str) -> None:
        with pytest.raises(UsageError, match="is not a label"):
            label_rule(text)


class TestNamedValues:
    @pytest.mark.parametrize(
        ("label", "passing", "failing"),
        [
            ("escalated = false", [False, "false", "No"], [True, "yes", "maybe", 3]),
            ("escalated != true", [False, "no", "maybe"], [True, "TRUE", "yes"]),
            ("stars = 5", [5, 5.0, "5"], [4, "five"]),
            ("status in solved, closed", ["Solved", " closed "], ["open", True]),
        ],
    )
    def test_pass_where_they_are_named(self, label: str, passing: list[object], failing: list[object]) -> None:
        rule = label_rule(label)
        assert [rule.passed(value) for value in passing] == [True] * len(passing)  # type: ignore[arg-type]
        assert [rule.passed(value) for value in failing] == [False] * len(failing)  # type: ignore[arg-type]

    def test_grades_count_only_where_all_are_grades(self) -> None:
        grades = LabelRule("grade", letters=True)
        assert [grades.passed(one) for one in "CIPN"] == [True, False, None, False]
        assert LabelRule("grade").passed("C") is None


class TestWhatAValueSays:
    @pytest.mark.parametrize(
        "value", [True, "pass", "Passed", "SUCCESS", "resolved", "yes", "true", "good", "Completed"]
    )
    def test_words_and_truths_pass(self, value: Any) -> None:
        assert LabelRule("x").passed(value) is True

    @pytest.mark.parametrize(
        "value", [False, "fail", "Failed", "failure", "unresolved", "no", "false", "bad", "not solved"]
    )
    def test_or_fail(self, value: Any) -> None:
        assert LabelRule("x").passed(value) is False

    @pytest.mark.parametrize("value", ["maybe", "n/a", "4 stars", 4, 0, 1.0, "1", "nan", "inf"])
    def test_anything_else_says_nothing(self, value: Any) -> None:
        assert LabelRule("x").passed(value) is None

    @pytest.mark.parametrize(("value", "passed"), [(4, True), (3.9, False), ("5", True), ("3", False), (True, True)])
    def test_a_number_is_held_against_its_mark(self, value: Any, passed: bool) -> None:
        assert LabelRule("x", ">=", 4).passed(value) is passed

    @pytest.mark.parametrize(("value", "passed"), [(1, True), (0.0, False), ("1", True), ("0", False)])
    def test_where_only_0_and_1_occur_they_are_verdicts(self, value: Any, passed: bool) -> None:
        assert LabelRule("x", binary=True).passed(value) is passed


def labelled(values: dict[str, Any], field: str = "verdict") -> list[Conversation]:
    """Conversations by id, each with the value of a field; None for none."""
    return [chat(user("hi"), id=id, extras={} if value is None else {field: value}) for id, value in values.items()]


def scored(folder: Path, values: dict[str, Any], label: str = "verdict", **options: Any) -> Run:
    options = {"metrics": ["conversation.turns"], **options}
    return make_run(labelled(values), label=label, out=folder / "run", workers=1, **options)


def rows(run: Run, columns: str = "label, outcome, outcome_reason") -> dict[str, tuple[Any, ...]]:
    answer = query([run], f"SELECT conversation, {columns} FROM conversations")
    return {row[0]: tuple(row[1:]) for row in answer.rows}


class TestARun:
    def test_keeps_label_and_outcome_of_each_conversation_for_sql(self, tmp_path: Path) -> None:
        run = scored(tmp_path, {"a": "yes", "b": False, "c": None})
        assert rows(run) == {
            "a": ("yes", "done", "verdict: yes"),
            "b": ("false", "lost", "verdict: false"),
            "c": (None, "unknown", None),
        }
        assert run.conversation("b").outcome.label == LabelVerdict(field="verdict", value=False, passed=False)

    def test_counts_them_in_the_summary_and_names_the_label_in_the_receipt(self, tmp_path: Path) -> None:
        run = scored(tmp_path, {"a": 5, "b": 2, "c": None, "d": 4}, "verdict >= 4")
        written = json.loads((run.folder / "summary.json").read_text())
        assert {name: count for name, count in written["outcomes"].items() if count} == {
            "lost": 1,
            "unknown": 1,
            "done": 2,
        }
        assert written["label"] == {"label": "verdict >= 4", "conversations": 3, "passed": 2, "failed": 1}
        assert run.receipt.config["label"] == "verdict >= 4"
        assert run.read_report.warnings == ["label verdict: 1 of 4 conversations do not have it"]

    def test_with_another_label_is_another_run(self, tmp_path: Path) -> None:
        conversations = labelled({"a": 5, "b": 2})
        first = make_run(conversations, metrics=["conversation.turns"], out=tmp_path / "one", workers=1)
        second = make_run(
            conversations, metrics=["conversation.turns"], out=tmp_path / "two", workers=1, label="verdict >= 4"
        )
        assert first.receipt.config_hash != second.receipt.config_hash
        with pytest.raises(convoscope.ConvoscopeError, match="holds another run"):
            make_run(
                conversations, metrics=["conversation.turns"], out=tmp_path / "one", workers=1, label="verdict >= 4"
            )

    def test_only_0_and_1_are_verdicts(self, tmp_path: Path) -> None:
        run = scored(tmp_path, {"a": 1.0, "b": 0.0})
        assert {id: row[1] for id, row in rows(run).items()} == {"a": "done", "b": "lost"}
        assert run.read_report.warnings == []

    def test_a_number_without_a_mark_ranks_and_gives_no_outcome_and_says_so(self, tmp_path: Path) -> None:
        run = scored(tmp_path, {"a": 1, "b": 0, "c": 0.5, "d": None})
        assert {row[1] for row in rows(run).values()} == {"unknown"}
        assert [one.conversation for one in worst(run, 9)] == ["b", "c", "a", "d"]
        (warning, missing) = run.read_report.warnings
        assert warning.startswith("label verdict holds numbers and has no mark: it ranks, lower is worse, and gives no")
        assert missing == "label verdict: 1 of 4 conversations do not have it"

    def test_texts_that_say_neither_are_named(self, tmp_path: Path) -> None:
        run = scored(tmp_path, {"a": "yes", "b": "maybe", "c": "perhaps"})
        assert run.read_report.warnings == ["label verdict: 2 of 3 say neither pass nor fail: 'maybe', 'perhaps'"]

    def test_a_field_that_nobody_has_is_refused_before_anything_is_scored(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError) as refused:
            scored(tmp_path, {"a": "yes"}, "verdikt")
        assert refused.value.args[0] == "no conversation has a field 'verdikt'"
        assert refused.value.hint == "did you mean verdict? There is verdict"
        assert not (tmp_path / "run").exists()

    def test_a_label_of_the_reader_and_a_column_of_a_table(self, tmp_path: Path) -> None:
        kept = chat(user("hi"), id="a", labels=(Label(name="reward", value=0.0),))
        run = make_run([kept], metrics=["conversation.turns"], out=tmp_path / "one", workers=1, label="reward")
        assert rows(run)["a"] == ("0", "lost", "reward: 0")
        table = tmp_path / "chats.csv"
        table.write_text(
            "conversation_id,role,content,solved\na,user,hi,\na,assistant,hello,no\nb,user,hi,yes\nb,assistant,hey,yes\n"
        )
        run = make_run(table, metrics=["conversation.turns"], out=tmp_path / "two", workers=1, label="solved")
        assert {id: row[1] for id, row in rows(run).items()} == {"a": "lost", "b": "done"}

    def test_any_number_of_workers_gives_the_same(self, tmp_path: Path) -> None:
        conversations = labelled({f"c{number:02}": number % 2 for number in range(40)})
        runs = [
            make_run(
                conversations,
                metrics=["conversation.turns", "outcome.success"],
                out=tmp_path / str(workers),
                workers=workers,
                label="verdict",
                part_bytes=2000,
            )
            for workers in (1, 2)
        ]
        assert rows(runs[0]) == rows(runs[1])
        assert runs[0].summary.label == runs[1].summary.label


class TestWhatALabelLeads:
    def test_the_ranking(self, tmp_path: Path) -> None:
        conversations = [
            chat(user("hi"), id=id, extras={"verdict": verdict, "wait": wait})
            for id, verdict, wait in [("a", "pass", 9.0), ("b", "fail", 1.0), ("c", "fail", 2.0), ("d", "pass", 1.0)]
        ]
        run = make_run(
            conversations, metrics=[grade("wait", LOWER, "s")], label="verdict", out=tmp_path / "run", workers=1
        )
        # lost before done, whatever they waited; c waited longer than b, a longer than d
        assert [(one.conversation, one.outcome) for one in worst(run, 9)] == [
            ("c", "lost"),
            ("b", "lost"),
            ("a", "done"),
            ("d", "done"),
        ]

    def test_within_what_is_lost_the_number_that_is_further_off(self, tmp_path: Path) -> None:
        values = {"a": 3, "b": 1, "c": 5, "d": 2}
        assert [one.conversation for one in worst(scored(tmp_path, values, "verdict >= 4"), 9)] == ["b", "d", "a", "c"]
        low = scored(tmp_path / "low", values, "verdict <= 2")
        assert [one.conversation for one in worst(low, 9)] == ["c", "a", "d", "b"]

    def test_pass_hat_k(self, tmp_path: Path) -> None:
        conversations = [
            chat(user("hi"), id=f"{task}{trial}", dimensions={"scenario_id": task}, extras={"reward": reward})
            for task, rewards in {"x": (1, 1, 1), "y": (1, 0, 1)}.items()
            for trial, reward in enumerate(rewards)
        ]
        run = make_run(conversations, metrics=["outcome"], label="reward", out=tmp_path / "run", workers=1)
        figures = {figure.key: figure.value for figure in run.summary.metrics}
        assert figures["outcome.success"] == pytest.approx(5 / 6)
        # all three trials of x pass, of y they do not: (1 + 0) ÷ 2; at least one of three passes in both
        assert figures["outcome.success.pass_hat@k3"] == 0.5
        assert figures["outcome.success.pass_at@k3"] == 1.0


class TestTheCommand:
    @pytest.fixture
    def logs(self, tmp_path: Path) -> Path:
        lines = [
            {
                "id": id,
                "csat": csat,
                "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}],
            }
            for id, csat in [("a", 5), ("b", 2)]
        ]
        path = tmp_path / "chats.jsonl"
        path.write_text("\n".join(json.dumps(line) for line in lines))
        return path

    def test_takes_a_label(self, logs: Path, tmp_path: Path) -> None:
        ended = command("score", logs, "--label", "csat >= 4", "--metrics", "outcome", "--out", tmp_path / "run")
        assert ended.code == 0
        assert "chats that reach their goal  50.0 %" in ended.out
        listed = command("show", tmp_path / "run")
        assert "lost     lost: csat: 2" in listed.out

    def test_refuses_a_field_that_is_not_there(self, logs: Path, tmp_path: Path) -> None:
        ended = command("score", logs, "--label", "cast", "--out", tmp_path / "run")
        assert ended.code == 2
        assert "no conversation has a field 'cast'" in ended.err
        assert "did you mean csat?" in ended.err


class TestByAnyField:
    def test_groups_by_metadata_and_extras(self, tmp_path: Path) -> None:
        conversations = [
            chat(
                user("hi"),
                id=f"c{number}",
                extras={"team": "x" if number < 2 else "y", "metadata": {"tier": {"n": number}}},
            )
            for number in range(4)
        ]
        run = make_run(conversations, metrics=["turns"], by=[["team"], ["tier.n"]], out=tmp_path / "run", workers=1)
        assert [(group.by, group.conversations) for group in run.summary.groups] == [
            ({"team": "x"}, 2),
            ({"team": "y"}, 2),
            *(({"tier.n": str(number)}, 1) for number in range(4)),
        ]
        assert run.read_report.warnings == []

    def test_of_very_many_values_the_rare_ones_are_counted(self, tmp_path: Path) -> None:
        # 150 values of two conversations each, and 100 of one: of 250 groups 200 may be shown; 100 are equal
        keys = [f"k{number % 150}" for number in range(300)] + [f"r{number}" for number in range(100)]
        conversations = [chat(user("hi"), id=f"c{place}", extras={"key": key}) for place, key in enumerate(keys)]
        run = make_run(conversations, metrics=["turns"], by=[["key"]], out=tmp_path / "run", workers=1)
        assert len(run.summary.groups) == 150
        (small,) = run.summary.small_groups
        assert (small.by, small.minimum, small.groups, small.conversations) == (["key"], 2, 100, 100)
