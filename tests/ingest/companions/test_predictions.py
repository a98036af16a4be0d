"""Predictions that lie beside dialogues: three shapes, one outcome, and none that is missing vanishes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope import score
from convoscope.conversation import Act, Conversation, Frame, SlotValue, from_json, to_json
from convoscope.errors import InputError
from convoscope.ingest.companions.predictions import (
    ACTS,
    DIALOGUE,
    DOMAINS,
    FAILURE,
    INTENTS,
    REQUESTED,
    RESPONSE,
    TURN,
    Predictions,
    attach,
    predictions_of,
    shape_of,
)
from convoscope.ingest.companions.predictions import STATE as STATES
from convoscope.ingest.report import Notes
from support.logs import EXAMPLES, Outcome, counts, places, read, write, write_json, write_lines

DIALOGUES = (EXAMPLES / "multiwoz" / "dialogues-2.1.json").read_text()
"""One dialogue, BAY0001.json, with user's turns 0, 2, 4 and 6."""
STATE = {"hotel": {"area": "harbour", "parking": "yes"}}
SLOTS = {"area": ("harbour",), "parking": ("yes",)}


def beside(tmp_path: Path, predictions: Any, name: str = "predictions.json") -> Outcome:
    write(tmp_path / "dialogues.json", DIALOGUES)
    if name.endswith(".jsonl"):
        write_lines(tmp_path / name, *predictions)
    else:
        write_json(tmp_path / name, predictions)
    return read(tmp_path)


def turn(id: Any, **fields: Any) -> dict[str, Any]:
    return {"dialogue_id": "BAY0001.json", "turn_id": id, **fields}


def predicted(dialogue: Conversation, seq: int) -> list[Frame]:
    return [one for one in dialogue.frames if (one.origin, one.seq) == ("predicted", seq)]


RECORDS = [
    turn(0, predicted_domain="hotel", predicted_intent="find_hotel", predicted_slots=STATE,
         predicted_act_type=["Hotel-Recommend"], response="Gull House?"),
    turn(2, predicted_domain="hotel", predicted_intent="find_hotel", predicted_slots=STATE,
         predicted_act_type=["Hotel-Inform"], response="555 0142"),
    turn(4, predicted_domain="hotel", predicted_intent="book_hotel", predicted_slots=STATE,
         predicted_act_type=["Booking-Book"], response="Booked."),
    turn(6, predicted_domain="", predicted_intent="NONE", predicted_slots={}, predicted_act_type=[], response="Bye."),
]  # fmt: skip


class TestShapes:
    def test_records_of_a_turn(self, tmp_path: Path) -> None:
        outcome = beside(tmp_path, RECORDS, "predictions.jsonl")
        state, answer = predicted(outcome.only, 0)[0], predicted(outcome.only, 1)[0]
        assert (state.service, state.is_active, state.intents, state.slots) == ("hotel", True, ("find_hotel",), SLOTS)
        assert (answer.acts, answer.response) == ((Act("Hotel-Recommend"),), "Gull House?")
        (last,) = predicted(outcome.only, 6)
        assert (last.service, last.intents, last.slots, last.failure) == ("", (), {}, "")
        assert outcome.report.files["predictions.jsonl"].format == "predictions"
        assert counts(outcome.report.set_aside) == {}

    def test_the_truth_is_kept_beside_them(self, tmp_path: Path) -> None:
        alone = read(write(tmp_path / "alone" / "dialogues.json", DIALOGUES)).only
        both = beside(tmp_path / "both", RECORDS).only
        assert tuple(one for one in both.frames if one.origin == "gold") == alone.frames

    def test_turns_of_mas4cs(self, tmp_path: Path) -> None:
        records = [
            turn(0, domain="hotel", predicted_intent="find_hotel", action_type="find_hotel", predicted_slots=STATE,
                 system_response="Gull House?", policy_compliant=True, jga=1.0),
        ]  # fmt: skip
        outcome = beside(tmp_path, {"experiment": "exp1", "turns": records}, "exp1_turns.json")
        state, answer = predicted(outcome.only, 0)[0], predicted(outcome.only, 1)[0]
        assert (state.service, state.is_active, state.slots) == ("hotel", True, SLOTS)
        assert state.extras == {"action_type": "find_hotel", "policy_compliant": True, "jga": 1.0}
        assert (answer.acts, answer.response) == (None, "Gull House?")  # it has no acts: they are not measured
        assert counts(outcome.report.set_aside) == {"prediction_missing": 3}  # turns 2, 4 and 6

    def test_the_standard_evaluator(self, tmp_path: Path) -> None:
        answers = [
            {"response": "[name] ?", "state": STATE, "active_domains": ["hotel"]},
            {"response": "[phone]", "state": STATE, "active_domains": ["hotel"]},
            {"response": "[ref]", "state": {**STATE, "taxi": {"leaveat": "5"}}, "active_domains": ["hotel"]},
            {"response": "bye", "state": STATE, "active_domains": []},
        ]
        outcome = beside(tmp_path, {"bay0001": answers})
        hotel, taxi = predicted(outcome.only, 4)
        assert (hotel.is_active, hotel.slots) == (True, SLOTS)
        assert (taxi.service, taxi.is_active, taxi.slots) == ("taxi", False, {"leaveat": ("5",)})
        assert [predicted(outcome.only, seq)[0].response for seq in (1, 3, 5, 7)] == [
            "[name] ?",
            "[phone]",
            "[ref]",
            "bye",
        ]
        assert hotel.intents is None  # not predicted by any, so not measured
        assert counts(outcome.report.set_aside) == {}

    @pytest.mark.parametrize(
        "state",
        [
            {"hotel": {"hotel-area": "harbour", "parking": ["yes"], "stars": None}},
            {"hotel-area": ["harbour"], "hotel-parking": "yes"},
            {"slots_values_name": ["hotel-area", "hotel-parking"], "slots_values_list": [["harbour"], ["yes"]]},
        ],
    )
    def test_a_state_is_written_in_many_ways(self, state: Any, tmp_path: Path) -> None:
        outcome = beside(tmp_path, [turn(0, predicted_domain="hotel", slots_values=state)])
        assert predicted(outcome.only, 0)[0].slots == SLOTS

    def test_acts_with_slots(self, tmp_path: Path) -> None:
        acts = {"Hotel-Inform": [["phone", "555 0142"], ["none", "none"]], "Booking-Request": [["bookday", "?"]]}
        outcome = beside(tmp_path, [turn(2, predicted_acts=acts)])
        assert predicted(outcome.only, 3)[0].acts == (
            Act("Hotel-Inform", (SlotValue("phone", "555 0142"),)),
            Act("Booking-Request", (SlotValue("bookday"),)),
        )


