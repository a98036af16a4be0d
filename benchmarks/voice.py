"""A real voice call, joined from its three logs and scored: CPU milliseconds per record."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

from convoscope.ingest.formats.voice_logs.reader import read_call
from convoscope.ingest.report import Notes
from convoscope.metrics.registry import installed
from convoscope.scoring.evaluate import evaluate
from convoscope.views import metric_context

RECORD = "real_record_1.1.2"
PEER_JOIN_MS = 5.3
PEER_SCORED_MS = 37.0
"""What EVA took for the same call on a machine of this kind, joined and with nine metrics; it is not installed here."""


def run(rounds: int) -> None:
    shared = Path(os.environ.get("CONVOSCOPE_SHARED", Path(__file__).parents[2] / "shared"))
    folder = shared / "data" / "voice-logs" / RECORD
    if not folder.is_dir():
        print(f"the real call: skipped, {RECORD} is not there (CONVOSCOPE_SHARED names the folder that holds it)\n")
        return
    metrics = installed().resolve()

    def joined() -> None:
        metric_context(read_call(folder, Notes()))

    def scored() -> None:
        for _ in evaluate(read_call(folder, Notes()), metrics):
            pass

    print(f"the real call, 867 log lines, from its files, CPU ms per record (median of {rounds})")
    unit = _milliseconds(lambda: json_seconds(folder), rounds)
    print(f"  {'json.loads alone':<18} {unit:6.2f} ms for its three logs, at the same moment")
    for name, work, peer in (("joined", joined, PEER_JOIN_MS), ("with every metric", scored, PEER_SCORED_MS)):
        took = _milliseconds(work, rounds)
        print(
            f"  {name:<18} {took:6.2f} ms, {took / unit:4.1f} times json.loads; "
            f"{peer / took:4.1f} times as fast as EVA's {peer:g} ms, which are of another day"
        )
    print()


def json_seconds(call: Path) -> float:
    """Seconds of CPU time for `json.loads` of the three logs of a call."""
    began = process_time()
    json.loads((call / "audit_log.json").read_bytes())
    for name in ("pipecat_events.jsonl", "elevenlabs_events.jsonl"):
        for line in (call / name).read_bytes().splitlines():
            json.loads(line)
    return process_time() - began


def _forget() -> None:
    """Another call has other texts: what was remembered of the last one must not help."""
    for name, module in list(sys.modules.items()):
        if name.startswith(
            ("convoscope.text.spoken", "convoscope.ingest.formats.voice_logs", "convoscope.conversation")
        ):
            for thing in vars(module).values():
                if hasattr(thing, "cache_clear"):
                    thing.cache_clear()


def _milliseconds(work: Callable[[], object], rounds: int) -> float:
    work()
    times = []
    for _ in range(rounds):
        _forget()
        began = process_time()
        work()
        times.append(1000 * (process_time() - began))
    return median(times)
