"""Answers about tools: what failed is never a success."""

from __future__ import annotations

from pathlib import Path

from support.scenarios import Scenario, chat, check, each, tool

SCENARIOS = [
    Scenario(
        "every tool reports an error",
        "Every tool call failed.",
        {
            "chats.jsonl": [
                chat(f"Where is order {n}?", *tool({"error": "backend down"}), "I cannot see it.", id=f"c{n}")
                for n in range(30)
            ]
        },
        says=[r"tool calls that succeed 0\.0 %"],
        figures={"tools.success": 0.0},
        counts={"tools.success": 30},
        conversations=30,
    ),
]


@each(SCENARIOS)
def test_answer(scenario: Scenario, tmp_path: Path) -> None:
    check(scenario, tmp_path)
