"""Conversations of a run, each with its own notes, scores and what they come to, in the order asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Conversation
from convoscope.metrics import CONVERSATION, COUNT, HIGHER, Observation, TenPoints, measured, metric
from convoscope.runs.conversations import KeptConversation, first_conversations, records
from convoscope.runs.make import make_run as score
from convoscope.runs.run import Run
from support.chats import chat, user
from support.generated import FEW, write_lines
from support.generated import chat as generated_chat
from support.graded import graded, turn_grades, turned

COUNTED = 230
"""More than two batches of a hundred."""


def only(run: Run, number: int = 0) -> KeptConversation:
    (record,) = records(run, [number])
    return record


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("records")
    logs = write_lines(folder / "chats.jsonl", range(COUNTED))
    return score(logs, metrics=[*FEW, "interaction.selectivity"], out=folder / "run", workers=1)


class TestTheOrder:
    @pytest.mark.parametrize("numbers", [[], [0], [7, 3, 5], [3, 5, 7], list(range(COUNTED))[::-1]])
    def test_is_the_one_asked_for(self, run: Run, numbers: list[int]) -> None:
        assert [one.number for one in records(run, numbers)] == numbers

    def test_goes_on_over_batches(self, run: Run) -> None:
        # 101 and 201 are the first of the second and third batch
        numbers = [*range(1, COUNTED, 2), *range(0, COUNTED, 2)]
        ids = [one.conversation.id for one in records(run, numbers)]
        assert ids == [f"chat-{number:05d}" for number in numbers]

    def test_the_same_may_be_asked_for_twice(self, run: Run) -> None:
        first, other, again = records(run, [4, 9, 4])
        assert first == again
        assert other.number == 9

    def test_what_is_held_may_be_asked_for_twice(self, run: Run) -> None:
        assert len(list(first_conversations(run, 10))) == 10  # they are held from now on
        first, other, again = records(run, [4, 9, 4])
        assert first == again
        assert other.number == 9

    def test_nothing_is_read_before_it_is_wanted(self, run: Run) -> None:
        assert next(records(run, range(COUNTED))).number == 0


class TestEachHasItsOwn:
    def test_conversation(self, run: Run) -> None:
        numbers = [201, 4, 77]
        kept = list(run.conversations())
        assert [one.conversation for one in records(run, numbers)] == [kept[number] for number in numbers]

    def test_scores(self, run: Run) -> None:
        for one in records(run, [150, 2, 33]):
            expected = list(run.scores(conversation=one.conversation.id))
            assert list(one.scores) == expected
            assert expected
            assert {score.conversation for score in one.scores} == {one.conversation.id}

    def test_every_metric_comes_to_something(self, run: Run) -> None:
        # A figure over a group says nothing of a single conversation.
        keys = {one.metric for one in run.summary.declared if one.observes != "group"}
        for one in records(run, [150, 2, 33]):
            assert {reduced.key for reduced in one.reduced} == keys

    def test_a_folder_of_both_says_the_same_as_one_by_one(self, run: Run) -> None:
        assert list(records(run, [8, 120])) == [only(run, 8), only(run, 120)]

    def test_notes(self, tmp_path: Path) -> None:
        def line(number: int, **facts: Any) -> str:
            return json.dumps({**generated_chat(number), **facts}) + "\n"

        (tmp_path / "x.jsonl").write_text(line(1) + line(2, unheard_of=1) + line(4))
        run = score(tmp_path / "x.jsonl", metrics=["turns"], out=tmp_path / "run", workers=1)
        found = {one.conversation.id: one.notes for one in records(run, [2, 1, 0])}
        for id, notes in found.items():
            assert list(notes) == run.notes(id)
        codes = {id: {note.code for note in notes} for id, notes in found.items()}
        extra = codes["chat-00002"] - codes["chat-00001"]
        assert len(extra) == 1
        assert "unheard_of" in extra.pop()


class TestWhatMetricsComeTo:
    def test_turns_are_counted_with_and_without_a_value(self, tmp_path: Path) -> None:
        run = turned(tmp_path, "words", {"a": [1.0, None, 3.0, None, 5.0]})
        (reduced,) = only(run).reduced
        assert (reduced.key, reduced.unit, reduced.judge) == ("test.words", "points", "(computed)")
        assert (reduced.status, reduced.value, reduced.n, reduced.skipped) == ("measured", 3.0, 3, 2)
        assert (reduced.reason, reduced.detail) == ("", "")

    def test_where_there_is_no_value_it_says_why(self, tmp_path: Path) -> None:
        (reduced,) = only(turned(tmp_path, "words", {"a": [None]})).reduced
        assert (reduced.status, reduced.value, reduced.reason) == ("not_applicable", None, "no_grade")

    def test_a_metric_that_broke_says_how(self, tmp_path: Path) -> None:
        # No grades at all: the metric asks for them and raises.
        (reduced,) = only(graded(tmp_path, {"a": {}}, [turn_grades("words")])).reduced
        assert (reduced.status, reduced.reason, reduced.detail) == ("error", "metric_raised", "KeyError: 'words'")

    def test_points_of_ten(self, tmp_path: Path) -> None:
        @metric(
            "test.waits",
            version=1,
            observes=CONVERSATION,
            unit=COUNT,
            better=HIGHER,
            variant="half",
            ten=TenPoints(0, 4),
        )
        def waits(conversation: Conversation) -> Observation:
            """How many?"""
            return measured(conversation, 1)

        (reduced,) = only(score([chat(user("hi"))], metrics=[waits], out=tmp_path / "run", workers=1)).reduced
        assert (reduced.key, reduced.value, reduced.ten) == ("test.waits@half", 1.0, 2.5)  # 10 × 1 ÷ 4


class TestOneIdForSeveral:
    @pytest.fixture
    def twins(self, tmp_path: Path) -> Run:
        """Three conversations called `same`, with one, two and three words, and one called `other`."""
        conversations = [chat(user(text), id="same") for text in ("one", "one two", "one two three")]
        conversations.append(chat(user("one two three four"), id="other"))
        return score(conversations, metrics=["turns", "tools.calls"], out=tmp_path / "run", workers=1)

    def test_each_is_told_under_a_name_of_its_own(self, twins: Run) -> None:
        found = [one.conversation.id for one in records(twins, [0, 1, 2, 3])]
        assert sorted(found) == ["other", "same", "same~2", "same~3"]

    def test_and_has_its_own_scores(self, twins: Run) -> None:
        for one in records(twins, [3, 2, 1, 0]):
            assert {score.conversation for score in one.scores} == {one.conversation.id}
            assert twins.number(one.conversation.id) == one.number
            assert twins.conversation(one.conversation.id) == one.conversation

    def test_in_the_order_in_which_they_were_given(self, twins: Run) -> None:
        texts = {one.conversation.id: one.conversation.turns[0].user_text for one in records(twins, [0, 1, 2, 3])}
        assert texts == {
            "same": "one",
            "same~2": "one two",
            "same~3": "one two three",
            "other": "one two three four",
        }
