"""Which fields are proposed as the outcome, with which option."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from convoscope.views.fields import LabelSearch, best_proposal, polarity
from support.chats import agent, chat, user


def proposed(records: Sequence[dict[str, Any]]) -> str:
    search = LabelSearch()
    for number, fields in enumerate(records):
        search.see(chat(user("Hi"), agent("Hello"), id=f"{number}", extras=fields))
    return best_proposal(search.proposals("chat"))


@pytest.mark.parametrize(
    ("records", "text"),
    [
        (
            [{"reward": 1.0}, {"reward": 0.0}, {"reward": 1.0}],
            "`reward` has 1 in 2 and 0 in 1 of 3 chats: --label reward",
        ),
        (
            [{"a": {"resolved": "no"}}, {"a": {"resolved": "yes"}}],
            "`a.resolved` has no in 1 and yes in 1 of 2 chats: --label a.resolved",
        ),
        (
            [{"scores": {"match": {"value": one}}} for one in "CIC"],
            "`scores.match.value` has C in 2 and I in 1 of 3 chats: --label scores.match.value",
        ),
        (
            [{"review": "thumbs up"}, {"review": "thumbs down"}],
            "`review` has thumbs down in 1 and thumbs up in 1 of 2 chats: --label review",
        ),
        (
            [{"stars": 5}, {"stars": 2}],
            "`stars` has numbers from 2 to 5, 4 or more in 1 of 2 chats: --label 'stars >= 4'",
        ),
        (
            [{"score": 9.5}, {"score": 3}],
            "`score` has numbers from 3 to 9.5, 7 or more in 1 of 2 chats: --label 'score >= 7'",
        ),
        (
            [{"churned": False}, {"churned": True}],
            "`churned` has false in 1 and true in 1 of 2 chats. Which is good? "
            "--label 'churned = false' or --label 'churned = true'",
        ),
        (
            [{"status": "open"}, {"status": "closed"}, {"status": "closed"}],
            "`status` has closed in 2 and open in 1 of 3 chats. Which is good? "
            "--label 'status = closed' or --label 'status = open'",
        ),
        ([{"solved": True}, {}], "`solved` has true in 1 of 2 chats: --label solved"),
        ([{"solved": True}, *[{}] * 10], ""),  # 1 of 11 is less than a tenth
        (
            [{"rating": one} for one in ("very bad", "poor", "ok", "good", "excellent")],
            "`rating` has excellent in 1, good in 1, ok in 1, poor in 1 and other values in 1 of 5 chats: "
            "--label 'rating in excellent, good'",
        ),
        (
            [{"csat": one} for one in ("4/5", "2/5", "5/5")],
            "`csat` has 2/5 in 1, 4/5 in 1 and 5/5 in 1 of 3 chats: --label 'csat in 4/5, 5/5'",
        ),
        (
            [{"goal_reached": "ja"}, {"goal_reached": "nein"}],
            "`goal_reached` has ja in 1 and nein in 1 of 2 chats: --label 'goal_reached = ja'",
        ),
        (
            [{"success": False}, {"success": "unknown"}],
            "`success` has false in 1 and unknown in 1 of 2 chats: --label success",
        ),
        (
            [{"resolved": True}, {"resolved": "partially"}],
            "`resolved` has partially in 1 and true in 1 of 2 chats: --label resolved",
        ),
        (
            [{"rating": "a"}, {"rating": "zz"}],
            "`rating` has a in 1 and zz in 1 of 2 chats. Which is good? --label 'rating = a' or --label 'rating = zz'",
        ),
        # 1 is reached by one of twelve, fewer than a tenth: half way up then; 6 to 11 elevenths are 0.5 or more
        (
            [{"reward": number / 11} for number in range(12)],
            "`reward` has numbers from 0 to 1, 0.5 or more in 6 of 12 chats: --label 'reward >= 0.5'",
        ),
        (
            [{"reward": number} for number in (0, 0.1, 0.5, 1)],
            "`reward` has numbers from 0 to 1, 1 or more in 1 of 4 chats: --label 'reward >= 1'",
        ),
        ([{"feedback": "blue"}, {"feedback": "red"}], ""),
        ([{"label": "billing"}, {"label": "refund"}], ""),
        ([{"resolved": True}, {"resolved": True}], "`resolved` has true in 2 of 2 chats: --label resolved"),
    ],
)
def test_what_real_logs_have(records: Sequence[dict[str, Any]], text: str) -> None:
    assert proposed(records) == text


@pytest.mark.parametrize(
    "fields",
    [
        ({"options": {"allow_interruptions": True}}, {"options": {"allow_interruptions": False}}),
        ({"config": {"success_message": True}}, {"config": {"success_message": False}}),
        ({"target": "yes"}, {"target": "no"}),
        ({"expected_outcome": "pass"}, {"expected_outcome": "fail"}),
        ({"ground_truth": "correct"}, {"ground_truth": "incorrect"}),
        ({"answer": "yes"}, {"answer": "no"}),
        ({"stream": True}, {"stream": False}),
        ({"feature_flags": {"resolved_v2": True}}, {"feature_flags": {"resolved_v2": False}}),
        ({"vip": "yes"}, {"vip": "no"}),
        ({"consent": True}, {"consent": False}),
        ({"tokens": 12}, {"tokens": 14}),
        ({"choice": "A"}, {"choice": "C"}),
        ({"model": "passed"}, {"model": "failed"}),
    ],
)
def test_never_a_setting_nor_an_expected_answer(fields: tuple[dict[str, Any], dict[str, Any]]) -> None:
    assert proposed(fields) == ""


@pytest.mark.parametrize(
    ("name", "worth"),
    [
        ("resolved", "good"),
        ("metadata.task_completed", "good"),
        ("not_resolved", "bad"),
        ("voicemail_reached", "bad"),
        ("escalated", "bad"),
        ("csat", "rating"),
        ("vip", "unclear"),
    ],
)
def test_what_true_is_worth(name: str, worth: str) -> None:
    assert polarity(name) == worth
