"""The rows of what the seeds ask for that name a judge, each as the command that a user would write.

What the measures come to has tests of its own: here each row is asked for, and is no longer missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation.serial import to_json
from convoscope.metrics.judged_items import MEASURES
from convoscope.runs.run import Run
from support.command_line import Ended
from support.command_line import convoscope_here as command
from support.judge_server import JudgeServer, best, judge_server
from support.judged_items import FULL, listed, numbered
from support.logs import write_json, write_lines

README = Path(__file__).parents[2] / "benchmarks" / "README.md"
CHAT = {
    "id": "chat",
    "messages": [
        {"role": "system", "content": "Never promise a refund."},
        {"role": "user", "content": "A table for two?"},
        {"role": "assistant", "content": "For which day?"},
        {"role": "user", "content": "Friday."},
        {"role": "assistant", "content": "Booked for Friday, reference K7M."},
    ],
}
CODE = """
import convoscope
from convoscope.judging.instrument import Instrument
from convoscope.resources import Judge


@convoscope.resource
def judge() -> Judge:
    return Instrument("{judge}")
"""


@pytest.fixture(scope="module")
def running() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


@pytest.fixture
def server(running: JudgeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> JudgeServer:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CONVOSCOPE_BENCHMARKS", raising=False)
    running.answer = best
    running.prompts.clear()
    return running


def scored(
    server: JudgeServer, log: Any, metrics: str, *more: str, out: str = "run"
) -> dict[str, tuple[float | None, str]]:
    """What a run of one log says by a judge: value and reason of each figure without its parts."""
    file = write_json(Path("log.json"), log)
    ended = command("score", file, "--judge", server.openai, "--metrics", metrics, "--out", out, "--full", *more)
    assert ended.code == 0, ended.err
    return said_in(out)


def said_in(folder: str) -> dict[str, tuple[float | None, str]]:
    figures = Run.open(Path(folder)).summary.figures
    return {one.key: (one.value, one.reason or "") for one in figures if not one.reduction}


def test_the_table_names_what_is_run_here() -> None:
    """`benchmarks/README.md` says what was run for each row: all of these tests, and none that is not here."""
    table = README.read_text().partition("### What the seeds ask of a judge")[2].partition("\n## ")[0]
    rows = {name for name in globals() if name.startswith("test_")} - {"test_the_table_names_what_is_run_here"}
    assert set(re.findall(r"`(test_\w+)`", table)) == rows


# Voice logs.


def test_faithfulness_conciseness_and_progression_are_asked(server: JudgeServer) -> None:
    metrics = ("judged.faithfulness", "judged.conciseness", "judged.conversation_progression")
    found = scored(server, CHAT, ",".join(metrics))
    assert [found[name] for name in metrics] == [(1.0, "")] * 3
    assert len(server.prompts) == 3


def test_a_judge_of_metrics_from_is_asked(server: JudgeServer) -> None:
    """And the table no longer says that there is none."""
    Path("mine.py").write_text(CODE.format(judge=server.openai))
    file = write_json(Path("log.json"), CHAT)
    run = ("score", file, "--metrics", "judged.faithfulness", "--metrics-from", "mine.py", "--out", "run", "--full")
    ended = command(*run)
    assert ended.code == 0, ended.err
    assert "no judge" not in ended.out
    assert said_in("run")["judged.faithfulness"] == (1.0, "")
    assert len(server.prompts) == 1


def test_fidelity_of_speech_from_sound(server: JudgeServer, tmp_path: Path) -> None:
    """And tone_clarity of the items: the judge gets the sound of the agent's turn."""
    from judging.test_sound import GREETING, LINES, call

    def listens(prompt: str, schema: dict[str, Any]) -> Any:
        if "transcript" not in schema["properties"]:
            return {**best(prompt, schema), "has_entities": True, "explanation": "Listened."}
        tone = {"explanation": "", "ratings": {"clarity": 8, "pace": 6, "warmth": 7}}
        return {"transcript": GREETING, **(tone if "ratings" in schema["properties"] else {})}

    Path("call.json").write_bytes(to_json(call(tmp_path, LINES[:2])))
    server.waves.clear()
    server.answer = listens
    names = ("judged.agent_speech_fidelity", "audio.tone_clarity")
    run = ("score", "call.json", "--metrics", ",".join(names), "--judge", server.listening, "--send-audio")
    ended = command(*run, "--out", "run", "--full")
    assert ended.code == 0, ended.err
    assert server.waves
    found = said_in("run")
    assert found["judged.agent_speech_fidelity"] == (1.0, "")
    assert found["audio.tone_clarity"] == (7.0, "")  # (8 + 6 + 7) ÷ 3


# Evaluation items.


