"""The declared dialogue metrics on conversations with frames: what is measured, what is not, and why."""

from __future__ import annotations

import pytest

from convoscope.conversation import Act, Conversation, Frame, Participant, Text, Utterance
from convoscope.metrics.dialogue.evaluators import DatasetEvaluator, DialogueEvaluator, evaluate_dialogues
from convoscope.metrics.dialogue.frames import dialogue_turns
from convoscope.metrics.dialogue.venues import VenueDatabase
from convoscope.metrics.registry import installed

VENUES = VenueDatabase({"hotel": [{"name": "hilton", "phone": "01223000001"}]})
NEEDS_VENUES = ("entity_hallucination", "system_correctness", "goal_completion", "goal_completion@bookings")


def frames(seq: int, origin: str, slots: dict[str, str] | None, intents: tuple[str, ...] | None, *acts: str, said=None):
    values = None if slots is None else {slot: (value,) for slot, value in slots.items()}
    yield Frame(seq=seq, origin=origin, service="hotel", intents=intents, slots=values)
    if acts or said is not None:
        yield Frame(seq=seq + 1, origin=origin, acts=tuple(map(Act, acts)), response=said)


def conversation(*groups, turns: int = 2, **fields) -> Conversation:
    timeline = []
    for number in range(turns):
        timeline += [
            Utterance(seq=2 * number, speaker="u", intended=Text("hello")),
            Utterance(seq=2 * number + 1, speaker="a", intended=Text("yes")),
        ]
    return Conversation(
        id="d",
        participants=(Participant("u", "user"), Participant("a", "assistant")),
        timeline=tuple(timeline),
        frames=tuple(frame for group in groups for frame in group),
        **fields,
    )


# Two turns: a search that is tracked rightly, and a booking without a name. The second routing is right, too.
BOOKS_EARLY = conversation(
    frames(0, "gold", {"area": "north"}, ("find_hotel",), "Hotel-Inform"),
    frames(0, "predicted", {"area": "north"}, ("find_hotel",), "Hotel-Inform", said="hilton"),
    frames(2, "gold", {"area": "north", "bookday": "friday"}, ("book_hotel",), "Booking-Request"),
    frames(2, "predicted", {"area": "north", "stars": "4"}, ("book_hotel",), "Booking-Book", said="Booked"),
)


def observe(key: str, talk: Conversation) -> list:
    declared = installed().declared[f"dialogue.{key}"]
    return list(declared(talk, **({"venues": VENUES} if key in NEEDS_VENUES else {})))


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("domain_accuracy", [1, 1]),
        ("intent_accuracy", [1, 1]),
        ("action_type_accuracy", [1, 0]),
        ("slot_accuracy", [1, 0.5]),  # area of area and bookday
        ("jga", [1, 0]),
        ("slot_hallucination", [0, 0.5]),  # stars of area and stars
        ("slot_hallucination@all_domains", [0, 0.5]),
        ("entity_hallucination", [0, None]),  # hilton is known; nothing is named in the second
        ("policy_violations", [0, 1]),
        ("policy_violations@attempts", [None, 1]),
        ("system_correctness", [1, 0]),
        ("goal_completion", [0]),
        ("goal_completion@bookings", [0]),
        ("memory_transfer", [None]),
    ],
)
def test_values_by_hand(key: str, values: list[float | None]) -> None:
    assert [one.value for one in observe(key, BOOKS_EARLY)] == values


def test_counts_of_a_slot() -> None:
    rows = {one.subject.id: tuple(one.counts) for one in observe("slot_f1", BOOKS_EARLY)}
    assert rows == {"hotel-area": (2, 0, 0), "hotel-bookday": (0, 0, 1), "hotel-stars": (0, 1, 0)}


def test_rules_come_with_the_data() -> None:
    lenient = conversation(
        frames(0, "predicted", {"bookday": "friday"}, ("book_hotel",), "Booking-Book", said="Booked"),
        turns=1,
        extras={"booking_rules": {"hotel": ["bookday"]}},
    )
    assert [one.value for one in observe("policy_violations", lenient)] == [0]


