"""`--map` and `--suggest-map` on the real command: a log of one's own without a line of Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command_line import Ended
from support.command_line import convoscope as run_command

CASE = {"no": 1, "events": [{"who": "guest", "body": "Is it open today?"}, {"who": "desk-bot", "body": "Until six."}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "log.jsonl").write_text("\n".join(json.dumps({**CASE, "no": number}) for number in range(40)))
    return tmp_path


def command(folder: Path, *arguments: object) -> Ended:
    return run_command(*arguments, cwd=folder)


def test_an_unknown_log_leads_to_a_score(folder: Path) -> None:
    refused = command(folder, "inspect", "log.jsonl")
    assert refused.code == 2
    assert "`convoscope inspect FILE --suggest-map` writes a mapping" in refused.err
    suggested = command(folder, "inspect", "log.jsonl", "--suggest-map")
    assert suggested.code == 0
    (folder / "desk.toml").write_text(suggested.out)
    scored = command(
        folder, "score", "log.jsonl", "--map", "desk.toml", "-m", "conversation.turns", "--workers", 2, "--json"
    )
    assert scored.code == 0
    assert scored.json["summary"]["metrics"][0]["value"] == 1.0  # each has one exchange
    assert scored.json["read_report"]["files"]["log.jsonl"]["format"] == "map:desk"
    assert scored.json["read_report"]["conversations"] == 40


def test_inspect(folder: Path) -> None:
    text = '[conversation]\nmessages = "events"\n[message]\nrole = "who"\ntext = "body"\n'
    (folder / "desk.toml").write_text(text + '[values.role]\nguest = "user"\ndesk-bot = "assistant"\n')
    assert "the mapping desk.toml fits" in command(folder, "inspect", "log.jsonl", "--map", "desk.toml").out


def test_another_mapping_is_another_run(folder: Path) -> None:
    text = (
        '[conversation]\nmessages = "events"\n[message]\nrole = "who"\ntext = "body"\n[values.role]\nguest = "user"\n'
    )
    score = ("score", "log.jsonl", "--map", "desk.toml", "-m", "conversation.turns", "--out", "run", "--json")
    (folder / "desk.toml").write_text(text)
    assert command(folder, *score).code == 0
    (folder / "desk.toml").write_text(text + 'desk-bot = "assistant"\n')
    again = command(folder, *score)
    assert again.code == 2
    assert "run" in again.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[message]\nrole = 3\n", "desk.toml message.role"),
        ('[conversation]\nmessages = "turns"\n[message]\nrole = "who"\ntext = "body"\n', "nothing at turns"),
    ],
)
def test_what_is_wrong_with_it_is_told(text: str, said: str, folder: Path) -> None:
    (folder / "desk.toml").write_text(text)
    ended = command(folder, "score", "log.jsonl", "--map", "desk.toml")
    assert ended.code == 2
    assert said in ended.err


def test_a_mapping_that_is_not_there(folder: Path) -> None:
    assert "nowhere.toml: cannot be opened" in command(folder, "inspect", "log.jsonl", "--map", "nowhere.toml").err


def test_nothing_to_suggest(folder: Path) -> None:
    (folder / "numbers.json").write_text("[1, 2]")
    ended = command(folder, "inspect", "numbers.json", "--suggest-map")
    assert (ended.code, ended.out) == (2, "")
    assert "no mapping can be made\n  numbers.json: holds no records" in ended.err
