"""--tool-failed: results that mean failure by a rule of the user's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.conversation import Conversation
from convoscope.errors import UsageError
from convoscope.ingest.settings import read_settings
from convoscope.views.tool_outcomes import tool_outcomes
from support.chats import call, chat, result
from support.scenarios import chat as record
from support.scenarios import tool


def read(content: Any, *patterns: str, **facts: Any) -> list[tuple[str, str]]:
    """Status and sign of one result, read with these patterns."""
    talk = chat(call("send", "1"), result("send", "1", result=content, **facts))
    return _outcomes(read_settings(tool_failed=patterns).applied(talk))


def _outcomes(talk: Conversation) -> list[tuple[str, str]]:
    return [(outcome.status, outcome.sign) for outcome in tool_outcomes(talk).values()]


@pytest.mark.parametrize(
    ("content", "pattern"),
    [
        ("NAK 17", "^NAK"),
        ({"ack": "NAK", "order": 7}, '"ack":"NAK"'),
        ([{"ack": "NAK"}], "NAK"),
        ("nak", "(?i)NAK"),
        ("Lieferung unmöglich", r"\bunm"),  # \b beside letters beyond ASCII
        ({"success": True, "ack": "NAK"}, "NAK"),  # whatever the result states
    ],
)
def test_a_result_that_matches_failed(content: Any, pattern: str) -> None:
    assert read(content, "never", pattern) == [("failed", f"--tool-failed {pattern}")]


def test_it_goes_before_what_the_log_states() -> None:
    assert read("NAK", "NAK", success=True)[0][0] == "failed"


def test_the_others_are_read_as_ever() -> None:
    assert read({"order": 7}, "NAK") == [("succeeded", "returned data")]
    talk = chat(call("send", "1"), result("send", "1", result={"order": 7}))
    assert read_settings(tool_failed="NAK").applied(talk) is talk


@pytest.mark.parametrize(
    ("content", "pattern", "status"),
    [
        ("Auftrag gültig: ja, Nummer 7", r"\bNAK\b", "succeeded"),
        ("Straße 7: NAK, für immer", r"\bNAK\b", "failed"),
        ("Nummer 7: éNAK, für immer", r"\bNAK\b", "succeeded"),  # é is a letter: no boundary before N
        ("Nummer 7: NAK – für immer", r"\bNAK\?", "succeeded"),  # the dash is no question mark
        ("Lieferung 7: ungültig", "ungültig", "failed"),  # umlauts without boundaries
    ],
)
def test_letters_beyond_ascii(content: str, pattern: str, status: str) -> None:
    padded = content + "\n" + "Zeile: 1\n" * 3  # several lines are data
    assert read(padded, pattern)[0][0] == status


def test_a_result_that_a_pattern_cannot_be_tried_on_is_not_stated() -> None:
    """It counted as a success. Boundaries cannot be tried in German, and `_` is what its letters are read as."""
    untried = r"\bNAK_\d"
    assert read({"ort": "Köln"}, untried) == [("not_stated", f"--tool-failed {untried}")]
    assert read({"ort": "Köln"}, untried, "Köln") == [("failed", "--tool-failed Köln")]  # another pattern decides
    assert read({"error": "Köln"}, untried)[0] == ("failed", "error")  # a failure stays one
    assert read({"ort": "Bonn"}, untried)[0][0] == "succeeded"


def test_only_the_beginning_of_a_long_result_is_tried() -> None:
    assert read("x " * 10_000 + "NAK", "NAK")[0][0] == "succeeded"


@pytest.mark.parametrize("pattern", ["(NAK", "a(?=b)", r"(a)\1", "*", r"\bungültig"])
def test_a_pattern_that_cannot_be_used_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match=r"--tool-failed .* cannot be used"):
        read_settings(tool_failed=pattern)


def test_a_pattern_that_takes_for_ever_elsewhere_does_not_here() -> None:
    assert read("a" * 5_000 + "!", "(a+)+$")[0][0] == "not_stated"


def test_from_python(tmp_path: Path) -> None:
    log = tmp_path / "chats.jsonl"
    log.write_text(json.dumps(record("Where?", *tool({"ack": "NAK"}), id="c1")) + "\n")
    (talk,) = convoscope.read(log, tool_failed="NAK")
    assert _outcomes(talk) == [("failed", "--tool-failed NAK")]
    run = convoscope.score(log, metrics=["tools.success"], tool_failed="NAK", out=tmp_path / "run")
    summary = json.loads((run.folder / "summary.json").read_text())
    assert [figure["value"] for figure in summary["metrics"] if figure["metric"] == "tools.success"] == [0.0]
    assert any('"tool_failed"' in path.read_text() for path in run.folder.glob("*.json"))