def test_bare_faithfulness_of_an_item_is_about_its_context(server: JudgeServer) -> None:
    server.answer = lambda prompt, schema: listed(
        ("supported", "return within 30 days", "You can return it within 30 days"),
        ("supported", "ship free of charge", "Shipping is free"),
    )
    found = scored(server, FULL, "faithfulness")
    assert found["retrieval.faithfulness"] == (1.0, "")
    assert found["judged.faithfulness"] == (None, "judged_as_item")
    said = command("metrics", "faithfulness").out
    assert "retrieval.faithfulness" in said
    assert "judged.faithfulness" in said


def test_an_item_type_chooses_its_scorers(server: JudgeServer) -> None:
    found = scored(server, {**FULL, "novaeval_item_type": "agent"}, "role_adherence,goal_achievement")
    assert found["conversation.role_adherence"] == (None, "other_item_type")
    assert found["agent.goal_achievement"][0] == 10
    assert len(server.prompts) == 1


@pytest.mark.parametrize(
    ("name", "answer", "value"),
    [
        # Both queries have their useful chunk first: 1 and 1.
        (
            "contextual_precision",
            numbered({1: ("useful", "Lamps are bright"), 2: ("useless", ""), 3: ("useful", "free of charge")}),
            1.0,
        ),
        (
            "contextual_recall",
            listed(("found", "return within 30 days", "returned within 30 days"), ("missing", "", "shipping is free")),
            0.5,
        ),
    ],
)
def test_contextual_precision_and_recall_by_their_bare_names(
    server: JudgeServer, name: str, answer: Any, value: float
) -> None:
    server.answer = lambda prompt, schema: answer
    assert scored(server, FULL, name)[f"retrieval.{name}"] == (value, "")
    assert f"retrieval.{name}@lexical" in command("metrics", f"{name}@lexical").out


def test_the_stage_at_which_a_caller_left_from_the_instructions(server: JudgeServer) -> None:
    """The first of two stages is reached."""
    server.answer = lambda prompt, schema: listed(
        ("reached", "Hello Ines", "Greet the caller"), ("not_reached", "", "Ask when the lamp was bought")
    )
    assert scored(server, FULL, "drop_off_node")["telephony.drop_off_node"] == (0.5, "")


def test_a_template_may_have_an_optional_field(server: JudgeServer) -> None:
    template = "Is {agent_response} polite? It is known: {context?}"
    Path("mine.toml").write_text(f'[[scorer]]\nname = "polite"\ntemplate = "{template}"\nscale = [1, 5]\n')
    file = write_json(Path("log.json"), {name: text for name, text in FULL.items() if name != "context"})
    run = ("score", file, "--metrics", "polite", "--metrics-from", "mine.toml", "--judge", server.openai)
    ended = command(*run, "--out", "run", "--full")
    assert ended.code == 0, ended.err
    assert "It is known: (not given)" in server.prompts[0]


def test_each_of_the_24_has_a_judge(server: JudgeServer) -> None:
    """By its bare name and with `_scorer`: a value, or a reason that is not `no_judge`."""
    names = [name.partition(".")[2] for name in MEASURES]
    assert len(names) == 24
    found = scored(server, FULL, ",".join(names))
    assert set(MEASURES) <= set(found)
    assert all((value is None) == bool(reason) for value, reason in (found[name] for name in MEASURES))
    assert "no_judge" not in {reason for _, reason in found.values()}
    for name in names:
        assert command("metrics", f"{name}_scorer").code == 0


def test_without_a_judge_they_say_what_is_missing(server: JudgeServer) -> None:
    file = write_json(Path("log.json"), FULL)
    ended = command("score", file, "--metrics", "factual_accuracy", "--out", "run", "--full")
    assert "no judge" in ended.out
    assert "did you mean" not in ended.out + ended.err
    assert server.prompts == []


# States of flows.


def test_humanness_by_a_judge(server: JudgeServer) -> None:
    assert scored(server, CHAT, "flow.humanness")["flow.humanness"] == (1.0, "")
    assert len(server.prompts) == 1


# Meaning.


def benchmark(*arguments: str) -> tuple[Ended, dict[str, Any]]:
    ended = command("benchmark", "run", "--dataset", "support-calls", "--limit", "2", "--json", *arguments)
    assert ended.code == 0, ended.err
    return ended, json.loads(ended.out)["result"]


def written_and_rated(prompt: str, schema: Mapping[str, Any]) -> Any:
    if "summary" in schema["properties"]:
        return {"summary": "The customer called the agent."}
    return {"reasoning": "thin", "quote": "The customer called", "score": 4}


