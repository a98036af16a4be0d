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
PEER_JOIN_MS = 5.0
PEER_SCORED_MS = 51.0
"""What a published peer needs for the same record, on this kind of machine."""


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

    def decoded() -> None:
        json.loads((folder / "audit_log.json").read_bytes())
        for name in ("pipecat_events.jsonl", "elevenlabs_events.jsonl"):
            for line in (folder / name).read_bytes().splitlines():
                json.loads(line)

    print(f"the real call, 867 log lines, from its files, CPU ms per record (median of {rounds})")
    print(f"  {'json.loads alone':<18} {_milliseconds(decoded, rounds):6.2f} ms for its three logs, at the same moment")
    for name, work, peer in (("joined", joined, PEER_JOIN_MS), ("with every metric", scored, PEER_SCORED_MS)):
        took = _milliseconds(work, rounds)
        print(f"  {name:<18} {took:6.2f} ms, {peer / took:4.1f} times faster than the peer's {peer:g} ms")
    print()


def _forget() -> None:
    """Another call has other texts: what was remembered of the last one must not help."""
    for name, module in list(sys.modules.items()):
        if name.startswith(
            ("convoscope.text.spoken", "convoscope.ingest.formats.voice_logs", "convoscope.conversation")
        ):
            for thing in vars(module).values():
                if hasattr(thing, "cache_clear"):
                    thing.cache_clear()


def _milliseconds(work: Callable[[], None], rounds: int) -> float:
    work()
    times = []
    for _ in range(rounds):
        _forget()
        began = process_time()
        work()
        times.append(1000 * (process_time() - began))
    return median(times)
