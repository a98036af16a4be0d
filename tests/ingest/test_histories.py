"""Growing histories: calls that are logged with all messages so far become the conversations that they are of."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import convoscope
from convoscope.ingest.discover import find_inputs
from convoscope.ingest.report import ReadReport
from convoscope.ingest.split import cut, read_partition
from support.logs import Outcome, counts, read, story, write, write_json

SYSTEM = {"role": "system", "content": "Be kind."}


def talk(*texts: str) -> list[dict[str, Any]]:
    """User and agent take turns."""
    return [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(texts)]


def log(tmp_path: Path, *records: Any) -> Outcome:
    return read(write(tmp_path / "calls.jsonl", "\n".join(map(json.dumps, records)) + "\n"))


def calls(messages: list[Any], **beside: Any) -> list[Any]:
    """Each request of a conversation, then the whole: prefixes that end before a reply."""
    ends = [place for place, one in enumerate(messages) if one["role"] == "assistant"]
    return [{"messages": messages[:end], **beside} for end in ends] + [{"messages": messages, **beside}]


class TestGrowth:
    def test_only_the_longest_is_a_conversation(self, tmp_path: Path) -> None:
        """Three requests and the whole were four conversations, with 1 + 2 + 3 + 3 turns; now one with 3."""
        outcome = log(tmp_path, *calls([SYSTEM, *talk("a", "b", "c", "d", "e", "f")]))
        assert story(outcome.only) == ["user: a", "assistant: b", "user: c", "assistant: d", "user: e", "assistant: f"]
        assert len(outcome.only.turns) == 3
        assert outcome.report.ignored == {"repeated_history": 3}
        assert outcome.report.inferred["history_merged"].examples == ["calls.jsonl:4 3 records with its beginning"]
        assert (outcome.report.records_seen, outcome.report.records_used) == (4, 4)

    def test_whatever_the_order(self, tmp_path: Path) -> None:
        records = calls(talk("a", "b", "c", "d", "e", "f")) + calls(talk("x", "y", "z", "w"))
        random.Random(4).shuffle(records)
        assert sorted(len(one.timeline) for one in log(tmp_path, *records).conversations) == [4, 6]

    def test_ids_of_calls_differ(self, tmp_path: Path) -> None:
        records = [{"id": f"chatcmpl-{n}", **one} for n, one in enumerate(calls(talk("a", "b", "c", "d")))]
        outcome = log(tmp_path, *records)
        assert outcome.ids == ["chatcmpl-2"]

    def test_with_the_answer_beside_the_request(self, tmp_path: Path) -> None:
        whole = talk("a", "b", "c", "d")
        records = [
            {"messages": whole[:end], "choices": [{"message": {**whole[end], "refusal": None}}]} for end in (1, 3)
        ]
        assert story(log(tmp_path, *records).only) == ["user: a", "assistant: b", "user: c", "assistant: d"]

    def test_tool_calls_are_compared_by_what_they_call(self, tmp_path: Path) -> None:
        function = {"name": "find", "arguments": "{}"}
        call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "index": 0, "function": function}]}
        again = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
        other = {"role": "assistant", "tool_calls": [{"id": "c", "function": {**function, "arguments": '{"n": 1}'}}]}
        answer = {"role": "tool", "tool_call_id": "c", "content": "4"}
        first, longer = [*talk("a"), call], [*talk("a"), again, answer]
        assert len(log(tmp_path, {"messages": first}, {"messages": longer}).conversations) == 1
        different = [*talk("a"), other, answer]
        assert len(log(tmp_path, {"messages": first}, {"messages": different}).conversations) == 2

    def test_content_blocks(self, tmp_path: Path) -> None:
        question = {"role": "user", "content": [{"type": "text", "text": "When?"}]}
        use = {"type": "tool_use", "id": "t", "name": "find", "input": {"b": 1, "a": 2}}
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "May"}]}
        reply = {"role": "assistant", "content": [{**use, "input": {"a": 2, "b": 1}}]}
        first = {"request": {"messages": [question]}, "response": {"role": "assistant", "content": [use]}}
        assert len(log(tmp_path, first, {"request": {"messages": [question, reply, result]}}).conversations) == 1

    def test_items_of_responses(self, tmp_path: Path) -> None:
        ask, reply, more = (
            {"role": role, "content": text} for role, text in (("user", "a"), ("assistant", "b"), ("user", "c"))
        )
        out = [{"type": "message", **reply}]
        thought = {"type": "reasoning", "summary": []}
        records = [{"input": [ask], "output": [thought, *out]}, {"input": [ask, reply, more], "output": out}]
        assert len(log(tmp_path, *records).conversations) == 1

    def test_a_request_whose_answer_was_streamed(self, tmp_path: Path) -> None:
        records = [{"request": one, "response": {"body": "data: {}"}} for one in calls(talk("a", "b", "c"))]
        assert len(log(tmp_path, *records).conversations) == 1

    def test_lists_of_messages(self, tmp_path: Path) -> None:
        records = [one["messages"] for one in calls(talk("a", "b", "c", "d"))]
        assert len(log(tmp_path, *records).conversations) == 1

    def test_an_array(self, tmp_path: Path) -> None:
        outcome = read(write_json(tmp_path / "calls.json", calls(talk("a", "b", "c", "d"))))
        assert outcome.ids == ["calls.json#3"]

    def test_one_id_in_several_files(self, tmp_path: Path) -> None:
        for number, one in enumerate(calls(talk("a", "b", "c", "d"), conversation_id="k-1")):
            write_json(tmp_path / f"call-{number}.json", one)
        assert read(tmp_path).ids == ["k-1"]


class TestNoGrowth:
    """What is alike and yet apart."""

    def test_two_users_who_say_the_same(self, tmp_path: Path) -> None:
        same = {"messages": talk("Hi.", "Hello!")}
        assert len(log(tmp_path, same, same).conversations) == 2

    def test_an_opening_alone_is_nobodys_beginning(self, tmp_path: Path) -> None:
        """One user left after "Hi."; nothing in the file says that calls are logged."""
        assert len(log(tmp_path, {"messages": talk("Hi.")}, {"messages": talk("Hi.", "Hello!")}).conversations) == 2

    def test_a_call_that_failed_is_a_failure(self, tmp_path: Path) -> None:
        failed = {"request": {"messages": talk("Hi.")}, "response": {"error": {"message": "overloaded"}}}
        worked = {"request": {"messages": talk("Hi.")}, "response": {"role": "assistant", "content": "Hello!"}}
        assert len(log(tmp_path, failed, worked).conversations) == 2

    def test_a_greeting_and_a_word(self, tmp_path: Path) -> None:
        greeting = {"role": "assistant", "content": "How can I help?"}
        short, long = [greeting, *talk("Hi.")], [greeting, *talk("Hi.", "Yes?", "No.")]
        assert len(log(tmp_path, {"messages": short}, {"messages": long}).conversations) == 2

    def test_of_two_alike_only_one_goes_on(self, tmp_path: Path) -> None:
        """Two users, one of whom goes on: the beginning of that one is taken in, the other is a conversation."""
        short, long = {"messages": talk("Hi.", "Hello!")}, {"messages": talk("Hi.", "Hello!", "Bye.")}
        assert [len(one.timeline) for one in log(tmp_path, short, short, long).conversations] == [2, 3]

    def test_ids_of_conversations_differ(self, tmp_path: Path) -> None:
        short, long = talk("Hi.", "Hello!"), talk("Hi.", "Hello!", "Bye.")
        outcome = log(tmp_path, {"conversation_id": "a", "messages": short}, {"conversation_id": "b", "messages": long})
        assert outcome.ids == ["a", "b"]

    @pytest.mark.parametrize("name", ["trial", "scenario_id"])
    def test_a_trial_that_broke_off_is_a_failure_of_its_own(self, name: str, tmp_path: Path) -> None:
        short, long = {"messages": talk("a", "b"), name: "1"}, {"messages": talk("a", "b", "c"), name: "2"}
        assert len(log(tmp_path, short, long).conversations) == 2

    def test_another_file(self, tmp_path: Path) -> None:
        write_json(tmp_path / "a.json", {"messages": talk("a", "b")})
        write_json(tmp_path / "b.json", {"messages": talk("a", "b", "c")})
        assert len(read(tmp_path).conversations) == 2

    def test_another_word(self, tmp_path: Path) -> None:
        short, long = {"messages": talk("Hi.", "Hello!")}, {"messages": talk("Hi.", "Hello?", "Bye.")}
        assert len(log(tmp_path, short, long).conversations) == 2

    def test_what_cannot_be_read_is_told_once(self, tmp_path: Path) -> None:
        lines = [json.dumps(one) for one in calls(talk("a", "b", "c", "d"))]
        outcome = read(write(tmp_path / "calls.jsonl", "\n".join([*lines, '{"messages": [{"role": "user"', ""])))
        assert len(outcome.conversations) == 1
        assert outcome.problem.line == 4


class TestRequestRepeated:
    def test_output_that_begins_with_the_input(self, tmp_path: Path) -> None:
        whole = talk("a", "b", "c")
        outcome = log(tmp_path, {"input": {"messages": whole[:1]}, "output": {"messages": whole}})
        assert story(outcome.only) == ["user: a", "assistant: b", "user: c"]
        assert outcome.report.ignored == {"request_repeated": 1}

    def test_items(self, tmp_path: Path) -> None:
        ask, reply = ({"type": "message", "role": role, "content": role} for role in ("user", "assistant"))
        assert len(log(tmp_path, {"input": [ask], "output": [ask, reply]}).only.timeline) == 2


class TestVerdicts:
    """A rating comes after the talk: the last record of a conversation has its label."""

    @pytest.mark.parametrize("before", [{}, {"csat": 1}])
    @pytest.mark.parametrize("more", [(), ("c", "d")])
    def test_it_comes_or_changes(self, before: dict[str, int], more: tuple[str, ...], tmp_path: Path) -> None:
        write_json(tmp_path / "monday.json", {"id": "k-1", "messages": talk("a", "b"), **before})
        write_json(tmp_path / "tuesday.json", {"id": "k-1", "messages": talk("a", "b", *more), "csat": 5})
        outcome = read(tmp_path)
        assert outcome.ids == ["k-1"]
        assert len(outcome.only.timeline) == 2 + len(more)
        assert outcome.only.extras["csat"] == 5
        assert counts(outcome.report.inferred) == {"history_merged": 1, "label_of_last_record": 1}

    def test_the_last_one_by_its_own_time(self, tmp_path: Path) -> None:
        """Newest first: the second line is the older one."""
        records = [
            {"id": "k-1", "messages": talk("a", "b"), "csat": csat, "updated_at": f"2026-11-{day:02d}"}
            for day, csat in ((2, 5), (1, 1))
        ]
        assert log(tmp_path, *records).only.extras["csat"] == 5

    def test_windows_of_a_conversation_that_is_rated_at_its_end(self, tmp_path: Path) -> None:
        """a to d, then c to f, and the same again with a rating: six messages."""
        first, last = talk("a", "b", "c", "d"), talk("c", "d", "e", "f")
        records = [{"conversation_id": "k-1", "messages": messages} for messages in (first, last, last)]
        records[2]["csat"] = 4
        outcome = log(tmp_path, *records)
        assert (len(outcome.only.timeline), outcome.only.extras["csat"]) == (6, 4)

    @pytest.mark.parametrize(
        "fields",
        [
            pytest.param(({"trial": 0}, {"trial": 1}), id="trials"),
            pytest.param(({"user_id": "u"}, {"user_id": "v"}), id="users"),
            pytest.param(({"messages": talk("a", "x")}, {}), id="another word"),
            pytest.param(({"id": "k-2"}, {}), id="another id"),
        ],
    )
    def test_what_keeps_them_apart(self, fields: tuple[dict[str, Any], dict[str, Any]], tmp_path: Path) -> None:
        records = [
            {"id": "k-1", "messages": talk("a", "b"), "reward": reward, **one} for reward, one in enumerate(fields)
        ]
        assert len(log(tmp_path, *records).conversations) == 2

    def test_an_id_that_is_used_again_at_another_time(self, tmp_path: Path) -> None:
        def said(at: float, *texts: str) -> list[dict[str, Any]]:
            return [{**one, "timestamp": at + number} for number, one in enumerate(talk(*texts))]

        monday = {"id": "k-1", "messages": said(1.7e9, "a", "b"), "resolved": False}
        tuesday = {"id": "k-1", "messages": said(1.7e9 + 86_400, "a", "b", "c"), "resolved": True}
        assert len(log(tmp_path, monday, tuesday).conversations) == 2
        goes_on = {"id": "k-1", "messages": said(1.7e9, "a", "b", "c"), "resolved": True}
        assert log(tmp_path, monday, goes_on).only.extras["resolved"] is True

    def test_trials_by_the_names_of_files(self, tmp_path: Path) -> None:
        for number in (0, 1):
            record = {"id": "task-1", "messages": talk("a", "b"), "reward": number}
            write_json(tmp_path / f"trial_{number}" / "run.json", record)
        assert len(read(tmp_path).conversations) == 2

    def test_a_counter_that_two_files_use(self, tmp_path: Path) -> None:
        for number in (0, 1):
            write_json(tmp_path / f"{number}.json", {"id": 7, "messages": talk("a", "b"), "csat": number})
        assert len(read(tmp_path).conversations) == 2


WORD = st.sampled_from(["Hi.", "Yes.", "No.", "Why?", "Tomorrow.", "Hello!"])


@given(
    st.lists(st.lists(WORD, min_size=2, max_size=7), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
    st.booleans(),
)
@settings(deadline=None, max_examples=60)
def test_calls_become_their_conversations(
    tmp_path_factory: pytest.TempPathFactory, texts: list[list[str]], chance: random.Random, is_cut: bool
) -> None:
    """Every call of some conversations, in any order and cut anywhere: what is read is these conversations.

    Each begins with a word of its own, and all but the first call of it has a reply: so nothing is left to a guess.
    """
    conversations = [talk(f"I am {number}.", *words) for number, words in enumerate(texts)]
    records = [one for messages in conversations for one in calls(messages)]
    chance.shuffle(records)
    folder = tmp_path_factory.mktemp("calls")
    path = write(folder / "calls.jsonl", "\n".join(map(json.dumps, records)) + "\n")
    report = ReadReport()
    parts = list(cut(find_inputs([path]).inputs, report, folder, size=200 if is_cut else 10**6))
    given_back = [one.conversation for part in parts for one in read_partition(part, report)]
    grew = any(len(messages) > 3 for messages in conversations)
    openings = 0 if grew else sum(len(messages) >= 2 for messages in conversations)
    assert len(given_back) == len(conversations) + openings
    wholes = sorted(
        [one for one in given_back if len(one.timeline) > 1 or grew], key=lambda one: one.text(one.utterances[0])
    )
    assert [[one.text(utterance) for utterance in one.utterances] for one in wholes] == [
        [one["content"] for one in messages] for messages in conversations
    ]


def test_both_ways_of_reading_agree(tmp_path: Path) -> None:
    """Records of the usual shape and others are taken in alike."""
    usual = calls([SYSTEM, *talk("a", "b", "c", "d", "e", "f")])
    odd = [{**one, "shift": "night"} for one in usual]
    for name, records in (("usual", usual), ("odd", odd)):
        write(tmp_path / f"{name}.jsonl", "\n".join(map(json.dumps, records)) + "\n")
    reading = convoscope.read([tmp_path / "usual.jsonl", tmp_path / "odd.jsonl"])
    first, second = [one.conversation.timeline for one in reading.with_notes()]
    assert first == second
    assert counts(reading.report.inferred) == {"history_merged": 2}
