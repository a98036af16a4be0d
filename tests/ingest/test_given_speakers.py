"""`--speaker agent=LABEL`: the user says who is who, whatever the format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.conversation import Conversation
from convoscope.errors import UsageError
from support.logs import EXAMPLES, counts, write_json, write_text


def roles(conversation: Conversation) -> list[str]:
    return [conversation.roles[one.speaker] for one in conversation.utterances]


def test_labels_are_compared_without_case() -> None:
    stream = convoscope.read(EXAMPLES / "deepgram", speakers={"agent": "SPEAKER 0", "user": "speaker 1"})
    assert [roles(one) for one in stream] == [["assistant", "user"]]
    assert counts(stream.report.inferred) == {"speaker 0_given_as_assistant": 1, "speaker 1_given_as_user": 1}


@pytest.mark.parametrize(
    ("example", "agent"),
    [
        ("assemblyai", "Speaker A"),
        ("aws-transcribe", "spk_0"),
        ("telegram", "Boat hire"),
        ("facebook", "Harbour Bakery"),
        ("whatsapp", "Lakeside Kiosk"),
    ],
)
def test_one_of_two_may_be_enough_to_name(example: str, agent: str) -> None:
    (conversation,) = convoscope.read(EXAMPLES / example, speakers={"agent": agent})
    assert set(roles(conversation)) == {"assistant", "unknown"}


def test_every_reader_obeys(tmp_path: Path) -> None:
    """Plain text and chats have other readers than recognisers; a role that is wrong can be put right."""
    text = write_text(
        tmp_path / "a.txt",
        """\
        SPEAKER_00: Good morning, this is the desk.
        SPEAKER_01: Hello, I have a question.
        SPEAKER_00: Please ask.
        """,
    )
    (conversation,) = convoscope.read(text, speakers=["agent=speaker_00", "user=speaker_01"])
    assert roles(conversation) == ["assistant", "user", "assistant"]
    swapped: list[dict[str, Any]] = [{"role": "user", "content": "Desk."}, {"role": "assistant", "content": "Hello?"}]
    log = write_json(tmp_path / "b.json", {"messages": swapped})
    (conversation,) = convoscope.read(log, speakers={"agent": "user", "user": "assistant"})
    assert roles(conversation) == ["assistant", "user"]


def test_a_role_that_is_given_is_not_unknown_any_more() -> None:
    half = convoscope.read(EXAMPLES / "deepgram", speakers={"agent": "Speaker 0"})
    assert len(list(half)) == 1
    assert half.report.inferred["speaker_of_unknown_role"].examples == ["parcel.json Speaker 1"]


def test_a_label_that_no_speaker_has_is_an_error_that_names_those_seen() -> None:
    with pytest.raises(UsageError, match=r"no speaker is called kiosk.*Ivo, Lakeside Kiosk"):
        list(convoscope.read(EXAMPLES / "whatsapp", speakers={"agent": "Kiosk"}))


def test_a_second_label_that_no_speaker_has_is_an_error_too() -> None:
    with pytest.raises(UsageError, match=r"no speaker is called typo.*Lakeside Kiosk"):
        list(convoscope.read(EXAMPLES / "whatsapp", speakers={"agent": ["Lakeside Kiosk", "Typo"]}))


def test_a_label_needs_to_be_in_one_conversation_only(tmp_path: Path) -> None:
    for name in ("Nils", "Ute"):
        entries = [
            {"sender_name": who, "timestamp_ms": 1772442060000 + number, "content": "Hi"}
            for number, who in enumerate((name, "Ivo"))
        ]
        write_json(tmp_path / f"{name}.json", {"thread_path": name, "messages": entries})
    stream = convoscope.read(tmp_path, speakers={"agent": ["Nils", "Ute"], "user": "Ivo"})
    assert [roles(one) for one in stream] == [["assistant", "user"], ["assistant", "user"]]
    assert "speaker_not_in_conversation" not in stream.report.set_aside


def test_a_conversation_without_such_a_speaker_is_noted(tmp_path: Path) -> None:
    for name in ("Nils", "Ute"):
        entries = [{"sender_name": name, "timestamp_ms": 1772442060000, "content": "Hi"}]
        write_json(tmp_path / f"{name}.json", {"thread_path": name, "messages": entries})
    stream = convoscope.read(tmp_path, speakers={"agent": "Nils"})
    assert sorted(role for one in stream for role in roles(one)) == ["assistant", "unknown"]
    assert stream.report.set_aside["speaker_not_in_conversation"].examples == ["Ute.json Ute"]


def test_with_a_limit_a_label_may_be_further_on() -> None:
    stream = convoscope.read(EXAMPLES / "whatsapp", speakers={"agent": "Kiosk"}, limit=1)
    assert len(list(stream)) == 1
    assert [warning for warning in stream.report.warnings if "no speaker is called kiosk" in warning]


@pytest.mark.parametrize("example", ["deepgram", "telegram", "facebook", "whatsapp"])
def test_without_it_the_report_names_speakers_of_unknown_role(example: str) -> None:
    stream = convoscope.read(EXAMPLES / example)
    assert len(list(stream)) == 1
    assert stream.report.inferred["speaker_of_unknown_role"].count == 2


@pytest.mark.parametrize(
    "given", [["boss=Ivo"], ["agent"], ["agent="], {"agent": ""}, ["agent=Ivo", "user=ivo"], {"boss": "Ivo"}]
)
def test_what_cannot_be_meant_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="--speaker"):
        convoscope.read(EXAMPLES / "whatsapp", speakers=given)


def test_scores_are_of_the_roles_that_were_given(tmp_path: Path) -> None:
    """The agent answers the first question of Ivo, and not the second: 1 of 2. Unnamed, there is no user."""
    log = write_text(
        tmp_path / "chat.txt",
        """\
        13/02/2026, 09:00 - Ivo: Is the kiosk open on Sunday?
        13/02/2026, 09:01 - Kiosk: Yes, from ten.
        13/02/2026, 09:02 - Ivo: Do you sell ice?
        """,
    )
    metric, given = "agent.unanswered_turns", {"agent": "kiosk", "user": "Ivo"}
    unnamed = convoscope.score(log, out=tmp_path / "a", metrics=metric)
    named = convoscope.score(log, out=tmp_path / "b", metrics=metric, speakers=given)
    assert unnamed[metric].value is None
    assert (named[metric].value, named[metric].n) == (0.5, 2)
    assert unnamed.receipt.depends_on["settings"] != named.receipt.depends_on["settings"]


def test_a_score_with_a_wrong_label_leaves_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no speaker is called kiosk"):
        convoscope.score(EXAMPLES / "whatsapp", out=tmp_path / "run", speakers={"agent": "Kiosk"})
    assert not (tmp_path / "run").exists()
