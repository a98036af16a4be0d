"""eva.*: composites of a call (voice logs, 1.6)."""

from collections.abc import Sequence

import msgspec
import pytest

from convoscope.conversation import Conversation, Database, Label, Logged, Scenario
from convoscope.metrics import composites as eva
from convoscope.metrics import external, judged_sound
from convoscope.metrics import judged_calls as judged
from convoscope.metrics.outcome import endings
from convoscope.metrics.outcome import task as outcome
from convoscope.metrics.registry import collect
from convoscope.metrics.voice import turn_taking
from convoscope.scoring.evaluate import evaluate, observe
from support.calls import bot, caller, simulated, voice_call

DECLARED = list(
    collect([eva, judged, judged_sound, external, outcome.task_completion, turn_taking.turn_taking_eva]).values()
)
GOOD = {"faithfulness": 0.5, "agent_speech_fidelity": 0.95, "conversation_progression": 0.5, "conciseness": 0.5}


def judged_call(
    verdicts: dict[str, float], *, done: bool = True, wait: float = 1.0, labels: Sequence[Label] = ()
) -> Conversation:
    given = [Label(name=name, value=value, rater_kind="external", rater="j") for name, value in verdicts.items()]
    after = Database({"orders": ["B-7"] if done else []})
    return voice_call(
        caller("book it", (0.0, 1.0)),
        bot("done", (1.0 + wait, 2.0 + wait)),
        labels=(*given, *labels),
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


def test_a_verdict_of_another_program_counts_only_where_nothing_can_be_computed() -> None:
    task = Label(name="task_completion", value=1, rater_kind="external", rater="eva")
    taking = Label(name="turn_taking", value=0.9, rater_kind="external", rater="eva")
    failed = judged_call(GOOD, done=False, labels=(task,))
    assert values(failed)["eva.a_pass"] == 0.0  # the database says that it is not done
    unknown = msgspec.structs.replace(failed, scenario=None)
    assert values(unknown)["eva.a_mean"] == pytest.approx((1 + 0.5 + 0.95) / 3)
    silent = voice_call(caller("book it"), bot("done"), labels=(*failed.labels, taking))
    assert values(silent)["eva.x_mean"] == pytest.approx((0.5 + 0.9 + 0.5) / 3)
    people = msgspec.structs.replace(task, rater_kind="human")
    assert values(msgspec.structs.replace(unknown, labels=(*failed.labels[:-1], people)))["eva.a_mean"] is None


# The gate before scoring


GATE = list(
    collect(
        [
            eva.validation_gate,
            endings.conversation_valid_end,
            judged.user_behavioral_fidelity,
            judged_sound.user_speech_clear,
        ]
    ).values()
)
BYE = simulated("connection_state", {"state": "session_ended", "details": {"reason": "goodbye"}})
BROKE = simulated("connection_state", {"state": "session_ended", "details": {"reason": "error"}})


def gate(conversation: Conversation) -> tuple[str, float | None, str]:
    (one,) = (one for one in evaluate(conversation, GATE) if one.declared.key == "eva.validation_gate")
    return one.observations[0].status, one.observations[0].value, one.observations[0].reason


def simulated_call(
    end: Logged | None = BYE, task: float | None = 1.0, voice: Sequence[float] = (1.0, 0.5)
) -> Conversation:
    given = [] if task is None else [Label(name="user_behavioral_fidelity", value=task, rater="j")]
    heard = [
        Label(name="user_speech_fidelity", value=value, rater="j", subject_kind="turn", subject=str(number))
        for number, value in enumerate(voice, 1)
    ]
    said = [caller("hi", (0.0, 1.0)), bot("yes?", (2.0, 3.0)), caller("bye", (4.0, 5.0)), bot("bye", (6.0, 7.0))]
    log = () if end is None else (end,)
    return voice_call(*said, labels=(*given, *heard), log=log, scenario=Scenario(goal="Say bye."))


def test_the_gate_needs_all_three() -> None:
    assert gate(simulated_call()) == ("measured", 1.0, "")


@pytest.mark.parametrize(
    "call",
    [
        simulated_call(end=BROKE),
        simulated_call(task=0.0),
        simulated_call(voice=(1.0, 0.0)),  # one turn with a wrong name, code or number is enough
        simulated_call(end=BROKE, task=None, voice=()),  # what fails fails, whatever is unknown of the rest
        simulated_call(end=None, task=0.0, voice=()),
    ],
)
def test_the_gate_fails_where_one_of_them_is_known_to_fail(call: Conversation) -> None:
    assert gate(call) == ("measured", 0.0, "")


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (simulated_call(voice=()), "input_no_judge"),  # until something hears the caller
        (simulated_call(task=None), "input_no_judge"),
        (simulated_call(end=None), "input_no_simulator_log"),
    ],
)
def test_the_gate_is_undetermined_while_one_of_them_is_unknown(call: Conversation, reason: str) -> None:
    assert gate(call) == ("unmeasured", None, reason)


def test_without_a_simulator_there_is_no_gate() -> None:
    said = caller("hi", (0.0, 1.0)), bot("yes?", (2.0, 3.0))
    assert gate(voice_call(*said)) == ("not_applicable", None, "input_no_simulator")


@pytest.mark.parametrize(
    ("whole", "told"),
    [
        (1.0, (1.0, "")),  # every turn has the best rating
        (0.4, (0.0, "")),  # without a turn rated 1 it would be 0.5 at least
        (0.5, (None, "turns_not_rated")),
        (0.9, (None, "turns_not_rated")),
    ],
)
def test_a_rating_of_the_whole_voice_says_little_of_its_turns(whole: float, told: tuple[float | None, str]) -> None:
    label = Label(name="user_speech_fidelity", value=whole, rater="eva", rater_kind="external")
    (one,) = observe(judged_sound.user_speech_clear, voice_call(caller("hi"), bot("yes?"), labels=(label,)))
    assert (one.value, one.reason) == told


def test_a_turn_that_was_not_rated_leaves_the_voice_open() -> None:
    labels = [
        Label(name="user_speech_fidelity", value=1, rater="j", subject_kind="turn", subject="1"),
        Label(name="user_speech_fidelity", value=None, rater="j", subject_kind="turn", subject="2", status="failed"),
    ]
    call = voice_call(caller("hi"), bot("yes?"), caller("bye"), bot("bye"), labels=tuple(labels))
    (one,) = observe(judged_sound.user_speech_clear, call)
    assert (one.status, one.value, one.reason) == ("error", None, "rater_failed")
