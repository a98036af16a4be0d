"""Sets of dialogues and exports of chats: Taskmaster, STAR, Rasa, ShareGPT, ChatGPT's export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Marker, ToolResult
from convoscope.errors import NothingReadable
from support.logs import EXAMPLES, counts, read, story, write_json


class TestTaskmaster:
    def test_annotations_are_calls_and_their_results(self) -> None:
        only = read(EXAMPLES / "taskmaster").only
        assert story(only) == [
            "user: A large flat white to go, please.",
            'add_drink({"drink": "flat white", "size": "large"})',
            '-> {"status": "added", "price": 4.2}',
            "assistant: One large flat white, that is 4.20. Anything else?",
            "user: No, that is all.",
            "assistant: It is ready in five minutes.",
        ]
        assert only.utterances[0].extras["segments"][0]["text"] == "large flat white"

    @pytest.mark.parametrize(("speaker", "role"), [("USER", "user"), ("ASSISTANT", "assistant"), ("", "unknown")])
    def test_speakers(self, speaker: str, role: str, tmp_path: Path) -> None:
        log = {"conversation_id": "d", "utterances": [{"index": 0, "speaker": speaker, "text": "Hi"}]}
        only = read(write_json(tmp_path / "t.json", log)).only
        assert only.roles[only.utterances[0].speaker] == role


class TestSTAR:
    def test_what_the_wizard_tried_and_what_the_guide_says_is_not_said(self) -> None:
        outcome = read(EXAMPLES / "star")
        assert story(outcome.only) == [
            "[event_instruct]",
            "user: When does the last ferry leave?",
            "[event_request_suggestions]",
            'ferry_times({"Day": "api.is_equal_to(\\"today\\")", "Which": "last"})',
            '-> {"Time": "21:40", "Pier": 2}',
            "assistant: The last ferry leaves at 21:40 from pier 2.",
            "user: Thank you!",
            "[event_complete]",
        ]
        assert outcome.only.outcome.completed is True
        assert outcome.only.dimensions["domain"] == "ferry"

    @pytest.mark.parametrize(("level", "done"), [("Complete", True), ("Incomplete", False), ("Other", None)])
    def test_completion(self, level: str, done: bool | None, tmp_path: Path) -> None:
        events = [{"Agent": "User", "Action": "utter", "Text": "Hi", "UnixTime": 1772438400}]
        log = {"DialogueID": 1, "CompletionLevel": level, "Events": events}
        assert read(write_json(tmp_path / "s.json", log)).only.outcome.completed is done

    def test_an_action_that_is_not_known_is_kept_and_noted(self, tmp_path: Path) -> None:
        events = [
            {"Agent": "User", "Action": "utter", "Text": "Hi"},
            {"Agent": "User", "Action": "shrug", "Text": "Whatever"},
        ]
        outcome = read(write_json(tmp_path / "s.json", {"DialogueID": 1, "Events": events}))
        assert story(outcome.only) == ["user: Hi", "[event_shrug]"]
        assert "event.Action=shrug" in outcome.report.unknown


class TestRasa:
    def test_an_intent_is_no_speech_and_a_response_no_tool(self) -> None:
        outcome = read(EXAMPLES / "rasa")
        only = outcome.only
        assert [f"{one.speaker}: {only.text(one)}" for one in only.utterances] == [
            "assistant: Welcome to the harbour. For which day do you need a mooring?",
            "user: Saturday.",
            "assistant: Berth 14 is free on Saturday.",
        ]
        assert [call.name for call in only.tool_calls] == ["action_find_mooring"]
        assert [
            event.value for event in only.timeline if isinstance(event, Marker) and event.name == "control_text"
        ] == ["/greet"]
        assert only.extras["slots"] == {"day": "saturday"}
        assert "control_text" in outcome.report.inferred


class TestShareGPT:
    def test_calls_observations_and_unknown_senders(self) -> None:
        first, second = read(EXAMPLES / "sharegpt").conversations
        assert story(first) == [
            "user: How long do lentils cook?",
            'cooking_time({"food": "red lentils"})',
            '-> {"minutes": 12}',
            "assistant: Red lentils need twelve minutes.",
            "user: And green ones?",
            "assistant: About half an hour.",
        ]
        assert first.agent.instructions == "You help in the kitchen."
        assert [second.roles[one.speaker] for one in second.utterances] == ["user", "unknown", "assistant"]

    @pytest.mark.parametrize("sender", ["", None, 7, ["human"]])
    def test_a_sender_that_says_nothing_is_not_the_user(self, sender: Any, tmp_path: Path) -> None:
        turns = [{"from": "gpt", "value": "Hi"}, {"from": sender, "value": "Hello"}]
        only = read(write_json(tmp_path / "s.json", {"id": "x", "conversations": turns})).only
        assert [only.roles[one.speaker] for one in only.utterances] == ["assistant", "unknown"]


def node(name: str, parent: str | None, text: str, role: str, at: float, *children: str) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [text]}
    message = {"id": name, "author": {"role": role}, "create_time": at, "content": content, "recipient": "all"}
    return {"id": name, "parent": parent, "children": list(children), "message": message}


class TestChatGPT:
    TREE = {
        "a": node("a", None, "Hi", "user", 1772438400.0, "b", "c"),
        "b": node("b", "a", "First answer", "assistant", 1772438410.0),
        "c": node("c", "a", "Second answer", "assistant", 1772438420.0),
    }

    def test_the_current_branch_is_the_conversation(self) -> None:
        outcome = read(EXAMPLES / "chatgpt-export")
        assert story(outcome.only) == [
            "[hidden_message]",
            "user: Name my rowing boat.",
            "assistant: Call it Heron: it is quiet and patient.",
            "user: Heron it is.",
        ]
        assert outcome.report.ignored["message_of_another_branch"] == 2
        assert outcome.only.agent.models == {"llm": "model-b"}
        assert "Call it Puddle." in str(outcome.only.extras["other_branches"])

    @pytest.mark.parametrize(
        ("current", "answer"), [("b", "First answer"), ("c", "Second answer"), (None, "Second answer")]
    )
    def test_which_leaf_counts(self, current: str | None, answer: str, tmp_path: Path) -> None:
        """Without a current node, it is the newest leaf."""
        log = {"conversation_id": "x", "mapping": self.TREE, "current_node": current}
        outcome = read(write_json(tmp_path / "c.json", log))
        assert story(outcome.only) == ["user: Hi", f"assistant: {answer}"]
        assert outcome.report.ignored["message_of_another_branch"] == 1

    def test_a_circle_ends(self, tmp_path: Path) -> None:
        tree = {"a": node("a", "b", "Hi", "user", 1.0, "b"), "b": node("b", "a", "Hello", "assistant", 2.0, "a")}
        outcome = read(write_json(tmp_path / "c.json", {"id": "x", "mapping": tree, "current_node": "b"}))
        assert story(outcome.only) == ["user: Hi", "assistant: Hello"]
        assert counts(outcome.report.set_aside) == {"parent_not_found": 1}

    def test_code_for_a_tool_is_a_call(self, tmp_path: Path) -> None:
        call = node("b", "a", "2 + 2", "assistant", 2.0, "c")
        call["message"]["recipient"] = "python"
        answer = node("c", "b", "4", "tool", 3.0)
        answer["message"]["author"]["name"] = "python"
        tree = {"a": node("a", None, "Add", "user", 1.0, "b"), "b": call, "c": answer}
        only = read(write_json(tmp_path / "c.json", {"id": "x", "mapping": tree, "current_node": "c"})).only
        assert [one.name for one in only.tool_calls] == ["python"]
        results = [event for event in only.timeline if isinstance(event, ToolResult)]
        assert [(one.name, one.result) for one in results] == [("python", "4")]
        assert len(only.utterances) == 1


@pytest.mark.parametrize("name", ["taskmaster", "star", "rasa", "sharegpt", "chatgpt-export"])
def test_examples_are_read_without_a_problem(name: str) -> None:
    report = read(EXAMPLES / name).report
    assert (report.problem_count, report.set_aside) == (0, {})


def test_calls_of_the_third_taskmaster(tmp_path: Path) -> None:
    api = {
        "name": "find_boats",
        "args": [{"arg_name": "day", "arg_value": "Monday"}],
        "response": [{"response_name": "boat", "response_value": name} for name in ("Ara", "Bo")],
    }
    turn = {"index": 0, "speaker": "assistant", "text": "Two boats.", "apis": [api]}
    only = read(write_json(tmp_path / "t.json", [{"conversation_id": "d", "utterances": [turn]}])).only
    # What the assistant says rests on the call, so the call comes first.
    assert [story(only)[0], story(only)[2]] == ['find_boats({"day": "Monday"})', "assistant: Two boats."]
    (result,) = [one for one in only.timeline if isinstance(one, ToolResult)]
    assert result.result == {"boat": ["Ara", "Bo"]}


def test_a_tracker_of_events_without_speech_is_refused(tmp_path: Path) -> None:
    log = {"sender_id": "r", "events": [{"event": "action", "name": "action_listen"}]}
    with pytest.raises(NothingReadable, match="nothing was said or done"):
        read(write_json(tmp_path / "r.json", log))


def test_parts_of_a_chatgpt_export_that_are_no_plain_text(tmp_path: Path) -> None:
    said = {"content_type": "audio_transcription", "text": "Is it high water?", "direction": "in"}
    contents: list[tuple[str, str, dict[str, Any]]] = [
        ("user", "", {"content_type": "multimodal_text", "parts": [said]}),
        ("assistant", "", {"content_type": "thoughts", "thoughts": [{"summary": "Tide", "content": "Look it up."}]}),
        ("tool", "python", {"content_type": "system_error", "name": "Timeout", "text": "No answer in time."}),
        ("assistant", "", {"content_type": "text", "parts": ["I cannot say."]}),
    ]
    nodes = {
        str(number): {
            "message": {"id": f"m{number}", "author": {"role": role, "name": name}, "content": content},
            "parent": str(number - 1) if number else None,
            "children": [str(number + 1)] if number < 3 else [],
        }
        for number, (role, name, content) in enumerate(contents)
    }
    only = read(write_json(tmp_path / "c.json", [{"id": "g", "mapping": nodes, "current_node": "3"}])).only
    assert [only.text(one) for one in only.utterances] == ["Is it high water?", "I cannot say."]
    assert [one.name for one in only.timeline if isinstance(one, Marker)] == ["reasoning"]
    assert [(one.name, one.success) for one in only.timeline if isinstance(one, ToolResult)] == [("python", False)]


def test_sharegpt_items_and_tools(tmp_path: Path) -> None:
    turns = [{"from": "human", "value": "Hello"}, {"from": "gpt", "value": "Good day"}]
    log = [{"id": "a", "items": turns, "tools": '[{"name": "tide", "description": "Times of high water"}]'}]
    only = read(write_json(tmp_path / "s.json", log)).only
    assert story(only) == ["user: Hello", "assistant: Good day"]
    assert [tool.name for tool in only.agent.tools or ()] == ["tide"]


def test_a_constraint_of_star_that_comes_twice_keeps_both(tmp_path: Path) -> None:
    query = {"Action": "query", "Agent": "Wizard", "APIName": "hotel", "Constraints": [{"Price": "a"}, {"Price": "b"}]}
    log = {"DialogueID": 1, "Events": [query]}
    assert story(read(write_json(tmp_path / "s.json", log)).only) == ['hotel({"Price": ["a", "b"]})']
