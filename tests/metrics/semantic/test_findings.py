"""The product's rules on top of the plain scorer, and the metrics on the road: every number derived by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import convoscope
from convoscope.conversation import Action, Annotations, Conversation, Risk, Topic
from convoscope.metrics.declaration import Metric
from convoscope.metrics.semantic import findings
from convoscope.metrics.semantic.matching import match_in_any_wording
from convoscope.metrics.semantic.samples import (
    Labels,
    PlainAction,
    PlainRisk,
    labels_of,
    risk_counts,
    score_sample,
    segment_overlap,
    weigh,
    wordings,
)
from convoscope.scores.observation import Counts
from convoscope.scoring.evaluate import observe
from convoscope.vocabulary import semantic_vocabulary
from support.logs import write_json

WEIGHTS = semantic_vocabulary().weights


def found(origin: Any = "predicted", **families: Any) -> Annotations:
    return Annotations(origin=origin, annotator="a", **families)


def topics(*labels: str) -> tuple[Topic, ...]:
    return tuple(Topic(label=label) for label in labels)


def conversation(predicted: Annotations | None, gold: Annotations | None) -> Conversation:
    return Conversation(id="c", annotations=tuple(one for one in (predicted, gold) if one is not None))


def counts(metric: Metric, predicted: Annotations, gold: Annotations) -> dict[str, Counts | None]:
    return {str(one.subject): one.counts for one in metric(conversation(predicted, gold))}


class TestTopics:
    def test_synonyms_mean_the_topic(self) -> None:
        # Rule 1: login is account_access, Shipping is delivery.
        predicted, gold = found(topics=topics("login", "Shipping")), found("gold", topics=topics("account_access"))
        assert counts(findings.topic_f1, predicted, gold) == {
            "topic account_access": Counts(1, 0, 0),
            "topic delivery": Counts(0, 1, 0),
        }

    def test_cancellation_means_nothing_else(self) -> None:
        predicted, gold = found(topics=topics("cancellation")), found("gold", topics=topics("renewal"))
        assert counts(findings.topic_f1, predicted, gold) == {
            "topic cancellation": Counts(0, 1, 0),
            "topic renewal": Counts(0, 0, 1),
        }

    def test_a_label_outside_the_vocabulary_is_wrong_and_named(self) -> None:
        # Rule 2: it is kept, or a model could spray labels for free.
        given_labels = conversation(found(topics=topics("weather")), found("gold", topics=()))
        (observation,) = findings.topic_f1(given_labels)
        assert observation.counts == Counts(0, 1, 0)
        assert observation.details == {"out_of_vocabulary": True}

    def test_nothing_against_nothing_has_no_value(self) -> None:
        (observation,) = findings.topic_f1(conversation(found(topics=()), found("gold", topics=())))
        assert (observation.status, observation.reason) == ("not_applicable", "nothing_to_find")


class TestRisks:
    def test_aliases_mean_the_type(self) -> None:
        # Rule 11: churn is churn_risk, legal is compliance; other stays and is wrong.
        predicted = found(risks=(Risk(type="churn"), Risk(type="legal"), Risk(type="other")))
        gold = found("gold", risks=(Risk(type="churn_risk", severity="high"), Risk(type="compliance", severity="high")))
        assert counts(findings.risk_f1, predicted, gold) == {
            "risk churn_risk": Counts(1, 0, 0),
            "risk compliance": Counts(1, 0, 0),
            "risk other": Counts(0, 1, 0),
        }

    def test_a_severity_that_the_type_cannot_have_matches_no_gold(self) -> None:
        # Rule 12: compliance has no low. By type it is a hit; by severity and weight it is wrong (0.5) and missed (2).
        predicted = found(risks=(Risk(type="compliance", severity="low"),))
        gold = found("gold", risks=(Risk(type="compliance", severity="high"),))
        assert counts(findings.risk_f1, predicted, gold) == {"risk compliance": Counts(1, 0, 0)}
        assert counts(findings.risk_f1_weighted, predicted, gold) == {"risk compliance": Counts(0, 0.5, 2)}
        assert counts(findings.risk_f1_by_severity, predicted, gold) == {
            "severity high": Counts(0, 0, 1),
            "severity low": Counts(0, 1, 0),
        }

    def test_without_severities_nothing_is_weighed(self) -> None:
        # Rule 10: the annotator says that it provides none; then not even its silence is weighed.
        predicted = found(risks=(), extraction={"severity": "skipped"})
        gold = found("gold", risks=(Risk(type="escalation", severity="high"),))
        for metric in (findings.risk_f1_weighted, findings.risk_f1_by_severity, findings.risk_f1_weighted_type_only):
            (observation,) = metric(conversation(predicted, gold))
            assert (observation.status, observation.reason) == ("unmeasured", "annotator_provides_no_severity")
        assert counts(findings.risk_f1, predicted, gold) == {"risk escalation": Counts(0, 0, 1)}

    def test_one_of_two_without_severity_is_wrong_at_weight_one(self) -> None:
        # escalation: missed at high 2, wrong at 1. churn_risk: hit at low 0.5. By type alone, escalation is hit at 2.
        predicted = found(risks=(Risk(type="escalation"), Risk(type="churn_risk", severity="low")))
        gold = found("gold", risks=(Risk(type="escalation", severity="high"), Risk(type="churn_risk", severity="low")))
        assert counts(findings.risk_f1_weighted, predicted, gold) == {
            "risk churn_risk": Counts(0.5, 0, 0),
            "risk escalation": Counts(0, 1, 2),
        }
        assert counts(findings.risk_f1_weighted_type_only, predicted, gold)["risk escalation"] == Counts(2, 0, 0)

    def test_by_type_alone_those_that_agree_are_paired_first(self) -> None:
        # Predicted high and low, gold low: low is low (0.5), high is wrong (2).
        mine = [PlainRisk("escalation", "high"), PlainRisk("escalation", "low", 1)]
        assert weigh(mine, [PlainRisk("escalation", "low")], WEIGHTS).weighted_type_only == Counts(0.5, 2, 0)

    def test_the_place_is_told_apart(self) -> None:
        mine = [PlainRisk("escalation", "high", (1, 2)), PlainRisk("compliance", "high", (9,))]
        theirs = [
            PlainRisk("escalation", "low", (2,)),
            PlainRisk("compliance", "high", (3,)),
            PlainRisk("x", "low", (1,)),
        ]
        assert segment_overlap(mine, theirs) == (1, 2)


class TestActions:
    def test_roles_are_compared_over_matched_pairs_that_have_one(self) -> None:
        predicted = found(
            actions=(
                Action(description="Call back", assignee_role="agent"),
                Action(description="Send form", assignee_role="agent"),
                Action(description="Wait"),
            )
        )
        gold = found(
            "gold",
            actions=(
                Action(description="call back", assignee_role="agent"),
                Action(description="send form", assignee_role="customer"),
                Action(description="wait"),
                Action(description="Something else entirely", assignee_role="team"),
            ),
        )
        both = conversation(predicted, gold)
        (accuracy,) = findings.action_accuracy(both)
        assert (accuracy.numerator, accuracy.denominator) == (3, 4)
        (roles,) = findings.assignee_accuracy(both)
        assert (roles.numerator, roles.denominator) == (1, 2)
        (f1,) = findings.action_f1(both)
        assert f1.value == pytest.approx(6 / 7)  # 2·3 ÷ (2·3 + 0 + 1)

    def test_any_wording_is_another_figure(self) -> None:
        predicted = Labels(actions=(PlainAction("I'll send it today"),))
        gold = Labels(actions=(PlainAction("Send pricing proposal", "I'll send it today."),))
        assert score_sample(predicted, gold).actions is not None
        assert score_sample(predicted, gold).actions.counts == Counts(0, 1, 1)  # type: ignore[union-attr]
        assert len(match_in_any_wording(wordings(predicted), wordings(gold))) == 1


class TestAbsence:
    def test_what_an_annotator_does_not_provide_has_no_value(self) -> None:
        (observation,) = findings.topic_f1(conversation(found(risks=()), found("gold", topics=topics("refund"))))
        assert (observation.status, observation.reason) == ("unmeasured", "annotator_provides_no_topics")

    def test_a_failed_annotation_is_an_error(self) -> None:
        broken = found(topics=None, extraction={"topics": "error"})
        (observation,) = findings.topic_f1(conversation(broken, found("gold", topics=topics("refund"))))
        assert (observation.status, observation.reason) == ("error", "annotation_failed")

    def test_a_family_that_gold_lacks_has_no_value(self) -> None:
        (observation,) = findings.action_f1(conversation(found(actions=()), found("gold", topics=())))
        assert (observation.status, observation.reason) == ("unmeasured", "no_actions_in_gold")

    def test_neither_gold_nor_predictions(self) -> None:
        for annotated, reason in ((found(topics=()), "no_gold_labels"), (found("gold", topics=()), "no_prediction")):
            (score,) = observe(findings.topic_f1, conversation(annotated, None))
            assert (score.status, score.reason) == ("unmeasured", reason)

    def test_chunks_of_one_annotator_are_put_together(self) -> None:
        labels = labels_of([found(topics=topics("refund")), found(topics=topics("billing"), risks=())])
        assert (labels.topics, labels.risks, labels.actions) == (("refund", "billing"), (), None)

    def test_only_what_is_sure_enough(self) -> None:
        sure = Topic(label="refund", confidence=0.9)
        unsure = Topic(label="billing", confidence=0.2)
        assert labels_of([found(topics=(sure, unsure))], min_confidence=0.5).topics == ("refund",)


RISKS = st.lists(
    st.builds(
        PlainRisk,
        st.sampled_from(["escalation", "churn_risk", "compliance"]),
        st.sampled_from([*WEIGHTS, ""]),
        st.integers(0, 2),
    ),
    max_size=5,
)


@given(RISKS, RISKS)
def test_types_do_not_mix(mine: list[PlainRisk], theirs: list[PlainRisk]) -> None:
    whole = risk_counts(mine, theirs, WEIGHTS).overall
    parts = [
        risk_counts([one for one in mine if one.type == kind], [one for one in theirs if one.type == kind], WEIGHTS)
        for kind in ("escalation", "churn_risk", "compliance")
    ]
    assert whole == tuple(sum(column) for column in zip(*(one.overall for one in parts), strict=True))


@given(RISKS)
def test_gold_against_itself_is_perfect(risks: list[PlainRisk]) -> None:
    risks = [one for one in risks if one.severity]
    weighed = weigh(risks, risks, WEIGHTS)
    for counted in (weighed.weighted, weighed.weighted_type_only):
        assert counted is not None
        assert (counted.fp, counted.fn) == (0, 0)


def test_a_folder_of_calls_and_one_of_gold_are_scored(tmp_path: Path) -> None:
    predicted = {"origin": "predicted", "annotator": "x", "topics": [{"label": "refund"}, {"label": "billing"}]}
    for name in ("a", "b"):
        call = {"schema": "convoscope.conversation/1", "id": name, "annotations": [predicted]}
        write_json(tmp_path / "calls" / f"{name}.json", call if name == "a" else {**call, "annotations": []})
        head = {"schema_version": 1, "sample_id": name, "dataset": "d", "annotator": "h"}
        gold = {**head, "topics": [{"label": "refund"}]}
        write_json(tmp_path / "gold" / f"{name}_gold.json", gold)
    run = convoscope.score([tmp_path / "calls", tmp_path / "gold"], out=tmp_path / "run", metrics=["semantic.topic_f1"])
    figures = {f"{one.metric} {one.reduction}".strip(): one for one in run.summary.figures}
    # Of a: refund is right, billing wrong: F1 = 2 ÷ (2 + 1). b has no prediction, and lowers the coverage.
    assert figures["semantic.topic_f1"].value == pytest.approx(2 / 3)
    assert figures["semantic.topic_f1"].coverage == 0.5
    assert figures["semantic.topic_f1 precision"].value == 0.5
    assert figures["semantic.topic_f1 macro"].value == pytest.approx(2 / 3)
