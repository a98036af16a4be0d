"""Whisper-style transcripts: segments, speakers, and what was found in them, in three shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Action, Annotations, Conversation, Risk, Segment, Time, Topic
from support.logs import counts, places, read, story, write_json

SEGMENTS = [
    {"id": 0, "start": 0.0, "end": 2.0, "text": " Hello, how can I help?", "speaker": {"id": "spk_agent"}},
    {"id": 1, "start": 2.5, "end": 4.0, "text": "Get me a supervisor.", "speaker": {"id": "spk_customer"}},
    {"id": 2, "start": 4.5, "end": 6.0, "text": "I'll send it today.", "speaker": {"id": "spk_agent"}},
]


def transcript(**fields: Any) -> dict[str, Any]:
    return {"schema_version": 2, "file": "call.wav", "language": "en", "segments": SEGMENTS} | fields


def found(folder: Path, semantic: Any, **fields: Any) -> Annotations:
    conversation = read(write_json(folder / "call.json", transcript(annotations={"semantic": semantic}, **fields))).only
    (annotations,) = conversation.annotations
    return annotations


class TestSegments:
    def test_each_is_an_utterance_with_its_times(self, tmp_path: Path) -> None:
        call = read(write_json(tmp_path / "call.json", transcript())).only
        assert call.id == "call"
        assert story(call) == [
            "assistant:spk_agent: Hello, how can I help?",
            "user:spk_customer: Get me a supervisor.",
            "assistant:spk_agent: I'll send it today.",
        ]
        assert call.utterances[1].time == Time(2.5, "audio", 4.0)
        assert call.utterances[1].segments == (Segment(2.5, 4.0, "audio"),)
        assert call.extras["language"] == "en"

    @pytest.mark.parametrize(
        ("speaker", "role"),
        [
            ("Agent", "assistant"),
            ({"id": "spk_customer"}, "user"),
            ("SPEAKER_00", "unknown"),
            ({"id": "spk_lead"}, "unknown"),
            ("Customer support", "assistant"),
            ("agent and customer", "unknown"),
            (None, "unknown"),
        ],
    )
    def test_a_label_tells_the_role_or_does_not(self, speaker: Any, role: str, tmp_path: Path) -> None:
        call = read(write_json(tmp_path / "c.json", transcript(segments=[{**SEGMENTS[0], "speaker": speaker}]))).only
        assert list(call.roles.values()) == [role]

    def test_the_list_of_speakers_tells_the_role_of_a_number(self, tmp_path: Path) -> None:
        segments = [{**SEGMENTS[1], "speaker": {"id": "spk_1"}}]
        call = read(
            write_json(
                tmp_path / "c.json", transcript(segments=segments, speakers=[{"id": "spk_1", "label": "caller"}])
            )
        ).only
        assert call.participants[0].role == "user"

    def test_a_broken_segment_costs_only_itself(self, tmp_path: Path) -> None:
        broken = [SEGMENTS[0], "odd", {"id": 7}, {**SEGMENTS[1], "start": "soon"}, SEGMENTS[2]]
        outcome = read(write_json(tmp_path / "call.json", transcript(segments=broken)))
        assert len(outcome.only.utterances) == 4 - 1  # "odd" and {"id": 7} say nothing
        assert outcome.only.utterances[1].time is None
        assert counts(outcome.report.set_aside) == {
            "segment_is_no_object": 1,
            "segment_without_times": 2,
            "segment_without_words_and_times": 1,
        }
        assert "segments[1]: odd" in places(outcome.report.set_aside)["segment_is_no_object"][0]

    @pytest.mark.parametrize("silent", ["", " ", None])
    def test_a_segment_without_words_keeps_its_times(self, silent: str | None, tmp_path: Path) -> None:
        segments = [{**SEGMENTS[0], "text": silent}, SEGMENTS[1]]
        outcome = read(write_json(tmp_path / "call.json", transcript(segments=segments)))
        assert outcome.report.set_aside == {}
        assert outcome.only.utterances[0].heard is None
        assert outcome.only.utterances[0].segments == (Segment(0.0, 2.0, "audio"),)

    def test_a_text_of_another_type_is_counted(self, tmp_path: Path) -> None:
        outcome = read(
            write_json(tmp_path / "call.json", transcript(segments=[{**SEGMENTS[0], "text": 7}, SEGMENTS[1]]))
        )
        assert counts(outcome.report.set_aside) == {"text_is_no_text": 1}

    def test_no_segment_at_all_is_a_problem(self, tmp_path: Path) -> None:
        good, bad = transcript(), transcript(segments=[{"start": None}])
        outcome = read(write_json(tmp_path / "calls.json", [good, bad]))
        assert len(outcome.conversations) == 1
        assert "no segment with words" in outcome.problem.message

    def test_a_list_of_stretches_without_words(self, tmp_path: Path) -> None:
        """What diarisation leaves: who spoke when. Nobody knows what was said."""
        stretches = [
            {"start": 0.5, "end": 1.5, "speaker": "SPEAKER_00"},
            {"start": 2, "end": 3, "speaker": "SPEAKER_01"},
        ]
        call = read(write_json(tmp_path / "who.json", stretches)).only
        assert [one.heard for one in call.utterances] == [None, None]
        assert [one.name for one in call.participants] == ["SPEAKER_00", "SPEAKER_01"]


class TestKeywordShape:
    FORM = {
        "keywords": ["supervisor"],
        "risk_tags": ["escalation"],
        "tags": ["escalation"],
        "matches": [{"risk": "escalation", "keyword": "supervisor", "segment_id": 1}],
        "actions": [{"text": "I'll send it today.", "speaker_id": "spk_agent", "segment_ids": [2], "pattern": "I'll"}],
    }

    def test_tags_are_risks_and_there_are_no_topics(self, tmp_path: Path) -> None:
        annotations = found(tmp_path, self.FORM)
        assert annotations.origin == "predicted"
        assert annotations.annotator == "keyword"
        assert annotations.topics is None
        assert annotations.risks == (Risk(type="escalation", events=(1,), extras={"keywords": ["supervisor"]}),)
        assert annotations.actions == (
            Action(description="I'll send it today.", assignee="spk_agent", events=(2,), extras={"pattern": "I'll"}),
        )

    def test_no_tags_means_that_nothing_was_found(self, tmp_path: Path) -> None:
        assert found(tmp_path, {"risk_tags": [], "matches": []}).risks == ()


class TestSecondVersion:
    FORM = {
        "annotator": "llm",
        "model": "m",
        "generated_at": "2026-01-08T12:00:00Z",
        "topics": [{"label": "pricing", "confidence": 0.9, "span": [0, 2], "evidence": "x"}, "billing"],
        "risks": [{"type": "escalation", "severity": "high", "segment_ids": [1], "evidence": "supervisor"}],
        "actions": [{"description": "Send it", "assignee_role": "agent", "due": "today", "verbatim": "I'll send it"}],
        "extraction_status": {"topics": "success", "risks": "success", "actions": "partial"},
    }

    def test_all_families(self, tmp_path: Path) -> None:
        annotations = found(tmp_path, self.FORM)
        assert annotations.topics == (
            Topic(label="pricing", confidence=0.9, span=(0, 2), evidence="x"),
            Topic(label="billing"),
        )
        assert annotations.risks == (Risk(type="escalation", severity="high", events=(1,), evidence="supervisor"),)
        assert annotations.actions == (
            Action(description="Send it", assignee_role="agent", due="today", verbatim="I'll send it"),
        )
        assert annotations.extraction["actions"] == "partial"

    @pytest.mark.parametrize("status", ["error", "skipped"])
    def test_a_family_that_failed_is_not_found_nothing(self, status: str, tmp_path: Path) -> None:
        annotations = found(tmp_path, {**self.FORM, "risks": [], "extraction_status": {"risks": status}})
        assert annotations.risks is None
        assert annotations.extraction["risks"] == status
        assert annotations.topics is not None

    def test_a_family_that_is_missing_is_none_and_an_empty_one_is_empty(self, tmp_path: Path) -> None:
        annotations = found(tmp_path, {"topics": [], "actions": None})
        assert (annotations.topics, annotations.risks, annotations.actions) == ((), None, None)

    def test_an_annotation_that_says_it_failed(self, tmp_path: Path) -> None:
        annotations = found(tmp_path, {"topics": [], "risks": [], "actions": [], "confidence": 0, "error": "timeout"})
        assert (annotations.topics, annotations.risks, annotations.actions) == (None, None, None)
        assert annotations.extraction == {"topics": "error", "risks": "error", "actions": "error"}

    def test_a_broken_finding_costs_only_itself(self, tmp_path: Path) -> None:
        risks = [{"severity": "high"}, {"type": "escalation", "segment_ids": [1, 99]}]
        path = write_json(tmp_path / "call.json", transcript(annotations={"semantic": {"risks": risks}}))
        outcome = read(path)
        (annotations,) = outcome.only.annotations
        # The first was predicted, too: it counts, and matches nothing. A segment that does not exist stays in extras.
        assert annotations.risks == (
            Risk(type="", severity="high"),
            Risk(type="escalation", events=(1,), extras={"segment_ids": [99]}),
        )
        assert annotations.extras == {}
        assert counts(outcome.report.set_aside) == {"unreadable_finding": 1, "finding_without_segment": 1}

    def test_of_several_annotators_all_are_kept_and_a_note_says_which_is_scored(self, tmp_path: Path) -> None:
        both = [{"model": "m1", "topics": ["refund"]}, {"model": "m2", "topics": []}, {"model": "m1", "topics": []}]
        outcome = read(write_json(tmp_path / "call.json", transcript(annotations={"semantic": both})))
        assert [one.model for one in outcome.only.annotations] == ["m1", "m2", "m1"]
        assert outcome.report.inferred["first_annotator_is_scored"].examples[0].endswith("m1, m2")


class TestShapeOfAdapters:
    FORM = {
        "schema_version": "0.1.0",
        "provider": "local-llm",
        "model": "m",
        "normalized": {
            "topics": ["billing"],
            "intent": "complain",
            "action_items": [{"text": "Send it", "speaker_id": "spk_agent", "segment_ids": [2], "confidence": 0.7}],
            "risk_tags": ["escalation"],
        },
        "confidence": 0.8,
    }

    def test_names_and_tags(self, tmp_path: Path) -> None:
        annotations = found(tmp_path, self.FORM)
        assert annotations.annotator == "local-llm"
        assert annotations.topics == (Topic(label="billing"),)
        assert annotations.risks == (Risk(type="escalation"),)
        assert annotations.actions == (
            Action(description="Send it", assignee="spk_agent", events=(2,), confidence=0.7),
        )
        assert annotations.extras["normalized"] == {"intent": "complain"}

    def test_one_for_each_chunk(self, tmp_path: Path) -> None:
        """What is found in a chunk rests on the segments of the chunk."""
        chunks = [{"id": "chunk_0", "segment_ids": [1, 2], "semantic": self.FORM}]
        call: Conversation = read(write_json(tmp_path / "call.json", transcript(chunks=chunks))).only
        assert call.annotations[0].topics == (Topic(label="billing", events=(1, 2)),)
