"""The semantic benchmark and a run on the same samples: what each says of every figure that both have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import convoscope
from convoscope.analysis.benchmark.result import BenchmarkRequest, BenchmarkResult
from convoscope.analysis.benchmark.run import run_benchmark
from convoscope.runs.run import Run
from support.logs import write_json

SEVERITIES = ("critical", "high", "medium", "low")
SAME = {
    "topic_f1": "semantic.topic_f1",
    "topic_precision": "semantic.topic_f1 precision",
    "topic_recall": "semantic.topic_f1 recall",
    "topic_f1_macro": "semantic.topic_f1 macro",
    "risk_f1": "semantic.risk_f1",
    "risk_precision": "semantic.risk_f1 precision",
    "risk_recall": "semantic.risk_f1 recall",
    "risk_f1_macro": "semantic.risk_f1 macro",
    "risk_f1_weighted": "semantic.risk_f1_weighted",
    "risk_f1_weighted_type_only": "semantic.risk_f1_weighted_type_only",
    "action_f1": "semantic.action_f1",
    "action_precision": "semantic.action_f1 precision",
    "action_f1_macro": "semantic.action_f1 macro",
    "action_accuracy": "semantic.action_accuracy",
    "assignee_accuracy": "semantic.assignee_accuracy",
}
"""The figures of the benchmark, and what a run calls them."""
_NOTHING_THERE = ("nothing_to_find", "nothing_in_gold", "no_matched_action_with_a_role")
"""Why a sample is not applicable: the benchmark counts these and does not name them."""


def both(
    folder: Path, samples: dict[str, tuple[dict[str, Any], dict[str, Any] | None]], annotate: str | None = None
) -> tuple[BenchmarkResult, Run]:
    """Score samples, each a transcript and its gold labels, in both ways. CONVOSCOPE_BENCHMARKS names the folder."""
    dataset, transcripts = folder / "datasets" / "semantic" / "d", folder / "transcripts"
    for name, (transcript, gold) in samples.items():
        write_json(transcripts / f"{name}.json", transcript)
        if gold is not None:
            head = {"schema_version": 1, "sample_id": name, "dataset": "d", "annotator": "h"}
            write_json(dataset / "goldens" / f"{name}_gold.json", {**head, **gold})
    made: dict[str, Any] = {"transcripts": transcripts} if annotate else {"predictions": transcripts}
    benchmark = run_benchmark(BenchmarkRequest("semantic", "d", **made))
    metrics = [*dict.fromkeys(name.partition(" ")[0] for name in SAME.values()), "semantic.risk_f1_by_severity"]
    paths = [transcripts, dataset / "goldens"]
    return benchmark, convoscope.score(paths, out=folder / "run", metrics=metrics, annotate=annotate)


def assert_same(benchmark: BenchmarkResult, run: Run) -> None:
    """Both say the same of every figure: value, interval, coverage, samples, and the reasons of those left out."""
    measured = {f"{figure.key} {figure.reduction}".strip(): figure for figure in run.summary.figures}
    absent = {metric: entry for entry in run.summary.not_measured for metric in entry.metrics}
    for name, key in SAME.items():
        ours = benchmark.metrics[name]
        if key not in measured:
            entry = absent[key.partition(" ")[0]]
            total = ours.samples_measured + ours.samples_skipped
            assert (ours.value, ours.reason, total) == (None, entry.reason, entry.samples_total), name
            assert ours.skipped_reasons == _reasons(entry.skipped_reasons), name
            continue
        figure = measured[key]
        assert ours.value == figure.value, name
        assert ours.coverage == figure.coverage, name
        assert ours.interval == figure.interval, name
        assert (ours.samples_measured, ours.samples_skipped, ours.samples_not_applicable) == (
            (figure.samples_measured, figure.samples_skipped, figure.samples_not_applicable)
        ), name
        assert ours.skipped_reasons == _reasons(figure.skipped_reasons), name
    groups = {group.by["severity"]: group.metrics[0].value for group in run.summary.groups if "severity" in group.by}
    assert {level: benchmark.metrics[f"risk_f1_{level}"].value for level in SEVERITIES} == {
        level: groups.get(level) for level in SEVERITIES
    }


def _reasons(reasons: dict[str, int]) -> dict[str, int]:
    return {reason: count for reason, count in reasons.items() if reason not in _NOTHING_THERE}
