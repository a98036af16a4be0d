"""MultiWOZ 2.1: state, acts and goal as they are written; intents and requested slots derived, and marked so."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Act, Conversation, Frame, SlotSpan, SlotValue
from support.logs import EXAMPLES, Outcome, counts, read, story, write_json

FILE = EXAMPLES / "multiwoz" / "dialogues-2.1.json"
DIALOGUES: dict[str, Any] = json.loads(FILE.read_text())


@pytest.fixture(scope="module")
def dialogue() -> Conversation:
    return read(FILE).only


def state(dialogue: Conversation, seq: int, service: str) -> Frame:
    (frame,) = (one for one in dialogue.frames if (one.seq, one.service) == (seq, service))
    return frame


def changed(tmp_path: Path, place: int, **fields: Any) -> Outcome:
    """The example with other fields in one entry of its log."""
    dialogues = copy.deepcopy(DIALOGUES)
    dialogues["BAY0001.json"]["log"][place] |= fields
    return read(write_json(tmp_path / "data.json", dialogues))


def intents(dialogue: Conversation) -> dict[int, tuple[str, ...]]:
    return {one.seq: one.intents for one in dialogue.frames if one.intents}


class TestWhatIsWritten:
    def test_user_and_system_take_turns(self, dialogue: Conversation) -> None:
        assert dialogue.id == "BAY0001.json"
        assert story(dialogue)[:2] == [
            "user: I need a hotel in the harbour with parking .",
            "assistant: Gull House is lovely . Shall I book it ?",
        ]
        assert [one.id for one in dialogue.utterances] == [str(place) for place in range(8)]
        assert dialogue.dimensions == {"domain": "hotel"}  # the restaurant has neither goal, nor slots, nor acts

    def test_the_state_of_a_turn_is_in_the_answer_to_it(self, dialogue: Conversation) -> None:
        searched = {"area": ("harbour",), "parking": ("yes",)}  # "not mentioned" and "" are no values
        assert state(dialogue, 0, "hotel").slots == searched
        assert state(dialogue, 4, "hotel").slots == searched | {
            "name": ("gull house",),
            "bookpeople": ("2",),
            "bookday": ("friday",),
            "bookstay": ("3",),
        }

    def test_what_was_booked_stands_at_the_answer(self, dialogue: Conversation) -> None:
        booked = {one.seq: one.booked for one in dialogue.frames if one.booked}
        assert booked == {seq: ({"name": "gull house", "reference": "H93ZD"},) for seq in (5, 7)}

    def test_acts_of_both_sides_in_the_names_of_the_state(self, dialogue: Conversation) -> None:
        assert state(dialogue, 0, "").acts == (
            Act("Hotel-Inform", (SlotValue("area", "harbour"), SlotValue("parking", "yes"))),
        )
        assert state(dialogue, 1, "").acts == (
            Act("Hotel-Recommend", (SlotValue("name", "Gull House"),)),
            Act("Booking-Inform"),  # none is no slot
        )
        assert state(dialogue, 2, "").acts == (Act("Hotel-Request", (SlotValue("phone"),)),)  # ? is no value
        people, stay, day = state(dialogue, 4, "").acts[0].slots
        assert (people.slot, stay.slot, day.slot) == ("bookpeople", "bookstay", "bookday")

    def test_spans_count_words_and_become_characters(self, dialogue: Conversation) -> None:
        # "I need a hotel in the " has 22 characters
        assert state(dialogue, 0, "").spans == (
            SlotSpan(act="Hotel-Inform", slot="area", value="harbour", start=22, end=29),
        )

    def test_a_span_that_its_value_does_not_stand_at_has_no_place(self, tmp_path: Path) -> None:
        outcome = changed(tmp_path, 0, span_info=[["Hotel-Inform", "Area", "harbour", 0, 0]])
        assert [(one.start, one.end) for one in state(outcome.only, 0, "").spans] == [(None, None)]

    def test_the_goal(self, dialogue: Conversation) -> None:
        assert dialogue.scenario is not None
        assert set(dialogue.scenario.goal) == {"hotel"}
        assert dialogue.scenario.goal["hotel"]["reqt"] == ["phone"]
        assert "message" in dialogue.scenario.extras


class TestWhatIsDerived:
    def test_it_is_marked(self, dialogue: Conversation) -> None:
        assert {one.derived for one in dialogue.frames if one.intents is not None} == {("intents", "requested")}
        assert counts(read(FILE).report.inferred) == {"intents_derived": 1, "requested_slots_derived": 1}

    def test_intents(self, dialogue: Conversation) -> None:
        # the thanks of turn 6 are about no domain, and no state changes
        assert intents(dialogue) == {0: ("find_hotel",), 2: ("find_hotel",), 4: ("book_hotel",)}
        assert state(dialogue, 6, "hotel").intents == ()

    def test_who_only_agrees_and_is_booked_wants_a_booking(self, tmp_path: Path) -> None:
        log = DIALOGUES["BAY0001.json"]["log"]
        outcome = changed(tmp_path, 2, dialog_act={"general-thank": [["none", "none"]]})
        assert intents(outcome.only)[2] == ("find_hotel",)  # the name is new in the state
        dialogues = {"A": {"log": [*log[:2], {"text": "Yes .", "metadata": {}, "dialog_act": {}}, log[5]]}}
        assert intents(read(write_json(tmp_path / "yes.json", dialogues)).only)[2] == ("book_hotel",)

    def test_requested_slots(self, dialogue: Conversation) -> None:
        assert {one.seq: one.requested for one in dialogue.frames if one.requested} == {2: ("phone",)}


class TestOddValues:
    def test_no_acts_are_not_annotated(self, tmp_path: Path) -> None:
        outcome = changed(tmp_path, 3, dialog_act={})
        assert [one for one in outcome.only.frames if one.seq == 3] == []

    def test_a_state_that_cannot_be_read_is_kept_and_told(self, tmp_path: Path) -> None:
        outcome = changed(tmp_path, 1, metadata={"hotel": {"semi": ["area"]}})
        assert counts(outcome.report.set_aside) == {"state_unreadable": 1}
        assert outcome.only.utterances[1].extras["metadata"] == {"hotel": {"semi": ["area"]}}
        assert state(outcome.only, 0, "hotel").slots is None

    def test_the_last_turn_without_an_answer_has_no_state(self, tmp_path: Path) -> None:
        log = DIALOGUES["BAY0001.json"]["log"][:3]
        outcome = read(write_json(tmp_path / "data.json", {"A": {"log": log}}))
        assert state(outcome.only, 2, "hotel").slots is None

    def test_one_dialogue_without_a_log_does_not_cost_the_others(self, tmp_path: Path) -> None:
        outcome = read(write_json(tmp_path / "data.json", {"A": {"goal": {}}, **DIALOGUES}))
        assert outcome.ids == ["BAY0001.json"]
        assert (outcome.problem.field, outcome.problem.count) == ("A.log", 1)
