"""Gold labels of a sample that no conversation has: it counts as unmeasured, and is never left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import convoscope
from convoscope.runs.run import Run

METRICS = ["semantic.topic_f1", "semantic.action_accuracy", "conversation.turns"]


def _call(folder: Path, name: str, text: str = '{"cut') -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(text)


def _transcript(*topics: str) -> str:
    segments = [{"id": 0, "start": 0, "end": 1, "text": "Hello.", "speaker": {"id": "spk_0"}}]
    found = {"annotator": "x", "topics": list(topics), "actions": [{"description": "Send the form"}]}
    head = {"schema_version": 2, "file": "a.wav", "language": "en"}
    return json.dumps({**head, "segments": segments, "annotations": {"semantic": found}})


def _gold(folder: Path, sample: str, label: str = "billing") -> None:
    folder.mkdir(exist_ok=True)
    head = {"schema_version": 1, "sample_id": sample, "dataset": "d", "annotator": "human"}
    labels = {"topics": [{"label": label}], "actions": [{"description": "Send the form"}]}
    (folder / f"{sample}_gold.json").write_text(json.dumps({**head, **labels}))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Two calls with gold; one gold sample has no call, one a call that cannot be read, one is itself unusable."""
    _call(tmp_path / "calls", "a", _transcript("billing"))
    _call(tmp_path / "calls", "b", _transcript("refund"))
    _call(tmp_path / "calls", "cut")
    for sample in ("a", "b", "alone", "cut"):
        _gold(tmp_path / "gold", sample)
    _gold(tmp_path / "gold", "wrong", label="weather")
    paths = [tmp_path / "calls", tmp_path / "gold"]
    # Without a user there are no turns to count.
    return convoscope.score(paths, metrics=METRICS, speakers=["user=spk_0"], out=tmp_path / "run", workers=1)


def test_it_counts_in_the_coverage_of_what_needs_gold(run: Run) -> None:
    figures = {one.key: one for one in run.summary.metrics if not one.reduction}
    accuracy = figures["semantic.action_accuracy"]
    # a and b are measured; `alone` and `cut` have gold and no conversation: 2 of 4.
    assert (accuracy.samples_total, accuracy.samples_measured, accuracy.coverage) == (4, 2, 0.5)
    assert accuracy.skipped_reasons == {"no_conversation": 2}
    # Both calls find their one action. What nobody measured is no zero.
    assert accuracy.value == 1.0
    # a: 1 hit; b: 1 wrong, 1 missed: 2 / (2 + 1 + 1).
    assert figures["semantic.topic_f1"].value == 0.5
    assert figures["semantic.topic_f1"].coverage == 0.5


def test_other_figures_do_not_know_of_it(run: Run) -> None:
    turns = next(one for one in run.summary.metrics if one.metric == "conversation.turns")
    assert (turns.samples_total, turns.coverage) == (2, 1.0)
    assert run.summary.conversations == 2


def test_the_samples_are_named(run: Run) -> None:
    assert (
        "2 samples have gold labels and no conversation (alone, cut): unmeasured, no_conversation"
        in run.read_report.warnings
    )


def test_a_conversation_of_that_id_has_it(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    logs = tmp_path / "chats.jsonl"
    logs.write_text("".join(json.dumps({"id": id, "messages": messages}) + "\n" for id in ("one", "two")))
    _gold(tmp_path / "gold", "two")
    run = convoscope.score([logs, tmp_path / "gold"], metrics=METRICS, out=tmp_path / "run", workers=1)
    assert not any("no conversation" in words for words in run.read_report.warnings)


def test_what_a_limit_leaves_out_was_not_asked_for(tmp_path: Path) -> None:
    for name in ("a", "b"):
        _call(tmp_path / "calls", name, _transcript("billing"))
        _gold(tmp_path / "gold", name)
    paths = [tmp_path / "calls", tmp_path / "gold"]
    run = convoscope.score(paths, metrics=METRICS, out=tmp_path / "run", limit=1, workers=1)
    assert next(one for one in run.summary.metrics if one.metric == "semantic.topic_f1").samples_total == 1
