"""The plugin of pytest: one test for each target of a policy, and nothing that hides one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple

import pytest

from convoscope.runs.make import make_run
from support import warm_process
from support.generated import write_lines

POLICY = """
[score]
logs = "chats.jsonl"
metrics = "turns,f1,tools.calls"
out = "runs/team"
by = "model"

[[policy.target]]
rule = "turns >= 1"
[[policy.target]]
figure = "tools.calls"
at_least = 3
[[policy.target]]
rule = "f1 > 0.5"
[[policy.target]]
rule = "turns[model=model-1] <= 9"
[[policy.target]]
rule = "turns change <= 1"
"""


MAIN = "import sys, pytest\nsys.exit(pytest.main(sys.argv[1:]))\n"
REWRITE = "ignore::pytest.PytestAssertRewriteWarning"  # the process has imported it before
OPTIONS = ("-p", "no:cacheprovider", "-p", "no:randomly", "-c", os.devnull, "--rootdir", ".")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Chats without a ground truth, and a policy on them."""
    write_lines(tmp_path / "chats.jsonl", range(11, 15))
    (tmp_path / "convoscope.toml").write_text(POLICY)
    return tmp_path


class PytestRun(NamedTuple):
    """How pytest ended, and what it printed."""

    code: int
    lines: pytest.LineMatcher

    @property
    def outcomes(self) -> dict[str, int]:
        return pytest.RunResult.parse_summary_nouns(self.lines.lines)


def run(folder: Path, *arguments: str) -> PytestRun:
    """`pytest ARGUMENTS` in a process of its own."""
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryFile() as out, open(os.devnull, "rb") as nothing:
        script = Path(scratch) / "main.py"
        script.write_text(MAIN)
        env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "COLUMNS": "200"}
        streams = [nothing.fileno(), out.fileno(), out.fileno()]
        given = [script, "-p", "convoscope.pytest_plugin", *OPTIONS, "-W", REWRITE, *arguments]
        code = warm_process.run("python", given, cwd=folder, env=env, streams=streams)
        out.seek(0)
        return PytestRun(code, pytest.LineMatcher(out.read().decode().splitlines()))


def test_each_target_is_a_test(folder: Path) -> None:
    (folder / "test_own.py").write_text("def test_own(): pass\n")
    ended = run(folder, "--convoscope", "-v")
    assert ended.outcomes == {"passed": 3, "failed": 3}
    ended.lines.fnmatch_lines(
        [
            "convoscope.toml::turns >= 1 PASSED*",
            "convoscope.toml::tools.calls >= 3 FAILED*",
            "convoscope.toml::f1 > 0.5 FAILED*",
            "convoscope.toml::turns[[]model=model-1[]] <= 9 PASSED*",
            "convoscope.toml::turns change <= +1 FAILED*",
            "test_own.py::test_own PASSED*",
        ]
    )
    # Of the chats 11 to 14, only 12 calls a tool, once: a mean of 0.25.
    ended.lines.fnmatch_lines(
        [
            "tools.calls ≥ 3: failed: 0.25 *, n 4*",
            "*lowest (target ≥ 3):",
            "*chat-000??: 0",
            "*run *runs/team, page *runs/team/report.html",
            "answer.f1 > 0.500: undetermined: no ground truth",
            "conversation.turns change ≤ +1: undetermined: there is no baseline at *",
        ]
    )


def test_a_policy_that_merely_is_there_is_no_test(folder: Path) -> None:
    (folder / "test_own.py").write_text("def test_own(): pass\n")
    assert run(folder).outcomes == {"passed": 1}
    assert not (folder / "runs").exists()


def test_a_policy_is_named_as_a_file_or_chosen_by_its_test(folder: Path) -> None:
    assert run(folder, "convoscope.toml").outcomes == {"passed": 2, "failed": 3}
    assert run(folder, "convoscope.toml::turns >= 1").outcomes == {"passed": 1}
    (folder / "rules.toml").write_text('[policy]\ntarget = ["turns >= 2", "tools.calls <= 9"]\n')
    ended = run(folder, "--convoscope-policy", "rules.toml", "--convoscope-run", "runs/team", "rules.toml")
    assert ended.outcomes == {"passed": 2}


