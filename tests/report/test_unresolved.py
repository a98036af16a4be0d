"""The panel of what was left open, made from a real run."""

from __future__ import annotations

from pathlib import Path

import convoscope
from convoscope.report.unresolved import unresolved_panel
from support.command_line import convoscope as command
from support.logs import chat, write_lines

METRICS = ["semantic.unresolved_risks", "semantic.unowned_actions"]


def test_calls_with_an_unresolved_risk_come_worst_first(tmp_path: Path) -> None:
    logs = write_lines(
        tmp_path / "chats.jsonl",
        chat("quiet", "Where are you?", "In Leeds."),
        chat("low", "I'm a bit disappointed.", "I see."),
        chat("worst", "I'm going to sue you.", "Someone will call you tomorrow."),
        chat("solved", "I want to speak to a manager.", "It is done.", "Great, that works.", "Bye."),
        chat("<b>deutsch</b>", "Ich möchte mein Geld zurück und ich bin nicht froh.", "Das ist nicht möglich."),
    )
    run = convoscope.score(logs, metrics=METRICS, annotate="rules", out=tmp_path / "run")
    panel = unresolved_panel(run)
    assert panel is not None
    # Of five, one is not English and was not looked at; two have a risk left, one a promise of somebody.
    assert panel.line == (
        "2 of 4 conversations that were looked at (of 5) with an unresolved risk, "
        "1 of 4 conversations that were looked at (of 5) with a promise without an owner. Found by rules."
    )
    risks, actions = panel.tables
    assert [[cell.text for cell in row] for row in risks.rows] == [
        ["worst", "high", "compliance"],
        ["low", "low", "sentiment negative"],
    ]
    assert [[cell.text for cell in row] for row in actions.rows] == [["worst", "Call the customer"]]


def test_a_run_that_nobody_annotated_has_no_panel(tmp_path: Path) -> None:
    logs = write_lines(tmp_path / "chats.jsonl", chat("a", "I'm going to sue you.", "Oh."))
    assert unresolved_panel(convoscope.score(logs, metrics=["turns"], out=tmp_path / "one")) is None
    assert unresolved_panel(convoscope.score(logs, metrics=METRICS, out=tmp_path / "two")) is None


def test_the_terminal_says_it_too(tmp_path: Path) -> None:
    logs = write_lines(tmp_path / "chats.jsonl", chat("worst", "I'm going to sue you.", "Someone will call you."))
    ended = command("score", logs, "--annotate", "rules", "--out", tmp_path / "run")
    assert ended.code == 0
    assert "What was left open: 1 of 1 conversation with an unresolved risk" in ended.out
