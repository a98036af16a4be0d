"""Messages of loggers of one's own: who speaks and what is said, under whatever name it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.conversation import Marker
from convoscope.ingest.control_text import TOKEN, may_hold_control, without_control
from support.logs import ASK, Outcome, counts, read, story, write, write_json
from support.tool_outcomes import stated

STORY = ["user: Is the museum open on Monday?", "assistant: It is closed on Mondays."]
TEXTS = ("text", "message", "value", "utterance", "body")


def messages(tmp_path: Path, *listed: Any) -> Outcome:
    return read(write_json(tmp_path / "log.json", {"messages": list(listed)}))


class TestText:
    @pytest.mark.parametrize("field", TEXTS)
    def test_of_another_name(self, field: str, tmp_path: Path) -> None:
        """`{"role", "text"}` gave empty utterances, which counted as turns."""
        outcome = messages(
            tmp_path,
            {"role": "user", field: "Is the museum open on Monday?"},
            {"role": "assistant", field: "It is closed on Mondays."},
        )
        assert story(outcome.only) == STORY
        assert counts(outcome.report.inferred) == {f"text_in_{field}": 1}
        assert outcome.report.unknown == {}

    def test_content_goes_first(self, tmp_path: Path) -> None:
        outcome = messages(tmp_path, {**ASK, "text": "something else"})
        assert story(outcome.only) == STORY[:1]
        assert outcome.only.timeline[0].extras == {"text": "something else"}

    def test_of_a_system_prompt(self, tmp_path: Path) -> None:
        assert messages(tmp_path, {"role": "system", "text": "Be kind."}, ASK).only.agent.instructions == "Be kind."


class TestSpeaker:
    @pytest.mark.parametrize("field", ["speaker", "from", "sender", "author"])
    def test_of_another_name(self, field: str, tmp_path: Path) -> None:
        outcome = messages(
            tmp_path,
            {field: "Customer", "text": "Is the museum open on Monday?"},
            {field: "AGENT", "text": "It is closed on Mondays."},
        )
        assert story(outcome.only) == STORY
        assert outcome.report.inferred[f"speaker_in_{field}"].count == 1
        assert outcome.report.inferred["role_customer_is_user"].count == 1

    def test_rows_of_a_table(self, tmp_path: Path) -> None:
        rows = ["conversation_id,speaker,text", "k-1,customer,Hello?", "k-2,caller,Hi.", "k-1,agent,Good morning."]
        outcome = read(write(tmp_path / "calls.csv", "\n".join([*rows, "k-1,customer,", ""])))
        assert outcome.ids == ["k-1", "k-2"]
        assert story(outcome.conversations[0]) == [
            "user: Hello?",
            "assistant: Good morning.",
            "[message_without_text]",
        ]
        assert counts(outcome.report.set_aside) == {"message_without_text": 1}

    def test_rows_without_an_id_are_one_conversation(self, tmp_path: Path) -> None:
        outcome = read(write(tmp_path / "call.csv", "speaker,text\ncustomer,Hello?\nagent,Good morning.\n"))
        assert story(outcome.only) == ["user: Hello?", "assistant: Good morning."]

    def test_a_name_alone_says_nothing(self, tmp_path: Path) -> None:
        """Without a word beside it, `from: agent` may be anything."""
        outcome = messages(tmp_path, ASK, {"from": "agent", "state": "typing"})
        assert outcome.report.ignored == {"not_a_message": 1}


class TestControlText:
    def test_a_stop_mark_is_not_said(self, tmp_path: Path) -> None:
        outcome = messages(tmp_path, ASK, {"role": "user", "content": "Thank you! ###STOP###"})
        assert story(outcome.only) == [STORY[0], "user: Thank you!", "[control_text]"]
        assert counts(outcome.report.inferred) == {"control_text": 1}

    @pytest.mark.parametrize("text", ["###STOP###", "/greet", '/inform{"size": "big"}', "request_suggestions"])
    def test_alone_it_is_no_turn(self, text: str, tmp_path: Path) -> None:
        outcome = messages(tmp_path, ASK, {"role": "assistant", "content": "Hm?"}, {"role": "user", "content": text})
        marker = outcome.only.timeline[-1]
        assert isinstance(marker, Marker)
        assert (marker.name, marker.value, marker.participant) == ("control_text", text, "user")
        assert len(outcome.only.turns) == 1

    @pytest.mark.parametrize("text", ["### Opening hours ###", "and/or", "/ is a slash", "# Heading", "###stop###"])
    def test_speech_that_looks_like_it(self, text: str, tmp_path: Path) -> None:
        assert story(messages(tmp_path, {"role": "user", "content": text}).only) == [f"user: {text}"]

    def test_an_agent_sends_no_intent(self, tmp_path: Path) -> None:
        assert story(messages(tmp_path, ASK, {"role": "assistant", "content": "/greet"}).only)[1] == "assistant: /greet"

    @given(st.text(alphabet="#STOP-/ab _{}\n ", max_size=30), st.sampled_from(["user", "assistant"]))
    def test_the_quick_look_never_misses_one(self, text: str, role: str) -> None:
        if not may_hold_control(text, role):
            assert without_control(text, role) == (text, ())

    @given(st.text(alphabet="#STOP ab", max_size=40))
    def test_no_word_is_lost(self, text: str) -> None:
        speech = without_control(text, "assistant")
        assert "".join(TOKEN.sub("", text).split()) == "".join(speech.words.split())


class TestToolErrors:
    """A result that only its words tell to be a failure."""

    def success(self, text: str, tmp_path: Path) -> bool | None:
        call = {"id": "c", "function": {"name": "find", "arguments": "{}"}}
        tool = {"role": "tool", "tool_call_id": "c", "content": text}
        outcome = messages(tmp_path, ASK, {"role": "assistant", "tool_calls": [call]}, tool)
        success, _ = stated(outcome.only.timeline[-1])  # type: ignore[arg-type]
        return success

    @pytest.mark.parametrize(
        "text",
        [
            "Error: no such card",
            "Error",
            "error\ndetails",
            "ERROR - timed out",
            "Error! Try again",
            "error 404",
            "Exception: x",
            "KeyError: 'C-402'",
            "requests.exceptions.HTTPError: 500",
            "Traceback (most recent call last)",
        ],
    )
    def test_a_failure(self, text: str, tmp_path: Path) -> None:
        assert self.success(text, tmp_path) is False

    @pytest.mark.parametrize("text", ["No errors", "Errors: 0", "error-free", "errorless", "Exceptional", "closed", ""])
    def test_nothing_is_concluded(self, text: str, tmp_path: Path) -> None:
        assert self.success(text, tmp_path) is None
