"""One workload, named: evaluation items as JSON lines, read, validated, scored by four scorers, written as a run."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

from benchmarks import scoring

METRICS = ("answer.exact_match", "answer.accuracy", "answer.f1", "answer.multi_pattern_accuracy")
RELEASED_US = 230.0
"""Microseconds an item in a released package of such scorers, read and scored by the same four, on one thread."""
AIM = 10.0
MEMORY_AIM = 1.4

_THINGS = ["plan", "ticket", "invoice", "delivery", "router", "password", "meter", "refund"]
_PLACES = ["Settings", "Billing", "Account", "Orders", "Profile", "Support"]
_DEEDS = ["cancel", "change", "find", "return", "renew", "pause"]


def run(folder: Path, size: int) -> None:
    """Print the time and memory of one core for `size` items, and for a tenth of them."""
    peaks: list[float] = []
    for count in (size // 10, size):
        path = folder / f"items-{count}.jsonl"
        write_items(path, count)
        measured = scoring.score(path, folder / f"run-items-{count}", workers=1, metrics=METRICS)
        peaks.append(measured.peak_mb)
        each = 1e6 * measured.cpu / count
        alone = 1e6 * scoring.json_seconds(path) / count
        print(f"{count:,} items, {path.stat().st_size / 1e6:.0f} MB, one worker: {measured.cpu:.1f} s of CPU time")
        print(f"  {each:.1f} µs an item: {RELEASED_US / each:.1f} times as fast as {RELEASED_US:.0f} µs, aim {AIM:.0f}")
        print(f"  peak memory {measured.peak_mb:.0f} MB; json.loads alone takes {alone:.1f} µs an item")
        timings = measured.run.receipt.timings
        told = ", ".join(f"{name} {1e6 * seconds / count:.1f}" for name, seconds in timings.items())
        rest = each - 1e6 * sum(timings.values()) / count
        print(f"  µs an item: {told}, all else (start, cutting, hashing, the page) {rest:.1f}")
    print(f"memory at {size:,} items is {peaks[1] / peaks[0]:.2f} of that at {size // 10:,}, aim {MEMORY_AIM:g}\n")


def write_items(path: Path, count: int, seed: int = 1) -> None:
    """Write `count` items with the twelve fields of the published example; a third of the answers are wrong."""
    with path.open("w", encoding="utf-8") as stream:
        for item in items(count, seed):
            stream.write(json.dumps(item) + "\n")


def items(count: int, seed: int = 1) -> Iterator[dict[str, object]]:
    """The same, as they are before they are written."""
    draw = random.Random(seed)
    return (_item(number, draw) for number in range(count))


def _item(number: int, draw: random.Random) -> dict[str, object]:
    deed, thing = draw.choice(_DEEDS), draw.choice(_THINGS)
    truth = f"{draw.choice(_PLACES)} > {draw.choice(_PLACES)} > {deed.title()} {thing}"
    path = truth if draw.random() < 2 / 3 else f"{draw.choice(_PLACES)} > {draw.choice(_PLACES)}"
    answer = truth if draw.random() < 0.1 else f"You can {deed} your {thing} {number} from {path}."
    return {
        "novaeval_item_type": "agent",
        "agent_name": f"support-bot-{number % 3}",
        "agent_role": "Customer support specialist",
        "agent_task": f"How do I {deed} my {thing} number {number}?",
        "agent_response": answer,
        "ground_truth": truth,
        "system_prompt": "You are a helpful customer support agent of a telephone company.",
        "tool_calls": [],
        "retrieval_query": [f"{deed} {thing}"],
        "retrieved_context": [[f"To {deed} your {thing}, go to {truth} and confirm."]],
        "source_trace_id": f"trace_{number:08d}",
        "metadata": {"environment": "production", "model": f"model-{number % 4}"},
    }
