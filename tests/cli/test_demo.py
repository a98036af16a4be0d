"""`convoscope demo` as somebody runs it who has nothing yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command_line import Ended, convoscope


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("empty")


@pytest.fixture(scope="module")
def ended(folder: Path) -> Ended:
    return convoscope("demo", cwd=folder)


def test_it_ends_well_and_says_what_to_do_next(ended: Ended) -> None:
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0] == "scoring 312 invented calls of Skerry Lines, a ferry company: runs/logs/demo"
    assert lines[-1] == "next  convoscope score YOUR-LOGS"
    assert len(lines) < 35


def test_it_names_what_was_planted(ended: Ended) -> None:
    for cause in ("collect_vehicle asks", "talks over callers", "mishears codes"):
        assert cause in ended.out


def test_its_logs_can_be_scored_again(ended: Ended, folder: Path) -> None:
    (run,) = (path for path in (folder / "runs").iterdir() if path.name != "logs")
    assert (run / "report.html").exists()
    again = convoscope("score", "runs/logs/demo", "--by", "agent", cwd=folder)
    # The same logs and settings are the same run; the demo has a line above and one below.
    assert ended.out.splitlines()[1:-1] == again.out.splitlines()


def test_json_is_that_of_score(ended: Ended, folder: Path) -> None:
    assert convoscope("demo", "--json", cwd=folder).json["summary"]["conversations"] == 312
