"""A run is a folder that can be copied, read without us, resumed, and marked invalid."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

import convoscope
from convoscope.conversation import Conversation, Participant, StateEntered, Text, Utterance
from convoscope.errors import InputError, NothingReadable, RunError, UsageError
from convoscope.metrics import CONVERSATION, COUNT, NEITHER, Observation, measured, metric
from convoscope.metrics.registry import installed
from convoscope.runs.make import make_run as score
from convoscope.runs.run import PAGE
from convoscope.runs.summary import SmallGroups
from convoscope.scores.observation import ERROR
from convoscope.statistics.summary import Figure
from support.generated import FEW, chat, write_lines

FILES = {
    "conversation_scores.parquet",
    "conversations.parquet",
    "flows.json",
    "looks",
    "parts.json",
    "profiles.parquet",
    "read-report.json",
    "receipt.json",
    "scores.parquet",
    "summary.json",
}
TABLES = {"conversation_scores.parquet", "conversations.parquet", "scores.parquet"}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    (folder / "deeper").mkdir(parents=True)
    write_lines(folder / "b.jsonl", range(40, 90))
    write_lines(folder / "a.jsonl", range(40))
    (folder / "deeper" / "one.json").write_text(json.dumps(chat(200), indent=1))
    (folder / "array.json").write_text(json.dumps([chat(number) for number in range(100, 130)]))
    return folder


def figure(run: convoscope.Run, metric: str, reduction: str = "") -> Figure:
    (found,) = [one for one in run.summary.figures if one.metric == metric and one.reduction == reduction]
    return found


def summary_bytes(run: convoscope.Run) -> bytes:
    return (run.folder / "summary.json").read_bytes()


class TestTheFolder:
    def test_holds_exactly_these_files(self, logs: Path, tmp_path: Path) -> None:
        run = convoscope.score(logs, out=tmp_path / "run", workers=1)
        assert {path.name for path in run.folder.iterdir()} == FILES | {PAGE}
        for table in TABLES:
            assert [path.name for path in (run.folder / table).iterdir()] == ["part-000000.parquet"]
        assert not (tmp_path / "run.partial").exists()

    def test_and_a_table_of_states_where_there_are_any(self, tmp_path: Path) -> None:
        talk = Conversation(id="a", timeline=(StateEntered(seq=0, state="greet"),))
        run = score([talk], metrics=FEW, out=tmp_path / "run", workers=1)
        assert {path.name for path in run.folder.iterdir()} == FILES | {"states.parquet", "states_combined.parquet"}

    def test_a_table_has_a_file_for_each_part(self, logs: Path, tmp_path: Path) -> None:
        run = score(logs, metrics=FEW, out=tmp_path / "run", workers=2, part_bytes=4000)
        parts = [number for number, count in enumerate(run.receipt.parts) if count]
        assert len(parts) > 2
        assert sum(run.receipt.parts) == 121
        for table in TABLES:
            names = sorted(path.name for path in (run.folder / table).iterdir())
            assert names == [f"part-{number:06d}.parquet" for number in parts]
            with duckdb.connect() as connection:
                query = f"SELECT part, max(row) + 1 FROM '{run.folder}/{table}/*.parquet' GROUP BY 1 ORDER BY 1"
                counted = connection.execute(query).fetchall()
            assert counted == [(number, run.receipt.parts[number]) for number in parts]

    def test_can_be_read_without_us(self, logs: Path, tmp_path: Path) -> None:
        run = score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        with duckdb.connect() as connection:
            kept = f"'{run.folder}/conversations.parquet/*.parquet'"
            count = connection.execute(f"SELECT count(*) FROM {kept}").fetchall()
            body = connection.execute(f"SELECT body->>'$.id' FROM {kept} ORDER BY part, row LIMIT 1").fetchall()
        # 40 + 50 lines, 30 elements, one document
        assert count == [(121,)]
        assert body == [("chat-00000",)]

    def test_can_be_moved(self, logs: Path, tmp_path: Path) -> None:
        run = score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        summary, scores = run.summary, [str(score) for score in run.scores()]
        again = convoscope.Run.open(shutil.move(run.folder, tmp_path / "elsewhere"))
        assert again.summary == summary
        assert [str(score) for score in again.scores()] == scores

    def test_keeps_every_conversation_as_it_was_scored(self, logs: Path, tmp_path: Path) -> None:
        run = score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        kept = list(run.conversations())
        # In the order of the input, and not of their ids: `b.jsonl` comes after `array.json`.
        assert kept == list(convoscope.read(logs))
        assert [one.id for one in kept[39:41]] == ["chat-00039", "chat-00100"]
        assert [run.number(one.id) for one in kept[::40]] == [0, 40, 80, 120]
        assert run.conversation("chat-00007") == next(one for one in kept if one.id == "chat-00007")

    def test_no_path_of_this_machine_in_the_results(self, logs: Path, tmp_path: Path) -> None:
        run = score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        for name in ("summary.json", "receipt.json", "read-report.json"):
            assert str(tmp_path) not in (run.folder / name).read_text()


class TestSameInputSameBytes:
    def test_whatever_the_number_of_workers(self, logs: Path, tmp_path: Path) -> None:
        runs = [
            score(logs, metrics=FEW, out=tmp_path / f"run{workers}", workers=workers, part_bytes=10_000)
            for workers in (1, 2, 3)
        ]
        assert len({summary_bytes(run) for run in runs}) == 1
        assert len({(run.folder / "read-report.json").read_bytes() for run in runs}) == 1
        assert len({tuple(map(str, run.scores())) for run in runs}) == 1

    def test_whatever_the_order_of_files(self, logs: Path, tmp_path: Path) -> None:
        paths = [logs / "a.jsonl", logs / "b.jsonl", logs / "array.json"]
        one = score(paths, metrics=FEW, out=tmp_path / "one", workers=1)
        other = score(paths[::-1], metrics=FEW, out=tmp_path / "other", workers=1)
        assert summary_bytes(one) == summary_bytes(other)

    def test_whatever_the_size_of_parts(self, logs: Path, tmp_path: Path) -> None:
        runs = [
            score(logs / "a.jsonl", metrics=FEW, out=tmp_path / str(size), workers=1, part_bytes=size)
            for size in (500, 1_000_000)
        ]
        one, other = runs
        assert len(one.receipt.parts) > 20
        assert len(other.receipt.parts) == 1
        assert summary_bytes(one) == summary_bytes(other)

    def test_another_setting_is_another_config_hash(self, logs: Path, tmp_path: Path) -> None:
        hashes = {
            score(logs, out=tmp_path / name, workers=1, **settings).receipt.config_hash
            for name, settings in {
                "some": {"metrics": FEW},
                "one": {"metrics": ["turns"]},
                "limited": {"metrics": FEW, "limit": 5},
                "grouped": {"metrics": FEW, "by": [["flow"]]},
                "named": {"metrics": FEW, "format": "openai-chat"},
            }.items()
        }
        assert len(hashes) == 5
        assert all(one.startswith("sha256:") and len(one) == 71 for one in hashes)

    def test_another_input_is_another_input_hash(self, logs: Path, tmp_path: Path) -> None:
        one = score(logs, metrics=FEW, out=tmp_path / "one", workers=1)
        with (logs / "a.jsonl").open("a") as stream:
            stream.write(json.dumps(chat(999)) + "\n")
        other = score(logs, metrics=FEW, out=tmp_path / "other", workers=1)
        assert one.receipt.input_hash != other.receipt.input_hash
        assert one.receipt.config_hash == other.receipt.config_hash


class TestGroups:
    def counted(self, **groups: list[int]) -> list[Conversation]:
        """Conversations by the values of dimensions: `flow=[2, 5]` is two of f0 and five of f1."""
        return [
            Conversation(
                id=f"{name}-{value}-{number}",
                dimensions={name: f"{name[0]}{value}"},
                timeline=(Utterance(seq=0, speaker="user", intended=Text("Hello?")),),
                participants=(Participant("user", "user"),),
            )
            for name, sizes in groups.items()
            for value, size in enumerate(sizes)
            for number in range(size)
        ]

    def test_small_ones_are_counted_and_have_no_figures(self, tmp_path: Path) -> None:
        talks = self.counted(flow=[2, 5, 4, 9], agent=[1, 3])
        run = score(talks, metrics=["turns"], out=tmp_path / "run", workers=1)
        found = {tuple(one.by.items()): one.conversations for one in run.summary.groups}
        assert found == {(("flow", "f1"),): 5, (("flow", "f3"),): 9}
        # f0 with 2 and f2 with 4 conversations; a0 with 1 and a1 with 3
        assert run.summary.small_groups == [
            SmallGroups(by=["flow"], minimum=5, groups=2, conversations=6),
            SmallGroups(by=["agent"], minimum=5, groups=2, conversations=4),
        ]

    def test_whoever_asks_for_them_gets_them_whole(self, tmp_path: Path) -> None:
        talks = self.counted(flow=[2, 5, 4, 9], agent=[1, 3])
        run = score(talks, metrics=["turns"], out=tmp_path / "run", workers=1, by=[("flow",)])
        assert [(one.by["flow"], one.conversations) for one in run.summary.groups] == [
            ("f0", 2),
            ("f1", 5),
            ("f2", 4),
            ("f3", 9),
        ]
        # The mean, and two percentiles beside it
        assert [len(one.metrics) for one in run.summary.groups] == [3] * 4
        assert run.summary.small_groups == []

    def test_where_all_are_large_enough_none_is_left_out(self, tmp_path: Path) -> None:
        talks = self.counted(flow=[5, 6])
        run = score(talks, metrics=["turns"], out=tmp_path / "run", workers=1)
        assert [one.conversations for one in run.summary.groups] == [5, 6]
        assert run.summary.small_groups == []

    def test_a_dimension_that_nobody_carries_is_warned_of(self, logs: Path, tmp_path: Path) -> None:
        by = [("mood",), ("flow",), ("flow", "mood")]
        run = score(logs, metrics=["turns"], out=tmp_path / "run", workers=1, by=by)
        assert {tuple(group.by) for group in run.summary.groups} == {("flow",)}
        first, second = run.read_report.warnings
        assert first.startswith("no conversation has mood: there are no groups by it; ")
        assert second.startswith("no conversation has flow and mood: there are no groups by it; ")
        assert "scenario_id" in first  # the fields that there are

    def test_one_that_somebody_carries_is_not(self, logs: Path, tmp_path: Path) -> None:
        run = score(logs, metrics=["turns"], out=tmp_path / "run", workers=1, by=[("flow",)])
        assert run.read_report.warnings == []


class TestAnExistingFolder:
    def test_a_run_that_would_come_out_the_same_is_opened(self, logs: Path, tmp_path: Path) -> None:
        one = score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        again = score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        assert again.receipt.run_id == one.receipt.run_id

    def test_a_run_that_was_killed_at_the_very_last_moment_is_opened_and_tidied(
        self, logs: Path, tmp_path: Path
    ) -> None:
        one = score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        # The folder had its name already; journal and lock were still to go.
        (one.folder / "journal.jsonl").write_text('{"type": "header", "depends_on": {}}\n')
        (one.folder / "lock").touch()
        again = score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        assert again.receipt.run_id == one.receipt.run_id
        assert {path.name for path in again.folder.iterdir()} == FILES

    def test_a_folder_that_holds_more_than_a_run_keeps_it(self, logs: Path, tmp_path: Path) -> None:
        one = score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        (one.folder / "notes.txt").write_text("mine")
        again = score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        assert {path.name for path in again.folder.iterdir()} == FILES | {"notes.txt"}

    def test_another_run_is_never_overwritten(self, logs: Path, tmp_path: Path) -> None:
        score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        with pytest.raises(RunError, match="holds another run"):
            score(logs, out=tmp_path / "run", metrics=["turns"], workers=1)

    def test_somebody_elses_folder_is_left_alone(self, logs: Path, tmp_path: Path) -> None:
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "thesis.txt").write_text("years of work")
        with pytest.raises(RunError, match="is not a run"):
            score(logs, metrics=FEW, out=tmp_path / "mine", workers=1)
        assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"

    def test_somebody_elses_partial_folder_is_left_alone(self, logs: Path, tmp_path: Path) -> None:
        (tmp_path / "run.partial").mkdir()
        (tmp_path / "run.partial" / "thesis.txt").write_text("years of work")
        with pytest.raises(RunError, match="not an unfinished run"):
            score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        assert (tmp_path / "run.partial" / "thesis.txt").exists()

    def test_an_empty_folder_may_be_used(self, logs: Path, tmp_path: Path) -> None:
        (tmp_path / "run").mkdir()
        assert score(logs, metrics=FEW, out=tmp_path / "run", workers=1).folder == tmp_path / "run"


class TestWhatIsScored:
    def test_a_limit_takes_the_first_in_order(self, logs: Path, tmp_path: Path) -> None:
        run = score(logs, metrics=FEW, out=tmp_path / "run", limit=45, workers=2, part_bytes=1000)
        ids = {one.id for one in run.conversations()}
        # a.jsonl comes first with chats 0 to 39, then array.json from 100 on
        assert ids == {f"chat-{number:05d}" for number in (*range(40), *range(100, 105))}
        assert run.summary.conversations == 45

    def test_a_limit_of_nothing_is_refused(self, logs: Path, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="--limit must be at least 1"):
            score(logs, metrics=FEW, out=tmp_path / "run", limit=0)

    @pytest.mark.parametrize(
        ("metrics", "keys"),
        [
            ("conversation.turns", ["conversation.turns"]),
            ("turns, tools.calls,", ["conversation.turns", "tools.calls"]),
            (installed().declared["tools.calls"], ["tools.calls"]),
        ],
        ids=["a name", "several", "a declaration"],
    )
    def test_metrics_may_be_one_text_or_one_declaration(
        self, metrics: Any, keys: list[str], logs: Path, tmp_path: Path
    ) -> None:
        run = score(logs, metrics=metrics, out=tmp_path / "run", workers=1)
        assert sorted(run.receipt.metrics) == keys

    def test_conversations_made_in_python(self, tmp_path: Path) -> None:
        talk = Conversation(
            id="mine",
            participants=(Participant("user", "user"), Participant("assistant", "assistant")),
            timeline=(
                Utterance(seq=0, speaker="user", intended=Text("Hello?")),
                Utterance(seq=1, speaker="assistant", intended=Text("Good day to you.")),
            ),
        )
        run = score([talk], metrics=FEW, out=tmp_path / "run", workers=1)
        assert figure(run, "agent.words_per_turn").value == 4
        assert list(run.conversations()) == [msgspec.structs.replace(talk, source=run.conversation("mine").source)]

    def test_two_conversations_with_one_id_are_both_kept(self, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl").write_text(json.dumps(chat(1)) + "\n")
        (tmp_path / "b.jsonl").write_text(json.dumps({**chat(2), "id": "chat-00001"}) + "\n")
        paths = [tmp_path / "b.jsonl", tmp_path / "a.jsonl"]
        run = score(paths, metrics=FEW, out=tmp_path / "run", workers=1)
        assert sorted({score.conversation for score in run.scores()}) == ["chat-00001", "chat-00001~2"]
        assert [one.id for one in run.conversations()] == ["chat-00001", "chat-00001~2"]
        assert (run.folder / "renamed.parquet").is_file()
        assert run.conversation("chat-00001").dimensions["model"] == "model-1"
        assert any("chat-00001" in warning for warning in run.read_report.warnings)

    def test_a_metric_that_raises_is_an_error_and_the_run_goes_on(self, logs: Path, tmp_path: Path) -> None:
        @metric("test.broken", version=1, observes=CONVERSATION, unit=COUNT, better=NEITHER)
        def broken(conversation: Conversation) -> Observation:
            """Breaks on every second conversation."""
            if int(conversation.id[-1]) % 2:
                raise RuntimeError("not today")
            return measured(conversation, 1)

        run = score(logs, metrics=[broken, "turns"], out=tmp_path / "run", workers=2, part_bytes=4000)
        errors = [score for score in run.scores("test.broken") if score.status == ERROR]
        assert {score.observation.detail for score in errors} == {"RuntimeError: not today"}
        # chats 0-89, 100-129 and 200: 61 even numbers, 60 odd ones
        assert figure(run, "test.broken").samples_measured == 61
        assert figure(run, "test.broken").skipped_reasons == {"metric_raised": 60}
        assert figure(run, "conversation.turns").samples_measured == 121

    def test_one_bad_file_in_many_is_a_warning(self, logs: Path, tmp_path: Path) -> None:
        (logs / "bad.json").write_text('{"messages": [')
        run = score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        assert run.summary.conversations == 121
        assert [problem.file for problem in run.read_report.problems] == ["bad.json"]

    def test_strict_refuses_and_leaves_nothing_behind(self, logs: Path, tmp_path: Path) -> None:
        (logs / "bad.json").write_text('{"messages": [')
        with pytest.raises(InputError, match=r"bad\.json"):
            score(logs, metrics=FEW, out=tmp_path / "run", workers=1, strict=True)
        assert not list(tmp_path.glob("run*"))

    def test_strict_refuses_a_value_that_could_not_be_used(self, tmp_path: Path) -> None:
        (tmp_path / "items.csv").write_text("agent_task,agent_exit,metadata\nWhere?,yes,{}\nWhen?,perhaps,{\n")
        with pytest.raises(InputError) as refused:
            score(tmp_path / "items.csv", metrics=FEW, out=tmp_path / "run", workers=1, strict=True)
        assert refused.value.message.splitlines() == [
            "2 values that could not be used",
            "  items.csv:3 metadata: bad_json",
            "  items.csv:3 agent_exit: not_a_boolean",
        ]
        assert not list(tmp_path.glob("run*"))
        run = score(tmp_path / "items.csv", metrics=FEW, out=tmp_path / "run", workers=1)
        with pytest.raises(InputError, match="2 values"):
            score(tmp_path / "items.csv", metrics=FEW, out=run.folder, workers=1, strict=True)

    def test_nothing_readable_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "notes.json").write_text('{"shopping": ["milk"]}')
        with pytest.raises(NothingReadable, match="shopping"):
            score(tmp_path / "notes.json", out=tmp_path / "run")
        assert not list(tmp_path.glob("run*"))

    def test_records_that_give_no_conversation_are_an_error_too(self, tmp_path: Path) -> None:
        (tmp_path / "odd.jsonl").write_text('{"schema": "convoscope.conversation/1"}\n')
        with pytest.raises(NothingReadable, match="id"):
            score(tmp_path / "odd.jsonl", out=tmp_path / "run", workers=1)
        assert not list(tmp_path.glob("run*"))


class TestLargeAndOdd:
    def test_large_conversations(self, tmp_path: Path) -> None:
        record = {"messages": [{"role": "user", "content": "word " * 200_000}]}
        # 1 MB each, and one of 20 MB: more than the merge may hold at once.
        lines = [json.dumps({**record, "id": f"c{number:03d}"}) for number in range(150)]
        lines.append(json.dumps({"id": "huge", "messages": record["messages"] * 20}))
        (tmp_path / "big.jsonl").write_text("\n".join(lines))
        run = score(tmp_path / "big.jsonl", metrics=["turns"], out=tmp_path / "run", workers=2)
        assert run.summary.conversations == 151
        assert [one.id for one in run.conversations()] == [*(f"c{number:03d}" for number in range(150)), "huge"]

    @pytest.mark.parametrize("name", ["a[1]", "a*b", "a?b", "it's", "~x", "with blank"])
    def test_a_run_may_have_any_name(self, name: str, tmp_path: Path) -> None:
        (tmp_path / "aXb").mkdir()
        logs = write_lines(tmp_path / "chats.jsonl", range(3))
        run = score(logs, metrics=["turns"], out=tmp_path / name, workers=1)
        assert [score.conversation for score in run.scores("turns")] == [f"chat-{number:05d}" for number in range(3)]

    def test_workers_that_share_no_memory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from convoscope.scoring.engines import local

        monkeypatch.setattr(local, "can_share", lambda: False)
        logs = write_lines(tmp_path / "chats.jsonl", range(40))
        spawned = score(logs, metrics=FEW, out=tmp_path / "spawned", workers=2, part_bytes=8000)
        monkeypatch.undo()
        assert summary_bytes(spawned) == summary_bytes(score(logs, metrics=FEW, out=tmp_path / "here", workers=1))

    def test_one_task_of_two_domains_is_two_clusters(self, tmp_path: Path) -> None:
        records = [
            {**chat(0 if domain == "a" else 1), "id": f"{domain}{trial}", "domain": domain, "scenario_id": "7"}
            for domain in "ab"
            for trial in (1, 2)
        ]
        (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, records)))
        run = score(tmp_path / "a.jsonl", metrics=["turns"], out=tmp_path / "run", workers=1)
        assert figure(run, "conversation.turns").interval.clusters == 2


class TestResuming:
    def test_another_process_at_work_is_noticed(self, logs: Path, tmp_path: Path) -> None:
        from convoscope.runs.partial import Partial

        busy = Partial(tmp_path / "run", {"settings": "x"})
        try:
            with pytest.raises(RunError, match="another process"):
                score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        finally:
            busy.discard()

    def test_changed_settings_start_afresh_and_say_why(self, logs: Path, tmp_path: Path) -> None:
        from convoscope.runs.partial import Partial

        Partial(tmp_path / "run", {"settings": "other", "input": "same"}).close()
        run = score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        assert any("starting afresh" in one and "settings" in one for one in run.read_report.warnings)


class TestValidity:
    def test_a_run_is_valid_until_somebody_says_otherwise(self, logs: Path, tmp_path: Path) -> None:
        run = score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        before = summary_bytes(run)
        run.invalidate("the labels were wrong", superseded_by="run-2")
        receipt = json.loads((run.folder / "receipt.json").read_text())
        assert receipt["valid"] is False
        assert receipt["invalid_reason"] == "the labels were wrong"
        assert receipt["superseded_by"] == "run-2"
        assert receipt["invalidated_at"].endswith("Z")
        assert summary_bytes(run) == before

    def test_without_a_reason_nothing_is_invalidated(self, logs: Path, tmp_path: Path) -> None:
        run = score(logs, metrics=FEW, out=tmp_path / "run", workers=1)
        with pytest.raises(RunError, match="reason"):
            run.invalidate("  ")
        assert convoscope.Run.open(run.folder).receipt.valid

    def test_what_is_not_a_run_is_said_to_be_none(self, tmp_path: Path) -> None:
        with pytest.raises(RunError, match="no run at"):
            convoscope.Run.open(tmp_path / "nowhere")
        with pytest.raises(RunError, match="is not a run"):
            convoscope.Run.open(tmp_path)


def test_a_run_of_an_earlier_version_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "receipt.json").write_text('{"schema": "convoscope.receipt/1", "run_id": "run-1"}')
    with pytest.raises(RunError, match="earlier version") as caught:
        convoscope.Run.open(tmp_path)
    assert caught.value.hint == "score the logs again"


class TestFromPython:
    """Figures by name, the worst by default, and objects in the place of files."""

    def test_a_figure_by_its_name(self, tmp_path: Path) -> None:
        run = score(write_lines(tmp_path / "chats.jsonl", range(3)), metrics=["turns"], out=tmp_path / "run", workers=1)
        assert run["conversation.turns"] == run.summary.metrics[0]
        with pytest.raises(KeyError, match=r"no figure 'conversation.turn'; close: conversation.turns"):
            _ = run["conversation.turn"]

    def test_the_worst_ten(self, tmp_path: Path) -> None:
        run = score(
            write_lines(tmp_path / "chats.jsonl", range(12)), metrics=["turns"], out=tmp_path / "run", workers=1
        )
        assert len(run.worst()) == 10
        assert run.worst(2) == run.worst()[:2]

    def test_records_as_dicts_give_the_figures_of_their_file(self, tmp_path: Path) -> None:
        records = [chat(number) for number in range(3)]
        made = score(records, metrics=FEW, out=tmp_path / "made", workers=1)
        logs = write_lines(tmp_path / "conversations.jsonl", range(3))
        assert made.summary.metrics == score(logs, metrics=FEW, out=tmp_path / "read", workers=1).summary.metrics

    def test_conversations_of_a_run_that_was_just_made_are_those_that_it_keeps(self, tmp_path: Path) -> None:
        run = score(write_lines(tmp_path / "chats.jsonl", range(3)), metrics=["turns"], out=tmp_path / "run", workers=1)
        assert run.held == dict(enumerate(run.conversations()))
