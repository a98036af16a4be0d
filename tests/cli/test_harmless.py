"""A log prints no line of its own, commands no CI server and steers no terminal, by whatever command it is shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from convoscope.harmless import clean, one_line
from support.command_line import Ended
from support.command_line import convoscope as command

FORGED = "forged line"
EVIL = (
    f"x\n{FORGED}\r\n::error::{FORGED}\r{FORGED}\u2028{FORGED}\n  ::warning file=a::{FORGED}\n"
    "##[error]a ##vso[task.complete]b ##teamcity[c] \x1b[2J\x1b]0;title\x07 \x9b31m \u202egnp.exe\u2066 \x00"
)


def assert_harmless(ended: Ended) -> None:
    for line in (ended.out + ended.err).split("\n"):
        # What was said in several lines may be shown so, but set in.
        assert not line.startswith(FORGED), line
        assert not line.lstrip().startswith(("::error::", "::warning")), line
        assert not re.search(r"##(vso|teamcity)?\[", line), line
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", line), line


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two chats, a record that cannot be read, and a file of unknown fields, each of them full of it."""
    folder = tmp_path_factory.mktemp("evil") / "logs"
    folder.mkdir()
    chats = [
        {
            "id": f"::error::{number}{EVIL}",
            "model": f"{EVIL}{number}",
            "flow": f"::error::{EVIL}{number}",
            EVIL: EVIL,
            "messages": [
                {"role": "user", "content": EVIL, EVIL: 1},
                {
                    "role": "assistant",
                    "content": EVIL,
                    "tool_calls": [{"id": EVIL, "function": {"name": EVIL, "arguments": json.dumps({EVIL: EVIL})}}],
                },
                {"role": "tool", "tool_call_id": EVIL, "content": f"Error: {EVIL}"},
            ],
        }
        for number in (1, 2)
    ]
    lines = [*map(json.dumps, chats), json.dumps({"messages": 7, EVIL: 1}), f"{{{EVIL!r}"]
    (folder / "a\n::error::b.jsonl").write_text("\n".join(lines))
    (folder / "unknown.json").write_text(json.dumps({EVIL: 1, f"::error::{EVIL}": 2}))
    return folder


@pytest.fixture(scope="module")
def run(logs: Path) -> Path:
    out = logs.parent / "run"
    arguments = ("--by", "flow", "--by", "model", "--junit", "/dev/stdout", "--markdown", "/dev/stdout", "--full")
    ended = command("score", logs, "--out", out, *arguments)
    assert ended.code == 0, ended.err
    assert "2 conversations" in ended.out
    assert_harmless(ended)
    return out


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", "{logs}"),
        ("inspect", "{logs}", "--json"),
        ("view", "trace", "{logs}"),
        ("view", "timeline", "{logs}"),
        ("view", "metric-context", "{logs}"),
        ("score", "{logs}", "--out", "{run}-strict", "--strict"),
        ("score", "{logs}/unknown.json", "--out", "{run}-none"),
        ("score", "{logs}\n::error::" + FORGED),
        ("score", "{logs}", "--metrics", "a\n::error::" + FORGED),
        ("runs", "show", "{run}"),
        ("runs", "show", "{run}", "--json"),
        ("show", "{run}"),
        ("show", "{run}", "no such\n::error::" + FORGED),
        ("sql", "--run", "{run}", 'SELECT conversation, model, conversation AS "a\n::error::b" FROM conversations'),
        ("sql", "--run", "{run}", "SELECT body FROM conversations", "--json"),
        ("sql", "--run", "{run}", "SELECT '\n::error::" + FORGED + "' FROM nothing"),
    ],
    ids=lambda arguments: " ".join(arguments)[:40].replace("\n", " "),
)
def test_whatever_is_asked(arguments: tuple[str, ...], logs: Path, run: Path) -> None:
    ended = command(*(one.replace("{logs}", str(logs)).replace("{run}", str(run)) for one in arguments))
    assert ended.out + ended.err
    assert_harmless(ended)


def test_one_conversation_turn_by_turn(run: Path) -> None:
    (first, *_) = command("sql", "--run", run, "SELECT conversation FROM conversations", "--json").json
    for more in ((), ("--json",)):
        ended = command("show", run, "--full", *more, "--", first["conversation"])
        assert ended.code == 0, ended.err
        assert_harmless(ended)


def test_json_says_the_same(run: Path) -> None:
    found = command("sql", "--run", run, "SELECT model FROM conversations ORDER BY number", "--json").json
    assert found == [{"model": f"{EVIL}1"}, {"model": f"{EVIL}2"}]


class TestText:
    def test_what_is_harmless_stays_as_it_is(self) -> None:
        for text in ("", "a::b", "::1", "fe80::1 and ::", "# title ## more", "Straße, 東京, 🦉", "1 < 2"):
            assert clean(text) == one_line(text) == text

    def test_commands_are_broken(self) -> None:
        assert clean("::error::x") == ":\ufffd:error::x"
        assert clean("a\n  ::set-output name=a::x") == "a\n  :\ufffd:set-output name=a::x"
        assert clean("a ##[add-path]b ##vso[x]") == "a #\ufffd#[add-path]b #\ufffd#vso[x]"

    def test_one_line_has_no_line_break(self) -> None:
        assert one_line("a\nb\r\nc\rd\u2028e\x85f\x0bg") == "a b c d e f g"
        assert one_line("a" * 300) == "a" * 199 + "…"
        assert one_line("a" * 300, None) == "a" * 300
