"""A log that no reader knows is read by a mapping."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import convoscope
from convoscope.conversation import Act, Frame, Label, from_json, to_json
from convoscope.errors import InputError
from convoscope.ingest.mapping.declaration import MappingFile, parse_mapping
from convoscope.ingest.mapping.reader import MappedReader
from convoscope.ingest.reader import Record, RecordGroup, Sample
from convoscope.ingest.report import Notes
from convoscope.views.tool_outcomes import tool_outcome
from support.logs import Outcome, counts, story, write, write_lines

NAMES = ("case", "no", "chat", "events", "who", "body", "plain", "at", "calls", "tool", "turns", "text", "truth", "bot",
         "domain", "slots", "acts", "side", "words", "when", "ticket", "user_message", "predicted_slots")  # fmt: skip
RECORD = {
    "case": {"no": 17, "queue": "returns", "csat": 4},
    "chat": {
        "events": [
            {
                "who": "Customer",
                "body": {"plain": "Where is my parcel?"},
                "at": "2026-01-02T10:00:00Z",
                "topic": "parcel",
            },
            {
                "who": "acme-bot",
                "body": {"plain": "On its way."},
                "at": "2026-01-02T10:00:04Z",
                "calls": [{"tool": "track", "args": {"no": 17}, "output": {"status": "ok"}}],
                "mood": "calm",
            },
        ]
    },
}
MAP = """
[conversation]
messages = "chat.events"
id = "case.no"
dimensions = { domain = "case.queue" }
labels = { csat = "case.csat" }

[message]
role = ["from", "who"]
text = "body.plain"
time = "at"
tool_calls = "calls"
domain = "topic"

