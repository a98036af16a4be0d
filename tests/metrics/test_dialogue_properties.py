"""Laws of the dialogue metrics, on dialogues that nobody wrote."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convoscope.conversation import Act, Conversation, Frame, Participant, SlotValue, Text, Utterance
from convoscope.metrics.dialogue.evaluators import DatasetEvaluator, DialogueEvaluator, evaluate_dialogues
from convoscope.metrics.dialogue.frames import dialogue_turns
from convoscope.metrics.dialogue.turn_scores import score_turn
from convoscope.metrics.dialogue.turns import turn_of
from convoscope.metrics.dialogue.venues import VenueDatabase
from convoscope.metrics.registry import installed
from convoscope.scores.observation import Observation

VENUES = VenueDatabase(
    {"hotel": [{"name": "hilton", "phone": "01223000001", "area": "north"}, {"name": "acorn guest house"}], "taxi": {}}
)
NEEDS_VENUES = ("entity_hallucination", "system_correctness", "goal_completion", "goal_completion@bookings")
PERFECT = ("domain_accuracy", "domain_accuracy@first_frame", "intent_accuracy", "slot_accuracy", "jga")
PERFECT_ACTS = ("action_type_accuracy", "action_type_accuracy@no_general", "action_type_accuracy@with_slots")

DOMAINS = st.sampled_from(["hotel", "restaurant", "taxi", "train"])
VALUES = st.sampled_from(["north", "Centre", "center", "4", "dontcare", "don't care", "none", "", "Hilton", "\0", "'"])
SLOTS = st.dictionaries(st.sampled_from(["area", "name", "Stars", "bookday", "pricerange"]), VALUES, max_size=4)
STATES = st.dictionaries(DOMAINS, SLOTS, max_size=3)
INTENTS = st.lists(st.builds("{}_{}".format, st.sampled_from(["find", "book"]), DOMAINS), max_size=2)
ACTS = st.lists(
    st.builds(
        Act,
        st.sampled_from(["Hotel-Inform", "Booking-Book", "Hotel-Request", "general-bye", "Train-OfferBooked"]),
        st.lists(st.builds(SlotValue, st.sampled_from(["Name", "phone", "area"]), VALUES), max_size=2).map(tuple),
    ),
    max_size=3,
)
SAID = st.sampled_from(
    [
        "",
        "The Hilton : 01223 000001",
        "I recommend The Golden Dragon",
        "acorn guest house , cb9 9zz",
        "ünï\0cödé ' 's ٣",
    ]
)
TRUTHS = st.fixed_dictionaries({"slots": STATES, "intents": INTENTS, "acts": ACTS})
TURNS = st.fixed_dictionaries({"true": TRUTHS, "predicted": TRUTHS, "response": SAID})
DIALOGUES = st.lists(TURNS, min_size=1, max_size=5)


def fields(turn: dict, predicted: dict) -> dict:
    true = {f"true_{name}": value for name, value in turn["true"].items()}
    return true | {f"predicted_{name}": value for name, value in predicted.items()} | {"response": turn["response"]}


@given(DIALOGUES)
def test_gold_against_itself_is_perfect(dialogue: list[dict]) -> None:
    figures = evaluate_dialogues([[turn_of(**fields(turn, turn["true"])) for turn in dialogue]], VENUES)
    assert {figures[name].value for name in (*PERFECT, *PERFECT_ACTS) if name in figures} == {1.0}
    for name in ("slot_hallucination", "slot_hallucination@all_domains"):
        assert name not in figures or figures[name].value == 0.0
    assert figures["jga"].measured == 1


@given(DIALOGUES)
def test_the_order_of_slots_domains_and_acts_does_not_matter(dialogue: list[dict]) -> None:
    def backwards(part: dict) -> dict:
        slots = {name: dict(reversed(values.items())) for name, values in reversed(part["slots"].items())}
        return part | {"slots": slots, "acts": part["acts"][::-1]}

    as_given = [turn_of(**fields(turn, turn["predicted"])) for turn in dialogue]
    turned = [turn_of(**fields(turn, backwards(turn["predicted"]))) for turn in dialogue]
    assert evaluate_dialogues([as_given], VENUES) == evaluate_dialogues([turned], VENUES)


@given(DIALOGUES)
def test_turns_fed_one_by_one_are_the_turns_of_a_dialogue(dialogue: list[dict]) -> None:
    turns = [turn_of(**fields(turn, turn["predicted"])) for turn in dialogue]
    evaluator, dataset = DialogueEvaluator(venues=VENUES), DatasetEvaluator()
    for turn in turns:
        evaluator.add_turn(turn)
    dataset.add(evaluator)
    assert dataset.figures() == evaluate_dialogues([turns], VENUES)
    assert score_turn(turns[0], VENUES) == evaluator.scores[0]


def conversation(dialogue: list[dict], silent: int | None = None, empty: int | None = None) -> Conversation:
    """The dialogue in frames; in one turn nothing is predicted, or nothing but emptiness."""
    timeline, frames = [], []
    for number, turn in enumerate(dialogue):
        asked, answered = 2 * number, 2 * number + 1
        timeline += [
            Utterance(seq=asked, speaker="u", intended=Text("hello")),
            Utterance(seq=answered, speaker="a", intended=Text("yes")),
        ]
        frames += _frames(asked, "gold", turn["true"], None)
        if number == empty:
            frames += _frames(asked, "predicted", {"slots": {}, "intents": [], "acts": []}, "")
        elif number != silent:
            frames += _frames(asked, "predicted", turn["predicted"], turn["response"])
    participants = (Participant("u", "user"), Participant("a", "assistant"))
    return Conversation(id="d", participants=participants, timeline=tuple(timeline), frames=tuple(frames))


def _frames(seq: int, origin: str, part: dict, response: str | None) -> list[Frame]:
    rows = [
        Frame(
            seq=seq,
            origin=origin,
            service=domain,
            intents=tuple(intent for intent in part["intents"] if intent.endswith(domain)),
            slots={slot: (value,) for slot, value in part["slots"].get(domain, {}).items()},
        )
        for domain in ("hotel", "restaurant", "taxi", "train")
    ]
    return [*rows, Frame(seq=seq + 1, origin=origin, acts=tuple(part["acts"]), response=response)]


def observations(name: str, talk: Conversation) -> list[Observation]:
    declared = installed().declared[f"dialogue.{name}"](talk, **({"venues": VENUES} if name in NEEDS_VENUES else {}))
    return list(declared) if hasattr(declared, "__iter__") else [declared]


@settings(max_examples=50)
@given(st.lists(TURNS, min_size=2, max_size=4), st.data())
def test_a_missing_prediction_is_an_empty_one(dialogue: list[dict], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(dialogue) - 1))
    silent, empty = conversation(dialogue, silent=place), conversation(dialogue, empty=place)
    assert evaluate_dialogues([dialogue_turns(silent)], VENUES) == evaluate_dialogues([dialogue_turns(empty)], VENUES)


@settings(max_examples=50)
@given(DIALOGUES)
def test_the_twins_say_what_the_metrics_of_a_run_say(dialogue: list[dict]) -> None:
    talk = conversation(dialogue)
    figures = evaluate_dialogues([dialogue_turns(talk)], VENUES)
    for name, figure in figures.items():
        rows = [one for one in observations(name, talk) if one.value is not None]
        if name == "policy_violations@attempts":  # a turn may hold several
            expected = sum(one.numerator for one in rows) / sum(one.denominator for one in rows)
        else:
            expected = sum(one.value for one in rows) / len(rows)
        assert figure.micro == pytest.approx(expected), name
