"""Scoring given predictions of topics, risks and actions, against fixed figures of the published program.

The figures were measured on a machine of this kind: 10,000 samples in tags mode took 18.3 s of CPU, one sample of
100 × 100 actions 2.9 s. Both are of samples in memory: reading, checking and writing are shown apart, and annotation
is not part of it. Times are of the CPU, and a loop that is printed beside them
tells how fast the machine is at the moment.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from convoscope.analysis.benchmark.datasets import VARIABLE
from convoscope.analysis.benchmark.labels import read_prediction
from convoscope.analysis.benchmark.result import BenchmarkRequest, write_result
from convoscope.analysis.benchmark.run import run_benchmark
from convoscope.analysis.benchmark.semantic import SWEEP, without_collector
from convoscope.metrics.semantic.matching import match_actions
from convoscope.metrics.semantic.samples import Labels, score_sample

PUBLISHED_SAMPLES = 10_000
PUBLISHED_SECONDS = 18.3
PUBLISHED_ACTIONS_SECONDS = 2.9

TOPICS = ("pricing", "billing", "contract", "refund", "delivery", "setup")
RISKS = ("escalation", "churn_risk", "pricing_objection")
SEVERITIES = ("low", "medium", "high")
WORDS = ("send", "update", "call", "customer", "proposal", "the", "refund", "schedule", "follow", "invoice", "today")


def run(folder: Path, samples: int) -> None:
    """Print both ratios, for scoring alone and with reading the files."""
    rng = random.Random(2026)
    _stage(folder, samples, rng)
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(folder / "benchmarks")
    try:
        request = BenchmarkRequest("semantic", "bench", predictions=folder / "predictions")
        run_benchmark(request._replace(limit=1))
        whole = _seconds(lambda: write_result(folder / "result.json", run_benchmark(request)))
    finally:
        os.environ.pop(VARIABLE) if before is None else os.environ.update({VARIABLE: before})
    labels = [
        (_labels(folder / "predictions" / f"s{number}.json"), _labels(folder / "gold" / f"s{number}.json"))
        for number in range(samples)
    ]

    def score() -> list[object]:
        return [score_sample(predicted, gold, 0.8, SWEEP) for predicted, gold in labels]

    collected = _seconds(score)
    with without_collector():
        alone = _seconds(score)
    share = samples / PUBLISHED_SAMPLES
    rows = (
        ("scored, with the collector of Python", collected),
        ("scored, without it, as the command does", alone),
        ("read, checked, scored, written", whole),
    )
    for what, seconds in rows:
        ratio = PUBLISHED_SECONDS * share / seconds
        print(
            f"semantic: {samples:,} samples {what} in {seconds:.2f} s of CPU, {ratio:.0f} times the published program"
        )
    mine, theirs = ([_action(rng) for _ in range(100)] for _ in range(2))
    alike = [f"send update {number:03d} to the customer today" for number in range(100)]
    for what, predicted, gold in (("random", mine, theirs), ("all alike", alike, alike[::-1])):
        seconds = _seconds(partial(match_actions, predicted, gold))
        ratio = PUBLISHED_ACTIONS_SECONDS / seconds
        print(f"semantic: 100 × 100 actions, {what}: {1000 * seconds:.1f} ms, {ratio:.0f} times the published program")
    print(f"semantic: a loop of 10,000,000 additions takes {_seconds(_loop):.2f} s of CPU now\n")


def _labels(path: Path) -> Labels:
    return read_prediction(path.read_bytes(), str(path)).labels


def _stage(folder: Path, samples: int, rng: random.Random) -> None:
    goldens = folder / "benchmarks" / "datasets" / "semantic" / "bench" / "goldens"
    for place in (goldens, folder / "predictions", folder / "gold"):
        place.mkdir(parents=True, exist_ok=True)
    for number in range(samples):
        risks = [{"type": one, "severity": rng.choice(SEVERITIES), "segment_ids": [3]} for one in rng.sample(RISKS, 2)]
        texts = [_action(rng) for _ in range(3)]
        gold = {
            "topics": [{"label": one} for one in rng.sample(TOPICS, 3)],
            "risks": risks,
            "actions": [{"description": one, "assignee_role": "agent"} for one in texts],
        }
        head = {"schema_version": 1, "sample_id": f"s{number}", "dataset": "bench", "annotator": "generator"}
        predicted = {
            "topics": [{"label": one} for one in rng.sample(TOPICS, 3)],
            "risks": [risks[0], {"type": "agent_error", "severity": "low"}],
            "actions": [{"description": one} for one in (texts[0], texts[1] + "s", _action(rng))],
        }
        (goldens / f"s{number}_gold.json").write_text(json.dumps({**head, **gold}))
        (folder / "gold" / f"s{number}.json").write_text(json.dumps(gold))
        (folder / "predictions" / f"s{number}.json").write_text(json.dumps({"annotations": {"semantic": predicted}}))


def _action(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=5))


def _seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _loop() -> int:
    total = 0
    for number in range(10_000_000):
        total += number
    return total
