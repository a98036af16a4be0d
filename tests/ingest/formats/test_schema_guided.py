"""Schema-guided dialogues: SGD, and MultiWOZ 2.2 with its acts and its schema beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.conversation import Act, Conversation, Frame, SlotSpan, SlotValue
from support.logs import EXAMPLES, Outcome, counts, read, story, write, write_json

MULTIWOZ = EXAMPLES / "multiwoz" / "version-2.2"
SGD = EXAMPLES / "sgd"
DIALOGUE: dict[str, Any] = json.loads((SGD / "dialogues_001.json").read_text())[0]


@pytest.fixture(scope="module")
def multiwoz() -> Conversation:
    return read(MULTIWOZ).only


@pytest.fixture(scope="module")
def boats() -> Conversation:
    return read(SGD).only


def frame(dialogue: Conversation, seq: int, service: str) -> Frame:
    (one,) = (one for one in dialogue.frames if (one.seq, one.service) == (seq, service))
    return one


class TestMultiWOZ22:
    def test_state(self, multiwoz: Conversation) -> None:
        assert multiwoz.source.format == "multiwoz"
        assert multiwoz.dimensions == {"domain": "restaurant+hotel"}
        restaurant, hotel = frame(multiwoz, 0, "restaurant"), frame(multiwoz, 0, "hotel")
        assert restaurant.slots == {"food": ("basque",), "area": ("harbour", "harbor")}  # either is right
        assert (restaurant.intents, restaurant.requested) == (("find_restaurant",), ("phone",))
        assert (hotel.intents, hotel.slots) == ((), {})  # NONE
        assert restaurant.derived == ()
        assert restaurant.acts is None  # they are in a file of their own

    def test_spans_and_copies(self, multiwoz: Conversation) -> None:
        assert frame(multiwoz, 0, "restaurant").spans == (SlotSpan(slot="food", value="basque", start=8, end=14),)
        assert frame(multiwoz, 2, "hotel").spans == (
            SlotSpan(slot="area", value="harbour", copied_from="restaurant-area"),
        )

    def test_acts_of_the_file_beside(self, multiwoz: Conversation) -> None:
        assert frame(multiwoz, 0, "").acts == (
            Act("Restaurant-Inform", (SlotValue("food", "basque"), SlotValue("area", "harbour"))),
            Act("Restaurant-Request", (SlotValue("phone"),)),
        )
        assert frame(multiwoz, 1, "").spans == (
            SlotSpan(slot="name", value="Txoko Marea", act="Restaurant-Recommend", start=0, end=11),
        )

    def test_the_schema_names_the_tools(self, multiwoz: Conversation) -> None:
        assert [tool.name for tool in multiwoz.agent.tools or ()] == ["find_hotel", "find_restaurant"]

    def test_without_acts_none_are_annotated(self, tmp_path: Path) -> None:
        write(tmp_path / "dialogues.json", (MULTIWOZ / "dialogues_001.json").read_text())
        assert {one.acts for one in read(tmp_path).only.frames} == {None}

    def test_a_dialogue_that_the_acts_do_not_know_is_told(self, tmp_path: Path) -> None:
        write(tmp_path / "dialogues.json", (MULTIWOZ / "dialogues_001.json").read_text())
        acts = json.loads((MULTIWOZ / "dialog_acts.json").read_text())
        write_json(tmp_path / "dialog_acts.json", {"OTHER.json": acts["BAY0002.json"]})
        assert counts(read(tmp_path).report.set_aside) == {"acts_missing": 1}

    def test_readme_and_files_name_the_acts_differently(self, tmp_path: Path) -> None:
        write(tmp_path / "dialogues.json", (MULTIWOZ / "dialogues_001.json").read_text())
        acts = (MULTIWOZ / "dialog_acts.json").read_text().replace('"dialog_act"', '"dialogue_acts"')
        write(tmp_path / "dialog_acts.json", acts)
        assert frame(read(tmp_path).only, 2, "").acts == (Act("Hotel-Inform", (SlotValue("area", "harbour"),)),)


class TestSGD:
    def test_a_call_stands_before_the_answer(self, boats: Conversation) -> None:
        assert boats.source.format == "sgd"
        (call,) = boats.tool_calls
        assert (call.name, call.arguments) == ("FindBoat", {"seats": "2", "day": "Friday"})
        assert boats.tool_results[call.seq].result == [{"boat_name": "Heron", "price": "40"}]
        assert boats.utterances[1].seq > call.seq
        assert [line for line in story(boats) if line.startswith(("user:", "assistant:"))] == [
            "user: A boat for two on Friday, please.",
            "assistant: The Heron is free. How long do you want it?",
        ]

    def test_state_and_acts(self, boats: Conversation) -> None:
        user = frame(boats, 0, "Boats_1")
        assert (user.intents, user.requested) == (("FindBoat",), ("price",))
        assert user.slots == {"seats": ("2", "two"), "day": ("Friday",)}
        assert user.acts is not None
        assert user.acts[0] == Act("INFORM", (SlotValue("seats", "two"),))
        assert user.spans == (SlotSpan(slot="day", value="Friday", start=18, end=24),)
        assert user.extras == {"canonical_values": {"seats": ["2"]}}  # where they differ from the words
        system = frame(boats, boats.utterances[1].seq, "Boats_1")
        assert system.acts == (Act("OFFER", (SlotValue("boat_name", "Heron"),)), Act("REQUEST", (SlotValue("hours"),)))
        assert system.slots is None

    def test_the_schema_says_what_a_call_needs(self, boats: Conversation) -> None:
        (tool,) = boats.agent.tools or ()
        assert tool.arguments_schema == {
            "type": "object",
            "properties": {"seats": {"type": "string"}, "day": {"type": "string"}},
            "required": ["seats"],
        }

    def changed(self, tmp_path: Path, **fields: Any) -> Outcome:
        turns = [DIALOGUE["turns"][0] | fields, DIALOGUE["turns"][1]]
        return read(write_json(tmp_path / "dialogues.json", [DIALOGUE | {"turns": turns}]))

    def test_a_frame_that_cannot_be_read_is_kept_and_told(self, tmp_path: Path) -> None:
        odd = [{"service": "Boats_1", "state": {"slot_values": ["seats"]}}]
        outcome = self.changed(tmp_path, frames=odd)
        assert counts(outcome.report.set_aside) == {"frame_unreadable": 1}
        assert outcome.only.utterances[0].extras["frames"] == odd

    def test_a_speaker_that_nobody_knows_is_told(self, tmp_path: Path) -> None:
        assert counts(self.changed(tmp_path, speaker="GUEST").report.set_aside) == {"speaker_unknown": 1}


@pytest.mark.parametrize("speaker", [["USER"], {"name": "USER"}, None, 7])
def test_a_speaker_of_another_type_is_noted_and_the_rest_is_read(speaker: object, tmp_path: Path) -> None:
    """The file is known by its other turns."""
    turns = [{"speaker": one, "utterance": text, "frames": []} for one, text in ((speaker, "Hello"), ("SYSTEM", "Hi"))]
    (tmp_path / "d.json").write_text(json.dumps([{"dialogue_id": "1", "services": ["a"], "turns": turns}]))
    stream = convoscope.read(tmp_path / "d.json")
    (conversation,) = stream
    assert [one.meant() for one in conversation.utterances] == ["Hello", "Hi"]
    assert [file.format for file in stream.report.files.values()] == ["sgd"]
    assert stream.report.problem_count == 0
