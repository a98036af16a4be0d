"""Histories that are cut to their last messages, or whose instructions change: one conversation is one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.logs import Outcome, read, story, write

TURNS = ["Where is it?", "On its way.", "When?", "Tomorrow.", "Where to?", "To Rome.", "Thanks.", "Welcome."]


def talk(name: str = "", turns: int = len(TURNS)) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[n % 2], "content": f"{text}{name}"} for n, text in enumerate(TURNS[:turns])]


def instructions(number: int) -> dict[str, str]:
    return {"role": "system", "content": f"It is 10:0{number} o'clock."}


def windows(messages: list[dict[str, str]], most: int | None = None) -> list[list[dict[str, str]]]:
    """What each call sends: all messages so far, or the last of them, after instructions with the time."""
    ends = range(1, len(messages), 2)
    return [[instructions(end), *messages[max(0, end - most) if most else 0 : end]] for end in ends]


def calls(messages: list[dict[str, str]], most: int | None = None) -> list[Any]:
    return [
        {"request": {"messages": sent}, "response": {"choices": [{"message": messages[2 * number + 1]}]}}
        for number, sent in enumerate(windows(messages, most))
    ]


def log(tmp_path: Path, *records: Any) -> Outcome:
    return read(write(tmp_path / "calls.jsonl", "\n".join(map(json.dumps, records)) + "\n"))


WHOLE = [f"{('user', 'assistant')[n % 2]}: {text}" for n, text in enumerate(TURNS)]


class TestInstructions:
    def test_a_time_in_the_system_prompt(self, tmp_path: Path) -> None:
        """Two chats of four calls were eight conversations."""
        outcome = log(tmp_path, *calls(talk()), *calls(talk(" Two.")))
        assert [len(one.utterances) for one in outcome.conversations] == [8, 8]
        assert story(outcome.conversations[0]) == WHOLE

    def test_context_before_each_question(self, tmp_path: Path) -> None:
        messages = talk()
        records = [{"messages": [*messages[:end], instructions(end), *messages[end : end + 2]]} for end in (0, 2, 4, 6)]
        assert len(log(tmp_path, *records).conversations) == 1


class TestWindows:
    @pytest.mark.parametrize("most", [3, 4, 5])
    def test_calls_with_the_last_messages(self, tmp_path: Path, most: int) -> None:
        outcome = log(tmp_path, *calls(talk(), most), *calls(talk(" Two."), most))
        assert [len(one.utterances) for one in outcome.conversations] == [8, 8]
        assert story(outcome.conversations[0]) == WHOLE
        assert outcome.report.same["merged"].count == 6

    def test_requests_of_one_conversation(self, tmp_path: Path) -> None:
        """The last request is not answered in the log: seven messages."""
        outcome = log(tmp_path, *({"conversation_id": "c", "messages": sent} for sent in windows(talk(), 3)))
        assert story(outcome.only) == WHOLE[:7]

    def test_other_ids_are_other_conversations(self, tmp_path: Path) -> None:
        records = [{"conversation_id": f"c{n}", "messages": sent} for n, sent in enumerate(windows(talk(), 5))]
        outcome = log(tmp_path, *records)
        assert len(outcome.conversations) == 4
        assert outcome.report.same["overlap"].count == 1  # the fourth begins with three messages of the third

    def test_other_labels_are_other_conversations(self, tmp_path: Path) -> None:
        records = [{**one, "resolved": n % 2 == 0} for n, one in enumerate(calls(talk(), 3))]
        assert len(log(tmp_path, *records).conversations) == 4

    def test_two_that_go_on_alike(self, tmp_path: Path) -> None:
        """Two records go on with the same end: which is the conversation is not known."""
        first, second = calls(talk(), 3)[1:3]
        again = {**second, "response": {"choices": [{"message": {"role": "assistant", "content": "To Paris."}}]}}
        outcome = log(tmp_path, first, second, again)
        assert len(outcome.conversations) == 3
        assert outcome.report.same["overlap"].count == 2

    def test_a_question_and_its_answer_in_chats(self, tmp_path: Path) -> None:
        """Chats that do not say that they are calls: one that ends as another begins is reported, not joined."""
        messages = talk()
        outcome = log(tmp_path, {"messages": messages[:4]}, {"messages": messages[2:6]})
        assert len(outcome.conversations) == 2
        assert outcome.report.same["overlap"].count == 1
