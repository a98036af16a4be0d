"""A run grows with its logs: what is unchanged stays, and the figures are those of one run over everything."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import convoscope
from convoscope.analysis.targets import RECORDED, run_checks
from convoscope.errors import RunError, UsageError
from convoscope.runs.make import make_run as score
from convoscope.runs.prune import prune
from convoscope.runs.run import Run
from support.generated import FEW, chat

PART_BYTES = 8_000
"""About a dozen chats."""


class Logs(NamedTuple):
    """Logs that grow, and a run of them."""

    folder: Path
    run: Path

    def append(self, name: str, *records: dict[str, Any]) -> None:
        with (self.folder / name).open("a") as stream:
            stream.writelines(json.dumps(record) + "\n" for record in records)

    def scored(self, out: str = "", **options: Any) -> Run:
        out_folder = self.run.with_name(out) if out else self.run
        given = {"metrics": FEW, "workers": 1, "part_bytes": PART_BYTES, **options}
        return score(self.folder, out=out_folder, **given)


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return made_logs(tmp_path)


def made_logs(folder: Path) -> Logs:
    (folder / "logs").mkdir()
    return Logs(folder / "logs", folder / "run")


def summary(run: Run) -> bytes:
    return (run.folder / "summary.json").read_bytes()


def assert_is_one_run(grown: Run, whole: Run, *, reports: bool = True) -> None:
    """The grown run says what the run over everything says, in each file and each row."""
    assert summary(grown) == summary(whole)
    assert (grown.tables.own("summary.json")).read_bytes() == summary(whole)
    assert [(one.id, len(one.timeline)) for one in grown.conversations()] == [
        (one.id, len(one.timeline)) for one in whole.conversations()
    ]
    assert list(map(str, grown.scores())) == list(map(str, whole.scores()))
    for name in ("conversations", "records_seen", "records_used", "problem_count", "ignored") if reports else ():
        assert getattr(grown.read_report, name) == getattr(whole.read_report, name), name


def part_files(run: Run) -> dict[str, int]:
    """The files of parts, with what a file system knows them by."""
    return {path.name: path.stat().st_ino for path in (run.folder / "scores.parquet").iterdir()}


class TestWhatIsScored:
    def test_parts_of_unchanged_lines_stay(self, logs: Logs) -> None:
        logs.append("chats.jsonl", *map(chat, range(60)))
        before = part_files(logs.scored())
        logs.append("chats.jsonl", *map(chat, range(60, 70)))
        run = logs.scored()
        after = part_files(run)
        assert before.items() < after.items()
        # Ten chats are at most two parts of a dozen each.
        assert 1 <= len(after) - len(before) <= 2
        assert run.receipt.generation == 1
        assert_is_one_run(run, logs.scored("whole"))

    def test_a_file_that_comes_before_the_others_is_the_first(self, logs: Logs) -> None:
        logs.append("b.jsonl", *map(chat, range(30)))
        before = part_files(logs.scored())
        logs.append("a.jsonl", *map(chat, range(100, 110)))
        run = logs.scored()
        assert before.items() < part_files(run).items()
        assert next(run.conversations()).id == "chat-00100"
        assert_is_one_run(run, logs.scored("whole"))

    def test_a_line_that_was_cut_is_read_again_when_it_is_whole(self, logs: Logs) -> None:
        logs.append("chats.jsonl", *map(chat, range(20)))
        line = json.dumps(chat(20)) + "\n"
        with (logs.folder / "chats.jsonl").open("a") as stream:
            stream.write(line[:40])
        assert logs.scored().read_report.problem_count == 1
        with (logs.folder / "chats.jsonl").open("a") as stream:
            stream.write(line[40:])
        run = logs.scored()
        assert run.read_report.problem_count == 0
        assert run.summary.conversations == 21
        assert_is_one_run(run, logs.scored("whole"))

    def test_a_conversation_that_goes_on_in_a_new_file_is_counted_once(self, logs: Logs) -> None:
        whole = chat(0)
        half = {**whole, "messages": whole["messages"][:3]}
        logs.append("monday.jsonl", half, *map(chat, range(1, 9)))
        assert logs.scored().summary.conversations == 9
        logs.append("tuesday.jsonl", whole)
        run = logs.scored()
        one_run = logs.scored("whole")
        assert_is_one_run(run, one_run)

    def test_messages_of_an_id_are_joined_over_files(self, logs: Logs) -> None:
        def message(id: int, role: str, text: str) -> dict[str, Any]:
            return {"conversation_id": f"c{id}", "role": role, "content": text}

        logs.append("monday.jsonl", *(message(id, "user", f"Question {id}?") for id in range(5)))
        assert logs.scored().summary.conversations == 5
        logs.append("tuesday.jsonl", *(message(id, "assistant", f"Answer {id}.") for id in range(3, 7)))
        run = logs.scored()
        # c0 to c6; those of c3 and c4 have both sides
        assert run.summary.conversations == 7
        assert [len(one.timeline) for one in run.conversations() if one.id in ("c3", "c4")] == [2, 2]
        assert_is_one_run(run, logs.scored("whole"))

    def test_an_empty_log_is_in_the_read_report(self, logs: Logs) -> None:
        logs.append("chats.jsonl", *map(chat, range(5)))
        logs.scored()
        (logs.folder / "empty.jsonl").touch()
        run = logs.scored()
        assert run.read_report.problem_count == 1
        assert_is_one_run(run, logs.scored("whole"))

    def test_nothing_new_is_the_same_run(self, logs: Logs) -> None:
        logs.append("chats.jsonl", *map(chat, range(5)))
        first = logs.scored()
        (logs.folder / "chats.jsonl").touch()
        again = logs.scored()
        assert again.receipt == first.receipt

    def test_a_rule_of_the_whole_input_that_changes_scores_everything_again(self, logs: Logs) -> None:
        """0 and 1 are verdicts as long as there is nothing else: a 3 in a new file changes what the old ones mean."""
        logs.append("a.jsonl", *({**chat(number), "resolved": number % 2} for number in range(20)))
        assert logs.scored(label="resolved").summary.label is not None
        logs.append("b.jsonl", {**chat(30), "resolved": 3})
        run = logs.scored(label="resolved")
        assert_is_one_run(run, logs.scored("whole", label="resolved"))


@pytest.mark.parametrize("looks", [None, b"", b"no such file"])
def test_a_copy_of_an_unchanged_record_is_found_with_and_without_kept_looks(logs: Logs, looks: bytes | None) -> None:
    logs.append("a.jsonl", *map(chat, range(5)))
    kept = logs.scored().folder / "looks"
    assert kept.stat().st_size > 0
    if looks is None:
        kept.unlink()
    elif looks:
        kept.write_bytes(looks)
    # One chat of the first file again, and one that is new.
    logs.append("b.jsonl", chat(3), chat(7))
    run = logs.scored()
    assert run.summary.conversations == 6
    assert_is_one_run(run, logs.scored("whole"))


class TestWhatIsRefused:
    def test_other_settings_are_another_run(self, logs: Logs) -> None:
        logs.append("chats.jsonl", chat(1))
        logs.scored()
        logs.append("chats.jsonl", chat(2))
        with pytest.raises(RunError, match="holds another run: turn_rule, input changed"):
            logs.scored(turns="eva")

    def test_conversations_that_are_no_longer_in_the_logs_do_not_leave_unasked(self, logs: Logs) -> None:
        logs.append("a.jsonl", *map(chat, range(3)))
        logs.append("b.jsonl", *map(chat, range(3, 6)))
        before = summary(logs.scored())
        (logs.folder / "a.jsonl").unlink()
        with pytest.raises(RunError, match=r"no longer in the logs as they were: 3 conversations of .*: chat-00000"):
            logs.scored()
        assert summary(Run.open(logs.run)) == before
        run = logs.scored(prune=True)
        assert [one.id for one in run.conversations()] == ["chat-00003", "chat-00004", "chat-00005"]
        assert any("they left the run" in warning for warning in run.read_report.warnings)
        assert summary(run) == summary(logs.scored("whole"))

    def test_a_log_that_was_rotated_loses_nothing(self, logs: Logs) -> None:
        logs.append("live.jsonl", *map(chat, range(3)))
        logs.scored()
        (logs.folder / "live.jsonl").rename(logs.folder / "live-1.jsonl")
        logs.append("live.jsonl", *map(chat, range(3, 5)))
        assert_is_one_run(logs.scored(), logs.scored("whole"))

    def test_another_log_of_the_same_name_does_not_replace_the_run(self, logs: Logs) -> None:
        """Records without ids are known by file and line alone: what is in the line must be the same."""

        def without_id(number: int) -> dict[str, Any]:
            return {name: value for name, value in chat(number).items() if name != "id"}

        logs.append("calls.jsonl", *map(without_id, range(3)))
        before = summary(logs.scored())
        (logs.folder / "calls.jsonl").write_text("")
        logs.append("calls.jsonl", *map(without_id, range(100, 104)))
        with pytest.raises(
            RunError, match=r"no longer in the logs as they were: 3 conversations of .*: calls\.jsonl:1"
        ):
            logs.scored()
        assert summary(Run.open(logs.run)) == before

    def test_an_invalid_run_does_not_grow(self, logs: Logs) -> None:
        logs.append("chats.jsonl", chat(1))
        logs.scored().invalidate("wrong labels")
        logs.append("chats.jsonl", chat(2))
        with pytest.raises(RunError, match="marked invalid"):
            logs.scored()

    def test_an_id_that_is_used_again_does_not_replace_a_conversation(self, logs: Logs) -> None:
        """Monday's log makes room for Tuesday's, whose ids begin at 0 again."""
        logs.append("monday.jsonl", *map(chat, range(3)))
        before = summary(logs.scored())
        (logs.folder / "monday.jsonl").unlink()
        logs.append("tuesday.jsonl", *({**chat(number + 10), "id": chat(number)["id"]} for number in range(3)))
        with pytest.raises(RunError, match=r"no longer in the logs as they were: 3 conversations of .*: chat-00000"):
            logs.scored()
        assert summary(Run.open(logs.run)) == before

    def test_a_conversation_that_would_get_shorter_is_lost(self, logs: Logs) -> None:
        whole = chat(0)
        logs.append("a.jsonl", {**whole, "messages": whole["messages"][:2]}, chat(1))
        logs.append("b.jsonl", whole, chat(2))
        logs.scored()
        (logs.folder / "b.jsonl").write_text("")
        logs.append("b.jsonl", chat(2))
        with pytest.raises(RunError, match=r"1 conversation of .*: chat-00000"):
            logs.scored()

    def test_a_label_that_comes_is_no_loss(self, logs: Logs) -> None:
        logs.append("a.jsonl", *map(chat, range(3)))
        logs.scored()
        (logs.folder / "a.jsonl").write_text("")
        logs.append("a.jsonl", *({**chat(number), "csat": 5} for number in range(3)))
        assert_is_one_run(logs.scored(), logs.scored("whole"))

    def test_a_log_without_ids_that_was_rotated_loses_nothing(self, logs: Logs) -> None:
        nameless = [{name: value for name, value in chat(number).items() if name != "id"} for number in range(4)]
        logs.append("live.jsonl", *nameless[:3])
        logs.scored()
        (logs.folder / "live.jsonl").rename(logs.folder / "live-1.jsonl")
        logs.append("live.jsonl", nameless[3])
        assert logs.scored().summary.conversations == 4

    def test_a_pruned_run_says_how_it_goes_on(self, logs: Logs) -> None:
        logs.append("a.jsonl", *map(dated, range(20)))
        prune(logs.scored(), "2026-11-05")
        logs.append("a.jsonl", dated(21))
        with pytest.raises(RunError, match="--since 2026-11-05 goes on with it"):
            logs.scored()


class TestKeep:
    """What is gone from the logs stays in the run."""

    def test_the_figures_are_over_both(self, logs: Logs) -> None:
        logs.append("a.jsonl", *map(chat, range(20)))
        logs.append("b.jsonl", *map(chat, range(20, 30)))
        whole = summary(logs.scored())
        (logs.folder / "a.jsonl").unlink()
        run = logs.scored(keep=True)
        assert run.summary.conversations == run.read_report.conversations == 30
        # Summaries name the hash of what was read; all else is the same.
        figures = [json.loads(text)["metrics"] for text in (whole, summary(run))]
        assert figures[0] == figures[1]
        assert any("20 conversations" in text and "over them, too" in text for text in run.read_report.warnings)
        assert logs.scored(keep=True).receipt == run.receipt

    def test_what_goes_on_or_comes_back_counts_once(self, logs: Logs) -> None:
        whole = chat(0)
        logs.append("a.jsonl", {**whole, "messages": whole["messages"][:2]}, *map(chat, range(1, 5)))
        logs.append("b.jsonl", chat(9))
        logs.scored()
        (logs.folder / "a.jsonl").unlink()
        logs.append("b.jsonl", whole, {**chat(1), "csat": 4})
        run = logs.scored(keep=True)
        # 0 to 4 and 9
        assert run.summary.conversations == 6
        # Of the first one all messages; its instructions are none.
        lengths = {one.id: len(one.timeline) for one in run.conversations()}
        assert lengths["chat-00000"] == len(whole["messages"]) - 1
        logs.append("a.jsonl", *map(chat, range(5)))
        assert_is_one_run(logs.scored(keep=True), logs.scored("whole"))

    def test_an_id_that_is_used_again_is_a_second_conversation(self, logs: Logs) -> None:
        logs.append("monday.jsonl", chat(0))
        logs.scored()
        (logs.folder / "monday.jsonl").unlink()
        logs.append("tuesday.jsonl", {**chat(1), "id": chat(0)["id"]})
        assert [one.id for one in logs.scored(keep=True).conversations()] == ["chat-00000", "chat-00000~2"]

    def test_the_rest_of_a_conversation_that_stays_is_not_counted_again(self, logs: Logs) -> None:
        """Its first messages were in a log that is gone; a shorter history of another one is still there."""

        def messages(first: int, count: int) -> Iterator[dict[str, Any]]:
            for number in range(first, first + count):
                yield {"conversation_id": "joined", "role": ("user", "assistant")[number % 2], "content": f"{number}."}

        whole = chat(0)
        logs.append("a.jsonl", *messages(0, 4))
        logs.append("b.jsonl", *messages(4, 2))
        logs.append("c.jsonl", {**whole, "messages": whole["messages"][:3]}, chat(1))
        logs.append("d.jsonl", whole)
        before = {one.id: len(one.timeline) for one in logs.scored().conversations()}
        for name in ("a.jsonl", "d.jsonl"):
            (logs.folder / name).unlink()
        assert {one.id: len(one.timeline) for one in logs.scored(keep=True).conversations()} == before
        # Without what was kept, the rest is what there is.
        run = logs.scored(prune=True)
        assert_is_one_run(run, logs.scored("whole"))
        assert {one.id: len(one.timeline) for one in run.conversations()}["joined"] == 2

    @pytest.mark.parametrize("first", [2, 1])
    def test_joined_messages_that_go_on_after_their_log_count_once(self, logs: Logs, first: int) -> None:
        """With and without a message that both logs have."""

        def said(id: str, *numbers: int) -> Iterator[dict[str, Any]]:
            for number in numbers:
                role, at = ("user", "assistant")[number % 2], 1_760_000_000 + 60 * number
                yield {"conversation_id": id, "role": role, "content": f"{number} of {id}.", "timestamp": at}

        logs.append("monday.jsonl", *said("a", 0, 1), *said("b", 0, 1))
        logs.scored(keep=True)
        (logs.folder / "monday.jsonl").unlink()
        for name, number in (("tuesday.jsonl", first), ("wednesday.jsonl", 4)):
            logs.append(name, *said("a", *range(number, number + 3)), *said(name, 0, 1))
            run = logs.scored(keep=True)
            assert {one.id: len(one.timeline) for one in run.conversations() if one.id < "c"} == {"a": 2, "b": 2}
            assert run.read_report.ignored["goes_on_after_its_log"] == 1
            assert any("goes on after its log was gone" in one for one in run.read_report.warnings)
        assert run.summary.conversations == 4
        # It is still said when other logs come.
        logs.append("thursday.jsonl", chat(5))
        assert any("goes on after its log was gone" in one for one in logs.scored(keep=True).read_report.warnings)
        assert_is_one_run(logs.scored(prune=True), logs.scored("whole"))

    def test_a_session_that_goes_on_after_a_day_is_another_conversation(self, logs: Logs) -> None:
        def said(day: int) -> Iterator[dict[str, Any]]:
            for number in range(2):
                role, at = ("user", "assistant")[number], 1_760_000_000 + 86_400 * day + number
                yield {"session_id": "s", "role": role, "content": f"{number} of {day}.", "timestamp": at}

        logs.append("monday.jsonl", *said(0))
        logs.scored()
        (logs.folder / "monday.jsonl").unlink()
        logs.append("wednesday.jsonl", *said(2))
        assert logs.scored(keep=True).summary.conversations == 2

    def test_small_logs_that_are_deleted_one_after_the_other(self, logs: Logs) -> None:
        for number in range(20):
            for path in logs.folder.iterdir():
                path.unlink()
            logs.append(f"{number}.jsonl", chat(number), chat(number + 100))
            run = logs.scored(keep=True)
            assert run.summary.conversations == 2 * number + 2
        # Parts of what is gone are put together, too.
        assert len(list((run.folder / "scores.parquet").iterdir())) < 10

    def test_a_label_that_means_something_else_by_now_is_refused(self, logs: Logs) -> None:
        """Scores of 0 and 1 are verdicts, until a 5 comes: what is gone was scored by the first rule."""
        logs.append("a.jsonl", {**chat(0), "csat": 1}, {**chat(1), "csat": 0})
        logs.append("b.jsonl", {**chat(2), "csat": 1})
        logs.scored(label="csat", metrics=["outcome.success"])
        (logs.folder / "a.jsonl").unlink()
        logs.append("b.jsonl", {**chat(3), "csat": 0})
        run = logs.scored(label="csat", metrics=["outcome.success"], keep=True)
        # 1 and 1 of 1, 0, 1, 0
        assert run["outcome.success"].value == 0.5
        logs.append("b.jsonl", {**chat(4), "csat": 5})
        with pytest.raises(RunError, match="csat '0' says something else by now"):
            logs.scored(label="csat", metrics=["outcome.success"], keep=True)

    def test_without_keep_they_leave_only_with_prune(self, logs: Logs) -> None:
        logs.append("a.jsonl", *map(chat, range(3)))
        logs.append("b.jsonl", *map(chat, range(3, 6)))
        logs.scored()
        (logs.folder / "a.jsonl").unlink()
        logs.scored(keep=True)
        with pytest.raises(RunError, match="3 conversations"):
            logs.scored()
        assert summary(logs.scored(prune=True)) == summary(logs.scored("whole"))
        with pytest.raises(UsageError, match="name one of them"):
            logs.scored(keep=True, prune=True)


class TestReaders:
    def test_a_run_that_was_opened_before_it_grew_goes_on_as_it_was(self, logs: Logs) -> None:
        logs.append("chats.jsonl", *map(chat, range(20)))
        logs.scored()
        opened = Run.open(logs.run)
        logs.append("chats.jsonl", *map(chat, range(20, 30)))
        grown = logs.scored()
        assert opened.summary.conversations == 20
        assert len(opened.conversation_scores(all=True).to_list()) == 20 * len(FEW)
        assert grown.summary.conversations == 30

    def test_the_page_follows(self, logs: Logs) -> None:
        logs.append("chats.jsonl", *map(chat, range(3)))
        page = convoscope.score(logs.folder, metrics=FEW, out=logs.run, workers=1).folder / "report.html"
        before = page.read_bytes()
        convoscope.score(logs.folder, metrics=FEW, out=logs.run, workers=1)
        assert page.read_bytes() == before
        logs.append("chats.jsonl", chat(3))
        convoscope.score(logs.folder, metrics=FEW, out=logs.run, workers=1)
        assert page.read_bytes() != before


class TestThePage:
    """All that is remade of a run that grew, the page with answer and comparison, is that of one run."""

    def test_additions_give_the_page_of_one_run(self, logs: Logs) -> None:
        def with_model(number: int) -> dict[str, Any]:
            return {**chat(number), "model": f"model-{number % 2}", "metadata": {"region": "ab"[number % 3 % 2]}}

        for first in (0, 30, 45):
            logs.append(f"{first}.jsonl", *map(with_model, range(first, first + 15)))
            run = convoscope.score(logs.folder, out=logs.run, workers=1, part_bytes=PART_BYTES)
        assert run.receipt.generation == 2
        whole = convoscope.score(logs.folder, out=logs.run.parent / "other" / "run", workers=1)
        assert summary(run) == summary(whole)
        assert "chat-00044" in whole_page(run)  # it was unpacked
        assert whole_page(run) == whole_page(whole)


def whole_page(run: Run) -> str:
    """A page, unpacked, but for where the run is, when it was made and how long that took."""
    page = (run.folder / "report.html").read_text()
    unpacked = re.sub(r"[A-Za-z0-9+/=]{100,}", lambda packed: unfolded(packed[0]), page)
    return re.sub(r'"footer":"[^"]*"', "", unpacked).replace(str(run.folder), "RUN")


def unfolded(text: str) -> str:
    with suppress(ValueError, gzip.BadGzipFile):
        return gzip.decompress(base64.b64decode(text)).decode()
    return text


def dated(number: int) -> dict[str, Any]:
    """A chat of a day in November: the 1st, the 2nd, …; each tenth has no times."""
    record = chat(number)
    for message in record["messages"]:
        message.pop("timestamp", None)
        if number % 10:
            message["timestamp"] = f"2026-11-{1 + number % 9:02d}T10:00:00Z"
    return record


class TestDays:
    def test_since_leaves_out_what_began_before(self, logs: Logs) -> None:
        logs.append("chats.jsonl", *map(dated, range(20)))
        run = logs.scored(since="2026-11-05")
        # number % 9 is 4 to 8 for the 5th to the 9th; 0 and 10 have no day, and stay
        expected = [n for n in range(20) if n % 10 == 0 or n % 9 >= 4]
        assert [one.id for one in run.conversations()] == [f"chat-{n:05d}" for n in expected]
        assert run.read_report.ignored["conversation_before_since"] == 20 - len(expected)

    def test_since_is_a_day(self, logs: Logs) -> None:
        with pytest.raises(UsageError, match="--since May: not a day"):
            logs.scored(since="May")

    def test_a_pruned_run_is_one_that_was_scored_since_then(self, logs: Logs) -> None:
        logs.append("a.jsonl", *map(dated, range(30)))
        logs.append("b.jsonl", *({**dated(number), "resolved": number % 2} for number in range(30, 50)))
        before = logs.scored(label="resolved")
        pruned = prune(before, "2026-11-05")
        whole = logs.scored("whole", label="resolved", since="2026-11-05")
        assert pruned.dropped == 50 - whole.summary.conversations
        # chats 0, 10, 20, 30, 40
        assert pruned.undated == 5
        assert_is_one_run(pruned.run, whole)
        before_since = pruned.run.read_report.ignored["conversation_before_since"]
        assert before_since == pruned.dropped
        # It goes on from there, with the same day.
        logs.append("b.jsonl", {**dated(50), "resolved": 0}, {**dated(51), "resolved": 1})
        assert_is_one_run(
            logs.scored(label="resolved", since="2026-11-05"),
            logs.scored("again", label="resolved", since="2026-11-05"),
        )

    def test_nothing_to_prune(self, logs: Logs) -> None:
        logs.append("a.jsonl", *map(dated, range(5)))
        run = logs.scored()
        assert prune(run, "2026-11-01").dropped == 0
        assert Run.open(run.folder).receipt == run.receipt
        logs.append("b.jsonl", dated(7))
        with pytest.raises(RunError, match="all conversations"):
            prune(logs_without_undated(logs), "2027-01-01")


def logs_without_undated(logs: Logs) -> Run:
    (logs.folder / "a.jsonl").unlink()
    return logs.scored(prune=True)


def test_small_parts_become_one(logs: Logs) -> None:
    for number in range(18):
        logs.append(f"{number:02d}.jsonl", chat(number))
        run = logs.scored(metrics=["agent.words_per_turn", "tools.calls"])
    # Sixteen of one chat each became one, and two came after that.
    assert [run.receipt.parts[part] for part in run.tables.order] == [16, 1, 1]
    assert_is_one_run(run, logs.scored("whole", metrics=["agent.words_per_turn", "tools.calls"]))


class Step(NamedTuple):
    """What comes to the logs: some chats in a file, and what is special about them."""

    file: str
    first: int
    count: int
    kind: str


STEPS = st.builds(
    Step,
    st.sampled_from(["a.jsonl", "b.jsonl", "c.json", "joined.jsonl"]),
    st.integers(0, 40),
    st.integers(1, 6),
    st.sampled_from(["new", "new", "copies", "goes on"]),
)


LABELLED: dict[str, Any] = {"label": "csat >= 3", "metrics": ["agent.words_per_turn", "timing.response_latency"]}


def take(logs: Logs, step: Step) -> None:
    """Chats of the same numbers in several files are copies; a chat that goes on has more messages than before."""
    records = [{**chat(number), "csat": number % 5} for number in range(step.first, step.first + step.count)]
    if step.kind == "goes on":
        more = [{"role": "user", "content": "One more thing."}, {"role": "assistant", "content": "Yes?"}]
        records = [{**record, "messages": record["messages"] + more} for record in records]
    if step.file == "c.json":
        path = logs.folder / step.file
        known = json.loads(path.read_text()) if path.exists() else []
        path.write_text(json.dumps([*known, *records]))
    elif step.file == "joined.jsonl":
        messages = (
            {"conversation_id": f"joined-{record['id']}", "role": one["role"], "content": one["content"]}
            for record in records
            for one in record["messages"]
            if isinstance(one["content"], str) and one["role"] in ("user", "assistant")
        )
        logs.append(step.file, *messages)
    else:
        logs.append(step.file, *records)


@settings(max_examples=3, deadline=None)
@given(st.lists(STEPS, min_size=2, max_size=4))
def test_additions_give_the_bytes_of_one_run(tmp_path_factory: pytest.TempPathFactory, steps: list[Step]) -> None:
    logs = made_logs(tmp_path_factory.mktemp("growing"))
    for step in (Step("b.jsonl", 0, 3, "new"), *steps):
        take(logs, step)
        run = logs.scored(**LABELLED, prune=True)
    assert_is_one_run(run, logs.scored("whole", **LABELLED))


def drawn_steps() -> Iterator[Step]:
    """Thirty of them: each kind in each file, numbers that come back after a while."""
    for number in range(30):
        kind = ("new", "new", "copies", "goes on", "new")[number % 5]
        yield Step(("a.jsonl", "b.jsonl", "c.json", "joined.jsonl")[number % 4], 3 * number % 50, 1 + number % 4, kind)


def test_thirty_additions_give_the_bytes_of_one_run(logs: Logs) -> None:
    for step in drawn_steps():
        take(logs, step)
        run = logs.scored(**LABELLED, prune=True)
    assert run.receipt.generation == 29
    assert_is_one_run(run, logs.scored("whole", **LABELLED))


STATES = Path(__file__).parents[2] / "examples" / "state-events"


class TestFlows:
    """A definition says what the states of conversations mean: with another one, all of them are scored again."""

    @pytest.fixture
    def visits(self, logs: Logs) -> Logs:
        shutil.copy(STATES / "nightly.jsonl", logs.folder)
        return logs

    def scored(self, logs: Logs, out: str = "", **options: Any) -> Run:
        return logs.scored(out, metrics=["flow", "turns"], **options)

    def test_a_definition_that_comes_later_and_changes_and_goes(self, visits: Logs) -> None:
        before = summary(self.scored(visits))
        declared = visits.folder / "viewing.yaml"
        shutil.copy(STATES / "apartment_viewing.yaml", declared)
        run = self.scored(visits)
        assert [*run.flows] == ["apartment_viewing"]
        assert summary(run) != before
        assert_is_one_run(run, self.scored(visits, "declared"))
        # The booking is no success any more.
        declared.write_text(declared.read_text().replace("terminal: success", "terminal: failure"))
        changed = self.scored(visits)
        assert changed.receipt.generation == 2
        assert_is_one_run(changed, self.scored(visits, "changed"))
        declared.unlink()
        assert summary(self.scored(visits)) == before

    def test_chats_and_a_definition_at_once(self, visits: Logs) -> None:
        self.scored(visits)
        visits.append("chats.jsonl", *map(chat, range(5)))
        shutil.copy(STATES / "apartment_viewing.yaml", visits.folder)
        assert_is_one_run(self.scored(visits), self.scored(visits, "whole"))

    def test_what_is_gone_from_the_logs_cannot_be_scored_again(self, visits: Logs) -> None:
        visits.append("chats.jsonl", *map(chat, range(5)))
        conversations = self.scored(visits).summary.conversations
        (visits.folder / "nightly.jsonl").unlink()
        assert self.scored(visits, keep=True).summary.conversations == conversations
        shutil.copy(STATES / "apartment_viewing.yaml", visits.folder)
        with pytest.raises(RunError, match=r"flow definitions changed.*\n.*--prune takes them out"):
            self.scored(visits, keep=True)
        assert self.scored(visits, prune=True).summary.conversations == 5

    def test_chats_that_are_gone_have_no_flow(self, visits: Logs) -> None:
        visits.append("chats.jsonl", *map(chat, range(5)))
        conversations = self.scored(visits).summary.conversations
        (visits.folder / "chats.jsonl").unlink()
        shutil.copy(STATES / "apartment_viewing.yaml", visits.folder)
        assert self.scored(visits, keep=True).summary.conversations == conversations


class TestTargets:
    """They change no score: other targets are those of the run from then on."""

    @pytest.mark.parametrize(("before", "after"), [((), ("turns >= 100",)), (("turns >= 100",), ())])
    def test_other_targets(self, logs: Logs, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        logs.append("chats.jsonl", *map(chat, range(30)))
        parts = part_files(logs.scored(targets=before))
        run = logs.scored(targets=after)
        assert part_files(run) == parts
        assert [one.label for one in run_checks(run) if one.source == RECORDED] == ["missed"] * len(after)
        assert_is_one_run(run, logs.scored("whole", targets=after))

    def test_other_targets_and_new_lines_at_once(self, logs: Logs) -> None:
        logs.append("chats.jsonl", *map(chat, range(30)))
        parts = part_files(logs.scored())
        logs.append("chats.jsonl", *map(chat, range(30, 40)))
        run = logs.scored(targets="turns >= 100")
        assert parts.items() < part_files(run).items()
        assert_is_one_run(run, logs.scored("whole", targets="turns >= 100"))

    def test_a_run_with_a_limit_keeps_its_targets(self, logs: Logs) -> None:
        logs.append("chats.jsonl", *map(chat, range(30)))
        logs.scored(limit=5)
        with pytest.raises(RunError, match=r"targets changed\n.*report --target"):
            logs.scored(limit=5, targets="turns >= 100")

    def test_a_run_of_another_version_says_what_to_do(self, logs: Logs) -> None:
        logs.append("chats.jsonl", *map(chat, range(5)))
        run = logs.scored()
        receipt = json.loads((run.folder / "receipt.json").read_text())
        receipt["depends_on"]["version"] = "0.0.1"
        (run.folder / "receipt.json").write_text(json.dumps(receipt))
        with pytest.raises(
            RunError, match=r"version changed\n  .*scored again, by this version and with another --out"
        ):
            logs.scored()
