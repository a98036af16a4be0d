"""judged.*: verdicts that came with the data."""

from typing import Any

import pytest

from convoscope.conversation import Conversation, Label
from convoscope.metrics.judged_calls import conciseness, faithfulness
from convoscope.metrics.judged_sound import agent_speech_fidelity
from convoscope.scoring.evaluate import evaluate, observe
from support.chats import agent, chat, user


def labelled(*labels: Label) -> Conversation:
    return chat(user("hi"), agent("yes"), labels=labels)


def label(value: Any, name: str = "faithfulness", rater: str = "vendor", **facts: Any) -> Label:
    return Label(name=name, value=value, rater=rater, **{"rater_kind": "external", **facts})


def test_a_verdict_that_came_with_the_data_is_used() -> None:
    for name in ("faithfulness", "judged.faithfulness"):
        (one,) = observe(faithfulness, labelled(label(0.5, name), label(1, "politeness")))
        assert (str(one.subject), one.value, one.judge) == ("conversation", 0.5, "external:vendor")


@pytest.mark.parametrize(("value", "worth"), [(0, 0.0), (1, 1.0), (True, 1.0), (0.95, 0.95)])
def test_from_0_to_1(value: Any, worth: float) -> None:
    (one,) = observe(faithfulness, labelled(label(value)))
    assert one.value == worth


@pytest.mark.parametrize("value", [3, -0.1, 1.01, "good", None, float("nan"), [1]])
def test_anything_else_is_no_number_of_ours(value: Any) -> None:
    (one,) = observe(faithfulness, labelled(label(value)))
    assert (one.status, one.reason, one.judge) == ("unmeasured", "not_on_scale", "external:vendor")


def test_without_a_verdict_there_is_no_value() -> None:
    for conversation in (labelled(), labelled(label(1, "politeness")), labelled(label(1, subject_kind="state"))):
        (one,) = observe(faithfulness, conversation)
        assert (one.status, one.reason) == ("unmeasured", "no_judge")


def test_a_person_is_a_judge_too_and_never_sits_with_a_program() -> None:
    conversation = labelled(label(0.5), label(1.0, rater="ada", rater_kind="human"))
    (evaluated,) = evaluate(conversation, [faithfulness])
    values = {score.judge.partition(":")[0]: score.value for score in evaluated.scores}
    assert values == {"external": 0.5, "human": 1.0}


def test_two_people_are_a_panel_of_people() -> None:
    conversation = labelled(
        label(0.0), label(1.0, rater="ada", rater_kind="human"), label(0.5, rater="bob", rater_kind="human")
    )
    (evaluated,) = evaluate(conversation, [faithfulness])
    [panel] = [score for score in evaluated.scores if score.judge.startswith("panel:human:")]
    assert panel.value == 0.75  # of 1 and 0.5; with the program, which says 0, it would be 0.5
    assert len(evaluated.scores) == 4


def test_turn_by_turn() -> None:
    labels = (
        label(1, "conciseness", subject_kind="turn", subject="1"),
        label(0.5, "conciseness", subject_kind="turn", subject="2"),
        label(0, "conciseness"),  # of the whole: less than what is known of each turn
    )
    conversation = chat(user("hi"), agent("yes"), user("and?"), agent("no"), labels=labels)
    assert [(str(one.subject), one.value) for one in observe(conciseness, conversation)] == [
        ("turn 1", 1.0),
        ("turn 2", 0.5),
    ]
    (evaluated,) = evaluate(conversation, [conciseness])
    assert evaluated.scores[0].value == 0.75  # (1 + 0.5) ÷ 2


def test_a_verdict_on_a_turn_that_does_not_exist_is_no_score() -> None:
    labels = [label(1, "conciseness", subject_kind="turn", subject=subject) for subject in ("1", "99", "x")]
    scores = [(str(one.subject), one.value, one.reason) for one in observe(conciseness, labelled(*labels))]
    assert scores == [("turn 1", 1.0, ""), ("turn 99", None, "no_such_turn"), ("turn x", None, "no_such_turn")]


@pytest.mark.parametrize(
    ("value", "scale", "worth"),
    [
        (1, "1-3", 0.0),  # (1 − 1) ÷ 2
        (2, "1 to 3", 0.5),  # (2 − 1) ÷ 2
        (3, "1-3", 1.0),
        (4, "1-5", 0.75),  # (4 − 1) ÷ 4
        (7, "0-10", 0.7),
        (4, "1-3", None),
        (0, "1-3", None),
        (True, "1-3", None),
        (1, "3-1", None),
        (1, "stars", None),
    ],
)
def test_a_label_states_its_scale(value: Any, scale: str, worth: float | None) -> None:
    (one,) = observe(faithfulness, labelled(label(value, scale=scale)))
    assert one.value == worth
    assert one.reason == ("" if worth is not None else "not_on_scale")


def test_a_rater_that_failed_or_skipped_has_no_number() -> None:
    (failed,) = observe(faithfulness, labelled(label(0.0, status="failed", notes="timeout")))
    assert (failed.status, failed.reason, failed.detail, failed.value) == ("error", "rater_failed", "timeout", None)
    (skipped,) = observe(faithfulness, labelled(label(1.0, status="skipped")))
    assert (skipped.status, skipped.reason, skipped.value) == ("unmeasured", "skipped_by_rater", None)


def test_a_judge_who_was_asked_twice_speaks_twice() -> None:
    observations = observe(agent_speech_fidelity, labelled(*[label(one, "agent_speech_fidelity") for one in (0, 1)]))
    assert [(one.value, one.repeat) for one in observations] == [(0.0, 0), (1.0, 1)]
