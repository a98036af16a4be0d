"""Flow states: whether planted faults are found, and what a million conversations cost, from events to the matrix."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import convoscope
from benchmarks import planted, scoring
from convoscope.runs.make import make_run as score

SIZES = (20, 50, 100, 300, planted.ENOUGH)
"""Conversations of a flow."""
METRICS = ("state", "flow")
MATRIX_AIM_S = 1.0
_TEMPLATES = 600
_TOGETHER = 200
"""Calls that are going on at one time."""
_BYTES_EACH = 12_000
"""Disk that a conversation needs, at most: its lines, the same spread by id, the parts and the run."""
_HEAD = b'{"conversation_id": "c%08d", "timestamp": %.3f, '
_MATRIX = """
import sys, time, convoscope
asked = convoscope.states(sys.argv[1])
began = time.perf_counter()
asked.matrix()
print(time.perf_counter() - began)
"""


# Are the planted faults found?


class Rates(NamedTuple):
    """What was found and what was made up, over some seeds with so many conversations of each flow."""

    size: int
    seeds: int
    exact: int
    """Seeds of which the diagnosis names all that was planted, and nothing else."""
    planted: Counter[str]
    found: Counter[str]
    alarms: Counter[str]
    disturbed: int
    """Seeds with a false alarm."""
    healthy: int
    alarmed: int
    """Healthy states with a false alarm."""

    def share(self, kind: str) -> str:
        return f"{100 * self.found[kind] / self.planted[kind]:.0f} %" if self.planted[kind] else "·"


def rates(seeds: int) -> None:
    print(
        f"faults planted in {seeds} seeds ({sum(not planted.plant(one, 0).faults for one in range(seeds))} without any)"
    )
    print(
        "  of a flow         stall  guard_error  revisit  latency      all  false alarms: seeds, healthy states, kinds"
    )
    for size in SIZES:
        _print(measured(range(seeds), size))
    tails = ", ".join(f"{100 * planted.chance_to_miss(size):.2g} % of {size}" for size in (20, 50, 100, 165, 300))
    print(f"  by chance alone a stall of 40 % is seen below 30 % in {tails} conversations that come to the state\n")


def _print(one: Rates) -> None:
    cells = "  ".join(f"{one.share(kind):>{width}}" for kind, width in zip(planted.KINDS, (5, 11, 7, 7), strict=True))
    whole = f"{100 * one.found.total() / one.planted.total():.1f} %" if one.planted else "·"
    by_fault = ", ".join(f"{kind} {count}" for kind, count in sorted(one.alarms.items())) or "none"
    alarms = f"{one.disturbed:>2} of {one.seeds}, {one.alarmed:>2} of {one.healthy}, {by_fault}"
    print(
        f"  {one.size:>3} conversations {cells}  {whole:>7}   {alarms}; {one.exact} of {one.seeds} seeds named exactly"
    )


def measured(seeds: Sequence[int], size: int) -> Rates:
    """Plant, write, score and diagnose, ten seeds in one run: each has flows of its own."""
    made, found, alarms = Counter[str](), Counter[str](), Counter[str]()
    exact = disturbed = healthy = alarmed = 0
    for one, verdict in _verdicts(seeds, size):
        exact += verdict.exact
        disturbed += bool(verdict.alarms)
        healthy += verdict.healthy
        alarmed += len({(alarm.flow, alarm.state) for alarm in verdict.alarms} - set(one.expected))
        made.update(fault.kind for fault in one.faults)
        found.update(fault.kind for fault in verdict.found)
        alarms.update(alarm.fault for alarm in verdict.alarms)
    return Rates(size, len(seeds), exact, made, found, alarms, disturbed, healthy, alarmed)


def _verdicts(seeds: Sequence[int], size: int) -> Iterator[tuple[planted.Planted, planted.Verdict]]:
    for first in range(0, len(seeds), 10):
        some = [planted.plant(seed, size) for seed in seeds[first : first + 10]]
        with tempfile.TemporaryDirectory(prefix="convoscope-planted-") as folder:
            planted.write(some, Path(folder) / "logs")
            scored = score(Path(folder) / "logs", out=Path(folder) / "run", metrics=["state.stall"], workers=1)
            analysis = convoscope.states(scored).analyze()
        for one in some:
            yield one, planted.judged(one, analysis)


# What does it cost?


def cost(folder: Path, conversations: int) -> None:
    """Speed and memory for `conversations` and for a tenth of them; then what the finished run is asked for."""
    free = shutil.disk_usage(folder).free
    if free < conversations * _BYTES_EACH:
        needed = conversations * _BYTES_EACH
        print(f"flow states: left out, {needed / 1e9:.0f} GB may be needed and {free / 1e9:.0f} GB are free\n")
        return
    peaks: list[float] = []
    for count in (conversations // 10, conversations):
        logs = folder / f"states-{count}"
        written = write_events(logs, count)
        print(f"{count:,} conversations, {written.events:,} interleaved events, {written.size / 1e6:,.0f} MB")
        for workers in (1, 2):
            out = folder / f"run-states-{count}-{workers}"
            made = scoring.score(logs, out, workers, METRICS)
            _report(made, count, written.events, workers)
            if workers == 1:
                peaks.append(made.peak_mb)
                _ask(out)
            shutil.rmtree(out)
        shutil.rmtree(logs)
    print(
        f"memory at {conversations:,} conversations is {peaks[1] / peaks[0]:.2f} of that at {conversations // 10:,}\n"
    )


def _report(made: scoring.Measured, count: int, events: int, workers: int) -> None:
    """Speed of the run itself; its page and the start of Python are told beside it."""
    receipt = made.run.receipt
    seconds = made.cpu / workers
    print(f"  {workers} {'worker' if workers == 1 else 'workers'}, metrics {', '.join(METRICS)}: {seconds:.1f} s")
    each = seconds * workers
    print(f"    {events / each:,.0f} events and {count / each:,.0f} conversations per second and core")
    print(f"    with start and page, CPU time; peak memory {made.peak_mb:.0f} MB")
    told = ", ".join(f"{name} {1e6 * one / count:.0f}" for name, one in receipt.timings.items())
    print(f"    µs of work a conversation: {told}")
    if workers == 1:
        rest = seconds - sum(receipt.timings.values())
        print(f"    hashing and spreading the lines by conversation: {1e6 * rest / count:.0f} µs")


def _ask(out: Path) -> None:
    size = sum(place.stat().st_size for place in out.rglob("*") if place.is_file())
    print(f"    the run takes {size / 1e6:,.0f} MB on disk")
    command = [str(Path(sys.executable).with_name("convoscope")), "states", "matrix", str(out)]
    began = perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    whole = perf_counter() - began
    told = subprocess.run([sys.executable, "-c", _MATRIX, str(out)], check=True, capture_output=True, text=True)
    print(
        f"    states matrix: {whole:.2f} s, {whole / MATRIX_AIM_S:.1f} times the aim of {MATRIX_AIM_S:g} s;"
        f" the question alone {float(told.stdout):.2f} s"
    )


def long_conversation(folder: Path, states: int) -> None:
    """What a state costs in one conversation of very many, page included, against one of a tenth of them."""
    each = []
    for count in (states // 10, states):
        logs = folder / f"long-{count}"
        logs.mkdir()
        events = list(_visits(count))
        (logs / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
        made = scoring.score(logs, folder / f"run-long-{count}", 1, METRICS)
        each.append(made.cpu / len(events))
        size = (made.run.folder / "report.html").stat().st_size
        print(
            f"one conversation of {count:,} states, {len(events):,} events: {made.cpu:.1f} s of CPU time, "
            f"{1e6 * each[-1]:.0f} µs an event, peak memory {made.peak_mb:.0f} MB, page {size / 1e6:.1f} MB"
        )
    print(f"  an event costs {each[1] / each[0]:.2f} times as much with ten times the states; the start is in both\n")


def _visits(count: int) -> Iterator[dict[str, object]]:
    """A state is entered, the agent answers, and the state is left: `count` times, through 50 states."""
    seq = 0
    for number in range(count):
        state, clock = f"state_{number % 50:02d}", 1_760_000_000.0 + 4 * number
        kinds: list[tuple[str, float, dict[str, object]]] = [
            ("state_entered", 0.0, {"state": state}),
            ("turn_complete", 1.0, {"latency_ms": 700 + number % 9 * 100}),
            ("state_exited", 3.0, {"state": state, "to_state": f"state_{(number + 1) % 50:02d}", "reason": "answered"}),
        ]
        for event, after, fields in kinds:
            seq += 1
            head = {"conversation_id": "long", "flow": "long", "agent": "a", "seq": seq, "timestamp": clock + after}
            yield {**head, "event": event, **fields}
    end = {"conversation_id": "long", "flow": "long", "agent": "a", "seq": seq + 1, "timestamp": clock + 4}
    yield {**end, "event": "conversation_ended", "completed": True}


class Written(NamedTuple):
    """A file of events."""

    events: int
    size: int


class _Line(NamedTuple):
    """An event without its conversation and its time."""

    after: float
    """Seconds since the call began."""
    rest: bytes


def write_events(folder: Path, count: int) -> Written:
    """Conversations whose lines are interleaved, made from templates: new ids and times, the rest as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, route in planted.ROUTES.items():
        (folder / f"{name}.yaml").write_text(planted.yaml(planted.definition(name, route)), encoding="utf-8")
    templates = [_template(events) for events in planted.short_calls(_TEMPLATES)]
    events = 0
    with (folder / "events.jsonl").open("wb") as stream:
        for first in range(0, count, _TOGETHER):
            numbers = range(first, min(first + _TOGETHER, count))
            lines = list(_interleaved(numbers, templates))
            events += len(lines)
            stream.write(b"".join(lines))
    return Written(events, (folder / "events.jsonl").stat().st_size)


def _template(events: Sequence[dict[str, object]]) -> list[_Line]:
    began = float(str(events[0]["timestamp"]))
    lines: list[_Line] = []
    for event in events:
        facts = {name: value for name, value in event.items() if name not in ("conversation_id", "timestamp")}
        after = float(str(event["timestamp"])) - began
        lines.append(_Line(after, json.dumps(facts)[1:].encode() + b"\n"))
    return lines


def _interleaved(numbers: Sequence[int], templates: Sequence[list[_Line]]) -> Iterator[bytes]:
    """The first lines of all calls, then the second ones, and so on: each call's in order."""
    calls = [templates[number * 7919 % len(templates)] for number in numbers]
    for step in zip_longest(*calls):
        for number, line in zip(numbers, step, strict=True):
            if line is not None:
                yield _HEAD % (number, 1_760_000_000.0 + number / 10 + line.after) + line.rest
