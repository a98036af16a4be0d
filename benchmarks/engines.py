"""One input on each engine, side by side on this machine; and what a cluster would make of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from heapq import heapreplace
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, NamedTuple

from benchmarks.chats import write_chats
from benchmarks.items import METRICS, write_items
from convoscope.ingest.discover import JOURNAL
from convoscope.runs.database import INSIDE
from convoscope.runs.run import Run

ENGINES = {"this machine": "", "Dask": "dask://local", "Ray": "ray://local"}
PACKAGES = {"Dask": "distributed", "Ray": "ray"}
WORKERS = 2
SIZES = (1, 2, 5, 10, 20, 50, 100, 200)
STORE_MB = 500.0
"""Megabytes a second that a shared disk or store gives and takes, over all machines: an assumption."""
REQUEST = 0.05
"""Seconds that a store takes for a request: an assumption."""
REQUESTS = 5
"""Of each part: one for its logs, one for each of its tables, one for what it did."""
CORE_HOUR = 0.05
"""US dollars for one core for an hour: an assumption."""
_SCRIPT = """
import json, sys, time
import convoscope
from convoscope.runs.partial import Partial
logs, out, engine, workers, *metrics = sys.argv[1:]
stages, now = {}, ["starting", time.perf_counter(), time.process_time()]

def seen(progress):
    if progress.stage != now[0]:
        leave(progress.stage)

def leave(stage):
    clock, cpu = time.perf_counter(), time.process_time()
    stages[now[0]] = [clock - now[1], cpu - now[2]]
    now[:] = [stage, clock, cpu]

seconds, finish = [], Partial.finish_part

def finished(self, part):
    seconds.append(sum(getattr(part.timings, name) for name in part.timings.__struct_fields__))
    finish(self, part)

