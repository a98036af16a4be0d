"""Tool calls, made by hand, and what the scorers of tool calls say of them."""

from __future__ import annotations

from typing import Any

from convoscope.conversation import Agent, Conversation, Event, Expected, ExpectedToolCall, Item, Tool, ToolCall
from convoscope.conversation import ToolResult as Result
from convoscope.metrics import Metric, Observation
from convoscope.metrics.tools.correctness import parameter_correctness_by_success
from convoscope.scoring.evaluate import observe
from support.chats import UNPLACED, chat


def made(name: str, arguments: Any = None, call_id: str = "", raw: str | None = None) -> ToolCall:
    return ToolCall(seq=UNPLACED, name=name, arguments=arguments, call_id=call_id, raw_arguments=raw)


def answered(call_id: str = "", success: bool | None = None, error: str = "", result: Any = None) -> Result:
    return Result(seq=UNPLACED, call_id=call_id, success=success, error=error, result=result)


def item(*events: Event, expected: Expected | None = None, tools: Any = None, **extras: Any) -> Conversation:
    """One item in which this happened."""
    one = Item(id="1", events=tuple(range(len(events))), expected=expected or Expected(), extras=extras)
    return chat(*events, items=(one,), agent=Agent(tools=tools))


def wanting(*calls: ExpectedToolCall) -> Expected:
    return Expected(tool_calls=calls)


def one_of(metric: Metric, conversation: Conversation) -> Observation:
    (one,) = observe(metric, conversation)
    return one


def diff(one: Observation) -> list[str]:
    return list((one.details or {})["diff"])


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
TOOLS = (Tool(name="weather", arguments_schema=SCHEMA), Tool(name="ping"))


def checked(*events: Event, passed: Any, tools: Any = TOOLS, **extras: Any) -> Observation:
    facts = {} if any(isinstance(event, Result) for event in events) else {"tool_call_results": []}
    conversation = item(*events, tools=tools, parameters_passed=passed, **facts, **extras)
    return one_of(parameter_correctness_by_success, conversation)


def checks(one: Observation) -> list[dict[str, bool]]:
    names = ("required", "types", "passed", "success", "accepted")
    return [{name: call[name] for name in names if name in call} for call in (one.details or {})["calls"]]