class TestNothingVanishes:
    def test_a_missing_turn_is_empty_in_all_that_others_predict(self, tmp_path: Path) -> None:
        outcome = beside(tmp_path, [RECORDS[0], *RECORDS[2:]])
        state, answer = predicted(outcome.only, 2)[0], predicted(outcome.only, 3)[0]
        assert (state.failure, state.intents, state.slots, state.requested) == ("missing", (), {}, None)
        assert (answer.acts, answer.response) == ((), "")
        assert counts(outcome.report.set_aside) == {"prediction_missing": 1}

    def test_a_failed_turn_too(self, tmp_path: Path) -> None:
        outcome = beside(tmp_path, [*RECORDS[:3], turn(6, error="no JSON in the answer", predicted_slots=None)])
        assert predicted(outcome.only, 6)[0].failure == "no JSON in the answer"
        assert predicted(outcome.only, 6)[0].slots == {}
        assert counts(outcome.report.set_aside) == {"prediction_failed": 1}

    def test_a_dialogue_that_nobody_predicted_is_missing_whole(self, tmp_path: Path) -> None:
        other = [{**one, "dialogue_id": "BAY0002"} for one in RECORDS]
        outcome = beside(tmp_path, other)
        assert [predicted(outcome.only, seq)[0].failure for seq in (0, 2, 4, 6)] == ["missing"] * 4
        assert counts(outcome.report.set_aside) == {"prediction_missing": 4, "prediction_without_dialogue": 1}

    def test_a_prediction_of_no_turn_is_told(self, tmp_path: Path) -> None:
        outcome = beside(tmp_path, [*RECORDS, turn(40, predicted_domain="hotel"), RECORDS[0]])
        assert counts(outcome.report.set_aside) == {"prediction_without_turn": 1, "prediction_repeated": 1}

    def test_turns_that_only_count_are_those_of_the_user(self, tmp_path: Path) -> None:
        outcome = beside(tmp_path, [{**one, "turn_id": place} for place, one in enumerate(RECORDS)])
        assert predicted(outcome.only, 4)[0].intents == ("book_hotel",)
        assert counts(outcome.report.set_aside) == {}
        assert counts(outcome.report.inferred)["turns_by_number"] == 1

    def test_intents_without_a_domain_are_of_the_turn(self, tmp_path: Path) -> None:
        outcome = beside(tmp_path, [turn(0, predicted_intent="find_hotel")])
        (frame,) = predicted(outcome.only, 0)
        assert (frame.service, frame.is_active, frame.intents) == ("", None, ("find_hotel",))

    def test_other_logs_are_left_alone(self, tmp_path: Path) -> None:
        write_json(tmp_path / "chat.json", {"id": "x", "messages": [{"role": "user", "content": "Hello"}]})
        outcome = beside(tmp_path, RECORDS)
        assert {one.id: bool(one.frames) for one in outcome.conversations} == {"BAY0001.json": True, "x": False}


