"""The three shapes of annotations mean the same to a benchmark, and to whoever reads the transcript."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from convoscope.analysis.benchmark.labels import read_prediction
from convoscope.annotate.annotator import NotAnnotated
from convoscope.ingest.read import read
from convoscope.metrics.semantic.samples import Labels, labels_of

SEGMENTS = [{"id": number, "start": number, "end": number + 1, "text": f"Word {number}."} for number in range(6)]
SECOND = {
    "topics": [{"label": "login"}, "weather"],
    "risks": [{"type": "churn", "severity": "High", "segment_ids": [1, 2]}],
    "actions": [{"text": "Send the form", "verbatim": "I'll send the form", "assignee_role": "agent"}],
}
KEYWORDS = {
    "risk_tags": ["escalation"],
    "matches": [{"risk": "escalation", "segment_id": 3}, {"risk": "churn", "segment_id": 4}],
    "actions": [{"text": "Call back"}],
}
ADAPTER = {"normalized": {"topics": ["refund"], "risk_tags": ["legal"], "action_items": [{"text": "Call back"}]}}
FAILED = {"topics": [], "risks": [], "actions": [], "error": "timeout", "extraction_status": {"topics": "success"}}
SKIPPED = {"topics": ["refund"], "risks": [], "extraction_status": {"topics": "skipped", "risks": "failed"}}


def _transcript(semantic: Any, **more: Any) -> dict[str, Any]:
    head = {"schema_version": 2, "file": "a.wav", "language": "en", "segments": SEGMENTS}
    return {**head, **({} if semantic is None else {"annotations": {"semantic": semantic}}), **more}


def _both(tmp_path: Path, transcript: dict[str, Any]) -> tuple[Labels, Labels]:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(transcript))
    (conversation,) = read([path])
    return read_prediction(path.read_bytes(), "a.json").labels, labels_of(conversation.annotations)


@pytest.mark.parametrize("shape", [SECOND, KEYWORDS, ADAPTER, FAILED, SKIPPED, [SECOND, ADAPTER]])
def test_both_readers_see_the_same(tmp_path: Path, shape: Any) -> None:
    mine, theirs = _both(tmp_path, _transcript(shape))
    assert mine == theirs


def test_what_stands_at_chunks_is_put_together(tmp_path: Path) -> None:
    chunks = [{"segment_ids": [0, 1], "semantic": ADAPTER}, {"segment_ids": [2], "annotations": {"semantic": SECOND}}]
    mine, theirs = _both(tmp_path, _transcript(None, chunks=chunks))
    # refund of the first chunk; login means account_access, weather stays.
    assert mine.topics == theirs.topics == ("refund", "account_access", "weather")
    assert len(mine.actions or ()) == len(theirs.actions or ()) == 2


def test_the_second_version() -> None:
    labels = read_prediction(json.dumps(_transcript(SECOND)).encode(), "a").labels
    assert labels.topics == ("account_access", "weather")
    assert labels.risks == (("churn_risk", "high", (1, 2)),)
    assert labels.actions == (("Send the form", "I'll send the form", "agent"),)
    assert labels.provides_severity


def test_tags_and_matches_are_one_risk_without_severity() -> None:
    labels = read_prediction(json.dumps(_transcript(KEYWORDS)).encode(), "a").labels
    assert labels.topics is None
    assert labels.risks == (("escalation", "", (3,)), ("churn_risk", "", (4,)))
    assert not labels.provides_severity


def test_a_failed_annotation_found_not_nothing() -> None:
    labels = read_prediction(json.dumps(FAILED).encode(), "a").labels
    assert labels == Labels(None, None, None, True, frozenset({"topics", "risks", "actions"}))
    assert read_prediction(json.dumps(SKIPPED).encode(), "a").labels == Labels(failed=frozenset({"risks"}))


@pytest.mark.parametrize("shape", [{**SECOND, "topics": {}}, {**SECOND, "actions": 3}, {**KEYWORDS, "risk_tags": "x"}])
def test_findings_that_are_no_list_failed_for_both_readers(tmp_path: Path, shape: Any) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(_transcript(shape)))
    with pytest.raises(NotAnnotated, match=r"annotation_failed: a\.json .*is no list of findings"):
        read_prediction(path.read_bytes(), "a.json")
    (conversation,) = read([path])
    assert labels_of(conversation.annotations) == Labels(failed=frozenset({"topics", "risks", "actions"}))


@pytest.mark.parametrize(("status", "is_partial"), [("partial", True), ("success", False), ("error", False)])
def test_a_prediction_may_say_that_findings_are_missing(status: str, is_partial: bool) -> None:
    held = {"topics": ["refund"], "risks": [], "actions": [], "extraction_status": {"topics": status}}
    prediction = read_prediction(json.dumps(held).encode(), "a.json")
    assert prediction.is_partial is is_partial
