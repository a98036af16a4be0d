"""Published transcripts with their gold labels: the rules score them alike in a benchmark and in a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from convoscope.ingest.companions.gold_files import convert_files
from support.two_scorers import assert_same, both


def test_a_benchmark_and_a_run_agree(
    shared: Callable[[str], Path],
    ran: Callable[[str, int], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CONVOSCOPE_BENCHMARKS", str(tmp_path))
    data = shared("data/semantic")
    head = ("schema_version", "sample_id", "dataset", "annotator")
    gold = {
        file.gold["sample_id"]: {name: value for name, value in file.gold.items() if name not in head}
        for file in convert_files(data / "gold-upstream", "d", "h", leave_out_unknown=True)
    }
    transcripts = {path.stem: json.loads(path.read_text()) for path in sorted((data / "transcripts").glob("*.json"))}
    samples = {name: (transcript, gold.get(name)) for name, transcript in transcripts.items()}
    benchmark, run = both(tmp_path, samples, annotate="rules")
    assert_same(benchmark, run)
    assert run["semantic.topic_f1"].value is not None
    ran("transcripts scored in two ways", len(samples))
