"""Done, lost or unknown: one definition, by label, log, status and flow, in this order."""

from __future__ import annotations

import pytest

from convoscope.conversation import Flow, FlowState, LabelVerdict, Outcome
from convoscope.metrics.outcome.endings import success
from convoscope.views.flow.endings import OUTCOMES, is_completed, outcome_of, passed_in_words
from support.chats import chat, user
from support.flow_conversations import entered

FAILED_LABEL = LabelVerdict(field="reward", value=0.0, passed=False)
SILENT_LABEL = LabelVerdict(field="csat", value=3)
FLOW = Flow(
    name="f",
    states=(
        FlowState(name="ask"),
        FlowState(name="won", terminal="success"),
        FlowState(name="over", terminal="failure"),
    ),
)


class TestWhatDecides:
    def test_the_label_before_all_else(self) -> None:
        conversation = chat(user("hi"), outcome=Outcome(completed=True, final_status="resolved", label=FAILED_LABEL))
        assert outcome_of(conversation)[:2] == (False, "reward: 0")
        assert outcome_of(conversation).name == "lost"

    def test_a_label_that_says_nothing_leaves_it_to_the_log(self) -> None:
        conversation = chat(user("hi"), outcome=Outcome(completed=True, label=SILENT_LABEL))
        assert outcome_of(conversation)[:2] == (True, "the log says so")

    def test_the_flag_before_the_status(self) -> None:
        assert outcome_of(chat(user("hi"), outcome=Outcome(completed=False, final_status="resolved"))).done is False

    def test_the_status_before_the_flow(self) -> None:
        conversation = chat(entered("over"), flow=FLOW, outcome=Outcome(final_status="resolved"))
        assert outcome_of(conversation)[:2] == (True, "final status: resolved")

    @pytest.mark.parametrize(("state", "done"), [("won", True), ("over", False)])
    def test_the_end_of_the_flow(self, state: str, done: bool) -> None:
        assert outcome_of(chat(entered("ask"), entered(state), flow=FLOW))[:2] == (done, f"ended in the state {state}")

    def test_one_that_is_over_before_any_end_is_lost(self) -> None:
        conversation = chat(entered("ask"), flow=FLOW, outcome=Outcome(ended_reason="hangup"))
        assert outcome_of(conversation)[:2] == (False, "ended before any end of the flow: hangup")

    def test_else_nobody_knows(self) -> None:
        for conversation in (
            chat(user("hi")),
            chat(entered("ask"), flow=FLOW),
            chat(user("hi"), outcome=Outcome(final_status="odd")),
        ):
            assert outcome_of(conversation).name == "unknown"
            assert is_completed(conversation) is None

    def test_worst_first(self) -> None:
        assert OUTCOMES == ("lost", "handed_over", "unknown", "done", "no_user_speech", "voicemail", "ivr")


def test_a_word_says_pass_or_fail_or_neither() -> None:
    assert [passed_in_words(word) for word in ("Resolved", "thumbs-up", "UNRESOLVED", "not resolved", "later")] == [
        True,
        True,
        False,
        False,
        None,
    ]


def test_the_metric_says_the_same_with_its_evidence() -> None:
    (observation,) = success(chat(user("hi"), outcome=Outcome(label=FAILED_LABEL)))
    assert (observation.value, observation.details) == (0, {"told_by": "reward: 0"})
