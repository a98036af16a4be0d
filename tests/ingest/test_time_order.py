"""The order of messages by their times."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.ingest.time_order import TimedMessage, in_list, in_rows
from support.logs import counts, read, story, write_lines


def turns(*times: float | None, file: str = "") -> list[TimedMessage]:
    return [TimedMessage(("user", "assistant")[place % 2], at, file) for place, at in enumerate(times)]


@pytest.mark.parametrize(
    ("times", "is_reversed"),
    [
        ((9, 7, 5), True),
        ((9, 7, 7, 5), True),
        ((9, None, 7, 5), True),
        ((5, 7, 9), False),
        ((9, 5), False),  # a question, and a reply by a clock that is behind
        ((10, 8, 20, 18), False),  # the clock of the agent is behind
        ((7, 7, 7), False),
        ((9, None, None, None, 5), False),
    ],
)
def test_a_list_is_turned_round_where_all_times_descend(times: tuple[float | None, ...], is_reversed: bool) -> None:
    ordered = in_list(turns(*times))
    assert list(ordered.order) == (list(range(len(times)))[::-1] if is_reversed else list(range(len(times))))
    assert ordered.repaired == ("newest_first" if is_reversed else "")


def test_a_reply_before_its_question() -> None:
    assert list(in_list([TimedMessage("assistant", 7.0), TimedMessage("user", 5.0)]).order) == [1, 0]


def test_a_system_prompt_stays_first() -> None:
    assert list(in_list([TimedMessage("system", None), *turns(9, 7, 5)]).order) == [0, 3, 2, 1]


def test_rows_of_one_file_are_sorted_where_a_speaker_goes_back_twice() -> None:
    shuffled = [TimedMessage("user", at) for at in (1.0, 7.0, 3.0, 9.0, 5.0)]
    assert list(in_rows(shuffled).order) == [0, 2, 4, 1, 3]
    clock_set = [TimedMessage("user", at) for at in (1.0, 7.0, 3.0, 9.0)]
    assert list(in_rows(clock_set).order) == [0, 1, 2, 3]


def test_files_in_order_are_merged() -> None:
    ordered = in_rows([*turns(5, 8, file="a"), *turns(1, 6, file="b")])
    assert (list(ordered.order), ordered.repaired) == ([2, 0, 3, 1], "sorted_by_time")


@given(st.lists(st.none() | st.integers(0, 9), max_size=8), st.lists(st.sampled_from("ab"), min_size=8, max_size=8))
def test_nothing_is_lost(times: list[float | None], files: list[str]) -> None:
    messages = [TimedMessage("user", at, file) for at, file in zip(times, sorted(files), strict=False)]
    assert sorted(in_rows(messages).order) == list(range(len(messages)))
    assert sorted(in_list(messages).order) == list(range(len(messages)))


def test_it_is_reported(tmp_path: Path) -> None:
    texts = [("assistant", "d", 40), ("user", "c", 30), ("assistant", "b", 20), ("user", "a", 10)]
    messages = [{"role": role, "content": text, "timestamp": 1.8e9 + at} for role, text, at in texts]
    outcome = read(write_lines(tmp_path / "a.jsonl", {"messages": messages}))
    assert story(outcome.only) == ["user: a", "assistant: b", "user: c", "assistant: d"]
    assert counts(outcome.report.repaired) == {"newest_first": 1}
