"""Logs of public repositories: what a script counted in them is what reading gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import convoscope
from convoscope.conversation import USER, ToolResult

Shared = Callable[[str], Path]
Ran = Callable[[str, int], None]


def facts(folder: Path) -> dict[str, dict[str, Any]]:
    """What was counted, by file."""
    held: dict[str, dict[str, Any]] = json.loads((folder / "facts.json").read_text())
    return held


def test_tau_bench(shared: Shared, ran: Ran) -> None:
    folder = shared("data/formats/tau-bench")
    for name, counted in facts(folder).items():
        reading = convoscope.read(folder / name)
        runs = list(reading)
        rewards = [run.labels[0].value for run in runs]
        assert reading.report.files[name].format == "tau-bench"
        assert reading.report.problem_count == 0
        assert len(runs) == counted["conversations"]
        assert sum(rewards) / len(rewards) == counted["mean_reward"]
        assert reading.report.ignored["info_withheld"] == len(runs)
        if "roles" in counted:
            assert rewards == counted["rewards"]
            assert [run.dimensions["scenario_id"] for run in runs] == list(map(str, counted["task_ids"]))
            assert [run.dimensions["trial"] for run in runs] == list(map(str, counted["trials"]))
            assert [len(run.tool_calls) for run in runs] == counted["calls_per_conversation"]
            results = [event for run in runs for event in run.timeline if isinstance(event, ToolResult)]
            assert len(results) == counted["roles"]["tool"]
            assert sum(result.success is False for result in results) == counted["tool_results_starting_Error"]
            first = next(one for one in runs[0].utterances if runs[0].roles[one.speaker] == USER)
            assert runs[0].text(first) == counted["first_user_text"]
    ran("τ-bench files", len(facts(folder)))
