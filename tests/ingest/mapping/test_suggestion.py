"""A mapping that was suggested is TOML that reads the log, and says what it guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import convoscope
from convoscope.errors import InputError
from convoscope.ingest.mapping.declaration import Mapping, parse_mapping
from convoscope.ingest.mapping.suggestion import suggested_map, suggestion
from convoscope.ingest.reader import Sample
from support.logs import story, write, write_lines

RECORD = {
    "case": {"no": "A-17", "queue": "returns", "csat": 4},
    "chat": {
        "events": [
            {"who": "Customer", "body": {"plain": "Where is my parcel?"}, "at": "2026-01-02T10:00:00Z"},
            {"who": "Acme-Bot", "body": {"plain": "On its way."}, "at": "2026-01-02T10:00:04Z"},
            {"who": "Zed", "body": {"plain": "I take over now."}, "at": "2026-01-02T10:00:09Z"},
        ]
    },
}


def made_for(path: Path) -> Mapping:
    return parse_mapping(suggested_map([path]).encode(), "map.toml")


def read_with_it(tmp_path: Path, log: Path) -> list[list[str]]:
    map = write(tmp_path / "suggested.toml", suggested_map([log]))
    return [story(one) for one in convoscope.read(log, readers_from=map)]


def test_a_list_of_messages(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log.jsonl", RECORD)
    made = made_for(log)
    assert made.conversation.messages == "chat.events"
    assert (made.message.role, made.message.text, made.message.time) == ("who", "body.plain", "at")
    assert made.values.role == {"Customer": "user", "Acme-Bot": "assistant"}
    text = suggested_map([log])
    assert '# Zed = ""  # not known: user, assistant, system or tool?' in text
    assert '# labels = { csat = "case.csat" }' in text
    assert 'queue = "case.queue"' in text
    assert read_with_it(tmp_path, log) == [
        ["user: Where is my parcel?", "assistant: On its way.", "Zed: I take over now."]
    ]


def test_a_document_with_a_list_of_conversations(tmp_path: Path) -> None:
    log = write(
        tmp_path / "log.json", json.dumps({"version": 3, "cases": [RECORD, {**RECORD, "case": {"no": "A-18"}}]})
    )
    made = made_for(log)
    assert (made.conversation.records, made.conversation.messages) == ("cases", "chat.events")
    assert len(read_with_it(tmp_path, log)) == 2


def test_a_row_per_message(tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", "session_id,direction,words\nA,in,Where are you?\nA,out,Right over here.\n")
    made = made_for(log)
    assert made.conversation.id == "session_id"
    assert (made.message.role, made.message.text) == ("direction", "words")
    assert read_with_it(tmp_path, log) == [["user: Where are you?", "assistant: Right over here."]]


@pytest.mark.parametrize("name", ["Ticket No", "ticketNo", "case-number", "Conversation Ref"])
def test_the_number_of_a_ticket_parts_its_messages(tmp_path: Path, name: str) -> None:
    rows = ["1;customer;Where is it?;2026-01-02 10:00:00", "1;bot;On its way.;2026-01-02 10:00:04"]
    rows += ["2;customer;Cancel it, please.;2026-01-02 11:00:00", "2;bot;I will do that.;2026-01-02 11:00:09"]
    made = made_for(write(tmp_path / "log.csv", "\n".join([f"{name};Author Type;Body;Created At", *rows])))
    assert made.conversation.id == name
    assert (made.message.role, made.message.text, made.message.time) == ("Author Type", "Body", "Created At")


def test_a_conversation_of_another_shape_does_not_hide_the_others(tmp_path: Path) -> None:
    log = write(
        tmp_path / "log.json", json.dumps({"cases": [RECORD, {"case": {"no": 2}}, {**RECORD, "case": {"no": 3}}]})
    )
    assert made_for(log).conversation.records == "cases"


def test_a_record_with_what_each_side_says(tmp_path: Path) -> None:
    log = write(tmp_path / "log.json", '{"trace": "t-1", "observations": [{"in": "Hi", "out": "Hello"}]}')
    made = made_for(log)
    assert made.conversation.messages == "observations"
    assert made.message.texts == {"user": "in", "assistant": "out"}
    assert read_with_it(tmp_path, log) == [["user: Hi", "assistant: Hello"]]


def test_dialogue_state_by_its_names(tmp_path: Path) -> None:
    turn = {
        "speaker": "user",
        "utterance": "a hotel please",
        "intent": "find",
        "slot_values": {"a": "b"},
        "service": "x",
    }
    answer = {"speaker": "bot", "utterance": "which area?"}
    log = write_lines(tmp_path / "log.jsonl", {"dialogue_id": "1", "exchange": [turn, answer]})
    made = made_for(log)
    assert made.conversation.id == "dialogue_id"
    assert (made.message.intent, made.message.state, made.message.domain) == ("intent", "slot_values", "service")


def test_without_any_text_there_is_none(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log.jsonl", {"a": 1, "b": [1, 2]})
    with pytest.raises(InputError, match="what people say was not found:\n    no field holds texts of people"):
        suggested_map([log])


def test_names_of_a_hostile_log_are_harmless(tmp_path: Path) -> None:
    name = 'x"]\n[evil]\n\x1b[31m.\x7f\u202e##[command]x\u2028\U000e0041'
    said = [{"role": "user\x1b", "text": "Hello you there"}, {"role": "bot\n::x::bot", "text": "And hello to you"}]
    log = write_lines(tmp_path / "log.jsonl", {name: said, f"{name}2": "Another text that is not read"})
    text = suggested_map([log])
    for raw in ("\x1b", "\x7f", "\u202e", "##[", "\u2028", "\U000e0041", "\n::"):
        assert raw not in text
    assert "evil" not in parse_mapping(text.encode(), "map.toml").values.role
    assert read_with_it(tmp_path, log) == [["user: Hello you there", "assistant: And hello to you"]]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(JSON, max_size=4))
def test_whatever_a_log_holds_the_suggestion_is_a_mapping_or_an_error(values: list[Any]) -> None:
    try:
        text = suggestion(Sample(Path("log.jsonl"), "lines", values))
    except InputError:
        return
    parse_mapping(text.encode(), "map.toml")


class TestLogsOfNewcomers:
    """Logs as teams have them, whose suggestion is read without a correction."""

    def test_a_call_transcript_as_a_table(self, tmp_path: Path) -> None:
        rows = ["CallID,Speaker,Utterance,StartTime,Queue,CSAT", "c1,Caller,My order is late,00:00:01,orders,4"]
        rows += ["c1,VoiceBot,Let me check,00:01:04.5,orders,4", "c2,Caller,Cancel please,00:00:01,billing,1"]
        log = write(tmp_path / "calls.csv", "\n".join(rows))
        text = suggested_map([log])
        assert '# labels = { csat = "CSAT" }\n# dimensions = { queue = "Queue" }' in text
        first, second = convoscope.read(log, readers_from=write(tmp_path / "map.toml", text))
        # One second after the start, and a minute and four and a half seconds after it.
        assert [one.time.at for one in first.utterances if one.time] == [1.0, 64.5]
        assert (first.id, second.id) == ("c1", "c2")

    def test_tool_calls_by_other_names(self, tmp_path: Path) -> None:
        call = {"function": "block_card", "parameters": {"card": "debit"}, "response": {"ok": True}}
        events = [{"actor": "customer", "message": "I lost my card"}]
        events += [{"actor": "bot", "message": "I blocked it.", "actions": [call]}]
        log = write_lines(tmp_path / "bank.jsonl", {"session": "s-1", "events": events, "stars": 5})
        assert made_for(log).message.tool_calls == "actions"
        assert read_with_it(tmp_path, log) == [
            ["user: I lost my card", "assistant: I blocked it.", 'block_card({"card": "debit"})', '-> {"ok": true}']
        ]
        assert '# labels = { stars = "stars" }' in suggested_map([log])

    def test_truth_and_prediction_beside_each_other(self, tmp_path: Path) -> None:
        state = {"hotel": {"pricerange": "cheap"}}
        turns: list[dict[str, Any]] = [{"spk": "usr", "txt": "a cheap hotel", "gold_state": state, "pred_state": {}}]
        turns += [{"spk": "sys", "txt": "Which area?"}]
        made = made_for(write_lines(tmp_path / "nlu.jsonl", {"dlg": "d1", "turns": turns}))
        assert (made.conversation.id, made.message.state, made.predicted.state) == ("dlg", "gold_state", "pred_state")
        assert made.values.role == {"usr": "user", "sys": "assistant"}

    def test_of_a_user_and_a_system_the_system_is_the_agent(self, tmp_path: Path) -> None:
        turns = [{"speaker": "USER", "text": "a taxi"}, {"speaker": "SYSTEM", "text": "where to?"}]
        made = made_for(write_lines(tmp_path / "log.jsonl", {"name": "d1", "dialog": turns}))
        assert made.values.role == {"USER": "user", "SYSTEM": "assistant"}

    def test_questions_and_answers_with_json_in_a_cell(self, tmp_path: Path) -> None:
        rows = [
            "conversation,user_query,bot_answer,tools,rating",
            'q1,what is the time,noon,"[{""name"": ""clock""}]",good',
        ]
        rows += ["q1,and the date,today,,good", "q2,hello there,hi,,bad"]
        log = write(tmp_path / "qa.csv", "\n".join(rows))
        made = made_for(log)
        assert made.conversation.id == "conversation"
        assert made.message.texts == {"user": "user_query", "assistant": "bot_answer"}
        assert [len(one) for one in read_with_it(tmp_path, log)] == [5, 2]  # q1: four texts and a call of the clock


def test_words_by_themselves_are_texts_beside_a_role(tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", "chat,who,what\n1,customer,hi\n1,agent,hello\n2,customer,hey\n2,agent,hello\n")
    made = made_for(log)
    assert (made.conversation.id, made.message.role, made.message.text) == ("chat", "who", "what")
    assert read_with_it(tmp_path, log) == [["user: hi", "assistant: hello"], ["user: hey", "assistant: hello"]]


def refused(tmp_path: Path, *records: Any) -> str:
    with pytest.raises(InputError) as error:
        suggested_map([write_lines(tmp_path / "log.jsonl", *records)])
    return str(error.value)


CHAT = [
    {"who": "customer", "say": "My parcel is late", "mail": "ann@example.com"},
    {"who": "bot", "say": "It comes on Monday", "mail": "bot@example.com"},
    {"who": "customer", "say": "Thank you", "mail": "ann@example.com"},
]


class TestTriedBeforeItIsPrinted:
    """A mapping that cannot be right is not given; what is missing is said."""

    def test_it_says_what_it_reads(self, tmp_path: Path) -> None:
        """Two conversations of three texts; the last text of each has no reply, so 2 of 4; one record is empty."""
        records = [{"id": "a", "chat": CHAT}, {"id": "b", "chat": CHAT[:1] + CHAT[1:]}, {"id": "c", "chat": []}]
        records[1]["chat"] = [{**one, "say": f"{one['say']} again"} for one in CHAT]
        text = suggested_map([write_lines(tmp_path / "log.jsonl", *records)])
        assert text.splitlines()[1:4] == [
            "# Tried on its first records: 3. Conversations: 2. Texts of user and agent: 6. Records without a text: 1.",
            "# Who speaks: customer 4 (user), bot 2 (assistant).",
            "# Replies follow 2 of 4 times that the user speaks.",
        ]

    def test_it_says_what_it_does_not_read(self, tmp_path: Path) -> None:
        log = write_lines(tmp_path / "log.jsonl", {"id": "a", "chat": CHAT, "note": "A note of the team lead"})
        assert "# Texts that are not read: note 1." in suggested_map([log])

    def test_an_address_is_no_text(self, tmp_path: Path) -> None:
        """The only texts with a speaker are e-mail addresses."""
        chat = [{"who": one["who"], "message": one["mail"]} for one in CHAT]
        assert "ids, names, numbers or data, such as 'ann@example.com'" in refused(tmp_path, {"chat": chat})

    def test_a_role_is_no_text(self, tmp_path: Path) -> None:
        chat = [{"type": word, "content": word} for word in ("user", "assistant") * 6]
        assert "2 words that come again, such as 'user'" in refused(tmp_path, {"chat": chat})

    def test_the_name_of_a_span_is_no_text(self, tmp_path: Path) -> None:
        spans = [{"actor": who, "message": f"{who}.run_step"} for who in ("user", "agent") * 3]
        assert "ids, names, numbers or data, such as 'user.run_step'" in refused(tmp_path, {"spans": spans})

    def test_words_are_no_turns(self, tmp_path: Path) -> None:
        """A recogniser's words, each with its speaker."""
        words = [{"speaker": "customer", "word": word} for word in ["my", "parcel", "is", "late", "again"]]
        words += [{"speaker": "agent", "word": word} for word in ["it", "comes", "on", "Monday", "morning"]]
        assert "single words, such as" in refused(tmp_path, {"words": words})

    def test_who_the_agent_is_is_not_guessed(self, tmp_path: Path) -> None:
        """Contact and user: in a help desk the user may be the agent. A and B: neither is known."""
        desk = [{**one, "who": {"customer": "contact", "bot": "user"}[one["who"]]} for one in CHAT]
        assert "no texts of the agent; who speaks: contact 2, user 1" in refused(tmp_path, {"chat": desk})
        letters = [{**one, "who": {"customer": "A", "bot": "B"}[one["who"]]} for one in CHAT]
        assert "no texts of a user or an agent; who speaks: A 2, B 1" in refused(tmp_path, {"chat": letters})

    def test_texts_without_a_speaker(self, tmp_path: Path) -> None:
        texts = [{"text": "My parcel is late"}, {"text": "It comes on Monday"}]
        assert "no field that says who speaks: no texts of the agent" in refused(tmp_path, {"chat": texts})

    def test_spans_of_a_trace_are_no_messages(self, tmp_path: Path) -> None:
        spans = [
            {"span_id": str(number), "parent_id": "0", "input": f"Where is parcel {number}?", "output": "On its way."}
            for number in range(4)
        ]
        assert "says that these are spans of a trace" in refused(tmp_path, {"spans": spans})

    def test_a_message_that_lies_elsewhere_is_not_lost(self, tmp_path: Path) -> None:
        """The first message of a ticket is not in the list of the others."""
        first = {"author": {"type": "user"}, "text": "I was charged twice for it"}
        assert "1 more messages are elsewhere, such as at source" in refused(
            tmp_path, {"source": first, "parts": [{**one, "who": one["who"]} for one in CHAT]}
        )

    def test_histories_that_grow(self, tmp_path: Path) -> None:
        """Each record holds what the one before it held: they are one conversation."""
        records = [{"id": str(end), "chat": CHAT[:end]} for end in (2, 3)] * 2
        assert "repeat texts, as where records hold histories" in refused(tmp_path, *records)

    def test_a_path_through_an_id_fits_one_record_only(self, tmp_path: Path) -> None:
        assert "was not found" in refused(tmp_path, {"0a4fac2553f22f2e": {"chat": CHAT}})

    def test_nobody_answers(self, tmp_path: Path) -> None:
        chat = [{"who": "bot", "say": f"We have news number {n}"} for n in range(3)]
        chat += [{"who": "customer", "say": f"Stop it please {n}"} for n in range(3)]
        assert "only 0 of 1 texts of the user are followed by a reply" in refused(tmp_path, {"chat": chat})

    def test_the_second_candidate_is_taken_where_the_first_is_not_plausible(self, tmp_path: Path) -> None:
        """`content` has the better name, and holds addresses; `say` holds the texts."""
        chat = [{"who": one["who"], "content": one["mail"], "say": one["say"]} for one in CHAT]
        assert made_for(write_lines(tmp_path / "log.jsonl", {"chat": chat})).message.text == "say"


