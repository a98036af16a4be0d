"""Chats read, scored with every metric and written as a run: speed, memory, where the time goes."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import NamedTuple

import convoscope
from benchmarks.chats import write_chats

MEMORY_LIMIT_MB = 500
_SCRIPT = """
import sys, convoscope
logs, out, workers, *metrics = sys.argv[1:]
convoscope.score(logs, out=out, workers=int(workers), metrics=metrics or None)
"""
_SHARES = {
    "JSON": ("reading", "encoding"),
    "metrics": ("metrics",),
    "writing": ("writing", "finishing"),
    "reduction": ("reducing",),
}


class Measured(NamedTuple):
    """One run of the road."""

    seconds: float
    cpu: float
    """Seconds of the processors, of all processes together."""
    peak_mb: float
    run: convoscope.Run


def run(folder: Path, sizes: tuple[int, int]) -> None:
    peaks: list[float] = []
    for size in sizes:
        logs = folder / f"{size}.jsonl"
        write_chats(logs, size)
        for workers in sorted({1, os.cpu_count() or 1}):
            measured = score(logs, folder / f"run-{size}-{workers}", workers)
            report(measured, size, workers, logs)
        peaks.append(measured.peak_mb)
        print(f"  the same file with json.loads alone: {json_seconds(logs):.2f} s on one core\n")
    print(f"memory at {sizes[1]:,} chats is {peaks[1] / peaks[0]:.2f} of that at {sizes[0]:,}")


def report(measured: Measured, size: int, workers: int, logs: Path) -> None:
    seconds, timings = measured.seconds, measured.run.receipt.timings
    rate = size / measured.cpu
    megabytes = logs.stat().st_size / 1e6
    print(f"{size:,} six-turn chats, {megabytes:.0f} MB, {workers} workers: {seconds:.1f} s")
    print(f"  {rate:,.0f} conversations per second and core, CPU time")
    limit = measured.peak_mb / MEMORY_LIMIT_MB
    print(f"  peak memory of all processes {measured.peak_mb:.0f} MB, {limit:.2f} of the limit of {MEMORY_LIMIT_MB} MB")
    work = sum(timings.values())
    shares = ", ".join(
        f"{name} {100 * sum(timings[part] for part in parts) / work:.0f} %" for name, parts in _SHARES.items()
    )
    print(f"  of the work: {shares}")


def score(logs: Path, out: Path, workers: int, metrics: Sequence[str] = ()) -> Measured:
    """Score in a process of its own, and watch the memory of it and its children."""
    used = watched([sys.executable, "-c", _SCRIPT, str(logs), str(out), str(workers), *metrics])
    return Measured(used.seconds, used.cpu, used.peak_mb, convoscope.Run.open(out))


class Used(NamedTuple):
    """What a command took."""

    seconds: float
    cpu: float
    peak_mb: float


def watched(command: Sequence[str]) -> Used:
    """Run a command, and watch the memory of it and its children."""
    began, used = perf_counter(), children_cpu()
    process = subprocess.Popen(command)
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, _memory_mb(process.pid))
        sleep(0.2)
    seconds = perf_counter() - began
    if process.returncode:
        raise SystemExit(f"{command[0]} failed with {process.returncode}")
    return Used(seconds, children_cpu() - used, peak)


def children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def json_seconds(logs: Path) -> float:
    began = process_time()
    with logs.open("rb") as stream:
        for line in stream:
            json.loads(line)
    return process_time() - began


def _memory_mb(pid: int) -> float:
    """Proportional set size of a process and its children: shared pages are counted once."""
    total = 0.0
    for one in (pid, *_children(pid)):
        try:
            rollup = Path(f"/proc/{one}/smaps_rollup").read_text()
        except OSError:
            continue
        total += next((float(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")), 0.0)
    return total / 1024


def _children(pid: int) -> list[int]:
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(one) for one in listed]
