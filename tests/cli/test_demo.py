"""`convoscope demo` as somebody runs it who has nothing yet."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from convoscope.demo import PlantedFault, make_calls
from support.command_line import Ended, convoscope


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("empty")


@pytest.fixture(scope="module")
def ended(folder: Path) -> Ended:
    """The settings of a project are no matter of the demo."""
    settings = folder / "convoscope.toml"
    settings.write_text('[score]\nlabel = "csat"\n[policy]\ntarget = ["outcome.success > 99%"]\n')
    done = convoscope("demo", cwd=folder)
    settings.unlink()
    return done


def test_it_ends_well_and_says_what_to_do_next(ended: Ended) -> None:
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0] == "scoring 312 invented calls of Skerry Lines, a ferry company: runs/logs/demo"
    assert lines[-1] == "next  convoscope score YOUR-LOGS"
    assert len(lines) < 40
    assert max(map(len, lines)) <= 80


def test_it_counts_what_was_planted(ended: Ended) -> None:
    planted = Counter(call.fault for call in make_calls())
    for fault, cause in (
        (PlantedFault.STALL, "collect_vehicle asks for the same thing again and again"),
        (PlantedFault.SLOW_TOOL, "callers give up when find_sailings is slow"),
        (PlantedFault.TALK_OVER, "the agent talks over callers until they give up"),
    ):
        assert f"{planted[fault]} lost  {cause}" in ended.out
    # The two causes of the fewest calls share a line.
    assert f"the recogniser mishears codes {planted[PlantedFault.MISHEARING]}, no single cause found 11" in ended.out
    assert planted[PlantedFault.NO_FAULT] == 11


def test_its_logs_can_be_scored_again(ended: Ended, folder: Path) -> None:
    (run,) = (path for path in (folder / "runs").iterdir() if path.name != "logs")
    assert (run / "report.html").exists()
    again = convoscope("score", "runs/logs/demo", "--by", "agent", "--out", "runs/demo", cwd=folder)
    # The same logs and settings are the same run; the demo has a line above and one below.
    assert ended.out.splitlines()[1:-1] == again.out.splitlines()


def test_json_is_that_of_score(ended: Ended, folder: Path) -> None:
    assert convoscope("demo", "--json", cwd=folder).json["summary"]["conversations"] == 312


def test_make_says_which_python_it_needs_before_it_installs_anything(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    root = Path(__file__).parents[2]
    # A `make` that runs these tests would have its child announce the folders it enters.
    environment = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL"}}
    # `false` is no Python of any version.
    made = subprocess.run(
        ["make", "demo", f"VENV={venv}", "PYTHON=false"],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode != 0
    assert made.stderr.startswith("Convoscope needs Python 3.11 or newer; false is ")
    assert made.stdout == ""
    assert not venv.exists()
