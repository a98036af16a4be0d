"""`convoscope audit`, from the command line: what it prints, its exit codes, and what a run keeps of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command_line import convoscope
from support.logs import chat, write_lines
from support.pages import page_facts

VACUOUS = '''
from convoscope import Conversation, metric
from convoscope.metrics import CONVERSATION, HIGHER, Observation, measured
from convoscope.metrics.perturbations import PARROT


@metric("mine.vacuous", version=1, observes=CONVERSATION, unit="points", better=HIGHER, sensitive_to=(PARROT,))
def vacuous(conversation: Conversation) -> Observation:
    """Is everything fine?"""
    return measured(conversation, 7.0)


@metric("mine.undeclared", version=1, observes=CONVERSATION, unit="points", better=HIGHER)
def undeclared(conversation: Conversation) -> Observation:
    """Is everything fine?"""
    return measured(conversation, 7.0)
'''


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Eight chats, and metrics of a user."""
    replies = [f"Hello there, you are number {place} today." for place in range(8)]
    talks = [chat(f"c{at}", "hi", reply, "bye", "Thank you for calling, good bye.") for at, reply in enumerate(replies)]
    write_lines(tmp_path / "chats.jsonl", *talks)
    (tmp_path / "mine.py").write_text(VACUOUS)
    return tmp_path


def test_a_metric_that_does_not_notice_what_it_declares_is_a_failure(work: Path) -> None:
    ended = convoscope("audit", "chats.jsonl", "--metrics-from", "mine.py", "--metrics", "vacuous", cwd=work)
    assert (ended.code, ended.err) == (1, "")
    assert ended.out.startswith("8 conversations: 0 of 1 declared kinds of nonsense noticed, 1 not noticed\n")
    assert "mine.vacuous  0 of 1   parrot" in ended.out


def test_a_metric_without_a_declaration_is_reported_and_tells_nothing(work: Path) -> None:
    ended = convoscope("audit", "chats.jsonl", "--metrics-from", "mine.py", "--metrics", "undeclared", cwd=work)
    assert ended.code == 3
    assert "mine.undeclared  nothing (declares nothing)" in ended.out


def test_all_is_noticed(work: Path) -> None:
    ended = convoscope("audit", "chats.jsonl", "--metrics", "agent", cwd=work)
    # Repetition and words per turn: each says everything, and is silent without an agent. Unanswered turns: no agent.
    assert ended.code == 0
    assert ended.out.startswith("8 conversations: 5 of 5 declared kinds of nonsense noticed, 0 not noticed\n")


def test_too_few_tell_nothing(work: Path) -> None:
    ended = convoscope("audit", "chats.jsonl", "--metrics", "conversation.turns", "--limit", "2", cwd=work)
    assert ended.code == 3
    assert ended.out.startswith(
        "2 conversations: 0 of 1 declared kinds of nonsense noticed, 0 not noticed, 1 with too few"
    )


def test_targets_that_cannot_fail(work: Path) -> None:
    options = ("--metrics", "turns,words_per_turn", "--target", "turns >= 1", "--target", "words_per_turn <= 10")
    ended = convoscope("audit", "chats.jsonl", *options, "--json", cwd=work)
    gates = {gate["target"]: gate for gate in ended.json["gates"]}
    assert gates["conversation.turns >= 1"]["met_by"] == gates["conversation.turns >= 1"]["tried"]
    # 7 and 6 words a turn; 13 where each reply is both; whoever says nothing meets nothing.
    assert gates["agent.words_per_turn <= 10"]["met"]
    assert not {"empty_agent", "says_everything"} & {*gates["agent.words_per_turn <= 10"]["met_by"]}


def test_markdown(work: Path) -> None:
    convoscope("audit", "chats.jsonl", "--metrics", "agent", "--markdown", "audit.md", cwd=work)
    text = (work / "audit.md").read_text()
    assert text.startswith("## Would the metrics notice nonsense?\n\n8 conversations: 5 of 5 declared")
    assert "| `agent.repetition` | 2 of 2 |" in text


def test_a_run_keeps_its_audit_and_shows_it(work: Path) -> None:
    options = ("--metrics", "agent", "--target", "words_per_turn >= 0", "--out", "run")
    assert convoscope("score", "chats.jsonl", *options, cwd=work).code == 0
    assert "Would the metrics notice nonsense?" not in page_facts(work / "run" / "report.html")
    ended = convoscope("audit", "run", cwd=work)
    assert ended.code == 0
    assert "agent.words_per_turn >= 0" in ended.out  # the target that the run keeps
    kept = json.loads((work / "run" / "audit.json").read_text())
    assert kept["conversations"] == 8
    page = page_facts(work / "run" / "report.html")
    assert "Would the metrics notice nonsense?" in page
    assert "5 of 5 declared kinds of nonsense noticed" in page


def test_a_run_that_is_scored_with_an_audit_is_the_same_and_has_it(work: Path) -> None:
    first = convoscope("score", "chats.jsonl", "--metrics", "agent", "--out", "run", "--audit", cwd=work)
    assert first.code == 0
    assert "Would the metrics notice nonsense?" in page_facts(work / "run" / "report.html")
    again = convoscope("score", "chats.jsonl", "--metrics", "agent", "--out", "run", cwd=work)
    assert (again.code, again.out) == (0, first.out)


def test_an_audit_file_that_is_no_audit_is_left_alone(work: Path) -> None:
    convoscope("score", "chats.jsonl", "--metrics", "agent", "--out", "run", cwd=work)
    (work / "run" / "audit.json").write_text("{}")
    ended = convoscope("report", "run", cwd=work)
    assert ended.code == 0


def test_nothing_readable_is_bad_usage(tmp_path: Path) -> None:
    ended = convoscope("audit", ".", cwd=tmp_path)
    assert ended.code == 2
