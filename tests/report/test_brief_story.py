"""A conversation as a story: how it ended and why, who said what and when, what tools did; evidence in words."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from convoscope.conversation import (
    Outcome,
    Participant,
    Segment,
    StateEntered,
    Time,
    ToolCall,
    ToolResult,
    Utterance,
)
from convoscope.runs.make import make_run
from support.calls import bot, caller, voice_call
from support.chats import UNPLACED, agent, chat, user
from support.command_line import convoscope

LOST = Outcome(completed=False)


def told(folder: Path, conversation: object) -> list[str]:
    run = make_run([conversation], out=folder / "run", workers=1)  # type: ignore[list-item]
    return convoscope("show", run.folder, "c").out.splitlines()


def test_the_outcome_comes_first_and_then_why(tmp_path: Path) -> None:
    turns = [event for _ in range(3) for event in (user("Four."), agent("What is your member number?"))]
    lines = told(tmp_path, chat(*turns, outcome=LOST))
    assert lines[0] == "c: lost (the log says so)"
    assert lines[1] == "- asked 3 times: “What is your member number?”"
    assert "        user   Four." in lines


def test_tools_are_told_in_words(tmp_path: Path) -> None:
    call = ToolCall(seq=UNPLACED, name="look_up", call_id="1", time=Time(2.0, "wall"), arguments={"code": 7})
    bad = ToolResult(seq=UNPLACED, name="look_up", call_id="1", time=Time(5.5, "wall"), success=False, error="no line")
    lines = told(tmp_path, chat(user("Book it.", 0.0), call, bad, agent("Sorry.", 6.0), outcome=LOST))
    assert "  0:02  tool   look_up took 3.50 s, failed: no line" in lines
    assert not any("{" in line for line in lines)


def test_what_was_heard_stands_below_where_it_differs(tmp_path: Path) -> None:
    said = caller("My code is B4.", (0.0, 2.0), heard="My code is D4.")
    same = caller("Thanks.", (65.0, 66.0), heard="thanks")
    lines = told(tmp_path, voice_call(said, bot("I see.", (3.0, 4.0)), same, bot("Bye.", (67.0, 68.0))))
    assert "  0:00  caller My code is B4." in lines
    assert "        heard  My code is D4." in lines
    assert "  1:05  caller Thanks." in lines
    assert not any("heard  thanks" in line for line in lines)


def test_states_are_signposts(tmp_path: Path) -> None:
    entered = StateEntered(seq=UNPLACED, state="greet")
    assert "        → greet" in told(tmp_path, chat(entered, agent("Hello.")))


@pytest.mark.parametrize("text", ["evil\x1b[31mred", "line\u2028break"])
def test_hostile_words_are_harmless(tmp_path: Path, text: str) -> None:
    out = "\n".join(told(tmp_path, chat(user(text), agent("Hello."))))
    assert "\x1b" not in out
    assert "\u2028" not in out


def test_eighty_columns(tmp_path: Path) -> None:
    lines = told(tmp_path, chat(user("word " * 200), agent("Hello.")))
    assert max(map(len, lines)) <= 80


def test_without_words_it_says_when_there_was_speech_and_silence(tmp_path: Path) -> None:
    """Speech of two channels, as a bare recording has it: 4 s of silence from 2 s to 6 s. Whose it is, is unknown."""
    talk = chat(
        Utterance(seq=UNPLACED, speaker="user", segments=(Segment(0, 2),)),
        Utterance(seq=UNPLACED, speaker="agent", segments=(Segment(6, 7),)),
    )
    channels = (Participant("user", "unknown", "channel 1"), Participant("agent", "unknown", "channel 2"))
    talk = msgspec.structs.replace(talk, participants=channels)
    assert told(tmp_path, talk)[3:-2] == [
        "  0:00  channel 1 (no words in the log)",
        "  0:06  channel 2 (no words in the log)",
        "timeline: 0:07.0; longest silence between words 4.0 s at 0:02.0",
    ]


def test_a_turn_without_words_is_said_among_others(tmp_path: Path) -> None:
    silent = Utterance(seq=UNPLACED, speaker="user")
    lines = told(tmp_path, chat(agent("Are you there?"), silent, agent("Good bye.")))
    assert lines[3:6] == [
        "        agent  Are you there?",
        "        user   (no words in the log)",
        "        agent  Good bye.",
    ]
    assert not any("timeline" in line for line in lines)


def test_without_speech_no_words_are_known(tmp_path: Path) -> None:
    lines = told(tmp_path, chat(StateEntered(seq=UNPLACED, state="greeting")))
    assert "        → greeting" in lines
    assert "No words are known." in lines