class TestNothingIsDroppedSilently:
    def test_a_system_that_fails_in_every_turn_is_wrong_in_everything(self, tmp_path: Path) -> None:
        for place, fields in enumerate(({"error": "timeout"}, {"failure": "timeout", "predicted_slots": None})):
            folder = tmp_path / str(place)
            outcome = beside(folder, [turn(id, **fields) for id in (0, 2, 4, 6)], "predictions.jsonl")
            state, answer = predicted(outcome.only, 0)[0], predicted(outcome.only, 1)[0]
            assert (state.intents, state.slots, state.is_active, state.failure) == ((), {}, False, "timeout")
            assert (answer.acts, answer.response) == ((), "")
            assert counts(outcome.report.set_aside) == {"prediction_failed": 4}
            run = score(folder, metrics="dialogue.jga,dialogue.intent_accuracy", out=tmp_path / f"run{place}")
            values = {one.key: one.value for one in run.summary.metrics if not one.reduction}
            assert values["dialogue.intent_accuracy"] == 0.0
            assert values["dialogue.jga"] == 0.0

    def test_a_line_that_was_cut_off_is_told(self, tmp_path: Path) -> None:
        write(tmp_path / "dialogues.json", DIALOGUES)
        lines = [json.dumps(one) for one in RECORDS]
        write(tmp_path / "predictions.jsonl", "\n".join([*lines[:3], lines[3][:40]]))
        report = read(tmp_path).report
        assert counts(report.set_aside) == {"prediction_missing": 1, "prediction_unreadable": 1}
        (place,) = places(report.set_aside)["prediction_unreadable"]
        assert "line 4" in place
        run = score(tmp_path, metrics="dialogue.jga", limit=1, out=tmp_path / "run")
        assert counts(run.read_report.set_aside) == {"prediction_missing": 1, "prediction_unreadable": 1}

    @pytest.mark.parametrize(
        "field",
        [
            {"predicted_slots": [["area", "north"]]},
            {"predicted_slots": "area=north"},
            {"predicted_slots": {"hotel": {"area": {"value": "north"}}}},
            {"predicted_intent": {"name": "find_hotel"}},
            {"predicted_act_type": [{"type": "Hotel-Inform"}]},
            {"response": ["Gull House"]},
        ],
    )
    def test_a_value_of_another_type_is_told_and_scores_as_empty(self, field: dict[str, Any], tmp_path: Path) -> None:
        (name,) = field
        outcome = beside(tmp_path, [{**RECORDS[0], **field}, *RECORDS[1:]])
        (place,) = places(outcome.report.set_aside)["prediction_unreadable"]
        assert "BAY0001.json turn 0" in place
        assert name in place
        state, answer = predicted(outcome.only, 0)[0], predicted(outcome.only, 1)[0]
        kept = {"predicted_slots": state.slots, "predicted_intent": state.intents, "response": answer.response}
        assert not kept.get(name, ())
        assert state.extras[name] == field[name]  # it is kept as it was

    @pytest.mark.parametrize("extra", [{}, {"response": "[name]"}, {"response": "[name]", "tokens": 12}])
    def test_answers_of_the_standard_evaluator_may_lack_a_response_and_hold_more(
        self, extra: dict[str, Any], tmp_path: Path
    ) -> None:
        outcome = beside(tmp_path, {"bay0001": [{"state": STATE, **extra}] * 4})
        assert predicted(outcome.only, 0)[0].slots == SLOTS
        assert counts(outcome.report.set_aside) == {}

    def test_a_log_with_responses_is_no_file_of_predictions(self) -> None:
        assert not shape_of([{"turns": [{"user": "Hello", "response": "Hi"}]}])
        assert not shape_of([{"id": "x", "log": [{"response": "Hi"}]}])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
NAMES = sorted({*DIALOGUE, *TURN, *DOMAINS, *INTENTS, *STATES, *REQUESTED, *ACTS, *RESPONSE, *FAILURE})


@given(st.lists(st.dictionaries(st.sampled_from(NAMES), JSON, max_size=6), max_size=4), JSON)
def test_whatever_a_file_of_predictions_holds_the_dialogue_is_whole(records: list[Any], other: Any) -> None:
    """Each turn has one prediction, be it empty, and the truth stays as it was."""
    dialogue = read(EXAMPLES / "multiwoz" / "dialogues-2.1.json").only
    for values in (records, [{"turns": records}], [{"BAY0001": records}], [other]):
        shape_of(values)
        by_dialogue, _ = predictions_of(values)
        by_dialogue["bay0001"] = [one for listed in by_dialogue.values() for one in listed]
        both = attach(dialogue, Predictions(by_dialogue, frozenset({"state"})), Notes())
        assert tuple(one for one in both.frames if one.origin == "gold") == dialogue.frames
        seqs = {one.seq for one in both.frames if one.origin == "predicted" and one.slots is not None}
        assert seqs == {0, 2, 4, 6}
        assert from_json(to_json(both)) == both


