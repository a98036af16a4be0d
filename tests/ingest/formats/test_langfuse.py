"""Langfuse traces and LangSmith runs: inputs in many shapes, halves of runs, scores as labels."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Label, ToolResult
from convoscope.errors import ConvoscopeError
from support.logs import EXAMPLES, Outcome, measured, read, talk, write_json, write_lines

MILL = EXAMPLES / "langfuse" / "mill.json"
OWLS = EXAMPLES / "langsmith" / "owls.jsonl"
SAID = ["user: Hi", "assistant: Hello."]


def generation(input: Any, output: Any, second: int = 0, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"gen-{second}",
        "traceId": "trace-1",
        "type": "GENERATION",
        "name": "reply",
        "startTime": f"2026-03-02T08:26:{second:02d}.000Z",
        "endTime": f"2026-03-02T08:26:{second + 1:02d}.000Z",
        "input": input,
        "output": output,
    } | fields


def reading(folder: Path, *observations: Any, **trace: Any) -> Outcome:
    record = {"trace": {"id": "trace-1", **trace}, "observations": list(observations)}
    return read(write_json(folder / "trace.json", record))


class TestLangfuse:
    def test_the_example(self) -> None:
        conversation = read(MILL).only
        assert conversation.id == "desk-41"
        assert talk(conversation) == [
            "user: Two tickets for the tour at three, please.",
            'book_tour({"hour": 15, "people": 2})',
            '-> "the tour at three is full"',
            "assistant: I am sorry, the tour at three is full. There is one at five.",
        ]
        (result,) = (event for event in conversation.timeline if isinstance(event, ToolResult))
        assert result.success is False

    def test_a_score_is_a_label_of_another_rater(self) -> None:
        label = Label(name="resolved", value=0, rater="langfuse", rater_kind="external", notes="No tickets were sold.")
        assert read(MILL).only.labels == (label,)

    def test_tokens_and_costs(self) -> None:
        """Each call took 1.0 and 0.9 seconds."""
        assert measured(read(MILL).only) == [
            {"prompt_tokens": 45, "completion_tokens": 13, "total_tokens": 58, "cost": 0.00014, "duration": 1.0},
            {"prompt_tokens": 74, "completion_tokens": 16, "total_tokens": 90, "cost": 0.00021, "duration": 0.9},
        ]

    @pytest.mark.parametrize(
        ("given", "answer"),
        [
            ([{"role": "user", "content": "Hi"}], {"role": "assistant", "content": "Hello."}),
            ('[{"role": "user", "content": "Hi"}]', '{"role": "assistant", "content": "Hello."}'),
            ('"[{\\"role\\": \\"user\\", \\"content\\": \\"Hi\\"}]"', "Hello."),
            ({"messages": [{"type": "human", "content": "Hi"}]}, {"type": "ai", "content": "Hello."}),
            ({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}, {"content": {"parts": [{"text": "Hello."}]}}),
            ("user: Hi", "assistant: Hello."),
            ("Hi", "Hello."),
            ({"prompt": "Hi"}, {"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}),
        ],
        ids=["objects", "text", "text twice", "LangChain", "Gemini", "prefixes", "plain", "choices"],
    )
    def test_the_same_talk_in_the_shapes_of_integrations(self, given: Any, answer: Any, tmp_path: Path) -> None:
        assert talk(reading(tmp_path, generation(given, answer)).only) == SAID

    def test_sessions_over_several_traces(self, tmp_path: Path) -> None:
        first = {"trace": {"id": "a", "sessionId": "s"}, "observations": [generation("Hi", "Hello.", traceId="a")]}
        later = generation("Still there?", "Yes.", 30, traceId="b")
        second = {"trace": {"id": "b", "sessionId": "s"}, "observations": [later]}
        conversation = read(write_json(tmp_path / "traces.json", {"data": [second, first]})).only
        assert talk(conversation) == [*SAID, "user: Still there?", "assistant: Yes."]

    def test_a_trace_without_observations_is_one_call(self, tmp_path: Path) -> None:
        assert talk(reading(tmp_path, input="Hi", output="Hello.", timestamp="2026-03-02T08:26:40Z").only) == SAID

    def test_the_answer_of_a_tool_in_quotes_is_its_text(self, tmp_path: Path) -> None:
        ran = generation({"where": "lake"}, '"4 \\u00b0C\\nand fog"', 2, type="TOOL", name="weather")
        conversation = reading(tmp_path, generation("Hi", "Hello."), ran).only
        assert [event.result for event in conversation.timeline if isinstance(event, ToolResult)] == ["4 °C\nand fog"]

    def test_a_table_of_traces(self, tmp_path: Path) -> None:
        """Two traces of a session; the second repeats what the first said."""
        history = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
        more = {"role": "user", "content": "And now?"}
        rows = [
            ("a", "2026-03-02T08:26:40Z", "s", json.dumps(history[:1]), json.dumps(history[1])),
            ("b", "2026-03-02T08:27:40Z", "s", json.dumps([*history, more]), '"Now."'),
        ]
        with (tmp_path / "traces.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["id", "timestamp", "sessionId", "input", "output"])
            table.writerows(rows)
        conversation = read(tmp_path / "traces.csv").only
        assert (conversation.id, talk(conversation)) == ("s", [*SAID, "user: And now?", "assistant: Now."])

    def test_a_list_of_traces_of_the_api_has_only_ids_of_observations(self, tmp_path: Path) -> None:
        trace = {
            "id": "a",
            "timestamp": "2026-03-02T08:26:40Z",
            "input": "Hi",
            "output": "Hello.",
            "observations": ["o"],
        }
        assert talk(read(write_json(tmp_path / "traces.json", {"data": [trace], "meta": {"page": 1}})).only) == SAID

    def test_a_trace_without_content_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ConvoscopeError, match="1 calls of models without any message"):
            reading(tmp_path, generation(None, None, model="small"))

    def test_a_score_of_a_person_is_theirs(self, tmp_path: Path) -> None:
        score = {"id": "1", "name": "tone", "value": 3, "source": "ANNOTATION"}
        (label,) = reading(tmp_path, generation("Hi", "Hello."), scores=[score]).only.labels
        assert (label.value, label.rater_kind) == (3, "human")


class TestLangSmith:
    def test_the_halves_of_runs_are_joined_over_records(self) -> None:
        conversation = read(OWLS).only
        assert conversation.id == "thread-owl"
        assert talk(conversation) == [
            "user: What did the owl box record last night?",
            'recordings({"box": "north"})',
            "-> null",
            "assistant: Nothing: the box in the north has no power.",
        ]

    def test_the_error_of_a_run_is_that_of_the_tool(self) -> None:
        (result,) = (event for event in read(OWLS).only.timeline if isinstance(event, ToolResult))
        assert (result.success, result.error) == (False, "the box has no power")

    def test_tokens(self) -> None:
        """Calls of 0.9 and 0.8 seconds."""
        assert measured(read(OWLS).only) == [
            {"prompt_tokens": 20, "completion_tokens": 9, "total_tokens": 29, "duration": pytest.approx(0.9)},
            {"prompt_tokens": 41, "completion_tokens": 11, "total_tokens": 52, "duration": pytest.approx(0.8)},
        ]

    def test_a_patch_without_an_id_in_milliseconds(self, tmp_path: Path) -> None:
        """As the JavaScript SDK writes it: joined by trace and order."""
        order = {"trace_id": "r1", "dotted_order": "20260302T082640000000Zr1"}
        started = {"id": "r1", "name": "Chat", "run_type": "llm", "start_time": 1_772_440_000_000, **order}
        post = {**started, "inputs": {"messages": [{"role": "user", "content": "Hi"}]}}
        answer = {"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}
        patch = {"end_time": 1_772_440_002_500, "outputs": answer, **order}
        conversation = read(write_json(tmp_path / "runs.json", {"post": [post], "patch": [patch]})).only
        assert talk(conversation) == SAID
        assert measured(conversation) == [{"duration": 2.5}]

    def test_a_run_that_was_never_patched_has_no_answer(self, tmp_path: Path) -> None:
        first = json.loads(OWLS.read_text().splitlines()[0])
        assert talk(read(write_lines(tmp_path / "runs.jsonl", first)).only) == [
            "user: What did the owl box record last night?"
        ]
