"""Trials of one agent against other trials of the same agent: nothing changed, so nothing is claimed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.command_line import convoscope_here

LEAST = 40
"""Records of a file that says enough."""


def halves(path: Path) -> list[list[Any]] | None:
    """The records of the first and of the last trials of each task; None where tasks have fewer than four."""
    records = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(records, list) or len(records) < LEAST or not all("trial" in one for one in records):
        return None
    sides = [[one for one in records if one["trial"] in trials] for trials in ((0, 1), (2, 3))]
    return sides if all(len(side) * 2 >= LEAST for side in sides) else None


def test_no_change_no_claim(shared: Callable[[str], Path], ran: Callable[[str, int], None], tmp_path: Path) -> None:
    count = 0
    for path in sorted(shared("data/formats/tau-bench").glob("*.json")):
        sides = halves(path) if path.name != "facts.json" else None
        if sides is not None:
            check(sides, tmp_path / path.stem)
            count += 1
    ran("trials of one agent against others", count)


def check(sides: list[list[Any]], folder: Path) -> None:
    folder.mkdir()
    runs = []
    for index, records in enumerate(sides):
        log, run = folder / f"log{index}.json", folder / f"run{index}"
        log.write_text(json.dumps(records), encoding="utf-8")
        assert convoscope_here("score", log, "--label", "reward", "--out", run).code == 0
        runs.append(run)
    made = convoscope_here("compare", *runs, "--json").json
    assert made["claims"] == []
    assert made["verdict"] == "no_clear_difference"
    outcome = next(one for one in made["figures"] if one["metric"] == "outcome.success")
    tasks = {one["task_id"] for records in sides for one in records}
    assert (outcome["paired"], outcome["n"]) == (True, len(tasks))
