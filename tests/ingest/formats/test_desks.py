"""Desks and messengers: private notes and events are no speech, newest first, and names are no roles."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Marker, to_json
from support.logs import EXAMPLES, Outcome, counts, read, story, write, write_json


def markers(outcome: Outcome) -> list[Marker]:
    return [event for event in outcome.only.timeline if isinstance(event, Marker)]


def marks(outcome: Outcome) -> list[str]:
    return [marker.name for marker in markers(outcome)]


class TestIntercom:
    def test_notes_and_changes_are_not_said(self) -> None:
        outcome = read(EXAMPLES / "intercom")
        assert story(outcome.only) == [
            "user:Maya: I was billed for two seats.\nI have one.",
            "[part_note]",
            "assistant:Lena: You are right & we pay it back.",
            "user:Maya: Thank you.",
            "[part_close]",
        ]
        assert outcome.report.ignored["part_note"] == outcome.report.ignored["part_close"] == 1

    def test_the_rating_is_a_label_of_the_desk(self) -> None:
        (label,) = read(EXAMPLES / "intercom").only.labels
        assert (label.name, label.value, label.rater_kind) == ("rating", 4, "external")

    @pytest.mark.parametrize(
        ("kind", "is_said"), [("comment", True), ("close", True), ("note", False), ("note_and_reopen", False)]
    )
    def test_which_parts_the_customer_sees(self, kind: str, is_said: bool, tmp_path: Path) -> None:
        part = {"part_type": kind, "body": "<p>Goodbye</p>", "author": {"type": "admin"}}
        parts = {"conversation_parts": [part]}
        source = {"body": "<p>Hello</p>", "author": {"type": "user"}}
        log = {"id": "1", "source": source, "conversation_parts": parts}
        said = story(read(write_json(tmp_path / "c.json", log)).only)
        assert ("assistant: Goodbye" in said) is is_said

    def test_an_author_of_no_known_type_stays_unknown(self, tmp_path: Path) -> None:
        source = {"body": "Hello", "author": {"type": "machine", "name": "X"}}
        log = {"id": "1", "source": source, "conversation_parts": {"conversation_parts": []}}
        assert story(read(write_json(tmp_path / "c.json", log)).only) == ["unknown:X: Hello"]


class TestChatwoot:
    def test_newest_first_is_read_oldest_first_and_two_of_five_are_said(self) -> None:
        outcome = read(EXAMPLES / "chatwoot")
        assert story(outcome.only) == [
            "user:Ivo: Is the shop open today?",
            "[message_type_3]",
            "[message_type_2]",
            "[private_note]",
            "assistant:Nils: Yes, until six.",
        ]
        # 1772438460 - 1772438400 seconds lie between question and reply.
        first, last = outcome.only.utterances
        assert first.time is not None
        assert last.time is not None
        assert last.time.at - first.time.at == 60

    def test_a_private_note_is_kept_and_no_utterance(self) -> None:
        outcome = read(EXAMPLES / "chatwoot")
        (note,) = [marker for marker in markers(outcome) if marker.name == "private_note"]
        assert isinstance(note.value, dict)
        assert note.value["content"] == "Ask him for the order number first."
        assert all("order number" not in outcome.only.text(one) for one in outcome.only.utterances)

    def test_conversations_of_one_file(self, tmp_path: Path) -> None:
        log = [
            {"id": id, "content": text, "conversation_id": talk, "inbox_id": 1, "message_type": 0, "created_at": id}
            for id, talk, text in [(3, 8, "c"), (2, 9, "b"), (1, 8, "a")]
        ]
        outcome = read(write_json(tmp_path / "m.json", log))
        assert {one.id: [one.text(each) for each in one.utterances] for one in outcome.conversations} == {
            "8": ["a", "c"],
            "9": ["b"],
        }

    def test_a_message_without_a_time_keeps_its_place(self, tmp_path: Path) -> None:
        log = [
            {"id": 1, "content": text, "conversation_id": 8, "inbox_id": 1, "message_type": 0, "created_at": at}
            for text, at in [("c", 1772438460), ("b", None), ("a", 1772438400)]
        ]
        only = read(write_json(tmp_path / "m.json", log)).only
        assert [only.text(one) for one in only.utterances] == ["a", "b", "c"]


class TestTelegram:
    def test_marked_parts_are_one_text_and_entries_of_the_service_none(self) -> None:
        outcome = read(EXAMPLES / "telegram")
        assert story(outcome.only) == [
            "[entry_service]",
            "unknown:Ivo: Is a boat free on Sunday?",
            "unknown:Boat hire: Two are free: https://boats.example.",
        ]

    def test_names_that_say_both_roles_are_roles(self, tmp_path: Path) -> None:
        entries = [
            {
                "id": number,
                "type": "message",
                "date": "2026-03-02T09:00:00",
                "from": name,
                "from_id": name,
                "text": "Hi",
            }
            for number, name in enumerate(("Customer", "Support"))
        ]
        only = read(write_json(tmp_path / "r.json", {"id": 1, "messages": entries})).only
        assert [only.roles[one.speaker] for one in only.utterances] == ["user", "assistant"]

    def test_one_name_that_says_a_role_is_not_enough(self, tmp_path: Path) -> None:
        entries = [
            {
                "id": number,
                "type": "message",
                "date": "2026-03-02T09:00:00",
                "from": name,
                "from_id": name,
                "text": "Hi",
            }
            for number, name in enumerate(("Model Railways", "Ivo"))
        ]
        only = read(write_json(tmp_path / "r.json", {"id": 1, "messages": entries})).only
        assert {one.role for one in only.participants} == {"unknown"}


class TestFacebook:
    def test_newest_first_photos_and_letters_that_were_encoded_twice(self) -> None:
        outcome = read(EXAMPLES / "facebook")
        assert story(outcome.only) == [
            "unknown:Zoe Quist: Is there still rye bread? It was schön last time.",
            "[message_without_text]",
            "unknown:Harbour Bakery: Yes, until noon. We keep one for you.",
        ]
        assert counts(outcome.report.repaired) == {"encoding": 1}
        first = outcome.only.utterances[0].time
        assert first is not None
        assert first.at == 1772442060  # 1772442060000 milliseconds

    def test_text_that_is_right_stays(self, tmp_path: Path) -> None:
        entries = [{"sender_name": "Zoe", "timestamp_ms": 1772442060000, "content": "schön 👋"}]
        outcome = read(write_json(tmp_path / "m.json", {"messages": entries}))
        assert story(outcome.only) == ["unknown:Zoe: schön 👋"]
        assert outcome.report.repaired == {}


def chat(folder: Path, *lines: str) -> Outcome:
    return read(write(folder / "chat.txt", "\n".join(lines) + "\n"))


class TestWhatsApp:
    def test_lines_continue_a_message_and_the_first_is_of_the_system(self) -> None:
        outcome = read(EXAMPLES / "whatsapp")
        assert story(outcome.only) == [
            "[system_message]",
            "unknown:Ivo: Hello, two questions:\nis the kiosk open on Sunday,\nand do you sell ice?",
            "unknown:Lakeside Kiosk: Open from ten. Ice from May.",
            "[message_without_text]",
            "unknown:Ivo: Thank you!",
        ]

    @pytest.mark.parametrize(
        ("days", "month", "is_guess"),
        [
            (("13/02/2026", "03/02/2026"), 2, False),
            (("02/13/2026", "03/02/2026"), 3, False),
            (("04/02/2026", "03/02/2026"), 2, True),
            (("2026-02-13", "2026-02-03"), 2, False),
            (("13.02.26", "03.02.26"), 2, False),
        ],
    )
    def test_day_and_month(self, days: tuple[str, str], month: int, is_guess: bool, tmp_path: Path) -> None:
        """The last date is 3 February, or 2 March where another date has a month of 13."""
        outcome = chat(tmp_path, *(f"{day}, 10:00 - Ivo: Hi" for day in days))
        time = outcome.only.utterances[-1].time
        assert time is not None
        when = datetime.fromtimestamp(time.at, UTC)
        assert (when.year, when.month, when.day) == (2026, month, 3 if month == 2 else 2)
        assert ("day_before_month" in outcome.report.inferred) is is_guess

    @pytest.mark.parametrize(
        ("head", "clock"),
        [
            ("13/02/2026, 9:05 pm - ", "21:05:00"),
            ("[13/02/2026, 09:05:07] ", "09:05:07"),
            ("\u200e[13/02/2026, 12:05:07\u202fAM] ", "00:05:07"),
        ],
    )
    def test_clocks(self, head: str, clock: str, tmp_path: Path) -> None:
        time = chat(tmp_path, f"{head}Ivo: Hi", f"{head}Ana: Hello").only.utterances[0].time
        assert time is not None
        assert datetime.fromtimestamp(time.at, UTC).strftime("%H:%M:%S") == clock

    def test_a_date_that_does_not_exist_leaves_the_words(self, tmp_path: Path) -> None:
        outcome = chat(tmp_path, "31/02/2026, 10:00 - Ivo: Hi", "13/02/2026, 10:00 - Ana: Hello")
        assert outcome.only.utterances[0].time is None
        assert counts(outcome.report.set_aside) == {"unreadable_time": 1}

    def test_a_colon_in_the_second_line_names_no_speaker(self, tmp_path: Path) -> None:
        lines = ["13/02/2026, 10:00 - Ivo: Hi", "13/02/2026, 10:01 - Ana: Hello"]
        outcome = chat(tmp_path, *lines, "13/02/2026, 10:02 - Ivo left", "Note: he may return")
        assert marks(outcome) == ["system_message"]
        assert len(outcome.only.utterances) == 2


@pytest.mark.parametrize("name", ["intercom", "chatwoot", "telegram", "facebook", "whatsapp"])
def test_examples_are_read_without_a_problem(name: str) -> None:
    report = read(EXAMPLES / name).report
    assert (report.problem_count, report.set_aside) == (0, {})


def test_a_message_of_another_type_is_kept(tmp_path: Path) -> None:
    entries: list[dict[str, Any]] = [
        {"sender_name": "Zoe", "timestamp_ms": 1772442060000, "content": "Hi"},
        {"sender_name": "Ana", "timestamp_ms": 1772442070000, "content": {"words": "Hello there"}},
    ]
    outcome = read(write_json(tmp_path / "m.json", {"messages": entries}))
    assert marks(outcome) == ["message_without_text"]
    assert '{"words":"Hello there"}' in to_json(outcome.only).decode()


class TestOtherEnvelopes:
    def test_intercom_lists_with_and_without_parts(self, tmp_path: Path) -> None:
        source = {"body": "<p>Hello</p>", "author": {"type": "lead"}, "delivered_as": "customer_initiated"}
        talk = {"type": "conversation", "id": "1", "source": source}
        outcome = read(write_json(tmp_path / "l.json", {"conversations": [talk, {**talk, "id": "2"}]}))
        assert [one.id for one in outcome.conversations] == ["1", "2"]
        assert outcome.report.set_aside["parts_not_listed"].count == 2
        whole = {**talk, "conversation_parts": {"conversation_parts": []}}
        assert story(read(write_json(tmp_path / "d.json", {"type": "list", "data": [whole]})).only) == ["user: Hello"]

    def test_chatwoot_conversations_webhooks_and_the_names_of_the_dashboard(self, tmp_path: Path) -> None:
        message = {"id": 1, "content": "Hello", "inbox_id": 1, "conversation_id": 8, "message_type": 0}
        logs = {
            "list": {"data": {"payload": [{"id": 8, "messages": [message]}]}},
            "hook": {
                "event": "message_created",
                "content": "Hello",
                "message_type": "incoming",
                "inbox": {"id": 1},
                "conversation": {"id": 8},
            },
            "camel": [{"id": 1, "content": "Hello", "inboxId": 1, "conversationId": 8, "messageType": 0}],
        }
        for name, log in logs.items():
            only = read(write_json(tmp_path / name / "m.json", log)).only
            assert (only.id, story(only)) == ("8", ["user: Hello"]), name


def test_whatsapp_halves_of_the_day_with_a_blank(tmp_path: Path) -> None:
    lines = ["31/12/23, 9:41 p. m. - Ana: Hola", "31/12/23, 9:42 p.\u00a0m. - Beto: Bien"]
    only = read(write(tmp_path / "chat.txt", "\n".join(lines))).only
    assert story(only) == ["unknown:Ana: Hola", "unknown:Beto: Bien"]
    first = only.utterances[0].time
    assert first is not None
    assert first.at == datetime(2023, 12, 31, 21, 41, tzinfo=UTC).timestamp()
