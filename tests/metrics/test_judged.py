"""judged.*: verdicts that came with the data."""

from typing import Any

import pytest

from convoscope.conversation import Conversation, Label
from convoscope.metrics.judged_calls import agent_speech_fidelity, conciseness, faithfulness
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
    conversation = labelled(
        label(1, "conciseness", subject_kind="turn", subject="1"),
        label(0.5, "conciseness", subject_kind="turn", subject="2"),
        label(0, "conciseness"),  # of the whole: less than what is known of each turn
    )
    assert [(str(one.subject), one.value) for one in observe(conciseness, conversation)] == [
        ("turn 1", 1.0),
        ("turn 2", 0.5),
    ]
    (evaluated,) = evaluate(conversation, [conciseness])
    assert evaluated.scores[0].value == 0.75  # (1 + 0.5) ÷ 2


def test_a_judge_who_was_asked_twice_speaks_twice() -> None:
    observations = observe(agent_speech_fidelity, labelled(*[label(one, "agent_speech_fidelity") for one in (0, 1)]))
    assert [(one.value, one.repeat) for one in observations] == [(0.0, 0), (1.0, 1)]