def test_a_turn_without_a_prediction_scores_as_empty() -> None:
    silent = conversation(
        frames(0, "gold", {"area": "north"}, ("find_hotel",)),
        frames(0, "predicted", {"area": "north"}, ("find_hotel",)),
        frames(2, "gold", {"area": "north"}, ("find_hotel",)),
    )
    assert [one.value for one in observe("jga", silent)] == [1, 0]
    assert [one.value for one in observe("intent_accuracy", silent)] == [1, 0]


def test_what_is_predicted_nowhere_is_unmeasured() -> None:
    states_alone = conversation(
        frames(0, "gold", {"area": "north"}, ("find_hotel",), "Hotel-Inform"),
        frames(0, "predicted", {"area": "north"}, None),
        turns=1,
    )
    assert [one.reason for one in observe("intent_accuracy", states_alone)] == ["not_predicted"]
    assert [one.reason for one in observe("action_type_accuracy", states_alone)] == ["not_predicted"]
    assert [one.value for one in observe("jga", states_alone)] == [1]


def test_evaluators_and_metrics_say_the_same() -> None:
    figures = evaluate_dialogues([dialogue_turns(BOOKS_EARLY)], VENUES)
    for name, figure in figures.items():
        values = [one.value for one in observe(name, BOOKS_EARLY) if one.value is not None]
        assert figure.micro == pytest.approx(sum(values) / len(values)), name


def test_an_evaluator_is_fed_turn_by_turn() -> None:
    verdicts = iter([{"score": 4}, {"score": "5"}, {"score": 2}])
    evaluator = DialogueEvaluator(judge=lambda user, response: next(verdicts))
    for response in ("a", "b", "c"):
        score = evaluator.add_turn(
            user="hello", response=response, predicted_slots={"hotel": {"area": "north"}}, true_slots={}
        )
        assert score.joint_goal is False
    # The second verdict is a text: left out, never 0. (4 + 2) ÷ 2 = 3.
    assert evaluator.figures()["response_quality"] == 3.0
    dataset = DatasetEvaluator()
    dataset.add(evaluator)
    dataset.add(DialogueEvaluator())  # a dialogue without turns raises nothing, and has no value
    assert dataset.figures()["jga"] == (0.0, 0.0, 0.0, 1, 2)


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ({"score": 4}, 4.0),
        ('{"score": 4}', 4.0),
        ('```json\n{"score": 5, "correctness": "ok"}\n```', 5.0),
        ('```\n{"score": 3}', 3.0),  # the fence is not closed
        ('Here you go: {"score": 4}, {"score": 1}', 4.0),  # the first counts
        ("{well} {'score'} {\"score\": 4.5}", 4.5),  # braces that are no JSON
        ('{"score": "4"}', None),
        ('{"score": 0}', None),
        ('{"score": null}', None),
        ("not json", None),
        ("{" * 10_000, None),
        ("", None),
        (None, None),
        ([4], None),
    ],
)
def test_a_verdict_is_the_first_object_of_an_answer(answer: object, score: float | None) -> None:
    evaluator = DialogueEvaluator(judge=lambda user, response: answer)
    evaluator.add_turn(user="hello", response="yes")
    (verdict,) = evaluator.verdicts
    assert verdict.score == score
    assert bool(verdict.reason) is (score is None)


def test_a_judge_that_fails_leaves_the_dialogue_whole() -> None:
    def judge(user: str, response: str) -> object:
        raise TimeoutError("no answer in 30 s")

    evaluator = DialogueEvaluator(judge=judge)
    assert evaluator.add_turn(user="hello", response="yes", predicted_slots={}, true_slots={}).joint_goal is True
    assert evaluator.verdicts == [(None, "the judge failed: TimeoutError: no answer in 30 s")]
    assert "response_quality" not in evaluator.figures()


def test_macro_and_micro_differ_where_dialogues_differ_in_length() -> None:
    right = {"predicted_slots": {}, "true_slots": {}}
    wrong = {"predicted_slots": {"hotel": {"area": "north"}}, "true_slots": {}}
    dataset = DatasetEvaluator()
    for turns in ([right], [wrong, wrong, right]):
        evaluator = DialogueEvaluator()
        for fields in turns:
            evaluator.add_turn(**fields)
        dataset.add(evaluator)
    figure = dataset.figures()["jga"]
    # Turns: 2 of 4 are right. Dialogues: (1 + 1 ÷ 3) ÷ 2.
    assert (figure.value, figure.micro) == (0.5, 0.5)
    assert figure.macro == pytest.approx(2 / 3)