def test_slots_of_the_standard_evaluator_have_the_names_of_the_dialogues(tmp_path: Path) -> None:
    state = {"train": {"arrive": "10:00", "leave": "09:00", "day": "friday"}}
    outcome = beside(tmp_path, {"bay0001": [{"response": "", "state": state}]})
    assert predicted(outcome.only, 0)[0].slots == {"arriveby": ("10:00",), "leaveat": ("09:00",), "day": ("friday",)}


class TestWithoutDialogue:
    """A prediction that is of no dialogue or no turn is counted, and named."""

    STRAY = {"dialogue_id": "BAY0009.json", "turn_id": 0, "predicted_domain": "hotel", "response": ""}

    def test_in_the_read_report(self, tmp_path: Path) -> None:
        report = beside(tmp_path, [*RECORDS, self.STRAY, turn(99, response="x")], "predictions.jsonl").report
        # One dialogue that nobody held, and one turn that BAY0001 does not have.
        assert places(report.set_aside) == {
            "prediction_without_dialogue": ["predictions.jsonl bay0009"],
            "prediction_without_turn": ["dialogues.json BAY0001.json turn 99"],
        }

    def test_in_the_read_report_of_a_run(self, tmp_path: Path) -> None:
        beside(tmp_path / "logs", [*RECORDS, self.STRAY], "predictions.jsonl")
        run = score(tmp_path / "logs", metrics="dialogue.jga", out=tmp_path / "run")
        assert places(run.read_report.set_aside) == {"prediction_without_dialogue": ["predictions.jsonl bay0009"]}

    def test_a_strict_run_refuses_it(self, tmp_path: Path) -> None:
        beside(tmp_path / "logs", [*RECORDS, self.STRAY], "predictions.jsonl")
        with pytest.raises(InputError, match="prediction_without_dialogue"):
            score(tmp_path / "logs", metrics="dialogue.jga", strict=True, out=tmp_path / "run")

    def test_a_limit_leaves_dialogues_out_that_may_be_theirs(self, tmp_path: Path) -> None:
        beside(tmp_path / "logs", [*RECORDS, self.STRAY], "predictions.jsonl")
        run = score(tmp_path / "logs", metrics="dialogue.jga", limit=1, out=tmp_path / "run")
        assert run.read_report.set_aside == {}


class TestTables:
    """Records of turns as rows: a cell that is JSON is looked into."""

    def rows(self) -> list[dict[str, str]]:
        return [
            {name: value if isinstance(value, str) else json.dumps(value) for name, value in record.items()}
            for record in RECORDS
        ]

    def frames(self, outcome: Outcome) -> list[Frame]:
        assert outcome.report.set_aside == {}
        return [frame for frame in outcome.only.frames if frame.origin == "predicted"]

    def test_csv_and_parquet_are_read_as_lines_are(self, tmp_path: Path) -> None:
        expected = self.frames(beside(tmp_path / "lines", RECORDS, "predictions.jsonl"))
        table = tmp_path / "csv" / "predictions.csv"
        write(tmp_path / "csv" / "dialogues.json", DIALOGUES)
        with table.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(RECORDS[0]))
            writer.writeheader()
            writer.writerows(self.rows())
        outcome = read(tmp_path / "csv")
        assert self.frames(outcome) == expected
        assert outcome.report.files["predictions.csv"].format == "predictions"
        write(tmp_path / "parquet" / "dialogues.json", DIALOGUES)
        parquet = tmp_path / "parquet" / "predictions.parquet"
        duckdb.sql(f"COPY (SELECT * FROM read_csv('{table}', all_varchar=true)) TO '{parquet}'")
        assert self.frames(read(tmp_path / "parquet")) == expected

    def test_parquet_with_nested_columns(self, tmp_path: Path) -> None:
        lines = write_lines(tmp_path / "aside" / "predictions.jsonl", *RECORDS[:3])
        write(tmp_path / "logs" / "dialogues.json", DIALOGUES)
        parquet = tmp_path / "logs" / "predictions.parquet"
        duckdb.sql(f"COPY (SELECT * FROM read_json('{lines}')) TO '{parquet}'")
        outcome = read(tmp_path / "logs")
        state = predicted(outcome.only, 0)[0]
        assert (state.service, state.slots) == ("hotel", SLOTS)
        assert counts(outcome.report.set_aside) == {"prediction_missing": 1}  # turn 6 was left out