def test_calls_of_users_are_left_out(tmp_path: Path) -> None:
    """A mapping reads every call as the agent's. Control text is no speech."""
    call = [{"name": "toggle_wifi", "arguments": {}}]
    messages = [
        {"role": "user", "content": "My phone has no signal."},
        {"role": "assistant", "content": "Please switch the wifi off and on."},
        {"role": "user", "content": "I do that now.", "tool_calls": call},
        {"role": "assistant", "content": "Does it work now?"},
        {"role": "user", "content": "Yes, thank you. ###STOP###"},
    ]
    log = write_lines(tmp_path / "log.jsonl", [{"case": str(number), "talk": messages} for number in range(2)])
    toml = suggested_map([log])
    assert '# tool_calls = "tool_calls"  # left out: users call tools too' in toml
    (one, _) = convoscope.read(log, format="map:suggested", readers_from=write(tmp_path / "suggested.toml", toml))
    assert not one.tool_calls
    assert [said.meant() for said in one.utterances][-1] == "Yes, thank you."


def test_messages_as_pairs_elsewhere_are_noticed(tmp_path: Path) -> None:
    """A list that says everything again in other words is not the conversation."""
    pairs = [["user", "Where is MY parcel now?"], ["agent", "It is on ITS way."]]
    tidy = [{"role": role, "text": text.lower()} for role, text in pairs]
    log = write_lines(tmp_path / "log.jsonl", [{"id": "a", "original": pairs, "tidy": tidy}])
    with pytest.raises(InputError, match="elsewhere"):
        suggested_map([log])
