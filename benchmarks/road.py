"""What one more conversation costs in a whole run, page included, in units of `json.loads` of the same file.

One worker, CPU time. The difference between two sizes leaves out what every run costs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import items, scoring, states, voice
from benchmarks.chats import write_chats

_CALL = "real_record_1.1.2"
PEER = "EVA took 37 ms for nine metrics without writing anything, on another day, when json.loads took 3.1 to 4.5 ms"
"""The peer is not installed here: its figure is of the same call, on a machine of this kind."""


class Workload(NamedTuple):
    """Something to score, in two sizes, and the most units that one more of it should cost."""

    name: str
    write: Callable[[Path, int], None]
    sizes: tuple[int, int]
    limit: float
    metrics: Sequence[str] = ()


WORKLOADS = (
    Workload("evaluation items, four scorers", items.write_items, (5_000, 45_000), 12, items.METRICS),
    Workload("six-turn chats, all metrics", write_chats, (500, 4_500), 14),
)


def run(folder: Path) -> None:
    for work in WORKLOADS:
        files = [folder / f"road-{size}.jsonl" for size in work.sizes]
        costs = []
        for file, size in zip(files, work.sizes, strict=True):
            work.write(file, size)
            costs.append(cost(file, folder / f"road-run-{size}", work.metrics))
        unit = min(scoring.json_seconds(files[1]) for _ in range(3)) / work.sizes[1]
        each = (costs[1] - costs[0]) / (work.sizes[1] - work.sizes[0])
        print(
            f"one of {work.name}: {1e6 * each:.0f} µs, {each / unit:.1f} times json.loads of it "
            f"({1e6 * unit:.1f} µs), aim {work.limit:g}; {1 / each:,.0f} a second and core"
        )
    _events(folder)
    _calls(folder)
    print()


def cost(logs: Path, out: Path, metrics: Sequence[str] = (), conversations: int = 0) -> float:
    """Seconds of CPU time of the whole command, page included; it must score so many `conversations`."""
    command = [str(Path(sys.executable).with_name("convoscope")), "score", str(logs), "--out", str(out)]
    command += ["--workers", "1", *(["--metrics", ",".join(metrics)] if metrics else [])]
    before = scoring.children_cpu()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    scored = json.loads((out / "summary.json").read_bytes())["conversations"]
    if conversations and scored != conversations:
        raise SystemExit(f"{scored} of {conversations} conversations were scored: the rest are copies")
    shutil.rmtree(out)
    return scoring.children_cpu() - before


def _events(folder: Path) -> None:
    """State events, with the metrics of states and flows."""
    costs, events = [], []
    for count in (1_000, 11_000):
        events.append(states.write_events(folder / f"road-states-{count}", count).events)
        costs.append(cost(folder / f"road-states-{count}", folder / f"road-run-{count}", states.METRICS))
    each = (costs[1] - costs[0]) / (events[1] - events[0])
    print(f"one state event: {1e6 * each:.1f} µs; {1 / each:,.0f} a second and core, aim 30,000")


def _calls(folder: Path) -> None:
    """The real call many times over, as so many folders, each with a word of its own: copies would be left out."""
    shared = Path(os.environ.get("CONVOSCOPE_SHARED", Path(__file__).parents[2] / "shared"))
    call = shared / "data" / "voice-logs" / _CALL
    if not call.is_dir():
        print(f"one more call: skipped, {_CALL} is not there (CONVOSCOPE_SHARED names the folder that holds it)")
        return
    costs = []
    for count in (10, 110):
        for number in range(count):
            copy = Path(shutil.copytree(call, folder / f"road-calls-{count}" / f"call-{number}"))
            for file in copy.iterdir():
                file.chmod(0o644)
                file.write_text(
                    file.read_text().replace(" your ", f" your {chr(97 + number % 26) * (2 + number // 26)} ")
                )
        costs.append(cost(folder / f"road-calls-{count}", folder / f"road-run-{count}", conversations=count))
    each = 10 * (costs[1] - costs[0])
    unit = 1000 * min(voice.json_seconds(call) for _ in range(3))
    print(
        f"one real call into a run, all metrics: {each:.1f} ms, {each / unit:.1f} times json.loads of its logs "
        f"({unit:.1f} ms), aim 15; {PEER}"
    )