Partial.finish_part = finished
run = convoscope.score(
    logs, out=out, workers=int(workers), metrics=metrics or None, engine=engine or None, progress=seen
)
leave("end")
print(json.dumps({"stages": stages, "seconds": seconds}))
"""


class EngineRun(NamedTuple):
    """One run of the input."""

    seconds: float
    cpu: float
    """Seconds of the processors, of all processes together."""
    stages: dict[str, list[float]]
    """Seconds and processor seconds of the driver, by stage."""
    parts: list[float]
    """Seconds of work in each part, as the worker measured them."""
    summary: bytes
    put: float
    """Megabytes of the tables that it wrote."""


def run(folder: Path, size: int) -> None:
    """Print a line for each engine, and the simulation from the parts of this machine's."""
    logs = folder / f"engine-items-{size}.jsonl"
    write_items(logs, size)
    megabytes = logs.stat().st_size / 1e6
    print(f"{size:,} items, {megabytes:.0f} MB, four scorers, {WORKERS} workers; load before {os.getloadavg()[0]:.1f}")
    runs: dict[str, EngineRun] = {}
    for name, engine in ENGINES.items():
        if name in PACKAGES and find_spec(PACKAGES[name]) is None:
            print(f"  {name}: not installed")
            continue
        runs[name] = done = timed(logs, folder / f"run-engine-{name.replace(' ', '-')}", engine)
        first = runs["this machine"]
        overhead = f", {100 * (done.cpu / first.cpu - 1):+.0f} % of CPU time" if done is not first else ""
        same = "the bytes of the summary are the same" if done.summary == first.summary else "OTHER BYTES"
        parts = f"{len(done.parts)} parts"
        print(f"  {name}: {done.seconds:.1f} s, {done.cpu:.1f} s of CPU time{overhead}; {parts}; {same}")
    for name, done in runs.items():
        kill_half_way(logs, folder / f"run-killed-{name.replace(' ', '-')}", name, size, done)
    simulate(runs["this machine"], runs.get("Dask", runs["this machine"]), size, megabytes)
    chats(folder, size // 10)


def chats(folder: Path, size: int) -> None:
    """The simulation of ten times as many chats with all metrics as are measured."""
    logs = folder / f"engine-chats-{size}.jsonl"
    write_chats(logs, size)
    here = timed(logs, folder / "run-chats-here", "", ())
    has_dask = find_spec(PACKAGES["Dask"]) is not None
    cluster = timed(logs, folder / "run-chats-Dask", ENGINES["Dask"], ()) if has_dask else here
    print(f"{size:,} chats, all metrics: {here.seconds:.1f} s, {here.cpu:.1f} s of CPU time; ten times as many,")
    print("where each part comes ten times, and the driver needs ten times as long afterwards:")
    simulate(_ten_times(here), _ten_times(cluster), 10 * size, 10 * logs.stat().st_size / 1e6)


def _ten_times(one: EngineRun) -> EngineRun:
    stages = {
        name: times if name == "starting" else [10 * seconds for seconds in times] for name, times in one.stages.items()
    }
    return one._replace(cpu=10 * one.cpu, stages=stages, parts=10 * one.parts, put=10 * one.put)


def kill_half_way(logs: Path, out: Path, name: str, size: int, whole: EngineRun) -> None:
    """A worker is killed when a third of the parts are done, the driver when two thirds are; the same command goes on.

    On this machine a worker that dies ends the command, so that there is one command more.
    """
    command = [sys.executable, "-c", _SCRIPT, str(logs), str(out), ENGINES[name], str(WORKERS), *METRICS]
    kept: list[int] = []
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _wait_for(driver, out, len(whole.parts) // 3)
    os.kill(max(family(driver.pid)[1:], key=lambda pid: cpu_of(pid) or 0.0), signal.SIGKILL)
    if not ENGINES[name]:
        driver.wait()
        kept.append(_parts_done(out))
        driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _wait_for(driver, out, 2 * len(whole.parts) // 3)
    others = family(driver.pid)[1:]
    driver.kill()
    driver.wait()
    kept.append(_parts_done(out))
    while any(Path(f"/proc/{pid}").exists() for pid in others):  # what it started ends by itself
        sleep(0.1)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    run = Run.open(out)
    ids = Counter(row["conversation"] for row in run.conversations_table().to_list())
    same = "the same" if (out / "summary.json").read_bytes() == whole.summary else "OTHER"
    went_on = f"went on from {' and '.join(map(str, kept))} of {len(whole.parts)} parts"
    print(
        f"  {name}, a worker killed, then the driver: {went_on}; "
        f"{size - len(ids):,} lost, {sum(ids.values()) - len(ids):,} doubled; bytes of the summary {same}"
    )


def _wait_for(driver: subprocess.Popen[bytes], out: Path, parts: int) -> None:
    while _parts_done(out) < parts:
        if driver.poll() is not None:
            raise SystemExit(f"the run in {out} ended before {parts} parts were done")
        sleep(0.05)


def _parts_done(out: Path) -> int:
    journal = out.with_name(f"{out.name}{INSIDE}") / JOURNAL
    return sum(b'"type":"part"' in line for line in journal.read_bytes().splitlines()) if journal.exists() else 0


def timed(logs: Path, out: Path, engine: str, metrics: Sequence[str] = METRICS) -> EngineRun:
    """Score in a process of its own, with the processor time of all processes that it starts."""
    began = perf_counter()
    command = [sys.executable, "-c", _SCRIPT, str(logs), str(out), engine, str(WORKERS), *metrics]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    used: dict[int, float] = {}
    while process.poll() is None:
        used |= {pid: seconds for pid in family(process.pid) if (seconds := cpu_of(pid)) is not None}
        sleep(0.1)
    seconds = perf_counter() - began
    assert process.stdout is not None
    printed = process.stdout.read()
    if process.returncode:
        raise SystemExit(f"the run with {engine or 'this machine'} failed with {process.returncode}")
    facts: dict[str, Any] = json.loads(printed.splitlines()[-1])
    summary = (out / "summary.json").read_bytes()
    put = sum(path.stat().st_size for path in out.rglob("*.parquet")) / 1e6
    return EngineRun(seconds, sum(used.values()), facts["stages"], facts["seconds"], summary, put)


def simulate(here: EngineRun, cluster: EngineRun, size: int, megabytes: float) -> None:
    """How long the same input would take on 1 to 200 workers, and what the ceiling is.

    Each worker takes the next part as soon as it is free. The parts have the lengths that they had here, which differ;
    what a worker does beside them (starting, connecting, encoding) is spread over them evenly.
    """
    whole = here.cpu - sum(cpu for _, cpu in here.stages.values())
    parts = [seconds * whole / sum(here.parts) for seconds in here.parts]
    handing = cluster.stages["scoring"][1] / len(parts)
    before = cluster.stages["starting"][1]
    after = sum(cpu for name, (_, cpu) in cluster.stages.items() if name not in ("starting", "scoring"))
    transfer = (megabytes + here.put) / STORE_MB
    ordered = sorted(parts)
    print(f"simulated: {len(parts)} parts of {ordered[0]:.2f} to {ordered[-1]:.2f} s of a worker, {sum(parts):.0f} s")
    print(f"  {1000 * handing:.1f} ms of the driver for each (cutting, handing out, taking; Dask),")
    print(f"  {before:.1f} s of the driver before (imports, connecting, hashes), {after:.1f} s after (figures, page);")
    print(f"  {megabytes:.0f} MB of logs are read and {here.put:.0f} MB of tables written")
    print(
        f"  assumed: the store gives and takes {STORE_MB:.0f} MB/s over all workers, and answers each of {REQUESTS} "
        f"requests a part after {1000 * REQUEST:.0f} ms; no worker is lost"
    )
    for workers in SIZES:
        limits = {
            "workers": busiest([seconds + REQUESTS * REQUEST for seconds in parts], workers),
            "driver": len(parts) * handing,
            "store": transfer,
        }
        longest = max(limits, key=lambda name: limits[name])
        limit = longest if longest != "workers" or workers < len(parts) else f"the longest of {len(parts)} parts"
        seconds = before + limits[longest] + after
        alone = 100 * (before + after) / seconds
        print(
            f"  {workers:>3} workers: {seconds:7.1f} s, {size / seconds:9,.0f} a second; limit: {limit}, "
            f"{alone:.0f} % of the time before and after"
        )
    hours = (sum(parts) + len(parts) * handing + before + after) / 3600 * 1_000_000 / size
    print(f"  a million: {hours:.3f} core-hours; at an assumed {CORE_HOUR:.2f} $ each, {hours * CORE_HOUR:.4f} $\n")


def busiest(parts: Sequence[float], workers: int) -> float:
    """When the last of some workers is done, if each takes the next part as soon as it is free."""
    free = [0.0] * workers
    for seconds in parts:
        heapreplace(free, free[0] + seconds)
    return max(free)


def family(pid: int) -> list[int]:
    """A process and all that it started, by any of its threads."""
    found = [pid]
    for one in found:
        for path in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                found += [int(child) for child in path.read_text().split()]
            except OSError:
                continue
    return found


def cpu_of(pid: int) -> float | None:
    """Seconds of the processors that a process has used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
