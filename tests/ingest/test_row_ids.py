"""Single messages whose ids say less than they seem to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from convoscope.ingest.keyed_records import RowKeys
from support.logs import Outcome, read, write_lines


def rows(number: int, **fields: Any) -> list[dict[str, Any]]:
    """A question and its answer."""
    asked, said = f"Where is order {number}?", f"Order {number} is on its way."
    return [{"role": "user", "content": asked, **fields}, {"role": "assistant", "content": said, **fields}]


def sizes(outcome: Outcome) -> list[int]:
    return [len(one.utterances) for one in outcome.conversations]


def filled(keys: Sequence[str | None]) -> list[str | None]:
    rows = RowKeys(keys)
    return [rows.of(key) for key in keys]


class TestIdsOfTheFirstRow:
    def test_the_rows_below_belong_to_it(self) -> None:
        assert filled(["a", None, None, "b", None]) == ["a", "a", "a", "b", "b"]

    def test_an_id_that_is_missing_here_and_there_is_not_guessed(self) -> None:
        for keys in (["a", "a", None, "b", "b"], [None, "a", None, None], ["a", None, "b", "c"]):
            assert filled(keys) == keys

    def test_a_table(self, tmp_path: Path) -> None:
        lines = [f"{f'c{n}' if role == 'user' else ''},{role},hello {n}" for n in range(3) for role in ("user", "bot")]
        (tmp_path / "a.csv").write_text("conversation_id,role,content\n" + "\n".join(lines) + "\n")
        assert sizes(read(tmp_path)) == [2, 2, 2]


class TestOneIdForSeveral:
    def test_customers_with_the_same_numbers(self, tmp_path: Path) -> None:
        records = [row for n in range(3) for row in rows(n, conversation_id="1", customer_id=f"k{n}")]
        assert sizes(read(write_lines(tmp_path / "a.jsonl", *records))) == [2, 2, 2]

    def test_an_owner_that_some_rows_lack_separates_nothing(self, tmp_path: Path) -> None:
        question, answer = rows(1, conversation_id="1")
        records = [{**question, "customer_id": "k"}, answer]
        assert sizes(read(write_lines(tmp_path / "a.jsonl", *records))) == [2]

    def test_files_that_count_by_themselves(self, tmp_path: Path) -> None:
        for n in range(2):
            write_lines(tmp_path / f"tenant{n}" / "chat.jsonl", *rows(n, conversation_id="1"))
        assert sizes(read(tmp_path)) == [2, 2]

    def test_one_conversation_in_two_files(self, tmp_path: Path) -> None:
        """An id of its own joins; so does a counter where both files hold one side each."""
        for key in ("c-17-a", "1"):
            question, answer = rows(1, conversation_id=key)
            write_lines(tmp_path / key / "a.jsonl", question)
            write_lines(tmp_path / key / "b.jsonl", answer)
            assert sizes(read(tmp_path / key)) == [2]


class TestVersionsOfAMessage:
    def test_an_edited_message_is_said_once(self, tmp_path: Path) -> None:
        question, answer = rows(1, conversation_id="c")
        typo = {**question, "content": "Where is ordr 1?", "message_id": "m1"}
        right = {**question, "message_id": "m1", "edited": True}
        assert sizes(read(write_lines(tmp_path / "a.jsonl", typo, right, {**answer, "message_id": "m2"}))) == [2]

    def test_a_text_that_goes_on_is_said_once(self, tmp_path: Path) -> None:
        question, answer = rows(1, conversation_id="c")
        states = [{**answer, "message_id": "m2", "content": answer["content"][:end]} for end in (5, 12, 99)]
        outcome = read(write_lines(tmp_path / "a.jsonl", {**question, "message_id": "m1"}, *states))
        assert [one.meant() for one in outcome.only.utterances] == [question["content"], answer["content"]]

    def test_one_id_of_two_messages(self, tmp_path: Path) -> None:
        """Nothing says that the second replaces the first."""
        records = [{**row, "role": "user", "message_id": "m1"} for row in rows(1, conversation_id="c")]
        assert sizes(read(write_lines(tmp_path / "a.jsonl", *records))) == [2]


def test_two_people_before_a_reply(tmp_path: Path) -> None:
    from convoscope.views.user_turns import user_turns

    messages = [
        {"role": "user", "name": "Ann", "content": "Where do we eat?"},
        {"role": "user", "name": "Bob", "content": "I want pizza."},
        {"role": "assistant", "content": "Pizza, then."},
    ]
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": "c", "messages": messages}))
    (conversation,) = read(tmp_path).conversations
    assert [turn.reply for turn in user_turns(conversation)] == ["yes"]