def test_summaries_are_written_and_rated(server: JudgeServer) -> None:
    server.answer = written_and_rated
    _, result = benchmark("--mode", "summary", "--split", "dev", "--model", server.openai)
    assert {name: one["value"] for name, one in result["metrics"].items()} == {
        "faithfulness": 4.0, "coverage": 4.0, "clarity": 4.0,
    }  # fmt: skip
    # Two summaries with three questions each; clarity shows the summary alone, which is twice the same.
    assert len(server.prompts) == 2 * (1 + 3) - 1


def test_the_rubric_of_summaries_is_printed_and_can_be_replaced(server: JudgeServer) -> None:
    Path("mine").mkdir()
    rubric = command("judge", "rubrics", "summary_clarity").out
    assert "Scores, in whole numbers: 10," in rubric
    Path("mine/summary_clarity.md").write_text(rubric.replace("## The summary", "## What was written"))
    server.answer = written_and_rated
    benchmark("--mode", "summary", "--split", "dev", "--model", server.openai, "--rubrics", "mine")
    assert sum("## What was written" in prompt for prompt in server.prompts) == 1


def test_a_language_model_annotates_by_the_name_of_the_seed(
    server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--model claude-…`: here its address is on this machine."""
    server.answer = lambda prompt, schema: {"topics": [], "risks": [], "actions": [], "summary": "A call."}
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{server.port}")
    _, result = benchmark("--split", "test", "--model", "claude-sonnet-4")
    assert (result["samples_evaluated"], len(server.prompts)) == (2, 2)
    assert result["receipt"]["semantic_model"] == "claude-sonnet-4"


def test_variables_of_slower_whisper_are_named(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOWER_WHISPER_SEMANTIC_MODEL", "claude-sonnet-4")
    ended, _ = benchmark()
    assert "SLOWER_WHISPER_SEMANTIC_MODEL is not used: name the model with --model" in ended.err
    monkeypatch.setenv("SLOWER_WHISPER_BENCHMARKS", "elsewhere")
    Path("talk.txt").write_text("user: Hello?\nassistant: Hello.\n")
    for name in ("rules", "judge"):
        ended = command("score", "talk.txt", "--annotate", name, "--judge", server.openai, "--dry-run")
        assert "warning: SLOWER_WHISPER_SEMANTIC_MODEL is not used: name the model with --judge" in ended.err
        assert "SLOWER_WHISPER_BENCHMARKS" not in ended.err
    assert "SLOWER_WHISPER" not in command("score", "talk.txt", "--judge", server.openai, "--dry-run").err
    assert server.prompts == []


def test_a_run_is_annotated_by_its_judge(server: JudgeServer) -> None:
    topic = {"label": "billing", "evidence": "A table for two"}
    server.answer = lambda prompt, schema: {"topics": [topic], "risks": [], "actions": [], "summary": ""}
    assert scored(server, CHAT, "topics_found", "--annotate", "judge")["semantic.topics_found"] == (1.0, "")


# Dialogue.


def test_the_judge_of_replies_sees_history_and_rules_and_can_be_replaced(server: JudgeServer) -> None:
    assert scored(server, CHAT, "dialogue.response_quality")["dialogue.response_quality"] == (5.0, "")
    second = next(prompt for prompt in server.prompts if "K7M" in prompt)
    history, rest = second.split("## What the user wants so far")
    assert "For which day?" in history
    assert "Never promise a refund." in rest
    Path("mine").mkdir()
    rubric = command("judge", "rubrics", "response_quality").out
    Path("mine/response_quality.md").write_text(rubric.replace("You rate one reply", "In verse: you rate one reply"))
    server.prompts.clear()
    scored(server, CHAT, "dialogue.response_quality", "--rubrics", "mine", out="other")
    assert all(prompt.startswith("In verse: you rate") for prompt in server.prompts)


def test_the_judge_of_replies_sees_the_state(server: JudgeServer) -> None:
    folder = Path("dialogues")
    folder.mkdir()
    frame = {"service": "hotel", "state": {"active_intent": "find_hotel", "requested_slots": [],
             "slot_values": {"hotel-area": ["north"]}}}  # fmt: skip
    turns = [
        {"turn_id": "0", "speaker": "USER", "utterance": "A hotel in the north.", "frames": [frame]},
        {"turn_id": "1", "speaker": "SYSTEM", "utterance": "A person replies.", "frames": []},
    ]
    write_json(folder / "dialogues_001.json", [{"dialogue_id": "D1.json", "services": ["hotel"], "turns": turns}])
    write_lines(folder / "predictions.jsonl", {"dialogue_id": "D1", "turn_id": 0, "predicted_slots": {},
                "response": "Gull House."})  # fmt: skip
    ended = command("score", folder, "--metrics", "dialogue.response_quality", "--judge", server.openai, "--out", "run")
    assert ended.code == 0, ended.err
    [prompt] = server.prompts
    assert '"area": "north"' in prompt
    assert "Gull House." in prompt
    assert "A person replies." not in prompt
