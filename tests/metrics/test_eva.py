"""eva.*: composites of a call (voice logs, 1.6)."""

import pytest

from convoscope.conversation import Conversation, Database, Label, Scenario
from convoscope.metrics import composites as eva
from convoscope.metrics import judged_calls as judged
from convoscope.metrics.outcome import task as outcome
from convoscope.metrics.registry import collect
from convoscope.metrics.voice import turn_taking
from convoscope.scoring.evaluate import evaluate
from support.calls import bot, caller, voice_call

DECLARED = list(collect([eva, judged, outcome.task_completion, turn_taking.turn_taking_eva]).values())
GOOD = {"faithfulness": 0.5, "agent_speech_fidelity": 0.95, "conversation_progression": 0.5, "conciseness": 0.5}


def judged_call(verdicts: dict[str, float], *, done: bool = True, wait: float = 1.0) -> Conversation:
    labels = [Label(name=name, value=value, rater_kind="external", rater="j") for name, value in verdicts.items()]
    after = Database({"orders": ["B-7"] if done else []})
    return voice_call(
        caller("book it", (0.0, 1.0)),
        bot("done", (1.0 + wait, 2.0 + wait)),
        labels=tuple(labels),
        scenario=Scenario(before=Database({"orders": []}), after=after, expected=Database({"orders": ["B-7"]})),
    )


def values(conversation: Conversation) -> dict[str, float | None]:
    found = {one.declared.key: one.scores[0].value for one in evaluate(conversation, DECLARED)}
    return {key: value for key, value in found.items() if key.startswith("eva.")}


def test_every_part_at_its_threshold_passes() -> None:
    found = values(judged_call(GOOD, wait=2.3))  # turn-taking (3500 − 2300) ÷ 1500 = 0.8
    assert (found["eva.a_pass"], found["eva.x_pass"], found["eva.overall_pass"]) == (1.0, 1.0, 1.0)
    assert found["eva.a_mean"] == pytest.approx((1 + 0.5 + 0.95) / 3)
    assert found["eva.x_mean"] == pytest.approx((0.5 + 0.8 + 0.5) / 3)
    assert found["eva.overall_mean"] == pytest.approx((1 + 0.5 + 0.95 + 0.5 + 0.8 + 0.5) / 6)


@pytest.mark.parametrize("part", ["faithfulness", "agent_speech_fidelity"])
def test_one_part_below_it_fails_accuracy(part: str) -> None:
    found = values(judged_call(GOOD | {part: GOOD[part] - 0.01}))
    assert (found["eva.a_pass"], found["eva.x_pass"], found["eva.overall_pass"]) == (0.0, 1.0, 0.0)


def test_so_does_a_task_that_is_not_done() -> None:
    found = values(judged_call(GOOD, done=False))
    assert (found["eva.a_pass"], found["eva.overall_pass"]) == (0.0, 0.0)
    assert found["eva.a_mean"] == pytest.approx((0 + 0.5 + 0.95) / 3)


def test_late_replies_fail_experience() -> None:
    found = values(judged_call(GOOD, wait=2.4))  # (3500 − 2400) ÷ 1500 = 0.73
    assert (found["eva.a_pass"], found["eva.x_pass"], found["eva.overall_pass"]) == (1.0, 0.0, 0.0)


def test_no_value_while_a_part_has_none() -> None:
    """1.7, defect 9: a mean over what happens to be there is no mean of the six."""
    missing = {name: value for name, value in GOOD.items() if name != "conciseness"}
    found = values(judged_call(missing))
    assert (found["eva.a_pass"], found["eva.x_pass"], found["eva.overall_pass"]) == (1.0, None, None)
    assert (found["eva.x_mean"], found["eva.overall_mean"]) == (None, None)
    (why,) = (
        one.observations[0]
        for one in evaluate(judged_call(missing), DECLARED)
        if one.declared.key == "eva.overall_mean"
    )
    assert (why.status, why.reason, why.detail) == ("unmeasured", "input_no_judge", "judged.conciseness")