[values.role]
acme-bot = "assistant"
"""


def mapped(tmp_path: Path, text: str, *logs: Path) -> Outcome:
    map = write(tmp_path / "maps" / "acme.toml", text)
    reading = convoscope.read(list(logs), readers_from=[map])
    return Outcome(list(reading), reading.report)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "log.jsonl", RECORD)


class TestAListOfMessages:
    def test_paths_aliases_and_values(self, tmp_path: Path, log: Path) -> None:
        outcome = mapped(tmp_path, MAP, log)
        only = outcome.only
        assert (only.id, only.dimensions, only.source.format) == ("17", {"domain": "returns"}, "map:acme")
        assert story(only)[:2] == ["user: Where is my parcel?", "assistant: On its way."]
        assert only.tool_calls[0].name == "track"
        assert only.tool_calls[0].arguments == {"no": 17}
        outcome = tool_outcome(only.tool_results[only.tool_calls[0].seq])
        assert (outcome.status, outcome.basis) == ("succeeded", "stated")
        assert only.labels == (Label(name="csat", value=4, rater_kind="external"),)
        first, second = only.utterances
        assert only.elapsed(first.time, second.time) == 4.0
        assert second.extras == {"mood": "calm"}  # what nobody named is kept
        assert only.frames == (Frame(seq=0, origin="gold", service="parcel", is_active=True),)

    def test_a_role_that_nobody_knows_is_told(self, tmp_path: Path, log: Path) -> None:
        outcome = mapped(tmp_path, MAP.replace("acme-bot =", "other-bot ="), log)
        assert counts(outcome.report.set_aside) == {"role_unknown": 1}
        assert set(outcome.only.roles.values()) == {"user", "acme-bot"}

    def test_a_path_that_leads_nowhere_names_itself(self, tmp_path: Path, log: Path) -> None:
        with pytest.raises(InputError) as raised:
            mapped(tmp_path, MAP.replace("chat.events", "chat.turns"), log)
        assert "conversation.messages: nothing at chat.turns" in str(raised.value)
        assert "acme.toml" in str(raised.value)

    def test_messages_as_text_in_a_cell(self, tmp_path: Path) -> None:
        cell = json.dumps(RECORD["chat"]).replace('"', '""')
        log = write(tmp_path / "log.csv", f'no,chat\n17,"{cell}"\n')
        outcome = mapped(tmp_path, MAP.replace("case.no", "no"), log)
        assert [one.id for one in outcome.conversations] == ["17"]
        assert len(outcome.only.utterances) == 2

    def test_a_list_of_conversations_in_a_document(self, tmp_path: Path) -> None:
        log = write(tmp_path / "log.json", json.dumps({"export": "v1", "cases": [RECORD, RECORD]}))
        outcome = mapped(tmp_path, MAP.replace("[conversation]", '[conversation]\nrecords = "cases"'), log)
        assert len(outcome.conversations) == 2

    def test_one_that_cannot_be_read_does_not_stop_the_others(self, tmp_path: Path) -> None:
        cases = [{**RECORD, "case": {"no": 1}}, {"case": {"no": 2}, "talk": []}, {**RECORD, "case": {"no": 3}}]
        log = write(tmp_path / "log.json", json.dumps({"cases": cases}))
        outcome = mapped(tmp_path, MAP.replace("[conversation]", '[conversation]\nrecords = "cases"'), log)
        assert outcome.ids == ["1", "3"]
        assert outcome.problem.message == "1 of 3 conversations skipped: cases[1] nothing at chat.events"


class TestAMessagePerRecord:
    ROWS = (
        "ticket,side,words,when\n"
        "A,in,Hello,2026-01-02T10:00:00Z\n"
        "B,in,Help,2026-01-02T10:00:01Z\n"
        "A,out,Hi!,2026-01-02T10:00:02Z\n"
    )
    MAP = """
    [conversation]
    id = "ticket"
    [message]
    role = "side"
    text = "words"
    time = "when"
    [values.role]
    in = "user"
    out = "assistant"
    """

    def test_rows_of_one_id_are_a_conversation(self, tmp_path: Path) -> None:
        outcome = mapped(tmp_path, self.MAP, write(tmp_path / "log.csv", self.ROWS))
        told = {one.id: story(one) for one in outcome.conversations}
        assert told == {"A": ["user: Hello", "assistant: Hi!"], "B": ["user: Help"]}
        assert "file_is_one_conversation" not in counts(outcome.report.inferred)

    def test_without_an_id_the_file_is_one_and_that_is_said(self, tmp_path: Path) -> None:
        log = write(tmp_path / "log.csv", self.ROWS)
        map = write(tmp_path / "no-id.toml", self.MAP.replace('id = "ticket"', ""))
        run = convoscope.score(log, readers_from=[map], out=tmp_path / "run")
        assert counts(run.read_report.inferred)["file_is_one_conversation"] == 1
        assert [one for one in run.read_report.warnings if "the mapping names no id" in one]

    def test_parquet(self, tmp_path: Path) -> None:
        import duckdb

        write(tmp_path / "rows.csv", self.ROWS)
        duckdb.sql(f"COPY (SELECT * FROM read_csv('{tmp_path}/rows.csv')) TO '{tmp_path}/log.parquet'")
        assert len(mapped(tmp_path, self.MAP, tmp_path / "log.parquet").conversations) == 2

    def test_a_row_with_what_each_side_says(self, tmp_path: Path) -> None:
        log = write(tmp_path / "log.csv", "ticket,q,a\nA,Hello,Hi!\nA,Bye,\n")
        text = '[conversation]\nid = "ticket"\n[message]\ntexts = { user = "q", assistant = "a" }\n'
        assert story(mapped(tmp_path, text, log).only) == ["user: Hello", "assistant: Hi!", "user: Bye"]


class TestDialogueState:
    MAP = """
    [conversation]
    messages = "turns"
    [message]
    role = "who"
    text = "text"
    intent = "truth.intent"
    domain = "truth.domain"
    state = "truth.slots"
    act = "truth.acts"
    [predicted]
    domain = "bot.domain"
    state = "bot.slots"
    act = "bot.acts"
    [values.domain]
    hotels = "hotel"
    """

    def read(self, tmp_path: Path, turns: list[dict[str, Any]]) -> Outcome:
        return mapped(tmp_path, self.MAP, write_lines(tmp_path / "log.jsonl", {"turns": turns}))

    def test_truth_and_prediction(self, tmp_path: Path) -> None:
        truth = {"intent": "find_hotel", "domain": "hotels", "slots": {"area": "north"}}
        outcome = self.read(
            tmp_path,
            [
                {"who": "user", "text": "A hotel up north", "truth": truth},
                {
                    "who": "agent",
                    "text": "Which price?",
                    "truth": {"acts": ["Hotel-Request"]},
                    "bot": {"domain": "hotel", "slots": {"hotel": {"area": "north"}}, "acts": ["Hotel-Inform"]},
                },
                {"who": "user", "text": "Cheap", "truth": truth},
                {"who": "agent", "text": "Fine"},
            ],
        )
        gold = [one for one in outcome.only.frames if one.origin == "gold"]
        assert gold[0] == Frame(
            seq=0, origin="gold", service="hotel", is_active=True, intents=("find_hotel",), slots={"area": ("north",)}
        )
        assert gold[1] == Frame(seq=1, origin="gold", acts=(Act("Hotel-Request"),))
        predicted = [one for one in outcome.only.frames if one.origin == "predicted"]
        assert [(one.seq, one.service, one.slots, one.acts, one.failure) for one in predicted] == [
            (0, "hotel", {"area": ("north",)}, None, ""),
            (1, "", None, (Act("Hotel-Inform"),), ""),
            (2, "", {}, None, "missing"),
            (3, "", None, (), ""),
        ]
        assert counts(outcome.report.set_aside) == {"prediction_missing": 1}


class TestPredictionsAlone:
    """The `_turns.json` of mas4cs without its dialogues: what it holds is read, and there is no truth of slots."""

    MAP = """
    [conversation]
    records = "turns"
    id = "dialogue_id"
    [message]
    id = "turn_id"
    texts = { user = "user_message", assistant = "system_response" }
    intent = "ground_truth_intent"
    [predicted]
    domain = "domain"
    intent = "predicted_intent"
    state = "predicted_slots"
    """

    def test_turns_of_two_dialogues(self, tmp_path: Path) -> None:
        turn = {
            "dialogue_id": "MUL1",
            "turn_id": 0,
            "user_message": "A cheap hotel",
            "system_response": "Where?",
            "domain": "hotel",
            "predicted_intent": "find_hotel",
            "ground_truth_intent": "find_hotel",
            "predicted_slots": {"hotel": {"pricerange": "cheap"}},
        }
        turns = [turn, {**turn, "turn_id": 2}, {**turn, "dialogue_id": "MUL2"}]
        log = write(tmp_path / "exp_turns.json", json.dumps({"experiment": "e", "turns": turns}))
        first, second = mapped(tmp_path, self.MAP, log).conversations
        assert (first.id, len(first.utterances), second.id, len(second.utterances)) == ("MUL1", 4, "MUL2", 2)
        assert first.frames[:2] == (
            Frame(seq=0, origin="gold", intents=("find_hotel",)),
            Frame(
                seq=0,
                origin="predicted",
                service="hotel",
                is_active=True,
                intents=("find_hotel",),
                slots={"pricerange": ("cheap",)},
            ),
        )
        assert all(one.slots is None for one in first.frames if one.origin == "gold")  # unmeasured, not empty


class TestAWrongMapping:
    @pytest.mark.parametrize(
        ("text", "field", "message"),
        [
            ("[message]\nrole = 3\n", "message.role", "got `int`"),
            ('[message]\nrole = "a"\nwords = "b"\n', "message", "unknown field `words`"),
            ('[message]\nrole = "a"\n', "message.text", "role and its text"),
            ('[message]\nrole = "a"\ntext = "b"\ntexts = {user = "c"}\n', "message", "message.texts"),
            ("[message\n", "", "is no TOML"),
        ],
    )
    def test_it_names_file_and_key(self, text: str, field: str, message: str, tmp_path: Path, log: Path) -> None:
        with pytest.raises(InputError) as raised:
            mapped(tmp_path, text, log)
        assert raised.value.file.endswith("acme.toml")
        assert raised.value.field == field
        assert message in str(raised.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(st.dictionaries(st.sampled_from(NAMES), JSON, max_size=6), min_size=1, max_size=3))
def test_whatever_a_record_holds_it_is_read_or_refused(records: list[Any]) -> None:
    for text in (MAP, TestAMessagePerRecord.MAP, TestDialogueState.MAP, TestPredictionsAlone.MAP):
        reader = MappedReader(MappingFile(parse_mapping(text.encode(), "a.toml"), "a.toml", ""))
        reader.detect(Sample(Path("log.jsonl"), "lines", records))
        held = [Record(value, number) for number, value in enumerate(records, 1)]
        try:
            conversations = list(reader.build(RecordGroup("log", Path("log.jsonl"), held), Notes()))
        except InputError:
            continue
        assert [from_json(to_json(one)) for one in conversations] == conversations
