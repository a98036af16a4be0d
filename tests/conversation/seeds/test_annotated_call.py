"""The model holds everything that the seed semantic-benchmark.md and the schemas of the semantic specification name."""

import pytest

from convoscope.conversation import Annotations, Conversation
from support.seed_examples import example, said


@pytest.fixture
def call() -> Conversation:
    return example("annotated-call")


@pytest.fixture
def gold(call: Conversation) -> Annotations:
    (gold,) = (a for a in call.annotations if a.origin == "gold")
    return gold


@pytest.fixture
def llm(call: Conversation) -> Annotations:
    return next(a for a in call.annotations if a.annotator == "llm")


@pytest.fixture
def keywords(call: Conversation) -> Annotations:
    return next(a for a in call.annotations if a.annotator == "keywords")


def test_sample(call: Conversation) -> None:
    assert call.id == "OC-014"  # sample_id
    assert call.dimensions["dataset"] == "office-calls"
    assert call.dimensions["split"] == "test"
    assert call.source.files[1] == "goldens/OC-014_gold.json"


def test_gold_header(gold: Annotations) -> None:
    assert gold.annotator == "human"
    assert gold.annotated_at == "2026-02-03T09:30:00Z"
    assert gold.extras["schema_version"] == 1


def test_gold_topics(gold: Annotations) -> None:
    assert [(t.label, t.span, t.confidence, t.notes) for t in gold.topics or ()] == [
        ("billing", (1, 4), 1.0, "A month was invoiced twice"),
        ("renewal", (6, 7), 0.9, "The lease ends in March"),
    ]


def test_gold_risks(gold: Annotations) -> None:
    assert [(r.type, r.severity, r.events, r.evidence) for r in gold.risks or ()] == [  # events: segment_ids
        ("escalation", "high", (3,), "Put me through to whoever runs this place"),
        ("churn_risk", "critical", (6,), "Why should we stay?"),
        ("competitor_mention", "low", (6,), "the Foundry next door is cheaper"),
        ("customer_frustration", "medium", (1, 3), "this is the third time I've called"),
    ]
    assert [r.notes for r in gold.risks or ()] == [
        "Asks for the person in charge",
        "",
        "",
        "Merged: same complaint in two segments",
    ]


def test_gold_actions(gold: Annotations) -> None:
    assert [(a.description, a.assignee_role, a.events, a.verbatim) for a in gold.actions or ()] == [
        ("Refund the second October invoice", "agent", (4,), "I'll refund the second invoice today"),
        ("Send a renewal offer", "team", (7,), "I'll send you a renewal offer"),
        ("Send the bank statement", "customer", (8,), "I'll send over the bank statement"),
    ]


def test_evidence_stands_in_the_segments_it_names(call: Conversation) -> None:
    for annotations in call.annotations:
        for finding in (*(annotations.risks or ()), *(annotations.actions or ())):
            quote = getattr(finding, "verbatim", "") or finding.evidence
            assert any(quote in call.text(said(call, seq)) for seq in finding.events)


def test_predicted_header(llm: Annotations) -> None:
    assert llm.origin == "predicted"
    assert llm.model == "annotator-7b"
    assert llm.annotated_at == "2026-02-04T18:02:11Z"  # generated_at
    assert (llm.extras["version"], llm.extras["backend"]) == ("2.0.0", "local")
    assert (llm.extras["keywords"], llm.extras["risk_tags"]) == (["invoice", "lease"], ["escalation"])


def test_predicted_findings(llm: Annotations) -> None:
    billing, complaint = llm.topics or ()
    assert (billing.label, billing.confidence, billing.span) == ("billing", 0.95, (1, 4))
    assert billing.evidence == "You charged us twice"
    assert billing.extras["chunk_ids"] == ["chunk_0"]
    assert (complaint.label, complaint.confidence, complaint.span) == ("complaint", 0.61, (1, 3))
    (risk,) = llm.risks or ()
    assert (risk.type, risk.severity, risk.confidence, risk.speaker) == ("escalation", "medium", 0.88, "spk_1")
    assert risk.events == (3,)
    assert risk.extras["recommended_action"] == "offer a call from the team lead"
    refund, offer = llm.actions or ()
    assert (refund.assignee, refund.due, refund.priority, refund.status) == ("spk_0", "today", "high", "pending")
    assert (refund.description, refund.confidence) == ("Refund the second invoice", 0.92)
    assert (offer.assignee, offer.assignee_role, offer.due) == ("spk_2", "team", "friday")
    assert (offer.description, offer.confidence, offer.events) == ("Send a renewal offer", 0.9, (7,))
    assert [(e.type, e.text, e.value) for e in llm.entities or ()] == [
        ("organization", "the Foundry", ""),
        ("date", "Friday", "2026-02-06"),
    ]


def test_summaries(gold: Annotations, llm: Annotations) -> None:
    assert gold.summary is not None
    assert gold.summary.endswith("will send a renewal offer by Friday.")  # the reference
    assert llm.summary is not None
    assert llm.summary.startswith("The tenant complains about a double charge")


def test_extraction_status(llm: Annotations, keywords: Annotations) -> None:
    assert llm.extraction == {"topics": "success", "risks": "partial", "actions": "success", "summary": "success"}
    assert keywords.extraction == {"topics": "skipped", "risks": "success", "actions": "success"}


def test_not_annotated_is_not_nothing_found(gold: Annotations, keywords: Annotations) -> None:
    assert keywords.topics is None
    assert keywords.risks == ()
    assert keywords.summary is None
    assert gold.entities is None


def test_keyword_form(keywords: Annotations) -> None:
    (action,) = keywords.actions or ()
    assert action.description == "I'll send over the bank statement with both charges."
    assert action.extras["pattern"] == r"\bI'll\b"
    assert (action.assignee, action.events) == ("spk_1", (8,))


def test_human_labels_of_the_summary(call: Conversation) -> None:
    assert [(label.name, label.value, label.rater) for label in call.labels] == [
        ("faithfulness", 9, "rater-1"),
        ("coverage", 6, "rater-1"),
        ("clarity", 8.5, "rater-2"),
    ]
    for label in call.labels:
        assert (label.rater_kind, label.scale, label.policy) == ("human", "0-10", "summary-guide/2")
        assert (label.subject_kind, label.subject) == ("summary", "llm")
    assert call.labels[1].notes == "The refund is not mentioned"


def test_transcript(call: Conversation) -> None:
    assert [(u.seq, u.id) for u in call.utterances] == [(n, str(n)) for n in range(10)]  # segment ids
    assert call.roles == {"spk_0": "assistant", "spk_1": "user", "spk_2": "supervisor"}
    assert {(u.spoken.source, u.spoken.language) for u in call.utterances} == {("transcripts/OC-014.json", "en")}
    talked = [(u.speaker, s.end - s.start) for u in call.utterances for s in u.segments]
    assert sum(length for speaker, length in talked if speaker == "spk_1") == pytest.approx(17.5)
    segment = said(call, 1)
    assert (segment.segments[0].start, segment.segments[0].end) == (3.0, 7.9)
    assert (segment.extras["speaker_confidence"], segment.extras["tone"]) == (0.97, "tense")
    assert segment.extras["words"][0]["probability"] == 0.98
    assert call.extras["transcript"] == {"schema_version": 2, "file": "OC-014.wav", "language": "en"}
    assert call.extras["chunks"][1]["segment_ids"] == [5, 6, 7, 8, 9]
    assert call.extras["speaker_stats"][0]["total_talk_time"] == 17.5
