"""Two folders of invented logs, compared by the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from support.command_line import Ended, convoscope_here
from support.scenarios import Record

METRICS = ("-m", "outcome.success,timing.response_latency,agent.unanswered_turns,agent.repetition,user.pushback")
"""A few figures: less to compute."""


def write(folder: Path, records: Iterable[Record]) -> Path:
    folder.mkdir(parents=True)
    (folder / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return folder


def compare_logs(folder: Path, *sides: Iterable[Record], options: Sequence[object] = ()) -> Ended:
    """Each side is scored into a run of its own; the runs are compared."""
    runs = []
    for index, records in enumerate(sides, 1):
        run = folder / f"v{index}"
        ended = convoscope_here(
            "score", write(folder / f"logs{index}", records), "--label", "resolved", *METRICS, "--out", run, *options
        )
        assert ended.code == 0, ended.err
        runs.append(run)
    return convoscope_here("compare", *runs, "--json")


def claims(made: Any) -> dict[str, str]:
    """What is claimed, by metric; of figures with the same values one."""
    return {one["metric"]: one["verdict"] for one in made["claims"] if "same_as" not in one}


def row(made: Any, metric: str) -> Any:
    return next(one for one in made["figures"] if one["metric"] == metric)
