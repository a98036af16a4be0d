"""Invented logs of in-house formats: what the suggested mapping reads is what was said, by whom, in that order.

Each expectation was written by hand from the log above it. A log of which this cannot be known is refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import convoscope
from convoscope.errors import InputError
from convoscope.ingest.mapping.declaration import Mapping, parse_mapping
from convoscope.ingest.mapping.suggestion import suggested_map
from support.in_house_logs import ASK, READ, REPLY, InHouse, lines, turns
from support.logs import story


class NotKnown(NamedTuple):
    """A log of which it cannot be known who says what, and what the refusal says."""

    name: str
    file: str
    content: str
    refusal: str


REFUSED = [
    NotKnown(
        "real people",
        "people.jsonl",
        lines({"chat": turns("name", "text", "Ann Smith", "Tom Baker")}),
        "who speaks: Ann Smith 2, Tom Baker 2",
    ),
    NotKnown("numbers for speakers", "spk.jsonl", lines({"t": turns("speaker", "text", "SPK_0", "SPK_1")}), "SPK_0 2"),
    NotKnown(
        "a template of a prompt",
        "prompt.json",
        json.dumps(
            {
                "prompt": [
                    {"role": "user", "content": "Answer this: {question}"},
                    {"role": "assistant", "content": "The answer is {answer}."},
                ]
            }
        ),
        "templates of prompts",
    ),
    NotKnown(
        "two lists of what was said",
        "versions.jsonl",
        lines(
            {
                "raw": turns("role", "text", "user", "bot"),
                "clean": [{**one, "text": f"Now {one['text']}"} for one in turns("role", "text", "user", "bot")],
            }
        ),
        "elsewhere",
    ),
    NotKnown(
        "only examples of a prompt",
        "shots.json",
        json.dumps({"examples": turns("role", "content", "user", "assistant")}),
        "was not found",
    ),
    NotKnown(
        "lines of a program",
        "app.jsonl",
        lines(
            {"level": "INFO", "logger": "client", "message": "Connecting to the server"},
            {"level": "INFO", "logger": "agent", "message": "The loop has started"},
            {"level": "WARN", "logger": "client", "message": "The connection is slow"},
            {"level": "INFO", "logger": "agent", "message": "The loop has ended"},
        ),
        "lines of a program's log",
    ),
    NotKnown(
        "a user of a desk beside contact and bot",
        "desk.jsonl",
        lines(
            {
                "msgs": [
                    {"by": "user", "text": "I am Maria from the desk."},
                    {"by": "bot", "text": "Maria takes over."},
                    {"by": "user", "text": "How can I help you?"},
                    *turns("by", "text", "contact", "user"),
                ]
            }
        ),
        "who says 4 of 7 texts is not known",
    ),
    NotKnown(
        "only a summary",
        "summary.json",
        json.dumps({"summary": [{"role": "user", "text": ASK}, {"role": "agent", "text": REPLY}]}),
        "was not found",
    ),
    NotKnown(
        "a questionnaire",
        "survey.json",
        json.dumps({"survey": [{"question": "How happy are you?", "answer": "I am very happy."}] * 3}),
        "was not found",
    ),
    NotKnown(
        "who is no bot may be a colleague",
        "bots.jsonl",
        lines({"m": [{"is_bot": False, "text": ASK}, {"is_bot": True, "text": REPLY}]}),
        "was not found",
    ),
    NotKnown(
        "settings in a text",
        "config.jsonl",
        lines({"id": 1, "config": "user: ann\nagent: default agent of us\nmode: fast\nlevel: 3\nhost: example.org"}),
        "was not found",
    ),
    NotKnown(
        "agents that talk to each other",
        "team.jsonl",
        lines(
            {"t": turns("role", "text", "user", "assistant", agent_name=lambda n: "planner" if n < 2 else "searcher")}
        ),
        "several agents are spoken to, such as 'planner', 'searcher'",
    ),
    NotKnown(
        "a tree of answers",
        "tree.jsonl",
        lines(
            {"t": turns("role", "text", "user", "bot", id=lambda n: f"m{n}", parent_id=lambda n: "m0" if n else None)}
        ),
        "branches",
    ),
]


def made(folder: Path, log: InHouse | NotKnown) -> tuple[Path, str]:
    path = folder / log.file
    path.write_text(log.content)
    return path, suggested_map([path])


@pytest.mark.parametrize("log", READ, ids=lambda log: log.name)
def test_what_was_said_is_read(tmp_path: Path, log: InHouse) -> None:
    path, toml = made(tmp_path, log)
    (tmp_path / "map.toml").write_text(toml)
    read = convoscope.read(path, format="map:map", readers_from=tmp_path / "map.toml")
    assert [story(one) for one in read] == log.said, toml


@pytest.mark.parametrize("log", REFUSED, ids=lambda log: log.name)
def test_what_cannot_be_known_is_refused(tmp_path: Path, log: NotKnown) -> None:
    with pytest.raises(InputError, match=log.refusal):
        made(tmp_path, log)


def mapping(folder: Path, *messages: dict[str, Any], **conversation: Any) -> Mapping:
    path = folder / "log.jsonl"
    path.write_text(lines({**conversation, "turns": messages}))
    return parse_mapping(suggested_map([path]).encode(), "map.toml")


class TestTimes:
    """A time is read only where its unit is clear: a wrong one is a wrong latency."""

    def test_milliseconds_by_name(self, tmp_path: Path) -> None:
        made = mapping(tmp_path, *turns("role", "text", "user", "bot", offset_ms=lambda n: 1500 * n))
        assert (made.message.time, made.message.time_unit) == ("offset_ms", "ms")

    def test_seconds_by_their_size(self, tmp_path: Path) -> None:
        """Four seconds between two messages; as milliseconds nobody could read them."""
        made = mapping(tmp_path, *turns("role", "text", "user", "bot", start=lambda n: 4.5 * n))
        assert (made.message.time, made.message.time_unit) == ("start", None)

    def test_a_number_that_may_be_either(self, tmp_path: Path) -> None:
        """3000 may be three seconds or fifty minutes."""
        made = mapping(tmp_path, *turns("role", "text", "user", "bot", offset=lambda n: 3000 * n))
        assert made.message.time is None
        assert '# time = "offset"  # a number without a unit: add time_unit' in (
            suggested_map([tmp_path / "log.jsonl"])
        )

    def test_when_it_was_changed_is_not_when_it_was_said(self, tmp_path: Path) -> None:
        day = "2026-01-0{}T10:00:00Z".format
        both = {"updated_at": lambda n: day(9 - n), "sent_at": lambda n: day(1 + n)}
        assert mapping(tmp_path, *turns("role", "text", "user", "bot", **both)).message.time == "sent_at"
        changed = turns("role", "text", "user", "bot", updated_at=lambda n: day(9 - n))
        assert mapping(tmp_path, *changed).message.time is None


def test_how_it_ended(tmp_path: Path) -> None:
    """Minutes are no seconds: that duration is not taken."""
    ended = {"completed": True, "disconnect_reason": "customer_hangup", "duration_seconds": 61.5, "duration": 1.025}
    outcome = mapping(tmp_path, *turns("role", "text", "user", "bot"), **ended).outcome
    assert (outcome.completed, outcome.ended_reason, outcome.duration) == (
        "completed",
        "disconnect_reason",
        "duration_seconds",
    )


def test_who_calls_is_taken_from_the_call(tmp_path: Path) -> None:
    call = {"name": "toggle_wifi", "arguments": {}}
    chat = turns("role", "text", "user", "assistant")
    chat[0]["tool_calls"], chat[1]["tool_calls"] = [{**call, "requestor": "user"}], [{**call, "requestor": "assistant"}]
    assert mapping(tmp_path, *chat).tool_call.caller == "requestor"


def test_what_only_sounds_like_an_annotation(tmp_path: Path) -> None:
    """`contact` ends in act, the state of a machine is a word, `requested_at` is a time."""
    more = {
        "contact": lambda n: "by mail",
        "old_state": lambda n: "listening",
        "requested_at": lambda n: 1767348000 + n,
    }
    message = mapping(tmp_path, *turns("role", "text", "user", "bot", **more)).message
    assert (message.act, message.state, message.requested) == (None, None, None)
