"""Errors of dialogue states by kind, and as a person and a program meet them."""

from __future__ import annotations

import json
from pathlib import Path

from convoscope.analysis.dialogue import (
    HALLUCINATED,
    MISSING,
    WRONG_DOMAIN,
    WRONG_VALUE,
    dialogue_errors,
    slot_errors,
)
from convoscope.conversation import Conversation, Frame, Participant, Text, Utterance
from convoscope.conversation.serial import to_json
from support.command_line import convoscope

HOSTILE = "\x1b[31mnorth"


def dialogue(true: list[dict], predicted: list[dict], *, true_intent="find_hotel", intent="find_hotel") -> Conversation:
    """One turn for each pair of states of the hotel."""
    frames, timeline = [], []
    for place, (gold, ours) in enumerate(zip(true, predicted, strict=True)):
        seq = 2 * place
        timeline += [
            Utterance(seq=seq, speaker="u", intended=Text("hello")),
            Utterance(seq=seq + 1, speaker="a", intended=Text("yes")),
        ]
        for origin, slots, what in (("gold", gold, true_intent), ("predicted", ours, intent)):
            values = {slot: (value,) for slot, value in slots.items()}
            frames.append(Frame(seq=seq, origin=origin, service="hotel", intents=(what,), slots=values))
    return Conversation(
        id="d1",
        participants=(Participant("u", "user"), Participant("a", "assistant")),
        timeline=tuple(timeline),
        frames=tuple(frames),
    )


def test_each_kind_of_error() -> None:
    true = {"hotel": {"area": "north", "stars": "4", "name": "hilton"}, "taxi": {"leave": "12:00"}}
    predicted = {"hotel": {"area": "south", "parking": "yes", "leave": "12:00"}, "restaurant": {"name": "hilton"}}
    errors = {error.name: error.kind for error in slot_errors(predicted, true)}
    assert errors == {
        "hotel-area": WRONG_VALUE,
        "hotel-stars": MISSING,
        "hotel-name": WRONG_DOMAIN,  # it stands under restaurant
        "taxi-leave": WRONG_DOMAIN,
        "hotel-parking": HALLUCINATED,
    }
    assert slot_errors(true, true) == []


def test_a_routing_that_is_right_is_no_confusion() -> None:
    """Of two domains that the turn is truly about, one is enough (dialogue, 1.1)."""
    talk = dialogue([{}], [{}])
    taxi = Frame(seq=0, origin="gold", service="taxi", intents=("find_taxi",))
    both = Conversation(id="d1", participants=talk.participants, timeline=talk.timeline, frames=(*talk.frames, taxi))
    assert dialogue_errors([both]).domains == {}
    wrong = Frame(seq=0, origin="predicted", service="police", intents=("find_police",))
    other = Conversation(id="d1", participants=talk.participants, timeline=talk.timeline, frames=(*both.frames, wrong))
    assert dialogue_errors([other]).domains == {("taxi", "police"): 1}


def test_an_error_counts_in_every_turn_and_is_shown_where_it_began() -> None:
    states = [{}, {"area": "north"}, {"area": "north"}]
    found = dialogue_errors([dialogue(states, [{}, {}, {}], intent="find_taxi")])
    assert (found.dialogues, found.turns) == (1, 3)
    assert found.intents == {("find_hotel", "find_taxi"): 3}
    (row,) = found.slots
    assert (row.slot, row.kinds) == ("hotel-area", {MISSING: 2})
    assert (row.examples[0].turn, row.examples[0].turns) == (2, 2)
    assert found.by_position == {1: (1, 0, {}), 2: (1, 1, {MISSING: 1}), 3: (1, 1, {MISSING: 1})}
    assert row.examples[0].seq == 2  # what the user says in the second turn
    assert found.by_domain == {"hotel": (3, 2, {MISSING: 2})}


def test_a_dialogue_without_predictions_is_none() -> None:
    assert dialogue_errors([Conversation(id="x")]).dialogues == 0


def test_the_command_prints_hostile_values_harmless(tmp_path: Path) -> None:
    log, run = tmp_path / "log.jsonl", tmp_path / "run"
    log.write_bytes(to_json(dialogue([{"area": "east"}], [{"area": HOSTILE}])) + b"\n")
    convoscope("score", str(log), "--metrics", "dialogue.jga", "--out", str(run))
    printed = convoscope("dialogue", "errors", str(run))
    assert printed.code == 0, printed.err
    assert "\x1b" not in printed.out
    assert "wrong value" in printed.out
    answer = json.loads(convoscope("dialogue", "errors", str(run), "--json").out)
    assert answer["slots"][0]["kinds"] == {WRONG_VALUE: 1}
