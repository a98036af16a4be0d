"""Invented logs with the sentence that a careful reader says about them; the answer must agree.

A scenario is about ten lines: files, what the reader says, and what the terminal and the summary must show.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.command_line import convoscope, convoscope_here

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Scenario:
    """Logs, and what is true about them."""

    name: str
    reader: str
    """The sentence of a careful reader of these logs."""
    files: Mapping[str, str | Sequence[Record]]
    """By name: text as it is, or records that become JSON lines."""
    options: Sequence[object] = ()
    """Further arguments of `convoscope score`; `{folder}` is the folder of the files."""
    says: Sequence[str] = ()
    """Regular expressions that the answer matches, its white space folded to single blanks."""
    never: Sequence[str] = ()
    """Regular expressions that it does not match."""
    figures: Mapping[str, float | None] = field(default_factory=dict)
    """Values in the summary by metric; None: not measured."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many subjects have a value, by metric."""
    conversations: int | None = None
    worst: Sequence[str] | None = None
    """The conversations that the answer names first, in order."""
    code: int = 0


def check(scenario: Scenario, folder: Path, *, own_process: bool = False) -> None:
    """Score the logs by the command line, and hold terminal, summary and page against what is true."""
    logs, run = folder / "logs", folder / "run"
    for name, content in scenario.files.items():
        path = logs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else "".join(json.dumps(one) + "\n" for one in content)
        path.write_text(text, encoding="utf-8")
    options = [str(one).replace("{folder}", str(logs)) for one in scenario.options]
    # User code is imported under its own name, once in a process.
    own_process = own_process or any(option.endswith(".py") for option in options)
    command = convoscope if own_process else convoscope_here
    ended = command("score", logs, "--out", run, *options)
    terminal = " ".join(f"{ended.out} {ended.err}".split())
    assert ended.code == scenario.code, f"{scenario.reader}\n{ended.out}{ended.err}"
    for pattern in scenario.says:
        assert re.search(pattern, terminal), f"{scenario.reader}\n{pattern!r} is not in\n{ended.out}{ended.err}"
    for pattern in scenario.never:
        assert not re.search(pattern, terminal), f"{scenario.reader}\n{pattern!r} is in\n{ended.out}{ended.err}"
    if scenario.code != 2:  # 2: nothing could be read, or the command was wrong
        _check_summary(scenario, json.loads((run / "summary.json").read_text()))
        assert (run / "report.html").stat().st_size, f"{scenario.reader}\nthe page is missing"
    if scenario.worst is not None:
        shown = json.loads(command("score", logs, "--out", run, *options, "--json").out)["answer"]
        assert [one["conversation"] for one in shown["worst"]][: len(scenario.worst)] == list(scenario.worst)


def _check_summary(scenario: Scenario, summary: Mapping[str, Any]) -> None:
    if scenario.conversations is not None:
        assert summary["conversations"] == scenario.conversations, scenario.reader
    figures = {
        one["metric"] + (f"@{one['variant']}" if one.get("variant") else ""): one
        for one in reversed(summary["metrics"])
        if not one.get("reduction")
    }
    declared = {one["metric"] for one in summary["declared"]}
    assert not {*scenario.figures, *scenario.counts} - declared, "a scenario names a metric that is not scored"
    for name, value in scenario.figures.items():
        actual = figures.get(name, {}).get("value")
        assert actual == (value if value is None else pytest.approx(value, abs=1e-9)), f"{scenario.reader}\n{name}"
    for name, count in scenario.counts.items():
        assert figures.get(name, {}).get("n", 0) == count, f"{scenario.reader}\n{name}"


def each(scenarios: Sequence[Scenario]) -> pytest.MarkDecorator:
    """One test for each scenario, by its name."""
    names = [one.name for one in scenarios]
    assert len(names) == len(set(names)), "two scenarios have one name"
    return pytest.mark.parametrize("scenario", scenarios, ids=names)


def said(role: str, content: str, **fields: Any) -> dict[str, Any]:
    """One message."""
    return {"role": role, "content": content, **fields}


def chat(*texts: str | dict[str, Any], id: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chat; plain texts alternate between user and agent, who speaks after a tool; messages are taken as they are."""
    messages: list[dict[str, Any]] = []
    for text in texts:
        if isinstance(text, dict):
            messages.append(text)
        else:
            last = next((one["role"] for one in reversed(messages) if one["role"] != "system"), "")
            messages.append(said("assistant" if last in ("user", "tool") else "user", text))
    return ({} if id is None else {"id": id}) | {"messages": messages} | fields


def tool(result: Any, name: str = "lookup", call_id: str = "t1", **arguments: Any) -> list[dict[str, Any]]:
    """A tool call and its result, as two messages; a result that is no text is written as JSON."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    called = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }
    content = result if isinstance(result, str) else json.dumps(result)
    return [called, {"role": "tool", "tool_call_id": call_id, "name": name, "content": content}]
