"""Plain text with labels: who speaks, what goes on over several lines, and what is no transcript."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.errors import NothingReadable
from convoscope.ingest.speaker_labels import labelled, role_of
from support.logs import Outcome, counts, read, story, write_text


def text(folder: Path, content: str, name: str = "call.txt") -> Outcome:
    return read(write_text(folder / name, content))


def test_labels_and_lines_that_go_on(tmp_path: Path) -> None:
    call = text(
        tmp_path,
        """\
        # Call 7
        outcome: solved

        Agent: Hello.
        How can I help?

        One moment.
        Customer: My order: it is late.
        MANAGER: no speaker of this call
        Agent:
        I see.
        """,
    ).only
    assert story(call) == [
        "assistant:Agent: Hello.\nHow can I help?\n\nOne moment.",
        "user:Customer: My order: it is late.\nMANAGER: no speaker of this call",
        "assistant:Agent: I see.",
    ]
    assert call.extras == {"header": ["# Call 7", "outcome: solved"]}


def test_capitals_among_capitals_and_what_begins_two_lines(tmp_path: Path) -> None:
    """DIAGNOSIS READY is two words and comes once: it is text. LAB is one word in capitals, as the others are."""
    call = text(tmp_path, "DOCTOR: Hi.\nPATIENT: Hi.\nLAB: fine\nDOCTOR: So.\n\nDIAGNOSIS READY: well\n").only
    assert story(call) == [
        "assistant:DOCTOR: Hi.",
        "user:PATIENT: Hi.",
        "unknown:LAB: fine",
        "assistant:DOCTOR: So.\n\nDIAGNOSIS READY: well",
    ]


def test_small_letters_among_capitals_are_text(tmp_path: Path) -> None:
    """Assessment begins two lines, but DOCTOR and PATIENT show how speakers are written."""
    lines = "DOCTOR: Hi.\n**History**: pain\nPATIENT: Yes.\nDOCTOR: So.\nAssessment: flu\nAssessment: cold\nLAB: ok\n"
    assert story(text(tmp_path, lines).only) == [
        "assistant:DOCTOR: Hi.\n**History**: pain",
        "user:PATIENT: Yes.",
        "assistant:DOCTOR: So.\nAssessment: flu\nAssessment: cold",
        "unknown:LAB: ok",
    ]


@pytest.mark.parametrize("label", ["AGENT", "SPEAKER_00"])
def test_a_single_role_or_a_number_in_capitals_does_not_make_a_name_text(label: str, tmp_path: Path) -> None:
    """A tool writes `SPEAKER_00` and `AGENT`; somebody put in the name of the other."""
    call = text(tmp_path, f"{label}: Hi.\nDana: Hello.\n{label}: So?\nDana: Yes.\n").only
    assert [one.name for one in call.participants] == [label, "Dana"]


@pytest.mark.parametrize(
    "lines",
    [
        "[00:01] Agent: Hello\n[01:02] Customer: Hi\n",
        "00:00:01 Agent: Hello\n00:01:02 Customer: Hi\n",
        "Agent (00:01): Hello\nCustomer (01:02): Hi\n",
        "00:01 - **Agent:** Hello\n01:02 - **Customer**: Hi\n",
    ],
)
def test_times(lines: str, tmp_path: Path) -> None:
    call = text(tmp_path, lines).only
    assert story(call) == ["assistant:Agent: Hello", "user:Customer: Hi"]
    assert [one.time.at for one in call.utterances if one.time] == [1.0, 62.0]


def test_a_chat_of_zoom(tmp_path: Path) -> None:
    """Everybody after `From` is a speaker, also who writes once; to whom it goes is no part of the name."""
    chat = text(
        tmp_path,
        "00:01:02\t From Ann Lee : Hello all\n00:01:05\t From  Bob to Everyone : Hi: Ann\nand all\n"
        "01:00:00 From Carl Xi To Ann Lee(Direct Message):\tBye\n",
    ).only
    assert story(chat) == ["unknown:Ann Lee: Hello all", "unknown:Bob: Hi: Ann\nand all", "unknown:Carl Xi: Bye"]
    assert [one.time.at for one in chat.utterances if one.time] == [62.0, 65.0, 3600.0]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("Note: this is a licence.\nWarning: it is long.\n", "LICENSE.txt"),
        ("See: https://example.org\nAgent: one label only\n", "notes.md"),
        ("def agent(): pass\nclass User: pass\n", "code.py"),
        ("just words\nand more words\n", "words.txt"),
    ],
)
def test_what_is_no_transcript(content: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(NothingReadable, match="is not JSON"):
        text(tmp_path, content, name)


def test_a_label_without_words_is_counted(tmp_path: Path) -> None:
    outcome = text(tmp_path, "Agent: Hello\nCustomer:\nAgent: Hello?\n")
    assert len(outcome.only.utterances) == 2
    assert counts(outcome.report.set_aside) == {"label_without_words": 1}


def test_many_unknown_speakers_in_half_of_the_lines(tmp_path: Path) -> None:
    call = text(tmp_path, "Dana: Shall we?\nLee: Yes.\nDana: Good.\nLee: Bye.\n").only
    assert [one.role for one in call.participants] == ["unknown", "unknown"]


@given(st.text(max_size=300))
def test_any_line_has_a_label_or_none(line: str) -> None:
    read_line = labelled(line)
    if read_line is not None:
        assert read_line.label
        assert read_line.label in line
        assert role_of(read_line.label) in ("user", "assistant", "system", "unknown")
