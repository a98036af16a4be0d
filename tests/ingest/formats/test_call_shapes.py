"""What a call of a model was given and gave: as Langfuse and LangSmith log it, and as it goes over HTTP."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Conversation, ToolResult
from support.logs import measured, read, talk, write, write_json, write_lines, write_text

TALK = ["user: Is it open?", "assistant: Until six."]
ASK = {"role": "user", "content": "Is it open?"}
REPLY = {"role": "assistant", "content": "Until six."}
CALL = {"id": "c", "type": "function", "function": {"name": "hours", "arguments": "{}"}}


def observed(folder: Path, given: Any, answer: Any, **more: Any) -> Conversation:
    """One generation of Langfuse."""
    held = {"id": "o", "traceId": "t", "type": "GENERATION", "startTime": "2026-03-02T08:00:00Z"}
    observation = held | {"endTime": "2026-03-02T08:00:02Z", "input": given, "output": answer} | more
    return read(write_json(folder / "t.json", {"trace": {"id": "t"}, "observations": [observation]})).only


def ran(folder: Path, inputs: Any, outputs: Any, **more: Any) -> Conversation:
    """One run of LangSmith."""
    run = {"id": "r", "trace_id": "t", "dotted_order": "1", "run_type": "llm", "inputs": inputs, "outputs": outputs}
    times = {"start_time": "2026-03-02T08:00:00", "end_time": "2026-03-02T08:00:02"}
    return read(write_lines(folder / "r.jsonl", run | times | more)).only


def taped(folder: Path, address: str, asked: Any, answer: Any, status: int = 200) -> Conversation:
    """One exchange."""
    request = {"uri": f"https://api.example.org/{address}", "body": json.dumps(asked)}
    body = {"string": answer if isinstance(answer, str) else json.dumps(answer)}
    response = {"status": {"code": status}, "body": body}
    return read(write_json(folder / "t.json", {"interactions": [{"request": request, "response": response}]})).only


class TestLangfuse:
    @pytest.mark.parametrize(
        ("given", "answer"),
        [
            ({"messages": ["system: Be brief.", "user: Is it open?"]}, "assistant: Until six."),
            (
                {"messages": [{"role": "user", "blocks": [{"block_type": "text", "text": "Is it open?"}]}]},
                {"role": "assistant", "blocks": [{"block_type": "text", "text": "Until six."}]},
            ),
            ({"contents": [{"role": "user", "parts": [{"text": "Is it open?"}]}]}, {"text": "Until six.", "files": []}),
            ({"messages": [ASK], "model": "m"}, {"choices": [{"message": REPLY}]}),
            ({"question": "Is it open?"}, {"answer": "Until six."}),
            ([["user", "Is it open?"]], {"message": {"content": [{"text": "Until six."}]}, "stopReason": "end_turn"}),
            ('"Is it open?"', '"Until six."'),
        ],
        ids=["llama-index", "blocks", "gemini", "request", "fields", "pairs", "quoted"],
    )
    def test_shapes_of_input_and_output(self, tmp_path: Path, given: Any, answer: Any) -> None:
        assert talk(observed(tmp_path, given, answer)) == TALK

    def test_instructions_and_tools_of_a_request(self, tmp_path: Path) -> None:
        config: dict[str, Any] = {"systemInstruction": {"parts": [{"text": "Be brief."}]}}
        config |= {"tools": [{"functionDeclarations": [{"name": "hours"}, {"name": "days"}]}]}
        given = {"contents": [{"role": "user", "parts": [{"text": "Is it open?"}]}], "config": config}
        conversation = observed(tmp_path, given, "Until six.")
        assert conversation.agent.instructions == "Be brief."
        assert [tool.name for tool in conversation.agent.tools or ()] == ["hours", "days"]

    def test_objects_as_a_program_prints_them_are_not_read(self, tmp_path: Path) -> None:
        given = {"messages": ["ChatMessage(_role=<ChatRole.USER: 'user'>, _content=[])"]}
        assert talk(observed(tmp_path, given, "Until six.")) == TALK[1:]

    def test_tokens_of_a_table(self, tmp_path: Path) -> None:
        row = "o,t,GENERATION,2026-03-02T08:00:00Z,2026-03-02T08:00:02Z,42,Until six.,m,7,3,10,0.5"
        head = "id,traceId,type,startTime,endTime,input,output,providedModelName"
        head += ",inputUsage,outputUsage,totalUsage,totalCost"
        conversation = read(write(tmp_path / "o.csv", f"{head}\n{row}\n")).only
        assert talk(conversation) == ["user: 42", "assistant: Until six."]
        assert measured(conversation) == [
            {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10, "cost": 0.5, "duration": 2.0}
        ]
        assert conversation.dimensions["model"] == "m"

    def test_scores_of_three_types(self, tmp_path: Path) -> None:
        """The number of a category is the index of a word, and no score."""
        scores = [
            {"id": "1", "name": "accuracy", "value": 0.5, "dataType": "NUMERIC", "source": "EVAL"},
            {"id": "2", "name": "tone", "value": 2, "stringValue": "kind", "dataType": "CATEGORICAL"},
            {"id": "3", "name": "solved", "value": 1, "stringValue": "True", "dataType": "BOOLEAN"},
        ]
        conversation = observed(tmp_path, "Is it open?", "Until six.", scores=scores)
        assert [(label.name, label.value) for label in conversation.labels] == [
            ("accuracy", 0.5),
            ("tone", "kind"),
            ("solved", True),
        ]

    def test_the_verdict_of_a_check_is_no_talk(self, tmp_path: Path) -> None:
        def seen(id: str, kind: str, second: int, **more: Any) -> dict[str, Any]:
            times = {"startTime": f"2026-03-02T08:00:0{second}Z"}
            return {"id": id, "traceId": "t", "type": kind} | times | more

        observations = [
            seen("a", "GENERATION", 0, input="Is it open?", output="Until six."),
            seen("e", "EVALUATOR", 2),
            seen("j", "GENERATION", 3, input="Right?", output="Yes.", parentObservationId="e"),
        ]
        whole = {"trace": {"id": "t"}, "observations": observations}
        conversation = read(write_json(tmp_path / "t.json", whole)).only
        assert talk(conversation) == [*TALK, "orchestrator: Right?", "subagent: Yes."]


class TestLangSmith:
    @pytest.mark.parametrize(
        ("inputs", "outputs"),
        [
            ({"contents": "Is it open?", "model": "m"}, REPLY),
            ({"prompt": "Is it open?", "model": "m"}, {"choices": [{"text": "Until six.", "index": 0}]}),
            ({"prompts": ["Is it open?"]}, {"generations": [[{"text": "Until six."}]]}),
            (
                {"messages": [ASK]},
                {"message": {"role": "assistant", "content": [{"type": "text", "text": "Until six."}]}},
            ),
            ({"messages": [ASK]}, {"outputs": REPLY}),
            (
                {"messages": [ASK]},
                {
                    "output": [
                        {"object": "chat.completion.chunk", "choices": [{"delta": {"content": text}, "index": 0}]}
                        for text in ("Until ", "six.")
                    ]
                },
            ),
            (json.dumps({"messages": [ASK]}), json.dumps({"choices": [{"message": REPLY}]})),
        ],
        ids=["contents", "completion", "prompts", "anthropic", "nested", "chunks", "bulk"],
    )
    def test_shapes_of_inputs_and_outputs(self, tmp_path: Path, inputs: Any, outputs: Any) -> None:
        assert talk(ran(tmp_path, inputs, outputs)) == TALK

    def test_what_a_run_counts(self, tmp_path: Path) -> None:
        """The first word came 0.4 seconds after the start; the cost is a text."""
        more = {"first_token_time": "2026-03-02T08:00:00.400", "prompt_tokens": 5, "total_cost": "0.25"}
        conversation = ran(tmp_path, {"messages": [ASK]}, REPLY, **more)
        assert measured(conversation) == [{"prompt_tokens": 5, "ttft": 0.4, "cost": 0.25, "duration": 2.0}]

    def test_feedback_in_numbers_and_words(self, tmp_path: Path) -> None:
        stats = {"good": {"n": 2, "avg": 0.5}, "tone": {"n": 1, "avg": None, "values": {"kind": 1}}}
        stats |= {"mixed": {"n": 2, "avg": None, "values": {"a": 1, "b": 1}}}
        conversation = ran(tmp_path, {"messages": [ASK]}, REPLY, feedback_stats=stats)
        assert [(label.name, label.value) for label in conversation.labels] == [("good", 0.5), ("tone", "kind")]


class TestExchanges:
    def test_a_deployment_names_the_model(self, tmp_path: Path) -> None:
        conversation = taped(
            tmp_path, "openai/deployments/desk/chat/completions", {"messages": [ASK]}, {"choices": [{"message": REPLY}]}
        )
        assert (talk(conversation), conversation.dimensions["model"]) == (TALK, "desk")

    def test_bedrock(self, tmp_path: Path) -> None:
        asked = {
            "messages": [{"role": "user", "content": [{"text": "Is it open?"}]}],
            "system": [{"text": "Be brief."}],
        }
        answer: dict[str, Any] = {"output": {"message": {"role": "assistant", "content": [{"text": "Until six."}]}}}
        answer |= {"usage": {"inputTokens": 4, "outputTokens": 2}}
        conversation = taped(tmp_path, "model/nova.v1/converse", asked, answer)
        assert (talk(conversation), conversation.agent.instructions) == (TALK, "Be brief.")
        assert measured(conversation) == [{"prompt_tokens": 4, "completion_tokens": 2}]

    def test_a_service_that_says_that_it_failed(self, tmp_path: Path) -> None:
        asked: dict[str, Any] = {"model": "m", "input": "Is it open?"}
        failed = taped(tmp_path, "responses", asked, {"status": "failed", "error": {"message": "busy"}, "output": []})
        assert (talk(failed), failed.outcome.error) == (TALK[:1], "busy")
        asked = {"contents": [{"role": "user", "parts": [{"text": "Is it open?"}]}]}
        blocked = taped(tmp_path, "models/g:generateContent", asked, {"promptFeedback": {"blockReason": "SAFETY"}})
        assert (talk(blocked), blocked.outcome.error) == (TALK[:1], "SAFETY")

    def test_code_that_the_service_ran(self, tmp_path: Path) -> None:
        parts = [{"executableCode": {"code": "6 * 3"}}, {"codeExecutionResult": {"outcome": "OUTCOME_FAILED"}}]
        asked = {"contents": [{"role": "user", "parts": [{"text": "Is it open?"}]}]}
        answer = {"candidates": [{"content": {"role": "model", "parts": [*parts, {"text": "Until six."}]}}]}
        conversation = taped(tmp_path, "models/g:generateContent", asked, answer)
        assert talk(conversation) == [TALK[0], 'code_execution({"code": "6 * 3"})', "-> null", TALK[1]]
        (result,) = (event for event in conversation.timeline if isinstance(event, ToolResult))
        assert result.success is False

    def test_calls_in_pieces_that_alternate(self, tmp_path: Path) -> None:
        """The first chunk of Azure holds only verdicts on the prompt, the last only tokens."""

        def piece(index: int, name: str, text: str) -> dict[str, Any]:
            call = {"index": index, "id": f"c{index}" if name else None, "function": {"name": name, "arguments": text}}
            return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}

        chunks = [
            {"choices": [], "prompt_filter_results": [{}]},
            piece(0, "hours", ""),
            piece(1, "days", ""),
            piece(0, "", '{"a": '),
            piece(1, "", '{"b": 2}'),
            piece(0, "", "1}"),
            {"choices": [], "usage": {"prompt_tokens": 8, "completion_tokens": 9}},
        ]
        stream = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
        conversation = taped(tmp_path, "chat/completions", {"model": "m", "messages": [ASK]}, stream)
        assert talk(conversation) == [TALK[0], 'hours({"a": 1})', 'days({"b": 2})']
        assert measured(conversation) == [{"prompt_tokens": 8, "completion_tokens": 9}]

    @pytest.mark.parametrize("packed", [bytes, gzip.compress])
    def test_bodies_as_binary_data_of_yaml(self, tmp_path: Path, packed: Any) -> None:
        asked, answer = ({"model": "m", "messages": [ASK]}, {"choices": [{"message": REPLY}]})
        bodies = [base64.b64encode(packed(json.dumps(body).encode())).decode() for body in (asked, answer)]
        tape = f"""
            version: 1
            interactions:
            - request:
                uri: https://api.example.org/v1/chat/completions
                body: !!binary |
                  {bodies[0]}
              response:
                status: {{code: 200}}
                body:
                  string: !!binary |
                    {bodies[1]}
            """
        assert talk(read(write_text(tmp_path / "t.yaml", tape)).only) == TALK

    def test_bodies_that_the_recorder_parsed(self, tmp_path: Path) -> None:
        request = {
            "uri": "https://api.example.org/v1/chat/completions",
            "parsed_body": {"model": "m", "messages": [ASK]},
        }
        response = {"status": {"code": 200}, "parsed_body": {"choices": [{"message": REPLY}]}}
        tape = {"interactions": [{"request": request, "response": response}]}
        assert talk(read(write_json(tmp_path / "t.json", tape)).only) == TALK
