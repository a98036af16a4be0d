"""The commands as a user meets them: what they print, what they exit with."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from convoscope.metrics.registry import whole_metrics
from convoscope.runs.make import make_run
from support.command_line import convoscope, run
from support.generated import FEW, chat, write_lines

COMMANDS = ["score", "inspect", "metrics", "formats", "runs", "sql", "demo"]
MINE = ("score", "chats.jsonl", "-m", ",".join(FEW), "--out", "runs/mine")


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with logs and one run of them, `runs/mine`."""
    folder = tmp_path_factory.mktemp("work")
    write_lines(folder / "chats.jsonl", range(30))
    assert convoscope(*MINE, cwd=folder).code == 0
    return folder


@pytest.mark.parametrize(
    "names", [("agent.repetition,conversation.turns",), ("agent.repetition", "conversation.turns")]
)
def test_metrics_named_several_times_add_up(tmp_path: Path, names: tuple[str, ...]) -> None:
    write_lines(tmp_path / "chats.jsonl", range(3))
    options = [option for name in names for option in ("--metrics", name)]
    ended = convoscope("score", "chats.jsonl", *options, "--full", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert "\nagent.repetition " in ended.out
    assert "\nconversation.turns " in ended.out
    assert "2 of 2 metrics can be measured" in convoscope("inspect", "chats.jsonl", *options, cwd=tmp_path).out


class TestHelp:
    def test_lists_every_command(self) -> None:
        ended = convoscope("--help")
        assert ended.code == 0
        for command in COMMANDS:
            assert f"  {command} " in ended.out

    def test_version(self) -> None:
        assert convoscope("--version").out.startswith("convoscope 0.")

    def test_an_unknown_command_is_bad_usage(self) -> None:
        assert convoscope("frobnicate").code == 2


class TestScore:
    def test_prints_the_answer_and_where_the_run_is(self, tmp_path: Path) -> None:
        write_lines(tmp_path / "chats.jsonl", range(10))
        ended = convoscope("score", "chats.jsonl", cwd=tmp_path)
        assert ended.code == 0
        assert ended.err == ""
        (run,) = (tmp_path / "runs").iterdir()
        lines = ended.out.splitlines()
        assert lines[0] == "These logs do not say how the chats ended."
        assert f"page  runs/{run.name}/report.html" in lines
        assert lines[-1].startswith(f"next  convoscope show runs/{run.name} ")
        assert "timing.response_latency p95" not in ended.out
        full = convoscope("score", "chats.jsonl", "--full", cwd=tmp_path)
        assert full.out.startswith(f"runs/{run.name}: 10 conversations")
        assert "timing.response_latency p95" in full.out

    def test_json_holds_the_summary_the_report_and_the_folder(self, scored: Path) -> None:
        told = convoscope(*MINE, "--json", cwd=scored).json
        assert told["run"] == "runs/mine"
        assert told["summary"]["conversations"] == 30
        assert told["read_report"]["files"]["chats.jsonl"]["format"] == "openai-chat"

    def test_metrics_can_be_chosen(self, scored: Path) -> None:
        told = convoscope("score", "chats.jsonl", "-m", "turns, answer", "-o", "runs/few", "--json", cwd=scored).json
        chosen = {figure["metric"] for figure in told["summary"]["metrics"]}
        assert chosen >= {"conversation.turns", "answer.exact_match", "answer.f1"}
        assert {name.split(".")[0] for name in chosen - {"conversation.turns"}} == {"answer"}

    def test_groups_can_be_asked_for(self, scored: Path) -> None:
        told = convoscope(*MINE[:4], "--by", "flow,agent", "-o", "runs/by", "--json", cwd=scored).json
        assert [group["by"] for group in told["summary"]["groups"]] == [
            {"flow": "orders", "agent": f"agent-{number}"} for number in range(3)
        ]

    def test_an_unknown_metric_is_bad_usage_with_a_suggestion(self, scored: Path) -> None:
        ended = convoscope("score", "chats.jsonl", "-m", "exact_mach", cwd=scored)
        assert ended.code == 2
        assert "did you mean" in ended.err
        assert "exact_match" in ended.err

    def test_a_missing_file_is_bad_usage(self, tmp_path: Path) -> None:
        ended = convoscope("score", "nowhere.jsonl", cwd=tmp_path)
        assert ended.code == 2
        assert ended.err.startswith("error: nowhere.jsonl: there is no such file")

    def test_nothing_readable_is_exit_2_and_says_what_was_found(self, tmp_path: Path) -> None:
        (tmp_path / "x.json").write_text('{"shopping": []}')
        ended = convoscope("score", "x.json", cwd=tmp_path)
        assert ended.code == 2
        assert "fields: shopping" in ended.err
        assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").iterdir())

    def test_one_bad_line_is_a_warning_and_exit_0(self, tmp_path: Path) -> None:
        (tmp_path / "chats.jsonl").write_text(json.dumps(chat(1)) + "\n{broken\n" + json.dumps(chat(2)) + "\n")
        ended = convoscope(*MINE, cwd=tmp_path)
        assert ended.code == 0
        assert "chats.jsonl:2" in ended.err
        assert "warning" in ended.err

    def test_strict_makes_it_exit_2(self, tmp_path: Path) -> None:
        (tmp_path / "chats.jsonl").write_text(json.dumps(chat(1)) + "\n{broken\n")
        assert convoscope("score", "chats.jsonl", "--strict", cwd=tmp_path).code == 2

    @pytest.mark.parametrize("option", [("--limit", "0"), ("--workers", "0"), ("--format", "parchment")])
    def test_bad_options_are_bad_usage(self, option: tuple[str, str], scored: Path) -> None:
        ended = convoscope("score", "chats.jsonl", *option, cwd=scored)
        assert ended.code == 2
        assert ended.err.startswith("error: ")

    def test_parts_of_metrics_are_told_in_full(self, scored: Path) -> None:
        again = ("chats.jsonl", "-m", "tools", "-o", "runs/parts")
        part = "\ntools.tool_call_validity.rejected_rate "
        for command in (("score", *again), ("runs", "show", "runs/parts")):
            plain, asked = convoscope(*command, cwd=scored), convoscope(*command, "--full", cwd=scored)
            assert (plain.code, asked.code) == (0, 0)
            assert (part in plain.out, part in asked.out) == (False, True)
            # A part stands where its whole stands.
            lines = [line.split(" ")[0] for line in asked.out.splitlines() if line.startswith("tools.")]
            assert lines == sorted(lines)

    def test_metrics_with_nothing_to_measure_are_named_with_the_reason(self, tmp_path: Path) -> None:
        write_lines(tmp_path / "chats.jsonl", range(11, 15))  # which have no ground truth
        ended = convoscope("score", "chats.jsonl", "-m", "turns,exact_match,f1", "--full", cwd=tmp_path)
        assert "\nwithout a value:\n  answer.exact_match, answer.f1 (no ground truth)\n" in ended.out

    @pytest.mark.parametrize("command", [("score",), ("inspect",), ("view", "trace")])
    def test_an_unknown_turn_rule_is_bad_usage(self, command: tuple[str, ...], scored: Path) -> None:
        ended = convoscope(*command, "chats.jsonl", "--turns", "sentence", cwd=scored)
        assert ended.code == 2
        assert ended.err == "error: unknown turn rule 'sentence'\n  the turn rules are exchange, eva\n"

    def test_a_log_cannot_steer_the_terminal(self, tmp_path: Path) -> None:
        evil = {"messages": [{"role": "user", "content": "x"}], "\x1b[31mred": 1}
        (tmp_path / "evil.jsonl").write_text(json.dumps(evil) + "\n")
        ended = convoscope("score", "evil.jsonl", "-m", "turns", cwd=tmp_path)
        assert ended.code == 0
        assert "\x1b" not in ended.out + ended.err


class TestInspect:
    def test_says_what_it_is_what_can_be_measured_and_what_is_missing(self, scored: Path) -> None:
        short = convoscope("inspect", "chats.jsonl", cwd=scored)
        assert short.code == 0
        assert 'chats.jsonl: openai-chat, "messages"' in short.out
        assert len(short.out.splitlines()) <= 40
        assert max(map(len, short.out.splitlines())) <= 80
        ended = convoscope("inspect", "chats.jsonl", "--full", cwd=scored)
        assert ended.code == 0
        assert 'openai-chat  "messages"' in ended.out
        assert "the right answer, as `ground_truth` beside the messages" in ended.out

    def test_json(self, scored: Path) -> None:
        told = convoscope("inspect", "chats.jsonl", "--json", cwd=scored).json
        planned = {one["metric"]: one for one in told["plan"]["metrics"]}
        # every fifth chat of thirty has a ground truth
        assert planned["answer.f1"]["applies_to"] == 6
        assert planned["answer.f1"]["missing"][0]["code"] == "no_ground_truth"
        assert planned["answer.f1"]["missing"][0]["conversations"] == 24

    def test_something_unreadable_is_exit_2(self, tmp_path: Path) -> None:
        (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0" + bytes(100))
        ended = convoscope("inspect", "photo.jpg", cwd=tmp_path)
        assert ended.code == 2
        assert "photo.jpg: is a picture" in ended.err


class TestMetricsAndFormats:
    def test_metrics_lists_and_explains(self) -> None:
        assert "answer.f1" in convoscope("metrics").out
        assert "F1 = 2PR" in convoscope("metrics", "f1_scorer").out
        (told,) = convoscope("metrics", "f1", "--json").json
        assert told["metric"] == "answer.f1"
        assert told["needs"] == ["no_agent_response", "no_ground_truth"]

    def test_formats_lists(self) -> None:
        names = {one["format"] for one in convoscope("formats", "--json").json}
        assert names >= {"convoscope", "openai-chat", "openai-responses"}

    def test_the_schema_can_be_printed(self) -> None:
        assert convoscope("formats", "convoscope", "--schema").json["title"].startswith("Convoscope conversation")
        assert "ground_truth" in convoscope("formats", "standard-data", "--schema").json["properties"]

    def test_an_unknown_format_is_bad_usage(self) -> None:
        assert convoscope("formats", "parchment").code == 2


def test_numbers_of_metrics_agree(tmp_path: Path) -> None:
    """Whatever says how many metrics there are, or how many were measured, says the same."""
    write_lines(tmp_path / "chats.jsonl", range(3))

    def numbers(pattern: str, *command: str) -> list[int]:
        match = re.search(pattern, " ".join(convoscope(*command, cwd=tmp_path).out.split()))
        assert match is not None, command
        return [int(number) for number in match.groups()]

    total = len(whole_metrics(entry["metric"] for entry in convoscope("metrics", "--json").json))
    ready, planned = numbers(r"(\d+) of (\d+) metrics can be measured", "inspect", "chats.jsonl")
    absent, scored = numbers(r"(\d+) of (\d+) metrics not measured", "score", "chats.jsonl", "--out", "runs/all")
    _, shown = numbers(r"(\d+) of (\d+) metrics measured", "show", "runs/all", "chat-00000")
    (listed,) = numbers(r"runs/all \S+ 3 (\d+)", "runs", "list")
    assert {planned, scored, shown, listed} == {total}
    assert 0 < total - absent <= ready  # what can be measured may still have no value


class TestRuns:
    def test_list_and_show(self, scored: Path) -> None:
        assert "runs/mine" in convoscope("runs", "list", cwd=scored).out
        shown = convoscope("runs", "show", "runs/mine", "--full", cwd=scored)
        assert "conversation.turns" in shown.out
        assert convoscope("runs", "show", "runs/mine", "--json", cwd=scored).json["receipt"]["valid"] is True

    def test_invalidate(self, tmp_path: Path) -> None:
        write_lines(tmp_path / "chats.jsonl", range(3))
        convoscope("score", "chats.jsonl", "-m", "turns", "-o", "runs/a", cwd=tmp_path)
        ended = convoscope(
            "runs", "invalidate", "runs/a", "--reason", "wrong labels", "--superseded-by", "b", cwd=tmp_path
        )
        assert ended.code == 0
        assert "INVALID since" in convoscope("runs", "show", "runs/a", cwd=tmp_path).out
        (listed,) = convoscope("runs", "list", "--json", cwd=tmp_path).json
        assert listed["receipt"]["invalid_reason"] == "wrong labels"
        assert listed["receipt"]["superseded_by"] == "b"

    def test_a_damaged_run_does_not_hide_the_others(self, tmp_path: Path) -> None:
        write_lines(tmp_path / "chats.jsonl", range(3))
        for name in ("a", "b", "c"):
            convoscope("score", "chats.jsonl", "-m", "turns", "-o", f"runs/{name}", cwd=tmp_path)
        (tmp_path / "runs" / "a" / "receipt.json").write_text("{")
        (tmp_path / "runs" / "b" / "summary.json").unlink()
        ended = convoscope("runs", "list", cwd=tmp_path)
        (listed,) = (line for line in ended.out.splitlines() if line.startswith("runs/"))
        assert listed.split()[0] == "runs/c"
        assert ended.code == 2
        assert "runs/a/receipt.json is damaged" in ended.err
        assert "runs/b/summary.json is missing or damaged" in ended.err
        ended = convoscope("runs", "list", "--json", cwd=tmp_path)
        assert [run["run"] for run in ended.json] == ["runs/c"]
        assert ended.code == 2

    def test_what_is_not_a_run(self, tmp_path: Path) -> None:
        ended = convoscope("runs", "show", "nothing", cwd=tmp_path)
        assert ended.code == 2
        assert "no run at nothing" in ended.err

    def test_no_runs_at_all(self, tmp_path: Path) -> None:
        assert convoscope("runs", "list", cwd=tmp_path).out == "no run in runs\n"


class TestSql:
    def test_asks_one_run(self, scored: Path) -> None:
        query = "SELECT count(*) AS n FROM conversations"
        assert convoscope("sql", query, "--run", "runs/mine", cwd=scored).out.split() == ["n", "30"]
        assert convoscope("sql", query, "--run", "runs/mine", "--json", cwd=scored).json == [{"n": 30}]

    def test_asks_the_latest_run_unless_told_otherwise(self, tmp_path: Path) -> None:
        for name, count in (("first", 3), ("second", 5)):
            log = write_lines(tmp_path / "chats.jsonl", range(count))
            make_run(log, metrics=["turns"], out=tmp_path / "runs" / name, workers=1)
        query = "SELECT count(*) AS n FROM conversations"
        ended = convoscope("sql", query, cwd=tmp_path)
        assert ended.out.split() == ["n", "5"]
        assert ended.err == "asked runs/second, the latest of 2 runs; --all-runs asks all\n"
        # 3 of the one and 5 of the other
        ended = convoscope("sql", query, "--all-runs", cwd=tmp_path)
        assert (ended.out.split(), ended.err) == (["n", "8"], "")
        assert convoscope("sql", query, "--all-runs", "--run", "runs/first", cwd=tmp_path).code == 2

    def test_a_run_in_the_position_of_the_query(self, scored: Path) -> None:
        ended = convoscope("sql", "runs/mine", "SELECT 1", cwd=scored)
        assert (ended.code, "convoscope sql --run runs/mine 'SELECT 1'" in ended.err) == (2, True)
        ended = convoscope("sql", "runs/mine", cwd=scored)
        assert (ended.code, "runs/mine is a folder, not a query" in ended.err) == (2, True)
        long = f"SELECT 1 AS n WHERE '{'x' * 5000}' <> ''"
        assert convoscope("sql", long, "--run", "runs/mine", cwd=scored).out.split() == ["n", "1"]

    def test_a_bad_query_is_bad_usage(self, scored: Path) -> None:
        ended = convoscope("sql", "SELEC 1", "--run", "runs/mine", cwd=scored)
        assert ended.code == 2
        assert "the query failed" in ended.err


def on_a_terminal(folder: Path, *arguments: str, ends: int = 0, **environment: str) -> str:
    """What the command writes when a person sits before it."""
    ours, theirs = pty.openpty()
    with ThreadPoolExecutor(1) as reader:
        seen = reader.submit(_all_of, ours)
        with open(theirs, "r+b", buffering=0) as terminal:
            code = run(arguments, cwd=folder, streams=(terminal,) * 3, TERM="xterm-256color", **environment)
    os.close(ours)
    assert code == ends
    return seen.result().decode()


def _all_of(terminal: int) -> bytes:
    """What is written to a terminal until nobody has it open any more."""
    seen = b""
    with contextlib.suppress(OSError):
        while block := os.read(terminal, 65536):
            seen += block
    return seen


class TestOnATerminal:
    @pytest.mark.parametrize(
        ("arguments", "ends"),
        [
            (("metrics", "audio.mos"), 0),
            (("inspect", "chats.jsonl", "--full"), 0),
            (("score", "chats.jsonl", "--full", "--out", "runs/full"), 0),
            (("score", "chats.jsonl", "--judge", "gpt-4o"), 2),
        ],
    )
    def test_no_line_is_wider(self, scored: Path, arguments: tuple[str, ...], ends: int) -> None:
        """Of 80 columns, but for commands to copy; a pipe gets an error in one line."""
        seen = on_a_terminal(scored, *arguments, ends=ends, COLUMNS="80")
        lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen).replace("\r\n", "\n").split("\n")
        shown = [line.rpartition("\r")[2] for line in lines]
        assert any(len(line) > 60 for line in shown)
        assert [line for line in shown if len(line) > 80 and "convoscope " not in line] == []

    def test_tables_are_ruled_and_coloured(self, scored: Path) -> None:
        seen = on_a_terminal(scored, "runs", "show", "runs/mine", "--full", COLUMNS="200")
        assert "─" in seen
        assert "\x1b[1m" in seen

    def test_no_bar_is_in_the_lines_of_a_dry_run(self, scored: Path) -> None:
        judge = "openai:m@http://127.0.0.1:9/v1"
        seen = on_a_terminal(scored, "score", "chats.jsonl", "--judge", judge, "--dry-run", COLUMNS="80")
        assert "Nothing was sent." in seen
        assert "conversations, " not in seen

    def test_no_color_is_honoured(self, scored: Path) -> None:
        seen = on_a_terminal(scored, "runs", "show", "runs/mine", NO_COLOR="1", COLUMNS="200")
        assert "\x1b[3" not in seen

    def test_progress_shows_rate_and_time_left(self, tmp_path: Path) -> None:
        write_lines(tmp_path / "chats.jsonl", range(50))
        seen = on_a_terminal(tmp_path, "score", "chats.jsonl", "-m", "turns", COLUMNS="200")
        assert "conversations," in seen
        assert "/s" in seen

    def test_in_a_pipe_there_is_neither(self, scored: Path) -> None:
        ended = convoscope("runs", "show", "runs/mine", cwd=scored)
        assert "─" not in ended.out
        assert "\x1b" not in ended.out


@pytest.mark.parametrize("command", [("inspect",), ("score", "--out", "run")])
def test_a_limit_that_no_machine_counts_to_is_none(command: tuple[str, ...], tmp_path: Path) -> None:
    logs = write_lines(tmp_path / "chats.jsonl", range(5))
    ended = convoscope(*command, logs, "--metrics", "turns", "--limit", 10**23, cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert "read 5 conversations" in ended.out


def test_workers_that_no_machine_can_start_are_refused(tmp_path: Path) -> None:
    logs = write_lines(tmp_path / "chats.jsonl", range(5))
    ended = convoscope("score", logs, "--workers", 10**23, cwd=tmp_path)
    assert ended.code == 2
    assert ended.err == f"error: --workers must be at most 1,000, not {10**23:,}\n"
    assert "fault" not in ended.err


class TestAReaderThatHasSeenEnough:
    """`convoscope … | head -1`."""

    @staticmethod
    def code(folder: Path, *arguments: str) -> int:
        """The exit code of a command whose output nobody reads after the first line."""
        program = "from convoscope.cli.main import program; program()"
        command = subprocess.Popen(
            [sys.executable, "-c", program, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert command.stdout is not None
        assert command.stderr is not None
        command.stdout.close()
        complaint = command.stderr.read()
        command.stderr.close()
        assert complaint == b""
        return command.wait(timeout=60)

    @pytest.mark.parametrize("arguments", [("metrics",), ("--help",), ("runs", "show", "runs/mine", "--json")])
    def test_is_no_failure(self, scored: Path, arguments: tuple[str, ...]) -> None:
        assert self.code(scored, *arguments) == 0

    def test_a_missed_target_stays_one(self, scored: Path) -> None:
        assert self.code(scored, "report", "runs/mine", "--target", "conversation.turns > 99") == 1


def test_files_that_gave_nothing_are_named(tmp_path: Path) -> None:
    write_lines(tmp_path / "chats.jsonl", range(2))
    for number in range(4):
        (tmp_path / f"other-{number}.json").write_text('{"unheard": "of"}')
    ended = convoscope("inspect", tmp_path, "--full", cwd=tmp_path)
    assert "4 files gave none: other-0.json, other-1.json, other-2.json and 1 more" in ended.out


def test_what_to_do_about_an_unknown_format_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text('{"trace": "t-1", "observations": []}')
    ended = convoscope("inspect", "odd.json", cwd=tmp_path)
    assert ended.code == 2
    assert "unknown JSON format; fields: trace, observations" in ended.err
    assert ended.err.count("lists what can be read") == 1