def test_what_only_warns_is_seen(folder: Path) -> None:
    (folder / "convoscope.toml").write_text(
        '[score]\nlogs = "chats.jsonl"\nmetrics = "turns,f1"\nout = "runs/team"\n[policy]\n'
        'when_undetermined = "warn"\ntarget = ["turns >= 1", "f1 > 0.5", "agent.talks_over_user < 5%"]\n'
    )
    ended = run(folder, "convoscope.toml")
    assert ended.outcomes == {"passed": 1, "skipped": 2, "warnings": 2}
    ended.lines.fnmatch_lines(["*PytestWarning: answer.f1 > 0.500: undetermined: no ground truth"])


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('[policy]\ntarget = ["truns > 1"]\n', ["*policy.target[[]1[]]: no figure is called 'truns'*"]),
        ("[policy]\n", ["*names no target*"]),
        ('[policy]\ntarget = ["turns"]\n', ["*'turns' is not a target*"]),
        ('[policy]\ntarget = ["turns > 1"]\n', ["*convoscope.toml names no logs to score*"]),
        ("[policy\n", ["*is not TOML*"]),
    ],
)
def test_a_wrong_policy_never_passes(folder: Path, text: str, lines: list[str]) -> None:
    has_logs = "[score]\nlogs = 'chats.jsonl'\nmetrics = 'turns'\n" if "truns" in text else ""
    (folder / "convoscope.toml").write_text(has_logs + text)
    ended = run(folder, "convoscope.toml")
    assert ended.code != pytest.ExitCode.OK
    assert not ended.outcomes.get("passed")
    ended.lines.fnmatch_lines(lines)


def test_a_policy_or_run_that_is_not_there_is_an_error(folder: Path) -> None:
    assert run(folder, "--convoscope-policy", "no.toml").code == pytest.ExitCode.USAGE_ERROR
    ended = run(folder, "convoscope.toml", "--convoscope-run", "runs/no")
    assert ended.outcomes == {"failed": 5}
    ended.lines.fnmatch_lines(["there is no run at *runs/no"])
    (folder / "convoscope.toml").unlink()
    assert run(folder, "--convoscope").code == pytest.ExitCode.USAGE_ERROR


def test_an_invalid_run_passes_nothing(folder: Path) -> None:
    make_run(folder / "chats.jsonl", metrics=["turns"], out=folder / "run").invalidate("wrong clock")
    (folder / "rules.toml").write_text('[policy]\ntarget = ["turns >= 1"]\n')
    ended = run(folder, "--convoscope-policy", "rules.toml", "--convoscope-run", "run", "rules.toml")
    assert ended.outcomes == {"failed": 1}
    ended.lines.fnmatch_lines(["*is marked invalid: wrong clock"])


def test_the_fixtures_score_and_check(folder: Path) -> None:
    (folder / "test_own.py").write_text(
        """
def test_scored(convoscope_score, convoscope_check):
    run = convoscope_score("chats.jsonl", metrics="turns,f1,tools.calls")
    assert run["conversation.turns"].n == 4
    convoscope_check(run, "turns >= 1", "tools.calls <= 1")

def test_records(convoscope_score):
    messages = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hello."}]
    assert convoscope_score([{"messages": messages}], metrics="turns")["conversation.turns"].value == 1

def test_missed(convoscope_score, convoscope_check):
    convoscope_check(convoscope_score("chats.jsonl", metrics="tools.calls"), "tools.calls >= 3")

def test_undetermined(convoscope_score, convoscope_check):
    convoscope_check(convoscope_score("chats.jsonl", metrics="f1"), "f1 >= 0.1")

def test_nothing(convoscope_score, convoscope_check):
    convoscope_check(convoscope_score("chats.jsonl", metrics="f1"))
"""
    )
    ended = run(folder)
    assert ended.outcomes == {"passed": 2, "failed": 3}
    ended.lines.fnmatch_lines(
        [
            "E *tools.calls ≥ 3: failed: 0.25 *",
            "E *answer.f1 ≥ 0.100: undetermined: no ground truth",
            "E *no target: nothing was checked",
        ]
    )
    assert not (folder / "runs").exists()


def test_nothing_is_imported_before_it_is_used(tmp_path: Path) -> None:
    """The process is a new one, which has imported nothing. The entry point names the same module."""
    (tmp_path / "test_unused.py").write_text(
        """
import sys

def test_unused():
    loaded = {name for name in sys.modules if name.partition(".")[0] in ("convoscope", "duckdb", "numpy", "msgspec")}
    assert loaded == {"convoscope", "convoscope.pytest_plugin"}
"""
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "convoscope.pytest_plugin", *OPTIONS]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    ended = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert "1 passed" in ended.stdout, ended.stdout
    assert [one.value for one in entry_points(group="pytest11", name="convoscope")] == ["convoscope.pytest_plugin"]
