"""What is known beside a conversation: kinds, versions, users; and what only comes of it."""

from __future__ import annotations

from typing import Any

import pytest

from convoscope.conversation import Conversation, Source
from convoscope.views.background import background_of, is_version


def conversation(source: Source | None = None, **extras: Any) -> Conversation:
    return Conversation(id="c1", extras=extras, source=source or Source())


@pytest.mark.parametrize(
    ("extras", "kinds"),
    [
        ({"intent": "faq"}, {"intent": "faq"}),
        ({"metadata": {"intent": "faq"}}, {"intent": "faq"}),
        ({"customer": {"tier": "gold"}}, {"customer.tier": "gold"}),
        ({"is_new": True, "difficulty": 5}, {"is_new": "true", "difficulty": "5"}),
        ({"tags": ["vip", "de"]}, {"tags vip": "yes", "tags de": "yes"}),
        ({"header": ["Topic: refund"]}, {"topic": "refund"}),
        ({"tags": ["refund", "resolved"]}, {"tags refund": "yes"}),
        ({"goal": "cancel"}, {"goal": "cancel"}),
        ({"goal": "failed"}, {}),
        ({"resolved": True, "csat": 4, "outcome": "won", "status": "open"}, {}),
        ({"turn_count": 9, "ended_by": "user", "sentiment": "bad", "total_tokens": 900}, {}),
        ({"notes": "a text that is far longer than any kind of conversation ever was, whatever it says"}, {}),
        ({"temp": 0.7}, {"temp": "0.7"}),
        ({"share": 0.2512343, "nothing": None, "empty": ""}, {}),
    ],
)
def test_kinds(extras: dict[str, Any], kinds: dict[str, str]) -> None:
    assert background_of(conversation(**extras)).kinds == kinds


@pytest.mark.parametrize("name", ["version", "agentVersion", "prompt_version", "release", "build", "variant", "ab_arm"])
def test_versions_of_the_agent(name: str) -> None:
    assert is_version(name)


@pytest.mark.parametrize("name", ["app_version", "schemaVersion", "log_version", "intent", "os_build", "versions_seen"])
def test_versions_of_something_else(name: str) -> None:
    assert not is_version(name)


def test_a_version_goes_by_the_last_word_of_its_path() -> None:
    assert background_of(conversation(experiment={"promptVersion": 7})).versions == {"prompt_version": "7"}


@pytest.mark.parametrize(
    "extras",
    [
        {"user_id": "u7"},
        {"metadata": {"customerId": "u7"}},
        {"caller": {"phoneNumber": "u7"}},
        {"customer": {"id": "u7"}},
        {"user": "u7"},
    ],
)
def test_users(extras: dict[str, Any]) -> None:
    assert background_of(conversation(**extras)).user == "u7"


@pytest.mark.parametrize("extras", [{"user_id": "anonymous"}, {"agent_id": "a1"}, {"user": {"plan": "pro"}}, {}])
def test_nobody(extras: dict[str, Any]) -> None:
    assert background_of(conversation(**extras)).user == ""


def test_the_file_and_its_folders() -> None:
    source = Source(files=("a.jsonl",), record="2026/refund/a.jsonl:3")
    assert background_of(conversation(source)).kinds == {"file": "a.jsonl", "folder": "refund", "folder above": "2026"}


@pytest.mark.parametrize("date", ["2026-11-17", "2026-11-17T08:00:00Z"])
def test_when_it_began(date: str) -> None:
    """The 17th of November 2026 is a Tuesday of week 47."""
    kinds = background_of(conversation(created_at=date)).kinds
    assert (kinds["day"], kinds["week"], kinds["month"]) == ("2026-11-17", "2026-W47", "2026-11")


def test_a_date_that_is_none() -> None:
    assert "day" not in background_of(conversation(created_at="2026-13-45")).kinds


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("2026-03-01T23:30:00-05:00", "2026-03-02"),
        ("2026-03-01T00:30:00+01:00", "2026-02-28"),
        ("2026-03-01T23:30:00Z", "2026-03-01"),
        ("2026-03-01T23:30:00", "2026-03-01"),
        ("2026-03-01", "2026-03-01"),
        ("2026-03-01, late", "2026-03-01"),
    ],
)
def test_days_are_those_of_utc(written: str, day: str) -> None:
    assert background_of(conversation(created_at=written)).kinds["day"] == day
